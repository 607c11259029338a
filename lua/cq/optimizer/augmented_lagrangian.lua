-- augmented_lagrangian: constraints for first-order optimizers. An inner loop minimises the objective with a term for
-- each constraint until it makes no more progress; then multipliers and penalties change, and the next one begins.
--
-- With c = value - limit, multiplier l and penalty t of a constraint, its term and the weight w = d term / d value are
--   shifted     at most: (t max(0, c + l / t)^2 - l^2 / t) / 2, w = max(0, l + t c)
--               equal:   l c + t c^2 / 2, w = l + t c
--   violation   l P + t P^2 / 2, w = l + t P, with the violation P = max(0, c) or |c|; 0 where P is 0
-- Sources: Nocedal and Wright, Numerical Optimization, chapter 17; Yuhn et al., 4D topology optimization, CMAME (2023),
-- eqs. 30, 31 and algorithm 1, whose kappa is -l.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local gradient = require "cq.tensor.gradient"
local constraint = require "cq.optimizer.constraint"
local tables = require "cq.base.tables"

local OUTWEIGHS = 10     -- times the objective's gradient: a term that pulls as much leaves the objective no say

---An augmented Lagrangian, from cq.Optimizer.augmented_lagrangian.
---@class cq.AugmentedLagrangian : cq.Optimizer
---@field inner cq.Optimizer
---@field multipliers table<string, number>   by the name of the constraint
---@field penalties table<string, number>
---@field loops integer                       inner loops ended
---@field chosen table<string, boolean>        penalties that were chosen here, and have not grown since
---@field rate number                         of the inner optimizer at first
local AugmentedLagrangian = { __name = "cq.AugmentedLagrangian", __is = { ["cq.Optimizer"] = true } }
AugmentedLagrangian.__index = AugmentedLagrangian

-- ---- the Lagrangian -------------------------------------------------------------------------------------------------

-- Term of the augmented Lagrangian, and its derivative by the constraint's value. Squares are products: ^ has other
-- last bits once LuaJIT compiles it. value: of the constraint c.
local function term_of(self, c, value)
  local l, t, gap = self.multipliers[c.name], self.penalties[c.name], value - c.limit
  if self.form == "violation" then
    local violation = constraint.violation(c, value)
    if violation == 0 then return 0, 0 end
    local weight = l + t * violation
    return l * violation + t / 2 * violation * violation, gap < 0 and -weight or weight
  end
  if c.equal then return l * gap + t / 2 * gap * gap, l + t * gap end
  local weight = math.max(0, l + t * gap)
  return (weight * weight - l * l) / (2 * t), weight
end

-- The augmented Lagrangian, a number, for the present values by name, and a table of its derivatives by the objective
-- and each constraint: the weights of their gradients. In the stage "violation" the objective's is 0.
local function lagrangian_of(self, solver, values)
  local factor = solver.stage == "objective" and 1 or 0
  local sum, weights = factor * values.objective, { objective = factor }
  for _, c in ipairs(solver.constraints) do
    local term, weight = term_of(self, c, values[c.name])
    sum, weights[c.name] = sum + term, weight
  end
  return sum, weights
end

-- ---- evaluation ---------------------------------------------------------------------------------------------------

-- The length of all gradients, tensors in nested tables, together.
local function norm_of(grads)
  local sum = 0
  for _, leaf in ipairs(T.leaves.list(grads)) do sum = sum + leaf.tensor:square():sum():item() end
  return math.sqrt(sum)
end

-- Sets the initial multiplier (0), penalty and violation of a constraint, unless it has them.
local function begin(self, c, penalty, violation)
  if self.penalties[c.name] then return end
  self.multipliers[c.name], self.penalties[c.name], self.before[c.name] = 0, math.min(penalty, self.penalty_max),
    violation
end

-- Is there a constraint that has no penalty yet?
local function is_new(self, constraints)
  for _, c in ipairs(constraints) do
    if not self.penalties[c.name] then return true end
  end
  return false
end

-- The initial penalty at which a constraint's term, at this violation, has a gradient as long as the objective's
-- (Birgin and Martinez balance values: Practical Augmented Lagrangian Methods, 2014, 12.4). 1 where either gradient is
-- zero. norms: lengths of gradients by name.
local function balanced(norms, c, violation)
  local pull = norms[c.name] * violation
  return pull > 0 and (norms.objective > 0 and norms.objective or 1) / pull or 1
end

