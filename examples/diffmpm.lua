-- A soft robot on four legs learns to run: DiffTaichi's diffmpm.py, part by part.                   cqlua examples/diffmpm.lua
-- Source: DiffTaichi (ICLR 2020), examples/diffmpm.py of its public release: scene, constants, controller, loss and optimizer.
-- docs/difftaichi.md tells which part of it stands where.
local cq = require "cq"

local dx = 1 / 128

-- add_rect: two particles along each side of a cell, counted from whole cells
local function rect(name, x, y, w, h)
  return cq.Shape.box { name = name, at = { x, y }, size = { w, h }, count = { math.floor(w / dx) * 2, math.floor(h / dx) * 2 } }
end

local legs = { "leg 1", "leg 2", "leg 3", "leg 4" }
local robot = cq.Robot {
  shape = {
    rect("body", 0, 0.1, 0.3, 0.1),
    rect(legs[1], 0, 0, 0.05, 0.1), rect(legs[2], 0.05, 0, 0.05, 0.1), rect(legs[3], 0.2, 0, 0.05, 0.1), rect(legs[4], 0.25, 0, 0.05, 0.1),
  },
  material = cq.Material.corotated { young = 25, poisson = 0.25, density = 1 },    -- mu = la = 10
  particle_volume = "equal", particle_mass = "equal",                              -- p_vol = 1 and mass = 1 for all
  actuators = cq.Actuator.pressure { groups = legs, axis = "y", max = 4 },         -- act_strength = 4
}

local world = cq.World {
  cells = { 128, 128 }, dx = dx, dt = 1e-3, gravity = { 0, -3.8 },
  -- nodes 0 to 2 and the last ones hold what presses against them: a wall half a cell beyond node 2
  walls = cq.Boundary.box { inset = 2.5 * dx, kind = "sticky", separable = true },
  robot:at { 0.1, 0.03 },
}

local run = cq.Experiment {
  world      = world, steps = 1023,
  controller = cq.Controller.sines { count = 4, frequency = 20 / (2 * math.pi), deviation = 0.01 },
  objective  = function(state) return -state:center(robot)[1] end,
  optimizer  = cq.Optimizer.gradient_descent { rate = 0.1 },
}
run:optimize { iterations = cq.option("iterations", 100) }
print(("the loss is %.3f"):format(run:evaluate()))
run:render "diffmpm.mp4"
