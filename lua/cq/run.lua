-- run: the folder that a run leaves, and what is seen of it while it goes on.
--
--   history.csv      a line for each iteration, columns begin iteration,loss
--   manifest.json    script and its hash, arguments, options, seed, versions, device, dates
--   script.lua       the script as it was
--   params.bin       parameters, as cq.load reads them
--   optimizer.bin    parameters with the optimizer's state: what --resume goes on from
--   best.bin         of an experiment: the parameters of the least loss
--
-- A loop:
--   local run = Run.open { iterations = 100, resume = true }
--   local saved = run.saved                        -- { params = ..., optimizer = ..., iteration = n } when it goes on
--   for i = run.done + 1, run.iterations do
--     run:record { iteration = i, loss = loss }    -- history and progress
--     run:checkpoint(i, params, state)             -- at most every few seconds
--     if run:interrupted() then break end
--   end
--   run:finish(params, state)                      -- saves, and closes the manifest
local bit = require "bit"
local ffi = require "ffi"
local engine = require "cq.engine"
local History = require "cq.history"
local host = require "cq.host"
local json = require "cq.json"
local message = require "cq.message"
local option = require "cq.option"
local program = require "cq.program"
local Progress = require "cq.progress"
local schema = require "cq.schema"
local tensor = require "cq.tensor"

local C, is = engine.C, schema

---@class cq.Run
---@field folder string          that its files are in
---@field iterations integer     in all
---@field done integer           iterations made; above 0 at the start when the run was resumed
---@field saved table?           { iteration =, params =, optimizer = } of the run that goes on
local Run = {}
Run.__index = Run
Run.__name = "cq.Run"

local CHECKPOINT = 5             -- [s] between two saves of parameters and optimizer state

---@class cq.Run.def
---@field iterations? integer    in all; 0: not known beforehand
---@field folder? string         default: --out, else runs/<name of the script>
---@field resume? boolean        go on from what lies in the folder; default: --resume
---@field device? string         for the manifest
---@field notes? table           more for the manifest: numbers, strings, lists, tables
local definition = schema.define("cq.Run", {
  iterations = is.integer { min = 0, default = 0 },
  folder = is.string { optional = true },
  resume = is.boolean { optional = true },
  device = is.string { optional = true },
  notes = is.table { default = {} },
})

-- ---- the folder -----------------------------------------------------------------------------------------------------

local function default_folder()
  local name = (program.script or "cqlua"):match "([^/]+)$":gsub("%.lua$", "")
  return option.program.out or "runs/" .. name
end

-- the folder is there and takes files; told before any work is done
local function make_folder(folder)
  local made, problem = host.make_folder(folder)
  local probe = folder .. "/.writable"
  if made then
    local file
    file, problem = io.open(probe, "w")
    if file then
      file:close()
      os.remove(probe)
      return
    end
    problem = tostring(problem):gsub("^.-: ", "", 1)
  end
  schema.fail("the folder %s cannot be written: %s; choose another with --out", folder, tostring(problem))
end

---@type table<string, integer>     folders that this process has locked
local locks = {}

-- two runs in one folder would mix their files; one whose script went on without finishing it is over
local function lock_folder(folder)
  local lock = locks[folder] or host.lock(folder)
  if lock == false then schema.fail("another run is at work in the folder %s; choose another with --out, or let it end", folder) end
  locks[folder] = lock
end

local function unlock_folder(folder)
  if locks[folder] then host.unlock(locks[folder]) end
  locks[folder] = nil
end

local files = { "history.csv", "manifest.json", "script.lua", "params.bin", "optimizer.bin", "best.bin" }

