-- world: grid, steps and walls of a world as data, and as cq.World takes them. Functions of time are sampled at the
-- control steps of the run.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local boundary = require "cq.boundary"
local effects = require "cq.world.effects"
local field = require "cq.base.field"
local gravity = require "cq.rollout.gravity"
local implicit = require "cq.implicit"
local plain = require "cq.saved.plain"
local wall_motion = require "cq.rollout.wall_motion"
local tables = require "cq.base.tables"

local world = {}

-- what belongs to the machine that a world was made on
local of_machine = { device = true, threads = true }

-- ---- to data --------------------------------------------------------------------------------------------------------

-- A function f of time as a table { samples {steps, dim}, dt }: its values at the start of each control step of the
-- world `given`, and the control step.
local function sampled(f, given, steps)
  local rows = {}
  for i = 1, math.max(steps, 1) do rows[i] = f((i - 1) * given.control_dt) end
  return { samples = T.stack(rows, 1):detach(), dt = given.control_dt }
end

-- A wall as a table { family, given } that can be saved; a velocity that depends on time is sampled at control steps.
-- k: its number in the world `given`.
local function of_wall(wall, k, given, steps)
  local out = { family = wall.family, given = plain.copy(wall.given) }
  if wall.velocity_at or wall.motion then
    out.given.velocity = sampled(function(time) return wall_motion.velocity(wall, k, time, given) end, given, steps)
  end
  return out
end

-- A tensor as a number or nested lists of numbers; any other value unchanged.
local function numbers(value)
  if not T.is_tensor(value) then return value end
  return value.rank == 0 and value:item() or value:totable()
end

-- Puts values that rollouts of the run had in place of the world's, by name (gravity, friction, wall_velocity, ...),
-- into the world's data `out`, in place.
local function take_changes(out, changes)
  local friction, velocity = numbers(changes.friction), numbers(changes.wall_velocity)
  for k, wall in ipairs(out.walls) do
    local mu = type(friction) == "table" and friction[k] or friction
    if mu and (wall.given.kind == "friction" or wall.given.mu) then wall.given.mu = mu end
    if type(velocity) == "table" then
      wall.given.velocity = type(velocity[1]) == "table" and velocity[k] or velocity
    end
  end
  for _, entry in ipairs(field.of_world) do
    local value = changes[entry.name]
    if entry.owner == "world" and value ~= nil then out.fields[entry.name] = numbers(value) end
  end
end

---A world as a table { fields, walls, gravity, integrator } that can be saved, without its robots.
---@param given cq.World
---@param steps integer        control steps that functions of time are sampled for
---@param changes? table<string, any>   gravity, damping, friction and wall_velocity in the place of the world's
---@return table
function world.data(given, steps, changes)
  local out = { fields = {}, walls = {} }
  for name, value in pairs(given.def) do
    if type(name) == "string" and name ~= "walls" and not of_machine[name] then out.fields[name] = plain.copy(value) end
  end
  out.fields.substeps, out.fields.precision = given.substeps, given.precision
  if given.gravity_at then
    -- Gravity {dim} at a time.
    local function at(time) return gravity.at(given.gravity_at, time, given.dim, "gravity") end
    out.gravity = sampled(at, given, steps)
  end
  for k, wall in ipairs(given.walls) do out.walls[k] = of_wall(wall, k, given, steps) end
  out.integrator = given.def.integrator and plain.fields(given.def.integrator) or nil
  take_changes(out, changes or {})
  return out
end

-- ---- from data ------------------------------------------------------------------------------------------------------

-- The inverse of `sampled`: a function of time that returns the sample {dim} of the control step at that time. what:
-- for its error at any other time.
local function of_samples(data, what)
  local samples, dt = data.samples, data.dt
  return function(time)
    local k = math.floor(time / dt + 0.5) + 1
    if k > samples:size(1) or math.abs(time / dt - (k - 1)) > 1e-6 then
      is.fail("%s was kept as it was at %s, %s apart; there is none for the time %s", what,
        text.count(samples:size(1), "control step"), text.number(dt), text.number(time))
    end
    return samples[k]
  end
end

-- The inverse of of_wall: a cq.Boundary. Errors: a kind of wall that this program lacks.
local function to_wall(data)
  local fields = tables.merged(data.given)
  if type(fields.velocity) == "table" and fields.velocity.samples then
    fields.velocity = of_samples(fields.velocity, "the velocity of a wall")
  end
  if not rawget(boundary, data.family) then is.fail("this program has no walls cq.Boundary.%s", data.family) end
  return boundary[data.family](fields)
end

---The fields of cq.World, without robots, from the data of a saved world. Options that had no effect in a world of an
---earlier program, where they were no errors, are left out.
---@param data table           from world.data
---@param robots cq.Robot[]    of that world
---@return table
function world.fields(data, robots)
  local out, integrator = plain.copy(data.fields), data.integrator and tables.merged(data.integrator)
  if not effects.have_liquid(robots) then out.pressure_smoothing = nil end
  if data.gravity then out.gravity = of_samples(data.gravity, "gravity") end
  out.walls = {}
  for k, wall in ipairs(data.walls) do out.walls[k] = to_wall(wall) end
  if integrator and not effects.have_friction(out.walls) then integrator.stick_velocity = nil end
  out.integrator = integrator and implicit(integrator)
  return out
end

return world
