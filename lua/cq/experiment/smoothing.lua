-- smoothing: gradients as means over copies of the parameters that are moved at random. Where a landscape is rough, the
-- gradient at a point says little of what lies farther than that; the mean is the gradient of the objective blurred by
-- a Gaussian (Duchi, Bartlett, Wainwright: Randomized smoothing for stochastic optimization, SIAM J. Optim. 22, 2012).
-- Loss, best and history stay those of the parameters themselves.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local backtrack = require "cq.experiment.backtrack"
local random = require "cq.random"
local option = require "cq.option"

local smoothing = {}

---@class run.optimize.smoothing.def
---@field copies integer       evaluations for each gradient, that of the parameters themselves among them
---@field deviation number     standard deviation of what is added to each number of the other copies

smoothing.spec = is.define("run:optimize: smoothing", {
  copies = is.integer { min = 2, max = 1000 }, deviation = is.number { above = 0 },
})

local function move(leaves, before, draw, deviation)
  for _, leaf in ipairs(leaves) do
    local x, bounds = leaf.tensor, leaf.tensor.bounds or {}
    local moved = before[x]:detach() + draw:normal(x:shape(), { deviation = deviation })
    x:copy_from(moved:clamp(bounds.min or -math.huge, bounds.max or math.huge))
  end
end

-- adds the gradients of a copy; one whose simulation fails is no part of the mean
local function add(sums, finish, fine, problem, grads, rest)
  if not fine then
    if backtrack.is_of_simulation(problem) then return 0 end
    error(problem, 0)
  end
  for _, leaf in ipairs(T.leaves.list(grads)) do
    sums[leaf.path] = sums[leaf.path] and sums[leaf.path] + leaf.tensor or leaf.tensor
  end
  finish(rest)
  return 1
end

---A function that evaluates as another does, with a mean of gradients.
---@param evaluate fun(params: any): number, table, any     loss, gradients and what else is handed on
---@param def run.optimize.smoothing.def
---@param number fun(): integer       of the iteration: the same one draws the same copies, also where a run goes on
---@param finish fun(rest: any)       with what else the evaluation of a copy gave
---@return fun(params: any): number, table, any
function smoothing.of(evaluate, def, number, finish)
  return function(params)
    local leaves, before = T.leaves.list(params), T.leaves.pair(params, T.leaves.snapshot(params))
    local draw, sums, made = random { seed = (option("seed", 0) * 1000003 + number()) % 2 ^ 53 }, {}, 1
    for _ = 2, def.copies do
      move(leaves, before, draw, def.deviation)
      local result = { pcall(evaluate, params) }
      for _, leaf in ipairs(leaves) do leaf.tensor:copy_from(before[leaf.tensor]:detach()) end
      made = made + add(sums, finish, unpack(result, 1, 4))
    end
    local loss, grads, rest = evaluate(params)
    for _, leaf in ipairs(T.leaves.list(grads)) do
      local sum = sums[leaf.path]
      leaf.tensor:copy_from((sum and sum + leaf.tensor or leaf.tensor) / made)
    end
    return loss, grads, rest
  end
end

return smoothing
