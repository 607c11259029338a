-- controller: sizes and first values of parameters, what each computes, and what is refused.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local world = scene.world(scene.robot())
local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true }

local function run(controller, options)
  local fields = { steps = 3, controller = controller, observer = observer }
  for key, value in pairs(options or {}) do fields[key] = value or nil end
  return world:rollout(fields)
end

describe("a network", function()
  it("takes its sizes from observer and robot", function()
    local mlp = cq.Controller.mlp { hidden = { 6, 5 } }
    assert.is_nil(mlp.params)
    local p = mlp:prepare(world, observer)
    assert.same({ 8, 6 }, p.w1:shape())
    assert.same({ 6, 5 }, p.w2:shape())
    assert.same({ 5, 2 }, p.w3:shape())
    assert.same({ 2 }, p.b3:shape())
    assert.is_true(p.w1.trainable and p.b2.trainable)
    assert.equal(p, mlp:prepare(world, observer))
    says(tostring(mlp), "101 parameters")
  end)

  it("is drawn by its seed, at the scale of its layers", function()
    local function first(seed, activation)
      return cq.Controller.mlp { hidden = { 400 }, inputs = 100, signals = 1, seed = seed,
        activation = activation }.params.w1
    end
    assert.is_true(first(1):equal(first(1)))
    assert.is_false(first(1):equal(first(2)))
    local function deviation(t) return (t * t):mean():sqrt():item() end
    assert.is_true(math.abs(deviation(first(1, "relu")) / math.sqrt(2 / 100) - 1) < 0.02)
    assert.is_true(math.abs(deviation(first(1, "tanh")) / math.sqrt(2 / 500) - 1) < 0.02)
  end)

  it("computes tanh(W z + b)", function()
    local linear = cq.Controller.linear { seed = 5 }
    local p = linear:prepare(world, observer)
    p.b1:set(0.3, 2)
    local seen
    local both = { "foot", "trunk" }
    local roll = run(linear, { steps = 1, on_step = function(s)
      seen = seen or T.concat { s:center(both):flatten(), s:velocity(both):flatten() }
    end })
    assert.is_true(roll.signals[1]:close((seen:matmul(p.w1) + p.b1):tanh(), 1e-14))
    assert.is_true(roll.signals:abs():max():item() < 1)
  end)

  it("scales what it sees, and is cut off at its end", function()
    local fields = { inputs = 2, signals = 1, hidden = { 3 }, activation = "elu", seed = 2, scale = 20 }
    local plain = cq.Controller.mlp(fields)
    fields.mean, fields.deviation, fields.output = { 1, -2 }, { 0.5, 4 }, "clip"
    local scaled, p = cq.Controller.mlp(fields), plain.params
    local z = T.tensor { { 1.5, 2 }, { 100, 100 }, { 1, -2 } }
    local x = T.tensor { { 1, 1 }, { 10, 10 }, { 0, 0 } }
    assert.is_true(plain:act(x):equal(x:dense(p.w1, p.b1, "elu"):dense(p.w2, p.b2, "tanh")))
    assert.is_true(scaled:act(z):equal(x:dense(p.w1, p.b1, "elu"):dense(p.w2, p.b2):clamp(-1, 1)))
    assert.equal(1, scaled:act(z):abs():max():item())
    fields.deviation = { 1 }
    assert.equal("cq.Controller.mlp: mean and deviation go together, a number for each observation; got 2 and 1",
      sentence(function() cq.Controller.mlp(fields) end))
    assert.equal("cq.Controller.mlp: mean and deviation go together, a number for each observation; got 0 and 0",
      sentence(function() cq.Controller.mlp { mean = {} } end))
    local other = cq.Controller.mlp { mean = { 0, 0, 0 }, deviation = { 1, 1, 1 } }
    other.signals = 1
    assert.equal("cq.Controller.mlp: mean and deviation have 3 observations, and there are 2",
      sentence(function() other:act(z) end))
  end)

  it("begins with values of one's own, and draws the others", function()
    local drawn = cq.Controller.mlp({ hidden = { 3 }, seed = 4 }):prepare(world, observer)
    local w1, b2 = T.param(T.full({ 8, 3 }, 0.25), { min = 0, max = 1 }), { 0.1, 0.2 }
    local p = cq.Controller.mlp({ hidden = { 3 }, seed = 4, init = { w1 = w1, b2 = b2, b1 = 0.5 } }):prepare(world,
      observer)
    assert.is_true(p.w1:equal(w1) and p.w1 ~= w1 and p.w2:equal(drawn.w2))
    assert.same({ min = 0, max = 1 }, p.w1.bounds)
    assert.same({ 0.1, 0.2 }, p.b2:totable())
    assert.same({ 0.5, 0.5, 0.5 }, p.b1:totable())
    assert.is_true(p.b2.trainable and p.b1.trainable)
    local linear = cq.Controller.linear { init = { w1 = T.zeros { 8, 2 }, b1 = { 0.5, -0.5 } } }
    assert.is_true(run(linear).signals[1]:close(T.tensor { math.tanh(0.5), math.tanh(-0.5) }, 1e-14))
    assert.same({ 1 }, cq.Controller.linear({ inputs = 1, signals = 1, init = { b1 = { 1 } } }).params.b1:totable())
    says(sentence(run, cq.Controller.linear { init = { w1 = T.zeros { 7, 2 } } }),
      "cq.Controller.linear: init.w1 must have the shape {8, 2}, got {7, 2}")
    says(sentence(run, cq.Controller.mlp { hidden = {  3 }, init = { w3 = 1 } }),
      'cq.Controller.mlp: init has no parameter "w3" (did you mean w1?); they are b1, b2, w1, w2')
    says(sentence(run, cq.Controller.linear { init = { w1 = "zero" } }),
      'init.w1 must be a number, lists of them or a tensor, got "zero"')
  end)

  it("with other parameters is another controller", function()
    local a = cq.Controller.linear { inputs = 8, signals = 2 }
    local b = a:with { w1 = T.zeros { 8, 2 }, b1 = T.tensor { 0.5, -0.5 } }
    assert.is_true(run(b).signals[1]:close(T.tensor { math.tanh(0.5), math.tanh(-0.5) }, 1e-14))
    assert.is_false(run(a).signals[1]:equal(run(b).signals[1]))
  end)

  it("refuses what does not fit", function()
    says(sentence(cq.Controller.mlp, { hidden = { 0 } }), "hidden must be a list of")
    says(sentence(cq.Controller.mlp, { activation = "rely" }), "did you mean")
    says(sentence(cq.Controller.mlp, { inputs = 3 }), "inputs and signals go together")
    says(sentence(run, cq.Controller.mlp { inputs = 7, signals = 2 }),
      "was made for 7 observations, got 8 (in the controller, control step 1 of 3)")
    says(sentence(run, cq.Controller.mlp { inputs = 8, signals = 3 }), "gives 3 signals, the robots take 2")
  end)
end)

