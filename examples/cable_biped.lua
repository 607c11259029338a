-- A biped that four cables move learns to walk from signals of time alone.             cqlua examples/cable_biped.lua
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.2 and fig. 6: 5,024 particles, open loop, 4
-- time units, a cost of signals of 1e-6/2 u'u, two body lengths within 5 minutes. Its geometry, its cables and the
-- length of a control step are not printed. --full has the paper's particles and ten substeps, on a finer grid.
-- Expect: 2.99 body lengths after 100 iterations, the mean of ten seeds (cqlua study run examples/cable_biped.lua
-- --seeds 10 --seed 0), which gave 2.27 to 3.75; with --full 3.37, 2.73 to 3.83. Its adjoint decays (--decay):
-- docs/objectives.md, long times.
-- Kept: 64 and 56 % with 2 and 4 times the substeps, 24 % on a finer grid, 42 % at 5 % of anything (cqlua robust).
-- Size: 898 particles, 800 x 3 steps; 5,024, 800 x 10 with --full. Time: 1 min; 4 min with --full.
local cq = require "cq"

local full  = cq.option("full", false)
local robot = cq.Creature.biped {
  drive = "cables", particles = full and 5024 or 900, stiffness = 10, contraction = 0.5,
}
local dx = full and 1 / 64 or 1 / 48
local world = cq.World {
  cells = { math.ceil(2.5 / dx), math.ceil(0.65 / dx) }, dx = dx, gravity = { 0, -2 },
  dt = 5e-3, substeps = full and 10 or 3, walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  robot:at { 0.15, 0.06 },
}
local start, length = 0.3, robot.size[1]                     -- of its middle, at first

-- The first signals: the cables of a leg pull in turn, 1.6 times in a time unit, the right leg a fifth of a period
-- earlier, and noise. Each is held over a tenth of a time unit, for signals that change in every step tremble.
local duration, hold, frequency, lag = 4, 20, 1.6, 0.2
local rows = duration / (hold * world.control_dt)
-- signals {rows, 4} of that swing, with noise of this seed
local function first_signals(seed)
  local swing = {}
  for i = 1, rows do
    local t = (i - 0.5) * duration / rows
    swing[i] = {}
    for k, phase in ipairs { 0, 0.5, lag, lag + 0.5 } do
      swing[i][k] = 0.6 * math.sin(2 * math.pi * (frequency * t + phase)) - 0.3
    end
  end
  return (cq.tensor(swing) + cq.random { seed = seed }:normal({ rows, 4 }, { deviation = 0.1 })):clamp(-1, 1)
end

local fall  = cq.option("fall", 0.99)                       -- of the rate in each iteration
local decay = cq.option("decay", 0.5)                       -- of the adjoint [time]; 0: none
-- x of the robot's centre of mass
local function place(state) return state:center(robot)[1] end

-- It is to walk, and not to roll, which is quicker: the middle of the trunk is to be 0.08 above those of the legs.
local function fallen(state)
  local trunk, sum = state:center "trunk"[2], 0
  for _, leg in ipairs { "left", "right" } do sum = sum + (state:center(leg)[2] + 0.08 - trunk):relu() end
  return sum
end

local run = cq.Experiment {
  world = world, duration = duration, gradient = decay ~= 0 and { decay = decay } or nil,
  controller = cq.Controller.open_loop { steps = rows * hold, hold = hold, init = first_signals(cq.option("seed", 0)) },
  objective  = {                                          -- where it ends, as a sum over time
    terminal = function(_, begin) return -place(begin) end,
    running  = function(state) return world.control_dt * (5 * fallen(state) - state:velocity(robot)[1]) end,
    effort   = function(u) return 5e-7 * u:square():sum() end,
  },
  -- signals reach from -1 to 1: at 0.02 the gait is as steady, and slower; the first steps of Adam are of one size
  -- for all signals and would upset the swing, so that they are small
  optimizer  = cq.Optimizer.adam {
    rate = 4e-2, clip = 0.5, schedule = function(i) return math.min(1, i / 10) * fall ^ i end,
  },
}

run:optimize { iterations = cq.option("iterations", 100) }
local lengths = (place(run:evaluate().rollout.state):item() - start) / length
print(("walked %.2f body lengths in %d time units"):format(lengths, duration))
run:render "cable_biped.mp4"
run:render("cable_biped.png", { stills = { 0, 1, 2, 3, 4 } })
return { loss = run.best.loss, lengths = lengths }
