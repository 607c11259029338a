-- tape: nesting, operations of one's own, and the promises of value_and_grad.
local T = require "cq.tensor"
local tape = T.tape
local scene = require "tests.scene"

local function refused(f, ...)
  local ok, message = pcall(f)
  assert(not ok, "no error")
  message = tostring(message)
  assert(message:find "^[^\n]*tape_spec.lua:%d+: ", "not at the user's line: " .. message)
  for _, words in ipairs { ... } do
    assert(message:find(words, 1, true), ("no %q in: %s"):format(words, message))
  end
end

local leaf = T.param

describe("a tape", function()
  it("records only what wants a gradient, only while it is on", function()
    local t, x, c = tape.new(), leaf { 1, 2 }, T { 3, 4 }
    assert(not (x * 2).requires_grad)
    tape.with(t, function()
      assert.equal(t, tape.recording())
      assert((x * c).requires_grad)
      assert(not (c * c).requires_grad)
      tape.pause(function() assert(not (x * c).requires_grad) end)
      assert(not x:detach().requires_grad)
    end)
    assert.is_nil(tape.recording())
    assert.equal(1, t.count)
  end)

  it("carries gradients to leaves and adds them up", function()
    local x = leaf { 1, 2 }
    for _ = 1, 2 do
      local t = tape.new()
      local y = tape.with(t, function() return x * x * 3 end)
      t:backward(y, T { 1, 10 })
      assert.equal(0, t.count)
      assert(not y.requires_grad)          -- plain data from now on
    end
    assert.same({ 12, 240 }, x.grad:totable())
    x:zero_grad()
    assert.is_nil(x.grad)
    x.grad = T { 5, 5 }
    assert.same({ 5, 5 }, x.grad:totable())
  end)

  it("takes several outputs, some without a gradient", function()
    local x, t = leaf { 1, 2 }, tape.new()
    local a, b, c = tape.with(t, function() return x * 2, x * 3, x * 5 end)
    t:backward({ a, b, c }, { T { 1, 1 }, false, T { 0, 1 } })
    assert.same({ 2, 7 }, x.grad:totable())
    assert.is_nil(b.grad)
  end)

  it("is off again after an error, and the error comes through", function()
    local ok, message = pcall(tape.with, tape.new(), function() error("mine", 0) end)
    assert(not ok)
    assert.equal("mine", message)
    assert.is_nil(tape.recording())
  end)

  it("refuses to change what takes part", function()
    local x = leaf { 1, 2 }
    tape.with(tape.new(), function()
      local y = x * 2
      refused(function() y:set(3, 1) end, "cannot be changed")
      refused(function() y[1] = 3 end, "cannot be changed")
      refused(function() x:fill(3) end, "cannot be changed")
      local c = T.zeros { 2 }
      refused(function() c[1] = y[1] end, "loses the gradient")
    end)
    -- also where nothing is recorded, within a gradient by it
    local function paused(q) return q:sum() + tape.pause(function() q:fill(3) return 0 end) end
    refused(function() T.value_and_grad(paused)(T { 1, 2 }) end,
      "fill: a tensor that takes part in a gradient cannot be changed")
    x:set(3, 1)
    assert.equal(3, x:get(1))
  end)

  it("refuses to change plain tensors whose numbers a backward pass needs", function()
    local one = T { 1, 2 }
    local factors = {
      product = function(p, b) return p * b end, quotient = function(p, b) return b / p end,
      power = function(p, b) return p ^ b end, larger = function(p, b) return p:maximum(b) end,
      mask = function(p, b) return b:select(p, p * p) end, dot = function(p, b) return p:dot(b) end,
      row = function(p, b) return b:reshape { 1, 2 }:matmul(p) end,
      layer = function(p, b) return b:reshape { 1, 2 }:dense(p:reshape { 2, 1 }, T { 0 }, "none") end,
    }
    for name, f in pairs(factors) do
      for how, change in pairs { fill = function(b) b:fill(0) end, set = function(b) b:set(0, 1) end,
        view = function(b) b:reshape({ 2, 1 }):fill(0) end, copy = function(b) b:copy_from(T { 0, 0 }) end } do
        local buffer = one:copy()
        refused(function()
          T.value_and_grad(function(p)
            local loss = f(p, buffer):sum()
            change(buffer)
            return loss
          end)(T.param { 1, 2 })
        end, "cannot be changed while it is computed")
        assert(buffer:equal(one), name .. " " .. how)
        buffer:fill(0)                                            -- it is over
      end
    end
    -- of a sum no numbers are needed
    local buffer, sum = T { 0, 0 }, T.value_and_grad(function(p)
      local loss = 0
      local own = T { 0, 0 }
      for t = 1, 3 do
        own:fill(t)
        loss = loss + (p - own + t):sum()
      end
      return loss
    end)(T.param { 1, 2 })
    assert.equal(9, sum)
    -- nor can a parameter be changed by its plain numbers, or while recording pauses
    local p = T.param({ 1, 1 }, { max = 2 })
    refused(function()
      T.value_and_grad(function(q)
        local s = (q * q):sum()
        q:detach():fill(5)
        return s
      end)(p)
    end, "fill: a tensor that takes part")
    refused(function()
      T.value_and_grad(function(q)
        local s = (q * buffer):sum()
        tape.pause(function() buffer:fill(1) end)
        return s
      end)(p)
    end, "fill: a tensor that takes part")
    local before = { p:flatten(), p:detach(), p:reshape { 1, 2 } }                   -- that share its numbers
    for _, view in ipairs(before) do
      refused(function()
        T.value_and_grad(function(q)
          local s = (q * q):sum()
          view:fill(5)
          return s
        end)(p)
      end, "fill: a tensor that takes part")
    end
    for _, name in ipairs { "flatten", "detach" } do
      refused(function()
        T.value_and_grad(function(q)
          local twice = 2 * q
          local s = (twice * twice):sum()
          tape.pause(twice[name], twice):fill(5)
          return s
        end)(p)
      end, "fill: a tensor that takes part")
    end
    assert.same({ 1, 1 }, p:totable())
    before[1]:fill(2)                                                                -- it is over
  end)

  it("cannot be left by a coroutine, which would leave it on for good", function()
    local x, seen = leaf { 1, 2 }, nil
    local function left(f)
      local thread = coroutine.create(function()
        refused(f, "coroutine.yield: a coroutine cannot be left while a gradient is computed") return "end"
      end)
      local ok, result = coroutine.resume(thread)
      assert(ok, result)
      assert.equal("end", result)
      assert.is_nil(tape.recording())
    end
    left(function() T.value_and_grad(function(q) coroutine.yield() return q:sum() end)(x) end)
    left(function() tape.with(tape.new(), function() coroutine.yield() end) end)
    left(function() tape.with(tape.new(), function() tape.pause(function() coroutine.yield() end) end) end)
    assert.is_nil(x.grad)
    x:set(3, 1)                             -- refused while a tape records
    -- where nothing records it may, and one that begins and ends within a gradient may too
    local thread = coroutine.wrap(function() return tape.pause(function() seen = coroutine.yield() return seen end) end)
    thread()
    assert.equal("on", thread "on")
    local function weighed(q)
      local sum = 0
      for term in coroutine.wrap(function() for i = 1, 2 do coroutine.yield(q[i] * i) end end) do sum = sum + term end
      return sum
    end
    local loss, grad = coroutine.wrap(function() return T.value_and_grad(weighed)(x) end)()
    assert.equal(7, loss)
    assert.same({ 1, 2 }, grad:totable())
  end)

  it("refuses gradients of another shape", function()
    local x, t = leaf { 1, 2 }, tape.new()
    local y = tape.with(t, function() return x * 2 end)
    refused(function() t:backward(y) end, "{2}", "needs a gradient")
    refused(function() t:backward(y, T { 1, 2, 3 }) end, "{2}", "{3}")
  end)
end)

