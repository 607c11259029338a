-- Makes the meshes that creatures are made from, into scenes/assets.       cqlua scenes/make_meshes.lua
--
-- creature.stl: a squat animal on four stout legs, with a head, ears and a hump; one closed surface. A drawing of our
-- own: the zero set of a smooth union of ellipsoids, cut into triangles by marching tetrahedra, which always close. x
-- is forward, y up; --fine 0.03 makes it of smaller triangles.
local ffi = require "ffi"
local option = require "cq.option"

local STEP = option("fine", 0.07)                                    -- of the lattice [length]
-- the right half; the left one is its mirror image
local LOWER, UPPER = { -0.66, -0.12, 0 }, { 0.80, 1.02, 0.50 }

-- ---- the shape, as a function that is negative inside ---------------------------------------------------------------

-- About the signed distance from point p {3} to an ellipsoid around `at` with half axes radii {3}; below 0 inside.
local function ellipsoid(p, at, radii)
  local square = 0
  for d = 1, 3 do square = square + ((p[d] - at[d]) / radii[d]) ^ 2 end
  return (math.sqrt(square) - 1) * math.min(unpack(radii))
end

-- A smooth minimum: the smaller of a and b, rounded off where they differ by less than k. Joins two bodies smoothly.
local function smooth(a, b, k)
  local h = math.max(k - math.abs(a - b), 0) / k
  return math.min(a, b) - h * h * k / 4
end

