-- fields: the values that a rollout sets in the engine, from the engine's list of fields: of robots, world and walls,
-- as arrays for cq_field. Tensors with gradients stay on the tape up to here.
local is = require "cq.base.schema"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"
local field = require "cq.base.field"
local values = require "cq.robot.values"
local selection = require "cq.robot.selection"
local pool = require "cq.world.pool"
local assembly = require "cq.world.assembly"
local boundary = require "cq.boundary"
local engine = require "cq.base.engine"
local shape_text = require("cq.tensor.class").shape_text
local C = engine.C

local fields = {}

-- ---- the robots of a rollout ----------------------------------------------------------------------------------------

-- The pins of a robot, a set of them.
local function set_of_pins(robot)
  local out = {}
  for _, pin in ipairs(robot.pins) do out[pin] = true end
  return out
end

-- Raises an error if a variant of the world's robot `own`, the k-th, has other pins than this, or was moved by
-- robot:at, neither of which has an effect in a rollout; or if a field was assigned to it.
local function require_its_place(own, variant, k)
  variant:require_unchanged()
  local here, there = set_of_pins(own), set_of_pins(variant)
  for pin in pairs(tables.merged(here, there)) do
    if own:has_particles_of(variant) and not (here[pin] and there[pin]) then
      is.fail("world:rollout: robot %d of the world is given with other pins than those with which the world was "
        .. "made", k)
    end
  end
  local off, zero = 0, true
  for d = 1, own.dim do
    off = math.max(off, math.abs(variant.offset[d] - own.offset[d]) / math.max(own.size[d], 1e-300))
    zero = zero and variant.offset[d] == 0
  end
  if off > 1e-9 and not zero then
    is.fail("world:rollout: robot %d of the world stands at {%s}, and is given at {%s}; a rollout moves it by robot:with { position = ... }",
      k, table.concat(own.offset, ", "), table.concat(variant.offset, ", "))
  end
end

---For each robot of the world, the given variant of it, or the robot itself. Errors: a variant of a robot that is not
---in the world, or two of one; a variant with other pins, or at another place.
---@param world cq.World
---@param given? cq.Robot|cq.Robot[]
---@return cq.Robot[]
function fields.bodies(world, given)
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
        require_its_place(own, body, k)
        taken[k], out[k] = true, own:has_particles_of(body) and body or body:subset(own:numbers_in(body))
      end
    end
  end
  return out
end

-- The first scene's variant of robot k, if all scenes share one value of the field `name`; nil: they differ, or none
-- has a value. variants: for each scene its list of robots.
local function shared_value(variants, k, name)
  local first = variants[1][k].values and variants[1][k].values[name]
  for scene = 2, #variants do
    local values_there = variants[scene][k].values
    if (values_there and values_there[name]) ~= first then return nil end
  end
  return first and variants[1][k]
end

-- Robot `own` with the values of its variants (the k-th robot of each scene): a value that all share once, others
-- stacked with the scene as first dimension. Returns own if no variant has values. what: the caller, for errors.
local function stacked(own, variants, k, what)
  local out = {}
  for _, entry in ipairs(field.of_robot) do
    local one, rows, any = shared_value(variants, k, entry.name), {}, false
    for scene = 1, one and 0 or #variants do
      rows[scene] = values.spread(variants[scene][k], entry.name, own) or false
      any = any or rows[scene]
    end
    for scene = 1, any and #variants or 0 do
      rows[scene] = rows[scene] or entry.owner ~= "entry" and values.base(own, entry.name)
        or is.fail("%s gave scene %d no actuation_weight, which others have", what, scene)
    end
    if one then out[entry.name] = values.spread(one, entry.name, own)
    elseif any then out[entry.name] = T.stack(rows, 1) end
  end
  return next(out) and own:with(out) or own
end

---The list of robots for a batch whose scenes have different variants: each robot once, with values by scene where its
---variants differ.
---@param world cq.World
---@param variants cq.Robot[][]     for each scene its robots, from fields.bodies
---@param what string               for errors
---@return cq.Robot[]
function fields.stack(world, variants, what)
  local out = {}
  for k, own in ipairs(world.robots) do
    local same = true
    for scene = 2, #variants do same = same and variants[scene][k] == variants[1][k] end
    out[k] = same and variants[1][k] or stacked(own, variants, k, what)
  end
  return out
