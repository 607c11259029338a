-- How large may the steps of a walker's training be? Seven rates, four first weights each.
--   cqlua study run examples/studies/rate.lua --jobs 2        cqlua study plot examples/studies/rate.lua
-- Source: the walker of ChainQueen (ICRA 2019), section V.B, coarser; rates about that of examples/walker2d.lua.
-- Expect: 0.03 is best: the trunk is at 1.02 (it begins at 0.5) after 40 iterations. 0.1 and 0.3 go in leaps and stay
-- behind, 1 never comes back from its first steps, 0.001 would need hundreds. 2 s a trial on one core.
-- Size: 700 particles, 28 trials of 200 x 4 steps. Time: 1 min.
local cq = require "cq"

local iterations = cq.option("iterations", 40)

-- an experiment of a walker whose linear controller learns at this rate of Adam
local function walker(rate, seed)
  local robot = cq.Robot(require "scenes.walker2d" { count = 10 })
  return cq.Experiment {
    world = cq.World {
      cells = { 120, 30 }, dx = 1 / 40, dt = 1e-2, substeps = "auto", gravity = { 0, -2 },
      walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.1 },
    },
    steps      = 200,
    observer   = cq.Observer.centroid { groups = robot.groups, velocity = true },
    controller = cq.Controller.linear { scale = 0.1, seed = seed },
    objective  = function(state) return -state:center("trunk")[1] end,
    optimizer  = cq.Optimizer.adam { rate = rate, clip = 1 },
  }
end

return cq.Study {
  name = "rate", repeats = 4, minimize = "loss",
  grid = { rate = { 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1 } },
  run  = function(point, trial)
    local run = walker(point.rate, trial.seed)
    run:optimize { iterations = iterations, on_iteration = trial.report }
    return { loss = run.best.loss, at = run.best.iteration }
  end,
}
