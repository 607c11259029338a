-- assembly: robots and walls as the one set of arrays that the engine's world is made of.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local field = require "cq.base.field"
local loose_of = require "cq.robot.loose"
local message = require "cq.base.message"
local cables = require "cq.actuator.cable"
local overlap = require "cq.world.overlap"
local surfaces = require "cq.actuator.surface"
local values = require "cq.robot.values"
local C = engine.C

local assembly = {}

local ON_WORLD_GRID = -1         -- a body of cq_world_def

---Name of a group that a robot's particle belongs to, the smallest one.
---@param robot cq.Robot
---@param particle integer     from 0
---@return string?
function assembly.group_of(robot, particle)
  local best
  for _, name in ipairs(robot.group_names) do
    local group = robot.group_table[name]
    if not best or group.particle_count < best.particle_count then
      for k = 0, group.particle_count - 1 do
        if group.index[k] == particle then
          best = group
          break
        end
      end
    end
  end
  return best and best.name
end

-- A particle as an error names it: number and place.
local function particle_text(robot, x, particle)
  local group, at = assembly.group_of(robot, particle), {}
  for i = 1, robot.dim do at[i] = ("%.4g"):format(x[particle * robot.dim + i - 1]) end
  return ("particle %d%s at {%s}"):format(particle + 1, group and (" of group \"%s\""):format(group) or "",
    table.concat(at, ", "))
end

-- Raises an error if a robot does not lie within the world, one cell from its edge, where particles still have all
-- their grid nodes.
local function check_domain(what, robot, x, domain)
  local dim = domain.dim
  for p = 0, robot.particle_count - 1 do
    for i = 0, dim - 1 do
      local value = x[p * dim + i]
      if not (value >= domain.dx and value <= domain.size[i + 1] - domain.dx) then
        is.fail("%s: %s starts outside the world: %s of %s must be between %s and %s (the world but for one cell at its edge)", what,
          robot.name, ("xyz"):sub(i + 1, i + 1), particle_text(robot, x, p), text.number(domain.dx),
            text.number(domain.size[i + 1] - domain.dx))
      end
    end
  end
end

-- Is a particle liquid, and near enough to the surface of the wall that it is in? The grid holds a liquid half a cell
-- behind the last node of a solid, where velocities along the normal are zero. x: double {n, dim}; p: the particle,
-- from 0.
local function is_held(robot, wall, struct, x, p, domain)
  if robot.laws[robot.law[p] + 1].law ~= "fluid" then return false end
  return not wall:surrounds(struct, domain.dim, x + p * domain.dim, 0.501 * domain.dx)
end

-- Raises an error if a robot has particles inside the solid of a wall that neither clamps nor holds them. x: double {n,
-- dim}; structs: the engine's walls.
local function check_walls(what, robot, x, walls, structs, domain)
  for w, wall in ipairs(walls) do
    local p = not wall.clamp and wall:first_inside(structs[w - 1], domain.dim, x, robot.particle_count, function(p)
      return is_held(robot, wall, structs[w - 1], x, p, domain)
    end)
    if p then
      local clamp = (wall.kind == "sticky" or wall.kind == "slip") and not wall.separable
        and ", or have clamp = true where the wall is to hold it" or ""
      is.fail("%s: %s overlaps wall %d (%s): %s is inside its solid; move the robot with robot:at%s", what, robot.name,
        w, wall.family,
        particle_text(robot, x, p), clamp)
    end
  end
end

-- Raises an error if a robot of a new world starts outside of it or in a wall, where robot:with and robot:stretched
-- have put it, in any scene. The engine also needs the place of robot:at within the world. Returns whether they have
-- put it anywhere.
local function check_start(robot, walls, structs, domain)
  local given = values.spread(robot, "position")
  check_domain("cq.World", robot, robot.base.position:data(), domain)
  local position = given or robot.base.position
  local stride = robot.particle_count * domain.dim
  for scene = 0, position.count / stride - 1 do
    local x = position:data() + scene * stride
    check_domain("cq.World", robot, x, domain)
    check_walls("cq.World", robot, x, walls, structs, domain)
  end
  return given ~= nil
