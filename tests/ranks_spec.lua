-- ranks: sums that do not depend on the number of processes, failures that all of them know, and experiments over
-- several scenes. Over MPI: tests/ranks/mpi.sh.
local cq = require "cq"
local ffi = require "ffi"
local host = require "cq.host"
local message = require "cq.base.message"
local mistake = require "tests.sentence"
local option = require "cq.option"
local process = require "tests.process"
local ranks = require "cq.ranks"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local together = require "tests.together"
local tree = require "cq.ranks.tree"

local sentence, says, fails = mistake.of, mistake.says, mistake.fails

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

-- numbers of very different sizes, whose sum depends on the order
local function numbers(scenes, length)
  return cq.random { seed = 5 }:normal({ scenes, length }) * (cq.random { seed = 6 }:normal({ scenes, 1 }) * 12):exp()
end

local function summed(size, scenes, length)
  local all = numbers(scenes, length)
  local results = together.run(size, function(processes)
    local sums = tree.new(scenes, length, processes)
    local first, last = tree.scenes(scenes, processes.rank, processes.size)
    for k = first, last do
      local vector = sums:vector()
      for i = 0, length - 1 do vector[i] = all:get(k + 1, i + 1) end
      sums:put(k, vector)
    end
    local total = sums:sum()
    return { total = total and ffi.string(total, length * 8), sent = sums.sent }
  end)
  for rank = 1, size - 1 do assert.is_nil(results[rank].total) end
  return results[0].total, results
end

describe("the tree of sums", function()
  it("has the same bits on any number of ranks", function()
    for _, scenes in ipairs { 1, 2, 3, 7, 8, 13, 64, 100 } do
      local alone = summed(1, scenes, 3)
      for _, size in ipairs { 2, 3, 4, 7, 19 } do
        assert(alone == summed(size, scenes, 3), ("%d scenes on %d ranks"):format(scenes, size))
      end
    end
  end)

  it("adds all scenes, in an order that matters", function()
    local all, double = numbers(100, 3), ffi.new "double[3]"
    ffi.copy(double, (summed(4, 100, 3)), 24)
    local in_turn = { 0, 0, 0 }
    local differ = false
    for i = 1, 3 do
      local size = 0
      for k = 1, 100 do
        in_turn[i], size = in_turn[i] + all:get(k, i), size + math.abs(all:get(k, i))
      end
      assert(math.abs(double[i - 1] - in_turn[i]) < 1e-13 * size)
      differ = differ or double[i - 1] ~= in_turn[i]
    end
    assert(differ, "a test of these numbers could not fail")
  end)

  it("gives every scene to one rank, and spares the first", function()
    for scenes = 1, 20 do
      for size = 1, 20 do
        local next = 0
        for rank = 0, size - 1 do
          local first, last = tree.scenes(scenes, rank, size)
          for k = first, last do
            assert.equal(next, k)
            assert.equal(rank, tree.owner(k, scenes, size))
            next = next + 1
          end
        end
        assert.equal(scenes, next)
      end
    end
    local _, results = summed(16, 64, 1)
    for rank = 0, 15 do assert.equal(rank == 0 and 0 or 1, results[rank].sent) end
  end)
end)

-- a function of parameters and scenes that knows all tensors' gradients
local function wave(p, k) return (p.a * k):sin():sum() * (k / 3) + p.b:square():sum() end

local function params() return { a = cq.param(cq.arange(5)), b = cq.param(2) } end

local function descend(size, f, change)
  return together.run(size, function(processes)
    local p = params()
    if change then change(p, processes.rank) end
    local loss, grads, losses = ranks.of(processes):value_and_grad(9, f)(p)
    return { loss = loss, a = grads.a, b = grads.b:item(), losses = losses }
  end)
end

