-- watched: a script that is loaded afresh each time it is saved, while its training goes on (--watch). One that fails
-- before its first iteration is told of, and the one of before goes on where it was.
local atomic_file = require "cq.base.atomic_file"
local C = require("cq.base.engine").C
local engine = require "cq.base.engine"
local message = require "cq.base.message"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"
local watch = require "cq.base.watch"

local watched = {}

-- The run (cq.Run) that the script opened last; nil: none.
local function last_run()
  local Run = package.loaded["cq.run"]
  return Run and Run.last()
end

-- The version of the script that ran and the result of its training: { path, files: texts by copy, sources: the same by
-- module, run, state: path of optimizer.bin, bytes: the content of that file }. again: the version that ran once more,
-- whose files may be others on disk.
local function version_of(path, again)
  local run, files, sources = last_run(), again and again.files or script.sources(watch.loaded), {}
  for name, bytes in pairs(files) do sources[(name:gsub("%.lua$", ""):gsub("/", "."))] = bytes end
  local state = run and run:path "optimizer.bin"
  return { path = path, files = files, sources = sources, run = run, state = state, bytes = state and read_file(state) }
end

-- Unloads the modules of a version of the script, so that the next require reads them again: from their files, or, with
-- as_they_were, from the texts that version_of kept.
local function unload_modules(version, as_they_were)
  for name in pairs(version.sources) do package.loaded[name], package.preload[name] = nil, nil end
  for name, bytes in pairs(as_they_were and version.sources or {}) do
    package.preload[name] = loadstring(bytes, "@" .. name)
  end
  script.hold(as_they_were and version.text or nil, as_they_were and version.files or nil)
end

-- Prepares the next run of a script that was changed: it resumes its run, if that has saved anything, with the options
-- `given` on the command line, and Ctrl-C is forgotten. bytes: what the run has saved.
local function resume(given, bytes)
  C.cq_interrupt(0)
  engine.interruption = nil
  option.set_given(given)
  if bytes then option.set_silently("resume", true) end
  collectgarbage()
end

-- Did the script fail before its first iteration? before: the version before it, from version_of.
local function made_nothing(before)
  local run = last_run()
  return run == before.run or run.done == (run.resumed_at or 0)
end

---Runs a script, and again whenever its files change; a changed version resumes the training of the version before. A
---version that fails before its first iteration gives way to the one before.
---@param path string
---@param words string[]
---@param run fun(chunk: function, ...): boolean, string?    runs a chunk with arguments, and prints its error
---@return boolean finished, string? problem
function watched.run(path, words, run)
  local given, before, text, again = option.given(), nil, nil, nil
  while true do
    local chunk, problem = script.load(path, words)
    if text then chunk = loadstring(text, "@" .. path) end
    if not chunk then
      message.fault("%s", problem)
      return false, problem
    end
    text = text or read_file(path)
    watch.begin()
    local finished, why = run(chunk, unpack(words))
    if watch.wanted then
      before = version_of(path, again)
      before.text = text
      unload_modules(before)
      text, again, watch.reloaded = nil, nil, true
      message.note("%s was saved: loaded afresh", path)
    elseif not finished and before and not again and why ~= "interrupted" and made_nothing(before) then
      message.note("the training goes on with the script of before")
      if before.bytes then atomic_file.write(before.state, before.bytes, { durable = true }) end
      unload_modules(before, true)
      text, again, watch.reloaded = before.text, before, false
    else
      return finished, why
    end
    resume(given, before.bytes)
  end
end

return watched
