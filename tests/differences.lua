-- differences: derivatives by extrapolated central differences, exact to about 1e-10, to hold gradients against.
local T = require "cq.tensor"

local differences = {}

-- f at x + h d, as a number
local function shifted(f, inputs, directions, h)
  local moved = {}
  for i, x in ipairs(inputs) do moved[i] = x:detach() + h * directions[i] end
  return f(unpack(moved)):item()
end

---Derivative of f(inputs...) along directions: steps h, h/2, h/4, whose errors of order 2 and 4 are taken out.
function differences.along(f, inputs, directions, h)
  h = h or 2e-3
  local d = {}
  for k = 1, 3 do
    local step = h / 2 ^ (k - 1)
    d[k] = (shifted(f, inputs, directions, step) - shifted(f, inputs, directions, -step)) / (2 * step)
  end
  local a, b = (4 * d[2] - d[1]) / 3, (4 * d[3] - d[2]) / 3
  return (16 * b - a) / 15
end

---Of each input alone, the derivative of f(inputs...) that its gradient gives along a direction of it.
---@return { along: number, directions: cq.Tensor[] }[]    directions: zero for the others
function differences.gradients(f, inputs)
  local params, out = {}, {}
  for i, x in ipairs(inputs) do params[i] = T.param(x) end
  local _, grads = T.value_and_grad(function(p) return f(unpack(p)) end)(params)
  for i in ipairs(inputs) do
    local directions = {}
    for k, x in ipairs(inputs) do
      directions[k] = k == i and (T.arange(1, x.count):reshape(x:shape()) * 1.3):cos() or T.zeros(x:shape())
    end
    out[i] = { along = (grads[i] * directions[i]):sum():item(), directions = directions }
  end
  return out
end

---Largest relative error of the gradient of a tensor function f(inputs...), for each input alone. The result is
---weighted by fixed numbers that are all different, so that elements cannot stand in for one another.
function differences.error(f, inputs)
  local function weighted(...)
    local y = f(...)
    return (y * (T.arange(1, y.count):reshape(y:shape()) * 0.7):sin()):sum()
  end
  local worst = 0
  for _, gradient in ipairs(differences.gradients(weighted, inputs)) do
    local numeric = differences.along(weighted, inputs, gradient.directions)
    worst = math.max(worst, math.abs(gradient.along - numeric) / math.max(math.abs(numeric), 1e-2))
  end
  return worst
end

return differences
