-- train: a controller of pulse trains, whose signs and sizes are trained as the weights of any controller are.
local T = require "cq.tensor"
local controllers = require "cq.controller"
local fit = require "cq.controller.fit"

local Train = setmetatable({ __name = "cq.Controller", family = "pulses", blind = true,
  __tostring = controllers.class.__tostring },
  { __index = controllers.class })
Train.__index = Train

-- Whole pulses or none, with the gradient of what they are made from: the loss is that of the binary train.
local function rounded(self, amplitudes)
  local binary = T.tape.pause(self.pulses.binary, self.pulses, self.params.sign, self.params.size)
  return amplitudes + (binary - amplitudes:detach())
end

-- signals of all control steps, on the tape that the rollout is on
function Train:check_rollout(roll)
  local sizes, of = { self.pulses.count, roll.signal_count }, { "pulses", "signals" }
  fit.require("pulses:controller", self.params, { { name = "sign", sizes = sizes, of = of },
    { name = "size", sizes = sizes, of = of } })
  local amplitudes = self.pulses:amplitudes(self.params.sign, self.params.size)
  self.loop = controllers.open_loop(self.pulses:signals(self.binary and rounded(self, amplitudes) or amplitudes))
  self.loop:check_rollout(roll)
  self.signals = roll.signal_count
end

function Train:act(...) return self.loop:act(...) end

---@param pulses cq.Topology.Pulses
---@param params { sign: cq.Tensor, size: cq.Tensor }
---@param binary boolean
---@return cq.Controller
return function(pulses, params, binary)
  return setmetatable({ pulses = pulses, params = params, binary = binary }, Train)
end
