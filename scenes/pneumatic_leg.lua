-- pneumatic_leg: a leg of silicone with four air chambers in a cross, in space: it hangs from its mount, or is dropped.
-- Source: the leg of ChainQueen (ICRA 2019, fig. 3), of Dragon Skin 30, which bends away from a chamber that is
-- inflated and is dropped from 15 cm. The paper has pictures alone: sizes and pressures are of our own. Units: m, kg
-- and s, so that stresses are in Pa.
--
--   y 100 +-----------+               from above, radius 15 mm: fore is towards x, right towards z
--         |   mount   |
--      85 |-----------|                    . - left - .
--         | ==== ==== |                  .  \       /  .
--         | ==== ==== |                back    ( )    fore           walls of 2.5 mm, outside and between chambers
--         | ==== ==== |                  .  /       \  .
--      15 | ==== ==== |                    . - right -.
--          \__foot__ /
--
-- A chamber is seven pockets, one over the other and under one pressure. Pressure in a straight tube would not bend the
-- leg: what it does along the tube and around it cancel where the volume is kept (reciprocity: to first order a rod of
-- an incompressible solid bends without a change of volume of the holes along it). Pockets open like a bellows.
local cq = require "cq"

local MM = 1e-3
local RADIUS, LENGTH, WALL, FOOT, MOUNT = 15, 100, 2.5, 15, 85
local POCKET, PITCH, COUNT = 6.25, 10, 7                     -- height of a pocket, and from one to the next
-- which way they look
local CHAMBERS = { { "fore", 1, 0 }, { "right", 0, 1 }, { "back", -1, 0 }, { "left", 0, -1 } }

---@class scenes.pneumatic_leg.options
---@field spacing? number       of particles, 1.25 unless given; a cell is twice as large [mm]
---@field max? number           pressure of a signal of 1, 100 kPa unless given [Pa]
---@field bulk? number          bulk modulus by the shear modulus, 20 unless given: silicone's own is about 8,000
---@field drop? number          height of the foot over the floor, from which it falls; it hangs unless given [m]
---@field damping? number       [1/time]
---@field device? string

-- Does point (x, z) [mm] of the leg's cross section lie in the chamber on the side of direction (a, b)?
local function in_chamber(x, z, a, b)
  local along, across = a * x + b * z, math.abs(b * x - a * z)
  return x * x + z * z < (RADIUS - WALL) ^ 2 and (along - across) / math.sqrt(2) > WALL / 2
end

-- Does point (x, y, z) [m] lie in the silicone of the leg, that is, in the leg and in none of its chambers?
local function solid(x, y, z)
  x, y, z = x / MM, y / MM, z / MM
  local lift = math.max(0, FOOT - y) / FOOT                  -- the foot is half a ball
  if x * x + z * z > RADIUS ^ 2 * (1 - lift * lift) then return false end
  if y < FOOT or y > MOUNT or (y - FOOT) % PITCH > POCKET or y > FOOT + COUNT * PITCH then return true end
  for _, chamber in ipairs(CHAMBERS) do
    if in_chamber(x, z, chamber[2], chamber[3]) then return false end
  end
  return true
end

-- The leg as a cq.Robot, with a pressure actuator for each of its four chambers. Its mount is pinned, so that it hangs,
-- unless options.drop is given: then it falls. options: of the scene.
local function leg(options)
  local max, air = options.max or 1e5, {}
  local shape = cq.Shape.box {
    name = "leg", at = { -RADIUS * MM, 0, -RADIUS * MM }, size = { 2 * RADIUS * MM, LENGTH * MM, 2 * RADIUS * MM },
    spacing = (options.spacing or 1.25) * MM,
  }:where(solid)
  for k, chamber in ipairs(CHAMBERS) do
    local name, pockets, out = chamber[1], {}, 0.6 * RADIUS * MM
    for i = 1, COUNT do
      pockets[i] = name .. "_" .. i
      shape = shape:chamber(pockets[i],
        { out * chamber[2], (FOOT + (i - 1) * PITCH + POCKET / 2) * MM, out * chamber[3] })
    end
    air[k] = cq.Actuator.follower_pressure { name = name, surface = pockets, max = max }
  end
  local shear = 2 * cq.Material.elastomer "Dragon Skin 30".c10
  return cq.Robot {
    name = "leg", shape = shape, actuators = air,
    material = cq.Material.elastomer { name = "Dragon Skin 30", bulk = (options.bulk or 20) * shear },
    groups = {
      foot = function(_, y) return y < FOOT * MM end, mount = function(_, y) return y > MOUNT * MM end,
    },
    pins = not options.drop and "mount" or nil,
  }
end

---A leg and the fields of its world.
---@param options? scenes.pneumatic_leg.options
---@return { robot: cq.Robot, world: cq.World.def, chambers: table[], floor: number?, [string]: any }
---  chambers: { name, x, z } of each, the way that it looks; floor: the height at which the foot of a leg touches it
return function(options)
  local given = require "scenes.options"("scenes.pneumatic_leg", options, { "spacing", "max", "bulk", "drop",
    "damping", "device" })
  local dx, margin, drop = 2 * (given.spacing or 1.25) * MM, 4, given.drop
  local room = drop and { 60, LENGTH + drop / MM + 20, 60 } or { 120, LENGTH + 20, 120 }                 -- [mm]
  local cells = {}
  for d = 1, 3 do cells[d] = 2 * math.ceil(room[d] * MM / dx / 2) + 2 * margin end
  local foot = drop and (margin + 1) * dx + drop or margin * dx + 15 * MM      -- a body rests a cell above a wall
  local robot = leg(given)
  return {
    robot = robot, chambers = CHAMBERS, floor = drop and (margin + 1) * dx or nil,
    world = {
      cells = cells, dx = dx, dt = 1e-3, substeps = "auto", gravity = { 0, -9.81, 0 }, damping = given.damping,
      device = given.device, walls = drop and cq.Boundary.floor { at = margin * dx, mu = 0.6 } or nil,
      robot:at { cells[1] / 2 * dx, foot, cells[3] / 2 * dx },
    },
  }
end
