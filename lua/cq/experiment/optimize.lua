-- optimize: an experiment by the stages of a plan, in the folder of a run.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local C = require("cq.base.engine").C
local message = require "cq.base.message"
local option = require "cq.option"
local ensemble = require "cq.experiment.ensemble"
local levels = require "cq.experiment.levels"
local manifests = require "cq.run.manifest"
local plans = require "cq.plan"
local replaced = require "cq.experiment.replaced"
local runs = require "cq.run"
local saved_plan = require "cq.experiment.saved_plan"
local scenes = require "cq.experiment.scenes"
local settings = require "cq.experiment.settings"
local stages = require "cq.experiment.stage"
local taken = require "cq.run.taken"
local training = require "cq.experiment.training"
local variants = require "cq.experiment.variants"
local watch = require "cq.base.watch"

---@class run.optimize.def
---@field plan? cq.Plan           stages; or iterations, and what else a stage has
---@field iterations? integer     of a plan of one stage, in all: those of an earlier run that is gone on with included
---@field train? string[]         what is free, by paths, as cq.Plan has it
---@field optimizer? cq.Optimizer   the experiment's unless given
---@field minimize? "objective"|"violation"   violation: constraints alone, until they are kept
---@field options? cq.Plan.options.def  what the iterations have of their own
---@field stop? cq.Plan.stop.def|fun(history: table[]): boolean   when it ends before its iterations are made
---@field recover? cq.Plan.recover.def|false   what is done where a simulation fails: the update is halved up to 10
---  times, then the substeps of the world are doubled, and stay so, and rollouts from before are closed; false: that
---  is an error
---@field body? "soft"|"binary"|"extracted"   of a design
---@field level? table            what the experiment's function is given
---@field variants? cq.Experiment.variants|false   as cq.Experiment has them, which are taken unless given; false: none
---@field reduce? "mean"|"worst"|cq.Experiment.reduce.def   of the losses of variants
---@field initial? "best"|"last"   values of the stage before that a stage begins with; the best unless given
---@field on_end? fun(run: cq.Experiment)
---@field from? string            name of a stage: the run in the folder is repeated from there
---@field folder? string          --out, else runs/<name of the script>, unless given
---@field name? string            of one of several runs of a script: its folder is one of that name within
---@field resume? boolean         go on from what lies in the folder; --resume unless given. Another problem than
---  that of before is refused, and so is a stage that is made and was another; another way of optimizing the present
--- one is told
---@field keep? integer           the state of every so many iterations is kept, for forks (cqlua resume RUN --at 40);
---  none unless given; --keep takes its place
---@field on_iteration? fun(iteration: integer, loss: number, run: cq.Experiment, stage: string)   called after each
---  iteration, which is counted through all stages and starts as in history.csv; stage: its name

local optimize_fields = {
  plan = is.instance { "cq.Plan", optional = true },
  iterations = is.integer { min = 0, max = 2 ^ 31 - 1, optional = true },
  from = is.string { optional = true }, folder = is.string { optional = true }, name = is.string { optional = true },
  resume = is.boolean { optional = true }, keep = is.integer { min = 1, optional = true },
  on_iteration = is.callable { optional = true },
}
for name, kind in pairs(plans.of_stage) do optimize_fields[name] = kind end
local optimize_spec = is.define("run:optimize", optimize_fields, nil, is.renamed {
  after = "on_iteration", backtracks = "recover = { halvings = n }", stages = "minimize", seeds = "starts of cq.Plan",
})

-- The given plan, or a plan of one stage; with iterations scaled by --budget. Errors: both plan and iterations, or
-- neither; options of a stage beside a plan.
local function plan_of(def)
  local plan = def.plan
  if (plan == nil) == (def.iterations == nil) then
    is.fail("run:optimize: give either plan or iterations%s", plan and ", not both" or "")
  end
  local stage = { name = def.name and def.name:gsub("[^%w _.-]", "-") or "training", iterations = def.iterations }
  for name in pairs(plans.of_stage) do
    if plan and def[name] ~= nil then is.fail("run:optimize: %s is of a stage of the plan", name) end
    stage[name] = def[name]
  end
  return (plan or plans { stage }):scaled(option.get("budget", 1, is.number { above = 0 }))
