-- constraint: a named number that must be at most, or equal to, another. What is said of it, and by how much it is
-- missed.
local is = require "cq.base.schema"
local text = require "cq.base.text"

---@class cq.Constraint
---@field name string
---@field limit number
---@field equal boolean           else at most the limit
---@field tolerance number        violations up to it are none
---@field scale number            what a violation is compared with: the size of the limit, 1 where that is 0

local constraint = {}

local TOLERANCE = 1e-4            -- of the scale, unless given: about what gradients in float32 can reach

constraint.fields = {
  name = is.string(),
  at_most = is.number { optional = true },
  equal = is.number { optional = true },
  tolerance = is.number { min = 0, optional = true },
}

-- columns that a history has anyway
constraint.reserved = { iteration = true, loss = true, seconds = true, gradient = true, lagrangian = true, loop = true }

-- columns of plans, and of the options of their stages
local of_plans = { stage = true, stage_iteration = true, start = true, substeps = true, halvings = true,
  skipped = true, another_problem = true, violation = true, task = true, passive_cost = true, rate = true, clip = true,
  penalty = true, adjoint = true, adjoint_growth = true, first_order_weight = true }

-- Raises an error if a name of a constraint cannot be a column of the history, or is one already. known: names of other
-- constraints, as keys.
local function check_name(what, name, known)
  if name:find "[,%c\"]" then is.fail("%s: a name has no commas, quotes and line ends, got %q", what, name) end
  if constraint.reserved[name] or of_plans[name] or name == "objective" then
    is.fail("%s: a constraint cannot be called %s, which the history has already", what, name)
  end
  if known[name] then is.fail("%s: two constraints are called %s", what, name) end
end

-- One cq.Constraint from a definition. Errors: its name; both at_most and equal, or neither.
local function one_of(def, what, known)
  check_name(what, def.name, known)
  if (def.at_most == nil) == (def.equal == nil) then
    is.fail("%s: %s needs either at_most or equal%s", what, def.name, def.equal and ", not both" or "")
  end
  local limit = def.at_most or def.equal
  local scale = limit ~= 0 and math.abs(limit) or 1
  return { name = def.name, limit = limit, equal = def.equal ~= nil, tolerance = def.tolerance or TOLERANCE * scale,
    scale = scale }
end

---Checks a list of definitions of constraints, and makes the constraints. Errors: those of one_of.
---@param given table[]
---@param spec cq.Schema        of one definition
---@param what string           for errors
---@return cq.Constraint[] constraints, table[] definitions
function constraint.list(given, spec, what)
  local out, defs, known = {}, {}, {}
  for k, entry in ipairs(given) do
    defs[k] = spec(entry)
    out[k] = one_of(defs[k], what, known)
    known[out[k].name] = true
  end
  return out, defs
end

---How far beyond its limit a number is, 0 within it.
---@param c cq.Constraint
---@param value number
---@return number
function constraint.violation(c, value)
  return c.equal and math.abs(value - c.limit) or math.max(0, value - c.limit)
end

---The violation of each constraint by named numbers, in the order of the list, and whether all are within their
---tolerances.
---@param list cq.Constraint[]
---@param values table<string, number>
---@return { feasible: boolean, worst: number, all: number, [integer]: number }   worst and sum of the violations beyond
---  tolerance, each by its scale
function constraint.judge(list, values)
  local out = { feasible = true, worst = 0, all = 0 }
  for k, c in ipairs(list) do
    local violation = constraint.violation(c, values[c.name])
    out[k] = violation
    if violation > c.tolerance then
      local share = violation / c.scale
      out.feasible, out.worst, out.all = false, math.max(out.worst, share), out.all + share
    end
  end
  return out
end

---A text such as "height: 0.52, at most 0.5: violated by 0.02".
---@param c cq.Constraint
---@param value number
---@return string
function constraint.text(c, value)
  local violation = constraint.violation(c, value)
  local kept = violation <= c.tolerance and "kept" or ("violated by %.6g"):format(violation)
  return ("%s: %.6g, %s %s: %s"):format(c.name, value, c.equal and "equal" or "at most", text.number(c.limit), kept)
end

return constraint
