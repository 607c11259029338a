-- export: a controller as a program for other machines: C99, or Lua that needs nothing. What it does is described once,
-- as inputs, memory and what is computed of them; a file each writes it in a language.
local export = require "cq.export"
local is = require "cq.base.schema"
local message = require "cq.base.message"
local place = require "cq.base.place"
local readout = require "cq.state.readout"
local text = require "cq.base.text"
local T = require "cq.tensor"

local languages = { h = "cq.controller.c99", lua = "cq.controller.plain_lua" }

---One array of what the program is given.
---@class cq.controller.Input
---@field name string         "position", "velocity", "clock", "observation" or "time"
---@field count integer
---@field about string        for people: what it is, with its unit
---@field rows string[]?      of which its numbers are, dim each

---A controller as other programs need it.
---@class cq.controller.Program
---@field name string               what functions and types begin with
---@field about string
---@field kind "network"|"sines"|"table"|"sum"
---@field signals string[]
---@field inputs cq.controller.Input[]
---@field change integer?           so many velocities whose change over a control step is an observation too
---@field dt number                 control step [time]
---@field layers table[]?           { w {inputs, outputs}, b, activation }
---@field mean cq.Tensor?           {inputs} of the first layer's inputs, with deviation, by which these are scaled
---@field deviation cq.Tensor?      {inputs}
---@field frequency number[]?
---@field phases integer?           of each frequency
---@field values cq.Tensor?         {rows, signals}
---@field hold integer?             control steps of a row
---@field linear boolean?           from row to row
---@field parts cq.controller.Program[]?      whose signals are added up, named by the parts

-- ---- what it is given -----------------------------------------------------------------------------------------------

-- The name of an observed group, or of several joined by "and", for the comments of the exported program.
local function group_name(entry)
  if type(entry) == "string" then return entry end
  if text.is_instance(entry, "cq.Group") or text.is_instance(entry, "cq.Robot") then return entry.name or "robot" end
  local names = {}
  for k, part in ipairs(entry) do names[k] = group_name(part) end
  return table.concat(names, " and ")
end

-- A list of names, for each cluster of particles "12 particles around X, Y at rest", for the comments of an exported
-- controller.
local function cluster_names(observer, world)
  local selection, out = observer:groups_of(world), {}
  local rest = world.layout.base.position
  for k = 1, tonumber(selection.count) do
    local first, last = tonumber(selection.start[k - 1]), tonumber(selection.start[k]) - 1
    local sum = {}
    for d = 1, world.dim do
      sum[d] = 0
      for j = first, last do sum[d] = sum[d] + rest:get(tonumber(selection.particles[j]) + 1, d) end
      sum[d] = ("%.4g"):format(sum[d] / (last - first + 1))
    end
    out[k] = ("%s around %s at rest"):format(text.count(last - first + 1, "particle"), table.concat(sum, ", "))
  end
  return out
end

-- A list of names for the rows of an observation: groups, clusters, or single particles.
local function rows_of(observer, world)
  local out = {}
  if observer.family == "kmeans" then return cluster_names(observer, world) end
  if observer.family == "centroid" then
    for k, entry in ipairs(observer.groups) do out[k] = group_name(entry) end
    return out
  end
  local selection = world:selection(observer.group, "controller:export")
  for k = 1, tonumber(selection.total) do out[k] = ("particle %d"):format(tonumber(selection.particles[k - 1]) + 1) end
  return out
end

local known = { centroid = "means of groups", kmeans = "means of clusters", particles = "particles" }

