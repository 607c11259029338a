-- evaluate: run:evaluate and run:render with parameters that are chosen, and in other worlds than the experiment's own.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local host = require "cq.host"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local STEPS = 15

local function height(state) return state:center("trunk")[2] end

local function experiment(changes)
  local robot = scene.robot()
  local fields = {
    world = scene.world(robot), steps = STEPS, observer = cq.Observer.centroid { groups = { "foot", "trunk" } },
    controller = cq.Controller.linear { seed = 2 },
    objective = { terminal = function(s) return -s:velocity("trunk")[1] end,
      effort = function(u) return 1e-3 * u:square():sum() end },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields), robot
end

describe("run:evaluate", function()
  it("gives loss, parts and constraints by name, and the rollout", function()
    local run = experiment { constraints = {
      { name = "height", at_most = 0.5, running = height, reduce = "max" },
      { name = "rest", at_most = 1, terminal = function(s) return s:mean_square_velocity(s.world.robot) end } } }
    local found = run:evaluate()
    local roll = found.rollout
    assert.equal(STEPS, roll.steps)
    assert.equal(-roll.state:velocity("trunk")[1]:item(), found.terminal)
    assert.equal(1e-3 * roll.signals:square():sum():item(), found.effort)
    assert.equal(found.terminal + found.effort, found.loss)
    assert.equal(roll.state:mean_square_velocity(run.robot):item(), found.rest)
    assert.is_true(found.height > 0.2 and found.height < 0.4)
    says(tostring(found), ("loss %.6g, effort %.6g, height %.6g, rest"):format(found.loss, found.effort, found.height))
  end)

  it("in a changed world gives what a world made so gives", function()
    local run, robot = experiment()
    run:evaluate()                                       -- the parameters are made
    local ice = scene.world(robot, { walls = cq.Boundary.box { kind = "friction", mu = 0.1 } })
    local other = experiment { world = ice }
    local wanted = other:evaluate { params = run.params }.loss
    assert.is_true(math.abs(wanted - run:evaluate().loss) > 1e-6)
    assert.equal(wanted, run:evaluate { friction = 0.1 }.loss)
    assert.equal(wanted, run:evaluate { world = ice }.loss)
    local function rises(changes) return height(run:evaluate(changes).rollout.state):item() end
    assert.is_true(rises { gravity = { 0, -1 } } > rises())
  end)

  it("simulates the values that a given robot or a world has, also where the experiment's robot has others", function()
    local robot = scene.robot()
    local first = robot:with { young = 20, velocity = T.ones { robot.particle_count, 2 } }
    local run, soft = experiment { world = scene.world(first) }, first:with { young = 3 }
    local other = experiment { world = scene.world(soft) }
    local wanted = other:evaluate({ params = run.params }).loss
    assert.is_true(math.abs(wanted - run:evaluate().loss) > 1e-6)
    assert.equal(wanted, run:evaluate({ robot = soft }).loss)
    assert.equal(wanted, run:evaluate({ robot = robot:with { young = 3 } }).loss)       -- with the velocity of its own
    assert.equal(wanted, run:evaluate({ world = other.world }).loss)
    local trained = experiment { world = run.world, trainable = { young = {} } }
    assert.equal(run:evaluate({ params = run.params }).loss, trained:evaluate({ world = other.world }).loss)
    local scenes = experiment { world = other.world, scenes = { count = 1, each = function()
      return { robot = run.world.robot }
    end } }
    assert.equal(run:evaluate({ params = run.params }).loss, scenes:evaluate({ world = scene.world(soft) }).loss)
  end)

  it("takes what is trained of the world from the changes, where these say it", function()
    local run = experiment { trainable = { friction = { init = 0.3, min = 0, max = 1 } } }
    local free = experiment()
    assert.equal(free:evaluate { friction = 0.3 }.loss, run:evaluate().loss)
    assert.equal(free:evaluate { friction = 0.1 }.loss, run:evaluate { friction = 0.1 }.loss)
  end)

  it("runs for another time, and in another world as long as in its own", function()
    local run, robot = experiment()
    assert.equal(2 * STEPS, run:evaluate { duration = 2 * STEPS * 6e-3 }.rollout.steps)
    assert.equal(3, run:evaluate { steps = 3 }.rollout.steps)
    local finer = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 3e-3, robot:at { 0.4, 0.127 } }
    assert.equal(2 * STEPS, run:evaluate { world = finer }.rollout.steps)
    local by_step = cq.Experiment { world = run.world, duration = STEPS * 6e-3, robot = robot,
      controller = cq.Controller.sum { beat = cq.Controller.open_loop { steps = STEPS } },
      objective = function(state) return -state:center(robot)[1] end }
    says(sentence(function() by_step:evaluate { world = finer } end),
      "run:rollout: the signals are those of control steps of 0.006, and the world has control steps of 0.003; give it dt = 0.006")
    says(sentence(function() run:evaluate { duration = 0.01 } end), "duration must be a multiple of the control step 0.006")
    says(sentence(function() run:evaluate { duration = 0.06, steps = 10 } end), "either duration or steps, not both")
  end)

  it("takes parameters by word, by table, in part, and as one tensor", function()
    local run = experiment { optimizer = cq.Optimizer.adam { rate = 0.1 }, trainable = {
      young = { per = "robot", init = 9, min = 1, max = 20 } } }
    run:optimize { iterations = 3, folder = folder .. "/a" }
    local best, last = run:evaluate().loss, run:evaluate { params = "last" }.loss
    assert.equal(run.best.loss, best)
    assert.is_true(best ~= last)
    assert.equal(best, run:evaluate { params = run.best.params }.loss)
    assert.equal(last, run:evaluate { params = run.params }.loss)
    assert.equal(best, run:evaluate { params = cq.load(folder .. "/a").parameters }.loss)
    -- a number where the parameter is one; what is left out is the best
    local soft = run:evaluate { params = { robot = { young = 3 } } }.loss
    local whole = T.leaves.snapshot(run.best.params)
    whole.robot.young = T.tensor(3)
    assert.equal(run:evaluate { params = whole }.loss, soft)
    local all = {}
    for _, leaf in ipairs(T.leaves.list(run.params)) do
      for _, x in ipairs(leaf.tensor:flatten():totable()) do all[#all + 1] = x end
    end
    assert.equal(last, run:evaluate { params = T.tensor(all) }.loss)
  end)

  it("refuses parameters that do not fit", function()
    local run = experiment { trainable = { young = { init = 9 } } }
    says(sentence(function() run:evaluate { params = { robot = { yong = 3 } } } end),
      "params.robot has no yong (did you mean young")
    says(sentence(function() run:evaluate { params = { controler = {} } } end), "did you mean controller")
    says(sentence(function() run:evaluate { params = { controller = { w1 = T.zeros { 3, 2 } } } } end),
      "params.controller.w1 must have the shape {4, 2}, got {3, 2}")
    says(sentence(function() run:evaluate { params = { controller = 3 } } end),
      "params.controller must be a table, got 3")
    says(sentence(function() run:evaluate { params = T.zeros { 4 } } end), "all 11 numbers of the parameters, got 4")
    says(sentence(function() run:evaluate { params = "worst" } end), "params must be")
    says(sentence(function() run:evaluate "last" end), 'takes a table, as { params = "last" }')
    says(sentence(function() run:evaluate { frction = 0.1 } end), "did you mean friction")
    says(sentence(function()
      experiment { constraints = { { name = "terminal", at_most = 1, terminal = height } } }:evaluate()
    end), "the constraint terminal has the name of a part of the objective")
  end)

  it("gives what is trained of particles to another robot, to each from the nearest", function()
    local run = experiment { trainable = { young = { per = "particle", min = 1, max = 100 } } }
    run.params.robot.young:copy_from(T.arange(1, 32) + 8)
    local finer = scene.robot { count = 8 }
    local world = scene.world(finer)
    local roll = run:evaluate { world = world }.rollout
    assert.equal(128, roll.state:positions():size(1))
    -- the first particle of either lies in a corner of the foot; the order of particles is that of the lattice
    local young = world.robot:with_values_of(run.robot:with { young = run.params.robot.young }).values.young.tensor
    assert.equal(9, young:get(1))
    assert.equal(128, young.count)
    assert.equal(40, young:get(128))
    local same = world:rollout { steps = STEPS, robot = world.robot:with { young = young }, observer = run.observer,
      controller = run.controller }
    assert.is_true(same.state:positions():equal(roll.state:positions()))
  end)

  it("takes another robot, as a variant or in the place of the first", function()
    local run, robot = experiment()
    local soft = run:evaluate { robot = run.world.robot:with { young = 4 } }
    assert.equal(soft.loss, run:evaluate { robot = robot:at { 0.4, 0.127 }:with { young = 4 } }.loss)
    assert.is_true(soft.loss ~= run:evaluate().loss)
    local other = scene.robot { count = 6 }
    local there = run:evaluate { world = scene.world(other) }.loss
    assert.equal(there, run:evaluate { robot = other:at { 0.4, 0.127 } }.loss)
  end)

  it("takes a robot that was not placed as a variant of the world's, where that stands", function()
    local run, robot = experiment()
    local soft = run:evaluate { robot = run.world.robot:with { young = 4 } }
    assert.equal(soft.loss, run:evaluate { robot = robot:with { young = 4 } }.loss)
    assert.equal(height(soft.rollout.state):item(),
      height(run:evaluate { robot = robot:with { young = 4 } }.rollout.state):item())
    -- one that stands elsewhere takes the place of the first
    local higher = run:evaluate { robot = robot:at { 0.4, 0.327 } }.rollout.state
    assert.is_true(height(higher):item() > 0.1 + height(soft.rollout.state):item())
  end)

  it("refuses values of a robot or a world that are trained", function()
    local run, robot = experiment { trainable = { young = { init = 9 }, friction = { init = 0.3 } } }
    local own, plain = run.world.robot, run:evaluate().loss
    local function ice(more)
      return scene.world(robot:with(more or {}), { walls = cq.Boundary.box { kind = "friction", mu = 0.1 } })
    end
    says(sentence(function() run:evaluate { robot = own:with { young = 4 } } end),
      "robot: its young is trained, and cannot be given too; run:evaluate takes it in params")
    local other = scene.robot { count = 6 }:at { 0.4, 0.127 }
    says(sentence(function() run:evaluate { robot = other:with { young = 4 } } end), "robot: its young is trained")
    says(sentence(function() run:evaluate { world = ice() } end),
      "world: its friction is not that of the experiment's world, and has no effect, since friction is trained: give friction = ...")
    assert.equal(run:evaluate { friction = 0.1 }.loss, run:evaluate { world = ice(), friction = 0.1 }.loss)
    -- the trained values themselves, others, and a world that has the same
    assert.equal(plain, run:evaluate { robot = run:robot_with(run.params) }.loss)
    assert.equal(plain, run:evaluate { world = scene.world(robot) }.loss)
    assert.is_true(plain ~= run:evaluate { robot = own:with { density = 2 } }.loss)
  end)

  it("leaves out friction and wall velocity where a given world has no walls for them, and tells", function()
    local message, said = require "cq.base.message", nil
    local own = message.note_once
    local function open(robot)
      return cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3, gravity = { 0.3, -4 },
        precision = "float64", robot:at { 0.4, 0.5 } }
    end
    local function slippery(robot) return scene.world(robot, { walls = cq.Boundary.box { kind = "slip" } }) end
    -- evaluates in a world as an experiment without the changes does, and says which have no place there
    local function tells(words, make, more)
      local run, robot = experiment(more)
      said = {}
      local loss = run:evaluate { world = make(robot) }.loss
      says(table.concat(said, " "), words)
      assert.equal(experiment():evaluate { world = make(robot) }.loss, loss)
    end
    function message.note_once(format, ...) said[#said + 1] = format:format(...) end
    local fine, problem = pcall(function()
      local of_friction = "the friction of the experiment has no place in the given world, which has no wall of kind "
        .. '"friction", and is left out there'
      for _, make in ipairs { open, slippery } do
        tells(of_friction, make, { trainable = { friction = { init = 0.3 } } })
        tells(of_friction, make, { scenes = { count = 2, each = function(k) return { friction = 0.2 * k } end } })
      end
      tells("the wall_velocity of the experiment has no place in the given world, which has no wall, and is left out",
        open, { trainable = { wall_velocity = { init = { 0.1, 0 } } } })
    end)
    message.note_once = own
    assert.is_true(fine, problem)
    local run, robot = experiment { trainable = { friction = { init = 0.3 } } }
    says(sentence(function() run:evaluate { world = open(robot), friction = 0.1 } end),
      "friction is given, but the world has no walls")
  end)

  it("names both where signals or groups do not fit", function()
    local run = experiment()
    run:evaluate()
    local one = scene.robot { actuators = cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 } }
    local said = sentence(function() run:evaluate { world = scene.world(one) } end)
    says(said, "the controller gives 2 signals")
    local bare = cq.Robot { shape = cq.Shape.box { name = "body", size = { 0.1, 0.2 }, count = { 4, 8 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = cq.Actuator.muscle { groups = { "body", "body" }, axis = "y", max = 1 } }
    said = sentence(function() run:evaluate { world = scene.world(bare) } end)
    says(said, 'no group "foot"; the groups are body')
  end)

  it("gives means over scenes", function()
    local run = experiment { scenes = { count = 3, each = function(k) return { friction = 0.2 * k } end } }
    local found, sum, final = run:evaluate(), 0, 0
    for k = 1, 3 do
      local one = experiment():evaluate { friction = 0.2 * k }
      assert.equal(one.loss, found.losses[k])
      sum, final = sum + one.loss, final + one.terminal
    end
    assert.near(sum / 3, found.loss, 1e-15)
    assert.near(final / 3, found.terminal, 1e-15)
    assert.is_nil(found.rollout)
    -- a change is that of all scenes
    local ice = run:evaluate { friction = 0.1 }
    assert.equal(ice.losses[1], ice.losses[2])
  end)

  it("puts a body that was designed into another world", function()
    local robot = block_design.robot()
    local design = block_design.make(nil, robot)
    local run = cq.Experiment { world = design.world, steps = 30, design = design,
      objective = function(s) return s:center("tip")[2] end }
    local body = design:extract(block_design.variables(design))
    local here = run:evaluate { body = body }
    local function world(placed)
      return cq.World { cells = { 50, 25 }, dx = 0.04, gravity = { 0, -9.8 }, dt = 1e-3, substeps = 5,
        precision = "float64", threads = 1,
        walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 }, placed }
    end
    -- the block that it was cut from, or the body itself; sixteen cells further on it does the same, to rounding
    local there = run:evaluate { body = body, world = world(robot:at { 0.84, 0.08 }) }
    assert.near(here.loss, there.loss, 1e-9)
    assert.equal(there.loss, run:evaluate { body = body, world = world(body.robot:at { 0.64, 0 }) }.loss)
    says(sentence(function() run:evaluate { body = body, world = world(block_design.robot():at { 0.4, 0.08 }) } end),
      "neither the body nor the block of 100 particles that it was cut from")
    says(sentence(function() run:evaluate(body) end), "takes a table, as { body = ... }, got a cq.Topology.Body")
    -- and so does the soft one
    run.params.design = block_design.variables(design)
    assert.near(run:evaluate { params = "last" }.loss,
      run:evaluate { params = "last", world = world(robot:at { 0.84, 0.08 }) }.loss, 1e-9)
  end)
end)

