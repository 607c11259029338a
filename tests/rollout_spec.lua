-- rollout: gradients of every class of parameter through whole rollouts, batches, checkpoints and hidden state.
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local blind = require "tests.blind"
local costs = require "tests.costs"
local derivative = require "tests.derivative"
local engine_policy = require "tests.engine_policy"
local messages = require "cq.base.message"
local spread = require "tests.spread"
local scene = require "tests.scene"
local sentence = require("tests.sentence").of

local STEPS = 12

-- a number that feels everything of a rollout: final state, running costs and a record
local function felt(roll, world)
  local s = roll.state
  local value = s:center("trunk"):dot(T.arange(1, world.dim)) + s:velocity("foot"):sum()
    + 0.1 * s:deformations():square():sum()
    + s:mean_square_velocity(world.robot) + s:moment({ "foot", "trunk" }):sum() * 3
  if roll.running then value = value + roll.running:sum() end
  if roll.record then value = value + roll.record:square():sum() end
  return value
end

local function running(state, u) return state:velocity("trunk")[1] * 0.5 + 0.01 * u:dot(u) end
local function record(state) return state:gather({ 1, 5, 9 }) end

-- parameters of every class for a world
local function every_parameter(world)
  local n, dim = world.particle_count, world.dim
  return {
    young = T.param(spread({ n }, 7, 12)), poisson = T.param(spread({ n }, 0.2, 0.35)),
    density = T.param(spread({ n }, 0.8, 1.6)),
    volume = T.param(world.robot.volume * spread({ n }, 0.9, 1.1)), position = T.param(world.robot.position),
    velocity = T.param(spread({ n, dim }, -0.2, 0.2)), affine = T.param(spread({ n, dim, dim }, -0.1, 0.1)),
    deformation = T.param(T.eye(dim) + spread({ n, dim, dim }, -0.02, 0.02)),
    gravity = T.param(spread({ dim }, -3, -2)), friction = T.param(0.3),
    wall_velocity = T.param(spread({ dim }, 0.01, 0.02)),
    u = T.param(spread({ STEPS, 2 }, -0.8, 0.8)),
  }
end

local function rollout(world, p, more)
  local fields = {
    robot = world.robot:with {
      young = p.young, poisson = p.poisson, density = p.density, volume = p.volume, position = p.position,
      velocity = p.velocity,
      affine = p.affine, deformation = p.deformation,
    },
    gravity = p.gravity, friction = p.friction, wall_velocity = p.wall_velocity, steps = STEPS,
    controller = cq.Controller.open_loop(p.u), running = running, record = record,
  }
  for key, value in pairs(more or {}) do fields[key] = value end
  return world:rollout(fields)
end

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

