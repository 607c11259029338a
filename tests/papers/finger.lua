-- ICRA 2019, fig. 7: a finger learns to reach goals by gradients, and by samples.
--   cqlua study run tests/papers/finger.lua --goals fixed --jobs 1 [--first 1 --last 10 --ways gradient,cma]
-- Goals: fixed, random within +-0.05 of the head at rest, wide within +-0.1. Ways: Adam through all 80 control steps,
-- SHAC, PPO at three rates, CMA-ES. All but the first have ten times the rollouts. A trial reports, over rollouts, the
-- mean square distance at the end to goals that nobody trained on (to the one goal where it is fixed), without noise.
-- Gradients and SHAC have the loss of the paper, the square of the distance; PPO has the paper's reward, the way
-- towards the goal in a step; CMA-ES has the paper's linear controller, with 30 weights. Nothing is discounted.
-- Settings were tried on seed 101 alone; with --batch 1 --rate 0.02 gradients take a step for each random goal.
local cq = require "cq"
local is = require "cq.base.schema"
local Cma = require "cq.study.cma"

local STEPS, TESTED = 80, 64
local HOME = cq.tensor { 0.5, 0.6 }
local SETTINGS = {
  fixed = { range = 0, rollouts = 50, batch = 1 }, random = { range = 0.05, rollouts = 200, batch = 8 },
  wide = { range = 0.1, rollouts = 200, batch = 8 },
}
local goals = cq.option("goals", "fixed", is.one_of { "fixed", "random", "wide" })
local setting = SETTINGS[goals]
local most = cq.option("rollouts", setting.rollouts)        -- of gradients; the others have ten times as many
setting.batch = cq.option("batch", setting.batch)           -- goals of one step of Adam, and of CMA-ES
local first_rate = cq.option("rate", 0.01)                  -- of gradients

local scene = require "scenes.finger" {}
local world = cq.World(scene.world)

local function draw(random, count)
  if setting.range == 0 then return cq.tensor(scene.goal):expand { count, 2 } end
  return HOME + random:uniform({ count, 2 }, { min = -setting.range, max = setting.range })
end

-- what controllers see of the state and of a goal of each scene
local function observer(wanted)
  return function(state) return cq.concat({ state:motion(scene.groups), (wanted - HOME) * 10 }, -1) end
end

-- square distances to goals after an episode {scenes}
local function misses(controller, wanted)
  local roll = world:rollout { batch = wanted:size(1), steps = STEPS, observer = observer(wanted),
    controller = controller }
  return (roll.state:center "head" - wanted):square():sum(-1), roll
end

-- The mean of them, without gradients. Controllers that shake the finger may turn it inside out: it counts as one that
-- stands still then.
local function tested_error(controller, wanted)
  local fine, miss, roll = pcall(misses, controller, wanted)
  if not fine then return (wanted - HOME):square():sum(-1):mean():item() end
  roll:release()
  return miss:mean():item()
end

-- reports the error on the goals of the test at some 30 numbers of rollouts, evenly in their logarithm
local function reporter(trial, all)
  local wanted = draw(cq.random { seed = 1000 }, setting.range == 0 and 1 or TESTED)
  local following, least = 1, math.huge
  return function(rollouts, controller)
    if rollouts < following and rollouts < all then return end
    following = math.max(rollouts + 1, rollouts * 1.26)
    local error = tested_error(controller, wanted)
    least = math.min(least, error)
    trial.report(rollouts, { error = error })
    return error, least
  end
end

local ways = {}

-- Adam through the whole episode, with the network and the rate of examples/finger_targets.lua
function ways.gradient(trial)
  local all, random = most, cq.random { seed = trial.seed }
  local controller = cq.Controller.mlp { hidden = { 32, 32 }, activation = "tanh", inputs = 14, signals = 2,
    scale = 0.1 }
  local count = math.floor(all / setting.batch)
  local adam = cq.Optimizer.adam { rate = first_rate, schedule = function(i) return 0.06 ^ (i / count) end }
  local step = cq.value_and_grad(function(p, wanted)
    local miss, roll = misses(controller:with(p), wanted)
    return miss:mean(), roll
  end)
  local tell, error, least = reporter(trial, all), nil, nil
  for i = 1, count do
    local _, gradient, roll = step(controller.params, draw(random, setting.batch))
    roll:release()
    adam:update(controller.params, gradient)
    local now, best = tell(i * setting.batch, controller)
    error, least = now or error, best or least
  end
  return { error = error, least = least, rollouts = count * setting.batch }
