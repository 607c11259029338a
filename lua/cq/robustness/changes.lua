-- changes: small changes of an experiment's simulation, by names and sizes:
--
--   { stiffness = 0.05, friction = -0.1, place = 0.5, noise = 0.05, latency = 1, substeps = 2 }
local T = require "cq.tensor"
local changed = require "cq.experiment.changed"
local controllers = require "cq.controller"
local effects = require "cq.world.effects"
local field = require "cq.base.field"
local follow = require "cq.experiment.follow"
local is = require "cq.base.schema"
local levels = require "cq.experiment.levels"
local option = require "cq.option"
local random = require "cq.random"
local rollout_fields = require "cq.rollout.fields"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local values = require "cq.robot.values"

local changes = {}

-- ---- robots ---------------------------------------------------------------------------------------------------------

-- A field of a robot's particles as a tensor {n, ...}, from robot:with with gradients, or the robot's own.
local function value_of(robot, name) return values.spread(robot, name) or values.base(robot, name) end

-- The robot with every stress among its materials' constants multiplied by a factor.
local function stiffer(robot, factor)
  local given = {}
  for _, entry in ipairs(field.of_robot) do
    if entry.owner == "constant" and entry.unit == "stress" and robot.base[entry.name] then
      given[entry.name] = value_of(robot, entry.name) * factor
    end
  end
  return next(given) and robot:with(given) or robot
end

-- A robot with all densities times a factor.
local function heavier(robot, factor) return robot:with { density = value_of(robot, "density") * factor } end

-- A robot moved by a distance along x [length].
local function moved(robot, distance)
  local offset = T.zeros { robot.dim }
  offset:set(distance, 1)
  return robot:with { position = value_of(robot, "position") + offset }
end

-- All robots of a rollout, changed: a list, or a single robot for a world of one; `given` as it is, if no change
-- concerns robots. given: the rollout's field robot.
local function change_robots(change, given, world)
  if not (change.stiffness or change.density or change.place) then return given end
  local list = rollout_fields.bodies(world, given)
  for k, robot in ipairs(list) do
    if change.stiffness then robot = stiffer(robot, 1 + change.stiffness) end
    if change.density then robot = heavier(robot, 1 + change.density) end
    if change.place then robot = moved(robot, change.place * world.dx) end
    list[k] = robot
  end
  return #list == 1 and list[1] or list
end

-- ---- signals --------------------------------------------------------------------------------------------------------

-- a controller whose signals reach the actuators changed: f(signals, memory, step) gives these and what it remembers
local Through = setmetatable({ __name = "cq.Controller", family = "changed",
  __tostring = controllers.class.__tostring }, { __index = controllers.class })
Through.__index = Through

-- Lets the inner controller check the rollout, if it has a check; returns the one that this rollout asks.
function Through:check_rollout(roll)
  local inner = self.inner.check_rollout and self.inner:check_rollout(roll) or self.inner
  return setmetatable(tables.merged(self, { inner = inner }), Through)
end

-- The initial memory { inner = that of the inner controller }.
function Through:start() return { inner = self.inner.start and self.inner:start() or nil } end

-- The signals of the inner controller passed through f, and the new memory { inner, own: of f }.
function Through:act(observation, memory, time, step)
  local signals, after = self.inner:act(observation, memory.inner, time, step)
  local out, own = self.f(T.as_tensor(signals, "cq.robustness"), memory.own, step)
  return out, { inner = after, own = own }
end

-- A controller whose signals pass through f(signals, memory, step), which returns new signals and its new memory.
-- given: the controller that is wrapped.
local function through(given, f)
  local inner = controllers.of(given, "cq.robustness")
  return setmetatable({ inner = inner, f = f, blind = inner.blind and rawget(inner, "act") == nil or nil }, Through)
end

-- A function that multiplies signals by a factor.
local function stronger(factor)
  return function(signals) return signals * factor end
end

local STEPS = 2 ^ 20       -- more than a rollout has, so that each step of each seed has numbers of its own
local SEEDS = 2 ^ 32       -- seeds of noise: with the step in it, one must stay a whole number below 2^53

-- A function that adds normal noise of this standard deviation to signals. It draws by seed and control step, so that
-- the reverse pass, which calls it again, gets the same numbers.
local function noisy(deviation, seed)
  return function(signals, _, step)
    return signals + random { seed = seed % SEEDS * STEPS + step }:normal(signals:shape(), { deviation = deviation })
  end
end

-- Delays signals by a control step: returns the signals of the step before (zeros at first), and the new ones to be
-- kept for the next.
local function late(signals, before) return before or signals * 0, signals end

