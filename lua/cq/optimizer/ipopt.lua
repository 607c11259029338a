-- ipopt: the interior-point method of IPOPT (Waechter and Biegler, Mathematical Programming 106, 2006) through LuaJIT's
-- FFI, with a limited-memory quasi-Newton Hessian.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local external = require "cq.optimizer.external"
local library = require "cq.base.library"

local DOUBLE = ffi.sizeof "double"

-- Bool is int up to version 3.13 and bool from 3.14 on: of a result only the lowest byte is read, and a callback gives
-- 0 or 1.
local declarations = [[
typedef struct IpoptProblemInfo *IpoptProblem;
typedef int (*ipopt_eval_f)(int n, double *x, int new_x, double *value, void *data);
typedef int (*ipopt_eval_grad_f)(int n, double *x, int new_x, double *gradient, void *data);
typedef int (*ipopt_eval_g)(int n, double *x, int new_x, int m, double *g, void *data);
typedef int (*ipopt_eval_jac_g)(int n, double *x, int new_x, int m, int count, int *row, int *column, double *values,
                                void *data);
typedef int (*ipopt_eval_h)(int n, double *x, int new_x, double factor, int m, double *lambda, int new_lambda,
                            int count, int *row, int *column, double *values, void *data);
typedef int (*ipopt_intermediate)(int mode, int iteration, double objective, double primal, double dual, double mu,
                                  double step_norm, double regularization, double alpha_dual, double alpha_primal,
                                  int trials, void *data);
IpoptProblem CreateIpoptProblem(int n, double *x_L, double *x_U, int m, double *g_L, double *g_U, int nele_jac,
                                int nele_hess, int index_style, ipopt_eval_f f, ipopt_eval_g g,
                                ipopt_eval_grad_f grad_f, ipopt_eval_jac_g jac_g, ipopt_eval_h h);
void FreeIpoptProblem(IpoptProblem problem);
uint8_t AddIpoptStrOption(IpoptProblem problem, const char *keyword, const char *value);
uint8_t AddIpoptNumOption(IpoptProblem problem, const char *keyword, double value);
uint8_t AddIpoptIntOption(IpoptProblem problem, const char *keyword, int value);
uint8_t SetIntermediateCallback(IpoptProblem problem, ipopt_intermediate callback);
int IpoptSolve(IpoptProblem problem, double *x, double *g, double *objective, double *mult_g, double *mult_x_L,
               double *mult_x_U, void *data);
]]

local N                            ---@type ffi.namespace*  once it is loaded

-- Loads the library of IPOPT into N when it is first used. Errors: it is not installed.
local function load()
  N = N or library.load {
    names = { "libipopt.so.1", "libipopt.so.3", "libipopt.so" }, variable = "CQLUA_IPOPT", declarations = declarations,
    purpose = "cq.Optimizer.ipopt", package = "coinor-libipopt1v5", instead = "cq.Optimizer.augmented_lagrangian",
  }
end

local INFINITE = 2e19              -- what IPOPT takes for no bound
local FIRST_STEP = { 0.01, 1, 0.1 }            -- see external.lua
local LONG = 100                   -- a gradient that IPOPT itself scales down
local ACCEPTABLE = 1e-6            -- tolerance of a point that IPOPT takes after 15 iterations without a better one

-- ---- callbacks, which give 1, or 0 when they have no answer --------------------------------------------------------

-- IPOPT's callback for the objective. It returns 0 once the solve is stopped.
local function value_of(work)
  return ffi.cast("ipopt_eval_f", function(_, x, _, value)
    local entry = work:at(x)
    if not entry then return 0 end
    value[0] = work:objective(entry)
    return 1
  end)
end

-- IPOPT's callback for the objective's gradient. It returns 0 once the solve is stopped.
local function gradient_of(work)
  return ffi.cast("ipopt_eval_grad_f", function(_, x, _, gradient)
    local entry = work:at(x)
    if not entry then return 0 end
    work:objective(entry, gradient)
    return 1
  end)
end

