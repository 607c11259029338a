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

-- Pins hold every node that a pinned particle touches, up to 1.5 cells beyond it, and the beam begins 0.23 cells before
-- the last of them. So the drawn root is there, and pins end 0.4 cells before it; drawn: pins that end at the root,
-- which is at a node.
local function sink(cells, gravity, method, drawn)
  local dx = HEIGHT / cells
  local root, low = (drawn and 10 or 9.77) * dx, math.ceil(LENGTH / dx) + 4
  local pinned = root - (drawn and 0 or 0.4 * dx)
  local bar = cq.Robot {
    shape = cq.Shape.box { at = { root - 2 * dx, low * dx }, size = { LENGTH + 2 * dx, HEIGHT } }, spacing = dx / 3,
    groups = { root = function(x) return x < pinned end, tip = function(x) return x > root + LENGTH - dx / 2 end },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 1 }, pins = "root",
  }
  local world = cq.World {
    cells = { math.ceil(LENGTH / dx) + 20, low + cells + 8 }, dx = dx, gravity = { 0, -gravity }, damping = 10 / PERIOD,
    dt = PERIOD / (method == "implicit" and 20 or 50),
    substeps = method == "explicit" and "auto" or method == "implicit" and cells or 1,
    precision = "float64", integrator = method ~= "explicit" and cq.Implicit { tolerance = 1e-5 } or nil, bar,
  }
  local state = method == "settle" and world:settle {}
    or world:rollout({ steps = method == "implicit" and 60 or 150 }).state
  local y = state:center "tip"[2]:item()
  world:close()
  return low * dx + HEIGHT / 2 - y
end

local DRIFT = "as the particles move over the grid, each step loses a little of the strain between them, so that the"
  .. " beam hangs lower than the equilibrium that settle finds"
local SHEAR_TOO = "the elastica leaves out shear, and with shear a beam eight times as long as high sinks 1.8 % more"

return {
  summary = "a cantilever under its own weight, small and large deflection",
  source = "Timoshenko's beam in plane strain; the elastica E I theta'' = q (L - s) cos theta",
  run = function(row)
    for _, load in ipairs { { "small", 0.02, timoshenko }, { "large", 0.5, elastica } } do
      local name, part, theory = unpack(load)
      local gravity = part * LENGTH / timoshenko(1)
      local function compare(method, quantity, drawn, more)
        local cells, ours = method == "settle" and { 4, 8, 16 } or { 4, 8 }, {}
        for k, n in ipairs(cells) do ours[k] = sink(n, gravity, method, drawn) / LENGTH end
        local given = { method = method, quantity = quantity, exact = theory(gravity) / LENGTH, ours = ours,
          refined = cells, by = "cells across", promise = 0.03 }
        for key, value in pairs(more) do given[key] = value end
        row(given)
      end
      for _, method in ipairs { "explicit", "implicit", "settle" } do
        local drifts = name == "large" and method ~= "settle"
        compare(method, ("%s deflection of the tip by the length"):format(name), false,
          { falls_short = drifts and DRIFT or nil, at_most = drifts and 0.1 or nil, plateau = SHEAR_TOO })
      end
      if name == "small" then
        compare("settle", "the same, pins drawn to the root", true, { promise = 0.05 })
      end
    end
  end,
}
