-- bound: a bound of a design as a constraint of an experiment.

---A constraint of an experiment, { name, at_most, of }, that bounds a measure of the design.
---@param design cq.Topology
---@param name string            its column in history.csv
---@param at_most number
---@param measure fun(map: table, params: table, design: cq.Topology): cq.Tensor    one number, of a design that is mapped
---@return table                 as cq.Experiment takes it
return function(design, name, at_most, measure)
  return {
    name = name, at_most = at_most,
    -- The measure of the experiment's design for these parameters, a tensor of rank 0.
    of = function(params, _, run)
      local present = run and run.design or design       -- a stage of a plan may have another variant
      params = present:own(params)
      return measure(present:map(params), params, present)
    end,
  }
end
