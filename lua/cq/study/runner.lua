-- runner: works on a study with some processes at a time. Many may do so on one store: each claims trials, starts a
-- process for each, keeps what the processes say and beats for them. The runner alone writes to the store.
local engine = require "cq.base.engine"
local History = require "cq.study.history"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local message = require "cq.base.message"
local option = require "cq.option"
local process = require "cq.study.process"
local Progress = require "cq.study.progress"
local trial = require "cq.study.trial"

local C = engine.C

---@class cq.Runner
---@field study cq.Study
---@field store cq.Store
local Runner = { __name = "cq.Runner" }
Runner.__index = Runner

local BEAT = 5               -- [s] between two beats
local FLUSH = 1              -- [s] that reports wait to be written together
local LOOK = 0.25            -- [s] between two looks at the store while there is nothing to claim
local GRACE = 3              -- [s] that processes have to end when they are asked to

---@class cq.Runner.def
---@field study cq.Study
---@field store cq.Store
---@field folder string         of the study
---@field jobs integer          processes at a time
---@field words string[]        what a child's command line is
---@field threads integer       of a child
---@field script string?        the hash of the script
---@field options table         of option.of_results, for what trials leave
---@field command fun(number: integer): string    that tries a trial once more, alone
---@field fingerprint fun(): string    a hash of the script and its modules as they are now

-- The runner (worker) of a study's trials in child processes: `def` itself, completed. No process is started yet.
---@param def cq.Runner.def
---@return cq.Runner
local function new(def)
  local self = setmetatable(def, Runner)
  self.worker, self.children, self.busy, self.loaded = process.name(), {}, 0, def.fingerprint()
  self.history = def.study:adapts() and History.new(def.study, def.store) or nil
  self.beat_at, self.flush_at, self.reconnects = 0, 0, def.store.base.reconnects
  self.progress = Progress.new(def.study, def.store)
  return self
end

-- ---- claims --------------------------------------------------------------------------------------------------------

-- If the connection to the server was lost since the last call: has the store know of the trials that run here, and of
-- no others, and reads the history anew. A server that failed may have forgotten the last second.
local function recover_claims(self)
  if self.store.base.reconnects == self.reconnects then return end
  self.reconnects = self.store.base.reconnects
  self.history = self.history and History.new(self.study, self.store)
  local known = {}
  for _, child in ipairs(self.children) do
    local claimed = child.claimed
    if claimed then
      known[claimed.number] = true
      self.store:claim_again(claimed, self.worker, process.now())
    end
  end
  self.store:give_back_unknown(self.worker, known)
end

-- Claims the next waiting trial for this worker and gives it a point, in one transaction, so that replicates of a point
-- cannot draw different ones. Returns { number, attempts, point: JSON }; nil: none waits that can have a point.
local function claim(self)
  local store, now = self.store, process.now()
  return store.base:transaction(function()
    recover_claims(self)
    if self.history then
      store.base:turn()
      self.history:refresh()
    end
    local claimed = store:claim(self.worker, self.study:limit(self.history), now)
    if not claimed then return nil end
    local point = claimed.point
    if not point then
      local k = self.study:place(claimed.number)
      point = self.history and self.history:point(claimed.number) or json.encode(self.study:draw(k))
    end
    store:begin(claimed, point)
    claimed.point = point
    return claimed
  end)
end

-- A claimed trial as the table that is sent to a child process, whose n-th job it is.
local function job_of(self, claimed, n)
  local _, replicate = self.study:place(claimed.number)
  local point = json.decode(claimed.point)
  return {
    job = n, number = claimed.number, attempts = claimed.attempts, point = point, replicate = replicate,
    seed = self.study:seed_of(point, replicate), folder = self:trial_folder(claimed.number), script = self.script,
    options = self.options, command = self.command(claimed.number), loaded = self.loaded, began = process.now(),
  }
end

---The path of a trial's folder, which need not exist.
---@param number integer
---@return string
function Runner:trial_folder(number) return ("%s/trials/%06d"):format(self.folder, number) end

