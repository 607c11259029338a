-- other_names: other names of material constants and robot values, in other programs or earlier versions.
local text = require "cq.base.text"

local elastic = {}

local other_names = {
  E = "young", youngs_modulus = "young", nu = "poisson", poissons_ratio = "poisson", rho = "density", G = "shear",
  shear_modulus = "shear",
  K = "bulk", kappa = "bulk", bulk_modulus = "bulk", actuator_weights = "actuation_weight",
}

---A hint for a field name of another program or an earlier version, such as E or mu: the name that it has here, for
---Lame's constants also the values; nil: an unknown name, or one for a field that is not allowed.
---@param key string
---@param given table         the fields: of Lame's constants, both say more
---@param known table         names that are allowed, as keys
---@return string?
function elastic.hint(key, given, known)
  local name = other_names[key]
  if name then return known[name] and ("its name is %s here"):format(name) or nil end
  if key ~= "mu" and key ~= "lambda" or not known.young then return nil end
  local mu, lambda = given.mu, given.lambda
  local law = "Lame's constants are young = mu (3 lambda + 2 mu) / (lambda + mu) and poisson = lambda / (2 (lambda + mu))"
  if type(mu) ~= "number" or type(lambda) ~= "number" or lambda + mu == 0 then return law end
  return ("%s: young = %s, poisson = %s"):format(law, text.number(mu * (3 * lambda + 2 * mu) / (lambda + mu)),
    text.number(lambda / (2 * (lambda + mu))))
end

return elastic
