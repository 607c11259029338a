-- A rotator, which turns on the spot, from one cube.                              cqlua examples/topology_rotator.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.2, where it turns by 19 rad of its own measure, 17
-- when it is binary. 8,000 particles. --method paper is its algorithm 1; ours is in scenes/topology_method.lua.
-- Expect: 12.9 rad while it is soft, 13.0 binary, and with --training 250 14.9, after 67 min of a busy core. Its steps
-- are of 0.25 ms: in the paper's of 0.1 ms the same body turns by 8.0, for which its gait was not made.
require("scenes.topology_method").run "rotator"
