-- elementwise: arithmetic and functions of each element, with broadcasting.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local C = require("cq.base.engine").C

local Tensor, meta = class.methods, class.meta
local is_tensor, adjoint, fail = class.is_tensor, class.adjoint, schema.fail

-- ---- broadcasting ---------------------------------------------------------------------------------------------------

-- the engine's description of one call; filled anew for each, so one of each kind is enough
local flat, general = ffi.new "cq_layout", ffi.new "cq_layout"
flat.rank = 1

-- The engine's layout of an operation on two tensors of `count` elements without broadcasting; stride 0 for a tensor of
-- one number. It is one struct, which the next call overwrites.
local function flat_layout(count, stride_a, stride_b)
  flat.shape[0], flat.stride_a[0], flat.stride_b[0] = count, stride_a, stride_b
  return flat
end

-- Raises an error: the shapes of two tensors do not fit.
local function refuse(what, a, b)
  fail("%s: shapes %s and %s do not fit; from the last dimension on, sizes must be equal or 1", what,
    class.shape_text(a.dims), class.shape_text(b.dims))
end

-- Writes the strides of t into `to` as for a tensor of this rank: aligned at the last dimension, 0 along those that are
-- broadcast.
local function fill_strides(to, t, rank)
  local stride = 1
  for i = rank, 1, -1 do
    local own = i - rank + t.rank
    local size = own >= 1 and t.dims[own] or 1
    to[i - 1] = size == 1 and 0 or stride
    stride = stride * size
  end
end

-- The engine's layout of an operation on two tensors broadcast to one shape, a struct that the next call overwrites,
-- and that shape. Errors: sizes that differ and are not 1.
local function general_layout(what, a, b)
  local rank = math.max(a.rank, b.rank)
  local dims = {}
  for i = rank, 1, -1 do
    local m, n = a.dims[i - rank + a.rank] or 1, b.dims[i - rank + b.rank] or 1
    if m ~= n and m ~= 1 and n ~= 1 then refuse(what, a, b) end
    dims[i] = m == 1 and n or m
    general.shape[i - 1] = dims[i]
  end
  general.rank = rank
  fill_strides(general.stride_a, a, rank)
  fill_strides(general.stride_b, b, rank)
  return general, dims
end

-- The engine's layout for a op b with broadcasting, a struct that the next call overwrites, and the shape of the
-- result.
local function layout_of(what, a, b)
  if a.dims == b.dims then return flat_layout(a.count, 1, 1), a.dims end
  if b.count == 1 and b.rank <= a.rank then return flat_layout(a.count, 1, 0), a.dims end
  if a.count == 1 and a.rank <= b.rank then return flat_layout(b.count, 0, 1), b.dims end
  if class.same_dims(a.dims, b.dims) then return flat_layout(a.count, 1, 1), a.dims end
  return general_layout(what, a, b)
end

-- ---- two operands ---------------------------------------------------------------------------------------------------

local names = {}              -- of the operations, for errors
local pair = ffi.new "const double *[2]"

-- Adjoint of a function of two tensors: adds to the gradients of both.
local function binary_back(node, gradient)
  local a, b, op = node.a, node.b, node.extra
  pair[0], pair[1] = a.pointer, b.pointer
  local grad_a, grad_b = adjoint(a), adjoint(b)
  C.cq_tensor_binary_adj(op, layout_of("", a, b), pair, grad_a, grad_b, gradient)
end

-- A number as a tensor of rank 0; a tensor unchanged. what: the operation, for errors. Errors: neither.
local function operand(what, value)
  if type(value) == "number" then return class.scalar(value) end
  if not is_tensor(value) then fail("%s: needs a tensor or a number, got %s", what, schema.describe(value)) end
  return value
end

local first_of_factors, first_without_gradient = C.CQ_BINARY_MULTIPLY, C.CQ_BINARY_LESS   -- sums need no operands

