-- A walker in space from one cube (4D topology optimization).  cqlua examples/topology_walker3d.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.1, where it goes 0.387 m (0.389 m when it is binary).
-- 8,000 particles. --method paper is its algorithm 1; ours is that of examples/topology_walker.lua. Expect: see tests/papers/results.csv.
local cq = require "cq"
local method = require "scenes.topology_method"

method.run(require "scenes.topology" {
  name = "walker3d", coarse = cq.option("coarse", 1), signals = cq.option("signals", 4), power = cq.option("power", 1),
}, "walker3d")
