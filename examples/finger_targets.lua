-- A finger learns to reach goals that it is shown: one goal, random ones, random ones in a larger range.
--                                                                                 cqlua examples/finger_targets.lua
-- Source: ChainQueen (ICRA 2019), fig. 7, and its release: two chambers under a head, 80 control steps. Its controller
-- is linear, and comes to 1.1e-4 in the larger range (here twice, it is not printed); this is a small network, and with
-- --full a linear one on the release's 4,800 particles. Expect:
-- square errors below 1e-4 after 51 rollouts for one goal, 328 for random ones, 1,672 in the larger range, and at the
-- end 1e-16, 5e-6 and 8.5e-5 in the mean of 512 other goals.
-- Size: 768 particles, batches of 8, 80 x 1 steps. Time: 2 min.
local cq = require "cq"

local full = cq.option("full", false)
local scene = require "scenes.finger" { count = full and 40 or nil }
local world = cq.World(scene.world)
local home, steps, batch, iterations = cq.tensor { 0.5, 0.6 }, 80, 8, cq.option("iterations", 400)
local random = cq.random { seed = cq.option("seed", 0) }
local apart = cq.random { seed = 1000 }                      -- for the goals on which it is tested
-- how many goals there are in a batch {count, 2}; nil for one goal {2}
local function count_of(goals) return goals.rank == 2 and goals:size(1) or nil end
-- `count` goals {count, 2} from the generator `from`, in a square of edge `range` around where the head is at rest;
-- without a range the one goal of the scene, {2}
local function draw(range, count, from)
  if range == 0 then return cq.tensor(scene.goal) end                                -- {2}
  return home + from:uniform({ count, 2 }, { min = -range / 2, max = range / 2 })
end

-- a function of the state: the groups' motion, followed by ten times the way from home to the goals
local function observer(goals)
  return function(state) return cq.concat({ state:motion(scene.groups), (goals - home) * 10 }, -1) end
end
-- mean square of the way from the head at the end to the goal, for one goal or a batch of them, and the rollout
local function reach(controller, goals)
  local roll = world:rollout {
    batch = count_of(goals), steps = steps, observer = observer(goals), controller = controller,
  }
  return (roll.state:center "head" - goals):square():sum(-1):mean(), roll
end

-- A controller that is trained by itself, for goals within a square of edge `range` (0: the goal of the scene).
-- learn() makes one iteration of Adam, and returns the loss of its batch; `goals` are those for the test at the end.
local function Learner(range)
  local inputs = 3 * 4 + 2
  local controller = full and cq.Controller.linear { inputs = inputs, signals = 2, scale = 0.1 }
    or cq.Controller.mlp { hidden = { 32, 32 }, activation = "tanh", inputs = inputs, signals = 2, scale = 0.1 }
  local params, adam = controller.params, cq.Optimizer.adam { rate = 0.01, schedule = function(i) return 0.993 ^ i end }
  local step = cq.value_and_grad(function(p, goals) return reach(controller:with(p), goals) end)
  local self = { params = params, controller = controller, rollouts = 0, goals = draw(range, 512, apart) }
  -- one iteration of Adam on a batch of new goals; counts rollouts, and returns the loss
  function self.learn()
    local loss, gradient, roll = step(params, draw(range, batch, random))
    roll:release()
    adam:update(params, gradient)
    self.rollouts = self.rollouts + (count_of(self.goals) and batch or 1)
    -- smoothed; how many rollouts it takes until the error is small enough
    self.smooth = self.smooth and 0.9 * self.smooth + 0.1 * loss or loss
    if self.smooth <= 1e-4 then self.taken = self.taken or self.rollouts end
    return loss
  end
  return self
end

local ranges = {
  { "fixed", 0, "one goal" }, { "random", 0.1, "random goals" }, { "wide", 0.2, "in twice the range" },
}
local run, learners = cq.Run.open { iterations = iterations, resume = false }, {}
for k, entry in ipairs(ranges) do learners[k] = Learner(entry[2]) end
local curves = { {}, {}, {} }
for i = 1, iterations do
  local row = { iteration = i }
  for k, learner in ipairs(learners) do
    row[k == 1 and "loss" or ranges[k][1]] = learner.learn()
    curves[k][i] = learner.smooth > 1e-6 and learner.smooth or 0 / 0           -- the plot leaves gaps
  end
  run:record(row)
end
for k, learner in ipairs(learners) do
  local error, roll = reach(learner.controller:with(learner.params), learner.goals)
  roll:release()
  print(("%-6s goals: error %.1e on %d of them; %s"):format(ranges[k][1], error:item(), count_of(learner.goals) or 1,
    learner.taken and ("below 1e-4 after %d rollouts"):format(learner.taken) or "not below 1e-4 yet"))
end

if cq.option("render", true) then
  local series = {}
  for k, learner in ipairs(learners) do
    local rollouts = {}
    for i = 1, iterations do rollouts[i] = learner.rollouts / iterations * i end
    series[k] = { name = ranges[k][3], x = rollouts, y = curves[k] }
  end
  cq.Plot {
    title = "A finger that sees its goal", x_label = "rollouts", log_y = true, series = series,
    y_label = "mean square error, smoothed over some ten updates",
  }:write "curves.png"
  -- four fingers, each with a goal in the larger range
  local wide, goals = learners[3], cq.tensor { { 0.41, 0.55 }, { 0.45, 0.68 }, { 0.55, 0.52 }, { 0.59, 0.66 } }
  for k = 1, 4 do
    cq.Experiment {
      world = world, steps = steps, observer = observer(goals[k]),
      controller = wide.controller:with(wide.params), objective = function(state) return state:center("head")[1] end,
    }:render(("finger_targets_%d.png"):format(k), {
      width = 480, height = 480, goals = { { at = goals[k], radius = 0.02 } },
    })
  end
end
run:finish({ fixed = learners[1].params, random = learners[2].params, wide = learners[3].params })
