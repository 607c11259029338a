-- gravity: accelerations that change from one control step to the next, as of a table that tilts or a launch. They are
-- given to a rollout as a tensor or a function of time, or belong to the world; the engine gives their gradient.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local series = require "cq.rollout.series"
local wall_motion = require "cq.rollout.wall_motion"
local shape_text = require("cq.tensor.class").shape_text
local C = require("cq.base.engine").C

local gravity = {}

---What a function of time gives {dim}.
---@param f fun(time: number): any
---@param time number
---@param dim integer
---@param what string          for errors
---@return cq.Tensor
function gravity.at(f, time, dim, what) return wall_motion.ask(f, time, dim, what) end

-- {steps, dim} by a function of the time that a control step begins at, from control step `first` on
local function of_function(world, f, first, steps, what)
  local rows = {}
  for i = 1, steps do rows[i] = gravity.at(f, (first + i - 1) * world.control_dt, world.dim, what) end
  return T.stack(rows, 1)
end

-- Gravity as {steps, dim}, and whether each scene has its own; nil: the value is no tensor of such a shape. batch: nil
-- without one.
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

---The series of gravity over a rollout's control steps, taken out of its definition; nil where gravity is constant, and
---without steps, where def.gravity becomes that of the start. Errors: another shape; numbers that are not finite.
---@param world cq.World
---@param def table            of world:rollout; gravity is taken out of it
---@return { tensor: cq.Tensor, per_scene: boolean, each: cq.Tensor }?   each: by control step, tensor: as the engine takes it
function gravity.collect(world, def)
  local value = def.gravity
  local tensor, per_scene
  local called = text.is_callable(value) and not T.is_tensor(value)
  local first = def.from and def.from.step or 0
  if def.steps == 0 then      -- that of the start
    if called then def.gravity = gravity.at(value, first * world.control_dt, world.dim, "world:rollout: gravity") end
    return nil
  end
  if value == nil then
    tensor = world.gravity_at and of_function(world, world.gravity_at, first, def.steps, "cq.World: gravity")
  elseif called then
    tensor = of_function(world, value, first, def.steps, "world:rollout: gravity")
  else
    tensor, per_scene = of_tensor(world, value, def.steps, def.batch)
  end
  if not tensor then return nil end
  if not tensor:finite() then is.fail("world:rollout: gravity must be finite") end
  def.gravity = nil
  local own = series.new(world, tensor, per_scene)
  own.each = tensor
  return own
end

---Gravity in a control step {dim}, or of each scene {batch, dim}.
---@param motion table         of collect
---@param step integer         from 1
---@return cq.Tensor
function gravity.of_step(motion, step)
  local axis = motion.per_scene and 2 or 1
  return motion.each:slice(step, step, axis):squeeze(axis)
end

---Sets the gravity of an engine rollout from a pool; nil sets that of the world back.
---@param entry table          of the pool
---@param own cq.Series?        of collect
function gravity.apply(entry, own) series.apply(entry, "gravity", own, C.cq_rollout_set_gravity) end

-- The bit of the gradient of gravity by control steps, 0 where nothing wants it.
function gravity.wanted(own) return series.wanted(own, "gravity") end

-- Adds the engine's gradient of gravity by control steps to the tape's.
function gravity.push(handle, own) series.push(handle, own, C.cq_rollout_gravity_gradient) end

return gravity
