-- stretched: a robot with other proportions along an axis, as a differentiable function of lengths: the places
-- and volumes of its particles.
--
--   joints        a        b             c          places in the robot as it was drawn
--                 |--------|-------------|
--   new places   A   B   C           x' = A + (x - a) (B - A) / (b - a) between a and b, and so on; beyond the ends the
--                 |------------|-------|            body moves with its end. Volumes follow the slopes.
--
-- A second stretch along an axis begins where the first one ended: its joints are places as they were drawn too, a is
-- where the first one has moved them, and sections have the particles that were drawn between their joints.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

---@class robot.stretched.def
---@field axis "x"|"y"|"z"
---@field joints? number[]             ascending places along the axis, in the robot's own coordinates, as it was drawn; the ends of its shape
---  unless given [length]
---@field factor? number|number[]|cq.Tensor    of the lengths between joints, one for all or one for each; or lengths, or places
---@field lengths? number|number[]|cq.Tensor   between joints; or factor, or places [length]
---@field places? number[]|cq.Tensor           of all joints; or factor, or lengths [length]
---@field fixed? integer               the joint that stays where it is, with factor and lengths

local axes = { x = 1, y = 2, z = 3 }
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

-- The lengths {m} between places {m + 1}.
local function lengths_of(places) return places:slice(2, places.count) - places:slice(1, places.count - 1) end

