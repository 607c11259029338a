-- fields: what a rollout sets in the engine: the values of its robots, gravity, friction and wall velocity, as the arrays of
-- cq_field. Tensors that want gradients stay on the tape up to here.
local is = require "cq.schema"
local text = require "cq.text"
local T = require "cq.tensor"
local values = require "cq.values"
local selection = require "cq.selection"
local pool = require "cq.pool"
local assembly = require "cq.assembly"
local boundary = require "cq.boundary"
local engine = require "cq.engine"
local C = engine.C

local fields = {}

-- ---- the robots of a rollout ----------------------------------------------------------------------------------------

-- for each robot of the world, the variant of it that was given, or itself
local function bodies(world, given)
  local out = {}
  for k, own in ipairs(world.robots) do out[k] = own end
  if given == nil then return out end
  if text.is_instance(given, "cq.Robot") then given = { given } end
  local taken = {}
  for _, body in ipairs(given) do
    local own = selection.robot(world, body, "world:rollout: robot")
    for k, candidate in ipairs(world.robots) do
      if candidate == own then
        if taken[k] then is.fail("world:rollout: robot %d of the world is given twice", k) end
        taken[k], out[k] = true, body
      end
    end
  end
  return out
end

-- the scene dimension of a spread value, checked against the batch
local function is_batched(tensor, rank, batch, what)
  if tensor.rank == rank then return false end
  if tensor:size(1) ~= batch then
    is.fail("world:rollout: %s is for %s, the batch has %d", what, text.count(tensor:size(1), "scene"), batch)
  end
  return true
end

-- values of all robots as one tensor; those that are not per scene are repeated when another is
local function join(parts, rank, batch, what)
  local any = false
  for _, part in ipairs(parts) do any = is_batched(part, rank, batch, what) or any end
  if #parts == 1 then return parts[1], any end
  if not any then return T.concat(parts, 1), false end
  local list = {}
  for k, part in ipairs(parts) do
    if part.rank == rank then
      local shape = part:shape()
      table.insert(shape, 1, batch)
      part = part:unsqueeze(1):expand(shape)
    end
    list[k] = part
  end
  return T.concat(list, 2), true
end

-- ---- particles ------------------------------------------------------------------------------------------------------

local function default_of(own, name)
  if name == "velocity" then return T.zeros { own.particle_count, own.dim } end
  if name == "affine" then return T.zeros { own.particle_count, own.dim, own.dim } end
  if name == "deformation" then
    return T.eye(own.dim):unsqueeze(1):expand { own.particle_count, own.dim, own.dim }
  end
  return own[name]
end

-- a field that any robot has set; nil when none did
local function gather(world, list, name, rank, batch)
  local parts, any = {}, false
  for k in ipairs(world.robots) do
    parts[k] = values.spread(list[k], name) or false
    any = any or parts[k]
  end
  if not any then return end
  for k, own in ipairs(world.robots) do parts[k] = parts[k] or default_of(own, name) end
  return join(parts, rank, batch, name)
end

-- mass = density volume, when a robot has set either
local function masses(world, list, batch)
  local given, any, parts = {}, false, {}
  for k in ipairs(world.robots) do
    given[k] = { density = values.spread(list[k], "density"), volume = values.spread(list[k], "volume") }
    any = any or next(given[k]) ~= nil
  end
  if not any then return end
  for k, own in ipairs(world.robots) do parts[k] = (given[k].density or own.density) * (given[k].volume or own.volume) end
  return join(parts, 1, batch, "density")
end

