-- The walker's stiffness is learnt together with its controller, and compared to the controller alone.
--                                                                                      cqlua examples/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), section 5.3.2: Young's modulus of every particle
-- within 7 to 20, from 10; it adds nearly 50 % to the way of a biped. Expect: some 30 to 40 % after 100 iterations.
-- Other first weights (--seed 1 to 3) gave 9, 162 and 9 %; all four together 37 %: where the controller alone stays in
-- a poor gait, the body helps most.
-- Kept: 93 and 84 % with 2 and 4 times the substeps, 87 % on a finer grid, 92 % at 5 % of anything (cqlua robust).
-- Size: 2,800 particles, twice 800 x 2 steps. Time: 50 s.
local cq = require "cq"

local world = cq.World {                          -- as in walker2d.lua
  cells = { 160, 40 }, dx = 1 / 40, dt = 5e-3, substeps = 2, gravity = { 0, -2 },
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  cq.Robot(require "scenes.walker2d" {}):at { 0.2, 0.1 },
}
local robot = world.robot

-- an experiment of a walker that learns; its body stays as it is unless `trainable` names its numbers and `body` is
-- their optimizer
local function Walker(trainable, body)
  return cq.Experiment {
    world = world, duration = 4, trainable = trainable,
    observer   = cq.Observer.centroid { groups = robot.groups, velocity = true },
    controller = cq.Controller.linear { scale = 0.1 },
    objective  = function(state) return -state:center("trunk")[1] end,
    -- weights are about 0.1, stiffness 10
    optimizer  = cq.Optimizer.parts {
      controller = cq.Optimizer.gradient_descent { rate = 1, clip = 0.1 }, robot = body,
    },
  }
end
local fixed    = Walker()
local codesign = Walker({ young = { min = 7, max = 20, per = "particle" } }, cq.Optimizer.adam { rate = 0.1 })

local iterations = cq.option("iterations", 100)
codesign:optimize { iterations = iterations }
fixed:optimize { iterations = iterations, name = "fixed" }
local function way(run) return -run.best.loss - 0.5 end        -- of the trunk, from its first place
print(("the way is %.2f, with co-design %.2f: %+.0f %%"):format(way(fixed), way(codesign),
  100 * (way(codesign) / way(fixed) - 1)))

local young = codesign.best.params.robot.young
codesign:render("codesign.mp4",
  { fps = 40, colour = { by = function() return young end, label = "Young's modulus", range = { 7, 20 } } })