-- Gives the result of an operation on a record of a rollout the times of the record, for tensor:at, if both have one
-- shape: 1000 * roll.record is a record in other units. Two records of different control steps have no common times.
local function keep_times(out, a, b)
  local first, second = rawget(a, "period"), rawget(b, "period")
  local record = first and a or second and b
  if record and (first or second) == (second or first) and class.same_dims(out.dims, record.dims) then
    rawset(out, "period", first or second)
  end
end

-- An element-wise operation of the engine on two tensors or numbers, with broadcasting, recorded on the tape.
local function binary(op, a, b)
  local what = names[op]
  local writable_a, writable_b = is_tensor(a), is_tensor(b)       -- numbers are in a tensor that nobody else has
  if not writable_a then a = operand(what, a) end
  if not writable_b then b = operand(what, b) end
  local layout, dims = layout_of(what, a, b)
  local out = class.make(dims)
  C.cq_tensor_binary(op, layout, a.pointer, b.pointer, out.pointer)
  keep_times(out, a, b)
  if op >= first_without_gradient or not tape.wants(a, b) then return out end
  if op >= first_of_factors then
    tape.hold_plain(writable_a and a, writable_b and b)
  end
  return tape.push(binary_back, out, a, b, op)
end

-- Makes the function of a binary operation of the engine; name: for errors.
local function declare(op, name)
  op = tonumber(op)
  names[op] = name
  return function(a, b) return binary(op, a, b) end
end

meta.__add = declare(C.CQ_BINARY_ADD, "a + b")
meta.__sub = declare(C.CQ_BINARY_SUBTRACT, "a - b")
meta.__mul = declare(C.CQ_BINARY_MULTIPLY, "a * b")
meta.__div = declare(C.CQ_BINARY_DIVIDE, "a / b")
meta.__pow = declare(C.CQ_BINARY_POWER, "a ^ b")
Tensor.pow = meta.__pow
Tensor.minimum = declare(C.CQ_BINARY_MINIMUM, "minimum")
Tensor.maximum = declare(C.CQ_BINARY_MAXIMUM, "maximum")
Tensor.atan2 = declare(C.CQ_BINARY_ATAN2, "atan2")
Tensor.less = declare(C.CQ_BINARY_LESS, "less")
Tensor.less_equal = declare(C.CQ_BINARY_LESS_EQUAL, "less_equal")
Tensor.equals = declare(C.CQ_BINARY_EQUAL, "equals")

---1 where an element is greater, else 0; no gradient.
---@param other cq.Tensor|number
---@return cq.Tensor
function Tensor:greater(other) return binary(C.CQ_BINARY_LESS, other, self) end

---1 where an element is greater or equal, else 0; no gradient.
---@param other cq.Tensor|number
---@return cq.Tensor
function Tensor:greater_equal(other) return binary(C.CQ_BINARY_LESS_EQUAL, other, self) end

-- Raises an error: tensors have no remainder.
meta.__mod = function()
  fail("a %% b: tensors have no remainder; use a - b * (a / b):floor()")
end

-- Makes the metamethod of < or <=, f of two numbers, for tensors of one element. Lua itself raises an error for a
-- tensor and a number.
local function compare(what, f)
  return function(a, b)
    if a.count ~= 1 or b.count ~= 1 then
      fail("%s: compares tensors of one element, got shapes %s and %s; elementwise are a:less(b), a:less_equal(b)",
        what,
        class.shape_text(a.dims), class.shape_text(b.dims))
    end
    return f(class.number(a.pointer, 0), class.number(b.pointer, 0))
  end
end
meta.__lt = compare("a < b", function(x, y) return x < y end)
meta.__le = compare("a <= b", function(x, y) return x <= y end)

-- ---- one operand ----------------------------------------------------------------------------------------------------

-- Adjoint of a function of one tensor: adds to its gradient.
local function unary_back(node, gradient)
  local a, out = node.a, node.out
  C.cq_tensor_unary_adj(node.extra, a.count, a.pointer, out.pointer, adjoint(a), gradient)
