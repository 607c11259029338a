-- material: a law and its constants, for all particles that are made of it.
--
--   cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 }
--   cq.Material.corotated   { shear = 4, bulk = 8, density = 1, incompressible = 2 }
--
-- There is a constructor for each law of the engine, and it takes the constants that the law has. Those of an isotropic law
-- may be given in several ways, which are the same material: young and poisson, or shear and bulk.
local elastic = require "cq.elastic"
local field = require "cq.field"
local is = require "cq.schema"
local text = require "cq.text"

---@class cq.Material
---@field law string              which constructor made it
---@field density number          mass per initial volume (area in 2D)
---@field incompressible integer  power p of the Bonet-Wood term (advanced-chainqueen eq. 14), 0: none
---@field kind integer            cq_material_kind
---@field elasticity integer      cq_elasticity, by which of its sets of constants it was given
---@field constants cq.FieldInfo[]   those that it has
---@field [string] number|number[]   the constants that it was given, by their names
local Material = { __name = "cq.Material" }
Material.__index = Material

-- a number, or the numbers of a vector or matrix
local function value_text(value)
  if type(value) == "number" then return text.number(value) end
  local parts = {}
  for k, part in ipairs(value) do parts[k] = value_text(part) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

function Material:__tostring()
  local parts = {}
  local function add(name) parts[#parts + 1] = ("%s %s"):format(name, value_text(self[name])) end
  for _, constant in ipairs(self.constants) do
    if self[constant.name] ~= nil then add(constant.name) end
  end
  add "density"
  if self.incompressible > 0 then add "incompressible" end
  return ("cq.Material.%s { %s }"):format(self.law, table.concat(parts, ", "))
end

---@class cq.Material.def
---@field density? number

---@class cq.Material.elastic.def : cq.Material.def
---@field young? number            with poisson
---@field poisson? number          with young; towards 0.5 the volume hardly changes, and steps must be small
---@field shear? number            with bulk
---@field bulk? number             with shear
---@field incompressible? 0|2|4|6|8   power p of the Bonet-Wood term that resists changes of volume (eq. 14), 0: none

---@class cq.MaterialModule
local material = { class = Material }

-- ---- which constants ------------------------------------------------------------------------------------------------

-- constants that are not in every set of a law
local function alternatives(law)
  local count, out = {}, {}
  for _, choice in ipairs(law.choices) do
    for _, constant in ipairs(choice.constants) do count[constant.name] = (count[constant.name] or 0) + 1 end
  end
  for k, choice in ipairs(law.choices) do
    out[k] = {}
    for _, constant in ipairs(choice.constants) do
      if count[constant.name] < #law.choices then table.insert(out[k], constant) end
    end
  end
  return out
end

-- the set of constants that was given, all of it and nothing of another one
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

-- a checker for every field that the constructor of a law takes
local function checkers(law)
  local out = { density = field.checker(field.by_name.density, true) }
  if law.lame then out.incompressible = is.one_of { 0, 2, 4, 6, 8, default = 0 } end
  for _, choice in ipairs(law.choices) do
    for _, constant in ipairs(choice.constants) do out[constant.name] = field.checker(constant, #law.choices > 1) end
  end
  return out
end

-- The constructor of a law of engine/lists.h. lambda = E nu / ((1 + nu)(1 - 2 nu)) has poles at nu = -1 and 0.5.
local function constructor(law)
  local what = "cq.Material." .. law.name
  local spec
  spec = is.define(what, checkers(law), nil, function(key, given) return elastic.hint(key, given, spec.fields) end)
  return function(fields)
    local self = spec(fields)
    local choice = choose(what, law, self)
    self.law, self.kind, self.elasticity, self.constants = law.name, law.kind, choice.elasticity, choice.constants
    self.incompressible = self.incompressible or 0
    return setmetatable(self, Material)
  end
end

-- ---- the laws -------------------------------------------------------------------------------------------------------
-- What is said of a law stands above a line with its name. One that has no such line yet can be used, but help does not show it.

local laws = {}
for _, law in ipairs(field.laws) do
  laws[law.name] = constructor(law)
  material[law.name] = laws[law.name]
end

---@class cq.Material.neo_hookean.def : cq.Material.elastic.def

---Neo-Hookean: P = mu (F - F^-T) + lambda log J F^-T (advanced-chainqueen eq. 13). Stiffens without bound as J -> 0.
---@type fun(fields: cq.Material.neo_hookean.def): cq.Material
material.neo_hookean = laws.neo_hookean

---@class cq.Material.corotated.def : cq.Material.elastic.def

---Fixed corotated: P = 2 mu (F - R) + lambda (J - 1) J F^-T (eq. 12).
---@type fun(fields: cq.Material.corotated.def): cq.Material
material.corotated = laws.corotated

---@class cq.Material.linear.def : cq.Material.elastic.def

---Small-strain linear elasticity: for small rotations only, a turning body grows.
---@type fun(fields: cq.Material.linear.def): cq.Material
material.linear = laws.linear

return material
