-- made: a design that was made binary, in the experiment that it was designed in. What is trained there beside the
-- design, of the robot and of the world, holds for the body that is made too.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local trainables = require "cq.experiment.trainable"

local made = {}

-- the solid particles with values of the robot that are trained beside the design
local function body(run, solid, params)
  local robot = solid.design.robot
  if not (params.robot or params.named) then return solid.robot end
  robot = trainables.apply(params.robot and robot:with(params.robot) or robot, run.apply, params.named)
  return robot:subset(solid.particles):with { actuation_weight = solid.robot.values.actuation_weight.tensor }
end

---The same without gradients.
---@param run cq.Experiment
---@param solid cq.Topology.Solid
---@param params table        of the experiment
---@return cq.Robot
function made.body(run, solid, params) return T.tape.pause(body, run, solid, params) end

---Refuses a body of a design that is not the experiment's.
---@param run cq.Experiment
---@param solid cq.Topology.Solid
---@param what string         for the sentence
function made.require_own(run, solid, what)
  if not run.design then is.fail("%s: this body was made of a design, and the experiment has none", what) end
  if solid.design.world ~= run.world then is.fail("%s: this body was made of a design for another world", what) end
end

return made
