-- session: a study with its script, its folder and its store, as the commands of cqlua study use them.
--
--   runs/NAME/study.sqlite       the store
--   runs/NAME/trials/000012/     of trial 12: trial.json, history.csv, output.txt, and what cq.Run writes
--   runs/NAME/plots/*.png
local definition = require "cq.study.definition"
local filesystem = require "cq.study.filesystem"
local host = require "cq.host"
local is = require "cq.base.schema"
local scripts = require "cq.base.script"
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local place = require "cq.base.place"
local process = require "cq.study.process"
local read_file = require "cq.base.read_file"
local stores = require "cq.study.store"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

---@class cq.Session
---@field study cq.Study
---@field script string       its path
---@field seeds integer?      the script is no study, but is tried with so many seeds
---@field folder string
---@field store cq.Store?
---@field stored table<string, any>?      the stored definition, once the store was looked at
---@field modules table<string, string>   hashes of what the script loads, or names in a require
local Session = { __name = "cq.Session" }
Session.__index = Session

local session = { class = Session }

-- The hashes of files by name, from their texts by name.
local function hashes(files)
  local out = {}
  for name, bytes in pairs(files) do out[name] = require("cq.run").hash(bytes) end
  return out
end

---Loads a study's script, and determines its folder and the address of its store, which is not opened. Errors: a
---script that returns no study; an option that resembles one, and that nobody asks for.
---@param script string
---@param address? string      of a server for the store (--store)
---@param count? integer       number of seeds (--seeds): the script is no study, but is run with each seed
---@param options? table<string, any>   those of the command, by name
---@return cq.Session
function session.open(script, address, count, options)
  if address and not stores.is_server(address) then
    scripts.misuse("--store takes the address of a PostgreSQL server, postgresql://user@host/database, "
      .. "got %s; a study on this machine has its file in --out", address)
  end
  local Study = require "cq.study"
  Study.class.under_command = true
  option.program.seeks_study = not count
  local study = count and require("cq.study.seeds").study(script, count) or scripts.value(script)
  option.program.seeks_study = nil
  if not text.is_instance(study, "cq.Study") then
    is.fail("the script must return a cq.Study (return cq.Study { ... }), it returned %s; a script that trains one thing "
      .. "is run with several seeds by --seeds N", study == nil and "nothing" or text.describe(study))
  end
  require "cq.study.misspelt"(options or {})
  return setmetatable({
    study = study, script = script, seeds = count, address = address,
    folder = option.program.out or "runs/" .. study.name,
    modules = hashes(tables.merged(scripts.required(), scripts.sources())),
  }, Session)
end

---The command line of a cqlua study command on this study, as a user types it.
---@param name string         "show"
---@param what? string        its argument, as the number of a trial
---@param options? table      of option.of_results; those of the stored study unless given, or those of this command
---@return string
function Session:command(name, what, options)
  local words, out = { "cqlua study", name, text.quoted(self.script), what }, option.program.out
  local stored = self.stored or { options = option.of_results(), trials = self.seeds }
  if not self.stored then stored.options.resume = nil end          -- a study takes none
  if self.seeds then words[#words + 1] = "--seeds " .. stored.trials end
  if out then words[#words + 1] = "--out " .. text.quoted(out) end
  if self.address then words[#words + 1] = "--store " .. text.quoted(self.address) end
  for _, word in ipairs(option.words(options or stored.options or {})) do words[#words + 1] = text.quoted(word) end
  return table.concat(words, " ")
end

---The command that runs a trial once more, alone, as its trial.json keeps it: without a server's password.
---@param number integer
---@param options? table       as in Session:command
---@return string
function Session:rerun_command(number, options)
  return (self:command("rerun", tostring(number), options):gsub("(://[^/@:%s]*):[^/@%s]*@", "%1@"))
end

-- Do the options differ from those of a stored definition, as in Session:changed? A seed that was not given equals the
-- study's own, and a precision or device that was not given the default with which the script asks for it. Earlier
-- programs have not stored device, precision, simd and seed: where these lack, they are not compared.
local function has_other_options(self, before)
  local was = tables.merged({ seed = before.seed }, before.options)
  local now = tables.merged({ seed = self.study.seed }, option.of_results())
  for _, name in ipairs { "device", "precision", "simd", "seed" } do
    if not before.all_options and before.options[name] == nil then was[name], now[name] = nil, nil end
  end
  for _, name in ipairs { "device", "precision" } do
    local is_known, default = option.default(name)
    if is_known and was[name] == nil then was[name] = default end
    if is_known and now[name] == nil then now[name] = default end
  end
  return json.encode(was) ~= json.encode(now)
end

---Says which of these is not as it was, for a sentence: the script, a module that it loads, the options; nil: none.
---@param before { script: string, modules: table?, options: table?, all_options: boolean?, seed: integer? }
---  as the stored definition has them
---@return string?
function Session:changed(before)
  if before.script ~= self:hash() then return "the script was changed" end
  -- an earlier program has stored fewer hashes, or none; a module that is new is named in a text that has changed
  for _, name in ipairs(tables.names(before.modules)) do
    if before.modules[name] ~= self.modules[name] then return name .. ", which the script loads, was changed" end
  end
  if before.options and has_other_options(self, before) then
    return ("the options were changed from %s to %s"):format(json.encode(before.options),
      json.encode(option.of_results()))
  end
end

---The hash of the script's text. Errors: it cannot be read.
---@return string
function Session:hash()
  local bytes, problem = read_file(self.script)
  if not bytes then is.fail("%s cannot be read: %s", self.script, tostring(problem)) end
  return require("cq.run").hash(bytes)
end

---A hash of the texts that the script and the modules that it names in a require have now; also of a script that is
---gone, which is waited for.
---@return string
function Session:fingerprint()
  process.await(self.script)
  local texts, bytes = hashes(scripts.required()), read_file(self.script)
  texts.script = bytes and require("cq.run").hash(bytes)
  return require("cq.run").hash(json.encode(texts))
end

---The place of the store: the path of its file in the folder, or the address of a server.
---@return string
function Session:path() return self.address or self.folder .. "/study.sqlite" end

-- Does the store's file exist? Always true for a server, as only opening tells.
local function is_there(self) return self.address ~= nil or host.kind(self:path()) ~= nil end

-- Opens the store of the study. path: of a file, or the address of a server, where the study has a schema of its own;
-- def: options of stores.open, changed.
local function open_store(self, path, def)
  def.schema = "cqlua_" .. self.study.name
  return stores.open(path, def)
end

---Is there a store of the study? On a server always true, until it is opened.
---@return boolean
function Session:has_begun() return is_there(self) end

---Opens the store of a study that has begun (self.store), to read unless `change` is set. Errors: it has not begun.
---@param change? boolean
---@return cq.Store store, cq.Study study      as it was begun; the script's own may be another one by now
function Session:look(change)
  local store = is_there(self) and open_store(self, self:path(), { read_only = not change })
  self.stored = store and store.base:has_table "rung" and store:definition()
  if not self.stored then
    is.fail("the study %s has not begun: there is no %s; begin it with %s", self.study.name,
      store and "study in " .. self:path() or self:path(), self:command "run")
  end
  local study = definition.study(self.stored)
  store:follow(study)
  self.store = store
  return store, study
end

-- Moves the named files of an earlier study from the study's folder into a new subfolder. Errors: they cannot be moved.
local function move_away(self, names)
  local earlier = place.unused(self.folder .. "/earlier-")
  local made, problem = host.make_folder(earlier)
  for _, name in ipairs(names) do
    local path = self.folder .. "/" .. name
    if made and host.kind(path) then made, problem = os.rename(path, earlier .. "/" .. name) end
  end
  if not made then is.fail("the earlier study in %s cannot be moved away: %s", self.folder, tostring(problem)) end
  message.note("the earlier study in %s is now in %s", self.folder, earlier)
end

-- Raises an error if other processes are at work on the study, which --force-new would begin again.
local function refuse_workers(self, store)
  for _, row in ipairs(store.base:rows [[SELECT worker, max(beat) AS beat FROM trial WHERE state = 'running'
    GROUP BY worker]]) do
    if not process.is_gone(row.worker) and row.beat > process.now() - stores.LOST then
      is.fail("the study is at work (process %s): stop it first with %s", row.worker, self:command "stop")
    end
  end
end

-- Raises an error that names the changes, if there are any, which a study has seen since it began.
local function refuse(self, changes, advice)
  if #changes > 0 then
    is.fail("the study %s in %s was begun otherwise: %s%s", self.study.name, self.folder, table.concat(changes, "; "),
      advice)
  end
end

---Raises an error if the trials of the stored study are none of the script's, which has other parameters or objectives.
function Session:require_trials() refuse(self, self.study:changes(self.stored, true), "") end

-- Raises an error if the study differs from the stored one, in its definition, or, unless go_on is set, in script or
-- options.
local function compare(self, stored, go_on)
  local study = self.study
  local earlier = place.unused(self.folder .. "/earlier-"):match "[^/]*$"
  refuse(self, study:changes(stored), (". --force-new begins anew and keeps what is there in %s; or give this one %s")
    :format(earlier, self.seeds and "another folder by --out" or "another name"))
  local changed = not go_on and self:changed(stored)
  if changed then
    is.fail("%s since the study %s began. --go-on lets what is there count too, --force-new begins anew", changed,
      study.name)
  end
end

---@class cq.Session.begin.def
---@field force_new? boolean     what is there is moved away
---@field go_on? boolean         the script was changed, and what it gave before counts

---Opens the study's store, or creates it, checks that the study is the stored one, stores its present definition and
---adds its trials. Errors: another definition; another script or other options, unless def.go_on is set; a folder that
---cannot be created; with def.force_new workers that are still at work.
---@param def cq.Session.begin.def
---@return cq.Store
function Session:begin(def)
  local made, problem = host.make_folder(self.folder)
  if not made then
    is.fail("the folder %s cannot be made: %s; choose another with --out", self.folder, tostring(problem))
  end
  if not self.address then filesystem.check(self.folder) end
  if def.force_new and is_there(self) then
    local fine, old = pcall(open_store, self, self:path(), {})
    if fine then
      refuse_workers(self, old)
      if self.address then message.note("its tables are now in the schema %s", old.base:move_away()) end
      old:close()
    elseif self.address or not is.is_failure(old) then
      error(old, 0)
    end                                                  -- a file that cannot be read is moved away as it is
    move_away(self, { "study.sqlite", "study.sqlite-wal", "study.sqlite-shm", "trials", "plots", "processes.log" })
  end
  local store = open_store(self, self:path(), { create = true })
  local stored = store:definition()
  if stored then compare(self, stored, def.go_on) end
  local parts = self.study:definition()
  parts.script, parts.modules, parts.options = self:hash(), self.modules, option.of_results()
  parts.all_options = true
  store:define(parts)
  store:fill(self.study:count())
  store:follow(self.study)
  self.store, self.stored = store, parts
  return store
end

return session
