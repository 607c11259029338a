-- stretch: nominal stress of each elastic law in one homogeneous deformation, from its closed form. Laws whose free
-- faces have a closed form at any bulk modulus are pulled; the others are sheared. Pressure is that of a swollen cube.
local cq = require "cq"
local stretch = require "scenes.stretch"

local function shear_of(m) return m.shear or m.young / (2 * (1 + m.poisson)) end
local function lame(m) return m.young * m.poisson / ((1 + m.poisson) * (1 - 2 * m.poisson)) end

-- P_11 of F = l I, from the energy of each law in engine/physics/EQUATIONS.md
local swollen = {
  linear = function(l, m) return (3 * lame(m) + 2 * shear_of(m)) * (l - 1) end,
  saint_venant_kirchhoff = function(l, m) return (3 * lame(m) + 2 * shear_of(m)) * l * (l ^ 2 - 1) / 2 end,
  neo_hookean = function(l, m) return shear_of(m) * (l - 1 / l) + 3 * lame(m) * math.log(l) / l end,
  corotated = function(l, m) return 2 * shear_of(m) * (l - 1) + lame(m) * (l ^ 3 - 1) * l ^ 2 end,
}
-- J U' = K/2 (J^2 - 1) of the isochoric laws
local function isochoric(l, m) return m.bulk / 2 * (l ^ 6 - 1) / l end
for _, law in ipairs { "mooney_rivlin", "yeoh", "ogden" } do swollen[law] = isochoric end

local small = { young = 10, poisson = 0.3 }
local materials = {
  cq.Material.linear(small), cq.Material.saint_venant_kirchhoff(small), cq.Material.neo_hookean(small),
  cq.Material.corotated(small), cq.Material.mooney_rivlin { c10 = 3, c01 = 1, bulk = 20 },
  cq.Material.yeoh { c10 = 2, c20 = -0.1, c30 = 0.05, bulk = 100 },
  cq.Material.ogden { mu = { 3, 0.2, -0.5 }, alpha = { 1.3, 5, -2 }, bulk = 50 },
  cq.Material.transversely_isotropic { shear = 3, bulk = 100, k1 = 1, k2 = 0.1, fibre = { 2, 0, 0 } },
}
local exact_pull = { linear = true, saint_venant_kirchhoff = true }

return {
  summary = "stress of each elastic law, one particle",
  source = "Rivlin 1948 and Ogden 1972 for rubber; the energy of each law, engine/physics/EQUATIONS.md",
  quick = true,
  run = function(row)
    local function add(material, mode, amount, exact)
      row {
        quantity = ("%s, %s of %g"):format(material.law, mode, amount), exact = exact, promise = 1e-10,
        ours = { stretch.measure(material, mode, { amount })[1] }, refined = { 1 }, by = "particle",
      }
    end
    for _, material in ipairs(materials) do
      if exact_pull[material.law] then
        add(material, "uniaxial", 1.3, stretch.closed_form(material, "uniaxial", 1.3))
      end
      add(material, "shear", 1.5, stretch.closed_form(material, "shear", 1.5))
      if swollen[material.law] then add(material, "pressure", 1.1, swollen[material.law](1.1, material)) end
    end
  end,
}
