-- training: a plan that is carried out for an experiment, in the folder of a run: its stages for each of its starts,
-- what is saved of them, and how a run goes on.
--
-- Parts of the plan come one after the other, and in each part one start after the other. What is known of a start:
--   stage, made           the number of the stage that it is in, and iterations made of it
--   over, ended           whether the stage ends there, and whether it has ended: on_end was called
--   params, best          of that stage: the present values, and { loss =, iteration =, params = } of the least loss
--   solver, history       what going on within the stage needs beside them
--   first, before         the loss of its first iteration; how many were made of the stages before the present one
local adopt = require "cq.experiment.adopt"
local C = require("cq.base.engine").C
local ensemble = require "cq.experiment.ensemble"
local extracted = require "cq.experiment.extracted"
local host = require "cq.host"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local levels = require "cq.experiment.levels"
local message = require "cq.base.message"
local option = require "cq.option"
local options = require "cq.experiment.options"
local saved_plan = require "cq.experiment.saved_plan"
local saved_runs = require "cq.saved.run"
local stages = require "cq.experiment.stage"
local text = require "cq.base.text"
local watch = require "cq.base.watch"
local T = require "cq.tensor"

---@class cq.Training
---@field run cq.Experiment        the user's
---@field plan cq.Plan
---@field folder cq.Run
---@field starts table[]
local Training = {}
Training.__index = Training

local training = {}

-- ---- what is saved --------------------------------------------------------------------------------------------------

-- Saves parameters and the state of the training in the folder of the run.
local function save(self, iteration, params)
  self.folder:save(iteration, params, saved_plan.state(self))
  self.saved = iteration
end

-- Warns if the starts of a multi-start plan that goes on have other seeds than they would begin with now.
local function tell_seeds(self)
  local first, wanted, count = self.starts[1].seed, saved_plan.first_seed(self.run), #self.starts
  if count == 1 or first == wanted then return end
  message.warn("run:optimize: the %d starts keep the seeds that they began with, %d to %d: seed %d is not theirs; for starts of that seed begin another run",
    count, first, first + count - 1, wanted)
end

-- Restores an earlier training from the folder of its run: its starts (of a multi-start plan), what its observer had
-- learned, and its first parameters. Removes the saved files of stages that no start has come to.
local function restore(self)
  local state = self.folder.saved.optimizer
  if watch.reloaded then
    adopt(self, state)
    saved_plan.check(self.run, self.plan, self.folder.saved, self.folder.folder)
  end
  self.starts = saved_plan.starts(state, self.records)
  tell_seeds(self)
  saved_plan.restore_observers(self.run, state)
  if state.first then self.first, self.is_given = state.first, true end
  local stays = {}
  for _, start in ipairs(self.starts) do
    for k = 1, start.stage do stays[self.plan.stages[k].name] = true end
  end
  self.folder:remove_stages(stays)
end

-- Sets the substeps of the worlds of all levels (grids of a plan) to those that this start of a multi-start plan has
-- noted (keep_substeps), since other starts may have raised them.
local function restore_substeps(self, start)
  for key, own in pairs(self.run.levels or {}) do
    local substeps = start.substeps and start.substeps[key] or own.first_substeps
    if substeps then stages.set_substeps(own, substeps) end
  end
end

-- Notes in start.substeps, by level (grid of a plan), how many substeps each level's world has now, where a failed
-- simulation raised them; for restore_substeps. start: an entry of self.starts, one of the starts of a multi-start
-- plan.
local function keep_substeps(self, start)
  start.substeps = {}
  for key, own in pairs(self.run.levels or {}) do
    if own.first_substeps then start.substeps[key] = own.world.substeps end
  end
end

-- ---- a start in a stage ---------------------------------------------------------------------------------------------

-- The experiment at the level (grid, duration) of a stage of the plan, created at the first call.
local function level_of(self, stage)
  local own = levels.of(self.run, stage.level)
  own.base_optimizer = self.run.base_optimizer
  return own
end

