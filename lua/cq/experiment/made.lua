-- made: a design that was made binary, in the experiment that it was designed in. What is trained there beside the
-- design, of the robot and of the world, holds for the body that is made too.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local by_iteration = require "cq.experiment.by_iteration"
local trainables = require "cq.experiment.trainable"

local made = {}

---The values that a body made of a design has: those of the least loss so far, or the present ones.
---@param run cq.Experiment
---@return table
function made.params(run) return run.best and run.best.params or run.params end

-- the solid particles with values of the robot that are trained beside the design
local function body(run, solid)
  local params, robot = made.params(run), solid.design.robot
  if not (params.robot or params.named) then return solid.robot end
  robot = trainables.apply(params.robot and robot:with(params.robot) or robot, run.apply, params.named)
  return robot:subset(solid.particles):with { actuation_weight = solid.robot.values.actuation_weight.tensor }
end

---The same without gradients.
---@param run cq.Experiment
---@param solid cq.Topology.Solid
---@return cq.Robot
function made.body(run, solid) return T.tape.pause(body, run, solid) end

---Refuses a body of a design that is not the experiment's.
---@param run cq.Experiment
---@param solid cq.Topology.Solid
---@param what string         for the sentence
function made.require_own(run, solid, what)
  if not run.design then is.fail("%s: this body was made of a design, and the experiment has none", what) end
  if solid.design.world ~= run.world then is.fail("%s: this body was made of a design for another world", what) end
end

---The rollout of a body, with the objective of the experiment.
---@param run cq.Experiment
---@param solid cq.Topology.Solid
---@param watch? fun(state: cq.State, u: cq.Tensor?)
---@param steps integer       control steps
---@return cq.Rollout
function made.rollout(run, solid, watch, steps)
  made.require_own(run, solid, "cq.Experiment")
  by_iteration.ready(run)
  local fields = {
    robot = made.body(run, solid), steps = steps, controller = solid.controller, weight = run.weight,
    running = run.objective.running, effort = run.objective.effort, memory = run.memory, watch = watch,
    contact = run.contact, work = run.objective.work ~= nil,
  }
  by_iteration.fill(run, fields)
  for name, value in pairs(run.of_scene or {}) do fields[name] = value end
  for name, value in pairs(made.params(run).world or {}) do fields[name] = value:detach() end
  return solid.world:rollout(fields)
end

return made
