-- creature: robots of the field's papers, by name: their shapes, groups and actuators in one line. Each is a cq.Robot,
-- at the origin; lengths, stiffness, pressure and the number of particles can be chosen.
--
--   local robot = cq.Creature.nped { legs = 4, count = 15 }          quadruped of blocks: 16 chambers, 84,375 particles
--   local robot = cq.Creature.biped { drive = "cables" }               two legs with two cables each, 5,024 particles
--   local robot = cq.Creature.from_mesh { path = "creature.stl", length = 0.4, particles = 22000 }
--   local robot = cq.Creature.from_image { path = "rhino.png", width = 0.45, chambers = { ["foot"] = "#d9694f" } }
--   local world = cq.World { ..., robot:at { 0.2, 0.1, 0.2 } }
--
-- x is forward, y up, and z to the right of a creature in space. robot.size is the box that holds it, in
-- which body lengths are counted.
local block = require "cq.creature.block"
local cabled = require "cq.creature.cabled"
local outline = require "cq.creature.outline"

---@class cq.CreatureModule
local creature = {
  nped = block.nped,
  biped = cabled.biped,
  arm = block.arm,
  finger = cabled.finger,
  crawler = block.crawler,
  from_mesh = outline.from_mesh,
  from_image = outline.from_image,
}

return creature
