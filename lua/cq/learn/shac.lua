-- shac: short-horizon actor-critic (Xu et al. 2022). The policy goes down the gradient of the simulation through a
-- window of some control steps, with a learned value of what comes after.
local C = require("cq.base.engine").C
local critic = require "cq.learn.critic"
local environment = require "cq.learn.environment"
local is = require "cq.base.schema"
local learner = require "cq.learn.learner"
local network = require "cq.learn.network"
local optimizer = require "cq.optimizer"
local T = require "cq.tensor"

local shac = {}

---@class cq.Learner.shac : cq.Learner
local Shac = learner.subclass("shac", { parts = { "optimizer", "critic", "random", "observations" }, kept = {},
  activation = "elu", output = "tanh" })

-- The policy's mean action {..., signals} before tanh, for normalised observations z {..., numbers}.
local function mean_of(params, z) return network.evaluate(params, "mean", z, Shac.activation) end

---The loss of a window: -1 / (scenes steps) sum over scenes of sum_t gamma^t r_t + gamma^h V(z_h), in which an episode
---that ends within the window ends the sum with V of its last observation, or 0 where it is terminated, and the next
---one begins a sum of its own.
---@param window { reward: cq.Tensor, terminated: cq.Tensor, truncated: cq.Tensor, final_observation: cq.Tensor }   from env:window
---@param gamma number
---@param value? fun(z: cq.Tensor): cq.Tensor     {scenes, numbers} -> {scenes}; 0 unless given
---@return cq.Tensor
function shac.loss(window, gamma, value)
  local steps, scenes = window.reward:size(1), window.reward:size(2)
  local total, discount = T.zeros { scenes }, T.ones { scenes }
  for t = 1, steps do
    total = total + discount * window.reward[t]
    local ended = (window.terminated[t] + window.truncated[t]):minimum(1)
    local takes = (t == steps and T.ones { scenes } or ended) * (1 - window.terminated[t])
    if value and takes:sum():item() > 0 then
      total = total + gamma * discount * takes * value(window.final_observation[t])
    end
    discount = ended + (1 - ended) * gamma * discount
  end
  return -total:sum() / (scenes * steps)
end

-- A function from observations to the actions of a window, by parameters p: tanh(mean + deviation noise). The noise
-- does not depend on p, so that gradients go through.
local function policy(self, p)
  return function(z)
    local u = mean_of(p, learner.seen(self, z, false))
    if p.log_deviation then u = u + p.log_deviation:exp() * self.random:normal(u:shape()) end
    return u:tanh()
  end
end

-- Raises an error if the rewards or observations of a window carry no gradient to the actions.
local function check_reach(window)
  for _, name in ipairs { "observation", "reward" } do
    local tensor = name == "reward" and window.reward or window.final_observation
    if not tensor.requires_grad then
      is.fail("cq.Learner.shac: the %s of the environment has no gradient to the state; compute it from the state by operations on tensors, without numbers taken out of them",
        name)
    end
  end
end

-- Resets the environment before the first update, by the learner's seed.
function Shac:begin()
  environment.reset(self)
  self.began = true
end

-- Fits the value function to a window and returns its loss; then updates the running mean of observations.
local function learn_value(self, window)
  local o = self.options
  local after = self.critic:value(learner.seen(self, window.final_observation, false))
  local targets = critic.targets(window, after, o.gamma, o.lambda)
  local z = learner.flatten(learner.seen(self, window.observation, false))
  if self.observations then self.observations:update(learner.flatten(window.observation)) end
  return self.critic:fit(z, learner.flatten(targets), self.random)
end

