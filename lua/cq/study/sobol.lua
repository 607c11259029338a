-- sobol: Sobol's sequence with Owen's scrambling. The first 2^k points have exactly one in each of 2^k slices along
-- every coordinate, and few gaps in pairs of coordinates.
--
-- Sobol, USSR Comp. Math. Math. Phys. 7 (1967); direction numbers of Joe and Kuo, Constructing Sobol sequences with
-- better two-dimensional projections, SIAM J. Sci. Comput. 30 (2008), table new-joe-kuo-6; scrambling of Owen, Randomly
-- permuted (t,m,s)-nets and (t,s)-sequences (1995): each digit is flipped by a random function of all digits before it.
local bit = require "bit"
local ffi = require "ffi"

local sobol = {}

local BITS = 32

-- for dimensions from 2 on: the inner coefficients of a primitive polynomial as a number, then its first odd numbers m
local numbers = {
  { 0, 1 }, { 1, 1, 3 }, { 1, 1, 3, 1 }, { 2, 1, 1, 1 }, { 1, 1, 1, 3, 3 }, { 4, 1, 3, 5, 13 }, { 2, 1, 1, 5, 5, 17 },
  { 4, 1, 1, 5, 5, 5 }, { 7, 1, 1, 7, 11, 19 }, { 11, 1, 1, 5, 1, 1 }, { 13, 1, 1, 1, 3, 11 }, { 14, 1, 3, 5, 5, 31 },
  { 1, 1, 3, 3, 9, 7, 49 }, { 13, 1, 1, 1, 15, 21, 21 }, { 16, 1, 3, 1, 13, 27, 49 }, { 19, 1, 1, 1, 15, 7, 5 },
  { 22, 1, 3, 1, 15, 13, 25 }, { 25, 1, 1, 5, 5, 19, 61 }, { 1, 1, 3, 7, 11, 23, 15, 103 },
  { 4, 1, 3, 7, 13, 13, 15, 69 }, { 7, 1, 1, 3, 13, 7, 35, 63 }, { 8, 1, 3, 5, 9, 1, 25, 53 },
  { 14, 1, 3, 1, 13, 9, 35, 107 }, { 19, 1, 3, 1, 5, 27, 61, 31 }, { 21, 1, 1, 5, 11, 19, 41, 61 },
  { 28, 1, 3, 5, 3, 3, 13, 69 }, { 31, 1, 1, 7, 13, 1, 19, 1 }, { 32, 1, 3, 7, 5, 13, 19, 59 },
  { 37, 1, 1, 3, 9, 25, 29, 41 }, { 41, 1, 3, 5, 13, 23, 1, 55 }, { 42, 1, 3, 7, 3, 13, 59, 17 },
  { 50, 1, 3, 1, 3, 5, 53, 69 }, { 55, 1, 1, 5, 5, 23, 33, 13 }, { 56, 1, 1, 7, 7, 1, 61, 123 },
  { 59, 1, 1, 7, 9, 13, 61, 49 }, { 62, 1, 3, 3, 5, 3, 55, 33 }, { 14, 1, 3, 1, 15, 31, 13, 49, 245 },
  { 21, 1, 3, 5, 15, 31, 59, 63, 97 }, { 22, 1, 3, 1, 11, 11, 11, 77, 249 }, { 38, 1, 3, 1, 11, 27, 43, 71, 9 },
  { 47, 1, 1, 7, 15, 21, 11, 81, 45 }, { 49, 1, 3, 7, 3, 25, 31, 65, 79 }, { 50, 1, 3, 1, 1, 19, 11, 3, 205 },
  { 52, 1, 1, 5, 9, 19, 21, 29, 157 }, { 56, 1, 3, 7, 11, 1, 33, 89, 185 }, { 67, 1, 3, 3, 3, 15, 9, 79, 71 },
  { 70, 1, 3, 7, 11, 15, 39, 119, 27 }, { 84, 1, 1, 3, 1, 11, 31, 97, 225 }, { 97, 1, 1, 1, 3, 23, 43, 57, 177 },
  { 103, 1, 3, 7, 7, 17, 17, 37, 71 }, { 115, 1, 3, 1, 5, 27, 63, 123, 213 }, { 122, 1, 1, 3, 5, 11, 43, 53, 133 },
  { 8, 1, 3, 5, 5, 29, 17, 47, 173, 479 }, { 13, 1, 3, 3, 11, 3, 1, 109, 9, 69 },
  { 16, 1, 1, 1, 5, 17, 39, 23, 5, 343 }, { 22, 1, 3, 1, 5, 25, 15, 31, 103, 499 },
  { 25, 1, 1, 1, 11, 11, 17, 63, 105, 183 }, { 44, 1, 1, 5, 11, 9, 29, 97, 231, 363 },
  { 47, 1, 1, 5, 15, 19, 45, 41, 7, 383 }, { 52, 1, 3, 7, 7, 31, 19, 83, 137, 221 },
  { 55, 1, 1, 1, 3, 23, 15, 111, 223, 83 }, { 59, 1, 1, 5, 13, 31, 15, 55, 25, 161 },
  { 62, 1, 1, 3, 13, 25, 47, 39, 87, 257 },
}

