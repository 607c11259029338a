-- follow: an experiment of another level in the state of the stage in which this one is, for a variant of it on another
-- grid: its values of the world, and its body: soft, binary or extracted, by the design's options.
local levels = require "cq.experiment.levels"
local options = require "cq.experiment.options"
local T = require "cq.tensor"

-- The body that the stage extracted, extracted from the design of the other level, once for each body of the stage.
local function extracted_body(run, other, kept)
  if kept.extracted_from ~= run.extracted then
    local design = options.designed(other.own_design, run.in_stage.cut)
    local variables = T.tape.pause(levels.carried, run, run.params, other).design
    kept.extracted_from, kept.extracted = run.extracted, design:extract(variables)
  end
  kept.extracted.design = other.design
  return kept.extracted
end

---Puts `other`, an experiment of another level of the same function, into the state of the stage in which `run` is.
---Neither the parameters nor the best of `other` change. A stage of its own begins without this state.
---@param run cq.Experiment
---@param other cq.Experiment
return function(run, other)
  other.given, other.extracted = run.given, nil
  if not run.own_design then return end
  local kept, stage = other.followed or {}, run.in_stage or {}
  other.followed = kept
  if kept.of ~= run.design then
    kept.of = run.design
    kept.design = options.designed(options.with_body(other.own_design, stage.body or "soft"), stage.options or {})
  end
  other.design = kept.design
  if run.extracted then other.extracted = extracted_body(run, other, kept) end
end
