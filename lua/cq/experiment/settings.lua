-- settings: options of an optimizer that a fork has changed, as "optimizer.rate", from the manifest of its run.
local is = require "cq.base.schema"
local message = require "cq.base.message"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

-- The fields of an optimizer that a fork may change: checkers by name.
local function fields_of(optimizer)
  local known = is.registry["cq.Optimizer." .. optimizer.kind]
  return known and known.fields or {}
end

-- The value of a setting from its text: "0.1", "median", or "x0.5", a factor on the present value. name: of the
-- setting, for errors. Errors: a factor of a value that is no number.
local function value_of(typed, present, name)
  local factor = typed:match "^x(.+)$"
  if not factor then return tonumber(typed) or typed end
  if type(present) ~= "number" or not tonumber(factor) then
    is.fail("cqlua resume: --set %s=%s: a factor is of a number, and it is %s", name, typed, text.describe(present))
  end
  return present * tonumber(factor)
end

-- A copy of the optimizer with one field changed. path: the field, as "rate" or "inner.rate" of an optimizer inside;
-- typed: its value as text; name: the whole setting, for errors. Errors: no such field; a value that it cannot have.
local function changed(optimizer, path, typed, name)
  local key, rest = path:match "^([%w_]+)%.?(.*)$"
  local out = setmetatable(tables.merged(optimizer), getmetatable(optimizer))
  if rest ~= "" and type(optimizer[key]) == "table" then
    out[key] = changed(optimizer[key], rest, typed, name)
    -- an augmented Lagrangian gives its inner optimizer its own rate
    if path == "inner.rate" then out.rate = out.inner.rate end
    return out
  end
  local checker = fields_of(optimizer)[key or path]
  if not checker or rest ~= "" then
    local known = tables.names(fields_of(optimizer))
    is.fail("cqlua resume: --set %s: cq.Optimizer.%s has no %s%s; it has %s", name, optimizer.kind, path,
      text.suggestion(path, known), table.concat(known, ", "))
  end
  local value = value_of(typed, optimizer[key], name)
  if not checker.check(value) then
    is.fail("cqlua resume: --set %s must be %s, got %s", name, checker.label, text.describe(value))
  end
  out[key] = value
  if key == "rate" then out.rate_made = value end
  return out
end

---Gives the stages that are to be made the optimizers that a fork asks for; those that are made keep theirs.
---@param experiment cq.Experiment     with base_optimizer
---@param plan cq.Plan
---@param parent table?               of the run's manifest
---@param at integer                   number of the first stage that is to be made, or made further
return function(experiment, plan, parent, at)
  if not parent or not next(parent.set or {}) then return end
  local names, told = {}, {}
  for name in pairs(parent.set) do names[#names + 1] = name end
  table.sort(names)
  local made = {}
  -- The optimizer with the settings of the command line; nil of nil. One copy serves all stages that share the
  -- optimizer.
  local function of(optimizer)
    if not optimizer then return nil end
    if not made[optimizer] then
      made[optimizer] = optimizer
      for _, name in ipairs(names) do
        made[optimizer] = changed(made[optimizer], name:match "^optimizer%.(.*)$" or name, parent.set[name], name)
      end
    end
    return made[optimizer]
  end
  for k, stage in ipairs(plan.stages) do
    local own = stage.optimizer or experiment.base_optimizer
    stage.optimizer = k < at and own or of(own)
  end
  for k, name in ipairs(names) do told[k] = ("%s = %s"):format(name, parent.set[name]) end
  message.note("as the fork of %s asks: %s", parent.folder, table.concat(told, ", "))
end
