-- What training over variants costs and brings: an example as it is, over variants of its simulation, on its own grid
-- and a finer one, with twice the particles, or with twice the substeps alone; and what is kept of each.
--   cqlua tests/papers/ensemble.lua --robot quadruped --with variants --out runs/quadruped-variants
--   cqlua tests/papers/ensemble.lua --robot cable_biped --with grids --from zoo/cable_biped.bin --iterations 60
--   cqlua tests/papers/ensemble.lua --robot arm2d --with variants      its co-design, by the distance to the goal
--   cqlua tests/papers/ensemble.lua --robot topology_walker --with variants --starts 1 --seed 101
-- --reduce worst: for the worst of variants or grids, and not for their mean.
-- --transfer decay: in a world that damps by time and not by the step.
-- --feedback: beside signals of time alone, a linear controller that sees seven clusters and begins without any effect.
-- robustness.json in the folder has what is kept, ensemble.json the loss, the time and what it was trained with.
local cq = require "cq"
local is = require "cq.base.schema"
local json = require "cq.base.json"
local clock = require("cq.base.engine").C.cq_clock

local robot = cq.option("robot", "quadruped")
local with = cq.option("with", "none", is.one_of { "none", "variants", "grids", "particles", "steps" })
local transfer = cq.option("transfer", "apic", is.one_of { "apic", "decay" })

-- the simulation as it is, with half of the steps, on a finer grid, and with all else a little different
local function variants(random, k)
  if k == 1 then return {} end
  if k == 2 then return { change = { substeps = 2 } } end
  if k == 3 then return { change = { grid = 0.8 } } end
  local change = { noise = 0.05 }
  for _, name in ipairs { "stiffness", "density", "strength", "gravity" } do
    change[name] = random:uniform({}, { min = -0.1, max = 0.1 }):item()
  end
  return { change = change }
end

local last, started
local function experiment(fields)
  local function more(def)
    if with == "variants" then def.variants = { each = variants, count = cq.option("count", 5) } end
    if cq.option("feedback", false) then
      def.observer = cq.Observer.kmeans { clusters = 7, velocity = true }
      def.controller = cq.Controller.sum { rhythm = def.controller, feedback = cq.Controller.linear { scale = 0 } }
    end
    if with == "grids" then def.variants = { {}, { change = { grid = 0.8 } } } end
    if def.variants then def.reduce = cq.option("reduce", "mean", is.one_of { "mean", "worst" }) end
    return def
  end
  local given = type(fields) == "function" and function(level) return more(fields(level)) end or more(fields)
  last, started = require "cq.experiment"(given), clock()
  last.render = function() end
  return last
end

local function world(fields)
  if with == "steps" and type(fields.substeps) == "number" then fields.substeps = 2 * fields.substeps end
  if transfer == "decay" then fields.transfer = { decay = "auto" } end
  return require "cq.world"(fields)
end

-- Wraps a constructor of shapes or creatures so that there are twice the particles: of a number, or of particles along
-- an edge.
local function denser(make)
  return function(fields)
    local edge = 2 ^ (1 / (fields.dim or type(fields.size) == "table" and #fields.size or 3))
    if fields.particles then fields.particles = 2 * fields.particles end
    if fields.count then fields.count = math.floor(fields.count * edge + 0.5) end
    if fields.spacing then fields.spacing = fields.spacing / edge end
    return make(fields)
  end
end

local creature = {}
for name, make in pairs(cq.Creature) do
  creature[name] = with == "particles" and type(make) == "function" and denser(make) or make
end
if with == "particles" and robot:match "^topology" then rawset(cq.Shape, "box", denser(cq.Shape.box)) end

rawset(cq, "Experiment", experiment)
rawset(cq, "World", world)
rawset(cq, "Creature", creature)

-- The scene of the arms, whose goal and plot are known here. An arm's loss is the effort of its signals, which is least
-- without any: what is kept is the way to the goal.
local objective
if robot:match "^arm%dd$" then
  local make = require "scenes.arm_reach"
  package.loaded["scenes.arm_reach"] = function(fields)
    local reach = make(fields)
    function objective(state) return (state:center "hand" - reach.goal):norm() end
    function reach.plot() end
    function reach:compare(cases, def)                       -- of the last alone, the co-design
      local own, all = getmetatable(self).compare(self, { cases[#cases] }, def), {}
      for k = 1, #cases do all[k] = own[1] end
      return all
    end
    return reach
  end
end

dofile(("examples/%s.lua"):format(robot))
local seconds = clock() - started
if require("cq.option").program.replay then return end                  -- by cqlua robust, which measures itself
local report = cq.robustness(objective and cq.load(last.folder) or last,
  { draws = cq.option("draws", 32), objective = objective })
print(report)
report:save(last:path "robustness.json")
local file = assert(io.open(last:path "ensemble.json", "w"))
assert(file:write(json.encode { robot = robot, with = with, seconds = seconds, best = last.best.loss,
  particles = last.world.particle_count, loss = report.loss }, "\n"))
assert(file:close())
