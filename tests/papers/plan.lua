-- What does the default plan reach on bodies that nobody tuned on?
--   cqlua study run tests/papers/plan.lua --body jumper --seeds 8 --jobs 1 [--dx 0.01] [--duration 1.2]
-- One start of each seed; a larger number of seeds goes on with those that are there. A trial gives the loss of the
-- extracted body, its loss without any signal, and the share of the block that is solid. Bodies: an arch and a wheel
-- that go along x, a jumper that is paid for its height above its own start, a crawler between a floor and a roof, and
-- a slab in space.
local cq = require "cq"
local is = require "cq.base.schema"

local fine = cq.option("dx", 0.02)

local function isotropic(young) return cq.Actuator.isotropic { count = 4, max = 0.1 * young } end

local function material(young) return cq.Material.neo_hookean { young = young, poisson = 0.4, density = 1000 } end

-- a problem: a robot in a world, and the way along x in a time
local function problem(world, duration, objective, connected)
  local block = world.robot
  duration = cq.option("duration", duration)
  return {
    world = world, duration = duration, design = cq.Topology { world = world, duration = duration,
      connected = connected ~= false },
    objective = objective or { running = function(state) return -world.control_dt * state:velocity(block)[1] end },
  }
end

local bodies = {}

function bodies.arch(level)
  local dx = fine * level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.box { size = { 0.3, 0.16 }, spacing = dx / 2 } - cq.Shape.disc { at = { 0.15, 0 }, radius = 0.08,
      spacing = dx / 2 },
    material = material(5e4), actuators = isotropic(5e4),
  }
  return problem(cq.World {
    cells = { math.floor(1.2 / dx + 0.5), math.floor(0.4 / dx + 0.5) }, dx = dx, gravity = { 0, -9.8 }, dt = 0.1 * dx,
    substeps = "auto", walls = cq.Boundary.box { kind = "friction", mu = 0.8, inset = 3 * dx },
    robot:at { 0.2, 3 * dx },
  }, 0.6)
end

function bodies.wheel(level)
  local dx = fine * level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.disc { at = { 0.1, 0.1 }, radius = 0.1, spacing = dx / 2 }, material = material(2e5),
    actuators = isotropic(2e5),
  }
  return problem(cq.World {
    cells = { math.floor(1.6 / dx + 0.5), math.floor(0.6 / dx + 0.5) }, dx = dx, gravity = { 0, -9.8 }, dt = 0.1 * dx,
    substeps = "auto", walls = cq.Boundary.box { kind = "friction", mu = 0.8, inset = 3 * dx },
    robot:at { 0.2, 3 * dx },
  }, 0.6)
end

function bodies.jumper(level)
  local dx = fine * level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.box { size = { 0.24, 0.16 }, spacing = dx / 2 }, material = material(5e4),
    actuators = isotropic(5e4),
  }
  local world = cq.World {
    cells = { math.floor(0.6 / dx + 0.5), math.floor(0.6 / dx + 0.5) }, dx = dx, gravity = { 0, -9.8 }, dt = 0.1 * dx,
    substeps = "auto", walls = cq.Boundary.box { kind = "friction", mu = 0.8, inset = 3 * dx },
    robot:at { 0.18, 3 * dx },
  }
  local block = world.robot
  return problem(world, 0.3, function(state, start) return start:center(block)[2] - state:center(block)[2] end)
end

function bodies.crawler(level)
  local dx, gap = fine * level.coarsen, 0.1
  local robot = cq.Robot {
    shape = cq.Shape.box { size = { 0.32, 0.08 }, spacing = dx / 2 }, material = material(1e5),
    actuators = isotropic(1e5),
  }
  local function side(name, y, normal)
    return cq.Boundary.half_plane { name = name, point = { 0, y }, normal = { 0, normal }, kind = "friction", mu = 0.8 }
  end
  return problem(cq.World {
    cells = { math.floor(1.2 / dx + 0.5), math.floor(0.4 / dx + 0.5) }, dx = dx, gravity = { 0, -9.8 }, dt = 0.1 * dx,
    substeps = "auto", walls = { side("floor", 0.12, 1), side("roof", 0.12 + gap, -1) }, robot:at { 0.14, 0.12 },
  }, 0.6)
end

function bodies.slab(level)
  local dx = fine * level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.box { size = { 0.16, 0.08, 0.12 }, spacing = dx / 2 }, material = material(5e4),
    actuators = isotropic(5e4),
  }
  local function cells(length) return math.floor(length / dx + 0.5) end
  return problem(cq.World {
    cells = { cells(0.8), cells(0.4), cells(0.4) }, dx = dx, gravity = { 0, -9.8, 0 }, dt = 0.1 * dx, substeps = "auto",
    walls = cq.Boundary.box { kind = "friction", mu = 0.8, inset = 3 * dx }, robot:at { 0.2, 3 * dx, 0.14 },
  }, 0.4)
end

local names = {}
for name in pairs(bodies) do names[#names + 1] = name end
table.sort(names)

local run = cq.Experiment(bodies[cq.option("body", "jumper", is.one_of(names))])
run:optimize { plan = cq.Plan.topology { starts = 1 } }
local shape = run.best.params.design.sign:shape()
local passive = run:evaluate { params = { design = { sign = cq.zeros(shape), magnitude = cq.full(shape, -1) } } }
run:figures "page.png"
return { loss = run.best.loss, passive = passive.loss, solid = #run.body.particles / run.design.robot.particle_count }