end

-- The robots of an earlier rollout, with other values where these differ by scene: pick(value {scenes, ...}, name of
-- the field) gives them.
local function with_scenes(world, given, pick)
  local out = fields.bodies(world, given)
  for k, own in ipairs(world.robots) do
    local chosen = {}
    for _, entry in ipairs(field.of_robot) do
      local value = values.spread(out[k], entry.name, own)
      local rank = entry.owner == "entry" and 2 or 1 + entry.rank
      if value and value.rank > rank then chosen[entry.name] = pick(value, entry.name) end
    end
    if next(chosen) then out[k] = out[k]:with(chosen) end
  end
  return out
end

---The robots of a rollout of which all scenes continue one scene of an earlier one: with the values of that scene.
---@param world cq.World
---@param given cq.Robot|cq.Robot[]|nil   of the earlier rollout
---@param scene integer                   from 1
---@return cq.Robot[]
function fields.of_scene(world, given, scene)
  return with_scenes(world, given, function(value) return value[scene] end)
end

---The robots of a rollout whose scenes continue chosen scenes of an earlier one: each scene gets the values of the
---scene that it continues.
---Errors: a scene that begins anew (0) where values differ by scene.
---@param world cq.World
---@param given cq.Robot|cq.Robot[]|nil   of the earlier rollout
---@param scenes integer[]                for each new scene the earlier scene, from 1
---@return cq.Robot[]
function fields.of_scenes(world, given, scenes)
  return with_scenes(world, given, function(value, name)
    for scene, before in ipairs(scenes) do
      if before == 0 then
        is.fail("world:rollout: scenes[%d] is 0, and %s differs between scenes of the state in from; "
          .. "give the robot with values for each scene", scene, name)
      end
    end
    return value:gather(scenes, 1)
  end)
end

-- Has a value the scene as its first dimension, beside `rank` others? Errors: its size is not the batch.
local function is_batched(tensor, rank, batch, what)
  if tensor.rank == rank then return false end
  if tensor:size(1) ~= batch then
    is.fail("world:rollout: %s is for %s, the batch has %d", what, text.count(tensor:size(1), "scene"), batch)
  end
  return true
end

-- The values of all robots, a list of tensors, concatenated to one tensor {n, ...} or {batch, n, ...}; a value without
-- scenes is repeated if another one has scenes. rank: without scenes. Also returns whether it has scenes.
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

-- The values of a field of all particles, {n, ...} or {batch, n, ...}, if any robot of the list has set it; nil: none
-- has. Also returns whether its first dimension is the scene.
local function gather(world, list, entry, batch)
  local parts, any = {}, false
  for k in ipairs(world.robots) do
    parts[k] = values.spread(list[k], entry.name, world.robots[k]) or false
    any = any or parts[k]
  end
  if not any then return end
  for k, own in ipairs(world.robots) do parts[k] = parts[k] or values.base(own, entry.name) end
  return join(parts, 1 + entry.rank, batch, entry.name)
end

-- The masses {n} or {batch, n} that follow from density and volume, if a robot has set either; nil: none has. Also
-- returns whether the first dimension is the scene.
local function masses(world, list, _, batch)
  local given, any, parts = {}, false, {}
  for k in ipairs(world.robots) do
    given[k] = { density = values.spread(list[k], "density"), volume = values.spread(list[k], "volume") }
    any = any or next(given[k]) ~= nil
  end
  if not any then return end
  for k, own in ipairs(world.robots) do
    parts[k] = (given[k].density or own.base.density) * (given[k].volume or own.base.volume)
  end
  return join(parts, 1, batch, "density")
end