describe("parameters of another controller", function()
  local mlp = cq.Controller.mlp { hidden = { 3 }, inputs = 8, signals = 2 }
  local sines, open = cq.Controller.sines { count = 2 }, cq.Controller.open_loop { steps = 3 }
  sines:prepare(world)
  open:prepare(world)
  local function zeros(shapes)
    local out = {}
    for name, shape in pairs(shapes) do out[name] = T.zeros(shape) end
    return out
  end

  -- what is wrong of a controller's own shapes, and the sentence
  local own = { w1 = { 8, 3 }, b1 = { 3 }, w2 = { 3, 2 }, b2 = { 2 } }
  local cases = {
    { mlp, { w1 = { 7, 3 } }, "cq.Controller.mlp: w1 must be {observations, units of layer 1} = {8, 3}, got {7, 3}" },
    { mlp, { w1 = { 8, 5 }, b1 = { 5 }, w2 = { 5, 2 } },
      "cq.Controller.mlp: w1 must be {observations, units of layer 1} = {8, 3}, got {8, 5}" },
    { mlp, { b1 = { 1, 3 } }, "cq.Controller.mlp: b1 must be {units of layer 1} = {3}, got {1, 3}" },
    { mlp, { w2 = { 3, 3 } }, "cq.Controller.mlp: w2 must be {units of layer 1, signals} = {3, 2}, got {3, 3}" },
    { mlp, { b2 = false },
      "cq.Controller.mlp: the parameters lack b2, {signals} = {2}; they are b1, w1, w2" },
    { mlp, { w3 = { 2, 2 } }, "cq.Controller.mlp has no parameter \"w3\"; its own are w1, b1, w2, b2" },
    { sines, { w = { 3, 2 }, b = { 2 } }, "cq.Controller.sines: w must be {phases, signals} = {2, 2}, got {3, 2}" },
    { sines, { w = { 2, 2 } },
      "cq.Controller.sines: the parameters lack b, {signals} = {2}; they are w" },
    { open, { u = { 3, 3 } }, "cq.Controller.open_loop: the tensor {3, 3} has 3 signals, the robots take 2" },
    { open, { u = { 3 } },
      "cq.Controller.open_loop: u must be a tensor {steps / hold, signals}, or with the batch before it, got {3}" },
    { open, {}, "or with the batch before it, got nil" },
    { open, { u = { 2, 3, 2 } },
      "cq.Controller.open_loop: the tensor {2, 3, 2} is for 2 scenes, the rollout has no batch" },
  }

  it("are refused with both shapes, and what they are", function()
    for _, case in ipairs(cases) do
      local controller, shapes = case[1], {}
      if controller == mlp then for name, shape in pairs(own) do shapes[name] = shape end end
      for name, shape in pairs(case[2]) do shapes[name] = shape or nil end
      says(sentence(run, controller:with(zeros(shapes))), case[3])
    end
  end)

  it("are refused by what a function observes too, as soon as it is known", function()
    local function sees(state) return state:center "foot" end
    local linear = cq.Controller.linear {}
    says(sentence(run, linear:with(zeros { w1 = { 8, 2 }, b1 = { 2 } }), { observer = sees }),
      "cq.Controller.linear: w1 must be {observations, signals} = {2, 2}, got {8, 2} (in the controller, control step 1 of 3)")
    says(sentence(run, linear:with(zeros { w1 = { 2, 2 }, b1 = { 3 } }), { observer = sees }),
      "cq.Controller.linear: b1 must be {signals} = {2}, got {3}")
    local rows = function(state) return state:center { "foot", "trunk" } end
    says(sentence(run, cq.Controller.linear {}, { observer = rows }), "got {2, 2} of observations {2, 2}")
  end)

  it("must be a table of tensors", function()
    says(sentence(mlp.with, mlp, nil), "controller:with: needs a table of tensors, as controller.params, got nil")
    says(sentence(mlp.with, mlp, T.zeros { 3 }), "needs a table of tensors")
    says(sentence(run, mlp:with { w1 = 3, b1 = T.zeros { 3 } }),
      "w1 must be a tensor {observations, units of layer 1} = {8, 3}, got 3")
    says(sentence(run, cq.Controller.linear { init = { w1 = { { 1, 2 }, { 3 } } } }),
      "cq.Controller.linear: init.w1: entry 2 must be a list of 2 like the others, got a list of 1")
  end)

  it("are told before any control step where only the robot is needed", function()
    assert.equal("cq.Controller.sines: init.w must have the shape {2, 2}, got {4, 2}",
      sentence(run, cq.Controller.sines { count = 2, init = { w = T.zeros { 4, 2 } } }))
    says(sentence(cq.Controller.open_loop, { steps = 3, min = 1, max = 0 }), "min 1 is above max 0")
    assert.equal("cq.Controller.open_loop: init must be one number, {2} or {3, 2}, got {3}",
      sentence(run, cq.Controller.open_loop { steps = 3, init = { 1, 2, 3 } }))
    assert.equal("cq.Controller.linear needs an observer",
      sentence(run, cq.Controller.linear {}, { observer = false }))
  end)
end)

