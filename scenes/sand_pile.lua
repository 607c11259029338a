-- sand_pile: a column of sand that its walls no longer hold spreads to a pile, which ends at the angle of repose.
-- Source: none, a scene of our own: sand of Klar et al. (ACM TOG 35, 2016) in 2D, which does not dilate as it flows.
-- Its slopes flow from tan(slope) = sin(friction angle) on (Davis 1968). Damping takes the speed: sand that falls
-- freely runs on past its repose, and ends flatter by ten degrees.
local cq = require "cq"
local trend = require "scenes.trend"

local WIDTH, HEIGHT, WALL = 0.3, 0.3, 3

-- The slope of a pile [degree], the mean of both flanks: lines are fitted to the highest particles of the columns of
-- cells, between a fifth and four fifths of the pile's height. position {n, 2}: of all particles; foot { x, y }: the
-- point of the ground below the middle of the pile; dx: width of a column.
local function slope(position, foot, dx)
  local top, peak, x = {}, 0, position:data()
  for p = 0, position:size(1) - 1 do
    local column, y = math.floor((x[2 * p] - foot[1]) / dx), x[2 * p + 1] - foot[2]
    top[column], peak = math.max(top[column] or 0, y), math.max(peak, y)
  end
  -- The slope of one flank of the pile [degree], positive if it falls outwards; side: 1 on the right, -1 on the left.
  local function flank(side)
    local line = trend.new()
    for column, y in pairs(top) do
      local away = side * (column + 0.5) * dx
      if away > 0 and y > 0.2 * peak and y < 0.8 * peak then line:add(away, y) end
    end
    return math.deg(math.atan(-line:slope()))
  end
  return (flank(1) + flank(-1)) / 2
end

---A column of sand and the fields of its world.
---@param options? { repose?: number, cells?: integer, damping?: number, precision?: string, device?: string }
---  repose: angle of repose, 30 degrees unless given [degree]; cells: along the column's width, 16 unless given
---@return { robot: cq.Robot, world: cq.World.def, repose: number, slope: fun(state: cq.State): number }
---  repose: angle of repose [degree]; slope: of the sides of the pile [degree]
return function(options)
  local given = options or {}
  local repose, cells = given.repose or 30, given.cells or 16
  local dx = WIDTH / cells
  local across, high = 5 * cells, math.floor(1.3 * cells)
  local robot = cq.Robot {
    name = "sand",
    shape = cq.Shape.box {
      name = "column", size = { WIDTH, HEIGHT }, count = { 2 * cells, 2 * cells }, jitter = 0.5, seed = 1,
    },
    material = cq.Material.drucker_prager {
      young = 100, poisson = 0.3, friction_angle = math.asin(math.tan(math.rad(repose))), density = 1,
    },
  }
  return {
    robot = robot, repose = repose,
    slope = function(state) return slope(state:positions(), { across * dx / 2, WALL * dx }, dx) end,
    world = {
      cells = { across, high + 2 * WALL }, dx = dx, dt = 0.02, substeps = "auto",
      gravity = { 0, -1 }, damping = given.damping or 5, precision = given.precision, device = given.device,
      walls = cq.Boundary.box { kind = "sticky" }, robot:at { across * dx / 2 - WIDTH / 2, WALL * dx },
    },
  }
end
