-- constrained: constraints of an experiment.
--
--   constraints = {
--     { name = "rest", at_most = 1e-3, terminal = function(state) return state:mean_square_velocity(robot) end },
--     { name = "height", at_most = 0.5, running = function(state) return state:center(robot)[2] end, reduce = "max" },
--     { name = "mass", equal = 2, of = function(params) return params.robot.density:sum() * volume end },
--   }
local is = require "cq.base.schema"
local T = require "cq.tensor"
local constraint = require "cq.optimizer.constraint"
local objectives = require "cq.experiment.objective"
local solve = require "cq.optimizer.solve"

local constrained = {}

---@class cq.Experiment.constraint.def
---@field name string           its column in history.csv
---@field at_most? number       the largest value; or equal
---@field equal? number         the value; or at_most
---@field tolerance? number     violations up to it are none; 1e-4 of the limit unless given, or 1e-4 where that is 0
---@field terminal? fun(state: cq.State): cq.Tensor|number                    one number, of the last state; or running, or
---  of
---@field running? fun(state: cq.State, u: cq.Tensor): cq.Tensor|number    one number after each control step
---@field of? fun(params: table, roll: cq.Rollout, run: cq.Experiment): cq.Tensor|number   one number, of the parameters and
---  the whole rollout
---@field reduce? "sum"|"mean"|"max"|"min"|"product"|fun(running: cq.Tensor): cq.Tensor   of what running gave {steps}

-- A function that checks the fields of a constraint. reduce: the checker of the field that says how a running
-- constraint becomes one number.
local function spec_of(reduce)
  local fields = {
    terminal = is.callable { optional = true }, running = is.callable { optional = true },
    of = is.callable { optional = true },
    reduce = reduce,
  }
  for name, checker in pairs(constraint.fields) do fields[name] = checker end
  return is.define("cq.Experiment: constraint", fields)
end

local spec = spec_of(is.any_of { is.one_of { "sum", "mean", "max", "min", "product" }, is.callable(), default = "sum" })

-- Constraints as one new list; an entry of the given one may itself be a list, as designs return them.
local function flattened(given)
  local out = {}
  for _, entry in ipairs(given) do
    for _, one in ipairs(entry[1] and entry or { entry }) do out[#out + 1] = one end
  end
  return out
end

---The user's constraints as a checked list. Errors: a constraint with none, or several, of terminal, running and of;
---reduce without running; unknown fields.
---@param given table[]
---@return cq.Constraint[] constraints    each with its functions; `at`: the column of one with `running` in roll.record
function constrained.list(given)
  local all = flattened(given)
  local list, defs = constraint.list(all, spec, "cq.Experiment")
  local running = 0
  for k, def in ipairs(defs) do
    local count = (def.terminal and 1 or 0) + (def.running and 1 or 0) + (def.of and 1 or 0)
    if count ~= 1 then
      is.fail("cq.Experiment: constraint %s needs one of terminal, running and of, got %d of them", def.name, count)
    end
    if not def.running and all[k].reduce ~= nil then
      is.fail("cq.Experiment: constraint %s: reduce is of running, and has no effect without it", def.name)
    end
    if def.running then
      running = running + 1
      list[k].at = running
    end
    list[k].terminal, list[k].running, list[k].of, list[k].reduce = def.terminal, def.running, def.of, def.reduce
  end
  return list
end

-- The value that a function of constraint c (`part`: "terminal", "running", ...) returned, as a tensor of rank 0.
-- Errors, with the names of both: it is no number.
local function number(value, c, part) return objectives.number(value, ("constraint %s: %s"):format(c.name, part)) end

---The record function of a rollout for constraints with `running`: evaluates them after each control step and returns
---a row {running constraints}. nil: no constraint has `running`.
---@param list cq.Constraint[]
---@return (fun(state: cq.State, u: cq.Tensor): cq.Tensor)?
function constrained.recorder(list)
  local running = {}
  for _, c in ipairs(list) do
    if c.running then running[#running + 1] = c end
  end
  if #running == 0 then return nil end
  return function(state, u)
    local out = {}
    for k, c in ipairs(running) do
      -- what fails is this one's, and no record of the user's
      state.roll.phase = "constraint " .. c.name
      out[k] = number(c.running(state, u), c, "running")
    end
    return T.stack(out)
  end
end

-- The value of one constraint c, a tensor of rank 0, in a rollout or of the parameters; of no control steps running
-- gives 0.
local function value_of(c, run, params, roll)
  if c.terminal then return number(c.terminal(roll.state), c, "terminal") end
  if c.of then return number(c.of(params, roll, run), c, "of") end
  if roll.steps == 0 then return T.tensor(0) end
  return number(objectives.reduce(c.reduce, roll.record:slice(c.at, c.at, 2):squeeze(2)), c, "reduce")
end

---The values of all constraints, by name.
---@param run cq.Experiment
---@param params table
---@param roll cq.Rollout
---@return table<string, cq.Tensor>
function constrained.values(run, params, roll)
  local out = {}
  for _, c in ipairs(run.constraints) do out[c.name] = value_of(c, run, params, roll) end
  return out
end

---Raises an error if the experiment's optimizer cannot keep its constraints.
---@param run cq.Experiment
---@param stages string[]      "violation" and "objective", as they are minimized one after the other
function constrained.check(run, stages) solve.check(run.optimizer, run.constraints, stages, "run:optimize") end

return constrained
