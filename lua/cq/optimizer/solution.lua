-- solution: the report of optimizer:solve.
local constraint = require "cq.optimizer.constraint"
local text = require "cq.base.text"

---What optimizer:solve reports. Prints as a table.
---@class cq.Solution
---@field status "converged"|"iterations"|"stopped"|"infeasible"|"interrupted"   converged: the method met its own
---  criterion; iterations: all were made; stopped: the method can go no further; infeasible: no point that keeps all
---  constraints was found
---@field feasible boolean          are all constraints kept, up to their tolerances?
---@field objective number          at the point given
---@field values table<string, number>   all that f gave there
---@field constraints cq.Solution.constraint[]   in the order of the constraints, and by name
---@field iteration integer         evaluation that the point is of
---@field evaluations integer       of f, those before a resume included
---@field state table               to go on from: state = solution.state
---@field message string?           of the library that did the work
local Solution = { __name = "cq.Solution" }
Solution.__index = Solution

---What became of one constraint, in solution.constraints.
---@class cq.Solution.constraint
---@field name string
---@field value number
---@field limit number
---@field violation number          beyond the limit, 0 within it
---@field kept boolean              up to its tolerance
---@field multiplier number?        of the Lagrangian, where the method has one
---@field penalty number?           of an augmented Lagrangian

local solution = {}

---The result of a solve: its best point, each constraint's value, violation, multiplier and penalty there, and the
---state to go on from.
---@param solver cq.Solver        that has evaluated one point at least
---@param status string           why it ended
---@return cq.Solution
function solution.new(solver, status)
  local best, optimizer = solver.best, solver.optimizer
  local self = setmetatable({
    status = status, feasible = best.feasible, objective = best.values.objective, values = best.values,
    iteration = best.iteration,
    evaluations = solver.evaluations, state = solver:state(), constraints = {}, list = {},
    message = optimizer.message,
  }, Solution)
  for k, c in ipairs(solver.constraints) do
    local value = best.values[c.name]
    local violation = constraint.violation(c, value)
    local entry = {
      name = c.name, value = value, limit = c.limit, violation = violation, kept = violation <= c.tolerance,
      multiplier = optimizer.multipliers and optimizer.multipliers[c.name], penalty = optimizer.penalties
        and optimizer.penalties[c.name],
    }
    self.constraints[k], self.constraints[c.name] = entry, entry
    -- limits may change after
    self.list[k] = {}
    for field, of_constraint in pairs(c) do self.list[k][field] = of_constraint end
  end
  return self
end

---The constraints that are violated, each with its value and by how much, in one sentence.
---@return string       "" if there are none
function Solution:violations()
  local words = {}
  for k, entry in ipairs(self.constraints) do
    if not entry.kept then words[#words + 1] = constraint.text(self.list[k], entry.value) end
  end
  return table.concat(words, "; ")
end

-- The solution in several lines: how it ended, then a line for each constraint.
function Solution:__tostring()
  local lines = { ("%s after %s%s: objective %.6g at %d"):format(self.status, text.count(self.evaluations,
    "evaluation"),
    self.message and " (" .. self.message .. ")" or "", self.objective, self.iteration) }
  for k, c in ipairs(self.list) do lines[#lines + 1] = "  " .. constraint.text(c, self.constraints[k].value) end
  return table.concat(lines, "\n")
end

return solution
