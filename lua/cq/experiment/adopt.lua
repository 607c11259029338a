-- adopt: the state of a training for another version of its script (--watch): parameters and moments whose paths and
-- shapes are the same go on, others begin anew and are named; so does the best, for the objective may be another one.
local is = require "cq.base.schema"
local levels = require "cq.experiment.levels"
local message = require "cq.base.message"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"

-- Returns a copy of the experiment's parameters with the values of an earlier run where names and shapes fit; a list of
-- sentences on the parameters that begin with their own values; and the number of those that were copied.
local function adopted(own, before)
  local out, there, told, count = T.leaves.snapshot(own), T.leaves.by_path(before or {}), {}, 0
  for _, leaf in ipairs(T.leaves.list(out)) do
    local other = there[leaf.path]
    if other and class.same_dims(other.dims, leaf.tensor.dims) then
      leaf.tensor:copy_from(other:detach())
      count = count + 1
    else
      told[#told + 1] = other and ("%s begins anew: it was %s and is %s"):format(leaf.path,
        class.shape_text(other.dims), class.shape_text(leaf.tensor.dims)) or ("%s is new"):format(leaf.path)
    end
  end
  return out, told, count
end

-- The part { kind, iteration, moments, norms } of a saved optimizer's state that belongs to parameters which still
-- exist with the same shape; nil if the optimizer is another one.
local function known(state, optimizer, params)
  if type(state) ~= "table" or state.kind ~= optimizer.kind or type(state.moments) ~= "table" then return nil end
  local own, out = T.leaves.by_path(params), {}
  for name, moments in pairs(state.moments) do
    out[name] = {}
    for path, moment in pairs(moments) do
      if own[path] and class.same_dims(own[path].dims, moment.dims) then out[name][path] = moment end
    end
  end
  return { kind = state.kind, iteration = state.iteration, moments = out, norms = state.norms }
end

---Makes what was saved fit the experiment, its plan and its optimizers.
---Errors: a plan that has no such stage.
---@param training cq.Training
---@param state table          as training saves it; changed
return function(training, state)
  local plan, run = training.plan, training.run
  for _, start in ipairs(state.starts) do
    local stage = plan.stages[math.max(1, start.stage)]
    if not stage then
      is.fail("run:optimize: the training was in stage %d of its plan, and this plan has %d", start.stage, #plan.stages)
    end
    local own = levels.of(run, stage.level)
    local optimizer = stage.optimizer or run.base_optimizer
    local params, told, count = adopted(own.params, start.params)
    start.params = params
    -- the next stage begins from the best of one that is over
    start.best = start.ended and start.best and { loss = start.best.loss,
      iteration = start.best.iteration, stage_iteration = start.best.stage_iteration,
      params = (adopted(own.params, start.best.params)), learned = start.best.learned } or nil
    local solver = start.solver
    if solver then
      optimizer:restart()
      local moments = known(solver.optimizer, optimizer, params)
      if not moments then told[#told + 1] = ("the optimizer is cq.Optimizer.%s"):format(optimizer.kind) end
      start.solver = { evaluations = solver.evaluations, params = params, stage = solver.stage,
        optimizer = moments or optimizer:state() }
    end
    message.note("%s %s on%s", text.count(count, "parameter"), count == 1 and "goes" or "go",
      #told > 0 and "; " .. table.concat(told, "; ") or "")
  end
  state.plan = training.records
end