-- Describes the inputs of an exported controller, a list of cq.controller.Input: an array for each quantity that an
-- observer of the library shows, or one of `count` numbers for an observer of the script. Also returns how many
-- velocities the observer turns into accelerations, nil for none, and whether it shows velocities.
local function inputs_of(observer, world, count)
  local family = rawget(observer, "family")
  if not known[family] or rawget(observer, "observe") then
    return { { name = "observation", count = count, about = "what the script's own observer gives" } }
  end
  local out, rows = {}, rows_of(observer, world)
  local by = observer.weight and (", weighed by %s"):format(observer.weight) or ""
  for _, name in ipairs { "position", "velocity" } do
    if observer[name] or name == "velocity" and observer.acceleration then
      out[#out + 1] = { name = name, count = #rows * world.dim, rows = rows,
        about = ("[%s] %s%s, %s of each"):format(readout.quantity(name).unit, known[family], by,
          world.dim == 2 and "x, y" or "x, y, z") }
    end
  end
  if observer.clock then
    out[#out + 1] = { name = "clock", count = 2 * #observer.clock,
      about = ("%.9g sin(2 pi f t), %.9g cos(2 pi f t), t [time] since the start, for each f of %s [1/time]"):format(
        observer.clock_amplitude, observer.clock_amplitude, table.concat(observer.clock, ", ")) }
  end
  return out, observer.acceleration and #rows * world.dim or nil, observer.velocity
end

-- Raises an error if a controller that is to be exported was in no rollout, so that its world and observer are unknown.
local function require_used(self, world, observer, needs_observer)
  if world and (observer or not needs_observer) then return end
  is.fail("controller:export: this controller was not used in a rollout yet, so that its observations are not known; "
    .. "give %s", world and "observer = ..." or "world = ..., observer = ...")
end

-- ---- what it computes -----------------------------------------------------------------------------------------------

local describe = {}

-- Raises an error where a program's inputs have another count of numbers than the network takes, `wanted`; so it is for
-- a learner's controller, which also sees the goals of its environment.
local function require_inputs(program, wanted)
  local count = program.change or 0
  for _, input in ipairs(program.inputs) do
    if input.name ~= "velocity" or program.shows_velocity or not program.change then count = count + input.count end
  end
  if count ~= wanted then
    is.fail("controller:export: the controller takes %s, and its observer gives %d; where goals stand behind them, "
      .. "give observer = a function of the state that appends the goal", text.count(wanted, "observation"), count)
  end
end

-- Fills `program`, in place, from a network and its observer. Errors: no observer; one with a wrong number of
-- observations; an `act` of the script.
function describe.mlp(self, program, world, observer)
  require_used(self, world, observer, true)
  local first = self.params.w1
  program.kind = "network"
  program.inputs, program.change, program.shows_velocity = inputs_of(observer, world, first:size(1))
  require_inputs(program, first:size(1))
  program.layers, program.mean, program.deviation = self:layers(first:size(1)), self.mean_tensor, self.deviation_tensor
  if not program.layers then
    is.fail("controller:export: act is the script's own function, which cannot be written as a program")
  end
end
describe.linear = describe.mlp

local TIME = { name = "time", count = 1, about = "[time] since the start" }

-- Fills `program`, in place, from a controller of sines.
function describe.sines(self, program)
  program.kind, program.inputs = "sines", { TIME }
  program.frequency, program.phases = self.frequency, self.count
  program.layers = { { w = self.params.w, b = self.params.b, activation = "tanh" } }
end

-- Fills `program`, in place, from an open loop's signals by time. Errors: signals of several scenes.
function describe.open_loop(self, program, _, _, def)
  local u = self.params.u
  if u.rank == 3 then is.fail("controller:export: these signals are of %d scenes; export those of one", u:size(1)) end
  program.kind, program.inputs, program.values = "table", { TIME }, u
  program.hold, program.linear = self.hold, def.interpolation == "linear"
end

local spec = is.define("controller:export", {
  name = is.string { optional = true },
  world = is.instance { "cq.World", optional = true },
  observer = is.any { optional = true },
  interpolation = is.one_of { "hold", "linear", optional = true },
})

---@class controller.export.def
---@field name? string       what functions and types begin with; the name of the file unless given
---@field world? cq.World    that it acts in; the one of its last rollout unless given
---@field observer? any      whose observations a network is given; the one of its last rollout unless given
---@field interpolation? "hold"|"linear"   of an open loop's signals: each row is held, as in training, unless given; or
---  between rows

