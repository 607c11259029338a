-- robot: a body of particles with groups, materials and actuators; and variants of it with other values.
--
--   local robot = cq.Robot {
--     shape = { cq.Shape.box { name = "leg", ... }, cq.Shape.box { name = "trunk", ... } },
--     material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },  -- or by group name
--     actuators = cq.Actuator.pressure { groups = { "leg" }, axis = "y", max = 2 },
--     groups = { feet = { "leg" }, tip = function(x, y) return y > 0.4 end },
--     pins = "feet", markers = 100,
--   }
--   local world = cq.World { ..., robot:at { 0.2, 0.1 } }
--   local body = robot:with { young = p.young, velocity = { 1, 0 } }
--   local roll = world:rollout { robot = body, steps = 100 }
--
-- A robot is never changed by at or with: they give new ones that share its particles.
--
-- Pins hold every node that their particles touch, and so a little of the body beyond: the free part of a beam is 0.1
-- to 1.1 cells shorter than drawn, 0.8 where its pinned part ends at a node.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local made = require "cq.base.made"
local text = require "cq.base.text"
local T = require "cq.tensor"
local actuators = require "cq.actuator"
local cables = require "cq.actuator.cable"
local constants = require "cq.robot.constants"
local field = require "cq.base.field"
local predicates = require "cq.base.predicate"
local hydrostatic = require "cq.robot.hydrostatic"
local selection = require "cq.robot.selection"
local stretched = require "cq.robot.stretched"
local surfaces = require "cq.actuator.surface"
local transfer = require "cq.robot.transfer"
local values = require "cq.robot.values"
local tables = require "cq.base.tables"

---@class cq.Robot
---@field particle_count integer     of all its shapes
---@field actuator_count integer     signals of all its actuators
---@field dim integer                2 or 3
---@field groups string[]            names of the groups of its shape, in the order of the shape
---@field size number[]               {dim} of the box that holds its shape: its body lengths [length]
---@field lower number[]              {dim} lower corner of that box, as it was drawn [length]
---@field offset number[]             {dim} how far it was moved by robot:at since [length]
---@field position cq.Tensor         {n, dim} at the start [length]
---@field volume cq.Tensor           {n} initial volume of each particle, area in 2D
---@field density cq.Tensor          {n} mass per volume
---@field signals string[]           a name for every actuator signal
---@field [string] cq.Tensor         {n, ...} a constant of its materials, as robot.young; NaN where a particle's material
---  lacks it. Constants, position, volume and density are as robot:with, stretched and hydrostatic have set them
---@field base table<string, cq.Tensor>   {n, ...} by field, without what these have set; internal
local Robot = { __name = "cq.Robot" }

-- A method or field; a field of particles or cables as it holds, with gradients. A constant that the robot's materials
-- lack is an error that lists those they have.
function Robot.__index(self, key)
  local value = Robot[key]
  if value ~= nil then return value end
  local entry = field.by_name[key]
  if not entry then return end
  value = values.spread(self, key) or self.base[key]
  if value == nil and entry.owner == "constant" then constants.require(self, key, "robot") end
  return value
end

---Particles of a robot under one name, from robot:group.
---@class cq.Group
---@field name string           as robot:group and state:center take it
---@field robot cq.Robot        that it belongs to
---@field particle_count integer   particles in it
---@field index ffi.cdata*      int32_t[particle_count], from 0 within the robot
local Group = { __name = "cq.Group" }
Group.__index = Group

-- The group in one line: its name and number of particles.
function Group:__tostring()
  return ("cq.Group { %s, %s }"):format(self.name, text.count(self.particle_count, "particle"))
end

