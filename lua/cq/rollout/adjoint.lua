-- adjoint: the backward pass of a rollout, see rollout.lua.
local ffi = require "ffi"
local T = require "cq.tensor"
local is = require "cq.base.schema"
local engine = require "cq.base.engine"
local backward = require "cq.rollout.backward"
local fields = require "cq.rollout.fields"
local control = require "cq.rollout.control"
local continued = require "cq.rollout.continued"
local states = require "cq.state"
local contact = require "cq.rollout.contact"
local solver = require "cq.rollout.solver"
local series = require "cq.rollout.series"
local work = require "cq.rollout.work"
local tree = require "cq.rollout.tree"
local unstable = require "cq.rollout.unstable"
local C, tape = engine.C, T.tape

local DOUBLE = ffi.sizeof "double"

-- A tensor with the same data, at which gradients end: so that one part of the script can be differentiated alone.
local function leaf(tensor)
  local out = tensor:detach()
  out.requires_grad = true
  return out
end

-- Raises an error about the user's function `name` unless `same`: it must compute the same when the backward pass calls
-- it again, or the gradient would be of another computation.
local function require_same(self, name, same)
  if same then return end
  self.phase = name
  is.fail("%s gave another result when it ran again on the same state for its gradient; it must depend on nothing but its arguments", name)
end

-- The gradient of control step i, from 0, in the shape of `tensor`, copied out of the gradient of all steps (grads).
local function slice_of(grads, tensor, i, steps)
  local count = grads.count / steps
  local shape = tensor:shape()
  local out = T.empty(shape)
  ffi.copy(out:data(), grads:data() + i * count, count * DOUBLE)
  return out
end

