-- learner: reinforcement learning on an environment.
--
--   local learner = cq.Learner.ppo { env = env, steps = 1e5 }
--   learner:train { on_update = function(row) print(row.steps, row.episode_return) end }
--   world:rollout { controller = learner:controller(), ... }

---@class cq.LearnerModule
local learner = {}

---Proximal policy optimization.
---@param fields cq.Learner.ppo.def
---@return cq.Learner
function learner.ppo(fields) return require("cq.learn.ppo").new(fields) end

---Short-horizon actor-critic: gradients through windows of the simulation, with a learned value of what comes after.
---@param fields cq.Learner.shac.def
---@return cq.Learner
function learner.shac(fields) return require("cq.learn.shac").new(fields) end

return learner
