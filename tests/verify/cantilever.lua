-- cantilever: a beam held at one end bends under its own weight: by a fiftieth of its length, beside Timoshenko's beam,
-- and so far that it hangs, beside Reissner's. By explicit steps that come to rest, total Lagrangian and implicit ones,
-- and world:settle.
local beam = require "tests.beam"
local bisect = require "scenes.bisect"

local LENGTH, HEIGHT, PLANE, SHEAR = beam.LENGTH, beam.HEIGHT, beam.PLANE, beam.SHEAR

-- Reissner's beam under its weight, the elastica with shear and stretch: what the tip sinks by. theta: angle of the
-- section below the level; its force q (L - s) stretches by e and shears by c, and E I theta'' = (1 + e) V - c N. Found
-- from the curvature at the root that leaves none at the tip. Finite elements have 0.1 % more
-- (tests/verify/fem/cantilever.csv); without shear and stretch it is 1.7 % less.
local function reissner(gravity)
  local weight = gravity * HEIGHT
  local function shoot(root)
    local n, theta, bend, down = 4000, 0, root, 0
    local h = LENGTH / n
    for k = 0, n - 1 do
      local middle, force = theta + h / 2 * bend, weight * (LENGTH - (k + 0.5) * h)
      local along, across = force * math.sin(middle), force * math.cos(middle)
      local stretch, shear = along / (PLANE * HEIGHT), across / (5 / 6 * SHEAR * HEIGHT)
      down = down + h * ((1 + stretch) * math.sin(middle) + shear * math.cos(middle))
      bend = bend - h * ((1 + stretch) * across - shear * along) * 12 / (PLANE * HEIGHT ^ 3)
      theta = middle + h / 2 * bend
    end
    return bend, down
  end
  local root = bisect(function(k) return (shoot(k)) end, 0, weight * LENGTH ^ 2 * 12 / (PLANE * HEIGHT ^ 3))
  return select(2, shoot(root))
end

local FEW = "once particles have moved over the grid, three or four across a cell integrate stress too coarsely: the"
  .. " error goes with particles and not with cells, and total Lagrangian steps, whose grid moves with them, have none of"
  .. " it with three"

return {
  summary = "a cantilever under its own weight, small and large deflection",
  source = "Timoshenko's beam in plane strain; Reissner's beam, which is the elastica with shear and stretch",
  run = function(row)
    local function compare(method, quantity, exact, refined, by, found, more)
      local ours = {}
      for k, n in ipairs(refined) do ours[k] = found(n) / LENGTH end
      local given = { method = method, quantity = quantity, exact = exact / LENGTH, ours = ours, refined = refined,
        by = by, promise = 0.03 }
      for key, value in pairs(more or {}) do given[key] = value end
      row(given)
    end
    for _, load in ipairs { { "small", 0.02, beam.timoshenko }, { "large", 0.5, reissner } } do
      local name, part, theory = unpack(load)
      local gravity = part * LENGTH / beam.timoshenko(1)
      local exact, quantity = theory(gravity), ("%s deflection of the tip by the length"):format(name)
      for _, method in ipairs { "explicit", "implicit", "settle", "total Lagrangian", "total Lagrangian, implicit",
        "total Lagrangian, settle" } do
        local four = name == "large" and (method == "explicit" or method == "implicit")
        compare(method, quantity .. (four and ", 4 particles across a cell" or ""), exact,
          method:match "settle$" and { 4, 8, 16 } or { 4, 8 }, "cells across",
          function(n) return beam.sink(n, gravity, method, four and 4 or 3) end, { plateau = four and FEW or nil })
        if four then
          compare(method, quantity .. ", 8 cells across", exact, { 3, 4, 6 }, "particles across a cell",
            function(n) return beam.sink(8, gravity, method, n) end)
        end
      end
      if name == "small" then
        compare("settle", quantity .. ", pins drawn to the root", exact, { 4, 8, 16 }, "cells across",
          function(n) return beam.sink(n, gravity, "settle", 3, true) end, { promise = 0.05 })
      end
    end
  end,
}
