-- A soft robot on four legs learns to run: DiffTaichi's diffmpm.py, part by part.            cqlua examples/diffmpm.lua
-- Source: DiffTaichi (ICLR 2020), examples/diffmpm.py of its public release: scene, constants, controller, loss and
-- optimizer. docs/difftaichi.md says which part of it stands where. Expect: the loss falls from -0.248 to -0.50 in 100
-- iterations; the robot is 0.3 long and its centre begins at 0.25.
-- Kept: 98 and 96 % with 2 and 4 times the substeps, 62 % on a finer grid, 93 % at 5 % of anything (cqlua robust).
-- Size: 2,976 particles, 1,023 x 1 steps. Time: 45 s.
local cq = require "cq"

local dx = 1 / 128

-- a box with two particles along each side of a cell, of as many whole cells as fit
local function rect(name, x, y, w, h)
  return cq.Shape.box { name = name, at = { x, y }, size = { w, h },
    count = { math.floor(w / dx) * 2, math.floor(h / dx) * 2 } }
end

local legs  = { "leg 1", "leg 2", "leg 3", "leg 4" }
local robot = cq.Robot {
  shape = {
    rect("body", 0, 0.1, 0.3, 0.1), rect(legs[1], 0, 0, 0.05, 0.1), rect(legs[2], 0.05, 0, 0.05, 0.1),
    rect(legs[3], 0.2, 0, 0.05, 0.1), rect(legs[4], 0.25, 0, 0.05, 0.1),
  },
  material = cq.Material.corotated { young = 25, poisson = 0.25, density = 1 },      -- Lame's constants are both 10
  -- as there, though the lattices differ
  particle_volume = "equal", particle_mass = "equal",
  actuators = cq.Actuator.pressure { groups = legs, axis = "y", max = 4 },
}

local world = cq.World {
  cells = { 128, 128 }, dx = dx, dt = 1e-3, gravity = { 0, -3.8 },
  -- three rows of nodes at each edge, from 0 and from 126, hold what presses against them and let it go
  walls = cq.Boundary.box { inset = 2.5 * dx, kind = "sticky", separable = true },
  robot:at { 0.1, 0.03 },
}

local run = cq.Experiment {
  world      = world, steps = 1023,
  controller = cq.Controller.sines { count = 4, frequency = 20 / (2 * math.pi),
    deviation = cq.option("deviation", 0.01) },
  objective  = function(state) return -state:center(robot)[1] end,
  optimizer  = cq.Optimizer.gradient_descent { rate = 0.1 },
}
run:optimize { iterations = cq.option("iterations", 100) }
print(("the loss is %.4f"):format(run:evaluate().loss))
run:render("diffmpm.mp4", { speed = 0.25 })
