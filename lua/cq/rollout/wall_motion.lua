-- wall_motion: velocities of walls that change from one control step to the next: a floor that shakes, a gripper
-- that closes. They are given to a rollout as a tensor or a function of time, or belong to the world's walls; the
-- engine gives their gradient.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local series = require "cq.rollout.series"
local class = require "cq.tensor.class"

local wall_motion, same, shape_text = {}, class.same_dims, class.shape_text

-- Nested lists of numbers and tensors as one tensor, on the tape. Errors: another value, or an empty list.
local function joined(value, what)
  if type(value) == "number" or T.is_tensor(value) then return T.as_tensor(value) end
  if type(value) ~= "table" or #value == 0 then
    is.fail("%s must give a list or a tensor, got %s", what, text.describe(value))
  end
  local list = {}
  for k, part in ipairs(value) do list[k] = joined(part, what) end
  return T.stack(list, 1)
end

-- Returns a tensor of velocities; raises an error if one is not finite. time: at which the user's function was called.
local function require_finite(tensor, what, time)
  if not tensor:finite() then is.fail("%s gave a number that is not finite at time %s", what, text.number(time)) end
  return tensor
end

---@internal
---Calls a user's function of time and returns its value as a tensor {dim}. Errors: another shape; not finite.
function wall_motion.ask(f, time, dim, what)
  local out = joined(f(time), ("%s at time %s"):format(what, text.number(time)))
  if not same(out:shape(), { dim }) then
    is.fail("%s must give {%d}, got %s at time %s", what, dim, shape_text(out:shape()), text.number(time))
  end
  return require_finite(out, what, time)
end

---The velocity of a wall of the world in the control step that begins at a time; of a displacement, its difference
---over the step. Errors: a displacement that is not zero at time 0.
---@param wall cq.Boundary
---@param k integer             number of the wall, from 1
---@param time number
---@param world cq.World
---@return cq.Tensor            {dim}
function wall_motion.velocity(wall, k, time, world)
  local dim, dt, name = world.dim, world.control_dt, ("cq.Boundary.%s (wall %d): "):format(wall.family, k)
  if wall.velocity_at then return wall_motion.ask(wall.velocity_at, time, dim, name .. "velocity") end
  if not wall.motion then return world.layout.base.wall_velocity[k] end
  local what = name .. "motion"
  local before = wall_motion.ask(wall.motion, time, dim, what)
  if time == 0 and before:detach():abs():max():item() > 0 then
    is.fail("%s must give zeros at time 0, where the wall stands at its place, got %s", what, tostring(before:detach()))
  end
  return (wall_motion.ask(wall.motion, time + dt, dim, what) - before) / dt
end

-- Does a wall of the world move by a function of time?
local function any_timed(world)
  for _, wall in ipairs(world.walls) do
    if wall.velocity_at or wall.motion then return true end
  end
  return false
end

-- The velocities {steps, walls, dim} of the world's own walls, from control step `first` on; nil: none of them changes.
local function of_world(world, first, steps)
  if not any_timed(world) then return nil end
  local rows = {}
  for i = 1, steps do
    local row, time = {}, (first + i - 1) * world.control_dt
    for k, wall in ipairs(world.walls) do row[k] = wall_motion.velocity(wall, k, time, world) end
    rows[i] = T.stack(row, 1)
  end
  return T.stack(rows, 1)
end

-- The velocities {steps, walls, dim} that a user's function of time gives from control step `first` on; a value {dim}
-- is for all walls. Errors: another shape; not finite.
local function of_function(world, f, first, steps)
  local what, walls, rows = "world:rollout: wall_velocity", #world.walls, {}
  for i = 1, steps do
    local time = (first + i - 1) * world.control_dt
    local row = joined(f(time), what)
    if same(row:shape(), { world.dim }) then row = row:unsqueeze(1):expand { walls, world.dim } end
    if not same(row:shape(), { walls, world.dim }) then
      is.fail("%s must give {%d} or {%d, %d}, got %s", what, world.dim, walls, world.dim, shape_text(row:shape()))
    end
    rows[i] = require_finite(row, what, time)
  end
  return T.stack(rows, 1)
