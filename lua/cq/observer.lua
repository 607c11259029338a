-- observer: observers, functions from the state to the input of a controller.
--
--   cq.Observer.centroid { groups = { "leg", "trunk" }, velocity = true }
--   cq.Observer.kmeans { clusters = 7, velocity = true, clock = 2 }
--   function(state) return cq.concat { state:center "trunk", state:velocity "trunk" } end
--
-- An observer of one's own is a function of the state, or a table with observe(self, state, hidden), which gives
-- the observation and what it wants to be handed back at the next control step, and with start(self) for the
-- first hidden value. Weights of its own, cq.param tensors, stand in self.params: an experiment trains them
-- beside those of the controller.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local tables = require "cq.base.tables"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local readout = require "cq.state.readout"
local C = engine.C

---@class cq.Observer
---@field family string       which constructor made it
local Observer = { __name = "cq.Observer" }
Observer.__index = Observer

-- The observer in one line: its family.
function Observer:__tostring() return ("cq.Observer.%s"):format(self.family) end

local observer = { class = Observer }

-- A tensor {groups, dim}, or {batch, groups, dim}, as one row of numbers for each scene: {k} or {batch, k}.
local function row(tensor, state)
  if state.batched then return tensor:reshape { state.batch, -1 } end
  return tensor:flatten()
end

