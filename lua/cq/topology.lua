-- topology: a body, its muscles and their timing from one block of particles: 4D topology optimization (Yuhn, Sato,
-- Kobayashi, Kawamoto, Nomura). Equation numbers are the paper's.
--
--   local design = cq.Topology {
--     world = world, duration = 0.5, connected = true,
--     filter = { radius = 0.015 }, pulses = { interval = 0.002, width = 0.01, gain = 0.2 },     -- have defaults
--   }
--   local run = cq.Experiment { world = world, duration = 0.5, design = design, objective = ... }
--   run:optimize { plan = cq.Plan.topology {} }
--   run.body:save_surface "body.stl"
--
-- The robot of the world is the block, with cq.Actuator.isotropic { count = signals }. A positive pulse expands. Each
-- part of the map can be used alone: cq.Topology.filter, .projection, .interpolation, .layout, .pulses.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local made = require "cq.base.made"
local text = require "cq.base.text"
local T = require "cq.tensor"
local controllers = require "cq.controller"
local field = require "cq.base.field"
local values = require "cq.robot.values"
local material = require "cq.topology.material"
local discreteness = require "cq.topology.discreteness"
local components = require "cq.topology.components"
local bound = require "cq.topology.bound"
local renamed = is.renamed
local variables = require "cq.topology.variables"
local tables = require "cq.base.tables"

---@class cq.Topology
---@field params { density: cq.Tensor, layout: cq.Tensor, sign: cq.Tensor, magnitude: cq.Tensor }   variables: {n} in
---  [-1, 1], {signals + 1, n}, and of pulses {pulses, signals} each, in [-1, 1]
---@field world cq.World
---@field robot cq.Robot               the block, as it is placed in the world
---@field signals integer              of the block
---@field spacing number              between particles, of the mean of their volumes [length]
---@field length number               of a square, or cube, of the block's volume [length]
---@field wave_speed number           the largest in the world, in solid material [length/time]
---@field filter cq.Topology.Filter
---@field pulses cq.Topology.Pulses
local Topology = { __name = "cq.Topology" }
Topology.__index = Topology

---@class cq.TopologyModule
---@overload fun(fields: cq.Topology.def): cq.Topology
local topology = {
  class = Topology, filter = require "cq.topology.filter", projection = material.projection,
  interpolation = material.interpolation,
  layout = require "cq.topology.layout", pulses = require "cq.topology.pulses",
}

-- ---- construction ---------------------------------------------------------------------------------------------------

local material_spec = is.define("cq.Topology: design material", {
  sharpness = is.number { above = 0, default = 4 }, threshold = is.number { above = -1, below = 1, default = 0 },
  min_density = is.number { above = 0, below = 1, default = 1e-8 },
  stiffness_exponent = is.number { min = 1, default = 2 }, mass_exponent = is.number { min = 1, default = 1 },
  actuation_exponent = is.number { min = 1, default = 3 },
}, nil, renamed { void = "min_density", power = "stiffness_exponent", mass_power = "mass_exponent",
  actuation_power = "actuation_exponent" })
local filter_spec = is.define("cq.Topology: design filter",
  { radius = is.number { above = 0, optional = true }, power = is.number { above = 0, default = 2 } })
local layout_spec = is.define("cq.Topology: design layout", { sharpness = is.number { above = 0, default = 4 } })
local pulses_spec = is.define("cq.Topology: design pulses", {
  interval = is.number { above = 0, optional = true }, width = is.number { above = 0, optional = true },
  gain = is.number { above = 0, optional = true }, period = is.number { above = 0, optional = true },
  initial_deviation = is.number { min = 0, default = 0.1 },
}, nil, renamed { every = "interval", height = "gain", deviation = "initial_deviation" })
local spec = is.define("cq.Topology", {
  world = is.instance "cq.World", robot = is.instance { "cq.Robot", optional = true },
  duration = is.number { above = 0 },
  filter = is.table { default = {} }, material = is.table { default = {} }, layout = is.table { default = {} },
  pulses = is.table { default = {} },
  solid_region = is.any_of { is.string(), is.list(is.any_of { is.string(), is.integer { min = 1 } }), optional = true },
  symmetry = is.table { optional = true }, connected = is.boolean { default = false },
  seed = is.integer { min = 0, optional = true },
}, nil, renamed { solid = "solid_region", one_piece = "connected" })

