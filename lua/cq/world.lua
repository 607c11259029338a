-- world: a grid, its walls and its robots; what is fixed during a run. It owns everything that the engine makes for it.
--
--   local world = cq.World {
--     cells = { 256, 64 }, dx = 1/64, gravity = { 0, -2 }, dt = 5e-3, substeps = 10,
--     walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
--     robot:at { 0.2, 0.05 },
--   }
--   local roll = world:rollout { steps = 800, controller = ..., observer = ... }
local method = require "cq.base.method"
local ffi = require "ffi"
local is = require "cq.base.schema"
local effects = require "cq.world.effects"
local fixed = require "cq.world.fixed"
local text = require "cq.base.text"
local gravity = require "cq.rollout.gravity"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local option = require "cq.option"
local assembly = require "cq.world.assembly"
local memory = require "cq.rollout.memory"
local message = require "cq.base.message"
local pool = require "cq.world.pool"
local selection = require "cq.robot.selection"
local sites = require "cq.world.sites"
local steps = require "cq.world.steps"
local within = require "cq.world.within"
local tables = require "cq.base.tables"
local C = engine.C

---@class cq.World
---@field dim integer              2 or 3
---@field cells integer[]          {dim} of the grid along each axis
---@field dx number                cell size [length]
---@field control_dt number        time between control steps
---@field substeps integer         engine steps in a control step
---@field robot cq.Robot           the first of robots
---@field robots cq.Robot[]        all of them, as they were placed
---@field walls cq.Boundary[]      in the order they were given
---@field particle_count integer   of all robots
---@field actuator_count integer   signals of all robots
---@field courant number           Courant number at the start
---@field residual_decay number   rate of transfer = { decay }, 0: APIC [1/time]
---@field precision "float32"|"float64"   of the engine; tensors are float64 always
---@field device string            for people: device, instruction set, threads
---@field device_kind "cpu"|"cuda"  what was taken
local World = { __name = "cq.World" }
World.__index = World
World.courant_max = 1              -- explicit steps are unstable above; published scenes lie between 0.1 and 0.95
World.courant_aim = 0.5            -- of substeps = "auto", with room for speed that comes later
World.substeps_max = 100000

-- ---- construction ---------------------------------------------------------------------------------------------------

local spec = is.define("cq.World", {
  cells = is.vector { size = { 2, 3 }, integer = true, min = 8, max = 16384 },
  dx = is.number { above = 0 },
  dt = is.number { above = 0 },
  substeps = is.any_of { is.integer { min = 1, max = World.substeps_max }, is.one_of { "auto" }, default = 1 },
  gravity = is.any_of { is.vector { size = { 2, 3 } }, is.callable(), optional = true },
  damping = is.number { min = 0, default = 0 },
  pressure_smoothing = is.number { min = 0, default = 0 },
  integrator = is.instance { "cq.Implicit", optional = true },
  formulation = is.one_of { "updated", "total_lagrangian", default = "updated" },
  collisions = is.any_of { is.boolean {}, is.table(), default = false },
  transfer = is.any_of { is.one_of { "apic" }, is.table(), default = "apic" },
  walls = is.any_of { is.instance "cq.Boundary", is.list(is.instance "cq.Boundary"), default = {} },
  precision = is.one_of { "float32", "float64", default = "float32" },
  threads = is.integer { min = 0, max = 256, default = 0 },
  device = is.one_of { "auto", "cpu", "cuda", default = "cpu" },
}, is.instance "cq.Robot")

-- Sets the program's options (--device, --precision, ...), which win over the script's fields, in a definition.
local function with_options(def)
  local program = option.program
  if program.precision then def.precision = program.precision end
  if program.threads and program.threads > 0 then def.threads = program.threads end
  if program.device then def.device = program.device end
  return def
end

local device_kinds = { cpu = C.CQ_DEVICE_CPU, cuda = C.CQ_DEVICE_CUDA, auto = C.CQ_DEVICE_AUTO }
local simd_levels = { auto = 0, baseline = 1, avx2 = 3, avx512 = 4 }   -- of cq_world_def

