-- cq: the library as scripts see it. Nouns are loaded when they are first named, so that an
-- empty script starts at once.
--
--   experiments   World, Implicit, Robot, Creature, Shape, Material, Boundary, Actuator, Observer, Controller,
--                 Optimizer, Experiment, Plan, Env, Learner, Schedule, Topology, Picture, Plot, Run, Study, Space,
--                 Pruner, Ranks
--   tensors       tensor, param, zeros, ones, full, empty, eye, arange, range, concat, stack, pad, where, random,
--                 sparse, ...
--   gradients     value_and_grad, values_and_grads, grad, check_gradient
--   estimates     uncertainty(residuals, params, { noise = }), robustness(run)
--   the script    option(name, default), log { ... }, save(path, table), load(path), csv(path)

---@class cq : cq.TensorModule
---@field World fun(fields: cq.World.def): cq.World
---@field Implicit fun(fields?: cq.Implicit.def): cq.Implicit
---@field Robot fun(fields: cq.Robot.def): cq.Robot
---@field Creature cq.CreatureModule
---@field Shape cq.ShapeModule
---@field Material cq.MaterialModule
---@field Boundary cq.BoundaryModule
---@field Actuator cq.ActuatorModule
---@field Observer table<string, fun(fields: table): cq.Observer>
---@field Controller cq.ControllerModule
---@field Optimizer cq.OptimizerModule
---@field Experiment fun(fields: cq.Experiment.def|fun(level: table): cq.Experiment.def): cq.Experiment
---@field Env fun(fields: cq.Env.def): cq.Env
---@field Learner cq.LearnerModule
---@field Plan cq.PlanModule
---@field Schedule cq.ScheduleModule
---@field Picture cq.PictureModule
---@field Plot fun(fields: cq.Plot.def): cq.Canvas
---@field Topology cq.TopologyModule
---@field Run cq.Run
---@field Study fun(fields: cq.Study.def): cq.Study
---@field Space cq.SpaceModule
---@field Pruner cq.PrunerModule
---@field Ranks cq.RanksModule
---@field random cq.RandomModule
---@field load fun(path: string): table|cq.Tensor|cq.Saved
---@field sparse cq.SparseModule
---@field csv cq.CsvModule
---@field uncertainty fun(residuals: (fun(p: any): cq.Tensor), params: any, opts?: cq.uncertainty.def): cq.Uncertainty
---@field robustness fun(run: cq.Experiment, opts?: cq.robustness.def): cq.Robustness
---@field option cq.OptionModule
---@field log fun(fields: table<string, any>)
local cq = {}

-- modules that are a noun each
local nouns = {
  World = "cq.world", Implicit = "cq.implicit",
  Robot = "cq.robot", Creature = "cq.creature", Shape = "cq.shape", Material = "cq.material",
  Boundary = "cq.boundary",
  Env = "cq.env", Learner = "cq.learner", Plan = "cq.plan", Schedule = "cq.schedule",
  Actuator = "cq.actuator", Observer = "cq.observer", Controller = "cq.controller", Optimizer = "cq.optimizer",
  Experiment = "cq.experiment", Picture = "cq.picture", Plot = "cq.plot", Run = "cq.run",
  Study = "cq.study", Space = "cq.study.space", Pruner = "cq.study.pruner", Ranks = "cq.ranks",
  random = "cq.random", option = "cq.option",
  load = "cq.load", csv = "cq.csv", uncertainty = "cq.uncertainty", robustness = "cq.robustness", sparse = "cq.sparse",
  Topology = "cq.topology",
}

-- functions of the tensor library that are named often
local tensor_functions = {
  "tensor", "as_tensor", "is_tensor", "zeros", "ones", "full", "empty", "eye", "arange", "range", "param", "concat",
  "stack",
  "pad", "where", "minimum", "maximum", "grad", "value_and_grad", "values_and_grads", "check_gradient", "save",
  "tape",
}
local is_tensor_function = {}
for _, name in ipairs(tensor_functions) do is_tensor_function[name] = true end

-- A sorted list of the names of the public functions of a module, such as neo_hookean of cq.Material.
local function members(module)
  local out = {}
  for name, value in pairs(module) do
    if name:match "^%l" and name ~= "class" and require("cq.base.text").is_callable(value) then out[#out + 1] = name end
  end
  table.sort(out)
  return out
end

-- Returns a module such that an unknown constructor of it, as cq.Material.neohookean, is an error that suggests the
-- nearest name.
local function family(name, module)
  local meta = getmetatable(module) or {}
  if meta.__index or module.__index or #members(module) == 0 then return module end
  meta.__index = function(self, key)
    local text, known = require "cq.base.text", members(self)
    require("cq.base.schema").fail("cq.%s has no %s%s; it has %s", name, text.describe(key), type(key) == "string"
      and text.suggestion(key, known) or "",
      table.concat(known, ", "))
  end
  return setmetatable(module, meta)
end

-- Gives worlds and rollouts their methods that film and report; the room experiment, which holds them, is loaded at the
-- first call.
local function connect_films()
  -- A function that calls the function `of` of cq.experiment.MODULE, and loads that module at its first call.
  local function late(module, of) return function(...) return require("cq.experiment." .. module)[of](...) end end
  local Rollout = require("cq.rollout").class
  require("cq.world").class._film = late("filmed", "world")
  Rollout._film, Rollout._report = late("filmed", "rollout"), late("reported", "rollout")
end

-- The value of cq.NAME; loads its module at the first use. nil: there is no such name.
local function find(name)
  if name == "World" or name == "load" then connect_films() end
  if nouns[name] then return family(name, require(nouns[name])) end
  if is_tensor_function[name] then return require("cq.tensor")[name] end
  if name == "log" then return require("cq.run").log end
end

---A sorted list of every name that cq has.
---@return string[]
local function names()
  local out = { "log" }
  for name in pairs(nouns) do out[#out + 1] = name end
  for _, name in ipairs(tensor_functions) do out[#out + 1] = name end
  table.sort(out)
  return out
end

return setmetatable(cq, {
  __name = "cq", names = names,
  -- cq.NAME, kept after the first use. Errors: no such name, with the nearest one.
  __index = function(self, name)
    local value = find(name)
    if value == nil then
      local text = require "cq.base.text"
      require("cq.base.schema").fail("cq has no %s%s", text.describe(name), type(name) == "string"
        and text.suggestion(name, names()) or "")
    end
    rawset(self, name, value)
    return value
  end,
})
