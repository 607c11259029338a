-- optimizer: the rules, bounds, clipping, schedules, and going on from a stored state.
local T = require "cq.tensor"
local Optimizer = require "cq.optimizer"

local function refused(f, ...)
  local ok, message = pcall(f)
  assert(not ok, "no error")
  message = tostring(message)
  assert(message:find "^[^\n]*optimizer_spec.lua:%d+: ", "not at the user's line: " .. message)
  for _, words in ipairs { ... } do
    assert(message:find(words, 1, true), ("no %q in: %s"):format(words, message))
  end
end

-- a gradient may become exactly zero where the optimum is met
local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

local function near(expected, got, tolerance)
  assert(math.abs(expected - got) <= (tolerance or 1e-12), ("%.15g, not %.15g"):format(got, expected))
end

local kinds = {
  gradient_descent = function() return Optimizer.gradient_descent { rate = 0.1 } end,
  momentum = function() return Optimizer.momentum { rate = 0.03 } end,
  adam = function() return Optimizer.adam { rate = 0.1 } end,
}

describe("an optimizer", function()
  it("passes over parameters without numbers", function()
    for _, fields in ipairs { { rate = 0.1, per = "tensor" },
      { rate = 0.1, relative_epsilon = true, clip = "median" } } do
      local adam, p = Optimizer.adam(fields), { none = T.param(T.zeros { 0 }), x = T.param { 1 } }
      for _ = 1, 3 do adam:update(p, { none = T.zeros { 0 }, x = T { 1 } }) end
      near(0.7, p.x:get(1), 1e-6)
      adam:update({ none = p.none }, { none = T.zeros { 0 } })
      assert.equal(4, adam.iteration)
    end
  end)

  it("refuses gradients in the place of its parameters", function()
    local adam, p = Optimizer.adam { rate = 0.1 }, { a = T.param { 1, 2 } }
    local gradient = { a = T.tensor { 1, 1 } }
    refused(function() adam:update(gradient, p) end, "takes parameters and then their gradients; a is a cq.param in")
    assert.is_true(p.a:equal(T.tensor { 1, 2 }))
    adam:update({ a = T.tensor { 1, 2 } }, gradient)                        -- tensors that are no params may be trained
  end)

  it("tells what it is", function()
    local adam, x = Optimizer.adam { rate = 0.1 }, T.param(1)
    assert.equal("cq.Optimizer.adam { rate 0.1, 0 iterations made }", tostring(adam))
    adam:update(x, T(1))
    assert.equal("cq.Optimizer.adam { rate 0.1, 1 iteration made }", tostring(adam))
  end)

  it("is one of the classes whose methods are suggested", function()
    local _, problem = pcall(function() Optimizer.adam({ rate = 0.1 }):udpate() end)
    local told = require("cq.program.failure").handle(problem)
    assert(told:find("did you mean update of cq.Optimizer?", 1, true), told)
  end)
end)

-- a bowl, and a steep valley in it
local bowl = T.value_and_grad(function(p) return (p.x - 3):square():sum() + 4 * (p.net.y - p.x[1]):square() end)
local function start() return { x = T.param { 0, 10 }, net = { y = T.param(-2) }, note = "kept" } end

describe("every optimizer", function()
  for kind, make in pairs(kinds) do
    it(kind .. " arrives", function()
      local p, optimizer = start(), make()
      for _ = 1, 600 do
        local _, grad = bowl(p)
        optimizer:update(p, grad)
      end
      near(3, p.x:get(1), 1e-3)
      near(3, p.x:get(2), 1e-3)
      near(3, p.net.y:item(), 1e-3)
      assert.equal(600, optimizer.iteration)
    end)

    it(kind .. " goes on from a stored state to the same bits", function()
      local p, optimizer = start(), make()
      local function run(params, o, n)
        for _ = 1, n do
          local _, grad = bowl(params)
          o:update(params, grad)
        end
      end
      run(p, optimizer, 7)
      local path = os.tmpname()
      T.save(path, { params = { x = p.x, net = p.net }, optimizer = optimizer:state() })
      run(p, optimizer, 5)
      local stored = T.load(path)
      os.remove(path)
      local again = make()
      again:restore(stored.optimizer)
      run(stored.params, again, 5)
      assert(p.x:equal(stored.params.x))
      assert(p.net.y:equal(stored.params.net.y))
      assert.equal(12, again.iteration)
    end)
  end
end)

