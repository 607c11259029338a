-- An arm hangs from the ceiling and swings up to a goal, where it is to be at rest: with two fixed stiffnesses, and
-- with one that it learns.                                                                   cqlua examples/arm3d.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 10: E of 300, of 400, and learnt.
-- Expect: co-design at rest at the goal from evaluation 77 on, E 10 from 129 on, E 13.3 never (0.05 from it);
-- the effort of co-design is 0.69 of that of E 10. With --full 75, 129 and never, 0.68.
-- The paper: 17,280 particles, eight chambers, open loop, E from 300 within 150 to 400; co-design needs the fewest
-- evaluations, and less than three quarters of the effort. Gravity, pressure and goal are not printed: E and gravity
-- are a thirtieth here, and gravity of 2 and the goal those of the first paper's release. --full has the paper's
-- particles; --optimizer slsqp takes that of NLopt (libnlopt0), the default is built in. An arm that learns to be soft
-- under its root is stretched threefold there: with two particles in a cell along it, as 1 / 40 on this grid or --full
-- on one of 1 / 30, they come to lie more than a cell apart, and it tears.
-- Kept: by --iterations 80, of the way to the goal, 90 and 70 % with 2 and 4 times the substeps, 75 % on a finer grid,
-- 94 % at 5 % of anything (cq.robustness of cq.load, whose objective is the distance).
-- Size: 3,000 particles, three times 200 x 4 steps; 17,280 with --full. Time: 3 min; 29 min with --full.
local cq = require "cq"

local full = cq.option("full", false)
local dx = 1 / 20
local range = { 5, 40 / 3 }
local reach = require "scenes.arm_reach" {
  dim = 3, count = full and 12 or nil, spacing = not full and 1 / 50 or nil,
  cells = { math.ceil(1.2 / dx), math.ceil(1 / dx), math.ceil(1.2 / dx) }, dx = dx,
  at = { 0.5, 0.3, 0.5 }, goal = { 0.15, 0.15, 0.25 }, hanging = true, gravity = { 0, -2, 0 },
  dt = 1e-2, substeps = 4, steps = 200, hold = 5, strength = 1.2, patch = 0.05, folder = "runs/arm3d",
}
local results = reach:compare({
  { name = "E 10", young = 10 }, { name = "E 13.3", young = 40 / 3 },
  { name = "co-design", young = 10, range = range },
}, { iterations = cq.option("iterations", 200), optimizer = function() return reach.optimizer(0.05, 2000) end })

if cq.option("render", true) then
  reach:plot(results, "violations.png")
  results[3].run:render("arm3d.png", {
    stills = { 0, 0.4, 0.8, 1.2, 1.6, 2 }, goals = { { at = reach.goal:totable(), radius = 0.03 } },
    colour = { by = "young", label = "Young's modulus", range = range },
    camera = { eye = { 1.84, 0.78, -0.18 }, target = { 0.64, 0.56, 0.64 } },
  })
end
