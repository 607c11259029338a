-- dual: a + b e with e^2 = 0: arithmetic on it carries the derivative along one direction beside each value. For
-- truths that are computed once, not for speed.
local Dual = {}
Dual.__index = Dual

local function new(value, slope) return setmetatable({ value = value, slope = slope or 0 }, Dual) end
local function of(x) return type(x) == "number" and new(x, 0) or x end

function Dual.__add(a, b)
  a, b = of(a), of(b)
  return new(a.value + b.value, a.slope + b.slope)
end
function Dual.__sub(a, b)
  a, b = of(a), of(b)
  return new(a.value - b.value, a.slope - b.slope)
end
function Dual.__mul(a, b)
  a, b = of(a), of(b)
  return new(a.value * b.value, a.slope * b.value + a.value * b.slope)
end
function Dual.__div(a, b)
  a, b = of(a), of(b)
  local q = a.value / b.value
  return new(q, (a.slope - q * b.slope) / b.value)
end
function Dual.__unm(a) return new(-a.value, -a.slope) end

local dual = { new = new }

---@param x number|table
---@return number
function dual.value(x) return type(x) == "number" and x or x.value end

---@param x number|table
---@return number
function dual.slope(x) return type(x) == "number" and 0 or x.slope end

---@param x number|table
function dual.log(x)
  if type(x) == "number" then return math.log(x) end
  return new(math.log(x.value), x.slope / x.value)
end

return dual
