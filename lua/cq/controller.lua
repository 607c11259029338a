-- controller: from observations to signals, one for each actuator signal of the world, meant to lie in [-1, 1].
--
--   cq.Controller.mlp { hidden = { 64, 64 }, activation = "relu" }      tanh at the end
--   cq.Controller.linear {}                                              u = tanh(W z + b)
--   cq.Controller.sines { count = 8, frequency = 2 }                     u = tanh(W sin(2 pi f t + phases) + b)
--   cq.Controller.open_loop(cq.param(cq.zeros { steps, signals }, { min = -1, max = 1 }))
--   cq.Controller.open_loop { steps = 800, hold = 20, init = 0 }         trainable, each row held over 20 control steps
--   cq.Controller.sum { rhythm = cq.Controller.sines {}, feedback = cq.Controller.linear { scale = 0 } }
--
-- Sizes come from the observer and the robot: parameters are made when a controller is first used, or by
-- prepare. They are in controller.params, a table of cq.param; controller:with(params) is the same controller
-- with others, for functions that are given their parameters. Signals beyond [-1, 1] are not cut off, but those of a
-- sum; signals that are not finite are an error.
--
-- A controller of one's own is a function(observation, hidden, t) or a table { params, start(self),
-- act(self, observation, hidden, t) }; both give the signals, and the hidden value that they want to be
-- handed at the next control step.
local capacity = require "cq.base.capacity"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local fit = require "cq.controller.fit"
local message = require "cq.base.message"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

---@class cq.Controller
---@field params table<string, cq.Tensor>?   its cq.param tensors by name; nil until the first use
---@field family string                      which constructor made it
local Controller = { __name = "cq.Controller" }
Controller.__index = Controller

---@class cq.ControllerModule
local controller = { class = Controller }

-- The controller in one line: family and number of parameters.
function Controller:__tostring()
  local count = 0
  for _, leaf in ipairs(T.leaves.list(self.params or {})) do count = count + leaf.tensor.count end
  return ("cq.Controller.%s { %s }"):format(self.family, self.params and text.count(count, "parameter")
    or "not prepared")
end

-- Makes the table of methods into a class of controllers, which it returns, such as mlp, with methods of its own beside
-- those of cq.Controller.
local function family(name, methods)
  methods.__name, methods.family, methods.__tostring = "cq.Controller", name, Controller.__tostring
  methods.__index = methods
  return setmetatable(methods, { __index = Controller })
end

-- what must be alike for parameters to mean the same
local alike = { "activation", "hidden", "count", "frequency", "hold" }

