-- untrained: the result of run:optimize without training: under cqlua check, and where a finished run is only looked
-- at (cqlua study render). Scripts use it as they use that of a training.
local constraint = require "cq.optimizer.constraint"
local ensemble = require "cq.experiment.ensemble"
local extracted = require "cq.experiment.extracted"
local host = require "cq.host"
local levels = require "cq.experiment.levels"
local load = require "cq.load"
local saved_plan = require "cq.experiment.saved_plan"
local Run = require "cq.run"
local Solution = require "cq.optimizer.solution"
local stages = require "cq.experiment.stage"
local starts = require "cq.plan.starts"
local warm = require "cq.experiment.warm"
local T = require "cq.tensor"

local untrained = {}

-- Experiments that untrained.replay was given, by the full paths of their folders; the last one at "last".
local replayed = {}

-- The solution (cq.Solution) that a training would report of the point `best`; nil where run:optimize reports none.
local function solution_of(run, optimizer, best)
  if #run.constraints == 0 and optimizer.rule or not best.values then return nil end
  local point = { feasible = best.feasible ~= false, values = best.values, iteration = best.iteration }
  return Solution.new({ best = point, optimizer = optimizer, constraints = run.constraints,
    evaluations = best.iteration, state = function() return {} end }, point.feasible and "iterations" or "infeasible")
end

-- The table that run:optimize would return, from run.best and without training. rows: as saved_plan.rows.
local function result_of(run, plan, rows)
  local best, last = run.best, plan.stages[#plan.stages]
  return { loss = best.loss, best = best.loss, iterations = best.iteration,
    solution = solution_of(run, last.optimizer or run.base_optimizer, best), starts = rows }
end

-- The starts of a multi-start plan for the result under cqlua check: all with one loss, since only the first was
-- simulated; nil for a single start.
local function starts_of(run, plan, loss)
  local out, seed, kept = {}, saved_plan.first_seed(run), starts.kept(plan.starts)
  for k = 1, plan.starts and plan.starts.count or 1 do
    out[k] = { number = k, seed = seed + k - 1, best = { loss = loss }, dropped = k > kept }
  end
  return saved_plan.rows(out)
end

---The result of run:optimize under cqlua check: simulates a few control steps of each level, forward and backward, and
---sets run.best and run.body.
---@param run cq.Experiment
---@param plan cq.Plan
---@param folder? string
---@return table result
function untrained.check(run, plan, folder)
  Run.check_folder(folder)
  local seen, report = {}, nil
  for _, stage in ipairs(plan.stages) do
    local own = levels.of(run, stage.level)
    if not seen[own] then report = own:check() end
    seen[own] = true
  end
  run.best = { loss = report.loss, iteration = 0, params = T.leaves.snapshot(run.params) }
  if #run.constraints > 0 then
    local judged = constraint.judge(run.constraints, report.values)
    run.best.feasible, run.best.violation, run.best.values = judged.feasible, judged.worst, report.values
  end
  if plan.stages[#plan.stages].body ~= "soft" then run.body = extracted.result(run, run.params) end
  return result_of(run, plan, starts_of(run, plan, report.loss))
end

-- The starts of the training in a run's folder, as saved_plan.state has them; none where nothing is saved.
local function saved_starts(folder)
  local saved = Run.saved_in(folder)
  local state = saved and type(saved.optimizer) == "table" and saved.optimizer or {}
  return state.starts or {}
end

-- Gives the world of an experiment the substeps of the saved one, where a start of the training has come to these
-- because simulations failed with fewer. level: of the stage that is saved.
local function take_substeps(run, rows, data, level)
  local own, substeps = levels.of(run, level), data.world and data.world.fields.substeps
  for key, other in pairs(run.levels) do
    for _, start in ipairs(other == own and rows or {}) do
      if start.substeps and start.substeps[key] == substeps then return stages.set_substeps(own, substeps) end
    end
  end
end

---The result of run:optimize when a finished run is looked at again: sets the experiment to the state saved in the
---run's folder.
---@param run cq.Experiment
---@param plan cq.Plan
---@param folder? string
---@return table result
function untrained.replay(run, plan, folder)
  folder = folder or Run.default_folder()
  local data = load(folder).data
  local stage = data.stage
  if stage and run.problem then levels.become(run, stage.level) end
  local rows = saved_starts(folder)
  take_substeps(run, rows, data, stage and run.problem and stage.level or {})
  local saved = warm.load(run, folder)
  local number = stage and plan.number[stage.name]
  if number then run.ensemble = ensemble.of_stage(run, plan.stages[number]) end
  -- a folder of before there was saved.bin says nothing of it
  local found = saved.result or { loss = run:evaluate().loss, iteration = 0 }
  run.folder = folder
  run.best = { loss = found.loss, iteration = found.iteration, params = T.leaves.snapshot(run.params),
    values = found.values, feasible = found.feasible }
  replayed.last, replayed[host.resolve(folder)] = run, run
  return result_of(run, plan, saved_plan.rows(rows))
end

---The experiment that untrained.replay has set to the run in a folder; the last one without a folder. nil: there was
---none.
---@param folder? string
---@return cq.Experiment?
function untrained.replayed(folder) return replayed[folder and host.resolve(folder) or "last"] end

return untrained
