-- mesh: a shape in space from a triangle mesh, or in the plane from a section of it; its named parts are groups.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local engine = require "cq.base.engine"
local message = require "cq.base.message"
local primitive = require "cq.shape.primitive"
local cloud = require "cq.shape.cloud"
local locate = require "cq.base.locate"

local C, check = engine.C, engine.check

---@class cq.Shape.mesh.def : cq.Shape.part.def
---@field path string                 .obj or .stl, from the working directory, else the script's folder, else cqlua's
---@field length? number              of the longest side of the box that holds it [length]; or scale
---@field scale? number               of the file's numbers, 1 unless given; or length
---@field at? number[]                {3} lower corner of the box that holds it; where the file has it unless given [length]
---@field section? number             the shape is what the plane z = section cuts of the mesh, in 2D: for bodies of one
---  thickness, as solid:save_surface writes them [length]
---@field closed? boolean             must it be closed? Else an open surface is warned of, and the inside near its edges is a guess

local spec = is.define("cq.Shape.mesh", primitive.with_common {
  path = is.string(),
  length = is.number { above = 0, optional = true },
  scale = is.number { above = 0, optional = true },
  at = is.vector { size = 3, optional = true },
  section = is.number { optional = true },
  closed = is.boolean { default = false },
})

-- Reads a mesh file; returns the engine's cq_mesh, freed when Lua collects it. Errors: those of the file.
local function open(path)
  local out = ffi.new "cq_mesh *[1]"
  check(C.cq_mesh_open(locate(path), out), "cq.Shape.mesh")
  return ffi.gc(out[0], C.cq_mesh_close)
end

-- A list of the named groups and materials of a mesh, { name, part, is_material, is_piece } each, with the part's
-- number from 0; a piece is a part of a surface that other parts close.
local function parts_of(mesh, info)
  local list = {}
  for k = 0, info.part_count - 1 do
    local name = ffi.string(C.cq_mesh_part_name(mesh, k))
    if name ~= "" then
      list[#list + 1] = { name = name, part = k, is_material = k >= info.part_count - info.material_count,
        is_piece = C.cq_mesh_part_is_piece(mesh, k) == 1 }
    end
  end
  return list
end

-- The lower and upper corner {2} of the rectangle in which the section plane z = self.section cuts a box {3}. Errors:
-- it does not.
local function cut(self, lower, upper)
  local z = self.section
  if z <= lower[3] or z >= upper[3] then
    is.fail("cq.Shape.mesh: the plane z = %s (section) does not cut '%s', which lies between z = %s and %s",
      text.number(z), self.path, text.number(lower[3]), text.number(upper[3]))
  end
  return { lower[1], lower[2] }, { upper[1], upper[2] }
end

-- The group and the material of the triangle nearest to each particle of a cloud, int32_t[2 particles]; nil where no
-- part is a piece. nearest(points, count): gives them for points of the world.
local function nearest_parts(self, out, parts, nearest)
  local any = false
  for _, entry in ipairs(parts) do any = any or entry.is_piece end
  if not any then return nil end
  local points = ffi.new("double[?]", 3 * math.max(out.count, 1))
  for p = 1, out.count do
    local x, y, z = cloud.at(out, p)
    points[3 * p - 3], points[3 * p - 2], points[3 * p - 1] = x, y, z or self.section
  end
  return nearest(points, out.count)
end

