-- force actuators that are evaluated at every engine step: what they do, their gradients, records, batches, sentences.
local cq = require "cq"
local refuses = require("tests.sentence").refuses
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local scene = require "tests.scene"
local fails = require("tests.sentence").fails
local spread = require "tests.spread"

local STEPS = 6

-- springs of the trunk to a point, pulled by a signal
local function spring(every, signals)
  local out = { particles = "trunk", signals = signals or 1, every = every, stiffness = 0.02 }
  function out:force(u, x, v)
    local pull = u and (u.rank > 1 and u:unsqueeze(-1) or u) + 1 or 1
    return (T.tensor { 0.45, 0.3 } - x) * self.stiffness * pull - 0.002 * v
  end
  return out
end

local function world_of(actuators, dt, substeps)
  return cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = dt, substeps = substeps, gravity = { 0.3, -4 },
    precision = "float64", walls = cq.Boundary.box { kind = "friction", mu = 0.4 },
    scene.robot({ actuators = actuators }):at { 0.4, 0.127 } }
end

local function chamber() return cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 } end

local function signals(count) return T.param(spread({ STEPS, count }, -0.5, 0.8)) end

-- a number that sees costs on the way, contacts and the final state; p: u, stiffness, and what else the rollout takes
local function simulate(world, own, p, more)
  own.stiffness = p.stiffness
  local fields = { steps = STEPS, controller = cq.Controller.open_loop(p.u), contact = true,
    robot = p.young and world.robot:with { young = p.young }, wall_velocity = p.wall_velocity,
    running = function(s, u) return s:velocity("trunk"):sum() + 0.1 * u:square():sum() + s:contact(1).normal end }
  for key, value in pairs(more or {}) do fields[key] = value end
  return world:rollout(fields)
end

local function cost(roll)
  local s = roll.state
  return s:center("trunk"):dot(T.tensor { 1, 2 }) + s:velocity("foot"):sum() + roll.running:sum()
    + roll.contact.impulse:square():sum()
end

