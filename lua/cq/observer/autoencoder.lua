-- autoencoder: an observer that learns what to see: a convolutional variational autoencoder (Kingma and Welling,
-- Auto-encoding variational Bayes, 2014) of the body's velocity and density on a grid around it, whose latent vector is
-- the observation.
--
--   local eye = cq.Observer.autoencoder { window = { 64, 64 }, latent = 8, collect = 10 }
--   world:rollout { steps = 400, controller = gait, observer = eye }      -- keeps each tenth picture
--   eye:fit { optimizer = cq.Optimizer.adam { rate = 1e-3 }, iterations = 200 }
--
-- Encoder: for each number of `layers` a convolution 4 x 4 of stride 2 with so many channels, then a dense layer and
-- the mean of the latent vector, with its log variance beside it where beta > 0. Decoder: the same backward by
-- transposed convolutions. Velocity and density are divided by their root mean squares in the first pictures that are
-- fitted.
local is = require "cq.base.schema"
local method = require "cq.base.method"
local option = require "cq.option"
local tables = require "cq.base.tables"
local text = require "cq.base.text"
local T = require "cq.tensor"
local random = require "cq.random"
local shape_text = require("cq.tensor.class").shape_text

local TAPS, STRIDE, PADDING = 4, 2, 1
local BACKGROUND = 0.1        -- weight of the error of a pixel without mass
local FLOOR = 1e-2            -- of the density at rest, below which a velocity fades out

---@class cq.Observer.Autoencoder : cq.Observer
---@field weights table<string, cq.Tensor>
---@field pictures cq.Tensor?     those that were collected {replay, channels, ...}; the first `collected` count
---@field collected integer       pictures that there are
local Autoencoder = { __name = "cq.Observer" }
Autoencoder.__index = Autoencoder

-- The observer that keeps the pictures of this one: of a copy by autoencoder:with the original.
local function keeper(self) return self.original or self end

-- The observer in one line: window, channels, latent numbers and pictures collected.
function Autoencoder:__tostring()
  return ("cq.Observer.autoencoder { %s, %s, latent %d, %s collected }"):format(table.concat(self.window, " x "),
    table.concat(self.channels, ", "), self.latent, text.count(keeper(self).collected, "picture"))
end

-- ---- pictures -------------------------------------------------------------------------------------------------------

