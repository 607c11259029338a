-- tensor: making, reading, broadcasting, layout, and what wrong shapes get.
local T = require "cq.tensor"
local spread = require "tests.spread"

-- the error of f must be one sentence at this file's line that holds all these words
local function refused(f, ...)
  local ok, message = pcall(f)
  assert(not ok, "no error")
  message = tostring(message)
  assert(message:find "^[^\n]*tensor_spec.lua:%d+: ", "not at the user's line: " .. message)
  for _, words in ipairs { ... } do
    assert(message:find(words, 1, true), ("no %q in: %s"):format(words, message))
  end
end

local function equals(expected, t)
  assert.same(expected, t:totable())
end

describe("making tensors", function()
  it("takes numbers, lists and tensors", function()
    equals(2.5, T(2.5))
    equals({ 1, 2 }, T { 1, 2 })
    local m = T { { 1, 2, 3 }, { 4, 5, 6 } }
    equals({ { 1, 2, 3 }, { 4, 5, 6 } }, m)
    assert.same({ 2, 3 }, m:shape())
    assert.equal(2, m.rank)
    assert.equal(6, m:size())
    assert.equal(3, m:size(-1))
    local c = T(m)
    c:set(9, 1, 1)
    assert.equal(1, m:get(1, 1))
    equals({ { 1, 2 }, { 7, 8 } }, T { T { 1, 2 }, { 7, 8 } })
  end)
  it("fills shapes", function()
    equals({ { 0, 0 } }, T.zeros { 1, 2 })
    equals({ 1, 1, 1 }, T.ones(3))
    equals(4, T.full({}, 4))
    equals({ { 1, 0 }, { 0, 1 } }, T.eye(2))
    equals({ 1, 2, 3 }, T.arange(1, 3))
    equals({ 1, 2, 3 }, T.range(3))
    equals({ 3, 2, 1 }, T.arange(3, 1, -1))
    equals({}, T.arange(1, 0))
    assert.equal(11, T.arange(0, 1, 0.1).count)
  end)
  it("has zeros and not old memory", function()
    for _ = 1, 20 do T.full({ 300 }, 7) end
    collectgarbage()
    for _ = 1, 20 do assert.equal(0, T.zeros({ 300 }):abs():max():item()) end
  end)
  it("refuses what is no tensor", function()
    refused(function() T { 1, "two" } end, "entry 2", '"two"')
    refused(function() T { { 1, 2 }, { 3 } } end, "entry 2", "a list of 2", "a list of 1")
    refused(function() T { { 1, 2 }, 3 } end, "entry 2")
    refused(function() T { 1, 2, x = 3 } end, '"x"')
    refused(function() T(nil) end, "nil")
    refused(function() T.zeros { 2, -1 } end, "size 2", "-1")
    refused(function() T.zeros { 1.5 } end, "1.5")
    refused(function() T.zeros { 1, 1, 1, 1, 1, 1, 1 } end, "at most 6", "7")
    refused(function() T.zeros "x" end, '"x"')
    for _, name in ipairs { "zeros", "ones", "empty" } do
      refused(function() T[name](2, 3) end, ("cq.%s: takes the sizes of all dimensions in one list, as in cq.%s { 2, 3 }")
        :format(name, name))
    end
    refused(function() T.full(2, 3, 4) end, "as in cq.full({ 2, 3 }, value)")
    refused(function() T.eye(2, 3) end, "cq.eye: takes one size, n for a matrix { n, n }")
    refused(function() T.zeros { 2 ^ 30, 2 ^ 30 } end, "memory")
    refused(function() T.param(3, { min = 4 }) end, "outside its bounds")
    refused(function() T.param(3, { low = 4 }) end, "unknown field low")
  end)
end)

describe("lists that are no tensor", function()
  it("are told, also one that holds itself", function()
    local list = {}
    list[1] = list
    assert.matches("cq.tensor: lists are nested more than 6 deep", select(2, pcall(T, list)))
  end)
end)

