-- trainable: what an experiment optimises beside its controller: values of the robot and of the world, as params.
--
--   trainable = { young = { min = 7, max = 20, per = "particle" }, friction = { min = 0, max = 1 } }
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
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
---@field init? any         instead of the value that the robot or the world has

local spec = is.define("cq.Experiment: trainable", {
  min = is.number { optional = true }, max = is.number { optional = true },
  per = is.one_of { "robot", "group", "particle", "cable", default = "robot" },
  init = is.any { optional = true },
})

local names = {}
for _, list in ipairs { field.of_robot, field.of_world } do
  for _, entry in ipairs(list) do names[#names + 1] = entry.name end
end
table.sort(names)

-- the value {n, ...} that the particles start from: what with has set, or the robot's own
local function start_of(robot, name, what)
  local value = values.start(robot, name)
  if not value then is.fail("%s: needs init, there is no value to start from", what) end
  if value.rank > 1 + #values.width(robot, name) then
    is.fail("%s: needs init, the robot has a value for each scene of a batch", what)
  end
  return value
end

-- the value that all particles of a list share, of those that have one
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
        is.fail("%s: differs between particles (%s and %s); use per = \"particle\"%s, or give init", what, text.number(a),
          text.number(b), index and "" or " or \"group\"")
      end
    end
  end
  return value[first + 1]
end

local function for_robot(robot, name, def, bounds, what)
  local n, having = values.count(robot, name), values.having(robot, name)
  local of_cables = field.by_name[name].owner == "cable"
  if of_cables and n == 0 then is.fail("%s: the robot has no cables", what) end
  if of_cables ~= (def.per == "cable") and def.per ~= "robot" then
    is.fail("%s: is a value of each %s; say per = \"%s\", got \"%s\"", what, of_cables and "cable" or "particle", of_cables and "cable" or "particle", def.per)
  end
  if field.by_name[name].owner == "constant" then constants.require(robot, name, what) end
  if values.is_each(name) and def.per ~= "particle" then
    is.fail("%s: is a value of each particle; say per = \"particle\", got \"%s\"", what, def.per)
  end
  if def.per == "group" then
    local out = {}
    for _, group_name in ipairs(robot.groups) do
      local group = robot:group(group_name)
      if constants.has_some(robot, name, group) then
        local init = def.init or shared(robot, name, group.index, group.particle_count, ("%s.%s"):format(what, group_name))
        out[group_name] = T.param(init, bounds)
      end
    end
    return out
  elseif def.per == "robot" then
    return T.param(def.init or shared(robot, name, nil, n, what), bounds)
  end
  -- the particles without it have none to train
  if not def.init then
    local start = start_of(robot, name, what)
    return T.param(having and start:gather(having.index, 1) or start, bounds)
  end
  local init = T.as_tensor(def.init)
  if #values.width(robot, name) == 0 and init.rank == 0 then init = init:expand { having and having.count or n } end
  return T.param(init, bounds)
end

local function for_world(world, name, def, bounds, what)
  if def.per ~= "robot" then is.fail("%s: per is for values of the robot", what) end
  if def.init then return T.param(def.init, bounds) end
  local base = world.layout.base[name]
  if not base then is.fail("%s: the world has no walls", what) end
  -- one coefficient for all walls, unless they differ
  if name == "friction" then
    local first, same = base:get(1), true
    for k = 1, base.count do same = same and base:get(k) == first end
    if same then return T.param(first, bounds) end
  end
  return T.param(base, bounds)
end

---Params for what the user named.
---@param world cq.World
---@param robot cq.Robot
---@param given table<string, table|cq.Tensor>
---@return { robot: table?, world: table? } params
function trainable.make(world, robot, given)
  local out = {}
  for _, name in ipairs(T.leaves.sorted_keys(given)) do
    local entry, what = given[name], "cq.Experiment: trainable." .. tostring(name)
    if not field.by_name[name] then
      is.fail("cq.Experiment: trainable has no %s%s; allowed are %s", text.describe(name),
        type(name) == "string" and values.hint(name, given, names) or "", table.concat(names, ", "))
    end
    local side = of_world[name] and "world" or "robot"
    out[side] = out[side] or {}
    if T.is_tensor(entry) then
      if not entry.trainable then is.fail("%s: must be a cq.param, or a table such as { min = 1, max = 2 }, got a plain tensor", what) end
      out[side][name] = entry
    else
      if type(entry) ~= "table" then is.fail("%s: must be a table such as { min = 1, max = 2, per = \"particle\" }, got %s", what, text.describe(entry)) end
      local def = spec(entry)
      local bounds = { min = def.min, max = def.max }
      out[side][name] = side == "world" and for_world(world, name, def, bounds, what) or for_robot(robot, name, def, bounds, what)
    end
  end
  return out
end

return trainable
