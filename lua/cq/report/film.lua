-- film: moments of a rollout for the page: positions in 14 bits, numbers of particles in 8, walls, cables, and curves
-- of signals and forces.
local ffi = require "ffi"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local colour = require "cq.base.colour"
local controllers = require "cq.controller"
local encode = require "cq.report.encode"
local lattices = require "cq.report.lattice"
local message = require "cq.base.message"
local of_particles = require "cq.state.values"
local paint = require "cq.picture.paint"
local parts = require "cq.picture.parts"
local scales = require "cq.picture.scale"
local visuals = require "cq.picture.visuals"
local surfaces = require "cq.report.surface"
local wall_motion = require "cq.rollout.wall_motion"
local walls = require "cq.report.wall"

local LEVELS = 2 ^ encode.BITS - 1
local FINEST = 1 / 32            -- of the particles' spacing: nobody sees less
local LARGE = 4e6                -- particles times frames that are kept whole
local CURVE = 1000               -- points of a curve
local NONE = 255                 -- the level of particles without a number, where there are any

---@class rollout.report.def
---@field frames? integer        moments, evenly spaced
---@field colour? any[]          what particles can be coloured by beside their groups and their speed, each as run:render's
---  colour; that of their actuators is there where the list is left out
---@field particles? "auto"|"all"|"surface"   auto: all, unless particles times frames are more than 4 million; then
---  those of the surface and those that flow
---@field title? string          the script's name unless given

local film = {}

---The checkers of the fields that definitions of reports share: frames, colour, particles and title.
---@internal
---@return table<string, cq.Checker>
function film.fields()
  return {
    frames = is.integer { min = 2, max = 100000, default = 120 },
    colour = is.list(is.any(), { default = { "signal" } }),
    particles = is.one_of { "auto", "all", "surface", default = "auto" },
    title = is.string { optional = true },
  }
end

local Film = {}
Film.__index = Film

---A film that records the states of a rollout, in order; of all control steps, def.frames at equal distances.
---@param def rollout.report.def
---@param steps integer          control steps of the rollout
---@return table
function film.new(def, steps)
  local self = setmetatable({ def = def, wanted = {}, times = {}, positions = {}, offsets = {}, channels = {} }, Film)
  local frames = math.min(def.frames, steps + 1)
  for k = 0, frames - 1 do
    self.wanted[frames == 1 and 0 or math.floor(k * steps / (frames - 1) + 0.5)] = true
  end
  for k, given in ipairs(def.colour) do
    local read, scale = visuals.colour(given)
    self.channels[k] = { read = read, scale = scale, frames = {}, given = given }
  end
  return self
end

-- A tensor's numbers as a new array float[n].
local function floats(tensor)
  local n, from = tensor.count, tensor:data()
  local out = ffi.new("float[?]", n)
  for i = 0, n - 1 do out[i] = from[i] end
  return out
end

