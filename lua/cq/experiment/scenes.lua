-- scenes: an experiment over several scenes, as trajectories, goals or first positions, with one set of parameters. Its
-- loss is the mean of theirs; ranks share them (cq.Ranks).
--
--   scenes = { count = 64, each = function(k)
--     return { observer = sees(goals[k]), objective = reaches(goals[k]) }
--   end },
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local controllers = require "cq.controller"
local field = require "cq.base.field"
local gradient = require "cq.tensor.gradient"
local objectives = require "cq.experiment.objective"
local passive = require "cq.experiment.passive"
local observers = require "cq.observer"
local ranks = require "cq.ranks"

local scenes = {}

local MOST_CHECKED = 100     -- scenes that are made to be checked

---@class cq.Experiment.scenes.def
---@field count integer         how many
---@field each fun(k: integer): cq.Experiment.scene.def   what scene k, from 1, has in the place of the experiment's own

local spec = is.define("cq.Experiment: scenes", {
  count = is.integer { min = 1, max = 2 ^ 31 - 1 }, each = is.callable(),
})

---@class cq.Experiment.scene.def
---@field robot? cq.Robot            a variant of the world's first, from robot:with
---@field observer? any              as of an experiment, where that one's has no weights
---@field controller? any            without weights, as the signals of a trajectory
---@field objective? cq.Experiment.objective.def|fun(state: cq.State, start: cq.State): cq.Tensor   in the whole place of the experiment's
---@field gravity? any               {dim}, instead of the world's
---@field damping? any               one number, instead of the world's
---@field friction? any              one number, or {walls}
---@field wall_velocity? any         {dim}, or {walls, dim}

local kinds = {
  robot = is.instance { "cq.Robot", optional = true }, observer = is.any { optional = true },
  controller = is.any { optional = true },
  objective = is.any_of { is.table(), is.callable(), optional = true },
}
for _, entry in ipairs(field.of_world) do kinds[entry.name] = is.any { optional = true } end
local scene_spec = is.define("cq.Experiment: scene", kinds)

---Checks the user's scenes.
---@param given table
---@return cq.Experiment.scenes.def
function scenes.check(given) return spec(given) end

-- Raises an error if the observer or controller (`name`) of a scene has trainable weights in its parameters `value`,
-- since the experiment has one set of weights for all scenes.
local function require_plain(value, name, what)
  for _, leaf in ipairs(T.leaves.list(value or {})) do
    if leaf.tensor.trainable then
      is.fail("%s: its %s has parameters (%s), which nobody would train; the experiment's own are shared by all scenes",
        what, name, leaf.path)
    end
  end
end

-- Gives scene `self` the observer and controller of its definition `def`. Errors: one with weights, or beside weights
-- of the experiment's (run).
local function take_policy(self, def, run, what)
  if def.observer then
    self.observer = observers.of(def.observer, what)
    require_plain(self.observer.parameters and self.observer:parameters(), "observer", what)
    if run.params.observer then is.fail("%s: the experiment's observer has weights, and is that of all scenes", what) end
  end
  if not def.controller then return end
  if run.params.controller and next(run.params.controller) then
    is.fail("%s: the experiment's controller has weights, and is that of all scenes", what)
  end
  self.controller = controllers.of(def.controller, what)
  if run.own_design then self.controller = controllers.sum { feedback = self.controller } end
  require_plain(self.controller:prepare(run.world, self.observer, self:robot_with(self.params)), "controller", what)
end

-- Gives scene `self` the values of the world in its definition `def`. Errors: one that is trained, or an option of the
-- stage.
local function take_values(self, def, run, what)
  self.of_scene = {}
  for _, entry in ipairs(field.of_world) do
    local name = entry.name
    if def[name] ~= nil and (run.given[name] ~= nil or run.params.world and run.params.world[name]) then
      is.fail("%s: %s is %s, and cannot be the scene's", what, name, run.given[name] ~= nil and "an option of the stage"
        or "trained")
    end
    self.of_scene[name] = def[name]
  end
end

