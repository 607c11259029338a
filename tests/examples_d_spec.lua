-- examples: walkers of the papers run as a user runs them, and hold to what they claim as far as a few iterations
-- tell.
local cq = require "cq"
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/rhino.lua", function()
  it("takes its first steps", function()
    local history, out = example("rhino", { "--iterations", "7", "--seed", "1", "--render", "no" })
    local best = math.huge
    for _, row in ipairs(history) do best = math.min(best, row.loss) end
    assert(history[1].loss - best > 0.04, best)
    -- its middle begins 0.370 from the origin; the loss has what it sinks as well
    local place = 0.370 + 0.45 * tonumber(out:match "^walked (%S+) body lengths")
    assert(-best < place + 0.01 and -best > place - 0.2, best)
  end)
end)

describe("examples/cable_biped.lua", function()
  it("walks by the first swing of its legs, and farther after a few iterations", function()
    local history, out = example("cable_biped", { "--iterations", "3", "--render", "no" })
    assert.equal(3, #history)
    assert(tonumber(out:match "^walked (%S+) body lengths") > 0.2, out)
    process.remove(folder())
    local other = example("cable_biped", { "--iterations", "1", "--render", "no", "--seed", "1" })
    assert(math.abs(other[1].loss - history[1].loss) > 1e-4, "--seed does not reach the first signals")
  end)
end)

describe("examples/quadruped.lua", function()
  it("takes its first steps on six legs", function()
    local history, out = example("quadruped", { "--legs", "6", "--count", "3", "--iterations", "3", "--render", "no" })
    assert(history[1].loss > history[2].loss and history[2].loss > history[3].loss + 0.01, history[3].loss)
    assert.near((-history[3].loss - 0.3) / 0.3, tonumber(out:match "^fixed +walked (%S+) body lengths"), 0.006)
  end)

  it("learns its body too, with several first weights", function()
    local result = process.cqlua { "study", "run", "examples/quadruped.lua", "--seeds", "2", "--seed", "0",
      "--codesign", "--count", "3", "--iterations", "1", "--render", "no", "--out", folder(), "--quiet" }
    assert(result.code == 0, result.err)
    for trial = 1, 2 do
      for _, name in ipairs { "fixed", "codesign" } do
        assert(process.read(("%s/trials/%06d/%s/history.csv"):format(folder(), trial, name)):find "\n1,", name)
      end
    end
    local young = cq.load(folder() .. "/trials/000001/codesign/params.bin").robot.young
    assert.equal(25 * 27, young.count)
    assert(young:min():item() > 9.7 and young:max():item() < 10.3 and young:max():item() > 10.1, tostring(young))
    local codesign, fixed, loss = result.out:match
      "codesign: mean (%S+), .-, 2 seeds\nfixed: mean (%S+), .-, 2 seeds\nloss: mean (%S+), .-, 2 seeds\n"
    assert(tonumber(codesign) and tonumber(fixed) and tonumber(loss), result.out)
  end)

  it("has four, six or eight legs", function()
    local result = process.cqlua { "examples/quadruped.lua", "--legs", "5" }
    assert.equal(1, result.code)
    assert(result.err:find("legs must be one of 4, 6, 8, got 5", 1, true), result.err)
  end)
end)

describe("examples/crawler.lua", function()
  it("rows itself forward within a few iterations", function()
    local history, out = example("crawler", { "--iterations", "4", "--render", "no" })
    assert.equal(4, #history)
    -- its middle begins 0.6 from the origin
    assert.near(-0.6, history[1].loss, 0.02)
    assert(history[4].loss < -0.7, history[4].loss)
    assert.near((-history[4].loss - 0.6) / 0.6, tonumber(out:match "^crawled (%S+) body lengths"), 0.006)
  end)
end)

describe("examples/runner.lua", function()
  it("gets further with each of its first iterations", function()
    local history, out = example("runner", { "--count", "3", "--iterations", "4", "--render", "no" })
    assert.equal(4, #history)
    for i = 2, 4 do assert(history[i].loss < history[i - 1].loss - 0.01, history[i].loss) end
    -- its middle begins 0.9 from the origin
    assert.near(-history[4].loss - 0.9, tonumber(out:match "^ran (%S+) body lengths"), 0.006)
  end)

  it("has four, six or eight legs", function()
    local result = process.cqlua { "examples/runner.lua", "--legs", "0" }
    assert.equal(1, result.code)
    assert(result.err:find("legs must be one of 4, 6, 8, got 0", 1, true), result.err)
  end)
end)
