-- experiment: optimising, going on, stopping, keeping the best, and pictures; on small scenes.
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local host = require "cq.host"
local process = require "tests.process"
local scene = require "tests.scene"
local visuals = require "cq.picture.visuals"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local function experiment(changes)
  local world = scene.world(scene.robot())
  local fields = {
    world = world, steps = 15, observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
    controller = cq.Controller.linear { seed = 2 }, optimizer = cq.Optimizer.adam { rate = 0.05 },
    objective = { terminal = function(s) return -s:velocity("trunk")[2] end,
      running = function(_, u) return 1e-3 * u:dot(u) end },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function lines(path)
  local out = {}
  for line in process.read(path):gmatch "[^\n]+" do out[#out + 1] = line end
  return out
end

describe("an experiment", function()
  it("lowers its objective and writes its history", function()
    local run = experiment()
    local before = run:evaluate().loss
    local result = run:optimize { iterations = 12, folder = folder .. "/a" }
    assert.equal(12, result.iterations)
    assert.is_true(result.best < before - 0.01, ("from %g to %g"):format(before, result.best))
    assert.equal(result.best, run.best.loss)
    assert.is_true(math.abs(run:evaluate().loss - result.best) < 1e-12)
    local history = lines(folder .. "/a/history.csv")
    assert.equal(13, #history)
    assert.equal("iteration,loss,adjoint,adjoint_growth,gradient,seconds", history[1])
    assert.equal(before, tonumber(history[2]:match "^1,([^,]+)"))
    local best = cq.load(folder .. "/a").parameters
    assert.is_true(best.controller.w1:equal(run.best.params.controller.w1))
  end)

  it("goes on from where it was, as if it had not stopped", function()
    local whole = experiment()
    whole:optimize { iterations = 8, folder = folder .. "/whole" }
    experiment():optimize { iterations = 5, folder = folder .. "/parts" }
    local rest = experiment()
    local result = rest:optimize { iterations = 8, folder = folder .. "/parts", resume = true }
    assert.equal(8, result.iterations)
    assert.is_true(rest.params.controller.w1:equal(whole.params.controller.w1))
    assert.equal(whole.best.loss, rest.best.loss)
    assert.equal(9, #lines(folder .. "/parts/history.csv"))
    local best = cq.load(folder .. "/parts").parameters.controller.w1
    assert.is_true(best.trainable)
    says(sentence(function()
      experiment { controller = cq.Controller.mlp {} }:optimize { iterations = 9, folder = folder .. "/parts",
        resume = true }
    end), "controller was linear and is mlp")
  end)

  it("goes on with the same problem alone, and tells of another manner", function()
    local messages, told = require "cq.base.message", {}
    local warn, path = messages.warn, folder .. "/a"
    messages.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local function final(s) return -s:velocity("trunk")[2] end
    local function train(iterations, changes)
      return experiment(changes):optimize { iterations = iterations, folder = path, resume = iterations > 2 }
    end
    train(2)
    local same = "run:optimize: " .. path .. ": what was saved is of another problem: "
    for part, changes in pairs {
      ["control steps was 15 and is 20; go on with the same one, or start anew"] = { steps = 20 },
      ["objective was terminal, running and is terminal"] = { objective = { terminal = final } },
      ["weight was mass and is particle"] = { weight = "particle" },
      ["observer.weight was mass and is volume"] = {
        observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, weight = "volume" } },
      ["observer.groups was {foot, trunk} and is {trunk, foot}"] = {
        observer = cq.Observer.centroid { groups = { "trunk", "foot" }, velocity = true } },
      ["density was 1 to 1.5 and is 2, mass was"] = {
        world = scene.world(scene.robot {
          material = cq.Material.corotated { young = 8, poisson = 0.2, density = 2 },
        }) },
    } do
      local why = sentence(train, 3, changes)
      require("cq.run").close_open "odd"
      says(why, same)
      says(why, part)
    end
    assert.equal(3, train(3).iterations)
    assert.same({}, told)
    train(4, { gradient = { decay = 0.1 }, optimizer = cq.Optimizer.adam { rate = 0.01, clip = 1 },
      trainable = { controller = { rate = 0.02 } } })
    says(told[#told], "run:optimize: " .. path .. ": goes on in another manner: gradient was none and is decay 0.1, "
      .. "optimizer.clip was none and is 1, optimizer.rate was 0.05 and is 0.01, rate of controller.b1 was none and is "
      .. "0.02, rate of controller.w1 was none and is 0.02")
    messages.warn = warn
  end)

  it("knows the particles of its goal by their names or their count, and a clock", function()
    local world, path = scene.world(scene.robot()), folder .. "/a"
    local function train(iterations, of, clock)
      return cq.Experiment { world = world, steps = 4, controller = cq.Controller.linear { seed = 2 },
        observer = cq.Observer.particles { group = world.robot:group "foot", clock = clock },
        objective = { goal = { of = of, at = { 0.5, 0.5 } } }, optimizer = cq.Optimizer.adam { rate = 0.05 },
      }:optimize { iterations = iterations, folder = path, resume = iterations > 2 }
    end
    train(2, world.robot:group "foot")
    local function refused(part, ...)
      local why = sentence(train, 3, ...)
      require("cq.run").close_open "odd"
      says(why, "of another problem: " .. part .. ";")
    end
    refused("goal.of was foot and is trunk", "trunk")
    refused("goal.of was foot and is 2 particles", { 1, 2 })
    refused("goal.of was foot and is {{foot, trunk}}", { { "foot", "trunk" } })
    refused("goal.of was foot and is " .. world.robot.name, world.robot)
    refused("observer.clock was none and is {2}, observer.clock_amplitude was none and is 1", "foot", 2)
    assert.equal(3, train(3, "foot").iterations)
    -- a run of an earlier program has not saved these
    local state = cq.load(path .. "/optimizer.bin")
    local problem = state.optimizer.starts[1].solver.signature.problem
    for _, name in ipairs { "goal.of", "observer.groups", "observer.group", "observer.clock" } do
      assert.is_string(problem[name])
      problem[name] = nil
    end
    cq.save(path .. "/optimizer.bin", state)
    assert.equal(4, train(4, "trunk").iterations)
  end)

  it("does not go on from parameters of other shapes, or of more of them", function()
    local function gains(shape, more)
      local params = { w = T.param(T.ones(shape)), more = more and T.param(T.ones { 2 }) or nil }
      return experiment { controller = { params = params, act = function(self)
        local sum = self.params.w:sum() + (more and self.params.more:sum() or 0)
        return T.concat { 0.1 * sum, 0.2 * sum }
      end } }
    end
    local path = folder .. "/gains"
    gains({ 2, 3 }, true):optimize { iterations = 2, folder = path }
    local function told(shape, more)
      local run = gains(shape, more)
      local why = sentence(function() run:optimize { iterations = 3, folder = path, resume = true } end)
      assert.is_true(run.params.controller.w:equal(T.ones(shape)))
      return why
    end
    local why = "run:optimize: " .. path .. "/optimizer.bin: the saved parameters do not fit: "
    assert.equal(why .. "controller.w has the shape {3, 2} here and {2, 3} there", told({ 3, 2 }, true))
    assert.equal(why .. "controller.more has the shape none here and {2} there", told({ 2, 3 }))
  end)

  it("goes on with several runs, of which those that had not begun begin", function()
    local option, messages, told = cq.option.program, require "cq.base.message", {}
    local note = messages.note
    option.out, messages.note = folder .. "/several", function(format, ...) told[#told + 1] = format:format(...) end
    local whole = experiment():optimize { iterations = 2, name = "a" }
    local rest = experiment():optimize { iterations = 3, name = "a", resume = true }
    local begun = experiment():optimize { iterations = 2, name = "b", resume = true }
    local refused = sentence(function()
      experiment():optimize { iterations = 2, folder = folder .. "/none", resume = true }
    end)
    option.out, messages.note = nil, note
    assert.equal(2, whole.iterations)
    assert.equal(3, rest.iterations)
    assert.equal(2, begun.iterations)
    assert.equal(3, #lines(folder .. "/several/b/history.csv"))
    says(table.concat(told, "\n"), "nothing to go on from in " .. folder .. "/several/b: this run begins")
    says(refused, "there is nothing to resume in " .. folder .. "/none")
  end)

  it("cannot go on from what a loop of the user's, or something odd, has saved", function()
    host.make_folder(folder .. "/a")
    local run = experiment()
    for problem, optimizer in pairs {
      ["it must be a table, got nil"] = false, ["plan must be a table, got nil"] = { kind = "adam", iteration = 3 },
      ["starts must be a table, got 3"] = { plan = {}, substeps = {}, starts = 3 },
      ["made must be a whole number at least 0, got nil"] = { plan = {}, substeps = {}, starts = { { number = 1,
        stage = 1, history = {} } } },
      ["params must be a table, got 2"] = { plan = {}, substeps = {}, starts = { { number = 1, stage = 1, made = 1,
        history = {}, params = 2 } } },
    } do
      T.save(folder .. "/a/optimizer.bin", { iteration = 3, params = run.params, optimizer = optimizer or nil })
      says(sentence(function() run:optimize { iterations = 9, folder = folder .. "/a", resume = true } end),
        ("run:optimize: %s/a/optimizer.bin was not saved by run:optimize: %s"):format(folder, problem))
      require("cq.run").close_open "odd"
    end
  end)

  it("keeps the bounds of what was best", function()
    local run = experiment { trainable = { gravity = { min = -5, max = 5 } } }
    run:optimize { iterations = 1, folder = folder .. "/a" }
    local best = cq.load(folder .. "/a").parameters
    for _, params in ipairs { best, T.load(folder .. "/a/params.bin"), run.best.params } do
      assert.same({ min = -5, max = 5 }, params.world.gravity.bounds)
    end
  end)

  it("stops at the next iteration when it is interrupted, and saves", function()
    local run = experiment()
    local result = run:optimize { iterations = 10, folder = folder .. "/a", on_iteration = function(i)
      if i == 3 then engine.C.cq_interrupt(1) end
    end }
    engine.C.cq_interrupt(0)
    assert.equal(3, result.iterations)
    engine.C.cq_interrupt(1)
    assert.is_nil(run:render(folder .. "/film.mp4"))
    engine.C.cq_interrupt(0)
    assert.is_true(T.load(folder .. "/a/params.bin").controller.w1:equal(run.params.controller.w1))
    says(process.read(folder .. "/a/manifest.json"), "interrupted")
  end)

  it("has its first parameters as the best ones when no iteration is wanted", function()
    local run = experiment()
    local result = run:optimize { iterations = 0, folder = folder .. "/a" }
    assert.same({ run:evaluate { params = "last" }.loss, 0 }, { result.best, run.best.iteration })
    assert.is_true(run.best.params.controller.w1:equal(run.params.controller.w1))
    assert.equal(run.best.loss, experiment():optimize({ iterations = 1, folder = folder .. "/b" }).loss)
  end)

  it("keeps what it has when the user interrupts within an iteration", function()
    local iteration = 0
    local run = experiment { objective = { running = function(s, u)
      if iteration == 2 and s.step == 4 then engine.C.cq_interrupt(1) end
      return u:dot(u)
    end } }
    local result = run:optimize { iterations = 10, folder = folder .. "/a",
      on_iteration = function(i) iteration = i end }
    engine.C.cq_interrupt(0)
    assert.equal(2, result.iterations)
    assert.equal(3, #lines(folder .. "/a/history.csv"))
  end)

  it("ends the script when it is interrupted before there is any result to go on with", function()
    local run = experiment { objective = function(s)
      engine.C.cq_interrupt(1)
      return s:center("foot")[1]
    end }
    local message = sentence(function() run:optimize { iterations = 10, folder = folder .. "/a" } end)
    engine.C.cq_interrupt(0)
    says(message, "run:optimize: interrupted before the first iteration was made")
    says(process.read(folder .. "/a/manifest.json"), '"status": "interrupted"')
    assert.equal(0, T.load(folder .. "/a/optimizer.bin").iteration)
  end)

  it("keeps what it has when a function of the user's fails", function()
    local iteration = 0
    local function running(s, u)
      if iteration == 2 and s.step == 4 then error "no more" end
      return u:dot(u)
    end
    local run = experiment { objective = { terminal = function(s) return s:center("foot")[1] end, running = running } }
    local message = sentence(function()
      run:optimize { iterations = 10, folder = folder .. "/a", on_iteration = function(i) iteration = i end }
    end)
    says(message, "no more (in running, control step 4 of 15)")
    assert.is_true(T.load(folder .. "/a/params.bin").controller.w1:equal(run.params.controller.w1))
    require("cq.run").close_open(message)
    says(process.read(folder .. "/a/manifest.json"), "failed")
  end)

  it("trains values of the robot and the world within their bounds", function()
    local run = experiment { trainable = {
      young = { min = 9, max = 12, per = "particle", init = T.full({ 32 }, 10) },
      density = { min = 0.5, max = 1.6, per = "group" },
      poisson = { min = 0.1, max = 0.4, init = 0.25 }, velocity = { init = { 0.1, 0 } },
      friction = { min = 0, max = 1 }, gravity = {},
    } }
    local p = run.params
    assert.same({ 32 }, p.robot.young:shape())
    assert.equal(1.5, p.robot.density.trunk:item())
    assert.equal(0.4, p.world.friction:item())
    assert.same({ 2 }, p.world.gravity:shape())
    local before = run:evaluate().loss
    run.optimizer.rate = 0.5
    local result = run:optimize { iterations = 5, folder = folder .. "/a" }
    assert.is_true(result.best < before)
    assert.is_true(p.robot.young:min():item() >= 9 and p.robot.young:max():item() <= 12)
    assert.is_true(p.robot.density.trunk:item() <= 1.6 and p.world.friction:item() >= 0)
    assert.is_false(p.world.gravity:equal(T.tensor { 0.3, -4 }))
    says(sentence(experiment, { trainable = { young = {} } }), "differs between particles (10 and 8)")
    says(sentence(experiment, { trainable = { yung = {} } }), "trainable has no \"yung\" (did you mean young?)")
    says(sentence(experiment, { trainable = { young = { per = "leg" } } }), "per must be one of")
    says(sentence(experiment, { trainable = { actuation_weight = { per = "particle" } } }),
      "actuation_weight: needs init")
    says(sentence(experiment, { trainable = { position = {} } }),
      'position: is a value of each particle; say per = "particle", got "robot"')
    says(sentence(experiment, { trainable = { young = T.ones {} } }), "must be a cq.param")
  end)

  it("trains from the values that the robot begins with", function()
    local world = scene.world(scene.robot())
    local function params(trainable, given)
      return experiment({ world = world, robot = given and world.robot:with(given),
        trainable = trainable }).params.robot
    end
    assert.same({ 0, 0 }, params({ velocity = {} }).velocity:totable())
    local by_group = params({ velocity = { per = "group" }, deformation = { per = "group" },
      affine = { per = "group" } })
    assert.same({ 0, 0 }, by_group.velocity.trunk:totable())
    assert.same({ { 1, 0 }, { 0, 1 } }, by_group.deformation.foot:totable())
    assert.same({ { 0, 0 }, { 0, 0 } }, by_group.affine.foot:totable())
    assert.same({ 32, 2 }, params({ velocity = { per = "particle" } }).velocity:shape())
    assert.is_true(params({ position = { per = "particle" } }).position:equal(world.robot.position))
    local given = { young = 20, velocity = { trunk = { 1, 2 } } }
    assert.equal(20, params({ young = {} }, given).young:item())
    assert.same({ 1, 2 }, params({ velocity = { per = "group" } }, given).velocity.trunk:totable())
    says(sentence(params, { velocity = {} }, given),
      "trainable.velocity: differs between particles (0 and 1); use per = \"particle\" or \"group\", or give init")
    says(sentence(params, { young = {} }, { young = T.full({ 3, 1 }, 5) }),
      "trainable.young: needs init, the robot has a value for each scene of a batch")
    local run = experiment { trainable = { velocity = { per = "group" } } }
    local report = run:check()
    assert.is_true(report.gradients["robot.velocity.trunk"] > 0)
  end)

  it("reduces running costs as told", function()
    local function loss(reduce)
      return (experiment { objective = { running = function(s) return s:velocity("foot")[2] end,
        reduce = reduce } }:evaluate().loss)
    end
    local roll = experiment {
      objective = { running = function(s) return s:velocity("foot")[2] end } }:evaluate().rollout
    local x = roll.running
    assert.same({ 15 }, x:shape())
    for name, want in pairs { sum = x:sum(), mean = x:mean(), max = x:max(), min = x:min(), product = x:prod() } do
      assert.equal(want:item(), loss(name))
    end
    assert.equal(x:square():sum():item(), loss(function(r) return r:square():sum() end))
  end)

  it("is checked before it runs", function()
    local run = experiment { steps = 100 }
    local report = run:check()
    assert.is_true(report.gradients["controller.w1"] > 0)
    assert.equal(1, report.plan.recompute)
    says(report.text, "controller.w1: 16 numbers")
    says(sentence(function()
      experiment { objective = function() return T.tensor(1) end }:check()
    end), "does not reach the objective: nothing computed from it is part of the result")
    says(sentence(function()
      experiment { objective = function(s) return s:center("foot")[1]:item() end }:optimize { iterations = 1,
        folder = folder .. "/number" }
    end), "does not reach the objective: the number ", "was returned, which remembers no parameter; return a tensor")
  end)

  it("draws films and pictures", function()
    local run = experiment()
    local path = run:render(folder .. "/last.png", { width = 128, samples = 1 })
    assert.equal("\137PNG", process.read(path):sub(1, 4))
    assert(run:render(folder .. "/least.png", { width = 64, samples = 1 }))
    local film = run:render(folder .. "/film.mp4", { width = 128, samples = 1, fps = 100, keep_frames = true,
      label = "a test" })
    assert.is_truthy(host.kind(film))
    -- 15 control steps of 6e-3 at 100 frames in a unit of time
    assert.equal("file", host.kind(folder .. "/film_frames/000009.png"))
    assert.is_nil(host.kind(folder .. "/film_frames/000012.png"))
    -- colours by what the engine derives, or by what a script makes of the state
    for _, colour in ipairs { "von_mises", function(state)
      return state:gather(nil, "jacobian") - 1
    end, { by = "speed", unit = "m/s", range = { 0, 2 } } } do
      run:render(folder .. "/colours.png", { width = 128, samples = 1, colour = colour })
    end
    says(sentence(function() run:render(folder .. "/colours.png", { colour = "stress" }) end), "von_mises")
    -- constants, signals and categories; opacity and arrows
    local kinds = { by = function(state) return 1 + 0 * state:gather(nil, "speed") end, categories = { "a", "b" } }
    for _, colour in ipairs { "young", "density", "signal", kinds } do
      local opacity = cq.zeros { run.world.particle_count } + 0.5
      run:render(folder .. "/colours.png", { width = 128, samples = 1, colour = colour, opacity = opacity,
        arrows = "velocity" })
    end
    says(sentence(function() run:render(folder .. "/colours.png", { colour = "friction_angle" }) end),
      "no material of this world has the constant friction_angle")
    says(sentence(function()
      run:render(folder .. "/colours.png", { arrows = function() return T.ones { 3, 2 } end })
    end),
      "arrows must give a vector for each")
    says(sentence(function() run:render(folder .. "/colours.png", { goals = 3 }) end), "goals must be a list of places")
    says(sentence(function()
      run:render(folder .. "/colours.png", { colour = function(state) return state:positions() end })
    end),
      "colour must give a number for each of the")
    says(sentence(function() run:render(folder .. "/film.mp4", { fbs = 3 }) end),
      "unknown field fbs (did you mean fps?)")
  end)

  it("draws a picture of one moment once, and several moments into one", function()
    local run, labels = experiment(), {}
    local function label(state) labels[#labels + 1] = state.step; return "a" end
    run:render(folder .. "/last.png", { width = 128, samples = 1, fps = 240, label = label })
    assert.same({ 15 }, labels)
    for _, layout in ipairs { "apart", "together", "auto" } do
      labels = {}
      run:render(folder .. "/stills.png", { width = 128, samples = 1, stills = { 0, 0.03, 0.09 }, layout = layout,
        label = label })
      assert.same({ 0, 5, 15 }, labels)
    end
    assert.equal("run:render: a still is wanted at time 1, the run ends at 0.09",
      sentence(function() run:render(folder .. "/stills.png", { stills = { 0, 1 } }) end))
    assert.equal("run:render: stills 0.089 and 0.09 are closer than a control step, 0.006",
      sentence(function() run:render(folder .. "/stills.png", { stills = { 0.089, 0.09 } }) end))
    -- also where it is only checked; a run that is cut short draws nothing with --render no
    local option = require "cq.option"
    option.program.check = true
    local why = sentence(function() run:render(folder .. "/stills.png", { stills = { 0, 1 } }) end)
    option.program.check = nil
    says(why, "a still is wanted at time 1")
    says(sentence(function() run:render(folder .. "/stills.png", { stills = { 0.2, 0.1 } }) end),
      "stills must be times that rise")
    says(sentence(function() run:render(folder .. "/stills.mp4", { stills = { 0 } }) end), "the path must end in .png")
  end)

  it("names the function of the user's that fails, and the control step where there is one", function()
    local run = experiment()
    local function fails_at(step)
      return function(state)
        if state.step == step then error("lost", 0) end
        return state:gather(nil, "speed")
      end
    end
    local function told(options)
      options.width, options.samples = 64, 1
      return select(2, pcall(run.render, run, folder .. "/told.png", options))
    end
    local by = { by = fails_at(0) }
    says(told { stills = { 0 }, colour = by }, "lost (in colour of run:render, at the start)")
    says(told { stills = { 0.012 }, opacity = fails_at(2) }, "lost (in opacity of run:render, control step 2 of 15)")
    says(told { label = fails_at(15) }, "lost (in label of run:render, control step 15 of 15)")
    -- what is no function fails at no control step
    assert.equal("run:render: colour must give a number for each of the 32 particles, got a tensor {3}",
      sentence(function() run:render(folder .. "/told.png", { colour = T.ones { 3 }, stills = { 0.012 } }) end))
  end)

  it("knows where walls have gone, and how strongly cables pull", function()
    local wall_motion = require "cq.rollout.wall_motion"
    local box = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.02 }
    local world = cq.World {
      cells = { 40, 40 }, dx = 0.02, dt = 0.01, precision = "float64", walls = {
        cq.Boundary.floor { at = 0.1, velocity = { 0.5, 0 }, moves = false },
        cq.Boundary.floor { at = 0.1, axis = "x", velocity = { 0.5, 0 } },
        cq.Boundary.obstacle { lower = { 0.7, 0.1 }, upper = { 0.75, 0.2 },
          motion = function(t) return { 0, 2 * t * t } end },
      },
      cq.Robot { shape = box, material = cq.Material.neo_hookean { young = 1, poisson = 0.3 } }:at { 0.3, 0.3 },
    }
    local way
    world:rollout { steps = 10, on_step = function(state) way = wall_motion.way(state, 0) or "none" end }
    for k, wanted in ipairs { { 0, 0 }, { 0.05, 0 }, { 0, 0.02 } } do
      for d = 1, 2 do
        assert(math.abs(way[k][d] - wanted[d]) < 1e-9, ("wall %d, axis %d: %g"):format(k, d, way[k][d]))
      end
    end
    -- the momentum that a cable to an anchor gives its particles in a step is its tension
    local pulled = cq.World {
      cells = { 60, 40 }, dx = 0.02, dt = 1e-4, precision = "float64",
      cq.Robot { shape = box, material = cq.Material.neo_hookean { young = 1, poisson = 0.3 },
        actuators = cq.Actuator.cable { path = { { anchor = { 0.9, 0.35 } }, { 0.05, 0.05 } }, stiffness = 3,
          rest_length = 0.2 } }:at { 0.3, 0.3 },
    }
    local told, moved
    pulled:rollout { steps = 1, controller = function() return T.tensor { 0.2 } end, on_step = function(state, u)
      local path = visuals.cables(state, u, state:positions())[1]
      if u then moved = state:momentum(pulled.robot):norm():item() / 1e-4 else assert.is_nil(path.tension) end
      told = path.tension and path.tension[1]
    end }
    assert(told > 0.1 and math.abs(told / moved - 1) < 1e-3, ("%g and %g"):format(told, moved))
    -- no particle has a colour of actuation, so that no legend explains one
    pulled:rollout { steps = 1, controller = function() return T.tensor { 0.2 } end, on_step = function(state, u)
      assert.is_nil(visuals.actuation(state, u))
    end }
  end)

  it("draws moments beside each other in one picture where bodies go far, and not where they bend", function()
    local column = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.4 }, spacing = 0.02 },
      material = cq.Material.neo_hookean { young = 1e-6, poisson = 0 } }
    local world = cq.World { cells = { 40, 20 }, dx = 0.05, dt = 0.01, substeps = 2, column:at { 0.3, 0.2 } }
    local height = column.position:slice(2, 2, 2)
    for layout, velocity in pairs { together = { 1, 0 }, apart = cq.concat({ 2 * height, 0 * height }, 2) } do
      local run = cq.Experiment { world = world, steps = 40, robot = column:with { velocity = velocity },
        objective = function(state) return state:center()[1] end }
      local drawn = {}
      for _, name in ipairs { "auto", layout } do
        run:render(folder .. "/moments.png", { width = 128, samples = 1, stills = { 0, 0.4 }, layout = name })
        drawn[name] = process.read(folder .. "/moments.png")
      end
      assert(drawn.auto == drawn[layout], layout)
    end
  end)

  it("draws the goal of its objective, unless told which goals", function()
    local run = experiment { objective = { goal = { of = "trunk", at = { 0.7, 0.3 } } } }
    local function drawn(goals)
      local path = folder .. "/goal.png"
      run:render(path, { width = 128, samples = 1, goals = goals })
      return process.read(path)
    end
    local own = drawn()
    assert(own == drawn { { at = { 0.7, 0.3 } } } and own ~= drawn {}, "the goal was not drawn")
    says(sentence(drawn, { { 0.5, 0.3 }, { 0.5, 7 } }),
      "run:render: goals[2], { 0.5, 7 }, is outside of the world, which reaches from the origin to { 1, 1 }")
    says(sentence(drawn, function() return { T.tensor { -1, 0.3 } } end), "goals[1], { -1, 0.3 }, is outside")
  end)

  it("draws into the folder of the script where nothing was trained", function()
    local path = process.write(folder .. "/fall.lua", [[
      local cq, scene = require "cq", require "tests.scene"
      local robot = scene.robot()
      local run = cq.Experiment { world = scene.world(robot), steps = 2, objective = function(s)
        return s:center(robot)[1] end }
      run:render("fall.png", { width = 100 })]])
    local result = process.cqlua({ path, "--quiet" }, { before = ("cd %s && LUA_PATH='%s/?.lua;;'"):format(folder,
      host.root) })
    assert.equal("", result.err)
    assert.equal("file", host.kind(folder .. "/runs/fall/fall.png"))
    assert.is_nil(host.kind(folder .. "/fall.png"))
  end)

  it("leaves no half of a film", function()
    local function label(state) return state.step > 5 and error "no words" or "words" end
    local message = sentence(function()
      experiment():render(folder .. "/half.mp4", { width = 128, samples = 1, fps = 100, label = label })
    end)
    says(message, "no words")
    assert.same({}, host.entries(folder))
  end)
end)

describe("a tensor in the place of a parameter", function()
  -- an experiment of four steps that pushes as hard as it can, with u in the place of its signals
  local function with(u)
    local run = cq.Experiment { world = scene.world(scene.robot()), steps = 4,
      controller = cq.Controller.open_loop { steps = 4 }, optimizer = cq.Optimizer.adam { rate = 1 },
      objective = function(s) return -1e4 * s:center("trunk")[1] end, trainable = { friction = { min = 0, max = 1 } } }
    run.params.controller.u = u
    return run
  end
  local function greatest(u)
    local run = with(u)
    run:optimize { iterations = 3, folder = folder .. "/run" }
    assert.equal(u, run.params.controller.u)
    return u:detach():abs():max():item()
  end

  it("is trained within the bounds of that parameter, or those that it has", function()
    assert.equal(1, greatest(cq.zeros { 4, 2 }))
    assert.equal(1, greatest(cq.param(cq.zeros { 4, 2 })))
    assert.equal(0.5, greatest(cq.param(cq.zeros { 4, 2 }, { min = -0.5, max = 0.5 })))
    assert.equal(2, greatest(cq.param(cq.zeros { 4, 2 }, { min = -2, max = 2 })))
  end)

  it("must be within them", function()
    local run = with(cq.full({ 4, 2 }, 3))
    local said = sentence(function() run:optimize { iterations = 3, folder = folder .. "/run" } end)
    says(said, "run:optimize: params.controller.u was replaced by a tensor that does not fit: element 1 is 3, outside its bounds -1 to 1; for other bounds give it a cq.param(value, { min = ..., max = ... })")
    assert.is_nil(require("cq.host").kind(folder .. "/run"))
  end)
end)

describe("mistakes in an experiment", function()
  it("are told at the user's line", function()
    says(sentence(experiment, { duration = 1 }), "give either duration or steps, not both")
    local world = scene.world(scene.robot())
    says(sentence(cq.Experiment, { world = world, duration = 0.01, objective = print }),
      "duration must be a multiple of the control step 0.006, got 0.01")
    assert.equal(50, cq.Experiment({ world = world, duration = 0.3, objective = print }).steps)
    says(sentence(experiment, { objective = { goal = { at = { 0.5, 0.5 } } } }), "goal: of is missing: a group's name")
    says(sentence(experiment, { objective = { terminal = print, reduce = "max" } }),
      "objective: reduce is of running, and has no effect without it")
    says(sentence(experiment, { objective = {} }), "objective needs terminal, goal, running, effort or work")
    says(sentence(experiment, { objective = { terminal = print, reduce = "most" } }), "reduce must be one of")
    says(sentence(experiment, { optimizr = 3 }), "unknown field optimizr (did you mean optimizer?)")
    local vector = experiment { objective = function(s) return s:center "foot" end }
    says(sentence(function() vector:evaluate() end), "objective.terminal must give one number, got a tensor {2}")
    local function objective(s) return s:center("foot")[1] end
    local without = cq.Experiment { world = world, steps = 2, objective = objective }
    says(sentence(function() without:optimize { iterations = 1 } end), "the experiment has no optimizer")
    local idle = cq.Experiment { world = world, steps = 2, optimizer = cq.Optimizer.adam { rate = 1 },
      objective = objective }
    says(sentence(function() idle:optimize { iterations = 1 } end), "nothing to train")
    local plain = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, count = { 4, 2 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
    says(sentence(cq.Experiment, { world = scene.world(plain), steps = 2, objective = print,
      trainable = { young = { min = 5, max = 40, per = "group" } } }), "trainable.young: per = \"group\" needs a shape "
      .. "whose parts have names")
  end)
end)
