-- plan: a training as a list of stages: what it refuses, how it reads, and how it is carried out.
local cq = require "cq"
local host = require "cq.host"
local fails = require("tests.sentence").fails
local mistake = require "tests.sentence"
local plans = require "tests.plans"
local scratch = require "tests.scratch"
local says = mistake.refuses
local adam, block, whole_plan = plans.adam, plans.block, plans.whole

describe("cq.Plan", function()
  it("reads like a methods section", function()
    local words = tostring(cq.Plan.topology {})
    mistake.says(words, "Plan topology: 650 iterations; 8 starts, 4 go on after coarse binary, 2 after binary.")
    mistake.says(words, "1. coarse gait: cells and steps twice as large, soft body, design.layout, design.pulses "
      .. "trained by Adam, relative epsilon 0.0001, rate 0.01, gradient decay auto, 60 iterations.")
    mistake.says(words, "2. coarse soft: cells and steps twice as large, soft body, all but a feedback trained by Adam, "
      .. "relative epsilon 0.0001, rate 0.01, gradient decay auto, passive weight 1, 150 iterations.")
    mistake.says(words, "6. pulses: extracted body, design.pulses trained by Adam, relative epsilon 0.0001, "
      .. "rate 0.03 to 0.003 (linear), clip median, gradient decay auto, 200 iterations.")
    for starts, said in pairs { "", "; 2 starts, 1 goes on after coarse binary, 1 after binary",
      "; 3 starts, 2 go on after coarse binary, 1 after binary",
      [9] = "; 9 starts, 5 go on after coarse binary, 3 after binary" } do
      mistake.says(tostring(cq.Plan.topology { starts = starts }), "Plan topology: 650 iterations" .. said .. ".\n")
    end
    mistake.says(tostring(cq.Plan.topology { starts = { count = 4, keep = 2, at = { "binary", 9 } } }),
      "; 4 starts, 2 go on after iteration 9 of binary.\n")
    words = tostring(cq.Plan.topology { feedback = 9, reduce = "worst",
      variants = { {}, { change = { substeps = 2 } } } })
    mistake.says(words, "pulses trained by Adam, relative epsilon 0.0001, rate 0.03 to 0.003 (linear), clip median, "
      .. "gradient decay auto, 200 iterations.\n7. feedback: extracted body, design.pulses, controller trained by Adam, "
      .. "relative epsilon 0.0001, rate 0.01 to 0.001 (linear), clip median, gradient decay auto, worst of 2 variants, "
      .. "9 iterations.")
    says(function() cq.Plan.topology { variants = 3 } end, "variants must be")
    words = tostring(cq.Plan { train = { "controller" }, stop = { stalled = 40 }, { name = "gait", iterations = 9,
      minimize = "violation", level = { duration = 2 }, initial = "best" } })
    assert.equal("Plan training: 9 iterations.\n1. gait: duration 2, controller trained by the experiment's optimizer, "
      .. "constraints alone, until they are kept, until 40 iterations lower the loss by less than 1 %, 9 iterations.",
        words)
  end)

  it("says what its stages change of the experiment", function()
    local words = tostring(cq.Plan { { name = "a", iterations = 1, reduce = "worst" },
      { name = "b", iterations = 1, variants = false, recover = false,
        optimizer = cq.Optimizer.adam { rate = 0.1, clip = 3 } },
      { name = "c", iterations = 3, body = "extracted", variants = function() end,
        stop = setmetatable({}, { __call = function() end }) } })
    mistake.says(words, "all but a feedback trained by the experiment's optimizer, worst of the experiment's variants, 1 it")
    mistake.says(words, "by Adam, clip 3, rate 0.1, its own simulation alone, without recovery from failed simulations, 1")
    mistake.says(words, "extracted body, all but the body trained by the experiment's optimizer, mean of drawn variants, "
      .. "until a function of the history ends it, 3 iterations.")
  end)

  it("names the reduction of its variants as a run does", function()
    local words = tostring(cq.Plan { reduce = { cvar = 0.3 }, { name = "a", iterations = 1 },
      { name = "b", iterations = 1, variants = { {}, {} } } })
    mistake.says(words, "by the experiment's optimizer, mean of the worst 0.3 of the experiment's variants, 1 it")
    mistake.says(words, "by the experiment's optimizer, mean of the worst 0.3 of 2 variants, 1 iteration.")
  end)

  it("refuses variants and reductions that no experiment has", function()
    local cases = { { { variants = {} }, "variants is an empty list" },
      { { variants = 3 }, "variants must be a function" },
      { { variants = { count = 3 } }, "each" }, { { variants = { {}, {}, count = 7 } }, "takes a list" },
      { { reduce = "median" }, 'reduce must be "mean", "worst" or { cvar = 0.3 }' },
      { { variants = { {} }, reduce = { cvar = 2 } }, "cvar" }, { { reduce = { share = 0.1 } }, "share" },
      { { variants = false, reduce = "worst" }, "reduce is of the losses of variants, and there are none" } }
    for _, case in ipairs(cases) do
      local given, words = case[1], case[2]
      says(function() cq.Plan { { name = "a", iterations = 1, variants = given.variants, reduce = given.reduce } } end,
        words)
      says(function() cq.Plan { variants = given.variants, reduce = given.reduce, { name = "a", iterations = 1 } } end,
        words)
    end
    says(function() cq.Plan { { name = "a", iterations = 1, variants = {} } } end, 'cq.Plan: stage "a": variants is an')
  end)

  it("gives its stages what it says of all", function()
    local plan = cq.Plan { initial = "last", { name = "a", iterations = 1 }, { name = "b", iterations = 1 },
      { name = "c", iterations = 1, initial = "best" } }
    assert.same({ "last", "best" }, { plan.stages[2].initial, plan.stages[3].initial })
    mistake.says(tostring(plan), "2. b: all trained by the experiment's optimizer, from the last iteration of the stage")
    assert.is_nil(tostring(plan):match "1%. a:[^\n]*last")
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
    says(function() cq.Plan { { name = "a", iterations = 1, stop = {} } } end,
      'cq.Plan: stage "a": stop needs stalled, iterations without progress, or below, a loss')
    says(function() cq.Plan { stop = { change = 0.1 }, { name = "a", iterations = 1 } } end,
      "stop needs stalled, iterations without progress (of which change is the measure), or below")
    says(function() cq.Plan { { name = "a", iterations = 1, initial = "last" } } end, "this is the first")
    says(function() cq.Plan { starts = { count = 2, at = "gaits" }, gait } end,
      'starts.at: there is no stage "gaits" (did you mean gait?)')
    for _, at in ipairs { {}, { "gait", 1, 2 }, { 1 } } do
      says(function() cq.Plan { starts = { count = 2, at = at }, gait } end, "starts.at is the name of a stage, or { name,")
    end
    says(function() cq.Plan { starts = { count = 2, at = "a" }, { name = "a", iterations = 1, level = { coarsen = 2 } },
      { name = "b", iterations = 1 }, { name = "c", iterations = 1, level = { coarsen = 1 } } } end,
      "which has another level or no soft body; the last cut can be after b, c")
    assert.equal(3, cq.Plan.topology({ coarsen = 1, starts = { count = 2, at = "coarse binary" } }).starts.cuts[1].at)
    says(function() cq.Plan.topology { starts = 0 } end,
      "starts must be a whole number at least 1 and at most 1000, or a table, got 0")
    for said, starts in pairs {
      ["keep must be at most that of the cut before, 2, got 3"] = { { keep = 2, at = "gait" }, { keep = 3, at = "end" } },
      ["cut 2, after stage \"gait\", is not behind cut 1"] = { { keep = 2, at = { "gait", 3 } },
        { keep = 2, at = { "gait", 3 } } },
      ["cut 2, after stage \"gait\", is not"] = { { keep = 2, at = "end" }, { keep = 1, at = "gait" } },
      ["starts.at[2] must be a whole number at least 1 and at most 5"] = { { keep = 2, at = { "gait", 6 } } },
      ["a list of cuts, or keep and at, not both"] = { keep = 2, { keep = 2, at = "gait" } },
      ["entry 2 is nil, and entry 3 follows"] = { { keep = 2, at = "gait" }, nil, { keep = 1, at = "end" } },
      ["unknown field att (did you mean at?)"] = { { keep = 2, att = "gait" } },
      ["at is missing"] = { { keep = 2 } }, ["entry 1 must be a table, got 4"] = { 4 },
    } do
      starts.count = 4
      local stages = { { name = "gait", iterations = 5 }, { name = "end", iterations = 5 } }
      says(function() cq.Plan { starts = starts, unpack(stages) } end, said)
    end
    says(function() cq.Plan { { name = "a", iterations = 1e300 } } end, "at most 2147483647")
    says(function() cq.Plan { starts = { count = 2, keep = 3 }, gait } end,
      "keep must be at most starts.count, 2, got 3")
    says(function() cq.Plan { starts = { count = 2, at = "a" }, { name = "a", iterations = 1, level = { coarsen = 2 } },
      gait } end, 'losses of stage "a" say little of those of the last one')
    says(function() cq.Plan { starts = { count = 2, at = "a" }, { name = "a", iterations = 1 },
      { name = "b", iterations = 1, body = "binary" } } end, 'losses of stage "a" say little')
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
    assert.near(1, cq.Schedule.exponential({ from = 1e-200, to = 1e-190 }):at(2, 3) / 1e-195, 1e-12)
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

  local function optimize(run, plan, name, more) return plans.optimize(run, plan, folder .. "/" .. name, more) end

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

  it("leaves a body whose files go into the folder of its run, whatever run is open", function()
    local run, other = experiment(), experiment()
    optimize(run, whole_plan(), "a")
    optimize(other, whole_plan(), "b")
    local paths = run.body:save_surface("made.stl", { thickness = 0.1 })
    assert.equal(folder .. "/a/made_whole.stl", paths[#paths])
    assert.equal("file", host.kind(paths[#paths]))
    assert.equal(folder .. "/a/made_pulses.csv", run.body:save("made.csv")[2])
    assert.equal(folder .. "/a/made.csv", run:path "made.csv")
    assert.equal(folder .. "/b/made.csv", other.body:save("made.csv")[1])
    assert.equal(folder .. "/made.csv", run.body:save(folder .. "/made.csv")[1])
    fails("made.png", function() run.body:save_surface "made.png" end)
    fails("path must be", function() run.body:save_surface(3) end)
    fails(": none/made", function() run.body:save_surface("none/made.stl", { thickness = 0.1 }) end)
    fails(": none/made.csv", function() run.body:save "none/made.csv" end)
    fails(folder .. "/a/none/made", function() run.body:save(run:path "" .. "none/made.csv") end)
  end)

  it("is that of topology optimization with constraints, too", function()
    local function bound(level)
      local def = block(level)
      def.constraints = { def.design:volume { at_most = 0.4 } }       -- violated, and the first stage keeps the block
      return def
    end
    local function plan(optimizer)
      return cq.Plan.topology { starts = 1, optimizer = optimizer }:scaled(0.05)
    end
    fails("augmented_lagrangian { inner = ... }, or take cq.Optimizer.nlopt or cq.Optimizer.ipopt, as optimizer of the "
      .. "stage, of cq.Plan or of cq.Plan.topology", function() optimize(cq.Experiment(bound), plan(), "none") end)
    local run = cq.Experiment(bound)
    optimize(run, plan(cq.Optimizer.augmented_lagrangian { inner = adam() }), "bound")
    assert.is_number(run.best.values.volume)
    -- what its stage cannot change does not decide which gait is the best
    local history, least = cq.Run.read_history(folder .. "/bound"), math.huge
    for _, row in ipairs(history) do
      if row.stage == "coarse gait" then least = math.min(least, row.loss) end
    end
    assert.is_true(history[1].volume > 0.41 and least < history[1].loss)
    assert.equal(least, cq.load(folder .. "/bound/stages/coarse gait/saved.bin").data.result.loss)
  end)

  it("tells that starts are one training", function()
    local messages, told = require "cq.base.message", {}
    local warn = messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local run = cq.Experiment(function()
      local robot = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.05 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 } }
      return { world = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-3, robot:at { 0.4, 0.4 } }, steps = 2,
        trainable = { velocity = { init = { 0, 0 } } }, objective = function(state) return state:center(robot)[1] end }
    end)
    optimize(run, cq.Plan { optimizer = adam(), starts = { count = 2, keep = 1 }, { name = "a", iterations = 1 } },
      "one")
    messages.warn = warn
    mistake.says(table.concat(told, "; "),
      "start 2 begins with the values of start 1: nothing in the script is drawn by --seed")
  end)

  it("tells of a problem that makes nothing of its level", function()
    local messages, told = require "cq.base.message", {}
    local warn = messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local plan = cq.Plan { optimizer = adam(), { name = "coarse", iterations = 1, level = { coarsen = 2 } },
      { name = "fine", iterations = 1 } }
    optimize(cq.Experiment(function() return block { coarsen = 1 } end), plan, "ignored")
    assert.same({ "cq.Experiment: the function of a level gives cells of dx = 0.04 for coarsen = 2 as for coarsen = 1, so "
      .. "that its stages simulate no other grid; multiply dx, dt and spacing by level.coarsen, and divide cells by "
      .. "it" }, told)
    optimize(experiment(), plan, "followed")
    messages.warn = warn
    assert.equal(1, #told)
  end)

  it("tells of pulses that come after the end of the experiment, but for those that come again before it", function()
    local messages, told = require "cq.base.message", {}
    local warn = messages.warn
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    for k, period in ipairs { false, 8e-3, 16e-3 } do
      local run = cq.Experiment(function(level)
        local def = block(level)
        def.duration = 0.012
        def.design = cq.Topology { world = def.world, duration = 0.02,
          pulses = { interval = 4e-3, period = period or nil } }
        return def
      end)
      optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 1 } }, "late" .. k)
    end
    messages.warn = warn
    assert.same({
      "the pulses of the design last 0.02, 10 control steps, and the experiment makes 6: those that come later are not "
        .. "trained; give cq.Topology a duration of at most 0.012",
      "the pulses of the design have the period 0.016, 8 control steps, and the experiment makes 6: those that come later "
        .. "are not trained; give them a period of at most 0.012" }, told)
  end)

  it("tells on_iteration the iteration of the history, and the stage", function()
    local run, told, rows = experiment(), {}, {}
    optimize(run, cq.Plan { optimizer = adam(), starts = { count = 2, keep = 1, at = "a" },
      { name = "a", iterations = 2 }, { name = "b", iterations = 2 } }, "told",
      { on_iteration = function(i, loss, _, stage)
        told[#told + 1] = { i, loss, stage }
      end })
    for k, row in ipairs(cq.Run.read_history(folder .. "/told")) do rows[k] = { row.iteration, row.loss, row.stage } end
    assert.equal(6, #rows)
    assert.same(rows, told)
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
    refuses({ options = { rate = -1 } }, 'stage "a": options.rate must be a finite number above 0, got -1')
    refuses({ options = { clip = cq.Schedule.linear { from = 1, to = -1 } } }, 'stage "a": options.clip must be')
    refuses({ options = { damping = -1 } }, 'stage "a": options.damping must be at least 0 everywhere')
    refuses({ options = { friction = cq.Schedule.linear { from = 1, to = -2 } } }, "options.friction must be at")
    refuses({ options = { gravity = { 0, 0 / 0 } } }, "options.gravity must be finite")
    refuses({ options = { gravity = { 0, 0, -1 } } }, "options.gravity must have 2 components, got 3")
    says(function() optimize(cq.Experiment(block), cq.Plan { optimizer = adam(), { name = "a", iterations = 1 },
      { name = "b", iterations = 1, options = { sharpness = -3 } } }, "a") end, 'stage "b": options.sharpness:')
    refuses({ body = "binary" }, 'stage "a": a binary body is that of a design, and the experiment has none')
    refuses({ options = { sharpness = 8 } }, 'stage "a": options.sharpness needs an experiment with a design')
    refuses({ options = { penalty = 8 } }, "options.penalty is of cq.Optimizer.augmented_lagrangian")
    refuses({ options = { limits = { height = 1 } } }, 'options.limits: there is no constraint "height"')
    refuses({ minimize = "violation" }, 'minimize "violation" needs constraints')
    refuses({ level = { coarsen = 2 } }, "coarsen 2, needs an experiment that is made by a function")
    refuses({ optimizer = cq.Optimizer.nlopt { algorithm = "lbfgs" }, options = { rate = 1 } },
      "options.rate: cq.Optimizer.nlopt has none of its own")
    for name, value in pairs { iterations = "x", body = "hard" } do
      local plan = cq.Plan { { name = "a", iterations = 1 } }
      plan.stages[1][name] = value
      says(function() optimize(run, plan, "a") end, ("cq.Plan: stage: %s must be"):format(name))
    end
    assert.is_nil(host.kind(folder .. "/a"))
    says(function() run:optimize { plan = whole_plan(), iterations = 3 } end,
      "give either plan or iterations, not both")
    says(function() run:optimize {} end, "give either plan or iterations")
    says(function() run:optimize { plan = whole_plan(), body = "soft" } end, "body is of a stage of the plan")
    says(function() cq.Experiment(function() return 3 end) end, "must give a table of fields", "got 3 for coarsen 1")
  end)

  it("has all places where starts are dropped, also in a share of its iterations", function()
    local plan = cq.Plan { starts = { count = 8, { keep = 6, at = { "a", 3 } }, { keep = 4, at = { "a", 5 } },
      { keep = 2, at = "a" } }, { name = "a", iterations = 10 }, { name = "b", iterations = 5 } }
    -- the stage, its last iteration, the number of starts, and how many go on, of each part
    local function parts(of)
      local out = {}
      for k, part in ipairs(of:parts()) do out[k] = { part.stage, part.last, part.count, part.keep } end
      return out
    end
    assert.same({ { 1, 3, 8, 6 }, { 1, 5, 6, 4 }, { 1, 10, 4, 2 }, { 2, 5, 2 } }, parts(plan))
    assert.equal(8 * 3 + 6 * 2 + 4 * 5 + 2 * 5, plan:iterations())
    assert.same({ { 1, 1, 8, 6 }, { 1, 1, 6, 4 }, { 1, 1, 4, 2 }, { 2, 1, 2 } }, parts(plan:scaled(0.1)))
    assert.same({ { 1, 10, 1 }, { 2, 5, 1 } }, parts(cq.Plan { plan.stages[1], plan.stages[2] }))
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
end)
