-- Gradients over long times, against plain restatements. Those whose adjoint falls with time: control steps that are
-- rollouts of their own, each of which begins with the state that the one before ended with, and takes a gradient to it
-- that was multiplied by exp(-dt / decay). Windows: rollouts that go on from detached states.
local cq = require "cq"
local T = require "cq.tensor"
local message = require "cq.base.message"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local sentence = require("tests.sentence").of
local spread = require "tests.spread"

local STEPS, DECAY, DT = 9, 0.02, 6e-3
local names = { "position", "velocity", "affine", "deformation" }

local function world_of(options)
  return scene.world(scene.robot { actuators = {
    cq.Actuator.pressure { groups = "foot", axis = "y", max = 2 },
    cq.Actuator.muscle { groups = "trunk", axis = "y", max = 1 },
  } }, options)
end

local function cost(state) return state:velocity("trunk")[1] + state:center("foot"):square():sum() end

-- a value whose gradient is multiplied
local function discounted(value, factor) return value * factor + (value * (1 - factor)):detach() end

-- the sum of costs over control steps by their definition. policy(state, hidden): signals, hidden
local function by_hand(world, p, policy)
  local factor, total = math.exp(-DT / DECAY), T.zeros {}
  local start, hidden = { velocity = p.velocity }, nil
  for i = 1, STEPS do
    local robot = world.robot:with(start):with { young = p.young }
    local before = world:rollout { robot = robot, steps = 0 }
    local u
    u, hidden = policy(before.state, hidden, i)
    local roll = world:rollout { robot = robot, steps = 1, controller = cq.Controller.open_loop(u:reshape { 1, 2 }) }
    total = total + cost(roll.state)
    for _, name in ipairs(names) do start[name] = discounted(roll.state:gather(nil, name), factor) end
    hidden = hidden and discounted(hidden, factor)
  end
  return total
end

local function near(a, b, tolerance)
  for k, leaf in ipairs(T.leaves.list(a)) do
    local other = T.leaves.list(b)[k].tensor
    local off, size = (leaf.tensor - other):norm():item(), other:norm():item()
    assert(size > 0, leaf.path .. " has no gradient")
    assert(off <= (tolerance or 1e-10) * size, ("%s is off by %.1e of %.1e"):format(leaf.path, off, size))
  end
end

local function params_of(world)
  local n = world.particle_count
  return { young = T.param(spread({ n }, 7, 12)), velocity = T.param(spread({ n, 2 }, -0.3, 0.1)) }
end

local function gradients(f, p)
  local _, grads = T.value_and_grad(f)(p)
  return grads
end

-- Holds gradients of signals and of the first velocities against those of the costs of each control step alone, which
-- are exact: of a cost k control steps later, the k-th power of the factor. With little memory too.
local function exact_by_cost(world)
  local p = { u = T.param(spread({ STEPS, 1 }, -0.8, 0.8)),
    velocity = T.param(spread({ world.particle_count, 2 }, -0.3, 0.1)) }
  local factor, plan = math.exp(-DT / DECAY), world:memory_plan { steps = STEPS }
  local function costs(q, decay, memory)
    local running = world:rollout { robot = world.robot:with { velocity = q.velocity }, steps = STEPS,
      controller = cq.Controller.open_loop(q.u), gradient = { decay = decay }, contact = true, memory = memory,
      running = function(state) return cost(state) + state:contact(1).normal:sum() end }.running
    local out = { sum = running:sum() }
    for k = 1, STEPS do out[k] = running[k] end
    return out
  end
  local function every(decay, memory)
    return select(2, T.values_and_grads(function(q) return costs(q, decay, memory) end)(p))
  end
  local exact, wanted = every(), { u = T.zeros { STEPS, 1 }, velocity = T.zeros(p.velocity:shape()) }
  for k = 1, STEPS do
    local falls = {}
    for i = 1, STEPS do falls[i] = { i <= k and factor ^ (k - i) or 0 } end
    wanted.u = wanted.u + exact[k].u * T.tensor(falls)
    wanted.velocity = wanted.velocity + exact[k].velocity * factor ^ (k - 1)
  end
  near(every(DECAY).sum, wanted)
  near(every(DECAY, math.floor(2 * plan.slice_bytes + 2 * plan.record_bytes)).sum, wanted)
