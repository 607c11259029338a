-- cabled: the finger and the biped, which are driven by air chambers or by cables.
local is = require "cq.base.schema"
local actuators = require "cq.actuator"
local body = require "cq.creature.body"
local lattice = require "cq.creature.lattice"

local cabled = {}

---Fields of creatures that can be driven by cables.
---@class cq.Creature.cabled.def : cq.Creature.body.def
---@field drive? "pressure"|"cables"   air chambers, or cables along both sides
---@field count? integer               of chambers: particles along each side of a block; or spacing
---@field spacing? number              of chambers: particles lie about so far apart; or count [length]
---@field particles? integer           of cables: how many there are, as near as a lattice comes
---@field stiffness? number            of a cable [force/length]
---@field contraction? number          of a cable of law "contract": the part of its length that a signal of 1 winds in; 0.4 unless given [-]
---@field friction? number             of a cable with its sheath, as of cq.Actuator.cable [-]
---@field law? "contract"|"spool"      of a cable, as of cq.Actuator.cable
---@field inset? number                of a cable from the side [length]

local CONTRACTION = 0.4      -- of law "contract", unless the user says it

-- Adds to a creature's own fields, in place, the checkers of those that finger and biped share; stiffness: the default
-- of its cables. Returns them.
local function fields_of(own, stiffness)
  own.drive = is.one_of { "pressure", "cables", default = "pressure" }
  own.count, own.spacing = is.integer { min = 1, optional = true }, is.number { above = 0, optional = true }
  own.particles = is.integer { min = 4, optional = true }
  own.stiffness = is.number { min = 0, default = stiffness }
  own.contraction = is.number { min = 0, max = 1, optional = true }
  own.friction = is.number { min = 0, default = 0 }
  own.law = is.one_of { "contract", "spool", default = "contract" }
  own.inset = is.number { above = 0, default = 0.015 }
  return own
end

local OF_CABLES = { "contraction", "friction", "inset", "law", "stiffness" }

-- Raises an error for options of the drive that is not used: count goes with chambers, particles and cable fields with
-- cables. given: the user's table.
local function check_drive(name, def, given)
  if def.drive == "cables" and (def.count or def.spacing) then
    is.fail("cq.Creature.%s: %s goes with drive = \"pressure\"; with cables say particles", name, def.count and "count"
      or "spacing")
  end
  if def.drive == "cables" and given.max ~= nil then
    is.fail("cq.Creature.%s: max goes with drive = \"pressure\", and has no effect on cables, which pull by stiffness and "
      .. "contraction", name)
  end
  if def.drive == "pressure" and def.particles then
    is.fail("cq.Creature.%s: particles goes with drive = \"cables\"; with pressure say count, along each side of a block, or spacing", name)
  end
  for _, option in ipairs(def.drive == "pressure" and OF_CABLES or {}) do
    if given[option] ~= nil then
      is.fail("cq.Creature.%s: %s goes with drive = \"cables\", and has no effect on air chambers", name, option)
    end
  end
end

-- The actuator of a cable up one side of a block at x: through `points` places from height `from` to height `to`.
local function cable(def, name, x, from, to, points)
  local path, contraction = {}, def.contraction
  if def.law == "contract" then contraction = contraction or CONTRACTION end
  for k = 1, points do path[k] = { x, from + (to - from) * (k - 1) / (points - 1) } end
  return actuators.cable {
    name = name, path = path, stiffness = def.stiffness, contraction = contraction, friction = def.friction,
    law = def.law,
  }
end

-- ---- finger ---------------------------------------------------------------------------------------------------------

---@class cq.Creature.finger.def : cq.Creature.cabled.def
---@field width? number        of a chamber, or of the strip with cables [length]
---@field height? number       of the chambers, or of the strip with cables [length]
---@field root? number         length that is held, and with it every node that it touches [length]

local FINGER_POINTS = 8
local COUNT = 20             -- particles along each side of a block, unless the user says it

-- The robot of a finger bent by two rows of air chambers.
local function finger_of_chambers(def)
  local n, spacing = body.fineness("finger", def, COUNT)
  local w, h = def.width, def.height
  local left = body.block("left", { 0, 0 }, { w, h }, n, spacing)
  body.require_root("finger", def.root, left, false)
  return body.make("finger", def, {
    shape = {
      left, body.block("right", { w, 0 }, { w, h }, n, spacing),
      body.block("head", { 0, h }, { 2 * w, 2 * w }, n, spacing),
    },
    actuators = body.pressure(def, { "left", "right" }), groups = { root = function(_, y) return y < def.root end,
      tip = "head" }, pins = "root",
  })
end

-- The robot of a finger bent by a cable on each side. Errors: an inset of half the width or more.
local function finger_of_cables(def)
  local size = { def.width, def.height }
  local count = lattice.counts({ { size = size, times = 1 } }, def.particles or 256)[1]
  if def.inset >= def.width / 2 then
    is.fail("cq.Creature.finger: inset must be less than half the width, %g, got %g", def.width / 2, def.inset)
  end
  local half = def.height / (2 * FINGER_POINTS)
  -- The cable on one side of the finger.
  local function side(name, x) return cable(def, name, x, half, def.height - half, FINGER_POINTS) end
  local strip = body.block("finger", { 0, 0 }, size, count)
  body.require_root("finger", def.root, strip, false)
  return body.make("finger", def, {
    shape = strip,
    actuators = { side("left", def.inset), side("right", def.width - def.inset) },
    groups = { root = function(_, y) return y < def.root end, tip = function(_, y) return y > 0.925 * def.height end },
    pins = "root",
  })
