-- run: the folder that a run leaves, and what is seen of it while it goes on.
--
--   history.csv      a line for each iteration, columns begin iteration,loss
--   manifest.json    script and its hash, arguments, options, seed, versions, device, dates, seconds of all sessions
--   script.lua       the script as it was
--   params.bin       parameters, as cq.load reads them
--   optimizer.bin    parameters with the optimizer's state: what --resume goes on from
--   saved.bin        of an experiment or a solve: the best so far, to be used without the script (cq.load)
--   failure.bin      of an experiment whose simulation failed: the last states before (cqlua replay)
--   checkpoints/     states of every so many iterations, where they are kept (keep = 10): what forks begin from
--   sources/         the Lua files that the script has loaded
--
-- A loop:
--   local run = Run.open { iterations = 100, resume = true }
--   local saved = run.saved                        -- { params = ..., optimizer = ..., iteration = n } when it goes on;
--                                                  -- a script that does not read it is refused then
--   for i = run.done + 1, run.iterations do
--     run:record { iteration = i, loss = loss }    -- history and progress
--     run:checkpoint(i, params, state)             -- at most every few seconds
--     if run:interrupted() then break end
--   end
--   run:finish(params, state)                      -- saves, and closes the manifest
local method = require "cq.base.method"
local bit = require "bit"
local atomic_file = require "cq.base.atomic_file"
local checkpoint = require "cq.run.checkpoint"
local engine = require "cq.base.engine"
local changed_script = require "cq.run.changed_script"
local folders = require "cq.run.folder"
local History = require "cq.run.history"
local host = require "cq.host"
local json = require "cq.base.json"
local manifests = require "cq.run.manifest"
local message = require "cq.base.message"
local option = require "cq.option"
local place = require "cq.base.place"
local Progress = require "cq.run.progress"
local reading = require "cq.run.reading"
local schema = require "cq.base.schema"
local script = require "cq.base.script"
local tables = require "cq.base.tables"
local taken = require "cq.run.taken"
local tensor = require "cq.tensor"
local text = require "cq.base.text"
local watch = require "cq.base.watch"

local C, is = engine.C, schema

---@class cq.Run
---@field folder string          that its files are in
---@field iterations integer     in all
---@field done integer           iterations made; above 0 at the start when the run was resumed
---@field saved table?           { iteration =, params =, optimizer = } of the run that goes on
local Run = {}
-- The fields and methods of a run. Notes when a script reads what was saved: a run whose state nobody reads would start
-- over.
Run.__index = function(self, key)
  if key ~= "saved" then return Run[key] end
  rawset(self, "was_read", true)
  return rawget(self, "kept")
end
Run.__name = "cq.Run"

---Called after a run has recorded a row of its history; set by the live page (--serve).
---@type fun(run: cq.Run, row: table)|false
Run.on_record = false

local CHECKPOINT = 5             -- [s] between two saves of parameters and optimizer state

---@class cq.Run.def
---@field iterations? integer    in all; 0: not known beforehand
---@field folder? string         default: --out, else runs/<name of the script>; where the script has begun a run there,
---  and resume is not true, a subfolder of it: run-2, run-3, ... A folder that is given is that of the run all the
---  same: what the script has in it moves away
---@field resume? boolean        go on from what lies in the folder; default: --resume
---@field fresh? boolean         with resume: begin where there is nothing to go on from, as one of several runs of a script
---@field keep? integer          a checkpoint of every so many iterations is kept; none unless given; --keep takes its place
---@field device? string         for the manifest
---@field notes? table           more for the manifest: numbers, strings, lists, tables
---@field state? string          with resume: file of the folder that it goes on from, optimizer.bin unless given; what the
---  run had beside it is kept in the folder earlier-1, -2, ...
local definition = schema.define("cq.Run", {
  iterations = is.integer { min = 0, max = 2 ^ 31 - 1, default = 0 },
  folder = is.string { optional = true },
  resume = is.boolean { optional = true },
  fresh = is.boolean { default = false },
  keep = is.integer { min = 1, optional = true },
  device = is.string { optional = true },
  notes = is.table { default = {} },
  state = is.string { optional = true },
})

-- ---- the manifest ---------------------------------------------------------------------------------------------------

