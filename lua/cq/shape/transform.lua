-- transform: shapes moved, turned, scaled and mirrored; the same linear map moves the particles
-- and multiplies their volumes.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.shape.class"
local cloud = require "cq.shape.cloud"

local Shape = class.Shape

-- The determinant of a 2 x 2 or 3 x 3 matrix.
local function determinant(a)
  if #a == 2 then return a[1][1] * a[2][2] - a[1][2] * a[2][1] end
  return a[1][1] * (a[2][2] * a[3][3] - a[2][3] * a[3][2]) - a[1][2] * (a[2][1] * a[3][3] - a[2][3] * a[3][1])
       + a[1][3] * (a[2][1] * a[3][2] - a[2][2] * a[3][1])
end

-- The inverse of a 2 x 2 or 3 x 3 matrix with this determinant.
local function inverse(a, det)
  if #a == 2 then
    return { { a[2][2] / det, -a[1][2] / det }, { -a[2][1] / det, a[1][1] / det } }
  end
  local out = { {}, {}, {} }
  for i = 1, 3 do
    for j = 1, 3 do
      local i1, i2, j1, j2 = i % 3 + 1, (i + 1) % 3 + 1, j % 3 + 1, (j + 1) % 3 + 1
      out[j][i] = (a[i1][j1] * a[i2][j2] - a[i1][j2] * a[i2][j1]) / det
    end
  end
  return out
end

-- A function of two or three numbers that returns the components of A x + b. a: lists of rows; b: a list.
local function map(a, b)
  local a11, a12, a21, a22, b1, b2 = a[1][1], a[1][2], a[2][1], a[2][2], b[1], b[2]
  if #a == 2 then
    return function(x, y) return a11 * x + a12 * y + b1, a21 * x + a22 * y + b2 end
  end
  local a13, a23, a31, a32, a33, b3 = a[1][3], a[2][3], a[3][1], a[3][2], a[3][3], b[3]
  return function(x, y, z)
    return a11 * x + a12 * y + a13 * z + b1, a21 * x + a22 * y + a23 * z + b2, a31 * x + a32 * y + a33 * z + b3
  end
end

-- { area, arm, mirrors }: functions that turn area vectors of walls and their arms under x -> A x, and whether A is a
-- mirror image. Areas change by |det A| A^-T, N out of the solid also on a mirror image, and arms by A.
local function wall_maps(a, inverted, det)
  local none, cofactor = {}, {}
  for i = 1, #a do
    none[i], cofactor[i] = 0, {}
    for j = 1, #a do cofactor[i][j] = math.abs(det) * inverted[j][i] end
  end
  return { area = map(cofactor, none), arm = map(a, none), mirrors = det < 0 }
end

-- The box that holds a box after the map x -> A x + b. Returns its lower and its upper corner.
local function map_box(a, b, lower, upper)
  local low, high = {}, {}
  for i = 1, #a do
    low[i], high[i] = b[i], b[i]
    for j = 1, #a do
      local p, q = a[i][j] * lower[j], a[i][j] * upper[j]
      low[i], high[i] = low[i] + math.min(p, q), high[i] + math.max(p, q)
    end
  end
  return low, high
end

-- The lattice spacing {dim} that becomes the given spacing under the map A.
local function spacing_before(a, spacing)
  local out = {}
  for j = 1, #a do
    local sum = 0
    for i = 1, #a do
      local share = a[i][j] / spacing[i]
      sum = sum + share * share
    end
    out[j] = 1 / math.sqrt(sum)
  end
  return out
end