end

---Raises an error if particles start outside the world or within a wall.
---@param what string               for errors
---@param world cq.World
---@param position cq.Tensor        {n, dim} or {batch, n, dim} of all robots
function assembly.check_positions(what, world, position)
  local data, dim, n = position:data(), world.dim, world.particle_count
  for scene = 0, position.count / (n * dim) - 1 do
    for _, robot in ipairs(world.robots) do
      local x = data + (scene * n + robot.first) * dim
      check_domain(what, robot, x, world.domain)
      check_walls(what, robot, x, world.walls, world.layout.arrays.walls, world.domain)
    end
  end
end

---The walls of a world as an array of the engine's structs. Errors: two walls of one name; a wall of a wrong dimension.
---@return ffi.cdata* structs, table keep    memory that must live until the world is made
function assembly.walls(walls, domain)
  local structs, keep = ffi.new("cq_wall[?]", math.max(#walls, 1)), {}
  local named = { pins = "the pins" }
  for w, wall in ipairs(walls) do
    local dim, by = wall:dim()
    if wall.name and named[wall.name] then
      is.fail("cq.World: wall %d (%s) has the name %q, which is that of %s", w, wall.family, wall.name,
        named[wall.name])
    end
    if wall.name then named[wall.name] = "wall " .. w end
    if dim and dim ~= domain.dim then
      is.fail("cq.World: wall %d (%s) is %dD by its %s, the world is %dD", w, wall.family, dim, by, domain.dim)
    end
    C.cq_wall_init(structs[w - 1])
    keep[w] = wall:write(structs[w - 1], domain, C)
  end
  return structs, keep
end

-- Warns of walls that act on nothing, since no node of the grid is in their solid.
local function warn_of_thin(walls, domain)
  for w, wall in ipairs(walls) do
    if not wall:holds_node(domain) then
      message.warn("cq.World: wall %d (%s) has no node of the grid in its solid, so bodies pass through it; make it thicker than a cell, %s",
        w, wall.family, text.number(domain.dx))
    end
  end
end

-- Warns of solid bodies on the grid of the world whose particles are, on average, more than a cell apart: neighbours
-- then share few nodes, so that the body falls apart without any stress.
local function warn_of_sparse(robots, of_body, domain)
  for _, robot in ipairs(robots) do
    local spacing = robot.volume:mean():item() ^ (1 / domain.dim)
    local is_body = robot.particle_count > 1 and loose_of(robot) ~= true
    if is_body and of_body[robot.first] == ON_WORLD_GRID and spacing > 1.005 * domain.dx then
      message.warn("cq.World: particles of %s are about %s apart, %s cells of %s: a body tears where that is more than one; take more particles (spacing = dx / 2) or larger cells",
        robot.name, ("%.3g"):format(spacing), ("%.3g"):format(spacing / domain.dx), text.number(domain.dx))
    end
  end
end

local OVERLAP = 0.1              -- of the smaller robot: what is less may be a seam

-- The volume of a robot, in a batch the mean over its scenes.
local function volume_of(robot) return robot.volume:mean():item() * robot.particle_count end

-- Warns of two robots on the grid of the world that stand in each other.
local function warn_of_overlap(robots, of_body)
  for k, robot in ipairs(robots) do
    for j = 1, of_body[robot.first] == ON_WORLD_GRID and k - 1 or 0 do
      local other = robots[j]
      local least = math.min(volume_of(robot), volume_of(other))
      local share = of_body[other.first] == ON_WORLD_GRID and overlap(robot, other) / least or 0
      if share >= OVERLAP then
        message.warn("cq.World: robot %d (%s) stands in robot %d (%s), with about %.0f %% of the smaller one: masses and stresses of both add up there; move one with robot:at, or leave it out of the other's shape (shape - other)",
          k, robot.name, j, other.name, 100 * math.min(share, 1))
      end
    end
  end
end

-- The robots' tensors of one field as one tensor; nil where no robot has it. A robot without it has NaN.
local function joined(robots, entry)
  local list, any = {}, false
  for k, robot in ipairs(robots) do
    local own = robot.base[entry.name]
    any = any or own ~= nil
    list[k] = own or field.none(entry, entry.owner == "cable" and 0 or robot.particle_count, robot.dim)
  end
  -- a copy, also of a single robot's, which its user may write into
  if any then return T.concat(list, 1) end
end

-- Joins the fields of all robots' particles in `base`, and points the engine's def at them; mass is density times
-- volume.
local function fill_fields(def, robots, base)
  for _, entry in ipairs(field.of_robot) do
    local is_listed = entry.owner == "particle" or entry.owner == "constant" or entry.owner == "cable"
      or entry.name == "position"
    base[entry.name] = is_listed and joined(robots, entry) or nil
  end
  base.mass = base.density * base.volume
  for _, entry in ipairs(field.list) do
    if base[entry.name] then def.value[entry.id] = base[entry.name]:data() end
  end
end

-- The field of all robots' particles with the values that they have from robot:with, of a batch by which the body is
-- the quickest: the smallest density, the largest of a constant. nil: no robot has any.
local function with_values(robots, name)
  local list, any = {}, false
  for k, robot in ipairs(robots) do
    local own = values.base(robot, name)
    local given = values.spread(robot, name, robot)
    if given and given.rank > own.rank then given = name == "density" and given:min(1) or given:max(1) end
    any, list[k] = any or given ~= nil, given or own
  end
  return any and T.concat(list, 1) or nil
end

---Points the engine's def at the values that robots have from robot:with, so that a Courant number is that of their
---rollouts. Returns a function that points it back; nil where no robot has any.
---@param def ffi.cdata*          cq_world_def, filled
---@param robots cq.Robot[]
---@param base table              of the layout
---@return fun()?
function assembly.use_values(def, robots, base)
  local used = {}
  local density, volume = with_values(robots, "density"), with_values(robots, "volume")
  if density or volume then used.mass = (density or base.density) * (volume or base.volume) end
  for _, entry in ipairs(field.list) do
    local moves = entry.owner == "constant" or entry.owner == "cable"
    if moves then used[entry.name] = with_values(robots, entry.name) end
  end
  if not next(used) then return nil end
  -- Points def at the tensors of a table, of those fields that are used.
  local function point(to)
    for _, entry in ipairs(field.list) do
      if used[entry.name] then def.value[entry.id] = to[entry.name]:data() end
    end
  end
  point(used)
  return function() point(base) end
end

local LEAST_MOMENTUM = 1e-33     -- [mass length/time] shares of it at nodes are above the least float32 by 1e5

-- Warns of units in which momentum of the lightest particle, at a cell in a control step, is too small for float32.
local function warn_of_units(def, base)
  if def.precision ~= C.CQ_FLOAT32 then return end
  local momentum = base.mass:min():item() * def.dx / def.dt
  if momentum < LEAST_MOMENTUM then
    message.warn("cq.World: in these units the momentum of a particle is about %.1g, which float32 rounds to zero; take units of about the body's size, or precision = \"float64\"",
      momentum)
  end
end

-- Sets the materials of the engine's def, equal ones of several robots once, and each particle's number among them.
-- arrays: keeps the memory.
local function fill_materials(def, robots, arrays)
  local kinds, of = {}, {}
  arrays.material = ffi.new("int32_t[?]", def.particle_count)
  local p = 0
  for _, robot in ipairs(robots) do
    for k = 0, robot.particle_count - 1 do
      local law = robot.laws[robot.law[k] + 1]
      local key = law:engine_key()
      if not of[key] then
        kinds[#kinds + 1] = law
        of[key] = #kinds - 1
      end
      arrays.material[p] = of[key]
      p = p + 1
    end
  end
  arrays.materials, arrays.averaging = ffi.new("cq_material[?]", #kinds), ffi.new("double[?]", #kinds)
  for k, law in ipairs(kinds) do
    local material = arrays.materials[k - 1]
    material.kind, material.elasticity, material.incompressible = law.kind, law.elasticity, law.incompressible
    material.viscous, material.branches = law.viscous, law.branches
    arrays.averaging[k - 1] = law.f_bar
  end
  def.material, def.material_count, def.materials = arrays.material, #kinds, arrays.materials
  def.f_bar = arrays.averaging
end

-- Sets the pinned particles in the engine's def, and the group of each, which has an impulse of its own: a name that is
-- pinned; all particles of a robot that are pinned by number are one group without a name. Returns the count of
-- particles, and a list of groups { robot, name }.
local function fill_pins(def, robots, arrays)
  local list, of, groups = {}, {}, {}
  for _, robot in ipairs(robots) do
    local seen = {}
    for _, pin in ipairs(robot.pins) do
      local name = type(pin) == "string" and pin or nil
      local group = seen[name or 0]
      if not group then
        groups[#groups + 1] = { robot = robot, name = name }
        group = #groups
        seen[name or 0] = group
      end
      local index, count = robot:select({ pin }, "cq.Robot: pins")
      for k = 0, count - 1 do list[#list + 1], of[#of + 1] = index[k] + robot.first, group - 1 end
    end
  end
  arrays.pins = ffi.new("int32_t[?]", math.max(#list, 1), list)
  arrays.pin_group = ffi.new("int32_t[?]", math.max(#list, 1), of)
  def.pin_count, def.pins, def.pin_group, def.pin_group_count = #list, arrays.pins, arrays.pin_group, #groups
  return #list, groups
end

---Stress signals of all robots: their directions, and an entry for every particle that follows one.
---@return table layout     { stresses, entry_count, weight {entries} }; sets entry_first and entry_count of each robot
local function fill_stresses(def, robots, arrays)
  local layout = { stresses = {}, entry_count = 0 }
  for _, robot in ipairs(robots) do
    robot.entry_first = layout.entry_count
    for _, stress in ipairs(robot.stresses) do
      layout.stresses[#layout.stresses + 1] = { signal = robot.signal_first + stress.signal, scale = stress.scale,
        shift = stress.shift }
      layout.entry_count = layout.entry_count + stress.count
    end
    robot.entry_count = layout.entry_count - robot.entry_first
  end
  local dd, entries = def.dim * def.dim, layout.entry_count
  arrays.direction = ffi.new("double[?]", math.max(#layout.stresses * dd, 1))
  arrays.particle = ffi.new("int32_t[?]", math.max(entries, 1))
  arrays.actuator = ffi.new("int32_t[?]", math.max(entries, 1))
  layout.weight = T.ones { entries }
  local weight, e, a = layout.weight:data(), 0, 0
  for _, robot in ipairs(robots) do
    for _, stress in ipairs(robot.stresses) do
      for k = 1, dd do arrays.direction[a * dd + k - 1] = stress.stress[k] end
      for k = 0, stress.count - 1 do
        arrays.particle[e] = robot.first + (stress.index and stress.index[k] or k)
        arrays.actuator[e] = a
        if stress.weighed then weight[e] = 0 end
        e = e + 1
      end
      a = a + 1
    end
  end
  def.actuator_count, def.actuator_direction = a, arrays.direction
  def.actuation_count, def.actuation_particle, def.actuation_actuator = entries, arrays.particle, arrays.actuator
  def.actuation_weight = layout.weight:data()
  return layout
end

-- Sets the particles that force actuators push, each once, since several actuators may share one. Returns { actuators:
-- a list with the particles, slots in the list and signals of each, count: particles, stepped: is any evaluated at
-- every engine step? }.
local function fill_forces(def, robots, arrays)
  local layout, of, list = { actuators = {} }, {}, {}
  for _, robot in ipairs(robots) do
    for _, force in ipairs(robot.forces) do
      local slots, particles = ffi.new("int32_t[?]", force.count), {}
      for k = 0, force.count - 1 do
        local p = robot.first + force.index[k]
        if not of[p] then
          list[#list + 1] = p
          of[p] = #list - 1
        end
        slots[k], particles[k + 1] = of[p], force.index[k] + 1
      end
      layout.actuators[#layout.actuators + 1] = {
        actuator = force.actuator, count = force.count, slots = slots, robot = robot, particles = particles,
        first = robot.signal_first + force.first, signals = force.signals,
        per_control_step = force.actuator.every ~= "engine_step",
      }
      layout.stepped = layout.stepped or force.actuator.every == "engine_step"
    end
  end
  layout.count = #list
  arrays.forces = ffi.new("int32_t[?]", math.max(#list, 1), list)
  def.force_count, def.force_particle = #list, arrays.forces
  return layout
end

-- Sets the bodies of the engine's def: each robot whose steps are total Lagrangian, of itself or of the world, is a
-- body with a grid of its own. Returns which steps the world then has, those of all robots or "by robot", and the names
-- of the bodies.
local function fill_bodies(def, robots, arrays)
  local usual = def.formulation == C.CQ_FORMULATION_TOTAL_LAGRANGIAN and "total_lagrangian" or "updated"
  local names = {}
  arrays.body = ffi.new("int32_t[?]", math.max(tonumber(def.particle_count), 1))
  for _, robot in ipairs(robots) do
    local own = (robot.formulation or usual) == "total_lagrangian"
    local body = own and #names or ON_WORLD_GRID
    for p = robot.first, robot.first + robot.particle_count - 1 do arrays.body[p] = body end
    if own then names[#names + 1] = robot.name end
  end
  local count = #names
  def.formulation = count > 0 and C.CQ_FORMULATION_TOTAL_LAGRANGIAN or C.CQ_FORMULATION_UPDATED
  def.body_count, def.body = count, count > 0 and arrays.body or nil
  return count == 0 and "updated" or count == #robots and "total_lagrangian" or "by robot", names
end

---A function that puts the robot's name in the place of "body N" at the beginning of the engine's sentence.
---@param layout table       as fill returns it
---@return fun(sentence: string): string
function assembly.naming(layout)
  return function(sentence)
    return (sentence:gsub("^body (%d+)", function(body) return layout.bodies[tonumber(body)] end))
  end
end

---Fills the engine's def from robots and walls. Sets first, signal_first, entry_first, entry_count of each robot.
---Errors: a robot of another dimension than the world, outside of it, or in a wall.
---@param def ffi.cdata*          cq_world_def, grid and time filled
---@param robots cq.Robot[]
---@param walls cq.Boundary[]
---@param domain { dim: integer, dx: number, size: number[] }
---@return table layout           { signal_count, base, arrays, moved: has a robot places by robot:with or stretched?,
---  formulation, bodies, pin_count, pin_groups, stress, force, cable, surface }
function assembly.fill(def, robots, walls, domain)
  local arrays, count, signals, moved = {}, 0, 0, false
  arrays.walls, arrays.heights = assembly.walls(walls, domain)
  for _, robot in ipairs(robots) do
    if robot.dim ~= domain.dim then
      is.fail("cq.World: %s is %dD, the world is %dD by its cells", robot.name, robot.dim, domain.dim)
    end
    moved = check_start(robot, walls, arrays.walls, domain) or moved
    robot.first, robot.signal_first = count, signals
    count, signals = count + robot.particle_count, signals + robot.actuator_count
  end
  local layout = { signal_count = signals, base = {}, arrays = arrays, moved = moved }
  local base = layout.base
  def.particle_count = count
  fill_fields(def, robots, base)
  warn_of_units(def, base)
  layout.formulation, layout.bodies = fill_bodies(def, robots, arrays)
  if layout.formulation ~= "total_lagrangian" then warn_of_thin(walls, domain) end
  warn_of_sparse(robots, arrays.body, domain)
  warn_of_overlap(robots, arrays.body)
  def.wall_count, def.walls = #walls, arrays.walls
  fill_materials(def, robots, arrays)
  layout.pin_count, layout.pin_groups = fill_pins(def, robots, arrays)
  layout.stress = fill_stresses(def, robots, arrays)
  layout.force = fill_forces(def, robots, arrays)
  layout.cable = cables.fill(def, robots, domain.dx)
  layout.surface = surfaces.fill(def, robots)
  base.actuation_weight = layout.stress.weight
  return layout
end

return assembly
