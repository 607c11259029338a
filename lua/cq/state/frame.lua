-- frame: a state as what files of other programs hold: particles with their fields, or surfaces of bodies.
local carried = require "cq.export.carried"
local export = require "cq.export"
local field = require "cq.base.field"
local is = require "cq.base.schema"
local loose_of = require "cq.robot.loose"
local of_particles = require "cq.state.values"
local place = require "cq.base.place"
local readout = require "cq.state.readout"
local text = require "cq.base.text"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

local frame = {}

-- ---- options --------------------------------------------------------------------------------------------------------

-- what a file of particles can have, by name; those of the table are there unless others are asked for
local DEFAULT = { "velocity", "deformation", "cauchy", "von_mises", "young", "group" }
local units = { group = "", body = "" }
for _, info in ipairs(readout.quantities) do units[info.name] = info.unit end
for _, entry in ipairs(field.list) do
  if entry.owner == "constant" then units[entry.name] = entry.unit end
end
for _, name in ipairs { "mass", "volume", "density" } do
  units[name] = (field.by_name[name] or { unit = "mass" }).unit
end
units.position = nil

local field_names = tables.names(units)

---@class state.save.def
---@field as? "particles"|"surface"   what a format holds that has both; particles unless given
---@field fields? string[]      of particles: any cq.Quantity, a constant as "young", "density", "mass", "volume", "group" and
---  "body", and "group_NAME", 1 in a group of `groups` of cq.Robot; velocity, deformation, cauchy, von_mises, young,
---  group, and the marks of such groups, unless given
---@field precision? "float32"|"float64"   of the numbers in binary files
---@field scene? integer        of a batch, from 1; needed where it has several
---@field units? export.units.def   words for the units in the heads of CSV files, as { length = "mm", time = "s", mass = "kg" }
---@field thickness? number     of surfaces in 2D, which are as thick as a cell unless given [length]

---@class export.units.def
---@field length? string
---@field time? string
---@field mass? string
---@field force? string
---@field stress? string        also of moduli and energy densities

local of_units = is.define("export: units", {
  length = is.string { optional = true }, time = is.string { optional = true }, mass = is.string { optional = true },
  force = is.string { optional = true }, stress = is.string { optional = true },
})

---Checks the words for units, def.units. Errors: a unit that no quantity has; a word that is no text.
---@param def state.save.def|rollout.export.def
function frame.check_units(def) def.units = def.units and of_units(def.units) end

---Adds checkers of the options that choose what is written (as, fields, precision, units, thickness) to a definition in
---place; returns it.
---@param fields table<string, cq.Checker>
---@return table<string, cq.Checker>
function frame.fields(fields)
  fields.as = is.one_of { "particles", "surface", optional = true }
  fields.fields = is.list(is.string(), { optional = true })
  fields.precision = is.one_of { "float32", "float64", default = "float32" }
  fields.units = is.table { optional = true }
  fields.thickness = is.number { above = 0, optional = true }
  return fields
end

---Raises an error for an option that the file which is written has no use for. holds: "particles", "surface", or
---"table", centres over time.
---@param what string
---@param def state.save.def|rollout.export.def
---@param holds "particles"|"surface"|"table"
function frame.check_effect(what, def, holds)
  local wanted = { fields = "particles", thickness = "surface" }
  local words = { particles = "particles", surface = "surfaces", table = "a table of centres over time" }
  for _, name in ipairs { "fields", "thickness" } do
    if def[name] ~= nil and holds ~= wanted[name] then
      is.fail("%s: %s goes with %s, and has no effect on %s", what, name, words[wanted[name]], words[holds])
    end
  end
end

-- ---- particles ------------------------------------------------------------------------------------------------------

-- The values {n, ...} of one scene, that of state:scene or of the number `scene`: a row of values {batch, n, ...};
-- values without a batch as they are. rank: of one particle's quantity.
local function of_scene(state, values, scene, rank)
  return values.rank == rank + 2 and values[state.number or scene] or values
end

---The name of a world's robot in a file, with its number where others have the same name.
---@param world cq.World
---@param robot cq.Robot
---@return string
function frame.robot_name(world, robot)
  local number, alike = 0, 0
  for k, other in ipairs(world.robots) do
    if other.name == robot.name then alike = alike + 1 end
    if other == robot then number = k end
  end
  return alike > 1 and ("%s %d"):format(robot.name, number) or robot.name
end