-- Sets the world's gravity {dim} from the user's; of one that changes with time, its value at the start.
local function take_gravity(self, given)
  if text.is_callable(given) then
    self.gravity_at = given
    self.gravity = gravity.at(given, 0, self.dim, "cq.World: gravity"):totable()
    return
  end
  if given and #given ~= self.dim then
    is.fail("cq.World: gravity has %s, the world is %dD by its cells", text.count(#given, "component"), self.dim)
  end
  self.gravity = given
end

-- A new cq_world_def of the engine, filled with grid, time, device and gravity from the checked definition.
local function engine_def(self, def)
  local raw = ffi.new "cq_world_def"
  C.cq_world_def_init(raw)
  raw.dim, raw.dx, raw.dt = self.dim, def.dx, def.dt
  raw.precision = def.precision == "float64" and C.CQ_FLOAT64 or C.CQ_FLOAT32
  raw.device, raw.threads, raw.simd = device_kinds[def.device], def.threads, simd_levels[option.program.simd]
  for i = 1, self.dim do raw.cells[i - 1] = def.cells[i] end
  for i, g in ipairs(self.gravity or {}) do raw.gravity[i - 1] = g end
  raw.damping, raw.pressure_smoothing = def.damping, def.pressure_smoothing
  steps.fill(raw, def)
  if def.integrator then def.integrator:fill(raw.integrator, def.statics) end
  return raw
end

-- Keeps the world's gravity and damping, and its walls' mu and velocity, in layout.base, which later rollouts restore.
local function fill_base(self, def)
  local base, dim = self.layout.base, self.dim
  base.gravity = self.gravity and T.tensor(self.gravity) or T.zeros { dim }
  base.damping = T.tensor { def.damping }[1]
  local friction, velocity = {}, {}
  for k, wall in ipairs(self.walls) do
    friction[k], velocity[k] = wall.mu, {}
    for i = 1, dim do velocity[k][i] = wall.velocity and wall.velocity[i] or 0 end
  end
  if #self.walls > 0 then base.friction, base.wall_velocity = T.tensor(friction), T.tensor(velocity) end
end

-- Makes the engine's world (handle). Its control step is the user's, of `substeps` engine steps; or a single engine
-- step, so that Lua runs between them, if a force actuator acts at every engine step.
local function create(self, raw, substeps)
  self.substeps, self.pieces = substeps, self.layout.force.stepped and substeps or 1
  raw.dt, raw.substeps = self.control_dt / self.pieces, substeps / self.pieces
  local out = ffi.new "cq_world *[1]"
  engine.check(C.cq_world_create(raw, out), self.def.statics and "world:settle" or "cq.World",
    assembly.naming(self.layout))
  World.made = true                        -- threads are started: it is too late to split cores between processes
  self.handle = out[0]
  self.courant, self.residual_decay = C.cq_world_courant(self.handle, 0), C.cq_world_residual_decay(self.handle)
end

-- Raises an error: substeps that were given are too few, or those needed (wanted) are too many; frees the world.
local function refuse_courant(self, raw, wanted)
  C.cq_world_destroy(self.handle)
  self.handle = nil
  local softer = steps.remedies(raw)
  local number = ("cq.World: the Courant number is %.3g with substeps = %d and must be at most %s"):format(self.courant,
    self.substeps, text.number(self.courant_max))
  if wanted <= self.substeps_max then
    is.fail("%s: use substeps = %d or more, or \"auto\", or a smaller dt, or %s", number, wanted, softer)
  end
  is.fail("%s; that asks for more than the %d that there may be, as waves or viscosity are too fast for this dt: take a smaller dt, larger cells, %s, or implicit steps (integrator = cq.Implicit {})",
    number, self.substeps_max, softer)
end

-- Makes the engine's world, with as many substeps as the Courant number asks for if "auto". Errors: steps too long.
local function create_stable(self, raw, def)
  local is_auto = def.substeps == "auto"
  create(self, raw, is_auto and 1 or def.substeps)
  if def.integrator then return end        -- steps of any length are stable
  -- weights of actuation that a design may give later count where the substeps are chosen here, and values of robots
  local courant, restore = is_auto and C.cq_world_courant(self.handle, 1) or self.courant, nil
  if is_auto then restore = T.tape.pause(assembly.use_values, raw, self.robots, self.layout.base) end
  if restore then
    C.cq_world_destroy(self.handle)
    create(self, raw, 1)
    restore()
    courant = math.max(courant, C.cq_world_courant(self.handle, 1))
  end
  local wanted = math.max(1, math.ceil(self.substeps * courant / self.courant_aim))
  if is_auto and (restore or wanted > 1) and wanted <= self.substeps_max then
    C.cq_world_destroy(self.handle)
    create(self, raw, wanted)
  elseif not (self.courant <= self.courant_max) then
    refuse_courant(self, raw, wanted)
  end
end

-- Creates the engine's world from self.def, with its layout, pool and sites, and the finalizer that frees them.
local function build(self)
  local def, raw = self.def, engine_def(self, self.def)
  self.selections = {}
  self.layout = T.tape.pause(assembly.fill, raw, self.robots, self.walls, self.domain)
  fill_base(self, def)
  self.particle_count, self.actuator_count = tonumber(raw.particle_count), self.layout.signal_count
  create_stable(self, raw, def)
  self.device = ffi.string(C.cq_world_device(self.handle))
  self.device_kind = C.cq_world_device_kind(self.handle) == C.CQ_DEVICE_CUDA and "cuda" or "cpu"
  self.pool, self.sites = pool.new(self), sites.new(self, raw)
  for _, force in ipairs(self.layout.force.actuators) do
    force.selection = self:remember_selection(force.particles, force.robot.first)
  end
  self:own()
  fixed.remember(self, spec.fields)
end

---@class cq.World.def
---@field cells integer[]             of the grid along each axis; the world is [0, cells * dx]
---@field dx number                   size of a cell [length]
---@field dt number                   between control steps [time]
---@field substeps? integer|"auto"    engine steps in a control step; "auto": as many as a Courant number of 0.5 asks for
---@field gravity? number[]|fun(time: number): number[]   {dim}, or a function of the time that a control step begins at (not on
---  CUDA); zero unless given [length/time^2]
---@field damping? number             rate at which all motion decays, so that a body comes to rest [1/time]
---@field pressure_smoothing? number    rate at which the volume ratio J of each particle of a cq.Material.fluid nears the mean of its neighbours, once
---  in each control step: against noise of the pressure; on the CPU only [1/time]
---@field integrator? cq.Implicit     steps of backward Euler or of the midpoint rule, of any length; explicit ones unless given
---@field formulation? "updated"|"total_lagrangian"   updated: all bodies share one grid, which their
---  particles cross (MLS-MPM); total_lagrangian: each robot has a grid of its own undeformed shape, for elastic bodies:
---  their energy does not decay by the step. A robot may have another one than the rest
---@field collisions? boolean|cq.World.collisions.def   with total Lagrangian steps: surfaces of bodies, and of parts of
---  one, push each other apart from a gap of half a cell on, and rub on each other where friction is given; without it
---  surfaces that meet are an error
---@field transfer? "apic"|cq.World.transfer.def   between particles and grid. "apic": motion of particles that the
---  grid does not resolve is lost at each step, so that shorter steps damp more; { decay = rate }: it stays with the
---  particles and decays at a rate, so that a body moves alike at all lengths of a step; explicit steps on the CPU only
---@field walls? cq.Boundary|cq.Boundary[]   one or a list
---@field precision? "float32"|"float64"     of the engine; --precision wins
---@field threads? integer            0: all cores; --threads wins
---@field device? "auto"|"cpu"|"cuda"   auto: a GPU where there is one and the particles are worth it, which is told; --device wins
---@field [integer] cq.Robot

---A world: a grid with its walls, and the robots that stand in the table without names, one at least. Its dimension
---is that of cells. Units are the user's own, one of length, of time and of mass; stress is mass/(length time^2), in
---2D mass/time^2. A 2D world is one of plane strain: a bar is stiffer than its Young's modulus, by 1 / (1 - nu^2).
---
---What the grid does to bodies with formulation = "updated": they share one velocity field, so that they press on each
---other from a gap of about two cells on, do not slide along each other, and hang together if they start within one and
---a half cells; a slow collision leaves a third to a half of the relative speed. Walls and pins act at nodes: see
---cq.Boundary and cq.Robot.
---
---float32 is for large strains: it knows the strain of a particle to about 2e-6, 0.2 % of a strain of 0.001. For small
---strains, and to check gradients, take precision = "float64", which takes twice as long.
---
---Errors: a Courant number above 1, with the substeps that would do; particles outside of the grid or inside a wall,
---where a liquid may start up to half a cell within; pressure_smoothing or a material's f_bar on a GPU;
---with formulation = "total_lagrangian" materials that flow or relax or have f_bar, fewer than 1.5 particles along a
---cell, and pressure_smoothing, and under implicit steps collisions and pressure on open surfaces;
---transfer = { decay } with implicit or total Lagrangian steps or a GPU; collisions with updated steps; both
---formulations with implicit steps, f_bar, a GPU, or cables on an updated robot; bodies that meet; a pressure_smoothing
---without a liquid, and options of cq.Implicit for what the world lacks.
---@param fields cq.World.def
---@return cq.World
local function new(_, fields, statics, is_copy)
  -- worlds that nobody can reach any more give their memory back now: Lua sees little of it, and would wait
  collectgarbage()
  local def = with_options(spec(fields))
  def.statics = statics
  local self = setmetatable({ dim = #def.cells, cells = def.cells, dx = def.dx, control_dt = def.dt,
    precision = def.precision }, World)
  self.domain = { dim = self.dim, dx = def.dx, size = {} }
  for i, count in ipairs(def.cells) do self.domain.size[i] = count * def.dx end
  take_gravity(self, def.gravity)
  if not def[1] then is.fail("cq.World: has no robot; put one or several into the table, without a name") end
  self.robots, self.def = {}, def
  for k, robot in ipairs(def) do self.robots[k] = robot:placed() end
  self.robot = self.robots[1]
  self.walls = text.is_instance(def.walls, "cq.Boundary") and { def.walls } or def.walls
  def.walls = self.walls
  for _, wall in ipairs(self.walls) do wall:require_unchanged() end
  effects.check(self, is_copy)
  self.within = within.new()
  build(self)
  if def.device == "auto" then message.note_once("device auto: %s", self.device) end
  local taken = def.integrator and 0 or def.damping * def.dt / self.substeps
  if self.precision == "float32" and taken > 0 and taken < 1e-6 then
    message.note_once("damping = %s takes %.1g of a velocity in an engine step, hardly more than float32 resolves: take precision = \"float64\"",
      text.number(def.damping), taken)
  end
  return self
end

-- Builds the engine's world again, in place, with this number of substeps; forgets its variants.
local function rebuild_with_substeps(self, substeps)
  self.def, self.at_rest, self.variants = tables.merged(self.def, { substeps = substeps }), nil, nil
  build(self)
end

---@internal
---The same world with another number of substeps. Its rollouts and states from before cannot be used after.
---@param substeps integer
function World:set_substeps(substeps)
  if substeps == self.substeps then return end
  self:close()
  rebuild_with_substeps(self, substeps)
end

-- Makes the world's only finalizer, which frees its rollouts first, then the world.
function World:own()
  local proxy = newproxy(true)
  local handle, rollouts, elsewhere = self.handle, self.pool, self.sites
  self.owned = { open = true }
  local owned = self.owned
  getmetatable(proxy).__gc = function()
    if not owned.open then return end
    owned.open = false
    rollouts:close()
    elsewhere:close()
    C.cq_world_destroy(handle)
  end
  self.finalizer = proxy
end

---Gives all memory back, once; its rollouts and states cannot be used after. Errors: while one of its rollouts runs.
function World:close()
  if not self.owned.open then return end
  if self.within:is_inside() then is.fail("world:close: cannot be called from inside a rollout's own functions") end
  if self.within:is_awaited() then
    is.fail("world:close: a coroutine waits inside a rollout of this world; resume it to its end, or let it be forgotten "
      .. "(its variable = nil)")
  end
  self.owned.open = false
  if self.at_rest then self.at_rest:close() end
  for _, other in pairs(self.variants or {}) do other:close() end
  self.pool:close()
  self.sites:close()
  C.cq_world_destroy(self.handle)
  self.handle = nil
end

-- ---- selections -----------------------------------------------------------------------------------------------------

---Particles by group name, list of names, group, robot, list of numbers, or nil: all.
---@internal
---@param which any
---@param what string     for errors
---@return cq.Selection
function World:selection(which, what)
  return selection.find(self, which, what)
end

---The pool of rollouts for positions `set`, which pins depend on; the world's own for nil or positions by scene.
---@internal
---@param set { tensor: cq.Tensor, per_scene: boolean }?
---@return table pool
function World:pool_at(set)
  return set and not set.per_scene and self.sites:find(set.tensor) or self.pool
end

---@internal
---A selection of lists of particle numbers from 1, or of one list, to be kept by the caller. first: added to each.
---@param which integer[]|integer[][]
---@param first? integer  0 unless given
---@return cq.Selection
function World:remember_selection(which, first)
  return selection.remember(self, which, first or 0)
end

-- ---- what users call ------------------------------------------------------------------------------------------------

-- A new world of a list of robots with the same grid, walls and steps, but for the fields in others (nil: none).
local function another(self, robots, others)
  local fields = {}
  for name, value in pairs(self.def) do
    if type(name) == "string" then fields[name] = value end
  end
  fields.substeps = self.substeps
  for name, value in pairs(others or {}) do fields[name] = value end
  for k, robot in ipairs(robots) do fields[k] = robot end
  return World.new(nil, fields, nil, true)
end

local kinds_of_robots = is.any_of { is.instance "cq.Robot", is.list(is.instance "cq.Robot") }

---The same grid, walls and steps with other robots; substeps stay as many.
---@param robots cq.Robot|cq.Robot[]
---@return cq.World
function World:with_robots(robots)
  is.argument("world:with_robots", "robots", kinds_of_robots, robots)
  return another(self, text.is_instance(robots, "cq.Robot") and { robots } or robots)
end

-- The variant of a world of this key: the one that make() gave on first use.
local function kept(self, key, make)
  self.variants = self.variants or {}
  if not self.variants[key] then self.variants[key] = make() end
  return self.variants[key]
end

---@internal
---The substeps of this world times a factor, rounded; 1 at least.
---@param factor number
---@return integer
function World:times_substeps(factor) return math.max(1, math.floor(self.substeps * factor + 0.5)) end

---@internal
---The same world with other steps or another precision, made once for each change and kept. A variant of a variant is
---one of the world that both are of.
---@param change { substeps: number?, precision: "float32"|"float64"? }   substeps: of this world's, a factor; rounded
---@return cq.World           with variant_of, this world, and variation, the change
function World:variant(change)
  local substeps, root = self:times_substeps(change.substeps or 1), self.variant_of
  if root then
    return root:variant { substeps = substeps / root.substeps, precision = change.precision or self.precision }
  end
  return kept(self, ("%d %s"):format(substeps, change.precision or self.precision), function()
    local out = another(self, self.robots, { substeps = substeps, precision = change.precision })
    out.variant_of, out.variation, out.part_of = self, change, self.part_of
    return out
  end)
end

---@internal
---The same world on a finer grid, with its bodies resampled, made once for each factor and kept.
---@param factor number       of the size of its cells
---@return cq.World           with sources: for each particle the number of this world's particle that it replaces
function World:refined(factor)
  return kept(self, "cells " .. factor, function()
    local robots, fields, sources = require "cq.world.refined"(self, factor)
    local out = another(self, robots, fields)
    out.refines, out.sources = self, sources
    return out
  end)
end

-- Raises an error if the world was closed, or assigned to; what: the method, for the error.
local function require_open(self, what)
  if not self.handle then is.fail("%s: this world is closed", what) end
  fixed.require(self)
end

---@internal
---The same world with static steps (no inertia), cached.
---@return cq.World
function World:still()
  if not self.at_rest then
    local fields = tables.merged(self.def)
    fields.substeps = 1
    self.at_rest = World.new(nil, fields, true, true)
  end
  return self.at_rest
end

---@class world.settle.def
---@field robot? cq.Robot|cq.Robot[]   variants of the world's robots, from robot:with
---@field signals? cq.Tensor|number[]  {signals} or {batch, signals} that are held; none unless given
---@field batch? integer               independent scenes
---@field contact? boolean             to read what walls and pins give, by state:contact: their forces times dt
---@field updates? integer             how often the weights of the grid are renewed where the body rests, and rest is
---  found again from there

local settle_spec = is.define("world:settle", {
  robot = is.any_of { is.instance "cq.Robot", is.list(is.instance "cq.Robot", { min = 1 }), optional = true },
  signals = is.any { optional = true },
  batch = is.integer { min = 1, max = C.CQ_BATCH_MAX, optional = true },
  contact = is.boolean { default = false },
  updates = is.integer { min = 0, max = 1000, default = 0 },
})

-- The signals of world:settle as a controller that holds them for `count` control steps; nil: there are no actuators.
local function held_signals(self, given, batch, count)
  if type(given) ~= "table" then
    is.fail("world:settle: signals must be a list or a tensor, got %s", is.describe(given))
  end
  local u = T.as_tensor(given, "world:settle: signals")
  if u.rank < 1 or u.rank > 2 or u.dims[u.rank] ~= self.actuator_count then
    is.fail("world:settle: signals must be {%d}, or {batch, %d}, got {%s}", self.actuator_count, self.actuator_count,
      table.concat(u.dims, ", "))
  elseif u.rank == 2 and u.dims[1] ~= batch then
    is.fail("world:settle: signals {%d, %d} are for batch = %d, got %s", u.dims[1], u.dims[2], u.dims[1],
      batch or "none")
  end
  local numbers = u:data()
  for k = 0, u.count - 1 do
    if numbers[k] ~= numbers[k] or math.abs(numbers[k]) == math.huge then
      is.fail("world:settle: signals must be finite, got %g", numbers[k])
    end
  end
  if self.actuator_count == 0 then return nil end
  local shape = u:shape()
  table.insert(shape, #shape, count)
  return require("cq.controller").open_loop(u:unsqueeze(-2):expand(shape))
end

---Where bodies come to rest under gravity, walls and constant signals: an equilibrium, found in one implicit step
---without inertia from where they start. The weights of the grid stay those of the start, so that cells which a body
---crosses leave no trace; `updates` renews them. Pressure follows its surface; forces of one's own and cables are those
---at the start, but for cq.Implicit { cables = "implicit" }, by which a body may hang. Velocities and viscosity play no
---part. The state's velocities are displacements over dt, or 0 with formulation = "total_lagrangian"; its momentum and
---kinetic energy are 0. To go on from rest, give a rollout robot:with { position = state:positions(), deformation =
---state:deformations() }; with total Lagrangian steps its grid then lies over the deformed body, which in thin walls
---rests elsewhere. Signals beyond [-1, 1] are not cut off; gravity is that at time 0. Differentiable like a rollout.
---Errors: a world of explicit steps; materials that flow or relax, and walls that move, for rest then depends on the
---way; signals of another shape than {signals}; no convergence, as of a body that nothing holds, or too much pressure.
---@param fields? world.settle.def
---@return cq.State state
---@return cq.Rollout rollout   with its solver
function World:settle(fields)
  require_open(self, "world:settle")
  if not self.def.integrator then steps.fail_settle(self.layout.formulation) end
  for k, wall in ipairs(self.walls) do
    if wall.velocity or wall.velocity_at or wall.motion then
      is.fail("world:settle: wall %d moves; nothing comes to rest on it", k)
    end
  end
  local def = settle_spec(fields or {})
  local count = 1 + def.updates
  local controller = def.signals and held_signals(self, def.signals, def.batch, count)
  local roll = require("cq.rollout").run(self:still(), {
    steps = count, batch = def.batch, robot = def.robot, controller = controller, contact = def.contact,
    gravity = self.gravity_at and self.gravity_at(0),
  })
  return roll.state, roll
end

---Runs scenes through control steps: one differentiable operation within a function of cq.value_and_grad; elsewhere
---nothing is remembered. The observer sees the state before each control step, running and record that after it. With
---a batch readouts of a state have the scene as first dimension, and what has all control steps as second one.
---Errors: a field that is not finite or has another shape than it must; signals that are not finite; a simulation
---that fails, with the control step, particle, group and what to do; a Courant number above 1 by the robot's values.
---@param fields world.rollout.def
---@return cq.Rollout
function World:rollout(fields)
  require_open(self, "world:rollout")
  return require("cq.rollout").run(self, fields)
end

---Draws a rollout, as run:render does that of an experiment; without steps or duration, a picture of the start.
---
---  world:render("fall.mp4", { duration = 2 })
---  world:render "start.png"
---@param path string        ends in .mp4, .mkv, .webm, .gif or .png; a name without a slash is in the run's folder
---@param options? world.render.def
---@return string? path      nil where nothing is drawn: with --render no, in cqlua check, on all ranks but the first
function World:render(path, options)
  require_open(self, "world:render")
  return World._film(self, path, options)
end

---Runs observer and controller once on the state that rollouts start from, so that the controller makes its parameters.
---@internal
---@param def { controller: any, observer: any, robot: cq.Robot? }
function World:ask(def)
  require_open(self, "world:rollout")
  require("cq.rollout").ask(self, def)
end

---@class world.memory_plan.def
---@field steps integer             control steps
---@field batch? integer            independent scenes
---@field memory? string|number     as "2 GiB", or bytes; three quarters of what is free unless given

local plan_spec = is.define("world:memory_plan", {
  steps = is.integer { min = 1, max = 2 ^ 31 - 1 }, batch = is.integer { min = 1, max = C.CQ_BATCH_MAX, default = 1 },
  memory = is.any { optional = true },
})
---What a differentiable rollout would take: bytes, and how often each control step is computed for lack of memory. The
---engine takes that memory now, and keeps it for the next rollout.
---@param fields world.memory_plan.def
---@return { bytes: number, record_bytes: number, slice_bytes: number, records: integer, checkpoints: integer, recompute: number, text: string }
function World:memory_plan(fields)
  require_open(self, "world:memory_plan")
  local def = plan_spec(fields)
  local owner = {}
  local entry = self.pool:acquire(owner, {
    batch = def.batch, steps = memory.pieces(self, def.steps, "world:memory_plan"), differentiable = true,
    memory = memory.budget(def.memory, "world:memory_plan: memory", self),
  })
  -- the engine plans when a rollout begins, and keeps the memory for the next one
  local status = C.cq_rollout_begin(entry.handle)
  local out = memory.plan(entry.handle)
  entry.owner[1] = nil
  engine.check(status, "world:memory_plan")
  return out
end

---Seconds that the engine spent in each phase since the world was made, or since the last reset.
---@param reset? boolean     gives these seconds, and counts from 0 again
---@return table<string, number>    [s] by the name of the phase
function World:timers(reset)
  require_open(self, "world:timers")
  local seconds, out = ffi.new("double[?]", C.CQ_PHASE_COUNT), {}
  C.cq_world_timers(self.handle, seconds, reset and 1 or 0)
  for phase = 0, C.CQ_PHASE_COUNT - 1 do out[ffi.string(C.cq_phase_name(phase))] = seconds[phase] end
  return out
end

---The world in numbers, for people and logs.
---@return { device: string, particles: integer, signals: integer, walls: integer, courant: number, substeps: integer, precision: string }
function World:info()
  return {
    device = self.device, particles = self.particle_count, signals = self.actuator_count, walls = #self.walls,
    courant = self.courant, substeps = self.substeps, precision = self.precision,
  }
end

-- The kinds of steps of a world that are not the usual ones, in words.
local function steps_of(def, formulation)
  local kinds = { total_lagrangian = ", total Lagrangian", ["by robot"] = ", formulation by robot" }
  return (kinds[formulation] or "") .. (def.integrator and ", " .. def.integrator.scheme:gsub("_", " ") or "")
end

-- The world in one line: cells, particles, signals, steps, precision.
function World:__tostring()
  return ("cq.World { %s cells, %s, %s, dt %s x %d, Courant number %.2g, %s%s }"):format(
    table.concat(self.cells, " x "), text.count(self.particle_count, "particle"),
    text.count(self.actuator_count, "signal"), text.number(self.control_dt), self.substeps, self.courant,
    self.precision, steps_of(self.def, self.layout.formulation))
end

method.guard(World, "world")
World.new = new

return setmetatable({ class = World }, { __call = new })
