-- pulse_controller: trains of pulses as a controller, whose signs and magnitudes are trained as weights are.
local T = require "cq.tensor"
local controllers = require "cq.controller"
local fit = require "cq.controller.fit"
local tables = require "cq.base.tables"

local PulseController = setmetatable({ __name = "cq.Controller", family = "pulses", blind = true,
  __tostring = controllers.class.__tostring },
  { __index = controllers.class })
PulseController.__index = PulseController

-- Amplitudes {pulses, signals} rounded to -1, 0 or 1, with the gradients of the smooth ones: the loss is that of the
-- rounded train.
local function rounded(self, amplitudes)
  local whole = T.tape.pause(self.pulses.rounded, self.pulses, self.params.sign, self.params.magnitude)
  return amplitudes + (whole - amplitudes:detach())
end

-- Computes the signals of all control steps before a rollout, on its tape; returns a controller of this rollout alone,
-- whose act only reads them, as the backward pass of each rollout asks for them again. Errors: parameters of another
-- shape than pulses and signals.
function PulseController:check_rollout(roll)
  local sizes, of = { self.pulses.count, roll.signal_count }, { "pulses", "signals" }
  fit.require("pulses:controller", self.params, { { name = "sign", sizes = sizes, of = of },
    { name = "magnitude", sizes = sizes, of = of } })
  local amplitudes = self.pulses:amplitudes(self.params.sign, self.params.magnitude)
  local loop = controllers.open_loop(self.pulses:signals(self.rounding and rounded(self, amplitudes) or amplitudes))
  loop:check_rollout(roll)
  self.signals = roll.signal_count
  return setmetatable(tables.merged(self, { loop = loop }), PulseController)
end

-- The signals of this control step, as an open loop of the signals made by check_rollout gives them.
function PulseController:act(...) return self.loop:act(...) end

---A controller of pulses, whose sign and magnitude are trained. rounding: signals are of whole pulses or none.
---@param pulses cq.Topology.Pulses
---@param params { sign: cq.Tensor, magnitude: cq.Tensor }
---@param rounding boolean
---@return cq.Controller
return function(pulses, params, rounding)
  return setmetatable({ pulses = pulses, params = params, rounding = rounding }, PulseController)
end
