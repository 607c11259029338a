-- gripper: silicone fingers that hang around a ball on a table, two in the plane, three in space; air in three groups
-- of their chambers bends them inwards. The table goes down after a while.
-- Source: none, a scene of our own with the fingers of scenes/soft_finger.lua. Units: m, s and tonnes, so that stresses
-- are in kPa. The fingers' bulk modulus is five shear moduli, where that scene has 20; and their base three times as
-- stiff as the rest in the plane, where that scene has 10: so explicit steps may be three times as long. In space,
-- where the sides hold the chambers, it is ten times as stiff, for a finger then bends farther, and steps are implicit.
--
--        ######          ######   roots, held            One pressure for chambers 1 to 3 of all fingers, from the
--        |   o|          |o   |                          roots on, one for 4 to 6, one for 7 and 8.
--        |   o|    __    |o   |   o chambers
--        |   o|   /  \   |o   |
--        |____|  | () |  |____|   ball
--     ____________\__/____________  table
local cq = require "cq"

local MM = 1e-3
local C10, C01, BULK, BASE, DENSITY = 23.028, 1.19, 5, { [2] = 3, [3] = 10 }, 1.08
local MAX = { [2] = 15, [3] = 25 }                    -- pressure of a signal of 1 [kPa]
local RADIUS, YOUNG, LIGHT = 15, 60, 0.2       -- of the ball [mm, kPa, t/m^3]: of foam
local TOP, BELOW, FALL = 116, 68, 24           -- of the roots; from there to the ball's centre; of the table's way [mm]

---@class scenes.gripper.options
---@field dim? 2|3            2 unless given
---@field spacing? number     of particles, 1 unless given; cells are twice as wide [mm]
---@field gap? number         between ball and fingers, 8 in the plane and 6 in space unless given: bodies nearer than
---  three cells hold each other by the grid [mm]
---@field max? number         pressure of a signal of 1, in the plane 15 and in space 25 unless given [kPa]
---@field leave? number       when the table begins to go, 0.2 and 0.12 unless given [s]
---@field dt? number          control step, 5e-3 and 1e-2 unless given [s]; in space steps are implicit
---@field precision? string

-- The silicone of the fingers with all moduli multiplied by `stiffness`: 1 for most of a finger, more for its base.
local function silicone(stiffness)
  return cq.Material.mooney_rivlin { c10 = C10 * stiffness, c01 = C01 * stiffness, density = DENSITY,
    bulk = BULK * 2 * (C10 + C01) * stiffness }
end

-- The shape of one finger that hangs down from y = 0 at a horizontal distance [m] from the gripper's axis x = 0, its
-- stiff side towards the axis. dim: 2 or 3; spacing: of particles [mm].
local function hanging(dim, spacing, distance)
  local finger = require("scenes.soft_finger").lattice(dim, spacing)
  if dim == 2 then return finger:rotate(-math.pi / 2):translate { distance, 0 } end
  return finger:translate({ 0, 0, -8 * MM }):rotate(-math.pi / 2, "z"):translate { distance, 0, 0 }
end

---A gripper, a ball on a table, and the fields of their world.
---@param options? scenes.gripper.options
---@return { world: cq.World.def, gripper: cq.Robot, ball: cq.Robot, place: number[], fall: number }   place: of the
---  ball on the table, fall: of the table [m]
return function(options)
  local given = require "scenes.options"("scenes.gripper", options, { "dim", "spacing", "gap", "max", "leave", "dt",
    "precision" })
  local dim = given.dim or 2
  local plane, spacing = dim == 2, given.spacing or 1
  local gap, leave = given.gap or (plane and 8 or 6), given.leave or (plane and 0.2 or 0.12)
  local one, fingers = hanging(dim, spacing, (RADIUS + gap) * MM), {}
  if dim == 2 then fingers = { one, one:mirror "x" } else
    for k = 1, 3 do fingers[k] = one:rotate(2 * math.pi / 3 * (k - 1), "y") end
  end
  local drives = {}
  for k, chambers in ipairs { { 1, 3 }, { 4, 6 }, { 7, 8 } } do
    local names = {}
    for i = chambers[1], chambers[2] do names[#names + 1] = "chamber_" .. i end
    drives[k] = cq.Actuator.follower_pressure { name = "air_" .. k, surface = names, max = given.max or MAX[dim] }
  end
  local gripper = cq.Robot { name = "gripper", shape = fingers, pins = "root", actuators = drives,
    material = { body = silicone(1), base = silicone(BASE[dim]) } }
  local sphere = dim == 2 and cq.Shape.disc or cq.Shape.sphere
  local ball = cq.Robot {
    name = "ball", shape = sphere { name = "ball", radius = RADIUS * MM, spacing = spacing * MM },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0.3, density = LIGHT },
  }
  local dx, middle = 2 * spacing * MM, (RADIUS + 16 + 19) * MM
  local place, wide = { middle, (TOP - BELOW) * MM, dim == 3 and middle or nil }, math.ceil(2 * middle / dx)
  return {
    gripper = gripper, ball = ball, place = place, fall = FALL * MM,
    world = {
      cells = { wide, math.ceil((TOP + 4) * MM / dx) + 3, dim == 3 and wide or nil }, dx = dx,
      dt = given.dt or (plane and 5e-3 or 1e-2),
      -- to 0.01 steps end at saddles once the fingers press, and have no gradient
      integrator = not plane and cq.Implicit { tolerance = 1e-3, adjoint_tolerance = 1e-4 } or nil, substeps = "auto",
      gravity = { 0, -9.81, dim == 3 and 0 or nil }, damping = 10, precision = given.precision,
      walls = cq.Boundary.floor { at = (TOP - BELOW - RADIUS) * MM, kind = "separate", motion = function(t)
        local part = math.max(0, math.min(1, (t - leave) / 0.1))
        return { 0, -FALL * MM * part * part * (3 - 2 * part), dim == 3 and 0 or nil }
      end },
      gripper:at { middle, TOP * MM, dim == 3 and middle or nil }, ball:at(place),
    },
  }
end
