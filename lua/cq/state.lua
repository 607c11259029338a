-- state: a scene at one control step, as observers, objectives and records see it. Nothing is copied until it is asked
-- for, and what is asked for is differentiable.
--
--   state:center "trunk"     {dim}          mean position of a group, by mass unless weight says "particle" or "volume"
--   state:center { "left", "right" }  {2, dim}     a row for each
--   state:center(robot)             {dim}          of the whole robot
--   state:gather "markers"          {particles, dim}
--   state:gather("arm", "von_mises")  {particles}  or any other quantity that the engine lists
--   state:stress "arm"              {dim, dim}     Cauchy, the mean over the volume of a group
--   state:energy()                  one number     kinetic, elastic and potential, of the whole world
-- In a batch every result has the scene as its first dimension.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local class = require "cq.tensor.class"
local engine = require "cq.base.engine"
local gravity = require "cq.rollout.gravity"
local readout = require "cq.state.readout"
local surface = require "cq.actuator.surface"
local C, tape = engine.C, T.tape

---@class cq.State
---@field step integer      control steps made since the start, with those of the rollouts that this one goes on from
---@field time number       since the start [time]
---@field batch integer     scenes
---@field batched boolean   has every readout the scene as its first dimension? It has where the rollout was given a batch
---@field world cq.World    that it is a state of
local State = { __name = "cq.State" }
State.__index = State

-- By what gradients reach the state, see cq.tensor.gradient; false: there are none.
function State:__recorded() return self.roll.link or false end

local state = { class = State }
local field_kind = readout.named "position"

---The state of a rollout after `index` control steps. It is a view of the rollout: it can be read while the rollout is
---at that step; the final state also afterwards.
---@param roll table
---@param index integer     control steps made in this rollout
---@return cq.State
function state.new(roll, index)
  local step = roll.first + index
  return setmetatable({ roll = roll, index = index, step = step, time = step * roll.world.control_dt,
    batch = roll.batch, batched = roll.batched, world = roll.world }, State)
end

---The state of one scene of a batch: its readouts are of that scene alone, without the dimension of scenes. Without a
---batch the state itself. Errors: a number beyond the batch.
---@param k integer         from 1 to the scenes of the batch
---@return cq.State
function State:scene(k)
  is.argument("state:scene", "k", is.integer { min = 1, max = self.batch }, k)
  if not self.batched then return self end
  return setmetatable({ whole = self, number = k, batch = 1, batched = false }, { __index = function(_, key)
    local own = State[key]
    if own ~= nil then return own end
    return self[key]
  end, __name = "cq.State", __tostring = State.__tostring, __recorded = State.__recorded })
end

-- The control step and the time as one line; reads nothing from the engine.
function State:__tostring() return ("cq.State { step %d, time %s }"):format(self.step, text.number(self.time)) end

-- ---- readouts -------------------------------------------------------------------------------------------------------

-- Adjoint of a readout: adds the gradient by its result to the adjoint of the rollout's state.
local function read_back(node, gradient) node.a:read_adjoint(node.extra, gradient) end

-- One scene's row of a readout. read(whole state, ...) reads all scenes, once for each recording. found: the readout,
-- by which its result is kept.
local function read_scene(self, found, read, ...)
  local whole, on = self.whole, tape.mark() or false
  if whole.known_on ~= on then whole.known_on, whole.known = on, {} end
  local all = whole.known[found] or read(whole, ...)
  whole.known[found] = all
  return all[self.number]
end

-- Reads a quantity of a state as a tensor, recorded on the tape. kind: "mean", "sum", "gather", ...; field: the
-- quantity; weight: of means; which: particles; what: the method's name, for errors. A constant if the rollout was made
-- without a tape.
local function read(self, kind, field, weight, which, what)
  local roll = self.roll
  roll:require_live(self.index, what)
  local found = readout.find(self.world, kind, field, weight, self.world:selection(which, what))
  if self.whole then return read_scene(self, found, read, kind, field, weight, which, what) end
  local out = class.make(found.shapes[self.batched and self.batch or 0] or readout.batched(found, self.batch))
  engine.check(C.cq_rollout_read(roll.handle, found.def, out.pointer), what)
  return roll.differentiable and tape.recording() and tape.push(read_back, out, roll, nil, found.def) or out
end

-- ---- what users call ------------------------------------------------------------------------------------------------

-- A function that checks the options of the method `what` and returns them with defaults; nil counts as none given.
-- allowed: a checker for each option by its name.
local function options_of(what, allowed)
  local spec = is.define(what, allowed)
  local none = spec {}
  return function(options) return options == nil and none or spec(options) end
