-- smoothing: gradients from copies with noise, against a mean over a batch of them, and their mixture by variances
-- against variances in closed form.
local cq = require "cq"
local T = require "cq.tensor"
local mix = require("cq.experiment.smoothing").mix
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local sentence = require("tests.sentence").of
local spread = require "tests.spread"

local STEPS = 5

local function near(wanted, got, relative)
  assert(math.abs(got - wanted) <= relative * math.abs(wanted), ("%.9g, not %.9g"):format(got, wanted))
end

local function world_of()
  return scene.world(scene.robot { actuators = { cq.Actuator.pressure { groups = "foot", axis = "y", max = 2 } } })
end

local function experiment(world, gradient, more)
  local fields = { world = world, steps = STEPS, gradient = gradient,
    controller = cq.Controller.open_loop(T.param(spread({ STEPS, 1 }, -0.8, 0.8))),
    objective = function(state) return state:center("foot"):square():sum() end,
    optimizer = cq.Optimizer.gradient_descent { rate = 1 } }
  for name, value in pairs(more or {}) do fields[name] = value end
  return cq.Experiment(fields)
end

-- trains, and gives the parameters and the history
local function train(run, iterations, more)
  local options = { iterations = iterations, folder = scratch.open() }
  for name, value in pairs(more or {}) do options[name] = value end
  run:optimize(options)
  local rows = cq.Run.read_history(options.folder)
  if not more then scratch.close() end
  return T.leaves.list(run.params)[1].tensor, rows, options.folder
end

-- the noise of the first iteration {samples, ...}
local function noise_of(samples, sigma, shape)
  local source, out = cq.random { seed = 1 }, {}
  for k = 1, samples do out[k] = source:normal(shape) * sigma end
  return T.stack(out, 1)
end

-- losses {samples}, and the gradient of each copy {samples, steps, 1}, from one batch
local function batch_of(world, u, noise)
  local losses
  local _, grads = T.value_and_grad(function(q)
    local state = world:rollout { batch = noise:size(1), steps = STEPS, controller = cq.Controller.open_loop(q) }.state
    losses = state:center("foot"):square():sum(-1)
    return losses:sum()
  end)(T.param(noise + u))
  return losses:detach(), grads
end

