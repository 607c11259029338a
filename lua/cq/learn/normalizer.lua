-- normalizer: running mean and variance of rows of numbers (Chan, Golub and LeVeque 1979), by which observations and
-- rewards are scaled while they are learned from.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local shape_text = require("cq.tensor.class").shape_text

---@class cq.Normalizer
---@field mean cq.Tensor       {width}
---@field variance cq.Tensor   {width}
---@field count number         of rows
local Normalizer = {}
Normalizer.__index = Normalizer

local normalizer = {}

local EPSILON = 1e-8           -- added to the variance
local LIMIT = 10               -- of scaled numbers

---A normalizer of observations that has seen none: mean 0, variance 1.
---@param width integer           numbers of an observation
---@return cq.Normalizer
function normalizer.new(width)
  return setmetatable({ mean = T.zeros { width }, variance = T.ones { width }, count = 1e-4 }, Normalizer)
end

---Adds rows {rows, width} to those that mean and variance are of: all rows so far count alike. Mean and variance are
---new tensors afterwards.
---@param rows cq.Tensor
function Normalizer:update(rows)
  local n, total = rows:size(1), self.count + rows:size(1)
  local mean = rows:mean(1)
  local variance, delta = (rows - mean):square():mean(1), mean - self.mean
  self.variance = (self.variance * self.count + variance * n + delta:square() * (self.count * n / total)) / total
  self.mean, self.count = self.mean + delta * (n / total), total
end

---The standard deviation of each number, never 0.
---@return cq.Tensor         {width}
function Normalizer:deviation() return (self.variance + EPSILON):sqrt() end

---Rows with the mean taken off and a deviation of 1, within +-10.
---@param rows cq.Tensor     {..., width}
---@return cq.Tensor
function Normalizer:normalize(rows)
  return ((rows - self.mean) / self:deviation()):clamp(-LIMIT, LIMIT)
end

---Numbers divided by the deviation alone, within +-10: rewards keep their sign.
---@param numbers cq.Tensor
---@return cq.Tensor
function Normalizer:scale(numbers)
  return (numbers / self:deviation()):clamp(-LIMIT, LIMIT)
end

---All that is needed to go on later.
---@return { mean: cq.Tensor, variance: cq.Tensor, count: number }
function Normalizer:state() return { mean = self.mean, variance = self.variance, count = self.count } end

local fields = { mean = is.tensor(), variance = is.tensor(), count = is.number { above = 0 } }

---Takes over saved mean, variance and count, without copying them. Errors: no such state; another number of columns.
---@param state { mean: cq.Tensor, variance: cq.Tensor, count: number }
function Normalizer:restore(state)
  local problem = is.problem(fields, state)
  local wanted = shape_text(self.mean:shape())
  for _, name in ipairs { "mean", "variance" } do
    local got = not problem and shape_text(state[name]:shape())
    if got and got ~= wanted then problem = ("%s must be %s, got %s"):format(name, wanted, got) end
  end
  if problem then is.fail("learner:restore: the state is damaged: running means: %s", problem) end
  self.mean, self.variance, self.count = state.mean, state.variance, state.count
end

return normalizer
