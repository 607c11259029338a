-- passive: the gain of a design without any signal, by falling over for instance. A stage may add it to the loss
-- (options.passive_weight), so that an objective rewards signals and not the places of particles.
local T = require "cq.tensor"

local passive = {}

-- A copy of params in which all pulses are zero and there is no controller; density {n} in the place of the design's,
-- if it is given.
local function without_pulses(params, density)
  local out, design = {}, params.design
  for name, value in pairs(params) do out[name] = value end
  out.controller = false
  local shape = design.sign:shape()
  out.design = { density = density or design.density, layout = design.layout, sign = T.zeros(shape),
    magnitude = T.full(shape, -1) }
  return out
end

---The loss of the body without any signal, and its rollout, which the caller releases.
---@param run cq.Experiment      with a design
---@param params table
---@param steps? integer         the experiment's unless given
---@return cq.Tensor loss, cq.Rollout
function passive.loss(run, params, steps)
  local roll = run:rollout(without_pulses(params), { steps = steps })
  return run:loss(roll), roll
end

-- Do params train nothing but the design and its controller?
local function is_alone(params)
  for name, value in pairs(params) do
    if name ~= "design" and name ~= "controller" and next(value) then return false end
  end
  return true
end

-- The loss of the solid block (density 1 everywhere) without any signal, a number. steps: control steps, nil: all. If
-- design and controller alone are trained, that of all is computed once a stage, until an option of rollouts changes.
local function loss_of_block(run, params, steps)
  local kept, key = run.block_losses, run.scene_number or 0
  if kept[key] and not steps and is_alone(params) then return kept[key] end
  local solid = T.ones(params.design.density:shape())
  local loss = T.tape.pause(function()
    local roll = run:rollout(without_pulses(params, solid), { steps = steps })
    local value = run:loss(roll):item()
    roll:release()
    return value
  end)
  if not steps then kept[key] = loss end
  return loss
end

---Does the present stage add the passive cost, a charge on what the body gains without signals? Not for an extracted
---body, which no longer changes.
---@param run cq.Experiment
---@return boolean
function passive.is_charged(run) return (run.passive_weight or 0) > 0 and not run.extracted end

-- The gain without any signal, a number: by how much the loss of the body is below that of the solid block. Also a copy
-- of params that holds the gradient of the body's loss, if a tape records and there is a gain; else false or nil.
local function gain_over_block(run, params, steps)
  local block, own = loss_of_block(run, params, steps), T.leaves.snapshot(params)
  for tensor, copy in pairs(T.leaves.pair(params, own)) do copy.requires_grad = tensor.requires_grad end
  local record = T.tape.recording() and T.tape.new()
  local loss, roll = T.tape.with(record or nil, passive.loss, run, own, steps)
  local gain = block - loss:item()
  local matters = record and gain > 0
  if matters then record:backward(loss) end
  roll:release()
  return gain, matters and own
end

---The stage's passive_weight times the gain, at least 0, of the body without signals over the solid block; nil where
---the stage has no weight. Its rollout is reversed at once, so that it takes no memory beside the objective's rollout;
---the block's loss has no gradient.
---@param run cq.Experiment
---@param params table
---@param steps? integer
---@return cq.Tensor? cost
function passive.cost(run, params, steps)
  if not passive.is_charged(run) then return nil end
  local gain, own = gain_over_block(run, params, steps)
  local cost = T.tensor { math.max(0, gain) * run.passive_weight }:sum()
  if not own then return cost end
  local copy = T.leaves.pair(params, own)
  return T.tape.custom { outputs = { cost }, name = "passive cost", backward = function(gradient)
    local by = -run.passive_weight * gradient:item()
    for _, leaf in ipairs(T.leaves.list(params)) do
      local slope = copy[leaf.tensor] and copy[leaf.tensor].grad
      if slope then leaf.tensor:accumulate(by * slope) end
    end
  end }
end

return passive