end

-- A checker of how a mean is weighted, "mass", "particle" or "volume"; optional without a default.
local function weight_kind(default)
  return is.one_of { "mass", "particle", "volume", optional = default == nil or nil, default = default }
end

local about_kind = is.one_of { "center", "origin", default = "center" }
local options_for = {
  stress = options_of("state:stress", {
    kind = is.one_of { "cauchy", "piola", default = "cauchy" }, weight = weight_kind "volume",
  }),
  von_mises = options_of("state:von_mises", { weight = weight_kind "volume" }),
  moment = options_of("state:moment", {
    field = is.one_of { "position", "velocity", default = "position" }, about = about_kind, weight = weight_kind(),
  }),
  angular_momentum = options_of("state:angular_momentum", { about = about_kind }),
}
for _, name in ipairs { "center", "velocity", "motion", "mean", "mean_square_velocity" } do
  options_for[name] = options_of("state:" .. name, { weight = weight_kind() })
end

-- How a mean is weighted, "mass", "particle" or "volume": by the options of the method `name`, else as the rollout
-- says.
local function weight_of(self, name, options) return options_for[name](options).weight or self.roll.weight end

---Mean position of a group, a row for each of a list of groups, or of a robot [length]. Weighted by mass unless
---`weight` or the rollout's weight says otherwise. Where the density is trained, the mean over mass moves without the
---body: a robot "walks" by becoming heavier in front. Means over particles do not.
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     {dim} or {groups, dim}
function State:center(which, options)
  local weight = weight_of(self, "center", options)
  return read(self, "mean", "position", weight, which, "state:center")
end

---Mean velocity of a group, weighted as state:center is [length/time].
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     {dim} or {groups, dim}
function State:velocity(which, options)
  local weight = weight_of(self, "velocity", options)
  return read(self, "mean", "velocity", weight, which, "state:velocity")
end

---Mean positions and velocities of groups as one row of numbers, for observers: all positions, then all velocities.
---Weighted as state:center is.
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     {groups * dim * 2}
function State:motion(which, options)
  return read(self, "mean_row", "motion", weight_of(self, "motion", options), which, "state:motion")
end

---Mean of a quantity over a group: of a field of the state, or of a value that follows from the state.
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param field cq.Quantity
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     one number, {dim} or {dim, dim}, with a row for each group of a list
function State:mean(which, field, options)
  field = is.argument("state:mean", "field", field_kind, field)
  local weight = weight_of(self, "mean", options)
  return read(self, "mean", field, weight, which, "state:mean")
end

---A quantity of the particles of a group, or of several joined: a field of the state, or a value that follows from it.
---Stresses and energies are those of the material alone, without actuation. von_mises and speed have a kink where they
---are zero, with the derivative zero.
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param field? cq.Quantity    "position" unless given
---@return cq.Tensor     {particles}, {particles, dim} or {particles, dim, dim}
function State:gather(which, field)
  field = is.argument("state:gather", "field", field_kind, field)
  return read(self, "gather", field, "mass", which, "state:gather")
end

---Second moment of position [length^2] or velocity [length^2/time^2]: the mean of q q^T over a group, weighted as
---state:center is, with q counted from the group's own mean, or from the origin if about = "origin".
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { field?: "position"|"velocity", about?: "center"|"origin", weight?: "mass"|"particle"|"volume" }
---@return cq.Tensor     {dim, dim}, with a row for each group of a list
function State:moment(which, options)
  local what, def = "state:moment", options_for.moment(options)
  local field, about, weight = def.field, def.about, def.weight or self.roll.weight
  local moment = read(self, "moment", field, weight, which, what)
  if about == "origin" then return moment end
  local mean = read(self, "mean", field, weight, which, what)
  return moment - mean:unsqueeze(-1) * mean:unsqueeze(-2)
end

---Mean of |v|^2 over a group, weighted as state:center is [length^2/time^2].
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     one number, with a row for each group of a list
function State:mean_square_velocity(which, options)
  local weight = weight_of(self, "mean_square_velocity", options)
  local moment = read(self, "moment", "velocity", weight, which, "state:mean_square_velocity")
  return (moment * T.eye(self.world.dim)):sum { -2, -1 }
end

-- ---- stress, energy, momentum ---------------------------------------------------------------------------------------

---Mean stress of a group, weighted by initial volume unless weight says otherwise: Cauchy's P F^T / J, or the first
---Piola-Kirchhoff stress P. It is that of the material, without actuation [stress].
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { kind?: "cauchy"|"piola", weight?: "mass"|"particle"|"volume" }
---@return cq.Tensor     {dim, dim}, with a row for each group of a list
function State:stress(which, options)
  local def = options_for.stress(options)
  return read(self, "mean", def.kind, def.weight, which, "state:stress")
