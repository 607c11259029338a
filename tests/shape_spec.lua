-- shape: counts, volumes, groups, transforms and combinations of particles; and what bad shapes get.
local cq = require "cq"
local process = require "tests.process"
local image = require "cq.base.image"
local Shape = require "cq.shape"

local fails = require("tests.sentence").fails

local function near(wanted, got, tolerance)
  assert(math.abs(wanted - got) <= (tolerance or 1e-12), ("wanted %.15g, got %.15g"):format(wanted, got))
end

-- visits the particles: x, y, z, volume, number
local function each(sample, visit)
  local x, v, d = sample.position:data(), sample.volume:data(), sample.dim
  for p = 0, sample.count - 1 do visit(x[d * p], x[d * p + 1], d == 3 and x[d * p + 2] or nil, v[p], p + 1) end
end

-- the smallest distance between two particles
local function closest(sample)
  local least, x = math.huge, sample.position:data()
  for p = 0, sample.count - 1 do
    for q = p + 1, sample.count - 1 do
      least = math.min(least, (x[2 * p] - x[2 * q])^2 + (x[2 * p + 1] - x[2 * q + 1])^2)
    end
  end
  return math.sqrt(least)
end

describe("a box", function()
  it("has exactly its count, in the middle of its cells, with their volume", function()
    local s = Shape.box { at = { 1, 2 }, size = { 0.6, 0.2 }, count = { 3, 2 } }:sample()
    assert.same({ 6, 2 }, s.position:shape())
    assert.same({ 6 }, s.volume:shape())
    local seen = {}
    each(s, function(x, y, _, v)
      near(0.02, v)
      seen[#seen + 1] = ("%.4f %.4f"):format(x, y)
    end)
    assert.same({ "1.1000 2.0500", "1.1000 2.1500", "1.3000 2.0500", "1.3000 2.1500", "1.5000 2.0500",
      "1.5000 2.1500" }, seen)
    near(0, s.volume_error)
  end)

  it("fits its lattice to the spacing, in 2D and 3D", function()
    assert.equal(50 * 20, Shape.box { size = { 1, 0.4 }, spacing = 0.02 }:sample().count)
    assert.equal(10 * 5 * 2, Shape.box { size = { 1, 0.5, 0.2 } }:sample { spacing = 0.1 }.count)
    local s = Shape.box { size = { 1, 1 } }:sample { spacing = { 0.5, 0.1 } }
    assert.equal(20, s.count)
    near(1, s.volume_total)
  end)

  it("prefers its own spacing to that of all", function()
    assert.equal(100, Shape.box { size = { 1, 1 }, spacing = 0.1 }:sample { spacing = 0.01 }.count)
  end)

  it("scatters by a seed, within the cells, the same each time", function()
    local function make(seed)
      return Shape.box { size = { 1, 1 }, count = { 10, 10 }, jitter = 0.8, seed = seed }:sample()
    end
    local a, b, c = make(1), make(1), make(2)
    assert.is_true(a.position:equal(b.position))
    assert.is_false(a.position:equal(c.position))
    each(a, function(x, y, _, _, p)
      local i, j = math.floor((p - 1) / 10), (p - 1) % 10
      assert(math.abs(x - (i + 0.5) / 10) <= 0.04 and math.abs(y - (j + 0.5) / 10) <= 0.04)
    end)
  end)
end)

describe("round and straight shapes", function()
  -- lattice error of an area falls with the spacing; these bounds hold with room at 1/100 of the size
  local cases = {
    { "disc", Shape.disc { radius = 0.5 }, math.pi / 4, 0.01 },
    { "ellipse", Shape.ellipse { radii = { 0.5, 0.2 } }, math.pi * 0.1, 0.01 },
    { "polygon", Shape.polygon { points = { { 0, 0 }, { 1, 0 }, { 0.3, 0.8 } } }, 0.4, 0.01 },
    { "capsule", Shape.capsule { from = { 0, 0 }, to = { 1, 0.2 }, radius = 0.2 }, math.pi * 0.04
      + 0.4 * math.sqrt(1.04), 0.01 },
    { "concave polygon", Shape.polygon { points = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0.5, 0.5 }, { 0, 1 } } }, 0.75,
      0.01 },
  }
  for _, case in ipairs(cases) do
    it(("know the area of a %s and fill it"):format(case[1]), function()
      local s = case[2]:sample { spacing = 0.01 }
      near(case[3], s.volume_exact, 1e-12)
      assert(math.abs(s.volume_error) < case[4], tostring(s))
      each(s, function(x, y) assert(case[2]:contains(x, y)) end)
    end)
  end

  it("do not know the area of a polygon that crosses itself, and fill it where inside and outside alternate", function()
    -- two triangles that meet in the middle of the square, traversed in opposite directions
    local bow = Shape.polygon { points = { { 0, 0 }, { 1, 1 }, { 1, 0 }, { 0, 1 } } }
    local sample = bow:sample { spacing = 0.02 }
    assert.is_nil(bow.exact)
    near(0.5, sample.volume_total, 0.02)
    assert.is_nil(tostring(sample):find("exact", 1, true))
    -- a star of five points in one line, and its outline, which only touches itself
    local star, outline = {}, {}
    for k = 0, 4 do
      star[k + 1] = { math.cos(0.8 * math.pi * k), math.sin(0.8 * math.pi * k) }
      for j, r in ipairs { 1, 0.4 } do
        local angle = (2 * k + j - 1) * math.pi / 5
        outline[2 * k + j] = { r * math.cos(angle), r * math.sin(angle) }
      end
    end
    assert.is_nil(Shape.polygon({ points = star }).exact)
    near(2 * math.sin(math.pi / 5), Shape.polygon({ points = outline }).exact)
  end)

  it("know the volume of a ball, an ellipsoid and a capsule in space", function()
    local ball = Shape.sphere { radius = 0.5 }:sample { spacing = 0.025 }
    near(math.pi / 6, ball.volume_exact)
    assert(math.abs(ball.volume_error) < 0.01, tostring(ball))
    near(4 / 3 * math.pi * 0.006, Shape.ellipse { radii = { 0.1, 0.2, 0.3 } }.exact)
    near(4 / 3 * math.pi * 0.001 + math.pi * 0.01,
      Shape.capsule { from = { 0, 0, 0 }, to = { 0, 0, 1 }, radius = 0.1 }.exact)
  end)
