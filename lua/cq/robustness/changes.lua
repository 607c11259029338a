-- changes: how the simulation of an experiment is made a little different, by names and sizes:
--
--   { stiffness = 0.05, friction = -0.1, place = 0.5, noise = 0.05, latency = 1, substeps = 2 }
local T = require "cq.tensor"
local controllers = require "cq.controller"
local field = require "cq.base.field"
local levels = require "cq.experiment.levels"
local option = require "cq.option"
local random = require "cq.random"
local text = require "cq.base.text"
local values = require "cq.robot.values"

local changes = {}

-- ---- the robot ------------------------------------------------------------------------------------------------------

-- every constant of its materials that is a stress, times a factor; nil: it has none
local function stiffer(robot, factor)
  local given
  for _, entry in ipairs(field.of_robot) do
    if entry.owner == "constant" and entry.unit == "stress" and rawget(robot, entry.name) then
      given = given or {}
      given[entry.name] = values.start(robot, entry.name) * factor
    end
  end
  return given and robot:with(given)
end

local function heavier(robot, factor)
  return robot:with { density = values.start(robot, "density") * factor }
end

local function moved(robot, distance)
  local offset = T.zeros { robot.dim }
  offset:set(distance, 1)
  return robot:with { position = values.start(robot, "position") + offset }
end

-- ---- signals --------------------------------------------------------------------------------------------------------

-- a controller whose signals reach the actuators changed: f(signals, memory) gives these and what it remembers
local Through = setmetatable({ __name = "cq.Controller", family = "changed",
  __tostring = controllers.class.__tostring }, { __index = controllers.class })
Through.__index = Through

function Through:check_rollout(roll)
  if self.inner.check_rollout then self.inner:check_rollout(roll) end
end

function Through:start() return { inner = self.inner.start and self.inner:start() or nil } end

function Through:act(observation, memory, time, step)
  local signals, after = self.inner:act(observation, memory.inner, time, step)
  local out, own = self.f(T.as_tensor(signals, "cq.robustness"), memory.own)
  return out, { inner = after, own = own }
end

local function through(given, f)
  return setmetatable({ inner = controllers.of(given, "cq.robustness"), f = f }, Through)
end

local function stronger(factor)
  return function(signals) return signals * factor end
end

local function noisy(deviation, seed)
  local generator = random { seed = seed }
  return function(signals) return signals + generator:normal(signals:shape(), { deviation = deviation }) end
end

-- the signals of the control step before; none at first
local function late(signals, before) return before or signals * 0, signals end

-- ---- all of them ----------------------------------------------------------------------------------------------------

-- gravity that changes is a function of time, or a tensor of control steps
local function times(value, factor)
  if text.is_callable(value) and not T.is_tensor(value) then
    return function(time) return T.as_tensor(value(time), "cq.robustness") * factor end
  end
  return T.as_tensor(value, "cq.robustness") * factor
end

-- gravity or friction that rollouts in a world have unless they are given another
local function own_value(world, name) return name == "gravity" and world.gravity_at or world.layout.base[name] end

-- changes what world:rollout is given
local function adjust(change, seed, fields, world)
  local robot, policy = fields.robot, fields.controller
  if change.stiffness then robot = stiffer(robot, 1 + change.stiffness) or robot end
  if change.density then robot = heavier(robot, 1 + change.density) end
  if change.place then robot = moved(robot, change.place * world.dx) end
  for _, name in ipairs { "friction", "gravity" } do
    if change[name] then
      fields[name] = times(fields[name] == nil and own_value(world, name) or fields[name], 1 + change[name])
    end
  end
  if change.strength then policy = through(policy, stronger(1 + change.strength)) end
  if change.noise then policy = through(policy, noisy(change.noise, seed)) end
  if change.latency then policy = through(policy, late) end
  fields.robot, fields.controller = robot, policy
end

-- the world that an experiment's rollouts are made in
local function world_of(run) return run.extracted and run.extracted.world or run.world end

-- an experiment on another grid, with the same parameters; and the body there, where it is one
local function on_grid(run, params, factor)
  local other = levels.of(run, { coarsen = factor })
  levels.transfer(run, params, other)
  return other, run.extracted and other.design:extract(other.params.design) or nil
end

---The loss of an experiment whose simulation is changed.
---@param run cq.Experiment
---@param params table
---@param change table<string, number>   by names of changes.list
---@param steps? integer                 control steps, those of the experiment unless given
---@param seed? integer                  of noise
---@return number
function changes.loss(run, params, change, steps, seed)
  local fields = { params = params, steps = steps, adjust = function(given, world)
    adjust(change, seed or 0, given, world)
  end }
  if change.grid then
    run, fields.body = on_grid(run, params, change.grid)
    fields.params = run.params
  end
  local world = world_of(run)
  if change.precision then
    world = world:with_precision(world.precision == "float64" and "float32" or "float64")
    fields.world = world
  end
  local function evaluate() return run:evaluate(fields).loss end
  if change.substeps then return world:with_substeps(change.substeps * world.substeps, evaluate) end
  return evaluate()
end

-- Does gravity or friction of an experiment, or of its first scene, differ from 0?
local function has(run, name)
  local scene = run.scenes and run:scene(1) or run
  local value
  for _, fields in ipairs { scene.given, scene.of_scene or {}, scene.params.world or {} } do
    if fields[name] ~= nil then value = fields[name] end
  end
  if value == nil then value = own_value(world_of(run), name) end
  if value == nil then return false end
  if text.is_callable(value) and not T.is_tensor(value) then return true end
  return T.as_tensor(value, "cq.robustness"):abs():max():item() > 0
end

local function has_policy(run)
  return not (run.controller or run.design) and "the robot has no controller" or nil
end

local five_and_ten = { -0.1, -0.05, 0.05, 0.1 }

---What is changed: `sizes` one by one, `draw` in all draws together, from the least to the largest; `missing` says why
---an experiment has nothing to change.
---@type { name: string, sizes: number[], says: function, draw: function?, missing: function? }[]
changes.list = {}

local function percent(size) return ("%+.0f %%"):format(100 * size) end

local function add(entry) changes.list[#changes.list + 1] = entry end

local function relative(name, missing)
  add { name = name, sizes = five_and_ten, says = percent, missing = missing,
    draw = function(u) return 0.2 * u - 0.1 end }
end

relative("stiffness")
relative("density")
relative("friction", function(run)
  return not has(run, "friction") and "no wall has friction" or nil
end)
relative("strength", has_policy)
relative("gravity", function(run) return not has(run, "gravity") and "there is no gravity" or nil end)
add { name = "substeps", sizes = { 2, 4 }, says = function(size) return "x" .. size end,
  draw = function(u) return ({ 1, 2, 4 })[1 + math.floor(3 * u)] end }
add { name = "grid", sizes = { 0.8 }, says = function(size) return ("cells x%g"):format(size) end,
  missing = function(run)
    return not run.problem and "the experiment is made of a table and not by a function of a level" or nil
  end }
add { name = "place", sizes = { 0.5 }, says = function(size) return ("%g cells"):format(size) end,
  draw = function(u) return u - 0.5 end }
add { name = "precision", sizes = { 1 },
  says = function() return "the other" end,
  missing = function() return option.program.precision and "--precision is given" or nil end }
add { name = "noise", sizes = { 0.05 }, says = function(size) return ("%g %% of a full signal"):format(100 * size) end,
  missing = has_policy, draw = function() return 0.05 end }
add { name = "latency", sizes = { 1 }, says = function() return "1 control step" end, missing = has_policy,
  draw = function(u) return u < 0.5 and 1 or nil end }

return changes
