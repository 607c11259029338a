-- A soft gripper learns to hold a ball: pressures over time in three groups of chambers, by explicit steps. After 0.2 s
-- the table under the ball goes down by 24 mm.                                             cqlua examples/gripper.lua
-- Source: what the finger of the soft-finger paper (Robotica 2024) was made for; gripper and ball are of our own.
-- Expect: with the first guess, 9 kPa in all chambers, the ball slips by 5 mm; the best of 25 iterations lifts it by
-- 1.7 mm of the 2 that are wanted. In space, --dim 3, three fingers close by implicit steps of 270 times the explicit
-- limit, and hold the ball with the first guess, 25 kPa: it sinks by 0.2 mm, in one to two minutes. An iteration of
-- training takes nine there, so that there is none unless --iterations asks for it.
-- Bodies share one velocity at each node of the grid: they stick to each other without friction, and do so across a gap
-- of a cell, 2 mm, which stays between ball and fingers. A ball four times as heavy slips more, and learns slower.
-- Kept: 66 and -3 % with 2 and 4 times the substeps, none on a finer grid, -40 % at 5 % of anything (cqlua robust).
-- Size: 2,892 particles, 80 x 146 steps. Time: 3 min with --threads 1, six processes on the cores.
local cq = require "cq"

local dim    = cq.option("dim", 2)
local plane  = dim == 2
local steps  = cq.option("steps", plane and 80 or 30)      -- control steps of 5 ms, in space of 10
local first  = cq.option("first", plane and 0.6 or 1)    -- first guess of all pressures, of 15 or 25 kPa
local lift   = cq.option("lift", plane and 2 or 0)   -- where the ball should be in the end, over where it lay [mm]
local effort = cq.option("effort", 0.1)              -- what a mean square of the pressures of 1 costs [mm^2]
local MM     = 1e-3
local scene  = require "scenes.gripper" { dim = dim }
local ball   = scene.ball
local goal   = cq.tensor(scene.place) + cq.tensor { 0, lift * MM, dim == 3 and 0 or nil }

-- in space pressure rises in three stages, for a particle may move by one cell in an implicit step
local hold, rows = plane and 10 or 3, {}
for k = 1, math.ceil(steps / hold) do
  rows[k] = {}
  for i = 1, 3 do rows[k][i] = plane and first or first * math.min(1, k / 3) end
end

local run = cq.Experiment {
  world = cq.World(scene.world), steps = steps,
  controller = cq.Controller.open_loop { steps = steps, hold = hold, init = rows, min = 0, max = 1 },
  objective = {
    terminal = function(state) return ((state:center(ball) - goal) / MM):square():sum() end,
    effort = function(u) return effort * u:square():mean() end,
  },
  optimizer = cq.Optimizer.adam { rate = 0.05 },
}
-- by how much the ball is higher at the end than at first [mm]
local function height(roll) return (roll.state:center(ball)[2]:item() - scene.place[2]) / MM end
local before = height(run:rollout(run.params))
local iterations = cq.option("iterations", plane and 25 or 0)
local trained = "not trained"
if iterations > 0 then
  run:optimize { iterations = iterations }
  trained = ("trained %+.2f"):format(height(run:rollout(run.best.params)))
end
print(("the table goes down by %.0f mm; the ball by %+.2f mm with the first guess, %s, wanted %+.2f"):format(
  scene.fall / MM, before, trained, lift))
run:render("gripper.mp4", { colour = { by = "von_mises", range = { 0, 25 }, unit = "kPa" }, speed = 0.1 })
run:render("gripper.png", { colour = { by = "von_mises", range = { 0, 25 }, unit = "kPa" }, layout = "apart",
  stills = plane and { 0, 0.2, 0.25, 0.4 } or { 0, 0.1, 0.2, 0.3 } })
