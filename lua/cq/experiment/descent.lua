-- descent: run:optimize as a loop of updates against the gradient, and what of it is saved and gone on with.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local message = require "cq.base.message"
local backtrack = require "cq.experiment.backtrack"
local by_iteration = require "cq.experiment.by_iteration"
local saved_runs = require "cq.saved.run"
local scenes = require "cq.experiment.scenes"
local setup = require "cq.run.setup"
local smoothing = require "cq.experiment.smoothing"
local C = engine.C

local descent = {}

local progress_fields = {
  optimizer = is.table(), best = is.table { optional = true }, loss = is.number { optional = true },
  before = is.table { optional = true }, setup = is.table { optional = true },
}
local best_fields = { loss = is.number(), iteration = is.integer { min = 0 }, params = is.table() }

-- all that going on later needs beside the parameters
local function progress_of(self)
  return { optimizer = self.optimizer:state(), best = self.best, loss = self.loss_last, setup = self.setup,
    before = self.backtrack and self.backtrack.before }
end

local function save(self, run, iteration)
  run:save(iteration, self.params, progress_of(self))
  if self.best then saved_runs.write(run, self.best, self) end
end

local function restore(self, run)
  local saved = run.saved
  if not saved then return end
  local progress = saved.optimizer
  local kind = type(progress) == "table" and type(progress.optimizer) == "table" and progress.optimizer.kind
  if kind and kind ~= self.optimizer.kind then
    is.fail("run:optimize: %s is of cq.Optimizer.%s, this is cq.Optimizer.%s", run:path "optimizer.bin",
      tostring(kind), self.optimizer.kind)
  end
  local problem = is.problem(progress_fields, progress) or progress.best and is.problem(best_fields, progress.best)
  if problem then is.fail("run:optimize: %s was not saved by run:optimize: %s", run:path "optimizer.bin", problem) end
  setup.check(progress.setup, self.setup, "run:optimize: " .. run.folder, run.folder)
  T.leaves.load(self.params, saved.params, "run:optimize: " .. run:path "optimizer.bin")
  self.optimizer:restore(progress.optimizer)
  self.best, self.loss_last = progress.best, progress.loss
  if self.backtrack then self.backtrack.before = progress.before end
end

local function note_best(self, iteration, loss)
  if self.best and loss >= self.best.loss then return end
  self.best = { loss = loss, iteration = iteration, params = T.leaves.snapshot(self.params) }
end

-- one iteration; made counts the updates that the parameters hold, also when something after the update fails
local function iterate(self, run, roll_of, i, after)
  local began = C.cq_clock()
  if by_iteration.set(self, i) then self.best = nil end
  local loss, grads, roll = roll_of(self.params)
  if not self.scenes then roll:release() end
  note_best(self, i, loss)
  self.optimizer:update(self.params, grads)
  self.made, self.loss_last, self.losses[i] = i, loss, loss
  run:record { iteration = i, loss = loss, gradient = self.optimizer.norm, seconds = C.cq_clock() - began }
  if after then after(i, loss, self) end
  if C.cq_clock() - run.saved_at >= 5 then save(self, run, i) end
end

-- raises what ended an iteration, after what was computed is saved; a disk that is full cannot hide it
local function fail_iteration(self, run, i, problem)
  local saved = pcall(save, self, run, self.made)
  if saved and self.made > 0 then
    message.note("kept in %s: the parameters after iteration %d%s", run.folder, self.made,
      self.best and (", and the best, of iteration %d, in saved.bin"):format(self.best.iteration) or "")
  end
  if type(problem) == "string" then
    local ours = problem == is.failure
    problem = ("%s (iteration %d of %d)"):format(problem, i, run.iterations)
    if ours then is.failure = problem end
  end
  error(problem, 0)
end

---Iterations from what the run has made on, to those that are asked for.
---@param self cq.Experiment
---@param run cq.Run
---@param def run.optimize.def
function descent.run(self, run, def)
  self.backtrack = def.backtracks > 0 and backtrack.new(def.backtracks) or nil
  restore(self, run)
  local roll_of = self.scenes and scenes.descent(self) or T.value_and_grad(function(params)
    local roll = self:rollout(params)
    return self:loss(roll), roll
  end)
  if def.smoothing then
    roll_of = smoothing.of(roll_of, def.smoothing, function() return self.made + 1 end,
      function(roll) if not self.scenes then roll:release() end end)
  end
  if self.backtrack then
    local evaluate = roll_of
    roll_of = function(params) return self.backtrack:evaluate(evaluate, params) end
  end
  for i = run.done + 1, def.iterations do
    local fine, problem = pcall(iterate, self, run, roll_of, i, def.after)
    if run:interrupted() then break end
    if not fine then fail_iteration(self, run, i, problem) end
  end
  save(self, run, self.made)
end

return descent
