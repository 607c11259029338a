-- passive: options.passive_weight of a stage, which takes from the objective what a body gains without any signal.
local cq = require "cq"
local T = require "cq.tensor"
local mistake = require "tests.sentence"
local scratch = require "tests.scratch"

-- a block on the floor whose upper left is dense: its centre moves to the right as it sinks
local function block()
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 0.1, 0.2 }, spacing = 0.02 },
    material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
    actuators = cq.Actuator.isotropic { count = 2, max = 1e4 },
  }
  local world = cq.World {
    cells = { 20, 20 }, dx = 0.04, gravity = { 0, -9.8 }, dt = 2e-3, substeps = 8, precision = "float64", threads = 1,
    walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 }, robot:at { 0.24, 0.08 },
  }
  local design = cq.Topology { world = world, duration = 0.1, connected = true, pulses = { interval = 4e-3 } }
  local density, position = T.zeros { robot.particle_count }, design.robot.position
  for p = 1, robot.particle_count do
    density:set(0.3 * ((0.29 - position:get(p, 1)) / 0.05 + (position:get(p, 2) - 0.18) / 0.1), p)
  end
  design.params.density:copy_from(density)
  return { world = world, duration = 0.1, design = design,
    objective = { running = function(state) return -world.control_dt * state:velocity(robot)[1] end } }
end

describe("options.passive_weight", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  -- loss and gradients by density at a point; a step of gradient descent is the gradient times its rate
  local function first(weight, density)
    local run = cq.Experiment(block)
    if density then run.params.design.density:copy_from(density) end
    local before = T.leaves.snapshot(run.params).design.density
    local result = run:optimize { folder = folder .. "/run", resume = false, iterations = 1, train = { "design" },
      optimizer = cq.Optimizer.gradient_descent { rate = 1e-6 }, options = { passive_weight = weight } }
    return result.loss, (before - run.params.design.density:detach()) * 1e6, before
  end

  -- the loss of the body without a pulse, by the experiment alone
  local function passive(density)
    local run = cq.Experiment(block)
    local p = run.params.design
    local shape = p.sign:shape()
    return run:evaluate { params = { design = { density = density or p.density, layout = p.layout,
      sign = T.zeros(shape), magnitude = T.full(shape, -1) } } }.loss
  end

  it("adds what the body gains without a signal beyond the solid block", function()
    local plain, weighed = first(0), first(0.5)
    local gain = passive(T.ones { 50 }) - passive()
    assert.is_true(gain > 1e-4)
    assert.near(0.5 * gain, weighed - plain, 1e-12)
    assert.equal(plain, (first(nil)))
    -- the solid block gains nothing beyond itself
    local solid = T.ones { 50 }
    assert.equal((first(0, solid)), (first(1, solid)))
  end)

  it("has the gradient of central differences", function()
    local _, gradient, density = first(2)
    local direction = cq.random { seed = 3 }:normal { 50 }
    local function along(h) return (first(2, density + direction * h)) end
    local slope = (gradient * direction):sum():item()
    -- small steps: nodes that touch the floor or leave it are kinks
    assert.near(1, slope / ((along(1e-6) - along(-1e-6)) / 2e-6), 1e-7)
    local _, other = first(0)
    assert.is_true(math.abs(slope - (other * direction):sum():item()) > 0.1 * math.abs(slope))
  end)

  it("has the gradient of what is trained beside the design, by which the solid block differs too", function()
    local numbers = require "cq.experiment.numbers"
    local def = block()
    def.trainable = { damping = { init = 1 }, gravity = { init = { 0.1, -9 } } }
    local run = cq.Experiment(def)
    run.passive_weight, run.block_losses = 2, {}
    local p = run.params
    local function cost(q) return numbers(run, q).passive_cost end
    assert.is_true(cost(p):item() > 1e-4)
    local found = cq.check_gradient(function(q) return numbers(run, q).objective end, p, { directions = 1, each = true,
      steps = { 1e-4, 1e-5, 1e-6 } })
    for _, direction in ipairs(found.directions) do assert.equal("right", direction.verdict, direction.name) end
    assert.is_true(#found.directions > 4)
  end)

  it("keeps a body from falling for its way", function()
    local function gained(weight)
      local run = cq.Experiment(block)
      run:optimize { folder = folder .. "/run", resume = false, iterations = 30,
        optimizer = cq.Optimizer.adam { rate = 0.05 }, options = { passive_weight = weight } }
      return -passive(run.best.params.design.density), -run:evaluate().loss
    end
    local falling, way = gained(0)
    local still, walked = gained(1)
    assert.is_true(falling > 0.5 * way)
    assert.is_true(still < 0.2 * falling)
    assert.is_true(walked > 5 * still)
  end)

  it("is a column of its own, and no part of the best loss", function()
    for _, scenes in ipairs { false, { count = 2, each = function(k) return { gravity = { 0, -9.8 * k } } end } } do
      local run = cq.Experiment(function()
        local def = block()
        def.scenes = scenes or nil
        return def
      end)
      run:optimize { folder = folder .. "/run", resume = false, iterations = 3,
        optimizer = cq.Optimizer.adam { rate = 0.01 }, options = { passive_weight = 0.5 } }
      local row = cq.Run.read_history(folder .. "/run")[run.best.iteration]
      assert.is_true(row.passive_cost > 1e-4)
      assert.equal(row.passive_cost, run.best.passive_cost)
      assert.near(row.loss, run.best.loss + row.passive_cost, 1e-15)
      assert.near(run.best.loss, run:evaluate().loss, 1e-15)
      assert.near(run.best.loss, cq.load(folder .. "/run").result.loss, 1e-15)
    end
  end)

  it("holds the block's loss for as long as its world is the same", function()
    local def = block()
    local run = cq.Experiment(def)
    local losses = {}
    for k, gravity in ipairs { { 0, -9.8 }, { 0, -4.9 } } do
      run:optimize { folder = folder .. "/run" .. k, resume = false, iterations = 1, train = { "design.layout" },
        optimizer = cq.Optimizer.gradient_descent { rate = 1e-9 }, options = { passive_weight = 1, gravity = gravity } }
      losses[k] = run.best.passive_cost
    end
    local both = cq.Experiment(block())
    both:optimize { folder = folder .. "/both", resume = false, iterations = 2, train = { "design.layout" },
      optimizer = cq.Optimizer.gradient_descent { rate = 1e-9 },
      options = { passive_weight = 1, gravity = function(i) return { 0, i == 1 and -9.8 or -4.9 } end } }
    for k, row in ipairs(cq.Run.read_history(folder .. "/both")) do assert.near(losses[k], row.passive_cost, 1e-12) end
    assert.is_true(math.abs(losses[1] - losses[2]) > 1e-4)
  end)

  it("is refused where there is no design, and below 0", function()
    local def = block()
    local run = cq.Experiment { world = def.world, duration = 0.1, objective = def.objective,
      trainable = { young = { min = 5e4, max = 2e5 } }, optimizer = cq.Optimizer.adam { rate = 0.01 } }
    mistake.says(mistake.of(function()
      run:optimize { folder = folder .. "/run", iterations = 1, options = { passive_weight = 1 } }
    end), "options.passive_weight needs an experiment with a design")
    mistake.says(mistake.of(function()
      cq.Experiment(block):optimize { folder = folder .. "/run", iterations = 1, resume = false,
        optimizer = cq.Optimizer.adam { rate = 0.01 }, options = { passive_weight = -1 } }
    end), "options.passive_weight must be a finite number at least 0")
  end)
end)
