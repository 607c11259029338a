-- memory of rollouts: forces of the user's, of which none are kept where there is no way back and which the budget
-- counts, and grids that grow.
local cq = require "cq"
local T = require "cq.tensor"
local process = require "tests.process"
local fails = require("tests.sentence").fails

-- a square of 256 particles under forces of their own
local function world_of(force)
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "all", size = { 0.5, 0.5 }, spacing = 1 / 32 },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    actuators = { { particles = "all", signals = 0, force = force } },
  }
  return cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-3, precision = "float64", threads = 1,
    walls = cq.Boundary.box { kind = "slip" }, robot:at { 0.25, 0.25 } }
end

local function pull(_, _, x) return (T.tensor { 0.5, 0.5 } - x) * 1e-3 end

describe("a rollout with forces of the user's", function()
  it("keeps none of them forward only, nor of its signals in the engine", function()
    local path = process.write(process.folder() .. "/s.lua", [[
      local cq = require "cq"
      local robot = cq.Robot {
        shape = cq.Shape.box { name = "all", size = { 0.5, 0.5 }, spacing = 1 / 64 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
        actuators = { { particles = "all", signals = 0, force = function(_, _, x) return x * 0 end } },
      }
      local world = cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 1e-3, walls = cq.Boundary.box { kind = "slip" },
        robot:at { 0.25, 0.25 } }
      local function peak() return tonumber(io.open("/proc/self/status"):read("*a"):match "VmHWM:%s+(%d+)") / 1024 end
      world:rollout { steps = 20 }
      local before = peak()
      world:rollout { steps = 12000 }
      print(peak() - before)
    ]])
    local result = process.cqlua { path, "--threads", "1" }
    process.remove(path:match "^(.*)/")
    assert(result.code == 0, result.err)
    -- 1,024 particles: what was remembered would be 188 MiB; the collector lets tensors lie until they are 64 MiB
    assert.is_true(tonumber(result.out) < 80, result.out)
  end)

  it("counts them in the plan and keeps its budget, to the same gradient", function()
    local world = world_of(pull)
    local STEPS = 12
    local forces = STEPS * 256 * 2 * 8
    local function gradient(memory)
      local _, grads = T.value_and_grad(function(p)
        local roll = world:rollout { steps = STEPS, memory = memory, gravity = p.gravity }
        return roll.state:positions():square():sum() + roll.state:velocity("all"):sum()
      end) { gravity = T.param { 0.1, -1 } }
      return grads.gravity
    end
    local plenty = gradient "1 GiB"
    local plan = world:memory_plan { steps = STEPS, memory = "1 GiB" }
    assert.equal(STEPS * plan.record_bytes + forces, plan.bytes)
    local tight = math.floor(forces + 2 * plan.record_bytes + 3 * plan.slice_bytes)
    local small = world:memory_plan { steps = STEPS, memory = tight }
    assert.is_true(small.recompute > 1 and small.bytes <= tight and small.bytes > forces)
    assert.is_true(gradient(tight):equal(plenty))
    assert.is_true(plenty:norm():item() > 1e-3)
    fails("for forces of the user's of all control steps), its budget is", gradient, forces)
  end)

  it("returns to its end after a way back that failed", function()
    local broken = false
    local world = world_of(function(_, _, x)
      if broken and T.tape.recording() then error "broken on the way back" end
      return pull(nil, nil, x)
    end)
    local last
    local function cost(p)
      last = world:rollout { steps = 6, gravity = p.gravity }
      return last.state:positions():square():sum()
    end
    local params = { gravity = T.param { 0.1, -1 } }
    local value = T.value_and_grad(cost)(params)
    broken = true
    assert.is_false((pcall(T.value_and_grad(cost), params)))
    broken = false
    assert.equal(value, last.state:positions():square():sum():item())
  end)
end)

describe("a body that scatters", function()
  it("is planned for with the largest grid that an earlier rollout had", function()
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "all", size = { 0.25, 0.25 }, spacing = 1 / 32 },
      material = cq.Material.neo_hookean { young = 1e-3, poisson = 0.3, density = 1 },
    }
    local world = cq.World { cells = { 64, 64 }, dx = 1 / 16, dt = 1e-2, substeps = 4, precision = "float64",
      threads = 1, robot:at { 1.9, 1.9 } }
    local x = world.robot.position
    local away = world.robot:with { velocity = (x - x:mean(1)) * 60 }
    local fields = { steps = 15, memory = "64 MiB", robot = away }
    local function gradient(memory)
      fields.memory = memory
      local _, grads = T.value_and_grad(function(p)
        fields.robot = away:with { young = p.young }
        return world:rollout(fields).state:velocity("all")[1] * 1e6
      end) { young = T.param(1e-3) }
      return grads.young
    end
    local before = world:memory_plan { steps = 15, memory = "64 MiB" }
    local plenty = gradient "64 MiB"
    local after = world:memory_plan { steps = 15, memory = "64 MiB" }
    assert.is_true(after.record_bytes > 1.3 * before.record_bytes)
    local tight = math.floor(2.5 * after.record_bytes + 3 * after.slice_bytes)
    gradient(tight)
    local few = world:memory_plan { steps = 15, memory = tight }
    assert.is_true(few.bytes <= tight and few.record_bytes == after.record_bytes)
    assert.is_true(gradient(tight):equal(plenty))
  end)
end)
