-- cqlua: this program as a competitor.        cqlua tests/bench/peers/cqlua.lua --case NAME [--steps N] [--threads N]
--   [--formulation total_lagrangian] [--motion true] [--clock processor]
--
-- Makes one gradient, writes "first LOSS", and then does what it is told, a line each:
--   run        one pass there and back; answers "time FORWARD BACKWARD" in seconds
--   save PATH  loss and gradient of the last pass as float64 numbers; answers "saved"
-- Gradients: of the block, of initial positions and velocities {2, n, dim}; of the walker, of the controller's W and b.
-- The engine makes those of masses, volumes, material constants and first deformations as well; with --motion those of
-- positions, which are 0 in what is saved, and first deformations are left out.
local bit = require "bit"
local ffi = require "ffi"
local cq = require "cq"
local engine = require "cq.base.engine"
local scenes = require "tests.bench.peers.scenes"
local C = engine.C
local formulation, motion = cq.option("formulation", "updated"), cq.option("motion", false)
local clock = cq.option("clock", "wall") == "processor" and os.clock or function() return C.cq_clock() end

-- engine steps in a control step of the block, as `cqlua bench` has them
local SUBSTEPS = 10

-- the block has nothing in Lua at its control steps, so that the engine is called as `cqlua bench` calls it
local function block(scene)
  local substeps = scene.steps % SUBSTEPS == 0 and SUBSTEPS or 1
  local steps = scene.steps / substeps
  scene.world.dt, scene.world.substeps = scene.world.dt * substeps, substeps
  scene.world.formulation = formulation
  local world = cq.World(scene.world)
  local n, dim = world.particle_count, world.dim
  local def, out = ffi.new "cq_rollout_def", ffi.new "cq_rollout *[1]"
  C.cq_rollout_def_init(def)
  def.steps = steps
  engine.check(C.cq_rollout_create(world.handle, def, out))
  if motion then
    local function one(field) return bit.lshift(1ULL, tonumber(field)) end
    C.cq_rollout_want(out[0], bit.bnot(bit.bor(one(C.CQ_FIELD_POSITION), one(C.CQ_FIELD_DEFORMATION))))
  end
  local handle, start, particles = out[0], ffi.new("int64_t[2]", { 0, n }), ffi.new("int32_t[?]", n)
  for p = 0, n - 1 do particles[p] = p end
  local mean, center, direction = ffi.new "cq_readout", ffi.new "double[3]", ffi.new("double[3]", scene.direction)
  C.cq_readout_init(mean)
  mean.group_count, mean.group_start, mean.particles = 1, start, particles
  engine.check(C.cq_rollout_set(handle, C.CQ_FIELD_VELOCITY, scene.velocity:data(), 0))
  local result = ffi.new("double[?]", 1 + 2 * n * dim)
  return {
    result = result, count = 1 + 2 * n * dim, keep = { world, start, particles },
    forward = function()
      engine.check(C.cq_rollout_begin(handle))
      engine.check(C.cq_rollout_run(handle, steps, nil, nil))
      engine.check(C.cq_rollout_read(handle, mean, center))
      result[0] = 0
      for i = 0, dim - 1 do result[0] = result[0] + direction[i] * center[i] end
    end,
    backward = function()
      engine.check(C.cq_rollout_begin_adjoint(handle))
      engine.check(C.cq_rollout_read_adjoint(handle, mean, direction))
      engine.check(C.cq_rollout_run_adjoint(handle, steps, nil, nil))
      if not motion then engine.check(C.cq_rollout_gradient(handle, C.CQ_FIELD_POSITION, result + 1, 0)) end
      engine.check(C.cq_rollout_gradient(handle, C.CQ_FIELD_VELOCITY, result + 1 + n * dim, 0))
    end,
  }
end

-- the walker as a user writes it, with observer and controller in Lua
local function walker(scene)
  scene.world.formulation = formulation
  local world = cq.World(scene.world)
  local groups = {}
  for k, names in ipairs(scene.groups) do groups[k] = names[1] end
  local observer, controller = cq.Observer.centroid { groups = groups, velocity = true }, scene.controller
  local target, direction = groups[scene.target], cq.tensor(scene.direction)
  local turn
  local step = cq.value_and_grad(function(params)
    local roll = world:rollout { steps = scene.steps, observer = observer, controller = controller:with(params) }
    local loss = roll.state:center(target):dot(direction)
    turn = clock()
    return loss, roll
  end)
  local w, b = controller.params.w1.count, controller.params.b1.count
  local result = ffi.new("double[?]", 1 + w + b)
  return {
    result = result, count = 1 + w + b,
    both = function()
      local start = clock()
      local loss, grad, roll = step(controller.params)
      local finish = clock()
      result[0] = loss
      ffi.copy(result + 1, grad.w1:data(), w * ffi.sizeof "double")
      ffi.copy(result + 1 + w, grad.b1:data(), b * ffi.sizeof "double")
      roll:release()
      return turn - start, finish - turn
    end,
  }
end

local scene = scenes.make(cq.option("case", "2d-1600"), cq.option("steps", nil))
local competitor = (scene.controller and walker or block)(scene)

local function run()
  if competitor.both then return competitor.both() end
  local start = clock()
  competitor.forward()
  local turn = clock()
  competitor.backward()
  return turn - start, clock() - turn
end

local function answer(...)
  io.write(...)
  io.write "\n"
  io.flush()
end

run()
answer(("first %.9g"):format(competitor.result[0]))
for line in io.lines() do
  local path = line:match "^save (.+)$"
  if path then
    local file = assert(io.open(path, "wb"))
    file:write(ffi.string(competitor.result, competitor.count * ffi.sizeof "double"))
    file:close()
    answer "saved"
  elseif line == "run" then
    answer(("time %.9f %.9f"):format(run()))
  else
    break
  end
end
