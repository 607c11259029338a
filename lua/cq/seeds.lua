-- seeds: one function run with several seeds, each in a process of its own, as many at a time as there are cores, so
-- that it takes no longer than one after the other. What each gave is kept, and the best is told.
--
--   local found = cq.seeds { count = cq.option("seeds", 8), run = function(seed, folder)
--     local run = experiment()                       -- whatever is drawn follows --seed, which is this one
--     run:optimize { iterations = 100 }              -- its files are in folder, which is --out
--     return { loss = run.best.loss }
--   end }
--   print(found)                                     -- each seed, the median and the best
--   local params = cq.load(found.best.folder).parameters
--
--   seeds.csv        a line for each seed, with what run gave
--   seed-1, ...      the folder of each seed; what it printed is in output.txt, what it gave in seed.json
--
-- A process runs the script again, up to cq.seeds and not beyond it. With --resume seeds that are done, with the
-- same options, stay as they are, and the others go on.
local ffi = require "ffi"
local atomic_file = require "cq.base.atomic_file"
local engine = require "cq.base.engine"
local folders = require "cq.run.folder"
local host = require "cq.host"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local process = require "cq.study.process"
local script = require "cq.base.script"
local text = require "cq.base.text"
local C = engine.C

---What cq.seeds found. It prints itself as a line for each seed, the median and the best.
---@class cq.Seeds
---@field best table<string, any>        row of the seed with the least value
---@field rows table<string, any>[]      of each seed that came to its end: seed, folder, seconds, and the numbers that run gave
---@field median number                  of the values that are compared
---@field failed integer[]               seeds that ended with an error
local Seeds = { __name = "cq.Seeds" }
Seeds.__index = Seeds

local LOOK = 0.25              -- [s] between two looks whether the user wants to stop
local GRACE = 60               -- [s] that processes have to save what they computed when the user wants to stop

local spec = is.define("cq.seeds", {
  count = is.integer { min = 1, max = 10000 }, run = is.callable(),
  first = is.integer { min = 0, max = 2 ^ 52, optional = true }, by = is.string { default = "loss" },
  jobs = is.integer { min = 1, max = 4096, optional = true }, folder = is.string { optional = true },
})

local reserved = { seed = true, folder = true, seconds = true }

-- ---- what a seed gave -----------------------------------------------------------------------------------------------

