-- Is an observer that learns as good as k-means? A walker learns to walk with either, and all else alike.
--   cqlua study run tests/papers/observers.lua --observer autoencoder --robot walker2d --seeds 10 --jobs 1 --threads 1
-- k-means: positions and velocities of 7 clusters, 28 numbers. Autoencoder: 8 numbers (--latent 24) that it sees in
-- each second control step on a window that follows the body; it is fitted to three gaits of sines, and then between
-- iterations, on what it sees, less and less, until two thirds of them. A seed draws the weights of both networks and
-- the gaits. Settings were tried on seed 101 alone. Size: 700 or 800 particles, 100 iterations of 400 x 2 or 3 steps.
-- Time of a training on one core: 10 s with k-means, a minute with an autoencoder.
local cq = require "cq"
local is = require "cq.base.schema"

local ROBOTS = {
  walker2d = { cells = { 100, 20 }, dx = 1 / 20, at = { 0.4, 0.15 }, length = 0.6, pixel = 1 / 40 },
  biped = { cells = { 128, 24 }, dx = 1 / 32, at = { 0.2, 0.13 }, length = 0.3, pixel = 1 / 80 },
}
local name = cq.option("robot", "walker2d", is.one_of { "walker2d", "biped" })
local learns = cq.option("observer", "kmeans", is.one_of { "kmeans", "autoencoder" }) == "autoencoder"
local latent, every = cq.option("latent", 8), cq.option("every", 2)
local seed, iterations = cq.option("seed", 101), cq.option("iterations", 100)
local case = ROBOTS[name]

local robot = cq.Robot(require("scenes." .. name) { count = 10 })
local world = cq.World {
  cells = case.cells, dx = case.dx, dt = 1e-2, substeps = "auto", gravity = { 0, -2 },
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at(case.at),
}

local eye = learns and cq.Observer.autoencoder { window = { 32, 32 }, spacing = case.pixel, latent = latent,
  every = every, collect = 2, seed = seed } or cq.Observer.kmeans { clusters = 7, velocity = true }
local slow = cq.Optimizer.adam { rate = 1e-3 }

local run = cq.Experiment {
  world = world, duration = 4, observer = eye,
  controller = cq.Controller.mlp { hidden = { 64, 64 }, seed = seed },
  objective = function(state) return -state:center(robot)[1] end,
  optimizer = cq.Optimizer.adam { rate = 3e-3, clip = 1, schedule = function(i) return 0.99 ^ i end },
}

for k = 1, learns and 3 or 0 do
  world:rollout { steps = 200, observer = eye,
    controller = cq.Controller.sines { frequency = 2, deviation = 1, seed = 10 * seed + k } }
end
if learns then eye:fit { optimizer = slow, iterations = 200, batch = 32 } end
run:optimize { iterations = iterations, on_iteration = function(i)
  local updates = learns and math.floor(10 * (1 - 1.5 * i / iterations) + 0.5) or 0
  if updates > 0 then eye:fit { optimizer = slow, iterations = updates, batch = 32 } end
end }

local roll = run:evaluate().rollout
local lengths = (roll.state:center(robot) - roll:start():center(robot))[1]:item() / case.length
print(("%s went %.2f body lengths"):format(name, lengths))
if cq.option("film", false) then run:render("gait.png", { stills = { 0, 1.5, 2.75, 4 }, layout = "together" }) end
return { loss = run.best.loss, lengths = lengths }
