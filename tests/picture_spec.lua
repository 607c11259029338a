-- picture: what is drawn lies where it should, on the plane and in space; films with and without ffmpeg.
local ffi = require "ffi"
local process = require "tests.process"
local host = require "cq.host"
local Picture = require "cq.picture"
local Boundary = require "cq.boundary"
local Shape = require "cq.shape"
local image = require "cq.base.image"
local T = require "cq.tensor"

ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function fails(part, f, ...)
  local fine, problem = pcall(f, ...)
  assert.is_false(fine, "no error, one was expected with: " .. part)
  assert(tostring(problem):find(part, 1, true), ("%q is not in: %s"):format(part, tostring(problem)))
  assert(tostring(problem):find("picture_spec.lua:", 1, true), "not at the user's line: " .. tostring(problem))
end

-- red, green, blue at a pixel
local function at(canvas, x, y)
  local p = canvas:pixels() + 4 * (y * canvas.width + x)
  return { p[0], p[1], p[2] }
end

-- pixels that pass a test: their number and the box that holds them
local function count(canvas, test)
  local p, n, box = canvas:pixels(), 0, { math.huge, math.huge, -1, -1 }
  for y = 0, canvas.height - 1 do
    for x = 0, canvas.width - 1 do
      local q = p + 4 * (y * canvas.width + x)
      if test(q[0], q[1], q[2]) then
        n = n + 1
        box = { math.min(box[1], x), math.min(box[2], y), math.max(box[3], x), math.max(box[4], y) }
      end
    end
  end
  return n, box
end

local function dark(r, g, b) return r + g + b < 300 end
local function reddish(r, g, b) return r > 150 and g < 110 and b < 110 end
local function bluish(r, g, b) return b > 120 and r < 90 and g < 140 end

describe("a canvas", function()
  it("shows a disc where it is, with its area", function()
    local canvas = Picture.canvas { width = 100, height = 60 }:disc(30, 20, 10, "#000000")
    assert.same({ 0, 0, 0 }, at(canvas, 30, 20))
    assert.same({ 255, 255, 255 }, at(canvas, 30, 40))
    local n, box = count(canvas, dark)
    assert(math.abs(n - math.pi * 100) < 20, tostring(n))
    assert.same({ 20, 10, 39, 29 }, box)
  end)

  it("smooths edges", function()
    local canvas = Picture.canvas { width = 40, height = 40 }:disc(20, 20, 10, "#000000")
    assert(count(canvas, function(r) return r > 30 and r < 220 end) > 20)
  end)

  it("covers the exact area of a polygon", function()
    local canvas = Picture.canvas { width = 64, height = 64, samples = 1 }:polygon({ { 10, 10 }, { 50.5, 10 }, { 10, 30.25 } }, "#000000")
    local p, sum = canvas:pixels(), 0
    for k = 0, 64 * 64 - 1 do sum = sum + (255 - p[4 * k]) / 255 end
    assert(math.abs(sum - 40.5 * 20.25 / 2) < 4, tostring(sum))
  end)

  it("draws a plane with y up", function()
    local canvas = Picture.canvas { width = 100, height = 50 }:view(50, 1, 2):rectangle(1.2, 2.1, 0.4, 0.2, "#000000")
    local _, box = count(canvas, dark)
    assert.same({ 10, 35, 29, 44 }, box)
    canvas:view():disc(90, 5, 4, "#000000")
    assert.same({ 0, 0, 0 }, at(canvas, 90, 5))
  end)

  it("blends half transparent colours", function()
    local canvas = Picture.canvas { width = 20, height = 20, background = "#000000" }:rectangle(0, 0, 20, 20, "#ffffff80")
    assert(math.abs(at(canvas, 10, 10)[1] - 128) <= 1)
  end)

  it("keeps its transparency in a file", function()
    local path = folder .. "/clear.png"
    Picture.canvas { width = 20, height = 20, background = "#00000000" }:disc(10, 10, 5, "#c83232"):write(path)
    local p = image.read(path).pixels
    assert.equal(0, p[3])
    local middle = p + 4 * (10 * 20 + 10)
    assert.same({ 200, 50, 50, 255 }, { middle[0], middle[1], middle[2], middle[3] })
  end)

  it("writes text as wide as it says", function()
    local canvas = Picture.canvas { width = 300, height = 60 }
    local width = canvas:text { x = 20, y = 40, size = 20, text = "H quick 42", colour = "#000000" }
    local n, box = count(canvas, dark)
    assert(n > 200, "too little ink: " .. n)
    assert(math.abs(box[1] - 20) <= 2 and math.abs(box[3] - (20 + width)) <= 3, "not where it should be")
    assert(box[2] >= 17 and box[2] <= 21, "a capital is 20 pixels high, its top is at " .. box[2])
  end)

  it("has a different glyph for every character", function()
    local seen = {}
    for byte = 33, 126 do
      local canvas = Picture.canvas { width = 32, height = 48 }
      canvas:text { x = 6, y = 32, size = 24, text = string.char(byte), colour = "#000000" }
      local drawn = ffi.string(canvas:pixels(), 4 * 32 * 48)
      assert.is_nil(seen[drawn], ("%s looks like %s"):format(string.char(byte), tostring(seen[drawn])))
      seen[drawn] = string.char(byte)
    end
  end)

  it("aligns text at its end and its middle", function()
    for align, wanted in pairs { right = 150, centre = 150 } do
      local canvas = Picture.canvas { width = 300, height = 40 }
      local width = canvas:text { x = wanted, y = 30, size = 12, text = "H to H", align = align, colour = "#000000" }
      local _, box = count(canvas, dark)
      local last = align == "right" and wanted or wanted + width / 2
      assert(math.abs(box[3] - last) <= 2)
    end
  end)

  it("ignores what is not finite or lies far outside", function()
    local canvas = Picture.canvas { width = 32, height = 32 }
    canvas:disc(0 / 0, 5, 3, "#000000"):disc(5, 5, 1 / 0 - 1 / 0, "#000000"):disc(1e12, -1e12, 3, "#000000")
    canvas:line({ { -1e9, 1e9 }, { -2e9, 1e9 } }, 3, "#000000"):line({ { 0 / 0, 1 }, { 2, 3 } }, 3, "#000000")
    assert.equal(0, (count(canvas, dark)))
  end)

  it("has limits", function()
    fails("width must be", Picture.canvas, { width = 100000 })
    fails("samples must be", Picture.canvas, { samples = 9 })
    fails("at least 2 make one", function() Picture.canvas():line({ { 1, 1 } }, 1, "#000000") end)
    fails("at least 3 make one", function() Picture.canvas():polygon({ { 1, 1 }, { 2, 2 } }, "#000000") end)
    fails("cannot write image", function() Picture.canvas():write(folder .. "/none/a.png") end)
  end)
end)

