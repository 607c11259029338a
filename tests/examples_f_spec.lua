-- examples: robots on and in what the ChainQueen papers put them, run as a user runs them, coarser and shorter.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/pneumatic_leg.lua", function()
  it("bends away from the chamber that is inflated, and rebounds when it is dropped", function()
    local history, out = example("pneumatic_leg", { "--iterations", "2", "--spacing", "2.5", "--pressure", "40",
      "--drop", "0.01", "--duration", "0.1", "--render", "no" })
    assert.equal(2, #history)
    for _, row in ipairs(history) do
      assert(row.away > 1.4 and row.away < 6 and math.abs(row.aside) < 0.1 * row.away, out)
      assert(row.air > 1.05 and row.least > 0.95, out)
    end
    local speed, free = out:match "down at (%S+) m/s .-%(freely (%S+) and"
    assert(math.abs(speed / free - 1) < 0.04, out)
    local shorter, rebound = out:match "shorter by (%S+) mm at most, the foot rebounds to (%S+) mm"
    assert(tonumber(shorter) > 1 and tonumber(rebound) > 3 and tonumber(rebound) < 10, out)
    assert(process.read(folder() .. "/pneumatic_leg_drop.png"):find "^\137PNG")
  end)
end)

describe("examples/terrain.lua", function()
  it("learns with each of its first iterations, and says which slopes it is past", function()
    local history, out = example("terrain", { "--iterations", "4", "--render", "no" })
    for i = 2, 4 do assert(history[i].loss < history[i - 1].loss - 1e-3, history[i].loss) end
    -- its middle begins 0.325 from the origin
    assert.near((-history[4].loss - 0.325) / 0.3, tonumber(out:match "^walked (%S+) body lengths"), 0.02)
    assert(out:find "over 0 of 2 hills, past slopes of %[degree%]: none\n$", out)
  end)

  it("refuses hills that do not end on the ground", function()
    for _, hill in ipairs { "0", "1" } do
      local result = process.cqlua { "examples/terrain.lua", "--out", folder, "--hill", hill }
      assert.equal(1, result.code)
      assert(result.err:find("which is 2 long; got 2 of " .. hill .. " each", 1, true), result.err)
    end
  end)

  it("refuses slopes that are none", function()
    for _, slopes in ipairs { "15,90", "steep" } do
      local result = process.cqlua { "examples/terrain.lua", "--out", folder, "--slopes", slopes }
      assert.equal(1, result.code)
      assert(result.err:find("slopes of the terrain must be above 0 and below 60 degrees, got " .. slopes:match "%w+$", 1,
        true), result.err)
    end
  end)
end)

describe("examples/creature.lua", function()
  it("takes its first steps", function()
    local history, out = example("creature", { "--iterations", "3", "--render", "no" })
    assert(history[3].loss < history[1].loss - 0.05, history[3].loss)
    assert(tonumber(out:match "^ran (%S+) body lengths") > 0.1, out)
  end)
end)
