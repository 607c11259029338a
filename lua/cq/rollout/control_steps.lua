-- control_steps: the number of control steps in a time.
local is = require "cq.base.schema"
local text = require "cq.base.text"

---The number of control steps in a time. Errors: a time that is no multiple of the world's control step.
---@param time number        above 0 [time]
---@param world cq.World
---@param what string        the time's name for the error, as "cq.Experiment: duration"
---@return integer
return function(time, world, what)
  local exact = time / world.control_dt
  local steps = math.floor(exact + 0.5)
  if steps < 1 or math.abs(exact - steps) > 1e-6 * exact then
    is.fail("%s must be a multiple of the control step %s, got %s", what, text.number(world.control_dt),
      text.number(time))
  end
  return steps
end
