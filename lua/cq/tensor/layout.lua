-- layout: elements in other places: reshape, transpose, slice, concat, pad, gather.
-- reshape and its kin share memory with their source; all others copy.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local reduction = require "cq.tensor.reduction"
local elementwise = require "cq.tensor.elementwise"
local C = require("cq.base.engine").C

local Tensor = class.methods
local adjoint, fail = class.adjoint, schema.fail

-- ---- the same memory ------------------------------------------------------------------------------------------------

-- Adjoint of an operation whose result shares memory with its source: adds the gradient as it is.
local function share_back(node, gradient)
  local a = node.a
  C.cq_tensor_copy(elementwise.flat_layout(a.count, 1, 1), 1, gradient, adjoint(a))
end

-- A tensor in the same memory with the sizes dims, recorded on the tape.
local function share(t, dims)
  local out = class.wrap(t.pointer, t.count, #dims, dims)
  if tape.wants(t) then return tape.push(share_back, out, t) end
  if t.requires_grad then tape.hold(t) end
  return out
end

-- A copy of a shape, with its size of -1, if any, replaced by what the number of elements of t leaves for it.
local function infer(t, shape)
  local dims, open, known = {}, nil, 1
  for i, size in ipairs(shape) do
    if size == -1 and not open then open, dims[i] = i, 1
    else dims[i], known = size, known * (tonumber(size) or 0) end
  end
  if open and known > 0 and t.count % known == 0 then dims[open] = t.count / known end
  return dims
end

---The same memory in another shape of as many elements; one size may be -1 for what is left. Errors: a wrong count.
---@param shape integer[]   its sizes
---@return cq.Tensor
function Tensor:reshape(shape)
  class.check_tensor(self, "reshape")
  if type(shape) == "number" then shape = { shape } end
  local dims = class.check_shape(type(shape) == "table" and infer(self, shape) or shape, "reshape")
  local count = 1
  for i = 1, #dims do count = count * dims[i] end
  if count ~= self.count then
    fail("reshape: shape %s has %s and does not become %s", class.shape_text(self.dims),
      text.count(self.count, "element"),
      class.shape_text(shape))
  end
  return share(self, dims)
end

---All elements as a vector, in the same memory.
---@return cq.Tensor
function Tensor:flatten() return share(class.check_tensor(self, "flatten"), { self.count }) end

---The same memory with a dimension of size 1 more, at a place.
---@param dim integer  from 1 to rank + 1, negative from the end
---@return cq.Tensor
function Tensor:unsqueeze(dim)
  class.check_tensor(self, "unsqueeze")
  dim = class.check_dim(self.rank + 1, dim, "unsqueeze")
  local dims = {}
  for i = 1, dim - 1 do dims[i] = self.dims[i] end
  dims[dim] = 1
  for i = dim, self.rank do dims[i + 1] = self.dims[i] end
  return share(self, class.check_shape(dims, "unsqueeze"))
end

---The same memory without a dimension of size 1, or without all of these. Errors: the named one has a wrong size.
---@param dim integer?     none: all of size 1
---@return cq.Tensor
function Tensor:squeeze(dim)
  class.check_tensor(self, "squeeze")
  if dim then
    dim = class.check_dim(self.rank, dim, "squeeze")
    if self.dims[dim] ~= 1 then fail("squeeze: dimension %d has size %d, not 1", dim, self.dims[dim]) end
  end
  local dims = {}
  for i, size in ipairs(self.dims) do
    if dim and i ~= dim or not dim and size ~= 1 then dims[#dims + 1] = size end
  end
  return share(self, dims)
end

---The same numbers, in the same memory, as plain data: no gradient passes. While a gradient is computed that needs them
---they cannot be changed there.
---@return cq.Tensor
function Tensor:detach()
  if self.requires_grad then tape.hold(self) end
  return class.wrap(self.pointer, self.count, self.rank, self.dims)
end

-- ---- by strides -----------------------------------------------------------------------------------------------------

local strided = ffi.new "cq_layout"

-- Copies elements of the array a to b, or adds them (accumulate: 1), for a shape and the strides `from` in a and `to`
-- in b.
local function move(shape, from, to, accumulate, a, b)
  local rank = #shape
  strided.rank = rank
  for i = 1, rank do
    strided.shape[i - 1], strided.stride_a[i - 1], strided.stride_b[i - 1] = shape[i], from[i], to[i]
  end
  C.cq_tensor_copy(strided, accumulate, a, b)
end

-- For each dimension, the distance in elements from one entry to the next, as a list.
local function strides_of(dims)
  local strides, stride = {}, 1
  for i = #dims, 1, -1 do
    strides[i] = stride
    stride = stride * dims[i]
  end
  return strides
end

-- Adjoint of a piece of a tensor: adds its gradient to that of the tensor, where the piece was taken from.
local function piece_back(node, gradient)
  local e = node.extra
  move(e.shape, e.to, e.from, 1, gradient + e.to_offset, adjoint(node.a) + e.from_offset)
end

-- A new tensor of this shape, copied from t by the strides `from` and an offset in elements, recorded on the tape.
local function pick(t, shape, from, offset)
  local out = class.make(shape)
  local to = strides_of(shape)
  move(shape, from, to, 0, t.pointer + offset, out.pointer)
  if tape.wants(t) then
    return tape.push(piece_back, out, t, nil, { shape = shape, from = from, to = to, from_offset = offset,
      to_offset = 0 })
  end
  return out
end

---Dimensions in another order. Errors: not each dimension once.
---@param order integer[]  each dimension once
---@return cq.Tensor
function Tensor:permute(order)
  class.check_tensor(self, "permute")
  local dims, from, seen, strides = {}, {}, {}, strides_of(self.dims)
  if type(order) ~= "table" or #order ~= self.rank then
    fail("permute: needs a list of the %d dimensions in their new order, got %s", self.rank, schema.describe(order))
  end
  for i, dim in ipairs(order) do
    dim = class.check_dim(self.rank, dim, "permute")
    if seen[dim] then fail("permute: dimension %d is named twice", dim) end
    seen[dim], dims[i], from[i] = true, self.dims[dim], strides[dim]
  end
  return pick(self, dims, from, 0)
end

---Two dimensions exchanged; the last two if none are named. Errors: rank 0 or 1.
---@param i? integer
---@param j? integer
---@return cq.Tensor
function Tensor:transpose(i, j)
  class.check_tensor(self, "transpose")
  if self.rank < 2 then fail("transpose: needs two dimensions, the shape is %s", class.shape_text(self.dims)) end
  i, j = class.check_dim(self.rank, i or -2, "transpose"), class.check_dim(self.rank, j or -1, "transpose")
  local order = {}
  for d = 1, self.rank do order[d] = d end
  order[i], order[j] = j, i
  return self:permute(order)
end

---Repeats along dimensions of size 1, and along new ones in front. Errors: a shape that another size than 1 would have
---to stretch to.
---@param shape integer[]   sizes that it stretches to
---@return cq.Tensor
function Tensor:expand(shape)
  class.check_tensor(self, "expand")
  shape = class.check_shape(shape, "expand")
  if class.same_dims(self.dims, shape) then return self end
  local from, strides, lead = {}, strides_of(self.dims), #shape - self.rank
  for i = 1, math.max(#shape, self.rank) do
    local own = lead < 0 and 0 or self.dims[i - lead]
    if own and own ~= shape[i] and own ~= 1 or lead < 0 then
      fail("expand: shape %s does not stretch to %s", class.shape_text(self.dims), class.shape_text(shape))
    end
    from[i] = (own == nil or own == 1) and 0 or strides[i - lead]
  end
  return pick(self, shape, from, 0)
end

---Entries i to j along a dimension, both included. j = i - 1 gives none. Errors: numbers beyond the entries.
---@param i integer    from 1, negative from the end
---@param j integer?   default the last
---@param dim integer? default 1
---@return cq.Tensor
function Tensor:slice(i, j, dim)
  class.check_tensor(self, "slice")
  dim = class.check_dim(self.rank, dim or 1, "slice")
  local size = self.dims[dim]
  -- A user's index as a number from 1; negative ones count from the end. name: "first" or "last", for errors.
  local function position(value, name)
    if type(value) ~= "number" or value % 1 ~= 0 then
      fail("slice: the %s must be a whole number, got %s", name, schema.describe(value))
    end
    return value < 0 and size + 1 + value or value
  end
  local first, last = position(i, "first"), position(j or -1, "last")
  if first < 1 or last > size or last < first - 1 then
    fail("slice: %s to %s is not within the %d entries of dimension %d", tostring(i), tostring(j or -1), size, dim)
  end
  local shape, strides = {}, strides_of(self.dims)
  for d = 1, self.rank do shape[d] = self.dims[d] end
  shape[dim] = last - first + 1
  return pick(self, shape, strides, (first - 1) * strides[dim])
end

-- Adjoint of t[i], the most frequent of all reads, and so without strides: adds to row i of the gradient of t.
local function row_back(node, gradient)
  local to, offset = adjoint(node.a), node.extra
  for i = 0, node.out.count - 1 do to[offset + i] = to[offset + i] + gradient[i] end
end

-- t[i]: entry i along the first dimension, from 1 or from the end by a negative one, as a copy, recorded on the tape.
-- Errors: rank 0; an index beyond the entries.
function class.element(t, index)
  if t.rank == 0 then fail("t[%s]: a tensor of rank 0 has no entries; t:item() is its number", tostring(index)) end
  index = class.check_index(t.dims[1], index, "t[i]")
  local dims = {}
  for i = 2, t.rank do dims[i - 1] = t.dims[i] end
  local out = class.make_entry(dims)
  local offset = index * out.count
  ffi.copy(out.pointer, t.pointer + offset, out.count * 8)
  if tape.wants(t) then return tape.push(row_back, out, t, nil, offset) end
  return out
end

---Iterates over the first dimension: for i, row in t:rows() do. Errors: rank 0.
---@return fun(): integer?, cq.Tensor?
function Tensor:rows()
  class.check_tensor(self, "rows")
  if self.rank == 0 then fail("rows: a tensor of rank 0 has no rows") end
  local i = 0
  return function()
    i = i + 1
    if i <= self.dims[1] then return i, self[i] end
  end
end

-- ---- by index -------------------------------------------------------------------------------------------------------

-- Adjoint of gather: adds each gradient to that of the entry that was picked.
local function gather_back(node, gradient)
  local e = node.extra
  C.cq_tensor_gather_adj(reduction.set_extent(e.outer, e.axis, e.inner), e.count, e.index, adjoint(node.a), gradient)
end

---Entries by their numbers along a dimension; repeated ones get the sum of their gradients. Errors: no list; a number
---beyond the entries.
---@param list integer[]|cq.Tensor  from 1, negative from the end
---@param dim integer?              default 1
---@return cq.Tensor
function Tensor:gather(list, dim)
  class.check_tensor(self, "gather")
  dim = class.check_dim(self.rank, dim or 1, "gather")
  if class.is_tensor(list) then list = list:flatten():totable() end
  if type(list) ~= "table" then fail("gather: needs a list of indices, got %s", schema.describe(list)) end
  local count, size = #list, self.dims[dim]
  local index = ffi.new("int64_t[?]", count)
  for i = 1, count do index[i - 1] = class.check_index(size, list[i], "gather") end
  local outer, axis, inner = reduction.around(self.dims, dim)
  local dims = {}
  for d = 1, self.rank do dims[d] = d == dim and count or self.dims[d] end
  local out = class.make(dims)
  C.cq_tensor_gather(reduction.set_extent(outer, axis, inner), count, index, self.pointer, out.pointer)
  if tape.wants(self) then
    return tape.push(gather_back, out, self, nil, { outer = outer, axis = axis, inner = inner, count = count,
      index = index })
  end
  return out
end

local REPEATED_MOST = 2^26         -- entries along the dimension: a list of Lua holds no more

---n copies after one another along a dimension. Errors: n is negative, no whole number, or gives more than 2^26
---entries.
---@param n integer
---@param dim integer?  default 1
---@return cq.Tensor
function Tensor:repeated(n, dim)
  class.check_tensor(self, "repeated")
  dim = class.check_dim(self.rank, dim or 1, "repeated")
  local list, size = {}, self.dims[dim]
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 then
    fail("repeated: needs a whole number, got %s", schema.describe(n))
  elseif n * size > REPEATED_MOST then
    fail("repeated: %s copies of %d along dimension %d are more than the %d that are allowed", text.number(n), size, dim,
      REPEATED_MOST)
  end
  for k = 1, n * size do list[k] = (k - 1) % size + 1 end
  return self:gather(list, dim)
end

-- ---- joining --------------------------------------------------------------------------------------------------------

-- Adjoint of concat and stack: adds the parts of the gradient to the gradients of the tensors that were joined.
local function parts_back(node, gradient)
  for k, t in ipairs(node.a) do
    local to = adjoint(t)
    local e = node.extra[k]
    if to then move(t.dims, e.to, e.from, 1, gradient + e.offset, to) end
  end
end

-- Copies tensors into `out`, of the sizes dims, each at its offset along dimension `dim`, recorded on the tape; returns
-- `out`.
local function assemble(parts, offsets, dims, dim, out)
  local wanted, places = false, {}
  local to = strides_of(dims)
  for k, t in ipairs(parts) do
    local from, offset = strides_of(t.dims), offsets[k] * to[dim]
    move(t.dims, from, to, 0, t.pointer, out.pointer + offset)
    places[k] = { from = from, to = to, offset = offset }
    wanted = wanted or t.requires_grad
  end
  if wanted and tape.recording() then return tape.push(parts_back, out, parts, nil, places) end
  return out
end

local layout = {}

-- The tensors of a list that are to be joined; numbers become tensors of rank 0. Errors: no list, or an empty one;
-- other entries.
local function parts_of(list, what)
  if type(list) ~= "table" or class.is_tensor(list) or #list == 0 then
    fail("%s: needs a list of at least one tensor, got %s", what, schema.describe(list))
  end
  local parts = {}
  for i, t in ipairs(list) do
    parts[i] = type(t) == "number" and class.scalar(t) or class.check_tensor(t, what .. ": entry " .. i)
  end
  return parts
end

---Joins tensors along a dimension that they have; numbers and rank 0 count as {1}. Errors: shapes that differ along
---another dimension; an empty list.
---@param list (cq.Tensor|number)[]   of one shape but for this dimension
---@param dim integer?   default 1
---@return cq.Tensor
function layout.concat(list, dim)
  local parts = parts_of(list, "concat")
  for i, t in ipairs(parts) do
    if t.rank == 0 then parts[i] = t:reshape { 1 } end
  end
  local first = parts[1]
  dim = class.check_dim(first.rank, dim or 1, "concat")
  local dims, offsets, size = {}, {}, 0
  for i, t in ipairs(parts) do
    for d = 1, math.max(t.rank, first.rank) do
      if t.rank ~= first.rank or d ~= dim and t.dims[d] ~= first.dims[d] then
        fail("concat: entry %d has shape %s, which does not join %s along dimension %d", i, class.shape_text(t.dims),
          class.shape_text(first.dims), dim)
      end
    end
    offsets[i] = size
    size = size + t.dims[dim]
  end
  for d = 1, first.rank do dims[d] = d == dim and size or first.dims[d] end
  return assemble(parts, offsets, dims, dim, class.make(dims))
end

---Joins tensors of one shape along a new dimension. Errors: shapes that differ; an empty list.
---@param list (cq.Tensor|number)[]
---@param dim integer?   of the result, default 1
---@return cq.Tensor
function layout.stack(list, dim)
  local parts = parts_of(list, "stack")
  local shape = parts[1].dims
  for i, t in ipairs(parts) do
    if not class.same_dims(t.dims, shape) then
      fail("stack: entry %d has shape %s, the first has %s", i, class.shape_text(t.dims), class.shape_text(shape))
    end
    parts[i] = t:unsqueeze(dim or 1)
  end
  return layout.concat(parts, dim)
end

---More entries before and after along a dimension.
---@param counts integer[]  { before, after }
---@param dim integer?      default 1
---@param value number?     of the new entries, default 0
---@return cq.Tensor
function Tensor:pad(counts, dim, value)
  class.check_tensor(self, "pad")
  dim = class.check_dim(self.rank, dim or 1, "pad")
  schema.argument("pad", "counts", schema.vector { size = 2, integer = true, min = 0 }, counts)
  value = schema.argument("pad", "value", schema.number { default = 0, infinite = true }, value)
  local dims = {}
  for d = 1, self.rank do dims[d] = self.dims[d] end
  dims[dim] = dims[dim] + counts[1] + counts[2]
  local out = class.make(dims)
  C.cq_tensor_fill(out.count, value, out.pointer)
  return assemble({ self }, { counts[1] }, dims, dim, out)
end

return layout
