-- gradient: options by which an experiment's gradients depart from the exact ones, where long times make these
-- useless, and the growth of the state's adjoint towards the start.
local backward = require "cq.rollout.backward"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local options = require "cq.experiment.options"
local quantile = require "cq.base.quantile"
local ranks = require "cq.ranks"
local smoothing = require "cq.experiment.smoothing"
local text = require "cq.base.text"

local gradient = {}

-- Of growth over the time is warned where the median of so many iterations is beyond what the precision resolves: a
-- rounding of the first state then changes the objective by as much as itself. A single iteration says little:
-- trainings that learn well have some at 1e4 to 1e12.
local LATEST, RESOLVED = 10, { float32 = 2 ^ 23, float64 = 2 ^ 52 }

---@class cq.Experiment.gradient.def
---@field decay? number|"auto"    time in which the adjoint of a state falls by e on its way to the start, as
---  world:rollout has it; "auto": 3 sqrt(L / g) where the objective is a sum over time, L the edge of a cube (a square)
---  of the robot's volume [time]
---@field window? number          time after which the adjoint is cut, as world:rollout has it [time]
---@field clip? number            largest norm of the adjoint of a state, as world:rollout has it
---@field smooth? cq.Experiment.gradient.smooth.def   the mean gradient of copies of the parameters with noise
---@field estimate? "first"|"mixed"   mixed: what smooth gives, and an estimate from the losses of the copies alone, by
---  their variances; first unless given

local spec = is.define("cq.Experiment: gradient", {
  decay = is.any_of { is.number { above = 0, infinite = true }, is.one_of { "auto" }, optional = true },
  window = backward.kinds.window, clip = backward.kinds.clip, smooth = is.table { optional = true },
  estimate = is.one_of { "first", "mixed", optional = true },
})

---Checks the user's gradient options. Errors: unknown fields; the estimate "mixed" without smooth.
---@param given table?
---@param world cq.World
---@return cq.Experiment.gradient.def
function gradient.check(given, world)
  local def = spec(given or {})
  backward.window_steps(def.window, world, "cq.Experiment: gradient")
  def.smooth = def.smooth and smoothing.check(def.smooth, def.estimate)
  if def.estimate == "mixed" and not def.smooth then
    is.fail "cq.Experiment: gradient: estimate = \"mixed\" compares copies with noise; say how many with smooth = { samples = 16, sigma = 0.05 }"
  end
  return def
end

---Sets fields.gradient, the decay, window and clip of a rollout's adjoint: the experiment's, or the stage's where it
---has its own.
---@param run cq.Experiment
---@param fields table       of world:rollout; gradient_decay and gradient_window, the stage's own, are taken out
function gradient.fill(run, fields)
  local own = run.gradient
  local out = { decay = fields.gradient_decay or own.decay, window = fields.gradient_window or own.window,
    clip = own.clip }
  if out.decay == "auto" then out.decay = options.natural_decay(run) end
  fields.gradient_decay, fields.gradient_window, fields.gradient = nil, nil, next(out) and out or nil
end

-- ---- warnings -------------------------------------------------------------------------------------------------------

-- Does the objective or a constraint depend on states before the last one? With several scenes the answer is always
-- yes.
local function runs(run)
  if run.scenes or run.objective.running or run.objective.work then return true end
  for _, c in ipairs(run.constraints) do
    if c.running or c.of then return true end
  end
  return false
end

-- The value of "decay" or "window" in a stage: a time, or a function of the iteration; nil: none.
local function of_stage(run, stage, name)
  local option, own = stage.options["gradient_" .. name], run.gradient[name]
  if option == nil then option = own end
  if option == "auto" then option = options.natural_decay(run) end
  return option ~= math.huge and option or nil
end

