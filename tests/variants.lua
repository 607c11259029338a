-- variants: what specs of variants compare.
local assert = require "luassert"
local numbers = require "cq.experiment.numbers"
local T = require "cq.tensor"

local variants = {}

-- minus the way of the trunk
function variants.way(state, start) return start:center("trunk")[1] - state:center("trunk")[1] end

-- the loss of an experiment and all of its gradients as one list
function variants.value_and_gradients(run)
  local value, grads = T.value_and_grad(function(p)
    local found, rolls = numbers(run, p)
    return found.objective, rolls
  end)(run.params)
  local all = {}
  for _, leaf in ipairs(T.leaves.list(grads)) do
    for _, x in ipairs(leaf.tensor:reshape { -1 }:totable()) do all[#all + 1] = x end
  end
  return value, all
end

-- are the numbers of two lists equal, but for a share of the largest?
function variants.near(a, b, tolerance)
  local most = 0
  for k = 1, #a do most = math.max(most, math.abs(a[k])) end
  assert.is_true(most > 0)
  for k = 1, #a do
    assert.is_true(math.abs(a[k] - b[k]) <= tolerance * most, ("%d: %.17g and %.17g"):format(k, a[k], b[k]))
  end
end

return variants
