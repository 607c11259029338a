-- length_scale: the share of a body that is thinner than a size, as a number with a gradient.
--
-- What a disc (a ball) of that size can go over without leaving the body stays when the body is opened: first eroded,
-- then dilated by the disc. Loose ends and thin members are gone: member_size is their share of the solid. Erosion
-- is the harmonic mean over the disc and dilation that of the void (Svanberg, Svaerd: Density filters for topology
-- optimization based on the Pythagorean means, SMO 48, 2013), which are smooth, and leave a uniform grey as it is.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local sparse = require "cq.sparse"

local SOFT = 1e-3             -- of the harmonic mean: how void counts as nothing

-- The harmonic mean of x over the disc around each particle; beyond the block everything has the value `outside`. disc:
-- of disc_of; x {n}.
local function harmonic(disc, x, outside)
  return disc.most / (disc.matrix:product(1 / (x + SOFT)) + disc.missing / (outside + SOFT)) - SOFT
end

-- The density {n} after erosion and dilation by the disc (a morphological opening), by harmonic means. outside: the
-- density beyond the block.
local function opened(disc, x, outside)
  return 1 - harmonic(disc, 1 - harmonic(disc, x, outside), 1 - outside)
end

-- { matrix, most, missing }: the summing matrix of a disc as wide as members must be around each particle of the
-- design, the most particles in a disc, and how many of these each disc {n} lacks. Errors: a size below three spacings,
-- or above the block. what: for errors.
local function disc_of(design, size, what)
  local points, spacing = design.robot.position, design.spacing
  if size < 3 * spacing * (1 - 1e-6) then
    is.fail("%s: size must be at least three spacings, %s: nothing is thinner than a particle, got %s", what,
      text.number(3 * spacing), text.number(size))
  end
  local matrix = sparse.neighbours { points = points, radius = 0.5 * (size - spacing) + 1e-3 * spacing }
  local inside = matrix:product(T.ones { points:size(1) })
  local most = inside:max():item()
  if size > (points:max(1) - points:min(1)):min():item() + spacing then
    is.fail("%s: a member of size %s does not fit into the block", what, text.number(size))
  end
  return { matrix = matrix, most = most, missing = most - inside }
end

---A function that measures a mapped design: the share of its solid, or of its void, that is thinner than a size, a
---tensor of rank 0. Errors: a size that does not fit.
---@param design cq.Topology
---@param size number        [length]
---@param void boolean       of holes and gaps, not of members
---@param what string        for errors
---@return fun(map: table): cq.Tensor
return function(design, size, void, what)
  local disc, volume = disc_of(design, size, what), design.robot.volume
  return function(map)
    local x = void and 1 - map.smooth.density or map.smooth.density
    local lost = (x - opened(disc, x, void and 1 or 0)):clamp(0, 1)
    return (lost * volume):sum() / ((x * volume):sum() + SOFT * volume:mean():item())
  end
end
