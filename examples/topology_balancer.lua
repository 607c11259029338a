-- A balancer, whose top stays where it is while the floor shakes it.            cqlua examples/topology_balancer.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.3, where it keeps its top within 0.00126 m, and
-- 0.0226 m when it is binary. Its top is solid. --method paper is its algorithm 1; ours is that of
-- examples/topology_walker.lua.
-- Expect: 0.0069 m, binary, with --seed 1, and 0.0050 m with its pulses trained anew (--training 150).
-- Size: 1,600 particles, 1,000 x 10 steps. Time: 8 min.
require("scenes.topology_method").run "balancer"
