-- ensemble: an objective over variants of an experiment: the same parameters in simulations that differ.
--
--   variants = function(random, k) return { change = { stiffness = 0.1 * random:normal():item(), noise = 0.05 } } end
--   variants = { {}, { change = { grid = 0.8 } }, { friction = 0.3 }, { world = slope } }
--   variants = { count = 16, each = function(random, k) ... end, fixed = true }
--   reduce   = "mean", "worst", or { cvar = 0.3 }, the mean of the worst three tenths
--
-- Variants that share a world and its steps are the scenes of one batch, others come one after another. All are on one
-- tape: the gradient is that of the reduced loss. A variant that a function draws and that cannot begin, as a body that
-- is put into a wall, or a world that the function cannot make, is left out of its iteration; in a list it is an error.
-- So is one that is drawn anew for each iteration and whose simulation fails, where that of the experiment itself does
-- not. A variant whose steps are too long for its values, where those of the experiment are not, has more substeps, and
-- the others do not.
local C = require("cq.base.engine").C
local changed = require "cq.experiment.changed"
local changes = require "cq.robustness.changes"
local constrained = require "cq.experiment.constrained"
local follow = require "cq.experiment.follow"
local given_variants = require "cq.experiment.variants"
local is = require "cq.base.schema"
local levels = require "cq.experiment.levels"
local message = require "cq.base.message"
local option = require "cq.option"
local random = require "cq.random"
local recover = require "cq.experiment.recover"
local text = require "cq.base.text"
local T = require "cq.tensor"
local together = require "cq.experiment.together"
local unstable = require "cq.rollout.unstable"
local variant_steps = require "cq.experiment.variant_steps"

local ensemble = {}

local ITERATIONS = 2 ^ 20      -- of a seed, whose variants have numbers of their own
local MOST = given_variants.MOST
local SPREAD = 2654435761      -- Knuth's multiplier: seeds of the program lie far apart among the 2^32 seeds of noise

---@class cq.Experiment.variant.def : run.changes.def
---@field change? table<string, number>    by names of cq.robustness: stiffness, density, friction, strength and gravity by a share; substeps and
---  grid by a factor; place in cells; noise and latency; precision = 1: the other

local variant_spec = is.define("cq.Experiment: variant", changed.fields { change = is.table { default = {} } })

-- ---- those of a stage -----------------------------------------------------------------------------------------------

---The variants of a stage, with its `reduce` if given: its own, none where it says false, else the experiment's.
---@param run cq.Experiment
---@param stage cq.Plan.stage.def
---@return table?               as variants.of gives it
function ensemble.of_stage(run, stage)
  if stage.variants == nil and stage.reduce == nil then return run.own_ensemble end
  local what = ("run:optimize: stage %q"):format(stage.name)
  if stage.variants ~= nil then return given_variants.of(stage.variants, stage.reduce, what) end
  return given_variants.with_reduce(run.own_ensemble, stage.reduce, what)
end

---Raises an error if variants cannot be trained: in an experiment of several scenes, by an optimizer that compares
---losses of iterations although variants are drawn for each, or beside a constraint called mean or worst.
---@param run cq.Experiment
---@param own table?            from of_stage, or variants.of
---@param optimizer cq.Optimizer?
---@param what string
function ensemble.check(run, own, optimizer, what)
  if not own then return end
  if run.scenes then is.fail("%s: variants are for an experiment of one scene; make them scenes, or scenes variants", what) end
  if optimizer and optimizer.chooses_points and not own.fixed then
    is.fail("%s: cq.Optimizer.%s compares losses of different iterations, and variants that are drawn anew for each are not the same problem: give variants = { each = ..., fixed = true }",
      what, optimizer.kind)
  end
  for _, c in ipairs(run.constraints) do
    if c.name == "mean" or c.name == "worst" then
      is.fail("%s: a constraint cannot be called %s, which is a column of the history of variants", what, c.name)
    end
  end
end

