-- cantilever: a beam held at one end bends under its own weight: by a fiftieth of its length, beside Timoshenko's beam,
-- and so far that it hangs, beside the elastica. By explicit steps that come to rest, implicit ones, and world:settle.
local cq = require "cq"
local bisect = require "scenes.bisect"

local LENGTH, HEIGHT, YOUNG, POISSON = 0.4, 0.05, 1, 0.3
local PLANE, SHEAR = YOUNG / (1 - POISSON ^ 2), YOUNG / (2 * (1 + POISSON))

-- Timoshenko: what the tip sinks by, of density 1
local function timoshenko(gravity)
  return gravity * LENGTH ^ 2 * (12 * LENGTH ^ 2 / (8 * PLANE * HEIGHT ^ 2) + 1 / (2 * 5 / 6 * SHEAR))
end

-- The elastica under its weight, E I theta'' = q (L - s) cos theta with theta the angle below the level: what the tip
-- sinks by. Found from the curvature at the root that leaves none at the tip.
local function elastica(gravity)
  local load = gravity * HEIGHT / (PLANE * HEIGHT ^ 3 / 12)
  local function shoot(root)
    local n, theta, bend, down = 4000, 0, root, 0
    local h = LENGTH / n
    for k = 0, n - 1 do
      local s = (k + 0.5) * h
      local middle = theta + h / 2 * bend
      down = down + h * math.sin(middle)
      bend = bend - h * load * (LENGTH - s) * math.cos(middle)
      theta = middle + h / 2 * bend
    end
    return bend, down
  end
  local root = bisect(function(k) return (shoot(k)) end, 0, load * LENGTH ^ 2)
  return select(2, shoot(root))
end

-- three of the first periods, damped so that less than a thousandth of its motion is left
local PERIOD = 2 * math.pi / 3.516 * LENGTH ^ 2 * math.sqrt(12 / PLANE) / HEIGHT

local function sink(cells, gravity, method)
  local dx = HEIGHT / cells
  local root, low = 10 * dx, math.ceil(LENGTH / dx) + 4
  local bar = cq.Robot {
    shape = cq.Shape.box { at = { root - 2 * dx, low * dx }, size = { LENGTH + 2 * dx, HEIGHT } }, spacing = dx / 2,
    groups = { root = function(x) return x < root end, tip = function(x) return x > root + LENGTH - dx / 2 end },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 1 }, pins = "root",
  }
  local world = cq.World {
    cells = { math.ceil(LENGTH / dx) + 20, low + cells + 8 }, dx = dx, gravity = { 0, -gravity }, damping = 10 / PERIOD,
    dt = PERIOD / (method == "implicit" and 20 or 50),
    substeps = method == "explicit" and "auto" or method == "implicit" and cells / 2 or 1,
    precision = "float64", integrator = method ~= "explicit" and cq.Implicit { tolerance = 1e-5 } or nil, bar,
  }
  local state = method == "settle" and world:settle {}
    or world:rollout({ steps = method == "implicit" and 60 or 150 }).state
  local y = state:center "tip"[2]:item()
  world:close()
  return low * dx + HEIGHT / 2 - y
end

local CLAMP = "pins hold the nodes that their particles touch, so that the beam is 0.77 cells shorter than drawn: the error"
  .. " is of order 1"
local DRIFT = "as the particles move on over the grid, each step gives up a little of the strain between them, so that the"
  .. " beam hangs lower than settle has it, and finer grids do not mend it"

local falls_short = { smallexplicit = CLAMP, largeimplicit = DRIFT }

return {
  summary = "a cantilever under its own weight, small and large deflection",
  source = "Timoshenko's beam in plane strain; the elastica E I theta'' = q (L - s) cos theta",
  run = function(row)
    for _, load in ipairs { { "small", 0.02, timoshenko }, { "large", 0.5, elastica } } do
      local name, part, theory = unpack(load)
      local gravity = part * LENGTH / timoshenko(1)
      for _, method in ipairs { "explicit", "implicit", "settle" } do
        local cells, ours = method == "settle" and { 4, 8, 16 } or { 4, 8 }, {}
        for k, n in ipairs(cells) do ours[k] = sink(n, gravity, method) / LENGTH end
        row { method = method, quantity = ("%s deflection of the tip by the length"):format(name),
          exact = theory(gravity) / LENGTH, ours = ours, refined = cells, by = "cells across", promise = 0.05,
          falls_short = falls_short[name .. method], at_most = falls_short[name .. method] and 0.08 }
      end
    end
  end,
}