-- options of the command line that a result depends on
local function command()
  local words = {}
  for name, value in pairs(option.given()) do
    local matters = name ~= "resume" and name ~= "seeds" and name ~= "jobs"
    if matters then words[#words + 1] = name .. "=" .. tostring(value) end
  end
  for _, name in ipairs { "device", "precision" } do
    if option.program[name] then words[#words + 1] = name .. "=" .. option.program[name] end
  end
  table.sort(words)
  return table.concat(words, " ")
end

-- numbers by name from what run returned
local function values_of(returned, by)
  if type(returned) == "number" then returned = { [by] = returned } end
  if type(returned) ~= "table" or type(returned[by]) ~= "number" then
    is.fail("cq.seeds: run must return a table with the number %s, got %s", by,
      type(returned) == "table" and text.describe(returned[by]) or text.describe(returned))
  end
  if returned[by] - returned[by] ~= 0 then
    is.fail("cq.seeds: run returned %s for %s, which must be a finite number", text.number(returned[by]), by)
  end
  local out = {}
  for name, value in pairs(returned) do
    if type(name) ~= "string" or type(value) ~= "number" or reserved[name] or name:find "[,%c\"]" then
      is.fail("cq.seeds: run must return numbers by name (but no seed, folder and seconds), got %s = %s", tostring(name),
        text.describe(value))
    end
    out[name] = value
  end
  return out
end

-- runs the function in this process and keeps what it gave
local function carry_out(def, seed, folder)
  local began = process.now()
  local values = values_of(def.run(seed, folder), def.by)
  return { seed = seed, values = values, seconds = process.now() - began, command = command() }
end

-- the result of a seed, if it has come to its end with the options of this command line
local function read_result(folder)
  local file = io.open(folder .. "/seed.json")
  if not file then return nil end
  local fine, result = pcall(json.decode, file:read "*a")
  file:close()
  if not fine or type(result) ~= "table" or type(result.values) ~= "table" then
    is.fail("cq.seeds: %s/seed.json is not what a seed has left; remove it", folder)
  end
  return result.command == command() and result or nil
end

-- ---- all seeds ------------------------------------------------------------------------------------------------------

local function names_of(rows, by)
  local names, seen = { by }, { [by] = true }
  for _, row in ipairs(rows) do
    for name in pairs(row) do
      if not seen[name] and not reserved[name] then seen[name], names[#names + 1] = true, name end
    end
  end
  table.sort(names, function(a, b)
    if a == by or b == by then return a == by and b ~= by end
    return a < b
  end)
  return names
end

local function summary(self)
  table.sort(self.rows, function(a, b) return a.seed < b.seed end)
  local sorted = {}
  for k, row in ipairs(self.rows) do
    sorted[k] = row[self.by]
    if not self.best or row[self.by] < self.best[self.by] then self.best = row end
  end
  table.sort(sorted)
  local middle = #sorted / 2
  self.median = #sorted % 2 == 1 and sorted[math.ceil(middle)] or #sorted > 0
    and 0.5 * (sorted[middle] + sorted[middle + 1]) or nil
  self.names = names_of(self.rows, self.by)
  return self
end

local function row_of(result, folder)
  local row = { seed = result.seed, folder = folder, seconds = result.seconds }
  for name, value in pairs(result.values) do row[name] = value end
  return row
end

local function write_table(self, folder)
  summary(self)
  local lines = { "seed," .. table.concat(self.names, ",") .. ",seconds" }
  for _, row in ipairs(self.rows) do
    local cells = { tostring(row.seed) }
    for _, name in ipairs(self.names) do cells[#cells + 1] = row[name] and text.exact(row[name]) or "" end
    cells[#cells + 1] = ("%.4g"):format(row.seconds)
    lines[#lines + 1] = table.concat(cells, ",")
  end
  atomic_file.write(folder .. "/seeds.csv", table.concat(lines, "\n") .. "\n", { durable = true })
end

function Seeds:__tostring()
  local lines = {}
  for k, row in ipairs(self.rows) do
    local words = {}
    for j, name in ipairs(self.names) do words[j] = row[name] and ("%s %.6g"):format(name, row[name]) end
    lines[k] = ("seed %d: %s (%.3g s)"):format(row.seed, table.concat(words, ", "), row.seconds)
  end
  for _, seed in ipairs(self.failed) do lines[#lines + 1] = ("seed %d: failed"):format(seed) end
  lines[#lines + 1] = ("median %s %.6g, best %.6g of seed %d"):format(self.by, self.median, self.best[self.by],
    self.best.seed)
  return table.concat(lines, "\n")
end

-- ---- processes ------------------------------------------------------------------------------------------------------

-- the command line of a process: this one's, with a seed, a folder and threads of its own
local function words_of(seed, folder, threads)
  local goes_on = option("resume", false) and require("cq.run").can_resume(folder)
  local words = { script.path }
  for _, word in ipairs(rawget(_G, "arg") or {}) do words[#words + 1] = word end
  for name, value in pairs(option.given()) do
    if name ~= "resume" then words[#words + 1] = value == true and "--" .. name or ("--%s=%s"):format(name, value) end
  end
  for _, name in ipairs { "device", "precision", "simd" } do
    if option.program[name] ~= nil then words[#words + 1] = ("--%s=%s"):format(name, option.program[name]) end
  end
  if goes_on then words[#words + 1] = "--resume" end
  if option.program.overwrite then words[#words + 1] = "--overwrite" end
  for _, word in ipairs { "--quiet", "--seed=" .. seed, "--out=" .. folder, "--threads=" .. threads } do
    words[#words + 1] = word
  end
  return words
end

local function start(task, threads, jobs)
  ffi.C.setenv("CQLUA_SEEDS", tostring(jobs), 1)
  local child = process.start(words_of(task.seed, task.folder, threads), threads, task.folder .. "/output.txt")
  ffi.C.setenv("CQLUA_SEEDS", "", 1)
  child:dismiss()
  child.task = task
  return child
end

-- in the process of a seed: this seed alone, and then the end
local function be_child(def)
  option.program.share = tonumber(os.getenv "CQLUA_SEEDS")
  ffi.C.setenv("CQLUA_SEEDS", "", 1)
  local seed, folder = option.program.seed, option.program.out
  local result = carry_out(def, seed, folder)
  require("cq.run").close_open()
  if C.cq_interrupted() ~= 0 then is.fail("cq.seeds: interrupted") end
  atomic_file.write(folder .. "/seed.json", json.encode(result) .. "\n", { durable = true })
  script.tell_unused()
  io.stdout:flush()
  os.exit(0)
end

local function make_folder(folder)
  local made, problem = host.make_folder(folder)
  if not made then is.fail("cq.seeds: the folder %s cannot be made: %s", folder, tostring(problem)) end
end

-- one cq.seeds at a time has the folder; what an earlier one left moves away unless this one goes on with it
local function take_folder(folder)
  local Run = require "cq.run"
  folders.make(folder)
  folders.lock(folder)
  if not option("resume", false) then Run.clear_earlier(folder) end
end

-- the seeds that wait to be run, and rows of those that are done already
local function plan(def, folder, self)
  local waiting, resume = {}, option("resume", false)
  for k = 0, def.count - 1 do
    local seed = def.first + k
    local own = ("%s/seed-%d"):format(folder, seed)
    make_folder(own)
    local result = resume and read_result(own)
    if result then
      self.rows[#self.rows + 1] = row_of(result, own)
    else
      os.remove(own .. "/seed.json")
      if not resume then os.remove(own .. "/output.txt") end
      waiting[#waiting + 1] = { seed = seed, folder = own }
    end
  end
  return waiting
end

-- what a process warned of concerns the script of all
local function repeat_warnings(folder)
  local file = io.open(folder .. "/output.txt")
  if not file then return end
  for line in file:lines() do
    local sentence = line:match "^cqlua: warning: (.*)$"
    if sentence then message.warn("%s", sentence) end
  end
  file:close()
end

local function conclude(self, child, folder, by)
  local code = child:wait()
  local task = child.task
  local result = code == 0 and read_result(task.folder)
  if not result then
    self.failed[#self.failed + 1] = task.seed
    if C.cq_interrupted() == 0 then
      message.warn("seed %d came to no result; %s/output.txt says why", task.seed, task.folder)
    end
    return
  end
  self.rows[#self.rows + 1] = row_of(result, task.folder)
  repeat_warnings(task.folder)
  write_table(self, folder)
  message.note("seed %d: %s %.6g, %.3g s", task.seed, by, result.values[by], result.seconds)
end

-- lets processes save what they have, and waits for their end
local function stop(children)
  for _, child in ipairs(children) do child:signal(process.SIGTERM) end
  local last = process.now() + GRACE
  for _, child in ipairs(children) do
    while process.now() < last and #process.poll({ child }, LOOK) == 0 do end
    if process.now() >= last then child:signal(process.SIGKILL) end
    child:wait()
  end
end

local function work(self, waiting, folder, def)
  local children, at = {}, 1
  local cores = option.program.threads > 0 and option.program.threads or host.processors()
  local jobs = math.min(def.jobs or option.program.device == "cuda" and 1 or cores, #waiting)
  local threads = math.max(1, math.floor(cores / math.max(jobs, 1)))
  while at <= #waiting or #children > 0 do
    if C.cq_interrupted() ~= 0 then
      stop(children)
      is.fail("cq.seeds: interrupted; --resume goes on with %s", text.count(def.count - #self.rows, "seed"))
    end
    while at <= #waiting and #children < jobs do
      children[#children + 1], at = start(waiting[at], threads, jobs), at + 1
    end
    for _, child in ipairs(process.poll(children, LOOK)) do
      local _, ended = child:receive()
      if ended then
        for k = #children, 1, -1 do
          if children[k] == child then table.remove(children, k) end
        end
        conclude(self, child, folder, def.by)
      end
    end
  end
end

-- seeds that change nothing were run for nothing
local function warn_of_copies(self)
  for _, row in ipairs(self.rows) do
    if row[self.by] ~= self.rows[1][self.by] then return end
  end
  if #self.rows > 1 then
    message.warn("all seeds gave the same %s, %s: nothing in the script is drawn by --seed", self.by,
      text.exact(self.rows[1][self.by]))
  end
end

-- under cqlua check: the first seed is tried, and what it has no numbers for is none
local function check(def, self, folder)
  local returned = def.run(def.first, folder)
  local values = returned and values_of(returned, def.by) or { [def.by] = 0 }
  self.rows[1] = row_of({ seed = def.first, seconds = 0, values = values }, folder)
  return summary(self)
end

local called = false

---@class cq.seeds.def
---@field count integer        seeds: first, first + 1, ...
---@field run fun(seed: integer, folder: string): table|number   what is done with each: it returns numbers by name, loss among them,
---  or loss alone
---@field first? integer       --seed, or 1, unless given
---@field by? string           the number that is compared, the less the better
---@field jobs? integer        processes at a time; one for each core, or one where all share a GPU, unless given
---@field folder? string       --out, else runs/<name of the script>, unless given

---Runs a function with several seeds, each in a process of its own, which runs the script again up to here. Seeds that
---are done with the same options are kept with --resume, and the others go on. One seed is run in this process, in the
---folder itself.
---Errors: no seed came to its end; a second call in a script.
---@param fields cq.seeds.def
---@return cq.Seeds
local function seeds(_, fields)
  local def = spec(fields)
  if (os.getenv "CQLUA_SEEDS" or "") ~= "" and process.join_parent() then be_child(def) end
  def.first = def.first or option.program.seed or 1
  local folder = def.folder or require("cq.run").default_folder()
  local self = setmetatable({ rows = {}, failed = {}, by = def.by }, Seeds)
  if option.program.check then return check(def, self, folder) end
  if def.count == 1 then
    self.rows[1] = row_of(carry_out(def, def.first, folder), folder)
    return summary(self)
  end
  if called then is.fail("cq.seeds: a script calls it once, since its processes run the script up to there") end
  if not script.path or script.path == "-" then is.fail("cq.seeds: needs a script in a file, to be run again") end
  called = true
  take_folder(folder)
  for name, typed in pairs(option.given()) do option.set_silently(name, typed) end     -- its processes ask for them
  work(self, plan(def, folder, self), folder, def)
  if #self.rows == 0 then
    is.fail("cq.seeds: no seed came to its end; %s/seed-%d/output.txt says why", folder, def.first)
  end
  write_table(self, folder)
  folders.unlock(folder)
  warn_of_copies(self)
  return self
end

return setmetatable({ class = Seeds }, { __call = seeds })