describe("preparing a controller", function()
  it("makes no control step, and its errors tell of none", function()
    local seen = {}
    local function sees(state)
      seen[#seen + 1] = state.step
      return state:center "foot"
    end
    local robot = world.robot:with { velocity = { trunk = { 0, 1 } } }
    assert.same({ 2, 2 }, cq.Controller.linear({}):prepare(world, sees, robot).w1:shape())
    assert.same({ 0 }, seen)
    local function sentence_of(what, own)
      return sentence(function() cq.Controller.linear(own or {}):prepare(world, what) end)
    end
    assert.equal("the observer must give a tensor, got nil (in the observer)", sentence_of(function() end))
    assert.equal("controller:prepare: world must be a cq.World, got a cq.Observer",
      sentence(function() cq.Controller.linear({}):prepare(cq.Observer.centroid { groups = { "foot" } }, world) end))
    assert.equal("cq.Controller.linear: init.b1 must have the shape {2}, got {3} (in the controller)",
      sentence_of(sees, { init = { b1 = { 1, 2, 3 } } }))
    local starts = { start = function() error("lost", 0) end, observe = function() return 1 end }
    assert.equal("lost (in the start of the observer)",
      select(2, pcall(cq.Controller.linear({}).prepare, cq.Controller.linear {}, world, starts)))
    assert.equal("lost (in the start of the observer)", select(2, pcall(world.rollout, world,
      { steps = 2, observer = starts, controller = cq.Controller.linear {} })))
  end)
end)

describe("open loop", function()
  it("plays its tensor", function()
    local u = T.tensor { { 0.1, 0.2 }, { 0.3, 0.4 }, { 0.5, 1.5 } }
    assert.is_true(run(cq.Controller.open_loop(u)).signals:equal(u))
    local each = T.stack { u, -u }
    local roll = run(cq.Controller.open_loop(each), { batch = 2 })
    assert.is_true(roll.signals:equal(each:transpose(1, 2)))
    says(sentence(run, cq.Controller.open_loop(each), { batch = 3 }), "is for 2 scenes, the batch has 3")
    says(sentence(run, cq.Controller.open_loop(T.zeros { 3, 4 })), "has 4 signals, the robots take 2")
    says(sentence(run, cq.Controller.open_loop(T.zeros { 3, 1 })), "has 1 signal, the robots take 2")
    says(sentence(cq.Controller.open_loop, T.zeros { 3 }),
      "must be {steps, signals} or {batch, steps, signals}, got {3}")
    says(sentence(cq.Controller.open_loop, 3), "takes a tensor or a table of fields, got 3")
  end)

  it("makes its own param", function()
    local c = cq.Controller.open_loop { steps = 3, init = 0.25 }
    local p = c:prepare(world)
    assert.same({ 3, 2 }, p.u:shape())
    assert.equal(0.25, p.u:get(2, 1))
    assert.equal(-1, p.u.bounds.min)
    assert.equal(1, p.u.bounds.max)
    local function first(init) return cq.Controller.open_loop({ steps = 3, init = init }):prepare(world).u:totable() end
    assert.same({ { 0.5, -0.5 }, { 0.5, -0.5 }, { 0.5, -0.5 } }, first { 0.5, -0.5 })
    local each = { { 0.1, 0.2 }, { 0.3, 0.4 }, { 0.5, 0.6 } }
    assert.same(each, first(each))
    assert.same(each, first(T.tensor(each)))
    says(sentence(first, T.zeros { 2, 2 }),
      "cq.Controller.open_loop: init must be one number, {2} or {3, 2}, got {2, 2}")
    says(sentence(first, 2), "outside its bounds")
  end)
end)

describe("sines", function()
  it("depend on time alone", function()
    local c = cq.Controller.sines { count = 2, frequency = { 2, 5 }, deviation = 0.5, seed = 1 }
    local p = c:prepare(world)
    assert.same({ 4, 2 }, p.w:shape())
    local waves = {}
    for _, f in ipairs { 2, 5 } do
      for k = 0, 1 do waves[#waves + 1] = math.sin(2 * math.pi * (f * 2 * world.control_dt + k / 2)) end
    end
    assert.is_true(run(c).signals[3]:close((T.tensor(waves):matmul(p.w) + p.b):tanh(), 1e-13))
    local own = cq.Controller.sines { count = 1, init = { w = { { 0, 0 } }, b = { 0.5, 0.25 } } }
    assert.is_true(run(own).signals[2]:close(T.tensor { math.tanh(0.5), math.tanh(0.25) }, 1e-14))
  end)
end)

describe("one controller in several rollouts of a loss", function()
  local other = scene.world(scene.robot(), { substeps = 4 })
  local seed = cq.random { seed = 3 }
  local pulses = cq.Topology.pulses { duration = 0.06, control_dt = 6e-3, interval = 0.012, width = 0.012, gain = 1 }
  local function drawn() return T.param(seed:uniform({ pulses.count, 2 }, { min = -0.8, max = 0.8 })) end
  local function numbers() return { sign = drawn(), magnitude = drawn() } end

  it("asks the act that a script has given to a controller of pulses", function()
    local controller, asked = pulses:controller(numbers()), 0
    local own = controller.act
    function controller.act(...)
      asked = asked + 1
      return own(...)
    end
    world:rollout { steps = 4, controller = controller }
    assert.equal(4, asked)
  end)

  for name, make in pairs {
    pulses = function() return function(p) return pulses:controller(p) end, numbers() end,
    ["a sum of pulses and a network"] = function()
      local net = cq.Controller.mlp { hidden = { 3 }, activation = "tanh" }
      return function(p)
        local train = pulses:controller { sign = p.sign, magnitude = p.magnitude }
        return cq.Controller.sum { pulses = train, net = net:with(p.net) }
      end, require("cq.base.tables").merged(numbers(), { net = net:prepare(world, observer) })
    end,
    sines = function()
      local sines = cq.Controller.sines { deviation = 0.3 }
      return function(p) return sines:with(p) end, sines:prepare(world)
    end,
    ["a network"] = function()
      local net = cq.Controller.mlp { hidden = { 3 }, activation = "tanh" }
      return function(p) return net:with(p) end, net:prepare(world, observer)
    end,
  } do
    it("has the gradient of all: " .. name, function()
      local of, params = make()
      local check = cq.check_gradient(function(p)
        local controller, sum = of(p), 0
        for k, place in ipairs { world, other, world } do
          local roll = place:rollout { steps = 10, controller = controller, observer = observer }
          sum = sum + roll.state:center("trunk")[1] * k
        end
        return sum * 100
      end, params)
      assert.is_true(check.error < 1e-5, tostring(check))
    end)
  end
end)

describe("a controller of pulses", function()
  it("is told that its signals end before the rollout", function()
    local pulses = cq.Topology.pulses { duration = 0.03, control_dt = 6e-3, interval = 0.006, width = 0.006, gain = 1 }
    local p = { sign = T.zeros { pulses.count, 2 }, magnitude = T.zeros { pulses.count, 2 } }
    says(sentence(function() world:rollout { steps = 6, controller = pulses:controller(p) } end),
      "has signals for 5 control steps, the rollout makes 6")
  end)
end)

describe("a controller of the user's", function()
  it("is handed its hidden value", function()
    local steps = {}
    local roll = run(function(z, hidden, t)
      steps[#steps + 1] = t
      local n = (hidden or T.zeros {}) + 1
      return T.concat { n * 0.1, z:sum() * 0 }, n
    end)
    assert.is_true(roll.signals:close(T.tensor { { 0.1, 0 }, { 0.2, 0 }, { 0.3, 0 } }, 1e-14))
    assert.is_true(math.abs(steps[3] - 2 * world.control_dt) < 1e-15)
  end)

  it("is refused when it is none", function()
    says(sentence(run, 3), "controller must be one of cq.Controller, a function, or a table with a method act, got 3")
    says(sentence(run, function() return "left" end), "the controller must give 2 signals as a tensor, got \"left\"")
  end)
end)
