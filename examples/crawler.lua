-- A crawler of three blocks learns to row itself forward on four legs of air chambers, by sines of time alone.
--                                                                                       cqlua examples/crawler.lua
-- Expect: 1.26 body lengths after 60 iterations, more than one after 14.
-- Source: ChainQueen (ICRA 2019) and its release: 16 chambers, a stress of 4 across the body, eight sines of 0.06 rad
-- a step, 400 steps; "tens or hundreds of iterations". The release has a Young's modulus of 25, and of 10 in its
-- state: with 25 it goes 0.6 body lengths in 30 iterations, with 10 legs are turned inside out; this one has 15. Its
-- gradient descent at 10 is Adam here, and where its chambers lie is ours. --full has 8 particles along each side of a
-- block.
-- Kept: 95 and 80 % with 2 and 4 times the substeps, 66 % on a finer grid, 84 % at 5 % of anything (cqlua robust).
-- Size: 1,407 particles, 400 x 1 steps. Time: 15 s.
local cq = require "cq"

local full = cq.option("full", false)
local robot = cq.Creature.crawler {
  count = full and 8 or nil, spacing = not full and 0.03 or nil, max = 4,
  material = cq.Material.neo_hookean { young = cq.option("young", 15), poisson = 0.3, density = 1 },
}
local length, start = robot.size[1], { 0.3, 0.17, 0.3 }
local world = cq.World {
  cells = { 48, 14, 24 }, dx = 1 / 20, gravity = { 0, -2, 0 }, dt = 5e-3, substeps = 1,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at(start),
}
local run = cq.Experiment {
  world = world, steps = 400,
  -- 0.06 rad in a step of 5e-3
  controller = cq.Controller.sines { count = 8, frequency = 0.06 / 5e-3 / (2 * math.pi), deviation = 0.1 },
  objective  = function(state) return -state:center(robot)[1] end,
  optimizer  = cq.Optimizer.adam { rate = 0.1, clip = 1, schedule = function(i) return 0.98 ^ i end },
}
run:optimize { iterations = cq.option("iterations", 60) }
print(("crawled %.2f body lengths in %g time units"):format((-run:evaluate().loss - start[1] - length / 2) / length,
  400 * world.control_dt))
run:render "crawler.mp4"
run:render("crawler.png", {
  stills = { 0, 0.7, 1.3, 2 }, camera = { eye = { 1.2, 1.1, 2.7 }, target = { 0.95, 0.1, 0.5 } },
})
