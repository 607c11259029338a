-- transfer: values of particles from one body to another: each particle takes those of the other body's particle that
-- is nearest to it, by places within the boxes around the bodies.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local field = require "cq.base.field"
local values = require "cq.robot.values"
local tables = require "cq.base.tables"

local transfer = {}

-- The places of a robot's particles {n, dim}, without those set by robot:with, as shares of the box around it, 0 to 1.
local function relative(robot)
  local x, low, high = robot.base.position:detach(), {}, {}
  local spacing = robot.base.volume:mean():item() ^ (1 / robot.dim)
  for d = 1, robot.dim do
    local along = x:slice(d, d, 2)
    low[d], high[d] = along:min():item() - spacing / 2, along:max():item() + spacing / 2
  end
  low, high = T.tensor(low), T.tensor(high)
  return (x - low) / (high - low)
end

---For each particle of a robot the nearest one of another body, by places within the boxes around them.
---@param robot cq.Robot
---@param other cq.Robot
---@return integer[]          {n} numbers from 1 of the other's particles
function transfer.nearest(robot, other)
  local points, others = relative(robot), relative(other)
  local out, dim = {}, robot.dim
  local a, b = points:data(), others:data()
  for p = 0, points:size(1) - 1 do
    local least, at = math.huge, 0
    for q = 0, others:size(1) - 1 do
      local distance = 0
      for d = 0, dim - 1 do
        local gap = a[p * dim + d] - b[q * dim + d]
        distance = distance + gap * gap
      end
      if distance < least then least, at = distance, q end
    end
    out[p + 1] = at + 1
  end
  return out
end

-- Raises an error if two robots differ in their number of cables, whose values of field `name` are then not
-- transferred: cables correspond by their numbers.
local function require_as_many(robot, other, name)
  local own, theirs = values.count(robot, name), values.count(other, name)
  if own ~= theirs then
    is.fail("%s has %s and %s has %d: values of %s do not go from one to the other", other.name,
      text.count(theirs, "cable"), robot.name, own, name)
  end
end

-- Raises an error if the stress actuators of two robots have different numbers of signals.
local function require_signals(robot, other)
  if robot.weight_columns == other.weight_columns then return end
  is.fail("%s drives %s by stresses (%s) and %s drives %d (%s): weights of actuators do not go from one to the other",
    other.name, text.count(other.weight_columns, "signal"), table.concat(other.signals, ", "), robot.name,
    robot.weight_columns, table.concat(robot.signals, ", "))
end

-- The values that robot:with has set in `other`, for `robot`, which has the same particles: absolute positions are
-- shifted by the difference of the places of both (robot:at), and all else is copied.
local function shifted_values(robot, other)
  local out = tables.merged(other.values)
  local position = out.position
  if position and not position.relative then
    out.position = { tensor = position.tensor + (T.tensor(robot.offset) - T.tensor(other.offset)) }
  end
  return out
end

---The values that robot:with has set in `other`, for `robot`: of the same particles, or of the nearest ones; of cables
---by their numbers. Errors, unless both have the same particles: places set by robot:with; different dimensions, or
---numbers of cables or stress signals.
---@param robot cq.Robot
---@param other cq.Robot        with the values
---@return table<string, table>   as values.check gives them
function transfer.values(robot, other)
  if robot:has_particles_of(other) then return shifted_values(robot, other) end
  if robot.dim ~= other.dim then
    is.fail("%s is %dD and %s is %dD: values do not go from one to the other", other.name, other.dim, robot.name,
      robot.dim)
  end
  local out, near = {}, nil
  for name in pairs(other.values or {}) do
    local spread = values.spread(other, name)
    if name == "position" then
      is.fail("%s has places of its own for its %s, which %s with its %s cannot take", other.name,
        text.count(other.particle_count, "particle"), robot.name, text.count(robot.particle_count, "particle"))
    elseif field.by_name[name].owner == "cable" then
      require_as_many(robot, other, name)
    else
      if name == "actuation_weight" then require_signals(robot, other) end
      near = near or transfer.nearest(robot, other)
      spread = spread:gather(near, spread.rank - #values.width(other, name))
    end
    out[name] = spread
  end
  return values.check(robot, out)
end

return transfer
