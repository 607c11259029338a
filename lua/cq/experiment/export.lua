-- export: all frames of an experiment in files that other programs read.
local is = require "cq.base.schema"
local changed = require "cq.experiment.changed"
local evaluate = require "cq.experiment.evaluate"
local exports = require "cq.rollout.export"
local place = require "cq.base.place"

---@class run.export.def : rollout.export.def, run.changes.def
---@field params? "best"|"last"|table|cq.Tensor   as run:evaluate takes them

local spec = is.define("run:export", changed.fields(exports.fields { params = evaluate.params_kind }))

---@param run cq.Experiment
---@param options run.export.def
---@return string path
return function(run, options)
  if run.scenes then return run:scene(1):export(options) end
  local what, def = "run:export", spec(options)
  local params, changes = evaluate.params(run, def.params, what), changed.take(def)
  exports.plan(what, def)
  def.path = place.of(def.path, run)
  local world, steps = changes.world or run.world, changed.steps(run, changes, what)
  local asked = run.contact
  run.contact = asked or exports.has_forces(def, world)
  local fine, path = pcall(exports.frames, what, def, world, steps, function(on_step)
    changes.on_step = on_step
    return run:rollout(params, changes)
  end)
  run.contact = asked
  if not fine then error(path, 0) end
  return path
end