-- The name of a group in a file; with several robots, the robot's name before it.
local function group_name(world, robot, name)
  return #world.robots > 1 and ("%s %s"):format(frame.robot_name(world, robot), name) or name
end

-- The field "group" of a file: for each particle the number of the first group that contains it, 0 for none, with the
-- names of the groups: { name, integer, values {n}, names }.
local function groups_of(state)
  local world = state.world
  local out, names = T.zeros { world.particle_count }, { "none" }
  for _, robot in ipairs(world.robots) do
    for _, name in ipairs(robot.groups) do
      names[#names + 1] = group_name(world, robot, name)
      for _, p in ipairs(robot:group(name):particles()) do
        if out:get(robot.first + p) == 0 then out:set(#names - 1, robot.first + p) end
      end
    end
  end
  return { name = "group", integer = true, values = out, names = names }
end

-- The field "body" of a file: for each particle the number of its robot, with the robots' names: { name, integer,
-- values {n}, names }.
local function bodies_of(state)
  local world = state.world
  local out, names = T.zeros { world.particle_count }, { "none" }
  for k, robot in ipairs(world.robots) do
    names[k + 1] = frame.robot_name(world, robot)
    for p = 1, robot.particle_count do out:set(k, robot.first + p) end
  end
  return { name = "body", integer = true, values = out, names = names }
end

---The groups of a robot that its shapes do not give: those of `groups` of cq.Robot.
---@param robot cq.Robot
---@return string[]
function frame.own_groups(robot)
  local of_shapes, out = {}, {}
  for _, name in ipairs(robot.groups) do of_shapes[name] = true end
  for _, name in ipairs(robot.group_names) do
    if not of_shapes[name] then out[#out + 1] = name end
  end
  return out
end

-- The fields of the groups of a world: group names by field, and the fields in order, { field, name, is_own } each. A
-- field has _ for all of the name but letters and digits, which PLY and Python could not read, and a number where that
-- is the field of another group.
local function fields_of_groups(world)
  local by_field, list, seen = {}, {}, {}
  for _, robot in ipairs(world.robots) do
    local is_own = {}
    for _, name in ipairs(frame.own_groups(robot)) do is_own[name] = true end
    for _, name in ipairs(robot.group_names) do
      if not seen[name] then
        local plain = "group_" .. name:gsub("[^%w_]", "_")
        local field_name, count = plain, 1
        while by_field[field_name] do
          count = count + 1
          field_name = ("%s_%d"):format(plain, count)
        end
        by_field[field_name], seen[name] = name, { field = field_name, name = name }
        list[#list + 1] = seen[name]
      end
      seen[name].is_own = seen[name].is_own or is_own[name]
    end
  end
  return by_field, list
end

-- The field "group_NAME" of a file: 1 for the particles of a group, of each robot that has one of this name, 0 for the
-- others; nil: no robot has it.
local function membership(state, field_name)
  local name = fields_of_groups(state.world)[field_name]
  if not name then return nil end
  local out = T.zeros { state.world.particle_count }
  for _, robot in ipairs(state.world.robots) do
    local particles = robot.group_table[name] and robot:group(name):particles() or {}
    for _, p in ipairs(particles) do out:set(1, robot.first + p) end
  end
  return { name = field_name, integer = true, values = out }
end

-- The fields of the groups that no shape gives.
local function own_fields(world)
  local out, _, list = {}, fields_of_groups(world)
  for _, entry in ipairs(list) do out[#out + 1] = entry.is_own and entry.field or nil end
  return out
end

-- A list of the elements of two lists.
local function joined(first, second)
  local out = {}
  for _, value in ipairs(first) do out[#out + 1] = value end
  for _, value in ipairs(second) do out[#out + 1] = value end
  return out
end

local integers = { group = groups_of, body = bodies_of }

-- One field of a state for a file, by its name: { name, values {n, ...}, unit }. nil for a constant that no material
-- has. asked: the user named it. Errors: an unknown name; a constant that no material has, if asked.
local function field_of(state, name, scene, asked)
  if integers[name] then return integers[name](state) end
  local members = membership(state, name)
  if members then return members end
  if not units[name] then
    local known = joined(field_names, own_fields(state.world))
    is.fail("state:save: fields has no %s%s; particles have %s", text.describe(name), text.suggestion(name, known),
      table.concat(known, ", "))
  end
  local info = readout.quantity(name)
  local values
  if info then
    values = of_scene(state, state:gather(nil, name), scene, info.rank == 3 and (state.world.dim == 3 and 1 or 0)
      or info.rank)
  else
    values = of_particles.constant(state, name)
    values = values and of_scene(state, values, scene, 0)
    if not values and asked then is.fail("state:save: no material of this world has the constant %s", name) end
  end
  return values and { name = name, unit = units[name], values = values }
end

---The particles of one scene of a state with their fields, as files take them.
---@param state cq.State
---@param def state.save.def
---@return cq.export.Frame
function frame.particles(state, def)
  local scene = def.scene or 1
  local out = { time = state.time, dim = state.world.dim, precision = def.precision, units = def.units, fields = {},
    notes = {}, points = of_scene(state, state:positions(), scene, 1) }
  local seen = {}
  for _, name in ipairs(def.fields or joined(DEFAULT, own_fields(state.world))) do
    if seen[name] then is.fail("state:save: fields has %s twice", text.describe(name)) end
    seen[name] = true
    local one = field_of(state, name, scene, def.fields ~= nil)
    out.fields[#out.fields + 1] = one
    for k, word in ipairs(one and one.names or {}) do
      out.notes[#out.notes + 1] = ("%s %d is %s"):format(one.name, k - 1, word:gsub("%c", " "))
    end
  end
  return out
end

-- ---- surfaces -------------------------------------------------------------------------------------------------------

-- The rows of a tensor that belong to the particles of one robot.
local function own(values, robot) return values:slice(robot.first + 1, robot.first + robot.particle_count, 1) end

---The surfaces of the bodies, bound to their particles, for any state of a rollout: a list of { skin, robot }. A body
---that flows has none. Errors: no body has a surface.
---@param state cq.State
---@param def state.save.def
---@param what string
---@return table[]
function frame.skins(state, def, what)
  local world, out = state.world, {}
  local rest, volume = of_particles.undeformed(state)
  for _, robot in ipairs(world.robots) do
    if not loose_of(robot) then
      local fields = { name = frame.robot_name(world, robot), rest = own(rest, robot):copy(),
        volume = own(volume, robot), thickness = def.thickness or world.dx }
      if robot.surface then
        fields.mesh, fields.triangles = robot.surface()
        fields.rest = robot.root.position
      end
      local skin = carried.skin(fields)
      if skin then out[#out + 1] = { skin = skin, robot = robot } end
    end
  end
  if #out > 0 then return out end
  is.fail("%s: no body of this world has a surface: what flows has none, nor have particles that lie far apart", what)
end

---The surfaces of all bodies in a state, for a file: each skin moved along by the particles' positions and F.
---@param state cq.State
---@param skins table[]        of frame.skins
---@param def state.save.def
---@return cq.export.Surface
function frame.surface(state, skins, def)
  local scene = def.scene or 1
  local x, F = of_scene(state, state:positions(), scene, 1), of_scene(state, state:deformations(), scene, 2)
  local bodies = {}
  for k, one in ipairs(skins) do bodies[k] = one.skin:posed(own(x, one.robot), own(F, one.robot)) end
  return carried.surface { bodies = bodies, time = state.time, precision = def.precision }
end

-- ---- state:save -----------------------------------------------------------------------------------------------------

local spec = is.define("state:save", frame.fields { scene = is.integer { min = 1, optional = true } })

---state:save: writes particles or surfaces of one scene in the format of the path's ending. Errors: an unknown ending;
---a scene that the batch lacks, or no scene of several; a path that cannot be written.
---@param state cq.State
---@param path string
---@param options? state.save.def
---@return string path
function frame.save(state, path, options)
  is.argument("state:save", "path", is.string(), path)
  local def = spec(options or {})
  frame.check_units(def)
  local format, as = export.of("state:save", path, def.as)
  frame.check_effect("state:save", def, as)
  if def.scene and def.scene > state.batch then
    is.fail("state:save: scene is %d, the rollout has %s", def.scene, text.count(state.batch, "scene"))
  elseif not def.scene and state.batch > 1 and not state.number then
    is.fail("state:save: the state has %s, and a file holds one of them; give { scene = 1 }, or another one",
      text.count(state.batch, "scene"))
  end
  local content = T.tape.pause(function()
    if as == "particles" then return format.particles(frame.particles(state, def)) end
    return format.surface(frame.surface(state, frame.skins(state, def, "state:save"), def))
  end)
  path = place.of(path)
  export.write("state:save", path, content)
  return path
end

return frame
