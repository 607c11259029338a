-- tensor_gradient: every operation's gradient against extrapolated differences, and linear ones
-- against their adjoint identity.
local T = require "cq.tensor"
local differences = require "tests.differences"
local says = require("tests.sentence").refuses
local spread = require "tests.spread"

local function check(name, f, inputs, tolerance)
  it(name, function()
    local err = differences.error(f, inputs)
    assert(err < (tolerance or 1e-9), ("relative error %.2e"):format(err))
  end)
end

-- single elements of these have gradient zero by intent
local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

describe("gradient of", function()
  local x, y = spread({ 3, 4 }, 0.3, 1.7), spread({ 3, 4 }, 0.2, 2.1) + 0.05
  for _, name in ipairs { "neg", "abs", "square", "sqrt", "exp", "log", "sin", "cos", "tan", "atan", "tanh", "sigmoid",
    "relu", "softplus", "elu" } do
    check(name, function(a) return a[name](a) end, { name == "tan" and x * 0.5 or x })
  end
  for _, name in ipairs { "neg", "abs", "square", "exp", "sin", "cos", "atan", "tanh", "sigmoid", "relu",
    "softplus", "elu" } do
    check(name .. " of negatives", function(a) return a[name](a) end, { -x })
  end
  for _, name in ipairs { "asin", "acos" } do
    check(name, function(a) return a[name](a) end, { spread({ 5 }, -0.8, 0.8) })
  end
  check("unary minus", function(a) return -a end, { x })

  local binaries = {
    ["a + b"] = function(a, b) return a + b end, ["a - b"] = function(a, b) return a - b end,
    ["a * b"] = function(a, b) return a * b end, ["a / b"] = function(a, b) return a / b end,
    ["a ^ b"] = function(a, b) return a ^ b end, minimum = T.minimum, maximum = T.maximum,
    atan2 = function(a, b) return a:atan2(b) end,
  }
  for name, f in pairs(binaries) do
    check(name, f, { x, y })
    check(name .. " over rows", f, { x, y[2] })
    check(name .. " over columns", f, { x:slice(1, 1, 2), y })
    check(name .. " of row and column", f, { x[1], y:slice(1, 1, 2) })
    check(name .. " with rank 0", f, { x[1][2], y })
    check(name .. " with rank 0 behind", f, { x, y[1][3] })
    check(name .. " in four dimensions", f, { spread({ 2, 1, 3, 1 }, 0.3, 1.7), spread({ 4, 1, 2 }, 0.2, 2.1) + 0.03 })
  end
  check("powers of numbers", function(a) return a ^ 2 + a ^ 3 + a ^ -1 + 2 ^ a + 1 / a + (3 - a) end, { x })
  check("an operand used twice", function(a) return a * a + a / (a + 1) end, { x })
  check("square of negatives by pow", function(a) return a:pow(2) + a:pow(3) end, { -x })

  local z = spread({ 2, 3, 4 }, -1.5, 1.5)
  for _, name in ipairs { "sum", "mean", "prod", "max", "min", "norm", "logsumexp" } do
    check(name, function(a) return a[name](a) end, { z })
    for dim = 1, 3 do
      check(("%s of dimension %d"):format(name, dim), function(a) return a[name](a, dim) end, { z })
    end
    check(name .. " kept", function(a) return a * a[name](a, -1, true) end, { z })
    check(name .. " of two dimensions", function(a) return a[name](a, { 3, 1 }) end, { z })
  end
  check("prod with a zero", function(a) return a:prod() end, { T.tensor { 2, 0, 3 } })
  for dim = 1, 3 do
    check("cumsum " .. dim, function(a) return a:cumsum(dim) end, { z })
    check("softmax " .. dim, function(a) return a:softmax(dim) end, { z })
    check("log_softmax " .. dim, function(a) return a:log_softmax(dim) end, { z })
  end

  local function product(a, b) return a:matmul(b) end
  for _, case in ipairs {
    { { 5 }, { 5 } }, { { 3, 5 }, { 5 } }, { { 3 }, { 3, 5 } }, { { 3, 4 }, { 4, 2 } }, { { 1, 4 }, { 4, 1 } },
    { { 2, 3, 4 }, { 4, 5 } }, { { 3, 4 }, { 2, 4, 5 } }, { { 2, 3, 4 }, { 2, 4, 5 } }, { { 2, 3, 4 }, { 4 } },
    { { 4 }, { 2, 4, 3 } }, { { 2, 2, 3, 4 }, { 2, 2, 4, 1 } }, { { 1, 3, 4 }, { 2, 4, 5 } },
  } do
    local a, b = spread(case[1], -1, 1), spread(case[2], -0.7, 1.2)
    check(("matmul of {%s} and {%s}"):format(table.concat(case[1], ","), table.concat(case[2], ",")), product, { a, b })
  end
  check("a matrix times itself", function(a) return a:matmul(a) end, { spread({ 3, 3 }, -1, 1) })
  check("dot", function(a, b) return a:dot(b) end, { spread({ 7 }, -1, 1), spread({ 7 }, 0, 1) })

  for name, f in pairs { relu = "relu", tanh = "tanh", softplus = "softplus", sigmoid = "sigmoid", elu = "elu",
    none = "copy" } do
    for _, shape in ipairs { { 4 }, { 3, 4 }, { 2, 3, 4 } } do
      it(("dense of {%s}, %s, is that of product, sum and function"):format(table.concat(shape, ","), name), function()
        local p = { x = spread(shape, -1, 1), w = spread({ 4, 5 }, -0.7, 1.2), b = spread({ 5 }, -0.5, 0.6) }
        local one, whole = T.value_and_grad(function(q) return q.x:dense(q.w, q.b, name):square():sum() end)(p)
        local other, parts = T.value_and_grad(function(q)
          local out = q.x:matmul(q.w) + q.b
          return out[f](out):square():sum()
        end)(p)
        assert.equal(other, one)
        for key, grad in pairs(parts) do assert.is_true(whole[key]:close(grad, 1e-13, 1e-15)) end
      end)
    end
  end

  check("conv1d", function(a, w, b) return a:conv1d(w, { bias = b }) end,
    { spread({ 2, 9 }, -1, 1), spread({ 3, 2, 4 }, -1, 1), spread({ 3 }, 0, 1) })
  check("conv1d of a batch, with options",
    function(a, w) return a:conv1d(w, { stride = 2, padding = 2, dilation = 2 }) end,
    { spread({ 2, 2, 9 }, -1, 1), spread({ 3, 2, 3 }, -1, 1) })
  check("conv2d", function(a, w, b) return a:conv2d(w, { bias = b, padding = 1 }) end,
    { spread({ 2, 2, 5, 6 }, -1, 1), spread({ 3, 2, 3, 2 }, -1, 1), spread({ 3 }, 0, 1) })
  check("conv2d with unequal options", function(a, w)
    return a:conv2d(w, { stride = { 2, 1 }, padding = { 0, 2 }, dilation = { 1, 2 } })
  end,
    { spread({ 1, 7, 6 }, -1, 1), spread({ 2, 1, 3, 3 }, -1, 1) })

  check("conv3d",
    function(a, w, b) return a:conv3d(w, { bias = b, stride = { 2, 1, 2 }, padding = { 1, 0, 1 } }) end,
    { spread({ 2, 2, 4, 3, 5 }, -1, 1), spread({ 3, 2, 2, 2, 3 }, -1, 1), spread({ 3 }, 0, 1) })
  check("conv_transpose2d",
    function(a, w, b)
      return a:conv_transpose2d(w, { bias = b, stride = 2, padding = 1, output_padding = { 1, 0 } })
    end,
    { spread({ 2, 3, 3, 2 }, -1, 1), spread({ 3, 2, 4, 3 }, -1, 1), spread({ 2 }, 0, 1) })
  for _, name in ipairs { "relu", "tanh", "softplus", "sigmoid", "elu" } do
    check("conv2d through " .. name, function(a, w, b)
      return a:conv2d(w, { bias = b, stride = 2, activation = name })
    end, { spread({ 2, 2, 5, 6 }, -1, 1), spread({ 3, 2, 3, 2 }, -1, 1), spread({ 3 }, 0.01, 1) })
  end
  check("conv_transpose2d through elu", function(a, w) return a:conv_transpose2d(w, { activation = "elu" }) end,
    { spread({ 2, 3, 3, 2 }, -1, 1), spread({ 3, 2, 4, 3 }, -1, 1) })
  for dim = 2, 3 do
    local size = dim == 2 and { 7, 6 } or { 4, 6, 5 }
    check(("splat in %dD"):format(dim), function(at, amounts, origin)
      return at:splat(amounts, { size = size, spacing = 0.3, origin = origin, density = true })
    end, { spread({ 2, 5, dim }, 0.21, 1.73), spread({ 2, 5, 6 }, 0.5, 1), spread({ 2, dim }, -0.1, 0.07) })
    check(("splat of momentum in %dD"):format(dim), function(at, amounts, velocity)
      return at:splat(amounts, { size = size, spacing = 0.3, velocity = velocity })
    end, { spread({ 9, dim }, -0.41, 2.03), spread({ 9, 1 }, 0.5, 1), spread({ 9, dim }, -1, 1) })
  end
  check("conv_transpose3d", function(a, w) return a:conv_transpose3d(w, { stride = 2, dilation = { 1, 2, 1 } }) end,
    { spread({ 2, 2, 3, 2 }, -1, 1), spread({ 2, 1, 2, 2, 3 }, -1, 1) })

  check("reshape", function(a) return a:reshape { 4, -1 } end, { z })
  check("flatten, squeeze, unsqueeze", function(a) return a:flatten():unsqueeze(1):squeeze(1) end, { z })
  check("transpose", function(a) return a:transpose() end, { z })
  check("permute", function(a) return a:permute { 3, 1, 2 } end, { z })
  check("expand", function(a) return a:expand { 2, 3, 4 } end, { x:slice(1, 1, 2) })
  check("slice", function(a) return a:slice(2, 3, 2) + a:slice(-2, -1, 2) end, { z })
  check("elements and rows", function(a) return a[1][2] * a[2][3] + a[-1][1] end, { z })
  check("gather with repeats", function(a) return a:gather({ 2, 1, 2, -1 }, 2) end, { z })
  check("repeated", function(a) return a:repeated(3, 2) end, { z })
  check("pad", function(a) return a:pad({ 1, 2 }, 2, 5) end, { z })
  check("concat", function(a, b) return T.concat({ a, b, a }, 2) end, { x, spread({ 3, 2 }, 0, 1) })
  check("stack", function(a, b) return T.stack({ a, b, 2 * a }, -1) end, { x, y })
  check("tensors in nested lists", function(a, b) return T.tensor { { a[1], 2 }, { b[2], a[2] } } end, { x[1], y[1] })
  check("copy", function(a) return a:copy() end, { x })
  check("clamp", function(a) return a:clamp(-0.5, 0.7) end, { z })
  check("select", function(a, b) return T.where(z:less(0), a, b) end, { z, y[1] })
end)

