-- picture: what is drawn lies where it should, on the plane and in space; films with and without ffmpeg.
local ffi = require "ffi"
local pixels = require "tests.pixels"
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

local fails = require("tests.sentence").fails

-- red, green, blue at a pixel
local function at(canvas, x, y)
  local p = canvas:pixels() + 4 * (y * canvas.width + x)
  return { p[0], p[1], p[2] }
end

local count, dark, reddish = pixels.count, pixels.dark, pixels.reddish
local body, in_red = pixels.body, pixels.in_red
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
    local canvas = Picture.canvas { width = 64, height = 64,
      samples = 1 }:polygon({ { 10, 10 }, { 50.5, 10 }, { 10, 30.25 } }, "#000000")
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
    local canvas = Picture.canvas { width = 20, height = 20, background = "#000000" }:rectangle(0, 0, 20, 20,
      "#ffffff80")
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

  it("writes characters beyond ASCII as the nearest of it", function()
    local function drawn(text)
      local canvas = Picture.canvas { width = 400, height = 40 }
      local width = canvas:text { x = 6, y = 30, size = 12, text = text, colour = "#000000" }
      assert.equal(width, canvas:text_width(text, 12))
      return ffi.string(canvas:pixels(), 4 * 400 * 40)
    end
    for text, expected in pairs {
      ["± 0.3 µm, 5 μm"] = "+- 0.3 um, 5 um", ["é Öß žŁÆ"] = "e Oss zLAE", ["90 °C – 1 — 2"] = "90 degC - 1 - 2",
      ["3 × 10⁻¹² m²"] = "3 x 10^-12 m^2", ["σ Δ Ω Μ"] = "sigma Delta Omega Mu", ["日本"] = "??", ["e\204\129"] = "e",
      ["\181m a\128 \255"] = "?m a? ?", ["≤ “x” …"] = "<= \"x\" ...",
    } do
      assert(drawn(text) == drawn(expected), text)
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
    fails("/none/a.png cannot be written: there is no folder", function() Picture.canvas():write(folder .. "/none/a.png") end)
  end)
end)

describe("a scene of the plane", function()
  local function scene(more)
    local fields = { domain = { 1, 1 }, volume = 1e-4, width = 400, height = 400, trail = false, ruler = false,
      legend = false }
    for k, v in pairs(more or {}) do fields[k] = v end
    return Picture.scene(fields)
  end

  it("shows particles in the colour of their group, at their place", function()
    local s = body()
    local canvas = scene { groups = { { name = "part", particles = s.groups.part, colour = "#c81e1e" } } }:frame {
      position = s.position }
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
    local groups = in_red(s)
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
      groups = in_red(s), walls = Boundary.box { inset = 0.05 } }
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
      return (count(picture:frame { position = T.tensor { { 0.5, 0.5 } }, actuation = T.zeros { 1 },
        label = more.label }, bright))
    end
    local bare = lit {}
    assert(lit { label = "t = 0.3" } > bare + 300)
    assert(lit { legend = true } > bare + 4000)         -- a plate under words, marks and the bar between its ends
  end)

  -- what the numbers of a ruler differ by from what is behind them, and the lowest row that has some of it
  local function contrast_of_ruler(way)
    local shown = {}
    for k, with in ipairs { false, true } do
      local picture = scene { ruler = with, walls = Boundary.floor { at = 0.2 } }
      local canvas = picture:frame { position = T.tensor { { 0.5, 0.7 } }, wall_offset = { { 0, way } } }
      shown[k] = ffi.string(canvas:pixels(), 640000)
    end
    local most, lowest = 0, 0
    for k = 1, #shown[1], 4 do
      local a, b = shown[1]:byte(k), shown[2]:byte(k)
      if a ~= b then most, lowest = math.max(most, math.abs(a - b)), math.floor((k - 1) / 1600) end
    end
    return most, lowest
  end

  it("has a ruler that goes with the ground and can be read where the ground has left the picture", function()
    for _, way in ipairs { 0.1, 0, -0.05, -0.1, -0.15, -0.18, -0.2, -1 } do
      local most, lowest = contrast_of_ruler(way)
      assert(most > 100, ("%g: %g"):format(way, most))
      local edge = 320 - 400 * way
      assert(lowest < 400 and (lowest > edge) == (edge + 28 < 400), ("%g: row %d"):format(way, lowest))
    end
  end)

  it("gives the same pixels each time", function()
    local s = body()
    local function draw()
      return ffi.string(scene { ruler = true, trail = true }:frame { position = s.position, label = "a" }:pixels(),
        640000)
    end
    assert.equal(draw(), draw())
  end)

  it("says what does not fit", function()
    local x = T.tensor { { 0.5, 0.5 }, { 0.6, 0.5 } }
    fails("position must have the shape {2, 3}",
      function() Picture.frame { domain = { 1, 1, 1 }, volume = 1, position = x } end)
    fails("deformation must have the shape {2, 2, 2}",
      function() Picture.frame { domain = { 1, 1 }, volume = 1, position = x, deformation = x } end)
    fails("actuation must have the shape {2}",
      function() Picture.frame { domain = { 1, 1 }, volume = 1, position = x, actuation = x } end)
    fails("groups[1] has particle 3, there are 2", function()
      Picture.frame { domain = { 1, 1 }, volume = 1, position = x, groups = { { particles = { 3 } } } }
    end)
    fails("did you mean position?", function() Picture.frame { domain = { 1, 1 }, volume = 1, positions = x } end)
    fails("camera is for 3D", function() Picture.scene { domain = { 1, 1 }, volume = 1, camera = {} } end)
    fails("walls[1] must be a cq.Boundary", function()
      Picture.scene { domain = { 1, 1 }, volume = 1, walls = { 3 } }
    end)
  end)
