-- derivative: the gradient of a whole computation against extrapolated central differences, for each parameter alone.
local T = require "cq.tensor"
local assert = require "luassert"

local derivative = {}

-- a direction whose entries are all different
local function direction(tensor, seed)
  return (T.arange(1, math.max(tensor.count, 1)):reshape(tensor:shape()) * 1.3 + seed):cos()
end

-- f at p with one tensor moved
local function shifted(f, p, tensor, d, h)
  local before = tensor:copy()
  tensor:copy_from(before:detach() + h * d)
  local value = f(p):item()
  tensor:copy_from(before)
  return value
end

local function numeric(f, p, tensor, d, h)
  local slopes = {}
  for k = 1, 3 do
    local step = h / 2 ^ (k - 1)
    slopes[k] = (shifted(f, p, tensor, d, step) - shifted(f, p, tensor, d, -step)) / (2 * step)
  end
  local a, b = (4 * slopes[2] - slopes[1]) / 3, (4 * slopes[3] - slopes[2]) / 3
  return (16 * b - a) / 15
end

-- the size of a tensor's numbers, which steps are measured by
local function scale(tensor)
  local largest = tensor:detach():abs():max():item()
  return largest > 0 and largest or 1
end

---The slope of f along a direction of one tensor of p; the one among several step sizes that its neighbour confirms
---best.
function derivative.slope(f, p, tensor)
  local d, before, best, slope = direction(tensor, 1), nil, math.huge, nil
  for _, h in ipairs { 1e-3, 1e-4, 1e-5, 1e-6 } do
    local here = numeric(f, p, tensor, d, h * scale(tensor))
    if before and math.abs(here - before) < best then best, slope = math.abs(here - before), here end
    before = here
  end
  return slope
end

---A gradient along the same direction.
function derivative.along(grad, tensor) return (grad * direction(tensor, 1)):sum():item() end

---Relative error of the gradient of f(p) by each trainable of p, by its path; and the slopes along the directions. The
---best of several step sizes counts: a wrong gradient is wrong at all of them.
---@param f fun(p: table): cq.Tensor
---@param p table
---@return table<string, number> errors, table<string, number> slopes
function derivative.errors(f, p)
  local _, grads = T.value_and_grad(f)(p)
  local found = T.leaves.pair(p, grads)
  local errors, slopes = {}, {}
  for k, leaf in ipairs(T.leaves.trainable(p, "derivative")) do
    local d = direction(leaf.tensor, k)
    local analytic = (found[leaf.tensor] * d):sum():item()
    local best = math.huge
    for _, h in ipairs { 1e-3, 1e-4, 1e-5, 1e-6 } do
      local slope = numeric(f, p, leaf.tensor, d, h * scale(leaf.tensor))
      local err = math.abs(analytic - slope) / math.max(math.abs(slope), 1e-12)
      if err < best then best, slopes[leaf.path] = err, slope end
    end
    errors[leaf.path] = best
  end
  return errors, slopes
end

---Fails unless every error is small and no slope is zero.
function derivative.check(f, p, tolerance)
  local errors, slopes = derivative.errors(f, p)
  for path, err in pairs(errors) do
    assert.is_true(math.abs(slopes[path]) > 1e-9, ("the slope along %s is %.2g, which tests nothing"):format(path,
      slopes[path]))
    assert.is_true(err < tolerance, ("%s: relative error %.2e of %.4g"):format(path, err, slopes[path]))
  end
end

return derivative
