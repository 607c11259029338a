-- One of a finger's two cables is wound in, and bends it to its side.                 cqlua examples/cable_bend.lua
-- Source: the finger of advanced-chainqueen 5.1, in scenes/cable_finger.lua. Expect: an angle 5 to 20 % below that of a
-- slender beam.
-- Size: 256 particles, 3 times 300 x 8 steps. Time: 1 s.
local cq = require "cq"

local scene = require "scenes.cable_finger" { damping = 4 }
local world, wind = cq.World(scene.world), 0
local run = cq.Experiment {
  world = world, duration = 3, controller = function() return cq.tensor { wind, -1 } end,  -- -1: the right one is slack
  objective = function(state) return state:center("tip")[1] end,
}
for _, u in ipairs { -0.8, 0, 1 } do
  wind = u
  local roll = run:rollout(run.params)
  print(("with a signal of %4.1f the tip turns by %.3f rad, a beam's by %.3f"):format(u, scene.bend(roll.state),
    scene.beam(u)))
end
local colour = { by = "von_mises", range = { 0, 5 } }
run:render("cable_bend.mp4", { colour = colour, speed = 0.6, zoom = 1.6 })
run:render("cable_bend.png", { colour = colour, fps = 1, zoom = 1.6 })
