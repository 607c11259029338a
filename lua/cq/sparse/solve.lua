-- solve: linear equations with a sparse matrix that is symmetric and positive definite, by conjugate gradients with the
-- diagonal as preconditioner (Saad, Iterative methods for sparse linear systems, algorithm 9.1).
--
-- The adjoint of y = A^-1 b is another solution with the same matrix, l = A^-1 dy: db = l, dA_ij = -l_i y_j.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.tensor.class"
local engine = require "cq.base.engine"
local C, tape = engine.C, require("cq.tensor").tape

local TOLERANCE = 1e-13           -- of the preconditioned residual, by that of the start
local ROUNDS = 20                 -- iterations for each unknown before it is given up

-- 1 over each element of the matrix's diagonal, double[rows]: the preconditioner of conjugate gradients. Errors: an
-- element that is not above 0.
local function inverse_diagonal(self)
  local out, value = ffi.new("double[?]", self.rows), self.value.pointer
  for r = 0, self.rows - 1 do
    for e = tonumber(self.start[r]), tonumber(self.start[r + 1]) - 1 do
      if self.column[e] == r then out[r] = out[r] + value[e] end
    end
    if not (out[r] > 0) then
      is.fail("sparse:solve: a positive definite matrix has a diagonal above 0, got %g in row %d", out[r], r + 1)
    end
    out[r] = 1 / out[r]
  end
  return out
end

-- Sets z = r divided by the diagonal (inverse: 1 over it), arrays of n doubles; returns r . z.
local function precondition(n, inverse, r, z)
  local sum = 0
  for i = 0, n - 1 do
    z[i] = r[i] * inverse[i]
    sum = sum + r[i] * z[i]
  end
  return sum
end

-- The dot product of two arrays of n doubles.
local function dot(n, a, b)
  local sum = 0
  for i = 0, n - 1 do sum = sum + a[i] * b[i] end
  return sum
end

-- Solves A y = b for one right side by preconditioned conjugate gradients, into y; inverse: 1 over the diagonal. The
-- right side is scaled to a largest number of 1, so that its squares can be computed.
-- Errors: a right side that is not finite; A is not positive definite; no convergence.
local function conjugate_gradients(self, inverse, b, y)
  local n, scale = self.rows, 0
  for i = 0, n - 1 do
    if b[i] - b[i] ~= 0 then is.fail("sparse:solve: the right side must be finite, got %s", text.number(b[i])) end
    scale = math.max(scale, math.abs(b[i]))
  end
  local r, z, p, ap = ffi.new("double[?]", n), ffi.new("double[?]", n), ffi.new("double[?]", n), ffi.new("double[?]", n)
  ffi.fill(y, n * 8)
  if scale == 0 then return end
  for i = 0, n - 1 do r[i] = b[i] / scale end
  local rho = precondition(n, inverse, r, z)
  local enough = TOLERANCE * TOLERANCE * rho
  ffi.copy(p, z, n * 8)
  for _ = 1, ROUNDS * n do
    if rho <= enough then
      for i = 0, n - 1 do y[i] = y[i] * scale end
      return
    end
    C.cq_tensor_sparse(self.raw, 1, self.value.pointer, p, ap)
    local curvature = dot(n, p, ap)
    if not (curvature > 0) then is.fail("sparse:solve: the matrix is not positive definite") end
    local alpha = rho / curvature
    for i = 0, n - 1 do
      y[i] = y[i] + alpha * p[i]
      r[i] = r[i] - alpha * ap[i]
    end
    local before = rho
    rho = precondition(n, inverse, r, z)
    local beta = rho / before
    for i = 0, n - 1 do p[i] = z[i] + beta * p[i] end
  end
  is.fail("sparse:solve: no solution in %d iterations; is the matrix symmetric, and far enough from singular?",
    ROUNDS * n)
end

-- Solves A y = b for each of the right sides in b, count numbers in all, into y.
local function each_right_side(self, count, b, y)
  local inverse = inverse_diagonal(self)
  for k = 0, count / self.rows - 1 do conjugate_gradients(self, inverse, b + k * self.rows, y + k * self.rows) end
end

-- Adjoint of sparse:solve: one more solve, then adds to the gradients of the right side and the entries.
local function solve_back(node, gradient)
  local b, value, self, y = node.a, node.b, node.extra, node.out
  local l = class.like(y).pointer
  each_right_side(self, y.count, gradient, l)
  local to_b, to_value = class.adjoint(b), class.adjoint(value)
  for i = 0, y.count - 1 do
    if to_b ~= nil then to_b[i] = to_b[i] + l[i] end
    l[i] = -l[i]
  end
  if to_value == nil then return end
  C.cq_tensor_sparse_adj(self.raw, y.count / self.rows, ffi.new("const double *[2]", value.pointer, y.pointer),
    to_value, nil, l)
end

---The solution of A y = b {..., rows}, as sparse:solve. Errors: a matrix that is not square, or not positive definite;
---a wrong size of b.
---@param self cq.Sparse
---@param b cq.Tensor
---@return cq.Tensor
return function(self, b)
  class.check_tensor(b, "sparse:solve")
  if self.rows ~= self.columns then
    is.fail("sparse:solve: the matrix must be square, got %d x %d", self.rows, self.columns)
  end
  if b.rank == 0 or b.dims[b.rank] ~= self.rows then
    is.fail("sparse:solve: the last dimension must have size %d, one for each row, got shape %s", self.rows,
      class.shape_text(b.dims))
  end
  local out = class.like(b)
  each_right_side(self, b.count, b.pointer, out.pointer)
  if tape.wants(b, self.value) then
    tape.hold_plain(self.value)
    return tape.push(solve_back, out, b, self.value, self)
  end
  return out
end
