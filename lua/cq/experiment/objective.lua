-- objective: the objective of an experiment, a sum of parts: of the last state, of every state, of the signals.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local goals = require "cq.experiment.goal"

local objectives = {}

---@class cq.Experiment.objective.def
---@field terminal? fun(state: cq.State, start: cq.State): cq.Tensor|number   one number, of the last state and
---  of that at the start
---@field goal? cq.Experiment.goal.def      a place to be at in the end: |center(of) - at|^2, and more for coming to rest
---@field running? fun(state: cq.State, u: cq.Tensor): cq.Tensor|number    one number after each control step
---@field effort? fun(u: cq.Tensor): cq.Tensor|number    one number, of all signals {steps, signals}; quicker than running, which stops the
---  engine after every control step
---@field work? fun(work: cq.Tensor): cq.Tensor|number    one number, of what the actuators do in each control step {steps, signals} [energy],
---  see the field work of a rollout; it stops the engine too
---@field reduce? "sum"|"mean"|"max"|"min"|"product"|fun(running: cq.Tensor): cq.Tensor   of the running costs {steps}

local spec = is.define("cq.Experiment: objective", {
  terminal = is.callable { optional = true },
  goal = is.table { optional = true },
  running = is.callable { optional = true },
  effort = is.callable { optional = true },
  work = is.callable { optional = true },
  reduce = is.any_of { is.one_of { "sum", "mean", "max", "min", "product" }, is.callable(), default = "sum" },
})

---The user's objective as a table of parts. Errors: none of terminal, goal, running, effort and work; reduce without
---running; unknown fields.
---@param given cq.Experiment.objective.def|function
---@param world cq.World
---@return cq.Experiment.objective.def
function objectives.of(given, world)
  local def = spec(text.is_callable(given) and { terminal = given } or given)
  if not (def.terminal or def.goal or def.running or def.effort or def.work) then
    is.fail("cq.Experiment: objective needs terminal, goal, running, effort or work")
  end
  if not def.running and type(given) == "table" and given.reduce ~= nil then
    is.fail("cq.Experiment: objective: reduce is of running, and has no effect without it")
  end
  def.goal = def.goal and goals.check(def.goal, world)
  return def
end

-- of the running costs, by name
local reductions = {
  sum = function(x) return x:sum() end, mean = function(x) return x:mean() end, max = function(x) return x:max() end,
  min = function(x) return x:min() end, product = function(x) return x:prod() end,
}

---One number of the values of all control steps, by a name such as "sum" or "max", or by a function of the user's.
---@param how string|fun(values: cq.Tensor): cq.Tensor
---@param values cq.Tensor    {steps}
---@return cq.Tensor     rank 0
function objectives.reduce(how, values) return (reductions[how] or how)(values) end

---The result of a user's function as a tensor of rank 0; an error if it is no number.
---@param value any
---@param what string         the function, for an error
---@return cq.Tensor
function objectives.number(value, what)
  if type(value) ~= "number" and not (T.is_tensor(value) and value.count == 1) then
    is.fail("cq.Experiment: %s must give one number, got %s", what,
      T.is_tensor(value) and "a tensor {" .. table.concat(value:shape(), ", ") .. "}" or text.describe(value))
  end
  local out = T.as_tensor(value):reshape {}
  rawset(out, "was_number", type(value) == "number" or nil)         -- for an error
  return out
end

-- The state at the start, if the user's function takes it as its second argument. nil: it takes one argument.
local function start_of(terminal, roll)
  local info = type(terminal) == "function" and debug.getinfo(terminal, "u")
  if info and info.nparams < 2 and not info.isvararg then return nil end
  return roll:start()
end

---The parts that an objective may have, in the order in which they are added.
objectives.names = { "terminal", "goal", "running", "effort", "work" }

local parts = {
  terminal = function(def, roll) return def.terminal(roll.state, start_of(def.terminal, roll)) end,
  goal = function(def, roll) return goals.miss(def.goal, roll.state) end,
  running = function(def, roll) return objectives.reduce(def.reduce, roll.running), "objective.reduce" end,
  effort = function(_, roll) return roll.effort end,
  work = function(def, roll) return def.work(roll.work) end,
}

-- what is of control steps is 0 of none
local of_steps = { running = true, effort = true, work = true }

---The objective of a rollout, and the parts that it sums; of no control steps running, effort and work are 0.
---@param def cq.Experiment.objective.def
---@param roll cq.Rollout
---@return cq.Tensor loss     one number
---@return table<string, cq.Tensor> parts     by name
function objectives.loss(def, roll)
  local loss, found = nil, {}
  for _, name in ipairs(objectives.names) do
    if def[name] then
      local value, what = 0, nil
      if roll.steps > 0 or not of_steps[name] then value, what = parts[name](def, roll) end
      found[name] = objectives.number(value, what or "objective." .. name)
      loss = loss and loss + found[name] or found[name]
    end
  end
  return loss, found
end

return objectives
