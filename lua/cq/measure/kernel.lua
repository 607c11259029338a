-- kernel: times the engine alone, forward and backward, on a world without a controller. Calls the engine directly, so
-- that nothing of Lua is measured beside the call of each control step.
local bit = require "bit"
local ffi = require "ffi"
local engine = require "cq.base.engine"
local C = engine.C

local kernel = {
  clock = C.cq_clock,          -- [s] of all timings; for one thread on a busy machine os.clock, the time on its core
}

---Phases of the engine by name, in their order.
---@return string[]
function kernel.phases()
  local names = {}
  for k = 1, tonumber(C.CQ_PHASE_COUNT) do names[k] = ffi.string(C.cq_phase_name(k - 1)) end
  return names
end

---Seconds that a world spent in each phase since they were taken the last time, by phase.
---@param world cq.World
---@return table<string, number>
function kernel.take_timers(world)
  local seconds, out = ffi.new("double[?]", C.CQ_PHASE_COUNT), {}
  C.cq_world_timers(world.handle, seconds, 1)
  for k, name in ipairs(kernel.phases()) do out[name] = seconds[k - 1] end
  return out
end

---Seconds that one reading of the timers takes.
---@return number
function kernel.reading()
  local count, least = 1e5, math.huge
  for _ = 1, 5 do
    local start = C.cq_clock()
    for _ = 1, count do C.cq_ticks() end
    least = math.min(least, (C.cq_clock() - start) / count)
  end
  return least
end

-- at the end of each pass of an engine step; and around a control step
local STEP_READINGS, CONTROL_READINGS = 3, 4

---Seconds of an engine step that the timers take.
---@param substeps integer
---@return number
function kernel.timer_cost(substeps) return kernel.reading() * (STEP_READINGS + CONTROL_READINGS / substeps) end

-- A rollout of the engine without Lua's rollout around it, begun with these velocities, for timing. Returns its handle
-- and its memory plan. memory: for the memo [bytes].
local function create(world, steps, velocity, memory)
  local def, out, plan = ffi.new "cq_rollout_def", ffi.new "cq_rollout *[1]", ffi.new "cq_plan"
  C.cq_rollout_def_init(def)
  def.steps, def.memory = steps, memory
  engine.check(C.cq_rollout_create(world.handle, def, out), "bench")
  engine.check(C.cq_rollout_set(out[0], C.CQ_FIELD_VELOCITY, velocity:data(), 0), "bench")
  -- places and first deformations of particles on a grid of their shape are rarely trained, and have loops of their own
  if world.layout.formulation == "total_lagrangian" then
    -- The bit of a field.
    local function one(field) return bit.lshift(1ULL, tonumber(field)) end
    C.cq_rollout_want(out[0], bit.bnot(bit.bor(one(C.CQ_FIELD_POSITION), one(C.CQ_FIELD_DEFORMATION))))
  end
  engine.check(C.cq_rollout_begin(out[0]), "bench")
  C.cq_rollout_plan(out[0], plan)
  return out[0], plan
end

local WARM = 0.2                 -- [s] of repetitions that are not counted

-- Free bytes where the memo lies: on the GPU, or in main memory.
local function memory_available(world)
  if world.device_kind == "cpu" then return tonumber(C.cq_memory_available()) end
  local gpu = ffi.new "cq_gpu"
  engine.check(C.cq_gpu_find(0, gpu), "bench")
  return tonumber(gpu.memory_available)
end

-- The handle of a rollout that keeps all of its control steps, so that the measurement includes no recomputation, and
-- its control steps, which may be fewer than fields.steps.
local function create_kept(world, fields)
  local memory = fields.memory or memory_available(world) / 2
  local handle, plan = create(world, fields.steps, fields.velocity, memory)
  if plan.recompute <= 1 then return handle, fields.steps end
  local steps = math.floor(memory / tonumber(plan.record_bytes))
  C.cq_rollout_destroy(handle)
  return (create(world, steps, fields.velocity, memory)), steps
end

-- The readout from which the backward pass starts, the mean position of all particles: { def: cq_readout, keep: its
-- memory, grad: double[3] of ones }.
local function readout_of(world)
  local n = world.particle_count
  local particles, start = ffi.new("int32_t[?]", n), ffi.new("int64_t[2]", { 0, n })
  for p = 0, n - 1 do particles[p] = p end
  local def = ffi.new "cq_readout"
  C.cq_readout_init(def)
  def.group_count, def.group_start, def.particles = 1, start, particles
  return { def = def, keep = { particles, start }, grad = ffi.new("double[3]", { 1, 1, 1 }) }
