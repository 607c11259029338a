-- primitive: boxes, round shapes and polygons, filled by a regular lattice of cells aligned to the box that holds them.
local bit = require "bit"
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.shape.class"
local cloud = require "cq.shape.cloud"

local primitive = {}

local PARTICLES_MAX = 2e7            -- of one part: more is a slip in the units, and would take all memory

---Fields that every primitive has beside its own.
---@class cq.Shape.part.def
---@field spacing? number|number[]   of its particles, one for all axes or one for each; none: robot or sample say it [length]
---@field name? string               all its particles are a group of this name
---@field jitter? number             share of a cell that particles are moved by at random
---@field seed? integer              of the jitter

-- Adds checkers of the fields of all primitives, name, spacing, jitter and seed, to a schema in place; returns it.
local function with_common(fields)
  fields.name = is.string { optional = true }
  fields.spacing = is.any_of { is.number { above = 0 }, is.vector { size = { 2, 3 }, above = 0 }, optional = true }
  fields.jitter = is.number { min = 0, below = 1, default = 0 }
  fields.seed = is.integer { min = 0, default = 0 }
  return fields
end
primitive.with_common = with_common

-- ---- lattice --------------------------------------------------------------------------------------------------------

-- A number in [-1/2, 1/2) from a seed and a counter by splitmix64, the same on every machine: jitter of particles.
local function scatter(seed, k)
  local z = ffi.new("uint64_t", seed) * 0xD1342543DE82EF95ULL + ffi.new("uint64_t", k) * 0x9E3779B97F4A7C15ULL
  z = bit.bxor(z, bit.rshift(z, 30)) * 0xBF58476D1CE4E5B9ULL
  z = bit.bxor(z, bit.rshift(z, 27)) * 0x94D049BB133111EBULL
  return tonumber(bit.rshift(bit.bxor(z, bit.rshift(z, 31)), 11)) * 2^-53 - 0.5
end

-- The number of lattice cells along each axis: self.count, or what comes nearest to self.spacing, or to `spacing` where
-- the shape has none. Errors: no spacing; too many particles.
local function cells(self, spacing)
  local count, total = {}, 1
  local h = self.spacing or spacing
  if not (h or self.count) then
    is.fail("cq.Shape: %s has no spacing; give it one, or one for all: shape:sample { spacing = ... }",
      class.describe(self))
  end
  for d = 1, self.dim do
    local along = type(h) == "table" and h[d] or h
    count[d] = self.count and self.count[d] or math.max(1, math.floor((self.upper[d] - self.lower[d]) / along + 0.5))
    total = total * count[d]
  end
  if total > PARTICLES_MAX then
    is.fail("cq.Shape: %s would be filled with %.3g particles, at most %.3g are allowed for one part; make %s",
      class.describe(self), total, PARTICLES_MAX, self.count and "the count smaller" or "the spacing coarser")
  end
  return count
end

-- Calls visit(x, y, z, number) for the centre of each cell, the last axis fastest; number from 0; z is nil in 2D.
local function each_cell(self, count, h, visit)
  local lower, k = self.lower, 0
  for i = 0, count[1] - 1 do
    local x = lower[1] + (i + 0.5) * h[1]
    for j = 0, count[2] - 1 do
      local y = lower[2] + (j + 0.5) * h[2]
      for l = 0, (count[3] or 1) - 1 do
        visit(x, y, self.dim == 3 and lower[3] + (l + 0.5) * h[3] or nil, k)
        k = k + 1
      end
    end
  end
end

---A cloud of particles at the centres of the lattice's cells that lie inside. Jitter moves them afterwards, within
---their cells, so that their number does not depend on the seed.
function primitive.fill(self, spacing)
  local count, h, volume = cells(self, spacing), {}, 1
  for d = 1, self.dim do
    h[d] = (self.upper[d] - self.lower[d]) / count[d]
    volume = volume * h[d]
  end
  local out, inside, jitter, seed = cloud.new(self.dim), self.inside, self.jitter, self.seed
  each_cell(self, count, h, function(x, y, z, k)
    if not inside(x, y, z) then return end
    if jitter > 0 then
      x, y = x + jitter * h[1] * scatter(seed, 3 * k), y + jitter * h[2] * scatter(seed, 3 * k + 1)
      z = z and z + jitter * h[3] * scatter(seed, 3 * k + 2)
    end
    local p = cloud.add(out, volume, x, y, z)
    if self.mark then self.mark(out, p, x, y, z) end
  end)
  if self.name then cloud.all(out, self.name) end
  return out
end

