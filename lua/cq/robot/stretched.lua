-- stretched: a robot with other proportions along an axis, as a differentiable function of lengths: the places
-- and volumes of its particles.
--
--   joints        a        b             c          places in the robot as it was drawn
--                 |--------|-------------|
--   new places   A   B   C           x' = A + (x - a) (B - A) / (b - a) between a and b, and so on; beyond the ends the
--                 |------------|-------|            body moves with its end. Volumes follow the slopes.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local values = require "cq.robot.values"

---@class robot.stretched.def
---@field axis "x"|"y"|"z"
---@field joints? number[]             ascending places along the axis, in the robot's own coordinates, as it was drawn; the ends of its shape
---  unless given [length]
---@field factor? number|number[]|cq.Tensor    of the lengths between joints, one for all or one for each; or lengths, or places
---@field lengths? number|number[]|cq.Tensor   between joints; or factor, or places [length]
---@field places? number[]|cq.Tensor           of all joints; or factor, or lengths [length]
---@field fixed? integer               the joint that stays where it is, with factor and lengths

local amount = is.any_of { is.number(), is.table(), optional = true }

local spec = is.define("robot:stretched", {
  axis = is.one_of { "x", "y", "z" },
  joints = is.vector { optional = true },
  factor = amount, lengths = amount, places = amount,
  fixed = is.integer { min = 1, default = 1 },
})

-- The places along the axis between which the sections of a body are stretched; the ends of the shape where the user
-- gives none. A list of numbers that ascend. Errors: fewer than two; out of order; def.fixed is none of them.
local function joints_of(robot, def, axis)
  local joints = def.joints or { robot.lower[axis], robot.lower[axis] + robot.size[axis] }
  if #joints < 2 then is.fail("robot:stretched: joints must be two places or more, got %d", #joints) end
  for k = 2, #joints do
    if joints[k] <= joints[k - 1] then
      is.fail("robot:stretched: joints must ascend, got %s after %s", text.number(joints[k]),
        text.number(joints[k - 1]))
    end
  end
  if def.fixed > #joints then is.fail("robot:stretched: fixed is joint %d, there are %d", def.fixed, #joints) end
  return joints
end

-- A user's numbers for sections or joints as {count}; one number is for all sections. Errors: a wrong count. noun:
-- "section" or "joint"; name: the field, for errors.
local function row(value, count, name, noun)
  local tensor = T.as_tensor(value, "robot:stretched: " .. name)
  local is_one = tensor.rank == 0 or tensor.count == 1 and count == 1
  if noun == "section" and is_one then return tensor:reshape({}):expand { count } end
  if tensor.rank ~= 1 or tensor.count ~= count then
    local one = noun == "section" and "one number" .. (count > 1 and ", or " or "") or ""
    local each = count > 1 and ("%d numbers, one for each %s"):format(count, noun) or ""
    is.fail("robot:stretched: %s must be %s%s, got a tensor {%s}", name, one, each,
      table.concat(tensor:shape(), ", "))
  end
  return tensor
end

