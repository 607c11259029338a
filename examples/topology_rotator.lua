-- A rotator, which turns on the spot, from one cube.                              cqlua examples/topology_rotator.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.2.2, where it turns by 19 rad of its own measure, 17
-- when it is binary. 8,000 particles. --method paper is its algorithm 1; ours is in scenes/topology_method.lua.
-- Expect: with --soft 400 --iterations 480 17.2 rad while it is soft, 15.4 binary, and with --training 1000 19.9, after
-- 91 min of a busy core (soft 220, the default, and --training 250: 14.9). Its steps are of 0.25 ms: in the paper's of
-- 0.1 ms the same body turns by 9.9, for which its gait was not made.
-- Size: 8,000 particles, 1,000 x 4 steps. Time: 91 min.
require("scenes.topology_method").run "rotator"
