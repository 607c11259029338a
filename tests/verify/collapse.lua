-- collapse: columns of sand, one side at a smooth wall, that collapse on rough ground: how far they run out.
local cq = require "cq"

local WIDTH, WALL, REPOSE = 0.1, 3, 31           -- of the column; cells to the sides of cq.Boundary.box; [degree]

-- what Lube et al. measured, of a column `a` times as high as it is wide: way of the front by the width
local function measured(a) return a < 1.8 and 1.2 * a or 1.9 * a ^ (2 / 3) end

-- how far the front goes, by the width; it is where the sand is half a cell deep
local function run_out(a, cells)
  local dx, height = WIDTH / cells, a * WIDTH
  local reach = math.ceil((2 + 2 * measured(a)) * cells)
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "sand", size = { WIDTH, height }, spacing = dx / 2, jitter = 0.5, seed = 1 },
    material = cq.Material.drucker_prager { young = 100, poisson = 0.3, density = 1,
      friction_angle = math.asin(math.tan(math.rad(REPOSE))) },
  }
  local world = cq.World {
    cells = { reach + 2 * WALL, math.ceil(1.1 * height / dx) + 2 * WALL }, dx = dx, dt = 0.01, substeps = "auto",
    gravity = { 0, -1 }, robot:at { WALL * dx, WALL * dx },
    walls = { cq.Boundary.box { kind = "separate" }, cq.Boundary.floor { at = WALL * dx, kind = "sticky" } },
  }
  local time = 6 * math.sqrt(height)
  local x, column, front = world:rollout({ steps = math.ceil(time / 0.01) }).state:positions():data(), {}, 0
  for p = 0, world.particle_count - 1 do
    local c = math.floor(x[2 * p] / dx)
    column[c] = (column[c] or 0) + 0.25                            -- cells deep
  end
  for c, depth in pairs(column) do if depth >= 0.5 then front = math.max(front, c + 1 - WALL) end end
  world:close()
  return front / cells - 1
end

return {
  summary = "columns of sand that collapse on rough ground: how far they run out",
  source = "Lube et al., Phys. Rev. E 72 (2005), planar columns of sand, rice and sugar: 1.2 a where a < 1.8, 1.9"
    .. " a^(2/3) where a > 2.8, as equation 3.1 of Lagree, Staron and Popinet, J. Fluid Mech. 686 (2011), has it",
  run = function(row)
    for _, a in ipairs { 1, 4 } do
      local cells, ours = { 8, 16, 32 }, {}
      for k, n in ipairs(cells) do ours[k] = run_out(a, n) end
      row { method = "explicit", quantity = ("way of the front by the width, %d times as high as wide"):format(a),
        exact = measured(a), ours = ours, refined = cells, by = "cells of the width", promise = 0.05 }
    end
  end,
}
