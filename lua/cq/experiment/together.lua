-- together: rollouts of experiments that share a world and its steps, as the scenes of one batch. What users wrote for
-- one scene, observers, controllers and costs, sees each scene alone; one of ours that all scenes share sees the batch.
local C = require("cq.base.engine").C
local backward = require "cq.rollout.backward"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"
local controllers = require "cq.controller"
local field = require "cq.base.field"
local objectives = require "cq.experiment.objective"
local observers = require "cq.observer"
local rollout_fields = require "cq.rollout.fields"
local void_removal = require "cq.topology.void_removal"

local together = {}

-- ---- observers and controllers --------------------------------------------------------------------------------------

-- Calls f(k, memory of scene k) for each of `count` scenes, which returns a row and the scene's new memory. Returns the
-- rows as one tensor {scenes, ...}, and the list of new memories, nil if no scene has one.
local function each_scene(count, memory, f)
  local rows, after = {}, {}
  for k = 1, count do
    local row, own = f(k, memory and memory[k])
    rows[k], after[k] = T.as_tensor(row), own
  end
  return T.stack(rows, 1), next(after) and after or nil
end

-- A list of the initial memories, one:start(...), of all scenes' observers or controllers; nil where none remembers
-- anything.
local function starts_of(list, ...)
  local out = {}
  for k, one in ipairs(list) do out[k] = one.start and one:start(...) or nil end
  return next(out) and out or nil
end

local Observers = {}
Observers.__index = Observers

-- The initial memories of all scenes' observers.
function Observers:start(world) return starts_of(self.list, world, 1) end

