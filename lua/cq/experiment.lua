-- experiment: a world, a policy and an objective, and the plan that optimizes them; what most scripts need and nothing
-- that they could not write themselves with world:rollout and cq.value_and_grad.
--
--   local run = cq.Experiment {
--     world = world, duration = 4,
--     observer = cq.Observer.kmeans { clusters = 7, velocity = true },
--     controller = cq.Controller.mlp {},
--     objective = {
--       terminal = function(s) return -s:center(robot)[1] end,
--       effort   = function(u) return 1e-8 * u:square():sum() end,
--     },
--     optimizer = cq.Optimizer.adam { rate = 5e-3 },
--     trainable = { young = { min = 7, max = 20, per = "particle" } },
--   }
--   run:optimize { iterations = 100 }
--   run:render "biped.mp4"
local method = require "cq.base.method"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local message = require "cq.base.message"
local option = require "cq.option"
local controllers = require "cq.controller"
local changed = require "cq.experiment.changed"
local control_steps = require "cq.rollout.control_steps"
local ensemble = require "cq.experiment.ensemble"
local variants = require "cq.experiment.variants"
local evaluate = require "cq.experiment.evaluate"
local fixed = require "cq.experiment.fixed"
local constrained = require "cq.experiment.constrained"
local place = require "cq.base.place"
local observers = require "cq.observer"
local levels = require "cq.experiment.levels"
local objectives = require "cq.experiment.objective"
local goals = require "cq.experiment.goal"
local given_values = require "cq.experiment.given_values"
local gradients = require "cq.experiment.gradient"
local scenes = require "cq.experiment.scenes"
local trainables = require "cq.experiment.trainable"
local together = require "cq.experiment.together"

---@class cq.Experiment
---@field params { controller: table?, observer: table?, robot: table?, world: table?, named: table? }   the present
---  values, cq.param each; named: those with an apply. A tensor without bounds that takes the place of one is trained
---  within the bounds of that one
---@field best { loss: number, iteration: integer, stage_iteration: integer, params: table, learned: table? }?   of the
---  least loss so far; iteration: through all stages and starts, as in history.csv; with
---  what an observer had learned beside it; with constraints of the least among the points that keep them, or else of
---  the one that is nearest to it, with feasible, values { objective =, NAME = } and violation, the largest by its
---  constraint's scale, beside
---@field body cq.Topology.Body?   after a plan whose last stage has a binary or extracted body
---@field steps integer         control steps
---@field folder string?        of its run, once that has begun: history.csv, parameters, pictures
---@field world cq.World        that it runs in
---@field robot cq.Robot        before its trainable values are set
local Experiment = { __name = "cq.Experiment" }
Experiment.__index = Experiment

-- ---- construction ---------------------------------------------------------------------------------------------------

local spec = is.define("cq.Experiment", {
  world = is.instance "cq.World",
  robot = is.instance { "cq.Robot", optional = true },
  duration = is.number { above = 0, optional = true },
  steps = is.integer { min = 1, max = 2 ^ 31 - 1, optional = true },
  observer = is.any { optional = true },
  controller = is.any { optional = true },
  design = is.instance { "cq.Topology", optional = true },
  objective = is.any_of { is.table(), is.callable() },
  optimizer = is.instance { "cq.Optimizer", optional = true },
  constraints = is.list(is.table(), { default = {} }),
  scenes = is.table { optional = true },
  variants = is.any { optional = true },
  reduce = is.any { optional = true },
  trainable = is.table { default = {} },
  memory = is.any { optional = true },
  gradient = is.table { optional = true },
  contact = is.boolean { default = false },
  weight = is.one_of { "mass", "particle", "volume", optional = true },
})

-- The number of control steps of an experiment, from its steps or its duration. Errors: both are given, or neither.
local function steps_of(def)
  if (def.steps == nil) == (def.duration == nil) then
    is.fail("cq.Experiment: give either duration or steps%s", def.steps and ", not both" or "")
  end
  return def.steps or control_steps(def.duration, def.world, "cq.Experiment: duration")
end

