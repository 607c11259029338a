-- What is worth learning beside a controller: stiffness, Poisson's ratio or density of every particle? Eight
-- combinations, ten seeds.
--   cqlua study run examples/studies/codesign.lua --jobs 2    cqlua study plot examples/studies/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 11: co-design of a 2D biped, its bounds.
-- Expect: the order of the paper, stiffness before density before Poisson's ratio. Mean of the best of ten seeds, as
-- the way from 0.35: 0.79 with the controller alone, 0.87 with Poisson's ratio, 1.05 with density, 1.22 with
-- stiffness, 1.60 with all (paper: nearly 50 % more). 10 to 18 s a trial on one core, 80 trials.
-- Size: 800 particles, 80 trials of 400 x 3 steps. Time: 12 min.
local cq = require "cq"

local iterations = cq.option("iterations", 100)

local function biped(point, seed)
  return cq.Experiment(require "scenes.biped_codesign" {
    count = 10, trained = point, seed = seed, dt = 1e-2, effort = 1e-8, hidden = { 32, 32 },
    observer = function() return cq.Observer.kmeans { clusters = 7, velocity = true } end,
  })
end

return cq.Study {
  name = "codesign", repeats = 10, minimize = "loss",
  grid = { young = { false, true }, poisson = { false, true }, density = { false, true } },
  run  = function(point, trial)
    local run = biped(point, trial.seed)
    run:optimize { iterations = iterations, on_iteration = trial.report }
    return { loss = run.best.loss, at = run.best.iteration }
  end,
}