-- The new places of the joints {m + 1}, which are at the places `old` {m + 1}, by the stretches of the sections, on the
-- recording tape. Errors: not one of factor, lengths and places.
local function places_of(def, old)
  local given = {}
  for _, name in ipairs { "factor", "lengths", "places" } do
    if def[name] ~= nil then given[#given + 1] = name end
  end
  if #given ~= 1 then
    is.fail("robot:stretched: give one of factor, lengths and places, got %s", #given == 0 and "none"
      or table.concat(given, " and "))
  end
  local m = old.count - 1
  if def.places ~= nil then return row(def.places, m + 1, "places", "joint") end
  local lengths = def.lengths ~= nil and row(def.lengths, m, "lengths", "section")
    or row(def.factor, m, "factor", "section") * lengths_of(old)
  local places = { [def.fixed] = old[def.fixed] }
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

-- Two lists {n}, for each place {n} as it was drawn: the joint from which its distance is measured, and the number of
-- its section; 1 and m + 2 are the parts beyond the end joints.
local function sections_of(place, joints)
  local from, section = {}, {}
  for p = 1, place.count do
    local x, k = place:get(p), 0
    while k < #joints and x >= joints[k + 1] do k = k + 1 end
    from[p], section[p] = math.max(k, 1), k + 1
  end
  return from, section
end

-- Where a stretch { joints: as they were drawn, old, new: places {m + 1} before and after it } moves places `at` {n},
-- and the slopes there. drawn {n}: the same places as they were drawn.
local function moved(stretch, drawn, at)
  local old, new, one = stretch.old, stretch.new, T.ones { 1 }
  local from, section = sections_of(drawn, stretch.joints)
  local slope = T.concat({ one, lengths_of(new) / lengths_of(old), one }, 1):gather(section, 1)
  return new:gather(from, 1) + (at - old:gather(from, 1)) * slope, slope
end

-- ---- walls under pressure -------------------------------------------------------------------------------------------

-- Was the length of section k given as the plain number that it has had, `old`? A tensor may be a parameter.
local function is_kept(def, k, old)
  if def.places ~= nil then return false end
  local given, drawn = def.factor or def.lengths, def.factor and 1 or old
  if type(given) == "table" and not T.is_tensor(given) then given = given[k] end
  return type(given) == "number" and math.abs(given - drawn) <= 1e-6 * drawn
end

-- The engine keeps the area vectors N A of open surfaces under pressure as they were drawn. A stretch by s leaves their
-- component along its axis and makes the others s times as large, so a section that holds a wall with others must keep
-- its length. Errors: it does not. place {n}: of particles, as they were drawn; lengths {m}: of the sections until now.
local function check_walls(robot, def, place, joints, lengths)
  local axis = axes[def.axis]
  for _, one in ipairs(robot.surfaces) do
    for k, p in ipairs(one.area and one.index or {}) do
      local across, along = 0, one.area:get(k, axis)
      for d = 1, robot.dim do
        local area = d == axis and 0 or one.area:get(k, d)
        across = across + area * area
      end
      if across > 1e-16 * along * along then
        local x, j = place:get(p + 1), 0
        while j < #joints and x >= joints[j + 1] do j = j + 1 end
        if j > 0 and j < #joints and not is_kept(def, j, lengths:get(j)) then
          is.fail("robot:stretched: the section from %s to %s holds walls of the pressure \"%s\", whose areas do not follow; end it with joints "
            .. "where the chamber ends, and give its length as the number %s, or its factor as the number 1",
            text.number(joints[j]), text.number(joints[j + 1]), one.name, text.number(lengths:get(j)))
        end
      end
    end
  end
end

-- ---- the stretch ----------------------------------------------------------------------------------------------------

-- The positions {n, dim} in the robot's own coordinates: as they were drawn, and as earlier stretches have moved them;
-- and these stretches, lists by axis. Errors: positions given by robot:with.
local function own_position(robot)
  local given = robot.values and robot.values.position
  if given and not given.relative then
    is.fail("robot:stretched: this robot has a position by robot:with; stretch it before, and not in the place of that")
  elseif given and not given.stretches then
    is.fail("robot:stretched: this robot was saved by a program that did not keep its stretches; stretch the one of its "
      .. "script")
  end
  local drawn = T.tape.pause(function() return robot.base.position - T.tensor(robot.offset) end)
  return drawn, given and given.tensor or drawn, given and given.stretches or {}
end

-- A list with one more entry.
local function followed_by(list, entry)
  local out = { unpack(list or {}) }
  out[#out + 1] = entry
  return out
end

---The values of the stretched robot, as values.check gives them: position in its own coordinates, volume, and lengths
---of cables that follow.
---@param robot cq.Robot
---@param fields robot.stretched.def
---@return table<string, table>
return function(robot, fields)
  local def = spec(fields)
  local axis = axes[def.axis]
  if axis > robot.dim then is.fail("robot:stretched: axis must be \"x\" or \"y\" in 2D, got \"z\"") end
  if def.places ~= nil and fields.fixed ~= nil then
    is.fail("robot:stretched: fixed goes with factor and lengths, and has no effect on places, which say where every "
      .. "joint is")
  end
  local joints = joints_of(robot, def, axis)
  local drawn, position, before = own_position(robot)
  local place = T.tape.pause(function() return drawn:slice(axis, axis, 2):squeeze(2) end)
  local marks = T.tensor(joints)
  local old = marks
  for _, one in ipairs(before[def.axis] or {}) do old = moved(one, marks, old) end
  local stretch = { joints = joints, old = old, new = places_of(def, old) }
  check_lengths(stretch.new, joints)
  T.tape.pause(check_joints, place, joints, def.axis)
  T.tape.pause(check_walls, robot, def, place, joints, lengths_of(old))
  local columns = {}
  for d = 1, robot.dim do columns[d] = position:slice(d, d, 2) end
  local along, slope = moved(stretch, place, columns[axis]:squeeze(2))
  columns[axis] = along:unsqueeze(2)
  local stretches = tables.merged(before)
  stretches[def.axis] = followed_by(before[def.axis], stretch)
  local out = {
    position = { tensor = T.concat(columns, 2), relative = true, stretches = stretches },
    volume = { tensor = robot.volume * slope },
  }
  local own_length = robot.values and robot.values.cable_length
  if #robot.cables > 0 and (not own_length or own_length.measured) then out.cable_length = { measured = true } end
  return out
end
