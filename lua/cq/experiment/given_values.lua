-- given_values: values that a given robot or world would have of its own, but which an experiment trains, so that they
-- would have no effect: an error that names them; and values of an experiment that a given world has no walls for.
local field = require "cq.base.field"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local values = require "cq.robot.values"
local T = require "cq.tensor"

local given_values = {}

-- Does one of the robots have the value of field `name` that the robot has: the same one from robot:with, or equal
-- numbers?
local function is_of_one(robot, name, others)
  local own = values.spread(robot, name)
  for _, other in ipairs(others) do
    if other.values and other.values[name] == robot.values[name] then return true end
    local theirs = other.values and other.values[name] and values.spread(other, name)
    if theirs and table.concat(own:shape(), " ") == table.concat(theirs:shape(), " ") and own:equal(theirs) then
      return true
    end
  end
  return false
end

-- Raises an error if a given robot has a value from robot:with that is trained, or that the experiment's design gives,
-- and that neither the robots before training nor the trained one have. body: that the robot is a variant of, or nil.
local function require_robot(run, robot, params, world, body)
  local known = { run.robot, body and body.robot or run.robot, run:valued(params), unpack(world.robots) }
  local design = not body and run.own_design
  for _, entry in ipairs(field.of_robot) do
    local name = entry.name
    local is_trained = params.robot and params.robot[name] ~= nil
    if robot.values and robot.values[name] and (is_trained or design and design:gives(name)) then
      if not is_of_one(robot, name, known) then
        is.fail("robot: its %s is %s, and cannot be given too%s", name, is_trained and "trained" or "that of the design",
          is_trained and "; run:evaluate takes it in params" or "")
      end
    end
  end
end

-- The least and the largest number of a field in a world, of friction among the walls that have it; nil where none has.
local function range_of(world, name)
  local base, low, high = world.layout.base[name], nil, nil
  if not base then return end
  local flat = base:flatten()
  for k = 1, flat.count do
    if name ~= "friction" or world.walls[k].kind == "friction" then
      local x = flat:get(k)
      low, high = math.min(low or x, x), math.max(high or x, x)
    end
  end
  return low, high
end

-- Have two worlds equal numbers of a field? Of walls, which two worlds may have many or few of: of the same range.
local function is_alike(world, other, name)
  local a, b = world.layout.base[name], other.layout.base[name]
  if a and b and table.concat(a:shape(), " ") == table.concat(b:shape(), " ") and a:equal(b) then return true end
  if field.by_name[name].owner ~= "wall" then return false end
  local low, high = range_of(world, name)
  local least, most = range_of(other, name)
  return low == least and high == most
end

-- Has a world walls that can take a field of walls? All worlds can take the fields of the world itself.
local function has_place(world, entry)
  if entry.owner ~= "wall" then return true end
  for _, wall in ipairs(world.walls) do
    if entry.name ~= "friction" or wall.kind == "friction" then return true end
  end
  return false
end

-- Raises an error if a given world has another gravity, friction, ... than the experiment's, where that is trained or
-- an option of the stage; def: what is given beside the world. A world without such walls has none of its own.
local function require_world(run, world, params, def)
  for _, entry in ipairs(field.of_world) do
    local name = entry.name
    local is_trained = params.world and params.world[name] ~= nil
    local rules = (is_trained or run.given[name] ~= nil) and def[name] == nil
    if rules and has_place(world, entry) and not is_alike(world, run.world, name) then
      is.fail("world: its %s is not that of the experiment's world, and has no effect, since %s is %s: give %s = ... beside world",
        name, name, is_trained and "trained" or "an option of the stage", name)
    end
  end
end

---Takes friction and wall velocity of the experiment, its scene or its parameters out of the fields of a rollout in a
---given world that has no walls for them, and notes so once.
---@param run cq.Experiment
---@param world cq.World?      that was given
---@param fields table         of world:rollout
function given_values.drop(run, world, fields)
  for _, entry in ipairs(world and field.of_world or {}) do
    local name = entry.name
    if fields[name] ~= nil and has_place(run.world, entry) and not has_place(world, entry) then
      fields[name] = nil
      message.note_once("the %s of the experiment has no place in the given world, which has no wall%s, and is left out there",
        name, name == "friction" and ' of kind "friction"' or "")
    end
  end
end

---Raises an error if the user's changes (`def`) hold a robot or a world with values that would have no effect, since
---they are trained, are options of the stage, or come from the design.
---@param run cq.Experiment
---@param def run.changes.def
---@param params table
---@param body cq.Topology.Body?    whose variant def.robot is
function given_values.require(run, def, params, body)
  T.tape.pause(function()
    if def.robot then require_robot(run, def.robot, params, def.world or run.world, body) end
    if def.world and def.world.variant_of ~= run.world then require_world(run, def.world, params, def) end
  end)
end

return given_values
