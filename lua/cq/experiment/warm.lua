-- warm: the parameters of an earlier run as those of an experiment, in the same world or in another one.
local is = require "cq.base.schema"
local host = require "cq.host"
local levels = require "cq.experiment.levels"
local load = require "cq.load"
local message = require "cq.base.message"
local option = require "cq.option"
local plain = require "cq.saved.plain"
local policy = require "cq.saved.policy"
local Run = require "cq.run"
local selection = require "cq.robot.selection"
local signature = require "cq.run.signature"
local stages = require "cq.experiment.stage"
local text = require "cq.base.text"
local transfer = require "cq.robot.transfer"
local words = require "cq.plan.words"
local worlds = require "cq.saved.world"
local T = require "cq.tensor"
local class = require "cq.tensor.class"

local warm = {}

-- ---- what cannot be the same weights --------------------------------------------------------------------------------

-- A list of names as text; "none" if it is empty.
local function names_of(list) return #list > 0 and table.concat(list, ", ") or "none" end

-- Raises an error if two texts differ: `there`, on the saved run, and `here`, on the experiment. what: their subject.
local function refuse(saved, what, there, here)
  if there ~= here then is.fail("run:load: %s has %s %s, this experiment has %s", saved.path, what, there, here) end
end

-- fields of an observer on which it does not depend what a controller sees; weights are taken over
local NOT_SEEN = { collect = true, replay = true, trainable = true, weights = true, seed = true, beta = true }

-- A group, a robot or another entry of a saved observer's field as text.
local function entry_word(entry)
  if type(entry) ~= "table" then return tostring(entry) end
  return entry.group or entry.robot and "robot " .. entry.robot or text.describe(entry)
end

