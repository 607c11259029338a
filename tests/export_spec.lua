-- export: files for other programs, by their bytes: heads, sizes, counts and places. tests/export/run.sh opens the same
-- files with readers that are not ours.
local ffi = require "ffi"
local cq = require "cq"
local export = require "cq.export"
local host = require "cq.host"
local json = require "cq.base.json"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scene = require "tests.scene"

local sentence = mistake.of
local folder

local function says(text, ...)
  for _, part in ipairs { ... } do mistake.says(text, part) end
end

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local made = {}

-- a rollout of six control steps, in 2D or 3D
local function rolled(dim)
  if not made[dim] then
    local robot = scene.robot { dim = dim, count = 6 }
    made[dim] = scene.world(robot):rollout { steps = 6, controller = function(_, _, t)
      return cq.tensor { math.sin(40 * t), -0.5 }
    end }
  end
  return made[dim]
end

local function number(kind, bytes, at)
  local value = ffi.new(kind .. "[1]")
  ffi.copy(value, bytes:sub(at, at + ffi.sizeof(kind) - 1), ffi.sizeof(kind))
  return tonumber(value[0])
end

describe("state:save", function()
  it("writes every format that its table has, and names them in errors", function()
    local names, help = export.names(), process.cqlua({ "help", "formats" }).out
    assert.same({ "vtp", "ply", "npz", "csv", "obj", "stl", "glb" }, names)
    for _, name in ipairs(names) do
      local path = folder .. "/one." .. name
      assert.equal(path, rolled(2).state:save(path))
      assert.is_true(#process.read(path) > 100)
      assert.is_truthy(help:find("." .. name .. "  ", 1, true), help)
    end
    local state = rolled(2).state
    local function save(...) return sentence(state.save, state, ...) end
    says(save "one.vtk", "path must end in one of .vtp, .ply, .npz, .csv, .obj, .stl, .glb, got \"one.vtk\"")
    says(save("one.obj", { as = "particles" }), ".obj files hold no particles; .vtp, .ply, .npz, .csv take them")
    says(save("one.csv", { as = "surface" }), ".csv files hold no surfaces; .vtp, .ply, .obj, .stl, .glb take them")
    says(save("one.vtp", { fields = { "speeed" } }), "fields has no \"speeed\" (did you mean speed?); particles have affine")
    says(save("one.vtp", { fields = { "viscosity" } }), "no material of this world has the constant viscosity")
    says(save("one.vtp", { scene = 2 }), "scene is 2, the rollout has 1 scene")
    says(save(folder .. "/no/where.vtp"), "cannot be written: there is no folder " .. folder .. "/no")
    says(save(3), "path must be a string")
  end)

  it("puts arrays of a VTP where its XML says", function()
    for _, dim in ipairs { 2, 3 } do
      local state, n = rolled(dim).state, rolled(dim).world.particle_count
      local all = process.read(state:save(folder .. "/one.vtp", { precision = "float64" }))
      assert.is_truthy(all:find(('NumberOfPoints="%d" NumberOfVerts="%d"'):format(n, n), 1, true))
      local raw, offsets = all:find("_", all:find('<AppendedData encoding="raw">', 1, true), true) + 1, {}
      for name, offset in all:gmatch 'Name="([%w_]+)"[^>]- offset="(%d+)"' do offsets[name] = tonumber(offset) end
      assert.equal(8 * 3 * n, number("int64_t", all, raw + offsets.Points))
      assert.equal(8 * dim * dim * n, number("int64_t", all, raw + offsets.deformation))
      assert.equal(4 * n, number("int64_t", all, raw + offsets.group))
      local F = state:deformations()
      assert.equal(F:get(n, dim, 1), number("double", all, raw + offsets.deformation + 8 + 8 * (dim * dim * n - dim)))
      assert.equal(state:positions():get(2, 1), number("double", all, raw + offsets.Points + 8 + 24))
      assert.equal("\n</AppendedData>\n</VTKFile>\n", all:sub(-28))
    end
  end)

  it("gives each particle of a PLY a record, and of a surface closed triangles", function()
    local state, n = rolled(2).state, rolled(2).world.particle_count
    local all = process.read(state:save(folder .. "/one.ply", { fields = { "velocity", "group" } }))
    local head = all:match "^.-\nend_header\n"
    says(head, "format binary_little_endian 1.0", "comment group 2 is trunk", ("element vertex %d"):format(n))
    local names = {}
    for name in head:gmatch "property %w+ ([%w_]+)" do names[#names + 1] = name end
    assert.same({ "x", "y", "z", "velocity_x", "velocity_y", "group" }, names)
    assert.equal(#head + 24 * n, #all)
    assert.near(state:positions():get(2, 2), number("float", all, #head + 24 + 5), 1e-6)
    assert.equal(0, number("float", all, #head + 24 + 9))
  end)

  it("has closed surfaces of the volume of the particles, wherever these go", function()
    for _, dim in ipairs { 2, 3 } do
      local roll = rolled(dim)
      local all = process.read(roll.state:save(folder .. "/one.obj"))
      local vertices, edges, open, volume = {}, {}, 0, 0
      for x, y, z in all:gmatch "v (%S+) (%S+) (%S+)" do vertices[#vertices + 1] = { x + 0, y + 0, z + 0 } end
      for a, b, c in all:gmatch "f (%d+) (%d+) (%d+)" do
        local t = { a + 0, b + 0, c + 0 }
        for k = 1, 3 do
          local from, to = t[k], t[k % 3 + 1]
          edges[from .. " " .. to] = (edges[from .. " " .. to] or 0) + 1
        end
        local p, q, r = vertices[t[1]], vertices[t[2]], vertices[t[3]]
        volume = volume + (p[1] * (q[2] * r[3] - q[3] * r[2]) + p[2] * (q[3] * r[1] - q[1] * r[3])
          + p[3] * (q[1] * r[2] - q[2] * r[1])) / 6
      end
      for edge, count in pairs(edges) do
        local from, to = edge:match "(%d+) (%d+)"
        if count ~= 1 or edges[to .. " " .. from] ~= 1 then open = open + 1 end
      end
      assert.equal(0, open)
      local expected = (roll.state:gather(nil, "jacobian") * roll.world.layout.base.volume):sum():item()
      -- six particles wide: an edge is rounded by a share of a spacing
      assert.near(1, volume / (dim == 2 and expected * roll.world.dx or expected), dim == 2 and 0.01 or 0.05)
    end
  end)

  it("has facets whose normals have length 1 and point outwards", function()
    for _, dim in ipairs { 2, 3 } do
      local all = process.read(rolled(dim).state:save(folder .. "/one.stl"))
      local count, flux, volume = ffi.cast("uint32_t *", ffi.cast("char *", all) + 80)[0], 0, 0
      assert.equal(84 + 50 * count, #all)
      for k = 0, count - 1 do
        local x = ffi.new "float[12]"
        ffi.copy(x, ffi.cast("char *", all) + 84 + 50 * k, 48)
        assert.near(1, math.sqrt(x[0] ^ 2 + x[1] ^ 2 + x[2] ^ 2), 1e-6)
        local cross = {}
        for d = 0, 2 do
          local e, f = (d + 1) % 3, (d + 2) % 3
          cross[d] = (x[6 + e] - x[3 + e]) * (x[9 + f] - x[3 + f]) - (x[6 + f] - x[3 + f]) * (x[9 + e] - x[3 + e])
          volume = volume + x[3 + d] * cross[d] / 6
        end
        -- the volume once more, by the normals as they stand there
        local area = math.sqrt(cross[0] ^ 2 + cross[1] ^ 2 + cross[2] ^ 2) / 2
        for d = 0, 2 do flux = flux + x[3 + d] * x[d] * area / 3 end
      end
      assert.is_true(volume > 0)
      assert.near(volume, flux, 1e-5 * volume)
    end
  end)

  it("has the units of its columns in the head of a CSV, in the user's words", function()
    local state = rolled(2).state
    local path = state:save(folder .. "/one.csv", { fields = { "velocity", "cauchy", "group" },
      units = { length = "mm", time = "s" } })
    local data = cq.csv(path)
    assert.same({ "x", "y", "velocity_x", "velocity_y", "cauchy_xx", "cauchy_xy", "cauchy_yx", "cauchy_yy", "group" },
      data:names())
    assert.equal("mm/s", data:unit "velocity_y")
    assert.equal("mm", data:unit "x")
    assert.is_nil(data:unit "group")
    assert.near(state:gather(nil, "cauchy"):get(3, 1, 2), data.cauchy_xy:get(3), 1e-7)
  end)

  it("has groups of one's own, as marks of particles and by their motion", function()
    local body = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, count = { 8, 4 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      groups = { ["far tip"] = function(x) return x > 0.15 end, root = function(x) return x < 0.05 end } }
    local world = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-2, substeps = 4, gravity = { 0, -1 },
      body:at { 0.4, 0.4 } }
    local roll = world:rollout { steps = 3 }
    local data = cq.csv(roll.state:save(folder .. "/marked.csv"))
    assert.same({ 8, 8 }, { data.group_far_tip:sum():item(), data.group_root:sum():item() })
    assert.is_true((data.group_far_tip * (data.x - 0.55)):min():item() >= 0)
    assert.is_truthy(process.read(roll.state:save(folder .. "/marked.ply", { fields = { "group_far_tip" } }))
      :find("property int group_far_tip", 1, true))
    local pair = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, count = { 8, 4 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      groups = { ["a b"] = function(x) return x < 0.1 end, ["a-b"] = function(x) return x > 0.15 end } }
    local other = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-2, substeps = 4, pair:at { 0.4, 0.4 } }
    local two = cq.csv(other:rollout({ steps = 0 }).state:save(folder .. "/two.csv"))
    local sums = { two.group_a_b:sum():item(), two.group_a_b_2:sum():item() }
    table.sort(sums)
    assert.same({ 8, 16 }, sums)
    local motion = cq.csv(roll:export { path = folder .. "/motion.csv" })
    assert.near(roll.state:center("far tip")[2]:item(), motion["far tip y"]:get(-1), 1e-6)
    says(sentence(function() roll.state:save(folder .. "/no.csv", { fields = { "group_tip" } }) end),
      'fields has no "group_tip"', "group_far_tip, group_root")
  end)

  it("leaves the cells of a CSV empty where a material has no such constant", function()
    local function box(material, at)
      local shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.05 }
      return cq.Robot { shape = shape, material = material }:at { at, 0.4 }
    end
    local world = cq.World { cells = { 10, 10 }, dx = 0.1, dt = 1e-3,
      box(cq.Material.neo_hookean { young = 8, poisson = 0 }, 0.2), box(cq.Material.fluid { bulk = 8 }, 0.6) }
    local path = world:rollout({ steps = 0 }).state:save(folder .. "/wet.csv", { fields = { "young", "group" } })
    local lines = {}
    for line in process.read(path):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal("x [length],y [length],young [stress],group", lines[1])
    assert.matches("^[%d.]+,[%d.]+,8,%d$", lines[2])
    assert.matches("^[%d.]+,[%d.]+,,%d$", lines[#lines])
    local data = cq.csv(path)
    assert.equal(world.particle_count, data.y.count)
    says(sentence(function() return data.young end), "column young in line ", "is empty")
  end)

  it("takes one scene of a batch", function()
    local roll = rolled(2)
    local gravity = cq.tensor { { { 0, -4 }, { 0, -4 } }, { { 0, 4 }, { 0, 4 } } }
    local batch = roll.world:rollout { steps = 2, batch = 2, gravity = gravity }
    local data = cq.csv(batch.state:save(folder .. "/two.csv", { scene = 2, fields = { "velocity" } }))
    assert.near(batch.state:velocities():get(2, 5, 2), data.velocity_y:get(5), 1e-7)
    says(sentence(batch.state.save, batch.state, folder .. "/two.csv"),
      "state:save: the state has 2 scenes, and a file holds one of them; give { scene = 1 }, or another one")
    assert.equal(4, #cq.csv(batch.state:scene(2):save(folder .. "/one.csv", { fields = { "velocity" } })):names())
    says(sentence(batch.export, batch, { format = "npz" }), "a batch of 2 scenes is not exported")
  end)

  it("leaves what stood there where the disk is full", function()
    local script = process.write(folder .. "/script.lua", [[
      package.path = "./?.lua;" .. package.path
      local cq, scene = require "cq", require "tests.scene"
      local folder = cq.option("folder", "")
      local roll = scene.world(scene.robot { count = 12 }):rollout { steps = 1 }
      for _, name in ipairs(require("cq.export").names()) do
        print(name, pcall(roll.state.save, roll.state, folder .. "/one." .. name))
      end
      print("all", pcall(roll.export, roll, { path = folder .. "/all.vtp" }))
    ]])
    for _, name in ipairs(export.names()) do process.write(folder .. "/one." .. name, "old") end
    local result = process.cqlua({ script, "--folder", folder }, { before = "trap '' XFSZ; ulimit -f 4;" })
    assert.equal(0, result.code, result.err)
    for _, name in ipairs(export.names()) do
      assert.is_truthy(result.out:find(name .. "\tfalse\t[^\n]*File too large"), result.out)
      assert.equal("old", process.read(folder .. "/one." .. name))
    end
    assert.is_truthy(result.out:find "all\tfalse\t[^\n]*File too large")
    assert.is_nil(host.kind(folder .. "/all.pvd"))
    assert.same({}, host.entries(folder .. "/all"))
  end)
end)

describe("rollout:export", function()
  it("writes a file for each state and a list of them", function()
    local roll = rolled(2)
    -- frames of an earlier export, which was longer, and files of one's own
    os.execute(("mkdir -p %s/all; cd %s/all; touch 00004.vtp 00005.vtp 00099.vtp notes.vtp"):format(folder, folder))
    assert.equal(folder .. "/all.pvd", roll:export { path = folder .. "/all.vtp", interval = 2 })
    local names = host.entries(folder .. "/all")
    table.sort(names)
    assert.same({ "00000.vtp", "00001.vtp", "00002.vtp", "00003.vtp", "00099.vtp", "notes.vtp" }, names)
    local list = process.read(folder .. "/all.pvd")
    local times = {}
    for time, path in list:gmatch '<DataSet timestep="(%S+)" part="0" file="([^"]+)"/>' do
      times[#times + 1] = tonumber(time)
      assert.is_truthy(host.kind(folder .. "/" .. path))
    end
    assert.equal(4, #times)
    assert.near(roll.state.time, times[4], 1e-12)
    -- the last frame is the state that the rollout ended with
    roll.state:save(folder .. "/last.vtp")
    assert.equal(process.read(folder .. "/last.vtp"), process.read(folder .. "/all/00003.vtp"))
  end)

  it("puts arrays of all frames into one archive", function()
    local roll, n = rolled(3), rolled(3).world.particle_count
    local path = folder .. "/all.npz"
    local all = process.read(roll:export { path = path, interval = 3, fields = { "velocity", "group" } })
    local files, at = {}, 1
    while all:sub(at, at + 3) == "PK\3\4" do
      local size, name = number("uint32_t", all, at + 22), number("uint16_t", all, at + 26)
      local first = at + 30 + name
      files[all:sub(at + 30, first - 1)] = all:sub(first, first + size - 1)
      at = first + size
    end
    local function array(name) return cq.load(process.write(folder .. "/one.npy", files[name .. ".npy"])) end
    assert.same({ 3, n, 3 }, array("position"):shape())
    assert.same({ 6, 2 }, array("signals"):shape())
    assert.same({ 6, 1, 3 }, array("wall_force"):shape())
    assert.near(0, (array("velocity")[3] - roll.state:velocities()):abs():max():item(), 1e-6)
    assert.same({ 0, 3 * roll.world.control_dt, 6 * roll.world.control_dt }, array("time"):totable())
  end)

  it("follows bodies, signals and forces over time in a table", function()
    local roll = rolled(2)
    local contact = roll.world:rollout { steps = 6, contact = true, controller = roll.again.controller }
    local data = cq.csv(roll:export { path = folder .. "/all.csv", interval = 2 })
    assert.equal(3, data.time.count)
    assert.near(roll.state.time, data.time:get(3), 1e-9)
    assert.near(roll.state:center("foot"):get(2), data["foot y"]:get(3), 1e-8)
    assert.near(roll.state:velocity(roll.world.robot):get(1), data["body velocity_x"]:get(3), 1e-8)
    assert.near(roll.signals:get(4, 1), data["signal foot"]:get(2), 1e-8)
    assert.near(contact.contact.impulse:get(6, 1, 2) / roll.world.control_dt, data["wall 1 force_y"]:get(3), 1e-6)
    assert.equal("mass length/time^2", data:unit "wall 1 force_y")
    for unit, words in pairs { N = { force = "N" }, ["kg mm/s^2"] = { length = "mm", mass = "kg", time = "s" } } do
      roll:export { path = folder .. "/units.csv", units = words }
      assert.equal(unit, cq.csv(folder .. "/units.csv"):unit "wall 1 force_y")
    end
  end)

  it("numbers robots of one name", function()
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, scene.robot():at { 0.2, 0.2 },
      scene.robot():at { 0.6, 0.2 } }
    local data = cq.csv(world:rollout({ steps = 2 }):export { path = folder .. "/two.csv" })
    assert.is_true(data:column("robot 1 x"):get(1) < data:column("robot 2 x"):get(1))
    assert.is_true(data:column("robot 1 foot x"):get(1) < data:column("robot 2 foot x"):get(1))
    mistake.refuses(function()
      world:rollout({ steps = 0 }).state:save(folder .. "/twice.csv", { fields = { "velocity", "young", "velocity" } })
    end, 'fields has "velocity" twice')
  end)

  it("moves the surfaces of a GLB by morph targets", function()
    local roll = rolled(3)
    local all = process.read(roll:export { path = folder .. "/all.glb" })
    assert.equal("glTF", all:sub(1, 4))
    assert.equal(#all, number("uint32_t", all, 9))
    local size = number("uint32_t", all, 13)
    local document = json.decode(all:sub(21, 20 + size))
    assert.equal(6, #document.meshes[1].primitives[1].targets)
    assert.equal(6, document.animations[1].channels[1].target.path == "weights"
      and document.accessors[document.animations[1].samplers[1].output + 1].count / 7)
    assert.equal(#all - 28 - size, document.buffers[1].byteLength)
    local long = roll.world:rollout { steps = 100 }
    assert.equal(folder .. "/long.glb", long:export { path = folder .. "/long.glb" })
    says(sentence(long.export, long, { path = folder .. "/long.glb", interval = 1 }),
      "101 frames are more than the 32 that a .glb takes; interval = 4 makes fewer")
  end)

  it("says what is wrong before anything runs", function()
    local roll = rolled(2)
    local function of(options) return sentence(roll.export, roll, options) end
    says(of {}, "give format, one of \"vtp\"", "or a path that ends in one")
    says(of { format = "vtk" }, "format must be one of")
    says(of { format = "vtp", path = folder .. "/a.ply" }, "format is \"vtp\", and the path ends in .ply")
    for _, name in ipairs { "csv", "glb", "vtp" } do
      says(of { format = name, interval = 7, path = ("%s/a.%s"):format(folder, name) },
        "interval is 7 control steps, and the rollout makes 6")
    end
    for ending, told in pairs { csv = "a table of centres over time", glb = "surfaces", stl = "surfaces" } do
      says(of { path = folder .. "/a." .. ending, fields = { "nonsense" } },
        "fields goes with particles, and has no effect on " .. told)
    end
    says(of { path = folder .. "/a.npz", thickness = 1 }, "thickness goes with surfaces, and has no effect on particles")
    says(sentence(roll.state.save, roll.state, folder .. "/a.stl", { fields = { "young" } }),
      "state:save: fields goes with particles, and has no effect on surfaces")
    local wrong = { units = { lenght = "mm" }, path = folder .. "/a.csv" }
    says(of(wrong), "unknown field lenght (did you mean length?); allowed are force, length, mass, stress, time")
    says(sentence(roll.state.save, roll.state, wrong.path, { units = wrong.units }), "did you mean length?")
    says(of { units = { time = 1 }, path = wrong.path }, "export: units: time must be a string, got 1")
    for _, ending in ipairs { "csv", "glb", "vtp", "obj" } do
      local said = "cannot be written: there is no folder " .. folder .. "/no"
      says(of { path = ("%s/no/a.%s"):format(folder, ending) }, said)
    end
    assert.is_nil(require("cq.host").kind(folder .. "/no"))
    process.write(folder .. "/taken", "a file")
    says(of { format = "vtp", path = folder .. "/taken" }, "the folder " .. folder .. "/taken cannot be made: ")
  end)
end)

describe("run:export", function()
  it("writes into the folder of the run, in a changed world too", function()
    local script = process.write(folder .. "/script.lua", [[
      package.path = "./?.lua;" .. package.path
      local cq, scene = require "cq", require "tests.scene"
      local robot = scene.robot()
      local run = cq.Experiment { world = scene.world(robot), steps = 4, controller = cq.Controller.sines {},
        objective = function(state) return -state:center(robot)[1] end, optimizer = cq.Optimizer.adam { rate = 0.1 } }
      run:optimize { iterations = 1 }
      run:export { format = "vtp" }
      run:export { path = "ice.csv", friction = 0, duration = 12e-3 }
    ]])
    local result = process.cqlua({ script, "--out", folder .. "/run" })
    assert.equal(0, result.code, result.err)
    assert.is_truthy(host.kind(folder .. "/run/frames.pvd"))
    assert.equal(5, #host.entries(folder .. "/run/frames"))
    assert.equal(2, cq.csv(folder .. "/run/ice.csv").time.count)
    says(result.err, "frames.pvd, 5 frames", "ice.csv, 2 rows")
  end)
end)

describe("NumPy's arrays", function()
  it("hold one tensor, with a head of a whole number of 64 bytes", function()
    local path, x = folder .. "/x.npy", cq.random({ seed = 1 }):normal { 3, 5 }
    cq.save(path, x)
    local all = process.read(path)
    assert.equal("\147NUMPY\1\0", all:sub(1, 8))
    assert.equal(0, (10 + number("uint16_t", all, 9)) % 64)
    assert.is_truthy(all:find("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }", 1, true))
    assert.equal(10 + number("uint16_t", all, 9) + 15 * 8, #all)
    assert.same(x:totable(), cq.load(path):totable())
    cq.save(path, x, "float32")
    assert.near(0, (cq.load(path) - x):abs():max():item(), 1e-6)
    cq.save(path, cq.tensor(2.5))
    assert.equal(2.5, cq.load(path):item())
    cq.save(path, cq.ones { 4 })
    assert.same({ 4 }, cq.load(path):shape())
    says(sentence(cq.save, path, { x = x }), "a .npy file holds one tensor, got a table")
  end)

  it("that holds a NaN of any bits gives NaN", function()
    local path = folder .. "/x.npy"
    cq.save(path, cq.tensor { 1, 2 })
    local head = process.read(path):sub(1, -17)
    local bits = ffi.new("uint64_t[2]", 0xfffd800000000001ull, 0x7ff0000000000001ull)
    process.write(path, head .. ffi.string(bits, 16))
    local seen = cq.load(path)
    for k = 1, 2 do assert(seen:get(k) ~= seen:get(k)) end
    local singles = ffi.new("uint32_t[2]", 0xffefffff, 0xffffffff)
    process.write(path, head:gsub("<f8", "<f4") .. ffi.string(singles, 8))
    seen = cq.load(path)
    for k = 1, 2 do assert(seen:get(k) ~= seen:get(k)) end
  end)

  it("say what is wrong with those that are cut, or of another kind", function()
    local path = folder .. "/x.npy"
    cq.save(path, cq.ones { 2, 2 })
    local all = process.read(path)
    for _, cut in ipairs { 7, 9, 40, #all - 1 } do
      process.write(path, all:sub(1, cut))
      says(sentence(cq.load, path), "x.npy", cut < 100 and "is cut short" or "has 31 bytes of numbers, and its shape takes 32")
    end
    process.write(path, (all:gsub("<f8", ">f8")))
    says(sentence(cq.load, path), "of the type '>f8'; a tensor takes little-endian floats")
    process.write(path, (all:gsub("%(2, 2%)", "(9, 9)")))
    says(sentence(cq.load, path), "has 32 bytes of numbers, and its shape takes 648")
  end)
end)
