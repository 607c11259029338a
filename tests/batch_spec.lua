-- batch: a batch of one scene is a batch like any other, and a rollout without one has no dimension of scenes; and what
-- is read of the states of a rollout within another one.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local scene = require "tests.scene"
local sentence = require("tests.sentence").of
local spread = require "tests.spread"

local STEPS = 4

-- the first number of a shape and the rest
local function shape_of(tensor, at)
  local shape = tensor:shape()
  local lead = table.remove(shape, at or 1)
  return lead, shape
end

-- all that can be read of a final state, by name
local function readouts(s)
  local out = {
    center = s:center "foot", centers = s:center { "foot", "trunk" }, row = s:motion { "foot", "trunk" },
    gather = s:gather("foot", "velocity"), moment = s:moment "trunk", speed = s:mean_square_velocity "foot",
    stress = s:stress "foot", von_mises = s:von_mises "trunk", momentum = s:momentum(), spin = s:angular_momentum(),
    raster = s:raster("trunk", { size = { 6, 6 } }), positions = s:positions(), deformations = s:deformations(),
    contact = s:contact(1).impulse,
  }
  for _, kind in ipairs { "total", "kinetic", "elastic", "potential" } do out[kind] = s:energy("foot", kind) end
  return out
end

-- a rollout that reads everything
local function simulate(world, batch, fields)
  local def = {
    steps = STEPS, batch = batch, contact = true,
    running = function(s, u) return s:center("foot"):sum(-1) + u:square():sum(-1) end,
    record = function(s) return s:center { "foot", "trunk" } end,
    effort = function(u) return u:square():sum(-1):sum(1) end,
  }
  for name, value in pairs(fields or {}) do def[name] = value end
  return world:rollout(def)
end

describe("a batch of 1", function()
  it("is the first dimension of every readout, and no batch is none", function()
    local world = scene.world(scene.robot())
    local alone, one = readouts(simulate(world).state), readouts(simulate(world, 1).state)
    for name, tensor in pairs(alone) do
      local lead, rest = shape_of(one[name])
      assert.equal(1, lead, name)
      assert.same(tensor:shape(), rest, name)
      assert.is_true(one[name]:squeeze(1):equal(tensor), name)
    end
  end)

  it("is the second of what each control step gives", function()
    local world = scene.world(scene.robot())
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, acceleration = true }
    local net = cq.Controller.mlp { hidden = { 5 }, seed = 3 }
    local custom = function(o) return o:slice(1, 2, -1) * 0.1 end
    for _, controller in ipairs { net, custom, cq.Controller.open_loop(T.ones { STEPS, 2 }) } do
      local fields = { observer = observer, controller = controller }
      local alone, one = simulate(world, nil, fields), simulate(world, 1, fields)
      for _, name in ipairs { "running", "record", "signals" } do
        local lead, rest = shape_of(one[name], 2)
        assert.equal(1, lead, name)
        assert.same(alone[name]:shape(), rest, name)
        assert.is_true(one[name]:squeeze(2):equal(alone[name]), name)
      end
      assert.same({ 1 }, one.effort:shape())
      assert.same({}, alone.effort:shape())
      assert.same({ STEPS, 1, 1, 2 }, one.contact.impulse:shape())
      assert.same({ STEPS, 1, 2 }, alone.contact.impulse:shape())
    end
  end)

  it("hands observer, controller, forces and costs its dimension", function()
    local seen, Spring = {}, { particles = "trunk", signals = 1 }
    function Spring:force(u, x)
      seen.u, seen.x = u:shape(), x:shape()
      return x * 0
    end
    local world = scene.world(scene.robot { actuators = { Spring } })
    local n = world.robot:group("trunk").particle_count
    local fields = {
      observer = function(s)
        seen.state = s.batched
        return s:center "foot"
      end,
      controller = function(o)
        seen.o = o:shape()
        return o:slice(1, 1, -1)
      end,
      effort = function(u)
        seen.effort = u:shape()
        return u:sum()
      end,
    }
    local roll = simulate(world, 1, fields)
    assert.same({ u = { 1, 1 }, x = { 1, n, 2 }, state = true, o = { 1, 2 }, effort = { STEPS, 1, 1 } }, seen)
    assert.same({}, roll.effort:shape())
    simulate(world, nil, fields)
    assert.same({ u = { 1 }, x = { n, 2 }, state = false, o = { 2 }, effort = { STEPS, 1 } }, seen)
  end)

  it("takes values of its scene, and gives them their gradients", function()
    local world = scene.world(scene.robot())
    local n = world.particle_count
    local function loss(batch, p)
      local roll = simulate(world, batch, { robot = world.robot:with { young = p.young }, gravity = p.gravity,
        friction = p.friction, wall_velocity = p.wall, controller = cq.Controller.open_loop(p.u) })
      return roll.state:center("foot"):sum() + roll.running:sum() + roll.record:square():sum()
        + roll.contact.impulse:sum() + roll.effort:sum()
    end
    local values = {
      young = spread({ n }, 7, 9), gravity = T.tensor { 0.5, -4 }, friction = T.tensor(0.4),
      wall = spread({ STEPS, 1, 2 }, -0.1, 0.1), u = spread({ STEPS, 2 }, -0.5, 0.5),
    }
    local alone, one = {}, {}
    for name, value in pairs(values) do
      alone[name], one[name] = T.param(value), T.param(value:unsqueeze(1))
    end
    local a, of_none = T.value_and_grad(function(p) return loss(nil, p) end)(alone)
    local b, of_one = T.value_and_grad(function(p) return loss(1, p) end)(one)
    assert.equal(a, b)
    for name in pairs(values) do
      assert.is_true(of_none[name]:norm():item() > 0, name)
      assert.is_true(of_one[name]:squeeze(1):equal(of_none[name]), name)
    end
  end)

  it("is that of equilibria, and of what implicit steps took", function()
    local finger = scene.robot { actuators = cq.Actuator.pressure { groups = "trunk", axis = "y", max = 0.1 } }
    local world = cq.World {
      cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, gravity = { 0, -0.1 }, precision = "float64",
      integrator = cq.Implicit {}, walls = cq.Boundary.box(), finger:at { 0.4, 0.127 },
    }
    assert.same({ 2, 1, 1 }, world:rollout({ steps = 2, batch = 1 }).solver.newton:shape())
    assert.same({ 2, 1 }, world:rollout({ steps = 2 }).solver.newton:shape())
  end)
