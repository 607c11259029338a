-- ranks: weak scaling of scenes over MPI ranks, for docs/studies.md: as many scenes for each rank, and what their sums
-- cost alone.
--   mpirun -n 2 build/cqlua tests/bench/ranks.lua [--each 8] [--repeat 9]
local cq = require "cq"
local ranks = cq.Ranks.mpi()
local clock = require("cq.base.engine").C.cq_clock

local each, count = cq.option("each", 8), cq.option("repeat", 9)

-- median and best of the seconds that f takes, and the processor time of this rank; all ranks begin together
local function timed(f)
  f()
  local times, busy = {}, 0
  for k = 1, count do
    ranks:map(ranks.size, function() return 0 end)
    local began, worked = clock(), os.clock()
    f()
    times[k], busy = clock() - began, busy + os.clock() - worked
  end
  table.sort(times)
  return times[math.ceil(count / 2)], times[1], busy / count
end

local robot = cq.Robot(require "scenes.biped" { count = 10 })
local world = cq.World {
  cells = { 200, 32 }, dx = 1 / 32, gravity = { 0, -2 }, dt = 1e-2, substeps = 3,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.12 },
}
local observer = cq.Observer.centroid { groups = robot.groups, velocity = true }
local controller = cq.Controller.mlp { hidden = { 64, 64 } }
local params = controller:prepare(world, observer)
local step = ranks:value_and_grad(each * ranks.size, function(p, k)
  local roll = world:rollout { steps = 200, observer = observer, controller = controller:with(p),
    gravity = { 0, -1 - k / (each * ranks.size) } }
  return -roll.state:center(robot)[1], roll
end)
local median, best, busy = timed(function() step(params) end)
print(("%d ranks, %d scenes each, %d weights: %.4f s an iteration (best %.4f), %.4f s of processor time"):format(
  ranks.size, each, controller.params.w1.count + controller.params.w2.count + controller.params.w3.count, median,
  best, busy))

for _, length in ipairs { 1e3, 1e5, 1e6 } do
  local p = cq.param(cq.zeros { length })
  local add = ranks:value_and_grad(ranks.size, function(q, k) return q:sum() + k end)
  local seconds, least, worked = timed(function() add(p) end)
  print(("sums alone, a scene each, %d parameters: %.3f ms (best %.3f), %.3f ms of processor time"):format(length,
    seconds * 1e3, least * 1e3, worked * 1e3))
end