describe("adjoint identity <A x, y> = <x, A' y>", function()
  local function identity(name, f, x)
    it(name, function()
      local y
      local p = T.param(x)
      local value, grad = T.value_and_grad(function(q)
        local out = f(q)
        y = y or (T.arange(1, out.count):reshape(out:shape()) * 1.7):sin()
        return (out * y):sum()
      end)(p)
      local back = (grad * x):sum():item()
      assert(math.abs(value - back) <= 1e-13 * math.max(1, math.abs(value)), ("%.17g and %.17g"):format(value, back))
    end)
  end
  local x, w = spread({ 3, 4, 5 }, -1, 1), spread({ 5, 3 }, -1, 1)
  identity("sum", function(a) return a:sum(2) end, x)
  identity("mean", function(a) return a:mean { 1, 3 } end, x)
  identity("cumsum", function(a) return a:cumsum(2) end, x)
  identity("matmul", function(a) return a:matmul(w) end, x)
  identity("gather", function(a) return a:gather({ 4, 1, 1, 2 }, 2) end, x)
  identity("permute and slice", function(a) return a:permute({ 2, 3, 1 }):slice(2, 4, 2) end, x)
  identity("expand", function(a) return a:unsqueeze(1):expand { 2, 3, 4, 5 } end, x)
  identity("pad and concat", function(a) return T.concat({ a:pad({ 2, 1 }, 3), a:pad({ 1, 2 }, 3) }, 1) end, x)
  identity("conv2d", function(a) return a:conv2d(spread({ 2, 3, 2, 3 }, -1, 1), { stride = 2, padding = 1 }) end, x)

  -- a transposed convolution is the adjoint of the convolution with its kernel, for every geometry
  for k, case in ipairs {
    { 2, { 9, 8 }, { 4, 4 }, { stride = 2, padding = 1 } }, { 2, { 64, 64 }, { 4, 4 }, { stride = 2, padding = 1 } },
    { 2, { 7, 11 }, { 3, 2 }, { stride = { 3, 1 }, padding = { 0, 1 }, dilation = { 1, 3 } } },
    { 2, { 3, 3 }, { 3, 3 }, { padding = 4 } }, { 3, { 8, 8, 8 }, { 4, 4, 4 }, { stride = 2, padding = 1 } },
    { 3, { 5, 4, 6 }, { 2, 3, 1 }, { stride = { 1, 2, 3 }, padding = { 0, 1, 0 }, dilation = { 2, 1, 1 } } },
  } do
    it("conv_transpose of geometry " .. k, function()
      local n, size, taps, opts = unpack(case)
      local a = spread({ 2, 3, unpack(size) }, -1, 1)
      local kernel = spread({ 4, 3, unpack(taps) }, -1, 1)
      local there = a[("conv%dd"):format(n)](a, kernel, opts)
      local y, more = spread(there:shape(), -1, 1), {}
      for d = 1, n do
        local function of(name, default)
          return type(opts[name]) == "table" and opts[name][d] or opts[name] or default
        end
        local stride, reach = of("stride", 1), of("dilation", 1) * (taps[d] - 1)
        more[d] = size[d] - ((there:size(2 + d) - 1) * stride - 2 * of("padding", 0) + reach + 1)
      end
      local back = y[("conv_transpose%dd"):format(n)](y, kernel, { stride = opts.stride, padding = opts.padding,
        dilation = opts.dilation, output_padding = more })
      assert.same(a:shape(), back:shape())
      local one, other = (there * y):sum():item(), (a * back):sum():item()
      assert(math.abs(one - other) <= 1e-12 * math.max(1, math.abs(one)), ("%.17g and %.17g"):format(one, other))
    end)
  end
end)

