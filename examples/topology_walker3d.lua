-- A walker in space from one cube.                                               cqlua examples/topology_walker3d.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.1, where it goes 0.387 m, and 0.389 m when it is
-- binary. 8,000 particles. --method paper is its algorithm 1; ours is that of examples/topology_walker.lua.
-- Expect: with --coarse 2, 1,000 particles, 0.228 m, binary, after 1.6 min of a core; 0.250 m after 3.1 min, with
-- --free 250 --rough 400 --soft 250 --iterations 400. In full, which was not run, an iteration takes 6 s of a core.
require("scenes.topology_method").run "walker3d"
