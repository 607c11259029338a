-- solid: bodies of the tetrahedra and triangles of Gmsh files, the walls of their chambers, and pressure on them.
local process = require "tests.process"
local differences = require "tests.differences"
local gmsh_file = require "tests.gmsh_file"
local sentence = require "tests.sentence"
local cq = require "cq"

local Shape, fails = cq.Shape, sentence.fails
local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function near(a, b, slack)
  assert.is_true(math.abs(a - b) <= (slack or 1e-12), ("%.17g, not %.17g"):format(a, b))
end

local function write(bytes) return process.write(folder .. "/a.msh", bytes) end

-- two chambers in 5 x 3 x 3 cubes of a side of 2, or in 5 x 3 squares
local function body_of(dim)
  local y, z = dim == 3 and 3 or nil, dim == 3 and 2 or nil
  return gmsh_file.blocks {
    size = 2, count = { 5, 3, y }, empty = { chamber_1 = { 2, 2, z }, chamber_2 = { 4, 2, z } },
  }
end

local function shape_of(dim, version, def)
  def = def or {}
  def.path = write(gmsh_file.bytes(body_of(dim), version or "4.1 binary"))
  return (dim == 3 and Shape.tetrahedra or Shape.triangles)(def)
end

-- of a wall of a sample: the sum of its area vectors, and the volume that it encloses
local function measured(sample, name)
  local wall, dim, sum, volume = sample.walls[name], sample.dim, {}, 0
  for k, p in ipairs(wall.particle) do
    for d = 1, dim do
      local j = (k - 1) * dim + d
      sum[d] = (sum[d] or 0) + wall.area[j]
      volume = volume - (sample.position:get(p, d) + wall.arm[j]) * wall.area[j] / dim
    end
  end
  return sum, volume
end