---@class cq.Experiment.def
---@field world cq.World             that it runs in
---@field robot? cq.Robot            a variant of the world's first, from robot:with
---@field duration? number           a multiple of the world's dt [time]; or steps
---@field steps? integer             control steps; or duration
---@field observer? any              of cq.Observer, a function of the state, or a table with observe
---@field controller? any            of cq.Controller, a function, or a table with act; its parameters are always
---  trained
---@field design? cq.Topology         that gives the robot, and pulses to which a controller is added; its variables
---  are trained
---@field objective cq.Experiment.objective.def|fun(state: cq.State, start: cq.State): cq.Tensor   the less the
---  better; a function is terminal alone
---@field constraints? (cq.Experiment.constraint.def|cq.Experiment.constraint.def[])[]   what must be kept, for an
---  optimizer that takes them: constraints, and lists of them as designs give
---@field optimizer? cq.Optimizer    for run:optimize
---@field scenes? cq.Experiment.scenes.def   several, as goals or trajectories: loss and constraints are means over
---  them; ranks share them (cq.Ranks)
---@field variants? cq.Experiment.variants   of the simulation, over which it is trained: changed bodies, worlds, steps and signals; its own
---  simulation alone unless given
---@field reduce? "mean"|"worst"|cq.Experiment.reduce.def   of the losses of variants; mean unless given
---@field trainable? table<string, cq.Experiment.trainable.def|cq.Tensor>   values of the robot or the world, by
---  name, or of anything else with apply; cq.param; and "controller" or "observer" for the rate of their weights
---@field memory? string|number      for what the backward pass needs, as "2 GiB"
---@field gradient? cq.Experiment.gradient.def   how gradients depart from the exact ones, for long times: decay, window,
---  clip, smooth, estimate; exact unless given
---@field contact? boolean           read what walls and pins give, for state:contact in observer and objective
---@field weight? "mass"|"particle"|"volume"   what means of states weigh by unless they say it: by particle where
---  density, volume or a value with apply is trained, since a mean over mass moves when mass does; else by mass

-- Makes a design the experiment's, and the design's variables trained parameters. Errors: a robot beside the design; a
-- design of another world; pulses for fewer control steps than the experiment has; a trainable field that the design
-- sets.
local function take_design(self, def)
  if def.robot then is.fail "cq.Experiment: give either design, which brings its robot, or robot" end
  if def.design.world ~= self.world then is.fail("cq.Experiment: the design was made for another world") end
  if self.steps > def.design.pulses.steps then
    is.fail("cq.Experiment: the design has pulses for %s, %s, and the experiment makes %d",
      text.number(def.design.duration), text.count(def.design.pulses.steps, "control step"), self.steps)
  end
  for name in pairs(self.params.robot or {}) do
    if def.design:gives(name) then
      is.fail("cq.Experiment: trainable.%s: the design gives the robot its %s, from its own variables", name, name)
    end
  end
  self.design, self.params.design = def.design, def.design.params
  self.own_design = def.design
end

---An experiment: a world, a policy and an objective to minimise. It always trains the parameters of the controller and
---of the user's observer, or the variables of a design, and beside them what trainable names: values of robot:with,
---gravity, damping, friction and wall_velocity of the world, and any value with a function that applies it to the
---robot. Each of these may have a learning rate of its own; all others have the optimizer's.
---Errors: both or neither of duration and steps; a duration that is no multiple of the world's dt; an objective without
---any part; a goal outside of the world.
---
---Instead of the fields, a function may be given that returns them, for a plan whose stages have different grids or
---durations. Its argument is the stage's `level`, a table such as { coarsen = 2 }, by default { coarsen = 1 };
---cq.robustness passes a coarsen of 0.8, for a finer grid.
---@param fields cq.Experiment.def|fun(level: table): cq.Experiment.def
---@return cq.Experiment
local function new(_, fields)
  local problem = text.is_callable(fields) and fields or nil
  local def = spec(problem and levels.define(problem, {}) or fields)
  local self = setmetatable({ world = def.world, optimizer = def.optimizer, memory = def.memory, contact = def.contact,
    gradient = gradients.check(def.gradient, def.world),
    problem = problem, given = {}, made_scenes = {} }, Experiment)
  self.observer = def.observer and observers.of(def.observer, "cq.Experiment") or nil
  self.steps, self.objective = steps_of(def), objectives.of(def.objective, def.world)
  self.robot = def.robot or def.design and def.design.robot or def.world.robot
  self.constraints = constrained.list(def.constraints)
  self.params, self.apply = trainables.make(self.world, self.robot, def.trainable)
  self.weight = def.weight or (trainables.moves_mass(self.params) and "particle" or "mass")
  if def.design then take_design(self, def) end
  if def.controller then
    self.controller = controllers.of(def.controller, "cq.Experiment")
    if def.design then self.controller = controllers.sum { feedback = self.controller } end
    self.params.controller = self.controller:prepare(self.world, self.observer, self:robot_with(self.params))
  end
  -- an observer may make its weights at its first look
  if self.observer and self.observer.parameters then self.params.observer = self.observer:parameters() end
  trainables.set_rates(self.params, def.trainable)
  self.scenes = def.scenes and scenes.check(def.scenes)
  self.own_ensemble = variants.of(def.variants, def.reduce, "cq.Experiment")
  ensemble.check(self, self.own_ensemble, nil, "cq.Experiment")
  self.ensemble = self.own_ensemble
  self.made_params = T.leaves.snapshot(self.params)
  return fixed.remember(self)
