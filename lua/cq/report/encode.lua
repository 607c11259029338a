-- encode: numbers of particles over time as text: few bits each, differences, deflate, base64. decode.js is the other
-- way.
--
-- A film is cut into pieces of KEY frames that are decoded alone. In a piece, v is the number itself in the first frame
-- and its change since the frame before in the others. A particle's v is predicted from its neighbours along -x, -y and
-- -z on the lattice, a, b and c, as if v were linear in space: of the ways to do so, this one adds up the fewest
-- roundings. abc is the neighbour of the neighbour of the neighbour.
--
--   b   p       in space   v = (a + b + c - abc) / 2
--   ab  a       in the plane, and where there is no abc: v = a + b - ab
--
-- What is left, r, is small, and is kept as 2 r or -2 r - 1 (zigzag) in half a byte: two to a byte, so that one code of
-- deflate stands for two. 15 says that the number stands behind all these, in two bytes: the low ones of all, then the
-- high ones. v and r are taken modulo 2^8 or 2^16, so that they fit into as many bits as the numbers.
local ffi = require "ffi"
local base64 = require "cq.base.base64"
local zlib = require "cq.base.zlib"
local rshift = require("bit").rshift

local encode = { KEY = 30, BITS = 14 }

-- `count` bytes compressed by zlib, as base64 text. noisy: the number of bytes at the start that compress badly, nil:
-- none.
local function packed(bytes, count, noisy) return base64.encode(zlib.compress(bytes, count, noisy)) end

---Compresses an array of bytes, one for each particle, into text.
---@param bytes ffi.cdata*     uint8_t[count]
---@param count integer
---@return string
function encode.bytes(bytes, count) return packed(bytes, count) end

---Compresses whole numbers of 32 bits into text, as differences from one to the next, which are small.
---@param numbers ffi.cdata*   int32_t[count]
---@param count integer
---@return string
function encode.integers(numbers, count)
  local out, last = ffi.new("uint8_t[?]", 4 * count), 0
  for k = 0, count - 1 do
    local r = numbers[k] - last
    local z = r >= 0 and 2 * r or -2 * r - 1
    for j = 0, 3 do
      out[j * count + k] = z % 256
      z = math.floor(z / 256)
    end
    last = numbers[k]
  end
  return packed(out, 4 * count)
end

---What predicts each particle: its v is (v[a] + v[b] + v[c] - v[d]) / 2, or v[a] + v[b] - v[d] where c is -1, or v[a]
---where b is -1 too.
---@class cq.Report.prediction
---@field count integer
---@field a ffi.cdata*       int32_t[count] places in the arrays; -1: none
---@field b ffi.cdata*
---@field c ffi.cdata*
---@field d ffi.cdata*

-- Sets out.a to out.d of particle p, the neighbours before it on the lattice that predict it (-1: none). before: of a
-- cq.Report.lattice.
local function fill(out, p, before)
  local dim = #before
  local x, y, z = before[1][p], before[2][p], dim == 3 and before[3][p] or -1
  -- The particle before q along an axis of the lattice, or -1.
  local function along(q, axis) return q >= 0 and before[axis][q] or -1 end
  local xyz = x >= 0 and y >= 0 and along(along(z, 2), 1) or -1
  if xyz >= 0 then
    out.a[p], out.b[p], out.c[p], out.d[p] = x, y, z, xyz
    return
  end
  out.c[p] = -1
  for k = 0, dim == 3 and 2 or 0 do
    local one, other = k < 2 and 1 or 2, k == 0 and 2 or 3
    local a, b = before[one][p], before[other][p]
    local both = a >= 0 and along(b, one) or -1
    if both >= 0 then
      out.a[p], out.b[p], out.d[p] = a, b, both
      return
    end
  end
  out.a[p], out.b[p], out.d[p] = x >= 0 and x or y >= 0 and y or z >= 0 and z or p - 1, -1, -1
end

---For each particle the neighbours of the lattice from which its position is predicted, so that only small differences
---are stored.
---@param lattice cq.Report.lattice
---@return cq.Report.prediction
function encode.prediction(lattice)
  local out = { count = lattice.count }
  for _, name in ipairs { "a", "b", "c", "d" } do out[name] = ffi.new("int32_t[?]", lattice.count) end
  for p = 0, lattice.count - 1 do fill(out, p, lattice.before) end
  return out
end

-- The integer value of particle p predicted from the values v of its lattice neighbours before it (parallelogram rule);
-- 0 where it has none. by: a cq.Report.prediction.
local function predict(v, p, by)
  local a, b, c = by.a[p], by.b[p], by.c[p]
  if c >= 0 then return math.floor((v[a] + v[b] + v[c] - v[by.d[p]] + 1) / 2) end
  if b >= 0 then return v[a] + v[b] - v[by.d[p]] end
  return a >= 0 and v[a] or 0
end

local LARGE = 15             -- half a byte that says: the number stands among the large ones

-- Compresses numbers of 16 bits, most of them small, into text: half a byte each; numbers of LARGE and more follow in
-- full at the end.
local function halves(numbers, count)
  local small, large = math.ceil(count / 2), 0
  for k = 0, count - 1 do large = large + (numbers[k] >= LARGE and 1 or 0) end
  local out, at = ffi.new("uint8_t[?]", small + 2 * large), small
  for k = 0, count - 1 do
    local z = numbers[k]
    local half = z < LARGE and z or LARGE
    out[rshift(k, 1)] = out[rshift(k, 1)] + (k % 2 == 0 and half or 16 * half)
    if z >= LARGE then out[at], out[at + large], at = z % 256, rshift(z, 8), at + 1 end
  end
  return packed(out, small + 2 * large, small)
end

---Compresses a film into a list of texts, each of which holds KEY frames and can be decoded alone. series: how many
---numbers a particle has in a frame, as 3 for x, y, z.
---@param frames integer
---@param series integer
---@param by cq.Report.prediction
---@param number fun(frame: integer, series: integer, out: ffi.cdata*)   fills int32_t[count]; frame and series from 0
---@param bits 8|16             of a number
---@return string[]
function encode.film(frames, series, by, number, bits)
  local n, out = by.count, {}
  local half = 2 ^ (bits - 1)
  -- A difference modulo 2^bits, in the signed range of `bits` bits.
  local function wrap(x) return (x + half) % (2 * half) - half end
  local now, v, last = ffi.new("int32_t[?]", n), ffi.new("int32_t[?]", n), {}
  for s = 0, series - 1 do last[s] = ffi.new("int32_t[?]", n) end
  for first = 0, frames - 1, encode.KEY do
    local count = math.min(encode.KEY, frames - first)
    local left, at = ffi.new("uint16_t[?]", count * series * n), 0
    for frame = first, first + count - 1 do
      for s = 0, series - 1 do
        number(frame, s, now)
        local before = last[s]
        for p = 0, n - 1 do
          v[p] = wrap(frame == first and now[p] or now[p] - before[p])
          local r = wrap(v[p] - predict(v, p, by))
          left[at], at = r >= 0 and 2 * r or -2 * r - 1, at + 1
        end
        ffi.copy(before, now, 4 * n)
      end
    end
    out[#out + 1] = halves(left, count * series * n)
  end
  return out
end

return encode
