-- solid: what a design becomes when it is made: solid particles only, each of one signal or none, and whole pulses or none.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local T = require "cq.tensor"
local controllers = require "cq.controller"

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
  return ("cq.Topology.Solid { %s of %d, by actuator %s }"):format(text.count(#self.particles, "particle"), self.total, table.concat(parts, ", "))
end

-- particles above the threshold, and the signal of each
local function choose(map, threshold, signals)
  local density, which = map.density, map.shares:argmax(1)
  local particles, actuator, used, unused = {}, {}, {}, {}
  for p = 1, density.count do
    if density:get(p) > threshold then
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

-- the world with another robot in the place of the design's
local function world_with(design, robot)
  local robots = {}
  for k, own in ipairs(design.world.robots) do robots[k] = own == design.robot and robot or own end
  return design.world:with_robots(robots)
end

---@param design cq.Topology
---@param params table
---@param def design.binarise.def
---@return cq.Topology.Solid
local function binarise(design, params, def)
  return T.tape.pause(function()
    local map, signals = design:map(params), design.signals
    local particles, actuator, unused = choose(map, def.threshold, signals)
    if #particles == 0 then
      is.fail("design:binarise: no particle has a density above the threshold %s, the most is %s: the body is empty", text.number(def.threshold),
        text.number(map.density:max():item()))
    end
    local pulses = design.pulses:binary(params.sign, params.size)
    local robot = design.robot:subset(particles):with { actuation_weight = weights_of(actuator, signals) }
    local world = world_with(design, robot)
    for k, own in ipairs(design.world.robots) do
      if own == design.robot then robot = world.robots[k] end
    end
    return setmetatable({
      robot = robot, world = world, particles = particles, actuator = actuator, pulses = pulses, unused = unused, design = design,
      total = design.robot.particle_count, controller = controllers.open_loop(design.pulses:signals(pulses)),
    }, Solid)
  end)
end

return binarise