---@class cq.Topology.design.material.def
---@field sharpness? number           of the step from void to solid (b_sig of eq. 16); 4
---@field threshold? number           of the filtered variable, where the step is; 0
---@field min_density? number         share of density, stiffness and actuation that a void particle has; 1e-8
---@field stiffness_exponent? number  of stiffness over the design's density (eq. 12); 2
---@field mass_exponent? number       of density over the design's density (eq. 11); 1
---@field actuation_exponent? number  of the actuation (eq. 19): what is half solid acts less than by half; 3

---@class cq.Topology.design.filter.def
---@field radius? number            nothing farther than this counts; three spacings unless given [length]
---@field power? number             of the weight (1 - r / radius)^power; 2

---@class cq.Topology.design.layout.def
---@field sharpness? number         of the choice of a signal (b_soft of eq. 21); 4

---@class cq.Topology.design.pulses.def
---@field interval? number          between pulses, at least a control step; two of them unless given, or one where
---  two do not fill the duration or the period [time]
---@field width? number             standard deviation of a pulse, at least a control step; 0.7 length / wave_speed
---  unless given [time]
---@field gain? number              of a pulse, before tanh; interval / width unless given
---@field period? number            after which the pulses come again; a multiple of interval [time]
---@field initial_deviation? number   standard deviation of the first values; 0.1

