-- mistakes: what users get wrong, and the sentence that they get; beside what the specs of each noun say of their own
-- fields.
local cq = require "cq"
local T = require "cq.tensor"
local option = require "cq.option"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local cqlua = process.cqlua

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local function script(content) return process.write(folder .. "/script.lua", content) end

describe("a world that is closed", function()
  it("says so, whatever is asked of it", function()
    local world = scene.world(scene.robot())
    local roll = world:rollout { steps = 1 }
    world:close()
    world:close()
    says(sentence(function() world:rollout { steps = 1 } end), "world:rollout: this world is closed")
    says(sentence(function() world:memory_plan { steps = 1 } end), "world:memory_plan: this world is closed")
    says(sentence(function() world:timers() end), "world:timers: this world is closed")
    says(sentence(function() roll.state:center "foot" end), "its world closed")
  end)

  it("cannot be closed by a function of a rollout that goes on", function()
    local world = scene.world(scene.robot())
    says(sentence(function() world:rollout { steps = 2, running = function() world:close() return 0 end } end),
      "world:close: cannot be called from inside a rollout's own functions (in running, control step 1 of 2)")
    assert.equal(2, world:rollout({ steps = 2 }).steps)
  end)
end)

-- a loop of the user's own that fails in its seventh iteration, between two saves
local loop = [[
  local cq = require "cq"
  local p, adam = { x = cq.param { 1, 2 } }, cq.Optimizer.adam { rate = 0.1 }
  local step = cq.value_and_grad(function(q) return q.x:square():sum() end)
  local run = cq.Run.open { iterations = 20 }
  for i = run.done + 1, 20 do
    local loss, grads = step(p)
    adam:update(p, grads)
    if i == 7 then error "boom" end
    run:record { iteration = i, loss = loss }
    run:checkpoint(i, p, adam:state())
  end]]

describe("a coroutine that is left inside a rollout", function()
  -- steps of the rollout that it makes, one for each resume
  local function stepping(world)
    return coroutine.create(function()
      return world:rollout({ steps = 4, on_step = function() coroutine.yield() end }).state:center("foot")[2]:item()
    end)
  end

  it("keeps nobody out of its world, and ends as if nothing had been between", function()
    local world = scene.world(scene.robot())
    local function alone() return world:rollout({ steps = 4 }).state:center("foot")[2]:item() end
    local want, thread, got = alone(), stepping(world), nil
    while coroutine.status(thread) ~= "dead" do
      assert.equal(want, alone())
      got = select(2, assert(coroutine.resume(thread)))
    end
    assert.equal(want, got)
    -- but a rollout within its functions is still one too many
    local nested = coroutine.wrap(function()
      return sentence(function() world:rollout { steps = 2, on_step = function() coroutine.wrap(alone)() end } end)
    end)
    says(nested(), "world:rollout: cannot be called from inside a rollout's own functions")
  end)

  it("within a gradient is an error at its line", function()
    local world = scene.world(scene.robot())
    local function of(fields)
      return coroutine.wrap(function()
        return sentence(cq.value_and_grad(function(p)
          fields.steps, fields.gravity = 2, p
          return world:rollout(fields).state:center("foot")[1]
        end), cq.param { 0, -1 })
      end)()
    end
    local function leave() coroutine.yield() return cq.zeros { 2 } end
    local why = "coroutine.yield: a coroutine cannot be left while a gradient is computed in it; what it left would be lost to the gradient "
    says(of { on_step = leave }, why .. "(in on_step, at the start)")
    says(of { controller = leave }, why .. "(in the controller, control step 1 of 2)")
    assert.equal(1, world:rollout({ steps = 1 }).steps)
  end)

  it("keeps its world from being closed while it can be resumed", function()
    local world = scene.world(scene.robot())
    local thread = stepping(world)
    assert.is_true(coroutine.resume(thread))
    says(sentence(function() world:close() end), "world:close: a coroutine waits inside a rollout of this world")
    thread = nil
    assert.is_nil(thread)
    world:close()
    assert.is_nil(world.handle)
  end)
end)

