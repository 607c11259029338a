-- continued: rollouts that go on from a state of another one are one rollout, bit for bit, and so are their gradients.
local cq = require "cq"
local T = require "cq.tensor"
local spread = require "tests.spread"
local scene = require "tests.scene"
local sentence = require("tests.sentence").of

local HALF = 30

-- everything that a state has, as one list of numbers
local function all_of(state)
  return T.concat({ state:positions():flatten(), state:velocities():flatten(), state:deformations():flatten(),
    state:gather(nil, "affine"):flatten() }, 1)
end

local function same(a, b) return all_of(a):equal(all_of(b)) end

-- a rollout of 2 HALF control steps and the second of two with half of them
local function both(world, fields)
  local function run(more)
    local def = {}
    for name, value in pairs(fields) do def[name] = value end
    for name, value in pairs(more) do def[name] = value end
    return world:rollout(def)
  end
  local first = run { steps = HALF }
  return run { steps = 2 * HALF }, run { steps = HALF, from = first.state }, first
end

local function thrown(world) return world.robot:with { velocity = { 1.2, 0.4 } } end

local function signals(count) return cq.Controller.open_loop(spread({ 2 * HALF, count }, -0.7, 0.8)) end

local function is_one(world, fields)
  local whole, second, first = both(world, fields)
  assert.is_true(same(whole.state, second.state))
  assert.is_false(same(first.state, second.state))
  assert.equal(whole.state.step, second.state.step)
  assert.equal(whole.state.time, second.state.time)
  assert.is_true(whole.signals:slice(HALF + 1, 2 * HALF, 1):equal(second.signals))
  world:close()
end

local SAND = cq.Material.drucker_prager { young = 10, poisson = 0.3, friction_angle = 0.5, cohesion = 0.1 }
local PLASTIC = cq.Material.von_mises { young = 10, poisson = 0.3, yield_stress = 0.2, hardening = 0.5 }
local SNOW = cq.Material.snow { young = 10, poisson = 0.2 }

