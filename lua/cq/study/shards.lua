-- shards: parts of a study that are worked on apart, each in a store of its own:
--
--   runs/NAME/shards/003-of-064.sqlite      trials 3, 67, 131, ...
--   runs/NAME/shards/003-of-064.json        how far it has come, written anew every few seconds
--
-- A part has one worker, which alone opens its file: so any disk will do, also one over a network. Others read the
-- JSON.
local host = require "cq.host"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local process = require "cq.study.process"
local stores = require "cq.study.store"

local shards = {}

local EVERY = 2              -- [s] between two states of a part
local SHORT = 2              -- [s] that the file of a part is waited for: its worker has it for long

---@class cq.Shard
---@field part integer
---@field of integer
---@field path string          of its store
---@field state string         of its JSON

---A part from what was typed, "3/64".
---@param desk cq.Desk
---@param typed string
---@return cq.Shard
function shards.of(desk, typed)
  local part, of = typed:match "^(%d+)/(%d+)$"
  part, of = tonumber(part), tonumber(of)
  if not part or part < 1 or part > of then
    require("cq.base.script").misuse("--shard is a part of all, from 1/4 to 4/4, got %s", typed)
  end
  local study = desk.study
  if study:adapts() or study.pruner then
    is.fail("parts (--shard, --launch) are of a study whose points are known before; %s: run it on one machine with --jobs, or on many with --store postgresql://user@host/database",
      study.pruner and "a pruner compares all trials"
        or ("the sampler \"%s\" draws by all results"):format(study.sampler))
  end
  local stem = ("%s/shards/%03d-of-%03d"):format(desk.folder, part, of)
  return { part = part, of = of, path = stem .. ".sqlite", state = stem .. ".json" }
end

---Opens the store of a part.
---@param desk cq.Desk
---@param shard cq.Shard
---@param def cq.Desk.begin.def
---@return cq.Store
function shards.begin(desk, shard, def)
  local made, problem = host.make_folder(desk.folder .. "/shards")
  if not made then is.fail("the folder %s/shards cannot be made: %s", desk.folder, tostring(problem)) end
  -- one who starts a part by hand takes back that all were to stop
  if not require("cq.study.launch").is_launched() then os.remove(shards.stop_path(desk)) end
  def.path, def.exclusive, def.patience = shard.path, true, SHORT
  def.keep = function(number) return (number - 1) % shard.of + 1 == shard.part end
  return desk:begin(def)
end

---Where the word to stop is left for the workers of all parts: nobody else can open their stores.
---@param desk cq.Desk
---@return string
function shards.stop_path(desk) return desk.folder .. "/shards/stop" end

---What a runner calls now and then: keeps the state of the part where others can read it.
---@param desk cq.Desk
---@param store cq.Store
---@param shard cq.Shard
---@return fun(last: boolean?): boolean?     true when the worker shall stop
function shards.teller(desk, store, shard)
  local told, worker, study = 0, process.name(), desk.study
  return function(last)
    local now = process.now()
    if now - told < EVERY and not last then return end
    told = now
    local best = store:best(study.repeats)
    local line = json.encode { part = shard.part, of = shard.of, counts = store:counts(), best = best, worker = worker,
      told = now,
      over = last and true or nil }
    local part = shard.state .. ".part"
    local file = io.open(part, "w")
    if file and file:write(line, "\n") and file:close() then os.rename(part, shard.state) end
    return host.kind(shards.stop_path(desk)) ~= nil
  end
end

local function listed(desk, ending)
  local out = {}
  for _, name in ipairs(host.entries(desk.folder .. "/shards") or {}) do
    if name:match "^%d+%-of%-%d+%." and name:sub(-#ending) == ending then out[#out + 1] = desk.folder .. "/shards/"
      .. name end
  end
  table.sort(out)
  return out
end

---States of all parts, in order.
---@param desk cq.Desk
---@return table[]
function shards.states(desk)
  local out = {}
  for _, path in ipairs(listed(desk, ".json")) do
    local file = io.open(path)
    local line = file and file:read "*l"
    if file then file:close() end
    local fine, state = pcall(json.decode, line or "")
    if fine then out[#out + 1] = state end
  end
  table.sort(out, function(a, b) return a.of == b.of and a.part < b.part or a.of < b.of end)
  return out
end

-- ---- merging --------------------------------------------------------------------------------------------------------

local copied = { "number", "state", "point", "attempts", "worker", "began", "beat", "ended", "result", "problem",
  "step", "value" }
local ENDED = "state IN ('done', 'failed', 'pruned', 'lost')"

-- what a part has ended, into the whole; a trial that is done there already stays
local function copy(whole, part)
  local count, marks = 0, ("?, "):rep(#copied)
  for _, row in ipairs(part.base:rows("SELECT * FROM trial WHERE " .. ENDED .. " ORDER BY number")) do
    if whole.base:value("SELECT state FROM trial WHERE number = ?", row.number) ~= "done" then
      local values = {}
      for k, name in ipairs(copied) do values[k] = row[name] end
      whole.base:run(("INSERT OR REPLACE INTO trial (%s, serial) VALUES (%s(SELECT coalesce(max(serial), 0) + 1 FROM "
        .. "trial))")
        :format(table.concat(copied, ", "), marks), unpack(values, 1, #copied))
      whole.base:run("DELETE FROM report WHERE trial = ?", row.number)
      for _, one in ipairs(part.base:rows("SELECT name, step, value FROM report WHERE trial = ?", row.number)) do
        whole.base:run("INSERT INTO report (trial, name, step, value) VALUES (?, ?, ?, ?)", row.number, one.name,
          one.step, one.value)
      end
      count = count + 1
    end
  end
  return count
end

---Joins all parts into the study's own store; parts that are at work can be joined later.
---@param desk cq.Desk
---@param go_on? boolean       the script was changed since
---@return integer trials, integer parts, integer left_out
function shards.merge(desk, go_on)
  local paths = listed(desk, ".sqlite")
  if #paths == 0 then is.fail("there is nothing to merge: %s/shards holds no part of the study", desk.folder) end
  local whole = desk:begin { go_on = go_on, exclusive = desk:is_networked() }
  local trials, left_out = 0, 0
  for _, path in ipairs(paths) do
    local fine, problem = pcall(function()
      local part = stores.open(path, { exclusive = true, patience = 0.2 })
      local changes = desk.study:changes(part:definition() or {})
      if #changes > 0 then is.fail("%s is a part of another study: %s", path, table.concat(changes, "; ")) end
      trials = trials + whole.base:transaction(function() return copy(whole, part) end)
      part:close()
    end)
    if not fine and not tostring(problem):find("locked by another", 1, true) then error(problem, 0) end
    if not fine then
      left_out = left_out + 1
      message.note("%s is at work and was left out; merge again when it is done", path)
    end
  end
  whole:close()
  return trials, #paths, left_out
end

return shards
