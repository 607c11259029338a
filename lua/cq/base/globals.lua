-- globals: in a script, reading a global that nothing has assigned is an error. Lua gives nil, which a field that may
-- be left out takes as left out: { gravity = gravty } would be a world without gravity.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local globals = {}

-- what other languages call the values of Lua
local LUA = { True = "true", False = "false", None = "nil", null = "nil", NULL = "nil" }

-- globals of other versions of Lua, for which scripts look that run in all
local ELSEWHERE = { bit32 = true, utf8 = true, _ENV = true }

local script                 -- the source, as debug.getinfo gives it, of the script whose reads are checked; nil: none
local assigned = {}          -- by name, of globals that were assigned, be they nil by now

-- The names that code at a level of the stack may have meant: local variables of the script's functions that run, and
-- globals.
local function known(level)
  local names = {}
  for name in pairs(_G) do names[#names + 1] = name end
  for frame = level + 1, math.huge do
    local info = debug.getinfo(frame, "S")
    if not info then return names end
    for k = 1, info.source == script and math.huge or 0 do
      local name = debug.getlocal(frame, k)
      if not name then break end
      names[#names + 1] = name
    end
  end
end

---Is this frame of the call stack, from debug.getinfo with "S", the code of the script whose reads are checked?
---@return boolean
function globals.is_script(info) return info.source == script end

-- Raises the error of a script that reads a global without a value; nil for all other code, which may try whether there
-- is one.
local function read(_, name)
  if assigned[name] or ELSEWHERE[name] or not globals.is_script(debug.getinfo(2, "S")) then
    return nil
  end
  local hint = LUA[name] and (" (Lua's is %s)"):format(LUA[name]) or text.suggestion(tostring(name), known(2))
  if hint == "" then hint = ("; rawget(_G, %q) is nil where a global may be missing"):format(tostring(name)) end
  is.fail("there is no variable %s%s", tostring(name), hint)
end

-- Assigns a global for the first time.
local function assign(all, name, value)
  assigned[name] = true
  rawset(all, name, value)
end

---From now on the code of this file alone reads no global that nothing has assigned.
---@param path string       "-" for standard input
function globals.guard(path)
  script = path == "-" and "=stdin" or "@" .. path
  if not getmetatable(_G) then setmetatable(_G, { __index = read, __newindex = assign }) end
end

return globals
