-- run: saved.bin, what a run leaves so that it can be used without its script: a file of tensors with
--
--   format, version     "cqlua run", and that of what follows
--   origin              program, command, date, Lua files with their hashes
--   result, parameters  loss and iteration of the best, and its parameters, cq.param each
--   steps, weight       of a rollout
--   robots, world       with the values of the best: particles, groups, materials, actuators; grid, walls, steps
--   observer, controller, design
--   stage               of a plan: its name, level and body, and options as the best has them
local T = require "cq.tensor"
local controllers = require "cq.controller"
local host = require "cq.host"
local option = require "cq.option"
local plain = require "cq.saved.plain"
local policy = require "cq.saved.policy"
local robots = require "cq.saved.robot"
local selection = require "cq.robot.selection"
local text = require "cq.base.text"
local worlds = require "cq.saved.world"
local tables = require "cq.base.tables"

local run = { format = "cqlua run", version = 4, name = "saved.bin", failure_name = "failure.bin" }

-- The values of gravity, friction and the like, by name, by which rollouts with the parameters `params` differ from the
-- world.
local function changes_of(experiment, params)
  local out = tables.merged(experiment.given, experiment.of_scene)
  for name, value in pairs(params.world or {}) do out[name] = value:detach() end
  return out
end

-- The robots of a world as a list of data (saved/robot.lua), with the values of `body`, a variant of one of them, in
-- its place. out.first is the number of that robot.
local function of_robots(world, body)
  local out, own = {}, selection.robot(world, body, "saved.bin")
  for k, placed in ipairs(world.robots) do
    out[k] = robots.data(placed, placed == own and body or placed)
    if placed == own then out.first = k end
  end
  return out
end

-- A controller that plays a design's signals {steps, signals} in open loop, to which the experiment's own controller,
-- if any, adds its signals.
local function with_feedback(experiment, params, signals)
  local pulses, feedback = controllers.open_loop(signals), experiment.controller
  return feedback and feedback:with(params.controller):with_part("pulses", pulses) or pulses
end

-- World, robot and controller of an experiment with the given parameters; for a design also its tensors (density,
-- amplitudes, signals, ...) by name, else nil.
local function setting(experiment, params)
  local own = experiment.extracted
  if own then
    local pulses = own.design.pulses
    local amplitudes = pulses:rounded(params.design.sign, params.design.magnitude)
    local signals = pulses:signals(amplitudes)
    return own.world, experiment:robot_of(own, params), with_feedback(experiment, params, signals),
      { amplitudes = amplitudes, signals = signals }
  end
  local world, body = experiment.world, experiment:robot_with(params)
  local controller, design = experiment.controller, nil
  if experiment.design then
    local map = experiment.design:map(params.design)
    controller = with_feedback(experiment, params, map.signals)
    design = { density = map.density, shares = map.shares, amplitudes = map.amplitudes, signals = map.signals }
  end
  return world, body, controller, design
end

-- All that cq.load needs of an experiment with the parameters `params`, of several scenes of the first, as a table of
-- tensors, tables and texts. learned: weights that the observer has trained itself, by name, or nil.
local function describe(experiment, params, learned)
  if experiment.scenes then experiment = experiment:scene(1) end
  local world, body, controller, design = setting(experiment, params)
  local out = {
    steps = experiment.steps, weight = experiment.weight, robots = of_robots(world, body),
    world = worlds.data(world, experiment.steps, changes_of(experiment, params)),
    observer = policy.observer_data(experiment.observer, world.robots, tables.merged(learned, params.observer)),
    controller = policy.controller_data(controller, controllers.signals_of(world)),
    design = design and plain.copy(design), stage = plain.copy(experiment.in_stage),
  }
  -- the signals that a design stands for are no parameters of its own
  if design then
    local pulses = out.controller.kind == "sum" and out.controller.fields.parts.pulses or out.controller
    pulses.u = design.signals:detach()
  end
  return out
end

-- Adds format, version and origin to the table `out`, and writes it as the file `name` of a run's folder.
local function write(folder, name, out)
  out.format, out.version = run.format, run.version
  local manifest = folder.manifest
  out.origin = { program = host.version, command = manifest.command, script = manifest.script,
    started = manifest.started, sources = plain.copy(manifest.sources) }
  T.save(folder:path(name), out)
end

---Writes failure.bin of a run: the experiment as run.write describes it, the parameters of the rollout that failed, and
---the failure.
---@param folder cq.Run
---@param params table
---@param experiment cq.Experiment
---@param failure cq.Failure
function run.write_failure(folder, params, experiment, failure)
  local out = T.tape.pause(describe, experiment, params)
  out.parameters, out.failure = params, failure
  write(folder, run.failure_name, out)
end

---Writes saved.bin of a run: the experiment, the best parameters, and their loss and values. Does nothing on ranks but
---the first.
---@param folder cq.Run
---@param best { loss: number, iteration: integer, params: table, values: table?, feasible: boolean?, learned: table? }
---@param experiment? cq.Experiment    nil: parameters of cq.solve, without an experiment
function run.write(folder, best, experiment)
  if option.program.follows then return end
  local out = experiment and T.tape.pause(describe, experiment, best.params, best.learned) or {}
  out.result = { loss = best.loss, iteration = best.iteration, feasible = best.feasible,
    values = plain.copy(best.values) }
  out.parameters = best.params
  write(folder, run.name, out)
end

---Writes saved.bin of a learner's run: its policy without noise and its last mean reward; if its environment is a
---cq.Env, world, robots, observer and the count of numbers in a scene's goal too. Does nothing on ranks but the first.
---@param folder cq.Run
---@param learner cq.Learner
---@param reward? number        mean of the last update; nil where its row is not in the history
function run.write_learned(folder, learner, reward)
  if option.program.follows then return end
  local env, controller = learner.env, learner:controller()
  local out = { parameters = { controller = controller.params },
    result = reward and { loss = -reward, iteration = learner.updates_made } or nil }
  local world = text.is_instance(env, "cq.Env") and env.world
  if world then
    out.steps, out.robots, out.world = env.steps, of_robots(world, world.robots[1]), worlds.data(world, env.steps, {})
    out.observer, out.goals = policy.observer_data(env.observer, world.robots), env.goal_size
  end
  out.controller = policy.controller_data(controller, world and controllers.signals_of(world) or nil)
  write(folder, run.name, out)
end

---Has run.write_learned written this? It has a controller, and not the weight of an experiment.
---@param data table       of a saved.bin
---@return boolean
function run.is_learned(data) return data.controller ~= nil and data.weight == nil and data.stage == nil end

return run
