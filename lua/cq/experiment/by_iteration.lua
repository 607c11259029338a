-- by_iteration: what an experiment changes from one iteration to the next: values of its rollouts, as gravity that is
-- switched on little by little; the limits of its constraints; its design, which becomes sharper.
--
--   by_iteration = {
--     gravity = function(i) return { 0, -math.min(9.8, 0.98 * math.floor(i / 20)) } end,
--     limits = function(i) return { material = math.max(0.0125, 0.25 - 1e-3 * i) } end,
--     design = function(i) return i > 500 and sharper or design end,
--     wall_velocity = function(i, losses) return slower_after(losses) end,      -- losses[1] to losses[i - 1]
--   }
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local by_iteration = {}

local names = { "adjoint_decay", "damping", "design", "friction", "gravity", "limits", "wall_velocity" }

---Checks what a user gave.
---@param given table<string, fun(iteration: integer, losses: number[]): any>
---@param run cq.Experiment
function by_iteration.check(given, run)
  for name, f in pairs(given) do
    local known = false
    for _, other in ipairs(names) do known = known or name == other end
    if not known then
      is.fail("cq.Experiment: by_iteration has no %s%s; allowed are %s", text.describe(name),
        type(name) == "string" and text.suggestion(name, names) or "", table.concat(names, ", "))
    end
    is.argument("cq.Experiment: by_iteration", name, is.callable(), f)
    if name == "design" and not run.design then
      is.fail("cq.Experiment: by_iteration.design needs the field design, there is none")
    end
    if run.params.world and run.params.world[name] then
      is.fail("cq.Experiment: %s is trained, and cannot be given by iteration too", name)
    end
  end
end

---What a function gives for an iteration, from the losses before it, of those that are known.
---@param run cq.Experiment
---@param f fun(iteration: integer, losses: number[]): any
---@param i integer
---@return any
function by_iteration.value(run, f, i)
  local before = run.losses
  if #before >= i then
    before = {}
    for k = 1, i - 1 do before[k] = run.losses[k] end
  end
  return f(i, before)
end

-- does a function ask for losses? Then nobody can tell what it will give.
local function asks_for_losses(f)
  if type(f) ~= "function" then return true end
  local info = debug.getinfo(f, "u")
  return info.nparams > 1 or info.isvararg
end

-- are two values the same numbers?
local function same(a, b)
  if T.is_tensor(a) and T.is_tensor(b) then return a:equal(b) end
  if type(a) ~= "table" or type(b) ~= "table" or text.class_of(a) or text.class_of(b) then return a == b end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local function set_limits(run, limits)
  if type(limits) ~= "table" then
    is.fail("by_iteration.limits must give a table by the names of constraints, got %s", text.describe(limits))
  end
  local known = {}
  for _, c in ipairs(run.constraints) do known[c.name] = c end
  for name, limit in pairs(limits) do
    if not known[name] then is.fail("by_iteration.limits: there is no constraint %s", text.describe(name)) end
    known[name].limit = is.argument("by_iteration.limits", name, is.number(), limit)
  end
end

local function set_design(run, design)
  if not text.is_instance(design, "cq.Topology") then
    is.fail("by_iteration.design must give a design, got %s", text.describe(design))
  end
  if design.world ~= run.world then is.fail("by_iteration.design gave a design for another world") end
  for name, own in pairs(run.first_design.params) do
    if design.params[name].count ~= own.count then
      is.fail("by_iteration.design must give variants of the experiment's design, from design:with; this one has %s of %s, and that one %d",
        text.count(design.params[name].count, "variable"), name, own.count)
    end
  end
  run.design = design
end

---Makes an experiment what it is at an iteration.
---@param run cq.Experiment
---@param i integer
---@return boolean changed      is it another problem than before, so that earlier losses say nothing of it?
function by_iteration.set(run, i)
  local changed = false
  for name, f in pairs(run.by_iteration) do
    local value = by_iteration.value(run, f, i)
    if value == nil then is.fail("by_iteration.%s gave nothing at iteration %d", name, i) end
    if not same(value, run.given[name]) then
      -- the losses are the same by whatever gradients
      if name ~= "adjoint_decay" then changed, run.changed_at = changed or run.given[name] ~= nil, i end
      run.given[name] = value
      if name == "limits" then set_limits(run, value) elseif name == "design" then set_design(run, value) end
    end
  end
  return changed
end

---Will anything be another at the last iteration than at this one? What depends on losses counts as still where it did
---not change at this one.
---@param run cq.Experiment
---@param i integer
---@param last integer
---@return boolean
function by_iteration.is_changing(run, i, last)
  for _, f in pairs(run.by_iteration) do
    if asks_for_losses(f) then
      if run.changed_at == i and i > 1 then return true end
    elseif not same(f(i), f(last)) then
      return true
    end
  end
  return false
end

---Before the first iteration an experiment is as in the first one.
---@param run cq.Experiment
function by_iteration.ready(run)
  if next(run.by_iteration) and not next(run.given) then by_iteration.set(run, 1) end
end

---What rollouts are given of it.
---@param run cq.Experiment
---@param fields table
function by_iteration.fill(run, fields)
  for name in pairs(run.by_iteration) do
    if name ~= "limits" and name ~= "design" then fields[name] = run.given[name] end
  end
end

return by_iteration
