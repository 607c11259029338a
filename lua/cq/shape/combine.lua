-- combine: shapes from shapes. Where two overlap, the particles of the first stay and those of the second that lie
-- inside the first are left out, so nothing is filled twice.
local ffi = require "ffi"
local is = require "cq.base.schema"
local predicates = require "cq.base.predicate"
local text = require "cq.base.text"
local class = require "cq.shape.class"
local cloud = require "cq.shape.cloud"
local primitive = require "cq.shape.primitive"

local Shape = class.Shape
local shape_argument = is.instance "cq.Shape"

-- Raises an error if two shapes have different dimensions; what: how they are joined, for the error.
local function same_dim(what, a, b)
  if a.dim ~= b.dim then
    is.fail("cq.Shape: %s joins shapes of one dimension, got %s in %dD and %s in %dD", what, class.describe(a), a.dim,
      class.describe(b), b.dim)
  end
end

-- Do the bounding boxes of two shapes have no volume in common?
local function apart(a, b)
  for d = 1, a.dim do
    local slack = 1e-9 * math.max(a.upper[d] - a.lower[d], b.upper[d] - b.lower[d])      -- neighbours that touch
    if a.upper[d] <= b.lower[d] + slack or b.upper[d] <= a.lower[d] + slack then return true end
  end
  return false
end

-- The box around a list of shapes. Returns its lower and its upper corner.
local function bounds(list)
  local lower, upper = {}, {}
  for d = 1, list[1].dim do
    lower[d], upper[d] = math.huge, -math.huge
    for _, shape in ipairs(list) do
      lower[d], upper[d] = math.min(lower[d], shape.lower[d]), math.max(upper[d], shape.upper[d])
    end
  end
  return lower, upper
end

-- The sum of the exact volumes of shapes; nil if one is not known, or if the boxes of two overlap.
local function exact_sum(list)
  local sum = 0
  for i, shape in ipairs(list) do
    if not shape.exact then return nil end
    for j = 1, i - 1 do
      if not apart(list[j], shape) then return nil end
    end
    sum = sum + shape.exact
  end
  return sum
end

-- A function that gives the triangles of all shapes together, as corners {triangles, 3, 3} (double*) and their number;
-- nil if a shape is no mesh.
local function surface_of(list)
  for _, shape in ipairs(list) do
    if not shape.surface then return nil end
  end
  return function()
    local parts, total = {}, 0
    for i, shape in ipairs(list) do
      local corner, count = shape.surface()
      parts[i], total = { corner = corner, count = count }, total + count
    end
    local out, at = ffi.new("double[?]", 9 * total), 0
    for _, part in ipairs(parts) do
      ffi.copy(out + 9 * at, part.corner, 9 * part.count * ffi.sizeof "double")
      at = at + part.count
    end
    return out, total
  end
end

