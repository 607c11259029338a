-- effects: options of a world that have no effect, since it lacks what they are about.
local is = require "cq.base.schema"

local effects = {}

-- Is there an entry of a list for which has(entry) is true?
local function any(list, has)
  for _, entry in ipairs(list) do
    if has(entry) then return true end
  end
  return false
end

-- Is any material of a robot a liquid?
local function is_liquid(robot)
  return any(robot.laws, function(material) return material.law == "fluid" end)
end

---Is there a liquid in any of these robots, so that its pressure can be smoothed?
---@param robots cq.Robot[]
---@return boolean
function effects.have_liquid(robots) return any(robots, is_liquid) end

---Has any of these walls friction, so that bodies stick to it below some speed?
---@param walls cq.Boundary[]
---@return boolean
function effects.have_friction(walls) return any(walls, function(wall) return wall.kind == "friction" end) end

-- Raises an error: an option has no effect, since there is no `what`.
local function fail(option, what) is.fail("cq.World: %s has no effect, %s; leave it out", option, what) end

---Raises an error if pressure or cables of a world's implicit steps are "implicit" and no robot has such an actuator;
---unless the world is a copy of another one, with other robots, also if it has a stick_velocity without friction, or a
---pressure_smoothing without a liquid, for which the engine has a sentence under total Lagrangian steps.
---@param world cq.World      with def, robots and walls
---@param is_copy? boolean
function effects.check(world, is_copy)
  local def, robots = world.def, world.robots
  local integrator = def.integrator or {}
  if integrator.cables == "implicit" and not any(robots, function(robot) return #robot.cables > 0 end) then
    fail("integrator: cables = \"implicit\"", "no robot has a cable (cq.Actuator.cable)")
  elseif integrator.pressure == "implicit" and not any(robots, function(robot) return #robot.surfaces > 0 end) then
    fail("integrator: pressure = \"implicit\"",
      "no robot has a surface under pressure (cq.Actuator.follower_pressure)")
  elseif is_copy then
    return
  end
  if integrator.stick_velocity and not effects.have_friction(world.walls) then
    fail("integrator: stick_velocity", "no wall has friction (kind = \"friction\", with mu)")
  elseif def.pressure_smoothing > 0 and def.formulation == "updated" and not effects.have_liquid(robots) then
    fail("pressure_smoothing", "no robot has a liquid (cq.Material.fluid)")
  end
end

return effects
