-- energy: work of actuators is the change of kinetic, elastic and potential energy and what is dissipated. Nothing here
-- has friction, viscosity or plastic flow: what is missing is what the transfers between particles and grid dissipate.
local cq = require "cq"

local SIDE, DT, STEPS = 0.25, 1e-3, 400

-- energy that is missing at the end, by the work that was done in all
local function missing(cells, substeps)
  local dx = SIDE / cells
  local block = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 2 * SIDE, SIDE }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "block" }, axis = "x", max = 2 },
  }
  local world = cq.World {
    cells = { math.ceil(1.25 / dx), math.ceil(1 / dx) }, dx = dx, dt = DT, substeps = substeps, gravity = { 0, -1 },
    precision = "float64", block:at { 0.375, 0.5 },
  }
  local first, last
  local roll = world:rollout {
    steps = STEPS, work = true, controller = function(_, _, t) return cq.tensor { math.sin(20 * t) } end,
    on_step = function(state)
      last = state:energy():item()
      first = first or last
    end,
  }
  local work = roll.work:sum():item()
  world:close()
  return 1 - (last - first) / work
end

return {
  summary = "a block in free fall that is driven: work of the actuator becomes energy",
  source = "balance of energy",
  quick = true,
  run = function(row)
    local cells, ours, steps, by_step = { 4, 8, 16 }, {}, { 2, 4, 8 }, {}
    for k, n in ipairs(cells) do ours[k] = missing(n, n / 2) end
    for k, n in ipairs(steps) do by_step[k] = missing(8, n) end
    row { method = "explicit", quantity = "part of the work that is missing", exact = 0, scale = 1, ours = ours,
      refined = cells, by = "cells across", promise = 0.05 }
    row { method = "explicit", quantity = "part of the work that is missing at 8 cells across", exact = 0, scale = 1,
      ours = by_step, refined = steps, by = "steps a control step", promise = 0.05,
      plateau = "each step damps differences between neighbouring nodes once, so that more steps damp more" }
  end,
}
