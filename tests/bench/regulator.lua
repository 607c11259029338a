-- regulator: how far above Riccati's cost PPO ends on the linear-quadratic regulator of tests/regulator.lua, with its
-- default settings.      build/cqlua tests/bench/regulator.lua [--seeds 5] [--updates 40]
local cq = require "cq"
local regulator = require "tests.regulator"

local gains = regulator.best()
local best = regulator.cost(function(z) return z:matmul(gains) end)
for seed = 1, cq.option("seeds", 5) do
  local learner = cq.Learner.ppo { env = regulator.env(16), steps = 2048 * cq.option("updates", 40),
    gamma = regulator.gamma, seed = seed }
  learner:train()
  local controller, row = learner:controller(), learner.history[#learner.history]
  print(("seed %d: %d steps, %.2f %% above, deviation %.3f, %.0f steps a second"):format(seed, row.steps,
    100 * (regulator.cost(function(z) return controller:act(z) end) / best - 1), row.deviation, row.steps_a_second))
end