-- The union of the shapes of a list; where they overlap, the particles of the earlier shape are taken.
local function all_of(list)
  for _, shape in ipairs(list) do shape:require_unchanged() end
  local lower, upper = bounds(list)
  -- Is a place inside one of the shapes?
  local function inside(x, y, z)
    for i = 1, #list do
      if list[i].inside(x, y, z) then return true end
    end
    return false
  end
  return class.new {
    kind = "union", dim = list[1].dim, lower = lower, upper = upper, exact = exact_sum(list), inside = inside,
    surface = surface_of(list),
    fill = function(spacing)
      local out = cloud.new(list[1].dim)
      for i, shape in ipairs(list) do
        local before = {}
        for j = 1, i - 1 do
          if not apart(list[j], shape) then before[#before + 1] = list[j].inside end
        end
        cloud.append(out, shape.fill(spacing), #before > 0 and function(x, y, z)
          for j = 1, #before do
            if before[j](x, y, z) then return false end
          end
          return true
        end or nil)
      end
      return out
    end,
  }
end

---All of these shapes: the particles of the first, then those of the second that are not inside the first, and so on.
---@param list cq.Shape[]     of one dimension
---@return cq.Shape
local function union(list)
  is.argument("cq.Shape.union", "shapes", is.list(shape_argument, { min = 1 }), list)
  for _, shape in ipairs(list) do same_dim("a union", list[1], shape) end
  return all_of(list)
end

---Both shapes; a + b is the same. Errors: a shape of a wrong dimension.
---@param other cq.Shape
---@return cq.Shape
function Shape:union(other)
  is.argument("shape:union", "other", shape_argument, other)
  return union { self, other }
end

-- A shape `kind` with the particles of the shape `self` that pass keep(x, y, z). inside(x, y, z): is a point in it?
-- lower, upper: its box, that of self unless given. Filling it raises an error if no particle passes.
local function part_of(kind, self, inside, keep, lower, upper)
  self:require_unchanged()
  return class.new {
    kind = kind, dim = self.dim, lower = lower or self.lower, upper = upper or self.upper, inside = inside,
    fill = function(spacing)
      local full = self.fill(spacing)
      local out = cloud.filter(full, keep)
      if out.count == 0 then
        is.fail("cq.Shape: the %s leaves nothing of the %s of %s", class.describe { kind = kind, made = "" },
          text.count(full.count, "particle"), class.describe(self))
      end
      return out
    end,
  }
end

---This shape without the other; a - b is the same. Errors: a shape of a wrong dimension.
---@param other cq.Shape
---@return cq.Shape
function Shape:difference(other)
  is.argument("shape:difference", "other", shape_argument, other)
  same_dim("a difference", self, other)
  local a, b = self.inside, other.inside
  return part_of("difference", self, function(x, y, z) return a(x, y, z) and not b(x, y, z) end,
    function(x, y, z) return not b(x, y, z) end)
end

---The points in both shapes, with the particles and groups of this one. Errors: shapes that do not meet, or of another
---dimension.
---@param other cq.Shape
---@return cq.Shape
function Shape:intersection(other)
  is.argument("shape:intersection", "other", shape_argument, other)
  same_dim("an intersection", self, other)
  if apart(self, other) then
    is.fail("shape:intersection: %s and %s do not meet", class.describe(self), class.describe(other))
  end
  local a, b, lower, upper = self.inside, other.inside, {}, {}
  for d = 1, self.dim do
    lower[d], upper[d] = math.max(self.lower[d], other.lower[d]), math.min(self.upper[d], other.upper[d])
  end
  return part_of("intersection", self, function(x, y, z) return a(x, y, z) and b(x, y, z) end, b, lower, upper)
end

-- a + b: the union of two shapes. Errors: an operand that is no shape; other dimensions.
Shape.__add = function(a, b)
  if not (text.is_instance(a, "cq.Shape") and text.is_instance(b, "cq.Shape")) then
    is.fail("cq.Shape: + joins two shapes, got %s and %s", text.describe(a), text.describe(b))
  end
  return a:union(b)
end

-- a - b: shape a without shape b. Errors: an operand that is no shape; other dimensions.
Shape.__sub = function(a, b)
  if not (text.is_instance(a, "cq.Shape") and text.is_instance(b, "cq.Shape")) then
    is.fail("cq.Shape: - takes a shape from a shape, got %s and %s", text.describe(a), text.describe(b))
  end
  return a:difference(b)
end

-- ---- offset ---------------------------------------------------------------------------------------------------------

-- A list of unit vectors {3} in all directions, spread evenly: neighbours are at most 0.1 rad apart in 2D and 0.2 in
-- 3D.
local function directions(dim)
  local list, count = {}, dim == 2 and 64 or 400
  for k = 0, count - 1 do
    if dim == 2 then
      list[k + 1] = { math.cos(2 * math.pi * k / count), math.sin(2 * math.pi * k / count), 0 }
    else
      -- a spiral from pole to pole
      local z, angle = 1 - (2 * k + 1) / count, k * math.pi * (3 - math.sqrt(5))
      local r = math.sqrt(1 - z * z)
      list[k + 1] = { r * math.cos(angle), r * math.sin(angle), z }
    end
  end
  return list
end

local SHELLS = 4       -- distances at which the neighbourhood of a point is looked at

---The shape and all within a distance of it: its offset outward, as the room that a liquid leaves around a body: tank -
---body:grown(dx / 2). It has no groups. To one hundredth of the distance; parts thinner than a quarter may be missed.
---@param distance number     [length]
---@return cq.Shape
function Shape:grown(distance)
  is.argument("shape:grown", "distance", is.number { above = 0 }, distance)
  local lower, upper, around, own = {}, {}, directions(self.dim), self.inside
  for d = 1, self.dim do lower[d], upper[d] = self.lower[d] - distance, self.upper[d] + distance end
  -- is a point within `distance` of the shape? Tried at points on spheres around it.
  local function near(x, y, z)
    for shell = SHELLS, 1, -1 do
      local r = distance * shell / SHELLS
      for k = 1, #around do
        local u = around[k]
        if own(x + r * u[1], y + r * u[2], z and z + r * u[3]) then return true end
      end
    end
    return false
  end
  -- Is a point within the grown shape, by its box, the shape itself, and the points near it?
  local function inside(x, y, z)
    for d = 1, self.dim do
      local at = d == 1 and x or d == 2 and y or z
      if at < lower[d] or at > upper[d] then return false end
    end
    return own(x, y, z) or near(x, y, z)
  end
  local fields = { name = self.name, spacing = self.spacing, jitter = 0, seed = 0 }
  return primitive.new("grown", fields, lower, upper, nil, inside)
end

-- ---- predicates and names -------------------------------------------------------------------------------------------

---The part of the shape where a function of the coordinates is true, as where a signed distance is below 0:
---
---  box:where(function(x, y) return sdf(x, y) < 0 end)
---Errors, here and for groups: a function that fails, or that gives a number.
---@param predicate fun(x: number, y: number, z: number?): boolean
---@return cq.Shape
function Shape:where(predicate)
  is.argument("shape:where", "predicate", is.callable(), predicate)
  local keep, own = predicates.of_place("shape:where", predicate), self.inside
  return part_of("where", self, function(x, y, z) return own(x, y, z) and keep(x, y, z) end, keep)
end

-- A new shape with the bounds, inside and surface of `self`, and with the other fields of the table `fields`, such as
-- fill.
local function same(self, fields)
  fields.kind, fields.dim, fields.lower, fields.upper = self.kind, self.dim, self.lower, self.upper
  fields.exact, fields.inside, fields.name, fields.surface = self.exact, self.inside, fields.name or self.name,
    self.surface
  return class.new(fields)
end

---The shape with all its particles in one more group.
---@param name string
---@return cq.Shape
function Shape:named(name)
  is.argument("shape:named", "name", is.string(), name)
  return same(self, { name = name, fill = function(spacing) return cloud.all(self.fill(spacing), name) end })
end

---The shape with a further group: its particles where a function of the coordinates is true. The coordinates are those
---of this shape here; what moves it later moves the group along.
---@param name string
---@param predicate fun(x: number, y: number, z: number?): boolean
---@return cq.Shape
function Shape:group(name, predicate)
  is.argument("shape:group", "name", is.string(), name)
  is.argument("shape:group", "predicate", is.callable(), predicate)
  local member = predicates.of_place(("shape:group \"%s\""):format(name), predicate)
  return same(self, { fill = function(spacing)
    local out, found = self.fill(spacing), {}
    for p = 1, out.count do
      if member(cloud.at(out, p)) then found[#found + 1] = p end
    end
    local list, known = cloud.group(out, name), {}
    for _, p in ipairs(list) do known[p] = true end
    for _, p in ipairs(found) do
      if not known[p] then list[#list + 1] = p end
    end
    table.sort(list)
    return out
  end })
end

---The shape with a name for the walls of a cavity in it, and for the group of particles there, which
---cq.Actuator.follower_pressure { surface = "name" } pushes on. The place is one of this shape here; what moves it
---later moves the walls along.
---Errors: particles that lie on no lattice, a cavity that is open, a place in the solid or beyond it.
---@param name string
---@param place number[]      {dim} in the closed cavity [length]
---@return cq.Shape
function Shape:chamber(name, place)
  is.argument("shape:chamber", "name", is.string(), name)
  is.argument("shape:chamber", "place", is.vector { size = self.dim }, place)
  return same(self, { fill = function(spacing)
    local out = self.fill(spacing)
    if out.groups[name] or out.walls[name] then
      is.fail("shape:chamber: %s has a group or walls \"%s\" already; take another name", class.describe(self), name)
    end
    return cloud.chamber(out, name, place, "shape:chamber", class.describe(self))
  end })
end

---@class shape.repeated.def
---@field count integer      copies
---@field step number[]      {dim} from each copy to the next [length]

local repeated = is.define("shape:repeated",
  { count = is.integer { min = 1, max = 1e5 }, step = is.vector { size = { 2, 3 } } })

-- A copy of a value, with nested tables copied too.
local function deep(value)
  if type(value) ~= "table" then return value end
  local out = {}
  for key, entry in pairs(value) do out[key] = deep(entry) end
  return out
end

-- Copy k of a shape in an array: each group and wall "name" is there also as "name.k".
local function numbered(shape, k)
  return same(shape, { fill = function(spacing)
    local out = shape.fill(spacing)
    for i = 1, #out.names do
      local name = out.names[i]
      local list = ("%s.%d"):format(name, k)
      out.names[#out.names + 1], out.groups[list] = list, deep(out.groups[name])
    end
    for i = 1, #out.wall_names do
      local name = out.wall_names[i]
      local own = ("%s.%d"):format(name, k)
      out.wall_names[#out.wall_names + 1], out.walls[own] = own, deep(out.walls[name])
    end
    return out
  end })
end

---Copies in a row, each moved on by step. Of a group "leg", copy 2 is the group "leg.2"; all together stay "leg". So it
---is with walls of chambers. Errors: a step of a wrong dimension.
---@param fields shape.repeated.def
---@return cq.Shape
function Shape:repeated(fields)
  local def, list = repeated(fields), {}
  if #def.step ~= self.dim then
    is.fail("shape:repeated: step has %s, the shape has %d", text.count(#def.step, "component"), self.dim)
  end
  for k = 1, def.count do
    local offset = {}
    for d, s in ipairs(def.step) do offset[d] = (k - 1) * s end
    list[k] = numbered(self:translate(offset), k)
  end
  return all_of(list)
end

return { union = union }
