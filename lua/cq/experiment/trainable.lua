-- trainable: values that an experiment trains beside controller and observer, as params: of the robot, of the world,
-- and any other with a function that applies it.
--
--   trainable = {
--     young = { min = 7, max = 20, per = "particle", rate = 0.1 }, friction = { min = 0, max = 1 }, length = { init =
--     1, min = 0.5, max = 2, apply = function(robot, s) return robot:stretched { axis = "y", factor = s } end },
--     controller = { rate = 1e-3 },
--   }
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local make = require "cq.tensor.make"
local constants = require "cq.robot.constants"
local field = require "cq.base.field"
local values = require "cq.robot.values"

local trainable = {}

local of_world = {}
for _, entry in ipairs(field.of_world) do of_world[entry.name] = true end

---@class cq.Experiment.trainable.def
---@field min? number       lower bound, kept by projection
---@field max? number       upper bound
---@field per? "robot"|"group"|"particle"|"cable"   one value for all, for each group of the shape, particle or cable; a constant of a
---  material has values of the groups and particles whose material has it, and no others
---@field init? any         instead of the value that the robot or the world has; one value is that of all groups, particles or cables
---@field rate? number      of its own, in the place of the optimizer's
---@field apply? fun(robot: cq.Robot, value: cq.Tensor): cq.Robot   what the value does: gives a variant of the robot. The name is then the
---  user's own, and init its first value, a number or a tensor

local spec = is.define("cq.Experiment: trainable", {
  min = is.number { optional = true }, max = is.number { optional = true },
  per = is.one_of { "robot", "group", "particle", "cable", default = "robot" },
  init = is.any { optional = true },
  rate = is.number { above = 0, optional = true },
  apply = is.callable { optional = true },
})

---@class cq.Experiment.trainable.weights.def
---@field rate number       of all weights that have none of their own

-- weights are trained anyway: only how
local of_weights = { controller = true, observer = true }
local weights_spec = is.define("cq.Experiment: trainable weights", { rate = is.number { above = 0 } })

