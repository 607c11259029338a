-- variants: an experiment that is trained over variants of its simulation, each beside the same one made by hand.
local cq = require "cq"
local host = require "cq.host"
local mistake = require "tests.sentence"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local T = require "cq.tensor"
local together = require "cq.experiment.together"
local compare = require "tests.variants"

local STEPS, way = 25, compare.way

-- a walker on the ground, whose stiffness and controller are trained; running looks at every state
local function fields(more, threads)
  local out = { world = scene.world(scene.robot(), { threads = threads }), steps = STEPS,
    observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
    controller = cq.Controller.mlp { hidden = { 6 }, seed = 1 },
    trainable = { young = { min = 5, max = 20, per = "particle" } },
    objective = { terminal = way,
      running = function(state, u) return 1e-3 * u:square():sum() + 1e-2 * state:energy() end,
      effort = function(u) return 1e-3 * u:square():sum() end },
    optimizer = cq.Optimizer.adam { rate = 0.02 } }
  for name, value in pairs(more or {}) do out[name] = value end
  return out
end

local numbers = require "cq.experiment.numbers"
local near, value_and_gradients = compare.near, compare.value_and_gradients

local listed = { {}, { change = { stiffness = 0.1, strength = -0.1 } }, { friction = 0.1, change = { density = 0.1 } },
  { change = { latency = 1, place = 0.3 } }, { change = { substeps = 2 } }, { change = { grid = 0.8 } },
  { gravity = { 0.2, -3 }, steps = STEPS } }

-- each variant alone
local function singles()
  local losses, gradients = {}, {}
  for k, variant in ipairs(listed) do
    losses[k], gradients[k] = value_and_gradients(cq.Experiment(fields { variants = { variant } }))
  end
  return losses, gradients
end