describe("a step of", function()
  local function after(optimizer, x, ...)
    local p = T.param(x)
    for _, g in ipairs { ... } do optimizer:update(p, T(g)) end
    return p
  end
  it("gradient descent", function()
    assert.same({ 0.5, 2.5 }, after(Optimizer.gradient_descent { rate = 0.5 }, { 1, 2 }, { 1, -1 }):totable())
  end)
  it("momentum", function()
    near(1 - 0.1 * (1 + (0.5 * 1 + 2)), after(Optimizer.momentum { rate = 0.1, momentum = 0.5 }, 1, 1, 2):item())
  end)
  it("Adam has the length of the rate at first, whatever the gradient's", function()
    for _, g in ipairs { 1e-3, 1, 1e6 } do
      near(1 - 0.1, after(Optimizer.adam { rate = 0.1, epsilon = 1e-300 }, 1, g):item(), 1e-12)
    end
  end)
  it("Adam with a relative epsilon goes as far for a loss in any unit, and nowhere without a gradient", function()
    local function path(unit, per)
      local adam = Optimizer.adam { rate = 0.1, epsilon = 0.5, relative_epsilon = true, per = per }
      return after(adam, { 1, 2, 3 }, { 3 * unit, -4 * unit, 0 }, { unit, unit, -unit }):totable()
    end
    for _, per in ipairs { "element", "tensor" } do
      local metres = path(1, per)
      assert.is_true(metres[1] < 1 and metres[2] > 2)
      for _, unit in ipairs { 2 ^ -40, 2 ^ 20 } do assert.same(metres, path(unit, per)) end
      assert.same({ 1, 2, 3 }, path(0, per))
    end
    local root = math.sqrt((9 + 16) / 2)
    local x = after(Optimizer.adam { rate = 0.1, epsilon = 0.5, relative_epsilon = true }, { 0, 0 }, { 3, -4 })
    near(-0.1 * 3 / (3 + 0.5 * root), x:get(1), 1e-12)
    near(0.1 * 4 / (4 + 0.5 * root), x:get(2), 1e-12)
  end)
  it("Adam forgets with beta", function()
    -- beta 0 keeps nothing: every step is the sign of the gradient
    -- per tensor: the root mean square of a step is the rate, and its parts keep their shares
    local whole = Optimizer.adam { rate = 0.1, per = "tensor", epsilon = 1e-300 }
    local x = T.param { 0, 0 }
    whole:update(x, T { 3, -4 })
    near(-0.1 * 3 / math.sqrt(12.5), x:get(1), 1e-12)
    near(0.1 * 4 / math.sqrt(12.5), x:get(2), 1e-12)
    local state, again, y = whole:state(), Optimizer.adam { rate = 0.1, per = "tensor", epsilon = 1e-300 }, x:copy()
    again:restore(state)
    whole:update(x, T { 1, 1 })
    y = T.param(y)
    again:update(y, T { 1, 1 })
    assert.is_true(x:equal(y))
    refused(function() Optimizer.adam({ rate = 0.1 }):restore(state) end, "adam_per_tensor", "this is adam")
    local adam = Optimizer.adam { rate = 0.1, beta1 = 0, beta2 = 0, epsilon = 1e-300 }
    near(1 - 0.1 + 0.1 - 0.1, after(adam, 1, 5, -7, 0.01):item(), 1e-12)
  end)
end)

