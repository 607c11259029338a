-- library: shared libraries of other makers, loaded when a script first needs them.
local ffi = require "ffi"
local is = require "cq.base.schema"

local library = {}

---@class cq.library.def
---@field names string[]        file names, of which the first that the system has is loaded
---@field variable? string      of the environment: names another file
---@field declarations string   in C
---@field purpose string        "cq.Optimizer.nlopt"
---@field package string        of Debian
---@field instead? string       what is built in

---Loads a shared library and declares its functions; the caller keeps the result, as C types are declared once.
---Errors: none of the files can be loaded; the message names the package to install.
---@param def cq.library.def
---@return ffi.namespace*
function library.load(def)
  local given = def.variable and os.getenv(def.variable)
  for _, name in ipairs(given and { given } or def.names) do
    local found, namespace = pcall(ffi.load, name)
    if found then
      ffi.cdef(def.declarations)
      return namespace
    end
  end
  is.fail("%s: the library %s was not found; install the Debian package %s%s", def.purpose, given or def.names[1],
    def.package, def.instead and (", or take %s, which is built in"):format(def.instead) or "")
end

return library
