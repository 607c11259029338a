-- A climber between two walls, from a block as wide as their gap.                 cqlua examples/topology_climber.lua
-- Source: Yuhn et al., 4D topology optimization (CMAME), section 4.1.2, where it goes up by 0.234 m, and 0.151 m when
-- it is binary. A plan of its own, since the default one does not climb: it learns one step that comes again, with
-- gravity that grows as it is borne, in half of the time, and is its own mirror image.
-- Expect: 0.296 m in the median of eight seeds (--seed 101 to 108), one start, from 0.261 to 0.336 m.
-- Kept: 36 and 14 % with 2 and 4 times the substeps, 86 % on the finer grid of its level (-57 % with its body sampled
-- anew there), 75 % at 5 % of anything (cqlua robust climber); of its height above its start.
-- With a feedback trained for the worst of three steps (docs/gaits.md) 0.360 m, of which 97 and 72, 100 and 59 %; with
-- one that sees places, trained over bodies too, 0.446 m, and 0.168 m at least with each of 32 bodies within 5 %.
-- Size: 1,600 particles, 1,000 x 10 steps, 660 iterations. Time: 4 min of one core.
local cq = require "cq"

local FULL = 9.8

-- fields of the experiment, with cells of the grid larger by the factor level.coarsen; level may have a duration and
-- substeps
local function climber(level)
  local k, duration = level.coarsen, level.duration or 1
  local n = math.ceil(100 / k)                                    -- cells of a metre
  local dx = 0.01 * k
  local block = cq.Robot {
    shape     = cq.Shape.box { size = { 0.2, 0.2 }, spacing = dx / 2 },
    material  = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
    actuators = cq.Actuator.isotropic { count = 4, max = 1e4 },
  }
  -- A wall of the shaft at x. It has only the nodes behind its surface: those on it would hold the block's sides from
  -- the start.
  local function side(name, x, normal)
    return cq.Boundary.half_plane { name = name, point = { x, 0 }, normal = { normal, 0 }, kind = "sticky",
      separable = true }
  end
  local world = cq.World {
    cells = { n, n }, dx = dx, gravity = { 0, -FULL }, dt = 1e-3 * k, substeps = level.substeps or 10,
    walls = { side("left", 0.4 - 0.1 * dx, 1), side("right", 0.6 + 0.1 * dx, -1),
      cq.Boundary.box { name = "room", kind = "sticky", separable = true, inset = 0.04 } },
    block:at { 0.4, 0.3 },
  }
  return {
    world = world, duration = duration, gradient = { decay = 0.1 },                       -- two steps
    design = cq.Topology { world = world, duration = duration, connected = true, symmetry = { axis = "x" },
      pulses = { period = 0.052 } },
    objective = { running = function(state) return -world.control_dt * state:velocity(block)[2] end },
  }
end

-- A function (iteration, history) that gives gravity: up to FULL, it grows by 0.1 where the climber rises by enough,
-- and is less by 0.2 where it does not by half of that; FULL after the last iteration.
local function borne(from, begins, last)
  return function(i, history)
    local gravity, waited, enough = from, 0, 0.04
    for k = begins, math.min(i - 1, last) do
      local change = -history[k].loss >= enough and 0.1 or -history[k].loss < enough / 2 and -0.2 or 0
      waited = waited + 1
      if gravity < FULL and waited >= 3 and change ~= 0 then
        gravity, waited = math.max(0, math.min(FULL, gravity + change)), 0
      end
    end
    return { 0, -(i > last and FULL or gravity) }
  end
end

local half = { duration = 0.5 }
local plan = cq.Plan {
  name = "climber", recover = { halvings = 5 },
  { name = "soft", iterations = 230, level = { duration = 0.5, substeps = 4 },
    optimizer = cq.Optimizer.adam { rate = 0.01, per = "tensor" }, options = { gravity = borne(0, 30, 230) } },
  { name = "light", iterations = 240, level = half, body = "binary", initial = "last",
    optimizer = cq.Optimizer.adam { rate = 4e-3, clip = 0.1 },
    options = { sharpness = 8, rate = cq.Schedule.linear { from = 4e-3, to = 4e-4 }, gravity = borne(6, 5, 180) } },
  { name = "whole", iterations = 40, body = "binary", optimizer = cq.Optimizer.adam { rate = 3e-4, clip = 0.1 },
    options = { sharpness = 8 } },
  { name = "pulses", iterations = 150, body = "extracted", optimizer = cq.Optimizer.adam { rate = 0.01, clip = 1 },
    options = { rate = cq.Schedule.linear { from = 0.01, to = 1e-3 } } },
}
print(plan)
local run = cq.Experiment(climber)
run:optimize { plan = plan }
print(run:evaluate(), run.body)
run.body:save_surface "climber.stl"
run:render "climber.mp4"
run:figures "climber.png"
