-- numbers: objective and constraints of one evaluation, for the optimizer.
local constrained = require "cq.experiment.constrained"
local ensemble = require "cq.experiment.ensemble"
local passive = require "cq.experiment.passive"

-- The objective and the constraints of an experiment with the parameters `params`, as tensors by name, and the rollout
-- that they are from. steps: nil for the experiment's.
local function of_one(run, params, steps)
  local roll = run:rollout(params, { steps = steps })
  roll.on_reversed = run.on_reversed
  local found = constrained.values(run, params, roll)
  found.objective = run:loss(roll)
  return found, roll
end

---The objective and all constraints of one evaluation, by name; of an ensemble over its variants.
---@param run cq.Experiment
---@param params table
---@param steps? integer      the experiment's unless given
---@return table<string, cq.Tensor> numbers, cq.Rollout roll
return function(run, params, steps)
  local cost = passive.cost(run, params, steps)
  local found, roll = (run.ensemble and ensemble.numbers or of_one)(run, params, steps)
  if run.design and #run.constraints > 0 then found.task = found.objective:detach() end
  if cost then found.objective, found.passive_cost = found.objective + cost, cost:detach() end
  return found, roll
end