-- which element of {n, signals} each entry of the engine's list takes, from 1
local function entry_index(own)
  if own.entry_index then return own.entry_index end
  local index = {}
  for _, stress in ipairs(own.stresses) do
    for k = 0, stress.count - 1 do
      local p = stress.index and stress.index[k] or k
      index[#index + 1] = p * own.actuator_count + stress.signal + 1
    end
  end
  own.entry_index = index
  return index
end

local function weights(world, list, batch)
  local parts, any = {}, false
  for k, own in ipairs(world.robots) do
    local value = values.spread(list[k], "actuator_weights")
    local weighed = false
    for _, stress in ipairs(own.stresses) do weighed = weighed or stress.weighed end
    if weighed and not value then
      is.fail("world:rollout: an actuator of %s was made with count; give robot:with { actuator_weights = a tensor {%d, %d} }", own.name,
        own.particle_count, own.actuator_count)
    end
    local count = own.particle_count * own.actuator_count
    if value then
      any = true
      if is_batched(value, 2, batch, "actuator_weights") then
        value = value:reshape { batch, count }:gather(entry_index(own), 2)
      else
        value = value:reshape { count }:gather(entry_index(own), 1)
      end
    end
    parts[k] = value or false
  end
  if not any then return end
  for k, own in ipairs(world.robots) do parts[k] = parts[k] or T.ones { own.entry_count } end
  return join(parts, 1, batch, "actuator_weights")
end

-- ---- the world ------------------------------------------------------------------------------------------------------

local function shape_text(shape)
  local parts = {}
  for k, size in ipairs(shape) do parts[k] = tostring(size) end
  return #parts == 0 and "one number" or "{" .. table.concat(parts, ", ") .. "}"
end

-- a value of the whole world: `shape`, or a shape that stretches to it, or a batch of either
local function spread_world(value, shape, least, batch, what)
  if value == nil then return nil end
  if type(value) ~= "number" and type(value) ~= "table" then
    is.fail("world:rollout: %s must be a number, a list or a tensor, got %s", what, text.describe(value))
  end
  local tensor = T.as_tensor(value)
  local given, lead = tensor:shape(), nil
  for _, candidate in ipairs { least, shape } do
    local rest = #given - #candidate
    local fits = rest == 0 or (rest == 1 and given[1] == batch and batch > 1)
    for k, size in ipairs(candidate) do fits = fits and given[rest + k] == size end
    if fits then lead = { count = rest, rank = #candidate } end
  end
  if not lead then
    is.fail("world:rollout: %s must have the shape %s or %s, with the batch of %d before it if it differs between scenes, got %s", what,
      shape_text(least), shape_text(shape), batch, shape_text(given))
  end
  if not T.tape.pause(function() return tensor:finite() end) then is.fail("world:rollout: %s must be finite", what) end
  local target = {}
  for k, size in ipairs(shape) do target[k] = size end
  if lead.count == 1 then
    table.insert(target, 1, batch)
    for _ = lead.rank + 1, #shape do tensor = tensor:unsqueeze(2) end
  end
  return tensor:expand(target), lead.count == 1
end

local function check_friction(tensor)
  if not tensor then return end
  local least, most = T.tape.pause(function() return tensor:min():item(), tensor:max():item() end)
  if least < 0 then is.fail("world:rollout: friction must be at least 0, got %s", text.number(least)) end
  if most >= boundary.mu_large then boundary.warn_of_friction("world:rollout: a friction of " .. text.number(most)) end
end

-- ---- stability ------------------------------------------------------------------------------------------------------

-- the Courant number of what this rollout sets, as cq_world_courant reckons it without actuation
local function check_courant(world, set)
  if not (set.young or set.poisson or set.mass or set.velocity) then return end
  local base = world.layout.base
  local courant, remedy = T.tape.pause(function()
    local function of(name) return (set[name] and set[name].tensor or base[name]):detach() end
    local nu = of "poisson"
    local modulus = of "young" * (1 - nu) / ((1 + nu) * (1 - 2 * nu))
    local wave = (modulus * of "volume" / of "mass"):sqrt():max():item()
    local speed = set.velocity and set.velocity.tensor:detach():square():sum(-1):max():item() ^ 0.5 or 0
    local factor = world.control_dt / world.substeps / world.dx
    return (wave + speed) * factor, speed > wave and "a smaller velocity" or "bounds for young, poisson and density"
  end)
  if courant > world.courant_max then
    is.fail("world:rollout: the Courant number of the robot's values is %.3g, above %s; make the world with substeps = %d or more, or have %s",
      courant, text.number(world.courant_max), math.ceil(world.substeps * courant / world.courant_max), remedy)
  end
end

---All that a rollout sets.
---@param world cq.World
---@param def { robot: any, gravity: any, damping: any, friction: any, wall_velocity: any, batch: integer }
---@return table<string, { id: integer, tensor: cq.Tensor, per_scene: boolean }>
function fields.collect(world, def)
  local set, list, batch = {}, bodies(world, def.robot), def.batch
  local function put(name, id, tensor, per_scene)
    if tensor then set[name] = { id = id, tensor = tensor, per_scene = per_scene or false } end
  end
  put("position", C.CQ_FIELD_POSITION, gather(world, list, "position", 2, batch))
  if set.position then assembly.check_positions("world:rollout", world, set.position.tensor) end
  put("velocity", C.CQ_FIELD_VELOCITY, gather(world, list, "velocity", 2, batch))
  put("affine", C.CQ_FIELD_AFFINE, gather(world, list, "affine", 3, batch))
  put("deformation", C.CQ_FIELD_DEFORMATION, gather(world, list, "deformation", 3, batch))
  put("volume", C.CQ_FIELD_VOLUME, gather(world, list, "volume", 1, batch))
  put("young", C.CQ_FIELD_YOUNG, gather(world, list, "young", 1, batch))
  put("poisson", C.CQ_FIELD_POISSON, gather(world, list, "poisson", 1, batch))
  put("mass", C.CQ_FIELD_MASS, masses(world, list, batch))
  put("weight", C.CQ_FIELD_ACTUATION_WEIGHT, weights(world, list, batch))
  put("gravity", C.CQ_FIELD_GRAVITY, spread_world(def.gravity, { world.dim }, { world.dim }, batch, "gravity"))
  put("damping", C.CQ_FIELD_DAMPING, spread_world(def.damping, {}, {}, batch, "damping"))
  local walls = #world.walls
  if walls == 0 and (def.friction or def.wall_velocity) then
    is.fail("world:rollout: %s is given, but the world has no walls", def.friction and "friction" or "wall_velocity")
  end
  put("friction", C.CQ_FIELD_FRICTION, spread_world(def.friction, { walls }, {}, batch, "friction"))
  check_friction(set.friction and set.friction.tensor)
  put("wall_velocity", C.CQ_FIELD_WALL_VELOCITY, spread_world(def.wall_velocity, { walls, world.dim }, { world.dim }, batch, "wall_velocity"))
  check_courant(world, set)
  return set
end

-- the world's own values, for a field that an earlier rollout has changed
local function original(world, id)
  local base, count = world.layout.base, tonumber(C.cq_field_count(world.handle, id))
  local by_id = {
    [C.CQ_FIELD_POSITION] = base.position, [C.CQ_FIELD_VOLUME] = base.volume, [C.CQ_FIELD_MASS] = base.mass,
    [C.CQ_FIELD_YOUNG] = base.young, [C.CQ_FIELD_POISSON] = base.poisson, [C.CQ_FIELD_ACTUATION_WEIGHT] = base.actuation_weight,
    [C.CQ_FIELD_GRAVITY] = base.gravity, [C.CQ_FIELD_DAMPING] = base.damping,
    [C.CQ_FIELD_FRICTION] = base.friction, [C.CQ_FIELD_WALL_VELOCITY] = base.wall_velocity,
  }
  if by_id[id] then return by_id[id] end
  if id == C.CQ_FIELD_DEFORMATION then
    return T.eye(world.dim):unsqueeze(1):expand { world.particle_count, world.dim, world.dim }
  end
  return T.zeros { count }
end

---Gives the fields to the engine, and puts back those that only an earlier rollout has set.
---@param world cq.World
---@param entry table          of the pool
---@param set table            from collect
function fields.apply(world, entry, set)
  local now = {}
  for _, field in pairs(set) do
    now[field.id] = true
    pool.set(entry, field.id, field.tensor, field.per_scene)
  end
  for id in pairs(entry.set) do
    if not now[id] then
      T.tape.pause(function() pool.set(entry, id, original(world, id), false) end)
      entry.set[id] = nil
    end
  end
end

---Bits of the fields whose gradients push_gradients will ask for.
function fields.wanted(set)
  local mask = 0
  for _, field in pairs(set) do
    if field.tensor.requires_grad then mask = mask + 2 ^ field.id end
  end
  return mask
end

---Pushes the engine's gradients on to the tensors that were set. After the adjoint has reached step 0.
function fields.push_gradients(handle, set)
  -- in one order, so that sums into shared tensors are the same every time
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local field = set[name]
    if field.tensor.requires_grad then
      local grad = T.empty(field.tensor:shape())
      engine.check(C.cq_rollout_gradient(handle, field.id, grad:data(), field.per_scene and 1 or 0), "world:rollout")
      field.tensor:accumulate(grad)
    end
  end
end

return fields
