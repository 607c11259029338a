-- impulse: a block falls on ground with friction, beside a wall, and a pinned one is pulled: what walls, pins and
-- gravity give is the change of momentum.
local cq = require "cq"

local GRAVITY, DT, STEPS = { 0.3, -2 }, 4e-3, 200

-- the largest difference of momentum and impulses in a control step's running sum, by the impulse of the weight
local function balance(dim, cells, integrator)
  local side = 0.25
  local dx = side / cells
  local function filled(x, y) return dim == 2 and { x, y } or { x, y, x } end
  local function gravity() return dim == 2 and GRAVITY or { GRAVITY[1], GRAVITY[2], 0.1 } end
  local block = cq.Robot {
    shape = cq.Shape.box { name = "block", size = filled(side, side), spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1.5 },
  }
  local count = math.ceil(1 / dx)
  local world = cq.World {
    cells = filled(count, count), dx = dx, dt = DT, substeps = integrator and 1 or "auto", gravity = gravity(),
    precision = "float64", integrator = integrator,
    walls = { cq.Boundary.floor { at = 4 * dx, mu = 0.4 },
      cq.Boundary.half_plane { point = filled(1 - 4 * dx, 0), normal = dim == 2 and { -1, 0 } or { -1, 0, 0 },
        kind = "separate" } },
    block:at(filled(0.4, 6 * dx)),
  }
  local start = filled(0.5, -1)
  local given, first, worst, mass = cq.zeros { dim }, nil, 0, nil
  world:rollout {
    steps = STEPS, contact = true, robot = world.robot:with { velocity = start }, on_step = function(state)
      local p = state:momentum "block"
      if state.step == 0 then
        first = p
        mass = p[2]:item() / start[2]
        return
      end
      given = given + state:contact(1).impulse + state:contact(2).impulse + cq.tensor(gravity()) * (mass * DT)
      worst = math.max(worst, (p - first - given):abs():max():item())
    end,
  }
  world:close()
  return worst / (mass * 2 * DT * STEPS)
end

return {
  summary = "impulses of ground, wall and gravity are the change of momentum",
  source = "Newton's second law; off by the impulse of the weight",
  quick = true,
  run = function(row)
    for _, dim in ipairs { 2, 3 } do
      for _, method in ipairs { "explicit", "implicit" } do
        local cells, ours = dim == 2 and { 4, 8 } or { 3, 6 }, {}
        for k, n in ipairs(cells) do
          ours[k] = balance(dim, n, method == "implicit" and cq.Implicit { tolerance = 1e-8 } or nil)
        end
        row { method = method, quantity = ("momentum that nobody gave, in %dD"):format(dim), exact = 0, scale = 1,
          ours = ours, refined = cells, by = "cells across", promise = method == "implicit" and 1e-7 or 1e-12 }
      end
    end
  end,
}
