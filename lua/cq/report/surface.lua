-- surface: the surfaces of bodies for the page, as pictures draw them (engine/picture/skin.c): the cells of the lattice
-- that a shape was filled with, or its mesh. The page has the particles' places and no deformation gradients, so that
-- each vertex hangs on a few of them:
--
--   x = sum_k w_k x_k,   sum_k w_k = 1,   and in an undeformed body the sum is the vertex itself
--
-- The particles are the nearest ones that are the corners of a simplex: 4 in space, 3 in the plane. The weights are
-- then linear in space, and a vertex half a spacing outside of the outermost particles goes with them.
local ffi = require "ffi"
local bodies = require "cq.picture.body"
local encode = require "cq.report.encode"
local engine = require "cq.base.engine"
local parts = require "cq.picture.parts"
local sparse = require "cq.sparse"
local T = require "cq.tensor"

local C = engine.C
local surface = { SCALE = 256 }      -- weights are kept as whole parts of it

local REACH = 2.2            -- spacings in which particles for a vertex are looked for, or farther
local WIDE = 0.3             -- of its distance, by which a corner of a simplex lies off those before it, at least
local TORN = 4               -- times as far apart as undeformed: a body whose neighbours are so has no surface
local HEAVY = 16             -- the largest weight

-- ---- the particles of a vertex --------------------------------------------------------------------------------------

-- The components of the vector `way` along each of some orthonormal axes, a list; `way` is reduced in place to its rest
-- orthogonal to them.
local function project(axes, way)
  local along = {}
  for k, axis in ipairs(axes) do
    local dot = 0
    for d = 1, #way do dot = dot + axis[d] * way[d] end
    for d = 1, #way do way[d] = way[d] - dot * axis[d] end
    along[k] = dot
  end
  return along
end

-- The length of a vector.
local function length(way)
  local sum = 0
  for d = 1, #way do sum = sum + way[d] ^ 2 end
  return math.sqrt(sum)
end

-- The vector from particle p, at double x[], to vertex v, at double y[].
local function way_between(x, p, y, v, dim)
  local out = {}
  for d = 1, dim do out[d] = y[dim * v + d - 1] - x[dim * p + d - 1] end
  return out
end

