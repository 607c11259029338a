-- A climber between two walls, from a block as wide as their gap.                 cqlua examples/topology_climber.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.2, where it goes up by 0.234 m, and 0.151 m when
-- it is binary. Gravity comes little by little. --method paper is its algorithm 1; ours is that of
-- examples/topology_walker.lua.
-- Expect: with --seed 1 --training 150 0.047 m as a binary body, 0.054 m with pulses trained anew: in hops, from both
-- walls at once. It begins with twice its mean height in place of its last one, for otherwise it learns one leap.
require("scenes.topology_method").run "climber"