-- A controller whose signals are stronger, noisy or late, as a change says; the given one if it says none of these.
local function change_signals(change, controller, seed)
  if change.strength then controller = through(controller, stronger(1 + change.strength)) end
  if change.noise then controller = through(controller, noisy(change.noise, seed)) end
  if change.latency == 1 then controller = through(controller, late) end
  return controller
end

-- ---- all of them ----------------------------------------------------------------------------------------------------

-- Gravity or friction times a factor: numbers become a tensor, a function of time stays one.
local function times(value, factor)
  if text.is_callable(value) and not T.is_tensor(value) then
    return function(time) return T.as_tensor(value(time), "cq.robustness") * factor end
  end
  return T.as_tensor(value, "cq.robustness") * factor
end

-- The world's own gravity (which may be a function of time) or friction, by name.
local function own_value(world, name) return name == "gravity" and world.gravity_at or world.layout.base[name] end

-- Applies a change to the fields of world:rollout, in place: robots, friction, gravity, signals.
local function adjust(change, seed, fields, world)
  fields.robot = change_robots(change, fields.robot, world)
  for _, name in ipairs { "friction", "gravity" } do
    if change[name] then
      fields[name] = times(fields[name] == nil and own_value(world, name) or fields[name], 1 + change[name])
    end
  end
  if change.silent then
    fields.controller, fields.observer = nil, nil
  elseif fields.controller then
    fields.controller = change_signals(change, fields.controller, seed)
  end
end

-- Moves an experiment to a grid of `factor` times the cell size. Returns the experiment and its parameters there, made
-- by its function of a level and in the state of its stage; without that function, or with a world among the fields,
-- sets fields.world to a world with its bodies sampled again. Errors: fields with a body or a robot; a world that would
-- be sampled on a coarser grid.
local function on_grid(run, params, factor, fields)
  for _, name in ipairs { "body", "robot" } do
    if fields[name] then
      is.fail("change.grid samples the bodies of the world again, and cannot do so with the %s that is given beside it: give one of them",
        name)
    end
  end
  if fields.world or not levels.is_function(run) then
    if factor > 1 then
      is.fail("change.grid must be at most 1 where a world is sampled again, got %s; cq.Experiment(function(level) ... end) makes its own coarser ones",
        text.number(factor))
    end
    fields.world = (fields.world or run.world):refined(factor)
    return run, params
  end
  local other = levels.finer(run, factor)
  follow(run, other)
  return other, levels.carried(run, params, other)
end

---The experiment, parameters and rollout fields of a changed simulation. fields.adjust, which the rollout calls, makes
---the change.
---@param run cq.Experiment
---@param params table
---@param change table<string, number>   by names of changes.list; silent: without signals
---@param seed? integer                  of noise
---@param fields? run.changes.def        what else it has otherwise; changed
---@return cq.Experiment run      that of the grid
---@return table params           of it
---@return run.rollout.def fields
function changes.of(run, params, change, seed, fields)
  fields = fields or {}
  local own = fields.adjust
  -- Changes the fields of the rollout: first by the user's own adjust, then by the change.
  function fields.adjust(given, world)
    if own then own(given, world) end
    adjust(change, seed or 0, given, world)
  end
  if change.grid and change.grid ~= 1 then run, params = on_grid(run, params, change.grid, fields) end
  local world = changed.world(run, fields)
  if change.substeps or change.precision == 1 then
    local other = world.precision == "float64" and "float32" or "float64"
    fields.world = world:variant { substeps = change.substeps, precision = change.precision == 1 and other or nil }
  end
  return run, params, fields
end

-- Does an experiment of one scene have gravity or friction other than 0?
local function scene_has(scene, name)
  local value
  for _, fields in ipairs { scene.given, scene.of_scene or {}, scene.params.world or {} } do
    if fields[name] ~= nil then value = fields[name] end
  end
  if value == nil then value = own_value(changed.world(scene, {}), name) end
  if value == nil then return false end
  if text.is_callable(value) and not T.is_tensor(value) then return true end
  return T.as_tensor(value, "cq.robustness"):abs():max():item() > 0
end

-- Does an experiment have gravity or friction other than 0, in one of its scenes at least?
local function has(run, name)
  if not run.scenes then return scene_has(run, name) end
  for k = 1, run.scenes.count do
    if scene_has(run:scene(k), name) then return true end
  end
  return false
end