end

describe("gradient.decay", function()
  it("multiplies the adjoint of each state by exp(-dt / decay): signals known before", function()
    local world = world_of()
    local p = params_of(world)
    p.u = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    local function ours(decay, more)
      return gradients(function(q)
        local fields = { robot = world.robot:with { young = q.young, velocity = q.velocity }, steps = STEPS,
          controller = cq.Controller.open_loop(q.u), running = cost, gradient = { decay = decay } }
        for key, value in pairs(more or {}) do fields[key] = value end
        return world:rollout(fields).running:sum()
      end, p)
    end
    local wanted = gradients(function(q)
      return by_hand(world, q, function(_, _, i) return q.u[i] end)
    end, p)
    near(ours(DECAY), wanted)
    near(ours(1e30), ours(nil), 0)
    local exact, decayed = ours(nil).u, ours(DECAY).u
    assert.is_true((decayed - exact):norm():item() > 0.1 * exact:norm():item())
    -- the last signals have costs at once alone
    near({ decayed[STEPS] }, { exact[STEPS] }, 0)
    local plan = world:memory_plan { steps = STEPS }
    near(ours(DECAY, { memory = math.floor(3.5 * plan.slice_bytes + plan.record_bytes) }), ours(DECAY), 0)
  end)

  it("does so with a controller that sees states, and for what it carries along", function()
    local world = world_of()
    local p = params_of(world)
    p.w, p.carry = T.param(spread({ 4, 2 }, -0.5, 0.5)), T.param(spread({ 2 }, 0.3, 0.7))
    local function see(state) return T.concat({ state:center("trunk"), state:velocity("foot") }, 1) end
    local function act(q, seen, hidden)
      local u = (seen:reshape { 1, 4 }:matmul(q.w):reshape { 2 } + (hidden or 0) * q.carry):tanh()
      return u, u
    end
    local ours = gradients(function(q)
      return world:rollout { robot = world.robot:with { young = q.young, velocity = q.velocity }, steps = STEPS,
        observer = see, running = cost, gradient = { decay = DECAY },
        controller = { start = function() return T.zeros { 2 } end,
          act = function(_, seen, hidden) return act(q, seen, hidden) end } }.running:sum()
    end, p)
    near(ours, gradients(function(q)
      return by_hand(world, q, function(state, hidden) return act(q, see(state), hidden) end)
    end, p))
  end)

  it("is the same for any number of threads, in a batch, and where forces are evaluated at every engine step", function()
    local function of(options, every, is_steady)
      local own = { particles = "trunk", signals = 0, every = every }
      function own.force(_, _, x, v)
        return is_steady and T.full(x:shape(), 2e-3) or (T.tensor { 0.45, 0.3 } - x) * 0.02 - 0.002 * v
      end
      local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = DT, substeps = 3, gravity = { 0.3, -4 },
        precision = "float64", threads = options.threads,
        scene.robot({ actuators = { own } }):at { 0.4, 0.127 } }
      return gradients(function(q)
        local state = world:rollout { robot = world.robot:with { velocity = q.velocity }, steps = STEPS,
          batch = options.batch, gradient = { decay = DECAY, clip = options.clip } }.state
        -- the adjoint of places grows within a control step
        return is_steady and state:positions():sum() or state:velocity("trunk"):sum()
      end, { velocity = T.param(spread({ world.particle_count, 2 }, -0.3, 0.1)) })
    end
    near(of({ threads = 2 }), of { threads = 1 }, 0)
    near(of { batch = 3 }, { (of { batch = 1 }).velocity * 3 })
    -- between control steps alone, as those of a force that is the same at each engine step show; so does a clip
    for _, clip in ipairs { math.huge, 2 } do
      near(of({ clip = clip }, "engine_step", true), of({ clip = clip }, nil, true))
    end
    assert.is_true((of({ clip = 2 }, nil, true).velocity - of({}, nil, true).velocity):norm():item() > 1e-3)
  end)

  it("gives each cost's exact gradient, less by the time that lies between, whatever state bodies have", function()
    local actuators = { cq.Actuator.pressure { groups = "foot", axis = "y", max = 2 } }
    local base = cq.Material.neo_hookean { young = 10, poisson = 0.3 }
    local branched = cq.Material.viscoelastic { base = base, modulus = { 2 }, time = { 0.02 } }
    local snow = cq.Material.snow { young = 10, poisson = 0.2 }
    local worlds = {
      branched = scene.world(scene.robot { actuators = actuators, material = { foot = branched, trunk = branched } }),
      flowing = scene.world(scene.robot { actuators = actuators, material = { foot = snow, trunk = snow } }),
      implicit = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = DT, substeps = 1, gravity = { 0.3, -4 },
        precision = "float64", integrator = cq.Implicit { tolerance = 1e-12, adjoint_tolerance = 1e-13 },
        walls = cq.Boundary.box { kind = "sticky" }, scene.robot { actuators = actuators }:at { 0.4, 0.127 } },
    }
    for _, world in pairs(worlds) do exact_by_cost(world) end
  end)

  it("may be so short that each control step stands alone, or no decay at all", function()
    local world = world_of()
    local u = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    local function of(decay, sum)
      return gradients(function(q)
        local roll = world:rollout { steps = STEPS, controller = cq.Controller.open_loop(q), running = cost,
          gradient = { decay = decay } }
        return sum(roll.running)
      end, u)
    end
    local function all(costs) return costs:sum() end
    near({ of(math.huge, all) }, { of(nil, all) }, 0)
    local alone = of(1e-9, all)
    for k = 1, STEPS do near({ alone[k] }, { of(nil, function(costs) return costs[k] end)[k] }) end
  end)

  it("is what cq.check_gradient names where differences disagree", function()
    local world = world_of()
    local function check(decay)
      return cq.check_gradient(function(u)
        return world:rollout { steps = STEPS, controller = cq.Controller.open_loop(u), running = cost,
          gradient = { decay = decay } }.running:sum()
      end, T.param(spread({ STEPS, 2 }, -0.8, 0.8)), { directions = 1, steps = { 1e-4, 1e-5, 1e-6 } })
    end
    local decayed, exact = check(DECAY), check(nil)
    assert.same({ false, "altered" }, { decayed.ok, decayed.directions[1].verdict })
    assert.matches("altered: with gradient of world:rollout the gradient is not that of the objective",
      tostring(decayed))
    assert.same({ true, "right" }, { exact.ok, exact.directions[1].verdict })
  end)

  it("is warned of where it cannot serve: costs of the end alone, and optimizers that hold gradients to values", function()
    local world, warn = world_of(), message.warn
    local function told(fields)
      local out = {}
      local run = cq.Experiment { world = world, steps = 3, gradient = { decay = fields.decay },
        controller = cq.Controller.open_loop(T.param(spread({ 3, 2 }, -0.8, 0.8))), objective = fields.objective,
        optimizer = fields.optimizer or cq.Optimizer.gradient_descent { rate = 1e-3 } }
      message.warn = function(format, ...) out[#out + 1] = format:format(...) end
      local fine, problem = pcall(run.optimize, run, { iterations = 1, folder = scratch.open() })
      message.warn = warn
      scratch.close()
      assert(fine, problem)
      return out
    end
    local final, running = { terminal = cost }, { terminal = cost, running = cost }
    assert.matches("^run:optimize: gradient.decay is 0.01, and the objective is of the last state alone",
      told({ decay = 0.01, objective = final })[1])
    for _, fields in ipairs { { objective = final }, { decay = 0.1, objective = final },
      { decay = 0.01, objective = running } } do
      assert.same({}, told(fields))
    end
    local own = { kind = "own", chooses_points = true }
    message.warn = function(format, ...) own.told = format:format(...) end
    require("cq.experiment.gradient").warn({ gradient = { decay = 0.01 }, steps = 3, world = world, objective = running,
      optimizer = own }, { options = {} })
    message.warn = warn
    assert.matches("^run:optimize: with gradient.decay gradients are not those of the objective, which own holds", own.told)
  end)

  it("is a number above 0, of experiments too, also as an option of a stage", function()
    local world = world_of()
    for _, wrong in ipairs { 0, -1, 0 / 0, "long", {}, T.param { 1 } } do
      assert.matches("world:rollout: gradient: decay must be", sentence(function()
        world:rollout { steps = 1, gradient = { decay = wrong } }
      end))
    end
    local function train(fields)
      local run = cq.Experiment { world = world, steps = 3,
        controller = cq.Controller.open_loop(T.param(spread({ 3, 2 }, -0.8, 0.8))),
        objective = { running = cost }, optimizer = cq.Optimizer.gradient_descent { rate = 1 },
        gradient = fields.gradient, scenes = fields.scenes }
      run:optimize { iterations = 2, folder = scratch.open(), options = fields.options }
      scratch.close()
      return run.params
    end
    local exact, decayed = train {}, train { gradient = { decay = DECAY } }
    assert.is_true((T.leaves.list(exact)[1].tensor - T.leaves.list(decayed)[1].tensor):norm():item() > 0)
    near(train { options = { gradient_decay = function() return DECAY end } }, decayed, 0)
    near(train { options = { gradient_decay = function() return math.huge end } }, exact, 0)
    local scenes = { count = 2, each = function() return {} end }
    near(train { gradient = { decay = DECAY }, scenes = scenes }, decayed)
    near(train { options = { gradient_decay = function() return DECAY end }, scenes = scenes }, decayed)
  end)
end)

