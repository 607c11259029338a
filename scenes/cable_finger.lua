-- cable_finger: a strip that is held at its root, with a cable down each side; pulling one bends the finger to its
-- side.
-- Source: the finger of the system identification in Advanced soft robot modeling in ChainQueen (Robotica 2021, 5.1).
-- Its geometry and its cables are not printed: here a strip of 0.1 x 0.4, E 20, nu 0.25, density 2.33, with cables
-- 0.015 from its sides.
local cq = require "cq"

local WIDTH, HEIGHT, INSET, POINTS, ROOT = 0.1, 0.4, 0.015, 8, 0.03
local YOUNG, POISSON, STIFFNESS, CONTRACTION = 20, 0.25, 2, 0.4

-- The angle [rad] by which a beam of the finger's section bends in plane strain, in closed form, to compare the finger
-- with. A cable at a distance e from its axis pulls with tension T all along: its moment T e bends the beam and T
-- shortens it; both shorten the cable: T = k (length - rest). contraction: the share of its length by which the cable
-- can be wound up, wound (0 to 1): how much of that it is. The simulated finger bends 5 to 15 % less, since its ends
-- give way where one particle takes the whole force.
local function beam(wound, stiffness, contraction)
  local modulus, e, length = YOUNG / (1 - POISSON ^ 2), WIDTH / 2 - INSET, HEIGHT * (POINTS - 1) / POINTS
  local bending, area = modulus * WIDTH ^ 3 / 12, modulus * WIDTH
  local tension = stiffness * length * contraction * wound / (1 + stiffness * length * (e ^ 2 / bending + 1 / area))
  return tension * e / bending * (HEIGHT * (POINTS - 0.5) / POINTS - ROOT)
end

-- The angle [rad] by which the finger's tip is turned to the left in a state, from the mean F of its particles.
local function bend(state, robot)
  local F = state:deformations():gather(robot:group("tip"):particles(), 1):mean(1)
  return math.atan2((F[2][1] - F[1][2]):item(), (F[1][1] + F[2][2]):item())
end

---@class scenes.cable_finger.options
---@field stiffness? number
---@field contraction? number
---@field friction? number
---@field across? integer          particles across the finger, 8 unless given
---@field damping? number          [1/time]
---@field precision? string
---@field device? string

---A finger with two cables and the fields of its world; tip: the name of the group at its end.
---@param options? scenes.cable_finger.options
---@return { robot: cq.Robot, world: cq.World.def, tip: string, bend: function, beam: function }
---  bend: angle that the tip is turned by, to the left [rad]; beam: the same of a beam of Euler and Bernoulli with the
---  signals u of the left cable, -1 of the other
return function(options)
  local given = require "scenes.options"("scenes.cable_finger", options, { "stiffness", "contraction", "friction",
    "across", "damping", "precision", "device" })
  local across = given.across or 8
  local robot = cq.Creature.finger {
    drive = "cables", width = WIDTH, height = HEIGHT, inset = INSET, particles = 4 * across ^ 2, root = ROOT,
    stiffness = given.stiffness or STIFFNESS, contraction = given.contraction or CONTRACTION, friction = given.friction,
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 2.33 },
  }
  return {
    robot = robot, tip = "tip",
    bend = function(state) return bend(state, robot) end,
    beam = function(u) return beam((1 + u) / 2, given.stiffness or STIFFNESS, given.contraction or CONTRACTION) end,
    world = {
      cells = { 48, 48 }, dx = 1 / 48, dt = 0.01, substeps = 8, damping = given.damping,
      precision = given.precision, device = given.device,
      robot:at { 0.45, 0.2 },
    },
  }
end
