-- How far do walkers from topology optimization go in other times, and with fewer or more signals? Three seeds of each.
--   cqlua study run examples/studies/topology.lua --jobs 2    cqlua study plot examples/studies/topology.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), appendix C: 0.1525, 0.347 and 1.056 m in 0.25, 0.5 and 1 s
-- with four signals; 0.328 and 0.350 m in 0.5 s with two and eight.
-- Expect: 15 trials by the default plan, one start each: medians 0.126, 0.328 and 0.591 m in
-- these times, 0.285 and 0.307 m with two and eight signals.
-- Size: 1,600 particles, 15 trials of 250 to 1,000 x 10 steps. Time: 35 min of one core.
local cq = require "cq"
local walker = require "scenes.topology_walker"

local cases = {
  ["0.25 s, 4"] = { duration = 0.25, signals = 4 }, ["0.5 s, 4"] = { duration = 0.5, signals = 4 },
  ["1 s, 4"] = { duration = 1, signals = 4 }, ["0.5 s, 2"] = { duration = 0.5, signals = 2 },
  ["0.5 s, 8"] = { duration = 0.5, signals = 8 },
}
local names = {}
for name in pairs(cases) do names[#names + 1] = name end
table.sort(names)

return cq.Study {
  name = "topology", repeats = cq.option("repeats", 3), minimize = "loss", grid = { case = names },
  run = function(point)
    local run = cq.Experiment(walker(cases[point.case]))
    run:optimize { plan = cq.Plan.topology { starts = 1 } }
    return { loss = run.best.loss }
  end,
}
