-- study: what a parameter study costs, and what its TPE finds, for tests/bench/README.md.
--   build/cqlua tests/bench/study.lua [--seeds 20] [--trials 200]
-- Each study is one of cqlua study run with its store and its folders: seconds are those of the whole command.
local host = require "cq.host"
local option = require "cq.option"
local process = require "tests.process"
local clock = require("cq.base.engine").C.cq_clock

local seeds, trials = option("seeds", 20), option("trials", 200)
local folder = process.folder()

local functions = [[
local cq = require "cq"
local A = { { 10, 3, 17, 3.5, 1.7, 8 }, { 0.05, 10, 17, 0.1, 8, 14 },
  { 3, 3.5, 1.7, 10, 17, 8 }, { 17, 8, 0.05, 10, 0.1, 14 } }
local P = { { 0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886 }, { 0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991 },
  { 0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650 }, { 0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381 } }
local weights = { 1, 1.2, 3, 3.2 }
local run = {}
function run.hartmann(x)
  local sum = 0
  for i = 1, 4 do
    local inner = 0
    for j = 1, 6 do inner = inner + A[i][j] * (x[j] - P[i][j]) ^ 2 end
    sum = sum - weights[i] * math.exp(-inner)
  end
  return sum
end
function run.rosenbrock(x) return 100 * (x[2] - x[1] ^ 2) ^ 2 + (1 - x[1]) ^ 2 end
function run.nothing(x) return x[1] end
local name, count = cq.option("function", "nothing"), cq.option("dimensions", 2)
local space = {}
for j = 1, count do space["x" .. j] = name == "rosenbrock" and cq.Space.uniform(-2, 2) or cq.Space.uniform(0, 1) end
return cq.Study {
  name = "bench", space = space, sampler = cq.option("sampler", "tpe"), trials = cq.option("trials", 200),
  process = cq.option("process", "job"),
  run = function(p)
    local x = {}
    for j = 1, count do x[j] = p["x" .. j] end
    return run[name](x)
  end,
}
]]
process.write(folder .. "/s.lua", functions)

local function study(words)
  local all = { "study", "run", folder .. "/s.lua", "--out", folder .. "/out", "--quiet" }
  for _, word in ipairs(words) do all[#all + 1] = word end
  local began = clock()
  local result = process.cqlua(all)
  local seconds = clock() - began
  assert(result.code == 0, result.err)
  return seconds
end

local function best()
  local result = process.cqlua { "study", "status", folder .. "/s.lua", "--out", folder .. "/out", "--json" }
  return tonumber(result.out:match '"best": ([^,}]+)')
end

local function quantile(sorted, share)
  local at = 1 + share * (#sorted - 1)
  local k = math.min(math.floor(at), #sorted - 1)
  return sorted[k] + (at - k) * (sorted[k + 1] - sorted[k])
end

for _, case in ipairs { { "rosenbrock", 2 }, { "hartmann", 6 } } do
  local found, seconds = {}, 0
  for seed = 1, seeds do
    seconds = seconds + study { "--function", case[1], "--dimensions", tostring(case[2]), "--trials", tostring(trials),
      "--seed", tostring(seed), "--force-new" }
    found[seed] = best()
    os.execute("rm -rf " .. folder .. "/out")
  end
  table.sort(found)
  print(("%s in %d dimensions, tpe, %d trials, %d seeds: quartiles %.4g, %.4g, %.4g; %.2f ms a trial"):format(case[1],
    case[2], trials,
    seeds, quantile(found, 0.25), quantile(found, 0.5), quantile(found, 0.75), seconds / seeds / trials * 1e3))
end

for _, kind in ipairs { "trial", "job" } do
  local times = {}
  for k = 1, 5 do
    times[k] = (study { "--sampler", "random", "--trials", "400", "--process", kind } - study {
      "--sampler", "random", "--trials", "100", "--process", kind, "--force-new" }) / 300 * 1e3
    os.execute("rm -rf " .. folder .. "/out")
  end
  table.sort(times)
  print(("a trial that does nothing, a process for each %s: %.2f ms (best of 5 %.2f)"):format(kind, times[3], times[1]))
end

study { "--sampler", "random", "--trials", "10000" }
local times = {}
for k = 1, 5 do
  local began = clock()
  process.cqlua { "study", "status", folder .. "/s.lua", "--out", folder .. "/out", "--sampler", "random", "--trials",
    "10000" }
  times[k] = clock() - began
end
table.sort(times)
print(("status of 10,000 trials: %.3f s (best of 5 %.3f)"):format(times[3], times[1]))
process.remove(folder)
print(host.system())
