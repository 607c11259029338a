-- dragon_skin: bars of Dragon Skin 30, a silicone rubber, 10 x 10 x 40 mm, at several loads, and how far they must
-- stretch.
-- Source: Yeoh's constants C10 153.6 and C20 1.6 kPa are those of SOROTOKI (Caasenbrood), fitted to tension; the data
-- sheet (Smooth-On) tells a load of 593 kPa at a stretch of 2, where they give 560, and 1080 kg/m^3. Rubber's bulk
-- modulus, of 1.5 GPa, would ask for steps of a microsecond: here it is 20 times the shear modulus, and counted in the
-- stretch that is expected. Units: m, s and tonnes, so that stresses are in kPa.
local cq = require "cq"
local bars = require "scenes.pulled_bars"
local bisect = require "scenes.bisect"

local C10, C20, DENSITY = 153.6, 1.6, 1.08
local BULK = 20 * 2 * C10

-- Kirchhoff stresses along and across a bar with stretches a along it and b across it, of Yeoh's energy psi = C10 (I1 -
-- 3) + C20 (I1 - 3)^2 + K/4 (J^2 - 1 - 2 log J) with the isochoric I1. Returns both [kPa].
local function stress(a, b)
  local J = a * b * b
  local first, along, across = J ^ (-2 / 3) * (a * a + 2 * b * b), J ^ (-2 / 3) * a * a, J ^ (-2 / 3) * b * b
  local slope, volume = 2 * (C10 + 2 * C20 * (first - 3)), BULK / 2 * (J * J - 1)
  return slope * (along - first / 3) + volume, slope * (across - first / 3) + volume
end

-- The stretch of a bar in equilibrium under a load, force by undeformed section [kPa], with free sides, by bisection.
local function expected(load)
  -- The stretch across the bar at which its sides are free of stress, if the stretch along it is a.
  local function across(a)
    return bisect(function(b)
      local _, free = stress(a, b)
      return free
    end, 0.3, 1.1)
  end
  return bisect(function(a) return stress(a, across(a)) / a - load end, 1, 4)
end

---Bars of Dragon Skin 30 at several loads.
---@param options? { loads?: number[], across?: integer, precision?: string, device?: string }
---  loads: force by the undeformed section of each bar, 100, 300 and 560 unless given [kPa]; across: particles along a
---  side, 8 unless given
---@return table                    what scenes.pulled_bars returns, with loads and expected: the stretch of each bar
return function(options)
  local given = options or {}
  local loads, materials, stretches = given.loads or { 100, 300, 560 }, {}, {}
  for k, load in ipairs(loads) do
    materials[k] = cq.Material.yeoh { c10 = C10, c20 = C20, bulk = BULK, density = DENSITY }
    stretches[k] = expected(load)
  end
  local scene = bars {
    materials = materials, loads = loads, side = 0.01, dt = 2e-4, damping = 1000, across = given.across, reach = 3,
    precision = given.precision, device = given.device,
  }
  scene.loads, scene.expected = loads, stretches
  return scene
end
