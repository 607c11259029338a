-- solid: Gmsh files. What is read has cells with a volume, groups and walls of them, and area vectors that sum to zero
-- where a wall is closed.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local Shape = require "cq.shape"
local gmsh_file = require "tests.gmsh_file"
local mutate = require "tests.fuzz.mutate"
local verdict = require "tests.fuzz.verdict"

local C = engine.C
local handle, info, wall, count = ffi.new "cq_solid *[1]", ffi.new "cq_solid_info", ffi.new "cq_solid_wall_info",
  ffi.new "int64_t[1]"

local function look_at_cells(solid, dim)
  local n = tonumber(info.cell_count)
  local x, volume = ffi.new("double[?]", n * dim), ffi.new("double[?]", n)
  C.cq_solid_cells(solid, x, volume)
  for p = 0, n - 1 do
    if not (volume[p] > 0 and volume[p] < math.huge) then return "a cell without a volume" end
    for d = 0, dim - 1 do
      local at = x[dim * p + d]
      if not (at >= info.lower[d] and at <= info.upper[d]) then return "a cell outside the box" end
    end
  end
  local answer = ffi.new("uint8_t[?]", n)
  if C.cq_solid_inside(solid, n, x, answer) ~= C.CQ_OK then return "no answer to what is inside" end
  C.cq_solid_corners(solid, ffi.new("double[?]", tonumber(info.face_count) * dim * dim))
end

local function look_at_groups(solid)
  for g = 0, info.group_count - 1 do
    local name = C.cq_solid_group(solid, g, count)
    if name == nil or count[0] < 1 or count[0] > info.cell_count then return "a group without a name or cells" end
    local cell = ffi.new("int32_t[?]", count[0])
    C.cq_solid_group_cells(solid, g, cell)
    for k = 0, tonumber(count[0]) - 1 do
      if cell[k] < 0 or cell[k] >= info.cell_count or k > 0 and cell[k] <= cell[k - 1] then
        return "a group of cells that are not there, or twice"
      end
    end
  end
  if C.cq_solid_group(solid, info.group_count, count) ~= nil then return "a group beyond the last" end
end

local function look_at_walls(solid, dim)
  for w = 0, info.wall_count - 1 do
    if C.cq_solid_wall(solid, w, wall) ~= C.CQ_OK then return "a wall that cannot be told" end
    local n = tonumber(wall.cell_count)
    local cell, area, arm = ffi.new("int32_t[?]", n), ffi.new("double[?]", n * dim), ffi.new("double[?]", n * dim)
    C.cq_solid_wall_cells(solid, w, cell, area, arm)
    for k = 0, n * dim - 1 do
      if area[k] - area[k] ~= 0 or arm[k] - arm[k] ~= 0 then return "an area vector that is not finite" end
    end
    for d = 0, dim - 1 do
      local sum = 0
      for k = 0, n - 1 do sum = sum + area[k * dim + d] end
      if wall.open_count == 0 and not (math.abs(sum) <= 1e-6 * wall.area) then
        return "a closed wall that does not close"
      end
    end
  end
end

-- a shape as a user makes it, now and then: it takes longer
local function shape_of(path, dim)
  local make = dim == 3 and Shape.tetrahedra or Shape.triangles
  local fine, result = pcall(make, { path = path, length = 1 })
  if fine then fine, result = pcall(result.sample, result) end
  if not fine then return verdict.of_error(result, "hape", path) end
end

local function read_as(path, dim)
  if C.cq_solid_open(path, dim, handle) ~= C.CQ_OK then
    return false, verdict.of_sentence(ffi.string(C.cq_error()), path)
  end
  local solid = handle[0]
  C.cq_solid_describe(solid, info)
  local problem = info.cell_count < 1 and "a body without cells" or look_at_cells(solid, dim) or look_at_groups(solid)
    or look_at_walls(solid, dim)
  C.cq_solid_close(solid)
  return true, problem or mutate.below(16) == 1 and shape_of(path, dim) or nil
end

local function read(path)
  local plane, problem = read_as(path, 2)
  if problem then return plane, problem end
  local space, other = read_as(path, 3)
  return plane or space, other
end

-- squares around an empty one; and a cube of two groups
local function seeds()
  local out = {}
  for _, version in ipairs(gmsh_file.versions) do
    out[#out + 1] = gmsh_file.bytes(gmsh_file.blocks { count = { 3, 3 }, empty = { chamber_1 = { 2, 2 } } }, version)
    local cube = gmsh_file.blocks { count = { 1, 1, 1 } }
    local cells = cube.group[1].element
    cube.group[2] = { dim = 3, name = "left", element = { cells[1], cells[2] } }
    if not version:find "^2" then cells[1], cells[2] = table.remove(cells), table.remove(cells) end
    cube.group[3] = { dim = 2, name = "root", element = { { cells[3][1], cells[3][2], cells[3][4] } } }
    out[#out + 1] = gmsh_file.bytes(cube, version)
  end
  return out
end

return {
  msh = {
    ending = "msh", read = read, seeds = seeds(),
    tokens = {
      "nan", "inf", "1e999", "1e50", "1e-320", "-1", "0", "1", "2", "4", "11", "7", "99999999999", "999999999999999999",
      "-9223372036854775808", "2147483647", "-2147483648", "$Nodes\n", "$EndNodes\n", "$Elements\n", "$EndElements\n",
      "$Entities\n", "$PhysicalNames\n1\n2 1 \"a\"\n$EndPhysicalNames\n", "$MeshFormat\n", "$Comments\n$EndComments\n",
      "$Periodic\n", "\"", "\0", "\r\n", "4.1 1 8", "2.2 0 8", "4 0 8",
    },
  },
}
