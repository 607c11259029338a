-- options: options of a plan's stage by iteration: values of the optimizer, of the design's map, of rollouts, and
-- limits of constraints, each a constant, a cq.Schedule, or a function of the iteration and the history.
local backward = require "cq.rollout.backward"
local is = require "cq.base.schema"
local field = require "cq.base.field"
local text = require "cq.base.text"
local T = require "cq.tensor"

local options = {}

-- of cq.Plan's options: the field of design:with, and the name there
local of_design = {
  sharpness = { "material", "sharpness" }, threshold = { "material", "threshold" },
  min_density = { "material", "min_density" }, stiffness_exponent = { "material", "stiffness_exponent" },
  mass_exponent = { "material", "mass_exponent" }, actuation_exponent = { "material", "actuation_exponent" },
  layout_sharpness = { "layout", "sharpness" }, filter_radius = { "filter", "radius" },
}
local of_optimizer = { rate = true, clip = true, penalty = true }
-- losses are the same by whatever gradients
local of_gradient = { gradient_decay = true, gradient_window = true }

---The decay time of the adjoint for a gait [time]: three times that in which the body would fall by half its size. For
---an objective that is no sum over time, or without gravity, infinite: exact gradients.
---@param run cq.Experiment
---@return number
function options.natural_decay(run)
  local square, world = 0, run.world
  for _, g in ipairs(world.gravity or {}) do square = square + g * g end
  if square == 0 or not (run.objective.running or run.objective.work) then return math.huge end
  local volume = world.robot.base.volume:sum():item()
  local length = world.dim == 2 and math.sqrt(volume) or volume ^ (1 / 3)
  return 3 * math.sqrt(length / math.sqrt(square))
end

local a_rate = is.number { above = 0 }
local kinds = { rate = a_rate, penalty = a_rate, passive_weight = is.number { min = 0 },
  clip = is.any_of { is.number { above = 0 }, is.one_of { "median", "none" } } }

-- A list of the values of an option that are known before the stage begins, to be checked early: a constant, or both
-- ends of a schedule; empty for a function.
local function known_values(option)
  if text.is_instance(option, "cq.Schedule") then return { option:at(1, 2), option:at(2, 2) } end
  return not text.is_callable(option) and { option } or {}
end

-- Why numbers are out of the bounds of the rollout's field `name`: the end of a sentence "must ..."; nil: they are
-- within.
local function problem_of(name, value, run)
  local entry, fine, tensor = field.by_name[name], pcall(T.as_tensor, value, name)
  if not fine then return ("be a number or a list of numbers, got %s"):format(text.describe(value)) end
  if not tensor:finite() then return "be finite" end
  if name == "gravity" and tensor.rank == 1 and tensor.count ~= run.world.dim then
    return ("have %d components, got %d"):format(run.world.dim, tensor.count)
  end
  return field.outside(entry, tensor:min():item(), tensor:max():item())
end

-- Raises an error for a value that option `name` cannot have. Options in `kinds` and those of the gradient have a range
-- of their own; a value of the design is tried on the design; any other option has the range of the rollout's field of
-- the same name. `limits` is not checked here. what: the beginning of the error's sentence.
local function check_value(name, value, run, what)
  if kinds[name] then
    is.argument(what, "options." .. name, kinds[name], value)
  elseif of_design[name] then
    local place = of_design[name]
    local fine, problem = pcall(run.own_design.with, run.own_design, { [place[1]] = { [place[2]] = value } })
    if not fine then is.fail("%s: options.%s: %s", what, name, (tostring(problem):gsub("^[^:]*:%d+: ", ""))) end
  elseif of_gradient[name] then
    if value ~= "auto" then
      is.argument(what, "options." .. name, is.number { above = 0, infinite = true }, value)
      if name == "gradient_window" then backward.window_steps(value, run.world, what .. ": options") end
    end
  elseif name ~= "limits" then
    local problem = problem_of(name, value, run)
    if problem then is.fail("%s: options.%s must %s", what, name, problem) end
  end
end

---Raises an error for an option of a stage that has no effect in its experiment, or whose known value is not allowed.
---@param stage cq.Plan.stage.def
---@param run cq.Experiment
---@param optimizer cq.Optimizer
function options.check(stage, run, optimizer)
  local what = ("run:optimize: stage %q: options."):format(stage.name)
  for name in pairs(stage.options) do
    if (of_design[name] or name == "passive_weight") and not run.design then
      is.fail("%s%s needs an experiment with a design", what, name)
    end
    if run.params.world and run.params.world[name] then
      is.fail("%s%s: it is trained, and cannot be given too", what, name)
    end
    local steps = name == "rate" or name == "clip"
    if steps and not (optimizer.rule or optimizer.inner and optimizer.inner.rule) then
      is.fail("%s%s: cq.Optimizer.%s has none of its own", what, name, optimizer.kind)
    elseif name == "penalty" and not optimizer.penalties then
      is.fail("%spenalty is of cq.Optimizer.augmented_lagrangian, this is cq.Optimizer.%s", what, optimizer.kind)
    end
    for _, value in ipairs(known_values(stage.options[name])) do
      check_value(name, value, run, ("run:optimize: stage %q"):format(stage.name))
    end
  end
  local known = {}
  for k, c in ipairs(run.constraints) do known[k] = c.name end
  for name in pairs(stage.options.limits or {}) do
    local found = false
    for _, other in ipairs(known) do found = found or other == name end
    if not found then
      is.fail("%slimits: there is no constraint %s%s", what, text.describe(name),
        type(name) == "string" and text.suggestion(name, known) or "")
    end
  end