describe("subgradient", function()
  local function gradient(f, x)
    local _, g = T.value_and_grad(function(p) return f(p.x):sum() end) { x = T.param(x) }
    return g.x:totable()
  end
  it("of abs, relu and norm is 0 at 0", function()
    assert.same({ 0, 1 }, gradient(function(x) return x:abs() end, { 0, 2 }))
    assert.same({ 0, 1 }, gradient(function(x) return x:relu() end, { 0, 2 }))
    assert.same({ 0, 0 }, gradient(function(x) return x:norm() end, { 0, 0 }))
  end)
  it("of clamp is 1 on its bounds and 0 outside", function()
    assert.same({ 0, 1, 1, 1, 0 }, gradient(function(x) return x:clamp(-1, 1) end, { -2, -1, 0, 1, 2 }))
  end)
  it("of ties goes to the first", function()
    assert.same({ 1, 0, 0 }, gradient(function(x) return x:max() end, { 3, 3, 1 }))
    assert.same({ 1, 1 }, gradient(function(x) return x:maximum(1) end, { 1, 2 }))
    assert.same({ 0, 0 }, gradient(function(x) return T.maximum(1, x) end, { 1, 0 }))
  end)
  it("of x^0 and x^2 at 0 is 0", function()
    assert.same({ 0, 0 }, gradient(function(x) return x ^ 0 + x ^ 2 end, { 0, 0 }))
  end)
  it("of the side not selected is 0, not nan", function()
    assert.same({ 0, 0.25 }, gradient(function(x) return T.where(x:greater(0), x:sqrt(), 0) end, { -1, 4 }))
  end)
end)

