-- sparse: matrices of which few entries are not zero, and their products with tensors; above all those of neighbours,
-- which filter fields over particles.
--
--   local A = cq.sparse { shape = { 2, 3 }, row = { 1, 2, 2 }, column = { 3, 1, 2 }, value = { 5, 1, -1 } }
--   local y = A:product(x)                          -- x {..., 3} to y {..., 2}, with gradients to x and to the values
--
--   local mean = cq.sparse.neighbours { points = robot.position, radius = 0.02, normalised = true,
--     weight = function(r) return 1 - r / 0.02 end }
--   local smooth = mean:product(young)              -- of every particle the weighted mean around it
local method = require "cq.base.method"
local ffi = require "ffi"
local capacity = require "cq.base.capacity"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local engine = require "cq.base.engine"
local C, tape = engine.C, T.tape

---@class cq.Sparse
---@field rows integer
---@field columns integer
---@field count integer        entries
---@field value cq.Tensor      {count} row after row
local Sparse = { __name = "cq.Sparse" }
Sparse.__index = Sparse

-- A sparse matrix in compressed rows. start {rows + 1}: the index of the first entry of each row, and at last the
-- number of entries; column {count}: the column of each entry. Both are int64_t[] and count from 0. value {count}: a
-- cq.Tensor. The matrix keeps all three and copies none.
local function new(rows, columns, start, column, value)
  local raw = ffi.new("cq_sparse", { rows = rows, columns = columns, start = start, column = column })
  -- the struct only points to the lists: they live as long as this table
  return setmetatable({
    rows = rows, columns = columns, count = tonumber(start[rows]), value = value, start = start, column = column,
    raw = raw,
  }, Sparse)
end

-- Adjoint of sparse:product: adds to the gradients of the vector (node.a) and the entries (node.b) of the matrix.
local function product_back(node, gradient)
  local x, value, self = node.a, node.b, node.extra
  local both = ffi.new("const double *[2]", value.pointer, x.pointer)
  C.cq_tensor_sparse_adj(self.raw, x.count / self.columns, both, class.adjoint(value), class.adjoint(x), gradient)
end