describe("gradient.window", function()
  it("cuts the adjoint as rollouts do that go on from detached states, whatever controllers remember", function()
    local world, STEP = world_of(), 4
    local p = params_of(world)
    p.w, p.carry = T.param(spread({ 4, 2 }, -0.5, 0.5)), T.param(spread({ 2 }, 0.3, 0.7))
    local function see(state) return T.concat({ state:center("trunk"), state:velocity("foot") }, 1) end
    local function policy(q)
      return { start = function() return T.zeros { 2 } end, act = function(_, seen, hidden)
        local u = (seen:reshape { 1, 4 }:matmul(q.w):reshape { 2 } + hidden * q.carry):tanh()
        return u, u
      end }
    end
    local function ours(q, window, memory)
      return world:rollout { robot = world.robot:with { young = q.young, velocity = q.velocity }, steps = STEPS,
        observer = see, controller = policy(q), running = cost, memory = memory,
        gradient = { window = window } }.running:sum()
    end
    local function plain(q)
      local controller, sum, state = policy(q), T.zeros {}, nil
      for first = 0, STEPS - 1, STEP do
        local roll = world:rollout { steps = math.min(STEP, STEPS - first), observer = see, controller = controller,
          running = cost, from = state and state:detach(),
          robot = world.robot:with { young = q.young, velocity = state and T.as_tensor(q.velocity) or q.velocity } }
        sum, state = sum + roll.running:sum(), roll.state
      end
      return sum
    end
    local wanted = gradients(plain, p)
    near(gradients(function(q) return ours(q, STEP * DT) end, p), wanted)
    local plan = world:memory_plan { steps = STEPS }
    local little = math.floor(3.5 * plan.slice_bytes + plan.record_bytes)
    near(gradients(function(q) return ours(q, STEP * DT, little) end, p),
      gradients(function(q) return ours(q, STEP * DT) end, p), 0)
    local exact = gradients(function(q) return ours(q, nil) end, p)
    near(gradients(function(q) return ours(q, STEPS * DT) end, p), exact, 0)
    near(gradients(function(q) return ours(q, math.huge) end, p), exact, 0)
    near(gradients(function(q) return ours(q, 1e9 * DT) end, p), exact, 0)
    near(gradients(function(q) return ours(q, 1e12 * DT) end, p), exact, 0)
    assert.is_true((exact.w - wanted.w):norm():item() > 1e-3 * exact.w:norm():item())
  end)

  it("is a multiple of the control step, also of experiments and as an option of a stage", function()
    local world = world_of()
    for _, wrong in ipairs { DT / 3, 1.5 * DT } do
      assert.matches("window must be a multiple of the control step 0.006", sentence(function()
        world:rollout { steps = 1, gradient = { window = wrong } }
      end))
      assert.matches("cq.Experiment: gradient: window must be a multiple", sentence(function()
        cq.Experiment { world = world, steps = 1, objective = cost, gradient = { window = wrong } }
      end))
    end
    local function train(fields, stage)
      local run = cq.Experiment { world = world, steps = STEPS, gradient = fields,
        controller = cq.Controller.open_loop(T.param(spread({ STEPS, 2 }, -0.8, 0.8))),
        objective = { running = cost }, optimizer = cq.Optimizer.gradient_descent { rate = 1 } }
      run:optimize { iterations = 2, folder = scratch.open(), options = stage }
      scratch.close()
      return run.params
    end
    local cut = train { window = 3 * DT }
    near(train(nil, { gradient_window = 3 * DT }), cut, 0)
    assert.is_true((T.leaves.list(cut)[1].tensor - T.leaves.list(train(nil))[1].tensor):norm():item() > 0)
    assert.matches("options: window must be a multiple", sentence(function()
      train(nil, { gradient_window = DT / 3 })
    end))
  end)
end)

