-- biped: two legs of two air chambers each under a hip, and a trunk between the hips; eight blocks.
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), Appendix C: legs 0.1 x 0.1, body 0.3 x 0.1, 60 x 60
-- particles in each block, E 10, nu 0.3, pressure of at most 2.
--
--   local robot = cq.Robot(require "scenes.biped" { spacing = 1/120 })
local cq = require "cq"

local LEG, BODY = { 0.1, 0.1 }, { 0.3, 0.1 }

---@param options? { count?: integer, spacing?: number }    particles along each side of a block, 60 unless a spacing is given
---@return cq.Robot.def
return function(options)
  options = options or {}
  local count = not options.spacing and { options.count or 60, options.count or 60 } or nil
  local function block(name, x, y, w, h)
    return cq.Shape.box { name = name, at = { x, y }, size = { w, h }, count = count, spacing = options.spacing }
  end
  local w, h, right, trunk = LEG[1], LEG[2], BODY[1] - LEG[1], BODY[1] - 2 * LEG[1]
  return {
    shape = {
      block("left.back", 0, 0, w / 2, h), block("left.front", w / 2, 0, w / 2, h), block("hip.left", 0, h, w, BODY[2]),
      block("trunk.low", w, h, trunk, BODY[2] / 2), block("trunk.high", w, h + BODY[2] / 2, trunk, BODY[2] / 2),
      block("hip.right", right, h, w, BODY[2]), block("right.back", right, 0, w / 2, h), block("right.front", right + w / 2, 0, w / 2, h),
    },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "left.back", "left.front", "right.back", "right.front" }, axis = "y", max = 2 },
  }
end