-- Warns if a start of a multi-start plan has the initial values of the first start, since it then repeats the same
-- training. number: of the start.
local function tell_equal(first, params, number)
  local found = T.leaves.pair(params, first)
  for _, leaf in ipairs(T.leaves.list(params)) do
    if not leaf.tensor:equal(found[leaf.tensor]) then return end
  end
  message.warn("run:optimize: start %d begins with the values of start 1: nothing in the script is drawn by --seed",
    number)
end

-- Is a start of a multi-start plan drawn anew: each but the first, and that one too where the design was made with a
-- seed of its own, and --seed says another?
local function is_drawn(self, start)
  local design = self.run.own_design
  return start.number > 1
    or #self.starts > 1 and not self.is_given and design and design.seed ~= nil and design.seed ~= start.seed
end

-- The initial values of a start (of a multi-start plan) in a stage, as { run: an experiment, params: its parameters,
-- learned?: what its observer had learned with them }: in its first stage drawn for this start, later those of the
-- stage before. If the script has changed the experiment's parameters, the first start begins with them, at any level.
local function beginning(self, start, stage)
  local own, run = level_of(self, stage), self.run
  if start.stage > 0 then
    local before = self.plan.stages[start.stage]
    local is_last = stage.initial == "last"
    return { run = level_of(self, before), params = is_last and start.params or start.best.params,
      learned = not is_last and start.best.learned or nil }
  elseif is_drawn(self, start) then
    local params = levels.drawn(run, stage.level, start.seed, self.first)
    if own == run and start.number > 1 then tell_equal(self.first, params, start.number) end
    return { run = own, params = params }
  elseif own == run or self.is_given then
    return { run = run, params = self.first }
  end
  return { run = own, params = T.leaves.snapshot(own.params) }
end

-- Has a start of a multi-start plan finished a part of the plan? A part is a stage, or a stage up to the iteration at
-- which the number of starts is reduced.
local function is_done(self, start, part)
  if start.stage ~= part.stage then return start.stage > part.stage end
  return start.ended or start.made >= part.last and part.last < self.plan.stages[part.stage].iterations
end

-- The cost of an iteration of a stage: particles times engine steps, for each variant. A level that was not created yet
-- counts as the run's.
local function work_of(self, stage)
  local own = levels.made(self.run, stage.level)
  local variants = ensemble.of_stage(own, stage)
  return own.world.particle_count * own.steps * own.world.substeps * (variants and variants.count or 1)
end

-- Is a start of a multi-start plan at the end of a part: it has finished it, or its stage has stopped early?
local function is_at_end(self, start, part)
  return is_done(self, start, part) or start.stage == part.stage and start.over
end

-- The iterations that all starts of a multi-start plan still have to make, each times cost(stage). `present` has made
-- iteration i of its stage, of which it has noted fewer; nil: none is at work. Of a part with fewer starts than there
-- are now, nobody knows yet which they will be.
local function left_of(self, cost, present, i)
  local sum, before, alive = 0, {}, 0
  for _, start in ipairs(self.starts) do alive = alive + (start.dropped and 0 or 1) end
  for _, part in ipairs(self.parts) do
    local first, open, left = before[part.stage] or 0, 0, 0
    before[part.stage] = part.last
    for _, start in ipairs(self.starts) do
      if not start.dropped and not is_at_end(self, start, part) then
        local made = start.stage == part.stage and (start == present and i or start.made) or 0
        open, left = open + 1, left + part.last - math.max(first, made)
      end
    end
    if alive > part.count then left = (part.last - first) * math.min(open, part.count) end
    sum = left > 0 and sum + left * cost(self.plan.stages[part.stage]) or sum
  end
  return sum
end

-- Sets how many iterations the run will have: fewer where stages stop early, or where those starts are dropped that
-- would have made more.
local function count_iterations(self)
  self.folder.iterations = self.folder.done + left_of(self, function() return 1 end)
  self.folder.progress.total = self.folder.iterations
end

local ranked

