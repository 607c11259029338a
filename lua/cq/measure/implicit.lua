-- implicit: times implicit steps beside explicit ones of the same scene, a block much stiffer than that of the other
-- cases, and tells what the parts of an implicit step cost in explicit steps.
local cq = require "cq"
local kernel = require "cq.measure.kernel"
local machine = require "cq.measure.machine"

local implicit = {}

local YOUNG, EXPLICIT_STEP = 1e5, 5e-6    -- the speed of sound 100 times, and the step a hundredth, of the other blocks
local EXPLICIT_STEPS, SUBSTEPS, EXPLICIT_REPEATS = 100, 10, 5
local GAP_AT_REST = 0.5          -- cells between block and floor, where the floor holds it

-- The cq.World of a case with explicit steps, or implicit ones where an integrator is given, and the velocities {n,
-- dim} that its particles begin with.
local function world_of(case, step, substeps, integrator)
  local scene = require "scenes.falling_block" {
    dim = case.dim, side = case.side, cells = case.cells, substeps = substeps, step = step, young = YOUNG,
    floor = "separate", gap = not case.moves and GAP_AT_REST or nil,
  }
  scene.world.integrator, scene.world.precision = integrator, case.precision
  return cq.World(scene.world), case.moves and scene.velocity or cq.zeros { scene.robot.particle_count, case.dim }
end

-- Appends to `seconds`, for each repetition, EXPLICIT_REPEATS at least, how long one explicit step of a case takes.
local function explicit_steps(case, repeats, seconds)
  local world, velocity = world_of(case, EXPLICIT_STEP, SUBSTEPS)
  local timing = kernel.time(world, { velocity = velocity, steps = EXPLICIT_STEPS / SUBSTEPS,
    repeats = math.max(repeats, EXPLICIT_REPEATS) })
  for _, time in ipairs(timing.forward) do seconds[#seconds + 1] = time / (timing.steps * SUBSTEPS) end
  world:close()
end

---Times `steps` implicit steps, each as long as case.ratio explicit ones, `repeats` times after a first that does not
---count, and explicit steps before and after them. Returns a table as kernel.time, with particles, device and solver:
---explicit: [s] of an explicit step. In units of that: hessian_product: cost of a product with the second derivative;
---tensors, assembly: in the adjoint of a step, cost of the particles' tensors with the nodes' diagonal, and of the
---matrix of nodes, in 3D of the coarse lattice. backward_ratio: time backward over forward, with gradients to 1e-6 and
---steps to case.tolerance, by default 1e-3. speedup: time of explicit over implicit steps for the same simulated time.
---newton, products, products_backward: iterations and products in a step.
---@param steps integer?       engine steps of a repetition
---@param repeats integer
---@param case { dim: integer, side: integer, cells: integer[], ratio: integer, moves: boolean, steps: integer,
---  precision: string?, tolerance: number? }
function implicit.time(steps, repeats, case)
  local seconds = {}
  explicit_steps(case, repeats, seconds)
  local world, velocity = world_of(case, case.ratio * EXPLICIT_STEP, 1, cq.Implicit {
    tolerance = case.tolerance, adjoint_tolerance = 1e-6,
  })
  local timing = kernel.time(world, { velocity = velocity, steps = steps or case.steps, repeats = repeats })
  explicit_steps(case, repeats, seconds)
  local unit, did, made = machine.median(seconds), timing.solver, timing.steps * repeats
  local products = repeats * (did.linear + did.adjoint + timing.steps)   -- the adjoint makes one more, of the solution
  local forward, backward = machine.median(timing.forward), machine.median(timing.backward)
  local out = {
    particles = world.particle_count, precision = world.precision, engine = world.device, device = world.device_kind,
    cells = world.cells, steps = timing.steps, law = "neo_hookean", timers = kernel.timer_cost(1),
    forward = timing.forward, backward = timing.backward, phases = timing.phases,
    solver = {
      explicit = unit, ratio = case.ratio,
      hessian_product = timing.phases.product / products / unit,
      tensors = timing.back.tensors / made / unit, assembly = timing.back.assembly / made / unit,
      backward_ratio = backward / forward, speedup = case.ratio * unit * timing.steps / forward,
      newton = did.newton / timing.steps, products = did.linear / timing.steps,
      products_backward = did.adjoint / timing.steps,
    },
  }
  world:close()
  return out
end

return implicit