end

-- The variants that a training begins with as text, nil without any: those of its stage; of several stages, whose
-- variants the plan tells, those of the experiment, if a stage has these.
local function variants_text(experiment, plan)
  local only, takes = #plan.stages == 1 and plan.stages[1], false
  if only then return variants.words(ensemble.of_stage(levels.of(experiment, only.level), only)) end
  for _, stage in ipairs(plan.stages) do takes = takes or stage.variants == nil end
  local own = takes and variants.words(experiment.own_ensemble)
  return own and ("stages without variants of their own: %s"):format(own) or nil
end

-- Prints the plan, the world, scenes or variants, and the memory that a rollout takes, before the training begins.
-- Variants need more memory than the experiment alone, and may differ in it.
local function tell_plan(experiment, plan)
  if option.program.quiet then return end
  local world = experiment.world
  if #plan.stages > 1 then
    for line in tostring(plan):gmatch "[^\n]+" do message.note("%s", line) end
  end
  message.note("%s", tostring(world))
  if experiment.scenes then message.note("%s", scenes.text(experiment)) end
  local of_variants = variants_text(experiment, plan)
  if of_variants then message.note("%s", of_variants) end
  message.note("%s on %s%s", text.count(experiment.steps, "control step"), world.device, of_variants and "" or
    "; " .. world:memory_plan { steps = experiment.steps, memory = experiment.memory }.text)
end

-- Prints how fast the training went, forward and backward. before: the particle_steps of its variants when it began.
local function tell_speed(experiment, iterations, seconds, before)
  if iterations < 1 or seconds <= 0 then return end
  local particle_steps = experiment.ensemble and experiment.particle_steps - before
    or experiment.world.particle_count * experiment.world.substeps * experiment.steps * iterations
      * (experiment.scenes and experiment.scenes.count or 1)
  message.note("%.3g s an iteration, %.3g million particle-steps a second forward and backward", seconds / iterations,
    particle_steps / seconds / 1e6)
end

-- ---- the folder of its run ------------------------------------------------------------------------------------------

-- Warns of pulses of a design that come after the end of the experiment in the last stage, so that nothing trains them.
-- Variants may have more control steps.
local function warn_of_late_pulses(run, stage)
  run = levels.of(run, stage.level)
  local pulses = run.own_design and not (run.own_ensemble or stage.variants) and run.own_design.pulses
  if not pulses then return end
  local duration = pulses.is_periodic and pulses.period or pulses.duration
  local steps = math.floor(duration / pulses.control_dt + 0.5)
  if steps <= run.steps then return end
  message.warn("the pulses of the design %s %s, %s, and the experiment makes %d: those that come later are not trained; give %s at most %s",
    pulses.is_periodic and "have the period" or "last", text.number(steps * pulses.control_dt),
    text.count(steps, "control step"), run.steps,
    pulses.is_periodic and "them a period of" or "cq.Topology a duration of",
    text.number(run.steps * pulses.control_dt))
end

