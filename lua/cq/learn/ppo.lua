-- ppo: proximal policy optimization (Schulman et al. 2017), with the settings and details that the field compares with
-- (Huang et al., The 37 implementation details of PPO, 2022).
local C = require("cq.base.engine").C
local environment = require "cq.learn.environment"
local is = require "cq.base.schema"
local learner = require "cq.learn.learner"
local network = require "cq.learn.network"
local normalizer = require "cq.learn.normalizer"
local optimizer = require "cq.optimizer"
local T = require "cq.tensor"

local ppo = {}

---@class cq.Learner.ppo : cq.Learner
local Ppo = learner.subclass("ppo", { parts = { "optimizer", "random", "observations", "rewards" },
  kept = { "seen", "discounted" }, activation = "tanh", output = "clip" })

-- The mean action {..., signals} of the policy for normalised observations z {..., numbers}.
local function mean_of(params, z) return network.evaluate(params, "mean", z, Ppo.activation) end
-- The critic's value {...} of normalised observations z {..., numbers}.
local function value_of(params, z) return network.evaluate(params, "value", z, Ppo.activation):squeeze(-1) end

local LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)

-- The logarithm {rows} of the density of actions {rows, signals} under normal distributions around `mean`.
local function log_density(params, mean, actions)
  local s = params.log_deviation
  return -(0.5 * ((actions - mean) / s:exp()):square() + s + LOG_ROOT_2_PI):sum(-1)
end

-- ---- the loss -------------------------------------------------------------------------------------------------------

---The loss of a minibatch: -L^CLIP + L^VF / 4 - entropy_weight S of Schulman et al., eq. 9, in which L^VF is the mean
---squared error of the value, with advantages normalized in the minibatch and the value clipped as the policy is.
---@param params table<string, cq.Tensor>
---@param batch { observation: cq.Tensor, action: cq.Tensor, log_density: cq.Tensor, advantage: cq.Tensor, target: cq.Tensor, value: cq.Tensor }   rows of a minibatch
---@param options table     clip, entropy_weight
---@return cq.Tensor loss
---@return { policy: cq.Tensor, value: cq.Tensor, log_ratio: cq.Tensor } parts
function ppo.loss(params, batch, options)
  local log_ratio = log_density(params, mean_of(params, batch.observation), batch.action) - batch.log_density
  local ratio, a = log_ratio:exp(), batch.advantage
  local centred = a - a:mean()
  a = centred / ((centred:square():sum() / math.max(a.count - 1, 1)):sqrt() + 1e-8)
  local clip = options.clip
  local policy = -(a * ratio):minimum(a * ratio:clamp(1 - clip, 1 + clip)):mean()
  local v = value_of(params, batch.observation)
  local near = batch.value + (v - batch.value):clamp(-clip, clip)
  local value = 0.5 * (v - batch.target):square():maximum((near - batch.target):square()):mean()
  local entropy = (params.log_deviation + 0.5 + LOG_ROOT_2_PI):sum()
  return policy + 0.5 * value - options.entropy_weight * entropy,
    { policy = policy, value = value, log_ratio = log_ratio }
end

-- ---- experience -----------------------------------------------------------------------------------------------------

-- Rewards {scenes} divided by the standard deviation of the discounted return of an episode so far, within +-10.
-- Updates that deviation. ended: 1 where an episode ended by this reward.
local function scaled_reward(self, reward, ended)
  self.discounted = self.discounted * self.options.gamma + reward
  self.rewards:update(self.discounted:unsqueeze(2))
  self.discounted = self.discounted * (1 - ended)
  return self.rewards:scale(reward)
end

