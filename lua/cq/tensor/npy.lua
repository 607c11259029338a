-- npy: NumPy's files of one array: a magic, a line of text that says type, order and shape, and the numbers.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local class = require "cq.tensor.class"
local C = engine.C

local fail = schema.fail
local npy = {}

local MAGIC, ALIGNED = "\147NUMPY", 64

-- ---- writing --------------------------------------------------------------------------------------------------------

local writers = {
  float64 = { descr = "<f8", size = 8 }, float32 = { descr = "<f4", type = "float[?]", size = 4 },
  int32 = { descr = "<i4", type = "int32_t[?]", size = 4 },
}

-- The bytes of a .npy file: its head with the type `descr` and the shape, then the numbers, given as bytes.
local function framed(descr, shape, body)
  local dims = #shape == 1 and shape[1] .. "," or table.concat(shape, ", ")
  local head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(descr, dims)
  head = head .. (" "):rep(-(#MAGIC + 4 + #head + 1) % ALIGNED) .. "\n"
  return MAGIC .. "\1\0" .. ffi.string(ffi.new("uint16_t[1]", #head), 2) .. head .. body
end

---A tensor as the bytes of a .npy file.
---@param tensor cq.Tensor
---@param kind? "float64"|"float32"|"int32"     float64 unless given
---@return string
function npy.encode(tensor, kind)
  local writer, from = writers[kind or "float64"], tensor:data()
  local out = from
  if writer.type then
    out = ffi.new(writer.type, math.max(tensor.count, 1))
    for k = 0, tensor.count - 1 do out[k] = from[k] end
  end
  return framed(writer.descr, tensor:shape(), ffi.string(out, tensor.count * writer.size))
end

---Names as the bytes of a .npy file, an array of strings of one length.
---@param names string[]
---@return string
function npy.encode_names(names)
  local longest, parts = 1, {}
  for _, name in ipairs(names) do longest = math.max(longest, #name) end
  for k, name in ipairs(names) do parts[k] = name .. ("\0"):rep(longest - #name) end
  return framed("|S" .. longest, { #names }, table.concat(parts))
end

-- ---- reading --------------------------------------------------------------------------------------------------------

local readers = {
  ["<f8"] = "double", ["<f4"] = "float", ["<i8"] = "int64_t", ["<i4"] = "int32_t", ["<i2"] = "int16_t",
  ["|i1"] = "int8_t", ["|u1"] = "uint8_t", ["|b1"] = "uint8_t", ["<u2"] = "uint16_t", ["<u4"] = "uint32_t",
}

---Do these bytes begin as a .npy file does?
---@param bytes string
---@return boolean
function npy.is(bytes) return bytes:sub(1, #MAGIC) == MAGIC end

-- The line of text at the head of a .npy file, and the place, from 1, of the first byte of its numbers. Errors: the
-- file is cut short.
local function head_of(bytes, path)
  local major = bytes:byte(7)
  local wide = major and major >= 2 and 4 or 2
  local size = 0
  for k = wide, 1, -1 do size = size * 256 + (bytes:byte(8 + k) or fail("cq.load: %s is cut short", path)) end
  local first = 9 + wide
  local head = bytes:sub(first, first + size - 1)
  if #head < size then fail("cq.load: %s is cut short within its head", path) end
  return head, first + size
end

-- The shape in the head of a .npy file, a list, and its number of elements. Errors: no shape; more dimensions or
-- numbers than a tensor can have.
local function shape_of(head, path)
  local inside, shape, count = head:match "'shape':%s*%(([^)]*)%)", {}, 1
  if not inside then fail("cq.load: the head of %s names no shape: %s", path, text.describe(head)) end
  for size in inside:gmatch "%d+" do
    shape[#shape + 1] = tonumber(size)
    count = count * tonumber(size)
  end
  if #shape > C.CQ_TENSOR_RANK_MAX or count >= 2 ^ 31 then
    fail("cq.load: %s has the shape (%s), and a tensor at most %d dimensions and 2^31 numbers", path, inside,
      C.CQ_TENSOR_RANK_MAX)
  end
  return shape, count
end

-- A copy, in the order of tensors, of a tensor whose numbers the file has in Fortran's order, first dimension fastest.
local function reordered(tensor, shape)
  local backward, order = {}, {}
  for k = 1, #shape do backward[k], order[k] = shape[#shape + 1 - k], #shape + 1 - k end
  return tensor:reshape(backward):permute(order):copy()
end

---Copies `count` numbers of a file to `to`, double*. LuaJIT takes the bits of some NaNs for other values: none of the
---file's is read as a number. descr: their kind, as "<f4".
function npy.take(to, from, descr, count)
  if descr == "<f8" then
    ffi.copy(to, from, 8 * count)
    return C.cq_tensor_canonical(count, to)
  end
  local words = descr == "<f4" and ffi.cast("const uint32_t *", from)
  for k = 0, count - 1 do
    to[k] = words and words[k] % 0x80000000 > 0x7f800000 and 0 / 0 or tonumber(from[k])
  end
end

---The tensor of the bytes of a .npy file. Errors: numbers of another kind than integers and floats of this machine's
---order; a file that is cut short.
---@param bytes string
---@param path string       for the errors
---@return cq.Tensor
function npy.decode(bytes, path)
  local head, first = head_of(bytes, path)
  local descr = head:match "'descr':%s*'([^']*)'"
  if not readers[descr or ""] then
    fail("cq.load: the numbers of %s are of the type %s; a tensor takes little-endian floats of 4 or 8 bytes and integers",
      path, descr and ("'%s'"):format(descr) or "of records")
  end
  local shape, count = shape_of(head, path)
  local size = ffi.sizeof(readers[descr])
  if #bytes - first + 1 ~= count * size then
    fail("cq.load: %s has %s of numbers, and its shape takes %.0f", path, text.count(#bytes - first + 1, "byte"),
      count * size)
  end
  local out = class.make(shape)
  local from = ffi.new(readers[descr] .. "[?]", math.max(count, 1))
  ffi.copy(from, bytes:sub(first), count * size)
  npy.take(out.pointer, from, descr, count)
  if head:find("'fortran_order':%s*True") and #shape > 1 then return reordered(out, shape) end
  return out
end

return npy
