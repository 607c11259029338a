-- class: a tensor in memory, and the smallest operations, on which all others rest.
--
-- Fields of a tensor (read only for others): pointer (double*), count, rank, dims (a list that is never
-- changed, so that tensors share it), requires_grad, adjoint (double* of the accumulated gradient, or false).
-- Params also have trainable and bounds.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local storage = require "cq.tensor.storage"
local engine = require "cq.base.engine"
local C = engine.C

local class = {}

---@class cq.Tensor
---@field rank integer              number of dimensions, 0 to 6
---@field count integer             number of elements
---@field requires_grad boolean     does it depend on something that wants a gradient
---@field grad cq.Tensor?           accumulated gradient, of the same shape
---@field trainable boolean?        true for cq.param
---@field period number?          of what a rollout recorded: time between two rows [time]
---@field bounds { min: number?, max: number?, rate: number? }?   of a param, with its own rate
---@field [integer] cq.Tensor       element or row
---@field pow fun(self: cq.Tensor, exponent: cq.Tensor|number): cq.Tensor   t ^ exponent, elementwise
---@field minimum fun(self: cq.Tensor, other: cq.Tensor|number): cq.Tensor   elementwise; the first operand has the gradient at a tie
---@field maximum fun(self: cq.Tensor, other: cq.Tensor|number): cq.Tensor   elementwise; the first operand has the gradient at a tie
---@field atan2 fun(self: cq.Tensor, x: cq.Tensor|number): cq.Tensor   angle of the point (x, t) in radian
---@field less fun(self: cq.Tensor, other: cq.Tensor|number): cq.Tensor   1 where t is less, else 0; no gradient
---@field less_equal fun(self: cq.Tensor, other: cq.Tensor|number): cq.Tensor   1 where t is less or equal, else 0; no gradient
---@field equals fun(self: cq.Tensor, other: cq.Tensor|number): cq.Tensor   1 where t is equal, else 0; no gradient
---@field neg fun(self: cq.Tensor): cq.Tensor   -t
---@field abs fun(self: cq.Tensor): cq.Tensor   absolute value; subgradient 0 at 0
---@field square fun(self: cq.Tensor): cq.Tensor   t * t
---@field sqrt fun(self: cq.Tensor): cq.Tensor   square root; infinite gradient at 0, norm has none
---@field exp fun(self: cq.Tensor): cq.Tensor   e^x
---@field log fun(self: cq.Tensor): cq.Tensor   natural logarithm
---@field sin fun(self: cq.Tensor): cq.Tensor   of radians
---@field cos fun(self: cq.Tensor): cq.Tensor   of radians
---@field tan fun(self: cq.Tensor): cq.Tensor   of radians
---@field asin fun(self: cq.Tensor): cq.Tensor   in radian
---@field acos fun(self: cq.Tensor): cq.Tensor   in radian
---@field atan fun(self: cq.Tensor): cq.Tensor   in radian
---@field tanh fun(self: cq.Tensor): cq.Tensor   hyperbolic tangent
---@field sigmoid fun(self: cq.Tensor): cq.Tensor   1 / (1 + e^-x)
---@field relu fun(self: cq.Tensor): cq.Tensor   max(0, x); subgradient 0 at 0
---@field softplus fun(self: cq.Tensor): cq.Tensor     log(1 + e^x)
---@field elu fun(self: cq.Tensor): cq.Tensor    x, or e^x - 1 where x is below 0
---@field sign fun(self: cq.Tensor): cq.Tensor   -1, 0, 1; no gradient
---@field floor fun(self: cq.Tensor): cq.Tensor   largest whole number that is not above; no gradient
---@field round fun(self: cq.Tensor): cq.Tensor   to the nearest whole number, halves away from 0; no gradient
---@field sum fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   of all, or over one or several dimensions; keep leaves size 1
---@field mean fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   arithmetic mean; dimensions as of sum
---@field prod fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   product; dimensions as of sum
---@field max fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   largest element; the first of equals has the gradient
---@field min fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   smallest element; the first of equals has the gradient
---@field norm fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   Euclidean; subgradient 0 at the zero vector
---@field logsumexp fun(self: cq.Tensor, dim?: integer|integer[], keep?: boolean): cq.Tensor   log of the sum of e^x, without overflow
---@field argmax fun(self: cq.Tensor, dim?: integer, keep?: boolean): cq.Tensor   place of the largest element, from 1; no gradient
---@field argmin fun(self: cq.Tensor, dim?: integer, keep?: boolean): cq.Tensor   place of the smallest element, from 1; no gradient
---@operator add(cq.Tensor|number): cq.Tensor
---@operator sub(cq.Tensor|number): cq.Tensor
---@operator mul(cq.Tensor|number): cq.Tensor
---@operator div(cq.Tensor|number): cq.Tensor
---@operator pow(cq.Tensor|number): cq.Tensor
---@operator unm: cq.Tensor
local Tensor = {}                    -- methods
class.methods = Tensor

