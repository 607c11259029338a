-- geometry: image and mesh files that are fine, missing, cut off, enormous or strange; k-means clusters.
local ffi = require "ffi"
local process = require "tests.process"
local engine = require "cq.base.engine"
local image = require "cq.base.image"
local T = require "cq.tensor"

local C = engine.C
local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local fails = require("tests.sentence").fails

-- a picture whose pixels all differ
local function gradient(width, height)
  local path = folder .. "/gradient.png"
  image.write { path = path, width = width, height = height,
    pixel = function(x, y) return x, y, (x * y) % 256, 255 - x end }
  return path
end

local function cut(path, bytes)
  local all = process.read(path)
  return process.write(folder .. "/cut.png", all:sub(1, bytes)), #all
end

describe("an image file", function()
  it("comes back as it was written", function()
    local picture = image.read(gradient(31, 17))
    assert.equal(31, picture.width)
    assert.equal(17, picture.height)
    for y = 0, 16 do
      for x = 0, 30 do
        local p = picture.pixels + 4 * (y * 31 + x)
        assert.same({ x, y, (x * y) % 256, 255 - x }, { p[0], p[1], p[2], p[3] })
      end
    end
  end)

  it("that is missing, empty or no PNG says so", function()
    fails("cannot open image", image.read, folder .. "/none.png")
    fails("is empty", image.read, process.write(folder .. "/empty.png", ""))
    fails("is not a PNG file", image.read, process.write(folder .. "/text.png", "no picture at all"))
  end)

  it("that is cut off says so, wherever it ends", function()
    local path = gradient(64, 64)
    local _, length = cut(path, 0)
    for _, bytes in ipairs { 9, 20, 40, 100, math.floor(length / 2), length - 20 } do
      fails("cut off", image.read, (cut(path, bytes)))
    end
  end)

  it("that is enormous is refused by its header", function()
    -- a header of 30000 x 30000 pixels and nothing behind it
    local header = "\137PNG\r\n\26\n\0\0\0\13IHDR" .. "\0\0\117\48\0\0\117\48" .. "\8\6\0\0\0" .. "\0\0\0\0"
    local path = process.write(folder .. "/enormous.png", header)
    fails("is 30000 x 30000 pixels, at most 16384 on a side", image.read, path)
  end)

  it("that cannot hold its pixels is refused before it is decoded", function()
    local path = gradient(4, 4)
    -- 8192 x 8192 pixels, by a header with its right checksum, of 16 pixels' rows
    local wide = process.read(path):gsub("IHDR....................", function(header)
      return header:sub(1, 4) .. "\0\0\32\0\0\0\32\0" .. header:sub(13, 17) .. "\114\170\202\89" .. header:sub(22)
    end, 1)
    fails("cannot hold 8192 x 8192 pixels", image.read, process.write(folder .. "/wide.png", wide))
  end)

  it("with a byte changed says so", function()
    local bytes = process.read(gradient(16, 16))
    local at = bytes:find("IDAT", 1, true) + 20
    local path = process.write(folder .. "/changed.png", bytes:sub(1, at) .. string.char((bytes:byte(at + 1) + 1) % 256)
      .. bytes:sub(at + 2))
    fails("the checksum of its chunk IDAT is wrong", image.read, path)
  end)

  it("is not written where it cannot be", function()
    local function black() return 0, 0, 0 end
    fails("/none/a.png cannot be written: there is no folder", image.write,
      { path = folder .. "/none/a.png", width = 4, height = 4, pixel = black })
    assert(process.read(folder .. "/none/a.png.part") == nil)
  end)

  it("wants memory of its own size", function()
    local buffer = ffi.new "uint8_t[16]"
    fails("bytes are wanted", function() engine.check(C.cq_image_read(gradient(5, 5), 16, buffer)) end)
  end)
end)

-- ---- meshes ---------------------------------------------------------------------------------------------------------

local function open(path)
  local out = ffi.new "cq_mesh *[1]"
  engine.check(C.cq_mesh_open(path, out), "open")
  return ffi.gc(out[0], C.cq_mesh_close)
end

local function is_inside(mesh, x, y, z)
  local answer = ffi.new "uint8_t[1]"
  engine.check(C.cq_mesh_inside(mesh, -1, 1, ffi.new("double[3]", x, y, z), answer))
  return answer[0] == 1
end

local function described(mesh)
  local info = ffi.new "cq_mesh_info"
  C.cq_mesh_describe(mesh, info)
  return info
