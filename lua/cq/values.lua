-- values: what robot:with takes, checked when it is given and spread over particles when a rollout begins.
local is = require "cq.schema"
local text = require "cq.text"
local T = require "cq.tensor"
local elastic = require "cq.elastic"

local values = {}

-- shape of a field at one particle, and the bounds of its numbers; constants have a tensor {n} in the robot
local fields = {
  young    = { constant = true, above = 0 },
  poisson  = { constant = true, above = -1, below = 0.5 },
  density  = { constant = true, above = 0 },
  volume   = { constant = true, above = 0 },
  position = { rank = 1, each = true },
  velocity = { rank = 1 }, affine = { rank = 2 }, deformation = { rank = 2 },
  actuator_weights = { signals = true, each = true },
}
values.fields = fields

-- as users are told: bounds, and whether one value may stand for all
local function kind_of(field)
  local numbers = "finite numbers"
  if field.above then numbers = numbers .. " above " .. text.number(field.above) end
  if field.below then numbers = numbers .. " and below " .. text.number(field.below) end
  return {
    label = numbers .. (field.each and " for every particle" or ": for all, by group, or for every particle"),
    optional = true,
    cats = (field.constant and "number|" or "") .. "table|cq.Tensor", check = function(value) return value ~= nil end,
  }
end

