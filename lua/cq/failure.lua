-- failure: an error as the program tells it: its message, and the frames that help.
local schema = require "cq.schema"

local failure = {}

local own = debug.getinfo(1, "S").source:match "^(.*[/\\])" or "@"
local driver = { [own .. "failure.lua"] = true, [own .. "program.lua"] = true, [own .. "prompt.lua"] = true }

local function frame_name(info)
  if info.what == "main" then return "main chunk" end
  if info.name and info.namewhat ~= "" then return ("function %s"):format(info.name) end
  return ("function <%s:%d>"):format(info.short_src, info.linedefined)
end

-- frames above level, "file:line: in function f"; those of the library only when it is the library that broke
local function frames(level, whole)
  local lines = {}
  while true do
    local info = debug.getinfo(level, "Sln")
    if not info then break end
    local shown = info.what ~= "C" and not driver[info.source] and (whole or not schema.is_library(info))
    if shown then lines[#lines + 1] = ("  %s:%d: in %s"):format(info.short_src, info.currentline, frame_name(info)) end
    level = level + 1
  end
  return lines
end

---Message handler for xpcall: message and traceback as one text.
---@param problem any
---@return string
function failure.handle(problem)
  if type(problem) ~= "string" then
    local meta = getmetatable(problem)
    if not (type(meta) == "table" and meta.__tostring) then
      problem = ("an error that is not a sentence but a %s"):format(type(problem))
    end
    problem = tostring(problem)
  end
  -- an error made for the user needs none of the library's frames; any other does
  local lines = frames(3, problem ~= schema.failure)
  if #lines == 0 then return problem end
  return problem .. "\ntraceback:\n" .. table.concat(lines, "\n")
end

return failure
