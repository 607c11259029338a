-- Ball A rolls into ball B: which density of A sends B to its place?                           cqlua examples/balls.lua
-- Source: ChainQueen (ICRA 2019) V.A, which infers a relative density of 2.26. Its scene is not published;
-- this one is such that 2.26 is right: B comes to PLACE when A has that density. Expect: 2.260 after 40
-- iterations, error below 1e-3. Kept: not asked: it identifies.
-- Size: 1,080 particles, 200 x 8 steps. Time: 2 s.
local cq = require "cq"

-- density of A, in units of that of B; centre of B at the end
local TRUTH, PLACE = 2.26, { 1.57945, 0.62247 }

-- a robot: a ball with its centre at x, y, whose particles are also a group of that name
local function ball(name, x, y)
  return cq.Robot {
    name = name, shape = cq.Shape.disc { name = name, at = { x, y }, radius = 0.1, spacing = 1 / 128 },
    -- so stiff that the blow takes less time than the way, so soft that a hundred steps can follow it
    material = cq.Material.neo_hookean { young = 50, poisson = 0.3, density = 1 },
  }
end

-- a little off centre, as on a billiard table: B leaves at an angle
local a, b = ball("a", 0.25, 0.47), ball("b", 0.55, 0.5)
local world = cq.World { cells = { 128, 64 }, dx = 1 / 64, dt = 5e-3, substeps = 8, a, b }

local run = cq.Experiment {
  world = world, duration = 1, robot = a:with { velocity = { 1, 0 } },
  objective = function(state) return (state:center(b) - cq.tensor(PLACE)):square():sum() end,
  trainable = { density = { init = 1, min = 0.1, max = 10 } },
  -- about half of Newton's step, 1 / (2 |dx/drho|^2) with dx/drho = 0.15 at the end
  optimizer = cq.Optimizer.gradient_descent { rate = 8 },
}
run:optimize { iterations = cq.option("iterations", 40) }
local density = run.best.params.robot.density:item()
print(("density of ball A %.4f, error %.1e; ball B misses its place by %.1e"):format(density, math.abs(density - TRUTH),
  run.best.loss ^ 0.5))
run:render("balls.mp4", { speed = 0.25 })
