-- changed_script: a run that goes on, or is measured, with another script, or with other options of it, than it was
-- begun with.
local atomic_file = require "cq.base.atomic_file"
local message = require "cq.base.message"
local option = require "cq.option"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"
local signature = require "cq.run.signature"
local tables = require "cq.base.tables"

local changed_script = {}

-- The first line in which two texts differ: its number, and the line of each.
local function first_difference(before, now)
  local next_before, next_now, number = (before .. "\n"):gmatch "([^\n]*)\n", (now .. "\n"):gmatch "([^\n]*)\n", 0
  while true do
    local was, is_now = next_before(), next_now()
    number = number + 1
    if was ~= is_now or not was then return number, was or "", is_now or "" end
  end
end

-- Options by which a script trains longer, or leaves other files, and which do not change what its losses mean.
local of_no_loss = { iterations = true, budget = true, keep = true, render = true, from = true, resume = true }
for _, declared in ipairs(option.declared) do of_no_loss[declared.name] = declared.name ~= "seed" end

-- Can an option change the losses of a run? Manifests of earlier programs also have the memory's share, a number; what
-- was typed is a text there.
local function matters(name, typed)
  return not of_no_loss[name] and (name == "seed" or type(typed) ~= "number")
end

-- Whether it is known which value an option has where it is not typed, and that value. The seed is 0 unless the script
-- says otherwise.
local function default_of(name)
  local is_known, default = option.default(name)
  if name == "seed" and not is_known then return true, 0 end
  return is_known, default
end

-- Warns of options of the script that have other values than before the run was resumed. options: those of its manifest
-- until now. A learner may go on with more steps. An option that is typed in one of both cases, and that the script has
-- not asked for yet, is passed over: its default is not known.
local function compare_options(self, options)
  local given = option.given()
  given.seed = option.program.seed
  local state, before, now = self.kept.optimizer, {}, {}
  local is_learner = type(state) == "table" and state.updates_made
  -- Notes an option's values of before and of now, by their texts, if both are known.
  local function note(name, was, is_now)
    local is_known, default = default_of(name)
    if not is_known and (was == nil or is_now == nil) then return end
    -- The value of a text; nil: it was not typed.
    local function word(typed)
      if typed == nil then return signature.word(default) end
      return signature.word(option.value(typed, default))
    end
    before[name], now[name] = word(was), word(is_now)
  end
  for _, list in ipairs { options, given } do
    for name, typed in pairs(list) do
      if matters(name, typed) and not (is_learner and name == "steps") then note(name, options[name], given[name]) end
    end
  end
  local changes = signature.changes(before, now)
  if changes == "" then return end
  message.warn("the run in %s goes on with other options: %s; losses before and after, and the best of both, are of one objective only if they do not change it",
    self.folder, changes)
end

---The sources of a run, its script and the modules that this has loaded, whose present text is not that of their copy
---in the run's folder. Each with its name for a sentence, the path of its copy in the folder, its text before, and the
---first line that differs in words.
---@param folder string
---@param now string?      the present text of the script
---@return { name: string, path: string, before: string, line: string }[]
function changed_script.list(folder, now)
  local out = {}
  -- Appends a source if its copy in the folder has another text.
  local function compare(name, path, bytes)
    local before = read_file(folder .. "/" .. path)
    if not before or not bytes or before == bytes then return end
    local number, was, is_now = first_difference(before, bytes)
    out[#out + 1] = { name = name, path = path, before = before,
      line = ("line %d was \"%s\" and is \"%s\""):format(number, was:match "^%s*(.-)%s*$",
        is_now:match "^%s*(.-)%s*$") }
  end
  compare("the script", "script.lua", now)
  local sources = script.sources()
  for _, name in ipairs(tables.names(sources)) do compare(name, "sources/" .. name, sources[name]) end
  return out
end

---Warns of each source of a run that has another text, and of options that have other values, than before the run was
---resumed: its objective may be another one, and losses before and after are then two things. The earlier script is
---kept beside the new one.
---@param self cq.Run     with script, the text of the script that runs
---@param before table<string, any>   the run's manifest before it was resumed
function changed_script.tell(self, before)
  for _, source in ipairs(changed_script.list(self.folder, self.script)) do
    message.warn("%s was changed since iteration %d of the run in %s: %s; losses before and after are of one objective only if nothing of it was changed",
      source.name, self.done, self.folder, source.line)
    if source.name == "the script" then
      atomic_file.write(self:path(("script-%d.lua"):format(self.done)), source.before, { durable = true })
    end
  end
  compare_options(self, before.options or {})
  for _, entry in ipairs(before.prompt or {}) do
    message.warn("what was typed at the prompt after iteration %s of the run in %s is not done again: %s",
      tostring(entry.iteration), self.folder, (tostring(entry.text):gsub("\n", "; ")))
  end
end

return changed_script
