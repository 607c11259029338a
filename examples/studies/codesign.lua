-- What is worth learning beside a controller: stiffness, Poisson's ratio or density of every particle? Eight
-- combinations, ten seeds.
--   cqlua study run examples/studies/codesign.lua --jobs 2    cqlua study plot examples/studies/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 11: co-design of a 2D biped, its bounds,
-- 12,800 particles, 4 time units, ten runs each; all three add nearly 50 %.
-- Expect: the order of the paper, stiffness before density before Poisson's ratio. Mean of the best of ten seeds, as
-- the way from 0.35: 0.79 with the controller alone, 0.87 with Poisson's ratio, 1.05 with density, 1.22 with
-- stiffness, 1.60 with all. 10 to 18 s a trial on one core, 80 trials. --fine has four times the particles and another
-- controller: body lengths, medians of --seed 0 on: none 2.6, E 3.9, nu 3.3, density 3.0, E+nu 3.0, E+density 4.2,
-- nu+density 5.0, all 5.2. Gaits differ much with the first weights, with all from 1.2 to 7.7: one seed does not tell
-- what nu and density add. --full has the paper's particles; --ends compares all with none alone: 4.92, 5.02,
-- 4.69, 5.44 and 3.67 of five seeds beside 3.52, 3.02, 4.82, 3.25 and 2.15.
-- Size: 800 particles, 80 trials of 400 x 3 steps; 3,200, 200 x 6 with --fine; 12,800, 200 x 12 with --full. Time: 12
-- min; 36 min with --fine; 10 h with --full.
local cq = require "cq"

local iterations, full = cq.option("iterations", 100), cq.option("full", false)
local fine, ends = full or cq.option("fine", false), cq.option("ends", false)
local start, length = 0.35, 0.3                                  -- of its middle at first; a body length

-- an experiment of a biped whose trainable numbers are those of a point of the study
local function biped(point, seed)
  local setup = { trained = point, seed = seed, count = cq.option("count", full and 40 or fine and 20 or 10) }
  if fine then
    setup.dx, setup.substeps = full and 1 / 64 or 1 / 32, full and 12 or 6
  else
    setup.dt, setup.effort, setup.hidden = 1e-2, 1e-8, { 32, 32 }
    setup.observer = function() return cq.Observer.kmeans { clusters = 7, velocity = true } end
  end
  return cq.Experiment(require "scenes.biped_codesign"(setup))
end

return cq.Study {
  name = fine and "codesign-fine" or "codesign", repeats = cq.option("repeats", 10), minimize = "loss",
  grid = ends and { all = { false, true } }
    or { young = { false, true }, poisson = { false, true }, density = { false, true } },
  run  = function(point, trial)
    if ends then point = { young = point.all, poisson = point.all, density = point.all } end
    local run = biped(point, trial.seed)
    run:optimize { iterations = iterations, on_iteration = trial.report }
    local x = run:evaluate().rollout.state:center(run.robot)[1]:item()
    return { loss = run.best.loss, at = run.best.iteration, lengths = (x - start) / length }
  end,
}
