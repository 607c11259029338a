-- bounce: an elastic bar meets a wall end on. A compression runs through it and back as a release, and after 2 L / c it
-- leaves with the speed that it came with and no strain (a Poisson's ratio of 0 makes the plane a line). The same from
-- a sticky wall that lets go as soon as it is pulled.
local cq = require "cq"

local YOUNG, LENGTH, HEIGHT, SPEED = 100, 1, 0.25, 0.02

-- speed after the blow by that before; part: of the time step; more: fields of the world
local function rebound(cells, part, kind, more)
  local dx = LENGTH / cells
  local bar = cq.Robot {
    shape = cq.Shape.box { name = "bar", size = { LENGTH, HEIGHT }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0, density = 1 },
  }
  local wall, step = 4 * dx, 0.25 * dx / math.sqrt(YOUNG) * part
  local gap = 2 * dx
  local world = cq.World {
    cells = { cells + 24, math.ceil(cells / 4) + 8 }, dx = dx, dt = step, precision = "float64",
    transfer = more.transfer, formulation = more.formulation,
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
    local function compare(method, how, given)
      local cells, ours = { 8, 16, 32 }, {}
      for k, n in ipairs(cells) do ours[k] = rebound(n, 1, given.kind or "separate", given) end
      row { method = method, quantity = "speed after a blow on a wall, " .. how, exact = 1, ours = ours,
        refined = cells, by = "cells along", promise = 0.1, at_most = given.falls_short and 0.2,
        falls_short = given.falls_short }
    end
    local damped = "the bar's end is compressed within one cell of the grid, and each transfer damps differences between"
      .. " neighbouring nodes: without it, as in the rows of decay and of total Lagrangian steps, the bar comes back"
    compare("explicit", "separate", { falls_short = damped })
    compare("explicit", "sticky, separable", { kind = "sticky", falls_short = damped })
    compare("explicit", "separate, decay", { transfer = { decay = "auto" } })
    compare("total Lagrangian", "separate", { formulation = "total_lagrangian" })
    local steps, ours = { 1, 4 }, {}
    for k, n in ipairs(steps) do ours[k] = rebound(16, 1 / n, "separate", {}) end
    row { method = "explicit", quantity = "speed after a blow, 16 cells along, shorter steps, separate", exact = 1,
      ours = ours, refined = steps, by = "times as many steps", promise = 0.1, at_most = 0.7,
      falls_short = "each step damps differences between neighbouring nodes once, so that more steps damp more" }
  end,
}
