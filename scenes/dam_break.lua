-- dam_break: a column of liquid, twice as high as it is wide, that collapses in a tank without friction when its dam is
-- gone.
-- Source: Martin and Moyce, Phil. Trans. R. Soc. A 244 (1952), n^2 = 2, whose front positions stand below; the units
-- here are those of gravity 1 and density 1, and sound is ten times as fast as the front can be, 2 sqrt(g h).
local cq = require "cq"

local WIDTH, HEIGHT, GRAVITY, SOUND = 0.2, 0.4, 1, 12
local WALL = 3                             -- cells from the edge of the world to the sides of cq.Boundary.box

-- of Martin and Moyce's figure 3: t sqrt(2 g / width), and where the front is, from the wall behind the column, in
-- widths
local MEASURED = { { 1.212, 1.443 }, { 1.602, 1.884 }, { 2.283, 2.689 }, { 2.95, 3.728 }, { 3.598, 4.528 } }

---@param options? { across?: integer, length?: number, precision?: string, device?: string }
---  across: particles along the column's width, 40 unless given, two of them in a cell; length: of the tank, 6.2 widths
---  unless given
---@return { robot: cq.Robot, world: cq.World.def, wall: number, [string]: any }
---  wall: x of the side that the column stands at
return function(options)
  local given = options or {}
  local across = given.across or 40
  local dx = 2 * WIDTH / across
  local length = given.length or 6.2 * WIDTH
  local robot = cq.Robot {
    name = "water",
    shape = cq.Shape.box {
      name = "column", size = { WIDTH, HEIGHT }, count = { across, 2 * across }, jitter = 0.5, seed = 1,
    },
    material = cq.Material.fluid { bulk = SOUND ^ 2, density = 1 },
  }
  return {
    robot = robot, wall = WALL * dx, width = WIDTH, height = HEIGHT, gravity = GRAVITY, measured = MEASURED,
    world = {
      cells = { math.floor(length / dx + 0.5) + 2 * WALL, math.floor(1.5 * HEIGHT / dx + 0.5) + 2 * WALL }, dx = dx,
      dt = 0.01, substeps = "auto", gravity = { 0, -GRAVITY }, precision = given.precision, device = given.device,
      walls = cq.Boundary.box { kind = "separate" }, robot:at { WALL * dx, WALL * dx },
    },
  }
end
