-- problems: constrained problems with known solutions, as optimizer:solve takes them.
-- HS: Hock and Schittkowski, Test Examples for Nonlinear Programming Codes, 1981.
local T = require "cq.tensor"

local problems = {}

-- { start, bounds, f(x) -> table, constraints, at = solution, objective }

problems.rosenbrock_in_disc = {
  start = { -1, 1 },
  f = function(x)
    return { objective = (1 - x[1]):square() + 100 * (x[2] - x[1]:square()):square(), disc = x:square():sum() }
  end,
  constraints = { { name = "disc", at_most = 1, tolerance = 1e-6 } },
  at = { 0.7864151541684254, 0.6176983125233901 }, objective = 0.045674824758137, inequalities = true,
}

-- HS6
problems.parabola = {
  start = { -1.2, 1 },
  f = function(x) return { objective = (1 - x[1]):square(), parabola = 10 * (x[2] - x[1]:square()) } end,
  constraints = { { name = "parabola", equal = 0, tolerance = 1e-4 } },
  at = { 1, 1 }, objective = 0,
}

-- HS7
problems.logarithm = {
  start = { 2, 2 },
  f = function(x) return { objective = (1 + x[1]:square()):log() - x[2],
  oval = (1 + x[1]:square()):square() + x[2]:square() } end,
  constraints = { { name = "oval", equal = 4, tolerance = 1e-4 } },
  at = { 0, math.sqrt(3) }, objective = -math.sqrt(3), flat = true,
}

-- HS43, Rosen and Suzuki
problems.rosen_suzuki = {
  start = { 0, 0, 0, 0 },
  f = function(x)
    local s = x:square()
    return {
      objective = s[1] + s[2] + 2 * s[3] + s[4] - 5 * x[1] - 5 * x[2] - 21 * x[3] + 7 * x[4],
      first = s:sum() + x[1] - x[2] + x[3] - x[4], second = s[1] + 2 * s[2] + s[3] + 2 * s[4] - x[1] - x[4],
      third = 2 * s[1] + s[2] + s[3] + 2 * x[1] - x[2] - x[4],
    }
  end,
  constraints = {
    { name = "first", at_most = 8, tolerance = 1e-5 }, { name = "second", at_most = 10, tolerance = 1e-5 },
    { name = "third", at_most = 5, tolerance = 1e-5 },
  },
  at = { 0, 1, 2, -1 }, objective = -44, inequalities = true,
}

-- HS71: an equality, an inequality and bounds at once
problems.with_bounds = {
  start = { 1, 5, 5, 1 }, bounds = { min = 1, max = 5 },
  f = function(x)
    return { objective = x[1] * x[4] * (x[1] + x[2] + x[3]) + x[3], product = -x:prod(), sphere = x:square():sum() }
  end,
  constraints = { { name = "product", at_most = -25, tolerance = 1e-5 }, { name = "sphere", equal = 40,
  tolerance = 1e-4 } },
  at = { 1, 4.742999643, 3.821149979, 1.379408293 }, objective = 17.0140173,
}

-- HS1 with bounds on both
problems.rosenbrock = {
  start = { -1.2, 1 }, bounds = { min = -1.5 },
  f = function(x) return { objective = (1 - x[1]):square() + 100 * (x[2] - x[1]:square()):square() } end,
  constraints = {}, at = { 1, 1 }, objective = 0, inequalities = true,
}

-- a squared length that must be at most 1 and at least 4
problems.infeasible = {
  start = { 0.5, 0.2 },
  f = function(x) return { objective = x[1], inside = x:square():sum(), outside = -x:square():sum() } end,
  constraints = { { name = "inside", at_most = 1 }, { name = "outside", at_most = -4 } }, inequalities = true,
}

---Solves a problem.
---@param problem table
---@param optimizer cq.Optimizer
---@param more? table         of the options of solve
---@return cq.Solution solution, cq.Tensor x
function problems.solve(problem, optimizer, more)
  local x = T.param(problem.start, problem.bounds)
  local options = { iterations = 4000, constraints = problem.constraints }
  for name, value in pairs(more or {}) do options[name] = value end
  local solution = optimizer:solve({ x = x }, function(p) return problem.f(p.x) end, options)
  return solution, x
end

return problems
