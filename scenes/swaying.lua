-- swaying: how far the particles "tip" of a body are in their mean from where they begin, which a balancer keeps small
-- (Yuhn et al., 4D topology optimization, section 4.1.3). A function of the state, for `running` of an objective.

---@param world cq.World        with one robot, which has a group "tip"
---@return fun(state: cq.State): cq.Tensor     [length]
return function(world)
  local robot = world.robots[1]
  local first = robot.position:gather(robot:group("tip"):particles(), 1):mean(1)
  return function(state) return (state:center("tip", { weight = "particle" }) - first):norm() end
end
