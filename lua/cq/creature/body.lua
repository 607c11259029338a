-- body: fields that all creatures have (material, pressure, number of particles), and the robot made from them.
local is = require "cq.base.schema"
local Shape = require "cq.shape"
local tables = require "cq.base.tables"

local body = {}

---Fields that every creature has beside its own.
---@class cq.Creature.body.def
---@field material? cq.Material        neo-Hookean with E 10, nu 0.3 and density 1 unless given
---@field max? number                  stress of a chamber at a signal of 1 [stress]
---@field groups? table<string, string|string[]|integer[]|fun(x: number, y: number, z: number?): boolean>   further groups, as of cq.Robot
---@field markers? integer             so many particles, spread evenly, become the group "markers"
---@field formulation? "updated"|"total_lagrangian"   as of cq.Robot

---The schema of a creature: its own fields, to which the checkers of those that all creatures have are added in place.
---@param name string
---@param fields table<string, cq.Checker>
---@return cq.Schema
function body.define(name, fields)
  fields.material = is.instance { "cq.Material", optional = true }
  fields.max = is.number { above = 0, default = 2 }
  fields.groups = is.table { optional = true }
  fields.markers = is.integer { min = 1, optional = true }
  fields.formulation = is.one_of { "updated", "total_lagrangian", optional = true }
  return is.define("cq.Creature." .. name, fields)
end

---A named box of particles with its lower corner at `at`. count: particles along each side, one number or one for each
---axis; nil where they have a spacing.
---@return cq.Shape
function body.block(name, at, size, count, spacing)
  local each = {}
  for d = 1, #size do each[d] = type(count) == "table" and count[d] or count end
  return Shape.box { name = name, at = at, size = size, count = count and each, spacing = spacing }
end

---The resolution of a creature's blocks: the user's spacing, or count along each side, else the default `count`.
---Errors: both are given.
---@return integer? count, number? spacing
function body.fineness(name, def, count)
  if def.count and def.spacing then is.fail("cq.Creature.%s: give either count or spacing, not both", name) end
  return def.count or not def.spacing and count or nil, def.spacing
end

---A cq.Actuator.pressure along an axis of the undeformed body, "y" unless given, with a signal for each chamber.
---chambers: names of groups.
function body.pressure(def, chambers, axis)
  return require("cq.actuator").pressure { groups = chambers, axis = axis or "y", max = def.max }
end

-- The groups of a creature, own, and the user's, as one new table. Errors: both have a group of the same name.
local function joined(name, own, given)
  local out = tables.merged(own)
  for key, value in pairs(given or {}) do
    if out[key] then
      is.fail("cq.Creature.%s: groups: the creature has a group \"%s\" of its own; take another name", name, key)
    end
    out[key] = value
  end
  return out
end

---Raises an error if a root holds no particle: a creature without it would fall.
---@param name string          of the creature
---@param root number          length that is held
---@param block cq.Shape       that holds the root
---@param hanging boolean      is the root its upper end?
function body.require_root(name, root, block, hanging)
  local y = block:sample().position
  local deep = hanging and block.upper[2] - y:max(1):get(2) or y:min(1):get(2) - block.lower[2]
  if deep < root then return end
  is.fail("cq.Creature.%s: no particle lies in its root, which is held and %g long: the first are %.3g deep; take more particles, or a longer root",
    name, root, deep)
end

---The cq.Robot of a creature's checked definition.
---@param name string          of the creature
---@param def table
---@param parts { shape: cq.Shape|cq.Shape[], actuators: any, groups: table?, pins: string?, spacing: any }
---@return cq.Robot
function body.make(name, def, parts)
  local material = def.material or require("cq.material").neo_hookean { young = 10, poisson = 0.3, density = 1 }
  return require "cq.robot" {
    shape = parts.shape, spacing = parts.spacing, material = material, actuators = parts.actuators,
    groups = joined(name, parts.groups, def.groups), pins = parts.pins, markers = def.markers, name = name,
    formulation = def.formulation,
  }
end

return body
