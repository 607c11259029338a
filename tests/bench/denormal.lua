-- denormal: what numbers next to zero cost. A block of 1,600 particles in 2D without weight that moves so slowly that
-- its numbers have no full digits, over the same block at speed 1.
--   build/cqlua tests/bench/denormal.lua --threads 1 [--rounds N] [--out DIR]
-- leaves denormal.csv in DIR. Ratios are those of the shortest times of all rounds, whose cases take turns, and of the
-- time on the core: so neighbours change little, and one thread is all that can be measured.
local cq = require "cq"
local host = require "cq.host"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"

local rounds = cq.option("rounds", 10)
local REPEATS = 5
assert(require("cq.option").program.threads == 1, "denormal.lua measures one thread: --threads 1")
kernel.clock = os.clock

local cases = {
  { name = "block", precision = "float32", speeds = { 1, 1e-37, 1e-38, 1e-40 } },
  { name = "block", precision = "float64", speeds = { 1, 1e-307, 1e-308, 1e-310 } },
}

local engine_name

-- shortest times of a block at some speed
local function time(precision, speed)
  local scene = require "scenes.falling_block" { dim = 2, side = 40, cells = { 100, 100 }, substeps = 10 }
  scene.world.precision, scene.world.gravity = precision, { 0, 0 }
  local world = cq.World(scene.world)
  local timing = kernel.time(world, { velocity = scene.velocity * speed, steps = 4, repeats = REPEATS })
  engine_name = world.device:gsub(", float%d+$", "")
  world:close()
  return { machine.least(timing.forward), machine.least(timing.backward) }
end

local rows = {}
for _, case in ipairs(cases) do
  local least = {}
  for _ = 1, rounds do
    for k, speed in ipairs(case.speeds) do
      local found, known = time(case.precision, speed), least[k] or { math.huge, math.huge }
      least[k] = { math.min(found[1], known[1]), math.min(found[2], known[2]) }
    end
  end
  for k = 2, #case.speeds do
    local there, back = least[k][1] / least[1][1], least[k][2] / least[1][2]
    rows[#rows + 1] = ("block,%s,%g,%.2f,%.2f"):format(case.precision, case.speeds[k], there, back)
  end
end

local facts = machine.facts()
local head = ("%s, %d cores, %s, %s, %s; %s"):format(facts.processor, facts.cores, facts.system, facts.compiler,
  facts.date, engine_name)
print(head)
print(table.concat(rows, "\n"))
local folder = cq.option("out", nil)
if folder then
  host.make_folder(folder)
  local file = assert(io.open(folder .. "/denormal.csv", "w"))
  file:write("# ", head, "\ncase,precision,speed,forward_ratio,backward_ratio\n", table.concat(rows, "\n"), "\n")
  file:close()
end
