-- plan: a training as a list of stages, which is data: printed, kept with a run, and gone on with.
--
--   local plan = cq.Plan {
--     optimizer = cq.Optimizer.adam { rate = 0.01 },
--     { name = "soft", iterations = 150, level = { coarsen = 2 } },
--     { name = "binary", iterations = 80, body = "binary",
--       options = { rate = cq.Schedule.linear { from = 0.01, to = 0.001 } } },
--     { name = "pulses", iterations = 200, body = "extracted", train = { "design.pulses" } },
--   }
--   print(plan)
--   run:optimize { plan = plan }
local is = require "cq.base.schema"
local method = require "cq.base.method"
local text = require "cq.base.text"
local starts = require "cq.plan.starts"
local tables = require "cq.base.tables"
local variants = require "cq.experiment.variants"
local words = require "cq.plan.words"

---A training as a list of stages, from cq.Plan.
---@class cq.Plan
---@field name string
---@field stages cq.Plan.stage.def[]     with the defaults of the plan
---@field starts cq.Plan.starts?         a tournament
local Plan = { __name = "cq.Plan" }
Plan.__index = Plan

---@class cq.PlanModule
---@overload fun(fields: cq.Plan.def): cq.Plan
local plan = { class = Plan }

-- ---- options of a stage ---------------------------------------------------------------------------------------------

-- what the iterations of a stage may have of their own: of the optimizer, of the design's map, of rollouts
plan.of_optimizer = { "rate", "clip", "penalty" }
plan.of_design = { "sharpness", "threshold", "layout_sharpness", "filter_radius", "min_density", "stiffness_exponent",
  "mass_exponent", "actuation_exponent" }
plan.of_rollout = { "gradient_decay", "gradient_window", "damping", "friction", "gravity", "wall_velocity" }