-- the cost of the last state alone, by signals {steps, 2} or {batch, steps, 2}; and the rollout
local function final(world, u, fields, batch)
  local roll
  local grads = gradients(function(q)
    roll = world:rollout { steps = STEPS, batch = batch, controller = cq.Controller.open_loop(q), gradient = fields }
    return roll.state:velocity("trunk"):slice(1, 1, -1):sum() + roll.state:center("foot"):square():sum()
  end, u)
  return grads, roll:adjoint_norms(), roll
end

describe("gradient.clip", function()
  it("makes the adjoint of each scene no longer than that, and keeps its direction", function()
    local world = world_of()
    local u = T.param(spread({ 3, STEPS, 2 }, -0.8, 0.8))
    local exact, norms = final(world, u, nil, 3)
    local most = norms:mean():item()
    local clipped, told = final(world, u, { clip = most }, 3)
    assert.is_true(norms:max():item() > 1.01 * most and norms:min():item() < 0.99 * most)
    for k = 1, 3 do
      local left = 1                               -- of the adjoint, after all that has been cut off
      for i = STEPS, 1, -1 do
        local norm = norms:get(i, k) * left
        assert(math.abs(told:get(i, k) - norm) <= 1e-10 * norm)
        left = left * math.min(1, most / norm)
        near({ clipped[k][i] }, { exact[k][i] * left })
      end
    end
    near({ (final(world, u, { clip = 2 * norms:max():item() }, 3)) }, { exact }, 0)
    near({ (final(world, u, { clip = math.huge }, 3)) }, { exact }, 0)
    assert.matches("gradient: clip must be", sentence(function() final(world, u, { clip = 0 }, 3) end))
    assert.matches("gradient: unknown field clipp", sentence(function() final(world, u, { clipp = 1 }, 3) end))
  end)
end)

