-- An arm of two links is to be at a goal at the end, and at rest there: with its own stiffness, with three times that,
-- and with one that it learns.                                                               cqlua examples/arm2d.lua
-- Source: ChainQueen (ICRA 2019), fig. 5 and 8: only co-design rests at the goal, stiff on the inner side of its bend.
-- Expect: at rest at the goal from evaluation 51 on (--optimizer slsqp: 21), with 0.49 (0.38) of the effort of E 10,
-- which ends 0.047 from it, and E 30 0.14; chambers of the upper link of E 9.9 inside and 5.5 outside (15 and 6).
-- As in its release: 1,176 particles, 800 substeps, stress of chambers within 0.5, E within 3 to 40; first both
-- constraints, then the least effort. Its SLSQP is that of NLopt (libnlopt0); the default is built in. Signals are held
-- over ten control steps (--hold 1: free in each of the 400, as in the release), and stiffness is that of squares of
-- 0.05.
-- Kept: 97 and 92 % with 2 and 4 times the substeps, 97 % on a finer grid, 92 % at 5 % of anything (cqlua robust).
-- Size: 1,176 particles, three times 400 x 2 steps. Time: 45 s.
local cq = require "cq"

local reach = require "scenes.arm_reach" {
  dim = 2, count = 14, cells = { 40, 36 }, dx = 1 / 40, at = { 0.4, 0.1 }, goal = { 0.2, -0.15 },
  dt = 5e-3, substeps = 2, steps = 400, hold = cq.option("hold", 10),
  strength = 0.5, patch = 0.05, folder = "runs/arm2d",
}
local results = reach:compare({
  { name = "E 10", young = 10 }, { name = "E 30", young = 30 },
  { name = "co-design", young = 10, range = { 3, 40 } },
}, { iterations = cq.option("iterations", 200), optimizer = function() return reach.optimizer(0.05, 100) end })

local young, goals = reach:young(results[3]), { { at = reach.goal:totable(), radius = 0.02 } }
-- mean of Young's modulus over a chamber's particles; the second chamber of a link is on the inner side of the bend,
-- which goes to the right
local function mean(link, chamber)
  local name = ("link.%d.chamber.%d"):format(link, chamber)
  return young:gather(reach.robot:group(name):particles(), 1):mean():item()
end
for link = 1, 2 do
  print(("E of link %d: %.1f on the inner side of the bend, %.1f on the outer one"):format(link, mean(link, 2),
    mean(link, 1)))
end

if cq.option("render", true) then
  reach:plot(results, "violations.png")
  local options = { goals = goals, colour = { by = "young", label = "Young's modulus", range = { 3, 30 } } }
  for k = 1, 2 do results[k].run:render("last.png", options) end
  options.stills = { 0, 0.4, 0.8, 1.2, 1.6, 2 }
  results[3].run:render("arm2d.png", options)
end
