-- iteration: a whole iteration of topology optimization, as a user's script makes it.
--
--   cqlua tests/bench/iteration.lua [--repeat 5] [--steps 10000] [--budget 64] [--out DIR] [--threads N]
--   [--formulation total_lagrangian]
--
-- A block of 1,600 particles in 2D on 100 x 100 cells, 10,000 engine steps, neo-Hookean, float32; four open-loop
-- signals that change every 20 steps, which every particle follows with weights of its own; gradients for weights
-- {1600, 4}, density and Young's modulus {1600}. Measured with everything kept, and within --budget [MiB], in turn;
-- medians, after one iteration of each that is not counted. Leaves iteration.csv in DIR.
-- Source: the walker of *4D topology optimization* (its 4.1.1), whose iteration of this size takes 22 s.
local cq = require "cq"
local engine = require "cq.base.engine"
local host = require "cq.host"
local machine = require "cq.measure.machine"
local C = engine.C

local SUBSTEPS, DT = 20, 1e-4                -- engine steps in a control step; an engine step [s]
local steps, repeats = cq.option("steps", 10000), cq.option("repeat", 5)
local budget, formulation = cq.option("budget", 64), cq.option("formulation", "updated")

local control_steps = math.max(1, math.floor(steps / SUBSTEPS + 0.5))
local robot = cq.Robot {
  shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, count = { 40, 40 } },
  material = cq.Material.neo_hookean { young = 0.1e6, poisson = 0.4, density = 1000 },
  actuators = cq.Actuator.isotropic { count = 4, max = 1e4 },
}
local world = cq.World {
  cells = { 100, 100 }, dx = 0.01, gravity = { 0, -9.8 }, dt = SUBSTEPS * DT, substeps = SUBSTEPS,
  formulation = formulation,
  walls = cq.Boundary.box { kind = "friction", mu = 0.5, inset = 0.03 }, robot:at { 0.1, 0.03 },
}
local n = robot.particle_count

-- four sines of 5 Hz, a quarter of a period apart
local rows = {}
for i = 1, control_steps do
  local t, row = (i - 1) * SUBSTEPS * DT, {}
  for a = 1, 4 do row[a] = 0.5 * math.sin(2 * math.pi * (5 * t + a / 4)) end
  rows[i] = row
end
local controller = cq.Controller.open_loop(cq.tensor(rows))

local params = {
  weights = cq.param(cq.random { seed = 1 }:uniform({ n, 4 }, { min = 0, max = 0.5 })),
  density = cq.param(cq.full({ n }, 1000)), young = cq.param(cq.full({ n }, 0.1e6)),
}

local memory, turn
local step = cq.value_and_grad(function(p)
  local body = robot:with { density = p.density, young = p.young, actuation_weight = p.weights }
  local roll = world:rollout { robot = body, steps = control_steps, controller = controller, memory = memory }
  local loss = -roll.state:center(robot)[1]
  turn = C.cq_clock()
  return loss, roll
end)

-- seconds forward and backward
local function iterate(bytes)
  memory = bytes
  local start = C.cq_clock()
  local _, grad, roll = step(params)
  local finish = C.cq_clock()
  roll:release()
  for name, tensor in pairs(grad) do
    if not tensor:finite() then error("iteration: the gradient for " .. name .. " is not finite", 0) end
  end
  return turn - start, finish - turn
end

local cases = {
  { name = "everything kept", aim = 0.4 },
  { name = ("within %d MiB"):format(budget), memory = budget * 2 ^ 20, aim = 0.5 },
}
for _, case in ipairs(cases) do
  case.plan = world:memory_plan { steps = control_steps, memory = case.memory }
  case.forward, case.backward, case.total = {}, {}, {}
end
for k = 0, repeats do
  for _, case in ipairs(cases) do
    local forward, backward = iterate(case.memory)
    if k > 0 then case.forward[k], case.backward[k], case.total[k] = forward, backward, forward + backward end
  end
end

local facts = machine.facts()
local head = ("%s, %d cores, %s, %s, %s; %s"):format(facts.processor, facts.cores, facts.system, facts.compiler,
  facts.date, world.device)
print(head)
print(("%d particles, %d engine steps, medians of %d iterations [s]"):format(n, control_steps * SUBSTEPS, repeats))
print(("%-18s %9s %9s %9s %9s %6s %9s %10s"):format("", "forward", "backward", "both", "best", "aim", "MiB",
  "forward x"))
local lines = {}
for _, case in ipairs(cases) do
  local m = machine.median
  print(("%-18s %9.3f %9.3f %9.3f %9.3f %6.1f %9.1f %10.2f"):format(case.name, m(case.forward), m(case.backward),
    m(case.total),
    machine.least(case.total), case.aim * control_steps * SUBSTEPS / 10000, case.plan.bytes / 2 ^ 20,
      case.plan.recompute))
  lines[#lines + 1] = ("%s,%d,%d,%.4f,%.4f,%.4f,%.4f,%.1f,%.2f\n"):format(case.name, n, control_steps * SUBSTEPS,
    m(case.forward), m(case.backward),
    m(case.total), machine.least(case.total), case.plan.bytes / 2 ^ 20, case.plan.recompute)
end

local folder = cq.option("out", nil)
if folder then
  host.make_folder(folder)
  local file = assert(io.open(folder .. "/iteration.csv", "w"))
  file:write("# ", head, "\n# medians of ", repeats, " iterations, seconds\n")
  file:write("case,particles,steps,forward_s,backward_s,both_s,best_s,memo_mib,recompute\n", table.concat(lines))
  file:close()
end
world:close()
