-- trial: one run of a study's function, in a process that a worker has started (serve), or alone (try).
--
-- What a child tells its parent, a line each:
--   report NAME STEP VALUE       a value of a curve; NAME and what follows are separated by tabs
--   ask STEP VALUE               may the trial go on, with this value, the less the better? The answer is "go" or "end"
--   done JSON                    the numbers that run returned
--   pruned                       the pruner has ended it
--   failed JSON                  { problem = the sentence }
--   refused JSON                 { problem = the sentence }: no trial of this script can be run, and this one was not
--   told JSON                    { sentence = a warning for the user }, of a trial that is done
--   ended JOB CODE SIGNAL        the process of its own that a trial had, the child's job of this count, has ended so
--   last                         this process takes no other trial after this one
local atomic_file = require "cq.base.atomic_file"
local json = require "cq.base.json"
local engine = require "cq.base.engine"
local host = require "cq.host"
local is = require "cq.base.schema"
local access = require "cq.study.access"
local script = require "cq.base.script"
local message = require "cq.base.message"
local option = require "cq.option"
local place = require "cq.base.place"
local process = require "cq.study.process"
local require_name = require "cq.study.column"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

---What a trial is told of itself.
---@class cq.Trial
---@field number integer        from 1
---@field seed integer          of the study plus the replicate less 1; what --seed says within the trial
---@field replicate integer     from 1 to repeats
---@field folder string         what cq.Run and run:optimize write goes here
---@field report fun(step: number, value: number|table<string, number>)   keeps a curve, and lets the pruner end the
---  trial: a number is the study's first objective; as on_iteration of run:optimize it keeps the loss, which is to fall
---  whatever the objective is
local Trial = { __name = "cq.Trial" }
Trial.__index = access.index(Trial, { "number", "seed", "replicate", "folder", "report" },
  "a trial of a study has no field %s%s; it has %s")

-- The trial in one line: number, seed and folder.
function Trial:__tostring() return ("cq.Trial %d: seed %d, in %s"):format(self.number, self.seed, self.folder) end

local trial = {}

-- raised by trial.report to leave run; no sentence, so that nobody takes it for a failure
local Pruned = setmetatable({},
  { __name = "cq.Pruned", __tostring = function() return "the study's pruner has ended this trial" end })

-- ---- reports -------------------------------------------------------------------------------------------------------

-- A number, or a tensor of one number, as a number. what: its name, for errors. Errors: no single number.
local function number_of(value, what)
  if text.is_instance(value, "cq.Tensor") and value.count == 1 then value = value:item() end
  if type(value) ~= "number" then is.fail("%s must be a number, got %s", what, text.describe(value)) end
  return value
end

