-- summary: a run's options, losses and times from its folder; of a running one, those so far.
local History = require "cq.run.history"
local folders = require "cq.run.folder"
local host = require "cq.host"
local is = require "cq.base.schema"
local loads = require "cq.load"
local manifests = require "cq.run.manifest"
local message = require "cq.base.message"
local read_file = require "cq.base.read_file"
local saved_runs = require "cq.saved.run"

local summary = {}

-- The result in a run's saved.bin { loss, iteration, ... } and the name of its stage; nil of a learner, which has saved
-- its last policy there and not its best, and where there is none. Warns of a file that cannot be read.
local function saved_result(folder)
  if not host.kind(folder .. "/" .. saved_runs.name) then return nil end
  local fine, saved = pcall(loads, folder)
  if not fine and not is.is_failure(saved) then error(saved, 0) end
  if not fine then
    message.warn("%s; the best of %s is that of the least loss in its history.csv",
      saved:gsub("^[^:]*:%d+: ", ""):gsub("^cq%.load: ", ""), folder)
  end
  if not fine or saved_runs.is_learned(saved.data) then return nil end
  return saved.result, saved.data.stage and saved.data.stage.name
end

-- The best result of a run, { loss, iteration as in its history }: that of saved.bin, by the run's own rule for stages,
-- starts and constraints. Of a learner, and of a run without saved.bin, whose script makes its loop itself, the row of
-- the least loss; nil if no row has a loss that is a number.
local function best_of(folder, rows)
  local best
  local result, stage = saved_result(folder)
  for _, row in ipairs(rows) do
    local loss = row.loss
    if result then
      -- the iteration in saved.bin of an earlier program is counted within its stage and start
      local is_it = loss and loss - (row.passive_cost or 0) == result.loss and (not row.stage or row.stage == stage)
      if is_it then return { loss = result.loss, iteration = row.iteration } end
    elseif loss and loss == loss and (not best or loss < best.loss) then
      best = row
    end
  end
  return result or best
end

-- The status of a run whose manifest has none, as it has not ended, or was killed.
local function status_of(folder, manifest)
  if not manifest.started then return "not begun" end            -- a fork
  return folders.is_locked(folder) and "at work" or "killed"
end

---@class cq.run.Summary
---@field folder string
---@field manifest table
---@field rows table<string, number|string>[]   of history.csv
---@field best { loss: number, iteration: integer }?     loss and iteration of the best result
---@field last table?            the last row
---@field status string          "at work" while it goes on, "killed" where it has ended and could not say how
---@field seconds number?        of all its sessions; nil while it goes on
---@field script string?         its text

---Reads a run's options, losses and times from its folder, and whether it is still at work. Errors: those of
---manifest.read; a history that no run has written. Warns of a saved.bin that cannot be read.
---@param folder string
---@param what string           for errors
---@return cq.run.Summary
function summary.of(folder, what)
  folder = folder:gsub("(.)/+$", "%1")
  local manifest = manifests.read(folder, what)
  local path = folder .. "/history.csv"
  local rows = host.kind(path) and History.rows(path) or {}
  return { folder = folder, manifest = manifest, rows = rows, best = best_of(folder, rows), last = rows[#rows],
    status = manifest.status or status_of(folder, manifest), seconds = manifests.seconds(manifest),
    script = read_file(folder .. "/script.lua") }
end

return summary
