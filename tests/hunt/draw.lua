-- draw: random numbers of a scene, the same for a seed on every machine.
local T = require "cq.tensor"

---@class hunt.Draw
local Draw = {}
Draw.__index = Draw

local MODULUS, FACTOR = 2 ^ 31 - 1, 48271     -- Park and Miller

function Draw:uniform(low, high)
  self.state = self.state * FACTOR % MODULUS
  return low + (high - low) * (self.state / MODULUS)
end

---A whole number from low to high.
function Draw:whole(low, high) return math.min(high, math.floor(self:uniform(low, high + 1))) end

function Draw:chance(p) return self:uniform(0, 1) < p end

function Draw:pick(list) return list[self:whole(1, #list)] end

function Draw:list(count, low, high)
  local out = {}
  for i = 1, count do out[i] = self:uniform(low, high) end
  return out
end

function Draw:tensor(shape, low, high)
  local t = T.zeros(shape)
  for k = 0, t.count - 1 do t:data()[k] = self:uniform(low, high) end
  return t
end

local function length(v)
  local square = 0
  for _, x in ipairs(v) do square = square + x ^ 2 end
  return math.sqrt(square)
end

---A unit vector; along an axis at times, where kinks are.
function Draw:direction(dim)
  local v
  if self:chance(0.2) then
    local axis, sign = self:whole(1, dim), self:pick { -1, 1 }
    v = {}
    for i = 1, dim do v[i] = i == axis and sign or 0 end
    return v
  end
  repeat v = self:list(dim, -1, 1) until length(v) < 1 and length(v) > 0.1
  local l = length(v)
  for i = 1, dim do v[i] = v[i] / l end
  return v
end

---@param seed integer
return function(seed)
  local self = setmetatable({ state = seed * 7919 % (MODULUS - 1) + 1 }, Draw)
  for _ = 1, 10 do self:uniform(0, 1) end
  return self
end