describe("the body of a design that was trained with more than the design", function()
  it("has what was trained in whatever world, and constants that are given", function()
    local block = block_design.robot()
    local function world(at)
      return cq.World { cells = { 50, 25 }, dx = 0.04, gravity = { 0, -9.8 }, dt = 1e-3, substeps = 5,
        precision = "float64", threads = 1, walls = cq.Boundary.box { mu = 0.5, inset = 0.08 }, block:at { at, 0.08 } }
    end
    local function push(robot, v) return robot:with { velocity = v } end
    local init = { 0.3, 0 }
    for _, trainable in ipairs { { velocity = { init = init } }, { push = { init = init, apply = push } } } do
      local here = world(0.2)
      local design = cq.Topology { world = here, duration = 0.03, seed = 1 }
      local run = cq.Experiment { world = here, steps = 30, design = design, trainable = trainable, weight = "mass",
        optimizer = cq.Optimizer.adam { rate = 0.01 },
        objective = function(state, start) return start:center(block)[1] - state:center(block)[1] end }
      local p = block_design.variables(design)
      run.params.design.density:copy_from(p.density)
      run.params.design.layout:copy_from(p.layout)
      for _, stage in ipairs { "binary", "extracted" } do
        run:optimize { iterations = 0, body = stage, folder = folder .. "/" .. stage .. next(trainable) }
        local body, loss = run.body, run:evaluate().loss
        assert.is_true(loss < -0.005, loss)
        for k, def in ipairs { { body = body }, { world = body.world }, { world = body.world, body = body },
          { robot = body.world.robot }, { robot = body.robot }, { world = body.world, robot = body.world.robot },
          { world = world(0.2), body = body }, { world = world(0.84), body = body },
          { world = world(0.84), robot = body.robot } } do
          if stage == "extracted" or k ~= 2 then assert.near(loss, run:evaluate(def).loss, 1e-7) end
        end
        if stage == "extracted" then
          assert.near(loss, run:evaluate { world = world(0.84) }.loss, 1e-7)
          says(sentence(function() run:evaluate { robot = here.robot:with { young = 2e5 } } end),
            "robot: its young is that of the design, and cannot be given too")
        end
        local heavy = body.robot:with { density = 1500 }
        local slow = run:evaluate { robot = heavy }.loss
        assert.is_true(math.abs(slow - loss) > 1e-6)
        assert.near(slow, run:evaluate { world = world(0.84), robot = heavy }.loss, 1e-7)
      end
    end
  end)
end)

