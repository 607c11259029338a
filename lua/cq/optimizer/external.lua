-- external: the common part of optimizers from libraries, which call back for values and gradients at points of their
-- choice. Each new point is an evaluation, and is remembered: a resumed solve gives the library the same numbers
-- again, which takes it to the same point.
--
-- Libraries take the objective's gradient for a length: L-BFGS and SLSQP first step by the gradient itself, and L-BFGS
-- and IPOPT stop where it is short. Where that step would be too short, or too long, by the size of the parameters, the
-- library gets the objective times a factor, which is fixed where the objective counts first. The log, and what is
-- reported, are in the user's units.
--
-- A callback from C must not be left by an error: whatever is raised in one is kept, the library is asked to stop, and
-- it is raised when the library has returned.
local ffi = require "ffi"
local C = require("cq.base.engine").C
local is = require "cq.base.schema"
local tables = require "cq.base.tables"
local T = require "cq.tensor"
local vector = require "cq.optimizer.vector"

---@class cq.External
---@field optimizer cq.Optimizer      first_step: arguments of factor_of, shares of a parameter's size; factor: of the
---  objective, once there is a point where it counts
---@field count integer               parameters
---@field constraints cq.Constraint[]
---@field last table?                 the present point: { x, values, grads, stage }
---@field stage string                that the library works on
---@field stopped boolean             the library is to return
local External = {}
External.__index = External

local external = {}

local DOUBLE = ffi.sizeof "double"
local POWER = 900                  -- of 2: factors are between 2^-POWER and 2^POWER

-- The factor of the objective, from the first entry where it counts. 1 where a step by the gradient changes some
-- parameter by `least` of its size, and none by more than `most`; else the power of 2 by which it changes the parameter
-- that it changes most by about `wanted`. Parameters that the gradient holds at a bound do not count. A gradient that
-- is small beside the objective, as where a solve begins at an optimum, is not stretched beyond the objective's size.
local function factor_of(self, entry, least, most, wanted)
  local x, gradient, step, size = entry.x:data(), entry.grads[1]:data(), 0, 1
  local sizes, lower, upper = self.vector:sizes(x), self.vector.lower, self.vector.upper
  for k = 0, self.count - 1 do
    local g = gradient[k]
    local is_free = g > 0 and x[k] > lower[k] or g < 0 and x[k] < upper[k]
    if is_free and math.abs(g) / sizes[k] > step then step, size = math.abs(g) / sizes[k], sizes[k] end
  end
  if step < least then step = math.max(step, math.min(least, math.abs(entry.values[1]) / (size * size))) end
  if step == 0 or step >= least and step <= most then return 1 end
  local power = math.log(wanted / step) / math.log(2)
  return math.ldexp(1, math.floor(math.max(-POWER, math.min(POWER, power)) + 0.5))
end

