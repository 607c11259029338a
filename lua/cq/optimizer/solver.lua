-- solver: the part of optimizer:solve that all methods share. It evaluates the user's function at the present
-- parameters, judges constraints, keeps the best point, writes the history, and knows when to stop. A method calls it:
--
--   while solver:goes_on() do
--     local values, grads = solver:evaluate(plan)      -- counts, judges, keeps
--     ...                                              -- changes solver.params
--     solver:note { gradient = norm }                  -- the line of the history
--   end
local C = require("cq.base.engine").C
local is = require "cq.base.schema"
local T = require "cq.tensor"
local message = require "cq.base.message"
local pause = require "cq.run.pause"
local signature = require "cq.run.signature"
local text = require "cq.base.text"
local constraint = require "cq.optimizer.constraint"
local gradient = require "cq.tensor.gradient"
local Solution = require "cq.optimizer.solution"

---@class cq.Solver
---@field params any                      changed by the method between evaluations
---@field constraints cq.Constraint[]
---@field iterations integer              evaluations at most
---@field evaluations integer             made, those before a resume included
---@field stage string                    "violation": the objective does not count; "objective"
---@field best table?                     { values, judged, iteration, params, feasible }
---@field verdict "converged"|"stopped"|nil   why it ended before its iterations were made
---@field status string?                  how it has ended, once it has
---@field run cq.Run?                     that the history is written to
local Solver = {}
Solver.__index = Solver

local solver = {}

-- ---- evaluation -----------------------------------------------------------------------------------------------------

-- Raises an error if the values of f lack the objective or a constraint, or have the name of another column of the
-- history.
local function check_names(self, values)
  local what = self.what
  if values.objective == nil then is.fail("%s: f must give a number named objective", what) end
  for name in pairs(values) do
    if constraint.reserved[name] then
      is.fail("%s: f gives a number named %s, which the history has already; give it another name", what, name)
    end
  end
  for _, c in ipairs(self.constraints) do
    if values[c.name] == nil then
      local known = T.leaves.sorted_keys(values)
      is.fail("%s: f gives no number named %s, which a constraint asks for%s; it gives %s", what, c.name,
        text.suggestion(c.name, known), table.concat(known, ", "))
    end
  end
end

-- Warns of violated constraints that depend on no parameter, and prints a note on kept ones. No error: they may depend
-- on some in a later evaluation. reached: true by the names of values that depend on a parameter.
local function tell_unreached(self, values, judged, reached)
  for k, c in ipairs(self.constraints) do
    local told = constraint.text(c, values[c.name])
    if not reached[c.name] and judged[k] > c.tolerance then
      message.warn("%s: no parameter reaches the constraint %s, and no optimizer can change it; compute it from what is "
        .. "trained, as tensors (t:item() is a number without a gradient), or leave it out", self.what, told)
    elseif not reached[c.name] then
      message.note("%s: no parameter reaches the constraint %s, and training cannot change it", self.what, told)
    end
  end
end

-- Is one evaluation better than another? A feasible one beats an infeasible one, then the lower objective; of
-- infeasible ones the lower worst violation, then the lower sum, then the lower objective: a stage may train nothing
-- that its constraints depend on.
local function is_better(one, other)
  if not other then return true end
  if one.feasible ~= other.feasible then return one.feasible end
  if one.feasible then return one.values.objective < other.values.objective end
  if one.judged.worst ~= other.judged.worst then return one.judged.worst < other.judged.worst end
  local sum, least = one.judged.all or 0, other.judged.all or 0
  if sum ~= least then return sum < least end
  return one.values.objective < other.values.objective
end

-- Keeps the parameters of an evaluation in self.best if it is the best (is_better).
local function keep_best(self, values, judged)
  local point = { values = values, judged = judged, feasible = judged.feasible, iteration = self.evaluations + 1 }
  if not is_better(point, self.best) then return end
  point.params = T.leaves.snapshot(self.all)
  local observer = self.experiment and self.experiment.observer
  point.learned = observer and observer.learned and observer:learned()
  self.best = point
end

