-- A biped with four air chambers learns to run.                              cqlua examples/biped.lua --particles 20
-- Source: advanced-chainqueen, Appendix C: robot, observer, controller, costs, grid, dt 0.005 for 4.0, 100 steps of
-- Adam. Expect: about four body lengths in its 4 time units after 100 iterations; gaits differ, 3.5 to 5 were seen.
-- Kept: 96 and 91 % with 2 and 4 times the substeps, 91 % on a finer grid, 92 % at 5 % of anything (cqlua robust).
-- Size: 28,800 particles, 800 x 5 steps; 3,200 with --particles 20. Time: 4 min; 35 s with --particles 20.
local cq = require "cq"

-- Appendix C has 60 x 60 particles in each block. 20 x 20 are enough for this grid, two of them and more along a cell's
-- side: the body and its gait are alike, ten times sooner.
local side  = cq.option("particles", 60)
local robot = cq.Robot(require "scenes.biped" { count = side })

-- What the paper leaves open: gravity, friction, cell size and substeps.
local world = cq.World {
  cells = { 400, 64 }, dx = 1 / 64,                       -- 6 cells across a leg
  -- that of ChainQueen's walkers; with less it hops, and gradients explode
  gravity = { 0, -2 },
  dt = 5e-3, substeps = 5,                                -- Courant number 0.25
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  -- dropped from a quarter of its length: the bounce wakes the controller, for one that
  -- stands still hardly has a gradient
  robot:at { 0.2, 0.12 },
}

-- x of the robot's centre of mass
local function travelled(state) return state:center(robot)[1] end

local run = cq.Experiment {
  world      = world, duration = 4,
  observer   = cq.Observer.kmeans { clusters = 7, velocity = true },
  controller = cq.Controller.mlp { hidden = { 64, 64 }, activation = "relu" },
  objective  = { terminal = function(state) return -travelled(state) end,
    effort = function(u) return 1e-8 * u:square():sum() end },
  -- at 5e-3 gaits are lost again; a foot that barely touches makes gradients of 10 to 100 from the usual 1, and the
  -- clip takes them back to that; smaller steps late, since a gait that is nearly as fast as it can be is easily upset
  optimizer  = cq.Optimizer.adam { rate = 3e-3, clip = 1, schedule = function(i) return 0.99 ^ i end },
}
run:optimize { iterations = cq.option("iterations", 100) }

local roll = run:evaluate().rollout
print(("ran %.1f body lengths in %d time units"):format((travelled(roll.state):item() - 0.35) / 0.3, 4))
run:render "biped.mp4"
run:render("biped.png", { stills = { 0, 1.5, 2.75, 4 }, layout = "together", width = 1600, trail = false })
