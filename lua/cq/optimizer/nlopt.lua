-- nlopt: algorithms of NLopt (Johnson, the NLopt nonlinear-optimization package), through LuaJIT's FFI.
local ffi = require "ffi"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local text = require "cq.base.text"
local external = require "cq.optimizer.external"
local library = require "cq.base.library"

local declarations = [[
typedef struct nlopt_opt_s *nlopt_opt;
typedef double (*nlopt_func)(unsigned n, const double *x, double *gradient, void *data);
typedef void (*nlopt_mfunc)(unsigned m, double *result, unsigned n, const double *x, double *gradient, void *data);
int nlopt_algorithm_from_string(const char *name);
nlopt_opt nlopt_create(int algorithm, unsigned n);
void nlopt_destroy(nlopt_opt opt);
int nlopt_set_min_objective(nlopt_opt opt, nlopt_func f, void *data);
int nlopt_add_inequality_mconstraint(nlopt_opt opt, unsigned m, nlopt_mfunc f, void *data, const double *tolerance);
int nlopt_add_equality_mconstraint(nlopt_opt opt, unsigned m, nlopt_mfunc f, void *data, const double *tolerance);
int nlopt_set_lower_bounds(nlopt_opt opt, const double *bounds);
int nlopt_set_upper_bounds(nlopt_opt opt, const double *bounds);
int nlopt_set_ftol_rel(nlopt_opt opt, double tolerance);
int nlopt_set_xtol_rel(nlopt_opt opt, double tolerance);
int nlopt_set_maxeval(nlopt_opt opt, int count);
int nlopt_set_local_optimizer(nlopt_opt opt, nlopt_opt local_opt);
int nlopt_force_stop(nlopt_opt opt);
int nlopt_optimize(nlopt_opt opt, double *x, double *objective);
const char *nlopt_get_errmsg(nlopt_opt opt);
]]

local N                            ---@type ffi.namespace*  once it is loaded

-- Loads the library of NLopt into N when it is first used. Errors: it is not installed.
local function load()
  N = N or library.load {
    names = { "libnlopt.so.0", "libnlopt.so.1", "libnlopt.so" }, variable = "CQLUA_NLOPT", declarations = declarations,
    purpose = "cq.Optimizer.nlopt", package = "libnlopt0", instead = "cq.Optimizer.augmented_lagrangian",
  }
end

-- Names within NLopt; what constraints they take; the least and the largest first step that are left as they are, and
-- the step in the place of others (external.lua). SLSQP steps less in flat directions, as the gradient is shorter
-- there, and rounding of float32 then ends its progress: its first step is longer.
local algorithms = {
  slsqp = { name = "LD_SLSQP", inequalities = true, equalities = true, first_step = { 1e-3, 10, 0.3 } },
  mma = { name = "LD_MMA", inequalities = true, first_step = { 1e-4, 1, 0.03 } },
  ccsa = { name = "LD_CCSAQ", inequalities = true, first_step = { 1e-4, 1, 0.03 } },
  lbfgs = { name = "LD_LBFGS", first_step = { 1e-4, 1, 0.1 } },
  auglag = { name = "LD_AUGLAG", inequalities = true, equalities = true },
}

-- variables from which its dense matrices are felt: the cube of their number in every step
local SLSQP_MANY = 500

-- ---- one run of the library ----------------------------------------------------------------------------------------