end

local first_unary_without_gradient = C.CQ_UNARY_SIGN

-- Applies an elementwise function of the engine to a tensor, recorded on the tape.
local function unary(op, a)
  local out = class.like(a)
  C.cq_tensor_unary(op, a.count, a.pointer, out.pointer)
  keep_times(out, a, a)
  if op < first_unary_without_gradient and tape.wants(a) then return tape.push(unary_back, out, a, nil, op) end
  return out
end

local unaries = {
  neg = C.CQ_UNARY_NEGATE, abs = C.CQ_UNARY_ABS, square = C.CQ_UNARY_SQUARE, sqrt = C.CQ_UNARY_SQRT,
  exp = C.CQ_UNARY_EXP,
  log = C.CQ_UNARY_LOG, sin = C.CQ_UNARY_SIN, cos = C.CQ_UNARY_COS, tan = C.CQ_UNARY_TAN, asin = C.CQ_UNARY_ASIN,
  acos = C.CQ_UNARY_ACOS, atan = C.CQ_UNARY_ATAN, tanh = C.CQ_UNARY_TANH, sigmoid = C.CQ_UNARY_SIGMOID,
  relu = C.CQ_UNARY_RELU, softplus = C.CQ_UNARY_SOFTPLUS, elu = C.CQ_UNARY_ELU,
  sign = C.CQ_UNARY_SIGN, floor = C.CQ_UNARY_FLOOR, round = C.CQ_UNARY_ROUND,
}
for name, op in pairs(unaries) do
  op = tonumber(op)
  -- A tensor with the function `name` of each element, such as exp, recorded on the tape.
  Tensor[name] = function(t)
    if not is_tensor(t) then class.check_tensor(t, name) end
    return unary(op, t)
  end
end
meta.__unm = Tensor.neg

-- ---- choice ---------------------------------------------------------------------------------------------------------

---Within [min, max]; either may be nil. The gradient passes inside and on the bounds, and stops outside.
---@param min number|cq.Tensor|nil
---@param max number|cq.Tensor|nil
---@return cq.Tensor
function Tensor:clamp(min, max)
  if min == nil and max == nil then fail("clamp: needs a least value, a greatest value, or both") end
  local out = self
  if min ~= nil then out = out:maximum(min) end
  if max ~= nil then out = out:minimum(max) end
  return out
end

-- Adjoint of mask:select(a, b): adds the gradient to that of a where the mask is not 0, else to that of b.
local function select_back(node, gradient)
  local mask, a, b, count = node.extra, node.a, node.b, node.out.count
  local part = class.like(node.out)
  for i = 1, 2 do
    local t = i == 1 and a or b
    local to = adjoint(t)
    if to then
      C.cq_tensor_select(count, mask.pointer, i == 1 and gradient or nil, i == 2 and gradient or nil, part.pointer)
      C.cq_tensor_copy(flat_layout(count, 1, 1), 1, part.pointer, to)
    end
  end
end

---a where this tensor, the mask, is not 0, else b; all three broadcast. Gradients flow to the selected side only, nan
---of the other side has no effect.
---@param a cq.Tensor|number
---@param b cq.Tensor|number
---@return cq.Tensor
function Tensor:select(a, b)
  a, b = operand("select", a), operand("select", b)
  local _, dims = general_layout("select", a, b)
  _, dims = general_layout("select", self, { dims = dims, rank = #dims })
  local mask = class.wrap(self.pointer, self.count, self.rank, self.dims):expand(dims)
  a, b = a:expand(dims), b:expand(dims)
  local out = class.make(dims)
  C.cq_tensor_select(out.count, mask.pointer, a.pointer, b.pointer, out.pointer)
  if tape.wants(a, b) then
    tape.hold(mask)
    return tape.push(select_back, out, a, b, mask)
  end
  return out
end

return { flat_layout = flat_layout }
