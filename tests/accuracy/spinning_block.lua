-- spinning_block: a cube of 15^3 jittered particles flies and turns through empty space, and on request hits a tilted
-- wall without friction and bounces off. Momentum is conserved, so derivatives of its centre are known. Source: case A1
-- of ChainQueen's accuracy table (ICRA 2019): 3,375 particles, grid 100^3, dt 1e-4, E 100, v (3, -6, 0) and spin; the
-- spin and the wall are chosen.
local cq = require "cq"

local SIDE, SPACING = 15, 0.005                  -- two particles along each side of a cell
local VELOCITY, SPIN = { 3, -6, 0 }, 15          -- [length/time], [rad/time] about z

---@param options? { wall?: boolean, precision?: string }
---@return { robot: cq.Robot, world: cq.World.def, velocity: cq.Tensor, tangent: number[] }  tangent: a direction in the wall
return function(options)
  local size = SIDE * SPACING
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", at = { -size / 2, -size / 2, -size / 2 }, size = { size, size, size },
                           count = { SIDE, SIDE, SIDE }, jitter = 0.9, seed = 1 },
    material = cq.Material.neo_hookean { young = 100, poisson = 0.3, density = 1 },
  }
  local velocity = cq.empty { robot.particle_count, 3 }
  local x, v = robot.position:data(), velocity:data()
  for p = 0, robot.particle_count - 1 do
    v[3 * p] = VELOCITY[1] - SPIN * x[3 * p + 1]
    v[3 * p + 1] = VELOCITY[2] + SPIN * x[3 * p]
    v[3 * p + 2] = VELOCITY[3]
  end
  local wall = options and options.wall
  return {
    robot = robot, velocity = velocity, tangent = wall and { 0.8, 0.6, 0 } or { 1, 0, 0 },
    world = {
      cells = { 100, 100, 100 }, dx = 0.01, dt = 1e-4, precision = options and options.precision,
      -- met after about 400 steps at a speed of 6.6 along its normal
      walls = wall and cq.Boundary.half_plane { point = { 0.5, 0.5, 0.5 }, normal = { -0.6, 0.8, 0 },
        kind = "separate" } or {},
      robot:at { 0.3, 0.75, 0.5 },
    },
  }
end
