-- splat: amounts of points onto the pixels of a window, as pictures that convolutions can read.
local ffi = require "ffi"
local schema = require "cq.base.schema"
local engine = require "cq.base.engine"
local class = require "cq.tensor.class"
local tape = require "cq.tensor.tape"
local C = engine.C

local Tensor = class.methods
local adjoint, fail = class.adjoint, schema.fail

local spec = schema.define("tensor:splat", {
  size = schema.vector { size = { 2, 3 }, integer = true, min = 1, max = 4096 },
  spacing = schema.number { above = 0 },
})

local function splat_back(node, gradient)
  local x, q = node.a, node.b
  C.cq_tensor_splat_adj(node.extra, x.pointer, q.pointer, adjoint(x), adjoint(q), gradient)
end

---@class tensor.splat.def
---@field size integer[]    pixels along x, y (and z)
---@field spacing number    size of a pixel [length]

---Amounts of points, spread over the pixels around each by quadratic splines: the sum over all pixels is the
---sum over the points, but for what falls outside of the window. Its lower corner is the origin; row 1 is
---the uppermost, as in pictures.
---@param amounts cq.Tensor      {n, channels}, as the points with the batch in front if there is one
---@param options tensor.splat.def
---@return cq.Tensor             {channels, rows, columns}, in 3D {channels, depth, rows, columns}, with the batch in front
function Tensor:splat(amounts, options)
  class.check_tensor(self, "splat")
  class.check_tensor(amounts, "splat: amounts")
  local def = spec(options)
  local rank, dim = self.rank, #def.size
  local fits = (rank == 2 or rank == 3) and amounts.rank == rank and self.dims[rank] == dim
  for d = 1, rank - 1 do fits = fits and self.dims[d] == amounts.dims[d] end
  if not fits then
    fail("splat: points {n, %d} and amounts {n, channels} are wanted for a size of %d numbers, with the same batch before each, got %s and %s",
      dim, dim, class.shape_text(self.dims), class.shape_text(amounts.dims))
  end
  local s = ffi.new "cq_splat"
  s.batch, s.count, s.channels = rank == 3 and self.dims[1] or 1, self.dims[rank - 1], amounts.dims[rank]
  s.dim, s.spacing = dim, def.spacing
  local dims = rank == 3 and { self.dims[1] } or {}
  dims[#dims + 1] = amounts.dims[rank]
  for d = 3, 1, -1 do
    s.size[d - 1] = def.size[d] or 1
    if def.size[d] then dims[#dims + 1] = def.size[d] end
  end
  local out = class.make(dims)
  out:fill(0)
  C.cq_tensor_splat(s, self.pointer, amounts.pointer, out.pointer)
  if tape.wants(self, amounts) then return tape.push(splat_back, out, self, amounts, s) end
  return out
end

return Tensor
