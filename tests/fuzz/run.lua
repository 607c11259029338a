-- run: readers are given mangled files and words, millions of them.      make fuzz, or
--   build/check/sanitize/cqlua tests/fuzz/run.lua [--seconds 12] [--executions N] [--seed N]
--   [--reader stl] [--input FILE]
--
-- Each reader is tried in a process of its own: in it all executions, one after another. Inputs follow from the seed,
-- and from what the reader accepted before. A crash, a sanitizer's report, memory or time out of proportion, an error
-- that no user should see, and a wrong answer end the process: then the input is kept, and --input tries it again.
-- What came of long runs is in tests/fuzz/results.csv. There the kernels, which no reader calls, had no sanitizers.
local host = require "cq.host"
local message = require "cq.base.message"
local option = require "cq.option"
local mutate = require "tests.fuzz.mutate"
local process = require "tests.process"

local readers, names = {}, { "stl", "obj", "msh", "png", "params", "options" }
for _, file in ipairs { "mesh", "solid", "picture", "params", "options" } do
  for name, reader in pairs(require("tests.fuzz." .. file)) do readers[name] = reader end
end

local seconds = option("seconds", 12)
local executions = option("executions", math.huge)
local seed = option.program.seed or 1
local only, child, input = option("reader", ""), option("child", ""), option("input", "")
local kept_in = option("keep", "build/fuzz")

local SLOW = 5                           -- [s] for one input of a few KiB
local CORPUS = 64                        -- inputs that are changed further

local function write(path, bytes)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
end

local function read(path)
  local file = io.open(path, "rb")
  local bytes = file and file:read "*a"
  if file then file:close() end
  return bytes
end

-- ---- the process of one reader --------------------------------------------------------------------------------------

local function check(reader, path, bytes)
  write(path, bytes)
  local began = os.clock()
  local fine, accepted, problem = pcall(reader.read, path, bytes)
  if not fine then problem = "the reader failed: " .. tostring(accepted) end
  if os.clock() - began > SLOW then problem = ("it took %.1f s"):format(os.clock() - began) end
  return accepted, problem
end

-- the inputs to change: at first those of the reader, later also what it accepted
local function make_corpus(reader, folder)
  local corpus, seeds = {}, reader.seeds
  if type(seeds) == "function" then seeds = seeds(folder) end
  for i, bytes in ipairs(seeds) do corpus[i] = bytes end
  return corpus, #corpus
end

local function fuzz(name, folder)
  local reader, path = readers[name], ("%s/input.%s"):format(folder, readers[name].ending)
  local progress = assert(io.open(folder .. "/progress", "wb"))
  mutate.begin(seed)
  message.warn = function() end
  local corpus, own = make_corpus(reader, folder)
  local done, taken, began = 0, 0, os.time()
  while done < executions and (done % 256 > 0 or os.time() - began < seconds) do
    local bytes = corpus[done + 1]
    if done >= own then
      bytes = mutate.change(mutate.one_of(corpus), mutate.one_of(corpus), reader.tokens)
      if reader.repair then bytes = reader.repair(bytes) end
    end
    done = done + 1
    progress:seek "set"
    progress:write(("%-12d"):format(done))
    progress:flush()
    local accepted, problem = check(reader, path, bytes)
    if done <= own and not accepted then problem = problem or "an input that is right is refused" end
    if problem then error(problem, 0) end
    if accepted then
      taken = taken + 1
      if done > own and mutate.below(16) == 1 then
        corpus[#corpus < CORPUS and #corpus + 1 or own + mutate.below(CORPUS - own)] = bytes
      end
    end
  end
  print(("%d executions, %d accepted, in %d s"):format(done, taken, os.time() - began))
end

-- ---- all of them ----------------------------------------------------------------------------------------------------

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- what a small input may take of memory; the sanitizer keeps freed blocks for a while, and does not know Lua's
local limits = "detect_leaks=0:quarantine_size_mb=16:hard_rss_limit_mb=1024:allocator_may_return_null=1"

local function keep_input(name, folder)
  assert(host.make_folder(kept_in))
  local path = ("%s/%s-%d.%s"):format(kept_in, name, seed, readers[name].ending)
  write(path, read(("%s/input.%s"):format(folder, readers[name].ending)) or "")
  return path
end

local function try(name, folder)
  local count = executions < math.huge and (" --executions %d"):format(executions) or ""
  local command = ("ASAN_OPTIONS=%s timeout -k 9 %d %s tests/fuzz/run.lua --child %s --folder %s --seed %d --seconds %d%s 2>&1 </dev/null; echo \"exit $?\"")
    :format(limits, math.min(seconds, 1e6) + 120, quote(host.executable), name, quote(folder), seed, seconds, count)
  local pipe = assert(io.popen(command))
  local output, code = pipe:read "*a":match "^(.*)exit (%d+)\n$"
  pipe:close()
  if code == "0" then
    print(("ok     fuzz/%-10s %s"):format(name, output:match "%d+ executions[^\n]*" or output))
    return true
  end
  local at = (read(folder .. "/progress") or ""):match "%d+" or "0"
  print(("FAILED fuzz/%s: seed %d, execution %s; its input is kept in %s"):format(name, seed, at,
    keep_input(name, folder)))
  print((output:sub(1, 6000):gsub("[^\n]+", "       %0")))
  return false
end

local function scratch()
  local parent = host.kind "/dev/shm" == "folder" and "/dev/shm" or "/tmp"
  local pipe = assert(io.popen(("mktemp -d %s/cqlua-fuzz-XXXXXX"):format(parent)))
  local folder = pipe:read "*l"
  pipe:close()
  return folder
end

if child ~= "" then
  fuzz(child, option("folder", ""))
  os.exit(0)
end

local folder = scratch()
local passed, failed = 0, 0
if input ~= "" then
  local name = readers[only] and only or input:match "([%w]+)-?%d*%.%w+$"
  local reader = assert(readers[name], "--reader says who reads the input")
  if type(reader.seeds) == "function" then reader.seeds(folder) end
  local accepted, problem = check(reader, ("%s/input.%s"):format(folder, reader.ending), assert(read(input)))
  print(problem and "FAILED " .. problem or accepted and "accepted" or "refused, with a sentence")
  passed, failed = problem and 0 or 1, problem and 1 or 0
else
  print(("seed %d, %s"):format(seed, process.sanitized() and "under AddressSanitizer and UBSan"
    or "without a sanitizer: make fuzz builds one with them"))
  for _, name in ipairs(names) do
    if only == "" or name == only then
      if try(name, folder) then passed = passed + 1 else failed = failed + 1 end
      io.flush()
    end
  end
end
os.execute("rm -rf " .. quote(folder))
print(("%d passed, %d failed"):format(passed, failed))
os.exit(passed > 0 and failed == 0 and 0 or 1)
