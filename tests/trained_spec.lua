-- trained: what an experiment trains beside its controller: rates of their own, values with an apply, weights of
-- observers, signals that are held; and what its means weigh by.
local cq = require "cq"
local T = require "cq.tensor"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local folder
before_each(function() folder = scratch.open() end)
after_each(scratch.close)

local function experiment(changes)
  local fields = {
    world = scene.world(scene.robot()), steps = 10, controller = cq.Controller.sines { seed = 1 },
    objective = function(s) return -s:velocity("trunk")[2] end, optimizer = cq.Optimizer.adam { rate = 0.02 },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function stiffer(robot, value) return robot:with { young = 10 * value } end

-- how far each parameter went in the first update, which for Adam is its rate
local function step_of(run, name)
  local before = T.leaves.snapshot(run.params)
  run:optimize { iterations = 1, folder = folder .. "/" .. name }
  local found, out = T.leaves.pair(before, run.params), {}
  for _, leaf in ipairs(T.leaves.list(before)) do
    out[leaf.path] = (found[leaf.tensor] - leaf.tensor):abs():max():item()
  end
  return out
end

describe("a rate of its own", function()
  it("is taken by every kind of trainable, and that of the optimizer by the others", function()
    local moved = step_of(experiment {
      trainable = {
        young = { per = "particle", min = 5, max = 20, rate = 0.5 }, density = { per = "group", rate = 1e-3 },
        gravity = { rate = 0.25 }, softness = { init = { 1, 1 }, rate = 0.125,
          apply = function(robot, s) return robot:with { poisson = 0.3 * s[1] } end },
      },
    }, "a")
    for path, rate in pairs { ["robot.young"] = 0.5, ["robot.density.foot"] = 1e-3, ["world.gravity"] = 0.25,
      ["controller.w"] = 0.02 } do
      assert.near(rate, moved[path], 1e-3 * rate, path)
    end
    moved = step_of(experiment { trainable = { controller = { rate = 0.3 } } }, "b")
    assert.near(0.3, moved["controller.w"], 1e-3)
  end)

  it("follows the schedule, stays with the best parameters, and is taken by a loop of one's own", function()
    local p = { a = cq.param(1, { rate = 0.5 }), b = cq.param(1) }
    local descent = cq.Optimizer.gradient_descent { rate = 0.1, schedule = function() return 0.5 end }
    descent:update(p, { a = cq.tensor(1), b = cq.tensor(1) })
    assert.near(0.75, p.a:item(), 1e-12)
    assert.near(0.95, p.b:item(), 1e-12)
    descent.rate = 0.05
    descent:update(p, { a = cq.tensor(0.4), b = cq.tensor(0.4) })
    assert.near(0.7, p.a:item(), 1e-12)
    assert.near(0.94, p.b:item(), 1e-12)
    descent.rate = 0.1
    local kept = T.leaves.snapshot(p)
    descent:update(kept, { a = cq.tensor(1), b = cq.tensor(1) })
    assert.near(0.45, kept.a:item(), 1e-12)
    says(sentence(cq.param, 1, { rate = 0 }), "rate must be a finite number above 0, got 0")
  end)
end)

describe("an optimizer of parts", function()
  local function parts()
    return cq.Optimizer.parts {
      controller = cq.Optimizer.gradient_descent { rate = 1, clip = 0.25 }, robot = cq.Optimizer.adam { rate = 0.5 },
    }
  end
  local function made() return experiment { trainable = { young = { per = "particle" } }, optimizer = parts() } end

  it("changes each by its own rule and clip, and goes on from where it was", function()
    local moved = step_of(made(), "a")
    assert.near(0.5, moved["robot.young"], 1e-3)
    local alone = { w = cq.param { 3, 4 } }
    local both = { controller = { w = cq.param { 3, 4 } }, robot = cq.param(1) }
    cq.Optimizer.gradient_descent({ rate = 1, clip = 0.25 }):update(alone, { w = cq.tensor { 30, 40 } })
    parts():update(both, { controller = { w = cq.tensor { 30, 40 } }, robot = cq.tensor(1e6) })
    assert.is_true(alone.w:equal(both.controller.w))
    local whole, rest = made(), made()
    whole:optimize { iterations = 4, folder = folder .. "/whole" }
    made():optimize { iterations = 2, folder = folder .. "/parts" }
    rest:optimize { iterations = 4, folder = folder .. "/parts", resume = true }
    assert.is_true(rest.params.robot.young:equal(whole.params.robot.young))
    assert.is_true(rest.params.controller.w:equal(whole.params.controller.w))
    assert.equal(4, rest.optimizer.iteration)
    says(tostring(rest.optimizer), "cq.Optimizer.parts { controller = gradient_descent, robot = adam }")
  end)

  it("is refused where parts and optimizers do not meet", function()
    local one = cq.Optimizer.parts { controller = cq.Optimizer.adam { rate = 1 } }
    local function update(params) return sentence(one.update, one, params, params) end
    says(update { controller = cq.param(1), robot = cq.param(1) },
      "there is no optimizer for the parameters \"robot\"; those with one are controller")
    says(update { world = {} }, "the part \"controller\" has an optimizer, but no parameters")
    says(sentence(cq.Optimizer.parts, { a = 1 }), "a must be an optimizer, got 1")
    says(sentence(cq.Optimizer.parts, {}), "got an empty table")
    local inner = cq.Optimizer.gradient_descent { rate = 1 }
    says(sentence(cq.Optimizer.parts, { robot = cq.Optimizer.augmented_lagrangian { inner = inner } }),
      "robot is cq.Optimizer.augmented_lagrangian, which makes its own loop over all parameters; take one with updates")
    assert(cq.Optimizer.parts { a = cq.Optimizer.parts { b = inner } })
    says(sentence(one.restore, one, { parts = {} }), "the state has no part \"controller\"")
  end)
end)

describe("a run with a name", function()
  it("has a folder of its own within that of the script", function()
    local run = experiment()
    run:optimize { iterations = 1, folder = folder, name = "seed 2" }
    assert.equal(folder .. "/seed 2", run.folder)
    assert.is_truthy(process.read(folder .. "/seed 2/history.csv"))
  end)
end)

describe("a value with an apply", function()
  it("is trained within its bounds, with the gradient of what it does", function()
    local run = experiment { trainable =
      { factor = { init = 1, min = 0.5, max = 1.02, rate = 0.05, apply = stiffer } } }
    assert.equal(10, run:robot_with(run.params).values.young.tensor:item())
    local _, grads = cq.value_and_grad(function(p) return run:loss(run:rollout(p)) end)(run.params)
    local direct = cq.grad(function(p)
      return run:loss(run.world:rollout { robot = run.robot:with { young = p }, steps = 10,
        controller = run.controller })
    end)(cq.param(10))
    assert.near(10 * direct:item(), grads.named.factor:item(), 1e-6 * math.abs(grads.named.factor:item()))
    run:optimize { iterations = 3, folder = folder }
    local value = run.params.named.factor:item()
    assert(value ~= 1 and value >= 0.5 and value <= 1.02, value)
    local again = experiment { trainable =
      { factor = { init = 1, min = 0.5, max = 1.02, rate = 0.05, apply = stiffer } } }
    again:optimize { iterations = 3, folder = folder, resume = true }
    assert.equal(value, again.params.named.factor:item())
  end)

  it("comes after values of the robot, in the order of names", function()
    local seen = {}
    local function note(name)
      return function(robot, v) seen[#seen + 1] = name return robot:with { density = 1 + 0 * v } end
    end
    local run = experiment { trainable = { b = { init = 1, apply = note "b" }, a = { init = 1, apply = note "a" },
      young = { init = 12 } } }
    seen = {}
    local body = run:robot_with(run.params)
    assert.same({ "a", "b" }, seen)
    assert.equal(12, body.values.young.tensor:item())
  end)

  it("is refused where it cannot be", function()
    local function made(trainable) return sentence(experiment, { trainable = trainable }) end
    says(made { factor = { apply = stiffer } }, "trainable.factor: a value with apply needs init, where it starts")
    says(made { factor = { apply = stiffer, init = 1, per = "particle" } }, "per is for values of the robot")
    says(made { factor = { init = 1 } }, "trainable has no \"factor\"")
    says(made { factor = { init = 1 } }, "and any name with apply")
    says(made { factor = { init = 1, apply = function() return 3 end } },
      "trainable.factor: apply must give a variant of the robot that it is given")
    says(made { observer = { rate = 1 } }, "trainable.observer: the experiment has no observer with weights")
    says(made { controller = { min = 1 } }, "unknown field min")
    says(made { young = { rate = -1 } }, "rate must be a finite number above 0, got -1")
  end)
end)

describe("an observer with weights", function()
  local function eyes()
    return {
      params = { gain = cq.param({ 1, 1, 1, 1 }, { rate = 0.0625 }) },
      observe = function(self, state)
        return self.params.gain * cq.concat { state:center "trunk", state:velocity "trunk" }
      end,
    }
  end

  it("is trained with its controller, saved and gone on with", function()
    local run = experiment { observer = eyes(), controller = cq.Controller.linear { seed = 1 } }
    local _, grads = cq.value_and_grad(function(p) return run:loss(run:rollout(p)) end)(run.params)
    assert(grads.observer.gain:norm():item() > 0)
    assert.near(0.0625, step_of(run, "a")["observer.gain"], 1e-4)
    run:optimize { iterations = 3, folder = folder .. "/a", resume = true }
    local again = experiment { observer = eyes(), controller = cq.Controller.linear { seed = 1 } }
    again:optimize { iterations = 3, folder = folder .. "/a", resume = true }
    assert.is_true(again.params.observer.gain:equal(run.params.observer.gain))
    assert.equal(run:evaluate().loss, again:evaluate().loss)
  end)

  it("may make them at its first look", function()
    local eye = { observe = function(self, state)
      self.params = self.params or { gain = cq.param(cq.ones { 2 }) }
      return self.params.gain * state:velocity "trunk"
    end }
    local run = experiment { observer = eye, controller = cq.Controller.linear {} }
    assert.equal(2, run.params.observer.gain.count)
  end)
end)

describe("signals that are held", function()
  it("play each row over several control steps, with the gradient of their sum", function()
    local world = scene.world(scene.robot())
    local held = cq.Controller.open_loop { steps = 10, hold = 4, init = 0.25 }
    local roll = world:rollout { steps = 10, controller = held }
    assert.same({ 3, world.actuator_count }, held.params.u:shape())
    assert.equal(10, roll.signals:size(1))
    local rows = cq.tensor { { 0.1, -0.1 }, { 0.2, 0.3 }, { -0.2, 0.4 } }
    assert.equal(2, world.actuator_count)
    local function pushed(controller)
      return -world:rollout({ steps = 10, controller = controller }).state:velocity("trunk")[2]
    end
    local index = { 1, 1, 1, 1, 2, 2, 2, 2, 3, 3 }
    local short = cq.grad(function(u) return pushed(cq.Controller.open_loop { u = u, hold = 4 }) end)(cq.param(rows))
    local long = cq.grad(function(u) return pushed(cq.Controller.open_loop(u:gather(index, 1))) end)(cq.param(rows))
    assert.is_true(short:close(long, 1e-12))
    assert(short:norm():item() > 0)
    says(sentence(world.rollout, world, { steps = 13, controller = held }),
      "has signals for 12 control steps, the rollout makes 13")
    says(sentence(cq.Controller.open_loop, { hold = 2 }), "give either steps or u")
    says(sentence(cq.Controller.open_loop, { steps = 2, u = rows }), "give either steps or u, not both")
  end)
end)

describe("signals of one's own", function()
  it("are bound by min and max, as a param or a copy of a plain tensor", function()
    local plain, own = cq.full({ 2, 1 }, 0.5), cq.param(cq.full({ 2, 1 }, 0.5), { min = -0.7, rate = 0.2 })
    local u = cq.Controller.open_loop({ u = plain, min = 0, max = 0.6 }).params.u
    assert.same({ min = 0, max = 0.6 }, u.bounds)
    assert.is_true(u:equal(plain) and not plain.trainable)
    assert.equal(own, cq.Controller.open_loop({ u = own, max = 0.6 }).params.u)
    assert.same({ min = -0.7, max = 0.6, rate = 0.2 }, own.bounds)
    cq.Optimizer.gradient_descent({ rate = 1 }):update(u, cq.full({ 2, 1 }, -9))
    assert.equal(0.6, u:max():item())
    assert.equal(plain, cq.Controller.open_loop({ u = plain }).params.u)
  end)

  it("are refused outside of min and max, and init beside them", function()
    local plain = cq.full({ 2, 1 }, 0.5)
    says(sentence(cq.Controller.open_loop, { u = plain, max = 0.4 }), "open_loop: u: element 1 is 0.5, outside its bounds")
    says(sentence(cq.Controller.open_loop, { u = plain, init = 0.1 }), "init goes with steps, and has no effect on u")
    says(sentence(cq.grad(function(p) return cq.Controller.open_loop({ u = p * 1, max = 1 }).params.u:sum() end),
      cq.param(plain)), "min and max have no effect on a u that was computed from params")
  end)
end)

describe("a value of each particle", function()
  it("is trained for each from one first value", function()
    local run = experiment { trainable = {
      velocity = { per = "particle", init = { 1, 2 } }, affine = { per = "particle", init = { { 0, 1 }, { 2, 3 } } },
      deformation = { per = "particle", init = { { { 1, 0 }, { 0, 1 } } } }, young = { per = "particle", init = { 9 } },
    } }
    local p, n = run.params.robot, run.world.robot.particle_count
    for name, shape in pairs { velocity = { n, 2 }, affine = { n, 2, 2 }, deformation = { n, 2, 2 }, young = { n } } do
      assert.same(shape, p[name]:shape(), name)
    end
    assert.same({ 1, 2 }, p.velocity[n]:totable())
    assert.same({ { 0, 1 }, { 2, 3 } }, p.affine[n]:totable())
    says(sentence(experiment, { trainable = { position = { per = "particle", init = { 0.3, 0.4 } } } }),
      "position must have the shape {32, 2}")
  end)
end)

describe("means", function()
  -- a bar whose right half is heavier
  local function heavier(value, robot)
    local n, density = robot.particle_count, {}
    local x = robot.position:totable()
    for p = 1, n do density[p] = x[p][2] > 0.1 and value or 1 end
    return cq.tensor(density)
  end

  it("over particles do not move when the mass does; over mass they do", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local function height(value, weight, given)
      local roll = world:rollout { robot = robot:with { density = heavier(value, robot) }, steps = 1, weight = weight }
      return roll.state:center(robot, given)[2]:item()
    end
    assert(height(4) - height(1) > 0.01)
    assert.near(height(1, "particle"), height(4, "particle"), 1e-3)
    assert.equal(height(4, "particle"), height(4, "mass", { weight = "particle" }))
    assert.equal(height(4), height(4, "particle", { weight = "mass" }))
    local state = world:rollout({ robot = robot:with { density = heavier(4, robot) }, steps = 3,
      weight = "particle" }).state
    local v = state:velocities():square():sum(-1)
    assert.near(v:mean():item(), state:mean_square_velocity(robot):item(), 1e-6 * v:mean():item())
    assert(math.abs(state:mean_square_velocity(robot, { weight = "mass" }):item()
      - v:mean():item()) > 1e-4 * v:mean():item())
    assert.is_true(state:motion(robot):close(cq.concat { state:center(robot), state:velocity(robot) }, 1e-12))
  end)

  it("are over particles in an experiment that trains where mass is, and as it says", function()
    assert.equal("mass", experiment().weight)
    assert.equal("mass", experiment({ trainable = { young = { per = "group" } } }).weight)
    assert.equal("particle", experiment({ trainable = { density = { per = "group" } } }).weight)
    assert.equal("particle", experiment({ trainable = { factor = { init = 1, apply = stiffer } } }).weight)
    assert.equal("mass", experiment({ trainable = { density = { per = "group" } }, weight = "mass" }).weight)
    -- the gradient by the density of a body that nothing moves is none of the objective's
    local function height(s) return s:center({ "trunk", "foot" }):sum() end
    local run = experiment { steps = 1, objective = height, trainable = { density = { per = "particle" } } }
    local mass = experiment { steps = 1, objective = height, trainable = { density = { per = "particle" } },
      weight = "mass" }
    local function slope(e)
      return (select(2, cq.value_and_grad(function(p) return e:loss(e:rollout(p)) end)(e.params))).robot.density:norm(
        ):item()
    end
    assert(slope(run) < 0.05 * slope(mass))
  end)

  it("of observers weigh as told, in the engine and in Lua alike", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local body = robot:with { density = heavier(4, robot) }
    local controller = cq.Controller.linear { seed = 1 }
    local function signals(observer)
      return world:rollout({ robot = body, steps = 3, observer = observer, controller = controller,
        weight = "volume" }).signals
    end
    local inside = cq.Observer.centroid { groups = { robot }, velocity = true, weight = "particle" }
    local first = signals(inside)
    local in_lua = signals(function(state) return inside:observe(state) end)
    assert.is_true(first:close(in_lua, 1e-6))
    assert.is_false(first:close(signals(cq.Observer.centroid { groups = { robot }, velocity = true }), 1e-6))
  end)
end)

describe("a goal", function()
  it("is what the end misses it by, and more for coming to rest", function()
    local function loss(objective)
      local run = experiment { objective = objective }
      return run:evaluate().loss
    end
    local function square(s) return (s:center("trunk") - cq.tensor { 0.5, 0.4 }):square():sum() end
    assert.equal(loss(square), loss { goal = { of = "trunk", at = { 0.5, 0.4 } } })
    assert.near(loss(square) + 2 * loss(function(s) return s:mean_square_velocity("trunk") end),
      loss { goal = { of = "trunk", at = { 0.5, 0.4 }, velocity_weight = 2 } }, 1e-12)
    local function both(s) return (s:center({ { "trunk", "foot" } })[1] - cq.tensor { 0.5, 0.4 }):square():sum() end
    assert.equal(loss(both), loss { goal = { of = { { "trunk", "foot" } }, at = { 0.5, 0.4 } } })
    assert.is_number(loss { goal = { of = { { "trunk", "foot" } }, at = { 0.5, 0.4 }, velocity_weight = 2 } })
    assert.near(loss(square) + 1,
      loss { goal = { of = "trunk", at = { 0.5, 0.4 } }, terminal = function() return 1 end }, 1e-12)
  end)

  it("is refused outside of the world, and for what is not there", function()
    local function made(goal) return sentence(experiment, { objective = { goal = goal } }) end
    says(made { of = "trunk", at = { 30, 0.1 } }, "is outside of the world, which reaches from the origin to { ")
    says(made { of = "trunk", at = { 0.3, -0.1 } }, "the goal { 0.3, -0.1 } is outside of the world")
    says(made { of = "trunk", at = { 0.3, 0.1, 0.2 } }, "goal.at has 3 components, the world is 2D")
    says(made { of = "trunc", at = { 0.3, 0.1 } }, "trunc")
    says(made { of = { "foot", "trunk" }, at = { 0.3, 0.1 } },
      'goal.of has 2 groups, and one of them is to be at the place; { { "a", "b" } } is the mean of the particles of both')
    says(made { of = "trunk", att = { 0.3, 0.1 } }, "unknown field att (did you mean at?)")
  end)
end)
