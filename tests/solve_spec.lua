-- solve: optimizer:solve with the built-in methods: known solutions, reports, history, interruptions, mistakes.
local cq = require "cq"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local problems = require "tests.problems"
local process = require "tests.process"
local sentence = require("tests.sentence").of

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function()
  T.warn = warn
  C.cq_interrupt(0)
end)

local function adam(rate) return cq.Optimizer.adam { rate = rate or 0.02 } end
local function lagrangian(fields)
  local def = { inner = adam(fields and fields.rate) }
  for name, value in pairs(fields or {}) do if name ~= "rate" then def[name] = value end end
  return cq.Optimizer.augmented_lagrangian(def)
end

local function near(expected, got, tolerance, what)
  assert(math.abs(expected - got) <= tolerance, ("%s: %.9g, not %.9g"):format(what or "number", got, expected))
end

describe("an augmented Lagrangian", function()
  local forms = { shifted = {}, violation = { form = "violation", penalty = 1e-3 } }
  for form, fields in pairs(forms) do
    for _, name in ipairs { "rosenbrock_in_disc", "parabola", "logarithm", form == "shifted" and "with_bounds"
      or nil } do
      it(("of the form %s solves %s"):format(form, name), function()
        local problem = problems[name]
        local solution, x = problems.solve(problem, lagrangian(fields), { iterations = 6000 })
        assert.equal("converged", solution.status)
        assert.is_true(solution.feasible)
        near(problem.objective, solution.objective, 2e-3 * math.max(1, math.abs(problem.objective)), "objective")
        for k, at in ipairs(problem.at) do
          near(at, x:get(k), problem.flat and 0.05 or 0.02 * math.max(1, at), "x" .. k)
        end
        for _, c in ipairs(solution.constraints) do assert.is_true(c.kept) end
      end)
    end
  end

  it("lowers a penalty that was chosen where its constraint had next to no gradient", function()
    local method, at = lagrangian(), cq.param { 0.01, -0.01 }
    local solution = method:solve(at, function(x)
      return { objective = ((x - cq.tensor { 3, 1 }):square() * cq.tensor { 0.1, 1 }):sum(),
        bound = x:square():sum() ^ 4 }
    end, { iterations = 1000, constraints = { { name = "bound", at_most = 1 } } })
    assert.equal("converged", solution.status)
    -- on the circle, where (x - 3) / 10 : (y - 1) = x : y
    near(0.60926, solution.objective, 2e-4, "objective")
    assert.is_true(method.penalties.bound < 100, method.penalties.bound)
  end)

  it("chooses penalties by the scale of a constraint", function()
    for _, scale in ipairs { 1e-6, 1e6 } do
      local at = cq.param { 0.01, -0.01 }
      local solution = lagrangian():solve(at, function(x)
        return { objective = ((x - cq.tensor { 3, 1 }):square() * cq.tensor { 0.1, 1 }):sum(),
          bound = scale * x:square():sum() }
      end, { iterations = 1000, constraints = { { name = "bound", at_most = scale } } })
      assert.is_true(solution.feasible)
      near(0.60926, solution.objective, 2e-4, scale)
    end
  end)

  it("finds the multipliers of Rosen and Suzuki", function()
    local solution = problems.solve(problems.rosen_suzuki, lagrangian { rate = 0.05, tolerance = 1e-5 })
    near(-44, solution.objective, 1e-3, "objective")
    near(1, solution.constraints.first.multiplier, 0.01, "first")
    near(0, solution.constraints.second.multiplier, 1e-9, "second")
    near(2, solution.constraints.third.multiplier, 0.01, "third")
  end)

  -- one variable that gradient descent moves by the weight: every number can be told
  it("follows algorithm 1: window, reset, multiplier or penalty", function()
    local inner = cq.Optimizer.momentum { rate = 1e-9, momentum = 0.5 }
    local restarts, restart = {}, inner.restart
    inner.restart = function(self)
      restarts[#restarts + 1] = self.iteration
      restart(self)
    end
    local method = cq.Optimizer.augmented_lagrangian { inner = inner, form = "violation", penalty = 1e-3, window = 3 }
    local violation = { 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0, 0 }
    local rows, i = {}, 0
    local solution = method:solve(cq.param(1), function(x)
      i = i + 1
      return { objective = 1 + 0 * x, high = violation[i] + 10 + 0 * x }
    end, {
      iterations = #violation, constraints = { { name = "high", at_most = 10, tolerance = 0 } },
      on_iteration = function(k) rows[k] = { method.multipliers.high, method.penalties.high } end,
    })
    -- six in a row that differ little end a loop: 4 has not shrunk: penalty; 3 has not shrunk to a quarter: penalty;
    -- 0.5 has
    assert.same({ 0, 1e-3 }, rows[5])
    assert.same({ 0, 1e-2 }, rows[6])
    assert.same({ 0, 1e-2 }, rows[12])
    assert.same({ 0, 1e-1 }, rows[13])
    assert.same({ 0, 1e-1 }, rows[18])
    assert.same({ 0.05, 1e-1 }, rows[19])
    assert.equal("converged", solution.status)
    assert.equal(25, solution.evaluations)
    assert.equal(20, solution.iteration)
    assert.same({ 0, 6, 7, 6, 6 }, restarts)     -- the first one at the start
  end)

  it("keeps, of points whose worst violation is the same, the one with the least of all", function()
    local method = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.gradient_descent { rate = 0.2 } }
    local at = cq.param(0.5)
    local solution = method:solve(at, function(x)
      return { objective = (x + 1):square(), stuck = 1 + 0 * x, high = x }
    end, { iterations = 20, constraints = { { name = "stuck", at_most = 0 }, { name = "high", at_most = 0 } } })
    assert.is_false(solution.feasible)
    assert(at:item() <= 0, at:item())
  end)

  it("minimises constraints alone in the stage of violations", function()
    local solution = problems.solve(problems.rosen_suzuki, lagrangian { rate = 0.05 }, { minimize = { "violation" } })
    assert.equal("converged", solution.status)
    assert.equal(1, solution.evaluations)        -- the start keeps all constraints
    local far = { start = { 3, 3, 3, 3 }, f = problems.rosen_suzuki.f, constraints = problems.rosen_suzuki.constraints }
    local first = problems.solve(far, lagrangian { rate = 0.05 }, { minimize = { "violation" } })
    assert.equal("converged", first.status)
    assert.is_true(first.feasible and first.evaluations > 5)
    local both = problems.solve(far, lagrangian { rate = 0.05 }, { minimize = { "violation", "objective" } })
    near(-44, both.objective, 0.1, "objective")
    assert.is_true(both.evaluations > first.evaluations)
  end)

  it("says which constraint an infeasible problem violates, and by how much", function()
    local solution, x = problems.solve(problems.infeasible, lagrangian(), { iterations = 800 })
    assert.equal("infeasible", solution.status)
    assert.is_false(solution.feasible)
    local inside = x:square():sum():item()
    near(inside - 1, solution.constraints.inside.violation, 1e-12)
    near(4 - inside, solution.constraints.outside.violation, 1e-12)
    assert.equal(("inside: %.6g, at most 1: violated by %.6g; outside: %.6g, at most -4: violated by %.6g"):format(
      inside, inside - 1,
      -inside, 4 - inside), solution:violations())
    assert.equal(1, select(2, tostring(solution):gsub("infeasible after 800 evaluations", "")))
  end)
end)

