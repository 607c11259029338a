-- saved_plan: the saved state of a plan, and the checks of a plan that resumes from it.
local host = require "cq.host"
local is = require "cq.base.schema"
local levels = require "cq.experiment.levels"
local manifests = require "cq.run.manifest"
local option = require "cq.option"
local signature = require "cq.run.signature"
local signature_of = require "cq.experiment.signature"
local text = require "cq.base.text"
local words = require "cq.plan.words"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

local saved_plan = {}

-- ---- what is saved --------------------------------------------------------------------------------------------------

---For each stage of a plan its fields as words and numbers by name, to compare two plans.
---@param run cq.Experiment      the user's
---@param plan cq.Plan
---@return table<string, string>[]
function saved_plan.records(run, plan)
  local out = {}
  for k, stage in ipairs(plan.stages) do out[k] = words.record(stage, stage.optimizer or run.base_optimizer) end
  return out
end

-- The history of a training, a list of rows, as tensors {rows} by column, for saving; NaN where a row lacks a column.
local function packed(history)
  local lists, out = {}, {}
  for k, row in ipairs(history) do
    for name, value in pairs(row) do
      if not lists[name] then
        lists[name] = {}
        for i = 1, #history do lists[name][i] = 0 / 0 end
      end
      lists[name][k] = value
    end
  end
  for name, list in pairs(lists) do out[name] = T.tensor(list) end
  return out
end

-- A list of rows from columns of numbers by name; the inverse of `packed`.
local function unpacked(columns)
  local out = {}
  for name, column in pairs(columns or {}) do
    for k, value in ipairs(column:totable()) do
      out[k] = out[k] or {}
      if value == value then out[k][name] = value end
    end
  end
  return out
end

local kept = { "number", "seed", "stage", "made", "before", "over", "ended", "dropped", "params", "best", "solver",
  "first", "substeps" }

-- The reduction of starts in a multi-start plan as text, to see whether it changed: how many starts go on, and after
-- which stages and iterations. most: how many cuts are told; all unless given.
local function tournament_of(plan, most)
  local starts = plan.starts
  if not starts or starts.count == 1 then return "none" end
  local list, count = {}, starts.count
  for k, cut in ipairs(starts.cuts) do
    if k > (most or k) then break end
    list[k] = ("%d of %d after %s%s"):format(cut.keep, count, plan.stages[cut.at].name,
      cut.iteration and (", iteration %d"):format(cut.iteration) or "")
    count = cut.keep
  end
  return table.concat(list, ", ")
end

---The seed of the first start of a multi-start plan: --seed, the design's or 0; each further start has the next seed.
---@param run cq.Experiment
---@return integer
function saved_plan.first_seed(run) return option.program.seed or run.design and run.design.seed or 0 end

---The starts of a multi-start plan for the result of run:optimize: number, seed, least loss (nil before the first
---iteration), and whether it was kept when starts were dropped. nil for a single start.
---@param starts table[]          of a training, or of its saved state
---@return { start: integer, seed: integer, loss: number?, kept: boolean }[]?
function saved_plan.rows(starts)
  local out = {}
  for k, start in ipairs(starts) do
    out[k] = { start = start.number, seed = start.seed, loss = start.best and start.best.loss,
      kept = not start.dropped }
  end
  return #out > 1 and out or nil
end

-- The states of the observers that learn, by the levels (grids of a plan) whose function has made each its own; nil
-- where all levels have the same one.
local function observers_of(run)
  local out, differ = {}, false
  for key, own in pairs(run.levels or {}) do
    local observer = own.observer
    differ = differ or observer ~= run.observer
    out[key] = observer and observer.state and observer:state() or nil
  end
  return differ and next(out) and out or nil
end

---Restores what the observers of a training had learned. state: of saved_plan.state.
---@param run cq.Experiment
---@param state table
function saved_plan.restore_observers(run, state)
  -- Restores one observer, where something was saved of it.
  local function restore(observer, saved)
    if saved and observer and observer.restore then observer:restore(saved) end
  end
  if not state.observers then return restore(run.observer, state.observer) end
  for key, own in pairs(run.levels) do restore(own.observer, state.observers[key]) end
end