local names, kinds = {}, {}
for name, field in pairs(fields) do
  names[#names + 1] = name
  kinds[name] = kind_of(field)
end
table.sort(names)
-- declared for its names: what a value may be depends on the robot, see check_tensor
local spec = is.define("robot:with", kinds, nil, elastic.hint)

---What may be meant by a name that is none of the fields, for errors.
---@return string      " (...)", or nothing
function values.hint(name, given, known)
  local hint = elastic.hint(name, given)
  return hint and (" (%s)"):format(hint) or text.suggestion(name, known or names)
end

-- shape of one particle's value
local function width(robot, field)
  if field.signals then return { robot.actuator_count } end
  local out = {}
  for i = 1, field.rank or 0 do out[i] = robot.dim end
  return out
end

local function shape_text(shape)
  for i, size in ipairs(shape) do shape[i] = tostring(size) end
  return "{" .. table.concat(shape, ", ") .. "}"
end

local function joined(a, b)
  local out = {}
  for _, x in ipairs(a) do out[#out + 1] = x end
  for _, x in ipairs(b) do out[#out + 1] = x end
  return out
end

-- every element within the field's bounds, or where it is not
local function check_range(tensor, field, what)
  T.tape.pause(function()
    if not tensor:finite() then is.fail("%s must be finite everywhere", what) end
    local least, most = tensor:min():item(), tensor:max():item()
    if field.above and least <= field.above then
      is.fail("%s must be above %s everywhere, the least is %s", what, text.number(field.above), text.number(least))
    elseif field.below and most >= field.below then
      is.fail("%s must be below %s everywhere, the most is %s", what, text.number(field.below), text.number(most))
    end
  end)
end

-- a number, nested lists of numbers, or a tensor, as a tensor of an allowed shape
local function check_tensor(robot, field, value, what, whole_only)
  if type(value) ~= "number" and type(value) ~= "table" and not T.is_tensor(value) then
    is.fail("%s must be a number, a list or a tensor, got %s", what, text.describe(value))
  end
  local tensor = T.as_tensor(value)
  local w, n = width(robot, field), robot.particle_count
  local shape, rank = tensor:shape(), tensor.rank
  if #w == 0 and rank == 1 and shape[1] == 1 and n ~= 1 then
    check_range(tensor, field, what)
    return tensor
  end
  local lead = rank - #w
  local fits = lead >= 0 and lead <= 2
  for i, size in ipairs(w) do fits = fits and shape[lead + i] == size end
  if fits and lead >= 1 then
    fits = shape[lead] == n or (shape[lead] == 1 and not field.each)
    if whole_only then fits = lead == 2 and shape[2] == 1 end
  end
  if fits and lead == 0 and field.each then fits = false end
  if not fits then
    local allowed = {}
    if not field.each then allowed[1] = #w == 0 and "one number" or shape_text(joined({}, w)) end
    if not whole_only then
      allowed[#allowed + 1] = shape_text(joined({ n }, w))
      allowed[#allowed + 1] = shape_text(joined({ "batch", n }, w))
    end
    is.fail("%s must have the shape %s, got %s", what, table.concat(allowed, " or "), shape_text(shape))
  end
  check_range(tensor, field, what)
  return tensor
end

local function is_by_group(value)
  return type(value) == "table" and not T.is_tensor(value) and type(next(value)) == "string"
end

-- a mask {n} for each group named, and that of the rest; groups must not overlap
local function masks(robot, value, what)
  local n, taken = robot.particle_count, {}
  local rest = T.ones { n }
  local r, out = rest:data(), {}
  local groups = {}
  for name in pairs(value) do groups[#groups + 1] = name end
  table.sort(groups)
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

---Checks the table that robot:with takes.
---@param robot cq.Robot
---@param given table
---@return table<string, table>     by field: { tensor } or { groups, rest }
function values.check(robot, given)
  local out = {}
  for name, value in pairs(spec(given)) do
    local field = fields[name]
    local what = "robot:with: " .. name
    if field.signals and robot.actuator_count == 0 then is.fail("%s: the robot has no actuators", what) end
    if is_by_group(value) and field.each then
      is.fail("%s must be given for every particle, not by group", what)
    elseif is_by_group(value) then
      local groups, rest = masks(robot, value, what)
      for _, group in ipairs(groups) do
        group.value = check_tensor(robot, field, value[group.name], ("%s.%s"):format(what, group.name), true)
      end
      out[name] = { groups = groups, rest = rest }
    else
      out[name] = { tensor = check_tensor(robot, field, value, what) }
    end
  end
  return out
end

-- {n} to {n, 1, 1}, as many ones as a particle's value has dimensions
local function aligned(mask, rank)
  for _ = 1, rank do mask = mask:unsqueeze(-1) end
  return mask
end

-- what a particle has when with says nothing
local function base(robot, name, field)
  if field.constant or name == "position" then return robot[name] end
  if name == "deformation" then return T.eye(robot.dim):unsqueeze(1):expand { robot.particle_count, robot.dim, robot.dim } end
  return T.zeros(joined({ robot.particle_count }, width(robot, field)))
end

---What all particles of a robot have when a rollout begins, as plain numbers.
---@param robot cq.Robot
---@param name string
---@return cq.Tensor?     {n, ...} or {batch, n, ...}; nil where only a rollout can tell
function values.start(robot, name)
  return T.tape.pause(function()
    local given = values.spread(robot, name)
    if given then return given:detach() end
    if name ~= "actuator_weights" then return base(robot, name, fields[name]) end
  end)
end

---The value of a field for all particles, by operations on the recording tape.
---@param robot cq.Robot
---@param name string
---@return cq.Tensor?     {n, ...} or {batch, n, ...}; nil when with did not set it
function values.spread(robot, name)
  local entry = robot.values and robot.values[name]
  if not entry then return nil end
  local field, n = fields[name], robot.particle_count
  local w = width(robot, field)
  if entry.groups then
    local sum = base(robot, name, field) * aligned(entry.rest, #w)
    for _, group in ipairs(entry.groups) do
      local value = group.value
      if #w == 0 and value.rank == 1 then value = value:reshape {} end
      sum = sum + value * aligned(group.mask, #w)
    end
    return sum
  end
  local tensor = entry.tensor
  if #w == 0 and tensor.rank == 1 and tensor.count == 1 then return tensor:expand { n } end
  local lead = tensor.rank - #w
  if lead == 0 then return tensor:expand(joined({ n }, w)) end
  local shape = tensor:shape()
  if shape[lead] == n then return tensor end
  shape[lead] = n
  return tensor:expand(shape)
end

return values
