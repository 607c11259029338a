-- values: the fields of robot:with: checked at once, spread over particles when a rollout begins.
--
-- A constant of a material is one of the particles whose material has it. Values that reach other particles are not
-- read there, neither here nor by the engine, and have no gradient; a tensor may leave those particles out.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local cables = require "cq.actuator.cable"
local constants = require "cq.robot.constants"
local elastic = require "cq.robot.other_names"
local field = require "cq.base.field"
local tables = require "cq.base.tables"
local shape_text = require("cq.tensor.class").shape_text

local values = {}

-- Must a field be given for every particle? Else one value may stand for all.
local function is_each(entry) return entry.owner == "entry" or (entry.owner == "state" and not entry.default) end

-- How many values a field has: one for each particle, or for each cable.
local function count_of(robot, entry) return entry.owner == "cable" and #robot.cables or robot.particle_count end

-- The checker of a field of robot:with, whose label says bounds and whether one value may stand for all.
local function kind_of(entry)
  local those = entry.owner == "cable" and ": for all cables, or for each"
    or ": for all, by group, or for every particle"
  local checker = {
    label = field.numbers(entry) .. (is_each(entry) and " for every particle" or those),
    cats = (entry.rank == 0 and not is_each(entry) and "number|" or "") .. "table|cq.Tensor",
    check = function(value) return value ~= nil end,
  }
  return field.listed(checker, entry, true)
end

local names, kinds = {}, {}
for k, entry in ipairs(field.of_robot) do names[k], kinds[entry.name] = entry.name, kind_of(entry) end
table.sort(names)
-- declared for its names: what a value may be depends on the robot, see check_tensor
local spec = is.define("robot:with", kinds, nil, function(key, given) return elastic.hint(key, given, kinds) end)

---What may be meant by a name that is none of the fields, for errors. given: all that the user gave, for Lame's
---constants; known: the names to suggest, those of robot:with unless given.
---@return string      " (...)", or nothing
function values.hint(name, given, known)
  local hint = elastic.hint(name, given, kinds)
  return hint and (" (%s)"):format(hint) or text.suggestion(name, known or names)
end

-- The shape of one particle's value: {}, {dim} or {dim, dim}; of weights of actuators {columns}.
local function width(robot, entry)
  return entry.owner == "entry" and { robot.weight_columns } or field.width(entry, robot.dim)
end

-- Which particles have a field, as constants.having tells it; nil if all do.
local function having(robot, entry) return entry.owner == "constant" and constants.having(robot, entry.name) or nil end

