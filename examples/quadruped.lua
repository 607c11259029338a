-- A walker on four, six or eight legs of air chambers; with --codesign its body is learnt too, and compared.
--                                                                   cqlua examples/quadruped.lua --legs 6 --codesign
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.3.3 and fig. 12 to 14, where co-design goes
-- some 33 % farther in the mean of six runs; distances are not printed.
-- Expect: with four legs 2.64 body lengths after 50 iterations, and 4.77 with co-design, the means of --seed 0 to 5,
-- which gave 2.46 to 2.75 and 4.49 to 5.10; with six legs 2.71 and 4.24, with eight 3.24 and 5.38. With --full and four
-- legs 2.54 and 4.96, from 2.41 to 2.66 and 4.87 to 5.05.
-- As there: centroid observer, MLP, 60 control steps of 0.05, Adam at 5e-3; bodies within 7 to 20 (E), 0.2 to 0.4 (nu),
-- 0.7 to 2 (density). --full has the paper's 84,375, 111,375 or 138,375 particles. Six runs are cqlua study run
-- examples/quadruped.lua --seeds 6 --seed 0 --codesign.
-- Kept: 95 and 85 % with 2 and 4 times the substeps, 84 % on a finer grid, 94 % at 5 % of anything (cqlua robust).
-- Size: 3,125 particles, twice 60 x 15 steps; 84,375 with --full. Time: 1 min with --codesign; 27 min with --full.
local cq = require "cq"

local full, length, iterations = cq.option("full", false), 0.3, cq.option("iterations", 50)
local robot = cq.Creature.nped {
  legs = cq.option("legs", 4), count = cq.option("count", full and 15 or 5), side = length / 3,
}
local world = cq.World {
  cells = { 75, 15, 21 }, dx = 1 / 30, gravity = { 0, -2, 0 }, dt = 0.05, substeps = 15,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  robot:at { 0.15, 0.17, 0.2 },               -- it falls a little: one that stands still hardly has a gradient
}
local start = 0.15 + length / 2                -- of its middle

-- values of every particle; a step of Adam is a sixtieth of the way from the lower bound to the upper
local function within(min, max) return { min = min, max = max, per = "particle", rate = (max - min) / 60 } end
local bodies = {
  fixed = {}, codesign = { young = within(7, 20), poisson = within(0.2, 0.4), density = within(0.7, 2) },
}

-- x of the robot's middle
local function place(state) return state:center(robot)[1] end
-- an experiment of a walker that learns, with trainable numbers of `bodies`
local function Walker(name)
  return cq.Experiment {
    world = world, duration = 3, trainable = bodies[name], memory = full and "1 GiB" or nil,
    weight     = "particle",                   -- a mean over mass would move with the density
    observer   = cq.Observer.centroid { groups = robot.groups, velocity = true },
    controller = cq.Controller.mlp { hidden = { 64, 64 }, seed = cq.option("seed", 0) },
    objective  = {
      terminal = function(state) return -place(state) end, effort = function(u) return 5e-7 * u:square():sum() end,
    },
    optimizer  = cq.Optimizer.adam { rate = 5e-3, clip = 1, schedule = function(i) return 0.99 ^ i end },
  }
end

local names = cq.option("codesign", false) and { "fixed", "codesign" } or { "fixed" }
local run, result = nil, {}
for _, name in ipairs(names) do
  run = Walker(name)
  run:optimize { iterations = iterations, name = #names > 1 and name or nil }
  result[name] = (place(run:evaluate().rollout.state):item() - start) / length
  print(("%-8s walked %.2f body lengths in 3 time units"):format(name, result[name]))
end
if names[2] then print(("co-design adds %.0f %%"):format(100 * (result.codesign / result.fixed - 1))) end
local young = names[2] and { by = "young", range = { 7, 20 } } or nil
run:render("quadruped.mp4", { colour = young })
run:render("quadruped.png", { stills = { 0, 1, 2, 3 }, colour = young })
result.loss = run.best.loss
return result
