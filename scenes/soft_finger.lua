-- soft_finger: a silicone finger with eight air chambers in a row, held at its root, that bends when they are under
-- pressure; in space from a mesh of tetrahedra, in the plane from boxes.
-- Source: the finger of the implicit MPM soft-finger paper (Robotica 2024), which gives no dimensions: these are of our
-- own, after the PneuNets of the field. Its constants of Dragon Skin 30 (Mooney-Rivlin, shear modulus 48 kPa) are the
-- soft end of what is measured. Units: m, s and tonnes, so that stresses are in kPa. The mesh is in mm.
--
--   y 16 +--------------------------------------------------------------+    80 x 16 x 16 mm
--        |         +--+  +--+  +--+  +--+  +--+  +--+  +--+  +--+       |    chambers 4 x 6 x 12, 4 apart
--        |  root   |  |  |  |  |  |  |  |  |  |  |  |  |  |  |  |  tip  |    roof 4, sides 2, floor 6
--        |         +--+  +--+  +--+  +--+  +--+  +--+  +--+  +--+       |
--      2 |---------------------------- base ----------------------------|    the base is ten times as stiff: it bends
--      0 +--------------------------------------------------------------+    and hardly stretches, as one with a fabric
--        x 0   6  10                                          70       80
--
-- Walls as thick as the chambers: at 20 kPa, 0.4 of the shear modulus, a round hole in an endless solid already has
-- 1.57 times its area, and thinner walls balloon. Finite elements put the tip 21.7 mm lower under 20 kPa in the plane,
-- where the chambers have 1.98 times their area (tests/verify/fem/soft_finger.py).
local cq = require "cq"

local SIZE, CHAMBER, FIRST, COUNT, PITCH = { 80, 16, 16 }, { 4, 6, 12 }, { 10, 6, 2 }, 8, 8        -- [mm]
local BASE, ROOT, END, WALL, ROOF = 2, 6, 4, 4, 4                                -- END: what counts as the tip
local ACROSS = 3                                                                 -- particles across a cell in the plane
local MM = 1e-3
local C10, C01, DENSITY = 23.028, 1.19, 1.08

---@class scenes.soft_finger.options
---@field dim? 2|3                 3 unless given
---@field spacing? number          of particles in the plane, a third of dx unless given: with half of it rollouts and
---  world:settle end up to 9 % apart, with a third within 5 [mm]
---@field wall? number             between two chambers in the plane, 4 unless given: the finger is longer by what they
---  are thicker [mm]
---@field roof? number             above the chambers in the plane, 4 unless given [mm]
---@field dx? number               of the grid, 2 unless given [mm]
---@field max? number              pressure of a signal of 1, 20 unless given [kPa]
---@field base? number             stiffness of the base by that of the rest, 10 unless given
---@field bulk? number             bulk modulus by the shear modulus, 20 unless given: silicone's own is 36,000
---@field material? fun(stiffness: number): cq.Material   in the place of Dragon Skin 30: of the rest, 1, and of the base
---@field together? boolean        one signal for all chambers, true unless given; else one for each
---@field damping? number          [1/time]
---@field precision? string
---@field device? string

-- A function f(stiffness) that returns the material Dragon Skin 30 with all moduli multiplied by stiffness.
-- options.bulk: bulk modulus by the shear modulus, 20 unless given.
local function dragon_skin(options)
  local bulk = (options.bulk or 20) * 2 * (C10 + C01)
  return function(stiffness)
    return cq.Material.mooney_rivlin { c10 = C10 * stiffness, c01 = C01 * stiffness, bulk = bulk * stiffness,
      density = DENSITY }
  end
end

-- Raises an error if dim is neither 2 nor 3.
local function check_dim(dim)
  if dim ~= 2 and dim ~= 3 then error(("scenes.soft_finger: dim must be 2 or 3, got %s"):format(dim), 3) end
end

-- The first dim numbers of a list [mm], converted to m, as a new list.
local function scaled(list, dim)
  local out = {}
  for d = 1, dim do out[d] = MM * list[d] end
  return out
end