describe("ranks", function()
  it("give the mean of scenes and its gradient, all the same", function()
    local p, alone = params(), descend(1, wave)[0]
    local loss, grads = cq.value_and_grad(function(q)
      local sum = 0
      for k = 1, 9 do sum = wave(q, k) + sum end
      return sum / 9
    end)(p)
    assert.is_true(math.abs(alone.loss - loss) < 1e-12)
    assert.is_true((alone.a - grads.a):abs():max():item() < 1e-12)
    assert.is_true(math.abs(alone.b - grads.b:item()) < 1e-12)
    for k = 1, 9 do assert.equal(wave(p, k):item(), alone.losses[k]) end
    for _, size in ipairs { 2, 4, 7 } do
      local all = descend(size, wave)
      for rank = 0, size - 1 do
        assert.equal(alone.loss, all[rank].loss)
        assert.is_true(alone.a:equal(all[rank].a))
        assert.same(alone.losses, all[rank].losses)
      end
    end
    local here = { ranks.alone():value_and_grad(9, wave)(p) }
    assert.equal(alone.loss, here[1])
  end)

  it("give several numbers with their gradients, the same on all", function()
    local names = { "objective", "far", "plain" }
    local function named(p, k)
      return { objective = wave(p, k), far = k == 4 and p.a:sum() or p.b:square():sum() * k, plain = k }
    end
    local function descend_all(size)
      return together.run(size, function(processes)
        return { ranks.of(processes):values_and_grads(9, names, named)(params()) }
      end)
    end
    local alone = descend_all(1)[0]
    local values, grads = unpack(alone)
    for _, name in ipairs { "objective", "far" } do
      local loss, grad = ranks.alone():value_and_grad(9, function(p, k) return named(p, k)[name] end)(params())
      assert.equal(loss, values[name])
      assert.is_true(grad.a:equal(grads[name].a) and grad.b:equal(grads[name].b))
    end
    assert.same({ 5, 0 }, { values.plain, grads.plain.a:abs():sum():item() })
    for _, size in ipairs { 2, 3, 7, 12 } do
      local all = descend_all(size)
      for rank = 0, size - 1 do
        assert.same(values, all[rank][1])
        for _, name in ipairs(names) do assert.is_true(grads[name].a:equal(all[rank][2][name].a)) end
      end
    end
    fails("parameter a does not reach any of one, two", function()
      local function of_b(p) return { one = p.b * 1, two = p.b * 2 } end
      ranks.alone():values_and_grads(3, { "one", "two" }, of_b)(params())
    end)
  end)

  it("hand on what else a scene is given, and release its rollouts", function()
    local world, released = scene.world(scene.robot()), 0
    local step = ranks.alone():value_and_grad(3, function(p, k, factor)
      local roll = world:rollout { steps = 1, gravity = p.g }
      local release = roll.release
      roll.release = function(self)
        released = released + 1
        release(self)
      end
      return roll.state:center("foot")[2] * (factor * k), roll
    end)
    local p = { g = cq.param { 0, -1 } }
    assert.is_true(math.abs(2 * step(p, 1) - step(p, 2)) < 1e-12)
    assert.equal(6, released)
  end)

  it("map scenes to numbers, with the mean of value_and_grad", function()
    local p = params()
    for _, size in ipairs { 1, 4 } do
      local results = together.run(size, function(processes)
        return { ranks.of(processes):map(9, function(k) return wave(p, k) end) }
      end)
      local loss = descend(size, wave)[0].loss
      for rank = 0, size - 1 do
        assert.equal(9, #results[rank][1])
        assert.equal(loss, results[rank][2])
      end
    end
    fails("f must give one number, got \"a\" (scene 1 of 2)", function()
      ranks.alone():map(2, function() return "a" end)
    end)
  end)

  it("know of the failure of each, in the same words", function()
    local _, problems = descend(4, function(p, k)
      if k == 6 then error("no such goal", 0) end
      return wave(p, k)
    end)
    for rank = 0, 3 do assert.equal("rank 2 of 4 (node2): no such goal (scene 6 of 9)", problems[rank]) end
    _, problems = descend(3, function(p, k) return wave(p, k) * (k == 9 and 0 / 0 or 1) end)
    assert(problems[0]:find("rank 2 of 3 %(node2%): .*nan, which is no finite number %(scene 9 of 9%)"), problems[0])
    fails("(scene 2 of 3)", function()
      ranks.alone():value_and_grad(3, function(p, k) return p.a:sum() / (k - 2) end)(params())
    end)
  end)

  it("refuse others' parameters, scenes and ways", function()
    local _, problems = descend(3, wave, function(p, rank)
      if rank == 1 then p.a:data()[2] = 2.5 end
    end)
    for rank = 0, 2 do says(problems[rank], "the parameters of rank 1 of 3 (node1) are not those of rank 0") end
    _, problems = together.run(3, function(processes)
      return ranks.of(processes):value_and_grad(processes.rank == 2 and 8 or 9, wave)(params())
    end)
    for rank = 0, 2 do assert.equal("rank 2 of 3 (node2) has 8 scenes and rank 0 has 9", problems[rank]) end
    _, problems = together.run(3, function(processes)
      local all = ranks.of(processes)
      if processes.rank == 1 then return all:map(9, function() return 1 end) end
      return all:value_and_grad(9, wave)(params())
    end)
    says(problems[0], "rank 1 of 3 (node1) has come to evaluate scenes and rank 0 to compute gradients")
  end)

  it("refuse a parameter that no scene reaches, and take one that a single scene does", function()
    local function one(p, k) return k == 4 and wave(p, k) or p.b:square():sum() end
    local results = descend(3, one)
    assert.is_true(results[1].a:abs():sum():item() > 0)
    fails("parameter a does not reach the objective", function()
      ranks.alone():value_and_grad(3, function(p) return p.b:square():sum() end)(params())
    end)
    fails("count must be a whole number at least 1 and at most 2147483647, got 0", function() ranks.alone():value_and_grad(0, wave) end)
  end)

  it("warn of those that have nothing to do", function()
    local told, warn = {}, message.warn
    message.warn = function(...) told[#told + 1] = string.format(...) end
    together.run(3, function(processes)
      ranks.of(processes):map(2, function() return 1 end)
      return true
    end)
    message.warn = warn
    assert.equal(3, #told)
    assert.equal("3 ranks for 2 scenes: 1 have nothing to do; start at most 2", told[1])
  end)

  it("read a file of the first", function()
    process.write(folder .. "/a", "some bytes\0\1")
    local results = together.run(3, function(processes)
      local all = ranks.of(processes)
      assert(all:fetch(processes.rank == 0 and folder .. "/none" or folder .. "/a") == nil)
      local path = all:fetch(processes.rank == 0 and folder .. "/a" or "elsewhere")
      local bytes = process.read(path)
      if processes.rank > 0 then os.remove(path) end
      return bytes
    end)
    for rank = 0, 2 do assert.equal("some bytes\0\1", results[rank]) end
  end)

  it("write nothing but for the first", function()
    option.program.follows = true
    local fine, problem = pcall(function()
      local run = cq.Run.open { folder = folder .. "/run" }
      run:record { loss = 1 }
      run:save(1, params())
      run:finish(params())
      cq.save(folder .. "/a.bin", { 1 })
      cq.Plot { series = { { y = { 1, 2 } } } }:write(folder .. "/a.png")
      local film = cq.Picture.video { path = folder .. "/a.mp4" }
      film:add(cq.Picture.canvas { width = 20, height = 20 })
      assert.equal(folder .. "/a.mp4", film:close())
    end)
    option.program.follows = nil
    assert.is_true(fine, problem)
    assert.same({}, host.entries(folder))
  end)
end)

-- ---- experiments ----------------------------------------------------------------------------------------------------

local function experiment(changes)
  local world = scene.world(scene.robot())
  local fields = {
    world = world, steps = 6, observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
    controller = cq.Controller.linear { seed = 2 }, optimizer = cq.Optimizer.adam { rate = 0.05 },
    objective = function(s) return -s:velocity("trunk")[2] end,
    scenes = { count = 3, each = function(k)
      return { gravity = { 0, -2 * k }, objective = function(s) return s:center("trunk")[1] * k end }
    end },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function plain(k)
  local world = scene.world(scene.robot())
  local controller = cq.Controller.linear { seed = 2 }
  local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true }
  controller:prepare(world, observer)
  return cq.value_and_grad(function(p)
    local roll = world:rollout { steps = 6, observer = observer, controller = controller:with(p),
      gravity = { 0, -2 * k } }
    return roll.state:center("trunk")[1] * k
  end)(controller.params)
end

describe("an experiment over scenes", function()
  it("has the mean loss of them, and its gradient", function()
    local run, loss, w = experiment(), 0, nil
    for k = 1, 3 do
      local one, grads = plain(k)
      loss, w = loss + one, w and w + grads.w1 or grads.w1
    end
    local found = run:evaluate()
    local mean, losses = found.loss, found.losses
    assert.is_true(math.abs(mean - loss / 3) < 1e-12)
    assert.equal(3, #losses)
    assert.equal(losses[2], run:scene(2):evaluate().loss)
    local taken
    run.optimizer.update = function(_, _, grads) taken = grads.controller.w1 end
    run:optimize { iterations = 1, folder = folder .. "/a" }
    assert.is_true((taken - w / 3):abs():max():item() < 1e-10)
    assert.equal(mean, run.best.loss)
  end)

  it("goes down, on and to pictures as with one", function()
    local whole = experiment()
    local result = whole:optimize { iterations = 4, folder = folder .. "/whole" }
    assert.is_true(result.loss < experiment():evaluate().loss)
    experiment():optimize { iterations = 2, folder = folder .. "/parts" }
    local parts = experiment()
    parts:optimize { iterations = 4, folder = folder .. "/parts", resume = true }
    assert.is_true(parts.params.controller.w1:equal(whole.params.controller.w1))
    assert.truthy(whole:scene(3):render(folder .. "/three.png", { width = 96 }))
    assert.truthy(process.read(folder .. "/three.png") ~= nil)
    assert.equal(6, parts:check().steps)
  end)

  it("keeps constraints of which each is the mean over scenes", function()
    local function constrained(limit, more)
      local function speed(s) return s:velocity("trunk"):square():sum() end
      local fields = { optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.02 } },
        constraints = {
          { name = "slow", at_most = limit, terminal = speed },
          { name = "mild", at_most = 100, of = function(p) return p.controller.w1:square():sum() end },
        },
      }
      for key, value in pairs(more or {}) do fields[key] = value end
      return experiment(fields)
    end
    local free, slow = constrained(100), 0
    for k = 1, 3 do
      slow = slow + free:scene(k):rollout(free.params).state:velocity("trunk"):square():sum():item() / 3
    end
    free:optimize { iterations = 1, folder = folder .. "/free" }
    assert.equal(free.best.loss, free:evaluate().loss)
    assert.near(slow, free.best.values.slow, 1e-12 * slow)
    -- one more is kept where the mean is: gradients of all scenes lead there
    local bound = constrained(0.3 * slow)
    local solution = bound:optimize({ iterations = 40, folder = folder .. "/bound" }).solution
    assert.is_true(solution.feasible and bound.best.values.slow <= 0.3 * slow * 1.0001)
    assert.truthy(process.read(folder .. "/bound/history.csv"):find "^[^\n]*,slow[,\n]")
    local whole, rest = constrained(0.5 * slow), constrained(0.5 * slow)
    whole:optimize { iterations = 12, folder = folder .. "/whole" }
    constrained(0.5 * slow):optimize { iterations = 6, folder = folder .. "/parts" }
    rest:optimize { iterations = 12, folder = folder .. "/parts", resume = true }
    assert.is_true(rest.params.controller.w1:equal(whole.params.controller.w1))
  end)

  it("gives a scene a robot, an observer and signals of its own", function()
    local world = scene.world(scene.robot())
    local run = cq.Experiment {
      world = world, steps = 4, trainable = { young = { min = 1, max = 100, per = "group" } },
      objective = function(s) return s:center("trunk")[2] end, optimizer = cq.Optimizer.adam { rate = 0.1 },
      scenes = { count = 2, each = function(k)
        return { controller = cq.Controller.open_loop(cq.full({ 4, 2 }, 0.5 * k)), damping = k,
          robot = world.robot:with { density = 1.0 * k } }
      end },
    }
    local losses = run:evaluate().losses
    local roll = world:rollout { robot = world.robot:with { density = 2.0 }, steps = 4, damping = 2,
      controller = cq.Controller.open_loop(cq.full({ 4, 2 }, 1)) }
    assert.equal(roll.state:center("trunk")[2]:item(), losses[2])
    assert.is_true(losses[1] ~= losses[2])
  end)

  it("says what is wrong", function()
    local function with(each, more)
      local changes = { scenes = { count = 2, each = each } }
      for key, value in pairs(more or {}) do changes[key] = value end
      return function() experiment(changes):evaluate() end
    end
    fails("scene 1: each must give a table, as { robot = ..., objective = ... }, got 1", with(function() return 1 end))
    fails("cq.Experiment: scene: unknown field gravty (did you mean gravity?)", with(function() return { gravty = 1 } end))
    fails("scene 1: the experiment's controller has weights, and is that of all scenes", with(function()
      return { controller = cq.Controller.linear {} }
    end))
    fails("scene 1: gravity is trained, and cannot be the scene's", with(function() return { gravity = { 0, 1 } } end,
      { trainable = { gravity = { init = { 0, -1 } } } }))
    fails("run:scene: k must be a whole number at least 1 and at most 3, got 4", function() experiment():scene(4) end)
    fails("a scene is not optimized alone", function() experiment():scene(1):optimize { iterations = 1 } end)
    says(sentence(function() experiment { scenes = false }:scene(1) end), "scenes must be a table")
  end)
end)

-- ---- the object of MPI ----------------------------------------------------------------------------------------------

describe("cq.Ranks.mpi", function()
  local script = [[
    local ranks = cq.Ranks.mpi()
    local step = ranks:value_and_grad(4, function(p, k) return (p * k):square():sum() end)
    print(ranks, step(cq.param { 1, 2 }))
  ]]

  it("is one process where mpirun has started none, and says what is missing", function()
    local built = host.kind(host.executable:match "^(.*/)" .. "cqlua-mpi.so") == "file"
    local result = process.cqlua { "-e", script }
    if built then
      assert.equal("", (result.err:gsub("^not started by mpirun: this process computes all scenes[^\n]*\n$", "")))
      assert(result.out:find("cq.Ranks: rank 0 of 1\t37.5\t", 1, true), result.out)
    else
      says(result.err, "install the Debian packages libopenmpi-dev and openmpi-bin, and build it with `make mpi`")
    end
    result = process.cqlua({ "-e", script }, { before = "CQLUA_MPI=/nowhere/cqlua-mpi.so" })
    says(result.err, "CQLUA_MPI names /nowhere/cqlua-mpi.so, which cannot be read")
    assert.equal(1, result.code)
  end)

  it("names the packages where it was not built", function()
    assert(os.execute(("cp %s %s/cqlua"):format(host.executable, folder)) == 0)
    os.execute(("cd %s && CQLUA_ROOT=%s ./cqlua -e 'cq.Ranks.mpi()' 2> err"):format(folder, host.root))
    says(process.read(folder .. "/err"), "there is no cqlua-mpi.so beside it: install the Debian packages "
      .. "libopenmpi-dev and openmpi-bin, and build it with `make mpi`")
  end)

  it("comes before the first world", function()
    local result = process.cqlua { "-e", [[
      require "cq.world".class.made = true
      cq.Ranks.mpi()
    ]] }
    says(result.err, "cq.Ranks.mpi: a world was made before, with all cores of the machine")
  end)
end)