end

-- ---- one evaluation -------------------------------------------------------------------------------------------------

---One scene of several, as an experiment of its own with the same parameters: to look at (scene:evaluate,
---scene:render), not to optimize. Errors: an experiment of one scene.
---@param k integer         from 1
---@return cq.Experiment
function Experiment:scene(k)
  if not self.scenes then is.fail("run:scene: the experiment has one scene") end
  k = is.argument("run:scene", "k", is.integer { min = 1, max = self.scenes.count }, k)
  return scenes.of(self, k)
end

-- The robot with its trainable values, except those that a function of the user's applies. params: nested as
-- self.params.
function Experiment:valued(params)
  local robot = self.design and self.design:map(params.design).robot or self.robot
  return params.robot and robot:with(params.robot) or robot
end

---The robot with the trainable values of a table of parameters.
---@param params table
---@return cq.Robot
function Experiment:robot_with(params)
  is.argument("run:robot_with", "params", is.table(), params)
  return trainables.apply(self:valued(params), self.apply, params.named)
end

---The robot of a body that was extracted from the experiment's design, with the values of the robot that are trained
---beside the design.
---@internal
---@param body cq.Topology.Body
---@param params table
---@return cq.Robot
function Experiment:robot_of(body, params)
  return require("cq.experiment.extracted").robot(self, body, params)
end

---Observer and controller with the weights in a table of parameters; for run.best.params itself also with what the
---observer had learned then. With a design, its pulses drive the robot, or those of an extracted body; a controller of
---the experiment adds its signals to the pulses, unless params.controller is false.
---@internal
---@param params table
---@param body? cq.Topology.Body
---@return { observer: table?, controller: table? }
function Experiment:policy(params, body)
  local controller, observer, pulses = self.controller, self.observer, nil
  if controller and params.controller then controller = controller:with(params.controller) end
  local best = self.best
  if best and best.learned and params == best.params then observer = observer:holding(best.learned) end
  if observer and params.observer then observer = observer:with(params.observer) end
  if body then
    pulses = body.controller
  elseif self.extracted then
    pulses = self.extracted:pulse_controller(params.design)
  elseif self.design then
    pulses = self.design:map(params.design).controller
  end
  if not pulses then return { observer = observer, controller = controller } end
  if not controller or params.controller == false then return { controller = pulses } end
  return { observer = observer, controller = controller:with_part("pulses", pulses) }
end

---@class run.rollout.def : run.changes.def
---@field on_step? fun(state: cq.State, u: cq.Tensor?)   called with the state at the start and after each control step
---@field contact? boolean        read what walls and pins give; as the experiment says unless given

local rollout_spec = is.define("run:rollout", changed.fields {
  on_step = is.callable { optional = true }, contact = is.boolean { optional = true },
})

---@internal
---World and fields of world:rollout for a simulation with these parameters and changes; of several scenes, of the
---first.
---@param params table
---@param changes? run.rollout.def
---@param policy? { observer: table?, controller: table? }    those of the experiment unless given
---@return { world: cq.World, fields: table, design: cq.Topology?, variables: table? }   variables: of the design, where void is left out
function Experiment:rollout_def(params, changes, policy)
  fixed.require(self)
  local def = rollout_spec(changes or {})
  if self.scenes then return self:scene(1):rollout_def(params, changes, policy) end
  local world, robot = changed.place(self, def, params)
  policy = policy or self:policy(params, def.body)
  local steps = changed.steps(self, def, "run:rollout")
  local fields = {
    robot = robot, steps = steps, observer = policy.observer, controller = policy.controller, weight = self.weight,
    running = self.objective.running, effort = steps > 0 and self.objective.effort or nil,
    memory = self.memory, on_step = def.on_step, contact = self.contact or def.contact or false,
    work = self.objective.work ~= nil, record = constrained.recorder(self.constraints),
  }
  for _, values in ipairs { self.given, self.of_scene or {}, params.world or {} } do
    for name, value in pairs(values) do fields[name] = value end
  end
  given_values.drop(self, def.world, fields)
  changed.fill(def, fields)
  gradients.fill(self, fields)
  if def.adjust then def.adjust(fields, world) end
  local design = self.design
  local is_block = design and (world == design.world or world.variant_of == design.world)
  return { world = world, fields = fields, design = is_block and design or nil, variables = params.design }
