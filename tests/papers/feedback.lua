-- What does a small feedback bring to a body that was designed for pulses alone? The pulses of a trained body are
-- optimized further, alone or with a controller beside them that sees velocities; and what is kept of each.
--   cqlua tests/papers/feedback.lua --example walker --from zoo/walker.bin --with feedback --out runs/walker-feedback
-- --with none: the body as it comes; pulses: as many iterations of the pulses alone. --over variants: trained in the
-- mean over the simulation as it is, one of half the step, and two of bodies that are up to 5 % different. --over
-- steps: for the worst of the paper's steps of 0.1 ms, and of 0.25 and 0.05 ms; drawn: in the mean over these and seven
-- such bodies; corners: these steps and the eight bodies whose stiffness, density and strength are each 5 % more or
-- less, in the mean of the worst three tenths.
-- --sees place: also how far clusters are from where they began (moved.lua).
-- robustness.json in the folder has what is kept, feedback.json the loss.
local cq = require "cq"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local moved = require "tests.papers.moved"

local with = cq.option("with", "feedback", is.one_of { "none", "pulses", "feedback" })
local over = cq.option("over", "one", is.one_of { "one", "variants", "steps", "drawn", "corners" })
local iterations, rate = cq.option("iterations", 200), cq.option("rate", 5e-3)
local sees = cq.option("sees", "velocity", is.one_of { "velocity", "place" })
local own, last = { Experiment = cq.Experiment, Plan = cq.Plan }, nil

local function more(fields)
  if with ~= "feedback" then return fields end
  local clusters = cq.option("clusters", 4)
  fields.observer = sees == "place" and moved(clusters)
    or cq.Observer.kmeans { clusters = clusters, position = false, velocity = true }
  fields.controller = cq.Controller.linear { scale = 0 }
  return fields
end

rawset(cq, "Experiment", function(fields)
  last = own.Experiment(type(fields) == "function" and function(level) return more(fields(level)) end or more(fields))
  last.render, last.figures = function() end, function() end
  return last
end)

local constants = { "stiffness", "density", "strength" }

-- a body whose constants are each up to 5 % different
local function other_body(random)
  local change = {}
  for _, name in ipairs(constants) do change[name] = random:uniform({}, { min = -0.05, max = 0.05 }):item() end
  return { change = change }
end

-- one whose constants are each 5 % more or less, by the bits of k
local function corner(k)
  local change = {}
  for i, name in ipairs(constants) do change[name] = math.floor(k / 2 ^ (i - 1)) % 2 == 0 and -0.05 or 0.05 end
  return { change = change }
end

local steps = { {}, { change = { substeps = 0.4 } }, { change = { substeps = 2 } } }
local ensembles = {
  variants = { count = 4, each = function(random, k)
    return k == 1 and {} or k == 2 and { change = { substeps = 2 } } or other_body(random)
  end },
  steps = steps,
  drawn = { count = 10, each = function(random, k) return steps[k] or other_body(random) end },
  corners = { count = 11, fixed = true, each = function(_, k) return steps[k] or corner(k - 4) end },
}
local reduces = { steps = "worst", corners = { cvar = 0.3 } }

local function plan()
  return own.Plan {
    name = with,
    optimizer = cq.Optimizer.adam { rate = rate, epsilon = 1e-4, relative_epsilon = true, clip = "median" },
    { name = with, iterations = with == "none" and 1 or iterations, body = "extracted",
      train = with == "feedback" and { "design.pulses", "controller" } or { "design.pulses" },
      variants = ensembles[over], reduce = reduces[over],
      options = { rate = cq.Schedule.linear { from = rate, to = rate / 10 } } },
  }
end

rawset(cq, "Plan", setmetatable({ topology = plan }, { __index = own.Plan, __call = plan }))

local example = cq.option("example", "walker", is.one_of { "walker", "walker3d", "balancer", "climber", "rotator" })
dofile(("examples/topology_%s.lua"):format(example))
local report = cq.robustness(last, { draws = cq.option("draws", 8) })
print(report)
report:save(last:path "robustness.json")
local file = assert(io.open(last:path "feedback.json", "w"))
assert(file:write(json.encode { with = with, over = over, best = last.best.loss, loss = report.loss }, "\n"))
assert(file:close())