describe("two rollouts", function()
  for _, precision in ipairs { "float32", "float64" } do
    it("are one with contact and particles that are sorted again, " .. precision, function()
      local world = scene.world(scene.robot { count = 12 }, { precision = precision })
      is_one(world, { robot = thrown(world), controller = signals(2) })
    end)

    for name, material in pairs { sand = SAND, plastic = PLASTIC, snow = SNOW } do
      it(("are one of %s, whose particles have a history, %s"):format(name, precision), function()
        local world = scene.world(scene.robot { material = material }, { precision = precision })
        is_one(world, { robot = thrown(world), controller = signals(2) })
      end)
    end

    it("are one with relaxing materials, " .. precision, function()
      local material = cq.Material.viscoelastic { modulus = { 0.5 }, time = { 0.05 },
        base = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
      local world = scene.world(scene.robot { material = material }, { precision = precision })
      is_one(world, { robot = thrown(world), controller = signals(2) })
    end)
  end

  it("are one in a batch, of an engine's policy", function()
    local world = scene.world(scene.robot())
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true }
    local controller = cq.Controller.mlp { hidden = { 8 }, seed = 3 }
    local robot = world.robot:with { young = T.tensor { { 8 }, { 12 }, { 15 } } }
    is_one(world, { robot = robot, batch = 3, observer = observer, controller = controller })
  end)

  it("are one whatever the threads", function()
    local ends = {}
    for threads = 1, 2 do
      local world = scene.world(scene.robot { count = 40 }, { threads = threads, substeps = 10 })
      local first = world:rollout { steps = 3, robot = thrown(world) }
      ends[threads] = all_of(world:rollout { steps = 3, from = first.state }.state)
      world:close()
    end
    assert.is_true(ends[1]:equal(ends[2]))
  end)

  it("are one with implicit steps", function()
    local world = scene.world(scene.robot(), { integrator = cq.Implicit {} })
    is_one(world, { robot = thrown(world), controller = signals(2) })
  end)

  it("are one with total Lagrangian steps", function()
    for _, fields in ipairs { {}, { collisions = true }, { integrator = cq.Implicit { scheme = "midpoint" } } } do
      fields.formulation = "total_lagrangian"
      local world = scene.world(scene.robot(), fields)
      is_one(world, { robot = thrown(world), controller = signals(2) })
    end
  end)

  it("are one with total Lagrangian steps of bodies that begin strained, or are stiffer in some scene", function()
    local world = scene.world(scene.robot(), { formulation = "total_lagrangian" })
    local n = world.particle_count
    local strained = T.tensor({ { 1.02, 0.01 }, { 0, 0.99 } }):expand { n, 2, 2 }
    is_one(world, { robot = world.robot:with { velocity = { 1.2, 0.4 }, deformation = strained },
      controller = signals(2) })
    world = scene.world(scene.robot(), { formulation = "total_lagrangian" })
    local young = T.stack({ T.full({ n }, 8), T.full({ n }, 10) }, 1)
    is_one(world, { controller = signals(2), batch = 2, robot = thrown(world):with { young = young } })
  end)

  it("keep the deformation of the state, whatever the robot of the second one says", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local world = scene.world(scene.robot(), { formulation = formulation, precision = "float64" })
      local n = world.particle_count
      local strained = T.tensor({ { 1.03, 0.01 }, { 0, 0.98 } }):expand { n, 2, 2 }
      local first = world:rollout { steps = 3, robot = world.robot:with { deformation = strained } }
      local own = world.robot:with { young = 12 }
      local second = world:rollout { steps = 0, from = first.state, robot = own }
      assert(second.state:deformations():equal(first.state:deformations()), formulation)
      local stiff = world.robot:with { young = 12, deformation = strained }
      assert.is_true(same(world:rollout({ steps = 3, from = first.state, robot = own }).state,
        world:rollout({ steps = 3, from = first.state:detach(), robot = stiff }).state))
      assert.is_false(same(world:rollout({ steps = 3, from = first.state, robot = own }).state,
        world:rollout({ steps = 3, from = first.state }).state))
      world:close()
    end
  end)

  it("of which the second chooses scenes have the constants of these scenes", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local world = scene.world(scene.robot(), { formulation = formulation })
      local young = T.tensor { { 8 }, { 12 }, { 15 } }
      local fields = { robot = thrown(world):with { young = young }, batch = 3, controller = signals(2) }
      local whole, _, first = both(world, fields)
      local chosen = world:rollout { steps = HALF, from = first.state, scenes = { 3, 1 },
        controller = fields.controller }
      for k, scene_before in ipairs { 3, 1 } do
        assert(chosen.state:positions()[k]:equal(whole.state:positions()[scene_before]), formulation)
      end
      local begun = chosen:start():positions()
      assert.is_true(begun[1]:equal(first.state:positions()[3]))
      local again = world:rollout { steps = 0, from = chosen.state, scenes = { 2 } }
      assert.is_true(again.state:positions()[1]:equal(chosen.state:positions()[2]))
      assert.equal("world:rollout: scenes[2] is 0, and young differs between scenes of the state in from; give the robot "
        .. "with values for each scene", sentence(function()
        world:rollout { steps = 1, from = first.state, scenes = { 2, 0 } }
      end))
      world:close()
    end
  end)

  it("of total Lagrangian bodies begin again as before, whatever was between", function()
    local world = scene.world(scene.robot(), { formulation = "total_lagrangian", precision = "float64" })
    local n = world.particle_count
    local function run(fields, more)
      local def = { steps = HALF, robot = world.robot:with(fields), controller = signals(2) }
      for name, value in pairs(more or {}) do def[name] = value end
      return world:rollout(def)
    end
    -- the last state; the engine's rollout is free for the next one
    local function once(fields, more)
      local roll = run(fields, more)
      local state = all_of(roll.state)
      roll:release()
      return state
    end
    local values = { velocity = { 1.2, 0.4 }, young = spread({ n }, 8, 12) }
    local first = run(values)
    local ends = all_of(first.state)
    assert.is_true(once(values):equal(ends))
    local between = {
      function() end,
      function() return once { velocity = { 0.3, 0.4 }, young = values.young } end,
      function() return once { velocity = values.velocity, young = 12 } end,
      function() return once(values, { gravity = { 0, 1 }, friction = 0.1 }) end,
      function() once(values, { from = first.state }) end,
      function()
        return once { velocity = values.velocity, young = values.young, position = world.robot.position * 1.01 }
      end,
      function() assert.is_false(pcall(run, { velocity = spread({ n, 2 }, -300, 300), young = values.young })) end,
      function()
        local strained = T.param(T.tensor({ { 1.02, 0.01 }, { 0, 0.99 } }):expand { n, 2, 2 })
        T.value_and_grad(function(p)
          local roll = run { velocity = values.velocity, young = values.young, deformation = p.strained }
          return roll.state:positions():square():sum(), roll
        end) { strained = strained }
      end,
    }
    for k, other in ipairs(between) do
      local state = other()
      assert(not state or not state:equal(ends), "number " .. k .. " is as the first one")
      assert(once(values):equal(ends), "after " .. k)
    end
    local function gradient()
      local _, grad = T.value_and_grad(function(p)
        local roll = run { velocity = p.velocity, young = p.young }
        return roll.state:positions():square():sum(), roll
      end) { velocity = T.param(T.tensor(values.velocity)), young = T.param(values.young) }
      return T.concat({ grad.velocity, grad.young }, 1)
    end
    local grad = gradient()
    assert(gradient():equal(grad))
    world:close()
  end)

  it("are one where motion that the grid does not resolve decays by time", function()
    for _, precision in ipairs { "float32", "float64" } do
      local world = scene.world(scene.robot(), { transfer = { decay = "auto" }, precision = precision })
      is_one(world, { robot = thrown(world), controller = signals(2) })
    end
  end)

  it("are one with cables that rub", function()
    local cable = cq.Actuator.cable { path = { "foot", "trunk" }, stiffness = 5, friction = 0.3 }
    local world = scene.world(scene.robot { actuators = cable })
    is_one(world, { controller = signals(world.actuator_count) })
  end)

  it("are one beside walls and under gravity that follow the time", function()
    local floor = cq.Boundary.half_plane { point = { 0, 3 / 24 }, normal = { 0, 1 }, kind = "friction", mu = 0.4,
      motion = function(t) return { 0.05 * math.sin(20 * t), 0.3 * t * t } end }
    local world = scene.world(scene.robot(), { walls = floor })
    is_one(world, { gravity = function(t) return { math.sin(9 * t), -4 } end, controller = cq.Controller.sines {
      frequency = 2, deviation = 1 } })
  end)

  it("are one beside a wall that moves at one speed", function()
    local floor = cq.Boundary.half_plane { point = { 0, 3 / 24 }, normal = { 0, 1 }, kind = "separate",
      velocity = { 0, 0.1 }, moves = true }
    is_one(scene.world(scene.robot(), { walls = floor }), {})
  end)

  it("share what a recurrent controller and an observer of accelerations remember", function()
    local world = scene.world(scene.robot())
    local seen = cq.Observer.centroid { groups = { "trunk" }, acceleration = true }
    local controller = {
      start = function() return T.zeros { 2 } end,
      act = function(_, observation, hidden)
        local h = (0.9 * hidden + 0.01 * observation:slice(1, 2, 1)):tanh()
        return h, h
      end,
    }
    local function own(state, hidden) return seen:observe(state, hidden) end
    is_one(world, { observer = own, controller = controller })
    is_one(scene.world(scene.robot()), { observer = seen, controller = controller })
  end)
end)

