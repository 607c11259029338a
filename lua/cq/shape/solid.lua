-- solid: bodies of the tetrahedra, or in the plane of the triangles, of a Gmsh file: a particle for each.
--
--   local finger = cq.Shape.tetrahedra { path = "finger.msh", scale = 1e-3 }      -- drawn in mm
--
-- Physical groups of the file are groups: of volumes by their tetrahedra, of surfaces by those that have a face there.
-- A physical surface is a wall, too, which a pressure may push on: its area vectors point out of the solid.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local class = require "cq.shape.class"
local cloud = require "cq.shape.cloud"
local locate = require "cq.base.locate"

local C, check = engine.C, engine.check

---Bodies from Gmsh files.
---@class cq.Shape.solid.def
---@field path string             .msh of Gmsh, from the working directory, else the script's folder, else cqlua's
---@field scale? number           of the file's numbers, 1 unless given: 1e-3 for a drawing in mm and a world in m; or length
---@field length? number          of the longest side of the box that holds it [length]; or scale
---@field at? number[]            {dim} lower corner of the box that holds it; where the file has it unless given [length]
---@field name? string            all its particles are a group of this name
---@field chambers? string[]      physical surfaces (curves in the plane) that must be closed around a cavity; those whose names begin
---  with "chamber" unless given

---@class cq.Shape.tetrahedra.def : cq.Shape.solid.def

---@class cq.Shape.triangles.def : cq.Shape.solid.def

-- The schema of a shape from a Gmsh file, in 2D or 3D.
local function define(name, dim)
  return is.define("cq.Shape." .. name, {
    path = is.string(),
    scale = is.number { above = 0, optional = true },
    length = is.number { above = 0, optional = true },
    at = is.vector { size = dim, optional = true },
    name = is.string { optional = true },
    chambers = is.list(is.string(), { optional = true }),
  })
end

-- ---- the file -------------------------------------------------------------------------------------------------------

-- Reads a Gmsh file; returns the engine's cq_solid, freed when Lua collects it. Errors: those of the file.
local function open(what, path, dim)
  local out = ffi.new "cq_solid *[1]"
  check(C.cq_solid_open(locate(path), dim, out), what)
  return ffi.gc(out[0], C.cq_solid_close)
end

-- The physical groups of a file as a list of { name, cell, count }; cell: int32_t[count], the cells in it from 0.
local function groups_of(solid)
  local list, count = {}, ffi.new "int64_t[1]"
  for g = 0, math.huge do
    local name = C.cq_solid_group(solid, g, count)
    if name == nil then return list end
    local cell = ffi.new("int32_t[?]", count[0])
    C.cq_solid_group_cells(solid, g, cell)
    list[g + 1] = { name = ffi.string(name), cell = cell, count = tonumber(count[0]) }
  end
end

-- The walls of a file as a list of { info, number, name, closed }: its physical surfaces, then the cavities that it
-- does not name. number: from 0.
local function walls_of(solid, info, what)
  local list = {}
  for k = 0, info.wall_count - 1 do
    local one = ffi.new "cq_solid_wall_info"
    check(C.cq_solid_wall(solid, k, one), what)
    list[k + 1] = {
      info = one, number = k, name = ffi.string(one.name), closed = one.open_count == 0 and one.face_count > 0,
    }
  end
  return list
end

-- ---- chambers -------------------------------------------------------------------------------------------------------

-- The length of a vector.
local function length_of(vector, dim)
  local square = 0
  for d = 0, dim - 1 do square = square + vector[d] * vector[d] end
  return math.sqrt(square)
end

local NOUNS = { [2] = { cells = "triangles", faces = "lines", rims = "ends" },
  [3] = { cells = "tetrahedra", faces = "triangles", rims = "edges" } }

-- Raises an error for a wall that cannot be a chamber: filled, without faces, open, or around the outside.
local function check_chamber(what, def, wall, dim)
  local info, nouns = wall.info, NOUNS[dim]
  -- Raises an error: this chamber of the file cannot be used; sentence: the reason, a format.
  local function refuse(sentence, ...)
    is.fail("%s: the chamber \"%s\" of '%s' %s", what, wall.name, def.path, sentence:format(...))
  end
  if info.between > 0 then
    refuse("has %s between two %s each: a chamber must be empty; leave what is in it out of the mesh",
      text.count(tonumber(info.between), nouns.faces:sub(1, -2)), nouns.cells)
  end
  if info.face_count == 0 then
    refuse("has no %s: none of the file's is in that physical %s; save all elements, or leave out its name",
      nouns.faces, dim == 3 and "surface" or "curve")
  end
  local sum, at = length_of(info.sum, dim), {}
  if not wall.closed then
    for d = 1, dim do at[d] = tonumber(("%.4g"):format(info.open_at[d - 1])) end
    refuse("is open: %d of the %s of its %s have no neighbour, one of them at %s of the file, and its area vectors sum to %.3g, %.3g of its area; "
      .. "name all walls of the chamber, or, if it is none, give chambers = { ... } without it",
      tonumber(info.open_count), nouns.rims, nouns.faces, text.place(at), sum, sum / info.area)
  end
  if not (sum <= 1e-9 * info.area) then
    refuse("does not close: its area vectors sum to %.3g, %.3g of its area", sum, sum / info.area)
  end
  if info.volume <= 0 then refuse("holds the outside of a body: it must be the walls of a cavity alone") end