-- IPOPT's callback for the values of constraints. It returns 0 once the solve is stopped.
local function constraints_of(work)
  return ffi.cast("ipopt_eval_g", function(_, x, _, m, g)
    local entry = work:at(x)
    if not entry then return 0 end
    for k = 0, m - 1 do g[k] = entry.values[k + 2] end
    return 1
  end)
end

-- IPOPT's callback for the gradients of constraints. IPOPT first asks for the row and column of each entry alone
-- (values is NULL): the matrix is dense.
local function jacobian_of(work)
  return ffi.cast("ipopt_eval_jac_g", function(n, x, _, m, _, ...)
    local row, column, values = ...
    if values == nil then
      for k = 0, m * n - 1 do row[k], column[k] = math.floor(k / n), k % n end
      return 1
    end
    local entry = work:at(x)
    if not entry then return 0 end
    for k = 0, m - 1 do ffi.copy(values + k * n, entry.grads[k + 2]:data(), n * DOUBLE) end
    return 1
  end)
end

-- IPOPT's callback for the Hessian, which it approximates itself.
local function hessian() return ffi.cast("ipopt_eval_h", function() return 0 end) end

-- IPOPT's callback after each iteration: stop or go on.
local function going_on(work) return ffi.cast("ipopt_intermediate", function() return work.stopped and 0 or 1 end) end

-- ---- one run of the library ----------------------------------------------------------------------------------------

-- Bounds as IPOPT wants them, double[count]: a large number, with the given sign, in place of infinity.
local function bounds_of(from, count, sign)
  local out = ffi.new("double[?]", count)
  for k = 0, count - 1 do out[k] = math.abs(from[k]) == math.huge and sign * INFINITE or from[k] end
  return out
end

