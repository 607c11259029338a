-- A walker from one block: body, muscles and their timing at once (4D topology optimization).  cqlua
-- examples/topology_walker.lua Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.1: 1,600 particles, 4
-- signals, 0.5 s; its walker goes 0.347 m. --method paper is its algorithm 1, which bounds everything from the start.
-- Ours has no bounds at first, and at the end trains the pulses of the binary body anew, for what is lost when soft
-- particles go. Expect: see tests/papers/results.csv.
require("scenes.topology_method").run "walker"