end

-- Are two values equal: tensors number by number, tables entry by entry?
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

-- The value of an option at iteration i: the option itself, or what the schedule, or the user's function of iteration
-- and history, gives. self: the stage (cq.Stage), here and below.
local function value_of(self, name, option, i)
  local value = option
  if text.is_instance(option, "cq.Schedule") then
    value = option:at(i, self.stage.iterations)
  elseif text.is_callable(option) then
    value = option(i, self.history)
    if value == nil then
      is.fail("run:optimize: stage %q: options.%s gave nothing at iteration %d", self.stage.name, name, i)
    end
  end
  if name == "gradient_decay" and value == "auto" then value = options.natural_decay(self.run) end
  return value
end

-- ---- what an iteration has ------------------------------------------------------------------------------------------

-- Sets the optimizer's learning rate; of an augmented Lagrangian the inner rate too, slowed as much as before.
local function set_rate(optimizer, rate)
  if optimizer.set_rate then optimizer:set_rate(rate) else optimizer.rate = rate end
end

-- Sets the rate, the clip ("none" removes it) or all penalties of an optimizer. Errors: a value that it does not allow.
local function set_optimizer(optimizer, name, value)
  if name == "rate" then
    set_rate(optimizer, is.argument("run:optimize", "options.rate", is.number { above = 0 }, value))
  elseif name == "clip" then
    local inner = type(optimizer.inner) == "table" and optimizer.inner or optimizer
    value = is.argument("run:optimize", "options.clip", kinds.clip, value)
    inner.clip = value ~= "none" and value or nil
  else
    for key in pairs(optimizer.penalties) do optimizer.penalties[key] = value end
    optimizer.penalty = value
  end
end

---Notes the settings that a stage changes only while it runs: optimizer values and limits of constraints. Returns a
---function that restores them. Options of rollouts stay until the next stage, so that the best can be evaluated.
---@param run cq.Experiment
---@return fun() restore
function options.keep(run)
  local optimizer, limits = run.optimizer, {}
  local inner = type(optimizer.inner) == "table" and optimizer.inner or optimizer
  local rate, clip, penalty = optimizer.rate, inner.clip, optimizer.penalty
  for k, c in ipairs(run.constraints) do limits[k] = c.limit end
  return function()
    if rate and rate ~= optimizer.rate then set_rate(optimizer, rate) end
    inner.clip, optimizer.penalty = clip, penalty
    for k, c in ipairs(run.constraints) do c.limit = limits[k] end
  end
end

---Clears what options of earlier stages have set in an experiment when a stage begins: values of rollouts, the passive
---weight and the design, which is again as the user made it. Sets run.in_stage.
---@param run cq.Experiment
---@param stage cq.Plan.stage.def
function options.begin(run, stage)
  run.given, run.passive_weight, run.block_losses, run.design = {}, nil, {}, run.own_design
  run.in_stage = { name = stage.name, level = stage.level, body = stage.body }
end

---The options of a saved stage without those of a design, if the experiment has no design.
---@param given table<string, any>
---@param run cq.Experiment
---@return table<string, any>
function options.fitting(given, run)
  local out = {}
  for name, value in pairs(given) do
    if run.own_design or not of_design[name] and name ~= "passive_weight" then out[name] = value end
  end
  return out
end

-- Sets the limits of constraints for iteration i; says whether one changed. Errors: a limit that is no number.
local function set_limits(self, limits, i)
  local changed = false
  for _, c in ipairs(self.run.constraints) do
    local option = limits[c.name]
    local limit = option ~= nil and value_of(self, "limits." .. c.name, option, i)
    if limit then
      limit = is.argument("run:optimize", "options.limits." .. c.name, is.number(), limit)
      changed, c.limit = changed or limit ~= c.limit, limit
      self.values["limits." .. c.name] = limit
    end
  end
  return changed
end

---The design as a stage with a soft, binary or extracted body simulates it.
---@param design cq.Topology      as the user made it
---@param body "soft"|"binary"|"extracted"
---@return cq.Topology
function options.with_body(design, body)
  return body == "binary" and design:with { rounding = "all", remove_void = design.graph ~= nil } or design
