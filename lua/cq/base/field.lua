-- field: the engine's lists as Lua reads them: the fields of particles, actuators, walls and the world, and the
-- laws of materials with their constants. Names, shapes, units, bounds, defaults and meanings stand in
-- engine/lists.h and nowhere else.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local C = require("cq.base.engine").C

---@internal
---@class cq.FieldInfo
---@field id integer?            cq_field; nil: none of the engine's, but made of others
---@field name string
---@field unit string
---@field meaning string
---@field owner "state"|"particle"|"constant"|"entry"|"world"|"wall"|"cable"   what has a value of it
---@field rank integer           0 a number, 1 a vector {dim}, 2 a matrix {dim, dim}
---@field lower number
---@field closed boolean         is the lower bound itself allowed? The upper one never is
---@field upper number
---@field default number?        what holds where nothing is given, of a matrix times the identity; nil: it must be given

---@class cq.LawInfo
---@field kind integer           cq_material_kind
---@field name string
---@field meaning string
---@field incompressible boolean may it have the power of that name?
---@field branches boolean       may Maxwell branches stand beside it?
---@field choices { elasticity: integer, constants: cq.FieldInfo[] }[]   the sets of constants that it can be given by

local owners = {
  [tonumber(C.CQ_OWNER_STATE)] = "state", [tonumber(C.CQ_OWNER_PARTICLE)] = "particle",
  [tonumber(C.CQ_OWNER_CONSTANT)] = "constant",
  [tonumber(C.CQ_OWNER_ENTRY)] = "entry", [tonumber(C.CQ_OWNER_WORLD)] = "world", [tonumber(C.CQ_OWNER_WALL)] = "wall",
  [tonumber(C.CQ_OWNER_CABLE)] = "cable",
}

-- ---- fields ---------------------------------------------------------------------------------------------------------

-- The row of a field, by its number, in the engine's list of fields (engine/lists.h) as a cq.FieldInfo.
local function read(id)
  local info = C.cq_field_describe(id)
  return {
    id = id, name = ffi.string(info.name), unit = ffi.string(info.unit), meaning = ffi.string(info.meaning),
    owner = owners[info.owner],
    rank = info.rank, lower = info.lower, closed = info.closed == 1, upper = info.upper,
    default = info.value == info.value and info.value or nil,
  }
end

-- list: all of the engine's. of_robot: what robot:with takes; of_world: what a rollout takes itself.
local field = { list = {}, by_id = {}, by_name = {}, of_robot = {}, of_world = {} }

-- The cq.FieldInfo of density, from that of mass: scripts give densities, the engine takes density times volume.
local function density_of(mass)
  return {
    name = "density", unit = "mass/length^dim", meaning = "mass per initial volume, area in 2D", owner = "particle",
    rank = 0,
    lower = mass.lower, closed = mass.closed, upper = mass.upper, default = 1,
  }
end

