-- backtrack: updates of parameters after which a simulation fails are taken back by half, and by half again.
local T = require "cq.tensor"
local message = require "cq.base.message"
local text = require "cq.base.text"

local backtrack = {}

---Is it what a rollout that became unstable says, and nothing else does?
---@param problem any
---@return boolean
function backtrack.is_of_simulation(problem)
  return type(problem) == "string" and problem:find("the simulation failed at", 1, true) ~= nil
end

local function set(params, values)
  local found = T.leaves.pair(params, values)
  for _, leaf in ipairs(T.leaves.list(params)) do leaf.tensor:copy_from(found[leaf.tensor]:detach()) end
end

local function halve(params, before)
  local found = T.leaves.pair(params, before)
  for _, leaf in ipairs(T.leaves.list(params)) do
    leaf.tensor:copy_from((leaf.tensor:detach() + found[leaf.tensor]:detach()) / 2)
  end
end

---Evaluations that go back towards the parameters of the one before as long as their simulation fails.
---@class cq.Backtrack
---@field most integer     halvings of one update; then the failure is an error
---@field before any       the parameters of the last one that did not fail; saved with a run, which goes on with it
local Backtrack = {}
Backtrack.__index = Backtrack

-- What else fails, as when Ctrl-C ends it, leaves the parameters as the update had made them: a run that goes on halves
-- them again.
local function attempt(self, evaluate, params, state, fine, ...)
  if fine then
    self.before = T.leaves.snapshot(params)
    if state.halvings > 0 then
      message.note("the simulation failed after an update, and runs with 1/%d of it", 2 ^ state.halvings)
    end
    return ...
  end
  local problem = ...
  if not backtrack.is_of_simulation(problem) or not self.before then
    if state.updated then set(params, state.updated) end
    error(problem, 0)
  end
  if state.halvings == self.most then
    error(("%s; so it did with the last update halved %s"):format(problem, text.count(self.most, "time")), 0)
  end
  state.updated = state.updated or T.leaves.snapshot(params)
  halve(params, self.before)
  state.halvings = state.halvings + 1
  return attempt(self, evaluate, params, state, pcall(evaluate, params))
end

---What evaluate gives of the parameters, or of what is left of their last update.
---@param evaluate fun(params: any): ...
---@param params any     changed where it must be
---@return any ...
function Backtrack:evaluate(evaluate, params)
  return attempt(self, evaluate, params, { halvings = 0 }, pcall(evaluate, params))
end

---@param most integer
---@return cq.Backtrack
function backtrack.new(most) return setmetatable({ most = most }, Backtrack) end

return backtrack
