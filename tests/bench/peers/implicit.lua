-- implicit: the falling cube of the peers by implicit steps.
--   cqlua tests/bench/peers/implicit.lua --case 3d-8000 --dt 0.005 --tolerance 1e-2 --duration 0.1
--
-- Speaks as cqlua.lua does; "first" is the height of the cube's middle at the end, "run" answers processor time.
-- --dt 0: the explicit steps of the scene.
local cq = require "cq"
local scenes = require "tests.bench.peers.scenes"

local scene = scenes.make(cq.option("case", "3d-8000"))
local dt, duration = cq.option("dt", 0.005), cq.option("duration", 0.1)
if dt > 0 then
  scene.world.dt, scene.world.integrator = dt, cq.Implicit { tolerance = cq.option("tolerance", 1e-2) }
end
local world = cq.World(scene.world)
local robot = world.robot:with { velocity = scene.velocity }

local function run()
  local start = os.clock()
  local roll = world:rollout { steps = math.floor(duration / world.control_dt + 0.5), robot = robot }
  local spent, height = os.clock() - start, roll.state:center("block")[2]:item()
  roll:release()
  return spent, height
end

local function answer(...)
  io.write(...)
  io.write "\n"
  io.flush()
end

answer(("first %.9g"):format(select(2, run())))
for line in io.lines() do
  if line ~= "run" then break end
  answer(("time %.9f 0"):format((run())))
end
