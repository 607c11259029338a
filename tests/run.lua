-- run: all tests.      make test, or build/cqlua tests/run.lua [--only part-of-a-name] [--build build] [--jobs 2]
--
-- Four kinds, each file a process of its own, so that a crash is one failed test and not the end:
--   tests/*_spec.lua and tests/style.lua   busted, inside cqlua
--   tests/cuda/budget.sh, coherent.sh      where nvcc is
--   tests/c/*.c, *.cc                      programs built by make; last line "N passed, N failed" (tests/c/check.h)
--   tests/cuda/*.c, *.cc                   the same with CUDA on an emulated GPU; and some of tests/c there once more,
--                                          and on an emulated GPU that looks for races
-- Each line tells the processor time that the file took, of all its threads and processes, whatever else
--                                       runs. The last line of all is "N passed, N failed"; the exit code is 1 if
--                                       anything failed or nothing ran.
local host = require "cq.host"
local option = require "cq.option"
local process = require "tests.process"

local build = option("build", "build")
local only = option("only", "")
local jobs = option("jobs", host.processors())
local budget = option("budget", false)   -- nvcc has built the kernels
local TIME_LIMIT = 900                   -- [s] for a file; far above what any takes

local function ends_with(name, ending) return name:sub(-#ending) == ending end

local function listed(folder, wanted)
  local names = {}
  for _, name in ipairs(host.entries(folder) or {}) do
    if wanted(name) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- C tests that make worlds as tests/c/scene.h does, and rollouts of them
local on_both = { "batch", "denormal", "drives", "gradient", "health", "memo", "rollout32", "rollout_dual", "walls" }
-- of these, what small scenes would do by one kernel once more by a launch for each pass
local by_launches = { "denormal", "gradient", "health" }

-- those of them that reach all kernels in little time
local in_race = { "health", "walls" }

-- these take longest, and begin first: so no core has to wait for the last of them
local longest = { "cuda/parity", "c/implicit_dual", "examples_b_spec", "cuda/race/parity", "device_spec",
  "cuda/failures", "cuda/c/batch", "c/rollout_dual", "blocks_spec", "scenes_spec", "c/physics_dual", "cuda/c/memo",
  "cuda/c/rollout_dual", "examples_silicone_spec", "cuda/race/health" }

-- threads and blocks of kernels take turns at random
local function emulated(program, object)
  return ('CQLUA_CUDA=%s CQLUA_EMULATION="thread_order=2 block_order=2" %s')
    :format(quote(build .. "/tests/" .. (object or "cuda-emulated.so")),
                                                                                   quote(program))
end

-- { name, command } of every test file
local function collect()
  local tests = {}
  for _, name in ipairs(listed("tests/c", function(n) return n:match "%.cc?$" end)) do
    local stem = name:gsub("%.cc?$", "")
    tests[#tests + 1] = { name = "c/" .. stem, command = quote(build .. "/tests/" .. stem) }
  end
  for _, name in ipairs(listed("tests/cuda", function(n) return n:match "%.cc?$" end)) do
    local stem = name:gsub("%.cc?$", "")
    tests[#tests + 1] = { name = "cuda/" .. stem, command = emulated(build .. "/tests/cuda/" .. stem) }
  end
  for _, stem in ipairs(on_both) do
    tests[#tests + 1] = { name = "cuda/c/" .. stem, command = "CQLUA_TEST_DEVICE=cuda "
      .. emulated(build .. "/tests/" .. stem) }
  end
  for _, stem in ipairs(by_launches) do
    local command = "CQLUA_TEST_DEVICE=cuda CQLUA_CUDA_RUN=launches " .. emulated(build .. "/tests/" .. stem)
    tests[#tests + 1] = { name = "cuda/c/" .. stem .. ", launches", command = command }
  end
  tests[#tests + 1] = { name = "cuda/race/parity", command = emulated(build .. "/tests/cuda/parity", "cuda-race.so") }
  for _, stem in ipairs(in_race) do
    tests[#tests + 1] = { name = "cuda/race/" .. stem, command = "CQLUA_TEST_DEVICE=cuda "
      .. emulated(build .. "/tests/" .. stem, "cuda-race.so") }
  end
  for _, name in ipairs(listed("tests", function(n) return ends_with(n, "_spec.lua") or n == "style.lua" end)) do
    local command = quote(host.executable) .. " tests/spec.lua " .. quote("tests/" .. name)
    tests[#tests + 1] = { name = name:gsub("%.lua$", ""), command = command }
  end
  if budget then
    tests[#tests + 1] = { name = "cuda/budget", command = "sh tests/cuda/budget.sh " .. quote(build) }
    tests[#tests + 1] = { name = "cuda/coherent", command = "sh tests/cuda/coherent.sh " .. quote(build) }
  end
  local chosen = {}
  for _, test in ipairs(tests) do
    if test.name:find(only, 1, true) then chosen[#chosen + 1] = test end
  end
  local rank = {}
  for k, test in ipairs(chosen) do rank[test.name] = k end
  for k, name in ipairs(longest) do rank[name] = k - #longest end
  table.sort(chosen, function(a, b) return rank[a.name] < rank[b.name] end)
  return chosen
end

local function plural(count, noun) return ("%d %s%s"):format(count, noun, count == 1 and "" or "s") end

-- what a test file printed, and its counts
local function judge(test, code)
  local body = process.read(test.log)
  local passed, failed, pending = 0, nil, 0
  for line in body:gmatch "[^\n]+" do
    local p, f = line:match "^(%d+) passed, (%d+) failed"
    if p then passed, failed, pending = tonumber(p), tonumber(f), tonumber(line:match ", (%d+) pending" or 0) end
  end
  local problem
  if code == 124 then problem = ("no end after %d s"):format(TIME_LIMIT)
  elseif not failed then problem = ("ended with code %d and no count"):format(code)
  elseif code ~= 0 and failed == 0 then problem = ("ended with code %d after its tests"):format(code)
  elseif passed + failed + pending == 0 then problem = "holds no test" end
  if problem then failed = (failed or 0) + 1 end
  return { passed = passed, failed = failed, pending = pending, problem = problem, output = body }
end

-- of all threads and processes of a test: the second line of the shell's `times`, "0m1.2s 0m0.3s", user and system
local function processor_seconds(test)
  local seconds = 0
  for minutes, rest in process.read(test.log .. ".times"):match("\n(.*)$"):gmatch "(%d+)m([%d.]+)s" do
    seconds = seconds + 60 * minutes + rest
  end
  return seconds
end

local function report(test, result, seconds)
  local verdict = result.failed == 0 and "ok    " or "FAILED"
  local more = result.pending > 0 and (", %d pending"):format(result.pending) or ""
  if result.problem then more = more .. ": " .. result.problem end
  print(("%s %-28s %6.1f s  %s%s")
    :format(verdict, test.name, seconds, plural(result.passed, "test") .. " passed", more))
  if result.failed > 0 or result.pending > 0 then
    print((result.output:gsub("%s+$", ""):gsub("[^\n]+", "       %0")))
  end
  io.flush()
end

-- The tests run side by side, `jobs` of them, each as a command of its own for xargs, which starts
-- the next one when any ends. A command leaves in files what the test prints, and what the shell
-- knows of its time, and says that it ended.
local folder = process.folder()
local function start(tests)
  local commands = {}
  for k, test in ipairs(tests) do
    test.log = folder .. "/" .. k
    commands[k] = ("timeout %d env %s >%s 2>&1; code=$?; times >%s; echo ended %d $code")
      :format(TIME_LIMIT, test.command, quote(test.log), quote(test.log .. ".times"), k)
  end
  local list = process.write(folder .. "/commands", table.concat(commands, "\0"))
  return assert(io.popen(("xargs -0 -r -n 1 -P %d sh -c <%s"):format(jobs, quote(list))))
end

local tests = collect()
if #tests == 0 then print("no test file holds " .. only .. " in its name") end
local passed, failed, ended = 0, 0, 0
local pipe = start(tests)
for line in pipe:lines() do
  local k, code = line:match "^ended (%d+) (%d+)$"
  local test = tests[tonumber(k)]
  local result = judge(test, tonumber(code))
  report(test, result, processor_seconds(test))
  passed, failed, ended = passed + result.passed, failed + result.failed, ended + 1
end
pipe:close()
process.remove(folder)
if ended < #tests then print(("%d test files did not end"):format(#tests - ended)) end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(passed > 0 and failed == 0 and ended == #tests and 0 or 1)
