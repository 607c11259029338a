-- surface: walls that a pressure pushes on, of the cavities of a lattice, of a mesh by their names, or given ones.
-- Closed ones are chambers, with corners and faces (chamber.lua); open ones are particles with the area vectors N A of
-- the undeformed body, N out of the solid.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local vectors = require "cq.base.vector"
local cavity = require "cq.shape.cavity"
local chamber = require "cq.actuator.chamber"
local selection = require "cq.robot.selection"
local T = require "cq.tensor"

---@class cq.Surface
---@field name string
---@field actuator cq.Actuator
---@field chamber table?         of a closed surface, see chamber.lua
---@field index integer[]        particles, from 0: those that carry the corners of a chamber, or those of an open
---  surface
---@field area cq.Tensor?        {m, dim} N A of an open surface [length^(dim-1)]
---@field walls table             of a closed surface: index and area, as of an open one
---@field stress integer         its place among the robot's signals to the engine, from 1

local surface = {}

local WHAT = "cq.Actuator.follower_pressure: surface"

-- A list of the numbers, from 0, of the robot's particles that a selection has; of all particles where `which` is nil.
local function list_of(robot, which)
  local out = {}
  if which == nil then
    for p = 0, robot.particle_count - 1 do out[p + 1] = p end
    return out
  end
  local index, count = robot:select(which, WHAT)
  for k = 0, count - 1 do out[k + 1] = index[k] end
  return out
end

-- ---- walls of a mesh ------------------------------------------------------------------------------------------------

-- The sum {dim} of area vectors, which is zero for a closed surface, and the sum of their lengths.
local function sum_of(area, dim)
  local sum, size = {}, 0
  for _, vector in ipairs(area) do
    local square = 0
    for i = 1, dim do
      sum[i] = (sum[i] or 0) + vector[i]
      square = square + vector[i] * vector[i]
    end
    size = size + math.sqrt(square)
  end
  return sum, size
end

-- An empty record of walls: lists of particles (index, from 0), area vectors, corners (flat coordinates) and faces.
local function no_walls() return { index = {}, area = {}, corner = {}, face = {} } end

