-- actuator: actuators, which turn signals into stress, pressure or force on a robot.
--
-- Stress actuators add max * u * S to the stress of their particles in the material frame, P = P(F) + F (u max S)
-- (advanced-chainqueen eq. 15): a positive signal pulls the material together along S, a negative one pushes it apart.
--
--   cq.Actuator.pressure { groups = { "leg.left", "leg.right" }, axis = "y", max = 2 }      one signal for each group
--   cq.Actuator.isotropic { count = 4, max = 1 }      every particle may follow each of 4 signals: see actuation_weight
--
-- A force actuator is any table with particles, signals and a method force(u, x, v) that gives forces {k, dim} on its k
-- particles from u {signals}, and their positions and velocities {k, dim}. It is evaluated once for each control step,
-- and the forces are held over it; with every = "engine_step" it is evaluated at each engine step, so that stiff
-- springs stay stable. The tape differentiates it; in a batch everything has the scene as first dimension.
--
--   { particles = "left.leg.line", signals = 1, force = function(self, u, x, v) ... end }
--   { particles = "tail", signals = 0, every = "engine_step", force = function(self, u, x) ... end }
local is = require "cq.base.schema"
local made = require "cq.base.made"
local text = require "cq.base.text"
local vector = require "cq.base.vector"

---@class cq.Actuator
---@field family "pressure"|"isotropic"|"muscle"|"cable"|"follower_pressure"   which constructor made it
---@field groups (string|string[]|integer[])[]?   one signal each
---@field count integer?        signals without groups: weights of every particle come from actuation_weight
---@field max number            stress at u = 1
local Actuator = { __name = "cq.Actuator" }
Actuator.__index = Actuator

