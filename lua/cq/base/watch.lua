-- watch: whether the script, or a file that it has loaded, was changed on disk while it trains (--watch). A version
-- that is not valid Lua causes a warning and is not loaded.
local C = require("cq.base.engine").C
local message = require "cq.base.message"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"

local watch = {}

local PERIOD = 0.1           -- [s] between two looks
local texts, looked = {}, 0  -- by path, as they were loaded or refused
---@type table<string, string>   by path, as they were loaded
watch.loaded = {}

---@type boolean             a new version waits to be loaded
watch.wanted = false
---@type boolean             the script that runs has taken the place of another
watch.reloaded = false

-- A list of the paths of the script and of the files that it has loaded.
local function paths()
  local out = script.paths()
  table.insert(out, 1, script.path)
  return out
end

---Begins to watch the script's files for changes: their present text counts as unchanged.
function watch.begin()
  watch.wanted, looked = false, C.cq_clock()
  texts, watch.loaded = {}, {}
  for _, path in ipairs(paths()) do texts[path], watch.loaded[path] = read_file(path), read_file(path) end
end

---Must the script be loaded again, because a changed file that is valid Lua was saved? Reads the files at most every
---PERIOD seconds, and warns of one that is no Lua.
---@return boolean
function watch.wants()
  if not option.program.watch or watch.wanted then return watch.wanted end
  local now = C.cq_clock()
  if now - looked < PERIOD then return false end
  looked = now
  for _, path in ipairs(paths()) do
    local text = read_file(path)
    -- an editor may have emptied it for a moment
    if text and text ~= "" and text ~= texts[path] then
      local is_new = texts[path] ~= nil
      texts[path], watch.loaded[path] = text, watch.loaded[path] or text
      local fine, problem = loadstring(text, "@" .. path)
      if fine and is_new then watch.wanted = true end
      if not fine then message.warn("%s; the training goes on as it was", problem) end
    end
  end
  return watch.wanted
end

return watch