for id = 0, tonumber(C.CQ_FIELD_COUNT) - 1 do
  local entry = read(id)
  field.list[#field.list + 1], field.by_id[id] = entry, entry
  local given = entry.name == "mass" and density_of(entry) or entry
  local taken_by = (entry.owner == "world" or entry.owner == "wall") and field.of_world or field.of_robot
  taken_by[#taken_by + 1], field.by_name[given.name] = given, given
end

---The shape of one value of a field: {} of a number, {dim} of a vector, {dim, dim} of a matrix.
---@param entry cq.FieldInfo
---@param dim integer
---@return integer[]
function field.width(entry, dim)
  local out = {}
  for k = 1, entry.rank do out[k] = dim end
  return out
end

-- The shape {count, ...} of `count` values of a field, each a number, a vector or a matrix.
local function shape_of(entry, count, dim)
  local shape = field.width(entry, dim)
  table.insert(shape, 1, count)
  return shape
end

---The default of a field, repeated `count` times, as a tensor.
---@param entry cq.FieldInfo     one with a default
---@param count integer
---@param dim integer
---@return cq.Tensor     {count, ...}
function field.fill(entry, count, dim)
  local shape = shape_of(entry, count, dim)
  if entry.rank < 2 then return T.full(shape, entry.default) end
  return (T.eye(dim) * entry.default):unsqueeze(1):expand(shape)
end

---A tensor of NaN for `count` particles, where a robot has a constant that its own material lacks.
---@param entry cq.FieldInfo
---@param count integer
---@param dim integer
---@return cq.Tensor     {count, ...}
function field.none(entry, count, dim)
  local out = T.empty(shape_of(entry, count, dim))
  C.cq_tensor_fill(out.count, 0 / 0, out:data())
  return out
end

-- ---- bounds ---------------------------------------------------------------------------------------------------------

-- The bounds of a field as options of a checker of schema.lua: { min, above, below }.
local function range(entry)
  local lower = entry.lower > -math.huge and entry.lower or nil
  return {
    min = entry.closed and lower or nil, above = not entry.closed and lower or nil, below = entry.upper < math.huge
      and entry.upper or nil,
  }
end

---The numbers that a field may have, in words: "finite numbers at least 0".
---@param entry cq.FieldInfo
---@return string
function field.numbers(entry)
  return (is.number(range(entry)).label:gsub("^a finite number", "finite numbers"))
end

---How the range from least to most breaks the field's bounds, in words; nil: it is within.
---@param entry cq.FieldInfo
---@param least number
---@param most number
---@return string?     "be above 0 everywhere, the least is -1"
function field.outside(entry, least, most)
  if least < entry.lower or (least == entry.lower and not entry.closed) then
    return ("be %s %s everywhere, the least is %s"):format(entry.closed and "at least" or "above",
      text.number(entry.lower), text.number(least))
  elseif most >= entry.upper then
    return ("be below %s everywhere, the most is %s"):format(text.number(entry.upper), text.number(most))
  end
end

---A checker of a material constant: a number, a list of one for each axis, or a list of such lists.
---@param entry cq.FieldInfo
---@param optional boolean
---@return cq.Checker
function field.checker(entry, optional)
  local options = range(entry)
  local checker
  if entry.rank == 0 then
    options.default, options.unit = entry.default, entry.unit == "rad" and entry.unit or nil
    checker = is.number(options)
  else
    options.size = { 2, 3 }
    checker = is.vector(options)
    if entry.rank == 2 then checker = is.list(checker, { min = 2 }) end
  end
  field.listed(checker, entry, optional or entry.default ~= nil)
  if entry.rank > 0 and entry.default then
    local of_matrix = entry.rank == 2 and "times the identity" or "in every component"
    checker.help = ("%s; %s %s unless given"):format(checker.help, text.number(entry.default), of_matrix)
  end
  return checker
end

---Marks a checker, in place, as that of a field of the engine's list, and returns it: its help is the field's meaning
---and unit, and it needs no LuaCATS annotation.
---@param checker cq.Checker
---@param entry cq.FieldInfo
---@param optional boolean
---@return cq.Checker
function field.listed(checker, entry, optional)
  checker.listed, checker.optional = true, optional
  checker.help = ("%s [%s]"):format(entry.meaning, entry.unit)
  return checker
end

-- ---- laws -----------------------------------------------------------------------------------------------------------

---The constants that a material needs, for one law and one set of elastic constants.
---@param kind integer    cq_material_kind
---@param elasticity integer    cq_elasticity: which two elastic constants are given, as Young's modulus and Poisson's
---  ratio
---@param beside? { viscous: integer, branches: integer }   viscous: 1 if it has a viscosity; branches: its number of
---  Maxwell branches
---@return cq.FieldInfo[]
function field.constants(kind, elasticity, beside)
  local material = ffi.new("cq_material", { kind = kind, elasticity = elasticity })
  if beside then material.viscous, material.branches = beside.viscous, beside.branches end
  local count = C.cq_material_fields(material, nil, 0)
  local ids, out = ffi.new("int32_t[?]", math.max(count, 1)), {}
  C.cq_material_fields(material, ids, count)
  for k = 1, count do out[k] = field.by_id[ids[k - 1]] end
  return out
end

---@type cq.LawInfo[]
field.laws = {}
for kind = 0, tonumber(C.CQ_MATERIAL_COUNT) - 1 do
  local info = C.cq_law_describe(kind)
  local law = { kind = kind, name = ffi.string(info.name), meaning = ffi.string(info.meaning), choices = {} }
  law.incompressible, law.branches = info.incompressible == 1, info.branches == 1
  for elasticity = 0, info.lame == 1 and tonumber(C.CQ_ELASTICITY_COUNT) - 1 or 0 do
    law.choices[elasticity + 1] = { elasticity = elasticity, constants = field.constants(kind, elasticity) }
  end
  field.laws[kind + 1] = law
end

---Names of fields, joined for a sentence.
---@param list cq.FieldInfo[]
---@return string     "young and poisson"
function field.names(list)
  local names = {}
  for k, entry in ipairs(list) do names[k] = entry.name end
  return text.join(names)
end

return field
