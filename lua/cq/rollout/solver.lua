-- solver: iterations and residuals of implicit steps in a rollout, as tensors.
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local message = require "cq.base.message"
local tape = require "cq.tensor.tape"
local text = require "cq.base.text"
local C = engine.C

---What implicit steps took, {steps, substeps} each; with a batch the scene is the second dimension.
---@class cq.SolverReport
---@field newton cq.Tensor     Newton iterations
---@field linear cq.Tensor     products with the second derivative, of all of them
---@field residual cq.Tensor   at the end, relative to inertia and internal forces
---@field floor cq.Tensor      below which rounding leaves none
---@field unsettled cq.Tensor  contacts that hold although they pull: no set of contacts was found that fits
---@field adjoint cq.Tensor    products that the gradient took; 0 before there is one
---@field saddle cq.Tensor     those of them along which the second derivative was negative: a step that ended at a
---  minimum has none, but for rounding
local Report = { __name = "cq.SolverReport" }
Report.__index = Report

local solver = {}

local parts = { newton = "CQ_SOLVER_NEWTON", linear = "CQ_SOLVER_LINEAR", residual = "CQ_SOLVER_RESIDUAL",
  floor = "CQ_SOLVER_FLOOR", unsettled = "CQ_SOLVER_UNSETTLED", adjoint = "CQ_SOLVER_ADJOINT",
  saddle = "CQ_SOLVER_SADDLE" }

-- The report in one line: steps, iterations, products and the largest residual.
function Report:__tostring()
  if self.newton.count == 0 then return "cq.SolverReport { no steps }" end
  local unsettled = self.unsettled:sum():item()
  return ("cq.SolverReport { %s, %s, %s, residual at most %.3g%s }"):format(text.count(self.newton.count, "step"),
    text.count(self.newton:sum():item(), "Newton iteration"), text.count(self.linear:sum():item(), "product"),
    self.residual:max():item(), unsettled > 0 and ", " .. text.count(unsettled, "unsettled contact") or "")
end

-- Warns, once for a world, if rounding leaves more of the residual than the tolerance of its implicit steps. floor:
-- that part of the residual, relative to inertia and internal forces, the largest over all steps.
local function warn_of_rounding(world, floor)
  local tolerance = world.def.integrator.tolerance
  if world.rounding_told or not (floor > tolerance) then return end
  world.rounding_told = true
  local advice = { world.precision == "float32" and "precision = \"float64\"" or nil }
  -- a tolerance is below 1, and what is solved to less than a third tells little
  advice[#advice + 1] = floor < 0.3 and "a larger tolerance" or "a softer material, for its forces are lost in it"
  message.warn("world:rollout: rounding leaves %.1g of the residual of implicit steps, more than their tolerance of %g; take %s",
    floor, tolerance, table.concat(advice, ", or "))
end

-- The first control step, from 1, in which a count of the implicit solver {steps, ...} is not 0.
local function first_step(part)
  local steps, step = part:size(1), 1
  local by_step = part:reshape { steps, part.count / steps }
  while by_step[step]:max():item() == 0 do step = step + 1 end
  return step
end

-- If any count {steps, ...} is above 0: warns, once for a world, that no set of contacts fits in some step, and notes
-- it for cq.check_gradient (tape.remark).
local function tell_unsettled(world, unsettled)
  if unsettled:max():item() == 0 then return end
  local where = world.def.statics and "world:settle" or ("control step %d"):format(first_step(unsettled))
  tape.remark = ("in %s no set of contacts fits"):format(where)
  if world.unsettled_told then return end
  world.unsettled_told = true
  message.warn("world:%s: no set of contacts fits the forces (roll.solver.unsettled): a contact that is let go enters its wall, and one that holds is pulled away. Separable sticky walls and friction allow that where several walls hold a node; use shorter steps, or kind = \"separate\"",
    world.def.statics and "settle" or "rollout: " .. where)
end

-- Warns, once for a world, where the adjoint's linear solve met a negative second derivative, so that gradients may be
-- of no minimum.
local function warn_of_saddle(world, saddle)
  if world.saddle_told or saddle:max():item() == 0 then return end
  world.saddle_told = true
  local what = world.def.statics and "world:settle" or ("control step %d"):format(first_step(saddle))
  message.warn("the gradient of %s met a second derivative that is negative (roll.solver.saddle): it may have ended at a saddle of its potential, where a gradient says little; use a smaller tolerance (cq.Implicit { tolerance = })",
    what)
end

-- The counts and residuals of the implicit solver in each substep, a table by name (`parts`): {steps, substeps}, or
-- {steps, batch, substeps} with a batch. nil for explicit steps.
local function read(roll)
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
  return out
end

---The report of the implicit solver over all steps of a rollout (roll.solver), with warnings; nil for explicit steps.
---@param roll cq.Rollout
---@return cq.SolverReport?
function solver.of(roll)
  local out = read(roll)
  if not out then return nil end
  if out.floor.count > 0 then
    warn_of_rounding(roll.world, out.floor:max():item())
    tell_unsettled(roll.world, out.unsettled)
  end
  return setmetatable(out, Report)
end

---Sets the iterations of the backward pass in roll.solver (adjoint, saddle), after that pass; warns of a saddle.
---@param roll cq.Rollout
function solver.add_adjoint(roll)
  local made = read(roll)
  if not made or made.saddle.count == 0 then return end
  roll.solver.adjoint, roll.solver.saddle = made.adjoint, made.saddle
  warn_of_saddle(roll.world, made.saddle)
end

return solver
