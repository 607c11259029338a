-- How far do walkers from topology optimization go in other times, and with fewer or more signals? Three seeds of each.
--   cqlua study run examples/studies/topology.lua --jobs 2    cqlua study plot examples/studies/topology.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), appendix C: 0.1525, 0.347 and 1.056 m in 0.25, 0.5 and 1 s
-- with four signals; 0.328 and 0.350 m in 0.5 s with two and eight.
-- Expect: 15 trials; slices.png of the plot has all of them. The best of three, of one piece: 0.17 and 0.34 m in 0.25
-- and 0.5 s with four signals, 0.36 and 0.40 m in 0.5 s with two and eight. In 1 s by exact gradients (--decay 0)
-- 0.77 m; with an adjoint that decays, as it is, 0.92 and 1.09 m were found for two seeds by
-- examples/topology_walker.lua --duration 1 --training 120, not by the study.
-- Size: 1,600 particles, 15 trials of 250 to 1,000 x 10 steps. Time: 21 min with --decay 0.
local cq = require "cq"

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
    -- cqlua check optimises nothing
    return require("scenes.topology_method").once("walker", cases[point.case]) or { loss = 0 }
  end,
}
