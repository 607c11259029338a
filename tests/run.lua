-- run: all tests.      make test, or build/cqlua tests/run.lua [--only part-of-a-name] [--build build] [--jobs 2]
--
-- Four kinds, each file a process of its own, so that a crash is one failed test and not the end:
--   tests/*_spec.lua and tests/style.lua   busted, inside cqlua
--   tests/cuda/budget.sh, coherent.sh      where nvcc is
--   tests/c/*.c, *.cc, tests/cuda/*.c, *.cc   programs built by make; last line "N passed, N failed" (tests/c/check.h does it)
--                                          some of them a second time, with CUDA on an emulated GPU, or on one that
--                                          looks for races
-- The last line of all is "N passed, N failed"; the exit code is 1 if anything failed or nothing ran.
local host = require "cq.host"
local option = require "cq.option"

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
local on_both = { "batch", "gradient", "health", "memo", "rollout32", "rollout_dual", "walls" }
-- of these, what small scenes would do by one kernel once more by a launch for each pass
local by_launches = { "gradient", "health", "rollout_dual" }

-- those of them that reach all kernels in little time
local in_race = { "health", "walls" }

-- threads and blocks of kernels take turns at random
local function emulated(program, object)
  return ('CQLUA_CUDA=%s CQLUA_EMULATION="thread_order=2 block_order=2" %s'):format(quote(build .. "/tests/" .. (object or "cuda-emulated.so")),
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
    tests[#tests + 1] = { name = "cuda/c/" .. stem, command = "CQLUA_TEST_DEVICE=cuda " .. emulated(build .. "/tests/" .. stem) }
  end
  for _, stem in ipairs(by_launches) do
    local command = "CQLUA_TEST_DEVICE=cuda CQLUA_CUDA_RUN=launches " .. emulated(build .. "/tests/" .. stem)
    tests[#tests + 1] = { name = "cuda/c/" .. stem .. ", launches", command = command }
  end
  tests[#tests + 1] = { name = "cuda/race/parity", command = emulated(build .. "/tests/cuda/parity", "cuda-race.so") }
  for _, stem in ipairs(in_race) do
    tests[#tests + 1] = { name = "cuda/race/" .. stem, command = "CQLUA_TEST_DEVICE=cuda " .. emulated(build .. "/tests/" .. stem, "cuda-race.so") }
  end
  for _, name in ipairs(listed("tests", function(n) return ends_with(n, "_spec.lua") or n == "style.lua" end)) do
    local command = quote(host.executable) .. " tests/spec.lua " .. quote("tests/" .. name)
    tests[#tests + 1] = { name = name:gsub("%.lua$", ""), command = command }
  end
  if budget then
    tests[#tests + 1] = { name = "cuda/budget", command = "sh tests/cuda/budget.sh " .. quote(build) }
    tests[#tests + 1] = { name = "cuda/coherent", command = "sh tests/cuda/coherent.sh" }
  end
  local chosen = {}
  for _, test in ipairs(tests) do
    if test.name:find(only, 1, true) then chosen[#chosen + 1] = test end
  end
  return chosen
end

local function start(test)
  test.pipe = assert(io.popen(("timeout %d env %s 2>&1 </dev/null; echo \"exit $?\""):format(TIME_LIMIT, test.command)))
end

local function plural(count, noun) return ("%d %s%s"):format(count, noun, count == 1 and "" or "s") end

-- waits for the end of a test file; its counts, and its output when something is to be seen
local function finish(test)
  local output = test.pipe:read "*a"
  test.pipe:close()
  local body, code = output:match "^(.*)exit (%d+)\n$"
  code = tonumber(code)
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

local function report(test, result)
  local verdict = result.failed == 0 and "ok    " or "FAILED"
  local more = result.pending > 0 and (", %d pending"):format(result.pending) or ""
  if result.problem then more = more .. ": " .. result.problem end
  print(("%s %-28s %s%s"):format(verdict, test.name, plural(result.passed, "test") .. " passed", more))
  if result.failed > 0 or result.pending > 0 then
    print((result.output:gsub("%s+$", ""):gsub("[^\n]+", "       %0")))
  end
  io.flush()
end

local tests = collect()
local passed, failed, started = 0, 0, 0
for i, test in ipairs(tests) do
  while started < math.min(#tests, i + jobs - 1) do
    started = started + 1
    start(tests[started])
  end
  local result = finish(test)
  report(test, result)
  passed, failed = passed + result.passed, failed + result.failed
end
if #tests == 0 then print("no test file holds " .. only .. " in its name") end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(passed > 0 and failed == 0 and 0 or 1)
