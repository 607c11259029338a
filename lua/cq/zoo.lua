-- zoo: trained robots that come with the program, in zoo/: each a run's saved.bin in float32, with the figure that it
-- is claimed to reach.
local host = require "cq.host"
local is = require "cq.base.schema"
local load = require("cq").load
local text = require "cq.base.text"
local T = require "cq.tensor"

local zoo = { folder = host.root .. "/zoo" }

---@class cq.Zoo.Entry
---@field name string
---@field made string            the command that trained it, without cqlua
---@field says string            the figure in words, for string.format
---@field claimed number
---@field less? boolean          the less the better; the more, unless given
---@field measure fun(first: cq.State, last: cq.State, robots: cq.Robot[]): number
---@field objective? fun(world: cq.World): cq.Experiment.objective.def   what cqlua robust measures; the figure, unless given
---@field early { steps: integer, is: number, within: number }   for the tests

---All entries, in the order of zoo/index.lua.
---@return cq.Zoo.Entry[]
function zoo.entries() return dofile(zoo.folder .. "/index.lua") end

---The entry of the zoo with a name. Errors: a name that zoo/index.lua does not have, with those it has.
---@param name string
---@return cq.Zoo.Entry
function zoo.entry(name)
  local names = {}
  for k, entry in ipairs(zoo.entries()) do
    if entry.name == name then return entry end
    names[k] = entry.name
  end
  is.fail("the zoo has no %s%s, and there is no such folder; the zoo has %s", text.describe(name),
    text.suggestion(name, names), table.concat(names, ", "))
end

---The path of a zoo robot's file, for cq.load; the file is not checked to exist.
---@param entry cq.Zoo.Entry
---@return string path
function zoo.path(entry) return ("%s/%s.bin"):format(zoo.folder, entry.name) end

---Runs a robot of the zoo and returns its figure, to compare with the claimed one, and the robot's saved run.
---@param entry cq.Zoo.Entry
---@param steps? integer         control steps, as many as it was trained for unless given
---@return number figure
---@return cq.Saved saved
function zoo.measure(entry, steps)
  local saved = load(zoo.path(entry))
  local roll = saved:rollout { steps = steps or saved.steps }
  return entry.measure(roll:start(), roll.state, roll.world.robots), saved
end

---The objective of a zoo robot, a loss to minimize: that of its entry, or its figure.
---@param entry cq.Zoo.Entry
---@param saved cq.Saved         of its file
---@return cq.Experiment.objective.def|fun(state: cq.State, start: cq.State): number
function zoo.objective(entry, saved)
  if entry.objective then return entry.objective(require "cq.world"(saved.world)) end
  return function(state, start)
    local figure = entry.measure(start, state, state.world.robots)
    return entry.less and figure or -figure
  end
end

-- The name of a file without its folder.
local function file_of(path) return path:match "[^/]*$" end

---Puts what a run has left into the zoo of a source tree, rounded to float32, in the place of the robot that was there.
---Errors: a name that zoo/index.lua has not; a run of another script than that entry says, or whose controller or
---observer only its script can read; an installation.
---@param name string
---@param folder string          of the run
---@return string path
---@return integer bytes
function zoo.keep(name, folder)
  local saved = load(folder)
  if not text.is_instance(saved, "cq.Saved") then is.fail("%s is of no run", folder) end
  local entry, script = zoo.entry(name), (saved.data.origin or {}).script
  local path = zoo.path(entry)
  if not host.kind(host.root .. "/Makefile") then
    is.fail("%s comes with an installation; cqlua replay --keep is for a source tree", path)
  end
  if not script or file_of(script) ~= file_of(entry.made:match "^%S+") then
    is.fail("%s is a run of %s, and %s of the zoo is one of cqlua %s", folder, script or "no script", name, entry.made)
  end
  -- what cannot be used without its script is told now
  for _, part in ipairs { "controller", "observer", "world" } do local _ = saved[part] end
  -- where the run was is nobody's concern
  saved.data.origin.command = "cqlua " .. entry.made
  T.save(path, saved.data, "float32")
  local file = assert(io.open(path, "rb"))
  local bytes = file:seek "end"
  file:close()
  return path, bytes
end

return zoo