-- A sentence why noise and latency do not apply; nil if the robot has a controller or a design.
local function without_policy(run)
  return not (run.controller or run.design) and "the robot has no controller" or nil
end

---Why a change of a variant has nothing to act on, as a sentence; nil: it has, or the variant's own `adjust` may make
---it. Friction or gravity of 0 is something, unlike for `missing`: an option of a stage may begin there.
---@param run cq.Experiment
---@param name string           of the change
---@param given run.changes.def   what else the variant has
---@return string?
function changes.no_effect(run, name, given)
  if given.adjust then return nil end
  if name == "strength" or name == "noise" or name == "latency" then return without_policy(run) end
  if name == "substeps" then
    local size, world = given.change.substeps, changed.world(run, given)
    if size == 1 or world:times_substeps(size) ~= world.substeps then return nil end
    return ("%s times %s are as many"):format(text.number(size), text.count(world.substeps, "substep"))
  end
  return name == "friction" and not effects.have_friction(changed.world(run, given).walls) and "no wall has friction"
    or nil
end

local FINER = 0.8          -- cells of the finer grid, as a share of the size of the run's

-- A sentence why the bodies cannot be sampled on a finer grid; nil if they can.
local function without_grid(run)
  if run.design and not levels.is_function(run) then return "the experiment has a design and is no function of a level" end
  local fine, problem = pcall(T.tape.pause, on_grid, run, run.params, FINER, {})
  return not fine and text.sentence(problem) or nil
end

local five_and_ten = { -0.1, -0.05, 0.05, 0.1 }

---What is changed: `sizes` one by one, `draw` in all draws together, from the least to the largest; `missing` says why
---an experiment has nothing to change.
--- `allowed`: sizes that a simulation can have.
---@type { name: string, sizes: number[], says: function, allowed: table, draw: function?, missing: function? }[]
changes.list = {}

-- A relative size as text, such as "+5 %".
local function percent(size) return ("%+.0f %%"):format(100 * size) end

-- Adds a kind of change to changes.list.
local function add(entry) changes.list[#changes.list + 1] = entry end

-- Adds a kind of change to the list: of a quantity by 5 and 10 %, less and more. missing(run): why it does not apply,
-- or nil; allowed: a checker of its sizes.
local function relative(name, missing, allowed)
  add { name = name, sizes = five_and_ten, says = percent, missing = missing, allowed = allowed or is.number(),
    draw = function(u) return 0.2 * u - 0.1 end }
end

local above_nothing = is.number { above = -1 }
relative("stiffness", nil, above_nothing)
relative("density", nil, above_nothing)
relative("friction", function(run)
  return not has(run, "friction") and "no wall has friction" or nil
end, is.number { min = -1 })
relative("strength", without_policy)
relative("gravity", function(run) return not has(run, "gravity") and "there is no gravity" or nil end)
add { name = "substeps", sizes = { 2, 4 }, allowed = is.number { above = 0, max = 1024 },
  says = function(size) return "x" .. size end,
  draw = function(u) return ({ 1, 2, 4 })[1 + math.floor(3 * u)] end }
add { name = "grid", sizes = { FINER }, allowed = is.number { min = 0.1 },
  says = function(size) return ("cells x%g"):format(size) end,
  missing = without_grid, draw = function(u) return u < 0.5 and FINER or nil end }
add { name = "place", sizes = { 0.5 }, allowed = is.number(),
  says = function(size) return ("%g cells"):format(size) end,
  draw = function(u) return u - 0.5 end }
add { name = "precision", sizes = { 1 }, allowed = is.integer { min = 0, max = 1 },
  says = function() return "the other" end,
  missing = function() return option.program.precision and "--precision is given" or nil end }
add { name = "noise", sizes = { 0.05 }, allowed = is.number { min = 0 },
  says = function(size) return ("%g %% of a full signal"):format(100 * size) end,
  missing = without_policy, draw = function() return 0.05 end }
add { name = "latency", sizes = { 1 }, allowed = is.integer { min = 0, max = 1 },
  says = function() return "1 control step" end, missing = without_policy,
  draw = function(u) return u < 0.5 and 1 or nil end }

---Random sizes by name for all kinds of change at once: precision never, grid and latency in half of the draws.
---@param generator cq.Random
---@param is_there fun(name: string): boolean     does this kind of change apply?
---@return table<string, number>
function changes.drawn(generator, is_there)
  local out = {}
  for _, entry in ipairs(changes.list) do
    local u = generator:uniform():item()
    if entry.draw and is_there(entry.name) then out[entry.name] = entry.draw(u) end
  end
  return out
end

return changes
