-- A column of liquid collapses when its dam is gone.                                     cqlua examples/dam_break.lua
-- Source: Martin and Moyce (1952), in scenes/dam_break.lua. Expect: a front within 10 % of the speed that they
-- measured, a little ahead of theirs, since here the floor has no friction and the dam is gone at once; and the volume
-- as it was: only pressure changes it.
local cq = require "cq"

local scene = require "scenes.dam_break" {}
local world = cq.World(scene.world)
local unit  = math.sqrt(scene.width / (2 * scene.gravity))        -- of the time that the measurement is told in
local run   = cq.Experiment {
  world = world, duration = 1.2, objective = function(state) return state:center(scene.robot)[2] end,
}

-- from the wall behind the column [widths of it]
local function front(state) return (state:positions():slice(1, 1, 2):max():item() - scene.wall) / scene.width end
local next_one = 1
local roll = run:rollout(run.params, function(state)
  local point = scene.measured[next_one]
  if not point or state.time / unit < point[1] then return end
  print(("at %.2f the front is at %.2f widths, measured %.2f at %.2f"):format(state.time / unit, front(state),
    point[2], point[1]))
  next_one = next_one + 1
end)
print(("volume of the particles %.4f of what it was"):format(roll.state:gather(scene.robot, "jacobian"):mean():item()))
run:render("dam_break.mp4", { colour = { by = "speed", range = { 0, 1.5 } }, speed = 0.4 })
run:render("dam_break.png", { colour = { by = "speed", range = { 0, 1.5 } }, stills = { 0, 0.4, 0.8, 1.2 } })
