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
---@field path string                 .obj or .stl, from the working directory or else from the script's folder
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

-- A list of the named groups and materials of a mesh, { name, part, is_material } each, with the part's number from 0.
local function parts_of(mesh, info)
  local list = {}
  for k = 0, info.part_count - 1 do
    local name = ffi.string(C.cq_mesh_part_name(mesh, k))
    if name ~= "" then
      list[#list + 1] = { name = name, part = k, is_material = k >= info.part_count - info.material_count }
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

-- Adds to the cloud `out` a group for each named part, of the particles in it by within(part, x, y, z). One without
-- particles: the part of a cavity becomes a chamber; a material, or in a section any part, is no group, which a note
-- says; of others the group stays empty.
local function mark(self, out, parts, within)
  for _, entry in ipairs(parts) do
    local group, known = cloud.group(out, entry.name), {}
    for _, p in ipairs(group) do known[p] = true end
    for p = 1, out.count do
      local x, y, z = cloud.at(out, p)
      -- parts that share a name share a group
      if not known[p] and within(entry.part, x, y, z or self.section) then group[#group + 1] = p end
    end
    table.sort(group)
    -- nothing of the body is in it: the wall of a cavity, or a part that is finer than the lattice, or not cut
    if #group == 0 and not entry.is_material then
      cloud.chamber(out, entry.name, function(x, y, z) return within(entry.part, x, y, z or self.section) end,
        "cq.Shape.mesh", ("'%s' at its part \"%s\""):format(self.path, entry.name))
    end
    if #group == 0 and entry.is_material then
      cloud.drop_group(out, entry.name)
      message.note_once("cq.Shape.mesh: no particle of '%s' is of its material \"%s\", which is no group then",
        self.path, entry.name)
    elseif #group == 0 and self.section then
      cloud.drop_group(out, entry.name)
      message.note_once("cq.Shape.mesh: where the plane z = %s (section) cuts '%s' there is no particle of its part \"%s\", which is no group then",
        text.number(self.section), self.path, entry.name)
    end
  end
end

---A shape from a triangle mesh. A point is inside where the surface winds around it; the surface should be closed,
---which a warning tells if it is not. Groups, objects and materials that the file names are groups: where the
---triangles of a material are only a piece of a body's surface, of the particles that lie nearest to it. A part that
---faces inward encloses a cavity: its name is that of the particles around it, and of the walls that
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
  -- Is a point of the world inside a part of the mesh, a number from 0, or in the whole mesh (-1)?
  local function within(part, x, y, z)
    point[0], point[1], point[2] = x0 + (x - at[1]) * inverse, y0 + (y - at[2]) * inverse, z0 + (z - at[3]) * inverse
    check(C.cq_mesh_inside(mesh, part, 1, point, answer))
    return answer[0] == 1
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
    mark(self, out, parts, within)
    return out
  end
  return self
end

return new
