-- gravity: accelerations that change from one control step to the next, as of a table that tilts or a launch. They are
-- given to a rollout as a tensor or a function of time, or belong to the world; the engine gives their gradient.
local is = require "cq.base.schema"
local T = require "cq.tensor"
local series = require "cq.rollout.series"
local wall_motion = require "cq.rollout.wall_motion"
local shape_text = require("cq.tensor.class").shape_text

local gravity = {}

---Calls a function of time and returns its value as {dim}. Errors: another shape; not finite.
---@param f fun(time: number): any
---@param time number
---@param dim integer
---@param what string          for errors
---@return cq.Tensor
function gravity.at(f, time, dim, what) return wall_motion.ask(f, time, dim, what) end

-- A tensor {steps, dim} of f(time) at the beginning of each control step, from control step `first` on (from 0).
local function of_function(world, f, first, steps, what)
  local rows = {}
  for i = 1, steps do rows[i] = gravity.at(f, (first + i - 1) * world.control_dt, world.dim, what) end
  return T.stack(rows, 1)
end

-- A user's tensor of gravity that changes by control step, {steps, dim} or {batch, steps, dim}, and whether it is by
-- scene; nil: the value is constant. batch: nil without one. Errors: another shape of two dimensions or more; one that
-- fits both scenes and steps.
local function of_tensor(world, value, steps, batch)
  if type(value) ~= "table" then return nil end
  local tensor, dim = T.as_tensor(value, "world:rollout: gravity"), world.dim
  local shape = tensor:shape()
  local rows = #shape == 2 and shape[2] == dim
  if rows and shape[1] == batch and (batch > 1 or steps > 1) then
    if steps ~= batch then return nil end
    is.fail("world:rollout: gravity %s may be of %d control steps or of %d scenes; give {%d, %d, %d}, of scenes and control steps",
      shape_text(shape), steps, batch, batch, steps, dim)
  end
  if rows and shape[1] == steps then return tensor, false end
  local scenes = #shape == 3 and shape[1] == batch
  if scenes and shape[2] == steps and shape[3] == dim then return tensor, true end
  if #shape < 2 then return nil end
  is.fail("world:rollout: gravity must have the shape {%d}, or {%d, %d} of control steps%s, got %s", dim, steps, dim,
    batch and (", with the batch of %d before it if it differs between scenes"):format(batch) or "",
    shape_text(shape))
end

local sources = {
  -- The world's own gravity by control steps, if it is a function of time; else nil.
  world = function(world, first, steps)
    return world.gravity_at and of_function(world, world.gravity_at, first, steps, "cq.World: gravity")
  end,
  -- Gravity of a function of time by control steps.
  call = function(world, f, first, steps) return of_function(world, f, first, steps, "world:rollout: gravity") end,
  tensor = of_tensor,
}

---The series of gravity over a rollout's control steps, taken out of its definition; nil if gravity is constant.
---Without control steps it is nil too, and def.gravity becomes that of the step which led to the state, or at the
---start. Errors: another shape; numbers that are not finite.
---@param world cq.World
---@param def table            of world:rollout
---@return cq.Series?
function gravity.collect(world, def)
  if def.steps > 0 then return series.take(world, def, "gravity", sources) end
  local f = def.gravity
  if f == nil and def.from then f = world.gravity_at end
  if series.is_called(f) then
    local before = math.max(0, (def.from and def.from.step or 0) - 1)
    def.gravity = gravity.at(f, before * world.control_dt, world.dim, "world:rollout: gravity")
  end
end

---Gravity in a control step, a tensor {dim}, or of each scene {batch, dim}.
---@param motion table         of collect
---@param step integer         from 1
---@return cq.Tensor
function gravity.of_step(motion, step)
  local axis = motion.per_scene and 2 or 1
  return motion.each:slice(step, step, axis):squeeze(axis)
end

return gravity