describe("options", function()
  it("bounds project", function()
    local p = { x = T.param({ 0.5, 0.5 }, { min = 0, max = 1 }), y = T.param(5, { min = 4 }) }
    Optimizer.gradient_descent { rate = 1 }:update(p, { x = T { 10, -10 }, y = T(100) })
    assert.same({ 0, 1 }, p.x:totable())
    assert.equal(4, p.y:item())
  end)
  it("clip the norm of all gradients together", function()
    local p = { x = T.param(0), y = T.param(0) }
    local descent = Optimizer.gradient_descent { rate = 1, clip = 1 }
    descent:update(p, { x = T(30), y = T(40) })
    near(-0.6, p.x:item())
    near(-0.8, p.y:item())
    near(50, descent.norm)
    descent:update(p, { x = T(0.3), y = T(0.4) })
    near(-0.9, p.x:item())
  end)
  it("clip to the median of the last 50 norms, of those that are not zero", function()
    local p, descent = { x = T.param(0), y = T.param(0) }, Optimizer.gradient_descent { rate = 1, clip = "median" }
    local function moved(x, y)
      local from_x, from_y = p.x:item(), p.y:item()
      descent:update(p, { x = T(x), y = T(y or 0) })
      return from_x - p.x:item(), from_y - p.y:item()
    end
    near(0, (moved(0)))                                 -- there is no norm yet
    near(1, (moved(1)))                                 -- its own norm is all there is
    near(1, (moved(1e9)))                               -- of two the lower one
    for _ = 1, 3 do near(0, (moved(0))) end
    local x, y = moved(3, 4)                            -- of 1, 5, 1e9
    near(3, x)
    near(4, y)
    near(5, descent.norm)
    x, y = moved(30, 40)
    near(3, x)
    near(4, y)
    for _ = 1, 24 do moved(7) end
    near(7, (moved(70)))
    for _ = 1, 49 do moved(100) end
    near(100, (moved(1000)))                            -- 50 later none of those before counts
  end)
  it("clip to the same median after a restore, and begin it anew with a restart", function()
    local function make() return Optimizer.adam { rate = 0.1, clip = "median" } end
    local whole, before, after = make(), make(), make()
    local p, q = { x = T.param { 1, 2 } }, { x = T.param { 1, 2 } }
    for i = 1, 60 do
      whole:update(p, { x = T { math.sin(i) ^ 9 * 100, i } })
      local part = i <= 30 and before or after
      if i == 31 then after:restore(before:state()) end
      part:update(q, { x = T { math.sin(i) ^ 9 * 100, i } })
    end
    assert.same(p.x:totable(), q.x:totable())
    local descent = Optimizer.gradient_descent { rate = 1, clip = "median" }
    descent:update({ x = T.param(0) }, { x = T(1) })
    descent:restart()
    local r = { x = T.param(0) }
    descent:update(r, { x = T(8) })
    near(-8, r.x:item())
  end)
  it("schedule the rate from iteration 1", function()
    local seen, p = {}, T.param(0)
    local descent = Optimizer.gradient_descent { rate = 1, schedule = function(i) seen[#seen + 1] = i return 1 / i end }
    for _ = 1, 3 do descent:update(p, T(1)) end
    assert.same({ 1, 2, 3 }, seen)
    near(-(1 + 1 / 2 + 1 / 3), p:item())
  end)
  it("leave alone what is no param when there are params", function()
    local p = { x = T.param(1), data = T { 5 } }
    Optimizer.gradient_descent { rate = 1 }:update(p, { x = T(1) })
    assert.same({ 5 }, p.data:totable())
    assert.equal(0, p.x:item())
  end)
  it("update a tensor that stands in two places once", function()
    local w = T.param(1)
    local p = { a = w, b = w }
    local _, grad = T.value_and_grad(function(q) return q.a * q.b end)(p)
    Optimizer.gradient_descent { rate = 0.25 }:update(p, grad)
    assert.equal(0.5, w:item())
  end)
end)

describe("mistakes", function()
  it("are refused at construction", function()
    refused(function() Optimizer.adam {} end, "cq.Optimizer.adam", "rate", "missing")
    refused(function() Optimizer.adam { rate = 0 } end, "rate", "above 0")
    refused(function() Optimizer.adam { rate = 1, beta = 0.9 } end, "unknown field beta", "beta1")
    refused(function() Optimizer.adam { rate = 1, clip = 0 } end, "clip must be a finite number above 0, or \"median\"", "0")
    refused(function() Optimizer.adam { rate = 1, clip = "mean" } end, "\"median\"", "\"mean\"")
    refused(function() Optimizer.adam { lr = 0.1 } end, "unknown field lr (its name is rate here)")
    refused(function() Optimizer.momentum { rate = 1, momentum = 1 } end, "momentum", "below 1")
  end)
  it("in an update change nothing", function()
    local p = { x = T.param { 1, 2 }, y = T.param(3) }
    local adam = Optimizer.adam { rate = 1 }
    refused(function() adam:update(p, { x = T { 1, 1 } }) end, "y", "nil")
    refused(function() adam:update(p, { x = T { 1 }, y = T(1) }) end, "x", "{2}", "{1}")
    refused(function() adam:update(p, { x = T { 1, 0 / 0 }, y = T(1) }) end, "x", "not finite")
    refused(function() adam:update({}, {}) end, "needs a tensor")
    local scheduled = Optimizer.adam { rate = 1, schedule = function() return "x" end }
    refused(function() scheduled:update(p, { x = T { 1, 1 }, y = T(1) }) end, "schedule", '"x"')
    local forgotten = Optimizer.adam { rate = 1, schedule = function(i) local _ = 0.99 ^ i end }
    refused(function() forgotten:update(p, { x = T { 1, 1 }, y = T(1) }) end, "schedule", "nil")
    local backward = Optimizer.adam { rate = 1, schedule = function() return -1 end }
    refused(function() backward:update(p, { x = T { 1, 1 }, y = T(1) }) end, "schedule", "at least 0, got -1")
    for _, rate in ipairs { -5, "abc", 0 / 0 } do            -- as a prompt may set it
      local set = Optimizer.adam { rate = 1 }
      set.rate = rate
      refused(function() set:update(p, { x = T { 1, 1 }, y = T(1) }) end, "rate must be a finite number above 0")
    end
    assert.same({ 1, 2 }, p.x:totable())
    assert.equal(0, adam.iteration)
  end)
  it("in its place are refused: a gradient that is being computed would be wrong", function()
    local p, descent = { x = T.param { 1, 2 } }, Optimizer.gradient_descent { rate = 1 }
    local why = "optimizer:update: x cannot be changed while a gradient is computed; update after cq.value_and_grad has given its gradients"
    local function update(q)
      local y = q.x * q.x
      descent:update(p, { x = T { 1, 1 } })
      return y:sum()
    end
    refused(function() T.value_and_grad(update)(p) end, why)
    refused(function() T.value_and_grad(function(q) return q.x:sum() + T.tape.pause(update, q) end)(p) end, why)
    assert.same({ 1, 2 }, p.x:totable())
    local scene = require "tests.scene"
    local world = scene.world(scene.robot())
    refused(function()
      T.value_and_grad(function(q)
        return world:rollout({ steps = 2, gravity = q.x, running = function() return update(p) end }).running:sum()
      end)(p)
    end, why, "(in running, control step 1 of 2)")
    -- what is optimised within an objective, apart from it
    local inner = T.param { 5, 5 }
    local loss = T.value_and_grad(function(q)
      T.tape.pause(function()
        descent:update(inner, select(2, T.value_and_grad(function(r) return r:square():sum() end)(inner)))
      end)
      return (q.x * inner):sum()
    end)(p)
    assert.equal(-15, loss)
    descent:update(p, { x = T { 1, 1 } })
    assert.same({ 0, 1 }, p.x:totable())
  end)
  it("in one part leave all parts as they were, and name the part", function()
    local p = { a = T.param { 1, 2 }, b = { c = T.param { 3 }, d = T.param { 4 } }, e = T.param(5) }
    local all = Optimizer.parts { a = Optimizer.adam { rate = 0.1 }, e = Optimizer.momentum { rate = 0.1 },
      b = Optimizer.parts { c = Optimizer.adam { rate = 0.1, clip = "median" }, d = Optimizer.adam { rate = 0.1 } } }
    local function grads(d) return { a = T { 1, 1 }, b = { c = T { 1 }, d = T { d } }, e = T(1) } end
    all:update(p, grads(1))
    local before, state = T.leaves.snapshot(p), all:state()
    refused(function() all:update(p, grads(0 / 0)) end, "the gradient of b.d is not finite; nothing was changed")
    refused(function() all:update(p, { a = T { 1, 1 }, b = { c = T { 1 }, d = T { 1 } }, e = T { 1 } }) end,
      "e has shape {} and its gradient {1}")
    for path, x in pairs { a = p.a, c = p.b.c, d = p.b.d, e = p.e } do
      assert.is_true(x:equal(before[path] or before.b[path]), path)
    end
    assert.same({ 1, 1, 1, 1 }, { all.iteration, all.parts.a.iteration, all.parts.b.iteration,
      all.parts.b.parts.c.iteration })
    assert.equal(#state.parts.b.parts.c.norms:totable(), #all.parts.b.parts.c.norms)
  end)

  it("in a clip that is assigned are told", function()
    local x = T.param { 1 }
    for _, wrong in ipairs { -1, 0, "max", { 1 } } do
      local descent = Optimizer.gradient_descent { rate = 0.1 }
      descent.clip = wrong
      refused(function() descent:update(x, T { 3 }) end, "optimizer:update: clip must be")
    end
    assert.same({ 1 }, x:totable())
  end)

  it("in a state are refused", function()
    local adam = Optimizer.adam { rate = 1 }
    refused(function() adam:restore { kind = "adam", iteration = 0.5, moments = { first = {}, second = {} } } end,
      "optimizer:restore: iteration of the state must be a whole number at least 0, got 0.5")
    refused(function() adam:restore(3) end, "state", "3")
    refused(function() adam:restore(Optimizer.momentum({ rate = 1 }):state()) end, "momentum", "adam")
    refused(function() adam:restore { kind = "adam", iteration = 1, moments = { first = {} } } end, "second")
    local moments = { first = {}, second = {} }
    refused(function() adam:restore { kind = "adam", iteration = 1, moments = moments, norms = 3 } end, "norms", "3")
  end)
end)