---Warns if an adjoint that decays or is cut hides the objective, because that depends on the last state alone; and if
---gradients are altered for an optimizer that compares them with its losses.
---@param run cq.Experiment
---@param stage cq.Plan.stage.def
function gradient.warn(run, stage)
  local duration, optimizer, altered = run.steps * run.world.control_dt, run.optimizer, nil
  for _, name in ipairs { "decay", "window" } do
    local value = of_stage(run, stage, name)
    altered = altered or value and "gradient." .. name
    if type(value) == "number" and value < duration and not runs(run) then
      message.warn("run:optimize: gradient.%s is %s, and the objective is of the last state alone: what was done long before the end of %s is hardly learned; give the objective as a sum over time (running)",
        name, text.number(value), text.number(duration))
    end
  end
  for _, name in ipairs { "clip", "smooth" } do altered = altered or run.gradient[name] and "gradient." .. name end
  if altered and optimizer.chooses_points then
    message.warn("run:optimize: with %s gradients are not those of the objective, which %s holds against its values; cq.Optimizer.adam and the other first-order ones do not",
      altered, optimizer.kind)
  end
end

-- ---- growth ---------------------------------------------------------------------------------------------------------

---The rate at which adjoint norms grow towards the start: the least-squares slope of their logarithm. Large for
---chaotic motion; costs that add up over time do not make it large.
---@param norms number[]      after each control step
---@param dt number           between them
---@return number             [1/time]
function gradient.growth(norms, dt)
  local n, t, y, tt, ty = 0, 0, 0, 0, 0
  for k, norm in ipairs(norms) do
    if norm > 0 and norm < math.huge then
      local log = math.log(norm)
      n, t, y, tt, ty = n + 1, t + k, y + log, tt + k * k, ty + k * log
    end
  end
  local spread = n * tt - t * t
  return spread > 0 and -(n * ty - t * y) / spread / dt or 0
end

---@class cq.Growth           of the adjoints of one evaluation
---@field norms number[]      the largest of all rollouts, after each control step
---@field factors number[]    how much they grew over the time, of the latest iterations
local Growth = {}
Growth.__index = Growth

---An empty record of how gradients grow backward in time.
---@return cq.Growth
function gradient.new_growth() return setmetatable({ norms = {}, factors = {} }, Growth) end

-- Forgets the norms of earlier backward passes.
function Growth:clear() self.norms = {} end

---Notes for each control step the larger of the adjoint norm so far and that of this rollout.
---@param roll cq.Rollout     that was reversed
function Growth:add(roll)
  local found = backward.norms(roll)
  for k = 1, roll.steps do
    self.norms[k] = math.max(self.norms[k] or 0, roll.batched and found[k]:max():item() or found:get(k))
  end
end

---The largest adjoint norm, and the rate of growth backward in time [1/time], as columns of history.csv; empty where
---no norm is known. With scenes on several ranks, over all ranks.
---@param run cq.Experiment
---@return { adjoint: number?, adjoint_growth: number? }
function Growth:columns(run)
  local all = run.scenes and ranks.current()
  if all then self.norms = all:largest(self.norms, run.steps) end
  if #self.norms == 0 then return {} end
  local most = 0
  for _, norm in ipairs(self.norms) do most = math.max(most, norm) end
  if all and most == 0 then return {} end                     -- a device that does not know them
  return { adjoint = most, adjoint_growth = gradient.growth(self.norms, run.world.control_dt) }
end

---Warns once, where the adjoint grows more over the time than the precision resolves, in the median of the latest
---iterations.
---@param run cq.Experiment
---@param iteration integer
---@param columns table       of the history
function Growth:warn(run, iteration, columns)
  if self.is_told or not columns.adjoint_growth then return end
  local duration, precision = run.steps * run.world.control_dt, run.world.precision
  table.insert(self.factors, math.exp(columns.adjoint_growth * duration))
  if #self.factors > LATEST then table.remove(self.factors, 1) end
  local factor = quantile.median(self.factors)
  if #self.factors < LATEST or factor <= RESOLVED[precision] then return end
  self.is_told = true
  local shorter = ("%.2g"):format(duration / 8)
  message.warn("run:optimize: iteration %d: from the end to the start, over %s, the gradient of the state grows by a factor of %.0e, the median of %d iterations. That is more than %s resolves: rounding decides what becomes of early signals. Try gradient = { decay = %s } or { window = %s } with an objective that is a sum over time, gradient = { smooth = { samples = 16, sigma = 0.05 } }, a shorter duration, a softer material, or cq.Learner.shac",
    iteration, text.number(duration), factor, LATEST, precision, shorter, shorter)
end

return gradient