end

---Mean von Mises stress of a group, weighted by initial volume unless weight says otherwise [stress]. A
---plane world is one of plane strain: the stress across it counts too. For the largest one take
---state:gather(which, "von_mises"):max().
---@param which string|string[]|integer[]|cq.Group|cq.Robot    a group or several, particles from 1, or a robot
---@param options? { weight?: "mass"|"particle"|"volume" }    what each particle counts in the mean
---@return cq.Tensor     one number, with a row for each group of a list
function State:von_mises(which, options)
  return read(self, "mean", "von_mises", options_for.von_mises(options).weight, which, "state:von_mises")
end

-- The gravity of this rollout, in the control step before the state, in a shape that multiplies readouts of this rank.
local function gravity_of(self, rank)
  local set, changes = self.roll.set.gravity, self.roll.gravity
  local g = set and set.tensor or self.world.layout.base.gravity
  if changes then g = gravity.of_step(changes, math.max(1, math.ceil(self.index))) end     -- of the step that led here
  if self.whole and g.rank == 2 then g = g[self.number] end
  return g.rank == 2 and rank == 3 and g:unsqueeze(2) or g
end

-- Reads a quantity of motion of a selection. It is 0 of a state of world:settle, in whose particles the engine keeps
-- displacements over dt, which its adjoint reads, in the place of velocities.
local function read_motion(self, field, which, what)
  local out = read(self, "sum", field, "mass", which, what)
  return self.world.def.statics and out * 0 or out
end

local energies = {
  -- Kinetic energy of a selection.
  kinetic = function(self, which, what) return read_motion(self, "kinetic_energy", which, what) end,
  -- Elastic energy of a selection.
  elastic = function(self, which, what) return read(self, "sum", "energy_density", "volume", which, what) end,
  -- Potential energy -m g . x of a selection.
  potential = function(self, which, what)
    local m_x = read(self, "sum", "position", "mass", which, what)
    return -(m_x * gravity_of(self, m_x.rank)):sum(-1)
  end,
}
local energy_kind = is.one_of { "total", "kinetic", "elastic", "potential", default = "total" }

---Energy of a group, a robot, or the whole world [mass length^2/time^2]: kinetic, including the affine velocity C;
---elastic; potential, -m g . x, zero at the origin; or their sum. The energy that actuators hold is left out. The
---kinetic energy is that of the particles. In total Lagrangian steps their velocities are means over nodes, so that it
---leaves out motion within a cell that is not affine. It is 0 in a state of world:settle.
---
---With Maxwell branches (cq.Material.viscoelastic) the sum is no balance of energy: what they store does not follow
---from their stress Q alone. elastic has <Q, F^T F - I>/2 in its place, which is about twice as large while nothing has
---relaxed, and may be below zero later.
---
---@param which? string|string[]|integer[]|cq.Group|cq.Robot    all particles unless given
---@param kind? "total"|"kinetic"|"elastic"|"potential"    "total", the sum, unless given
---@return cq.Tensor     one number, with a row for each group of a list
function State:energy(which, kind)
  kind = is.argument("state:energy", "kind", energy_kind, kind)
  if kind ~= "total" then return energies[kind](self, which, "state:energy") end
  local sum = energies.kinetic(self, which, "state:energy") + energies.elastic(self, which, "state:energy")
  return sum + energies.potential(self, which, "state:energy")
end

---Linear momentum of a group, a robot, or the whole world [mass length/time].
---@param which? string|string[]|integer[]|cq.Group|cq.Robot    all particles unless given
---@return cq.Tensor     {dim}, with a row for each group of a list
function State:momentum(which) return read_motion(self, "velocity", which, "state:momentum") end

-- Component i of the last dimension of t, as a tensor without that dimension.
local function component(t, i) return t:slice(i, i, -1):squeeze(-1) end

-- The cross product of a and b along the last dimension: in 2D one number, without that dimension.
local function cross(a, b)
  -- Component (i, j) of the cross product of a and b.
  local function part(i, j) return component(a, i) * component(b, j) - component(a, j) * component(b, i) end
  if a:size(-1) == 2 then return part(1, 2) end
  return T.stack({ part(2, 3), part(3, 1), part(1, 2) }, -1)
end

