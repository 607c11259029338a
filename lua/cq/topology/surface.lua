-- surface: closed surfaces around some of the particles of a body, as triangles, and files of them for printers (STL).
--
-- Particles are spread onto the nodes of a lattice as wide as they are apart, and the surface lies where the sum is
-- half of what it is deep inside: half a spacing beyond the outermost particles. Those that are on no lattice are
-- spread farther, and where they lie close the sum is by what all of the block give there. Cells of the lattice are
-- cut into simplices (triangles; tetrahedra along one diagonal), in which a plane cuts off what is inside: there are
-- no cases to choose between, and no holes.
local ffi = require "ffi"
local is = require "cq.base.schema"
local option = require "cq.option"
local text = require "cq.base.text"
local T = require "cq.tensor"
local sparse = require "cq.sparse"

local surface = {}

-- ---- the field on a lattice -----------------------------------------------------------------------------------------

local REACH = 1.15         -- spacings that a particle of a lattice is spread over: one alone still has a surface
local WIDE = 1.8           -- the same where particles are on none, so that there are some around every node
local OFF = 0.05           -- spacings that particles of a lattice may be off it
local PAD = 2              -- nodes around the body, at which nothing of it is left

-- nodes {count, dim} along x, y (and z), from the lower corner; the first particle lies on a node
local function lattice(position, h)
  local dim, lower, upper = position:size(2), position:min(1), position:max(1)
  local size, origin, count = { 1, 1, 1 }, {}, 1
  for d = 1, dim do
    local first = position:get(1, d)
    origin[d] = first - (math.ceil((first - lower:get(d)) / h - 1e-6) + PAD) * h
    size[d] = math.ceil((upper:get(d) - origin[d]) / h - 1e-6) + PAD + 1
    count = count * size[d]
  end
  local nodes = T.empty { count, dim }
  local x, at = nodes:data(), 0
  for k = 0, size[3] - 1 do
    for j = 0, size[2] - 1 do
      for i = 0, size[1] - 1 do
        x[at], x[at + 1] = origin[1] + i * h, origin[2] + j * h
        if dim == 3 then x[at + 2] = origin[3] + k * h end
        at = at + dim
      end
    end
  end
  return nodes, size
end

-- Are all particles on nodes?
local function on_nodes(position, nodes, h)
  local from = (position - nodes:slice(1, 1, 1)) * (1 / h)
  return (from - from:round()):abs():max():item() < OFF
end

-- what particles that fill space with one in each h^dim add up to at a place, by weights 1 - r / reach: the integral
local function filled(dim, reach) return math.pi * reach ^ dim / 3 end

---@class cq.Topology.Field
---@field nodes cq.Tensor      {count, dim} x fastest
---@field size integer[]       nodes along x, y, z
---@field spread cq.Sparse     {count, n}

---A lattice around particles, and how they are spread onto it.
---@param position cq.Tensor     {n, dim}
---@param h number               between particles, and between nodes
---@return cq.Topology.Field
function surface.field(position, h)
  local nodes, size = lattice(position, h)
  local regular = on_nodes(position, nodes, h)
  local reach = regular and REACH or WIDE
  local radius = reach * h
  local spread = sparse.neighbours { points = position, places = nodes, radius = radius,
    weight = function(r) return 1 - r / radius end }
  local all = spread:product(T.ones { position:size(1) })
  local whole = regular and all:max():item() or filled(position:size(2), reach)
  local row = spread:places()
  return { nodes = nodes, size = size, spread = spread:with(spread.value / all:maximum(whole):gather(row, 1)) }
end

-- ---- simplices ------------------------------------------------------------------------------------------------------

-- Kuhn's: from the first corner of a cell to the last one, an axis at a time in each order;
-- corners are numbers of bits x, y, z
local simplices = {
  [2] = { { 0, 1, 3 }, { 0, 2, 3 } },
  [3] = { { 0, 1, 3, 7 }, { 0, 1, 5, 7 }, { 0, 2, 3, 7 }, { 0, 2, 6, 7 }, { 0, 4, 5, 7 }, { 0, 4, 6, 7 } },
}
local LEVEL = 0.5

-- Where the surface crosses the edge between two nodes: the same numbers from every simplex that has
-- the edge, and never at a node.
local function crossing(x, f, dim, a, b)
  if a > b then a, b = b, a end
  local t = math.max(0.01, math.min(0.99, (LEVEL - f[a]) / (f[b] - f[a])))
  local out = {}
  for d = 0, dim - 1 do out[d + 1] = x[a * dim + d] + t * (x[b * dim + d] - x[a * dim + d]) end
  return out
end

local function place(x, dim, a)
  local out = {}
  for d = 1, dim do out[d] = x[a * dim + d - 1] end
  return out
end