---Holds the particles of the group where they start, and with them every node that they touch: about 0.8 cells more of
---the body, 0.1 to 1.1 by where the group ends in its cell. Gives the group.
---Errors: a robot that is in a world already; one of which robot:at, robot:with and their like have made another.
---@return cq.Group
function Group:pin()
  local robot = self.robot
  local of_world = robot
  while of_world and not of_world.in_world do of_world = of_world.origin end
  if robot.frozen or of_world then
    is.fail("group:pin: the world of this robot is already made; pin \"%s\" before, or with the field pins of cq.Robot",
      self.name)
  elseif robot.copied then
    is.fail("group:pin: another robot was already made from this one, as by robot:at, and would not be pinned; pin \"%s\" before, or with the field pins of cq.Robot",
      self.name)
  end
  robot.pins[#robot.pins + 1] = self.name
  return self
end

---Numbers of the particles of the group within the robot, from 1.
---@return integer[]
function Group:particles()
  local out = {}
  for k = 1, self.particle_count do out[k] = self.index[k - 1] + 1 end
  return out
end

-- ---- groups ---------------------------------------------------------------------------------------------------------

-- Adds a cq.Group to a robot. list: numbers from 1. Errors: a name that is taken; no particles.
local function add_group(self, name, list)
  if self.group_table[name] then is.fail("cq.Robot: there are two groups with the name \"%s\"", name) end
  if #list == 0 then is.fail("cq.Robot: group \"%s\" has no particles", name) end
  local index, count = selection.index_of(list)
  self.group_table[name] = setmetatable({ name = name, robot = self, index = index, particle_count = count }, Group)
  self.group_names[#self.group_names + 1] = name
end

---The group of a name; its fields are name, particle_count and index, its methods pin() and particles().
---Errors: no such group, with the names that there are.
---@param name string       of the shape's groups, or of the robot's own
---@return cq.Group
function Robot:group(name)
  local group = self.group_table[name]
  if group then return group end
  is.fail("robot: no group %s%s; %s", text.describe(name),
    type(name) == "string" and text.suggestion(name, self.group_names) or "",
    #self.group_names > 0 and "its groups are " .. table.concat(self.group_names, ", ")
      or "it has none: name some with groups = { ... } of cq.Robot")
end

-- Returns the number of a particle as a user gave it. Errors: no whole number from 1 to the robot's number of
-- particles.
local function particle_number(self, value, what)
  if type(value) ~= "number" or value % 1 ~= 0 or value < 1 or value > self.particle_count then
    is.fail("%s: particles are whole numbers from 1 to %d or group names, got %s", what, self.particle_count,
      text.describe(value))
  end
  return value
end

---Particles that a name, a list of names or a list of particle numbers stands for, each once.
---@param which string|string[]|integer[]|cq.Group
---@param what string              for errors
---@internal
---@return ffi.cdata* index        int32_t, from 0 within the robot
---@return integer count
function Robot:select(which, what)
  if text.is_instance(which, "cq.Group") then
    if not self:has_particles_of(which.robot) then is.fail("%s: the group %q is of another robot", what, which.name) end
    return which.index, which.particle_count
  end
  if type(which) == "string" then
    local group = self:group(which)
    return group.index, group.particle_count
  end
  if type(which) ~= "table" or getmetatable(which) or #which == 0 then
    is.fail("%s: takes a group name, a list of names, or a list of particle numbers, got %s", what,
      text.describe(which))
  end
  is.require_list(which, what)
  local list, taken = {}, {}
  -- Adds a particle that is not in the list yet.
  local function add(number)
    if not taken[number] then list[#list + 1], taken[number] = number, true end
  end
  for _, entry in ipairs(which) do
    if type(entry) == "string" then
      local group = self:group(entry)
      for k = 0, group.particle_count - 1 do add(group.index[k] + 1) end
    else
      add(particle_number(self, entry, what))
    end
  end
  return selection.index_of(list)
end

-- The numbers, from 1, of those particles for which inside(x, y, z) is true.
local function where(self, inside)
  local x, dim, list = self.position:data(), self.dim, {}
  for p = 0, self.particle_count - 1 do
    local at = x + p * dim
    if inside(at[0], at[1], dim == 3 and at[2] or nil) then list[#list + 1] = p + 1 end
  end
  return list
end

-- Adds the groups that a user gives, as functions of the place or as lists: those first that a list names, else in the
-- order of the alphabet. Errors: a key that is no name; groups that name each other.
local function user_groups(self, given)
  local names = {}
  for name in pairs(given) do
    if type(name) ~= "string" then
      is.fail("cq.Robot: groups must be a table of names, got %s as a name", text.describe(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  local begun = {}
  -- Adds one group, after the groups that its list names.
  local function add(name)
    if begun[name] == "ended" then return end
    if begun[name] then is.fail("cq.Robot: groups.%s is a part of itself", name) end
    begun[name] = "begun"
    local entry, list = given[name], {}
    if text.is_callable(entry) then
      list = where(self, predicates.of_place(("cq.Robot: groups.%s"):format(name), entry))
    else
      for _, part in ipairs(type(entry) == "table" and entry or { entry }) do
        if given[part] ~= nil and not self.group_table[part] then add(part) end
      end
      local index, count = self:select(entry, ("cq.Robot: groups.%s"):format(name))
      for k = 1, count do list[k] = index[k - 1] + 1 end
    end
    add_group(self, name, list)
    begun[name] = "ended"
  end
  for _, name in ipairs(names) do add(name) end
end

-- The numbers of `count` different particles, from 1 and sorted, for the group "markers". They are spread evenly over
-- the order of the particles: multiples of the golden ratio never crowd. Errors: more than there are particles.
local function spread(self, count)
  local n, list = self.particle_count, {}
  if count > n then is.fail("cq.Robot: markers is %d, the robot has only %s", count, text.count(n, "particle")) end
  local taken = {}
  for k = 1, count do
    local i = math.floor((k * 0.6180339887498949 % 1) * n) + 1
    while taken[i] do i = i % n + 1 end
    taken[i], list[k] = true, i
  end
  table.sort(list)
  return list
end

-- ---- actuators ------------------------------------------------------------------------------------------------------

-- Adds an actuator of one signal, a cable or the pressure on a surface, to a robot: its signal, its entry in
-- self.cables or self.surfaces, and a stress of zeros without particles, through which the signal gets scale and shift.
local function bind_single(self, actuator)
  local list = actuator.family == "cable" and self.cables or self.surfaces
  local name = actuator.name or ("%s %d"):format(actuator.family, #list + 1)
  local none = {}
  for k = 1, self.dim * self.dim do none[k] = 0 end
  local one = (actuator.family == "cable" and cables or surfaces).bind(self, actuator, name)
  self.stresses[#self.stresses + 1] = {
    signal = #self.signals, stress = none, count = 0, weighed = false, scale = actuator.scale or 1,
    shift = actuator.shift or 0,
  }
  one.stress = #self.stresses
  list[#list + 1], self.signals[#self.signals + 1] = one, name
end

-- Adds an actuator to a robot: its signals' names, and for each a stress with its particles, or a force actuator's
-- particles, a cable or a surface. position: of the actuator in the user's list, for errors.
local function bind(self, actuator, position)
  if actuators.is_force(actuator) then
    local index, count = self:select(actuator.particles, ("cq.Robot: particles of force actuator %d"):format(position))
    self.forces[#self.forces + 1] = { actuator = actuator, index = index, count = count, first = #self.signals,
      signals = actuator.signals }
    local name = type(actuator.particles) == "string" and actuator.particles or ("force %d"):format(position)
    for _ = 1, actuator.signals do self.signals[#self.signals + 1] = name end
    return
  end
  if actuator.family == "cable" or actuator.family == "follower_pressure" then return bind_single(self, actuator) end
  local stress = actuator:stress(self.dim)
  for s = 1, actuator:signals() do
    self.weight_columns = self.weight_columns + 1
    local group, index, count = actuator.groups and actuator.groups[s], nil, self.particle_count
    if group then index, count = self:select(group, ("cq.Actuator.%s: groups"):format(actuator.family)) end
    self.stresses[#self.stresses + 1] = {
      signal = #self.signals, stress = stress, index = index, count = count, weighed = group == nil,
      column = self.weight_columns,
      scale = actuator.scale or 1, shift = actuator.shift or 0,
    }
    self.signals[#self.signals + 1] = type(group) == "string" and group or ("%s %d"):format(actuator.family, s)
  end
end

-- Gives a robot its actuators, one or a list: signals, stresses, forces, cables, surfaces. Errors: those of
-- actuator.check and of each kind.
local function set_actuators(self, given)
  self.signals, self.stresses, self.forces, self.cables, self.surfaces = {}, {}, {}, {}, {}
  self.weight_columns = 0
  if given and (text.is_instance(given, "cq.Actuator") or actuators.is_force(given)) then given = { given } end
  if given then is.require_list(given, "cq.Robot: actuators") end
  for position, actuator in ipairs(given or {}) do
    bind(self, actuators.check(actuator, "cq.Robot", position), position)
  end
  self.actuators = given or {}
  self.actuator_count = #self.signals
  cables.measure(self)
end

-- ---- equal particles ------------------------------------------------------------------------------------------------

-- Sets the volume, the mass, or both, that all particles have in the place of what shape and material give: a number,
-- or "equal", their mean. The mass of a particle is its density times its volume, so the density follows.
local function set_equal(self, volume, mass)
  local n = self.particle_count
  local base = self.base
  if volume then base.volume = T.full({ n }, volume == "equal" and self.volume:mean():item() or volume) end
  if mass then base.density = (mass == "equal" and (self.density * self.volume):mean():item() or mass) / self.volume end
end

-- ---- construction ---------------------------------------------------------------------------------------------------

local equal = is.any_of { is.number { above = 0 }, is.one_of { "equal" }, optional = true }

local spec = is.define("cq.Robot", {
  shape = is.any_of { is.instance "cq.Shape", is.list(is.instance "cq.Shape", { min = 1 }) },
  material = is.any_of { is.instance "cq.Material", is.table() },
  actuators = is.table { optional = true },
  groups = is.table { optional = true },
  pins = is.any_of { is.string(), is.list(is.any_of { is.string(), is.integer { min = 1 } }), optional = true },
  markers = is.integer { min = 1, optional = true },
  spacing = is.any_of { is.number { above = 0 }, is.vector { size = { 2, 3 }, above = 0 }, optional = true },
  particle_volume = equal, particle_mass = equal,
  name = is.string { default = "robot" },
  formulation = is.one_of { "updated", "total_lagrangian", optional = true },
})

-- the fields by which a robot was made, and all that it has at its particles, that no assignment may change
local fixed = { "density", "volume", "signals", "offset", "size", "lower", "particle_count", "actuator_count" }
local free = { pins = true, groups = true, name = true }      -- two grow by methods, and a name has its effect
for name in pairs(spec.fields) do
  if not free[name] then fixed[#fixed + 1] = name end
end
for _, entry in ipairs(field.list) do fixed[#fixed + 1] = entry.name end

-- Fills the shapes of a robot, one or a list, with particles, and sets its groups, walls and bounding box.
local function sample(self, shape, spacing)
  if not text.is_instance(shape, "cq.Shape") then
    shape = #shape == 1 and shape[1] or require("cq.shape").union(shape)
  end
  local found = shape:sample { spacing = spacing }
  self.lower, self.size, self.offset = shape.lower, {}, {}
  for d = 1, shape.dim do self.size[d], self.offset[d] = shape.upper[d] - shape.lower[d], 0 end
  self.particle_count, self.dim = found.count, found.dim
  self.base.position, self.base.volume = found.position, found.volume
  self.surface, self.drawn = shape.surface, found.colour      -- of a mesh, and of a drawing, for pictures
  self.walls, self.wall_names = found.walls, found.wall_names
  for _, name in ipairs(found.group_names) do add_group(self, name, found.groups[name]) end
  for k, name in ipairs(self.group_names) do self.groups[k] = name end
end

---@class cq.Robot.def
---@field shape cq.Shape|cq.Shape[]       one, or a list, of which overlapping ones are not filled twice
---@field spacing? number|number[]        of the particles of shapes that bring none [length]
---@field material cq.Material|table<string, cq.Material>   one, or one by group name, "default" for the rest
---@field actuators? cq.Actuator|table    one or a list; also tables of one's own with particles, signals, a method force, and every = "engine_step" or "control_step"
---@field groups? table<string, string|string[]|integer[]|fun(x: number, y: number, z: number?): boolean>   further groups
---@field pins? string|(string|integer)[] groups or particles that are held in place, with every node that they touch
---@field markers? integer                so many particles, spread evenly, become the group "markers"
---@field particle_volume? number|"equal"   of every particle, for its share of the shape; "equal": the mean [length^dim]
---@field particle_mass? number|"equal"     of every particle, for density * volume; "equal": the mean of that [mass]
---@field name? string                   for errors and messages
---@field formulation? "updated"|"total_lagrangian"   of its steps, in place of the world's: an elastic robot with a grid of its own
---  shape in a liquid, or beside others, that stay on the grid of the world

---A robot: particles that fill a shape, with groups, materials and actuators. Groups of the shape are the robot's.
---Errors: a group without particles, two of one name, a particle without a material or with two.
---@param fields cq.Robot.def
---@return cq.Robot
local function new(_, fields)
  local def = spec(fields)
  local self = setmetatable({ name = def.name, formulation = def.formulation or false, groups = {}, group_table = {},
    group_names = {}, base = {} }, Robot)
  self.root = self
  sample(self, def.shape, def.spacing)
  if def.groups then user_groups(self, def.groups) end
  if def.markers then add_group(self, "markers", spread(self, def.markers)) end
  constants.set(self, def.material)
  T.tape.pause(set_equal, self, def.particle_volume, def.particle_mass)
  set_actuators(self, def.actuators)
  self.pins = {}
  for _, pin in ipairs(type(def.pins) == "string" and { def.pins } or def.pins or {}) do
    self:select({ pin }, "cq.Robot: pins")
    self.pins[#self.pins + 1] = pin
  end
  self.materials = text.is_instance(def.material, "cq.Material") and { def.material }
    or tables.merged(def.material)
  return made.remember(self, fixed)
end

local WHAT, ADVICE = "cq.Robot", "give it to cq.Robot, or take robot:with { %s = ... }, where it is a value"

-- A new robot that shares this one's particles, with groups and pins of its own; its field `origin` is this robot.
local function copy(self)
  made.require(self, WHAT, ADVICE)
  local out = setmetatable(tables.merged(self), Robot)
  out.base = tables.merged(self.base)
  self.copied = true
  out.origin, out.frozen, out.copied, out.in_world, out.group_table, out.pins = self, nil, nil, nil, {}, {}
  for name, group in pairs(self.group_table) do
    out.group_table[name] = setmetatable({ name = name, robot = out, index = group.index,
      particle_count = group.particle_count }, Group)
  end
  for k, pin in ipairs(self.pins) do out.pins[k] = pin end
  return made.remember(out, fixed)
end

-- A copy of the robot with the values `given`, of values.check, in its table of values: a field in `given` replaces all
-- that the robot has of it, and other fields stay.
local function with_values(self, given)
  local out = copy(self)
  out.values = {}
  for name, value in pairs(self.values or {}) do out.values[name] = value end
  for name, value in pairs(given) do out.values[name] = value end
  return out
end

---A copy of the robot, moved by an offset: the origin of its shape, at 0 until then, lies there; a second call adds to
---the first. Anchors of cables, and a position set by robot:with, stay where they are in the world.
---@param offset number[]        {dim} [length]
---@return cq.Robot
function Robot:at(offset)
  is.argument("robot:at", "offset", is.vector { size = self.dim }, offset)
  local out = copy(self)
  out.base.position = T.tape.pause(function() return self.base.position + T.tensor(offset) end)
  out.offset = {}
  for d = 1, self.dim do out.offset[d] = self.offset[d] + offset[d] end
  cables.measure(out)      -- anchors stay in the world
  return made.remember(out, fixed)
end

---The robot of some of its particles, where they are, with their groups, materials, actuators and values of
---robot:with; groups without a particle are dropped, pins and signals without one have no effect. Errors: a robot
---with cables or with surfaces under pressure; a force actuator without a particle.
---@param which string|string[]|integer[]|cq.Group   a group, a list of groups, or particle numbers; each particle once, in the robot's order
---@return cq.Robot
function Robot:subset(which)
  return made.remember(require("cq.robot.subset").make(copy(self), self, which), fixed)
end

---@class robot.with.def : robot.constants.def
---@field position? table|cq.Tensor            {n, dim}
---@field velocity? table|cq.Tensor            {n, dim}
---@field affine? table|cq.Tensor              {n, dim, dim}
---@field deformation? table|cq.Tensor         {n, dim, dim}
---@field volume? number|table|cq.Tensor       {n}
---@field density? number|table|cq.Tensor      {n} a particle's mass is density * volume
---@field cable_stiffness? number|cq.Tensor    {cables}, in the order of the actuators; one number for all
---@field cable_length? number|cq.Tensor       {cables}
---@field cable_friction? number|cq.Tensor     {cables}
---@field actuation_weight? table|cq.Tensor    {n, stress signals} how much each particle follows each signal of stress
---  actuators (pressure, muscle, isotropic), in their order; forces, cables and surfaces have no column

---@internal
---The same body sampled again, with the particles' distance multiplied by a factor. Each new particle takes the
---values of the nearest old one, its groups, pins, cables and signals too.
---@param factor number
---@return cq.Robot          with sources: for each particle the number of the old one that it replaces
function Robot:resampled(factor)
  return made.remember(require("cq.robot.resampled").make(copy(self), self, factor), fixed)
end

---The robot with other values, for world:rollout { robot = ... }; all have gradients. Each value is one number (or a
---vector or matrix, for fields that have one at each particle), a tensor of that, a table of them by group name (other
---particles as cq.Robot made them), a tensor with the particles as first dimension, or one with the scenes of a batch
---before that. A field that is set again is replaced as a whole.
---
---A constant of a material goes only to the particles whose material has it, of the robot or of the group. A tensor has
---a value for every particle, also for those that do not read it, or only for the particles that have the constant.
---@param fields robot.with.def
---@return cq.Robot
function Robot:with(fields)
  return with_values(self, values.check(self, fields))
end

---@internal
---The robot with the values that another one has from robot:with: of the same particles if both are variants of one
---robot, else each particle takes the value of the other's particle nearest to its relative place in the body.
---@param other cq.Robot
---@return cq.Robot
function Robot:with_values_of(other) return with_values(self, transfer.values(self, other)) end

---The robot whose liquid is at rest under its own weight, from the first step on: hydrostatic pressure. The F of each
---particle of a cq.Material.fluid is that of the pressure at its depth, by the material's equation of state, and its
---volume is that share of space by J. Other particles stay as they are. After robot:at, for the place of the surface
---is one in the world. Gradients go to density, bulk modulus and position.
---
---  local water = cq.Robot { shape = cq.Shape.box { size = { 1, 0.5 } }, material = cq.Material.fluid { bulk = 100 } }
---  local world = cq.World { gravity = { 0, -1 }, ..., water:at { 0.1, 0.1 }:hydrostatic { gravity = { 0, -1 } } }
---Errors: no fluid; nothing of it below the surface; a bulk modulus so small that the liquid's weight compresses it by
---more than 5 %.
---@param fields robot.hydrostatic.def
---@return cq.Robot
function Robot:hydrostatic(fields) return with_values(self, hydrostatic(self, fields)) end

---The robot with other lengths along an axis, for world:rollout { robot = ... }: its particles move, and their volumes
---follow, with gradients to the lengths. Between two joints the body is stretched evenly, beyond the ends it moves
---along; it is made so, and under no stress. Pinned particles take their pins along. Cables without a rest_length of
---their own follow the length of their path. Stretches along several axes, or one after the other, go together.
---
---A chamber is stretched with its walls. Areas of an open surface under a follower_pressure do not follow: a section
---that it extends along keeps its length, as a number.
---
---  robot:stretched { axis = "y", factor = p.length }                                       all of it
---  robot:stretched { axis = "y", joints = { 0.05, 0.25, 0.4 }, lengths = p.lengths }       two links
---Errors: none or several of factor, lengths and places; a length that is not above 0; an open surface under pressure
---that would be stretched; a position set by robot:with.
---@param fields robot.stretched.def
---@return cq.Robot
function Robot:stretched(fields)
  return with_values(self, stretched(self, fields))
end

---Adds a group, particle numbers from 1 under a name, to the robot itself, which must be a new robot:subset: other
---copies share the list of group names. Errors: a name that is taken; no particles.
---@internal
---@param name string
---@param list integer[]
function Robot:add_group(name, list) add_group(self, name, list) end

local ANCESTORS = 8          -- that are looked at: in scripts robots of robots of robots are few

---Raises an error if a field was assigned after it was made, of the robot, of one that it was made from, or of a
---material or actuator of theirs.
---@internal
function Robot:require_unchanged()
  for _, part in pairs(self.materials or {}) do part:require_unchanged() end
  for _, part in ipairs(self.actuators) do
    if part.require_unchanged then part:require_unchanged() end
  end
  local robot = self
  for _ = 0, ANCESTORS do
    made.require(robot, WHAT, ADVICE)
    robot = robot.origin
    if not robot then return end
  end
end

---A copy of the robot for a world to keep, which later changes of the user's robot do not reach. From here on group:pin
---is an error for this robot and for those that it was made from.
---@internal
---@return cq.Robot
function Robot:placed()
  local out = copy(self)
  out.in_world = true
  -- pins come too late from here on, also on what this one was made from
  local robot = out
  while robot do
    robot.frozen = true
    robot = robot.origin
  end
  return out
end

---Has this robot the same particles as another one, in the same order: are both made from one cq.Robot, whole or as
---subsets of the same numbers?
---@internal
---@param other cq.Robot
---@return boolean
function Robot:has_particles_of(other)
  local own, given = self.root_numbers, other.root_numbers
  if self.root ~= other.root or self.particle_count ~= other.particle_count then return false end
  for k = 1, own ~= given and self.particle_count or 0 do
    if (own and own[k] or k) ~= (given and given[k] or k) then return false end
  end
  return true
end

---The numbers of this robot's particles in another robot, which has all of them and maybe more, from 1.
---@internal
---@param other cq.Robot
---@return integer[]
function Robot:numbers_in(other)
  local place, out = {}, {}
  for k = 1, other.particle_count do place[other.root_numbers and other.root_numbers[k] or k] = k end
  for k = 1, self.particle_count do out[k] = place[self.root_numbers and self.root_numbers[k] or k] end
  return out
end

---Is this robot the other one, or a variant of it?
---@internal
---@param other cq.Robot
---@return boolean
function Robot:descends_from(other)
  local robot = self
  while robot do
    if robot == other then return true end
    robot = robot.origin
  end
  return false
end

-- The robot in one line. Groups: those of its shape, as robot.groups has them, + those that were named beside.
function Robot:__tostring()
  local own, all = #self.groups, #self.group_names
  return ("cq.Robot { %s, %dD, %s, %s%s, %s }"):format(self.name, self.dim, text.count(self.particle_count, "particle"),
    all > own and own .. " + " or "", text.count(all - (all > own and own or 0), "group"),
    text.count(self.actuator_count, "signal"))
end

method.guard(Robot, "robot")
method.guard(Group, "group")

return setmetatable({ class = Robot }, { __call = new })