-- A new list of two lists, one after the other.
local function joined(a, b)
  local out = {}
  for _, x in ipairs(a) do out[#out + 1] = x end
  for _, x in ipairs(b) do out[#out + 1] = x end
  return out
end

-- Raises an error if a tensor has an element that is not finite or outside of the bounds of its field.
local function check_range(tensor, entry, what)
  T.tape.pause(function()
    if not tensor:finite() then is.fail("%s must be finite everywhere", what) end
    local problem = field.outside(entry, tensor:min():item(), tensor:max():item())
    if problem then is.fail("%s must %s", what, problem) end
  end)
end

-- The allowed shapes of a value in words: "one number or {32} or {batch, 32}". w: shape of one value; counts: the
-- allowed sizes along the dimension of particles. whole_only: only shapes of one value.
local function shapes_allowed(entry, w, counts, whole_only)
  local allowed = {}
  if not is_each(entry) then allowed[1] = #w == 0 and "one number" or shape_text(w) end
  for _, count in ipairs(whole_only and {} or counts) do
    allowed[#allowed + 1] = shape_text(joined({ count }, w))
    allowed[#allowed + 1] = shape_text(joined({ "batch", count }, w))
  end
  return table.concat(allowed, " or ")
end

-- Does a shape fit a field: that of one value, w, or {n, ...} or {batch, n, ...} of these? counts: the allowed n.
-- whole_only: only w, or {batch, 1, ...}.
local function fits(entry, shape, w, counts, whole_only)
  local lead = #shape - #w
  if lead < 0 or lead > 2 or (lead == 0 and is_each(entry)) then return false end
  for i, size in ipairs(w) do
    if shape[lead + i] ~= size then return false end
  end
  if lead == 0 then return true end
  if whole_only then return lead == 2 and shape[2] == 1 end
  for _, count in ipairs(counts) do
    if shape[lead] == count then return true end
  end
  return shape[lead] == 1 and not is_each(entry)
end

-- Turns a number, nested lists of numbers or a tensor into a tensor of a shape that the field may have. Errors: another
-- shape. whole_only: of one value alone, or {batch, 1, ...}.
local function check_tensor(robot, entry, value, what, whole_only)
  if type(value) ~= "number" and type(value) ~= "table" and not T.is_tensor(value) then
    is.fail("%s must be a number, a list or a tensor, got %s", what, text.describe(value))
  end
  local tensor, w, some = T.as_tensor(value, what), width(robot, entry), having(robot, entry)
  local n = count_of(robot, entry)
  local shape, counts = tensor:shape(), { n, some and some.count }
  local one = #w == 0 and #shape == 1 and shape[1] == 1 and n ~= 1
  if not one and not fits(entry, shape, w, counts, whole_only) then
    is.fail("%s must have the shape %s, got %s", what, shapes_allowed(entry, w, counts, whole_only), shape_text(shape))
  end
  local lead = #shape - #w
  local seen = tensor
  -- values of particles that do not have it are not read
  if some and lead > 0 and shape[lead] == robot.particle_count then
    seen = T.tape.pause(tensor.gather, tensor, some.index, lead)
  end
  check_range(seen, entry, what)
  return tensor
end

-- Is this a table of values by group name?
local function is_by_group(value)
  return type(value) == "table" and not T.is_tensor(value) and type(next(value)) == "string"
end

-- A list of { name, mask {n} } for the groups that are the keys of `value`, by the alphabet, and the mask {n} of the
-- particles in none of them. Errors: a particle in two of them.
local function masks(robot, value, what)
  local n, taken = robot.particle_count, {}
  local rest = T.ones { n }
  local r, out = rest:data(), {}
  local groups = tables.names(value)
  for k, name in ipairs(groups) do
    local index, count = robot:select(name, what)
    local mask = T.zeros { n }
    local m = mask:data()
    for i = 0, count - 1 do
      local p = index[i]
      if taken[p] then
        is.fail("%s: particle %d is in the groups \"%s\" and \"%s\"; give it one value", what, p + 1, taken[p], name)
      end
      taken[p], m[p], r[p] = name, 1, 0
    end
    out[k] = { name = name, mask = mask }
  end
  return out, rest
end

---Checks the table that robot:with takes. Errors: an unknown field; values by group for a field of which each particle
---or cable needs its own; a field of actuators or cables that the robot lacks; wrong shapes.
---@param robot cq.Robot
---@param given table
---@return table<string, table>     by field: { tensor } or { groups, rest }
function values.check(robot, given)
  local out = {}
  for name, value in pairs(spec(given)) do
    local entry = field.by_name[name]
    local what = "robot:with: " .. name
    if entry.owner == "entry" and robot.weight_columns == 0 then
      is.fail("%s: the robot has no actuators%s", what, robot.actuator_count > 0 and " that are stresses" or "")
    end
    if entry.owner == "cable" and #robot.cables == 0 then is.fail("%s: the robot has no cables", what) end
    if entry.owner == "constant" then constants.require(robot, name, "robot:with") end
    if is_by_group(value) and entry.owner == "cable" then
      is.fail("%s must be one number, or one for each of %s, not by group", what, text.count(#robot.cables, "cable"))
    elseif is_by_group(value) and is_each(entry) then
      is.fail("%s must be given for every particle, not by group", what)
    elseif is_by_group(value) then
      local groups, rest = masks(robot, value, what)
      for _, group in ipairs(groups) do
        local of_group = ("%s.%s"):format(what, group.name)
        constants.require_some(robot, name, robot:group(group.name), of_group)
        group.value = check_tensor(robot, entry, value[group.name], of_group, true)
      end
      out[name] = { groups = groups, rest = rest }
    else
      out[name] = { tensor = check_tensor(robot, entry, value, what) }
    end
  end
  return out
end

-- A mask {n} as {n, 1, ...}, with `rank` dimensions of size 1, so that it multiplies values {n, ...}.
local function unsqueeze_to(mask, rank)
  for _ = 1, rank do mask = mask:unsqueeze(-1) end
  return mask
end

---The values that the particles have without robot:with; NaN for a constant that a particle's material lacks.
---@param robot cq.Robot
---@param name string
---@return cq.Tensor     {n, ...}
function values.base(robot, name)
  local entry = field.by_name[name]
  local without = entry.owner == "constant" and field.none or field.fill
  return robot.base[name] or (entry.owner == "cable" and T.zeros { 0 }
    or without(entry, robot.particle_count, robot.dim))
end

---Which particles have a field, as constants.having tells it.
---@param robot cq.Robot
---@param name string
---@return { count: integer, index: integer[], slot: integer[], has: table<integer, boolean> }?   nil: all
function values.having(robot, name) return having(robot, field.by_name[name]) end

---How many values a robot has of a field: of its particles, or its cables.
---@return integer
function values.count(robot, name) return count_of(robot, field.by_name[name]) end

---Sizes of one particle's value of a field: {}, {dim} or {dim, dim}; of weights of actuators {columns}.
---@return integer[]
function values.width(robot, name) return width(robot, field.by_name[name]) end

---Must a field be given for every particle?
---@return boolean
function values.is_each(name) return is_each(field.by_name[name]) end

---The values of all particles of a robot when a rollout begins, as plain numbers.
---@param robot cq.Robot
---@param name string
---@return cq.Tensor?     {n, ...} or {batch, n, ...}; nil: weights of actuators that robot:with did not set
function values.start(robot, name)
  return T.tape.pause(function()
    local given = values.spread(robot, name)
    if given then return given:detach() end
    if field.by_name[name].owner ~= "entry" then return values.base(robot, name) end
  end)
end

-- The values {n, ...} of a field from those of groups; particles in none of them keep theirs.
local function of_groups(robot, name, given)
  local w = width(robot, field.by_name[name])
  local sum = values.base(robot, name) * unsqueeze_to(given.rest, #w)
  for _, group in ipairs(given.groups) do
    local value = group.value
    if #w == 0 and value.rank == 1 then value = value:reshape {} end
    sum = sum + value * unsqueeze_to(group.mask, #w)
  end
  return sum
end

-- The values {n, ...} or {batch, n, ...} of a field from a tensor of one value, of all, or of the particles that have
-- the field.
local function over_all(robot, entry, tensor)
  local n, w = count_of(robot, entry), width(robot, entry)
  if #w == 0 and tensor.rank == 1 and tensor.count == 1 then return tensor:expand { n } end
  local lead = tensor.rank - #w
  if lead == 0 then return tensor:expand(joined({ n }, w)) end
  local shape, some = tensor:shape(), having(robot, entry)
  if shape[lead] == n then return tensor end
  if some and shape[lead] == some.count then return tensor:gather(some.slot, lead) end
  shape[lead] = n
  return tensor:expand(shape)
end

-- A mask {n} of the particles that have a field. some: of constants.having.
local function mask_of(robot, some)
  local mask = T.zeros { robot.particle_count }
  local data = mask:data()
  for _, p in ipairs(some.index) do data[p - 1] = 1 end
  return mask
end

---The value of a field for all particles, by operations on the recording tape; NaN where a particle lacks it.
---@param robot cq.Robot
---@param name string
---@param placed? cq.Robot     as a world holds it: where values in the robot's own coordinates are; the robot itself unless given
---@return cq.Tensor?     {n, ...} or {batch, n, ...}; nil when with did not set it
function values.spread(robot, name, placed)
  local given = robot.values and robot.values[name]
  if not given then return nil end
  if given.relative then return given.tensor + T.tensor((placed or robot).offset) end
  if given.measured then return cables.lengths(robot, values.spread(robot, "position", placed)) end
  if given.groups then return of_groups(robot, name, given) end
  local entry = field.by_name[name]
  local out, some = over_all(robot, entry, given.tensor), having(robot, entry)
  return some and T.where(unsqueeze_to(mask_of(robot, some), entry.rank), out, 0 / 0) or out
end

return values
