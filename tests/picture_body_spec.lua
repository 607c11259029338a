-- picture_body: the surfaces of bodies, what stands beside them, and pictures of several moments.
local ffi = require "ffi"
local pixels = require "tests.pixels"
local process = require "tests.process"
local Picture = require "cq.picture"
local Boundary = require "cq.boundary"
local Shape = require "cq.shape"
local T = require "cq.tensor"

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local fails = require("tests.sentence").fails

local count, dark, reddish = pixels.count, pixels.dark, pixels.reddish
local body, in_red = pixels.body, pixels.in_red

describe("a ruler", function()
  it("leaves out numbers that the sides would cut off", function()
    local s = Shape.box { at = { 0.5, 0.1 }, size = { 0.2, 0.2 }, spacing = 0.02 }:sample()
    for zoom = 0.8, 1.2, 0.02 do
      local canvas = Picture.frame { domain = { 4, 1 }, volume = s.volume, width = 240, height = 180, samples = 1,
        fit = true, walls = Boundary.floor { at = 0.1 }, position = s.position, zoom = zoom, legend = false }
      -- ink within two pixels of a side, as low as numbers are written
      local p = canvas:pixels()
      for y = canvas.height - 20, canvas.height - 6 do
        for _, x in ipairs { 0, 1, canvas.width - 2, canvas.width - 1 } do
          assert(p[4 * (y * canvas.width + x)] < 200, ("zoom %g: ink at %d, %d"):format(zoom, x, y))
        end
      end
    end
  end)
end)

describe("a low picture of several moments", function()
  it("has all of the body between its label and the numbers of its ruler", function()
    local s = Shape.box { at = { 0.1, 0.1 }, size = { 0.2, 0.2 }, spacing = 0.02 }:sample()
    local canvas = Picture.frame { domain = { 1, 1 }, volume = s.volume, width = 164, height = 122, samples = 2,
      groups = in_red(s), fit = true, walls = Boundary.floor { at = 0.1 }, position = s.position, legend = false }
    local _, box = count(canvas, reddish)
    assert(box[2] > 30 and box[4] < 122 - 40, table.concat(box, " "))
    assert(box[3] - box[1] > 30 and math.abs((box[3] - box[1]) - (box[4] - box[2])) < 6, table.concat(box, " "))
  end)
end)