-- trunk, head and hump, then what is there on both sides
local PARTS = {
  { { 0, 0.36, 0 }, { 0.42, 0.24, 0.30 } },
  { { 0.42, 0.46, 0 }, { 0.24, 0.21, 0.25 }, 0.08 },
  { { -0.10, 0.66, 0 }, { 0.20, 0.22, 0.20 }, 0.06 },
}
for _, side in ipairs { -1, 1 } do
  PARTS[#PARTS + 1] = { { 0.27, 0.14, 0.2 * side }, { 0.12, 0.17, 0.11 }, 0.06 }
  PARTS[#PARTS + 1] = { { -0.27, 0.14, 0.2 * side }, { 0.12, 0.17, 0.11 }, 0.06 }
  PARTS[#PARTS + 1] = { { 0.44, 0.68, 0.14 * side }, { 0.06, 0.11, 0.07 }, 0.05 }
end

-- About the signed distance from point p {3} to the creature, the smooth union of PARTS: below 0 inside, never 0.
local function field(p)
  local value
  for _, part in ipairs(PARTS) do
    local own = ellipsoid(p, part[1], part[2])
    value = value and smooth(value, own, part[3]) or own
  end
  return value == 0 and 1e-9 or value
end

-- ---- marching tetrahedra --------------------------------------------------------------------------------------------

local corners, crossings, triangles = {}, {}, {}

-- The corner (i, j, k), 0-based, of the lattice of cells: a list of its coordinates, with fields `value`, the field
-- there, and `key`. Each corner is computed once.
local function corner(i, j, k)
  local key = (i * 1000 + j) * 1000 + k
  if not corners[key] then
    local p = { LOWER[1] + i * STEP, LOWER[2] + j * STEP, LOWER[3] + k * STEP }
    p.value, p.key = field(p), key
    corners[key] = p
  end
  return corners[key]
end

-- The point {3} where the surface crosses the edge between corners a and b of the lattice, of which one is inside.
-- Computed once, so that neighbouring triangles share it.
local function crossing(a, b)
  if a.key > b.key then a, b = b, a end
  local key = a.key .. ":" .. b.key
  if not crossings[key] then
    -- three secant steps from the straight guess
    local low, high, at_low, at_high, p = 0, 1, a.value, b.value, nil
    for _ = 1, 3 do
      local t = low + (high - low) * at_low / (at_low - at_high)
      p = { a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2]), a[3] + t * (b[3] - a[3]) }
      local value = field(p)
      if (value < 0) == (at_low < 0) then low, at_low = t, value else high, at_high = t, value end
    end
    crossings[key] = p
  end
  return crossings[key]
end

-- The mirror image of point p {3} in the plane z = 0.
local function mirrored(p) return { p[1], p[2], -p[3] } end

-- Appends the triangle p, q, r to `triangles`, with its corners in the order in which it faces away from the point
-- `within`, which is inside of the body; and its mirror image.
local function add(p, q, r, within)
  local u, v, w = {}, {}, {}
  for d = 1, 3 do u[d], v[d], w[d] = q[d] - p[d], r[d] - p[d], p[d] - within[d] end
  local normal = { u[2] * v[3] - u[3] * v[2], u[3] * v[1] - u[1] * v[3], u[1] * v[2] - u[2] * v[1] }
  local outward = normal[1] * w[1] + normal[2] * w[2] + normal[3] * w[3] >= 0
  if not outward then q, r = r, q end
  triangles[#triangles + 1] = { p, q, r }
  triangles[#triangles + 1] = { mirrored(p), mirrored(r), mirrored(q) }
end

-- Marching tetrahedra: appends the one or two triangles by which the surface crosses a tetrahedron, a list of four
-- corners of the lattice; none if all corners are on one side.
local function tetrahedron(list)
  local inner, outer = {}, {}
  for _, p in ipairs(list) do table.insert(p.value < 0 and inner or outer, p) end
  if #inner == 1 then
    add(crossing(inner[1], outer[1]), crossing(inner[1], outer[2]), crossing(inner[1], outer[3]), inner[1])
  elseif #inner == 3 then
    add(crossing(outer[1], inner[1]), crossing(outer[1], inner[2]), crossing(outer[1], inner[3]), inner[1])
  elseif #inner == 2 then
    local a, b = crossing(inner[1], outer[1]), crossing(inner[1], outer[2])
    local c, d = crossing(inner[2], outer[2]), crossing(inner[2], outer[1])
    add(a, b, c, inner[1])
    add(a, c, d, inner[1])
  end
end

-- six tetrahedra of a cell, by its corners: bit 0 along x, 1 along y, 2 along z
local CUT = { { 0, 1, 3, 7 }, { 0, 3, 2, 7 }, { 0, 2, 6, 7 }, { 0, 6, 4, 7 }, { 0, 4, 5, 7 }, { 0, 5, 1, 7 } }

-- Appends the triangles of the surface within cell (i, j, k), 0-based, of the lattice, by its six tetrahedra.
local function cell(i, j, k)
  local at = {}
  for m = 0, 7 do at[m] = corner(i + m % 2, j + math.floor(m / 2) % 2, k + math.floor(m / 4)) end
  for _, four in ipairs(CUT) do tetrahedron { at[four[1]], at[four[2]], at[four[3]], at[four[4]] } end
end

local count = {}
for d = 1, 3 do count[d] = math.floor((UPPER[d] - LOWER[d]) / STEP) end
for i = 0, count[1] do
  for j = 0, count[2] do
    for k = 0, count[3] do cell(i, j, k) end
  end
end

-- ---- the file -------------------------------------------------------------------------------------------------------

local folder = debug.getinfo(1, "S").source:match "^@(.*[/\\])" or ""
local file = assert(io.open(folder .. "assets/creature.stl", "wb"))
local title = "a creature, by scenes/make_meshes.lua"
file:write(title, (" "):rep(80 - #title), ffi.string(ffi.new("uint32_t[1]", #triangles), 4))
for _, corner_list in ipairs(triangles) do
  -- the normal, which readers compute, then the corners
  local numbers = ffi.new "float[12]"
  for i = 1, 3 do
    for d = 1, 3 do numbers[3 * i + d - 1] = corner_list[i][d] end
  end
  file:write(ffi.string(numbers, 48), "\0\0")
end
file:close()
print(("%d triangles"):format(#triangles))
