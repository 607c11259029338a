-- network: controllers of dense layers: cq.Controller.mlp, and linear, which has one layer.
local capacity = require "cq.base.capacity"
local fit = require "cq.controller.fit"
local initial = require "cq.controller.initial"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"

local LIMIT = 10                 -- of scaled observations

-- Raises an error if the controller's parameters differ in names or shapes from a list of cq.controller.wanted.
local function require_fit(self, list) fit.require("cq.Controller." .. self.family, self.params, list) end

-- Raises an error if there is no observer or observation, for a controller that needs one.
local function require_observation(self, observation)
  if not observation then is.fail("cq.Controller.%s needs an observer", self.family) end
end

-- Draws the initial weights, a cq.param {inputs, outputs} of a dense layer: normal, with a deviation of sqrt(2 / (in +
-- out)) (Glorot, Bengio 2010), or sqrt(2 / in) before relu (He et al. 2015).
local function weights(random, inputs, outputs, activation)
  local deviation = activation == "relu" and math.sqrt(2 / inputs) or math.sqrt(2 / (inputs + outputs))
  return T.param(random:normal({ inputs, outputs }, { deviation = deviation }))
end

-- Makes initial weights for observations of this size. Sets self.params and self.inputs; init replaces those that it
-- names.
local function make_layers(self, inputs)
  local random, params, last = initial.generator(self), {}, inputs
  for k, width in ipairs(self.hidden) do
    params["w" .. k], params["b" .. k] = weights(random, last, width, self.activation), T.param(T.zeros { width })
    last = width
  end
  local k = #self.hidden + 1
  local final = weights(random, last, self.signals, "tanh")
  if self.scale ~= 1 then final = T.param(final * self.scale) end
  params["w" .. k], params["b" .. k] = final, T.param(T.zeros { self.signals })
  self.params, self.inputs = initial.with_own(self, params), inputs
end

-- Observations {..., inputs} minus the network's mean, divided by its deviation and clamped to +-10; unchanged if it
-- has no mean.
local function scaled(self, observation)
  if not self.mean then return observation end
  return ((observation - self.mean_tensor) / self.deviation_tensor):clamp(-LIMIT, LIMIT)
end

