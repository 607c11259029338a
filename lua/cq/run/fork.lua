-- fork: a run that begins where another one was at some iteration, in a folder of its own, with other options of its
-- optimizer. Its manifest names the parent.
local atomic_file = require "cq.base.atomic_file"
local checkpoint = require "cq.run.checkpoint"
local folders = require "cq.run.folder"
local History = require "cq.run.history"
local host = require "cq.host"
local manifests = require "cq.run.manifest"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local reading = require "cq.run.reading"
local tensor = require "cq.tensor"
local text = require "cq.base.text"

local fork = {}

---@class cq.Fork.def
---@field at? integer        iteration of the parent; its last unless given
---@field set table<string, string>   options of the optimizer, "optimizer.rate" and so on: a number, a word, or "x0.5", times
--- what the script says
---@field best? number       back to the best parameters, with so much of the rate
---@field folder string      of the fork
---@field script string      by which it goes on
---@field arguments string[] of its command line

-- A saved state from its file. Errors: a file that no run has saved.
local function load_state(path)
  local state = tensor.load(path)
  local problem = reading.problem(state)
  if problem then is.fail("cqlua resume: %s is not what a run has saved: %s", path, problem) end
  return state
end

-- The saved state of iteration `at` of a run (parent: its folder), of its last one for nil. Errors: nothing is saved,
-- or no such iteration.
local function state_of(parent, at)
  local last = parent .. "/optimizer.bin"
  local kept = at and checkpoint.path(parent, at)
  if kept and host.kind(kept) then return load_state(kept) end
  if not host.kind(last) then
    is.fail("cqlua resume: there is nothing to go on from in %s: it has no optimizer.bin", parent)
  end
  local state = load_state(last)
  if not at or state.iteration == at then return state end
  local list = checkpoint.list(parent)
  if list[#list] == state.iteration then list[#list] = nil end
  is.fail("cqlua resume: %s has kept no iteration %d; it has %s%d, its last%s", parent, at,
    #list > 0 and table.concat(list, ", ") .. " and " or "", state.iteration,
    #list == 0 and "; keep = 10 of run:optimize, or --keep 10, keeps every tenth" or "")
end

-- Clears moments, norms and iteration of a saved optimizer (made), in place, so that it begins as a new one. parent:
-- the run's folder, for errors. Errors: an optimizer without moments.
local function clear_moments(made, parent)
  if type(made) ~= "table" or type(made.moments) ~= "table" then
    is.fail("cqlua resume: --best is for optimizers that make steps, as adam; the one of %s is %s", parent,
      tostring(type(made) == "table" and made.kind or made))
  end
  made.iteration, made.norms = 0, nil
  for name in pairs(made.moments) do made.moments[name] = {} end
end

-- The starts (of a multi-start plan) in a saved state. asked: the option that asks for them, for the error. Errors: a
-- run without a plan.
local function starts_of(state, parent, asked)
  local starts = type(state.optimizer) == "table" and state.optimizer.starts
  if type(starts) ~= "table" then
    is.fail("cqlua resume: %s is for runs of run:optimize; %s is another", asked, parent)
  end
  return starts
end

-- Sets all starts in a saved state back to their best parameters, in place, and clears their optimizers' moments. For
-- --best. Errors: a run without a plan.
local function go_back(state, parent)
  local starts = starts_of(state, parent, "--best")
  local least = math.huge
  for _, start in ipairs(starts) do
    if start.best and start.params then
      start.params = start.best.params
      if start.best.loss < least then
        least, state.params = start.best.loss, start.best.params
        -- of all levels: a stage of another one begins with these in any case
        for _, observer in pairs(state.optimizer.observers or { state.optimizer.observer }) do
          observer.weights = start.best.learned or observer.weights
        end
      end
      if start.solver then
        start.solver.params, start.solver.before = start.best.params, nil
        clear_moments(start.solver.optimizer, parent)
      end
    end
  end
end

-- The text of a setting in a fork of a fork: a factor `now`, "x0.5", multiplies the parent's setting `before`; any
-- other text replaces it.
local function composed(before, now)
  local factor = tonumber(now:match "^x(.+)$")
  if not before or not factor then return now end
  local times, number = before:match "^(x?)(.+)$"
  return tonumber(number) and times .. text.number(tonumber(number) * factor) or now
end

-- Is this the folder of a fork in which no iteration was made, because its options were refused? It may be used again.
-- One that was killed says nothing of its iterations, and has begun.
local function is_untouched(folder)
  local own = manifests.of(folder)
  local parent = own and own.parent
  return parent ~= nil and (own.started == nil or own.iterations_done == parent.iteration)
    and not folders.is_locked(folder)
end

-- Raises an error if the folder for the fork holds a run, or is the parent's.
local function check_target(folder, parent)
  if folders.has_run(folder) and not is_untouched(folder) then
    is.fail("cqlua resume: %s has a run already; give --as another folder", folder)
  elseif host.resolve(folder) and host.resolve(folder) == host.resolve(parent) then
    is.fail("cqlua resume: the fork of %s needs a folder of its own", parent)
  end
end

---Creates the folder of a fork, from which cqlua --resume continues: history, state, parameters, script and modules of
---the parent, and a manifest that names the parent and the settings.
---Errors: a folder that is no run, or of a newer program; an iteration that was not kept; settings or --best for a run
---that is none of run:optimize; a folder that has a run.
---@param parent string       folder of the run that is forked
---@param def cq.Fork.def
function fork.make(parent, def)
  local manifest = manifests.read(parent, "cqlua resume")
  local state = state_of(parent, def.at)
  local set, asked = {}, {}
  for name, value in pairs(def.set) do asked[name] = value end
  if next(def.set) then starts_of(state, parent, "--set") end
  if def.best then
    go_back(state, parent)
    asked["optimizer.rate"] = asked["optimizer.rate"] or "x" .. text.number(def.best)
  end
  for name, value in pairs(manifest.parent and manifest.parent.set or {}) do set[name] = value end
  for name, value in pairs(asked) do set[name] = composed(set[name], value) end
  check_target(def.folder, parent)
  folders.make(def.folder)
  local fine, problem = pcall(function()
    local own = { script = def.script, arguments = def.arguments, options = manifest.options,
      sources = manifest.sources, parent = { folder = host.resolve(parent), iteration = state.iteration, set = set,
      best = def.best ~= nil or nil } }
    atomic_file.write(def.folder .. "/manifest.json", json.encode(own) .. "\n", { durable = true })
    folders.copy(parent, def.folder, function(name) return name == "script.lua" or name:find "^sources/" ~= nil end)
    History.copy(parent .. "/history.csv", def.folder .. "/history.csv", state.iteration)
    tensor.save(def.folder .. "/optimizer.bin", state)
    tensor.save(def.folder .. "/params.bin", state.params)
  end)
  if fine then return end
  folders.remove_earlier(def.folder)
  error(problem, 0)
end

-- ---- the command of the parent --------------------------------------------------------------------------------------

-- Does a list of names contain this name?
local function has(list, name)
  for _, entry in ipairs(list) do
    if entry == name then return true end
  end
  return false
end

-- A list of the arguments of a command line without the named options and their values, "--name value" and
-- "--name=value". script: the word that is no value, as after --overwrite.
local function without(arguments, names, script)
  local out, at = {}, 1
  while at <= #arguments do
    local name, value = arguments[at]:match "^%-%-([%w_-]+)(=?)"
    if name and has(names, name) then
      local following = arguments[at + 1]
      local is_value = following and following ~= script and not following:match "^%-%-%a"
      if value == "" and is_value then at = at + 1 end
    else
      out[#out + 1] = arguments[at]
    end
    at = at + 1
  end
  return out
end

-- Raises an error if a folder is that of a trial of a study, which was made by no command line of its own: names the
-- command that tries it once more, of its trial.json.
local function refuse_trial(folder, manifest, what)
  local bytes = read_file(folder .. "/trial.json")
  if not bytes then return end
  local fine, found = pcall(json.decode, bytes)
  if not fine or type(found) ~= "table" then found = {} end
  local command = found.command
  if type(command) ~= "string" then           -- of an earlier program
    local words = type(found.options) == "table" and option.words(found.options) or {}
    for k, word in ipairs(words) do words[k] = " " .. text.quoted(word) end
    command = ("cqlua study rerun %s %s%s"):format(text.quoted(manifest.script or "SCRIPT"),
      tonumber(folder:match "(%d+)$") or "N", table.concat(words))
  end
  is.fail("%s: %s is a trial of a study; %s tries it once more", what, folder, command)
end

---The folder that the script of a run writes to: that of the run, or the one around it where the run has a name, as one
---of several (run:optimize { name = }, or the second one without a name). Errors: the folder has another name than the
---run.
---@param folder string       of the run
---@param manifest table      of the run
---@param what string         the command that asks, for the error
---@return string
function fork.folder_of_script(folder, manifest, what)
  local name = manifest.notes and manifest.notes.name
  if not name then return folder end
  local ending = "/" .. name
  local path = folder:sub(-#ending) == ending and #folder > #ending and folder or host.resolve(folder)
  if path:sub(-#ending) ~= ending then
    is.fail("%s: the run of %s has the name %q, by which its script finds it; give the folder that name", what, folder,
      name)
  end
  return path:sub(1, -#ending - 1)
end

---The arguments of a run's command line without --out, --resume, --overwrite, --from and the options of `more`, which
---follow the script instead; and the path of the script. If the script is gone, that is the copy in the run's folder,
---for which require finds the copies of its modules. Errors: a trial of a study, or a run in its folder; a run without
---a script.
---@param manifest table      of the run
---@param parent string       its folder
---@param more string[]       options, "--name", "value"
---@param what string         the command that asks, for its errors
---@return string[] arguments, string script
function fork.arguments(manifest, parent, more, what)
  refuse_trial(fork.folder_of_script(parent, manifest, what), manifest, what)
  local names, path = { "out", "resume", "overwrite", "from" }, manifest.script
  if type(manifest.arguments) ~= "table" or type(path) ~= "string" or path == "-" then
    is.fail("%s: %s does not say by which script it was made", what, parent)
  end
  for _, word in ipairs(more) do names[#names + 1] = word:match "^%-%-([%w_-]+)" end
  local out, script = {}, nil
  for _, word in ipairs(without(manifest.arguments, names, path)) do
    out[#out + 1] = word
    if word == path and not script then
      script = host.kind(path) and path or parent .. "/script.lua"
      out[#out] = script
      for _, extra in ipairs(more) do out[#out + 1] = extra end
    end
  end
  if not script then is.fail("%s: the command of %s does not name its script, %s", what, parent, path) end
  return out, script
end

return fork
