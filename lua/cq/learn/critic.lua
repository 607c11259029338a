-- critic: a network that learns the value of observations by TD(lambda), with a copy that follows it slowly.
local is = require "cq.base.schema"
local learner = require "cq.learn.learner"
local network = require "cq.learn.network"
local optimizer = require "cq.optimizer"
local T = require "cq.tensor"
local shape_text = require("cq.tensor.class").shape_text

---@class cq.Critic
---@field params table<string, cq.Tensor>   what is trained
---@field target table<string, cq.Tensor>   the copy that follows, which values are taken from
---@field optimizer cq.Optimizer
local Critic = {}
Critic.__index = Critic

-- rate of Adam at the start of a training, and the share of itself that the copy keeps after a window
local critic, TARGET_KEEPS = { RATE = 2e-3 }, 0.2

---A value function with random weights, its slowly following copy (`target`) and its Adam optimizer.
---@param source cq.Random
---@param inputs integer          observed numbers
---@param o { critic_hidden: integer[], critic_passes: integer, critic_minibatches: integer }
---@return cq.Critic
function critic.new(source, inputs, o)
  local params = {}
  network.add(params, "value", source, network.sizes(inputs, o.critic_hidden, 1), 1)
  return setmetatable({ params = params, target = T.leaves.snapshot(params), options = o,
    optimizer = optimizer.adam { rate = critic.RATE, beta1 = 0.7, beta2 = 0.95, clip = 1 } }, Critic)
end

-- V(z), a tensor {rows}, of normalised observations z {rows, numbers}, by these parameters.
local function value(params, z) return network.evaluate(params, "value", z, "elu"):squeeze(-1) end

---The value of normalised observations {..., numbers} by the copy that follows.
---@param z cq.Tensor
---@return cq.Tensor     {...}
function Critic:value(z) return value(self.target, z) end

---Targets by TD(lambda) (Sutton 1988): G_t = r_t + gamma ((1 - lambda) V_t+1 + lambda G_t+1), with V alone where an
---episode or the window ends, and 0 where it is terminated.
---@param window { reward: cq.Tensor, terminated: cq.Tensor, truncated: cq.Tensor }   {steps, scenes} of each
---@param next_value cq.Tensor     {steps, scenes} of the observations after each control step
---@param gamma number
---@param lambda number
---@return cq.Tensor               {steps, scenes}
function critic.targets(window, next_value, gamma, lambda)
  local rows, after = {}, nil
  for t = window.reward:size(1), 1, -1 do
    local v = next_value[t] * (1 - window.terminated[t])
    local goes_on = 1 - (window.terminated[t] + window.truncated[t]):minimum(1)
    local rest = after and v + lambda * goes_on * (after - v) or v
    after = window.reward[t] + gamma * rest
    rows[t] = after
  end
  return T.stack(rows, 1)
end

---Trains the network in options.critic_passes passes over normalised observations and their targets, in place; then
---moves the copy towards it.
---@param z cq.Tensor           {rows, numbers}
---@param targets cq.Tensor     {rows}
---@param random cq.Random
---@return number loss          mean over all minibatches
function Critic:fit(z, targets, random)
  local o, count, sum, made = self.options, targets.count, 0, 0
  local size = math.floor(count / o.critic_minibatches)
  for _ = 1, o.critic_passes do
    local order = random:permutation(count):totable()
    for m = 1, o.critic_minibatches do
      local index = {}
      for k = 1, size do index[k] = order[(m - 1) * size + k] end
      local seen, wanted = z:gather(index, 1), targets:gather(index, 1)
      sum = sum + learner.descend(self.optimizer, self.params,
        function(p) return (value(p, seen) - wanted):square():mean() end)
      made = made + 1
    end
  end
  for name, tensor in pairs(self.params) do
    self.target[name] = TARGET_KEEPS * self.target[name] + (1 - TARGET_KEEPS) * tensor:detach()
  end
  return sum / made
end

---Copies of weights, target weights and moments, for saving.
---@return table
function Critic:state()
  return { params = T.leaves.snapshot(self.params), target = T.leaves.snapshot(self.target),
    optimizer = self.optimizer:state() }
end

local fields = { params = is.table(), target = is.table(), optimizer = is.table() }

---Goes on from a saved state. Errors: no such state; other names or shapes of the weights.
---@param state table             of Critic:state
function Critic:restore(state)
  local problem = is.problem(fields, state)
  for name, tensor in pairs(self.params) do
    local target = not problem and state.target[name]
    if not problem and not (T.is_tensor(target) and shape_text(target:shape()) == shape_text(tensor:shape())) then
      problem = ("target.%s must be a tensor %s"):format(name, shape_text(tensor:shape()))
    end
  end
  if problem then is.fail("learner:restore: the state is damaged: critic: %s", problem) end
  T.leaves.load(self.params, state.params, "learner:restore")
  self.target = T.leaves.snapshot(state.target)
  self.optimizer:restore(state.optimizer)
end

return critic
