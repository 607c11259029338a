-- optimizer: changes parameters in place against their gradients.
--
--   local adam = cq.Optimizer.adam { rate = 1e-3, clip = 10, schedule = function(i) return 0.99 ^ i end }
--   adam:update(params, grads)           -- tables of one shape; bounds of params are kept by projection
--   adam:solve(params, f, { iterations = 100 })      -- the loop too
--
-- The rate of iteration i (from 1) is rate * schedule(i); a param may have a rate of its own, cq.param(x, { rate =
-- 0.1 }), which is taken in the place of the optimizer's. clip is the largest norm of all gradients together:
-- longer ones are shortened to it; "median" is that of the last 50. All optimizers go downhill. Constraints are for
-- augmented_lagrangian, nlopt and ipopt, in lua/cq/optimizer/.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local tensor = require "cq.tensor"
local class = require "cq.tensor.class"
local text = require "cq.base.text"

local leaves = tensor.leaves

---@class cq.Optimizer
---@field kind string               which constructor made it
---@field rate number               may be changed between updates; params' own rates change by the same factor
---@field clip number|string?       largest norm of all gradients together, or "median", of the last 50 norms
---@field iteration integer         updates made
---@field norm number?              of the last gradient, before clipping
---@field norms number[]            of the last gradients, this one's last; kept for a clip of "median"
---@field moments table<string, table<string, cq.Tensor>>   by name of the moment, then by path of the parameter
local Optimizer = { __name = "cq.Optimizer" }
Optimizer.__index = Optimizer

-- ---- the rules ------------------------------------------------------------------------------------------------------

-- Each has the moments that it keeps (zero at first) and a step for one tensor: x, gradient g times the clipping factor
-- c, the rate, iteration i, and pointers to the moments.

---@class cq.OptimizerRule
local rules = {}

rules.gradient_descent = {
  moments = {},
  -- Steps a tensor in place against its gradient: double g[count], times the clipping factor c.
  step = function(_, tensor_x, g, c, rate)
    local x = tensor_x:data()
    for k = 0, tensor_x.count - 1 do x[k] = x[k] - rate * (c * g[k]) end
  end,
}

-- m <- momentum m + g;  x <- x - rate m
rules.momentum = {
  moments = { "velocity" },
  -- Steps a tensor, and its velocity, the first moment, in place.
  step = function(self, tensor_x, g, c, rate, moments)
    local momentum, x, m = self.momentum, tensor_x:data(), moments[1]
    for k = 0, tensor_x.count - 1 do
      m[k] = momentum * m[k] + c * g[k]
      x[k] = x[k] - rate * m[k]
    end
  end,
}

-- The number that Adam adds to the root of a mean square, so that it never divides by 0: epsilon, or with
-- relative_epsilon that share of the gradient's root mean square, infinity if that is 0.
local function added(self, mean_square)
  if not self.relative_epsilon then return self.epsilon end
  return mean_square > 0 and self.epsilon * math.sqrt(mean_square) or math.huge      -- without a gradient: no step
end

-- Adam (Kingma, Ba, ICLR 2015, algorithm 1): running means of g and g^2, both freed of their bias towards zero
rules.adam = {
  moments = { "first", "second" },
  -- Steps a tensor, and its two moments, in place. self.iteration counts from 1.
  step = function(self, tensor_x, g, c, rate, moments)
    local beta1, beta2, count = self.beta1, self.beta2, tensor_x.count
    local x, m, v, sum = tensor_x:data(), moments[1], moments[2], 0
    local bias1, bias2 = 1 - beta1 ^ self.iteration, 1 - beta2 ^ self.iteration
    for k = 0, count - 1 do
      local gk = c * g[k]
      m[k] = beta1 * m[k] + (1 - beta1) * gk
      v[k] = beta2 * v[k] + (1 - beta2) * gk * gk
      sum = sum + v[k]
    end
    local epsilon = added(self, sum / count / bias2)
    for k = 0, count - 1 do x[k] = x[k] - rate * (m[k] / bias1) / (math.sqrt(v[k] / bias2) + epsilon) end
  end,
}

