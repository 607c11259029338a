-- How far do robots get by which gradient, over a time and over four times that?
--   cqlua study run tests/papers/horizons.lua --robot cable_biped --jobs 1 --threads 1 [--last 10 --rollouts 60]
-- Robots: biped, cable_biped, rhino, terrain, quadruped, creature, walker, each coarse. Ways: Adam through all time;
-- the same with windows of a quarter of the time, with the mean of four copies with noise, and with a decay; SHAC; PPO
-- at its reference settings; CMA-ES on sines. All have the same number of control steps: --rollouts times the longer
-- time, and one that is also made backward counts three times. A trial gives body lengths along x at the end, without
-- noise, and reports minus those of its training, over control steps. --ways shac,ppo runs these alone, --times 4 the
-- longer time. --tenfold: SHAC, PPO and CMA-ES have ten times the control steps, as in ICRA 2019, fig. 7, whose walker
-- this is too; ppo-1e-3 and ppo-3e-3 are PPO at other rates.
local cq = require "cq"
local is = require "cq.base.schema"
local Cma = require "cq.study.cma"

local robots = {}

local function flat(robot, dx, cells, at, dt, substeps)
  return cq.World { cells = cells, dx = dx, dt = dt, substeps = substeps or "auto",
    gravity = robot.dim == 3 and { 0, -2, 0 } or { 0, -2 }, walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
    robot:at(at) }
end

function robots.biped()
  local robot = cq.Robot(require "scenes.biped" { count = 10 })
  return robot, flat(robot, 1 / 32, { 128, 32 }, { 0.2, 0.13 }, 1e-2), 0.3
end

function robots.cable_biped()
  local robot = cq.Creature.biped { drive = "cables", particles = 400, stiffness = 10, contraction = 0.5 }
  return robot, flat(robot, 1 / 32, { 128, 24 }, { 0.15, 0.1 }, 1e-2), robot.size[1]
end

function robots.rhino()
  local robot = cq.Creature.from_image { path = "../../scenes/assets/rhino.png", width = 0.45, particles = 900 }
  return robot, flat(robot, 1 / 40, { 160, 40 }, { 0.15, 0.13 }, 1e-2), 0.45
end

function robots.terrain()
  local robot, dx = cq.Creature.biped { count = 8 }, 1 / 32
  local ground = require "scenes.terrain" { slopes = { 15, 18 }, flat = 0.5, period = 0.2, length = 2, young = 30,
    count = { 120, 6 } }
  local world = cq.World { cells = { 70, 20 }, dx = dx, gravity = { 0, -2 }, dt = 1e-2, substeps = "auto",
    walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 3 * dx + 0.1, 4.5 * dx + 0.1 },
    ground.robot:at { 3 * dx, 3 * dx } }
  return robot, world, robot.size[1]
end

function robots.quadruped()
  local robot = cq.Creature.nped { legs = 4, count = 4, side = 0.1 }
  return robot, flat(robot, 1 / 24, { 60, 18, 17 }, { 0.15, 0.2, 0.2 }, 2e-2), 0.3
end

function robots.creature()
  local robot, dx = cq.Creature.from_mesh { path = "../../scenes/assets/creature.stl", length = 0.4, particles = 1500 },
    1 / 24
  return robot, flat(robot, dx, { 48, 17, 20 }, { 0.15, 4.5 * dx, 10 * dx - robot.size[3] / 2 }, 1e-2), 0.4
end

function robots.walker()
  local robot = cq.Robot(require "scenes.walker2d" { count = 10 })
  return robot, flat(robot, 1 / 40, { 160, 30 }, { 0.2, 0.1 }, 1e-2), robot.size[1]
end

local name = cq.option("robot", "cable_biped", is.one_of { "biped", "cable_biped", "rhino", "terrain", "quadruped",
  "creature", "walker" })
local tenfold = cq.option("tenfold", false)
local T, budget = cq.option("duration", 1), cq.option("rollouts", 60)      -- the shorter time; rollouts of the longer

local function sight() return cq.Observer.kmeans { clusters = 5, velocity = true } end

-- body lengths along x at the end
local function lengths(world, robot, length, steps, observer, controller)
  local fine, roll = pcall(world.rollout, world, { steps = steps, observer = observer, controller = controller })
  if not fine then return 0 / 0 end
  local way = (roll.state:center(robot) - roll:start():center(robot))[1]:item() / length
  roll:release()
  return way
end

