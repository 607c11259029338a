-- wall: what of a world is solid, as the pictures need it.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"

local wall = {}

local names = { [0] = "half_space", "box", "sphere", "height_field" }      -- by cq_wall_shape

local function list(array, n)
  local out = {}
  for i = 1, n do out[i] = array[i - 1] end
  return out
end

-- a cq_wall as a Lua table
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

---Walls as tables with the fields of cq_wall, from cq.Boundary objects or the engine's structs.
---@param given table        a list, or one
---@param dim integer
---@param domain { dx: number?, size: number[] }
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

-- how a wall stands after it has made a way
local function moved(w, way, dim)
  local out = {}
  for key, value in pairs(w) do out[key] = value end
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

---Walls where they are now.
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

---Height of the level ground: of the highest wall that one can stand on; nil when there is none.
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