---@internal
---A controller in words, by the fields that its parameters depend on: "mlp, activation relu, hidden {64, 64}".
---@param kind string
---@param fields table
---@return string
function controller.words(kind, fields)
  if kind == "sum" then
    local parts = {}
    for _, name in ipairs(T.leaves.sorted_keys(fields.parts)) do
      local part = fields.parts[name]
      parts[#parts + 1] = ("%s (%s)"):format(name, controller.words(part.kind or part.family, part.fields or part))
    end
    return "sum of " .. table.concat(parts, " and ")
  end
  local parts, known = { kind }, is.registry["cq.Controller." .. kind]
  for _, name in ipairs(alike) do
    local value = known and known.fields[name] and fields[name]
    if value then
      parts[#parts + 1] = ("%s %s"):format(name,
        type(value) == "table" and "{" .. table.concat(value, ", ") .. "}" or tostring(value))
    end
  end
  return table.concat(parts, ", ")
end

---@type table<cq.Tensor, { words: string, what: string }>    parameters that a file has said of which controller they are
local origins = setmetatable({}, { __mode = "k" })

---@internal
---Marks parameters read from a file with their controller's words, which tell_origin compares.
---@param params table<string, cq.Tensor>
---@param words string
---@param what string           the file
function controller.mark(params, words, what)
  for _, leaf in ipairs(T.leaves.list(params)) do origins[leaf.tensor] = { words = words, what = what } end
end

-- Warns, once, of parameters that were trained with another controller. params: tensors by name.
local function tell_origin(self, params)
  for _, name in ipairs(T.leaves.sorted_keys(params)) do
    local origin, own = origins[params[name]], nil
    if origin then own = controller.words(self.family, self) end
    if origin and origin.words ~= own then
      message.warn("parameters of %s are of a controller %s, and are given to one of %s: it will do something else",
        origin.what, origin.words, own)
      return
    end
  end
end

---@internal
---Raises an error if a value is no table of tensors, for controller:with.
---@param params any
function Controller.require_params(params)
  if type(params) ~= "table" or T.is_tensor(params) then
    is.fail("controller:with: needs a table of tensors, as controller.params, got %s", text.describe(params))
  end
end

---The same controller with other parameters, whose tensors it shares; a rollout checks their shapes. Warns of those
---that cq.load has read from a run of another kind of controller, or of another activation.
---@param params table<string, cq.Tensor>   with the names and shapes of controller.params
---@return cq.Controller
function Controller:with(params)
  Controller.require_params(params)
  tell_origin(self, params)
  local out = setmetatable(tables.merged(self), getmetatable(self))
  out.params = params
  return out
end

---Makes the parameters, for the observations of this observer in this world, and keeps them in the controller; where it
---has some already, gives those.
---@param world cq.World      that it will act in: it says how many signals there are
---@param observer? any       whose observations it will be given
---@param robot? cq.Robot     a variant, where the world's own robot cannot run without
---@return table<string, cq.Tensor> params
function Controller:prepare(world, observer, robot)
  if not self.params then world:ask { controller = self, observer = observer, robot = robot } end
  return self.params
end

---Writes the controller for other machines: "gait.h" is C99 with gait_input, gait_state, gait_start and gait_step, no
---memory and of the C library tanhf, expf and sinf alone; "gait.lua" a module of plain Lua. Inputs are what the
---observer of its last rollout observes, with units in comments; accelerations are made of velocities inside.
---
---  cq.load("runs/walk").controller:export "gait.h"
---  run.controller:with(run.best.params.controller):export "gait.lua"
---Errors: another ending; a controller of the script's own; one that was in no rollout, without world and observer.
---@param path string        ends in .h or .lua; a name without a slash is in the run's folder
---@param options? controller.export.def
---@return string path
function Controller:export(path, options) return require "cq.controller.export"(self, path, options) end

---Names of the signals of all robots of a world.
---@internal
---@param world cq.World
---@return string[]
function controller.signals_of(world)
  local out = {}
  for _, robot in ipairs(world.robots) do
    for _, name in ipairs(robot.signals) do out[#out + 1] = name end
  end
  return out
end

-- Raises an error if the world's signals have other names than those a saved controller was trained with.
local function require_names(self, world)
  local wanted, there = table.concat(self.signal_names, ", "), table.concat(controller.signals_of(world), ", ")
  if wanted ~= there then
    is.fail("world:rollout: the controller of %s gives the signals %s, the robots take %s", self.of, wanted,
      there == "" and "none" or there)
  end
end

---@internal
---Called when a rollout begins. The first rollout sets the number of signals; later ones must have as many, and of a
---saved controller the same names. Errors: another number of signals, or other names.
function Controller:check_rollout(roll)
  if self.signal_names then require_names(self, roll.world) end
  if self.signals and self.signals ~= roll.signal_count then
    is.fail("world:rollout: the controller gives %s, the robots take %d (%s)", text.count(self.signals, "signal"),
      roll.signal_count, table.concat(controller.signals_of(roll.world), ", "))
  end
  self.signals, self.used = roll.signal_count, { world = roll.world, observer = roll.observer }
end

-- Raises an error if the controller's parameters differ in names or shapes from a list of cq.controller.wanted.
local function require_fit(self, list) fit.require("cq.Controller." .. self.family, self.params, list) end

-- Raises an error if there is no observer or observation, for a controller that needs one.
local function require_observation(self, observation)
  if not observation then is.fail("cq.Controller.%s needs an observer", self.family) end
end

-- ---- initial values -------------------------------------------------------------------------------------------------

-- A new cq.Random for initial weights, by the controller's seed.
local function generator(self)
  return require("cq.random") { seed = self.seed }
end

-- Draws the initial weights, a cq.param {inputs, outputs} of a dense layer: normal, with a deviation of sqrt(2 / (in +
-- out)) (Glorot, Bengio 2010), or sqrt(2 / in) before relu (He et al. 2015).
local function weights(random, inputs, outputs, activation)
  local deviation = activation == "relu" and math.sqrt(2 / inputs) or math.sqrt(2 / (inputs + outputs))
  return T.param(random:normal({ inputs, outputs }, { deviation = deviation }))
end

-- A user's initial value, a number, lists or a tensor, as a cq.param; keeps its bounds. Errors: not of this shape.
local function own_value(value, shape, what)
  if type(value) == "number" then return T.param(T.full(shape, value)) end
  if type(value) ~= "table" then
    is.fail("%s must be a number, lists of them or a tensor, got %s", what, text.describe(value))
  end
  local tensor = T.as_tensor(value, what)
  local got, wanted = table.concat(tensor:shape(), ", "), table.concat(shape, ", ")
  if got ~= wanted then is.fail("%s must have the shape {%s}, got {%s}", what, wanted, got) end
  return T.param(tensor, tensor.bounds)
end

-- Returns drawn parameters, params, with the user's `init` in place of those that it names. Errors: a name or a shape
-- that the controller lacks.
local function with_own(self, params)
  tell_origin(self, self.init or {})
  local what, names = ("cq.Controller.%s: init"):format(self.family), T.leaves.sorted_keys(params)
  for name, value in pairs(self.init or {}) do
    if not params[name] then
      is.fail("%s has no parameter %s%s; they are %s", what, text.describe(name),
        type(name) == "string" and text.suggestion(name, names) or "", table.concat(names, ", "))
    end
    params[name] = own_value(value, params[name]:shape(), ("%s.%s"):format(what, name))
  end
  return params
end

-- ---- networks -------------------------------------------------------------------------------------------------------

local seed = is.integer { min = 0, optional = true }         -- the program's --seed, or 0
local size = is.integer { min = 1, optional = true }
local init = is.table { optional = true }                    -- first values by name; others are drawn

-- Makes initial weights for observations of this size. Sets self.params and self.inputs; init replaces those that it
-- names.
local function make_layers(self, inputs)
  local random, params, last = generator(self), {}, inputs
  for k, width in ipairs(self.hidden) do
    params["w" .. k], params["b" .. k] = weights(random, last, width, self.activation), T.param(T.zeros { width })
    last = width
  end
  local k = #self.hidden + 1
  local final = weights(random, last, self.signals, "tanh")
  if self.scale ~= 1 then final = T.param(final * self.scale) end
  params["w" .. k], params["b" .. k] = final, T.param(T.zeros { self.signals })
  self.params, self.inputs = with_own(self, params), inputs
end

-- Numbers of inputs and outputs of layer k; false for those of the first and last layer that are not known yet.
local function sizes_of_layer(self, k, inputs)
  local hidden = self.hidden
  return k == 1 and (inputs or false) or hidden[k - 1], k > #hidden and (self.signals or false) or hidden[k]
end

-- Do the parameters w1, b1, w2, ... have the shapes of this network's layers for so many inputs?
local function layers_fit(self, inputs)
  for k = 1, #self.hidden + 1 do
    local w, b, rows, columns = self.params["w" .. k], self.params["b" .. k], sizes_of_layer(self, k, inputs)
    if not (T.is_tensor(w) and T.is_tensor(b) and w.rank == 2 and b.rank == 1 and (not rows or w:size(1) == rows)
      and w:size(2) == (columns or b.count) and b.count == (columns or b.count)) then return false end
  end
  return true
end

-- Raises an error if parameters do not fit the network's layers, with a sentence on what fits.
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

local Network = family("mlp", {})

-- Before a rollout: raises an error without an observer, or for parameters that do not fit the network and the signals.
-- A network without parameters gets them by `act`, from the first observation.
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
  if not self.params then make_layers(self, inputs) end
  if self.inputs and inputs ~= self.inputs then
    is.fail("cq.Controller.%s was made for %s, got %d", self.family, text.count(self.inputs, "observation"), inputs)
  end
  if not layers_fit(self, inputs) then require_layers(self, inputs) end
  local x, params, count = observation, self.params, #self.hidden
  for k = 1, count do x = x:dense(params["w" .. k], params["b" .. k], self.activation) end
  return x:dense(params["w" .. count + 1], params["b" .. count + 1], "tanh")
end

---A list of layers { w, b, activation }, the last one with tanh; nil for an `act` of the user's, and for parameters
---made for other observations, whose error act raises.
---@param inputs integer     observations
function Network:layers(inputs)
  if self.act ~= Network.act or self.inputs and self.inputs ~= inputs then return nil end
  if not self.params then make_layers(self, inputs) end
  require_layers(self, inputs)
  local out = {}
  for k = 1, #self.hidden + 1 do
    out[k] = { w = self.params["w" .. k], b = self.params["b" .. k],
      activation = k <= #self.hidden and self.activation or "tanh" }
  end
  return out
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
local function network(self)
  if (self.inputs == nil) ~= (self.signals == nil) then
    is.fail("cq.Controller.%s: inputs and signals go together, %s is missing", self.family or "mlp", self.inputs
      and "signals" or "inputs")
  end
  require_capacity(self)
  if self.inputs then make_layers(self, self.inputs) end
  return self
end

---@class cq.Controller.linear.def
---@field seed? integer         of the first weights; the program's --seed, or 0, unless given
---@field inputs? integer       observations; with signals: the parameters are made at once, and not at the first use
---@field signals? integer      goes with inputs
---@field scale? number         factor of the last layer's first weights
---@field init? table<string, cq.Tensor|number|number[]|number[][]>   first values of one's own by name, as cq.load gives them

---@class cq.Controller.mlp.def : cq.Controller.linear.def
---@field hidden? integer[]     units of each hidden layer
---@field activation? "relu"|"tanh"|"softplus"|"sigmoid"   of the hidden layers; the last has tanh

local mlp = is.define("cq.Controller.mlp", {
  hidden = is.vector { integer = true, min = 1, default = { 64, 64 } },
  activation = is.one_of { "relu", "tanh", "softplus", "sigmoid", default = "relu" },
  seed = seed, inputs = size, signals = size, scale = is.number { min = 0, default = 1 }, init = init,
})
---A multi-layer perceptron with tanh at its end. Parameters w1 {inputs, hidden}, b1 {hidden}, w2, b2, ...; weights
---are drawn by the seed, with the deviation of Glorot and Bengio (2010), before relu that of He et al. (2015); biases
---are 0.
---@param fields? cq.Controller.mlp.def
---@return cq.Controller
function controller.mlp(fields)
  return network(setmetatable(mlp(fields or {}), Network))
end

local Linear = family("linear", { act = Network.act, layers = Network.layers,
  check_rollout = Network.check_rollout })

local linear = is.define("cq.Controller.linear", {
  seed = seed, inputs = size, signals = size, scale = is.number { min = 0, default = 1 }, init = init,
})
---u = tanh(W z + b) of the observations z (ChainQueen, section IV). Parameters w1 {inputs, signals} and b1 {signals}.
---@param fields? cq.Controller.linear.def
---@return cq.Controller
function controller.linear(fields)
  local self = linear(fields or {})
  self.hidden, self.activation = {}, "tanh"
  return network(setmetatable(self, Linear))
end

-- ---- of time alone --------------------------------------------------------------------------------------------------

local Sines = family("sines", { blind = true })

-- Makes the parameters for the rollout's number of signals, which is known from here on, or checks that given ones have
-- their shapes.
function Sines:check_rollout(roll)
  Controller.check_rollout(self, roll)
  local phases = self.count * #self.frequency
  if self.params then
    return require_fit(self, { { name = "w", sizes = { phases, self.signals }, of = { "phases", "signals" } },
      { name = "b", sizes = { self.signals }, of = { "signals" } } })
  end
  self.params = with_own(self, {
    w = T.param(generator(self):normal({ phases, self.signals }, { deviation = self.deviation })),
    b = T.param(T.zeros { self.signals }),
  })
end

-- Signals {signals} at time t: one dense layer over sines of the given frequencies at `count` phases.
function Sines:act(_, _, t)
  local waves = {}
  for _, frequency in ipairs(self.frequency) do
    for k = 0, self.count - 1 do waves[#waves + 1] = math.sin(2 * math.pi * (frequency * t + k / self.count)) end
  end
  return T.tensor(waves):dense(self.params.w, self.params.b, "tanh")
end

---@class cq.Controller.sines.def
---@field count? integer                 phases of each frequency
---@field frequency? number|number[]     one, or several [1/time]
---@field deviation? number              of the first weights W {phases, signals}
---@field init? table<string, cq.Tensor|number|number[]|number[][]>   first values of one's own by name, as cq.load gives them
---@field seed? integer                  of the first weights; the program's --seed, or 0, unless given

local sines = is.define("cq.Controller.sines", {
  count = is.integer { min = 1, max = 65536, default = 4 },
  frequency = is.any_of { is.number { above = 0 }, is.vector { above = 0 }, default = 1 },
  deviation = is.number { min = 0, default = 0.1 },
  seed = seed, init = init,
})
---A sum of sines of time, the same for every scene: u = tanh(W s(t) + b), s_k = sin(2 pi (f t + k / count)).
---@param fields? cq.Controller.sines.def
---@return cq.Controller
function controller.sines(fields)
  local self = sines(fields or {})
  if type(self.frequency) == "number" then self.frequency = { self.frequency } end
  return setmetatable(self, Sines)
end

local OpenLoop = family("open_loop", { blind = true })

-- Initial signals, a cq.param {rows, signals}, from one number for all, one for each signal, or all of them. Errors:
-- another shape.
local function first_signals(self)
  local u = T.as_tensor(self.init, "cq.Controller.open_loop: init")
  local shape = u:shape()
  local rows = math.ceil(self.steps / self.hold)
  local fits = #shape == 0 or shape[#shape] == self.signals and (#shape == 1 or #shape == 2 and shape[1] == rows)
  if not fits then
    is.fail("cq.Controller.open_loop: init must be one number, {%d} or {%d, %d}, got {%s}", self.signals, rows,
      self.signals, table.concat(shape, ", "))
  end
  return T.param(u:expand { rows, self.signals }, { min = self.min, max = self.max })
end

-- Signals {signals} of a control step, from 1, or {batch, signals}: a row of the table, each held for `hold` steps.
function OpenLoop:act(_, _, _, step)
  local u, row = self.params.u, math.floor((step - 1) / self.hold) + 1
  if u.rank == 3 then return u:slice(row, row, 2):squeeze(2) end
  return u[row]
end

-- The shape of the signals u of an open loop, {steps / hold, signals} or with the batch before it. Errors: another
-- rank.
local function shape_of_signals(params)
  local u = params.u
  if not T.is_tensor(u) or u.rank ~= 2 and u.rank ~= 3 then
    is.fail("cq.Controller.open_loop: u must be a tensor {steps / hold, signals}, or with the batch before it, got %s",
      T.is_tensor(u) and "{" .. table.concat(u:shape(), ", ") .. "}" or text.describe(u))
  end
  return u:shape()
end

-- Before a rollout: makes the signals if there are none. Errors: signals of another shape, or for too few steps.
function OpenLoop:check_rollout(roll)
  Controller.check_rollout(self, roll)
  self.params = self.params or { u = first_signals(self) }
  local shape = shape_of_signals(self.params)
  local steps = shape[#shape - 1] * self.hold
  if shape[#shape] ~= roll.signal_count then
    is.fail("cq.Controller.open_loop: the tensor {%s} has %s, the robots take %d", table.concat(shape, ", "),
      text.count(shape[#shape], "signal"), roll.signal_count)
  elseif #shape == 3 and shape[1] ~= roll.batch then
    is.fail("cq.Controller.open_loop: the tensor {%s} is for %s, the %s", table.concat(shape, ", "),
      text.count(shape[1], "scene"), roll.batched and ("batch has %d"):format(roll.batch) or "rollout has no batch")
  end
  if steps < roll.first + roll.steps then
    is.fail("cq.Controller.open_loop: has signals for %s, the rollout makes %d%s", text.count(steps, "control step"),
      roll.steps, roll.first > 0 and (" from control step %d on"):format(roll.first) or "")
  end
end

local open_loop = is.define("cq.Controller.open_loop", {
  steps = is.integer { min = 1, optional = true }, u = is.tensor { optional = true },
  hold = is.integer { min = 1, default = 1 },
  init = is.any_of { is.number(), is.tensor(), is.list(is.any()), default = 0 },
  min = is.number { default = -1 }, max = is.number { default = 1 },
})
---@class cq.Controller.open_loop.def
---@field steps? integer   control steps that it has signals for; a rollout may make fewer
---@field u? cq.Tensor      signals of your own, {steps / hold, signals} or with the batch before it, in the place of steps and init
---@field hold? integer    control steps that each row of signals is held over; the parameter u is {steps / hold, signals}
---@field init? number|cq.Tensor|number[]|number[][]   first value of every signal, {signals} or {steps / hold, signals}
---@field min? number      lower bound of the signals, kept by optimizers
---@field max? number      upper bound

---Given signals for each control step: a tensor {steps, signals}, or {batch, steps, signals} for each scene its own; or
---{ steps = ..., hold = 1, init = 0, min = -1, max = 1 } for a trainable one that is made when the robot is known. Rows
---may be held over several control steps: fewer numbers to train, and smoother signals.
---Errors: both or neither of steps and u.
---@param given cq.Tensor|number[][]|cq.Controller.open_loop.def
---@return cq.Controller
function controller.open_loop(given)
  local hold = 1
  if type(given) == "table" and not T.is_tensor(given) and given[1] == nil then
    local self = open_loop(given)
    if (self.u == nil) == (self.steps == nil) then
      is.fail("cq.Controller.open_loop: give either steps or u%s", self.u and ", not both" or "")
    end
    if self.steps then
      capacity.require(self.steps / self.hold, ("cq.Controller.open_loop: steps = %d"):format(self.steps))
      return setmetatable(self, OpenLoop)
    end
    given, hold = self.u, self.hold
  end
  if not (type(given) == "table") then
    is.fail("cq.Controller.open_loop: takes a tensor or a table of fields, got %s", text.describe(given))
  end
  local u = T.as_tensor(given, "cq.Controller.open_loop")
  if u.rank ~= 2 and u.rank ~= 3 then
    is.fail("cq.Controller.open_loop: the tensor must be {steps, signals} or {batch, steps, signals}, got {%s}",
      table.concat(u:shape(), ", "))
  end
  return setmetatable({ params = { u = u }, hold = hold }, OpenLoop)
end

-- ---- several together -----------------------------------------------------------------------------------------------

local sum_of = require "cq.controller.sum"(family("sum", {}))

---Signals of several controllers added up, as a rhythm and a feedback around it, and cut off at -1 and 1. Their
---parameters are those of the parts by their names, params.rhythm.w; `scale = 0` of a network lets it begin without any
---effect.
---
---  cq.Controller.sum { rhythm = cq.Controller.sines { frequency = 2 }, feedback = cq.Controller.linear { scale = 0 } }
---
---A cq.Experiment with a design and a controller does the same with the design's pulses.
---@param parts table<string, any>      controllers by names of the user's
---@return cq.Controller
function controller.sum(parts)
  if type(parts) ~= "table" or next(parts) == nil then
    is.fail("cq.Controller.sum: needs controllers by names, { rhythm = ..., feedback = ... }, got %s",
      text.describe(parts))
  end
  local own = {}
  for name, part in pairs(parts) do
    if type(name) ~= "string" or not name:match "^%a[%w_]*$" then
      is.fail("cq.Controller.sum: a name must be a word of letters, digits and _, got %s", text.describe(name))
    end
    own[name] = controller.of(part, "cq.Controller.sum: " .. name)
  end
  return sum_of(own)
end

-- ---- user-written ---------------------------------------------------------------------------------------------------

local Custom = family("custom", {})

-- Signals {signals}, and the memory after this step, by the user's function; observation {numbers}, hidden: the memory
-- before, t: time, step: control step.
function Custom:act(observation, hidden, t, step)
  if self.f then return self.f(observation, hidden, t, step) end
  return self.own:act(observation, hidden, t, step)
end

-- The user's controller with other parameters, which its functions find in self.params.
function Custom:with(params)
  local own = self.own and setmetatable({ params = params }, { __index = self.own })
  return setmetatable({ f = self.f, own = own, params = params, start = self.start }, Custom)
end

-- Does nothing: a script's controller is not checked before a rollout.
function Custom:check_rollout() end
-- The parameters of a script's controller, as it has them; nil: none.
function Custom:prepare() return self.params end

---A controller from the value that a user gives: one of cq.Controller, a function, or a table with act. Errors: another
---value.
---@internal
---@param given any
---@param what string     for errors
---@return cq.Controller
function controller.of(given, what)
  if text.is_instance(given, "cq.Controller") then return given end
  if type(given) == "table" and type(given.act) == "function" then
    local self = setmetatable({ own = given, params = given.params }, Custom)
    if given.start then self.start = function(me) return me.own:start() end end
    return self
  end
  if text.is_callable(given) then return setmetatable({ f = given }, Custom) end
  is.fail("%s: controller must be one of cq.Controller, a function, or a table with a method act, got %s", what,
    text.describe(given))
end

return controller
