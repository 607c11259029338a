-- staged_variants: variants of the stages of a plan: what is refused before the first, what is told of them, and what
-- a stage without iterations has as its best.
local cq = require "cq"
local host = require "cq.host"
local mistake = require "tests.sentence"
local option = require "cq.option"
local scene = require "tests.scene"
local scratch = require "tests.scratch"

local STEPS, way = 10, require("tests.variants").way

local function fields(more)
  local out = { world = scene.world(scene.robot()), steps = STEPS, controller = cq.Controller.sines { seed = 2 },
    objective = way, optimizer = cq.Optimizer.adam { rate = 0.02 } }
  for name, value in pairs(more or {}) do out[name] = value end
  return out
end

describe("variants of stages", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  it("are refused before the first stage is trained", function()
    local other = cq.Experiment { world = scene.world(scene.robot()), steps = STEPS, objective = way,
      controller = cq.Controller.open_loop { steps = STEPS } }
    local longer = cq.Experiment(fields { controller = cq.Controller.sines { count = 5 } })
    for part, wrong in pairs { ["did you mean stiffness?"] = { change = { stifness = 0.1 } },
      ["at most 1"] = { change = { latency = 2 } }, ["unknown field frcition"] = { frcition = 0.1 },
      ["at least 0.1"] = { change = { grid = 0.01 } }, ["without the parameter controller"] = other,
      ["cannot be carried to the experiment of another level or variant: its shape is {"] = longer } do
      local run = cq.Experiment(fields())
      mistake.refuses(function()
        run:optimize { folder = folder .. "/none", plan = cq.Plan { { name = "a", iterations = 1 },
          { name = "b", iterations = 1, variants = { {}, wrong } } } }
      end, part, "(variant 2 of 2) (stage \"b\")")
      assert.is_nil(host.kind(folder .. "/none"))
    end
  end)

  it("may be those of a level, which the time that is left counts", function()
    local run, left = cq.Experiment(function(level)
      return fields { variants = level.coarsen == 2 and { {}, { change = { density = 0.1 } } } or nil }
    end), {}
    cq.Run.on_record = function(one) left[#left + 1] = one.progress.part.left / one.progress.part.work end
    local fine, problem = pcall(run.optimize, run, { folder = folder .. "/run", plan = cq.Plan {
      { name = "coarse", iterations = 2, level = { coarsen = 2 }, reduce = "worst" },
      { name = "fine", iterations = 2 } } })
    cq.Run.on_record = false
    assert(fine, problem)
    assert.same({ 2, 1, 1, 0 }, left)          -- in iterations of the present stage: the first ones take twice as long
  end)

  it("whose function cannot make their world are left out; other errors of it are raised", function()
    local message, told = require "cq.base.message", {}
    local function with(other)
      return cq.Experiment(fields { variants = { count = 3, each = function(_, k)
        return k == 2 and other() or {}
      end } })
    end
    local function world(more)
      more.dx, more.dt, more[1] = 1 / 24, 2e-3, scene.robot():at { 2, 2 }
      return { world = cq.World(more) }
    end
    local run, warn = with(function() return world { cells = { 24, 24 } } end), message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local fine, problem = pcall(run.optimize, run, { folder = folder .. "/run", iterations = 1 })
    message.warn = warn
    assert(fine, problem)
    assert.equal(1, run.ensemble.left_out.count)
    mistake.says(told[1], "variant 2 of iteration 1 cannot begin and is left out (1 so far): cq.World: ",
      "outside the world")
    assert.equal(cq.Experiment(fields()):evaluate().loss, run.best.loss)
    for part, other in pairs { boo = function() error "boo" end, ["must be a table"] = function() return 3 end,
      ["unknown field celsl"] = function() return world { celsl = 3 } end } do
      run = with(other)
      mistake.says(mistake.of(function() run:optimize { folder = folder .. "/none", iterations = 1 } end), part,
        "(variant 2 of 3)")
    end
  end)

  it("are counted in each stage alone", function()
    local message, told = require "cq.base.message", {}
    local warn = message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...):match "^%d+ of .*in all$" end
    local run = cq.Experiment(fields { variants = function(_, k)
      return { change = { place = k % 2 == 0 and -40 or 0 } }
    end })
    local fine, problem = pcall(run.optimize, run, { folder = folder .. "/run", plan = cq.Plan {
      { name = "one", iterations = 3 }, { name = "two", iterations = 1 } } })
    message.warn = warn
    assert(fine, problem)
    assert.same({ "12 of the 24 variants of these 3 iterations were left out in all" }, told)
    assert.equal(4, run.ensemble.left_out.count)
  end)

  it("are known by what listed ones say when a run goes on", function()
    local function train(second, resume)
      cq.Experiment(fields { variants = { {}, second } }):optimize { iterations = resume and 4 or 2,
        folder = folder .. "/run", resume = resume }
    end
    train { change = { stiffness = 0.05 }, friction = 0.2 }
    mistake.refuses(function() train({ change = { latency = 1 } }, true) end,
      "variant 2 was change stiffness 0.05, friction 0.2 and is change latency 1")
    train({ change = { stiffness = 0.05 }, friction = 0.2 }, true)
  end)

  it("give a stage of no iterations the loss and the constraints of its first one", function()
    local lists = { { { change = { gravity = 0.1 } }, { change = { gravity = -0.1, substeps = 2 } } },
      function(random) return { change = { stiffness = 0.1 * random:normal():item() } } end }
    for k, variants in ipairs(lists) do
      local found = {}
      for iterations = 0, 1 do
        local run = cq.Experiment(fields { variants = variants, reduce = "worst",
          optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.02 } },
          constraints = { { name = "height", at_most = 1, terminal = function(s) return s:center("trunk")[2] end } } })
        run:optimize { iterations = iterations, folder = ("%s/%d_%d"):format(folder, k, iterations) }
        found[iterations] = run.best
        assert.is_true(run.best.loss ~= run:evaluate().loss)
      end
      assert.equal(found[1].loss, found[0].loss)
      assert.equal(found[1].values.height, found[0].values.height)
      assert.equal(found[1].feasible, found[0].feasible)
    end
  end)

  it("are told before a training, whose speed counts all their steps, and memory none of them", function()
    -- what run:optimize tells of a training
    local function told(more, def)
      local message, said = require "cq.base.message", {}
      local own, program = message.note, option.program
      local run = cq.Experiment(fields(more))
      program.quiet = false
      -- keeps a note; the first is of the world, and no one is to be told the progress that follows
      function message.note(format, ...) said[#said + 1], program.quiet = format:format(...), true end
      local fine, problem = pcall(run.optimize, run, def)
      message.note, program.quiet = own, true
      assert.is_true(fine, problem)
      return table.concat(said, "\n"), run.world
    end
    local function steps_of(said)
      local seconds, rate = said:match "([%d.e+-]+) s an iteration, ([%d.e+-]+) million particle%-steps"
      return seconds * rate * 1e6
    end
    local listed = { {}, { change = { substeps = 2 } }, { change = { stiffness = 0.1 }, steps = 5 } }
    local alone, world = told({}, { iterations = 2, folder = folder .. "/alone" })
    local one = world.particle_count * world.substeps * STEPS
    assert.is_true(math.abs(steps_of(alone) / one - 1) < 0.02)
    mistake.says(alone, "; memory ")
    mistake.says(cq.Experiment(fields { variants = listed }):check().text, "(of the experiment without its variants)\n")
    for name, def in pairs { experiment = { variants = listed }, stage = {} } do
      local said = told(def, { iterations = 2, folder = folder .. "/" .. name,
        variants = name == "stage" and listed or nil })
      mistake.says(said, "\nmean of 3 listed variants\n")
      assert.is_nil(said:find("memory", 1, true))
      assert.is_true(math.abs(steps_of(said) / (3.5 * one) - 1) < 0.02, said)
    end
  end)

  it("are told of with the stages that take the experiment's, and in all where they were left out", function()
    local message = require "cq.base.message"
    local bursts = { count = 2, each = function(_, k) return k == 2 and { change = { strength = 3e5 } } or {} end }
    -- the notes and warnings of a training
    local function told(def)
      local note, warn, program, said = message.note, message.warn, option.program, {}
      program.quiet = false
      function message.note(format, ...) said[#said + 1], program.quiet = format:format(...), true end
      function message.warn(format, ...) said[#said + 1] = format:format(...) end
      local fine, problem = pcall(function() cq.Experiment(fields { variants = bursts }):optimize(def) end)
      message.note, message.warn, program.quiet = note, warn, true
      assert.is_true(fine, problem)
      return table.concat(said, "\n")
    end
    local function plan(given)
      return cq.Plan { { name = "a", iterations = 1, variants = false },
        { name = "b", iterations = 1, variants = given } }
    end
    mistake.says(told { plan = plan(), folder = folder .. "/takes" },
      "stages without variants of their own: mean of 2 variants of each iteration")
    assert.is_nil(told({ plan = plan { {} }, folder = folder .. "/own" }):find("without variants of their", 1, true))
    mistake.says(told { iterations = 3, folder = folder .. "/all" }, "3 of the 6 variants of these 3 iterations were left")
    mistake.says(told { iterations = 6, folder = folder .. "/all", resume = true },
      "3 of the 6 variants of these 3 iterations were left")
  end)

  it("are refused where there is nothing to change, listed or drawn", function()
    local open = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, gravity = { 0.3, -4 },
      precision = "float64", scene.robot():at { 0.4, 0.4 } }
    local without = { world = open, steps = STEPS, objective = way,
      trainable = { young = { min = 5, max = 20, per = "particle" } }, optimizer = cq.Optimizer.adam { rate = 0.02 } }
    local cases = { friction = "no wall has friction", strength = "the robot has no controller",
      noise = "the robot has no controller", latency = "the robot has no controller" }
    for name, why in pairs(cases) do
      local variant = { change = { [name] = 1 } }
      local drawn = { count = 1, each = function() return variant end }
      for kind, variants in pairs { listed = { variant }, drawn = drawn } do
        without.variants = variants
        mistake.refuses(function()
          cq.Experiment(without):optimize { iterations = 1, folder = folder .. "/" .. name .. kind }
        end, ("cq.Experiment: variant: change.%s has no effect: %s (variant 1 of 1)"):format(name, why))
      end
    end
    -- where a variant brings it, or a value of 0 may become another one, there is something to change
    local ground = scene.world(scene.robot())
    local light = scene.world(scene.robot(), { gravity = { 0, 0 } })
    local walks = { change = { noise = 0.1 }, adjust = function(f) f.controller = cq.Controller.sines { seed = 2 } end }
    for k, given in ipairs { { variants = { { world = ground, change = { friction = 0.1 } } } },
      { world = light, variants = { { change = { gravity = 0.1 } } } },
      { variants = { walks } } } do
      for name, value in pairs(without) do
        if given[name] == nil then given[name] = value end
      end
      cq.Experiment(given):optimize { iterations = 1, folder = folder .. "/fine" .. k }
    end
  end)

  it("of a list that fail at the first iteration of a later stage have more substeps", function()
    local list = { {}, { change = { strength = 25 } } }
    local function train(name, recover)
      local run = cq.Experiment(fields())
      run:optimize { folder = folder .. "/" .. name, plan = cq.Plan { { name = "a", iterations = 1 },
        { name = "b", iterations = 1, variants = list, recover = recover } } }
      return run
    end
    assert.equal(6, train("more").world.substeps)
    mistake.refuses(function() train("none", false) end, "the simulation failed at", "(variant 2 of 2)")
  end)
end)
