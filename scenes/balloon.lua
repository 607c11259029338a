-- balloon: a ring of rubber in the plane, a shell in space, around a closed cavity with a pressure that follows its walls.
-- Source: none, a scene of our own. Neo-Hookean rubber with E 20 and nu 0.45, radii 0.1 and 0.16.
local cq = require "cq"

local INNER, OUTER = 0.1, 0.16

---@param options? { dim?: integer, precision?: string, max?: number, spacing?: number, device?: string }
---@return { robot: cq.Robot, world: cq.World.def, pressure: cq.Actuator, inner: number, outer: number }
return function(options)
  local given = options or {}
  local dim = given.dim or 2
  local function filled(value)
    local out = {}
    for i = 1, dim do out[i] = value end
    return out
  end
  local function ball(radius) return (dim == 2 and cq.Shape.disc or cq.Shape.sphere) { at = filled(OUTER), radius = radius } end
  local pressure = cq.Actuator.follower_pressure { name = "air", surface = { inside = filled(OUTER) }, max = given.max or 2 }
  local cells = dim == 2 and 48 or 32
  local robot = cq.Robot {
    shape = ball(OUTER) - ball(INNER), spacing = given.spacing or 0.5 / cells,
    material = cq.Material.neo_hookean { young = 20, poisson = 0.45, density = 1 }, actuators = pressure,
  }
  return {
    robot = robot, pressure = pressure, inner = INNER, outer = OUTER,
    world = {
      cells = filled(cells), dx = 1 / cells, dt = 0.01, substeps = 16, precision = given.precision, device = given.device,
      robot:at(filled(0.5 - OUTER)),
    },
  }
end