-- Raises an error if the block's actuators are not signals that every particle could follow, for the design to choose
-- among.
local function check_actuators(robot)
  local fine = #robot.stresses > 0 and #robot.forces == 0 and #robot.stresses == robot.actuator_count
  for _, stress in ipairs(robot.stresses) do fine = fine and stress.weighed end
  if not fine then
    is.fail("cq.Topology: the actuators of %s must be signals that every particle can follow, as cq.Actuator.isotropic { count = 4, max = 1e4 }, got %s",
      robot.name, #robot.signals > 0 and table.concat(robot.signals, ", ") or "none")
  end
end

-- The values that a design scales by its density, as the solid material has them: a table of { value {count}, index }
-- for the material's density and for all constants that are stresses. index: numbers of the particles that have the
-- constant, nil for all. Errors: values by scene.
local function solid_values(robot)
  local out = {}
  for _, entry in ipairs(field.of_robot) do
    local is_stiffness = entry.owner == "constant" and entry.unit:find "^stress"
    if (is_stiffness or entry.name == "density") and robot.base[entry.name] then
      local having, start = values.having(robot, entry.name), values.start(robot, entry.name)
      if start.rank > 1 then
        is.fail("cq.Topology: the robot's %s has a value for each scene of a batch", entry.name)
      end
      out[entry.name] = { index = having and having.index, value = having and start:gather(having.index, 1) or start }
    end
  end
  return out
end

-- The particles `which` that are solid whatever the variables say, as a tensor {n} of 1 and 0; nil where `which` is
-- nil. what: for errors, the design's solid_region unless given.
local function solid_mask(robot, which, what)
  if not which then return nil end
  local index, count = robot:select(which, what or "cq.Topology: solid_region")
  local mask = T.zeros { robot.particle_count }
  for k = 0, count - 1 do mask:set(1, index[k] + 1) end
  return mask
end

---@class cq.Topology.design.symmetry.def
---@field axis "x"|"y"|"z"      that the mirror stands across, or that the body turns about
---@field order? 2|4           of a rotational symmetry: the same after half or a quarter of a turn about the middle
---  of the block, from x to y about z, from y to z about x, from z to x about y; a mirror unless given
---@field at? number           where on the axis a mirror is; the middle of the block unless given [length]
---@field signals? integer[]   for each signal the one that the image of its particles follows, as { 2, 1 }, or with an
---  order of 4 { 2, 3, 4, 1 }; itself unless given

---@class cq.Topology.def
---@field world cq.World               with the block
---@field robot? cq.Robot              the block, if it is not the first of the world's
---@field duration number              of the pulses; a multiple of a control step [time]
---@field filter? cq.Topology.design.filter.def      of densities and layout, so that nothing is smaller than its radius
---@field material? cq.Topology.design.material.def   from filtered variables to density, and from that to mass,
---  stiffness and actuation
---@field layout? cq.Topology.design.layout.def      which signal a particle follows
---@field pulses? cq.Topology.design.pulses.def      that signals are made of
---@field solid_region? string|(string|integer)[]        groups or particles that are solid whatever the variables say
---@field symmetry? cq.Topology.design.symmetry.def|cq.Topology.design.symmetry.def[]   bodies that are their own
---  mirror image, over one axis or several, or the same after a turn, to the last digit
---@field connected? boolean           once it is binary, its largest piece is all of the body: what else is solid is
---  void. Particles of a lattice are connected by the faces of their cells, others nearer than 1.5 spacings
---@field seed? integer                of the pulses' first values; the program's --seed, or 0, unless given

-- The graph of the block's particles that touch (components.touching). Errors: the block is in pieces.
local function whole_graph(self)
  local n, graph, largest = self.robot.particle_count, components.touching(self.robot, self.spacing)
  if largest < n then
    is.fail("cq.Topology: connected: the block itself is in pieces, the largest of %d of the %d particles, for others are farther from it than 1.5 spacings, %s",
      largest, n, text.number(1.5 * self.spacing))
  end
  return graph
end

-- The edge of the square, or cube, that has the mean or the sum of all particles' volumes, by `reduce`, "mean" or "sum"
-- [length].
local function size_of(robot, reduce)
  local volume = robot.volume[reduce](robot.volume):item()
  return robot.dim == 2 and math.sqrt(volume) or volume ^ (1 / 3)
end

-- Is `whole` a whole multiple of `part`, but for rounding?
local function is_multiple(whole, part)
  local count = whole / part
  return math.abs(count - math.floor(count + 0.5)) < 1e-6 * count
end

-- The definition for topology.pulses. Where def has no width, a pulse is as wide as the time in which a wave crosses
-- 0.7 of the block; interval and gain follow.
local function pulses_of(self, def)
  local duration, step = self.duration, self.world.control_dt
  local interval, width = def.interval, def.width or math.max(step, 0.7 * self.length / self.wave_speed)
  -- pulses that come again fit into the control steps of a finer grid, too
  if not interval then
    local fits = is_multiple(duration, 2 * step) and (not def.period or is_multiple(def.period, 2 * step))
    interval = fits and 2 * step or step
  end
  return { duration = duration, control_dt = step, interval = interval, width = width, gain = def.gain
    or interval / width, period = def.period }
end

-- What stays as it was given.
local FIXED = { "world", "robot", "duration", "filter", "pulses", "material", "layout", "solid_region", "symmetry",
  "connected", "seed" }

---A design: variables of every particle and pulse, and the map from them to a robot and its controller. Errors:
---actuators that particles cannot choose from; a filter with nothing to filter; times of pulses that do not fit;
---symmetry of a block without any; one piece of a block that is in pieces.
---@param fields cq.Topology.def
---@return cq.Topology
local function new(_, fields)
  local def = spec(fields)
  local self = setmetatable({ world = def.world, duration = def.duration }, Topology)
  self.robot = def.robot and require("cq.robot.selection").robot(def.world, def.robot, "cq.Topology") or def.world.robot
  check_actuators(self.robot)
  self.signals = self.robot.actuator_count
  self.spacing, self.length = size_of(self.robot, "mean"), size_of(self.robot, "sum")
  -- the Courant number is this speed, in cells an engine step
  self.wave_speed = def.world.courant * def.world.dx * def.world.substeps / def.world.control_dt
  local filter, pulses = filter_spec(def.filter), pulses_spec(def.pulses)
  self.filter = topology.filter { points = self.robot.position, radius = filter.radius or 3 * self.spacing,
    power = filter.power }
  self.pulses = topology.pulses(pulses_of(self, pulses))
  self:shape(material_spec(def.material), layout_spec(def.layout))
  self.solid_values, self.mask = solid_values(self.robot), solid_mask(self.robot, def.solid_region)
  self.fold, self.fold_words, self.images = require "cq.topology.symmetry"(self, def.symmetry)
  self.initial_deviation, self.seed = pulses.initial_deviation, def.seed
  self.graph = def.connected and whole_graph(self)
  self.remaining = {}                             -- world without void that is removed (topology/void_removal.lua)
  self.params = self:start()
  return made.remember(self, FIXED)
end

---@internal
---Sets projection, interpolations and layout from their settings, and forgets the last map, which was computed with
---other ones.
---@param of_material table     fields of `material`, all set
---@param of_layout table       fields of `layout`, all set
function Topology:shape(of_material, of_layout)
  self.material, self.layout_def = of_material, of_layout
  self.projection = topology.projection { sharpness = of_material.sharpness, threshold = of_material.threshold }
  for _, name in ipairs { "stiffness", "mass", "actuation" } do
    self[name] = topology.interpolation { min_density = of_material.min_density,
      exponent = of_material[name .. "_exponent"] }
  end
  self.layout = topology.layout(of_layout)
  self.cache = {}
end

---First values of the variables: the same density, and the same share of each signal and of none, everywhere; and small
---random pulses.
---@param seed? integer     of the pulses; the design's unless given
---@return { density: cq.Tensor, layout: cq.Tensor, sign: cq.Tensor, magnitude: cq.Tensor } params
function Topology:start(seed)
  local random = require "cq.random" { seed = seed or self.seed }
  local n, signals, count = self.robot.particle_count, self.signals, self.pulses.count
  -- Random initial variables of pulses, in [-1, 1].
  local function drawn()
    return T.param(random:normal({ count, signals }, { deviation = self.initial_deviation }):clamp(-1, 1),
      { min = -1, max = 1 })
  end
  return { density = T.param(T.zeros { n }, { min = -1, max = 1 }), layout = T.param(T.zeros { signals + 1, n }),
    sign = drawn(), magnitude = drawn() }
end

---@class design.with.def
---@field material? cq.Topology.design.material.def   fields that change
---@field layout? cq.Topology.design.layout.def       fields that change
---@field filter? cq.Topology.design.filter.def       fields that change
---@field rounding? "pulses"|"all"   pulses are whole or none; and particles solid or void too
---@field remove_void? boolean        with "all", void that has no solid within the filter's radius is left out of
---  what runs

local with_spec = is.define("design:with", {
  material = is.table { default = {} }, layout = is.table { default = {} },
  filter = is.table { default = {} },
  rounding = is.one_of { "pulses", "all", optional = true }, remove_void = is.boolean { optional = true },
}, nil, renamed { binary = "rounding", far_void = "remove_void" })

---The same design with other settings of material, layout or filter: as a stage of a plan makes its steps between void
---and solid sharper, or a robustness test makes its body thinner or thicker.
---
---With rounding = "pulses" a rollout has whole pulses or none, with the gradient of the smooth pulses, so that signals
---stay free to change while they are binary. With "all" particles are solid or void as well (void ones stay, with
---min_density), each of one signal or none. All exponents are 1 then, unless given: where density is 0 or 1 they
---change the gradient alone, and with any other value void particles would have none.
---
---With remove_void = true void is simulated only within the filter's radius of what is solid, or where a whole group
---is void: that is quicker, and gradients are less random. Particles that are left out cannot be read by their number,
---and state:positions() has no rows of them.
---@param changes design.with.def
---@return cq.Topology
function Topology:with(changes)
  local def, out = with_spec(changes), setmetatable(tables.merged(self), Topology)
  out.rounding = def.rounding or self.rounding
  if def.remove_void ~= nil then out.remove_void = def.remove_void end
  if def.remove_void and out.rounding ~= "all" then
    is.fail "design:with: remove_void = true is for rounding = \"all\": of a soft design all particles count"
  end
  local material_def = tables.merged(self.material, def.material)
  if out.rounding == "all" then
    for _, name in ipairs { "stiffness_exponent", "mass_exponent", "actuation_exponent" } do
      material_def[name] = def.material[name] or 1
    end
  end
  if next(def.filter) then
    local filter = filter_spec(tables.merged({ radius = self.filter.radius, power = self.filter.power }, def.filter))
    out.filter = topology.filter { points = self.robot.position, radius = filter.radius, power = filter.power }
  end
  out:shape(material_spec(material_def), layout_spec(tables.merged(self.layout_def, def.layout)))
  return out
end

-- ---- the map --------------------------------------------------------------------------------------------------------

---@internal
---Returns the variables of this design among params: params.design, or params itself. Errors: one is missing, or has
---a wrong shape.
function Topology:own(params)
  if type(params) ~= "table" or T.is_tensor(params) then
    is.fail("design: params must be a table as design.params, got %s", text.describe(params))
  end
  local own = params.design or params
  for _, name in ipairs { "density", "layout", "sign", "magnitude" } do
    local start = self.params[name]
    local wanted = table.concat(start:shape(), ", ")
    local got = T.is_tensor(own[name]) and table.concat(own[name]:shape(), ", ")
    if got ~= wanted then
      is.fail("design: params must have %s of shape {%s}, as design.params has it, got %s", name, wanted,
        got and "{" .. got .. "}" or text.describe(own[name]))
    end
  end
  return own
end

---@internal
---Does a design set this field of the robot, by its name?
function Topology:gives(name) return name == "actuation_weight" or self.solid_values[name] ~= nil end

-- The block with the values of a design, by robot:with: mass, stiffness and actuation of each particle by density and
-- shares.
local function robot_of(self, params, density, shares)
  local stiffness, mass, changes = self.stiffness(density), self.mass(density), {}
  variables.check_share(params, stiffness)
  variables.check_share(params, mass)
  for name, solid in pairs(self.solid_values) do
    local share = name == "density" and mass or stiffness
    changes[name] = (solid.index and share:gather(solid.index, 1) or share) * solid.value
  end
  -- positive stresses of actuators pull together, positive pulses expand
  changes.actuation_weight = -(shares:slice(1, self.signals) * self.actuation(density)):transpose()
  return self.robot:with(changes)
end

-- The numbers of the tensor round() with the gradient of the tensor `smooth`: a straight-through estimator.
local function rounded(smooth, round) return smooth + (T.tape.pause(round) - smooth:detach()) end

---A list of particle p and its images in a symmetric design, which has images of images as well.
---@internal
---@return integer[]
function Topology:with_images(p)
  local out = { p }
  for _, partner in ipairs(self.images or {}) do
    for k = 1, #out do out[#out + 1] = partner[out[k]] end
  end
  return out
end

---The particles of a body: those whose density {n} is above a threshold, and of these, if the design is `connected`,
---one piece: that with the solid region, else the largest, and its images.
---@internal
---@return cq.Tensor           {n} of 1 and 0
function Topology:body(density, threshold)
  local solid = density:greater(threshold)
  if not self.graph then return solid end
  local body = self.mask and components.around(self.graph, solid, self.mask) or components.largest(self.graph, solid)
  for p = 1, self.images and body.count or 0 do
    for _, image in ipairs(body:get(p) > 0 and self:with_images(p) or {}) do body:set(1, image) end
  end
  return body
end

-- Computes the table that Topology:map returns, from the variables: filter, symmetry, projection, masks; then signals
-- by layout, rounded if self.rounding says so. Its field `smooth`: density and shares before they were rounded.
local function evaluate(self, params)
  variables.check(params)
  local filtered, chosen = self.filter(params.density), self.filter(params.layout)
  if self.fold then filtered, chosen = self.fold(filtered), self.fold(chosen) end
  local density = self.projection(filtered)
  if self.mask then density = density * (1 - self.mask) + self.mask end
  local shares = self.layout(chosen)
  if self.fold then shares = self.fold(shares) end    -- signals that change places are summed in another order
  local amplitudes = self.pulses:amplitudes(params.sign, params.magnitude)
  local smooth = { density = density, shares = shares }
  if self.rounding == "all" then
    density = rounded(density, function() return self:body(density, 0.5) end)
    shares = rounded(shares, function()          -- of equal ones the first, as design:extract has it
      return T.arange(1, self.signals + 1):unsqueeze(2):equals(shares:argmax(1, true))
    end)
  end
  if self.rounding then
    amplitudes = rounded(amplitudes, function() return self.pulses:rounded(params.sign, params.magnitude) end)
  end
  local signals = self.pulses:signals(amplitudes)
  return {
    density = density, shares = shares, amplitudes = amplitudes, signals = signals, smooth = smooth,
    robot = robot_of(self, params, density, shares), controller = controllers.open_loop(signals),
  }
end

local VARIABLES = { "density", "layout", "sign", "magnitude" }

---What the variables stand for, with gradients to them: density {n} from 0 to 1, shares {signals + 1, n} of each signal
---and of none, amplitudes {pulses, signals}, signals {steps, signals}, and the robot and the controller of a rollout.
---Errors: a density, sign or magnitude outside of [-1, 1] by more than finite differences at a bound need.
---@param params table       as design.params
---@return { density: cq.Tensor, shares: cq.Tensor, amplitudes: cq.Tensor, signals: cq.Tensor, robot: cq.Robot,
---  controller: cq.Controller }
function Topology:map(params)
  made.require(self, "cq.Topology", "give it to the constructor, or to design:with, where that has such a field")
  params = self:own(params)
  -- objective and constraints of one evaluation share it
  local on, cache = T.tape.mark(), self.cache
  local is_same = on and cache.on == on
  for _, name in ipairs(VARIABLES) do is_same = is_same and cache[name] == params[name] end
  if is_same then return cache.map end
  local map = evaluate(self, params)
  if on then
    self.cache = { on = on, map = map }
    for _, name in ipairs(VARIABLES) do self.cache[name] = params[name] end
  end
  return map
end

---@class design.discreteness.def
---@field material? number     of density (1 - density), a share of the most that its mean can be
---@field layout? number       of the choice of signals
---@field pulses? number       of signs, and of magnitudes

-- A new checker of a share of a maximum, above 0 and at most 1.
local share = function() return is.number { above = 0, max = 1, optional = true } end
local discreteness_spec = is.define("design:discreteness", { material = share(), layout = share(), pulses = share() })

---Constraints that make a design binary, for cq.Experiment: bounds of the means that are 0 where every particle is
---solid or void (material), follows one signal or none (layout), and every pulse is whole or none (sign and
---magnitude); each a share of its maximum (eqs 22, 23, 27, 28).
---@param fields design.discreteness.def
---@return { name: string, at_most: number, of: fun(params: table): cq.Tensor }[]
function Topology:discreteness(fields) return discreteness.constraints(self, discreteness_spec(fields)) end

local volume_spec = is.define("design:volume", {
  at_most = is.number { above = 0, max = 1, optional = true },
  at_least = is.number { min = 0, below = 1, optional = true },
})

-- The share of a block's volume that is solid, by the densities before rounding, a tensor of rank 0. map: of
-- Topology:map.
local function solid_share(self, map)
  local volume = self.robot.volume
  return (map.smooth.density * volume):sum() / volume:sum()
end

---@class design.volume.def
---@field at_most? number      share of the block that may be solid: constraint volume
---@field at_least? number     share that must be: constraint void, on what is left of the block

---Bounds of the body's volume, as constraints for cq.Experiment, by its densities before they are rounded: a body that
---is extracted may have some more or less. Nothing else keeps a design from becoming a small part on legs that are
---nearly void. Errors: neither bound; at_least above at_most; at_most below what is always solid.
---@param fields design.volume.def
---@return { name: string, at_most: number, of: fun(params: table): cq.Tensor }[]
function Topology:volume(fields)
  local def = volume_spec(fields)
  local least, most, out = def.at_least or 0, def.at_most or 1, {}
  if not (def.at_most or def.at_least) then is.fail("design:volume: needs at_most, at_least or both, got neither") end
  local kept = self.mask and solid_share(self, { smooth = { density = self.mask } }):item() or 0
  if kept > most then
    is.fail("design:volume: at_most is %s, but what is solid whatever the variables say takes a share of %s",
      text.number(most), text.number(kept))
  end
  if least > most then
    is.fail("design:volume: at_least %s is more than at_most %s: no body has such a volume", text.number(least),
      text.number(most))
  end
  if def.at_most then
    out[1] = bound(self, "volume", most, function(map, _, design) return solid_share(design, map) end)
  end
  if def.at_least then
    out[#out + 1] = bound(self, "void", 1 - least, function(map, _, design) return 1 - solid_share(design, map) end)
  end
  return out
end

---@class design.connectivity.def
---@field at_most? number      share of the solid that may be disconnected
---@field radius? number       particles nearer than this touch; as for connected unless given [length]
---@field root? string|(string|integer)[]   groups or particles that the rest must hang together with; the largest
---  part that hangs together, of what is denser than half of the densest particle, unless given

local connected_spec = is.define("design:connectivity", {
  at_most = is.number { above = 0, below = 1, default = 0.01 }, radius = is.number { above = 0, optional = true },
  root = is.any_of { is.string(), is.list(is.any_of { is.string(), is.integer { min = 1 } }), optional = true },
})

---A bound of islands, constraint disconnected for cq.Experiment: the share of the solid that is not connected with the
---rest. It is found by a virtual problem of heat over particles that touch (after Li, Chen, Liu, Tong, SMO 54, 2016):
---the core of the body is warm, what is cold is disconnected. The adjoint is another such problem, and exact.
---Errors: a radius within which no particle touches another.
---@param fields? design.connectivity.def
---@return { name: string, at_most: number, of: fun(params: table): cq.Tensor }[]
function Topology:connectivity(fields)
  local def = connected_spec(fields or {})
  local root = def.root and solid_mask(self.robot, def.root, "design:connectivity: root")
  local measure = require "cq.topology.connectivity"(self, def.radius, root)
  return { bound(self, "disconnected", def.at_most, measure) }
end

---@class design.length_scale.def
---@field size number          that members have at least; three spacings or more [length]
---@field at_most? number      share of the solid that may lie in thinner members and sharp corners
---@field void? boolean        bound holes and gaps, constraint gap_size, and not members, constraint member_size

local length_scale_spec = is.define("design:length_scale", {
  size = is.number { above = 0 }, at_most = is.number { above = 0, below = 1, default = 0.05 },
  void = is.boolean { default = false },
})

---A bound of members that are thinner than a size, constraint member_size for cq.Experiment: the share of the solid
---that is gone when the body is eroded and dilated again by a disc (a ball) of that size, both as harmonic means
---(Svanberg, Svaerd, SMO 48, 2013). Corners of the body are thin too: a share of 0 is only kept by round ones. With
---void = true it bounds thin holes and gaps in their place, as constraint gap_size.
---Errors: a size below three spacings, or above that of the block.
---@param fields design.length_scale.def
---@return { name: string, at_most: number, of: fun(params: table): cq.Tensor }[]
function Topology:length_scale(fields)
  local def = length_scale_spec(fields)
  local measure = require "cq.topology.length_scale"(self, def.size, def.void, "design:length_scale")
  return { bound(self, def.void and "gap_size" or "member_size", def.at_most, measure) }
end

---@class design.extract.def
---@field threshold? number     particles above this density are solid, others are gone

---First values from another design of the same body, on another lattice or with other times between pulses: each
---particle takes the values of the nearest particle of the other design, each pulse those of the other's pulse at its
---time. So a design found on few particles is a start for many. Periodic pulses, if their period fits into the other's
---duration, are a start for any duration, with the same period or without one. Errors: other signals; another duration,
---or another period, than they can fill.
---@param other cq.Topology     with as many signals
---@param params table          of the other, as its params
---@return { density: cq.Tensor, layout: cq.Tensor, sign: cq.Tensor, magnitude: cq.Tensor } params
function Topology:transfer(other, params)
  local found = T.tape.pause(require "cq.topology.transfer", self, other, params)
  -- A parameter with bounds -1 and 1.
  local function bounded(x) return T.param(x:detach(), { min = -1, max = 1 }) end
  return { density = bounded(found.density), layout = T.param(found.layout:detach()), sign = bounded(found.sign),
    magnitude = bounded(found.magnitude) }
end

local extract_spec = is.define("design:extract", { threshold = is.number { min = 0, below = 1, default = 0.5 } })

---The body as it could be made: solid particles only, each with the signal of its largest share or none, and pulses of
----1, 0 and 1. run:evaluate and run:render take it as body, and a plan's extracted stages train its pulses.
---Errors: no particle is solid.
---@param params table     as design.params
---@param options? design.extract.def
---@return cq.Topology.Body
function Topology:extract(params, options)
  return require "cq.topology.body"(self, self:own(params), extract_spec(options or {}))
end

---Writes the design as it is, soft, as tables: a line for each particle with its place, density, actuator (0: none) and
---the shares of the signals; as NAME_pulses.csv a line for each pulse with the middle of its time and its amplitude for
---each signal; as NAME_signals.csv the signals of each control step. body:save does so with the body. A name
---without a slash is in the run's folder.
---Errors: a path that cannot be written.
---@param params table     as design.params
---@param path string      ends in .csv
---@return string[] paths  of the three files
function Topology:save(params, path)
  return require "cq.topology.save"("design:save", self, T.tape.pause(self.map, self, params), path)
end

-- The design in one line: particles, signals and variables.
function Topology:__tostring()
  local count = 0
  for _, tensor in pairs(self.params) do count = count + tensor.count end
  return ("cq.Topology { %s, %s, %s }"):format(text.count(self.robot.particle_count, "particle"),
    text.count(self.signals, "signal"),
    text.count(count, "variable"))
end

method.renamed(Topology, "design", { binarise = "extract", binary = "discreteness", resample = "transfer",
  member_size = "length_scale" })
method.guard(Topology, "design")

return setmetatable(topology, { __call = new })