---The state of a training for Run:save: the records of its stages, its starts (of a multi-start plan), and the state of
---observers that learn.
---@param training cq.Training
---@return table
function saved_plan.state(training)
  local starts = {}
  for k, start in ipairs(training.starts) do
    starts[k] = {}
    for _, name in ipairs(kept) do starts[k][name] = start[name] end
    starts[k].history = packed(start.history or {})
  end
  local observer = training.run.observer
  return { plan = training.records, starts = starts, tournament = tournament_of(training.plan),
    observer = observer and observer.state and observer:state() or nil, observers = observers_of(training.run),
    first = training.is_given and training.first or nil }
end

-- Is a finished stage open again, because it has more iterations than before or another criterion to stop? Not if all
-- its iterations are made. before, now: its saved and its present record (words.record).
local function begins_again(start, before, now)
  if not (before and now) or start.made >= tonumber(now.iterations) then return false end
  return tonumber(before.iterations) < tonumber(now.iterations) or before.stop ~= now.stop
end

---The starts (of a multi-start plan) of a saved training, with their histories unpacked. A finished stage of a start is
---open again if the present plan has more iterations of it, or another criterion to stop.
---@param state table                         from saved_plan.state
---@param records table<string, string>[]     of the present plan
---@return table[]
function saved_plan.starts(state, records)
  local out = {}
  for k, saved in ipairs(state.starts) do
    local start = tables.merged(saved)
    start.history = unpacked(saved.history)
    local before, now = state.plan[start.stage], records[start.stage]
    if begins_again(start, before, now) then start.over, start.ended = false, false end
    out[k] = start
  end
  return out
end

-- ---- what goes on ---------------------------------------------------------------------------------------------------

local saved_fields = { plan = is.table(), starts = is.table(), tournament = is.string { optional = true },
  first = is.table { optional = true } }
local start_fields = { number = is.integer { min = 1 }, stage = is.integer { min = 0 }, made = is.integer { min = 0 },
  before = is.integer { min = 0, optional = true },
  history = is.table(), best = is.table { optional = true }, params = is.table { optional = true },
  solver = is.table { optional = true }, substeps = is.table { optional = true } }

---Raises an error if a file holds no state that run:optimize has saved.
---@param state any
---@param path string
function saved_plan.check_file(state, path)
  local problem = is.problem(saved_fields, state)
  for _, start in ipairs(problem and {} or state.starts) do problem = problem or is.problem(start_fields, start) end
  if problem then is.fail("run:optimize: %s was not saved by run:optimize: %s", path, problem) end
end

-- How many cuts of a multi-start plan are made in a saved run, of which `alive` starts go on: the last behind which a
-- start is, or by which the starts have become as few.
local function cuts_made(plan, starts, alive)
  local made, cut = 0, 0
  for _, part in ipairs(plan:parts()) do
    cut = cut + (part.keep and 1 or 0)
    local is_made = part.keep and alive < #starts and alive <= part.keep
    for _, start in ipairs(part.keep and starts or {}) do
      is_made = is_made or start.stage > part.stage or start.stage == part.stage and start.made > part.last
    end
    if is_made then made = cut end
  end
  return made
end