end

---Simulates with these parameters, in the experiment's own world or a changed one; of several scenes, the first.
---Errors: those of world:rollout; a body of another design, or that does not stand in the world; values of particles
---that the robot there cannot take.
---@param params table
---@param changes? run.rollout.def
---@return cq.Rollout
function Experiment:rollout(params, changes)
  is.argument("run:rollout", "params", is.table(), params)
  return together.one(self:rollout_def(params, changes))
end

---The objective of a rollout.
---@param roll cq.Rollout
---@return cq.Tensor    one number
function Experiment:loss(roll)
  is.argument("run:loss", "roll", is.instance "cq.Rollout", roll)
  return (objectives.loss(self.objective, roll))
end

-- ---- optimizing -----------------------------------------------------------------------------------------------------

---Takes over the parameters of an earlier run, of this script or of another one, for later calls of run:evaluate,
---run:render and run:optimize, which begins with them (as every experiment does with --from DIR). Prints how the
---worlds differ. Values of particles go to a different robot from the nearest particles. Warns of parameters of that
---run which this experiment does not train.
---Errors: no run at the path; another controller, observer or other signals, if both runs have a controller; parameters
---of other shapes.
---@param path string       the folder of the run, or a file that cq.load reads
---@return cq.Saved
function Experiment:load(path) return require("cq.experiment.warm").load(self, path) end

---Optimizes by a plan; with several scenes, the mean of their losses. Writes history.csv, plan.json, parameters,
---optimizer state and the best parameters into the run's folder; with resume, continues the run in that folder. Ctrl-C
---stops at the next iteration and saves; before the first iteration Ctrl-C is an error, and where another run would
---begin the script ends. The results so far are kept when an iteration fails. With constraints, or an optimizer that
---makes a loop of its own, an iteration is an evaluation, history.csv has a column for each constraint, and solution
---reports them. Afterwards run.best is the best point of the last stage (of the best start), and run.body the body of
---a binary or extracted stage. --budget 0.1 makes a tenth of all iterations.
---@param fields run.optimize.def
---@return { loss: number?, best: number?, iterations: integer, solution: cq.Solution?, starts: table[]? } result
---  loss: of the last iteration, nil when there was none; starts: what each start of a tournament came to
function Experiment:optimize(fields)
  fixed.require(self)
  return require("cq.experiment.optimize")(self, fields)
end

-- ---- looking --------------------------------------------------------------------------------------------------------

---The objective without gradients: with the best parameters so far, the last ones or those of a table, in the
---experiment's own world or a changed one. With several scenes all numbers are means over them.
---
---  run:evaluate().loss                                      as it was trained
---  run:evaluate { friction = 0.1, duration = 8 }            on ice, for longer
---  run:evaluate { params = "last" }
---  run:evaluate { params = { robot = { young = 5 } }, world = other }
---Errors: those of run:rollout; parameters of other names or shapes.
---@param fields? run.evaluate.def
---@return cq.Evaluation
function Experiment:evaluate(fields)
  fixed.require(self)
  return evaluate.run(self, fields)
end

---The path of a file in the folder of the experiment's run, which is created: the run of run:optimize, or the one that
---a loop of the user's has open; without a run, the folder that one would take. For files that the script writes
---itself.
---@param name string       one that begins with /, ./ or ../ is given back as it is; "" is the folder, with a slash
---@return string
function Experiment:path(name)
  if name ~= "" then is.argument("run:path", "name", is.string(), name) end
  return name:find "^%.?%.?/" and name or place.within(place.folder(self), name)
end

