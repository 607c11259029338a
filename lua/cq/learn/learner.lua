-- learner: what algorithms of reinforcement learning share: updates in a loop, their history, the folder of a run, and
-- what is saved. An algorithm is a subclass with
--   begin(self)               resets the environment, before the first update; sets began
--   iterate(self)             one update; gives the row of the history
--   parts                     names of the fields that have a state, such as optimizers
--   kept                      names of the fields that are tables of tensors, tensors or numbers
--   activation, output        of the policy's network, as of cq.Controller.mlp
local method = require "cq.base.method"
local class = require "cq.tensor.class"
local controllers = require "cq.controller"
local engine = require "cq.base.engine"
local gradient = require "cq.tensor.gradient"
local is = require "cq.base.schema"
local made = require "cq.base.made"
local network = require "cq.learn.network"
local normalizer = require "cq.learn.normalizer"
local option = require "cq.option"
local message = require "cq.base.message"
local predicates = require "cq.base.predicate"
local random = require "cq.random"
local saved_runs = require "cq.saved.run"
local signature = require "cq.run.signature"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"
local watch = require "cq.base.watch"
local shape_text = require("cq.tensor.class").shape_text
local C, tape = engine.C, T.tape

---@class cq.Learner
---@field kind string                       "ppo" or "shac"
---@field env table|cq.Env
---@field params table<string, cq.Tensor>   what is trained
---@field history table<string, number>[]   a row for each update that was made in this process, or in the folder
---@field updates integer                   in all
---@field updates_made integer
---@field steps_made integer                control steps of all scenes together
local Learner = { __name = "cq.Learner", parts = {}, kept = {} }
Learner.__index = Learner

local learner = { class = Learner }

-- The learner in one line: kind, steps and updates made.
function Learner:__tostring()
  return ("cq.Learner.%s { %s, %s }"):format(self.kind, text.count(self.steps_made, "step"),
    text.count(self.updates_made, "update"))
end

---A class of learners, which inherits from cq.Learner.
---@param kind string             its name, "ppo"
---@param fields { parts: string[], kept: string[], activation: string, output: string }   parts: fields that are
---  objects with a state, saved and restored; kept: other fields that are saved; activation and output: of the policy
---@return table
function learner.subclass(kind, fields)
  local out = tables.merged(fields, { __name = "cq.Learner", __tostring = Learner.__tostring, kind = kind })
  out.__index = out
  return setmetatable(out, Learner)
end

-- ---- what algorithms use --------------------------------------------------------------------------------------------