-- Makes control steps of all scenes with the policy as it is, drawing actions. Returns rows, with the lists by step
-- observation, action, log_density, reward (scaled; with gamma V of the last observation where it is truncated), ended
-- and, with one step more, value of {scenes, ...}; the sums over episodes that ended; and the mean unscaled reward.
local function collect(self, steps)
  local rows = { observation = {}, action = {}, log_density = {}, value = {}, reward = {}, ended = {} }
  local told, mean_reward = learner.no_episodes(), 0
  for t = 1, steps do
    local mean, z = mean_of(self.params, self.seen), self.seen
    local action = mean + self.params.log_deviation:exp() * self.random:normal(mean:shape())
    local next_z, reward, terminated, truncated, info = environment.step(self, action)
    local ended = (terminated + truncated):minimum(1)
    learner.note_episodes(told, ended, info)
    mean_reward = mean_reward + reward:mean():item() / steps
    reward = scaled_reward(self, reward, ended)
    truncated = truncated * (1 - terminated)
    if truncated:sum():item() > 0 then     -- the episode would have gone on
      local rest = value_of(self.params, learner.seen(self, info.final_observation, false))
      reward = reward + self.options.gamma * truncated * rest
    end
    rows.observation[t], rows.action[t], rows.reward[t] = z, action, reward
    rows.log_density[t], rows.value[t] = log_density(self.params, mean, action), value_of(self.params, z)
    rows.ended[t] = ended
    self.seen = learner.seen(self, next_z, true)
  end
  rows.value[steps + 1] = value_of(self.params, self.seen)
  return rows, told, mean_reward
end

-- The advantage of each action by generalized advantage estimation (Schulman et al. 2016, eq. 16), and the targets that
-- the critic is trained to, both lists by step of {scenes}. rows: from collect, whose last value is removed.
local function estimate(rows, steps, gamma, lambda)
  local advantage, target, next_one = {}, {}, 0
  for t = steps, 1, -1 do
    local goes_on = 1 - rows.ended[t]
    local delta = rows.reward[t] + gamma * rows.value[t + 1] * goes_on - rows.value[t]
    next_one = delta + gamma * lambda * goes_on * next_one
    advantage[t], target[t] = next_one, next_one + rows.value[t]
  end
  rows.value[steps + 1] = nil
  return advantage, target
end

-- ---- training -------------------------------------------------------------------------------------------------------

-- Trains the parameters, in place, in options.epochs epochs of minibatches over one batch, tensors {rows, ...} by name.
-- Returns sums of losses, KL divergence and share of clipped ratios over the minibatches, and their number (`made`).
local function update(self, batch)
  local o, count = self.options, batch.advantage.count
  local size = count / o.minibatches
  local sums = { policy = 0, value = 0, kl = 0, clipped = 0, made = 0 }
  for _ = 1, o.epochs do
    local order = self.random:permutation(count):totable()
    for m = 1, o.minibatches do
      local index, part = {}, {}
      for k = 1, size do index[k] = order[(m - 1) * size + k] end
      for name, all in pairs(batch) do part[name] = all:gather(index, 1) end
      local parts
      learner.descend(self.optimizer, self.params, function(p)
        local loss
        loss, parts = ppo.loss(p, part, o)
        return loss
      end)
      local ratio = parts.log_ratio:detach()
      sums.policy, sums.value = sums.policy + parts.policy:item(), sums.value + parts.value:item()
      sums.kl = sums.kl + (ratio:exp() - 1 - ratio):mean():item()
      sums.clipped = sums.clipped + (ratio:exp() - 1):abs():greater(o.clip):mean():item()
      sums.made = sums.made + 1
    end
  end
  return sums
end

-- The share of the variance of returns {rows} that the critic's values {rows} predict; 1 is perfect. NaN where returns
-- do not vary.
local function explained_variance(value, target)
  local off = target - value
  local of_target = (target - target:mean()):square():mean():item()
  return of_target > 0 and 1 - (off - off:mean()):square():mean():item() / of_target or 0 / 0
end

-- Resets the environment before the first update, and keeps the first observations (seen).
function Ppo:begin()
  self.seen = learner.seen(self, environment.reset(self), true)
  self.began = true
end

-- One update: collects a batch of steps, then descends the clipped loss over it; returns the row of the history.
function Ppo:iterate()
  local o, started = self.options, C.cq_clock()
  local rows, told, reward = collect(self, self.horizon)
  rows.advantage, rows.target = estimate(rows, self.horizon, o.gamma, o.lambda)
  local batch = {}
  for _, name in ipairs { "observation", "action", "log_density", "value", "advantage", "target" } do
    batch[name] = learner.flatten(T.stack(rows[name], 1))
  end
  self.optimizer.rate = o.rate * (1 - self.updates_made / self.updates)
  local sums = update(self, batch)
  return learner.complete(self, {
    reward = reward, policy_loss = sums.policy / sums.made, value_loss = sums.value / sums.made,
    kl = sums.kl / sums.made, clip_fraction = sums.clipped / sums.made,
    explained_variance = explained_variance(batch.value, batch.target),
    deviation = self.params.log_deviation:exp():mean():item(), rate = self.optimizer.rate,
  }, told, started)