-- The same with one running mean of g^2 for each tensor, that of all its elements (Zhang et al., Adam-mini, ICLR 2025)
rules.adam_per_tensor = {
  moments = { "first", "second" },
  -- Steps a tensor, and its two moments, in place. self.iteration counts from 1.
  step = function(self, tensor_x, g, c, rate, moments)
    local beta1, beta2, count = self.beta1, self.beta2, tensor_x.count
    local x, m, v, sum = tensor_x:data(), moments[1], moments[2], 0
    for k = 0, count - 1 do
      local gk = c * g[k]
      sum = sum + gk * gk
    end
    v[0] = beta2 * v[0] + (1 - beta2) * sum / count                      -- its other elements stay 0
    local bias1, bias2 = 1 - beta1 ^ self.iteration, 1 - beta2 ^ self.iteration
    local step = rate / bias1 / (math.sqrt(v[0] / bias2) + added(self, v[0] / bias2))
    for k = 0, count - 1 do
      m[k] = beta1 * m[k] + (1 - beta1) * c * g[k]
      x[k] = x[k] - step * m[k]
    end
  end,
}

-- ---- update ---------------------------------------------------------------------------------------------------------

local a_clip = is.any_of { is.number { above = 0 }, is.one_of { "median" }, optional = true }

-- Raises an error if a backward pass still needs the numbers of parameter x. path: its name, for the error.
local function require_free(x, path)
  if class.locked[x] or x.requires_grad and tensor.tape.recording() then
    is.fail("optimizer:update: %s cannot be changed while a gradient is computed; update after cq.value_and_grad "
      .. "has given its gradients", path)
  end
end

