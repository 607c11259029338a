-- creeping_bars: a bar of rubber and one of the same rubber with a Maxwell branch beside it, in the plane, under loads
-- that come at once and go again.
-- Source: none; the standard linear solid. In the plane a small stretch under a load P is P/4 (1/k + c(t)), with the
-- areal bulk modulus k = K + G/3, and the creep in shear c(t) = (1 - b/(1 + b) exp(-t/(time (1 + b)))) / G for a branch
-- of b times the shear modulus G.
local cq = require "cq"
local bars = require "scenes.pulled_bars"

local SHEAR, BULK, DENSITY = 1, 10, 0.01         -- so light that the bars follow at once
local MODULUS, TIME, RELEASE = 1, 5, 30

---Two bars under a load, with what they must do.
---@param options? { load?: number, modulus?: number, precision?: string, device?: string }
---  load: by the undeformed section, 0.02 unless given [shear modulus]; modulus: of the branch, 1 unless given [shear
---  modulus]
---@return table
---  what scenes.pulled_bars returns, with controller: pulls and lets go; release: when; creep: fun(t), the strain of
---  the second bar
return function(options)
  local given = options or {}
  local load, modulus = given.load or 0.02, given.modulus or MODULUS
  local rubber = cq.Material.neo_hookean { shear = SHEAR, bulk = BULK, density = DENSITY }
  local scene = bars {
    materials = { rubber, cq.Material.viscoelastic { base = rubber, modulus = { modulus }, time = { TIME } } },
    loads = { load, load },
    -- in float32 a stretch of 1.005 that grows by less than 6e-8 in an engine step stays where it is
    precision = given.precision or "float64",
    dim = 2, dt = 0.1, damping = 15, reach = 2.2, device = given.device,
  }
  local k, share, slow = BULK + SHEAR / 3, modulus / (1 + modulus), TIME * (1 + modulus)
  -- The strain of the second bar at time t after the load was applied, if the load stays.
  local function creep(t) return t <= 0 and 0 or load / 4 * (1 / k + (1 - share * math.exp(-t / slow)) / SHEAR) end
  scene.controller = scene.pull(function(t) return t < RELEASE and 1 or 0 end)
  scene.release, scene.creep = RELEASE, function(t) return creep(t) - creep(t - RELEASE) end
  return scene
end
