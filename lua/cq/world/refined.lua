-- refined: the same world on a finer grid. Control steps stay, and there are as many more substeps as cells are
-- smaller. Bodies are sampled again and stay where they are. A wall acts from the last node within it, so surfaces
-- along an axis are moved to that node, and the cell size is one at which the ground is on a node again.
local made = require "cq.base.made"
local boundary = require "cq.boundary"
local tables = require "cq.base.tables"

local INSET = 3           -- cells from the edge of the world to a box that says nothing of it
local EPSILON = 1e-6      -- of a cell: surfaces on nodes are computed

-- The number of the last node at or below a coordinate; one that misses a node by rounding alone counts as on it.
local function node_below(at, dx) return math.floor(at / dx + EPSILON) end
-- The number of the first node at or above a coordinate; one that misses a node by rounding alone counts as on it.
local function node_above(at, dx) return math.ceil(at / dx - EPSILON) end

-- The place of the last node of the finer grid at or below the node that a wall at `at` has on the coarse one. dx,
-- finer: sizes of the cells.
local function below(at, dx, finer) return node_below(node_below(at, dx) * dx, finer) * finer end
-- The place of the first node of the finer grid at or above the node that a wall at `at` has on the coarse one.
local function above(at, dx, finer) return node_above(node_above(at, dx) * dx, finer) * finer end

-- The lower and upper corner of a box of walls: as given, or at its inset from the edge of the world. Two lists {dim}.
local function sides_of(wall, world)
  local given, lower, upper = wall.given, {}, {}
  local inset = given.inset or INSET * world.dx
  for d, size in ipairs(world.domain.size) do
    lower[d], upper[d] = given.lower and given.lower[d] or inset, given.upper and given.upper[d] or size - inset
  end
  return lower, upper
end

-- The axis that a plane wall is perpendicular to, and 1 or -1 by the side that is free; nil: it lies across none.
local function axis_of(wall)
  for d, n in ipairs(wall.normal) do
    if math.abs(n) > 1 - EPSILON then return d, n > 0 and 1 or -1 end
  end
end

-- Where a plane along an axis stands on the finer grid, as a table with point; empty for a slanted plane. It acts from
-- its last node on the coarse grid, so it moves to the nearest finer node, but not beyond its own surface, since a body
-- may lie there.
local function finer_plane(wall, world, finer)
  local axis, side = axis_of(wall)
  if not axis then return {} end
  local at, point = side * wall.given.point[axis], { unpack(wall.given.point) }
  local node = math.floor(node_below(at, world.dx) * world.dx / finer + 0.5)
  point[axis] = side * math.min(node, node_below(at, finer)) * finer
  return { point = point }
end

local of_family = {
  half_plane = finer_plane,
  -- The fields of a box of walls that change on the finer grid.
  box = function(wall, world, finer)
    local lower, upper = sides_of(wall, world)
    for d = 1, world.dim do
      lower[d], upper[d] = below(lower[d], world.dx, finer), above(upper[d], world.dx, finer)
    end
    return { inset = false, lower = lower, upper = upper }
  end,
  -- The field of a floor that changes on the finer grid.
  floor = function(wall, world, finer) return { at = below(wall.given.at, world.dx, finer) } end,
}

-- The cell size nearest to factor * dx, but smaller than dx, at which the ground lies on a node; the ground: a floor, a
-- level half plane or the lower side of a box against which gravity presses.
local function finer_cells(world, factor)
  local axis, most, at = nil, 0, nil
  for d, g in ipairs(world.gravity or {}) do
    if -g > most then axis, most = d, -g end
  end
  for _, wall in ipairs(axis and world.walls or {}) do
    if wall.family == "floor" and wall.axis == axis then at = wall.given.at end
    if wall.family == "box" then at = at or sides_of(wall, world)[axis] end
    local across, side = nil, nil
    if wall.family == "half_plane" then across, side = axis_of(wall) end
    if across == axis and side == 1 then at = wall.given.point[axis] end
  end
  local node = at and node_below(at, world.dx) or 0
  if node < 1 then return factor * world.dx end
  return node * world.dx / math.max(node + 1, math.floor(node / factor + 0.5))
end

-- The wall as a new one for the finer grid, which stands_for the old one; the same wall if its family does not depend
-- on nodes.
local function finer_wall(wall, world, finer)
  local change = of_family[wall.family]
  if not change then return wall end
  local fields = tables.merged(wall.given)
  for name, value in pairs(change(wall, world, finer)) do fields[name] = value or nil end
  local out = boundary[wall.family](fields)
  out.stands_for = wall
  return made.remember(out)
end

---The robots, the fields of the definition that change, and the sources of a world on a finer grid.
---@param world cq.World
---@param factor number        of the size of its cells, nearly; below 1
---@return cq.Robot[] robots
---@return table fields        of cq.World
---@return integer[] sources   for each particle the number of the one in whose place it is
return function(world, factor)
  local finer = finer_cells(world, factor)
  local robots, sources, fields = {}, {}, { dx = finer, cells = {}, walls = {} }
  for d, size in ipairs(world.domain.size) do fields.cells[d] = math.ceil(size / finer - EPSILON) end
  if not world.def.integrator then fields.substeps = math.ceil(world.substeps * world.dx / finer - EPSILON) end
  for k, wall in ipairs(world.walls) do fields.walls[k] = finer_wall(wall, world, finer) end
  for k, robot in ipairs(world.robots) do
    robots[k] = robot:resampled(finer / world.dx)
    for _, source in ipairs(robots[k].sources) do sources[#sources + 1] = robot.first + source end
  end
  return robots, fields, sources
end