-- The shape under x -> A (x - about) + about + offset, with its particles, walls and volume; A is invertible. about,
-- offset: lists {dim}, or nil for 0.
local function transformed(self, kind, a, about, offset)
  self:require_unchanged()
  local dim, b = self.dim, {}
  for i = 1, dim do
    b[i] = (about and about[i] or 0) + (offset and offset[i] or 0)
    for j = 1, dim do b[i] = b[i] - a[i][j] * (about and about[j] or 0) end
  end
  local det = determinant(a)
  local inverted = inverse(a, det)
  local back_offset = {}
  for i = 1, dim do
    back_offset[i] = 0
    for j = 1, dim do back_offset[i] = back_offset[i] - inverted[i][j] * b[j] end
  end
  local lower, upper = map_box(a, b, self.lower, self.upper)
  local place, back, inside = map(a, b), map(inverted, back_offset), self.inside
  local walls = wall_maps(a, inverted, det)
  return class.new {
    surface = self.surface and function()
      local corner, count = self.surface()
      for k = 0, 3 * count - 1 do
        corner[3 * k], corner[3 * k + 1], corner[3 * k + 2] = place(corner[3 * k], corner[3 * k + 1], corner[3 * k + 2])
      end
      return corner, count
    end,
    kind = kind, name = self.name, dim = dim, lower = lower, upper = upper, exact = self.exact
      and self.exact * math.abs(det),
    inside = function(x, y, z) return inside(back(x, y, z)) end,
    fill = function(spacing)
      return cloud.map(self.fill(spacing and spacing_before(a, spacing)), place, math.abs(det), walls)
    end,
  }
end

-- The matrix, a list of rows, with these values on its diagonal.
local function diagonal(values)
  local a = {}
  for i = 1, #values do
    a[i] = {}
    for j = 1, #values do a[i][j] = i == j and values[i] or 0 end
  end
  return a
end

-- Checks that an argument of the method `name` is a list of as many numbers as the shape has dimensions; returns it.
local function vector(self, name, argument, value, optional)
  return is.argument(name, argument, is.vector { size = self.dim, optional = optional }, value)
end

---The shape moved by an offset.
---@param offset number[]     {dim} [length]
---@return cq.Shape
function Shape:translate(offset)
  vector(self, "shape:translate", "offset", offset)
  return transformed(self, self.kind, diagonal(self.dim == 2 and { 1, 1 } or { 1, 1, 1 }), nil, offset)
end

---Moves the shape by an offset, as translate.
---@param offset number[]     {dim} [length]
---@return cq.Shape
function Shape:at(offset)
  vector(self, "shape:at", "offset", offset)
  return self:translate(offset)
end

local axes = { x = { 1, 0, 0 }, y = { 0, 1, 0 }, z = { 0, 0, 1 } }

-- The matrix of a rotation by an angle, in 3D about the axis {3} by Rodrigues' formula, in 2D without one. Errors: an
-- axis of length 0.
local function rotation(angle, axis)
  local c, s = math.cos(angle), math.sin(angle)
  if not axis then return { { c, -s }, { s, c } } end
  local length = math.sqrt(axis[1] * axis[1] + axis[2] * axis[2] + axis[3] * axis[3])
  if length == 0 then is.fail("shape:rotate: axis must have a direction, got the zero vector") end
  local x, y, z, k = axis[1] / length, axis[2] / length, axis[3] / length, 1 - c
  return {
    { c + k * x * x, k * x * y - s * z, k * x * z + s * y },
    { k * x * y + s * z, c + k * y * y, k * y * z - s * x },
    { k * x * z - s * y, k * y * z + s * x, c + k * z * z },
  }
end

---The shape turned counterclockwise. In 3D about an axis, "x", "y", "z" or a direction, by the right hand's rule.
---  2D: shape:rotate(angle, about?)     3D: shape:rotate(angle, axis, about?)
---@param angle number              [radian]
---@param axis? string|number[]     3D only
---@param about? number[]           a point that stays, the origin unless given; in 2D also as the second argument [length]
---@return cq.Shape
function Shape:rotate(angle, axis, about)
  is.argument("shape:rotate", "angle", is.number(), angle)
  if self.dim == 2 then
    if axis ~= nil and about ~= nil then
      is.fail("shape:rotate: a shape in the plane has no axis to turn about; write shape:rotate(angle, about)")
    end
    local point = axis or about
    vector(self, "shape:rotate", "about", point, true)
    return transformed(self, self.kind, rotation(angle), point)
  end
  is.argument("shape:rotate", "axis", is.any_of { is.one_of { "x", "y", "z" }, is.vector { size = 3 } }, axis)
  vector(self, "shape:rotate", "about", about, true)
  return transformed(self, self.kind, rotation(angle, axes[axis] or axis), about)
