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

local function halve(params, before)
  local found = T.leaves.pair(params, before)
  for _, leaf in ipairs(T.leaves.list(params)) do
    leaf.tensor:copy_from((leaf.tensor:detach() + found[leaf.tensor]:detach()) / 2)
  end
end

---Evaluations that go back towards the parameters of the one before as long as their simulation fails.
---@param most integer     halvings of one update; then the failure is an error
---@return fun(evaluate: (fun(params: any): ...), params: any): ...   what evaluate gives
function backtrack.keeper(most)
  local before
  local function attempt(evaluate, params, halvings, fine, ...)
    if fine then
      before = T.leaves.snapshot(params)
      if halvings > 0 then
        message.note("the simulation failed after an update, and runs with 1/%d of it", 2 ^ halvings)
      end
      return ...
    end
    local problem = ...
    if not backtrack.is_of_simulation(problem) or not before then error(problem, 0) end
    if halvings == most then
      error(("%s; so it did with the last update halved %s"):format(problem, text.count(most, "time")), 0)
    end
    halve(params, before)
    return attempt(evaluate, params, halvings + 1, pcall(evaluate, params))
  end
  return function(evaluate, params) return attempt(evaluate, params, 0, pcall(evaluate, params)) end
end

return backtrack