describe("a ruler in space", function()
  it("is one for all moments of a picture, along their way", function()
    local ruler, all = require "cq.picture.ruler", {}
    local s = Shape.box { at = { 0.5, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local scene = Picture.scene { domain = { 4, 1, 1 }, volume = s.volume, width = 400, height = 300, samples = 1,
      fit = true, walls = Boundary.floor { at = 0.1 } }
    local first, last = { position = s.position }, { position = s.position + T.tensor { 1.5, 0.3, 0.1 } }
    scene:include_in_scales(first)
    scene:include_in_scales(last)
    local numbers = ruler.numbers
    ruler.numbers = function(_, _, ticks) all[#all + 1] = ticks end
    local fine, problem = pcall(function() scene:frame(first):pixels() scene:frame(last):pixels() end)
    ruler.numbers = numbers
    assert(fine, problem)
    assert.same(all[1], all[2])
    assert(all[1][1].x <= 0.5 and all[1][#all[1]].x >= 2, #all[1])
  end)
end)

describe("tensions of cables", function()
  it("have a scale that begins with a slack one", function()
    local s = body()
    local scene = Picture.scene { domain = { 1, 1 }, volume = s.volume, width = 200, height = 200 }
    local cable = { count = 3, points = ffi.new("double[6]", 0.4, 0.3, 0.5, 0.3, 0.5, 0.4),
      tension = { 0.072, 0.078 } }
    scene:include_in_scales { position = s.position, cables = { cable } }
    assert.same({ 0, 0.08 }, { scene.tension.lower, scene.tension.upper })
  end)
end)

describe("a surface", function()
  local bodies, C = require "cq.picture.body", require("cq.base.engine").C

  -- one body of a sample: how its surface looks, and where its vertices are {v, dim}
  local function skin(s, x, F, fields, level)
    local volumes = s.volume:data()
    local one = bodies.list({ fields or {} }, { dim = s.dim, volumes = volumes }, s.count, s.position:data())[1]
    one:pose((x or s.position):data(), F and F:data(), level)
    local info = ffi.new "cq_skin_info"
    C.cq_skin_describe(one.skin, info)
    local vertex = ffi.new("double[?]", math.max(1, tonumber(info.vertex_count) * s.dim))
    C.cq_skin_read(one.skin, vertex, nil, nil)
    return { vertices = tonumber(info.vertex_count), faces = tonumber(info.face_count),
      edges = tonumber(info.edge_count), outline = info.outline,
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

  local function brick() return Shape.box { size = { 0.3, 0.4, 0.5 }, count = { 3, 4, 5 } }:sample() end

  it("is that of the cells: faces outside, and corners that cells share", function()
    local it = skin(brick())
    assert.same({ faces = 2 * (12 + 15 + 20), vertices = 4 * 5 * 6 - 2 * 3 * 4, alone = 0 },
      { faces = it.faces, vertices = it.vertices, alone = it.alone })
    local plate = skin(Shape.box { size = { 0.3, 0.4 }, count = { 3, 4 } }:sample())
    assert.same({ 12, 20, 14, 0 }, { plate.faces, plate.vertices, plate.edges, plate.alone })
    -- the corners of a plate stay where they are
    for _, place in ipairs { { 0, 0 }, { 0.3, 0 }, { 0.3, 0.4 }, { 0, 0.4 } } do
      assert.is_true(has_vertex(plate, place))
    end
  end)

  it("finds lattices that are turned, stretched or made of parts", function()
    local turned = skin(Shape.box { size = { 0.3, 0.4, 0.5 }, count = { 3, 4, 5 } }:rotate(0.7, { 1, 2, 3 }):sample())
    assert.same({ 94, 0 }, { turned.faces, turned.alone })
    local flat = skin(Shape.box { size = { 0.3, 0.4, 0.5 }, count = { 3, 8, 5 } }:sample())
    assert.same({ 2 * (24 + 15 + 40), 0 }, { flat.faces, flat.alone })
    local left, right = Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 },
      Shape.box { at = { 0.2, 0 }, size = { 0.2, 0.2 }, spacing = 0.02 }
    assert.equal(60, skin((left + right):sample()).edges)
    -- where parts of other lattices meet there is no outline
    local finer = Shape.box { at = { 0.2, 0 }, size = { 0.2, 0.2 }, spacing = 0.01 }
    local joined = skin((left + finer):sample())
    assert.same({ 30 + 60, 0 }, { joined.edges, joined.alone })
    -- cells twice as tall on small ones: they meet on one line, up to the outline
    local tall = Shape.box { at = { 0, 0.05 }, size = { 0.06, 0.46 }, count = { 6, 25 } }
    local stacked = skin((Shape.box { size = { 0.06, 0.05 }, count = { 6, 5 } } + tall):sample())
    for k = 0, 6 do assert.is_true(has_vertex(stacked, { 0.01 * k, 0.05 })) end
    assert.same({ 12 + 60, 0 }, { stacked.edges, stacked.alone })
  end)

  it("has an outline that ends where parts meet, also within a cell", function()
    -- a leg of finer cells under a wide part, whose cells reach beyond the leg by a share of their width
    for _, columns in ipairs { 10, 11, 12, 13, 14 } do
      for _, width in ipairs { 0.055, 0.06, 0.073 } do
        local leg = Shape.box { at = { 0.1, 0 }, size = { width, 0.15 }, count = { 7, 17 } }
        local trunk = Shape.box { at = { 0, 0.15 }, size = { 0.3, 0.1 }, count = { columns, 4 } }
        local around, fine = 2 * (0.3 + 0.1) + 2 * 0.15, 0.05 * 0.3 / columns
        local it = skin((leg + trunk):sample())
        assert(math.abs(it.outline - around) < 4 * fine, ("%d columns on %g: %g, not %g"):format(columns, width,
          it.outline, around))
        -- it goes with the body
        local s = (leg + trunk):sample()
        local twice = skin(s, s.position * 2, T.zeros { s.count, 2, 2 } + 2 * T.eye(2))
        assert.near(2 * it.outline, twice.outline, 1e-6)
      end
    end
  end)

  it("keeps the corners where a body turns inwards", function()
    local leg, trunk = Shape.box { at = { 0.1, 0 }, size = { 0.05, 0.1 }, spacing = 0.01 },
      Shape.box { at = { 0, 0.1 }, size = { 0.25, 0.08 }, spacing = 0.01 }
    local it = skin((leg + trunk):sample())
    for _, place in ipairs { { 0.1, 0.1 }, { 0.15, 0.1 }, { 0.1, 0 }, { 0.25, 0.18 } } do
      assert.is_true(has_vertex(it, place))
    end
    assert.near(2 * (0.25 + 0.08) + 2 * 0.1, it.outline, 1e-6)
    -- a step of two cells is one of a stair
    local stair = Shape.box { size = { 0.1, 0.1 }, spacing = 0.01 } +
      Shape.box { at = { 0.1, 0 }, size = { 0.1, 0.08 }, spacing = 0.01 }
    assert.is_false(has_vertex(skin(stair:sample()), { 0.1, 0.08 }))
  end)

  it("goes on over hills", function()
    for _, slope in ipairs { 10, 15, 18 } do
      for off = 0, 0.006, 0.003 do          -- of the top from the middle between two columns
        local function height(x) return math.tan(math.rad(slope)) * math.max(0, 0.1 - math.abs(x - 0.2 - off)) end
        local hill = skin(Shape.box { size = { 0.4, 0.1 }, count = { 32, 8 } }:raised(height):sample())
        assert.same({ 2 * (32 + 8), 0 }, { hill.edges, hill.alone }, slope .. " degrees, top " .. off)
      end
    end
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
    local cloud = { dim = 3, count = 200, position = random:uniform({ 200, 3 }, { min = 0, max = 1 }),
      volume = T.full({ 200 }, 1 / 200) }
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
    local s, corner, triangles = shape:sample(), shape.surface()
    assert.equal(4, triangles)
    local it = skin(s, nil, nil, { mesh = corner, triangles = triangles })
    assert.same({ 4, 4, 0 }, { it.vertices, it.faces, it.alone })
    for _, place in ipairs { { 5, 0, 0 }, { 5, 1, 0 }, { 4, 0, 0 }, { 5, 0, 1 } } do
      assert.is_true(has_vertex(it, place))
    end
    assert.is_nil((shape - Shape.sphere { radius = 0.1, spacing = 0.1 }).surface)
    assert.equal(8, select(2, (shape + shape:translate { 3, 0, 0 }).surface()))
  end)
end)

describe("what stands beside bodies", function()
  local function green(r, g, b) return g > 1.15 * r and g > 1.1 * b end
  local function brownish(r, g, b) return r > 170 and g < 120 and b < 90 end
  local function scene(fields)
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 200, height = 200, trail = false, ruler = false,
      legend = false, position = body().position }
    for key, value in pairs(fields) do def[key] = value end
    return Picture.frame(def)
  end
  local function space(fields)
    local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local def = { domain = { 1, 1, 1 }, volume = s.volume, width = 200, height = 150, samples = 2, trail = false,
      ruler = false, legend = false,
      position = s.position, fit = true, walls = Boundary.floor { at = 0.1 } }
    for key, value in pairs(fields or {}) do def[key] = value end
    return Picture.frame(def)
  end

  it("are goals, through which one sees", function()
    local n, box = count(scene { goals = { { at = { 0.7, 0.5 }, radius = 0.1 } } }, green)
    assert(n > 250 and math.abs(box[1] - 120) <= 2 and math.abs(box[4] - 119) <= 2, n .. " in "
      .. table.concat(box, " "))
    assert((count(space { goals = { { at = T.tensor { 0.7, 0.3, 0.5 }, radius = 0.08 } } }, green)) > 20)
    assert.equal(0, (count(space(), green)))
    -- one that a body has come to, and hides, is seen by its rim
    local within = (count(space { goals = { { at = { 0.5, 0.2, 0.5 }, radius = 0.06 } } }, green))
    assert(within > 20 and within < 400, within)
    -- a body behind a goal is seen
    local red = in_red(body())
    assert((count(scene { groups = red, goals = { { at = { 0.45, 0.35 }, radius = 0.04 } } },
      function(r, g, b) return r > 120 and r > 1.4 * g and r > 1.4 * b end)) > 150)
  end)

  it("are arrows, as long as they are told to be", function()
    local arrows = { at = { { 0.1, 0.8 } }, vector = { { 2, 0 } }, scale = 0.25 }
    local _, box = count(scene { arrows = arrows }, brownish)
    assert(math.abs(box[1] - 20) <= 2 and math.abs(box[3] - 119) <= 3, table.concat(box, " "))
    assert((count(space { arrows = { at = T.tensor { { 0.5, 0.32, 0.5 } }, vector = T.tensor { { 0, 1, 0 } },
      scale = 0.2 } },
      function(r, g, b) return r > 2 * g and r > 2 * b end)) > 15)
  end)

  it("are arrows with a rim, which are seen on what has their own colour", function()
    local wall, paint = Boundary.floor { at = 0.6 }, require "cq.picture.paint"
    local function white(r, g, b) return r + g + b > 600 end
    local function with(arrows) return (count(scene { walls = wall, arrows = arrows }, white)) end
    local bare = with()
    local seen = with { at = { { 0.1, 0.2 } }, vector = { { 2, 0 } }, scale = 0.25, colour = paint.ground }
    assert(seen > bare + 60, ("%d and %d"):format(bare, seen))
  end)

  it("are walls where they have gone", function()
    local function ground_like(r, g, b) return r < 110 and g < 120 and b < 130 end
    local wall = Boundary.floor { at = 0.1 }
    local before, after = count(scene { walls = wall }, ground_like),
      count(scene { walls = wall, wall_offset = { { 0.3, 0.1 } } }, ground_like)
    assert(math.abs(after - before - 0.1 * 40000) < 300, ("%d and %d"):format(before, after))
    fails("wall_offset has 2 ways, there are 1 wall",
      function() scene { walls = wall, wall_offset = { { 0, 0 }, { 0, 0 } } } end)
  end)

  it("are ceilings that do not hide what is below", function()
    local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
    local red = in_red(s)
    local function reds(walls)
      return (count(space { groups = red, walls = walls }, function(r, g, b) return r > 1.3 * g and r > 1.3 * b end))
    end
    local floor, ceiling = Boundary.floor { at = 0.1 },
      Boundary.half_plane { point = { 0, 0.31, 0 }, normal = { 0, -1, 0 } }
    local free, below = reds { floor }, reds { floor, ceiling }
    assert(free > 1000 and below > 0.85 * free, ("%d and %d"):format(free, below))
    assert.are_not.equal(ffi.string(space { walls = { floor } }:pixels(), 120000),
      ffi.string(space { walls = { floor, ceiling } }:pixels(), 120000))
  end)

  it("are pinned parts, which are hatched or darker", function()
    local pinned = {}
    for p = 1, 50 do pinned[p] = p end
    assert((count(scene { pinned = pinned }, dark)) > 1.3 * (count(scene {}, dark)))
    fails("pinned[1] is particle 101, there are 100", function() scene { pinned = { 101 } } end)
    -- numbers count from 1: the last of two particles, and nothing behind it
    local paint, rgba = require "cq.picture.paint", ffi.new("uint32_t[3]", 0xffffffff)
    paint.darken(rgba, { 2 })
    assert(rgba[0] == 0xffffffff and rgba[1] < 0xc0000000 and rgba[2] == 0xffffffff)
  end)

  it("are told in sentences where they are wrong", function()
    fails("goals[1] must be 2 numbers, got a list of 3", function() scene { goals = { { 1, 2, 3 } } } end)
    fails("unknown field radus (did you mean radius?)",
      function() scene { goals = { { at = { 1, 2 }, radus = 3 } } } end)
    fails("arrows have 1 places and 2 vectors",
      function() scene { arrows = { at = { { 0, 0 } }, vector = { { 1, 0 }, { 1, 0 } } } } end)
    fails("arrows need vector {k, 2}, got a tensor {2}",
      function() scene { arrows = { at = { { 0, 0 } }, vector = { 1, 0 } } } end)
    fails("bodies[1] has the particles 1 to 101", function() scene { bodies = { { count = 101 } } } end)
    fails("opacity must have the shape {100}", function() scene { opacity = T.ones { 3 } } end)
    fails("particle 1 has the number 3, the categories have 1 to 2",
      function() scene { scale = { categories = { "a", "b" } }, value = T.full({ 100 }, 3) } end)
    fails("camera must be { eye =, target = }", function() space { camera = 3 } end)
    fails("camera: eye and target must differ, both are { 0.5, 1, 0.5 }",
      function() space { camera = { eye = { 0.5, 1, 0.5 }, target = { 0.5, 1, 0.5 } } } end)
    fails("must give { eye =, target = }, got", function() space { camera = function() end } end)
  end)
end)

describe("a picture", function()
  local s = Shape.box { at = { 0.4, 0.1, 0.4 }, size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }:sample()
  local function everything(threads, more)
    require("cq.option").program.threads = threads
    local opacity = T.ones { s.count }
    for p = 0, 300 do opacity:data()[p] = 0.5 end
    local def = { domain = { 1, 1, 1 }, volume = s.volume, width = 201, height = 150, position = s.position,
      opacity = opacity, goals = { { 0.7, 0.3, 0.5 } },
      actuation = s.position:slice(1, 1, 2):reshape { s.count },
      walls = { Boundary.floor { at = 0.1 },
        Boundary.obstacle { lower = { 0.7, 0.1, 0.4 }, upper = { 0.8, 0.2, 0.5 } } },
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
    local red = in_red(high)
    local canvas = Picture.frame { domain = { 4, 2, 2 }, volume = high.volume, position = high.position, width = 320,
      groups = red,
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
      for k = 0, frames do
        scene:frame { position = body().position + T.tensor { k > 0 and 1 or 0, 0 }, time = k / frames }
      end
      return scene.camera_centre[1]
    end
    assert(math.abs(centre(5) - centre(20)) < 1e-9 and math.abs(centre(5) - (1.45 - math.exp(-5))) < 1e-9)
  end)

  it("shows several moments, the earlier ones paler", function()
    local b = body()
    local red = in_red(b)
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 200, height = 200, groups = red, position = b.position
      + T.tensor { 0.3, 0 } }
    local once = count(Picture.frame(def), reddish)
    def.before = { { position = b.position - T.tensor { 0.3, 0 } } }
    local canvas = Picture.frame(def)
    assert.equal(once, (count(canvas, reddish)))
    assert((count(canvas, function(r, g, b_) return r > 200 and g > 110 and g < 170 and b_ < 170 end)) > 300)
  end)

  it("tells categories by name", function()
    local b = body()
    local def = { domain = { 1, 1 }, volume = 1e-4, width = 300, height = 200, position = b.position,
      value = T.full({ b.count }, 2),
      scale = { categories = { "still", "moving" } } }
    assert((count(Picture.frame(def), function(r, g, b_) return r > 190 and g > 80 and g < 120 and b_ < 80 end)) > 300)
    fails("give either categories or range", function()
      Picture.scene { domain = { 1, 1 }, volume = 1, scale = { categories = { "a" }, range = { 0, 1 } } }
    end)
  end)

  it("is pasted into another one", function()
    local small = Picture.canvas { width = 20, height = 16, background = "#c81e1e" }
    local n, box = count(Picture.canvas({ width = 60, height = 40 }):paste(small, 10, 5):paste(small, 50, 30), reddish)
    assert.same({ 320 + 100, { 10, 5, 59, 39 } }, { n, box })
    fails("must have as many", function()
      Picture.canvas({ width = 60, height = 40, samples = 3 }):paste(small, 0, 0)
    end)
  end)
end)
