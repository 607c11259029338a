-- fixed: a world stays as it was made: fields that a script assigns to it, its walls, robots or their materials later
-- do not reach the engine, and are errors.
local made = require "cq.base.made"

local fixed = {}

local names = { "control_dt", "dim", "robot", "robots", "gravity_at", "particle_count", "actuator_count" }

---Remembers the world as it is now. fields: its constructor's, by name.
---@param world cq.World
---@param fields table
function fixed.remember(world, fields)
  local all = { unpack(names) }
  for name in pairs(fields) do all[#all + 1] = name end
  made.remember(world, all)
end

---Raises an error if a field of the world, its walls, robots, or their materials and actuators was assigned later.
---@param world cq.World
function fixed.require(world)
  made.require(world, "cq.World", "make another world with it, or give it to world:rollout, where it has such a field")
  for _, wall in ipairs(world.walls) do wall:require_unchanged() end
  for _, robot in ipairs(world.robots) do robot:require_unchanged() end
end

return fixed
