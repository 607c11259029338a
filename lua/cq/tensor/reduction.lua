-- reduction: sums, means, extremes and products over dimensions; and what runs along one: cumsum, softmax.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local C = require("cq.base.engine").C

local Tensor = class.methods
local adjoint, fail = class.adjoint, schema.fail

local extent = ffi.new "int64_t[3]"       -- {outer, axis, inner} of one call

-- Fills the shared extents {outer, axis, inner}, by which the engine walks a tensor; returns them.
local function set_extent(outer, axis, inner)
  extent[0], extent[1], extent[2] = outer, axis, inner
  return extent
end

-- The number of entries before a dimension, its size, and the number of elements after it, by which the engine reduces.
local function around(dims, dim)
  local outer, inner = 1, 1
  for i = 1, dim - 1 do outer = outer * dims[i] end
  for i = dim + 1, #dims do inner = inner * dims[i] end
  return outer, dims[dim], inner
end

-- The sizes after a reduction over `dim`, as a list; keep: the dimension stays, of size 1.
local function reduced_dims(dims, dim, keep)
  local out = {}
  for i = 1, #dims do
    if i ~= dim then out[#out + 1] = dims[i] elseif keep then out[#out + 1] = 1 end
  end
  return out
end

-- Adjoint of a reduction: adds to the gradient of the tensor that was reduced.
local function reduce_back(node, gradient)
  local a, e = node.a, node.extra
  C.cq_tensor_reduce_adj(e[1], set_extent(e[2], e[3], e[4]), a.pointer, node.out.pointer, adjoint(a), gradient)
end

local empty_result = { [tonumber(C.CQ_REDUCTION_SUM)] = true, [tonumber(C.CQ_REDUCTION_PRODUCT)] = true,
  [tonumber(C.CQ_REDUCTION_NORM)] = true }
local first_without_gradient = C.CQ_REDUCTION_ARGMAX

-- Raises an error for a reduction of no elements if it has no value then, as a mean; `count` elements become one.
local function refuse_empty(op, what, t, count)
  if count == 0 and not empty_result[op] then
    fail("%s: there is none of no elements, the shape is %s", what, class.shape_text(t.dims))
  end
end

-- Reduces a tensor seen as {outer, axis, inner} over the axis, to a new one of the sizes dims, recorded on the tape.
local function reduce_extent(op, t, dims, outer, axis, inner)
  local out = class.make(dims)
  C.cq_tensor_reduce(op, set_extent(outer, axis, inner), t.pointer, out.pointer)
  if op < first_without_gradient and tape.wants(t) then
    return tape.push(reduce_back, out, t, nil, { op, outer, axis, inner })
  end
  return out
end

-- Reduces a tensor over several dimensions, the last one first, so that the numbers of the others stay valid. Errors:
-- an empty list; a dimension named twice.
local function reduce_list(op, what, t, list, keep)
  local sorted, seen = {}, {}
  for i, dim in ipairs(list) do
    sorted[i] = class.check_dim(t.rank, dim, what)
    if seen[sorted[i]] then fail("%s: dimension %d is named twice", what, sorted[i]) end
    seen[sorted[i]] = true
  end
  if #sorted == 0 then fail("%s: the list of dimensions is empty; leave it out to reduce all", what) end
  table.sort(sorted, function(a, b) return a > b end)
  for _, dim in ipairs(sorted) do
    refuse_empty(op, what, t, t.dims[dim])
    t = reduce_extent(op, t, reduced_dims(t.dims, dim, keep), around(t.dims, dim))
  end
  return t
end

local ones = { [0] = {} }                -- shapes of kept dimensions, by rank
for rank = 1, C.CQ_TENSOR_RANK_MAX do
  ones[rank] = {}
  for i = 1, rank do ones[rank][i] = 1 end
end

-- Reduces a tensor over one dimension, a list of dimensions, or all. keep: reduced ones stay, of size 1. Errors: a
-- least or largest of nothing.
local function reduce(op, what, t, dim, keep)
  class.check_tensor(t, what)
  if dim == nil then
    refuse_empty(op, what, t, t.count)
    return reduce_extent(op, t, keep and ones[t.rank] or ones[0], 1, t.count, 1)
  end
  if type(dim) == "table" then return reduce_list(op, what, t, dim, keep) end
  dim = class.check_dim(t.rank, dim, what)
  refuse_empty(op, what, t, t.dims[dim])
  return reduce_extent(op, t, reduced_dims(t.dims, dim, keep), around(t.dims, dim))
end

local reductions = {
  sum = C.CQ_REDUCTION_SUM, mean = C.CQ_REDUCTION_MEAN, prod = C.CQ_REDUCTION_PRODUCT, max = C.CQ_REDUCTION_MAX,
  min = C.CQ_REDUCTION_MIN, norm = C.CQ_REDUCTION_NORM, logsumexp = C.CQ_REDUCTION_LOGSUMEXP,
}
for name, op in pairs(reductions) do
  op = tonumber(op)
  -- The reduction `name`, such as the sum, of a tensor over one dimension, a list of dimensions, or all (nil), recorded
  -- on the tape. keep: reduced dimensions stay, of size 1.
  Tensor[name] = function(t, dim, keep) return reduce(op, name, t, dim, keep) end
end

-- positions count from 1; over several dimensions they would mean nothing
for name, op in pairs { argmax = C.CQ_REDUCTION_ARGMAX, argmin = C.CQ_REDUCTION_ARGMIN } do
  op = tonumber(op)
  -- The position, from 1, of the largest (or least) element along one dimension, or of all (nil). keep: the dimension
  -- stays, of size 1.
  Tensor[name] = function(t, dim, keep)
    if type(dim) == "table" then fail("%s: takes one dimension, got a list", name) end
    return reduce(op, name, t, dim, keep)
  end
end

-- ---- along a dimension ----------------------------------------------------------------------------------------------

-- Adjoint of a scan, as cumsum: adds to the gradient of its tensor.
local function scan_back(node, gradient)
  local a, e = node.a, node.extra
  C.cq_tensor_scan_adj(e[1], set_extent(e[2], e[3], e[4]), node.out.pointer, adjoint(a), gradient)
end

-- Runs a cumulative operation of the engine along a dimension, recorded on the tape; returns a tensor of the same
-- shape.
local function scan(op, what, t, dim)
  class.check_tensor(t, what)
  dim = class.check_dim(t.rank, dim, what)
  local outer, axis, inner = around(t.dims, dim)
  local out = class.like(t)
  C.cq_tensor_scan(op, set_extent(outer, axis, inner), t.pointer, out.pointer)
  if tape.wants(t) then return tape.push(scan_back, out, t, nil, { op, outer, axis, inner }) end
  return out
end

---Running sum along a dimension.
---@param dim integer?   default 1
---@return cq.Tensor
function Tensor:cumsum(dim) return scan(C.CQ_SCAN_CUMSUM, "cumsum", self, dim or 1) end

---e^x over its sum along a dimension.
---@param dim integer?   default the last
---@return cq.Tensor
function Tensor:softmax(dim) return scan(C.CQ_SCAN_SOFTMAX, "softmax", self, dim or -1) end

---Logarithm of softmax, exact also where softmax is 0.
---@param dim integer?   default the last
---@return cq.Tensor
function Tensor:log_softmax(dim) return scan(C.CQ_SCAN_LOG_SOFTMAX, "log_softmax", self, dim or -1) end

return { around = around, set_extent = set_extent }