describe("reading and writing", function()
  local m = T { { 1, 2, 3 }, { 4, 5, 6 } }
  it("gives elements, rows and numbers", function()
    equals({ 4, 5, 6 }, m[2])
    equals(6, m[-1][3])
    assert.equal(5, m:get(2, 2))
    assert.equal(6, m:get(-1, -1))
    assert.equal(3, T { 3 }:item())
    local seen = {}
    for i, row in m:rows() do seen[i] = row:sum():item() end
    assert.same({ 6, 15 }, seen)
  end)
  it("writes in place", function()
    local c = m:copy()
    c:set(7, 2, 1)
    c[1] = { 9, 8, 7 }
    equals({ { 9, 8, 7 }, { 7, 5, 6 } }, c)
    c:fill(2)
    assert.equal(12, c:sum():item())
    c:copy_from(m)
    assert(c:equal(m))
  end)

  it("refuses to write what has a gradient, which would be lost", function()
    local p = T.param { 3 }
    local function written(write)
      return function()
        T.grad(function(q)
          local t = T.zeros { 2 }
          write(t, q)
          return (t * q):sum()
        end)(p)
      end
    end
    refused(written(function(t, q) t[1] = q[1] end), "t[i] = x: writing in place loses the gradient of x; use cq.stack")
    refused(written(function(t, q) t:set(q[1], 1) end),
      "set: writing in place loses the gradient of the value; use cq.stack")
    assert.equal(3, T.zeros({ 2 }):set(p, 1):get(1))
  end)

  it("refuses to write into what t[i] gives, which is a copy", function()
    local c = m:copy()
    for _, write in ipairs {
      function() c[1][2] = 5 end, function() c[1]:set(5, 2) end, function() c[1]:fill(5) end,
      function() c[1]:copy_from(T { 5, 5, 5 }) end, function() c[1][2]:fill(5) end,
      function() for _, row in c:rows() do row[2] = 5 end end,
    } do
      refused(write, "is a copy", "t:set(value, i, j)")
    end
    assert(c:equal(m))
    local row = c[1]:copy()
    row[2] = 5
    equals({ 1, 5, 3 }, row)
    c:set(5, 1, 2)
    equals({ { 1, 5, 3 }, { 4, 5, 6 } }, c)
  end)
  it("prints numbers as numbers, and long tensors in short", function()
    assert.equal("2.5", tostring(T(2.5)))
    assert.equal("x = 2.5", "x = " .. T(2.5))
    assert.equal("{1, 2, 3, ..., 98, 99, 100}", tostring(T.arange(100)))
    assert.equal("{{1, 2, 3},\n {4, 5, 6}}", tostring(m))
  end)
  it("compares", function()
    assert(m:equal(m:copy()))
    assert(not m:equal(m:flatten()))
    assert(not m:equal(m + 1e-12))
    assert(m:close(m + 1e-12))
    assert(not m:close(m + 1e-3))
    assert(not T { 1, 0 / 0 }:finite())
    assert(T(1) < T(2))
    assert(T(2) >= T(2))
    refused(function() return m < m end, "less")
  end)
  it("refuses what is not there", function()
    refused(function() return m[3] end, "1 to 2", "3")
    refused(function() return m[0] end, "0")
    refused(function() return T(1)[1] end, "rank 0")
    refused(function() m:get(1) end, "2 indices", "1")
    refused(function() m:item() end, "{2, 3}")
    refused(function() m:size(3) end, "1 to 2")
    refused(function() m.name = 3 end, "name")
    refused(function() m[1] = { 1, 2 } end, "{2}")
    assert.is_nil(m.nothing)
  end)
end)

