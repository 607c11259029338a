-- A long body learns to run on six legs of air chambers.                                      cqlua examples/runner.lua
-- Expect: 1.07 body lengths after 100 iterations, more than one after 54.
-- Source: ChainQueen (ICRA 2019), fig. 6, and its release: a body of 5 x 3 blocks of 0.2 on legs of 2 x 2 chambers (the
-- paper has four legs, the release three pairs), 4 time units, "tens or hundreds of iterations". The release has a
-- stress of 1.3 and a Young's modulus of 30: so it went no farther than 0.15 lengths in 20 iterations here, on four
-- legs, which change their length by 4 %. This one has 4 and 20, the values of quadruped.lua at twice the size, its
-- network in the place of the release's linear controller, a control step of 0.05, and distance in the place of the
-- release's goal at (5, 2.5, 1.5). --legs 4 --max 1.3 --young 30 are the paper's legs and the release's constants; --full
-- has 8 particles along each side of a block, as the release.
-- Kept: 92 and 66 % with 2 and 4 times the substeps, 80 % on a finer grid, 97 % at 5 % of anything (cqlua robust).
-- Size: 2,496 particles, 80 x 10 steps. Time: 1 min.
local cq = require "cq"

local full, side, body = cq.option("full", false), 0.2, { 5, 3 }
local robot = cq.Creature.nped {
  legs = cq.option("legs", 6), body = body, side = side, count = cq.option("count", full and 8 or 4),
  max = cq.option("max", 4),
  material = cq.Material.neo_hookean { young = cq.option("young", 20), poisson = 0.3, density = 1 },
}
local length, start = body[1] * side, { 0.4, 0.5, 0.5 }       -- it falls a little
local world = cq.World {
  cells = { 60, 15, 16 }, dx = 0.1, gravity = { 0, -2, 0 }, dt = 0.05, substeps = 10,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at(start),
}
local run = cq.Experiment {
  world = world, duration = 4,
  observer   = cq.Observer.centroid { groups = robot.groups, velocity = true },
  controller = cq.Controller.mlp { hidden = { 64, 64 } },
  objective  = function(state) return -state:center(robot)[1] end,
  optimizer  = cq.Optimizer.adam { rate = 5e-3, clip = 1, schedule = function(i) return 0.99 ^ i end },
}
run:optimize { iterations = cq.option("iterations", 100) }
print(("ran %.2f body lengths in 4 time units"):format((-run:evaluate().loss - start[1] - length / 2) / length))
run:render "runner.mp4"
run:render("runner.png", {
  stills = { 0, 2, 3, 4 }, camera = { eye = { 1.9, 1.9, 4.8 }, target = { 1.4, 0.25, 0.6 } },
})
