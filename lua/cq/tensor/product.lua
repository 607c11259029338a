-- product: matrix products and layers of networks.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local engine = require "cq.base.engine"
local activations = require "cq.tensor.activation"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local C = engine.C

local Tensor = class.methods
local adjoint, fail = class.adjoint, schema.fail

-- ---- matmul ---------------------------------------------------------------------------------------------------------

local product = ffi.new "cq_product"

-- Sets sizes and flags of the next cq_tensor_matmul in the struct `product`: a {m, k} times b {k, n}; 1 for a factor
-- that is stored transposed, and for a product that is added to the result. The call itself takes the data.
local function set_product_sizes(m, n, k, transpose_a, transpose_b, accumulate)
  product.m, product.n, product.k = m, n, k
  product.transpose_a, product.transpose_b, product.accumulate = transpose_a, transpose_b, accumulate
end

-- Sets how many products the next cq_tensor_matmul makes, and the numbers from one matrix of a, b and c to the next.
local function set_batch(count, a, b, c)
  product.batch, product.stride_a, product.stride_b, product.stride_c = count, a, b, c
end

-- Adjoint of c = a b: da += dc b^T,  db += a^T dc;  a stride of 0 adds up over the batch.
local function matmul_back(node, gradient)
  local a, b, e = node.a, node.b, node.extra
  local batch, m, n, k, sa, sb = e[1], e[2], e[3], e[4], e[5], e[6]
  local grad_a, grad_b = adjoint(a), adjoint(b)
  if grad_a then
    set_product_sizes(m, k, n, 0, 1, 1)
    set_batch(batch, m * n, sb, sa)
    C.cq_tensor_matmul(product, gradient, b.pointer, grad_a)
  end
  if grad_b then
    set_product_sizes(k, n, m, 1, 0, 1)
    set_batch(batch, sa, m * n, sb)
    C.cq_tensor_matmul(product, a.pointer, gradient, grad_b)
  end
end

-- Raises an error: the shapes of a and b do not fit for a product.
local function refuse(a, b)
  fail("matmul: shapes %s and %s do not fit; the last size of the first must be the last but one of the second",
    class.shape_text(a.dims), class.shape_text(b.dims))
end

-- The leading dimensions of a batch of matrices as a list, and the number of matrices.
local function batch_of(t)
  local dims, count = {}, 1
  for i = 1, t.rank - 2 do
    dims[i] = t.dims[i]
    count = count * dims[i]
  end
  return dims, count
end

