-- bar: a free elastic bar swings along its length in its first mode. Its frequency is c / 2L, and its energy stays.
-- A Poisson's ratio of 0 keeps the bar's section as it is, so that c = sqrt(E / density) holds in the plane too.
local cq = require "cq"

local YOUNG, LENGTH, HEIGHT, STRAIN, PERIODS = 100, 1, 0.25, 1e-3, 5
local PERIOD = 2 * LENGTH / math.sqrt(YOUNG)

-- frequency by that of theory, and the part of the energy left after PERIODS; cells along the bar
local function swing(cells, integrator)
  local dx = LENGTH / cells
  local bar = cq.Robot {
    shape = cq.Shape.box { name = "bar", size = { LENGTH, HEIGHT }, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0, density = 1 },
  }
  local steps = integrator and 64 or math.ceil(8 * cells)      -- in a period; explicit: a Courant number of 0.25
  local world = cq.World {
    cells = { cells + 8, math.ceil(cells / 4) + 8 }, dx = dx, dt = PERIOD / steps, precision = "float64",
    integrator = integrator and cq.Implicit { tolerance = 1e-8 } or nil, bar:at { 4 * dx, 4 * dx },
  }
  local x = bar.position:slice(1, 1, 2)
  local shape = (x * (math.pi / LENGTH)):cos()
  local velocity = cq.concat({ shape * (STRAIN * math.sqrt(YOUNG)), shape * 0 }, 2)
  local first, before, crossings, last = nil, nil, {}, nil
  world:rollout {
    steps = PERIODS * steps, robot = world.robot:with { velocity = velocity },
    on_step = function(state)
      local along = (state:velocities():slice(1, 1, 2) * shape):sum():item()
      local energy = state:energy("bar", "elastic") + state:energy("bar", "kinetic")
      first, last = first or energy:item(), energy:item()
      if before and before * along < 0 then
        crossings[#crossings + 1] = state.time - world.control_dt * along / (along - before)
      end
      before = along
    end,
  }
  world:close()
  local found = (#crossings - 1) / 2 / (crossings[#crossings] - crossings[1])
  return found * PERIOD, last / first
end

return {
  summary = "a free bar swings along its length, wave length twice its length",
  source = "frequency c / 2L of the wave equation; energy is conserved",
  quick = true,
  run = function(row)
    for _, method in ipairs { "explicit", "implicit" } do
      local cells = method == "explicit" and { 8, 16, 32 } or { 8, 16 }
      local frequency, energy = {}, {}
      for k, n in ipairs(cells) do frequency[k], energy[k] = swing(n, method == "implicit") end
      row { method = method, quantity = "frequency by c / 2L", exact = 1, ours = frequency, refined = cells,
        by = "cells along", promise = method == "explicit" and 0.002 or 0.01 }
      row { method = method, quantity = "energy left after 5 periods", exact = 1, ours = energy, refined = cells,
        by = "cells along", promise = 0.02, at_most = 0.97, falls_short = method == "implicit" and
          "backward Euler of 64 steps a period damps, whatever the grid" or nil }
    end
  end,
}
