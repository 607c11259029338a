-- selection: particles of a world by group name, lists of names, robots or numbers, as the engine's readouts want them.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"

local Selection = { __name = "cq.Selection" }
Selection.__index = Selection

local selection = {}

---Particle numbers from 1 as the engine's array from 0.
---@param list integer[]
---@return ffi.cdata* index       int32_t[count]
---@return integer count
function selection.index_of(list)
  local index = ffi.new("int32_t[?]", math.max(#list, 1))
  for k, p in ipairs(list) do index[k - 1] = p - 1 end
  return index, #list
end

---@class cq.Selection
---@field count integer            groups, each a row of a readout
---@field single boolean           one group, not as a list
---@field total integer            particles of all groups
---@field start ffi.cdata*         int64_t[count + 1]
---@field particles ffi.cdata*     int32_t[total], from 0 within the world
---@field readouts table           the engine's structs that use it

-- ---- which robot ----------------------------------------------------------------------------------------------------

-- Has a world's robot no particles but those of a given robot, all of them or some?
local function is_part(own, robot)
  return own:descends_from(robot) or own:has_particles_of(robot) or not robot.root_numbers
end

---The number in a list of robots of the one that a given robot refers to: the robot itself; else one with the same
---particles, made from it or from which it is made before any other; else one made from it, or of the same root (the
---robot as cq.Robot made it), with some of its particles. nil: there is none.
---@param robots cq.Robot[]
---@param robot cq.Robot
---@return integer? k
---@return boolean several      are there several that suit as well
---@return boolean others       is there one of the same root with other particles
function selection.among(robots, robot)
  -- Is a robot of the list made from the given one, or the given one from it?
  local function related(own) return own:descends_from(robot) or robot:descends_from(own) end
  local others = false
  for _, test in ipairs {
    function(own) return own == robot end,
    function(own) return related(own) and own:has_particles_of(robot) end,
    function(own) return own:has_particles_of(robot) end,
    related,
    function(own) return own.root == robot.root end,
  } do
    local found, several
    for k, own in ipairs(robots) do
      local suits = test(own)
      if suits and is_part(own, robot) then found, several = found or k, found ~= nil end
      others = others or suits
    end
    if found then return found, several, others end
  end
  return nil, false, others
end

---The robot of the world that a given robot refers to, as selection.among finds it.
---Errors: the world holds several such robots, or none; the given one is a subset, and the world's has other particles.
---@param world cq.World
---@param robot cq.Robot
---@param what string
---@return cq.Robot
function selection.robot(world, robot, what)
  local k, several, others = selection.among(world.robots, robot)
  if several then
    is.fail("%s: the world holds several robots made from this one; use the one that was placed, world.robots[i]", what)
  elseif not k then
    is.fail(others and "%s: this robot is a subset, and the world's robot has other particles; use a group of that one"
      or "%s: this robot is not in the world; in another world, as that of a variant, take state.world.robots[i]", what)
  end
  return world.robots[k]
end

-- The one robot of the world with a group of this name. Errors: none has it, or several do.
local function robot_with(world, name, what)
  local found
  for _, robot in ipairs(world.robots) do
    if robot.group_table[name] then
      if found then
        is.fail("%s: several robots have a group \"%s\"; use world.robots[i]:group(\"%s\")", what, name, name)
      end
      found = robot
    end
  end
  if found then return found end
  local names = {}
  for _, robot in ipairs(world.robots) do
    for _, known in ipairs(robot.group_names) do names[#names + 1] = known end
  end
  is.fail("%s: no group \"%s\"%s; the groups are %s", what, name, text.suggestion(name, names),
    table.concat(names, ", "))
end

-- ---- lists of particles ---------------------------------------------------------------------------------------------

-- Appends the particles of a cq.Group to a list, by their numbers in the world from 0.
local function append_group(list, robot, group)
  for k = 0, group.particle_count - 1 do list[#list + 1] = robot.first + group.index[k] end
end

-- The group of the same name in the world's robot, which may be a subset of the particles of the group's own robot.
-- Errors: the world's robot lacks the group.
local function group_in(robot, group, what)
  if robot:has_particles_of(group.robot) then return group end
  local own = robot.group_table[group.name]
  if not own then
    is.fail("%s: the robot of this world has %s of the %d, and none of the group \"%s\"", what,
      text.count(robot.particle_count, "particle"), group.robot.particle_count, group.name)
  end
  return own
end

-- Appends the particles of the world's group of a name to a list, by their numbers from 0.
local function append_name(world, list, name, what)
  local robot = robot_with(world, name, what)
  append_group(list, robot, robot.group_table[name])
end

-- Appends a particle, given by its number from 1 in the world (of a design's: in the whole design), to a list from 0.
-- Errors: no such number; void that is left out.
local function append_number(world, list, value, what)
  local part = world.part_of                     -- of a design's world, without void that is left out
  local count = part and part.count or world.particle_count
  if value % 1 ~= 0 or value < 1 or value > count then
    is.fail("%s: particles are whole numbers from 1 to %d, got %s", what, count, text.describe(value))
  end
  local own = value
  if part then own = part.place[value] end
  if not own then
    is.fail("%s: particle %d is void that is left out of the simulation; ask for a group", what, value)
  end
  list[#list + 1] = own - 1
end

-- A list without the numbers that it has already given: groups of one row may overlap.
local function once(list)
  local out, taken = {}, {}
  for _, p in ipairs(list) do
    if not taken[p] then out[#out + 1], taken[p] = p, true end
  end
  return out
end

-- Raises the error of a value that selects no particles.
local function refuse(which, what)
  is.fail("%s: takes a group name, a group, a robot, a list of names, or a list of particle numbers, got %s", what,
    text.describe(which))
end

-- A list of the particles, from 0, of one row of a readout, from the user's value: a name, a group, a robot, or a list
-- of numbers or names, whose groups have each particle once. Errors: a wrong value.
local function row(world, which, what)
  local list = {}
  if type(which) == "string" then
    append_name(world, list, which, what)
  elseif text.is_instance(which, "cq.Group") then
    local robot = selection.robot(world, which.robot, what)
    append_group(list, robot, group_in(robot, which, what))
  elseif text.is_instance(which, "cq.Robot") then
    local robot = selection.robot(world, which, what)
    for p = 0, robot.particle_count - 1 do list[#list + 1] = robot.first + p end
  elseif type(which) == "table" and not getmetatable(which) and #which > 0 then
    local any_name = false
    for _, entry in ipairs(which) do
      any_name = any_name or type(entry) == "string"
      if type(entry) == "number" then append_number(world, list, entry, what)
      elseif type(entry) == "string" then append_name(world, list, entry, what)
      else refuse(which, what) end
    end
    if any_name then list = once(list) end
  else
    refuse(which, what)
  end
  return list
end

-- A list of rows of particle numbers from 0, one for each group: a list of numbers is one row, a list of names or
-- groups a row for each. Also returns whether the user's value stands for a single row. Errors: a list of both.
local function rows_of(world, which, what)
  local has_number, has_other = false, false
  for _, entry in ipairs(type(which) == "table" and not getmetatable(which) and which or {}) do
    if type(entry) == "number" then has_number = true else has_other = true end
  end
  if has_number and has_other then
    is.fail("%s: a list of particle numbers is one row, and a list of names a row for each; put numbers and names of one row into a list of their own, as { { \"tip\", 1 } }",
      what)
  end
  if type(which) == "table" and not getmetatable(which) and #which > 0 and type(which[1]) ~= "number" then
    local rows = {}
    for k, entry in ipairs(which) do rows[k] = row(world, entry, what) end
    return rows, false
  end
  return { row(world, which, what) }, true
end

-- A cq.Selection of lists of particles, from 0, as the array and the offsets that the engine takes. single: readouts
-- have no dimension of rows.
local function packed(rows, single)
  local total = 0
  for _, list in ipairs(rows) do total = total + #list end
  local out = setmetatable({ count = #rows, single = single, total = total, readouts = {} }, Selection)
  out.start, out.particles = ffi.new("int64_t[?]", #rows + 1), ffi.new("int32_t[?]", math.max(total, 1))
  local at = 0
  for k, list in ipairs(rows) do
    for _, p in ipairs(list) do
      out.particles[at] = p
      at = at + 1
    end
    out.start[k] = at
  end
  return out
end

-- A new cq.Selection of the particles that `which` stands for; nil: all.
local function build(world, which, what)
  if which ~= nil then return packed(rows_of(world, which, what)) end
  local all = {}
  for p = 0, world.particle_count - 1 do all[p + 1] = p end
  return packed({ all }, true)
end

---Lists of particle numbers (or one list), from 1 within a robot, as a new selection, which the world does not keep.
---@param world cq.World
---@param which integer[]|integer[][]
---@param first integer       added to each: where its robot begins, from 0
---@return cq.Selection
function selection.remember(world, which, first)
  local single = type(which[1]) == "number"
  local rows = {}
  for k, list in ipairs(single and { which } or which) do
    rows[k] = {}
    for i, p in ipairs(list) do
      assert(p >= 1 and p + first <= world.particle_count)
      rows[k][i] = p - 1 + first
    end
  end
  return packed(rows, single)
end

-- ---- remembered by what they stand for ------------------------------------------------------------------------------

-- A string for a selection of particles, by which it is cached. Errors: a value that selects no particles.
local function key_of(world, which, what)
  if which == nil then return "all" end
  if type(which) == "string" then return "name " .. which end
  if text.is_instance(which, "cq.Robot") then return "robot " .. selection.robot(world, which, what).first end
  if text.is_instance(which, "cq.Group") then
    return ("group %d %s"):format(selection.robot(world, which.robot, what).first, which.name)
  end
  if type(which) ~= "table" or getmetatable(which) then refuse(which, what) end
  is.require_list(which, what)
  local parts = {}
  for k, entry in ipairs(which) do
    parts[k] = type(entry) == "number" and ("%.17g"):format(entry) or key_of(world, entry, what)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

---The selection that a name, a list, a group, a robot or nil (everything) stands for, made once and kept in the world.
---@param world cq.World
---@param which any
---@param what string      for errors
---@return cq.Selection
function selection.find(world, which, what)
  if text.is_instance(which, "cq.Selection") then return which end
  local key = key_of(world, which, what)
  local found = world.selections[key]
  if not found then
    found = build(world, which, what)
    world.selections[key] = found
  end
  return found
end

return selection
