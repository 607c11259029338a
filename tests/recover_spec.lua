-- recover: updates that are too long for the simulation are halved, and its steps where that does not help.
local cq = require "cq"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local option = require "cq.option"
local process = require "tests.process"

local robot = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.025 },
  material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1 } }
local world = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = 10, precision = "float64",
  robot:at { 0.2, 0.4 } }

describe("run:optimize { recover }", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  -- the faster the block flies, the better; at 0.65 it leaves the world
  local function experiment(optimizer, constraints)
    return cq.Experiment { world = world, steps = 100, trainable = { velocity = { init = { 0, 0 } } },
      objective = function(state) return -state:center(robot)[1] end, optimizer = optimizer, constraints = constraints }
  end

  local function optimize(run, halvings)
    return run:optimize { iterations = 4, folder = folder, resume = false,
      recover = halvings and { halvings = halvings, substeps = 1 } }
  end

  it("halves what fails, unless it is not to", function()
    local none = { { name = "any", at_most = 10, terminal = function(state) return state:center(robot)[1] end } }
    local lagrangian = function()
      return cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.gradient_descent { rate = 0.4 } }
    end
    local function plain() return cq.Optimizer.gradient_descent { rate = 0.4 } end
    for _, how in ipairs { { plain }, { lagrangian, none } } do
      local run = experiment(how[1](), how[2])
      mistake.says(mistake.of(function() optimize(run, false) end), "the simulation failed at")
      process.remove(folder)
      run = experiment(how[1](), how[2])
      optimize(run, 6)
      -- 0.4, 0.6 (0.8 failed), 0.65 at the most (1.0 and 0.8 failed)
      local rows = cq.Run.read_history(folder)
      assert.equal(4, #rows)
      assert.near(-0.25, rows[1].loss, 1e-9)
      assert.near(-0.65, rows[2].loss, 1e-9)
      assert.is_true(rows[3].loss < rows[2].loss and rows[4].loss < rows[3].loss, rows[4].loss)
      assert.same({ 1, true }, { rows[3].halvings, rows[4].halvings > 1 })
      process.remove(folder)
    end
  end)

  it("goes on as if it had not been stopped, also where the next update fails at first", function()
    local any = { { name = "any", at_most = 10, terminal = function(state) return state:center(robot)[1] end } }
    local function lagrangian()
      return cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.gradient_descent { rate = 0.4 } }
    end
    local function plain() return cq.Optimizer.gradient_descent { rate = 0.4 } end
    for k, how in ipairs { { plain }, { lagrangian, any } } do
      local function make(name, iterations, resume)
        local run = experiment(how[1](), how[2])
        run:optimize { iterations = iterations, folder = ("%s/%s%d"):format(folder, name, k), resume = resume,
          recover = { halvings = 6, substeps = 1 } }
        return run
      end
      local whole = make("whole", 4, false)
      make("parts", 2, false)
      local parts = make("parts", 4, true)
      assert.is_true(parts.params.robot.velocity:equal(whole.params.robot.velocity))
    end
  end)

  it("leaves parameters as the update made them where anything else ends an evaluation", function()
    local keeper, evaluations = require("cq.experiment.recover").new { halvings = 5, substeps = 1 }, 0
    local x = cq.param { 1 }
    keeper:evaluate(function() return 0 end, { x })
    x:copy_from(cq.tensor { 9 })
    local fine, problem = pcall(keeper.evaluate, keeper, function()
      evaluations = evaluations + 1
      error(evaluations < 3 and "the simulation failed at control step 1" or "interrupted at control step 1", 0)
    end, { x })
    assert.same({ false, "interrupted at control step 1", 3 }, { fine, problem, evaluations })
    assert.equal(9, x:item())
    keeper:evaluate(function(params)
      if params[1]:item() > 4 then error("the simulation failed at control step 1", 0) end
      return 0
    end, { x })
    assert.equal(3, x:item())
  end)

  it("gives up after as many halvings, and says so", function()
    local run = experiment(cq.Optimizer.gradient_descent { rate = 10 })
    mistake.says(mistake.of(function() optimize(run, 3) end),
      "so it did with the last update halved 3 times (recover = { halvings = 3, substeps = 1 }) (iteration 2 of 4)")
    mistake.says(mistake.of(function() optimize(run, -1) end),
      "halvings must be a whole number at least 0 and at most 50, got -1")
    mistake.says(mistake.of(function() run:optimize { iterations = 4, backtracks = 3 } end),
      "unknown field backtracks (its name is recover = { halvings = n } now)")
  end)

  it("makes the steps of the world shorter where half an update does not help, and they stay so", function()
    local soft = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.025 },
      material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1 },
      actuators = cq.Actuator.isotropic { count = 1, max = 8e3 } }:with { actuation_weight = cq.ones { 16, 1 } }
    local shaken = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = 20, precision = "float64",
      soft:at { 0.2, 0.4 } }
    local function train(name, iterations, resume, recover)
      local start = cq.param({ 0.1 }, { min = 0, max = 0.9 })
      local run = cq.Experiment { world = shaken, steps = 30,
        controller = { params = { start = start }, act = function(self) return self.params.start:reshape { 1 } end },
        objective = { effort = function(u) return -u:sum() end },
        optimizer = cq.Optimizer.gradient_descent { rate = 1, clip = 0.8 } }
      shaken:set_substeps(20)
      run:optimize { iterations = iterations, folder = folder .. "/" .. name, resume = resume, recover = recover }
      return run, cq.Run.read_history(folder .. "/" .. name)
    end
    mistake.says(mistake.of(function() train("none", 3, false, false) end), "the simulation failed at")
    process.remove(folder .. "/none")
    local whole, rows = train("whole", 4, false, { halvings = 0 })
    assert.equal(40, shaken.substeps)
    local told = {}
    for k, row in ipairs(rows) do told[k] = row.substeps or 0 end
    assert.equal(40, math.max(unpack(told)))
    -- losses of fewer substeps are of another problem
    assert.equal(whole.best.loss, whole:evaluate().loss)
    -- a run that goes on has them from the start
    train("parts", 2, false, { halvings = 0 })
    local parts = train("parts", 4, true, { halvings = 0 })
    assert.equal(whole.loss_last, parts.loss_last)
    assert.equal(40, shaken.substeps)
  end)

  it("gives each start its own substeps", function()
    local seed = option.program.seed
    option.program.seed = 5
    local function problem()
      local soft = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.025 },
        material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1 },
        actuators = cq.Actuator.isotropic { count = 1, max = 8e3 } }:with { actuation_weight = cq.ones { 16, 1 } }
      local shaken = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = 20, precision = "float64",
        soft:at { 0.2, 0.4 } }
      local start = cq.param { option.program.seed == 5 and 0.9 or 0.1 }
      return { world = shaken, steps = 30,
        controller = { params = { start = start }, act = function(self) return self.params.start:reshape { 1 } end },
        objective = { effort = function(u) return -u:sum() end },
        optimizer = cq.Optimizer.gradient_descent { rate = 1, clip = 0.8 } }
    end
    local function plan()
      return cq.Plan { starts = { count = 2, keep = 1 },
        { name = "only", iterations = 1, recover = { halvings = 0 } } }
    end
    local run, made = cq.Experiment(problem), {}
    local result = run:optimize { folder = folder, resume = false, plan = plan(),
      on_iteration = function(_, _, own) made[#made + 1] = own.world.substeps end }
    assert.same({ 40, 20 }, made)
    assert.is_true(result.starts[1].loss < result.starts[2].loss)
    assert.same({ 40, run.best.loss }, { run.world.substeps, run:evaluate().loss })
    -- who looks at the run again has those of the best, without a training
    local again = cq.Experiment(problem)
    option.program.replay = true
    local fine, why = pcall(again.optimize, again, { folder = folder, plan = plan() })
    option.program.replay, option.program.seed = nil, seed
    assert(fine, why)
    assert.same({ 40, run.best.loss }, { again.world.substeps, again:evaluate().loss })
    -- and who trains in its world is told
    local message, told = require "cq.base.message", {}
    local warn = message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    cq.Experiment { world = run.world, steps = 2, trainable = { velocity = { init = { 0, 0 } } },
      objective = function(state) return -state:center(run.world.robots[1])[1] end,
      optimizer = cq.Optimizer.adam { rate = 0.1 } }:optimize { iterations = 1, folder = folder .. "/other" }
    message.warn = warn
    assert.same({ "run:optimize: the world has substeps = 40 and not 20, which an earlier training of it needed" }, told)
  end)

  it("leaves an update out that no step is short enough for, and the optimizer begins anew", function()
    local run = experiment(cq.Optimizer.momentum { rate = 0.15, momentum = 0.9 })
    run:optimize { iterations = 6, folder = folder, resume = false, recover = { halvings = 0, substeps = 2 } }
    local rows, speed, skipped = cq.Run.read_history(folder), {}, {}
    for k, row in ipairs(rows) do
      speed[k], skipped[k] = math.floor(1e6 * (-row.loss - 0.25) + 0.5) / 1e6, row.skipped or 0
    end
    -- 0.84 leaves the world; from 0.435 it begins with the rate alone, and 0.87 is left out too
    assert.same({ 0, 0.15, 0.435, 0.435, 0.585, 0.585 }, speed)
    assert.same({ 0, 0, 0, 1, 0, 1 }, skipped)
    assert.equal(10, world.substeps)
    process.remove(folder)
    run = experiment(cq.Optimizer.gradient_descent { rate = 10 })
    mistake.says(mistake.of(function()
      run:optimize { iterations = 9, folder = folder, resume = false, recover = { halvings = 0, substeps = 2 } }
    end), "so it did with substeps = 80 (recover = { halvings = 0, substeps = 2 }) (iteration 5 of 9)")
    -- for what else the script does with the world
    assert.equal(10, world.substeps)
  end)

  it("says where the start itself failed", function()
    local message, told = require "cq.base.message", {}
    local note, set = message.note, message.note_once
    local evaluations = 0
    local made = require("cq.experiment.recover").new({ halvings = 2, substeps = 2 }, function() return 20 end)
    message.note = function(format, ...) told[#told + 1] = format:format(...) end
    for _, fails in ipairs { 1, 3 } do
      made:evaluate(function()
        evaluations = evaluations + 1
        if evaluations <= fails then error("the simulation failed at step 3", 0) end
      end, { x = cq.param { 1 } })
    end
    message.note, message.note_once = note, set
    assert.same({ "the simulation failed after the start, and runs with substeps = 20 from now on",
      "the simulation failed after an update, and runs with 1/2 of it" }, told)
  end)

  it("leaves other errors alone", function()
    local seen = 0
    local run = cq.Experiment { world = world, steps = 2, trainable = { velocity = { init = { 0, 0 } } },
      objective = function(state)
        seen = seen + 1
        if seen == 2 then error("a mistake of the script", 0) end
        return -state:center(robot)[1]
      end, optimizer = cq.Optimizer.gradient_descent { rate = 0.1 } }
    local _, problem = pcall(optimize, run, 5)
    mistake.says(tostring(problem), "a mistake of the script (iteration 2 of 4)")
    assert.equal(2, seen)
  end)
end)
