-- elastomer: the table of silicones, rubbers and gels of cq.Material.elastomer. Stresses in Pa, densities in kg/m^3.
--
-- Silicones: two terms of Yeoh, fitted here to pull-to-failure tests (ASTM D412, 450 mm/min, strain from the
-- crosshead) whose data are in the Soft Robotics Materials Database of L. Marechal et al., "Toward a Common Framework
-- and Database of Materials for Soft Robotics", Soft Robotics 8 (2021),
-- https://github.com/LucMarechal/Soft-Robotics-Materials-Database, folder Tensile-Tests-Data, the file of that name.
-- The fit is that of least squares of relative errors of the nominal stress, at the stretches 1.25, 1.5, 1.75, 2, 2.5
-- and 3. A third term would follow the tests more closely and lose its stability beyond them.
--
-- Rubber: the three terms that R. W. Ogden, Proc. R. Soc. London A 326 (1972), fitted to Treloar's tests of 1944 in
-- tension, biaxial tension and shear.
--
-- Densities are the specific gravities of Smooth-On's technical bulletins. Where none stands, none was found that
-- could be named.

---@class cq.Elastomer
---@field name string
---@field law string               a constructor of cq.Material
---@field constants table<string, number|number[]>   its fields
---@field density number?
---@field stretch number           up to which the constants follow the test
---@field deviation number?        largest relative error of the nominal stress from 1.25 to there

local table_of = {}

-- Adds a silicone to the table of elastomers: the constants c10, c20 of Yeoh's law [Pa], the fit's largest relative
-- error (`deviation`), the density [kg/m3], and the stretch up to which they were fitted, 3 unless given.
local function silicone(name, c10, c20, deviation, density, stretch)
  table_of[#table_of + 1] = { name = name, law = "yeoh", constants = { c10 = c10, c20 = c20 }, density = density,
    stretch = stretch or 3,
    deviation = deviation }
end

silicone("Ecoflex 00-10", 3510, 146, 0.06, 1040)
silicone("Ecoflex 00-30", 7530, 130, 0.08, 1070)
silicone("Ecoflex 00-50", 10400, 268, 0.05, 1070)
silicone("Dragon Skin FX Pro", 14400, 689, 0.06)
silicone("Dragon Skin 10", 22500, 2070, 0.07, 1070)
silicone("Dragon Skin 20", 63500, 5230, 0.11, 1080)
silicone("Dragon Skin 30", 94400, 5980, 0.06, 1080)
silicone("PlatSil Gel 10", 29000, 2280, 0.10)
silicone("Mold Star 16", 41900, 2580, 0.02)
silicone("Rebound 25", 50200, 3470, 0.04)
silicone("SORTA-Clear 40", 139000, 5420, 0.01)
silicone("RTV615", 160000, 18900, 0.03, nil, 2.5)

table_of[#table_of + 1] = {
  name = "Natural rubber", law = "ogden", constants = { mu = { 630000, 1200, -10000 }, alpha = { 1.3, 5, -2 } },
  stretch = 7,
}

return table_of