-- A stand-in for the run's folder, given to the solver of one stage and one start of the plan: counts and names the
-- rows of the stage's history as rows of the whole run. current: the stage (cq.Stage); offset: iterations of the run
-- before it; kept: the best so far of a start that goes on in its stage.
local function folder_for(self, start, current, offset, kept)
  local folder, plan = self.folder, self.plan
  local proxy = { folder = folder.folder, saved_at = folder.saved_at, manifest = folder.manifest }
  -- Path of a file in the run's folder.
  function proxy.path(_, name) return folder:path(name) end
  -- The number of an iteration of the stage in the whole run. Other starts may have come since then.
  function proxy.number(_, i) return kept and kept.stage_iteration == i and kept.iteration or offset + i end
  -- Does the run keep the state of this iteration of the stage, for forks?
  function proxy.keeps(_, noted) return folder:keeps(offset + noted) end
  -- Records a row of the stage's history as a row of the whole run, with the progress of the plan.
  function proxy.record(_, row)
    local i = row.iteration
    options.columns(current, row)
    start.first = start.first or row.loss
    row.iteration = offset + i
    if #plan.stages > 1 then row.stage, row.stage_iteration = current.stage.name, i end
    if #self.starts > 1 then row.start = start.number end
    folder.progress.part = (#plan.stages > 1 or #self.starts > 1) and { name = current.stage.name,
      number = plan.number[current.stage.name], of = #plan.stages,
      done = i, total = current.stage.iterations, start = #self.starts > 1 and start.number or nil,
      starts = #self.starts, work = work_of(self, current.stage),
      left = left_of(self, function(stage) return work_of(self, stage) end, start, i) } or nil
    local best = current.solver and current.solver.best
    folder.progress.best = best and best.values.objective
    folder.shown = current.run                   -- whose present values a live page shows
    folder:record(row)
  end
  -- Notes the state of the stage after iteration `noted` in its start, and saves the whole run.
  function proxy.save(_, noted, params, state)
    start.made, start.params, start.solver, start.history = noted, params, state, current.history
    start.best = current.run.best
    keep_substeps(self, start)
    save(self, offset + noted, params)
    proxy.saved_at = folder.saved_at
  end
  -- Is this start the best of all, so that its best point is the run's?
  function proxy.leads() return ranked(self)[1] == start end
  return proxy
end

-- After a start (of a multi-start plan) has made a part of a stage: notes its best result, parameters and substeps, and
-- whether the stage is over.
local function conclude(self, start, current)
  start.best = current.run.best
  if not current.solver then start.params = T.leaves.snapshot(current.run.params) end
  keep_substeps(self, start)
  start.over = start.made >= current.stage.iterations or current:is_over()
  count_iterations(self)
end

-- Is the design of a plan decided at the end of a stage, by its number: the last soft one, or the last of the binary
-- ones that a plan begins with? Then it is time to tell what it gains without signals.
local function is_decided(plan, number)
  local body, following = plan.stages[number].body, plan.stages[number + 1]
  if body == "soft" then return following ~= nil and following.body ~= "soft" end
  for k = 1, number do
    if plan.stages[k].body ~= "binary" then return false end
  end
  return not following or following.body == "extracted"
end

-- Ends a stage that is over for a start: warns of a gain without signals where the design is decided, and calls the
-- user's on_end, once. After Ctrl-C the run that resumes this one does so.
local function end_of_stage(self, start, current)
  local run, stage, plan = current.run, current.stage, self.plan
  if not start.over or C.cq_interrupted() ~= 0 then return end
  if start.first and is_decided(plan, plan.number[stage.name]) then
    current:warn_of_rest(start.first, (start.before or 0) + start.made)
  end
  if stage.on_end then stage.on_end(run) end
  start.ended = C.cq_interrupted() == 0
end

