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
local initial = require "cq.controller.initial"
local message = require "cq.base.message"
local make = require "cq.tensor.make"
local T = require "cq.tensor"
local tables = require "cq.base.tables"

---@class cq.Controller
---@field params table<string, cq.Tensor>?   its cq.param tensors by name; nil until the first use
---@field family string                      which constructor made it
---@field trained { by: cq.Experiment? }?    the experiment that has trained it, if that is still there
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
local alike = { "activation", "hidden", "output", "count", "frequency", "hold" }

---@internal
---A controller in words, by the fields that its parameters depend on: "mlp, activation relu, hidden {64, 64}".
---@param kind string      its family
---@param fields table     the controller, or its fields as a file keeps them
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
  if fields.mean then parts[#parts + 1] = "of scaled observations" end
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

---@internal
---Warns, once, of parameters that were trained with another controller.
---@param params table<string, cq.Tensor>
function Controller:tell_origin(params)
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
  self:tell_origin(params)
  local out = setmetatable(tables.merged(self), getmetatable(self))
  out.params = params
  return out
end

---Makes the parameters, for the observations of this observer in this world, and keeps them in the controller; where it
---has some already, gives those. Errors: no world.
---@param world cq.World      that it will act in: it says how many signals there are
---@param observer? any       whose observations it will be given
---@param robot? cq.Robot     a variant to run in the place of the world's own robot, where that one cannot be simulated
---@return table<string, cq.Tensor> params
function Controller:prepare(world, observer, robot)
  is.argument("controller:prepare", "world", is.instance "cq.World", world)
  if not self.params then world:ask { controller = self, observer = observer, robot = robot } end
  return self.params
end

---Writes the controller for other machines: "gait.h" is C99 with gait_input, gait_state, gait_start and gait_step, no
---memory and of the C library tanhf, expf and sinf alone; "gait.lua" a module of plain Lua. Inputs are what the
---observer of its last rollout observes, with units in comments; accelerations are made of velocities inside.
---
---  cq.load("runs/walk").controller:export "gait.h"
---  run.controller:with(run.best.params.controller):export "gait.lua"
---run.controller has the weights after the last update; where those are not the best ones, a warning tells.
---Errors: a wrong ending; a controller of the script's own; one that was in no rollout, without world and observer.
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
---Called when a rollout begins; remembers its world and observer (`used`). The first rollout sets the number of
---signals; later ones must have as many, and of a saved controller the same names. Errors: a wrong number of signals,
---or other names.
---@return cq.Controller?     that this rollout asks for signals in its place
function Controller:check_rollout(roll)
  if self.signal_names then require_names(self, roll.world) end
  if self.signals and self.signals ~= roll.signal_count then
    is.fail("world:rollout: the controller gives %s, the robots take %d (%s)", text.count(self.signals, "signal"),
      roll.signal_count, table.concat(controller.signals_of(roll.world), ", "))
  end
  self.signals, self.used = roll.signal_count, { world = roll.world, observer = roll.observer }
end

-- ---- networks -------------------------------------------------------------------------------------------------------

local make_mlp, make_linear = require "cq.controller.network"(family("mlp", {}), family("linear", {}))

---@class cq.Controller.linear.def
---@field seed? integer         of the first weights; the program's --seed, or 0, unless given
---@field inputs? integer       observations; with signals: the parameters are made at once, and not at the first use
---@field signals? integer      goes with inputs
---@field scale? number         factor of the last layer's first weights
---@field init? table<string, cq.Tensor|number|number[]|number[][]>   first values of one's own by name, as cq.load gives them

---@class cq.Controller.mlp.def : cq.Controller.linear.def
---@field hidden? integer[]     units of each hidden layer
---@field activation? "relu"|"tanh"|"softplus"|"sigmoid"|"elu"   of the hidden layers
---@field output? "tanh"|"clip"   of the last layer; "clip": none, and signals are cut off at -1 and 1
---@field mean? number[]        of each observation, taken off before the first layer; with deviation
---@field deviation? number[]   of each observation, by which it is divided then; the result is cut off at -10 and 10

---A multi-layer perceptron, with tanh at its end unless `output` says otherwise. Parameters w1 {inputs, hidden}, b1
---{hidden}, w2, b2, ...; weights are drawn by the seed, with the deviation of Glorot and Bengio (2010), before relu
---that of He et al. (2015); biases are 0. Errors: mean without deviation, or of a wrong number of observations.
---@param fields? cq.Controller.mlp.def
---@return cq.Controller
function controller.mlp(fields) return make_mlp(fields or {}) end

---Signals u = tanh(z w1 + b1), between -1 and 1, of the observations z (ChainQueen, section IV). Parameters w1 {inputs,
---signals} and b1 {signals}.
---@param fields? cq.Controller.linear.def
---@return cq.Controller
function controller.linear(fields) return make_linear(fields or {}) end

-- ---- of time alone --------------------------------------------------------------------------------------------------

local Sines = family("sines", { blind = true })

-- Makes the parameters for the rollout's number of signals, which is known from here on, or checks that given ones have
-- their shapes.
function Sines:check_rollout(roll)
  Controller.check_rollout(self, roll)
  local phases = self.count * #self.frequency
  if self.params then
    return fit.require("cq.Controller.sines", self.params, {
      { name = "w", sizes = { phases, self.signals }, of = { "phases", "signals" } },
      { name = "b", sizes = { self.signals }, of = { "signals" } } })
  end
  self.params = initial.with_own(self, {
    w = T.param(initial.generator(self):normal({ phases, self.signals }, { deviation = self.deviation })),
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
  seed = initial.seed, init = initial.init,
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
-- a wrong shape.
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

---Raises an error if signals for control steps of `control_dt` [time] would be played at another pace in a world.
---whose: names the signals.
---@internal
function controller.require_pace(control_dt, world, whose)
  if control_dt == world.control_dt then return end
  is.fail("%s are those of control steps of %s, and the world has control steps of %s; give it dt = %s", whose,
    text.number(control_dt), text.number(world.control_dt), text.number(control_dt))
end

-- Before a rollout: makes the signals if there are none. Errors: signals of a wrong shape, for too few steps, or of a
-- saved run with other control steps.
function OpenLoop:check_rollout(roll)
  Controller.check_rollout(self, roll)
  if self.control_dt then
    controller.require_pace(self.control_dt, roll.world, "world:rollout: the signals of " .. self.of)
  end
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
    is.fail("cq.Controller.open_loop: has signals for %s, the rollout makes %d%s; make a rollout of fewer, or give signals for all of them: steps of the controller, or of a design its duration, with the period of its pulses where they come again",
      text.count(steps, "control step"), roll.steps, roll.first > 0 and (" from control step %d on"):format(roll.first)
        or "")
  end
end

local open_loop = is.define("cq.Controller.open_loop", {
  steps = is.integer { min = 1, optional = true }, u = is.tensor { optional = true },
  hold = is.integer { min = 1, default = 1 },
  init = is.any_of { is.number(), is.tensor(), is.list(is.any()), default = 0 },
  min = is.number { default = -1 }, max = is.number { default = 1 },
})
-- Signals u of the user's as a cq.param with bounds: a param itself, whose rate stays, or a copy of a plain tensor.
-- Errors: numbers that are not within; a tensor that has a gradient.
local function bounded(u, bounds)
  local own = u.trainable and u.bounds or {}
  local min, max = bounds.min or own.min, bounds.max or own.max
  local problem = make.why_no_param(u, min, max)
  if problem then is.fail("cq.Controller.open_loop: u: %s", problem) end
  if not u.trainable and u.requires_grad then
    is.fail("cq.Controller.open_loop: min and max have no effect on a u that was computed from params; give them to "
      .. "cq.param, or clamp u")
  end
  return make.as_param(u.trainable and u or u:copy(), min, max, own.rate)
end

---@class cq.Controller.open_loop.def
---@field steps? integer   control steps that it has signals for; a rollout may make fewer
---@field u? cq.Tensor      signals of your own, {steps / hold, signals} or with the batch before it, in the place of steps and init
---@field hold? integer    control steps that each row of signals is held over; the parameter u is {steps / hold, signals}
---@field init? number|cq.Tensor|number[]|number[][]   first value of every signal, {signals} or {steps / hold, signals}
---@field min? number      lower bound of the signals, kept by optimizers; without it that of u, if u is a param
---@field max? number      upper bound; likewise. A param u gets both in place, any other u is copied

---Given signals for each control step: a tensor {steps, signals}, or {batch, steps, signals} for each scene its own; or
---{ steps = ..., hold = 1, init = 0, min = -1, max = 1 } for a trainable one that is made when the robot is known. Rows
---may be held over several control steps: fewer numbers to train, and smoother signals.
---Errors: both or neither of steps and u; init beside u; a u outside of min and max.
---@param given cq.Tensor|number[][]|cq.Controller.open_loop.def
---@return cq.Controller
function controller.open_loop(given)
  local hold, bounds = 1, {}
  if type(given) == "table" and not T.is_tensor(given) and rawget(given, 1) == nil then
    local self = open_loop(given)
    if (self.u == nil) == (self.steps == nil) then
      is.fail("cq.Controller.open_loop: give either steps or u%s", self.u and ", not both" or "")
    end
    if self.steps then
      capacity.require(self.steps / self.hold, ("cq.Controller.open_loop: steps = %d"):format(self.steps))
      if self.min and self.max and self.min > self.max then
        is.fail("cq.Controller.open_loop: min %s is above max %s", text.number(self.min), text.number(self.max))
      end
      return setmetatable(self, OpenLoop)
    end
    if given.init ~= nil then
      is.fail("cq.Controller.open_loop: init goes with steps, and has no effect on u, whose numbers are the first ones")
    end
    hold, bounds, given = self.hold, { min = given.min, max = given.max }, self.u
  end
  if not (type(given) == "table") then
    is.fail("cq.Controller.open_loop: takes a tensor or a table of fields, got %s", text.describe(given))
  end
  local u = T.as_tensor(given, "cq.Controller.open_loop")
  if u.rank ~= 2 and u.rank ~= 3 then
    is.fail("cq.Controller.open_loop: the tensor must be {steps, signals} or {batch, steps, signals}, got {%s}",
      table.concat(u:shape(), ", "))
  end
  if bounds.min or bounds.max then u = bounded(u, bounds) end
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