-- Calls running, record and work again, for gradients, on the state after control step i. Returns a list of the results
-- whose gradients are wanted, in this order. signals: those of the step, a leaf.
local function evaluate(self, i, signals)
  local state, outputs = states.new(self, i + 1), {}
  if self.wanted.running then
    self.phase = "running"
    outputs[#outputs + 1] = T.as_tensor(self.running_cost(state, signals))
  end
  if self.wanted.record then
    self.phase = "record"
    outputs[#outputs + 1] = T.as_tensor(self.recorder(state, signals))
  end
  self.phase = nil
  if self.wanted.work_rows then outputs[#outputs + 1] = work.row(state, signals) end
  return outputs
end

-- ---- the engine's part ----------------------------------------------------------------------------------------------

local Back = {}
Back.__index = Back

-- A new Back: the gradients that pass from the engine to the user's functions in one backward pass. Its grad_signals
-- {steps, batch, signals} begin with zeros: effort, running and the engine add gradients of signals, which the
-- controller then takes. Clears the gradients of the engine's own network, if it makes the signals.
local function back_of(self)
  local keep, width = self.keep, self.batch * self.signal_count
  local out = setmetatable({ roll = self, width = width,
    grad_signals = ffi.new("double[?]", math.max(self.steps * width, 1)) }, Back)
  if self.engine_policy then
    self.engine_policy:begin_adjoint()
    return out
  end
  out.stress_width = self.batch * #keep.stresses
  out.grad_engine_signals = ffi.new("double[?]", math.max((self.sees and 1 or self.steps) * out.stress_width, 1))
  out.force_grad = keep.f and ffi.new("double[?]", self.batch * keep.force_width) or nil
  out.held_grad = keep.f and ffi.new("double[?]", self.batch * keep.force_width) or nil
  return out
end

-- Raises the error of a failed reverse step of the engine, but not in the name of the user's function that was called
-- last. status: cq_status.
local function require_back(roll, status)
  if status == C.CQ_OK then return end
  roll.phase = nil
  unstable.raise(roll, status)
end

---Multiplies the adjoint of the state that the engine is at, between two control steps, by the decay of one, or cuts it
---at the end of a window; does nothing for exact gradients.
function Back:discount()
  if self.roll.is_exact then return end
  require_back(self.roll, C.cq_rollout_discount(self.roll.handle))
end

---Reverses the engine to state `step`, unless it is at that state: in one call, or where forces are evaluated at each
---engine step by reverse_engine_steps. Adds the gradients of the signals on the way to grad_signals, or of weights to
---the engine's own network, and leaves the gradients of the forces of the step reversed last in force_grad.
function Back:reach(step)
  local roll = self.roll
  if roll.world.pieces > 1 then return self:reverse_engine_steps(step) end
  local count, grad_signals = C.cq_rollout_at(roll.handle) - step, self.grad_signals + step * self.width
  if count == 0 then return end
  if roll.engine_policy then
    return require_back(roll, roll.engine_policy:adjoint(roll, count, self.has_costs and grad_signals or nil))
  end
  require_back(roll, C.cq_rollout_run_adjoint(roll.handle, count,
    self.stress_width > 0 and self.grad_engine_signals or nil, self.force_grad))
  for k = 0, count - 1 do
    roll.keep:add_signals(grad_signals + k * self.width, self.grad_engine_signals + k * self.stress_width)
  end
end

-- Adjoint of forces that are evaluated at an engine step of control step i: evaluates them again on `state`, before
-- that step, and passes their gradients (force_grad) back to it and to grad_signals.
local function forces_adj(self, i, state)
  local roll, inner = self.roll, tape.new()
  local signals = leaf(roll.keep:signals_at(i))
  roll.at = i
  local forces = tape.with(inner, control.forces, roll, state, signals, roll.keep.forces_now)
  local all, outputs, grads = roll.keep:spread_forces(self.force_grad), {}, {}
  for k, force in ipairs(roll.forces) do
    if not force.per_control_step then outputs[#outputs + 1], grads[#grads + 1] = forces[k], all[k] end
  end
  inner:backward(outputs, grads)
  if not signals.grad then return end
  local to, from = self.grad_signals + i * signals.count, signals.grad:data()
  for k = 0, signals.count - 1 do to[k] = to[k] + from[k] end
end

---Reverses one control step, to state `step`, engine step by engine step, since some forces are evaluated at each.
---held_grad becomes the sum of the gradients of forces over these steps, for those constant over the control step.
function Back:reverse_engine_steps(step)
  local roll, pieces = self.roll, self.roll.world.pieces
  local from, to = C.cq_rollout_at(roll.handle), step * pieces
  if from == to then return end
  local count = roll.batch * roll.keep.force_width
  ffi.fill(self.held_grad, count * DOUBLE)
  for at = from - 1, to, -1 do
    backward.limit(roll, at == from - 1)
    require_back(roll, C.cq_rollout_run_adjoint(roll.handle, 1,
      self.stress_width > 0 and self.grad_engine_signals or nil, self.force_grad))
    roll.keep:add_signals(self.grad_signals + step * self.width, self.grad_engine_signals)
    for k = 0, count - 1 do self.held_grad[k] = self.held_grad[k] + self.force_grad[k] end
    if at > to then forces_adj(self, step, states.new(roll, at / pieces)) end
  end
end

-- A list of the gradients of each actuator's forces {count, dim} or {batch, count, dim} at the beginning of the control
-- step that was reversed last.
function Back:forces()
  local roll = self.roll
  local keep = roll.keep
  local out = keep:spread_forces(self.force_grad)
  if roll.world.pieces == 1 then return out end
  for k, grad in ipairs(keep:spread_forces(self.held_grad)) do
    if roll.forces[k].per_control_step then out[k] = grad end
  end
  return out
end

-- ---- the user's part ------------------------------------------------------------------------------------------------

-- The adjoint of running, record and work of control step i: adds to the gradients of the state after it, and of its
-- signals. inner: the tape for this; sets back.has_costs. Errors: another result than in the forward pass.
local function after_step_adj(self, inner, i)
  self.at = i
  local signals = leaf(self.keep:signals_at(i))
  local outputs = tape.with(inner, evaluate, self, i, signals)
  local grads, at = {}, 1
  for _, name in ipairs { "running", "record", "work_rows" } do
    local all = self.wanted[name]
    if all then
      require_same(self, name, outputs[at]:detach():equal(slice_of(self.outputs[name].tensor, outputs[at], i,
        self.steps)))
      grads[at] = slice_of(all, outputs[at], i, self.steps)
      at = at + 1
    end
  end
  inner:backward(outputs, grads)
  if not signals.grad then return end
  self.back.has_costs = true
  local to, from = self.back.grad_signals + i * signals.count, signals.grad:data()
  for k = 0, signals.count - 1 do to[k] = to[k] + from[k] end
end

-- The adjoint of the effort: evaluates it again, and writes its gradient by all signals into back.grad_signals. inner:
-- the tape for this. Errors: another number than in the forward pass.
local function effort_adj(self, inner)
  local grad = self.wanted.effort
  if not grad then return end
  local signals = leaf(self.keep:all_signals())
  local cost = tape.with(inner, control.effort, self, signals)
  require_same(self, "effort", cost:detach():equal(self.effort:detach()))
  inner:backward({ cost }, { grad })
  if not signals.grad then return end
  self.back.has_costs = true
  ffi.copy(self.back.grad_signals, signals.grad:data(), signals.count * DOUBLE)
end

-- Applies decay and window of the adjoint to the gradients of hidden states (memories of observer and controller)
-- between control step i and the step before: multiplies `grads`, a list of tensors or false, in place, and returns it.
local function pass_hidden(self, grads, i)
  local factor = backward.factor(self, i)
  if factor == 1 then return grads end
  for _, grad in ipairs(grads) do
    local data = grad and grad:data()
    for k = 0, grad and grad.count - 1 or -1 do data[k] = factor == 0 and 0 or data[k] * factor end
  end
  return grads
end

-- Raises an error unless observer, controller and force actuators gave in control step i what they gave in the forward
-- pass: signals, memories after the step, and forces.
local function require_repeated(self, i, signals, after, forces)
  local keep = self.keep
  require_same(self, self.observer and "the observer or the controller" or "the controller",
    keep:are_signals(i, signals))
  require_same(self, "a force actuator", keep:are_forces(i, forces))
  for _, who in ipairs { "observer", "controller" } do
    require_same(self, ("the memory of the %s"):format(who), keep:is_memory(i + 1, who, after[who]))
  end
end

-- The adjoint of the Lua part of control step i: calls observer, controller and forces again on the state before it,
-- and passes the gradients of signals and forces back through them. grad_hidden: gradients of the hidden state after
-- it; returns those before it, both a list with a tensor or false for each part. inner: the tape for this.
local function control_step_adj(self, inner, i, grad_hidden)
  if not self.controller and #self.forces == 0 then return grad_hidden end
  self.at = i
  local grad_signals, grad_forces = self.keep:row(self.back.grad_signals, i), self.back:forces()
  local kept = self.keep.hidden[i]
  local hidden = kept and tree.map(kept, "the hidden state", leaf) or {}
  local signals, after, forces = tape.with(inner, control.step, self, states.new(self, i), hidden)
  require_repeated(self, i, signals, after, forces)
  local outputs, grads = { signals }, { grad_signals }
  if control.carries(after) then
    for k, tensor in ipairs(tree.flatten(after, "the hidden state")) do
      outputs[#outputs + 1], grads[#grads + 1] = tensor, grad_hidden[k] or false
    end
  end
  for k, force in ipairs(forces) do
    outputs[#outputs + 1], grads[#grads + 1] = force, grad_forces[k]
  end
  inner:backward(outputs, grads)
  local carried = {}
  if kept then
    for k, tensor in ipairs(tree.flatten(hidden, "the hidden state")) do carried[k] = tensor.grad or false end
  end
  return (i > 0 or continued.is_between(self)) and pass_hidden(self, carried, i) or carried
end

-- The adjoint of the initial memories of observer and controller: passes their gradients, a list of tensors or false,
-- back to parameters that these may depend on.
local function start_adj(self, inner, grad_hidden)
  local any = false
  for _, grad in ipairs(grad_hidden) do any = any or grad end
  if not any then return end
  local start = tape.with(inner, control.start, self)
  self.phase = nil
  inner:backward(tree.flatten(start, "the hidden state"), grad_hidden)
end

---The backward pass of a rollout: carries the gradients in `wanted`, of running {steps, ...}, record {steps, ...},
---effort, contact and work, and gradients that readouts of the final state have added before, back to everything that
---the rollout depends on.
---@param self cq.Rollout
---@param wanted table<"running"|"record"|"effort"|"contact_rows"|"work_rows", cq.Tensor|false|nil>   and `hidden`, a list
---  of gradients by the final memories of observer and controller
local function reverse(self, wanted)
  self:begin_adjoint()
  local back, inner, grad_hidden = back_of(self), tape.new(), wanted.hidden
  self.back, self.wanted = back, wanted
  effort_adj(self, inner)
  if wanted.contact_rows then contact.add_all(self, wanted.contact_rows) end
  for i = self.steps - 1, 0, -1 do
    local costs = self.wanted.running or self.wanted.record or self.wanted.work_rows
    if costs or self.sees then
      back:reach(i + 1)
      if i + 1 < self.steps then back:discount() end
    end
    if costs then after_step_adj(self, inner, i) end
    if self.sees then
      back:reach(i)
      grad_hidden = control_step_adj(self, inner, i, grad_hidden)
    end
  end
  back:reach(0)
  if self.engine_policy then
    self.engine_policy:end_adjoint()
  elseif not self.sees then
    for i = self.steps - 1, 0, -1 do grad_hidden = control_step_adj(self, inner, i, grad_hidden) end
  end
  self.phase, self.at = "the start", nil
  start_adj(self, inner, grad_hidden)
  self.phase = nil
  continued.pass_adjoint(self)
  fields.push_gradients(self.handle, self.set)
  series.push(self.handle, "wall_velocity", self.wall_motion)
  series.push(self.handle, "gravity", self.gravity)
  solver.add_adjoint(self)
  self.reversed = true
  if self.on_reversed then self.on_reversed(self) end
end

return reverse
