-- solve: optimizer:solve, a whole optimisation of a function of the user's, with constraints where the optimizer takes
-- them.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local message = require "cq.base.message"
local option = require "cq.option"
local constraint = require "cq.optimizer.constraint"
local signature = require "cq.run.signature"
local solver = require "cq.optimizer.solver"

local solve = {}

---@class optimizer.solve.constraint.def
---@field name string           of a number that f gives
---@field at_most? number       its largest value; or equal
---@field equal? number         its value; or at_most
---@field tolerance? number     violations up to it are none; 1e-4 of the limit unless given, or 1e-4 where that is 0

local constraint_spec = is.define("optimizer:solve: constraint", constraint.fields)

solve.minimize = is.list(is.one_of { "violation", "objective" }, { min = 1, default = { "objective" } })

---@class optimizer.solve.def
---@field iterations integer    evaluations of f at most, those of a solve that is gone on with included
---@field constraints? optimizer.solve.constraint.def[]   what must be kept, by the names of numbers that f gives
---@field minimize? ("violation"|"objective")[]   one after the other. "violation": constraints alone, until they are
---  kept; "objective": all
---@field folder? string        history.csv, parameters and state are written there, as by run:optimize
---@field resume? boolean       go on from what lies in the folder; --resume unless given
---@field state? table          go on from the state of an earlier solution
---@field on_iteration? fun(iteration: integer, values: table<string, number>, params: any)   called after each evaluation

local spec = is.define("optimizer:solve", {
  iterations = is.integer { min = 0, max = 2 ^ 31 - 1 },
  constraints = is.list(is.table(), { default = {} }),
  minimize = solve.minimize,
  folder = is.string { optional = true },
  resume = is.boolean { optional = true },
  state = is.table { optional = true },
  on_iteration = is.callable { optional = true },
}, nil, is.renamed { after = "on_iteration", stages = "minimize" })

---Raises an error if the method cannot handle the constraints, or minimize begins with "violation" and there are none.
---@param optimizer cq.Optimizer
---@param constraints cq.Constraint[]
---@param minimize string[]    "violation" and "objective", one after the other
---@param what string
---@param given_as? string     where another optimizer is given, for the end of a sentence
function solve.check(optimizer, constraints, minimize, what, given_as)
  if #constraints == 0 and minimize[1] == "violation" then
    is.fail("%s: minimize \"violation\" needs constraints", what)
  end
  if #constraints > 0 and (optimizer.rule or optimizer.parts) then
    is.fail("%s: cq.Optimizer.%s knows no constraints; put it into cq.Optimizer.augmented_lagrangian { inner = ... }, "
      .. "or take cq.Optimizer.nlopt or cq.Optimizer.ipopt%s", what, optimizer.kind, given_as or "")
  end
  if optimizer.check_constraints then optimizer:check_constraints(constraints, what) end
end

-- A function that calls f and returns the same, but for a single number or tensor, which becomes { objective = it }.
local function named(f)
  -- A user's single number or tensor as a table of the objective.
  local function name(value, ...)
    if T.is_tensor(value) or type(value) == "number" then value = { objective = value } end
    return value, ...
  end
  return function(...) return name(f(...)) end
end

-- The cq.Run in whose folder a solve is recorded; nil where it has no folder. Errors: resume without a folder.
local function open(def)
  if not def.folder then
    if def.resume then
      is.fail("optimizer:solve: resume needs the folder that the solve has written; state goes on from a solution")
    end
    return nil
  end
  return require("cq.run").open { iterations = def.iterations, folder = def.folder, resume = def.resume }
end

-- Finishes the cq.Run of a solve, and prints what the solution violates where no point keeps all constraints; does
-- nothing for a solve without a run.
local function close_folder(run, solution)
  if not run then return end
  run:finish()
  if not solution.feasible then
    message.note("no point keeps all constraints; nearest is %s; loosen what is violated, or allow more iterations",
      solution:violations())
  end
end

-- The cq.Signature by which a resumed solve is recognised: `problem`, the constraints, which must be the same, and
-- `manner`, the optimizer, minimize and the parameters' bounds and rates, of which a change is a warning. It knows
-- nothing of the user's function.
local function signature_of(optimizer, params, constraints, minimize)
  local problem, manner = {}, { minimize = signature.word(minimize) }
  signature.add_constraints(problem, constraints)
  signature.add_optimizer(manner, optimizer, "optimizer")
  signature.add_params(manner, params)
  return { problem = problem, manner = manner }
end

-- The state of the solve that was saved in a folder, where a script is run again without training (cqlua robust); nil
-- elsewhere, and where no solve has saved a point.
local function state_to_replay(folder)
  if not (option.program.replay and folder) then return nil end
  require("cq.run.taken").add(folder)
  local saved = require("cq.run").saved_in(folder)
  local state = saved and saved.optimizer
  return not is.problem(solver.saved_fields, state) and state.best and state or nil
end

---Minimises f from params on; where the script is run again without training, gives what the folder has, and evaluates
---nothing. Errors: constraints that the optimizer cannot handle; no trainable tensor.
---@param optimizer cq.Optimizer
---@param params any            params or tensors in nested tables; become the best point found
---@param f fun(params: any): cq.Tensor|table<string, cq.Tensor|number>, ...   the objective, or a table of named
---  numbers with it
---@param fields optimizer.solve.def
---@return cq.Solution
function solve.run(optimizer, params, f, fields)
  is.argument("optimizer:solve", "f", is.callable(), f)
  local def = spec(fields == nil and {} or fields)
  local constraints = constraint.list(def.constraints, constraint_spec, "optimizer:solve")
  solve.check(optimizer, constraints, def.minimize, "optimizer:solve")
  T.leaves.trainable(params, "optimizer:solve")
  if option.program.check then def.iterations = math.min(def.iterations, 1) end
  local replayed = state_to_replay(def.folder)
  local run = not replayed and open(def) or nil
  local problem = solver.new {
    optimizer = optimizer, params = params, f = named(f), constraints = constraints, iterations = def.iterations,
    minimize = def.minimize,
    signature = signature_of(optimizer, params, constraints, def.minimize),
    on_iteration = def.on_iteration, what = "optimizer:solve", run = run,
    saved = replayed or run and run.saved and run.saved.optimizer or def.state,
  }
  local solution = replayed and problem:found(replayed) or problem:solve()
  T.leaves.load(params, problem.best.params, "optimizer:solve")
  close_folder(run, solution)
  return solution
end

return solve
