-- gravity: accelerations that change from one control step to the next: that bodies feel them, and their gradients.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local mistake = require "tests.sentence"
local spread = require "tests.spread"

local STEPS = 12

local function robot()
  return cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.05 },
    material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 100 } }
end

local function world_of(fields)
  local all = { cells = { 16, 16 }, dx = 0.1, dt = 4e-3, substeps = 4, precision = "float64", threads = 2,
    robot():at { 0.5, 0.32 } }
  for key, value in pairs(fields or {}) do all[key] = value end
  return cq.World(all)
end

local function tilt(t) return { 3 * math.sin(40 * t), -9.8 * math.cos(40 * t) } end

local function table_of(world, steps)
  local rows = {}
  for i = 1, steps do rows[i] = tilt((i - 1) * world.control_dt) end
  return T.tensor(rows)
end

describe("gravity that changes", function()
  it("makes a free body as fast as its integral, as a tensor, a function and of the world", function()
    local world = world_of()
    local g = table_of(world, STEPS)
    local roll = world:rollout { steps = STEPS, gravity = g }
    local wanted = g:sum(1) * world.control_dt
    assert.is_true(roll.state:velocity(world.robot):close(wanted, 1e-12))
    local positions = roll.state:positions()
    assert.is_true(world:rollout({ steps = STEPS, gravity = tilt }).state:positions():equal(positions))
    local other = world_of { gravity = tilt }
    assert.is_true(other:rollout({ steps = STEPS }).state:positions():equal(positions))
    assert.is_true(other:with_robots(other.robot):rollout({ steps = STEPS }).state:positions():close(positions, 1e-14))
    -- one of all times, in the world and in a rollout
    local still = world_of { gravity = { 0, -9.8 } }
    local same = other:rollout({ steps = STEPS, gravity = { 0, -9.8 } }).state:positions()
    assert.is_true(still:rollout({ steps = STEPS }).state:positions():equal(same))
    assert.is_false(same:close(positions, 1e-6))
    assert.is_true(world:rollout({ steps = STEPS }).state:velocity(world.robot):abs():max():item() == 0)
  end)

  it("is that of each scene of a batch", function()
    local world = world_of()
    local g = T.stack({ table_of(world, STEPS), T.zeros { STEPS, 2 }, -table_of(world, STEPS) }, 1)
    local velocity = world:rollout({ steps = STEPS, batch = 3, gravity = g }).state:velocity(world.robot)
    assert.is_true(velocity:close(g:sum(2) * world.control_dt, 1e-12))
    local shared = world:rollout({ steps = STEPS, batch = 3, gravity = g[1] }).state:velocity(world.robot)
    assert.is_true(shared[2]:equal(velocity[1]))
    mistake.says(mistake.of(function() world:rollout { steps = 3, batch = 3, gravity = T.zeros { 3, 2 } } end),
      "may be of 3 control steps or of 3 scenes; give {3, 3, 2}")
  end)

  it("has gradients at every control step, through contact, checkpoints and batches", function()
    local floor = cq.Boundary.floor { at = 0.3, mu = 0.4 }
    local world = world_of { walls = floor }
    local function cost(fields)
      return function(q)
        fields.steps, fields.gravity = STEPS, q.gravity
        local roll = world:rollout(fields)
        return (roll.state:positions():square():sum() + roll.state:velocities():square():sum()) * 10
      end
    end
    derivative.check(cost {}, { gravity = T.param(spread({ STEPS, 2 }, -9, -3)) }, 1e-6)
    derivative.check(cost { batch = 2 }, { gravity = T.param(spread({ 2, STEPS, 2 }, -9, -3)) }, 1e-6)
    derivative.check(cost { batch = 2 }, { gravity = T.param(spread({ STEPS, 2 }, -9, -3)) }, 1e-6)
    -- the same to the last digit when control steps are made again on the way back
    local p = { gravity = T.param(spread({ STEPS, 2 }, -9, -3)) }
    local _, all = T.value_and_grad(cost {})(p)
    local _, few = T.value_and_grad(cost { memory = "200 KiB" })(p)
    assert.is_true(few.gravity:equal(all.gravity))
    assert.is_true(all.gravity:abs():min():item() > 0)
    -- one of all times has the sum, of this rollout's own steps
    local constant = T.param { -1, -5 }
    local _, sums = T.value_and_grad(cost {})({ gravity = constant })
    local _, each = T.value_and_grad(cost {})({ gravity = T.param(constant:detach():unsqueeze(1):expand { STEPS, 2 }) })
    assert.is_true(each.gravity:sum(1):close(sums.gravity, 1e-9))
  end)

  it("is in the potential energy, with its gradient, and in running costs", function()
    local world = world_of()
    local body = world.robot
    local mass = (body.density * body.volume):sum():item()
    local function potential(state, g) return -mass * (state:center(body) * g):sum():item() end
    local g, seen = table_of(world, STEPS), {}
    local roll = world:rollout { steps = STEPS, gravity = g, running = function(state)
      seen[state.step] = { state:energy(nil, "potential"):item(), potential(state, g[state.step]) }
      return 0
    end }
    assert.equal(STEPS, #seen)
    for _, pair in ipairs(seen) do assert.near(pair[2], pair[1], 1e-9) end
    assert.near(potential(roll:start(), g[1]), roll:start():energy(nil, "potential"):item(), 1e-9)
    derivative.check(function(q)
      local run = world:rollout { steps = STEPS, gravity = q.gravity, running = function(state)
        return state:energy(nil, "potential") * 1e-2
      end }
      return run.running:sum() + run.state:energy(nil, "potential") * 1e-2
    end, { gravity = T.param(spread({ STEPS, 2 }, -9, -3)) }, 1e-6)
  end)

  it("is that of the last step where a rollout without steps goes on", function()
    local function pull(time) return { 0, -1 - 100 * time } end
    local own = world_of { gravity = pull }
    local state = own:rollout({ steps = STEPS }).state
    local energy = state:energy(nil, "potential"):item()
    assert.near(energy, own:rollout({ from = state, steps = 0 }).state:energy(nil, "potential"):item(), 1e-12)
    assert.near(energy, own:rollout({ from = state, steps = 0, gravity = pull }).state:energy(nil, "potential"):item(),
      1e-12)
  end)

  it("acts in implicit steps, with gradients", function()
    local world = world_of { dt = 0.01, substeps = 1, integrator = cq.Implicit {} }
    local g = T.stack({ T.full({ 6 }, 2), spread({ 6 }, -9, -3) }, 2)
    local roll = world:rollout { steps = 6, gravity = g }
    assert.is_true(roll.state:velocity(world.robot):close(g:sum(1) * 0.01, 1e-9))
    derivative.check(function(q)
      return world:rollout({ steps = 6, gravity = q.gravity }).state:positions():square():sum()
    end, { gravity = T.param(g) }, 1e-5)
  end)

  it("is trained in an experiment", function()
    local world = world_of()
    local target = table_of(world, STEPS):sum(1) * world.control_dt
    local run = cq.Experiment {
      world = world, steps = STEPS, trainable = { gravity = T.param(T.zeros { STEPS, 2 }) },
      objective = function(state) return (state:velocity(world.robot) - target):square():sum() end,
    }
    local step = T.value_and_grad(function(q) return run:loss(run:rollout(q)) end)
    local loss, grad = step(run.params)
    assert.same({ STEPS, 2 }, grad.world.gravity:shape())
    assert.near(target:square():sum():item(), loss, 1e-12)
    local there = cq.Experiment { world = world, steps = STEPS,
      objective = function(state) return (state:velocity(world.robot) - target):square():sum() end }
    assert.near(0, there:evaluate({ gravity = tilt }).loss, 1e-20)
  end)

  it("is that of the start where no control step is made, also beside walls that move", function()
    local block = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, count = { 4, 4 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    local floor = cq.Boundary.floor { at = 0.1, motion = function(t) return { 0, 0.01 * math.sin(t) } end }
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, precision = "float64",
      gravity = function(t) return { 0, -4 - t } end, walls = { floor }, block:at { 0.4, 0.2 } }
    local function energy(fields)
      fields.steps = 0
      return world:rollout(fields).state:energy():item()
    end
    assert.near(4 * 0.01 * 0.25, energy {}, 1e-12)
    assert.equal(energy {}, energy { wall_velocity = function() error "nothing moves" end })
    assert.near(-0.01 * 0.25, energy { gravity = function(t) return { 0, 1 + t } end }, 1e-12)
    assert.equal(energy {}, world:rollout({ steps = 3 }):start():energy():item())
  end)

  it("is refused where it makes no sense", function()
    local world = world_of()
    local function says(part, fields)
      fields.steps = 4
      mistake.says(mistake.of(function() world:rollout(fields) end), part)
    end
    says("gravity must have the shape {2}, or {4, 2} of control steps, got {3, 2}", { gravity = T.zeros { 3, 2 } })
    says("world:rollout: gravity must give {2}, got {3}", { gravity = function() return { 0, 0, 1 } end })
    says("gravity gave a number that is not finite at time 0.004", { gravity = function(t)
      return { 0, t > 0 and 0 / 0 or 1 }
    end })
    mistake.says(mistake.of(function() world_of { gravity = function() return 3 end } end),
      "cq.World: gravity must give {2}, got {}")
  end)
end)