-- The shape of the finger: a box minus a box for each air chamber, with the chambers and the groups "body", "base" and
-- "root", in 2D or 3D. size {dim} [m]: of the finger; spacing: of particles [mm]; pitch: from one chamber to the next
-- [mm].
local function lattice(spacing, size, pitch)
  local dim = #size
  local shape = cq.Shape.box { size = size, spacing = MM * spacing }
  -- The lower corner {3} [mm] of chamber number k, from 0.
  local function corner(k) return { FIRST[1] + k * pitch, FIRST[2], FIRST[3] } end
  for k = 0, COUNT - 1 do
    shape = shape - cq.Shape.box { at = scaled(corner(k), dim), size = scaled(CHAMBER, dim) }
  end
  for k = 0, COUNT - 1 do
    local middle = corner(k)
    for d = 1, dim do middle[d] = middle[d] + CHAMBER[d] / 2 end
    shape = shape:chamber("chamber_" .. k + 1, scaled(middle, dim))
  end
  -- Does a point lie above the base? A predicate for a group of particles.
  local function above(_, y) return y > MM * BASE end
  return shape:group("body", above):group("base", function(x, y) return not above(x, y) end)
    :group("root", function(x) return x < MM * ROOT end)
end

---The scene: a soft finger as a cq.Robot, and the fields of its world, with the finger in it.
---@param options? scenes.soft_finger.options
---@return { robot: cq.Robot, world: cq.World.def, chambers: string[], signals: string[], [string]: any }   names of the walls, and of
---  the signals; size and the chambers' volume at rest (area in 2D) in m
local function finger(options)
  local given = require "scenes.options"("scenes.soft_finger", options, { "dim", "spacing", "wall", "roof", "dx",
    "max", "base", "bulk", "material", "together", "damping", "precision", "device" })
  local dim, dx, chambers, drives = given.dim or 3, MM * (given.dx or 2), {}, {}
  check_dim(dim)
  for k = 1, COUNT do chambers[k] = "chamber_" .. k end
  for k, surface in ipairs(given.together ~= false and { chambers } or chambers) do
    drives[k] = cq.Actuator.follower_pressure { name = type(surface) == "table" and "air" or surface, surface = surface,
      max = given.max or 20 }
  end
  local material = given.material or dragon_skin(given)
  local volume = COUNT
  for d = 1, dim do volume = volume * MM * CHAMBER[d] end
  if dim == 3 and (given.wall or given.roof or given.spacing) then
    error("scenes.soft_finger: wall, roof and spacing are for dim = 2; in 3D the finger is that of its mesh", 2)
  end
  local pitch = CHAMBER[1] + (given.wall or WALL)
  local size = { SIZE[1] + (COUNT - 1) * (pitch - PITCH), SIZE[2] + (given.roof or ROOF) - ROOF, SIZE[3] }
  local robot = cq.Robot {
    shape = dim == 3 and cq.Shape.tetrahedra { path = "assets/soft_finger.msh", scale = MM }
      or lattice(given.spacing or (given.dx or 2) / ACROSS, scaled(size, 2), pitch),
    material = { body = material(1), base = material(given.base or 10) }, actuators = drives, pins = "root",
    groups = { tip = function(x) return x > MM * (size[1] - END) end }, name = "finger",
  }
  local cells, at = { 12 + math.ceil(size[1] / 2), 56, 16 }, { 4, 40, 4 }    -- room to bend down, of cells of 2 mm
  local count, place = {}, {}
  for d = 1, dim do count[d], place[d] = math.ceil(cells[d] * 2 * MM / dx), at[d] * 2 * MM end
  return {
    robot = robot, chambers = chambers, signals = robot.signals, volume = volume, size = scaled(size, dim),
    world = {
      cells = count, dx = dx, dt = 1e-3, substeps = "auto", damping = given.damping, precision = given.precision,
      device = given.device, robot:at(place),
    },
  }
end

return setmetatable({
  -- [mm], for scenes/make_finger.lua, which meshes it
  drawing = { size = SIZE, chamber = CHAMBER, first = FIRST, count = COUNT, pitch = PITCH, base = BASE, root = ROOT },
  -- The finger's shape of boxes, in 2D or 3D, for bodies that have several fingers; spacing of particles in mm.
  lattice = function(dim, spacing)
    check_dim(dim)
    return lattice(spacing, scaled(SIZE, dim), PITCH)
  end,
}, { __call = function(_, options) return finger(options) end })
