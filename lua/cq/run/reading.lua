-- reading: what lies in a run's folder, as all ranks read it: the folder may be on the disk of the first one alone.
local checkpoint = require "cq.run.checkpoint"
local host = require "cq.host"
local migrate = require "cq.saved.migrate"
local saved_runs = require "cq.saved.run"
local schema = require "cq.base.schema"
local tensor = require "cq.tensor"

local is = schema

local reading = {}

---The cq.Ranks that share this training; nil: none do.
---@return cq.Ranks?
function reading.ranks()
  local Ranks = package.loaded["cq.ranks"]
  return Ranks and Ranks.current()
end

---A path at which this rank can read a file, and whether that is a temporary copy, to be removed; nil: there is no such
---file.
---@param path string
---@return string? found, boolean is_copy
function reading.file(path)
  local ranks = reading.ranks()
  local found = ranks and ranks:fetch(path) or not ranks and host.kind(path) and path or nil
  return found, found ~= path
end

local saved_fields = {
  iteration = is.integer { min = 0 }, params = is.table(), optimizer = is.any { optional = true },
}

---Why a value is no state that a run has saved, as text; nil: it is one.
---@param state any
---@return string?
function reading.problem(state) return schema.problem(saved_fields, state) end

-- Has a folder a saved.bin whose parameters --from takes? That of a learner has a policy alone, which none does.
local function has_best(folder)
  local fine, saved = pcall(tensor.load, folder .. "/" .. saved_runs.name)
  return fine and not saved_runs.is_learned(saved)
end

---The state in a folder from which a run can be resumed, on all ranks; nil: there is none. Errors: a file that no run
---has saved.
---@param folder string
---@param name? string        of the file, optimizer.bin unless given
---@return { iteration: integer, params: table, optimizer: any }?
function reading.state(folder, name)
  local path = folder .. "/" .. (name or "optimizer.bin")
  local found, is_copy = reading.file(path)
  if not found then return nil end
  local fine, saved = pcall(tensor.load, found)
  if is_copy then os.remove(found) end
  if not fine and not schema.is_failure(saved) then error(saved, 0) end
  local problem = not fine and saved:gsub("^[^:]*:%d+: ", "") or reading.problem(saved)
  if problem then
    local kept = checkpoint.list(folder)
    schema.fail("%s is not what a run has saved: %s; start without --resume%s", path, problem, #kept > 0
      and (", or go on from an iteration that was kept: cqlua resume %s --at %d --as FOLDER"):format(folder, kept[#kept])
      or has_best(folder) and (", or from its best parameters: --from %s --out FOLDER"):format(folder)
      or "")
  end
  migrate.training(saved.optimizer)
  return saved
end

return reading
