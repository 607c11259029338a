-- billiards: on a table without friction a spinning elastic disc hits another one that rests, and both run on into
-- cushions. Source: case B of ChainQueen's accuracy table (ICRA 2019), with the discs of its public collision scene:
-- radius 1/30, about 200 particles each, E 1, dt 5e-3, grid 100 x 100, v (0.4, 0.05); spin and lattice are chosen.
local cq = require "cq"

local RADIUS = 1 / 30
local SPEED, SPIN = { 0.4, 0.05 }, 3             -- [length/time], [rad/time]

---@param options? { precision?: string }
---@return { robot: cq.Robot, world: cq.World.def, spin: cq.Tensor, speed: number[], moving: cq.Tensor }
---  spin {n, 2}: velocities about the centre of disc "a"; speed: of its centre; moving {n, 1}: 1 for its particles
return function(options)
  local function disc(name, x, seed)
    return cq.Shape.disc { name = name, at = { x, 0.46 }, radius = RADIUS, spacing = 2 * RADIUS / 16, jitter = 0.5,
      seed = seed }
  end
  local robot = cq.Robot {
    shape = { disc("a", 0.13, 1), disc("b", 0.37, 2) },
    material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 },
  }
  local n, a = robot.particle_count, robot:group "a"
  local spin, moving = cq.zeros { n, 2 }, cq.zeros { n, 1 }
  local x, v = robot.position:data(), spin:data()
  for k = 0, a.particle_count - 1 do
    local p = a.index[k]
    v[2 * p], v[2 * p + 1] = SPIN * (x[2 * p + 1] - 0.46), -SPIN * (x[2 * p] - 0.13)
    moving:data()[p] = 1
  end
  return {
    robot = robot, spin = spin, speed = SPEED, moving = moving,
    world = {
      cells = { 100, 100 }, dx = 0.01, dt = 5e-3, precision = options and options.precision,
      walls = cq.Boundary.box { kind = "separate" }, robot:at { 0, 0 },
    },
  }
end
