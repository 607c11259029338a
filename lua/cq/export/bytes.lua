-- bytes: numbers as the bytes of a file, little endian, as every machine has them that this program runs on.
local ffi = require "ffi"

local bytes = {}

local types = { float64 = "double[?]", float32 = "float[?]", int64 = "int64_t[?]", int32 = "int32_t[?]",
  uint32 = "uint32_t[?]", uint16 = "uint16_t[?]", uint8 = "uint8_t[?]" }
bytes.sizes = { float64 = 8, float32 = 4, int64 = 8, int32 = 4, uint32 = 4, uint16 = 2, uint8 = 1 }

---Numbers of one type as a string of bytes.
---@param kind string              float64, float32, int64, int32, uint32, uint16 or uint8
---@param values cq.Tensor|number[]
---@return string
function bytes.of(kind, values)
  local is_list = type(values) == "table" and getmetatable(values) == nil
  local count = is_list and #values or values.count
  local out = ffi.new(types[kind], math.max(count, 1))
  if is_list then
    for k = 1, count do out[k - 1] = values[k] end
  elseif kind == "float64" then
    return ffi.string(values:data(), count * 8)
  else
    local from = values:data()
    for k = 0, count - 1 do out[k] = from[k] end
  end
  return ffi.string(out, count * bytes.sizes[kind])
end

---A text filled up to the next multiple of a number of bytes.
---@param text string
---@param to integer
---@param with? string        one byte; NUL unless given
---@return string
function bytes.padded(text, to, with) return text .. (with or "\0"):rep(-#text % to) end

return bytes
