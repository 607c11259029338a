-- What does a small feedback bring to a body that was designed for pulses alone? The pulses of a trained body are
-- optimized further, alone or with a controller beside them that sees velocities; and what is kept of each.
--   cqlua tests/papers/feedback.lua --example walker --from zoo/walker.bin --with feedback --out runs/walker-feedback
-- --with none: the body as it comes; pulses: as many iterations of the pulses alone. robustness.json in the folder has
-- what is kept, feedback.json the loss.
local cq = require "cq"
local is = require "cq.base.schema"
local json = require "cq.base.json"

local with = cq.option("with", "feedback", is.one_of { "none", "pulses", "feedback" })
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
  return last
end)

local function plan()
  return own.Plan {
    name = with,
    optimizer = cq.Optimizer.adam { rate = rate, epsilon = 1e-4, relative_epsilon = true, clip = "median" },
    { name = with, iterations = with == "none" and 1 or iterations, body = "extracted",
      train = with == "feedback" and { "design.pulses", "controller" } or { "design.pulses" },
      options = { rate = cq.Schedule.linear { from = rate, to = rate / 10 } } },
  }
end

rawset(cq, "Plan", setmetatable({ topology = plan }, { __index = own.Plan, __call = plan }))

dofile(("examples/topology_%s.lua"):format(cq.option("example", "walker", is.one_of { "walker", "balancer" })))
local report = cq.robustness(last, { draws = cq.option("draws", 8) })
print(report)
report:save(last:path "robustness.json")
local file = assert(io.open(last:path "feedback.json", "w"))
assert(file:write(json.encode { with = with, best = last.best.loss, loss = report.loss }, "\n"))
assert(file:close())