describe("a Gmsh file", function()
  it("is read alike in every version, text or bytes", function()
    for _, version in ipairs(gmsh_file.versions) do
      local sample = shape_of(3, version):sample()
      assert.equal("cq.Sample { 3D, particles 258, groups 3, closed chambers 2, volume 344 }", tostring(sample))
      assert.equal(6 * 43, sample.count, version)
      near(8 * 43, sample.volume_total, 1e-11)
      assert.same({ "body", "chamber_1", "chamber_2" }, sample.group_names)
      assert.equal(258, #sample.groups.body)
      assert.same({ "chamber_1", "chamber_2", "cavity_1", "cavity_2" }, sample.wall_names)
      for _, name in ipairs(sample.wall_names) do
        local sum, volume = measured(sample, name)
        for d = 1, 3 do near(0, sum[d]) end
        near(8, volume, 1e-11)
        assert.is_true(sample.walls[name].closed)
      end
      -- a cavity by its place: the first is that of the first chamber
      assert.same(sample.walls.chamber_1.particle, sample.walls.cavity_1.particle)
    end
  end)

  it("makes bodies in the plane, too", function()
    for _, version in ipairs(gmsh_file.versions) do
      local shape = shape_of(2, version)
      local sample = shape:sample()
      assert.equal(26, sample.count)
      near(52, sample.volume_total)
      assert.equal(4, #sample.groups.chamber_2)
      local sum, area = measured(sample, "chamber_2")
      near(0, sum[1])
      near(0, sum[2])
      near(4, area)
      assert.is_true(shape:contains(1, 1) and shape:contains(9.9, 5.9))
      assert.is_false(shape:contains(3, 3) or shape:contains(-1, 1) or shape:contains(7, 3))
    end
  end)

  it("has the volume of a chamber with corners where cells have several faces of it", function()
    for dim = 2, 3 do
      local count, blocks = { 4, 4, dim == 3 and 4 or nil }, { { 2, 2 }, { 2, 3 }, { 3, 3 } }
      for _, block in ipairs(blocks) do block[3] = dim == 3 and 2 or nil end
      -- crooked, and the same body with a full chamber
      local samples = {}
      for k, empty in ipairs { { chamber_1 = blocks }, {} } do
        local mesh = gmsh_file.blocks { count = count, empty = empty }
        for _, node in ipairs(mesh.node) do
          local x = { unpack(node) }
          for d = 1, dim do node[d] = (1 + d / 7) * x[d] + 0.1 * math.sin(3 * x[d % dim + 1]) end
        end
        local path = write(gmsh_file.bytes(mesh, "4.1 binary"))
        samples[k] = (dim == 3 and Shape.tetrahedra or Shape.triangles) ({ path = path }):sample()
      end
      local sum, volume = measured(samples[1], "chamber_1")
      for d = 1, dim do near(0, sum[d]) end
      near(samples[2].volume_total - samples[1].volume_total, volume)
    end
  end)

  it("puts a particle at the centre of each tetrahedron", function()
    local one = { dim = 3, node = { { 0, 0, 0 }, { 4, 0, 0 }, { 0, 4, 0 }, { 0, 0, 4 } },
      group = { { dim = 3, name = "a", element = { { 1, 3, 2, 4 } } } } }
    local shape = Shape.tetrahedra { path = write(gmsh_file.bytes(one, "2.2 text")), scale = 0.5, at = { 1, 2, 3 } }
    local sample = shape:sample()
    assert.same({ { 1.5, 2.5, 3.5 } }, sample.position:totable())
    near(8 / 6, sample.volume:get(1))
    assert.is_true(shape:contains(1.2, 2.2, 3.2))
    assert.is_false(shape:contains(2, 3, 4))
    near(3, Shape.tetrahedra({ path = folder .. "/a.msh", length = 3 }).upper[1])
  end)

  it("joins the copies that version 2.2 has of an element in several groups", function()
    local mesh = body_of(3)
    local half = { dim = 3, name = "left", element = {} }
    for k = 1, 100 do half.element[k] = mesh.group[1].element[k] end
    table.insert(mesh.group, half)
    local sample = Shape.tetrahedra({ path = write(gmsh_file.bytes(mesh, "2.2 text")) }):sample()
    assert.equal(258, sample.count)
    assert.equal(100, #sample.groups.left)
    assert.equal(258, #sample.groups.body)
  end)

  it("names groups that have no name by their number", function()
    local bytes = gmsh_file.bytes(body_of(3), "4.1 text"):gsub("%$PhysicalNames.-EndPhysicalNames\n", "")
    local sample = Shape.tetrahedra({ path = write(bytes), name = "all" }):sample()
    assert.same({ "volume_1", "surface_2", "surface_3", "all" }, sample.group_names)
  end)

  it("moves its walls with the shape", function()
    local shape = shape_of(3, nil, { scale = 0.1 })
    local moved = shape:rotate(0.7, { 1, 2, 3 }):scale { 2, 1, 3 }:mirror "y":translate { 4, 5, 6 }
    local sum, volume = measured(moved:sample(), "chamber_2")
    for d = 1, 3 do near(0, sum[d]) end
    near(6 * 0.008, volume)
    local row = shape_of(2):repeated { count = 2, step = { 20, 0 } }:sample()
    near(4, select(2, measured(row, "chamber_1.2")))
    near(8, select(2, measured(row, "chamber_1")))
    fails("walls that a pressure may push on, such as \"chamber_1\"",
      function() shape:raised(function() return 1 end):sample() end)
  end)
end)

-- faces that one cell alone has
local function skin_of(cells)
  local seen, list = {}, {}
  for _, cell in ipairs(cells) do
    for out = 1, #cell do
      local face = { unpack(cell) }
      table.remove(face, out)
      local sorted = { unpack(face) }
      table.sort(sorted)
      local key = table.concat(sorted, " ")
      seen[key] = seen[key] == nil and face or false
    end
  end
  for _, face in pairs(seen) do list[#list + 1] = face or nil end
  return list
end

-- ---- mistakes -------------------------------------------------------------------------------------------------------

describe("a Gmsh file that is damaged", function()
  local plain = gmsh_file.bytes(body_of(3), "2.2 text")
  local function refused(part, bytes) fails(part, Shape.tetrahedra, { path = write(bytes) }) end

  it("gets a sentence", function()
    fails("cannot open mesh", Shape.tetrahedra, { path = folder .. "/none.msh" })
    refused("is no Gmsh file: it is empty", "")
    refused("is no Gmsh file: it does not begin with $MeshFormat", "solid a\n")
    refused("is of MSH version 1", "$NOD\n1\n1 0 0 0\n$ENDNOD\n")
    refused("is of MSH version 3; 2.2, 4.0 and 4.1 are read", (plain:gsub("2%.2", "3", 1)))
    refused("the data size 4", (plain:gsub("2.2 0 8", "2.2 0 4", 1)))
    refused("has $Nodes before $MeshFormat", (plain:gsub("^.-EndPhysicalNames\n", "")))
    refused("has no tetrahedra, but 24 triangles", gmsh_file.bytes({ dim = 3, node = body_of(3).node,
      group = { body_of(3).group[2], body_of(3).group[3] } }, "2.2 text"))
    refused("has no tetrahedra", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n")
    refused("has quadrangle 259, in a physical group, that is no face of a tetrahedron",
      (plain:gsub("\n259 2 (2 2 1 %d+)", "\n259 3 %1 7", 1)))
    refused("which are no tetrahedra", (plain:gsub("\n1 4 2 1 1 ", "\n1 5 2 1 1 1 1 1 1 ", 1)))
    refused("has 'nan' in line", (plain:gsub("\n7 0 0 0", "\n7 0 nan 0", 1)))
    refused("has 'x' in line 12, in $Nodes, where a finite number is wanted", (plain:gsub("\n7 0 0 0", "\n7 0 x 0", 1)))
    refused("has node 7 at 1e+60", (plain:gsub("\n7 0 0 0", "\n7 0 1e60 0", 1)))
    refused("has two nodes of the number 7", (plain:gsub("\n8 ", "\n7 ", 1)))
    refused("with node 6, which it does not have", (plain:gsub("\n1 4 2 1 1 7 ", "\n1 4 2 1 1 6 ", 1)))
    refused("where $EndNodes is wanted", (plain:gsub("(Nodes\n)(%d+)", function(a, n) return a .. n - 1 end, 1)))
    refused("has something else after the last of $MeshFormat, where $EndMeshFormat is wanted",
      (gmsh_file.bytes(body_of(3), "4.1 binary"):gsub("4%.1 1 8", "4.1 0 8")))
    fails("is a mesh of space", Shape.triangles, { path = write(plain) })
  end)

  it("is refused wherever it ends, and with any count, at once", function()
    for _, version in ipairs(gmsh_file.versions) do
      local bytes = gmsh_file.bytes(body_of(3), version)
      local last = bytes:find "%$EndElements"
      for k = 1, 60 do
        local at = math.floor(last * k / 60) - 1
        local fine, problem = pcall(Shape.tetrahedra, { path = write(bytes:sub(1, at)) })
        assert.is_false(fine, at)
        assert.is_truthy(tostring(problem):find "mesh '", problem)
      end
    end
    for _, count in ipairs { "99999999999", "999999999999999999" } do
      refused("announces " .. count .. " nodes", (plain:gsub("(Nodes\n)%d+", "%1" .. count, 1)))
      refused("announces " .. count .. " elements", (plain:gsub("(Elements\n)%d+", "%1" .. count, 1)))
    end
    refused("a whole number is wanted", (plain:gsub("(Nodes\n)%d+", "%199999999999999999999", 1)))
    refused("cannot be below 0", (plain:gsub("(Nodes\n)%d+", "%1-1", 1)))
  end)

  it("or whose tetrahedra are flat, inverted or doubled is refused", function()
    local mesh = body_of(3)
    local cell = mesh.group[1].element[1]
    local apex = mesh.node[cell[3]]
    local was = { unpack(apex) }
    for d = 1, 3 do apex[d] = (mesh.node[cell[1]][d] + mesh.node[cell[2]][d]) / 2 end
    refused("that is flat: its volume is 0", gmsh_file.bytes(mesh, "4.1 text"))
    for d = 1, 3 do apex[d] = was[d] end
    -- a node of the inside that is pushed out through its neighbours
    for _, x in ipairs(mesh.node) do
      if x[1] == 2 and x[2] == 2 and x[3] == 2 then x[1] = 5.5 end
    end
    refused("on the same side of the face that they share", gmsh_file.bytes(mesh, "4.1 text"))
    mesh = body_of(3)
    table.insert(mesh.group[1].element, { unpack(mesh.group[1].element[9]) })
    refused("lie on each other", gmsh_file.bytes(mesh, "4.1 text"))
    -- another order of its corners is no harm
    mesh = body_of(3)
    local turned = mesh.group[1].element[5]
    turned[1], turned[2] = turned[2], turned[1]
    near(8 * 43, Shape.tetrahedra({ path = write(gmsh_file.bytes(mesh, "4.1 text")) }).exact, 1e-11)
  end)

  it("or whose chamber is the outside is refused", function()
    local mesh = gmsh_file.blocks { count = { 1, 1, 1 } }
    mesh.group[2] = { dim = 2, name = "chamber", element = skin_of(mesh.group[1].element) }
    for _, version in ipairs { "2.2 binary", "4.1 text" } do
      refused("the chamber \"chamber\" of '" .. folder .. "/a.msh' holds the outside", gmsh_file.bytes(mesh, version))
    end
    mesh.group[2].name = "skin"
    assert.is_true(Shape.tetrahedra({ path = write(gmsh_file.bytes(mesh, "2.2 text")) }):sample().walls.skin.closed)
  end)

  it("or whose chamber is open is refused, with the place and the gap", function()
    local mesh = body_of(3)
    table.remove(mesh.group[2].element)
    local bytes = gmsh_file.bytes(mesh, "4.1 binary")
    refused("the chamber \"chamber_1\" of '" .. folder .. "/a.msh' is open: 3 of the edges of its triangles", bytes)
    refused("and its area vectors sum to 2, 0.0909 of its area", bytes)
    local sample = Shape.tetrahedra({ path = write(bytes), chambers = { "chamber_2" } }):sample()
    assert.is_false(sample.walls.chamber_1.closed)
    fails("has no physical surface \"chamber_3\" (did you mean", Shape.tetrahedra,
      { path = folder .. "/a.msh", chambers = { "chamber_3" } })
    -- a surface that is named, and whose elements were not saved
    mesh = body_of(3)
    mesh.group[3].element = {}
    for _, version in ipairs(gmsh_file.versions) do
      refused("has no triangles: none of the file's is in that physical surface", gmsh_file.bytes(mesh, version))
      assert.is_true(Shape.tetrahedra({ path = folder .. "/a.msh", chambers = {} }):sample().walls.chamber_1.closed)
    end
    -- a face between two tetrahedra, and one of none
    mesh = body_of(3)
    local cell = mesh.group[1].element[1]
    mesh.group[3].name, mesh.group[3].element = "chamber_x", { { cell[1], cell[2], cell[4] } }
    refused("has 1 triangle between two tetrahedra", gmsh_file.bytes(mesh, "2.2 binary"))
    mesh.group[3].element = { { 1, 2, 60 } }
    refused("that is no face of a tetrahedron", gmsh_file.bytes(mesh, "2.2 binary"))
    mesh = body_of(2)
    table.remove(mesh.group[2].element, 1)
    fails("of the ends of its lines have no neighbour", Shape.triangles,
      { path = write(gmsh_file.bytes(mesh, "4.1 text")) })
  end)
end)

-- ---- pressure -------------------------------------------------------------------------------------------------------

local soft = cq.Material.neo_hookean { young = 20, poisson = 0.3, density = 1 }

local function robot_of(dim, surface)
  local shapes = shape_of(dim, nil, { scale = 0.05 })
  return cq.Robot { shape = shapes, material = soft,
    actuators = cq.Actuator.follower_pressure { name = "air", surface = surface, max = 4 } }
end

local function world_of(robot, def)
  def.cells, def.dx, def.precision = robot.dim == 3 and { 16, 14, 14 } or { 16, 14 }, 0.05, "float64"
  def[1] = robot:at(robot.dim == 3 and { 0.15, 0.2, 0.2 } or { 0.15, 0.2 })
  return cq.World(def)
end

describe("pressure in the chambers of a mesh", function()
  it("gives the body no momentum, and the mesh's volume", function()
    for dim = 2, 3 do
      local cavity = dim == 3 and 1e-3 or 1e-2
      for _, surface in ipairs { "chamber_2", { "chamber_1", "chamber_2" },
        { inside = dim == 3 and { 0.15, 0.15, 0.15 } or { 0.15, 0.15 } }, "cavity_1" } do
        local robot = robot_of(dim, surface)
        local world = world_of(robot, { dt = 1e-3, substeps = 1 })
        local roll = world:rollout { steps = 1, controller = cq.Controller.open_loop(cq.ones { 1, 1 }) }
        local count = type(surface) == "table" and #surface == 2 and 2 or 1
        near(count * cavity, world:rollout { steps = 0 }.state:cavity_volume "air":item(), 1e-14)
        -- the impulse on one wall is p A dt = 4e-3 * 0.01 in space
        local impulse = roll.state:momentum():norm():item()
        assert.is_true(impulse < 1e-16, ("%dD: %g"):format(dim, impulse))
        assert.is_true(roll.state:energy(nil, "kinetic"):item() > 1e-9)
        assert.is_true(roll.state:cavity_volume "air":item() > count * cavity)
      end
    end
  end)

  it("has a volume whose gradient is that of differences", function()
    local robot = robot_of(3, { "chamber_1", "chamber_2" })
    local world = world_of(robot, { dt = 4e-3, substeps = 2 })
    local n = world.particle_count
    local function loss(u, velocity)
      local roll = world:rollout {
        robot = robot:with { velocity = velocity }, steps = 4, controller = cq.Controller.open_loop(u),
        running = function(state) return 1e3 * state:cavity_volume "air" end,
      }
      return roll.running:sum()
    end
    local inputs = {
      cq.tensor { { 0.2 }, { 0.5 }, { 0.9 }, { 0.4 } }, (cq.arange(1, 3 * n):reshape { n, 3 }):sin() * 0.02,
    }
    local params = { cq.param(inputs[1]), cq.param(inputs[2]) }
    local _, grads = cq.value_and_grad(function(p) return loss(p[1], p[2]) end)(params)
    for k, x in ipairs(inputs) do
      local directions = {}
      for j, y in ipairs(inputs) do
        directions[j] = j == k and (cq.arange(1, x.count):reshape(x:shape()) * 1.3):cos() or cq.zeros(y:shape())
      end
      local got, want = (grads[k] * directions[k]):sum():item(), differences.along(loss, inputs, directions, 1e-3)
      assert.is_true(math.abs(got) > 1e-5 and math.abs(got - want) < 1e-7 * math.abs(want),
        ("%g, not %g"):format(got, want))
    end
  end)

  it("says what is wrong with a surface", function()
    fails("robot has no walls of the name \"chamber_3\" (did you mean", function() robot_of(2, "chamber_3") end)
    fails("is in no closed cavity of robot; its walls are chamber_1",
      function() robot_of(2, { inside = { 0.05, 0.05 } }) end)
    fails("the walls \"chamber_1\" of robot are named twice", function() robot_of(2, { "chamber_1", "chamber_1" }) end)
    fails("inside must be a place { x, y } in the cavity", function() robot_of(2, { inside = { "a", 1 } }) end)
    fails("has no walls of the name \"air\"; those of a cq.Shape.tetrahedra", function()
      cq.Robot { shape = Shape.box { size = { 1, 1 }, spacing = 0.1 }, material = soft,
        actuators = cq.Actuator.follower_pressure { surface = "air" } }
    end)
    fails("the chamber \"chamber_1\" of robot is open, a part of its walls was taken away", function()
      cq.Robot { shape = shape_of(2) - Shape.box { size = { 3, 3 } }, material = soft,
        actuators = cq.Actuator.follower_pressure { surface = "chamber_1" } }
    end)
  end)
end)

describe("a chamber of a lattice", function()
  local ring = Shape.box { size = { 0.3, 0.3 }, spacing = 0.025 } - Shape.box { at = { 0.1, 0.1 }, size = { 0.1, 0.1 } }

  it("is named by a place, and moves with the shape", function()
    local sample = ring:chamber("air", { 0.15, 0.15 }):rotate(0.3):scale(2):sample()
    local sum, area = measured(sample, "air")
    near(0, sum[1])
    near(0, sum[2])
    near(0.04, area)
    assert.equal(16, #sample.groups.air)
    local robot = cq.Robot { shape = ring:chamber("air", { 0.15, 0.15 }), material = soft,
      actuators = cq.Actuator.follower_pressure { name = "p", surface = "air" } }
    local world = cq.World {
      cells = { 20, 20 }, dx = 0.05, dt = 1e-3, substeps = 1, precision = "float64", robot:at { 0.3, 0.3 },
    }
    near(0.01, world:rollout { steps = 0 }.state:cavity_volume "p":item())
  end)

  it("of a row of copies is the one around a place", function()
    local row = ring:chamber("air", { 0.15, 0.15 }):repeated { count = 2, step = { 0.3, 0 } }
    for _, x in ipairs { 0.15, 0.45 } do
      local robot = cq.Robot { shape = row, material = soft,
        actuators = cq.Actuator.follower_pressure { name = "p", surface = { inside = { x, 0.15 } } } }
      local world = cq.World { cells = { 24, 20 }, dx = 0.05, dt = 1e-3, substeps = 1, precision = "float64",
        robot:at { 0.2, 0.3 } }
      near(0.01, world:rollout { steps = 0 }.state:cavity_volume "p":item())
    end
  end)

  it("of one name in two robots is asked for by the robot", function()
    local robot = cq.Robot { shape = ring:chamber("air", { 0.15, 0.15 }), material = soft,
      actuators = cq.Actuator.follower_pressure { name = "p", surface = "air" } }
    local world = cq.World {
      cells = { 24, 20 }, dx = 0.05, dt = 1e-3, substeps = 1, precision = "float64", robot:at { 0.2, 0.3 },
      robot:at { 0.6, 0.3 },
    }
    local grown = world.robots[2]:stretched { axis = "x", factor = 1.1 }
    local state = world:rollout({ steps = 0, robot = grown }).state
    fails("there are several of \"p\"; say of which robot", function() state:cavity_volume "p" end)
    fails("robot must be a cq.Robot", function() state:cavity_volume("p", "two") end)
    near(0.01, state:cavity_volume("p", world.robots[1]):item())
    near(0.011, state:cavity_volume("p", world.robots[2]):item())
  end)

  it("must be one", function()
    local function sampled(name, place, shape) return function() (shape or ring):chamber(name, place):sample() end end
    fails("at the place { 0.05, 0.05 } there is a particle of difference", sampled("air", { 0.05, 0.05 }))
    fails("is not inside of", sampled("air", { 0.5, 0.15 }))
    fails("the cavity at { 0.15, 0.15 } is open",
      sampled("air", { 0.15, 0.15 }, ring - Shape.box { at = { 0.1, 0.2 }, size = { 0.1, 0.1 } }))
    fails("has a group or walls \"air\" already", sampled("air", { 0.15, 0.15 }, ring:chamber("air", { 0.15, 0.15 })))
  end)
end)

-- a box of triangles that face outward, or inward
local function obj_box(name, low, high, first, inward)
  local lines = { "g " .. name }
  for _, z in ipairs { low, high } do
    for _, place in ipairs { { low, low }, { high, low }, { high, high }, { low, high } } do
      lines[#lines + 1] = ("v %g %g %g"):format(place[1], place[2], z)
    end
  end
  local faces = { { 1, 4, 3, 2 }, { 5, 6, 7, 8 }, { 1, 2, 6, 5 }, { 2, 3, 7, 6 }, { 3, 4, 8, 7 }, { 4, 1, 5, 8 } }
  for _, face in ipairs(faces) do
    local corners = {}
    for k, corner in ipairs(face) do corners[inward and 5 - k or k] = corner + first end
    lines[#lines + 1] = "f " .. table.concat(corners, " ")
  end
  return table.concat(lines, "\n") .. "\n"
end

describe("a chamber of a triangle mesh", function()
  it("is a part of it that faces inward", function()
    local path = process.write(folder .. "/a.obj", obj_box("body", 0, 10, 0) .. obj_box("chamber_1", 3, 7, 8, true))
    local shape = Shape.mesh { path = path, scale = 0.1 }
    local sample = shape:sample { spacing = 0.1 }
    assert.equal(1000 - 64, sample.count)
    local sum, volume = measured(sample, "chamber_1")
    for d = 1, 3 do near(0, sum[d]) end
    near(0.064, volume)
    assert.equal(6 * 16, #sample.groups.chamber_1)
    assert.equal(1000 - 64, #sample.groups.body)
    local other = Shape.mesh { path = path, scale = 0.1, spacing = 0.1 }:chamber("air", { 0.5, 0.5, 0.5 }):sample()
    assert.same(sample.groups.chamber_1, other.groups.air)
    near(0.064, select(2, measured(other, "air")))
  end)
end)

describe("the soft finger", function()
  local finger = require "scenes.soft_finger"

  it("is in the plane or in space", function()
    for _, make in ipairs { finger, require "scenes.gripper" } do
      for _, dim in ipairs { 1, 4 } do
        local fine, message = pcall(make, { dim = dim })
        assert(not fine and tostring(message):find("dim must be 2 or 3, got " .. dim, 1, true), tostring(message))
      end
    end
  end)

  it("has eight closed chambers of the drawing's volume, in space and in the plane", function()
    for dim = 2, 3 do
      local scene = finger { dim = dim }
      local size, volume_of_box = finger.drawing.size, 1
      for d = 1, dim do volume_of_box = volume_of_box * 1e-3 * size[d] end
      near(1, scene.robot.volume:sum():item() / (volume_of_box - scene.volume), 1e-9)
      for _, name in ipairs(scene.chambers) do
        local _, volume = measured({ dim = dim, walls = scene.robot.walls, position = scene.robot.position }, name)
        near(1, volume * #scene.chambers / scene.volume, 1e-9)
      end
      assert.equal(1, #scene.signals)
      assert.equal(8, #finger({ dim = dim, together = false }).signals)
    end
  end)

  it("bends down, and stands 20 kPa in the plane", function()
    local scene = finger { dim = 2, damping = 60 }
    local world = cq.World(scene.world)
    local n = 120
    local ramp = ((cq.arange(1, n) / (0.6 * n)):minimum(1)):reshape { n, 1 }
    local roll = world:rollout { steps = n, controller = cq.Controller.open_loop(ramp) }
    local drop = world:rollout({ steps = 0 }).state:center "tip":get(2) - roll.state:center "tip":get(2)
    assert.is_true(drop > 0.012 and drop < 0.03, drop)
    local ratio = roll.state:cavity_volume "air":item() / scene.volume
    assert.is_true(ratio > 1.4 and ratio < 2, ratio)
  end)
end)
