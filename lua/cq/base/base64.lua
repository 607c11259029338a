-- base64: bytes as text (RFC 4648).
local bit = require "bit"
local ffi = require "ffi"

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local letter = ffi.new("uint8_t[64]", { LETTERS:byte(1, 64) })
local PAD = ("="):byte()
local base64 = {}

---Bytes as base64 (RFC 4648), padded, in one line.
---@param bytes string
---@return string
function base64.encode(bytes)
  local n, from = #bytes, ffi.cast("const uint8_t *", bytes)
  local size = 4 * math.ceil(n / 3)
  local out, to = ffi.new("uint8_t[?]", size), 0
  for k = 0, n - 1, 3 do
    local a, b, c = from[k], k + 1 < n and from[k + 1] or 0, k + 2 < n and from[k + 2] or 0
    out[to], out[to + 1] = letter[bit.rshift(a, 2)], letter[bit.bor(bit.lshift(bit.band(a, 3), 4), bit.rshift(b, 4))]
    out[to + 2] = k + 1 < n and letter[bit.bor(bit.lshift(bit.band(b, 15), 2), bit.rshift(c, 6))] or PAD
    out[to + 3] = k + 2 < n and letter[bit.band(c, 63)] or PAD
    to = to + 4
  end
  return ffi.string(out, size)
end

return base64