-- Begins the next stage of a solve, "done" after the last, once all constraints are kept in "violation".
local function next_stage(self, judged)
  if self.stage ~= "violation" or not judged.feasible then return end
  self.stage_at = self.stage_at + 1
  self.stage = self.minimize[self.stage_at] or "done"
end

-- Does the solve end here? After Ctrl-C it asks the user whether to go on.
local function stops(self)
  local run = self.experiment
  return pause.stops { iteration = self.evaluations, run = self.run, globals = { run = run or self.run,
    params = self.all, gradient = self.grads, world = run and run.world },
    save = self.run and self.best and function() self:save() end }
end

-- The function `run` of the parameters; where it fails, the experiment's observer forgets the pictures that it
-- collected meanwhile, since the evaluation is made again. self.experiment may lack.
local function undone_if_failed(self, run)
  local observer = self.experiment and self.experiment.observer
  if not (observer and observer.end_evaluation) then return run end
  -- Passes on the results of pcall, or raises its error.
  local function finish(fine, ...)
    observer:end_evaluation(not fine)
    if fine then return ... end
    error((...), 0)
  end
  return function(params)
    observer:begin_evaluation()
    return finish(pcall(run, params))
  end
end

-- Calls run(params) and returns its values by name, the gradients of each pass, and the user's further results. One
-- that Ctrl-C interrupted is repeated when the user continues. Errors of the user's function pass through.
local function evaluate_with(self, run)
  run = undone_if_failed(self, run)
  while true do
    local fine, values, grads, more = pcall(function()
      if self.recover then return self.recover:evaluate(run, self.params) end
      return run(self.params)
    end)
    if fine then return values, grads, more end
    if C.cq_interrupted() == 0 or stops(self) then error(values, 0) end
  end
end

---Runs f at the present parameters, then one backward pass for each entry of the list that plan returns. Keeps the best
---point, and counts the evaluation. Errors: missing or reserved names of values; those of f.
---@param plan fun(values: table<string, number>, judged: table): table[]   weights by name, see gradient.passes
---@return table<string, number> values, any[] grads, table judged
function Solver:evaluate(plan)
  local judged, found
  self.began = C.cq_clock()
  local run = self.evaluator(self.what, function(values, _, reached)
    check_names(self, values)
    judged = constraint.judge(self.constraints, values)
    found = reached
    next_stage(self, judged)
    return plan(values, judged)
  end)
  local values, grads, more = evaluate_with(self, run)
  self.grads = grads
  if self.finish then self.finish(more) end
  keep_best(self, values, judged)
  self.evaluations, self.values, self.judged = self.evaluations + 1, values, judged
  if not self.reach_told then tell_unreached(self, values, judged, found) end
  self.reach_told = true
  return values, grads, judged
end

---Writes the last evaluation with its values into the history, calls on_iteration, and saves when it is time.
---@param fields table<string, number>    more columns
function Solver:note(fields)
  local values, row = self.values, {}
  for name, value in pairs(values) do row[name] = value end
  for name, value in pairs(fields) do row[name] = value end
  for _, more in ipairs { self.recover and self.recover.told or {}, self.more and self.more() or {} } do
    for name, value in pairs(more) do row[name] = value end
  end
  row.objective, row.iteration, row.loss = nil, self.evaluations, values.objective
  row.seconds = C.cq_clock() - self.began
  self.noted, self.telling = self.evaluations, true
  if self.run then self.run:record(row) end
  if self.on_iteration then self.on_iteration(self.evaluations, values, self.params) end
  self.telling = false
  -- a log of many points may be large
  local run = self.run
  if run and (run:keeps(self.noted) or C.cq_clock() - run.saved_at >= math.max(5, 20 * (self.saving or 0))) then
    self:save()
  end
end

---Will limits or f change in a later evaluation? Then nothing has converged yet.
---@return boolean
function Solver:is_changing() return self.changing ~= nil and self.changing(self.evaluations) end

