-- gaits: what a trained gait keeps at parts of its engine step, by the steps that it was trained with. An example runs
-- as it is, but for the transfer or the formulation of its world; then its best parameters are evaluated with 2, 4 and
-- 8 times its substeps. A robot of which no way in body lengths is known here has its gain (cq.robustness) as its way.
-- Of several experiments of an example that of the least loss counts.
--   cqlua tests/bench/gaits.lua --example walker2d --steps decay --seed 1 --csv tests/bench/gaits.csv
-- Steps: apic, decay, a rate of decay, or total_lagrangian. The material may have a --viscosity, or be --law
-- neo_hookean in the place of corotated, which legs that push turn inside out; --refine 2 trains with twice the
-- substeps; --collisions lets surfaces push each other apart (total_lagrangian). Other options are the example's, such
-- as --iterations. A row of the table is replaced by a later one of the same example, steps and seed.
-- --kept tests/bench/kept.csv: also what is kept of the gain by cq.robustness, in percent, with --draws of all at once.
-- --example all: each row of both tables of tests/bench/gaits.md of seed 0, one after another; hours.
-- --times: only the seconds of an iteration, measured anew for all rows of this example and steps; with --iterations 1.
local cq = require "cq"
local atomic_file = require "cq.base.atomic_file"
local changes = require "cq.robustness.changes"
local host = require "cq.host"
local is = require "cq.base.schema"
local read_file = require "cq.base.read_file"

-- x where a body starts and its length, as the example says them; of arms, whose loss is an effort, the way to the goal
-- counts, and the last experiment
local examples = {
  arm2d = { goal = true }, arm3d = { goal = true },
  walker2d = { start = 0.5, length = 0.6, group = "trunk" },
  biped = { start = 0.35, length = 0.3 },
  cable_biped = { start = 0.3, length = 0.3 },
  quadruped = { start = 0.3, length = 0.3 },
}
local PARTS = { 2, 4, 8 }
local HEAD = "example,steps,seed,iterations,way,way_2,way_4,way_8,minutes,seconds"
-- rows of tests/bench/gaits.md of seed 0, and the steps that each is trained with
local ALL, APIC, OWN = { "apic", "decay", "total_lagrangian" }, { "apic" }, { "total_lagrangian" }
local BOTH, DAMPED = { "apic", "total_lagrangian" }, { "apic", "decay" }
local ROWS = {
  { "quadruped --iterations 20", ALL }, { "biped --particles 20 --iterations 40 --viscosity 0.05", ALL },
  { "walker2d --iterations 100 --law neo_hookean --viscosity 0.02 --refine 2", ALL },
  { "biped --particles 20 --iterations 40", DAMPED }, { "biped --particles 20 --iterations 40 --collisions", OWN },
  { "walker2d --iterations 100", DAMPED },
  { "arm_length", BOTH }, { "runner", BOTH }, { "arm2d", BOTH }, { "arm3d", BOTH },
  { "crawler", APIC }, { "crawler --viscosity 0.05 --collisions", OWN },
  { "codesign", APIC }, { "codesign --law neo_hookean --viscosity 0.02 --refine 2 --collisions", OWN },
  { "diffmpm", APIC }, { "diffmpm --viscosity 0.02 --refine 4 --collisions", OWN },
  { "terrain", APIC }, { "terrain --viscosity 0.05 --collisions", OWN },
  { "rhino", APIC }, { "rhino --viscosity 0.05 --collisions", OWN },
  { "creature", APIC }, { "creature --viscosity 0.05 --collisions", OWN },
  { "cable_biped", APIC }, { "cable_biped --viscosity 0.05 --collisions", OWN },
}

local name = cq.option("example", "walker2d")            -- any of examples/ that trains
local steps = cq.option("steps", "apic")
if not tonumber(steps) then cq.option("steps", "apic", is.one_of { "apic", "decay", "total_lagrangian" }) end
local viscosity, refine = cq.option("viscosity", 0), cq.option("refine", 1)
local law = cq.option("law", "", is.one_of { "", "neo_hookean", "corotated" })
local collisions = cq.option("collisions", false)
local csv, kept_csv, draws = cq.option("csv", ""), cq.option("kept", ""), cq.option("draws", 32)
local only_times = cq.option("times", false)

