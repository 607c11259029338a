-- surface: closed surfaces around some of the particles of a body, as triangles.
--
-- Particles are spread onto the nodes of a lattice as wide as they are apart, and the surface lies where the sum is
-- half of what it is deep inside: half a spacing beyond the outermost particles. Those that are on no lattice are
-- spread farther, and where they lie close the sum is by what all of the block give there. Cells of the lattice are
-- cut into simplices (triangles; tetrahedra along one diagonal), in which fields are linear: planes cut off what is
-- outside, and part from part. There are no cases to choose between, no holes, and no gaps where parts meet.
local T = require "cq.tensor"
local sparse = require "cq.sparse"
local piece = require "cq.export.piece"

local surface = {}

-- ---- the field on a lattice -----------------------------------------------------------------------------------------

local REACH = 1.15         -- spacings that a particle of a lattice is spread over: one alone still has a surface
local WIDE = 1.8           -- the same where particles are on none, so that there are some around every node
local OFF = 0.05           -- spacings that particles of a lattice may be off it
local PAD = 2              -- nodes around the body, at which nothing of it is left

-- The places {count, dim} of the nodes of a lattice with spacing h around particles, the first of which lies on a node;
-- and how many nodes it has along x, y and z.
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

-- Are all particles on nodes of the lattice with spacing h, but for rounding?
local function on_nodes(position, nodes, h)
  local from = (position - nodes:slice(1, 1, 1)) * (1 / h)
  return (from - from:round()):abs():max():item() < OFF
end

-- The sum of weights 1 - r / reach at a place in space that is filled with one particle in each h^dim: an integral.
local function filled(dim, reach) return math.pi * reach ^ dim / 3 end

---@class cq.export.Lattice
---@field nodes cq.Tensor      {count, dim} x fastest
---@field size integer[]       nodes along x, y, z
---@field spread cq.Sparse     {count, n}

---A lattice around particles, with the particles' weights spread onto its nodes: they sum to 1 deep in the body.
---@param position cq.Tensor     {n, dim}
---@param h number               between particles, and between nodes
---@return cq.export.Lattice
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

-- ---- cells ----------------------------------------------------------------------------------------------------------

-- Kuhn's: from the first corner of a cell to the last one, an axis at a time in each order; corners are numbers of bits
-- x, y, z. Anticlockwise and right-handed.
local simplices = {
  [2] = { { 0, 1, 3 }, { 0, 3, 2 } },
  [3] = { { 0, 1, 3, 7 }, { 0, 5, 1, 7 }, { 0, 3, 2, 7 }, { 0, 2, 6, 7 }, { 0, 4, 5, 7 }, { 0, 6, 4, 7 } },
}
local LEVEL = 0.5
local OFF_LEVEL = 0.01     -- no node is nearer to the surface, for slivers are hard to print
local APART = 1e-4         -- of the field of a part to that of the next, for none are the largest together

-- Calls each(nodes) for every simplex into which the cells of a grid are cut. nodes: numbers from 0, in one table that
-- is used again.
local function each_simplex(field, dim, each)
  local size, nodes = field.size, {}
  local step = { 1, size[1], size[1] * size[2] }
  for k = 0, math.max(size[3] - 2, 0) do
    for j = 0, size[2] - 2 do
      for i = 0, size[1] - 2 do
        local base = (k * size[2] + j) * size[1] + i
        for _, simplex in ipairs(simplices[dim]) do
          for c, bits in ipairs(simplex) do
            nodes[c] = base + bits % 2 * step[1] + math.floor(bits / 2) % 2 * step[2] + math.floor(bits / 4) * step[3]
          end
          each(nodes)
        end
      end
    end
  end
end