describe("an operation of one's own", function()
  -- y = x^2 and z = sum x, with the adjoint by hand
  local function square_and_sum(x, calls)
    local y, z = x:detach():square(), x:detach():sum()
    return tape.custom { outputs = { y, z }, name = "square_and_sum", backward = function(gy, gz)
      calls[#calls + 1] = { gy ~= nil, gz ~= nil }
      if gy then x:accumulate(2 * x:detach() * gy) end
      if gz then x:accumulate(T.ones(x:shape()) * gz) end
    end }
  end

  it("gets gradients of what was reached, nil for the rest", function()
    local calls, p = {}, T.param { 1, 2 }
    local loss, grad = T.value_and_grad(function(x)
      local y, z = square_and_sum(x, calls)
      local unused = square_and_sum(x, calls)
      assert(unused.requires_grad)
      return y:sum() * 3 + z
    end)(p)
    assert.equal(18, loss)
    assert.same({ 7, 13 }, grad:totable())
    assert.same({ { true, true } }, calls)
    T.value_and_grad(function(x) return (select(2, square_and_sum(x, calls))) end)(p)
    assert.same({ false, true }, calls[2])
  end)

  it("is plain data when nothing records", function()
    local y = square_and_sum(T { 1, 2 }, {})
    assert(not y.requires_grad)
  end)

  it("accumulates only where a gradient is wanted", function()
    local c = T { 1, 2 }
    c:accumulate(T { 1, 1 })
    assert.is_nil(c.grad)
    refused(function() tape.custom { outputs = {} } end, "backward")
    refused(function() leaf { 1, 2 }:accumulate(T { 1 }) end, "{2}", "{1}")
  end)
end)

-- A rollout in small: s <- f(s, outer tensors), forward without recording, backward step by step on a tape of its own.
local function rollout(f, s0, steps)
  local states = { s0:detach() }
  for i = 1, steps do states[i + 1] = tape.pause(f, states[i], i) end
  local last = states[steps + 1]:detach()
  return tape.custom { outputs = { last }, name = "rollout", backward = function(g)
    for i = steps, 1, -1 do
      local inner, s = tape.new(), states[i]:detach()
      tape.with(inner, function() tape.custom { outputs = { s }, backward = function(gs) g = gs end } end)
      local out = tape.with(inner, f, s, i)
      local before = g
      g = nil
      inner:backward(out, before)
    end
    s0:accumulate(g)
  end }
end

describe("a tape within a tape", function()
  local w0, b0, s0 = T { { 0.5, -0.3 }, { 0.2, 0.7 } }, T { 0.1, -0.2 }, T { 1, -1 }

  local function objective(run)
    return function(p)
      local scaled = p.w * p.scale               -- an outer intermediate, used in every step
      local function step(s, i) return (scaled:matmul(s) + p.b * i):tanh() end
      local last = run(step, p.s:sin(), 5)
      return (last * T { 1, 2 }):sum() + p.w:sum() * 0.1
    end
  end
  local function direct(step, s, n)
    for i = 1, n do s = step(s, i) end
    return s
  end
  local function params()
    return { w = T.param(w0), b = T.param(b0), s = T.param(s0), scale = T.param(1.3) }
  end

  it("gives the gradients of one long tape", function()
    local loss, grad = T.value_and_grad(objective(rollout))(params())
    local loss1, grad1 = T.value_and_grad(objective(direct))(params())
    assert.equal(loss1, loss)
    for name in pairs(grad1) do assert(grad[name]:close(grad1[name], 1e-13), name) end
    assert(grad.scale:item() ~= 0)
  end)

  it("passes the check against differences", function()
    local report = T.check_gradient(objective(rollout), params(), { each = true, tolerance = 1e-8 })
    assert(report.ok, tostring(report))
  end)

  it("holds no numbers that a backward pass has read, or that were cleared", function()
    local on, p, plain, out = T.tape.new(), T.param { 1, 2 }, T { 3, 4 }, nil
    local function product() out = (p * plain):sum() end
    local function write() plain:set(5, 1) end
    for _, over in ipairs { function() on:backward(out) end, function() on:clear() end } do
      T.tape.with(on, product)
      over()
      T.tape.with(on, write)
    end
    T.tape.with(on, product)
    assert.is_false(pcall(T.tape.with, on, write))
  end)

  it("holds for a gradient taken inside an objective", function()
    local p = T.param { 1, 2 }
    local loss, grad = T.value_and_grad(function(q)
      local _, inner = T.value_and_grad(function(r) return (r * r * r):sum() end)(q:detach())
      assert.same({ 3, 12 }, inner:totable())
      return (q * inner):sum()                   -- inner is plain data here
    end)(p)
    assert.equal(27, loss)
    assert.same({ 3, 12 }, grad:totable())
  end)
end)

describe("value_and_grad", function()
  it("gives gradients in the shape of the parameters, and further results", function()
    local p = { net = { { w = T.param { 1, 2 } }, { w = T.param { 3 } } }, gain = T.param(2), name = "n",
      data = T { 5, 6 } }
    local loss, grad, more, last = T.value_and_grad(function(q, factor)
      return ((q.net[1].w * q.data):sum() + q.net[2].w:sum()) * q.gain * factor, q.name, nil
    end)(p, 10)
    assert.equal((5 + 12 + 3) * 20, loss)
    assert.same({ 100, 120 }, grad.net[1].w:totable())
    assert.same({ 20 }, grad.net[2].w:totable())
    assert.equal(200, grad.gain:item())
    assert.is_nil(grad.data)
    assert.is_nil(grad.name)
    assert.equal("n", more)
    assert.is_nil(last)
    assert.is_nil(p.gain.grad)
  end)

  it("takes one tensor, and plain tensors where there is no param", function()
    local _, grad = T.value_and_grad(function(x) return x:square():sum() end)(T { 1, 2 })
    assert.same({ 2, 4 }, grad:totable())
    local grads, loss = T.grad(function(q) return q.x * q.y end) { x = T(2), y = T(3) }
    assert.equal(3, grads.x:item())
    assert.equal(2, grads.y:item())
    assert.equal(6, loss)
    local x = T { 1, 2 }
    T.grad(function(q) return q.x:sum() end) { x = x }
    assert(not x.requires_grad)
  end)

  it("adds up a tensor that stands in two places", function()
    local w = T.param { 1, 2 }
    local _, grad = T.value_and_grad(function(q) return (q.a * q.b):sum() end) { a = w, b = w }
    assert.same({ 2, 4 }, grad.a:totable())
    assert.equal(grad.a, grad.b)
  end)

  it("is repeatable to the bit", function()
    local p = { w = T.param((T.arange(1, 4096) * 0.37):sin():reshape { 64, 64 }) }
    local f = T.value_and_grad(function(q) return q.w:matmul(q.w):tanh():matmul(T.ones { 64 }):square():mean() end)
    local loss, grad = f(p)
    for _ = 1, 5 do
      local again, grad2 = f(p)
      assert.equal(loss, again)
      assert(grad.w:equal(grad2.w))
    end
  end)

  local p = { net = { w1 = T.param { 1, 2 } }, other = T.param(1), ["a b"] = { T.param(4) } }
  it("names a parameter that does not reach the objective", function()
    refused(function() T.value_and_grad(function(q) return q.other * q["a b"][1] end)(p) end,
      "parameter net.w1 does not reach the objective")
    refused(function() T.value_and_grad(function(q) return q.other * q.net.w1:sum() end)(p) end,
      'parameter ["a b"][1] does not reach')
    refused(function() T.value_and_grad(function(q) return q.other * q.net.w1:detach():sum() end)(p) end,
      "does not reach")
    refused(function() T.value_and_grad(function(q) return q.other * q["a b"][1] * q.net.w1:sign():sum() end)(p) end,
      "net.w1 does not reach")
    refused(function() T.value_and_grad(function() return 3 end)(p) end, "does not reach", "number 3")
    refused(function() T.value_and_grad(function() return T(3) end)(T.param(2)) end, "the parameter does not reach",
      "does not reach")
  end)

  it("warns once of a gradient that is exactly zero", function()
    local warn, said = T.warn, {}
    T.warn = function(sentence) said[#said + 1] = sentence end
    local f = T.value_and_grad(function(q) return q.moving * 2 + (q.stuck * 0):sum() end)
    local q = { moving = T.param(1), stuck = T.param { 1, 2 } }
    local _, grad = f(q)
    f(q)
    T.warn = warn
    assert.equal(1, #said)
    assert(said[1]:find("stuck", 1, true), said[1])
    assert.same({ 0, 0 }, grad.stuck:totable())
  end)

  it("refuses objectives that are no finite number", function()
    refused(function() T.value_and_grad(function(q) return q * 2 end)(T.param { 1, 2 }) end, "one element", "{2}")
    refused(function() T.value_and_grad(function() return "x" end)(T.param(1)) end, "one element", '"x"')
    refused(function() T.value_and_grad(function(q) return q:log() end)(T.param(-1)) end, "objective is", "nan")
    refused(function() T.value_and_grad(function(q) return q:sqrt() end)(T.param(0)) end,
      "gradient of parameter is inf")
    refused(function() T.value_and_grad(function(q) return q end)({ x = 3 }) end, "needs a tensor")
    refused(function() T.value_and_grad(3) end, "function", "3")
  end)

  it("leaves everything as it was after an error", function()
    local x = T.param { 1, 2 }
    x:accumulate(T { 7, 7 })
    pcall(T.value_and_grad(function(q) error(q:sum():item()) end), x)
    assert.same({ 7, 7 }, x.grad:totable())
    assert.is_nil(tape.recording())
  end)
end)

describe("check_gradient", function()
  local x = T.param { 0.5, -0.3, 0.8 }
  it("finds a right gradient right", function()
    local report = T.check_gradient(function(q) return (q.x:sin() * q.x):sum() end, { x = x }, { tolerance = 1e-8 })
    assert(report.ok, tostring(report))
    assert(tostring(report):find "repeatable")
    assert.same({ 0.5, -0.3, 0.8 }, x:totable())
  end)

  local function wrong(t)
    return (tape.custom { outputs = { t:detach():square() },
      backward = function(g) t:accumulate(1.99 * t:detach() * g) end })
  end

  it("finds a wrong adjoint, and which parameter has it", function()
    local report = T.check_gradient(function(q) return wrong(q.bad):sum() + q.good:square():sum() end,
      { bad = T.param(x), good = T.param(x) }, { each = true })
    assert(not report.ok)
    local verdicts = {}
    for _, d in ipairs(report.directions) do verdicts[d.name] = d.verdict end
    assert.same({ ["all 1"] = "wrong", ["all 2"] = "wrong", bad = "wrong", good = "right" }, verdicts)
    assert(tostring(report):find "WRONG")
  end)

  it("may be brief where the gradient is right, and looks at all steps where it is not", function()
    local calls = 0
    local function objective(q)
      calls = calls + 1
      return q.bad:square():sum() + q.good:square():sum()
    end
    local p = { good = T.param { 1, 2 }, bad = T.param { 3, -1 } }
    local full = T.check_gradient(objective, p, { noise = 1e-15, each = true })
    local needed
    needed, calls = calls, 0
    local short = T.check_gradient(objective, p, { noise = 1e-15, each = true, brief = true })
    assert.is_true(short.ok and full.ok)
    assert.equal(needed - calls, 2 * 4 * #short.directions)
    for _, direction in ipairs(short.directions) do assert.equal(1, #direction.rows) end
    local report = T.check_gradient(function(q) return wrong(q.bad):sum() + q.good:square():sum() end, p,
      { each = true, brief = true })
    for _, direction in ipairs(report.directions) do
      assert.equal(direction.name == "good" and 1 or 5, #direction.rows)
    end
  end)

  it("tells a kink from a wrong adjoint", function()
    local report = T.check_gradient(function(q) return (q - 0.5):relu():sum() + q:square():sum() end, T.param(0.5))
    assert.equal("kink", report.directions[1].verdict)
    assert(not report.ok)
  end)

  it("calls no kink wrong whose two sides agree at one step by their curvature", function()
    for k = -10, 10 do
      local curvature = 10 ^ (k / 10)
      local function bent(q) return (1e-3 * q:relu() - curvature * q:square()):sum() end
      local report = T.check_gradient(bent, T.param(0))
      for _, direction in ipairs(report.directions) do assert.equal("kink", direction.verdict, curvature) end
    end
  end)

  it("leaves out steps at which the objective fails, unless it always does", function()
    local function within(far)
      return function(q)
        if q:data()[0] ~= 1 and math.abs(q:data()[0] - 1) > far then error("beyond a bound", 0) end
        return (q:sin() * q):sum()
      end
    end
    local report = T.check_gradient(within(2e-3), T.param { 1, 0.3 }, { tolerance = 1e-8 })
    assert(report.ok and #report.directions[1].rows < 5, tostring(report))
    local fine, problem = pcall(T.check_gradient, within(0), T.param { 1, 0.3 }, { noise = 1e-15 })
    assert(not fine and problem == "beyond a bound", problem)
    fine, problem = pcall(T.check_gradient, within(0), T.param { 1, 0.3 })
    assert(not fine and problem == "beyond a bound", problem)
  end)

  it("takes no more directions than could be made", function()
    local fine, problem = pcall(T.check_gradient, function(q) return q:sum() end, T.param { 1 }, { directions = 1e300 })
    assert(not fine and problem:find("directions must be a whole number at least 1 and at most 100000", 1, true), problem)
  end)

  it("ends at Ctrl-C, also in an objective without a rollout", function()
    local engine = require "cq.base.engine"
    -- in the first gradient, where the noise is measured, and at a step
    for _, last in ipairs { 1, 2, 5, 12, 13 } do
      local calls, p = 0, T.param { 1, 0.3 }
      local fine, problem = pcall(T.check_gradient, function(q)
        calls = calls + 1
        if calls == last then engine.C.cq_interrupt(1) end
        return (q:sin() * q):sum()
      end, p)
      engine.C.cq_interrupt(0)
      assert(not fine and problem:find("cq.check_gradient: interrupted before all directions were checked$"), problem)
      assert.equal(last, calls)
      assert.same({ 1, 0.3 }, p:totable())
    end
  end)

  describe("in float32", function()
    local world = scene.world(scene.robot(), { precision = "float32" })
    local function center(p)
      local roll = world:rollout { robot = world.robot:with { velocity = p.velocity, young = p.young }, steps = 12 }
      return roll.state:center("trunk"):dot(T { 1, 2 })
    end
    local function scaled(t, factor)
      return (tape.custom { outputs = { t:detach():copy() }, backward = function(g) t:accumulate(factor * g) end })
    end
    -- how often each verdict comes, for an adjoint that is too large by a factor
    local function verdicts(factor, f)
      local p, count = { velocity = T.param { 0.2, -0.3 }, young = T.param(10) },
        { right = 0, wrong = 0, kink = 0, rounding = 0 }
      local function objective(q)
        return (f or center) { velocity = scaled(q.velocity, factor), young = scaled(q.young, factor) }
      end
      local report = T.check_gradient(objective, p, { directions = 12 })
      for _, d in ipairs(report.directions) do count[d.verdict] = count[d.verdict] + 1 end
      return count, report
    end

    it("calls what rounding hides rounding, and says what to do", function()
      local count, report = verdicts(1)
      assert.equal(0, count.wrong, tostring(report))
      assert(count.rounding >= 10, tostring(report))
      assert(tostring(report):find("run with --precision float64 to see more", 1, true))
      assert(not report.ok)
    end)

    it("still finds an adjoint that is too large by a tenth", function()
      local count, report = verdicts(1.1)
      assert(count.wrong >= 10, tostring(report))
    end)

    it("still tells a kink", function()
      local at = center { velocity = T { 0.2, -0.3 }, young = T(10) }:item()
      local function corner(p) return (center(p) - at):relu() + center(p) end
      local count, report = verdicts(1, corner)
      assert.equal(0, count.wrong, tostring(report))
      assert(count.kink >= 6, tostring(report))
    end)
  end)

  it("blames a small kink for no more than it does", function()
    local function objective(q) return wrong(q) + (q - 0.5):relu() * 1e-4 end
    local report = T.check_gradient(objective, T.param(0.5))
    assert.equal("wrong", report.directions[1].verdict, tostring(report))
  end)

  it("finds what is not repeatable", function()
    local n = 0
    local report = T.check_gradient(function(q)
      n = n + 1
      return q:sum() * (1 + 1e-14 * n)
    end, T.param(x))
    assert(not report.repeatable and not report.ok)
  end)

  it("refuses unknown options", function()
    refused(function() T.check_gradient(function(q) return q end, x, { step = 3 }) end, "step", "steps")
  end)
end)
