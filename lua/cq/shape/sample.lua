-- sample: a shape as particles.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local class = require "cq.shape.class"

---@class cq.Sample
---@field dim integer                        2 or 3
---@field count integer                      particles
---@field position cq.Tensor                 {count, dim} [length]
---@field volume cq.Tensor                   {count} area in 2D
---@field colour table<integer, integer>     0xRRGGBB of particles whose shape was drawn, as a cq.Shape.image
---@field groups table<string, integer[]>    particle numbers from 1, ascending; a particle may be in several groups
---@field group_names string[]               in the order of the shape
---@field walls table<string, cq.Wall>      surfaces of its meshes that a pressure may push on
---@field wall_names string[]                in the order of the shape
---@field volume_total number                of all particles
---@field volume_exact number?               of the shape, where a formula gives it
---@field volume_error number?               (total - exact) / exact
local Sample = { __name = "cq.Sample" }
Sample.__index = Sample

-- The sample in one line: dimension, numbers of particles, groups and closed chambers, and the volume with its error.
function Sample:__tostring()
  local volume = text.number(self.volume_total)
  if self.volume_error and math.abs(self.volume_error) > 1e-9 then
    volume = ("%s (%+.2g %% of the exact one)"):format(volume, 100 * self.volume_error)
  end
  local chambers = 0
  for _, wall in pairs(self.walls) do chambers = chambers + (wall.chamber and wall.closed and 1 or 0) end
  return ("cq.Sample { %dD, particles %d, groups %d, %svolume %s }"):format(self.dim, self.count, #self.group_names,
    chambers > 0 and ("closed chambers %d, "):format(chambers) or "", volume)
end

---@class shape.sample.def
---@field spacing? number|number[]      of parts that have none of their own [length]

local spec = is.define("shape:sample",
  { spacing = is.any_of { is.number { above = 0 }, is.vector { size = { 2, 3 }, above = 0 }, optional = true } })

---The particles of the shape: a regular lattice in each part, at its own spacing or at this one. The same call gives
---the same particles in the same order. Errors: no particles, in all or in a group; a part without any spacing.
---@param fields? shape.sample.def
---@return cq.Sample
function class.Shape:sample(fields)
  local spacing = spec(fields == nil and {} or fields).spacing
  if type(spacing) == "number" then
    spacing = self.dim == 2 and { spacing, spacing } or { spacing, spacing, spacing }
  elseif spacing and #spacing ~= self.dim then
    is.fail("shape:sample: spacing has %s, the shape has %d", text.count(#spacing, "component"), self.dim)
  end
  self:require_unchanged()
  local found = self.fill(spacing)
  if found.count == 0 then
    is.fail("shape:sample: %s has no particles; make it larger or its spacing finer", class.describe(self))
  end
  for _, name in ipairs(found.names) do
    if #found.groups[name] == 0 then
      is.fail("shape:sample: no particle of %s is in its group \"%s\"; the part is hidden by another or finer than the spacing, or the function of the group is true of none", class.describe(self), name)
    end
  end
  local T = require "cq.tensor"
  local out = setmetatable({ dim = self.dim, count = found.count, colour = found.colour, groups = found.groups,
    group_names = found.names, walls = found.walls, wall_names = found.wall_names }, Sample)
  out.position, out.volume = T.empty { found.count, self.dim }, T.empty { found.count }
  local x, v, total = out.position:data(), out.volume:data(), 0
  for k = 1, found.count * self.dim do x[k - 1] = found.position[k] end
  for p = 1, found.count do v[p - 1], total = found.volume[p], total + found.volume[p] end
  out.volume_total, out.volume_exact = total, self.exact
  out.volume_error = self.exact and (total - self.exact) / self.exact
  return out
end

return {}
