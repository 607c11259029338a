-- A column of sand spreads to a pile, and a bed of the same sand is tilted until it flows.
--   cqlua examples/sand_pile.lua
-- Source: none, scenes of our own: scenes/sand_pile.lua and scenes/sand_bed.lua. Expect: a pile as steep as the angle
-- of repose, 30 degrees, and a bed that begins to flow at the same angle, each within 2 degrees.
-- Size: 1,024 particles, 600 x 25 steps; 2,560 particles. Time: 5 s.
local cq = require "cq"

local repose = cq.option("repose", 30)                                      -- [degree]

local bed = require "scenes.sand_bed" { repose = repose }
print(("a flat bed flows from %.1f degrees on"):format(bed.onset(cq.World(bed.world))))

local pile = require "scenes.sand_pile" { repose = repose }
local run  = cq.Experiment {
  world = cq.World(pile.world), duration = 12, objective = function(state) return state:center(pile.robot)[2] end,
}
local roll = run:evaluate().rollout
print(("the pile is %.1f degrees steep"):format(pile.slope(roll.state)))

-- layers of the column, by the height that each began at
local height = pile.robot.position:slice(2, 2, 2):reshape { pile.robot.particle_count }
local layers = { by = function() return height end, label = "height at the start", unit = "length", range = { 0, 0.3 } }
run:render("sand_pile.mp4", { colour = layers, speed = 2, fps = 10 })
run:render("sand_pile.png", { colour = layers })
