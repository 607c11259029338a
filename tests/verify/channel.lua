-- channel: a viscous liquid in the middle of a long channel between two plates, started from rest: the plates' drag
-- makes the straight profile of Couette where one of them moves, and the parabola of Poiseuille where gravity pulls.
-- The liquid is eight times as long as it is deep; its ends are free, and its middle is measured.
local cq = require "cq"

local DEPTH, LONG, VISCOSITY, FINAL = 0.25, 2, 0.05, 1.5    -- the slowest mode falls by exp(-pi^2 nu t / h^2) = 7e-6

local function flow(cells, options)
  local dx = DEPTH / cells
  local wall, left = 4 * dx, 0.5
  local water = cq.Robot {
    shape = cq.Shape.box { name = "liquid", size = { LONG, DEPTH }, spacing = dx / 2 },
    material = cq.Material.fluid { bulk = 50, density = 1, viscosity = VISCOSITY, tension = 10 },
  }
  local world = cq.World {
    cells = { math.ceil((LONG + 1) / dx), cells + 8 }, dx = dx, dt = 0.05, substeps = "auto",
    gravity = { options.pull or 0, 0 }, pressure_smoothing = 20,
    walls = {
      cq.Boundary.floor { at = wall, kind = "sticky" },
      cq.Boundary.half_plane { point = { 0, wall + DEPTH }, normal = { 0, -1 }, kind = "sticky", moves = false,
        velocity = { options.speed or 0, 0 } },
    },
    water:at { left, wall },
  }
  local state = world:rollout { steps = FINAL / 0.05 }.state
  local x, v = state:positions(), state:velocities()
  local middle = state:center("liquid")[1]:item()
  local sum, count, most = 0, 0, 0
  for p = 1, x:size(1) do
    if math.abs(x:get(p, 1) - middle) < DEPTH then
      local y = (x:get(p, 2) - wall) / DEPTH
      local off = v:get(p, 1) - options.exact(y)
      sum, count, most = sum + off ^ 2, count + 1, math.max(most, options.exact(y))
    end
  end
  world:close()
  return math.sqrt(sum / count) / most
end

return {
  summary = "Couette's and Poiseuille's flow between two plates, started from rest",
  source = "Couette v = U y / h, Poiseuille v = g y (h - y) / (2 nu); U the speed of the plate, g gravity, h the distance"
    .. " of the plates, nu the kinematic viscosity",
  run = function(row)
    local cells = { 8, 16, 32 }
    local speed, pull = 0.1, 0.4
    for _, options in ipairs {
      { name = "Couette", speed = speed, exact = function(y) return speed * y end },
      { name = "Poiseuille", pull = pull, exact = function(y)
        return pull * DEPTH ^ 2 / (2 * VISCOSITY) * y * (1 - y)
      end },
    } do
      local errors = {}
      for k, n in ipairs(cells) do errors[k] = flow(n, options) end
      row {
        method = "explicit", quantity = options.name .. ", error of the velocity by its largest", exact = 0, scale = 1,
        ours = errors, refined = cells, by = "cells across", promise = 0.02,
        plateau = "two errors of opposite sign nearly cancel at 16 cells. One of them is that each step damps differences"
          .. " between neighbouring nodes: twice as many steps make Poiseuille's flow 2.7 % slower there",
      }
    end
  end,
}
