-- class: methods that all shapes have. A shape is never changed; each method returns a new one.
--
-- Inside, a shape offers
--   dim                       2 or 3
--   lower, upper              a box that holds it
--   exact                     its area or volume where a formula gives it, else nil
--   inside(x, y, z)           is the point in it
--   fill(spacing, origin)     its cloud of particles; spacing {h, h[, h]}, or nil where each part brings its own
--   surface()                 triangles double[9 n] and their number, of a shape that is a mesh; else nil
local is = require "cq.base.schema"
local made = require "cq.base.made"
local text = require "cq.base.text"

---@class cq.Shape
---@field dim integer          2 or 3
---@field kind string          "box", "union", ...
---@field lower number[]       {dim} corners of a box that holds the shape [length]
---@field upper number[]       {dim} the other corner [length]
---@field exact number?        area or volume by formula, nil when there is none
---@operator add(cq.Shape): cq.Shape
---@operator sub(cq.Shape): cq.Shape
local Shape = { __name = "cq.Shape" }
Shape.__index = Shape

local class = { Shape = Shape }

---Makes a table of a shape's fields a shape, in place, and adds the user's line, for errors that show up only when the
---shape is sampled.
function class.new(fields)
  fields.made = is.where():gsub(": $", "")
  local names = { "spacing" }
  for name, value in pairs(fields) do
    if type(value) ~= "function" then names[#names + 1] = name end           -- some are given to it later
  end
  return made.remember(setmetatable(fields, Shape), names)
end

---A shape in words for errors, such as: box "leg" made at robot.lua:7.
function class.describe(shape)
  local name = shape.name and (" \"%s\""):format(shape.name) or ""
  return ("%s%s%s"):format(shape.kind, name, shape.made ~= "" and " made at " .. shape.made or "")
end

---Raises an error if a field of the shape was assigned after it was made.
---@internal
function Shape:require_unchanged()
  made.require(self, "cq.Shape." .. self.kind, "give it to the constructor")
end

-- The shape in one line, with name and size: "cq.Shape.box { leg, 0.1 x 0.2 }".
function Shape:__tostring()
  local size = {}
  for d = 1, self.dim do size[d] = text.number(self.upper[d] - self.lower[d]) end
  return ("cq.Shape.%s {%s %s }"):format(self.kind, self.name and " " .. self.name .. "," or "",
    table.concat(size, " x "))
end

---Is a point within the shape? disc:contains { 0.1, 0 }, or disc:contains(0.1, 0). Errors: more or fewer numbers than
---the shape has dimensions.
---@param place number[]|number    { x, y } or { x, y, z }, or x [length]
---@param y? number                where x is given as a number [length]
---@param z? number                likewise, in 3D [length]
---@return boolean
function Shape:contains(place, y, z)
  local point = type(place) == "table" and place or { place, y, z }
  local fits = #point == self.dim and getmetatable(point) == nil
  for _, number in ipairs(point) do fits = fits and type(number) == "number" and number == number end
  if not fits then
    local got = type(place) == "number" and text.count(#point, "number") or text.describe(place)
    for _, number in ipairs(point) do
      if type(number) ~= "number" or number ~= number then got = text.describe(number) .. " among them" end
    end
    is.fail("shape:contains: a point of this shape is %d numbers, as { %s }, got %s", self.dim,
      self.dim == 2 and "x, y" or "x, y, z", got)
  end
  return self.inside(point[1], point[2], point[3])
end

return class
