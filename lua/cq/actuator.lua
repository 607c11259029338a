-- actuator: what the signals of a controller do to a robot.
--
-- Stress actuators add max * u * S to the stress of their particles in the material frame, P = P(F) + F (u max S)
-- (advanced-chainqueen eq. 15): a positive signal pulls the material together along S, a negative one pushes it apart.
--
--   cq.Actuator.pressure { groups = { "leg.left", "leg.right" }, axis = "y", max = 2 }      one signal for each group
--   cq.Actuator.isotropic { count = 4, max = 1 }       every particle may follow each of 4 signals: see actuation_weight
--
-- A force actuator is any table with particles, signals and a method force(u, x, v) that gives forces {k, dim} on its k
-- particles from u {signals}, and their positions and velocities {k, dim}. It is evaluated once for each control step
-- and differentiated by the tape; in a batch everything has the scene as first dimension.
--
--   { particles = "left.leg.line", signals = 1, force = function(self, u, x, v) ... end }
local is = require "cq.schema"
local text = require "cq.text"

---@class cq.Actuator
---@field family "pressure"|"isotropic"|"muscle"   which constructor made it
---@field groups (string|string[]|integer[])[]?   one signal each
---@field count integer?        signals without groups: weights of every particle come from actuation_weight
---@field max number            stress at u = 1
local Actuator = { __name = "cq.Actuator" }
Actuator.__index = Actuator

function Actuator:__tostring()
  return ("cq.Actuator.%s { %s, max %s }"):format(self.family, text.count(self:signals(), "signal"), text.number(self.max))
end

---@class cq.ActuatorModule
local actuator = { class = Actuator }

local groups = function(options)
  return is.any_of { is.string(), is.list(is.any_of { is.string(), is.list(is.any()) }, { min = 1 }), optional = options and options.optional }
end
local max = is.number { above = 0, default = 1 }

local function as_list(g) return type(g) == "string" and { g } or g end

---How many signals it takes.
---@return integer
function Actuator:signals()
  return self.count or #self.groups
end

-- S of a direction in `dim` dimensions, row-major: an axis, n n^T of a vector, or a symmetric matrix as it is
local function along_axis(axis, dim, name)
  local i = ({ x = 1, y = 2, z = 3 })[axis]
  if i > dim then is.fail("%s: axis must be \"x\" or \"y\" in 2D, got \"z\"", name) end
  local out = {}
  for k = 1, dim * dim do out[k] = k == (i - 1) * dim + i and 1 or 0 end
  return out
end

