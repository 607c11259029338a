-- constrained: experiments with constraints: place and rest of a small robot, histories, going on, and mistakes.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local STEPS = 30

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

-- how far the trunk is above the foot
local function height(state) return state:center("trunk")[2] - state:center("foot")[2] end

local function world_of()
  local robot = scene.robot { count = 3 }
  return cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 8e-3, substeps = 4, gravity = { 0, 0 }, damping = 2,
    precision = "float64", robot:at { 0.4, 0.4 } }
end

-- a robot that floats is to be 0.105 high, and at rest, in the end, with the least effort
local function experiment(optimizer, changes)
  local world = world_of()
  local fields = {
    world = world, steps = STEPS, controller = cq.Controller.open_loop { steps = STEPS }, optimizer = optimizer,
    objective = { effort = function(u) return u:square():mean() end },
    constraints = {
      { name = "place", equal = 0.105, tolerance = 1e-5, terminal = height },
      { name = "rest", at_most = 1e-4, terminal = function(state) return state:mean_square_velocity(world.robot) end },
      { name = "highest", at_most = 0.1052, running = height, reduce = "max" },
      { name = "strongest", at_most = 0.15, of = function(params) return params.controller.u:abs():max() end },
    },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function lagrangian() return cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.02 } } end
local function slsqp() return cq.Optimizer.nlopt { algorithm = "slsqp" } end