describe("a gradient within another one", function()
  local a, b = T.param { 2 }, T.param { 3 }
  -- The value and gradient by a of p times what `inner` returns for p.
  local function around(inner)
    local value, g = T.value_and_grad(function(p) return (p * inner(p)):sum() end)(a)
    return { value, g:item() }
  end
  local function gradient_of(f, at) return (T.grad(f)(at)) end

  it("is a constant where it reads nothing of that one", function()
    assert.same({ 12, 6 }, around(function() return gradient_of(function(q) return (q * q):sum() end, b) end))
    assert.same({ 24, 12 }, around(function(p)
      return gradient_of(function(q) return (q * q * q):sum() end, p:detach())
    end))
    assert.same({ 36, 18 }, around(function(p)
      local held = p:detach()
      return (T.value_and_grad(function(q) return (q * q * held):sum() end)(b))
    end))
    assert.same({ 18, 9 }, around(function()
      local _, g, twice = T.value_and_grad(function(q) return (q * q):sum(), q * 2, "text", { 1, q = q } end)(b)
      assert.same({ 6 }, g:totable())
      return twice + 3 * 1
    end))
  end)

  it("is refused where it would have a gradient", function()
    for _, inner in ipairs {
      function(p) return gradient_of(function(q) return (q * q * q):sum() end, p) end,
      function(p) return gradient_of(function(q) return (q * q * q):sum() end, p * 2) end,
      function(p) return gradient_of(function(q) return (q * q * p):sum() end, b) end,
      function(p)
        local twice = p * 2
        return (T.value_and_grad(function(q) return (q * twice):sum() end)(b))
      end,
      function(p) return T.values_and_grads(function(q) return { c = (q * p):sum() } end)(b).c end,
      function(p) return (select(3, T.value_and_grad(function(q) return (q * q):sum(), q * p end)(b))) end,
      function(p)
        return select(4, T.value_and_grad(function(q) return (q * q):sum(), nil, { c = { q * p * 2 } } end)(b)).c[1]
      end,
      function(p)
        return (select(3, T.values_and_grads(function(q) return { c = (q * q):sum() }, p * p end)(b)))
      end,
    } do
      says(function() around(inner) end, "second derivatives are not computed; where a constant is meant, detach")
      assert.is_nil(a.grad)
    end
    assert.same({ 4, 4 }, around(function(p) return p end))
  end)

  it("adds nothing to that one where nothing is recorded", function()
    assert.same({ 36, 18 }, around(function(p)
      return T.tape.pause(function() return (T.value_and_grad(function(q) return (q * q * p):sum() end)(b)) end)
    end))
  end)

  it("adds nothing to that one in the backward function of an operation", function()
    local _, g = T.value_and_grad(function(p)
      local x = (p * p):sum()
      return T.tape.custom { outputs = { x:detach() * 1 }, backward = function(gy)
        T.value_and_grad(function(q) return (q * p + q * x):sum() end)(b)
        x:accumulate(gy)
      end } + 0 * p:sum()
    end)(a)
    assert.same({ 4 }, g:totable())
  end)

  -- A number whose backward pass computes a gradient of its own, before it passes on its own to x.
  local function with_another(x)
    return T.tape.custom { outputs = { x:detach():sum() }, backward = function(g)
      T.value_and_grad(function(q) return (q * q):sum() end)(b)
      x:accumulate(T.full(x:shape(), g:item()))
    end }
  end

  it("loses nothing of that one, also where a third one is computed", function()
    local on, y = T.tape.new(), T.param { 1, 2 }
    T.tape.with(on, function()
      local x = y * 1
      on:backward(with_another((x * x):sum()) + (x * 5):sum())
    end)
    assert.same({ 7, 9 }, y.grad:totable())
    local _, g = T.value_and_grad(function(p)
      local x = p * 1
      T.tape.pause(T.value_and_grad(function(q) return with_another(q * 1) end), x)
      return (x * 5 + x * x):sum()
    end)(T.param { 1, 2 })
    assert.same({ 7, 9 }, g:totable())
  end)

  it("loses nothing of one by what a backward pass goes through", function()
    local on, y, got = T.tape.new(), T.param { 1, 2 }, nil
    T.tape.with(on, function()
      local x = y * 1
      on:backward(T.tape.custom { outputs = { x:detach():sum() }, backward = function()
        got = select(2, T.value_and_grad(function(q) return with_another(q) + (q * 5):sum() end)(x))
      end })
    end)
    assert.same({ 6, 6 }, got:totable())
  end)

  it("is as quick after long computations", function()
    local count = 0
    T.value_and_grad(function(p)
      local x = p
      for _ = 1, 3000 do x = x + 1e-6 end
      local each = T.tape.each_reversed
      T.tape.each_reversed = function(f) each(function(t) count = count + 1 return f(t) end) end
      T.value_and_grad(function(q) return (q * q):sum() end)(b)
      T.tape.each_reversed = each
      return x:sum()
    end)(a)
    assert.equal(0, count)
  end)
end)