---The product with the last dimension of a tensor, y = A x. Errors: a wrong size.
---@param x cq.Tensor     {..., columns}
---@return cq.Tensor      {..., rows}
function Sparse:product(x)
  class.check_tensor(x, "sparse:product")
  if x.rank == 0 or x.dims[x.rank] ~= self.columns then
    is.fail("sparse:product: the last dimension must have size %d, one for each column, got shape %s", self.columns,
      class.shape_text(x.dims))
  end
  local dims = x:shape()
  dims[#dims] = self.rows
  local out = class.make(dims)
  C.cq_tensor_sparse(self.raw, x.count / self.columns, self.value.pointer, x.pointer, out.pointer)
  if tape.wants(x, self.value) then
    tape.hold_plain(x, self.value)
    return tape.push(product_back, out, x, self.value, self)
  end
  return out
end

---The matrix with other values in the same places, as a new one. Errors: not one value for each entry.
---@param value cq.Tensor     {count} row after row
---@return cq.Sparse
function Sparse:with(value)
  class.check_tensor(value, "sparse:with")
  if value.rank ~= 1 or value.count ~= self.count then
    is.fail("sparse:with: the values must have shape {%d}, one for each entry, got %s", self.count,
      class.shape_text(value.dims))
  end
  return new(self.rows, self.columns, self.start, self.column, value)
end

---The solution y of A y = b by conjugate gradients to the last digits, with gradients to b and to the values. Errors: a
---matrix that is not symmetric and positive definite, as far as the solution shows it.
---@param b cq.Tensor     {..., rows}
---@return cq.Tensor      {..., rows}
function Sparse:solve(b) return require "cq.sparse.solve"(self, b) end

---Row and column of every entry, from 1, row after row as the values are: to compute values from fields at both.
---@return integer[] row, integer[] column
function Sparse:places()
  local row, column = {}, {}
  for r = 1, self.rows do
    for e = tonumber(self.start[r - 1]), tonumber(self.start[r]) - 1 do
      row[e + 1], column[e + 1] = r, tonumber(self.column[e]) + 1
    end
  end
  return row, column
end

---The matrix with its zeros, plain numbers; to look at small ones.
---@return cq.Tensor      {rows, columns}
function Sparse:full()
  local out = T.zeros { self.rows, self.columns }
  local to, value = out:data(), self.value:data()
  for r = 0, self.rows - 1 do
    for e = tonumber(self.start[r]), tonumber(self.start[r + 1]) - 1 do
      local at = r * self.columns + tonumber(self.column[e])
      to[at] = to[at] + value[e]
    end
  end
  return out
end

-- The matrix in one line: "cq.Sparse { 2 x 3, 3 elements }".
function Sparse:__tostring()
  return ("cq.Sparse { %d x %d, %s }"):format(self.rows, self.columns, text.count(self.count, "element"))
end

-- ---- from entries ---------------------------------------------------------------------------------------------------

local spec = is.define("cq.sparse", {
  shape = is.vector { size = 2, integer = true, min = 1, max = 2 ^ 31 - 1 },
  row = is.list(is.integer { min = 1 }), column = is.list(is.integer { min = 1 }),
  value = is.any_of { is.tensor(), is.list(is.number()) },
})

---@class cq.sparse.def
---@field shape integer[]            {rows, columns}
---@field row integer[]              of each entry, from 1
---@field column integer[]           of each entry, from 1
---@field value cq.Tensor|number[]   of each entry; entries at one place are added

---A sparse matrix from its entries, in any order.
---Errors: lists of different lengths, an entry outside of the matrix.
---@param fields cq.sparse.def
---@return cq.Sparse
local function from_entries(_, fields)
  local def = spec(fields)
  local rows, columns, count, value = def.shape[1], def.shape[2], #def.row, T.as_tensor(def.value)
  if value.rank ~= 1 or #def.column ~= count or value.count ~= count then
    is.fail("cq.sparse: row, column and value must be of one length, got %d, %d and %s", count, #def.column,
      class.shape_text(value.dims))
  end
  capacity.require(rows + columns + 2 * count, "cq.sparse")
  local start, column, order = ffi.new("int64_t[?]", rows + 1), ffi.new("int64_t[?]", math.max(count, 1)), {}
  for k = 1, count do
    local r, c = def.row[k], def.column[k]
    if r > rows or c > columns then
      is.fail("cq.sparse: entry %d is at (%d, %d), outside of the %d x %d matrix", k, r, c, rows, columns)
    end
    start[r], order[k] = start[r] + 1, k
  end
  for r = 1, rows do start[r] = start[r] + start[r - 1] end
  table.sort(order, function(a, b) return def.row[a] < def.row[b] or def.row[a] == def.row[b] and a < b end)
  for e, k in ipairs(order) do column[e - 1] = def.column[k] - 1 end
  return new(rows, columns, start, column, count > 0 and value:gather(order, 1) or value)
end

-- ---- neighbours -----------------------------------------------------------------------------------------------------

local neighbours_spec = is.define("cq.sparse.neighbours", {
  points = is.tensor(), places = is.tensor { optional = true },
  radius = is.number { min = 1e-150 },
  weight = is.callable { optional = true },
  normalised = is.boolean { default = false },
})

-- Raises an error for points of another shape than {n, dim}, or that are not finite. dim: nil for 1 to 3.
local function check_points(t, what, dim)
  if t.rank ~= 2 or t:size(2) < 1 or t:size(2) > 3 or dim and t:size(2) ~= dim then
    is.fail("cq.sparse.neighbours: %s must be {n, %s}, got %s", what, dim or "1 to 3", class.shape_text(t.dims))
  end
  if not t:finite() then is.fail("cq.sparse.neighbours: %s must be finite everywhere", what) end
end

-- The matrix with each entry divided by the sum of its row, so that each row sums to 1. Errors: a row whose sum is not
-- above 0.
local function share_rows(self)
  local value, sums = self.value:copy(), self:product(T.ones { self.columns })
  local to, sum = value:data(), sums:data()
  for r = 0, self.rows - 1 do
    if not (sum[r] > 0) then
      is.fail("cq.sparse.neighbours: the weights around place %d add up to %s, so that there is no mean; take a larger radius", r + 1, text.number(sum[r]))
    end
    for e = tonumber(self.start[r]), tonumber(self.start[r + 1]) - 1 do to[e] = to[e] / sum[r] end
  end
  return self:with(value)
end

---@class cq.sparse.neighbours.def
---@field points cq.Tensor      {n, dim} [length]
---@field places? cq.Tensor     {m, dim} whose neighbours are looked for; the points themselves unless given [length]
---@field radius number         neighbours are nearer than this [length]
---@field weight? fun(distance: cq.Tensor): cq.Tensor   values of the entries {count} by their distances; ones unless given
---@field normalised? boolean   each row adds up to 1, so that products are means

---The matrix {m, n} of the neighbours of places among points, each place among the points its own neighbour too.
---Errors: weights that are no numbers, or add up to nothing where means are wanted.
---@param fields cq.sparse.neighbours.def
---@return cq.Sparse
local function neighbours(fields)
  local def = neighbours_spec(fields)
  local points, places = def.points, def.places or def.points
  check_points(points, "points")
  check_points(places, "places", points:size(2))
  local raw = ffi.new("cq_neighbours", { count = points:size(1), places = places:size(1), dim = points:size(2),
    radius = def.radius })
  local start = ffi.new("int64_t[?]", places:size(1) + 1)
  local list = ffi.new("cq_neighbour_list", { start = start })
  engine.check(C.cq_tensor_neighbours(raw, points:data(), places:data(), list), "cq.sparse.neighbours")
  local count = tonumber(start[places:size(1)])
  local column, distance = ffi.new("int64_t[?]", math.max(count, 1)), T.empty { count }
  list.room, list.column, list.distance = count, column, distance:data()
  engine.check(C.cq_tensor_neighbours(raw, points:data(), places:data(), list), "cq.sparse.neighbours")
  local value = def.weight and T.as_tensor(tape.pause(def.weight, distance)) or T.ones { count }
  if value.rank ~= 1 or value.count ~= count or not value:finite() then
    is.fail("cq.sparse.neighbours: weight must give finite numbers {%d}, one for each distance, got %s%s", count,
      class.shape_text(value.dims),
      value.count == count and " with some that are not finite" or "")
  end
  local self = new(places:size(1), points:size(1), start, column, value)
  return def.normalised and tape.pause(share_rows, self) or self
end

---@class cq.SparseModule
---@overload fun(fields: cq.sparse.def): cq.Sparse
local sparse = { class = Sparse, neighbours = neighbours }

method.guard(Sparse, "sparse")

return setmetatable(sparse, { __call = from_entries })