-- ---- one variant ----------------------------------------------------------------------------------------------------

-- Raises an error if a change of substeps makes steps that are too long for the world of a variant (def, checked).
local function refuse_long_steps(run, def)
  local size = def.change.substeps
  if not size or size >= 1 then return end
  local world = changed.world(run, def)
  if world.def.integrator then return end
  local courant = world.courant * world.substeps / world:times_substeps(size)
  if courant <= world.courant_max then return end
  is.fail("cq.Experiment: variant: change.substeps = %s makes steps too long: the Courant number would be %.3g, and must be at most %s; %.2g or more makes steps that are short enough",
    text.number(size), courant, text.number(world.courant_max),
    math.ceil(100 * math.ceil(world.courant * world.substeps / world.courant_max) / world.substeps) / 100)
end

-- Raises an error if a variant (def, checked) asks for a change that has no such name, a size that it cannot have, or
-- nothing to act on. This and the next functions do not say which variant: of_variant adds that.
local function refuse_change(run, def)
  local known, by_name = {}, {}
  for i, entry in ipairs(changes.list) do known[i], by_name[entry.name] = entry.name, entry end
  for name, size in pairs(def.change) do
    if not by_name[name] then
      is.fail("cq.Experiment: variant: change has no %s%s; it has %s", text.describe(name),
        text.suggestion(tostring(name), known), table.concat(known, ", "))
    end
    is.argument("cq.Experiment: variant", "change." .. name, by_name[name].allowed, size)
    local why = changes.no_effect(run, name, def)
    if why then is.fail("cq.Experiment: variant: change.%s has no effect: %s", name, why) end
  end
  refuse_long_steps(run, def)
end

-- Raises an error if `other`, the experiment of a variant, has scenes or variants of its own, or other parameters than
-- the main one.
local function require_alike(run, other)
  for name, has in pairs { scenes = other.scenes, variants = other.own_ensemble } do
    if has then is.fail("cq.Experiment: a variant is an experiment with %s of its own, which are not simulated", name) end
  end
  local paths = {}
  for _, leaf in ipairs(T.leaves.list(other.params)) do paths[leaf.path] = true end
  for _, leaf in ipairs(T.leaves.list(run.params)) do
    if not paths[leaf.path] then
      is.fail("cq.Experiment: a variant is an experiment without the parameter %s of the one that is trained", leaf.path)
    end
    paths[leaf.path] = nil
  end
  local more = next(paths)
  if more then
    is.fail("cq.Experiment: a variant is an experiment with the parameter %s, which the one that is trained has not", more)
  end
end

-- Raises an error if `other`, the experiment of a variant, lacks a constraint of the main one.
local function require_constraints(run, other)
  for _, c in ipairs(run.constraints) do
    local found = false
    for _, own in ipairs(other.constraints) do found = found or own.name == c.name end
    if not found then
      is.fail("cq.Experiment: a variant is an experiment without the constraint %s of the one that is trained", c.name)
    end
  end
end

-- The random generator of variant k at an iteration, the same at each for fixed variants. Its seed does not depend on
-- the number of variants. own: the ensemble.
local function generator_of(own, k, iteration)
  local seed = option.program.seed or 0
  return random { seed = (seed % ITERATIONS * ITERATIONS + (own.fixed and 0 or iteration)) * MOST + k - 1 }
end

-- The seed of the noise of variant k at an iteration, below 2^32. own: the ensemble.
local function noise_seed(own, k, iteration)
  local seed = option.program.seed or 0
  return ((own.fixed and 0 or iteration) * MOST + k + seed % ITERATIONS * SPREAD) % 2 ^ 32
end

-- What the user's function gives for variant k in an iteration, unchecked, and true: it has given it.
local function drawn_for(own, k, iteration) return own.each(generator_of(own, k, iteration), k), true end

