-- bound: a bound of a design as a constraint of an experiment.

---@param design cq.Topology
---@param name string            its column in history.csv
---@param at_most number
---@param measure fun(map: table, params: table, design: cq.Topology): cq.Tensor    one number, of a design that is mapped
---@return table                 as cq.Experiment takes it
return function(design, name, at_most, measure)
  return {
    name = name, at_most = at_most,
    of = function(params, _, run)
      local present = run and run.design or design       -- a stage of a plan may have another variant
      params = present:own(params)
      return measure(present:map(params), params, present)
    end,
  }
end