end

-- Sets `chamber` of each wall of the file that is one: those that the user names, else those whose names begin with
-- "chamber". Errors: a name that the file lacks; a wall that cannot be a chamber.
local function mark_chambers(what, def, walls, dim)
  local by_name, names = {}, {}
  for k, wall in ipairs(walls) do by_name[wall.name], names[k] = wall, wall.name end
  if def.chambers then
    for _, name in ipairs(def.chambers) do
      if not by_name[name] then
        is.fail("%s: chambers: '%s' has no physical %s \"%s\"%s; it has %s", what, def.path,
          dim == 3 and "surface" or "curve", name, text.suggestion(name, names),
          #names > 0 and table.concat(names, ", ") or "none")
      end
      by_name[name].chamber = true
    end
  else
    for _, wall in ipairs(walls) do wall.chamber = wall.name:sub(1, 7) == "chamber" end
  end
  for _, wall in ipairs(walls) do
    if wall.chamber then check_chamber(what, def, wall, dim) end
  end
end

-- ---- particles ------------------------------------------------------------------------------------------------------

-- Appends the faces of a wall of the file to the wall `one` of a cloud, and their corners, each node of the file once.
local function add_faces(one, body, wall)
  local dim, count = body.dim, tonumber(wall.info.face_count)
  local node, place, of = ffi.new("int32_t[?]", count * dim), ffi.new("double[?]", count * dim * dim), {}
  C.cq_solid_wall_faces(body.solid, wall.number, node, place)
  for k = 0, count * dim - 1 do
    if not of[node[k]] then
      of[node[k]] = #one.corner / dim + 1
      for d = 1, dim do one.corner[#one.corner + 1] = body.place(d, place[k * dim + d - 1]) end
    end
    one.face[#one.face + 1] = of[node[k]]
  end
end

-- Adds a body's walls to the cloud `out` of its particles: for each the particles beside it, their areas, arms and
-- faces. A wall without cells, or of a name that is there already, is left out.
local function add_walls(out, body)
  local solid, dim, scale = body.solid, body.dim, body.scale
  for _, wall in ipairs(body.walls) do
    local count = tonumber(wall.info.cell_count)
    local cell, area, arm = ffi.new("int32_t[?]", count), ffi.new("double[?]", count * dim),
      ffi.new("double[?]", count * dim)
    -- a cavity of the file's own that has the name of a physical surface stays hidden behind it
    if count > 0 and not out.walls[wall.name] then
      C.cq_solid_wall_cells(solid, wall.number, cell, area, arm)
      local one = cloud.wall(out, wall.name)
      one.chamber, one.closed, one.meshed = wall.chamber or false, wall.closed, true
      for k = 0, count - 1 do one.particle[k + 1] = cell[k] + 1 end
      for k = 0, count * dim - 1 do
        one.area[k + 1], one.arm[k + 1] = scale ^ (dim - 1) * area[k], scale * arm[k]
      end
      add_faces(one, body, wall)
    end
  end
end

-- A function that gives the particles of a body as a cloud. body.place(d, x) turns the file's coordinate x along axis d
-- into the shape's.
local function filler(body)
  return function()
    local out, dim, solid = cloud.new(body.dim), body.dim, body.solid
    local n = tonumber(body.info.cell_count)
    local x, volume = ffi.new("double[?]", n * dim), ffi.new("double[?]", n)
    C.cq_solid_cells(solid, x, volume)
    for p = 0, n - 1 do
      local k = p * dim
      cloud.add(out, body.scale ^ dim * volume[p], body.place(1, x[k]), body.place(2, x[k + 1]),
        dim == 3 and body.place(3, x[k + 2]) or nil)
    end
    for _, entry in ipairs(body.groups) do
      local group = cloud.group(out, entry.name)
      for k = 0, entry.count - 1 do group[k + 1] = entry.cell[k] + 1 end
    end
    add_walls(out, body)
    if body.name then cloud.all(out, body.name) end
    return out
  end
end

-- A function that gives the triangles of a body's surface, for pictures: their corners {triangles, 3, 3} as double*,
-- and their number.
local function surface_of(body)
  return function()
    local count = tonumber(body.info.face_count)
    local corner = ffi.new("double[?]", 9 * count)
    C.cq_solid_corners(body.solid, corner)
    for k = 0, 9 * count - 1 do corner[k] = body.place(k % 3 + 1, corner[k]) end
    return corner, count
  end
end

-- The sum of the volumes of all cells, in the file's unit.
local function total_volume(solid, info, dim)
  local n = tonumber(info.cell_count)
  local x, volume, sum = ffi.new("double[?]", n * dim), ffi.new("double[?]", n), 0
  C.cq_solid_cells(solid, x, volume)
  for p = 0, n - 1 do sum = sum + volume[p] end
  return sum
end

-- The factor from the file's unit to the script's: def.scale, or by the body's longest side and def.length, else 1.
-- Errors: both are given.
local function scale_of(what, def, info, dim)
  if def.length and def.scale then is.fail("%s: give either length or scale, not both", what) end
  local longest = 0
  for d = 0, dim - 1 do longest = math.max(longest, info.upper[d] - info.lower[d]) end
  return def.length and def.length / longest or def.scale or 1
end

-- A shape of the cells of a Gmsh file, scaled, with its lower corner at def.at. what: its constructor, for errors.
-- Errors: those of the file; a def.name that one of its groups has.
local function new(what, def, dim)
  local solid, info = open(what, def.path, dim), ffi.new "cq_solid_info"
  C.cq_solid_describe(solid, info)
  local scale, lower, upper = scale_of(what, def, info, dim), {}, {}
  for d = 1, dim do
    lower[d] = def.at and def.at[d] or scale * info.lower[d - 1]
    upper[d] = lower[d] + scale * (info.upper[d - 1] - info.lower[d - 1])
  end
  local body = { dim = dim, solid = solid, info = info, scale = scale, name = def.name, groups = groups_of(solid) }
  for _, entry in ipairs(body.groups) do
    if entry.name == def.name then
      is.fail("%s: name: '%s' has a physical group \"%s\" of its own; take another name", what, def.path, def.name)
    end
  end
  body.walls = walls_of(solid, info, what)
  mark_chambers(what, def, body.walls, dim)
  -- The coordinate along axis d of the shape, from that of the file.
  function body.place(d, x) return lower[d] + scale * (x - info.lower[d - 1]) end
  local point, answer = ffi.new "double[3]", ffi.new "uint8_t[1]"
  -- Is a place inside the body?
  local function inside(x, y, z)
    point[0], point[1] = info.lower[0] + (x - lower[1]) / scale, info.lower[1] + (y - lower[2]) / scale
    if dim == 3 then point[2] = info.lower[2] + (z - lower[3]) / scale end
    check(C.cq_solid_inside(solid, 1, point, answer))
    return answer[0] == 1
  end
  return class.new {
    kind = dim == 3 and "tetrahedra" or "triangles", name = def.name, dim = dim, lower = lower, upper = upper,
    exact = scale ^ dim * total_volume(solid, info, dim), inside = inside, fill = filler(body),
    surface = dim == 3 and surface_of(body) or nil,
  }
end

local solid = {}
local in_space, in_plane = define("tetrahedra", 3), define("triangles", 2)

---A body of the tetrahedra of a Gmsh file (MSH 2.2, 4.0 or 4.1, text or bytes): a particle at the centre of each, with
---its volume. Physical groups are groups: of a volume its tetrahedra, of a surface those with a face there. Any
---physical surface is what cq.Actuator.follower_pressure { surface = "name" } pushes on; one whose name begins with
---"chamber" must be closed. Cavities that have no name are "cavity_1", "cavity_2", ... in the order of their places. Of
---curved elements the corners are taken.
---Errors: a file that is damaged or of another version; no tetrahedra, or other elements that fill space; tetrahedra
---that are flat, inverted or lie on each other; an open chamber.
---@param fields cq.Shape.tetrahedra.def
---@return cq.Shape
function solid.tetrahedra(fields) return new("cq.Shape.tetrahedra", in_space(fields), 3) end

---A body in the plane of the triangles of a Gmsh file, which have one z; all else is as with cq.Shape.tetrahedra,
---with physical curves for surfaces.
---@param fields cq.Shape.triangles.def
---@return cq.Shape
function solid.triangles(fields) return new("cq.Shape.triangles", in_plane(fields), 2) end

return solid
