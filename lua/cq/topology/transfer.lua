-- transfer: the variables of a design on another lattice and with other times of pulses.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local transfer = require "cq.robot.transfer"

-- For each pulse of one design, a list: the number of the pulse of another design (`others`) at the same time, or at
-- the same time of a period.
local function same_time(pulses, others)
  local out = {}
  for k = 1, pulses.count do
    local at = math.floor((k - 0.5) * pulses.interval / others.interval)
    out[k] = (others.is_periodic and at % others.count or math.min(at, others.count - 1)) + 1
  end
  return out
end

-- Raises an error for a transfer between designs of different durations, unless the other design's pulses repeat, or to
-- pulses whose period the other design lacks.
local function check_times(design, other)
  local ours, theirs = design.pulses, other.pulses
  if math.abs(other.duration - design.duration) > 1e-6 * design.duration and not theirs.is_periodic then
    is.fail("design:transfer: both designs must have the same duration, unless the pulses of the other one come again within its own; got %s here and %s there",
      text.number(design.duration), text.number(other.duration))
  end
  if ours.is_periodic and not (theirs.is_periodic and math.abs(theirs.period - ours.period) < 1e-6 * ours.period) then
    is.fail("design:transfer: pulses that come again after %s are not made from %s", text.number(ours.period),
      theirs.is_periodic and "others that come again after " .. text.number(theirs.period) or "others that do not")
  end
end

---Values for the variables of a design from those of another one: of the nearest particle, and of the pulse at the same
---time. Errors: other signals or dimensions; times.
---@param design cq.Topology
---@param other cq.Topology
---@param params table
---@return { density: cq.Tensor, layout: cq.Tensor, sign: cq.Tensor, magnitude: cq.Tensor }
return function(design, other, params)
  is.argument("design:transfer", "other", is.instance "cq.Topology", other)
  params = other:own(params)
  if other.signals ~= design.signals or other.robot.dim ~= design.robot.dim then
    is.fail("design:transfer: both designs must have as many signals and dimensions, got %s in %dD here and %s in %dD there",
      text.count(design.signals, "signal"), design.robot.dim, text.count(other.signals, "signal"), other.robot.dim)
  end
  check_times(design, other)
  local near, at = transfer.nearest(design.robot, other.robot), same_time(design.pulses, other.pulses)
  return {
    density = params.density:gather(near, 1), layout = params.layout:gather(near, 2),
    sign = params.sign:gather(at, 1), magnitude = params.magnitude:gather(at, 1),
  }
end