-- Raises an error if the experiment cannot be trained by the plan, before anything is written.
local function check(run, plan)
  if plan.starts and plan.starts.count > 1 and not run.problem and not run.design then
    is.fail("run:optimize: several starts need an experiment that is made by a function, cq.Experiment(function(level) ... end), or one with a design: nothing of this one is drawn anew")
  end
  for k, stage in ipairs(plan.stages) do
    local own = levels.of(run, stage.level)
    own.base_optimizer = run.base_optimizer
    stages.check(stage, own, k == 1)
  end
  warn_of_late_pulses(run, plan.stages[#plan.stages])
end

-- Two values for the run of an experiment: its folder, and its name (nil: it has none). Where it goes on and no folder
-- is given, that is the folder that the experiment was trained in before.
local function folder_of(experiment, def)
  local goes_on, folder = def.resume or def.from ~= nil, runs.folder_of(def.folder, def.name)
  if goes_on and not folder then folder = experiment.folder end
  if folder and not def.name and not goes_on then return folder end
  return taken.next(folder or runs.default_folder(), def.name, goes_on and folder ~= nil)
end

-- Opens or resumes the folder of a run and returns it (cq.Run). Checks first whether the saved state fits the plan, so
-- that a refused run changes nothing, and gives the plan the settings of a fork. run: the experiment; from: name of the
-- stage to repeat, or nil; def: fields of cq.Run, completed in place.
local function open(run, plan, def, from)
  local folder, before = def.folder, nil
  if from then
    def.resume = true
    def.state, before = saved_plan.file_before(plan, from)
  end
  taken.check(folder, def.resume)
  local name = def.state or "optimizer.bin"
  local saved = runs.resumes(def.resume) and runs.saved_in(folder, name)
  if saved then
    saved_plan.check_file(saved.optimizer, folder .. "/" .. name)
    settings(run, plan, (manifests.of(folder) or {}).parent, saved_plan.next_stage(run, plan, saved.optimizer))
    -- of another version of the script in the same process it is made to fit first (restore)
    if not watch.reloaded then saved_plan.check(run, plan, saved, folder) end
  end
  if from and not saved then
    is.fail("run:optimize: from: the run in %s has not made the stage %q, which is the one before", folder, before)
  end
  local opened = runs.open(def)
  if from then message.note("the run in %s is repeated from the stage %q on", folder, from) end
  return opened
end

-- Opens the folder of a run, or resumes it, writes into its manifest what describes the experiment, and returns it
-- (cq.Run).
local function begin(experiment, def, plan)
  return open(experiment, plan, {
    iterations = plan:iterations(), folder = def.folder, resume = def.resume, fresh = def.name ~= nil,
    keep = def.keep,
    device = experiment.world.device,
    notes = { name = def.name, world = tostring(experiment.world), control_steps = experiment.steps,
      scenes = experiment.scenes and scenes.text(experiment) },
  }, def.from)
end

---What run:optimize does.
---@param experiment cq.Experiment
---@param fields run.optimize.def
---@return table result
return function(experiment, fields)
  local def = optimize_spec(fields)
  if experiment.scene_number then is.fail("run:optimize: a scene is not optimized alone; the experiment of all is") end
  local plan = plan_of(def)
  def.folder, def.name = folder_of(experiment, def)
  for _, stage in ipairs(plan.stages) do
    if not (stage.optimizer or experiment.optimizer) then is.fail("run:optimize: the experiment has no optimizer") end
  end
  if #T.leaves.list(experiment.params) == 0 then
    is.fail("run:optimize: there is nothing to train; give a controller or trainable")
  end
  replaced.fit(experiment)
  experiment.base_optimizer = experiment.optimizer
  check(experiment, plan)
  -- a run that is only looked at, or checked, is not opened
  if option.program.replay or option.program.check then taken.add(def.folder, def.name) end
  if option.program.replay then return require("cq.experiment.untrained").replay(experiment, plan, def.folder) end
  require("cq.experiment.warm").begin(experiment, def)
  if option.program.check then return require("cq.experiment.untrained").check(experiment, plan, def.folder) end
  local run = begin(experiment, def, plan)
  experiment.run, experiment.folder, experiment.made = run, run.folder, run.done
  local work = training.new(experiment, { plan = plan, on_iteration = def.on_iteration }, run)
  tell_plan(experiment, plan)
  if run.done > 0 and run.done >= run.iterations then
    message.note("the run in %s has made %s; %d are asked for", run.folder, text.count(run.done, "iteration"),
      run.iterations)
  end
  local before = levels.of(experiment, plan.stages[1].level).particle_steps or 0
  local first, started = run.done, C.cq_clock()
  local result = work:finish()
  if watch.wanted then is.fail("a new version of the script was saved") end
  if #plan.stages == 1 then tell_speed(experiment, run.done - first, C.cq_clock() - started, before) end
  if text.is_instance(experiment.controller, "cq.Controller") then
    experiment.controller.trained = setmetatable({ by = experiment }, { __mode = "v" })
  end
  local solution = result.solution
  if solution and not solution.feasible then
    message.note("no point keeps all constraints; nearest is %s; loosen what is violated, or allow more iterations",
      solution:violations())
  end
  return result
end
