-- material: a law and its constants, for all particles that are made of it.
--
--   cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 }
--   cq.Material.corotated   { shear = 4, bulk = 8, density = 1, incompressible = 2 }
--
-- There is a constructor for each law of the engine, and it takes the constants that the law has. Those of an isotropic
-- law may be given in several ways, which are the same material: young and poisson, or shear and bulk. Beside any law
-- may stand a viscosity, and beside a hyperelastic one Maxwell branches:
--
--   cq.Material.viscoelastic { base = cq.Material.neo_hookean { young = 10, poisson = 0.4 },
--   modulus = { 0.5 }, time = { 0.1 } }
local bulk = require "cq.material.bulk"
local elastic = require "cq.robot.other_names"
local elastomers = require "cq.material.elastomer"
local field = require "cq.base.field"
local is = require "cq.base.schema"
local made = require "cq.base.made"
local method = require "cq.base.method"
local text = require "cq.base.text"
local tables = require "cq.base.tables"
local C = require("cq.base.engine").C

---@class cq.Material
---@field law string              which constructor made it
---@field density number          mass per initial volume (area in 2D)
---@field incompressible integer  power p of the Bonet-Wood term (advanced-chainqueen eq. 14), 0: none
---@field kind integer            cq_material_kind
---@field elasticity integer      cq_elasticity, by which of its sets of constants it was given
---@field viscous 0|1             has it a viscosity beside its law?
---@field branches integer        Maxwell branches beside its law
---@field f_bar number   share of a step's dilatation that is the mean of its neighbours
---@field constants cq.FieldInfo[]   those that it has
---@field [string] number|number[]   the constants that it was given, by their names
local Material = { __name = "cq.Material" }
Material.__index = Material

