-- robot: a robot as data, and made from it: particles with all values, groups, materials, actuators, pins and place.
local ffi = require "ffi"
local is = require "cq.base.schema"
local T = require "cq.tensor"
local field = require "cq.base.field"
local materials = require "cq.material"
local actuators = require "cq.actuator"
local chamber = require "cq.actuator.chamber"
local plain = require "cq.saved.plain"
local robots = require "cq.robot"
local values = require "cq.robot.values"
local tables = require "cq.base.tables"
local text = require "cq.base.text"

local robot = {}

-- fields of a robot that are plain as they stand
local as_they_are = {
  "name", "dim", "particle_count", "lower", "size", "offset", "groups", "signals", "weight_columns", "actuator_count",
  "pins", "wall_names", "formulation",
}

local surface_fields = { "name", "area", "stress" }

-- ---- to data --------------------------------------------------------------------------------------------------------

-- A material as a table that can be saved, with its constants by their names.
local function of_material(material)
  local out, names = plain.fields(material), {}
  for k, constant in ipairs(material.constants) do names[k] = constant.name end
  out.constants = names
  return out
end

-- An actuator's own fields as a table that can be saved; its path, surface and particles are saved with the robot.
local function of_actuator(actuator)
  local out = {}
  for key, value in pairs(actuator) do
    if key ~= "path" and key ~= "surface" then out[key] = plain.copy(value) end
  end
  return out
end

-- An entry of robot.stresses as a table that can be saved: the active stress of one signal, its scale and shift, and
-- its particles as a tensor of numbers; no index: all particles.
local function of_stress(stress)
  local out = plain.copy { signal = stress.signal, stress = stress.stress, count = stress.count,
    weighed = stress.weighed, column = stress.column, scale = stress.scale, shift = stress.shift }
  out.index = stress.index and plain.numbers(stress.index, stress.count) or nil
  return out
end

-- A cable as a table { name, stress, actuator, points } that can be saved.
local function of_cable(cable)
  local out = { name = cable.name, stress = cable.stress, actuator = of_actuator(cable.actuator), points = {} }
  for k, point in ipairs(cable.points) do
    out.points[k] = { index = point.index and plain.numbers(point.index), anchor = plain.copy(point.anchor) }
  end
  return out
end