end

local function obj(content) return process.write(folder .. "/a.obj", content) end
local function stl(content) return process.write(folder .. "/a.stl", content) end

-- nine numbers for each triangle
local function binary_stl(triangles)
  local parts = { ("\0"):rep(80), ffi.string(ffi.new("uint32_t[1]", #triangles), 4) }
  for i, t in ipairs(triangles) do
    parts[i + 2] = ffi.string(ffi.new("float[12]", { 0, 0, 0, unpack(t) }), 48) .. "\0\0"
  end
  return stl(table.concat(parts))
end

local tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

describe("a mesh file", function()
  it("that is enormous in space is refused", function()
    fails("a corner at -1.7e+308: numbers that are finite and at most 1e+100", open,
      obj("v -1.7e308 0 0\nv 1.7e308 0 0\nv 0 1 0\nf 1 2 3\n"))
    fails("a corner at -1.7e+308", open,
      stl "solid a\nvertex -1.7e308 0 0\nvertex 1.7e308 0 0\nvertex 0 1 1\nendfacet\n")
    fails("is 1e-300 long", open, obj "v 0 0 0\nv 1e-300 0 0\nv 0 1e-300 0\nf 1 2 3\n")
    assert.equal(1e100, described(open(obj "v 0 0 0\nv 1e100 0 0\nv 0 1e100 1\nf 1 2 3\n")).upper[0])
    fails("triangle 1 of mesh '" .. folder .. "/a.stl' has a corner at ", open,
      binary_stl { { 0 / 0, 0, 0, 1, 0, 0, 0, 1, 0 } })
  end)

  it("of wide triangles takes memory by its own size", function()
    local triangles, random = {}, T.zeros { 90000 }
    C.cq_random_uniform(ffi.new("cq_random", 5, 0), 90000, 0, 1, random:data())
    for i = 1, 10000 do
      local t = {}
      for k = 1, 9 do t[k] = random:get(9 * (i - 1) + k) end
      triangles[i] = t
    end
    local function resident() return tonumber(process.read("/proc/self/status"):match "VmRSS:%s*(%d+)") / 1024 end
    local path = binary_stl(triangles)
    collectgarbage()
    local before = resident()
    local mesh = open(path)
    local took = resident() - before
    -- half a MiB of triangles; sanitizers and the allocator have their part
    assert(took < 100, ("%d MiB were taken"):format(took))
    assert.equal(10000, tonumber(described(mesh).triangle_count))
  end)

  it("is the same for every way to bin it: small triangles among long and wide ones", function()
    -- a plate of n x n small squares above, and below it two triangles; long strips at the sides
    local lines, count, n = {}, 0, 60
    local function square(a, b, c, d)
      for _, p in ipairs { a, b, c, d } do lines[#lines + 1] = ("v %.17g %.17g %.17g"):format(unpack(p)) end
      lines[#lines + 1] = ("f %d %d %d\nf %d %d %d"):format(count + 1, count + 2, count + 3, count + 1, count + 3,
        count + 4)
      count = count + 4
    end
    for i = 0, n - 1 do
      local a, b = i / n, (i + 1) / n
      for j = 0, n - 1 do
        local c, d = j / n, (j + 1) / n
        square({ a, c, 1 }, { b, c, 1 }, { b, d, 1 }, { a, d, 1 })
      end
      square({ a, 0, 0 }, { b, 0, 0 }, { b, 0, 1 }, { a, 0, 1 })
      square({ b, 1, 0 }, { a, 1, 0 }, { a, 1, 1 }, { b, 1, 1 })
      square({ 0, b, 0 }, { 0, a, 0 }, { 0, a, 1 }, { 0, b, 1 })
      square({ 1, a, 0 }, { 1, b, 0 }, { 1, b, 1 }, { 1, a, 1 })
    end
    square({ 0, 1, 0 }, { 1, 1, 0 }, { 1, 0, 0 }, { 0, 0, 0 })
    local mesh = open(obj(table.concat(lines, "\n")))
    assert(math.abs(described(mesh).volume - 1) < 1e-12)
    for k = 1, 2000 do
      local x, y, z = k * 0.6180339887 % 1, k * 0.7548776662 % 1, k * 0.5698402910 % 1
      assert.is_true(is_inside(mesh, x, y, z), ("%g %g %g"):format(x, y, z))
    end
    assert.is_false(is_inside(mesh, 0.5, 0.5, 1.001))
  end)

  it("has numbers that are numbers", function()
    fails("has 'nan' in line 1: it is no number, or not finite", open, obj "v nan 1 1\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    fails("has '1,5' in line 2", open, obj "v 0 0 0\nv 1,5 0 0\nv 0 1 0\nf 1 2 3\n")
    fails("has '0x10' in line 1", open, obj "v 0x10 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    fails("has '1e999' in line 1", open, obj "v 1e999 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    fails("a vertex of 2 numbers in line 1", open, obj "v 1 0\n")
    fails("the corner '1.5' in line 4", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1.5 2 3\n")
    fails("the corner 'x' in line 4", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf x 2 3\n")
    fails("a face with vertex -4 in line 4, it has 3 above it", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -4 2 3\n")
    fails("a face of 2 corners in line 3", open, obj "v 0 0 0\nv 1 0 0\nf 1 2\n")
    fails("a face of 0 corners in line 2", open, obj "v 0 0 0\nf\n")
    fails("a face with vertex 2147483648 in line 4, it has 3", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 2147483648 2 3\n")
    fails("a face with vertex 9223372036854775807 in line 4", open,
      obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 99999999999999999999 2 3\n")
    fails("the corner '1/2/3/4' in line 4", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1/2/3/4 2 3\n")
    fails("the corner '0' in line 4", open, obj "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 2 3\n")
    -- a face may come before its vertices, and the first mistake is told
    assert.equal(1, tonumber(described(open(obj "f 1 2 3\nv 0 0 0\nv 1 0 0\nv 0 1 1\n")).triangle_count))
    fails("in line 1", open, obj "f 1 2 9\nv 0 0 0\nv x 0 0\nv 0 1 1\n")
    fails("has '3,5' in line 2", open, stl "solid a\nvertex 1 2 3,5\n")
    fails("more than 3 numbers for a vertex in line 2", open, stl "solid a\nvertex 1 2 3 4\n")
    -- cut between two corners, within a word, and before the first corner of the next facet
    local facet = "facet normal 0 0 1\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 1\nendfacet\n"
    for _, rest in ipairs { "facet normal 0 0 1\nvertex 0 0 0\n", "fac", "facet normal 0 0" } do
      fails("is cut off in a facet", open, stl("solid a\n" .. facet .. rest))
    end
    fails('is cut off: it ends without "endsolid"', open, stl("solid a\n" .. facet))
    fails("is cut off in a facet", open, stl("solid a\n" .. facet .. "facet\nvertex 0 0 0\nvertex 1 0 0\nendsolid\n"))
    fails("is cut off in a facet", open, stl("solid a\n" .. facet .. "endsolid\nfacet\nvertex 0 0 0\n"))
    fails("a byte of zero", open, stl "solid a\nvertex 1 2 3\0\n")
    os.execute(("mkdir '%s/b.obj'"):format(folder))
    fails("it is a folder", open, folder .. "/b.obj")
  end)

  it("may begin with a mark of UTF-8, and end its lines in any way", function()
    assert.equal(4, tonumber(described(open(obj("\239\187\191" .. tetrahedron))).triangle_count))
    for _, ending in ipairs { "\r\n", "\r", " \\\n \n" } do
      local info = described(open(obj((tetrahedron:gsub("\n", ending)))))
      assert.equal(4, tonumber(info.triangle_count))
      assert(math.abs(info.volume - 1 / 6) < 1e-15)
    end
    assert.equal(1, tonumber(described(
      open(stl "\239\187\191solid a\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 1\nendfacet\nendsolid\n")).triangle_count))
    local facet = "facet normal 0 0 1\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 1\nendfacet\n"
    assert.equal(1, tonumber(described(open(stl(("solid a\n" .. facet .. "endsolid a\n"):upper()))).triangle_count))
    -- no part was begun here
    assert.equal(1, described(open(stl "solid-state\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 1\nendfacet\nendsolid\n")).part_count)
  end)

  it("has the numbers that stand in the file, to the last bit", function()
    local x = { 0.1, 1 / 3, 1e-17, 123456789.123456789, 2.2250738585072014e-308, 5e-324 }
    for _, value in ipairs(x) do
      local text = ("v %.17g 0 0\nv 1 0 0\nv 0 1 1\nf 1 2 3\n"):format(value)
      local mesh, corner = open(obj(text)), ffi.new "double[9]"
      C.cq_mesh_corners(mesh, corner)
      assert.equal(tonumber(("%.17g"):format(value)), corner[0])
    end
  end)

  it("has whole names, and none that is cut", function()
    local long = ("a"):rep(100)
    local facet = "facet normal 0 0 1\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 1\nendfacet\n"
    local function names(mesh)
      return ffi.string(C.cq_mesh_part_name(mesh, 0)), ffi.string(C.cq_mesh_part_name(mesh, 1))
    end
    for _, pair in ipairs { { "leg left", "leg right" }, { long .. "1", long .. "2" } } do
      local solids = {}
      for k, name in ipairs(pair) do solids[k] = ("solid  %s \n%sendsolid %s\n"):format(name, facet, name) end
      assert.same(pair, { names(open(stl(table.concat(solids)))) })
      assert.same(pair, { names(open(obj((tetrahedron:gsub("f 1 2 4", "g " .. pair[2] .. "\nf 1 2 4"):gsub("f ",
        "g " .. pair[1] .. "\nf ", 1))))) })
    end
    fails("has a name of 256 characters in line 1: at most 255 are allowed", open,
      stl(("solid %s\n%sendsolid\n"):format(("b"):rep(256), facet)))
    for _, keyword in ipairs { "g", "o", "usemtl" } do
      fails("has a name of 300 characters in line 5: at most 255 are allowed", open,
        obj((tetrahedron:gsub("f ", keyword .. " " .. ("b"):rep(300) .. "\nf ", 1))))
    end
  end)

  -- where a ball's first and last meridian meet, sines and cosines differ in the last digits
  it("is closed where corners differ by rounding alone", function()
    local n, triangles = 12, {}
    local function at(i, j)
      local a, b = math.pi * i / n, math.pi * j / n
      return { math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a) }
    end
    local function add(...)
      local corners = {}
      for _, c in ipairs { ... } do
        for d = 1, 3 do corners[#corners + 1] = c[d] end
      end
      triangles[#triangles + 1] = corners
    end
    for i = 0, n - 1 do
      for j = 0, 2 * n - 1 do
        if i < n - 1 then add(at(i, j), at(i + 1, j), at(i + 1, j + 1)) end
        if i > 0 then add(at(i, j), at(i + 1, j + 1), at(i, j + 1)) end
      end
    end
    local function open_edges() return tonumber(described(open(binary_stl(triangles))).open_edges) end
    assert.equal(0, open_edges())
    local corner = triangles[100]
    corner[1] = corner[1] + 1e-5        -- a gap
    assert.equal(4, open_edges())
    corner[1] = corner[1] + 0.1
    assert.equal(4, open_edges())
  end)

  it("knows which parts are pieces of a surface that others close", function()
    local function pieces(content)
      local mesh, list = open(obj(content)), {}
      for k = 0, described(mesh).part_count - 1 do list[k + 1] = C.cq_mesh_part_is_piece(mesh, k) end
      return list
    end
    local further = "g more\nv 2 0 0\nv 3 0 0\nv 2 1 0\nv 2 0 1\nf 5 7 6\nf 5 6 8\nf 5 8 7\nf 6 7 8\n"
    assert.same({ 1, 1, 0, 1, 1 }, pieces((tetrahedron:gsub("f 1 2 4", "g b\nusemtl c\nf 1 2 4")
      :gsub("f 1 3 2", "g a\nusemtl d\nf 1 3 2")) .. further))
    -- a hole is none that another part closes
    assert.same({ 0, 0 }, pieces((tetrahedron:gsub("f 1 3 2\n", "g a\n")) .. further))
    assert.equal(0, C.cq_mesh_part_is_piece(open(obj(tetrahedron)), 7))
  end)

  it("may have keywords in upper case", function()
    local wanted = described(open(obj(tetrahedron)))
    local upper = described(open(obj((tetrahedron:gsub("v ", "V "):gsub("f ", "F ", 2)))))
    for _, name in ipairs { "triangle_count", "part_count", "open_edges" } do
      assert.equal(tonumber(wanted[name]), tonumber(upper[name]))
    end
    local parts = tetrahedron:gsub("f ", "G a\nf ", 1):gsub("f 1 2 4", "USEMTL b\nf 1 2 4")
    assert.equal(2, described(open(obj(parts))).part_count)
  end)

  it("has its materials after its groups", function()
    local mesh = open(obj((tetrahedron:gsub("f ", "usemtl a\nf ", 1):gsub("\n$", "\nusemtl\n"))))
    local info = described(mesh)
    assert.equal(1, info.material_count)
    assert.equal(2, info.part_count)
    assert.equal("a", ffi.string(C.cq_mesh_part_name(mesh, 1)))
  end)

  it("has polygons that need not be convex", function()
    -- a prism over an arrow
    local mesh = open(obj [[
v 0 0 0
v 2 1 0
v 0 2 0
v 0.5 1.5 0
v 0.5 1 0
v 0 0 1
v 2 1 1
v 0 2 1
v 0.5 1.5 1
v 0.5 1 1
f 5 4 3 2 1
f -5/1/1 -4//1 -3/1 -2 -1
f 1 2 7 6
f 2 3 8 7
f 3 4 9 8
f 4 5 10 9
f 5 1 6 10
]])
    local info = described(mesh)
    assert.equal(0, tonumber(info.open_edges))
    assert(math.abs(info.volume - 1.375) < 1e-12, tostring(info.volume))
    assert.is_true(is_inside(mesh, 0.9, 1, 0.5))
    assert.is_false(is_inside(mesh, 0.2, 1, 0.5))
  end)
end)

-- k blobs of m points each around given centres, in the order blob by blob
local function blobs(centres, m)
  local points = ffi.new("double[?]", 2 * m * #centres)
  local k = 0
  for _, c in ipairs(centres) do
    for i = 0, m - 1 do
      points[2 * k], points[2 * k + 1] = c[1] + 0.05 * math.cos(i), c[2] + 0.05 * math.sin(1.7 * i)
      k = k + 1
    end
  end
  return points, k
end

local function kmeans(points, n, k, seed)
  local labels = ffi.new("int32_t[?]", n)
  engine.check(C.cq_kmeans(n, 2, points, k, seed or 0, labels))
  local out = {}
  for p = 1, n do out[p] = labels[p - 1] end
  return out
end

describe("k-means", function()
  it("finds blobs and numbers them by their place, for any seed", function()
    local points, n = blobs({ { 3, 0 }, { 0, 1 }, { 0, 0 }, { 1, 5 } }, 25)
    for seed = 0, 9 do
      local labels = kmeans(points, n, 4, seed)
      local wanted = { 3, 1, 0, 2 }      -- by x, then by y
      for p = 1, n do assert.equal(wanted[math.ceil(p / 25)], labels[p], ("point %d, seed %d"):format(p, seed)) end
    end
  end)

  it("gives the same labels each time, and leaves no cluster empty", function()
    local points = T.zeros { 500, 2 }
    local x = points:data()
    for i = 0, 999 do x[i] = (i * 0.6180339887 % 1) * (1 + i % 3) end
    local first = kmeans(x, 500, 7, 42)
    assert.same(first, kmeans(x, 500, 7, 42))
    local sizes = {}
    for _, label in ipairs(first) do sizes[label] = (sizes[label] or 0) + 1 end
    for k = 0, 6 do assert((sizes[k] or 0) > 0, "cluster " .. k .. " is empty") end
  end)

  it("is a fixed point of Lloyd's iteration", function()
    local points, n = blobs({ { 0, 0 }, { 1, 0 }, { 0.4, 0.8 } }, 40)
    local labels = kmeans(points, n, 3, 1)
    local centre = {}
    for k = 0, 2 do centre[k] = { 0, 0, 0 } end
    for p = 1, n do
      local c = centre[labels[p]]
      c[1], c[2], c[3] = c[1] + points[2 * p - 2], c[2] + points[2 * p - 1], c[3] + 1
    end
    for p = 1, n do
      local best, least = nil, math.huge
      for k = 0, 2 do
        local c = centre[k]
        local d = (points[2 * p - 2] - c[1] / c[3])^2 + (points[2 * p - 1] - c[2] / c[3])^2
        if d < least then best, least = k, d end
      end
      assert.equal(best, labels[p])
    end
  end)

  it("says what it cannot do", function()
    local points, n = blobs({ { 0, 0 } }, 3)
    fails("4 clusters of 3 points", kmeans, points, n, 4)
    fails("0 clusters of 3 points", kmeans, points, n, 0)
    points[3] = 0 / 0
    fails("coordinate 2 of point 2", kmeans, points, n, 2)
    local same = ffi.new("double[8]")
    fails("at only 1 different place", kmeans, same, 4, 2)
  end)
end)