describe("gradients through a rollout", function()
  for _, dim in ipairs { 2, 3 } do
    it(("of every parameter in %dD"):format(dim), function()
      local world = scene.world(scene.robot { dim = dim, count = dim == 2 and 4 or 3 })
      derivative.check(function(p) return felt(rollout(world, p), world) end, every_parameter(world), 1e-6)
      world:close()
    end)
  end

  it("of values for the robot and by group", function()
    local world = scene.world(scene.robot())
    local p = { young = { foot = T.param(9), trunk = T.param(11) }, density = T.param(1.2),
      velocity = { trunk = T.param { 0.1, -0.2 } } }
    derivative.check(function(q) return felt(world:rollout { robot = world.robot:with(q), steps = STEPS }, world) end,
      p, 1e-6)
  end)

  it("of constants that some of the particles have", function()
    local robot = scene.robot { material = {
      foot = cq.Material.neo_hookean { shear = 4, bulk = 8, incompressible = 4 },
      trunk = cq.Material.corotated { young = 8, poisson = 0.2 },
    } }
    local world = scene.world(robot)
    local p = { shear = T.param(spread({ 16 }, 3, 5)), bulk = { foot = T.param(9) },
      young = T.param(spread({ 32 }, 7, 10)), poisson = T.param(0.25) }
    local function loss(q) return felt(world:rollout { robot = world.robot:with(q), steps = STEPS }, world) end
    derivative.check(loss, p, 1e-6)
    local _, grads = T.value_and_grad(loss)(p)
    for k = 1, 16 do
      assert.equal(0, grads.young:get(k))
      assert.is_true(grads.young:get(k + 16) ~= 0 and grads.shear:get(k) ~= 0)
    end
  end)

  it("of moduli of 0", function()
    local material = cq.Material.neo_hookean { shear = 0, bulk = 0, incompressible = 2 }
    local world = scene.world(scene.robot { material = material })
    local p = { shear = T.param(0), bulk = T.param(0) }
    local stretched = { deformation = T.eye(2) * 1.1 }
    local _, grads = T.value_and_grad(function(q)
      return felt(world:rollout { robot = world.robot:with(stretched):with(q), steps = STEPS }, world)
    end)(p)
    assert.is_true(grads.shear:finite() and grads.bulk:finite() and grads.bulk:item() ~= 0)
  end)

  it("of two robots that collide", function()
    local function ball(name)
      return cq.Robot {
        name = name, shape = cq.Shape.disc { name = "ball", radius = 0.06, spacing = 0.02 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      }
    end
    local a, b = ball "a":at { 0.4, 0.5 }, ball "b":at { 0.55, 0.52 }
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, precision = "float64", a, b }
    local p = { a = { density = T.param(1.2), velocity = T.param { 0.6, 0.1 } },
      b = { young = T.param(9), density = T.param(0.8) } }
    local function target(q)
      return world:rollout { robot = { b:with(q.b), a:with(q.a) }, steps = 20 }.state:center(b):dot(T.tensor { 1, 2 })
    end
    derivative.check(target, p, 1e-6)
    -- the other ball is hit: it would not move by itself
    assert.is_true(world:rollout { robot = a:with(p.a), steps = 20 }.state:velocity(b):norm():item() > 0.05)
    assert.equal(0, world:rollout { steps = 20 }.state:velocity(b):norm():item())
  end)

  it("of each of several walls", function()
    local walls = { cq.Boundary.floor { at = 0.125, mu = 0.3 },
      cq.Boundary.half_plane { point = { 0.39, 0 }, normal = { 1, 0.1 }, mu = 0.2 } }
    local world = scene.world(scene.robot(), { walls = walls })
    local p = { friction = T.param { 0.3, 0.2 }, wall_velocity = T.param { { 0.1, 0.01 }, { 0.02, 0.05 } } }
    derivative.check(function(q)
      return felt(world:rollout { steps = 20, friction = q.friction, wall_velocity = q.wall_velocity,
        gravity = { -3, -4 }, running = running }, world)
    end, p, 1e-6)
  end)

  it("of weights of actuators", function()
    local robot = scene.robot { actuators = cq.Actuator.isotropic { count = 3, max = 1.5 } }
    local world = scene.world(robot)
    local p = { w = T.param(spread({ robot.particle_count, 3 }, 0, 1)), u = T.param(spread({ STEPS, 3 }, -1, 1)) }
    derivative.check(function(q)
      return felt(world:rollout { robot = robot:with { actuation_weight = q.w }, steps = STEPS,
        controller = cq.Controller.open_loop(q.u) }, world)
    end, p, 1e-6)
  end)

  it("of a network that sees the state, with acceleration carried from step to step", function()
    local world = scene.world(scene.robot())
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, acceleration = true }
    local controller = cq.Controller.mlp { hidden = { 5 }, activation = "tanh", seed = 3 }
    local p = controller:prepare(world, observer)
    assert.same({ 12, 5 }, p.w1:shape())
    derivative.check(function(q)
      return felt(world:rollout { steps = STEPS, observer = observer, controller = controller:with(q),
        running = running }, world)
    end, p, 1e-6)
  end)

  it("of a controller with memory, its start, and a force actuator with velocities", function()
    local Spring = { particles = "trunk", signals = 1 }
    function Spring:force(u, x, v) return (T.tensor { 0.45, 0.3 } - x) * self.stiffness * (1 + u) - 0.002 * v end
    local Push = { particles = { 1, 20, 21 }, signals = 0, force = function(_, u, x)
      assert(u == nil)
      return (x * 3):sin() * 1e-3
    end }
    local robot = scene.robot { actuators = {
      cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 }, Spring, Push,
      cq.Actuator.muscle { groups = "trunk", axis = "x" },
    } }
    assert.equal(3, robot.actuator_count)
    local world = scene.world(robot)
    local Oscillator = { params = { w = T.param(spread({ 4, 3 }, -1, 1)), h = T.param { 0.1, 0.2, -0.3 },
      stiffness = T.param(0.02) } }
    function Oscillator:start() return { memory = self.params.h, count = 0 } end
    function Oscillator:act(z, hidden, t)
      local h = hidden.memory * 0.8 + z:matmul(self.params.w) * 0.3
      return (h + math.sin(9 * t)):tanh(), { memory = h, count = hidden.count + 1 }
    end
    derivative.check(function(q)
      Spring.stiffness = q.stiffness
      return felt(world:rollout {
        steps = STEPS, observer = function(s) return cq.concat { s:center "trunk", s:velocity "foot" } end,
        controller = setmetatable({ params = q }, { __index = Oscillator }), running = running, record = record,
      }, world)
    end, Oscillator.params, 1e-6)
  end)

  it("of the final state only, and again when the backward pass is repeated", function()
    local world = scene.world(scene.robot())
    local u = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    local record_on = T.tape.new()
    local roll, a, b = T.tape.with(record_on, function()
      local r = world:rollout { steps = STEPS, controller = cq.Controller.open_loop(u) }
      return r, r.state:center("foot")[1], r.state:center("trunk")[2]
    end)
    record_on:backward({ a, b }, { 1, 0 })
    local first = u.grad:copy()
    assert(first:norm():item() > 0)
    assert.is_true(roll.state:center("foot")[1]:equal(a:detach()))
    u:zero_grad()
    local loss = T.value_and_grad(function(p)
      return world:rollout { steps = STEPS, controller = cq.Controller.open_loop(p) }.state:center("foot")[1]
    end)
    local _, second = loss(u)
    assert.is_true(first:equal(second))
  end)
