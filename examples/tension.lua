-- Bars of Dragon Skin 30 are pulled by three loads.                                        cqlua examples/tension.lua
-- Source: constants of Yeoh's law in scenes/dragon_skin.lua. Expect: stretches within 2 % of those that the law has in
-- closed form, about 2 at 560 kPa, where the maker's data sheet tells 593 kPa.
-- Size: 9,216 particles, 100 x 13 steps. Time: 2 s.
local cq = require "cq"

local scene = require "scenes.dragon_skin" {}
local run   = cq.Experiment {
  world = cq.World(scene.world), duration = 0.02, controller = scene.pull(),
  objective = function(state) return state:center(scene.robots[1])[1] end,
}
local roll = run:evaluate().rollout
for k, load in ipairs(scene.loads) do
  print(("%3d kPa: a stretch of %.3f, expected %.3f"):format(load, scene.stretch(roll.state, k), scene.expected[k]))
end
local colour = { by = "von_mises", unit = "kPa", range = { 0, 1500 } }
run:render("tension.mp4", { colour = colour, speed = 5e-3, fps = 10, width = 800 })
run:render("tension.png", { colour = colour })
