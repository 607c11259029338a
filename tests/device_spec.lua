-- device: choosing where a world runs, and whole programs with CUDA on an emulated GPU: the same results, and failures
-- that leave the folder of a run in order.
local host = require "cq.host"
local json = require "tests.json"
local process = require "tests.process"
local has = require("tests.sentence").says

local emulated = host.executable:match "^(.*)/[^/]*$" .. "/tests/cuda-emulated.so"

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- with the emulated GPU, or the object that is named, and settings of the emulation (tests/cuda/emulation/machine.h)
local function cqlua(words, settings, object)
  return process.cqlua(words, { before = ("CQLUA_CUDA='%s' CQLUA_EMULATION='%s'"):format(object or emulated, settings
    or "") })
end

local function script(content) return process.write(folder .. "/script.lua", content) end

describe("a device that is not there", function()
  it("is told before any work is done, with what to do", function()
    local result = cqlua({ "--device", "cuda", script "print 'ran'" }, "", "/nowhere/cqlua-cuda.so")
    assert.same({ 2, "" }, { result.code, result.out })
    has(result.err, "--device cuda: CQLUA_CUDA names /nowhere/cqlua-cuda.so, which cannot be read")
    has(cqlua({ "--device", "cuda", script "print 'ran'" }, "devices=0").err, "no GPU was found")
    has(cqlua({ "--device", "cuda", script "print 'ran'" }, "driver=12020").err,
      "serves CUDA 12.2; this build needs 13.0: update the driver")
  end)

  it("is told at the user's line, where a script asks for it", function()
    local content = "local scene = require 'tests.scene'\n\nscene.world(scene.robot(), { device = 'cuda' })"
    local result = cqlua({ script(content) }, "driver=0")
    assert.equal(1, result.code)
    has(result.err, "script.lua:3: cq.World: no NVIDIA driver was found on this machine: install one, or take the device \"cpu\"")
  end)

  it("is told by bench and accuracy, which leave out cases that need what it lacks and go on", function()
    local function told(command, ...)
      return cqlua { "--device", "cuda", command, "--json", "--steps", "10", "--case", ... }
    end
    local bench = told("bench", "2d-6400*", "--repeat", "1")
    assert.equal("cqlua: bench leaves out 2d-6400-averaged: f_bar is not there on CUDA; take device \"cpu\", or leave it "
      .. "away\n", bench.err)
    assert.equal(0, bench.code)
    local found = json.lines(bench.out)
    assert.same({ 1, "2d-6400", "cuda" }, { #found, found[1].case, found[1].device })
    local accuracy = told("accuracy", "?1")
    assert.equal('cqlua: accuracy leaves out I1: implicit steps are made on the CPU only; take device = "cpu"\n', accuracy.err)
    assert.same({ 0, 1, "A1" }, { accuracy.code, #json.lines(accuracy.out), json.lines(accuracy.out)[1].case })
    assert.equal(1, told("accuracy", "I1").code)    -- nothing is left
  end)

  it("is listed by info with the reason, and one that is there with its memory", function()
    has(cqlua({ "info" }, "devices=0").out, "no cuda (no GPU was found")
    has(cqlua({ "info" }, "memory=3221225472").out,
      "cuda: Emulated GPU, 3.0 of 3.0 GiB free, compute capability 7.5, driver of CUDA 13.0")
    local devices = json.lines(cqlua({ "info", "--json" }).out)[1].devices
    assert.same({ "cpu", "cuda", "Emulated GPU", 13 },
      { devices[1].kind, devices[2].kind, devices[2].name, devices[2].driver })
  end)
end)

describe("device auto", function()
  local content = [[
local cq, scene = require "cq", require "tests.scene"
local w = scene.world(scene.robot { count = cq.option("n", 4) })
print(w.device_kind, w.device)
]]

  it("takes the GPU where the particles are worth it, and tells", function()
    local small = cqlua { "--device", "auto", script(content) }
    has(small.out, "cpu\tCPU, ")
    has(small.err, "device auto: CPU, ")
    has(small.err, "there are 32")
    local large = cqlua { "--device", "auto", folder .. "/script.lua", "--n", "120" }
    has(large.out, "cuda\tCUDA, Emulated GPU")
    has(large.err, "device auto: CUDA, Emulated GPU")
    has(cqlua({ "--device", "auto", folder .. "/script.lua", "--n", "120" }, "devices=0").err,
      "; no GPU was taken: no GPU was found")
  end)

  it("is not the default", function()
    has(cqlua({ script(content), "--n", "120" }).out, "cpu\t")
  end)
end)

-- ---- whole programs -------------------------------------------------------------------------------------------------

local training = [[
local cq = require "cq"
local scene = require "tests.scene"
local dim = cq.option("dim", 2)
local world = scene.world(scene.robot { dim = dim, count = cq.option("count", 3) },
  { formulation = cq.option("formulation", "updated") })
local run = cq.Experiment {
  world = world, steps = 8, observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
  controller = cq.Controller.linear { seed = 2 }, optimizer = cq.Optimizer.adam { rate = 0.05 },
  objective = { terminal = function(s) return -s:velocity("trunk")[2] end,
    effort = function(u) return 1e-3 * u:square():sum() end },
}
run:optimize { iterations = cq.option("iterations", 4) }
]]

-- the losses of a run's history
local function losses(name)
  local out = {}
  for line in (process.read(folder .. "/" .. name .. "/history.csv") or ""):gmatch "[^\n]+" do
    out[#out + 1] = tonumber(line:match "^%d+,([^,]+)")
  end
  return out
end

local function train(name, words, settings)
  local arguments = { script(training), "--out", folder .. "/" .. name, "--quiet" }
  for _, word in ipairs(words) do table.insert(arguments, word) end
  return cqlua(arguments, settings)
end

-- what a floor that shakes gives to a block, and how the shaking acts on it
local shaken = [[
local cq, T, scene = require "cq", require "cq.tensor", require "tests.scene"
local p = { amplitude = T.param(0.02), mu = T.param(0.4) }
local function motion(t) return T.stack { p.amplitude * math.sin(100 * t), p.amplitude * (1 - math.cos(80 * t)) } end
local floor = cq.Boundary.floor { at = 0.12, mu = 0.4, motion = motion }
local world = scene.world(scene.robot(), { walls = { floor, cq.Boundary.floor { at = 0.38, axis = "x", mu = 0.1 } } })
local loss, grads = T.value_and_grad(function(q)
  p = q
  local roll = world:rollout { steps = 12, contact = true, friction = q.mu }
  return roll.contact.impulse:square():sum() * 1e4 + roll.contact.center[12][1]:sum() + roll.state:center("trunk"):sum()
end)(p)
print(("%.15g %.15g %.15g"):format(loss, grads.amplitude:item(), grads.mu:item()))
]]

-- gradients of signals and of the first state, of a sum over time whose adjoint decays
local decaying = [[
local cq, T, scene, spread = require "cq", require "cq.tensor", require "tests.scene", require "tests.spread"
local world = scene.world(scene.robot(), { floor = true })
local _, grads = T.value_and_grad(function(q)
  return world:rollout { robot = world.robot:with { velocity = q.velocity }, steps = 9, gradient = { decay = 0.02 },
    memory = cq.option("memory", "1 GiB"), controller = cq.Controller.open_loop(q.u), running = function(state)
      return state:velocity("trunk")[1] + state:center("foot"):square():sum()
    end }.running:sum()
end)({ u = T.param(spread({ 9, 2 }, -0.8, 0.8)), velocity = T.param { 0.3, -0.2 } })
local function square(t) return t:square():sum():item() end
print(("%.15g %.15g %.15g"):format(square(grads.u[2]), square(grads.u[9]), square(grads.velocity)))
]]

-- what gravity that changes with time gives to a block on a floor
local tilting = [[
local cq, T, scene = require "cq", require "cq.tensor", require "tests.scene"
local world = scene.world(scene.robot(), { floor = true, formulation = "FORMULATION" })
local p = { amplitude = T.param(3), down = T.param(-4) }
local loss, grads = T.value_and_grad(function(q)
  local function gravity(t) return T.stack { q.amplitude * math.sin(100 * t), q.down } end
  local state = world:rollout { steps = 12, gravity = gravity, memory = cq.option("memory", "1 GiB") }.state
  return state:center("trunk"):sum() + state:velocity("foot"):square():sum()
end)(p)
print(("%.15g %.15g %.15g"):format(loss, grads.amplitude:item(), grads.down:item()))
]]

-- an environment whose scenes begin again at different times, and a window with gradients from there
local stepped = [[
local cq, T, scene, spread = require "cq", require "cq.tensor", require "tests.scene", require "tests.spread"
local world = scene.world(scene.robot(), { formulation = "FORMULATION", floor = true })
local function seen(state) return state:motion { "foot", "trunk" } end
local env = cq.Env { world = world, scenes = 3, steps = 9, observer = seen,
  reset = function(random) return world.robot:with { velocity = random:uniform({ 2 }, { min = -0.5, max = 0.5 }) } end,
  reward = function(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end,
  terminate = function(after) return after:velocity("trunk"):slice(2, 2, -1):flatten():less(-0.06) end }
local last, ended = env:reset { seed = 5 }, 0
for k = 1, 6 do
  local z, _, terminated, truncated = env:step(spread({ 3, 2 }, -0.9 + 0.1 * k, 0.8))
  last, ended = z, ended + (terminated + truncated):sum():item()
end
assert(ended > 0 and ended < 18, ended)
local policy = cq.Controller.mlp { inputs = 8, signals = 2, hidden = { 6 }, seed = 2 }
local _, grads = T.value_and_grad(function(p)
  return env:window { controller = policy:with(p), steps = 4 }.reward:sum()
end)(policy.params)
local square = 0
for _, g in pairs(grads) do square = square + g:square():sum():item() end
local after = env:step(spread({ 3, 2 }, -1, 1))
print(("%.15g %.15g %.15g"):format(last:square():sum():item(), square, after:sum():item()))
]]

-- Three scenes whose adjoints are cut to the mean of their norms: norms before, norms as they are cut, gradients.
local limited = [[
local cq, T, scene, spread = require "cq", require "cq.tensor", require "tests.scene", require "tests.spread"
local material = "MATERIAL" == "plastic" and cq.Material.von_mises { young = 10, poisson = 0.3, yield_stress = 0.2,
  hardening = 0.5 } or nil
local world = scene.world(scene.robot { material = material }, { formulation = "FORMULATION" })
local function go(clip)
  local roll
  local _, grads = T.value_and_grad(function(q)
    roll = world:rollout { steps = 9, batch = 3, gradient = { clip = clip }, memory = cq.option("memory", "1 GiB"),
      controller = cq.Controller.open_loop(q.u) }
    return roll.state:velocity("trunk"):slice(1, 1, -1):sum() + roll.state:center("foot"):square():sum()
  end)({ u = T.param(spread({ 3, 9, 2 }, -0.8, 0.8)) })
  return roll:adjoint_norms(), grads.u
end
local norms = go()
local cut, grad = go(norms:mean():item())
local weight = spread(norms:shape(), 1, 2)
assert((cut - norms):norm():item() > 1e-3 * norms:norm():item())
local function sum(t) return t:sum():item() end
print(("%.15g %.15g %.15g"):format(sum(norms * weight), sum(cut * weight), sum(grad:square())))
]]

-- two blocks that fly at each other on grids of their own
local colliding = [[
local cq, T = require "cq", require "cq.tensor"
local function block(name)
  return cq.Robot { name = name, shape = cq.Shape.box { name = name, size = { 4, 4 }, spacing = 0.5 },
    material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 } }
end
local world = cq.World { cells = { 32, 24 }, dx = 1, dt = 1.6, substeps = 8, formulation = "total_lagrangian",
  precision = "float64", collisions = true, block("a"):at { 8, 10 }, block("b"):at { 12.3, 10.4 } }
local value, grads = T.value_and_grad(function(q)
  local state = world:rollout { steps = 12, memory = cq.option("memory", "1 GiB"),
    robot = { world.robots[1]:with { velocity = q.v, position = q.x }, world.robots[2] } }.state
  return state:velocity("b"):square():sum() + state:center("b")[2]
end)({ v = T.param { 0.2, 0.01 }, x = T.param(world.robots[1].position) })
local function square(t) return t:square():sum():item() end
print(("%.15g %.15g %.15g"):format(value, square(grads.v), square(grads.x)))
]]

-- A bar that flies apart by the size of its velocity's slope, and a block that flies at it, or does not.
local flying = [[
local cq = require "cq"
local function block(size)
  return cq.Robot { shape = cq.Shape.box { name = "block", size = size, spacing = 0.5 },
    material = cq.Material.neo_hookean { young = 1e-3, poisson = 0.3, density = 1 } }
end
local function fly(length, height, speed)
  local world = cq.World { cells = { 800, 40 }, dx = 1, dt = 1, substeps = 8, formulation = "total_lagrangian",
    collisions = true, block { length, height }:at { 400 - length / 2, 20 }, block { 2, 2 }:at { 420.3, 4 } }
  local bar, ball = world.robots[1], world.robots[2]
  local x, v = bar.position:data(), cq.zeros { bar.particle_count, 2 }
  for p = 0, bar.particle_count - 1 do v:data()[2 * p] = (x[2 * p] - 400) * 0.5 end
  local fine, problem = pcall(function()
    world:rollout { steps = 40, robot = { bar:with { velocity = v }, ball:with { velocity = { 0, speed } } } }
  end)
  print(fine, (tostring(problem):gsub("^[^:]+:%d+: ", "")))
end
fly(8, 1, 1)
fly(31, 12, 0)
]]

-- total Lagrangian steps that fail: two bodies meet, one flies through a stretched one, bodies begin in each other, one
-- leaves the world, one folds
local meeting = [[
local cq = require "cq"
local function block(size, young)
  return cq.Robot { shape = cq.Shape.box { name = "block", size = size, spacing = 0.5 },
    material = cq.Material.neo_hookean { young = young or 100, poisson = 0.3, density = 1 } }
end
local function failed(robots, places, velocities, options)
  local fields = { cells = { 40, 40 }, dx = 1, dt = 0.2, substeps = 4, formulation = "total_lagrangian" }
  for k, v in pairs(options or {}) do fields[k] = v end
  for k, robot in ipairs(robots) do fields[k] = robot:at(places[k]) end
  local fine, problem = pcall(function()
    local world, moving = cq.World(fields), {}
    for k, robot in ipairs(world.robots) do moving[k] = robot:with { velocity = velocities[k] } end
    world:rollout { steps = 200, robot = moving }
  end)
  print(fine, (tostring(problem):gsub("^[^:]+:%d+: ", "")))
end
failed({ block { 4, 4 }, block { 4, 4 } }, { { 8, 10 }, { 20, 10 } }, { { 1, 0 }, { -1, 0.1 } })
failed({ block { 2, 2 }, block { 1.5, 12 } }, { { 8, 15 }, { 20, 10 } }, { { 2, 0 }, { 0, 0 } })
failed({ block { 4, 4 }, block { 4, 4 } }, { { 8, 10 }, { 11, 10 } }, { { 0, 0 }, { 0, 0 } })
failed({ block { 4, 4 } }, { { 20, 20 } }, { { 1.5, 0.2 } })
-- in float32 rounding would decide when the blow becomes infinite
failed({ block({ 4, 4 }, 4) }, { { 20, 8 } }, { { 0, -30 } },
  { dt = 0.02, walls = cq.Boundary.floor { at = 4 }, precision = "float64" })
-- with collisions: bodies that begin inside of each other, and two that meet too fast
local softly = { dt = 0.05, collisions = { stiffness = 0.02 } }
failed({ block { 4, 4 }, block { 4, 4 } }, { { 8, 10 }, { 11, 10 } }, { { 0, 0 }, { 0, 0 } }, softly)
failed({ block { 4, 4 }, block { 4, 4 } }, { { 8, 10 }, { 20, 10.3 } }, { { 4, 0 }, { -4, 0.1 } }, softly)
]]

describe("a training on the GPU", function()
  it("is that on the CPU", function()
    for dim = 2, 3 do
      local cpu, cuda = "cpu" .. dim, "cuda" .. dim
      assert.same({ 0, "" }, { train(cpu, { "--dim", dim }).code,
        train(cuda, { "--dim", dim, "--device", "cuda" }, "thread_order=2").err })
      local a, b = losses(cpu), losses(cuda)
      assert.same({ 4, 4 }, { #a, #b })
      for i = 1, 4 do assert.near(a[i], b[i], 1e-9 * math.abs(a[i])) end
      assert(a[4] < a[1])
      has(process.read(folder .. "/" .. cuda .. "/manifest.json"),
        '"device": "CUDA, Emulated GPU, driver 13.0, float64"')
    end
  end)

  it("is that on the CPU by total Lagrangian steps", function()
    local words = { "--formulation", "total_lagrangian", "--count", "4" }
    local on_gpu = { "--formulation", "total_lagrangian", "--count", "4", "--device", "cuda" }
    assert.same({ 0, "" }, { train("lagrangian-cpu", words).code,
      train("lagrangian-cuda", on_gpu, "thread_order=2").err })
    local a, b = losses "lagrangian-cpu", losses "lagrangian-cuda"
    assert.same({ 4, 4 }, { #a, #b })
    for i = 1, 4 do assert.near(a[i], b[i], 1e-9 * math.abs(a[i])) end
  end)

  it("by total Lagrangian steps fails with the sentences of the CPU", function()
    local path, said = script(meeting), {}
    for k, device in ipairs { "cpu", "cuda" } do
      local result = cqlua { "--device", device, path }
      assert.same({ 0, "" }, { result.code, result.err })
      -- when a crushed block bursts, and which of its particles is told, rounding decides
      said[k] = result.out:gsub('at control step %d+ %b(): particle %d+ (of robot, group "block", has)',
        "at some time: a particle %1")
    end
    assert.equal(said[1], said[2])
    local count = 0
    for _ in said[1]:gmatch "the simulation failed" do count = count + 1 end
    assert.equal(7, count, said[1])
  end)

  it("goes on with the positions before, where the grids of others found no memory", function()
    local result = cqlua({ script [[
local cq = require "cq"
local robot = cq.Robot { shape = cq.Shape.box { name = "b", size = { 12, 12 }, spacing = 0.5 },
  material = cq.Material.neo_hookean { young = 50, poisson = 0.3, density = 1 } }
local world = cq.World { cells = { 400, 400 }, dx = 1, dt = 0.1, substeps = 4, formulation = "total_lagrangian",
  device = "cuda", robot:at { 180, 180 } }
local x = world.robot.position
local function go(positions)
  return pcall(function()
    return world:rollout { steps = 5, memory = "1 MiB", robot = world.robot:with { position = positions } }
      .state:positions()
  end)
end
local _, first = go(x)
local fits, problem = go((x - 186) * 30 + 200)
local _, again = go(x)
print(fits, tostring(problem):find("out of memory: grids of bodies", 1, true) ~= nil, first:equal(again))
]] }, "memory=2097152")
    assert.same({ 0, "false\ttrue\ttrue\n", "" }, { result.code, result.out, result.err })
  end)

  -- the three numbers that a script prints
  local function same_numbers(content, least)
    local path, out = script(content), {}
    for k, device in ipairs { "cpu", "cuda" } do
      local result = cqlua { "--device", device, path }
      assert.same({ 0, "" }, { result.code, result.err })
      out[k] = {}
      for number in result.out:gmatch "%S+" do table.insert(out[k], tonumber(number)) end
    end
    for i = 1, 3 do
      assert(math.abs(out[1][i]) > least, out[1][i])
      assert.near(out[1][i], out[2][i], 1e-10 * math.abs(out[1][i]))
    end
  end

  it("reads contacts, and follows walls whose velocity changes, as one on the CPU does", function()
    same_numbers(shaken, 1e-3)
  end)

  for _, formulation in ipairs { "updated", "total_lagrangian" } do
    it("follows gravity that changes as one on the CPU does, " .. formulation, function()
      same_numbers((tilting:gsub("FORMULATION", formulation)), 1e-5)
    end)

    it("goes on from states as one on the CPU does: an environment and its gradients, " .. formulation, function()
      same_numbers((stepped:gsub("FORMULATION", formulation)), 1e-15)
    end)
  end

  it("lets surfaces push each other apart as one on the CPU does", function() same_numbers(colliding, 1e-3) end)

  it("knows surfaces that are stretched, and says where they are too large for it", function()
    local path, said = script(flying), {}
    for k, device in ipairs { "cpu", "cuda" } do
      local result = cqlua { "--device", device, path }
      assert.same({ 0, "" }, { result.code, result.err })
      said[k] = { result.out:match "^([^\n]+)\n([^\n]+)\n$" }
    end
    has(said[1][1], "two bodies meet")
    assert.equal(said[1][1], said[2][1])
    assert.equal("true\tnil", said[1][2])
    has(said[2][2], "the surfaces of bodies are stretched over 1040 cells of the world, and on CUDA at most 1024 are")
  end)

  it("lets its adjoint decay as one on the CPU does", function() same_numbers(decaying, 1e-12) end)

  it("cuts its adjoint to a norm as one on the CPU does", function()
    for _, case in ipairs { { "updated", "elastic" }, { "updated", "plastic" }, { "total_lagrangian", "elastic" } } do
      same_numbers((limited:gsub("FORMULATION", case[1]):gsub("MATERIAL", case[2])), 1e-12)
    end
  end)

  it("makes all control steps in one call where nobody looks, with the bits of step by step", function()
    local content = "local blind = require 'tests.blind'\nprint(blind.compare 'cuda', #blind.failures 'cuda')"
    local result = cqlua({ script(content) }, "thread_order=2 block_order=2")
    assert.same({ 0, "10\t3\n" }, { result.code, result.out }, result.err)
  end)

  it("stops for a running cost, not for effort", function()
    local content = "local costs = require 'tests.costs'\nprint(costs.compare 'cuda', costs.failures 'cuda')"
    local result = cqlua({ script(content) }, "thread_order=2 block_order=2")
    assert.same({ 0, "16\t7\n" }, { result.code, result.out }, result.err)
  end)

  it("drives a rollout by a network of its own as Lua does", function()
    local content = "local engine_policy = require 'tests.engine_policy'\nprint(engine_policy.compare 'cuda', #engine_policy.failures 'cuda')"
    local result = cqlua({ script(content) }, "thread_order=2 block_order=2")
    assert.same({ 0, "13\t2\n" }, { result.code, result.out }, result.err)
  end)

  it("that loses its GPU keeps what was computed, and goes on with --resume", function()
    local lost = train("lost", { "--device", "cuda", "--iterations", "6" },
      "fail_call=kernel fail_after=500 fail_error=700 fail_lost=1")
    assert.equal(1, lost.code)
    has(lost.err, "the GPU was lost during")
    local made = #losses "lost"
    assert(made > 0 and made < 6, made .. " iterations were made")
    has(process.read(folder .. "/lost/manifest.json"), '"status": "failed')
    assert.equal(0, train("lost", { "--device", "cuda", "--iterations", "6", "--resume" }).code)
    assert.equal(0, train("whole", { "--iterations", "6" }).code)
    local a, b = losses "whole", losses "lost"
    assert.equal(6, #b)
    for i = 1, 6 do assert.near(a[i], b[i], 1e-9 * math.abs(a[i])) end
  end)

  it("that finds no memory on the GPU says so", function()
    local result = train("little", { "--device", "cuda" }, "memory=30000")
    assert.equal(1, result.code)
    has(result.err, "out of memory: ")
    has(result.err, "end other programs that use it")
  end)

  it("whose GPU refuses a launch keeps what was computed, and goes on with --resume on the CPU", function()
    local refused = train("refused", { "--device", "cuda" }, "fail_call=launch fail_after=250 fail_error=701")
    assert.equal(1, refused.code)
    has(refused.err, " failed on the GPU: too many resources requested for launch (cudaErrorLaunchOutOfResources); start the program again")
    local made = #losses "refused"
    assert(made > 0 and made < 4, made .. " iterations were made")
    assert.equal(0, train("refused", { "--device", "cpu", "--resume" }).code)
    assert.equal(0, train("whole", {}).code)
    local a, b = losses "whole", losses "refused"
    assert.equal(4, #b)
    for i = 1, 4 do assert.near(a[i], b[i], 1e-9 * math.abs(a[i])) end
  end)
end)

describe("a GPU that other programs use", function()
  it("is told to be busy, and what lies in the folder stays as it is", function()
    assert.equal(0, train("run", { "--iterations", "2" }).code)
    local files = { "history.csv", "params.bin", "optimizer.bin", "saved.bin", "manifest.json" }
    local before = {}
    for i, name in ipairs(files) do before[i] = process.read(folder .. "/run/" .. name) end
    local busy = train("run", { "--device", "cuda", "--resume" }, "fail_call=cudaSetDevice fail_after=0 fail_error=46")
    assert.equal(2, busy.code)
    has(busy.err, "--device cuda: the GPU is busy, or another program has it to itself")
    has(busy.err, "wait, or take the device \"cpu\"")
    for i, name in ipairs(files) do assert.equal(before[i], process.read(folder .. "/run/" .. name), name) end
    assert.equal(0, train("run", { "--resume" }).code)
    assert.equal(4, #losses "run")
  end)

  it("is planned with for what they leave, with the same results", function()
    local plan = "control steps made %d[.]%d+ times"
    local function told(name, settings)
      local result = cqlua({ script(training), "--out", folder .. "/" .. name, "--device", "cuda" }, settings)
      assert.equal(0, result.code, result.err)
      return result.err
    end
    assert(not told("alone", ""):find(plan))
    assert(told("beside", "others=1073341824"):find(plan))   -- of 1 GiB
    assert.same(losses "alone", losses "beside")
    -- what the first iteration took stays ours
    told("before", "memory=1000000 others=1000000 others_after=300")
    assert.same(losses "alone", losses "before")
  end)

  it("that they fill in the middle ends a training in order", function()
    local filled = train("filled", { "--device", "cuda" }, "memory=400000 others=400000 others_after=60")
    assert.equal(1, filled.code)
    has(filled.err, "out of memory")
    has(process.read(folder .. "/filled/manifest.json"), '"status": "failed"')
    assert.equal(0, train("filled", { "--device", "cpu", "--resume" }).code)
    assert.equal(4, #losses "filled")
  end)
end)

describe("measurements on the GPU", function()
  it("bench tells the device", function()
    local result = cqlua { "bench", "--device", "cuda", "--json", "--case", "2d-1600", "--steps", "10", "--repeat",
      "1" }
    assert.same({ 0, "" }, { result.code, result.err })
    local entry = json.lines(result.out)[1]
    assert.same({ "cuda", 1600 }, { entry.device, entry.particles })
    has(entry.engine, "Emulated GPU")
    assert(entry.phase_ns.p2g > 0 and entry.phase_ns.p2g_adj > 0)
  end)

  it("so does the bench that needs no Lua", function()
    local pipe = io.popen(("CQLUA_CUDA='%s' '%s' --case 2d-1600-b --steps 10 --repeat 1 --csv %s/a.csv 2>&1"):format(
      emulated,
      (emulated:gsub("cuda%-emulated.so$", "bench/speed")), folder))
    local out = pipe:read "*a"
    pipe:close()
    has(out, "2d-1600-batch64       102400 float32     10 ")
    local head, row = process.read(folder .. "/a.csv"):match "^([^\n]+)\n([^\n]+)\n$"
    assert.equal(select(2, head:gsub(",", "")), select(2, row:gsub('"[^"]*"', ""):gsub(",", "")))
    has(row, '"Emulated GPU",2,')
  end)

  it("accuracy is that of the CPU", function()
    local cpu = json.lines(cqlua({ "accuracy", "--json", "--case", "A1", "--steps", "10" }).out)[1]
    local cuda = json.lines(cqlua({ "accuracy", "--json", "--case", "A1", "--steps", "10", "--device", "cuda" }).out)[1]
    assert(cuda.error > 1e-9 and cuda.error < math.max(3 * cpu.error, 1e-6),
      ("%g, %g on the CPU"):format(cuda.error, cpu.error))
  end)
end)