describe("run:render", function()
  it("draws a changed world, with parameters of one's own", function()
    local run = experiment()
    local there, steps = folder .. "/ice.png", 0
    run:render(there, { friction = 0.1, steps = 4, params = { controller = { b1 = 0.5 } }, width = 200,
      label = function(state)
        steps = state.step
        return "ice"
      end })
    assert.equal("file", host.kind(there))
    assert.equal(4, steps)
    says(sentence(function() run:render(there, { steps = 4, stills = { 0, 0.09 } }) end), "the run ends at 0.024")
  end)
end)

describe("rollout:render and world:render", function()
  it("draw what is no experiment", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local seen = {}
    local function label(state)
      seen[#seen + 1] = state.step
      return "here"
    end
    assert.equal(folder .. "/start.png", world:render(folder .. "/start.png", { width = 100, label = label }))
    assert.same({ 0 }, seen)
    seen = {}
    world:render(folder .. "/fall.png", { duration = 5 * 6e-3, width = 100, label = label, stills = { 0, 0.03 } })
    assert.same({ 0, 5 }, seen)
    local signals = T.full({ 8, 2 }, 0.5)
    local roll = world:rollout { steps = 8, controller = cq.Controller.open_loop(signals), gravity = { 0, 1 } }
    local last
    local film = roll:render(folder .. "/fall.mp4", { width = 64, samples = 1, fps = 200, keep_frames = true,
      label = function(state)
        last = state
        return "there"
      end })
    assert.equal("folder", host.kind(folder .. "/fall_frames") or host.kind(film))
    assert.equal(8, last.step)
    assert.equal(roll.state:center("trunk")[2]:item(), last:center("trunk")[2]:item())
    assert.equal("file", host.kind(roll:render(folder .. "/last.png", { width = 100 })))
  end)

  it("say what is wrong", function()
    local world = scene.world(scene.robot())
    says(sentence(function() world:render(folder .. "/fall.mp4") end), "world:render: needs steps or duration")
    local function told(options) return sentence(function() world:render(folder .. "/fall.png", options) end) end
    says(sentence(function() world:render(folder .. "/fall.avi") end), "world:render: path must end in .png")
    for name, side in pairs { width = 201, height = 101 } do
      says(sentence(function() world:render(folder .. "/fall.mp4", { steps = 2, [name] = side }) end),
        ("world:render: %s of a film must be even, got %d"):format(name, side))
    end
    for _, label in ipairs { 3, 0 / 0, "three", { "three", "lines" } } do
      world:render(folder .. "/label.png", { width = 101, label = function() return label end })
    end
    says(told { label = function() return true end }, "world:render: the result of label must be a string, or a number")
    says(told { steps = 2, duration = 1 }, "not both")
    says(told { step = 2 }, "did you mean steps")
    says(told { layout = "apart" }, "world:render: layout is of stills, and has no effect without them")
    says(told { keep_frames = true }, "world:render: keep_frames is of films, and has no effect on a picture")
    says(told { colour = "blue" }, "world:render: colour must be one of")
    local batch = world:rollout { steps = 2, batch = 2 }
    says(sentence(function() batch:render(folder .. "/fall.png") end), "a batch of 2 scenes is not drawn")
    says(sentence(function() batch:render(folder .. "/fall.png", { stills = { 1, 0 } }) end),
      "rollout:render: stills must be")
  end)
end)