-- The numbers that a user gives trial.report as a list { name, value } by the alphabet, the one called `first` at the
-- end; a single number has that name. Errors: a value that is no number.
local function named(value, first)
  if type(value) ~= "table" or text.class_of(value) then value = { [first] = value } end
  local list = {}
  for name, one in pairs(value) do
    require_name(name, "trial.report")
    list[#list + 1] = { name = name, value = number_of(one, "trial.report: " .. name) }
  end
  table.sort(list, function(a, b)
    if a.name == first or b.name == first then return b.name == first and a.name ~= first end
    return a.name < b.name
  end)
  return list
end

-- A new function trial.report(step, value) for the trial `self`. keep(name, step, value) stores a number, the one that
-- the pruner compares as the last of a step; ask(step, value) returns whether the trial goes on, the less the better.
-- It raises Pruned where the pruner ends the trial.
local function reporter(study, self, keep, ask)
  -- experiment: what run:optimize calls on_iteration with, beside its loss
  return function(step, value, experiment)
    is.argument("trial.report", "step", is.number(), step)
    if value == nil then is.fail "trial.report: the value is missing: trial.report(step, value)" end
    if self.pruned then error(Pruned, 0) end
    local objective = study.objectives[1]
    if text.is_instance(experiment, "cq.Experiment") then objective = { name = "loss", sign = 1 } end
    local list = named(value, objective.name)
    for _, entry in ipairs(list) do keep(entry.name, step, entry.value) end
    local last = list[#list]
    local first = last and last.name == objective.name and last.value * objective.sign
    if first and study.pruner and study.pruner:is_rung(step) and not ask(step, first) then
      self.pruned = true
      error(Pruned, 0)
    end
  end
end

-- ---- results -------------------------------------------------------------------------------------------------------

-- A list of numbers, or a tensor of rank 1, as a list; nil for any other value.
local function curve_of(value)
  if text.is_instance(value, "cq.Tensor") and value.rank == 1 and value.count > 1 then return value:totable() end
  if type(value) ~= "table" or getmetatable(value) or #value == 0 or not text.is_list(value) then return nil end
  for _, y in ipairs(value) do
    if type(y) ~= "number" then return nil end
  end
  return value
end

-- Raises an error if a name that run returned cannot be a column of the study's table. Other trials would only tell so
-- after their whole computation too: no more are begun.
local function require_result_name(name, study)
  local fine, problem = pcall(require_name, name, "run returned", study.space)
  if fine then return end
  study.refusal = problem:sub(#is.where() + 1)         -- who tells it puts the place before it
  error(problem, 0)
end

-- What a table that run returned has in the place of a missing objective, in words: its numbers by their names.
local function found_words(returned, numbers, name)
  if returned[name] ~= nil then return text.describe(returned[name]) end
  local names = tables.names(numbers)
  return #names == 0 and "nothing of this name, and no number" or "nothing of this name, but "
    .. table.concat(names, ", ") .. text.suggestion(name, names)
end

local DEEPEST = 8      -- tables within tables

-- Are all keys of a table, which is no object, texts?
local function is_named(value)
  if type(value) ~= "table" or getmetatable(value) then return false end
  for key in pairs(value) do
    if type(key) ~= "string" then return false end
  end
  return next(value) ~= nil
end

-- Sorts the values of a table that run returned into out.numbers and out.curves by their names; those of tables in it
-- have names with dots, as deviation.young. What a study cannot keep goes to out.others, a list of words. prefix: of
-- the names. Errors: a name that cannot be a column.
local function sort_out(study, returned, out, prefix, depth)
  for key, value in pairs(returned) do
    local name, curve = prefix .. tostring(key), type(key) == "string" and curve_of(value)
    if text.is_instance(value, "cq.Tensor") and value.count == 1 then value = value:item() end
    local number = type(key) == "string" and type(value) == "number" and value
    if curve or number then require_result_name(name, study) end
    if (curve or number) and (out.curves[name] or out.numbers[name]) then
      out.others[#out.others + 1] = ("%s, of which there are two"):format(name)
    elseif curve then
      out.curves[name] = curve
    elseif number then
      out.numbers[name] = number
    elseif depth < DEEPEST and is_named(value) then
      sort_out(study, value, out, name .. ".", depth + 1)
    else
      out.others[#out.others + 1] = ("%s (%s)"):format(name, text.article(text.class_of(value) or type(value)))
    end
  end
end

-- The numbers by name that run returned, and a sentence on what is left out, nil for nothing; a single number is the
-- first objective. Lists are stored as curves by keep(name, step, value). Errors: no finite number for an objective.
local function result_of(study, returned, keep)
  local first = study.objectives[1].name
  if type(returned) == "number" or text.is_instance(returned, "cq.Tensor") then returned = { [first] = returned } end
  if type(returned) ~= "table" then
    is.fail("run must return a table with the number %s, got %s", first, returned == nil and "nothing"
      or text.describe(returned))
  end
  local found = { numbers = {}, curves = {}, others = {} }
  sort_out(study, returned, found, "", 1)
  for _, name in ipairs(tables.names(found.curves)) do
    for step, y in ipairs(found.curves[name]) do keep(name, step, y) end
  end
  local numbers = found.numbers
  for _, entry in ipairs(study.objectives) do
    local value = numbers[entry.name]
    if value == nil then is.fail("run must return a number for %s, got %s", entry.name,
      found_words(returned, numbers, entry.name)) end
    if value - value ~= 0 then is.fail("run returned %s for %s, which must be a finite number", text.number(value),
      entry.name) end
  end
  table.sort(found.others)
  return numbers, found.others[1] and ("run returned %s, which a study does not keep: it keeps numbers, lists of "
    .. "numbers, and named tables of these"):format(text.join(found.others)) or nil
end

-- The numbers of a result as JSON can hold them: NaN and infinities as texts.
local function storable(numbers)
  local out = {}
  for name, value in pairs(numbers) do out[name] = value - value == 0 and value or text.exact(value) end
  return out
end

-- ---- what it leaves ------------------------------------------------------------------------------------------------

-- Creates a trial's folder; the folder of an earlier attempt is renamed. Errors: it cannot be created.
local function make_folder(folder)
  if host.kind(folder) then os.rename(folder, place.unused(folder .. ".earlier-")) end
  if process.make_folder(folder) then return end         -- its parents are there but for the first trial
  local made, problem = host.make_folder(folder)
  if not made then is.fail("the folder %s cannot be made: %s", folder, tostring(problem)) end
end

-- Writes reported values, a list of { name, step, value }, as history.csv into a trial's folder, unless the trial's run
-- has written one.
local function write_history(folder, kept)
  if #kept == 0 or host.kind(folder .. "/history.csv") then return end
  local names, rows, order, seen = {}, {}, {}, {}
  for _, entry in ipairs(kept) do
    local name, step = entry[1], entry[2]
    if not seen[name] and name ~= "loss" then seen[name], names[#names + 1] = true, name end
    if not rows[step] then rows[step], order[#order + 1] = {}, step end
    rows[step][name] = entry[3]
  end
  table.sort(names)
  table.insert(names, 1, "loss")       -- by which cq.Run.read_history knows a history; empty where none was reported
  table.sort(order)
  local lines = { "iteration," .. table.concat(names, ",") }
  for _, step in ipairs(order) do
    local cells = { text.exact(step) }
    for k, name in ipairs(names) do cells[k + 1] = rows[step][name] and text.exact(rows[step][name]) or "" end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  atomic_file.write(folder .. "/history.csv", table.concat(lines, "\n") .. "\n")
end

local first_keys = { "study", "trial", "state", "problem", "point", "seed", "replicate" }

-- Writes trial.json into the trial's folder: its point, where it ran, and its state with result or problem. job: of
-- job_of in study/runner.lua.
local function write_manifest(study, job, state, result, problem)
  local point = {}
  for _, entry in ipairs(study.space) do point[entry.name] = entry.parameter:plain(job.point[entry.name]) end
  local system, machine = host.system()
  atomic_file.write(job.folder .. "/trial.json", json.encode({
    study = study.name, trial = job.number, state = state, problem = problem, point = point,
    seed = job.seed, replicate = job.replicate, attempt = job.attempts, result = result, script = script.path,
    script_hash = job.script, options = job.options, all_options = true, threads = option.program.threads,
    command = job.command, version = host.version, system = system, host = machine, began = job.began,
    ended = process.now(),
  }, first_keys) .. "\n")
end

-- ---- running -------------------------------------------------------------------------------------------------------

-- The cq.Trial that the user's function is given, from a job; of an empty table `given`, one outside of a study.
local function described(study, given)
  return setmetatable({
    number = given.number or 1, seed = given.seed or study.seed, replicate = given.replicate or 1,
    folder = given.folder or ".",
  }, Trial)
end

-- Calls the user's function at a point. keep, ask: as in `reporter`; tell(sentence): warns the user. Returns "done" and
-- its storable numbers, "pruned", or "failed" and the error's text; "refused" where all trials would fail.
local function try(study, job, keep, ask, tell)
  local self = described(study, job)
  self.report = reporter(study, self, keep, ask)
  local explain = script.explain
  local fine, returned = xpcall(function()
    local numbers, left_out = result_of(study, study.run(study:point(job.point), self), keep)
    if left_out then tell(left_out) end
    for _, sentence in ipairs(option.unused(false, true)) do tell(sentence) end
    return storable(numbers)
  end, function(problem)
    return problem == Pruned and Pruned or explain(problem)
  end)
  if self.pruned then return "pruned" end
  if study.refusal then return "refused", study.refusal end
  return fine and "done" or "failed", returned
end

---Runs the study's function once at a point, without a trial's folder and without reports, so that an error of the
---user's shows before the study begins.
---@param study cq.Study
---@param numbers table<string, number>
function trial.check(study, numbers)
  local self = described(study, {})
  self.report = reporter(study, self, function() end, function() return true end)
  local _, left_out = result_of(study, study.run(study:point(numbers), self), function() end)
  if left_out then message.warn("%s", left_out) end
end

-- Closes the cq.Run that a trial left open, with the problem that ended the trial, or nil.
local function close_run(problem)
  local Run = package.loaded["cq.run"]
  if Run then pcall(Run.close_open, problem) end
end

-- Has the trial's folder an interrupted training that can be resumed?
local function can_resume(folder)
  if host.kind(folder .. "/trial.json") then return false end
  for _, entry in ipairs(host.entries(folder) or {}) do
    if entry == "optimizer.bin" or host.kind(("%s/%s/optimizer.bin"):format(folder, entry)) then return true end
  end
  return false
end

-- Runs a trial from its job: creates its folder, calls the function, and writes history and manifest. keep, ask, tell:
-- as in `try`. Unless it is run alone, what the process prints goes to output.txt from then on; --out and --seed become
-- the trial's. Returns the state "done", "pruned", "failed", "refused" or "interrupted", and the numbers or the first
-- line of the problem.
local function carry_out(study, job, keep, ask, tell)
  if study.resumes and not job.alone and can_resume(job.folder) then
    option.set_silently("resume", true)
  else
    make_folder(job.folder)
  end
  if not job.alone then process.print_to(job.folder .. "/output.txt") end
  option.program.out, option.program.seed = job.folder, job.seed
  local kept = {}
  local state, result = try(study, job, function(name, step, value)
    kept[#kept + 1] = { name, step, value }
    keep(name, step, value)
  end, ask, tell)
  local problem = state == "failed" and result or nil
  if problem and not job.alone then io.stdout:write(problem, "\n") end
  close_run(state == "failed" and problem:match "^[^\n]*" or state == "pruned" and tostring(Pruned) or nil)
  -- a trial that was refused, or asked to stop, has no result
  if state == "refused" then return state, result end
  if engine.C.cq_interrupted() ~= 0 then return "interrupted" end
  host.make_folder(job.folder)          -- it may have been removed meanwhile
  write_history(job.folder, kept)
  local sentence = problem and problem:match "^[^\n]*"
  write_manifest(study, job, state, state == "done" and result or nil, sentence)
  return state, state == "done" and result or sentence
end

---Runs a trial's function without training: run:optimize loads the result saved in the trial's folder.
---@param study cq.Study
---@param job table
---@return cq.Experiment?        that was optimised last
function trial.replay(study, job)
  option.program.out, option.program.seed, option.program.replay = job.folder, job.seed, true
  local self = described(study, job)
  self.report = function() end
  study.run(study:point(job.point), self)
  return require("cq.experiment.untrained").replayed()
end

---Runs a trial alone, outside of any store. Returns its state, and its numbers or its problem.
---@return string state, table|string|nil result
function trial.alone(study, job)
  job.alone = true
  return carry_out(study, job, function() end, function() return true end,
    function(sentence) message.warn("%s", sentence) end)
end

-- Runs one trial that the parent has sent (line: JSON of its job), and tells the parent the result; false if it was
-- interrupted.
local function serve_one(study, line)
  local job = json.decode(line)
  job.alone = false
  local fine, state, result = pcall(carry_out, study, job, function(name, step, value)
    process.tell(("report\t%s\t%s\t%s"):format(name, text.exact(step), text.exact(value)))
  end, function(step, value)
    process.tell(("ask\t%s\t%s"):format(text.exact(step), text.exact(value)))
    return process.read_line() == "go"
  end, function(sentence) process.tell("told\t" .. json.encode { sentence = sentence }) end)
  if not fine then state, result = "failed", tostring(state) end       -- its folder cannot be written
  if state == "interrupted" then return false end
  io.stdout:flush()
  process.tell(state .. "\t" .. json.encode(state == "done" and result or { problem = result }))
  return true
end

-- Runs one trial (line: JSON of its job) in a fork of this process, which has loaded the script, and tells the parent
-- how the fork ended.
local function serve_apart(study, line)
  local n = json.decode(line).job
  io.stdout:flush()
  local code, signal = process.in_a_fork(function()
    serve_one(study, line)
    io.stdout:flush()
  end)
  process.tell(("ended\t%d\t%d\t%d"):format(n, code or -1, signal or 0))
end

---what is said of a script that was changed while its study runs
trial.CHANGED = "the script, or a module that it loads, was changed while its study runs, and no more trials are begun. "
  .. "Undo the change and the same command goes on, or let what is there count too with --go-on"

---Tells the parent that the script was changed, and no trial is run.
function trial.refuse_changed() process.tell("refused\t" .. json.encode { problem = trial.CHANGED }) end

---The loop of a child process: runs trials as the parent asks, until it asks for no more. Each trial has a process of
---its own unless the study says otherwise: a fork of this one if the script has started no threads; else this one,
---which then ends. A parent that has loaded other texts is refused.
---@param study cq.Study
---@param loaded string         the hash of the texts that this process has loaded
function trial.serve(study, loaded)
  if not process.join_parent() then return end
  while true do
    local line = process.read_line()
    if not line then return end
    if json.decode(line).loaded ~= loaded then
      return trial.refuse_changed()
    elseif study.process == "job" then
      if not serve_one(study, line) then return end
    elseif process.threads() == 1 then
      serve_apart(study, line)
    else
      process.tell "last"
      serve_one(study, line)
      return
    end
  end
end

return trial
