-- fixed: the fields of an experiment that stay as they were given, and what is said where a script assigned to one.
local made = require "cq.base.made"

local fixed = {}

local NAMES = { "world", "robot", "duration", "steps", "observer", "controller", "objective", "constraints", "scenes",
  "variants", "reduce", "trainable", "gradient", "weight" }

---Remembers the fields as they are.
---@param run cq.Experiment
---@return cq.Experiment run
function fixed.remember(run) return made.remember(run, NAMES) end

---Raises an error if a script assigned one of them since.
---@param run cq.Experiment
function fixed.require(run)
  made.require(run, "cq.Experiment",
    "make another experiment with it, or give it to run:evaluate, where that has such a field")
end

return fixed
