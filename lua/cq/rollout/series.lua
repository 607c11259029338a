-- series: a value for each control step of a rollout, wall velocities or gravity: to the engine, and its gradient back.
local engine = require "cq.base.engine"
local field = require "cq.base.field"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local C = engine.C

local series = {}

-- functions of the engine, by the field
local of_engine = {
  gravity = { set = C.cq_rollout_set_gravity, gradient = C.cq_rollout_gravity_gradient },
  wall_velocity = { set = C.cq_rollout_set_walls, gradient = C.cq_rollout_walls_gradient },
}

---@class cq.Series
---@field each cq.Tensor        by control steps {steps, ...}, or {batch, steps, ...}
---@field tensor cq.Tensor      as the engine takes it, by its own steps
---@field per_scene boolean     has each scene its own?

-- A tensor in which each row of a control step, along `axis`, is repeated for the engine steps (pieces) in it.
local function by_pieces(tensor, pieces, axis)
  if pieces == 1 then return tensor end
  local shape, rows = tensor:shape(), tensor:shape()
  table.insert(shape, axis + 1, pieces)
  rows[axis] = rows[axis] * pieces
  return tensor:unsqueeze(axis + 1):expand(shape):reshape(rows)
end

---@class cq.Series.sources
---@field world fun(world: cq.World, first: integer, steps: integer): cq.Tensor?   of the world itself; nil: it is constant
---@field call fun(world: cq.World, f: function, first: integer, steps: integer): cq.Tensor   of the user's function of time
---@field tensor fun(world: cq.World, value: any, steps: integer, batch: integer?): cq.Tensor?, boolean?   of what else
---  the user gave, and whether it is by scene; nil: it is constant

---Moves gravity or wall_velocity out of a rollout's definition into a series over its control steps; nil if it is
---constant. sources: functions that read the value of the world, of a function of time, or of the user's tensor.
---Errors: theirs; numbers that are not finite.
---@param world cq.World
---@param def table             of world:rollout
---@param name "gravity"|"wall_velocity"
---@param sources cq.Series.sources
---@return cq.Series?
function series.take(world, def, name, sources)
  local value, first = def[name], def.from and def.from.step or 0
  local tensor, per_scene
  if value == nil then tensor = sources.world(world, first, def.steps)
  elseif series.is_called(value) then tensor = sources.call(world, value, first, def.steps)
  else tensor, per_scene = sources.tensor(world, value, def.steps, def.batch) end
  if not tensor then return nil end
  if not tensor:finite() then is.fail("world:rollout: %s must be finite", name) end
  def[name] = nil
  per_scene = per_scene or false
  return { each = tensor, tensor = by_pieces(tensor, world.pieces, per_scene and 2 or 1), per_scene = per_scene }
end

---Is the value of a field a function of time?
---@param value any
---@return boolean
function series.is_called(value) return text.is_callable(value) and not T.is_tensor(value) end

---Sets a series in the engine. own = nil: restores the world's constant, if an earlier rollout has left a series
---there.
---@param entry table          of the pool of engine rollouts
---@param name "gravity"|"wall_velocity"
---@param own cq.Series?
function series.apply(entry, name, own)
  entry.series = entry.series or {}
  if not (own or entry.series[name]) then return end
  entry.series[name] = own ~= nil
  engine.check(of_engine[name].set(entry.handle, own and own.tensor:data() or nil, own and own.per_scene and 1 or 0),
    "world:rollout")
end

---The bit of the engine's mask of wanted gradients for a series (fields.wanted); 0: none is wanted.
---@param name "gravity"|"wall_velocity"
---@param own cq.Series?
---@return integer
function series.wanted(name, own)
  return own and own.tensor.requires_grad and 2 ^ field.by_name[name].id or 0
end

---Adds the engine's gradient of a series to the user's tensor, once the adjoint has reached step 0.
---@param handle ffi.cdata*
---@param name "gravity"|"wall_velocity"
---@param own cq.Series?
function series.push(handle, name, own)
  if not (own and own.tensor.requires_grad) then return end
  local grad = T.empty(own.tensor:shape())
  engine.check(of_engine[name].gradient(handle, grad:data(), own.per_scene and 1 or 0), "world:rollout")
  own.tensor:accumulate(grad)
end

return series