---Makes a shape of a table of checked fields. inside(x, y, z): is a point within it? exact: its volume, or nil. Errors:
---a spacing of a wrong dimension.
function primitive.new(kind, self, lower, upper, exact, inside)
  self.kind, self.dim, self.lower, self.upper, self.exact, self.inside = kind, #lower, lower, upper, exact, inside
  -- The cloud of the shape's particles at a spacing.
  self.fill = function(spacing) return primitive.fill(self, spacing) end
  if type(self.spacing) == "table" and #self.spacing ~= self.dim then
    is.fail("cq.Shape.%s: spacing has %s, the shape has %d", kind, text.count(#self.spacing, "component"), self.dim)
  end
  return class.new(self)
end

-- ---- families -------------------------------------------------------------------------------------------------------

-- A checker of a list of two or three numbers; options: further ones of is.vector, or nil.
local function point(options)
  options = options or {}
  options.size = options.size or { 2, 3 }
  return is.vector(options)
end

-- The lower and upper corner of a box of half-width `reach`, one number or one for each axis, around a centre.
local function around(centre, reach)
  local lower, upper = {}, {}
  for d, x in ipairs(centre) do
    local r = type(reach) == "table" and reach[d] or reach
    lower[d], upper[d] = x - r, x + r
  end
  return lower, upper
end

local box = is.define("cq.Shape.box", with_common {
  at = point { optional = true }, size = point { above = 0 },
  count = is.vector { size = { 2, 3 }, integer = true, min = 1, optional = true },
})

---@class cq.Shape.box.def : cq.Shape.part.def
---@field size number[]      {dim} of its sides [length]; two numbers make a box of the plane, three one of space
---@field at? number[]       {dim} its lower corner, the origin unless given [length]
---@field count? integer[]   {dim} particles along each axis, in the place of spacing

---A box, filled by a regular lattice: one particle in the middle of each cell, with the cell's volume.
---Errors: both count and spacing; a size and a corner of different dimensions; more than 2e7 particles.
---@param fields cq.Shape.box.def
---@return cq.Shape
function primitive.box(fields)
  local self = box(fields)
  local at, size = self.at or (#self.size == 2 and { 0, 0 } or { 0, 0, 0 }), self.size
  is.same_size("cq.Shape.box", "size", size, "at", at)
  if self.count then
    is.same_size("cq.Shape.box", "size", size, "count", self.count)
    if self.spacing then is.fail("cq.Shape.box: give either count or spacing, not both") end
  end
  local upper, exact = {}, 1
  for d = 1, #at do upper[d], exact = at[d] + size[d], exact * size[d] end
  local x0, y0, z0, x1, y1, z1 = at[1], at[2], at[3], upper[1], upper[2], upper[3]
  local inside = z0 and function(x, y, z) return x >= x0 and x < x1 and y >= y0 and y < y1 and z >= z0 and z < z1 end
    or function(x, y) return x >= x0 and x < x1 and y >= y0 and y < y1 end
  return primitive.new("box", self, at, upper, exact, inside)
end

local function square(x) return x * x end

-- An ellipse or ellipsoid with the half axes `radii`: inside where sum ((x - at) / radius)^2 < 1.
local function round(kind, self, radii)
  local at = self.at
  local lower, upper = around(at, radii)
  local cx, cy, cz, rx, ry, rz = at[1], at[2], at[3], radii[1], radii[2], radii[3]
  if #at == 2 then
    return primitive.new(kind, self, lower, upper, math.pi * rx * ry, function(x, y)
      return square((x - cx) / rx) + square((y - cy) / ry) < 1
    end)
  end
  return primitive.new(kind, self, lower, upper, 4 / 3 * math.pi * rx * ry * rz, function(x, y, z)
    return square((x - cx) / rx) + square((y - cy) / ry) + square((z - cz) / rz) < 1
  end)
end

local disc = is.define("cq.Shape.disc", with_common { at = point { size = 2, default = { 0, 0 } },
  radius = is.number { above = 0 } })
local sphere = is.define("cq.Shape.sphere", with_common { at = point { size = 3, default = { 0, 0, 0 } },
  radius = is.number { above = 0 } })
local ellipse = is.define("cq.Shape.ellipse",
  with_common { at = point { optional = true }, radii = point { above = 0 } })

---@class cq.Shape.disc.def : cq.Shape.part.def
---@field radius number    [length]
---@field at? number[]     {2} its centre [length]

---A disc (2D) around the point `at`.
---@param fields cq.Shape.disc.def
---@return cq.Shape
function primitive.disc(fields)
  local self = disc(fields)
  return round("disc", self, { self.radius, self.radius })
end

---@class cq.Shape.sphere.def : cq.Shape.part.def
---@field radius number    [length]
---@field at? number[]     {3} its centre [length]

---A ball (3D) around the point `at`.
---@param fields cq.Shape.sphere.def
---@return cq.Shape
function primitive.sphere(fields)
  local self = sphere(fields)
  return round("sphere", self, { self.radius, self.radius, self.radius })
end

---@class cq.Shape.ellipse.def : cq.Shape.part.def
---@field radii number[]   {dim} half axes along x, y (and z) [length]
---@field at? number[]     {dim} its centre, the origin unless given [length]

---An ellipse (2D) or ellipsoid (3D) around `at`, with half axes `radii`.
---@param fields cq.Shape.ellipse.def
---@return cq.Shape
function primitive.ellipse(fields)
  local self = ellipse(fields)
  self.at = self.at or (#self.radii == 2 and { 0, 0 } or { 0, 0, 0 })
  is.same_size("cq.Shape.ellipse", "radii", self.radii, "at", self.at)
  return round("ellipse", self, self.radii)
end

local capsule = is.define("cq.Shape.capsule",
  with_common { from = point(), to = point(), radius = is.number { above = 0 } })

---@class cq.Shape.capsule.def : cq.Shape.part.def
---@field from number[]    {dim} [length]
---@field to number[]      {dim} [length]
---@field radius number    [length]

---Everything within `radius` of the segment between two points.
---@param fields cq.Shape.capsule.def
---@return cq.Shape
function primitive.capsule(fields)
  local self = capsule(fields)
  local a, b, r = self.from, self.to, self.radius
  is.same_size("cq.Shape.capsule", "from", a, "to", b)
  local lower, upper, length2 = {}, {}, 0
  for d = 1, #a do
    lower[d], upper[d], length2 = math.min(a[d], b[d]) - r, math.max(a[d], b[d]) + r, length2 + square(b[d] - a[d])
  end
  local length = math.sqrt(length2)
  local exact = #a == 2 and math.pi * r * r + 2 * r * length or 4 / 3 * math.pi * r * r * r + math.pi * r * r * length
  local ax, ay, az = a[1], a[2], a[3] or 0
  local ex, ey, ez = b[1] - ax, b[2] - ay, (b[3] or 0) - az
  return primitive.new("capsule", self, lower, upper, exact, function(x, y, z)
    local qx, qy, qz = x - ax, y - ay, (z or 0) - az
    local t = length2 > 0 and math.min(math.max((qx * ex + qy * ey + qz * ez) / length2, 0), 1) or 0
    return square(qx - t * ex) + square(qy - t * ey) + square(qz - t * ez) < r * r
  end)
end

local polygon = is.define("cq.Shape.polygon", with_common { points = is.list(is.vector { size = 2 }, { min = 3 }) })

-- Is the point c to the left of the line from a to b (positive), to its right, or on it (0)? Twice the signed area of
-- the triangle.
local function side(a, b, c) return (b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1]) end

-- Do two edges of the polygon through points, from point i and from point j to the next, cross between their ends?
local function cross(points, i, j)
  local a, b, c, d = points[i], points[i % #points + 1], points[j], points[j % #points + 1]
  return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
end

-- Does the polygon through points cross itself? Only edges whose extents along x overlap are compared.
local function crosses_itself(points)
  local n, order, left, right = #points, {}, {}, {}
  for i = 1, n do
    local x, next_x = points[i][1], points[i % n + 1][1]
    order[i], left[i], right[i] = i, math.min(x, next_x), math.max(x, next_x)
  end
  table.sort(order, function(i, j) return left[i] < left[j] end)
  for k, i in ipairs(order) do
    for l = k + 1, n do
      local j = order[l]
      if left[j] > right[i] then break end
      if cross(points, i, j) then return true end
    end
  end
  return false
end

-- Do all points lie on one line, to rounding?
local function is_flat(points)
  local first, far, longest = points[1], points[1], 0
  -- The square of the distance from the first point.
  local function distance2(p) return square(p[1] - first[1]) + square(p[2] - first[2]) end
  for _, p in ipairs(points) do
    if distance2(p) > longest then far, longest = p, distance2(p) end
  end
  for _, p in ipairs(points) do
    if math.abs(side(first, far, p)) > 1e-12 * longest then return false end
  end
  return true
end

---@class cq.Shape.polygon.def : cq.Shape.part.def
---@field points number[][]   {n, 2} its corners in their order, three at least [length]

---A polygon (2D) through points; where it crosses itself, inside and outside alternate, and its exact area is unknown.
---Errors: all points on one line.
---@param fields cq.Shape.polygon.def
---@return cq.Shape
function primitive.polygon(fields)
  local self = polygon(fields)
  local points, n = self.points, #self.points
  local lower, upper, twice = { math.huge, math.huge }, { -math.huge, -math.huge }, 0
  for i, p in ipairs(points) do
    local q = points[i % n + 1]
    twice = twice + p[1] * q[2] - q[1] * p[2]
    for d = 1, 2 do lower[d], upper[d] = math.min(lower[d], p[d]), math.max(upper[d], p[d]) end
  end
  if is_flat(points) then is.fail("cq.Shape.polygon: all points lie on one line; a polygon needs an area") end
  local exact = not crosses_itself(points) and math.abs(twice) / 2 or nil
  return primitive.new("polygon", self, lower, upper, exact, function(x, y)
    local odd, a = false, points[n]
    for i = 1, n do
      local b = points[i]
      if (a[2] <= y) ~= (b[2] <= y) and x < a[1] + (y - a[2]) * (b[1] - a[1]) / (b[2] - a[2]) then odd = not odd end
      a = b
    end
    return odd
  end)
end

return primitive