-- An observation {k} or {batch, k}, followed by the sines and cosines of the observer's clock, which are the same for
-- all scenes.
local function with_clock(self, observation, state)
  if not self.clock then return observation end
  local waves = {}
  for _, frequency in ipairs(self.clock) do
    local phase, most = 2 * math.pi * frequency * state.time, self.clock_amplitude
    waves[#waves + 1], waves[#waves + 2] = most * math.sin(phase), most * math.cos(phase)
  end
  local shown = T.tensor(waves)
  return T.concat({ observation, state.batched and shown:expand { state.batch, #waves } or shown }, -1)
end

-- ---- centroids ------------------------------------------------------------------------------------------------------

local Centroid = setmetatable({ __name = "cq.Observer", __tostring = Observer.__tostring }, { __index = Observer })
Centroid.__index = Centroid

-- Positions, then velocities, then accelerations of all groups, in a row {k} or {batch, k}. An acceleration is the
-- change of the mean velocity over the last control step, 0 at the first: with accelerations `hidden` is the velocity
-- of the step before, and the second result that of this step.
function Centroid:observe(state, hidden)
  local groups, parts, after = self:groups_of(state.world), {}, nil
  local by = { weight = self.weight }
  if self.position and self.velocity and not self.acceleration then
    return with_clock(self, state:motion(groups, by), state)
  end
  if self.position then parts[#parts + 1] = row(state:center(groups, by), state) end
  if self.velocity or self.acceleration then
    local v = row(state:velocity(groups, by), state)
    if self.velocity then parts[#parts + 1] = v end
    if self.acceleration then
      parts[#parts + 1] = hidden and (v - hidden) / state.world.control_dt or T.zeros(v:shape())
      after = v
    end
  end
  return with_clock(self, #parts == 1 and parts[1] or T.concat(parts, -1), state), after
end

-- The name of the quantity that an observer of positions, velocities or both reads from a state.
local function field_of(self) return self.position and (self.velocity and "motion" or "position") or "velocity" end

---The readouts by which the engine computes the observation itself, without Lua: what it observes, and the velocities
---whose change over a control step it observes. nil for an `observe` of the user's, and with a clock.
---@return table? observation, table? change
function Centroid:readouts(world)
  if self.observe ~= Centroid.observe or self.clock then return nil, nil end
  local groups = self:groups_of(world)
  return (self.position or self.velocity) and readout.row(world, "mean", field_of(self), groups, self.weight) or nil,
    self.acceleration and readout.row(world, "mean", "velocity", groups, self.weight) or nil
end

-- The groups of a world's particles as a cq.Selection, kept in the observer until another world is asked for.
function Centroid:groups_of(world)
  if self.world ~= world then
    self.world, self.selection = world, world:selection(self.groups, "cq.Observer.centroid")
  end
  return self.selection
end

---What is observed.
---@class cq.Observer.quantities.def
---@field position? boolean        [length]
---@field velocity? boolean        [length/time]
---@field acceleration? boolean    change of the velocity over the last control step, 0 at the first [length/time^2]

---A clock beside what is observed.
---@class cq.Observer.clock.def
---@field clock? number|number[]   frequencies f; the observation ends with sin(2 pi f t), cos(2 pi f t) of each [1/time]
---@field clock_amplitude? number  of these; 1 unless given

local clock = {
  clock = is.any_of { is.number { above = 0 }, is.vector { above = 0 }, optional = true },
  clock_amplitude = is.number { above = 0, optional = true },
}

local weight = is.one_of { "mass", "particle", "volume", default = "mass" }

local quantities = {
  position = is.boolean { default = true }, velocity = is.boolean { default = false },
  acceleration = is.boolean { default = false },
}

-- Raises an error if an observer observes nothing, or has an amplitude without a clock; fills in the fields of its
-- clock, frequencies as a list.
local function check_quantities(self, name)
  if not (self.position or self.velocity or self.acceleration) then
    is.fail("cq.Observer.%s: observes nothing; set at least one of %s", name,
      self.acceleration == nil and "position, velocity" or "position, velocity, acceleration")
  end
  if self.clock_amplitude and not self.clock then
    is.fail("cq.Observer.%s: clock_amplitude has no effect without clock, the clock's frequencies", name)
  end
  if type(self.clock) == "number" then self.clock = { self.clock } end
  self.clock_amplitude = self.clock and (self.clock_amplitude or 1)
end

---@class cq.Observer.centroid.def : cq.Observer.quantities.def, cq.Observer.clock.def
---@field weight? "mass"|"particle"|"volume"   of the means
---@field groups string|any[]      a group's name, or a list of names, lists of names, groups (cq.Group) or robots

local centroid = is.define("cq.Observer.centroid", tables.merged(quantities, clock, {
  groups = is.any_of { is.string(), is.list(is.any(), { min = 1 }) }, weight = weight,
}))
---Mean position, velocity and acceleration of groups: {groups * dim * quantities}, all positions first.
---@param fields cq.Observer.centroid.def
---@return cq.Observer
function observer.centroid(fields)
  local self = centroid(fields)
  check_quantities(self, "centroid")
  if type(self.groups) == "string" then self.groups = { self.groups } end
  self.family = "centroid"
  return setmetatable(self, Centroid)
end

-- ---- clusters -------------------------------------------------------------------------------------------------------

local Kmeans = setmetatable({ __name = "cq.Observer", __tostring = Observer.__tostring }, { __index = Centroid })
Kmeans.__index = Kmeans

-- The number of each particle's cluster, int32_t[n], from 0, by k-means of the positions at rest; -1 for those that are
-- not of the group. In a refined world a particle has the cluster of the original world's particle that it replaces,
-- since new clusters would have another order. Errors: more clusters than particles.
local function labels_of(self, world)
  local labels = ffi.new("int32_t[?]", world.particle_count, -1)
  if world.refines then
    local before = labels_of(self, world.refines)
    for p, source in ipairs(world.sources) do labels[p - 1] = before[source - 1] end
    return labels
  end
  local all, own = world:selection(self.group, "cq.Observer.kmeans"), {}
  for k = 0, all.total - 1 do
    local p = all.particles[k]
    -- groups of a list may overlap
    if labels[p] < 0 then own[#own + 1], labels[p] = p + 1, 0 end
  end
  local n, position = #own, world.layout.base.position:gather(own, 1)
  if self.clusters > n then
    is.fail("cq.Observer.kmeans: %d clusters are more than the %d particles", self.clusters, n)
  end
  local found = ffi.new("int32_t[?]", n)
  engine.check(C.cq_kmeans(n, world.dim, position:data(), self.clusters, self.seed, found), "cq.Observer.kmeans")
  for k, p in ipairs(own) do labels[p - 1] = found[k - 1] end
  return labels
end

-- A list of lists of the numbers of particles, from 1, one for each cluster.
local function cluster(self, world)
  local labels, lists = labels_of(self, world), {}
  for k = 1, self.clusters do lists[k] = {} end
  for p = 0, world.particle_count - 1 do
    if labels[p] >= 0 then table.insert(lists[labels[p] + 1], p + 1) end
  end
  return lists
end

-- The clusters of a world's particles as a cq.Selection, kept in the observer until another world is asked for.
function Kmeans:groups_of(world)
  if self.world ~= world then
    self.world, self.selection = world, world:remember_selection(cluster(self, world))
  end
  return self.selection
end

---@class cq.Observer.kmeans.def : cq.Observer.quantities.def, cq.Observer.clock.def
---@field clusters integer         so many groups of particles that lie near each other
---@field group? any               whose particles, as a robot, a group's name or a list of names; those of all robots unless given
---@field seed? integer            of the first centres; it does not follow --seed, so that a run has the clusters of another
---  one whose weights it takes over
---@field weight? "mass"|"particle"|"volume"   of the means

local kmeans = is.define("cq.Observer.kmeans", tables.merged(quantities, clock, {
  clusters = is.integer { min = 1 }, group = is.any { optional = true }, seed = is.integer { min = 0, default = 0 },
  weight = weight,
}))
---Like centroid, of clusters that k-means finds in the particles at rest: those of `group`, or of all robots of the
---world.
---@param fields cq.Observer.kmeans.def
---@return cq.Observer
function observer.kmeans(fields)
  local self = kmeans(fields)
  check_quantities(self, "kmeans")
  self.family = "kmeans"
  return setmetatable(self, Kmeans)
end

-- ---- particles ------------------------------------------------------------------------------------------------------

local Particles = setmetatable({ __name = "cq.Observer", __tostring = Observer.__tostring }, { __index = Observer })
Particles.__index = Particles

-- Positions, then velocities of the group, in a row {k} or {batch, k}.
function Particles:observe(state)
  local parts = {}
  if self.position then parts[1] = row(state:gather(self.group), state) end
  if self.velocity then parts[#parts + 1] = row(state:gather(self.group, "velocity"), state) end
  return with_clock(self, #parts == 1 and parts[1] or T.concat(parts, -1), state)
end

---The readout by which the engine computes the observation itself, as Centroid:readouts.
---@return table? observation
function Particles:readouts(world)
  if self.observe ~= Particles.observe or self.clock then return nil end
  return readout.row(world, "gather", field_of(self), world:selection(self.group, "cq.Observer.particles"))
end

---@class cq.Observer.particles.def : cq.Observer.clock.def
---@field group any                a group's name, a list of particle numbers from 1, a group (cq.Group) or a robot
---@field position? boolean        [length]
---@field velocity? boolean        [length/time]

local particles = is.define("cq.Observer.particles", tables.merged(clock, {
  group = is.any(), position = is.boolean { default = true }, velocity = is.boolean { default = false },
}))
---Positions and velocities of every particle of a group, as a motion capture sees them: {particles * dim * quantities}.
---@param fields cq.Observer.particles.def
---@return cq.Observer
function observer.particles(fields)
  local self = particles(fields)
  check_quantities(self, "particles")
  self.family = "particles"
  return setmetatable(self, Particles)
end

---An observer that learns what to see: the latent vector of a convolutional variational autoencoder of the body's
---velocity and density around it. Gradients go through it to the state, and to its weights where it is `trainable`.
---autoencoder:fit trains it, on pictures of before or between the iterations of a training.
---Errors: a window that the convolutions do not halve evenly; weights of other shapes.
---@param fields cq.Observer.autoencoder.def
---@return cq.Observer.Autoencoder
function observer.autoencoder(fields) return require "cq.observer.autoencoder"(fields) end

-- ---- user-written ---------------------------------------------------------------------------------------------------

-- A user's observation as a tensor. Errors: nothing, or no numbers.
local function check_observation(value)
  if type(value) ~= "number" and type(value) ~= "table" then
    is.fail("the observer must give a tensor, got %s", text.describe(value))
  end
  return T.as_tensor(value)
end

local Custom = {}
Custom.__index = Custom

-- A user's table with observe as an observer; it has start only if the table has.
local function of_table(own)
  local out = setmetatable({ table = own }, Custom)
  if own.start then out.start = function() return own:start() end end
  return out
end

---The parameters of the user's observer, as they are now.
---@return table?
function Custom:parameters() return self.table and self.table.params end

---The same observer with other parameters, which its functions find in self.params.
function Custom:with(params) return of_table(setmetatable({ params = params }, { __index = self.table })) end

-- The observation, a tensor, by the user's function or table, and the memory after it. Errors: no numbers.
function Custom:observe(state, hidden)
  local observation, after
  if self.f then
    observation, after = self.f(state, hidden)
  else
    observation, after = self.table:observe(state, hidden)
  end
  return check_observation(observation), after
end

---@internal
---An observer that sees the same and learns nothing: that of repeated simulations, as for pictures.
---@param given any         what a user may give as an observer
---@return any
function observer.quiet(given)
  local learns = text.is_instance(given, "cq.Observer") and given.family == "autoencoder"
  return learns and given.collect > 0 and given:quiet() or given
end

---@internal
---An observer from the user's value: a cq.Observer, a function, or a table with observe. Errors: a wrong value.
---@param given any
---@param what string     for errors
---@return table
function observer.of(given, what)
  if text.is_instance(given, "cq.Observer") or getmetatable(given) == Custom then return given end
  if type(given) == "table" and type(given.observe) == "function" then return of_table(given) end
  if text.is_callable(given) then return setmetatable({ f = given }, Custom) end
  is.fail("%s: observer must be one of cq.Observer, a function of the state, or a table with a method observe, got %s",
    what, text.describe(given))
end

return observer
