-- check: everything of an experiment that can be known before it runs.
local text = require "cq.base.text"
local T = require "cq.tensor"
local option = require "cq.option"
local numbers = require "cq.experiment.numbers"
local scenes = require "cq.experiment.scenes"

-- explicit steps that an implicit one must replace to be as quick; the power by which more pay more (docs/implicit.md)
local PAYS = { float32 = { [2] = 100, [3] = 200 }, float64 = { [2] = 200, [3] = 1000 } }
local GAIN = 0.75

-- How many explicit steps an implicit one of a world stands for, and what that gains, as a text.
local function steps_replaced(world)
  local count, pays = world.courant / world.courant_aim, PAYS[world.precision][world.dim]
  local gain = (count / pays) ^ GAIN
  return ("each implicit step replaces %s: %s"):format(
    count < 1.5 and "one explicit step" or ("about %.0f explicit steps"):format(count),
    count < pays and ("explicit steps are quicker below about %d; leave out integrator, or take longer steps"):format(pays)
      or ("expect it to be about %s times as quick as they are, within a factor of 2"):format(
        (gain < 10 and "%.2g" or "%.0f"):format(gain)))
end

-- A cost of signals that is given those of fewer control steps than an experiment has, with zeros for the others, as it
-- may read any of them.
local function filled(effort, steps)
  return function(u)
    local shape = u:shape()
    shape[1] = steps - shape[1]
    return effort(T.concat({ u, T.zeros(shape) }, 1))
  end
end

-- What `check` returns for a run whose cost of signals is given those of all its control steps.
local function with_filled_signals(run, check)
  local objective, effort = run.objective, run.objective.effort
  objective.effort = effort and filled(effort, run.steps)
  local fine, report = pcall(check, run)
  objective.effort = effort
  if not fine then error(report, 0) end
  return report
end

-- What run:check reports of an experiment of one scene.
local function of_one(run)
  local steps = math.min(run.steps, 2)
  local report = { steps = run.steps, gradients = {},
    plan = run.world:memory_plan { steps = run.steps, memory = run.memory } }
  local lines = { tostring(run.world), ("%s, %s%s"):format(text.count(run.steps, "control step"),
    report.plan.text, run.ensemble and " (of the experiment without its variants)" or "") }
  if run.world.def.integrator then table.insert(lines, 2, steps_replaced(run.world)) end
  if #T.leaves.list(run.params) > 0 then
    -- what is zero after two control steps need not be zero in the end: no warning yet
    local warn = T.warn
    T.warn = function() return false end
    local fine, values, grads = pcall(T.values_and_grads(function(params) return numbers(run, params, steps) end),
      run.params)
    T.warn = warn
    if not fine then error(values, 0) end
    report.loss, report.values = values.objective, values
    for _, leaf in ipairs(T.leaves.list(grads.objective)) do
      report.gradients[leaf.path] = leaf.tensor:norm():item()
      lines[#lines + 1] = ("%s: %s, gradient %.3g after %s"):format(leaf.path, text.count(leaf.tensor.count, "number"),
        report.gradients[leaf.path], text.count(steps, "control step"))
    end
  else
    report.loss = run:loss(run:rollout(run.params, { steps = steps })):item()
  end
  report.text = table.concat(lines, "\n")
  if option.on_check then option.on_check(report) end
  return report
end

---What run:check does.
---@param run cq.Experiment
---@return table report
return function(run)
  if run.scenes then return scenes.each_checked(run) end
  return run.steps > 2 and with_filled_signals(run, of_one) or of_one(run)
end