---@internal
---A hash of bytes, 64-bit FNV-1a as 16 hexadecimal digits: tells whether two texts are the same.
function Run.hash(bytes)
  local hash = 0xcbf29ce484222325ULL
  for i = 1, #bytes do hash = bit.bxor(hash, bytes:byte(i)) * 0x100000001b3ULL end
  return bit.tohex(hash, 16)
end

local manifest_keys = { "command", "script", "script_hash", "started", "finished", "status" }

-- Writes manifest.json into the run's folder, whole or not at all.
local function write_manifest(self)
  atomic_file.write(self:path "manifest.json", json.encode(self.manifest, manifest_keys) .. "\n", { durable = true })
end

-- Is the script only checked, or run again without training? Then its runs leave nothing behind.
local function leaves_nothing() return option.program.check or option.program.replay end

-- Writes the Lua files that the script has loaded into the run's folder, and their hashes by name into the manifest.
local function write_sources(self)
  local sources = {}
  for name, bytes in pairs(script.sources()) do
    local path = self:path("sources/" .. name)
    if not leaves_nothing() then
      host.make_folder((path:match "^(.*)/"))
      atomic_file.write(path, bytes, { durable = true })
    end
    sources[name] = Run.hash(bytes)
  end
  self.manifest.sources = next(sources) and sources or nil
end

-- Writes into the run's folder what describes the run: sources, manifest and script.
local function describe(self)
  if self.follows then return end
  write_sources(self)
  write_manifest(self)
  if self.script then atomic_file.write(self:path "script.lua", self.script, { durable = true }) end
end

-- Keeps in the manifest of a resumed run when its first session began, and the seconds of all sessions so far: of one
-- that was killed those of its iterations. before: the manifest until now; of a fork that begins it has no session.
local function keep_times(self, before)
  if not before.started then return end
  self.manifest.started, self.seconds = before.started, manifests.seconds(before)
  if not self.seconds then
    self.seconds = before.seconds or 0
    for _, row in ipairs(History.rows(self:path "history.csv")) do
      local is_its = row.iteration and row.iteration > (before.resumed_at or 0)
      self.seconds = self.seconds + (is_its and tonumber(row.seconds) or 0)
    end
  end
  self.manifest.seconds = self.seconds
end

-- ---- opening and going on -------------------------------------------------------------------------------------------

---@type table<string, true?>       folders in which this process has begun, and finished, a run
local begun, finished = {}, {}
local gone_on = false              -- this process has gone on with an earlier run
---@type cq.Run?                   that was closed last
local last
---@type cq.Run[]                  that are open, in the order in which they were opened
local opened = {}

---@internal
---The run that was closed last.
---@return cq.Run?
function Run.last() return last end

---The run that is open, if any.
---@return cq.Run?
function Run.current() return place.open end

---@internal
---Raises an error if the folder, or the one that a run would take, cannot be written; leaves nothing there.
---@param folder? string
function Run.check_folder(folder)
  if not option.program.follows then folders.check(folder or place.default_folder()) end
end

---The rows that a run has recorded so far, in the order of its iterations: of history.csv in its folder, also of a run
---that is still at work, or of another process. For curves over several runs.
---Errors: a folder without history.csv.
---@param folder string       run.folder, or that of an experiment's run:optimize
---@return table<string, number|string>[] rows    by the names of their columns; an empty cell is left out
function Run.read_history(folder)
  return History.rows(is.argument("cq.Run.read_history", "folder", is.string(), folder) .. "/history.csv")
end

---Can the run in a folder be resumed: has it saved its state? False without a folder. For scripts of several runs, of
---which some have not begun yet.
---@param folder string
---@return boolean
function Run.can_resume(folder)
  return host.kind(is.argument("cq.Run.can_resume", "folder", is.string(), folder) .. "/optimizer.bin") ~= nil
end

---@internal
---Shall a run resume the state in its folder: as its definition says (`given`), else by --resume?
---@param given boolean?
---@return boolean
function Run.resumes(given) return given or given == nil and option("resume", false) end

---@internal
---The folder of a run: the given or the script's one; with a name, its subfolder.
---@param folder? string
---@param name? string
---@return string?
function Run.folder_of(folder, name) return name and (folder or place.default_folder()) .. "/" .. name or folder end