local function history(path)
  local rows, columns = {}, nil
  for line in process.read(path .. "/history.csv"):gmatch "[^\n]+" do
    local cells = {}
    for cell in (line .. ","):gmatch "([^,]*)," do cells[#cells + 1] = cell end
    if columns then
      local row = {}
      for k, name in ipairs(columns) do row[name] = tonumber(cells[k]) end
      rows[#rows + 1] = row
    else
      columns = cells
    end
  end
  return rows, table.concat(columns, ",")
end

-- what a rollout with these parameters says of the constraints
local function measure(run, params)
  local highest = -math.huge
  local roll = run:rollout(params, { on_step = function(state)
    if state.step > 0 then highest = math.max(highest, height(state):item()) end
  end })
  return {
    place = height(roll.state):item(), rest = roll.state:mean_square_velocity(run.robot):item(), highest = highest,
    strongest = params.controller.u:abs():max():item(), objective = params.controller.u:square():mean():item(),
  }
end

local function check_kept(values)
  assert.is_true(math.abs(values.place - 0.105) <= 1.01e-5, values.place)
  assert.is_true(values.rest <= 1e-4 * (1 + 2e-4) and values.highest <= 0.1052 * (1 + 2e-4)
    and values.strongest <= 0.15 * (1 + 2e-4))
end

describe("an experiment with constraints", function()
  local efforts = {}
  local methods = {
    slsqp = { slsqp, 40 }, ipopt = { function() return cq.Optimizer.ipopt { tolerance = 1e-4 } end, 200 },
    ["an augmented Lagrangian"] = { lagrangian, 450 },
  }
  for name, method in pairs(methods) do
    it(("places a robot at rest, by %s"):format(name), function()
      local run = experiment(method[1]())
      local result = run:optimize { iterations = method[2], folder = folder .. "/a" }
      assert.is_true(run.best.feasible, tostring(result.solution))
      local values = measure(run, run.best.params)
      check_kept(values)
      for key, value in pairs(run.best.values) do assert.is_true(math.abs(value - values[key]) < 1e-6, key) end
      assert.equal(run.best.loss, result.best)
      assert.equal(run.best.loss, result.solution.objective)
      efforts[name] = run.best.loss
      local rows, columns = history(folder .. "/a")
      assert.equal(result.iterations, #rows)
      says(columns, "iteration,loss,")
      local best = rows[run.best.iteration]
      for key, value in pairs(run.best.values) do assert.equal(value, best[key == "objective" and "loss" or key]) end
      assert.is_true(cq.load(folder .. "/a").parameters.controller.u:equal(run.best.params.controller.u))
    end)
  end

  it("needs the same effort by all of them", function()
    local least, most = math.huge, 0
    for _, effort in pairs(efforts) do least, most = math.min(least, effort), math.max(most, effort) end
    assert.is_true(least > 0 and most < 1.25 * least, ("%g to %g"):format(least, most))
  end)

  it("goes on in its folder to the same bits", function()
    for k, make in ipairs { lagrangian, function() return cq.Optimizer.nlopt { algorithm = "slsqp",
      objective_tolerance = 0 } end } do
      local whole = experiment(make())
      whole:optimize { iterations = 24, folder = folder .. "/whole" .. k }
      experiment(make()):optimize { iterations = 9, folder = folder .. "/parts" .. k }
      local rest = experiment(make())
      local result = rest:optimize { iterations = 24, folder = folder .. "/parts" .. k, resume = true }
      assert.equal(24, result.iterations)
      assert.is_true(whole.params.controller.u:equal(rest.params.controller.u))
      assert.equal(whole.best.loss, rest.best.loss)
      assert.equal(whole.best.iteration, rest.best.iteration)
      local one, other = history(folder .. "/whole" .. k), history(folder .. "/parts" .. k)
      for i, row in ipairs(one) do
        row.seconds, other[i].seconds = nil, nil
        assert.same(row, other[i])
      end
    end
  end)

  it("goes on with the same constraints and optimizer alone, and says so", function()
    local one = { { name = "place", equal = 0.105, terminal = height } }
    local other = { { name = "place", at_most = 0.1, terminal = height } }
    local higher = { { name = "place", equal = 0.11, terminal = height } }
    local function adam() return cq.Optimizer.adam { rate = 0.02 } end
    local cases = {
      { lagrangian, one, lagrangian, other, "constraint place was equal 0.105 within 1.05e-05 and is at most 0.1 within 1e-05" },
      { lagrangian, {}, lagrangian, one, "constraint place was none and is equal 0.105 within 1.05e-05" },
      { slsqp, {}, slsqp, one, "constraint place was none and is equal 0.105 within 1.05e-05; go on with the same one" },
      { lagrangian, one, lagrangian, higher,
        "constraint place was equal 0.105 within 1.05e-05 and is equal 0.11 within 1.1e-05; go on with the same one" },
      { lagrangian, {}, adam, {}, "optimizer.bin is of cq.Optimizer.augmented_lagrangian, this is cq.Optimizer.adam" },
      { adam, {}, lagrangian, {}, "is of cq.Optimizer.adam, this is cq.Optimizer.augmented_lagrangian" },
    }
    for k, case in ipairs(cases) do
      local path = folder .. "/" .. k
      experiment(case[1](), { constraints = case[2] }):optimize { iterations = 2, folder = path }
      says(sentence(function()
        experiment(case[3](), { constraints = case[4] }):optimize { iterations = 4, folder = path, resume = true }
      end), case[5])
      require("cq.run").close_open "odd"
    end
  end)

  it("stops at Ctrl-C, within an evaluation too, and saves", function()
    local calls = 0
    local run = experiment(slsqp(), { objective = { effort = function(u) return u:square():mean() end,
      terminal = function(state)
      calls = calls + 1
      if calls == 6 then C.cq_interrupt(1) end
      return 0 * height(state)
    end } })
    local result = run:optimize { iterations = 50, folder = folder .. "/a" }
    C.cq_interrupt(0)
    assert.equal("interrupted", result.solution.status)
    assert.is_true(result.iterations == 5 or result.iterations == 6)
    assert.equal(result.iterations, T.load(folder .. "/a/optimizer.bin").iteration)
  end)

  it("can keep constraints alone", function()
    local run = experiment(slsqp())
    local first = run:optimize { iterations = 100, folder = folder .. "/a", minimize = "violation" }
    assert.equal("converged", first.solution.status)
    check_kept(run.best.values)
  end)

  it("says what cannot be kept, and by how much", function()
    local run = experiment(slsqp(), { constraints = {
      { name = "place", equal = 0.12, terminal = height }, { name = "highest", at_most = 0.11, running = height,
        reduce = "max" },
    } })
    local result = run:optimize { iterations = 25, folder = folder .. "/a" }
    assert.equal("infeasible", result.solution.status)
    assert.is_false(run.best.feasible)
    says(result.solution:violations(), "violated by")
    local c = result.solution.constraints
    assert.is_true(c.place.violation > 1e-4 or c.highest.violation > 1e-4)
    assert.is_true(math.abs(c.place.violation - math.abs(run.best.values.place - 0.12)) < 1e-15)
  end)

  it("takes an optimizer that makes its own loop without constraints", function()
    local run = experiment(cq.Optimizer.nlopt { algorithm = "lbfgs" }, { constraints = {},
      objective = { terminal = function(state) return (100 * (height(state) - 0.102)):square() end } })
    local before = run:evaluate().loss
    local result = run:optimize { iterations = 12, folder = folder .. "/a" }
    assert.is_true(result.best < 1e-2 * before)
  end)

  it("is checked before it runs", function()
    local report = experiment(slsqp()):check()
    assert.is_true(report.values.place > 0.09 and report.values.place < 0.11)
    says(sentence(function()
      experiment(slsqp(), { constraints = { { name = "place", equal = 1,
        terminal = function() return "high" end } } }):check()
    end), 'constraint place: terminal must give one number, got "high"')
  end)

  it("is 0 of what runs where no control step is made", function()
    local high = { name = "high", at_most = 1, running = height, reduce = "max" }
    assert.equal(0, experiment(slsqp(), { constraints = { high } }):evaluate({ steps = 0 }).high)
  end)

  it("sums what runs, with the signals, to the slopes of differences", function()
    local u = T.param(T.full({ STEPS, 2 }, 0.1))
    local run = experiment(lagrangian(), { controller = cq.Controller.open_loop(u), constraints = {
      { name = "sum", at_most = 1, running = function(state,
        signals) return height(state) * signals:square():sum() end },
      { name = "mean", at_most = 1, running = height, reduce = "mean" },
      { name = "own", at_most = 1, running = height, reduce = function(x) return x[3] * x[4] end },
      { name = "of", at_most = 1, of = function(_, roll) return roll.state:center("trunk"):sum() end },
    } })
    run:optimize { iterations = 1, folder = folder .. "/a" }
    local values = run.best.values
    local heights = {}
    run:rollout({ controller = { u = T.full({ STEPS, 2 }, 0.1) } },
      { on_step = function(state) heights[state.step] = height(state):item() end })
    local sum = 0
    for i = 1, STEPS do sum = sum + heights[i] end
    assert.is_true(math.abs(values.sum - 0.02 * sum) < 1e-12)
    assert.is_true(math.abs(values.mean - sum / STEPS) < 1e-12)
    assert.is_true(math.abs(values.own - heights[3] * heights[4]) < 1e-12)
    local function f(p)
      local roll = run.world:rollout { steps = STEPS, controller = cq.Controller.open_loop(p), record = function(state,
        signals)
        return T.stack { height(state) * signals:square():sum(), signals:sum() }
      end }
      return roll.record:slice(1, 1, 2):sum() + 0.3 * roll.record:slice(2, 2, 2):square():sum()
    end
    local check = cq.check_gradient(f, u, { noise = 1e-8 })
    for _, direction in ipairs(check.directions) do
      assert.is_true(direction.verdict ~= "wrong" and direction.error < 1e-3, tostring(check))
    end
  end)
end)

describe("a mistake in a constraint", function()
  local function refused(constraint, more)
    local fields = { constraints = { constraint } }
    for key, value in pairs(more or {}) do fields[key] = value end
    return sentence(function()
      experiment(fields.optimizer or slsqp(), fields):optimize { iterations = 3, folder = folder .. "/a" }
    end)
  end

  it("is a sentence", function()
    local one = function() return 1 end
    local cases = {
      { { equal = 1, terminal = one }, "cq.Experiment: constraint: name is missing, it must be a string" },
      { { name = "a", equal = 1 }, "cq.Experiment: constraint a needs one of terminal, running and of, got 0 of them" },
      { { name = "a", equal = 1, terminal = one, of = one },
        "cq.Experiment: constraint a needs one of terminal, running and of, got 2 of them" },
      { { name = "a", equal = 1, terminal = one, reduce = "max" },
        "cq.Experiment: constraint a: reduce is of running, and has no effect without it" },
      { { name = "a", terminal = one }, "cq.Experiment: a needs either at_most or equal" },
      { { name = "a,b", equal = 1, terminal = one },
        'cq.Experiment: a name has no commas, quotes and line ends, got "a,b"' },
      { { name = "gradient", equal = 1, terminal = one }, "cq.Experiment: a constraint cannot be called gradient" },
      { { name = "stage", equal = 1, terminal = one }, "cq.Experiment: a constraint cannot be called stage" },
      { { name = "task", equal = 1, terminal = one }, "cq.Experiment: a constraint cannot be called task" },
      { { name = "skipped", equal = 1, terminal = one }, "cq.Experiment: a constraint cannot be called skipped" },
      { { name = "a", equal = 1, terminale = one },
        "cq.Experiment: constraint: unknown field terminale (did you mean terminal?)" },
      { { name = "a", equal = 1, terminal = function(s) return s:center "foot" end },
        "cq.Experiment: constraint a: terminal must give one number, got a tensor {2}" },
      { { name = "a", equal = 1, terminal = function() end },
        "cq.Experiment: constraint a: terminal must give one number, got nil" },
      { { name = "a", equal = 1, of = function() return true end },
        "cq.Experiment: constraint a: of must give one number, got true" },
      { { name = "a", equal = 1, running = function(s) return s:center "foot" end },
        "cq.Experiment: constraint a: running must give one number, got a tensor {2} (in constraint a, control step 1 of 30)" },
      { { name = "a", equal = 1, terminal = function(s) return height(s) / 0 end },
        '"a" is inf, which is no finite number (iteration 1 of 3)' },
    }
    for _, case in ipairs(cases) do says(refused(case[1]), case[2]) end
    local heavy = { name = "a", at_most = 1e-9, of = function(_, roll) return roll.world.robot.volume:sum() end }
    local message, told = require "cq.base.message", {}
    local own = message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    for k, scenes in ipairs { false, { count = 2, each = function() return {} end } } do
      local run = experiment(lagrangian(), { constraints = { heavy }, scenes = scenes or nil })
      run:optimize { iterations = 3, folder = folder .. "/unreached" .. k }
      says(told[k], "run:optimize: no parameter reaches the constraint a: ")
    end
    message.warn = own
    assert.equal(2, #told)
    says(refused({ name = "a", equal = 1, terminal = one }, { optimizer = cq.Optimizer.adam { rate = 1 } }),
      "cq.Optimizer.adam knows no constraints; put it into cq.Optimizer.augmented_lagrangian")
    says(sentence(function() experiment(slsqp(), { constraints = {} }):optimize { iterations = 3,
      minimize = "violation" } end),
      'run:optimize: stage "training": minimize "violation" needs constraints')
  end)
end)
