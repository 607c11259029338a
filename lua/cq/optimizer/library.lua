-- library: shared libraries of other makers, loaded when a script asks for what they do.
local ffi = require "ffi"
local is = require "cq.base.schema"

local library = {}

---@class cq.library.def
---@field names string[]        file names, the first one that is there is taken
---@field variable string       of the environment: names another file
---@field declarations string   in C
---@field purpose string        "cq.Optimizer.nlopt"
---@field package string        of Debian
---@field instead string        what is built in

---Loads a library, or says what to install.
---@param def cq.library.def
---@return ffi.namespace*
function library.load(def)
  local given = os.getenv(def.variable)
  for _, name in ipairs(given and { given } or def.names) do
    local found, namespace = pcall(ffi.load, name)
    if found then
      ffi.cdef(def.declarations)
      return namespace
    end
  end
  is.fail("%s: the library %s was not found; install the Debian package %s, or take %s, which is built in", def.purpose,
    given or def.names[1], def.package, def.instead)
end

return library
