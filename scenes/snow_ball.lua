-- snow_ball: a snowball falls on the edge of a block and breaks.
-- Source: none, a scene of our own, with the snow of Stomakhin et al. (ACM TOG 32, 2013, table 2): critical compression
-- 2.5 %, critical stretch 0.75 %, hardening 10, 400 kg/m^3, E = 140 kPa. Lengths are in metres, times in seconds.
local cq = require "cq"

local RADIUS, DROP, EDGE, WALL = 0.15, 1.2, 0.3, 3     -- [m], and walls in cells

---A snowball and the fields of its world.
---@param options? { cells?: integer, precision?: string, device?: string }
---  cells: along the ball's radius, 12 unless given
---@return { robot: cq.Robot, world: cq.World.def, duration: number, ground: number, edge: number }
---  edge: height of the block above the ground
return function(options)
  local given = options or {}
  local dx = RADIUS / (given.cells or 12)
  local robot = cq.Robot {
    name = "snowball",
    shape = cq.Shape.disc { name = "ball", radius = RADIUS, spacing = dx / 2, jitter = 0.5, seed = 1 },
    material = cq.Material.snow {
      young = 1.4e5, poisson = 0.2, density = 400,
      snow_hardening = 10, critical_compression = 2.5e-2, critical_stretch = 7.5e-3,
    },
  }
  local ground, across = WALL * dx, math.floor(1.2 / dx)
  return {
    robot = robot, duration = 1, ground = ground, edge = EDGE,
    world = {
      cells = { across, math.floor((EDGE + DROP + 3 * RADIUS) / dx) }, dx = dx,
      dt = 5e-3, substeps = 40, gravity = { 0, -9.81 },
      precision = given.precision, device = given.device,
      walls = {
        cq.Boundary.box { kind = "sticky" },
        cq.Boundary.obstacle {
          lower = { 0.3, 0 }, upper = { 0.57, ground + EDGE }, kind = "sticky", separable = true,
        },
      },
      robot:at { 0.6, ground + EDGE + DROP + RADIUS },
    },
  }
end