end)

describe("combined shapes", function()
  local a = Shape.box { name = "a", size = { 1, 1 }, spacing = 0.1 }
  local b = Shape.box { name = "b", at = { 0.5, 0 }, size = { 1, 1 }, spacing = 0.1 }

  it("fill no place twice", function()
    local s = (a + b):sample()
    assert.equal(150, s.count)
    near(1.5, s.volume_total)
    assert(closest(s) > 0.0999)
    assert.equal(100, #s.groups.a)
    assert.equal(50, #s.groups.b)
    assert.same({ "a", "b" }, s.group_names)
    assert.is_nil(s.volume_exact)
  end)

  it("know their volume while they cannot overlap", function()
    near(2, (a + b:translate { 0.5, 0 }):sample().volume_exact)
  end)

  it("take away and cut", function()
    local hole = Shape.disc { at = { 0.5, 0.5 }, radius = 0.25 }
    local s = (a - hole):sample()
    each(s, function(x, y) assert((x - 0.5)^2 + (y - 0.5)^2 >= 0.0625) end)
    local rest = a:intersection(hole):sample()
    assert.equal(100, s.count + rest.count)
    assert.equal(50, a:intersection(b):sample().count)
    assert.same({ "a" }, a:intersection(b):sample().group_names)
  end)

  it("stand in one list as well", function()
    local s = Shape.union { a, b, Shape.disc { name = "c", at = { 3, 3 }, radius = 0.3, spacing = 0.1 } }:sample()
    assert.equal(150 + #s.groups.c, s.count)
  end)

  it("repeat with numbered groups and a common one", function()
    local s = a:repeated { count = 3, step = { 1.5, 0 } }:sample()
    assert.equal(300, s.count)
    assert.equal(300, #s.groups.a)
    local x = s.position:data()
    for k = 1, 3 do
      assert.equal(100, #s.groups["a." .. k])
      for _, p in ipairs(s.groups["a." .. k]) do
        local place = x[2 * (p - 1)]
        assert(place > 1.5 * (k - 1) and place < 1.5 * (k - 1) + 1)
      end
    end
  end)

  it("have groups and parts by predicate, which move along", function()
    local s = a:group("top", function(_, y) return y > 0.5 end):rotate(math.pi / 2):translate { 5, 0 }:sample()
    assert.equal(50, #s.groups.top)
    local x = s.position:data()
    for _, p in ipairs(s.groups.top) do assert(x[2 * (p - 1)] < 4.5) end      -- up became left
    assert.equal(30, a:where(function(px) return px < 0.3 end):sample().count)
    assert.equal(100, #a:named("all"):sample().groups.all)
  end)
end)

describe("moved shapes", function()
  local box = Shape.box { name = "leg", size = { 1, 0.5 }, count = { 4, 2 } }

  it("keep their particles and change their volume with the scale", function()
    local s = box:scale({ 2, 3 }, { 0, 0 }):sample()
    assert.equal(8, s.count)
    near(3, s.volume_total)
    near(0, s.volume_error)
  end)

  it("keep the spacing asked for after scaling and turning", function()
    local s = Shape.box { size = { 1, 1 } }:scale(2):rotate(0.7):sample { spacing = 0.1 }
    assert.equal(400, s.count)
  end)

  it("turn counterclockwise about a point", function()
    local s = Shape.box { size = { 1, 1 }, count = { 1, 1 } }:rotate(math.pi / 2, { 1, 0 }):sample()
    near(0.5, s.position:get(1, 1))
    near(-0.5, s.position:get(1, 2))
    near(-1, Shape.box({ size = { 1, 1 } }):rotate(math.pi / 2, nil, { 1, 0 }).lower[2])
  end)

  it("turn about axes in space by the right hand's rule", function()
    local cube = Shape.box { at = { 1, 0, 0 }, size = { 0.2, 0.2, 0.2 }, count = { 1, 1, 1 } }
    local s = cube:rotate(math.pi / 2, "z"):sample()
    near(-0.1, s.position:get(1, 1))
    near(1.1, s.position:get(1, 2))
    near(0.1, s.position:get(1, 3))
    local t = cube:rotate(2 * math.pi / 3, { 1, 1, 1 }):sample()      -- x -> y -> z -> x
    near(0.1, t.position:get(1, 1))
    near(1.1, t.position:get(1, 2))
    assert.is_true(cube:rotate(math.pi / 2, "z"):contains(-0.1, 1.1, 0.1))
    assert.is_false(cube:rotate(math.pi / 2, "z"):contains(1.1, 0.1, 0.1))
  end)

  it("mirror", function()
    local s = box:mirror("x", 1):sample()
    each(s, function(x) assert(x > 1 and x < 2) end)
    near(0.5, s.volume_total)
  end)
end)

describe("an image shape", function()
  local folder, path

  -- 40 x 20: left half red, right half blue, a transparent hole in the middle of the red, the lower row white
  setup(function()
    folder = process.folder()
    path = folder .. "/robot.png"
    image.write { path = path, width = 40, height = 20, pixel = function(x, y)
      if x >= 5 and x < 15 and y >= 5 and y < 15 then return 0, 0, 0, 0 end
      if y == 19 then return 255, 255, 255 end
      if x < 20 then return 200, 30, 30 end
      return 30, 30, 200
    end }
  end)
  teardown(function() process.remove(folder) end)

  it("is groups by colour, with y up and transparency left out", function()
    local shape = Shape.image { path = path, width = 2, at = { 1, 0 },
      colours = { left = "#c81e1e", right = "#1e1ec8" } }
    local s = shape:sample { spacing = 0.05 }
    assert.equal(800 - 100, s.count)
    near(2 * 700 / 800, s.volume_exact)
    near(s.volume_exact, s.volume_total)
    assert.equal(20 * 19 - 100, #s.groups.left)
    assert.equal(20 * 19, #s.groups.right)
    local x = s.position:data()
    -- the white row is below
    for _, p in ipairs(s.groups.left) do assert(x[2 * p - 2] < 2 and x[2 * p - 1] > 0.05) end
    assert.is_false(shape:contains(1.5, 0.5))
    assert.is_true(shape:contains(1.1, 0.9))
  end)

  it("contains a point, given as numbers or as a list", function()
    local disc, ball = Shape.disc { radius = 1 }, Shape.sphere { radius = 1 }
    assert.is_true(disc:contains { 0, 0 } and disc:contains(0.6, 0.7) and ball:contains { 0, 0, 0.9 })
    assert.is_false(disc:contains { 0.8, 0.8 } or ball:contains(0, 0, 1.1))
    local wanted = "shape:contains: a point of this shape is %d numbers, as { %s }, got %s"
    for _, case in ipairs {
      { disc, { { 0 } }, 2, "x, y", "a list of 1" }, { disc, { 0, 0, 0 }, 2, "x, y", "3 numbers" },
      { ball, { 0, 0 }, 3, "x, y, z", "2 numbers" }, { disc, {}, 2, "x, y", "nil" },
      { disc, { { 0, "a" } }, 2, "x, y", '"a" among them' }, { disc, { cq.tensor { 0, 0 } }, 2, "x, y", "a cq.Tensor" },
    } do
      fails(wanted:format(case[3], case[4], case[5]), case[1].contains, case[1], unpack(case[2]))
    end
  end)

  it("leaves a background colour out", function()
    local s = Shape.image { path = path, width = 2, background = "#fff", spacing = 0.05 }:sample()
    assert.equal(700 - 40, s.count)
  end)

  it("says what is wrong", function()
    fails("cannot open image", Shape.image, { path = folder .. "/none.png", width = 1 })
    fails("has no pixel of the colour #00ff00 of \"foot\"; its commonest are #1e1ec8", Shape.image,
      { path = path, width = 1, colours = { foot = "#00ff00" } })
    fails("give either width or size", Shape.image, { path = path })
    fails("a colour is \"#rrggbb\", got \"green\"", Shape.image,
      { path = path, width = 1, colours = { foot = "green" } })
    fails("did you mean colours?", Shape.image, { path = path, width = 1, colors = {} })
    local clear = folder .. "/clear.png"
    image.write { path = clear, width = 4, height = 4, pixel = function() return 0, 0, 0, 0 end }
    fails("every pixel", Shape.image, { path = clear, width = 1 })
  end)

  it("refuses a picture of which nothing is outside, unless all its colours are named", function()
    local whole = folder .. "/whole.png"
    local function drawn(pixel)
      image.write { path = whole, width = 6, height = 4, pixel = pixel }
      return { path = whole, width = 1, spacing = 0.1 }
    end
    local function with(fields, name, value)
      fields[name] = value
      return fields
    end
    fails("is #ffffff, it has no outline; what is outside must be transparent, or of another colour", Shape.image,
      drawn(function() return 255, 255, 255 end))
    local function on_paper(x) return x < 3 and 255 or 200, x < 3 and 255 or 30, x < 3 and 255 or 30 end
    fails("is body, it has no outline: none is transparent; its commonest colours are #c81e1e, #ffffff; say which is "
      .. "outside, for instance background = \"#ffffff\"", Shape.image, drawn(on_paper))
    fails("none is transparent or has the background #00ff00", Shape.image,
      with(drawn(on_paper), "background", "#00ff00"))
    fails("has no outline", Shape.image, with(drawn(on_paper), "colours", { leg = "#c81e1e" }))
    local both = with(drawn(on_paper), "colours", { leg = "#c81e1e", trunk = "#ffffff" })
    near(2 / 3, Shape.image(both):sample().volume_exact)
  end)

  it("draws the rhinoceros of the scenes", function()
    local s = Shape.image {
      path = "scenes/assets/rhino.png", width = 0.6, spacing = 1 / 200,
      colours = { hind_back = "#d9694f", hind_front = "#3f7fbf", front_back = "#e3b04b", front_front = "#5fa777" },
    }:sample()
    assert(s.count > 3000, tostring(s))
    assert(math.abs(s.volume_error) < 0.02, tostring(s))
    for _, name in ipairs(s.group_names) do assert(#s.groups[name] > 100, name) end
  end)
end)

-- a box as text of an OBJ file, with its faces as quadrilaterals
local function obj_box(name, lower, upper, first)
  local lines = { "o " .. name }
  for k = 0, 7 do
    local function pick(d, bit) return math.floor(k / bit) % 2 == 0 and lower[d] or upper[d] end
    lines[#lines + 1] = ("v %.17g %.17g %.17g"):format(pick(1, 1), pick(2, 2), pick(3, 4))
  end
  for _, f in ipairs { { 1, 3, 4, 2 }, { 5, 6, 8, 7 }, { 1, 2, 6, 5 }, { 3, 7, 8, 4 }, { 1, 5, 7, 3 },
    { 2, 4, 8, 6 } } do
    lines[#lines + 1] = ("f %d %d %d %d"):format(f[1] + first, f[2] + first, f[3] + first, f[4] + first)
  end
  return table.concat(lines, "\n") .. "\n"
end

-- a ball of n x 2n faces as text of an STL file; turned: inside out
local function stl_ball(n, turned)
  local function at(i, j)
    local a, b = math.pi * i / n, math.pi * (j % (2 * n)) / n
    if i == 0 or i == n then return { 0, 0, i == 0 and 1 or -1 } end
    return { math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a) }
  end
  local lines = { "solid ball" }
  local function facet(a, b, c)
    if turned then a, b = b, a end
    lines[#lines + 1] = "facet normal 0 0 0\nouter loop"
    for _, v in ipairs { a, b, c } do lines[#lines + 1] = ("vertex %.17g %.17g %.17g"):format(v[1], v[2], v[3]) end
    lines[#lines + 1] = "endloop\nendfacet"
  end
  for i = 0, n - 1 do
    for j = 0, 2 * n - 1 do
      if i > 0 then facet(at(i, j), at(i + 1, j), at(i, j + 1)) end
      if i < n - 1 then facet(at(i, j + 1), at(i + 1, j), at(i + 1, j + 1)) end
    end
  end
  return table.concat(lines, "\n") .. "\nendsolid\n"
end

describe("a shape of points", function()
  it("has a particle at each, moves, and is joined with others", function()
    local block = Shape.box { size = { 0.4, 0.2 }, spacing = 0.1 }:sample()
    local body = Shape.points { points = block.position, spacing = 0.1, name = "body" }
    local s = body:translate { 1, 2 }:sample()
    assert.is_true((s.position - cq.tensor { 1, 2 }):close(block.position, 1e-12))
    assert.equal(8, #s.groups.body)
    near(0.08, s.volume_total)
    near(0.4, body.upper[1])
    assert.is_true(body:contains(0.39, 0.19) and not body:contains(0.41, 0.1) and not body:contains(-0.01, 0.1))
    -- what lies within it is not filled twice
    assert.equal(8 + 2, (body + Shape.box { size = { 0.5, 0.2 }, spacing = 0.1 }):sample().count)
    local cubes = Shape.points { points = { { 0, 0, 0 }, { 1, 0, 0 } }, volume = cq.tensor { 1, 0.125 } }
    near(1.125, cubes:sample().volume_total)
    assert.is_true(cubes:contains(0.45, 0.45, -0.45) and cubes:contains(1.2, 0, 0) and not cubes:contains(1.3, 0, 0))
  end)

  it("says what is wrong", function()
    fails("give either spacing or volume", Shape.points, { points = { { 0, 0 } } })
    fails("not both", Shape.points, { points = { { 0, 0 } }, spacing = 1, volume = 1 })
    fails("points must be {n, 2} or {n, 3}, got {3}", Shape.points, { points = cq.tensor { 1, 2, 3 }, spacing = 1 })
    fails("volume must be one number or {1}, got {2}", Shape.points,
      { points = { { 0, 0 } }, volume = cq.tensor { 1, 2 } })
    fails("above 0", Shape.points, { points = { { 0, 0 } }, volume = cq.tensor { -1 } })
    fails("not finite", Shape.points, { points = cq.tensor { { 0, 0 / 0 } }, spacing = 1 })
    fails("points 1 and 3 are in one place", Shape.points,
      { points = { { 0, 0.1 }, { 1, 0 }, { 0, 0.1 } }, spacing = 1 })
  end)
end)

describe("a mesh shape", function()
  local folder
  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  it("is filled exactly where its rays hit edges and corners, with a group for each part", function()
    local path = process.write(folder .. "/two.obj", obj_box("foot", { 0, 0, 0 }, { 1, 1, 1 }, 0)
      .. obj_box("leg", { 0, 1, 0 }, { 1, 3, 1 }, 8))
    -- the lattice's planes hold the diagonals of the faces
    local s = Shape.mesh { path = path, length = 0.3, at = { 1, 0, 0 } }:sample { spacing = 0.02 }
    assert.equal(5 * 15 * 5, s.count)
    near(0.003, s.volume_exact)
    near(0, s.volume_error)
    assert.equal(125, #s.groups.foot)
    assert.equal(250, #s.groups.leg)
    local x = s.position:data()
    for _, p in ipairs(s.groups.foot) do assert(x[3 * p - 2] < 0.1 and x[3 * p - 3] > 1) end
  end)

  it("has a group for each material of an OBJ file: of a closed part its inside, of a patch what is nearest", function()
    local function with(name, text) return (text:gsub("\nf ", "\nusemtl " .. name .. "\nf ", 1)) end
    local path = process.write(folder .. "/two.obj", "mtllib two.mtl\n"
      .. with("rubber", obj_box("foot", { 0, 0, 0 }, { 1, 1, 1 }, 0))
      .. with("bone", obj_box("leg", { 0, 1, 0 }, { 1, 3, 1 }, 8)))
    local s = Shape.mesh { path = path, length = 0.3 }:sample { spacing = 0.02 }
    assert.same({ "foot", "leg", "rubber", "bone" }, s.group_names)
    assert.same(s.groups.foot, s.groups.rubber)
    assert.same(s.groups.leg, s.groups.bone)
    -- one box, whose upper face is painted; and an object and a material of one name
    local box, faces = obj_box("box", { 0, 0, 0 }, { 1, 1, 1 }, 0), 0
    box = box:gsub("\nf ", function()
      faces = faces + 1
      return ("\nusemtl %s  \nf "):format(faces == 4 and "red paint" or "box")
    end)
    s = Shape.mesh { path = process.write(folder .. "/box.obj", box), length = 1 }:sample { spacing = 0.1 }
    assert.same({ "box", "red paint" }, s.group_names)
    assert.equal(1000, #s.groups.box)
    local x, red = s.position:data(), {}
    for _, p in ipairs(s.groups["red paint"]) do red[p] = true end
    for p = 1, s.count do
      local place = { x[3 * p - 3], x[3 * p - 2], x[3 * p - 1] }
      local up, others = 1 - place[2], math.min(place[1], 1 - place[1], place[2], place[3], 1 - place[3])
      assert(up > others - 1e-9 or red[p], "nearest to the upper face")
      assert(not (up > others + 1e-9) or not red[p], "nearer to another face")
    end
    -- one that no particle is nearest to is no group
    local tiny = box .. "v 0.5 1 0.5\nv 0.5 1 0.501\nv 0.501 1 0.5\nusemtl dot\nf 9 10 11\nf 9 11 10\n"
    s = Shape.mesh { path = process.write(folder .. "/dot.obj", tiny), length = 1 }:sample { spacing = 0.1 }
    assert.same({ "box", "red paint" }, s.group_names)
  end)

  -- as Blender writes the pieces of one surface
  it("has a group for each piece of a surface, of what is nearest, and its chambers beside them", function()
    local faces = 0
    local box = obj_box("box", { 0, 0, 0 }, { 1, 1, 1 }, 0):gsub("\nf ", function()
      faces = faces + 1
      return ("\ng face %d\nf "):format(math.ceil(faces / 2))
    end)
    local air = obj_box("air", { 0.3, 0.3, 0.3 }, { 0.7, 0.7, 0.7 }, 8)
    box = box .. air:gsub("f (%d+) (%d+) (%d+) (%d+)", "f %1 %4 %3 %2")
    local path = process.write(folder .. "/pieces.obj", box)
    local s = Shape.mesh { path = path, spacing = 0.1 }:sample()
    assert.same({ "face 1", "face 2", "face 3", "air" }, s.group_names)
    assert.is_true(s.walls.air.closed)
    local x = s.position:data()
    for _, p in ipairs(s.groups["face 1"]) do assert(math.abs(x[3 * p - 1] - 0.5) > 0.3, "nearest to z = 0 or 1") end
    assert(#s.groups["face 1"] > 200)
    -- in the plane; pieces that no particle is nearest to are no groups
    s = Shape.mesh { path = path, spacing = 0.1, section = 0.04 }:sample()
    assert.same({ "face 1" }, s.group_names)
    assert.equal(100, #s.groups["face 1"])
  end)

  it("knows a ball, inside out as well", function()
    for _, turned in ipairs { false, true } do
      local path = process.write(folder .. "/ball.stl", stl_ball(24, turned))
      local shape = Shape.mesh { path = path }
      local s = shape:sample { spacing = 0.1 }
      assert(math.abs(shape.exact - 4 / 3 * math.pi) < 0.05, tostring(shape.exact))
      assert(math.abs(s.volume_error) < 0.02, tostring(s))
      assert.equal(s.count, #s.groups.ball)
      for p = 1, s.count do
        assert(s.position:get(p, 1)^2 + s.position:get(p, 2)^2 + s.position:get(p, 3)^2 < 1)
      end
    end
  end)

  it("is a body in the plane where a plane cuts it", function()
    local ball = { path = process.write(folder .. "/ball.stl", stl_ball(24, false)), scale = 2 }
    ball.section = 1.2
    local shape = Shape.mesh(ball)
    local s = shape:sample { spacing = 0.05 }
    assert.equal(2, shape.dim)
    assert.equal(2, s.position:size(2))
    -- a circle of radius 1.6
    assert(math.abs(s.volume_total / (math.pi * 1.6 ^ 2) - 1) < 0.02, tostring(s))
    assert.equal(s.count, #s.groups.ball)
    assert.is_true(shape:contains(1.5, 0) and not shape:contains(1.65, 0))
    ball.section = 2.5
    fails("the plane z = 2.5 (section) does not cut", Shape.mesh, ball)
  end)

  it("keeps cavities in a section, and names no part that is not cut", function()
    local air = obj_box("air", { 0.3, 0.3, 0.3 }, { 0.7, 0.7, 0.7 }, 8)
    local inward = air:gsub("f (%d+) (%d+) (%d+) (%d+)", "f %1 %4 %3 %2")
    local box = { path = process.write(folder .. "/box.obj", obj_box("body", { 0, 0, 0 }, { 1, 1, 1 }, 0) .. inward),
      spacing = 0.05 }
    box.section = 0.5
    local s = Shape.mesh(box):sample()
    near(1 - 0.4 ^ 2, s.volume_total)
    assert.same({ "body", "air" }, s.group_names)
    assert.is_true(s.walls.air.closed)
    assert.equal(4 * 8, #s.groups.air)
    box.section = 0.2
    assert.same({ "body" }, Shape.mesh(box):sample().group_names)
  end)

  it("reads binary files", function()
    local ffi = require "ffi"
    local corners = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } }
    local faces = { { 1, 3, 2 }, { 1, 2, 4 }, { 1, 4, 3 }, { 2, 3, 4 } }
    local content = ("solid but binary"):rep(5) .. "\4\0\0\0"
    for _, f in ipairs(faces) do
      local record = ffi.new("float[12]")
      for i = 1, 3 do
        for d = 1, 3 do record[3 * i + d - 1] = corners[f[i]][d] end
      end
      content = content .. ffi.string(record, 48) .. "\0\0"
    end
    local path = process.write(folder .. "/tetrahedron.stl", content)
    local shape = Shape.mesh { path = path, scale = 2 }
    near(8 / 6, shape.exact)
    assert.is_true(shape:contains(0.3, 0.3, 0.3))
    assert.is_false(shape:contains(0.8, 0.8, 0.8))
    fails("is cut off", Shape.mesh,
      { path = process.write(folder .. "/cut.stl", content:sub(1, 200):gsub("^solid", "bolid")) })
  end)

  it("fills a ball with a hole in its surface", function()
    local text = stl_ball(24, false):gsub("facet normal.-endfacet\n", "", 1)
    local shape = Shape.mesh { path = process.write(folder .. "/open.stl", text) }
    assert.is_nil(shape.exact)
    local s = shape:sample { spacing = 0.1 }
    assert(math.abs(s.volume_total - 4 / 3 * math.pi) < 0.06, tostring(s))
  end)

  it("says what is wrong with a file", function()
    fails("cannot open mesh", Shape.mesh, { path = folder .. "/none.stl" })
    fails("cannot open mesh", Shape.mesh, { path = folder .. "/none.obj" })
    fails("must end in .stl or .obj", Shape.mesh, { path = folder .. "/a.ply" })
    fails("has no triangles", Shape.mesh, { path = process.write(folder .. "/empty.obj", "# nothing\n") })
    fails("three numbers in line 3", Shape.mesh,
      { path = process.write(folder .. "/a.stl", "solid a\nfacet\nvertex 1 2\n") })
    fails("is cut off in a facet", Shape.mesh,
      { path = process.write(folder .. "/a.stl", "solid a\nfacet\nvertex 1 2 3\n") })
    fails("not finite", Shape.mesh,
      { path = process.write(folder .. "/a.stl", "solid a\nvertex 1 2 nan\nvertex 1 2 3\nvertex 3 2 1\nendfacet\n") })
    fails("a face with vertex", Shape.mesh, { path = process.write(folder .. "/a.obj", "v 0 0 0\nv 1 0 0\nf 1 2 7\n") })
    fails("is flat along axis 3", Shape.mesh,
      { path = process.write(folder .. "/a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n") })
    fails("either length or scale", Shape.mesh, { path = folder .. "/a.obj", length = 1, scale = 1 })
  end)
end)

describe("a shape that cannot be", function()
  local box = Shape.box { name = "leg", size = { 1, 1 }, spacing = 0.1 }

  it("gets a sentence at the user's line", function()
    fails("size must be", Shape.box, { size = { 1, -1 } })
    fails("did you mean size?", Shape.box, { sise = { 1, 1 } })
    fails("count has 3", Shape.box, { size = { 1, 1 }, count = { 2, 2, 2 } })
    fails("either count or spacing", Shape.box, { size = { 1, 1 }, count = { 2, 2 }, spacing = 0.1 })
    fails("has no spacing", function() Shape.box { size = { 1, 1 } }:sample() end)
    fails("at most 2e+07", function() Shape.box { size = { 1, 1 } }:sample { spacing = 1e-6 } end)
    for _, last in ipairs { { 2, 0 }, { 3, 0.3 } } do
      fails("lie on one line", Shape.polygon, { points = { { 0, 0 }, { 1, last[2] / last[1] }, last } })
    end
    fails("one dimension", function() return box + Shape.sphere { radius = 1 } end)
    fails("+ joins two shapes", function() return box + 3 end)
    fails("one of \"x\", \"y\", got \"q\"", function() box:mirror "q" end)
  end)

  it("never ends as an empty one", function()
    fails("leaves nothing of the 100 particles of box \"leg\"", function()
      (box - Shape.box { at = { -1, -1 }, size = { 3, 3 } }):sample()
    end)
    fails("do not meet", function() return box:intersection(box:translate { 5, 0 }) end)
    fails("leaves nothing", function() box:where(function() return false end):sample() end)
    fails("no particle", function() box:group("none", function() return false end):sample() end)
    fails("no particle", function()
      (box + Shape.disc { name = "hidden", at = { 0.5, 0.5 }, radius = 0.2, spacing = 0.1 }):sample()
    end)
  end)

  it("says where a predicate failed", function()
    fails("the function failed at (0.05, 0.05): ", function()
      box:where(function(_, y) return y.height > 3 end):sample()
    end)
  end)

  it("refuses a predicate that gives numbers, which are all true in Lua", function()
    local function distance(x, y) return x + y - 0.7 end
    fails("shape:where: the function must give true or false, got -0.6 at (0.05, 0.05)", function()
      box:where(distance):sample()
    end)
    fails("shape:group \"low\": the function must give true or false, got -0.6 at (0.05, 0.05)", function()
      box:group("low", distance):sample()
    end)
    near(21, box:where(function(x, y) return distance(x, y) < 0 end):sample().count)
    near(21, box:where(function(x, y) if distance(x, y) < 0 then return true end end):sample().count)
  end)
end)
