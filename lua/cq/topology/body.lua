-- body: the body extracted from a design: solid particles only, each of one signal or none, and whole pulses or none.
local method = require "cq.base.method"
local is = require "cq.base.schema"
local option = require "cq.option"
local text = require "cq.base.text"
local T = require "cq.tensor"
local message = require "cq.base.message"
local controllers = require "cq.controller"
local carried = require "cq.export.carried"
local export = require "cq.export"
local place = require "cq.base.place"
local surface = require "cq.export.surface"
local subworld = require "cq.topology.subworld"

---A rounded design without its void, from design:extract; run.body of a plan.
---@class cq.Topology.Body
---@field robot cq.Robot             the solid particles, as they are placed in the world
---@field world cq.World             the design's world with this robot in the place of the other
---@field controller cq.Controller   the signals of whole pulses
---@field particles integer[]        numbers of the solid particles in the design's robot
---@field actuator integer[]         of each solid particle the signal that it follows, 0: none
---@field pulses cq.Tensor           {pulses, signals} of -1, 0 and 1
---@field unused integer[]           signals that no particle follows
local Body = { __name = "cq.Topology.Body" }
Body.__index = Body

-- The body in one line: its particles, and how many follow each signal.
function Body:__tostring()
  local parts = {}
  for k = 1, self.pulses:size(2) do
    local count = 0
    for _, a in ipairs(self.actuator) do count = count + (a == k and 1 or 0) end
    parts[k] = tostring(count)
  end
  return ("cq.Topology.Body { %s of %d, by actuator %s }"):format(text.count(#self.particles, "particle"), self.total,
    table.concat(parts, ", "))
end

---The pulses as a controller whose parameters are signs and magnitudes, of whole pulses or none.
---@internal
---@param params { sign: cq.Tensor, magnitude: cq.Tensor }     as the variables of the design
---@return cq.Controller
function Body:pulse_controller(params)
  return self.design.pulses:controller { sign = params.sign, magnitude = params.magnitude, rounding = true }
end

---The same particles in the same world with other pulses.
---@internal
---@param params { sign: cq.Tensor, magnitude: cq.Tensor }     as the variables of the design
---@return cq.Topology.Body
function Body:with_pulses(params)
  local out, pulses = setmetatable({}, Body), self.design.pulses
  for name, value in pairs(self) do out[name] = value end
  out.pulses = pulses:rounded(params.sign, params.magnitude)
  out.controller = controllers.open_loop(T.tape.pause(pulses.signals, pulses, out.pulses))
  return out
end

-- ---- files ----------------------------------------------------------------------------------------------------------

---Writes this body as design:save does a design, a line for each particle of the block: solid ones have a density of 1,
---others of 0; pulses are -1, 0 and 1. A name without a slash is in its run's folder.
---Errors: a path that cannot be written.
---@param path string      ends in .csv
---@return string[] paths  of the three files
function Body:save(path)
  local pulses, signals = self.design.pulses, self.pulses:size(2)
  local density, shares = T.zeros { self.total }, T.zeros { signals + 1, self.total }
  for p = 1, self.total do shares:set(1, signals + 1, p) end
  for k, p in ipairs(self.particles) do
    density:set(1, p)
    shares:set(0, signals + 1, p)
    shares:set(1, self.actuator[k] > 0 and self.actuator[k] or signals + 1, p)
  end
  return require "cq.topology.save"("body:save", self.design, {
    density = density, shares = shares, amplitudes = self.pulses,
    signals = T.tape.pause(pulses.signals, pulses, self.pulses),
  }, path, self.run)
end

local surface_spec = is.define("body:save_surface", { thickness = is.number { above = 0, optional = true } })

-- A row {n} of 1 for the particles that follow a signal (0: those that follow none), over all particles of the design's
-- block.
local function followers(self, signal)
  local out = T.zeros { self.total }
  for k, a in ipairs(self.actuator) do
    if a == signal then out:set(1, self.particles[k]) end
  end
  return out
end

---@class body.save_surface.def
---@field thickness? number     of a body in 2D; the radius of the design's filter unless given [length]

---Writes the surface of the body that each actuator has, closed, as files to print or to read with cq.Shape.mesh: from
---"walker.stl" walker_1.stl, ..., of the rest walker_passive.stl, and walker_whole.stl of all together; likewise .obj,
---.ply, .glb or .vtp.
---Coordinates are those of the world; a body in 2D stands between z = 0 and its thickness. Parts fill the whole body,
---without a gap between them. One of a few particles that lie single among others may have no place in it: a note tells
---so. A name without a slash is in its run's folder. Errors: a body of particles so far apart that it has no surface.
---@param path string           ends in .stl, .obj, .ply, .glb or .vtp
---@param options? body.save_surface.def
---@return string[] paths       of the files that were written
function Body:save_surface(path, options)
  is.argument("body:save_surface", "path", is.string(), path)
  local format = export.of("body:save_surface", path, "surface")
  local front = place.of(path, self.run):sub(1, -#format.name - 2)
  local def = surface_spec(options or {})
  local position, dim, paths = self.design.robot.position, self.design.robot.dim, {}
  local spacing = self.design.robot.volume:mean():item() ^ (1 / dim)
  local field, names, parts, whole = surface.field(position, spacing), {}, {}, T.zeros { self.total }
  for a = 0, self.pulses:size(2) do
    names[a + 1], parts[a + 1] = a == 0 and "passive" or tostring(a), followers(self, a)
    whole = whole + parts[a + 1]
  end
  local thickness = def.thickness or self.design.filter.radius
  -- Writes triangles into one file, in the format of its ending.
  local function write(triangles, name)
    local body = surface.indexed(triangles, name)
    paths[#paths + 1] = ("%s_%s.%s"):format(front, name, format.name)
    export.write("body:save_surface", paths[#paths], format.surface(carried.surface { bodies = { body } }))
  end
  local all = surface.triangles(field, dim, { whole }, thickness)[1]
  if #all == 0 then
    is.fail("body:save_surface: the body has no surface: its %s lie too far apart", text.count(#self.particles, "particle"))
  end
  for k, triangles in ipairs(surface.triangles(field, dim, parts, thickness)) do
    local count = parts[k]:sum():item()
    if #triangles > 0 then
      write(triangles, names[k])
    elseif count > 0 then
      message.note("body:save_surface: %s of %s lie single among others: no %s_%s.%s", text.count(count, "particle"),
        k == 1 and "no actuator" or "actuator " .. names[k], front, names[k], format.name)
    end
  end
  write(all, "whole")
  return paths
end

-- ---- from a design --------------------------------------------------------------------------------------------------

-- Three lists: the particles of a body {n} of 1 and 0, the signal that each follows, 0 for none, and the signals that
-- none follows. map: of Topology:map.
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

-- The weights of actuators {particles, signals} for each particle of a list of signals: -1 for its own signal, since
-- positive pulses expand, 0 for the others.
local function weights_of(actuator, signals)
  local out = T.zeros { #actuator, signals }
  for k, a in ipairs(actuator) do
    if a > 0 then out:set(-1, k, a) end
  end
  return out
end

-- Adds a group to the robot for each signal that particles follow, "actuator 1" or "passive", and makes these its
-- groups for pictures, which colour them.
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

---The body of a design: its solid particles as a robot in a world of its own, with whole pulses. Errors: no particle is
---solid, but for cqlua check.
---@param design cq.Topology
---@param params table
---@param def design.extract.def
---@return cq.Topology.Body
local function extract(design, params, def)
  return T.tape.pause(function()
    local map, signals = design:map(params), design.signals
    local particles, actuator, unused = choose(map, design:body(map.density, def.threshold), signals)
    if #particles == 0 and option.program.check then
      -- cqlua check does not train: a design may still be all of one density, and the whole block stands for its body
      particles, actuator, unused = choose(map, T.ones { map.density.count }, signals)
    end
    if #particles == 0 then
      is.fail("design:extract: no particle has a density above the threshold %s, the most is %s: the body is empty",
        text.number(def.threshold),
        text.number(map.density:max():item()))
    end
    if #unused > 0 then
      message.note_once("design:extract: no particle follows signal %s", table.concat(unused, ", "))
    end
    local robot = design.robot:subset(particles)
    name_parts(robot, actuator, signals)
    local world
    world, robot = subworld(design, robot:with { actuation_weight = weights_of(actuator, signals) })
    local body = { robot = robot, world = world, particles = particles, actuator = actuator, unused = unused,
      design = design, total = design.robot.particle_count }
    return setmetatable(body, Body):with_pulses(params)
  end)
end

method.guard(Body, "body")

return extract
