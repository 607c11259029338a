-- material: from filtered variables to densities between 0 and 1, and from these to what a particle has of mass,
-- stiffness and actuation (Yuhn et al., eqs 11 to 13, 16, 19).
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local material = {}

---@class cq.Topology.Projection
---@field sharpness number
---@field threshold number
local Projection = { __name = "cq.Topology.Projection" }
Projection.__index = Projection

local projection_spec = is.define("cq.Topology.projection", {
  sharpness = is.number { above = 0 }, threshold = is.number { above = -1, below = 1, default = 0 },
})

---@class cq.Topology.projection.def
---@field sharpness number     of the step; 4 leaves a slope all over, 30 next to none
---@field threshold? number    where the step is: above 0 the body is thinner (eroded), below 0 thicker (dilated)

---A projection, which is called with a tensor: a smoothed step from [-1, 1] to [0, 1]: (tanh(b (x - t)) + tanh(b (1 +
---t))) / (tanh(b (1 - t)) + tanh(b (1 + t))); eq. 16 for t = 0.
---@param fields cq.Topology.projection.def
---@return cq.Topology.Projection
function material.projection(fields) return setmetatable(projection_spec(fields), Projection) end

-- tanh of a number, with the same digits as that of tensors.
local function tanh(x) return T.tensor(x):tanh():item() end

---The projected values, in the shape of x.
---@param x cq.Tensor
---@return cq.Tensor
function Projection:__call(x)
  local b, t = self.sharpness, self.threshold
  local low, high = tanh(b * (1 + t)), tanh(b * (1 - t))
  return (((T.as_tensor(x) - t) * b):tanh() + low) / (low + high)
end

-- The projection in one line: sharpness and threshold.
function Projection:__tostring()
  return ("cq.Topology.projection { sharpness %s, threshold %s }"):format(text.number(self.sharpness),
    text.number(self.threshold))
end

---@class cq.Topology.Interpolation
---@field min_density number
---@field exponent number
local Interpolation = { __name = "cq.Topology.Interpolation" }
Interpolation.__index = Interpolation

local interpolation_spec = is.define("cq.Topology.interpolation", {
  min_density = is.number { min = 0, below = 1, default = 1e-8 }, exponent = is.number { min = 1, default = 1 },
}, nil, is.renamed { void = "min_density", power = "exponent" })

---@class cq.Topology.interpolation.def
---@field min_density? number   what is left where the density is 0, as a share of the solid
---@field exponent? number      above 1, what is between void and solid does less than its share (SIMP)

---An interpolation, which is called with densities and gives shares of the solid's value: (1 - min_density)
---density^exponent + min_density (eqs 11, 12, 19). An exponent is 1 or more: with less the slope at void is infinite.
---@param fields? cq.Topology.interpolation.def
---@return cq.Topology.Interpolation
function material.interpolation(fields) return setmetatable(interpolation_spec(fields or {}), Interpolation) end

---The shares of the solid's value, in the shape of the density.
---@param density cq.Tensor
---@return cq.Tensor
function Interpolation:__call(density)
  density = T.as_tensor(density)
  -- a void that rounding made a little less than nothing has no broken exponent; that of 0 has the same slope, 0
  if self.exponent % 1 ~= 0 then density = density:clamp(0) end
  if self.exponent ~= 1 then density = density:pow(self.exponent) end
  return density * (1 - self.min_density) + self.min_density
end

-- The interpolation in one line: its density of void and exponent.
function Interpolation:__tostring()
  return ("cq.Topology.interpolation { min_density %s, exponent %s }"):format(text.number(self.min_density),
    text.number(self.exponent))
end

return material