-- what an earlier run left here is never overwritten: it moves to earlier-1, earlier-2, ...
local function move_earlier(folder)
  local found = {}
  for _, name in ipairs(files) do
    if host.kind(folder .. "/" .. name) then found[#found + 1] = name end
  end
  if #found == 0 then return end
  local count = 1
  while host.kind(("%s/earlier-%d"):format(folder, count)) do count = count + 1 end
  local earlier = ("%s/earlier-%d"):format(folder, count)
  make_folder(earlier)
  for _, name in ipairs(found) do
    local moved, problem = os.rename(folder .. "/" .. name, earlier .. "/" .. name)
    if not moved then schema.fail("the earlier run in %s cannot be moved away: %s", folder, problem) end
  end
  message.note("the earlier run in %s is now in %s", folder, earlier)
end

-- a run that is only checked leaves nothing behind: it learns whether its folder can be written, and works in another
local function scratch_for(folder)
  local there = host.kind(folder)
  make_folder(folder)
  if not there then os.remove(folder) end
  local scratch = os.tmpname()
  os.remove(scratch)
  make_folder(scratch)
  return scratch
end

local function remove_scratch(folder)
  for _, name in ipairs(host.entries(folder) or {}) do os.remove(folder .. "/" .. name) end
  os.remove(folder)
end

local function write_file(path, bytes)
  engine.check(C.cq_file_replace(path, ffi.cast("const void *", bytes), #bytes))
end

-- ---- the manifest ---------------------------------------------------------------------------------------------------

---@internal
---64-bit FNV-1a, as 16 hexadecimal digits: tells whether two texts are the same.
function Run.hash(bytes)
  local hash = 0xcbf29ce484222325ULL
  for i = 1, #bytes do hash = bit.bxor(hash, bytes:byte(i)) * 0x100000001b3ULL end
  return bit.tohex(hash, 16)
end

local function script_text()
  local file = program.script and program.script ~= "-" and io.open(program.script, "rb")
  if not file then return nil end
  local all = file:read "*a"
  file:close()
  return all
end

local function date() return os.date "!%Y-%m-%dT%H:%M:%SZ" end

-- as a shell would need it to be typed
local function quoted(word)
  if word:match "^[%w_./=:,+-]+$" then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function manifest_of(def)
  local words = { "cqlua" }
  for _, word in ipairs(program.arguments or {}) do words[#words + 1] = quoted(word) end
  local system, name = host.system()
  local options = option.given()
  for key, value in pairs(option.program) do options[key] = value end
  local text = script_text()
  return {
    command = table.concat(words, " "), script = program.script, script_hash = text and Run.hash(text),
    options = options, seed = option.program.seed, device = def.device or option.program.device or "cpu",
    version = host.version, abi = C.CQ_ABI, lua = jit.version, system = system, host = name,
    started = date(), iterations = def.iterations, notes = def.notes,
  }
end

local manifest_keys = { "command", "script", "script_hash", "started", "finished", "status" }

function Run:write_manifest()
  write_file(self:path "manifest.json", json.encode(self.manifest, manifest_keys) .. "\n")
end

-- ---- opening and going on -------------------------------------------------------------------------------------------

-- the run whose history cq.log appends to
local current

---The run that is open, if any.
---@return cq.Run?
function Run.current() return current end

---@internal
---Can this folder (or the one that a run would take) be written? An error if not; nothing is left there.
---@param folder? string
function Run.check_folder(folder) remove_scratch(scratch_for(folder or default_folder())) end

---Opens the folder, so that a run cannot fail for it later.
---@param def cq.Run.def
---@return cq.Run
function Run.open(def)
  def = definition(def or {})
  if def.resume == nil then def.resume = option("resume", false) end
  local self = setmetatable({
    folder = def.folder or default_folder(), iterations = def.iterations, done = 0, saved_at = C.cq_clock(),
  }, Run)
  if option.program.check then
    self.folder, def.resume = scratch_for(self.folder), false
  end
  make_folder(self.folder)
  lock_folder(self.folder)
  if def.resume then self:restore() else move_earlier(self.folder) end
  self.history = History.open(self:path "history.csv", self.done)
  self.manifest = manifest_of(def)
  if self.done > 0 then self.manifest.resumed_at = self.done end
  self:write_manifest()
  local text = script_text()
  if text then write_file(self:path "script.lua", text) end
  self.progress = Progress.new(self.iterations, self.done)
  current = self
  -- a slip in an option is told before the work, and not after
  for _, sentence in ipairs(option.unused(true)) do message.warn("%s", sentence) end
  return self
end

function Run:restore()
  local path = self:path "optimizer.bin"
  if not host.kind(path) then
    schema.fail("there is nothing to resume in %s: it has no optimizer.bin; start without --resume", self.folder)
  end
  self.saved = tensor.load(path)
  self.done = self.saved.iteration
  message.note("going on after iteration %d of the run in %s", self.done, self.folder)
end

---A file in the run's folder.
---@param name string
---@return string
function Run:path(name) return self.folder .. "/" .. name end

-- ---- while it goes on -----------------------------------------------------------------------------------------------

---Adds a line to the history and moves the progress on.
---@param fields table<string, any>   iteration (default: the next), loss, and whatever else: numbers, strings, tensors
function Run:record(fields)
  local row = History.row(fields, "cq.Run:record")
  row.iteration = row.iteration or self.done + 1
  self.history:append(row)
  self.done = row.iteration
  if self.iterations > 0 then self.progress:update(self.done, row.loss) end
end

---Saves parameters and optimizer state, each file replaced in one step.
---@param iteration integer
---@param params table            as tensor.save takes it
---@param optimizer? table        the optimizer's state
function Run:save(iteration, params, optimizer)
  -- one file holds all that resuming needs, so that a crash between two files cannot mix two iterations
  tensor.save(self:path "optimizer.bin", { iteration = iteration, params = params, optimizer = optimizer })
  tensor.save(self:path "params.bin", params)
  self.saved_at, self.unsaved = C.cq_clock(), nil
end

local function snapshot(value)
  if tensor.is_tensor(value) then return value:copy() end
  if type(value) ~= "table" or getmetatable(value) then return value end
  local out = {}
  for key, part in pairs(value) do out[key] = snapshot(part) end
  return out
end

---Saves when the last time is some seconds ago; else what was given is saved when the run ends before the next time, however
---it ends.
---@param iteration integer
---@param params table            as tensor.save takes it
---@param optimizer? table        the optimizer's state
function Run:checkpoint(iteration, params, optimizer)
  if C.cq_clock() - self.saved_at >= CHECKPOINT then return self:save(iteration, params, optimizer) end
  -- a copy: the next iteration may fail halfway through its update
  self.unsaved = { iteration = iteration, params = snapshot(params), optimizer = snapshot(optimizer) }
end

---Did the user ask to stop?
---@return boolean
function Run:interrupted() return C.cq_interrupted() ~= 0 end

local function close(self, status, problem)
  self.progress:close()
  local unsaved, saved, why = self.unsaved, true, nil
  if unsaved then saved, why = pcall(self.save, self, unsaved.iteration, unsaved.params, unsaved.optimizer) end
  self.manifest.finished, self.manifest.status, self.manifest.problem = date(), status, problem
  self.manifest.iterations_done = self.done
  self:write_manifest()
  self.history:close()
  unlock_folder(self.folder)
  if option.program.check then remove_scratch(self.folder) end
  if current == self then current = nil end
  if not saved then error(why, 0) end
  if status == "interrupted" and self.done > 0 then
    message.note("interrupted after iteration %d; what was computed is kept in %s", self.done, self.folder)
  end
end

---Saves, completes the manifest and closes the files.
---@param params? table
---@param optimizer? table
function Run:finish(params, optimizer)
  self.progress:close()
  if params then self:save(self.done, params, optimizer) end
  close(self, self:interrupted() and "interrupted" or "finished")
end

---@internal
---Closes the run that is still open when the script ends; the program calls it.
---@param problem? string        the error that ended the script
function Run.close_open(problem)
  if current and problem then close(current, current:interrupted() and "interrupted" or "failed", problem) elseif current then current:finish() end
end

function Run:__tostring()
  return ("cq.Run %s: %d of %d iterations"):format(self.folder, self.done, self.iterations)
end

-- ---- cq.log ---------------------------------------------------------------------------------------------------------

---@internal
---Prints a line of named values, and appends it to the history of the run: the one that is open, else one in --out.
---@param fields table<string, any>   numbers, strings, tensors; iteration or epoch counts, loss is the loss
function Run.log(fields)
  schema.argument("cq.log", "values", is.table(), fields)
  local row = History.row(fields, "cq.log")
  if not option.program.quiet then
    if message.wipe then message.wipe() end
    local words = {}
    for i, name in ipairs(History.order(row)) do
      words[i] = ("%s %s"):format(name, type(row[name]) == "number" and ("%.6g"):format(row[name]) or tostring(row[name]))
    end
    print(table.concat(words, "  "))
  end
  if not current and option.program.out then Run.open { resume = false } end
  if not current then return end
  row.iteration = row.iteration or row.epoch or current.done + 1
  current.history:append(row)
  current.done = row.iteration
end

return Run