-- Returns a child process without a trial; starts one if there is none.
local function idle_child(self)
  for _, child in ipairs(self.children) do
    if not child.claimed and not child.leaving then return child end
  end
  local child = process.start(self.words, self.threads, self.folder .. "/processes.log")
  self.children[#self.children + 1] = child
  return child
end

-- Claims trials while fewer than self.jobs run, and hands each to a child process. If nothing can be claimed, the store
-- is not asked again before self.look_at.
local function start_trials(self)
  while self.busy < self.jobs do
    if not self.waiting and process.now() < (self.look_at or 0) then return end
    local claimed = claim(self)
    self.waiting, self.look_at = claimed ~= nil, process.now() + LOOK
    if not claimed then return end
    local child = idle_child(self)
    child.claimed, child.reports, child.last = claimed, {}, {}
    child.began, child.jobs = process.now(), (child.jobs or 0) + 1
    self.busy = self.busy + 1
    child:send(json.encode(job_of(self, claimed, child.jobs)))
  end
end

-- ---- what children say ---------------------------------------------------------------------------------------------

-- Stores the reports that a child has sent, within the caller's transaction. The caller clears them afterwards, since a
-- transaction may be repeated.
local function flush(self, child)
  if #child.reports > 0 then self.store:report(child.claimed, self.worker, child.reports) end
end

-- Frees a child of its trial.
local function release(self, child)
  child.claimed, child.reports, self.busy, self.waiting = nil, {}, self.busy - 1, true
  if child.leaving then child:dismiss() end
end

-- Stores the end of a child's trial, and frees the child for another one. If another worker has claimed the trial
-- meanwhile, the result is dropped. ended: { state, result, value, problem }.
local function finish(self, child, ended)
  -- what a trial says whose folder was removed under it is nothing to keep
  if self.store:is_removed() then return end
  local claimed = child.claimed
  ended.step = child.last.step
  local taken = self.store.base:transaction(function()
    flush(self, child)
    return self.store:finish(claimed, self.worker, ended, process.now())
  end)
  release(self, child)
  if taken then self.progress:ended(claimed, ended)
  else message.note("trial %d: another process has it now; what came of this attempt was dropped", claimed.number) end
end

-- a trial whose process ended without a word, by a signal that came from outside or by a fault of its own
local by_hand = { [1] = true, [2] = true, [9] = true, [15] = true }
-- Stores that a child's process ended, with a code or by a signal, before its trial did. If it was killed from outside,
-- or left with code 0, the trial waits again, up to `retries` times; any other end fails the trial.
local function handle_exit(self, child, code, signal)
  local claimed = child.claimed
  if (signal and by_hand[signal]) or code == 0 then
    local problem = ("its process was ended%s"):format(signal == 9 and " by signal 9 (too little memory, or by hand)"
      or signal and " by signal " .. signal or "")
    local changed = self.store.base:transaction(function()
      flush(self, child)
      return self.store:lose(claimed, self.worker, self.study.retries, problem, process.now())
    end)
    release(self, child)
    if changed > 0 then message.note("trial %d: %s", claimed.number, problem) end
    return
  end
  local problem = signal and ("its process crashed with signal %d"):format(signal)
    or ("its process ended with code %d"):format(code)
  local printed = self:trial_folder(claimed.number) .. "/output.txt"
  finish(self, child, {
    state = "failed", problem = ("%s; what it printed is in %s or in processes.log"):format(problem, printed),
  })
end

local hear = {}

-- Message "report" of a child: its trial has a value at a step, which is kept in child.reports, for flush. rest: the
-- message after its first word, here and below.
function hear.report(_, child, rest)
  local name, step, value = rest:match "^([^\t]*)\t([^\t]*)\t([^\t]*)$"
  step, value = tonumber(step), tonumber(value)
  child.reports[#child.reports + 1] = { name, step, value }
  child.last.step, child.last.value = step, value
end

-- Message "ask": shall the trial, which has a value at a step, go on? Sends the pruner's answer, "end" or "go".
function hear.ask(self, child, rest)
  local step, value = rest:match "^([^\t]*)\t([^\t]*)$"
  step, value = tonumber(step), tonumber(value)
  child.last.compared = value
  local others = self.store:compare(child.claimed, self.worker, step, value)
  child:send(self.study.pruner:ends(value, others) and "end" or "go")
end

-- Message "ended": the forked process of the child's n-th job has ended, with a code or by a signal. Unless the trial's
-- own end was reported before, that is stored. A server that failed may have forgotten that end: the child's next job
-- can be the same trial, and goes on.
function hear.ended(self, child, rest)
  local n, code, signal = rest:match "^(%d+)\t(%-?%d+)\t(%d+)$"
  code, signal = tonumber(code), tonumber(signal)
  if child.jobs ~= tonumber(n) then return end
  handle_exit(self, child, code >= 0 and code or nil, signal > 0 and signal or nil)
end

-- Message "last": the child takes no trial after this one.
function hear.last(_, child) child.leaving = true end

-- The first objective in a trial's numbers, signed so that less is better; nil if it is missing.
local function first_value(self, numbers)
  local first = self.study.objectives[1]
  return numbers[first.name] and numbers[first.name] * first.sign
end

-- Message "done": the trial has succeeded; stores its result.
function hear.done(self, child, rest)
  local result = json.decode(rest)
  finish(self, child, { state = "done", result = result, value = first_value(self, result) })
end

-- Message "pruned": the pruner has ended the trial; stores that, with the value for which it did.
function hear.pruned(self, child) finish(self, child, { state = "pruned", value = child.last.compared }) end

-- Message "failed": the trial failed; stores that, with its problem.
function hear.failed(self, child, rest)
  finish(self, child, { state = "failed", problem = json.decode(rest).problem })
end

-- Message "told": a warning for the user; the same one of several trials is printed once.
function hear.told(_, _, rest) message.warn("%s", json.decode(rest).sentence) end

-- Message "refused": the child runs no trial, for a reason. The trial waits again, and no other one is begun.
function hear.refused(self, child, rest)
  local claimed = child.claimed
  self.store:give_back(claimed.number, claimed.attempts, self.worker)
  release(self, child)
  self.refusal, self.stopping = json.decode(rest).problem, true
end

-- Removes a child process from self.children.
local function remove(self, child)
  for k, other in ipairs(self.children) do
    if other == child then table.remove(self.children, k) end
  end
end

-- Reads the messages that a child process has sent, and handles each; if the child has ended, removes it.
local function listen(self, child)
  local lines, ended = child:receive()
  child.heard = child.heard or #lines > 0
  for _, line in ipairs(lines) do
    local word, rest = line:match "^(%l+)\t?(.*)$"
    if child.claimed and hear[word] then hear[word](self, child, rest) end
  end
  if not ended then return end
  remove(self, child)
  local code, signal = child:wait()
  if not child.claimed then return end
  -- a script that was changed need not be one that can be loaded
  if code and code ~= 0 and not child.heard and self.fingerprint() ~= self.loaded then
    hear.refused(self, child, json.encode { problem = trial.CHANGED })
  else
    handle_exit(self, child, code, signal)
  end
end

-- ---- from time to time ---------------------------------------------------------------------------------------------

-- Called in every round of the loop; at intervals writes reports to the store, looks for an order to stop, writes a
-- heartbeat, and takes back the trials of workers that are gone.
local function tick(self)
  local now = process.now()
  recover_claims(self)
  if now - self.flush_at >= FLUSH then
    self.flush_at = now
    self.store.base:transaction(function()
      for _, child in ipairs(self.children) do
        if child.claimed then flush(self, child) end
      end
    end)
    for _, child in ipairs(self.children) do child.reports = {} end
    self.stopping = self.stopping or self.store:flag "stop" ~= nil
  end
  if now - self.beat_at >= BEAT then
    self.beat_at = now
    self.store:beat(self.worker, now)
    local found = self.store:reap(self.study.retries, now, process.is_gone)
    if found > 0 then self.waiting = true end
  end
  self.progress:update(self.children)
end

-- Is this worker done: nothing runs here, and no trial of the study waits, or it is ordered to stop?
local function is_over(self)
  if self.busy > 0 then return false end
  if self.stopping then return true end
  if self.waiting then return false end
  return self.store:counts().waiting == 0
end

-- Ends all child processes; their running trials wait again, as if they had not begun. A child that does not end within
-- GRACE is killed.
local function end_children(self)
  for _, child in ipairs(self.children) do
    child:dismiss()                      -- one that has nothing to do ends by itself
    if child.claimed then child:signal(process.SIGTERM) end
  end
  local until_then = process.now() + GRACE
  while #self.children > 0 do
    local left = until_then - process.now()
    if left <= 0 then
      for _, child in ipairs(self.children) do child:signal(process.SIGKILL) end
    end
    for _, child in ipairs(process.poll(self.children, math.max(left, 0.05))) do
      local _, ended = child:receive()
      if ended then
        remove(self, child)
        child:wait()
        if child.claimed then self.store:give_back(child.claimed.number, child.claimed.attempts, self.worker) end
      end
    end
  end
end

-- The loop of a worker: starts trials, reads messages and updates the store, until it returns "finished", "stopped",
-- "removed" (the store's file is gone) or "interrupted".
local function work(self)
  self.waiting = true
  while C.cq_interrupted() == 0 do
    tick(self)
    if self.store:is_removed() then return "removed" end
    if not self.stopping then start_trials(self) end
    if is_over(self) then return self.stopping and "stopped" or "finished" end
    local wait = self.busy < self.jobs and not self.stopping and LOOK or 2 * LOOK
    for _, child in ipairs(process.poll(self.children, wait)) do listen(self, child) end
  end
  return "interrupted"
end

---Works until no trial is left, an order to stop, or Ctrl-C, and ends all child processes. Errors: the folder of the
---study was removed meanwhile: the known results are first written to a new file; a script that was changed, or that
---cannot be run so: its other trials come to their end before.
---@return "finished"|"stopped"|"interrupted"
function Runner:run()
  local fine, outcome = pcall(work, self)
  local ended, problem = pcall(end_children, self)
  self.progress:close()
  if not fine then error(outcome, 0) end
  if not ended then error(problem, 0) end
  if outcome == "removed" then
    is.fail("the folder %s was removed while its study went on; %s", self.folder, self.store:keep_anew())
  end
  if self.refusal then is.fail("%s", self.refusal) end
  return outcome
end

---The arguments of a child process: the script and its options, and the program's options, with threads and memory
---split among jobs.
---@param session cq.Session
---@param jobs integer
---@return string[] words, integer threads
local function command_line(session, jobs)
  local host = require "cq.host"
  local words = { "study", "work", session.script, "--quiet" }
  if session.seeds then words[#words + 1] = ("--seeds=%d"):format(session.seeds) end
  for _, word in ipairs(option.words(option.of_results())) do words[#words + 1] = word end
  local cores = option.program.threads > 0 and option.program.threads or host.processors()
  local threads = math.max(1, math.floor(cores / jobs))
  words[#words + 1] = ("--threads=%d"):format(threads)
  words[#words + 1] = ("--share=%d"):format(jobs)
  return words, threads
end

return { new = new, command_line = command_line, class = Runner }