local names = {}
for _, list in ipairs { field.of_robot, field.of_world } do
  for _, entry in ipairs(list) do names[#names + 1] = entry.name end
end
table.sort(names)

-- A cq.param from its initial value and { min, max, rate }; errors begin with `what`, the field that is trained.
local function param_of(init, bounds, what)
  local start = T.as_tensor(init)
  local problem = make.why_no_param(start, bounds.min, bounds.max)
  if problem then is.fail("%s: %s", what, problem) end
  return T.param(start, bounds)
end

-- The value {n, ...} of a robot's field before training: set by robot:with, or the robot's own.
local function start_of(robot, name, what)
  local value = values.start(robot, name)
  if not value then is.fail("%s: needs init, there is no value to start from", what) end
  if value.rank > 1 + #values.width(robot, name) then
    is.fail("%s: needs init, the robot has a value for each scene of a batch", what)
  end
  return value
end

-- The value, a tensor, that is the same in all particles of a list that have this field; an error if they differ.
-- index: int32_t[count], numbers of particles from 0, or nil for all.
local function shared(robot, name, index, count, what)
  local value, having = start_of(robot, name, what), values.having(robot, name)
  local data, width, first = value:data(), value.count / values.count(robot, name), nil
  for k = 0, count - 1 do
    local other = index and index[k] or k
    local read = not having or having.has[other]
    if read then first = first or other end
    for i = 0, read and width - 1 or -1 do
      local a, b = data[first * width + i], data[other * width + i]
      if a ~= b then
        is.fail("%s: differs between particles (%s and %s); use per = \"particle\"%s, or give init", what,
          text.number(a),
          text.number(b), index and "" or " or \"group\"")
      end
    end
  end
  return value[first + 1]
end

-- Initial values {count, ...} of a robot's field from the one that stands for all of them; other values unchanged.
local function for_each(robot, name, init, count)
  local shape, width = init:shape(), values.width(robot, name)
  local is_one = #shape == #width or #shape == #width + 1 and shape[1] == 1
  if not is_one or values.is_each(name) then return init end
  return init:expand { count, unpack(shape, #shape - #width + 1) }
end

-- The cq.param of a trainable robot field, with initial value and bounds; for per = "group" a table of them by group.
-- Errors: `per` does not fit the field; no value to start from; values that differ where one is trained.
local function for_robot(robot, name, def, bounds, what)
  local n, having = values.count(robot, name), values.having(robot, name)
  local of_cables = field.by_name[name].owner == "cable"
  if of_cables and n == 0 then is.fail("%s: the robot has no cables", what) end
  if of_cables ~= (def.per == "cable") and def.per ~= "robot" then
    is.fail("%s: is a value of each %s; say per = \"%s\", got \"%s\"", what, of_cables and "cable" or "particle",
      of_cables and "cable" or "particle", def.per)
  end
  if field.by_name[name].owner == "constant" then constants.require(robot, name, what) end
  if values.is_each(name) and def.per ~= "particle" then
    is.fail("%s: is a value of each particle; say per = \"particle\", got \"%s\"", what, def.per)
  end
  if def.per == "group" then
    if #robot.groups == 0 then
      is.fail("%s: per = \"group\" needs a shape whose parts have names, as cq.Shape.box { name = \"leg\", ... }; this "
        .. "robot's has none", what)
    end
    local out = {}
    for _, group_name in ipairs(robot.groups) do
      local group = robot:group(group_name)
      if constants.has_some(robot, name, group) then
        local init = def.init or shared(robot, name, group.index, group.particle_count,
          ("%s.%s"):format(what, group_name))
        out[group_name] = param_of(init, bounds, ("%s.%s"):format(what, group_name))
      end
    end
    return out
  elseif def.per == "robot" then
    return param_of(def.init or shared(robot, name, nil, n, what), bounds, what)
  end
  -- the particles without it have none to train
  if not def.init then
    local start = start_of(robot, name, what)
    return param_of(having and start:gather(having.index, 1) or start, bounds, what)
  end
  return param_of(for_each(robot, name, T.as_tensor(def.init), having and having.count or n), bounds, what)
end

-- The cq.param of a trainable world field, with its initial value and bounds: of friction one number, unless walls
-- differ. Errors: another `per` than "robot"; no walls.
local function for_world(world, name, def, bounds, what)
  if def.per ~= "robot" then is.fail("%s: per is for values of the robot", what) end
  if def.init then return param_of(def.init, bounds, what) end
  local base = world.layout.base[name]
  if not base then is.fail("%s: the world has no walls", what) end
  -- one coefficient for all walls, unless they differ
  if name == "friction" then
    local first, same = base:get(1), true
    for k = 1, base.count do same = same and base:get(k) == first end
    if same then return param_of(first, bounds, what) end
  end
  return param_of(base, bounds, what)
end

-- The cq.param of a trainable value that a function of the user's applies. Errors: no init; another `per` than "robot".
local function with_apply(given, what)
  local def = spec(given)
  if def.init == nil then is.fail("%s: a value with apply needs init, where it starts", what) end
  if def.per ~= "robot" then
    is.fail("%s: per is for values of the robot; of a value with apply the shape of init says how many there are", what)
  end
  return param_of(def.init, { min = def.min, max = def.max, rate = def.rate }, what)
end

-- Raises the error of a name in `given`, the user's table of trainables, that neither robot nor world has, with a
-- suggestion.
local function unknown(name, given)
  is.fail("cq.Experiment: trainable has no %s%s; allowed are %s, controller and observer for the rate of their weights, and any name with apply",
    text.describe(name), type(name) == "string" and values.hint(name, given, names) or "", table.concat(names, ", "))
end

-- The cq.param, or params by group, of one entry of `trainable`: a field of the robot or of the world by its name, or a
-- cq.param of the user's in its place. Errors: neither a table of options nor a cq.param.
local function of_field(world, robot, name, entry, what)
  if T.is_tensor(entry) then
    if not entry.trainable then
      is.fail("%s: must be a cq.param, or a table such as { min = 1, max = 2 }, got a plain tensor", what)
    end
    return entry
  end
  if type(entry) ~= "table" then
    is.fail("%s: must be a table such as { min = 1, max = 2, per = \"particle\" }, got %s", what, text.describe(entry))
  end
  local def = spec(entry)
  local bounds = { min = def.min, max = def.max, rate = def.rate }
  return of_world[name] and for_world(world, name, def, bounds, what) or for_robot(robot, name, def, bounds, what)
end

---The parameters (cq.param) for all that the user's `trainable` names, and the functions that apply values of the
---user's own to the robot.
---@param world cq.World
---@param robot cq.Robot
---@param given table<string, table|cq.Tensor>
---@return { robot: table?, world: table?, named: table? } params, table<string, function> apply
function trainable.make(world, robot, given)
  local out, apply = {}, {}
  -- Adds a value to those of the robot or of the world.
  local function put(side, name, value)
    out[side] = out[side] or {}
    out[side][name] = value
  end
  for _, name in ipairs(T.leaves.sorted_keys(given)) do
    local entry, what = given[name], "cq.Experiment: trainable." .. tostring(name)
    if type(name) == "string" and type(entry) == "table" and not T.is_tensor(entry) and entry.apply ~= nil then
      put("named", name, with_apply(entry, what))
      apply[name] = entry.apply
    elseif field.by_name[name] then
      put(of_world[name] and "world" or "robot", name, of_field(world, robot, name, entry, what))
    elseif not of_weights[name] then
      unknown(name, given)
    end
  end
  return out, apply
end

---Gives those weights of controller and observer that have no learning rate of their own the one that the user's
---`trainable` gives them. Errors: a policy without weights; weights that are no params.
---@param params table
---@param given table
function trainable.set_rates(params, given)
  for name in pairs(of_weights) do
    local def = given[name] ~= nil and weights_spec(given[name])
    if def and not params[name] then
      is.fail("cq.Experiment: trainable.%s: the experiment has no %s with weights", name, name)
    end
    for _, leaf in ipairs(def and T.leaves.trainable(params[name], "cq.Experiment") or {}) do
      local bounds = leaf.tensor.bounds
      if not bounds then
        is.fail("cq.Experiment: trainable.%s: %s must be a cq.param to have a rate", name, leaf.path)
      end
      bounds.rate = bounds.rate or def.rate
    end
  end
end

---May training change the distribution of mass: through densities, volumes, or a value that a function of the user's
---applies?
---@param params table
---@return boolean
function trainable.moves_mass(params)
  local robot = params.robot or {}
  return params.named ~= nil or robot.density ~= nil or robot.volume ~= nil
end

---A variant of a robot without the values by robot:with that this one has unchanged from another, as those that are not
---trained.
---@param robot cq.Robot
---@param before cq.Robot                 that it was made from
---@param among? table<string, any>       only values with these names; all unless given
---@return cq.Robot
function trainable.without(robot, before, among)
  local out = robot:with {}
  for name, value in pairs(before.values or {}) do
    if out.values[name] == value and (not among or among[name]) then out.values[name] = nil end
  end
  return out
end

---The robot with the values that functions of the user's apply, in the order of their names. Errors: a function that
---returns no variant of the robot that it was given.
---@param robot cq.Robot
---@param apply table<string, function>
---@param named table<string, cq.Tensor>?
---@return cq.Robot
function trainable.apply(robot, apply, named)
  for _, name in ipairs(T.leaves.sorted_keys(named or {})) do
    local out = apply[name](robot, named[name])
    if not text.is_instance(out, "cq.Robot") or not out:descends_from(robot) then
      is.fail("cq.Experiment: trainable.%s: apply must give a variant of the robot that it is given, as robot:with does, got %s", name,
        text.describe(out))
    end
    robot = out
  end
  return robot
end

return trainable
