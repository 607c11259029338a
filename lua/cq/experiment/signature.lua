-- signature: an experiment apart from its parameters, in words, to recognise it when a run is resumed. A user's
-- functions are known by their inputs alone.
local controllers = require "cq.controller"
local ensemble = require "cq.experiment.ensemble"
local variants = require "cq.experiment.variants"
local signature = require "cq.run.signature"
local design_words = require "cq.topology.signature"
local words = require "cq.plan.words"
local text = require "cq.base.text"
local T = require "cq.tensor"

local word = signature.word

-- A text on the values of particles or walls: the one that all have, or the least and the largest.
local function range_of(tensor)
  if tensor.count == 0 then return "none" end
  local least, most = tensor:min():item(), tensor:max():item()
  if least == most then return ("%.6g"):format(least) end
  return ("%.6g to %.6g"):format(least, most)
end

-- Adds a world's settings to the signature `out`, words by name.
local function add_world(out, world)
  out.cells, out.dx, out.dt = word(world.cells), word(world.dx), word(world.control_dt)
  out.particles, out.walls = word(world.particle_count), word(#world.walls)
  for name, value in pairs(world.layout.base) do
    if T.is_tensor(value) then out[name] = range_of(value) end
  end
end

-- Adds the parts of an objective to the signature `out`, words by name.
local function add_objective(out, objective)
  local parts = {}
  for _, name in ipairs { "terminal", "goal", "running", "effort", "work" } do
    if objective[name] then parts[#parts + 1] = name end
  end
  out.objective = table.concat(parts, ", ")
  if objective.running and type(objective.reduce) == "string" then out["objective.reduce"] = objective.reduce end
  local goal = objective.goal
  if goal then
    out["goal.of"] = signature.particles(goal.of)
    out["goal.at"], out["goal.velocity_weight"] = word(goal.at), word(goal.velocity_weight)
  end
end

-- Adds an observer or controller to the signature `out`: one of the library by its fields, a user's own as "one's own".
local function add_policy(out, name, policy, fields)
  if not policy then return end
  out[name] = policy.parts and controllers.words("sum", policy) or policy.family and tostring(policy.family)
    or "one's own"
  for _, field in ipairs(policy.family and fields or {}) do
    if type(policy[field]) ~= "table" or not text.class_of(policy[field]) then
      out[name .. "." .. field] = policy[field] ~= nil and word(policy[field]) or nil
    end
  end
end

-- fields of a stage by which its losses mean something else
local of_problem = { level = true, body = true, train = true, minimize = true, initial = true }

-- Adds how a stage is optimized: settings by which its losses mean something else to `problem`, all others to `manner`,
-- which may change when a run is resumed. Both are words by name.
local function add_stage(problem, manner, stage, optimizer)
  for name, value in pairs(words.record(stage, optimizer)) do
    if of_problem[name] then
      problem[name] = value
    elseif name ~= "iterations" and name ~= "name" then
      manner[name] = value
    end
  end
end

---@param run cq.Experiment
---@param stage cq.Plan.stage.def
---@param optimizer cq.Optimizer
---@return cq.Signature
return function(run, stage, optimizer)
  local own = ensemble.of_stage(run, stage)
  local problem = { ["control steps"] = word(run.steps), weight = run.weight,
    scenes = run.scenes and word(run.scenes.count), variants = variants.words(own) }
  variants.add_words(problem, own)
  add_world(problem, run.world)
  add_objective(problem, run.objective)
  add_policy(problem, "controller", run.controller, { "activation", "hidden", "count", "frequency", "hold" })
  add_policy(problem, "observer", run.observer,
    { "position", "velocity", "acceleration", "clusters", "seed", "weight" })
  -- what an autoencoder has drawn is saved with it
  if run.observer and run.observer.family == "autoencoder" then problem["observer.seed"] = signature.ANY end
  if run.observer and run.observer.family then signature.add_sight(problem, run.observer, "observer") end
  for name, value in pairs(run.own_design and design_words(run.own_design) or {}) do problem["design "
    .. name] = value end
  local changing = {}
  for name in pairs(stage.options.limits or {}) do changing[name] = true end
  signature.add_constraints(problem, run.constraints, changing)
  local world = run.world
  local manner = { gradient = next(run.gradient) and words.of(run.gradient),
    substeps = word(run.first_substeps or world.substeps), precision = world.precision,
    integrator = world.def.integrator and tostring(world.def.integrator) }
  add_stage(problem, manner, stage, optimizer)
  signature.add_params(manner, run.params)
  return { problem = problem, manner = manner }
end