-- The material in one line: law, constants and options.
function Material:__tostring()
  local parts = {}
  -- Adds a constant and its value to the text.
  local function add(name) parts[#parts + 1] = ("%s %s"):format(name, text.numbers(self[name])) end
  for _, constant in ipairs(self.constants) do
    if self[constant.name] ~= nil then add(constant.name) end
  end
  add "density"
  if self.incompressible > 0 then add "incompressible" end
  if self.f_bar > 0 then add "f_bar" end
  return ("cq.Material.%s { %s }%s"):format(self.law, table.concat(parts, ", "), bulk.told(self))
end

---The same material with a bulk modulus of at most `ratio` shear moduli at rest, 20 to 50 for silicones: theirs is
---thousands of shear moduli, and the number of explicit steps, and of conjugate gradients in implicit steps, grows with
---its root. The printed material tells the cost: how much a pull of one shear modulus changes the volume, 1 / (3
---ratio). The shear modulus stays, and so does a bulk modulus below the cap. Errors: a law without a bulk or shear
---modulus.
---
---  local soft = cq.Material.mooney_rivlin { c10 = 23028, c01 = 1190, bulk = 8.7e8 }:capped(20)
---@param ratio number   above 2/3
---@return cq.Material
function Material:capped(ratio)
  self:require_unchanged()
  if type(ratio) ~= "number" or not (ratio > 2 / 3) or ratio == math.huge then
    is.fail("material:capped: the ratio of bulk to shear modulus must be a number above 2/3; got %s",
      text.describe(ratio))
  end
  local out = setmetatable(tables.merged(self), Material)
  if bulk.shear(self) == 0 then
    is.fail("material:capped: this cq.Material.%s has a shear modulus of 0 at rest, of which no ratio can be taken; give "
      .. "it bulk = itself", self.law)
  end
  if not bulk.cap(out, ratio) then
    is.fail("material:capped: a cq.Material.%s has no ratio of bulk to shear modulus to cap", self.law)
  end
  return made.remember(out)
end

---@internal
---Raises an error if a field of the material was assigned after it was made.
function Material:require_unchanged()
  made.require(self, "cq.Material." .. self.law, "give it to the constructor, or give robot:with { %s = ... }")
end

---@internal
---The key by which the engine tells materials apart: everything but the values of constants.
---@return string
function Material:engine_key()
  return ("%d %d %d %d %d %.17g"):format(self.kind, self.elasticity, self.incompressible, self.viscous, self.branches,
    self.f_bar)
end

---@class cq.Material.def
---@field density? number
---@field viscosity? number        that of a fluid, or the damping of Kelvin and Voigt in a solid; it limits the step

---@class cq.Material.hyperelastic.def
---@field f_bar? number   against volumetric locking: the share, 0 to 1, of what a step changes the volume
---  by that is the mean over the cells around; 1 where bodies of a Poisson's ratio from 0.45 on bend; on the CPU
---  only

---Constants of materials as robot:with takes them.
---@class robot.constants.def
---@field young?                number|table|cq.Tensor   {n}
---@field poisson?              number|table|cq.Tensor   {n}
---@field shear?                number|table|cq.Tensor   {n}
---@field bulk?                 number|table|cq.Tensor   {n}
---@field c10?                  number|table|cq.Tensor   {n}
---@field c01?                  number|table|cq.Tensor   {n}
---@field c20?                  number|table|cq.Tensor   {n}
---@field c30?                  number|table|cq.Tensor   {n}
---@field mu_1?                 number|table|cq.Tensor   {n}
---@field mu_2?                 number|table|cq.Tensor   {n}
---@field mu_3?                 number|table|cq.Tensor   {n}
---@field alpha_1?              number|table|cq.Tensor   {n}
---@field alpha_2?              number|table|cq.Tensor   {n}
---@field alpha_3?              number|table|cq.Tensor   {n}
---@field k1?                   number|table|cq.Tensor   {n}
---@field k2?                   number|table|cq.Tensor   {n}
---@field fibre?                table|cq.Tensor          {n, dim}
---@field exponent?             number|table|cq.Tensor   {n}
---@field tension?              number|table|cq.Tensor   {n}
---@field viscosity?            number|table|cq.Tensor   {n}
---@field branch_modulus_1?     number|table|cq.Tensor   {n}
---@field relaxation_time_1?    number|table|cq.Tensor   {n}
---@field branch_modulus_2?     number|table|cq.Tensor   {n}
---@field relaxation_time_2?    number|table|cq.Tensor   {n}
---@field branch_modulus_3?     number|table|cq.Tensor   {n}
---@field relaxation_time_3?    number|table|cq.Tensor   {n}
---@field yield_stress?         number|table|cq.Tensor   {n}
---@field hardening?            number|table|cq.Tensor   {n}
---@field friction_angle?       number|table|cq.Tensor   {n}
---@field cohesion?             number|table|cq.Tensor   {n}
---@field snow_hardening?       number|table|cq.Tensor   {n}
---@field critical_compression? number|table|cq.Tensor   {n}
---@field critical_stretch?     number|table|cq.Tensor   {n}

---@class cq.Material.elastic.def : cq.Material.def
---@field young? number            with poisson
---@field poisson? number          with young; towards 0.5 the volume hardly changes, and steps must be small
---@field shear? number            with bulk
---@field bulk? number             with shear
---@field incompressible? 0|2|4|6|8   power p of the Bonet-Wood term that resists changes of volume (eq. 14), 0: none

---@class cq.MaterialModule
local material = { class = Material }

-- ---- which constants ------------------------------------------------------------------------------------------------

-- For each constant of a law, by its name, the number of the law's sets of constants (such as young and poisson, or
-- shear and bulk) that have it.
local function occurrences(law)
  local count = {}
  for _, choice in ipairs(law.choices) do
    for _, constant in ipairs(choice.constants) do count[constant.name] = (count[constant.name] or 0) + 1 end
  end
  return count
end

-- A list, for each set of constants of a law, of the constants that are not in every set: the user chooses between
-- them.
local function alternatives(law)
  local count, out = occurrences(law), {}
  for k, choice in ipairs(law.choices) do
    out[k] = {}
    for _, constant in ipairs(choice.constants) do
      if count[constant.name] < #law.choices then table.insert(out[k], constant) end
    end
  end
  return out
end

