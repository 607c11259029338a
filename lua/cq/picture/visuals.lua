-- visuals: the numbers and places of a state that run:render draws: colours, arrows, cables.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local field = require "cq.base.field"
local readout = require "cq.state.readout"
local of_particles = require "cq.state.values"
local cables = require "cq.actuator.cable"

---@class cq.Visuals
---@field name string     what the user called, for errors
local visuals = { name = "run:render" }

-- ---- numbers of particles -------------------------------------------------------------------------------------------

local names, constants = { "signal", "density" }, {}
for _, info in ipairs(readout.quantities) do
  if readout.is_number(info) then names[#names + 1] = info.name end
end
for _, entry in ipairs(field.list) do
  if entry.owner == "constant" then names[#names + 1], constants[entry.name] = entry.name, entry end
end
constants.density = field.by_name.density

---What red is in pictures of the signals of a state: the sign by which the weighted signals of each robot are shown, so
---that a positive signal is red (-1 where no weight of the robot is above 0, as in a design, and else 1), and whether
---red contracts or expands; nil where it does either, or nothing is actuated.
---@param state cq.State
---@return integer[] signs, "contracts"|"expands"|nil red
function visuals.red(state)
  local world, signs, does = state.world, {}, {}
  local layout, dim = world.layout, world.dim
  local arrays, weight = layout.arrays, of_particles.of(state, "actuation_weight"):data()
  for k, robot in ipairs(world.robots) do
    local first, last = robot.entry_first, robot.entry_first + robot.entry_count - 1
    signs[k] = -1
    for e = first, last do
      if weight[e] > 0 then signs[k] = 1 end
    end
    for e = first, last do
      local a = arrays.actuator[e]
      local pull = weight[e] ~= 0 and signs[k] * layout.stress.stresses[a + 1].scale or 0
      for d = 0, dim - 1 do
        local along = pull * arrays.direction[a * dim * dim + d * (dim + 1)]
        if along ~= 0 then does[along > 0 and "contracts" or "expands"] = true end
      end
    end
  end
  for _, entry in ipairs(layout.surface.list) do
    does.expands = true
    does.contracts = does.contracts or not entry.surface.chamber       -- an open surface gives way, inwards or outwards
  end
  local red = does.contracts and "contracts" or does.expands and "expands" or nil
  return signs, not (does.contracts and does.expands) and red or nil
end

---Do any particles of a world follow a signal, by their stress or as the walls of a pressure? Cables and forces of the
---user's have no particles of their own.
---@param world cq.World
---@return boolean
function visuals.has_followers(world)
  return world.layout.stress.entry_count > 0 or #world.layout.surface.list > 0
end

-- The signal that each particle's actuators have, weighed, with the sign of visuals.red, a tensor {n} of -1 to 1; the
-- particles at the walls of a pressure have its signal, the strongest where there are several. nil: no particle follows
-- a signal. u: signals of the control step, nil for none.
function visuals.actuation(state, u)
  local world = state.world
  local layout = world.layout
  local stresses, arrays = layout.stress.stresses, layout.arrays
  if not visuals.has_followers(world) or not u then return nil end
  local out, signs = T.zeros { world.particle_count }, visuals.red(state)
  local data, signal, weight = out:data(), u:data(), of_particles.of(state, "actuation_weight"):data()
  for k, robot in ipairs(world.robots) do
    for e = robot.entry_first, robot.entry_first + robot.entry_count - 1 do
      local p, stress = arrays.particle[e], stresses[arrays.actuator[e] + 1]
      data[p] = data[p] + signs[k] * weight[e] * signal[stress.signal]
    end
  end
  for _, entry in ipairs(layout.surface.list) do
    local own = signal[stresses[entry.actuator + 1].signal]
    for _, k in ipairs(entry.surface.index) do
      local p = entry.robot.first + k
      if math.abs(own) > math.abs(data[p]) then data[p] = own end
    end
  end
  for p = 0, world.particle_count - 1 do data[p] = math.max(-1, math.min(1, data[p])) end
  return out
end

-- A constant of the materials by particle {n}; NaN for bodies without it. Errors: no material has it.
local function constant(state, name)
  local value = of_particles.constant(state, name)
  if not value then is.fail(visuals.name .. ": no material of this world has the constant %s", name) end
  return value
end

-- A function of a state and the signals of its control step that gives the quantity that the user named with `by`, or
-- always `by` if that is a tensor, or `by` itself if it is such a function. Errors: no such quantity; what: its use,
-- for errors.
local function reader(by, what)
  if text.is_callable(by) and not T.is_tensor(by) then return by end
  if T.is_tensor(by) then return function() return by end end
  if by == "signal" then
    return function(state, u) return visuals.actuation(state, u) or T.zeros { state.world.particle_count } end
  elseif constants[by] then
    return function(state) return constant(state, by) end
  elseif readout.quantity(by) then
    return function(state) return state:gather(nil, by) end
  end
  is.fail(visuals.name .. ": %s must be one of \"%s\", a function of the state or a tensor, got %s", what, table.concat(names, '", "'),
    text.describe(by))
end

-- A number for each particle, a tensor {n}, from read(state, u); in the world of a design without void (world.part_of)
-- read may also give one for each particle of the whole design. Errors: a wrong shape.
local function numbers(read, state, u, what)
  local values = T.as_tensor(read(state, u))
  local n, part = state.world.particle_count, state.world.part_of
  if part and values.rank == 1 and values:size(1) == part.count then values = values:gather(part.kept, 1) end
  if values.rank ~= 1 or values:size(1) ~= n then
    is.fail(visuals.name .. ": %s must give a number for each of the %d particles, got a tensor {%s}", what, n,
      table.concat(values:shape(), ", "))
  end
  return values
end

local titles = { von_mises = "von Mises stress", young = "Young's modulus", poisson = "Poisson's ratio", jacobian = "J",
  signal = "signal" }

-- The options as a table { by = ... }. given: such a table, if has_by is set, or the value of by alone.
local function with_by(given, has_by)
  if type(given) == "table" and not T.is_tensor(given) and has_by then return given end
  return { by = given }
end

local STRAIN = 1e-5        -- what a smaller one does is rounding

---The least range of a colour scale: the change of the quantity by a strain of STRAIN in the stiffest material; nil
---where that does not apply.
---@param given any           as visuals.colour takes it
---@param world cq.World
---@return number?
function visuals.floor(given, world)
  local by = type(given) == "table" and not T.is_tensor(given) and given.by or given
  if by == "jacobian" then return STRAIN end
  local base = world.layout.base
  local sound = world.courant * world.dx / (world.control_dt / world.substeps)
  local stiffness = (base.mass / base.volume):max():item() * sound ^ 2
  local floors = { von_mises = STRAIN * stiffness, energy_density = STRAIN ^ 2 * stiffness, speed = STRAIN * sound,
    kinetic_energy = (STRAIN * sound) ^ 2 }
  return type(by) == "string" and floors[by] or nil
end

---Are these colours, as visuals.colour takes them, signals?
---@return boolean
function visuals.is_signal(given)
  if type(given) == "table" and not T.is_tensor(given) then given = given.by end
  return given == "signal"
end

---Are these colours, as visuals.colour takes them, signals without a label of the user's? Their legend then says what
---red does.
---@return boolean
function visuals.says_red(given)
  return visuals.is_signal(given) and not (type(given) == "table" and given.label)
end

---@class run.render.colour.def : cq.Picture.scale.def
---@field by string|fun(state: cq.State, u: cq.Tensor?): cq.Tensor   a quantity, a constant of the materials, "signal", or a function that
---  gives a number for each particle of the world {n}

local colour_spec = is.define("render: colour", {
  by = is.any(), label = is.string { optional = true }, unit = is.string { optional = true },
  range = is.vector { size = 2, optional = true }, categories = is.list(is.string(), { min = 1, optional = true }),
  palette = is.one_of { "rising", "signed", "tension", optional = true },
  floor = is.number { above = 0, optional = true },
})

---The colours of particles: a function of state and signals that returns {n}, and its scale; nil and {} for nil.
---@return function? read, table scale
function visuals.colour(given)
  if given == nil then return nil, {} end
  local def = colour_spec(with_by(given, type(given) == "table" and given.by ~= nil))
  local info = type(def.by) == "string" and (constants[def.by] or readout.quantity(def.by)) or nil
  local read = reader(def.by, "colour")
  local signal = def.by == "signal"
  local scale = {
    label = def.label or titles[def.by] or info and (info.name:gsub("_", " ")) or nil, unit = def.unit,
    range = def.range or (signal and { -1, 1 } or nil), palette = def.palette or (signal and "signed" or nil),
    categories = def.categories, floor = def.floor,
  }
  return function(state, u) return numbers(read, state, u, "colour") end, scale
end

---A function of state and signals that gives how opaque particles are, a tensor {n}. nil: nothing is given.
---@return function?
function visuals.opacity(given)
  if given == nil then return nil end
  local read = reader(given, "opacity")
  return function(state, u) return numbers(read, state, u, "opacity") end
end

-- ---- arrows and goals -----------------------------------------------------------------------------------------------

local ARROWS = 90          -- of particles, about

---@class run.render.arrows.def
---@field by any           "velocity", or a function of state and signals that gives vectors {n, dim} of the
---  world's particles, or places and vectors {k, dim}
---@field every? integer    one particle of so many has an arrow; about 90 have one unless given
---@field scale? number     [length] of an arrow for each unit of the vector; by the longest one unless given
---@field label? string     what they are, in the legend
---@field unit? string      of the vectors
---@field colour? string    "#rrggbb"

local arrows_spec = is.define("render: arrows", {
  by = is.any(), every = is.integer { min = 1, optional = true },
  scale = is.number { above = 0, optional = true }, label = is.string { optional = true },
  unit = is.string { optional = true },
  colour = is.string { optional = true },
})

-- Every `every`-th row of places and vectors {k, dim}, so that arrows do not overlap.
local function thinned(at, vector, every)
  local keep = {}
  for p = 1, at:size(1), every do keep[#keep + 1] = p end
  return at:gather(keep, 1), vector:gather(keep, 1)
end

---The arrows of a picture: a function of state and signals that returns them as marks.arrows takes them. nil: nothing
---is given. Errors: neither "velocity" nor a function; vectors of another number or dimension.
---@return function?
function visuals.arrows(given)
  if given == nil then return nil end
  local def = arrows_spec(with_by(given, type(given) == "table" and not text.is_callable(given)))
  if def.by ~= "velocity" and not (text.is_callable(def.by) and not T.is_tensor(def.by)) then
    is.fail(visuals.name .. ": arrows must be \"velocity\" or a function of the state, got %s", text.describe(def.by))
  end
  local by = def.by == "velocity" and function(state) return state:velocities() end or def.by
  local label, unit = def.label or def.by == "velocity" and "velocity" or nil, def.unit
  return function(state, u)
    local at, vector = by(state, u)
    if vector == nil then
      at, vector = state:positions(), T.as_tensor(at)
      local n = at:size(1)
      if vector.rank ~= 2 or vector:size(1) ~= n then
        is.fail(visuals.name .. ": arrows must give a vector for each of the %d particles, or places and vectors; got a tensor {%s}", n,
          table.concat(vector:shape(), ", "))
      end
      at, vector = thinned(at, vector, def.every or math.max(1, math.floor(n / ARROWS)))
    elseif def.every then
      at, vector = thinned(T.as_tensor(at), T.as_tensor(vector), def.every)
    end
    return { at = at, vector = vector, scale = def.scale, label = label, unit = unit, colour = def.colour }
  end
end

-- Returns a list of goals; raises an error if one lies outside of the world, where a picture does not look.
local function require_inside(list, world)
  local size = world.domain.size
  for k, entry in ipairs(list) do
    local at = type(entry) == "table" and entry or {}
    if not T.is_tensor(at) then at = at.at or at end
    if T.is_tensor(at) then at = at:totable() end
    for d = 1, type(at) == "table" and #at == world.dim and world.dim or 0 do
      if type(at[d]) == "number" and (at[d] < 0 or at[d] > size[d]) then
        is.fail(visuals.name .. ": goals[%d], %s, is outside of the world, which reaches from the origin to %s", k,
          text.place(at), text.place(size))
      end
    end
  end
  return list
end

---A function of state and signals that gives the list of goals, from what a user gave: a list, or such a function.
---Errors: no list of places; one outside of the world.
---@return function
function visuals.goals(given)
  if given == nil then return function() return {} end end
  if text.is_callable(given) and not T.is_tensor(given) then
    return function(state, u)
      local list = given(state, u)
      if type(list) ~= "table" then
        is.fail(visuals.name .. ": goals must give a list of places, got %s", text.describe(list))
      end
      return require_inside(list, state.world)
    end
  end
  if type(given) ~= "table" then
    is.fail(visuals.name .. ": goals must be a list of places, or a function that gives one, got %s", text.describe(given))
  end
  return function(state) return require_inside(given, state.world) end
end

-- ---- cables and walls -----------------------------------------------------------------------------------------------

---The paths of the cables of a state, with tensions where the signals u are known. position: tensor {n, dim}.
function visuals.cables(state, u, position)
  local told = u and { signals = u:data(), value = function(name) return of_particles.of(state, name) end }
  return cables.paths(state.world, position:data(), told)
end

return visuals