end

-- A user's tensor of wall velocities that change by control step, {steps, walls, dim} or {batch, steps, walls, dim},
-- and whether it is by scene; nil: the value is constant. batch: nil without one. Errors: another shape of three
-- dimensions or more; one that fits both scenes and steps.
local function of_tensor(world, value, steps, batch)
  if type(value) ~= "table" then return nil end
  local tensor = T.as_tensor(value, "world:rollout: wall_velocity")
  local walls, dim, shape = #world.walls, world.dim, tensor:shape()
  local each = same(shape, { steps, walls, dim })
  if each and steps == batch and steps > 1 then
    is.fail("world:rollout: wall_velocity %s may be of %d control steps or of %d scenes; "
      .. "give {%d, %d, %d, %d}, of scenes and control steps", shape_text(shape), steps, batch, batch, steps, walls,
        dim)
  end
  if each or batch and same(shape, { batch, steps, walls, dim }) then return tensor, not each end
  if #shape > 2 and not (batch and same(shape, { batch, walls, dim })) then
    local batched = batch and (", with the batch of %d before it if it differs between scenes"):format(batch) or ""
    is.fail("world:rollout: wall_velocity must have the shape {%d}, {%d, %d} or {%d, %d, %d} of control steps%s, got %s",
      dim, walls, dim, steps, walls, dim, batched, shape_text(shape))
  end
end

local sources = { world = of_world, call = of_function, tensor = of_tensor }

---Moves wall_velocity out of a rollout's definition into a series over control steps; nil where every wall keeps one
---velocity. Without control steps no function is asked, and the series says no more than that velocities change: walls
---stand where those of the rollout that is continued do. Errors: a world without walls; another shape; numbers that are
---not finite.
---@param world cq.World
---@param def table            of world:rollout
---@return cq.Series?
function wall_motion.take_series(world, def)
  local value = def.wall_velocity
  if value ~= nil and #world.walls == 0 then
    is.fail("world:rollout: wall_velocity is given, but the world has no walls")
  end
  if def.steps > 0 or value ~= nil and not series.is_called(value) then
    return series.take(world, def, "wall_velocity", sources)
  end
  def.wall_velocity = nil
  if not (value or any_timed(world) or def.from and def.from.roll.wall_motion) then return nil end
  local still = T.zeros { world.pieces, #world.walls, world.dim }      -- of the one control step that the engine has
  return { each = still, tensor = still, per_scene = false }
end

---Displacement of each wall since the start, {walls}{dim}; nil: no wall has moved.
---@param state cq.State
---@param scene integer         from 0
---@return number[][]?
function wall_motion.way(state, scene)
  local world, roll, out, moves = state.world, state.roll, {}, false
  local dim, walls, own, set = world.dim, #world.walls, roll.wall_motion, roll.set.wall_velocity
  local before = roll.walls_before and roll.walls_before[scene]
  local fixed = set and set.tensor or world.layout.base.wall_velocity
  local first = 0
  if own and own.per_scene then first = scene * own.tensor:size(2)
  elseif not own and set and set.per_scene then first = scene end
  for k, wall in ipairs(world.walls) do
    out[k] = {}
    for d = 1, dim do
      local way, at = 0, (first * walls + k - 1) * dim + d - 1
      if wall.moves and own then
        way = before and before[k][d] or 0
        local width = world.pieces * walls * dim
        for step = 0, state.index - 1 do way = way + world.control_dt * own.tensor:data()[step * width + at] end
      elseif wall.moves then
        way = (before and before[k][d] or 0) + state.index * world.control_dt * fixed:data()[at]
      end
      out[k][d], moves = way, moves or way ~= 0
    end
  end
  return moves and out or nil
end

return wall_motion
