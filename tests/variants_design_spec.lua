-- variants of an experiment with a design: over grids, and in stages with a soft, binary or extracted body.
local cq = require "cq"
local scratch = require "tests.scratch"
local compare = require "tests.variants"

local near, value_and_gradients = compare.near, compare.value_and_gradients

-- a block on the ground, of a level; with these variants at the first
local function problem_of(given)
  return function(level)
    local c = level.coarsen
    local block = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.01 * c },
      material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3, density = 1000 },
      actuators = cq.Actuator.isotropic { count = 2, max = 1e3 } }
    local world = cq.World { cells = { 20 / c, 20 / c }, dx = 0.02 * c, gravity = { 0, -9.8 }, dt = 4e-3 * c,
      substeps = 10, precision = "float64",
      walls = cq.Boundary.box { kind = "friction", mu = 0.5, inset = 0.06 * c }, block:at { 0.1, 0.06 * c } }
    return { world = world, duration = 0.08, design = cq.Topology { world = world, duration = 0.08, seed = 3 },
      objective = { running = function(state) return -world.control_dt * state:velocity(block)[1] end },
      optimizer = cq.Optimizer.adam { rate = 0.02 }, variants = c == 1 and given or nil }
  end
end

describe("variants of a design", function()
  it("are trained over grids, with void left out", function()
    local run = cq.Experiment(problem_of { {}, { change = { stiffness = 0.05 } }, { change = { grid = 0.8 } },
      { change = { substeps = 2 } } })
    local value, all = value_and_gradients(run)
    local sum, mean, before = {}, 0, run.ensemble
    for k = 1, 4 do
      run.ensemble = { each = function() return before.each(nil, k) end, count = 1, fixed = true, reduce = "mean" }
      local one, grads = value_and_gradients(run)
      run.ensemble = before
      mean = mean + one / 4
      for i, g in ipairs(grads) do sum[i] = (sum[i] or 0) + g / 4 end
    end
    near({ mean }, { value }, 1e-12)
    near(sum, all, 1e-9)
  end)

  it("have constraints of the parameters of their own grid", function()
    local seen = {}
    local function problem(level)
      local def = problem_of { {}, { change = { grid = 0.8 } } } (level)
      local function count(params, roll)
        seen[params.design.density.count] = roll.state.world.particle_count
        return 0 * params.design.density:sum()
      end
      def.constraints = { def.design:volume { at_most = 0.6 }, { name = "count", at_most = 1e9, of = count } }
      def.optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.02 } }
      return def
    end
    local run, folder = cq.Experiment(problem), scratch.open()
    run:optimize { iterations = 1, folder = folder .. "/run" }
    scratch.close()
    local counts = 0
    for count, particles in pairs(seen) do
      assert.equal(particles, count)
      counts = counts + 1
    end
    assert.equal(2, counts)
  end)

  it("have the body and the options of the stage, also as experiments of their own", function()
    local other, folder = cq.Experiment(problem_of() { coarsen = 1 }), scratch.open()
    for _, body in ipairs { "soft", "binary", "extracted" } do
      local expected
      for k, own in ipairs { false, { {} }, { other } } do
        local run = cq.Experiment(problem_of())
        run:optimize { folder = folder .. "/" .. body .. k, plan = cq.Plan {
          { name = "soft", iterations = 3 },
          { name = "second", iterations = 2, body = body, options = { friction = 0.1 }, variants = own } } }
        local magnitudes = run.params.design.magnitude:reshape { -1 }:totable()
        expected = expected or { loss = run.best.loss, magnitudes = magnitudes }
        near({ expected.loss }, { run.best.loss }, 1e-12)
        near(expected.magnitudes, magnitudes, 1e-9)
      end
    end
    scratch.close()
  end)

  it("have gradients by the pulses of an extracted body on a finer grid", function()
    local run, folder = cq.Experiment(problem_of()), scratch.open()
    local before
    run:optimize { folder = folder .. "/run", plan = cq.Plan { { name = "soft", iterations = 3 },
      { name = "pulses", iterations = 2, body = "extracted", variants = { { change = { grid = 0.8 } } } } },
      on_iteration = function(i, _, now) if i == 3 then before = now.params.design.sign:detach() + 0 end end }
    local moved = (run.params.design.sign - before):abs()
    assert.is_true(moved:max():item() > 1e-3)
    scratch.close()
  end)
end)