describe("what was computed", function()
  it("is kept when a function that looks on after an iteration fails", function()
    local world = scene.world(scene.robot())
    local run = cq.Experiment {
      world = world, steps = 3, controller = cq.Controller.sines {},
      objective = function(s) return s:center("foot")[1] end,
      optimizer = cq.Optimizer.adam { rate = 0.01 },
    }
    local message = sentence(function()
      run:optimize { iterations = 9, folder = folder .. "/a",
        on_iteration = function(i) if i == 4 then error "boom" end end }
    end)
    says(message, "boom (iteration 4 of 9)")
    local saved = cq.load(folder .. "/a/optimizer.bin")
    assert.equal(4, saved.iteration)
    assert.is_true(saved.params.controller.w:equal(run.params.controller.w))
    require("cq.run").close_open(message)
  end)

  it("is kept of a loop of the user's, up to its last checkpoint", function()
    local result = cqlua { script(loop), "--out", folder .. "/a" }
    assert.equal(1, result.code)
    says(result.err, "script.lua:8: boom")
    local saved = cq.load(folder .. "/a/optimizer.bin")
    assert.equal(6, saved.iteration)
    assert.equal(6, saved.optimizer.iteration)
    assert.is_true(saved.params.x:get(1) < 1)
  end)

  it("is kept with the bounds of params, and constants stay constants", function()
    local content = loop:gsub("x = cq.param { 1, 2 }",
      "x = cq.param({ 1, 2 }, { min = 0.5, max = 3 }), c = cq.tensor(7)")
    assert.equal(1, cqlua({ script(content), "--out", folder .. "/a" }).code)
    local saved = cq.load(folder .. "/a/optimizer.bin")
    assert.same({ min = 0.5, max = 3 }, saved.params.x.bounds)
    assert.is_true(saved.params.x.trainable)
    assert.is_nil(saved.params.c.trainable)
    assert.is_nil(saved.optimizer.moments.first.x.trainable)
  end)

  it("is kept when that loop is interrupted in the middle of an iteration, which is no failure", function()
    local content = loop:gsub("error \"boom\"", 'require("cq.base.engine").C.cq_interrupt(1) error "interrupted"')
    assert.equal(130, cqlua({ script(content), "--out", folder .. "/a" }).code)
    assert.equal(6, cq.load(folder .. "/a/optimizer.bin").iteration)
    says(process.read(folder .. "/a/manifest.json"), '"status": "interrupted"')
  end)

  it("is kept when a rollout of that loop gives up for Ctrl-C, which is told as an end and not as an error", function()
    local content = loop:gsub("local run =",
      "local world = require('tests.scene').world(require('tests.scene').robot())\n%0")
      :gsub('error "boom"', 'require("cq.base.engine").C.cq_interrupt(1) world:rollout { steps = 3 }')
    local result = cqlua { script(content), "--out", folder .. "/a" }
    assert.equal(130, result.code)
    says(result.err, "interrupted after iteration 6; what was computed is kept in " .. folder .. "/a")
    assert.is_nil(result.err:find("control step", 1, true), result.err)
    assert.equal(6, cq.load(folder .. "/a/optimizer.bin").iteration)
    local manifest = process.read(folder .. "/a/manifest.json")
    says(manifest, '"status": "interrupted"')
    assert.is_nil(manifest:find("problem", 1, true), manifest)
  end)

  it("does not hide an error of the user's that comes after Ctrl-C", function()
    local content = loop:gsub("local run =",
      "local world = require('tests.scene').world(require('tests.scene').robot())\n%0")
      :gsub('error "boom"', 'require("cq.base.engine").C.cq_interrupt(1) pcall(world.rollout, world, { steps = 3 }) error "boom"')
    local result = cqlua { script(content), "--out", folder .. "/a" }
    assert.equal(130, result.code)
    says(result.err, "boom")
    says(process.read(folder .. "/a/manifest.json"), "boom")
  end)

  it("gives the loss also when a run that goes on has nothing left to do", function()
    local world = scene.world(scene.robot())
    local function result(resume)
      local run = cq.Experiment {
        world = world, steps = 3, controller = cq.Controller.sines {},
        objective = function(s) return s:center("foot")[1] end,
        optimizer = cq.Optimizer.adam { rate = 0.01 },
      }
      return run:optimize { iterations = 3, folder = folder .. "/a", resume = resume }
    end
    local first = result(false)
    local again = result(true)
    assert.equal(first.loss, again.loss)
    assert.equal(3, again.iterations)
  end)
end)

