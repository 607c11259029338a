-- A walker in space from one cube.                                               cqlua examples/topology_walker3d.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.1, where it goes 0.387 m, and 0.389 m when it is
-- binary. 8,000 particles. --method paper is its algorithm 1; ours is that of examples/topology_walker.lua.
-- Expect: 0.369 m with --seed 1 --iterations 700 --training 200, a hopper on two legs, binary; two hours of a busy
-- core. With --substeps 4 --iterations 1000 --training 200, steps of 0.25 ms to the end, 0.411 m in as long; each
-- goes less in the steps of the other one. Of six coarse ones five only leap once, when time is up, unless the
-- adjoint decays (--decay 0.3).
-- Size: 8,000 particles, 500 x 10 steps. Time: 2 h.
require("scenes.topology_method").run "walker3d"
