-- full: the experiments of the second ChainQueen paper in their whole size, each held to what it is to reach. Hours.
-- Left out are the arm's length and those of the first paper, which take seconds to minutes in examples/.
--
--   make papers                          all of them, into build/papers; what is finished is not run again
--   make papers ONLY=rhino               those whose command has that word
--   make papers WITH="--threads 1 --simd avx2"       more of their command line
--
-- The same command goes on where it was stopped; without build/papers/NAME and NAME.txt an experiment begins anew. WITH
-- is part of NAME: what was run with other options is kept, and is no answer to these.
-- tests/papers/results.csv keeps what they gave, with machine and date.
local host = require "cq.host"
local process = require "tests.process"

local full = { folder = "build/papers" }

local function number_of(pattern) return function(said) return tonumber(said:match(pattern)) end end

-- ---- what the scripts say, as numbers -------------------------------------------------------------------------------

-- of the arm in space: the evaluation from which a case is at rest at its goal, and its effort, by its name
local function rests_of(said)
  local cases = {}
  for name, from, effort in said:gmatch "([^\n]-) +at rest at the goal from evaluation (%d+) on; effort (%S+)," do
    cases[name] = { from = tonumber(from), effort = tonumber(effort) }
  end
  return cases
end

-- a figure of the co-design over the least of the arms of a fixed stiffness that rest at all; 0 where none does
local function over_fixed(figure)
  return function(said)
    local cases, least = rests_of(said), math.huge
    local own = cases["co-design"]
    for name, case in pairs(cases) do
      if name ~= "co-design" then least = math.min(least, case[figure]) end
    end
    return own and own[figure] / least
  end
end