-- For each actuation entry (a particle of an actuator) of a robot, in the engine's order, its position, from 1, in the
-- robot's flattened weight tensor {n, signals}. The list is made once.
local function entry_index(own)
  if own.entry_index then return own.entry_index end
  local index = {}
  for _, stress in ipairs(own.stresses) do
    for k = 0, stress.count - 1 do
      local p = stress.index and stress.index[k] or k
      index[#index + 1] = p * own.weight_columns + stress.column
    end
  end
  own.entry_index = index
  return index
end

-- Actuation weights of all robots' particles in the engine's order, {entries} or {batch, entries}; nil: none was given.
-- Also returns whether the first dimension is the scene. Errors: a robot whose actuators need weights has none.
local function weights(world, list, _, batch)
  local parts, any = {}, false
  for k, own in ipairs(world.robots) do
    local value = values.spread(list[k], "actuation_weight")
    local weighed = false
    for _, stress in ipairs(own.stresses) do weighed = weighed or stress.weighed end
    if weighed and not value then
      is.fail("world:rollout: an actuator of %s was made with count; give robot:with { actuation_weight = a tensor {%d, %d} }", own.name,
        own.particle_count, own.weight_columns)
    end
    local count = own.particle_count * own.weight_columns
    if value then
      any = true
      if is_batched(value, 2, batch, "actuation_weight") then
        value = value:reshape { batch, count }:gather(entry_index(own), 2)
      else
        value = value:reshape { count }:gather(entry_index(own), 1)
      end
    end
    parts[k] = value or false
  end
  if not any then return end
  for k, own in ipairs(world.robots) do parts[k] = parts[k] or T.ones { own.entry_count } end
  return join(parts, 1, batch, "actuation_weight")
end

-- ---- the world ------------------------------------------------------------------------------------------------------

-- A value of the world in its full shape, from a value of that shape or of the shape `least` (one for all walls), each
-- also with the batch before it; and whether it has the batch. batch: nil without one. Errors: another shape; one that
-- may be of walls or of scenes.
local function spread_world(value, shape, least, batch, what)
  if type(value) ~= "number" and type(value) ~= "table" then
    is.fail("world:rollout: %s must be a number, a list or a tensor, got %s", what, text.describe(value))
  end
  local tensor = T.as_tensor(value, "world:rollout: " .. what)
  local given, lead = tensor:shape(), nil
  for _, candidate in ipairs(#shape == #least and { shape } or { least, shape }) do
    local rest = #given - #candidate
    local fits = rest == 0 or (rest == 1 and given[1] == batch)
    for k, size in ipairs(candidate) do fits = fits and given[rest + k] == size end
    if fits and lead and given[1] > 1 then
      is.fail("world:rollout: %s %s may be of %d walls or of %d scenes; give %s, of scenes and walls", what,
        shape_text(given), batch, batch, shape_text { batch, unpack(shape) })
    end
    if fits then lead = { count = rest, rank = #candidate } end
  end
  if not lead then
    local allowed = #least == 0 and { "one number" } or { shape_text(least) }
    if #shape ~= #least then allowed[2] = shape_text(shape) end
    is.fail("world:rollout: %s must have the shape %s%s, got %s", what, table.concat(allowed, " or "),
      batch and (", with the batch of %d before it if it differs between scenes"):format(batch) or "",
      #given == 0 and "one number" or shape_text(given))
  end
  local target = {}
  for k, size in ipairs(shape) do target[k] = size end
  if lead.count == 1 then
    table.insert(target, 1, batch)
    for _ = lead.rank + 1, #shape do tensor = tensor:unsqueeze(2) end
  end
  return tensor:expand(target), lead.count == 1
end

-- Raises an error if numbers are not finite or outside of the bounds of their field; warns of a large friction.
local function check_range(tensor, entry)
  T.tape.pause(function()
    if not tensor:finite() then is.fail("world:rollout: %s must be finite", entry.name) end
    local most = tensor:max():item()
    local problem = field.outside(entry, tensor:min():item(), most)
    if problem then is.fail("world:rollout: %s must %s", entry.name, problem) end
    if entry.name == "friction" and most >= boundary.mu_large then
      boundary.warn_of_friction("world:rollout: a friction of " .. text.number(most))
    end
  end)
end

-- Raises an error if no wall of the world has friction.
local function require_friction(world)
  local kinds = {}
  for k, wall in ipairs(world.walls) do
    if wall.kind == "friction" then return end
    kinds[k] = wall.kind
  end
  is.fail("world:rollout: friction is given, but no wall is of kind \"friction\": they are %s",
    table.concat(kinds, ", "))
end

-- The value of a field of the world or its walls in a rollout's definition, {dim} or {walls, dim}; nil: it is not
-- given. Also returns whether it has the scene as first dimension.
local function of_world(world, def, entry)
  local value, walls = def[entry.name], #world.walls
  if value == nil then return end
  local least = field.width(entry, world.dim)
  local shape = field.width(entry, world.dim)
  if entry.owner == "wall" then
    if walls == 0 then is.fail("world:rollout: %s is given, but the world has no walls", entry.name) end
    if entry.name == "friction" then require_friction(world) end
    table.insert(shape, 1, walls)
  end
  local tensor, per_scene = spread_world(value, shape, least, def.batch, entry.name)
  check_range(tensor, entry)
  return tensor, per_scene
end

-- The determinant of the matrix {dim, dim} at f.
local function determinant(f, dim)
  if dim == 2 then return f[0] * f[3] - f[1] * f[2] end
  return f[0] * (f[4] * f[8] - f[5] * f[7]) - f[1] * (f[3] * f[8] - f[5] * f[6]) + f[2] * (f[3] * f[7] - f[4] * f[6])
end

-- Raises an error if a deformation {n, dim, dim} or {batch, n, dim, dim} turns a particle inside out.
local function check_deformation(world, deformation)
  local f, dim, n = deformation:data(), world.dim, world.particle_count
  for k = 0, deformation.count / (dim * dim) - 1 do
    local det = determinant(f + k * dim * dim, dim)
    if not (det > 0) then
      is.fail("world:rollout: deformation of particle %d turns it inside out: its determinant is %s; it must be above 0",
        k % n + 1, text.number(det))
    end
  end
end

---All field values that a rollout sets, by name, without fields that nobody gives: fields of the world and its walls
---come from def, all others from the robots. Errors: values of a wrong shape or batch, not finite or out of bounds;
---fields of walls in a world without such walls; an actuator that needs weights and has none; a start outside the
---world or in a wall; without control steps, one that is inside out.
---@param world cq.World
---@param def { batch: integer?, steps: integer? }    and the fields of the world by their names
---@param list cq.Robot[]            from bodies
---@return table<string, { entry: cq.FieldInfo, tensor: cq.Tensor, per_scene: boolean }>
function fields.collect(world, def, list)
  local set = {}
  for _, entry in ipairs(field.list) do
    local tensor, per_scene
    if entry.owner == "world" or entry.owner == "wall" then
      tensor, per_scene = of_world(world, def, entry)
    else
      local find = entry.owner == "entry" and weights or entry.name == "mass" and masses or gather
      tensor, per_scene = find(world, list, entry, def.batch or 1)
    end
    if tensor then set[entry.name] = { entry = entry, tensor = tensor, per_scene = per_scene or false } end
  end
  -- a step says it of its particle, which may be void that a design leaves out
  if set.deformation and def.steps == 0 then T.tape.pause(check_deformation, world, set.deformation.tensor) end
  -- the world has looked at the places that its robots have
  local position = set.position and set.position.tensor or world.layout.moved and world.layout.base.position
  if position then assembly.check_positions("world:rollout", world, position) end
  return set
end

-- The world's own values {n, ...} of a field of particles.
local function original(world, entry)
  return world.layout.base[entry.name] or field.fill(entry, world.particle_count, world.dim)
end

-- The values of a field {batch, n, ...} in a rollout that continues another one: before, for scenes that continue; own,
-- for scenes that begin anew; each { tensor, per_scene }, or nil for the world's own values. scenes: as in def.scenes.
local function rows_by_scene(world, entry, before, own, scenes)
  local rows = {}
  for scene, of in ipairs(scenes) do
    local one, at = of > 0 and before or of == 0 and own or nil, of > 0 and of or scene
    rows[scene] = one and (one.per_scene and one.tensor[at] or one.tensor) or original(world, entry)
  end
  return T.stack(rows, 1)
end

---Makes a rollout that continues another one take over its undeformed places and deformations, whatever its own robots
---say: bodies of total Lagrangian steps keep their undeformed shape.
---@param world cq.World
---@param set table                from collect; changed
---@param before table             from collect, of the rollout that is continued
---@param scenes integer[]?        of the definition
---@param number integer?          of the one scene that is continued
function fields.keep_shapes(world, set, before, scenes, number)
  if world.layout.formulation == "updated" then return end
  for _, name in ipairs { "position", "deformation" } do
    local first, own = before[name], set[name]
    if number and first and first.per_scene then
      set[name] = { entry = first.entry, tensor = first.tensor[number], per_scene = false }
    elseif not scenes then
      set[name] = first
    elseif first or own then
      local entry = (first or own).entry
      set[name] = { entry = entry, tensor = rows_by_scene(world, entry, first, own, scenes), per_scene = true }
    end
  end
end

-- ---- stability ------------------------------------------------------------------------------------------------------

-- Advice for the error of a too large Courant number, a text: which of the fields set in this rollout to bound.
-- courant: that number.
local function remedy(world, set, courant)
  local speed = set.velocity and T.tape.pause(function()
    return math.sqrt(set.velocity.tensor:square():sum(-1):max():item())
  end) or 0
  local names, share = {}, speed * world.control_dt / world.substeps / world.dx
  for _, entry in ipairs(field.list) do
    local matters = entry.owner == "constant" or entry.owner == "entry" or entry.owner == "cable"
      or entry.name == "mass"
    if matters and set[entry.name] then names[#names + 1] = entry.name == "mass" and "density" or entry.name end
  end
  if #names == 0 or courant < 2 * share then return "a smaller velocity" end
  return "bounds for " .. text.join(names)
end

-- Raises an error if the values of a rollout make it unstable from its first step: by the engine's Courant number,
-- against the largest that the world allows. Implicit steps are never refused.
local function check_courant(world, handle, set)
  if world.def.integrator then return end
  local matters = set.velocity ~= nil
  for _, one in pairs(set) do
    local owner = one.entry.owner
    matters = matters or owner == "particle" or owner == "constant" or owner == "entry" or owner == "cable"
  end
  local courant = matters and C.cq_rollout_courant(handle) or 0
  if courant <= world.courant_max then return end
  local wanted = math.ceil(world.substeps * courant / world.courant_max)
  is.fail("world:rollout: the Courant number of the robot's values is %.3g, above %s; %s, or have %s", courant,
    text.number(world.courant_max),
    wanted <= world.substeps_max and ("make the world with substeps = %d or more"):format(wanted)
      or ("that asks for more than %d substeps: make the world with a smaller dt"):format(world.substeps_max),
    remedy(world, set, courant))
end

---Sets the fields of a rollout in the engine, restores the world's own values of others that an earlier rollout has
---set, and checks that the steps are short enough.
---@param world cq.World
---@param entry table          of the pool of engine rollouts
---@param set table            from collect
function fields.apply(world, entry, set)
  local now = {}
  for _, one in pairs(set) do
    now[one.entry.id] = true
    pool.set(entry, one.entry.id, one.tensor, one.per_scene)
  end
  for id in pairs(entry.set) do
    if not now[id] then
      T.tape.pause(function() pool.set(entry, id, original(world, field.by_id[id]), false) end)
      entry.set[id] = nil
    end
  end
  check_courant(world, entry.handle, set)
end

---The fields whose gradients push_gradients will need, as a bit mask for the engine: 2^id for each.
function fields.wanted(set)
  local mask = 0
  for _, one in pairs(set) do
    if one.tensor.requires_grad then mask = mask + 2 ^ one.entry.id end
  end
  return mask
end

---Adds the engine's gradients to the tensors that were set, after the adjoint has reached step 0.
function fields.push_gradients(handle, set)
  -- in one order, so that sums into shared tensors are the same every time
  for _, entry in ipairs(field.list) do
    local one = set[entry.name]
    if one and one.tensor.requires_grad then
      local grad = T.empty(one.tensor:shape())
      engine.check(C.cq_rollout_gradient(handle, entry.id, grad:data(), one.per_scene and 1 or 0), "world:rollout")
      one.tensor:accumulate(grad)
    end
  end
end

return fields