---Records a state, unless it is not one of the film's moments.
---@param state cq.State
---@param u? cq.Tensor           signals of its control step
function Film:see(state, u)
  state.roll.phase = nil                -- what fails here is no on_step of the user's
  if not self.wanted[state.index] then return end
  if not self.world then
    self.world = state.world
    self.rest, self.volume = of_particles.undeformed(state)
    local _, red = visuals.red(state)
    self.red = red
  end
  self.times[#self.times + 1] = state.time
  self.positions[#self.times] = floats(state:positions())
  self.offsets[#self.times] = wall_motion.way(state, 0) or false
  for _, channel in ipairs(self.channels) do
    channel.frames[#self.times] = floats(T.as_tensor(channel.read(state, u)))
  end
end

-- ---- particles ------------------------------------------------------------------------------------------------------

-- The distance of neighbours in the lattice of a body (of parts.bodies), from the largest of its particles' volumes
-- {n}, since some parts may have been filled more closely.
local function spacing_of(volume, body, dim)
  local most, data = 0, volume:data()
  for p = body.first - 1, body.first + body.count - 2 do most = math.max(most, data[p]) end
  return most ^ (1 / dim)
end

-- A list { first: particle from 0, count, loose, spacing } of the bodies of a world. loose: true, or a list of the
-- particles that flow.
local function bodies_of(world, volume)
  local out = {}
  for k, body in ipairs(parts.bodies(world, true)) do
    out[k] = { first = body.first - 1, count = body.count, loose = body.loose,
      spacing = spacing_of(volume, body, world.dim) }
  end
  return out
end

-- The set of particles that cables run through, by number from 0: a film keeps them where it leaves others out.
local function cabled(world)
  local out = {}
  for _, entry in ipairs(world.layout.cable.list) do
    for _, point in ipairs(entry.cable.points) do
      for _, p in ipairs(point.index or {}) do out[entry.robot.first + p] = true end
    end
  end
  return out
end

-- The cq.Report.lattice of the particles that the film shows: all; or where these are too many, or the user wants it,
-- those on the surface, of which every n-th if they are too many. Those that cables run through stay. A note says so.
local function lattice_of(self, bodies)
  local world, rest, def = self.world, self.rest:data(), self.def
  local through = cabled(world)
  local n, frames, dim = world.particle_count, #self.times, world.dim
  local thin = def.particles == "surface" or def.particles == "auto" and n * frames > LARGE
  if not thin then return lattices.new(rest, dim, bodies) end
  local out = lattices.new(rest, dim, bodies, function(p, outer) return outer or through[p] end)
  message.note("of %s the report has those of the surface, %d; particles = \"all\" keeps all",
    text.count(n, "particle"), out.count)
  local most = math.max(1000, math.floor(LARGE / frames))
  if def.particles ~= "auto" or out.count <= most then return out end
  local every, kept = math.ceil(out.count / most), 0
  message.note("the surface alone has too many for %d frames: the report has one of %d", frames, every)
  return lattices.new(rest, dim, bodies, function(p, outer)
    if outer then kept = kept + 1 end
    return through[p] or outer and kept % every == 0
  end)
end

-- ---- what the page is given -----------------------------------------------------------------------------------------

-- A number rounded to `digits` digits (6), so that its text is short.
local function short(x, digits) return tonumber((("%%.%dg"):format(digits or 6)):format(x)) end

-- The least and the largest coordinate along axis d, from 0, of n particles over all frames, arrays of n dim numbers.
local function range(frames, n, dim, d)
  local lower, upper = math.huge, -math.huge
  for _, x in ipairs(frames) do
    for p = d, n * dim - 1, dim do
      local value = x[p]
      if value - value == 0 then lower, upper = math.min(lower, value), math.max(upper, value) end
    end
  end
  return lower, upper
end

-- The size of the bodies at first: the length of the diagonal of the box around all particles.
local function extent_of(self)
  local sum, dim = 0, self.world.dim
  for d = 0, dim - 1 do
    local lower, upper = range({ self.positions[1] }, self.world.particle_count, dim, d)
    sum = sum + (upper - lower) ^ 2
  end
  return short(math.sqrt(sum))
end

-- Compresses the positions of all frames in integer levels of encode.BITS bits. Returns { origin, upper corner,
-- quantum: size of a level along each axis, pieces: numbers of the page's texts }. add(text): adds a text to the page.
local function positions_of(self, lattice, bodies, by, add)
  local dim, n, frames, order = self.world.dim, self.world.particle_count, self.positions, lattice.order
  local origin, upper, quantum, spacing = {}, {}, {}, math.huge
  for _, body in ipairs(bodies) do spacing = math.min(spacing, body.spacing) end
  for d = 1, dim do
    origin[d], upper[d] = range(frames, n, dim, d - 1)
    quantum[d] = math.max((upper[d] - origin[d]) / LEVELS, FINEST * spacing)
  end
  local pieces = encode.film(#frames, dim, by, function(frame, d, out)
    local x, from, size = frames[frame + 1], origin[d + 1], quantum[d + 1]
    for k = 0, lattice.count - 1 do
      local level = math.floor((x[order[k] * dim + d] - from) / size + 0.5)
      out[k] = level >= 0 and level <= LEVELS and level or 0
    end
  end, 16)
  for k, piece in ipairs(pieces) do pieces[k] = add(piece) end
  return { origin = origin, upper = upper, quantum = quantum, pieces = pieces }
end

-- Is this channel the particles' own signals in a world where they are 0 throughout, as of a robot moved by cables? The
-- page leaves it out.
local function is_idle(self, channel)
  if channel.given ~= "signal" then return false end
  for _, values in ipairs(channel.frames) do
    for p = 0, self.world.particle_count - 1 do
      if values[p] ~= 0 then return false end
    end
  end
  return true
end

-- Has a list of frames, arrays of n numbers, one that is NaN, as of particles without the value?
local function has_gaps(frames, n)
  for _, values in ipairs(frames) do
    for p = 0, n - 1 do
      if values[p] ~= values[p] then return true end
    end
  end
  return false
end

-- Compresses a channel, a number by which particles can be coloured, in 8 bits: of each frame, or of one if it never
-- changes (`still`). Returns { label, unit, lower, upper, palette, categories, still, gaps: true where the level NONE
-- says that a particle has no number, pieces: numbers of the page's texts, signal, red: "contracts" or "expands" where
-- the legend says so }.
local function channel_of(self, channel, lattice, by, add)
  local n, frames, scale = self.world.particle_count, channel.frames, channel.scale
  scale.floor = scale.floor or visuals.floor(channel.given, self.world)
  local categories = scale.categories
  scale = scales.new(scale)
  if not categories then for _, values in ipairs(frames) do scale:see(values, n) end end
  local lower, upper = scale.lower, scale.upper
  if categories then lower, upper = 1, math.max(2, #categories) end
  local still, gaps = true, has_gaps(frames, n)
  local most = gaps and NONE - 1 or NONE
  for k = 2, #frames do
    still = still and ffi.string(frames[k], 4 * n) == ffi.string(frames[1], 4 * n)
  end
  local pieces = encode.film(still and 1 or #frames, 1, by, function(frame, _, out)
    local values = frames[frame + 1]
    for k = 0, lattice.count - 1 do
      local value = values[lattice.order[k]]
      local level = math.floor((value - lower) / (upper - lower) * most + 0.5)
      out[k] = value ~= value and NONE or level == level and math.max(0, math.min(most, level)) or 0
    end
  end, 8)
  for k, piece in ipairs(pieces) do pieces[k] = add(piece) end
  return { label = scale.label or ("colour %d"):format(channel.number), unit = scale.unit, lower = lower, upper = upper,
    palette = scale.palette, categories = categories, still = still, gaps = gaps or nil, pieces = pieces,
    signal = channel.given == "signal" or nil, red = visuals.says_red(channel.given) and self.red or nil }
end

-- Adds the particles' base colours, as pictures have them, as a text to the page: all red values, then green, then
-- blue. Returns the text's number.
local function colours_of(self, lattice, add)
  local base = paint.base(self.world.particle_count, parts.groups(self.world), parts.drawn(self.world))
  local count = lattice.count
  local out = ffi.new("uint8_t[?]", 3 * count)
  for k = 0, count - 1 do
    for c = 0, 2 do out[c * count + k] = base[3 * lattice.order[k] + c] end
  end
  return add(encode.bytes(out, 3 * count))
end

-- A list { name, colour } of up to 12 groups of particles, for the page's legend.
local function groups_of(world)
  local out = {}
  for k, entry in ipairs(parts.groups(world)) do
    if k <= 12 then out[k] = { name = entry.name, colour = paint.groups[(k - 1) % #paint.groups + 1] } end
  end
  return out
end

-- The radii with which particles are drawn: { largest [length], shares: number of the page's text with each radius as a
-- share of the largest in 8 bits; nil where all are about equal }.
local function radii_of(self, lattice, add)
  local n, volume, dim = lattice.count, self.volume:data(), self.world.dim
  local least, most, out = math.huge, 0, ffi.new("uint8_t[?]", n)
  -- Half the width of the k-th particle.
  local function size(k) return volume[lattice.order[k]] ^ (1 / dim) / 2 end
  for k = 0, n - 1 do least, most = math.min(least, size(k)), math.max(most, size(k)) end
  if most - least < 0.02 * most then return { largest = short(most) } end
  for k = 0, n - 1 do out[k] = math.floor(255 * size(k) / most + 0.5) end
  return { largest = short(most), shares = add(encode.bytes(out, n)) }
end

-- A list of cables, for each a list of its points: { particles = indices in the film, from 0, anchor = a place }.
local function cables_of(world, lattice)
  local at, out = {}, {}
  for k = 0, lattice.count - 1 do at[lattice.order[k]] = k end
  for c, entry in ipairs(world.layout.cable.list) do
    out[c] = {}
    for k, point in ipairs(entry.cable.points) do
      local list = {}
      for _, p in ipairs(point.index or {}) do list[#list + 1] = at[entry.robot.first + p] end
      out[c][k] = { particles = list, anchor = point.anchor }
    end
  end
  return out
end

-- ---- curves ---------------------------------------------------------------------------------------------------------

-- Appends a curve over time to the list out, a table for the page, with a series for each of the first 32 columns of
-- rows {steps, k}, row i at the time i dt, thinned to 1,000 points. def: { title, unit, factor = 1 }; names: a list, in
-- which a column without a name gets its number.
local function add_curves(out, def, rows, names, dt)
  local steps, count = rows:size(1), rows:size(2)
  local every = math.max(1, math.ceil(steps / CURVE))
  local x, series, data = {}, {}, rows:data()
  for i = 0, steps - 1, every do x[#x + 1] = short((i + 1) * dt) end
  for k = 1, math.min(count, 32) do
    local y = {}
    for i = 0, steps - 1, every do y[#y + 1] = short((def.factor or 1) * data[i * count + k - 1]) end
    series[k] = { name = names[k] or tostring(k), y = y }
  end
  out[#out + 1] = { title = def.title, unit = def.unit, x = x, x_label = "time", series = series, follows = true }
end

-- A list of the mean place of the particles at each moment, {x, y, z}, for a curve and the camera.
local function centres_of(self)
  local n, dim, out = self.world.particle_count, self.world.dim, {}
  for k, x in ipairs(self.positions) do
    out[k] = { 0, 0, 0 }
    for d = 1, dim do
      local sum = 0
      for p = d - 1, n * dim - 1, dim do sum = sum + x[p] end
      out[k][d] = short(sum / n)
    end
  end
  return out
end

-- A curve of the centre of the particles over time, with a series for each axis.
local function way_of(dim, times, centres)
  local series = {}
  for d = 1, dim do
    local y = {}
    for k, centre in ipairs(centres) do y[k] = centre[d] end
    series[d] = { name = ({ "x", "y", "z" })[d], y = y }
  end
  return { title = "centre of the particles", unit = "length", x = times, x_label = "time", series = series,
    follows = true }
end

-- A list of the curves under a film: the way of the centre, and signals and forces of walls where there are any.
local function curves_of(self, roll, times, centres)
  local world = self.world
  local out = { way_of(world.dim, times, centres) }
  local dt = world.control_dt
  if roll.signals and roll.signals.rank == 2 and roll.signals.count > 0 then
    add_curves(out, { title = "signals" }, roll.signals, controllers.signals_of(world), dt)
  end
  local contact = roll.contact
  if contact and contact.normal and contact.normal.count > 0 then
    local names = {}
    for k, wall in ipairs(world.walls) do
      names[k] = #world.walls > 1 and ("%s %d"):format(wall.family, k) or wall.family
    end
    local friction = contact.tangential:square():sum { 3 }:sqrt()
    add_curves(out, { title = "forces of walls, normal", unit = "force", factor = 1 / dt }, contact.normal, names, dt)
    add_curves(out, { title = "forces of walls, tangential", unit = "force", factor = 1 / dt }, friction, names, dt)
  end
  return out
end

---The data of the film for the page, after all its states were recorded.
---@param roll cq.Rollout
---@param add fun(text: string): integer     adds a text to the page, and returns its number
---@return table
function Film:finish(roll, add)
  local world = self.world
  local bodies = bodies_of(world, self.volume)
  local lattice = lattice_of(self, bodies)
  local by, channels, times, centres = encode.prediction(lattice), {}, {}, centres_of(self)
  for k, time in ipairs(self.times) do times[k] = short(time) end
  for k, channel in ipairs(self.channels) do
    channel.number = k
    if not is_idle(self, channel) then channels[#channels + 1] = channel_of(self, channel, lattice, by, add) end
  end
  local before = {}
  for d = 1, world.dim do before[d] = add(encode.integers(lattice.before[d], lattice.count)) end
  local list, ground = walls.list(world)
  local moves = self.offsets[#self.offsets] and self.offsets or nil
  return {
    dim = world.dim, count = lattice.count, total = world.particle_count, key = encode.KEY, times = times,
    positions = positions_of(self, lattice, bodies, by, add), before = before,
    numbers = add(encode.integers(lattice.order, lattice.count)),
    surface = surfaces.of(self, bodies, lattice, add),
    colours = colours_of(self, lattice, add), groups = groups_of(world), radius = radii_of(self, lattice, add),
    channels = channels, cables = cables_of(world, lattice), walls = list, ground = ground, wall_offsets = moves,
    centres = centres, extent = extent_of(self), curves = curves_of(self, roll, times, centres),
    world = tostring(world),
  }
end

---The colours of the page by their use: the same as those of pictures.
---@return table
function film.palettes()
  return { rising = colour.list(paint.scale), signed = colour.list(paint.signed), tension = colour.list(paint.tension),
    categories = colour.list(paint.categories), actuation = colour.list { paint.negative, paint.positive },
    lines = paint.lines }
end

return film
