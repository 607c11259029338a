-- kill: kills workers of a study, their trials and their children at random moments, starts the study again, and holds
-- what came of it to a study that was left alone.      build/cqlua tests/study/kill.lua [--kills 100] [--seed 1]
-- [--trials 300]
--
-- Nothing may be lost, done twice or changed: what the store has called done stays as it is whatever is killed later,
-- and the table at the end is equal to that of an undisturbed run but for times and attempts. Called by
-- tests/study_spec.lua with few kills, and by make check-all with a hundred.
local ffi = require "ffi"
local host = require "cq.host"
local json = require "cq.base.json"
local option = require "cq.option"
local process = require "tests.process"
local stores = require "cq.study.store"
local children = require "cq.study.process"

ffi.cdef "int kill(int pid, int signal);"

local kills, seed = option("kills", 100), option("seed", 1)
local trials, jobs = option("trials", 300), option("jobs", 3)
local random = require "cq.study.stream".of(seed, "point", 1)

local folder = process.folder()
local script = process.write(folder .. "/s.lua", ([[
local cq = require "cq"
local pause = require "cq.study.process"
return cq.Study {
  name = "killed", trials = %d, repeats = 2, retries = 1000,
  space = { x = cq.Space.uniform(0, 1), n = cq.Space.integer(1, 9) },
  run = function(p, trial)
    for i = 1, 4 do
      pause.poll({}, 0.004 * (trial.number %% 4))
      trial.report(i, p.x / i)
    end
    if trial.number %% 29 == 0 then error "as it must" end
    return { loss = p.x + p.n + trial.seed, curve = { p.x, p.n } }
  end,
}
]]):format(trials / 2))

local function command(out) return ("%s study run %s --quiet --jobs %d --out %s"):format(host.executable, script, jobs,
  out) end

local function start(out)
  local pipe = assert(io.popen(("%s >>%s/log 2>&1 & echo $!"):format(command(out), folder)))
  local pid = tonumber(pipe:read "*l")
  pipe:close()
  return pid
end

local function parent_of(pid)
  local stat = process.read(("/proc/%d/stat"):format(pid))
  local state, parent = (stat or ""):match "%) (%a) (%d+)"
  if state and state ~= "Z" then return tonumber(parent) end
end

local function is_alive(pid) return parent_of(pid) ~= nil end

-- a process and all that it has started
local function family(pid)
  local parents, out = {}, { pid }
  for _, name in ipairs(host.entries "/proc" or {}) do
    local number = tonumber(name)
    if number then parents[number] = parent_of(number) end
  end
  local known = { [pid] = true }
  for _ = 1, 3 do
    for number, parent in pairs(parents) do
      if known[parent] and not known[number] then known[number], out[#out + 1] = true, number end
    end
  end
  return out
end

-- what the store calls done, with the moment at which it was; and whether anything is left to do
local function done_of(out)
  if not host.kind(out .. "/study.sqlite") then return {}, true end
  local store = stores.open(out .. "/study.sqlite")
  local rows, counts = {}, store:counts()
  for _, row in ipairs(store.base:rows "SELECT number, ended FROM trial WHERE state = 'done'") do
    rows[row.number] = row.ended
  end
  store:close()
  return rows, counts.done == 0 or counts.waiting + counts.running > 0
end

local function hold(before, after)
  for number, ended in pairs(before) do
    assert(after[number] == ended, ("trial %d was done at %s and is %s now"):format(number, ended,
      tostring(after[number])))
  end
end

local killed, parents_killed, starts, done = 0, 0, 0, {}
local out = folder .. "/killed"
local pid = start(out)
while killed < kills do
  children.poll({}, 0.02 + 0.1 * random:uniform())
  if not is_alive(pid) then
    local now, more = done_of(out)
    hold(done, now)
    done = now
    -- it may have come to its end before all kills are made: then a part of it is done again
    if not more then
      local store = stores.open(out .. "/study.sqlite")
      store.base:run "UPDATE trial SET state = 'waiting', attempts = 0, serial = NULL WHERE number % 3 = 0"
      store:close()
      done = done_of(out)
    end
    starts = starts + 1
    assert(starts <= 10 + 3 * killed, process.read(folder .. "/log"))
    pid = start(out)
  else
    -- the parent at any moment; else one of its processes, as soon as it has some
    local victim, tries = pid, 0
    if random:uniform() > 0.3 then
      local members = family(pid)
      while #members < 2 and is_alive(pid) and tries < 200 do
        children.poll({}, 0.02)
        members, tries = family(pid), tries + 1
      end
      victim = members[math.max(2, math.ceil(random:uniform() * #members))] or pid
    end
    if ffi.C.kill(victim, 9) == 0 then
      killed = killed + 1
      if victim == pid then parents_killed = parents_killed + 1 end
    end
  end
end
while is_alive(pid) do children.poll({}, 0.05) end
assert(os.execute(command(out)) == 0, process.read(folder .. "/log"))
hold(done, (done_of(out)))

local alone = folder .. "/alone"
assert(os.execute(command(alone)) == 0)

-- all but times, attempts and who did it
local function rows_of(place, sql)
  local store, lines = stores.open(place .. "/study.sqlite"), {}
  for k, row in ipairs(store.base:rows(sql)) do lines[k] = json.encode(row) end
  store:close()
  return table.concat(lines, "\n")
end
for sql, least in pairs {
  ["SELECT number, state, point, result, problem, step, value FROM trial ORDER BY number"] = trials,
  ["SELECT * FROM report ORDER BY trial, name, step"] = 4 * trials,
} do
  local own, other = rows_of(out, sql), rows_of(alone, sql)
  local _, lines = own:gsub("\n", "")
  assert(lines + 1 >= least, lines .. " rows")
  assert(own == other, ("%s differ:\n%s\n\n%s"):format(sql, own, other))
end
process.remove(folder)
print(("%d processes killed, %d of them parents: %d trials, none lost and none changed"):format(killed, parents_killed,
  trials))
