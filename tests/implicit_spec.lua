-- implicit: steps of backward Euler: gradients, walls, what drives bodies, long steps, the same bits, and mistakes.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local DX = 1 / 16
local YOUNG = 40

before_each(function() scratch.open() end)
after_each(scratch.close)

local function merge(fields, more)
  for key, value in pairs(more or {}) do fields[key] = value end
  return fields
end

local function filled(dim, across, up)
  local out = { across, up }
  if dim == 3 then out[3] = across end
  return out
end

-- a block, 4 cells wide in 2D and 3 in 3D
local function block(dim, fields)
  local side = dim == 2 and 4 * DX or 3 * DX
  return cq.Robot(merge({
    shape = cq.Shape.box { size = filled(dim, side, side), spacing = DX / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0.3, density = 1.5 },
  }, fields))
end

-- it stands a little above a floor
local function world_of(robot, fields)
  local dim = robot.dim
  return cq.World(merge({
    cells = filled(dim, 16, 16), dx = DX, dt = 0.04, gravity = filled(dim, 0.2, -2), precision = "float64",
    integrator = cq.Implicit { tolerance = 1e-10, gradient = 1e-10 },
    walls = cq.Boundary.floor { at = 3 * DX, kind = "separate" }, robot:at(filled(dim, 0.36, 0.2)),
  }, fields))
end

-- a number that feels where every particle is, how fast, and how deformed
local function felt(state)
  local x, v, f = state:positions(), state:velocities(), state:deformations()
  return (x * spread(x:shape(), -0.4, 1)):sum() + (v * v):mean() + (f * spread(f:shape(), -1, 0.6)):mean()
end

local function falling(dim) return filled(dim, 0.3, -1) end

local function determinants(state)
  local f = state:deformations()
  local function at(i, j) return f:slice(i, i, 2):slice(j, j, 3):reshape { -1 } end
  return at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)
end

describe("the gradient of implicit steps", function()
  local wall, floor = cq.Boundary, 3 * DX
  local slope = wall.slope { point = { 0.64, floor }, angle = math.rad(70), kind = "separate" }
  local cases = {
    ["floor and slope that let go"] = { walls = { wall.floor { at = floor, kind = "separate" }, slope } },
    ["sticky"] = { walls = wall.floor { at = floor, kind = "sticky" } },
    ["slip"] = { walls = wall.floor { at = floor, kind = "slip" } },
    ["hold"] = { walls = wall.floor { at = floor, kind = "sticky", separable = true } },
    ["damped"] = { damping = 2 },
    ["a ball that rises"] = {
      walls = wall.sphere { center = { 0.5, 0.1 }, radius = 0.1, kind = "separate", velocity = { 0.05, 0.2 } },
    },
    ["a floor that moves and holds"] = {
      walls = wall.floor { at = floor, kind = "sticky", separable = true, velocity = { 0.2, 0.1 } },
    },
    ["in 3D"] = { dim = 3, steps = 4 },
  }
  for name, case in pairs(cases) do
    it("is right: " .. name, function()
      local dim, steps = case.dim or 2, case.steps or 8
      local p = {
        velocity = T.param(falling(dim)), young = T.param(YOUNG), density = T.param(1.5),
        gravity = T.param(filled(dim, 0.2, -2)), damping = case.damping and T.param(case.damping),
        wall = case.walls and case.walls.velocity and T.param(case.walls.velocity),
      }
      case.dim, case.steps = nil, nil
      local world = world_of(block(dim), case)
      derivative.check(function(q)
        return felt(world:rollout({
          steps = steps, gravity = q.gravity, damping = q.damping,
          wall_velocity = q.wall and q.wall:reshape { 1, 1, dim } * T.ones { steps, 1, 1 },
          robot = world.robot:with { velocity = q.velocity, young = q.young, density = q.density },
        }).state)
      end, p, 1e-6)
    end)
  end

  local function all() return true end
  local function side(x)
    local path = {}
    for k = 1, 5 do path[k] = { x, DX * (k - 0.75) } end
    return path
  end
  local drives = {
    ["a muscle"] = {
      actuators = cq.Actuator.pressure { groups = "all", axis = "y", max = 8 }, groups = { all = all },
    },
    ["a cable"] = {
      actuators = cq.Actuator.cable { path = side(DX / 4), stiffness = 2, law = "spool" }, pins = "foot",
      groups = { foot = function(_, y) return y < DX end },
    },
    ["pressure"] = {
      actuators = cq.Actuator.follower_pressure { surface = { inside = { 2 * DX, 2 * DX } }, max = 2 },
      shape = cq.Shape.box { size = { 4 * DX, 4 * DX }, spacing = DX / 2 }
        - cq.Shape.box { at = { DX, DX }, size = { 2 * DX, 2 * DX } },
    },
  }
  for name, fields in pairs(drives) do
    it("is right by the signals of " .. name, function()
      local world = world_of(block(2, fields))
      local p = { u = T.param(spread({ 6, world.actuator_count }, 0.2, 0.8)), young = T.param(YOUNG) }
      derivative.check(function(q)
        return felt(world:rollout({
          steps = 6, robot = world.robot:with { young = q.young }, controller = cq.Controller.open_loop(q.u),
        }).state)
      end, p, 1e-6)
    end)
  end
end)
