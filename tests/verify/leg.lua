-- leg: a leg that is held at one end swings in its first mode of bending, four times as long as it is wide, and no
-- energy leaves it. How many cells it needs for that.
local cq = require "cq"

local YOUNG, LENGTH, SLENDER, SWINGS = 100, 1, 4, 5
local MODE = 1.8751                        -- first root of cosh k cos k = -1
local SAMPLES = 64                         -- in a period
local PERIOD = 2 * math.pi / MODE ^ 2 * LENGTH * SLENDER * math.sqrt(12 / YOUNG)      -- of a thin beam

-- the shape of the first mode of a thin beam, at x from its root
local function mode_of(x)
  local s = x:clamp(0, LENGTH) * (MODE / LENGTH)
  local up, down = s:exp(), (-s):exp()
  local part = (math.sinh(MODE) - math.sin(MODE)) / (math.cosh(MODE) + math.cos(MODE))
  return (up + down) / 2 - s:cos() - ((up - down) / 2 - s:sin()) * part
end

-- part of the energy left after SWINGS periods; the root is held as that of the cantilever
local function left(cells, transfer, formulation)
  local dx = LENGTH / cells
  local root = 9.77 * dx
  local robot = cq.Robot {
    shape = cq.Shape.box { at = { root - 2 * dx, 0 }, size = { LENGTH + 2 * dx, LENGTH / SLENDER } }, spacing = dx / 2,
    groups = { root = function(x) return x < root - 0.4 * dx end }, pins = "root",
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0, density = 1 },
  }
  local world = cq.World {
    cells = { cells + 20, cells / SLENDER + 16 }, dx = dx, dt = PERIOD / SAMPLES, substeps = "auto",
    precision = "float64", transfer = transfer, formulation = formulation, robot:at { 0, 8 * dx },
  }
  local mode = mode_of(world.robot.position:slice(1, 1, 2) - root)
  local velocity = cq.concat({ mode * 0, mode * (5e-3 * 2 * math.pi / PERIOD) }, 2)
  local first, before, turns, energy = nil, nil, 0, nil
  world:rollout {
    steps = math.ceil(1.1 * SWINGS * SAMPLES), robot = world.robot:with { velocity = velocity },
    on_step = function(state)
      local along = (state:velocities() * velocity):sum():item()
      if before and before * along < 0 then turns = turns + 1 end
      before = along
      -- a period is two turns; at the turn it is as far from rest as it goes
      if turns < 2 * SWINGS then
        energy = (state:energy(world.robot, "elastic") + state:energy(world.robot, "kinetic")):item()
        first = first or energy
      end
    end,
  }
  world:close()
  return turns >= 2 * SWINGS and energy / first or 0 / 0
end

return {
  summary = "a leg held at its root swings, four times as long as it is wide",
  source = "energy is conserved",
  quick = true,
  run = function(row)
    local cells = { 8, 16, 32 }
    local function compare(method, how, ...)
      local ours = {}
      for k, n in ipairs(cells) do ours[k] = left(n, ...) end
      row { method = method, quantity = "energy left after 5 swings" .. how, exact = 1, ours = ours, refined = cells,
        by = "cells along", promise = 0.05 }
    end
    compare("explicit", "")
    compare("explicit", ", decay", { decay = "auto" })
    compare("total Lagrangian", "", nil, "total_lagrangian")
  end,
}
