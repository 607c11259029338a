-- walls: random walls of all shapes and laws, near what lies in their way and not in it.
local cq = require "cq"

local walls = {}

-- dot products of points with a direction: the least of them, and its point
local function support(points, n)
  local least, where = math.huge, nil
  for _, x in ipairs(points) do
    local d = 0
    for i = 1, #n do d = d + x[i] * n[i] end
    if d < least then least, where = d, x end
  end
  return least, where
end

local function corners(points, dim)
  local low, high = {}, {}
  for i = 1, dim do
    low[i], high[i] = math.huge, -math.huge
    for _, x in ipairs(points) do low[i], high[i] = math.min(low[i], x[i]), math.max(high[i], x[i]) end
  end
  return low, high
end

-- a point at a distance from the outermost particle against n
local function before(points, n, distance)
  local _, x = support(points, n)
  local out = {}
  for i = 1, #n do out[i] = x[i] - distance * n[i] end
  return out
end

-- fields of each family of walls; gap(): a random distance to the particles
local shapes = {}

function shapes.half_plane(draw, points, dim, gap)
  local n = draw:direction(dim)
  return { point = before(points, n, gap()), normal = n }
end

function shapes.floor(draw, points, dim, gap)
  local low = corners(points, dim)
  local axis = draw:whole(1, dim)
  return { at = low[axis] - gap(), axis = ("xyz"):sub(axis, axis) }
end

function shapes.slope(draw, points, dim, gap)
  local angle = draw:uniform(-1.2, 1.2)
  return { point = before(points, dim == 2 and { -math.sin(angle), math.cos(angle) }
    or { -math.sin(angle), math.cos(angle), 0 }, gap()), angle = angle }
end

function shapes.sphere(draw, points, dim, gap, dx)
  if draw:chance(0.4) then
    local low, high = corners(points, dim)
    local center, farthest = {}, 0
    for i = 1, dim do center[i] = (low[i] + high[i]) / 2 + draw:uniform(-0.5, 0.5) * dx end
    for _, x in ipairs(points) do
      local square = 0
      for i = 1, dim do square = square + (x[i] - center[i]) ^ 2 end
      farthest = math.max(farthest, math.sqrt(square))
    end
    return { center = center, radius = farthest + gap(), hollow = true }
  end
  local n, radius = draw:direction(dim), draw:uniform(1.2, 6) * dx
  return { center = before(points, n, radius + gap()), radius = radius }
end

function shapes.box(_, points, dim, gap, dx)
  local low, high = corners(points, dim)
  for i = 1, dim do
    low[i], high[i] = low[i] - gap(), high[i] + gap()
    high[i] = math.max(high[i], low[i] + 0.1 * dx)          -- where both sides clamp a thin body
  end
  return { lower = low, upper = high }
end

function shapes.obstacle(draw, points, dim, gap, dx)
  local low, high = corners(points, dim)
  local axis, above = draw:whole(1, dim), draw:chance(0.5)
  local lower, upper = {}, {}
  for i = 1, dim do
    lower[i], upper[i] = low[i] - draw:uniform(-1, 3) * dx, high[i] + draw:uniform(0, 3) * dx
    if i == axis and above then lower[i] = high[i] + gap()
    elseif i == axis then lower[i], upper[i] = low[i] - 5 * dx, low[i] - gap() end
    upper[i] = math.max(upper[i], lower[i] + 1.1 * dx)      -- of one cell total Lagrangian steps feel nothing
  end
  return { lower = lower, upper = upper }
end

function shapes.height_field(draw, points, dim, gap, dx)
  local low = corners(points, dim)
  local top = low[2] - gap()
  local function row(count)
    local out = draw:list(count, top - 1.5 * dx, top)
    return out
  end
  local heights, count = {}, draw:whole(2, 8)
  if dim == 2 then heights = row(count) else
    local across = draw:whole(2, 8)
    for i = 1, count do heights[i] = row(across) end
  end
  return { heights = heights, spacing = draw:uniform(1, 4) * dx, origin = draw:uniform(-1, 4) * dx }
end

-- a ball out of a floor under the particles, whose nodes both hold: fields of the ball
local function risen(draw, points, dim, floor, gap, dx)
  local low, high = corners(points, dim)
  local radius, center = draw:uniform(1.2, 4) * dx, {}
  for i = 1, dim do center[i] = draw:uniform(low[i] - dx, high[i] + dx) end
  -- level with the floor or a little above it, and below the lowest particle wherever its place is trained to
  center[2] = floor - radius + draw:uniform(-0.3, 1) * math.min(gap(), low[2] - floor - 0.06 * dx)
  return { center = center, radius = radius }
end

local families = { "half_plane", "floor", "slope", "sphere", "sphere", "box", "obstacle", "height_field",
  "height_field" }
local kinds = { "sticky", "slip", "separate", "friction" }

---@param draw hunt.Draw
---@param points number[][]    where particles start
---@return cq.Boundary[] list, string[] words
function walls.draw(draw, points, dim, dx)
  local list, words = {}, {}
  local shared, level = draw:chance(0.2), nil      -- the first two hold the same nodes, below this level
  for k = 1, shared and draw:whole(2, 3) or draw:pick { 0, 1, 1, 2, 3 } do
    local family, kind = draw:pick(families), draw:pick(kinds)
    if shared and k <= 2 then family = k == 1 and "floor" or "sphere" end
    local holds = kind == "sticky" or kind == "slip"
    local clamp = holds and not (shared and k <= 2) and draw:chance(0.2)
    local function gap() return clamp and draw:uniform(-0.6, 0.2) * dx or draw:uniform(0.1, 0.9) * dx end
    level = level or shared and corners(points, dim)[2] - gap()
    local fields = shared and k == 1 and { at = level, axis = "y" }
      or shared and k == 2 and risen(draw, points, dim, level, gap, dx)
      or shapes[family](draw, points, dim, gap, dx)
    fields.kind = kind
    if kind == "friction" then fields.mu = draw:uniform(0.05, 1.2) end
    if clamp then fields.clamp = true elseif kind == "sticky" and draw:chance(0.5) then fields.separable = true end
    if draw:chance(0.5) then
      fields.velocity = draw:list(dim, -0.6, 0.6)
      fields.moves = draw:chance(0.75)
    end
    list[k] = cq.Boundary[family](fields)
    local word = { kind }
    if fields.separable then table.insert(word, 1, "separable") end
    if fields.velocity then table.insert(word, 1, fields.moves and "moving" or "running") end
    if clamp then word[#word + 1] = "clamp" end
    if fields.hollow then word[#word + 1] = "hollow" end
    word[#word + 1] = family
    if shared and k == 2 then word[#word + 1] = "on the same nodes" end
    words[k] = table.concat(word, " ")
  end
  return list, words
end

return walls
