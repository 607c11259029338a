-- falling_block: a square or cube of jittered particles, two along each side of a cell, that turns slowly and slides
-- along a floor with friction, which it meets in the first steps. What speed is measured on. Source: the falling cube
-- of ChainQueen (ICRA 2019, table II); the paper gives particles and grids, the rest is chosen.
--
--   local scene = require "scenes.falling_block" { dim = 3, side = 20, cells = { 50, 50, 50 } }
--   local world = cq.World(scene.world)
--   world:rollout { robot = scene.robot:with { velocity = scene.velocity }, steps = 100 }
local cq = require "cq"

local DX = 0.01                 -- size of a cell
local DT = 5e-4                 -- Courant number about 0.25 with the material and speeds below
local GAP = 1.6                 -- cells between block and floor, which is felt from 1.5 on
local WALL = 3                  -- cells from the edge of the world to the sides of cq.Boundary.box
local SPEED = { 0.3, -0.8, 0.15 }
local SPIN = 0.5                -- speed of the middle of a side

-- The initial velocity of each particle {n, dim} of the block: SPEED, and a rotation in the x-y plane about its middle,
-- by which the middles of its sides move at the speed SPIN. size: side of the block [length].
local function velocity(robot, size)
  local dim, spin = robot.dim, SPIN / (size / 2)
  local v = cq.empty { robot.particle_count, dim }
  local from, to = robot.position:data(), v:data()
  for p = 0, robot.particle_count - 1 do
    local x, y = from[p * dim] - size / 2, from[p * dim + 1] - size / 2
    for i = 0, dim - 1 do to[p * dim + i] = SPEED[i + 1] end
    to[p * dim], to[p * dim + 1] = to[p * dim] - spin * y, to[p * dim + 1] + spin * x
  end
  return v
end

---A block and the fields of its world, with the velocity of its particles at first.
---@param options { dim: integer, side: integer, cells: integer[], law?: string, substeps?: integer,
---  averaging?: number, young?: number, step?: number, floor?: "separate", gap?: number, jitter?: number }
---  side: particles along each side; substeps: engine steps in a control step, 1 unless given; averaging: of the
---  dilatation; young: 10 unless given; step: of the engine, DT unless given; floor: with friction unless given;
---  gap: cells between block and floor, GAP unless given; jitter: of particles, .9 unless given
---@return { robot: cq.Robot, world: cq.World.def, velocity: cq.Tensor }              the world's fields hold the robot
return function(options)
  local dim, size, substeps = options.dim, options.side * DX / 2, options.substeps or 1
  local sizes, count, at = {}, {}, {}
  for i = 1, dim do
    sizes[i], count[i] = size, options.side
    at[i] = i == 2 and (WALL + (options.gap or GAP)) * DX or (options.cells[i] * DX - size) / 2
  end
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = sizes, count = count, jitter = options.jitter or 0.9, seed = 1 },
    material = cq.Material[options.law or "neo_hookean"] { young = options.young or 10, poisson = 0.3, density = 1,
      f_bar = options.averaging },
  }
  local floor = options.floor and { kind = options.floor } or { kind = "friction", mu = 0.4 }
  return {
    robot = robot, velocity = velocity(robot, size),
    world = {
      cells = options.cells, dx = DX, dt = (options.step or DT) * substeps, substeps = substeps,
      gravity = dim == 2 and { 0, -9.8 } or { 0, -9.8, 0 },
      walls = cq.Boundary.box(floor), robot:at(at),
    },
  }
end