-- Sets initial penalties by norms, the lengths of the gradients by name, and clears self.doubted. A penalty chosen
-- where the constraint had almost no gradient is far too large later: it is reduced once its term outweighs the
-- objective, its multiplier becomes 0, and the inner optimizer restarts.
local function choose_penalties(self, solver, norms)
  for k, c in ipairs(solver.constraints) do
    local name, violation = c.name, solver.judged[k]
    if not self.penalties[name] then
      begin(self, c, balanced(norms, c, violation > 0 and violation or c.scale), violation)
      self.chosen[name] = true
    elseif norms.objective > 0 and (self.doubted[name] or 0) * norms[name] > OUTWEIGHS * norms.objective then
      local penalty = balanced(norms, c, math.max(violation, c.scale))
      if penalty < self.penalties[name] then
        self.penalties[name], self.multipliers[name], self.before[name] = penalty, 0, violation
        self.inner:restart()
      end
    end
  end
  self.largest, self.doubted = math.max(self.largest, norms.objective), {}
end

-- Finds constraints whose penalty was chosen here and may be too large. If this gradient of the Lagrangian is much
-- longer than the objective's, notes in self.doubted the present weight of each such constraint: the next evaluation
-- then measures the gradient of each number alone (choose_penalties).
local function doubt(self, solver, grads)
  if self.largest == 0 or not next(self.chosen) or norm_of(grads) <= OUTWEIGHS * self.largest then return end
  for _, c in ipairs(solver.constraints) do
    local _, weight = term_of(self, c, solver.values[c.name])
    if self.chosen[c.name] and weight ~= 0 then self.doubted[c.name] = math.abs(weight) end
  end
end

