-- balloon: a ring of rubber in the plane, a shell in space, around a closed cavity with a pressure that follows its
-- walls.
-- Source: none, a scene of our own. Neo-Hookean rubber with E 20 and nu 0.45 unless given, radii 0.1 and 0.16.
local cq = require "cq"
local bisect = require "scenes.bisect"

local INNER, OUTER = 0.1, 0.16
local YOUNG = 20

-- ---- the balance of pressure and wall, after Laplace, for a wall of any thickness ------------------------------

-- First Piola-Kirchhoff stresses of neo-Hookean rubber (E = YOUNG) in the radial and in the hoop direction of a ring
-- (dim 2, plane strain) or a spherical shell (dim 3). radial, around: the stretches in these directions.
local function stress(radial, around, dim, nu)
  local mu, lambda = YOUNG / (2 * (1 + nu)), YOUNG * nu / ((1 + nu) * (1 - 2 * nu))
  local volume = lambda * math.log(radial * around ^ (dim - 1))
  return (mu * (radial ^ 2 - 1) + volume) / radial, (mu * (around ^ 2 - 1) + volume) / around
end

-- The radial stress at the outer surface of the wall, if the inner surface has the stretch inner_stretch and carries
-- `pressure`; 0 in equilibrium. Integrates dP_r/dR = (dim - 1) (P_around - P_r) / R across the wall, dr/dR from P_r.
local function outside(inner_stretch, pressure, dim, nu)
  local n, R, r, P = 400, INNER, INNER * inner_stretch, -pressure * inner_stretch ^ (dim - 1)
  local h = (OUTER - INNER) / n
  -- dr/dR and dP_r/dR at the undeformed radius `at`, if the deformed radius is `radius` and the radial stress `along`.
  local function rates(at, radius, along)
    local radial = bisect(function(l) return (stress(l, radius / at, dim, nu)) - along end, 0.05, 3)
    local _, around = stress(radial, radius / at, dim, nu)
    return radial, (dim - 1) * (around - along) / at
  end
  for _ = 1, n do
    local dr, dP = rates(R, r, P)
    dr, dP = rates(R + h / 2, r + h / 2 * dr, P + h / 2 * dP)
    R, r, P = R + h, r + h * dr, P + h * dP
  end
  return P
end

-- The volume (2D: area) of the cavity over its undeformed volume in equilibrium with a pressure, in the unit of YOUNG:
-- the stretch of the inner surface, searched between 1 and 1.8, at which the outer surface is free of stress.
local function balance(pressure, dim, nu)
  return bisect(function(stretch) return outside(stretch, pressure, dim, nu) end, 1, 1.8) ^ dim
end

---@class scenes.balloon.options
---@field dim? integer             2 unless given
---@field max? number              pressure of a signal of 1, 2 unless given [stress]
---@field cells? integer           of the grid along each axis
---@field spacing? number          of particles, two in a cell unless given [length]
---@field damping? number          [1/time]
---@field poisson? number          0.45 unless given
---@field averaging? number        f_bar of the rubber, none unless given
---@field precision? string
---@field device? string

---A balloon: its robot, the fields of its world, its actuator and its radii.
---@param options? scenes.balloon.options
---@return { robot: cq.Robot, world: cq.World.def, pressure: cq.Actuator, inner: number, outer: number, [string]: any }
---  balance: the volume (area in 2D) of the cavity over its undeformed volume, in equilibrium with a pressure, by
---  integration of the law across the wall
return function(options)
  local given = require "scenes.options"("scenes.balloon", options, { "dim", "max", "cells", "spacing", "damping",
    "poisson", "averaging", "precision", "device" })
  local dim, nu = given.dim or 2, given.poisson or 0.45
  -- A list with dim copies of a value.
  local function filled(value)
    local out = {}
    for i = 1, dim do out[i] = value end
    return out
  end
  -- A disc (2D) or ball (3D) of a radius, around the middle of the balloon.
  local function ball(radius)
    return (dim == 2 and cq.Shape.disc or cq.Shape.sphere) { at = filled(OUTER), radius = radius }
  end
  local pressure = cq.Actuator.follower_pressure {
    name = "air", surface = { inside = filled(OUTER) }, max = given.max or 2,
  }
  local cells = given.cells or dim == 2 and 48 or 32
  local robot = cq.Robot {
    shape = ball(OUTER) - ball(INNER), spacing = given.spacing or 0.5 / cells,
    actuators = pressure, material = cq.Material.neo_hookean { young = YOUNG, poisson = nu, density = 1,
      f_bar = given.averaging },
  }
  return {
    robot = robot, pressure = pressure, inner = INNER, outer = OUTER,
    balance = function(p) return balance(p, dim, nu) end,
    world = {
      cells = filled(cells), dx = 1 / cells, dt = 0.01, substeps = math.ceil(16 * cells / (dim == 2 and 48 or 32)),
      damping = given.damping, precision = given.precision, device = given.device,
      robot:at(filled(0.5 - OUTER)),
    },
  }
end