-- Limits of the constraints, double[#constraints]. sign 1: upper limits; -1: lower limits, which inequalities do not
-- have.
local function limits_of(constraints, sign)
  local out = ffi.new("double[?]", math.max(#constraints, 1))
  for k, c in ipairs(constraints) do out[k - 1] = (sign > 0 or c.equal) and c.limit or -INFINITE end
  return out
end

-- The one absolute tolerance that IPOPT applies to all constraints: the least of theirs; 1e-6 without constraints.
local function violation_of(constraints)
  local least = math.huge
  for _, c in ipairs(constraints) do least = math.min(least, c.tolerance) end
  return least < math.huge and math.max(least, 1e-12) or 1e-6
end

-- Sets an option of IPOPT, a text or a number. Errors: IPOPT does not take it.
local function set(opt, name, value)
  local add = type(value) == "string" and N.AddIpoptStrOption or N.AddIpoptNumOption
  if add(opt, name, value) == 0 then
    is.fail("cq.Optimizer.ipopt: IPOPT refuses the option %s = %s", name, tostring(value))
  end
end

-- The factor of tolerances within IPOPT, below 1 where it gets less than the objective: so they hold for the objective
-- as it is, or as IPOPT would scale it. Makes the first evaluation of a solve, which fixes the objective's factor.
local function tolerance_factor(work)
  local entry = work.stage == "objective" and work:at(work:start())
  if not entry then return 1 end
  work:objective(entry)
  return math.min(1, work:factor() * math.max(1, entry.grads[1]:abs():max():item() / LONG))
end

-- Sets the options of IPOPT from the optimizer's fields, with the factor of tolerances.
local function set_options(self, opt, constraints, factor)
  set(opt, "hessian_approximation", "limited-memory")
  set(opt, "sb", "yes")
  set(opt, "bound_relax_factor", 0)
  set(opt, "tol", factor * self.tolerance)
  set(opt, "acceptable_tol", factor * ACCEPTABLE)
  set(opt, "constr_viol_tol", violation_of(constraints))
  for name, value in pairs { print_level = 0, max_iter = 2 ^ 31 - 1, limited_memory_max_history = self.history } do
    if N.AddIpoptIntOption(opt, name, value) == 0 then
      is.fail("cq.Optimizer.ipopt: IPOPT refuses the option %s = %d", name, value)
    end
  end
end

-- Makes the IPOPT problem in self.opt: bounds, constraints and the callbacks that evaluate them, which live as long.
local function prepare(self, work)
  local n, list, factor = work.count, work.constraints, tolerance_factor(work)
  local callbacks = { value_of(work), constraints_of(work), gradient_of(work), jacobian_of(work), hessian() }
  self.callbacks = callbacks
  local opt = N.CreateIpoptProblem(n, bounds_of(work.vector.lower, n, -1), bounds_of(work.vector.upper, n, 1), #list,
    limits_of(list, -1),
    limits_of(list, 1), n * #list, 0, 0, unpack(callbacks))
  if opt == nil then is.fail("cq.Optimizer.ipopt: IPOPT cannot make a problem of %s", text.count(n, "parameter")) end
  self.opt = ffi.gc(opt, N.FreeIpoptProblem)
  set_options(self, self.opt, list, factor)
  callbacks[#callbacks + 1] = going_on(work)
  N.SetIntermediateCallback(self.opt, callbacks[#callbacks])
end

-- Runs IPOPT from x, which it changes, and fills the multipliers; returns its status. It calls back into Lua, which a
-- compiled trace must not: the next line turns compilation off.
local function optimize(opt, x, multipliers) return N.IpoptSolve(opt, x, nil, nil, multipliers, nil, nil, nil) end
jit.off(optimize)

local results = {
  [0] = "solved", [1] = "solved to an acceptable level", [2] = "converged to a point where constraints cannot be kept",
  [3] = "steps are too small", [4] = "parameters run away", [5] = "stopped", [6] = "a feasible point was found",
  [-1] = "all iterations were made", [-2] = "the search for a feasible point failed",
  [-3] = "a step could not be computed",
  [-10] = "too few degrees of freedom: more equalities than parameters", [-11] = "the problem is invalid",
  [-12] = "an option is invalid",
  [-13] = "a number is invalid", [-100] = "IPOPT failed", [-102] = "too little memory",
}

local converged = { [0] = true, [1] = true, [6] = true }

-- Runs one stage in IPOPT, from work:start(); sets the message and the multipliers. Returns "converged" or "stopped";
-- nil: the evaluations were used up, or the stage has ended. Errors: IPOPT's own failures.
local function run(self, work)
  prepare(self, work)
  local multipliers = ffi.new("double[?]", math.max(#work.constraints, 1))
  local result = tonumber(optimize(self.opt, work:start(), multipliers))
  if work.stopped then return nil end
  self.message = results[result] or ("IPOPT ended with %d"):format(result)
  self.multipliers = {}
  for k, c in ipairs(work.constraints) do self.multipliers[c.name] = multipliers[k - 1] / work:factor() end
  if result <= -10 and not work.problem then is.fail("cq.Optimizer.ipopt: %s", self.message) end
  return converged[result] and "converged" or "stopped"
end

-- ---- an optimizer --------------------------------------------------------------------------------------------------

---IPOPT, from cq.Optimizer.ipopt.
---@class cq.Ipopt : cq.Optimizer
---@field message string?             what IPOPT said at the end of the last solve
---@field multipliers table<string, number>?   of the constraints, at the end of the last solve
local Ipopt = external.class("cq.Ipopt", "ipopt", run, function(opt) N.FreeIpoptProblem(opt) end)

-- The optimizer in one line: its tolerance.
function Ipopt:__tostring() return ("cq.Optimizer.ipopt { tolerance %g }"):format(self.tolerance) end

local spec = is.define("cq.Optimizer.ipopt", {
  tolerance = is.number { above = 0, default = 1e-6 },
  history = is.integer { min = 1, max = 1000, default = 6 },
})

---cq.Optimizer.ipopt: checks the fields and loads IPOPT. Errors: the library is not installed.
---@param def? cq.Optimizer.ipopt.def
---@return cq.Ipopt
return function(def)
  local self = spec(def or {})
  load()
  self.first_step = FIRST_STEP
  return Ipopt.new(self)
end