if name == "all" then
  for _, row in ipairs(ROWS) do
    for _, with in ipairs(row[2]) do
      local command = ("%s tests/bench/gaits.lua --example %s --steps %s --csv %s --threads %d"):format(host.executable,
        only_times and row[1]:gsub(" %-%-iterations %d+", "") or row[1], with,
        csv ~= "" and csv or "tests/bench/gaits.csv", cq.option("threads", 0))
      command = command .. (only_times and " --iterations 1 --times" or
        (" --kept %s --draws %d"):format(kept_csv ~= "" and kept_csv or "tests/bench/kept.csv", draws))
      print(command)
      assert(os.execute(command) == 0, "this failed")
    end
  end
  return
end
local example = examples[name]

-- Processor time of a loss and its gradient of a run at its parameters [s], the median of three.
local function seconds_of(run)
  local seconds = {}
  local params = run.extracted and run.params.design.pulses or run.params
  for k = 1, 3 do
    local start = os.clock()
    cq.value_and_grad(function(given)
      if not run.extracted then return run:loss(run:rollout(given)) end
      return run:loss(run:rollout { design = { pulses = given } })
    end)(params)
    seconds[k] = os.clock() - start
  end
  table.sort(seconds)
  return seconds[2]
end

local nouns, runs = { World = cq.World, Experiment = cq.Experiment }, {}
local function in_place(noun, make)
  rawset(cq, noun, setmetatable({}, { __index = nouns[noun], __call = function(_, fields) return make(fields) end }))