-- One update: a window of the simulation, one step of the policy down its gradient, then the value function; returns
-- the row of the history.
function Shac:iterate()
  local o, started, window = self.options, C.cq_clock(), nil
  local left = 1 - self.updates_made / self.updates
  self.optimizer.rate, self.critic.optimizer.rate = o.rate * left, critic.RATE * left
  local loss = learner.descend(self.optimizer, self.params, function(p)
    window = environment.window(self, policy(self, p))
    check_reach(window)
    return shac.loss(window, o.gamma, function(z) return self.critic:value(learner.seen(self, z, false)) end)
  end)
  for name, tensor in pairs(window) do window[name] = tensor:detach() end
  local told = learner.no_episodes()
  for t = 1, self.horizon do
    learner.note_episodes(told, (window.terminated[t] + window.truncated[t]):minimum(1), {
      episode_return = window.episode_return[t], episode_length = window.episode_length[t], failed = window.failed[t] })
  end
  local value_loss = learn_value(self, window)
  return learner.complete(self, { policy_loss = loss, reward = window.reward:mean():item(), value_loss = value_loss,
    gradient = self.optimizer.norm, rate = self.optimizer.rate,
    deviation = self.params.log_deviation and self.params.log_deviation:exp():mean():item() or 0 }, told, started)
end

local spec = is.define("cq.Learner.shac", {
  env = is.table(), steps = is.integer { min = 1 }, horizon = is.integer { min = 1, default = 32 },
  hidden = is.vector { integer = true, min = 1, default = { 128, 64, 32 } },
  rate = is.number { above = 0, default = 2e-3 }, deviation = is.number { min = 0, default = 0.37 },
  gamma = is.number { min = 0, max = 1, default = 0.99 }, lambda = is.number { min = 0, max = 1, default = 0.95 },
  critic_hidden = is.list(is.integer { min = 1 }, { default = { 64, 64 } }),
  critic_passes = is.integer { min = 1, default = 16 },
  critic_minibatches = is.integer { min = 1, default = 4 },
  normalize_observations = is.boolean { default = true }, seed = is.integer { min = 0, max = 2 ^ 31, optional = true },
})

---@class cq.Learner.shac.def
---@field env table|cq.Env        a cq.Env, or an object with its scenes, spaces, reset, step and window
---@field steps integer           of all scenes together, rounded down to whole windows
---@field horizon? integer        control steps of a window, at most those of an episode
---@field hidden? integer[]       units of the hidden layers of the policy, with elu
---@field rate? number            of Adam (betas .7 and .95) for the policy at the start, from where it falls linearly to 0
---@field deviation? number       of the noise before tanh at the start, which is trained; 0: no noise
---@field gamma? number           discount of a control step
---@field lambda? number          of the targets of the value
---@field critic_hidden? integer[]     units of the hidden layers of the value, with elu
---@field critic_passes? integer       over a window, after each
---@field critic_minibatches? integer  of a pass
---@field normalize_observations? boolean   by their running mean and deviation, which stand still within a window
---@field seed? integer           of weights, noise, minibatches and the environment; the program's --seed, or 0, unless given

-- Raises an error if the environment has no window for gradients, or sizes do not fit.
local function check(env, o)
  environment.check(env, "cq.Learner.shac")
  if type(env.window) ~= "function" then
    is.fail "cq.Learner.shac: env must be a cq.Env, or have its window, which gradients go through"
  end
  if env.steps and o.horizon > env.steps then
    is.fail("cq.Learner.shac: horizon is %d, an episode has %d; a window is no longer than that", o.horizon, env.steps)
  end
  if o.steps < o.horizon * env.scenes then
    is.fail("cq.Learner.shac: steps is %d, fewer than the %d of one window of all scenes", o.steps,
      o.horizon * env.scenes)
  end
  if o.critic_minibatches > o.horizon * env.scenes then
    is.fail("cq.Learner.shac: critic_minibatches is %d, and a window of all scenes has %d steps", o.critic_minibatches,
      o.horizon * env.scenes)
  end
end

---A learner by gradients through short windows of the simulation: u = tanh(mean(z) + deviation noise). The same seed
---gives the same bits.
---Errors: a window longer than an episode; fewer steps than a window; observations or rewards without a gradient to the
---state.
---@param fields cq.Learner.shac.def
---@return cq.Learner
function shac.new(fields)
  local o = spec(fields)
  check(o.env, o)
  local self, inputs, signals = learner.new(Shac, o, o.horizon)
  if o.deviation > 0 then self.params.log_deviation = T.param(T.full({ signals }, math.log(o.deviation))) end
  self.critic = critic.new(self.random, inputs, o)
  self.optimizer = optimizer.adam { rate = o.rate, beta1 = 0.7, beta2 = 0.95, clip = 1 }
  return self
end

return shac