-- calls each(inside, outside) with the nodes of every simplex that has both, or is inside as a whole
local function walk(field, f, dim, each)
  local size = field.size
  local step = { 1, size[1], size[1] * size[2] }
  for k = 0, math.max(size[3] - 2, 0) do
    for j = 0, size[2] - 2 do
      for i = 0, size[1] - 2 do
        local base = (k * size[2] + j) * size[1] + i
        for _, simplex in ipairs(simplices[dim]) do
          local inside, outside = {}, {}
          for _, bits in ipairs(simplex) do
            local node = base + bits % 2 * step[1] + math.floor(bits / 2) % 2 * step[2] + math.floor(bits / 4) * step[3]
            if f[node] >= LEVEL then inside[#inside + 1] = node else outside[#outside + 1] = node end
          end
          if #inside > 0 then each(inside, outside) end
        end
      end
    end
  end
end

-- ---- triangles ------------------------------------------------------------------------------------------------------

-- a triangle that is seen from the side of `away`
local function push(triangles, a, b, c, away)
  local ux, uy, uz, vx, vy, vz = b[1] - a[1], b[2] - a[2], b[3] - a[3], c[1] - a[1], c[2] - a[2], c[3] - a[3]
  local nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
  if nx * (away[1] - a[1]) + ny * (away[2] - a[2]) + nz * (away[3] - a[3]) < 0 then b, c = c, b end
  triangles[#triangles + 1] = { a, b, c }
end

local function triangles_3d(field, f)
  local x, out = field.nodes:data(), {}
  walk(field, f, 3, function(inside, outside)
    if #outside == 0 then return end
    local away = place(x, 3, outside[1])
    local function cut(a, b) return crossing(x, f, 3, a, b) end
    if #inside == 1 then
      push(out, cut(inside[1], outside[1]), cut(inside[1], outside[2]), cut(inside[1], outside[3]), away)
    elseif #inside == 3 then
      push(out, cut(inside[1], outside[1]), cut(inside[2], outside[1]), cut(inside[3], outside[1]), away)
    else
      local a, b = cut(inside[1], outside[1]), cut(inside[1], outside[2])
      local c, d = cut(inside[2], outside[2]), cut(inside[2], outside[1])
      push(out, a, b, c, away)
      push(out, a, c, d, away)
    end
  end)
  return out
end

local function lifted(p, z) return { p[1], p[2], z } end

-- a polygon at the bottom and at the top
local function cap(out, polygon, thickness)
  for k = 2, #polygon - 1 do
    for _, side in ipairs { { 0, -1 }, { thickness, 1 } } do
      local a, b, c = lifted(polygon[1], side[1]), lifted(polygon[k], side[1]), lifted(polygon[k + 1], side[1])
      push(out, a, b, c, { a[1], a[2], side[1] + side[2] })
    end
  end
end

-- a plane figure between z = 0 and its thickness
local function triangles_2d(field, f, thickness)
  local x, out = field.nodes:data(), {}
  walk(field, f, 2, function(inside, outside)
    local polygon = {}
    for _, node in ipairs(inside) do polygon[#polygon + 1] = place(x, 2, node) end
    if #outside > 0 then
      local a = crossing(x, f, 2, inside[#inside], outside[1])
      local b = crossing(x, f, 2, inside[1], outside[#outside])
      polygon[#polygon + 1], polygon[#polygon + 2] = a, b
      local away = lifted(place(x, 2, outside[1]), 0.5 * thickness)
      push(out, lifted(a, 0), lifted(b, 0), lifted(b, thickness), away)
      push(out, lifted(a, 0), lifted(b, thickness), lifted(a, thickness), away)
    end
    cap(out, polygon, thickness)
  end)
  return out
end

---The closed surface around some particles.
---@param field cq.Topology.Field
---@param dim integer
---@param some cq.Tensor         {n} 1 for particles that are inside, else 0
---@param thickness number       in 2D [length]
---@return number[][][]          triangles of three places each, seen from outside anticlockwise
function surface.triangles(field, dim, some, thickness)
  local f = field.spread:product(some):data()
  if dim == 3 then return triangles_3d(field, f) end
  return triangles_2d(field, f, thickness)
end

-- ---- files ----------------------------------------------------------------------------------------------------------

ffi.cdef [[
typedef struct __attribute__((packed)) cq_stl_facet { float normal[3], corner[3][3]; uint16_t attribute; } cq_stl_facet;
]]

---Writes triangles as a binary STL file.
---@param path string
---@param triangles number[][][]
function surface.write_stl(path, triangles)
  local facets = ffi.new("cq_stl_facet[?]", math.max(#triangles, 1))
  for k, triangle in ipairs(triangles) do
    for c = 1, 3 do
      for d = 1, 3 do facets[k - 1].corner[c - 1][d - 1] = triangle[c][d] end
    end
  end
  if option.program.follows then return end
  local file, problem = io.open(path, "wb")
  if not file then is.fail("solid:save_stl: %s", problem) end
  local head = ("cqlua; %s"):format(text.count(#triangles, "triangle"))
  file:write(head, (" "):rep(80 - #head), ffi.string(ffi.new("uint32_t[1]", #triangles), 4),
    ffi.string(facets, #triangles * 50))
  file:close()
end

return surface
