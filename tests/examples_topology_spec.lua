-- examples: designs of 4D topology optimization run as a user runs them, coarse and for a few iterations.
local cq = require "cq"
local process = require "tests.process"
local run = require "tests.example"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

describe("examples/topology_walker.lua", function()
  it("finds its way from nothing, and leaves tables, surfaces and a history of all constraints", function()
    local words = { "--coarse", "2", "--iterations", "12", "--free", "3", "--rough", "5", "--soft", "6",
      "--training", "2", "--render", "no" }
    local history, out = run("topology_walker", words, folder)
    assert.equal(12, #history)
    assert(history[12].loss < history[1].loss and history[12].layout < 0.8 and history[12].seconds > 0,
      history[12].loss)
    assert.equal(history[5].loss, history[5].task)
    local binary, trained = tonumber(out:match "binarised (%S+):"), tonumber(out:match "trained anew: (%S+)")
    assert(trained <= binary, out)
    for _, name in ipairs { "walker.csv", "walker_design.csv" } do
      assert.is_truthy(process.read(folder .. "/" .. name):find "^x,y,density,actuator")
    end
    -- what is saved is the body that is drawn: no pulse is in between
    for word in process.read(folder .. "/walker_pulses.csv"):gsub("^[^\n]*", ""):gmatch ",([^,\n]+)" do
      assert(word == "-1" or word == "0" or word == "1", word)
    end
    assert.is_truthy(process.read(folder .. "/walker_whole.stl"))
  end)

  it("can be checked before it is run", function()
    local result = process.cqlua { "check", "examples/topology_walker.lua", "--coarse", "2" }
    assert(result.code == 0, result.err)
    assert.is_truthy((result.out .. result.err):find("design.density: 100 numbers, gradient", 1, true))
    assert.is_falsy(result.out:find "none is binary")
    result = process.cqlua { "check", "examples/topology_walker.lua", "--coarse", "2", "--seeds", "2" }
    assert(result.code == 0, result.err)
  end)

  it("starts from several seeds, and tells each, the median and the best", function()
    local result = process.cqlua { "examples/topology_walker.lua", "--out", folder, "--quiet", "--threads", "1",
      "--seeds", "2", "--coarse", "2", "--iterations", "2", "--free", "1", "--rough", "2", "--soft", "1",
      "--training", "1", "--render", "no" }
    assert(result.code == 0 and result.err == "", result.err)
    assert.is_truthy(result.out:find "^seed 1: loss %S+ binarised %S+ optimised %S+ %b()\nseed 2: [^\n]+\nmedian ")
    assert.is_truthy(process.read(folder .. "/seeds.csv"):find("seed,loss,binarised,optimised,seconds", 1, true))
    assert.is_truthy(process.read(folder .. "/seed-2/walker_whole.stl"))
  end)

  it("is refused iterations of a training that are none, before anything is optimised", function()
    for given, problem in pairs { many = "many", ["-1"] = "-1", ["0.5"] = "0.5" } do
      local result = process.cqlua { "examples/topology_walker.lua", "--training", given, "--out", folder .. "/none" }
      assert(result.code == 1 and result.err:find("--training", 1, true) and result.err:find(problem, 1, true),
        result.err)
      assert.is_nil(process.read(folder .. "/none/history.csv"))
    end
  end)

  it("leaves the pulses of its design where it has no training", function()
    local _, out = run("topology_walker", { "--coarse", "2", "--iterations", "2", "--free", "1", "--rough", "2",
      "--soft", "1", "--training", "0", "--render", "no" }, folder)
    assert(out:find "binarised" and not out:find "trained anew", out)
  end)

  it("is refused a symmetry that none has told", function()
    local result = process.cqlua { "examples/topology_walker.lua", "--symmetry", "--out", folder }
    assert(result.code == 1 and result.err:find("there is no --symmetry of a walker", 1, true), result.err)
  end)

  it("goes the way of the paper when it is asked to", function()
    local history = run("topology_walker", { "--coarse", "2", "--iterations", "3", "--method", "paper", "--render",
      "no" }, folder)
    assert.equal(1e-3, history[1]["material.penalty"])
    assert.equal(history[1].lagrangian > history[1].loss, true)
  end)
end)

describe("examples/topology_terrain.lua", function()
  it("goes as far with a body that is read from its surfaces", function()
    local words = { "--duration", "0.3", "--iterations", "4", "--free", "2", "--rough", "3", "--soft", "2",
      "--training", "2", "--render", "no" }
    local _, out = run("topology_terrain", words, folder)
    local there, share = out:match "read from its surfaces, %d+ particles in the place of %d+: (%S+) m, (%d+) %%"
    assert(tonumber(there) > 0.02 and math.abs(tonumber(share) - 100) <= 1, out)
    assert.is_truthy(process.read(folder .. "/terrain_whole.stl"))
  end)

  it("is refused where hills would end, or begin under the block", function()
    for option, problem in pairs {
      ["--duration=1"] = "--duration must be at most 0.5, got 1",
      ["--coarse=2"] = "--coarse must be 1 without --method",
    } do
      local result = process.cqlua { "examples/topology_terrain.lua", option, "--out", folder }
      assert(result.code == 1 and result.err:find(problem, 1, true), result.err)
    end
  end)
end)

for _, name in ipairs { "climber", "balancer", "walker3d", "rotator" } do
  describe("examples/topology_" .. name .. ".lua", function()
    it("takes its first steps", function()
      -- a binary body that has learned nothing is flung about by the balancer's floor
      local soft = name == "balancer" and "2" or "1"
      local words = { "--coarse", "2", "--iterations", "2", "--training", "1", "--render", "no" }
      local own = ({ climber = { "--light", "2", "--free", soft }, rotator = { "--rough", "2", "--soft", "1" } })[name]
        or { "--rough", "2", "--soft", soft, "--free", soft }
      for _, word in ipairs(own) do words[#words + 1] = word end
      if name == "walker3d" then words[#words + 1], words[#words + 2] = "--quick", "2" end
      local history, out = run("topology_" .. name, words, folder)
      assert.equal(2, #history)
      local told = "all 2 iterations of the block are soft (--soft 2), and none is binary"
      assert.equal(name == "balancer", out:find(told, 1, true) ~= nil)
      assert.is_false(history[2].loss == history[1].loss)
    end)
  end)
end

describe("the climber's adjoint", function()
  it("decays, unless --decay is 0", function()
    local function first_gradient(words)
      local all = { "--coarse", "2", "--free", "1", "--light", "1", "--iterations", "1", "--training", "1",
        "--render", "no" }
      for _, word in ipairs(words) do all[#all + 1] = word end
      run("topology_climber", all, folder)
      return tonumber(process.read(folder .. "/soft/history.csv"):match "\n1,[^,]+,([^,]+)")
    end
    local exact = first_gradient { "--decay", "0" }
    assert.near(exact, first_gradient { "--decay", "1e6" }, 0.02 * exact)
    assert(first_gradient {} < 0.8 * exact, exact)
  end)
end)

describe("the climber's scene", function()
  it("has the forces of its two walls apart", function()
    local scene = require "scenes.topology" { name = "climber", coarse = 2 }
    local body = scene.robot:with { actuation_weight = cq.full({ scene.robot.particle_count, 4 }, 0.25) }
    local expanding = function() return cq.full({ 4 }, -1) end
    local roll = scene.world:rollout { robot = body, steps = 40, contact = true, controller = expanding }
    local left, right = roll.state:contact "left", roll.state:contact "right"
    assert(left.impulse[1]:item() > 0.05 and right.impulse[1]:item() < -0.05, left.impulse[1]:item())
    assert.near(0.4, left.center[1]:item(), 0.03)
    assert.near(0.6, right.center[1]:item(), 0.03)
    assert.equal(0, roll.state:contact("room").impulse:norm():item())
  end)
end)

describe("an adjoint that decays in scenes/topology.lua", function()
  local function loss_of(name, decay)
    local scene = require "scenes.topology" { name = name, coarse = 2, substeps = 4, duration = 0.2, decay = decay }
    assert.equal(decay, scene.adjoint_decay)
    local first, random = scene.design.params, cq.random { seed = 3 }
    scene.design.params = { density = first.density, layout = cq.param(random:normal(first.layout:shape())),
      sign = cq.param(random:uniform(first.sign:shape(), { min = -1, max = 1 })), size = first.size }
    local walker = cq.Experiment { world = scene.world, duration = scene.duration, objective = scene.objective,
      design = scene.design, adjoint_decay = scene.adjoint_decay, optimizer = cq.Optimizer.adam { rate = 0.01 } }
    return walker:evaluate().loss
  end

  it("goes with the same way, as a sum over time", function()
    for _, name in ipairs { "walker", "climber" } do
      local way = loss_of(name)
      assert(math.abs(way) > 1e-6, way)
      assert.near(way, loss_of(name, 1), 0.03 * math.abs(way))
    end
  end)
end)

describe("scenes/gravity_it_bears.lua", function()
  local bears = require "scenes.gravity_it_bears"

  it("grows with what is borne, falls with what is not, and stays full", function()
    local gravity = bears { from = 1, begins = 3, enough = 0.1, last = 500 }
    local losses = {}
    local function after(loss, count)
      for _ = 1, count do losses[#losses + 1] = loss end
      return -gravity(#losses + 1, losses)[2]
    end
    assert.near(1, after(-0.1, 2), 1e-12)                   -- it has not begun
    assert.near(1, after(-0.1, 2), 1e-12)
    assert.near(1.1, after(-0.1, 1), 1e-12)
    assert.near(1.2, after(-0.2, 3), 1e-12)
    assert.near(1.2, after(-0.06, 9), 1e-12)                -- more than half of it
    assert.near(1.0, after(-0.04, 1), 1e-12)
    assert.near(0.8, after(0.3, 3), 1e-12)
    assert.near(9.8, after(-0.3, 273), 1e-12)               -- the last of these rises reaches it exactly
    assert.near(9.8, after(0.3, 30), 1e-12)
    assert.near(9.8, -bears { from = 1, begins = 3, enough = 0.1, last = 5 }(6, { 1, 1, 1, 1, 1 })[2], 1e-12)
  end)
end)
