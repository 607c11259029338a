-- discreteness: distance of a design from solid or void, from one signal or none for each particle, and from whole
-- pulses or none (Yuhn et al., eqs 22, 23, 27, 28), as constraints of an experiment.
local is = require "cq.base.schema"
local bound = require "cq.topology.bound"

local discreteness = {}

---Each measure of a design that is mapped, 0 where it is binary; and the most that it can be.
---@type table<string, { of: fun(map: table, params: table): cq.Tensor, most: fun(design: cq.Topology): number }>
discreteness.measures = {
  material = { of = function(map) return (map.smooth.density * (1 - map.smooth.density)):mean() end,
    -- The largest value, 1/4, at densities of 1/2.
    most = function() return 0.25 end },
  layout = {
    of = function(map) return 1 - map.smooth.shares:square():sum() / map.shares:size(2) end,
    most = function(design) return design.signals / (design.signals + 1) end,
  },
  sign = { of = function(_, params) return 1 - params.sign:square():mean() end, most = function() return 1 end },
  magnitude = { of = function(_, params) return 1 - params.magnitude:square():mean() end,
    most = function() return 1 end },
}
discreteness.names = { "material", "layout", "sign", "magnitude" }

---Constraints of design:discreteness, one for each of material, layout and pulses (two) that `def` bounds, by a share
---of its largest value. Errors: none is bounded.
---@param design cq.Topology
---@param def design.discreteness.def
---@return table[]
function discreteness.constraints(design, def)
  local out = {}
  local wanted = { material = def.material, layout = def.layout, sign = def.pulses, magnitude = def.pulses }
  for _, name in ipairs(discreteness.names) do
    local measure = discreteness.measures[name]
    if wanted[name] then out[#out + 1] = bound(design, name, wanted[name] * measure.most(design), measure.of) end
  end
  if #out == 0 then
    is.fail("design:discreteness: needs one of material, layout and pulses, each a share of the most that it can be, got none")
  end
  return out
end

return discreteness