-- The variant that the user's function gave, a checked definition or an experiment. Errors: something else; a change
-- that cannot be made; other constraints.
local function checked(run, given)
  if text.is_instance(given, "cq.Experiment") then
    if given ~= run then require_alike(run, given) end
    require_constraints(run, given)
    return given
  elseif type(given) ~= "table" then
    is.fail("cq.Experiment: a variant must be a table, as { change = { stiffness = 0.05 } }, or a cq.Experiment, got %s",
      text.describe(given))
  end
  local def = variant_spec(given)
  refuse_change(run, def)
  return def
end

-- Notes once how large the cells of a world are that was sampled again for change.grid, if the ground asks for others.
local function tell_cells(world, factor)
  local finer = world and (world.refines and world or world.variant_of)
  if not (factor and finer and finer.refines) then return end
  local share = finer.dx / finer.refines.dx
  if math.abs(share / factor - 1) > 0.01 then
    message.note_once("change.grid = %s: cells are %.3g times as large, so that the ground is on a node",
      text.number(factor), share)
  end
end

-- The definition of variant k's rollout, its experiment and its parameters, which on another grid are others than
-- `params`. given: the variant, checked; of: { iteration, steps, policies }, with the policies made so far by body or
-- experiment.
local function define(run, params, k, of, given)
  local steps, policies = of.steps, of.policies
  if text.is_instance(given, "cq.Experiment") then
    if given ~= run then follow(run, given) end
    local own = levels.carried(run, params, given)
    return given:rollout_def(own, { steps = steps }), given, own
  end
  local fields, seed = changed.take(given), noise_seed(run.ensemble, k, of.iteration)
  local other, at, made = changes.of(run, params, given.change, seed, fields)
  tell_cells(made.world, given.change.grid)
  if steps then made.steps, made.duration = math.min(steps, made.steps or steps), nil end
  local key = made.body or other
  policies[key] = policies[key] or other:policy(at, made.body)
  return other:rollout_def(at, made, policies[key]), other, at
end

-- Calls f(...); an error names variant k of the ensemble `own`.
local function of_variant(own, k, f, ...)
  -- Passes on the results of pcall; an error gets the number of the variant.
  local function finish(fine, ...)
    if fine then return ... end
    local problem = ...
    if type(problem) == "string" then problem = is.with_more(problem, " (variant %d of %d)", k, own.count) end
    error(problem, 0)
  end
  return finish(pcall(f, ...))
end

---Raises the error of a listed variant of a stage: an unknown change, or other parameters than the experiment's; of the
---stage that begins also a rollout that cannot be defined: another pace of signals, or a body that does not fit.
---Nothing is simulated.
---@param run cq.Experiment
---@param own table?            from of_stage
---@param is_now boolean        the stage begins now, so that the experiment has its body and its options
---@param stage? string         its name, for errors, where the list is its own
function ensemble.check_list(run, own, is_now, stage)
  if not (own and own.listed) then return end
  local before, of = run.ensemble, { iteration = 1, policies = {} }
  run.ensemble = own
  local fine, problem = pcall(T.tape.pause, function()
    for k = 1, own.count do
      local given = of_variant(own, k, checked, run, (drawn_for(own, k, 1)))
      if text.is_instance(given, "cq.Experiment") then of_variant(own, k, levels.carried, run, run.params, given) end
      if is_now then of_variant(own, k, define, run, run.params, k, of, given) end
    end
  end)
  run.ensemble = before
  if fine then return end
  error(stage and type(problem) == "string" and is.with_more(problem, " (stage %q)", stage) or problem, 0)
end

-- ---- all of them ----------------------------------------------------------------------------------------------------

