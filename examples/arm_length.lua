-- An arm that is too short for its goal learns its length together with its signals.     cqlua examples/arm_length.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.3.1: one geometric parameter, open loop, Adam,
-- a goal that the arm cannot reach even when it is stretched; its final error is below 1e-3 within 100 steps. The paper
-- prints no sizes. Expect: an error of 1.2e-4 after 100 iterations with 1.84 times the length, 0.125 without.
-- Kept: 100 % with 2 and 4 times the substeps and on a finer grid, 100 % at 5 % of anything (cqlua robust).
-- Size: 180 particles, twice 100 x 6 steps. Time: 3 s.
local cq = require "cq"

local goal, length, width, root = { 0.44, 0.58 }, 0.25, 0.06, 0.05
-- a world with an arm of two chambers side by side, as long as `free`, on a root that is held
local function World(free)
  -- a box of count[1] x count[2] particles with its lower left corner at `at`
  local function block(name, at, size, count)
    return cq.Shape.box { name = name, at = at, size = size, count = count }
  end
  local arm = cq.Robot {
    shape = {
      block("root", { 0, 0 }, { width, root }, { 6, 5 }),
      block("left", { 0, root }, { width / 2, free }, { 3, 25 }),
      block("right", { width / 2, root }, { width / 2, free }, { 3, 25 }),
    },
    material  = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "left", "right" }, axis = "y", max = 1 },
    groups    = { tip = function(_, y) return y > root + 0.88 * free end }, pins = "root",
  }
  return cq.World { cells = { 50, 40 }, dx = 1 / 50, dt = 0.01, substeps = 6, damping = 4, arm:at { 0.5, 0.1 } }
end
-- the robot with its free part longer by a factor
local function stretch(robot, factor)
  return robot:stretched { axis = "y", joints = { root, root + length }, factor = factor }
end

-- an experiment that brings the tip of the world's arm to the goal, from first signals `init`
local function Reach(world, trainable, init)
  return cq.Experiment {
    world = world, steps = 100, controller = cq.Controller.open_loop { steps = 100, hold = 10, init = init },
    trainable = trainable, objective = { goal = { of = "tip", at = goal } },
    -- the gradient shrinks with the error; with a short memory of its squares, steps do not shrink as fast
    optimizer = cq.Optimizer.adam { rate = 0.08, beta2 = 0.95, schedule = function(i) return 0.97 ^ i end },
  }
end
local iterations = cq.option("iterations", 100)
local fixed  = Reach(World(length))
local longer = Reach(fixed.world, { length = { init = 1, min = 0.5, max = 2, apply = stretch } })
fixed:optimize { iterations = iterations, name = "fixed" }
longer:optimize { iterations = iterations }

-- the arm that was learnt, built with its length
local best  = longer.best.params
local built = Reach(World(length * best.named.length:item()), nil, best.controller.u)
print(("as it is, the arm misses by %.4f; with %.2f times the length by %.1e, built anew by %.1e"):format(
  math.sqrt(fixed.best.loss), best.named.length:item(), math.sqrt(longer.best.loss), math.sqrt(built:evaluate().loss)))
built:render("arm_length.png", { stills = { 0, 0.4, 0.7, 1 }, zoom = 1.2, goals = { { at = goal, radius = 0.02 } } })
