-- interpolate: records of a rollout at times between its control steps.
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local make = require "cq.tensor.make"
local tape = require "cq.tensor.tape"

local Tensor = class.methods
local fail = schema.fail

-- For times: lists of the row of the record before each (from 1), of the row after it, and of the share of the latter.
-- period: the control step; count: of rows. Errors: a time outside of the record.
local function rows_of(times, period, count)
  local before, after, share = {}, {}, {}
  for k, time in ipairs(times) do
    local at = time / period
    -- a time that is a control step up to rounding is that step
    local whole = math.floor(at + 0.5)
    if math.abs(at - whole) < 1e-9 * math.max(1, whole) then at = whole end
    if not (at >= 1 and at <= count) then
      fail("record:at: time %s lies outside of what was recorded, which is from the first control step's end, %s, to %s%s",
        schema.describe(time), schema.describe(period), schema.describe(count * period),
        at < 1 and "; leave it out, or compare it with the state at the start" or "")
    end
    before[k] = math.min(math.floor(at), count)
    after[k] = math.min(before[k] + 1, count)
    share[k] = at - before[k]
  end
  return before, after, share
end

---What a rollout recorded, at times of one's own, as those of a measurement: linear between control steps, with the
---gradient of that. Times may depend on parameters, such as an unknown offset between two clocks: their gradient is the
---slope of the interval, at the end of a control step that of the interval after it, at the last one of the one before.
---Of roll.record and roll.running; the first row of these is the state after the first control step.
---Errors: a tensor that no rollout recorded, a time before the first control step's end or after the last.
---
---  local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 },
---    material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
---  local world = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 0.01, substeps = 10, gravity = { 0, -1 },
---    robot:at { 0.3, 0.4 } }
---  local roll = world:rollout { steps = 20, record = function(state) return state:center(robot) end }
---  print(roll.record:at({ 0.055, 0.1 }):size(1))                       --> 2
---@param times number[]|cq.Tensor    {n} since the start of the rollout [time]
---@return cq.Tensor                   {n, ...}
function Tensor:at(times)
  class.check_tensor(self, "at")
  local period = rawget(self, "period")
  if not period then
    fail "tensor:at: this tensor has no times; at is for roll.record and roll.running; take it first, and change the shape of what it gives"
  end
  local wanted = make.as_tensor(times, "record:at: times")
  if wanted.rank ~= 1 then fail("record:at: times must be a list, got a tensor of rank %d", wanted.rank) end
  local count = self.dims[1]
  local before, after, share = rows_of(wanted:totable(), period, count)
  local sizes = { #share }
  for d = 2, self.rank do sizes[d] = 1 end
  local first = self:gather(before, 1)
  local out = first + make.tensor(share):reshape(sizes) * (self:gather(after, 1) - first)
  if not tape.wants(wanted) then return out end
  -- no row follows the last time: its slope is that of the interval before it
  for k, row in ipairs(before) do
    before[k], after[k] = math.max(1, math.min(row, count - 1)), math.min(row + 1, count)
  end
  local rows = self:detach()
  local slope = (rows:gather(after, 1) - rows:gather(before, 1)) / period
  -- adds zero, with the slope as the gradient of the times
  return out + (wanted - wanted:detach()):reshape(sizes) * slope
end

return Tensor
