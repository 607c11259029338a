-- engine_policy: a rollout whose signals the engine makes by itself. Where a network of cq.Controller sees what one of
-- cq.Observer gives, both are a struct of the engine: a call of it makes as many control steps as nobody in Lua looks
-- at the states between, forward and backward.
local ffi = require "ffi"
local T = require "cq.tensor"
local activations = require "cq.tensor.activation"
local engine = require "cq.base.engine"
local C = engine.C

---@class cq.EnginePolicy
local EnginePolicy = {}
EnginePolicy.__index = EnginePolicy

local engine_policy = {}

-- Sets layer k of the engine's network to copies of weights and biases, since the user may change them before the
-- backward pass reads them, and to zeros for their gradients, all kept in self.given[k]. layer: { w, b, activation }.
local function fill_layer(self, k, layer)
  local w, b = layer.w:detach():copy(), layer.b:detach():copy()
  local grad_w, grad_b = T.zeros(w:shape()), T.zeros(b:shape())
  local to = self.layers[k - 1]
  to["in"], to.out, to.activation = w:size(1), w:size(2), activations[layer.activation]
  to.weight, to.bias, to.grad_weight, to.grad_bias = w:data(), b:data(), grad_w:data(), grad_b:data()
  self.given[k] = { w = layer.w, b = layer.b, grad_w = grad_w, grad_b = grad_b, kept = { w, b } }
end

-- Sets for each signal of the engine which output of the network it takes, with scale and shift. stresses: a list of {
-- signal, scale, shift }.
local function fill_signals(self, stresses)
  local count = #stresses
  self.output, self.scale = ffi.new("int32_t[?]", math.max(count, 1)), ffi.new("double[?]", math.max(count, 1))
  self.shift = ffi.new("double[?]", math.max(count, 1))
  for a, stress in ipairs(stresses) do
    self.output[a - 1], self.scale[a - 1], self.shift[a - 1] = stress.signal, stress.scale, stress.shift
  end
  self.def.output, self.def.scale, self.def.shift = self.output, self.scale, self.shift
end

-- The number of values in a readout of the observer; 0 without a readout.
local function width_of(world, readout)
  return readout and tonumber(C.cq_readout_count(world.handle, readout.def)) or 0
end

---A rollout's observer and controller in a form that the engine evaluates by itself; nil: it cannot.
---@param roll cq.Rollout
---@return cq.EnginePolicy?
function engine_policy.of(roll)
  local observer, controller, world = roll.observer, roll.controller, roll.world
  if not (observer and observer.readouts and controller and controller.layers and #roll.forces == 0) then return nil end
  -- the engine's layers are given observations as they are, and have an activation at their end
  if controller.mean or controller.output then return nil end
  local observation, change = observer:readouts(world)
  if not (observation or change) then return nil end
  -- it would begin without the velocity before
  if change and roll.continues and roll.continues.memory.observer ~= nil then return nil end
  local layers = controller:layers(width_of(world, observation) + width_of(world, change))
  if not layers or #layers > C.CQ_LAYERS_MAX or layers[#layers].w:size(2) ~= roll.signal_count then return nil end
  local self = setmetatable({ observation = observation, change = change, def = ffi.new "cq_policy",
    layers = ffi.new("cq_layer[?]", #layers),
    given = {} }, EnginePolicy)
  for k, layer in ipairs(layers) do fill_layer(self, k, layer) end
  C.cq_policy_init(self.def)
  self.def.layer_count, self.def.layers, self.def.interval = #layers, self.layers, world.control_dt
  self.def.observation, self.def.change = observation and observation.def, change and change.def
  fill_signals(self, world.layout.stress.stresses)
  return self
end

---Makes `count` control steps from `first` on, in which the engine evaluates the policy; writes the controller's
---outputs to the rollout's kept signals.
---@return integer status     cq_status
function EnginePolicy:forward(roll, first, count)
  local outputs = roll.keep.signals + first * roll.batch * roll.signal_count
  return C.cq_rollout_run_policy(roll.handle, self.def, count, outputs)
end

---Clears the gradients of weights and biases at the beginning of a backward pass.
function EnginePolicy:begin_adjoint()
  for _, layer in ipairs(self.given) do
    ffi.fill(layer.grad_w:data(), layer.grad_w.count * 8)
    ffi.fill(layer.grad_b:data(), layer.grad_b.count * 8)
  end
end

---Reverses the last `count` control steps before the engine's present state, and adds to the gradients of weights and
---biases.
---@param grad ffi.cdata*?     double {count, batch, signals}: gradient of the signals by costs in Lua
---@return integer status     cq_status
function EnginePolicy:adjoint(roll, count, grad)
  return C.cq_rollout_run_policy_adjoint(roll.handle, self.def, count, grad)
end

---Adds the gradients of weights and biases to the user's tensors, at the end of a backward pass.
function EnginePolicy:end_adjoint()
  for _, layer in ipairs(self.given) do
    layer.w:accumulate(layer.grad_w)
    layer.b:accumulate(layer.grad_b)
  end
end

return engine_policy
