-- vector: trainables as one array of doubles, as libraries want them, with their bounds.
local ffi = require "ffi"
local T = require "cq.tensor"

---@class cq.ParameterVector
---@field count integer
---@field lower ffi.cdata*      double {count}, -inf without a bound
---@field upper ffi.cdata*
local Vector = {}
Vector.__index = Vector

local vector = {}

local DOUBLE = ffi.sizeof "double"

---Trainable tensors in nested tables as one vector, with bounds for each number (infinite where there are none).
---Errors: no tensor.
---@param params any
---@return cq.ParameterVector
function vector.of(params)
  local self = setmetatable({ leaves = T.leaves.trainable(params, "optimizer:solve"), count = 0, params = params },
    Vector)
  for _, leaf in ipairs(self.leaves) do self.count = self.count + leaf.tensor.count end
  self.lower, self.upper = ffi.new("double[?]", self.count), ffi.new("double[?]", self.count)
  local at = 0
  for _, leaf in ipairs(self.leaves) do
    local bounds = leaf.tensor.bounds or {}
    for k = at, at + leaf.tensor.count - 1 do
      self.lower[k], self.upper[k] = bounds.min or -math.huge, bounds.max or math.huge
    end
    at = at + leaf.tensor.count
  end
  return self
end

---The present values, within bounds, as a new array.
---@return ffi.cdata*           double {count}
function Vector:get()
  local out, at = ffi.new("double[?]", self.count), 0
  for _, leaf in ipairs(self.leaves) do
    local data = leaf.tensor:data()
    for k = 0, leaf.tensor.count - 1 do
      out[at] = math.max(self.lower[at], math.min(self.upper[at], data[k]))
      at = at + 1
    end
  end
  return out
end

---The size of each number of x: its absolute value, or the root mean square of its tensor where that is more, and the
---width of its bounds at most. Where a tensor is 0 everywhere it is that width, or 1 without bounds.
---@param x ffi.cdata*          double {count}
---@return ffi.cdata*           double {count}, above 0; 0 where both bounds are the same
function Vector:sizes(x)
  local out, at = ffi.new("double[?]", self.count), 0
  for _, leaf in ipairs(self.leaves) do
    local count, sum = leaf.tensor.count, 0
    for k = at, at + count - 1 do sum = sum + x[k] * x[k] end
    local mean = math.sqrt(sum / math.max(count, 1))
    for k = at, at + count - 1 do
      local width = self.upper[k] - self.lower[k]
      out[k] = mean > 0 and math.min(math.max(math.abs(x[k]), mean), width) or width < math.huge and width or 1
    end
    at = at + count
  end
  return out
end

---Writes values into the parameters, in place.
---@param x ffi.cdata*          double {count}
function Vector:set(x)
  local at = 0
  for _, leaf in ipairs(self.leaves) do
    ffi.copy(leaf.tensor:data(), x + at, leaf.tensor.count * DOUBLE)
    at = at + leaf.tensor.count
  end
end

---Gradients, nested as the parameters, as one tensor; zeros for a parameter without one.
---@param grads any
---@return cq.Tensor            {count}
function Vector:flatten(grads)
  local found, out, at = T.leaves.pair(self.params, grads), T.zeros { self.count }, 0
  for _, leaf in ipairs(self.leaves) do
    local grad = found[leaf.tensor]
    if T.is_tensor(grad) then ffi.copy(out:data() + at, grad:data(), leaf.tensor.count * DOUBLE) end
    at = at + leaf.tensor.count
  end
  return out
end

---Are two arrays of the vector's count the same numbers?
---@param a ffi.cdata*
---@param b ffi.cdata*
---@return boolean
function Vector:same(a, b)
  for k = 0, self.count - 1 do
    if a[k] ~= b[k] then return false end
  end
  return true
end

return vector