---Angular momentum of a group, a robot, or the whole world, including the affine velocity C [mass length^2/time],
---about its own centre of mass, or the origin if about = "origin"; each group of a list about its own centre.
---@param which? string|string[]|integer[]|cq.Group|cq.Robot    all particles unless given
---@param options? { about?: "center"|"origin" }
---@return cq.Tensor     one number in 2D, {3} in 3D, with a row for each group of a list
function State:angular_momentum(which, options)
  local what = "state:angular_momentum"
  local about = options_for.angular_momentum(options).about
  local whole = read_motion(self, "angular_momentum", which, what)
  if about == "origin" then return whole end
  return whole - cross(read(self, "mean", "position", "mass", which, what),
    read_motion(self, "velocity", which, what))
end

-- ---- rasters --------------------------------------------------------------------------------------------------------

local raster_spec = is.define("state:raster", {
  size = is.vector { size = { 2, 3 }, integer = true, min = 1, max = 4096 },
  spacing = is.number { above = 0, optional = true },
  center = is.any { optional = true },
  channels = is.one_of { "density", "momentum", "both", default = "both" },
  particles = is.integer { min = 1, optional = true },
})

-- The particle numbers of all groups of a selection in one list, from 1; the list is kept with the selection.
local function numbers_of(selection)
  if not selection.numbers then
    selection.numbers = {}
    for k = 0, selection.total - 1 do selection.numbers[k + 1] = selection.particles[k] + 1 end
  end
  return selection.numbers
end

-- Does a selection hold all particles of the world in their order? The answer is kept with the selection.
local function is_everything(selection, world)
  if selection.everything == nil then
    selection.everything = selection.total == world.particle_count
    for k = 0, selection.everything and selection.total - 1 or -1 do
      if selection.particles[k] ~= k then selection.everything = false end
    end
  end
  return selection.everything
end

-- The masses {n}, or {batch, n}, of the particles of a selection, for a raster.
local function masses_of(self, selection)
  local set = self.roll.set.mass
  local mass = set and set.tensor or self.world.layout.base.mass
  if not is_everything(selection, self.world) then mass = mass:gather(numbers_of(selection), -1) end
  if self.whole and mass.rank == 2 then mass = mass[self.number] end
  if self.batched and mass.rank == 1 then mass = mass:unsqueeze(1):expand { self.batch, selection.total } end
  return mass
end

-- For state:raster: the mean position by mass {dim}, or {batch, dim}, of all particles of a selection.
local function center_of(self, selection)
  if not selection.single then
    selection.whole = selection.whole or self.world:remember_selection(numbers_of(selection))
    selection = selection.whole
  end
  return read(self, "mean", "position", "mass", selection, "state:raster")
end

-- The centre of a raster's window {dim}, or {batch, dim} if it follows the body. center: the user's option:
-- coordinates, a group, or nil for the selection itself.
local function window_center(self, center, selection)
  if center == nil then return center_of(self, selection) end
  local first = type(center) == "table" and not getmetatable(center) and center[1]
  if T.is_tensor(center) or type(first) == "number" or type(first) == "table" and type(first[1]) == "number" then
    center = T.as_tensor(center, "state:raster: center")
    local by_scene = self.batched and center.rank == 2 and center:size(1) == self.batch
    if center.rank ~= 1 and not by_scene or center:size(-1) ~= self.world.dim then
      is.fail("state:raster: center must have %d coordinates%s, got a tensor {%s}", self.world.dim,
        self.batched and ", or so many for each scene" or "", table.concat(center:shape(), ", "))
    end
    if not center:finite() then is.fail "state:raster: center must be finite" end
    return center
  end
  return center_of(self, self.world:selection(center, "state:raster: center"))
end

-- A selection of at most `most` particles of another one, evenly chosen along its list (nil: all of them), and the
-- number of particles that each stands for. It is kept with the other one.
local function thin(self, selection, most)
  if not most or selection.total <= most then return selection, 1 end
  selection.thinned = selection.thinned or {}
  if not selection.thinned[most] then
    local numbers, some, each = numbers_of(selection), {}, selection.total / most
    for k = 1, most do some[k] = numbers[math.floor((k - 0.5) * each) + 1] end
    selection.thinned[most] = self.world:remember_selection(some)
  end
  return selection.thinned[most], selection.total / most
end

---@class state.raster.def
---@field size integer[]      pixels of the window along x, y (and z)
---@field spacing? number     size of a pixel; that of a cell of the world unless given [length]
---@field center? any         middle of the window: a list or tensor of coordinates, or a group whose mean position it follows; that of the
---  particles themselves unless given
---@field channels? "density"|"momentum"|"both"   density, momentum along each axis, or first the one and then the other
---@field particles? integer   draws at most this many particles, evenly chosen, with as many times their masses as there are more; all unless given