end

-- An environment whose reward is the way towards the goal in a control step, or how much the square of ten times the
-- distance falls. The sum over an episode is what the distance at its end is short of that at its start: episodes end
-- there, and nothing comes after them.
local function environment(scenes, squared)
  local function distance(state, wanted)
    local square = (state:center "head" - wanted):square():sum(-1)
    return squared and 100 * square or (square + 1e-12):sqrt()
  end
  local env = cq.Env {
    world = world, scenes = scenes, steps = STEPS,
    observer = function(state) return state:motion(scene.groups) end,
    reset = function(random) return nil, draw(random, 1):flatten() end,
    reward = function(before, _, after, wanted) return distance(before, wanted) - distance(after, wanted) end,
  }
  local step = env.step
  function env.step(self, actions)
    local z, reward, terminated, truncated, info = step(self, actions)
    return z, reward, terminated + truncated, truncated * 0, info
  end
  return env
end

-- the controller of a learner, which saw goals as they are, on observations of the test
local function adapted(learner)
  local inner = learner:controller()
  local scale = cq.concat({ cq.ones { 12 }, cq.full({ 2 }, 0.1) }, 1)
  local shift = cq.concat({ cq.zeros { 12 }, HOME }, 1)
  return function(z) return inner:act(z * scale + shift) end
end

local function train(trial, learner)
  local all = 10 * most
  local tell, error, least = reporter(trial, all), nil, nil
  learner:train { on_update = function(row)
    local now, best = tell(row.steps / STEPS, adapted(learner))
    error, least = now or error, best or least
  end }
  return { error = error, least = least, rollouts = learner.steps_made / STEPS }
end

local function ppo(rate)
  return function(trial)
    return train(trial, cq.Learner.ppo { env = environment(16), steps = 10 * most * STEPS, rate = rate, gamma = 1,
      seed = trial.seed })
  end
end
ways["ppo-3e-4"], ways["ppo-1e-3"], ways["ppo-3e-3"] = ppo(3e-4), ppo(1e-3), ppo(3e-3)

function ways.shac(trial)
  return train(trial, cq.Learner.shac { env = environment(8, true), steps = 10 * most * STEPS, horizon = 20, gamma = 1,
    seed = trial.seed })
end

-- u = tanh(W z + b) with 30 weights within +-1, from a point of the unit cube
local function linear(point)
  local weights = cq.tensor(point) * 2 - 1
  local w, b = weights:slice(1, 28):reshape { 14, 2 }, weights:slice(29, 30)
  return function(z) return z:dense(w, b, "tanh") end
end

function ways.cma(trial)
  local all, random, search = 10 * most, cq.random { seed = trial.seed }, Cma.new(30)
  local stream = { normal = function() return random:normal({}):item() end }
  local tell, error, least = reporter(trial, all), nil, nil
  local rollouts, batch = 0, setting.batch
  while rollouts + search.size * batch <= all do
    local points, values = {}, {}
    local wanted = draw(random, batch)                        -- the goals of all points of a generation
    for k = 1, search.size do
      points[k] = search:ask(stream)
      values[k] = tested_error(linear(points[k]), wanted)
    end
    search:tell(points, values)
    rollouts = rollouts + search.size * batch
    local now, best = tell(rollouts, linear(search.mean))
    error, least = now or error, best or least
  end
  return { error = error, least = least, rollouts = rollouts }
end

local WAYS = { "gradient", "ppo-1e-3", "ppo-3e-4", "ppo-3e-3", "shac", "cma" }

return cq.Study {
  name = "finger-" .. goals, minimize = "error",
  grid = {
    seed = cq.range(cq.option("first", 1), cq.option("last", 10)),
    way = cq.option("ways", WAYS, is.list(is.one_of(WAYS))),
  },
  run = function(point, trial) return ways[point.way](trial) end,
}
