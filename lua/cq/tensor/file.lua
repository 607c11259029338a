-- file: tables of tensors on disk, in a simple format. All numbers are little endian.
--
--   8 bytes   "cqtensor"
--   uint32    version: 3; of earlier programs 2 where there are values of kind 8 to 10, else 1
--   uint32    number of entries
--   each entry: a key (a value of kind 3 or 4) and a value. A value is a uint8, its kind, and then
--     2 boolean: uint8   3 number: double   4 string: uint32 length, bytes   5 table: uint32 number of entries, entries
--     6 tensor: uint8 rank, rank x uint64 sizes, doubles
--     7 param: two doubles, min and max (-inf, inf without bounds), then as 6
--     8 tensor: rank and sizes as 6, floats   9 tensor of equal numbers: rank and sizes as 6, one double
--     10 param: two doubles as 7, then a value of kind 8 or 9
--   8 bytes   uint64 count of all bytes before: a file cut short does not have it
--   8 bytes   from version 3 on: checksum of all bytes before (FNV-1a over words of 8 bytes, zeros after the last byte)
local ffi = require "ffi"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local class = require "cq.tensor.class"
local leaves = require "cq.tensor.leaves"
local make = require "cq.tensor.make"
local npy = require "cq.tensor.npy"
local option = require "cq.option"
local C = engine.C

local fail = schema.fail
local magic, version = "cqtensor", 3
local deepest = 100                      -- tables within tables, both ways
local kinds = { boolean = 2, number = 3, string = 4, table = 5, tensor = 6, param = 7, single = 8,
  uniform = 9, bounded = 10 }

local file = {}

-- ---- the checksum ---------------------------------------------------------------------------------------------------

local CHECKSUM = 0xcbf29ce484222325ULL   -- of nothing

-- Carries a checksum on over `count` words of 64 bits; returns it.
local function checked(sum, words, count)
  for k = 0, count - 1 do sum = bit.bxor(sum, words[k]) * 0x100000001b3ULL end
  return sum
end

-- ---- writing --------------------------------------------------------------------------------------------------------

-- pieces are strings, or tensors whose bytes are copied once at the end
local Writer = {}
Writer.__index = Writer

local scratch = ffi.new "union { uint8_t byte[8]; uint32_t u32; uint64_t u64; double number; double numbers[1]; }"