-- Evaluates with a gradient of each number alone, and chooses the penalties by their norms. Returns the Lagrangian and
-- its gradient.
local function evaluate_each(self, solver)
  local names = { "objective" }
  for _, c in ipairs(solver.constraints) do names[#names + 1] = c.name end
  local values, grads = solver:evaluate(function()
    local passes = { whole = true }
    for k, name in ipairs(names) do passes[k] = { [name] = 1 } end
    return passes
  end)
  local by_name, norms = {}, {}
  for k, name in ipairs(names) do by_name[name], norms[name] = grads[k], norm_of(grads[k]) end
  choose_penalties(self, solver, norms)
  local sum, weights = lagrangian_of(self, solver, values)
  return sum, gradient.weighted_sum(solver.params, by_name, weights)
end

-- Evaluates with one backward pass of the Lagrangian, in which constraints that are new begin with self.penalty;
-- returns it and its gradient. whole: also through terms of weight 0, which finds parameters without influence.
local function evaluate(self, solver, whole)
  local sum
  local _, grads = solver:evaluate(function(values, judged)
    local weights
    for k, c in ipairs(solver.constraints) do begin(self, c, self.penalty, judged[k]) end
    sum, weights = lagrangian_of(self, solver, values)
    for name, weight in pairs(weights) do
      if weight == 0 and not whole then weights[name] = nil end
    end
    -- no weight at all: nothing pulls, and the gradient is zero
    return { next(weights) and weights or { objective = 0 }, whole = whole }
  end)
  return sum, grads[1]
end

-- ---- between inner loops --------------------------------------------------------------------------------------------

-- The mean of a list's entries `from` to `to`.
local function mean(list, from, to)
  local sum = 0
  for i = from, to do sum = sum + list[i] end
  return sum / (to - from + 1)
end

-- Appends the Lagrangian to self.seen and the values of constraints to self.recent, from which the end of an inner loop
-- is judged.
local function see(self, solver, lagrangian)
  self.seen[#self.seen + 1] = lagrangian
  for _, c in ipairs(solver.constraints) do
    local list = self.recent[c.name] or {}
    self.recent[c.name], list[#list + 1] = list, solver.values[c.name]
  end
end

-- Has the inner loop made its inner_iterations, or no progress between its last two windows of self.seen, so that
-- multipliers can be updated?
local function is_settled(self)
  local seen, w = self.seen, self.window
  if #seen >= (self.inner_iterations or math.huge) then return true end
  if #seen < 2 * w then return false end
  local now, before = mean(seen, #seen - w + 1, #seen), mean(seen, #seen - 2 * w + 1, #seen - w)
  return math.abs(now - before) <= self.tolerance * math.abs(before)
end

-- How far a constraint is from where it should be: its violation, or its slack where its multiplier is still above 0.
local function distance(self, c, value)
  if self.form == "violation" or c.equal then return constraint.violation(c, value) end
  return math.abs(math.max(value - c.limit, -self.multipliers[c.name] / self.penalties[c.name]))
end

-- Multiplies the penalty of a constraint by self.penalty_growth, up to the largest.
local function grow(self, name)
  self.chosen[name] = nil
  self.penalties[name] = math.min(self.penalty_growth * self.penalties[name], self.penalty_max)
end

-- The value that a multiplier's update uses: the present one in algorithm 1, else the mean of the window, since a
-- first-order method does not come to rest; and the spread of values around it.
local function followed(self, name, value)
  if self.form == "violation" then return value, 0 end
  local values, sum = self.recent[name], 0
  local first = math.max(1, #values - self.window + 1)
  local middle = mean(values, first, #values)
  for i = first, #values do sum = sum + (values[i] - middle) * (values[i] - middle) end
  return middle, math.sqrt(sum / (#values - first + 1))
end

-- Changes multipliers and penalties for the next inner loop, and slows the inner optimizer where values do not come to
-- rest. Returns whether all constraints are within their tolerances.
local function adjust(self, solver, values)
  local done, restless = true, false
  for _, c in ipairs(solver.constraints) do
    local name = c.name
    local value, spread = followed(self, name, values[name])
    local off = distance(self, c, value)
    local shrinks = off < self.sufficient_decrease * self.before[name]
    if off > c.tolerance then done = false end
    if self.form == "shifted" then
      local moved = self.multipliers[name] + self.penalties[name] * (value - c.limit)
      self.multipliers[name] = c.equal and moved or math.max(0, moved)
      -- what comes and goes is no want of penalty, but of shorter steps
      restless = restless or math.max(off, spread) > c.tolerance and off < spread
      if not shrinks and off > math.max(c.tolerance, spread) then grow(self, name) end
      self.before[name] = off
    elseif off > c.tolerance and shrinks then
      self.multipliers[name] = self.multipliers[name] + self.penalties[name] * off
      self.before[name] = off
    elseif off > c.tolerance then
      grow(self, name)
    end
  end
  if restless then
    self.slowed = self.slowed * self.rate_factor
    self:set_rate(self.rate)
  end
  return done
end

-- Begins the next inner loop, after multipliers and penalties changed: forgets what was seen, and restarts the inner
-- optimizer if asked to.
local function next_loop(self)
  self.seen, self.recent, self.loops = {}, {}, self.loops + 1
  if self.begins_anew then self.inner:restart() end
end

-- ---- an optimizer ---------------------------------------------------------------------------------------------------

-- The columns of a run's history that this optimizer adds: Lagrangian, norm of the gradient, inner loop, multipliers
-- and penalties.
local function columns(self, solver, lagrangian)
  local row = { lagrangian = lagrangian, gradient = self.inner.norm, loop = self.loops }
  for _, c in ipairs(solver.constraints) do
    row[c.name .. ".multiplier"], row[c.name .. ".penalty"] = self.multipliers[c.name], self.penalties[c.name]
  end
  return row
end

---@internal
---Iterates until the constraints are kept and the Lagrangian changes no more ("converged"), or the solver's iterations
---are used up (nil).
---@param solver cq.Solver
---@return "converged"?
function AugmentedLagrangian:minimise(solver)
  local whole = true
  while solver:goes_on() do
    local stage = solver.stage
    local choose = not self.penalty and (next(self.doubted) or is_new(self, solver.constraints))
    local lagrangian, grads = (choose and evaluate_each or evaluate)(self, solver, whole)
    whole = false
    doubt(self, solver, grads)
    if solver.stage ~= stage then next_loop(self) end
    local values, row = solver.values, columns(self, solver, lagrangian)
    -- first, since a step that fails leaves all as it was
    if solver.stage ~= "done" then self.inner:update(solver.params, grads) end
    see(self, solver, lagrangian)
    row.gradient = self.inner.norm
    local done = false
    if not solver:is_changing() and is_settled(self) then
      done = adjust(self, solver, values) and solver.judged.feasible
      next_loop(self)
    end
    solver:note(row)
    if done then return "converged" end
  end
end

---@internal
---optimizer:solve for this optimizer: minimizes under constraints by inner loops with fixed multipliers.
function AugmentedLagrangian:solve(params, f, options)
  return require("cq.optimizer.solve").run(self, params, f, options)
end

---@internal
---Always an error: this optimizer has no single steps.
function AugmentedLagrangian.update()
  is.fail("cq.Optimizer.augmented_lagrangian has no update of its own, for it needs values of the constraints; "
    .. "call optimizer:solve, or give it to an experiment")
end

---@internal
---Sets the rate of the inner optimizer, which is slowed as much as it was.
---@param rate number
function AugmentedLagrangian:set_rate(rate) self.rate, self.inner.rate = rate, rate * self.slowed end

-- tables with a value for each constraint
local by_constraint = { "multipliers", "penalties", "before", "seen", "chosen", "doubted" }

local state_fields = {
  multipliers = is.table(), penalties = is.table(), before = is.table(), seen = is.table(), recent = is.table(),
  loops = is.integer { min = 0 },
  chosen = is.table(), doubted = is.table(), largest = is.number { min = 0 },
  inner = is.table(), slowed = is.number { above = 0, optional = true },
  -- of earlier programs: the inner rate and that of before it was slowed
  rate = is.number { above = 0, optional = true }, made = is.number { above = 0, optional = true },
}

-- Forgets multipliers, penalties and progress of a solve.
local function clear(self)
  self.multipliers, self.penalties, self.before, self.seen, self.recent, self.loops = {}, {}, {}, {}, {}, 0
  self.chosen, self.doubted, self.largest, self.slowed = {}, {}, 0, 1
end

---@internal
---Multipliers, penalties, recent values and the inner optimizer's state, copied for saving.
---@return table
function AugmentedLagrangian:state()
  local out = { kind = self.kind, inner = self.inner:state(), slowed = self.slowed,
    recent = T.leaves.snapshot(self.recent), loops = self.loops, largest = self.largest }
  for _, name in ipairs(by_constraint) do out[name] = tables.merged(self[name]) end
  return out
end

---@internal
---Goes on from a saved state. If the inner optimizer's rate was reduced when it was saved, the present rate is reduced
---by the same factor. Errors: a state of another optimizer.
---@param state table             of AugmentedLagrangian:state
function AugmentedLagrangian:restore(state)
  local problem = is.problem(state_fields, state)
  if problem then is.fail("optimizer:restore: the state is not of cq.Optimizer.augmented_lagrangian: %s", problem) end
  self.inner:restore(state.inner)
  self.slowed = state.slowed or (state.rate or self.rate) / (state.made or self.rate)
  self:set_rate(self.rate)
  for _, name in ipairs(by_constraint) do self[name] = tables.merged(state[name]) end
  self.recent, self.loops, self.largest = T.leaves.snapshot(state.recent), state.loops, state.largest
end

---@internal
---Forgets multipliers and penalties, restarts the inner optimizer and gives it back its own rate.
function AugmentedLagrangian:restart()
  clear(self)
  self:set_rate(self.rate)
  self.inner:restart()
end

-- The optimizer in one line: form and inner optimizer.
function AugmentedLagrangian:__tostring()
  return ("cq.Optimizer.augmented_lagrangian { %s, %s }"):format(self.form, tostring(self.inner))
end

-- ---- constructor ----------------------------------------------------------------------------------------------------

local spec = is.define("cq.Optimizer.augmented_lagrangian", {
  inner = is.instance "cq.Optimizer",
  form = is.one_of { "shifted", "violation", default = "shifted" },
  penalty = is.number { above = 0, optional = true },
  penalty_growth = is.number { above = 1, default = 10 },
  sufficient_decrease = is.number { above = 0, below = 1, default = 0.25 },
  rate_factor = is.number { above = 0, max = 1, default = 0.5 },
  penalty_max = is.number { above = 0, default = 1e12 },
  window = is.integer { min = 1, default = 10 },
  tolerance = is.number { above = 0, default = 1e-3 },
  inner_iterations = is.integer { min = 1, optional = true },
  restart = is.boolean { default = true },
}, nil, is.renamed {
  growth = "penalty_growth", progress = "sufficient_decrease", slowing = "rate_factor",
})

---@param def cq.Optimizer.augmented_lagrangian.def
---@return cq.AugmentedLagrangian
return function(def)
  local self = spec(def)
  if not self.inner.rule then
    is.fail("cq.Optimizer.augmented_lagrangian: inner must be a first-order optimizer, such as cq.Optimizer.adam, "
      .. "got cq.Optimizer.%s",
      self.inner.kind)
  end
  if self.form == "shifted" then self.inner_iterations = self.inner_iterations or 200 end
  self.begins_anew, self.restart, self.kind, self.rate = self.restart, nil, "augmented_lagrangian", self.inner.rate
  clear(self)
  return setmetatable(self, AugmentedLagrangian)
end
