-- A soft paddle in a tank learns to make waves: to bring the water's centre as far to the right as it can at one time.
--   cqlua examples/paddle.lua         --check: its gradient beside differences, in float64, and no training
--   ... --transfer apic               water and paddle lose motion in each step
--   ... --formulation total_lagrangian   the paddle on a grid of its own shape
-- Source: none, a scene of our own. Expect: 0.028 of the tank's length after 30 iterations, 0.0002 before: it learns to
-- swing with the tank's own period. Gradients agree with differences to 1e-6.
-- Kept: 97 and 95 % with 2 and 4 times the substeps, 94 % at 5 % of anything (cqlua robust); with --transfer apic 0.027
-- of the length, of which 89 and 72 % are kept. On a grid of its own shape 0.042, and 104 and 105 %: it learns to throw
-- water up. Water is not sampled anew on a finer grid.
-- Size: 1,300 particles, 200 x 10 steps. Time: 30 s.
local cq = require "cq"

local check  = cq.option("check", false)
local transfer = cq.option("transfer", "auto")         -- "apic", or a rate of decay
local dx     = 1 / cq.option("cells", 24)
local half, height = { 1.5 * dx, 9 * dx }, 1           -- half: of the paddle; height: of the tank

-- one half of the paddle, from x on
local function side(name, x)
  return cq.Shape.box { name = name, at = { 7 * dx + x, 0 }, size = half, spacing = dx / 2 }
end
local shape  = side("left", 0) + side("right", half[1])
local paddle = cq.Robot {
  name = "paddle", shape = shape, formulation = cq.option("formulation", "updated"),
  material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1 },
  actuators = cq.Actuator.pressure { groups = { "left", "right" }, axis = "y", max = 3 },
  groups = { foot = function(_, y) return y < 2 * dx end }, pins = "foot",
}
local scene = require "scenes.water_tank" {
  across = 1 / dx, height = height, without = shape, bodies = { paddle }, kind = "slip",
  precision = check and "float64" or nil,
}
if transfer ~= "apic" then scene.world.transfer = { decay = tonumber(transfer) or transfer } end
local world, steps, hold = cq.World(scene.world), check and 60 or 200, 10
local first = cq.random { seed = 1 }:normal({ steps / hold, 2 }, { deviation = 0.1 })
local start = world:rollout({ steps = 0 }).state:center "water"[1]:item()
-- how far the water's centre of mass is from its first place along x
local function way(state) return state:center "water"[1] - start end

if check then
  print(cq.check_gradient(function(p)
    local controller = cq.Controller.open_loop { u = p.u, hold = hold }
    return way(world:rollout({ steps = steps, controller = controller }).state)
  end, { u = first }))
  return
end
local run = cq.Experiment {
  world = world, duration = steps * world.control_dt,
  controller = cq.Controller.open_loop { steps = steps, hold = hold, init = first },
  objective = function(state) return -way(state) end, optimizer = cq.Optimizer.adam { rate = 0.05 },
}
run:optimize { iterations = cq.option("iterations", 30) }
print(("the water's centre has gone %.3f of the tank's length"):format(-run:evaluate().loss))
run:render("paddle.mp4", { colour = scene.colour, speed = 1 })
run:render("paddle.png", { colour = scene.colour, stills = { 1, 2, 3, 4 }, layout = "apart" })
