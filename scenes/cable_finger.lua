-- cable_finger: a strip that is held at its root, with a cable down each side; pulling one bends the finger to its side.
-- Source: the finger of the system identification in Advanced soft robot modeling in ChainQueen (Robotica 2021, 5.1). Its geometry and
-- its cables are not printed: here a strip of 0.1 x 0.4, E 20, nu 0.25, density 2.33, with cables 0.015 from its sides.
local cq = require "cq"

local WIDTH, HEIGHT, INSET, POINTS = 0.1, 0.4, 0.015, 8

-- places down one side, from the root on
local function path(x)
  local out = {}
  for k = 1, POINTS do out[k] = { x, HEIGHT * (k - 0.5) / POINTS } end
  return out
end

---@param options? { precision?: string, stiffness?: number, contraction?: number, friction?: number, across?: integer, device?: string }
---@return { robot: cq.Robot, world: cq.World.def, tip: string }
return function(options)
  local given = options or {}
  local across = given.across or 8
  local function cable(name, x)
    return cq.Actuator.cable {
      name = name, path = path(x), stiffness = given.stiffness or 2, contraction = given.contraction or 0.4, friction = given.friction,
    }
  end
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "finger", size = { WIDTH, HEIGHT }, count = { across, 4 * across } },
    material = cq.Material.neo_hookean { young = 20, poisson = 0.25, density = 2.33 },
    actuators = { cable("left", INSET), cable("right", WIDTH - INSET) },
    groups = { root = function(_, y) return y < 0.03 end, tip = function(_, y) return y > 0.37 end }, pins = "root",
  }
  return {
    robot = robot, tip = "tip",
    world = {
      cells = { 48, 48 }, dx = 1 / 48, dt = 0.01, substeps = 8, precision = given.precision, device = given.device,
      robot:at { 0.45, 0.2 },
    },
  }
end
