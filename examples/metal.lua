-- Bars of a metal are pulled beyond their yield stress and let go.                           cqlua examples/metal.lua
-- Source: linear hardening in closed form, in scenes/metal_bars.lua. Expect: the bar that does not yield is as long as
-- before, and the others keep a stretch within 1 % of the closed form's.
-- Size: 3,888 particles, 300 x 5 steps. Time: 3 s.
local cq = require "cq"

local scene = require "scenes.metal_bars" {}
local run   = cq.Experiment {
  world = cq.World(scene.world), duration = scene.duration, controller = scene.controller,
  objective = function(state) return state:center(scene.robots[1])[1] end,
}
local roll = run:evaluate().rollout
for k, load in ipairs(scene.loads) do
  print(("pulled with %.1f yield stresses, it keeps a stretch of %.4f, expected %.4f"):format(load,
    scene.stretch(roll.state, k), scene.expected[k]))
end
local colour, camera = { by = "von_mises", range = { 0, 2.5 } }, { eye = { 5, 6, 15 }, target = { 4.2, 3.2, 1 } }
run:render("metal.mp4", { colour = colour, camera = camera, speed = 6, fps = 10, width = 800 })
run:render("metal.png", { colour = { by = "von_mises", range = { 0, 1 } } })
