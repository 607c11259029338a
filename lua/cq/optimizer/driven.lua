-- driven: what methods of libraries share. They call back for values and gradients at points of their own choice. Each new point is an
-- evaluation, and is remembered: a solve that goes on shows the library the same numbers again, which takes it to where it was.
--
-- A callback from C must not be left by an error: whatever is raised in one is kept, the library is asked to stop, and it is raised
-- when the library has returned.
local ffi = require "ffi"
local C = require("cq.base.engine").C
local is = require "cq.base.schema"
local T = require "cq.tensor"
local vector = require "cq.optimizer.vector"

---@class cq.Driven
---@field count integer               parameters
---@field constraints cq.Constraint[]
---@field last table?                 the present point: { x, values, grads, stage }
---@field stage string                that the library works on
---@field stopped boolean             the library is to return
local Driven = {}
Driven.__index = Driven

local driven = {}

local DOUBLE = ffi.sizeof "double"

---For one solve. The optimizer's log holds the points of an earlier part of it.
---@param optimizer cq.Optimizer
---@param solver cq.Solver
---@return cq.Driven
function driven.new(optimizer, solver)
  local self = setmetatable({
    solver = solver, constraints = solver.constraints, vector = vector.of(solver.params), log = optimizer.log, seen = 0,
    stage = solver.stages[1], stopped = false, names = { "objective" },
  }, Driven)
  for _, c in ipairs(solver.constraints) do self.names[#self.names + 1] = c.name end
  self.count = self.vector.count
  return self
end

---Where the library begins: the first point of all, or that where the stage before has ended.
---@return ffi.cdata*           double {count}, a copy
function Driven:start()
  local from = self.last or self.log[1]
  if not from then return self.vector:get() end
  local x = ffi.new("double[?]", self.count)
  ffi.copy(x, from.x:data(), self.count * DOUBLE)
  return x
end

-- a new point, by the user's function
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

-- values and gradients at a point: the present one, the next of the log, or a new one
local function point(self, x)
  if self.last and self.vector:same(self.last.x:data(), x) then return self.last end
  local entry = self.log[self.seen + 1]
  if entry and not self.vector:same(entry.x:data(), x) then
    is.fail("%s: the solve goes another way than it did before; it goes on only with the same method, options and function",
      self.solver.what)
  end
  entry = entry or evaluate(self, x)
  if not entry then return nil end
  self.seen, self.last = self.seen + 1, entry
  return entry
end

---Values and gradients at a point, objective first; nil when the library is to return. Raises nothing.
---@param x ffi.cdata*          double {count}
---@return { values: number[], grads: cq.Tensor[] }?
function Driven:at(x)
  if self.stopped then return nil end
  local fine, entry = pcall(point, self, x)
  if not fine then self.problem = entry end
  if not fine or not entry or entry.stage ~= self.stage then self.stopped = true end
  return fine and entry or nil
end

---Objective at a point, and its gradient; nothing counts in the stage "feasible".
---@param entry table
---@param gradient ffi.cdata*?  double {count}, written
---@return number
function Driven:objective(entry, gradient)
  local counts = self.stage == "objective"
  if gradient ~= nil and counts then ffi.copy(gradient, entry.grads[1]:data(), self.count * DOUBLE) end
  if gradient ~= nil and not counts then ffi.fill(gradient, self.count * DOUBLE) end
  return counts and entry.values[1] or 0
end

---After the library has returned: raises what a callback has kept.
function Driven:finish()
  if self.problem then error(self.problem, 0) end
end

---Is there another stage? It begins where this one has ended.
---@return boolean
function Driven:next_stage()
  local now = self.last and self.last.stage
  if not now or now == self.stage or now == "done" or C.cq_interrupted() ~= 0 then return false end
  self.stage, self.stopped = now, false
  return true
end

return driven
