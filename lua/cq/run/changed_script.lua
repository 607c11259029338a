-- changed_script: a run that goes on with another script than it was begun with.
local atomic_file = require "cq.base.atomic_file"
local message = require "cq.base.message"
local read_file = require "cq.base.read_file"
local script = require "cq.base.script"

-- The first line in which two texts differ: its number, and the line of each.
local function first_difference(before, now)
  local next_before, next_now, number = (before .. "\n"):gmatch "([^\n]*)\n", (now .. "\n"):gmatch "([^\n]*)\n", 0
  while true do
    local was, is_now = next_before(), next_now()
    number = number + 1
    if was ~= is_now or not was then return number, was or "", is_now or "" end
  end
end

---Warns of each source of a run that has another text than before the run was resumed: an objective in it may be
---another one, and losses before and after are then two things. The earlier script is kept beside the new one.
---@param self cq.Run     with script, the text of the script that runs
return function(self)
  -- Warns if a source has another text than when the run was begun; returns the earlier text then. path: of the run's
  -- copy of the source; now: its present text.
  local function compare(name, path, now)
    local before = read_file(path)
    if not before or not now or before == now then return end
    local number, was, is_now = first_difference(before, now)
    message.warn("%s was changed since iteration %d of the run in %s: line %d was \"%s\" and is \"%s\"; losses before and after are of one objective only if nothing of it was changed",
      name, self.done, self.folder, number, was:match "^%s*(.-)%s*$", is_now:match "^%s*(.-)%s*$")
    return before
  end
  local before = compare("the script", self:path "script.lua", self.script)
  if before then atomic_file.write(self:path(("script-%d.lua"):format(self.done)), before, { durable = true }) end
  for name, bytes in pairs(script.sources()) do compare(name, self:path("sources/" .. name), bytes) end
end
