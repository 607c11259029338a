-- decay: what an experiment whose adjoint decays is warned of before it is optimised.
local message = require "cq.base.message"
local text = require "cq.base.text"
local options = require "cq.experiment.options"

local decay = {}

-- Does anything but the last state count? Scenes may have objectives of their own, which are not asked.
local function runs(run)
  if run.scenes or run.objective.running or run.objective.work then return true end
  for _, c in ipairs(run.constraints) do
    if c.running or c.of then return true end
  end
  return false
end

---Warns of an objective that an adjoint which decays cannot serve, and of an optimizer that asks for exact gradients.
---@param run cq.Experiment
---@param stage cq.Plan.stage.def
function decay.warn(run, stage)
  local own = run.adjoint_decay
  local given = stage.options.adjoint_decay
  if given == "auto" and options.natural_decay(run) == math.huge then given = nil end
  if type(given) == "number" then own = given end
  if not own and not given or own == math.huge then return end
  local duration, optimizer = run.steps * run.world.control_dt, run.optimizer
  if own and own < duration and not runs(run) then
    message.warn("run:optimize: adjoint_decay is %s, and the objective is of the last state alone: what was done long before the end of %s is hardly learned; give the objective as a sum over time (running)",
      text.number(own), text.number(duration))
  end
  if optimizer.chooses_points then
    message.warn("run:optimize: with adjoint_decay gradients are not those of the objective, which %s holds against its values; cq.Optimizer.adam and the other first-order ones do not",
      optimizer.kind)
  end
end

return decay
