-- signature: a run's problem and how it is optimized, in words, saved with it: resuming another problem is refused,
-- another way of optimizing is printed.
--
--   problem   what the numbers mean: losses of before say nothing of another one
--   manner    how it is descended, and computed: it may change on the way, by intention or not
local is = require "cq.base.schema"
local message = require "cq.base.message"
local text = require "cq.base.text"
local leaves = require "cq.tensor.leaves"

---@class cq.Signature
---@field problem table<string, string>
---@field manner table<string, string>

local signature = {}

-- Interpreted: once it had compiled a loop over bounds, the LuaJIT of Debian 12 (2.1.0-beta3 of 2022-03-20) passed over
-- some that were there, in one run of twenty. Nothing here is hot.
jit.off(true, true)

local fields = { problem = is.table(), manner = is.table() }

---A number, a list of numbers, or any other value, as text for people.
---@param value any
---@return string
function signature.word(value)
  if value == nil then return "none" end
  if type(value) == "number" then return ("%.9g"):format(value) end
  if type(value) ~= "table" or text.class_of(value) then return tostring(value) end
  local list = {}
  for k, entry in ipairs(value) do list[k] = signature.word(entry) end
  return "{" .. table.concat(list, ", ") .. "}"
end

---Particles that a user selects, as text: a group's or robot's name, the count of particle numbers, a list of these.
---@param which any
---@return string
function signature.particles(which)
  local is_object = text.is_instance(which, "cq.Group") or text.is_instance(which, "cq.Robot")
  if type(which) ~= "table" or is_object then return signature.word(is_object and which.name or which) end
  if type(which[1]) == "number" then return text.count(#which, "particle") end
  local list = {}
  for k, entry in ipairs(which) do list[k] = signature.particles(entry) end
  return "{" .. table.concat(list, ", ") .. "}"
end

---Adds which particles an observer of the library sees, and its clock, to a table, as texts by name.
---@param out table<string, string>
---@param observer cq.Observer
---@param name string              before the names of its fields
function signature.add_sight(out, observer, name)
  for _, field in ipairs { "groups", "group" } do
    out[name .. "." .. field] = signature.particles(observer[field])
  end
  for _, field in ipairs { "clock", "clock_amplitude" } do
    out[name .. "." .. field] = signature.word(observer[field])
  end
end

---The text of an entry that may be any when a run goes on.
signature.ANY = "any"

-- Entries of problems that earlier programs did not save. Where one is not saved, it may be any.
local later = { ["goal.of"] = true }
for _, name in ipairs { "observer", "env.observer" } do
  for _, field in ipairs { "groups", "group", "clock", "clock_amplitude" } do later[name .. "." .. field] = true end
end

-- what is chosen of an optimizer, by the names of its constructors; rate_made is the rate before it was changed
local chosen = {
  "kind", "algorithm", "form", "penalty", "penalty_growth", "sufficient_decrease", "rate_factor", "penalty_max",
  "window", "tolerance", "inner_iterations", "objective_tolerance", "parameter_tolerance", "history", "clip",
  "momentum", "beta1", "beta2", "epsilon", "relative_epsilon", "per", "begins_anew",
}

---Adds the settings of an optimizer to a table, as texts by name.
---@param out table<string, string>
---@param optimizer cq.Optimizer
---@param name? string            before the names of its fields
function signature.add_optimizer(out, optimizer, name)
  local prefix = name and name .. "." or ""
  for _, field in ipairs(chosen) do
    if optimizer[field] ~= nil then out[prefix .. field] = signature.word(optimizer[field]) end
  end
  out[prefix .. "rate"] = optimizer.rate_made and signature.word(optimizer.rate_made)
  out[prefix .. "schedule"] = optimizer.schedule and "a function" or nil
  for key, part in pairs(optimizer.parts or {}) do signature.add_optimizer(out, part, prefix .. tostring(key)) end
  if type(optimizer.inner) == "table" then signature.add_optimizer(out, optimizer.inner, prefix .. "inner")
  elseif optimizer.inner then out[prefix .. "inner"] = tostring(optimizer.inner) end
end

---Adds limits and tolerances of constraints to a table, as texts by name.
---@param out table<string, string>
---@param constraints cq.Constraint[]
---@param changing? table<string, boolean>   limits that change by iteration are no mark of a problem
function signature.add_constraints(out, constraints, changing)
  for _, c in ipairs(constraints) do
    out["constraint " .. c.name] = ("%s %s within %s"):format(c.equal and "equal" or "at most",
      changing and changing[c.name] and "an option" or signature.word(c.limit), signature.word(c.tolerance))
  end
end

local of_params = { "min", "max", "rate" }

---Adds bounds and learning rates of parameters to a table, as texts by name.
---@param out table<string, string>
---@param params any
function signature.add_params(out, params)
  for _, leaf in ipairs(leaves.trainable(params, "signature")) do
    local bounds = leaf.tensor.bounds
    for k = 1, bounds and #of_params or 0 do
      local field = of_params[k]
      if bounds[field] then out[("%s of %s"):format(field, leaf.path)] = signature.word(bounds[field]) end
    end
  end
end

-- The differences between two tables of texts by name, in alphabetic order: "rate was 0.1 and is 0.2, ..."; empty if
-- they are equal.
function signature.changes(before, now)
  local list = {}
  -- Notes a setting if it changed.
  local function compare(name)
    local was, is_now = before[name] or "none", now[name] or "none"
    if was ~= is_now then list[#list + 1] = ("%s was %s and is %s"):format(name, was, is_now) end
  end
  for name in pairs(before) do compare(name) end
  for name in pairs(now) do
    if before[name] == nil then compare(name) end
  end
  table.sort(list)
  return table.concat(list, ", ")
end

---Raises an error if the problem of a resumed run differs from the saved one; warns of differences in how it is
---optimized.
---@param before any            the saved cq.Signature; nil in files of early versions
---@param now cq.Signature
---@param what string           for errors
---@param folder? string        of the run, for the advice to begin a new one from it
function signature.check(before, now, what, folder)
  if before == nil then return end
  local odd = is.problem(fields, before)
  if odd then is.fail("%s: what was saved is damaged: signature: %s; start anew", what, odd) end
  local saved = {}
  for name, value in pairs(before.problem) do saved[name] = value end
  for name, value in pairs(now.problem) do
    if later[name] and saved[name] == nil or value == signature.ANY then saved[name] = value end
  end
  local problem = signature.changes(saved, now.problem)
  if problem ~= "" then
    is.fail("%s: what was saved is of another problem: %s; go on with the same one, or start anew%s", what, problem,
      folder and (" from its parameters, with --from %s in the place of --resume"):format(folder) or "")
  end
  local manner = signature.changes(before.manner, now.manner)
  if manner ~= "" then message.warn("%s: goes on in another manner: %s", what, manner) end
end

return signature