describe("broadcasting", function()
  it("aligns at the end and stretches 1", function()
    local row, column = T { 10, 20, 30 }, T { { 1 }, { 2 } }
    equals({ { 11, 21, 31 }, { 12, 22, 32 } }, row + column)
    equals({ { 11, 21, 31 }, { 12, 22, 32 } }, column + row)
    equals({ { 2, 3 } }, T { 1, 2 } + T { { 1 } })
    equals({ 2, 3 }, 1 + T { 1, 2 })
    equals({ { { 2 } } }, T { { { 1 } } } + 1)
  end)
  it("keeps empty tensors empty", function()
    local e = T.zeros { 0, 3 }
    assert.same({ 0, 3 }, (e + 1):shape())
    assert.same({ 0, 3 }, (e * T.ones { 1, 3 }):shape())
    equals({ 0, 0, 0 }, e:sum(1))
    equals(1, e:prod())
    equals({ { 0, 0 } }, T.zeros({ 1, 0 }):matmul(T.zeros { 0, 2 }))
    assert.same({ 2, 3 }, T.concat({ e, T.ones { 2, 3 } }):shape())
    assert.same({ 0, 3 }, T.ones({ 2, 3 }):slice(1, 0):shape())
    refused(function() e:max() end, "max", "no elements", "{0, 3}")
    refused(function() return e[1] end, "empty")
  end)
  it("refuses shapes that do not fit", function()
    refused(function() return T.ones { 2, 3 } + T.ones { 2 } end, "a + b", "{2, 3}", "{2}")
    refused(function() return T.ones { 2, 3 }:maximum(T.ones { 4, 3 }) end, "maximum", "{4, 3}")
    refused(function() return T.ones { 2 } + "x" end, "a + b", '"x"')
    refused(function() return nil - T.ones { 2 } end, "a - b", "nil")
    refused(function() return T.ones { 2 } % 2 end, "remainder")
  end)
end)