-- The new places of the joints {m + 1} by the stretches of the sections, on the recording tape. Errors: not one of
-- factor, lengths and places.
local function places_of(def, joints)
  local given = {}
  for _, name in ipairs { "factor", "lengths", "places" } do
    if def[name] ~= nil then given[#given + 1] = name end
  end
  if #given ~= 1 then
    is.fail("robot:stretched: give one of factor, lengths and places, got %s", #given == 0 and "none"
      or table.concat(given, " and "))
  end
  local m, old = #joints - 1, {}
  if def.places ~= nil then return row(def.places, m + 1, "places", "joint") end
  for k = 1, m do old[k] = joints[k + 1] - joints[k] end
  local lengths = def.lengths ~= nil and row(def.lengths, m, "lengths", "section")
    or row(def.factor, m, "factor", "section") * T.tensor(old)
  local places = { [def.fixed] = T.tensor(joints[def.fixed]) }
  for k = def.fixed, m do places[k + 1] = places[k] + lengths[k] end
  for k = def.fixed, 2, -1 do places[k - 1] = places[k] - lengths[k - 1] end
  return T.stack(places)
end

-- Raises an error if a section between new places {m + 1} of the joints has no length above 0.
local function check_lengths(places, joints)
  local span = joints[#joints] - joints[1]
  -- A place as text for the error; one that is 0 but for rounding as 0.
  local function told(x) return text.number(math.abs(x) > 1e-9 * span and x or 0) end
  T.tape.pause(function()
    for k = 1, #joints - 1 do
      local length = places:get(k + 1) - places:get(k)
      if not (length > 0) or length == math.huge then
        is.fail("robot:stretched: the section from %s to %s would be %s long, it must be above 0",
          told(joints[k]), told(joints[k + 1]), text.number(length))
      end
    end
  end)
end

-- Raises an error if no particle lies between the joints: they would only move the body, and may have been meant in
-- world coordinates. place: {n} along the axis.
local function check_joints(place, joints, axis)
  local low, high = place:min():item(), place:max():item()
  if joints[1] > high or joints[#joints] < low then
    is.fail("robot:stretched: no particle lies between the joints %s and %s; along %s the robot has them from %s to %s, in its own coordinates",
      text.number(joints[1]), text.number(joints[#joints]), axis, text.number(low), text.number(high))
  end
end

-- Two lists {n}, for each particle: the joint from which its distance is measured, and the number of its section; 1 and
-- m + 2 are the parts beyond the end joints.
local function sections_of(place, joints)
  local from, section = {}, {}
  for p = 1, place.count do
    local x, k = place:get(p), 0
    while k < #joints and x >= joints[k + 1] do k = k + 1 end
    from[p], section[p] = math.max(k, 1), k + 1
  end
  return from, section
end

-- ---- walls under pressure -------------------------------------------------------------------------------------------

-- Was the length of section k given as the plain number that it was drawn with, `old`? A tensor may be a parameter.
local function is_kept(def, k, old)
  if def.places ~= nil then return false end
  local given, drawn = def.factor or def.lengths, def.factor and 1 or old
  if type(given) == "table" and not T.is_tensor(given) then given = given[k] end
  return type(given) == "number" and math.abs(given - drawn) <= 1e-6 * drawn
end

-- The engine keeps the area vectors N A of open surfaces under pressure as they were drawn. A stretch by s leaves their
-- component along its axis and makes the others s times as large, so a section that holds a wall with others must keep
-- its length. Errors: it does not.
local function check_walls(robot, def, axis, place, joints)
  for _, one in ipairs(robot.surfaces) do
    for k, p in ipairs(one.area and one.index or {}) do
      local across, along = 0, one.area:get(k, axis)
      for d = 1, robot.dim do across = across + (d == axis and 0 or one.area:get(k, d) ^ 2) end
      if across > 1e-16 * along * along then
        local x, j = place:get(p + 1), 0
        while j < #joints and x >= joints[j + 1] do j = j + 1 end
        if j > 0 and j < #joints and not is_kept(def, j, joints[j + 1] - joints[j]) then
          is.fail("robot:stretched: the section from %s to %s holds walls of the pressure \"%s\", whose areas do not follow; end it with joints "
            .. "where the chamber ends, and give its length as the number %s, or its factor as the number 1",
            text.number(joints[j]), text.number(joints[j + 1]), one.name, text.number(joints[j + 1] - joints[j]))
        end
      end
    end
  end
end

-- ---- the stretch ----------------------------------------------------------------------------------------------------

-- The positions {n, dim} in the robot's own coordinates, as an earlier robot:stretched may have moved them. Errors:
-- positions given by robot:with.
local function own_position(robot)
  local given = robot.values and robot.values.position
  if given and given.relative then return given.tensor end
  if given then
    is.fail("robot:stretched: this robot has a position by robot:with; stretch it before, and not in the place of that")
  end
  return T.tape.pause(function() return robot.position - T.tensor(robot.offset) end)
end

---The values of the stretched robot, as values.check gives them: position in its own coordinates, volume, and lengths
---of cables that follow.
---@param robot cq.Robot
---@param fields robot.stretched.def
---@return table<string, table>
return function(robot, fields)
  local def = spec(fields)
  local axis = ({ x = 1, y = 2, z = 3 })[def.axis]
  if axis > robot.dim then is.fail("robot:stretched: axis must be \"x\" or \"y\" in 2D, got \"z\"") end
  local joints = joints_of(robot, def, axis)
  local places = places_of(def, joints)
  check_lengths(places, joints)
  local position = own_position(robot)
  local columns = {}
  for d = 1, robot.dim do columns[d] = position:slice(d, d, 2) end
  local place, m, one = columns[axis]:squeeze(2), #joints - 1, T.ones { 1 }
  T.tape.pause(check_joints, place, joints, def.axis)
  T.tape.pause(check_walls, robot, def, axis, place, joints)
  local from, section = sections_of(place, joints)
  local old = T.tensor(joints)
  local slope = T.concat({ one, (places:slice(2, m + 1) - places:slice(1, m)) / (old:slice(2, m + 1) - old:slice(1, m)),
    one }, 1):gather(section, 1)
  columns[axis] = (places:gather(from, 1) + (place - old:gather(from, 1)) * slope):unsqueeze(2)
  local out = {
    position = { tensor = T.concat(columns, 2), relative = true },
    volume = { tensor = (values.spread(robot, "volume") or robot.volume) * slope },
  }
  local own_length = robot.values and robot.values.cable_length
  if #robot.cables > 0 and (not own_length or own_length.measured) then out.cable_length = { measured = true } end
  return out
end