local meta = { __name = "cq.Tensor" }
class.meta = meta

local rank_max = C.CQ_TENSOR_RANK_MAX
local fail = schema.fail
local zeros, empty = storage.zeros, storage.empty

-- ---- elements as numbers --------------------------------------------------------------------------------------------

local words = ffi.typeof "const uint32_t *"

---An element of memory that a user may have filled, as a number: its upper half is looked at first, since LuaJIT takes
---the bits of some NaNs for other values (cq_tensor_canonical).
---@param pointer ffi.cdata*   double*
---@param at integer           from 0
---@return number
function class.number(pointer, at)
  if ffi.cast(words, pointer)[2 * at + 1] > 0xfff80000 then return 0 / 0 end
  return pointer[at]
end

---Tensors that a gradient is computed by at this moment: their numbers must stay as they are.
---@type table<cq.Tensor, true?>
class.locked = {}

-- ---- making ---------------------------------------------------------------------------------------------------------

-- A tensor of `count` numbers in given memory (double*), which it does not check or copy; it keeps the list dims.
local function wrap(pointer, count, rank, dims)
  return setmetatable({
    pointer = pointer, count = count, rank = rank, dims = dims, requires_grad = false, adjoint = false,
  }, meta)
end

---A tensor over existing memory of the right size.
class.wrap = wrap

local scalar_dims = {}

---A new tensor of one number.
---@param value number
---@return cq.Tensor  rank 0
function class.scalar(value)
  local pointer = zeros(1)
  pointer[0] = value
  return wrap(pointer, 1, 0, scalar_dims)
end

---A new tensor of the shape of t, its numbers not initialised.
---@return cq.Tensor
function class.like(t)
  return wrap(empty(t.count), t.count, t.rank, t.dims)
end

---A new tensor of zeros of the shape of t.
---@return cq.Tensor
function class.zeros(t) return wrap(zeros(t.count), t.count, t.rank, t.dims) end

---A copy of a tensor in memory of its own, without its gradient; of a param another param with the same bounds and
---rate.
---@return cq.Tensor
function class.twin(t)
  local out = class.like(t)
  ffi.copy(out.pointer, t.pointer, t.count * 8)
  if t.trainable then
    rawset(out, "trainable", true)
    rawset(out, "bounds", { min = t.bounds.min, max = t.bounds.max, rate = t.bounds.rate })
    out.requires_grad = true
  end
  return out
end

---A new tensor of given dimensions, its numbers not initialised. It keeps the list, which must not be changed.
---@param dims integer[]
---@return cq.Tensor
function class.make(dims)
  local count, rank = 1, #dims
  for i = 1, rank do count = count * dims[i] end
  return wrap(empty(count), count, rank, dims)
end

---Returns a copy of a shape that a user gave, a list of sizes or one size. Errors: no such list; sizes that are no
---whole numbers; too many dimensions.
---@return integer[] dims  a copy
function class.check_shape(shape, what)
  if type(shape) == "number" then shape = { shape } end
  if type(shape) ~= "table" or getmetatable(shape) then
    fail("%s: a shape is a list of sizes, got %s", what, schema.describe(shape))
  end
  local dims = {}
  for i, size in ipairs(shape) do
    if type(size) ~= "number" or size < 0 or size % 1 ~= 0 or size >= 2^31 then
      fail("%s: size %d of the shape must be a whole number from 0 to 2147483647, got %s", what, i,
        schema.describe(size))
    end
    dims[i] = size
  end
  for key in pairs(shape) do
    if not dims[key] then fail("%s: a shape is a list of sizes, got an entry at %s", what, tostring(key)) end
  end
  if #dims > rank_max then fail("%s: a tensor has at most %d dimensions, got %d", what, rank_max, #dims) end
  return dims
end

---A shape as text: "{2, 3}".
---@param dims integer[]
---@return string
function class.shape_text(dims)
  return "{" .. table.concat(dims, ", ") .. "}"
end

---A new tensor for entry t[i] of another one, its numbers not initialised. It is a copy of that entry, so that a number
---written into it would be lost on t: its field is_entry lets that be refused.
---@param dims integer[]        kept, as by class.make
---@return cq.Tensor
function class.make_entry(dims)
  local count, rank = 1, #dims
  for i = 1, rank do count = count * dims[i] end
  return setmetatable({
    pointer = empty(count), count = count, rank = rank, dims = dims, requires_grad = false, adjoint = false,
    is_entry = true,
  }, meta)
