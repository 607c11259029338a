-- What is worth learning beside a controller: stiffness, Poisson's ratio or density of every particle? Eight
-- combinations, ten seeds.
--   cqlua study run examples/studies/codesign.lua --jobs 2    cqlua study plot examples/studies/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 11: co-design of a 2D biped, its bounds.
-- Expect: the order of the paper, stiffness before density before Poisson's ratio. Mean of the best of ten seeds, as
-- the way from 0.35: 0.79 with the controller alone, 0.87 with Poisson's ratio, 1.05 with density, 1.22 with
-- stiffness, 1.60 with all (paper: nearly 50 % more). 10 to 18 s a trial on one core, 80 trials.
local cq = require "cq"

local iterations = cq.option("iterations", 100)

-- the paper's bounds; a step of Adam goes a hundredth of the way between them
local function within(min, max) return { min = min, max = max, per = "particle", rate = (max - min) / 100 } end
local ranges = { young = within(7, 20), poisson = within(0.2, 0.4), density = within(0.7, 2) }

local function biped(point, seed)
  local robot, trainable = cq.Robot(require "scenes.biped" { count = 10 }), {}
  for name, range in pairs(ranges) do trainable[name] = point[name] and range or nil end
  return cq.Experiment {
    world = cq.World {
      cells = { 200, 32 }, dx = 1 / 32, gravity = { 0, -2 }, dt = 1e-2, substeps = "auto",
      walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.12 },
    },
    duration   = 4,
    observer   = cq.Observer.kmeans { clusters = 7, velocity = true },
    controller = cq.Controller.mlp { hidden = { 32, 32 }, activation = "relu", seed = seed },
    objective  = { final = function(state) return -state:center(robot)[1] end,
      effort = function(u) return 1e-8 * u:square():sum() end },
    trainable  = trainable,
    optimizer  = cq.Optimizer.adam { rate = 5e-3, clip = 1 },
  }
end

return cq.Study {
  name = "codesign", repeats = 10, minimize = "loss",
  vary = { young = { false, true }, poisson = { false, true }, density = { false, true } },
  run  = function(point, trial)
    local run = biped(point, trial.seed)
    run:optimize { iterations = iterations, after = trial.report }
    return { loss = run.best.loss, at = run.best.iteration }
  end,
}
