-- The set of contacts that hold in an implicit step: Newton's method ends with one that fits, where there is one, and
-- says so where there is none.
local cq = require "cq"
local T = require "cq.tensor"
local message = require "cq.base.message"
local new_draw = require "tests.hunt.draw"

local DX, STEPS = 1 / 16, 6

-- a block thrown into three walls that shake, of kinds, sizes and speeds that follow from the seed
local function shaken(seed, kinds, tolerance)
  local draw = new_draw(seed)
  local function wall(family, fields)
    local kind = draw:pick(kinds)
    fields.kind, fields.separable = kind == "hold" and "sticky" or kind, kind == "hold" or nil
    if kind == "friction" then fields.mu = draw:uniform(0.2, 1.2) end
    return cq.Boundary[family](fields)
  end
  local young = 10 ^ draw:uniform(1, 2.5)
  local robot = cq.Robot {
    shape = cq.Shape.box { size = { draw:whole(2, 4) * DX, draw:whole(2, 4) * DX }, spacing = DX / 2 },
    material = cq.Material.neo_hookean { young = young, poisson = 0.3, density = 1.5 },
  }
  local ball = wall("sphere", { center = { 0.45, 3 * DX - 0.07 }, radius = 0.1, velocity = { 0.1, 0.1 } })
  local floor = wall("floor", { at = 3 * DX, velocity = { draw:uniform(-0.3, 0.3), 0 }, moves = false })
  local side = wall("half_plane", { point = { 0.34, 0.3 }, normal = { 0.9, 0.3 },
    velocity = { draw:uniform(-0.1, 0.4), draw:uniform(-0.3, 0.3) } })
  local thrown, dt = { draw:uniform(-1, 1), draw:uniform(-1.5, 0) }, draw:uniform(0.01, 0.04)
  local shaking = draw:tensor({ STEPS, 3, 2 }, -0.8, 0.8)
  local world = cq.World {
    cells = { 16, 16 }, dx = DX, dt = dt, gravity = { draw:uniform(-3, 3), -4 }, precision = "float64",
    walls = { ball, floor, side }, robot:at { 0.38, 0.24 },
    integrator = cq.Implicit { tolerance = tolerance or 1e-9, newton_iterations = 200 },
  }
  return function(change)
    local roll = world:rollout { steps = STEPS, wall_velocity = shaking + change,
      robot = world.robot:with { velocity = thrown } }
    return (roll.state:positions() - world.robot.position):square():sum(), roll, world
  end
end

local RUBBING = { "hold", "friction", "separate", "hold", "friction" }

describe("contacts of an implicit step", function()
  local warn, told = message.warn, {}
  before_each(function()
    told = {}
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
  end)
  after_each(function() message.warn = warn end)

  it("do not depend on rounding: a speed changed by 1e-12 changes nothing that is seen", function()
    local rollout = shaken(512, RUBBING)
    local loss = rollout(0)
    for _, change in ipairs { 1e-12, -1e-12, 1e-10 } do
      assert.near(1, rollout(change):item() / loss:item(), 1e-6)
    end
  end)

  it("are always such a set where walls hold the normal alone and without friction", function()
    for seed = 1, 30 do
      local _, roll, world = shaken(seed, { "separate" })(0)
      assert.equal(0, roll.solver.unsettled:max():item(), "seed " .. seed)
      world:close()
    end
  end)

  it("that fit no set are counted, and told once for a world and by cq.check_gradient", function()
    local rollout = shaken(226, RUBBING)
    local _, roll = rollout(0)
    assert.is_true(roll.solver.unsettled:max():item() > 0)
    assert.matches("%d unsettled contacts? }$", tostring(roll.solver))
    rollout(0)
    assert.equal(1, #told)
    assert.matches("^world:rollout: control step %d: no set of contacts fits the forces %(roll.solver.unsettled%)", told[1])
    local made = cq.check_gradient(function(p) return (rollout(p)) end, T.param(T.zeros { STEPS, 3, 2 }),
      { directions = 1, steps = { 1e-6 } })
    assert.matches("^in control step %d no set of contacts fits$", made.remark)
    assert.matches("\nin control step %d no set of contacts fits: the objective may jump nearby", tostring(made))
    assert.is_nil(cq.check_gradient(function(x) return (x * x):sum() end, T.param { 1, 2 }, {}).remark)
  end)
end)
