-- The walker as an environment to step: for reinforcement learning in Python.         cqlua env examples/walker_env.lua
-- Source: robot and world of ChainQueen (ICRA 2019), fig. 4, on a coarse grid. python3 examples/python/walker_ppo.py
-- trains it by PPO of Stable-Baselines3 over examples/python/cqlua_env.py. Expect: a return of 0.3 body lengths after
-- 50,000 steps, from 0.007. Size: 700 particles, episodes of 100 x 4 steps. Time: a minute on two free cores.
local cq = require "cq"

local robot = cq.Robot(require "scenes.walker2d" { count = 10 })
local world = cq.World {
  cells = { 80, 20 }, dx = 1 / 20, dt = 2e-2, substeps = "auto", gravity = { 0, -2 },
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.4, 0.15 },
}

local env = cq.Env {
  world    = world, scenes = cq.option("scenes", 16), steps = 100,                     -- an episode: 2 time units
  observer = cq.Observer.centroid { groups = robot.groups, velocity = true },
  -- forward by so much in this control step, in body lengths
  reward   = function(state, _, next)
    local moved = next:center(robot):slice(1, 1, -1) - state:center(robot):slice(1, 1, -1)
    return moved:flatten() / 0.6
  end,
  -- each begins with a push of its own
  reset    = function(random)
    return robot:with { velocity = random:uniform({ 2 }, { min = -0.05, max = 0.05 }) }
  end,
}
return env
