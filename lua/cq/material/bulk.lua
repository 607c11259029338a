-- bulk: shear and bulk modulus of materials at rest, and a cap on their ratio.
local text = require "cq.base.text"

local bulk = {}

---The bulk modulus K = 2 G (1 + nu) / (3 (1 - 2 nu)), in the unit of the shear modulus; infinite at nu = 0.5.
---@param shear number
---@param poisson number
---@return number
function bulk.of_poisson(shear, poisson) return 2 * shear * (1 + poisson) / (3 * (1 - 2 * poisson)) end

---The shear modulus of a material at rest; nil for one without any. Only a law's own constants count in the stiffness
---at rest.
---@param material cq.Material
---@return number?
function bulk.shear(material)
  if material.shear then return material.shear end
  if material.young then return material.young / (2 * (1 + material.poisson)) end
  if material.c01 then return 2 * (material.c10 + material.c01) end
  if material.c10 then return 2 * material.c10 end
  local sum = 0
  for k = 1, 3 do
    if material["mu_" .. k] then sum = sum + material["mu_" .. k] * material["alpha_" .. k] / 2 end
  end
  return sum > 0 and sum or nil
end

---Caps the ratio of bulk to shear modulus, in place, and returns true. False for a material that has not both.
---@param material cq.Material
---@param ratio number
---@return boolean
function bulk.cap(material, ratio)
  local shear = bulk.shear(material)
  local own = shear and (material.bulk or material.poisson and bulk.of_poisson(shear, material.poisson))
  if not own then return false end
  if own <= ratio * shear then return true end
  if material.bulk then
    material.bulk = ratio * shear
  else
    material.poisson = (3 * ratio - 2) / (2 * (3 * ratio + 1))
    material.young = 2 * shear * (1 + material.poisson)
  end
  material.cap = { ratio = ratio, own = own / shear }
  return true
end

---A text on the cap of a material's bulk modulus and its effect on J, for where the material is printed; empty without
---a cap.
---@param material cq.Material
---@return string
function bulk.told(material)
  local cap = material.cap
  if not cap then return "" end
  return (", bulk modulus capped at %s of %s shear moduli: a pull of one shear modulus changes J by %s %%"):format(
    text.number(cap.ratio), ("%.3g"):format(cap.own), ("%.2g"):format(100 / (3 * cap.ratio)))
end

return bulk
