-- stage: what a stage of a plan begins with, what its iterations have of their own, and what it leaves.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local mistake = require "tests.sentence"
local plans = require "tests.plans"
local process = require "tests.process"
local scratch = require "tests.scratch"
local says = mistake.refuses
local adam, bits, block = plans.adam, plans.bits, plans.block

describe("a stage of a plan", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment() return cq.Experiment(block) end

  local function optimize(run, plan, name, more) return plans.optimize(run, plan, folder .. "/" .. name, more) end

  it("begins with the parameters that it was given, in whatever level", function()
    optimize(experiment(), cq.Plan { optimizer = adam(0.3), { name = "a", iterations = 3 } }, "fine")
    local stops = 0
    local plan = cq.Plan { optimizer = adam(), starts = { count = 2, at = "c" }, options = { rate = function()
      if stops > 0 then C.cq_interrupt(1) end
      return 0.05
    end }, { name = "b", iterations = 1, level = { coarsen = 2 } }, { name = "c", iterations = 1 } }
    local coarse, fresh, run = cq.Experiment(block { coarsen = 2 }), experiment(), experiment()
    coarse:load(folder .. "/fine")
    optimize(fresh, plan, "fresh")
    run:load(folder .. "/fine")
    optimize(run, plan, "given")
    local untold, told = cq.Run.read_history(folder .. "/fresh"), cq.Run.read_history(folder .. "/given")
    assert.near(coarse:evaluate().loss, told[1].loss, 1e-12)
    assert.is_true(told[1].loss < untold[1].loss)
    assert.equal(untold[2].loss, told[2].loss)
    -- as a whole before its first iteration is made
    run = experiment()
    run:load(folder .. "/fine")
    stops = 1
    says(function() optimize(run, plan, "later") end, "interrupted before the first iteration")
    C.cq_interrupt(0)
    stops = 0
    optimize(experiment(), plan, "later", { resume = true })
    local later = cq.Run.read_history(folder .. "/later")
    for k = 1, 4 do assert.equal(told[k].loss, later[k].loss) end
  end)

  it("frees what worlds of stages before it kept for their rollouts", function()
    local run, kept = experiment(), {}
    local function count()
      local entries = {}
      for key, own in pairs(run.levels) do entries[key] = #own.world.pool.entries end
      return entries
    end
    optimize(run, cq.Plan { optimizer = adam(), { name = "b", iterations = 1, level = { coarsen = 2 } },
      { name = "c", iterations = 1 } }, "released", { on_iteration = function() kept[#kept + 1] = count() end })
    assert.is_true(kept[1]["coarsen 2"] > 0)
    assert.equal(0, kept[2]["coarsen 2"])
    assert.is_true(kept[2]["coarsen 1"] > 0)
  end)

  it("draws other starts anew whatever the first one has come to", function()
    local def = block { coarsen = 1 }
    def.trainable = { damping = { min = 0, max = 100, init = 1 } }
    local run = cq.Experiment(def)
    optimize(run, cq.Plan { optimizer = adam(0.3), starts = { count = 2 }, { name = "a", iterations = 2 } }, "a")
    local fresh = cq.Experiment(def)
    T.leaves.load(fresh.params.design, fresh.design:start(1), "this")
    assert.equal(fresh:evaluate().loss, cq.Run.read_history(folder .. "/a")[3].loss)
  end)

  it("leaves the experiment in the level of its last stage, from which another plan goes on", function()
    local run = experiment()
    optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 1 },
      { name = "b", iterations = 2, level = { coarsen = 2 } } }, "a")
    assert.equal(0.08, run.world.dx)
    assert.equal(run.best.loss, run:evaluate().loss)
    optimize(run, cq.Plan { optimizer = adam(), { name = "a", iterations = 2 } }, "b")
    assert.equal(0.04, run.world.dx)
    assert.equal(100, run.robot.particle_count)
    assert.equal(run.best.loss, run:evaluate().loss)
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

  it("ends by points that keep the constraints alone", function()
    local scene = require "tests.scene"
    local world = scene.world(scene.robot())
    local function make(stop, minimize)
      local run = cq.Experiment {
        world = world, steps = 4, controller = cq.Controller.open_loop { steps = 4 },
        objective = { effort = function(u) return u:square():mean() end },
        constraints = { { name = "pull", at_most = -0.1, of = function(p) return -p.controller.u:mean() end } },
        optimizer = cq.Optimizer.augmented_lagrangian { inner = adam(0.02) },
      }
      optimize(run, cq.Plan { { name = "a", iterations = 60, stop = stop, minimize = minimize } },
        (minimize or "objective") .. (type(stop) == "table" and stop.below and "_below" or "_other"))
      return run
    end
    -- the signals begin at 0, with no effort and the constraint violated
    local below, stalled = make { below = 5e-3 }, make { stalled = 5 }
    assert.is_true(below.made > 5 and below.best.feasible)
    assert.is_true(stalled.made > 5 and stalled.best.feasible)
    assert.is_true(make({ below = 0.5 }, "violation").made < 60)
    says(function() make(function() return 1 end) end, "stage \"a\": stop must give true or false, got 1")
  end)

  it("keeps in saved.bin the best of all starts while the others are made", function()
    local losses, run = {}, experiment()
    optimize(run, cq.Plan { optimizer = adam(0.3), starts = { count = 3 }, { name = "a", iterations = 3 } }, "best", {
      keep = 1, on_iteration = function()
        local file = io.open(folder .. "/best/saved.bin")
        if file then
          file:close()
          losses[#losses + 1] = cq.load(folder .. "/best").result.loss
        end
      end,
    })
    assert.is_true(#losses >= 7, #losses)
    for k = 2, #losses do assert.is_true(losses[k] <= losses[k - 1]) end
    local rows = cq.Run.read_history(folder .. "/best")
    assert.is_true(rows[4].loss > losses[3] or rows[7].loss > losses[6])          -- another start begins farther off
  end)

  it("refuses options that scenes have values of their own for, before the first stage", function()
    local scene = require "tests.scene"
    for only = 1, 2 do
      local run = cq.Experiment {
        world = scene.world(scene.robot()), steps = 2, controller = cq.Controller.open_loop { steps = 2 },
        objective = function(state) return -state:center "foot"[2] end, optimizer = adam(),
        scenes = { count = 2, each = function(k) return { gravity = k >= only and { 0, -k } or nil } end },
      }
      says(function()
        optimize(run, cq.Plan { { name = "a", iterations = 1 },
          { name = "b", iterations = 1, options = { gravity = { 0, -20 } } } }, "scenes")
      end, "stage \"b\": options.gravity: scenes have their own")
    end
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

  it("is not over by losses of another problem", function()
    local function made(options, name, more)
      local run = cq.Experiment(function(level)
        local def = block(level)
        local way = def.objective
        function def.objective(state, start) return 1 + way(state, start) end
        return def
      end)
      optimize(run, cq.Plan { { name = "a", iterations = 12, optimizer = adam(1e-9), options = options,
        stop = { stalled = 3 } } }, name, more)
      return #cq.Run.read_history(folder .. "/" .. name)
    end
    assert.equal(4, made(nil, "same"))
    local function heavier(last) return { gravity = function(i) return { 0, -math.min(i, last) } end } end
    assert.equal(12, made(heavier(12), "each"))
    assert.equal(9, made(heavier(6), "some"))
    -- and of a run that goes on
    local stops = true
    local options = { gravity = function(i)
      if stops and i == 8 then C.cq_interrupt(1) end
      return { 0, -math.min(i, 6) }
    end }
    pcall(made, options, "parts")
    C.cq_interrupt(0)
    stops = false
    assert.is_true(#cq.Run.read_history(folder .. "/parts") < 9)
    assert.equal(9, made(options, "parts", { resume = true }))
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
    local function train(objective, weight)
      told = {}
      local run = cq.Experiment(function(level)
        local def = block(level)
        def.objective = objective
        return def
      end)
      optimize(run, cq.Plan { optimizer = adam(0.1),
        { name = "soft", iterations = 22, options = { passive_weight = weight } },
        { name = "binary", iterations = 1, body = "binary" } }, objective.running and "b" .. weight or "a")
      return table.concat(told, "\n")
    end
    -- as high as it can be: dense at the top
    local at_end = train { terminal = function(state) return -state:center()[2] end }
    local on_the_way = { running = function(state) return -1e-3 * state:center()[2] end }
    local running, charged = train(on_the_way, 0), train(on_the_way, 1e-6)
    messages.warn = warn
    mistake.says(at_end, 'stage "soft": of the loss, which fell from -')
    mistake.says(at_end, "is there without any signal")
    mistake.says(at_end, "as start:center(robot) in objective.terminal gives it, or let options.passive_weight = 1 of")
    mistake.says(running, "as falling over; options.passive_weight = 1 of the stage charges this")
    mistake.says(charged, "as falling over; a larger options.passive_weight of the stage charges this")
    assert(not running:find("objective.terminal", 1, true))
  end)
end)

-- A design that is paid for where its particles are.
describe("the warning of a design that wins without moving", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  -- how often it comes in a training by stages { body, iterations }
  local function count(stages, stopped)
    local messages, told = require "cq.base.message", 0
    local warn = messages.warn
    messages.warn = function(format, ...)
      if format:format(...):find("is there without any signal", 1, true) then told = told + 1 end
    end
    local function train(plan, resume)
      local run = cq.Experiment(function(level)
        local def = block(level)
        def.objective = { terminal = function(state) return -state:center()[2] end }
        return def
      end)
      run:optimize { plan = cq.Plan(plan), folder = folder .. "/run", resume = resume }
    end
    local plan, first = { optimizer = adam(0.1) }, { optimizer = adam(0.1) }
    for k, stage in ipairs(stages) do
      plan[k] = { name = "stage " .. k, body = stage[1], iterations = stage[2] }
      first[k] = k <= (stopped or 0) and plan[k] or nil
    end
    local fine, problem = pcall(function()
      if stopped then train(first, false) end
      train(plan, stopped ~= nil)
    end)
    messages.warn = warn
    assert.is_true(fine, problem)
    return told
  end

  it("comes after all soft stages, whose iterations count together", function()
    assert.equal(1, count { { "soft", 15 }, { "soft", 6 }, { "binary", 1 } })
    assert.equal(0, count { { "soft", 9 }, { "soft", 9 }, { "binary", 30 } })
  end)

  it("counts those of before a run was resumed", function()
    assert.equal(1, count({ { "soft", 15 }, { "soft", 6 }, { "binary", 1 } }, 1))
  end)

  it("comes after the binary stages of a plan that begins with them", function()
    assert.equal(1, count { { "binary", 22 } })
    assert.equal(1, count { { "binary", 15 }, { "binary", 7 }, { "extracted", 1 } })
  end)
end)

describe("what a plan has left", function()
  local folder
  local program = require("cq.option").program
  before_each(function() folder = scratch.open() end)
  after_each(function()
    program.replay, program.check = nil, nil
    scratch.close()
  end)

  local gravity = { gravity = { 0, -20 } }
  local soft = { name = "soft", iterations = 2, options = gravity }
  local sharp = { gravity = { 0, -20 }, sharpness = cq.Schedule.linear { from = 4, to = 8 } }

  -- plans that end in each body, and one in another level
  local function plans_of()
    local optimizer = adam(0.3)
    return {
      soft = cq.Plan { optimizer = optimizer, soft },
      binary = cq.Plan { optimizer = optimizer, soft, { name = "binary", iterations = 2, body = "binary",
        options = sharp } },
      extracted = cq.Plan { optimizer = optimizer, soft, { name = "pulses", iterations = 2, body = "extracted",
        options = sharp } },
      coarse = cq.Plan { optimizer = optimizer, { name = "binary", iterations = 2, body = "binary", options = gravity,
        level = { coarsen = 2 } } },
    }
  end

  it("is there again, with the body and the options of its last stage", function()
    for name, plan in pairs(plans_of()) do
      local run, path = cq.Experiment(block), folder .. "/" .. name
      plans.optimize(run, plan, path)
      if name ~= "coarse" then
        local again = cq.Experiment(block)
        again:load(path)
        assert.equal(run.best.loss, again:evaluate().loss, name)
        assert.same(run.body and run.body.particles, again.body and again.body.particles)
        -- training begins without them
        plans.optimize(again, cq.Plan { optimizer = adam(), { name = "a", iterations = 1 } }, folder .. "/next")
        assert.same({}, again.given)
        assert.is_nil(again.body)
      end
      program.replay = true
      local looked = cq.Experiment(block)
      local result = plans.optimize(looked, plan, path)
      program.replay = nil
      assert.same({ run.best.loss, run.best.loss }, { result.best, looked:evaluate().loss }, name)
      assert.same(run.body and run.body.particles, looked.body and looked.body.particles)
      assert.equal(run.world.dx, looked.world.dx)
    end
  end)

  it("has what scripts go on with where nothing is trained", function()
    local function make()
      local def = block { coarsen = 1 }
      def.constraints = { { name = "height", at_most = 0.1,
        terminal = function(state) return state:center()[2] end } }
      return cq.Experiment(def)
    end
    local plan = cq.Plan { optimizer = cq.Optimizer.augmented_lagrangian { inner = adam() }, starts = { count = 2 },
      { name = "a", iterations = 1 } }
    local function look(kind)
      local run = make()
      program[kind] = true
      local result = plans.optimize(run, plan, folder .. "/a")
      program[kind] = nil
      return run, result
    end
    local checked, found = look "check"
    assert.is_false(checked.best.feasible)
    assert.is_true(checked.best.values.height > 0.1)
    assert.is_false(found.solution.feasible)
    assert.same({ 1, 2 }, { found.starts[1].start, found.starts[2].start })
    local run = make()
    local trained = plans.optimize(run, plan, folder .. "/a")
    local looked, result = look "replay"
    assert.same(run.best.values, looked.best.values)
    assert.same(trained.starts, result.starts)
    assert.equal(trained.solution.constraints.height.value, result.solution.constraints.height.value)
  end)
end)

describe("run:figures of a tournament", function()
  it("has a line for each start in each stage, pale where it was left out", function()
    local rows = {}
    local function add(stage, start, loss)
      rows[#rows + 1] = { stage = stage, start = start, loss = loss, iteration = #rows + 1 }
    end
    add("soft", 1, 3) add("soft", 1, 2) add("soft", 2, 5) add("soft", 2, 4) add("hard", 2, 6)
    local lines = require("cq.picture.history").by_stage(rows, "loss", { [1] = true })
    local shapes = {}
    for k, line in ipairs(lines) do shapes[k] = { line.name or "", line.x, line.y } end
    assert.same({ { "", { 1, 2 }, { 3, 2 } }, { "soft", { 3, 4 }, { 5, 4 } }, { "hard", { 5 }, { 6 } } }, shapes)
    assert.equal(lines[2].colour .. "60", lines[1].colour)
    assert.is_true(lines[3].colour ~= lines[2].colour)
    -- of a column that the first stage lacks, nothing is named after it
    rows[5].worst = 7
    lines = require("cq.picture.history").by_stage(rows, "worst", {})
    assert.same({ false, false, "hard" }, { lines[1].name or false, lines[2].name or false, lines[3].name })
  end)
end)

describe("curves of a history", function()
  it("have a gap between stages and starts, and none of what a row lacks", function()
    local column = require("cq.picture.history").column
    local function row(iteration, stage, start, loss, cost)
      return { iteration = iteration, stage = stage, start = start, loss = loss, cost = cost }
    end
    local rows = { row(1, "soft", 1, 3), row(2, "soft", 1, 2), row(3, "soft", 2, 5, 7), row(4, "hard", 2, 4) }
    local function shape(...)
      local x, y, any = column(rows, ...)
      for k, value in ipairs(y) do y[k] = value == value and value or "gap" end
      return { x, y, any }
    end
    assert.same({ { 1, 2, 3, 3, 4, 4 }, { 3, 2, "gap", 5, "gap", 4 }, true }, shape "loss")
    assert.same({ { 1, 3, 3 }, { 3, "gap", 5 }, true }, shape("loss", 2))
    assert.same({ { 3 }, { 7 }, true }, shape "cost")
    assert.same({ {}, {}, false }, shape "gradient")
    local loss, others = require("cq.report.folder").curves(rows)
    assert.equal(6, #loss.x)
    assert(require("cq.report.page").json(loss.y):find("2, null, 5", 1, true))
    assert.same({ 7 }, others[1].series[1].y)
    assert.same({ {}, {} }, { require("cq.report.folder").curves({ row(1, "soft", 1, 0 / 0) }).x,
      require("cq.report.folder").curves({ row(1, "soft", 1, 0 / 0) }).y })
  end)

  it("have no pale starts where the run's state cannot be read", function()
    local folder = scratch.open()
    process.write(folder .. "/optimizer.bin", "no state")
    assert.same({}, require("cq.picture.history").dropped_in({ { start = 1 } }, folder))
    scratch.close()
  end)
end)

describe("run:evaluate { converge }", function()
  local printed, own = {}, print
  before_each(function()
    printed = {}
    _G.print = function(...) printed[#printed + 1] = table.concat({ ... }, " ") end
  end)
  after_each(function()
    _G.print = own
    scratch.close()
  end)

  local function tells(coarse, substeps, fine)
    mistake.says(printed[1], ("loss %.6g with substeps = %d and %.6g with %d"):format(coarse, substeps, fine,
      2 * substeps))
  end

  it("prints what half of the step changes, and leaves the world as it was", function()
    local run = cq.Experiment(block)
    local first = run:evaluate()
    local before, place = first.loss, first.rollout.state:center(run.robot)[1]:item()
    local found = run:evaluate { converge = true }
    assert.equal(before, found.loss)
    assert.equal(8, run.world.substeps)
    assert.equal(place, first.rollout.state:center(run.robot)[1]:item())
    run.world:set_substeps(16)
    local finer = run:evaluate().loss
    assert.is_true(finer ~= before)
    tells(before, 8, finer)
  end)

  it("says where the simulation fails with half of the step, and evaluates", function()
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "body", size = { 0.2, 0.2 }, spacing = 0.02 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
      actuators = cq.Actuator.pressure { groups = "body", axis = "y", max = 1 },
    }
    local world = cq.World { cells = { 20, 20 }, dx = 0.04, dt = 1e-2, substeps = 8, robot:at { 0.3, 0.3 } }
    local run = cq.Experiment {
      world = world, steps = 5, objective = { terminal = function(state) return state:center(robot)[1] end },
      observer = function(state) return cq.tensor { state.world.substeps } end,
      controller = function(substeps) return { substeps:item() > 8 and 1e5 or 0 } end,
    }
    assert.near(0.4, run:evaluate({ converge = true }).loss, 1e-3)
    mistake.says(printed[1], " with substeps = 8 and none with 16, where the simulation failed at control step 1 (time")
  end)

  it("refines the world of a binary body without its remote void, and that of another body", function()
    local function left_half(substeps)
      local run = cq.Experiment(function(level)
        local def = block(level)
        def.world:set_substeps(substeps)
        return def
      end)
      local x = run.robot.position:slice(1, 1, 2):flatten()
      run.params.design.density:copy_from(x:less(x:min():item() + 0.09) * 2 - 1)
      run:optimize { plan = cq.Plan { optimizer = adam(1e-9), { name = "binary", iterations = 1, body = "binary" } },
        folder = scratch.open() }
      return run
    end
    local run, fine = left_half(8), left_half(16)
    assert.equal(8, run:evaluate({ converge = true }).rollout.world.substeps)
    assert.is_true(run.best.loss ~= fine.best.loss)
    tells(run.best.loss, 8, fine.best.loss)
    run.world:set_substeps(4)
    printed = {}
    local found = run:evaluate { body = run.body, converge = true }
    tells(found.loss, 8, fine:evaluate({ body = fine.body }).loss)
  end)
end)