-- The cq.External of one solve: evaluations asked for by the library, with the log of earlier points.
local function work_of(optimizer, solver)
  local self = setmetatable({
    optimizer = optimizer, solver = solver, constraints = solver.constraints, vector = vector.of(solver.params),
    log = optimizer.log, seen = 0, stage = solver.minimize[1], stopped = false, names = { "objective" },
  }, External)
  for _, c in ipairs(solver.constraints) do self.names[#self.names + 1] = c.name end
  self.count = self.vector.count
  return self
end

---The point where the library begins: the end of the stage before, of a resumed solve the first point of its log, else
---the user's parameters.
---@return ffi.cdata*           double {count}, a copy
function External:start()
  local from = self.last or self.log[1]
  if not from then return self.vector:get() end
  local x = ffi.new("double[?]", self.count)
  ffi.copy(x, from.x:data(), self.count * DOUBLE)
  return x
end

-- Evaluates the user's function at a new point, double x[count], and appends the entry to the log. Returns { x, values,
-- grads, stage }, objective first; nil: no evaluation is left, or Ctrl-C.
local function evaluate(self, x)
  local solver = self.solver
  if not solver:goes_on() then return nil end
  self.vector:set(x)
  local values, grads = solver:evaluate(function()
    local passes = { whole = #self.log == 0 }
    for k, name in ipairs(self.names) do passes[k] = { [name] = 1 } end
    return passes
  end)
  local entry = { x = T.empty { self.count }, values = {}, grads = {}, stage = solver.stage }
  ffi.copy(entry.x:data(), x, self.count * DOUBLE)
  for k, name in ipairs(self.names) do entry.values[k], entry.grads[k] = values[name], self.vector:flatten(grads[k]) end
  self.log[#self.log + 1] = entry
  solver:note { gradient = entry.grads[1]:norm():item() }
  return entry
end

-- Values and gradients at x: of the last evaluation if it was there; of the next entry of the log, where a solve is
-- resumed; else of a new evaluation. nil once it is stopped; an error if the log was made at other points. x: double
-- {count}. Returns an entry as evaluate does.
local function point(self, x)
  if self.last and self.vector:same(self.last.x:data(), x) then return self.last end
  local entry = self.log[self.seen + 1]
  if entry and not self.vector:same(entry.x:data(), x) then
    is.fail("%s: the solve goes another way than it did before; it goes on only with the same method, options "
      .. "and function",
      self.solver.what)
  end
  entry = entry or evaluate(self, x)
  if not entry then return nil end
  self.seen, self.last = self.seen + 1, entry
  return entry
end

---Values and gradients at a point, objective first; nil once the solve is stopped or an evaluation has failed, whose
---error is kept in self.problem. An entry at which a stage ends stops the solve. Raises nothing.
---@param x ffi.cdata*          double {count}
---@return { values: number[], grads: cq.Tensor[] }?
function External:at(x)
  if self.stopped then return nil end
  local fine, entry = pcall(point, self, x)
  if not fine then self.problem = entry end
  if not fine or not entry or entry.stage ~= self.stage then self.stopped = true end
  return fine and entry or nil
end

---The factor of the objective, and of multipliers, in the library; 1 in the stage "violation".
---@return number
function External:factor() return self.stage == "objective" and self.optimizer.factor or 1 end

---The objective at an entry times its factor, and its gradient; both are zero in the stage "violation".
---@param entry table
---@param gradient ffi.cdata*?  double {count}, written
---@return number
function External:objective(entry, gradient)
  local optimizer, counts = self.optimizer, self.stage == "objective"
  if counts then
    optimizer.factor = optimizer.factor or factor_of(self, entry, unpack(optimizer.first_step))
  end
  local factor = counts and optimizer.factor or 0
  if gradient ~= nil then
    local from = entry.grads[1]:data()
    for k = 0, self.count - 1 do gradient[k] = factor * from[k] end
  end
  return factor * entry.values[1]
end

-- Begins the next stage where this one has ended, and returns true; false: there is none, or Ctrl-C.
local function next_stage(self)
  local now = self.last and self.last.stage
  if not now or now == self.stage or now == "done" or C.cq_interrupted() ~= 0 then return false end
  self.stage, self.stopped = now, false
  return true
end

-- ---- an optimizer of a library -------------------------------------------------------------------------------------

-- Frees the objects of a run, the library's first, since it may call back until it is freed.
local function clear(self, destroy)
  if self.opt then destroy(ffi.gc(self.opt, nil)) end
  for _, callback in ipairs(self.callbacks or {}) do callback:free() end
  self.opt, self.callbacks = nil, nil
end

-- Runs the library for each stage in turn. run(optimizer, work) returns a verdict, which this returns. Raises the error
-- of an evaluation.
local function minimise(self, solver, run, destroy)
  local work = work_of(self, solver)
  while true do
    local fine, verdict = pcall(run, self, work)
    clear(self, destroy)
    if work.problem then error(work.problem, 0) end
    if not fine then error(verdict, 0) end
    if not next_stage(work) then return verdict end
  end
end

---A class of optimizers whose loop is a library's.
---@param class_name string       "cq.Nlopt"
---@param kind string             of cq.Optimizer
---@param run fun(self: cq.Optimizer, work: cq.External): string?
---@param destroy fun(opt: ffi.cdata*)     frees the library's object, optimizer.opt
---@return table
function external.class(class_name, kind, run, destroy)
  local class = { __name = class_name, __is = { ["cq.Optimizer"] = true }, chooses_points = true }
  class.__index = class

  -- Runs the library on a solve; returns its verdict: "converged", "stopped", or nil where evaluations were used up.
  function class:minimise(solver) return minimise(self, solver, run, destroy) end

  -- Minimises f from params; see cq.Optimizer:solve.
  function class:solve(params, f, options) return require("cq.optimizer.solve").run(self, params, f, options) end

  -- Always an error: the library makes its own loop.
  function class.update()
    is.fail("cq.Optimizer.%s has no update, for it makes its own loop; call optimizer:solve, or give it to an "
      .. "experiment", kind)
  end

  -- { kind, algorithm, log, factor }: the points of the solve so far, by which it goes on. factor: false until the
  -- objective counts.
  function class:state()
    return { kind = kind, algorithm = self.algorithm, log = tables.merged(self.log), factor = self.factor or false }
  end

  -- Takes the saved state of a stopped solve: its log of evaluations is replayed instead of simulated. Errors: a state
  -- of another optimizer or algorithm.
  function class:restore(state)
    if type(state) ~= "table" or state.kind ~= kind or type(state.log) ~= "table" then
      is.fail("optimizer:restore: the state is not of cq.Optimizer.%s, got %s", kind, is.describe(state))
    end
    if state.algorithm ~= self.algorithm then
      is.fail("optimizer:restore: the state is of %s, this is %s", tostring(state.algorithm), self.algorithm)
    end
    self.log = tables.merged(state.log)
    -- earlier programs gave the objective as it is
    self.factor = state.factor == nil and 1 or state.factor or nil
  end

  -- Forgets the points, the factor, the message and the multipliers of an earlier solve.
  function class:restart() self.log, self.factor, self.message, self.multipliers = {}, nil, nil, nil end

  ---Makes an optimizer of the class of its definition, in place, with an empty log.
  ---@param def table         checked
  function class.new(def)
    def.kind, def.log = kind, {}
    return setmetatable(def, class)
  end
  return class
end

return external