end

local finger = body.define("finger", fields_of({
  width = is.number { above = 0, default = 0.1 }, height = is.number { above = 0, default = 0.4 },
  root = is.number { above = 0, default = 0.05 },
}, 2))

---A finger that stands on its root, which is held. Of air chambers (ChainQueen, ICRA 2019, in its public release): two
---side by side under a head, groups "left", "right" and "head"; with 20 particles along each side 1,200, with 40 4,800.
---Of cables (Advanced soft robot modeling in ChainQueen, Robotica 2021, fig. 5): a strip with a cable up each side, 256
---particles, group "finger". "tip" is the head, or the end of the strip; "root" is pinned. Errors: a root as high as
---the finger.
---@param fields? cq.Creature.finger.def
---@return cq.Robot
function cabled.finger(fields)
  local def = finger(fields or {})
  check_drive("finger", def, fields or {})
  if def.root >= def.height then
    is.fail("cq.Creature.finger: root must be less than the height, %g, got %g", def.height, def.root)
  end
  return def.drive == "cables" and finger_of_cables(def) or finger_of_chambers(def)
end

-- ---- biped ----------------------------------------------------------------------------------------------------------

---@class cq.Creature.biped.def : cq.Creature.cabled.def

local biped = body.define("biped", fields_of({}, 4))

local BIPED_POINTS = 7
local TRUNK, LEG = { 0.3, 0.1 }, { 0.06, 0.15 }          -- with cables
local RISE = 0.03                                          -- of a cable into the trunk

-- The robot of a biped of a trunk and two legs, with cables along the legs. Errors: an inset of half a leg's width or
-- more.
local function biped_of_cables(def)
  local counts = lattice.counts({ { size = TRUNK, times = 1 }, { size = LEG, times = 2 } }, def.particles or 5024)
  if def.inset >= LEG[1] / 2 then
    is.fail("cq.Creature.biped: inset must be less than half the width of a leg, %g, got %g", LEG[1] / 2, def.inset)
  end
  local right, cables = TRUNK[1] - LEG[1], {}
  for _, leg in ipairs { { "left", 0 }, { "right", right } } do
    for _, side in ipairs { { "back", def.inset }, { "front", LEG[1] - def.inset } } do
      cables[#cables + 1] = cable(def, leg[1] .. "." .. side[1], leg[2] + side[2], 0.012, LEG[2] + RISE, BIPED_POINTS)
    end
  end
  return body.make("biped", def, {
    shape = {
      body.block("left", { 0, 0 }, LEG, counts[2]), body.block("trunk", { 0, LEG[2] }, TRUNK, counts[1]),
      body.block("right", { right, 0 }, LEG, counts[2]),
    },
    actuators = cables,
  })
end

-- half the width of a leg, and the height of a leg and of the body
local CHAMBER, HEIGHT, HIP = 0.05, 0.1, 0.1

---The eight blocks of the biped with air chambers, and the names of the four blocks that are chambers. block: makes one
---block as a shape.
---@param block fun(name: string, at: number[], size: number[]): cq.Shape
---@return cq.Shape[] shapes, string[] chambers
function cabled.biped_blocks(block)
  local shapes = {
    block("left.back", { 0, 0 }, { CHAMBER, HEIGHT }), block("left.front", { CHAMBER, 0 }, { CHAMBER, HEIGHT }),
    block("hip.left", { 0, HEIGHT }, { HIP, HIP }), block("trunk.low", { HIP, HEIGHT }, { HIP, HIP / 2 }),
    block("trunk.high", { HIP, HEIGHT + HIP / 2 }, { HIP, HIP / 2 }),
    block("hip.right", { 2 * HIP, HEIGHT }, { HIP, HIP }),
    block("right.back", { 2 * HIP, 0 }, { CHAMBER, HEIGHT }),
    block("right.front", { 2 * HIP + CHAMBER, 0 }, { CHAMBER, HEIGHT }),
  }
  return shapes, { "left.back", "left.front", "right.back", "right.front" }
end

---A biped in the plane (Advanced soft robot modeling in ChainQueen, Robotica 2021), 0.3 long. Of air chambers
---(Appendix C): two in each leg under a hip, and a trunk between the hips, eight blocks; with 20 particles along each
---side 3,200, with 40 12,800, with 60 28,800. Of cables (fig. 6): a trunk on two legs with a cable at the back and
---the front of each, 5,024 particles unless given; the paper prints no geometry. Signals of both: left.back,
---left.front, right.back, right.front.
---@param fields? cq.Creature.biped.def
---@return cq.Robot
function cabled.biped(fields)
  local def = biped(fields or {})
  check_drive("biped", def, fields or {})
  if def.drive == "cables" then return biped_of_cables(def) end
  local n, spacing = body.fineness("biped", def, COUNT)
  local shapes, chambers = cabled.biped_blocks(function(name, at, size)
    return body.block(name, at, size, n, spacing)
  end)
  return body.make("biped", def, { shape = shapes, actuators = body.pressure(def, chambers) })
end

return cabled
