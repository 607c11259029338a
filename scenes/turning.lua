-- turning: the angle by which a body turns about the vertical in a control step, angular momentum by polar moment of
-- inertia, both about the centre of mass, times the step's duration (Yuhn et al., 4D topology optimization, eq. 36). In
-- 3D; a function of the state, for `running` of an objective.
local cq = require "cq"

---@param world cq.World
---@return fun(state: cq.State): cq.Tensor     [radian]
return function(world)
  local robot = world.robots[1]
  return function(state)
    local motion = state:motion(robot)
    local x, v = motion:slice(1, 3), motion:slice(4, 6)
    local spin = state:mean(robot, "angular_momentum")[2] - (x[3] * v[1] - x[1] * v[3])
    local inertia = (state:moment(robot, { about = "origin" }) * cq.eye(3)):sum() - x:dot(x)
    return spin / inertia * world.control_dt
  end
end