-- The dimensions of a result as a list: those of the batch, then rows and columns.
local function batched(dims, rows, columns)
  local out = {}
  for i = 1, #dims do out[i] = dims[i] end
  out[#out + 1], out[#out + 2] = rows, columns
  return out
end

-- The product of two tensors of rank 2 or more, with batches in front, recorded on the tape. Errors: sizes or batches
-- that do not fit.
local function matrix_product(a, b)
  local m, k, n = a.dims[a.rank - 1], a.dims[a.rank], b.dims[b.rank]
  if b.dims[b.rank - 1] ~= k then refuse(a, b) end
  local a_dims, a_count = batch_of(a)
  local b_dims, b_count = batch_of(b)
  local dims, batch, sa, sb = a_dims, a_count, m * k, k * n
  if b_count == 1 and #b_dims <= #a_dims then
    -- one matrix on the right: the batch on the left is one tall matrix
    batch, m, sa, sb = 1, m * a_count, 0, 0
  elseif a_count == 1 and #a_dims <= #b_dims then
    dims, batch, sa = b_dims, b_count, 0
  elseif not class.same_dims(a_dims, b_dims) then
    fail("matmul: batches %s and %s differ; they must be equal, or one operand a single matrix",
      class.shape_text(a_dims),
      class.shape_text(b_dims))
  end
  local out = class.make(batched(dims, a.dims[a.rank - 1], n))
  set_product_sizes(m, n, k, 0, 0, 0)
  set_batch(batch, sa, sb, m * n)
  C.cq_tensor_matmul(product, a.pointer, b.pointer, out.pointer)
  if tape.wants(a, b) then
    tape.hold_plain(a, b)
    return tape.push(matmul_back, out, a, b, { batch, m, n, k, sa, sb })
  end
  return out
end

-- The product of a matrix {m, k} or vector {k} with a vector or matrix, recorded on the tape, without a detour over
-- reshapes. Errors: sizes that do not fit.
local function vector_product(a, b)
  local m, k = 1, a.dims[a.rank]
  local n, dims = 1, {}
  if b.dims[b.rank == 1 and 1 or b.rank - 1] ~= k then refuse(a, b) end
  if a.rank == 2 then m, dims = a.dims[1], { a.dims[1] } end
  if b.rank == 2 then n, dims = b.dims[2], { b.dims[2] } end
  local out = class.make(dims)
  set_product_sizes(m, n, k, 0, 0, 0)
  set_batch(1, 0, 0, 0)
  C.cq_tensor_matmul(product, a.pointer, b.pointer, out.pointer)
  if tape.wants(a, b) then
    tape.hold_plain(a, b)
    return tape.push(matmul_back, out, a, b, { 1, m, n, k, 0, 0 })
  end
  return out
end

---Matrix product. Vector times vector is a number, matrix {n, k} times vector {k} is {n}, vector {n} times matrix {n,
---k} is {k}; more dimensions in front are a batch, of both or of one. Errors: rank 0; inner sizes or batches that
---differ.
---@param other cq.Tensor
---@return cq.Tensor
function Tensor:matmul(other)
  local a, b = class.check_tensor(self, "matmul"), class.check_tensor(other, "matmul")
  if a.rank == 0 or b.rank == 0 then fail("matmul: needs vectors or matrices, got shapes %s and %s; use * for numbers",
    class.shape_text(a.dims), class.shape_text(b.dims)) end
  if a.rank > 1 and b.rank > 1 then return matrix_product(a, b) end
  if a.rank <= 2 and b.rank <= 2 then return vector_product(a, b) end
  if b.rank == 1 then return matrix_product(a, b:unsqueeze(2)):squeeze(-1) end
  return matrix_product(a:unsqueeze(1), b):squeeze(-2)
end

---Sum of products of two vectors of one size. Errors: other ranks, or sizes that differ.
---@param other cq.Tensor
---@return cq.Tensor  rank 0
function Tensor:dot(other)
  local a, b = class.check_tensor(self, "dot"), class.check_tensor(other, "dot")
  if a.rank ~= 1 or b.rank ~= 1 or a.count ~= b.count then
    fail("dot: needs two vectors of one size, got shapes %s and %s", class.shape_text(a.dims), class.shape_text(b.dims))
  end
  return vector_product(a, b)
end

-- ---- layers ---------------------------------------------------------------------------------------------------------

local layer, layer_grad = ffi.new "cq_dense", ffi.new "cq_dense_grad"

-- Fills the shared struct of a dense layer for a result `out`, weights w and an activation's number; returns it.
local function set_layer(out, w, activation)
  layer.rows, layer["in"], layer.out, layer.activation = out.count / math.max(w.dims[2], 1), w.dims[1], w.dims[2],
    activation
  return layer
end

-- a function for each activation, since a node has room for the three tensors only
local dense_back = {}
for name, number in pairs(activations) do
  -- Adjoint of a dense layer with this activation: adds to the gradients of its inputs, weights and bias.
  dense_back[name] = function(node, gradient)
    local x, w, b = node.a, node.b, node.extra
    layer_grad.x, layer_grad.w, layer_grad.b = adjoint(x), adjoint(w), adjoint(b)
    C.cq_tensor_dense_adj(set_layer(node.out, w, number), x.pointer, w.pointer, node.out.pointer, layer_grad,
      gradient)
  end
end

---activation(x:matmul(w) + b) as one operation, for the rows of x. Errors: shapes that do not fit; an unknown
---activation.
---@param w cq.Tensor     {inputs, outputs}
---@param b cq.Tensor     {outputs}
---@param activation? "relu"|"tanh"|"softplus"|"sigmoid"|"elu"|"none"   none unless given
---@return cq.Tensor      {..., outputs}
function Tensor:dense(w, b, activation)
  local x = class.check_tensor(self, "dense")
  class.check_tensor(w, "dense: weights")
  class.check_tensor(b, "dense: bias")
  activation = activation or "none"
  local op, last = activations[activation], x.dims[x.rank]
  if not op then
    fail("dense: activation must be relu, tanh, softplus, sigmoid, elu or none, got %s", schema.describe(activation))
  end
  if x.rank == 0 or w.rank ~= 2 or b.rank ~= 1 or w.dims[1] ~= last or b.dims[1] ~= w.dims[2] then
    fail("dense: inputs of shape %s, weights of shape %s and a bias of shape %s do not fit", class.shape_text(x.dims),
      class.shape_text(w.dims),
      class.shape_text(b.dims))
  end
  local dims = {}
  for i = 1, x.rank - 1 do dims[i] = x.dims[i] end
  dims[x.rank] = w.dims[2]
  local out = class.make(dims)
  C.cq_tensor_dense(set_layer(out, w, op), x.pointer, w.pointer, b.pointer, out.pointer)
  if tape.wants(x, w) or tape.wants(b) then
    tape.hold_plain(x, w)
    return tape.push(dense_back[activation], out, x, w, b)
  end
  return out
end

return product
