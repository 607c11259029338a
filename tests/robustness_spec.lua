-- robustness: what a run keeps in simulations that are a little different, each beside the same one made by hand.
local cq = require "cq"
local block_design = require "tests.block_design"
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
      if r.name == "grid" then
        kept = r.loss
        assert.equal("cells x0.8, by its level", r.change)
      end
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
    assert.equal("cells x0.75, sampled anew", row("grid", 0.8).change)           -- the ground stays on a node
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
    local heavy, short = {}, nil
    for _, r in ipairs(found.rows) do
      if r.name == "substeps" and r.size == 2 then short = ("x2: %.0f %% (%.4g)"):format(100 * r.kept, r.loss) end
      if r.name == "gravity" and r.size == 0.1 then heavy = r end
    end
    mistake.says(tostring(found), "without signals; kept of that gain (and the loss)", short)
    local changed = { gravity = { 1.1 * GRAVITY[1], 1.1 * GRAVITY[2] } }
    local gain = with(function() return cq.zeros { 2 } end):evaluate(changed).loss - own:evaluate(changed).loss
    assert.is_true(math.abs(heavy.kept - gain / (still - own:evaluate().loss)) < 1e-9)
    -- the sum at its start would be 0, and nothing gained
    assert.is_true(own:evaluate().loss > 0)
  end)

  it("tells losses with the digits that tell that of the run from its baseline", function()
    local function gain(offset)
      local own = cq.Experiment { world = run.world, steps = STEPS, controller = policy(), objective = {
        running = function(state) return offset - state:velocity("trunk")[1] / STEPS end,
      } }
      local found = cq.robustness(own, { draws = 0 })
      return found, tostring(found):match "substeps   x2: %-?%d+ %% %((.-)%)"
    end
    local found, few = gain(0)
    assert.is_true(math.abs(found.loss) < 1)
    assert.equal(("%.3g"):format(few), few)
    local _, many = gain(1e3 / STEPS)
    assert.is_true(#many > #"1000" and tonumber(many) ~= 1000, many)
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

  it("counts a body moved into a wall, and measures no grid of parts of a cell", function()
    local function problem(level)
      local n = 25 / level.coarsen
      local robot = scene.robot()
      return { steps = STEPS, controller = policy(), objective = way,
        world = cq.World { cells = { n, n }, dx = level.coarsen / 24, dt = 6e-3, substeps = 5, gravity = { 1, -4 },
          walls = cq.Boundary.box { kind = "friction", mu = 0.4 }, robot:at { 0.82, 0.127 } } }
    end
    local found = cq.robustness(cq.Experiment(problem), { draws = 6 })
    local failed = {}
    for _, r in ipairs(found.rows) do
      if r.problem then failed[r.name] = r.problem end
    end
    mistake.says(failed.place, "world:rollout: robot overlaps wall 1 (box)")
    assert.is_nil(failed.place:find "_spec.lua")
    assert.is_nil(failed.grid)
    local why
    for _, entry in ipairs(found.missing) do why = entry.name == "grid" and entry.why or why end
    mistake.says(why, "cells must be", "whole numbers")
    local count = 1
    for _, draw in ipairs(found.draws) do
      assert.equal(draw.kept == nil, draw.problem ~= nil)
      assert.is_nil(draw.change.grid)
      count = count + (draw.problem and 1 or 0)
    end
    assert.equal(count, found.failed)
    assert.equal(6, #found.draws)
    assert.is_true(count > 1)
    mistake.says(tostring(found), (" of %d draws; %d more failed"):format(7 - count, count - 1),
      "grid       not measured: ")
    for k, draw in ipairs(found.draws) do
      if draw.problem then mistake.says(tostring(found), ("draw %d failed: %s"):format(k, draw.problem)) end
    end
    assert.equal(26, #found.rows)
  end)

  it("counts a loss that is not finite as failed", function()
    local function of(objective)
      return cq.Experiment { world = run.world, steps = STEPS, controller = policy(), objective = objective }
    end
    local usual = way(run:evaluate().rollout.state, run:evaluate { steps = 0 }.rollout.state):item()
    -- nan where the robot goes less far than in its own simulation
    local found = cq.robustness(of(function(state, start)
      local loss = way(state, start)
      return loss:item() > 0.999 * usual and loss:item() ~= 0 and loss * (0 / 0) or loss
    end), { draws = 8 })
    local failed, kept = 0, {}
    for _, list in ipairs { found.rows, found.draws } do
      for _, r in ipairs(list) do
        if r.problem then
          failed = failed + 1
          assert.equal("the loss is nan", r.problem)
          assert.is_nil(r.loss or r.kept)
        elseif list == found.draws then
          kept[#kept + 1] = r.kept
        end
      end
    end
    assert.is_true(failed > 3 and #kept > 0 and #kept < 8, failed)
    assert.equal(failed, found.failed)
    table.sort(kept)
    assert.equal(kept[1], found.worst)
    assert.is_nil(tostring(found):find("nan %", 1, true), tostring(found))
    mistake.refuses(function() cq.robustness(of(function(state, start) return way(state, start) * (0 / 0) end)) end,
      "cq.robustness: the loss is nan")
    mistake.refuses(function() cq.robustness(of(function(state, start) return 1 / way(state, start):abs() end)) end,
      "cq.robustness: the loss at the start is inf")
    local scenes = { count = 2, each = function() return {} end }
    mistake.refuses(function()
      cq.robustness(cq.Experiment { world = run.world, steps = STEPS, controller = policy(), scenes = scenes,
        objective = { running = function(state) return state:center("trunk")[1] * math.huge end } })
    end, "cq.robustness: the loss is inf")
  end)

  it("frees each batch, also where an objective errs", function()
    local together = require "cq.experiment.together"
    local rollouts, open = together.rollouts, 0
    function together.rollouts(group)
      local rolls, whole = rollouts(group)
      open = open + 1
      return rolls, setmetatable({ release = function()
        open = open - 1
        whole:release()
      end }, { __index = whole })
    end
    local calls = 0
    local fine, found = pcall(cq.robustness, cq.Experiment { world = run.world, steps = STEPS, controller = policy(),
      objective = function(state, start)
        calls = calls + 1
        if calls > 2 and way(state, start):item() > 0 then error "backwards" end
        return calls > 4 and calls < 8 and error "too late" or way(state, start)
      end }, { draws = 1 })
    together.rollouts = rollouts
    assert.is_true(fine, found)
    assert.is_true(found.failed > 0)
    assert.equal(0, open)
  end)

  it("looks for friction and gravity in all scenes", function()
    local function missing(each)
      local out = {}
      local found = cq.robustness(cq.Experiment { world = run.world, steps = STEPS, controller = policy(),
        objective = way, scenes = { count = 2, each = each } }, { draws = 0 })
      for _, entry in ipairs(found.missing) do out[#out + 1] = entry.name end
      return out
    end
    assert.same({}, missing(function(k)
      return { friction = 0.3 * (k - 1), gravity = { 0.3 * (k - 1), -4 * (k - 1) } }
    end))
    assert.same({ "friction" }, missing(function() return { friction = 0 } end))
  end)

  it("takes every seed of the program", function()
    local found = cq.robustness(run, { draws = 2, seed = 2 ^ 53 })
    assert.equal(0, found.failed)
    assert.is_true(found.draws[1].loss ~= found.draws[2].loss)
  end)

  it("has bars from the least to the most that is kept, and none where nothing was measured", function()
    local bars = require "cq.robustness.bars" { draws = { { kept = 1.1 }, {} }, median = 1.1,
      rows = { { name = "density", kept = 0.9 }, { name = "density" }, { name = "place" },
        { name = "grid", kept = 2 } } }
    assert.same({ { name = "grid", low = 200, high = 200, failed = false },
      { name = "density", low = 90, high = 90, failed = true }, { name = "place", failed = true },
      { name = "together", low = 100 * 1.1, high = 100 * 1.1, median = 100 * 1.1, failed = true } }, bars)
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
    local hardly = cq.Experiment { world = run.world, steps = STEPS, objective = { terminal = function(s, start)
      return 1e6 - way(s, start)
    end } }
    local loss, start = mistake.of(function() cq.robustness(hardly) end):match "its loss is (%S+) and that of its start (%S+)"
    assert.is_true(loss ~= nil and loss ~= start)
  end)
end)