describe("variants", function()
  local losses, gradients
  setup(function()
    losses, gradients = singles()
  end)

  it("that begin elsewhere, or are told what there is not, are no scenes of the others' batch", function()
    local world = scene.world(scene.robot())
    local start = world:rollout { steps = 4, robot = world.robot:with { velocity = { 0.4, 0 } } }.state
    local function loss(variants)
      local run = cq.Experiment { world = world, steps = 4, controller = cq.Controller.sines { seed = 2 },
        objective = way, variants = variants }
      return numbers(run, run.params).objective:item()
    end
    local later = { adjust = function(given) given.from = start end }
    assert.near((loss { {} } + loss { later }) / 2, loss { {}, later }, 1e-12)
    local rough = { friction = 0.1, adjust = later.adjust }
    assert.near((loss { rough } + loss { later }) / 2, loss { rough, later }, 1e-12)
    mistake.fails("none of the 2 variants of iteration 1 can begin: world:rollout: friction must be at least 0", function()
      return loss { count = 2, each = function() return { friction = -1 } end }
    end)
    mistake.fails("unknown field frcition", function()
      return loss { {}, { adjust = function(given) given.frcition = 0 end } }
    end)
  end)

  it("have longer steps by a factor of substeps below 1, as a world of fewer has", function()
    local world = cq.Experiment(fields()).world
    assert.equal(3, world.substeps)
    for _, factor in ipairs { 0.6, 0.7 } do
      assert.equal(2, world:variant { substeps = factor }.substeps)
      local value = value_and_gradients(cq.Experiment(fields { variants = { { change = { substeps = factor } } } }))
      local less = fields()
      less.world = scene.world(scene.robot(), { substeps = 2 })
      local other = value_and_gradients(cq.Experiment(less))
      assert.equal(other, value)
    end
    assert.equal(1, world:variant { substeps = 0.01 }.substeps)
  end)

  it("train the mean: its gradient is that of each, through contact", function()
    local run = cq.Experiment(fields { variants = listed })
    local value, all = value_and_gradients(run)
    local mean, sum = 0, {}
    for k = 1, #listed do
      mean = mean + losses[k] / #listed
      for i, g in ipairs(gradients[k]) do sum[i] = (sum[i] or 0) + g / #listed end
    end
    near({ mean }, { value }, 1e-13)
    near(sum, all, 1e-11)
    for k = 2, #listed do assert.is_true(losses[k] ~= losses[1]) end
    -- the loss of {} is that of the experiment
    assert.equal(cq.Experiment(fields()):evaluate().loss, losses[1])
  end)

  it("train the worst, and the mean of a share of the worst", function()
    local order = {}
    for k = 1, #listed do order[k] = k end
    table.sort(order, function(a, b) return losses[a] > losses[b] end)
    local function restated(weights)
      local value, sum = 0, {}
      for i, weight in ipairs(weights) do
        value = value + weight * losses[order[i]]
        for j, g in ipairs(gradients[order[i]]) do sum[j] = (sum[j] or 0) + weight * g end
      end
      return value, sum
    end
    local edge = 0.4 * #listed
    local cases = { [{ 1 }] = "worst", [{ 1 / edge, 1 / edge, (edge - 2) / edge }] = { cvar = 0.4 },
      [{ 1, 0 }] = { cvar = 0.01 } }
    for weights, reduce in pairs(cases) do
      local value, all = value_and_gradients(cq.Experiment(fields { variants = listed, reduce = reduce }))
      local expected, sum = restated(weights)
      near({ expected }, { value }, 1e-13)
      near(sum, all, 1e-11)
    end
  end)

  it("run as one batch where they share world and steps", function()
    local sizes, rollouts = {}, together.rollouts
    together.rollouts = function(group)
      sizes[#sizes + 1] = #group
      return rollouts(group)
    end
    local run = cq.Experiment(fields { variants = listed })
    local fine, problem = pcall(numbers, run, run.params)
    together.rollouts = rollouts
    assert.is_true(fine, problem)
    assert.same({ 5, 1, 1 }, sizes)
  end)

  it("have gradients that differences agree with, with noise, delay and functions of one's own", function()
    local run = cq.Experiment(fields { variants = function(random)
      return { change = { noise = 0.05, latency = 1, density = 0.1 * random:normal():item() } }
    end, observer = { observe = function(_, state, before)
      local x = state:center "trunk"
      return cq.concat { x, before or x }, x
    end } })
    local leaf = run.params.controller.b2
    local _, grads = T.value_and_grad(function(p)
      return (numbers(run, p)).objective
    end)(run.params)
    local function at(shift)
      leaf:set(leaf:get(1) + shift, 1)
      local value = numbers(run, run.params).objective:item()
      leaf:set(leaf:get(1) - shift, 1)
      return value
    end
    local slope, exact = (at(1e-5) - at(-1e-5)) / 2e-5, grads.controller.b2:get(1)
    assert.is_true(exact ~= 0 and math.abs(slope - exact) < 1e-6 * math.abs(exact) + 1e-10,
      ("%.12g and %.12g"):format(slope, exact))
  end)

  it("are drawn anew for each iteration, by the seed and the iteration alone, or once", function()
    local function seen(fixed)
      local out = {}
      local run = cq.Experiment(fields { variants = { count = 3, fixed = fixed, each = function(random, k)
        out[#out + 1] = random:uniform():item() + k
        return {}
      end } })
      for _, iteration in ipairs { 1, 2, 1 } do
        run.iteration = iteration
        numbers(run, run.params, 1)
      end
      return out
    end
    local drawn, fixed = seen(false), seen(true)
    for k = 1, 3 do
      assert.is_true(drawn[k] ~= drawn[k + 3])
      assert.equal(drawn[k], drawn[k + 6])
      assert.equal(fixed[k], fixed[k + 3])
    end
  end)

  it("tell the cells that they have, where the ground asks for others", function()
    local message, said = require "cq.base.message", {}
    local own = message.note_once
    function message.note_once(format, ...) said[#said + 1] = format:format(...) end
    local run = cq.Experiment(fields { variants = { {}, { change = { grid = 1 } }, { change = { grid = 0.8 } } } })
    local worked, problem = pcall(numbers, run, run.params, 1)
    message.note_once = own
    assert.is_true(worked, problem)
    assert.same({ "change.grid = 0.8: cells are 0.75 times as large, so that the ground is on a node" }, said)
  end)

  it("have noise of the program's seed", function()
    local option = require "cq.option"
    local function loss(seed)
      local before = option.program.seed
      option.program.seed = seed
      local run = cq.Experiment(fields { variants = { { change = { noise = 0.5 } } } })
      local out = numbers(run, run.params).objective:item()
      option.program.seed = before
      return out
    end
    assert.equal(loss(0), loss(nil))
    assert.equal(loss(7), loss(7))
    assert.is_true(loss(7) ~= loss(0) and loss(7) ~= loss(8))
  end)

  it("may be experiments of their own, and levels of one, whose parameters come by place", function()
    local function problem(level)
      local c = level.coarsen
      local robot = scene.robot { count = math.floor(4 / c + 0.5) }
      local out = fields()
      out.world = cq.World { cells = { 24 / c, 24 / c }, dx = c / 24, dt = 6e-3, substeps = 5, gravity = { 0.3, -4 },
        precision = "float64", walls = cq.Boundary.floor { at = 3 / 24, mu = 0.4 }, robot:at { 0.4, 0.127 } }
      return out
    end
    local fine = cq.Experiment(problem { coarsen = 0.8 })
    local function with(variants)
      return cq.Experiment(function(level)
        local out = problem(level)
        out.variants = level.coarsen == 1 and variants or nil
        return out
      end)
    end
    local by_grid, by_hand = with { { change = { grid = 0.8 } } }, with { fine }
    local value, all = value_and_gradients(by_grid)
    local other, same = value_and_gradients(by_hand)
    assert.equal(value, other)
    assert.same(all, same)
    assert.is_true(fine.world.particle_count > by_grid.world.particle_count)
    -- a uniform body is the same one there
    assert.is_true(math.abs(value - fine:evaluate().loss) < 1e-12)
    local young = 0
    local _, grads = T.value_and_grad(function(p) return (numbers(by_grid, p)).objective end)(by_grid.params)
    for _, g in ipairs(grads.robot.young:totable()) do young = young + math.abs(g) end
    assert.is_true(young > 0)
  end)

  it("have their own world on a finer grid, and refuse to sample a body or a robot that is given", function()
    local function problem(level)
      return fields { world = scene.world(scene.robot { count = math.floor(4 / level.coarsen + 0.5) }),
        controller = cq.Controller.sines { seed = 2 } }
    end
    local ice = scene.world(scene.robot(), { walls = cq.Boundary.floor { at = 3 / 24, mu = 0.1 } })
    local function loss(variant, from)
      local run = cq.Experiment(from or function(level)
        local out = problem(level)
        out.variants = { variant }
        return out
      end)
      return numbers(run, run.params).objective:item()
    end
    local there = loss { world = ice, change = { grid = 0.8 } }
    assert.equal(loss { world = ice:refined(0.8) }, there)
    assert.is_true(there ~= loss { world = ice } and there ~= loss { change = { grid = 0.8 } })
    local robot = scene.robot()
    for _, made in ipairs { false, fields { world = scene.world(robot) } } do
      if made then made.variants = { { robot = robot:with { density = 2 }, change = { grid = 0.8 } } } end
      mistake.fails("change.grid samples the bodies of the world again, and cannot do so with the robot that is given",
        function() return loss({ robot = robot:with { density = 2 }, change = { grid = 0.8 } }, made or nil) end)
    end
    -- what the function of a level gets wrong says at which level
    mistake.fails("got 31.25 at position 1 (level: coarsen 0.8) (variant 1 of 1)", function()
      return loss({ change = { grid = 0.8 } }, function(level)
        local cells = { 25 / level.coarsen, 24 }
        local out = fields { world = cq.World { cells = cells, dx = 1 / 24, dt = 6e-3, robot:at { 0.4, 0.127 } } }
        out.variants = level.coarsen == 1 and { { change = { grid = 0.8 } } } or nil
        return out
      end)
    end)
  end)
end)

describe("a training over variants", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function variants(random) return { change = { stiffness = 0.1 * random:normal():item(), noise = 0.02 } } end

  local function train(path, iterations, more, threads)
    more = more or { variants = { each = variants, count = 3 }, reduce = { cvar = 0.5 } }
    local run = cq.Experiment(fields(more, threads))
    run:optimize { iterations = iterations, folder = path, resume = iterations > 2 and host.kind(path) ~= nil }
    return run
  end

  local function history(path) return require("cq.run").read_history(path) end

  it("tells mean and worst, goes on as if it had not stopped, and has the same bits on any threads", function()
    local whole = train(folder .. "/whole", 4)
    train(folder .. "/parts", 2)
    local parts = train(folder .. "/parts", 4)
    local two = train(folder .. "/two", 4, nil, 2)
    local rows = { history(folder .. "/whole"), history(folder .. "/parts"), history(folder .. "/two") }
    for i = 1, 4 do
      local row = rows[1][i]
      assert.is_true(row.worst > row.loss and row.loss > row.mean, i)
      for k = 2, 3 do
        for _, name in ipairs { "loss", "mean", "worst" } do assert.equal(row[name], rows[k][i][name]) end
      end
    end
    for _, other in ipairs { parts, two } do
      for _, leaf in ipairs(T.leaves.list(whole.params)) do
        assert.is_true(leaf.tensor:equal(T.leaves.pair(whole.params, other.params)[leaf.tensor]), leaf.path)
      end
    end
  end)

  it("may be a stage of a plan, or be left out of one", function()
    local plan = cq.Plan { { name = "nominal", iterations = 2 },
      { name = "all", iterations = 2, variants = { {}, { change = { density = 0.1 } } }, reduce = "worst" },
      { name = "again", iterations = 1, variants = false } }
    mistake.says(tostring(plan), "worst of 2 variants")
    local run, left = cq.Experiment(fields()), {}
    cq.Run.on_record = function(one) left[#left + 1] = one.progress.part.left / one.progress.part.work end
    run:optimize { plan = plan, folder = folder .. "/plan" }
    cq.Run.on_record = false
    -- in iterations of the present stage: one with two variants counts twice
    assert.same({ 6, 5, 1.5, 0.5, 0 }, left)
    local rows = history(folder .. "/plan")
    assert.is_nil(rows[2].mean)
    assert.is_true(rows[3].worst == rows[3].loss and rows[3].mean < rows[3].worst)
    assert.is_nil(rows[5].mean)
    local other = cq.Experiment(fields { variants = { {}, { friction = 0.2 } } })
    other:optimize { folder = folder .. "/other", plan = cq.Plan { { name = "one", iterations = 1, reduce = "worst" },
      { name = "two", iterations = 1, variants = false } } }
    rows = history(folder .. "/other")
    assert.equal(rows[1].worst, rows[1].loss)
    assert.is_nil(rows[2].worst)
    -- another ensemble is another problem
    local third = cq.Experiment(fields { variants = { {}, { friction = 0.2 } } })
    third:optimize { iterations = 1, folder = folder .. "/third" }
    third = cq.Experiment(fields { variants = { {}, { friction = 0.2 } }, reduce = "worst" })
    local function go_on() third:optimize { iterations = 2, folder = folder .. "/third", resume = true } end
    mistake.says(mistake.of(go_on), "mean of 2 listed variants")
  end)

  it("goes on within a stage that has variants of its own", function()
    local function staged(path, iterations, resume)
      local run = cq.Experiment(fields())
      run:optimize { folder = folder .. path, resume = resume or false, plan = cq.Plan {
        { name = "nominal", iterations = 1 },
        { name = "all", iterations = iterations, variants = { {}, { change = { density = 0.1 } } } } } }
      return run.loss_last
    end
    staged("/parts", 1)
    assert.equal(staged("/whole", 3), staged("/parts", 3, true))
  end)

  it("refuses a listed variant that cannot work before it makes its folder", function()
    local other = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 3e-3, substeps = 3, precision = "float64",
      walls = cq.Boundary.box { kind = "friction", mu = 0.4 }, scene.robot():at { 0.4, 0.127 } }
    local function refused(words, second, more)
      more = more or {}
      more.variants = { {}, second }
      local run = cq.Experiment(fields(more))
      mistake.says(mistake.of(function() run:optimize { iterations = 1, folder = folder .. "/none" } end), words)
      assert.is_nil(host.kind(folder .. "/none"))
    end
    local pulses = { controller = cq.Controller.open_loop { steps = STEPS } }
    refused("the signals are those of control steps of 0.006, and the world has control steps of 0.003",
      { world = other }, pulses)
    refused("(variant 2 of 2)", { world = other }, pulses)
    refused("did you mean stiffness?", { change = { stifness = 0.1 } })
  end)

  it("keeps constraints of all variants", function()
    local run = cq.Experiment(fields { variants = { {}, { change = { gravity = 0.1 } } }, reduce = "worst",
      constraints = { { name = "height", at_most = 1, terminal = function(s) return s:center("trunk")[2] end } } })
    local found = numbers(run, run.params)
    local highest = -math.huge
    for _, variant in ipairs { {}, { gravity = { 0.33, -4.4 } } } do
      highest = math.max(highest, run:evaluate(variant).height)
    end
    assert.is_true(math.abs(found.height:item() - highest) < 1e-12, found.height:item() - highest)
  end)
end)

-- Of drawn variants those that cannot begin, alone or in a batch, are left out: loss and gradient are of the others.
describe("variants that cannot begin", function()
  local function drawn(list)
    return cq.Experiment(fields { variants = { count = #list, each = function(_, k) return list[k] end } })
  end
  -- the warnings of f
  local function warnings(f)
    local message, said = require "cq.base.message", {}
    local own = message.warn
    function message.warn(format, ...) said[#said + 1] = format:format(...) end
    local worked, problem = pcall(f)
    message.warn = own
    assert.is_true(worked, problem)
    return table.concat(said, "\n")
  end
  local fine, outside = { change = { strength = -0.1 } }, { change = { place = 30 } }

  it("are left out, and told", function()
    local expected, gradients = value_and_gradients(cq.Experiment(fields { variants = { {}, fine } }))
    local slower = { change = { place = 30, substeps = 2 } }
    for _, list in ipairs { { {}, outside, fine }, { outside, {}, fine }, { {}, fine, slower } } do
      local run = drawn(list)
      local value, found
      local said = warnings(function() value, found = value_and_gradients(run) end)
      near({ expected }, { value }, 1e-6)
      near(gradients, found, 1e-5)
      assert.equal(1, run.ensemble.left_out.count)
      mistake.says(said, "of iteration 1 cannot begin and is left out (1 so far): ")
    end
  end)

  it("or fail by themselves alone are left out of their iteration", function()
    local bursts = { change = { strength = 3e5 } }
    local expected, gradients = value_and_gradients(cq.Experiment(fields { variants = { {}, fine } }))
    for _, list in ipairs { { {}, bursts, fine }, { bursts, {}, fine, bursts }, { {}, fine, outside, bursts } } do
      local run = drawn(list)
      local value, found
      local said = warnings(function() value, found = value_and_gradients(run) end)
      near({ expected }, { value }, 1e-6)
      near(gradients, found, 1e-5)
      mistake.says(said, "of iteration 1 fails and is left out (", " so far): the simulation failed at")
      -- the next iterations of a training go on
      run = drawn(list)
      said = warnings(function() run:optimize { iterations = 3, folder = scratch.open() .. "/run" } end)
      mistake.says(said, (" of the %d variants of these 3 iterations were left out in all"):format(3 * #list))
      scratch.close()
      assert.equal(3, run.world.substeps)
    end
  end)

  it("by the parameters, or of a list, are an error", function()
    local heavy = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, gravity = { 0, -1e5 }, substeps = 3,
      scene.robot():at { 0.4, 0.127 } }
    local run = cq.Experiment(fields { world = heavy, variants = { count = 2, each = function() return fine end } })
    local said = warnings(function()
      mistake.says(mistake.of(function() return numbers(run, run.params) end), "the simulation failed at",
        "(variant 1 of 2)")
    end)
    assert.equal("", said)
    run = cq.Experiment(fields { variants = { {}, { change = { strength = 3e5 } } } })
    mistake.says(mistake.of(function() run:optimize { iterations = 3, folder = scratch.open() .. "/run" } end),
      "a variant fails before any update of its stage", "it failed at control step", "(variant 2 of 2)")
    scratch.close()
    assert.equal(3, run.world.substeps)
  end)

  it("since memory is short are an error", function()
    local run = cq.Experiment(fields { memory = "1 KiB", variants = { count = 2, each = function() return fine end } })
    local said = warnings(function()
      mistake.says(mistake.of(function() value_and_gradients(run) end), "the memo needs at least", "(variant 1 of 2)")
    end)
    assert.equal("", said)
  end)

  it("are an error where all fail", function()
    local run = drawn { { change = { strength = 3e5 } } }
    warnings(function()
      mistake.says(mistake.of(function() return numbers(run, run.params) end), "the simulation failed at")
    end)
  end)

  it("are an error with a loss that is not finite", function()
    local own = cq.Experiment(fields()):rollout(cq.Experiment(fields()).params).state:center("trunk")[2]:item()
    local run = cq.Experiment(fields { variants = { {}, { gravity = { 0, -1 } } }, objective = function(state)
      local x = state:center("trunk")[2]
      return x:item() == own and x or x * (0 / 0)
    end })
    mistake.says(mistake.of(function() return numbers(run, run.params) end),
      "the loss is nan, which is no finite number (variant 2 of 2)")
  end)

  it("are an error where none is left, and in a list", function()
    local run = drawn { outside, outside }
    warnings(function()
      mistake.says(mistake.of(function() return numbers(run, run.params, 1) end),
        "none of the 2 variants of iteration 1 can begin")
    end)
  end)
end)

-- Steps that are too long for the values of variants, and not for those of the experiment.
describe("variants of a too large Courant number", function()
  local stiff, listless = { change = { stiffness = 90 } }, { change = { strength = -0.1 } }
  local message = require "cq.base.message"
  -- f(), and the notes that it made
  local function notes(f)
    local said, own = {}, message.note
    function message.note(format, ...) said[#said + 1] = format:format(...) end
    local worked, problem = pcall(f)
    message.note = own
    assert.is_true(worked, problem)
    return said
  end
  local by_hand = { change = { stiffness = 90, substeps = 2 } }

  it("alone have more substeps, and are told, drawn or in a list", function()
    local expected, gradients = value_and_gradients(cq.Experiment(fields { variants = { {}, by_hand, listless } }))
    local list = { {}, stiff, listless }
    for _, variants in ipairs { list, { count = 3, each = function(_, k) return list[k] end } } do
      local run, value, found = cq.Experiment(fields { variants = variants }), nil, nil
      local said = notes(function() value, found = value_and_gradients(run) end)
      assert.equal(expected, value)
      assert.same(gradients, found)
      assert.equal(3, run.world.substeps)
      assert.equal(1, #said)
      mistake.says(said[1], "variant 2 of iteration 1 is simulated with substeps = 6 and not 3")
      assert.same({}, notes(function() value_and_gradients(run) end))
    end
  end)

  it("leave the world of a training as it is", function()
    local folder = scratch.open()
    local run = cq.Experiment(fields { variants = { {}, stiff } })
    local said = notes(function() run:optimize { iterations = 2, folder = folder .. "/run" } end)
    scratch.close()
    assert.equal(3, run.world.substeps)
    assert.is_nil(run.first_substeps)
    local count = 0
    for _, line in ipairs(said) do
      if line:find("substeps", 1, true) then count = count + 1 end
    end
    assert.equal(1, count)
  end)

  it("are at fault only where the experiment's own is not", function()
    local run = cq.Experiment(fields { variants = { listless, stiff } })
    run.params.robot.young:copy_from(run.params.robot.young:detach() * 100)
    mistake.says(mistake.of(function() return numbers(run, run.params) end), "the Courant number of the robot's values")
  end)
end)

describe("variants of bad input", function()
  local function says(f, ...)
    local sentence = mistake.of(f)
    for _, part in ipairs { ... } do mistake.says(sentence, part) end
  end
  local function of(more) return function() return cq.Experiment(fields(more)) end end
  local function used(more)
    return function()
      local run = cq.Experiment(fields(more))
      return numbers(run, run.params, 1)
    end
  end

  it("is told in a sentence", function()
    says(of { variants = {} }, "cq.Experiment: variants is an empty list; give one at least")
    says(of { variants = 3 }, "variants must be a function(random, k), a list, or")
    says(of { variants = { count = 3 } }, "each")
    says(of { reduce = "mean" }, "reduce is of the losses of variants, and there are none")
    says(of { variants = { {} }, reduce = "median" },
      'reduce must be "mean", "worst" or { cvar = 0.3 }, the mean of the worst three tenths, got "median" (did you mean mean?)')
    says(of { variants = { {} }, reduce = 0.3 }, "{ cvar = 0.3 }", "got 0.3")
    says(of { variants = { {} }, reduce = { cvar = 0 } }, "cvar", "above 0")
    says(of { variants = { {} }, reduce = { share = 0.1 } }, "share")
    says(of { variants = { {} }, scenes = { count = 2, each = function() return {} end } }, "one scene")
    says(used { variants = { 3 } }, "a variant must be a table", "(variant 1 of 1)")
    says(used { variants = { {}, { change = { stifness = 0.1 } } } }, "variant: change has no",
      "did you mean stiffness?")
    says(used { variants = { { change = { 0.1 } } } }, "variant: change has no 1", "it has stiffness, density")
    says(of { variants = { {}, {}, count = 7 } }, 'variants: takes a list, whose entries have no names, got one with the name "count"')
    local function whole(more) return cq.Experiment(fields(more)) end
    says(used { variants = { whole { variants = { {} } } } }, "an experiment with variants of its own",
      "(variant 1 of 1)")
    says(used { variants = { whole { scenes = { count = 1, each = function() return {} end } } } },
      "an experiment with scenes of its own")
    says(used { variants = { whole { trainable = {} } } }, "without the parameter robot.young of the one that is trained")
    says(used { variants = { {}, whole() }, trainable = {} },
      "with the parameter robot.young, which the one that is trained has not", "(variant 2 of 2)")
    says(used { variants = { {}, { change = { noise = "much" } } } }, "change.noise", "number")
    says(used { variants = { {}, { change = { stiffness = -1 } } } }, "variant: change.stiffness", "above -1")
    says(used { variants = { {}, { change = { substeps = 0 } } } }, "change.substeps", "above 0")
    says(used { variants = { {}, { change = { substeps = 0.9 } } } },
      "change.substeps has no effect: 0.9 times 3 substeps are as many", "(variant 2 of 2)")
    local long = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1.8e-2, substeps = 3, precision = "float64",
      gravity = { 0.3, -4 }, scene.robot():at { 0.4, 0.127 } }
    says(used { world = long, variants = { {}, { change = { substeps = 0.4 } } } },
      "change.substeps = 0.4 makes steps too long: the Courant number would be 1.7", "0.67 or more")
    says(used { variants = { {}, { change = { grid = 0 } } } }, "change.grid", "at least 0.1")
    says(used { variants = { { change = { grid = 1.25 } } } }, "change.grid must be at most 1", "got 1.25")
    says(used { variants = { {}, { change = { latency = 2 } } } }, "change.latency", "at most 1")
    says(used { variants = { { young = 3 } } }, "young")
    says(used { variants = { { robot = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.02 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } } } } }, "(variant 1 of 1)")
    says(used { variants = { {}, { change = { place = 30 } } } }, "outside the world")
    says(function()
      local run = cq.Experiment(fields { variants = function() return {} end })
      run.optimizer = cq.Optimizer.nlopt { algorithm = "slsqp" }
      run:optimize { iterations = 1, folder = "/nowhere/of/this" }
    end, "compares losses of different iterations", "fixed = true")
    assert.equal(1, process.cqlua({ "-e", 'require("cq").Experiment { variants = 1 }' }).code)
  end)

  it("says once which variant it is, in a batch too", function()
    for part, wrong in pairs {
      ["change has no"] = { change = { stifness = 0.1 } }, ["above -1"] = { change = { stiffness = -1 } },
      ["outside the world"] = { change = { place = 30 } }, ["overlaps wall 1"] = { change = { place = -8 } },
      ["the Courant number"] = { change = { stiffness = 1e5 } }, ["friction must be"] = { friction = -1 },
      ["fails before any update of its stage"] = { change = { strength = 1e7 } }, ["must be a table"] = 3,
    } do
      local sentence = mistake.of(used { variants = { {}, wrong, {} } })
      mistake.says(sentence, part, " (variant 2 of 3)")
      assert.equal(1, select(2, sentence:gsub("variant %d", "")), sentence)
    end
  end)
end)
