-- series: a value for each control step of a rollout, such as wall velocities and gravity: to the engine, and its
-- gradient back.
local engine = require "cq.base.engine"
local field = require "cq.base.field"
local T = require "cq.tensor"

local series = {}

---@class cq.Series
---@field tensor cq.Tensor      as the engine takes it, by its own steps
---@field per_scene boolean     has each scene its own?

-- Repeats each row of a control step for the engine's steps in it.
local function by_pieces(tensor, pieces, axis)
  if pieces == 1 then return tensor end
  local shape, rows = tensor:shape(), tensor:shape()
  table.insert(shape, axis + 1, pieces)
  rows[axis] = rows[axis] * pieces
  return tensor:unsqueeze(axis + 1):expand(shape):reshape(rows)
end

---Values by control steps as the engine takes them: repeated for the pieces that each control step is cut into.
---@param world cq.World
---@param tensor cq.Tensor      by control steps, of each scene where per_scene
---@param per_scene boolean?
---@return cq.Series
function series.new(world, tensor, per_scene)
  return { tensor = by_pieces(tensor, world.pieces, per_scene and 2 or 1), per_scene = per_scene or false }
end

---Sets the series in the engine, or removes that of an earlier rollout.
---@param entry table          of the pool
---@param key string           that the entry remembers it by
---@param own cq.Series?
---@param set function         of the engine
function series.apply(entry, key, own, set)
  if not (own or entry[key]) then return end
  entry[key] = own ~= nil
  engine.check(set(entry.handle, own and own.tensor:data() or nil, own and own.per_scene and 1 or 0), "world:rollout")
end

---The bit of the gradient that push will ask for.
---@param own cq.Series?
---@param name string          of the field
---@return integer
function series.wanted(own, name)
  return own and own.tensor.requires_grad and 2 ^ field.by_name[name].id or 0
end

---Backward pass: adds the engine's gradient to the gradient of the user's tensor, once the adjoint has reached step
---0.
---@param handle ffi.cdata*
---@param own cq.Series?
---@param gradient function    of the engine
function series.push(handle, own, gradient)
  if not (own and own.tensor.requires_grad) then return end
  local grad = T.empty(own.tensor:shape())
  engine.check(gradient(handle, grad:data(), own.per_scene and 1 or 0), "world:rollout")
  own.tensor:accumulate(grad)
end

return series