---Dimensions that there are numbers for.
sobol.dimensions = #numbers + 1

-- A list of the direction numbers v_1 .. v_32 of a dimension, as 32-bit integers: v_i = m_i 2^(32 - i), and from the
-- degree s on v_i = a_1 v_(i-1) + ... + a_(s-1) v_(i-s+1) + v_(i-s) + v_(i-s) / 2^s, all sums without carry.
local function directions(dimension)
  local v = {}
  if dimension == 1 then
    for i = 1, BITS do v[i] = bit.lshift(1, BITS - i) end
    return v
  end
  local row = numbers[dimension - 1]
  local degree = #row - 1
  for i = 1, BITS do
    if i <= degree then
      v[i] = bit.lshift(row[i + 1], BITS - i)
    else
      v[i] = bit.bxor(v[i - degree], bit.rshift(v[i - degree], degree))
      for k = 1, degree - 1 do
        if bit.band(bit.rshift(row[1], degree - 1 - k), 1) == 1 then v[i] = bit.bxor(v[i], v[i - k]) end
      end
    end
  end
  return v
end

local known = {}

---The binary digits of a coordinate of the Sobol sequence before scrambling.
---@param index integer        from 0
---@param dimension integer    from 1
---@return integer             32 bits, the first digit highest
function sobol.digits(index, dimension)
  known[dimension] = known[dimension] or directions(dimension)
  local v, x, i = known[dimension], 0, 1
  while index > 0 do
    if index % 2 == 1 then x = bit.bxor(x, v[i]) end
    index, i = math.floor(index / 2), i + 1
  end
  return x
end

-- A hash, uint64_t, of a 64-bit key by the finalizer of splitmix64 (Steele, Lea, Flood 2014): every bit of the result
-- depends on every bit of the key.
local function mix(key)
  key = bit.bxor(key, bit.rshift(key, 30)) * 0xbf58476d1ce4e5b9ULL
  key = bit.bxor(key, bit.rshift(key, 27)) * 0x94d049bb133111ebULL
  return bit.bxor(key, bit.rshift(key, 31))
end

-- Owen's scrambling of the 32 binary digits of x: each digit is flipped depending on the digits before it and the seed.
-- Returns a whole number from 0 to 2^32 - 1.
local function scramble(x, seed)
  local out = 0
  for digit = 1, BITS do
    local before = digit == 1 and 0 or bit.rshift(x, BITS + 1 - digit)
    before = before < 0 and before + 2 ^ BITS or before
    local flip = mix(seed + ffi.cast("uint64_t", before) * 0x9e3779b97f4a7c15ULL + digit * 0x632be59bd9b4e019ULL)
    local own = bit.band(bit.rshift(x, BITS - digit), 1)
    out = 2 * out + (bit.band(flip, 1ULL) == 1ULL and 1 - own or own)
  end
  return out
end

---A coordinate of a point of the scrambled sequence.
---@param seed integer
---@param index integer        from 0
---@param dimension integer    from 1 to sobol.dimensions
---@return number              in [0, 1)
function sobol.coordinate(seed, index, dimension)
  local key = mix(ffi.cast("uint64_t", seed) + dimension * 0x9e3779b97f4a7c15ULL)
  return (scramble(sobol.digits(index, dimension), key) + 0.5) / 2 ^ BITS
end

return sobol
