-- replaced: tensors that a script put in the place of an experiment's parameters. They are trained as those were,
-- within the same bounds.
local is = require "cq.base.schema"
local make = require "cq.tensor.make"
local T = require "cq.tensor"

local replaced = {}

-- Has a tensor bounds?
local function is_bounded(tensor)
  return tensor.bounds ~= nil and (tensor.bounds.min or tensor.bounds.max) ~= nil
end

---Gives a tensor that stands in the place of a parameter, and has no bounds of its own, those of the parameter and its
---rate. Errors: numbers outside of these bounds.
---@param run cq.Experiment     with made_params, the parameters that it was made with
function replaced.fit(run)
  local made = T.leaves.by_path(run.made_params)
  for _, leaf in ipairs(T.leaves.list(run.params)) do
    local own, tensor = made[leaf.path], leaf.tensor
    if own and own.trainable and not is_bounded(tensor) and (is_bounded(own) or not tensor.trainable) then
      local bounds = own.bounds
      local problem = make.why_no_param(tensor, bounds.min, bounds.max)
      if problem then
        is.fail("run:optimize: params.%s was replaced by a tensor that does not fit: %s; for other bounds give it a cq.param(value, { min = ..., max = ... })",
          leaf.path, problem)
      end
      make.as_param(tensor, bounds.min, bounds.max, tensor.bounds and tensor.bounds.rate or bounds.rate)
    end
  end
end

return replaced