-- a square body of 2 x 2 groups in a world of 1 x 1
local function body()
  local part = Shape.box { name = "part", size = { 0.1, 0.1 }, spacing = 0.01 }
  return part:translate { 0.4, 0.3 }:sample()
end

local function everyone(sample)
  local list = {}
  for p = 1, sample.count do list[p] = p end
  return list
end

describe("a scene of the plane", function()
  local function scene(more)
    local fields = { domain = { 1, 1 }, volume = 1e-4, width = 400, height = 400, trail = false, ruler = false, legend = false }
    for k, v in pairs(more or {}) do fields[k] = v end
    return Picture.scene(fields)
  end

  it("shows particles in the colour of their group, at their place", function()
    local s = body()
    local canvas = scene { groups = { { name = "part", particles = s.groups.part, colour = "#c81e1e" } } }:frame { position = s.position }
    local n, box = count(canvas, reddish)
    assert(math.abs(n - 1600) < 200, tostring(n))      -- 0.1 x 0.1 at 400 pixels
    for k, wanted in ipairs { 160, 240, 199, 279 } do assert(math.abs(box[k] - wanted) <= 1, k .. ": " .. box[k]) end
  end)

  it("blends actuation over it, red above zero and blue below", function()
    local s = body()
    for value, test in pairs { [1] = reddish, [-1] = bluish } do
      local canvas = scene():frame { position = s.position, actuation = T.full({ s.count }, value) }
      assert((count(canvas, test)) > 1400)
    end
    assert.equal(0, (count(scene():frame { position = s.position, actuation = T.zeros { s.count } }, reddish)))
  end)

  it("colours them by a number, on a scale with a legend", function()
    local s = body()
    local value = T.arange(1, s.count) / s.count
    local function yellow(r, g, b) return r > 220 and g > 200 and b < 90 end
    local function violet(r, g, b) return r > 60 and r < 80 and g < 20 and b > 70 and b < 100 end
    local with = scene { scale = { label = "von Mises stress", unit = "kPa", range = { 0, 1 } }, legend = false }
    local ends = with:frame { position = s.position, value = T.full({ s.count }, 1), actuation = T.ones { s.count } }
    assert((count(ends, yellow)) > 1400 and count(ends, reddish) == 0)
    assert((count(with:frame { position = s.position, value = T.full({ s.count }, -3) }, violet)) > 1400)
    -- a number that is none has the body's colour; the legend is written
    local none = with:frame { position = s.position, value = (T.zeros { s.count }) / 0 }
    assert.equal(0, (count(none, yellow)) + (count(none, violet)))
    local plain = scene { legend = false }:frame { position = s.position, value = value }
    local legend = scene { legend = true }:frame { position = s.position, value = value }
    assert((count(legend, violet)) > (count(plain, violet)))
    -- without a range it grows with what it has seen, and has round ends
    local growing = scene()
    growing:frame { position = s.position, value = 0.37 * value }
    assert.same({ 0, 0.4 }, { growing.scale.lower, growing.scale.upper })
    growing:frame { position = s.position, value = 4.3 * value }
    assert.same({ 0, 6 }, { growing.scale.lower, growing.scale.upper })
    growing:frame { position = s.position, value = -value }
    assert.same({ -2, 6 }, { growing.scale.lower, growing.scale.upper })
    fails("range must rise", function() scene { scale = { range = { 1, 1 } } } end)
    fails("value must have the shape", function() scene():frame { position = s.position, value = T.ones { 3 } } end)
  end)

  it("deforms particles by F", function()
    local F, x = T.tensor { { { 2, 0 }, { 0, 0.5 } } }, T.tensor { { 0.5, 0.5 } }
    local groups = { { name = "one", particles = { 1 }, colour = "#c81e1e" } }
    local canvas = scene { volume = 0.01, groups = groups }:frame { position = x, deformation = F }
    local _, box = count(canvas, reddish)
    -- 0.1 x 0.1 became 0.2 x 0.05
    assert(math.abs(box[3] - box[1] - 80) < 10 and math.abs(box[4] - box[2] - 20) < 4)
  end)

  it("fills the cells of a lattice that is finer along one axis", function()
    local s = Shape.box { at = { 0.4, 0.4 }, size = { 0.2, 0.2 }, count = { 10, 30 } }:sample()
    local groups = { { particles = everyone(s), colour = "#c81e1e" } }
    local n = count(scene { volume = s.volume, groups = groups }:frame { position = s.position }, reddish)
    assert(n > 6000 and n < 6500, "80 x 80 but for the outline pixels are covered, got " .. n)
  end)

  it("shows where the world is solid", function()
    local function ground_like(r, g, b) return r < 110 and g < 120 and b < 130 end
    local x = T.tensor { { 0.5, 0.9 } }
    local cases = {
      { Boundary.floor { at = 0.25 }, 0.25 }, { Boundary.box { inset = 0.1 }, 0.36 },
      { Boundary.sphere { center = { 0.5, 0.5 }, radius = 0.2 }, math.pi * 0.04 },
      { Boundary.sphere { center = { 0.5, 0.5 }, radius = 0.4, hollow = true }, 1 - math.pi * 0.16 },
      { Boundary.obstacle { lower = { 0.2, 0.2 }, upper = { 0.5, 0.4 } }, 0.06 },
      { Boundary.slope { point = { 0, 0 }, angle = math.pi / 4 }, 0.5 },
      { Boundary.height_field { heights = { 0.1, 0.3, 0.1 }, spacing = 0.5 }, 0.2 },
    }
    for k, case in ipairs(cases) do
      local n = count(scene { walls = case[1] }:frame { position = x }, ground_like) / 160000
      assert(math.abs(n - case[2]) < 0.02, ("wall %d covers %.3f, not %.3f"):format(k, n, case[2]))
    end
  end)

  it("follows a body and leaves its trail", function()
    local s = body()
    local strip = Picture.scene { domain = { 8, 1 }, volume = s.volume, width = 600, groups = {}, legend = false }
    local x = s.position + T.tensor { 3, 0 }
    local canvas
    for _ = 1, 40 do
      canvas = strip:frame { position = x }
      for p = 0, s.count - 1 do x:data()[2 * p] = x:data()[2 * p] + 0.01 end
    end
    local _, box = count(canvas, function(r, _, b) return r > 180 and r - b > 35 end)
    assert(box[1] < 250 and box[3] > 290 and box[3] < 420, "the trail ends near the middle: " .. table.concat(box, " "))
  end)

  it("stays in the world at its ends", function()
    local s = body()
    local strip = Picture.scene { domain = { 8, 1 }, volume = s.volume, width = 600, trail = false, legend = false,
      groups = { { particles = everyone(s), colour = "#c81e1e" } }, walls = Boundary.box { inset = 0.05 } }
    local _, first = count(strip:frame { position = s.position - T.tensor { 0.3, 0 } }, reddish)
    local last
    for _ = 1, 60 do _, last = count(strip:frame { position = s.position + T.tensor { 7.4, 0 } }, reddish) end
    assert(first[3] < 250 and last[1] > 350, ("%d and %d"):format(first[3], last[1]))
  end)

  it("labels", function()
    local canvas = scene():frame { position = T.tensor { { 0.5, 0.5 } }, label = { "iteration 12", "t = 0.3" } }
    local n, box = count(canvas, dark)
    assert(n > 50 and box[1] < 30 and box[2] < 40 and box[3] < 200, n .. " in " .. table.concat(box, " "))
  end)

  it("can be read on a wall", function()
    local function bright(r, g, b) return r > 150 and g > 150 and b > 150 end
    -- nothing but wall where the label and the legend are
    local function lit(more)
      local picture = scene { walls = Boundary.box { inset = 0.45 }, legend = more.legend }
      return (count(picture:frame { position = T.tensor { { 0.5, 0.5 } }, actuation = T.zeros { 1 }, label = more.label }, bright))
    end
    local bare = lit {}
    assert(lit { label = "t = 0.3" } > bare + 300)
    assert(lit { legend = true } > bare + 600)          -- words, marks and the bar between its ends
  end)

  it("gives the same pixels each time", function()
    local s = body()
    local function draw() return ffi.string(scene { ruler = true, trail = true }:frame { position = s.position, label = "a" }:pixels(), 640000) end
    assert.equal(draw(), draw())
  end)

  it("says what does not fit", function()
    local x = T.tensor { { 0.5, 0.5 }, { 0.6, 0.5 } }
    fails("position must have the shape {2, 3}", function() Picture.frame { domain = { 1, 1, 1 }, volume = 1, position = x } end)
    fails("deformation must have the shape {2, 2, 2}", function() Picture.frame { domain = { 1, 1 }, volume = 1, position = x, deformation = x } end)
    fails("actuation must have the shape {2}", function() Picture.frame { domain = { 1, 1 }, volume = 1, position = x, actuation = x } end)
    fails("groups[1] has particle 3, there are 2", function()
      Picture.frame { domain = { 1, 1 }, volume = 1, position = x, groups = { { particles = { 3 } } } }
    end)
    fails("did you mean position?", function() Picture.frame { domain = { 1, 1 }, volume = 1, positions = x } end)
    fails("camera is for 3D", function() Picture.scene { domain = { 1, 1 }, volume = 1, camera = {} } end)
    fails("walls[1] must be a cq.Boundary", function() Picture.scene { domain = { 1, 1 }, volume = 1, walls = { 3 } } end)
  end)
end)

