-- A viscoelastic bar creeps under a load and creeps back, beside an elastic one.             cqlua examples/creep.lua
-- Source: the standard linear solid, in scenes/creeping_bars.lua. Expect: strains within 3 % of the closed form's
-- largest; the picture is of a load twenty times as large, just before it goes.
-- Size: 768 particles, 600 x 30 steps. Time: 3 s.
local cq = require "cq"

-- the experiment of a scene; its objective, which is only looked at, is x of its second robot
local function experiment(scene, duration)
  return cq.Experiment {
    world = cq.World(scene.world), duration = duration, controller = scene.controller,
    objective = function(state) return state:center(scene.robots[2])[1] end,
  }
end

local small = require "scenes.creeping_bars" {}
local run   = experiment(small, 60)
run:rollout(run.params, { on_step = function(state)
  if state.step == 0 or state.step % 100 ~= 0 then return end
  print(("t = %2.0f: elastic %8.5f, viscoelastic %8.5f, expected %8.5f"):format(state.time, small.stretch(state, 1) - 1,
    small.stretch(state, 2) - 1, small.creep(state.time)))
end })

local large  = require "scenes.creeping_bars" { load = 0.4, modulus = 3 }
local colour = { by = "von_mises", range = { 0, 0.5 } }
experiment(large, 60):render("creep.mp4", { colour = colour, speed = 12 })
experiment(large, 6):render("creep.png", { colour = colour })