describe("a function that does not do the same again", function()
  local function gradient(fields)
    local robot = scene.robot()
    local world = scene.world(robot)
    return cq.value_and_grad(function(p)
      local given = fields(p)
      given.steps, given.robot = 3, robot:with { velocity = p.velocity }
      local roll = world:rollout(given)
      return roll.running and roll.running:sum() or roll.record and roll.record:sum() or roll.state:center(robot):sum()
    end)({ velocity = cq.param { 0.1, 0 } })
  end

  it("is an error, not a wrong gradient", function()
    local count = 0
    local function counted(x)
      count = count + 1
      return x * count
    end
    local why, p0 = "gave another result when it ran again on the same state for its gradient", cq.tensor { 0.1, 0.2 }
    says(sentence(gradient, function(p) return { controller = function() return counted(p.velocity) end } end),
      "the controller " .. why)
    says(sentence(gradient, function() return { running = function(s) return counted(s:center("foot")[1]) end } end),
      "running " .. why)
    says(sentence(gradient, function() return { record = function(s) return counted(s:center "foot") end } end),
      "record " .. why)
    assert.is_true((gradient(function() return { record = function(s) return s:center "foot" end } end)) > 0)
    says(sentence(gradient, function() return {
      observer = { observe = function(_, state, memory)
        return state:center "foot", counted(memory or cq.tensor { 1 })
      end },
      controller = cq.Controller.linear { seed = 1, inputs = 2, signals = 2 } } end),
      "the memory of the observer " .. why)
    says(sentence(gradient, function() return { controller = { act = function(_, _, memory)
      return p0, counted(memory or p0)
    end } } end), "the memory of the controller " .. why)
  end)

  it("is an error where it is a force", function()
    for _, every in ipairs { "control_step", "engine_step" } do
      local count = 0
      local push = { particles = "trunk", signals = 0, every = every, force = function(_, _, x)
        count = count + 1
        return 1e-3 * count * x
      end }
      local robot = scene.robot { actuators = push }
      local world = scene.world(robot)
      local message = sentence(cq.value_and_grad(function(v)
        return world:rollout { steps = 3, robot = robot:with { velocity = v } }.state:center(robot):sum()
      end), cq.param { 0.1, 0 })
      says(message, "a force actuator gave another result when it ran again")
    end
  end)
end)