describe("a scene of space", function()
  local camera = { eye = { 0.5, 0.5, 3 }, target = { 0.5, 0.5, 0.5 }, field_of_view = 0.6 }
  local function frame(points, more)
    local fields = {
      domain = { 1, 1, 1 }, volume = 0.008, width = 320, height = 240, camera = camera, trail = false, ruler = false, legend = false,
      groups = { { particles = { 1 }, colour = "#c81e1e" }, { particles = #points > 1 and { 2 } or { 1 }, colour = #points > 1 and "#1e1ec8" or "#c81e1e" } },
      position = T.tensor(points),
    }
    for k, v in pairs(more or {}) do fields[k] = v end
    return Picture.frame(fields)
  end
  local function red(r, g, b) return r > 1.8 * g and r > 1.8 * b and r > 60 end
  local function blue(r, g, b) return b > 1.8 * r and b > 1.8 * g and b > 60 end

  it("shows a ball where the camera sees it", function()
    local n, box = count(frame { { 0.5, 0.5, 0.5 } }, red)
    -- radius 0.62 * 0.2 at a distance of 2.5: 120 / tan(0.3) / 2.5 pixels of a unit
    local radius = 0.62 * 0.2 * 120 / math.tan(0.3) / 2.5
    assert(math.abs(n - math.pi * radius^2) < 0.08 * math.pi * radius^2, tostring(n))
    assert(math.abs((box[1] + box[3]) / 2 - 159.5) < 2 and math.abs((box[2] + box[4]) / 2 - 119.5) < 2)
  end)

  it("hides what is behind", function()
    assert.equal(0, (count(frame { { 0.5, 0.5, 0.8 }, { 0.5, 0.5, 0.3 } }, blue)))
    assert.equal(0, (count(frame { { 0.5, 0.5, 0.3 }, { 0.5, 0.5, 0.8 } }, red)))
    assert((count(frame { { 0.5, 0.5, 0.3 }, { 0.7, 0.5, 0.8 } }, red)) > 50)
  end)

  it("is lit from above, and throws a shadow on the ground", function()
    local canvas = frame({ { 0.5, 0.5, 0.5 } }, { camera = { eye = { 0.5, 2, 3 }, target = { 0.5, 0.2, 0.5 } } })
    local _, box = count(canvas, red)
    local x = math.floor((box[1] + box[3]) / 2)
    assert(at(canvas, x, box[2] + 4)[1] > at(canvas, x, box[4] - 3)[1] + 30)
    local with = count(canvas, function(r, g, b) return r < 185 and math.abs(r - g) < 20 and math.abs(g - b) < 20 end)
    assert(with > 100, "no shadow: " .. with)
  end)

  it("is seen by default from where the body fills a good part", function()
    local s = Shape.box { at = { 1, 0.1, 1 }, size = { 0.3, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local scene = Picture.scene { domain = { 4, 1, 2 }, volume = s.volume, width = 320, groups = { { particles = everyone(s), colour = "#c81e1e" } },
      walls = { Boundary.floor { at = 0.1 }, Boundary.obstacle { lower = { 1.6, 0.1, 1 }, upper = { 1.8, 0.3, 1.2 } } } }
    local canvas = scene:frame { position = s.position }
    local n, box = count(canvas, red)
    assert(n > 1500 and n < 20000, tostring(n))
    assert(box[1] > 40 and box[3] < 280 and box[2] > 20 and box[4] < 170, table.concat(box, " "))
  end)
end)

describe("a surface", function()
  local bodies, C = require "cq.picture.body", require("cq.base.engine").C

  -- one body of a sample: how its surface looks, and where its vertices are {v, dim}
  local function skin(s, x, F, fields, level)
    local volumes = s.volume:data()
    local body = bodies.list({ fields or {} }, { dim = s.dim, volumes = volumes }, s.count, s.position:data())[1]
    body:pose((x or s.position):data(), F and F:data(), level)
    local info = ffi.new "cq_skin_info"
    C.cq_skin_describe(body.skin, info)
    local vertex = ffi.new("double[?]", math.max(1, tonumber(info.vertex_count) * s.dim))
    C.cq_skin_read(body.skin, vertex, nil, nil)
    return { vertices = tonumber(info.vertex_count), faces = tonumber(info.face_count), edges = tonumber(info.edge_count),
      alone = tonumber(info.alone_count), vertex = vertex }
  end

  -- is there a vertex at a place?
  local function has_vertex(it, place)
    for k = 0, it.vertices - 1 do
      local off = 0
      for d, x in ipairs(place) do off = off + math.abs(it.vertex[#place * k + d - 1] - x) end
      if off < 1e-6 then return true end
    end
    return false
  end

  local function brick(count) return Shape.box { size = { 0.3, 0.4, 0.5 }, count = count or { 3, 4, 5 } }:sample() end

  it("is that of the cells: faces outside, and corners that cells share", function()
    local it = skin(brick())
    assert.same({ faces = 2 * (12 + 15 + 20), vertices = 4 * 5 * 6 - 2 * 3 * 4, alone = 0 }, { faces = it.faces, vertices = it.vertices, alone = it.alone })
    local plate = skin(Shape.box { size = { 0.3, 0.4 }, count = { 3, 4 } }:sample())
    assert.same({ 12, 20, 14, 0 }, { plate.faces, plate.vertices, plate.edges, plate.alone })
    -- the corners of a plate stay where they are
    for _, place in ipairs { { 0, 0 }, { 0.3, 0 }, { 0.3, 0.4 }, { 0, 0.4 } } do assert.is_true(has_vertex(plate, place)) end
  end)

  it("finds lattices that are turned, stretched or made of parts", function()
    local turned = skin(Shape.box { size = { 0.3, 0.4, 0.5 }, count = { 3, 4, 5 } }:rotate(0.7, { 1, 2, 3 }):sample())
    assert.same({ 94, 0 }, { turned.faces, turned.alone })
    local flat = skin(Shape.box { size = { 0.3, 0.4, 0.5 }, count = { 3, 8, 5 } }:sample())
    assert.same({ 2 * (24 + 15 + 40), 0 }, { flat.faces, flat.alone })
    local left, right = Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 }, Shape.box { at = { 0.2, 0 }, size = { 0.2, 0.2 }, spacing = 0.02 }
    assert.equal(60, skin((left + right):sample()).edges)
    -- where parts of other lattices meet there is no outline
    local finer = Shape.box { at = { 0.2, 0 }, size = { 0.2, 0.2 }, spacing = 0.01 }
    local joined = skin((left + finer):sample())
    assert.same({ 30 + 60, 0 }, { joined.edges, joined.alone })
  end)

  it("goes with its particles", function()
    local s = brick()
    local turn = T.tensor { { 0, -2, 0 }, { 1, 0, 0 }, { 0, 0, 3 } }
    local x, F = s.position:matmul(turn:transpose()) + T.tensor { 1, 2, 3 }, T.zeros { s.count, 3, 3 } + turn
    local rest, now = skin(s), skin(s, x, F)
    assert.equal(rest.vertices, now.vertices)
    for k = 0, rest.vertices - 1 do
      local p, q = rest.vertex + 3 * k, now.vertex + 3 * k
      local off = math.abs(q[0] - (1 - 2 * p[1])) + math.abs(q[1] - (2 + p[0])) + math.abs(q[2] - (3 + 3 * p[2]))
      assert(off < 1e-5, "vertex " .. k .. " is off by " .. off)
    end
  end)

  it("opens where a body is torn, and leaves lone particles to themselves", function()
    local s = brick()
    local x, moved = s.position:copy(), 0
    for p = 0, s.count - 1 do
      if x:data()[3 * p] > 0.2 then x:data()[3 * p], moved = x:data()[3 * p] + 0.3, moved + 1 end
    end
    assert.equal(20, moved)
    assert.same({ 94 + 40, 0 }, { skin(s, x).faces, skin(s, x).alone })
    -- a corner that flies away
    local lone = s.position:copy()
    lone:data()[0] = -0.4
    assert.same({ 94, 1 }, { skin(s, lone).faces, skin(s, lone).alone })
  end)

  it("is of some particles only", function()
    local s = brick()
    assert.same({ 0, 60 }, { skin(s, nil, nil, { loose = true }).faces, skin(s, nil, nil, { loose = true }).alone })
    assert.equal(1, skin(s, nil, nil, { loose = { 1 } }).alone)
    local level = ffi.new("uint8_t[?]", s.count)
    for p = 0, s.count - 1 do level[p] = s.position:data()[3 * p] > 0.2 and 2 or 1 end
    assert.equal(94 + 40, skin(s, nil, nil, nil, level).faces)
    for p = 0, s.count - 1 do level[p] = s.position:data()[3 * p] > 0.2 and 1 or 0 end
    assert.equal(2 * (4 + 5 + 20), skin(s, nil, nil, nil, level).faces)
    -- random places are no lattice
    local random = require "cq.random" { seed = 1 }
    local cloud = { dim = 3, count = 200, position = random:uniform({ 200, 3 }, { min = 0, max = 1 }), volume = T.full({ 200 }, 1 / 200) }
    assert.equal(200, skin(cloud).alone)
  end)

  it("is round where stairs are", function()
    local s = Shape.sphere { radius = 1, spacing = 0.1 }:sample()
    local it, worst = skin(s), 0
    for k = 0, it.vertices - 1 do
      local p = it.vertex + 3 * k
      worst = math.max(worst, math.abs(math.sqrt(p[0]^2 + p[1]^2 + p[2]^2) - 1))
    end
    assert(worst < 0.07, "off by " .. worst)
  end)

  it("is the mesh that a body came from", function()
    local path = folder .. "/wedge.obj"
    process.write(path, "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    local shape = Shape.mesh { path = path, spacing = 0.1 }:rotate(math.pi / 2, "z"):translate { 5, 0, 0 }
    local s, corner, count = shape:sample(), shape.surface()
    assert.equal(4, count)
    local it = skin(s, nil, nil, { mesh = corner, triangles = count })
    assert.same({ 4, 4, 0 }, { it.vertices, it.faces, it.alone })
    for _, place in ipairs { { 5, 0, 0 }, { 5, 1, 0 }, { 4, 0, 0 }, { 5, 0, 1 } } do assert.is_true(has_vertex(it, place)) end
    assert.is_nil((shape - Shape.sphere { radius = 0.1, spacing = 0.1 }).surface)
    assert.equal(8, select(2, (shape + shape:translate { 3, 0, 0 }).surface()))
  end)
end)

describe("what stands beside bodies", function()
  local function green(r, g, b) return g > 1.15 * r and g > 1.1 * b end
  local function brownish(r, g, b) return r > 170 and g < 120 and b < 90 end
  local function scene(fields)
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 200, height = 200, trail = false, ruler = false, legend = false, position = body().position }
    for key, value in pairs(fields) do def[key] = value end
    return Picture.frame(def)
  end
  local function space(fields)
    local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local def = { domain = { 1, 1, 1 }, volume = s.volume, width = 200, height = 150, samples = 2, trail = false, ruler = false, legend = false,
      position = s.position, fit = true, walls = Boundary.floor { at = 0.1 } }
    for key, value in pairs(fields or {}) do def[key] = value end
    return Picture.frame(def)
  end

  it("are goals, through which one sees", function()
    local n, box = count(scene { goals = { { at = { 0.7, 0.5 }, radius = 0.1 } } }, green)
    assert(n > 250 and math.abs(box[1] - 120) <= 2 and math.abs(box[4] - 119) <= 2, n .. " in " .. table.concat(box, " "))
    assert((count(space { goals = { { at = T.tensor { 0.7, 0.3, 0.5 }, radius = 0.08 } } }, green)) > 20)
    assert.equal(0, (count(space(), green)))
    -- a body behind a goal is seen
    local red = { { particles = everyone(body()), colour = "#c81e1e" } }
    assert((count(scene { groups = red, goals = { { at = { 0.45, 0.35 }, radius = 0.04 } } }, function(r, g, b) return r > 120 and r > 1.4 * g and r > 1.4 * b end)) > 150)
  end)

  it("are arrows, as long as they are told to be", function()
    local arrows = { at = { { 0.1, 0.8 } }, vector = { { 2, 0 } }, scale = 0.25 }
    local _, box = count(scene { arrows = arrows }, brownish)
    assert(math.abs(box[1] - 20) <= 2 and math.abs(box[3] - 119) <= 3, table.concat(box, " "))
    assert((count(space { arrows = { at = T.tensor { { 0.5, 0.32, 0.5 } }, vector = T.tensor { { 0, 1, 0 } }, scale = 0.2 } },
      function(r, g, b) return r > 2 * g and r > 2 * b end)) > 20)
  end)

  it("are walls where they have gone", function()
    local function ground_like(r, g, b) return r < 110 and g < 120 and b < 130 end
    local wall = Boundary.floor { at = 0.1 }
    local before, after = count(scene { walls = wall }, ground_like), count(scene { walls = wall, wall_offset = { { 0.3, 0.1 } } }, ground_like)
    assert(math.abs(after - before - 0.1 * 40000) < 300, ("%d and %d"):format(before, after))
    fails("wall_offset has 2 ways, there are 1 wall", function() scene { walls = wall, wall_offset = { { 0, 0 }, { 0, 0 } } } end)
  end)

  it("are ceilings that do not hide what is below", function()
    local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local red = { { particles = everyone(s), colour = "#c81e1e" } }
    local function reds(walls) return (count(space { groups = red, walls = walls }, function(r, g, b) return r > 1.3 * g and r > 1.3 * b end)) end
    local floor, ceiling = Boundary.floor { at = 0.1 }, Boundary.half_plane { point = { 0, 0.31, 0 }, normal = { 0, -1, 0 } }
    local free, below = reds { floor }, reds { floor, ceiling }
    assert(free > 1000 and below > 0.85 * free, ("%d and %d"):format(free, below))
    assert.are_not.equal(ffi.string(space { walls = { floor } }:pixels(), 120000), ffi.string(space { walls = { floor, ceiling } }:pixels(), 120000))
  end)

  it("are held parts, which are hatched or darker", function()
    local held = {}
    for p = 1, 50 do held[p] = p end
    assert((count(scene { held = held }, dark)) > 1.3 * (count(scene {}, dark)))
    fails("held[1] is particle 101, there are 100", function() scene { held = { 101 } } end)
  end)

  it("are told in sentences where they are wrong", function()
    fails("goals[1] must be 2 numbers, got a list of 3", function() scene { goals = { { 1, 2, 3 } } } end)
    fails("unknown field radus (did you mean radius?)", function() scene { goals = { { at = { 1, 2 }, radus = 3 } } } end)
    fails("arrows have 1 places and 2 vectors", function() scene { arrows = { at = { { 0, 0 } }, vector = { { 1, 0 }, { 1, 0 } } } } end)
    fails("arrows need vector {k, 2}, got a tensor {2}", function() scene { arrows = { at = { { 0, 0 } }, vector = { 1, 0 } } } end)
    fails("bodies[1] has the particles 1 to 101", function() scene { bodies = { { count = 101 } } } end)
    fails("opacity must have the shape {100}", function() scene { opacity = T.ones { 3 } } end)
    fails("particle 1 has the number 3, the categories have 1 to 2", function() scene { scale = { categories = { "a", "b" } }, value = T.full({ 100 }, 3) } end)
    fails("camera must be { eye =, target = }", function() space { camera = 3 } end)
    fails("must give { eye =, target = }, got", function() space { camera = function() end } end)
  end)
end)

describe("a picture", function()
  local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
  local function everything(threads, more)
    require("cq.option").program.threads = threads
    local opacity = T.ones { s.count }
    for p = 0, 300 do opacity:data()[p] = 0.5 end
    local def = { domain = { 1, 1, 1 }, volume = s.volume, width = 201, height = 150, position = s.position, opacity = opacity, goals = { { 0.7, 0.3, 0.5 } },
      actuation = s.position:slice(1, 1, 2):reshape { s.count }, walls = { Boundary.floor { at = 0.1 }, Boundary.obstacle { lower = { 0.7, 0.1, 0.4 }, upper = { 0.8, 0.2, 0.5 } } },
      arrows = { at = { { 0.5, 0.4, 0.5 } }, vector = { { 0, 1, 0 } } }, fit = true }
    for key, value in pairs(more or {}) do def[key] = value end
    local fine, canvas = pcall(Picture.frame, def)
    require("cq.option").program.threads = nil
    assert(fine, canvas)
    return ffi.string(canvas:pixels(), 4 * 201 * 150)
  end

  it("is the same by any number of threads", function()
    local one = everything(1)
    for threads = 2, 5 do assert.equal(one, everything(threads)) end
  end)

  it("is seen through where particles are not opaque", function()
    local all = everything(1, { opacity = T.ones { s.count } })
    assert.are_not.equal(all, everything(1))
    -- nothing is left of a body that cannot be seen, but the ground, the goal and the arrow
    local none = everything(1, { opacity = T.zeros { s.count }, actuation = T.ones { s.count } })
    assert.equal(none, everything(1, { opacity = T.zeros { s.count }, actuation = -T.ones { s.count } }))
  end)

  it("shows high bodies whole", function()
    local high = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.1, 1.5, 0.1 }, spacing = 0.02 }:sample()
    local red = { { particles = everyone(high), colour = "#c81e1e" } }
    local canvas = Picture.frame { domain = { 4, 2, 2 }, volume = high.volume, position = high.position, width = 320, groups = red,
      walls = Boundary.floor { at = 0.1 }, follow = true }
    local n, box = count(canvas, function(r, g, b) return r > 1.8 * g and r > 1.8 * b and r > 60 end)
    assert(n > 1000 and box[2] > 3 and box[4] < 176 and box[4] - box[2] > 90, table.concat(box, " "))
  end)

  it("is seen from where a function of time says", function()
    local times = {}
    local camera = function(time, centre)
      times[#times + 1] = time
      assert(math.abs(centre[1] - 0.5) < 1e-6)
      return { eye = { 0.5, 0.5, 2 + time }, target = centre }
    end
    local scene = Picture.scene { domain = { 1, 1, 1 }, volume = s.volume, width = 64, height = 64, camera = camera }
    local near = ffi.string(scene:frame({ position = s.position, time = 0 }):pixels(), 64 * 64 * 4)
    assert.are_not.equal(near, ffi.string(scene:frame({ position = s.position, time = 1 }):pixels(), 64 * 64 * 4))
    assert.same({ 0, 1 }, times)
  end)

  it("follows by time, however many frames there are", function()
    local function centre(frames)
      local scene = Picture.scene { domain = { 8, 1 }, volume = 1e-4, width = 64, height = 64, lag = 0.2, samples = 1 }
      for k = 0, frames do scene:frame { position = body().position + T.tensor { k > 0 and 1 or 0, 0 }, time = k / frames } end
      return scene.camera_centre[1]
    end
    assert(math.abs(centre(5) - centre(20)) < 1e-9 and math.abs(centre(5) - (1.45 - math.exp(-5))) < 1e-9)
  end)

  it("shows several moments, the earlier ones paler", function()
    local b = body()
    local red = { { particles = everyone(b), colour = "#c81e1e" } }
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 200, height = 200, groups = red, position = b.position + T.tensor { 0.3, 0 } }
    local once = count(Picture.frame(def), reddish)
    def.before = { { position = b.position - T.tensor { 0.3, 0 } } }
    local canvas = Picture.frame(def)
    assert.equal(once, (count(canvas, reddish)))
    assert((count(canvas, function(r, g, b_) return r > 200 and g > 110 and g < 170 and b_ < 170 end)) > 300)
  end)

  it("tells categories by name", function()
    local b = body()
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 300, height = 200, position = b.position, value = T.full({ b.count }, 2), scale = { categories = { "still", "moving" } } }
    assert((count(Picture.frame(def), function(r, g, b_) return r > 190 and g > 80 and g < 120 and b_ < 80 end)) > 300)
    fails("give either categories or range", function() Picture.scene { domain = { 1, 1 }, volume = 1, scale = { categories = { "a" }, range = { 0, 1 } } } end)
  end)

  it("is pasted into another one", function()
    local small = Picture.canvas { width = 20, height = 16, background = "#c81e1e" }
    local n, box = count(Picture.canvas({ width = 60, height = 40 }):paste(small, 10, 5):paste(small, 50, 30), reddish)
    assert.same({ 320 + 100, { 10, 5, 59, 39 } }, { n, box })
    fails("must have as many", function() Picture.canvas({ width = 60, height = 40, samples = 3 }):paste(small, 0, 0) end)
  end)
end)

describe("a film", function()
  local function frames(film, n)
    for k = 1, n or 5 do
      film:add(Picture.canvas { width = 64, height = 48, samples = 1 }:disc(10 * k, 24, 8, "#c81e1e"))
    end
    return film
  end
  local has_ffmpeg = process.cqlua { "-e", "os.exit(os.execute 'command -v ffmpeg >/dev/null' and 0 or 1)" }.code == 0
  local path = os.getenv "PATH"

  -- with only the shell's own tools in PATH, and `ffmpeg` if a script for it is given
  local function with_path(script, f)
    local bin = folder .. "/bin"
    assert(host.make_folder(bin))
    for _, tool in ipairs { "sh", "cat", "rm" } do os.execute(("ln -sf $(command -v %s) '%s/%s'"):format(tool, bin, tool)) end
    if script then
      process.write(bin .. "/ffmpeg", "#!/bin/sh\n" .. script)
      os.execute("chmod +x '" .. bin .. "/ffmpeg'")
    end
    ffi.C.setenv("PATH", bin, 1)
    local fine, problem = pcall(f)
    ffi.C.setenv("PATH", path, 1)
    assert(fine, problem)
  end

  for _, kind in ipairs { "mp4", "gif", "webm", "mkv" } do
    it("becomes a file: " .. kind, function()
      if not has_ffmpeg then return pending "ffmpeg is not installed" end
      local file = folder .. "/it's a film." .. kind
      assert.equal(file, frames(Picture.video { path = file, fps = 10 }):close())
      assert(#process.read(file) > 500)
      for _, name in ipairs(host.entries(folder)) do assert.equal("it's a film." .. kind, name) end      -- nothing is left beside it
    end)
  end

  it("keeps its frames where ffmpeg is missing, and can be made from them later", function()
    local file = folder .. "/walk.mp4"
    with_path(nil, function()
      assert.equal(folder .. "/walk_frames", frames(Picture.video { path = file }, 3):close())
      fails("ffmpeg is not installed", Picture.encode, { frames = folder .. "/walk_frames", path = file })
    end)
    assert.is_nil(process.read(file))
    local picture = image.read(folder .. "/walk_frames/000003.png")
    assert.equal(64, picture.width)
    if has_ffmpeg then
      assert.equal(file, Picture.encode { frames = folder .. "/walk_frames", path = file })
      assert(#process.read(file) > 500)
    end
    fails("there is no", Picture.encode, { frames = folder, path = folder .. "/b.mp4" })
  end)

  it("says what ffmpeg said when it fails, and survives its early end", function()
    with_path("echo 'first' >&2; echo 'no such encoder' >&2; exit 3", function()
      local film = Picture.video { path = folder .. "/a.mp4" }
      for _ = 1, 40 do film:add(Picture.canvas { width = 320, height = 240, samples = 1 }) end      -- more than a pipe holds
      fails("exit code 3", function() film:close() end)
    end)
    with_path("echo 'no such encoder' >&2; exit 3", function()
      fails("no such encoder", function() frames(Picture.video { path = folder .. "/a.mp4" }):close() end)
    end)
    assert.is_nil(process.read(folder .. "/a.mp4"))
  end)

  it("says what keeps it from being written where ffmpeg's own words do not fit either", function()
    local code = ("local P = require 'cq.picture'; local film = P.video { path = '%s/a.mp4' }; film:add(P.canvas { width = 64, height = 48 }); film:close()")
      :format(folder)
    with_path("exit 1", function()
      -- at most 2 KiB, which is room for the words of a test, and no more
      local result = process.cqlua({ "-e", code }, { before = "ulimit -f 4;" })
      assert.equal(1, result.code)
      assert.truthy(result.err:find("(exit code 1): File too large", 1, true), result.err)
      assert.same({ "bin" }, host.entries(folder))
    end)
  end)

  it("is a file whatever its name: no protocol and no option of ffmpeg's", function()
    if not has_ffmpeg then return pending "ffmpeg is not installed" end
    assert(host.make_folder(folder .. "/10:30"))
    local code = [[
      local P = require "cq.picture"
      for _, name in ipairs { "10:30/x.mp4", "pipe:1.mp4", "-y.mp4", "http:%d.mp4" } do
        local film = P.video { path = name }
        film:add(P.canvas { width = 64, height = 48 })
        print(film:close())
      end]]
    local result = process.cqlua({ "-e", code }, { before = "cd " .. folder .. " &&" })
    assert.same({ code = 0, out = "10:30/x.mp4\npipe:1.mp4\n-y.mp4\nhttp:%d.mp4\n", err = "" }, result)
    for name in result.out:gmatch "[^\n]+" do assert(#process.read(folder .. "/" .. name) > 500, name) end
  end)

  it("clears away what killed programs have left of it", function()
    for _, name in ipairs { "", ".log", ".status" } do process.write(("%s/a.mp4%s.999999999.part"):format(folder, name), "") end
    process.write(folder .. "/b.mp4.999999999.part", "")
    Picture.video({ path = folder .. "/a.mp4" }):discard()
    assert.same({ "b.mp4.999999999.part" }, host.entries(folder))
  end)

  it("that is given up leaves nothing behind", function()
    if not has_ffmpeg then return pending "ffmpeg is not installed" end
    local film = frames(Picture.video { path = folder .. "/a.mp4" })
    film:discard()
    film:discard()
    assert.same({}, host.entries(folder))
    fails("is finished", function() frames(film) end)
    Picture.video({ path = folder .. "/a.mp4" }):discard()
    assert.same({}, host.entries(folder))
  end)

  it("outlives a Ctrl-C that reaches ffmpeg first", function()
    with_path("kill -INT $PPID; exit 255", function()
      local film = Picture.video { path = folder .. "/a.mp4" }
      for _ = 1, 40 do film:add(Picture.canvas { width = 320, height = 240, samples = 1 }) end
      fails("exit code 255", function() film:close() end)
    end)
  end)

  it("says before the first frame what cannot be", function()
    fails("cannot write", Picture.video, { path = folder .. "/none/a.mp4" })
    fails("must end in .gif, .mkv, .mp4, .webm", Picture.video, { path = folder .. "/a.avi" })
    fails("fps must be", Picture.video, { path = folder .. "/a.mp4", fps = 0 })
    fails("has no frames", function() Picture.video { path = folder .. "/a.mp4" }:close() end)
    local film = frames(Picture.video { path = folder .. "/a.mp4" })
    fails("frames have one size", function() film:add(Picture.canvas { width = 32, height = 32 }) end)
    film:close()
  end)
end)