---Runs once more and draws it: a film (.mp4, .mkv, .webm, .gif), or the last state or several moments (.png). Robots
---are drawn by their surface: the cells of their lattice, or the mesh that they came from; fluids and grains, particle
---by particle. Walls stand where they are at that time, cables have the colour of their tension, and pinned parts are
---hatched. A name without a slash is in the run's folder, runs/NAME of the script NAME.lua or --out, also where there
---is no run yet; a path with a slash stays as it is. `--render no` leaves it out. With several scenes, it draws the
---first; run:scene(k):render draws another.
---@param path string        ends in .mp4, .mkv, .webm, .gif or .png
---@param options? run.render.def
---@return string? path      nil where nothing is drawn: with --render no, in cqlua check, after Ctrl-C
function Experiment:render(path, options)
  local render = require "cq.experiment.render"
  local def = render.options(path, options, goals.places(self.objective and self.objective.goal))
  if render.is_left_out() then return nil end
  local params = evaluate.params(self, def.params, "run:render")
  local steps = changed.steps(self, def.changes, "run:render")
  render.plan(def, { world = def.changes.world or self.world, steps = steps })
  if option.program.check then return nil end
  if C.cq_interrupted() ~= 0 then
    message.interruption("interrupted: %s was not drawn; the best parameters are saved", path)
    return nil
  end
  return render.film(place.of(path, self), def, function(on_step)
    def.changes.on_step = on_step
    return self:rollout(params, def.changes)
  end)
end

---Runs once more and writes all frames for other programs, as rollout:export does, with the best parameters so far and
---changes as run:rollout takes them. A name without a slash is in the run's folder. Of several scenes it is the
---first.
---
---  run:export { format = "vtp" }                              frames.pvd, for ParaView
---  run:export { path = "walk.csv", units = { length = "m", time = "s" } }
---@param options run.export.def
---@return string path      of the file, of the list of files, or of their folder
function Experiment:export(options) return require "cq.experiment.export"(self, options) end

---Draws a page of figures: the design (opacity by density, colours by actuator), moments of its movement coloured by
---signals with the forces of walls as arrows, the objective over the iterations, the signals as a raster and the forces
---of walls over time. Panels without data are left out; run:report shows all numbers of the history. A name
---without a slash is in the run's folder. `--render no` leaves it out. Errors: an experiment of several scenes.
---@param path string        ends in .png
---@param options? run.figures.def
---@return string? path      nil where nothing is drawn: with --render no, in cqlua check, on all ranks but the first
function Experiment:figures(path, options)
  is.argument("run:figures", "path", is.string(), path)
  if not path:match "%.png$" then is.fail("run:figures: path must end in .png, got %s", text.describe(path)) end
  if self.scenes then is.fail("run:figures: a page is of one scene; run:scene(k):figures draws it") end
  local figures = require "cq.experiment.figures"
  local def = figures.spec(options or {})
  if option.program.check or option.program.follows or option.get("render", true) == false then return nil end
  path = place.of(path, self)
  figures.page(self, def):write(path)
  message.note("%s", path)
  return path
end

---Runs once more and writes one HTML file that opens from disk: the body to turn and scrub, coloured by groups, signals
---or numbers, with curves of the losses so far, of signals and of the forces of walls, the options and the script. The
---page asks nothing of the network. A name without a slash is in the run's folder. `--render no` leaves it out. Of
---several scenes it is the first. Prints the size of the file. Where particles times frames are more than 4 million,
---the page has only the particles of the surface.
---@param path string        ends in .html
---@param options? run.report.def
---@return string? path
function Experiment:report(path, options) return require("cq.experiment.reported").run(self, path, options) end

---Tries the experiment without training it: at most two control steps forward and backward, which call every function
---of the user's, and the plan of the memory. Errors as optimize would. run:optimize does this under cqlua check.
---@return { steps: integer, loss: number, values: table<string, number>, gradients: table<string, number>, plan: table,
---  text: string } report
function Experiment:check() return require("cq.experiment.check")(self) end

-- The experiment in one line: control steps, number of parameters, and the best loss so far.
function Experiment:__tostring()
  local count = 0
  for _, leaf in ipairs(T.leaves.list(self.params)) do count = count + leaf.tensor.count end
  return ("cq.Experiment { %s, %s%s }"):format(text.count(self.steps, "control step"), text.count(count, "parameter"),
    self.best and (", best loss %.6g at iteration %d"):format(self.best.loss, self.best.iteration) or "")
end

method.guard(Experiment, "run")

return setmetatable({ class = Experiment }, { __call = new })
