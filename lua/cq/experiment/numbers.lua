-- numbers: what an optimizer is told of one evaluation.
local constrained = require "cq.experiment.constrained"
local passive = require "cq.experiment.passive"

---The objective and all constraints of one evaluation, by name.
---@param run cq.Experiment
---@param params table
---@param steps? integer      the experiment's unless given
---@return table<string, cq.Tensor> numbers, cq.Rollout roll
return function(run, params, steps)
  local roll = run:rollout(params, { steps = steps })
  local found = constrained.values(run, params, roll)
  found.objective = run:loss(roll)
  if run.design and #run.constraints > 0 then found.task = found.objective:detach() end
  local cost
  cost, roll.companion = passive.cost(run, params, steps)
  if cost then found.objective, found.passive_cost = found.objective + cost, cost:detach() end
  return found, roll
end
