-- regulator: the linear-quadratic regulator that learners are measured by, and its best gains.
--
-- A point mass that is pushed to the origin: x' = A x + B u, cost x' Q x + R u^2, in episodes of a fixed length, which
-- are truncated, so that learners count on what comes after.
local cq = require "cq"
local T = require "cq.tensor"

local regulator = { gamma = 0.95, steps = 20 }

local DT, LONG, Q1, Q2, R = 0.2, 120, 1, 0.1, 2
local GAMMA = regulator.gamma
regulator.R = R

---@return cq.Tensor A     {2, 2}
---@return cq.Tensor B     {2, 1}
function regulator.dynamics() return T.tensor { { 1, DT }, { 0, 1 } }, T.tensor { { 0 }, { DT } } end

---The matrix P of the cost z' P z of u = K' z for all times, by adding up.
---@param K cq.Tensor     {2, 1}
---@return cq.Tensor      {2, 2}
function regulator.value(K)
  local A, B = regulator.dynamics()
  local closed, Q = A + B:matmul(K:transpose(1, 2)), T.tensor { { Q1, 0 }, { 0, Q2 } }
  local P = T.zeros { 2, 2 }
  for _ = 1, 600 do
    P = Q + R * K:matmul(K:transpose(1, 2)) + GAMMA * closed:transpose(1, 2):matmul(P):matmul(closed)
  end
  return P
end

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
    local info = { final_observation = last, episode_return = returned, episode_length = T.full({ scenes }, length),
      failed = T.zeros { scenes } }
    if ends then begin() end
    return seen(), reward, T.zeros { scenes }, T.full({ scenes }, ends and 1 or 0), info
  end
  -- as env:window of cq.Env
  function env.window(self, def)
    x, v, returned = x:detach(), v:detach(), returned:detach()
    local out = { observation = {}, reward = {}, terminated = {}, truncated = {}, final_observation = {}, failed = {},
      episode_return = {}, episode_length = {} }
    for k = 1, def.steps do
      out.observation[k] = seen()
      local _, reward, terminated, truncated, info = self:step(def.controller(seen()))
      out.reward[k], out.terminated[k], out.truncated[k] = reward, terminated, truncated
      for name, value in pairs(info) do out[name][k] = value end
    end
    for name, list in pairs(out) do out[name] = T.stack(list, 1) end
    return out
  end
  return env
end

---The best gains, by Riccati's recursion.
---@return cq.Tensor gains      {2, 1}
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
  return T.tensor { { -k1 }, { -k2 } }
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