-- The prefix of the exported names: as given, or from the file's name. Errors: no word.
local function name_of(path, given)
  local name = given or path:match "([^/]*)%.%w+$"
  if name:match "^%a[%w_]*$" then return name end
  is.fail("controller:export: name must be a word of letters, digits and _, got %s", text.describe(name))
end

-- The function that writes a program in the language of this path's ending. Errors: an unknown one.
local function language_of(path)
  local ending = path:match "%.(%w+)$"
  if languages[ending or ""] then return require(languages[ending]) end
  is.fail("controller:export: path must end in .h (C99) or .lua, got %s", text.describe(path))
end

-- The name in `describe` of the family of a controller. Errors: a controller that the script has written itself.
local function family_of(self)
  local family = self.loop and "open_loop" or self.family
  if describe[family] and not rawget(self, "act") then return family end
  is.fail("controller:export: this controller is the script's own; mlp, linear, sines, open_loop and sums of these can "
    .. "be exported")
end

-- The cq.controller.Program of one controller, which the writers of all languages take. name: prefix of its functions.
local function described(self, name, world, observer, def)
  local family = family_of(self)
  local out = { name = name, about = tostring(self), dt = world.control_dt,
    signals = require("cq.controller").signals_of(world) }
  describe[family](self.loop or self, out, world, observer, def)
  return out
end

-- Fills `program`, in place, from a sum of controllers: each part is a program of its own.
function describe.sum(self, program, world, observer, def)
  program.kind, program.inputs, program.parts = "sum", {}, {}
  for k, name in ipairs(T.leaves.sorted_keys(self.parts)) do
    program.parts[k] = described(self.parts[name], name, world, observer, def)
  end
end

-- Is a program, or a part of it, of a kind?
local function has_kind(program, kind)
  for _, part in ipairs(program.parts or {}) do
    if has_kind(part, kind) then return true end
  end
  return program.kind == kind
end

-- Raises an error if options of an export have no effect on its program.
local function require_effect(program, def)
  if def.interpolation and not has_kind(program, "table") then
    is.fail "controller:export: interpolation is of the signals of an open loop, and the controller has none; leave it out"
  end
  if def.observer and not has_kind(program, "network") then
    is.fail "controller:export: the controller follows the time and takes no observations; leave observer out"
  end
end

-- The cq.controller.Program that an export writes. Errors: options without effect; a controller that cannot be exported
-- or was in no rollout.
local function program_of(self, def, path)
  family_of(self)
  local used = type(self.used) == "function" and self.used() or self.used or {}
  local world = def.world or used.world
  local observer = def.observer and require("cq.observer").of(def.observer, "controller:export") or used.observer
  require_used(self, world, observer, false)
  if not (self.loop or self).params then world:ask { controller = self, observer = observer } end
  local program = described(self, name_of(path, def.name), world, observer, def)
  require_effect(program, def)
  return program
end

-- Are the parameters of a controller not those of the best loss of the experiment that has trained it? Then they are
-- those after the last update.
local function is_past_best(self)
  local run = self.trained and self.trained.by
  local best = run and run.best and run.best.params.controller
  if not (best and self.params) then return false end
  local others = T.leaves.by_path(best)
  for path, tensor in pairs(T.leaves.by_path(self.params)) do
    local other = others[path]
    if other and (other.count ~= tensor.count or not tensor:close(other, 0)) then return true end
  end
  return false
end

---controller:export: writes the controller as a program in the language of the path's ending.
---@param self cq.Controller
---@param path string
---@param options? controller.export.def
---@return string path
return function(self, path, options)
  is.argument("controller:export", "path", is.string(), path)
  local def, language = spec(options or {}), language_of(path)
  path = place.of(path)
  if is_past_best(self) then
    message.warn("%s has the weights after the last update; those of the best loss: run.controller:with(run.best.params.controller):export",
      path)
  end
  export.write("controller:export", path, language(T.tape.pause(program_of, self, def, path)))
  return path
end