-- Adds to the cloud `out` a group for each named part: of a piece the particles whose nearest triangle, by `nearest`,
-- is of it, else those in it by within(part, x, y, z). Where there are none, the part of a cavity becomes a chamber; a
-- piece, a material, or in a section any part, is no group, which a note says.
local function mark(self, out, parts, within, nearest)
  local found = nearest_parts(self, out, parts, nearest)
  for _, entry in ipairs(parts) do
    local group, known = cloud.group(out, entry.name), {}
    for _, p in ipairs(group) do known[p] = true end
    for p = 1, out.count do
      local x, y, z = cloud.at(out, p)
      local is_in
      if entry.is_piece then
        is_in = found[2 * p - 2] == entry.part or found[2 * p - 1] == entry.part
      else
        is_in = not known[p] and within(entry.part, x, y, z or self.section)
      end
      -- parts that share a name share a group
      if is_in and not known[p] then group[#group + 1] = p end
    end
    table.sort(group)
    local may_be_none = entry.is_material or entry.is_piece
    -- nothing of the body is in it: the wall of a cavity, or a part that is finer than the lattice, or not cut
    if #group == 0 and not may_be_none then
      cloud.chamber(out, entry.name, function(x, y, z) return within(entry.part, x, y, z or self.section) end,
        "cq.Shape.mesh", ("'%s' at its part \"%s\""):format(self.path, entry.name))
    end
    if #group == 0 and may_be_none then
      cloud.drop_group(out, entry.name)
      message.note_once("cq.Shape.mesh: no particle of '%s' is of its %s \"%s\", which is no group then", self.path,
        entry.is_material and "material" or "group", entry.name)
    elseif #group == 0 and self.section then
      cloud.drop_group(out, entry.name)
      message.note_once("cq.Shape.mesh: where the plane z = %s (section) cuts '%s' there is no particle of its part \"%s\", which is no group then",
        text.number(self.section), self.path, entry.name)
    end
  end
end

---A shape from a triangle mesh. A point is inside where the surface winds around it; the surface should be closed,
---which a warning tells if it is not. Groups, objects and materials that the file names are groups: where the
---triangles of one are only a piece of a surface, which others close, of the particles that lie nearest to it. A part
---that faces inward encloses a cavity: its name is that of the particles around it, and of the walls that
---cq.Actuator.follower_pressure pushes on. A part that a section does not cut is no group.
---@param fields cq.Shape.mesh.def
---@return cq.Shape
local function new(fields)
  local self = spec(fields)
  if self.length and self.scale then is.fail("cq.Shape.mesh: give either length or scale, not both") end
  local mesh, info = open(self.path), ffi.new "cq_mesh_info"
  C.cq_mesh_describe(mesh, info)
  local longest, lower, upper, at = 0, {}, {}, {}
  for d = 0, 2 do longest = math.max(longest, info.upper[d] - info.lower[d]) end
  local scale = self.length and self.length / longest or self.scale or 1
  for d = 1, 3 do
    local low, high = info.lower[d - 1], info.upper[d - 1]
    if high <= low then
      is.fail("cq.Shape.mesh: '%s' is flat along axis %d, a closed surface is wanted", self.path, d)
    end
    at[d] = self.at and self.at[d] or scale * low
    lower[d], upper[d] = at[d], at[d] + scale * (high - low)
  end
  local closed = info.open_edges == 0
  if not closed and self.closed then
    is.fail("cq.Shape.mesh: '%s' is open: %s of its triangles have no neighbour there, or one that faces the other way; fill its holes, and let "
      .. "all triangles face outward", self.path, text.count(tonumber(info.open_edges), "edge"))
  elseif not closed then
    message.warn("cq.Shape.mesh: '%s' is open: %s of its triangles have no neighbour there, or one that faces the other way; what is inside of it is a guess near them",
      self.path, text.count(tonumber(info.open_edges), "edge"))
  elseif info.inward ~= 0 then
    message.warn("cq.Shape.mesh: '%s' is inside out, all its triangles face inward; it is taken the other way round",
      self.path)
  end

  local point, answer = ffi.new "double[3]", ffi.new "uint8_t[1]"
  local x0, y0, z0, inverse = info.lower[0], info.lower[1], info.lower[2], 1 / scale
  -- Sets the point number k, from 0, of `points` to x, y, z of the world in the file's numbers.
  local function place(points, k, x, y, z)
    points[3 * k], points[3 * k + 1], points[3 * k + 2] = x0 + (x - at[1]) * inverse, y0 + (y - at[2]) * inverse,
      z0 + (z - at[3]) * inverse
  end
  -- Is a point of the world inside a part of the mesh, a number from 0, or in the whole mesh (-1)?
  local function within(part, x, y, z)
    place(point, 0, x, y, z)
    check(C.cq_mesh_inside(mesh, part, 1, point, answer))
    return answer[0] == 1
  end
  -- The group and the material, int32_t[2 count], of the triangles nearest to points of the world, which it overwrites.
  local function nearest(points, count)
    local found = ffi.new("int32_t[?]", 2 * math.max(count, 1))
    for k = 0, count - 1 do place(points, k, points[3 * k], points[3 * k + 1], points[3 * k + 2]) end
    check(C.cq_mesh_nearest(mesh, count, points, found))
    return found
  end
  local exact = closed and info.volume * scale^3 or nil
  local parts = parts_of(mesh, info)
  if self.section then
    lower, upper = cut(self, lower, upper)
    exact = nil
  end
  self = primitive.new("mesh", self, lower, upper, exact,
    function(x, y, z) return within(-1, x, y, z or self.section) end)
  self.surface = not self.section and function()
    local count = tonumber(info.triangle_count)
    local corner = ffi.new("double[?]", 9 * count)
    C.cq_mesh_corners(mesh, corner)
    for k = 0, 3 * count - 1 do
      corner[3 * k] = at[1] + scale * (corner[3 * k] - x0)
      corner[3 * k + 1], corner[3 * k + 2] = at[2] + scale * (corner[3 * k + 1] - y0),
        at[3] + scale * (corner[3 * k + 2] - z0)
    end
    return corner, count
  end or nil
  -- The particles of the mesh, with its parts as groups.
  self.fill = function(spacing)
    local out = primitive.fill(self, spacing)
    mark(self, out, parts, within, nearest)
    return out
  end
  return self
end

return new
