-- flight: what a run keeps of a simulation that failed, and what is made of it.
local cq = require "cq"
local host = require "cq.host"
local has = require("tests.sentence").says
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- an actuator that becomes too strong for its material
local SCRIPT = [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local late, strength = cq.option("late", 0.06), cq.option("strength", 8)
local robot = scene.robot { dim = cq.option("dim", 2),
  actuators = cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 300 } }
local walls = cq.Boundary.box { kind = "friction", mu = 0.4, velocity = cq.option("moving", false)
  and function(t) return { 0.01 * math.sin(20 * t), 0 } end or nil }
local run = cq.Experiment { world = scene.world(robot, { walls = walls,
    formulation = cq.option("formulation", "updated") }), steps = 60,
  controller = function(_, _, t) return cq.tensor { -1, -1 } * (math.max(0, t - late) * strength) end,
  trainable = { young = { min = 1, max = 20, per = "group" } },
  objective = function(state) return -state:center(robot)[2] end, optimizer = cq.Optimizer.adam { rate = 0.1 },
}
run:optimize { iterations = 2, recover = false }
]]

local function failed(...)
  local script = process.write(folder .. "/script.lua", SCRIPT)
  return process.cqlua { script, "--out", folder .. "/run", ... }
end

-- "control step 31" of a sentence
local function step_of(text) return tonumber(text:match "failed at control step (%d+)") end

describe("a run whose simulation fails", function()
  it("keeps the last states before, from which replay fails again", function()
    for _, more in ipairs { {}, { "--dim", "3" }, { "--moving" }, { "--formulation", "total_lagrangian" } } do
      local result = failed("--overwrite", unpack(more))
      assert.equal(1, result.code, result.err)
      has(result.err, "the simulation failed at control step", "the last 8 states before the failure are in",
        "cqlua replay " .. folder .. "/run goes on from there")
      local at = step_of(result.err)
      local saved = cq.load(folder .. "/run/failure.bin")
      assert.equal(8, #saved.data.failure.states)
      assert.equal(at - 8, saved.data.failure.first)
      local again = process.cqlua { "replay", folder .. "/run", "--render", "no" }
      assert.equal(0, again.code, again.err)
      local rows = {}
      for step in again.out:gmatch "\n +(%d+) " do rows[#rows + 1] = tonumber(step) end
      assert.equal(at - 8, rows[1])
      assert.equal(at - 1, rows[#rows])
      has(again.out, "again: " .. result.err:match "the simulation failed at .-det F")
    end
  end)

  it("counts steps and time from the start of the run where it begins at the first saved state", function()
    local result = failed()
    local path = folder .. "/run/failure.bin"
    local saved = cq.load(path).data
    saved.failure.before = nil
    cq.save(path, saved)
    local again = process.cqlua { "replay", folder .. "/run", "--render", "no" }
    assert.equal(0, again.code, again.err)
    has(again.out, "again: " .. result.err:match "the simulation failed at .-det F")
  end)

  it("replays the very states of before", function()
    local result = failed()
    local at = step_of(result.err)
    local failure = require "cq.measure.failure"
    local found = failure.load(folder .. "/run")
    local states = found.failure.states
    local steps, speeds = #states - 1, {}
    failure.run(found, function(_, _, speed) speeds[#speeds + 1] = speed end)
    local roll = failure.rollout(found, steps)
    assert.equal(at - 1, found.failure.first + steps)
    assert(roll.state:positions():close(states[#states].position, 1e-9))
    assert(roll.state:velocities():close(states[#states].velocity, 1e-6))
    assert.near(speeds[#speeds], states[#states].velocity:square():sum(2):sqrt():max():item(), 1e-6)
    assert.equal(32, found.world.robots[1].particle_count)
  end)

  it("keeps all of one that fails at once", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local result = failed("--overwrite", "--late", "0", "--strength", "3000", "--formulation", formulation)
      has(result.err, "the simulation failed at control step 2 ", "the last 2 states before the failure are in")
      local again = process.cqlua { "replay", folder .. "/run", "--render", "no" }
      assert.equal(0, again.code, again.err)
      has(again.out, "again: " .. result.err:match "the simulation failed at .-det F")
    end
  end)

  it("keeps those of a design, too, and tells where void that failed before is not in them", function()
    local script = process.write(folder .. "/design.lua", [[
package.path = "./?.lua;" .. package.path
local cq, plans = require "cq", require "tests.plans"
local run = cq.Experiment(function()
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.02 },
    material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
    actuators = cq.Actuator.isotropic { count = 2, max = cq.option("max", 1e6) },
  }
  local world = plans.block({ coarsen = 1 }).world:with_robots { robot:at { 0.24, 0.3 } }
  return { world = world, steps = 100, design = cq.Topology { world = world, duration = 0.2 },
    objective = function(state) return state:center(world.robots[1])[1] end }
end)
local design = run.params.design
design.sign:fill(1)
design.magnitude:fill(1)
if cq.option("void", false) then
  for p = 1, 50 do design.density:set(-1, p) end
end
run:optimize { iterations = 1, recover = false, optimizer = cq.Optimizer.adam { rate = 0.1 } }
]])
    local result = process.cqlua { script, "--out", folder .. "/run" }
    has(result.err, "the simulation failed at control step 3 ", "the last 3 states before the failure are in")
    local again = process.cqlua { "replay", folder .. "/run", "--render", "no" }
    assert.equal(0, again.code, again.err)
    has(again.out, "again: " .. result.err:match "the simulation failed at .-det F")
    has(process.cqlua({ script, "--void", "--out", folder .. "/void" }).err, "the simulation failed at control step",
      "the states before the failure are not kept: void of the design had failed too")
    has(process.cqlua({ "replay", folder .. "/void" }).err, "no states before a failed simulation are kept there")
  end)

  it("draws the last steps", function()
    failed()
    local result = process.cqlua({ "replay", "run" }, { before = ("cd %s;"):format(folder) })
    assert.equal(0, result.code, result.err)
    assert.is_truthy(host.kind(folder .. "/run/failure.mp4"))
  end)

  it("says where there is nothing to replay", function()
    local fine = failed("--strength", "0.001")
    assert.equal(0, fine.code, fine.err)
    assert.is_nil(host.kind(folder .. "/run/failure.bin"))
    local result = process.cqlua { "replay", folder .. "/run" }
    assert.equal(1, result.code)
    has(result.err, "has no failure.bin: no states before a failed simulation are kept there")
    cq.save(folder .. "/run/failure.bin", { format = "cqlua run", version = 2, parameters = {} })
    has(process.cqlua({ "replay", folder .. "/run" }).err, "failure.bin is damaged: it has no states")
  end)

  it("is told of its failure also where nothing can be kept", function()
    local script = process.write(folder .. "/script.lua", SCRIPT)
    local result = process.cqlua({ script, "--out", folder .. "/run" }, { before = "trap '' XFSZ; ulimit -f 8;" })
    assert.equal(1, result.code)
    has(result.err, "the simulation failed at control step", "the states before the failure could not be kept",
      "File too large")
    assert.is_nil(host.kind(folder .. "/run/failure.bin"))
  end)
end)
