-- uncertainty: error bars of estimates: against least squares in closed form, and against the spread of estimates from
-- 200 noisy films of a simulated bar.
local cq = require "cq"
local T = require "cq.tensor"
local spread = require "tests.spread"
local fails = require("tests.sentence").fails

local function near(wanted, got, relative)
  assert(math.abs(got - wanted) <= relative * math.abs(wanted), ("%.9g, not %.9g"):format(got, wanted))
end

-- a straight line a + b t at nine times
local t, heights = T.arange(0, 4, 0.5), spread({ 9 }, 1, 2)
local function line(p) return p.a + p.b * t - heights end
local function start() return { a = T.param(1.2), b = T.param(0.1, { max = 0.1 }) } end

-- variances of a line's height and slope, by the textbook: s^2 sum t^2 / (n Stt), s^2 / Stt
local function of_a_line(s)
  local mean = t:mean():item()
  local square = (t - mean):square():sum():item()
  return s * math.sqrt(1 / t.count + mean ^ 2 / square), s / math.sqrt(square), -mean / square * s * s
end

describe("cq.uncertainty", function()
  it("takes a fit without any noise, a number that follows nothing, and as many residuals as parameters", function()
    local x = cq.arange(0, 9) / 10
    local function residuals(p) return p.a * x - 3 * x end
    local p = { a = cq.param(3) }
    local exact = cq.uncertainty(residuals, p, { method = "adjoints" })
    assert.equal(0, exact.deviation.a:item())
    assert.equal(1, exact.correlation:get(1, 1))
    local derived = cq.uncertainty(residuals, p, { noise = 0.1 }):propagate(function(q)
      return { still = q.a * 0, twice = 2 * q.a }
    end)
    assert.equal(0, derived.deviation.still:item())
    assert.equal(0, derived.correlation:get(1, 2))
    assert.is_true(derived.deviation.twice:item() > 0)
    local one = cq.uncertainty(function(q) return (q.a - 3):reshape { 1 } end, p, { noise = 0.1 })
    assert.is_nil(tostring(one):find("found in them", 1, true))
    assert.is_truthy(tostring(exact):find("found in them", 1, true))
  end)

  it("steps within bounds, however close they are, and from zeros by the width of their bounds", function()
    local function steps_of(param)
      local seen, x = {}, cq.arange(0, 9) / 10
      cq.uncertainty(function(p)
        seen[#seen + 1] = p.a:item()
        return p.a * x - 3 * x
      end, { a = param }, { noise = 0.1 })
      return seen[2] - seen[1]
    end
    near(1e-3 * 3, steps_of(cq.param(3)), 1e-9)
    near(-1e-3 * 3, steps_of(cq.param(3, { max = 3 })), 1e-9)
    near(1e-3 * 3, steps_of(cq.param(3, { min = 3, max = 4 })), 1e-9)
    near(-2e-4, steps_of(cq.param(3, { min = 3 - 2e-4, max = 3 + 1e-4 })), 1e-9)
    near(1e-4, steps_of(cq.param(3, { min = 3 - 1e-5, max = 3 + 1e-4 })), 1e-9)
    near(1e-3 * 50, steps_of(cq.param(0, { min = 0, max = 50 })), 1e-9)
    near(1e-3, steps_of(cq.param(0)), 1e-9)
    fails("a has no room between its bounds, 3 and 3", steps_of, cq.param(3, { min = 3, max = 3 }))
  end)

  it("has the error bars of a straight line", function()
    local a, b, both = of_a_line(0.2)
    for _, method in ipairs { "differences", "adjoints" } do
      local p = start()
      local found = cq.uncertainty(line, p, { noise = 0.2, method = method })
      near(a, found.deviation.a:item(), 1e-9)
      near(b, found.deviation.b:item(), 1e-9)
      near(both, found.covariance:get(1, 2), 1e-9)
      near(both / (a * b), found.correlation:get(2, 1), 1e-9)
      near(1, found.correlation:get(2, 2), 1e-12)
      assert.same({ "a", "b" }, found.names)
      assert.equal(1.2, p.a:item())
      near(line(p):square():sum():item() / 0.04 / 7, found.chi_square, 1e-12)
    end
  end)

  it("takes the noise that the residuals have, or one of each", function()
    local found = cq.uncertainty(line, start())
    local noise = math.sqrt(line(start()):square():sum():item() / 7)
    near(noise, found.noise, 1e-12)
    near((of_a_line(noise)), found.deviation.a:item(), 1e-9)
    assert.is_nil(found.chi_square)
    -- the first four are of no use: a line of five points
    local rough = T.concat { T.full({ 4 }, 1e6), T.full({ 5 }, 0.2) }
    local few = cq.uncertainty(function(p) return line(p):slice(5, 9) end, start(), { noise = 0.2 })
    near(few.deviation.b:item(), cq.uncertainty(line, start(), { noise = rough }).deviation.b:item(), 1e-6)
  end)

  it("leaves residuals of infinite noise out of the count", function()
    local noise = T.concat { T.full({ 4 }, math.huge), T.full({ 5 }, 0.2) }
    local few = cq.uncertainty(function(p) return line(p):gather { 5, 6, 7, 8, 9 } end, start(), { noise = 0.2 })
    for _, method in ipairs { "differences", "adjoints" } do
      local found = cq.uncertainty(line, start(), { noise = noise, method = method })
      assert.equal(5, found.measurements)
      near(few.chi_square, found.chi_square, 1e-9)
      near(few.deviation.b:item(), found.deviation.b:item(), 1e-9)
      assert(tostring(found):find("by 5 residuals with noise of their own", 1, true), tostring(found))
    end
    noise = T.concat { T.full({ 8 }, math.huge), T.ones { 1 } }
    fails("got 1 residual for 2 parameters; measure more", cq.uncertainty, line, start(), { noise = noise })
  end)

  it("takes all sets of parameters in one call", function()
    local p, calls = { k = T.param { 0.5, 0.8 }, inner = { T.param(2) }, note = "kept" }, 0
    local function decay(q, rows)
      assert.equal("kept", q.note)
      local k, a = q.k:reshape { rows, 2, 1 }, q.inner[1]:reshape { rows, 1, 1 }
      return a * (k * -t):exp() - 1
    end
    local one = cq.uncertainty(function(q) return decay(q, 1) end, p, { noise = 1 })
    local all = cq.uncertainty(function(q)
      calls = calls + 1
      assert.same({ 4, 2 }, q.k:shape())
      return decay(q, 4)
    end, p, { noise = 1, batch = true })
    assert.equal(1, calls)
    assert.same({ "inner[1]", "k[1]", "k[2]" }, all.names)
    assert.is_true((one.covariance - all.covariance):abs():max():item() < 1e-9)
    local exact = cq.uncertainty(function(q) return decay(q, 1) end, p, { noise = 1, method = "adjoints" })
    near(exact.deviation.k:get(2), one.deviation.k:get(2), 2e-3)
  end)

  it("gives those of what follows from the parameters", function()
    local found = cq.uncertainty(line, start(), { noise = 0.2 })
    local a, b, both = of_a_line(0.2)
    local derived = found:propagate(function(p) return { sum = p.a + 2 * p.b, twice = 2 * p.a } end)
    near(2 * a, derived.deviation.twice:item(), 1e-9)
    near(math.sqrt(a * a + 4 * both + 4 * b * b), derived.deviation.sum:item(), 1e-9)
    near(1.4, derived.values[1], 1e-12)
    assert(tostring(derived):find("twice  2.4 +- 0.25", 1, true), tostring(derived))
    assert(tostring(derived):find("9 residuals with noise 0.2; reduced chi-square", 1, true), tostring(derived))
  end)

  it("gives those of numbers that do not depend on every parameter", function()
    local found = cq.uncertainty(line, start(), { noise = 0.2 })
    local a = of_a_line(0.2)
    local derived = found:propagate(function(p) return { twice = 2 * p.a } end)
    near(2 * a, derived.deviation.twice:item(), 1e-9)
    derived = found:propagate(function(p) return { twice = 2 * p.a, fixed = 3 } end)
    near(2 * a, derived.deviation.twice:item(), 1e-9)
    assert.equal(0, derived.deviation.fixed:item())
    fails("uncertainty:propagate: f must give a table of named numbers", found.propagate, found,
      function(p) return p.a end)
  end)

  it("tells parameters that are at a bound", function()
    local function line_of(p) return p.a + p.b * t - heights end
    local found = cq.uncertainty(line_of, { a = T.param(1.2, { min = 1 }), b = T.param(0.1, { max = 0.1 }) })
    assert.same({ "b" }, found.at_bound)
    local words = "b is at its bound: the deviations do not hold there; widen the bound, or take b out"
    assert(tostring(found):find(words, 1, true), tostring(found))
    local derived = found:propagate(function(p) return { twice = 2 * p.b } end)
    assert(tostring(derived):find(words, 1, true), tostring(derived))
    assert.same({}, found:propagate(function(p) return { twice = 2 * p.a } end).at_bound)
    -- an interior point method ends next to a bound
    found = cq.uncertainty(line_of, { a = T.param(1.2, { min = 1.2 - 1e-8 }), b = T.param(0.1, { max = 0.1 }) })
    assert(tostring(found):find("a and b are at their bounds: the deviations do not hold there; widen", 1, true))
    found = cq.uncertainty(line_of, { a = T.param(1.2, { min = 1 }), b = T.param(0.1) })
    assert.same({}, found.at_bound)
    assert.is_nil(tostring(found):find("bound", 1, true))
    local many = cq.uncertainty(function(p) return p.x - T.arange(1, 12) end,
      { x = T.param(T.ones { 12 }, { min = 1 }) }, { noise = 1 })
    assert(tostring(many):find("x[6], x[7] and 5 more are at their bounds", 1, true), tostring(many))
  end)

  it("is saved as a table of its fields", function()
    local path, found = os.tmpname(), cq.uncertainty(line, start(), { noise = 0.2 })
    cq.save(path, found)
    local saved = cq.load(path)
    assert.same({ "a", "b" }, saved.names)
    assert.same(found.values, saved.values)
    assert.is_true(saved.covariance:equal(found.covariance) and saved.correlation:equal(found.correlation))
    assert.equal(found.deviation.b:item(), saved.deviation.b:item())
    assert.equal(found.chi_square, saved.chi_square)
    cq.save(path, { found = found:propagate(function(p) return { twice = 2 * p.a } end), note = "in a table" })
    assert.near(2 * found.deviation.a:item(), cq.load(path).found.deviation.twice:item(), 1e-12)
    os.remove(path)
  end)

  it("tells which parameters are hardly told apart", function()
    local found = cq.uncertainty(function(p) return p.a + p.b * (1 + 1e-3 * t) - heights end, start(), { noise = 1 })
    assert(tostring(found):find("a and b are hardly told apart: their correlation is -1.0000", 1, true), tostring(found))
  end)

  it("predicts the spread of estimates from 200 noisy films of a bar", function()
    local bar = require "scenes.swinging_bar" { young = 200, cells = 2, precision = "float64" }
    local n, copies, steps, noise = bar.world.particle_count, 200, 25, 1e-3
    -- young and damping {rows, 2} to where the tip is {rows, steps * 2}
    local function film(values)
      local rows = values:size(1)
      local young, damping = values:slice(1, 1, 2) * 100, values:slice(2, 2, 2):flatten()
      local roll = bar.world:rollout { steps = steps, batch = rows, damping = damping,
        robot = bar.robot:with { young = young:expand { rows, n } }, record = function(s) return s:center "tip" end }
      return roll.record:transpose(1, 2):reshape { rows, -1 }
    end
    local truth = { p = T.param { 1.5, 2 } }
    local found = cq.uncertainty(function(q) return film(q.p) end, truth, { noise = noise, batch = true })
    local exact = cq.uncertainty(function(q) return film(q.p:unsqueeze(1)) end, truth, { noise = noise })
    near(exact.deviation.p:get(1), found.deviation.p:get(1), 1e-6)

    -- each film's own least squares, by Gauss and Newton; three evaluations of all at a time
    local clean = film(truth.p:detach():unsqueeze(1))
    local seen = clean + cq.random({ seed = 4 }):normal({ copies, clean.count }, { deviation = noise })
    local values, h = T.full({ copies, 2 }, 1.8), 1e-3
    local function moved(a, b) return values + T.tensor { { a, b } } end
    for _ = 1, 4 do
      local at = film(T.concat({ values, moved(h, 0), moved(0, h) }, 1))
      local r = at:slice(1, copies, 1) - seen
      local a = (at:slice(copies + 1, 2 * copies, 1) - at:slice(1, copies, 1)) / h
      local b = (at:slice(2 * copies + 1, 3 * copies, 1) - at:slice(1, copies, 1)) / h
      local aa, ab, bb = (a * a):sum(2), (a * b):sum(2), (b * b):sum(2)
      local ar, br, det = (a * r):sum(2), (b * r):sum(2), aa * bb - ab * ab
      values = values - T.stack({ (bb * ar - ab * br) / det, (aa * br - ab * ar) / det }, 2)
    end
    local mean = values:mean(1)
    local deviation = ((values - mean):square():sum(1) / (copies - 1)):sqrt()
    for k = 1, 2 do
      near(deviation:get(k), found.deviation.p:get(k), 0.2)
      assert(math.abs(mean:get(k) - truth.p:get(k)) < 4 * deviation:get(k) / math.sqrt(copies))
    end
    local off = values - mean
    local correlation = (off:slice(1, 1, 2) * off:slice(2, 2, 2)):mean():item() / (deviation:get(1) * deviation:get(2))
    assert(math.abs(correlation - found.correlation:get(1, 2)) < 0.2, correlation)
  end)
end)

describe("what cq.uncertainty refuses", function()
  it("ends at Ctrl-C, also where the residuals run no rollout", function()
    local engine, calls, p = require "cq.base.engine", 0, start()
    local fine, problem = pcall(cq.uncertainty, function(q)
      calls = calls + 1
      if calls == 2 then engine.C.cq_interrupt(1) end
      return line(q)
    end, p)
    engine.C.cq_interrupt(0)
    assert(not fine and problem:find("cq.uncertainty: interrupted before all slopes of the residuals were found", 1, true),
      problem)
    assert.equal(2, calls)
  end)

  it("is told in a sentence", function()
    local p = start()
    fails("residuals must be", function() cq.uncertainty(3, p) end)
    fails("residuals must give a tensor, a number for each measurement, got 3",
      function() cq.uncertainty(function() return 3 end, p) end)
    fails("residual 2 is nan; all must be finite",
      function() cq.uncertainty(function(q) return (q.a - T { 1, 2 }):sqrt() end, p) end)
    fails("got 2 residuals for 2 parameters; give noise",
      function() cq.uncertainty(function(q) return q.a + q.b * T { 1, 2 } end, p) end)
    fails("got 1 residual for 2 parameters; measure more",
      function() cq.uncertainty(function(q) return (q.a + q.b):reshape { 1 } end, p, { noise = 1 }) end)
    fails("the residuals do not change with b; leave it out",
      function() cq.uncertainty(function(q) return q.a + t end, p) end)
    fails("the residuals do not tell a and b apart",
      function() cq.uncertainty(function(q) return (q.a + q.b) * t end, p) end)
    fails("noise must be above 0, got 0",
      function() cq.uncertainty(line, p, { noise = T.zeros { 9 } }) end)
    fails("noise must be one number or one for each of the 9 residuals, got {2}",
      function() cq.uncertainty(line, p, { noise = T { 1, 2 } }) end)
    fails("with batch the residuals must be {3, ...}, a row for each set of parameters, got {9}",
      function() cq.uncertainty(function() return heights end, p, { batch = true }) end)
    fails("batch is for differences", function() cq.uncertainty(line, p, { batch = true, method = "adjoints" }) end)
    fails("their number must not follow the parameters",
      function()
        cq.uncertainty(function(q) return q.a:item() > 1.2 and line(q):slice(1, 8) or line(q) end, p)
      end)
    fails("a method is called with a colon", function() cq.uncertainty(line, p).propagate(line) end)
  end)
end)