-- The corners of a simplex, chosen from a list of particles, the nearest first, and their weights with the sum 1, by
-- which their places x give the place of vertex y[v]. If the simplex is too flat: the nearest particle alone.
local function simplex(x, list, y, v, dim)
  local corners, axes, edges = { list[1] }, {}, {}
  for k = 2, #list do
    if #corners > dim then break end
    local way = way_between(x, list[1], x, list[k], dim)
    local far = length(way)
    local along = project(axes, way)
    local off = length(way)
    if off > WIDE * far then
      for d = 1, dim do way[d] = way[d] / off end
      axes[#axes + 1], along[#along + 1] = way, off
      corners[#corners + 1], edges[#edges + 1] = list[k], along
    end
  end
  local rest, weights, first = project(axes, way_between(x, list[1], y, v, dim)), {}, 1
  for j = #edges, 1, -1 do
    local w = rest[j] / edges[j][j]
    for k = 1, j - 1 do rest[k] = rest[k] - w * edges[j][k] end
    weights[j + 1], first = w, first - w
  end
  weights[1] = first
  for _, w in ipairs(weights) do
    if math.abs(w) > HEAVY then return { list[1] }, { 1 } end
  end
  return corners, weights
end

-- A function near(v) that returns a list of the particles of x {n, dim} around row v of `places` {m, dim}, the nearest
-- first, at least one; numbers from 0.
local function neighbours(x, places, spacing)
  local radius = REACH * spacing
  local near
  repeat
    near = sparse.neighbours { points = x, places = places, radius = radius, weight = function(r) return r end }
    local least = math.huge
    for v = 0, near.rows - 1 do least = math.min(least, tonumber(near.start[v + 1] - near.start[v])) end
    radius = 2 * radius
  until least > 0
  local distance = near.value:data()
  return function(v)
    local entries, list = {}, {}
    for e = tonumber(near.start[v]), tonumber(near.start[v + 1]) - 1 do entries[#entries + 1] = e end
    table.sort(entries, function(a, b)
      -- what is equally far but for rounding is taken by its number, so that vertices side by side choose alike
      if math.abs(distance[a] - distance[b]) > 1e-4 * spacing then return distance[a] < distance[b] end
      return near.column[a] < near.column[b]
    end)
    for k, e in ipairs(entries) do list[k] = tonumber(near.column[e]) end
    return list
  end
end

-- ---- a body ---------------------------------------------------------------------------------------------------------

-- Do two neighbouring particles of a body ever come far apart? Such a body has no lasting surface. positions: of all
-- frames.
local function is_torn(body, lattice, rest, positions, dim)
  for d = 1, dim do
    for k = 0, lattice.count - 1 do
      local q = lattice.before[d][k]
      local a, b = lattice.order[k], q >= 0 and lattice.order[q]
      if b and a >= body.first and a < body.first + body.count then
        local most = (TORN * length(way_between(rest, a, rest, b, dim))) ^ 2
        for _, x in ipairs(positions) do
          local far = 0
          for i = 0, dim - 1 do far = far + (x[dim * a + i] - x[dim * b + i]) ^ 2 end
          if not (far < most) then return true end
        end
      end
    end
  end
  return false
end

-- The centres of faces {count, dim}; faces: four numbers of vertices each, the last -1 in a triangle.
local function centres(vertices, faces, count, dim)
  local out = T.zeros { count, dim }
  local x, y = out:data(), vertices:data()
  for f = 0, count - 1 do
    local corners = faces[4 * f + 3] < 0 and 3 or 4
    for c = 0, corners - 1 do
      for d = 0, dim - 1 do x[dim * f + d] = x[dim * f + d] + y[dim * faces[4 * f + c] + d] / corners end
    end
  end
  return out
end

-- The particles of a body that the page shows: a list of their indices in the page's arrays, from 0, and their places
-- at rest, a tensor. position: places of all particles of the body.
local function kept(body, lattice, position, dim)
  local list = {}
  for k = 0, lattice.count - 1 do
    if lattice.order[k] >= body.first and lattice.order[k] < body.first + body.count then list[#list + 1] = k end
  end
  local x, from = T.empty { #list, dim }, position:data()
  local to = x:data()
  for i, k in ipairs(list) do
    for d = 0, dim - 1 do to[dim * (i - 1) + d] = from[dim * (lattice.order[k] - body.first) + d] end
  end
  return list, x
end

-- Appends the surface of one body to `out`, and marks in out.alone the particles outside of it, which are drawn as
-- balls. drawn: the body of a picture, with its skin (engine/picture/skin.c).
local function add(out, drawn, body, lattice, position, dim)
  local info, skin = ffi.new "cq_skin_info", drawn.skin
  drawn:pose(drawn.at, nil, nil)
  C.cq_skin_describe(skin, info)
  local count, faces = tonumber(info.vertex_count), tonumber(info.face_count)
  local alone, corner = ffi.new("uint8_t[?]", body.count), ffi.new("int32_t[?]", 4 * faces + 1)
  local vertices = T.empty { math.max(count, 1), dim }
  C.cq_skin_read(skin, vertices:data(), corner, alone)
  local list, x = kept(body, lattice, position, dim)
  for _, k in ipairs(list) do out.alone[k] = alone[lattice.order[k] - body.first] end
  if count == 0 or #list == 0 then return end
  local near, from, to = neighbours(x, vertices, body.spacing), x:data(), vertices:data()
  local first = #out.bonds / (dim + 1)
  for v = 0, count - 1 do
    local corners, weights = simplex(from, near(v), to, v, dim)
    for c = 1, dim + 1 do
      out.bonds[#out.bonds + 1] = list[(corners[c] or corners[1]) + 1]
      out.weights[#out.weights + 1] = math.floor(surface.SCALE * (weights[c] or 0) + 0.5)
    end
  end
  near = neighbours(x, centres(vertices, corner, faces, dim), body.spacing)
  for f = 0, faces - 1 do
    out.of[f + out.faces] = list[near(f)[1] + 1]
    for c = 0, 3 do
      local v = corner[4 * f + c]
      out.corners[#out.corners + 1] = first + (v < 0 and corner[4 * f + 2] or v)
    end
  end
  out.faces = out.faces + faces
end

-- Compressed text of a list of rows of `width` numbers, stored column by column: neighbouring numbers are then similar,
-- and compress better.
local function transposed(list, width)
  local count = #list / width
  local out = ffi.new("int32_t[?]", math.max(#list, 1))
  for k, value in ipairs(list) do out[(k - 1) % width * count + math.floor((k - 1) / width)] = value end
  return encode.integers(out, #list)
end

---The surfaces, for the page, of all bodies that hold together: { vertices, faces, scale, and numbers of the page's
---texts bonds, weights, corners, of and alone: a byte for each particle, 1 if it is drawn as a ball }.
---@param film table             with world, rest, volume, and positions of its frames
---@param list table[]            its bodies
---@param lattice cq.Report.lattice
---@param keep fun(text: string): integer   adds a text to the page, and returns its number
---@return table
function surface.of(film, list, lattice, keep)
  local world, rest, volume, dim = film.world, film.rest, film.volume, film.world.dim
  local out = { bonds = {}, weights = {}, corners = {}, of = {}, faces = 0,
    alone = ffi.new("uint8_t[?]", lattice.count) }
  ffi.fill(out.alone, lattice.count, 1)
  for k, part in ipairs(parts.bodies(world)) do
    local body = list[k]
    if body.loose ~= true and not is_torn(body, lattice, rest:data(), film.positions, dim) then
      local position = part.rest or rest:slice(body.first + 1, body.first + body.count, 1):copy()
      part.first, part.rest = 1, nil
      local drawn = bodies.list({ part }, { dim = dim, volumes = volume:data() + body.first }, body.count,
        position:data())[1]
      drawn.at = position:data()
      add(out, drawn, body, lattice, position, dim)
    end
  end
  local of = ffi.new("int32_t[?]", math.max(out.faces, 1))
  for f = 0, out.faces - 1 do of[f] = out.of[f] end
  return {
    vertices = #out.bonds / (dim + 1), faces = out.faces, scale = surface.SCALE,
    alone = keep(encode.bytes(out.alone, lattice.count)),
    bonds = keep(transposed(out.bonds, dim + 1)), weights = keep(transposed(out.weights, dim + 1)),
    corners = keep(transposed(out.corners, 4)), of = keep(encode.integers(of, out.faces)),
  }
end

return surface