end

---Is this a tensor?
---@param value any
---@return boolean
local function is_tensor(value)
  return type(value) == "table" and getmetatable(value) == meta
end
class.is_tensor = is_tensor

---Returns a tensor unchanged. Errors: anything else, as a method called with a dot has it.
---@param value any
---@param what string          for the error
---@return cq.Tensor
function class.check_tensor(value, what)
  if not is_tensor(value) then fail("%s: needs a tensor, got %s", what, schema.describe(value)) end
  return value
end

---Returns a dimension of a user's as a number from 1; given from 1, or from the end by a negative one. Errors: there is
---no such dimension.
---@param rank integer
---@param dim any
---@param what string          for the error
---@return integer
function class.check_dim(rank, dim, what)
  if type(dim) ~= "number" or dim % 1 ~= 0 or dim == 0 or dim > rank or dim < -rank then
    if rank == 0 then fail("%s: a tensor of rank 0 has no dimension %s", what, schema.describe(dim)) end
    fail("%s: a dimension is a whole number from 1 to %d, or negative from the end, got %s", what, rank,
      schema.describe(dim))
  end
  return dim < 0 and rank + 1 + dim or dim
end

---Returns an index of a user's as an offset from 0. Errors: beyond the size, or no whole number.
---@param size integer         of the dimension
---@param index any            from 1, or from the end by a negative one
---@param what string          for the error
---@return integer
function class.check_index(size, index, what)
  if type(index) ~= "number" or index % 1 ~= 0 or index == 0 or index > size or index < -size then
    if size == 0 then fail("%s: the dimension is empty and has no entry %s", what, schema.describe(index)) end
    fail("%s: an index is a whole number from 1 to %d, or negative from the end, got %s", what, size,
      schema.describe(index))
  end
  return index < 0 and size + index or index - 1
end

---Have two lists of sizes the same entries?
---@param a integer[]
---@param b integer[]
---@return boolean
function class.same_dims(a, b)
  if a == b then return true end
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- ---- gradients ------------------------------------------------------------------------------------------------------

---The memory (double {count}) where the gradient of t is collected, made of zeros at the first call; nil if t wants no
---gradient.
---@return ffi.cdata*?
function class.adjoint(t)
  if not t.requires_grad then return nil end
  local adjoint = t.adjoint
  if not adjoint then
    adjoint = zeros(t.count)
    t.adjoint = adjoint
    local touched = class.touched
    if touched then touched[#touched + 1] = t end
  end
  return adjoint
end

---Where a gradient is computed within another one: the tensors that it has begun to carry gradients to.
---@type cq.Tensor[]|false
class.touched = false

---Adds a gradient to that of the tensor, in place; does nothing if the tensor needs none.
---@param grad cq.Tensor|number|nil   of the same shape, a number for one element; nil: nothing
function Tensor:accumulate(grad)
  class.check_tensor(self, "accumulate")
  if grad == nil or not self.requires_grad then return end
  if type(grad) == "number" and self.count == 1 then grad = class.scalar(grad) end
  class.check_tensor(grad, "accumulate")
  if grad.count ~= self.count or not (class.same_dims(grad.dims, self.dims) or self.count == 1) then
    fail("accumulate: a gradient has the shape of its tensor, %s, got %s", class.shape_text(self.dims),
      class.shape_text(grad.dims))
  end
  local to, from = class.adjoint(self), grad:data()
  for i = 0, self.count - 1 do to[i] = to[i] + from[i] end
end

---Forgets the tensor's gradient: t.grad is nil then.
function Tensor:zero_grad()
  self.adjoint = false
end

-- ---- fields and elements --------------------------------------------------------------------------------------------

-- t.NAME is a method or a field, t.grad a copy of the gradient (nil: none), and t[i] entry i of the first dimension.
function meta.__index(t, key)
  local method = Tensor[key]
  if method ~= nil then return method end
  if type(key) == "number" then return class.element(t, key) end
  if key ~= "grad" or not t.adjoint then return nil end
  -- a copy: a tape gives the memory of its own gradients back when it has used them
  local grad = class.like(t)
  ffi.copy(grad.pointer, t.adjoint, t.count * 8)
  return grad
end

-- t[i] = x sets entry i of the first dimension, and t.grad = x the gradient (nil: none). Errors: another field.
function meta.__newindex(t, key, value)
  if type(key) == "number" then return class.set_element(t, key, value) end
  if key == "grad" then
    t.adjoint = false
    if value ~= nil then t:accumulate(value) end
    return
  end
  fail("cq.Tensor: has no field %s to set", tostring(key))
end

return class
