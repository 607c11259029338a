-- A column of water collapses when its dam is gone.                                     cqlua examples/dam_break.lua
-- Source: Martin and Moyce (1952), in scenes/dam_break.lua. Expect: where the water is a fifth of a width deep, a front
-- within 4 % of theirs. Its tip runs up to 15 % ahead, as a thin tongue: the floor here has no friction, the dam is
-- gone at once; from where both pass 1.44 widths on it is within 5 %. And the volume as it was: only pressure changes
-- it.
-- Size: 3,321 particles, 120 x 24 steps. Time: 1 s.
local cq = require "cq"

local scene = require "scenes.dam_break" { across = cq.option("across", 40) }
local run   = cq.Experiment {
  world = cq.World(scene.world), duration = 1.2, objective = function(state) return state:center(scene.robot)[2] end,
}
local front, deep = {}, {}
local roll = run:rollout(run.params, { on_step = function(state)
  front[#front + 1] = { state.time / scene.unit, scene.front(state) }
  deep[#deep + 1] = { state.time / scene.unit, scene.front(state, 0.2) }
end })
local raw, aligned, late = scene.compare(front)
print(("the tip of the front is within %.1f %% of the measured one; %.1f %% with a dam that goes %.2f later"):format(
  100 * raw, 100 * aligned, late))
print(("where the water is 0.2 widths deep: %.1f %%"):format(100 * scene.compare(deep)))
print(("volume of the particles %.4f of what it was"):format(roll.state:gather(scene.robot, "jacobian"):mean():item()))
run:render("dam_break.mp4", { colour = { by = "speed", range = { 0, 1.5 } }, speed = 0.4 })
run:render("dam_break.png", { colour = { by = "speed", range = { 0, 1.5 } }, stills = { 0, 0.4, 0.8, 1.2 } })
