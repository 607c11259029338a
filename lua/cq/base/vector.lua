-- vector: lengths of vectors of any size.
local vector = {}

local LEAST, MOST = 1e-290, 1e290      -- squares that are as precise as their numbers

---The sum of the squares of v / scale, and that scale: 1, but for numbers whose squares are too small or too large; 0
---for the zero vector.
---@param v number[]
---@param dim integer
---@return number square, number scale
function vector.square(v, dim)
  local square, largest = 0, 0
  for i = 1, dim do square, largest = square + v[i] * v[i], math.max(largest, math.abs(v[i])) end
  if square >= LEAST and square <= MOST then return square, 1 end
  if largest == 0 then return 0, 0 end
  square = 0
  for i = 1, dim do square = square + (v[i] / largest) * (v[i] / largest) end
  return square, largest
end

return vector
