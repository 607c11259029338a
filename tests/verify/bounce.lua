-- bounce: an elastic bar meets a wall end on. A compression runs through it and back as a release, and after 2 L / c it
-- leaves with the speed that it came with and no strain (a Poisson's ratio of 0 makes the plane a line). And a block
-- that a sticky wall holds while it presses, and lets go as soon as it is pulled.
local cq = require "cq"

local YOUNG, LENGTH, HEIGHT, SPEED = 100, 1, 0.25, 0.02

-- speed after the blow by that before; part: of the time step
local function rebound(cells, part, kind)
  local dx = LENGTH / cells
  local bar = cq.Robot {
    shape = cq.Shape.box { name = "bar", size = { LENGTH, HEIGHT }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0, density = 1 },
  }
  local wall, step = 4 * dx, 0.25 * dx / math.sqrt(YOUNG) * part
  local gap = 2 * dx
  local world = cq.World {
    cells = { cells + 24, math.ceil(cells / 4) + 8 }, dx = dx, dt = step, precision = "float64",
    walls = cq.Boundary.half_plane { point = { wall, 0 }, normal = { 1, 0 }, kind = kind,
      separable = kind == "sticky" or nil },
    bar:at { wall + gap, 4 * dx },
  }
  local time = 2 * LENGTH / math.sqrt(YOUNG) + 4 * gap / SPEED
  local state = world:rollout {
    steps = math.ceil(time / step), robot = world.robot:with { velocity = { -SPEED, 0 } },
  }.state
  local velocity = state:velocity "bar"[1]:item()
  world:close()
  return velocity / SPEED
end

return {
  summary = "an elastic bar that meets a wall end on, separate and sticky-separable",
  source = "waves in a bar: it leaves after 2 L / c with its speed",
  quick = true,
  run = function(row)
    for _, kind in ipairs { "separate", "sticky" } do
      local name = kind == "sticky" and "sticky, separable" or kind
      local cells, ours, steps, by_step = { 8, 16, 32 }, {}, { 1, 4 }, {}
      for k, n in ipairs(cells) do ours[k] = rebound(n, 1, kind) end
      for k, n in ipairs(steps) do by_step[k] = rebound(16, 1 / n, kind) end
      row { method = "explicit", quantity = ("speed after a blow on a wall, %s"):format(name), exact = 1, ours = ours,
        refined = cells, by = "cells along", promise = 0.1, at_most = 0.2,
        falls_short = "the bar's end is compressed within one cell of the grid, and each transfer damps differences"
          .. " between neighbouring nodes" }
      row { method = "explicit", quantity = ("speed after a blow, 16 cells along, shorter steps, %s"):format(kind),
        exact = 1, ours = by_step, refined = steps, by = "times as many steps", promise = 0.1, at_most = 0.7,
        falls_short = "each step damps differences between neighbouring nodes once, so that more steps damp more" }
    end
  end,
}
