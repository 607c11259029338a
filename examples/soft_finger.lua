-- A silicone finger with eight air chambers bends under up to 20 kPa, by implicit steps 2000 times as long as explicit
-- ones, of three laws that were fitted to one curve.                                 cqlua examples/soft_finger.lua
-- Source: figures 2 and 5 of the soft-finger paper (Robotica 2024), which gives neither dimensions nor a curve: the
-- finger is that of scenes/soft_finger.lua, beside finite elements of our own (tests/verify/fem). Expect: the tip
-- lower by 3, 7, 12 and 19 mm under 5, 10, 15 and 20 kPa, the three laws within 1 % of each other, 20 times as quick as
-- explicit steps. Finite elements give 3.7, 8.3, 14.1 and 21.6 mm: walls of two cells are coarse. The laws were fitted
-- to that of the paper's constants of Dragon Skin 30, by Mooney and Rivlin; the bulk modulus is capped at 20 shear
-- moduli (969 kPa), silicone's own is 36,000: J is down to 0.95. --dim 3 takes minutes.
-- Size: 2,448 particles, 3 times 160 implicit steps. Time: 110 s with --threads 1.
local cq      = require "cq"
local stretch = require "scenes.stretch"

local dim    = cq.option("dim", 2)
local length = cq.option("step", 0.02)              -- of implicit steps [s]
local levels = cq.option("levels", { 5, 10, 15, 20 })                           -- [kPa]
local rise, hold = cq.option("rise", 0.4), cq.option("hold", 0.4)               -- of each level [s]
local bulk   = cq.option("bulk", 20)                -- by the shear modulus
local C10, C01, DENSITY = 23.028, 1.19, 1.08        -- [kPa], [t/m^3]
local shear  = 2 * (C10 + C01)
local run    = cq.Run.open { iterations = #levels, resume = false }

-- ---- three laws, one curve ------------------------------------------------------------------------------------------

-- stress of a law in uniaxial tension to l times the length
local function pulled(law, l) return stretch.closed_form(law, "uniaxial", l) end
local curve = { law = "mooney_rivlin", c10 = C10, c01 = C01 }

-- least squares between half and 1.5 times the length: by which two multiples of other laws' stresses the curve is met
-- best; neither is negative
local function fit(one, other)
  local aa, ab, bb, a, b = 0, 0, 0, 0, 0
  for k = 0, 65 do
    local l = 0.5 + 0.015 * k
    local f, g, y = pulled(one, l), pulled(other, l), pulled(curve, l)
    aa, ab, bb, a, b = aa + f * f, ab + f * g, bb + g * g, a + f * y, b + g * y
  end
  local det = aa * bb - ab * ab
  local first, second = (bb * a - ab * b) / det, (aa * b - ab * a) / det
  if second < 0 then return a / aa, 0 end           -- an energy that falls without end is no material's
  if first < 0 then return 0, b / bb end
  return first, second
end

-- fields of a law of Yeoh with two terms
local function yeoh(c10, c20) return { law = "yeoh", c10 = c10, c20 = c20, c30 = 0 } end
-- fields of a law of Ogden with two terms: their moduli, with exponents 1.3 and 4
local function ogden(first, second)
  return { law = "ogden", mu_1 = first, alpha_1 = 1.3, mu_2 = second, alpha_2 = 4, mu_3 = 0, alpha_3 = 1 }
end
local laws = { curve, yeoh(fit(yeoh(1, 0), yeoh(0, 1))), ogden(fit(ogden(1, 0), ogden(0, 1))) }
print(("fitted: C10 %.2f, C20 %.3f kPa of Yeoh; mu %.2f, %.2f kPa with exponents %g, %g of Ogden"):format(laws[2].c10,
  laws[2].c20, laws[3].mu_1, laws[3].mu_2, laws[3].alpha_1, laws[3].alpha_2))
local names = { "Mooney-Rivlin", "Yeoh", "Ogden" }
local scaled = { c10 = true, c01 = true, c20 = true, c30 = true, mu_1 = true, mu_2 = true, mu_3 = true }

-- a function of a factor of stiffness that gives the law's material
local function material_of(law)
  return function(stiffness)
    local fields = { bulk = bulk * shear * stiffness, density = DENSITY }
    for name, value in pairs(law) do
      if name ~= "law" then fields[name] = scaled[name] and value * stiffness or value end
    end
    return cq.Material[law.law](fields)
  end
end

-- ---- the finger -----------------------------------------------------------------------------------------------------

local rest, duration = rise + hold, #levels * (rise + hold)
-- pressure at a time [kPa]: in turn to each level, in a time `rise`, then held
local function pressure(t)
  local k = math.min(#levels, math.floor(t / rest + 1e-6) + 1)
  local before = levels[k - 1] or 0
  return before + (levels[k] - before) * math.min(1, (t - (k - 1) * rest) / rise)
end

-- the scene of a finger of this law's material, and its experiment; explicit without an integrator
local function finger(law, integrator)
  local scene = require "scenes.soft_finger" { dim = dim, max = 1, damping = 20, precision = "float64",
    material = material_of(law) }
  scene.world.dt, scene.world.integrator = length, integrator
  if integrator then scene.world.substeps = 1 end
  return scene, cq.Experiment {
    world = cq.World(scene.world), steps = math.floor(duration / length + 0.5),
    controller = function(_, _, t) return cq.tensor { pressure(t) } end,
    objective = function(state) return state:center(scene.robot:group "tip")[2] end,
  }
end

-- Simulates a finger. A table: how much lower the tip is [mm] and the chambers' volume by the first, for each level;
-- least J, the solver's counts, seconds, experiment and scene.
local function bend(law, integrator)
  local scene, shot = finger(law, integrator)
  local out, start = { tip = {}, air = {}, shot = shot, scene = scene }, nil
  local began = os.clock()
  local roll = shot:rollout(shot.params, { on_step = function(state)
    start = start or state:center(scene.robot:group "tip")
    local k = state.time / rest
    if k < 0.5 or math.abs(k - math.floor(k + 0.5)) * rest > length / 2 then return end
    k = math.floor(k + 0.5)
    out.tip[k] = 1e3 * (start - state:center(scene.robot:group "tip"))[2]:item()
    out.air[k] = state:cavity_volume "air":sum():item() / scene.volume
    out.least = math.min(out.least or math.huge, -(-state:gather(scene.robot, "jacobian")):max():item())
  end })
  out.seconds, out.solver = os.clock() - began, roll.solver
  return out
end

local series = {}
-- prints a finger's numbers, and adds them to the curves
local function tell(name, out)
  local x, y, words = { 0 }, { 0 }, {}
  for k, level in ipairs(levels) do
    x[k + 1], y[k + 1], words[k] = level, out.tip[k], ("%5.1f (%.2f)"):format(out.tip[k], out.air[k])
  end
  series[#series + 1] = { name = name, x = x, y = y }
  print(("%-14s tip lower by [mm] (chambers) at %s kPa: %s; %.1f s"):format(name, table.concat(levels, ", "),
    table.concat(words, " "), out.seconds))
end

local found = {}
for k, name in ipairs(names) do
  found[k] = bend(laws[k], cq.Implicit {})
  tell(name, found[k])
end
local first = found[1]
print(("bulk modulus %.0f kPa, %g shear moduli: least J %.3f; %.1f Newton iterations and %.0f products in a step"):format(
  bulk * shear, bulk, first.least, first.solver.newton:mean():item(), first.solver.linear:mean():item()))
local off = 0
for k in ipairs(levels) do
  local row = { iteration = k, loss = first.tip[k], pressure = levels[k] }
  for i, name in ipairs { "mooney_rivlin", "yeoh", "ogden" } do
    row[name] = found[i].tip[k]
    off = math.max(off, math.abs(found[i].tip[k] / first.tip[k] - 1))
  end
  run:record(row)
end
print(("the three laws are at most %.1f %% apart"):format(100 * off))

if cq.option("explicit", true) then
  local out = bend(laws[1])
  tell("explicit", out)
  print(("%.2f s simulated in a second, %.2f by explicit steps: %.1f times quicker"):format(duration / first.seconds,
    duration / out.seconds, out.seconds / first.seconds))
end
cq.Plot { width = 1000, x_label = "pressure [kPa]", y_label = "tip lower by [mm]", series = series }:write(
  "soft_finger_curve.png")
local stills = {}
for k = 1, #levels do stills[k] = k * rest end
first.shot:render("soft_finger.png", {
  colour = { by = "von_mises", range = { 0, 60 }, unit = "kPa" }, stills = stills, layout = "apart",
  label = function(state) return ("%.0f kPa"):format(pressure(state.time)) end,
})
