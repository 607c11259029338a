-- resumed_plan: plans that are interrupted and gone on with, repeated from a stage on, and tournaments.
local cq = require "cq"
local C = require("cq.base.engine").C
local says = require("tests.sentence").refuses
local plans = require "tests.plans"
local scratch = require "tests.scratch"
local source = require "tests.source"
local host = require "cq.host"
local tables = require "cq.base.tables"
local adam, bits, block, files_of, whole_plan = plans.adam, plans.bits, plans.block, plans.files_of, plans.whole

describe("run:optimize with a plan", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment() return cq.Experiment(block) end

  local function optimize(run, plan, name, more) return plans.optimize(run, plan, folder .. "/" .. name, more) end

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

  it("goes on with what options of the history read, also of columns that some iterations lack", function()
    local cost = { { 1, 0, 1, 0 }, { 0, 1, 0, 1 } }
    for k, weights in ipairs(cost) do
      local function plan()
        return cq.Plan { { name = "soft", iterations = 4, optimizer = cq.Optimizer.adam { rate = 0.01 }, options = {
          passive_weight = function(i) return weights[i] end,
          rate = function(_, history)
            local sum = 0
            for _, row in ipairs(history) do sum = sum + (row.passive_cost or 0) end
            return 0.01 * (1 + 100 * sum)
          end } } }
      end
      local whole = experiment()
      optimize(whole, plan(), "whole" .. k)
      local parts = in_parts("parts" .. k, plan, 2)
      assert.same(bits(whole.params), bits(parts.params))
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
    local result, run = go_on { [4] = { name = "pulses", iterations = 5, body = "extracted" },
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

  local function stages_in(name) return host.entries(folder .. "/" .. name .. "/stages") or {} end

  local function bytes_of(name)
    local out = {}
    for _, file in ipairs(files_of(folder .. "/" .. name)) do
      out[file] = source.read(("%s/%s/%s"):format(folder, name, file))
    end
    return out
  end

  it("leaves all as it was where it is refused, and keeps what it repeats", function()
    optimize(experiment(), whole_plan(), "whole")
    local stopped = plans.stops(7)
    optimize(experiment(), whole_plan(), "a", stopped)
    C.cq_interrupt(0)
    local before = bytes_of "a"
    local function another() return whole_plan { [2] = { name = "soft", iterations = 2, options = { rate = 0.2 } } } end
    for _, fields in ipairs { { from = "binary" }, { resume = true } } do
      says(function() optimize(experiment(), another(), "a", fields) end, 'stage "soft" is made, and was another',
        "options.rate was none and is 0.2")
      assert.same(before, bytes_of "a")
    end
    optimize(experiment(), another(), "a", { from = "soft", on_iteration = plans.stops(1).on_iteration })
    C.cq_interrupt(0)
    assert.same({ "coarse" }, stages_in "a")
    assert.equal(4, #cq.Run.read_history(folder .. "/a"))
    says(function() optimize(experiment(), another(), "a", { from = "binary" }) end, 'has not made the stage "soft"')
    -- in the place where it was interrupted
    local run, whole = experiment(), cq.load(folder .. "/whole")
    assert.equal(7, #cq.Run.read_history(folder .. "/a/earlier-1"))
    local result = optimize(run, whole_plan(), "a/earlier-1", { resume = true })
    assert.same({ 11, whole.result.loss }, { result.iterations, result.best })
    optimize(run, whole_plan(), "a/earlier-1", { from = "pulses" })
    assert.equal(whole.result.loss, run.best.loss)
  end)

  it("with --overwrite leaves nothing of the earlier run, and what is not of it", function()
    local program = require("cq.option").program
    optimize(experiment(), whole_plan(), "a")
    local own = folder .. "/a/sources/notes.txt"
    io.open(own, "w"):close()
    program.overwrite = true
    require("cq.base.script").folders = {}           -- as if another script began
    local fine, problem = pcall(optimize, experiment(), whole_plan(), "a", plans.stops(2))
    C.cq_interrupt(0)
    program.overwrite = nil
    assert(fine, problem)
    assert.equal("file", host.kind(own))
    optimize(experiment(), whole_plan(), "b", plans.stops(2))
    C.cq_interrupt(0)
    assert.same(files_of(folder .. "/b"), files_of(folder .. "/a"))
    says(function() optimize(experiment(), whole_plan(), "a", { from = "pulses" }) end,
      'has not made the stage "binary"')
  end)

  it("refuses a stage at its end that was another, before the next begins", function()
    local function another() return whole_plan { [1] = { name = "coarse", iterations = 3, level = { coarsen = 2 },
      options = { rate = 0.2 } } } end
    local function softer() return whole_plan { [2] = { name = "soft", iterations = 2, stop = { below = -1 } } } end
    for at, case in pairs { [3] = { another, "options.rate was none and is 0.2", "or start anew" },
      [5] = { softer, "stop was none and is below -1", 'or begin it anew (from = "soft")' } } do
      optimize(experiment(), whole_plan(), "a" .. at, plans.stops(at))
      C.cq_interrupt(0)
      local plan = source.read(folder .. "/a" .. at .. "/plan.json")
      says(function() optimize(experiment(), case[1](), "a" .. at, { resume = true }) end, case[2], case[3])
      assert.equal(plan, source.read(folder .. "/a" .. at .. "/plan.json"))
    end
    says(function()
      optimize(cq.Experiment(function(level)
        local def = block(level)
        def.steps, def.duration = 9, nil
        return def
      end), whole_plan(), "a5", { resume = true })
    end, "is of another problem: control steps was 10 and is 9")
  end)

  it("goes on after the end of a stage that is to end otherwise", function()
    local function plan(stop) return cq.Plan { optimizer = adam(), { name = "a", iterations = 4, stop = stop } } end
    assert.equal(1, optimize(experiment(), plan { below = 1 }, "a").iterations)
    assert.equal(4, optimize(experiment(), plan(), "a", { resume = true }).iterations)
  end)

  it("refuses another tournament than the one that is over", function()
    local function plan(keep, at)
      return cq.Plan { optimizer = adam(), starts = { count = 3, keep = keep, at = { "soft", at } },
        { name = "coarse", iterations = 1, level = { coarsen = 2 } }, { name = "soft", iterations = 3 } }
    end
    optimize(experiment(), plan(2, 1), "a", plans.stops(4))
    C.cq_interrupt(0)
    optimize(experiment(), plan(1, 2), "a", { resume = true, on_iteration = plans.stops(6).on_iteration })
    C.cq_interrupt(0)
    says(function() optimize(experiment(), plan(2, 2), "a", { resume = true }) end,
      "the starts that go on were 1 of 3 after soft, iteration 2, and are 2 of 3 after soft, iteration 2; that is over")
    assert.equal(10, optimize(experiment(), plan(1, 2), "a", { resume = true }).iterations)
  end)

  it("leaves the experiment its own optimizer", function()
    local def = block { coarsen = 1 }
    def.optimizer = adam(0.1)
    local run = cq.Experiment(def)
    optimize(run, cq.Plan { { name = "a", iterations = 1, optimizer = adam(0.3) } }, "a")
    assert.equal(def.optimizer, run.optimizer)
  end)

  it("counts the best iteration as its history does, also after it went on", function()
    local function plan(rate)
      return cq.Plan { optimizer = adam(rate), starts = { count = 3, keep = 2, at = { "soft", 3 } },
        { name = "coarse", iterations = 2, level = { coarsen = 2 } }, { name = "soft", iterations = 5 } }
    end
    for k, rate in ipairs { 0.02, 3 } do
      local name = "a" .. k
      optimize(experiment(), plan(rate), name, plans.stops(17))
      C.cq_interrupt(0)
      for _, more in ipairs { { resume = true }, { from = "soft" } } do
        local run = experiment()
        optimize(run, plan(rate), name, more)
        local row = cq.Run.read_history(folder .. "/" .. name)[run.best.iteration]
        assert.same({ run.best.loss, "soft", run.best.stage_iteration }, { row.loss, row.stage, row.stage_iteration })
        assert.equal(run.best.iteration, cq.load(folder .. "/" .. name).result.iteration)
      end
    end
  end)

  it("that has stopped at a coarse level gives the variables of its design to an experiment of a fine one", function()
    local function problem(level)
      local def = block(level)
      def.design = cq.Topology { world = def.world, duration = 0.02, connected = true,
        pulses = { interval = 2e-3 * level.coarsen } }
      return def
    end
    local coarse = cq.Experiment(problem)
    optimize(coarse, whole_plan(), "coarse", { on_iteration = function(i)
      if i == 2 then C.cq_interrupt(1) end
    end })
    C.cq_interrupt(0)
    local saved, run = cq.load(folder .. "/coarse"), cq.Experiment(problem)
    run:load(folder .. "/coarse")
    local wanted = run.design:transfer(problem({ coarsen = 2 }).design, saved.parameters.design)
    for _, name in ipairs { "density", "layout", "sign", "magnitude" } do
      assert.is_true(run.params.design[name]:equal(wanted[name]), name)
    end
    assert.same({ 5, 10 }, { saved.parameters.design.sign:size(1), run.params.design.sign:size(1) })
    says(function() cq.Experiment(problem { coarsen = 1 }):load(folder .. "/coarse") end,
      'this experiment of shape {10, 2}; that run has stopped in the stage "coarse", of the level coarsen 2: let it go')
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

  it("drops starts at several places", function()
    local cuts = { { keep = 4, at = "coarse" }, { keep = 2, at = { "binary", 2 } }, { keep = 1, at = "binary" } }
    local function plan() return whole_plan { starts = tables.merged({ count = 5 }, cuts) } end
    local whole = experiment()
    local result, alive = optimize(whole, plan(), "halved"), { 1, 2, 3, 4, 5 }
    local rows, seen = cq.Run.read_history(folder .. "/halved"), {}
    for at, cut in ipairs(cuts) do
      local name, last, least, trained = type(cut.at) == "table" and cut.at[1] or cut.at, ({ 3, 2, 3 })[at], {}, {}
      for _, row in ipairs(rows) do
        if row.stage == name and row.stage_iteration <= last then
          least[row.start] = math.min(least[row.start] or math.huge, row.loss)
          if row.stage_iteration == last then trained[#trained + 1] = row.start end
        end
      end
      assert.same(alive, trained, name)
      table.sort(alive, function(a, b) return least[a] < least[b] end)
      for k = #alive, cut.keep + 1, -1 do alive[k] = nil end
      table.sort(alive)
      seen[#seen + 1] = #alive
    end
    assert.same({ 4, 2, 1 }, seen)
    assert.equal(5 * 3 + 4 * 2 + 4 * 2 + 2 + 3, result.iterations)
    for k, row in ipairs(result.starts) do assert.equal(k == alive[1], row.kept) end
    for _, at in ipairs { 14, 15, 16, 23, 31, 32, 33, 34 } do
      local parts, found = in_parts("halved" .. at, plan, at)
      assert.same({ whole.best.loss, bits(whole.best.params) }, { parts.best.loss, bits(parts.best.params) }, at)
      assert.same({ result.iterations, result.starts }, { found.iterations, found.starts }, at)
    end
    -- a cut that is not made yet may be another one
    optimize(experiment(), plan(), "other", plans.stops(16))
    C.cq_interrupt(0)
    local found = optimize(experiment(), whole_plan { starts = { count = 5, cuts[1], cuts[3] } }, "other",
      { resume = true })
    assert.equal(5 * 3 + 4 * 2 + 4 * 3 + 3, found.iterations)
    for _, starts in ipairs { { count = 5, keep = 2 }, { count = 5, cuts[2], { keep = 2, at = "binary" } } } do
      says(function() optimize(experiment(), whole_plan { starts = starts }, "halved", { resume = true }) end,
        "that is over, go on with the same ones, or start anew")
    end
    says(function() optimize(experiment(), whole_plan { starts = { count = 5, cuts[1], cuts[3] } }, "halved16",
      { resume = true }) end, "the starts that go on were 4 of 5 after coarse, 2 of 4 after binary, iteration 2, 1 of 2 "
      .. "after binary, and are 4 of 5 after coarse, 1 of 4 after binary; that is over")
  end)

  it("counts the iterations of a plan with several cuts, and none of starts whose stage has stopped early", function()
    local function totals(stop, name)
      local run, seen = experiment(), {}
      cq.Run.on_record = function(one) seen[#seen + 1] = one.iterations end
      local fine, result = pcall(optimize, run, cq.Plan { optimizer = adam(), starts = { count = 3,
        { keep = 2, at = { "soft", 3 } }, { keep = 1, at = { "soft", 5 } } },
        { name = "soft", iterations = 8, stop = stop } }, name)
      cq.Run.on_record = false
      assert(fine, result)
      return seen, { result.iterations, run.run.iterations }
    end
    local seen, last = totals(nil, "whole")
    assert.equal(16, #seen)
    for _, total in ipairs(seen) do assert.equal(16, total) end
    assert.same({ 16, 16 }, last)
    seen, last = totals(function(history) return #history == 2 end, "stopped")
    assert.same({ 16, 16, 15, 15, 12, 12 }, seen)
    assert.same({ 6, 6 }, last)
  end)

  it("warns of starts that keep their seeds where a run goes on with another one", function()
    local message, program, told = require "cq.base.message", require("cq.option").program, {}
    local warn, before = message.warn, program.seed
    local function plan()
      return cq.Plan { optimizer = adam(), starts = { count = 3 }, { name = "soft", iterations = 1 } }
    end
    message.warn = function(format, ...) told[#told + 1] = format:format(...):match "^run:optimize: the 3 starts.*" end
    local fine, result = pcall(function()
      program.seed = 4
      optimize(experiment(), plan(), "a", plans.stops(1))
      C.cq_interrupt(0)
      program.seed = 9
      return optimize(experiment(), plan(), "a", { resume = true })
    end)
    message.warn, program.seed = warn, before
    assert(fine, result)
    assert.same({ "run:optimize: the 3 starts keep the seeds that they began with, 4 to 6: seed 9 is not theirs; for "
      .. "starts of that seed begin another run" }, told)
    for k, start in ipairs(result.starts) do assert.equal(3 + k, start.seed) end
  end)

  it("begins all starts with the seeds that it says, where the design has one of its own", function()
    local program = require("cq.option").program
    local before = program.seed
    for name, case in pairs { both = { 3, 7, 7 }, own = { 3, nil, 3 }, none = { nil, 7, 7 } } do
      program.seed = case[2]
      local first, run = {}, cq.Experiment(function(level)
        local def = block(level)
        def.design = cq.Topology { world = def.world, duration = 0.02, pulses = { interval = 4e-3 }, seed = case[1] }
        return def
      end)
      local fine, result = pcall(optimize, run, cq.Plan { optimizer = adam(), starts = { count = 2 }, { name = "soft",
        iterations = 0, on_end = function(own) first[#first + 1] = own.params.design.sign:totable() end } }, name)
      program.seed = before
      assert(fine, result)
      for k, start in ipairs(result.starts) do
        assert.equal(case[3] + k - 1, start.seed)
        assert.same(run.own_design:start(start.seed).sign:totable(), first[k])
      end
    end
  end)

  it("goes on with the passive cost of the substeps that a failed simulation needs", function()
    local made
    local function falling(level)
      local def = block(level)
      function def.objective(state, start)
        if def.world.substeps == 8 and made >= 2 then error("the simulation failed at control step 1", 0) end
        return 1e3 * (state:center()[2] - start:center()[2])
      end
      return def
    end
    local function train(name, at, resume)
      made = resume and made or 0
      optimize(cq.Experiment(falling), cq.Plan { optimizer = adam(0.01), { name = "a", iterations = 4,
        recover = { halvings = 0 }, options = { passive_weight = 1 } } }, name, { resume = resume,
        on_iteration = function(i)
          made = i
          if i == at then C.cq_interrupt(1) end
        end })
      C.cq_interrupt(0)
      local costs = {}
      for k, row in ipairs(cq.Run.read_history(folder .. "/" .. name)) do costs[k] = row.passive_cost end
      return costs
    end
    local whole = train "whole"
    train("parts", 3)
    assert.same(whole, train("parts", nil, true))
    assert.is_true(whole[4] > 0)
  end)
end)
