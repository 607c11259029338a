-- shac: the loss of a window in its two limits, targets of the value, a regulator whose best cost is known, and errors.
local cq = require "cq"
local T = require "cq.tensor"
local critic = require "cq.learn.critic"
local option = require "cq.option"
local regulator = require "tests.regulator"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local shac = require "cq.learn.shac"
local spread = require "tests.spread"
local sentence = require("tests.sentence").of

local function motion(state) return state:motion { "foot", "trunk" } end
local function forward(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end

-- two scenes of a small walker, whose episodes have 6 control steps
local function small_env(more)
  local world = scene.world(scene.robot())
  local def = { world = world, steps = 6, scenes = 2, observer = motion, reward = forward,
    reset = function(random)
      return world.robot:with { velocity = random:uniform({ 2 }, { min = -0.5, max = 0.5 }) }
    end }
  for name, value in pairs(more or {}) do def[name] = value or nil end
  return cq.Env(def)
end

local function equal(one, other)
  local count = 0
  for name, tensor in pairs(one) do
    assert.is_true(tensor:equal(other[name]), name)
    count = count + tensor:abs():sum():item()
  end
  assert.is_true(count > 0)
end

describe("SHAC", function()
  it("is cq.value_and_grad of the whole episode, bit for bit, where the window is one and the value is 0", function()
    local env, got = small_env { reset = false }, nil
    local learner = cq.Learner.shac { env = env, steps = 12, horizon = 6, hidden = { 5 }, deviation = 0, seed = 2,
      gamma = 1, normalize_observations = false }
    for _, tensor in pairs(learner.params) do tensor:copy_from(spread(tensor:shape(), -0.4, 0.5)) end
    for name, tensor in pairs(learner.critic.target) do learner.critic.target[name] = 0 * tensor end
    learner.optimizer.update = function(_, _, gradient) got = gradient end
    local row = learner:train()[1]
    local loss, wanted = cq.value_and_grad(function(p)
      local roll = env.world:rollout { steps = 6, batch = 2, observer = motion, controller = function(z)
        return z:dense(p.mean_w1, p.mean_b1, "elu"):dense(p.mean_w2, p.mean_b2):tanh()
      end, record = function(state) return forward(nil, nil, state) end }
      local sum = T.zeros { 2 }
      for t = 1, 6 do sum = sum + roll.record[t] end
      return -sum:sum() / 12
    end)(learner.params)
    assert.equal(loss, row.policy_loss)
    assert.equal(-row.reward, row.loss)
    equal(wanted, got)
  end)

  it("is the policy gradient of a regulator where the window is one step and the value exact", function()
    -- of u = K z with the cost matrix P of K: 2 ((R + gamma B'PB) K + gamma B'PA) S (Fazel et al. 2018), where S is the
    -- mean of z z'
    local K, A, B = T.tensor { { -0.3 }, { -0.5 } }, regulator.dynamics()
    local P = regulator.value(K)
    local env, start = regulator.env(64), nil
    env:reset { seed = 4 }
    local _, gradient = cq.value_and_grad(function(p)
      local window = env:window { controller = function(z)
        start = z
        return z:matmul(p.K)
      end, steps = 1 }
      return shac.loss(window, regulator.gamma, function(z) return -(z:matmul(P) * z):sum(-1) end)
    end) { K = T.param(K) }
    local S = start:detach():transpose(1, 2):matmul(start:detach()) / 64
    local BP = B:transpose(1, 2):matmul(P)
    local E = K:transpose(1, 2) * (regulator.R + regulator.gamma * BP:matmul(B):item())
      + regulator.gamma * BP:matmul(A)
    local wanted = 2 * E:matmul(S)
    assert.is_true(wanted:abs():max():item() > 0.1)
    assert.is_true((gradient.K:transpose(1, 2) - wanted):abs():max():item() < 1e-6 * wanted:abs():max():item())
  end)

  it("ends sums of discounted rewards with episodes", function()
    -- one scene that is truncated at the second step, one that is terminated there
    local window = { reward = T.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } },
      terminated = T.tensor { { 0, 0 }, { 0, 1 }, { 0, 0 } }, truncated = T.tensor { { 0, 0 }, { 1, 0 }, { 0, 0 } },
      final_observation = spread({ 3, 2, 1 }, 1, 6) }
    local function value(z) return z:squeeze(-1) end
    local g, v = 0.5, value(window.final_observation)
    local first = 1 + g * 3 + g ^ 2 * v:get(2, 1) + 5 + g * v:get(3, 1)
    local second = 2 + g * 4 + 6 + g * v:get(3, 2)
    assert.is_true(math.abs(shac.loss(window, g, value):item() + (first + second) / 6) < 1e-14)
    local targets = critic.targets(window, v, g, 0.9)
    assert.is_true(math.abs(targets:get(2, 1) - (3 + g * v:get(2, 1))) < 1e-14)
    assert.equal(4, targets:get(2, 2))
    assert.is_true(math.abs(targets:get(1, 2) - (2 + g * (0.1 * v:get(1, 2) + 0.9 * 4))) < 1e-14)
    assert.is_true(math.abs(targets:get(3, 2) - (6 + g * v:get(3, 2))) < 1e-14)
  end)

  it("comes within 2 % of the best cost of a linear-quadratic regulator", function()
    local gains = regulator.best()
    local best = regulator.cost(function(z) return z:matmul(gains) end)
    for seed = 1, 2 do
      local learner = cq.Learner.shac { env = regulator.env(16), steps = 16 * 10 * 60, horizon = 10,
        hidden = { 32, 32 }, rate = 5e-3, deviation = 0.1, gamma = regulator.gamma, seed = seed }
      learner:train()
      local row, controller = learner.history[60], learner:controller()
      assert.equal(9600, row.steps)
      assert.is_true(row.gradient > 0 and row.value_loss >= 0)
      local cost = regulator.cost(function(z) return controller:act(z) end)
      assert.is_true(cost < 1.02 * best, ("seed %d: cost %g, the best is %g"):format(seed, cost, best))
    end
  end)

  it("goes on from its folder with the same bits", function()
    local function make()
      return cq.Learner.shac { env = small_env(), steps = 3 * 2 * 4, horizon = 4, hidden = { 4 }, critic_hidden = { 3 },
        critic_passes = 2, critic_minibatches = 2, seed = 3 }
    end
    local whole, part, rest, folder = make(), make(), make(), scratch.open() .. "/shac"
    whole:train()
    part:train { folder = folder, on_update = function() return part.updates_made == 2 end }
    rest:train { folder = folder, resume = true }
    scratch.close()
    local state = rest:state()
    state.parts.critic.target.value_b1 = nil
    assert.equal("learner:restore: the state is damaged: critic: target.value_b1 must be a tensor {3}",
      sentence(function() make():restore(state) end))
    equal(whole.params, rest.params)
    equal(whole.critic.target, rest.critic.target)
    assert.equal(whole.history[3].loss, rest.history[3].loss)
    assert.equal(3, #rest.history)
  end)

  it("has the program's seed where none is given, as PPO has", function()
    local function trained(kind, seed, given)
      local before = option.program.seed
      option.program.seed = seed
      local fields = kind == "shac" and { horizon = 2 } or { batch = 4, minibatches = 2, epochs = 1 }
      fields.env, fields.steps, fields.hidden, fields.seed = small_env(), 4, { 3 }, given
      local learner = cq.Learner[kind](fields)
      option.program.seed = 11                            -- the learner keeps its own
      learner:train()
      option.program.seed = before
      return learner
    end
    for _, kind in ipairs { "ppo", "shac" } do
      local wanted = trained(kind, nil, 7)
      equal(wanted.params, trained(kind, 7).params)
      equal(wanted.params, trained(kind, 5, 7).params)
      equal(trained(kind).params, trained(kind, nil, 0).params)
      assert.is_false(wanted.params.mean_w1:equal(trained(kind, 2 ^ 53).params.mean_w1))
    end
  end)

  it("refuses what gradients do not go through", function()
    local function says(text, more, env)
      local fields = { env = env or small_env(), steps = 100, horizon = 4 }
      for name, value in pairs(more or {}) do fields[name] = value end
      assert.equal(text, sentence(function() cq.Learner.shac(fields):train() end))
    end
    says("cq.Learner.shac: horizon is 9, an episode has 6; a window is no longer than that", { horizon = 9 })
    says("cq.Learner.shac: steps is 7, fewer than the 8 of one window of all scenes", { steps = 7 })
    says("cq.Learner.shac: the observation of the environment has no gradient to the state; compute it from the state "
      .. "by operations on tensors, without numbers taken out of them", nil,
      small_env { observer = function(state) return motion(state):detach() end })
    says("cq.Learner.shac: the reward of the environment has no gradient to the state; compute it from the state "
      .. "by operations on tensors, without numbers taken out of them", nil,
      small_env { reward = function(_, _, after) return forward(nil, nil, after):detach() end })
    says("cq.Learner.shac: env must be a cq.Env, or have its window, which gradients go through", nil,
      { scenes = 1, observation_space = { shape = { 1 } }, action_space = { shape = { 1 } }, reset = print,
        step = print })
  end)
end)