end)

describe("a value that may be of walls or of scenes", function()
  it("is refused", function()
    local world = scene.world(scene.robot(), { walls = { cq.Boundary.box { kind = "friction", mu = 0.4 },
      cq.Boundary.floor { at = 0.05, mu = 0.5 } } })
    local function said(fields)
      fields.steps, fields.batch = 1, 2
      return sentence(function() world:rollout(fields) end)
    end
    assert.equal("world:rollout: friction {2} may be of 2 walls or of 2 scenes; give {2, 2}, of scenes and walls",
      said { friction = { 0, 1 } })
    assert.equal("world:rollout: wall_velocity {2, 2} may be of 2 walls or of 2 scenes; give {2, 2, 2}, of scenes and walls",
      said { wall_velocity = { { 0, 0 }, { 1, 0 } } })
    world:rollout { steps = 1, batch = 2, friction = { { 0, 0 }, { 1, 1 } } }
    world:rollout { steps = 1, batch = 3, friction = { 0, 1, 2 } }
    world:rollout { steps = 1, friction = { 0, 1 } }
    world:close()
  end)
end)

describe("an observation {batch}", function()
  it("is refused, as it may be one number of each scene or numbers that they share", function()
    local world = scene.world(scene.robot())
    local function height(s) return s:center("foot"):slice(2, 2, -1):flatten() end
    local function steps(batch, observer)
      return world:rollout { steps = 1, batch = batch, observer = observer,
        controller = cq.Controller.linear { seed = 1 } }
    end
    local said = sentence(function() steps(2, height) end)
    assert.matches("the observer must give {2, numbers}, a row for each scene, got {2}: give z:unsqueeze%(2%) for one "
      .. "number of each scene", said)
    local each = steps(2, function(s) return height(s):unsqueeze(2) end)
    assert.is_true(each.signals:equal(T.concat({ steps(1, height).signals, steps(1, height).signals }, 2)))
    steps(3, function() return T.ones { 2 } end)
    world:close()
  end)
end)

describe("a state of another rollout", function()
  local world = scene.world(scene.robot())
  local robot = world.robot
  local function params() return { thrown = T.param { 0.4, -0.5 }, own = T.param { 0.1, 0.2 } } end

  it("has its gradient in each control step in which a scene of it is read", function()
    derivative.check(function(p)
      local both = p.thrown:expand { 2, world.particle_count, 2 }
      local first = world:rollout { robot = robot:with { velocity = both }, batch = 2, steps = 2 }
      local roll = world:rollout { robot = robot:with { velocity = p.own }, steps = STEPS, record = function(state)
        return (state:center(robot) - first.state:scene(2):center(robot)):square():sum()
      end }
      return 1e3 * roll.record:sum()
    end, params(), 1e-7)
  end)

  it("has its gradient at the start, whoever has read that before", function()
    local read = {
      ["while nothing is recorded"] = function(roll) T.tape.pause(roll.start, roll) end,
      ["within another gradient"] = function(roll)
        T.grad(function(x) return x * roll:start():center(robot):detach():sum() end)(T.tensor(1))
      end,
    }
    for when, look in pairs(read) do
      local p = params()
      local _, grad = T.value_and_grad(function()
        local roll = world:rollout { robot = robot:with { velocity = p.thrown }, steps = 2 }
        look(roll)
        return roll:start():velocity(robot):dot(T { 2, 3 })
      end)(p.thrown)
      assert(grad:close(T { 2, 3 }, 1e-12), when)
    end
  end)

  it("has its gradient at the start where that is read in control steps", function()
    derivative.check(function(p)
      local first = world:rollout { robot = robot:with { velocity = p.thrown }, steps = 2 }
      first:start()
      local roll = world:rollout { robot = robot:with { velocity = p.own }, steps = STEPS, record = function(state)
        return (state:velocity(robot) - first:start():velocity(robot)):square():sum()
      end }
      return roll.record:sum()
    end, params(), 1e-7)
  end)

  it("is refused beside the result of a gradient within another one, where it reads what that one is by", function()
    local gives = {
      rollout = function(roll) return roll end, state = function(roll) return { roll.state } end,
      scene = function(roll) return nil, roll.state:scene(1) end, part = function(roll) return roll:scene(1) end,
    }
    for what, of in pairs(gives) do
      local function outer(young)
        return T.grad(function(p)
          local function inner(q)
            local roll = world:rollout { robot = robot:with { velocity = q, young = young(p) }, batch = 1, steps = 1 }
            return q:sum(), of(roll)
          end
          T.value_and_grad(inner)(T { 0.1, -0.2 })
          return p * 2
        end)(T.param(9)):item()
      end
      assert.equal(2, outer(function(p) return p:detach() end))
      assert.matches("would be a constant to it", sentence(function() outer(function(p) return p end) end), what)
    end
  end)
end)