-- A list { path, x, g } of trainable tensors with their gradients. part?: the name of params in those of several
-- optimizers, for errors. Errors: a param without a gradient; a gradient of a wrong shape, or not finite.
local function pairs_of(params, grads, part)
  local found = leaves.pair(params, grads)
  local out = {}
  for _, leaf in ipairs(leaves.trainable(params, "optimizer:update")) do
    local x, g, path = leaf.tensor, found[leaf.tensor], leaf.path
    if part then path = x == params and part or part .. "." .. path end
    require_free(x, path)
    if not tensor.is_tensor(g) then
      is.fail("optimizer:update: the gradients have none for %s, got %s", path, is.describe(g))
    end
    if g.trainable and not x.trainable then
      is.fail("optimizer:update: takes parameters and then their gradients; %s is a cq.param in the second place and "
        .. "none in the first", path)
    end
    local same = x.rank == g.rank
    for d = 1, x.rank do same = same and x:size(d) == g:size(d) end
    if not same then
      is.fail("optimizer:update: %s has shape {%s} and its gradient {%s}", path, table.concat(x:shape(), ", "),
        table.concat(g:shape(), ", "))
    end
    if not g:finite() then
      is.fail("optimizer:update: the gradient of %s is not finite; nothing was changed", path)
    end
    if x.count > 0 then out[#out + 1] = { path = leaf.path, x = x, g = g } end
  end
  return out
end

-- The length of all gradients in a list of { g } together, a number, computed so that large numbers do not overflow.
local function norm_of(list)
  local norms = {}
  for i, entry in ipairs(list) do norms[i] = entry.g:detach():norm() end
  return tensor.stack(norms):norm():item()
end

local WINDOW = 50       -- gradients, of a median of norms

-- A new list of the last WINDOW norms of gradients with one more; the same list for a norm of 0, which says nothing of
-- lengths.
local function with_norm(norms, norm)
  if norm == 0 then return norms end
  local out = {}
  for k = math.max(1, #norms - WINDOW + 2), #norms do out[#out + 1] = norms[k] end
  out[#out + 1] = norm
  return out
end

-- The median of norms; of an even number the lower middle one, so that one long gradient among the first two does not
-- set it. nil: there are no norms yet.
local function median_of(norms)
  local sorted = { unpack(norms) }
  table.sort(sorted)
  return sorted[math.floor((#sorted + 1) / 2)]
end

-- Moves the numbers of a parameter into its bounds, in place.
local function project(x)
  local bounds, data = x.bounds, x:data()
  if not bounds or not (bounds.min or bounds.max) then return end
  local min, max = bounds.min or -math.huge, bounds.max or math.huge
  for k = 0, x.count - 1 do
    data[k] = math.max(min, math.min(max, data[k]))
  end
end

-- Pointer to the numbers of a parameter's moment, which are zeros where the parameter is new. name: of the moment;
-- entry: { path, x }. Errors: another count than before.
local function moment_of(self, name, entry)
  local moment = self.moments[name][entry.path]
  if not moment then
    moment = tensor.zeros(entry.x:shape())
    self.moments[name][entry.path] = moment
  elseif moment.count ~= entry.x.count then
    is.fail("optimizer:update: %s has %s, the optimizer knows it with %d; use a new optimizer", entry.path,
      text.count(entry.x.count, "element"), moment.count)
  end
  return moment:data()
end

-- All that the next step needs, with every error that it can have; parameters and iteration are as before. part?: as
-- in pairs_of. Returns { list, factor, shorten, norm, norms }.
local function prepare(self, params, grads, part)
  local list = pairs_of(params, grads, part)
  local norm = #list > 0 and norm_of(list) or 0
  local factor = 1
  if self.schedule then factor = self.schedule(self.iteration + 1) end
  if type(factor) ~= "number" or factor - factor ~= 0 or factor < 0 then
    is.fail("optimizer:update: the schedule must return a finite number, at least 0, got %s at iteration %d",
      is.describe(factor), self.iteration + 1)
  end
  local given = self.rate
  if type(given) ~= "number" or not (given > 0) or given == math.huge then
    is.fail("optimizer:update: rate must be a finite number above 0, got %s", is.describe(given))
  end
  local clip = is.argument("optimizer:update", "clip", a_clip, self.clip)
  local norms = clip == "median" and with_norm(self.norms, norm) or self.norms
  if clip == "median" then clip = median_of(norms) end
  for _, entry in ipairs(list) do
    for i, name in ipairs(self.rule.moments) do entry[i] = moment_of(self, name, entry) end
  end
  return { list = list, factor = factor, shorten = clip and norm > clip and clip / norm or 1, norm = norm,
    norms = norms }
end

-- The step that `prepare` has found, without errors.
local function step(self, found)
  self.iteration, self.norm, self.norms = self.iteration + 1, found.norm, found.norms
  for _, entry in ipairs(found.list) do
    local x = entry.x
    -- a rate of its own changes as the optimizer's does
    local own = x.bounds and x.bounds.rate
    local rate = own and own * self.rate / self.rate_made or self.rate
    self.rule.step(self, x, entry.g:data(), found.shorten, rate * found.factor, entry)
    project(x)
  end
end

---One step, after which parameters are moved into their bounds. A gradient that is missing, of another shape, or not
---finite is an error, and changes nothing.
---@param params any       tensors in nested tables; changed in place
---@param grads any        of the same shape, from cq.value_and_grad
function Optimizer:update(params, grads) step(self, prepare(self, params, grads)) end

---Forgets all moments and counts iterations from 1 again, for the schedule too.
function Optimizer:restart()
  self.iteration, self.norms = 0, {}
  for _, name in ipairs(self.rule.moments) do self.moments[name] = {} end
end

---@internal
---Runs a solve without constraints, until the solver's iterations are used up.
---@param solver cq.Solver
function Optimizer:minimise(solver)
  local whole = true
  while solver:goes_on() do
    local _, grads = solver:evaluate(function() return { { objective = 1 }, whole = whole } end)
    self:update(solver.params, grads[1])
    solver:note { gradient = self.norm }
    whole = solver.strict or false
  end
end

---Minimises f from params on, and leaves the best point found in them: a loop of evaluations and updates, with a
---report. Ctrl-C ends it before the next evaluation; with state or folder a later solve goes on from there, else the
---optimizer is restarted. Constraints need cq.Optimizer.augmented_lagrangian, nlopt or ipopt, and are kept up to their
---tolerances.
---Errors: a number that is not finite; a number that a constraint names and f does not give; a parameter that none of
---the numbers depends on.
---@param params any            params, or tensors in nested tables, with their bounds
---@param f fun(params: any): cq.Tensor|table<string, cq.Tensor|number>, ...   the objective, or a table of named
---  numbers with it
---@param options optimizer.solve.def
---@return cq.Solution
function Optimizer:solve(params, f, options) return require("cq.optimizer.solve").run(self, params, f, options) end

-- ---- state ----------------------------------------------------------------------------------------------------------

---All that is needed to go on later, as a table for cq.save: { kind, iteration, moments, norms }.
---@return table
function Optimizer:state()
  local moments = {}
  for name, by_path in pairs(self.moments) do
    moments[name] = {}
    for path, moment in pairs(by_path) do moments[name][path] = moment:copy() end
  end
  local norms = #self.norms > 0 and tensor(self.norms) or nil
  return { kind = self.kind, iteration = self.iteration, moments = moments, norms = norms }
end

---Goes on from a copy of a state of optimizer:state. Rate, clip and schedule stay those of this one. Errors: a state of
---another kind of optimizer, or a damaged one; nothing is changed then.
---@param state table
function Optimizer:restore(state)
  if type(state) ~= "table" or type(state.moments) ~= "table" then
    is.fail("optimizer:restore: needs a state from optimizer:state(), got %s", is.describe(state))
  end
  is.argument("optimizer:restore", "iteration of the state", is.integer { min = 0 }, state.iteration)
  if state.kind ~= self.kind then
    is.fail("optimizer:restore: the state is of %s, this is %s; go on with the same one, or start anew", tostring(state.kind), self.kind)
  end
  local moments = {}
  for _, name in ipairs(self.rule.moments) do
    if type(state.moments[name]) ~= "table" then
      is.fail("optimizer:restore: the state has no moments named %s", name)
    end
    moments[name] = {}
    for path, moment in pairs(state.moments[name]) do
      if not tensor.is_tensor(moment) then
        is.fail("optimizer:restore: moment %s of %s is %s", name, path, is.describe(moment))
      end
      moments[name][path] = moment:copy()
    end
  end
  if state.norms ~= nil and not (tensor.is_tensor(state.norms) and state.norms.rank == 1) then
    is.fail("optimizer:restore: norms of the state are %s", is.describe(state.norms))
  end
  self.iteration, self.moments, self.norms = state.iteration, moments, state.norms and state.norms:totable() or {}
end

-- The optimizer in one line: kind, rate and iterations made.
function Optimizer:__tostring()
  return ("cq.Optimizer.%s { rate %g, %s made }"):format(self.kind, self.rate, text.count(self.iteration, "iteration"))
end

-- ---- constructors ---------------------------------------------------------------------------------------------------

-- what fields are called elsewhere
local other_names = {
  lr = "rate", learning_rate = "rate", step_size = "rate", lr_scheduler = "schedule", eps = "epsilon",
  max_norm = "clip", grad_clip = "clip",
}

-- The constructor of a kind of optimizer, a function of a definition. own: checkers of its fields, beside those that
-- all kinds have.
local function family(kind, own)
  local fields = {
    rate = is.number { above = 0 },
    clip = a_clip,
    schedule = is.callable { optional = true },
  }
  for name, checker in pairs(own) do fields[name] = checker end
  local definition = is.define("cq.Optimizer." .. kind, fields, nil, function(key)
    local name = other_names[key]
    return fields[name] and ("its name is %s here"):format(name) or nil
  end)
  return function(def)
    local self = definition(def)
    self.kind, self.rule, self.iteration, self.moments, self.norms, self.rate_made = kind, rules[kind], 0, {}, {},
      self.rate
    for _, name in ipairs(self.rule.moments) do self.moments[name] = {} end
    return setmetatable(self, Optimizer)
  end
end

---@class cq.OptimizerModule
local optimizer = { class = Optimizer }

---@class cq.Optimizer.gradient_descent.def
---@field rate number                            step size
---@field clip? number|"median"                  largest norm of all gradients together; "median": of the last 50 norms
---@field schedule? fun(iteration: integer): number   factor of the rate, iteration from 1

---x <- x - rate g
---@type fun(def: cq.Optimizer.gradient_descent.def): cq.Optimizer
optimizer.gradient_descent = family("gradient_descent", {})

---@class cq.Optimizer.momentum.def
---@field rate number                            step size
---@field momentum? number                       share of the last step that is kept
---@field clip? number|"median"                  largest norm of all gradients together; "median": of the last 50 norms
---@field schedule? fun(iteration: integer): number   factor of the rate, iteration from 1

---m <- momentum m + g, x <- x - rate m
---@type fun(def: cq.Optimizer.momentum.def): cq.Optimizer
optimizer.momentum = family("momentum", { momentum = is.number { min = 0, below = 1, default = 0.9 } })

---@class cq.Optimizer.adam.def
---@field rate number                            step size
---@field beta1? number                          memory of the mean gradient
---@field beta2? number                          memory of the mean square
---@field epsilon? number                        added to the root mean square of an element
---@field relative_epsilon? boolean              epsilon is a share of the root mean square of all elements of a tensor,
---  so that steps do not depend on the unit of the loss; else it has the unit of the gradient
---@field per? "element"|"tensor"                what has a mean square of its own
---@field clip? number|"median"                  largest norm of all gradients together; "median": of the last 50 norms
---@field schedule? fun(iteration: integer): number   factor of the rate, iteration from 1

local adam = family("adam", {
  beta1 = is.number { min = 0, below = 1, default = 0.9 },
  beta2 = is.number { min = 0, below = 1, default = 0.999 },
  epsilon = is.number { above = 0, default = 1e-8 }, relative_epsilon = is.boolean { default = false },
  per = is.one_of { "element", "tensor", default = "element" },
})

---Adam (Kingma and Ba, ICLR 2015). With per = "element" every element goes as far as any other at first, however small
---its gradient. With per = "tensor" (Zhang et al., Adam-mini, ICLR 2025) elements of a tensor go as far as their
---gradients say, and the rate is how far they go in the root mean square: for fields, whose small gradients are noise.
---@type fun(def: cq.Optimizer.adam.def): cq.Optimizer
optimizer.adam = function(def)
  local self = adam(def)
  if self.per == "tensor" then self.kind, self.rule = "adam_per_tensor", rules.adam_per_tensor end
  return self
end

---@class cq.Optimizer.augmented_lagrangian.def
---@field inner cq.Optimizer          a first-order one: adam, momentum or gradient_descent
---@field form? "shifted"|"violation"   shifted: penalty / 2 (c + multiplier / penalty)^2 where that is above 0 (Powell,
---  Hestenes, Rockafellar), the multiplier follows after every inner loop; violation: multiplier P + penalty / 2 P^2 of
---  the violation P alone, and either the multiplier follows, where P has shrunk enough, or the penalty grows
---@field penalty? number             at first; unless given, objective and constraint pull alike at the first evaluation,
---  and less where a constraint that did not pull there outweighs the objective later
---@field penalty_growth? number      factor of the penalty of a constraint that does not decrease sufficiently
---@field sufficient_decrease? number a violation must fall below this share of the last loop's, or its penalty grows
---@field rate_factor? number         of the inner rate, where a constraint's values swing by more than their mean is off;
---  1: the rate stays
---@field penalty_max? number         penalties grow no further
---@field window? integer             iterations of a mean of the Lagrangian; an inner loop ends when the last two
---  differ little
---@field tolerance? number           by which they may differ, a share of the mean
---@field inner_iterations? integer   of an inner loop at most; 200 with the form "shifted", else as many as it takes
---@field restart? boolean            the inner optimizer begins anew with each inner loop

---Augmented Lagrangian around a first-order optimizer: any constraints, and no library. Used by optimizer:solve and by
---experiments. Multipliers and penalties are in the history as NAME.multiplier and NAME.penalty.
---Algorithm 1 of Yuhn et al., 4D topology optimization (CMAME 2023), is form = "violation", penalty = 1e-3, around
---cq.Optimizer.adam { rate = 0.01 }, with constraints of tolerance 0; its kappa is minus the multiplier.
---@type fun(def: cq.Optimizer.augmented_lagrangian.def): cq.AugmentedLagrangian
optimizer.augmented_lagrangian = require "cq.optimizer.augmented_lagrangian"

---@class cq.Optimizer.nlopt.def
---@field algorithm "slsqp"|"mma"|"ccsa"|"lbfgs"|"auglag"   slsqp: sequential quadratic programming, up to about 500
---  parameters; mma, ccsa: moving asymptotes and its quadratic kin, many parameters, no equalities; lbfgs: no
---  constraints; auglag: NLopt's augmented Lagrangian
---@field objective_tolerance? number   ends where the objective changes by less, a share of it
---@field parameter_tolerance? number   ends where all parameters change by less, a share of them
---@field inner? "lbfgs"|"mma"|"ccsa"|"slsqp"   of auglag
---@field inner_iterations? integer     of auglag: evaluations of an inner loop at most

---Algorithms of NLopt, which is loaded when this is called; Debian has it as libnlopt0. For optimizer:solve and
---experiments. The unit of the objective does not matter: where the first step by its gradient would be far too short
---or too long for the size of the parameters, NLopt gets the objective times a fixed factor. A solve that goes on shows
---NLopt the points that it has seen before, which state and folder keep with their gradients.
---@type fun(def: cq.Optimizer.nlopt.def): cq.Nlopt
optimizer.nlopt = require "cq.optimizer.nlopt"

---@class cq.Optimizer.ipopt.def
---@field tolerance? number         of the conditions of an optimum, scaled as IPOPT does; that of a small objective, whose
---  gradient would end a solve at once, is scaled up first
---@field history? integer          steps that its Hessian is made of

---The interior-point method of IPOPT with a limited-memory Hessian, for any constraints and many parameters. The
---library is loaded when this is called; Debian has it as coinor-libipopt1v5. For optimizer:solve and experiments. It
---scales the objective and goes on as nlopt does.
---@type fun(def: cq.Optimizer.ipopt.def?): cq.Ipopt
optimizer.ipopt = require "cq.optimizer.ipopt"

local Parts = require("cq.optimizer.parts").methods(Optimizer, prepare, step)

---An optimizer for each part of the parameters, by its name in their table, each with its own rule, rate, clip and
---schedule. The parts of an experiment are controller, observer, robot, world and named:
---  cq.Optimizer.parts { controller = cq.Optimizer.gradient_descent { rate = 1, clip = 0.1 }, robot =
---  cq.Optimizer.adam { rate = 0.1 } }
---Errors: an optimizer that makes its own loop, such as nlopt; a part without an optimizer, or an optimizer without a
---part, when they meet.
---@param given table<string, cq.Optimizer>
---@return cq.Optimizer
function optimizer.parts(given)
  is.argument("cq.Optimizer.parts", "parts", is.table(), given)
  local parts = {}
  for name, part in pairs(given) do
    if not text.is_instance(part, "cq.Optimizer") then
      is.fail("cq.Optimizer.parts: %s must be an optimizer, got %s", tostring(name), is.describe(part))
    elseif not (part.rule or part.parts) then
      is.fail("cq.Optimizer.parts: %s is cq.Optimizer.%s, which makes its own loop over all parameters; take one with "
        .. "updates, such as cq.Optimizer.adam", tostring(name), part.kind)
    end
    parts[name] = part
  end
  if next(parts) == nil then
    is.fail("cq.Optimizer.parts: takes optimizers by the names of parts, got an empty table")
  end
  return setmetatable({ kind = "parts", parts = parts, iteration = 0 }, Parts)
end

method.guard(Optimizer, "optimizer")

return optimizer
