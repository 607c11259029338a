-- environment: the calls of a learner to its environment, a cq.Env or an object of the user's own. The results of each
-- call are checked, so that a wrong one is an error that names the method and the result.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local shape_text = require("cq.tensor.class").shape_text

local environment = {}

local fields = { scenes = is.integer { min = 1 }, observation_space = is.table(), action_space = is.table(),
  reset = is.callable(), step = is.callable() }
local one_size = is.vector { size = 1, integer = true, min = 1 }

---Raises an error if a value is no environment: a field that learners use is missing or of another kind.
---@param env table
---@param what string     the learner, for the error
function environment.check(env, what)
  local problem = is.problem(fields, env)
  for _, name in ipairs { "observation_space", "action_space" } do
    if not problem then
      local fine, got = one_size.check(env[name].shape)
      problem = not fine and ("%s.shape must be { count }, the count of numbers a scene, got %s"):format(name,
        got or text.describe(env[name].shape))
    end
  end
  if problem then
    is.fail("%s: env must be a cq.Env, or have its scenes, observation_space, action_space, reset and step: %s", what,
      problem)
  end
end

-- The first number of a tensor that is not finite, as text.
local function odd(tensor)
  local data, k = tensor:data(), 0
  while data[k] - data[k] == 0 do k = k + 1 end
  return text.number(data[k])
end

-- Returns a result of a method of the environment if it is a tensor of a shape, and all its numbers are finite. Errors
-- otherwise. what: method and result, as "step must give reward".
local function checked(self, what, value, shape)
  local is_tensor = T.is_tensor(value)
  if not is_tensor or shape_text(value:shape()) ~= shape_text(shape) then
    is.fail("cq.Learner.%s: env:%s as a tensor %s, got %s", self.kind, what, shape_text(shape),
      is_tensor and shape_text(value:shape()) or text.describe(value))
  end
  if not value:finite() then is.fail("cq.Learner.%s: env:%s as finite numbers, got %s", self.kind, what, odd(value)) end
  return value
end

-- Returns a tensor as it is where a mask is 1, and 0 elsewhere. tensor: with the dimensions of the mask, and perhaps
-- another one behind them.
local function only_where(mask, tensor)
  if tensor.rank > mask.rank then mask = mask:unsqueeze(mask.rank + 1):expand(tensor:shape()) end
  return T.where(mask, tensor, T.zeros(tensor:shape()))
end

-- As checked, for a result that is read alone where a mask is 1, where its numbers must be finite.
local function checked_where(self, what, value, shape, mask)
  if not (T.is_tensor(value) and shape_text(value:shape()) == shape_text(shape)) then
    return checked(self, what, value, shape)
  end
  return checked(self, what, only_where(mask, value), shape)
end

-- Returns a mask, a tensor of ones and zeros of a shape. Errors: another value.
local function checked_mask(self, what, value, shape)
  local mask = checked(self, what, value, shape)
  if (mask * (1 - mask)):abs():max():item() > 0 then
    is.fail("cq.Learner.%s: env:%s as ones and zeros, it has other numbers", self.kind, what)
  end
  return mask
end

---Begins all scenes with the learner's seed; returns a copy of the observations {scenes, numbers}.
---@param self cq.Learner
---@return cq.Tensor
function environment.reset(self)
  local env = self.env
  local seed = self.options.seed % 2 ^ 32      -- --seed may be larger than those of an environment
  return checked(self, "reset must give observations", env:reset { seed = seed },
    { env.scenes, env.observation_space.shape[1] }):detach():copy()
end

-- Returns what is read of the fifth result of env:step: return and length of the episodes that end, the last
-- observation of those that are truncated, each 0 elsewhere, and failed. Errors: one that is needed and missing, or not
-- finite there.
local function checked_info(self, info, ended, truncated)
  if type(info) ~= "table" then
    is.fail("cq.Learner.%s: env:step must give info, its fifth result, as a table, got %s", self.kind,
      text.describe(info))
  end
  local scenes, out = self.env.scenes, {}
  -- Takes a result over if it is needed in any scene.
  local function take(name, needed, shape)
    if needed:max():item() == 0 then return end
    out[name] = checked_where(self, "step must give info." .. name, info[name], shape, needed)
  end
  take("episode_return", ended, { scenes })
  take("episode_length", ended, { scenes })
  take("final_observation", truncated, { scenes, self.env.observation_space.shape[1] })
  out.failed = info.failed ~= nil and checked_mask(self, "step must give info.failed", info.failed, { scenes }) or nil
  return out
end

---Makes a control step of all scenes. The environment gets a copy of the actions, and the observations are a copy, so
---that neither changes what the learner keeps.
---@param self cq.Learner
---@param actions cq.Tensor          {scenes, signals}
---@return cq.Tensor observation     {scenes, numbers}
---@return cq.Tensor reward          {scenes}
---@return cq.Tensor terminated      {scenes} 1 or 0
---@return cq.Tensor truncated       {scenes} 1 or 0
---@return table info                of env:step, what is read of it: 0 where no episode ends
function environment.step(self, actions)
  if not actions:finite() then
    is.fail("cq.Learner.%s: the policy gives an action which is no finite number", self.kind)
  end
  local env, scenes = self.env, { self.env.scenes }
  local z, reward, terminated, truncated, info = env:step(actions:detach():copy())
  checked(self, "step must give observations, its first result,", z, { env.scenes, env.observation_space.shape[1] })
  checked(self, "step must give reward, its second result,", reward, scenes)
  checked_mask(self, "step must give terminated, its third result,", terminated, scenes)
  checked_mask(self, "step must give truncated, its fourth result,", truncated, scenes)
  local read = checked_info(self, info, (terminated + truncated):minimum(1), truncated)
  return z:detach():copy(), reward, terminated, truncated, read
end

---Makes the control steps of a window with a policy, as env:window of cq.Env: a table of tensors {steps, scenes, ...}.
---@param self cq.Learner
---@param policy fun(z: cq.Tensor): cq.Tensor
---@return table<string, cq.Tensor>
function environment.window(self, policy)
  local env, steps = self.env, self.horizon
  local given = env:window { controller = policy, steps = steps }
  if type(given) ~= "table" then
    is.fail("cq.Learner.%s: env:window must give a table of tensors, got %s", self.kind, text.describe(given))
  end
  local out = {}
  for _, name in ipairs { "observation", "final_observation" } do
    out[name] = checked(self, "window must give " .. name, given[name],
      { steps, env.scenes, env.observation_space.shape[1] })
  end
  local shape = { steps, env.scenes }
  out.reward = checked(self, "window must give reward", given.reward, shape)
  for _, name in ipairs { "terminated", "truncated", "failed" } do
    out[name] = checked_mask(self, "window must give " .. name, given[name], shape)
  end
  local ended = (out.terminated + out.truncated):minimum(1)
  for _, name in ipairs { "episode_return", "episode_length" } do
    out[name] = checked_where(self, "window must give " .. name, given[name], shape, ended)
  end
  return out
end

return environment
