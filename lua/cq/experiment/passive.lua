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
---@param density? cq.Tensor     {n} in the place of the design's
---@return cq.Tensor loss, cq.Rollout
function passive.loss(run, params, steps, density)
  local roll = run:rollout(without_pulses(params, density), { steps = steps })
  return run:loss(roll), roll
end

-- Do params train nothing but the design and its controller?
local function is_alone(params)
  for name, value in pairs(params) do
    if name ~= "design" and name ~= "controller" and next(value) then return false end
  end
  return true
end

-- The loss of the body without any signal, a number, and a copy of params that holds its gradient, if a tape records
-- and the loss is below `least`, math.huge for any; else nil. Its rollout is reversed at once. density: of the design's
-- particles, that of params unless given; steps: control steps, nil: all.
local function loss_and_slopes(run, params, density, steps, least)
  local own = T.leaves.snapshot(params)
  for tensor, copy in pairs(T.leaves.pair(params, own)) do copy.requires_grad = tensor.requires_grad end
  local record = T.tape.recording() and least and T.tape.new() or nil
  local loss, roll = T.tape.with(record, passive.loss, run, own, steps, density)
  local value = loss:item()
  local matters = record ~= nil and value < least
  if matters then record:backward(loss) end
  roll:release()
  return value, matters and own or nil
end

-- The loss of the solid block (density 1 everywhere) without any signal, and its gradient, as loss_and_slopes gives
-- them. If design and controller alone are trained, on which it does not depend, it is computed once a stage, until an
-- option of rollouts changes, and has no gradient.
local function loss_of_block(run, params, steps)
  local kept, key, is_fixed = run.block_losses, run.scene_number or 0, is_alone(params)
  if kept[key] and not steps and is_fixed then return kept[key] end
  local solid = T.ones(params.design.density:shape())
  local loss, slopes = loss_and_slopes(run, params, solid, steps, not is_fixed and math.huge or nil)
  if not steps then kept[key] = loss end
  return loss, slopes
end

---Does the present stage add the passive cost, a charge on what the body gains without signals? Not for an extracted
---body, which no longer changes.
---@param run cq.Experiment
---@return boolean
function passive.is_charged(run) return (run.passive_weight or 0) > 0 and not run.extracted end

---The stage's passive_weight times the gain, at least 0, of the body without signals over the solid block; nil where
---the stage has no weight. Its rollouts are reversed at once, so that they take no memory beside the objective's.
---@param run cq.Experiment
---@param params table
---@param steps? integer
---@return cq.Tensor? cost
function passive.cost(run, params, steps)
  if not passive.is_charged(run) then return nil end
  local block, of_block = loss_of_block(run, params, steps)
  local loss, of_body = loss_and_slopes(run, params, nil, steps, block)
  local cost = T.tensor { math.max(0, block - loss) * run.passive_weight }:sum()
  if not of_body then return cost end
  return T.tape.custom { outputs = { cost }, name = "passive cost", backward = function(gradient)
    local by = run.passive_weight * gradient:item()
    -- Adds a share of the slopes that a copy of params holds to those of params.
    local function add(own, share)
      local copy = T.leaves.pair(params, own)
      for _, leaf in ipairs(T.leaves.list(params)) do
        local slope = copy[leaf.tensor] and copy[leaf.tensor].grad
        if slope then leaf.tensor:accumulate(share * slope) end
      end
    end
    add(of_body, -by)
    if of_block then add(of_block, by) end
  end }
end

return passive
