-- A balloon in the plane, a thick ring of rubber, is blown up by three pressures.          cqlua examples/balloon.lua
-- Source: the balance of a thick wall, in scenes/balloon.lua. Expect: a growth of the cavity within 3 % of what the
-- balance gives.
-- Size: 1,796 particles, 3 times 120 x 32 steps. Time: 2 s.
local cq = require "cq"

local scene    = require "scenes.balloon" { max = 1, cells = 96, damping = 20 }
local world    = cq.World(scene.world)
local pressure = 0
local run = cq.Experiment {
  world = world, duration = 1.2, controller = function() return cq.tensor { pressure } end,
  objective = function(state) return -state:cavity_volume(scene.pressure) end,
}
for _, p in ipairs { 0.3, 0.6, 1 } do
  pressure = p
  local first
  local roll = run:rollout(run.params, { on_step = function(state)
    first = first or state:cavity_volume(scene.pressure):item()
  end })
  print(("under a pressure of %.1f the cavity has %.4f times its area, in balance %.4f"):format(p,
    roll.state:cavity_volume(scene.pressure):item() / first, scene.balance(p)))
end
local colour = { by = "von_mises", range = { 0, 6 } }
run:render("balloon.mp4", { colour = colour, speed = 0.2, zoom = 2 })
run:render("balloon.png", { colour = colour, width = 800 })