-- an experiment with so many rollouts as the control steps are for; of: forward, of each iteration
local function by_gradient(gradient, copies)
  return function(case, trial)
    local robot, world, length = case.robot, case.world, case.length
    local run = cq.Experiment {
      world = world, steps = case.steps, gradient = gradient and gradient(case.duration, world.control_dt),
      observer = sight(), controller = cq.Controller.mlp { hidden = { 32, 32 }, seed = trial.seed },
      objective = { running = function(state) return -world.control_dt * state:velocity(robot)[1] end },
      optimizer = cq.Optimizer.adam { rate = 5e-3, clip = 1 },
    }
    local each = copies and 1 + 3 * copies or 3
    run:optimize { iterations = math.max(1, math.floor(case.all / (each * case.steps))),
      on_iteration = function(k, loss) trial.report(k * each * case.steps, { error = loss / length }) end }
    local roll = run:evaluate().rollout
    return (roll.state:center(robot) - roll:start():center(robot))[1]:item() / length
  end
end

local function environment(case, scenes)
  local robot, world = case.robot, case.world
  return cq.Env { world = world, scenes = scenes, steps = case.steps, observer = sight(),
    reset = function(random)
      return robot:with { velocity = random:uniform({ world.dim }, { min = -0.02, max = 0.02 }) }
    end,
    reward = function(state, _, next)
      return 10 * (next:center(robot) - state:center(robot)):slice(1, 1, -1):flatten() / case.length
    end }
end

local function by_learner(make)
  return function(case, trial)
    local learner = make(case, trial)
    learner:train { on_update = function(row)
      if row.episode_return then trial.report(row.steps, { error = -row.episode_return / 10 }) end
    end }
    return lengths(case.world, case.robot, case.length, case.steps, learner.env.observer, learner:controller())
  end
end

local ways = {
  adam = by_gradient(), decay = by_gradient(function(t) return { decay = t / 4 } end),
  window = by_gradient(function(t, dt) return { window = dt * math.floor(t / 4 / dt + 0.5) } end),
  smooth = by_gradient(function() return { smooth = { samples = 4, sigma = 0.02 } } end, 4),
  shac = by_learner(function(case, trial)
    return cq.Learner.shac { env = environment(case, 4), steps = math.max(80, math.floor(case.all / 3)), horizon = 20,
      seed = trial.seed }
  end),
}
for way, rate in pairs { ppo = 3e-4, ["ppo-1e-3"] = 1e-3, ["ppo-3e-3"] = 3e-3 } do
  ways[way] = by_learner(function(case, trial)
    return cq.Learner.ppo { env = environment(case, 16), steps = math.max(case.all, 2048), rate = rate,
      seed = trial.seed }
  end)
end
local SAMPLED = { shac = true, ppo = true, ["ppo-1e-3"] = true, ["ppo-3e-3"] = true, cma = true }

function ways.cma(case, trial)
  local random = cq.random { seed = trial.seed }
  local stream = { normal = function() return random:normal({}):item() end }
  local controller = cq.Controller.sines { count = 2, frequency = 2, seed = 1 }
  controller:prepare(case.world)
  local leaves, n = {}, 0
  for _, key in ipairs { "b", "w" } do
    leaves[#leaves + 1], n = controller.params[key], n + controller.params[key].count
  end
  local search, made, best = Cma.new(n), 0, { loss = math.huge }
  local function take(point)
    local at = 0
    for _, t in ipairs(leaves) do
      for i = 0, t.count - 1 do
        at = at + 1
        t.pointer[i] = 4 * point[at] - 2
      end
    end
  end
  repeat
    local points, values = {}, {}
    for k = 1, search.size do
      points[k] = search:ask(stream)
      take(points[k])
      local way = lengths(case.world, case.robot, case.length, case.steps, nil, controller)
      values[k] = way == way and -way or 1
      if values[k] < best.loss then best = { loss = values[k], point = points[k] } end
    end
    search:tell(points, values)
    made = made + search.size * case.steps
    trial.report(made, { error = best.loss })
  until made + search.size * case.steps > case.all
  return -best.loss
end

local WAYS = { "adam", "decay", "window", "smooth", "shac", "ppo", "cma" }
local ALL = { "ppo-1e-3", "ppo-3e-3", unpack(WAYS) }

return cq.Study {
  name = "horizons-" .. name, maximize = "lengths",
  grid = { seed = cq.range(1, cq.option("last", 10)), times = cq.option("times", { 1, 4 }, is.list(is.number())),
    way = cq.option("ways", WAYS, is.list(is.one_of(ALL))) },
  run = function(point, trial)
    local robot, world, length = robots[name]()
    local duration = point.times * T
    local steps = math.floor(duration / world.control_dt + 0.5)
    local case = { robot = robot, world = world, length = length, steps = steps, duration = duration,
      all = budget * math.floor(4 * T / world.control_dt + 0.5) * (tenfold and SAMPLED[point.way] and 10 or 1) }
    return { lengths = ways[point.way](case, trial) }
  end,
}