describe("rollout:adjoint_norms", function()
  it("are those of the derivative by the state after each control step", function()
    local world = world_of()
    local u = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    local _, norms, roll = final(world, u)
    for _, at in ipairs { 2, 6, STEPS - 1 } do
      local start = {}
      local before = world:rollout { steps = at, controller = cq.Controller.open_loop(u:slice(1, at)) }
      for _, name in ipairs(names) do start[name] = T.param(before.state:gather(nil, name)) end
      local after = gradients(function(q)
        local rest = world:rollout { robot = world.robot:with(q), steps = STEPS - at,
          controller = cq.Controller.open_loop(u:slice(at + 1, STEPS):detach()) }
        return rest.state:velocity("trunk"):slice(1, 1, -1):sum() + rest.state:center("foot"):square():sum()
      end, start)
      local square = 0
      for _, name in ipairs(names) do square = square + after[name]:square():sum():item() end
      assert(math.abs(norms:get(at) - math.sqrt(square)) < 1e-9 * norms:get(at),
        ("%g, not %g"):format(norms:get(at), math.sqrt(square)))
    end
    roll:release()
    assert.matches("this rollout was released", sentence(roll.adjoint_norms, roll))
    assert.matches("no backward pass has gone", sentence(function() world:rollout { steps = 1 }:adjoint_norms() end))
  end)

  it("are columns of the history, with their growth, which is warned of", function()
    local growth = require("cq.experiment.gradient").growth
    local norms = {}
    for k = 1, 50 do norms[k] = 3 * math.exp(-7 * 0.01 * k) end
    assert(math.abs(growth(norms, 0.01) - 7) < 1e-9)
    for k = 1, 50 do norms[k] = 51 - k end               -- costs that add up
    assert.is_true(math.exp(growth(norms, 0.01) * 0.5) < 30)
    assert.equal(0, growth({ 0, 0, 1 }, 0.01))
    local world, warn, told = world_of(), message.warn, {}
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local function train(fields)
      local run = cq.Experiment { world = world, steps = STEPS, scenes = fields.scenes,
        controller = cq.Controller.open_loop(T.param(spread({ STEPS, 2 }, -0.8, 0.8))),
        objective = { running = cost }, optimizer = cq.Optimizer.gradient_descent { rate = 1e-3 } }
      local folder = scratch.open()
      run:optimize { iterations = 2, folder = folder }
      local rows = cq.Run.read_history(folder)
      scratch.close()
      return rows
    end
    local one, two = train {}, train { scenes = { count = 2, each = function() return {} end } }
    message.warn = warn
    assert.same({}, told)
    assert.is_true(one[2].adjoint > 0 and one[2].adjoint_growth ~= 0)
    assert.same({ one[1].adjoint, one[1].adjoint_growth }, { two[1].adjoint, two[1].adjoint_growth })
    local found = require("cq.experiment.gradient").new_growth()
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local run, most = { steps = 100, world = world }, 2 ^ (world.precision == "float64" and 52 or 23)
    local function train_on(first, last, factor)
      for k = first, last do found:warn(run, k, { adjoint_growth = factor and math.log(factor) / (100 * DT) }) end
    end
    train_on(1, 20, 0.9 * most)
    train_on(21, 25, 1e3 * most)                       -- not the median yet, which is between the two
    train_on(26, 26, nil)                              -- nothing is known
    assert.equal(1, #told)
    train_on(27, 40, 1e3 * most)
    message.warn = warn
    assert.equal(1, #told)
    assert.matches("^run:optimize: iteration 25: from the end to the start, over 0.6, the gradient of the state grows by "
      .. "a factor of %de%+%d%d, the median of 10 iterations. That is more than " .. world.precision, told[1])
    assert.matches("gradient = { decay = 0.075 }", told[1])
  end)
end)
