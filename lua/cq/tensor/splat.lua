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
  origin = schema.tensor { optional = true },
  velocity = schema.tensor { optional = true },
  density = schema.boolean { default = false },
})

-- Fills a cq_splat_points with pointers to the inputs of a splat, or to their gradients. of: the function from a tensor
-- to its pointer.
local function set_points(points, inputs, of)
  points.x, points.amount = of(inputs.x), of(inputs.amounts)
  points.origin, points.velocity = inputs.origin and of(inputs.origin), inputs.velocity and of(inputs.velocity)
  return points
end

-- The memory of a tensor's numbers.
local function data(t) return t.pointer end

local points, gradients = ffi.new "cq_splat_points", ffi.new "cq_splat_points"

-- Adjoint of splat: adds to the gradients of places, amounts, origin and velocities.
local function splat_back(node, gradient)
  local inputs = node.extra
  engine.check(C.cq_tensor_splat_adj(inputs.splat, set_points(points, inputs, data),
    set_points(gradients, inputs, adjoint), gradient), "tensor:splat")
end

-- Raises an error if a tensor given as an option has another shape than `batch` (or nothing) before `shape`.
local function check_option(name, value, batch, shape)
  local wanted = batch and { batch, unpack(shape) } or shape
  if value and class.shape_text(value.dims) ~= class.shape_text(wanted) then
    fail("splat: %s must have shape %s, got %s", name, class.shape_text(wanted), class.shape_text(value.dims))
  end
end

---@class tensor.splat.def
---@field size integer[]    pixels along x, y (and z)
---@field spacing number    size of a pixel [length]
---@field origin? cq.Tensor     lower corner of the picture {dim}, or {batch, dim}; 0 unless given [length]
---@field velocity? cq.Tensor   {n, dim}, or {batch, n, dim}: for amounts with one channel; the picture has the amount, and amount times
---  velocity
---@field density? boolean      amounts for each unit of area, or volume in 3D, and not for each pixel

---Draws points as a picture: each point adds its amounts to the three pixels along each axis that are nearest to it,
---weighted by quadratic splines, with gradients to places, amounts, origin and velocities. The tensor holds the places
---of the points, {n, 2} or {n, 3}; {batch, n, 2} gives a picture for each entry of the batch. A point adds its whole
---amounts, unless it lies within a pixel of the border or outside: what falls outside is lost. Row 1 is the
---uppermost. state:raster does so with a robot's density and momentum.
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
  local rank, dim, origin, velocity = self.rank, #def.size, def.origin, def.velocity
  local fits = (rank == 2 or rank == 3) and amounts.rank == rank and self.dims[rank] == dim
  for d = 1, rank - 1 do fits = fits and self.dims[d] == amounts.dims[d] end
  if not fits then
    fail("splat: points {n, %d} and amounts {n, channels} are wanted for a size of %d numbers, with the same batch before each, got %s and %s",
      dim, dim, class.shape_text(self.dims), class.shape_text(amounts.dims))
  end
  local batch = rank == 3 and self.dims[1] or nil
  check_option("origin", origin, batch, { dim })
  check_option("velocity", velocity, batch, { self.dims[rank - 1], dim })
  if velocity and amounts.dims[rank] ~= 1 then
    fail("splat: with velocities the amounts have one channel, got %d", amounts.dims[rank])
  end
  local s, dims = ffi.new "cq_splat", { batch }
  s.batch, s.count, s.channels = batch or 1, self.dims[rank - 1], amounts.dims[rank]
  s.dim, s.spacing, s.scale = dim, def.spacing, def.density and def.spacing ^ -dim or 1
  dims[#dims + 1] = velocity and 1 + dim or amounts.dims[rank]
  for d = 3, 1, -1 do
    s.size[d - 1] = def.size[d] or 1
    if def.size[d] then dims[#dims + 1] = def.size[d] end
  end
  local out, inputs = class.make(dims), { splat = s, x = self, amounts = amounts, origin = origin, velocity = velocity }
  out:fill(0)
  engine.check(C.cq_tensor_splat(s, set_points(points, inputs, data), out.pointer), "tensor:splat")
  if tape.wants(self, amounts) or origin and tape.wants(origin, velocity) or velocity and tape.wants(velocity) then
    tape.hold_plain(self, amounts)
    tape.hold_plain(origin, velocity)
    return tape.push(splat_back, out, self, amounts, inputs)
  end
  return out
end

return Tensor
