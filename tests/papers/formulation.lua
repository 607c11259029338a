-- Does an example learn in the other formulation, and what does its gait keep with 2, 4 and 8 times the substeps? Its
-- material may be given a viscosity, or be neo-Hookean in the place of corotated, which legs that push turn inside out.
--   cqlua tests/papers/formulation.lua --robot walker2d --law neo_hookean --viscosity 0.02 --refine 2
-- The losses are printed and returned; the table of docs/notes/2026-11.md is made of them.
local cq = require "cq"
local is = require "cq.base.schema"

local robot = cq.option("robot", "walker2d")
local formulation = cq.option("formulation", "total_lagrangian", is.one_of { "total_lagrangian", "updated" })
local viscosity = cq.option("viscosity", 0)
local law = cq.option("law", "as it is", is.one_of { "as it is", "neo_hookean", "corotated" })
local refine = cq.option("refine", 1)                         -- as many times the substeps in training

local World, Experiment, Material, last = cq.World, cq.Experiment, cq.Material, nil

local function material(name)
  return function(def)
    if viscosity > 0 then def.viscosity = viscosity end
    return Material[law == "as it is" and name or law](def)
  end
end

rawset(cq, "Material", setmetatable({ corotated = material "corotated", neo_hookean = material "neo_hookean" },
  { __index = Material, __call = function(_, ...) return Material(...) end }))
rawset(cq, "World", function(fields)
  fields.formulation, fields.substeps = formulation, fields.substeps * refine
  return World(fields)
end)
rawset(cq, "Experiment", function(fields)
  last = Experiment(fields)
  rawset(last, "render", function() end)
  return last
end)

-- a training whose simulation fails for good keeps its best gait
local ok, problem = pcall(dofile, ("examples/%s.lua"):format(robot))
if not ok and not last then error(problem, 0) end
if not ok then print(problem) end

local result = { best = last.best.loss }
for _, times in ipairs { 1, 2, 4, 8 } do
  local world = times > 1 and last.world:variant { substeps = times } or nil
  local simulated, run = pcall(last.evaluate, last, { world = world })
  result["substeps_x" .. times] = simulated and run.loss or nil
  print(("with %d times the substeps: %s"):format(times, simulated and ("%.4f"):format(run.loss) or run))
end
return result
