-- filter: means around each particle, so that a design has no features smaller than the radius
-- (Yuhn et al., eqs 14, 15, 20).
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local sparse = require "cq.sparse"

---@class cq.Topology.Filter
---@field radius number       [length]
---@field power number        of the weight (1 - r / radius)^power
---@field matrix cq.Sparse    {n, n}, each row adds up to 1
local Filter = { __name = "cq.Topology.Filter" }
Filter.__index = Filter

local spec = is.define("cq.Topology.filter", {
  points = is.tensor(), radius = is.number { above = 0 }, power = is.number { above = 0, default = 2 },
})

-- Has a matrix of neighbours a pair of two particles that counts? One as far away as the radius, up to rounding, does
-- not.
local function has_neighbours(matrix)
  local row, column = matrix:places()
  for e = 1, matrix.count do
    if row[e] ~= column[e] and matrix.value:get(e) > 1e-9 then return true end
  end
  return false
end

-- The largest extent of points {n, dim} along an axis.
local function extent_of(points) return (points:max(1) - points:min(1)):max():item() end

---@class cq.Topology.filter.def
---@field points cq.Tensor    {n, dim} as robot.position; on a lattice or not [length]
---@field radius number       nothing farther than this counts [length]
---@field power? number       of the weight (1 - r / radius)^power

---A filter of fields over particles: the mean around each of them, weighted by (1 - r / radius)^power. It is called
---with a tensor {..., n}. At the edge of the body the mean is of what is inside.
---Errors: a radius within which no particle has a neighbour, or that spans the body.
---@param fields cq.Topology.filter.def
---@return cq.Topology.Filter
local function new(fields)
  local self = setmetatable(spec(fields), Filter)
  local radius, power = self.radius, self.power
  self.points = self.points:detach()
  if self.points.rank ~= 2 or self.points.count == 0 then
    is.fail("cq.Topology.filter: points must be {n, dim} as robot.position, got {%s}",
      table.concat(self.points:shape(), ", "))
  end
  local extent = extent_of(self.points)
  if radius >= extent then
    is.fail("cq.Topology.filter: the radius %s spans the whole body of %s: every particle would have the same mean",
      text.number(radius), text.number(extent))
  end
  self.matrix = sparse.neighbours {
    points = self.points, radius = radius, weight = function(distance) return (1 - distance / radius):pow(power) end,
    normalised = true,
  }
  if not has_neighbours(self.matrix) then
    is.fail("cq.Topology.filter: no particle has a neighbour within the radius %s, so that there is nothing to filter; it must be above the spacing",
      text.number(radius))
  end
  return self
end

---The filtered values, each the weighted mean over the radius.
---@param x cq.Tensor     {..., n}
---@return cq.Tensor      {..., n}
function Filter:__call(x) return self.matrix:product(T.as_tensor(x)) end

-- The filter in one line: radius and mean number of neighbours.
function Filter:__tostring()
  return ("cq.Topology.filter { radius %s, %.3g neighbours }"):format(text.number(self.radius),
    self.matrix.count / self.matrix.rows)
end

return new