describe("scenes of a rollout", function()
  it("go on from the scenes of a state that the user names, or begin", function()
    local world = scene.world(scene.robot())
    local apart = T.tensor { { { 1, 0 } }, { { -1, 0 } } }:expand { 2, world.particle_count, 2 }
    local robot = world.robot:with { velocity = apart }
    local first = world:rollout { steps = 10, robot = robot, batch = 2 }
    local whole = world:rollout { steps = 15, robot = robot, batch = 2 }.state:positions()
    local fresh = world:rollout { steps = 5 }.state:positions()
    local branched = world:rollout {
      steps = 5, robot = world.robot, from = first.state, scenes = { 2, 1, 0, 2 },
    }.state:positions()
    assert.is_true(branched[1]:equal(whole[2]) and branched[2]:equal(whole[1]))
    assert.is_true(branched[3]:equal(fresh) and branched[4]:equal(whole[2]))
    world:close()
  end)

  it("of one state make a batch", function()
    local world = scene.world(scene.robot())
    local u = T.concat({ T.zeros { 3, 3, 2 }, spread({ 3, 3, 2 }, -1, 1) }, 2)
    local state = world:rollout { steps = 3 }.state
    local roll = world:rollout {
      steps = 3, from = state, scenes = { 1, 1, 1 }, controller = cq.Controller.open_loop(u),
    }
    local x = roll.state:center "trunk"
    assert.equal(3, x:size(1))
    assert.is_false(x[1]:equal(x[2]))
    world:close()
  end)
end)