local function along_vector(v, dim, name)
  local square = 0
  for i = 1, dim do square = square + v[i] * v[i] end
  if square == 0 then is.fail("%s: direction must not be the zero vector", name) end
  local out = {}
  for i = 1, dim do
    for j = 1, dim do out[#out + 1] = v[i] * v[j] / square end
  end
  return out
end

local function matrix_of(m, dim, name)
  local out = {}
  for i = 1, dim do
    for j = 1, dim do
      local x, mirrored = m[i][j], m[j] and m[j][i]
      if type(x) ~= "number" or x ~= x then is.fail("%s: direction must hold numbers, got %s", name, text.describe(x)) end
      if x ~= mirrored then
        is.fail("%s: a direction matrix must be symmetric, got %s at (%d, %d) and %s at (%d, %d)", name, text.number(x), i, j,
          text.describe(mirrored), j, i)
      end
      out[#out + 1] = x
    end
  end
  return out
end

---The stress of signal 1 as a matrix {dim, dim} in a row.
---@internal
---@param dim integer
---@return number[]
function Actuator:stress(dim)
  local name = "cq.Actuator." .. self.family
  local s
  if self.family == "isotropic" then
    s = {}
    for i = 1, dim do
      for j = 1, dim do s[#s + 1] = i == j and 1 or 0 end
    end
  elseif self.axis then
    s = along_axis(self.axis, dim, name)
  else
    if #self.direction ~= dim then
      is.fail("%s: direction must have %d components, as the robot has dimensions, got %d", name, dim, #self.direction)
    end
    s = type(self.direction[1]) == "table" and matrix_of(self.direction, dim, name) or along_vector(self.direction, dim, name)
  end
  for k, x in ipairs(s) do s[k] = x * self.max end
  return s
end

local function directed(self, name)
  self.groups = as_list(self.groups)
  if (self.axis == nil) == (self.direction == nil) then
    is.fail("%s: give either axis, for example axis = \"y\", or direction%s", name, self.axis and ", not both" or "")
  end
end

local direction = is.any_of { is.vector { size = { 2, 3 } }, is.list(is.vector { size = { 2, 3 } }, { min = 2 }), optional = true }
local axis = is.one_of { "x", "y", "z", optional = true }

---@class cq.Actuator.pressure.def
---@field groups string|(string|string[]|integer[])[]   a signal for each entry: a group, or a list of groups or particle numbers
---@field axis? "x"|"y"|"z"                 along which it acts in the undeformed material; or direction
---@field direction? number[]|number[][]    {dim}, or a symmetric matrix {dim, dim}; or axis
---@field max? number                       stress at u = 1 [stress]

local pressure = is.define("cq.Actuator.pressure", { groups = groups(), axis = axis, direction = direction, max = max })
---A chamber of air, or any stress along one direction of the material.
---Errors: both or neither of axis and direction.
---@param fields cq.Actuator.pressure.def
---@return cq.Actuator
function actuator.pressure(fields)
  local self = pressure(fields)
  self.family = "pressure"
  directed(self, "cq.Actuator.pressure")
  return setmetatable(self, Actuator)
end

---@class cq.Actuator.muscle.def : cq.Actuator.pressure.def

local muscle = is.define("cq.Actuator.muscle", { groups = groups(), axis = axis, direction = direction, max = max })
---Fibres that only contract: the signals -1 to 1 give stresses from 0 to max along the fibre.
---@param fields cq.Actuator.muscle.def
---@return cq.Actuator
function actuator.muscle(fields)
  local self = muscle(fields)
  self.family = "muscle"
  directed(self, "cq.Actuator.muscle")
  self.scale, self.shift = 0.5, 0.5
  return setmetatable(self, Actuator)
end

---@class cq.Actuator.isotropic.def
---@field groups? string|(string|string[]|integer[])[]   a signal for each entry: a group, or a list of groups or particle numbers
---@field count? integer      signals, in the place of groups; robot:with { actuation_weight } says how much each particle follows each
---@field max? number         stress at u = 1 [stress]

local isotropic = is.define("cq.Actuator.isotropic", { groups = groups { optional = true }, count = is.integer { min = 1, optional = true }, max = max })
---The same stress in all directions: one signal for each group, or `count` signals that every particle weighs by itself.
---@param fields cq.Actuator.isotropic.def
---@return cq.Actuator
function actuator.isotropic(fields)
  local self = isotropic(fields)
  if (self.groups == nil) == (self.count == nil) then
    is.fail("cq.Actuator.isotropic: give either groups or count%s", self.groups and ", not both" or "")
  end
  self.family = "isotropic"
  self.groups = self.groups and as_list(self.groups)
  return setmetatable(self, Actuator)
end

---Is this a user-written force actuator?
---@internal
---@return boolean
function actuator.is_force(value)
  return type(value) == "table" and getmetatable(value) ~= Actuator and type(value.force) == "function"
end

---Refuses what is neither a cq.Actuator nor a force actuator.
---@internal
function actuator.check(value, name, index)
  if text.is_instance(value, "cq.Actuator") then return value end
  if not actuator.is_force(value) then
    is.fail("%s: actuators must be made by cq.Actuator or be tables with particles, signals and a method force, got %s at position %d", name,
      text.describe(value), index)
  end
  if value.particles == nil then is.fail("%s: force actuator %d has no particles: a group name or a list of indices", name, index) end
  local signals = value.signals
  if type(signals) ~= "number" or signals < 0 or signals % 1 ~= 0 then
    is.fail("%s: signals of force actuator %d must be a whole number, 0 for a passive one, got %s", name, index, text.describe(signals))
  end
  return value
end

return actuator
