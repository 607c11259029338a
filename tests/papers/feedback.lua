-- What does a small feedback bring to a body that was designed for pulses alone? The pulses of a trained body are
-- optimized further, alone or with a controller beside them that sees velocities; and what is kept of each.
--   cqlua tests/papers/feedback.lua --example walker --from zoo/walker.bin --with feedback --out runs/walker-feedback
-- --with none: the body as it comes; pulses: as many iterations of the pulses alone. --over variants: trained in the
-- mean over the simulation as it is, one of half the step, and two of bodies that are up to 5 % different.
-- robustness.json in the folder has what is kept, feedback.json the loss.
local cq = require "cq"
local is = require "cq.base.schema"
local json = require "cq.base.json"

local with = cq.option("with", "feedback", is.one_of { "none", "pulses", "feedback" })
local over = cq.option("over", "one", is.one_of { "one", "variants" })
local iterations, rate = cq.option("iterations", 200), cq.option("rate", 5e-3)
local own, last = { Experiment = cq.Experiment, Plan = cq.Plan }, nil

local function more(fields)
  if with ~= "feedback" then return fields end
  fields.observer = cq.Observer.kmeans { clusters = cq.option("clusters", 4), position = false, velocity = true }
  fields.controller = cq.Controller.linear { scale = 0 }
  return fields
end

rawset(cq, "Experiment", function(fields)
  last = own.Experiment(type(fields) == "function" and function(level) return more(fields(level)) end or more(fields))
  last.render, last.figures = function() end, function() end
  return last
end)

local function variants(random, k)
  if k == 1 then return {} end
  if k == 2 then return { change = { substeps = 2 } } end
  local change = {}
  for _, name in ipairs { "stiffness", "density", "strength" } do
    change[name] = random:uniform({}, { min = -0.05, max = 0.05 }):item()
  end
  return { change = change }
end

local function plan()
  return own.Plan {
    name = with,
    optimizer = cq.Optimizer.adam { rate = rate, epsilon = 1e-4, relative_epsilon = true, clip = "median" },
    { name = with, iterations = with == "none" and 1 or iterations, body = "extracted",
      train = with == "feedback" and { "design.pulses", "controller" } or { "design.pulses" },
      variants = over == "variants" and { each = variants, count = 4 } or nil,
      options = { rate = cq.Schedule.linear { from = rate, to = rate / 10 } } },
  }
end

rawset(cq, "Plan", setmetatable({ topology = plan }, { __index = own.Plan, __call = plan }))

local example = cq.option("example", "walker", is.one_of { "walker", "balancer", "climber" })
dofile(("examples/topology_%s.lua"):format(example))
local report = cq.robustness(last, { draws = cq.option("draws", 8) })
print(report)
report:save(last:path "robustness.json")
local file = assert(io.open(last:path "feedback.json", "w"))
assert(file:write(json.encode { with = with, over = over, best = last.best.loss, loss = report.loss }, "\n"))
assert(file:close())
