-- robustness: how much of its gain a trained robot keeps in simulations that differ a little from the one it was
-- trained in.
--
--   local report = cq.robustness(run)                  after run:optimize or run:load
--   local report = cq.robustness(cq.load "runs/walk", { objective = function(state, start) ... end })
--   print(report)
--   report:save(run:path "robustness.json")          -- the page of the run has it then
--
-- The gain of a run is by how much its loss is below its baseline. Kept is the gain in a changed simulation as a share
-- of that in the simulation that it was trained in. The baseline of a loss of the last state is the start, where no
-- control step has been made. A sum over control steps is 0 there whatever it counts: its baseline is the same body
-- without signals.
local atomic_file = require "cq.base.atomic_file"
local C = require("cq.base.engine").C
local changes = require "cq.robustness.changes"
local evaluate = require "cq.experiment.evaluate"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local method = require "cq.base.method"
local objectives = require "cq.experiment.objective"
local place = require "cq.base.place"
local quantile = require "cq.base.quantile"
local random = require "cq.random"
local text = require "cq.base.text"
local together = require "cq.experiment.together"
local T = require "cq.tensor"

---One change of the simulation, in robustness.rows.
---@class cq.Robustness.row
---@field name string          what is changed: "stiffness", ...
---@field change string        by how much, as "+5 %"
---@field size number          the same as a number
---@field loss number?         nil where the simulation failed
---@field kept number?         share of the gain
---@field problem string?      why it failed

---@class cq.Robustness
---@field run cq.Experiment    that was measured
---@field loss number          of the run, in the simulation that it was trained in
---@field best { loss: number, iteration: integer }?   what training found, if its best parameters were measured
---@field baseline number      what its gain is counted from
---@field baseline_of "start"|"no signals"   where that is measured
---@field rows cq.Robustness.row[]                       one change at a time
---@field missing { name: string, why: string }[]        what could not be changed
---@field draws { change: table<string, number>, loss: number?, kept: number?, problem: string? }[]   all at once
---@field median number?       kept, of the draws that did not fail
---@field worst number?        kept, of the same
---@field failed integer       rows and draws whose simulation failed
local Robustness = { __name = "cq.Robustness" }
Robustness.__index = Robustness

-- ---- simulations ----------------------------------------------------------------------------------------------------

-- Raises an error after Ctrl-C, which ends the measurement.
local function require_uninterrupted()
  if C.cq_interrupted() ~= 0 then is.fail("cq.robustness: interrupted") end
end

-- Calls f(...) and returns its result, or nil and the sentence by which a simulation failed. The unchanged simulation
-- succeeded, so the change is the cause: a body put into a wall, or a grid that the function of a level refuses. Errors
-- other than sentences, and Ctrl-C, pass through.
local function attempt(f, ...)
  local fine, found = pcall(f, ...)
  if fine then return found end
  if type(found) ~= "string" or C.cq_interrupted() ~= 0 then error(found, 0) end
  return nil, text.sentence(found)
end

-- The loss of a rollout as a number.
local function loss_of(run, roll) return (objectives.loss(run.objective, roll)):item() end

-- A list of the losses, numbers, of several rollouts simulated as one batch. runs: the experiment of each; defs: their
-- definitions, for together.rollouts.
local function losses_of(runs, defs)
  local rolls, whole = together.rollouts(defs)
  local out = {}
  local fine, problem = pcall(function()
    for k, roll in ipairs(rolls) do out[k] = loss_of(runs[k], roll) end
  end)
  whole:release()
  if not fine then error(problem, 0) end
  return out
end

-- Sets the loss of a changed simulation `one`, or the problem by which it failed. One whose loss is not finite has
-- failed too: nothing can be said of its gain.
local function finish(one, loss, problem)
  if loss and not (math.abs(loss) < math.huge) then
    loss, problem = nil, ("%s is %s"):format(one.loss_name or "the loss", text.number(loss))
  end
  one.loss, one.problem = loss, problem
end

-- Evaluates a changed simulation `one` of an experiment with several scenes: the mean of their losses.
local function mean_of_scenes(one)
  one.fields.steps = one.steps
  return one.run:evaluate(one.fields).loss
end

-- The rollout definition of a changed simulation `one` (see simulate), for together.groups.
local function define(one)
  one.fields.steps = one.steps
  return one.run:rollout_def(one.params, one.fields, one.policy)
end