end)

describe("a rollout", function()
  -- loss and gradients of every class of parameter
  local function gradients(dim, precision, memory, threads)
    local robot = scene.robot { dim = dim, count = dim == 2 and 4 or 3 }
    local world = scene.world(robot, { precision = precision, threads = threads })
    local p = every_parameter(world)
    local loss, grads = T.value_and_grad(function(q) return felt(rollout(world, q, { memory = memory }), world) end)(p)
    local plan = world:memory_plan { steps = STEPS, memory = memory }
    world:close()
    return loss, T.leaves.list(grads), plan
  end

  for _, dim in ipairs { 2, 3 } do
    for _, precision in ipairs { "float32", "float64" } do
      it(("gives the same gradients, bit for bit, with little memory and more threads: %dD, %s"):format(dim, precision),
        function()
        local loss, all, plan = gradients(dim, precision, "1 GiB", 1)
        assert.equal(1, plan.recompute)
        local tight = math.floor(3.5 * plan.slice_bytes + plan.record_bytes)
        local loss2, again, tight_plan = gradients(dim, precision, tight, 1)
        assert.is_true(tight_plan.recompute > 1, "the budget was not tight")
        assert.equal(loss, loss2)
        local loss3, threaded = gradients(dim, precision, "1 GiB", 2)
        assert.equal(loss, loss3)
        for k, leaf in ipairs(all) do
          assert.is_true(leaf.tensor:equal(again[k].tensor), leaf.path)
          assert.is_true(leaf.tensor:equal(threaded[k].tensor), leaf.path)
        end
      end)
    end

    it(("has gradients in float32 near those in float64, for every parameter in %dD"):format(dim), function()
      local _, single = gradients(dim, "float32", "1 GiB", 1)
      local _, double = gradients(dim, "float64", "1 GiB", 1)
      for k, leaf in ipairs(double) do
        local err = (single[k].tensor - leaf.tensor):norm():item() / leaf.tensor:norm():item()
        assert.is_true(err < 1e-3, ("%s: %.2e"):format(leaf.path, err))
      end
    end)
  end

  it("of a batch equals its scenes one by one", function()
    local Spring = { particles = "trunk", signals = 1, stiffness = 0 }
    function Spring:force(u, x) return (T.tensor { 0.45, 0.3 } - x) * self.stiffness * (1 + u:unsqueeze(-1)) end
    local chambers = cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 2 }
    local world = scene.world(scene.robot { actuators = { Spring, chambers } })
    local n = world.particle_count
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, acceleration = true }
    local controller = cq.Controller.linear { seed = 4 }
    controller:prepare(world, observer)
    local young = T.param(T.stack { spread({ n }, 7, 9), spread({ n }, 10, 12), spread({ n }, 8, 11) })
    local gravity = T.param { { 0, -3 }, { 0.5, -4 }, { -0.5, -2 } }
    local w, b, stiffness = controller.params.w1, controller.params.b1, T.param(0.05)
    local function simulate(p, batch)
      Spring.stiffness = p.stiffness
      return world:rollout {
        batch = batch, robot = world.robot:with { young = p.young }, gravity = p.gravity, steps = STEPS,
        observer = observer,
        controller = controller:with { w1 = p.w, b1 = p.b },
        running = function(s) return s:velocity("trunk"):slice(1, 1, -1):squeeze(-1) end,
        record = function(s) return s:center { "foot", "trunk" } end,
      }
    end
    local weight = T.tensor { 1, 2, 3 }
    local loss, grads, batched = T.value_and_grad(function(p)
      local roll = simulate(p, 3)
      return ((roll.running:sum(1) + roll.record:square():sum { 1, 3, 4 }
        + roll.state:center("foot"):sum(-1)) * weight):sum(), roll
    end) { young = young, gravity = gravity, w = w, b = b, stiffness = stiffness }
    assert.same({ STEPS, 3, 2, 2 }, batched.record:shape())
    local total, gw, gs = 0, T.zeros(w:shape()), T.zeros {}
    for k = 1, 3 do
      local own, g, roll = T.value_and_grad(function(p)
        local r = simulate(p)
        return (r.running:sum() + r.record:square():sum() + r.state:center("foot"):sum()) * k, r
      end) { young = T.param(young[k]:detach()), gravity = T.param(gravity[k]:detach()), w = w, b = b,
        stiffness = stiffness }
      total, gw, gs = total + own, gw + g.w, gs + g.stiffness
      assert.is_true(g.young:close(grads.young[k], 1e-10, 1e-13))
      assert.is_true(g.gravity:close(grads.gravity[k], 1e-10, 1e-13))
      assert.is_true(roll.running:close(batched.running:slice(k, k, 2):squeeze(2), 1e-11, 1e-13))
    end
    assert.is_true(math.abs(total - loss) < 1e-11 * math.abs(loss))
    assert.is_true(gw:close(grads.w, 1e-10, 1e-13))
    assert.is_true(gs:item() ~= 0 and gs:close(grads.stiffness, 1e-10, 1e-13))
  end)

  it("that needs no look at its states gives the same bits as step by step",
    function() assert.equal(10, blind.compare()) end)

  it("that needs no look at its states fails as step by step", function()
    local unstable, broken, both = unpack(blind.failures())
    assert(unstable:find("failed at control step %d+ ") and both == unstable, unstable)
    assert(broken:find("signal 2 is nan", 1, true) and broken:find("control step 9 of 12", 1, true), broken)
  end)

  it("flushes denormals in the engine only, also where it fails", function()
    local world, seen = scene.world(scene.robot()), {}
    local function look() seen[#seen + 1] = (T.tensor(1e-310) * 0.5):item() end
    T.value_and_grad(function(p)
      local roll = world:rollout {
        robot = world.robot:with { velocity = p.velocity }, steps = 2,
        controller = function() look() return T.zeros { 2 } end,
      }
      look()
      return roll.state:center("foot")[1]
    end) { velocity = T.param(T.zeros { world.particle_count, 2 }) }
    look()
    scene.failure(world, { steps = 50, controller = function() return { -90, -90 } end })
    look()
    assert(#seen > 4)
    for _, number in ipairs(seen) do assert.equal(1e-310 / 2, number) end
  end)

  it("that the engine drives by itself equals one that Lua drives",
    function() assert.equal(13, engine_policy.compare()) end)

  it("is left to Lua where a user has put a method of his own in the place of ours", function()
    local world = scene.world(scene.robot())
    local function first(change, observer)
      local net, seer = cq.Controller.linear { seed = 1 }, observer
        or cq.Observer.centroid { groups = { "foot", "trunk" } }
      change(net, seer)
      return world:rollout { steps = 2, observer = seer, controller = net }.signals[1]:totable()
    end
    assert.same({ 0.25, 0.25 }, first(function(net) net.act = function() return cq.full({ 2 }, 0.25) end end))
    assert.same({ 0, 0 }, first(function(_, seer) seer.observe = function() return cq.zeros { 4 } end end))
    assert.is_not.same({ 0, 0 }, first(function() end))
    local particles = cq.Observer.particles { group = { 3, 7 } }
    assert.is_not.same({ 0, 0 }, first(function() end, particles))
    assert.same({ 0, 0 }, first(function(_, seer) seer.observe = function() return cq.zeros { 4 } end end, particles))
    world:close()
  end)

  it("is left to Lua where a network has more layers than the engine takes", function()
    local world, hidden = scene.world(scene.robot()), {}
    for k = 1, 15 do hidden[k] = 3 end
    local function roll()
      return world:rollout { steps = 2, observer = cq.Observer.centroid { groups = "foot" },
        controller = cq.Controller.mlp { hidden = hidden } }
    end
    assert(roll().engine_policy, "16 layers")
    hidden[16] = 3
    assert.is_nil(roll().engine_policy)
    world:close()
  end)

  it("that the engine drives by itself fails as one that Lua drives", function()
    local unstable, broken = unpack(engine_policy.failures())
    assert(unstable:find("failed at control step %d+ "), unstable)
    assert(broken:find("signal 2 is nan", 1, true) and broken:find("in the controller, control step 1 of 12", 1, true),
      broken)
  end)

  it("that the engine drives by itself has gradients of its network", function()
    local seers = {
      cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
      cq.Observer.particles { group = { 1, 8, 9 }, velocity = true },
      cq.Observer.kmeans { clusters = 2, acceleration = true },
    }
    for k = 1, 2 * #seers do
      local dim, observer = k % 2 == 0 and 2 or 3, seers[math.ceil(k / 2)]
      local world = scene.world(scene.robot { dim = dim, count = dim == 2 and 4 or 3 })
      local controller = cq.Controller.mlp { hidden = { 5, 4 }, activation = "tanh", seed = 3 }
      local p = { net = controller:prepare(world, observer), density = T.param(1.2) }
      derivative.check(function(q)
        local roll = world:rollout { robot = world.robot:with { density = q.density }, steps = STEPS,
          observer = observer, controller = controller:with(q.net) }
        assert(roll.engine_policy, "the engine does not drive")
        return felt(roll, world)
      end, p, 1e-6)
      world:close()
    end
  end)

  it("that the engine drives by itself has gradients of weights as they were, not as they are", function()
    local world = scene.world(scene.robot())
    local observer, controller = cq.Observer.centroid { groups = { "foot", "trunk" } },
      cq.Controller.linear { seed = 4 }
    local params = controller:prepare(world, observer)
    local function gradient(change)
      local own = { w1 = T.param(params.w1:detach():copy()), b1 = T.param(params.b1:detach():copy()) }
      local _, grads = T.value_and_grad(function(p)
        local roll = world:rollout { steps = STEPS, observer = observer, controller = controller:with(p) }
        local loss = roll.state:center("foot")[1]
        if change then own.w1:data()[0] = own.w1:data()[0] + 1 end
        return loss
      end)(own)
      return grads.w1
    end
    assert.is_true(gradient(false):equal(gradient(true)))
  end)

  it("that needs no look at its states stops when it is interrupted", function()
    local world, C = scene.world(scene.robot()), engine.C
    local controller = cq.Controller.open_loop(T.zeros { STEPS, 2 })
    C.cq_interrupt(1)
    local message = sentence(function() world:rollout { steps = STEPS, controller = controller } end)
    C.cq_interrupt(0)
    assert(message:find("interrupted at control step 0", 1, true), message)
    local loss = T.value_and_grad(function(u)
      local roll = world:rollout { steps = STEPS, controller = cq.Controller.open_loop(u) }
      C.cq_interrupt(1)
      return roll.state:center("foot")[1]
    end)
    message = sentence(function() loss(T.param(T.zeros { STEPS, 2 })) end)
    C.cq_interrupt(0)
    assert(message:find("interrupted at control step 12, in the backward pass", 1, true), message)
  end)

  it("stops for a running cost, not for effort", function() assert.equal(16, costs.compare()) end)

  it("has costs that fail at their control step", function() assert.equal(7, costs.failures()) end)

  it("is refused what would change it in the middle: a gradient of a state, and its release", function()
    local world, roll = scene.world(scene.robot()), nil
    local function failure(cost)
      return sentence(function()
        T.value_and_grad(function(g)
          roll = world:rollout { steps = STEPS, gravity = g, running = cost }
          return roll.running:sum()
        end)(T.param { 0, -4 })
      end)
    end
    for step = 1, STEPS, STEPS - 1 do
      local message = failure(function(s)
        if s.step < step then return 0 end
        return T.grad(function(x) return x * s:center("foot"):sum() end)(T.param(2))
      end)
      assert(message:find("no gradient of a state can be taken inside the rollout's own functions", 1, true), message)
    end
    local message = failure(function(s)
      if roll and roll.finished then roll:release() end
      return s:center("foot"):sum()
    end)
    assert(message:find("rollout:release: cannot be called from inside", 1, true), message)
    for _, name in ipairs { "on_step", "running", "record", "observer" } do
      local refused = sentence(function()
        world:rollout { steps = 2, [name] = function(s) s.roll:release() end }
      end)
      assert(refused:find("rollout:release: cannot be called from inside", 1, true), name .. ": " .. refused)
    end
    world:close()
  end)

  it("has no gradient of what is computed by a gradient within its own", function()
    local world = scene.world(scene.robot())
    -- The gradient by gravity of a foot's height, where `within` is called with the state before.
    local function gradient(within)
      local _, g = T.value_and_grad(function(gravity)
        local roll = world:rollout { steps = STEPS, gravity = gravity }
        within(roll.state)
        return roll.state:center("foot")[2]
      end)(T.param { 0, -4 })
      return g:totable()
    end
    local function product(state)
      return T.grad(function(q) return (q * state:center "foot"):sum() end)(T.param { 1, 2 })
    end
    local alone = gradient(function() end)
    assert.same(alone, gradient(function(state) T.tape.pause(product, state) end))
    local refused
    assert.same(alone, gradient(function(state) refused = sentence(function() product(state) end) end))
    assert(refused:find("second derivatives are not computed", 1, true), refused)
    world:close()
  end)

  it("is interrupted on the way back by nobody's fault", function()
    local C, world, calls = engine.C, scene.world(scene.robot()), 0
    for _, watch in ipairs { false, scene.nobody } do
      local message = sentence(function()
        calls = 0
        T.value_and_grad(function(g)
          return world:rollout { steps = STEPS, gravity = g, on_step = watch or nil, running = function(s)
            calls = calls + 1
            if calls == STEPS + 2 then C.cq_interrupt(1) end
            return s:center("foot"):sum()
          end }.running:sum()
        end)(T.param { 0, -4 })
      end)
      C.cq_interrupt(0)
      assert(message:find("in the backward pass$"), message)
    end
    world:close()
  end)

  it("refuses a running cost that gives something else on the way back", function()
    local of_running, of_effort = unpack(costs.changing())
    assert(of_running:find("running gave another result when it ran again", 1, true), of_running)
    assert(of_running:find("in running, control step 12 of 12", 1, true), of_running)
    assert(of_effort:find("effort gave another result when it ran again", 1, true), of_effort)
  end)

  it("forgets what an earlier rollout has set", function()
    local world = scene.world(scene.robot())
    local function center(fields)
      fields.steps = STEPS
      local roll = world:rollout(fields)
      local x = roll.state:center("trunk")
      roll:release()
      return x
    end
    local plain = center {}
    local moved = center { robot = world.robot:with { velocity = { 0.5, 0 }, young = 20,
      deformation = T.eye(2) * 1.02 }, gravity = { 1, 0 }, friction = 0 }
    assert.is_false(plain:equal(moved))
    assert.equal(1, #world.pool.entries)
    assert.is_true(plain:equal(center {}))
  end)

  it("keeps as many of the engine's rollouts as are in use", function()
    local world = scene.world(scene.robot())
    local a = world:rollout { steps = 2 }
    local b = world:rollout { steps = 2, gravity = { 0, 0 } }
    assert.equal(2, #world.pool.entries)
    assert.is_false(a.state:center("foot"):equal(b.state:center("foot")))
    a, b = nil, nil
    for _ = 1, 4 do world:rollout { steps = 2 } end
    assert(a == nil and b == nil and #world.pool.entries <= 2)
  end)

  it("weighs means of its start as it does those of its end", function()
    local world = scene.world(scene.robot())
    local robot = world.robot:with { density = T.arange(1, 32) }
    for _, weight in ipairs { "mass", "particle" } do
      local roll = world:rollout { steps = 0, robot = robot, weight = weight }
      assert.equal(roll.state:center(robot)[1]:item(), roll:start():center(robot)[1]:item())
    end
  end)

  it("names what a field is called now", function()
    local world = scene.world(scene.robot())
    local said = require("tests.sentence").of(function() world:rollout { steps = 1, watch = print } end)
    assert.is_truthy(said:find("unknown field watch (it is on_step now)", 1, true), said)
  end)

  it("shows its states to on_step, from the start on", function()
    local world = scene.world(scene.robot())
    local steps, times = {}, {}
    local roll = world:rollout { steps = 3, on_step = function(s, u)
      steps[#steps + 1], times[#times + 1] = s.step, u ~= nil
    end }
    assert.same({ 0, 1, 2, 3 }, steps)
    assert.same({ false, true, true, true }, times)
    assert.same({ 3, 2 }, roll.signals:shape())
  end)

  it("is damped by a rate per time in short steps and float32, too, with its slope", function()
    local block = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.05 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    local steps, dt = 20, 5.6e-3
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local world = cq.World { cells = { 16, 8 }, dx = 0.1, dt = dt, substeps = 100, formulation = formulation,
        block:with { velocity = { 1, 0 } }:at { 0.3, 0.3 } }
      local function speed(damping)
        return world:rollout { steps = steps, damping = damping }.state:velocity(block)[1]:item()
      end
      local expected, slope = math.exp(-0.3 * steps * dt), (speed(0.303) - speed(0.3)) / 0.003
      assert.near(expected, speed(0.3), 1e-4)
      assert.near(-steps * dt * expected, slope, 0.02 * steps * dt)
    end
    local said = {}
    local own = messages.note
    function messages.note(format, ...) said[#said + 1] = format:format(...) end
    cq.World { cells = { 16, 8 }, dx = 0.1, dt = 1e-2, substeps = 10000, damping = 0.0211, block:at { 0.3, 0.3 } }
    messages.note = own
    assert.is_truthy(table.concat(said):find("damping = 0.0211 takes 2e-08 of a velocity in an engine step", 1, true))
  end)
end)