describe("gradient.smooth", function()
  it("is the mean over copies with noise, which one batch gives too; the loss is that without noise", function()
    local world, u = world_of(), spread({ STEPS, 1 }, -0.8, 0.8)
    local _, grads = batch_of(world, u, noise_of(6, 0.2, { STEPS, 1 }))
    local trained, rows = train(experiment(world, { smooth = { samples = 6, sigma = 0.2 } }), 1)
    local moved, wanted = u - trained, grads:mean(1)
    assert.is_true((moved - wanted):norm():item() < 1e-12 + 1e-10 * wanted:norm():item())
    local _, plain = train(experiment(world), 1)
    assert.equal(plain[1].loss, rows[1].loss)
    assert.is_nil(rows[1].first_order_weight)
    assert.is_true(rows[1].adjoint > 0)
  end)

  it("mixes both estimates by their variances", function()
    local world, u, n, sigma = world_of(), spread({ STEPS, 1 }, -0.8, 0.8), 8, 0.3
    local noise = noise_of(n, sigma, { STEPS, 1 })
    local losses, grads = batch_of(world, u, noise)
    local zeroth = noise * ((losses - losses:mean()) * n / ((n - 1) * sigma ^ 2)):reshape { n, 1, 1 }
    local function variance(x) return (x - x:mean(1)):square():sum():item() / (n * (n - 1)) end
    local weight = variance(zeroth) / (variance(zeroth) + variance(grads))
    local trained, rows = train(experiment(world, { smooth = { samples = n, sigma = sigma }, estimate = "mixed" }), 1)
    near(weight, rows[1].first_order_weight, 1e-9)
    local wanted = grads:mean(1) * weight + zeroth:mean(1) * (1 - weight)
    assert.is_true((u - trained - wanted):norm():item() < 1e-9 * wanted:norm():item())
  end)

  it("weighs by the variances of a parabola, which are known", function()
    -- L = x^2 at x0: V of 2 (x0 + e) is 4 s^2, and that of (L - mean L) e / s^2 is 8 x0^2 + 10 s^2
    local n, x0, sigma = 40000, 0.3, 0.5
    local noise = cq.random({ seed = 4 }):normal { n } * sigma
    local grads, losses, list = {}, {}, {}
    for i = 1, n do
      local x = x0 + noise:get(i)
      grads[i], losses[i], list[i] = { T.tensor { 2 * x } }, x * x, { T.tensor { noise:get(i) } }
    end
    local mixed, weight = mix(grads, losses, list, sigma)
    local v0, v1 = 8 * x0 ^ 2 + 10 * sigma ^ 2, 4 * sigma ^ 2
    near(v0 / (v0 + v1), weight, 0.02)
    near(2 * x0, mixed[1]:get(1), 0.03)
    -- a straight line has first-order gradients without variance, and a step has none that say anything
    local function of(f, slope)
      local g, l, e = {}, {}, {}
      for i = 1, 100 do g[i], l[i], e[i] = { T.tensor { slope } }, f(noise:get(i)), { T.tensor { noise:get(i) } } end
      return mix(g, l, e, sigma)
    end
    local line, all = of(function(x) return 3 * x end, 3)
    assert.equal(1, all)
    near(3, line[1]:item(), 1e-12)
  end)

  it("keeps bounds, several scenes, constraints, and every bit of a run that goes on", function()
    local world = world_of()
    local fields = { smooth = { samples = 3, sigma = 0.5 }, estimate = "mixed" }
    local function bounded()
      local u = T.param(spread({ STEPS, 1 }, -0.8, 0.8), { min = -0.8, max = 0.8 })
      return experiment(world, fields, { controller = cq.Controller.open_loop(u),
        optimizer = cq.Optimizer.adam { rate = 0.05 } })
    end
    local whole, rows = train(bounded(), 4)
    assert.is_true(whole:max():item() <= 0.8 and whole:min():item() >= -0.8)
    local folder = select(3, train(bounded(), 2, {}))
    local on, more = train(bounded(), 4, { folder = folder, resume = true })
    scratch.close()
    assert.is_true(on:equal(whole))
    for i = 1, 4 do
      for _, name in ipairs { "loss", "gradient", "adjoint", "adjoint_growth", "first_order_weight" } do
        assert.equal(rows[i][name], more[i][name])
      end
    end
    local one = train(experiment(world, fields), 2)
    local scenes = train(experiment(world, fields, { scenes = { count = 2, each = function() return {} end } }), 2)
    assert.is_true((one - scenes):norm():item() < 1e-9 * one:norm():item())
    local lagrangian = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.01 } }
    local height = { name = "height", at_most = 0.1, terminal = function(state) return state:center("foot")[2] end }
    local kept = experiment(world, fields, { optimizer = lagrangian, constraints = { height } })
    assert.equal(3, #select(2, train(kept, 3)))
  end)

  it("says what is wrong with it", function()
    local world = world_of()
    for told, wrong in pairs {
      ["gradient.smooth: samples"] = { smooth = { sigma = 1 } },
      ["gradient.smooth: sigma"] = { smooth = { samples = 2, sigma = 0 } },
      ["gradient.smooth: unknown field sigmma"] = { smooth = { samples = 2, sigmma = 1 } },
      ["gradient: estimate must be"] = { estimate = "second" },
      ["compares copies with noise; say how many"] = { estimate = "mixed" },
      ["samples must be at least 2, got 1"] = { estimate = "mixed", smooth = { samples = 1, sigma = 1 } },
      ["gradient: decay must be"] = { decay = -1 }, ["gradient: clip must be"] = { clip = "median" },
      ["cq.Experiment: gradient: unknown field windw"] = { windw = 1 },
    } do
      local why = sentence(experiment, world, wrong)
      assert(why:find(told, 1, true), why)
    end
  end)
end)