---The folder that a run takes where none is given: --out, else runs/<name of the script>, or runs/cqlua for a script
---from standard input. It is not made.
---@return string
function Run.default_folder() return place.default_folder() end

---@internal
---Clears a folder of an earlier run for a new one: the earlier run moves away, or is removed with --overwrite, unless
---the script has made it itself. Files that this process has written into the folder so far stay, such as a picture of
---the start, unless the earlier run is its own; runs of this process in subfolders always stay, and those with which
---the script may go on, by --resume.
---@param folder string       that this process has locked
function Run.clear_earlier(folder)
  if not folders.has_run(folder) then return end
  if option.program.overwrite and not taken.has(folder) then return folders.remove_earlier(folder) end
  folders.move_earlier(folder, function(name, moved)
    local may_go_on = Run.resumes() and Run.can_resume(moved) and not name:find "^earlier%-"
    return begun[folder .. "/" .. name] or not begun[folder] and folders.is_changed(moved) or may_go_on
  end, script.path)
end

-- Creates and locks the run's folder, and moves an earlier run away; on the first rank only. A run that leaves nothing
-- behind has a temporary folder instead.
local function open_folder(self, def)
  if option.program.check then folders.check(self.folder) end
  if leaves_nothing() then self.folder, def.resume = folders.scratch(), false end
  folders.make(self.folder)
  folders.lock(self.folder)
  folders.sweep(self.folder)
  if not def.resume then Run.clear_earlier(self.folder) end
  begun[self.folder] = true
end

-- Raises an error after Ctrl-C, so that no further run begins; the folder stays as it is.
local function refuse_interrupted(folder)
  if C.cq_interrupted() == 0 then return end
  engine.interruption = ("interrupted before the run in %s began"):format(folder)
  message.interruption("%s", engine.interruption)
  schema.fail("%s", engine.interruption)
end

