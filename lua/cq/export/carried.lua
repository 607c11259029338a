-- carried: surfaces that particles carry along: each corner goes as the particles around it do, by where they are and
-- by their deformation gradients, so that the triangles stay the same at all times.
--
--   x = sum_p w_p (x_p + F_p (X - X_p)),   w_p falling to 0 with the distance of X from X_p at rest
local ffi = require "ffi"
local surface = require "cq.export.surface"
local sparse = require "cq.sparse"
local T = require "cq.tensor"

local carried = {}

local REACH = 2            -- spacings from which particles carry a corner; farther where there are none so near

---The surface of a body: corners {v, 3} and triangles.
---@class cq.export.Body
---@field name string
---@field vertices cq.Tensor      {v, 3} [length]
---@field triangles integer[]     three corners each, from 0, anticlockwise from outside

---Surfaces of all bodies at one moment.
---@class cq.export.Surface
---@field bodies cq.export.Body[]
---@field time number
---@field precision "float32"|"float64"
local Surface = { __name = "cq.export.Surface" }
Surface.__index = Surface

---The surfaces of bodies at one time as one object, for the formats that write triangles; time 0 and float32 unless
---given.
---@param fields { bodies: cq.export.Body[], time: number?, precision: string? }
---@return cq.export.Surface
function carried.surface(fields)
  return setmetatable({ bodies = fields.bodies, time = fields.time or 0, precision = fields.precision or "float32" },
    Surface)
end

---All bodies as one: corners {v, 3}, triangles (from 0), and of each corner the number of its body {v}, from 1.
---@return cq.Tensor points, integer[] triangles, cq.Tensor body
function Surface:joined()
  local points, triangles, body, first = {}, {}, {}, 0
  for k, one in ipairs(self.bodies) do
    local count = one.vertices:size(1)
    points[k], body[k] = one.vertices, T.full({ count }, k)
    for _, corner in ipairs(one.triangles) do triangles[#triangles + 1] = corner + first end
    first = first + count
  end
  return T.concat(points, 1), triangles, T.concat(body, 1)
end

-- A body of triangles double[count 3 3] as vertices and indices: corners at the same place become one vertex.
local function welded(corner, count, name)
  local places, triangles = {}, {}
  for t = 0, count - 1 do
    triangles[t + 1] = {}
    for c = 0, 2 do
      local x = corner + 9 * t + 3 * c
      local key = ("%.12g %.12g %.12g"):format(x[0], x[1], x[2])
      places[key] = places[key] or { x[0], x[1], x[2] }
      triangles[t + 1][c + 1] = places[key]
    end
  end
  return surface.indexed(triangles, name)
end

-- The weights of the particles around each corner, a sparse matrix {v, n} whose rows add up to 1. h: the spacing of
-- particles [length].
local function weights(rest, corners, h)
  local radius = REACH * h
  while true do
    local near = sparse.neighbours { points = rest, places = corners, radius = radius,
      weight = function(r) return 1 - r / radius end }
    local sum = near:product(T.ones { rest:size(1) })
    if sum:min():item() > 1e-3 then
      local row = near:places()
      return near:with(near.value / sum:gather(row, 1))
    end
    radius = 2 * radius
  end
end

---@class cq.export.Skin
---@field body cq.export.Body     where its particles are at rest
local Skin = {}
Skin.__index = Skin

---A surface that moves along with some particles.
---@param fields { name: string, rest: cq.Tensor, volume: cq.Tensor, thickness: number?, mesh: ffi.cdata*?, triangles: integer? }
---  rest {n, dim}; volume {n}; thickness: in 2D; mesh {triangles, 3, 3}: the surface itself; without one it is put
---  around the particles
---@return cq.export.Skin?        nil: the particles lie too far apart for one
function carried.skin(fields)
  local rest, body = fields.rest
  local n, dim = rest:size(1), rest:size(2)
  local h = fields.volume:mean():item() ^ (1 / dim)
  if fields.mesh then
    body = welded(ffi.cast("double *", fields.mesh), fields.triangles, fields.name)
  else
    body = surface.indexed(surface.triangles(surface.field(rest, h), dim, { T.ones { n } }, fields.thickness)[1],
      fields.name)
  end
  if #body.triangles == 0 then return nil end
  local corners = dim == 3 and body.vertices or body.vertices:slice(1, 2, 2):copy()
  return setmetatable({ body = body, rest = rest, corners = corners, dim = dim, weight = weights(rest, corners, h) },
    Skin)
end

---The surface as the particles carry it at one moment.
---@param x cq.Tensor      where the particles are, {n, dim}
---@param F cq.Tensor      their deformation gradients from rest, {n, dim, dim}
---@return cq.export.Body
function Skin:posed(x, F)
  local dim, v = self.dim, self.corners:size(1)
  local n = x:size(1)
  local from = x - F:matmul(self.rest:reshape { n, dim, 1 }):squeeze(-1)
  local moved = self.weight:product(from:transpose(1, 2)):transpose(1, 2)
  local turned = self.weight:product(F:reshape { n, dim * dim }:transpose(1, 2)):transpose(1, 2):reshape { v, dim, dim }
  local places = moved + turned:matmul(self.corners:reshape { v, dim, 1 }):squeeze(-1)
  if dim == 2 then places = T.concat({ places, self.body.vertices:slice(3, 3, 2) }, 2) end
  return { name = self.body.name, vertices = places:copy(), triangles = self.body.triangles }
end

return carried
