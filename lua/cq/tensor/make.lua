-- make: tensors from numbers, tables and nothing; and back to numbers.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local layout = require "cq.tensor.layout"
local tape = require "cq.tensor.tape"
local C = require("cq.base.engine").C

local Tensor = class.methods
local fail, describe = schema.fail, schema.describe

local make = {}

-- ---- from tables ----------------------------------------------------------------------------------------------------

-- The sizes of nested lists of numbers, by the first entry at each depth. Errors: nested too deep.
local function shape_of(list, what)
  local dims = {}
  while type(list) == "table" do
    dims[#dims + 1] = #list
    if #dims > C.CQ_TENSOR_RANK_MAX then fail("%s: lists are nested more than %d deep", what, C.CQ_TENSOR_RANK_MAX) end
    list = list[1]
  end
  return dims
end

-- Copies the numbers of nested lists to out.pointer; out: { dims, pointer, at = elements so far, what = for errors }.
-- Errors: lists of different lengths; an entry that is no number.
local function fill(list, out, depth, path)
  local dims, what = out.dims, out.what
  if type(list) ~= "table" or class.is_tensor(list) or #list ~= dims[depth] then
    fail("%s: entry %s must be a list of %d like the others, got %s", what, path == "" and "1" or path, dims[depth],
      describe(list))
  end
  for key in pairs(list) do
    if type(key) ~= "number" or key % 1 ~= 0 or key < 1 or key > #list then
      fail("%s: takes lists of numbers, got an entry at %s", what, describe(key))
    end
  end
  for i, value in ipairs(list) do
    if depth < #dims then
      fill(value, out, depth + 1, path == "" and tostring(i) or path .. "," .. i)
    elseif type(value) ~= "number" then
      fail("%s: entry %s must be a number, got %s", what, (path == "" and "" or path .. ",") .. i, describe(value))
    else
      out.pointer[out.at] = value
      out.at = out.at + 1
    end
  end
end

-- Is there a tensor anywhere in these nested lists? Below the most dimensions of a tensor nothing is looked at.
local function holds_tensor(list, depth)
  for _, value in ipairs(depth <= C.CQ_TENSOR_RANK_MAX and list or {}) do
    if class.is_tensor(value) or type(value) == "table" and holds_tensor(value, depth + 1) then return true end
  end
  return false
end

-- A tensor from nested lists of tensors, which are stacked.
local function stacked(list)
  local parts = {}
  for i, value in ipairs(list) do
    parts[i] = type(value) == "table" and not class.is_tensor(value) and stacked(value) or value
  end
  return layout.stack(parts)
end

---A tensor from a number, nested lists of numbers, lists that hold tensors (these are
---stacked, with gradient), or a copy.
---@param value number|table|cq.Tensor   lists of one length at each depth
---@param what? string                   for errors, in the place of cq.tensor
---@return cq.Tensor
function make.tensor(value, what)
  if type(value) == "number" then return class.scalar(value) end
  if class.is_tensor(value) then return value:copy() end
  what = what or "cq.tensor"
  if type(value) ~= "table" or getmetatable(value) then
    fail("%s: needs a number or nested lists of numbers, got %s", what, describe(value))
  end
  if holds_tensor(value, 1) then return stacked(value) end
  local dims = shape_of(value, what)
  local out = class.make(dims)
  fill(value, { dims = dims, pointer = out.pointer, at = 0, what = what }, 1, "")
  return out
end

---A tensor of a number or nested lists of numbers; a tensor unchanged.
---@param value number|table|cq.Tensor
---@param what? string                   for errors, in the place of cq.tensor
---@return cq.Tensor
function make.as_tensor(value, what)
  if class.is_tensor(value) then return value end
  return make.tensor(value, what)
end

-- ---- by shape -------------------------------------------------------------------------------------------------------

-- The sizes of a new tensor from what the user gave a constructor, `what`. count: of its arguments besides. Errors:
-- sizes that are no list.
local function sizes_of(what, shape, count)
  if count > 0 then
    fail("%s: takes the sizes of all dimensions in one list, as in %s", what, what == "cq.full"
      and "cq.full({ 2, 3 }, value)" or what .. " { 2, 3 }")
  end
  return class.check_shape(shape, what)
end

-- A new tensor that holds one number everywhere; what, count: of sizes_of.
local function filled(shape, value, what, count)
  local out = class.make(sizes_of(what, shape, count))
  C.cq_tensor_fill(out.count, value, out.pointer)
  return out
end

---A tensor of zeros.
---@param shape integer[]|integer    sizes; {} is rank 0, n is { n }
---@return cq.Tensor
function make.zeros(shape, ...) return filled(shape, 0, "cq.zeros", select("#", ...)) end

---A tensor of ones.
---@param shape integer[]|integer    sizes; {} is rank 0, n is { n }
---@return cq.Tensor
function make.ones(shape, ...) return filled(shape, 1, "cq.ones", select("#", ...)) end

---A tensor that holds one number everywhere.
---@param shape integer[]|integer    sizes; {} is rank 0, n is { n }
---@param value number
---@return cq.Tensor
function make.full(shape, value, ...)
  schema.argument("cq.full", "value", schema.number { infinite = true }, value)
  return filled(shape, value, "cq.full", select("#", ...))
end

---A tensor that is not initialised, for code that fills its data.
---@param shape integer[]|integer
---@return cq.Tensor
function make.empty(shape, ...) return class.make(sizes_of("cq.empty", shape, select("#", ...))) end

---The identity matrix.
---@param n integer
---@return cq.Tensor
function make.eye(n, ...)
  schema.argument("cq.eye", "n", schema.integer { min = 0 }, n)
  if select("#", ...) > 0 then fail("cq.eye: takes one size, n for a matrix { n, n }; got %d", 1 + select("#", ...)) end
  local out = make.zeros { n, n }
  for i = 0, n - 1 do out.pointer[i * (n + 1)] = 1 end
  return out
end

---The numbers first, first + step, ... up to last, which is included when it is met, as a tensor {n}. Errors: a step of
---0.
---@param first number
---@param last number?   left out: 1 to first
---@param step number?   default 1
---@return cq.Tensor
function make.arange(first, last, step)
  if last == nil then first, last = 1, first end
  schema.argument("cq.arange", "first", schema.number(), first)
  schema.argument("cq.arange", "last", schema.number(), last)
  step = schema.argument("cq.arange", "step", schema.number { default = 1 }, step)
  if step == 0 then fail("cq.arange: a step of 0 never arrives") end
  -- a step such as 0.1 misses the last number by a rounding
  local count = math.max(0, math.floor((last - first) / step * (1 + 1e-12) + 1e-12) + 1)
  local out = make.empty { count }
  for i = 0, count - 1 do out.pointer[i] = first + i * step end
  return out
end
make.range = make.arange

-- ---- params ---------------------------------------------------------------------------------------------------------

---@class cq.param.def
---@field min? number      default: none
---@field max? number      default: none
---@field rate? number     of its own, in the place of the optimizer's

local bounds = schema.define("cq.param", {
  min = schema.number { optional = true, infinite = true },
  max = schema.number { optional = true, infinite = true },
  rate = schema.number { above = 0, optional = true },
})

---A trainable tensor, with bounds that optimizers keep by projection, and its own rate if it has one. Errors: a value
---that is NaN or outside of the bounds; min above max.
---@param value number|table|cq.Tensor  where it starts; copied
---@param opts? cq.param.def      bounds and rate
---@return cq.Tensor
function make.param(value, opts)
  opts = bounds(opts or {})
  local param = make.tensor(value):detach()
  local problem = make.why_no_param(param, opts.min, opts.max)
  if problem then fail("cq.param: %s", problem) end
  return make.as_param(param, opts.min, opts.max, opts.rate)
end

---Why a tensor cannot be a param within bounds; nil: it can.
---@param t cq.Tensor
---@param min? number
---@param max? number
---@return string?
function make.why_no_param(t, min, max)
  if min and max and min > max then return ("min %g is above max %g"):format(min, max) end
  for i = 0, t.count - 1 do
    local x = class.number(t.pointer, i)
    if x ~= x then return ("element %d is nan"):format(i + 1) end
    if min and x < min or max and x > max then
      return ("element %d is %g, outside its bounds %s to %s"):format(i + 1, x, tostring(min or "-inf"),
        tostring(max or "inf"))
    end
  end
end

---Makes the tensor itself a param, and returns it; its elements must be within the bounds.
---@param t cq.Tensor
---@param min? number
---@param max? number
---@param rate? number         of its own
---@return cq.Tensor
function make.as_param(t, min, max, rate)
  rawset(t, "trainable", true)
  rawset(t, "bounds", { min = min, max = max, rate = rate })
  t.requires_grad = true
  return t
end

-- ---- back to numbers ------------------------------------------------------------------------------------------------

---The sizes of all dimensions, as a table of its own.
---@return integer[]
function Tensor:shape()
  class.check_tensor(self, "shape")
  local dims = {}
  for i = 1, self.rank do dims[i] = self.dims[i] end
  return dims
end

---Size of a dimension; without one, the count of all elements.
---@param dim integer?
---@return integer
function Tensor:size(dim)
  class.check_tensor(self, "size")
  if dim == nil then return self.count end
  return self.dims[class.check_dim(self.rank, dim, "size")]
end

---double* of the elements, valid while the tensor lives. Memory that other programs' C code filled should be fetched
---again before Lua reads it: a NaN with bits of its own, read through an old pointer, would forge a Lua value.
---@return ffi.cdata*
function Tensor:data()
  local pointer = self.pointer
  C.cq_tensor_canonical(self.count, pointer)
  return pointer
end

---The number of a tensor of one element. Errors: a wrong count.
---@return number
function Tensor:item()
  class.check_tensor(self, "item")
  if self.count ~= 1 then fail("item: needs a tensor of one element, the shape is %s", class.shape_text(self.dims)) end
  return class.number(self.pointer, 0)
end

-- The offset in memory, in elements from 0, of the entry with these indices. Errors: another number of indices than
-- dimensions; an index beyond a size.
local function offset_of(t, what, ...)
  local n, offset = select("#", ...), 0
  if n ~= t.rank then
    fail("%s: a tensor of shape %s needs %d indices, got %d", what, class.shape_text(t.dims), t.rank, n)
  end
  for d = 1, n do offset = offset * t.dims[d] + class.check_index(t.dims[d], (select(d, ...)), what) end
  return offset
end

---A number by its indices.
---@param ... integer
---@return number
function Tensor:get(...)
  class.check_tensor(self, "get")
  return class.number(self.pointer, offset_of(self, "get", ...))
end

-- Raises an error for a tensor whose numbers a recorded operation may still need for its gradient, for an entry t[i],
-- which is a copy, or for another value.
local function check_writable(t, what)
  class.check_tensor(t, what)
  if rawget(t, "is_entry") then
    fail("%s: what t[i] gives is a copy, and writing into it leaves t as it is; t:set(value, i, j) changes a number of t, t[i] = x a whole entry, and t[i]:copy() is a tensor of its own",
      what)
  end
  if t.requires_grad and tape.recording() or class.locked[t] or tape.holds(t) then
    fail("%s: a tensor that takes part in a gradient cannot be changed while it is computed; build a new one", what)
  end
end

-- Raises an error if writing a tensor into another would lose its gradient.
local function check_plain(value, what, name)
  if value.requires_grad and tape.recording() then
    fail("%s: writing in place loses the gradient of %s; use cq.stack or cq.concat", what, name)
  end
end

---Changes a number in place: t:set(value, i, j). Errors: a value whose gradient would be lost.
---@param value number|cq.Tensor    a tensor of one element
---@param ... integer
---@return cq.Tensor    itself
function Tensor:set(value, ...)
  check_writable(self, "set")
  schema.argument("set", "value", schema.any_of { schema.number { infinite = true }, schema.tensor() }, value)
  if class.is_tensor(value) then check_plain(value, "set", "the value") end
  self.pointer[offset_of(self, "set", ...)] = class.is_tensor(value) and value:item() or value
  return self
end

-- t[i] = x: sets entry i of the first dimension, in place, from a number, a list or a tensor with as many elements.
-- Errors: rank 0; a wrong size; a tensor whose gradient would be lost.
function class.set_element(t, index, value)
  check_writable(t, "t[i] = x")
  if t.rank == 0 then fail("t[i] = x: a tensor of rank 0 has no entries; use t:fill(x)") end
  local offset = class.check_index(t.dims[1], index, "t[i] = x")
  value = make.as_tensor(value)
  local count = t.count / t.dims[1]
  if value.count ~= count or value.rank > t.rank - 1 then
    fail("t[i] = x: an entry of shape %s needs one of its size, got shape %s", class.shape_text(t.dims),
      class.shape_text(value.dims))
  end
  check_plain(value, "t[i] = x", "x")
  ffi.copy(t.pointer + offset * count, value.pointer, count * 8)
end

---Sets all elements in place.
---@param value number
---@return cq.Tensor    itself
function Tensor:fill(value)
  check_writable(self, "fill")
  C.cq_tensor_fill(self.count, schema.argument("fill", "value", schema.number { infinite = true }, value), self.pointer)
  return self
end

---Copies the elements of another tensor of the same shape into this one, in place. Errors: a wrong shape; a tensor that
---is recorded.
---@param other cq.Tensor
---@return cq.Tensor    itself
function Tensor:copy_from(other)
  check_writable(self, "copy_from")
  class.check_tensor(other, "copy_from")
  if not class.same_dims(self.dims, other.dims) then
    fail("copy_from: shapes %s and %s differ", class.shape_text(self.dims), class.shape_text(other.dims))
  end
  ffi.copy(self.pointer, other.pointer, self.count * 8)
  return self
end

---The same numbers in memory of their own; gradients pass.
---@return cq.Tensor
function Tensor:copy()
  class.check_tensor(self, "copy")
  local out = class.like(self)
  ffi.copy(out.pointer, self.pointer, self.count * 8)
  return tape.wants(self) and tape.push(make.copy_back, out, self) or out
end

-- Adjoint of a copy: adds the gradient as it is.
function make.copy_back(node, gradient)
  local to = class.adjoint(node.a)
  for i = 0, node.a.count - 1 do to[i] = to[i] + gradient[i] end
end

---Nested lists of numbers; a number for rank 0.
---@return table|number
function Tensor:totable()
  class.check_tensor(self, "totable")
  local pointer = self.pointer
  -- Nested lists of a tensor's elements, from dimension `depth` on: the `stride` elements from `offset` on.
  local function build(depth, offset, stride)
    if depth > self.rank then return class.number(pointer, offset) end
    local list, size = {}, self.dims[depth]
    local inner = size > 0 and stride / size or 0
    for i = 1, size do list[i] = build(depth + 1, offset + (i - 1) * inner, inner) end
    return list
  end
  return build(1, 0, self.count)
end

return make
