-- spread: numbers for tests, between low and high, that keep a distance from each other and from whole numbers.
local T = require "cq.tensor"

---@param shape integer[]
return function(shape, low, high)
  local t = T.empty(shape)
  return ((T.arange(1, t.count):reshape(shape) * 2.3999):sin() * 0.5 + 0.5) * (high - low) + low
end
