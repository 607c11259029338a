-- regulator: the linear-quadratic regulator that learners are measured by, and its best gains.
--
-- A point mass that is pushed to the origin: x' = A x + B u, cost x' Q x + R u^2, in episodes of a fixed length, which
-- are truncated, so that learners count on what comes after.
local cq = require "cq"
local T = require "cq.tensor"

local regulator = { gamma = 0.95, steps = 20 }

local DT, LONG, Q1, Q2, R = 0.2, 120, 1, 0.1, 2
local GAMMA = regulator.gamma

---An environment as cq.Env is one.
---@param scenes integer
---@param steps? integer
function regulator.env(scenes, steps)
  local env = { scenes = scenes, observation_space = { shape = { 2 } }, action_space = { shape = { 1 } } }
  local x, v, length, returned
  local function seen() return T.stack({ x, v }, 2) end
  local function begin()
    local start = env.random:uniform({ 2, scenes }, { min = -0.5, max = 0.5 })
    x, v = start[1], start[2]
    length, returned = 0, T.zeros { scenes }
  end
  function env.reset(_, options)
    env.random = cq.random { seed = options.seed }
    begin()
    return seen()
  end
  function env.step(_, u)
    u = u:flatten()
    local reward = -(Q1 * x:square() + Q2 * v:square() + R * u:square())
    x, v = x + DT * v, v + DT * u
    length, returned = length + 1, returned + reward
    local ends, last = length == (steps or regulator.steps), seen()
    local info = { final_observation = last, episode_return = returned, episode_length = T.full({ scenes }, length) }
    if ends then begin() end
    return seen(), reward, T.zeros { scenes }, T.full({ scenes }, ends and 1 or 0), info
  end
  return env
end

---The best gains {2, 1}, u = gains x, by Riccati's recursion, and the matrix of the best value: -x' P x.
---@return cq.Tensor gains
---@return cq.Tensor P      {2, 2}
function regulator.best()
  local p11, p12, p22, k1, k2 = 0, 0, 0, nil, nil
  for _ = 1, 400 do
    -- P of the step after, discounted, seen through A and B
    local q11, q12, q22 = GAMMA * p11, GAMMA * p12, GAMMA * p22
    local s = R + DT * DT * q22
    k1, k2 = DT * q12 / s, (DT * DT * q12 + DT * q22) / s
    p11, p12 = Q1 + q11 - k1 * k1 * s, q11 * DT + q12 - k1 * k2 * s
    p22 = Q2 + q11 * DT * DT + 2 * q12 * DT + q22 - k2 * k2 * s
  end
  return T.tensor { { -k1 }, { -k2 } }, T.tensor { { p11, p12 }, { p12, p22 } }
end

---The mean discounted cost from 500 starts, which are the same for every policy: their variances are not those of the
---distribution, by 2 %.
---@param policy fun(z: cq.Tensor): cq.Tensor
---@return number
function regulator.cost(policy)
  local env, sum = regulator.env(500, LONG + 1), 0
  local z = env:reset { seed = 9 }
  for t = 1, LONG do
    local reward
    z, reward = env:step(policy(z))
    sum = sum - GAMMA ^ (t - 1) * reward:mean():item()
  end
  return sum
end

return regulator