---Is there another evaluation? Not after the last iteration, the last stage, Ctrl-C, or where self.halts says so.
---@return boolean
function Solver:goes_on()
  return self.evaluations < self.iterations and self.stage ~= "done" and not stops(self)
    and not (self.halts and self.halts())
end

-- ---- going on later -------------------------------------------------------------------------------------------------

-- Parameters as a table, which cq.save needs: a tensor that stands alone becomes { tensor }.
local function boxed(params) return T.is_tensor(params) and { params } or params end

-- Names and kinds of the constraints as one text in a fixed order, by which saved multipliers are matched.
local function kinds_of(constraints)
  local out = {}
  for k, c in ipairs(constraints) do out[k] = ("%s (%s)"):format(c.name, c.equal and "equal" or "at_most") end
  table.sort(out)
  return #out > 0 and table.concat(out, ", ") or "none"
end

-- Raises an error if the saved state is of another optimizer, of other constraints, or of another problem by its
-- signature.
local function require_same(self, saved)
  local made = type(saved) == "table" and saved.optimizer
  local kind, wanted = type(made) == "table" and made.kind, self.optimizer.kind
  if kind and kind ~= wanted then
    is.fail("%s: the state is of cq.Optimizer.%s, this is cq.Optimizer.%s", self.what, tostring(kind), wanted)
  end
  local problem = is.problem(solver.saved_fields, saved)
  if problem then is.fail("%s: the state was not made by optimizer:solve: %s", self.what, problem) end
  local before, now = saved.constraints, kinds_of(self.constraints)
  if before and before ~= now then
    is.fail("%s: the constraints were %s, and are %s; go on with the same ones, or start anew", self.what, before, now)
  end
  if not self.checked then
    signature.check(saved.signature, self.signature, self.what .. (self.run and ": " .. self.run.folder or ""))
  end
end

-- Restores a solve from its saved state: parameters, optimizer, best point and stage. Errors: a state of another solve.
local function restore(self, saved)
  require_same(self, saved)
  T.leaves.load(boxed(self.all), saved.params, self.what)
  self.optimizer:restore(saved.optimizer)
  self.evaluations, self.best, self.stage_at = saved.evaluations, saved.best, saved.stage
  self.stage = self.minimize[self.stage_at] or "done"
  if self.recover then self.recover.before = saved.before end
end

solver.saved_fields = {
  evaluations = is.integer { min = 0 }, params = is.table(), optimizer = is.table(),
  best = is.table { optional = true },
  stage = is.integer { min = 1 }, before = is.table { optional = true },
  -- states of before have none
  constraints = is.string { optional = true }, signature = is.table { optional = true },
  status = is.string { optional = true },
}

---All that is needed to go on, for cq.save.
---@return table
function Solver:state()
  return {
    evaluations = self.evaluations, params = T.leaves.snapshot(boxed(self.all)), optimizer = self.optimizer:state(),
    best = self.best, constraints = kinds_of(self.constraints), signature = self.signature,
    stage = self.stage_at, before = self.recover and self.recover.before, status = self.status,
  }
end

-- Writes the best parameters, with values and loss, the objective without values.passive_cost, to saved.bin, which
-- cq.load reads.
local function write_best(self)
  local best = self.best
  local loss = best.values.objective - (best.values.passive_cost or 0)
  local number = self.run.number and self.run:number(best.iteration) or best.iteration
  require("cq.saved.run").write(self.run, { loss = loss, iteration = number,
    params = boxed(best.params), values = best.values, feasible = best.feasible, learned = best.learned },
    self.experiment)
end

---Saves parameters and state into the folder of the run, and the best point where this process leads.
function Solver:save()
  local began, state = C.cq_clock(), self:state()
  self.run:save(self.noted, state.params, state)
  if self.best and (not self.run.leads or self.run:leads()) then write_best(self) end
  self.saving = C.cq_clock() - began
end

-- ---- solving --------------------------------------------------------------------------------------------------------