end

---The shape made larger by a factor, or by one along each axis.
---@param factor number|number[]    above 0
---@param about? number[]           a point that stays, the origin unless given [length]
---@return cq.Shape
function Shape:scale(factor, about)
  is.argument("shape:scale", "factor", is.any_of { is.number { above = 0 }, is.vector { size = self.dim, above = 0 } },
    factor)
  vector(self, "shape:scale", "about", about, true)
  local values = {}
  for d = 1, self.dim do values[d] = type(factor) == "table" and factor[d] or factor end
  return transformed(self, self.kind, diagonal(values), about)
end

-- The least and the largest of height(x, z) over a shape's box in the plane, by samples. Errors: a height that is no
-- finite number.
local function range_of(height, shape)
  local n, low, high = shape.dim == 2 and 1000 or 100, math.huge, -math.huge
  -- Coordinate k of n + 1, from 0, between the box's faces along axis d.
  local function along(d, k) return shape.lower[d] + (shape.upper[d] - shape.lower[d]) * k / n end
  for i = 0, n do
    for k = 0, shape.dim == 3 and n or 0 do
      local value = height(along(1, i), shape.dim == 3 and along(3, k) or nil)
      if type(value) ~= "number" or value - value ~= 0 then
        is.fail("shape:raised: height must give a finite number, got %s at x = %g", text.describe(value), along(1, i))
      end
      low, high = math.min(low, value), math.max(high, value)
    end
  end
  return low, high
end

---The shape with every point raised by a function of x (and z), as ground by the height of a terrain. No volume
---changes, and a box keeps as many particles in each of its columns. Errors: a shape with walls for a pressure, whose
---areas would not follow.
---@param height fun(x: number, z: number?): number    [length]
---@return cq.Shape
function Shape:raised(height)
  is.argument("shape:raised", "height", is.callable(), height)
  self:require_unchanged()
  local low, high = range_of(height, self)
  local lower, upper, inside = { unpack(self.lower) }, { unpack(self.upper) }, self.inside
  lower[2], upper[2] = lower[2] + low, upper[2] + high
  return class.new {
    kind = self.kind, name = self.name, dim = self.dim, lower = lower, upper = upper, exact = self.exact,
    inside = function(x, y, z) return inside(x, y - height(x, z), z) end,
    fill = function(spacing)
      local out = self.fill(spacing)
      if #out.wall_names > 0 then
        is.fail("shape:raised: %s has walls that a pressure may push on, such as \"%s\", whose areas do not follow",
          class.describe(self), out.wall_names[1])
      end
      return cloud.map(out, function(x, y, z) return x, y + height(x, z), z end, 1)
    end,
  }
end

---The mirror image along an axis.
---@param axis "x"|"y"|"z"
---@param at? number     where the mirror stands on that axis, 0 unless given [length]
---@return cq.Shape
function Shape:mirror(axis, at)
  is.argument("shape:mirror", "axis", self.dim == 2 and is.one_of { "x", "y" } or is.one_of { "x", "y", "z" }, axis)
  is.argument("shape:mirror", "at", is.number { optional = true }, at)
  local values, about = {}, {}
  for d, name in ipairs { "x", "y", self.dim == 3 and "z" or nil } do
    values[d], about[d] = name == axis and -1 or 1, name == axis and at or 0
  end
  return transformed(self, self.kind, diagonal(values), about)
end

return {}
