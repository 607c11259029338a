-- recover: an evaluation whose simulation fails is repeated with half of the last update, and half of that again; then
-- with all of it and more substeps, which stay; and where that does not help either, without the update and with the
-- substeps of before, and the optimizer begins anew from there. Where nothing helps, the substeps are those of before.
local T = require "cq.tensor"
local message = require "cq.base.message"
local text = require "cq.base.text"

local recover = {}

local MOST = 8                -- times the substeps that the world had at first: beyond, more do not help
local PATIENCE = 3            -- updates that are left out one after the other, before that is an error

---Is it the error of steps that are too long for the values of robots?
---@param problem any      of an error
---@return boolean
function recover.is_of_courant(problem)
  return type(problem) == "string" and problem:find("the Courant number of the robot's values is", 1, true) ~= nil
end

---Is it the error of an unstable simulation, and not some other one?
---@param problem any      of an error
---@return boolean
function recover.is_of_simulation(problem)
  return type(problem) == "string" and problem:find("the simulation failed at", 1, true) ~= nil
    or recover.is_of_courant(problem)
end

---Is it the error of a machine whose memory is full, and not of what is simulated, as of particles that are everywhere?
---@param problem any      of an error
---@return boolean
function recover.is_of_memory(problem)
  return type(problem) == "string" and not problem:find("are possible", 1, true)
    and (problem:find("out of memory", 1, true) or problem:find("the memo needs at least", 1, true)) ~= nil
end

-- Copies values into the parameters' tensors. values: nested as params.
local function set(params, values)
  local found = T.leaves.pair(params, values)
  for _, leaf in ipairs(T.leaves.list(params)) do leaf.tensor:copy_from(found[leaf.tensor]:detach()) end
end

-- Moves the parameters, in place, halfway back to their values `before` the last update.
local function halve(params, before)
  local found = T.leaves.pair(params, before)
  for _, leaf in ipairs(T.leaves.list(params)) do
    leaf.tensor:copy_from((leaf.tensor:detach() + found[leaf.tensor]:detach()) / 2)
  end
end

---Evaluations that make do where their simulation fails.
---@class cq.Recover
---@field halvings integer   of one update at most
---@field factor integer     of the substeps; 1: they are no more
---@field before any         the parameters of the last evaluation that did not fail; saved with a run, which goes on with it
---@field restart? fun()      makes the optimizer begin anew
---@field changed? fun()      is called where the substeps are others from now on: losses so far are of another problem
---@field told table?        { halvings =, substeps =, skipped = } of the last evaluation, where it failed at first
local Recover = {}
Recover.__index = Recover

-- After an evaluation: prints how it succeeded where it failed at first, by a skipped update, halved updates or more
-- substeps, and notes that in self.told. Restarts an optimizer whose update was skipped; calls self.changed where there
-- are more substeps. state: as in `attempt`.
local function tell(self, state)
  self.skipped = state.skipped and (self.skipped or 0) + 1 or 0
  if state.skipped then
    self.told = { skipped = 1 }
    message.note("the simulation failed after an update, which is left out: the optimizer begins anew from before it")
    return self.restart and self.restart()
  end
  if state.halvings == 0 and not state.substeps then return end
  if state.substeps and self.changed then self.changed() end
  self.told = { halvings = state.halvings > 0 and state.halvings or nil, substeps = state.substeps }
  local parts = {}
  if state.halvings > 0 then parts[1] = ("1/%d of it"):format(2 ^ state.halvings) end
  if state.substeps then parts[#parts + 1] = ("substeps = %d from now on"):format(state.substeps) end
  message.note("the simulation failed after %s, and runs with %s", self.before and "an update" or "the start",
    table.concat(parts, " and "))
end

-- A text on the attempts so far, for the end of the error; empty without any. self: cq.Recover; state: as in `attempt`.
local function tried(self, state)
  local parts = {}
  if self.before and self.halvings > 0 then
    parts[1] = ("with the last update halved %s"):format(text.count(self.halvings, "time"))
  end
  if state.substeps then parts[#parts + 1] = ("with substeps = %d"):format(state.substeps) end
  if #parts == 0 then return "" end
  return ("; so it did %s (recover = { halvings = %d, substeps = %d })"):format(text.join(parts), self.halvings,
    self.factor)
end

-- Passes on the results of an evaluation (fine, ...: of its pcall). After a failed simulation tries again, with half of
-- the update, more substeps, or without the update. state: { halvings, substeps, skipped, updated, first } of the
-- attempts so far. Another error, and Ctrl-C, pass through with the parameters as the update had made them, so that a
-- resumed run halves them again.
local function attempt(self, evaluate, params, state, fine, ...)
  if fine then
    tell(self, state)
    self.before = T.leaves.snapshot(params)
    return ...
  end
  local problem = ...
  if not recover.is_of_simulation(problem) then
    if state.updated then set(params, state.updated) end
    error(problem, 0)
  end
  state.updated = state.updated or T.leaves.snapshot(params)
  if self.before and state.halvings < self.halvings then
    halve(params, self.before)
    state.halvings = state.halvings + 1
  else
    local more = self.factor > 1 and self.refine(self.factor, MOST)
    if more then
      set(params, state.updated)
      state.halvings, state.substeps = 0, more
    elseif self.before and self.factor > 1 and not state.skipped and (self.skipped or 0) < PATIENCE then
      if state.substeps then self.refine(nil, state.first) end
      set(params, self.before)
      state.skipped = true
    else
      if state.substeps then self.refine(nil, state.first) end
      error(problem .. tried(self, state), 0)
    end
  end
  return attempt(self, evaluate, params, state, pcall(evaluate, params))
end

---Returns evaluate(params). Where the simulation fails, tries again with halved updates of params, then with more
---substeps, then without the update. Errors: any other one at once; the simulation's own where nothing helps.
---@param evaluate fun(params: any): ...
---@param params any     changed in place where it must be
---@return any ...
function Recover:evaluate(evaluate, params)
  self.told = nil
  return attempt(self, evaluate, params, { halvings = 0, first = self.substeps and self.substeps() },
    pcall(evaluate, params))
end

---The recovery of an experiment's evaluations, with def.halvings of an update and def.substeps times the substeps.
---@param def { halvings: integer, substeps: integer }
---@param refine fun(factor: integer?, most: integer): integer?   gives the simulation more substeps, and says how many; nil:
---  it has `most` times those at first already. Without a factor it gives it `most`
---@param substeps fun(): integer     those that it has
---@return cq.Recover
function recover.new(def, refine, substeps)
  return setmetatable({ halvings = def.halvings, factor = def.substeps, refine = refine, substeps = substeps }, Recover)
end

return recover