describe("a force actuator of every engine step", function()
  it("is that of every control step where these are the same, bit for bit", function()
    local function of(every)
      local own = spring(every)
      local world = world_of({ chamber(), own }, 2e-3, 1)
      return T.value_and_grad(function(p) return cost(simulate(world, own, p)) end) { u = signals(2),
        stiffness = T.param(0.02) }
    end
    local loss, grads = of "control_step"
    local again, same = of "engine_step"
    assert.equal(loss, again)
    assert.is_true(grads.u:equal(same.u) and grads.stiffness:equal(same.stiffness))
  end)

  it("does what control steps of one engine step each do", function()
    local stepped, held = spring "engine_step", spring()
    local substeps = 5
    local one = world_of({ stepped }, 5e-3, substeps)
    local many = world_of({ held }, 1e-3, 1)
    local u = signals(1)
    local a = one:rollout { steps = STEPS, controller = cq.Controller.open_loop(u), contact = true }
    local each = u:unsqueeze(2):expand { STEPS, substeps, 1 }:reshape { STEPS * substeps, 1 }
    local b = many:rollout { steps = STEPS * substeps, controller = cq.Controller.open_loop(each), contact = true }
    assert.is_true(a.state:positions():equal(b.state:positions()))
    local summed = b.contact.impulse:reshape { STEPS, substeps, #one.walls, 2 }:sum(2)
    assert.is_true(a.contact.impulse:close(summed, 1e-12, 1e-15))
    assert.equal(STEPS * 5e-3, a.state.time)
    local c = world_of({ held }, 5e-3, substeps)
      :rollout { steps = STEPS, controller = cq.Controller.open_loop(u) }
    assert.is_false(a.state:positions():close(c.state:positions(), 1e-9), "the force was held")
  end)

  it("has the gradients of signals, its own parameters, materials and walls", function()
    local own, held = spring "engine_step", spring(nil, 0)
    local world = world_of({ chamber(), own, held }, 4e-3, 4)
    derivative.check(function(p) return cost(simulate(world, own, p)) end, {
      u = signals(2), stiffness = T.param(0.02), young = T.param(spread({ world.particle_count }, 7, 12)),
      wall_velocity = T.param(spread({ STEPS, #world.walls, 2 }, 0.01, 0.02)),
    }, 1e-6)
  end)

  it("leaves actuators that are held as they are", function()
    local function of(every)
      local own, nothing = spring(), { particles = "foot", signals = 0, every = every }
      function nothing:force(_, x) return x * 0 end
      local world = world_of({ own, nothing }, 4e-3, 4)
      return T.value_and_grad(function(p) return cost(simulate(world, own, p)) end) { u = signals(1),
        stiffness = T.param(0.02) }
    end
    local loss, grads = of "control_step"
    local again, same = of "engine_step"
    assert.is_true(math.abs(loss - again) < 1e-12)
    assert.is_true(grads.u:close(same.u, 1e-9, 1e-13) and grads.stiffness:close(same.stiffness, 1e-9, 1e-13))
  end)

  it("gives the same gradients from checkpoints, and in a batch", function()
    local own = spring "engine_step"
    local world = world_of({ chamber(), own }, 4e-3, 4)
    local function of(u, more)
      return T.value_and_grad(function(p) return cost(simulate(world, own, p, more)) end) { u = u,
        stiffness = T.param(0.02) }
    end
    local u = signals(2)
    local loss, grads = of(u)
    local plan = world:memory_plan { steps = STEPS }
    refuses(function() world:memory_plan { steps = 2 ^ 30 } end, "world:memory_plan: 1073741824 control steps of ",
      "at each of which forces act, are more than 2147483647")
    local memory = math.floor(3.5 * plan.slice_bytes + plan.record_bytes)
    assert.is_true(world:memory_plan { steps = STEPS, memory = memory }.recompute > 1)
    local tight, same = of(u, { memory = memory })
    assert.equal(loss, tight)
    assert.is_true(grads.u:equal(same.u) and grads.stiffness:equal(same.stiffness))
    local function batched(p, batch)
      own.stiffness = p.stiffness
      local roll = world:rollout { steps = STEPS, batch = batch, gravity = p.gravity,
        controller = cq.Controller.open_loop(p.u) }
      return roll.state:center("trunk"):sum(-1)
    end
    local gravity = T.param { { 0, -3 }, { 0.5, -4 } }
    local _, both = T.value_and_grad(function(p) return batched(p, 2):sum() end) { u = u, gravity = gravity,
      stiffness = T.param(0.02) }
    local stiffness = T.zeros {}
    for k = 1, 2 do
      local _, alone = T.value_and_grad(function(p) return batched(p, 1):sum() end) { u = u,
        gravity = T.param(gravity[k]:detach()), stiffness = T.param(0.02) }
      assert.is_true(alone.gravity:close(both.gravity[k], 1e-10, 1e-13))
      stiffness = stiffness + alone.stiffness
    end
    assert.is_true(stiffness:close(both.stiffness, 1e-10, 1e-13))
  end)

  it("says where it failed, and what every may be", function()
    local calls, own = 0, spring "engine_step"
    local world = world_of({ own }, 4e-3, 4)
    function own:force(_, x)
      calls = calls + 1
      return calls == 7 and x * (0 / 0) or x * 0
    end
    fails("force gave a number that is not finite (in force actuator 1, control step 2 of 6)",
      function() world:rollout { steps = STEPS } end)
    function own:force(_, x) return x * 1e6 end
    fails("the simulation failed at control step 1 (time ", function() world:rollout { steps = STEPS } end)
    fails("every of force actuator 1 must be \"control_step\" or \"engine_step\", got \"substep\"",
      function() scene.robot { actuators = { spring "substep" } } end)
  end)
end)