local option_names = { "limits", "passive_weight" }
for _, list in ipairs { plan.of_optimizer, plan.of_design, plan.of_rollout } do
  for _, name in ipairs(list) do option_names[#option_names + 1] = name end
end
table.sort(option_names)

-- Is this the name of an option of a stage?
local function is_known(name)
  for _, known in ipairs(option_names) do
    if name == known then return true end
  end
  return false
end

local a_value = is.any_of { is.number { infinite = true }, is.table(), is.instance "cq.Schedule", is.callable() }
local values = { clip = is.any_of { is.number { above = 0 }, is.one_of { "median", "none" }, is.instance "cq.Schedule",
  is.callable() }, gradient_decay = is.any_of { is.number { above = 0, infinite = true }, is.one_of { "auto" },
  is.instance "cq.Schedule", is.callable() } }

-- Returns the options of a stage unchanged. Errors: one that no stage has; a value that is neither allowed nor a
-- schedule.
local function check_options(given, what)
  for name, value in pairs(given) do
    if not is_known(name) then
      is.fail("%s: options has no %s%s; allowed are %s", what, text.describe(name),
        type(name) == "string" and text.suggestion(name, option_names) or "", table.concat(option_names, ", "))
    end
    is.argument(what, "options." .. name, values[name] or a_value, value)
    if name == "limits" then
      for key, limit in pairs(is.argument(what, "options.limits", is.table(), value)) do
        is.argument(what, "options.limits." .. tostring(key), a_value, limit)
      end
    end
  end
  return given
end

-- ---- a stage --------------------------------------------------------------------------------------------------------

local of_stage = {
  level = is.table { optional = true },
  train = is.list(is.string(), { min = 1, optional = true }),
  body = is.one_of { "soft", "binary", "extracted", optional = true },
  optimizer = is.instance { "cq.Optimizer", optional = true },
  minimize = is.one_of { "objective", "violation", optional = true },
  options = is.table { optional = true },
  variants = is.any { optional = true },
  reduce = is.any { optional = true },
  initial = is.one_of { "best", "last", optional = true },
  stop = is.any_of { is.table(), is.callable(), optional = true },
  recover = is.any_of { is.table(), is.one_of { false }, optional = true },
  on_end = is.callable { optional = true },
}
plan.of_stage = of_stage

---@class cq.Plan.stage.def
---@field name string                 of its own in the plan
---@field iterations integer          at most; --budget 0.1 makes a tenth of them
---@field level? table                what the experiment's function is given: { coarsen = 2 }; { coarsen = 1 }
---  unless given. Values of another level's stage are transferred, by nearest particle and time
---@field train? string[]             what is free, by paths: "controller", "robot.young", "design.pulses"; the rest
---  is fixed. All unless given; of an extracted body all but its particles and their signals, and of a design's other
---  bodies all but the controller that is added to its pulses
---@field body? "soft"|"binary"|"extracted"   of an experiment with a design. soft: as the variables say; binary:
---  rounded, with the gradient of the soft one, and void that is remote from all solid removed; extracted: its solid
--- particles alone
---@field optimizer? cq.Optimizer     the experiment's unless given
---@field minimize? "objective"|"violation"   violation: constraints alone, until they are kept
---@field options? cq.Plan.options.def    what the iterations have of their own
---@field variants? cq.Experiment.variants|false   as cq.Experiment has them, which are taken unless given; false: none
---@field reduce? "mean"|"worst"|cq.Experiment.reduce.def   of the losses of variants
---@field initial? "best"|"last"   values of the stage before that it begins with; the best unless given
---@field stop? cq.Plan.stop.def|fun(history: table[]): boolean   when it ends before its iterations are made; a row has
---  iteration, loss, numbers by their names, and another_problem where earlier losses are those of another problem
---@field recover? cq.Plan.recover.def|false   what is done where a simulation fails; false: that is an error
---@field on_end? fun(run: cq.Experiment)   called when the stage is made

---@class cq.Plan.options.def
---@field rate? any                   of the optimizer: a value, a cq.Schedule, or f(iteration, history), as all options
---@field clip? any                   largest norm of all gradients together, "median", or "none"
---@field penalty? any                of an augmented Lagrangian, for all constraints
---@field sharpness? any              of the step from void to solid
---@field threshold? any              of the filtered variable, where the step is
---@field layout_sharpness? any       of the choice of a signal
---@field filter_radius? any          [length]
---@field min_density? any            of void, a share of the solid's
---@field stiffness_exponent? any     of stiffness over the design's density
---@field mass_exponent? any          of mass
---@field actuation_exponent? any     of the actuation
---@field limits? table<string, any>  of constraints, by their names
---@field gradient_decay? any         gradient.decay of the experiment [time]; math.huge: exact ones; "auto": 3 sqrt(L / g)
---  where the objective is a sum over time, L the cube root (in 2D the square root) of the robot's volume; else exact
---@field gradient_window? any        gradient.window of the experiment [time]; math.huge: no window
---@field passive_weight? any         of a design: this times what the body gains without any signal is added to the
---  loss, so that falling over is not paid for; gains are over the solid block without signals. The loss of history.csv
---  has it, and the column passive_cost; run.best.loss is the objective alone. 0
---@field damping? any                [1/time]
---@field friction? any               one number, or {walls}
---@field gravity? any                {dim} [length/time^2]
---@field wall_velocity? any          {dim}, or {walls, dim}

---One of stalled and below, or both. Points that violate a constraint do not count; where a stage minimizes the
---violation, it takes the place of the loss.
---@class cq.Plan.stop.def
---@field stalled? integer            iterations in which the best loss did not fall by a share of `change`; counted anew
---  from where an option, or more substeps after a failure, made losses those of another problem
---@field change? number              share of the best loss
---@field below? number               a loss at which the stage ends

---@class cq.Plan.recover.def
---@field halvings? integer           of an update after which the simulation fails, at most
---@field substeps? integer           factor of the substeps of the world where halving does not help; they stay. 1:
---  never

local stop_spec = is.define("cq.Plan: stop", { stalled = is.integer { min = 1, optional = true },
  change = is.number { min = 0, default = 0.01 }, below = is.number { optional = true } })
local recover_spec = is.define("cq.Plan: recover", { halvings = is.integer { min = 0, max = 50, default = 10 },
  substeps = is.integer { min = 1, max = 10, default = 2 } })
local stage_spec = is.define("cq.Plan: stage",
  tables.merged(of_stage, { name = is.string(), iterations = is.integer { min = 0, max = 2 ^ 31 - 1 } }))

-- Returns a checked criterion by which a stage stops, with defaults. Errors: one that never stops it.
local function check_stop(given, what)
  local stop = stop_spec(given)
  if not (stop.stalled or stop.below) then
    is.fail("%s: stop needs stalled, iterations without progress%s, or below, a loss: without one nothing ends the stage",
      what, given.change and " (of which change is the measure)" or "")
  end
  return stop
end

-- Raises an error if a stage's name cannot be the name of a folder, or another stage of the plan has it.
local function check_name(self, stage)
  if stage.name:find "[^%w _.-]" or stage.name:find "^%." then
    is.fail("cq.Plan: the name of a stage has letters, digits, spaces and -_. alone, for its folder, got %q",
      stage.name)
  end
  if self.number[stage.name] then is.fail("cq.Plan: two stages are called %q", stage.name) end
end

-- A checked stage of the plan; fields, and single options, that it does not give are the plan's (`defaults`). Errors:
-- its name; options that no stage has; variants and reductions that no experiment has.
local function complete(self, given, defaults)
  local stage = stage_spec(given)
  check_name(self, stage)
  local what = ("cq.Plan: stage %q"):format(stage.name)
  if #self.stages == 0 and stage.initial == "last" then
    is.fail("%s: initial = \"last\" is that of the stage before, and this is the first", what)
  elseif #self.stages == 0 then
    stage.initial = "best"              -- what the plan says of it is of the others
  end
  for name in pairs(of_stage) do
    if name == "options" then
      local options = {}
      for _, list in ipairs { defaults.options or {}, stage.options or {} } do
        for key, value in pairs(list) do options[key] = value end
      end
      stage.options = check_options(options, what)
    elseif stage[name] == nil then
      stage[name] = defaults[name]
    end
  end
  stage.body, stage.minimize, stage.initial = stage.body or "soft", stage.minimize or "objective", stage.initial
    or "best"
  stage.level = stage.level or {}
  if type(stage.stop) == "table" and not text.is_callable(stage.stop) then
    stage.stop = check_stop(stage.stop, what)
  end
  if stage.recover == nil then stage.recover = {} end
  stage.recover = stage.recover and recover_spec(stage.recover)
  variants.check(stage.variants, stage.reduce, what)
  return stage
end

-- ---- a plan ---------------------------------------------------------------------------------------------------------

---@class cq.Plan.def
---@field name? string                 for people
---@field starts? cq.Plan.starts.def   a tournament of several starts
---@field level? table                 of all stages that have none of their own, as all that follows
---@field train? string[]              what is free, by paths
---@field body? "soft"|"binary"|"extracted"   of an experiment with a design
---@field optimizer? cq.Optimizer      the experiment's unless given
---@field minimize? "objective"|"violation"   violation: constraints alone, until they are kept
---@field options? cq.Plan.options.def     each that a stage has not
---@field variants? cq.Experiment.variants|false   as cq.Experiment has them, which are taken unless given; false: none
---@field reduce? "mean"|"worst"|cq.Experiment.reduce.def   of the losses of variants
---@field initial? "best"|"last"   values of the stage before that a stage begins with; the best unless given
---@field stop? cq.Plan.stop.def|fun(history: table[]): boolean   when a stage ends before its iterations are made
---@field recover? cq.Plan.recover.def|false   what is done where a simulation fails; false: that is an error
---@field on_end? fun(run: cq.Experiment)   called when a stage is made
---@field [integer] cq.Plan.stage.def

local spec = is.define("cq.Plan", tables.merged(of_stage, { name = is.string { optional = true },
  starts = is.table { optional = true } }), is.table())

---A plan: stages, one after the other, for run:optimize { plan = plan }. A field of the plan is the default of its
---stages. Printed, a plan is sentences, as in the methods section of a paper.
---Errors: no stage; two stages of one name; options, levels, variants and names that nothing has; a tournament that
---ends in a stage whose losses say nothing of the last one.
---@param fields cq.Plan.def
---@return cq.Plan
local function new(_, fields)
  local def = spec(fields)
  local self = setmetatable({ name = def.name or "training", stages = {}, number = {} }, Plan)
  if #def == 0 then
    is.fail("cq.Plan: has no stage; put one or several into the table, as { name = \"gait\", iterations = 100 }")
  end
  if def.options then check_options(def.options, "cq.Plan") end
  for k, given in ipairs(def) do
    self.stages[k] = complete(self, given, def)
    self.number[self.stages[k].name] = k
  end
  self.starts = def.starts and starts.of(self, def.starts)
  return self
end

---A copy of the plan with a share of all iterations, those of stop.stalled and starts too; where there are any, at
---least one stays. The plan itself for a budget of 1. For --budget. Errors: a stage that was changed since to a value
---that none has.
---@internal
---@param budget number
---@return cq.Plan
function Plan:scaled(budget)
  for _, stage in ipairs(self.stages) do stage_spec(stage) end
  if budget == 1 then return self end
  -- A number of iterations times the budget, at least one if there was any.
  local function part(count) return count > 0 and math.max(1, math.floor(count * budget + 0.5)) or 0 end
  local out = setmetatable({ name = self.name, stages = {}, number = self.number }, Plan)
  for k, stage in ipairs(self.stages) do
    local own = tables.merged(stage, { iterations = part(stage.iterations) })
    if type(own.stop) == "table" and own.stop.stalled then
      own.stop = tables.merged(own.stop, { stalled = part(own.stop.stalled) })
    end
    out.stages[k] = own
  end
  out.starts = self.starts and starts.scaled(self.starts, part)
  return out
end

---@internal
---The parts of a plan in the order of their execution: each stage is a part, but a stage within which starts of a
---multi-start plan are dropped has one more for each such place.
---@return { stage: integer, last: integer, count: integer, keep: integer? }[]   last: iteration of the stage; count:
---  starts; keep: how many of them go on after it, where others are dropped
function Plan:parts()
  local out, count, cuts, made = {}, 1, {}, 0
  if self.starts then count, cuts = self.starts.count, self.starts.cuts end
  -- The next cut, if it is in stage k.
  local function cut_in(k)
    local cut = cuts[made + 1]
    return cut and cut.at == k and cut or nil
  end
  for k, stage in ipairs(self.stages) do
    local last
    repeat
      local cut = cut_in(k)
      last = math.min(cut and cut.iteration or stage.iterations, stage.iterations)
      out[#out + 1] = { stage = k, last = last, count = count, keep = cut and cut.keep }
      if cut then count, made = cut.keep, made + 1 end
    until last == stage.iterations and not cut_in(k)
  end
  return out
end

---The sum of the iterations of all starts of the plan in all stages.
---@internal
---@return integer
function Plan:iterations()
  local sum, before = 0, {}
  for _, part in ipairs(self:parts()) do
    sum = sum + (part.last - (before[part.stage] or 0)) * part.count
    before[part.stage] = part.last
  end
  return sum
end

-- The plan in sentences, as in the methods section of a paper.
function Plan:__tostring() return words.sentences(self) end

method.guard(Plan, "plan")

---@class cq.Plan.topology.def
---@field name? string                 for people
---@field starts? integer|cq.Plan.starts.def   a number: half of them go on after the stage "coarse binary", a
---  quarter after "binary"
---@field coarsen? integer             of the first three stages; 1: they have the level of the others
---@field optimizer? cq.Optimizer      of all stages; Adam unless given, which knows no constraints. For these:
---  cq.Optimizer.augmented_lagrangian { inner = ... } around cq.Optimizer.adam { rate = 0.01, epsilon = 1e-4,
---  relative_epsilon = true }
---@field passive_weight? number       of what the body gains without any signal; 1. 0: a body may be paid for falling
---@field feedback? integer            iterations of one more stage, in which the experiment's controller is trained
---  beside the pulses; 0
---@field variants? cq.Experiment.variants   of the simulation in the last stage, feedback or pulses, as stages have them
---@field reduce? "mean"|"worst"|cq.Experiment.reduce.def   of their losses

---The default plan of topology optimization. A gait is found on a quarter (in space an eighth) of the particles, first
---of the whole block, then with a soft body, then with a rounded one, and carried over to all of them; the pulses of
---the body that comes out are optimized again. No number of it has a unit: those that have are in the problem, or
---follow from it (cq.Topology, gradient_decay = "auto").
---@type fun(fields?: cq.Plan.topology.def): cq.Plan
plan.topology = require "cq.plan.topology"

return setmetatable(plan, { __call = new })