---Opens the folder of a run, before any work, so that the run cannot fail for it later; ranks but the first do not
---touch it. After Ctrl-C no run is opened: the script ends. Errors: a folder that another process has locked, or that
---cannot be written; --resume with nothing to resume; a script that cqlua study reads.
---@param def cq.Run.def
---@return cq.Run
function Run.open(def)
  def = definition(def or {})
  if option.program.seeks_study then
    is.fail("cqlua study: the script trains here and has returned no study; give --seeds N where it trains one thing, "
      .. "which is run with several seeds")
  end
  local folder, name = def.folder, def.notes.name
  if not folder then folder, name = taken.next(place.default_folder(), name, def.resume) end
  taken.check(folder, def.resume)
  refuse_interrupted(folder)
  for k = #opened, 1, -1 do
    if opened[k].folder == folder then opened[k]:finish() end
  end
  local out = option.program.out
  if out and folder ~= out and folder:sub(1, #out + 1) ~= out .. "/" then
    message.warn("--out %s is not used: the script writes to the folder %s, which it names", out, folder)
  end
  local takes_resume = def.resume ~= false
  if def.resume == nil then
    def.resume = Run.resumes()
    -- of several runs of a script, those after the one that was interrupted have not begun
    def.fresh = def.fresh or gone_on
  end
  local self = setmetatable({
    folder = folder, iterations = def.iterations, done = 0, saved_at = C.cq_clock(),
    keep = option("keep", nil, is.integer { min = 1 }) or def.keep,
    follows = option.program.follows, takes_resume = takes_resume, seconds = 0, opened_at = C.cq_clock(),
  }, Run)
  if not self.follows then open_folder(self, def) end
  if def.resume and not option.program.check then self:restore(def) end
  if not self.follows then self.history = History.open(self:path "history.csv", self.done) end
  self.script = script.text()          -- the one that runs, also when its file is changed meanwhile
  def.notes = tables.merged(def.notes, { name = name })
  self.manifest = manifests.new(def, self.script and Run.hash(self.script), reading.ranks())
  self.manifest.resumed_at = self.resumed_at
  local before = self.resumed_at and manifests.of(folder) or {}
  self.manifest.parent, self.manifest.prompt = before.parent, before.prompt
  if self.resumed_at and not self.follows then
    keep_times(self, before)
    changed_script.tell(self, before)
  end
  describe(self)
  self.progress = Progress.new(self.iterations, self.done)
  opened[#opened + 1], place.open = self, self
  taken.add(folder, name)
  -- a slip in an option is told before the work, and not after
  for _, sentence in ipairs(option.unused(true)) do message.warn("%s", sentence) end
  return self
end

---@internal
---The state in a folder from which a run can be resumed, as reading.state gives it.
Run.saved_in = reading.state

-- When a run is repeated from an earlier state: copies its files into a subfolder, and saves that state as its present
-- one.
local function set_back(self)
  local kept = folders.keep_earlier(self.folder)
  tensor.save(self:path "optimizer.bin", self.kept)
  message.note("what the run in %s has come to is kept in %s", self.folder, kept)
end

-- Resumes the run in this folder: loads its saved state and continues after its iteration. Errors: nothing is saved,
-- unless def.fresh.
function Run:restore(def)
  self.kept = Run.saved_in(self.folder, def.state)
  if not self.kept then
    if def.fresh then
      gone_on = true                     -- and so do those after it
      return message.note("nothing to go on from in %s: this run begins", self.folder)
    end
    schema.fail("there is nothing to resume in %s: it has no %s; start without --resume", self.folder,
      def.state or "optimizer.bin")
  end
  self.done, self.resumed_at, gone_on = self.kept.iteration, self.kept.iteration, true
  self.saved_iteration = self.done
  if def.state and not self.follows then set_back(self) end
  if not self.follows then checkpoint.remove_after(self.folder, self.done) end
  message.note("going on after iteration %d of the run in %s", self.done, self.folder)
end

---@internal
---The rows of the history up to the iteration after which a run was resumed, on all ranks.
---@return table<string, number>[]
function Run:made()
  local path, out = self:path "history.csv", {}
  local found, is_copy = reading.file(path)
  if not found then return out end
  for _, row in ipairs(History.rows(found, path)) do
    if row.iteration and row.iteration <= self.done then out[#out + 1] = row end
  end
  if is_copy then os.remove(found) end
  return out
end

---@internal
---Removes saved files of the plan's stages that will be made again.
---@param stays table<string, boolean>     names of the stages that are not
function Run:remove_stages(stays)
  if not self.follows then folders.remove_stages(self.folder, stays) end
end

---@internal
---Writes a file of the folder, whole or not at all; on the first rank only.
---@param name string
---@param bytes string
function Run:write(name, bytes)
  if not self.follows then atomic_file.write(self:path(name), bytes) end
end

---The path of a file in the run's folder, which may not be there.
---@param name string
---@return string
function Run:path(name) return self.folder .. "/" .. name end

-- ---- while it goes on -----------------------------------------------------------------------------------------------

-- Creates the run's folder again if somebody removed it, with the files known so far.
local function keep_folder(self)
  if self.follows then return end
  if not folders.restore(self.folder) then return end
  describe(self)
  self.history:keep()
  self.saved_at = -math.huge           -- parameters are saved again at the next chance
end

-- Called before a run writes: creates its folder again if it was removed. what: the calling method, for errors. Errors:
-- the run is finished; it was resumed, and the script has not read what was saved.
local function ready(self, what)
  if self.closed then schema.fail("%s: this run is finished; cq.Run.open opens another", what) end
  if self.kept and not self.was_read then
    schema.fail("%s: this run goes on after iteration %d, and the script has not read what was saved; begin with "
      .. "run.saved.params and run.saved.optimizer and count from run.done + 1, or open the run with resume = false",
      what, self.done)
  end
  keep_folder(self)
end

-- Appends a row to the history; sets self.done to its iteration. what: the calling method, for errors. Errors: of
-- ready; an iteration that is no whole number, or up to resumed_at; a loss that is no number.
local function append(self, row, what)
  ready(self, what)
  for _, name in ipairs { "iteration", "loss" } do
    local value = row[name]
    if value ~= nil and type(value) ~= "number" then
      schema.fail("%s: %s must be a number, got %s", what, name, text.describe(value))
    end
  end
  if row.iteration % 1 ~= 0 or row.iteration < 0 then            -- also nan and inf
    schema.fail("%s: iteration must be a whole number at least 0, got %s", what, text.describe(row.iteration))
  end
  if self.resumed_at and row.iteration <= self.resumed_at then
    schema.fail("%s: iteration %s is recorded already, this run goes on after iteration %d; count from run.done + 1",
      what, text.describe(row.iteration), self.resumed_at)
  end
  if self.history then self.history:append(row) end
  self.done = row.iteration
end

---Adds a row to the history and updates the progress. Errors: a finished run; an iteration up to the one after which
---the run was resumed; a run that was resumed, before its script has read run.saved.
---@param fields table<string, any>   iteration (default: the next), loss, and whatever else: numbers, strings, tensors
function Run:record(fields)
  local row = History.row(fields, "cq.Run:record")
  row.iteration = row.iteration or self.done + 1
  append(self, row, "run:record")
  if self.iterations > 0 then self.progress:update(self.done, row.loss, row.gradient) end
  if Run.on_record then Run.on_record(self, row) end
end

-- Raises an error if parameters that are to be saved are no plain table. what: the calling method.
local function check_saved(what, params)
  if type(params) == "table" and not getmetatable(params) then return end
  schema.fail("%s: params must be a table such as { w = tensor }, got %s", what, schema.describe(params))
end

---Saves parameters and optimizer state as params.bin and optimizer.bin, each replaced in one step, and every `keep`
---iterations a copy that stays. Errors: as run:record, but for the iteration.
---@param iteration integer
---@param params table            as cq.save takes it
---@param optimizer? table        the optimizer's state
function Run:save(iteration, params, optimizer)
  check_saved("run:save", params)
  ready(self, "run:save")
  -- one file holds all that resuming needs, so that a crash between two files cannot mix two iterations
  local state = { iteration = iteration, params = params, optimizer = optimizer }
  tensor.save(self:path "optimizer.bin", state)
  self.saved_iteration = iteration
  tensor.save(self:path "params.bin", params)
  if self:keeps(iteration) and not self.follows then checkpoint.write(self.folder, state) end
  self.saved_at, self.unsaved = C.cq_clock(), nil
end

---@internal
---Is the state of this iteration kept in checkpoints/, for forks?
---@param iteration integer
---@return boolean
function Run:keeps(iteration) return self.keep ~= nil and iteration > 0 and iteration % self.keep == 0 end

---Saves if the last save is 5 s old or `keep` divides the iteration; otherwise copies the values in memory, to be
---saved if the run ends before the next save.
---@param iteration integer
---@param params table            as cq.save takes it
---@param optimizer? table        the optimizer's state
function Run:checkpoint(iteration, params, optimizer)
  check_saved("run:checkpoint", params)
  ready(self, "run:checkpoint")
  if self:keeps(iteration) or C.cq_clock() - self.saved_at >= CHECKPOINT then
    return self:save(iteration, params, optimizer)
  end
  -- a copy: the next iteration may fail halfway through its update
  self.unsaved = { iteration = iteration, params = tensor.leaves.snapshot(params),
    optimizer = tensor.leaves.snapshot(optimizer) }
end

---Did the user ask to stop, by Ctrl-C, or with --watch by saving the script? The latter stops running rollouts too.
---@return boolean
function Run:interrupted()
  if watch.wants() then C.cq_interrupt(1) end
  return C.cq_interrupted() ~= 0
end

-- Prints, after Ctrl-C, how the run can be resumed.
local function tell_interruption(self)
  if watch.wanted or self.done == 0 then return end
  local saves = self.takes_resume and host.kind(self:path "optimizer.bin")
  message.interruption("interrupted after iteration %d; what was computed is kept in %s%s", self.done, self.folder,
    saves and "; the same command with --resume goes on from there" or "")
end

-- Prints after an error up to which iteration the run can be resumed.
local function tell_failure(self)
  local made = self.saved_iteration or 0
  if not (self.takes_resume and made > 0 and host.kind(self:path "optimizer.bin")) then return end
  message.note("kept in %s: the run up to iteration %d; the same command with --resume goes on from there",
    self.folder, self.saved_iteration)
end

-- Closes a run, however it ended: saves the last checkpoint, completes the manifest, unlocks the folder. If one of
-- these fails, as on a full disk, the others are done all the same, and its error is raised at the end. status:
-- "finished", "interrupted" or "failed"; problem: the script's error.
local function close_run(self, status, problem)
  for k, run in ipairs(opened) do
    if run == self then table.remove(opened, k) break end
  end
  if place.open == self then place.open = nil end
  self.progress:close()
  local why
  -- Calls f; its error, if it is the first, is raised at the end.
  local function attempt(f, ...)
    local fine, wrong = pcall(f, ...)
    if not fine then why = why or wrong end
  end
  local unsaved = self.unsaved
  if unsaved then attempt(self.save, self, unsaved.iteration, unsaved.params, unsaved.optimizer) end
  self.manifest.finished, self.manifest.status, self.manifest.problem = manifests.date(), status, problem
  self.manifest.iterations_done = self.done
  self.manifest.seconds = tonumber(("%.3f"):format(self.seconds + C.cq_clock() - self.opened_at))
  if not self.follows then
    attempt(keep_folder, self)
    attempt(write_manifest, self)
    attempt(self.history.close, self.history)
    folders.unlock(self.folder)
  end
  self.closed = true
  if leaves_nothing() and not self.follows then folders.remove_scratch(self.folder) end
  finished[self.folder] = true
  if status == "failed" then tell_failure(self) end
  if why then error(why, 0) end
  last = self
  if status == "interrupted" then tell_interruption(self) end
end

---Saves, completes the manifest, which says "interrupted" after Ctrl-C, and closes and unlocks the folder.
---Errors: a run that is finished already.
---@param params? table         saved as of the last recorded iteration; else what the last checkpoint has kept
---@param optimizer? table      saved with params
function Run:finish(params, optimizer)
  if self.closed then schema.fail "run:finish: this run is finished already" end
  self.progress:close()
  if params then self:save(self.done, params, optimizer) end
  close_run(self, self:interrupted() and "interrupted" or "finished")
end

---@internal
---Closes the runs that are still open when the script ends; the program calls it. If one of them cannot be, as on a
---full disk, the others are all the same, and its error is raised at the end.
---@param problem? string        the error that ended the script
function Run.close_open(problem)
  local is_open, fine, why = #opened > 0, true, nil
  while #opened > 0 do
    local run = opened[#opened]
    local own = run.problem or problem
    local status = run:interrupted() and "interrupted" or own and "failed" or "finished"
    local closed, wrong = pcall(close_run, run, status, own)
    if not closed then fine, why = false, why or wrong end
  end
  if not fine then error(why, 0) end
  if not is_open and last and C.cq_interrupted() ~= 0 then
    tell_interruption(last)              -- it came when the script did something else
  end
end

-- The run in one line: folder and iterations.
function Run:__tostring()
  return ("cq.Run %s: %d of %d iterations"):format(self.folder, self.done, self.iterations)
end

-- ---- cq.log ---------------------------------------------------------------------------------------------------------

---@internal
---cq.log: prints a line of named values, and appends it to the history of the open run; without one, to that of a new
---run in --out, unless the script has a run there, or --resume goes on with one.
---@param fields table<string, any>   numbers, strings, tensors; iteration or epoch counts, loss is the loss
function Run.log(fields)
  schema.argument("cq.log", "values", is.table(), fields)
  local row = History.row(fields, "cq.log")
  if not option.program.quiet then
    if message.wipe then message.wipe() end
    local words = {}
    for i, name in ipairs(History.order(row)) do
      words[i] = ("%s %s"):format(name, type(row[name]) == "number" and ("%.6g"):format(row[name])
        or tostring(row[name]))
    end
    print(table.concat(words, "  "))
  end
  -- what is told after a run has finished, or before one is resumed, is only told: another run in its folder would move
  -- its files away
  local out = option.program.out
  local is_taken = out and (finished[out] or taken.has(out) or Run.resumes() and Run.can_resume(out))
  if not place.open and out and not is_taken and C.cq_interrupted() == 0 then
    Run.open { resume = false }
    taken.remove(out)                    -- that of a training takes its place
  end
  local run = place.open
  if not run then return end
  row.iteration = row.iteration or row.epoch or run.done + 1
  append(run, row, "cq.log")
end

method.guard(Run, "run", { "restore", "made", "path", "record", "save", "checkpoint", "interrupted", "finish" })

return Run
