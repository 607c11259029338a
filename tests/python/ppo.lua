-- The training of tests/python/side_by_side.py by cq.Learner.ppo: examples/walker_env.lua by one seed, `trial`.
--   cqlua tests/python/ppo.lua --folder FOLDER [--trial 1] [--steps 102400]
local cq = require "cq"

local learner = cq.Learner.ppo {
  env = dofile "examples/walker_env.lua", steps = cq.option("steps", 102400), seed = cq.option("trial", 1),
}
learner:train { folder = cq.option("folder", "runs/ppo") }
