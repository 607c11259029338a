-- loose: particles of materials that flow, so that they do not stay beside each other: a body of them has no surface.
local flowing = { fluid = true, drucker_prager = true }

---Numbers from 1 of a robot's particles that flow; false: none, true: all.
---@param robot cq.Robot
---@return integer[]|boolean
return function(robot)
  local list = {}
  for p = 0, robot.particle_count - 1 do
    if flowing[robot.laws[robot.law[p] + 1].law] then list[#list + 1] = p + 1 end
  end
  return #list == robot.particle_count or #list > 0 and list
end
