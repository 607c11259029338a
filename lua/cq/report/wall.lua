-- wall: the solid of walls as triangles for the page.
local parts = require "cq.picture.wall"

local wall = {}

local SIDES, RINGS = 32, 16          -- of a ball
local UPRIGHT = 0.3                  -- upward part of the normal of what is drawn as a floor

-- Appends the two triangles of the quadrangle a b c d to out, a list of coordinates rounded to five digits.
local function quad(out, a, b, c, d)
  for _, corner in ipairs { a, b, c, a, c, d } do
    for k = 1, 3 do out[#out + 1] = tonumber(("%.5g"):format(corner[k] or 0)) end
  end
end

-- The length of the diagonal of a world of this size {dim}.
local function extent(size)
  local sum = 0
  for _, s in ipairs(size) do sum = sum + s * s end
  return math.sqrt(sum)
end

-- Appends the triangles of a half-space wall w: in 2D its area, in 3D its surface. size: of the world. Returns how the
-- page shows it: "solid", "floor" or "pane".
local function half_space(out, w, size)
  local n, reach, middle, along = w.normal, extent(size), {}, 0
  for d = 1, #size do along = along + n[d] * (size[d] / 2 - w.point[d]) end
  for d = 1, #size do middle[d] = size[d] / 2 - along * n[d] end
  if #size == 2 then
    local t = { n[2] * reach, -n[1] * reach }
    -- The point at share s of the line along the wall, from its middle, and at depth `deep` below its surface [length].
    local function corner(s, deep) return { middle[1] + s * t[1] - deep * n[1], middle[2] + s * t[2] - deep * n[2] } end
    quad(out, corner(-1, 0), corner(1, 0), corner(1, reach), corner(-1, reach))
    return "solid"
  end
  local hint = math.abs(n[2]) < 0.9 and { 0, 1, 0 } or { 1, 0, 0 }
  local dot, a, length = hint[1] * n[1] + hint[2] * n[2] + hint[3] * n[3], {}, 0
  for d = 1, 3 do
    a[d] = hint[d] - dot * n[d]
    length = length + a[d] ^ 2
  end
  for d = 1, 3 do a[d] = a[d] / math.sqrt(length) * reach end
  local b = { n[2] * a[3] - n[3] * a[2], n[3] * a[1] - n[1] * a[3], n[1] * a[2] - n[2] * a[1] }
  -- The point at shares s and t of the plane of the wall, from its middle.
  local function corner(s, t) return { middle[1] + s * a[1] + t * b[1], middle[2] + s * a[2] + t * b[2],
    middle[3] + s * a[3] + t * b[3] } end
  quad(out, corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1))
  return n[2] > UPRIGHT and "floor" or "pane"
end

local faces = { { 1, 2, 4, 3 }, { 5, 6, 8, 7 }, { 1, 2, 6, 5 }, { 3, 4, 8, 7 }, { 1, 3, 7, 5 }, { 2, 4, 8, 6 } }

-- Appends the triangles of a box wall w, in 3D of a hollow one only the floor; returns how the page shows it: "floor"
-- or "solid".
local function box(out, w, size)
  local lo, hi, dim = w.lower, w.upper, #size
  -- Appends a rectangle of a 2D world.
  local function rectangle(x0, y0, x1, y1) quad(out, { x0, y0 }, { x1, y0 }, { x1, y1 }, { x0, y1 }) end
  if dim == 3 and w.hollow then
    quad(out, { lo[1], lo[2], lo[3] }, { hi[1], lo[2], lo[3] }, { hi[1], lo[2], hi[3] }, { lo[1], lo[2], hi[3] })
    return "floor"
  elseif dim == 3 then
    local corner = {}
    for k = 0, 7 do
      corner[k + 1] = { k % 2 == 0 and lo[1] or hi[1], k % 4 < 2 and lo[2] or hi[2], k < 4 and lo[3] or hi[3] }
    end
    for _, f in ipairs(faces) do quad(out, corner[f[1]], corner[f[2]], corner[f[3]], corner[f[4]]) end
  elseif w.hollow then
    local t = math.max(size[1], size[2])
    rectangle(lo[1] - t, lo[2] - t, hi[1] + t, lo[2])
    rectangle(lo[1] - t, lo[2], lo[1], hi[2])
    rectangle(hi[1], lo[2], hi[1] + t, hi[2])
  else
    rectangle(lo[1], lo[2], hi[1], hi[2])
  end
  return "solid"
end

-- Appends the triangles of a spherical wall w, in 2D a disc, and returns "solid"; nil for a hollow one, which is not
-- drawn.
local function ball(out, w, size)
  if w.hollow then return nil end
  local c, r = w.point, w.radius
  for i = 0, SIDES - 1 do
    local a, b = 2 * math.pi * i / SIDES, 2 * math.pi * (i + 1) / SIDES
    if #size == 2 then
      local from = { c[1] + r * math.cos(a), c[2] + r * math.sin(a) }
      quad(out, c, c, from, { c[1] + r * math.cos(b), c[2] + r * math.sin(b) })
    end
    for j = 0, #size == 3 and RINGS - 1 or -1 do
      -- The point of the ball at an angle around its axis, on ring `ring` of RINGS from the lowest.
      local function at(angle, ring)
        local up = math.pi * ring / RINGS - math.pi / 2
        return { c[1] + r * math.cos(up) * math.cos(angle), c[2] + r * math.sin(up),
          c[3] + r * math.cos(up) * math.sin(angle) }
      end
      quad(out, at(a, j), at(b, j), at(b, j + 1), at(a, j + 1))
    end
  end
  return "solid"
end

-- Appends the triangles of the area below a 2D height field, which goes on level from its ends to the sides of the
-- world.
local function area_below(out, w, size)
  local last, points, deep = w.count[1] - 1, {}, size[1]
  for i = 0, last do points[i + 1] = { w.origin[1] + i * w.spacing[1], w.heights[i + 1] } end
  if points[1][1] > 0 then table.insert(points, 1, { 0, w.heights[1] }) end
  if points[#points][1] < size[1] then points[#points + 1] = { size[1], w.heights[last + 1] } end
  for k = 1, #points - 1 do
    local a, b = points[k], points[k + 1]
    quad(out, a, b, { b[1], b[2] - deep }, { a[1], a[2] - deep })
  end
  return "solid"
end

-- Appends the triangles of a height field's surface, in 2D of the area below it. Returns how the page shows it: "floor"
-- or "solid".
local function height_field(out, w, size)
  if #size == 2 then return area_below(out, w, size) end
  local rows = w.count[2]
  -- The place of grid point (i, j) of a height field, i and j from 0.
  local function at(i, j)
    return { w.origin[1] + i * w.spacing[1], w.heights[i * rows + j + 1], w.origin[2] + j * w.spacing[2] }
  end
  for i = 0, w.count[1] - 2 do
    for j = 0, rows - 2 do quad(out, at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)) end
  end
  return "floor"
end

local draw = { half_space = half_space, box = box, sphere = ball, height_field = height_field }

---Walls as triangles: { kind = "floor"|"solid"|"pane"|"none", corners = { x, y, z, ... } }, in the order of the
---world's.
---@param world cq.World
---@return table[] list, number? ground     height of the level ground
function wall.list(world)
  local list, size = {}, world.domain.size
  local given = parts.list(world.walls, world.dim, { dx = world.dx, size = size })
  for k, w in ipairs(given) do
    local corners = {}
    list[k] = { kind = draw[w.shape](corners, w, size) or "none", corners = corners }
  end
  return list, parts.ground(given)
end

return wall