-- Appends the particles (from 0), area vectors, corners and faces of a cq.Wall, whose particles count from 1, to the
-- record `out` of no_walls, and returns `out`.
local function add_wall(out, wall, dim)
  for k, p in ipairs(wall.particle) do
    local n = #out.index + 1
    out.index[n], out.area[n] = p - 1, {}
    for i = 1, dim do out.area[n][i] = wall.area[(k - 1) * dim + i] end
  end
  local before = #out.corner / dim
  for _, x in ipairs(wall.corner) do out.corner[#out.corner + 1] = x end
  for _, k in ipairs(wall.face) do out.face[#out.face + 1] = before + k end
  return out
end

-- Raises an error if a closed wall of a robot's shape, one of robot.walls, was opened by a difference, an intersection
-- or another shape. walls: the same wall as a record of add_wall.
local function check_closed(robot, name, wall, walls)
  if wall.closed or not wall.chamber then return end
  local sum, size = sum_of(walls.area, robot.dim)
  local square = 0
  for i = 1, robot.dim do square = square + (sum[i] or 0) * (sum[i] or 0) end
  is.fail("%s: the chamber \"%s\" of %s is open, a part of its walls was taken away: its area vectors sum to %.3g, %.3g of what is left; do not "
    .. "cut the shape there", WHAT, name, robot.name, math.sqrt(square), math.sqrt(square) / math.max(size, 1e-300))
end

-- Joins the walls of a robot that have the given name, or names, in one record of add_wall, with closed: are all of
-- them closed? Errors: an unknown name, or one given twice; a chamber that was cut open.
local function of_names(robot, given)
  local out, seen = no_walls(), {}
  out.closed = true
  for _, name in ipairs(type(given) == "string" and { given } or given) do
    if seen[name] then is.fail("%s: the walls \"%s\" of %s are named twice", WHAT, name, robot.name) end
    seen[name] = true
    local wall = robot.walls[name]
    if not wall then
      is.fail("%s: %s has no walls of the name %s%s; %s", WHAT, robot.name, text.describe(name),
        type(name) == "string" and text.suggestion(name, robot.wall_names) or "",
        #robot.wall_names > 0 and "it has " .. table.concat(robot.wall_names, ", ")
          or "those of a cq.Shape.tetrahedra or a cq.Shape.mesh have names; give inside = a place in the cavity")
    end
    if #wall.particle == 0 then is.fail("%s: nothing is left of the walls \"%s\" of %s", WHAT, name, robot.name) end
    check_closed(robot, name, wall, add_wall(no_walls(), wall, robot.dim))
    add_wall(out, wall, robot.dim)
    out.closed = out.closed and wall.closed
  end
  return out
end

-- Winding number of a wall around a place: the flux of a source there through the wall's area vectors. 1 within a
-- cavity whose vectors point inwards, 0 outside, between the two near the wall.
local function winding(robot, wall, place)
  local x, dim, sum = robot.position:data(), robot.dim, 0
  for k, p in ipairs(wall.particle) do
    local square, along = 0, 0
    for i = 1, dim do
      local j = (k - 1) * dim + i
      local d = place[i] - (x[(p - 1) * dim + i - 1] + wall.arm[j])
      square, along = square + d * d, along + d * wall.area[j]
    end
    if square > 0 then sum = sum + along / square ^ (dim / 2) end
  end
  return sum / (dim == 2 and 2 * math.pi or 4 * math.pi)
end

-- The named wall of the robot that closes around a place, as of_names gives it; nil: there is none, and the robot has
-- no mesh. Of several the one with the fewest faces: of copies in a row, the name of all stands before that of each.
-- Errors: the robot's mesh has no such wall.
local function of_mesh(robot, place)
  local meshed, found
  for _, name in ipairs(robot.wall_names) do
    local wall = robot.walls[name]
    meshed = meshed or wall.meshed
    local fewer = not found or #wall.face < #robot.walls[found].face
    if fewer and wall.closed and #wall.particle > 0 and winding(robot, wall, place) > 0.5 then found = name end
  end
  if found then return of_names(robot, found) end
  if meshed then
    is.fail("%s: the place %s is in no closed cavity of %s; its walls are %s", WHAT, text.place(place), robot.name,
      table.concat(robot.wall_names, ", "))
  end
end

-- The closed walls of the cavity around the place given.inside, a record as of add_wall: the closed wall of a mesh, or,
-- on a lattice or with given.group, the faces of particles around the empty space. Errors: no place; no cavity around
-- it.
local function of_cavity(robot, given)
  local place, numbers = given.inside, type(given.inside) == "table" and #given.inside == robot.dim
  for i = 1, robot.dim do numbers = numbers and type(place[i]) == "number" end
  if not numbers then
    is.fail("%s: inside must be a place { %s } in the cavity, got %s", WHAT, robot.dim == 2 and "x, y" or "x, y, z",
      text.describe(place))
  end
  local meshed = given.group == nil and of_mesh(robot, place)
  if meshed then return meshed end
  local body = { what = WHAT, name = robot.name, dim = robot.dim, position = robot.position:data(),
    size = robot.volume:get(1) ^ (1 / robot.dim), list = list_of(robot, given.group) }
  local walls = add_wall(no_walls(), cavity.walls(body, place), robot.dim)
  walls.closed = true
  return walls
end

-- ---- given walls ----------------------------------------------------------------------------------------------------

-- The open wall that a user gives as particles, areas and normals: { index: from 0, area: vectors of length area along
-- the normals }. Errors: areas or normals that are no numbers, or of the wrong sign or size.
local function of_list(robot, given)
  local dim = robot.dim
  local out = { index = list_of(robot, given.particles), area = {} }
  local each = type(given.normal) == "table" and type(given.normal[1]) == "table"
  local particles = given.particles
  local lists = { particles = type(particles) == "table" and not getmetatable(particles) and particles,
    area = type(given.area) == "table" and given.area, normal = each and given.normal }
  for _, name in ipairs { "particles", "area", "normal" } do
    local given_count = lists[name] and #lists[name] or 0
    if given_count > #out.index then
      is.fail("%s: the list %s has %d, for %s%s", WHAT, name, given_count, text.count(#out.index, "particle"),
        name == "particles" and ": some are named twice" or "")
    end
  end
  for k = 1, #out.index do
    local area = type(given.area) == "table" and given.area[k] or given.area
    local normal = each and given.normal[k] or given.normal
    if type(area) ~= "number" or not (area >= 0 and area < math.huge) then
      is.fail("%s: area must be a number, or one for each of %s, at least 0, got %s", WHAT,
        text.count(#out.index, "particle"), text.describe(area))
    end
    for i = 1, dim do
      local x = type(normal) == "table" and normal[i]
      if type(x) ~= "number" or x - x ~= 0 then
        is.fail("%s: normal must be a vector of %d numbers, or one for each of %s, got %s", WHAT, dim,
          text.count(#out.index, "particle"),
          text.describe(normal))
      end
    end
    local square, scale = vectors.square(normal, dim)
    if scale == 0 then is.fail("%s: a normal must not be the zero vector", WHAT) end
    out.area[k] = {}
    for i = 1, dim do out.area[k][i] = area * (normal[i] / scale) / math.sqrt(square) end
  end
  return out
end

-- The walls on which a pressure acts, { index, area, closed, corner, face }, from the actuator's field `surface`:
-- names, a place in a cavity, or a list.
local function walls_for(robot, given)
  if type(given) == "string" or type(given[1]) == "string" then return of_names(robot, given) end
  return given.inside and of_cavity(robot, given) or of_list(robot, given)
end

---The cq.Surface of an actuator: with a chamber if its walls are closed, else with their particles and area vectors.
---@param robot cq.Robot
---@param actuator cq.Actuator
---@param name string           of its signal
---@return cq.Surface
function surface.bind(robot, actuator, name)
  local walls = walls_for(robot, actuator.surface)
  if not walls.closed then
    return { name = name, actuator = actuator, index = walls.index, area = T.tensor(walls.area) }
  end
  local closed = T.tape.pause(chamber.bind, robot, walls)
  return { name = name, actuator = actuator, index = closed.index, chamber = closed }
end

-- ---- the engine -----------------------------------------------------------------------------------------------------

-- Fills def's structs of chambers, the closed surfaces under a pressure. layout: gets the structs and their arrays, so
-- that they are not collected.
local function fill_chambers(def, layout)
  local list = {}
  for _, entry in ipairs(layout.list) do list[#list + 1] = entry.surface.chamber and entry or nil end
  layout.chamber, layout.kept = ffi.new("cq_chamber[?]", math.max(#list, 1)), {}
  for k, entry in ipairs(list) do
    layout.chamber[k - 1].actuator = entry.actuator
    layout.kept[k] = chamber.fill(entry.surface.chamber, layout.chamber[k - 1], entry.robot.first, def.dim)
  end
  def.chamber_count, def.chambers = #list, layout.chamber
end

---Writes the surfaces of all robots into the engine's def. The layout lists them and holds the arrays to which def
---points: it must live as long as def.
---@param def ffi.cdata*          cq_world_def
---@param robots cq.Robot[]
---@return { list: { robot: cq.Robot, surface: cq.Surface, actuator: integer }[] } layout
function surface.fill(def, robots)
  local layout, first, count = { list = {} }, 0, 0
  for _, robot in ipairs(robots) do
    for _, one in ipairs(robot.surfaces) do
      local open = one.area and one or nil
      layout.list[#layout.list + 1] = { robot = robot, surface = one, open = open, actuator = first + one.stress - 1 }
      count = count + (open and #open.index or 0)
    end
    first = first + #robot.stresses
  end
  fill_chambers(def, layout)
  local dim, k = def.dim, 0
  layout.particle, layout.actuator = ffi.new("int32_t[?]", math.max(count, 1)),
    ffi.new("int32_t[?]", math.max(count, 1))
  layout.area = ffi.new("double[?]", math.max(count * dim, 1))
  for _, entry in ipairs(layout.list) do
    local area = entry.open and entry.open.area:data()
    for m, p in ipairs(area and entry.open.index or {}) do
      layout.particle[k], layout.actuator[k] = entry.robot.first + p, entry.actuator
      for i = 0, dim - 1 do layout.area[k * dim + i] = area[(m - 1) * dim + i] end
      k = k + 1
    end
  end
  def.surface_count, def.surface_particle, def.surface_actuator, def.surface_area = count, layout.particle,
    layout.actuator, layout.area
  return layout
end

-- ---- the volume of a cavity -----------------------------------------------------------------------------------------

-- The entry of the list of surfaces whose actuator or name is `which`, of one robot if that is given. Errors: no
-- entry has it, or several do.
local function find(world, which, robot)
  local names, found = {}, nil
  robot = robot and selection.robot(world, robot, "state:cavity_volume")
  for _, entry in ipairs(world.layout.surface.list) do
    local is_it = entry.surface.actuator == which or entry.surface.name == which
    if is_it and (not robot or entry.robot == robot) then
      if found then
        is.fail("state:cavity_volume: there are several of \"%s\"; %s", entry.surface.name, found.robot == entry.robot
          and "give the actuators of one robot different names"
          or "say of which robot, state:cavity_volume(actuator, world.robots[i])")
      end
      found = entry
    end
    names[#names + 1] = ("\"%s\""):format(entry.surface.name)
  end
  if found then return found end
  is.fail("state:cavity_volume: takes a cq.Actuator.follower_pressure of a robot in the world, or its name, got %s; there %s", text.describe(which),
    #names == 0 and "is none" or (#names == 1 and "is " or "are ") .. table.concat(names, ", "))
end

-- A list of the coordinates of positions {..., m, dim}: a tensor {..., m} for each axis.
local function coordinates(x, dim)
  local out = {}
  for i = 1, dim do out[i] = x:slice(i, i, -1):squeeze(-1) end
  return out
end

---The volume of a closed chamber in a state, differentiable.
---@param state cq.State
---@param entry table     of world.layout.surface.list
---@return cq.Tensor      one number, or {batch}
function surface.volume_of(state, entry)
  local world, closed = state.world, entry.surface.chamber
  if not entry.selection then
    local numbers = {}
    for k, p in ipairs(closed.index) do numbers[k] = p + 1 end
    entry.selection = world:remember_selection(numbers, entry.robot.first)
  end
  return chamber.volume(closed, coordinates(state:gather(entry.selection), world.dim))
end

-- The volume, a number, that the chamber of a list entry encloses at rest.
local function volume_drawn(entry)
  local closed, rows = entry.surface.chamber, {}
  for k, p in ipairs(closed.index) do rows[k] = p + 1 end
  return chamber.volume(closed, coordinates(entry.robot.base.position:gather(rows, 1), entry.robot.dim)):item()
end

---The closed cavity whose volume in a state is the largest multiple of its volume at rest, `drawn`: the error of a
---rollout whose walls cannot bear a pressure names it.
---@param state cq.State
---@param scene integer      of a batch, from 1
---@return { name: string, robot: string, volume: number, drawn: number }?     nil: there is none
function surface.most_expanded(state, scene)
  local most
  for _, entry in ipairs(state.world.layout.surface.list) do
    if entry.surface.chamber then
      local volume, drawn = surface.volume_of(state, entry):reshape({ -1 }):totable()[scene], volume_drawn(entry)
      if not most or volume / drawn > most.volume / most.drawn then
        most = { name = entry.surface.name, robot = entry.robot.name, volume = volume, drawn = drawn }
      end
    end
  end
  return most
end

---The volume that a chamber encloses in a state, by its actuator or its name. Errors: an open surface; several of them.
---@param state cq.State
---@param which cq.Actuator|string
---@param robot? cq.Robot     whose chamber it is, where several robots have one of this name
---@return cq.Tensor      one number, or {batch}
function surface.volume(state, which, robot)
  robot = is.argument("state:cavity_volume", "robot", is.instance { "cq.Robot", optional = true }, robot)
  local entry = find(state.world, which, robot)
  if not entry.surface.chamber then
    is.fail("state:cavity_volume: the surface \"%s\" is open, so that it encloses no volume", entry.surface.name)
  end
  return surface.volume_of(state, entry)
end

return surface
