-- biped: two legs of two air chambers each under a hip, and a trunk between the hips; eight blocks. Source: Advanced
-- soft robot modeling in ChainQueen (Robotica 2021), Appendix C: legs 0.1 x 0.1, body 0.3 x 0.1, 60 x 60 particles in
-- each block, E 10, nu 0.3, pressure of at most 2.
--
--   local robot = cq.Robot(require "scenes.biped" { spacing = 1/120 })      or cq.Creature.biped { count = 60 }
local cq = require "cq"
local blocks = require "cq.creature.cabled".biped_blocks

---The fields of cq.Robot for the biped.
---@param options? { count?: integer, spacing?: number }    particles along each side of a block, 60 unless a spacing is given
---@return cq.Robot.def
return function(options)
  options = require "scenes.options"("scenes.biped", options, { "count", "spacing" })
  local count = not options.spacing and { options.count or 60, options.count or 60 } or nil
  local shapes, chambers = blocks(function(name, at, size)
    return cq.Shape.box { name = name, at = at, size = size, count = count, spacing = options.spacing }
  end)
  return {
    shape = shapes, material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = chambers, axis = "y", max = 2 },
  }
end