end)

describe("a scene of space", function()
  local camera = { eye = { 0.5, 0.5, 3 }, target = { 0.5, 0.5, 0.5 }, field_of_view = 0.6 }
  local function frame(points, more)
    local fields = {
      domain = { 1, 1, 1 }, volume = 0.008, width = 320, height = 240, camera = camera, trail = false, ruler = false,
      legend = false,
      groups = { { particles = { 1 }, colour = "#c81e1e" },
        { particles = #points > 1 and { 2 } or { 1 }, colour = #points > 1 and "#1e1ec8" or "#c81e1e" } },
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

  it("is seen straight from above and from below with x to the right", function()
    for height, is_low in pairs { [2] = true, [0.2] = false } do
      local view = { eye = { 0.5, height, 0.5 }, target = { 0.5, 0.9, 0.5 }, field_of_view = 1.6 }
      local canvas = frame({ { 0.6, 0.9, 0.7 } }, { camera = view })
      local n, box = count(canvas, red)
      assert(n > 50 and box[1] + box[3] > 330, table.concat(box, " "))
      assert.equal(is_low, box[2] + box[4] > 250)
    end
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
    local scene = Picture.scene { domain = { 4, 1, 2 }, volume = s.volume, width = 320,
      groups = in_red(s),
      walls = { Boundary.floor { at = 0.1 },
        Boundary.obstacle { lower = { 1.6, 0.1, 1 }, upper = { 1.8, 0.3, 1.2 } } } }
    local canvas = scene:frame { position = s.position }
    local n, box = count(canvas, red)
    assert(n > 1500 and n < 20000, tostring(n))
    assert(box[1] > 40 and box[3] < 280 and box[2] > 20 and box[4] < 170, table.concat(box, " "))
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
    for _, tool in ipairs { "sh", "cat", "rm" } do
      os.execute(("ln -sf $(command -v %s) '%s/%s'"):format(tool, bin, tool))
    end
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
      -- nothing is left beside it
      for _, name in ipairs(host.entries(folder)) do assert.equal("it's a film." .. kind, name) end
    end)
  end

  it("keeps its frames where ffmpeg is missing, and tells what makes it of them", function()
    local file, message, told = folder .. "/a walk.mp4", require "cq.base.message", nil
    local note = message.note
    message.note = function(format, ...) told = format:format(...) end
    with_path(nil, function()
      assert.equal(folder .. "/a walk_frames", frames(Picture.video { path = file }, 3):close())
    end)
    message.note = note
    assert.is_nil(process.read(file))
    local picture = image.read(folder .. "/a walk_frames/000003.png")
    assert.equal(64, picture.width)
    if has_ffmpeg then
      os.execute(told:match "(ffmpeg %-framerate .*)" .. " >/dev/null 2>&1")
      assert(#process.read(file) > 500, told)
    end
  end)

  it("leaves no frames of an earlier, longer film beside its own", function()
    local kept, message = folder .. "/a_frames/", require "cq.base.message"
    local note = message.note
    message.note = function() end
    local function made(many)
      frames(Picture.video { path = folder .. "/a.mp4", keep_frames = true }, many):close()
    end
    -- without ffmpeg, and with one that reads its frames
    for _, tool in ipairs { false, "cat >/dev/null; for last; do :; done; echo film > \"${last#file:}\"" } do
      with_path(tool, function()
        made(5)
        process.write(kept .. "note.png", "")
        process.write(kept .. "0000041.png", "")
        made(3)
      end)
      local names = host.entries(folder .. "/a_frames")
      table.sort(names)
      assert.same({ "000001.png", "000002.png", "000003.png", "0000041.png", "note.png" }, names)
    end
    message.note = note
  end)

  it("says what ffmpeg said when it fails, and survives its early end", function()
    with_path("echo 'first' >&2; echo 'no such encoder' >&2; exit 3", function()
      local film = Picture.video { path = folder .. "/a.mp4" }
      -- more than a pipe holds
      for _ = 1, 40 do film:add(Picture.canvas { width = 320, height = 240, samples = 1 }) end
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
    local result = process.cqlua({ "--out", ".", "-e", code }, { before = "cd " .. folder .. " &&" })
    assert.same({ code = 0, out = "10:30/x.mp4\n./pipe:1.mp4\n./-y.mp4\n./http:%d.mp4\n", err = "" }, result)
    for name in result.out:gmatch "[^\n]+" do assert(#process.read(folder .. "/" .. name) > 500, name) end
  end)

  it("clears away what killed programs have left of it", function()
    for _, name in ipairs { "", ".log", ".status" } do
      process.write(("%s/a.mp4%s.999999999.part"):format(folder, name), "")
    end
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
    local canvas = Picture.canvas { width = 16, height = 16 }
    fails('its path must end in .png, got "' .. folder .. '/a.jpg"', function() canvas:write(folder .. "/a.jpg") end)
    fails("fps must be", Picture.video, { path = folder .. "/a.mp4", fps = 0 })
    fails("has no frames", function() Picture.video { path = folder .. "/a.mp4" }:close() end)
    local film = frames(Picture.video { path = folder .. "/a.mp4" })
    fails("frames have one size", function() film:add(Picture.canvas { width = 32, height = 32 }) end)
    film:close()
  end)
end)