describe("a function that fails", function()
  it("is not called again with the state before", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    for _, last in ipairs { 1, 3 } do
      local seen, running = {}, {}
      says(sentence(function()
        world:rollout {
          steps = 5, record = function(s) seen[#seen + 1] = s.step return s:positions() end,
          running = function(s) running[#running + 1] = s.step return s:center("foot"):sum() end,
          controller = { act = function(_, _, _, _, step) return step == last and {} or { 0.1, 0.2 } end },
        }
      end), ("the controller must give signals of shape {2}, one for each actuator signal, got {0} (in the "
        .. "controller, control step %d of 5)"):format(last))
      assert.same(last == 1 and {} or { 1, 2 }, seen)
      assert.same(seen, running)
    end
  end)
end)

describe("sizes beyond what is there", function()
  it("are refused before they take all memory", function()
    says(sentence(function() cq.Shape.box({ size = { 1, 1 }, count = { 1e5, 1e5 } }):sample() end),
      "would be filled with 1e+10 particles")
    local world = scene.world(scene.robot())
    says(sentence(function() world:rollout { steps = 1e15 } end),
      "steps must be a whole number at least 0 and at most 2147483647")
    says(sentence(function() scene.world(scene.robot(), { threads = 1000 }) end),
      "threads must be a whole number at least 0 and at most 256")
  end)

  it("that only show while a rollout goes on come with the plan", function()
    if process.sanitized() then return assert.is_true(true) end       -- which takes terabytes of addresses itself
    local content = [[
      local cq = require "cq"
      local robot = require("tests.scene").robot()
      local world = require("tests.scene").world(robot)
      cq.value_and_grad(function(v)
        local given = robot:with { velocity = v }
        return world:rollout({ steps = 200000, memory = "900 GiB", robot = given }).state:center(robot)[1]
      end)(cq.param { 0, 0 })]]
    local result = cqlua({ script(content), "--threads", "1" }, { before = "ulimit -v 1000000;" })
    assert.equal(1, result.code)
    assert.matches("script.lua:6: world:rollout: out of memory at control step %d+ of 200000; the plan was memory [%d.]+ GiB", result.err)
    local planned, unit, half, less =
      result.err:match 'the plan was memory ([%d.]+) (%a+), .*; memory = "([%d.]+) (%a+)", or less'
    assert(planned, result.err)
    local size = { MiB = 1, GiB = 1024 }
    local ratio = half * size[less] / (planned * size[unit])
    assert(math.abs(ratio - 0.5) < 0.01, result.err)
  end)
end)

describe("memory that runs out", function()
  local unstable, C = require "cq.rollout.unstable", require("cq.base.engine").C
  local world = scene.world(scene.robot())

  -- what is told of a rollout of this world to which the engine gives none
  local function told(fields, gradient)
    local roll
    local function run() roll = world:rollout(fields) return roll.state:center("foot")[1] end
    if gradient then cq.value_and_grad(function(v) return run() + v end)(cq.param(0)) else run() end
    roll.at = 0
    return sentence(function() unstable.raise(roll, C.CQ_MEMORY) end)
  end

  it("is told with what takes less than was planned, where anything does", function()
    local p = world:memory_plan { steps = 8 }
    says(told({ steps = 8, memory = "1 GiB" }, true),
      ('memory = "%s", or less'):format(require("cq.base.capacity").text(p.bytes / 2)))
    says(told({ steps = 8, memory = p.record_bytes + p.slice_bytes }, true),
      "shorter control steps, and fewer particles or scenes, take less")
    says(told { steps = 8 }, "nothing is remembered; fewer particles or scenes take less")
  end)
end)

describe("a misspelt name", function()
  it("of a constructor comes with the one that may be meant", function()
    says(sentence(function() cq.Material.neohookean {} end),
      'cq.Material has no "neohookean" (did you mean neo_hookean?); it has corotated, drucker_prager, ')
    says(sentence(function() cq.Optimizer.adamw {} end),
      'cq.Optimizer has no "adamw" (did you mean adam?); it has adam, augmented_lagrangian, gradient_descent, ipopt, momentum, nlopt')
    says(sentence(function() cq.Shape.boxx {} end), 'cq.Shape has no "boxx" (did you mean box?)')
    for _, noun in ipairs { "Actuator", "Boundary", "Controller", "Observer", "Picture", "Topology", "sparse" } do
      says(sentence(function() cq[noun].nothing() end), ("cq.%s has no \"nothing\"; it has "):format(noun))
    end
  end)

  it("of a method as well, and without the library's own lines", function()
    local head = 'local cq = require "cq"\nlocal world = require("tests.scene").world(require("tests.scene").robot())\n'
    local result = cqlua { script(head .. "world:rollout { steps = 1, running = function(s) return s:centre()[1] end }") }
    assert.equal(1, result.code)
    says(result.err, "script.lua:3: attempt to call method 'centre' (a nil value; did you mean center of cq.State?) (in running, control step 1 of 1)")
    assert.is_nil(result.err:find("lua/cq/", 1, true), result.err)
    says(cqlua({ script(head .. "print(cq.zeros{3}:summ())") }).err, "did you mean sum of cq.Tensor?")
    says(cqlua({ script(head .. "world:rolout {}") }).err, "did you mean rollout of cq.World?")
    says(cqlua({ script(head .. "cq.Robot:new {}") }).err, "(a nil value; cq.Robot { ... } makes one)")
    says(cqlua({ script(head .. "local own = {}\nown:new()") }).err, "attempt to call method 'new' (a nil value)\n")
  end)
end)

describe("a tensor in the place of a number", function()
  it("is told what to ask it", function()
    local head = 'local cq = require "cq"\nlocal center, y = cq.tensor { 1, 2 }, nil\n'
    local compared = "(if the table is a tensor t: its number is t:item(), and t:less(x) and t:greater(x) compare each element)"
    for line, hint in pairs {
      ["y = center[1] > 0.5"] = "attempt to compare number with table " .. compared,
      ["y = center[1] <= 0.5"] = "attempt to compare table with number " .. compared,
      ["y = math.sin(center)"] = "got table; if the table is a tensor t: it is t:sin(), and its number is t:item())",
      ["y = math.max(0, center)"] = "got table; if the table is a tensor t: it is t:maximum(x), and its number is t:item())",
      ["y = math.ceil(center)"] = "got table; if the table is a tensor t: its number is t:item())",
      ["local function f() return math.sin(center) end y = f()"] =
        "its number is t:item(), and its functions are methods, as t:sin())",
      ["for i = 1, center[1] do y = i end"] = "'for' limit must be a number (if it is a tensor t: its number is t:item())",
      ["io.write(center[1])"] = "(string expected, got table; if the table is a tensor t: its number is t:item())",
      ["y = ('%g'):format(center[1])"] = "got table; if the table is a tensor t: its number is t:item())",
    } do
      local result = cqlua { script(head .. line .. "\nprint(y)") }
      assert.equal(1, result.code)
      says(result.err, "script.lua:3: ")
      says(result.err, hint)
      assert.is_nil(result.err:find("lua/cq/", 1, true), result.err)
    end
    assert.is_nil(cqlua({ script "local y = 1 < 'a'" }).err:find("tensor", 1, true))
  end)
end)

describe("an observer that gives what is not finite", function()
  it("is blamed, and not the controller", function()
    local world = scene.world(scene.robot())
    local function of(observer, batch)
      return sentence(function()
        world:rollout { steps = 3, batch = batch, observer = observer,
          controller = function(z) return cq.zeros { 2 } + z:sum() end }
      end)
    end
    says(of(function(s) return s:center("foot") * (s.step == 1 and 0 / 0 or 1) end),
      "observation 1 is nan; observations must be finite (in the observer, control step 2 of 3)")
    says(of(function(s) return s:center "foot" / cq.tensor { 1, 0 } end, 2),
      "observation 2 is inf; observations must be finite (in the observer,")
    says(of(function() return 0 / 0 end), "observation 1 is nan")
  end)
end)

describe("record and running", function()
  it("must give the same shape at every step", function()
    local world = scene.world(scene.robot())
    local function of(first, later)
      local function given(s) return s.step == 1 and first or later end
      return world:rollout({ steps = 3, record = given }).record
    end
    local why = "record must give the same shape at every step, got "
    says(sentence(of, cq.zeros { 2, 3 }, cq.zeros { 3, 2 }), why .. "{3, 2} after {2, 3}")
    says(sentence(of, cq.zeros { 2, 3 }, cq.zeros { 6 }), why .. "{6} after {2, 3}")
    says(sentence(of, cq.zeros { 2 }, cq.zeros { 3 }), why .. "{3} after {2}")
    assert.same({ 3, 2, 3 }, of(cq.zeros { 2, 3 }, cq.zeros { 2, 3 }):shape())
    assert.same({ 3, 1 }, of(cq.zeros { 1 }, 4):shape())
    assert.same({ 3 }, of(4, cq.zeros { 1 }):shape())
    for batch = 1, 2 do
      local zeros = cq.zeros { batch }
      for _, case in ipairs { { zeros, 0, "one number after {%d}" }, { 0, zeros, "{%d} after one number" } } do
        local function running(s) return case[s.step == 1 and 1 or 2] end
        local refused = sentence(function() world:rollout { steps = 3, batch = batch, running = running } end)
        says(refused, "running must give the same shape at every step, got " .. case[3]:format(batch))
        says(refused, ("give {%d} at every step, as cq.zeros { %d } in the place of 0"):format(batch, batch))
      end
    end
    local function two() return cq.zeros { 2 } end
    says(sentence(function() world:rollout { steps = 1, batch = 1, running = two } end),
      "in a batch what is read of a state has the scenes as its first dimension")
  end)
end)

describe("a recursion without end", function()
  it("is told in one line", function()
    local result = cqlua { script "local function f() return 1 + f() end\nf()" }
    assert.equal(1, result.code)
    says(result.err, "script.lua:1: stack overflow")
    assert.equal(1, select(2, result.err:gsub("\n", "\n")))
  end)
end)

describe("a robot that a rollout places", function()
  it("must start within the world and outside its walls, as in the world", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local start = world.robot.position
    local function refused(position)
      return sentence(function() world:rollout { steps = 1, robot = robot:with { position = position } } end)
    end
    says(refused(start + 10), "world:rollout: robot starts outside the world: x of particle 1 of group \"foot\" at {10.41, 10.14}")
    says(refused(start - cq.tensor { 0, 0.05 }),
      "world:rollout: robot overlaps wall 1 (box): particle 1 of group \"foot\"")
    local both = cq.stack { start, start + 10 }
    says(sentence(function() world:rollout { steps = 1, batch = 2, robot = robot:with { position = both } } end),
      "starts outside the world")
    assert.equal(1, world:rollout({ steps = 1, robot = robot:with { position = start } }).steps)
  end)

  it("is told what makes its Courant number large", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local function refused(values)
      return sentence(function() world:rollout { steps = 1, robot = robot:with(values) } end)
    end
    says(refused { velocity = { 100, 0 } }, "or have a smaller velocity")
    says(refused { young = 1e7 }, "or have bounds for young")
    says(refused { young = { foot = 1e7 }, poisson = 0.4, density = 2 },
      "or have bounds for density, young and poisson")
    says(refused { velocity = { 0.1, 0 }, density = 1e-6 }, "or have bounds for density")
    says(refused { young = 1e30 }, "that asks for more than 100000 substeps: make the world with a smaller dt, or have")
  end)

  it("has the Courant number that its world would have", function()
    local function block(young, more)
      local material = cq.Material.neo_hookean { young = young, poisson = 0.3, incompressible = 2 }
      local fields = { shape = cq.Shape.box { size = { 0.1, 0.1 }, count = { 4, 4 } }, material = material }
      for key, value in pairs(more or {}) do fields[key] = value end
      return cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 0.0125, cq.Robot(fields):at { 0.4, 0.4 } }
    end
    says(sentence(block, 14), "the Courant number is 1.01")
    local world = block(10)
    local function set(fields) return function() world:rollout { steps = 1, robot = world.robot:with(fields) } end end
    local refused = sentence(set { young = 14 })
    says(refused, "the Courant number of the robot's values is 1.01, above 1; make the world with substeps = 2 or more, or have bounds for young")
    set { young = 13 } ()
    -- of each scene, and what the actuators pull
    says(sentence(function()
      world:rollout { steps = 1, batch = 2, robot = world.robot:with { young = T.tensor { { 10 }, { 14 } } } }
    end), "is 1.01")
    world = block(10, { actuators = cq.Actuator.isotropic { count = 1, max = 8 } })
    says(sentence(set { actuation_weight = T.ones { 16, 1 } }), "or have bounds for actuation_weight")
  end)
end)

describe("a slip on the command line", function()
  it("is told before the work, when a run is opened", function()
    local content = [[
      local cq = require "cq"
      cq.Run.open { iterations = cq.option("iterations", 100) }:finish()
      io.stderr:write "worked\n"]]
    local err = cqlua({ script(content), "--iteration", "5", "--out", folder .. "/a", "--quiet" }).err
    assert.matches("^cqlua: warning: .* not asked so far for %-%-iteration %(did you mean iterations%?%); .*worked\n", err)
  end)

  it("is told once, also when the script asks for more after the run is opened", function()
    local content = [[
      local cq = require "cq"
      cq.Run.open { iterations = cq.option("iterations", 100) }:finish()
      cq.option("render", true)]]
    local err = cqlua({ script(content), "--iteration", "5", "--other", "1", "--out", folder .. "/a", "--quiet" }).err
    assert.equal(1, select(2, err:gsub("not asked so far for %-%-iteration ", "")), err)
    assert.equal(1, select(2, err:gsub("never asked for %-%-other", "")), err)
  end)

  it("is refused when it has one dash", function()
    local result = cqlua { script "print(...)", "-iterations", "5" }
    assert.equal(2, result.code)
    says(result.err, "-iterations is no option; options of a script are --name value")
    assert.equal("-iterations\t-5\n", cqlua({ script "print(...)", "--", "-iterations", "-5" }).out)
    assert.equal("-5\n", cqlua({ script "print(...)", "-5" }).out)
  end)

  it("does not end the prompt without a word", function()
    process.write(folder .. "/typed", "= 1 + 1\nx = 3 +\n")
    local result = cqlua({ "-i" }, { after = "< " .. folder .. "/typed" })
    assert.equal("2\n", result.out)
    says(result.err, "unexpected symbol near '<eof>'")
  end)
end)

describe("a picture", function()
  it("needs a name that says its kind, also when it is only checked", function()
    local robot = scene.robot()
    local run = cq.Experiment { world = scene.world(robot), steps = 2,
      objective = function(s) return s:center(robot)[1] end }
    for _, check in ipairs { false, true } do
      option.program.check = check
      local message = sentence(function() run:render(folder .. "/walk.avi") end)
      option.program.check = nil
      says(message, "run:render: path must end in .png, .mp4, .mkv, .webm or .gif, got \"")
    end
  end)
end)

describe("friction in the place of a wall that holds", function()
  it("is named, at the wall and where a rollout sets it", function()
    local source = [[
      local cq = require "cq"
      local material = cq.Material.neo_hookean { young = 10, poisson = 0.3 }
      local shape = cq.Shape.box { at = { 0, 0 }, size = { 0.1, 0.1 }, count = { 2, 2 } }
      local robot = cq.Robot { shape = shape, material = material }
      local walls = { cq.Boundary.floor { at = 0.1, mu = 99 }, cq.Boundary.floor { at = 0, mu = %s } }
      local world = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-3, walls = walls, robot:at { 0.4, 0.4 } }
      world:rollout { steps = 1, friction = { 0.5, %s } }
    ]]
    local function told(mu, later) return process.cqlua({ "-e", source:format(mu, later) }).err end
    assert.equal("", told("99", "99"))
    local large = " gives gradients as large [^\n]*separable = true [^\n]*\n$"
    assert.matches("^cqlua: warning: %(command line%):5: cq.Boundary.floor: mu = 1000000" .. large, told("1e6", "1"))
    assert.matches("^cqlua: warning: %(command line%):7: world:rollout: a friction of 100" .. large, told("1", "100"))
  end)
end)

describe("a warning", function()
  it("of a gradient that is zero says whose it is, once", function()
    local content = [[
      local cq = require "cq"
      local step = cq.value_and_grad(function(p) return (p.x * 0):sum() end)
      for _ = 1, 2 do step { x = cq.param { 1, 2 } } end]]
    assert.equal("cqlua: warning: the gradient of x is exactly zero everywhere: it reaches the objective without moving it\n",
      cqlua({ script(content), "--quiet" }).err)
  end)
end)

describe("memory", function()
  it("does not pile up with rollouts of many lengths, or worlds that are out of reach", function()
    local world = scene.world(scene.robot())
    for steps = 1, 20 do world:rollout { steps = steps } end
    assert.is_true(#world.pool.entries <= 4, #world.pool.entries)
    local owned = world.owned
    world = nil
    assert.is_true(owned.open, world)
    assert.is_true(scene.world(scene.robot()).courant > 0)
    assert.is_false(owned.open)
  end)
end)