describe("state:detach", function()
  it("outlives its rollout, and can be gone on from as the state itself", function()
    local world = scene.world(scene.robot { material = PLASTIC })
    local whole, second, first = both(world, { robot = thrown(world), controller = signals(2) })
    local copy = first.state:detach()
    local x = first.state:positions():copy()
    first:release()
    assert.is_true(copy:positions():equal(x))
    assert.equal(HALF, copy.step)
    local again = world:rollout { steps = HALF, from = copy, controller = signals(2) }
    assert.is_true(same(again.state, second.state) and same(again.state, whole.state))
    assert.is_true(same(again:start(), copy))
    world:close()
  end)

  it("lets a loop go on without piling up rollouts", function()
    local world = scene.world(scene.robot())
    local state = world:rollout { steps = 1 }.state
    for _ = 1, 20 do state = world:rollout { steps = 1, from = state }.state end
    assert.is_true(same(state, world:rollout { steps = 21 }.state))
    assert.is_true(#world.pool.entries < 6)
    world:close()
  end)
end)

-- gradients of a whole rollout and of two halves
local function gradients(world, params, fields, detach)
  local function cost(roll)
    return roll.running:sum() + (roll.state:center "trunk":dot(T.tensor { 1, 2 })
      + 0.1 * roll.state:deformations():square():sum() + roll.state:mean_square_velocity(world.robot):sum())
  end
  local function run(p, more)
    local def = fields(p)
    def.running = function(state, u) return state:velocity "foot"[1] * 0.3 + 0.01 * u:dot(u) end
    for name, value in pairs(more) do def[name] = value end
    return world:rollout(def)
  end
  local whole_loss, whole = T.value_and_grad(function(p) return cost(run(p, { steps = 2 * HALF })) end)(params)
  local halves_loss, halves = T.value_and_grad(function(p)
    local first = run(p, { steps = HALF })
    local state = detach and first.state:detach() or first.state
    return cost(run(p, { steps = HALF, from = state })) + (detach and 0 or first.running:sum())
  end)(params)
  return whole, halves, whole_loss, halves_loss
end

local function is_close(a, b, tolerance)
  local scale = a:abs():max():item()
  assert.is_true(scale > 0)
  local off = (a - b):abs():max():item() / scale
  assert.is_true(off < tolerance, ("off by %g"):format(off))
end

local function controlled(world)
  return {
    young = T.param(spread({ world.particle_count }, 8, 12)), velocity = T.param { 0.4, -0.2 },
    gravity = T.param { 0.3, -3 }, friction = T.param(0.3), u = T.param(spread({ 2 * HALF, 2 }, -0.8, 0.8)),
  }
end

local function open(world)
  return function(p)
    return { robot = world.robot:with { young = p.young, velocity = p.velocity }, gravity = p.gravity,
      friction = p.friction, controller = cq.Controller.open_loop(p.u) }
  end
end

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

describe("gradients through a state", function()
  local worlds = {
    ["explicit steps"] = function() return scene.world(scene.robot()) end,
    ["a material with a history"] = function() return scene.world(scene.robot { material = PLASTIC }) end,
    ["total Lagrangian steps"] = function()
      return scene.world(scene.robot(), { formulation = "total_lagrangian" })
    end,
    ["motion that decays by time"] = function()
      return scene.world(scene.robot(), { transfer = { decay = "auto" } })
    end,
    ["implicit steps"] = function() return scene.world(scene.robot(), { integrator = cq.Implicit {} }) end,
  }
  for name, make in pairs(worlds) do
    it("are those of one rollout, of " .. name, function()
      local world = make()
      local whole, halves, loss, again = gradients(world, controlled(world), open(world))
      assert.is_true(math.abs(loss - again) < 1e-12 * math.abs(loss))
      for key, grad in pairs(whole) do is_close(grad, halves[key], name == "implicit steps" and 1e-7 or 1e-10) end
      world:close()
    end)
  end

  it("are those of one rollout, of control steps one by one, some of which begin with a sort", function()
    local world = scene.world(scene.robot())
    local function run(p, steps, from)
      return world:rollout { robot = not from and world.robot:with { velocity = p.velocity, young = p.young } or nil,
        steps = steps, from = from, controller = cq.Controller.open_loop(p.u) }
    end
    local function cost(state) return state:moment(world.robot):sum() + state:deformations():square():sum() end
    local params = { velocity = T.param { 1.2, 0.4 }, young = T.param(spread({ world.particle_count }, 8, 12)),
      u = T.param(spread({ HALF, 2 }, -0.8, 0.8)) }
    local whole_loss, whole = T.value_and_grad(function(p) return cost(run(p, HALF).state) end)(params)
    local loss, each = T.value_and_grad(function(p)
      local state
      for _ = 1, HALF do state = run(p, 1, state).state end
      return cost(state)
    end)(params)
    assert.equal(whole_loss, loss)
    for key, grad in pairs(whole) do is_close(grad, each[key], 1e-10) end
    world:close()
  end)

  it("reach the first deformation of bodies on grids of their shape, and not where it is detached", function()
    local world = scene.world(scene.robot(), { formulation = "total_lagrangian", precision = "float64" })
    local n = world.particle_count
    local params = { first = T.param(T.tensor({ { 1.02, 0.01 }, { 0, 0.99 } }):expand({ n, 2, 2 }):copy()) }
    local function cost(state) return state:positions():square():sum() + state:deformations():square():sum() end
    local function run(p, more)
      local def = { robot = p and world.robot:with { deformation = p.first } }
      for name, value in pairs(more) do def[name] = value end
      return world:rollout(def)
    end
    local _, whole = T.value_and_grad(function(p) return cost(run(p, { steps = 6 }).state) end)(params)
    local _, halves = T.value_and_grad(function(p)
      return cost(run(nil, { steps = 3, from = run(p, { steps = 3 }).state }).state)
    end)(params)
    is_close(whole.first, halves.first, 1e-10)
    local _, cut = T.value_and_grad(function(p)
      local before = run(p, { steps = 3 }).state
      return cost(run(nil, { steps = 3, from = before:detach() }).state) + 0 * before:positions():sum()
    end)(params)
    assert.equal(0, cut.first:abs():max():item())
    world:close()
  end)

  it("are cut where it is detached", function()
    local world = scene.world(scene.robot())
    local whole, cut = gradients(world, controlled(world), open(world), true)
    assert.equal(0, cut.velocity:abs():max():item())
    assert.equal(0, cut.u:slice(1, HALF, 1):abs():max():item())
    assert.is_true(cut.u:slice(HALF + 1, 2 * HALF, 1):equal(whole.u:slice(HALF + 1, 2 * HALF, 1)))
    world:close()
  end)

  it("reach scenes that several have gone on from", function()
    local world = scene.world(scene.robot())
    local function loss(scenes)
      return T.value_and_grad(function(p)
        local velocity = T.stack({ p.a, p.b }, 1):unsqueeze(2):expand { 2, world.particle_count, 2 }
        local first = world:rollout { steps = 5, batch = 2, robot = world.robot:with { velocity = velocity } }
        local roll = world:rollout { steps = 5, robot = world.robot, from = first.state, scenes = scenes }
        return roll.state:center "trunk":sum()
      end) { a = T.param { 0.3, 0 }, b = T.param { 0, 0.2 } }
    end
    local _, one = loss { 1, 2 }
    local _, more = loss { 1, 0, 2, 1 }
    is_close(2 * one.a, more.a, 1e-12)
    is_close(one.b, more.b, 1e-12)
    world:close()
  end)

  it("reach what was remembered, and fade as gradient.decay says", function()
    local world = scene.world(scene.robot())
    local params = { w = T.param(spread({ 4, 2 }, -1, 1)), h = T.param { 0.1, 0.2 } }
    for _, decay in ipairs { math.huge, 0.05 } do
      local controller
      local whole, halves = gradients(world, params, function(p)
        if not controller or controller.w ~= p.w then
          controller = { w = p.w, start = function() return p.h end,
            act = function(_, seen, hidden)
              local h = (0.9 * hidden + 0.3 * seen:matmul(p.w)):tanh()
              return h, h
            end }
        end
        return { controller = controller, gradient = { decay = decay },
          observer = function(state) return state:motion "trunk" end }
      end)
      is_close(whole.w, halves.w, 1e-10)
      is_close(whole.h, halves.h, 1e-10)
    end
    world:close()
  end)

  it("fade between control steps alone, and not where a rollout makes none", function()
    local world = scene.world(scene.robot())
    local function slope(...)
      local parts = { ... }
      return (T.grad(function(p)
        local sum, state = p.h:sum() * 0, nil
        local own = { start = function() return p.h end, act = function(_, _, hidden) return hidden, hidden * 0.9 end }
        for _, steps in ipairs(parts) do
          local roll = world:rollout { robot = world.robot:with { velocity = p.v }, steps = steps, from = state,
            gradient = { decay = 0.02 }, controller = own, running = function(s) return s:energy() end }
          sum, state = steps > 0 and sum + roll.running:sum() or sum, roll.state
        end
        return sum
      end)({ v = T.param { 0.3, -0.8 }, h = T.param { 0.4, -0.2 } }))
    end
    local whole = slope(6)
    for _, found in ipairs { slope(2, 0, 4), slope(0, 6), slope(0, 2, 0, 0, 4, 0) } do
      is_close(whole.v, found.v, 1e-10)
      is_close(whole.h, found.h, 1e-10)
    end
    world:close()
  end)

  it("reach velocities of walls before it", function()
    local floor = cq.Boundary.sphere { center = { 0.45, -0.2 }, radius = 0.3, kind = "separate", velocity = { 0, 0.1 },
      moves = true }
    local world = scene.world(scene.robot(), { walls = floor })
    local whole, halves = gradients(world, { v = T.param { 0.02, 0.1 } },
      function(p) return { wall_velocity = p.v } end)
    is_close(whole.v, halves.v, 1e-10)
    local each = T.param(spread({ 2 * HALF, 1, 2 }, 0.02, 0.2))
    local function cost(state) return state:center "trunk":sum() end
    local _, all = T.value_and_grad(function(p)
      return cost(world:rollout { steps = 2 * HALF, wall_velocity = p.v }.state)
    end) { v = each }
    local _, parts = T.value_and_grad(function(p)
      local first = world:rollout { steps = HALF, wall_velocity = p.v:slice(1, HALF, 1) }
      local rest = p.v:slice(HALF + 1, 2 * HALF, 1)
      return cost(world:rollout { steps = HALF, wall_velocity = rest, from = first.state }.state)
    end) { v = each }
    is_close(all.v, parts.v, 1e-10)
    world:close()
  end)
end)

describe("what cannot go on", function()
  local world = scene.world(scene.robot())
  local other = scene.world(scene.robot())
  local function problem(fields) return sentence(function() world:rollout(fields) end) end

  it("is told in a sentence", function()
    local roll = world:rollout { steps = 2 }
    local batch = world:rollout { steps = 2, batch = 2 }
    assert.equal("world:rollout: from must be a state of this world, got one of another world",
      problem { steps = 1, from = other:rollout { steps = 1 }.state })
    assert.equal("world:rollout: scenes says which scene of a state each scene goes on from; give it with from",
      problem { steps = 1, scenes = { 1 } })
    assert.equal("world:rollout: scenes[2] is 3; the state in from has 2 scenes",
      problem { steps = 1, from = batch.state, scenes = { 1, 3 } })
    assert.equal("world:rollout: scenes has 1 number, the batch has 2",
      problem { steps = 1, from = batch.state, scenes = { 1 }, batch = 2 })
    assert.equal("world:rollout: the batch has 3, the state in from has 2 scenes; leave out batch, or give scenes = a list of scenes of the state",
      problem { steps = 1, from = batch.state, batch = 3 })
    assert.equal("world:rollout: from is the state of one scene; give scenes with the state of all scenes, or leave it out",
      problem { steps = 1, from = batch.state:scene(2), scenes = { 1 } })
    local remembers = { act = function(_, _, memory) return T.zeros { 2 }, memory or T.zeros { 2, 1 } end }
    local carried = world:rollout { steps = 2, batch = 2, controller = remembers }
    assert.equal("state:detach: the rollout's observer or controller remembers all of its scenes; detach the state of all",
      sentence(function() carried.state:scene(1):detach() end))
    roll:release()
    assert.equal("world:rollout: from: this rollout was released, or its world closed",
      problem { steps = 1, from = roll.state })
    local walls = scene.world(scene.robot(), { walls = cq.Boundary.half_plane { point = { 0, 0.1 }, normal = { 0, 1 },
      velocity = { 0, 0.1 }, moves = true } })
    local before = walls:rollout { steps = 1 }
    assert.equal("world:rollout: wall 1 moves, and its velocity is another one than in the rollout that this one goes on from: give both of them velocities of each control step",
      sentence(function() walls:rollout { steps = 1, from = before.state, wall_velocity = { 0, 0.2 } } end))
  end)

  it("is an observer of accelerations that the engine drove alone", function()
    local observer = cq.Observer.centroid { groups = { "trunk" }, acceleration = true }
    local controller = cq.Controller.mlp { hidden = { 4 } }
    local roll = world:rollout { steps = 2, observer = observer, controller = controller }
    local told = problem { steps = 2, observer = observer, controller = controller, from = roll.state }
    assert.is_true(told:find("the velocity before it, which the engine kept to itself", 1, true) ~= nil)
  end)

  it("is a rollout that failed, and one for which the signals end", function()
    local controller = cq.Controller.open_loop(T.zeros { 3, 2 })
    local roll = world:rollout { steps = 2, controller = controller }
    require("tests.sentence").says(problem { steps = 2, controller = controller, from = roll.state },
      "has signals for 3 control steps, the rollout makes 2 from control step 2 on; make a rollout of fewer, or give")
  end)
end)
