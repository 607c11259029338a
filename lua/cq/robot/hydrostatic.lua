-- hydrostatic: a liquid at rest under its own weight, as a differentiable function of its constants. The particles stay
-- where they are; the liquid in each of them is compressed by what stands above it.
--
--   dp/dd = rho g / J and p = K / gamma (J^-gamma - 1) (E40) at the depth d give
--   J = (1 + (gamma - 1) s)^(-1 / (gamma - 1)),  s = rho g d / K;  J = exp(-s) for gamma = 1
--
-- The share of space that a particle has stays: its initial volume times its J before, 1 unless it has a deformation.
-- Its initial volume becomes that share by J, and its mass grows with it.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local constants = require "cq.robot.constants"
local values = require "cq.robot.values"

local COMPRESSION = 0.05     -- what s may be at the bottom: with more the liquid is soft, and its waves are slow

---@class robot.hydrostatic.def
---@field gravity number[]     {dim} as the world has it [length/time^2]
---@field surface? number      height of the free surface: against gravity from the origin of the world, y where gravity points
---  down; the upper end of the robot's shape unless given [length]

local spec = is.define("robot:hydrostatic", {
  gravity = is.vector { size = { 2, 3 } },
  surface = is.number { optional = true },
})

-- The unit vector against gravity, and the size of gravity [length/time^2]. Errors: zero; a wrong dimension.
local function upward(robot, gravity)
  if #gravity ~= robot.dim then
    is.fail("robot:hydrostatic: gravity has %s, the robot is %dD", text.count(#gravity, "component"), robot.dim)
  end
  local size, up = 0, {}
  for _, g in ipairs(gravity) do size = size + g * g end
  size = math.sqrt(size)
  if size == 0 then is.fail "robot:hydrostatic: gravity is zero; without it no liquid has a pressure at rest" end
  for d, g in ipairs(gravity) do up[d] = -g / size end
  return up, size
end

-- The height along `up` of the highest corner of the box around the robot's shape: the surface of the liquid. Errors: a
-- robot that no longer fills its shape.
local function top_of(robot, up)
  if robot.values and robot.values.position then
    is.fail "robot:hydrostatic: give surface, the height of the liquid: the robot's particles are no longer those of its shape"
  end
  local top = 0
  for d = 1, robot.dim do
    local lower = robot.lower[d] + robot.offset[d]
    top = top + math.max(up[d] * lower, up[d] * (lower + robot.size[d]))
  end
  return top
end

-- Raises an error if the surface lies below all particles, or if s (squeeze) of a particle is above COMPRESSION.
-- depths, bulk: of the particles.
local function check(squeeze, depths, bulk)
  local s, depth = squeeze:max():item(), depths:max():item()
  if depth <= 0 then
    is.fail("robot:hydrostatic: no liquid lies below the surface; the lowest particle is %s above it",
      text.number(-depth))
  elseif s > COMPRESSION then
    is.fail("robot:hydrostatic: at a depth of %.3g the liquid is compressed by %.2g %% of its volume, at most %g %% are"
      .. " allowed: give it a bulk modulus of %.3g or more (density * gravity * depth / %g), 200 times density * gravity *"
      .. " depth for flow", depth, 100 * s, 100 * COMPRESSION, (squeeze * bulk):max():item() / COMPRESSION,
      COMPRESSION)
  end
end

-- The volume ratio J {..., count} by which fluid particles are compressed at rest, from s = rho g d / K (squeeze) and
-- gamma (exponent).
local function ratio_of(squeeze, exponent)
  local a = exponent - 1
  local linear = a:abs():less(1e-6)
  local safe = T.where(linear, 1, a)
  -- for gamma = 1 the first terms of the same series
  return (-T.where(linear, squeeze - 0.5 * a * squeeze:square(), (1 + safe * squeeze):log() / safe)):exp()
end

-- The determinants {...} of matrices {..., dim, dim}.
local function determinants(f, dim)
  -- The entries {...} of row i and column j, counted on from dim + 1 to 1 again.
  local function at(i, j)
    i, j = (i - 1) % dim + 1, (j - 1) % dim + 1
    return f:slice(i, i, -2):squeeze(-2):slice(j, j, -1):squeeze(-1)
  end
  if dim == 2 then return at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1) end
  local sum = 0
  for j = 1, 3 do sum = sum + at(1, j) * (at(2, j + 1) * at(3, j + 2) - at(2, j + 2) * at(3, j + 1)) end
  return sum
end

---The values of the robot with its liquid at rest, as values.check gives them: deformation and volume, { tensor } each.
---Errors: no fluid, none below the surface, or too much compression.
---@param robot cq.Robot
---@param fields robot.hydrostatic.def
---@return table<string, table>
return function(robot, fields)
  local def = spec(fields)
  local up, size = upward(robot, def.gravity)
  if not robot.base.exponent then
    is.fail("robot:hydrostatic: %s has no cq.Material.fluid", robot.name)
  end
  -- of all particles, or of those of fluid
  local fluid = constants.having(robot, "exponent")
  -- Values of all particles at those of the liquid, {count, ...} or with the batch in front. dim: of particles.
  local function of_liquid(value, dim) return fluid and value:gather(fluid.index, dim or -1) or value end
  -- A value of the robot at the particles of the liquid.
  local function of(name) return of_liquid(robot[name], name == "position" and -2 or -1) end
  local depth = (def.surface or top_of(robot, up)) - (of "position" * T.tensor(up)):sum(-1)
  local squeeze = of "density" * size * depth:relu() / of "bulk"
  T.tape.pause(check, squeeze, depth, of "bulk")
  local ratio, before = ratio_of(squeeze, of "exponent"), values.spread(robot, "deformation")
  local mask = fluid and T.zeros { robot.particle_count }
  for _, p in ipairs(fluid and fluid.index or {}) do mask:set(1, p) end
  -- Values of all particles from those of the liquid; `other`: of the others.
  local function to_all(value, other) return fluid and T.where(mask, value:gather(fluid.slot, -1), other) or value end
  local side = (to_all(ratio, 1) ^ (1 / robot.dim)):unsqueeze(-1):unsqueeze(-1)
  local deformation = side * T.eye(robot.dim)
  if before and fluid then deformation = T.where(mask:unsqueeze(-1):unsqueeze(-1), deformation, before) end
  local change = before and ratio / of_liquid(determinants(before, robot.dim)) or ratio
  return {
    deformation = { tensor = deformation },
    volume = { tensor = robot.volume / to_all(change, 1) },
  }
end
