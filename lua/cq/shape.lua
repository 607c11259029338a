-- shape: regions of the plane or of space that fill themselves with particles.
--
--   local leg  = cq.Shape.box { name = "leg", size = { 0.1, 0.2 }, spacing = 1/120 }
--   local hole = cq.Shape.disc { at = { 0.3, 0.35 }, radius = 0.05 }
--   local body = cq.Shape.disc { name = "body", at = { 0.25, 0.3 }, radius = 0.2 } - hole
--   local legs = leg:repeated { count = 2, step = { 0.4, 0 } }
--   local all  = legs + body:group("top", function(_, y) return y > 0.4 end)
--   local sample = all:sample { spacing = 1/120 }       -- position {n, 2}, volume {n}, groups
--
-- a + b is the union, a - b the difference. Angles are in radian. A particle sits in the middle of its cell of a
-- regular lattice and has the cell's volume.
local method = require "cq.base.method"
local class = require "cq.shape.class"
local primitive = require "cq.shape.primitive"
require "cq.shape.transform"
local combine = require "cq.shape.combine"
require "cq.shape.sample"
local solid = require "cq.shape.solid"

---@class cq.ShapeModule
local shape = {
  class = class.Shape,
  box = primitive.box,
  disc = primitive.disc,
  sphere = primitive.sphere,
  ellipse = primitive.ellipse,
  capsule = primitive.capsule,
  polygon = primitive.polygon,
  image = require "cq.shape.image",
  mesh = require "cq.shape.mesh",
  points = require "cq.shape.points",
  tetrahedra = solid.tetrahedra,
  triangles = solid.triangles,
  union = combine.union,
}

method.guard(class.Shape, "shape")

return shape
