-- solver: what the solver of implicit steps did in a rollout, as tensors.
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local message = require "cq.base.message"
local C = engine.C

---What implicit steps took, {steps, substeps} each; with a batch the scene is the second dimension.
---@class cq.Solver
---@field newton cq.Tensor     Newton iterations
---@field linear cq.Tensor     products with the second derivative, of all of them
---@field residual cq.Tensor   at the end, relative to inertia and internal forces
---@field floor cq.Tensor      below which rounding leaves none

local solver = {}

local parts = { newton = "CQ_SOLVER_NEWTON", linear = "CQ_SOLVER_LINEAR", residual = "CQ_SOLVER_RESIDUAL",
  floor = "CQ_SOLVER_FLOOR" }

-- once for a world: its rollouts are much alike
local function warn_of_rounding(world, floor)
  local tolerance = world.def.integrator.tolerance
  if world.rounding_told or not (floor > tolerance) then return end
  world.rounding_told = true
  message.warn("world:rollout: rounding leaves %.1g of the residual of implicit steps, more than their tolerance of %g; take %sa larger tolerance",
    floor, tolerance, world.precision == "float32" and "precision = \"float64\", or " or "")
end

---Of all steps of a rollout; nil where they are explicit.
---@param roll cq.Rollout
---@return cq.Solver?
function solver.of(roll)
  local from = C.cq_rollout_solver(roll.handle)
  if from == nil then return nil end
  local pieces, width = roll.world.pieces, tonumber(C.CQ_SOLVER_WIDTH)
  local substeps = roll.world.substeps / pieces
  local shape = { roll.steps * pieces, roll.batch, substeps, width }
  local rows, out = T.empty(shape), {}
  local to = rows:data()
  for k = 0, rows:size() - 1 do to[k] = from[k] end
  for name, constant in pairs(parts) do
    local at = tonumber(C[constant]) + 1
    local part = rows:slice(at, at, -1):squeeze(-1)
    if pieces > 1 then
      part = part:transpose(2, 3):reshape { roll.steps, roll.world.substeps, roll.batch }:transpose(2, 3)
    end
    out[name] = roll.batched and part or part:squeeze(2)
  end
  if rows:size() > 0 then warn_of_rounding(roll.world, out.floor:max():item()) end
  return out
end

return solver