-- of the biped: what it walks at least where one of these is learnt alone, or all are, over what it walks where none is
local function over_none(...)
  local names = { ... }
  return function(said)
    local ways, least = {}, math.huge
    for density, poisson, young, way in said:gmatch
      "density (%a+)  poisson (%a+)  young (%a+) %(%d+%): [^\n]-lengths ([^%s,]+)" do
      local learnt = {}
      if density == "true" then learnt[#learnt + 1] = "density" end
      if poisson == "true" then learnt[#learnt + 1] = "nu" end
      if young == "true" then learnt[#learnt + 1] = "E" end
      ways[#learnt == 0 and "none" or #learnt == 3 and "all" or table.concat(learnt, "+")] = tonumber(way)
    end
    for _, name in ipairs(names) do least = math.min(least, ways[name] or 0 / 0) end
    return ways.none and least / ways.none
  end
end

-- of the legged robots: what co-design adds to the mean of the ways [%]
local function added(said)
  local fixed, codesign = said:match "fixed: mean ([^%s,]+)", said:match "codesign: mean ([^%s,]+)"
  if not fixed then fixed, codesign = said:match "fixed +walked (%S+)", said:match "codesign +walked (%S+)" end
  return fixed and codesign and 100 * (codesign / fixed - 1)
end

-- ---- the runs -------------------------------------------------------------------------------------------------------

---@class tests.papers.run
---@field command string      of cqlua
---@field reach table[]       what it is to reach: { words, function of what it says, least =, most = }; or none

local RUNS = {}
for seed = 1, 5 do
  RUNS[seed] = {
    command = "examples/cable_finger.lua --seed " .. seed,
    reach = { { "error of E, nu and density [%]", number_of "within (%S+) %% of the truth", most = 0.5 } },
  }
end
local function add(command, ...) RUNS[#RUNS + 1] = { command = command, reach = { ... } } end

add("study run examples/cable_biped.lua --seeds 10 --seed 0 --full",
  { "body lengths", number_of "lengths: mean ([^%s,]+)", least = 2 })
add("study run examples/rhino.lua --seeds 5 --seed 0 --full",
  { "body lengths", number_of "lengths: mean ([^%s,]+)", least = 2 })
add("examples/terrain.lua --full", { "hills, of two slopes each", number_of "over (%d+) of", least = 1 })
add("examples/creature.lua --full",
  { "body lengths", number_of "ran (%S+) body", least = 1.5 })
add("examples/arm3d.lua --full",
  { "first evaluation at rest at the goal, over that of a fixed stiffness", over_fixed "from", most = 0.99 },
  { "effort over that of the better fixed stiffness", over_fixed "effort", most = 0.75 })
add("study run examples/studies/codesign.lua --seed 0 --fine",
  { "the least that one quantity walks over none", over_none("E", "nu", "density"), least = 1 },
  { "all over none", over_none "all", least = 1.3 })
add("study run examples/studies/codesign.lua --seed 0 --full --repeats 1",
  { "all over none, one seed", over_none "all" })
for legs = 4, 8, 2 do
  add(("study run examples/quadruped.lua --seeds 6 --seed 0 --legs %d --codesign"):format(legs),
    { "body lengths", number_of "fixed: mean ([^%s,]+)", least = 2 },
    { "body lengths with co-design", number_of "codesign: mean ([^%s,]+)", least = 2 },
    { "what co-design adds [%]", added, least = 20 })
  add(("examples/quadruped.lua --full --legs %d --codesign"):format(legs),
    { "body lengths", number_of "fixed +walked (%S+) body", least = 2 },
    { "body lengths with co-design", number_of "codesign +walked (%S+) body", least = 2 },
    { "what co-design adds [%]", added, least = 20 })
end
full.runs = RUNS

-- ---- running them ---------------------------------------------------------------------------------------------------

---Holds what a run said to what it is to reach.
---@param run tests.papers.run
---@param said string
---@return boolean reached
---@return string lines      of each quantity
function full.judge(run, said)
  local reached, lines = true, {}
  for k, goal in ipairs(run.reach) do
    local value = goal[2](said)
    local fine = value and value >= (goal.least or -math.huge) and value <= (goal.most or math.huge)
    local wanted = goal.least and (", at least %g"):format(goal.least)
      or goal.most and (", at most %g"):format(goal.most)
    lines[k] = ("  %s %s: %s%s"):format(fine and "reached" or "FAILED ", goal[1], value and ("%.3g"):format(value)
      or "it does not say", wanted or "")
    reached = reached and fine
  end
  return not not reached, table.concat(lines, "\n")
end

local function folder_of(run, with)
  local name = run.command:gsub("^study run ", "study "):gsub("examples/", ""):gsub("[^%w]+", "_")
  -- of the options signs and points are kept too: --rate -1 and --rate 1 are two runs
  for word in with:gmatch "%S+" do name = name .. "_" .. word:gsub("[^%w%.-]", "_") end
  return full.folder .. "/" .. name
end

---Runs it, or goes on with it, unless it has been run with these options. What it says is kept beside its folder, from
---its end on.
---@param run tests.papers.run
---@param with string       more of its command line
---@return string said
function full.said_by(run, with)
  local folder = folder_of(run, with)
  local path = folder .. ".txt"
  local said = process.read(path)
  if said then return said end
  -- one that was killed before anything was saved begins anew; a study goes on unasked
  local begun = not run.command:find "^study"
    and os.execute(("find %s -name optimizer.bin 2>/dev/null | grep -q ."):format(folder)) == 0
  local code = os.execute(("%s %s --out %s%s %s > %s.part"):format(host.executable, run.command, folder,
    begun and " --resume" or "", with, path))
  if code ~= 0 then
    error(("cqlua %s %s has failed, or was stopped; make papers%s goes on with it"):format(run.command, with,
      with == "" and "" or (" WITH=%q"):format(with)), 0)
  end
  assert(os.rename(path .. ".part", path))
  return process.read(path)
end

---Runs all whose command has a word, and tells what they reached.
---@param only string
---@param with string       more of their command line
function full.run(only, with)
  assert(os.execute("mkdir -p " .. full.folder) == 0)
  io.stdout:setvbuf "line"
  local failed, count = 0, 0
  for _, run in ipairs(RUNS) do
    if run.command:find(only, 1, true) then
      print("cqlua " .. run.command .. (with == "" and "" or " " .. with))
      local said = full.said_by(run, with)
      local reached, lines = full.judge(run, said)
      print((said:gsub("[^\n]+", "  %0"):gsub("\n$", "")) .. "\n" .. lines)
      failed, count = failed + (reached and 0 or 1), count + 1
    end
  end
  if count == 0 then error(("no run of the papers has the word %s in its command"):format(only), 0) end
  if failed > 0 then error(("%d of %d did not reach what they are to"):format(failed, count), 0) end
end

return full
