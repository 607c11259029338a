-- A biped learns to walk over hills that are made of particles.                             cqlua examples/terrain.lua
-- Expect: 2.3 body lengths after 140 iterations, over both hills, up and down 15 and 18 degrees; --full 2.2, the mean
-- of ten seeds, from 1.5 to 3.1: five pass both hills, four the first, one none.
-- Source: Advanced soft robot modeling in ChainQueen (Robotica 2021), 5.2 and fig. 8: graded terrain of particles,
-- 36,200 with the biped's 12,800, centroid observer, MLP, Adam, 4 time units in steps of 0.02. The profile is not
-- printed: here hills of 15 and 18 degrees, 0.2 long (--hill). The biped is told the time as well. --full has the
-- paper's particles, and 17 substeps where it prints 100, and its ten runs are cqlua study run
-- examples/terrain.lua --seeds 10 --seed 0; --fall is what the rate is multiplied by after each iteration.
-- Kept: 67 and 20 % with 2 and 4 times the substeps, 26 % on a finer grid, 62 % at 5 % of anything (cqlua robust).
-- Size: 2,080 particles, 200 x 12 steps; 36,200, 200 x 17 with --full. Time: 3 min; 18 min with --full.
local cq = require "cq"

local full   = cq.option("full", false)
local slopes = cq.option("slopes", { 15, 18 })               -- of the hills, up and down [degree]
local rate, fall = cq.option("rate", 3e-3), cq.option("fall", 0.99)
local clock  = cq.option("clock", 1)                         -- how loud it ticks
local hill   = cq.option("hill", 0.2)                        -- length of each
local dx     = full and 1 / 64 or 1 / 40
local robot  = cq.Creature.biped { count = full and 40 or 10 }
local length, left = robot.size[1], 3 * dx                   -- left: where the ground begins, at the edge of the room
local ground = require "scenes.terrain" {
  slopes = slopes, flat = 0.5, period = hill, length = 2, young = 30, count = full and { 780, 30 } or { 160, 8 },
}
local world = cq.World {
  cells = { math.ceil((2 + 2 * left) / dx), math.ceil(0.6 / dx) }, dx = dx, gravity = { 0, -2 },
  dt = 2e-2, substeps = "auto", walls = cq.Boundary.box { kind = "friction", mu = 0.5 },
  robot:at { left + 0.1, left + 0.1 + 1.5 * dx }, ground.robot:at { left, left },
}
local start = left + 0.1 + length / 2                        -- of its middle

-- where its blocks are and how they move, and a clock: without one it must first find a rhythm
local eyes, frequency = cq.Observer.centroid { groups = robot.groups, velocity = true }, 2
-- the observation: of the eyes, then of the clock
local function observe(state)
  local phase = 2 * math.pi * frequency * state.time
  return cq.concat { eyes:observe(state), clock * cq.tensor { math.sin(phase), math.cos(phase) } }
end

-- x of the robot's centre of mass
local function place(state) return state:center(robot)[1] end
local run = cq.Experiment {
  world = world, duration = 4, observer = observe,
  gradient = { decay = 2 },                                       -- docs/objectives.md, "Long times"
  controller = cq.Controller.mlp { hidden = { 64, 64 }, seed = cq.option("seed", 0) },
  objective  = {
    terminal = function(_, begin) return -place(begin) end,
    running  = function(state) return -world.control_dt * state:velocity(robot)[1] end,
    effort   = function(u) return 5e-7 * u:square():sum() end,
  },
  optimizer  = cq.Optimizer.adam { rate = rate, clip = 0.5, schedule = function(i) return fall ^ i end },
}

run:optimize { iterations = cq.option("iterations", 140) }

-- how far it is: of each hill the way up, then the way down
local roll = run:evaluate().rollout
local at, past, hills = place(roll.state):item() - left, {}, 0
for k, x in ipairs(ground.ends) do
  if at > x - hill / 2 then past[#past + 1] = ("%g up"):format(slopes[k]) end
  if at > x then
    past[#past + 1], hills = ("%g down"):format(slopes[k]), hills + 1
  end
end
local lengths = (at + left - start) / length
print(("walked %.2f body lengths, over %d of %d hills, past slopes of [degree]: %s"):format(lengths, hills, #slopes,
  #past > 0 and table.concat(past, ", ") or "none"))
run:render "terrain.mp4"
run:render("terrain.png", { stills = { 0, 1, 2, 3, 4 } })
return { loss = run.best.loss, lengths = lengths, hills = hills }
