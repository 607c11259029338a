-- stage: a stage of a plan, for one start: what is free in it, what its iterations have of their own, and when it ends.
local is = require "cq.base.schema"
local message = require "cq.base.message"
local text = require "cq.base.text"
local T = require "cq.tensor"
local constraint = require "cq.optimizer.constraint"
local ensemble = require "cq.experiment.ensemble"
local extracted = require "cq.experiment.extracted"
local flight = require "cq.experiment.flight"
local gradient = require "cq.tensor.gradient"
local gradients = require "cq.experiment.gradient"
local levels = require "cq.experiment.levels"
local numbers = require "cq.experiment.numbers"
local options = require "cq.experiment.options"
local passive = require "cq.experiment.passive"
local predicates = require "cq.base.predicate"
local recover = require "cq.experiment.recover"
local scenes = require "cq.experiment.scenes"
local signature_of = require "cq.experiment.signature"
local solve = require "cq.optimizer.solve"
local smoothing = require "cq.experiment.smoothing"
local solver = require "cq.optimizer.solver"

---@class cq.Stage
---@field stage cq.Plan.stage.def
---@field run cq.Experiment        that of its level
---@field free table               the part of its parameters that is trained
---@field history table[]          { iteration =, loss =, NAME = } of its iterations
---@field solver cq.Solver?
local Stage = {}
Stage.__index = Stage

-- iterations of a training after which a design that moves no more than by falling has learned nothing else
local LEARNED = 20

local stages = {}

-- ---- what is free ---------------------------------------------------------------------------------------------------

local of_pulses = { ["design.sign"] = true, ["design.magnitude"] = true }
local of_body = { ["design.density"] = true, ["design.layout"] = true }

-- Is a parameter not trained in a stage without `train`? With an extracted body, density and layout of the design are
-- not; in other stages of a design, the controller that is added to its pulses.
local function is_left_out(run, stage, path)
  if stage.body == "extracted" then return of_body[path] end
  return run.own_design and path:match "^controller%." ~= nil
end

