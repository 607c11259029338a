-- rolling: a stiff disc rolls down a slope without sliding: a third of gravity's pull goes into its spin.
local cq = require "cq"
local trend = require "scenes.trend"

local GRAVITY, RADIUS = 1, 0.2

local function roll(dx, angle)
  local disc = cq.Robot {
    shape = cq.Shape.disc { name = "disc", at = { 0, 0 }, radius = RADIUS, spacing = dx / 2 },
    material = cq.Material.neo_hookean { young = 500, poisson = 0.3, density = 1 },
  }
  local world = cq.World {
    cells = { math.ceil(2.4 / dx), math.ceil(0.75 / dx) }, dx = dx, dt = 0.02, substeps = "auto",
    gravity = { GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle) },
    walls = cq.Boundary.floor { at = 4 * dx, mu = 0.8 }, disc:at { 0.4, 4.9 * dx + RADIUS },
  }
  local line = trend.new()
  world:rollout { steps = 125, on_step = function(state)
    if state.step >= 25 then line:add(state.time, state:velocity "disc"[1]:item()) end
  end }
  world:close()
  return line:slope()
end

return {
  summary = "a stiff disc that rolls down a slope without sliding",
  source = "acceleration 2/3 g sin a",
  quick = true,
  run = function(row)
    for _, degrees in ipairs { 30, 10 } do
      local cells, ours = { 8, 16, 32 }, {}
      for k, n in ipairs(cells) do ours[k] = roll(2 * RADIUS / n, math.rad(degrees)) end
      row { method = "explicit", quantity = ("acceleration on a slope of %d degrees"):format(degrees),
        exact = 2 / 3 * GRAVITY * math.sin(math.rad(degrees)), ours = ours, refined = cells, by = "cells across",
        promise = 0.05 }
    end
  end,
}