end

local one_start, one_particle, one_out = ffi.new("int64_t[2]", { 0, 1 }), ffi.new "int32_t[1]", ffi.new "double[3]"

-- The time when all work that was asked for is done. A GPU still works after the call returns; reading the position of
-- one particle waits for it.
local function done(handle)
  local one = ffi.new "cq_readout"
  C.cq_readout_init(one)
  one.group_count, one.group_start, one.particles = 1, one_start, one_particle
  engine.check(C.cq_rollout_read(handle, one, one_out), "bench")
  return kernel.clock()
end

-- Seconds that a forward pass of `steps` control steps takes. The timers of the world begin with it.
local function forward(world, handle, steps)
  engine.check(C.cq_rollout_begin(handle), "bench")
  local start = done(handle)
  kernel.take_timers(world)
  engine.check(C.cq_rollout_run(handle, steps, nil, nil), "bench")
  return done(handle) - start
end

-- Seconds that a backward pass over `steps` control steps takes, from the gradient of a readout.
local function backward(handle, steps, readout)
  engine.check(C.cq_rollout_begin_adjoint(handle), "bench")
  engine.check(C.cq_rollout_read_adjoint(handle, readout.def, readout.grad), "bench")
  local start = done(handle)
  engine.check(C.cq_rollout_run_adjoint(handle, steps, nil, nil), "bench")
  return done(handle) - start
end

-- Sums of the implicit solver's counts over `steps` engine steps of a rollout: { newton, linear, adjoint }; nil where
-- steps are explicit.
local function solver_of(handle, steps)
  local from = C.cq_rollout_solver(handle)
  if from == nil then return end
  local out, width = { newton = 0, linear = 0, adjoint = 0 }, tonumber(C.CQ_SOLVER_WIDTH)
  for step = 0, steps - 1 do
    out.newton = out.newton + from[step * width + C.CQ_SOLVER_NEWTON]
    out.linear = out.linear + from[step * width + C.CQ_SOLVER_LINEAR]
    out.adjoint = out.adjoint + from[step * width + C.CQ_SOLVER_ADJOINT]
  end
  return out
end

-- Adds the seconds of each phase in `more` to those in `phases`, in place.
local function add(phases, more)
  for name, seconds in pairs(more) do phases[name] = (phases[name] or 0) + seconds end
end

---@class cq.measure.Timing
---@field steps integer               control steps of a repetition, as many as memory keeps
---@field forward number[]            [s] of each repetition
---@field backward number[]
---@field phases table<string, number>   [s] in all repetitions together
---@field back table<string, number>     [s] of it, backward
---@field solver? { newton: integer, linear: integer, adjoint: integer }   of implicit steps, in one repetition

---Times `steps` control steps from the start, forward and backward, `repeats` times, after repetitions that do not
---count, for WARM seconds at least: in these the engine tries short control steps by one thread and by all. The memo of
---every step is written, and particles are sorted as often as they must be; the begin of a rollout and of its adjoint
---is not timed.
---@param world cq.World
---@param fields { velocity: cq.Tensor, steps: integer, repeats: integer, memory?: number }   memory: for the memo [bytes]
---@return cq.measure.Timing
function kernel.time(world, fields)
  local handle, steps = create_kept(world, fields)
  local readout, out = readout_of(world), { steps = steps, forward = {}, backward = {} }
  out.phases, out.back = {}, {}
  local begin, counted, k = C.cq_clock(), false, 0
  while k < fields.repeats do
    local there = forward(world, handle, steps)
    local ahead = kernel.take_timers(world)
    local back = backward(handle, steps, readout)
    local behind = kernel.take_timers(world)
    if counted then
      k = k + 1
      out.forward[k], out.backward[k] = there, back
      add(out.phases, ahead)
      add(out.phases, behind)
      add(out.back, behind)
    end
    counted = counted or C.cq_clock() - begin > WARM
  end
  out.solver = solver_of(handle, steps * world.substeps)
  C.cq_rollout_destroy(handle)
  return out
end

return kernel
