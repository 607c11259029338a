-- material: elastic constants and the law that uses them.
--
--   cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 }
--   cq.Material.corotated   { young = 10, poisson = 0.3, density = 1, incompressible = 2 }
local elastic = require "cq.elastic"
local is = require "cq.schema"
local text = require "cq.text"

---@class cq.Material
---@field law "neo_hookean"|"corotated"|"linear"   which constructor made it
---@field young number            Young's modulus E [stress]
---@field poisson number          Poisson's ratio nu [-]
---@field density number          mass per initial volume (area in 2D)
---@field incompressible integer  power p of the Bonet-Wood term (advanced-chainqueen eq. 14), 0: none
local Material = { __name = "cq.Material" }
Material.__index = Material

function Material:__tostring()
  local extra = self.incompressible > 0 and (", incompressible %d"):format(self.incompressible) or ""
  return ("cq.Material.%s { young %s, poisson %s, density %s%s }"):format(
    self.law, text.number(self.young), text.number(self.poisson), text.number(self.density), extra)
end

---@class cq.Material.def
---@field young number             Young's modulus E [stress]
---@field poisson number           Poisson's ratio nu [-]; towards 0.5 the material hardly changes its volume, and needs small steps
---@field density? number          mass per initial volume, area in 2D
---@field incompressible? 0|2|4|6|8   power p of the Bonet-Wood term that resists changes of volume (eq. 14), 0: none

---@class cq.MaterialModule
local material = { class = Material }

-- lambda = E nu / ((1 + nu)(1 - 2 nu)) has poles at nu = -1 and 0.5; mu = E / (2 (1 + nu))
local function law(name)
  local spec = is.define("cq.Material." .. name, {
    young = is.number { above = 0 },
    poisson = is.number { above = -1, below = 0.5 },
    density = is.number { above = 0, default = 1 },
    incompressible = is.one_of { 0, 2, 4, 6, 8, default = 0 },
  }, nil, elastic.hint)
  return function(fields)
    local self = spec(fields)
    self.law = name
    return setmetatable(self, Material)
  end
end

---Neo-Hookean: P = mu (F - F^-T) + lambda log J F^-T (advanced-chainqueen eq. 13). Stiffens without bound as J -> 0.
---@type fun(fields: cq.Material.def): cq.Material
material.neo_hookean = law "neo_hookean"

---Fixed corotated: P = 2 mu (F - R) + lambda (J - 1) J F^-T (eq. 12).
---@type fun(fields: cq.Material.def): cq.Material
material.corotated = law "corotated"

---Small-strain linear elasticity: for small rotations only, a turning body grows.
---@type fun(fields: cq.Material.def): cq.Material
material.linear = law "linear"

return material
