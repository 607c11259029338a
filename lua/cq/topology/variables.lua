-- variables: which values of a design's variables have a meaning, and sentences about those that have none.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local variables = {}

local SLACK = 0.1            -- beyond [-1, 1], for differences at a bound: cq.check_gradient steps as far

-- Raises the error of a variable outside of [-1, 1]. what: "least" or "largest".
local function fail(name, what, value)
  is.fail("design: %s must be in [-1, 1] everywhere, the %s is %s", name, what, text.number(value))
end

---Raises an error if variables are not finite, or if density, sign or magnitude lie outside of [-1, 1] by more than
---SLACK.
---@param params table       as design.params
function variables.check(params)
  for _, name in ipairs { "density", "layout", "sign", "magnitude" } do
    local own = params[name]:detach()
    if not own:finite() then is.fail("design: %s must be finite everywhere", name) end
    if name ~= "layout" then
      local least, most = own:min():item(), own:max():item()
      if least < -1 - SLACK then fail(name, "least", least) end
      if most > 1 + SLACK then fail(name, "largest", most) end
    end
  end
end

---Raises an error if the mass or stiffness of a particle is not above 0, since its density is a little below -1, which
---variables.check lets pass.
---@param params table       as design.params
---@param share cq.Tensor    of mass or stiffness that each particle has
function variables.check_share(params, share)
  if not (share:detach():min():item() > 0) then fail("density", "least", params.density:detach():min():item()) end
end

return variables