-- The observations of all scenes {scenes, ...}, each by its own observer, and a list of their memories.
function Observers:observe(state, memory)
  return each_scene(#self.list, memory, function(k, own) return self.list[k]:observe(state:scene(k), own) end)
end

local Controllers = setmetatable({ __name = "cq.Controller", family = "each",
  __tostring = controllers.class.__tostring }, { __index = controllers.class })
Controllers.__index = Controllers

-- Lets each scene's controller check the rollout, which it sees as one of a single scene; notes the number of signals.
function Controllers:check_rollout(roll)
  local one = setmetatable({ batch = 1, batched = false }, { __index = roll })
  local list = {}
  for k, controller in ipairs(self.list) do
    list[k] = controller.check_rollout and controller:check_rollout(one) or controller
  end
  return setmetatable({ list = list, blind = self.blind, width = roll.signal_count }, Controllers)
end

-- The initial memories of all scenes' controllers.
function Controllers:start() return starts_of(self.list) end

-- The signals of all scenes {scenes, signals}, each by its own controller, and a list of their memories.
function Controllers:act(observation, memory, time, step)
  return each_scene(#self.list, memory, function(k, own)
    local signals, after = self.list[k]:act(observation and observation[k], own, time, step)
    signals = T.as_tensor(signals, "the controller's signals")
    return signals.count == self.width and signals:reshape { self.width } or signals, after
  end)
end

-- Are all entries of a list equal?
local function are_same(list)
  for k = 2, #list do
    if list[k] ~= list[1] then return false end
  end
  return true
end

-- A list of one field of each rollout definition in a group. nil in the places of definitions that lack it.
local function column(group, name)
  local out = {}
  for k, def in ipairs(group) do out[k] = def.fields[name] end
  return out
end

-- One observer for the scenes of a group (a list of rollout definitions, here and below), from the observer of each.
-- nil: they have none.
local function observer_of(group)
  local list = column(group, "observer")
  if not list[1] then return nil end
  for k, one in ipairs(list) do list[k] = observers.of(one, "cq.Experiment") end
  local is_ours = text.is_instance(list[1], "cq.Observer")
  return is_ours and are_same(list) and list[1] or setmetatable({ list = list, observe = Observers.observe }, Observers)
end

-- One controller for the scenes of a group, from the controller of each. nil: they have none.
local function controller_of(group)
  local list = column(group, "controller")
  if not list[1] then return nil end
  local blind = true
  for k, one in ipairs(list) do
    list[k] = controllers.of(one, "cq.Experiment")
    blind = blind and list[k].blind == true and rawget(list[k], "act") == nil
  end
  local is_ours = list[1].family ~= "custom" and list[1].family ~= "changed"
  if is_ours and are_same(list) then return list[1] end
  return setmetatable({ list = list, blind = blind }, Controllers)
end

-- ---- costs ----------------------------------------------------------------------------------------------------------

-- One running cost for the scenes of a group, from the cost of each. nil: they have none.
local function running_of(group)
  if not group[1].fields.running then return nil end
  return function(state, u)
    return (each_scene(#group, nil, function(k)
      return objectives.number(group[k].fields.running(state:scene(k), u[k]), "objective.running")
    end))
  end
end

-- One record function for the scenes of a group. nil: they record nothing.
local function record_of(group)
  if not group[1].fields.record then return nil end
  return function(state, u)
    return (each_scene(#group, nil, function(k) return group[k].fields.record(state:scene(k), u[k]) end))
  end
end

-- One effort function for the scenes of a group. nil: they have none.
local function effort_of(group)
  if not group[1].fields.effort then return nil end
  return function(u)
    return (each_scene(#group, nil, function(k)
      return objectives.number(group[k].fields.effort(u:slice(k, k, 2):squeeze(2)), "objective.effort")
    end))
  end
end

-- ---- one batch ------------------------------------------------------------------------------------------------------

-- The field `name` of the world (gravity, ...) for a group of scenes: one value if they share it, else a tensor with
-- one for each scene, the world's own for those that give none; nil where no definition gives it.
local function world_value(group, name)
  local list, world, any = {}, group[1].world, false
  for k, def in ipairs(group) do
    list[k] = def.fields[name]
    any = any or list[k] ~= nil
  end
  if not any then return nil end
  local same = true
  for k = 2, #group do same = same and list[k] == list[1] end
  if same and list[1] ~= nil then return list[1] end
  local base = world.layout.base[name]
  for k = 1, #group do
    list[k] = T.as_tensor(list[k] == nil and base or list[k], "world:rollout: " .. name)
    if list[k].rank < base.rank then list[k] = list[k]:expand(base:shape()) end
  end
  return T.stack(list, 1)
end

-- One rollout definition with a batch of scenes, { world, fields, design, variables }, for a group of definitions that
-- `fits` allows in one batch.
local function merged(group)
  local fields, variants, world = {}, {}, group[1].world
  for name, value in pairs(group[1].fields) do fields[name] = value end
  for k, def in ipairs(group) do variants[k] = rollout_fields.bodies(world, def.fields.robot) end
  fields.batch, fields.robot = #group, rollout_fields.stack(world, variants, "a variant")
  for _, entry in ipairs(field.of_world) do fields[entry.name] = world_value(group, entry.name) end
  fields.observer, fields.controller = observer_of(group), controller_of(group)
  fields.running, fields.record, fields.effort = running_of(group), record_of(group), effort_of(group)
  return { world = world, fields = fields, design = group[1].design, variables = group[1].variables }
end

---Runs one rollout by its definition.
---@param def table            from run:rollout_def
---@return cq.Rollout
function together.one(def)
  if def.design then return void_removal.rollout(def.design, def.variables, def.fields, def.world) end
  return def.world:rollout(def.fields)
end

-- ---- what goes together ---------------------------------------------------------------------------------------------

-- Is this field of the world a constant of at most this rank, so that scenes may differ in it?
local function is_constant(value, rank)
  return value == nil or not (text.is_callable(value) and not T.is_tensor(value)) and T.as_tensor(value).rank <= rank
end

-- Are two values both given, or both missing?
local function alike(a, b) return (a == nil) == (b == nil) end

local alike_fields = { "observer", "controller", "running", "effort", "record" }
local own_fields = { robot = true, gradient = true }                 -- in which scenes of a batch may differ
for _, name in ipairs(alike_fields) do own_fields[name] = true end
for _, entry in ipairs(field.of_world) do own_fields[entry.name] = true end

-- Are all fields of two rollout definitions the same, but those in which scenes of a batch may differ?
local function equal_fields(fields, others)
  for name, value in pairs(tables.merged(fields, others)) do
    if not own_fields[name] and (fields[name] ~= value or others[name] ~= value) then return false end
  end
  return true
end

-- Can a rollout be a scene of a batch? Not with a callback on_step, from another rollout's state, with values of the
-- world that change with time, or with robots whose positions vary while the world has pins.
local function is_scene(def)
  local world, fields = def.world, def.fields
  if fields.on_step or fields.from then return false end
  for _, entry in ipairs(field.of_world) do
    local base = world.layout.base[entry.name]
    if not is_constant(fields[entry.name], base and base.rank or 0) then return false end
  end
  for _, robot in ipairs(rollout_fields.bodies(world, fields.robot)) do
    if world.layout.pin_count > 0 and robot.values and robot.values.position then return false end
  end
  return true
end

-- Has a world a value of its own that is a function of time: gravity, or the velocity of a wall? name: of the field.
local function changes_with_time(world, name)
  if name == "gravity" then return world.gravity_at ~= nil end
  if name ~= "wall_velocity" then return false end
  for _, wall in ipairs(world.walls) do
    if wall.velocity_at then return true end
  end
  return false
end

-- Can two rollout definitions be scenes of one batch?
local function fits(def, other)
  if def.world ~= other.world or def.design ~= other.design or def.variables ~= other.variables then return false end
  if not equal_fields(def.fields, other.fields) then return false end
  if not backward.are_same(def.fields.gradient, other.fields.gradient) then return false end
  for _, name in ipairs(alike_fields) do
    if not alike(def.fields[name], other.fields[name]) then return false end
  end
  for _, entry in ipairs(field.of_world) do
    local name = entry.name
    if changes_with_time(def.world, name) and not alike(def.fields[name], other.fields[name]) then return false end
  end
  return true
end

---Sorts rollout definitions into groups that can be simulated as one batch. Groups are in the order of their first
---members.
---@param defs table[]         from run:rollout_def
---@return integer[][] groups  positions in defs
function together.groups(defs)
  local groups = {}
  for k, def in ipairs(defs) do
    local found
    for _, group in ipairs(is_scene(def) and groups or {}) do
      if group.open and #group < C.CQ_BATCH_MAX and fits(def, defs[group[1]]) then
        found = group
        break
      end
    end
    if not found then
      found = { open = is_scene(def) }
      groups[#groups + 1] = found
    end
    found[#found + 1] = k
  end
  return groups
end

---Simulates the rollout definitions of one group as the scenes of a batch.
---@param group table[]        definitions
---@return cq.Rollout[] rolls  one for each
---@return cq.Rollout whole    to be released
function together.rollouts(group)
  if #group == 1 then
    local roll = together.one(group[1])
    return { roll }, roll
  end
  local whole, rolls = together.one(merged(group)), {}
  for k = 1, #group do rolls[k] = whole:scene(k) end
  return rolls, whole
end

return together
