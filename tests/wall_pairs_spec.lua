-- Two walls that hold the same nodes, of all pairs of kinds, a curved one that moves beside a level one: gradients by
-- the velocities of walls, by friction, gravity and the body's own speed, against central differences.
local cq = require "cq"
local T = require "cq.tensor"
local spread = require "tests.spread"

local DX = 1 / 16

local function filled(dim, across, up, deep)
  local out = { across, up }
  if dim == 3 then out[3] = deep or across end
  return out
end

local kinds = {
  sticky = { kind = "sticky" }, slip = { kind = "slip" }, separate = { kind = "separate" },
  friction = { kind = "friction", mu = 0.4 }, hold = { kind = "sticky", separable = true },
}
local names = { "sticky", "slip", "separate", "friction", "hold" }

local function wall(shape, fields, kind)
  for key, value in pairs(kinds[kind]) do fields[key] = value end
  return cq.Boundary[shape](fields)
end

-- a block that falls onto a floor out of which a ball rises; the last of two walls has the last word
local function pressed(dim, ball, floor, implicit, floor_last)
  local robot = cq.Robot {
    shape = cq.Shape.box { size = filled(dim, 2 * DX, 2 * DX), spacing = DX / 2 },
    material = cq.Material.neo_hookean { young = 30, poisson = 0.3, density = 1.5 },
  }
  local rising = wall("sphere", { center = filled(dim, 0.45, 3 * DX - 0.07), radius = 0.1,
    velocity = filled(dim, 0.1, 0.1), moves = true }, ball)
  local level = wall("floor", { at = 3 * DX }, floor)
  return cq.World {
    cells = filled(dim, 16, 16), dx = DX, dt = implicit and 0.02 or 0.01, substeps = implicit and 1 or 4,
    gravity = filled(dim, 0.2, -4), precision = "float64",
    walls = floor_last and { rising, level } or { level, rising },
    integrator = implicit and cq.Implicit { tolerance = 1e-11, adjoint_tolerance = 1e-11 } or nil,
    robot:at(filled(dim, 0.38, 0.24)),
  }
end

local STEPS = 5

-- what particles do, and what walls give them
local function loss_of(world)
  return function(p)
    local roll = world:rollout { steps = STEPS, wall_velocity = p.walls, friction = p.friction, gravity = p.gravity,
      contact = true, robot = world.robot:with { velocity = p.velocity } }
    local way, v, impulse = roll.state:positions() - world.robot.position, roll.state:velocities(), roll.contact.impulse
    return (way * spread(way:shape(), -0.4, 1)):sum() + (v * v):sum()
      + 30 * (impulse * spread(impulse:shape(), -1, 0.7)):sum()
  end
end

local function check(world, has_friction)
  local dim = world.dim
  return cq.check_gradient(loss_of(world), {
    walls = T.param(spread({ STEPS, 2, dim }, -0.15, 0.15)), friction = has_friction and T.param { 0.3, 0.5 } or nil,
    velocity = T.param(filled(dim, 0.2, -0.7)), gravity = T.param(filled(dim, 0.3, -4)),
  }, { directions = 1, each = true, steps = { 1e-4, 1e-5, 1e-6 }, tolerance = 1e-5 })
end

describe("gradients where two walls hold a node", function()
  for _, implicit in ipairs { true, false } do
    for dim = 2, 3 do
      for i, ball in ipairs(names) do
        for k, floor in ipairs(names) do
          local last = (i + k) % 2 == 0
          local steps = implicit and "implicit" or "explicit"
          it(("%dD, %s steps: a %s ball, a %s floor"):format(dim, steps, ball, floor), function()
            local made = check(pressed(dim, ball, floor, implicit, last), ball == "friction" or floor == "friction")
            assert.is_true(made.ok, tostring(made))
          end)
        end
      end
    end
  end

  it("have a gradient of one velocity after a rollout in which it changed", function()
    local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 1 / 32 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    local world = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 4e-3, substeps = 4, gravity = { 0, -2 },
      precision = "float64", walls = cq.Boundary.floor { at = 3 / 16, mu = 0.4 }, robot:at { 0.3, 0.2 } }
    local function slope(v)
      return (cq.grad(function(p)
        return world:rollout { robot = robot:with { velocity = { 0.3, -1 } }, steps = 3, wall_velocity = p }
          .state:velocity(robot):sum()
      end)(v))
    end
    local first = slope(T.param { 0.3, 0.4 })
    slope(T.param(T.full({ 3, 1, 2 }, 0.3)))
    assert.same(first:totable(), slope(T.param { 0.3, 0.4 }):totable())
    assert(first[1]:item() > 0.1, first)
  end)
end)