-- The weight of each loss in the reduced one: a list of numbers that add up to 1. reduce: "mean", "worst", or { cvar =
-- share }. Of a worst share, the losses in it weigh the same, and the one at its edge the rest. losses: tensors of rank
-- 0.
local function weights_of(reduce, losses)
  local count, out, order = #losses, {}, {}
  if reduce == "mean" then
    for k = 1, count do out[k] = 1 / count end
    return out
  end
  for k = 1, count do order[k], out[k] = k, 0 end
  table.sort(order, function(a, b)
    local x, y = losses[a]:item(), losses[b]:item()
    if x ~= y then return x > y end
    return a < b
  end)
  local left = reduce == "worst" and 1 or math.max(1, reduce.cvar * count)
  local all = left
  for _, k in ipairs(order) do
    local part = math.min(1, left)
    out[k], left = part / all, left - part
  end
  return out
end

-- The weighted sum of tensors of rank 0, without those of weight 0, so that no gradient is computed for them.
local function weighted(list, weights)
  local sum
  for k, weight in ipairs(weights) do
    if weight > 0 then sum = sum and sum + list[k] * weight or list[k] * weight end
  end
  return sum
end

-- The value of a constraint over all variants, from the list of its values in each: an upper limit by `reduce` (as in
-- weights_of) of its own values, since larger is worse; one with `equal` by the mean.
local function reduced_constraint(c, list, reduce)
  return weighted(list, weights_of(c.equal and "mean" or reduce, list))
end

-- Counts variant k of an iteration among those to which `what` happens; returns how many there were, nil where it is
-- not to be told: it is the first time, and each time that the count has doubled. own: the ensemble.
local function count(own, what, k, iteration)
  own[what] = own[what] or { count = 0, told = 1 }
  local seen, key = own[what], (own.fixed and 0 or iteration) * MOST + k
  if seen[key] then return nil end
  seen[key], seen.count = true, seen.count + 1
  if seen.count < seen.told then return nil end
  seen.told = 2 * seen.count
  return seen.count
end

-- Counts variant k as left out of an iteration because of the error `problem`, and warns of it. what: it "cannot
-- begin", or "fails".
local function leave_out(own, k, iteration, what, problem)
  own.cause = problem
  local number = count(own, "left_out", k, iteration)
  if not number then return end
  message.warn("variant %d of iteration %d %s and is left out (%d so far): %s", k, iteration, what, number,
    text.sentence(problem))
end

---At the beginning of a stage: forgets what was counted in earlier ones.
---@param own table?            the ensemble
---@param is_first boolean      of its plan: no update was made before it
function ensemble.begin(own, is_first)
  if own then own.left_out, own.refined, own.cause, own.is_first = nil, nil, nil, is_first end
end

---At the end of a stage: tells how many variants were left out in all, if more were than was told.
---@param own table?            the ensemble
---@param iterations integer    that this process has made of it
function ensemble.tell_left_out(own, iterations)
  local seen = own and own.left_out
  if not seen or seen.count <= seen.told / 2 then return end
  local all = own.fixed and own.count or own.count * iterations
  message.warn("%d of the %s%s were left out in all", seen.count, text.count(all, "variant"),
    own.fixed and "" or iterations == 1 and " of this iteration" or (" of these %d iterations"):format(iterations))
end

-- Is this the error of a drawn variant that cannot begin? A simulation that fails later may do so by an update of the
-- parameters: see is_at_fault. Nor is it one of a misspelt field, which is a mistake of the script.
local function cannot_begin(own, problem)
  return not own.listed and is.is_failure(problem) and not problem:find(": unknown field ", 1, true)
    and not recover.is_of_simulation(problem) and not recover.is_of_memory(problem) and C.cq_interrupted() == 0
end

-- Returns f(...), or nothing if a drawn variant k cannot begin, which is then left out of the iteration.
local function attempt(own, k, iteration, f, ...)
  -- Returns the results of f from those of pcall. After the error of a drawn variant that cannot begin, returns nothing
  -- and leaves variant k out; raises any other error.
  local function finish(fine, ...)
    if fine then return ... end
    local problem = ...
    if not cannot_begin(own, problem) then error(problem, 0) end
    leave_out(own, k, iteration, "cannot begin", problem)
  end
  return finish(pcall(f, ...))
end

