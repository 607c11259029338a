-- dam_break: a column of liquid, twice as high as it is wide, that collapses in a tank without friction when its dam is
-- gone.
-- Source: Martin and Moyce, Phil. Trans. R. Soc. A 244 (1952) 312, table 2, n^2 = 2, a = 2.25 inches, as published
-- comparisons tabulate it. The units here are those of gravity 1 and density 1, and sound is ten times as fast as the
-- front can be, 2 sqrt(g h). The water fills half a cell behind the walls, as in scenes/water_tank.lua; its width and
-- height are measured from the walls.
local cq = require "cq"

local WIDTH, HEIGHT, GRAVITY, SOUND = 0.2, 0.4, 1, 12
local WALL = 3                             -- cells from the edge of the world to the sides of cq.Boundary.box

-- t sqrt(2 g / width), and where the front is then, from the wall behind the column, in widths
local MEASURED = {
  { 0.41, 1.11 }, { 0.84, 1.22 }, { 1.19, 1.44 }, { 1.43, 1.67 }, { 1.63, 1.89 }, { 1.83, 2.11 }, { 1.98, 2.33 },
  { 2.20, 2.56 }, { 2.32, 2.78 }, { 2.51, 3.00 }, { 2.65, 3.22 }, { 2.83, 3.44 }, { 2.98, 3.67 }, { 3.11, 3.89 },
  { 3.33, 4.11 },
}
local ALIGNED = 3                          -- the point from which the rest is compared where the dam takes its time

-- Interpolates linearly in a curve, a list of points { a, b }, ascending in both. from: index (1 or 2) in a point of
-- the known coordinate, whose value is x; to: index of the coordinate to return. nil if x is beyond the last point.
local function interpolate(curve, x, from, to)
  for k = 2, #curve do
    local a, b = curve[k - 1], curve[k]
    if b[from] >= x then return a[to] + (b[to] - a[to]) * (x - a[from]) / (b[from] - a[from]) end
  end
end

-- The x, in widths of the column from the wall, at which the water becomes less deep than `depth` (in widths), counted
-- by particles in columns of cells and linear between their middles. positions {n, 2}; dx: of the grid.
local function place_of_depth(positions, depth, dx)
  local x, in_column = positions:data(), {}
  for p = 0, positions:size(1) - 1 do
    local column = math.floor(x[2 * p] / dx)
    in_column[column] = (in_column[column] or 0) + dx / 4 / WIDTH            -- a particle is a quarter of a cell
  end
  local last = -math.huge
  for column, deep in pairs(in_column) do if deep >= depth then last = math.max(last, column) end end
  local here, after = in_column[last], in_column[last + 1] or 0
  return ((last + 0.5 + (here - depth) / (here - after) - WALL) * dx) / WIDTH
end

-- Compares a simulated front { { time, place }, ... }, in the units of MEASURED, with the measured one. Returns the
-- largest error relative to the place, over the measured points from the third on; the same after the simulated times
-- were shifted so that both fronts pass the third point together, since the measured dam takes time to open; and the
-- shift, which is added to simulated times.
local function compare(front)
  local shift = interpolate(front, MEASURED[ALIGNED][2], 2, 1) - MEASURED[ALIGNED][1]
  local raw, aligned = 0, 0
  for k = ALIGNED, #MEASURED do
    local time, place = MEASURED[k][1], MEASURED[k][2]
    raw = math.max(raw, math.abs(interpolate(front, time, 1, 2) / place - 1))
    aligned = math.max(aligned, math.abs(interpolate(front, time + shift, 1, 2) / place - 1))
  end
  return raw, aligned, -shift
end

---A column of water in a tank, with what is needed to compare its tip with the measurement.
---@param options? { across?: integer, length?: number, precision?: string, device?: string }
---  across: particles along the column's width, 40 unless given, two of them in a cell; length: of the tank, 6.2 widths
---  unless given
---@return { robot: cq.Robot, world: cq.World.def, wall: number, [string]: any }
---  wall: x of the side that the column stands at; unit: of the measured time; front(state, depth?): its tip in widths,
---  or where the water is that deep; compare(front): as it stands above
return function(options)
  local given = options or {}
  local across = given.across or 40
  local dx = 2 * WIDTH / across
  local length = given.length or 6.2 * WIDTH
  local robot = cq.Robot {
    name = "water",
    shape = cq.Shape.box {
      name = "column", at = { -dx / 2, -dx / 2 }, size = { WIDTH + dx / 2, HEIGHT + dx / 2 }, spacing = dx / 2,
      jitter = 0.5, seed = 1,
    },
    material = cq.Material.fluid { bulk = SOUND ^ 2, density = 1 },
  }
  return {
    robot = robot, wall = WALL * dx, width = WIDTH, height = HEIGHT, gravity = GRAVITY, compare = compare,
    unit = math.sqrt(WIDTH / (2 * GRAVITY)), until_time = MEASURED[#MEASURED][1],
    -- a particle stands for a quarter of a cell around it
    front = function(state, depth)
      local positions = state:positions()
      if depth then return place_of_depth(positions, depth, dx) end
      return (positions:slice(1, 1, 2):max():item() + dx / 4 - WALL * dx) / WIDTH
    end,
    world = {
      cells = { math.floor(length / dx + 0.5) + 2 * WALL, math.floor(1.5 * HEIGHT / dx + 0.5) + 2 * WALL }, dx = dx,
      dt = 0.01, substeps = "auto", gravity = { 0, -GRAVITY }, precision = given.precision, device = given.device,
      walls = cq.Boundary.box { kind = "separate" }, robot:at { WALL * dx, WALL * dx },
    },
  }
end
