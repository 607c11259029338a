-- The walker learns a policy by PPO, which is then loaded without the script, and written as C.
--                                                                                    cqlua examples/walker_ppo.lua
-- Source: the environment of examples/walker_env.lua, PPO of Schulman et al. (2017), with the settings of
-- Stable-Baselines3. Expect: episodes return 0.6 body lengths in the end, and the policy without noise goes 0.7; with 5
-- seeds the last ten updates return 0.52 to 0.61. Kept: 93 and 81 % with 2 and 4 times the substeps, 103 % on a finer
-- grid, 92 % at 5 % of anything, 79 % with a latency of one control step (cq.robustness of an experiment with its
-- policy). Size: 700 particles in 16 scenes, 102,400 control steps of 4. Time: 75 s.
local cq = require "cq"

local env, folder = require "examples.walker_env", cq.Run.default_folder()
local learner = cq.Learner.ppo { env = env, steps = cq.option("iterations", 50) * 2048 }
learner:train {
  folder = folder,
  on_update = function(row)
    print(("%6d steps, episodes return %.3f, actions deviate by %.2f"):format(row.steps, row.episode_return,
      row.deviation))
  end,
}

if learner.updates_made == 0 then return end            -- after Ctrl-C in the first one

-- what the training leaves is used without the learner
local saved = cq.load(folder)
local roll = saved:rollout()
local way = roll.state:center(saved.robots[1])[1] - saved.robots[1].position:mean(1)[1]
print(("the policy without noise goes %.2f body lengths"):format(way:item() / 0.6))
saved.controller:export(folder .. "/walker.h")
env.world:render("walker_ppo.png", {
  steps = env.steps, observer = env.observer, controller = saved.controller, stills = { 0, 0.7, 1.4, 2 },
})
