-- examples: walkers of the papers run as a user runs them, and hold to what they claim as far as a few iterations
-- tell.
local process = require "tests.process"
local run = require "tests.example"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function example(name, words) return run(name, words, folder) end

describe("examples/rhino.lua", function()
  it("takes its first steps", function()
    local history, out = example("rhino", { "--iterations", "7", "--seed", "1", "--render", "no" })
    local best = math.huge
    for _, row in ipairs(history) do best = math.min(best, row.loss) end
    assert(history[1].loss - best > 0.04, best)
    -- its middle begins 0.370 from the origin
    assert.near(-best, 0.370 + 0.45 * tonumber(out:match "^walked (%S+) body lengths"), 0.01)
  end)
end)

describe("examples/cable_biped.lua", function()
  it("walks by the first swing of its legs, and farther after a few iterations", function()
    local history, out = example("cable_biped", { "--iterations", "3", "--render", "no" })
    assert.equal(3, #history)
    assert(tonumber(out:match "^walked (%S+) body lengths") > 0.2, out)
    process.remove(folder)
    local other = example("cable_biped", { "--iterations", "1", "--render", "no", "--seed", "1" })
    assert(math.abs(other[1].loss - history[1].loss) > 1e-4, "--seed does not reach the first signals")
  end)
end)