-- A text on a saved observer, with the names of its groups.
local function observer_words(data)
  if not data then return "none" end
  if data.kind == "own" then return "the script's own" end
  local fields = plain.copy(data.fields)
  fields.groups, fields.group, fields.center = data.groups, data.group, data.center or fields.center
  for name in pairs(NOT_SEEN) do fields[name] = nil end
  local names, parts = T.leaves.sorted_keys(fields), { data.kind }
  for _, name in ipairs(names) do
    local value = fields[name]
    if type(value) == "table" and #value > 0 then
      local list = {}
      for k, entry in ipairs(value) do list[k] = entry_word(entry) end
      value = "{" .. table.concat(list, ", ") .. "}"
    end
    parts[#parts + 1] = ("%s %s"):format(name, entry_word(value))
  end
  return table.concat(parts, ", ")
end

-- Raises an error if the saved run and this experiment both have a controller, and differ in that, signals or observer.
local function check_policy(run, saved)
  local data, robots, signals = saved.data, run.world.robots, {}
  for _, robot in ipairs(robots) do
    for _, name in ipairs(robot.signals) do signals[#signals + 1] = name end
  end
  local own, theirs = policy.controller_data(run.controller, signals), data.controller
  if run.own_design then theirs = policy.without_pulses(theirs) end
  if own and theirs then
    refuse(saved, "the controller", policy.words(theirs), policy.words(own))
    refuse(saved, "the signals", names_of(theirs.signals or signals), names_of(signals))
    refuse(saved, "the observer", observer_words(data.observer), observer_words(policy.observer_data(run.observer,
      robots)))
  end
end

-- ---- what is told ---------------------------------------------------------------------------------------------------

-- A saved world's settings as texts by name, to compare two worlds. data: of cq.saved.world; steps: control steps.
local function words_of(data, steps)
  local out = { ["control steps"] = signature.word(steps), walls = signature.word(#data.walls) }
  for name, value in pairs(data.fields) do out[name] = signature.word(value) end
  for k, wall in ipairs(data.walls) do
    out["wall " .. k] = ("%s %s"):format(wall.family, wall.given.mu and "friction " .. text.number(wall.given.mu)
      or wall.given.kind or "sticky")
  end
  return out
end

-- Prints in which settings the two worlds differ.
local function tell_worlds(run, saved)
  if not saved.data.world then return end
  local changes = signature.changes(words_of(saved.data.world, saved.steps),
    words_of(worlds.data(run.world, run.steps), run.steps))
  if changes ~= "" then message.note("run:load: the world of %s is another: %s", saved.path, changes) end
end

-- ---- parameters -----------------------------------------------------------------------------------------------------

-- The dimension, from 1, of a parameter's tensor that counts the `count` particles of a robot, by the parameter's path;
-- nil: none does.
local function particle_axis(path, tensor, count)
  local axis = path == "design.layout" and 2 or (path:match "^robot%." or path == "design.density") and 1
  return axis and tensor.rank >= axis and tensor:size(axis) == count and axis or nil
end

-- The level of the stage in which a saved run has stopped, in words; nil: it is that of coarsen = 1, or not known.
local function level_words(saved)
  local said = words.of((saved.data.stage or {}).level or {})
  return said ~= "" and said ~= "coarsen 1" and said or nil
end

-- What helps where a design cannot be carried from a saved run, as the end of a sentence; "" where nothing is known.
local function remedy(saved)
  local level, stage = level_words(saved), saved.data.stage
  if level then
    return ("; that run has stopped in the stage %q, of the level %s: let it go on to its last level with --resume first")
      :format(stage.name, level)
  elseif stage and stage.body == "extracted" then
    return ("; that run has stopped with an extracted body, which does not say where its void was: take a stage before that, %s/stages/NAME")
      :format(saved.path:match "^(.*)/[^/]*$" or ".")
  end
  return ""
end

-- The design's variables of a saved run that has stopped at another level of the experiment's function, by name, carried
-- to the experiment's own level as between the stages of a plan; nil where the run is at none, or needs no carrying.
-- given: the saved parameters by path.
local function carried_design(run, saved, given)
  local stage, design = saved.data.stage, run.own_design
  if not (stage and design and run.problem) then return nil end
  local fits = true
  for name, own in pairs(design.params) do
    local other = given["design." .. name]
    if not other then return nil end
    fits = fits and class.same_dims(own.dims, other.dims)
  end
  if fits then return nil end
  local there = levels.of(run, stage.level).own_design
  for name, own in pairs(there and there.params or {}) do
    if not class.same_dims(own.dims, given["design." .. name].dims) then return nil end
  end
  if not there or there == design then return nil end
  message.note("run:load: %s has stopped in the stage %q; its design is carried from the level %s", saved.path,
    stage.name, words.of(stage.level))
  return require "cq.topology.transfer"(design, there, saved.parameters.design)
end

-- A saved parameter of another shape as a tensor for this experiment's robot: each particle takes the value of the
-- nearest particle of the earlier robot. own, other: the parameter here and there. Errors: it does not count particles.
local function transferred(run, saved, path, own, other)
  local robot = run.design and run.design.robot or selection.robot(run.world, run.robot, "run:load")
  local there = saved.data.robots and saved.robot
  local axis = there and particle_axis(path, own, robot.particle_count)
  if not axis or particle_axis(path, other, there.particle_count) ~= axis then
    is.fail("run:load: %s has the parameter %s of shape %s, this experiment of shape %s%s", saved.path, path,
      class.shape_text(other.dims), class.shape_text(own.dims), remedy(saved))
  end
  return other:gather(transfer.nearest(robot, there), axis)
end

-- A saved tensor moved into the bounds { min, max } of this experiment; a warning says how many values moved.
local function bounded(saved, path, tensor, bounds)
  if not bounds or not (bounds.min or bounds.max) then return tensor end
  local low, high = bounds.min or -math.huge, bounds.max or math.huge
  local out = tensor:clamp(low, high)
  local moved = (out - tensor):abs():greater(0):sum():item()
  if moved > 0 then
    message.warn("run:load: %d of the %s in %s of %s %s outside of the bounds here, %s to %s, and %s moved there", moved,
      text.count(tensor.count, "number"), path, saved.path, moved == 1 and "is" or "are", text.number(low),
      text.number(high), moved == 1 and "is" or "are")
  end
  return out
end

-- Copies the saved parameters whose path the experiment has too, and prints which are missing or unused. Errors: none
-- fits.
local function take(run, saved)
  local given, names = T.leaves.by_path(saved.parameters)
  for name, value in pairs(carried_design(run, saved, given) or {}) do given["design." .. name] = value end
  local own, own_names = T.leaves.by_path(run.params)
  local new, lacking, unused = {}, {}, {}
  for _, path in ipairs(own_names) do
    local other, tensor = given[path], own[path]
    if not other then
      lacking[#lacking + 1] = path
    else
      new[path] = class.same_dims(tensor.dims, other.dims) and other or transferred(run, saved, path, tensor, other)
    end
  end
  for _, path in ipairs(names) do
    if not own[path] then unused[#unused + 1] = path end
  end
  if not next(new) then
    is.fail("run:load: %s has none of the parameters of this experiment: %s there, %s here", saved.path, names_of(names),
      names_of(own_names))
  end
  for path, tensor in pairs(new) do own[path]:copy_from(bounded(saved, path, tensor, own[path].bounds)) end
  if #lacking > 0 then
    message.note("run:load: %s has no %s, which begins as the script says", saved.path, table.concat(lacking, ", "))
  end
  if #unused > 0 then
    message.warn("run:load: %s has %s too, which this experiment does not train: it is not taken", saved.path,
      table.concat(unused, ", "))
  end
end

---Copies the parameters of an earlier run into those of the experiment, and forgets run.best.
---@param run cq.Experiment
---@param path string         its folder, or a file that cq.load reads
---@return cq.Saved
function warm.take(run, path)
  local saved = load(path)
  if not text.is_instance(saved, "cq.Saved") then
    saved = { path = path, parameters = saved.params or saved, data = {} }
  end
  T.tape.pause(function()
    check_policy(run, saved)
    take(run, saved)
  end)
  tell_worlds(run, saved)
  run.best, run.loss_last = nil, nil
  return saved
end

---Takes over the parameters of an earlier run, the body and the options that they were found with, and what an observer
---had learned. For run:load.
---@param run cq.Experiment
---@param path string
---@return cq.Saved
function warm.load(run, path)
  local saved = warm.take(run, path)
  if saved.data.stage then T.tape.pause(stages.restore, run, saved.data.stage) end
  local observer = saved.data.observer
  if observer and run.observer and run.observer.take then run.observer:take(observer.fields.weights) end
  return saved
end

---Takes over the parameters of the run that --from names (with def.name of its subfolder of that name, if that holds
---one) before a training begins. A run that is resumed ignores --from with a warning.
---@param run cq.Experiment
---@param def run.optimize.def
function warm.begin(run, def)
  local from = option("from", "")
  if from == "" then return end
  if Run.resumes(def.resume) then
    return message.warn("--from %s is not used: the run goes on from what lies in its folder", from)
  end
  local named = def.name and from .. "/" .. def.name
  from = named and host.kind(named .. "/saved.bin") and named or from
  warm.take(run, from)
  message.note("begins with the parameters of %s", from)
end

return warm