-- The closed surface of a chamber as tensors { face, count, particle, weight }: corners of each face; and for each
-- corner the number of particles that carry it, these particles, and their weights.
local function of_chamber(given)
  local count, particle, weight = {}, {}, {}
  for c, carrier in ipairs(given.carriers) do
    count[c] = #carrier.particle
    for k, p in ipairs(carrier.particle) do particle[#particle + 1], weight[#weight + 1] = p, carrier.weight[k] end
  end
  return { face = plain.numbers(given.face), count = plain.numbers(count), particle = plain.numbers(particle),
    weight = T.tensor(weight) }
end

-- A surface under pressure as a table that can be saved: its fields, actuator, particles and chamber.
local function of_surface(surface)
  local out = { actuator = of_actuator(surface.actuator), index = plain.numbers(surface.index) }
  for _, name in ipairs(surface_fields) do out[name] = plain.copy(surface[name]) end
  out.chamber = surface.chamber and of_chamber(surface.chamber)
  return out
end

-- A new list of f applied to each entry of a list.
local function mapped(list, f)
  local out = {}
  for k, entry in ipairs(list) do out[k] = f(entry) end
  return out
end

-- The values that robot:with has set, by name, as data { tensor, relative, stretches, measured, list } each; values by
-- group are spread over the particles.
local function of_values(given)
  local out = {}
  for name, value in pairs(given.values or {}) do
    local tensor = not value.list and not value.measured and (value.tensor or values.spread(given, name))
    out[name] = { tensor = tensor and tensor:detach() or nil, relative = value.relative,
      stretches = plain.copy(value.stretches), measured = value.measured,
      list = value.list and mapped(value.list, plain.copy) }
  end
  return out
end

-- The mesh from which a body was made as tensors { corners {triangles, 3, 3}, rest {n, dim} }; rest: the places of the
-- body's particles in the mesh.
local function of_mesh(given)
  local corner, count = given.surface()
  local out = T.empty { count, 3, 3 }
  ffi.copy(out:data(), corner, out.count * ffi.sizeof "double")
  return { corners = out, rest = given.root.position:detach() }
end

-- The colour 0xRRGGBB of each particle from a drawn shape, as a tensor {n}, -1 for particles of other shapes; nil if no
-- shape was drawn.
local function of_drawn(given)
  if not next(given.drawn) then return nil end
  local out = T.full({ given.particle_count }, -1)
  for p, rgb in pairs(given.drawn) do out:set(rgb, p) end
  return out
end

---A robot as a table that can be saved: particles with their constants, groups, materials, actuators, values and mesh.
---@param given cq.Robot       as a world holds it
---@param body cq.Robot        the same, or the variant of it whose values are saved
---@return table
function robot.data(given, body)
  local out = { constants = {}, indices = {}, laws = mapped(given.laws, of_material) }
  for _, name in ipairs(as_they_are) do out[name] = plain.copy(given[name]) end
  for _, entry in ipairs(field.of_robot) do
    local own = given.base[entry.name]
    if own then out.constants[entry.name] = own:detach() end
  end
  out.law = plain.numbers(given.law, given.particle_count)
  for _, name in ipairs(given.group_names) do
    local group = given.group_table[name]
    out.indices[#out.indices + 1] = { name = name, index = plain.numbers(group.index, group.particle_count) }
  end
  out.stresses, out.cables = mapped(given.stresses, of_stress), mapped(given.cables, of_cable)
  out.surfaces = mapped(given.surfaces, of_surface)
  out.values = of_values(body)
  out.mesh, out.drawn = given.surface and of_mesh(given) or nil, of_drawn(given)
  if #given.forces > 0 then out.own = plain.where(given.forces[1].actuator.force) end
  return out
end

-- ---- from data ------------------------------------------------------------------------------------------------------

-- The inverse of of_material: a cq.Material. Errors: a constant that this program does not know.
local function to_material(data)
  local out = setmetatable(tables.merged(data), materials.class)
  out.constants = mapped(data.constants, function(name)
    return field.by_name[name] or is.fail("a material has the constant %s, which this program does not know", name)
  end)
  return out
end

-- The inverse of of_actuator: a cq.Actuator.
local function to_actuator(data)
  local out = setmetatable(tables.merged(data), actuators.class)
  return out
end

-- The inverse of of_stress: an entry of robot.stresses.
local function to_stress(data)
  local out = plain.copy(data)
  if data.index then out.index, out.count = plain.index(data.index) end
  return out
end

-- The inverse of of_cable: an entry of robot.cables.
local function to_cable(data)
  return { name = data.name, stress = data.stress, actuator = to_actuator(data.actuator),
    points = mapped(data.points, function(point)
      return { index = point.index and plain.list(point.index), anchor = point.anchor }
    end) }
end

-- The inverse of of_chamber: a chamber of cq.actuator.chamber.
local function to_chamber(data)
  local particle, weight, list, at = plain.list(data.particle), data.weight:totable(), {}, 0
  for c, count in ipairs(plain.list(data.count)) do
    list[c] = { particle = { unpack(particle, at + 1, at + count) }, weight = { unpack(weight, at + 1, at + count) } }
    at = at + count
  end
  return chamber.of(list, plain.list(data.face))
end

-- The inverse of of_surface: an entry of robot.surfaces. what: the saved run, for errors. Errors: the file lacks the
-- walls of its chamber.
local function to_surface(data, what)
  if not (data.chamber or data.area) then
    is.fail("%s: the file was made by a program that did not keep the walls of the chamber %s; run:load reads it in its script",
      what, data.name)
  end
  local out = { actuator = to_actuator(data.actuator), index = plain.list(data.index) }
  for _, name in ipairs(surface_fields) do out[name] = data[name] end
  out.chamber = data.chamber and to_chamber(data.chamber)
  return out
end

-- The inverse of of_mesh: gives the robot `out` the function `surface`, and root.position, the places of its particles
-- in the mesh. Does nothing without data.mesh.
local function to_mesh(out, data)
  if not data.mesh then return end
  -- The corners {triangles, 3, 3} of the robot's mesh as double*, and the number of triangles.
  out.surface = function() return data.mesh.corners:data(), data.mesh.corners:size(1) end
  out.root = { position = data.mesh.rest }
end

-- The inverse of of_drawn: a table of the colour 0xRRGGBB by particle number, from 1; {} for nil.
local function to_drawn(tensor)
  local out = {}
  for p = 1, tensor and tensor.count or 0 do
    if tensor:get(p) >= 0 then out[p] = tensor:get(p) end
  end
  return out
end

local list_of_tables, count_field = is.list(is.table()), is.integer { min = 0 }
local robot_fields = {
  dim = is.integer { min = 2, max = 3 }, particle_count = is.integer { min = 1 }, actuator_count = count_field,
  weight_columns = count_field, signals = is.list(is.string()), constants = is.table(), law = is.tensor(),
  laws = is.list(is.table(), { min = 1 }), indices = list_of_tables, stresses = list_of_tables, cables = list_of_tables,
  surfaces = list_of_tables, values = is.table(),
}
local index_fields = { name = is.string(), index = is.tensor() }
local stress_fields = {
  signal = count_field, scale = is.number(), shift = is.number(), stress = is.list(is.number(), { min = 1 }),
}

local of_particle = { state = true, particle = true, constant = true }

-- Raises an error if data are not those of a robot. what: the saved run, for errors. A damaged file is found before by
-- its checksum; these checks are for files of other programs.
local function require_whole(data, what)
  -- Raises an error with a problem of the data; nil: there is none.
  local function check(problem)
    if problem then is.fail("%s: the robot's data are damaged: %s", what, problem) end
  end
  check(is.problem(robot_fields, data))
  for _, entry in ipairs(data.indices) do check(is.problem(index_fields, entry)) end
  for _, entry in ipairs(data.stresses) do check(is.problem(stress_fields, entry)) end
  check(data.law.count ~= data.particle_count
    and ("law must have %d entries, got %d"):format(data.particle_count, data.law.count))
  for name, tensor in pairs(data.constants) do
    local owner = field.by_name[name] and field.by_name[name].owner
    local rows = of_particle[owner] and data.particle_count or owner == "cable" and #data.cables
    if not T.is_tensor(tensor) then
      check(("%s must be a tensor, got %s"):format(name, text.describe(tensor)))
    elseif rows and tensor:size(1) ~= rows then
      check(("%s must have %s, got %d"):format(name, text.count(rows, "row"), tensor:size(1)))
    end
  end
end

---Creates the robot that a file holds, as it was placed. It is a root: variants of it (robot:with) share its
---particles, so that references to them work in worlds that hold any variant. Errors: forces of the script's own;
---damaged data.
---@param data table           from robot.data
---@param what string          whose it is, for errors
---@return cq.Robot
function robot.make(data, what)
  if data.own then
    is.fail("%s: the robot %s has forces of the script's own (%s); run:load reads this in that script", what, data.name,
      data.own)
  end
  require_whole(data, what)
  local out = setmetatable({ group_table = {}, group_names = {}, base = {} }, robots.class)
  out.root = out
  for _, name in ipairs(as_they_are) do out[name] = plain.copy(data[name]) end
  out.formulation = data.formulation or false      -- which came later
  for name, tensor in pairs(data.constants) do out.base[name] = tensor end
  out.law = plain.index(data.law)
  out.laws = mapped(data.laws, to_material)
  for k, material in ipairs(out.laws) do out.laws[material:engine_key()] = k - 1 end
  out.laws.having = {}
  for _, entry in ipairs(data.indices) do out:add_group(entry.name, entry.index:totable()) end
  out.actuators, out.forces = {}, {}
  out.stresses, out.cables = mapped(data.stresses, to_stress), mapped(data.cables, to_cable)
  out.surfaces = mapped(data.surfaces, function(surface) return to_surface(surface, what) end)
  if next(data.values) then out.values = data.values end
  out.drawn = to_drawn(data.drawn)
  to_mesh(out, data)
  return out
end

return robot
