-- saved: what a run leaves, used without its script: cq.load of folders and files, in new processes and other worlds.
local cq = require "cq"
local T = require "cq.tensor"
local host = require "cq.host"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local STEPS = 15

local function experiment(changes, robot)
  robot = robot or scene.robot()
  local fields = {
    world = scene.world(robot), steps = STEPS, controller = cq.Controller.mlp { hidden = { 8 }, activation = "tanh" },
    observer = cq.Observer.centroid { groups = { "foot", robot:group "trunk" }, velocity = true },
    optimizer = cq.Optimizer.adam { rate = 0.05 },
    objective = function(s) return -s:velocity("trunk")[2] end,
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function trained(changes, robot)
  local run = experiment(changes, robot)
  run:optimize { iterations = 3, folder = folder .. "/a" }
  return run, cq.load(folder .. "/a")
end

local function loss_of(saved, changes) return -saved:rollout(changes).state:velocity("trunk")[2]:item() end

-- what the program says of a piece of Lua, in a process of its own
local function told(code)
  local said = process.cqlua { "--quiet", process.write(folder .. "/piece.lua", code) }
  assert.equal("", said.err)
  return said.out
end

describe("a run that was saved", function()
  it("gives equal bits in a new process, without its script", function()
    local run = trained { trainable = {
      young = { per = "particle", min = 1, max = 30 }, density = { per = "group", min = 0.5, max = 2 },
      friction = { min = 0, max = 2 }, gravity = {} } }
    local wanted = run:evaluate().loss
    assert.is_true(wanted ~= experiment():evaluate().loss)
    local out = told(([[
      local cq = require "cq"
      local saved = cq.load %q
      local velocity = saved:rollout().state:velocity("trunk")[2]:item()
      print(("%%.17g %%.17g %%d"):format(-velocity, saved.result.loss, saved.steps))
    ]]):format(folder .. "/a"))
    assert.equal(("%.17g %.17g %d\n"):format(wanted, run.best.loss, STEPS), out)
  end)

  it("keeps every kind of robot and actuator to the bit", function()
    local muscle = cq.Actuator.muscle { groups = { "foot" }, axis = "x", max = 1 }
    local cable = cq.Actuator.cable { path = { "foot", "trunk", { anchor = { 0.5, 0.5 } } }, stiffness = 3,
      friction = 0.1, gap = 1 }
    local pressed = cq.Actuator.follower_pressure { max = 0.5,
      surface = { particles = { 1, 2, 3 }, area = 0.02, normal = { 0, -1 } } }
    local viscous = cq.Material.viscoelastic { modulus = { 0.5 }, time = { 0.1 },
      base = cq.Material.neo_hookean { young = 10, poisson = 0.4 } }
    local sand = cq.Material.drucker_prager { young = 10, poisson = 0.3, friction_angle = 0.6 }
    for _, case in ipairs {
      { actuators = { muscle, cable, pressed, cq.Actuator.isotropic { count = 2, max = 1 } }, weighed = true },
      { actuators = muscle, material = viscous },
      { actuators = cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 2 },
        material = { foot = sand, default = viscous } },
    } do
      local robot = scene.robot(case)
      if case.weighed then
        local random = cq.random { seed = 1 }
        robot = robot:with { actuation_weight = random:uniform { robot.particle_count, 3 } }
      end
      local run = experiment({ optimizer = cq.Optimizer.adam { rate = 1e-4 } }, robot)
      run:optimize { iterations = 1, folder = folder .. "/a" }
      assert.equal(run:evaluate().loss, loss_of(cq.load(folder .. "/a")))
    end
  end)

  it("keeps of which of two robots of one kind its observer is, and the group that a window follows", function()
    local robot = scene.robot()
    local world = cq.World { cells = { 36, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, precision = "float64",
      robot:at { 0.3, 0.2 }, robot:at { 0.8, 0.2 } }
    local second = world.robots[2]
    for _, observer in ipairs { cq.Observer.centroid { groups = { second } },
      cq.Observer.kmeans { clusters = 3, group = second, velocity = true },
      cq.Observer.autoencoder { window = { 8, 8 }, layers = { 2 }, latent = 3, group = second,
        center = second:group "foot" } } do
      local run = cq.Experiment { world = world, steps = 2, observer = observer,
        controller = cq.Controller.linear { scale = 0.1 }, optimizer = cq.Optimizer.adam { rate = 1e-3 },
        objective = function(state) return state:center(second)[1] end }
      run:optimize { iterations = 1, folder = folder .. "/a" }
      local saved = cq.load(folder .. "/a")
      local first = saved:rollout { steps = 0 }.state
      assert.same(observer:observe(world:rollout { steps = 0 }.state):totable(),
        saved.observer:observe(first):totable())
    end
  end)

  it("keeps walls, steps and functions of time", function()
    local robot = scene.robot()
    local function shakes(t) return { 0.2 * math.sin(40 * t), 0 } end
    local world = cq.World {
      cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = "auto", damping = 0.1, precision = "float64",
      gravity = function(t) return { math.sin(30 * t), -4 } end,
      walls = { cq.Boundary.floor { at = 0.125, mu = 0.4, velocity = shakes }, cq.Boundary.box { kind = "slip" },
        cq.Boundary.half_plane { point = { 0, 0.12 }, normal = { 0.1, 1 }, kind = "separate",
          motion = function(t) return { 0, t * t } end } },
      robot:at { 0.4, 0.14 },
    }
    local run, saved = trained({ world = world }, robot)
    assert.equal(run:evaluate().loss, loss_of(saved))
    assert.equal(world.substeps, saved.world.substeps)
    says(sentence(function() saved:rollout { steps = STEPS + 1 } end), "kept as it was at 15 control steps")
    local implicit = scene.robot()
    run, saved = trained({ world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, precision = "float64",
      integrator = cq.Implicit { tolerance = 1e-6 }, implicit:at { 0.4, 0.2 } } }, implicit)
    assert.equal(run:evaluate().loss, loss_of(saved))
  end)

  it("is the first of several scenes", function()
    local robot = scene.robot()
    local run, saved = trained({ trainable = { density = { per = "group", min = 0.5, max = 2 } },
      scenes = { count = 2, each = function(k)
        return { robot = robot:with { young = 5 * k }, gravity = { 0.2 * k, -3 }, friction = 0.1 * k,
          observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true } }
      end } }, robot)
    local first = run:scene(1)
    assert.equal(first:loss(first:rollout(run.best.params)):item(), loss_of(saved))
    assert.is_true(loss_of(saved) ~= loss_of(saved, { gravity = { 0.4, -3 } }))
    -- what each scene sees by a function of the script's is told, as that of an experiment
    local goals = { 0.5, 0.6 }
    local _, seen = trained { controller = cq.Controller.mlp { hidden = { 4 } }, observer = function() return
      cq.tensor { 0 } end, scenes = { count = 2, each = function(k)
        return { observer = function(state) return state:center("trunk"):slice(1, 1) - goals[k] end }
      end } }
    says(sentence(function() seen:rollout() end), "observer", "saved_spec.lua")
  end)

  it("goes into another world", function()
    local _, saved = trained()
    local world = scene.world(saved.robot, { walls = cq.Boundary.box { kind = "friction", mu = 0.1 } })
    local roll = world:rollout { steps = 2 * STEPS, controller = saved.controller, observer = saved.observer }
    assert.equal(2 * STEPS, roll.steps)
    -- as data: the world of the run with another gravity
    local fields = saved.world
    fields.gravity = { 0, -1 }
    local there = cq.World(fields):rollout { steps = STEPS, controller = saved.controller, observer = saved.observer }
    assert.equal(loss_of(saved, { gravity = { 0, -1 } }), -there.state:velocity("trunk")[2]:item())
  end)

  it("plays signals of control steps at their own pace alone", function()
    local _, saved = trained { controller = cq.Controller.open_loop { steps = STEPS }, observer = false }
    local fields = saved.world
    local dt = fields.dt
    fields.dt = dt / 2
    local world = cq.World(fields)
    says(sentence(function() return world:rollout { steps = STEPS, controller = saved.controller } end),
      ("saved.bin are those of control steps of %g, and the world has control steps of %g; give it dt = %g"):format(dt,
        dt / 2, dt))
  end)

  it("names both where groups or signals do not fit", function()
    local _, saved = trained()
    local function with(robot) return scene.world(robot):rollout {
      steps = 2, controller = saved.controller, observer = saved.observer } end
    local bare = cq.Robot { shape = cq.Shape.box { name = "body", size = { 0.1, 0.2 }, count = { 4, 8 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = cq.Actuator.muscle { groups = { "body", "body" }, axis = "y", max = 1 } }
    local said = sentence(with, bare)
    says(said, "gives the signals foot, trunk, the robots take body, body")
    local renamed = cq.Robot { shape = { cq.Shape.box { name = "foot", size = { 0.1, 0.1 }, count = { 4, 4 } },
      cq.Shape.box { name = "head", at = { 0, 0.1 }, size = { 0.1, 0.1 }, count = { 4, 4 } } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 }, groups = { trunk = "head" },
      actuators = cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 2 } }
    says(sentence(with, renamed), "this robot is not in the world")
    local _, named = trained { observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true } }
    assert.equal(2, scene.world(renamed):rollout { steps = 2, controller = named.controller,
      observer = named.observer }.steps)
    local other = cq.Robot { shape = cq.Shape.box { name = "foot", size = { 0.1, 0.2 }, count = { 4, 8 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = { cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 },
        cq.Actuator.cable { path = { "foot", { anchor = { 0.5, 0.5 } } }, stiffness = 1, name = "trunk" } } }
    says(sentence(function() scene.world(other):rollout { steps = 2, controller = named.controller,
      observer = named.observer } end), 'no group "trunk"; the groups are foot')
  end)

  it("tells what only its script can read", function()
    local _, saved = trained { observer = function(s) return s:center "foot" end }
    says(sentence(function() return saved.observer end), "its observer is the script's own (")
    says(sentence(function() return saved.observer end), "saved_spec.lua:")
    says(sentence(function() return saved.observer end), "run:load reads this in that script")
    assert.is_truthy(saved.controller)
    local _, own = trained { controller = function() return T.zeros { 2 } end,
      trainable = { young = { min = 1, max = 20, init = 9 } } }
    says(sentence(function() return own.controller end), "its controller is the script's own (")
    says(tostring(own), "; controller the script's own, of 2 signals }")
    local pushed = scene.robot { actuators = { { particles = "foot", signals = 2,
      force = function(_, u, x) return 1e-3 * u:reshape { 1, 2 } * T.ones(x:shape()) end } } }
    local _, forced = trained(nil, pushed)
    says(sentence(function() return forced.robot end), "has forces of the script's own (")
  end)

  it("tells of parameters that go into another network", function()
    local _, saved = trained()
    local message, heard = require "cq.base.message", {}
    local warn = message.warn
    message.warn = function(...) heard[#heard + 1] = string.format(...) end
    cq.Controller.mlp { hidden = { 8 }, activation = "tanh", inputs = 8, signals = 2,
      init = saved.parameters.controller }
    cq.Controller.mlp { hidden = { 8 }, activation = "relu", inputs = 8, signals = 2,
      init = saved.parameters.controller }
    cq.Controller.mlp { hidden = { 8 }, activation = "relu" }:with(saved.parameters.controller)
    message.warn = warn
    assert.equal(2, #heard)
    for _, text in ipairs(heard) do
      says(text, "are of a controller mlp, activation tanh, hidden {8}, and are given to one of mlp, activation relu")
    end
  end)

  it("keeps a design as the body and the signals that it stands for", function()
    local block_design = require "tests.block_design"
    local design = block_design.make()
    local run = cq.Experiment { world = design.world, steps = 30, design = design,
      objective = function(s) return s:center("tip")[2] end, optimizer = cq.Optimizer.adam { rate = 0.01 } }
    run.params.design.density:copy_from(block_design.variables(design).density)
    run:optimize { iterations = 1, folder = folder .. "/a" }
    local saved = cq.load(folder .. "/a")
    assert.equal(run.best.loss, saved:rollout().state:center("tip")[2]:item())
    local map = design:map(run.best.params.design)
    assert.is_true(saved.design.density:equal(map.density) and saved.design.signals:equal(map.signals))
    assert.same({ 30, 3 }, saved.controller.params.u:shape())
  end)

  it("keeps the walls of a closed chamber, and refuses a file without them", function()
    local hole = cq.Shape.box { at = { 0.1, 0.1 }, size = { 0.1, 0.1 } }
    local ring = cq.Robot { shape = cq.Shape.box { name = "ring", size = { 0.3, 0.3 } } - hole, spacing = 1 / 40,
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = cq.Actuator.follower_pressure { name = "air", surface = { inside = { 0.15, 0.15 } }, max = 2 } }
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local world = cq.World { cells = { 24, 24 }, dx = 1 / 20, dt = 1e-2, substeps = 8, formulation = formulation,
        ring:at { 0.4, 0.4 } }
      local run = cq.Experiment { world = world, steps = 5,
        controller = cq.Controller.open_loop { u = cq.ones { 5, 1 } },
        objective = function(s) return -s:cavity_volume "air" end, trainable = { young = { min = 5, max = 20 } },
        optimizer = cq.Optimizer.adam { rate = 0.1 } }
      run:optimize { iterations = 2, folder = folder .. "/" .. formulation }
      local saved = cq.load(folder .. "/" .. formulation)
      assert.equal(run.best.loss, -saved:rollout().state:cavity_volume("air"):item())
      assert.is_true(-run.best.loss > 0.0102)
    end
    local data = require("cq.saved.robot").data(ring, ring)
    data.surfaces[1].chamber = nil
    says(sentence(function() require("cq.saved.robot").make(data, "saved.bin") end),
      "saved.bin: the file was made by a program that did not keep the walls of the chamber air")
  end)

  it("keeps a body of a mesh, with its surface", function()
    local beast = cq.Creature.from_mesh { path = "../scenes/assets/creature.stl", length = 0.4, particles = 400 }
    local world = cq.World { cells = { 30, 20, 20 }, dx = 1 / 20, gravity = { 0, -2, 0 }, dt = 5e-3, substeps = 2,
      precision = "float64", beast:at { 0.4, 0.3, 0.5 - beast.size[3] / 2 } }
    local run = cq.Experiment { world = world, steps = 4, controller = cq.Controller.sines {},
      objective = function(s) return s:center(beast)[2] end, optimizer = cq.Optimizer.adam { rate = 1e-3 } }
    run:optimize { iterations = 1, folder = folder .. "/a" }
    local saved = cq.load(folder .. "/a")
    assert.equal(run.best.loss, saved:rollout().state:center(saved.robot)[2]:item())
    local function drawn(there, policy)
      there:render(folder .. "/beast.png", policy)
      return process.read(folder .. "/beast.png")
    end
    local policy = { steps = 4, controller = saved.controller, width = 200 }
    assert.is_true(drawn(world, policy) == drawn(cq.World(saved.world), policy), "another picture")
    -- and the colours of a drawing
    local rhino = cq.Creature.from_image { path = "../scenes/assets/rhino.png", width = 0.45, spacing = 0.02 }
    local data = require("cq.saved.robot").data(rhino, rhino)
    assert.is_truthy(next(rhino.drawn))
    assert.same(rhino.drawn, require("cq.saved.robot").make(data, "saved.bin").drawn)
  end)

  it("says in a sentence what it cannot make of a file that was mangled", function()
    trained()
    local path, random = folder .. "/a/saved.bin", cq.random { seed = 5 }
    local bytes, sentences = process.read(path), 0
    for _ = 1, 500 do
      local at = random:integers({ 1 }, { min = 9, max = #bytes }):get(1)
      local byte = string.char(random:integers({ 1 }, { min = 0, max = 255 }):get(1))
      process.write(path, bytes:sub(1, at - 1) .. byte .. bytes:sub(at + 1))
      local fine, problem = pcall(function()
        local saved = cq.load(path)
        return saved.robot, saved.world, saved.controller, saved.observer, tostring(saved)
      end)
      if not fine then
        sentences = sentences + 1
        assert.is_truthy(tostring(problem):find "^[^\n]*saved_spec.lua:%d+: [^\n]*saved.bin", problem)
      end
    end
    assert.is_true(sentences > 0)
  end)

  it("has a manifest, sources and a page that prints", function()
    process.write(folder .. "/body.lua", "return require('tests.scene')")
    local out = told(([[
      local cq = require "cq"
      local scene = require "body"
      local run = cq.Experiment { world = scene.world(scene.robot()), steps = 3, objective = function(s)
        return s:center("foot")[1] end, optimizer = cq.Optimizer.adam { rate = 1e-3 },
        controller = cq.Controller.sines {} }
      run:optimize { iterations = 1, folder = %q }
    ]]):format(folder .. "/b"))
    local saved = cq.load(folder .. "/b/")
    assert.equal(1, saved.manifest.iterations, out)
    assert.equal(process.read(folder .. "/body.lua"), process.read(folder .. "/b/sources/body.lua"))
    assert.equal(require("cq.run").hash(process.read(folder .. "/body.lua")), saved.manifest.sources["body.lua"])
    assert.is_truthy(saved.data.origin.sources["tests/scene.lua"])
    says(tostring(saved), "controller sines, count 4, frequency {1}, of 2 signals")
  end)

  it("has files that the script runs by dofile, which its copy finds where they are gone", function()
    local far = folder .. "/far.lua"
    process.write(far, "return 1e-3")
    process.write(folder .. "/script.lua", ([[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local rate = dofile %q
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 3, objective = function(s)
  return s:center("foot")[1] end, optimizer = cq.Optimizer.adam { rate = rate },
  controller = cq.Controller.sines {} }
run:optimize { iterations = 2 }
print("rate", rate)
]]):format(far))
    local made = process.cqlua { folder .. "/script.lua", "--out", folder .. "/made" }
    assert.equal(0, made.code, made.err)
    assert.equal("return 1e-3", process.read(folder .. "/made/sources/files/=root" .. far))
    local beside = process.write(folder .. "/beside.lua", 'return "beside"')
    local idiom = process.write(folder .. "/idiom.lua", process.read(folder .. "/script.lua"):gsub("dofile %b\"\"",
      'dofile(arg[0]:match "^.*/" .. "beside.lua") and 1e-3'))
    local first = process.cqlua { idiom, "--out", folder .. "/idiom" }
    assert.equal(0, first.code, first.err)
    os.remove(beside)
    os.remove(far)
    local moved = process.cqlua { folder .. "/idiom/script.lua", "--out", folder .. "/moved" }
    says(moved.out, "rate\t0.001")
    local copied = process.cqlua { folder .. "/made/script.lua", "--out", folder .. "/again" }
    says(copied.out, "rate\t0.001")
    process.write(far, "return 0.001")
    local changed = process.cqlua { folder .. "/script.lua", "--out", folder .. "/made", "--resume",
      "--iterations", "3" }
    says(changed.err, "far.lua was changed since iteration 2 of the run", [[line 1 was "return 1e-3" and is "return 0.001"]])
    local own = process.write(folder .. "/own.lua", "return y or 5")
    local asked = process.cqlua { process.write(folder .. "/asks.lua",
      ("print(coroutine.wrap(dofile)(%q), loadfile(%q, 't', { y = 8 })())"):format(own, own)) }
    says(asked.out, "5\t8")
    for _, text in ipairs { "return = 1", "error 'no rate'", "return nil, 1, 2" } do
      process.write(folder .. "/a.lua", text)
      process.write(folder .. "/b.lua", ([[print(select("#", dofile %q), loadfile %q)]]):format(folder .. "/a.lua",
        folder .. "/none.lua"))
      local found = process.cqlua { folder .. "/b.lua" }
      if text:find "nil" then
        says(found.out, "3\tnil\tcannot open " .. folder .. "/none.lua")
      else
        says(found.err, "a.lua:1: ")
      end
    end
  end)
end)

describe("cq.load", function()
  it("reads tables of tensors as ever", function()
    cq.save(folder .. "/w.bin", { w = cq.tensor { 1, 2 } })
    assert.same({ 1, 2 }, cq.load(folder .. "/w.bin").w:totable())
  end)

  it("says what is wrong with a folder or a file", function()
    says(sentence(cq.load, folder), "is none of a run with a best result: it lacks saved.bin; it is empty")
    process.write(folder .. "/notes.txt", "x")
    says(sentence(function() cq.load(folder) end), "it has notes.txt")
    -- as a learner leaves it that was killed
    os.remove(folder .. "/notes.txt")
    process.write(folder .. "/optimizer.bin", "x")
    says(sentence(cq.load, folder), "is none of a run with a best result: it lacks saved.bin; it has optimizer.bin")
    process.write(folder .. "/manifest.json", "{}")
    says(sentence(cq.load, folder), "has no result yet: its run has not ended, or was killed; the command of the run with "
      .. "--resume goes on with it")
    process.write(folder .. "/manifest.json", '{ "status": "finished" }')
    says(sentence(cq.load, folder), "is none of a run with a best result: it lacks saved.bin; it has manifest.json, ")
    os.remove(folder .. "/manifest.json")
    os.remove(folder .. "/optimizer.bin")
    says(sentence(function() cq.load(folder .. "/absent") end), "No such file")
    says(sentence(function() cq.load(3) end), "path must be a string")
    trained()
    local path = folder .. "/a/saved.bin"
    local bytes = process.read(path)
    process.write(path, bytes:sub(1, #bytes - 100))
    says(sentence(function() cq.load(folder .. "/a") end), "is cut short")
    process.write(path, "")
    says(sentence(function() cq.load(folder .. "/a") end), "is not a file of tensors")
    process.write(path, bytes)
    local data = T.load(path)
    data.version = 99
    T.save(path, data)
    says(sentence(function() cq.load(path) end), "has version 99, this program")
    says(sentence(function() cq.load(path) end), "reads up to version 4; take a newer program")
    data.version, data.parameters = 1, nil
    T.save(path, data)
    says(sentence(function() cq.load(path) end), "is damaged: parameters must be a table, got nil")
    -- files that another program has written
    process.write(path, bytes)
    local function of_another(change, problem)
      local other = T.load(path)
      change(other.robots[1], other)
      T.save(folder .. "/other.bin", other)
      says(sentence(function() return cq.load(folder .. "/other.bin").robot end), problem)
    end
    of_another(function(robot) robot.particle_count = "x" end, 'particle_count must be a whole number at least 1, got "x"')
    of_another(function(robot) robot.constants.position = 3 end, "position must be a tensor, got 3")
    of_another(function(robot) robot.law = T.zeros { 2 } end, "law must have ")
    of_another(function(robot) robot.indices[1].name = true end, "name must be a string, got true")
    of_another(function(robot) robot.stresses[1].scale = nil end, "scale must be a finite number, got nil")
    of_another(function(robot) robot.stresses[1].stress = {} end, "stress must be a list of at least 1")
    of_another(function(_, file) file.controller.signals = "x" end, "signals must be a list")
  end)

  it("reads files of earlier versions", function()
    local robot = scene.robot()
    local run = trained({ world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, precision = "float64",
      integrator = cq.Implicit { newton_iterations = 70 }, robot:at { 0.4, 0.2 } } }, robot)
    local path = folder .. "/a/saved.bin"
    local data = T.load(path)
    local world, integrator = data.world.fields, data.world.integrator
    data.version = 1
    world.volume_averaging, world.pressure_smoothing = world.pressure_smoothing, nil
    integrator.newton, integrator.newton_iterations = integrator.newton_iterations, nil
    for _, material in ipairs(data.robots[1].laws) do
      material.dilatation_averaging, material.f_bar = material.f_bar, nil
    end
    T.save(path, data)
    local saved = cq.load(path)
    assert.equal(70, saved.world.integrator.newton_iterations)
    assert.equal(run.best.loss, loss_of(saved))
    -- options without effect, which were no errors then
    integrator.stick_velocity, world.volume_averaging = 0.1, 2
    T.save(path, data)
    assert.equal(run.best.loss, loss_of(cq.load(path)))
    data.robots[1].laws = nil
    T.save(path, data)
    says(sentence(function() cq.load(path) end), "of version 1 is damaged: it lacks what that version has")
  end)

  it("gives worlds of older files the transfer and the formulation of their time, and keeps those that say theirs", function()
    local migrate = require "cq.saved.migrate"
    local old, own = { version = 3, world = { fields = { dx = 1 } } }, { version = 3, world = { fields = {
      transfer = { decay = 2 }, formulation = "total_lagrangian" } } }
    migrate.to(old, 3)
    migrate.to(own, 3)
    assert.same({ dx = 1, transfer = "apic", formulation = "updated" }, old.world.fields)
    assert.same({ transfer = { decay = 2 }, formulation = "total_lagrangian" }, own.world.fields)
  end)

  it("knows gradient.decay by its earlier name, in what was saved and in what goes on", function()
    local migrate = require "cq.saved.migrate"
    local data = { version = 2, stage = { options = { adjoint_decay = 0.4 },
      cut = { adjoint_decay = 2, sharpness = 1 } } }
    migrate.to(data, 3)
    assert.same({ options = { gradient_decay = 0.4 }, cut = { gradient_decay = 2, sharpness = 1 } }, data.stage)
    local manner = { adjoint_decay = "0.1", ["options.adjoint_decay"] = "0.4" }
    local state = { plan = { { name = "soft", ["options.adjoint_decay"] = "0.4" } }, starts = {
      { solver = { signature = { problem = {}, manner = manner } } }, { stage = 0 } } }
    migrate.training(state)
    assert.same({ { name = "soft", ["options.gradient_decay"] = "0.4" } }, state.plan)
    assert.same({ gradient = "decay 0.1", ["options.gradient_decay"] = "0.4" }, state.starts[1].solver.signature.manner)
    for _, other in ipairs { { plan = 3, starts = {} }, { plan = { 3 }, starts = { 4 } }, { evaluations = 1 } } do
      migrate.training(other)
    end
  end)

  it("refuses fields of a rollout that are no table", function()
    host.make_folder(folder .. "/kept")
    cq.save(folder .. "/kept/best.bin", { controller = { w1 = cq.param { 1 } } })
    for _, wrong in ipairs { 3, "steps", true } do
      says(sentence(function() cq.load(folder .. "/kept"):rollout(wrong) end), "saved:rollout: fields must be a table")
    end
  end)

  it("reads runs of programs that kept parameters alone, and of solves", function()
    host.make_folder(folder .. "/old")
    cq.save(folder .. "/old/best.bin", { controller = { w1 = cq.param { 1 } } })
    local saved = cq.load(folder .. "/old")
    assert.same({ 1 }, saved.parameters.controller.w1:totable())
    says(sentence(function() return saved.robot end), "has parameters alone; it was made by a program that kept no more")
    local params = { x = cq.param { 1, 2 } }
    cq.Optimizer.nlopt { algorithm = "lbfgs" }:solve(params, function(p) return p.x:square():sum() end,
      { iterations = 9, folder = folder .. "/solve" })
    saved = cq.load(folder .. "/solve")
    assert.is_true(saved.parameters.x:equal(params.x))
    says(sentence(function() return saved.controller end), "made by an optimizer without an experiment")
  end)
end)
