-- contact: two bodies that meet: elastic bars end on, which exchange their speeds, and a block that slides along
-- another without friction. Bodies share the velocities of the grid, so that contact between them is sticky.
local cq = require "cq"

local YOUNG, LENGTH, HEIGHT, SPEED = 100, 1, 0.25, 0.1

local function bar(name, dx)
  return cq.Robot { name = name, shape = cq.Shape.box { name = name, size = { LENGTH, HEIGHT }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0, density = 1 } }
end

-- relative speed after the blow by that before
local function meet(cells, transfer)
  local dx = LENGTH / cells
  local gap, left = 3 * dx, 6 * dx
  local a, b = bar("a", dx):at { left, 4 * dx }, bar("b", dx):at { left + LENGTH + gap, 4 * dx }
  local step = 0.25 * dx / math.sqrt(YOUNG)
  local world = cq.World { cells = { 2 * cells + 20, math.ceil(cells / 4) + 8 }, dx = dx, dt = step,
    precision = "float64", transfer = transfer, a, b }
  local time = 2 * LENGTH / math.sqrt(YOUNG) + 2 * gap / SPEED
  local state = world:rollout { steps = math.ceil(time / step),
    robot = { a:with { velocity = { SPEED / 2, 0 } }, b:with { velocity = { -SPEED / 2, 0 } } } }.state
  local apart = (state:velocity(b) - state:velocity(a))[1]:item()
  world:close()
  return apart / SPEED
end

-- way of a block that was pushed along a held one, by what it would be without friction
local function slide(cells)
  local dx, height = HEIGHT / cells, HEIGHT
  local function block(name, length, pins)
    return cq.Robot { name = name, pins = pins and name,
      material = cq.Material.neo_hookean { young = YOUNG, poisson = 0.3, density = 1 },
      shape = cq.Shape.box { name = name, size = { length, height }, spacing = dx / 2 } }
  end
  local low = block("low", 1.5, true):at { 4 * dx, 4 * dx }
  local high = block("high", height):at { 4 * dx + 0.25, 4 * dx + height + dx }
  local world = cq.World { cells = { math.ceil(1.5 / dx) + 8, 2 * cells + 16 }, dx = dx, dt = 0.01, substeps = "auto",
    gravity = { 0, -1 }, low, high }
  local robots = { low, high:with { velocity = { 0.5, 0 } } }
  local start, last
  world:rollout { steps = 100, robot = robots, on_step = function(state)
    last = state:center(high)[1]:item()
    start = start or last
  end }
  world:close()
  return (last - start) / 0.5
end

return {
  summary = "two bodies that meet, and one that slides along another",
  source = "waves in bars: equal bars exchange their speeds; no friction, no force along the surface",
  quick = true,
  run = function(row)
    local cells, ours, decay, across, way = { 8, 16, 32 }, {}, {}, { 4, 8, 16 }, {}
    for k, n in ipairs(cells) do ours[k], decay[k] = meet(n), meet(n, { decay = "auto" }) end
    for k, n in ipairs(across) do way[k] = slide(n) end
    row { method = "explicit", quantity = "relative speed after two bars have met", exact = 1, ours = ours,
      refined = cells, by = "cells along", promise = 0.1, at_most = 0.28,
      falls_short = "the ends are pressed together within a cell, and each transfer damps what changes from node to"
        .. " node: with decay the bars keep their speed" }
    row { method = "explicit", quantity = "relative speed after two bars have met, decay", exact = 1, ours = decay,
      refined = cells, by = "cells along", promise = 0.1 }
    row { method = "explicit", quantity = "way along another body without friction", exact = 1, ours = way,
      refined = across, by = "cells across", promise = 0.05, at_most = 1,
      falls_short = "bodies share one velocity field: contact between them is sticky" }
  end,
}
