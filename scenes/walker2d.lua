-- walker2d: three blocks in a row stand on four half blocks, which stretch and contract along their height. Source:
-- ChainQueen (ICRA 2019), fig. 4, in its public release: 7 groups of 20 x 20 particles, blocks of side 0.2, stress of
-- at most 3, E 10, nu 0.3. The release gives all particles one mass, which makes its half blocks twice as dense and
-- stiff; here the material is the same everywhere.
--
--   local robot = cq.Robot(require "scenes.walker2d" {})          0.6 long, 0.4 high
local cq = require "cq"

local UNIT = 0.2                -- side of a block

---The fields of cq.Robot for the walker.
---@param options? { count?: integer }        particles along each side of a group, 20 unless given
---@return cq.Robot.def
return function(options)
  local n = require "scenes.options"("scenes.walker2d", options, { "count" }).count or 20
  -- A box shape with its lower left corner (x, y) and width w in units of UNIT, one unit high, with n x n particles.
  local function block(name, x, y, w)
    return cq.Shape.box { name = name, at = { x * UNIT, y * UNIT }, size = { w * UNIT, UNIT }, count = { n, n } }
  end
  return {
    shape = {
      block("left.back", 0, 0, 0.5), block("left.front", 0.5, 0, 0.5),
      block("hip.left", 0, 1, 1), block("trunk", 1, 1, 1), block("hip.right", 2, 1, 1),
      block("right.back", 2, 0, 0.5), block("right.front", 2.5, 0, 0.5),
    },
    material = cq.Material.corotated { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "left.back", "left.front", "right.back", "right.front" }, axis = "y",
      max = 3 },
  }
end
