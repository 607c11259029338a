-- Columns of snow are pressed and let go, and a snowball falls on the edge of a block.      cqlua examples/snow.lua
-- Source: the closed form of scenes/snow_column.lua; scenes/snow_ball.lua is of our own. Expect: the column below its
-- critical load is as long as before, and the others keep a length within 0.5 % of the closed form's.
-- Size: 3 x 768 particles, 300 x 40 steps; 1,804, 200 x 40. Time: 4 s.
local cq = require "cq"

local column = require "scenes.snow_column" {}
local state  = column.press(cq.World(column.world))
for k, load in ipairs(column.loads) do
  print(("pressed with %.1f critical loads, it keeps %.4f of its length, expected %.4f"):format(load,
    column.kept(state, k), column.expected[k]))
end

local ball = require "scenes.snow_ball" {}
local run  = cq.Experiment {
  world = cq.World(ball.world), duration = ball.duration,
  objective = function(s) return s:center(ball.robot)[1] end,
}
-- shells of the ball, by how far inside each particle began
local place = ball.robot.position
local shell = (place - place:mean(1)):square():sum(2):sqrt()
local colour = { by = function() return shell end, label = "distance from the centre at the start", unit = "m",
  range = { 0, 0.15 } }
run:render("snow.mp4", { colour = colour, speed = 0.25, fps = 20 })
run:render("snow.png", { colour = colour })
