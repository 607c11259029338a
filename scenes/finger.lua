-- finger: two muscles side by side, held at their foot, carry a head; contracting one bends the finger. Source: the
-- finger of ChainQueen (ICRA 2019) in its public release: blocks .5 x 2, .5 x 2 and 1 x 1 times 0.2, stress of at
-- most 4 along the muscles, E 10, grid 40 x 40, dt 5e-3, no gravity; it has 40 x 40 particles in each block, here
-- two along each side of a cell.
local cq = require "cq"

local UNIT = 0.2

---A finger of two muscles and the fields of its world; max: stress of a muscle; goal: place of the head.
---@param options? { precision?: string, count?: integer }        particles along the side of the head, 16 unless given
---@return { robot: cq.Robot, world: cq.World.def, groups: string[], muscles: string[], max: number, goal: number[] }
return function(options)
  local n = options and options.count or 16
  -- A box shape with corner (x, y) and size (w, h) in units of UNIT, and with n particles per unit.
  local function block(name, x, y, w, h)
    return cq.Shape.box { name = name, at = { x * UNIT, y * UNIT }, size = { w * UNIT, h * UNIT },
      count = { n * w, n * h } }
  end
  local muscles, max = { "left", "right" }, 4
  local robot = cq.Robot {
    shape = { block("left", 0, 0, 0.5, 2), block("right", 0.5, 0, 0.5, 2), block("head", 0, 2, 1, 1) },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = muscles, axis = "y", max = max },
    groups = { foot = function(_, y) return y < 0.05 end }, pins = "foot",
  }
  return {
    robot = robot, groups = { "left", "right", "head" }, muscles = muscles, max = max, goal = { 0.6, 0.6 },
    world = {
      cells = { 40, 40 }, dx = 1 / 40, dt = 5e-3, precision = options and options.precision,
      walls = cq.Boundary.box { kind = "separate" }, robot:at { 0.4, 0.1 },
    },
  }
end
