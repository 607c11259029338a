-- Everything is the user's own: two tendons, an observer, a controller with a memory, a cost by its worst moment.
--                                                                                       cqlua examples/custom.lua
-- Source: the scene is cqlua's own, after the user-written parts of advanced-chainqueen (listings 1 to 3). A stalk is
-- hit at t = 0 and would swing on for long; its tendons are to calm it, though the controller only sees where the tip
-- is, not how fast it goes. Expect: the worst excursion after t = 1.5 falls from 0.16 to less than 0.05 in 100
-- iterations; without the memory (--memory no) it stays above 0.1.
-- Kept: 22 and 2 % with 2 and 4 times the substeps, 12 % on a finer grid, 3 % at 5 % of anything (cqlua robust).
-- Size: 240 particles, 300 x 9 steps. Time: 6 s.
local cq = require "cq"

local width, height, spacing, x, y = 0.06, 0.4, 0.01, 0.37, 0.05

-- a force actuator: signal in [-1, 1], of which only a pull counts, and positions {k, 2} in, forces {k, 2} out
local Tendon = { signals = 1, tension = 0.1 }             -- bends the stalk by a radian
Tendon.__index = Tendon
-- forces {k, 2} on the particles at `points` {k, 2}, in the order along the tendon, from a signal u {1}
function Tendon:force(u, points)
  local n       = points:size(1)
  local segment = points:slice(2, n) - points:slice(1, n - 1)
  local pull    = self.tension * u[1]:relu() * segment / segment:norm(2, true)
  return pull:pad { 0, 1 } - pull:pad { 1, 0 }            -- each segment pulls its two ends together
end
-- a tendon along the particles of a group
local function tendon(group) return setmetatable({ particles = group }, Tendon) end

local world = cq.World {
  cells = { 40, 30 }, dx = 1 / 50, dt = 1e-2, substeps = "auto",
  cq.Robot {
    shape     = cq.Shape.box { name = "stalk", size = { width, height }, spacing = spacing },
    material  = cq.Material.neo_hookean { young = 60, poisson = 0.3, density = 1 },
    groups    = {
      foot = function(_, py) return py < 0.04 end, tip = function(_, py) return py > height - 0.04 end,
      -- they end below the tip, where there is flesh on all sides
      left = function(px, py) return px < spacing and py < 0.36 end,
      right = function(px, py) return px > width - spacing and py < 0.36 end,
    },
    pins      = "foot",
    actuators = { tendon "left", tendon "right" },
  }:at { x, y },
}

-- an observer: any differentiable expression of the state; here, how far the tip is from its place, {1}
local function excursion(state) return state:center("tip"):slice(1, 1) - (x + width / 2) end

-- a controller: four leaky averages of what was seen, from which it can tell where the tip comes from
local random, remembers = cq.random { seed = 3 }, cq.option("memory", true)
-- a parameter of this shape with random first values
local function weights(shape) return cq.param(random:normal(shape, { deviation = 0.5 })) end
local Memory = { params = { w = weights { 1, 4 }, v = weights { 4, 2 }, d = weights { 1, 2 } },
  leak = cq.tensor { 0.5, 0.7, 0.8, 0.9 } }
-- the averages at the start, {4}
function Memory:start() return cq.zeros { 4 } end
-- signals {2} from an observation {1} and the averages {4}, and the new averages; parameters are those of self.params
function Memory:act(seen, hidden)
  local p, leak = self.params, remembers and self.leak or 0
  seen = 10 * seen                                        -- of the order of 1
  hidden = leak * hidden + (1 - leak) * seen:matmul(p.w)
  return (hidden:matmul(p.v) + seen:matmul(p.d)):tanh(), hidden
end

local run = cq.Experiment {
  world = world, duration = 3, robot = world.robot:with { velocity = { 0.4, 0 } }, observer = excursion,
  controller = Memory,
  objective = { running = function(state) return state.time > 1.5 and excursion(state):abs():sum() or 0 end,
    reduce = "max" },
  -- the worst moment jumps from one swing to another: ever smaller steps let it settle
  optimizer = cq.Optimizer.adam { rate = 0.1, schedule = function(i) return 0.97 ^ i end },
}
run:optimize { iterations = cq.option("iterations", 100) }
print(("worst excursion after t = 1.5: %.4f"):format(run:evaluate().loss))
run:render "custom.mp4"
