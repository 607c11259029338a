-- smoothing: the gradient of an objective that noise on its parameters has made smooth, from copies with noise: the
-- mean of their gradients (Suh, Pang, Tedrake, Bundled gradients through contact, RA-L 2022), and its mixture with an
-- estimate from their values alone (Suh et al., Do differentiable simulators give better policy gradients?, ICML 2022).
local is = require "cq.base.schema"
local option = require "cq.option"
local random = require "cq.random"
local T = require "cq.tensor"

local smoothing = {}

---@class cq.Experiment.gradient.smooth.def
---@field samples integer     copies, each of which costs a rollout forward and backward
---@field sigma number        standard deviation of the noise on each number that is trained, in its own unit; within
---  its bounds

local spec = is.define("cq.Experiment: gradient.smooth", {
  samples = is.integer { min = 1, max = 65536 }, sigma = is.number { above = 0 },
})

---The fields of gradient = { smooth = ... }, with defaults. Errors: unknown fields; the estimate "mixed" with one
---sample, since it needs a variance.
---@param given table
---@param estimate string
---@return cq.Experiment.gradient.smooth.def
function smoothing.check(given, estimate)
  local def = spec(given)
  if estimate == "mixed" and def.samples < 2 then
    is.fail("cq.Experiment: gradient: estimate = \"mixed\" needs the variance between copies; smooth.samples must be at least 2, got %d", def.samples)
  end
  return def
end

-- ---- estimates ------------------------------------------------------------------------------------------------------

-- The mean of samples, each a list of tensors, as a list of tensors; and the variance of that mean summed over all
-- entries, a number, by which `mix` weighs two estimates.
local function mean_and_variance(samples)
  local n, mean, square = #samples, {}, 0
  for k in ipairs(samples[1]) do
    local sum = samples[1][k]
    for i = 2, n do sum = sum + samples[i][k] end
    mean[k] = sum / n
    for i = 1, n > 1 and n or 0 do square = square + (samples[i][k] - mean[k]):square():sum():item() end
  end
  return mean, n > 1 and square / ((n - 1) * n) or 0
end

---Mixes two estimates of a gradient by the inverse of their variances, so that the result varies least: that of first
---order, the mean of the gradients, and that of zeroth order, the mean of (L_i - mean L) eps_i / sigma^2 (times n / (n
---- 1), since the mean is of the same n losses).
---@param grads cq.Tensor[][]     of each sample, a tensor for each parameter
---@param losses number[]         of each sample
---@param noise cq.Tensor[][]     eps of each sample
---@param sigma number
---@return cq.Tensor[] mixed, number weight      of the first order, 0 to 1
function smoothing.mix(grads, losses, noise, sigma)
  local n, mean = #losses, 0
  for _, loss in ipairs(losses) do mean = mean + loss / n end
  local zeroth = {}
  for i, eps in ipairs(noise) do
    zeroth[i] = {}
    for k, tensor in ipairs(eps) do zeroth[i][k] = tensor * ((losses[i] - mean) * n / ((n - 1) * sigma * sigma)) end
  end
  local first, v1 = mean_and_variance(grads)
  local other, v0 = mean_and_variance(zeroth)
  local weight, out = v0 + v1 > 0 and v0 / (v0 + v1) or 1, {}
  for k, tensor in ipairs(first) do out[k] = tensor * weight + other[k] * (1 - weight) end
  return out, weight
end

-- ---- copies ---------------------------------------------------------------------------------------------------------

---The noise of one copy: a tensor for each parameter, normal with deviation sigma, reduced where the parameter would
---leave its bounds.
---@param list cq.Leaf[]
---@param sigma number
---@param source cq.Random
---@return cq.Tensor[]
local function draw(list, sigma, source)
  local out = {}
  for k, leaf in ipairs(list) do
    local t = leaf.tensor:detach()
    local bounds, moved = leaf.tensor.bounds or {}, t + source:normal(t:shape()) * sigma
    if bounds.min or bounds.max then moved = moved:clamp(bounds.min, bounds.max) end
    out[k] = moved - t
  end
  return out
end

-- f(...) with noise added to the parameters in place; they are restored to their bits, also after an error, which
-- passes through. Returns what f does. list: leaves of the parameters; noise: a tensor for each.
local function with_noise(list, noise, f, ...)
  local before = {}
  for k, leaf in ipairs(list) do
    local t = leaf.tensor
    before[k] = t:detach():copy()
    for i = 0, t.count - 1 do t.pointer[i] = t.pointer[i] + noise[k].pointer[i] end
  end
  -- Puts the parameters back after noise, then passes on results or the error.
  local function restore(fine, ...)
    for k, leaf in ipairs(list) do
      for i = 0, leaf.tensor.count - 1 do leaf.tensor.pointer[i] = before[k].pointer[i] end
    end
    if not fine then error((...), 0) end
    return ...
  end
  return restore(pcall(f, ...))
end

-- The sum of numbers, each times its weight. Both tables are by name.
local function weighted(values, weights)
  local sum = 0
  for _, name in ipairs(T.leaves.sorted_keys(weights)) do sum = sum + weights[name] * values[name] end
  return sum
end

---A function of the parameters as gradient.passes returns it: values at the parameters themselves, gradients averaged
---over copies with noise. The noise of an iteration depends on seed and iteration alone.
---@param def cq.Experiment.gradient.def
---@param iteration integer
---@param plan function          gives the weights of each gradient's sum, as in gradient.passes
---@param passes fun(plan: function): fun(params: any): table<string, number>, any[], ...
---@return fun(params: any): table<string, number>, any[], cq.Rollout?, number?    if mixed, the weight of first order
function smoothing.passes(def, iteration, plan, passes)
  local sigma, weights = def.smooth.sigma, nil
  local here = passes(function(...)
    weights = plan(...)
    return {}
  end)
  local copy = passes(function() return weights end)
  return function(params)
    local values, _, roll = here(params)
    local list = T.leaves.trainable(params, "run:optimize")
    local source = random { seed = ((option.program.seed or 0) * 1000003 + iteration) % 2 ^ 31 }
    local grads, losses, noises = {}, {}, {}
    for i = 1, def.smooth.samples do
      noises[i] = draw(list, sigma, source)
      local own, found, other = with_noise(list, noises[i], copy, params)
      if other then other:release() end
      for k, of_pass in ipairs(found) do
        local by_tensor, row = T.leaves.pair(params, of_pass), {}
        for j, leaf in ipairs(list) do row[j] = by_tensor[leaf.tensor] end
        grads[k], losses[k] = grads[k] or {}, losses[k] or {}
        grads[k][i], losses[k][i] = row, weighted(own, weights[k])
      end
    end
    local out, weight = {}, nil
    for k in ipairs(grads) do
      local mixed, share
      if def.estimate == "mixed" then
        mixed, share = smoothing.mix(grads[k], losses[k], noises, sigma)
      else
        mixed = mean_and_variance(grads[k])
      end
      local at = {}
      for j, leaf in ipairs(list) do at[leaf.tensor] = mixed[j] end
      out[k], weight = T.leaves.map(params, function(t) return at[t] end), weight or share
    end
    return values, out, roll, weight
  end
end

return smoothing