-- A list { at, limit, scale, tolerance } of the equality or the inequality constraints, divided by their scales, since
-- NLopt does not scale them. at: their place in an entry's values.
local function of_kind(work, equal)
  local out = {}
  for k, c in ipairs(work.constraints) do
    if c.equal == equal then
      out[#out + 1] = { at = k + 1, limit = c.limit, scale = c.scale, tolerance = c.tolerance / c.scale }
    end
  end
  return out
end

-- NLopt's callback for objective and gradient. 0 once the solve is stopped.
local function objective_of(self, work)
  return ffi.cast("nlopt_func", function(_, x, gradient)
    local entry = work:at(x)
    if work.stopped then N.nlopt_force_stop(self.opt) end
    return entry and work:objective(entry, gradient) or 0
  end)
end

-- NLopt's callback for values and gradients of constraints, (value - limit) / scale; zeros once the solve is stopped.
local function constraints_of(self, work, list)
  return ffi.cast("nlopt_mfunc", function(_, result, n, x, gradient)
    local entry = work:at(x)
    if work.stopped then N.nlopt_force_stop(self.opt) end
    for k, c in ipairs(list) do
      result[k - 1] = entry and (entry.values[c.at] - c.limit) / c.scale or 0
      local grad = gradient ~= nil and entry and entry.grads[c.at]:data()
      for j = 0, grad and n - 1 or -1 do gradient[(k - 1) * n + j] = grad[j] / c.scale end
    end
  end)
end

-- Gives NLopt the constraints of one kind, equal or not.
local function add_constraints(self, work, equal)
  local list = of_kind(work, equal)
  if #list == 0 then return end
  local tolerance = ffi.new("double[?]", #list)
  for k, c in ipairs(list) do tolerance[k - 1] = c.tolerance end
  local callback = constraints_of(self, work, list)
  self.callbacks[#self.callbacks + 1] = callback
  local add = equal and N.nlopt_add_equality_mconstraint or N.nlopt_add_inequality_mconstraint
  add(self.opt, #list, callback, nil, tolerance)
end

-- A new NLopt optimizer of an algorithm with the parameter tolerance of self, for `count` parameters.
local function make(self, algorithm, count)
  local opt = N.nlopt_create(N.nlopt_algorithm_from_string(algorithms[algorithm].name), count)
  if opt == nil then
    is.fail("cq.Optimizer.nlopt: NLopt cannot make %s for %s", algorithm, text.count(count, "parameter"))
  end
  opt = ffi.gc(opt, N.nlopt_destroy)
  N.nlopt_set_xtol_rel(opt, self.parameter_tolerance)
  return opt
end

-- Makes the NLopt optimizer in self.opt: bounds, constraints and the callbacks that evaluate them, which live as long.
local function prepare(self, work)
  self.opt, self.callbacks = make(self, self.algorithm, work.count), {}
  -- an objective that does not count is always the same
  N.nlopt_set_ftol_rel(self.opt, work.stage == "objective" and self.objective_tolerance or 0)
  N.nlopt_set_lower_bounds(self.opt, work.vector.lower)
  N.nlopt_set_upper_bounds(self.opt, work.vector.upper)
  self.callbacks[1] = objective_of(self, work)
  N.nlopt_set_min_objective(self.opt, self.callbacks[1], nil)
  add_constraints(self, work, false)
  add_constraints(self, work, true)
  if self.algorithm ~= "auglag" then return end
  local inner = make(self, self.inner, work.count)
  N.nlopt_set_ftol_rel(inner, self.objective_tolerance)
  N.nlopt_set_maxeval(inner, self.inner_iterations)
  N.nlopt_set_local_optimizer(self.opt, inner)
end

-- Runs NLopt from x, which it changes; returns its result. It calls back into Lua, which a compiled trace must not: the
-- next line turns compilation off.
local function optimize(opt, x, value) return N.nlopt_optimize(opt, x, value) end
jit.off(optimize)

local results = {
  [1] = "success", [2] = "the objective fell to its goal", [3] = "the objective changes no more",
  [4] = "the parameters change no more",
  [5] = "all evaluations were made", [6] = "time is over", [-1] = "NLopt failed",
  [-4] = "rounding errors end the progress",
}

local INVALID, NO_MEMORY, ROUNDING, FORCED = -2, -3, -4, -5

-- How NLopt ended, "converged" or "stopped"; nil if a callback of ours has stopped it. Sets self.message. Errors: NLopt
-- refuses the problem.
local function verdict_of(self, result)
  local words = N.nlopt_get_errmsg(self.opt)
  self.message = words ~= nil and ffi.string(words) or results[result]
  if result == INVALID or result == NO_MEMORY then
    is.fail("cq.Optimizer.nlopt: NLopt refuses: %s", self.message or "invalid arguments")
  end
  if result == FORCED then
    self.message = nil
    return nil
  end
  return (result > 0 and result < 5 or result == ROUNDING) and "converged" or "stopped"
end

-- Runs one stage in NLopt; returns its verdict.
local function run(self, work)
  prepare(self, work)
  local result = optimize(self.opt, work:start(), ffi.new "double[1]")
  return verdict_of(self, tonumber(result))
end

-- ---- an optimizer --------------------------------------------------------------------------------------------------

---Algorithms of NLopt, from cq.Optimizer.nlopt.
---@class cq.Nlopt : cq.Optimizer
---@field algorithm string
---@field message string?           what NLopt said at the end of the last solve
local Nlopt = external.class("cq.Nlopt", "nlopt", run, function(opt) N.nlopt_destroy(opt) end)

---@internal
---Raises an error if the algorithm does not take a constraint: any for lbfgs, equalities for mma and ccsa.
---@param constraints cq.Constraint[]
---@param what string             for errors
function Nlopt:check_constraints(constraints, what)
  local takes = algorithms[self.algorithm]
  for _, c in ipairs(constraints) do
    if not takes.inequalities then
      is.fail("%s: lbfgs of NLopt takes no constraints; slsqp, mma, ccsa and auglag do", what)
    elseif c.equal and not takes.equalities then
      is.fail("%s: %s of NLopt takes no equalities, as that of %s; slsqp and auglag do, cq.Optimizer.ipopt and "
        .. "cq.Optimizer.augmented_lagrangian too", what, self.algorithm, c.name)
    end
  end
end

---@internal
---Warns where slsqp, also within auglag, has more than 500 parameters: its steps take time with the cube of them.
---@param count integer           numbers of all parameters
function Nlopt:check_size(count)
  local dense = self.algorithm == "slsqp" or self.algorithm == "auglag" and self.inner == "slsqp"
  if count <= SLSQP_MANY or not dense then return end
  message.warn("cq.Optimizer.nlopt: slsqp with %d parameters: each of its steps takes time with the cube of their "
    .. "number, seconds at 1,000; for so many take algorithm = \"mma\" or \"ccsa\" (no equalities), cq.Optimizer.ipopt "
    .. "or cq.Optimizer.augmented_lagrangian", count)
end

-- The optimizer in one line: its algorithm.
function Nlopt:__tostring() return ("cq.Optimizer.nlopt { %s }"):format(self.algorithm) end

local spec = is.define("cq.Optimizer.nlopt", {
  algorithm = is.one_of { "slsqp", "mma", "ccsa", "lbfgs", "auglag" },
  objective_tolerance = is.number { min = 0, default = 1e-8 },
  parameter_tolerance = is.number { min = 0, default = 1e-8 },
  inner = is.one_of { "lbfgs", "mma", "ccsa", "slsqp", optional = true },
  inner_iterations = is.integer { min = 1, optional = true },
})

---cq.Optimizer.nlopt: checks the fields and loads NLopt. Errors: inner fields without auglag; the library is not
---installed.
---@param def cq.Optimizer.nlopt.def
---@return cq.Nlopt
return function(def)
  local self = spec(def)
  if self.algorithm ~= "auglag" and (self.inner or self.inner_iterations) then
    is.fail("cq.Optimizer.nlopt: inner and inner_iterations are for algorithm = \"auglag\", got \"%s\"", self.algorithm)
  end
  load()
  self.inner, self.inner_iterations = self.inner or "lbfgs", self.inner_iterations or 100
  self.first_step = algorithms[self.algorithm].first_step or algorithms[self.inner].first_step
  return Nlopt.new(self)
end
