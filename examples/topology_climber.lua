-- A climber between two walls, from a block as wide as their gap.                 cqlua examples/topology_climber.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.2, where it goes up by 0.234 m, and 0.151 m when
-- it is binary. --method paper is its algorithm 1, with gravity that comes little by little. Ours learns one step that
-- comes again, with an adjoint that decays (--decay), gravity that grows as it is borne, and a mirror (--symmetry).
-- Expect: with --seed 1 --training 150 --simd avx2 0.297 m as a binary body of one piece, in 5 minutes of a shared
-- core; with --training 40 0.232 m with --seed 2, and 0.329 m with --seed 3. It hops from both walls at once, 19 times
-- in a unit of time, upright to the end. With other instructions (--simd) the same seed has another gait.
-- Size: 1,600 particles, 1,000 x 10 steps. Time: 5 min.
require("scenes.topology_method").run "climber"