describe("solving", function()
  it("needs no constraints, nor a table", function()
    local x = cq.param({ 0, 1 }, { max = 2 })
    local solution = cq.Optimizer.adam({ rate = 0.1 }):solve(x, function(q) return (q - 3):square():sum() end,
      { iterations = 300 })
    assert.same({ 2, 2 }, x:totable())
    assert.equal("iterations", solution.status)
    assert.equal(2, solution.objective)
    assert.equal("iterations after 300 evaluations: objective 2 at ", tostring(solution):sub(1, 49))
  end)

  it("keeps the best point, not the last", function()
    local x = cq.param(1)
    -- steps of 0.7 to and fro
    local solution = cq.Optimizer.gradient_descent({ rate = 1 }):solve(x, function(q) return 0.7 * (q - 0.3):abs() end,
      { iterations = 50 })
    near(0.07, solution.objective, 0.15)
    near(solution.objective, 0.7 * math.abs(x:item() - 0.3), 1e-12)
    assert.is_true(solution.iteration < 50)
  end)

  it("goes on to the same bits, from a solution and from a file", function()
    local problem = problems.rosenbrock_in_disc
    local whole, x = problems.solve(problem, lagrangian(), { iterations = 400 })
    local part = problems.solve(problem, lagrangian(), { iterations = 150 })
    assert.equal(150, part.evaluations)
    local path = os.tmpname()
    cq.save(path, part.state)
    for _, state in ipairs { part.state, cq.load(path) } do
      local rest, y = problems.solve(problem, lagrangian(), { iterations = 400, state = state })
      assert.equal(400, rest.evaluations)
      assert.equal(whole.objective, rest.objective)
      assert.is_true(x:equal(y))
    end
    os.remove(path)
  end)

  it("goes on with another rate, as much slowed, and says so", function()
    local problem, message, told = problems.rosenbrock_in_disc, require "cq.base.message", {}
    local own = message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local first = lagrangian()
    local part = problems.solve(problem, first, { iterations = 300 })
    first.slowed = 0.25                                                  -- as if it had been slowed twice
    first:set_rate(first.rate)
    local slowed = first.inner.rate / 0.02
    part.state.optimizer = first:state()
    local slower = lagrangian { rate = 0.01 }
    slower:restore(part.state.optimizer)
    near(0.01 * slowed, slower.inner.rate, 1e-15)
    -- of an earlier program
    local old = first:state()
    old.slowed, old.rate, old.made = nil, first.inner.rate, 0.02
    slower:restore(old)
    near(0.01 * slowed, slower.inner.rate, 1e-15)
    assert.equal(301, problems.solve(problem, lagrangian { rate = 0.01 }, { iterations = 301,
      state = part.state }).evaluations)
    message.warn = own
    assert.same({ "optimizer:solve: goes on in another manner: optimizer.inner.rate was 0.02 and is 0.01" }, told)
    told = {}
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    problems.solve(problem, cq.Optimizer.augmented_lagrangian { restart = false,
      inner = cq.Optimizer.adam { rate = 0.02, relative_epsilon = true } }, { iterations = 301, state = part.state })
    message.warn = own
    assert.matches("inner.relative_epsilon was false and is true", told[1])
    assert.matches("begins_anew was true and is false", told[1])
    assert(sentence(function()
      problems.solve({ start = problem.start, f = problem.f, constraints = { { name = "disc", at_most = 2 } } },
        lagrangian(), { iterations = 301, state = part.state })
    end):find("constraint disc was at most 1 within 1e-06 and is at most 2 within 0.0002", 1, true))
  end)

  it("goes on with another constraint beside those before", function()
    local problem = problems.rosen_suzuki
    local fewer = { start = problem.start, f = problem.f,
      constraints = { problem.constraints[1], problem.constraints[2] } }
    local part = problems.solve(fewer, lagrangian { rate = 0.05 }, { iterations = 100 })
    assert.is_true(part.values.third > 5)
    local all = problems.solve(problem, lagrangian { rate = 0.05 }, { state = { evaluations = part.evaluations,
      params = part.state.params, optimizer = part.state.optimizer, stage = 1 } })
    assert.equal("converged", all.status)
    near(-44, all.objective, 0.02)
  end)

  it("makes one evaluation in a script that is only checked, and leaves nothing behind", function()
    local folder = process.folder()
    local script = process.write(folder .. "/script.lua", ([[
      local cq, n = require "cq", 0
      cq.Optimizer.adam { rate = 1 }:solve(cq.param(1), function(x)
        n = n + 1
        return x * x
      end, { iterations = 50, folder = %q })
      print(n)]]):format(folder .. "/run"))
    local result = process.cqlua { "check", script, "--quiet" }
    assert.equal(0, result.code, result.err)
    assert.is_truthy(result.out:find "^1\n", result.out)
    assert.is_nil(process.read(folder .. "/run/history.csv"))
    process.remove(folder)
  end)

  it("is stopped by Ctrl-C before the next evaluation, and goes on", function()
    local problem = problems.rosenbrock_in_disc
    local whole = problems.solve(problem, lagrangian(), { iterations = 60 })
    local part = problems.solve(problem, lagrangian(), { iterations = 60,
      on_iteration = function(i) if i == 20 then C.cq_interrupt(1) end end })
    assert.equal("interrupted", part.status)
    assert.equal(20, part.evaluations)
    assert.equal("optimizer:solve: interrupted before the first evaluation was made",
      sentence(function() problems.solve(problem, lagrangian()) end))
    C.cq_interrupt(0)
    local rest = problems.solve(problem, lagrangian(), { iterations = 60, state = part.state })
    assert.equal(whole.objective, rest.objective)
  end)

  it("writes a history with constraints, multipliers and penalties, and goes on in its folder", function()
    local folder, whole = process.folder(), process.folder()
    local problem = problems.rosenbrock_in_disc
    problems.solve(problem, lagrangian(), { iterations = 40, folder = whole })
    problems.solve(problem, lagrangian(), { iterations = 25, folder = folder })
    local solution, x = problems.solve(problem, lagrangian(), { iterations = 40, folder = folder, resume = true })
    assert.equal(40, solution.evaluations)
    local function read(path)
      local lines = {}
      -- but the seconds
      for line in io.lines(path .. "/history.csv") do lines[#lines + 1] = line:gsub(",[^,]*$", "") end
      return lines
    end
    local lines = read(folder)
    assert.same(read(whole), lines)
    assert.equal("iteration,loss,disc,disc.multiplier,disc.penalty,gradient,lagrangian,loop", lines[1])
    assert.equal(41, #lines)
    assert.is_true(x:equal(cq.load(folder).parameters.x))
    process.remove(folder)
    process.remove(whole)
  end)
end)

describe("a mistake in a solve", function()
  local function refused(fields, f, optimizer, params)
    fields.iterations = fields.iterations or 5
    return sentence(function()
      (optimizer or lagrangian()):solve(params or { x = cq.param { 1, 2 } }, f or function(p)
        return { objective = p.x:sum(), high = p.x[1] }
      end, fields)
    end)
  end
  local high = { name = "high", at_most = 0 }

  it("is a sentence", function()
    local cases = {
      { "optimizer:solve: iterations is missing, it must be a whole number at least 0 and at most "
        .. "2147483647", { iterations = false } },
      { "optimizer:solve: high needs either at_most or equal, not both", { constraints = { { name = "high", at_most = 1,
        equal = 2 } } } },
      { "optimizer:solve: high needs either at_most or equal", { constraints = { { name = "high" } } } },
      { "optimizer:solve: constraint: at_most must be a finite number, got nan", { constraints = { { name = "high",
        at_most = 0 / 0 } } } },
      { "optimizer:solve: constraint: unknown field at_least; allowed are at_most, equal, name, tolerance",
        { constraints = { { name = "high", at_least = 1 } } } },
      { "optimizer:solve: two constraints are called high", { constraints = { high, high } } },
      { "optimizer:solve: a constraint cannot be called loss, which the history has already",
        { constraints = { { name = "loss", equal = 1 } } } },
      { "optimizer:solve: f gives no number named hihg, which a constraint asks for (did you mean high?); it gives high, objective",
        { constraints = { { name = "hihg", equal = 1 } } } },
      { "optimizer:solve: minimize \"violation\" needs constraints", { minimize = { "violation", "objective" } } },
      { "optimizer:solve: resume needs the folder that the solve has written; state goes on from a solution",
        { resume = true } },
      { "optimizer:solve: the state was not made by optimizer:solve: evaluations must be a whole number at least 0, got nil", { state = {} } },
      { "optimizer:solve: f gives a number named seconds, which the history has already; give it another name (iteration 1",
        {}, function(p) return { objective = p.x:sum(), seconds = 1 } end },
      { "optimizer:solve: f must give a number named objective", {}, function(p) return { high = p.x:sum() } end },
      { 'optimizer:solve: f must give a table of named numbers, such as { objective = ..., height = ... }, got "x"', {},
        function() return "x" end },
      { '"high" must be a tensor of one element, got "x" (iteration 1 of 5)', { constraints = { high } },
        function(p) return { objective = p.x:sum(), high = "x" } end },
      { '"high" must be a tensor of one element, got shape {2}; use :sum() or :mean() (iteration 1 of 5)',
        { constraints = { high } },
        function(p) return { objective = p.x:sum(), high = p.x } end },
      { '"high" is nan, which is no finite number (iteration 1 of 5)', { constraints = { high } },
        function(p) return { objective = p.x:sum(), high = (p.x[1] - 1) / 0 } end },
      { "parameter x does not reach any of high, objective: the number 2 was returned, which remembers no parameter; "
        .. "return a tensor (iteration 1 of 5)", { constraints = { high } }, function() return { objective = 1,
          high = 2 } end },
      { "cq.Optimizer.adam knows no constraints; put it into cq.Optimizer.augmented_lagrangian { inner = ... }, or take "
        .. "cq.Optimizer.nlopt or cq.Optimizer.ipopt", { constraints = { high } }, nil, adam() },
      { "cq.Optimizer.parts knows no constraints; put it into cq.Optimizer.augmented_lagrangian { inner = ... }, or take "
        .. "cq.Optimizer.nlopt or cq.Optimizer.ipopt", { constraints = { high } }, nil,
        cq.Optimizer.parts { x = adam() } },
      { "optimizer:solve: needs a tensor or tables of tensors to differentiate by, got an empty table", {}, nil, nil,
        {} },
      { "optimizer:solve: no evaluation was made, for iterations is 0; give 1 or more", { iterations = 0 } },
    }
    for _, case in ipairs(cases) do
      local expected, fields, f, optimizer, params = unpack(case, 1, 5)
      if fields.iterations == false then
        fields = {}
        local got = sentence(function() lagrangian():solve({ x = cq.param(1) }, function(p) return p.x end, fields) end)
        assert.equal(expected, got)
      else
        local got = refused(fields, f, optimizer, params)
        assert.is_truthy(got:find(expected, 1, true), got .. "\nand not\n" .. expected)
      end
    end
    assert.is_truthy(sentence(function() adam():solve({ x = cq.param(1) }, 3,
      { iterations = 1 }) end):find("f must be a function, got 3", 1, true))
  end)

  it("is one note where a constraint is kept that no parameter reaches", function()
    local message, told = require "cq.base.message", {}
    local own = message.note
    message.note = function(format, ...) told[#told + 1] = format:format(...) end
    local optimizers = { lagrangian(), lagrangian { form = "violation", penalty = 1e-3 }, lagrangian { penalty = 1 },
      cq.Optimizer.nlopt { algorithm = "slsqp" } }
    for _, optimizer in ipairs(optimizers) do
      optimizer:solve({ x = cq.param { 1, 2 } }, function(p)
        return { objective = p.x:square():sum(), high = cq.tensor(-1), other = p.x[1] }
      end, { iterations = 3, constraints = { high, { name = "other", at_most = 2 } } })
    end
    message.note = own
    local said = "optimizer:solve: no parameter reaches the constraint high: -1, at most 0: kept, and training cannot change it"
    assert.same({ said, said, said, said }, told)
  end)

  it("is one warning where a constraint is violated that no parameter reaches", function()
    local message, told = require "cq.base.message", {}
    local own = message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    lagrangian():solve({ x = cq.param { 1, 2 } }, function(p)
      return { objective = p.x:square():sum(), high = p.x:max():item() + 1 }
    end, { iterations = 3, constraints = { high } })
    message.warn = own
    assert.same({ "optimizer:solve: no parameter reaches the constraint high: 3, at most 0: violated by 3, and no optimizer "
      .. "can change it; compute it from what is trained, as tensors (t:item() is a number without a gradient), or leave "
      .. "it out" }, told)
  end)

  it("of the method is one too", function()
    assert.equal("cq.Optimizer.augmented_lagrangian: inner must be a first-order optimizer, such as cq.Optimizer.adam, got "
      .. "cq.Optimizer.augmented_lagrangian",
        sentence(function() cq.Optimizer.augmented_lagrangian { inner = lagrangian() } end))
    assert.is_truthy(sentence(function() lagrangian():update({}, {}) end):find("call optimizer:solve", 1, true))
    assert.equal("cq.Optimizer.augmented_lagrangian { shifted, cq.Optimizer.adam { rate 0.02, 0 iterations made } }",
      tostring(lagrangian()))
  end)

  it("in the second evaluation leaves what was computed in the folder", function()
    local folder, n = process.folder(), 0
    local got = refused({ folder = folder, constraints = { high } }, function(p)
      n = n + 1
      return { objective = p.x:sum(), high = n == 3 and 0 / 0 or p.x[1] }
    end)
    assert.equal('"high" is nan, which is no finite number (iteration 3 of 5)', got)
    require("cq.run").close_open("failed")
    assert.equal(2, cq.load(folder .. "/optimizer.bin").iteration)
    process.remove(folder)
  end)

  it("in a step leaves its iteration to the solve that goes on", function()
    local folder = process.folder()
    local function solve(breaks)
      local optimizer = cq.Optimizer.adam { rate = 0.1,
        schedule = function(i) return breaks and i == 4 and 0 / 0 or 1 end }
      local x = T.param { 1, 2 }
      optimizer:solve({ x = x }, function(p) return (p.x * p.x):sum() end, { iterations = 6, folder = folder,
        resume = breaks == false })
      return x
    end
    assert.is_truthy(sentence(function() solve(true) end):find("got nan at iteration 4 (iteration 4 of 6)", 1, true))
    require("cq.run").close_open("failed")
    assert.equal(3, cq.load(folder .. "/optimizer.bin").optimizer.evaluations)
    local x = solve(false)
    process.remove(folder)
    assert.is_true(x:equal(solve()))
    process.remove(folder)
  end)

  it("in a step of an augmented Lagrangian leaves its inner loop as it was", function()
    local folder = process.folder()
    local function solve(breaks)
      local inner = cq.Optimizer.adam { rate = 0.1,
        schedule = function(i) return breaks and i == 4 and 0 / 0 or 1 end }
      local method = cq.Optimizer.augmented_lagrangian { inner = inner, window = 2, inner_iterations = 7,
        tolerance = 1e-9 }
      local x = T.param { 0, 0 }
      local made = method:solve({ x = x }, function(p)
        return { objective = (p.x - 3):square():sum(), sum = p.x:sum() }
      end, { iterations = 30, folder = folder, resume = breaks == false,
          constraints = { { name = "sum", at_most = 1 } } })
      return x, made
    end
    assert.is_truthy(sentence(function() solve(true) end):find("(iteration 4 of 30)", 1, true))
    require("cq.run").close_open("failed")
    local x, made = solve(false)
    process.remove(folder)
    local whole, wanted = solve()
    process.remove(folder)
    assert.is_true(x:equal(whole))
    assert.same({ wanted.evaluations, wanted.status }, { made.evaluations, made.status })
  end)
end)

describe("an augmented Lagrangian", function()
  it("has the rate of a schedule times the factor by which it is slowed, without rounding on the way", function()
    local method = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.0133 } }
    method.slowed = 0.25
    for i = 1, 60 do
      local rate = 0.0133 + (0.0017 - 0.0133) * i / 60
      method:set_rate(rate)
      assert.equal(0.25 * rate, method.inner.rate)
      local other = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.0133 } }
      other:restore(method:state())
      other:set_rate(rate)
      assert.equal(method.inner.rate, other.inner.rate)
    end
    method:restart()
    assert.equal(method.rate, method.inner.rate)
  end)
end)
