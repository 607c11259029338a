-- read_file: a whole file.
local host = require "cq.host"

local LARGEST = 2 ^ 30          -- [byte] strings of LuaJIT are no longer than twice that

---The bytes of a file; nil and a sentence where it cannot be read.
---@param path string
---@return string? bytes, string? problem
return function(path)
  local file, problem = io.open(path, "rb")
  if not file then return nil, problem end
  if host.kind(path) == "file" and file:seek "end" > LARGEST then
    file:close()
    return nil, path .. ": it is larger than 1 GiB, the most that is read"
  end
  file:seek "set"
  local bytes, why = file:read "*a"
  file:close()
  return bytes, why
end
