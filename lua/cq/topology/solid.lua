-- solid: what a design becomes when it is made: solid particles only, each of one signal or
-- none, and whole pulses or none.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local host = require "cq.host"
local option = require "cq.option"
local text = require "cq.base.text"
local T = require "cq.tensor"
local made = require "cq.experiment.made"
local message = require "cq.base.message"
local controllers = require "cq.controller"
local surface = require "cq.topology.surface"
local part = require "cq.topology.part"

---A design made binary, from design:binarise.
---@class cq.Topology.Solid
---@field robot cq.Robot             the solid particles, as they are placed in the world
---@field world cq.World             the design's world with this robot in the place of the other
---@field controller cq.Controller   the signals of whole pulses
---@field particles integer[]        numbers of the solid particles in the design's robot
---@field actuator integer[]         of each solid particle the signal that it follows, 0: none
---@field pulses cq.Tensor           {pulses, signals} of -1, 0 and 1
---@field unused integer[]           signals that no particle follows
local Solid = { __name = "cq.Topology.Solid" }
Solid.__index = Solid

function Solid:__tostring()
  local parts = {}
  for k = 1, self.pulses:size(2) do
    local count = 0
    for _, a in ipairs(self.actuator) do count = count + (a == k and 1 or 0) end
    parts[k] = tostring(count)
  end
  return ("cq.Topology.Solid { %s of %d, by actuator %s }"):format(text.count(#self.particles, "particle"), self.total,
    table.concat(parts, ", "))
end

---The same body with other pulses, -1, 0 and 1 of their signs and sizes.
---@param params { sign: cq.Tensor, size: cq.Tensor }     as of a controller from solid:trainable
---@return cq.Topology.Solid
function Solid:with_pulses(params)
  is.argument("solid:with_pulses", "params", is.table(), params)
  local out = setmetatable({}, Solid)
  for key, value in pairs(self) do out[key] = value end
  local pulses = self.design.pulses
  out.pulses = T.tape.pause(pulses.binary, pulses, params.sign, params.size)
  out.controller = T.tape.pause(function() return controllers.open_loop(pulses:signals(out.pulses)) end)
  return out
end

-- signs and sizes of their own, which round to the pulses of this body
local function from_design(self, params)
  local pulses = self.design.pulses
  params = params.design or params
  for _, name in ipairs { "sign", "size" } do
    if not T.is_tensor(params[name]) or params[name].count ~= self.pulses.count then
      is.fail("solid:trainable: params must have %s {%d, %d}, as the params of its design", name,
        self.pulses:size(1), self.pulses:size(2))
    end
  end
  local sign, size = params.sign:detach():copy(), params.size:detach():copy()
  if not pulses:binary(sign, size):equal(self.pulses) then
    is.fail "solid:trainable: params must round to the pulses of this body; these are of another"
  end
  return pulses:controller { sign = sign, size = size, binary = true }
end

---The pulses of this body as a controller to be trained anew: a body that lost its soft parts goes better with signals
---of its own. What is optimised are whole pulses or none, as they will be used.
---@param params? { sign: cq.Tensor, size: cq.Tensor }     to begin with, as those of the design, which round to these pulses. Unless
---  given all are as near to another pulse: training changes many at once, which finds other gaits and loses what must
---  be held still
---@return cq.Controller
function Solid:trainable(params)
  if params then return from_design(self, params) end
  -- none: a size just below that of a pulse; a pulse: just above, so that either may change
  local size = T.where(self.pulses:abs():greater(0.5), 0.2, -0.2)
  local sign = T.where(self.pulses:less(0), -0.2, 0.2)
  return self.design.pulses:controller { sign = sign, size = size, binary = true }
end

---@class solid.train.def
---@field iterations integer
---@field optimizer? cq.Optimizer  Adam with a rate that falls from 0.03 to 0.003 unless given
---@field params? { sign: cq.Tensor, size: cq.Tensor }   to begin with, as solid:trainable takes them
---@field folder? string           for history.csv and the parameters; "pulses" in the folder of the run unless given
---@field resume? boolean          go on from what lies in the folder, if it is of this body with these pulses; --resume unless
---  given

local train_spec = is.define("solid:train", {
  iterations = is.integer { min = 1 }, optimizer = is.instance { "cq.Optimizer", optional = true },
  params = is.table { optional = true },
  folder = is.string { optional = true }, resume = is.boolean { optional = true },
})

-- Is what lies in a folder of this body? A training of another one, or of none, is not gone on with, and from now on it
-- is this one's.
local function goes_on(self, folder)
  local path = folder .. "/body.bin"
  local own = { particles = T.tensor(self.particles), actuator = T.tensor(self.actuator), pulses = self.pulses }
  local fine, before = pcall(T.load, path)
  local same = fine and host.kind(folder .. "/optimizer.bin") ~= nil
  for name, tensor in pairs(own) do
    local other = same and before[name]
    same = other and other.count == tensor.count and other:equal(tensor) or false
  end
  if same or option.program.check then return same end
  local there, problem = host.make_folder(folder)
  if not there then is.fail("solid:train: the folder %s cannot be made: %s", folder, tostring(problem)) end
  T.save(path, own)
  return false
end

---Trains the pulses of this body anew for the objective of an experiment, and gives the body with the best ones, which
---are never worse than those that it has. Errors: an experiment of another design.
---@param run cq.Experiment        that the design is of
---@param fields solid.train.def
---@return cq.Topology.Solid solid, number loss
function Solid:train(run, fields)
  is.argument("solid:train", "run", is.instance "cq.Experiment", run)
  local def = train_spec(fields)
  made.require_own(run, self, "solid:train")
  if run.steps ~= self.design.pulses.steps then
    is.fail("solid:train: the pulses of this body take %d control steps, the experiment %d: use that of its design",
      self.design.pulses.steps, run.steps)
  end
  local folder = def.folder or run.folder and run.folder .. "/pulses" or require("cq.run").folder_of(nil, "pulses")
  local resume = def.resume
  if resume == nil then resume = option("resume", false) end
  local same = goes_on(self, folder)
  if resume and not same then message.note("solid:train: nothing to go on from in %s for this body: it begins", folder) end
  local constant = {}
  for name, value in pairs(run.given) do
    if name ~= "limits" and name ~= "design" then constant[name] = function() return value end end
  end
  local params = run.best and run.best.params or run.params
  for name, value in pairs(params.world or {}) do
    local now = value:detach():copy()
    constant[name] = function() return now end
  end
  local function falling(i) return 1 - 0.9 * math.min(1, i / def.iterations) end
  local signals = require "cq.experiment" {
    world = self.world, robot = made.body(run, self, params), steps = run.steps,
    controller = self:trainable(def.params),
    objective = run.objective, memory = run.memory,
    optimizer = def.optimizer or require("cq.optimizer").adam { rate = 0.03, schedule = falling },
    by_iteration = constant, contact = run.contact, adjoint_decay = run.adjoint_decay, weight = run.weight,
    scenes = run.scenes or nil,
  }
  signals:optimize { iterations = def.iterations, folder = folder, resume = resume and same }
  return self:with_pulses(signals.best.params.controller), signals.best.loss
end

-- ---- files ----------------------------------------------------------------------------------------------------------

---Writes this body as design:save does a design, a line for each particle of the block: solid ones have a density of 1,
---others of 0; pulses are -1, 0 and 1, and pulses and signals those that the body has, trained anew or not.
---Errors: a path that cannot be written.
---@param path string      ends in .csv
---@return string[] paths  of the three files
function Solid:save(path)
  local pulses, signals = self.design.pulses, self.pulses:size(2)
  local density, shares = T.zeros { self.total }, T.zeros { signals + 1, self.total }
  for p = 1, self.total do shares:set(1, signals + 1, p) end
  for k, p in ipairs(self.particles) do
    density:set(1, p)
    shares:set(0, signals + 1, p)
    shares:set(1, self.actuator[k] > 0 and self.actuator[k] or signals + 1, p)
  end
  return require "cq.topology.save"("solid:save", self.design, {
    density = density, shares = shares, amplitudes = self.pulses,
    signals = T.tape.pause(pulses.signals, pulses, self.pulses),
  }, path)
end

local stl_spec = is.define("solid:save_stl", { thickness = is.number { above = 0, optional = true } })

-- 1 for the particles that follow a signal (0: none), of all that the design has
local function followers(self, signal)
  local out = T.zeros { self.total }
  for k, a in ipairs(self.actuator) do
    if a == signal then out:set(1, self.particles[k]) end
  end
  return out
end

---@class solid.save_stl.def
---@field thickness? number     of a body in 2D; the radius of the design's filter unless given [length]

---Writes the surface of the body that each actuator has, closed, as STL files to print or to read with cq.Shape.mesh:
---from "walker.stl" walker_1.stl, ..., of the rest walker_passive.stl, and walker_whole.stl of all together.
---Coordinates are those of the world; a body in 2D stands between z = 0 and its thickness. Parts fill the whole body,
---without a gap between them. One of a few particles that lie single among others may have no place in it: a note tells
---so. Errors: a body of particles so far apart that it has no surface.
---@param path string           ends in .stl
---@param options? solid.save_stl.def
---@return string[] paths       of the files that were written
function Solid:save_stl(path, options)
  is.argument("solid:save_stl", "path", is.string(), path)
  local front = path:match "^(.*)%.stl$"
  if not front then is.fail("solid:save_stl: path must end in .stl, got %s", text.describe(path)) end
  local def = stl_spec(options or {})
  local position, dim, paths = self.design.robot.position, self.design.robot.dim, {}
  local spacing = self.design.robot.volume:mean():item() ^ (1 / dim)
  local field, names, parts, whole = surface.field(position, spacing), {}, {}, T.zeros { self.total }
  for a = 0, self.pulses:size(2) do
    names[a + 1], parts[a + 1] = a == 0 and "passive" or tostring(a), followers(self, a)
    whole = whole + parts[a + 1]
  end
  local thickness = def.thickness or self.design.filter.radius
  local function write(triangles, name)
    paths[#paths + 1] = ("%s_%s.stl"):format(front, name)
    surface.write_stl(paths[#paths], triangles)
  end
  local all = surface.triangles(field, dim, { whole }, thickness)[1]
  if #all == 0 then
    is.fail("solid:save_stl: the body has no surface: its %s lie too far apart", text.count(#self.particles, "particle"))
  end
  for k, triangles in ipairs(surface.triangles(field, dim, parts, thickness)) do
    local count = parts[k]:sum():item()
    if #triangles > 0 then
      write(triangles, names[k])
    elseif count > 0 then
      message.note("solid:save_stl: %s of %s lie single among others: no %s_%s.stl", text.count(count, "particle"),
        k == 1 and "no actuator" or "actuator " .. names[k], front, names[k])
    end
  end
  write(all, "whole")
  return paths
end

-- ---- from a design --------------------------------------------------------------------------------------------------

-- particles of the body, and the signal of each
local function choose(map, body, signals)
  local which = map.shares:argmax(1)
  local particles, actuator, used, unused = {}, {}, {}, {}
  for p = 1, body.count do
    if body:get(p) > 0 then
      local a = which:get(p)
      particles[#particles + 1], actuator[#actuator + 1] = p, a <= signals and a or 0
      used[a] = true
    end
  end
  for a = 1, signals do
    if not used[a] then unused[#unused + 1] = a end
  end
  return particles, actuator, unused
end

-- weights of each particle: minus one for its own signal, since positive pulses expand
local function weights_of(actuator, signals)
  local out = T.zeros { #actuator, signals }
  for k, a in ipairs(actuator) do
    if a > 0 then out:set(-1, k, a) end
  end
  return out
end

-- bodies are coloured by what their particles follow
local function name_parts(robot, actuator, signals)
  local names = {}
  for a = 0, signals do
    local name, list = a == 0 and "passive" or "actuator " .. a, {}
    for k, own in ipairs(actuator) do
      if own == a then list[#list + 1] = k end
    end
    if #list > 0 and not robot.group_table[name] then
      robot:add_group(name, list)
      names[#names + 1] = name
    end
  end
  robot.groups, robot.drawn = names, {}
end

---@param design cq.Topology
---@param params table
---@param def design.binarise.def
---@return cq.Topology.Solid
local function binarise(design, params, def)
  return T.tape.pause(function()
    local map, signals = design:map(params), design.signals
    local particles, actuator, unused = choose(map, design:body(map.density, def.threshold), signals)
    if #particles == 0 and option.program.check then
      -- cqlua check does not train: a design may still be all of one density, and the whole block stands for its body
      particles, actuator, unused = choose(map, T.ones { map.density.count }, signals)
    end
    if #particles == 0 then
      is.fail("design:binarise: no particle has a density above the threshold %s, the most is %s: the body is empty",
        text.number(def.threshold),
        text.number(map.density:max():item()))
    end
    if #unused > 0 then
      message.note_once("design:binarise: no particle follows signal %s", table.concat(unused, ", "))
    end
    local pulses = design.pulses:binary(params.sign, params.size)
    local robot = design.robot:subset(particles)
    name_parts(robot, actuator, signals)
    local world
    world, robot = part(design, robot:with { actuation_weight = weights_of(actuator, signals) })
    return setmetatable({
      robot = robot, world = world, particles = particles, actuator = actuator, pulses = pulses, unused = unused,
      design = design,
      total = design.robot.particle_count, controller = controllers.open_loop(design.pulses:signals(pulses)),
    }, Solid)
  end)
end

method.guard(Solid, "solid")

return binarise
