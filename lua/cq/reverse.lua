-- reverse: the way back through a rollout, see rollout.lua.
local ffi = require "ffi"
local T = require "cq.tensor"
local is = require "cq.schema"
local engine = require "cq.engine"
local fields = require "cq.fields"
local policy = require "cq.policy"
local states = require "cq.state"
local tree = require "cq.tree"
local C, tape = engine.C, T.tape

local DOUBLE = ffi.sizeof "double"

local function leaf(tensor)
  local out = tensor:detach()
  out.requires_grad = true
  return out
end

-- functions of the user's run once more on the way back: gradients are those of what was computed only if they do the same again
local function require_same(self, name, same)
  if same then return end
  self.phase = name
  is.fail("%s gave another result when it ran again on the same state for its gradient; it must depend on nothing but its arguments", name)
end

-- the gradient of one control step from that of all of them
local function slice_of(grads, tensor, i, steps)
  local count = grads.count / steps
  local shape = tensor:shape()
  local out = T.empty(shape)
  ffi.copy(out:data(), grads:data() + i * count, count * DOUBLE)
  return out
end

-- running and record once more, on the state after control step i, with its signals as a leaf
local function evaluate_look(self, i, u)
  local state, outputs = states.new(self, i + 1), {}
  if self.wanted.running then
    self.phase = "running"
    outputs[#outputs + 1] = T.as_tensor(self.running_cost(state, u))
  end
  if self.wanted.record then
    self.phase = "record"
    outputs[#outputs + 1] = T.as_tensor(self.recorder(state))
  end
  self.phase = nil
  return outputs
end

-- the gradient of the signals from running; nil: they have none
local function look_back(self, inner, i)
  if not (self.wanted.running or self.wanted.record) then return end
  local u = leaf(self.keep:signals_at(i))
  local outputs = tape.with(inner, evaluate_look, self, i, u)
  local grads, at = {}, 1
  for _, name in ipairs { "running", "record" } do
    local all = self.wanted[name]
    if all then
      require_same(self, name, outputs[at]:detach():equal(slice_of(self.outputs[name].tensor, outputs[at], i, self.steps)))
      grads[at] = slice_of(all, outputs[at], i, self.steps)
      at = at + 1
    end
  end
  inner:backward(outputs, grads)
  return u.grad
end

-- observer, controller and force actuators once more, on the state that control step i began with
local function drive_back(self, inner, i, grad_u, grad_forces, grad_hidden)
  local kept = self.keep.hidden[i]
  local hidden = kept and tree.map(kept, "the hidden state", leaf) or {}
  local u, after, forces = tape.with(inner, policy.drive, self, states.new(self, i), hidden)
  require_same(self, "the controller", self.keep:are_signals(i, u))
  local outputs, grads = { u }, { grad_u }
  if policy.carries(after) then
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
  return carried
end

-- the first hidden state may depend on parameters too
local function start_back(self, inner, grad_hidden)
  local any = false
  for _, grad in ipairs(grad_hidden) do any = any or grad end
  if not any then return end
  local start = tape.with(inner, policy.start, self)
  self.phase = nil
  inner:backward(tree.flatten(start, "the hidden state"), grad_hidden)
end

---Carries the gradients of running {steps, ...} and record {steps, ...}, and of readouts of the final state that have been
---added already, back to everything that the rollout depends on.
---@param self cq.Rollout
---@param wanted { running: cq.Tensor|false|nil, record: cq.Tensor|false|nil }
local function reverse(self, wanted)
  self:begin_adjoint()
  self.reversing, self.wanted = true, wanted
  if self.follow then
    self.follow:backward(self)
    fields.push_gradients(self.handle, self.set)
    return
  end
  local keep, handle, inner = self.keep, self.handle, tape.new()
  local stress_count = #keep.stresses
  local stride, width = self.stride, self.batch * stress_count
  local engine_grad = ffi.new("double[?]", math.max(stride * width, 1))
  local force_grad = keep.f and ffi.new("double[?]", self.batch * keep.force_width) or nil
  local grad_hidden = {}
  for first = self.steps - stride, 0, -stride do
    self.at = first + stride - 1
    local looked = look_back(self, inner, self.at)
    engine.check(C.cq_rollout_run_adjoint(handle, stride, stress_count > 0 and engine_grad or nil, force_grad), "world:rollout")
    for i = first + stride - 1, first, -1 do
      if not self.controller and #self.forces == 0 then break end
      self.at = i
      local grad_u = looked or keep:zero_signals()
      keep:add_signals(grad_u:data(), engine_grad + (i - first) * width)
      grad_hidden = drive_back(self, inner, i, grad_u, keep:spread_forces(force_grad), grad_hidden)
    end
  end
  self.phase = "the start"
  start_back(self, inner, grad_hidden)
  self.phase = nil
  fields.push_gradients(handle, self.set)
end

return reverse
