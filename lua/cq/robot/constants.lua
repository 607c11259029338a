-- constants: the materials of a robot's particles, and an array {n, ...} of each constant that any of these materials
-- has. Where a particle's material lacks the constant, the array holds NaN; nobody reads it there.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local field = require "cq.base.field"

local constants = {}

-- ---- filling --------------------------------------------------------------------------------------------------------

-- Appends the numbers of a number or of nested lists, row after row, to `into`, which it returns.
local function flatten(value, into)
  if type(value) == "number" then into[#into + 1] = value else
    for _, part in ipairs(value) do flatten(part, into) end
  end
  return into
end

-- The value of a constant for a particle of a material, as a list of dim^rank numbers: the material's own, else the
-- constant's default. Errors: a wrong count.
local function numbers_of(robot, material, constant)
  local value, width = material[constant.name], robot.dim ^ constant.rank
  if value == nil then return field.fill(constant, 1, robot.dim):reshape { width }:totable() end
  local out = flatten(value, {})
  if #out ~= width then
    is.fail("cq.Robot: %s of cq.Material.%s has %s, the robot is %dD and needs %d", constant.name, material.law,
      text.count(#out, "number"),
      robot.dim, width)
  end
  return out
end

-- Gives a material to particles: to those of the list `index` {count}, from 0, or without a list to the first `count`.
-- Sets their density and law, and in the robot the arrays of the material's constants.
local function fill(robot, material, index, count)
  material:require_unchanged()
  local laws = robot.laws
  local key = material:engine_key()
  if not laws[key] then
    laws[#laws + 1] = material
    laws[key] = #laws - 1
  end
  local density = robot.density:data()
  for k = 0, count - 1 do
    local p = index and index[k] or k
    density[p], robot.law[p] = material.density, laws[key]
  end
  for _, constant in ipairs(material.constants) do
    local name, numbers = constant.name, numbers_of(robot, material, constant)
    if not robot.base[name] then robot.base[name] = field.none(constant, robot.particle_count, robot.dim) end
    local data, width = robot.base[name]:data(), #numbers
    for k = 0, count - 1 do
      local p = index and index[k] or k
      for i = 1, width do data[p * width + i - 1] = numbers[i] end
    end
  end
end

---Gives the particles of a robot their materials: one for all, or by group name, "default" for the rest. Errors: a
---particle with no material, or with two.
---@param robot cq.Robot
---@param given cq.Material|table<string, cq.Material>
function constants.set(robot, given)
  local n = robot.particle_count
  robot.base.density = T.zeros { n }
  robot.law, robot.laws = ffi.new("int32_t[?]", n), { having = {} }
  if text.is_instance(given, "cq.Material") then return fill(robot, given, nil, n) end
  local names = {}
  for name, material in pairs(given) do
    if type(name) ~= "string" or not text.is_instance(material, "cq.Material") then
      is.fail("cq.Robot: material must be a cq.Material, or a table of them by group name, got %s for %s",
        text.describe(material), text.describe(name))
    end
    if name ~= "default" then names[#names + 1] = name end
  end
  table.sort(names)
  for p = 0, n - 1 do robot.law[p] = -1 end
  for _, name in ipairs(names) do
    local index, count = robot:select(name, "cq.Robot: material")
    for k = 0, count - 1 do
      if robot.law[index[k]] >= 0 then
        is.fail("cq.Robot: particle %d of group \"%s\" has two materials", index[k] + 1, name)
      end
    end
    fill(robot, given[name], index, count)
  end
  local rest, count = ffi.new("int32_t[?]", n), 0
  for p = 0, n - 1 do
    if robot.law[p] < 0 then
      rest[count] = p
      count = count + 1
    end
  end
  if count == 0 then return end
  if not given.default then
    is.fail("cq.Robot: there is no material for %s (the first is particle %d); add their group to material, or a default",
      text.count(count, "particle"), rest[0] + 1)
  end
  fill(robot, given.default, rest, count)
end

-- ---- asking ---------------------------------------------------------------------------------------------------------

---The particles of a robot whose material has a constant.
---@param robot cq.Robot
---@param name string
---@return { count: integer, index: integer[], slot: integer[], has: table<integer, boolean> }?   nil: all. index: their numbers;
---  slot: of every particle the place in index, 1 for those that are not there; has: by number from 0
function constants.having(robot, name)
  local known = robot.laws.having[name]
  if known ~= nil then return known or nil end
  local of_law, out = {}, { count = 0, index = {}, slot = {}, has = {} }
  for k, material in ipairs(robot.laws) do
    for _, constant in ipairs(material.constants) do of_law[k] = of_law[k] or constant.name == name end
  end
  for p = 0, robot.particle_count - 1 do
    local has = of_law[robot.law[p] + 1]
    if has then
      out.count = out.count + 1
      out.index[out.count] = p + 1
    end
    out.slot[p + 1], out.has[p] = has and out.count or 1, has
  end
  robot.laws.having[name] = out.count < robot.particle_count and out
  return robot.laws.having[name] or nil
end

-- The materials of a robot with the constants they take, in words: "neo_hookean with young and poisson".
local function materials_text(robot)
  local seen, parts = {}, {}
  for _, material in ipairs(robot.laws) do
    local part = ("%s with %s"):format(material.law, field.names(material.constants))
    if not seen[part] then parts[#parts + 1] = part end
    seen[part] = true
  end
  return table.concat(parts, "; ")
end

---Raises an error if none of the robot's materials has a constant.
---@param robot cq.Robot
---@param name string
---@param what string      for errors
function constants.require(robot, name, what)
  if robot.base[name] then return end
  is.fail("%s: no material of %s has %s; they are %s", what, robot.name, name, materials_text(robot))
end

---Has any particle of a group this field? True for fields that are no constants of materials.
---@param robot cq.Robot
---@param name string
---@param group cq.Group
---@return boolean
function constants.has_some(robot, name, group)
  local having = field.by_name[name].owner == "constant" and constants.having(robot, name)
  if not having then return true end
  for k = 0, group.particle_count - 1 do
    if having.has[group.index[k]] then return true end
  end
  return false
end

---Raises an error if no particle of a group has a constant.
---@param robot cq.Robot
---@param name string
---@param group cq.Group
---@param what string         for errors
function constants.require_some(robot, name, group, what)
  if constants.has_some(robot, name, group) then return end
  is.fail("%s: the material of this group has no %s; the robot's are %s", what, name, materials_text(robot))
end

return constants
