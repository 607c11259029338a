-- A rotator, which turns on the spot, from one cube.                              cqlua examples/topology_rotator.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.2, where it turns by 19 rad of its own measure, 17
-- when it is binary. 8,000 particles. --method paper is its algorithm 1; ours is that of examples/topology_walker.lua.
-- Expect: with --coarse 2 --quick 0, 1,000 particles, 2.2 rad, binary, after 4.8 min of a core. It was not run in full.
require("scenes.topology_method").run "rotator"
