-- A soft walker with four vertical actuators learns to walk by gradient descent.            cqlua examples/walker2d.lua
-- Source: ChainQueen (ICRA 2019), section V.B and fig. 4, with the parameters of its public release.
-- Expect: 2.5 body lengths in 4 time units after 100 iterations; it first only leans, and gallops from about the 45th.
-- Kept: 98 and 95 % with 2 and 4 times the substeps, 64 % on a finer grid, 92 % at 5 % of anything (cqlua robust).
-- Size: 2,800 particles, 800 x 2 steps. Time: 20 s.
local cq = require "cq"

local robot = cq.Robot(require "scenes.walker2d" {})

local world = cq.World {
  cells = { 160, 40 }, dx = 1 / 40,               -- twice as long as the release's: it would run against the wall
  dt = 5e-3, substeps = 2,                        -- the release takes dt at once, and a galloping leg turns inside out
  gravity = { 0, -2 }, walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  robot:at { 0.2, 0.1 },
}

local run = cq.Experiment {
  world      = world, steps = 800,
  observer   = cq.Observer.centroid { groups = robot.groups, velocity = true },
  -- u = tanh(W z + b), W small as in the release
  controller = cq.Controller.linear { scale = 0.1 },
  objective  = function(state) return -state:center("trunk")[1] end,
  -- the release's rate of 0.03 needs many hundreds of iterations; long gradients, of falls, are shortened
  optimizer  = cq.Optimizer.gradient_descent { rate = 1, clip = 0.1 },
}
run:optimize { iterations = cq.option("iterations", 100) }

local start, length = 0.5, 0.6                    -- of the trunk's centre, of the body
print(("walked %.2f body lengths"):format((-run:evaluate().loss - start) / length))
run:render "walker2d.mp4"