-- The number of channels of the pictures: velocity has one for each axis, others one.
local function channel_count(self)
  local count = 0
  for _, name in ipairs(self.channels) do count = count + (name == "velocity" and #self.window or 1) end
  return count
end

-- The shape {channels, height, width} of a picture, in 3D {channels, depth, height, width}, after the first `layers`
-- convolutions.
local function shape_after(self, layers)
  local out = { layers > 0 and self.layers[layers] or channel_count(self) }
  for d = #self.window, 1, -1 do out[#out + 1] = self.window[d] / STRIDE ^ layers end
  return out
end

-- Allocates the memory that keeps collected pictures, zeros {replay, channels, ...}, once.
local function reserve(self)
  if not self.pictures then self.pictures = T.zeros { self.replay, unpack(shape_after(self, 0)) } end
end

-- The mass of a world's bodies at rest divided by their volume.
local function density_of(world)
  local base = world.layout.base
  return base.mass:sum():item() / base.volume:sum():item()
end

---What the encoder sees of a state, its channels: velocity, and density relative to that at rest, of each pixel.
---Errors: another dimension than the window.
---@param state cq.State
---@return cq.Tensor     {channels, rows, columns}, or {batch, ...}; in 3D {channels, depth, rows, columns}
function Autoencoder:picture(state)
  is.argument("autoencoder:picture", "state", is.instance "cq.State", state)
  local dim = state.world.dim
  if #self.window ~= dim then
    is.fail("cq.Observer.autoencoder: window has %d numbers, the world is %dD", #self.window, dim)
  end
  local own = keeper(self)
  own.spacing = own.spacing or state.world.dx           -- of the first world, also where it sees another one later
  local both = state:raster(self.group, { size = self.window, spacing = own.spacing, center = self.center,
    particles = self.particles })
  local first, rest = state.batched and 2 or 1, density_of(state.world)
  local density, parts = both:slice(1, 1, first), {}
  for k, name in ipairs(self.channels) do
    parts[k] = name == "density" and density / rest
      or both:slice(2, 1 + dim, first) / (density + FLOOR * rest)
  end
  return #parts == 1 and parts[1] or T.concat(parts, first)
end

-- Keeps the pictures of a state in the place of the oldest, at control steps that are multiples of self.collect. The
-- backward pass of a rollout asks again for control steps that were collected already: these are passed over.
local function collect(copy, state, picture)
  local self = keeper(copy)
  local last = self.last
  if last.roll == state.roll and state.step <= last.step then return end
  last.roll, last.step = state.roll, state.step
  if state.step % self.collect ~= 0 then return end
  local frames = (state.batched and picture or picture:unsqueeze(1)):detach()
  reserve(self)
  for k = 1, frames:size(1) do
    local at = self.made % self.replay + 1
    if self.taken then self.taken[#self.taken + 1] = { at = at, before = self.pictures[at]:copy() } end
    self.pictures[at] = frames[k]
    self.made = self.made + 1
  end
  self.collected = math.min(self.made, self.replay)
end

---@internal
---Begins an evaluation, whose pictures autoencoder:end_evaluation forgets if it failed.
function Autoencoder:begin_evaluation()
  local own = keeper(self)
  own.taken, own.spacing_before = {}, own.spacing
end

---@internal
---Ends an evaluation. The pictures of one that failed, and is made again, are forgotten.
---@param failed boolean
function Autoencoder:end_evaluation(failed)
  local own = keeper(self)
  local taken = own.taken
  own.taken = nil
  if not failed then return end
  for k = #taken, 1, -1 do own.pictures[taken[k].at] = taken[k].before end
  own.made = own.made - #taken
  own.collected = math.min(own.made, own.replay)
  own.last.roll, own.last.step, own.spacing = nil, nil, own.spacing_before
end

-- ---- the network ----------------------------------------------------------------------------------------------------

-- A convolution of x in 2D or 3D, by the rank of its kernel w, plus the bias b, through an activation.
local function conv(x, w, b, activation)
  local name = w.rank == 5 and "conv3d" or "conv2d"
  return x[name](x, w, { bias = b, stride = STRIDE, padding = PADDING, activation = activation })
end

-- The transposed convolution likewise.
local function conv_transpose(x, w, b, activation)
  local name = w.rank == 5 and "conv_transpose3d" or "conv_transpose2d"
  return x[name](x, w, { bias = b, stride = STRIDE, padding = PADDING, activation = activation })
end

-- Initial weights by He's rule, tensors by name, with biases of zero.
local function draw(self)
  local weights, source, param = {}, random { seed = self.seed }, self.trainable and T.param or T.tensor
  -- Adds a layer: weights drawn for its number of inputs, and biases of zero.
  local function layer(name, shape, inputs, outputs)
    weights["w_" .. name] = param(source:normal(shape, { deviation = math.sqrt(2 / inputs) }))
    weights["b_" .. name] = param(T.zeros { outputs })
  end
  -- The shape of a kernel from `a` to `b` channels, and its number of taps.
  local function taps(a, b)
    local shape = { a, b }
    for _ = 1, #self.window do shape[#shape + 1] = TAPS end
    return shape, TAPS ^ #self.window
  end
  for k = 1, #self.layers do
    local before, after = shape_after(self, k - 1)[1], self.layers[k]
    local shape, area = taps(after, before)
    layer("conv" .. k, shape, before * area, after)
    -- each output of a transposed one has 2^dim times fewer taps
    layer("back" .. k, shape, after * area / STRIDE ^ #self.window, before)
  end
  local flat, latent = tables.product(shape_after(self, #self.layers)), self.latent
  local hidden = self.dense > 0 and self.dense or flat
  if self.dense > 0 then
    layer("dense", { flat, hidden }, flat, hidden)
    layer("undense", { hidden, flat }, hidden, flat)
  end
  local encoded = self.beta > 0 and 2 * latent or latent
  layer("latent", { hidden, encoded }, 2 * hidden, encoded)
  layer("unlatent", { latent, hidden }, latent, hidden)
  return weights
end

-- The scale of each channel, a tensor shaped so that it divides pictures {n, channels, ...}.
local function expand_scale(self)
  local shape = { channel_count(self) }
  for d = 1, #self.window do shape[1 + d] = 1 end
  return self.weights.scale:reshape(shape)
end

-- Raises an error if a value is no tensor of rows {n, shape...} with n above 0. what: its name.
local function require_shape(rows, shape, what)
  local fits = T.is_tensor(rows) and rows.rank == #shape + 1 and rows:size(1) > 0
  for d = 1, #shape do fits = fits and rows:size(d + 1) == shape[d] end
  if not fits then
    is.fail("autoencoder: %s must be {n, %s}, got %s", what, table.concat(shape, ", "),
      T.is_tensor(rows) and shape_text(rows:shape()) or text.describe(rows))
  end
end

---Mean and log variance of the latent vectors of pictures, {n, latent} each; no log variance where beta is 0. Errors:
---another shape.
---@param pictures cq.Tensor     {n, channels, ...}
---@return cq.Tensor mean
---@return cq.Tensor? log_variance
function Autoencoder:encode(pictures)
  require_shape(pictures, shape_after(self, 0), "pictures")
  local w, x = self.weights, pictures / expand_scale(self)
  for k = 1, #self.layers do x = conv(x, w["w_conv" .. k], w["b_conv" .. k], "relu") end
  x = x:reshape { pictures:size(1), -1 }
  if self.dense > 0 then x = x:dense(w.w_dense, w.b_dense, "relu") end
  local both = x:dense(w.w_latent, w.b_latent)
  if self.beta == 0 then return both end
  return both:slice(1, self.latent, 2), both:slice(self.latent + 1, 2 * self.latent, 2)
end

-- Pictures {n, channels, ...} from latent numbers {n, latent}, in units of each channel's scale.
local function decode_scaled(self, z)
  local w = self.weights
  local deep = self.dense > 0 or #self.layers > 0
  local x = z:dense(w.w_unlatent, w.b_unlatent, deep and "relu" or "none")
  if self.dense > 0 then x = x:dense(w.w_undense, w.b_undense, #self.layers > 0 and "relu" or "none") end
  local shape = shape_after(self, #self.layers)
  table.insert(shape, 1, z:size(1))
  x = x:reshape(shape)
  for k = #self.layers, 1, -1 do
    x = conv_transpose(x, w["w_back" .. k], w["b_back" .. k], k > 1 and "relu" or "none")
  end
  return x
end

---Pictures from latent vectors. Errors: another shape.
---@param z cq.Tensor            {n, latent}
---@return cq.Tensor             {n, channels, ...}
function Autoencoder:decode(z)
  require_shape(z, { self.latent }, "latent vectors")
  return decode_scaled(self, z) * expand_scale(self)
end

-- Raises an error if weights are no table of tensors by name, or those named in a list `names` lack one of the
-- autoencoder's own, are none of them, or have another shape.
local function check_weights(self, given, names)
  if type(given) ~= "table" or T.is_tensor(given) then
    is.fail("cq.Observer.autoencoder: weights must be a table of tensors by name, got %s", text.describe(given))
  end
  for _, name in ipairs(names) do
    local own, other = self.weights[name], given[name]
    if not own then is.fail("cq.Observer.autoencoder: it has no weights %s", text.describe(name)) end
    local wanted = shape_text(own:shape())
    if not T.is_tensor(other) or shape_text(other:shape()) ~= wanted then
      is.fail("cq.Observer.autoencoder: weights must have %s %s, got %s", name, wanted,
        T.is_tensor(other) and shape_text(other:shape()) or text.describe(other))
    end
  end
end

-- Copies weights into the autoencoder's own, in place. given: a table of tensors by name, as weights of another one
-- are. Errors: a missing one, or another shape.
local function copy_weights(self, given)
  check_weights(self, given, tables.names(self.weights))
  for name, value in pairs(self.weights) do value:copy_from(given[name]) end
end

-- ---- observing ------------------------------------------------------------------------------------------------------

---The mean of the latent vector {latent}, or {batch, latent}, with gradients to the state; between looks that of the
---last one. Returns it, and as memory of the next control step, where it looks less often than at each of them; else
---nil. Collects the pictures that `collect` says, between looks too.
---@param state cq.State
---@param hidden? cq.Tensor      what the last call gave as memory
---@return cq.Tensor latent, cq.Tensor? hidden
function Autoencoder:observe(state, hidden)
  if hidden and state.step % self.every ~= 0 then
    if self.collect > 0 and state.step % self.collect == 0 then
      collect(self, state, T.tape.pause(self.picture, self, state))
    end
    return hidden, hidden
  end
  local picture = self:picture(state)
  if self.collect > 0 then collect(self, state, picture) end
  local z = self:encode(state.batched and picture or picture:unsqueeze(1))
  z = state.batched and z or z:squeeze(1)
  return z, self.every > 1 and z or nil
end

---The weights of the encoder, tensors by name, where they are trained with the controller's. nil: they are not trained.
function Autoencoder:parameters()
  if not self.trainable then return nil end
  local out = {}
  for name, value in pairs(self.weights) do
    if name:find "_conv" or name:find "_dense" or name:find "_latent" then out[name] = value end
  end
  return out
end

---A copy of the observer with other weights; weights that are not given stay. Pictures that the copy collects are the
---original's. Errors: an unknown weight, or another shape.
---@param weights table<string, cq.Tensor>
---@return cq.Observer.Autoencoder
function Autoencoder:with(weights)
  check_weights(self, weights, T.leaves.sorted_keys(type(weights) == "table" and weights or {}))
  local out = setmetatable(tables.merged(self), Autoencoder)
  out.weights, out.original = tables.merged(self.weights, weights), self.original or self
  return out
end

---@internal
---A copy of the weights and statistics that fits have changed, as a training keeps it with its best parameters.
function Autoencoder:learned() return T.leaves.snapshot(self.weights) end

---@internal
---A copy with the given result of autoencoder:learned, which collects no pictures.
function Autoencoder:holding(learned)
  local out = self:with(learned)
  out.collect = 0
  return out
end

---@internal
---A copy that collects no pictures, and goes on with the memory of this one.
---@return cq.Observer.Autoencoder
function Autoencoder:quiet()
  local out = self:holding(self.weights)
  out.quiet_of = self
  return out
end

---@internal
---Takes over weights and statistics that autoencoder:learned of another one has returned; they count as fitted, so that
---a later fit keeps the scales. Errors: other shapes.
function Autoencoder:take(learned)
  copy_weights(self, learned)
  self.fitted = true
end

-- ---- fitting --------------------------------------------------------------------------------------------------------

-- The scales {channels} that pictures are divided by: root mean squares of velocity, all axes together, and of density,
-- over the pixels that hold mass.
local function measure_scale(self, pictures)
  local dim = #self.window
  local present = pictures:abs():max(2):greater(0):sum():item()
  local out, at = {}, 1
  for _, name in ipairs(self.channels) do
    local width = name == "velocity" and dim or 1
    local square = pictures:slice(at, at + width - 1, 2):square():sum():item()
    local rms = math.sqrt(square / math.max(present * width, 1))
    for k = at, at + width - 1 do out[k] = rms > 0 and rms or 1 end
    at = at + width
  end
  return T.tensor(out)
end

-- Two tensors of rank 0: the weighted mean of the squared error of pictures in scaled numbers, and the divergence of
-- the latent vectors from independent normal ones, a mean over pictures; without the second where beta is 0. noise {n,
-- latent}: nil where beta is 0.
local function losses(self, pictures, noise)
  local mean, log_variance = self:encode(pictures)
  local z = mean
  if log_variance then z = mean + (0.5 * log_variance):exp() * noise end
  local x, n = pictures / expand_scale(self), pictures:size(1)
  local present = pictures:abs():max(2):greater(0):unsqueeze(2)
  local weight = present * (1 - BACKGROUND) + BACKGROUND
  local off = (decode_scaled(self, z) - x):square() * weight
  local reconstruction = off:sum() / (weight:sum() * x:size(2))
  if not log_variance then return reconstruction end
  return reconstruction, (mean:square() + log_variance:exp() - 1 - log_variance):sum() / (2 * n)
end

-- Returns pictures. Errors: another shape, or not finite.
local function check_pictures(self, pictures)
  require_shape(pictures, shape_after(self, 0), "pictures")
  if not pictures:finite() then is.fail "autoencoder: pictures must be finite" end
  return pictures
end

local fit_spec = is.define("autoencoder:fit", {
  pictures = is.tensor { optional = true }, optimizer = is.instance "cq.Optimizer",
  iterations = is.integer { min = 1, default = 100 }, batch = is.integer { min = 1, default = 64 },
})

---@class autoencoder.fit.def
---@field pictures? cq.Tensor      {n, channels, ...} as autoencoder:picture makes them; those that were collected unless given
---@field optimizer cq.Optimizer   goes on from fit to fit, as cq.Optimizer.adam { rate = 1e-3 }
---@field iterations? integer      updates of the weights, 100
---@field batch? integer           pictures of each, drawn with replacement, 64

---Trains encoder and decoder: the mean squared error of pictures, pixels without mass by a tenth, and beta times the
---Kullback-Leibler divergence. The same seed and the same pictures give the same bits.
---Errors: no pictures; a loss that is not finite, with the weights of the update before.
---@param fields_given autoencoder.fit.def
---@return { loss: number[], reconstruction: number[], divergence: number[] }    of each update
function Autoencoder:fit(fields_given)
  local def = fit_spec(fields_given)
  if not (def.optimizer.rule or def.optimizer.parts) then
    is.fail("autoencoder:fit: cq.Optimizer.%s makes no single steps; take one that does, as cq.Optimizer.adam",
      def.optimizer.kind)
  end
  local pictures = def.pictures and check_pictures(self, def.pictures) or keeper(self).pictures
  local count = def.pictures and pictures:size(1) or keeper(self).collected
  if count == 0 then
    is.fail "autoencoder:fit: no pictures were collected; let it observe with collect = 10, or give pictures"
  end
  if not self.fitted then
    self.weights.scale, self.fitted = measure_scale(self, pictures:slice(1, count)), true
  end
  if self.moments then def.optimizer:restore(self.moments) end
  self.optimizer, self.moments = def.optimizer, nil
  local history = { loss = {}, reconstruction = {}, divergence = {} }
  local trained = {}
  for name, value in pairs(self.weights) do trained[name] = name ~= "scale" and value or nil end
  for i = 1, def.iterations do
    local divergence, reconstruction
    local rows = self.random:integers({ def.batch }, { max = count }):totable()
    local noise = self.beta > 0 and self.random:normal { def.batch, self.latent } or nil
    local batch = pictures:gather(rows, 1)
    local loss, grads = T.value_and_grad(function(p)
      reconstruction, divergence = losses(self:with(p), batch, noise)
      local sum = divergence and reconstruction + self.beta * divergence or reconstruction
      if not sum:finite() then
        is.fail("autoencoder:fit: the loss of update %d is %s; take an optimizer with a smaller rate, or with clip", i,
          sum:item())
      end
      return sum
    end)(trained)
    def.optimizer:update(trained, grads)
    history.loss[i], history.reconstruction[i] = loss, reconstruction:item()
    history.divergence[i] = divergence and divergence:item() or 0
  end
  return history
end

---The mean squared error of pictures after encoding and decoding, by the scale of each channel; pixels without mass by
---a tenth.
---@param pictures cq.Tensor     {n, channels, ...}
---@return number
function Autoencoder:error_of(pictures)
  check_pictures(self, pictures)
  local noise = self.beta > 0 and T.zeros { pictures:size(1), self.latent } or nil
  return (T.tape.pause(losses, self, pictures, noise)):item()
end

-- ---- to go on later -------------------------------------------------------------------------------------------------

---What the observer has learned and collected, as cq.save keeps it: weights, pictures, where its random numbers are,
---and the state of the optimizer that it was fitted with last. run:optimize keeps it with the run; --resume goes on
---with it.
---@return table
function Autoencoder:state()
  local own = keeper(self)
  return { weights = T.leaves.snapshot(self.weights), fitted = self.fitted, made = own.made, spacing = own.spacing,
    pictures = own.collected > 0 and own.pictures:slice(1, own.collected):copy() or nil,
    random = self.random:state(), optimizer = self.optimizer and self.optimizer:state() or self.moments }
end

local state_fields = {
  weights = is.table(), random = is.table(), made = is.integer { min = 0 }, fitted = is.boolean { optional = true },
  spacing = is.number { above = 0, optional = true },
  pictures = is.tensor { optional = true }, optimizer = is.table { optional = true },
}

---Goes on from a state of autoencoder:state, of one with the same definition: fits then give the same bits. The
---optimizer of the next fit goes on from the one before.
---Errors: a state that is none, or of another definition; the observer is as it was then.
---@param state table
function Autoencoder:restore(state)
  if type(state) ~= "table" or not state.random then
    is.fail("autoencoder:restore: a state from autoencoder:state is wanted, got %s", text.describe(state))
  end
  local problem = is.problem(state_fields, state)
  if problem then is.fail("autoencoder:restore: this is no state from autoencoder:state: %s", problem) end
  local count, wanted = state.pictures and check_pictures(self, state.pictures):size(1) or 0,
    math.min(state.made, self.replay)
  if count < wanted then
    is.fail("autoencoder:restore: of %s made, %d must be there, and %d are", text.count(state.made, "picture"), wanted,
      count)
  end
  check_weights(self, state.weights, tables.names(self.weights))
  random({ seed = 0 }):restore(state.random)          -- raises the errors of one that is damaged
  copy_weights(self, state.weights)
  local own = keeper(self)
  self.fitted, own.made, own.collected = state.fitted, state.made, math.min(state.made, self.replay)
  own.spacing = own.spacing or state.spacing
  self.random:restore(state.random)
  self.optimizer, self.moments = nil, state.optimizer
  if not state.pictures then return end
  reserve(own)
  for k = 1, own.collected do own.pictures[k] = state.pictures[k] end
end

-- ---- making one -----------------------------------------------------------------------------------------------------

local CHANNELS = { "velocity", "density" }

local spec = is.define("cq.Observer.autoencoder", {
  window = is.vector { size = { 2, 3 }, integer = true, min = 1, max = 1024 },
  channels = is.list(is.one_of(CHANNELS), { min = 1, default = CHANNELS }),
  latent = is.integer { min = 1, default = 8 },
  group = is.any { optional = true }, center = is.any { optional = true },
  spacing = is.number { above = 0, optional = true }, particles = is.integer { min = 1, optional = true },
  layers = is.list(is.integer { min = 1 }, { default = { 16, 32, 32 } }), dense = is.integer { min = 0, default = 64 },
  beta = is.number { min = 0, default = 1e-3 }, seed = is.integer { min = 0, optional = true },
  every = is.integer { min = 1, default = 1 },
  collect = is.integer { min = 0, default = 0 }, replay = is.integer { min = 1, default = 2000 },
  trainable = is.boolean { default = false }, weights = is.any { optional = true },
})

method.guard(Autoencoder, "autoencoder")

---@class cq.Observer.autoencoder.def
---@field window integer[]         pixels along x, y (and z); each a multiple of 2^layers
---@field channels? ("velocity"|"density")[]   that are seen, both
---@field latent? integer          numbers that are observed, 8
---@field group? any               whose particles, all
---@field center? any              middle of the window, as of state:raster: it follows the particles unless given
---@field spacing? number          size of a pixel; that of a cell of the first world that it sees unless given [length]
---@field particles? integer       draws at most this many particles of the group, evenly chosen; all unless given
---@field layers? integer[]        channels of the convolutions, 16, 32, 32
---@field dense? integer           numbers of the layer after them, 64; 0: none
---@field beta? number             weight of the divergence from a normal distribution, 1e-3; 0: an autoencoder that is not variational
---@field seed? integer            of weights, batches and noise; the program's --seed, or 0, unless given
---@field every? integer           looks at each control step that is a multiple of this, and holds what it saw between; 1
---@field collect? integer         keeps the picture of each control step that is a multiple of this; 0: none
---@field replay? integer          pictures that are kept, the newest, 2000
---@field trainable? boolean       an experiment trains the weights by the gradient of its objective, beside the controller's
---@field weights? table<string, cq.Tensor>   as autoencoder.weights of another one

---@param fields cq.Observer.autoencoder.def
---@return cq.Observer.Autoencoder
return function(fields)
  local self = setmetatable(spec(fields), Autoencoder)
  self.seed = self.seed or option.program.seed or 0
  for _, pixels in ipairs(self.window) do
    if pixels % STRIDE ^ #self.layers ~= 0 then
      is.fail("cq.Observer.autoencoder: window must be a multiple of %d, for %s of stride 2, got %d",
        STRIDE ^ #self.layers, text.count(#self.layers, "convolution"), pixels)
    end
  end
  if #self.channels > 1 and self.channels[1] == self.channels[2] then
    is.fail("cq.Observer.autoencoder: channels has %q twice", self.channels[1])
  end
  self.family, self.collected, self.made = "autoencoder", 0, 0
  self.random, self.last = random { seed = (self.seed + 1) % 2 ^ 53 }, setmetatable({}, { __mode = "v" })
  local own, given = draw(self), self.weights
  own.scale = T.ones { channel_count(self) }
  self.weights, self.fitted = own, given ~= nil
  if given then copy_weights(self, given) end
  return self
end