-- The policy (observer and controller) of a changed simulation: the same objects for all simulations of one experiment
-- and body, so that these can share a batch. known: policies made so far.
local function policy_of(known, one)
  local key = one.fields.body or one.run
  known[key] = known[key] or one.run:policy(one.params, one.fields.body)
  return known[key]
end

---Runs simulations of an experiment, as many at once as share a world and its steps, and sets in each its loss, or the
---problem by which it failed.
---@param run cq.Experiment
---@param params table
---@param list { change: table, steps: integer?, seed: integer?, loss_name: string?, loss: number?, problem: string? }[]
local function simulate(run, params, list)
  local defs, numbers, policies = {}, {}, {}
  for _, one in ipairs(list) do
    require_uninterrupted()
    local made
    made, one.problem = attempt(function() return { changes.of(run, params, one.change, one.seed) } end)
    if made then one.run, one.params, one.fields = made[1], made[2], made[3] end
    if made and one.run.scenes then
      one.fields.params = one.params
      finish(one, attempt(mean_of_scenes, one))
    elseif made then
      one.policy = policy_of(policies, one)
      local def
      def, one.problem = attempt(define, one)
      if def then defs[#defs + 1], numbers[#numbers + 1] = def, one end
    end
  end
  for _, group in ipairs(together.groups(defs)) do
    require_uninterrupted()
    local members, runs = {}, {}
    for k, number in ipairs(group) do members[k], runs[k] = defs[number], numbers[number].run end
    local losses = attempt(losses_of, runs, members)
    for k, number in ipairs(group) do
      local one = numbers[number]
      if losses then
        finish(one, losses[k])
      else                          -- one of them failed: each alone tells which
        require_uninterrupted()
        local alone, problem = attempt(losses_of, { runs[k] }, { members[k] })
        finish(one, alone and alone[1], problem)
      end
    end
  end
end

-- ---- measuring ------------------------------------------------------------------------------------------------------

local of_signals = { strength = true, noise = true, latency = true }

-- The change of a simulation's baseline: `change` without the parts that do not matter to the baseline, and silent if
-- that is measured without signals; and a text by which simulations with an equal baseline find it.
local function baseline_change(self, change)
  local out, names = {}, {}
  for name, size in pairs(change) do
    if not of_signals[name] and not (self.baseline_of == "start" and name == "substeps") then
      out[name], names[#names + 1] = size, ("%s %.17g"):format(name, size)
    end
  end
  table.sort(names)
  out.silent = self.baseline_of == "no signals" or nil
  return out, table.concat(names, " ")
end

-- Simulates a list of rows { changes, seed? }, and for each its baseline (the start, or the body without signals) with
-- those of its changes that matter to it, once for equal ones. seed: of rows that have none. Replaces each row in the
-- list by the simulation { change, seed, row, baseline, loss, problem }.
local function measure(self, run, params, list, seed)
  local all, baselines = {}, {}
  for k, row in ipairs(list) do
    local change, key = baseline_change(self, row.changes)
    local one = { change = row.changes, seed = row.seed or seed, row = row }
    if not baselines[key] then
      baselines[key] = { change = change, steps = self.baseline_of == "start" and 0 or nil,
        loss_name = self.baseline_of == "start" and "the loss at the start" or "the loss without signals" }
      all[#all + 1] = baselines[key]
    end
    one.baseline = baselines[key]
    list[k], all[#all + 1] = one, one
  end
  T.tape.pause(simulate, run, params, all)
end

-- Completes the row of a measured simulation `one`: its loss, and kept, its gain over its baseline as a share of the
-- gain of the unchanged run; or its problem, counted in self.failed. On a finer grid also the cell size that it really
-- had.
local function complete_row(self, one)
  local row = one.row
  row.changes, row.seed = nil, nil
  row.problem = one.problem or one.baseline.problem
  if row.problem then self.failed = self.failed + 1 else
    row.loss, row.kept = one.loss, (one.baseline.loss - one.loss) / (self.baseline - self.loss)
  end
  local world = one.fields and one.fields.world
  if row.name == "grid" then
    row.change = world and world.refines and ("cells x%.3g, sampled anew"):format(world.dx / world.refines.dx)
      or row.change .. ", by its level"
  end
end

-- Appends a row to self.rows and to list for each kind of change and each of its sizes; notes in self.missing which
-- kinds do not apply to the run.
local function rows_of(self, run, list)
  for _, entry in ipairs(changes.list) do
    local why = entry.missing and entry.missing(run)
    if why then self.missing[#self.missing + 1] = { name = entry.name, why = why } end
    for _, size in ipairs(why and {} or entry.sizes) do
      local row = { name = entry.name, change = entry.says(size), size = size, changes = { [entry.name] = size } }
      self.rows[#self.rows + 1], list[#list + 1] = row, row
    end
  end
end

-- Is the change with this name noted as one that does not apply?
local function is_missing(self, name)
  for _, entry in ipairs(self.missing) do
    if entry.name == name then return true end
  end
  return false
end

-- Appends `count` random draws of all kinds of change at once to self.draws and to list.
local function draws_of(self, count, seed, list)
  local generator = random { seed = seed }
  -- Does the change with this name apply to the run?
  local function is_there(name) return not is_missing(self, name) end
  for k = 1, count do
    local change = changes.drawn(generator, is_there)
    local draw = { change = change, changes = change, seed = seed % 2 ^ 32 + k }
    self.draws[k], list[#list + 1] = draw, draw
  end
end

-- Sets self.worst and self.median: the shares of the gain that random draws keep.
local function sum_up(self)
  local kept = {}
  for _, draw in ipairs(self.draws) do kept[#kept + 1] = draw.kept end
  table.sort(kept)
  self.worst, self.median = kept[1], #kept > 0 and quantile.of(kept, 0.5) or nil
end

-- ---- experiments and artefacts --------------------------------------------------------------------------------------

-- A cq.Experiment made from a saved file and the user's objective. Errors: no objective.
local function experiment_of(saved, objective)
  if not objective then
    is.fail("cq.robustness: %s has no objective; give { objective = function(state, start) ... end }, the less the better",
      saved.path)
  end
  return require "cq.experiment" { world = require "cq.world"(saved.world), steps = saved.steps,
    observer = saved.observer, controller = saved.controller, weight = saved.data.weight, objective = objective }
end

-- How a run's loss and its baseline are told: with as many digits as it takes to tell them apart, `least` at least, or
-- four.
local function digits_for(a, b, least)
  for digits = least or 4, 16 do
    local form = ("%%.%dg"):format(digits)
    if a == b or form:format(a) ~= form:format(b) then return form end
  end
  return "%.17g"
end

---@class cq.robustness.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them
---@field draws? integer        simulations with all changes at once, drawn at random
---@field seed? integer         of draws and of noise
---@field objective? cq.Experiment.objective.def|fun(state: cq.State, start: cq.State): cq.Tensor   of a cq.Saved, whose file has none; the less
---  the better

local spec = is.define("cq.robustness", { params = evaluate.params_kind,
  draws = is.integer { min = 0, max = 1e6, default = 32 }, seed = is.integer { min = 0, max = 2 ^ 53, default = 0 },
  objective = is.any_of { is.table(), is.callable(), optional = true } })

---Measures how much of its gain a trained robot keeps when its stiffness (all moduli of its materials), its density,
---friction of walls, strength (a factor of all signals) and gravity are 5 and 10 % less and more; with 2 and 4 times
---the substeps; on a grid of 0.8 times the cell size, or as near to it as puts the ground on a node, with the bodies
---resampled (by the experiment's function of a level, if it has one); moved by half a cell; in the other precision;
---with noise of 5 % of a full signal; with signals that come one control step late; and with all of these drawn at
---once, but precision. All robots of the world are changed alike. Simulations that share a world and its steps are one
---batch. Makes about 60 rollouts and as many of their baselines, without gradients. A change that the run has nothing
---for, such as friction without walls or a finer grid for a body that cannot be sampled again, is not measured, with a
---reason. A change that the simulation cannot do, as half a cell into a wall, or whose loss is not finite, is reported
---as failed and left out.
---Errors: a run whose loss is not below its baseline, or is not finite; a file without an objective.
---@param run cq.Experiment|cq.Saved     after run:optimize or run:load; or of cq.load
---@param opts? cq.robustness.def
---@return cq.Robustness        its text is a table
local function robustness(_, run, opts)
  is.argument("cq.robustness", "run", is.any_of { is.instance "cq.Experiment", is.instance "cq.Saved" }, run)
  local def = spec(opts or {})
  local best = run.best
  if text.is_instance(run, "cq.Saved") then
    best = run.result
    run = experiment_of(run, def.objective)
  elseif def.objective then
    is.fail("cq.robustness: objective is for what cq.load gives; the experiment has its own")
  end
  local params = evaluate.params(run, def.params, "cq.robustness")
  local sums = (run.scenes and run:scene(1) or run).objective
  local self = setmetatable({ run = run, rows = {}, missing = {}, draws = {}, failed = 0,
    best = def.params == "best" and best and { loss = best.loss, iteration = best.iteration } or nil,
    baseline_of = (sums.running or sums.work) and "no signals" or "start" }, Robustness)
  local nominal, list = { changes = {} }, {}
  list[1] = nominal
  measure(self, run, params, list, def.seed)
  local one = list[1]
  if one.problem or one.baseline.problem then is.fail("cq.robustness: %s", one.problem or one.baseline.problem) end
  self.loss, self.baseline = one.loss, one.baseline.loss + 0        -- no -0
  if not (self.loss < self.baseline) then
    local form = digits_for(self.loss, self.baseline)
    is.fail("cq.robustness: the run has gained nothing that could be kept: its loss is %s and %s %s",
      form:format(self.loss), self.baseline_of == "start" and "that of its start" or "that without signals",
      form:format(self.baseline))
  end
  list = {}
  rows_of(self, run, list)
  draws_of(self, def.draws, def.seed, list)
  measure(self, run, params, list, def.seed)
  for _, measured in ipairs(list) do complete_row(self, measured) end
  sum_up(self)
  if self.failed > 0 then
    message.warn("cq.robustness: %s failed and %s left out", text.count(self.failed, "simulation"),
      self.failed == 1 and "is" or "are")
  end
  return self
end

-- ---- what it tells --------------------------------------------------------------------------------------------------

-- A kept share of the gain as text, in percent; "failed" for nil.
local function share(kept) return kept and ("%.0f %%"):format(100 * kept) or "failed" end

-- A kept share with the loss in brackets where that does not follow from it: without signals bodies differ, too.
local function told(self, row)
  if not row.kept or self.baseline_of ~= "no signals" then return share(row.kept) end
  return ("%s (" .. digits_for(self.loss, self.baseline, 3) .. ")"):format(share(row.kept), row.loss)
end

-- The report as a table of text: a line for each change, the draws, and what failed.
function Robustness:__tostring()
  local form = digits_for(self.loss, self.baseline)
  local lines = { ("loss %s, %s %s; kept of that gain%s"):format(form:format(self.loss), form:format(self.baseline),
    self.baseline_of == "start" and "at the start" or "without signals",
    self.baseline_of == "start" and "" or " (and the loss)") }
  local at = 1
  while at <= #self.rows do
    local name, cells = self.rows[at].name, {}
    while self.rows[at] and self.rows[at].name == name do
      cells[#cells + 1] = ("%s: %s"):format(self.rows[at].change, told(self, self.rows[at]))
      at = at + 1
    end
    lines[#lines + 1] = ("  %-10s %s"):format(name, table.concat(cells, "   "))
  end
  if #self.draws > 0 then
    local failed = 0
    for _, draw in ipairs(self.draws) do failed = failed + (draw.problem and 1 or 0) end
    lines[#lines + 1] = failed == #self.draws and ("  together   all %d draws failed"):format(failed)
      or ("  together   median %s, worst %s of %s%s"):format(share(self.median), share(self.worst),
        text.count(#self.draws - failed, "draw"), failed > 0 and ("; %d more failed"):format(failed) or "")
  end
  for _, entry in ipairs(self.missing) do
    lines[#lines + 1] = ("  %-10s not measured: %s"):format(entry.name, entry.why)
  end
  for _, row in ipairs(self.rows) do
    if row.problem then lines[#lines + 1] = ("%s %s failed: %s"):format(row.name, row.change, row.problem) end
  end
  for k, draw in ipairs(self.draws) do
    if draw.problem then lines[#lines + 1] = ("draw %d failed: %s"):format(k, draw.problem) end
  end
  return table.concat(lines, "\n")
end

---Writes all numbers as JSON. In a run's folder as robustness.json, `cqlua report` shows them; a name without a slash
---is in that folder.
---@param path string
---@return string path
function Robustness:save(path)
  path = place.of(is.argument("robustness:save", "path", is.string(), path), self.run)
  local out = { text = tostring(self), bars = require "cq.robustness.bars"(self) }
  for name, value in pairs(self) do
    if name ~= "run" then out[name] = value end
  end
  atomic_file.write(path, json.encode(out) .. "\n", { durable = true })
  return path
end

method.guard(Robustness, "robustness")

return setmetatable({ class = Robustness }, { __call = robustness })
