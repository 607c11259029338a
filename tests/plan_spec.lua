-- plan: a training as a list of stages: what it refuses, how it reads, and how it is carried out and gone on with.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local host = require "cq.host"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scratch = require "tests.scratch"

local function says(f, ...)
  local message = mistake.of(f)
  for _, part in ipairs { ... } do mistake.says(message, part) end
end

-- a block that is thrown, whose signals squeeze it; coarser by a level
local function block(level)
  local k = level.coarsen
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.02 * k },
    material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
    actuators = cq.Actuator.isotropic { count = 2, max = 1e4 },
  }
  local world = cq.World {
    cells = { 28 / k, 28 / k }, dx = 0.04 * k, gravity = { 0, -9.8 }, dt = 2e-3, substeps = 8, precision = "float64",
    threads = 1, walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 * k }, robot:at { 0.24,
      0.08 * k },
  }
  return {
    world = world, duration = 0.02, design = cq.Topology { world = world, duration = 0.02, connected = true,
      pulses = { interval = 4e-3 } },
    objective = function(state, start) return start:center(robot)[1] - state:center(robot)[1] end,
  }
end

local function adam(rate) return cq.Optimizer.adam { rate = rate or 0.05 } end

local function whole_plan(changes)
  local fields = {
    optimizer = adam(),
    { name = "coarse", iterations = 3, level = { coarsen = 2 } },
    { name = "soft", iterations = 2 },
    { name = "binary", iterations = 3, body = "binary",
      options = { rate = cq.Schedule.linear { from = 0.05, to = 0.01 }, clip = "median" } },
    { name = "pulses", iterations = 3, body = "extracted", initial = "undecided" },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Plan(fields)
end

-- values by path, to the last bit
local function bits(params)
  local out = {}
  for _, leaf in ipairs(T.leaves.list(params)) do out[leaf.path] = leaf.tensor:totable() end
  return out
end

describe("cq.Plan", function()
  it("reads like a methods section", function()
    local words = tostring(cq.Plan.topology {})
    mistake.says(words, "Plan topology: 650 iterations; 4 starts, 2 go on after binary.")
    mistake.says(words, "1. coarse gait: cells and steps twice as large, soft body, design.layout, design.pulses "
      .. "trained by Adam, rate 0.01, adjoint decay auto, 60 iterations.")
    mistake.says(words, "2. coarse soft: cells and steps twice as large, soft body, all trained by Adam, rate 0.01, "
      .. "adjoint decay auto, passive weight 1, 150 iterations.")
    mistake.says(words, "6. pulses: extracted body, design.pulses trained by Adam, rate 0.03 to 0.003 (linear), "
      .. "adjoint decay auto, clip median, from pulses just either side of rounding, 200 iterations.")
    words = tostring(cq.Plan { train = { "controller" }, stop = { stalled = 40 }, { name = "gait", iterations = 9,
      minimize = "violation", level = { duration = 2 }, initial = "best" } })
    assert.equal("Plan training: 9 iterations.\n1. gait: duration 2, controller trained by the experiment's optimizer, "
      .. "constraints alone, until they are kept, until 40 iterations lower the loss by less than 1 %, 9 iterations.",
        words)
  end)

  it("refuses what no stage has", function()
    local gait = { name = "gait", iterations = 9 }
    says(function() cq.Plan {} end, "cq.Plan: has no stage")
    says(function() cq.Plan { { iterations = 9 } } end, "cq.Plan: stage: name is missing")
    says(function() cq.Plan { { name = "a" } } end, "cq.Plan: stage: iterations is missing")
    says(function() cq.Plan { gait, gait } end, 'two stages are called "gait"')
    says(function() cq.Plan { { name = "a/b", iterations = 1 } } end, "letters, digits, spaces")
    says(function() cq.Plan { { name = "a", iterations = 1, bodi = "soft" } } end,
      "unknown field bodi (did you mean body?)")
    says(function() cq.Plan { { name = "a", iterations = 1, body = "hard" } } end, "body must be one of")
    says(function() cq.Plan { { name = "a", iterations = 1, options = { rates = 1 } } } end,
      'cq.Plan: stage "a": options has no "rates" (did you mean rate?)')
    says(function() cq.Plan { options = { weight = 1 }, gait } end, 'cq.Plan: options has no "weight"')
    says(function() cq.Plan { { name = "a", iterations = 1, options = { rate = "fast" } } } end, "options.rate must be")
    says(function() cq.Plan { { name = "a", iterations = 1, recover = { halvings = -1 } } } end,
      "halvings must be a whole number at least 0")
    says(function() cq.Plan { { name = "a", iterations = 1, stop = { stall = 4 } } } end, "unknown field stall")
    says(function() cq.Plan { { name = "a", iterations = 1, initial = "last" } } end, "this is the first")
    says(function() cq.Plan { starts = { count = 2, at = "gaits" }, gait } end,
      'starts.at: there is no stage "gaits" (did you mean gait?)')
    says(function() cq.Plan { starts = { count = 2, keep = 3 }, gait } end,
      "keep must be at most starts.count, 2, got 3")
    says(function() cq.Plan { starts = { count = 2, at = "a" }, { name = "a", iterations = 1, level = { coarsen = 2 } },
      gait } end, 'losses of stage "a" say nothing of those of the last one')
    says(function() cq.Plan { starts = { count = 2, at = "a" }, { name = "a", iterations = 1 },
      { name = "b", iterations = 1, body = "binary" } } end, 'losses of stage "a" say nothing')
  end)
end)

describe("cq.Schedule", function()
  it("goes from one end of a stage to the other", function()
    local line = cq.Schedule.linear { from = 1, to = 3 }
    assert.same({ 1, 2, 3, 1 }, { line:at(1, 5), line:at(3, 5), line:at(5, 5), line:at(1, 1) })
    local part = cq.Schedule.linear { from = { 0, 0 }, to = { 0, -8 }, begin = 0.25, finish = 0.75 }
    assert.same({ { 0, 0 }, { 0, -4 }, { 0, -8 } }, { part:at(2, 5), part:at(3, 5), part:at(4, 5) })
    assert.near(0.1, cq.Schedule.exponential({ from = 1, to = 0.01 }):at(2, 3), 1e-15)
    assert.near(0.5, cq.Schedule.cosine({ from = 1, to = 0 }):at(2, 3), 1e-15)
    local steps = cq.Schedule.steps { values = { 4, 8 } }
    assert.same({ 4, 4, 8, 8 }, { steps:at(1, 4), steps:at(2, 4), steps:at(3, 4), steps:at(4, 4) })
    assert.equal("in steps 4, 8", tostring(steps))
    assert.equal("{0, 0} to {0, -8} (linear from 0.25 to 0.75 of the stage)", tostring(part))
  end)

  it("refuses ends that do not belong together", function()
    says(function() cq.Schedule.linear { from = 1, to = { 1, 2 } } end, "must both be numbers, or lists of as many")
    says(function() cq.Schedule.exponential { from = 1, to = 0 } end, "of one sign and not 0, got 1 and 0")
    says(function() cq.Schedule.cosine { from = 1, to = 0, begin = 0.5, finish = 0.5 } end,
      "begin must be before finish")
    says(function() cq.Schedule.steps { values = {} } end, "values must be a list of at least 1")
  end)
end)

describe("run:optimize with a plan", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment() return cq.Experiment(block) end

  local function optimize(run, plan, name, more)
    local fields = { plan = plan, folder = folder .. "/" .. name, resume = false }
    for key, value in pairs(more or {}) do fields[key] = value end
    return run:optimize(fields)
  end

  it("makes its stages, in one history", function()
    local ended, run = {}, experiment()
    local result = optimize(run, whole_plan { on_end = function(own) ended[#ended + 1] = own.best.loss end }, "a")
    assert.equal(11, result.iterations)
    local rows, stages = cq.Run.read_history(folder .. "/a"), {}
    for k, row in ipairs(rows) do
      assert.equal(k, row.iteration)
      stages[k] = ("%s %d"):format(row.stage, row.stage_iteration)
    end
    assert.equal("coarse 1, coarse 2, coarse 3, soft 1, soft 2, binary 1, binary 2, binary 3, pulses 1, pulses 2, pulses 3",
      table.concat(stages, ", "))
    for k, rate in ipairs { 0.05, 0.03, 0.01 } do assert.near(rate, rows[5 + k].rate, 1e-15) end
    assert.is_nil(rows[9].rate)
    assert.equal(4, #ended)
    assert.equal(ended[4], run.best.loss)
    assert.equal(result.best, run:evaluate().loss)
    assert.equal(result.best, run:evaluate({ body = run.body }).loss)
    assert.equal(0.05, whole_plan().stages[1].optimizer.rate)
    for _, name in ipairs { "plan.json", "saved.bin", "stages/coarse/saved.bin", "stages/binary/state.bin" } do
      assert.equal("file", host.kind(folder .. "/a/" .. name), name)
    end
  end)

  -- a run that is interrupted after so many iterations of all, and gone on with
  local function in_parts(name, plan, at)
    local run, count = experiment(), 0
    optimize(run, plan(), name, { on_iteration = function()
      count = count + 1
      if count == at then C.cq_interrupt(1) end
    end })
    C.cq_interrupt(0)
    assert.equal(at, count)
    run = experiment()
    return run, optimize(run, plan(), name, { resume = true })
  end

  -- what a run has left in its folder, but for its sources
  local function files_of(path, within, out)
    out = out or {}
    for _, name in ipairs(host.entries(path)) do
      local inner = within and within .. "/" .. name or name
      if host.kind(path .. "/" .. name) == "folder" then
        if name ~= "sources" then files_of(path .. "/" .. name, inner, out) end
      else
        out[#out + 1] = inner
      end
    end
    table.sort(out)
    return out
  end

  it("goes on with equal bits wherever it was interrupted", function()
    local ended = {}
    local function plan() return whole_plan { on_end = function(run) ended[#ended + 1] = run.best.loss end } end
    local whole = experiment()
    optimize(whole, plan(), "whole")
    local history, files, ends = cq.Run.read_history(folder .. "/whole"), files_of(folder .. "/whole"), ended
    for at = 1, 11 do
      ended = {}
      local parts = in_parts("parts" .. at, plan, at)
      assert.same(ends, ended, at)
      assert.same(files, files_of(folder .. "/parts" .. at), at)
      assert.same(bits(whole.params), bits(parts.params), at)
      assert.same(bits(whole.best.params), bits(parts.best.params), at)
      assert.same({ whole.best.loss, whole.loss_last, whole.body.particles },
        { parts.best.loss, parts.loss_last, parts.body.particles }, at)
      local rows = cq.Run.read_history(folder .. "/parts" .. at)
      for k, row in ipairs(history) do
        row.seconds, rows[k].seconds = nil, nil
        assert.same(row, rows[k])
      end
    end
  end)

  it("ends a stage where its optimizer has converged, interrupted there or not", function()
    local function train(name, at, resume)
      local run, count = cq.Experiment(function(level)
        local def = block(level)
        def.constraints = { { name = "height", at_most = 1, terminal = function(state) return state:center()[2] end } }
        return def
      end), 0
      local lagrangian = cq.Optimizer.augmented_lagrangian { inner = adam(), inner_iterations = 2 }
      optimize(run, cq.Plan { optimizer = lagrangian, { name = "a", iterations = 5 }, { name = "b", iterations = 1 } },
        name, { resume = resume, on_iteration = function()
          count = count + 1
          if count == at then C.cq_interrupt(1) end
        end })
      C.cq_interrupt(0)
      local rows = {}
      for k, row in ipairs(cq.Run.read_history(folder .. "/" .. name)) do rows[k] = { row.stage, row.loss } end
      return rows
    end
    local whole = train "whole"
    assert.equal(3, #whole)
    assert.same({ whole[1], whole[2] }, train("parts", 2))
    assert.same(whole, train("parts", nil, true))
  end)

  it("refuses a stage that is made and was another, and takes others later", function()
    optimize(experiment(), whole_plan(), "a")
    local function go_on(changes)
      local run = experiment()
      return optimize(run, whole_plan(changes), "a", { resume = true }), run
    end
    says(function() go_on { [2] = { name = "soft", iterations = 4 } } end,
      'stage "soft" is made, and was another: iterations was 2 and is 4', 'from = "soft"')
    says(function() go_on { [3] = { name = "binary", iterations = 3, body = "binary" } } end,
      'stage "binary" is made', "options.clip was median and is none")
    says(function() go_on { [2] = { name = "softer", iterations = 2 } } end, 'stage 2 was "soft" and is "softer"')
    says(function() go_on { [4] = { name = "pulses", iterations = 4, body = "binary" } } end,
      "is of another problem: body was extracted and is binary")
    says(function() optimize(experiment(), whole_plan { starts = { count = 2, at = "binary" } }, "a",
      { resume = true }) end,
      "the plan had 1 start, and has 2")
    -- more of the last stage, and one after it
    local result, run = go_on { [4] = { name = "pulses", iterations = 5, body = "extracted", initial = "undecided" },
      [5] = { name = "more", iterations = 2, body = "extracted", initial = "last" } }
    assert.equal(15, result.iterations)
    assert.equal(2, run.made)
  end)

  it("repeats from a stage on", function()
    local run = experiment()
    optimize(run, whole_plan(), "a")
    local before = cq.Run.read_history(folder .. "/a")
    local again = experiment()
    local changed = whole_plan { [3] = { name = "binary", iterations = 1, body = "binary" } }
    optimize(again, changed, "a", { from = "binary" })
    local rows = cq.Run.read_history(folder .. "/a")
    assert.equal(9, #rows)
    assert.same({ before[5].loss, before[6].loss, 1, "pulses" }, { rows[5].loss, rows[6].loss, rows[6].stage_iteration,
      rows[7].stage })
    says(function() optimize(experiment(), whole_plan(), "a", { from = "hard" }) end, 'from: there is no stage "hard"')
    says(function() optimize(experiment(), whole_plan(), "a", { from = "coarse" }) end, '"coarse" is the first stage')
    says(function() optimize(experiment(), whole_plan(), "b", { from = "pulses" }) end,
      'has not made the stage "binary"')
  end)

  it("holds a tournament", function()
    local function plan() return whole_plan { starts = { count = 3, keep = 1, at = { "binary", 2 } } } end
    local whole = experiment()
    local result = optimize(whole, plan(), "whole")
    assert.equal(3 * 7 + 1 + 3, result.iterations)
    local least, rows = {}, cq.Run.read_history(folder .. "/whole")
    for _, row in ipairs(rows) do
      if row.stage == "binary" and row.stage_iteration <= 2 then
        least[row.start] = math.min(least[row.start] or math.huge, row.loss)
      end
    end
    local best = 1
    for k = 2, 3 do
      assert.is_true(least[k] ~= least[1])
      if least[k] < least[best] then best = k end
    end
    for k, row in ipairs(result.starts) do
      assert.same({ k, k == best }, { row.seed + 1, row.kept })
    end
    for k = 22, 25 do assert.equal(best, rows[k].start) end
    assert.equal(whole.best.loss, result.starts[best].loss)
    assert.equal(whole.best.loss, whole:evaluate().loss)
    for _, at in ipairs { 2, 3, 9, 16, 18, 20, 21, 22, 23 } do
      local parts, found = in_parts("parts" .. at, plan, at)
      assert.same({ whole.best.loss, bits(whole.best.params) }, { parts.best.loss, bits(parts.best.params) }, at)
      assert.same({ result.iterations, result.starts }, { found.iterations, found.starts }, at)
      assert.same(files_of(folder .. "/whole"), files_of(folder .. "/parts" .. at), at)
    end
    local fixed = block { coarsen = 1 }
    fixed.design, fixed.controller = nil, cq.Controller.open_loop { steps = 10 }
    fixed.robot = fixed.world.robot:with { actuation_weight = cq.ones { 100, 2 } }
    says(function() optimize(cq.Experiment(fixed), cq.Plan { optimizer = adam(), starts = { count = 2 },
      { name = "a", iterations = 1 } }, "b") end, "several starts need an experiment that is made by a function")
  end)

  it("trains what it is told to, and holds the rest", function()
    local run = experiment()
    local before = bits(run.params)
    optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 2, train = { "design.pulses" } } }, "a")
    local after = bits(run.params)
    for name, values in pairs(before) do
      local moves = name == "design.sign" or name == "design.magnitude"
      assert.equal(moves, not pcall(assert.same, values, after[name]), name)
    end
    says(function() optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 2,
      train = { "design.sing" } } },
      "b") end, 'stage "a": train: there is no "design.sing" (did you mean design.sign?); trainable are design.density')
    says(function() optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 2, body = "extracted",
      train = { "design.layout" } } }, "b") end, "design.layout cannot be trained, the body is extracted from it")
  end)

  it("refuses, before it begins, what the experiment has no use for", function()
    local plain = block { coarsen = 1 }
    plain.design, plain.controller, plain.optimizer = nil, cq.Controller.open_loop { steps = 10 }, adam()
    plain.robot = plain.world.robot:with { actuation_weight = cq.ones { 100, 2 } }
    local run = cq.Experiment(plain)
    local function refuses(stage, ...)
      stage.name, stage.iterations = "a", 1
      says(function() optimize(run, cq.Plan { stage }, "a") end, ...)
    end
    refuses({ body = "binary" }, 'stage "a": a binary body is that of a design, and the experiment has none')
    refuses({ initial = "undecided" }, "is of a design's pulses")
    refuses({ options = { sharpness = 8 } }, 'stage "a": options.sharpness needs an experiment with a design')
    refuses({ options = { penalty = 8 } }, "options.penalty is of cq.Optimizer.augmented_lagrangian")
    refuses({ options = { limits = { height = 1 } } }, 'options.limits: there is no constraint "height"')
    refuses({ minimize = "violation" }, 'minimize "violation" needs constraints')
    refuses({ level = { coarsen = 2 } }, "coarsen 2, needs an experiment that is made by a function")
    refuses({ optimizer = cq.Optimizer.nlopt { algorithm = "lbfgs" }, options = { rate = 1 } },
      "options.rate: cq.Optimizer.nlopt has none of its own")
    assert.is_nil(host.kind(folder .. "/a"))
    says(function() run:optimize { plan = whole_plan(), iterations = 3 } end,
      "give either plan or iterations, not both")
    says(function() run:optimize {} end, "give either plan or iterations")
    says(function() run:optimize { plan = whole_plan(), body = "soft" } end, "body is of a stage of the plan")
    says(function() cq.Experiment(function() return 3 end) end, "must give a table of fields", "got 3 for coarsen 1")
  end)

  it("makes a share of the iterations by --budget", function()
    local option, run = require "cq.option", experiment()
    option.set_given { budget = "0.4" }
    local result = optimize(run, whole_plan { starts = { count = 2, at = { "binary", 3 } },
      [2] = { name = "soft", iterations = 20, stop = { stalled = 10 } } }, "a")
    option.set_given {}
    local counts = {}
    for _, row in ipairs(cq.Run.read_history(folder .. "/a")) do
      counts[row.stage] = math.max(counts[row.stage] or 0, row.stage_iteration)
    end
    assert.same({ coarse = 1, soft = 8, binary = 1, pulses = 1 }, counts)
    assert.equal(2 * 10 + 1, result.iterations)
    option.set_given { budget = "0" }
    local fine, problem = pcall(optimize, experiment(), whole_plan {}, "b")
    option.set_given {}
    assert(not fine and tostring(problem):find("--budget must be a finite number above 0, got", 1, true), problem)
  end)

  it("ends a stage early, and begins the next with its best or its last", function()
    local function run_with(stop, initial)
      local run = experiment()
      local result = optimize(run, cq.Plan { optimizer = adam(0.3),
        { name = "a", iterations = 9, stop = stop },
        { name = "b", iterations = 1, optimizer = adam(1e-9), initial = initial } }, "a")
      process.remove(folder .. "/earlier-1")
      return cq.Run.read_history(folder .. "/a"), result
    end
    local rows, result = run_with(function(history) return #history == 3 and history[3].loss ~= history[2].loss end)
    assert.equal(4, result.iterations)
    local best = math.min(rows[1].loss, rows[2].loss, rows[3].loss)
    assert.equal(best, rows[4].loss)
    rows = run_with({ below = 1 }, "last")
    assert.equal(2, #rows)
    assert.is_true(rows[2].loss ~= rows[1].loss)
    rows = run_with { stalled = 2, change = 1e9 }
    assert.equal(4, #rows)
  end)

  it("gives its iterations options of their own, and forgets the best of what was another problem", function()
    local seen, run = {}, { design = { material = {}, filter = {} } }
    local function problem(level)
      local def = block(level)
      def.constraints = def.design:discreteness { material = 1 }
      def.objective = function(state)
        local potential = state:energy(nil, "potential")
        seen[#seen + 1] = { potential:item(), run.design.material.sharpness, run.design.filter.radius }
        return potential + 0 * state:center()[1]
      end
      return def
    end
    run = cq.Experiment(problem)
    optimize(run, cq.Plan { optimizer = cq.Optimizer.augmented_lagrangian { inner = adam(), penalty = 1 },
      { name = "a", iterations = 3, options = {
        gravity = function(i) return { 0, i <= 2 and -1e-6 or -9.8 } end,
          sharpness = cq.Schedule.steps { values = { 4, 9 } },
        limits = { material = cq.Schedule.linear { from = 0.3, to = 0.1 } }, penalty = 7, filter_radius = 0.07,
      } } }, "a")
    assert.is_true(seen[1][1] < 1e-3 and seen[2][1] < 1e-3 and seen[3][1] > 1)
    assert.same({ 4, 4, 9, 0.07 }, { seen[1][2], seen[2][2], seen[3][2], seen[1][3] })
    assert.equal(3, run.best.iteration)
    local rows = cq.Run.read_history(folder .. "/a")
    assert.near(0.2, rows[2]["limits.material"], 1e-15)
    assert.same({ -9.8, 7, 9 }, { rows[3]["gravity.2"], rows[2]["material.penalty"], rows[3].sharpness })
  end)

  it("takes back, at the end of a stage, limits and what it gave the optimizer", function()
    local optimizer
    local function train(name, at)
      local function make()
        optimizer = cq.Optimizer.augmented_lagrangian { inner = adam() }
        local def = block { coarsen = 1 }
        def.optimizer, def.constraints = optimizer, { { name = "height", at_most = 0.1,
          terminal = function(state) return state:center()[2] end } }
        return cq.Experiment(def)
      end
      local plan = cq.Plan {
        { name = "a", iterations = 2, options = { limits = { height = 1 }, rate = 0.2, clip = 9 } },
        { name = "b", iterations = 2 },
        { name = "c", iterations = 2, body = "extracted", options = { rate = 0.3, penalty = 7 } } }
      local run, count = make(), 0
      local result = optimize(run, plan, name, { on_iteration = function()
        count = count + 1
        if count == at then C.cq_interrupt(1) end
      end })
      C.cq_interrupt(0)
      if at then
        run = make()
        result = optimize(run, plan, name, { resume = true })
      end
      return run, result
    end
    local whole, result = train "whole"
    assert.same({ 0.05, 0.05 }, { optimizer.rate, optimizer.inner.rate })
    assert.same({}, { optimizer.inner.clip, optimizer.penalty })
    assert.same({ 0.1, false }, { whole.constraints[1].limit, whole.best.feasible })
    assert.is_true(whole.best.violation > 0.1)
    local rows = cq.Run.read_history(folder .. "/whole")
    assert.equal(1, rows[2]["limits.height"])
    assert.is_nil(rows[3]["limits.height"])
    mistake.says(tostring(result.solution), "at most 0.1: violated by")
    for at = 2, 6, 2 do
      local parts = train("parts" .. at, at)
      assert.same({ whole.best.loss, bits(whole.params), 0.05 },
        { parts.best.loss, bits(parts.params), optimizer.rate }, at)
    end
  end)

  it("gives options the history of the stage, also of a run that goes on", function()
    local function train(name, stops)
      local seen, run = {}, nil
      for _, iterations in ipairs(stops) do
        run = experiment()
        run:optimize { iterations = iterations, folder = folder .. "/" .. name, resume = iterations > stops[1],
          optimizer = adam(), options = { gravity = function(i, history)
            assert.equal(i - 1, math.min(i - 1, #history))
            seen[i] = i > 1 and history[i - 1].loss or 0
            return { 0, -9.8 * i / (1 + 1e3 * math.abs(seen[i])) }
          end } }
      end
      return seen, run
    end
    local whole, run = train("whole", { 4 })
    local parts, last = train("parts", { 2, 4 })
    assert.same(whole, parts)
    assert.equal(run.loss_last, last.loss_last)
    assert.same(bits(run.params), bits(last.params))
  end)

  it("tells of a design that wins without moving", function()
    local messages, told = require "cq.base.message", {}
    local warn = messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local function train(objective)
      local run = cq.Experiment(function(level)
        local def = block(level)
        def.objective = objective
        return def
      end)
      optimize(run, cq.Plan { optimizer = adam(0.1), { name = "soft", iterations = 22 },
        { name = "binary", iterations = 1, body = "binary" } }, "a")
    end
    -- as high as it can be: dense at the top
    train(function(state) return -state:center()[2] end)
    messages.warn = warn
    mistake.says(table.concat(told, "\n"), 'stage "soft": of the loss, which fell from -')
    mistake.says(table.concat(told, "\n"), "is there without any signal")
  end)
end)

describe("run:evaluate { converge }", function()
  it("prints what half of the step changes, and leaves the world as it was", function()
    local run, printed = cq.Experiment(block), {}
    local own = print
    _G.print = function(...) printed[#printed + 1] = table.concat({ ... }, " ") end
    local before = run:evaluate().loss
    local found = run:evaluate { converge = true }
    _G.print = own
    assert.equal(before, found.loss)
    assert.equal(8, run.world.substeps)
    run.world:set_substeps(16)
    local finer = run:evaluate().loss
    assert.is_true(finer ~= before)
    mistake.says(printed[1], ("loss %.6g with substeps = 8 and %.6g with 16"):format(before, finer))
  end)
end)
