-- metal_bars: bars of a metal that hardens are pulled, one below its yield stress and the others beyond, and let go
-- again: those stay longer.
-- Source: none; von Mises plasticity with linear hardening H. Under a load P by the undeformed section the true
-- (Kirchhoff) stress of a bar is P exp(e), with e = stress / E + a, and a = (stress - yield stress) / H of it is
-- plastic: it stays, in the stretch exp(a).
local cq = require "cq"
local bars = require "scenes.pulled_bars"

local YOUNG, YIELD, HARDENING = 50, 1, 10
-- when the whole load is there, when it begins to go, is gone, and the end
local PULL, REST, RELEASE, DURATION = 12, 20, 24, 30

-- The plastic stretch that a bar keeps after a load, force by undeformed section [stress], by the equations above; 1 if
-- the yield stress is not reached.
local function expected(load)
  local strain = 0
  for _ = 1, 200 do
    local stress = load * math.exp(strain)
    strain = stress / YOUNG + math.max(0, stress - YIELD) / HARDENING
  end
  return math.exp(math.max(0, load * math.exp(strain) - YIELD) / HARDENING)
end

---Bars of metal at several loads.
---@param options? { loads?: number[], across?: integer, slowness?: number, precision?: string, device?: string }
---  loads: force by the undeformed section of each bar, in yield stresses, 0.9, 1.6 and 2.2 unless given; across:
---  particles along a side, 6 unless given; slowness: times of loading and rest by those of the scene, 1 unless given
---@return table
---  what scenes.pulled_bars returns, with loads; duration; controller: pulls and lets go; expected: the stretch of each
---  bar at the end
return function(options)
  local given = options or {}
  local slow = given.slowness or 1
  local loads, materials, stretches = given.loads or { 0.9, 1.6, 2.2 }, {}, {}
  for k, load in ipairs(loads) do
    materials[k] = cq.Material.von_mises {
      young = YOUNG, poisson = 0.3, yield_stress = YIELD, hardening = HARDENING, density = 1,
    }
    stretches[k] = expected(load)
  end
  local scene = bars {
    materials = materials, loads = loads, dt = 0.1, damping = 3, across = given.across or 6, reach = 1.8,
    precision = given.precision, device = given.device,
  }
  scene.loads, scene.expected, scene.duration = loads, stretches, slow * DURATION
  scene.controller = scene.pull(function(t)
    return math.max(0, math.min(1, t / (slow * PULL), (slow * RELEASE - t) / (slow * (RELEASE - REST))))
  end)
  return scene
end