-- Raises an error if the network has mean and deviation, and not as many numbers of them as `inputs`.
local function require_scales(self, inputs)
  if self.mean and #self.mean ~= inputs then
    is.fail("cq.Controller.%s: mean and deviation have %s, and there are %d", self.family,
      text.count(#self.mean, "observation"), inputs)
  end
end

-- Numbers of inputs and outputs of layer k; false for those of the first and last layer that are not known yet.
local function sizes_of_layer(self, k, inputs)
  local hidden = self.hidden
  return k == 1 and (inputs or false) or hidden[k - 1], k > #hidden and (self.signals or false) or hidden[k]
end

-- Do the parameters w1, b1, w2, ... have the shapes of this network's layers for `inputs` observations?
local function layers_fit(self, inputs)
  for k = 1, #self.hidden + 1 do
    local w, b, rows, columns = self.params["w" .. k], self.params["b" .. k], sizes_of_layer(self, k, inputs)
    if not (T.is_tensor(w) and T.is_tensor(b) and w.rank == 2 and b.rank == 1 and (not rows or w:size(1) == rows)
      and w:size(2) == (columns or b.count) and b.count == (columns or b.count)) then return false end
  end
  return true
end

-- Raises an error that names the wrong shape if parameters do not fit the network's layers.
local function require_layers(self, inputs)
  local list = {}
  for k = 1, #self.hidden + 1 do
    local rows, columns = sizes_of_layer(self, k, inputs)
    local of = k > #self.hidden and "signals" or ("units of layer %d"):format(k)
    list[#list + 1] = { name = "w" .. k, sizes = { rows, columns },
      of = { k == 1 and "observations" or ("units of layer %d"):format(k - 1), of } }
    list[#list + 1] = { name = "b" .. k, sizes = { columns }, of = { of } }
  end
  require_fit(self, list)
end

-- Raises an error if a network's hidden layers alone do not fit into memory, before the numbers of observations and
-- signals are known.
local function require_capacity(self)
  local count, last = 0, self.inputs or 1
  for k = 1, #self.hidden + 1 do
    local width = self.hidden[k] or self.signals or 1
    count, last = count + (last + 1) * width, width
  end
  capacity.require(count, ("cq.Controller.%s: hidden = { %s }"):format(self.family, table.concat(self.hidden, ", ")))
end

-- Completes a new network and returns it: makes its layers now if inputs and signals are given, else at the first
-- observation. Errors: one of them without the other.
local function complete(self)
  if (self.inputs == nil) ~= (self.signals == nil) then
    is.fail("cq.Controller.%s: inputs and signals go together, %s is missing", self.family, self.inputs
      and "signals" or "inputs")
  end
  require_capacity(self)
  if self.inputs then require_scales(self, self.inputs) end
  if self.inputs then make_layers(self, self.inputs) end
  return self
end

local size = is.integer { min = 1, optional = true }
local mlp = is.define("cq.Controller.mlp", {
  hidden = is.vector { integer = true, min = 1, default = { 64, 64 } },
  activation = is.one_of { "relu", "tanh", "softplus", "sigmoid", "elu", default = "relu" },
  output = is.one_of { "tanh", "clip", default = "tanh" },
  mean = is.list(is.number(), { optional = true }), deviation = is.list(is.number { min = 1e-12 }, { optional = true }),
  seed = initial.seed, inputs = size, signals = size, scale = is.number { min = 0, default = 1 }, init = initial.init,
})
local linear = is.define("cq.Controller.linear", {
  seed = initial.seed, inputs = size, signals = size, scale = is.number { min = 0, default = 1 }, init = initial.init,
})

-- Stores mean and deviation of observations as self.mean_tensor and self.deviation_tensor. Errors: one without the
-- other, or different lengths.
local function take_scales(self)
  if not (self.mean or self.deviation) then return end
  if not (self.mean and self.deviation) or #self.mean ~= #self.deviation or #self.mean == 0 then
    is.fail("cq.Controller.mlp: mean and deviation go together, a number for each observation; got %d and %d",
      #(self.mean or {}), #(self.deviation or {}))
  end
  self.mean_tensor, self.deviation_tensor = T.tensor(self.mean), T.tensor(self.deviation)
end

---Gives the classes of networks their methods, and returns the functions that make one of fields.
---@param Network table           the class of mlp, with the methods of cq.Controller
---@param Linear table            the class of linear
---@return fun(fields: cq.Controller.mlp.def): cq.Controller
---@return fun(fields: cq.Controller.linear.def): cq.Controller
return function(Network, Linear)
  local Controller = getmetatable(Network).__index

  -- Before a rollout: raises an error without an observer, or for parameters that do not fit the network and the
  -- signals. A network without parameters gets them by `act`, from the first observation.
  function Network:check_rollout(roll)
    Controller.check_rollout(self, roll)
    if self.act ~= Network.act then return end
    require_observation(self, roll.observer)
    if self.params then require_layers(self, self.inputs) end
  end

  -- Signals {signals} of an observation {inputs}, or {batch, signals} of {batch, inputs}. Errors: another number of
  -- observations than before.
  function Network:act(observation)
    require_observation(self, observation)
    if observation.rank == 0 then observation = observation:reshape { 1 } end
    local inputs = observation:size(-1)
    require_scales(self, inputs)
    if not self.params then make_layers(self, inputs) end
    if self.inputs and inputs ~= self.inputs then
      is.fail("cq.Controller.%s was made for %s, got %d", self.family, text.count(self.inputs, "observation"), inputs)
    end
    if not layers_fit(self, inputs) then require_layers(self, inputs) end
    local x, params, count = scaled(self, observation), self.params, #self.hidden
    for k = 1, count do x = x:dense(params["w" .. k], params["b" .. k], self.activation) end
    x = x:dense(params["w" .. count + 1], params["b" .. count + 1], self.output and "none" or "tanh")
    return self.output and x:clamp(-1, 1) or x
  end

  ---A list of layers { w, b, activation }, the last one with "tanh" or "clip", for the engine and for export. nil where
  ---`act` is the user's own, and for another number of observations than the parameters have, for which act raises an
  ---error.
  ---@param inputs integer     observations
  function Network:layers(inputs)
    if self.act ~= Network.act or self.inputs and self.inputs ~= inputs then return nil end
    require_scales(self, inputs)
    if not self.params then make_layers(self, inputs) end
    require_layers(self, inputs)
    local out = {}
    for k = 1, #self.hidden + 1 do
      out[k] = { w = self.params["w" .. k], b = self.params["b" .. k],
        activation = k <= #self.hidden and self.activation or self.output or "tanh" }
    end
    return out
  end

  Linear.act, Linear.layers, Linear.check_rollout = Network.act, Network.layers, Network.check_rollout

  -- A network with tanh at its end, unless fields say otherwise.
  local function make_mlp(fields)
    local self = setmetatable(mlp(fields), Network)
    -- none stands for tanh, as in the files of earlier programs
    if self.output == "tanh" then self.output = nil end
    take_scales(self)
    return complete(self)
  end

  -- A network of one layer.
  local function make_linear(fields)
    local self = setmetatable(linear(fields), Linear)
    self.hidden, self.activation = {}, "tanh"
    return complete(self)
  end

  return make_mlp, make_linear
end
