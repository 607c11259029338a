-- Water sloshes in a tank, and its pressure at rest is looked at before.                  cqlua examples/sloshing.lua
-- Source: linear theory of waves, omega^2 = g k tanh(k depth), k = pi / length. Expect: a frequency within 2 % of it,
-- pressures at rest within 1.5 % of the pressure at the bottom, and no volume lost in 10,000 steps.
-- Size: 2,178 particles, 778 x 13 steps. Time: 2 s.
local cq = require "cq"

local amplitude = cq.option("amplitude", 0.05)     -- of the surface at the walls [length]
local scene = require "scenes.water_tank" {
  across = cq.option("cells", 32), stiffness = cq.option("stiffness", 200), kind = cq.option("kind", "separate"),
  pressure_smoothing = cq.option("averaging", 20),
}
local world = cq.World(scene.world)
local water = world.robot
local omega, velocity = scene.mode(scene, water, amplitude)

local still = world:rollout { steps = 200 }
print(("at rest pressures are within %.2f %%"):format(100 * scene.worst_pressure(still.state, scene)))

local passed, before = {}, nil                     -- times at which the centre passes through the middle
local run = cq.Experiment {
  world = world:with_robots(water:with { velocity = velocity }),
  duration = math.ceil(4.2 * 2 * math.pi / omega / world.control_dt) * world.control_dt,
  objective = function(state) return state:center(water)[1] end,
}
local roll = run:rollout(run.params, { on_step = function(state)
  local off = state:center(water)[1]:item() - scene.corner[1] - scene.length / 2
  if state.time > 0.1 / omega and before and before * off < 0 then
    passed[#passed + 1] = state.time - world.control_dt * off / (off - before)
  end
  before = off
end })
local measured = math.pi * (#passed - 1) / (passed[#passed] - passed[1])
print(("it sloshes at %.4f, linear theory %.4f: %+.1f %%"):format(measured, omega, 100 * (measured / omega - 1)))
-- volume of the water now: J times the particles' first volumes, summed
local function volume(state) return (state:gather(water, "jacobian") * water.values.volume.tensor):sum():item() end
-- height of the water's centre over the tank's floor, by half a cell more
local function height(state) return state:center(water)[2]:item() - scene.corner[2] + scene.dx / 2 end
print(("after %d steps it has %.4f of its volume, and %.4f of its height"):format(roll.steps * world.substeps,
  volume(roll.state) / volume(still.state), height(roll.state) / height(still.state)))
run:render("sloshing.mp4", { colour = scene.colour, speed = 1 })
run:render("sloshing.png", { colour = scene.colour, stills = { 0, 0.9, 1.8, 2.8 }, layout = "apart", height = 900 })
