-- A climber between two walls, from a block as wide as their gap.                 cqlua examples/topology_climber.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.2, where it goes up by 0.234 m, and 0.151 m when
-- it is binary. Gravity comes little by little. --method paper is its algorithm 1; ours is that of
-- examples/topology_walker.lua.
-- Expect: little; an earlier form of the method brought it to 0.012 m, and this one was not run in full.
require("scenes.topology_method").run "climber"