-- Is a parameter (path, as "controller.layers[1].w") meant by an entry of a stage's `train`, as "controller"?
local function is_named(path, name)
  if name == "design.pulses" then return of_pulses[path] or false end
  local next_one = path:sub(#name + 1, #name + 1)
  return path:sub(1, #name) == name and (next_one == "" or next_one == "." or next_one == "[")
end

-- The parameters that a stage trains, in the nesting of run.params. Errors: a name in `train` that fits none, or the
-- design of an extracted body.
local function free_of(stage, run)
  local all, chosen, used = T.leaves.trainable(run.params, "run:optimize"), {}, {}
  for _, leaf in ipairs(all) do
    local is_free = not stage.train and not is_left_out(run, stage, leaf.path)
    for k, name in ipairs(stage.train or {}) do
      if is_named(leaf.path, name) then is_free, used[k] = true, true end
    end
    if is_free and stage.body == "extracted" and of_body[leaf.path] then
      is.fail("run:optimize: stage %q: train: %s cannot be trained, the body is extracted from it", stage.name, leaf.path)
    end
    if is_free then chosen[leaf.tensor] = true end
  end
  for k, name in ipairs(stage.train or {}) do
    if not used[k] then
      local known = {}
      for i, leaf in ipairs(all) do known[i] = leaf.path end
      is.fail("run:optimize: stage %q: train: there is no %s%s; trainable are %s", stage.name, text.describe(name),
        text.suggestion(name, known), table.concat(known, ", "))
    end
  end
  return T.leaves.map(run.params, function(tensor) return chosen[tensor] and tensor or nil end)
end

-- ---- the body -------------------------------------------------------------------------------------------------------

---Raises an error if a stage does not fit the experiment of its level.
---@param stage cq.Plan.stage.def
---@param run cq.Experiment
---@param is_first boolean      of the plan: its body and its options are those of now, as its variants need them
function stages.check(stage, run, is_first)
  local what, optimizer = ("run:optimize: stage %q"):format(stage.name), stage.optimizer or run.base_optimizer
  if stage.body ~= "soft" and not run.own_design then
    is.fail("%s: a %s body is that of a design, and the experiment has none", what, stage.body)
  end
  options.check(stage, run, optimizer)
  scenes.check_options(run, stage.options, what)
  local own = ensemble.of_stage(run, stage)
  ensemble.check(run, own, optimizer, what)
  solve.check(optimizer, run.constraints, { stage.minimize }, what, stage.optimizer
    and ", as optimizer of the stage, of cq.Plan or of cq.Plan.topology")
  free_of(stage, run)
  ensemble.check_list(run, own, is_first and stage.body == "soft" and stage.iterations > 0,
    stage.variants and stage.name)
end

-- Sets up the stage's body, soft, binary or extracted: run.design or run.extracted.
local function set_body(self)
  local stage, run = self.stage, self.run
  run.extracted = nil
  if run.own_design then run.design = options.with_body(run.own_design, stage.body) end
  self.design = run.design
  if stage.body == "extracted" then
    -- what the options say of the design is part of what is extracted
    options.show(self, 1)
    run.extracted, run.in_stage.cut = run.design:extract(run.params.design), run.in_stage.options
    self.values = nil
  end
end

---Begins a stage, or resumes it: sets the parameters, options and body of its experiment, and forgets run.best.
---@param stage cq.Plan.stage.def
---@param run cq.Experiment           the user's
---@param made? { params: table, solver: table? }   what a run that goes on has saved; or
---@param from? { run: cq.Experiment, params: table }    those that it begins with, of the experiment that they are of
---@return cq.Stage
function stages.new(stage, run, made, from)
  local own = levels.of(run, stage.level)
  options.begin(own, stage)
  own.ensemble = ensemble.of_stage(own, stage)
  own.best, own.run = nil, run.run
  own.optimizer = stage.optimizer or run.base_optimizer
  if made then
    T.leaves.load(own.params, made.params, "run:optimize: " .. run.run:path "optimizer.bin")
  elseif from then
    levels.transfer(from.run, from.params, own)
    if from.learned then own.observer:take(from.learned) end
  end
  local self = setmetatable({ stage = stage, run = own, history = {} }, Stage)
  set_body(self)
  self.free = free_of(stage, own)
  gradients.warn(own, stage)
  return self
end

---Puts an experiment, whose parameters were loaded before, into the body and the options of the saved stage that they
---are from, so that it can be evaluated and drawn. Training begins without them.
---@param run cq.Experiment
---@param saved { name: string, level: table, body: string, options: table, cut: table? }   cut: those by which the body
---  was extracted
function stages.restore(run, saved)
  local stage = { name = saved.name, level = saved.level, body = run.own_design and saved.body or "soft",
    iterations = 1, options = options.fitting(saved.cut or saved.options, run) }
  options.begin(run, stage)
  local self = setmetatable({ stage = stage, run = run, history = {} }, Stage)
  set_body(self)
  stage.options = options.fitting(saved.options, run)
  options.show(self, 1)
  run.body = stage.body ~= "soft" and extracted.result(run, run.params) or nil
end

-- ---- when it ends ---------------------------------------------------------------------------------------------------

-- The number by which a stage compares iterations, from a row of its history: loss or violation; infinite where
-- constraints that must hold do not.
local function measure(self, row)
  if self.stage.minimize == "violation" then return row.violation end
  return (row.violation or 0) > 0 and math.huge or row.loss
end

-- The least `measure` of iterations `first` to `last` of a stage.
local function least(self, first, last)
  local out = math.huge
  for k = first, last do out = math.min(out, measure(self, self.history[k])) end
  return out
end

-- The first of the iterations whose losses can be compared with the last one's: since then no option and no recovery
-- has changed the problem.
local function first_alike(self)
  for k = #self.history, 1, -1 do
    if self.history[k].another_problem then return k end
  end
  return 1
end

-- Has the stage reached its criterion to stop: a loss, no more progress, or the user's function?
local function is_over(self)
  local stop, history = self.stage.stop, self.history
  if not stop or #history == 0 then return false end
  if text.is_callable(stop) then
    return predicates.read(stop(history), ("run:optimize: stage %q: stop"):format(self.stage.name))
  end
  if stop.below and measure(self, history[#history]) < stop.below then return true end
  local before, first = #history - (stop.stalled or math.huge), first_alike(self)
  if before < first then return false end
  local then_, now = least(self, first, before), least(self, first, #history)
  return then_ - now <= stop.change * math.abs(now)
end

-- ---- its iterations -------------------------------------------------------------------------------------------------

-- Forgets the best so far, whose loss is of another problem than those from this iteration on.
local function another_problem(self)
  self.solver.best, self.run.best, self.is_another = nil, nil, 1
end

-- The evaluator of this stage for its optimizer, a function (what, plan): `what` names the caller in errors, `plan`
-- gives the weights of each backward pass (gradient.passes). It returns a function of the parameters that simulates and
-- returns values, gradients and the rollout; it forgets the best so far where options make it another problem.
local function evaluator_of(self)
  local run = self.run
  return function(what, plan)
    -- A function of the parameters that simulates and gives values, gradients and the rollout by a plan of backward
    -- passes: of all scenes together, or of the one experiment.
    local function passes(own_plan)
      return run.scenes and scenes.passes(run, own_plan, function(scene) return numbers(scene, run.params) end)
        or gradient.passes(what, function() return numbers(run, run.params) end, own_plan)
    end
    return function(params)
      run.iteration = self.solver.evaluations + 1
      if options.set(self, run.iteration) then another_problem(self) end
      self.growth:clear()
      local values, grads, roll
      if run.gradient.smooth then
        values, grads, roll, self.weight = smoothing.passes(run.gradient, run.iteration, plan, passes)(params)
      else
        values, grads, roll = passes(plan)(params)
      end
      return values, grads, roll
    end
  end
end

-- Columns of the history about the gradient, numbers by name: the adjoint's growth, and the weight of the first-order
-- estimate. Warns of growth.
local function columns_of(self)
  local out = self.growth:columns(self.run)
  self.growth:warn(self.run, self.solver.evaluations, out)
  out.first_order_weight = self.weight
  return out
end

-- Makes the stage's best point the experiment's best (run.best), whose loss is without the passive cost.
local function take_best(self)
  local best, run = self.solver.best, self.run
  if not best or run.best and run.best.stage_iteration == best.iteration then return end
  local cost = best.values.passive_cost
  run.best = { loss = best.values.objective - (cost or 0), passive_cost = cost,
    iteration = self.number(best.iteration), stage_iteration = best.iteration, params = best.params,
    learned = best.learned }
  if #run.constraints > 0 then
    run.best.feasible, run.best.values, run.best.violation = best.feasible, best.values, best.judged.worst
  end
end

-- Multiplies the substeps of an experiment by a factor, but to no more than `most` times those it began with; returns
-- the new number, nil at that limit. Without a factor, sets them to `most` again, after attempts that did not help.
local function refine(run, factor, most)
  if not factor then return stages.set_substeps(run, most) end
  run.first_substeps = run.first_substeps or run.world.substeps
  local substeps = run.world.substeps * factor
  if substeps > most * run.first_substeps then return nil end
  stages.set_substeps(run, substeps)
  return substeps
end

---Sets the substeps of an experiment's world and of its extracted body's; run.first_substeps keeps the first number.
---@param run cq.Experiment
---@param substeps integer
function stages.set_substeps(run, substeps)
  run.first_substeps = run.first_substeps or run.world.substeps
  run.world.first_substeps = run.world.first_substeps or run.first_substeps
  if substeps ~= run.world.substeps then run.block_losses = {} end
  run.world:set_substeps(substeps)
  if run.extracted then run.extracted.world:set_substeps(substeps) end
end

-- After iteration i of a stage: appends a row of loss, constraints and violation to its history, sets run.best if it is
-- the best, and calls the user's on_iteration. values: objective, constraints and other numbers of the iteration by
-- name.
local function note(self, i, values, on_iteration)
  local run, row = self.run, { iteration = i, loss = values.objective }
  for name, value in pairs(values) do
    if name ~= "objective" then row[name] = value end
  end
  if #run.constraints > 0 then row.violation = constraint.judge(run.constraints, values).worst end
  row.another_problem, self.is_another = self.is_another, nil
  self.history[i] = row
  run.made, run.loss_last = i, values.objective
  take_best(self)
  if on_iteration then on_iteration(i, values.objective, run) end
end

---@class cq.Stage.def
---@field last integer            iteration of the stage up to which it is made
---@field saved? table            of the solver, to go on from
---@field folder table            takes the place of a cq.Run: record, save, path, saved_at
---@field is_first boolean        the stage is the first of its plan
---@field on_iteration? fun(iteration: integer, loss: number, run: cq.Experiment)

-- Runs the stage's iterations by its optimizer, with its constraints and its recovery from failed simulations. Returns
-- the solution (cq.Solution). def: cq.Stage.def.
local function optimize(self, def)
  local run, stage = self.run, self.stage
  local chooses = run.optimizer.chooses_points
  self.growth = gradients.new_growth()
  -- After each backward pass: notes how much the adjoint of the state has grown.
  function run.on_reversed(roll) self.growth:add(roll) end
  self.solver = solver.new {
    optimizer = run.optimizer, params = self.free, all = run.params, constraints = run.constraints,
    iterations = def.last, minimize = { stage.minimize },
    signature = signature_of(run, stage, run.optimizer), what = "run:optimize", run = def.folder, experiment = run,
    saved = def.saved,
    strict = true, checked = true, evaluator = evaluator_of(self),
    on_iteration = function(i, values) note(self, i, values, def.on_iteration) end,
    changing = function(i) return options.is_changing(self, i) end,
    halts = function() return is_over(self) end,
    more = function() return columns_of(self) end,
    finish = not run.scenes and function(roll) roll:release() end or nil,
    recover = stage.recover and not chooses and recover.new(stage.recover, function(factor, most)
      return refine(run, factor, most)
    end, function() return run.world.substeps end) or nil,
  }
  if self.solver.recover then
    -- From now on losses are of another number of substeps.
    function self.solver.recover.changed() another_problem(self) end
    -- Restarts the run's optimizer, or the one inside it.
    function self.solver.recover.restart()
      local inner = run.optimizer.inner
      if type(inner) ~= "table" then inner = run.optimizer end
      inner:restart()
    end
  end
  take_best(self)
  if self.solver.evaluations > 0 then options.set(self, self.solver.evaluations) end
  local before = self.solver.evaluations
  ensemble.begin(run.ensemble, def.is_first)
  local solution = self.solver:solve()
  take_best(self)
  ensemble.tell_left_out(run.ensemble, self.solver.evaluations - before)
  return solution
end

-- Loss and constraints of the present parameters, numbers by name; of an ensemble those over the variants of the first
-- iteration.
local function values_of(run)
  if not run.ensemble then return run:evaluate { params = "last" } end
  run.iteration = 1
  return T.tape.pause(function()
    local found, rolls = ensemble.numbers(run, run.params)
    rolls:release()
    local out = { loss = found.objective:item() }
    for _, c in ipairs(run.constraints) do out[c.name] = found[c.name]:item() end
    return out
  end)
end

-- The counterpart of `optimize` for a stage of no iterations: evaluates its initial values as run.best.
local function evaluate(self)
  local run = self.run
  options.set(self, 1)
  local values = values_of(run)
  run.best = { loss = values.loss, iteration = self.number(0), stage_iteration = 0,
    params = T.leaves.snapshot(run.params) }
  if #run.constraints == 0 then return end
  local judged = constraint.judge(run.constraints, values)
  run.best.feasible, run.best.violation, run.best.values = judged.feasible, judged.worst, { objective = values.loss }
  for _, c in ipairs(run.constraints) do run.best.values[c.name] = values[c.name] end
end

---Runs iterations up to def.last, or until the stage stops. A failed simulation is recorded in the run's folder.
---@param def cq.Stage.def
---@return cq.Solution?      nil: the stage has no iterations
function Stage:optimize(def)
  -- another stage may have the same optimizer, and has the same constraints
  local restore = options.keep(self.run)
  -- The number of an iteration of the stage among all of the run, as in history.csv.
  function self.number(i) return def.folder:number(i) end
  local fine, solution = pcall(def.last > 0 and optimize or evaluate, self, def)
  self.run.on_reversed = nil
  if not fine then flight.record(def.folder, self.run, solution) end
  restore()
  if not fine then error(solution, 0) end
  return solution
end

---Did the stage stop before its last iteration?
---@return boolean
function Stage:is_over() return is_over(self) or self.solver ~= nil and self.solver.verdict ~= nil end

-- What a design that gains without any signal is paid for, and the remedy, by the objective and options of its stage.
local function advice_on_rest(run, stage)
  local objective, weight = run.objective, stage.options.passive_weight
  local charge = weight and weight ~= 0 and "a larger options.passive_weight" or "options.passive_weight = 1"
  if objective.running or not objective.terminal then
    return ("the design is paid for what it does by itself, as falling over; %s of the stage charges this"):format(charge)
  end
  return ("the design is paid for where its particles are, and not for how they move; measure from the start of the rollout, as start:center(robot) in objective.terminal gives it, or let %s of the stage charge this"):format(charge)
end

---Warns if a design has most of its gain in loss without any signal: the objective then rewards where its particles
---are, or a motion that needs no signals, as a fall.
---@param first number         loss at the first iteration of the training
---@param made integer         iterations of the training so far
function Stage:warn_of_rest(first, made)
  local run, best = self.run, self.run.best
  if not (run.own_design and best) or run.scenes or made < LEARNED then return end
  local fine, loss = pcall(T.tape.pause, function()
    local loss, roll = passive.loss(run, best.params)
    roll:release()
    return loss:item()
  end)
  local reached = best.loss + (best.passive_cost or 0)
  local gained = first - reached
  if fine and gained > 0 and first - loss > 0.5 * gained then
    message.warn("stage %q: of the loss, which fell from %.4g to %.4g, %.0f %% is there without any signal: %s",
      self.stage.name, first, reached, 100 * math.min(1, (first - loss) / gained), advice_on_rest(run, self.stage))
  end
end

return stages
