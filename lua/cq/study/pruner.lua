-- pruner: ends trials that fall behind, by what trial.report says of them. Values are compared at rungs: steps at which
-- a trial's value is kept for the others.
--
--   pruner = cq.Pruner.asha { step = 10, reduction = 3 }      rungs 10, 30, 90, ...; a third goes on at each
--   pruner = cq.Pruner.median { warmup = 20, trials = 5 }     at each step from 20 on: worse than half of the others
local is = require "cq.base.schema"
local quantile = require "cq.base.quantile"
local tables = require "cq.base.tables"

---From cq.Pruner.
---@class cq.Pruner
---@field kind "asha"|"median"
local Pruner = { __name = "cq.Pruner" }
Pruner.__index = Pruner

---@internal
---Is this step a rung, at which trials are compared?
---@param step number
---@return boolean
function Pruner:is_rung(step)
  if self.kind == "median" then return step >= self.warmup and step % self.every == 0 end
  local rung = self.step
  while rung < step do rung = rung * self.reduction end
  return rung == step
end

---@internal
---Must a trial with this value at a rung end? One with NaN must.
---@param value number       the less the better
---@param others number[]    values of other trials at this step, in any order
---@return boolean
function Pruner:ends(value, others)
  if value ~= value then return true end
  if self.kind == "median" then
    if #others < self.trials then return false end
    return value > quantile.median(others)
  end
  -- asynchronous successive halving: among the best 1 / reduction of all that have come so far, this one included; as
  -- long as fewer than `reduction` have come, only the best goes on
  local better = 0
  for _, other in ipairs(others) do
    if other < value then better = better + 1 end
  end
  return better >= math.max(1, math.floor((#others + 1) / self.reduction))
end

---@internal
---A copy of the pruner's definition as stored, to detect changes.
function Pruner:description()
  return tables.merged(self)
end

-- The pruner in one line, with its options.
function Pruner:__tostring()
  if self.kind == "median" then return ("cq.Pruner.median { from step %d, %d trials }"):format(self.warmup,
    self.trials) end
  return ("cq.Pruner.asha { step %d, reduction %d }"):format(self.step, self.reduction)
end

---@class cq.PrunerModule
local pruner = { class = Pruner }

---@class cq.Pruner.asha.def
---@field step? integer         the first step at which values are compared; each further one is reduction times as large
---@field reduction? integer    the best 1 / reduction of the trials go on at each of these steps

local asha = is.define("cq.Pruner.asha", {
  step = is.integer { min = 1, default = 1 }, reduction = is.integer { min = 2, default = 3 },
})

---Asynchronous successive halving (Li et al., A system for massively parallel hyperparameter tuning, MLSys 2020),
---without promotions. A trial that reports one of the steps `step`, step * reduction, step * reduction^2, ... goes on
---where its value is among the smallest 1 / reduction of all that have come to this step so far; otherwise it ends. A
---trial reports as for cq.Pruner.median.
---@param def? cq.Pruner.asha.def
---@return cq.Pruner
function pruner.asha(def)
  local self = asha(def or {})
  self.kind = "asha"
  return setmetatable(self, Pruner)
end

---@class cq.Pruner.median.def
---@field warmup? integer    the first step at which values are compared
---@field trials? integer    other trials that must have reached the step; with fewer all go on
---@field every? integer     values are compared at multiples of so many steps

local median = is.define("cq.Pruner.median", {
  warmup = is.integer { min = 0, default = 0 }, trials = is.integer { min = 1, default = 5 },
    every = is.integer { min = 1, default = 1 },
})

---Ends a trial whose value is larger than the median of the values of the other trials at the same step. A step and its
---value are what the trial reports: trial.report(step, value) with the study's first objective, whose sign is changed
---if it is one to maximize; or `on_iteration = trial.report` of an experiment, where the step is the iteration and the
---value the loss, of which less is better for every study.
---
---  return cq.Study {
---    name = "rates", space = { rate = cq.Space.log(1e-4, 1e-1) }, trials = 20,
---    pruner = cq.Pruner.median { warmup = 20, trials = 5, every = 10 },
---    run = function(point, trial)
---      local x = 1
---      for step = 1, 100 do
---        x = x - point.rate * x
---        trial.report(step, x)                     -- does not return where the pruner ends the trial
---      end
---      return x
---    end,
---  }
---@param def? cq.Pruner.median.def
---@return cq.Pruner
function pruner.median(def)
  local self = median(def or {})
  self.kind = "median"
  return setmetatable(self, Pruner)
end

return pruner
