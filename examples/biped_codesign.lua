-- What is it worth that a biped learns its body too? Stiffness, Poisson's ratio and density of every particle, in all
-- eight combinations, beside a controller that is always learnt.                    cqlua examples/biped_codesign.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), fig. 11: all three add nearly 50 %.
-- Expect: body lengths, medians of --seeds 10: none 2.6, E 3.9, nu 3.3, density 3.0, E+nu 3.0, E+density 4.2,
-- nu+density 5.0, all 5.2. Gaits differ much with the first weights, with all from 1.2 to 7.7: one seed does not tell
-- what nu and density add.
-- The paper: bounds as here, 12,800 particles, 4 time units, ten runs each. --full has its particles, --seeds 10 its
-- runs; --resume goes on where a run was stopped, and adds seeds. Every curve is kept in curves.csv.
-- Size: 3,200 particles, eight times 200 x 6 steps; 12,800, 200 x 12 with --full. Time: 4 min with --seeds 1; 57 min
-- with --full --seeds 1.
local cq = require "cq"
local repeats = require "scenes.repeats"

local full, iterations = cq.option("full", false), cq.option("iterations", 100)
local seeds, first = cq.option("seeds", full and 1 or 2), cq.option("seed", 0)
local folder = cq.option("out", "runs/biped_codesign")
if seeds < 1 or seeds % 1 ~= 0 then error(("--seeds must be a whole number of at least 1, got %g"):format(seeds), 0) end
local start, length = 0.35, 0.3                                  -- of its middle at first; a body length

local names, combinations = { young = "E", poisson = "nu", density = "density" }, {}
for _, list in ipairs {
  {}, { "young" }, { "poisson" }, { "density" }, { "young", "poisson" }, { "young", "density" },
  { "poisson", "density" }, { "young", "poisson", "density" },
} do
  local trained, words = {}, {}
  for k, name in ipairs(list) do trained[name], words[k] = true, names[name] end
  local name = #list == 0 and "none" or #list == 3 and "all" or table.concat(words, "+")
  combinations[#combinations + 1] = { name = name, trained = trained, ways = {}, curves = {}, first = first }
end

-- ---- the runs -------------------------------------------------------------------------------------------------------

local function lengths(x) return (x - start) / length end

-- A gait that learns may hit the ground harder than its steps bear: it goes on with shorter ones then.
local function optimize(combination, seed, name, substeps, resume)
  local run = cq.Experiment(require "scenes.biped_codesign" {
    count = cq.option("count", full and 40 or 20), dx = full and 1 / 64 or 1 / 32, substeps = substeps,
    trained = combination.trained, seed = seed,
  })
  local fine, problem = pcall(run.optimize, run, { iterations = iterations, name = name, resume = resume })
  if fine then return run end
  if substeps > 20 or not tostring(problem):find("the simulation failed", 1, true) then error(problem, 0) end
  print(("%s: goes on with %d substeps, for %s"):format(name, substeps + 2, problem:match "the simulation.-%)"))
  return optimize(combination, seed, name, substeps + 2, cq.Run.can_resume(folder .. "/" .. name))
end

local function train(combination, seed)
  local name = ("%s/%d"):format(combination.name, seed)
  local own, run = folder .. "/" .. name, optimize(combination, seed, name, cq.option("substeps", full and 12 or 6))
  local roll = run:evaluate().rollout
  combination.ways[#combination.ways + 1] = lengths(roll.state:center(run.robot)[1]:item())
  -- cqlua check leaves no curves
  if cq.Run.can_resume(own) then combination.curves[#combination.curves + 1] = repeats.curve(own, lengths) end
  return run
end

local best                                                       -- of the walkers that learnt all
for seed = first, first + seeds - 1 do
  for _, combination in ipairs(combinations) do
    local run = train(combination, seed)
    if combination.name == "all" and (not best or run.best.loss < best.best.loss) then best = run end
    if #combinations[1].curves > 0 then repeats.write_curves(folder .. "/curves.csv", combinations) end
  end
end

-- ---- what came of it ------------------------------------------------------------------------------------------------

local none = repeats.quantile(combinations[1].ways, 0.5)
for _, combination in ipairs(combinations) do
  local ways = combination.ways
  local middle = repeats.quantile(ways, 0.5)
  print(("%-12s %5.2f body lengths, median of %d (%.2f to %.2f)%s"):format(combination.name, middle, #ways,
    math.min(unpack(ways)), math.max(unpack(ways)),
    combination.name == "none" and "" or ("; %+.0f %%"):format(100 * (middle / none - 1))))
end

local drawn = combinations[1].curves[1]
if cq.option("render", true) and drawn and #drawn.best > 0 then
  for by, name in pairs { iteration = "biped_codesign.png", seconds = "biped_codesign_time.png" } do
    repeats.plot { path = folder .. "/" .. name, by = by, title = "A biped that learns its body",
      label = "body lengths walked, the best so far", series = combinations }
  end
  best:render("body.png", {                                     -- in the folder of that run
    stills = { 0, 1, 2, 3, 4 }, colour = { by = "young", label = "Young's modulus", range = { 7, 20 } },
  })
end
