-- An animal from a mesh learns to run on four air chambers, the quadrants of its bottom.    cqlua examples/creature.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.2 and fig. 9: a closed STL of 22,084 particles,
-- k-means observer, MLP, Adam, 4 time units in 800 control steps. Its mesh is not free to give away, and no distance is
-- printed: scenes/make_meshes.lua makes this animal, which is told the time as well. --full has the paper's particles
-- and control steps; its ten runs are cqlua study run examples/creature.lua --seeds 10 --seed 0. Expect: 1.65 body
-- lengths after 60 iterations, 1.73 with --seed 1; 1.70 with --full after 240, while the rate falls more slowly, in 21
-- minutes of a core.
-- Kept: 82 and 67 % with 2 and 4 times the substeps, 69 % on a finer grid, 93 % at 5 % of anything (cqlua robust).
-- Size: 2,844 particles, 400 x 3 steps; 21,884, 800 x 2 with --full. Time: 2 min; 21 min with --full.
local cq = require "cq"

local full, length, dx = cq.option("full", false), 0.4, 1 / 30
local robot = cq.Creature.from_mesh {
  path = "../scenes/assets/creature.stl", length = length, particles = full and 22000 or 3000,
}
local fall = cq.option("fall", full and 0.997 or 0.99)                        -- of the rate in each iteration
local world = cq.World {
  cells = { 54, 21, 25 }, dx = dx, gravity = { 0, -2, 0 },
  dt = full and 5e-3 or 1e-2, substeps = full and 2 or 3, walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  robot:at { 0.15, 4.5 * dx, 12.5 * dx - robot.size[3] / 2 },          -- it falls a little
}

-- x of the robot's centre of mass
local function place(state) return state:center(robot)[1] end
local start = robot.position:mean(1):get(1) + 0.15           -- of its middle, at first
local run = cq.Experiment {
  world = world, duration = 4,
  observer   = cq.Observer.kmeans { clusters = 7, velocity = true, clock = 2, clock_amplitude = 2 },
  controller = cq.Controller.mlp { hidden = { 64, 64 }, seed = cq.option("seed", 0) },
  objective  = {
    terminal = function(state) return -place(state) end, effort = function(u) return 5e-7 * u:square():sum() end,
  },
  optimizer  = cq.Optimizer.adam { rate = 5e-3, clip = 1, schedule = function(i) return fall ^ i end },
}

run:optimize { iterations = cq.option("iterations", full and 240 or 60) }
local lengths = (place(run:evaluate().rollout.state):item() - start) / length
print(("ran %.2f body lengths in 4 time units"):format(lengths))
run:render "creature.mp4"
run:render("creature.png", { stills = { 0, 1, 2, 3, 4 } })
return { loss = run.best.loss, lengths = lengths }