-- Raises an error if the number of starts of a multi-start plan has changed, or how it is reduced where that is done in
-- the saved run: dropped starts cannot come back. where: the beginning of the error's sentence.
local function check_tournament(plan, state, starts, where)
  local count, before, alive = plan.starts and plan.starts.count or 1, state.tournament, #starts
  if #starts ~= count then
    is.fail("%s: the plan had %s, and has %d; go on with as many, or start anew", where, text.count(#starts, "start"),
      count)
  end
  for _, start in ipairs(starts) do alive = alive - (start.dropped and 1 or 0) end
  local made = cuts_made(plan, starts, alive)
  local now, wanted = tournament_of(plan, made), made > 0 and plan.starts.cuts[made].keep or #starts
  if not before or before == tournament_of(plan) then return end
  local is_same = made == 0 or before == now or before:sub(1, #now) == now and before:find("^, %d", #now + 1) ~= nil
  if not is_same or alive ~= wanted then
    is.fail("%s: the starts that go on were %s, and are %s; that is over, go on with the same ones, or start anew",
      where, before, tournament_of(plan))
  end
end

-- Advice, the end of an error's sentence, for a finished stage k that has changed: how to make it again.
local function way_out(folder, plan, k)
  local before = k > 1 and ("%s/stages/%s/state.bin"):format(folder, plan.stages[k - 1].name)
  return before and host.kind(before) and ("begin it anew (from = %q)"):format(plan.stages[k].name) or "start anew"
end

-- Has any start of a multi-start plan that was not dropped finished stage k?
local function is_made(starts, k)
  for _, start in ipairs(starts) do
    if not start.dropped and (start.stage > k or start.stage == k and (start.over or start.ended)) then return true end
  end
  return false
end

-- Raises an error if a finished stage has changed, or the name of one that has begun. Optimizer settings of the running
-- stage may change (check_problem); later stages may change freely. Those that a fork has asked for hold from the stage
-- in which it began, which may be made by now. records: of the present plan.
local function check_records(plan, state, starts, records, folder)
  local at, where, parent = 0, "run:optimize: " .. folder, (manifests.of(folder) or {}).parent or {}
  for _, start in ipairs(starts) do at = math.max(at, start.stage) end
  for k = 1, at do
    local before, now = state.plan[k], records[k]
    if not now then
      is.fail("%s: the run has made %d stages of its plan, and this plan has %d; go on with the same ones, or start anew",
        where, at, #records)
    end
    if before.name ~= now.name then
      is.fail("%s: stage %d was %q and is %q; go on with the same stages, or start anew", where, k, before.name,
        now.name)
    end
    -- the last one may have been asked for more iterations than it will have
    local others = tables.merged(now)
    if k == at then others.iterations = before.iterations end
    for name in pairs(parent.set or {}) do others[name] = before[name] end
    local changes = is_made(starts, k) and signature.changes(before, others) or ""
    if changes ~= "" then
      is.fail("%s: stage %q is made, and was another: %s; go on with the same one, %sor %s", where, now.name, changes,
        k == at and "or with more --iterations, " or "", way_out(folder, plan, k))
    end
  end
end

-- Raises an error if the saved state of a running stage is of another optimizer or another problem.
local function check_problem(run, plan, starts, folder)
  local seen = {}
  for _, start in ipairs(starts) do
    local stage, solver = plan.stages[start.stage], start.solver
    if solver and not start.dropped and not seen[stage] then
      seen[stage] = true
      local optimizer = stage.optimizer or run.base_optimizer
      if solver.optimizer.kind ~= optimizer.kind then
        is.fail("run:optimize: %s is of cq.Optimizer.%s, this is cq.Optimizer.%s", folder .. "/optimizer.bin",
          tostring(solver.optimizer.kind), optimizer.kind)
      end
      signature.check(solver.signature, signature_of(levels.of(run, stage.level), stage, optimizer), "run:optimize: "
        .. folder, folder)
    end
  end
end

---Index of the first stage that no start has finished; of the last one if all are.
---@param run cq.Experiment
---@param plan cq.Plan
---@param state table            as saved_plan.state gives it
---@return integer number
function saved_plan.next_stage(run, plan, state)
  local starts, at = saved_plan.starts(state, saved_plan.records(run, plan)), 1
  for _, start in ipairs(starts) do at = math.max(at, start.stage) end
  return math.min(is_made(starts, at) and at + 1 or at, #plan.stages)
end

---Raises an error if a saved run cannot be resumed by the plan: its tournament, a finished stage or the problem has
---changed. Changes nothing.
---@param run cq.Experiment      the user's
---@param plan cq.Plan
---@param saved table            as Run.saved_in gives it
---@param folder string
function saved_plan.check(run, plan, saved, folder)
  local state, records = saved.optimizer, saved_plan.records(run, plan)
  local starts = saved_plan.starts(state, records)
  check_tournament(plan, state, starts, "run:optimize: " .. folder)
  check_records(plan, state, starts, records, folder)
  check_problem(run, plan, starts, folder)
end

---The file in a run's folder from which a stage of its plan can be repeated: the state at the end of the stage before.
---Errors: no such stage, or the first one.
---@param plan cq.Plan
---@param name string            of the stage
---@return string file
---@return string before         name of the stage before
function saved_plan.file_before(plan, name)
  local number = plan.number[name]
  if not number then
    local names = {}
    for k, stage in ipairs(plan.stages) do names[k] = stage.name end
    is.fail("run:optimize: from: there is no stage %q%s; stages are %s", name, text.suggestion(name, names),
      table.concat(names, ", "))
  elseif number == 1 then
    is.fail("run:optimize: from: %q is the first stage; start without from, and without --resume", name)
  end
  local before = plan.stages[number - 1].name
  return ("stages/%s/state.bin"):format(before), before
end

return saved_plan