describe("values of", function()
  it("functions", function()
    equals({ 1, 0, 1 }, T { -1, 0, 1 }:abs())
    equals({ -1, 0, 1 }, T { -3, 0, 2 }:sign())
    equals({ -2, 1 }, T { -1.5, 1.5 }:floor())
    equals({ 1, 0, 0 }, T { 1, 2, 3 }:less(2))
    equals({ 0, 1, 0 }, T { 1, 2, 3 }:equals(2))
    equals({ 0, 0, 1 }, T { 1, 2, 3 }:greater(2))
    equals({ 0, 1, 1 }, T { 1, 2, 3 }:greater_equal(2))
    equals({ -1, 0.5, 1 }, T { -3, 0.5, 2 }:clamp(-1, 1))
    equals({ 0, 0.5, 2 }, T { -3, 0.5, 2 }:clamp(0))
    equals({ 1, 20 }, T.where(T { 1, 0 }, T { 1, 2 }, T { 10, 20 }))
    assert.equal(math.pi / 4, T(1):atan2(1):item())
  end)
  it("functions far from 0, without overflow", function()
    equals({ 0, 0.5, 1 }, T { -800, 0, 800 }:sigmoid())
    equals({ 0, 800 }, T { -800, 800 }:softplus())
    equals({ -1, -1e-20, 0, 800 }, T { -800, -1e-20, 0, 800 }:elu())
    equals({ 0.5, 0.5 }, T { 1e4, 1e4 }:softmax())
    assert.equal(1e300 * 5, T { 3e300, 4e300 }:norm():item() * 1)
    assert.equal(1000 + math.log(2), T { 1000, 1000 }:logsumexp():item())
  end)
  it("functions of nan: nan", function()
    local nan = T { 0 / 0 }
    for _, name in ipairs { "relu", "sign", "abs", "max", "min", "norm", "prod" } do
      local y = nan[name](nan):sum():item()
      assert(y ~= y, name)
    end
    for _, y in ipairs { nan:minimum(1), T.minimum(1, nan), nan:maximum(1), T.maximum(1, nan) } do
      assert(not y:finite())
    end
  end)
  it("reductions", function()
    local m = T { { 1, 5, 3 }, { 4, 2, 6 } }
    equals(21, m:sum())
    equals({ 5, 7, 9 }, m:sum(1))
    equals({ { 9 }, { 12 } }, m:sum(2, true))
    equals(3.5, m:mean { 1, 2 })
    equals({ 4, 5, 6 }, m:max(1))
    equals({ 1, 2 }, m:min(-1))
    equals({ 15, 48 }, m:prod(2))
    equals({ 2, 3 }, m:argmax(2))
    equals({ 1, 2, 1 }, m:argmin(1))
    equals({ { 1, 6, 9 }, { 4, 6, 12 } }, m:cumsum(2))
    equals({ { 1, 5, 3 }, { 5, 7, 9 } }, m:cumsum())
    refused(function() m:sum(3) end, "sum", "1 to 2", "3")
    refused(function() m:sum { 1, 1 } end, "twice")
  end)
  it("sums in a fixed order with small error", function()
    local n = 100000
    local sum = T.full({ n }, 0.1):sum():item()
    assert(math.abs(sum - 0.1 * n) < 1e-9)
  end)
  it("products", function()
    local a, v = T { { 1, 2 }, { 3, 4 } }, T { 5, 6 }
    equals({ 17, 39 }, a:matmul(v))
    equals({ 23, 34 }, v:matmul(a))
    equals({ { 7, 10 }, { 15, 22 } }, a:matmul(a))
    equals(61, v:dot(v))
    equals(61, v:matmul(v))
    equals({ { 17, 39 }, { 5, 6 } }, T.stack({ a, T.eye(2) }):matmul(v))
    refused(function() a:matmul(T.ones { 3 }) end, "matmul", "{2, 2}", "{3}")
    refused(function() a:matmul(2) end, "matmul", "2")
    refused(function() a:matmul(T(2)) end, "needs vectors or matrices", "{}")
    refused(function() T.ones { 2, 2, 2 }:matmul(T.ones { 3, 2, 2 }) end, "batches", "{2}", "{3}")
    refused(function() v:dot(a) end, "two vectors")
  end)

  it("makes a layer of a network as product, sum and function do", function()
    local x, w, b = T { { 1, -2, 0.5 }, { -0.3, 0.2, 2 } }, T { { 0.5, -1 }, { 2, 0.1 }, { -0.4, 3 } }, T { 0.3, -0.7 }
    for name, f in pairs { relu = "relu", tanh = "tanh", softplus = "softplus", sigmoid = "sigmoid", elu = "elu",
      none = "copy" } do
      for _, a in ipairs { x, x[1] } do
        local y = a:matmul(w) + b
        assert.is_true(a:dense(w, b, name):equal(y[f](y)))
      end
    end
    assert.is_true(x:dense(w, b):equal(x:dense(w, b, "none")))
    equals({ 0.3, -0.7 }, T.zeros { 0 }:dense(T.zeros { 0, 2 }, b))
    refused(function() x:dense(w, b, "cosine") end, "dense", "relu", "cosine")
    refused(function() x:dense(w, x) end, "dense", "{2, 3}", "{3, 2}")
    refused(function() x:dense(w:transpose(), b) end, "dense", "{2, 3}")
  end)
  it("convolutions", function()
    equals({ { 1 * 1 + 2 * 10, 2 * 1 + 3 * 10 } }, T { { 1, 2, 3 } }:conv1d(T { { { 1, 10 } } }))
    equals({ { 10, 21, 32, 3 } }, T { { 1, 2, 3 } }:conv1d(T { { { 1, 10 } } }, { padding = 1 }))
    equals({ { { 12 } } }, T { { { 1, 2 }, { 3, 4 } } }:conv2d(T { { { { 1, 1 }, { 1, 1 } } } }, { bias = T { 2 } }))
    refused(function() T.ones { 1, 2 }:conv1d(T.ones { 1, 1, 3 }) end, "conv1d", "does not fit")
    refused(function() T.ones { 2, 5 }:conv1d(T.ones { 1, 1, 3 }) end, "2 channels", "1")
    refused(function() T.ones { 2, 5 }:conv1d(T.ones { 3 }) end, "kernel", "{3}")
    refused(function() T.ones { 2, 5 }:conv1d(T.ones { 1, 2, 3 }, { stride = 0 }) end, "stride", "0")
    refused(function() T.ones { 2, 5 }:conv1d(T.ones { 1, 2, 3 }, { strid = 1 }) end, "strid", "stride")
  end)

  it("convolutions as direct sums", function()
    -- y[b][o][i] of x[b][c] and w[o][c], by the definition, with loops over all three axes
    local function direct(x, w, stride, padding, dilation)
      local B, channels, O = x:size(1), x:size(2), w:size(1)
      local size = {}
      for d = 1, 3 do
        size[d] = math.floor((x:size(2 + d) + 2 * padding[d] - dilation[d] * (w:size(2 + d) - 1) - 1) / stride[d]) + 1
      end
      local y = T.zeros { B, O, unpack(size) }
      local function each(dims, f)
        for i = 1, dims[1] do
          for j = 1, dims[2] do
            for k = 1, dims[3] do f { i, j, k } end
          end
        end
      end
      for b = 1, B do
        for o = 1, O do
          each(size, function(at)
            local sum = 0
            for c = 1, channels do
              each({ w:size(3), w:size(4), w:size(5) }, function(tap)
                local from, inside = {}, true
                for d = 1, 3 do
                  from[d] = (at[d] - 1) * stride[d] - padding[d] + (tap[d] - 1) * dilation[d] + 1
                  inside = inside and from[d] >= 1 and from[d] <= x:size(2 + d)
                end
                if inside then sum = sum + x:get(b, c, unpack(from)) * w:get(o, c, unpack(tap)) end
              end)
            end
            y:set(sum, b, o, unpack(at))
          end)
        end
      end
      return y
    end
    local x, w = spread({ 2, 3, 5, 4, 6 }, -1, 1), spread({ 4, 3, 2, 3, 2 }, -1, 1)
    for _, of in ipairs { { { 1, 1, 1 }, { 0, 0, 0 }, { 1, 1, 1 } }, { { 2, 1, 3 }, { 1, 2, 0 }, { 2, 1, 3 } },
      { { 2, 2, 2 }, { 1, 1, 1 }, { 1, 1, 1 } } } do
      local stride, padding, dilation = unpack(of)
      local wanted = direct(x, w, stride, padding, dilation)
      local got = x:conv3d(w, { stride = stride, padding = padding, dilation = dilation })
      assert.is_true(got:close(wanted, 1e-13, 1e-14))
      local flat = { { 1, stride[2], stride[3] }, { 0, padding[2], padding[3] }, { 1, dilation[2], dilation[3] } }
      local plane, kernel = x:slice(2, 2, 3), w:slice(1, 1, 3)
      got = plane:squeeze(3):conv2d(kernel:squeeze(3), { stride = { stride[2], stride[3] },
        padding = { padding[2], padding[3] }, dilation = { dilation[2], dilation[3] } })
      assert.is_true(got:unsqueeze(3):close(direct(plane, kernel, unpack(flat)), 1e-13, 1e-14))
    end
    -- as large as some blocks of lines
    local wide, taps = spread({ 1, 5, 1, 40, 90 }, -1, 1), spread({ 2, 5, 1, 4, 4 }, -1, 1)
    local wanted = direct(wide, taps, { 1, 1, 1 }, { 0, 1, 1 }, { 1, 1, 1 })
    assert.is_true(wide:conv3d(taps, { padding = { 0, 1, 1 } }):close(wanted, 1e-12, 1e-13))
  end)

  it("convolutions that do not fit are refused", function()
    local x, w = T.ones { 3, 5, 5 }, T.ones { 2, 3, 3, 3 }
    refused(function() x:conv3d(w) end, "conv3d: the kernel must be {channels_out, channels_in, kd, kh, kw}, got shape")
    refused(function() x:conv2d(w, { activation = "swish" }) end, "activation")
    refused(function() x:conv2d(w, { output_padding = 1 }) end, "unknown field output_padding")
    refused(function() x:conv2d(w, { padding = 2 ^ 63 }) end, "padding")
    refused(function() x:slice(1, 2):conv_transpose2d(w, { stride = 2, output_padding = { 1, 1, 1 } }) end,
      "output_padding must be one whole number or 2, got 3")
    refused(function() x:conv2d(w, { stride = { 1, 2, 3 } }) end, "conv2d: stride must be one whole number or 2, got 3")
    refused(function() x:conv_transpose2d(w) end, "the input has 3 channels and the kernel takes 2")
    refused(function() x:slice(1, 2):conv_transpose2d(w, { padding = 4 }) end, "leaves nothing of an input of shape")
    refused(function() x:slice(1, 2):conv_transpose2d(w, { stride = 2, output_padding = 2 }) end,
      "output_padding must be below the stride or the dilation, got 2")
    refused(function() x:conv2d(T.ones { 2, 3, 6, 6 }) end, "does not fit into an input of shape")
  end)
end)

