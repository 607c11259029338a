-- smoothing: gradients as means over copies of the parameters.
local cq = require "cq"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local process = require "tests.process"

local robot = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.05 },
  material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 } }
local world = cq.World { cells = { 30, 20 }, dx = 0.05, dt = 0.1, substeps = 10, precision = "float64",
  robot:at { 0.7, 0.4 } }

describe("run:optimize { smoothing }", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  -- a valley with its ground at a velocity of 0.15, under waves that slope the other way where it starts
  local function experiment(most)
    local start = world.robot.position:slice(1, 1, 2):mean():item()
    return cq.Experiment { world = world, steps = 10, weight = "particle",
      trainable = { velocity = { init = { 0, 0 }, max = most } },
      objective = function(state)
        local way = state:center(robot)[1] - start
        return 0.05 * (40 * way):sin() + (way - 0.15):square()
      end,
      optimizer = cq.Optimizer.gradient_descent { rate = 0.2 } }
  end

  local function optimize(run, iterations, smoothing, resume)
    run:optimize { iterations = iterations, folder = folder, resume = resume or false, smoothing = smoothing }
    return run.params.robot.velocity:get(1)
  end

  it("goes down the blurred landscape, and tells the loss of the sharp one", function()
    assert.is_true(optimize(experiment(), 1) < -0.2)
    process.remove(folder)
    local found = optimize(experiment(), 12, { copies = 200, deviation = 0.15 })
    assert(math.abs(found - 0.15) < 0.07, found)
    local rows = cq.Run.read_history(folder)
    assert.near(0.15 ^ 2, rows[1].loss, 1e-12)
  end)

  it("draws the same copies again, within the bounds, where a run goes on", function()
    local most = 0.01
    local whole = optimize(experiment(most), 4, { copies = 3, deviation = 0.1 })
    process.remove(folder)
    optimize(experiment(most), 2, { copies = 3, deviation = 0.1 })
    assert.equal(whole, optimize(experiment(most), 4, { copies = 3, deviation = 0.1 }, true))
  end)

  it("leaves out copies whose simulation fails", function()
    -- from 0.7 on the block leaves the world: some of the copies do. An objective is asked of the others alone
    local run, asked = experiment(), 0
    local final = run.objective.final
    run.objective.final = function(...)
      asked = asked + 1
      return final(...)
    end
    run.params.robot.velocity:set(0.6, 1)
    optimize(run, 1, { copies = 20, deviation = 0.2 })
    assert.equal(1, #cq.Run.read_history(folder))
    assert(asked > 2 and asked < 20, asked)
  end)

  it("says what it is not for", function()
    local run = experiment()
    mistake.says(mistake.of(function() optimize(run, 1, { copies = 1, deviation = 0.1 }) end),
      "copies must be a whole number at least 2")
    run = cq.Experiment { world = world, steps = 1, trainable = { velocity = { init = { 0, 0 } } },
      objective = function(state) return state:center(robot)[1] end,
      constraints = { { name = "any", at_most = 10, final = function(state) return state:center(robot)[1] end } },
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.gradient_descent { rate = 0.4 } } }
    mistake.says(mistake.of(function() optimize(run, 1, { copies = 2, deviation = 0.1 }) end),
      "smoothing is for first-order optimizers without constraints")
  end)
end)
