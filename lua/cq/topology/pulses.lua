-- pulses: signals as trains of Gaussian pulses, each with a sign and a magnitude (Yuhn et al., eqs 24 to 26).
local method = require "cq.base.method"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

---@class cq.Topology.Pulses
---@field count integer       pulses of each signal, or of one period
---@field all integer         pulses of each signal, with those that come again
---@field steps integer       control steps
---@field kernel cq.Tensor    {steps, count} what each pulse gives to each control step
---@field is_periodic boolean do they come again within the duration?
local Pulses = { __name = "cq.Topology.Pulses" }
Pulses.__index = Pulses

local spec = is.define("cq.Topology.pulses", {
  duration = is.number { above = 0 }, control_dt = is.number { above = 0 },
  interval = is.number { above = 0 }, width = is.number { above = 0 }, gain = is.number { above = 0 },
  period = is.number { above = 0, optional = true },
}, nil, is.renamed { every = "interval", height = "gain" })

-- How often the time `part` goes into the time `whole`. Errors: not a whole number of times; what and of: their names.
local function times(whole, part, what, of)
  local count = math.floor(whole / part + 0.5)
  if count < 1 or math.abs(whole / part - count) > 1e-6 * count then
    is.fail("cq.Topology.pulses: %s must be a multiple of %s, got %s and %s", what, of, text.number(whole),
      text.number(part))
  end
  return count
end

-- A matrix {all, count} of 0 and 1 that repeats the `count` pulses of a period over all pulses of the rollout.
local function repeated(all, count)
  local out = T.zeros { all, count }
  for k = 1, all do out:set(1, k, (k - 1) % count + 1) end
  return out
end

---@class cq.Topology.pulses.def
---@field duration number      a multiple of interval and of control_dt [time]
---@field control_dt number    for which a signal is held [time]
---@field interval number      between pulses; at least a control step [time]
---@field width number         standard deviation of a pulse; at least a control step [time]
---@field gain number          of a pulse, before tanh
---@field period? number        after which the pulses come again; a multiple of interval, none unless given [time]

---Trains of pulses: u(t) = tanh(sum_k a_k gain exp(-(t - t_k)^2 / (2 width^2))), t in the middle of control steps,
---t_k in the middle of the time of a pulse, a = sign (magnitude + 1) / 2.
---Errors: times that do not fit each other.
---@param fields cq.Topology.pulses.def
---@return cq.Topology.Pulses
local function new(fields)
  local self = setmetatable(spec(fields), Pulses)
  self.steps = times(self.duration, self.control_dt, "duration", "control_dt")
  local all = times(self.duration, self.interval, "duration", "interval")
  self.count = self.period and math.min(all, times(self.period, self.interval, "period", "interval")) or all
  self.all, self.is_periodic = all, self.count < all
  for _, name in ipairs { "interval", "width" } do
    if self[name] < self.control_dt * (1 - 1e-9) then
      is.fail("cq.Topology.pulses: %s is %s and must be at least a control step, %s: signals are held for that long",
        name, text.number(self[name]),
        text.number(self.control_dt))
    end
  end
  local t, at = (T.arange(1, self.steps) - 0.5) * self.control_dt, (T.arange(1, all) - 0.5) * self.interval
  -- All entries, though few count: of 10,000 steps and 1,000 pulses they are 80 MB, and a gradient through them takes
  -- 31 ms, little beside that of the rollout. A sparse sum has other last bits, and gaits that are known follow them.
  self.kernel = self.gain * (-(t:unsqueeze(2) - at:unsqueeze(1)):square() / (2 * self.width * self.width)):exp()
  if self.is_periodic then self.kernel = self.kernel:matmul(repeated(all, self.count)) end
  return self
end

-- The pulses in one line: count, width and period.
function Pulses:__tostring()
  return ("cq.Topology.pulses { %d of width %s%s }"):format(self.count, text.number(self.width),
    self.is_periodic and (", again after %s"):format(text.number(self.period)) or "")
end

-- The number of signals of a tensor of pulses. Errors: another shape than {count, signals}; signals: nil for any.
local function require_rows(self, what, name, given, signals)
  local got = T.is_tensor(given) and "{" .. table.concat(given:shape(), ", ") .. "}" or text.describe(given)
  if not T.is_tensor(given) or given.rank ~= 2 or given:size(1) ~= self.count
    or signals and given:size(2) ~= signals then
    is.fail("%s: %s must be {pulses, signals} = {%d, %s}, got %s", what, name, self.count, signals or "n", got)
  end
  return given:size(2)
end

-- Raises an error if signs and magnitudes are no tensors, or have two shapes.
local function require_pair(what, sign, magnitude)
  is.argument(what, "sign", is.tensor(), sign)
  is.argument(what, "magnitude", is.tensor(), magnitude)
  local a, b = table.concat(T.as_tensor(sign, what):shape(), ", "), table.concat(T.as_tensor(magnitude, what):shape(),
    ", ")
  if a ~= b then is.fail("%s: sign and magnitude must have one shape, {pulses, signals}, got {%s} and {%s}", what, a,
    b) end
end

---Signs and magnitudes to amplitudes in [-1, 1].
---@param sign cq.Tensor      {count, signals}, in [-1, 1]
---@param magnitude cq.Tensor      {count, signals}, in [-1, 1]: -1 is none, 1 a full pulse
---@return cq.Tensor          {count, signals}
function Pulses:amplitudes(sign, magnitude)
  require_pair("pulses:amplitudes", sign, magnitude)
  return sign * (magnitude + 1) * 0.5
end

---Amplitudes of -1, 0 and 1: 0 where a pulse's magnitude is not above 0, else -1 where its sign is below 0, else 1.
---@param sign cq.Tensor      {count, signals}
---@param magnitude cq.Tensor      {count, signals}
---@return cq.Tensor          {count, signals}; without a gradient
function Pulses:rounded(sign, magnitude)
  require_pair("pulses:rounded", sign, magnitude)
  return T.where(magnitude:less_equal(0), 0, T.where(sign:less(0), -1, 1))
end

---Signals {steps, signals} at all control steps, from the amplitudes of pulses.
---@param amplitudes cq.Tensor      {count, signals}
---@return cq.Tensor                {steps, signals}, in (-1, 1)
function Pulses:signals(amplitudes)
  require_rows(self, "pulses:signals", "amplitudes", amplitudes)
  return self.kernel:matmul(amplitudes):tanh()
end

---@class pulses.controller.def
---@field sign cq.Tensor       {count, signals}, in [-1, 1]
---@field magnitude cq.Tensor       {count, signals}, in [-1, 1]
---@field rounding? boolean    amplitudes of -1, 0 and 1 alone, with the gradient as if they were not rounded: for
---  pulses that are trained as they will be used

local controller_spec = is.define("pulses:controller",
  { sign = is.tensor(), magnitude = is.tensor(), rounding = is.boolean { default = false } })

---A controller of these pulses, whose parameters are sign and magnitude.
---@param fields pulses.controller.def
---@return cq.Controller
function Pulses:controller(fields)
  local def = controller_spec(fields)
  require_rows(self, "pulses:controller", "magnitude", def.magnitude, require_rows(self, "pulses:controller", "sign",
    def.sign))
  -- A given tensor: a parameter, or one that depends on parameters, as it is, others as a parameter in [-1, 1].
  local function param(name)
    local t = def[name]
    return (t.trainable or t.requires_grad) and t or T.param(t, { min = -1, max = 1 })
  end
  return require "cq.topology.pulse_controller"(self, { sign = param "sign", magnitude = param "magnitude" },
    def.rounding)
end

method.guard(Pulses, "pulses")

return new
