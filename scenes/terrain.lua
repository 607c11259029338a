-- terrain: graded ground in the plane, flat at first, then hills of given slopes; as particles that a robot collides
-- with, or as a wall. Source: the biped on terrain of Advanced soft robot modeling in ChainQueen (Robotica 2021, fig.
-- 8), whose ground is particles: with the biped's 12,800 they are 36,200. Its profile is not printed: here flat for
-- 0.6, then hills of 10, 20 and 25 degrees, 0.5 long each.
local cq = require "cq"

---@class scenes.terrain.options
---@field slopes? number[]      of the hills, one after the other, up and down [degree]
---@field flat? number          length before the first [length]
---@field period? number        length of a hill [length]
---@field length? number        of all [length]
---@field depth? number         of the particles; the lower half of it is held [length]
---@field count? integer[]      particles along x and y, { 780, 30 } unless given
---@field young? number         of the ground, 50 unless given [stress]

---Ground in the plane, as a robot and as a wall.
---@param options? scenes.terrain.options
---@return { robot: cq.Robot, height: fun(x: number): number, wall: fun(at: number[], fields: table): cq.Boundary, ends: number[], count: integer }
---  height: of the ground over its deepest place, where x is from its left end; wall: the same ground as a height
---  field, its deepest place at a place of the world; ends: where each hill ends
return function(options)
  local o = require "scenes.options"("scenes.terrain", options, { "slopes", "flat", "period", "length", "depth",
    "count", "young" })
  local slopes, flat, period, length, depth = o.slopes or { 10, 20, 25 }, o.flat or 0.6, o.period or 0.5, o.length
    or 2.6, o.depth or 0.1
  local count, ends = o.count or { 780, 30 }, {}
  if period <= 0 or flat + #slopes * period > length * (1 + 1e-9) then
    error(("hills must be longer than 0 and end on the ground, which is %g long; got %d of %g each, after %g"):format(
      length, #slopes, period, flat), 0)
  end
  for k, slope in ipairs(slopes) do
    if not (type(slope) == "number" and slope > 0 and slope < 60) then
      error(("slopes of the terrain must be above 0 and below 60 degrees, got %s"):format(slope), 0)
    end
    ends[k] = flat + k * period
  end
  -- The height of the ground above its lowest place, at the distance x from its left end.
  local function height(x)
    local k = math.floor((x - flat) / period) + 1
    local slope = slopes[k]
    if not slope then return 0 end
    local within = x - flat - (k - 1) * period
    return math.tan(math.rad(slope)) * math.min(within, period - within)
  end
  -- the columns of a slab, each raised to the height of the ground
  local slab = cq.Shape.box { name = "ground", size = { length, depth }, count = count }
  return {
    height = height, ends = ends, count = count[1] * count[2],
    robot = cq.Robot {
      name = "terrain", shape = slab:group("base", function(_, y) return y < depth / 2 end):raised(height),
      pins = "base",
      material = cq.Material.neo_hookean { young = o.young or 50, poisson = 0.3, density = 1 },
    },
    -- The ground as a height field. at { x, y }: x of its left end, y of its deepest place; fields: further ones of
    -- cq.Boundary.height_field.
    wall = function(at, fields)
      local heights, n = {}, math.floor(length / 0.005 + 0.5)
      for k = 0, n do heights[k + 1] = at[2] + height(k * length / n) end
      local def = { heights = heights, spacing = length / n, origin = at[1] }
      for name, value in pairs(fields or {}) do def[name] = value end
      return cq.Boundary.height_field(def)
    end,
  }
end