end
in_place("World", function(fields)
  if steps == "total_lagrangian" then
    fields.formulation, fields.collisions = steps, collisions
  elseif steps ~= "apic" then
    fields.transfer = { decay = tonumber(steps) or "auto" }
  end
  if refine > 1 then fields.substeps = refine * (fields.substeps or 1) end
  return nouns.World(fields)
end)
in_place("Experiment", function(fields)
  local run = nouns.Experiment(fields)
  run.render = function() end
  runs[#runs + 1] = run
  return run
end)

if example and example.goal then
  local make = require "scenes.arm_reach"
  package.loaded["scenes.arm_reach"] = function(fields)
    local reach = make(fields)
    example.goal = reach.goal
    function reach.plot() end
    return reach
  end
end

-- materials of examples, and those that creatures have unless one is given
local Material = cq.Material
local laws = { corotated = Material.corotated, neo_hookean = Material.neo_hookean }
for kind in pairs(laws) do
  rawset(Material, kind, function(fields)
    if viscosity > 0 then fields.viscosity = viscosity end
    return laws[law ~= "" and law or kind](fields)
  end)
end

local began = os.time()
-- a training whose simulation fails for good keeps its best gait
local ok, problem = pcall(dofile, ("examples/%s.lua"):format(name))
local run
for _, other in ipairs(runs) do
  local worse = run and not (example and example.goal) and other.best and run.best.loss <= other.best.loss
  if other.best and not worse then run = other end
end
if not run then error(ok and ("%s trains no experiment that keeps its best"):format(name) or problem, 0) end
if not ok then print(problem) end

local label = name .. (law ~= "" and " " .. law or "") .. (viscosity > 0 and " viscosity " .. viscosity or "")
  .. (collisions and " collisions" or "")
local key = ("%s,%s,%d,"):format(label, steps, cq.option("seed", 0))

if only_times then
  local path, of = csv ~= "" and csv or "tests/bench/gaits.csv", label .. "," .. steps .. ","
  local seconds = ("%.3f"):format(seconds_of(run))
  local rows = assert(read_file(path), path .. " has no rows yet: leave out --times"):gsub("[^\n]+", function(line)
    if line:sub(1, #of) ~= of then return end
    local cells = {}
    for cell in line:gmatch "[^,]+" do cells[#cells + 1] = cell end
    cells[10] = seconds
    return table.concat(cells, ",")
  end)
  print(of .. seconds)
  return atomic_file.write(path, rows, { what = "--csv" })
end

local minutes = (os.time() - began) / 60
-- without a history, as constrained optimization has none, the iteration of the best
local _, iterations = (run.folder and read_file(run.folder .. "/history.csv") or ""):gsub("\n", "")
iterations = iterations > 0 and iterations - 1 or run.best.iteration
local report = (kept_csv ~= "" or not example) and cq.robustness(run, { draws = kept_csv ~= "" and draws or 0 })

-- body lengths that the best parameters go, or by how much the loss is below what the gain is counted from
local function way(part)
  local _, params, fields = changes.of(run, run.best.params, { substeps = part > 1 and part or nil }, 0)
  fields.params = params
  local found = run:evaluate(fields)
  if not example then return report.baseline - found.loss end
  local state = found.rollout.state
  if example.goal then
    local function away(at) return (at:center "hand" - example.goal):norm():item() end
    return away(found.rollout:start()) - away(state)
  end
  return (state:center(example.group or state.world.robots[1])[1]:item() - example.start) / example.length
end
local ways = { ("%.4f"):format(way(1)) }
for _, part in ipairs(PARTS) do
  local fine, found = pcall(way, part)
  if not fine then print(found) end
  ways[#ways + 1] = fine and ("%.4f"):format(found) or "failed"
end

-- a row of a table; it replaces the one of the same example, steps and seed
local function add(path, head, row)
  print(head)
  print(row)
  if path == "" then return end
  local lines = { head }
  for line in (read_file(path) or ""):gmatch "[^\n]+" do
    if line ~= head and line:sub(1, #key) ~= key then lines[#lines + 1] = line end
  end
  lines[#lines + 1] = row
  table.sort(lines, function(a, b) return a ~= b and (a == head or (b ~= head and a < b)) end)
  atomic_file.write(path, table.concat(lines, "\n") .. "\n", { what = "--csv or --kept" })
end
add(csv, HEAD, ("%s%d,%s,%.1f,%.3f"):format(key, iterations, table.concat(ways, ","), minutes, seconds_of(run)))

-- ---- what it keeps in other simulations -----------------------------------------------------------------------------

if kept_csv == "" then return end
print(report)
report:save "robustness.json"

-- in percent; the least of the changes of a kind, or - where there are none
local function least(fits)
  local found = math.huge
  for _, row in ipairs(report.rows) do
    if fits(row) then found = math.min(found, row.kept or -math.huge) end
  end
  if found == math.huge then return "-" end
  return found > -math.huge and ("%.0f"):format(100 * found) or "failed"
end
local relative = { "stiffness", "density", "friction", "strength", "gravity" }
local is_relative = {}
for _, kind in ipairs(relative) do is_relative[kind] = true end
local head, cells = { "example,steps,seed,iterations,way,five" }, {
  ("%s%d,%.2f"):format(key, iterations, ways[1]),
  least(function(row) return is_relative[row.name] and math.abs(row.size) < 0.06 end),
}
local function column(title, fits) head[#head + 1], cells[#cells + 1] = title, least(fits) end
for _, kind in ipairs(relative) do column(kind, function(row) return row.name == kind end) end
for _, factor in ipairs { 2, 4 } do
  column("substeps_" .. factor, function(row) return row.name == "substeps" and row.size == factor end)
end
for _, kind in ipairs { "grid", "place", "precision", "noise", "latency" } do
  column(kind, function(row) return row.name == kind end)
end
head[#head + 1], cells[#cells + 1] = "median,worst,draws,failed",
  ("%.0f,%.0f,%d,%d"):format(100 * (report.median or 0 / 0), 100 * (report.worst or 0 / 0), draws, report.failed)
add(kept_csv, table.concat(head, ","), table.concat(cells, ","))
