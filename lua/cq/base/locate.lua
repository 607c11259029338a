-- locate: files that are named beside a script, or that come with cqlua.
local host = require "cq.host"
local is = require "cq.base.schema"

-- Can a file of this path be read?
local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

---A path as it stands, if there is such a file; else beside the user's script, if it is there; else in the folder of
---cqlua, as scenes/assets/creature.stl, where require finds scenes.walker2d; else as it stands.
---@param path string
---@return string
return function(path)
  if exists(path) or path:match "^[/\\]" then return path end
  for level = 2, 100 do
    local info = debug.getinfo(level, "S")
    if not info then break end
    local folder = not is.is_library(info) and info.source:match "^@(.*[/\\])"
    if folder and exists(folder .. path) then return folder .. path end
  end
  local own = host.root .. "/" .. path
  return exists(own) and own or path
end