-- The one set of constants, an entry of law.choices, that was given completely. Errors: mixed or incomplete sets.
local function choose(what, law, given)
  if #law.choices == 1 then return law.choices[1] end
  local wanted, got, found = {}, {}, nil
  for k, set in ipairs(alternatives(law)) do
    local before = #got
    for _, constant in ipairs(set) do
      if given[constant.name] ~= nil then got[#got + 1] = constant.name end
    end
    if #got - before == #set then found = { choice = law.choices[k], count = #set } end
    wanted[k] = field.names(set)
  end
  if found and #got == found.count then return found.choice end
  is.fail("%s: give %s; got %s", what, table.concat(wanted, ", or "), #got > 0 and text.join(got) or "none of them")
end

-- The checkers, by name, of all fields that the constructor of a law takes.
local function checkers(law)
  local out = { density = field.checker(field.by_name.density, true),
    viscosity = field.checker(field.by_name.viscosity, true) }
  if law.incompressible then out.incompressible = is.one_of { 0, 2, 4, 6, 8, default = 0 } end
  if law.branches then out.f_bar = is.number { min = 0, max = 1, default = 0 } end
  local count = occurrences(law)
  for _, choice in ipairs(law.choices) do
    for _, constant in ipairs(choice.constants) do
      out[constant.name] = field.checker(constant, count[constant.name] < #law.choices)
    end
  end
  return out
end

local TERMS = 3      -- of Ogden

-- Puts the terms of Ogden that are given as lists mu and alpha into mu_1, alpha_1 and so on, in place. given: the
-- checked fields; fields: the user's, without defaults; what: the constructor, for errors. Errors: half a term; lists
-- beside single terms.
local function spread_terms(what, given, fields)
  local mu, alpha = given.mu, given.alpha
  local single, half = {}, nil     -- terms given by themselves; what lacks its other half
  for k = 1, TERMS do
    for _, pair in ipairs { { "mu_" .. k, "alpha_" .. k }, { "alpha_" .. k, "mu_" .. k } } do
      local name, other = pair[1], pair[2]
      if fields[name] ~= nil then
        single[#single + 1] = name
        if fields[other] == nil then half = half or pair end
      end
    end
  end
  if not mu and not alpha then
    if not (given.mu_1 and given.alpha_1) then
      is.fail("%s: give mu and alpha, a list of numbers each, or mu_1 and alpha_1; got %s", what,
        #single > 0 and text.join(single) or "none of them")
    elseif half then
      is.fail("%s: got %s without %s; each term needs both", what, half[1], half[2])
    end
    return
  elseif #single > 0 then
    is.fail("%s: got %s beside a list; give mu and alpha as lists, or each term by itself", what, text.join(single))
  elseif not (mu and alpha) or #mu ~= #alpha then
    is.fail("%s: mu has %s and alpha %d; each term needs both", what, text.count(mu and #mu or 0, "number"), alpha
      and #alpha or 0)
  elseif #mu < 1 or #mu > TERMS then
    is.fail("%s: mu and alpha have %s; the law has one to %d terms", what, text.count(#mu, "number"), TERMS)
  end
  for k = 1, #mu do given["mu_" .. k], given["alpha_" .. k] = mu[k], alpha[k] end
  given.mu, given.alpha = nil, nil
end

-- The constructor of a law of engine/lists.h, a function of its fields. lambda = E nu / ((1 + nu)(1 - 2 nu)) has poles
-- at nu = -1 and 0.5.
local function constructor(law)
  local what = "cq.Material." .. law.name
  local known, spec = checkers(law), nil
  if law.name == "ogden" then
    known.mu, known.alpha = is.list(is.number(), { optional = true }), is.list(is.number(), { optional = true })
    known.mu_1, known.alpha_1 = field.checker(field.by_name.mu_1, true), field.checker(field.by_name.alpha_1, true)
  end
  spec = is.define(what, known, nil, function(key, given) return elastic.hint(key, given, spec.fields) end)
  return function(fields)
    local self = spec(fields)
    if law.name == "ogden" then spread_terms(what, self, fields) end
    local choice = choose(what, law, self)
    self.law, self.kind, self.elasticity = law.name, law.kind, choice.elasticity
    self.incompressible, self.viscous, self.branches = self.incompressible or 0, self.viscosity and 1 or 0, 0
    self.f_bar = self.f_bar or 0
    self.constants = field.constants(law.kind, choice.elasticity, self)
    return made.remember(setmetatable(self, Material), nil, known)
  end
end

-- ---- the laws -------------------------------------------------------------------------------------------------------
-- What is said of a law stands above a line with its name. One that has no such line yet can be
-- used, but help does not show it.

local laws = {}
for _, law in ipairs(field.laws) do
  laws[law.name] = constructor(law)
  material[law.name] = laws[law.name]
end

---@class cq.Material.neo_hookean.def : cq.Material.elastic.def, cq.Material.hyperelastic.def

---Neo-Hookean: P = mu (F - F^-T) + lambda log J F^-T (advanced-chainqueen eq. 13). Stiffens without bound as J -> 0.
---@type fun(fields: cq.Material.neo_hookean.def): cq.Material
material.neo_hookean = laws.neo_hookean

---@class cq.Material.corotated.def : cq.Material.elastic.def, cq.Material.hyperelastic.def

---Fixed corotated: P = 2 mu (F - R) + lambda (J - 1) J F^-T (eq. 12).
---@type fun(fields: cq.Material.corotated.def): cq.Material
material.corotated = laws.corotated

---@class cq.Material.linear.def : cq.Material.elastic.def

---Small-strain linear elasticity: for small rotations only, a turning body grows.
---@type fun(fields: cq.Material.linear.def): cq.Material
material.linear = laws.linear

---@class cq.Material.saint_venant_kirchhoff.def : cq.Material.elastic.def, cq.Material.hyperelastic.def

---Saint Venant-Kirchhoff: P = F (2 mu E + lambda tr(E) I), linear in the Green strain E: large rotations and small
---strains. It gives way below a stretch of 0.58.
---@type fun(fields: cq.Material.saint_venant_kirchhoff.def): cq.Material
material.saint_venant_kirchhoff = laws.saint_venant_kirchhoff

---@class cq.Material.mooney_rivlin.def : cq.Material.def, cq.Material.hyperelastic.def
---@field c10 number               2 (c10 + c01) is the shear modulus at rest
---@field c01 number
---@field bulk number

---Mooney-Rivlin: C10 (I1 - 3) + C01 (I2 - 3) and a bulk modulus: rubber up to stretches of about 2.
---@type fun(fields: cq.Material.mooney_rivlin.def): cq.Material
material.mooney_rivlin = laws.mooney_rivlin

---@class cq.Material.yeoh.def : cq.Material.def, cq.Material.hyperelastic.def
---@field c10 number               2 c10 is the shear modulus at rest
---@field c20? number
---@field c30? number
---@field bulk number

---Yeoh (1993): the sum of C_k0 (I1 - 3)^k, k = 1, 2, 3, and a bulk modulus: rubber and silicone up to large stretches.
---@type fun(fields: cq.Material.yeoh.def): cq.Material
material.yeoh = laws.yeoh

---@class cq.Material.ogden.def : cq.Material.def, cq.Material.hyperelastic.def
---@field mu? number[]             of one to three terms, with alpha; the sum of mu_k alpha_k / 2 is the shear modulus at rest
---@field alpha? number[]          exponents of the terms
---@field mu_1? number             the first term by itself, in the place of lists
---@field alpha_1? number
---@field mu_2? number
---@field alpha_2? number
---@field mu_3? number
---@field alpha_3? number
---@field bulk number

---Ogden (1972): the sum of mu_k / alpha_k (l_1^alpha_k + l_2^alpha_k + l_3^alpha_k - 3) in isochoric stretches, up to
---three terms, and a bulk modulus.
---@type fun(fields: cq.Material.ogden.def): cq.Material
material.ogden = laws.ogden

---@class cq.Material.elastomer.def
---@field name string              of the table
---@field poisson? number          gives the bulk modulus, 0.49 unless given: K = 2 mu (1 + nu) / (3 (1 - 2 nu)), mu at rest
---@field bulk? number             in its place
---@field bulk_cap? number         the bulk modulus is at most so many shear moduli, as by material:capped
---@field density? number          in the place of the table's
---@field viscosity? number        that of a fluid, or the damping of Kelvin and Voigt in a solid; it limits the step
---@field f_bar? number   as in the laws: against volumetric locking

local elastomer = is.define("cq.Material.elastomer", {
  name = is.string(), poisson = field.checker(field.by_name.poisson, true),
  bulk = field.checker(field.by_name.bulk, true),
  bulk_cap = is.number { above = 2 / 3, optional = true },
  density = is.number { above = 0, optional = true }, viscosity = field.checker(field.by_name.viscosity, true),
  f_bar = is.number { min = 0, max = 1, default = 0 },
})

-- A trade name without capitals, spaces and dashes, by which names are compared.
local function plain(name) return (name:lower():gsub("[%s%-_]", "")) end

-- The entry of a silicone in the table of elastomers by its trade name. Errors: no such name.
local function find_elastomer(name)
  local names = {}
  for k, entry in ipairs(elastomers) do
    if plain(entry.name) == plain(name) then return entry end
    names[k] = entry.name
  end
  is.fail("cq.Material.elastomer: no elastomer \"%s\"%s; the table has %s", name, text.suggestion(name, names),
    text.join(names))
end

---A silicone, rubber or gel by its name, with constants in Pa and density in kg/m^3 (lua/cq/material/elastomer.lua
---holds the sources): cq.Material.elastomer "Dragon Skin 30", or a table with the name. Silicones hardly change their
---volume: nu is next to 0.5, and steps would be next to zero. With the 0.49 that is taken here a pull of 1 % changes
---the volume by 0.02 %, and sound is 7 times as fast as shear waves. In 2D the density is that of a plate 1 m thick.
---The constants follow tests up to the stretch that is told; where no density stands it must be given.
---
---  Ecoflex 00-10       yeoh   c10   3510   c20   146   1040 kg/m^3  to 3
---  Ecoflex 00-30       yeoh   c10   7530   c20   130   1070 kg/m^3  to 3
---  Ecoflex 00-50       yeoh   c10  10400   c20   268   1070 kg/m^3  to 3
---  Dragon Skin FX Pro  yeoh   c10  14400   c20   689   -            to 3
---  Dragon Skin 10      yeoh   c10  22500   c20  2070   1070 kg/m^3  to 3
---  Dragon Skin 20      yeoh   c10  63500   c20  5230   1080 kg/m^3  to 3
---  Dragon Skin 30      yeoh   c10  94400   c20  5980   1080 kg/m^3  to 3
---  PlatSil Gel 10      yeoh   c10  29000   c20  2280   -            to 3
---  Mold Star 16        yeoh   c10  41900   c20  2580   -            to 3
---  Rebound 25          yeoh   c10  50200   c20  3470   -            to 3
---  SORTA-Clear 40      yeoh   c10 139000   c20  5420   -            to 3
---  RTV615              yeoh   c10 160000   c20 18900   -            to 2.5
---  Natural rubber      ogden  mu 630000, 1200, -10000   alpha 1.3, 5, -2   -   to 7
---@type fun(fields: string|cq.Material.elastomer.def): cq.Material
function material.elastomer(fields)
  local given = elastomer(type(fields) == "string" and { name = fields } or fields)
  local entry = find_elastomer(given.name)
  if given.poisson and given.bulk then
    is.fail("cq.Material.elastomer: give poisson, or bulk; got both")
  elseif not (given.density or entry.density) then
    is.fail("cq.Material.elastomer: the table has no density of %s; give it, as in density = 1070", entry.name)
  end
  local nu = given.poisson or 0.49
  local of = { bulk = given.bulk or 1, density = given.density or entry.density, viscosity = given.viscosity,
    f_bar = given.f_bar }
  for name, value in pairs(entry.constants) do of[name] = value end
  local self = laws[entry.law](of)
  if not given.bulk then
    of.bulk = bulk.of_poisson(bulk.shear(self), nu)
    self = laws[entry.law](of)
  end
  return given.bulk_cap and self:capped(given.bulk_cap) or self
end

---@class cq.Material.transversely_isotropic.def : cq.Material.def, cq.Material.hyperelastic.def
---@field shear number             of the matrix
---@field bulk number
---@field k1 number
---@field k2? number
---@field fibre number[]

---Neo-Hookean with one family of fibres that only pull (Holzapfel, Gasser and Ogden 2000): k1/(2 k2) (exp(k2 <I4 -
---1>^2) - 1), I4 the square of the fibre's stretch.
---@type fun(fields: cq.Material.transversely_isotropic.def): cq.Material
material.transversely_isotropic = laws.transversely_isotropic

---@class cq.Material.fluid.def : cq.Material.def
---@field bulk number
---@field exponent? number        7 is water's; 1 makes the pressure linear in the density
---@field tension? number         at which it cavitates; more than bulk / exponent: never

---Weakly compressible fluid: p = K / gamma (J^-gamma - 1), by Tait; it keeps nothing of F but the volume, and
---cavitates. Choose the bulk modulus for a speed of sound sqrt(K / density) of ten times the fastest flow.
---@type fun(fields: cq.Material.fluid.def): cq.Material
material.fluid = laws.fluid

---@class cq.Material.von_mises.def : cq.Material.elastic.def
---@field yield_stress number
---@field hardening? number

---Von Mises plasticity with linear hardening, in logarithmic strain (Simo 1992): metal, clay. In 2D flow in the plane,
---which yields at a difference of stresses of 2 / sqrt(3) times the yield stress.
---@type fun(fields: cq.Material.von_mises.def): cq.Material
material.von_mises = laws.von_mises

---@class cq.Material.drucker_prager.def : cq.Material.def
---@field young? number            with poisson
---@field poisson? number          with young
---@field shear? number            with bulk
---@field bulk? number             with shear
---@field friction_angle number    math.rad(30)
---@field cohesion? number         dry sand has none

---Drucker-Prager plasticity (Klar et al. 2016): sand. Grains that part bear nothing until their volume is gone
---again. In 2D Mohr and Coulomb's law in the plane. It does not dilate as it flows, so that its slopes rest up to
---tan(slope) = sin(friction_angle).
---@type fun(fields: cq.Material.drucker_prager.def): cq.Material
material.drucker_prager = laws.drucker_prager

---@class cq.Material.snow.def : cq.Material.def
---@field young? number            with poisson
---@field poisson? number          with young
---@field shear? number            with bulk
---@field bulk? number             with shear
---@field snow_hardening? number
---@field critical_compression? number
---@field critical_stretch? number

---Snow (Stomakhin et al. 2013): fixed corotated, flows outside of [1 - critical_compression, 1 + critical_stretch], and
---hardens as it is compacted, exp(snow_hardening (1 - J_P)) times: leave room in the Courant number.
---@type fun(fields: cq.Material.snow.def): cq.Material
material.snow = laws.snow

-- ---- what stands beside a law ---------------------------------------------------------------------------------------

---@class cq.Material.viscoelastic.def
---@field base cq.Material         made of a hyperelastic law; what it is when all has relaxed
---@field modulus number[]         of each Maxwell branch relative to the base's shear modulus: beta, one to three of them
---@field time number[]            relaxation time of each branch

local viscoelastic = is.define("cq.Material.viscoelastic", {
  base = is.instance "cq.Material",
  modulus = is.list(is.number { min = 0 }, { min = 1 }),
  time = is.list(is.number { above = 0 }, { min = 1 }),
})

-- The names of laws beside which Maxwell branches may stand, joined for a sentence.
local function hyperelastic()
  local names = {}
  for _, law in ipairs(field.laws) do
    if law.branches then names[#names + 1] = law.name end
  end
  return text.join(names)
end

---Viscoelastic: Maxwell branches beside a hyperelastic material (Simo 1987). Fast motion meets a shear modulus of (1 +
---sum of modulus) times the base's; each branch relaxes as modulus exp(-t / time); volume changes stay elastic; in
---2D those of the plane's area, so that branches are not of plane strain. Its constants are those of the base, and
---branch_modulus_1, relaxation_time_1 and so on. A viscosity is the base's. A body that begins with a deformation is
---taken for deformed in its first step: its stress and energy have the branches' share from then on, not at the start.
---@type fun(fields: cq.Material.viscoelastic.def): cq.Material
function material.viscoelastic(fields)
  local given = viscoelastic(fields)
  local base, count, most = given.base, #given.modulus, tonumber(C.CQ_BRANCHES_MAX)
  if count > most then
    is.fail("cq.Material.viscoelastic: modulus has %s; a material has at most %d Maxwell branches",
      text.count(count, "number"), most)
  elseif count ~= #given.time then
    is.fail("cq.Material.viscoelastic: modulus has %s and time %d; each branch needs both", text.count(count, "number"),
      #given.time)
  elseif base.branches > 0 or not field.laws[base.kind + 1].branches then
    is.fail("cq.Material.viscoelastic: base is a cq.Material.%s; Maxwell branches stand beside %s alone", base.law,
      hyperelastic())
  elseif base.f_bar > 0 then
    is.fail("cq.Material.viscoelastic: base has a f_bar of %s, which Maxwell branches cannot stand beside",
      text.number(base.f_bar))
  end
  local self = setmetatable(tables.merged(base), Material)
  self.law, self.branches = "viscoelastic", count
  for k = 1, count do
    self["branch_modulus_" .. k], self["relaxation_time_" .. k] = given.modulus[k], given.time[k]
  end
  self.constants = field.constants(self.kind, self.elasticity, self)
  return made.remember(self)
end

method.guard(Material, "material", { "capped" })

return material
