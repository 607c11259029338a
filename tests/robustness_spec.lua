-- robustness: what a run keeps in simulations that are a little different, each beside the same one made by hand.
local cq = require "cq"
local block_design = require "tests.block_design"
local host = require "cq.host"
local json = require "cq.base.json"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"

local STEPS, GRAVITY = 30, { 0.3, -4 }

-- gravity is that of tests/scene.lua, and pulls along x
local function way(state, start) return start:center("trunk")[1] - state:center("trunk")[1] end

local function policy() return cq.Controller.sines { seed = 2 } end

local function experiment(robot, options)
  local world = scene.world(robot, options)
  return cq.Experiment { world = world, steps = STEPS, controller = policy(), objective = way,
    optimizer = cq.Optimizer.adam { rate = 0.05 } }
end

local function loss_of(robot, options) return experiment(robot, options):evaluate().loss end

describe("cq.robustness", function()
  local run, report
  local function row(name, size)
    for _, r in ipairs(report.rows) do
      if r.name == name and math.abs(r.size - size) < 1e-12 then return r end
    end
    error("no row " .. name)
  end
  local function near(expected, name, size)
    local r = row(name, size)
    assert.is_true(math.abs(r.loss - expected) <= 1e-12 * math.max(1, math.abs(expected)), ("%s: %.17g, expected %.17g")
      :format(name, r.loss, expected))
    assert.is_true(r.loss ~= report.loss, name)
  end

  setup(function()
    run = experiment(scene.robot())
    report = cq.robustness(run, { draws = 6, seed = 3 })
  end)

  it("takes costs of signals that read those of all control steps, of which a robot at its start has none", function()
    local def = { world = run.world, steps = STEPS, controller = policy(), objective = { terminal = function(state)
      return -state:center("trunk")[1]
    end, effort = function(u) return 0.01 * (u:slice(2, STEPS) - u:slice(1, STEPS - 1)):square():mean() end } }
    local found = cq.robustness(cq.Experiment(def), { draws = 2, seed = 3 })
    assert.equal(0, found.failed)
    assert.equal(cq.Experiment(def):evaluate { steps = 0 }.loss, found.baseline)
  end)

  it("writes all numbers into the folder of its run", function()
    run.folder = process.folder()
    local path = report:save "kept.json"
    assert.equal(run.folder .. "/kept.json", path)
    local found = json.decode(process.read(path))
    assert.equal(report.loss, found.loss)
    assert.is_nil(found.run)
    process.remove(run.folder)
    run.folder = nil
  end)

  it("tells the gain of a run, and each loss as a share of it", function()
    assert.equal(run:evaluate().loss, report.loss)
    assert.equal(0, report.baseline)
    assert.equal("start", report.baseline_of)
    assert.equal(0, report.failed)
    assert.equal(27, #report.rows)
    for _, r in ipairs(report.rows) do assert.is_true(math.abs(r.kept - r.loss / report.loss) < 1e-12) end
  end)

  it("changes the stiffness and the density of every material", function()
    for _, size in ipairs { -0.1, 0.05 } do
      local f = 1 + size
      near(loss_of(scene.robot { material = {
        foot = cq.Material.neo_hookean { young = 10 * f, poisson = 0.3, density = 1 },
        trunk = cq.Material.corotated { young = 8 * f, poisson = 0.2, density = 1.5, incompressible = 2 },
      } }), "stiffness", size)
      near(loss_of(scene.robot { material = {
        foot = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = f },
        trunk = cq.Material.corotated { young = 8, poisson = 0.2, density = 1.5 * f, incompressible = 2 },
      } }), "density", size)
    end
  end)

  it("changes friction and gravity", function()
    near(run:evaluate({ friction = 0.4 * 0.95 }).loss, "friction", -0.05)
    near(run:evaluate({ gravity = { 1.1 * GRAVITY[1], 1.1 * GRAVITY[2] } }).loss, "gravity", 0.1)
  end)

  it("changes gravity that is a function of time, and that of scenes", function()
    local function tilting(factor)
      return function(time) return { factor * (0.3 + 4 * time), factor * -4 } end
    end
    local function of(gravity)
      local robot = scene.robot()
      local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, precision = "float64",
        gravity = gravity, walls = cq.Boundary.box { kind = "friction", mu = 0.4 }, robot:at { 0.4, 0.127 } }
      return cq.Experiment { world = world, steps = STEPS, controller = policy(), objective = way }
    end
    local expected = of(tilting(1.1)):evaluate().loss
    report = cq.robustness(of(tilting(1)), { draws = 0 })
    near(expected, "gravity", 0.1)
    local function of_scenes(factor)
      return cq.Experiment { world = of(nil).world, steps = STEPS, controller = policy(), objective = way,
        scenes = { count = 2, each = function(k) return { gravity = { factor * 0.3 * k, factor * -4 } } end } }
    end
    expected = of_scenes(0.9):evaluate().loss
    report = cq.robustness(of_scenes(1), { draws = 0 })
    near(expected, "gravity", -0.1)
    report = cq.robustness(run, { draws = 6, seed = 3 })
  end)

  it("changes what reaches the actuators: strength, latency, noise", function()
    local own = policy()
    own:prepare(run.world, nil, run.robot)
    local function driven(act)
      local last = run.world:rollout { steps = STEPS, controller = act }
      return way(last.state, last:start()):item()
    end
    local at = run.world.control_dt
    local function signals(time) return (own:act(nil, nil, time, 1)) end
    near(driven(function(_, _, time) return signals(time) * 1.1 end), "strength", 0.1)
    near(driven(function(_, _, time) return time < at / 2 and cq.zeros { 2 } or signals(time - at) end), "latency", 1)
    assert.is_true(row("noise", 0.05).loss ~= report.loss)
  end)

  it("changes substeps, precision and place", function()
    near(loss_of(scene.robot(), { substeps = 12 }), "substeps", 4)
    near(loss_of(scene.robot(), { precision = "float32" }), "precision", 1)
    local robot = scene.robot()
    local moved = robot:with { position = robot:at({ 0.4 + 0.5 / 24, 0.127 }).position }
    local world = scene.world(robot)
    local roll = world:rollout { robot = moved, steps = STEPS, controller = policy() }
    near(way(roll.state, roll:start()):item(), "place", 0.5)
  end)

  it("changes the grid of an experiment that is made by a function", function()
    local function problem(level)
      local robot = scene.robot()
      local world = cq.World { cells = { 24 / level.coarsen, 24 / level.coarsen }, dx = level.coarsen / 24, dt = 6e-3,
        substeps = 5, gravity = GRAVITY, precision = "float64",
        walls = cq.Boundary.floor { at = 3 / 24, kind = "friction", mu = 0.4 }, robot:at { 0.4, 0.127 } }
      return { world = world, steps = STEPS, controller = policy(), objective = way }
    end
    report = cq.robustness(cq.Experiment(problem), { draws = 0 })
    near(cq.Experiment(problem { coarsen = 0.8 }):evaluate().loss, "grid", 0.8)
    assert.same({}, report.missing)
    report = cq.robustness(run, { draws = 6, seed = 3 })
  end)

  it("changes the grid of a design whose pulses come again, with the control steps", function()
    local function problem(level)
      local k = level.coarsen
      local block = cq.Robot { shape = cq.Shape.box { size = { 0.16, 0.16 }, spacing = 0.02 * k },
        material = block_design.material, actuators = cq.Actuator.isotropic { count = 2, max = 1e4 } }
      local world = cq.World { cells = { 20 / k, 20 / k }, dx = 0.04 * k, gravity = { 0, -9.8 }, dt = 1e-3 * k,
        substeps = 5, walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 },
        block:at { 0.2, 0.12 } }
      local function fallen(state, start) return state:center(block)[2] - start:center(block)[2] end
      return { world = world, duration = 0.024, objective = fallen,
        design = cq.Topology { world = world, duration = 0.024, pulses = { period = 0.012 } } }
    end
    local falling = cq.Experiment(problem)
    assert.same({ 6, 2e-3 }, { falling.design.pulses.count, falling.design.pulses.interval })
    -- two control steps go into the duration, and 7.5 times into the period
    local found = cq.robustness(falling, { draws = 0 })
    local finer = cq.Experiment(problem { coarsen = 0.8 })
    assert.same({ 15, 8e-4 }, { finer.design.pulses.count, finer.design.pulses.interval })
    finer.params.design = finer.design:transfer(falling.design, falling.params.design)
    local kept = 0
    for _, r in ipairs(found.rows) do
      if r.name == "grid" then kept = r.loss end
    end
    assert.equal(finer:evaluate().loss, kept)
    assert.equal(0, found.failed)
  end)

  it("changes the grid of a design in the state of its stage: its body, its options, what was extracted", function()
    local function problem(level)
      local k = level.coarsen
      local block = cq.Robot { shape = cq.Shape.box { size = { 0.16, 0.16 }, spacing = 0.02 * k },
        material = block_design.material, actuators = cq.Actuator.isotropic { count = 2, max = 1e4 } }
      local world = cq.World { cells = { 20 / k, 20 / k }, dx = 0.04 * k, gravity = { 0, -9.8 }, dt = 2e-3 * k,
        substeps = 10, precision = "float64", walls = cq.Boundary.box { mu = 0.5, inset = 0.08 * k },
        block:at { 0.2, 0.08 * k } }
      local function way_of(state, start) return start:center(block)[1] - state:center(block)[1] end
      return { world = world, duration = 0.08, objective = way_of, optimizer = cq.Optimizer.adam { rate = 0.02 },
        design = cq.Topology { world = world, duration = 0.08, seed = 4 } }
    end
    local changes = require "cq.robustness.changes"
    local folder = scratch.open()
    for _, body in ipairs { "soft", "binary", "extracted" } do
      local own = cq.Experiment(problem)
      local p = own.params.design
      local random = cq.random { seed = 3 }
      p.density:copy_from((random:uniform { 64 } * 2 - 0.5):clamp(-1, 1))
      p.layout:copy_from(random:normal { 3, 64 })
      own:optimize { iterations = 0, body = body, options = { sharpness = 8, friction = 0.2 },
        folder = folder .. "/" .. body }
      local there = cq.Experiment(problem { coarsen = 0.8 })
      local variables = there.design:transfer(own.own_design, p)
      there.design = there.design:with { material = { sharpness = 8 }, rounding = body == "binary" and "all" or nil,
        remove_void = body == "binary" or nil }
      local extracted = body == "extracted" and there.design:extract(variables) or nil
      local wanted = there:evaluate { params = { design = variables }, friction = 0.2, body = extracted }.loss
      local finer, params, given = changes.of(own, own.params, { grid = 0.8 })
      assert.equal(wanted, finer:loss(finer:rollout(params, given)):item())
      assert.is_true(there:evaluate { params = { design = variables }, body = extracted }.loss ~= wanted)
    end
    scratch.close()
  end)

  it("samples the bodies of an experiment that is made of a table anew", function()
    local finer = run.world:refined(0.8)
    assert.equal("cells x0.75", row("grid", 0.8).change)           -- the ground stays on a node
    assert.is_true(math.abs(finer.dx - 0.75 / 24) < 1e-15)
    assert.equal(4, finer.substeps)
    near(run:evaluate({ world = finer }).loss, "grid", 0.8)
    assert.is_true(finer.particle_count > 1.5 * run.world.particle_count)
    assert.equal(finer, run.world:refined(0.8))
  end)

  it("compares a sum over time with the same body without signals", function()
    local function with(controller)
      return cq.Experiment { world = run.world, steps = STEPS, controller = controller, objective = {
        running = function(state) return -state:velocity("trunk")[1] + 0.5 end,
      } }
    end
    local own = with(policy())
    local found = cq.robustness(own, { draws = 2 })
    local still = with(function() return cq.zeros { 2 } end):evaluate().loss
    assert.equal("no signals", found.baseline_of)
    assert.is_true(math.abs(found.baseline - still) < 1e-12)
    mistake.says(tostring(found), "without signals; kept of that gain")
    local heavy = {}
    for _, r in ipairs(found.rows) do
      if r.name == "gravity" and r.size == 0.1 then heavy = r end
    end
    local changed = { gravity = { 1.1 * GRAVITY[1], 1.1 * GRAVITY[2] } }
    local gain = with(function() return cq.zeros { 2 } end):evaluate(changed).loss - own:evaluate(changed).loss
    assert.is_true(math.abs(heavy.kept - gain / (still - own:evaluate().loss)) < 1e-9)
    -- the sum at its start would be 0, and nothing gained
    assert.is_true(own:evaluate().loss > 0)
  end)

  it("gives what each simulation gives alone", function()
    local batched, singles = {}, {}
    local together = require "cq.experiment.together"
    local groups = together.groups
    local largest = 0
    local function count(defs)
      local out = groups(defs)
      for _, group in ipairs(out) do largest = math.max(largest, #group) end
      return out
    end
    local function alone(defs)
      local out = {}
      for k = 1, #defs do out[k] = { k } end
      return out
    end
    local sees = cq.Experiment { world = run.world, steps = STEPS,
      observer = { observe = function(_, state, before)
        local x = state:center "trunk"
        return cq.concat { x, before or x }, x
      end },
      controller = cq.Controller.mlp { hidden = { 8 }, seed = 3 },
      objective = { terminal = way, running = function(state, u) return 1e-3 * u:square():sum() - state:energy() end,
        effort = function(u) return 1e-3 * u:square():sum() end } }
    for list, way_of in pairs { [batched] = count, [singles] = alone } do
      together.groups = way_of
      local fine, found = pcall(cq.robustness, sees, { draws = 4, seed = 2 })
      together.groups = groups
      assert.is_true(fine, found)
      for _, rows in ipairs { found.rows, found.draws } do
        for _, r in ipairs(rows) do list[#list + 1] = r.loss end
      end
    end
    assert.is_true(largest > 20)
    assert.equal(31, #batched)
    for k, loss in ipairs(batched) do assert.is_true(math.abs(loss - singles[k]) <= 1e-12 * math.abs(loss), k) end
  end)

  it("changes all robots of a world", function()
    local robot = scene.robot()
    local function pair(factor)
      local box = cq.Robot { name = "box", shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 1 / 48 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = factor } }
      local own = scene.robot { material = {
        foot = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = factor },
        trunk = cq.Material.corotated { young = 8, poisson = 0.2, density = 1.5 * factor, incompressible = 2 },
      } }
      return cq.Experiment { steps = STEPS, controller = policy(), objective = way,
        world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, gravity = GRAVITY,
          precision = "float64", walls = cq.Boundary.box { kind = "friction", mu = 0.4 },
          (factor and own or robot):at { 0.4, 0.127 }, box:at { 0.55 + 0.1, 0.135 } } }
    end
    report = cq.robustness(pair(1), { draws = 0 })
    near(pair(1.1):evaluate().loss, "density", 0.1)
    assert.is_nil(row("place", 0.5).problem)
    report = cq.robustness(run, { draws = 6, seed = 3 })
  end)

  it("draws all at once, within bounds, and the same for the same seed", function()
    local again, other = cq.robustness(run, { draws = 6, seed = 3 }), cq.robustness(run, { draws = 6, seed = 4 })
    assert.same(report.draws, again.draws)
    assert.is_true(report.draws[1].loss ~= other.draws[1].loss)
    local kept = {}
    for k, draw in ipairs(report.draws) do
      for _, name in ipairs { "stiffness", "density", "friction", "strength", "gravity" } do
        assert.is_true(math.abs(draw.change[name]) <= 0.1)
      end
      assert.is_true(draw.change.grid == nil or draw.change.grid == 0.8)
      kept[k] = draw.kept
    end
    table.sort(kept)
    assert.equal(kept[1], report.worst)
    assert.equal((kept[3] + kept[4]) / 2, report.median)
  end)

  it("leaves the run as it was", function()
    local roll = run:evaluate().rollout
    local before = roll.state:center("trunk")[1]:item()
    cq.robustness(run, { draws = 2 })
    assert.equal(before, roll.state:center("trunk")[1]:item())
    assert.equal(report.loss, run:evaluate().loss)
    assert.equal(3, run.world.substeps)
  end)

  it("counts what the simulation cannot do, and goes on", function()
    local robot = scene.robot()
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 0.0102, substeps = 1, gravity = GRAVITY,
      walls = cq.Boundary.floor { at = 3 / 24, kind = "friction", mu = 0.4 }, robot:at { 0.4, 0.127 } }
    assert.is_true(world.courant > 0.96)
    local found = cq.robustness(cq.Experiment { world = world, steps = STEPS, objective = way }, { draws = 20 })
    local failed = 0
    for _, list in ipairs { found.rows, found.draws } do
      for _, r in ipairs(list) do
        if r.problem then
          failed = failed + 1
          mistake.says(r.problem, "the Courant number of the robot's values is")
          assert.is_nil(r.kept)
        end
      end
    end
    assert.equal(failed, found.failed)
    mistake.says(tostring(found), "+5 %: ")
    mistake.says(tostring(found), "+10 %: failed")
    mistake.says(tostring(found), "stiffness +10 % failed: ")
    mistake.says(tostring(found), "latency    not measured: the robot has no controller")
  end)

  it("counts what the script cannot do: a body moved into a wall, a grid of parts of a cell", function()
    local function problem(level)
      local n = 25 / level.coarsen
      local robot = scene.robot()
      return { steps = STEPS, controller = policy(), objective = way,
        world = cq.World { cells = { n, n }, dx = level.coarsen / 24, dt = 6e-3, substeps = 5, gravity = { 1, -4 },
          walls = cq.Boundary.box { kind = "friction", mu = 0.4 }, robot:at { 0.81, 0.127 } } }
    end
    local found = cq.robustness(cq.Experiment(problem), { draws = 6 })
    local failed = {}
    for _, r in ipairs(found.rows) do
      if r.problem then failed[r.name] = r.problem end
    end
    mistake.says(failed.place, "world:rollout: robot overlaps wall 1 (box)")
    assert.is_nil(failed.place:find "_spec.lua")
    mistake.says(failed.grid, "whole numbers")
    local count = 2
    for _, draw in ipairs(found.draws) do
      assert.equal(draw.kept == nil, draw.problem ~= nil)
      count = count + (draw.problem and 1 or 0)
    end
    assert.equal(count, found.failed)
    assert.equal(6, #found.draws)
    assert.is_true(count > 2)
    mistake.says(tostring(found), (" of 6 draws, of which %d failed"):format(count - 2))
    for k, draw in ipairs(found.draws) do
      if draw.problem then mistake.says(tostring(found), ("draw %d failed: %s"):format(k, draw.problem)) end
    end
    assert.equal(27, #found.rows)
  end)

  it("says what is wrong", function()
    local function says(f, ...)
      local sentence = mistake.of(f)
      for _, part in ipairs { ... } do mistake.says(sentence, part) end
    end
    says(function() cq.robustness(run.world) end, "run must be", "cq.Experiment")
    says(function() cq.robustness(run, { draw = 3 }) end, "draws")
    says(function() cq.robustness(run, { draws = -1 }) end, "at least 0")
    local idle = cq.Experiment { world = run.world, steps = STEPS, objective = function(s, start)
      return -way(s, start)
    end }
    says(function() cq.robustness(idle) end, "has gained nothing that could be kept: its loss is")
  end)
end)

describe("cqlua robust", function()
  local folder
  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  it("measures a run by its folder, without training it again", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 3 }
]])
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/run", "--keep", "2" }).code)
    local found = process.cqlua { "robust", folder .. "/run", "--draws", "3" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, "kept of that gain")
    mistake.says(found.out, "together   median")
    mistake.says(found.out, "of 3 draws")
    assert.is_nil(found.err:find("warning", 1, true), found.err)
    assert.equal(3, #json.decode(process.read(folder .. "/run/robustness.json")).draws)
    assert.equal(4, select(2, process.read(folder .. "/run/history.csv"):gsub("\n", "")))
    found = process.cqlua { "robust", "runner", "--draws", "1" , "--out", folder .. "/zoo" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, "0 at the start; kept of that gain")
    mistake.says(found.out, "grid       cells x0.")
    assert.equal("file", host.kind(folder .. "/zoo/robustness.json"))
    found = process.cqlua { "robust", "zoo/runer" }
    mistake.says(found.err, 'the zoo has no "runer" (did you mean runner?)')
    found = process.cqlua { "robust", folder .. "/none" }
    mistake.says(found.err, 'none", and there is no such folder; the zoo has biped')
    found = process.cqlua { "robust", folder .. "/run/saved.bin" }
    mistake.says(found.err, "saved.bin is a file, which has no objective; give the folder of a run")
    found = process.cqlua { "robust", folder }
    assert.equal(1, found.code)
    mistake.says(found.err, "cqlua robust: " .. folder)
    assert.equal(2, process.cqlua({ "robust" }).code)
  end)

  it("refuses a script that was changed and has another loss, and tells of one that has the same", function()
    local text = [[
package.path = "./?.lua;" .. package.path
local cq, scene, part = require "cq", require "tests.scene", require "part"
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = 2 }, objective = part.way, optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 3 }
]]
    local part = 'return { way = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end }\n'
    local at, out = folder .. "/script.lua", folder .. "/run"
    process.write(folder .. "/part.lua", part)
    assert.equal(0, process.cqlua({ process.write(at, text), "--out", out }).code)
    local function robust() return process.cqlua { "robust", out, "--draws", "0" } end
    assert.equal(0, robust().code)
    local kept = process.read(out .. "/robustness.json")
    process.write(at, text:gsub("steps = 10", "steps = 8"))
    local found = robust()
    assert.equal(1, found.code)
    mistake.says(found.err, "cqlua robust: the script was changed since the run in " .. out .. ": line 3 was ",
      ("; the loss of its best was %.4g and is "):format(cq.load(out).result.loss), out .. "/script.lua has the text")
    process.write(at, text)
    process.write(folder .. "/part.lua", (part:gsub("return start", "return 3 * start")))
    found = robust()
    assert.equal(1, found.code)
    mistake.says(found.err, "part.lua was changed since the run in " .. out .. ": line 1 was ")
    process.write(folder .. "/part.lua", part)
    process.write(at, text .. "-- a remark\n")
    found = robust()
    assert.equal(0, found.code, found.err)
    mistake.says(found.err, 'line 6 was "" and is "-- a remark"; the loss of its best is the same')
    assert.equal(kept, process.read(out .. "/robustness.json"))
    process.write(at, text)
    found = process.cqlua { "robust", out, "--draws", "0" }
    assert.is_nil(found.err:find("changed", 1, true), found.err)
  end)

  it("tells that the best has another loss where the script was not changed", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local factor = tonumber(io.open((arg[0]:gsub("script.lua", "factor"))):read "*a")
cq.Experiment { world = scene.world(scene.robot()), steps = 10, controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return factor * (start:center("trunk")[1] - s:center("trunk")[1]) end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }:optimize { iterations = 3 }
]])
    process.write(folder .. "/factor", "1")
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/run" }).code)
    process.write(folder .. "/factor", "2")
    local found = process.cqlua { "robust", folder .. "/run", "--draws", "0" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.err, "the loss of the best of " .. folder .. "/run was ", " when its script is run again")
  end)

  it("trains no learner again, and leaves the folders of other runs where they are", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local robot = scene.robot()
local world = scene.world(robot)
local run = cq.Experiment { world = world, steps = 10, controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 2, name = "gait" }
local env = cq.Env { world = world, scenes = 2, steps = 4, observer = cq.Observer.centroid { groups = { "trunk" } },
  reward = function(s, _, n) return (n:center(robot) - s:center(robot)):slice(1, 1, -1):flatten() end }
local learner = cq.Learner.ppo { env = env, steps = 32, batch = 8, minibatches = 2, hidden = { 4 }, seed = 1 }
local history = learner:train { folder = run.folder:gsub("gait$", "learner"),
  on_update = function() print "trains" end }
print("updates", #history)
cq.Run.open({ folder = run.folder:gsub("gait$", "loop"), iterations = 1 }):record { loss = 1 }
]])
    local made = process.cqlua { folder .. "/script.lua", "--out", folder .. "/run" }
    assert.equal(0, made.code, made.err)
    local before = process.read(folder .. "/run/learner/params.bin")
    local found = process.cqlua { "robust", folder .. "/run/gait", "--draws", "1" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, made.out:match "updates%s+%d+")
    mistake.says(made.out, "trains")
    assert.is_nil(found.out:find("trains", 1, true))
    assert.is_nil(host.kind(folder .. "/run/loop-earlier-1"))
    assert.equal(before, process.read(folder .. "/run/learner/params.bin"))
    assert.is_nil(host.kind(folder .. "/run/learner-earlier-1"))
    found = process.cqlua { "robust", folder .. "/run/learner", "--draws", "1" }
    assert.equal(1, found.code)
    assert.equal(before, process.read(folder .. "/run/learner/params.bin"))
    found = process.cqlua { "resume", folder .. "/run/learner", "--set", "optimizer.rate=x0.5", "--as", folder .. "/x" }
    mistake.says(found.err, "--set is for runs of run:optimize")
  end)

  it("measures one of several runs of a script", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
for _, name in ipairs { "slow", "quick" } do
  local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
    controller = cq.Controller.sines { seed = 2 },
    objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
    optimizer = cq.Optimizer.adam { rate = name == "slow" and 0.01 or 0.05 } }
  run:optimize { iterations = 3, name = name }
end
]])
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/runs" }).code)
    local loss = {}
    for k, name in ipairs { "slow", "quick" } do
      local found = process.cqlua { "robust", folder .. "/runs/" .. name, "--draws", "0" }
      assert.equal(0, found.code, found.err)
      loss[k] = json.decode(process.read(folder .. "/runs/" .. name .. "/robustness.json")).loss
      assert.near(cq.load(folder .. "/runs/" .. name).result.loss, loss[k], 1e-12)
    end
    assert(loss[1] ~= loss[2])
    os.rename(folder .. "/runs/slow", folder .. "/runs/other")
    local found = process.cqlua { "robust", folder .. "/runs/other" }
    assert.equal(1, found.code)
    mistake.says(found.err, 'has the name "slow", by which its script finds it')
  end)
end)
