-- changed: an experiment in another world than its own: with other friction or gravity, for a longer time, on another
-- ground, or with another robot. What its parameters say of particles goes to the other robot's.
local controllers = require "cq.controller"
local control_steps = require "cq.rollout.control_steps"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local field = require "cq.base.field"
local extracted = require "cq.experiment.extracted"
local trainables = require "cq.experiment.trainable"
local given_values = require "cq.experiment.given_values"

local changed = {}

---@class run.changes.def
---@field world? cq.World         that it runs in; what it trains of a robot is given to the first one there. Its gravity, friction, ...
---  must be those of the experiment's world where they are trained or options of the stage; others are given beside it
---@field robot? cq.Robot         a variant of a robot of the world, or one that takes the place of the first; or a variant of run.body's
---  robot, which is then that body. Its values by robot:with hold; those that are trained are refused
---@field body? cq.Topology.Body   that was extracted from a design, in its place
---@field duration? number        a multiple of the world's dt; that of the experiment unless given [time]
---@field steps? integer          control steps, in the place of duration
---@field gravity? any            {dim} [length/time^2]
---@field damping? any            one number [1/time]
---@field friction? any           one number, or {walls}
---@field wall_velocity? any      {dim}, or {walls, dim} [length/time]
---@field adjust? fun(fields: table, world: cq.World)   is given what world:rollout takes, and may change it

local kinds = {
  world = is.instance { "cq.World", optional = true }, robot = is.instance { "cq.Robot", optional = true },
  body = is.instance { "cq.Topology.Body", optional = true },
  duration = is.number { above = 0, optional = true },
  steps = is.integer { min = 0, max = 2 ^ 31 - 1, optional = true },
  adjust = is.callable { optional = true },
}
for _, entry in ipairs(field.of_world) do kinds[entry.name] = field.listed(is.any(), entry, true) end

---Adds the fields of run.changes.def, which change an experiment's world, robot or duration, to the checkers of a
---definition, in place. Returns the same table.
---@param fields table<string, cq.Checker>
---@return table<string, cq.Checker>
function changed.fields(fields)
  for name, kind in pairs(kinds) do fields[name] = kind end
  return fields
end

-- Has a controller, or a part of it, a row of signals for each control step?
local function is_by_step(controller)
  if controller.family == "open_loop" or controller.loop then return true end
  for _, part in pairs(controller.parts or {}) do
    if is_by_step(part) then return true end
  end
  return false
end

-- Raises an error if signals of each control step of the experiment would be played at another pace in a world.
local function require_pace(run, world, what)
  if run.design or run.controller and is_by_step(run.controller) then
    controllers.require_pace(run.world.control_dt, world, what .. ": the signals")
  end
end

-- The number of control steps of a rollout: by steps or duration, else over the experiment's time. Errors: both; a
-- world of another dt, where the experiment has signals for each control step.
local function steps_in(run, def, world, what)
  if def.steps and def.duration then is.fail("%s: give either duration or steps, not both", what) end
  require_pace(run, world, what)
  if def.steps then return def.steps end
  if not def.duration and world.control_dt == run.world.control_dt then return run.steps end
  return control_steps(def.duration or run.steps * run.world.control_dt, world, what .. ": duration")
end

-- Do two lists hold the same entries, in any order?
local function same_entries(a, b)
  local count = {}
  for _, x in ipairs(a) do count[x] = true end
  for _, x in ipairs(b) do
    if not count[x] then return false end
  end
  return #a == #b
end

-- Does a variant of a robot of the world stand where that one does: nowhere yet, or at its place, and with its pins?
local function has_its_place(robot, own)
  local none, there = true, true
  for d = 1, own.dim do
    none = none and robot.offset[d] == 0
    there = there and robot.offset[d] == own.offset[d]
  end
  return (none or there) and same_entries(robot.pins, own.pins)
end

-- The world's robot that the given one is, is a variant of (robot:with), or has a variant in; nil: there is none.
local function own_of(robot, world)
  for _, own in ipairs(world.robots) do
    if robot:descends_from(own) or own:descends_from(robot) then return own end
  end
  for _, own in ipairs(world.robots) do
    if own:has_particles_of(robot) and has_its_place(robot, own) then return own end
  end
end