-- The actuator in one line: its family, signals and largest stress.
function Actuator:__tostring()
  if self.family == "follower_pressure" then
    return ("cq.Actuator.follower_pressure { max %s }"):format(text.number(self.max))
  end
  if self.family == "cable" then return ("cq.Actuator.cable { %s }"):format(text.count(#self.path, "point")) end
  return ("cq.Actuator.%s { %s, max %s }"):format(self.family, text.count(self:signals(), "signal"),
    text.number(self.max))
end

---@class cq.ActuatorModule
local actuator = { class = Actuator }

-- Makes the checker of a field `groups`: one group name, or a list whose entries are group names or lists of names and
-- particle numbers. options: { optional = true } where the field may be missing.
local groups = function(options)
  return is.any_of { is.string(), is.list(is.any_of { is.string(), is.list(is.any()) }, { min = 1 }), optional = options
    and options.optional }
end
local max = is.number { above = 0, default = 1 }

-- Returns { g } for one group name g; a list, or nil, is returned unchanged.
local function as_list(g) return type(g) == "string" and { g } or g end

---@internal
---Raises an error if a field of the actuator was assigned after it was made.
function Actuator:require_unchanged()
  made.require(self, "cq.Actuator." .. self.family, "give it to the constructor")
end

---The number of signals that an actuator takes: its `count`, or one for each of its groups; 1 without either.
---@return integer
function Actuator:signals()
  return self.count or self.groups and #self.groups or 1
end

-- The direction tensor S of a stress along an axis "x", "y" or "z": e e^T of its unit vector e, as a list of dim^2
-- numbers, row by row. name: the constructor, for the error of "z" in 2D.
local function along_axis(axis, dim, name)
  local i = ({ x = 1, y = 2, z = 3 })[axis]
  if i > dim then is.fail("%s: axis must be \"x\" or \"y\" in 2D, got \"z\"", name) end
  local out = {}
  for k = 1, dim * dim do out[k] = k == (i - 1) * dim + i and 1 or 0 end
  return out
end

-- The direction tensor S = n n^T of a vector v, n = v / |v|, as a list of dim^2 numbers, row by row. name: the
-- constructor, for the error of the zero vector.
local function along_vector(v, dim, name)
  local square, scale = vector.square(v, dim)
  if scale == 0 then is.fail("%s: direction must not be the zero vector", name) end
  local out = {}
  for i = 1, dim do
    for j = 1, dim do out[#out + 1] = (v[i] / scale) * (v[j] / scale) / square end
  end
  return out
end

-- A symmetric direction matrix m, given as rows, as one list of dim^2 numbers. Errors: a row of another size; an entry
-- that is no number; a matrix that is not symmetric, or of zeros.
local function matrix_of(m, dim, name)
  local out, square = {}, 0
  for i = 1, dim do
    if #m[i] ~= dim then
      is.fail("%s: a direction matrix must be %d rows of %d numbers, got %s in row %d", name, dim, dim,
        text.count(#m[i], "number"), i)
    end
    for j = 1, dim do
      local x, mirrored = m[i][j], m[j] and m[j][i]
      if type(x) ~= "number" or x ~= x then
        is.fail("%s: direction must hold numbers, got %s", name, text.describe(x))
      end
      if x ~= mirrored then
        is.fail("%s: a direction matrix must be symmetric, got %s at (%d, %d) and %s at (%d, %d)", name, text.number(x),
          i, j,
          text.describe(mirrored), j, i)
      end
      out[#out + 1], square = x, square + x * x
    end
  end
  if square == 0 then is.fail("%s: direction must not be a matrix of zeros", name) end
  return out
end

---@internal
---The stress max * S in the material frame at a signal of 1, a list of dim^2 numbers, row by row. Errors: a direction
---of another dimension than the robot's.
---@param dim integer
---@return number[]
function Actuator:stress(dim)
  local name = "cq.Actuator." .. self.family
  local s
  if self.family == "isotropic" or self.isotropic then
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
    s = type(self.direction[1]) == "table" and matrix_of(self.direction, dim, name)
      or along_vector(self.direction, dim, name)
  end
  for k, x in ipairs(s) do s[k] = x * self.max end
  return s
end

-- Turns one group name in self.groups into a list. Errors: both or neither of the fields axis and direction. name: the
-- constructor, for the error.
local function directed(self, name)
  self.groups = as_list(self.groups)
  if (self.axis == nil) == (self.direction == nil) then
    is.fail("%s: give either axis, for example axis = \"y\", or direction%s", name, self.axis and ", not both" or "")
  end
end

local direction = is.any_of { is.vector { size = { 2, 3 } }, is.list(is.vector { size = { 2, 3 } }, { min = 2 }),
  optional = true }
local axis = is.one_of { "x", "y", "z", optional = true }

---@class cq.Actuator.pressure.def
---@field groups string|(string|string[]|integer[])[]   a signal for each entry: a group, or a list of groups or particle numbers
---@field axis? "x"|"y"|"z"                 along which it acts in the undeformed material; or direction
---@field direction? number[]|number[][]    {dim}, or a symmetric matrix {dim, dim}; or axis
---@field max? number                       stress at u = 1 [stress]

local pressure = is.define("cq.Actuator.pressure", { groups = groups(), axis = axis, direction = direction, max = max })
---An actuator that stresses the material along one direction, as a chamber of air does: one signal for each group. A
---signal of 1 contracts the material along it, -1 expands it.
---Errors: both or neither of axis and direction.
---@param fields cq.Actuator.pressure.def
---@return cq.Actuator
function actuator.pressure(fields)
  local self = pressure(fields)
  self.family = "pressure"
  directed(self, "cq.Actuator.pressure")
  return made.remember(setmetatable(self, Actuator), nil, pressure.fields)
end

---@class cq.Actuator.muscle.def
---@field groups string|(string|string[]|integer[])[]   a signal for each entry: a group, or a list of groups or particle numbers
---@field axis? "x"|"y"|"z"                 of the fibres in the undeformed material; or direction, or isotropic
---@field direction? number[]|number[][]    {dim}, or a symmetric matrix {dim, dim}; or axis, or isotropic
---@field isotropic? boolean                the same in all directions
---@field pulses? boolean                   signals are taken as they are and a positive one expands: the stress -u max F S F^T
---@field max? number                       stress at u = 1 [stress]

local muscle = is.define("cq.Actuator.muscle", {
  groups = groups(), axis = axis, direction = direction, isotropic = is.boolean { optional = true },
  pulses = is.boolean { default = false }, max = max,
})
---Fibres, or a material that acts alike in all directions. They only contract: the signals -1 to 1 give stresses
---from 0 to max, so that a controller that gives 0 pulls with half of max; a rollout without one leaves them slack.
---With pulses = true a signal acts as in 4D topology optimization (eq. 7): it adds a stress -u max F S F^T, S = I
---for an isotropic muscle, so that a positive signal expands the material and a negative one contracts it.
---Errors: none or several of axis, direction and isotropic.
---@param fields cq.Actuator.muscle.def
---@return cq.Actuator
function actuator.muscle(fields)
  local self = muscle(fields)
  self.family = "muscle"
  if self.isotropic then
    if self.axis or self.direction then
      is.fail("cq.Actuator.muscle: give either isotropic, or axis or direction, not both")
    end
    self.groups = as_list(self.groups)
  else
    directed(self, "cq.Actuator.muscle")
  end
  if self.pulses then self.scale = -1 else self.scale, self.shift = 0.5, 0.5 end
  return made.remember(setmetatable(self, Actuator), nil, muscle.fields)
end

---@class cq.Actuator.isotropic.def
---@field groups? string|(string|string[]|integer[])[]   a signal for each entry: a group, or a list of groups or particle numbers
---@field count? integer      signals, in the place of groups; robot:with { actuation_weight } says how much each particle follows each
---@field max? number         stress at u = 1 [stress]

local isotropic = is.define("cq.Actuator.isotropic",
  { groups = groups { optional = true }, count = is.integer { min = 1, max = 65536, optional = true }, max = max })
---An equal stress in all directions: one signal for each group, or `count` signals, of which each particle has its own
---weights. A signal of 1 contracts the material and -1 expands it, where the weight is positive; a cq.Topology has
---weights of 0 to -1, so that its pulses expand. Errors: both of groups and count, or neither.
---@param fields cq.Actuator.isotropic.def
---@return cq.Actuator
function actuator.isotropic(fields)
  local self = isotropic(fields)
  if (self.groups == nil) == (self.count == nil) then
    is.fail("cq.Actuator.isotropic: give either groups or count%s", self.groups and ", not both" or "")
  end
  self.family = "isotropic"
  self.groups = self.groups and as_list(self.groups)
  return made.remember(setmetatable(self, Actuator), nil, isotropic.fields)
end

---@class cq.Actuator.cable.def
---@field path (string|integer|number[]|cq.Group|{ anchor: number[] })[]   its points, in order: a group (the mean of its particles), a
---  particle number, a place in the robot's own coordinates (the particle nearest to it), or {
---  anchor = a place in the world }
---@field stiffness number        k [force/length]
---@field rest_length? number     R; the length of the path at the start unless given [length]
---@field law? "contract"|"spool"   contract: the free length is R for a signal of -1, and R (1 - contraction) for 1; spool: it is
---  R max(0, u), so that 1 is the rest and 0 has wound all of it in
---@field contraction? number     of law "contract": the part of R that a signal of 1 winds in [-]
---@field friction? number        mu of the sheath: each turn by an angle lets the part exp(-mu angle) of the tension through, from
---  the first point on [-]
---@field gap? number             the largest distance of two neighbouring points; 8 cells unless given [length]
---@field name? string            of its signal

local cable = is.define("cq.Actuator.cable", {
  path = is.table(), stiffness = is.number { min = 0 }, rest_length = is.number { min = 0, optional = true },
  law = is.one_of { "contract", "spool", default = "contract" },
  contraction = is.number { min = 0, max = 1, default = 0.3 },
  friction = is.number { min = 0, default = 0 }, gap = is.number { above = 0, optional = true },
  name = is.string { optional = true },
})
---A cable through points of a robot, and through fixed places in the world where its path has anchors: a spring that
---only pulls, with the energy k/2 max(0, L - free length)^2 (advanced-chainqueen eq. 17, which is law = "spool"),
---evaluated at every engine step. One signal. Stiffness, rest length and friction have gradients: robot:with {
---cable_stiffness, cable_length, cable_friction }. A slack cable has no gradient: begin with signals that pull.
---Errors: fewer than two points, points at the same place or far apart, a cable of anchors alone, contraction with law
---"spool".
---@param fields cq.Actuator.cable.def
---@return cq.Actuator
function actuator.cable(fields)
  local self = cable(fields)
  is.require_list(self.path, "cq.Actuator.cable: path")
  if #self.path < 2 then
    is.fail("cq.Actuator.cable: path has %s; a cable needs 2 or more, in order", text.count(#self.path, "point"))
  end
  self.family = "cable"
  if self.law == "spool" and fields.contraction ~= nil then
    is.fail("cq.Actuator.cable: contraction = %s has no effect under law = \"spool\", where the free length is R max(0, u); leave it out, or take law = \"contract\"",
      text.number(self.contraction))
  end
  if self.law == "contract" then
    -- the signals -1 to 1 are pulls of 0 to 1
    self.offset, self.slope, self.scale, self.shift = 1, -self.contraction, 0.5, 0.5
  else
    self.offset, self.slope = 0, 1
  end
  return made.remember(setmetatable(self, Actuator), nil, cable.fields)
end

---@class cq.Actuator.follower_pressure.def
---@field surface string|string[]|table   the walls: a name of a cq.Shape.tetrahedra or a cq.Shape.mesh, or several under one pressure;
---  { inside = a place in a closed cavity, group? = the particles around it, on a lattice }, in the robot's own
---  coordinates; or { particles = a group or a list, area = number or a list, normal = vector or a list, out
---  of the solid }
---@field max? number          pressure of a signal of 1 [stress]
---@field name? string         of its signal

local follower = is.define("cq.Actuator.follower_pressure", {
  surface = is.any_of { is.string(), is.list(is.string(), { min = 1 }), is.table() }, max = max,
  name = is.string { optional = true },
})
-- Raises an error if a surface that is given as a table has other fields than it takes, as a place with an area.
local function check_surface(given)
  local names = given.inside ~= nil and { "inside", "group" } or { "particles", "area", "normal" }
  for key in pairs(given) do
    local known = false
    for _, name in ipairs(names) do known = known or key == name end
    if not known then
      is.fail("cq.Actuator.follower_pressure: surface with %s has no field %s%s; it takes %s", names[1], tostring(key),
        text.suggestion(tostring(key), names), text.join(names))
    end
  end
end

---A pressure p = max u in a closed cavity, or on any surface, at every engine step. A cavity pushes its walls by
---p dV/dx, V the volume that they enclose (state:cavity_volume), so that the sum of these forces and their moment are
---zero. An open surface follows the deformation of its particles: f = -p J F^-T N A (Nanson). One signal; a negative
---one sucks. Errors: an open cavity or chamber, a place in the solid, particles that are on no lattice, a normal of
---zeros, a name that no wall has.
---@param fields cq.Actuator.follower_pressure.def
---@return cq.Actuator
function actuator.follower_pressure(fields)
  local self = follower(fields)
  local given = self.surface
  local named = type(given) == "string" or type(given[1]) == "string"
  if type(given[1]) == "string" then is.require_list(given, "cq.Actuator.follower_pressure: surface") end
  if not named and (given.inside == nil) == (given.particles == nil) then
    is.fail("cq.Actuator.follower_pressure: surface must have either inside = a place in a cavity, or particles, area and normal%s; or be the name of walls",
      given.inside and ", not both" or "")
  end
  if not named then check_surface(given) end
  self.family, self.scale = "follower_pressure", self.max
  return made.remember(setmetatable(self, Actuator), nil, follower.fields)
end

---Is this a user-written force actuator?
---@internal
---@return boolean
function actuator.is_force(value)
  return type(value) == "table" and getmetatable(value) ~= Actuator and type(value.force) == "function"
end

local SIGNALS_MAX = 1000000      -- of a force actuator

---@internal
---Checks that a value is a cq.Actuator, or a force actuator with particles, a whole number of signals and a known
---`every`, and returns it. name: of the constructor that got it, and index: its position in the list, for errors.
function actuator.check(value, name, index)
  if text.is_instance(value, "cq.Actuator") then
    value:require_unchanged()
    return value
  end
  if not actuator.is_force(value) then
    is.fail("%s: actuators must be made by cq.Actuator or be tables with particles, signals and a method force, got %s at position %d", name,
      text.describe(value), index)
  end
  if value.particles == nil then
    is.fail("%s: force actuator %d has no particles: a group name or a list of indices", name, index)
  end
  local signals = value.signals
  if type(signals) ~= "number" or signals < 0 or signals % 1 ~= 0 or signals > SIGNALS_MAX then
    is.fail("%s: signals of force actuator %d must be a whole number, 0 for a passive one and at most %d, got %s", name,
      index, SIGNALS_MAX, text.describe(signals))
  end
  local every = value.every
  if every ~= nil and every ~= "control_step" and every ~= "engine_step" then
    is.fail("%s: every of force actuator %d must be \"control_step\" or \"engine_step\", got %s", name, index,
      text.describe(every))
  end
  return value
end

return actuator