---Density [mass/length^dim] and momentum for each volume of a group, on the pixels of a window that moves with it: a
---picture for convolutions, differentiated to positions, velocities and masses. Particles are spread by quadratic
---splines; row 1 is the uppermost. Errors: a size of another dimension than the world; unknown fields.
---@param which? string|string[]|integer[]|cq.Group|cq.Robot    all particles unless given
---@param options state.raster.def
---@return cq.Tensor     {channels, rows, columns}, in 3D {channels, depth, rows, columns}
function State:raster(which, options)
  local def, dim = raster_spec(options), self.world.dim
  if #def.size ~= dim then is.fail("state:raster: size has %d numbers, the world is %dD", #def.size, dim) end
  local spacing, selection = def.spacing or self.world.dx, self.world:selection(which, "state:raster")
  local half, velocity = {}, nil
  for d, count in ipairs(def.size) do half[d] = 0.5 * count * spacing end
  local origin = window_center(self, def.center, selection) - T.tensor(half)
  if self.batched and origin.rank == 1 then origin = origin:unsqueeze(1):expand { self.batch, dim } end
  local drawn, each = thin(self, selection, def.particles)
  if def.channels ~= "density" then velocity = read(self, "gather", "velocity", "mass", drawn, "state:raster") end
  local x, mass = read(self, "gather", "position", "mass", drawn, "state:raster"), masses_of(self, drawn)
  local both = x:splat((each == 1 and mass or mass * each):unsqueeze(-1),
    { size = def.size, spacing = spacing, origin = origin, velocity = velocity, density = true })
  return def.channels == "momentum" and both:slice(2, 1 + dim, self.batched and 2 or 1) or both
end

-- ---- contact --------------------------------------------------------------------------------------------------------

---The impulse that a wall, a pinned group, or all pins together gave to bodies in the control step before this state,
---in a rollout with contact = true: impulse {dim} [mass length/time]; normal: its part along the normals of the wall;
---tangential {dim}: the rest; and center {dim}: the centre of pressure [length], 0 where nothing presses. Pins have
---only the impulse. Divided by the control step these are mean forces. Errors: a rollout without contact = true; a
---wall that does not exist; the first state.
---@param wall integer|string|cq.Boundary|cq.Group     a wall: its number in the order of the world's, its name, itself; a
---  pinned group or its name; or "pins"
---@return { impulse: cq.Tensor, normal: cq.Tensor?, tangential: cq.Tensor?, center: cq.Tensor? }
function State:contact(wall) return require("cq.rollout.contact").read(self, wall) end

-- ---- of all particles -----------------------------------------------------------------------------------------------

---Positions of all particles of the world {n, dim} [length].
---@return cq.Tensor
function State:positions() return read(self, "gather", "position", "mass", nil, "state:positions") end

---Volume of the closed cavity that a cq.Actuator.follower_pressure inflates, area in 2D [length^dim].
---Errors: an open surface; several cavities of one name.
---@param which cq.Actuator|string     the actuator, or the name of its signal
---@param robot? cq.Robot              whose cavity it is, where robots share an actuator or a name
---@return cq.Tensor     one number
function State:cavity_volume(which, robot) return surface.volume(self, which, robot) end

---Velocities of all particles {n, dim} [length/time].
---@return cq.Tensor
function State:velocities() return read(self, "gather", "velocity", "mass", nil, "state:velocities") end

---Deformation gradients F of all particles {n, dim, dim}.
---@return cq.Tensor
function State:deformations() return read(self, "gather", "deformation", "mass", nil, "state:deformations") end

-- ---- to go on from --------------------------------------------------------------------------------------------------

---A copy of a rollout's final state through which no gradients flow. It can be read, and another rollout can continue
---from it, after its own rollout was released.
---@return cq.State
function State:detach()
  self.roll:require_live(self.index, "state:detach")
  return tape.pause(require("cq.rollout").copy, self, gravity_of(self, 2))
end

-- ---- files ----------------------------------------------------------------------------------------------------------

---Writes this state for other programs, by the ending of the path: particles with their fields as .vtp (ParaView),
---.ply, .npz (NumPy) or .csv, or closed surfaces of the bodies as .obj, .stl, .glb, and with as = "surface" as .ply or
---.vtp. In files with a third axis a 2D world has z = 0. The file is written whole or not at all. A name without a
---slash is in the run's folder.
---Errors: another ending; a format that cannot hold what is wanted; a constant that no material has; a path that cannot
---be written.
---@param path string
---@param options? state.save.def
---@return string path
function State:save(path, options) return require("cq.state.frame").save(self, path, options) end

method.guard(State, "state")

return state
