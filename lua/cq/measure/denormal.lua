-- denormal: measures whether denormal numbers slow the engine. A long bar at rest is actuated at one end, and its
-- adjoint starts from the other end, so that velocities and gradients fade to denormal numbers along the bar. The same
-- bar in motion, with an adjoint that starts from all particles, has none. Both take equally long if denormal numbers
-- cost nothing.
local cq = require "cq"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"

local denormal = {}

local CONTROL_STEPS, SUBSTEPS = 40, 10
local SPEED = { 0.3, -0.2 }

-- {n, dim} the same velocity for all particles of the bar
local function velocity_of(robot, speed)
  return cq.tensor(speed):expand { robot.particle_count, 2 }
end

-- {control steps, 1} one period of a sine: the end stretches, then contracts
local function signals_of(steps)
  return ((cq.arange(steps) - 0.5) * (2 * math.pi / CONTROL_STEPS)):sin():unsqueeze(2)
end

---Times both bars, forward and backward. `ratio` divides the shortest time at rest by the shortest time in motion; the
---shortest times depend least on other programs on the machine.
---@param steps integer?       engine steps of a repetition, at least; 400 unless given
---@param repeats integer      timed repetitions, after one that is not timed
---@return { forward: number[], backward: number[], ratio: table<string, number>, [string]: any }   seconds, of the bar at rest
function denormal.time(steps, repeats)
  local control_steps = steps and math.ceil(steps / SUBSTEPS) or CONTROL_STEPS
  local scene = require "scenes.resting_bar" { substeps = SUBSTEPS }
  local world, robot = cq.World(scene.world), scene.robot
  local fields = {
    steps = control_steps, repeats = repeats, signals = signals_of(control_steps), velocity = velocity_of(robot, SPEED),
  }
  local moving = kernel.time(world, fields)
  fields.velocity, fields.group = velocity_of(robot, { 0, 0 }), robot:group(scene.far)
  local still = kernel.time(world, fields)
  local out = {
    particles = world.particle_count, precision = world.precision, engine = world.device, device = world.device_kind,
    cells = world.cells, steps = still.steps * SUBSTEPS, law = "neo_hookean", timers = kernel.timer_cost(SUBSTEPS),
    forward = still.forward, backward = still.backward, phases = still.phases, ratio = {},
  }
  for _, way in ipairs { "forward", "backward" } do
    out.ratio[way] = machine.least(still[way]) / machine.least(moving[way])
  end
  world:close()
  return out
end

return denormal
