-- water_tank: a tank of water at rest, with room for a body in it.
-- Source: none; what it is compared with is linear theory of waves and Archimedes. Units: gravity 1, density 1.
--
-- The grid holds a liquid half a cell behind the last nodes of the walls. So the water fills the tank to half a cell
-- beyond its walls, which stand on nodes, and the tank is a cell longer than their distance:
--
--   node   2   3   4   5   6 ...
--          o | o   o   o   o       | the water's end; o 3: the last node of the wall
local cq = require "cq"

local GRAVITY, EDGE = 1, 2.5      -- EDGE: cells from the edge of the world to the water

---@param options? { length?: number, depth?: number, height?: number, across?: integer, stiffness?: number, kind?: string,
---  without?: cq.Shape, bodies?: cq.Robot[], walls?: cq.Boundary[], [string]: any }
---  length: of the tank, 1 unless given; depth: of the water, 0.5; height: of the tank, 1.6 times its depth
---  across: cells along the length, 32; stiffness: bulk modulus in density * gravity * depth, 200
---  kind: of the walls, "separate"; without: what the water leaves out, in coordinates from the tank's corner
---  viscosity, damping, precision, dt, jitter, per_cell (particles along the side of a cell): as the library has them
---@return { robot: cq.Robot, world: cq.World.def, corner: number[], [string]: any }
---  corner: {2} lower left corner of the tank in the world
return function(options)
  local given = options or {}
  local length, depth, across = given.length or 1, given.depth or 0.5, given.across or 32
  local dx = length / across
  local corner = { EDGE * dx, EDGE * dx }
  local up = math.ceil((given.height or 1.6 * depth) / dx)
  local shape = cq.Shape.box {
    name = "water", size = { length, depth }, spacing = dx / (given.per_cell or 2), jitter = given.jitter, seed = 1,
  }
  if given.without then shape = shape - given.without end
  local robot = cq.Robot {
    name = "water", shape = shape,
    material = cq.Material.fluid {
      bulk = (given.stiffness or 200) * GRAVITY * depth, density = 1, viscosity = given.viscosity,
    },
  }
  local wall = (EDGE + 0.5) * dx
  local world = {
    cells = { across + 2 * EDGE, up + 2 * EDGE }, dx = dx, dt = given.dt or 0.02, substeps = "auto",
    gravity = { 0, -GRAVITY }, damping = given.damping, precision = given.precision,
    walls = {
      cq.Boundary.box {
        lower = { wall, wall }, upper = { (across + EDGE - 0.5) * dx, (up + EDGE - 0.5) * dx },
        kind = given.kind or "separate", mu = given.mu,
      },
      unpack(given.walls or {}),
    },
    robot:at(corner):hydrostatic { gravity = { 0, -GRAVITY }, surface = corner[2] + depth },
  }
  for _, body in ipairs(given.bodies or {}) do world[#world + 1] = body:at(corner) end
  return {
    robot = robot, world = world, corner = corner, length = length, depth = depth, dx = dx, gravity = GRAVITY,
  }
end
