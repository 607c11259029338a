-- subset: a robot of some of the particles of another.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local field = require "cq.base.field"
local selection = require "cq.robot.selection"
local values = require "cq.robot.values"
local tables = require "cq.base.tables"

local subset = {}

-- The particles of a subset, int32_t from 0, among `index`, {count} particles of the whole robot from 0; and how many
-- they are. place: numbers in the subset by numbers in the whole robot, from 1.
local function kept(index, count, place)
  local list = {}
  for k = 0, count - 1 do list[#list + 1] = place[index[k] + 1] end
  return selection.index_of(list)
end

-- Sets the particle values of a subset: its own constants, and those set by robot:with. list: its particles in the
-- whole robot.
local function gather_values(out, robot, list)
  for _, entry in ipairs(field.of_robot) do
    local own = robot.base[entry.name]
    if own and entry.owner ~= "cable" then out.base[entry.name] = own:gather(list, 1) end
  end
  out.values = {}
  for name, given in pairs(robot.values or {}) do
    -- places in the robot's own coordinates stay so
    local spread = given.relative and given.tensor or values.spread(robot, name)
    local lead = spread.rank - #values.width(robot, name)
    out.values[name] = { tensor = spread:gather(list, lead), relative = given.relative, stretches = given.stretches }
  end
end

-- Gives a part of a robot the groups that have particles in it. place: as for kept.
local function keep_groups(out, robot, place)
  local known = {}
  out.group_table, out.group_names, out.groups = {}, {}, {}
  for _, name in ipairs(robot.group_names) do
    local group = robot.group_table[name]
    local index, count = kept(group.index, group.particle_count, place)
    if count > 0 then
      out.group_table[name] = setmetatable({ name = name, robot = out, index = index, particle_count = count },
        getmetatable(group))
      out.group_names[#out.group_names + 1], known[name] = name, true
    end
  end
  for _, name in ipairs(robot.groups) do
    if known[name] then out.groups[#out.groups + 1] = name end
  end
end

-- Gives a part of a robot the pins that have particles in it. place: as for kept.
local function keep_pins(out, robot, place)
  out.pins = {}
  for _, pin in ipairs(robot.pins) do
    local there = out.group_table[pin] and pin
    if type(pin) == "number" then there = place[pin] end
    if there then out.pins[#out.pins + 1] = there end
  end
end

-- Gives a part of a robot the actuators on the particles that it has. Signals keep their numbers, also those without
-- particles. count: particles of the part.
local function keep_actuators(out, robot, place, count)
  out.stresses, out.forces = {}, {}
  for k, stress in ipairs(robot.stresses) do
    local one = tables.merged(stress)
    if stress.index then one.index, one.count = kept(stress.index, stress.count, place) else one.count = count end
    out.stresses[k] = one
  end
  for k, force in ipairs(robot.forces) do
    local one = tables.merged(force)
    one.index, one.count = kept(force.index, force.count, place)
    out.forces[k] = one
  end
end

-- The numbers of the selected particles in ascending order, each once.
local function numbers_of(robot, which)
  local index, count = robot:select(which, "robot:subset")
  local seen, list = {}, {}
  for k = 0, count - 1 do seen[index[k] + 1] = true end
  for p = 1, robot.particle_count do
    if seen[p] then list[#list + 1] = p end
  end
  return list
end

---Turns `out`, a copy of a robot, in place into a robot of some of its particles. Errors: a robot with cables or
---surfaces under pressure; a force actuator that would have no particle.
---@param out cq.Robot       the copy
---@param robot cq.Robot
---@param which string|string[]|integer[]|cq.Group
---@return cq.Robot out
function subset.make(out, robot, which)
  if #robot.cables > 0 or #robot.surfaces > 0 then
    is.fail("robot:subset: %s has cables or surfaces under pressure, whose particles must stay together", robot.name)
  end
  local list, place = numbers_of(robot, which), {}
  for k, p in ipairs(list) do place[p] = k end
  out.particle_count, out.entry_index, out.root_numbers = #list, nil, {}
  out.surface = nil                                  -- that of a mesh is the whole body's
  for k, p in ipairs(list) do out.root_numbers[k] = robot.root_numbers and robot.root_numbers[p] or p end
  gather_values(out, robot, list)
  out.law, out.laws = ffi.new("int32_t[?]", #list), { having = {} }
  for key, value in pairs(robot.laws) do
    if key ~= "having" then out.laws[key] = value end
  end
  for k, p in ipairs(list) do out.law[k - 1] = robot.law[p - 1] end
  out.drawn = {}
  for k, p in ipairs(list) do out.drawn[k] = robot.drawn[p] end
  keep_groups(out, robot, place)
  keep_pins(out, robot, place)
  keep_actuators(out, robot, place, #list)
  for _, force in ipairs(out.forces) do
    if force.count == 0 then
      is.fail("robot:subset: a force actuator of %s has none of the %s left", robot.name, text.count(#list, "particle"))
    end
  end
  return out
end

return subset
