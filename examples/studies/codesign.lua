-- What is worth learning beside a controller: stiffness, Poisson's ratio or density of every group? Eight combinations,
-- ten seeds.
--   cqlua study run examples/studies/codesign.lua --jobs 2    cqlua study plot examples/studies/codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 11: co-design of a 2D biped.
-- Expect: bands of eight combinations, median and 90 % of ten seeds each. 80 trainings: hours on two cores.
local cq = require "cq"

local iterations = cq.option("iterations", 60)

local ranges = {
  young = { min = 5, max = 20, per = "group" }, poisson = { min = 0.1, max = 0.45, per = "group" },
  density = { min = 0.5, max = 2, per = "group" },
}

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
