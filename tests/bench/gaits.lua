-- gaits: what a trained gait keeps at parts of its engine step, by the transfer that it was trained with. An example
-- runs as it is, but for the transfer of its world; then its best parameters are evaluated with 2, 4 and 8 times its
-- substeps.
--   cqlua tests/bench/gaits.lua --example walker2d --transfer decay --seed 1 --csv tests/bench/gaits.csv
-- Other options are the example's, such as --iterations. A row of the table is replaced by a later one of the same
-- example, transfer and seed.
local cq = require "cq"
local atomic_file = require "cq.base.atomic_file"
local read_file = require "cq.base.read_file"

-- x where a body starts and its length, as the example says them
local examples = {
  walker2d = { start = 0.5, length = 0.6, group = "trunk" },
  biped = { start = 0.35, length = 0.3 },
  quadruped = { start = 0.3, length = 0.3 },
}
local PARTS = { 2, 4, 8 }
local HEAD = "example,transfer,seed,iterations,way,way_2,way_4,way_8,minutes"

local name = cq.option("example", "walker2d")
local transfer = cq.option("transfer", "apic")     -- apic, decay, or a rate
local csv = cq.option("csv", "")
local example = assert(examples[name], "no example of this name")

local nouns, run, world = { World = cq.World, Experiment = cq.Experiment }, nil, nil
local function in_place(noun, make)
  rawset(cq, noun, setmetatable({}, { __index = nouns[noun], __call = function(_, fields) return make(fields) end }))
end
in_place("World", function(fields)
  fields.transfer = transfer ~= "apic" and { decay = tonumber(transfer) or "auto" } or nil
  world = fields
  return nouns.World(fields)
end)
in_place("Experiment", function(fields)
  run = nouns.Experiment(fields)
  run.render = function() end
  return run
end)

local began = os.time()
dofile(("examples/%s.lua"):format(name))
local minutes = (os.time() - began) / 60
local _, iterations = (read_file(run.folder .. "/history.csv") or ""):gsub("\n", "")      -- and a head

-- body lengths that the best parameters go
local function way(part)
  local fields = {}
  for key, value in pairs(world) do fields[key] = value end
  fields.substeps = part * run.world.substeps
  local other = nouns.World(fields)
  local state = run:evaluate { world = other }.rollout.state
  return (state:center(example.group or other.robot)[1]:item() - example.start) / example.length
end
local ways = { way(1) }
for _, part in ipairs(PARTS) do ways[#ways + 1] = way(part) end

local key = ("%s,%s,%d,"):format(name, transfer, cq.option("seed", 0))
local row = ("%s%d,%.4f,%.4f,%.4f,%.4f,%.1f"):format(key, iterations - 1, ways[1], ways[2], ways[3], ways[4], minutes)
print(HEAD)
print(row)
if csv ~= "" then
  local lines = { HEAD }
  for line in (read_file(csv) or ""):gmatch "[^\n]+" do
    if line ~= HEAD and line:sub(1, #key) ~= key then lines[#lines + 1] = line end
  end
  lines[#lines + 1] = row
  table.sort(lines, function(a, b) return a ~= b and (a == HEAD or (b ~= HEAD and a < b)) end)
  atomic_file.write(csv, table.concat(lines, "\n") .. "\n", { what = "--csv" })
end