-- Trains one start of a multi-start plan in the stage of a part, from its beginning or resumed, up to the part's last
-- iteration, and saves. If Ctrl-C comes before the first evaluation, the start is left as it was.
local function train(self, part, start)
  local stage, goes_on = self.plan.stages[part.stage], start.stage == part.stage
  local own = level_of(self, stage)
  if not goes_on then levels.release(self.run, own) end
  own.run = self.folder
  restore_substeps(self, start)
  local from = not goes_on and beginning(self, start, stage) or nil
  local current = stages.new(stage, self.run, goes_on and start or nil, from)
  local before = { stage = start.stage, made = start.made, before = start.before, solver = start.solver,
    params = start.params, best = start.best, history = start.history, over = start.over, ended = start.ended }
  if goes_on then
    current.history = start.history
  else
    start.before = (start.before or 0) + start.made
    start.stage, start.made, start.solver, start.history = part.stage, 0, nil, {}
    start.over, start.ended = false, false
  end
  self.current, self.current_start = current, start
  local offset, told = self.folder.done - start.made, self.on_iteration
  local fine, found = pcall(current.optimize, current, { last = start.over and start.made or part.last,
    is_first = part.stage == 1, saved = start.solver,
    folder = folder_for(self, start, current, offset, goes_on and start.best or nil),
    on_iteration = told and function(i, loss, run) told(offset + i, loss, run, stage.name) end })
  if not fine and C.cq_interrupted() ~= 0 and not (current.solver and current.solver.evaluations > 0) then
    -- nothing was made of this stage: the start is at the end of the one before
    for name, value in pairs(before) do start[name] = value end
    if start.stage == 0 then start.made, start.solver, start.history = 0, nil, {} end
    self.current = nil
    return
  end
  if not fine then error(found, 0) end
  self.solutions[start] = (#own.constraints > 0 or not own.optimizer.rule) and found or nil
  conclude(self, start, current)
  end_of_stage(self, start, current)
  save(self, self.folder.done, start.params)
end

-- ---- all of them ----------------------------------------------------------------------------------------------------

-- The number by which the starts of a multi-start plan are compared: a start's best loss, with the passive cost.
local function compared(start) return start.best.loss + (start.best.passive_cost or 0) end

-- A new list of the starts of a multi-start plan that were not dropped, the best first: in the latest stage, with the
-- least violation, with the least loss.
function ranked(self)
  local alive = {}
  for _, start in ipairs(self.starts) do
    if not start.dropped and start.best then alive[#alive + 1] = start end
  end
  table.sort(alive, function(a, b)
    if a.stage ~= b.stage then return a.stage > b.stage end
    -- by the limits that it was trained with
    local there, here = a.best.violation or 0, b.best.violation or 0
    if there ~= here then return there < here end
    if compared(a) ~= compared(b) then return compared(a) < compared(b) end
    return a.number < b.number
  end)
  return alive
end

-- Reduces the number of starts of a multi-start plan: drops all but the first `keep` of ranked(self), prints the order,
-- and saves.
local function cut(self, keep)
  local alive, list, names = ranked(self), {}, {}
  if #alive <= keep then return end
  for k, start in ipairs(alive) do
    list[k] = ("%d: %.4g"):format(start.number, compared(start))
    if k <= keep then
      names[k] = tostring(start.number)
    else
      start.dropped, start.params, start.solver, start.best.params, start.history = true, nil, nil, nil, {}
    end
  end
  count_iterations(self)
  message.note("starts, the best first: %s; %s on", table.concat(list, ", "),
    text.join(names) .. (#names == 1 and " goes" or " go"))
  save(self, self.folder.done, alive[1].params)
end

-- The path of a stage's folder. stage: its number.
local function stage_folder(self, stage)
  return ("%s/stages/%s"):format(self.folder.folder, self.plan.stages[stage].name)
end

-- The stage (experiment/stage.lua) in which a start of the plan is, with the experiment in the state in which that
-- stage left it.
local function present(self, start)
  if self.current and self.current_start == start then return self.current end
  local stage = self.plan.stages[start.stage]
  level_of(self, stage)
  restore_substeps(self, start)
  local current = stages.new(stage, self.run, start)
  current.history, current.run.best = start.history, start.best
  options.show(current, math.max(1, start.made))
  self.current, self.current_start = current, start
  return current
end

-- Saves a finished stage, of a plan of several, in a folder of its own: the state from which the next stage can be
-- repeated, and the best parameters. number: of the stage.
local function keep_stage(self, number)
  if #self.plan.stages < 2 or option.program.follows then return end
  local folder, best = stage_folder(self, number), ranked(self)[1]
  local there, problem = host.make_folder(folder)
  if not there then is.fail("run:optimize: the folder %s cannot be made: %s", folder, tostring(problem)) end
  T.save(folder .. "/state.bin", { iteration = self.folder.done, params = best.params,
    optimizer = saved_plan.state(self) })
  saved_runs.write({ manifest = self.folder.manifest, path = function(_, name) return folder .. "/" .. name end },
    best.best, present(self, best).run)
end

-- Have all starts of a multi-start plan that were not dropped come to the end of a part, and none gone beyond? Then
-- their number can be reduced.
local function are_at_end(self, part)
  for _, start in ipairs(self.starts) do
    local is_there = start.stage == part.stage and start.made <= part.last
    if not start.dropped and not is_there then return false end
  end
  return true
end

---Carries out the rest of the plan, part by part, and in each part all starts one after another. Returns early after
---Ctrl-C.
function Training:go()
  for k, part in ipairs(self.parts) do
    for _, start in ipairs(self.starts) do
      if not start.dropped and not is_done(self, start, part) then
        train(self, part, start)
        if C.cq_interrupted() ~= 0 then return end
      end
    end
    if are_at_end(self, part) then
      if part.keep then cut(self, part.keep) end
      local following = self.parts[k + 1]
      if not (following and following.stage == part.stage) then keep_stage(self, part.stage) end
    end
  end
end

-- Sets the experiment to the parameters, body and level of the best start of the plan.
local function take_result(self)
  local best = ranked(self)[1]
  if not best then return end
  local own, stage = present(self, best).run, self.plan.stages[best.stage]
  own.best, own.made = best.best, best.made
  own.loss_last = best.history[best.made] and best.history[best.made].loss
  own.body = stage.body ~= "soft" and extracted.result(own, best.best.params) or nil
  -- a stage of another level has an experiment of its own
  levels.become(self.run, stage.level)
end

---The training of an experiment by a plan: its starts, the parts of the plan, and the folder; restored if the run is
---resumed.
---@param run cq.Experiment
---@param def { plan: cq.Plan, on_iteration: function? }
---@param folder cq.Run        that is open
---@return cq.Training
function training.new(run, def, folder)
  local self = setmetatable({ run = run, plan = def.plan, parts = def.plan:parts(), folder = folder,
    on_iteration = def.on_iteration, starts = {}, solutions = {}, first = T.leaves.snapshot(run.params),
    is_given = levels.is_changed(run) }, Training)
  local first = rawget(run.world, "first_substeps")
  if first and first ~= run.world.substeps and not run.first_substeps then
    message.warn("run:optimize: the world has substeps = %d and not %d, which an earlier training of it needed",
      run.world.substeps, first)
  end
  self.records = saved_plan.records(run, self.plan)
  local seed = saved_plan.first_seed(run)
  for k = 1, def.plan.starts and def.plan.starts.count or 1 do
    self.starts[k] = { number = k, seed = seed + k - 1, stage = 0, made = 0, history = {} }
  end
  if folder.saved then
    restore(self)
  elseif self.is_given and #self.starts > 1 then
    message.note("the first of %d starts begins with the parameters that the experiment was given; the others are drawn anew",
      #self.starts)
  end
  folder:write("plan.json", json.encode(self.records) .. "\n")
  return self
end

-- Carries out the plan, saves the best start's design, and closes the folder; returns the table that run:optimize
-- gives. Errors: interrupted before the first iteration.
local function finish(self)
  self:go()
  local folder, best = self.folder, ranked(self)[1]
  if not best and C.cq_interrupted() ~= 0 then
    save(self, 0, T.leaves.snapshot(self.run.params))
    folder:finish()
    is.fail("run:optimize: interrupted before the first iteration was made")
  end
  if folder.saved_at == 0 or self.saved ~= folder.done then save(self, folder.done, T.leaves.snapshot(best.params)) end
  take_result(self)
  if best then saved_runs.write(folder, best.best, self.run) end
  folder:finish()
  return { loss = self.run.loss_last, best = self.run.best.loss, iterations = folder.done,
    solution = self.solutions[best], starts = saved_plan.rows(self.starts) }
end

---Carries the plan out and closes the folder.
---@return table result        as run:optimize gives it
function Training:finish()
  local fine, result = pcall(finish, self)
  -- that of a stage may be another one
  self.run.optimizer = self.run.base_optimizer
  if not fine then
    self.folder.problem = tostring(result):match "^[^\n]*"             -- the script may go on
    error(result, 0)
  end
  return result
end

return training
