-- A walker over hills from one block, printed and read again.                      cqlua examples/topology_terrain.lua
-- Source: none; the default plan on hills of 17 degrees. The body is written as STL, one for each actuator, read as
-- meshes, filled with particles anew, and goes with the same signals.
-- Expect: 0.288 m with --starts 1 --seed 101 (AVX2; 0.299 m with AVX-512); the method before plans gave
-- 0.36 m. From its surfaces it goes as far, for they hold the same particles.
-- Kept: 90 and 82 % with 2 and 4 times the substeps, 91 % on a finer grid, 92 % at 5 % of anything (cqlua robust).
-- Size: 1,600 particles, 500 x 10 steps, 650 iterations of a start. Time: 6 min of one core for a start.
local cq = require "cq"

local HILL, PERIOD, FRONT = 0.02, 0.2, 0.3              -- as high as a tenth of the block, from its front on
local material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 }
local actuators = cq.Actuator.isotropic { count = 4, max = 1e4 }

-- a wall: hills from `floor` upwards, of the shape of a cosine
local function hills(floor)
  local heights, spacing = {}, 0.005
  for k = 0, math.floor(0.7 / spacing + 0.5) do
    heights[k + 1] = floor + 0.5 * HILL * (1 - math.cos(2 * math.pi * k * spacing / PERIOD))
  end
  return cq.Boundary.height_field { name = "hills", heights = heights, spacing = spacing, origin = FRONT,
    kind = "sticky", separable = true }
end

-- fields of the experiment, with cells of the grid larger by the factor level.coarsen
local function walker(level)
  local k = level.coarsen
  local n, steps = math.ceil(100 / k), math.ceil(500 / k)         -- cells of a metre, and control steps
  local dx = 0.01 * k
  local block = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = dx / 2 }, material = material,
    actuators = actuators }
  local world = cq.World {
    cells = { n, n }, dx = dx, gravity = { 0, -9.8 }, dt = 0.5 / steps, substeps = 10,
    walls = { cq.Boundary.box { name = "room", kind = "sticky", separable = true, inset = 3 * dx }, hills(3 * dx) },
    block:at { 0.1, 3 * dx },
  }
  return {
    world = world, duration = 0.5, design = cq.Topology { world = world, duration = 0.5, connected = true },
    objective = { running = function(state) return -world.control_dt * state:velocity(block)[1] end },
  }
end

-- the printed robot from STL files, of its whole and of each signal's part, in the place where it was made
local function read_again(design, paths, spacing)
  local parts = {}
  for _, path in ipairs(paths) do
    parts[path:match "_(%w+)%.stl$"] = cq.Shape.mesh { path = path, section = design.filter.radius / 2,
      spacing = spacing }
  end
  local robot = cq.Robot { name = "printed", shape = parts.whole, material = material, actuators = actuators }
  local x, weight = robot.position, cq.zeros { robot.particle_count, design.signals }
  for p = 1, robot.particle_count do
    for a = 1, design.signals do
      local part = parts[tostring(a)]
      if part and part:contains(x:get(p, 1), x:get(p, 2)) then weight:set(-1, p, a) end    -- positive pulses expand
    end
  end
  return robot:with { actuation_weight = weight }
end

local count = cq.option("starts", 4)
local run = cq.Experiment(walker)
run:optimize { plan = cq.Plan.topology { starts = { count = count, keep = math.min(2, count), at = "binary" } } }
local found, design, body = run:evaluate(), run.design, run.body
print(found, body)
local paths = body:save_surface("terrain.stl", { thickness = design.filter.radius })
for _, share in ipairs { 1, 0.8 } do
  local robot = read_again(design, paths, share * design.spacing)
  local roll = run.world:with_robots({ robot:at { 0, 0 } }):rollout { steps = run.steps, controller = body.controller }
  local way = (roll.state:center()[1] - roll:start():center()[1]):item()
  print(("read from its surfaces, %d particles in the place of %d: %.4f m, %.0f %% of the way"):format(
    robot.particle_count, #body.particles, way, -100 * way / found.loss))
end
run:render "terrain.mp4"
run:figures "terrain.png"
