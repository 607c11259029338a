-- eyes: what an autoencoder as observer costs of a training, beside k-means, for docs/control.md: medians of
-- iterations, a rollout and its gradient, in turn.
--   cqlua tests/bench/eyes.lua --threads 1 [--repeat 9]
local cq = require "cq"
local clock = require("cq.base.engine").C.cq_clock

local count = cq.option("repeat", 9)
local ROBOTS = {
  { name = "walker2d", side = 10, cells = { 80, 20 }, dx = 1 / 20, at = { 0.4, 0.15 }, dt = 1e-2, substeps = 4,
    width = 1 },
  { name = "biped", side = 20, cells = { 400, 64 }, dx = 1 / 64, at = { 0.2, 0.12 }, dt = 5e-3, substeps = 5,
    width = 0.4 },
  { name = "biped", side = 60, cells = { 400, 64 }, dx = 1 / 64, at = { 0.2, 0.12 }, dt = 5e-3, substeps = 5,
    width = 0.4 },
}
local EYES = { { pixels = 64, every = 1 }, { pixels = 32, every = 1 }, { pixels = 32, every = 2 },
  { pixels = 32, every = 2, particles = 3000 } }

-- a function that makes one iteration with this observer: a rollout of 50 control steps and its gradient
local function iteration(robot, world, observer)
  local controller = cq.Controller.mlp { hidden = { 64, 64 } }
  local params = controller:prepare(world, observer)
  local step = cq.value_and_grad(function(p)
    local roll = world:rollout { steps = 50, observer = observer, controller = controller:with(p) }
    return -roll.state:center(robot)[1], roll
  end)
  return function()
    local _, _, roll = step(params)
    roll:release()
  end
end

print "robot     particles  pixels  every  drawn   k-means [ms]  autoencoder [ms]  observing"
for _, case in ipairs(ROBOTS) do
  local robot = cq.Robot(require("scenes." .. case.name) { count = case.side })
  local world = cq.World { cells = case.cells, dx = case.dx, dt = case.dt, substeps = case.substeps,
    gravity = { 0, -2 }, walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at(case.at) }
  for _, eye in ipairs(EYES) do
    local ways, times = {
      iteration(robot, world, cq.Observer.kmeans { clusters = 7, velocity = true }),
      iteration(robot, world, cq.Observer.autoencoder { window = { eye.pixels, eye.pixels }, every = eye.every,
        spacing = case.width / eye.pixels, particles = eye.particles }),
    }, { {}, {} }
    for k = 0, count do
      for way = 1, 2 do
        local began = clock()
        ways[way]()
        if k > 0 then times[way][k] = clock() - began end      -- the first warms up
      end
    end
    for way = 1, 2 do table.sort(times[way]) end
    local plain, seen = times[1][math.ceil(count / 2)], times[2][math.ceil(count / 2)]
    print(("%-9s %9d %7d %6d %6d %14.1f %17.1f %9.0f %%"):format(case.name, world.particle_count, eye.pixels, eye.every,
      math.min(eye.particles or math.huge, world.particle_count), 1e3 * plain, 1e3 * seen, 100 * (1 - plain / seen)))
  end
end
