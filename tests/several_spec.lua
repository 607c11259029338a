-- several: cq.values_and_grads and tapes that are kept: many backward passes over one forward pass, to the bits of each
-- alone.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local scene = require "tests.scene"
local sentence = require("tests.sentence").of
local spread = require "tests.spread"

local STEPS = 12

local told = {}
local warn = T.warn
setup(function() T.warn = function(words) told[#told + 1] = words end end)
teardown(function() T.warn = warn end)
before_each(function() told = {} end)

-- values and gradients of f are those of each of its numbers alone, bit for bit
local function check_each(f, p)
  local values, grads = cq.values_and_grads(f)(p)
  local names = 0
  for name in pairs(values) do
    names = names + 1
    -- a parameter that it misses is reached with zero
    local value, grad = cq.value_and_grad(function(q)
      local number = f(q)[name]
      for _, leaf in ipairs(T.leaves.trainable(q, "test")) do number = number + 0 * leaf.tensor:sum() end
      return number
    end)(p)
    assert(value == values[name], ("%s: %.17g, alone %.17g"):format(name, values[name], value))
    local found = T.leaves.pair(grads[name], grad)
    for _, leaf in ipairs(T.leaves.list(grads[name])) do
      assert(leaf.tensor:equal(found[leaf.tensor]), ("%s by %s: %s, alone %s"):format(name, leaf.path,
        tostring(leaf.tensor),
        tostring(found[leaf.tensor])))
    end
  end
  return values, grads, names
end

-- ---- rollouts ------------------------------------------------------------------------------------------------------

local drivers = {
  ["a network of the engine"] = function(world)
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, acceleration = true }
    local controller = cq.Controller.mlp { hidden = { 5 }, seed = 3 }
    return controller:prepare(world, observer), function(net) return { observer = observer,
      controller = controller:with(net) } end
  end,
  ["a controller with a memory"] = function()
    local w = T.param(spread({ 2, 2 }, -0.8, 0.8))
    return w, function(net)
      return {
        observer = function(state) return state:center "trunk" end,
        controller = { start = function() return net:sum(1) * 0.1 end, act = function(_, seen, hidden)
          local after = (seen:matmul(net) + hidden):tanh()
          return after, after
        end },
      }
    end
  end,
  ["signals known before"] = function()
    return T.param(spread({ STEPS, 2 }, -0.8, 0.8)),
      function(net) return { controller = cq.Controller.open_loop(net) } end
  end,
}

-- numbers that feel all that a rollout gives, each something of its own
local function numbers_of(roll, p)
  local s = roll.state
  return {
    place = s:center("trunk"):sum(), speed = s:velocity("foot"):square():sum(), rough = roll.running
      and roll.running:max() or p.free * 3,
    kept = roll.record and roll.record:square():sum() or 1, effort = roll.effort and roll.effort:sum() or p.free,
    push = roll.contact and roll.contact.impulse:sum() or 2, stress = s:von_mises("foot"):sum(), free = p.free:square(),
    fixed = 4,
  }
end

local function parameters(world, net)
  return {
    net = net, young = T.param(9), velocity = T.param(spread({ world.particle_count, 2 }, -1.5, 0.3)),
    gravity = T.param { 0.2, -3 },
    friction = T.param(0.3), free = T.param(0.7),
  }
end

local function fields_of(world, driver, more)
  local net, drive = driver(world)
  local p = parameters(world, net)
  local function f(q)
    local fields = drive(q.net)
    fields.robot, fields.steps = world.robot:with { young = q.young, velocity = q.velocity }, STEPS
    fields.gravity, fields.friction = q.gravity, q.friction
    for name, value in pairs(more) do fields[name] = value end
    local roll = world:rollout(fields)
    return numbers_of(roll, q), roll
  end
  return f, p
end

describe("several numbers of a rollout", function()
  local extras = {
    { name = "its last state", memory = "1 GiB" },
    { name = "a small memory", memory = "120 KiB", running = function(s) return s:center("trunk")[2] end },
    { name = "everything", contact = true, running = function(s,
      u) return s:velocity("trunk")[1] + 0.01 * u:square():sum() end,
      record = function(s) return s:gather { 1, 5 } end, effort = function(u) return u:square():sum() end },
  }
  for name, driver in pairs(drivers) do
    for _, extra in ipairs(extras) do
      it(("with %s: %s"):format(name, extra.name), function()
        local world = scene.world(scene.robot())
        local more = {}
        for key, value in pairs(extra) do if key ~= "name" then more[key] = value end end
        local f, p = fields_of(world, driver, more)
        local plan = world:memory_plan { steps = STEPS, memory = extra.memory }
        assert.equal(extra.name == "a small memory", plan.recompute > 1)
        local values, grads, count = check_each(f, p)
        assert.equal(9, count)
        assert.equal(4, values.fixed)
        assert.equal(0, grads.fixed.young:item())
        assert.equal(0, grads.free.velocity:abs():max():item())
        assert.is_true(grads.place.young:item() ~= 0 and grads.speed.friction:item() ~= 0
          and grads.stress.gravity[1]:item() ~= 0)
      end)
    end
  end

  it("run it forward once, and look at no state twice", function()
    local world = scene.world(scene.robot())
    local seen = 0
    local f, p = fields_of(world, drivers["signals known before"], { on_step = function() seen = seen + 1 end })
    local _, grads, roll = cq.values_and_grads(f)(p)
    assert.equal(STEPS + 1, seen)
    assert.equal(9, #T.leaves.sorted_keys(grads))
    assert.equal("cq.Rollout { 12 control steps, 1 scene }", tostring(roll))
    -- the last state is there again, and nobody ran it
    assert.is_true(roll.state:center("trunk"):finite())
    assert.equal(STEPS + 1, seen)
  end)

  it("make no control step again where the memo keeps all of them", function()
    local world = scene.world(scene.robot())
    local f, p = fields_of(world, drivers["signals known before"], {})
    local tape = cq.tape.new()
    local numbers = cq.tape.with(tape, f, p)
    world:timers(true)
    for _, name in ipairs { "place", "speed", "stress", "place" } do tape:backward(numbers[name], nil, true) end
    local seconds = world:timers()
    assert.is_true(seconds.p2g_adj > 0)
    assert.equal(0, seconds.p2g)
  end)

  it("of a batch, and of two rollouts in one", function()
    local world = scene.world(scene.robot())
    local u = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    local function run(q, young)
      return world:rollout { steps = STEPS, batch = 2, robot = world.robot:with { young = young,
        velocity = q.velocity },
        controller = cq.Controller.open_loop(q.u) }
    end
    local p = { u = u, young = T.param(9), velocity = T.param(spread({ world.particle_count, 2 }, -1.5, 0.3)) }
    check_each(function(q)
      local one, two = run(q, q.young), run(q, 8)
      local a, b = one.state:center("trunk"), two.state:center("trunk")
      return { one = a:sum(), two = b[1][2], both = (a * b):sum() }
    end, p)
  end)

  it("with walls that move", function()
    local world = scene.world(scene.robot())
    local p = { motion = T.param(spread({ STEPS, 1, 2 }, 0.01, 0.1)), velocity = T.param(spread({ world.particle_count,
      2 }, -1.5, 0.3)) }
    local _, grads = check_each(function(q)
      local roll = world:rollout { steps = STEPS, robot = world.robot:with { velocity = q.velocity },
        wall_velocity = q.motion, contact = true,
        running = function(state) return state:contact(1).normal end }
      return { x = roll.state:center("foot")[1], push = roll.running:sum(), all = roll.contact.tangential:sum() }
    end, p)
    assert.is_true(grads.x.motion:abs():max():item() > 0 and grads.push.motion:abs():max():item() > 0)
  end)

  it("have the slopes of differences, through contact", function()
    local world = scene.world(scene.robot())
    local f, p = fields_of(world, drivers["a network of the engine"], { contact = true })
    local _, grads = cq.values_and_grads(f)(p)
    for _, name in ipairs { "place", "push" } do
      for _, path in ipairs { "young", "gravity", "friction" } do
        local slope = derivative.slope(function(q) return (f(q)[name]) end, p, p[path])
        local analytic = derivative.along(grads[name][path], p[path])
        assert(math.abs(analytic - slope) < 1e-7 * math.max(math.abs(slope), 1e-3),
          ("%s by %s: %.12g, differences %.12g"):format(name,
          path, analytic, slope))
      end
    end
  end)
end)

-- ---- functions of tensors ------------------------------------------------------------------------------------------

describe("cq.values_and_grads", function()
  local p = { x = T.param { 1, 2 }, y = T.param(4), note = "kept" }

  it("gives values and gradients by name, and what else f gives", function()
    local values, grads, extra = cq.values_and_grads(function(q)
      return { square = q.x:square():sum(), line = 3 * q.y + q.x[1], five = 5, same = q.y }, "else"
    end)(p)
    assert.same({ square = 5, line = 13, five = 5, same = 4 }, values)
    assert.same({ 2, 4 }, grads.square.x:totable())
    assert.equal(0, grads.square.y:item())
    assert.same({ 1, 0 }, grads.line.x:totable())
    assert.equal(3, grads.line.y:item())
    assert.same({ 0, 0 }, grads.five.x:totable())
    assert.equal(1, grads.same.y:item())
    assert.equal("else", extra)
    assert.equal(0, #told)
    -- the parameters remember nothing
    assert.is_nil(p.x.grad)
  end)

  it("warns of a parameter that moves none of them", function()
    cq.values_and_grads(function(q) return { a = q.x:sum() + 0 * q.y, b = q.x[1] } end)(p)
    assert.equal(1, #told)
    assert.is_truthy(told[1]:find("the gradient of y is exactly zero everywhere", 1, true))
  end)

  it("refuses what is no table of numbers", function()
    local function refused(f) return sentence(function() cq.values_and_grads(f)(p) end) end
    assert.equal("cq.values_and_grads: f must give a table of named numbers, such as { objective = ..., height = ... }, got a cq.Tensor",
      refused(function(q) return q.x:sum() end))
    assert.equal("cq.values_and_grads: f gave an empty table; it must give at least one named number",
      refused(function() return {} end))
    assert.equal('"a" must be a tensor of one element, got shape {2}; use :sum() or :mean()',
      refused(function(q) return { a = q.x } end))
    assert.equal('"a" must be a tensor of one element, got true', refused(function() return { a = true } end))
    assert.equal('"a" is inf, which is no finite number', refused(function(q) return { a = q.y / 0 } end))
    assert.equal('"b" is nan, which is no finite number', refused(function(q) return { a = q.x:sum() + q.y,
      b = 0 / 0 } end))
    assert.equal('the gradient of "a" by y is inf at element 1, which is no finite number',
      refused(function(q) return { b = q.x:sum(), a = (q.y - 4):sqrt() } end))
    assert.equal("parameter y does not reach any of a, b: nothing computed from it is part of the result; use it, or leave it out of the "
      .. "parameters", refused(function(q) return { a = q.x:sum(), b = 2 } end))
    assert.is_truthy(sentence(function() cq.values_and_grads(3) end):find(
      "cq.values_and_grads: f must be a function, got 3", 1, true))
  end)
end)

describe("a tape that is kept", function()
  it("is kept by true, and nothing else", function()
    assert.equal("tape:backward: keep must be true or false, got 2", sentence(function()
      cq.tape.new():backward({}, nil, 2)
    end))
  end)

  it("is gone over again, and is empty after the last time", function()
    local x, tape = T.param { 1, 2 }, cq.tape.new()
    local a, b = cq.tape.with(tape, function() return x:square():sum(), x:prod() end)
    tape:backward(a, nil, true)
    assert.same({ 2, 4 }, x.grad:totable())
    x:zero_grad()
    tape:backward(b, 10, true)
    assert.same({ 20, 10 }, x.grad:totable())
    assert.is_true(a.requires_grad)
    x:zero_grad()
    tape:backward({ a, b }, { 1, 1 })
    assert.same({ 4, 5 }, x.grad:totable())
    assert.equal(0, tape.count)
    assert.is_false(a.requires_grad)
  end)
end)
