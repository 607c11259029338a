-- What a design of topology optimization keeps: in steps of 0.25 and 0.05 ms of what it does in the paper's of 0.1 ms,
-- and where stiffness, density and strength differ by up to 5 %, drawn at once (their walls hold what touches them and
-- have no friction).
--   cqlua tests/papers/designs.lua --example walker --of zoo/walker.bin
-- --of: a file or the folder of a run; --sees place for one of feedback.lua that saw places. The loss is minus a way
-- in m, of a rotator minus an angle in rad, of a balancer the mean distance of its tip from where it began, whose
-- gain is counted from the same body without signals; of it also where in time the worst draw is lost, and whether
-- by the weight that the body bears or by its frequencies.
local cq = require "cq"
local changes = require "cq.robustness.changes"
local is = require "cq.base.schema"
local quantile = require "cq.base.quantile"
local moved = require "tests.papers.moved"
local swaying = require "scenes.swaying"
local turning = require "scenes.turning"

local function way(axis)
  return function() return function(state, start)
    local robot = state.world.robots[1]
    return start:center(robot)[axis] - state:center(robot)[axis]
  end end
end

local track                -- of the tip: how far it is at each control step, where it is asked for
local objectives = {
  walker = way(1), walker3d = way(1), climber = way(2),
  rotator = function(world) return { running = turning(world) } end,
  balancer = function(world)
    local distance = swaying(world)
    return { reduce = "mean", running = function(state)
      local d = distance(state)
      if track then track[#track + 1] = d:item() end
      return d
    end }
  end,
}
local example = cq.option("example", "walker", is.one_of { "walker", "walker3d", "climber", "balancer", "rotator" })
local saved = cq.load(cq.option("of", ("zoo/%s.bin"):format(example)))
local draws = cq.option("draws", 32)
local sees = cq.option("sees", "velocity", is.one_of { "velocity", "place" })

-- the experiment in an engine step of so many milliseconds
local function experiment(step)
  local fields = {}
  for key, value in pairs(saved.world) do fields[key] = value end
  fields.substeps = math.floor(fields.dt / (1e-3 * step) + 0.5)
  local world, observer = cq.World(fields), sees == "place" and moved(cq.option("clusters", 4)) or nil
  return cq.Experiment { world = world, steps = saved.steps, observer = observer or saved.observer,
    controller = saved.controller, weight = saved.data.weight, objective = objectives[example](world) }
end

local function loss(run, change)
  local _, params, fields = changes.of(run, run.params, change or {}, 0)
  fields.params = params
  return run:evaluate(fields).loss
end
-- and the loss
local function gain(run, change)
  local found = loss(run, change)
  if example ~= "balancer" then return -found, found end
  local silent = { silent = true }
  for name, size in pairs(change or {}) do
    if name ~= "strength" then silent[name] = size end
  end
  return loss(run, silent) - found, found
end

local paper = experiment(0.1)
local nominal, nominal_loss = gain(paper)
print(("%s in steps of 0.1 ms: loss %.5f, gain %.4f"):format(example, nominal_loss, nominal))
for _, step in ipairs { 0.25, 0.05 } do
  local left, other_loss = gain(experiment(step))
  print(("  %.2f ms  loss %.5f, kept %.0f %%"):format(step, other_loss, 100 * left / nominal))
end
local random, kept, losses = cq.random { seed = cq.option("seed", 0) }, {}, {}
local worst, worst_loss = {}, -math.huge
for k = 1, draws do
  local change = {}
  for _, name in ipairs { "stiffness", "density", "strength" } do
    change[name] = random:uniform({}, { min = -0.05, max = 0.05 }):item()
  end
  kept[k], losses[k] = gain(paper, change)
  if losses[k] > worst_loss then worst, worst_loss = change, losses[k] end
  kept[k] = kept[k] / nominal
end
table.sort(kept)
table.sort(losses)
print(("  within 5 %%  kept: median %.0f %%, worst %.0f %%; loss: median %.5f, worst %.5f; of %d draws"):format(
  100 * quantile.of(kept, 0.5), 100 * kept[1], quantile.of(losses, 0.5), losses[draws], draws))
if example ~= "balancer" then return end

-- mean distance of the tip in each fifth of the time [mm]
local function fifths(what, change)
  track = {}
  local found, parts = loss(paper, change), {}
  for k = 1, 5 do
    local sum, first, last = 0, math.floor((k - 1) * #track / 5) + 1, math.floor(k * #track / 5)
    for i = first, last do sum = sum + track[i] end
    parts[k] = ("%5.1f"):format(1e3 * sum / (last - first + 1))
  end
  track = nil
  print(("  %-63s loss %.5f, in fifths of the time %s mm"):format(what, found, table.concat(parts, " ")))
end
fifths("as it is", {})
fifths("without signals", { silent = true })
fifths(("the worst draw: E %+.1f %%, density %+.1f %%, strength %+.1f %%"):format(100 * worst.stiffness,
  100 * worst.density, 100 * worst.strength), worst)
worst.strength, worst.silent = nil, true
fifths("the worst draw without signals", worst)
for _, size in ipairs { -0.05, 0.05 } do
  local by = (" by %+.0f %%"):format(100 * size)
  fifths("weight over stiffness" .. by, { gravity = size })
  fifths("strength over stiffness" .. by, { strength = size })
  fifths("stiffness, weight and strength over inertia" .. by, { stiffness = size, gravity = size, strength = size })
end
