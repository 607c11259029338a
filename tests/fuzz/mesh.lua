-- mesh: STL and OBJ files. What is read has an extent that is finite, and points are inside or outside of it.
local ffi = require "ffi"
local engine = require "cq.base.engine"
local Shape = require "cq.shape"
local mutate = require "tests.fuzz.mutate"
local verdict = require "tests.fuzz.verdict"

local C = engine.C
local handle, info = ffi.new "cq_mesh *[1]", ffi.new "cq_mesh_info"
local points, answers = ffi.new "double[24]", ffi.new "uint8_t[8]"

local function finite(x) return x - x == 0 end

local function look(mesh)
  C.cq_mesh_describe(mesh, info)
  if info.triangle_count < 1 or info.part_count < 1 then return "a mesh without triangles or parts" end
  for d = 0, 2 do
    if not finite(info.upper[d] - info.lower[d]) then return "an extent that is not finite" end
    for k = 0, 7 do
      local share = (mutate.below(9) - 1) / 8
      points[3 * k + d] = info.lower[d] + share * (info.upper[d] - info.lower[d])
    end
  end
  if not finite(info.volume) then return "a volume that is not finite" end
  for part = -1, math.min(3, info.part_count - 1) do
    if C.cq_mesh_inside(mesh, part, 8, points, answers) ~= C.CQ_OK then return "no answer to what is inside" end
    if part >= 0 and #ffi.string(C.cq_mesh_part_name(mesh, part)) > 255 then return "a part's name that is too long" end
  end
end

-- a shape as a user makes it, now and then: it takes longer
local function shape_of(path)
  local fine, result = pcall(Shape.mesh, { path = path, length = 1 })
  if not fine then return verdict.of_error(result, "Shape.mesh", path) end
  result:contains(0.5, 0.5, 0.5)
end

local function read(path)
  if C.cq_mesh_open(path, handle) ~= C.CQ_OK then return false, verdict.of_sentence(ffi.string(C.cq_error()), path) end
  local problem = look(handle[0])
  C.cq_mesh_close(handle[0])
  return true, problem or mutate.below(16) == 1 and shape_of(path) or nil
end

local corners = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } }
local faces = { { 1, 3, 2 }, { 1, 2, 4 }, { 1, 4, 3 }, { 2, 3, 4 } }

local function binary()
  local parts = { ("solid but binary"):rep(5), "\4\0\0\0" }
  for _, face in ipairs(faces) do
    local record = ffi.new "float[12]"
    for i = 1, 3 do
      for d = 1, 3 do record[3 * i + d - 1] = corners[face[i]][d] end
    end
    parts[#parts + 1] = ffi.string(record, 48) .. "\0\0"
  end
  return table.concat(parts)
end

local function plain()
  local lines = { "solid four faces" }
  for _, face in ipairs(faces) do
    lines[#lines + 1] = " facet normal 0 0 1\n  outer loop"
    for _, i in ipairs(face) do lines[#lines + 1] = ("   vertex %g %g %g"):format(unpack(corners[i])) end
    lines[#lines + 1] = "  endloop\n endfacet"
  end
  return table.concat(lines, "\n") .. "\nendsolid\n"
end

local numbers = { "nan", "inf", "-1e999", "1.7e308", "-1e100", "1e-320", "0x1p4", "1,5", ".", "-", "1e", "0", "-0",
  "1e40", "0.5", "\239\187\191" }

local function joined(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, item in ipairs(list) do all[#all + 1] = item end
  end
  return all
end

local box = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n"

return {
  stl = {
    ending = "stl", read = read, seeds = { binary(), plain(), "\239\187\191" .. plain() },
    tokens = joined(numbers, { "solid", "facet", "vertex", "endfacet", "\nvertex 1 2 3\n", "\nendfacet\n",
      "\nsolid b\n", "\r\n" }),
  },
  obj = {
    ending = "obj", read = read,
    seeds = {
      box .. "g foot\nf 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\ng leg\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n",
      "# a comment\no four\nv 0 0 0\nv 1 0 0 1\nv 0 1 0 1 0 0\nv 0 0 1\nvn 0 0 1\nvt 0 0\nf 1/1/1 3/1/1 2/1/1\nf -4//1 -3//1 -1//1\nf 1 4 3\nf 2 3 4\n",
      "v 0 0 0\r\nv 2 0 0\r\nv 2 2 0\r\nv 1 1 0\r\nv 0 2 \\\r\n 0\r\nv 1 1 1\r\nf 1 2 3 4 5\r\nf 1 2 6\r\nf 2 3 6\r\nf 3 4 6\r\nf 4 5 6\r\nf 5 1 6\r\n",
    },
    tokens = joined(numbers, {
      "v", "f", "g", "o", "\nf 1 2 3 4 5 6\n", "\nv 1 2 3\n", "\ng a b\n", "-1", "-9", "99999999999999999999",
      "-9223372036854775808",
      "2147483648", "1/2/3", "1//", "//1", "\\\n", "\r", "\11", "usemtl x", "mtllib a.mtl",
    }),
  },
}
