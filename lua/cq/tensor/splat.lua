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

-- Adjoint of splat: adds to the gradients of the points and the amounts.
local function splat_back(node, gradient)
  local x, q = node.a, node.b
  C.cq_tensor_splat_adj(node.extra, x.pointer, q.pointer, adjoint(x), adjoint(q), gradient)
end

---@class tensor.splat.def
---@field size integer[]    pixels along x, y (and z)
---@field spacing number    size of a pixel [length]

---Draws points as a picture: each point adds its amounts to the three pixels along each axis that are nearest to it,
---weighted by quadratic splines, with gradients to places and amounts. The tensor holds the places of the points,
---{n, 2} or {n, 3}, measured from the lower corner of the picture; {batch, n, 2} gives a picture for each entry of the
---batch. A point adds its whole amounts, unless it lies within a pixel and a half of the border or outside: what
---falls outside is lost. Row 1 is the uppermost. state:raster does so with a robot's density and momentum.
---
---  local places  = cq.tensor { { 0.5, 0.5 }, { 2.5, 1.5 } }             -- of two points
---  local amounts = cq.tensor { { 1 }, { 2 } }                           -- one channel, as mass
---  local picture = places:splat(amounts, { size = { 4, 3 }, spacing = 1 })
---  print(picture:size(2), picture:size(3))                              --> 3  4, rows and columns
---@param amounts cq.Tensor      {n, channels}, or {batch, n, channels}: what each point adds to each channel
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
