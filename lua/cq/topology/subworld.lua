-- subworld: some of the particles of a design's block, in the design's world without the others.

---A new world like the design's in which the design's robot has only some of its particles.
---@param design cq.Topology
---@param robot cq.Robot      of some of the particles of the design's robot
---@return cq.World world     with this robot in the place of the design's
---@return cq.Robot robot     as it is placed there
---@return integer at         its number there
return function(design, robot)
  local robots, at = {}, nil
  for k, own in ipairs(design.world.robots) do
    if own == design.robot then at = k end
    robots[k] = own == design.robot and robot or own
  end
  -- memos of the whole block and of earlier bodies would double the memory of a training
  design.world.pool:trim()
  if design.remaining.world then design.remaining.world.pool:trim() end
  local world = design.world:with_robots(robots)
  return world, world.robots[at], at
end
