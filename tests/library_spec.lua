-- library: NLopt and IPOPT through the FFI: known solutions, errors and interruptions within callbacks, going on,
-- missing libraries.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local message = require "cq.base.message"
local problems = require "tests.problems"
local process = require "tests.process"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function()
  T.warn = warn
  C.cq_interrupt(0)
end)

local function near(expected, got, tolerance, what)
  assert(math.abs(expected - got) <= tolerance, ("%s: %.9g, not %.9g"):format(what or "number", got, expected))
end

local makers = { ipopt = function() return cq.Optimizer.ipopt() end }
for _, algorithm in ipairs { "slsqp", "mma", "ccsa", "lbfgs", "auglag" } do
  makers[algorithm] = function() return cq.Optimizer.nlopt { algorithm = algorithm } end
end

local every = { "rosenbrock", "rosenbrock_in_disc", "parabola", "logarithm", "rosen_suzuki", "with_bounds" }
local solved = {
  slsqp = every, ipopt = every, auglag = every, mma = { "rosen_suzuki" }, ccsa = { "rosenbrock_in_disc",
  "rosen_suzuki" },
  lbfgs = { "rosenbrock" },
}

describe("a method of a library", function()
  for kind, names in pairs(solved) do
    it(kind .. " solves what has a known solution", function()
      for _, name in ipairs(names) do
        local problem = problems[name]
        local outside = 0
        local solution, x = problems.solve(problem, makers[kind](), { iterations = 500, on_iteration = function(_, _, p)
          local least, most = p.x:min():item(), p.x:max():item()
          local bounds = problem.bounds or {}
          if least < (bounds.min or -math.huge) or most > (bounds.max or math.huge) then outside = outside + 1 end
        end })
        assert.equal("converged", solution.status, name)
        near(problem.objective, solution.objective, 1e-4 * math.max(1, math.abs(problem.objective)), name)
        for k, at in ipairs(problem.at) do near(at, x:get(k), 1e-3, name .. " x" .. k) end
        assert.equal(0, outside)
        assert.is_true(#solution.message > 0)
      end
    end)
  end

  it("ipopt gives multipliers", function()
    local solution = problems.solve(problems.rosen_suzuki, makers.ipopt())
    near(1, solution.constraints.first.multiplier, 1e-3)
    near(0, solution.constraints.second.multiplier, 1e-3)
    near(2, solution.constraints.third.multiplier, 1e-3)
  end)

  it("says which constraint is violated where none can be kept", function()
    for _, kind in ipairs { "slsqp", "mma", "ccsa", "auglag", "ipopt" } do
      local solution, x = problems.solve(problems.infeasible, makers[kind](), { iterations = 300 })
      local square = x:square():sum():item()
      assert.equal("infeasible", solution.status)
      near(math.max(0, square - 1), solution.constraints.inside.violation, 1e-12)
      near(math.max(0, 4 - square), solution.constraints.outside.violation, 1e-12)
      says(solution:violations(), "violated by")
    end
  end)

  it("keeps constraints first, then minimises, where there are stages", function()
    local far = { start = { 3, 3, 3, 3 }, f = problems.rosen_suzuki.f, constraints = problems.rosen_suzuki.constraints }
    for _, kind in ipairs { "slsqp", "ccsa", "auglag", "ipopt" } do
      local first, x = problems.solve(far, makers[kind](), { minimize = { "violation" } })
      assert.equal("converged", first.status)
      assert.is_true(first.feasible)
      local both = problems.solve(far, makers[kind](), { minimize = { "violation", "objective" } })
      assert.equal("converged", both.status)
      near(-44, both.objective, 1e-3, kind)
      -- the second stage begins where the first one has ended, with what was seen there
      local second = problems.solve({ start = x:totable(), f = far.f, constraints = far.constraints }, makers[kind]())
      assert.equal(first.evaluations + second.evaluations - 1, both.evaluations)
    end
  end)
end)

describe("an objective in small or large units", function()
  local at = cq.arange(0, 1, 0.1)
  local seen = 0.5 * at + 2 + cq.random({ seed = 1 }):normal({ 11 }, { deviation = 0.01 })
  -- a line that is fitted, with its squares in some unit
  local function fitted(kind, unit, more)
    local p = { a = cq.param(1, { min = -5, max = 5 }), b = cq.param(1, { min = -5, max = 5 }) }
    local options = { iterations = 200 }
    for name, value in pairs(more or {}) do options[name] = value end
    local solution = makers[kind]():solve(p, function(q) return unit * (q.a * at + q.b - seen):square():mean() end,
      options)
    return p, solution
  end

  it("is minimised as far, and reported as it is", function()
    for kind in pairs(makers) do
      for _, unit in ipairs { 1e-12, 1e-8, 1e-6, 1e-3, 1, 1e6 } do
        local p, solution = fitted(kind, unit)
        assert.equal("converged", solution.status)
        near(0.4871394, p.a:item(), 1e-4, kind .. unit)
        near(2.68270e-5 * unit, solution.objective, 1e-8 * unit)
      end
    end
  end)

  it("lets no first step jump to a bound", function()
    for kind in pairs(makers) do
      for _, unit in ipairs { 1e-8, 1e8 } do
        local second
        fitted(kind, unit, { on_iteration = function(i, _, q) second = i == 2 and q.a:item() or second end })
        assert(math.abs(second - 1) < 0.5 and second ~= 1, kind .. second)
      end
    end
  end)

  it("has multipliers in its unit", function()
    for _, unit in ipairs { 1e-6, 1e6 } do
      local problem = problems.rosen_suzuki
      local solution = problems.solve({ start = problem.start, constraints = problem.constraints, f = function(x)
        local values = problem.f(x)
        values.objective = unit * values.objective
        return values
      end }, makers.ipopt())
      near(-44 * unit, solution.objective, 1e-3 * unit)
      near(unit, solution.constraints.first.multiplier, 1e-2 * unit)
      near(2 * unit, solution.constraints.third.multiplier, 1e-2 * unit)
    end
  end)

  it("goes on to the same bits, also from a state of earlier programs, which gave it as it was", function()
    for _, kind in ipairs { "slsqp", "lbfgs", "ipopt" } do
      local whole, end_of_whole = fitted(kind, 1e-8)
      local _, part = fitted(kind, 1e-8, { iterations = 3 })
      local rest, end_of_rest = fitted(kind, 1e-8, { state = part.state })
      assert.equal(end_of_whole.evaluations, end_of_rest.evaluations)
      assert.is_true(whole.a:equal(rest.a) and whole.b:equal(rest.b))
      local make = makers[kind]
      makers[kind] = function()
        local optimizer = make()
        optimizer.first_step = { 0, math.huge, 1 }
        return optimizer
      end
      local as_it_is, end_as_it_is = fitted(kind, 1e4)
      _, part = fitted(kind, 1e4, { iterations = 3 })
      makers[kind] = make
      part.state.optimizer.factor = nil
      rest, end_of_rest = fitted(kind, 1e4, { state = part.state })
      assert.equal(end_as_it_is.evaluations, end_of_rest.evaluations)
      assert.is_true(as_it_is.a:equal(rest.a))
    end
  end)

  it("changes nothing where the first step is right", function()
    local optimizer = makers.lbfgs()
    local x = cq.param(1)
    optimizer:solve(x, function(q) return 0.05 * (q - 2):square() end, { iterations = 50 })
    assert.equal(1, optimizer.factor)
    near(2, x:item(), 1e-6)
    -- at the optimum nothing is stretched but the objective's own size
    for kind in pairs(makers) do
      local p = fitted(kind, 1e-8)
      local count = 0
      makers[kind]():solve(p, function(q)
        count = count + 1
        return 1e-8 * (q.a * at + q.b - seen):square():mean()
      end, { iterations = 100 })
      assert(count < 50, kind .. count)
    end
  end)
end)

describe("an error within a callback", function()
  it("ends the solve at the user's line, again and again", function()
    for _, kind in ipairs { "slsqp", "ccsa", "lbfgs", "auglag", "ipopt" } do
      local function solve(at)
        local n = 0
        makers[kind]():solve({ x = cq.param { 1, 2 } }, function(p)
          n = n + 1
          if n == at then return p.x.missing:sum() end
          return p.x:square():sum()
        end, { iterations = 10 })
      end
      -- more often than LuaJIT has callbacks to give away, of which there are about 900
      for _ = 1, kind == "ipopt" and 170 or 1000 do pcall(solve, 1) end
      for at = 1, 3 do
        local said = sentence(solve, at)
        says(said, "attempt to index field 'missing'")
        says(said, ("(iteration %d of 10)"):format(at))
      end
    end
  end)

  it("is one of the library's sentences too", function()
    for _, kind in ipairs { "slsqp", "ipopt" } do
      local n = 0
      assert.equal('"high" is nan, which is no finite number (iteration 3 of 50)', sentence(function()
        makers[kind]():solve({ x = cq.param { 1, 2 } }, function(p)
          n = n + 1
          return { objective = p.x:square():sum(), high = n == 3 and 0 / 0 or p.x[1] }
        end, { iterations = 50, constraints = { { name = "high", at_most = -1 } } })
      end))
    end
  end)

  it("leaves no coroutine half done", function()
    local said
    coroutine.wrap(function()
      said = sentence(function()
        makers.slsqp():solve({ x = cq.param { 1, 2 } }, function(p)
          coroutine.yield()
          return p.x:sum()
        end, { iterations = 10 })
      end)
    end)()
    says(said, "a coroutine cannot be left while a gradient is computed in it")
  end)
end)

describe("a solve by a library", function()
  it("ends when all evaluations are made", function()
    for _, kind in ipairs { "slsqp", "ccsa", "ipopt" } do
      local solution = problems.solve(problems.rosen_suzuki, makers[kind](), { iterations = 7 })
      assert.equal(7, solution.evaluations)
      assert.equal("iterations", solution.status)
    end
  end)

  it("goes on to the same bits, from a solution, from a file and from an interruption", function()
    for _, kind in ipairs { "slsqp", "ccsa", "auglag", "ipopt" } do
      local problem, calls = problems.rosenbrock_in_disc, 0
      local counted = { start = problem.start, constraints = problem.constraints, f = function(x)
        calls = calls + 1
        return problem.f(x)
      end }
      local whole, x = problems.solve(problem, makers[kind](), { iterations = 40 })
      local part = problems.solve(problem, makers[kind](), { iterations = 12 })
      local cut = problems.solve(problem, makers[kind](), { iterations = 40,
        on_iteration = function(i) if i == 12 then C.cq_interrupt(1) end end })
      C.cq_interrupt(0)
      assert.equal("interrupted", cut.status)
      assert.equal(12, cut.evaluations)
      local path = os.tmpname()
      cq.save(path, part.state)
      for _, state in ipairs { part.state, cq.load(path), cut.state } do
        calls = 0
        local rest, y = problems.solve(counted, makers[kind](), { iterations = 40, state = state })
        assert.equal(whole.evaluations - 12, calls)
        assert.equal(whole.evaluations, rest.evaluations)
        assert.equal(whole.status, rest.status)
        assert.is_true(x:equal(y), kind)
      end
      os.remove(path)
    end
  end)

  it("ends a script by Ctrl-C without an error", function()
    for _, make in ipairs { "cq.Optimizer.nlopt { algorithm = 'slsqp' }", "cq.Optimizer.ipopt()" } do
      local result = process.cqlua { "-e", ([[
        local ffi, n = require "ffi", 0
        ffi.cdef "int raise(int);"
        local s = %s:solve(cq.param { -1, 1 }, function(x)
          n = n + 1
          if n == 3 then ffi.C.raise(2) end
          return (1 - x[1]):square() + 100 * (x[2] - x[1]:square()):square()
        end, { iterations = 99 })
        print(s.status, s.evaluations)]]):format(make) }
      assert.equal(130, result.code)
      assert.equal("interrupted\t3\n", result.out)
    end
  end)

  it("goes on within and after its stages", function()
    local far = { start = { 3, 3, 3, 3 }, f = problems.rosen_suzuki.f, constraints = problems.rosen_suzuki.constraints }
    for _, kind in ipairs { "slsqp", "ipopt" } do
      local both = { "violation", "objective" }
      local whole, x = problems.solve(far, makers[kind](), { minimize = both })
      for cut = 1, whole.evaluations - 1, 3 do
        local part = problems.solve(far, makers[kind](), { minimize = both, iterations = cut })
        local rest, y = problems.solve(far, makers[kind](), { minimize = both, state = part.state })
        assert.equal(whole.evaluations, rest.evaluations)
        assert.is_true(x:equal(y))
      end
    end
  end)

  it("does not go on where its way would be another, nor with another algorithm", function()
    local part = problems.solve(problems.rosenbrock_in_disc, makers.slsqp(), { iterations = 5 })
    part.state.optimizer.log[3].x[1] = 0.5
    says(sentence(function() problems.solve(problems.rosenbrock_in_disc, makers.slsqp(), { state = part.state }) end),
      "the solve goes another way than it did before")
    says(sentence(function() problems.solve(problems.rosenbrock_in_disc, makers.ccsa(), { state = part.state }) end),
      "the state is of slsqp, this is ccsa")
    says(sentence(function() problems.solve(problems.rosenbrock_in_disc, makers.ipopt(), { state = part.state }) end),
      "optimizer:solve: the state is of cq.Optimizer.nlopt, this is cq.Optimizer.ipopt")
  end)

  it("writes its history, and goes on in its folder", function()
    local folder = process.folder()
    local problem = problems.rosenbrock_in_disc
    local whole = problems.solve(problem, makers.slsqp(), { iterations = 30 })
    problems.solve(problem, makers.slsqp(), { iterations = 10, folder = folder })
    local rest = problems.solve(problem, makers.slsqp(), { iterations = 30, folder = folder, resume = true })
    assert.equal(whole.objective, rest.objective)
    local lines = {}
    for line in io.lines(folder .. "/history.csv") do lines[#lines + 1] = line end
    assert.equal("iteration,loss,disc,gradient,seconds", lines[1])
    assert.equal(31, #lines)
    process.remove(folder)
  end)

  it("warns of slsqp where it is slow, and names what is not", function()
    local told, before = {}, message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    for _, count in ipairs { 500, 501 } do
      for _, kind in ipairs { "slsqp", "ccsa", "lbfgs", "ipopt" } do
        makers[kind]():solve(cq.param(cq.zeros { count }), function(x) return (x - 1):square():sum() end,
          { iterations = 1 })
      end
    end
    message.warn = before
    assert.equal(1, #told)
    says(told[1], "slsqp with 501 parameters")
    says(told[1], "\"mma\" or \"ccsa\" (no equalities), cq.Optimizer.ipopt or cq.Optimizer.augmented_lagrangian")
  end)
end)

describe("a mistake", function()
  it("is a sentence", function()
    says(sentence(function() cq.Optimizer.nlopt { algorithm = "slqsp" } end), 'got "slqsp" (did you mean slsqp?)')
    says(sentence(function() cq.Optimizer.nlopt { algorithm = "mma", inner = "lbfgs" } end),
      'inner and inner_iterations are for algorithm = "auglag", got "mma"')
    says(sentence(function() problems.solve(problems.parabola, makers.mma()) end),
      "mma of NLopt takes no equalities, as that of parabola")
    says(sentence(function() problems.solve(problems.rosen_suzuki, makers.lbfgs()) end),
      "lbfgs of NLopt takes no constraints")
    says(sentence(function() makers.slsqp():update({}, {}) end), "cq.Optimizer.nlopt has no update")
    says(sentence(function() makers.ipopt():update({}, {}) end), "cq.Optimizer.ipopt has no update")
    says(sentence(function() cq.Optimizer.augmented_lagrangian { inner = makers.slsqp() } end),
      "got cq.Optimizer.nlopt")
    says(sentence(function()
      makers.ipopt():solve(cq.param(1), function(x)
        return { objective = x * x, one = x, two = 2 * x }
      end, { iterations = 9, constraints = { { name = "one", equal = 1 }, { name = "two", equal = 2 } } })
    end), "more equalities than parameters")
  end)

  it("of a machine without the library names its package and what is built in", function()
    local cases = {
      NLOPT = { 'cq.Optimizer.nlopt { algorithm = "slsqp" }', "cq.Optimizer.nlopt", "libnlopt0" },
      IPOPT = { "cq.Optimizer.ipopt()", "cq.Optimizer.ipopt", "coinor-libipopt1v5" },
    }
    for name, case in pairs(cases) do
      local result = process.cqlua({ "-e", case[1] }, { before = "CQLUA_" .. name .. "=/nowhere.so" })
      assert.equal(1, result.code)
      assert.equal(("cqlua: (command line):1: %s: the library /nowhere.so was not found; install the Debian package %s, or take "
        .. "cq.Optimizer.augmented_lagrangian, which is built in"):format(case[2], case[3]), result.err:match "^[^\n]*")
    end
  end)
end)
