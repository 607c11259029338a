-- A walker from one block: body, muscles, timing (4D topology optimization).       cqlua examples/topology_walker.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.1: 1,600 particles, 4 signals, 0.5 s; its walker
-- goes 0.347 m. --method paper is its algorithm 1, which bounds everything from the start; ours ends with a body that
-- is binary while it is optimised (scenes/topology_method.lua, docs/topology.md). --seeds 8: from eight starts.
-- Expect: 0.345 m with --seed 1, 0.318 to 0.367 m with others, and 0.412 m with --seed 7, which leaps over its head;
-- all of one piece (--threads 1 --simd avx2). With --duration 1 --training 120 0.92 and 1.09 m, --seed 1 and 2; there
-- the paper has 1.06.
-- Size: 1,600 particles, 500 x 10 steps. Time: 2 min.
require("scenes.topology_method").run "walker"