-- A copy of the world with its first robot replaced. Returns that world, and the robot as it stands in it.
local function with_first(world, robot)
  local robots = { robot }
  for k = 2, #world.robots do robots[k] = world.robots[k] end
  world = world:with_robots(robots)
  return world, world.robots[1]
end

-- The extracted body that is simulated: the one that is given; else the one that the stage trains, unless a robot is
-- given; else the one of which that robot is a variant; nil: none.
local function body_of(run, def)
  if def.body or not def.robot then return def.body or run.extracted end
  for _, body in ipairs { run.extracted or run.body, run.body } do
    if def.robot:descends_from(body.robot) then return body end
  end
end

---The world in which an experiment simulates with the user's changes, before a robot takes the place of its first.
---@param run cq.Experiment
---@param def run.changes.def
---@return cq.World
function changed.world(run, def)
  local body = body_of(run, def)
  return def.world or body and body.world or run.world
end

-- The world and the robot of a rollout with an extracted body, which has the values that the experiment trains. With no
-- world, or a variant of the body's own: that one. A world that already contains the body is used as it is. In any
-- other world the body replaces the first robot, which must be the design's block. given: a variant of the body's
-- robot, with values of its own. Errors: a body of another design; a first robot that is neither the body nor the
-- block.
local function world_and_robot(run, body, params, world, given)
  if not world or world.variant_of == body.world then
    extracted.require_own(run, body, "cq.Experiment")
    return world or body.world, extracted.robot(run, body, params, given)
  end
  local there = own_of(body.robot, world)
  if there then return world, extracted.robot(run, body, params, given or there) end
  local own, block = world.robot, body.design.robot
  if not own:has_particles_of(block) then
    is.fail("the world's first robot, %s, is neither the body nor the block of %s that it was cut from", own.name,
      text.count(block.particle_count, "particle"))
  end
  own = own:subset(body.particles):with_values_of(given or body.robot)
  return with_first(world, extracted.robot(run, body, params, own))
end

-- A given robot with the values that are trained, and with those others of the experiment's robot that it has not
-- itself.
local function with_trained(run, robot, params)
  return robot:with_values_of(trainables.without(run:valued(params), run.robot, robot.values or {}))
end

---World and robot of a rollout of an experiment, with the user's changes (`def`) and a table of parameters. In another
---world its first robot takes the values that are trained; a robot that is none of the world's takes the first's place.
---A scene's own robot has its values in another world, too.
---Errors: a body and a robot; a body of another design, or that does not stand in the world; values of particles that
---the robot cannot take; values of a robot or a world that are trained.
---@param run cq.Experiment
---@param def run.changes.def
---@param params table
---@return cq.World world
---@return cq.Robot robot
function changed.place(run, def, params)
  if def.body and def.robot then is.fail("give either body or robot, not both") end
  local body = body_of(run, def)
  given_values.require(run, def, params, body)
  if body then return world_and_robot(run, body, params, def.world, def.robot) end
  local world, robot = def.world or run.world, def.robot
  local is_own = not def.world or world.variant_of == run.world
  if is_own and not robot then return world, run:robot_with(params) end
  robot = robot or world.robot
  if not own_of(robot, world) then world, robot = with_first(world, robot) end
  robot = run.scene_number and not def.robot and robot:with_values_of(run:valued(params))
    or with_trained(run, robot, params)
  return world, trainables.apply(robot, run.apply, params.named)
end

---The number of control steps of a rollout: by steps or duration of the changes, else over the experiment's time.
---Errors: both.
---@param run cq.Experiment
---@param def run.changes.def
---@param what string           for errors
---@return integer
function changed.steps(run, def, what) return steps_in(run, def, def.world or run.world, what) end

---Moves the fields of run.changes.def (friction, gravity, world, ...) out of a table that has other fields too, into a
---new table.
---@param def table           of a definition with changed.fields
---@return run.changes.def
function changed.take(def)
  local out = {}
  for name in pairs(kinds) do out[name], def[name] = def[name], nil end
  return out
end

---Copies the changes of gravity, damping, friction and wall_velocity into the fields of world:rollout.
---@param def run.changes.def
---@param fields table         of world:rollout, which gets them
function changed.fill(def, fields)
  for _, entry in ipairs(field.of_world) do
    if def[entry.name] ~= nil then fields[entry.name] = def[entry.name] end
  end
end

return changed