-- Gives those variants of a batch more substeps in defs whose steps are too long for their values, unless the steps of
-- the experiment itself are, and tells of them; returns nothing where there is no such variant. group: their places in
-- defs. of: as for `rollouts`.
local function refine(of, group, defs)
  local own, any = of.run.ensemble, false
  if of.is_nominal == nil then of.is_nominal = variant_steps.is_nominal(of.run, of.params) end
  if of.is_nominal then return end
  for _, at in ipairs(group) do
    local k, before = of.numbers[at], defs[at]
    defs[at] = of_variant(own, k, attempt, own, k, of.iteration, variant_steps.refined, before) or false
    local now = defs[at] and defs[at].world.substeps
    any = any or defs[at] ~= before
    local number = now and defs[at] ~= before and count(own, "refined", k, of.iteration)
    if number then
      message.note("variant %d of iteration %d is simulated with substeps = %d and not %d (%d so far): its values are too stiff, too light or too fast for longer steps",
        k, of.iteration, now, before.world.substeps, number)
    end
  end
  return any
end

-- Is the experiment itself simulated to its end with these parameters? of: as for `rollouts`.
local function survives(of)
  if of.survives == nil then
    T.tape.pause(function()
      local fine, found, whole = pcall(together.rollouts, { of.run:rollout_def(of.params, { steps = of.steps }) })
      if fine then whole:release() elseif not recover.is_of_simulation(found) then error(found, 0) end
      of.survives = fine
    end)
  end
  return of.survives
end

-- Did a variant fail because of how it was drawn for this iteration alone? It did where the experiment itself is
-- simulated to its end; else an update of the parameters did it, in this stage or in one before it, which is the
-- business of cq.experiment.recover. of: as for `rollouts`. problem: its error. Errors: it is the same in all
-- iterations, and fails before any update.
local function is_at_fault(of, problem)
  local own = of.run.ensemble
  if not own.fixed then return survives(of) end
  if of.iteration == 1 and own.is_first ~= false and survives(of) then
    is.fail("cq.Experiment: a variant fails before any update of its stage, where the simulation without its changes does not; "
      .. "change less, or give it shorter steps (change = { substeps = 2 }): it %s",
      (text.sentence(problem):gsub("^.-the simulation failed", "failed")))
  end
  return false
end