end

---The design with those of the values by name that are options of a design, such as sharpness and filter radius; itself
---if there are none.
---@param design cq.Topology
---@param values table<string, any>
---@return cq.Topology
function options.designed(design, values)
  local changes = {}
  for name, place in pairs(of_design) do
    if values[name] ~= nil then
      changes[place[1]] = changes[place[1]] or {}
      changes[place[1]][place[2]] = values[name]
    end
  end
  return next(changes) and design:with(changes) or design
end

-- Sets run.design, and that of an extracted body, to the stage's design (self.design) with this iteration's options.
local function set_design(self)
  local run = self.run
  run.design = options.designed(self.design, self.values)
  if run.extracted then run.extracted.design = run.design end
end

-- Sets one option: of the optimizer, the design (noted only) or the rollout. Returns whether the problem changed, so
-- that losses before and after cannot be compared.
local function set_one(self, name, value)
  local run = self.run
  if of_optimizer[name] then
    set_optimizer(run.optimizer, name, value)
  elseif name == "passive_weight" then
    run.passive_weight = is.argument("run:optimize", "options.passive_weight", is.number { min = 0 }, value)
  elseif not of_design[name] then
    run.given[name], run.block_losses = value, {}
  end
  return not of_optimizer[name] and not of_gradient[name]
end

-- Sets all options but `limits` that change at iteration i, without the optimizer's if of_rollouts_alone. Returns
-- whether the problem differs from before.
local function set_all(self, i, of_rollouts_alone)
  local changed, design = false, not self.values
  self.values = self.values or {}
  for name, option in pairs(self.stage.options) do
    if name ~= "limits" and not (of_rollouts_alone and of_optimizer[name]) then
      local value = value_of(self, name, option, i)
      if not same(value, self.values[name]) then
        self.values[name] = value
        changed = set_one(self, name, value) or changed
        design = design or of_design[name] ~= nil
      end
    end
  end
  if design and self.design then set_design(self) end
  local shown = {}
  for name, value in pairs(self.values) do
    if not of_optimizer[name] and not name:find "^limits%." then shown[name] = value end
  end
  self.run.in_stage.options = shown
  return changed
end

---Sets the options of a stage's iteration i.
---@param self cq.Stage
---@param i integer
---@return boolean changed      is it another problem than before, so that earlier losses say nothing of it?
function options.set(self, i)
  local before = self.values ~= nil and next(self.values) ~= nil
  local changed = set_all(self, i)
  changed = self.stage.options.limits and set_limits(self, self.stage.options.limits, i) or changed
  changed = changed and before
  if changed then self.changed_at = i end
  return changed
end

---Sets the options that rollouts have in iteration i, without those of the optimizer: for pictures and evaluations.
---@param self cq.Stage
---@param i integer
function options.show(self, i) set_all(self, i, true) end

-- Does the user's function of an option take the history beside the iteration? Its values cannot be known in advance.
local function asks_for_history(f)
  if type(f) ~= "function" then return true end
  local info = debug.getinfo(f, "u")
  return info.nparams > 1 or info.isvararg
end

---Does the problem change between iteration i and the last one? A function of the history counts as constant if it
---did not change at i.
---@param self cq.Stage
---@param i integer
---@return boolean
function options.is_changing(self, i)
  local count = self.stage.iterations
  -- Does an option differ between iteration i and the stage's last one?
  local function changes(option)
    if text.is_instance(option, "cq.Schedule") then return not same(option:at(i, count), option:at(count, count)) end
    if not text.is_callable(option) then return false end
    if asks_for_history(option) then return self.changed_at == i and i > 1 end
    return not same(option(i), option(count))
  end
  for name, option in pairs(self.stage.options) do
    if name == "limits" then
      for _, limit in pairs(option) do
        if changes(limit) then return true end
      end
    elseif not of_optimizer[name] and not of_gradient[name] and changes(option) then
      return true
    end
  end
  return false
end

---Adds to a row of the history the value of every limit, and of every option that changes over the iterations.
---@param self cq.Stage
---@param row table<string, number>
function options.columns(self, row)
  for name, option in pairs(self.stage.options) do
    -- Adds a number, or each number of a list as key.1, key.2, ..., to the row of the history.
    local function add(key, value)
      if type(value) == "number" and value - value == 0 then row[key] = value end
      if type(value) == "table" and not text.class_of(value) then
        for k, x in ipairs(value) do row[("%s.%d"):format(key, k)] = x end
      end
    end
    if name == "limits" then
      for key in pairs(option) do add("limits." .. key, self.values["limits." .. key]) end
    elseif text.is_instance(option, "cq.Schedule") or text.is_callable(option) then
      add(name, self.values[name])
    end
  end
end

return options