-- Two values: `whole`, by node from 0 the sum of all fields less the level of the surface, kept OFF_LEVEL away from 0;
-- and a function corner(node, top) that gives a node as a corner of cells. A figure of the plane has two of them, at
-- the bottom and, with `top`, at its thickness.
local function node_corners(field, dim, fields, thickness)
  local x, count, whole, known = field.nodes:data(), field.nodes:size(1), {}, {}
  for node = 0, count - 1 do
    local sum = 0
    for _, f in ipairs(fields) do sum = sum + f[node] end
    local off = sum - LEVEL
    whole[node] = math.abs(off) < OFF_LEVEL and (off < 0 and -OFF_LEVEL or OFF_LEVEL) or off
  end
  -- the corner of a cell at a grid node, or at its copy on the top face of a thickened 2D body; made once
  local function corner(node, top)
    local name = top and node + count or node
    if not known[name] then
      local value = { whole[node] }
      for k, f in ipairs(fields) do value[k + 1] = f[node] + k * APART end
      local place = { x[node * dim], x[node * dim + 1], dim == 3 and x[node * dim + 2] or top and thickness or 0 }
      known[name] = { nodes = { name }, cuts = {}, place = place, value = value }
    end
    return known[name]
  end
  return whole, corner
end

-- The faces of a simplex, or of a prism on a triangle, as lists of corners; corner: of node_corners.
local function cell_faces(corner, nodes, dim)
  local a, b, c = corner(nodes[1]), corner(nodes[2]), corner(nodes[3])
  if dim == 3 then
    local d = corner(nodes[4])
    return { { a, c, b }, { a, b, d }, { b, c, d }, { c, a, d } }
  end
  local A, B, C = corner(nodes[1], true), corner(nodes[2], true), corner(nodes[3], true)
  return { { a, c, b, drawn = true }, { A, B, C, drawn = true },
    { a, b, B, A }, { b, c, C, B }, { c, a, A, C } }
end

-- A list of the numbers of the parts that have material at one of these nodes at least.
local function parts_at(fields, nodes)
  local out = {}
  for k, f in ipairs(fields) do
    for _, node in ipairs(nodes) do
      if f[node] > 0 then
        out[#out + 1] = k
        break
      end
    end
  end
  return out
end

-- Adds a convex face to a list as a fan of triangles, three places each.
local function push(triangles, face)
  for k = 2, #face - 1 do triangles[#triangles + 1] = { face[1].place, face[k].place, face[k + 1].place } end
end

---Closed surfaces around parts of the particles. Together they fill the surface of all: each place belongs to the
---part whose field is largest there.
---@param field cq.export.Lattice
---@param dim integer
---@param parts cq.Tensor[]      {n} each, 1 for particles of the part, else 0
---@param thickness? number      in 2D [length]
---@return number[][][][]        of each part triangles of three places each, anticlockwise from outside
function surface.triangles(field, dim, parts, thickness)
  local sums, fields, known, out = {}, {}, {}, {}
  for k, some in ipairs(parts) do
    sums[k] = field.spread:product(some)
    fields[k], known[k], out[k] = sums[k]:data(), {}, {}
  end
  local whole, corner = node_corners(field, dim, fields, thickness)
  each_simplex(field, dim, function(nodes)
    local inside = 0
    for _, node in ipairs(nodes) do inside = inside + (whole[node] >= 0 and 1 or 0) end
    if inside == 0 then return end
    local here = parts_at(fields, nodes)
    if dim == 3 and inside == #nodes and #here == 1 then return end
    for _, k in ipairs(here) do
      local faces = piece.cut(known[k], cell_faces(corner, nodes, dim), 0, function(value) return value[1] end)
      for _, other in ipairs(here) do
        if other ~= k then
          faces = piece.cut(known[k], faces, other, function(value) return value[k + 1] - value[other + 1] end)
        end
      end
      for _, face in ipairs(faces) do
        if face.drawn then push(out[k], face) end
      end
    end
  end)
  return out
end

---Triangles as vertices and, for each triangle, three indices from 0. Corners whose place is the same Lua table are one
---vertex, so that two triangles share each edge; degenerate triangles are left out.
---@param triangles number[][][]     of surface.triangles
---@param name string
---@return cq.export.Body
function surface.indexed(triangles, name)
  local number, corners, out = {}, {}, {}
  for _, triangle in ipairs(triangles) do
    local index = {}
    for c, place in ipairs(triangle) do
      if not number[place] then
        number[place] = #corners
        corners[#corners + 1] = place
      end
      index[c] = number[place]
    end
    if index[1] ~= index[2] and index[2] ~= index[3] and index[3] ~= index[1] then
      for c = 1, 3 do out[#out + 1] = index[c] end
    end
  end
  return { name = name, vertices = T.tensor(corners), triangles = out }
end

return surface
