-- gaits: what a trained gait keeps at parts of its engine step, by the steps that it was trained with. An example runs
-- as it is, but for the transfer or the formulation of its world; then its best parameters are evaluated with 2, 4 and
-- 8 times its substeps.
--   cqlua tests/bench/gaits.lua --example walker2d --steps decay --seed 1 --csv tests/bench/gaits.csv
-- Steps: apic, decay, a rate of decay, or total_lagrangian. The material may have a --viscosity, or be --law
-- neo_hookean in the place of corotated, which legs that push turn inside out; --refine 2 trains with twice the
-- substeps. Other options are the example's, such as --iterations. A row of the table is replaced by a later one of the
-- same example, steps and seed.
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
local HEAD = "example,steps,seed,iterations,way,way_2,way_4,way_8,minutes"

local name = cq.option("example", "walker2d")
local steps = cq.option("steps", "apic")
local viscosity, law, refine = cq.option("viscosity", 0), cq.option("law", ""), cq.option("refine", 1)
local csv = cq.option("csv", "")
local example = assert(examples[name], "no example of this name")

local nouns, run, world = { World = cq.World, Experiment = cq.Experiment }, nil, nil
local function in_place(noun, make)
  rawset(cq, noun, setmetatable({}, { __index = nouns[noun], __call = function(_, fields) return make(fields) end }))
end
in_place("World", function(fields)
  if steps == "total_lagrangian" then
    fields.formulation = steps
  elseif steps ~= "apic" then
    fields.transfer = { decay = tonumber(steps) or "auto" }
  end
  fields.substeps = refine * fields.substeps
  world = fields
  return nouns.World(fields)
end)
in_place("Experiment", function(fields)
  run = nouns.Experiment(fields)
  run.render = function() end
  return run
end)

local Material = cq.Material
local function material(kind)
  return function(fields)
    if viscosity > 0 then fields.viscosity = viscosity end
    return Material[law ~= "" and law or kind](fields)
  end
end
rawset(cq, "Material", setmetatable({ corotated = material "corotated", neo_hookean = material "neo_hookean" },
  { __index = Material, __call = function(_, ...) return Material(...) end }))

local began = os.time()
-- a training whose simulation fails for good keeps its best gait
local ok, problem = pcall(dofile, ("examples/%s.lua"):format(name))
if not ok then
  if not (run and run.best) then error(problem, 0) end
  print(problem)
end
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

local label = name .. (law ~= "" and " " .. law or "") .. (viscosity > 0 and " viscosity " .. viscosity or "")
local key = ("%s,%s,%d,"):format(label, steps, cq.option("seed", 0))
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