-- Appends a piece, a text or a tensor's numbers, of `size` bytes to the list of pieces that will be written.
function Writer:add(piece, size)
  self[#self + 1] = piece
  self.size = self.size + size
end

-- Appends a whole number of one byte.
function Writer:u8(value) self:add(string.char(value), 1) end
-- Appends a whole number of four bytes.
function Writer:u32(value) scratch.u32 = value; self:add(ffi.string(scratch, 4), 4) end
-- Appends a whole number of eight bytes.
function Writer:u64(value) scratch.u64 = value; self:add(ffi.string(scratch, 8), 8) end
-- Appends a number in float64.
function Writer:number(value) scratch.number = value; self:add(ffi.string(scratch, 8), 8) end
-- Appends a text: its length in four bytes, then its bytes.
function Writer:string(value) self:u32(#value); self:add(value, #value) end

-- Appends the rank of a tensor, and its sizes.
function Writer:shape(t)
  self:u8(t.rank)
  for _, size in ipairs(t.dims) do self:u64(size) end
end

---Appends a tensor: rank, sizes and elements in float64.
function Writer:tensor(t)
  self:shape(t)
  self:add(t, t.count * 8)
end

local UNIFORM_MOST = 2^26                -- equal numbers that a few bytes of a file may ask memory for

-- Have all numbers of a tensor the same bits, and may a file hold them as one? False for none.
local function is_uniform(t)
  if t.count == 0 or t.count > UNIFORM_MOST then return false end
  local words = ffi.cast("const uint64_t *", t.pointer)
  for k = 1, t.count - 1 do
    if words[k] ~= words[0] then return false end
  end
  return true
end

-- Appends a tensor in float32, or as one number in float64 if all its numbers are equal, after a byte for which of
-- both.
function Writer:single(t)
  local uniform = is_uniform(t)
  self:u8(uniform and kinds.uniform or kinds.single)
  self:shape(t)
  if uniform then return self:number(t.pointer[0]) end
  local floats = ffi.new("float[?]", t.count)
  for k = 0, t.count - 1 do floats[k] = t.pointer[k] end
  self:add(ffi.string(floats, t.count * 4), t.count * 4)
end

-- Appends the bounds of a param, min and max, infinite where there is none.
function Writer:bounds(t)
  self:number(t.bounds.min or -math.huge)
  self:number(t.bounds.max or math.huge)
end

-- An object that files know, one whose class has __saved, as the table that it is saved as; any other value unchanged.
local function plain_of(value)
  local meta = type(value) == "table" and getmetatable(value)
  local saved = type(meta) == "table" and meta.__saved
  return saved and saved(value) or value
end

-- Appends any value: a byte for its kind, then its contents; self.small: tensors in float32. path: its name, for
-- errors. Errors: a value that a file cannot hold.
function Writer:value(value, path)
  if class.is_tensor(value) and self.small then
    if value.trainable then
      self:u8(kinds.bounded)
      self:bounds(value)
    end
    return self:single(value)
  elseif class.is_tensor(value) then
    self:u8(value.trainable and kinds.param or kinds.tensor)
    if value.trainable then self:bounds(value) end
    return self:tensor(value)
  end
  value = plain_of(value)
  local kind = type(value)
  if not kinds[kind] or kind == "table" and getmetatable(value) then
    fail("cq.save: %s must be a tensor, a number, a string, true, false, or a table of these, got %s", path,
      schema.describe(value))
  end
  self:u8(kinds[kind])
  if kind == "boolean" then self:u8(value and 1 or 0) else self[kind](self, value, path) end
end

-- Appends a table: the number of its entries, then each key and value. Errors: a table within itself, or within too
-- many; other keys than numbers and strings.
function Writer:table(value, path)
  if self.open[value] then fail("cq.save: %s contains itself", path) end
  self.open[value], self.depth = true, self.depth + 1
  if self.depth > deepest then fail("cq.save: %s lies within %d tables, the most allowed", path, deepest) end
  local keys, others = leaves.sorted_keys(value)
  if others > 0 then fail("cq.save: keys of %s must be numbers or strings", path) end
  self:u32(#keys)
  for _, key in ipairs(keys) do
    self:value(key, path)
    self:value(value[key], path .. "." .. tostring(key))
  end
  self.open[value], self.depth = nil, self.depth - 1
end

-- what writes and what reads files whose endings say another format
local others = {
  npz = { write = "rollout:export and state:save write .npz, cq.save one tensor as .npy",
    read = "of NumPy's files it reads .npy, one array each" },
  csv = { write = "cq.csv.save writes columns of numbers", read = "cq.csv reads columns of numbers" },
  json = { write = "give it the ending .bin" },
}

-- The ending of a path, in lower case, and its entry in `others`: an empty table if it has none.
local function ending_of(path)
  local ending = (path:match "%.(%w+)$" or ""):lower()
  return ending, others[ending] or {}
end

local precision_kind = schema.one_of { "float64", "float32", default = "float64" }

-- Writes one tensor as a .npy file for NumPy. Errors: a wrong value; the file cannot be written.
local function save_npy(path, value, precision)
  if not class.is_tensor(value) then
    fail("cq.save: a .npy file holds one tensor, got %s; the ending .bin takes a table", schema.describe(value))
  end
  local bytes = npy.encode(value, precision)
  engine.check(C.cq_file_replace(path, ffi.cast("const void *", bytes), #bytes, 1), "cq.save")
end

---Writes a table of tensors, params (with their bounds; a rate of their own is not kept), numbers, strings, booleans
---and tables of these; or, where the path ends in .npy, one tensor for NumPy. A cq.Uncertainty is written as a table of
---its fields. The file is replaced whole, or left as it was: on a full disk, say. Of the ranks under MPI only the first
---writes. The format is cqlua's own, and cq.load reads it. Errors: a path that ends in .npz, .csv or .json.
---@param path string     of the file
---@param value table|cq.Tensor     of named or numbered entries
---@param precision? "float64"|"float32"   float32: tensors in half of the bytes, rounded, or in next to none where all
---  numbers are equal, which are kept as they are; float64 unless given
function file.save(path, value, precision)
  schema.argument("cq.save", "path", schema.string(), path)
  precision = schema.argument("cq.save", "precision", precision_kind, precision)
  local ending, other = ending_of(path)
  if other.write then
    fail("cq.save: %s would be no .%s file, for its format is cqlua's own; %s", path, ending, other.write)
  end
  if option.program.follows then return end
  if path:find "%.npy$" then return save_npy(path, value, precision) end
  value = plain_of(value)
  if type(value) ~= "table" or getmetatable(value) then
    fail("cq.save: needs a table, got %s; put a tensor into one, or write it as .npy", schema.describe(value))
  end
  local writer = setmetatable({ size = 0, open = {}, depth = 0, small = precision == "float32" }, Writer)
  writer:add(magic, #magic)
  writer:u32(version)
  writer:table(value, "the table")
  writer:u64(writer.size)
  -- a tensor's memory serves as the buffer: it may be larger than Lua's own; the checksum follows
  local words = math.ceil(writer.size / 8)
  local buffer = class.make { words + 1 }
  local bytes, at = ffi.cast("uint8_t *", buffer.pointer), 0
  buffer.pointer[words - 1] = 0
  for _, piece in ipairs(writer) do
    local size = type(piece) == "string" and #piece or piece.count * 8
    ffi.copy(bytes + at, type(piece) == "string" and piece or piece.pointer, size)
    at = at + size
  end
  scratch.u64 = checked(CHECKSUM, ffi.cast("const uint64_t *", buffer.pointer), words)
  ffi.copy(bytes + at, scratch, 8)
  engine.check(C.cq_file_replace(path, bytes, at + 8, 1), "cq.save")
end

-- ---- reading --------------------------------------------------------------------------------------------------------

local Reader = {}
Reader.__index = Reader

-- Reads `count` bytes as a text. Errors: the file ends before.
function Reader:bytes(count)
  local piece = count == 0 and "" or self.handle:read(count)
  if not piece or #piece < count then
    fail("cq.load: %s is cut short: it ends after %s", self.path, text.count(self.at + #(piece or ""), "byte"))
  end
  self.at = self.at + count
  return piece
end

-- Reads `count` bytes as a number of the field `field` of the union `scratch`, "u32" or "u64".
function Reader:fill(count, field)
  ffi.copy(scratch, self:bytes(count), count)
  return tonumber(scratch[field])
end

-- Reads a number in float64; NaN of any bits becomes the usual one.
function Reader:number()
  ffi.copy(scratch, self:bytes(8), 8)
  C.cq_tensor_canonical(1, scratch.numbers)
  return scratch.number
end

-- Reads a whole number of one byte.
function Reader:u8() return self:bytes(1):byte() end
-- Reads a whole number of four bytes.
function Reader:u32() return self:fill(4, "u32") end
-- Reads a whole number of eight bytes.
function Reader:u64() return self:fill(8, "u64") end

-- Raises an error: the file is damaged at this byte; what: how.
function Reader:damaged(what) fail("cq.load: %s is damaged: %s at byte %d", self.path, what, self.at) end

-- Raises an error if the file has fewer than this many bytes left.
function Reader:check_room(bytes)
  if bytes > self.size - self.at then
    fail("cq.load: %s is cut short or damaged: it has %s, and the entry at byte %d ends at byte %.0f", self.path,
      text.count(self.size, "byte"), self.at, self.at + bytes)
  end
end

---Reads a text: its length, then its bytes. Errors: the file ends before.
function Reader:string()
  local length = self:u32()
  self:check_room(length)
  return self:bytes(length)
end

local chunk = 2^20                       -- bytes read at once

local readers = {}
for name, number in pairs(kinds) do readers[number] = name end

-- Reads rank and dimensions; returns a tensor of that shape with any values. Errors: fewer bytes left than `each` for
-- an element; where `whole` is given, fewer than that, or more than UNIFORM_MOST elements.
function Reader:shape(each, whole)
  local rank, dims, count = self:u8(), {}, 1
  if rank > C.CQ_TENSOR_RANK_MAX then self:damaged(("a tensor of rank %d"):format(rank)) end
  for i = 1, rank do
    dims[i] = self:u64()
    if dims[i] >= 2^31 then self:damaged(("a dimension of size %.0f"):format(dims[i])) end
    count = count * dims[i]
  end
  self:check_room(whole or count * each)
  if whole and count > UNIFORM_MOST then self:damaged(("%.0f equal numbers"):format(count)) end
  return class.make(dims)
end

-- Reads `count` bytes into memory, a part at a time. Errors: the file ends before.
function Reader:into(memory, count)
  local bytes, at = ffi.cast("uint8_t *", memory), 0
  while at < count do
    local size = math.min(chunk, count - at)
    ffi.copy(bytes + at, self:bytes(size), size)
    at = at + size
  end
end

---Reads a tensor of float64: rank, sizes and elements; NaN of any bits becomes the usual one. Errors: the file ends
---before.
function Reader:tensor()
  local t = self:shape(8)
  self:into(t.pointer, t.count * 8)
  C.cq_tensor_canonical(t.count, t.pointer)
  return t
end

-- Reads a tensor of float32: rank, sizes and elements; NaN of any bits becomes the usual one.
function Reader:single()
  local t = self:shape(4)
  local floats = ffi.new("float[?]", t.count)
  self:into(floats, t.count * 4)
  npy.take(t.pointer, floats, "<f4", t.count)
  return t
end

-- Reads a tensor whose numbers are all equal: rank, sizes and the number.
function Reader:uniform()
  local t = self:shape(0, 8)
  C.cq_tensor_fill(t.count, self:number(), t.pointer)
  return t
end

-- Reads a param that was saved in float32, and moves its numbers back into its bounds after rounding. path: its name,
-- for errors.
function Reader:bounded(path)
  return self:param(path, function()
    local kind = self:u8()
    if kind ~= kinds.single and kind ~= kinds.uniform then self:damaged(("a param of kind %d"):format(kind)) end
    return self[readers[kind]](self)
  end)
end

-- Moves numbers of t that rounding to float32 has put just outside of a bound onto the bound, in place. is_beyond(x,
-- bound): is a number outside?
local function within(t, bound, is_beyond)
  for k = 0, t.count - 1 do
    local x = t.pointer[k]
    if is_beyond(x, bound) and math.abs(x - bound) <= 1e-7 * math.abs(bound) then t.pointer[k] = bound end
  end
end

-- Reads a param with its bounds. rounded: a function that reads its tensor if it was saved in float32, nil for float64.
-- Errors: bounds that are nan, or that its numbers are not within.
function Reader:param(path, rounded)
  local min, max = self:number(), self:number()
  if min ~= min or max ~= max then self:damaged("a bound that is nan") end
  min, max = min > -math.huge and min or nil, max < math.huge and max or nil
  local t = (rounded or self.tensor)(self)
  if rounded and min then within(t, min, function(x, bound) return x < bound end) end
  if rounded and max then within(t, max, function(x, bound) return x > bound end) end
  local problem = make.why_no_param(t, min, max)
  if problem then fail("cq.load: %s: param %s: %s", self.path, path, problem) end
  return make.as_param(t, min, max)
end

-- A key in words, for the path of an error.
local function shown(key) return type(key) == "string" and key:gsub("[^%w_ -]", "?"):sub(1, 40) or tostring(key) end

---Reads one byte as a boolean. Errors: neither 0 nor 1.
function Reader:boolean()
  local value = self:u8()
  if value > 1 then self:damaged(("a boolean of %d"):format(value)) end
  return value == 1
end

-- Reads any value by the byte of its kind. path: its name, for errors.
function Reader:value(path)
  local kind = self:u8()
  if not readers[kind] then self:damaged(("a value of kind %d"):format(kind)) end
  return self[readers[kind]](self, path)
end

-- Reads the key of a table. Errors: neither a number nor a string; nan.
function Reader:key()
  local kind = self:u8()
  if kind ~= kinds.number and kind ~= kinds.string then self:damaged "a key that is no name" end
  local key = self[readers[kind]](self)
  if key ~= key then self:damaged "a key that is nan" end
  return key
end

-- Reads a table of values; path: its name, for errors, nil of the outermost. Errors: tables within too many; a key that
-- is there twice.
function Reader:table(path)
  local out, count = {}, self:u32()
  self:check_room(count)
  self.depth = self.depth + 1
  if self.depth > deepest then self:damaged(("tables within more than %d tables"):format(deepest)) end
  for _ = 1, count do
    local key = self:key()
    if out[key] ~= nil then self:damaged(("a second entry %s"):format(shown(key))) end
    out[key] = self:value(path and path .. "." .. shown(key) or shown(key))
  end
  self.depth = self.depth - 1
  return out
end

-- Reads the checksum, and raises an error if it is not that of all bytes before.
function Reader:check_sum()
  local count, sum, at = self.at, CHECKSUM, 0
  ffi.copy(scratch, self:bytes(8), 8)
  local expected, words = ffi.new("uint64_t[1]", scratch.u64), ffi.new("uint64_t[?]", chunk / 8)
  self.handle:seek("set", 0)
  while at < count do
    local size = math.min(chunk, count - at)
    words[math.ceil(size / 8) - 1] = 0
    ffi.copy(words, self.handle:read(size), size)
    sum, at = checked(sum, words, math.ceil(size / 8)), at + size
  end
  if sum ~= expected[0] then
    fail("cq.load: %s is damaged: its bytes are not those that were written", self.path)
  end
end

-- Reads a whole file of tensors; returns its table. Errors: a file of another kind or version, or damaged.
local function read(self)
  if self.size < #magic or self:bytes(#magic) ~= magic then
    local _, other = ending_of(self.path)
    fail("cq.load: %s is not a file of tensors: it does not begin with %s%s", self.path, magic, other.read
      and "; " .. other.read or "")
  end
  local found = self:u32()
  if found < 1 or found > version then
    fail("cq.load: %s has format version %d, this program reads version 1 to %d", self.path, found, version)
  end
  local out = self:table()
  local size = self.at
  if self:u64() ~= size then self:damaged "a wrong length" end
  if found >= 3 then self:check_sum() end
  if self.at ~= self.size then
    fail("cq.load: %s is damaged: it has %s after its end", self.path, text.count(self.size - self.at, "byte"))
  end
  return out
end

-- Reads a .npy file of NumPy's; returns its tensor, or nil if the file begins otherwise, with the handle back at the
-- start.
local function read_npy(handle, path)
  local start = handle:read(6)
  handle:seek "set"
  return start and npy.is(start) and npy.decode(handle:read "*a", path) or nil
end

---Reads what save has written, and one array of NumPy's (.npy): floats and integers as a tensor. Params are params
---again, with their bounds and without a rate of their own. Errors: a file that is missing, cut short, damaged, or of
---another kind.
---@param path string
---@return table|cq.Tensor
function file.load(path)
  schema.argument("cq.load", "path", schema.string(), path)
  local handle, why = io.open(path, "rb")
  if not handle then fail("cq.load: %s", why) end
  local size = handle:seek "end"
  if not size or size >= 2^62 then
    handle:close()
    fail("cq.load: %s is not a file", path)
  end
  handle:seek "set"
  local ok, result = pcall(function()
    return read_npy(handle, path)
      or read(setmetatable({ handle = handle, path = path, at = 0, size = size, depth = 0 }, Reader))
  end)
  handle:close()
  if not ok then error(result, 0) end
  return result
end

return file
