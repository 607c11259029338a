-- whole: times a training iteration of the biped as a user's script makes it: k-means observer and network,
-- which the engine drives by, and an effort in Lua, forward and backward. What the timers do not hold is
-- everything else: Lua, and the network.
local cq = require "cq"
local engine = require "cq.base.engine"
local kernel = require "cq.measure.kernel"
local C = engine.C

local whole = {}

local CONTROL_STEPS, SUBSTEPS = 40, 10

whole.SUBSTEPS = SUBSTEPS

---The biped and its world, as in the example.
---@return cq.Robot robot
---@return cq.World world
function whole.biped()
  local robot = cq.Robot(require "scenes.biped" {})
  return robot, cq.World {
    cells = { 400, 64 }, dx = 1 / 64, gravity = { 0, -2 }, dt = 5e-3, substeps = SUBSTEPS,
    walls = cq.Boundary.box { kind = "friction", mu = 0.5 }, robot:at { 0.2, 0.05 },
  }
end

-- A function without arguments that simulates the biped for `control_steps` and takes the gradient of its loss by the
-- controller's weights. It returns the seconds of the forward and of the backward pass; no weight is updated.
local function iteration(robot, world, control_steps)
  local observer = cq.Observer.kmeans { clusters = 7, velocity = true }
  local controller = cq.Controller.mlp { hidden = { 64, 64 }, activation = "relu" }
  local params = controller:prepare(world, observer)
  local start, turn
  local step = cq.value_and_grad(function(p)
    start = C.cq_clock()
    local roll = world:rollout {
      steps = control_steps, observer = observer, controller = controller:with(p),
      effort = function(u) return 1e-8 * u:square():sum() end,
    }
    local loss = roll.effort - roll.state:center(robot)[1]
    turn = C.cq_clock()
    return loss, roll
  end)
  return function()
    local _, grad, roll = step(params)
    local finish = C.cq_clock()
    roll:release()
    if not grad.w1:finite() then error "bench: the biped's gradient is not finite" end
    return turn - start, finish - turn
  end
end

---Times `repeats` iterations after one that is not counted, and returns a table as kernel.time does, with particles and
---device. steps: engine steps; share: of the wall time, in steps and adjoints (sorting and actuation among them), in
---readouts, and in Lua with all else.
---@param steps integer?       engine steps of an iteration, in whole control steps; 400 unless given
---@param repeats integer
function whole.time(steps, repeats)
  local control_steps = steps and steps / SUBSTEPS or CONTROL_STEPS
  local robot, world = whole.biped()
  local once = iteration(robot, world, control_steps)
  local out = {
    particles = world.particle_count, precision = world.precision, engine = world.device, device = world.device_kind,
    cells = world.cells,
    steps = control_steps * SUBSTEPS, law = "neo_hookean", timers = kernel.timer_cost(SUBSTEPS), forward = {},
    backward = {},
  }
  once()
  kernel.take_timers(world)
  local wall, inside = 0, 0
  for k = 1, repeats do
    out.forward[k], out.backward[k] = once()
    wall = wall + out.forward[k] + out.backward[k]
  end
  out.phases = kernel.take_timers(world)
  for _, seconds in pairs(out.phases) do inside = inside + seconds end
  out.share = { readouts = out.phases.readout / wall, lua = 1 - inside / wall }
  out.share.steps = 1 - out.share.readouts - out.share.lua
  world:close()
  return out
end

return whole
