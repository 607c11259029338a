-- extracted: the body of a design, in the experiment that it was designed in. What is trained there beside the
-- design, of the robot and of the world, holds for the body too.
local is = require "cq.base.schema"
local trainables = require "cq.experiment.trainable"

local extracted = {}

-- The experiment's robot with those values alone that are trained beside the design.
local function trained(run, params)
  local robot = run.robot
  local valued = trainables.apply(params.robot and robot:with(params.robot) or robot, run.apply, params.named)
  return trainables.without(valued, robot)
end

---The robot of an extracted body, with the values of the robot that the experiment trains beside the design.
---@param run cq.Experiment
---@param body cq.Topology.Body
---@param params table
---@param given? cq.Robot       with the body's particles, that takes these values; the body's robot unless given
---@return cq.Robot
function extracted.robot(run, body, params, given)
  given = given or body.robot
  if not (params.robot or params.named) then return given end
  local values, block = trained(run, params), body.design.robot
  if not block:has_particles_of(values) then
    block = block:with {}
    block.values = {}
    values = block:with_values_of(values)
  end
  return given:with_values_of(values:subset(body.particles))
end

---The body that a stage ends with: the one that it trained, with its present pulses, or one that is extracted from the
---design now. The body's files go into the folder of the run.
---@param run cq.Experiment
---@param params table
---@return cq.Topology.Body
function extracted.result(run, params)
  local body = run.extracted and run.extracted:with_pulses(params.design) or run.design:extract(params.design)
  body.run = run
  return body
end

---Raises an error if the experiment has no design, or if the body's design is for another world than the experiment's.
---@param run cq.Experiment
---@param body cq.Topology.Body
---@param what string         for the sentence
function extracted.require_own(run, body, what)
  if not run.design then is.fail("%s: this body was made of a design, and the experiment has none", what) end
  if body.design.world ~= run.world then is.fail("%s: this body was made of a design for another world", what) end
end

return extracted
