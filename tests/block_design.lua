-- block_design: a block that falls a little on the floor, and a design of it, for the tests of cq.Topology.
local cq = require "cq"

local block_design = {}

block_design.material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 }

function block_design.robot(changes)
  local fields = {
    shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.02 }, material = block_design.material,
    groups = { tip = function(_, y) return y > 0.16 end }, actuators = cq.Actuator.isotropic { count = 3, max = 1e4 },
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Robot(fields)
end

function block_design.world(robot)
  return cq.World {
    cells = { 25, 25 }, dx = 0.04, gravity = { 0, -9.8 }, dt = 1e-3, substeps = 5, precision = "float64", threads = 1,
    walls = cq.Boundary.box { kind = "sticky", separable = true, inset = 0.08 }, robot:at { 0.2, 0.08 },
  }
end

---@param changes? table      fields of cq.Topology in the place of those here
---@param robot? cq.Robot
function block_design.make(changes, robot)
  local fields = {
    world = block_design.world(robot or block_design.robot()), duration = 0.03, filter = { radius = 0.05 },
    material = { stiffness_exponent = 1, min_density = 1e-5 }, pulses = { interval = 2e-3, width = 0.01, gain = 0.2 },
    seed = 1,
  }
  for key, value in pairs(changes or {}) do
    local merged = {}
    for _, part in ipairs { key ~= "solid_region" and type(fields[key]) == "table" and not getmetatable(fields[key])
      and fields[key] or {}, type(value) == "table" and not getmetatable(value) and value or {} } do
      for name, entry in pairs(part) do merged[name] = entry end
    end
    fields[key] = next(merged) and merged or value
  end
  return cq.Topology(fields)
end

---Variables all over.
function block_design.variables(design)
  local p, random = design:start(2), cq.random { seed = 3 }
  p.density:copy_from((random:uniform { 100 } * 2 - 0.7):clamp(-1, 1))
  p.layout:copy_from(random:normal { 4, 100 })
  p.sign:copy_from(random:uniform(p.sign:shape()) * 2 - 1)
  p.magnitude:copy_from(random:uniform(p.magnitude:shape()) * 2 - 1)
  return p
end

-- an experiment of the block, which is to go along x, and its design
---@param changes? table      fields of cq.Experiment in the place of those here; false: without
function block_design.experiment(changes)
  local design = block_design.make()
  local fields = {
    world = design.world, steps = 30, design = design,
    objective = function(state, start) return start:center(design.robot)[1] - state:center(design.robot)[1] end,
  }
  for name, value in pairs(changes or {}) do
    if type(value) == "function" and name == "constraints" then value = value(design) end
    fields[name] = value or nil
  end
  return cq.Experiment(fields), design
end

return block_design