---@class cq.Solver.def
---@field optimizer cq.Optimizer
---@field params any
---@field all? any               params and what else belongs to a point: kept and saved with it; params unless given
---@field f? fun(params: any): table<string, cq.Tensor|number>, ...   or evaluator
---@field evaluator? fun(what: string, plan: function): fun(params: any): table<string, number>, any[], ...   as
---  gradient.passes gives; that of f unless given
---@field constraints cq.Constraint[]
---@field iterations integer
---@field minimize string[]
---@field on_iteration? function
---@field what string           for errors
---@field run? cq.Run           that is open
---@field experiment? cq.Experiment   whose best is kept in the folder of the run with all that it was found in
---@field saved? table          to go on from
---@field signature cq.Signature         what saved must have been made with
---@field checked? boolean       that it was is known
---@field changing? fun(evaluations: integer): boolean   will f or the limits be others than in the last evaluation?
---@field recover? cq.Recover   evaluates, and may change params to what can be
---@field halts? fun(): boolean  ends it before its iterations are made
---@field strict? boolean        every evaluation must reach every parameter, and not the first one alone
---@field more? fun(): table<string, number>   columns of the history beside those of the method
---@field finish? function       called with what else f gives, after each evaluation

-- How many trainable numbers the parameters have. Errors: none.
local function count_of(params)
  local count = 0
  for _, leaf in ipairs(T.leaves.trainable(params, "optimizer:solve")) do count = count + leaf.tensor.count end
  return count
end

---A solver of one problem, made of `def` itself, which it keeps and changes. Goes on from `saved`; else it restarts the
---optimizer. Errors: a saved state of another problem.
---@param def cq.Solver.def
---@return cq.Solver
function solver.new(def)
  local saved = def.saved
  local self = setmetatable(def, Solver)
  self.all = self.all or self.params
  self.evaluations, self.noted, self.stage_at, self.stage = 0, 0, 1, self.minimize[1]
  self.evaluator = self.evaluator or function(what, plan) return gradient.passes(what, self.f, plan) end
  if saved then
    restore(self, saved)
    self.noted = self.evaluations
  else
    self.optimizer:restart()
  end
  if self.optimizer.check_size then self.optimizer:check_size(count_of(self.params)) end
  return self
end

-- Saves what there is, then raises the error that ended a solve, with the iteration in its message. An iteration whose
-- step failed was not made: a run that goes on repeats it.
local function fail_evaluation(self, problem)
  self.evaluations = self.noted
  local saved = self.run and pcall(self.save, self)
  if saved and self.best then
    message.note("kept in %s: the parameters after iteration %d, and the best, of iteration %d, in saved.bin",
      self.run.folder, self.noted,
      self.best.iteration)
  end
  if type(problem) == "string" then
    problem = is.with_more(problem, " (iteration %d of %d)", self.telling and self.noted or self.noted + 1,
      self.iterations)
  end
  error(problem, 0)
end

-- How a solve ended: "interrupted", "infeasible", the optimizer's verdict, or "iterations".
local function status_of(self)
  if C.cq_interrupted() ~= 0 then return "interrupted" end
  if not self.best.feasible then return "infeasible" end
  return self.verdict or "iterations"
end

---Lets the optimizer minimise to its end, and saves. Errors: those of an evaluation; no evaluation was made.
---@return cq.Solution
function Solver:solve()
  local fine, verdict = pcall(self.optimizer.minimise, self.optimizer, self)
  if not fine and C.cq_interrupted() == 0 then fail_evaluation(self, verdict) end
  if not self.best then
    if C.cq_interrupted() ~= 0 then is.fail("%s: interrupted before the first evaluation was made", self.what) end
    is.fail("%s: no evaluation was made, for iterations is %d; give 1 or more, each is an evaluation", self.what,
      self.iterations)
  end
  self.verdict = fine and verdict or self.stage == "done" and "converged" or nil
  self.status = status_of(self)
  if self.run then self:save() end
  return Solution.new(self, self.status)
end

---The solution of a solver that was made from the state of a solve that has ended; no evaluation is made.
---@param saved table          the state
---@return cq.Solution
function Solver:found(saved)
  return Solution.new(self, saved.status or self.best.feasible and "iterations" or "infeasible")
end

return solver
