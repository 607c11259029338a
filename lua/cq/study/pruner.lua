-- pruner: ends trials that fall behind, by what trial.report says of them. Values are compared at rungs: steps at which
-- a trial's value is kept for the others.
--
--   pruner = cq.Pruner.asha { step = 10, reduction = 3 }      rungs 10, 30, 90, ...; a third goes on at each
--   pruner = cq.Pruner.median { warmup = 20, trials = 5 }     at each step from 20 on: worse than half of the others
local is = require "cq.base.schema"

---From cq.Pruner.
---@class cq.Pruner
---@field kind "asha"|"median"
local Pruner = { __name = "cq.Pruner" }
Pruner.__index = Pruner

---@internal
---Is this step one at which values are compared?
---@param step number
---@return boolean
function Pruner:is_rung(step)
  if self.kind == "median" then return step >= self.warmup and step % self.every == 0 end
  local rung = self.step
  while rung < step do rung = rung * self.reduction end
  return rung == step
end

---@internal
---Must a trial with this value end here?
---@param value number       the less the better
---@param others number[]    what other trials had at this step, in any order
---@return boolean
function Pruner:ends(value, others)
  if value ~= value then return true end
  if self.kind == "median" then
    if #others < self.trials then return false end
    local sorted = { unpack(others) }
    table.sort(sorted)
    local half = #sorted / 2
    local median = #sorted % 2 == 1 and sorted[math.ceil(half)] or (sorted[half] + sorted[half + 1]) / 2
    return value > median
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
---What the store keeps of it, to tell whether it was changed.
function Pruner:description()
  local out = {}
  for name, value in pairs(self) do out[name] = value end
  return out
end

function Pruner:__tostring()
  if self.kind == "median" then return ("cq.Pruner.median { from step %d, %d trials }"):format(self.warmup,
    self.trials) end
  return ("cq.Pruner.asha { step %d, reduction %d }"):format(self.step, self.reduction)
end

---@class cq.PrunerModule
local pruner = { class = Pruner }

---@class cq.Pruner.asha.def
---@field step? integer         the first rung; the others are its multiples by powers of reduction
---@field reduction? integer    one of so many goes on at each rung

local asha = is.define("cq.Pruner.asha", {
  step = is.integer { min = 1, default = 1 }, reduction = is.integer { min = 2, default = 3 },
})

---Asynchronous successive halving (Li et al., A system for massively parallel hyperparameter tuning, MLSys 2020),
---without promotions: a trial that is among the best 1 / reduction at a rung goes on at once, another ends.
---@param def? cq.Pruner.asha.def
---@return cq.Pruner
function pruner.asha(def)
  local self = asha(def or {})
  self.kind = "asha"
  return setmetatable(self, Pruner)
end

---@class cq.Pruner.median.def
---@field warmup? integer    no trial ends before this step
---@field trials? integer    or before so many others have come to the step
---@field every? integer     steps between two comparisons

local median = is.define("cq.Pruner.median", {
  warmup = is.integer { min = 0, default = 0 }, trials = is.integer { min = 1, default = 5 },
    every = is.integer { min = 1, default = 1 },
})

---Ends a trial whose value is worse than the median of the others at the same step.
---@param def? cq.Pruner.median.def
---@return cq.Pruner
function pruner.median(def)
  local self = median(def or {})
  self.kind = "median"
  return setmetatable(self, Pruner)
end

return pruner
