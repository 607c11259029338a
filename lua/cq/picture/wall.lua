-- wall: the solid of walls as pictures draw it.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local tables = require "cq.base.tables"

local wall = {}

local names = { [0] = "half_space", "box", "sphere", "height_field" }      -- by cq_wall_shape

-- The first n elements of a C array as a Lua list.
local function list(array, n)
  local out = {}
  for i = 1, n do out[i] = array[i - 1] end
  return out
end

-- The engine's struct of a wall as a Lua table of the same fields, lists from 1.
local function from_struct(w, dim)
  local out = {
    shape = names[w.shape], hollow = w.hollow ~= 0, point = list(w.point, dim), normal = list(w.normal, dim),
    lower = list(w.lower, dim), upper = list(w.upper, dim), radius = w.radius,
  }
  if out.shape == "height_field" then
    out.count = { w.height_count[0], math.max(w.height_count[1], 1) }
    out.origin, out.spacing = list(w.height_origin, 2), list(w.height_spacing, 2)
    out.heights = list(w.height, out.count[1] * out.count[2])
  end
  return out
end

---Walls as tables with the fields of cq_wall, from cq.Boundary objects or the engine's structs. Errors: an entry that
---is neither.
---@param given table        a list, or one
---@param dim integer
---@param domain { dx: number?, size: number[] }   dx: size[1] / 64 unless given
---@return table[]
function wall.list(given, dim, domain)
  if text.is_instance(given, "cq.Boundary") then given = { given } end
  local out = {}
  for k, entry in ipairs(given) do
    if type(entry) == "cdata" then
      out[k] = from_struct(ffi.cast("cq_wall *", entry), dim)
    elseif text.is_instance(entry, "cq.Boundary") then
      local struct = ffi.new "cq_wall"
      -- keep: the height field's memory
      local keep = entry:write(struct, { dim = dim, dx = domain.dx or domain.size[1] / 64, size = domain.size },
        engine.C)
      out[k] = from_struct(struct, dim)
      out[k].keep = keep
    else
      is.fail("cq.Picture: walls[%d] must be a cq.Boundary, got %s", k, text.describe(entry))
    end
  end
  return out
end

-- A copy of a wall, moved by the vector `way` {dim}.
local function moved(w, way, dim)
  local out = tables.merged(w)
  for _, key in ipairs { "point", "lower", "upper" } do
    out[key] = {}
    for d = 1, dim do out[key][d] = w[key][d] + way[d] end
  end
  if w.shape == "height_field" then
    out.origin, out.heights = { w.origin[1] + way[1], w.origin[2] + (way[3] or 0) }, {}
    for k, h in ipairs(w.heights) do out.heights[k] = h + way[2] end
  end
  return out
end

---Walls where they are now. Errors: another number of offsets than walls, or of components than dimensions.
---@param walls table[]          of wall.list
---@param offset number[][]?     the way that each has made; nil: none
---@return table[]
function wall.moved(walls, offset)
  if not offset then return walls end
  if #offset ~= #walls then
    is.fail("picture_scene:frame: wall_offset has %d ways, there are %s", #offset, text.count(#walls, "wall"))
  end
  local out = {}
  for k, w in ipairs(walls) do
    local way, dim, still = offset[k], #w.point, true
    if type(way) ~= "table" or #way ~= dim then
      is.fail("picture_scene:frame: wall_offset[%d] must be %d numbers, got %s", k, dim, text.describe(way))
    end
    for d = 1, dim do still = still and way[d] == 0 end
    out[k] = still and w or moved(w, way, dim)
  end
  return out
end

-- Where a coordinate lies in a row of `count` heights: the number, from 0, of the height before it, and the share, 0 to
-- 1, of the next one.
local function between(place, origin, spacing, count)
  local at = math.min(math.max((place - origin) / spacing, 0), count - 1)
  local k = math.min(math.floor(at), math.max(count - 2, 0))
  return k, at - k
end

-- Height at (x, z) of a wall that is a ground: a half-space that is not steep, a height field, or the floor of a hollow
-- box; nil of others.
local function height(w, x, z)
  local n = w.normal
  if w.shape == "box" and w.hollow then return w.lower[2] end
  if w.shape == "half_space" and n[2] > 0.3 then
    return w.point[2] - (n[1] * (x - w.point[1]) + n[3] * (z - w.point[3])) / n[2]
  elseif w.shape == "height_field" then
    local i, u = between(x, w.origin[1], w.spacing[1], w.count[1])
    local j, v = 0, 0
    if w.count[2] > 1 then j, v = between(z, w.origin[2], w.spacing[2], w.count[2]) end
    -- The height at the corner (a, b), 0 or 1 each, of the cell that (x, z) lies in; at the border the nearest one.
    local function at(a, b)
      return w.heights[math.min(i + a, w.count[1] - 1) * w.count[2] + math.min(j + b, w.count[2] - 1) + 1]
    end
    return (1 - u) * ((1 - v) * at(0, 0) + v * at(0, 1)) + u * ((1 - v) * at(1, 0) + v * at(1, 1))
  end
end

---Height of the ground at (x, z): of the highest half-space that is not steep, height field, or floor of a hollow box.
---@param walls table[]
---@param x number
---@param z number
---@param default number     where there is none
---@return number
function wall.height(walls, x, z, default)
  local best
  for _, w in ipairs(walls) do
    local y = height(w, x, z)
    if y and (not best or y > best) then best = y end
  end
  return best or default
end

---Height of the highest floor of a hollow box or half-space that is about level, at its point; nil: there is none.
---@param walls table[]
---@return number?
function wall.ground(walls)
  local best
  for _, w in ipairs(walls) do
    local y
    if w.shape == "box" and w.hollow then y = w.lower[2]
    elseif w.shape == "half_space" and w.normal[2] > 0.9 then y = w.point[2] end
    if y and (not best or y > best) then best = y end
  end
  return best
end

return wall
