-- examples: designs of 4D topology optimization run as a user runs them, for a few iterations of each stage.
local cq = require "cq"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local default = "coarse gait, coarse soft, coarse binary, soft, binary, pulses"
local stages = {
  walker = default, terrain = default, walker3d = default, balancer = default,
  climber = "soft, light, whole, pulses",
  rotator = "coarse soft, fast, soft, binary, pulses",
}

-- the history of a short training, and what the script printed
local function first_steps(name, budget)
  local words = { ("examples/topology_%s.lua"):format(name), "--out", folder, "--quiet", "--threads", "1", "--budget",
    budget, "--render", "no" }
  if stages[name] == default then words[#words + 1] = "--starts=1" end
  local result = process.cqlua(words)
  assert(result.code == 0 and result.err == "", result.err)
  local history, seen = cq.Run.read_history(folder), {}
  for _, row in ipairs(history) do
    if seen[#seen] ~= row.stage then seen[#seen + 1] = row.stage end
  end
  assert.equal(stages[name], table.concat(seen, ", "))
  return history, result.out
end

-- of the rotator, whose steps are dear, an iteration or two of each stage; sanitizers would take ten minutes in 3D
local budgets = { climber = "0.02", balancer = "0.02" }
if not process.sanitized() then budgets.walker3d, budgets.rotator = "0.02", "0.005" end

for name, budget in pairs(budgets) do
  describe("examples/topology_" .. name .. ".lua", function()
    it("takes its first steps", function()
      local history, out = first_steps(name, budget)
      assert.is_truthy(process.read(("%s/%s_whole.stl"):format(folder, name)))
      local loss, least = tonumber(("\n" .. out):match "\nloss (%S+),"), math.huge
      for _, row in ipairs(history) do least = row.stage == "pulses" and math.min(least, row.loss) or least end
      assert.near(least, loss, 1e-4 * math.abs(least))
    end)
  end)
end

describe("examples/topology_walker.lua", function()
  it("finds its way from nothing, and leaves tables and surfaces", function()
    local history, out = first_steps("walker", "0.02")
    assert.is_true(history[5].loss < history[1].loss)
    assert.is_truthy(out:find("Plan topology: 650 iterations", 1, true), out)
    assert.is_truthy(process.read(folder .. "/walker.csv"):find "^x,y,density,actuator")
    for word in process.read(folder .. "/walker_pulses.csv"):gsub("^[^\n]*", ""):gmatch ",([^,\n]+)" do
      assert(word == "-1" or word == "0" or word == "1", word)
    end
    assert.is_truthy(process.read(folder .. "/walker_whole.stl"))
  end)

  it("has a grid between those of its stages, as variants on finer ones need", function()
    for _, k in ipairs { 0.8, 1.6 } do
      local run = cq.Experiment(require "scenes.topology_walker" { duration = 0.5, signals = 4 } { coarsen = k })
      assert.near(0.01 * k, run.world.dx, 1e-12)
      assert.near(0.5, run.design.duration, 1e-12)
    end
  end)

  it("can be checked before it is run", function()
    local result = process.cqlua { "check", "examples/topology_walker.lua" }
    assert(result.code == 0, result.err)
    assert.is_truthy((result.out .. result.err):find("design.density: 1600 numbers, gradient", 1, true))
  end)
end)

describe("examples/topology_terrain.lua", function()
  it("goes as far with a body that is read from its surfaces", function()
    local _, out = first_steps("terrain", "0.02")
    local there, share = out:match "read from its surfaces, %d+ particles in the place of %d+: (%S+) m, (%d+) %%"
    assert(tonumber(there) > 0.02 and math.abs(tonumber(share) - 100) <= 1, out)
    assert.is_truthy(process.read(folder .. "/terrain_whole.stl"))
  end)
end)