describe("layout", function()
  local m = T { { 1, 2, 3 }, { 4, 5, 6 } }
  it("moves elements", function()
    equals({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, m:reshape { 3, -1 })
    equals({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, m:transpose())
    assert.same({ 4, 2, 3 }, T.zeros({ 2, 3, 4 }):permute({ 3, 1, 2 }):shape())
    assert.same({ 2, 1, 3 }, m:unsqueeze(2):shape())
    assert.same({ 2, 3, 1 }, m:unsqueeze(-1):shape())
    assert.same({ 2 }, T.zeros({ 1, 2, 1 }):squeeze():shape())
    assert.same({ 2, 1 }, T.zeros({ 1, 2, 1 }):squeeze(1):shape())
    equals({ { 2, 3 }, { 5, 6 } }, m:slice(2, 3, 2))
    equals({ { 2, 3 }, { 5, 6 } }, m:slice(-2, -1, -1))
    equals({ { 4, 5, 6 } }, m:slice(2))
    equals({ { 3, 1, 3 }, { 6, 4, 6 } }, m:gather({ 3, 1, -1 }, 2))
    equals({ { 4, 5, 6 } }, m:gather(T { 2 }))
    equals({ 1, 2, 1, 2 }, T({ 1, 2 }):repeated(2))
    equals({ { 1, 1 }, { 2, 2 } }, T({ { 1 }, { 2 } }):expand { 2, 2 })
    equals({ 0, 1, 2, 0, 0 }, T({ 1, 2 }):pad { 1, 2 })
    equals({ 7, 1, 2 }, T.pad(T { 1, 2 }, { 1, 0 }, 1, 7))
    equals({ 1, 2, 2.5, 3 }, T.concat { T { 1, 2 }, 2.5, T(3) })
    equals({ { 1, 2, 3, 1 }, { 4, 5, 6, 2 } }, T.concat({ m, T { { 1 }, { 2 } } }, 2))
    equals({ { 1, 3 }, { 2, 4 } }, T.stack({ T { 1, 2 }, T { 3, 4 } }, 2))
  end)
  it("refuses what does not fit", function()
    refused(function() m:reshape { 4 } end, "{2, 3}", "{4}")
    refused(function() m:reshape { -1, 4 } end, "reshape")
    refused(function() m:permute { 1, 1 } end, "twice")
    refused(function() m:slice(0) end, "0 to -1", "2 entries")
    refused(function() m:slice(1, 3) end, "1 to 3", "2 entries")
    refused(function() m:gather { 3 } end, "1 to 2", "3")
    refused(function() m:expand { 3, 3 } end, "{2, 3}", "{3, 3}")
    refused(function() m:squeeze(1) end, "size 2")
    refused(function() T.concat { m, T.ones { 2, 2 } } end, "entry 2", "{2, 2}")
    refused(function() T.concat {} end, "at least one")
    refused(function() T.stack { m, T.ones { 3 } } end, "entry 2", "{3}")
    refused(function() m:pad { 1 } end, "pad", "counts")
    refused(function() m:pad { -1, 0 } end, "pad", "counts")
  end)
end)

describe("memory", function()
  it("does not grow in a long loop", function()
    local a = T.ones { 512, 512 }                  -- 2 MiB
    local most = 0
    for _ = 1, 500 do
      a = a * 0.999 + 0.001
      most = math.max(most, T.bytes())
    end
    assert(most < 256 * 2 ^ 20, ("%.0f MiB"):format(most / 2 ^ 20))
  end)
end)