---A learner before its first update, with the network "mean" of its policy.
---@param kind table         from learner.subclass
---@param o table            its options: env, steps, hidden, seed, normalize_observations; a seed that is left out is set
---@param horizon integer    control steps of each scene in an update
---@return cq.Learner
---@return integer inputs    numbers of an observation
---@return integer signals
function learner.new(kind, o, horizon)
  local inputs, signals = o.env.observation_space.shape[1], o.env.action_space.shape[1]
  o.seed = o.seed or option.program.seed or 0
  local self = setmetatable({
    env = o.env, options = o, params = {}, random = random { seed = o.seed }, history = {}, steps_made = 0,
    updates_made = 0, updates = math.floor(o.steps / (horizon * o.env.scenes)), horizon = horizon, began = false,
    observations = o.normalize_observations and normalizer.new(inputs),
  }, kind)
  network.add(self.params, "mean", self.random, network.sizes(inputs, o.hidden, signals), 0.01)
  local names = {}
  for name in pairs(o) do names[#names + 1] = name end
  return made.remember(self, names), inputs, signals
end

---A tensor {steps, scenes, ...} as {steps * scenes, ...}.
---@param rows cq.Tensor     {steps, scenes, ...}
---@return cq.Tensor         {steps * scenes, ...}
function learner.flatten(rows)
  local shape = rows:shape()
  local count = table.remove(shape, 1)
  shape[1] = count * shape[1]
  return rows:reshape(shape)
end

---Observations as networks see them: scaled by their running mean and deviation, which are first updated by z if
---`learn` is set; z itself where observations are not scaled.
---@param self cq.Learner
---@param z cq.Tensor
---@param learn boolean
---@return cq.Tensor
function learner.seen(self, z, learn)
  if not self.observations then return z end
  if learn then self.observations:update(z) end
  return self.observations:normalize(z)
end

---One optimizer step down the gradient of f, which changes params in place. A parameter without influence has the
---gradient 0.
---@param optimizer cq.Optimizer
---@param params table<string, cq.Tensor>
---@param f fun(p: table<string, cq.Tensor>): cq.Tensor
---@return number value
function learner.descend(optimizer, params, f)
  local list, grads = T.leaves.list(params), {}
  local value, adjoints = gradient.part(f, list, params)
  for k, leaf in ipairs(list) do
    local t = leaf.tensor
    grads[t] = adjoints[k] and class.wrap(adjoints[k], t.count, t.rank, t.dims) or T.zeros(t:shape())
  end
  optimizer:update(params, T.leaves.map(params, function(t) return grads[t] end))
  return value
end

---Adds the episodes that ended in a control step to the sums `told`: their count, returns and lengths, and the scenes
---that failed.
---@param told { count: number, sum: number, length: number, failures: number }
---@param ended cq.Tensor      {scenes} 1 where an episode ended
---@param info table           of env:step, or the same of a window's step
function learner.note_episodes(told, ended, info)
  for scene = 1, ended.count do
    if ended:get(scene) ~= 0 then
      told.count = told.count + 1
      told.sum, told.length = told.sum + info.episode_return:get(scene), told.length + info.episode_length:get(scene)
    end
  end
  if info.failed then told.failures = told.failures + info.failed:sum():item() end
end

---New sums over episodes, all 0, for learner.note_episodes.
---@return { count: number, sum: number, length: number, failures: number }
function learner.no_episodes() return { count = 0, sum = 0, length = 0, failures = 0 } end

---Adds to a row the columns of the history that all algorithms have, and counts the steps made.
---@param self cq.Learner
---@param row table<string, number>   with reward, the mean of a control step, whose negative is the loss
---@param told table           from learner.note_episodes
---@param started number       cq_clock at the beginning of the update [s]
---@return table<string, number> row
function learner.complete(self, row, told, started)
  local count = self.env.scenes * self.horizon
  self.steps_made = self.steps_made + count
  row.loss = -row.reward
  row.steps, row.episodes, row.failures = self.steps_made, told.count, told.failures
  row.episode_return = told.count > 0 and told.sum / told.count or nil
  row.episode_length = told.count > 0 and told.length / told.count or nil
  row.steps_a_second = count / (C.cq_clock() - started)
  return row
end

-- ---- state ----------------------------------------------------------------------------------------------------------

-- Options of learners that networks, observations or the meaning of a history depend on; the others may change from one
-- process to the next, except the steps, which may be more.
local of_problem = { "hidden", "critic_hidden", "normalize_observations", "batch", "horizon", "gamma" }
local of_nobody = { env = true, steps = true, seed = true }

-- A learner's settings in words (cq.Signature): `problem`, which a saved state must share, and `manner`, as the rate,
-- which may differ.
local function signature_of(self)
  local env, o = self.env, self.options
  local problem = { scenes = signature.word(env.scenes), episode = signature.word(env.steps),
    observations = signature.word(env.observation_space.shape), actions = signature.word(env.action_space.shape),
    world = env.world and tostring(env.world) }
  local observer = text.is_instance(env, "cq.Env") and env.observer
  if observer and observer.family then signature.add_sight(problem, observer, "env.observer") end
  for _, name in ipairs(of_problem) do problem[name] = o[name] ~= nil and signature.word(o[name]) or nil end
  local manner = {}
  for name, value in pairs(o) do
    if not problem[name] and not of_nobody[name] then manner[name] = signature.word(value) end
  end
  return { problem = problem, manner = manner }
end

-- Raises an error if what a learner needs to go on cannot be saved. otherwise: what else may be done, or nil.
local function check_snapshot(self, what, otherwise)
  if not self.env.snapshot then
    is.fail("%s: the environment has no snapshot() and restore(), which cq.Env has; give it both%s", what,
      otherwise or "")
  end
end

local state_fields = {
  updates_made = is.integer { min = 0 }, steps_made = is.integer { min = 0 }, params = is.table(), kept = is.table(),
  env = is.table { optional = true },
}

-- Which field of a state of this kind of learner is missing or of another kind, in words; nil if none is.
local function damage_of(self, state)
  local problem = is.problem(state_fields, state)
  for _, name in ipairs(self.kept) do
    local wanted, value = shape_text(self[name]:shape()), not problem and state.kept[name]
    local got = T.is_tensor(value) and shape_text(value:shape()) or text.describe(value or nil)
    if not problem and got ~= wanted then
      problem = ("kept.%s must be a tensor %s, got %s"):format(name, wanted, got)
    end
  end
  for _, name in ipairs(self.parts) do
    local value = state.parts[name]
    if not problem and self[name] and type(value) ~= "table" then
      problem = ("parts.%s must be a table, got %s"):format(name, text.describe(value))
    end
  end
  return problem
end

-- Raises an error if a value is no state of such a learner, or of one with another problem; warns where its manner
-- differs (signature_of). what: the calling function; whose: the state in words, for errors.
local function check_state(self, state, what, whose)
  if type(state) ~= "table" or type(state.parts) ~= "table" then
    is.fail("%s: %s, and needs one from learner:state()", what, whose or "got " .. is.describe(state))
  end
  if state.kind ~= self.kind then
    is.fail("%s: the state is of cq.Learner.%s, this is cq.Learner.%s", what, tostring(state.kind), self.kind)
  end
  signature.check(state.signature, signature_of(self), what)
  local damage = damage_of(self, state)
  if damage then is.fail("%s: the state is damaged: %s", what, damage) end
  if state.env then check_snapshot(self, what) end
end

-- The observer of a learner's environment, if it learns itself, as an autoencoder does; else nil.
local function learning_observer(self)
  local observer = text.is_instance(self.env, "cq.Env") and self.env.observer
  return observer and observer.restore and observer or nil
end

-- A learner's state, with that of its environment where this has begun and can be taken up again, and of an observer
-- that learns.
local function state_of(self)
  local observer = learning_observer(self)
  local out = { kind = self.kind, signature = signature_of(self), updates_made = self.updates_made,
    steps_made = self.steps_made, params = T.leaves.snapshot(self.params), parts = {}, kept = {},
    env = self.began and self.env.snapshot and self.env:snapshot() or nil,
    observer = observer and observer:state() or nil }
  for _, name in ipairs(self.parts) do out.parts[name] = self[name] and self[name]:state() or nil end
  for _, name in ipairs(self.kept) do out.kept[name] = T.leaves.snapshot(self[name]) end
  return out
end

---All that is needed to go on later, bit for bit, as a table for cq.save: parameters, moments of the optimizers,
---running means, random numbers, where the environment stands, and what its observer has learned (an autoencoder).
---Errors: an environment that has no snapshot, as cq.Env has.
---@return table
function Learner:state()
  check_snapshot(self, "learner:state")
  return state_of(self)
end

-- Gives a learner the values of a state.
local function assign(self, state)
  T.leaves.load(self.params, state.params, "learner:restore")
  for _, name in ipairs(self.parts) do
    if self[name] then self[name]:restore(state.parts[name]) end
  end
  for _, name in ipairs(self.kept) do self[name] = state.kept[name] end
  self.updates_made, self.steps_made = state.updates_made, state.steps_made
  self.began = state.env ~= nil
  if state.env then self.env:restore(state.env) end
  local observer = state.observer and learning_observer(self)
  if observer then observer:restore(state.observer) end
end

-- Takes over a state that was checked as a whole. Where one of its parts is damaged, the learner is as it was before.
local function take(self, state)
  local before, began = state_of(self), self.began
  local fine, problem = pcall(assign, self, state)
  if fine then return end
  self.began = pcall(assign, self, before) and began
  error(problem, 0)
end

---Continues from the state of a learner with the same definition, which may have been made for fewer steps. Errors,
---which leave the learner as it was: no state; a damaged one; one of another learner, or with other scenes, episodes,
---observations, networks, batches or discount. Warns of other rates and the like.
---@param state table
function Learner:restore(state)
  check_state(self, state, "learner:restore")
  take(self, state)
end

-- ---- training -------------------------------------------------------------------------------------------------------

---@class learner.train.def
---@field folder? string        history.csv, parameters and state are written there, as by run:optimize, the state every
---  five seconds and at the end; --out unless given, or another run of the script is there. Without both nothing is
---  written
---@field resume? boolean       go on from what lies in the folder; --resume unless given
---@field on_update? fun(row: table<string, number>, learner: cq.Learner): boolean?   after each update; true ends the
---  training

local spec = is.define("learner:train", {
  folder = is.string { optional = true }, resume = is.boolean { optional = true },
  on_update = is.callable { optional = true },
})

-- The folder of a training: def.folder; else --out, unless another run of the script is in it or the environment cannot
-- be saved; nil: no folder. Errors: def.folder with an environment that cannot be saved.
local function folder_of(self, def)
  local taken = require "cq.run.taken"
  if def.folder then check_snapshot(self, "learner:train: folder", ", or train without a folder") end
  local out = option.program.out
  if def.folder or not out then return def.folder end
  if taken.has(out) then
    message.note "learner:train names no folder, and --out has another run of the script; nothing of it is written"
  elseif not self.env.snapshot then
    message.warn("learner:train names no folder, and --out is not used, as the environment has no snapshot() and "
      .. "restore()")
  else
    return out
  end
end

-- The cq.Run in the training's folder; where it resumes, the learner and its history are restored. nil: the training
-- has no folder. Errors, before the folder is touched: resume without one; a folder of another training.
local function open(self, def)
  local runs = require "cq.run"
  local folder = folder_of(self, def)
  if not folder then
    if def.resume then is.fail "learner:train: resume needs the folder that the training has written" end
    return nil
  end
  local saved = runs.resumes(def.resume) and not option.program.check and runs.saved_in(folder)
  if saved then
    check_state(self, saved.optimizer, "learner:train", ("%s/optimizer.bin has no state of a learner"):format(folder))
  end
  local run = runs.open { iterations = self.updates, folder = folder, resume = def.resume }
  if run.saved then
    take(self, run.saved.optimizer)
    self.history = run:made()
    if self.updates_made >= self.updates then
      message.note("the run in %s has made %s; %d are asked for", folder, text.count(self.updates_made, "update"),
        self.updates)
    end
  end
  return run
end

-- One update of the algorithm, with `begin` before the first; its row of the history is kept and recorded in the run,
-- with a checkpoint after on_update. Returns the value of on_update: true ends the training.
local function one_update(self, def, run)
  if not self.began then self:begin() end
  local row = self:iterate()
  self.updates_made = self.updates_made + 1
  self.history[#self.history + 1] = row
  if run then
    local recorded = { iteration = self.updates_made }
    for name, value in pairs(row) do recorded[name] = value end
    run:record(recorded)
  end
  local stops = def.on_update and predicates.read(def.on_update(row, self), "learner:train: on_update")
  -- with what on_update has changed, as the weights of an observer
  if run then run:checkpoint(self.updates_made, self.params, self:state()) end
  return stops
end

-- The error of an update, with what to do where a loss or a gradient is not finite.
local function with_advice(self, problem)
  if type(problem) ~= "string" or not problem:find("is no finite number", 1, true) then return problem end
  return ("%s; update %d of cq.Learner.%s diverges: take a smaller rate (%g), or rewards of a smaller size"):format(
    problem, self.updates_made + 1, self.kind, self.options.rate)
end

-- Makes updates until all are made, on_update gives true, or Ctrl-C; one alone in a check.
local function train(self, def, run)
  local last = option.program.check and math.min(self.updates, self.updates_made + 1) or self.updates
  while self.updates_made < last and C.cq_interrupted() == 0 do
    local updates, seen = self.updates_made, self.observations and self.observations:state()
    local fine, stops = pcall(one_update, self, def, run)
    -- one that was broken off leaves weights as they were, which go with the running means of before
    if not fine and seen and self.updates_made == updates then self.observations:restore(seen) end
    -- an update that Ctrl-C broke off is made again by --resume
    if not fine and C.cq_interrupted() == 0 then error(with_advice(self, stops), 0) end
    if not fine or stops then break end
  end
end

-- Takes over what the training's folder has, if any, and makes no update.
local function replay(self, def)
  local runs = require "cq.run"
  local folder = folder_of(self, def)
  if folder then require("cq.run.taken").add(folder) end
  local saved = folder and runs.saved_in(folder)
  if not saved then return end
  check_state(self, saved.optimizer, "learner:train", ("%s/optimizer.bin has no state of a learner"):format(folder))
  take(self, saved.optimizer)
  self.history = require("cq.run.history").rows(folder .. "/history.csv")
end

-- Prints that Ctrl-C has ended a training without a folder, unless the script has a run open that tells what it keeps.
local function tell_lost(self)
  if C.cq_interrupted() == 0 or watch.wanted or require("cq.run").current() then return end
  message.interruption("interrupted after update %d of cq.Learner.%s, which writes to no folder; it is lost unless the "
    .. "script keeps it", self.updates_made, self.kind)
end

---Trains up to the number of steps that the learner was made for. Ctrl-C ends it after what was computed is saved; with
---a folder, --resume goes on from there with the same bits.
---@param options? learner.train.def
---@return table<string, number>[] history
function Learner:train(options)
  local def = spec(options or {})
  made.require(self, "cq.Learner." .. self.kind, "give it to the constructor")
  tape.pause(function()
    if option.program.replay then return replay(self, def) end          -- cqlua robust
    local run, stopped = open(self, def), C.cq_interrupted() ~= 0
    train(self, def, run)
    if not (run or stopped) then tell_lost(self) end
    if run then
      local row = self.history[#self.history]
      if self.updates_made > 0 then saved_runs.write_learned(run, self, row and row.reward) end
      run:finish()
    end
  end)
  return self.history
end

---The policy without noise, a cq.Controller.mlp on the environment's observations, which can be saved, exported and
---trained further; a copy, which further training does not change. It refuses other numbers of observations.
---@return cq.Controller
function Learner:controller()
  local own, params = self.observations, {}
  for k = 1, #self.options.hidden + 1 do
    for _, name in ipairs { "w", "b" } do params[name .. k] = self.params["mean_" .. name .. k]:detach():copy() end
  end
  local out = controllers.mlp {
    inputs = self.env.observation_space.shape[1], signals = self.env.action_space.shape[1],
    hidden = self.options.hidden, activation = self.activation, output = self.output, init = params,
    mean = own and own.mean:totable() or nil, deviation = own and own:deviation():totable() or nil,
  }
  local env = text.is_instance(self.env, "cq.Env") and self.env
  if env then out.used = { world = env.world, observer = env.observer } end      -- what controller:export asks for
  return out
end

method.guard(Learner, "learner", { "state", "restore", "train", "controller" })

return learner