end

local share = { min = 0, max = 1 }
local spec = is.define("cq.Learner.ppo", {
  env = is.table(), steps = is.integer { min = 1 }, batch = is.integer { min = 2, default = 2048 },
  minibatches = is.integer { min = 1, default = 32 }, epochs = is.integer { min = 1, default = 10 },
  hidden = is.vector { integer = true, min = 1, default = { 64, 64 } },
  rate = is.number { above = 0, default = 3e-4 },
  gamma = is.number { min = share.min, max = share.max, default = 0.99 },
  lambda = is.number { min = share.min, max = share.max, default = 0.95 },
  clip = is.number { above = 0, default = 0.2 }, entropy_weight = is.number { min = 0, default = 0 },
  normalize_observations = is.boolean { default = true }, seed = is.integer { min = 0, max = 2 ^ 31, optional = true },
})

---@class cq.Learner.ppo.def
---@field env table|cq.Env        a cq.Env, or an object with its scenes, observation_space, action_space, reset and step
---@field steps integer           of all scenes together, rounded down to whole updates
---@field batch? integer          steps of all scenes together between two updates; a multiple of the scenes of env
---@field minibatches? integer    of an epoch; the batch must be a multiple of them
---@field epochs? integer         of an update
---@field hidden? integer[]       units of the hidden layers, with tanh, of the policy and of the value
---@field rate? number            of Adam at the start, from where it falls linearly to 0
---@field gamma? number           discount of a control step
---@field lambda? number          of generalized advantage estimation
---@field clip? number            of the ratio of densities, and of the value's moves in an update
---@field entropy_weight? number  of the entropy of the policy, which is a bonus
---@field normalize_observations? boolean   by their running mean and deviation, within +-10
---@field seed? integer           of weights, actions, minibatches and the environment; the program's --seed, or 0, unless given

-- Raises an error if scenes or minibatches do not divide a batch, or it is larger than all steps.
local function check_sizes(env, o)
  environment.check(env, "cq.Learner.ppo")
  if o.batch % env.scenes ~= 0 then
    is.fail("cq.Learner.ppo: batch is %d, no multiple of the %d scenes of the environment", o.batch, env.scenes)
  end
  if o.batch % o.minibatches ~= 0 then
    is.fail("cq.Learner.ppo: batch is %d, which %d minibatches do not divide", o.batch, o.minibatches)
  end
  if o.batch < 2 * o.minibatches then
    is.fail("cq.Learner.ppo: minibatches is %d, for a batch of %d: a minibatch needs two rows, since advantages are taken from their mean in it",
      o.minibatches, o.batch)
  end
  if o.steps < o.batch then
    is.fail("cq.Learner.ppo: steps is %d, fewer than the %d of one batch", o.steps, o.batch)
  end
end

---A learner by proximal policy optimization: a normal distribution of actions, whose mean is a network of the
---observation and whose deviation is the same everywhere. The same seed gives the same bits.
---Errors: a batch that scenes or minibatches do not divide; fewer steps than a batch.
---@param fields cq.Learner.ppo.def
---@return cq.Learner
function ppo.new(fields)
  local o = spec(fields)
  check_sizes(o.env, o)
  local self, inputs, signals = learner.new(Ppo, o, o.batch / o.env.scenes)
  network.add(self.params, "value", self.random, network.sizes(inputs, o.hidden, 1), 1)
  self.params.log_deviation = T.param(T.zeros { signals })
  self.seen, self.discounted = T.zeros { o.env.scenes, inputs }, T.zeros { o.env.scenes }
  self.rewards = normalizer.new(1)
  self.optimizer = optimizer.adam { rate = o.rate, epsilon = 1e-5, clip = 0.5 }
  return self
end

return ppo
