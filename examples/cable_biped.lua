-- A biped that four cables move learns to walk from signals of time alone.             cqlua examples/cable_biped.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.2 and fig. 6: 5,024 particles, open loop, 4 time
-- units, ten substeps, Adam at 2e-2, cost of signals 1e-6/2 u'u. Its geometry, its cables and the length of a control
-- step are not printed. Expect: TODO
local cq = require "cq"

local robot = cq.Creature.biped { drive = "cables", particles = cq.option("particles", 5024) }
local world = cq.World {
  cells = { 160, 40 }, dx = 1 / 64, gravity = { 0, -2 }, dt = 5e-3, substeps = 10,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.15, 0.05 },
}
local function travelled(state) return state:center(robot)[1] end

local steps, hold = 800, 20
local first = cq.random { seed = cq.option("seed", 0) }:normal({ steps / hold, 4 }, { deviation = 0.2 })
local run = cq.Experiment {
  world = world, steps = steps,
  -- held over a tenth of a time unit; cables begin taut, for slack ones have no gradient
  controller = cq.Controller.open_loop { steps = steps, hold = hold, init = first },
  objective  = { final = function(state) return -travelled(state) end, effort = function(u) return 5e-7 * u:square():sum() end },
  optimizer  = cq.Optimizer.adam { rate = 2e-2, clip = 0.5, schedule = function(i) return 0.98 ^ i end },
}
run:optimize { iterations = cq.option("iterations", 100) }
local start = world:rollout({ steps = 1 }).state
