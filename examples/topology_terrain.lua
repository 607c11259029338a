-- A walker over hills from one block, printed and read again.                      cqlua examples/topology_terrain.lua
-- Source: none; the method of examples/topology_walker.lua on hills of 17 degrees. The body is written as STL, one for
-- each actuator, read as meshes, filled with particles anew, and goes with the same signals.
-- Expect: 0.361 m with --seed 1, over the first hill and onto the second; from its surfaces 100 % of it, and 93 % with
-- particles that are closer by a fifth: 821 in the place of 525.
-- Size: 1,600 particles, 500 x 10 steps. Time: 6 min.
local cq = require "cq"

-- the body from its files, in the place where it was made
local function read_again(scene, files, spacing)
  local parts = {}
  for _, path in ipairs(files) do
    parts[path:match "_(%w+)%.stl$"] = cq.Shape.mesh { path = path, section = scene.design.filter.radius / 2,
      spacing = spacing }
  end
  local robot = cq.Robot { name = "printed", shape = parts.whole, material = scene.material,
    actuators = scene.actuators }
  local x, weight = robot.position, cq.zeros { robot.particle_count, scene.design.signals }
  for p = 1, robot.particle_count do
    for a = 1, scene.design.signals do
      local part = parts[tostring(a)]
      if part and part:contains(x:get(p, 1), x:get(p, 2)) then weight:set(-1, p, a) end    -- positive pulses expand
    end
  end
  return robot:with { actuation_weight = weight }
end

-- how far it goes with the signals of the other
local function way(scene, robot, controller)
  local world = scene.world:with_robots { robot:at { 0, 0 } }
  local steps = math.floor(scene.duration / world.control_dt + 0.5)
  local roll = world:rollout { steps = steps, controller = controller }
  return (roll.state:center()[1] - roll:start():center()[1]):item()
end

local function print_and_read(scene, solid, files, values)
  for k, share in ipairs { 1, 0.8 } do
    local robot = read_again(scene, files, share * scene.design.spacing)
    local there = way(scene, robot, solid.controller)
    values[k == 1 and "printed" or "printed_closer"] = -there
    print(("read from its surfaces, %d particles in the place of %d: %.4f m, %.0f %% of the way"):format(
      robot.particle_count, solid.robot.particle_count, there, -100 * there / values.loss))
  end
end

-- hills begin where the block ends, and are 0.7 m long
if cq.option("coarse", 1) ~= 1 and cq.option("method", "ours") == "ours" then
  error("--coarse must be 1 without --method paper: the block four times as coarse that it would begin on stands in the first hill", 0)
elseif cq.option("duration", 0) > 0.5 then
  error(("--duration must be at most 0.5, got %g: a walker comes to the end of its hills"):format(
    cq.option("duration", 0)), 0)
end
require("scenes.topology_method").run("terrain", { after = print_and_read })
