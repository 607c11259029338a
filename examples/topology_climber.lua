-- A climber between two walls, from a block as wide as their gap.                 cqlua examples/topology_climber.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.2, where it goes up by 0.234 m, and 0.151 m when
-- it is binary. --method paper is its algorithm 1, with gravity that comes little by little. Ours learns one step that
-- comes again, with gravity that grows as it is borne, and keeps the body its own mirror image (--symmetry no: any).
-- Expect: with --seed 1 --training 150 --simd avx2 0.362 m as a binary body, in 6 minutes of a core; 0.170 m with
-- --symmetry no, and 0.151 m with --simd avx512: rounding errors grow into another gait. With --seed 2 it slides
-- down. It hops from both walls at once, 19 times in a unit of time, and tips over where one side is late.
require("scenes.topology_method").run "climber"
