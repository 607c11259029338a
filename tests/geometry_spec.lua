-- geometry: image files that are fine, missing, cut off or enormous; k-means clusters.
local ffi = require "ffi"
local process = require "tests.process"
local engine = require "cq.engine"
local image = require "cq.image"
local T = require "cq.tensor"

local C = engine.C
local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function fails(part, f, ...)
  local fine, problem = pcall(f, ...)
  assert.is_false(fine, "no error, one was expected with: " .. part)
  assert(tostring(problem):find(part, 1, true), ("%q is not in: %s"):format(part, tostring(problem)))
  assert(tostring(problem):find("geometry_spec.lua:", 1, true), "not at the user's line: " .. tostring(problem))
end

-- a picture whose pixels all differ
local function gradient(width, height)
  local path = folder .. "/gradient.png"
  image.write { path = path, width = width, height = height, pixel = function(x, y) return x, y, (x * y) % 256, 255 - x end }
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

  it("is not written where it cannot be", function()
    local function black() return 0, 0, 0 end
    fails("cannot write image", image.write, { path = folder .. "/none/a.png", width = 4, height = 4, pixel = black })
    assert(process.read(folder .. "/none/a.png.part") == nil)
  end)

  it("wants memory of its own size", function()
    local buffer = ffi.new "uint8_t[16]"
    fails("bytes are wanted", function() engine.check(C.cq_image_read(gradient(5, 5), 16, buffer)) end)
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
