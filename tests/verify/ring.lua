-- ring: a thick ring of rubber around a cavity under pressure, by explicit, total Lagrangian and implicit steps that
-- come to rest, and by world:settle; at a small pressure beside Lame's closed form, and at a large one beside the
-- balance of a neo-Hookean wall, integrated across it. Three particles across a cell: two integrate the stress of a
-- wall too coarsely, and the growth is 2 to 6 % too large.
local cq = require "cq"

local YOUNG, POISSON = 20, 0.3

-- growth of the cavity's area by Lame's closed form, in plane strain: u = p a^2 / (E (b^2 - a^2)) (1 + nu) ((1 - 2 nu)
-- a + b^2 / a) at the inside
local function lame(pressure, scene)
  local a, b = scene.inner, scene.outer
  return 2 * pressure * a / (YOUNG * (b ^ 2 - a ^ 2)) * (1 + POISSON) * ((1 - 2 * POISSON) * a + b ^ 2 / a)
end

local function grow(cells, pressure, method)
  local scene = require "scenes.balloon" { max = pressure, cells = cells, spacing = 1 / (3 * cells), damping = 20,
    poisson = POISSON, precision = "float64" }
  local implicit = method == "implicit" or method == "settle"
  scene.world.formulation = method == "total Lagrangian" and "total_lagrangian" or nil
  scene.world.substeps = implicit and 1 or "auto"
  scene.world.integrator = implicit and cq.Implicit { tolerance = 1e-6, pressure = "implicit" } or nil
  local world = cq.World(scene.world)
  local first = world:rollout({ steps = 0 }).state:cavity_volume(scene.pressure):item()
  local state = method == "settle" and world:settle { signals = { 1 } }
    or world:rollout({ steps = 100, controller = function() return cq.tensor { 1 } end }).state
  local grown = state:cavity_volume(scene.pressure):item() / first - 1
  world:close()
  return grown, scene
end

local DRIFT = "as particles move over the grid, three across a cell integrate stress too coarsely: total Lagrangian"
  .. " steps, whose grid moves with them, have a third of the error"
local LATTICE = "hole and wall of the lattice are up to 0.4 % larger or smaller than drawn, "
  .. "by another amount on each grid"

return {
  summary = "a thick ring of rubber under inner pressure: growth of its cavity",
  source = "Lame; the balance of a neo-Hookean wall in plane strain, integrated across it (scenes/balloon.lua)",
  run = function(row)
    for _, load in ipairs { { "small", 0.002 }, { "large", 1.5 } } do
      local name, pressure = unpack(load)
      for _, method in ipairs { "explicit", "total Lagrangian", "implicit", "settle" } do
        local cells, ours, scene = { 48, 96, method == "settle" and 192 or nil }, {}, nil
        for k, n in ipairs(cells) do ours[k], scene = grow(n, pressure, method) end
        row { method = method, quantity = ("growth of the cavity, %s pressure of %g E"):format(name, pressure / YOUNG),
          exact = name == "small" and lame(pressure, scene) or scene.balance(pressure) - 1, ours = ours,
          refined = { 4.8, 9.6, method == "settle" and 19.2 or nil }, by = "cells across the hole's radius",
          promise = 0.03, plateau = name == "large" and (method == "explicit" or method == "implicit") and DRIFT
            or LATTICE }
      end
    end
  end,
}
