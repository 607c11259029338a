-- stepped: times 64 scenes of the biped that cq.Env steps together, beside one rollout of the same scenes and control
-- steps, which Lua does not interrupt. Backward it is the gradient through a window of as many control steps.
local cq = require "cq"
local engine = require "cq.base.engine"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"
local whole = require "cq.measure.whole"
local C = engine.C

local stepped = {}

local SCENES, CONTROL_STEPS = 64, 4
local EPISODE = 1e6                      -- control steps: none ends while it is timed

-- A cq.Env of 64 bipeds, which is timed.
local function environment(robot, world)
  return cq.Env { world = world, scenes = SCENES, steps = EPISODE,
    observer = cq.Observer.centroid { groups = robot.groups, velocity = true },
    reward = function(state, _, next) return (next:center(robot) - state:center(robot)):slice(1, 1, -1):flatten() end }
end

-- Returns three times [s]: of `control_steps` steps of an environment, of the backward pass of a window of as many
-- steps, and of that window's forward pass.
local function piece(env, policy, control_steps)
  local start, z = C.cq_clock(), env.observation
  for _ = 1, control_steps do z = env:step(policy:act(z)) end
  local turn, middle = C.cq_clock(), nil
  local _, grad = cq.value_and_grad(function(p)
    local window = env:window { controller = policy:with(p), steps = control_steps }
    middle = C.cq_clock()
    return -window.reward:mean()
  end)(policy.params)
  local finish = C.cq_clock()
  if not grad.w1:finite() then error "bench: the gradient of the window is not finite" end
  return turn - start, finish - middle, middle - turn
end

-- Seconds that one rollout with the signals u {scenes, steps, signals} takes, without a memo for gradients.
local function rollout(world, u)
  local start = C.cq_clock()
  local roll = world:rollout { steps = u:size(2), batch = SCENES, controller = cq.Controller.open_loop(u) }
  local seconds = C.cq_clock() - start
  roll:release()
  return seconds
end

---Times `repeats` pieces of an episode after one that is not counted, and returns a table as kernel.time does, with
---particles, device and share: of the wall time, as whole.time has it; of_rollout: the speed forward as a share of that
---of one rollout.
---@param steps integer?       engine steps of a piece, in whole control steps; 40 unless given
---@param repeats integer
function stepped.time(steps, repeats)
  local control_steps = steps and steps / whole.SUBSTEPS or CONTROL_STEPS
  local robot, world = whole.biped()
  local env = environment(robot, world)
  env:reset { seed = 1 }
  local width = env.action_space.shape[1]
  local policy = cq.Controller.mlp { inputs = env.observation_space.shape[1], signals = width, hidden = { 64, 64 } }
  local u = cq.random({ seed = 1 }):uniform({ SCENES, control_steps, width }, { min = -1, max = 1 })
  local out = { particles = world.particle_count * SCENES, precision = world.precision, engine = world.device,
    device = world.device_kind, cells = world.cells, steps = control_steps * whole.SUBSTEPS, law = "neo_hookean",
    timers = kernel.timer_cost(whole.SUBSTEPS), forward = {}, backward = {} }
  policy:act(env.observation)
  piece(env, policy, control_steps)
  rollout(world, u)
  local alone, wall, inside = {}, 0, 0
  kernel.take_timers(world)
  for k = 1, repeats do
    local window
    out.forward[k], out.backward[k], window = piece(env, policy, control_steps)
    wall = wall + out.forward[k] + out.backward[k] + window
  end
  out.phases = kernel.take_timers(world)
  for _, seconds in pairs(out.phases) do inside = inside + seconds end
  for k = 1, repeats do alone[k] = rollout(world, u) end
  out.share = { readouts = out.phases.readout / wall, lua = 1 - inside / wall,
    of_rollout = machine.median(alone) / machine.median(out.forward) }
  out.share.steps = 1 - out.share.readouts - out.share.lua
  world:close()
  return out
end

return stepped