---The experiment of scene k, created once: it inherits world, parameters and best from the whole experiment, and has
---the scene's own fields. Errors: the user's function gives no table, or a robot beside a design.
---@param run cq.Experiment
---@param k integer
---@return cq.Experiment
function scenes.of(run, k)
  if run.made_scenes[k] then return run.made_scenes[k] end
  local what = ("cq.Experiment: scene %d"):format(k)
  local given = run.scenes.each(k)
  if type(given) ~= "table" then
    is.fail("%s: each must give a table, as { robot = ..., objective = ... }, got %s", what, text.describe(given))
  end
  local def = scene_spec(given)
  local self = setmetatable({ scenes = false, scene_number = k }, {
    __index = run, __name = "cq.Experiment", __tostring = getmetatable(run).__tostring,
  })
  if def.robot then
    if run.design then is.fail("%s: the robot is that of the design", what) end
    self.robot = def.robot
  end
  if def.objective then self.objective = objectives.of(def.objective, run.world) end
  take_policy(self, def, run, what)
  take_values(self, def, run, what)
  run.made_scenes[k] = self
  return self
end

---Raises an error for options of a stage for which a scene, of those made and of the first MOST_CHECKED, has values of
---its own.
---@param run cq.Experiment
---@param options table<string, any>
---@param what string
function scenes.check_options(run, options, what)
  local given = {}
  for _, entry in ipairs(field.of_world) do
    if options[entry.name] ~= nil then given[#given + 1] = entry.name end
  end
  if not run.scenes or #given == 0 then return end
  for k = 1, math.min(run.scenes.count, MOST_CHECKED) do scenes.of(run, k) end
  for _, scene in pairs(run.made_scenes) do
    for _, name in ipairs(given) do
      if scene.of_scene[name] ~= nil then is.fail("%s: options.%s: scenes have their own", what, name) end
    end
  end
end

---The ranks that share the scenes: those that the script has asked for, or this process alone.
---@return cq.Ranks
function scenes.ranks() return ranks.current() or ranks.alone() end

---A function of the parameters that simulates all scenes and returns objective and constraints, means over the scenes,
---and the gradients that `plan` asks for: each the gradient of a weighted sum of those means. As gradient.passes.
---@param run cq.Experiment
---@param plan fun(values: table<string, number>, names: string[], reached: table<string, boolean>): table[]
---@param numbers fun(scene: cq.Experiment, params: table): table<string, cq.Tensor>, cq.Rollout
---@return fun(params: table): table<string, number>, any[]
function scenes.passes(run, plan, numbers)
  local names = { "objective" }
  for _, c in ipairs(run.constraints) do names[#names + 1] = c.name end
  if run.design and #run.constraints > 0 then names[#names + 1] = "task" end
  if passive.is_charged(run) then names[#names + 1] = "passive_cost" end
  local means = scenes.ranks():values_and_grads(run.scenes.count, names, function(params, k)
    return numbers(run:scene(k), params)
  end)
  return function(params)
    local values, by_name, reached = means(params)
    local grads = {}
    for k, weights in ipairs(plan(values, names, reached)) do
      grads[k] = gradient.weighted_sum(params, by_name, weights)
    end
    return values, grads
  end
end

---Calls f for each scene. Returns its numbers and their mean; ranks share the work.
---@param run cq.Experiment
---@param f fun(scene: cq.Experiment, k: integer): cq.Tensor|number, ...   rollouts behind the number are released
---@return number[] values, number mean
function scenes.map(run, f)
  return scenes.ranks():map(run.scenes.count, function(k) return f(run:scene(k), k) end)
end

---Runs run:check of the first scene and returns its report; creates the others up to MOST_CHECKED, which checks their
---own fields.
---@param run cq.Experiment
function scenes.each_checked(run)
  for k = 2, math.min(run.scenes.count, MOST_CHECKED) do run:scene(k) end
  return run:scene(1):check()
end

---The number of scenes and of the ranks that share them as text, "64 scenes on 4 ranks".
---@param run cq.Experiment
---@return string
function scenes.text(run)
  local all, count = scenes.ranks(), text.count(run.scenes.count, "scene")
  if all.size == 1 then return count end
  return ("%s on %s"):format(count, text.count(all.size, "rank"))
end

return scenes
