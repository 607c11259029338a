-- points: a body of particles where a list says they are: of a scan, of another program, or of a body of one's own.
--
--   local body = cq.Shape.points { points = cq.load "scan.bin", spacing = 0.01, name = "body" }
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.shape.class"
local cloud = require "cq.shape.cloud"

---@class cq.Shape.points.def
---@field points cq.Tensor|number[][]     {n, dim} [length]
---@field spacing? number                 of the lattice that they are from: each has the volume spacing^dim [length]; or volume
---@field volume? number|cq.Tensor        of each particle, one for all or {n} (area in 2D); or spacing
---@field name? string                    all its particles are a group of this name

local spec = is.define("cq.Shape.points", {
  points = is.any_of { is.tensor(), is.list(is.vector { size = { 2, 3 } }, { min = 1 }) },
  spacing = is.number { above = 0, optional = true },
  volume = is.any_of { is.number { above = 0 }, is.tensor(), optional = true },
  name = is.string { optional = true },
})

-- The user's points as a tensor {n, dim}. Errors: wrong shapes; a point that is not finite; two points in one place.
local function points_of(def)
  local points = T.as_tensor(def.points):detach()
  if points.rank ~= 2 or points:size(1) < 1 or points:size(2) < 2 or points:size(2) > 3 then
    is.fail("cq.Shape.points: points must be {n, 2} or {n, 3}, got {%s}", table.concat(points:shape(), ", "))
  end
  local low, high = points:min():item(), points:max():item()
  if not (low > -math.huge and high < math.huge) then is.fail "cq.Shape.points: a point is not finite" end
  local seen = {}
  for p = 1, points:size(1) do
    local words = {}
    for d = 1, points:size(2) do words[d] = ("%.17g"):format(points:get(p, d)) end
    local key = table.concat(words, " ")
    if seen[key] then
      is.fail("cq.Shape.points: points %d and %d are in one place; each particle needs a place of its own", seen[key], p)
    end
    seen[key] = p
  end
  return points
end

-- The volume of each point {count}: spacing^dim, or as given, one number for all or {count}. Errors: both or neither;
-- a wrong count; not above 0.
local function volumes_of(def, count, dim)
  if (def.spacing == nil) == (def.volume == nil) then
    is.fail("cq.Shape.points: give either spacing or volume%s", def.spacing and ", not both" or "")
  end
  if not text.is_instance(def.volume, "cq.Tensor") then return T.full({ count }, def.volume or def.spacing ^ dim) end
  if def.volume.rank ~= 1 or def.volume.count ~= count then
    is.fail("cq.Shape.points: volume must be one number or {%d}, got {%s}", count,
      table.concat(def.volume:shape(), ", "))
  end
  if def.volume:min():item() <= 0 then is.fail "cq.Shape.points: each volume must be above 0" end
  return def.volume:detach()
end

-- A function of coordinates: is a place in the square (in 3D the cube) of a particle? Particles are found by the cells
-- of a lattice as wide as the largest of them. side {n}: of the squares.
local function covered(points, side, dim)
  local width, cells = side:max():item(), {}
  -- The lattice cell that holds a place, as a text, by which neighbours are looked up.
  local function cell(x, y, z)
    return ("%d %d %d"):format(math.floor(x / width), math.floor(y / width), math.floor((z or 0) / width))
  end
  for p = 1, points:size(1) do
    local key = cell(points:get(p, 1), points:get(p, 2), dim == 3 and points:get(p, 3) or nil)
    cells[key] = cells[key] or {}
    table.insert(cells[key], p)
  end
  return function(...)
    local at, steps = { ... }, dim == 3 and 1 or 0
    for i = -1, 1 do
      for j = -1, 1 do
        for k = -steps, steps do
          local list = cells[cell(at[1] + i * width, at[2] + j * width, dim == 3 and at[3] + k * width or nil)]
          for _, p in ipairs(list or {}) do
            local inside = true
            for d = 1, dim do inside = inside and math.abs(at[d] - points:get(p, d)) < 0.5 * side:get(p) end
            if inside then return true end
          end
        end
      end
    end
    return false
  end
end

---A body of given points, each a particle: of a scan, or of another program. Within it is what lies in the square (the
---cube) of a particle.
---Errors: both or neither of spacing and volume; points that are not {n, 2} or {n, 3}.
---@param fields cq.Shape.points.def
---@return cq.Shape
local function new(fields)
  local def = spec(fields)
  local points = points_of(def)
  local count, dim = points:size(1), points:size(2)
  local volume = volumes_of(def, count, dim)
  local side, lower, upper = volume:pow(1 / dim), {}, {}
  for d = 1, dim do
    local along = points:slice(d, d, 2):squeeze(2)
    lower[d], upper[d] = (along - side / 2):min():item(), (along + side / 2):max():item()
  end
  return class.new {
    kind = "points", name = def.name, dim = dim, lower = lower, upper = upper, exact = volume:sum():item(),
    inside = covered(points, side, dim),
    fill = function()
      local out = cloud.new(dim)
      for p = 1, count do
        cloud.add(out, volume:get(p), points:get(p, 1), points:get(p, 2), dim == 3 and points:get(p, 3) or nil)
      end
      return def.name and cloud.all(out, def.name) or out
    end,
  }
end

return new
