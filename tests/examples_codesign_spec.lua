-- examples: co-design of the papers run as a user runs it, and holds to what it claims as far as a few iterations tell.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/arm2d.lua", function()
  it("comes nearer to its goal, and shows a finished run again", function()
    local whole, out = example("arm2d", { "--iterations", "12", "--render", "no" })
    assert(whole[1].place > 0.2499 and whole[12].place < 0.8 * whole[1].place, whole[12].place)
    assert.equal(3, select(2, out:gsub("%snever at rest at the goal; effort 0%.%d+, 0%.%d+ from the goal", "")))
    local inner, outer = out:match "E of link 2: (%S+) on the inner side of the bend, (%S+) on"
    assert(tonumber(inner) > tonumber(outer), out)
    local again = example("arm2d", { "--iterations", "12", "--render", "no", "--resume" })
    for k, row in ipairs(again) do assert.equal(whole[k].place, row.place) end
  end)

  it("says what to install where the optimizer that was asked for is missing", function()
    for name, library in pairs { slsqp = { "NLOPT", "libnlopt0" }, ipopt = { "IPOPT", "coinor-libipopt1v5" } } do
      local result = process.cqlua({ "examples/arm2d.lua", "--optimizer", name, "--out", folder(), "--quiet" },
        { before = ("CQLUA_%s=/nowhere/library.so"):format(library[1]) })
      assert.equal(1, result.code)
      assert(result.err:find(("install the Debian package %s, or take cq.Optimizer.augmented_lagrangian"):format(
        library[2]), 1, true), result.err)
    end
  end)
end)

describe("examples/arm3d.lua", function()
  it("swings towards its goal in space", function()
    local history, out = example("arm3d", { "--iterations", "4", "--render", "no" })
    assert(history[4].place < 0.97 * history[1].place, history[4].place)
    assert.equal(3, select(2, out:gsub("%snever at rest at the goal;", "")))
  end)
end)

describe("examples/studies/codesign.lua", function()
  it("tries all eight combinations, and tells what each gives", function()
    local words = { "study", "run", "examples/studies/codesign.lua", "--fine", "--count", "6", "--iterations", "2",
      "--repeats", "2", "--out", folder(), "--quiet", "--threads", "1" }
    local result = process.cqlua(words)
    assert(result.code == 0 and result.err == "", result.err)
    local lengths, count = {}, 0
    for density, poisson, young, way in result.out:gmatch
      "density (%a+)  poisson (%a+)  young (%a+) %(2%): at [^;]+; lengths (%S+), 90 %% from [^;]+; loss" do
      lengths[density .. poisson .. young], count = tonumber(way), count + 1
    end
    assert.equal(8, count, result.out)
    -- with another body the way is another
    assert(lengths.falsefalsefalse ~= lengths.truetruetrue, result.out)
  end)
end)