-- Simulates variants by their rollout definitions. Returns a table of rollouts by position in defs, without variants
-- that cannot begin, and a list of the rollouts to be released: a batch is released as a whole. of: { run, params,
-- iteration, numbers }, with the k of each variant in defs. Variants whose steps are too long get more of them. Where a
-- batch cannot begin, each of its variants is simulated alone, to find the one at fault.
-- Errors: a simulation that fails later, unless the draw of its variant is at fault; with the number of the variant.
local function rollouts(of, defs)
  local own, iteration, numbers, rolls, wholes = of.run.ensemble, of.iteration, of.numbers, {}, {}
  local simulate
  -- Simulates the variants at the places `list` of defs, those together that can be.
  local function all_of(list, is_refined)
    local members, places = {}, {}
    for _, at in ipairs(list) do
      if defs[at] then members[#members + 1], places[#places + 1] = defs[at], at end
    end
    for _, group in ipairs(together.groups(members)) do
      for i, k in ipairs(group) do group[i] = places[k] end
      simulate(group, is_refined)
    end
  end
  -- Simulates the variants of one batch. is_refined: they have had more substeps where they needed them.
  function simulate(group, is_refined)
    local members = {}
    for i, at in ipairs(group) do members[i] = defs[at] end
    unstable.scene = nil
    local fine, found, whole = pcall(together.rollouts, members)
    if fine then
      wholes[#wholes + 1] = whole
      for i, at in ipairs(group) do rolls[at] = found[i] end
      return
    end
    if not is_refined and recover.is_of_courant(found) and refine(of, group, defs) then return all_of(group, true) end
    local failed = recover.is_of_simulation(found) and (#group == 1 and 1 or unstable.scene)
    if failed then
      local k = numbers[group[failed]]
      if not of_variant(own, k, is_at_fault, of, found) then of_variant(own, k, error, found, 0) end
      leave_out(own, k, iteration, "fails", found)
      table.remove(group, failed)
      if #group > 0 then simulate(group, is_refined) end
      return
    end
    if #group == 1 then
      of_variant(own, numbers[group[1]], attempt, own, numbers[group[1]], iteration, error, found, 0)
      return
    end
    if not is.is_failure(found) or C.cq_interrupted() ~= 0 then error(found, 0) end
    for _, at in ipairs(group) do simulate({ at }, is_refined) end
  end
  local all = {}
  for i = 1, #defs do all[i] = i end
  all_of(all, false)
  return rolls, wholes
end

-- The loss of a variant, a tensor of rank 0. Errors: it is not finite, and has no place among the others.
local function finite_loss(run, roll)
  local loss = run:loss(roll)
  local x = loss:item()
  if x - x ~= 0 then is.fail("cq.Experiment: the loss is %s, which is no finite number", text.number(x)) end
  return loss
end

local Rollouts = { __name = "cq.Rollouts" }
Rollouts.__index = Rollouts

-- Frees the rollouts of all variants.
function Rollouts:release()
  for _, whole in ipairs(self.wholes) do whole:release() end
end

---The objective and all constraints over the variants of an experiment, by name, and beside them mean and worst of the
---losses. Adds particles times engine steps of their simulations to run.particle_steps.
---Errors: no variant can begin; all of them fail; a loss that is not finite.
---@param run cq.Experiment      with an ensemble
---@param params table
---@param steps? integer         the experiment's unless given
---@return table<string, cq.Tensor> numbers
---@return { release: function } rolls
function ensemble.numbers(run, params, steps)
  local own, defs, runs, points, numbers = run.ensemble, {}, {}, {}, {}
  local iteration = run.iteration or 1
  local of = { run = run, params = params, iteration = iteration, steps = steps, policies = {}, numbers = numbers }
  for k = 1, own.count do
    local given, is_made = of_variant(own, k, attempt, own, k, iteration, drawn_for, own, k, iteration)
    local def, other, at
    if is_made then
      given = of_variant(own, k, checked, run, given)
      def, other, at = of_variant(own, k, attempt, own, k, iteration, define, run, params, k, of, given)
    end
    if def then defs[#defs + 1], runs[#runs + 1], points[#points + 1], numbers[#numbers + 1] = def, other, at, k end
  end
  local rolls, wholes = rollouts(of, defs)
  for _, whole in ipairs(wholes) do whole.on_reversed = run.on_reversed end
  local losses, constraints, found = {}, {}, {}
  for i, k in ipairs(numbers) do
    local roll = rolls[i]
    if roll then
      local def = defs[i]
      run.particle_steps = (run.particle_steps or 0) + def.world.particle_count * def.world.substeps * def.fields.steps
      losses[#losses + 1] = of_variant(own, k, finite_loss, runs[i], roll)
      for name, value in pairs(of_variant(own, k, constrained.values, runs[i], points[i], roll)) do
        constraints[name] = constraints[name] or {}
        constraints[name][#losses] = value
      end
    end
  end
  if #losses == 0 and recover.is_of_simulation(own.cause) then error(own.cause, 0) end
  if #losses == 0 then
    is.fail("cq.Experiment: none of the %d variants of iteration %d can begin: %s", own.count, iteration,
      text.sentence(own.cause))
  end
  for _, c in ipairs(run.constraints) do found[c.name] = reduced_constraint(c, constraints[c.name], own.reduce) end
  found.objective = weighted(losses, weights_of(own.reduce, losses))
  local all = T.stack(losses):detach()
  found.mean, found.worst = all:mean(), all:max()
  return found, setmetatable({ wholes = wholes }, Rollouts)
end

return ensemble
