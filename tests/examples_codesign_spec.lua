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

describe("examples/biped_codesign.lua", function()
  it("keeps the curves of all eight combinations, and goes on with more seeds", function()
    local function curves(words)
      local arguments = { "examples/biped_codesign.lua", "--out", folder(), "--quiet", "--threads", "1", "--count", "6",
        "--iterations", "2", unpack(words) }
      local result = process.cqlua(arguments)
      assert(result.code == 0 and result.err == "", result.err)
      return process.read(folder() .. "/curves.csv"), result.out
    end
    local one = curves { "--seeds", "1", "--render", "no" }
    local two, out = curves { "--seeds", "2", "--resume" }
    for _, name in ipairs { "none", "E", "nu", "density", "E+nu", "E+density", "nu+density", "all" } do
      local pattern = name:gsub("%+", "%%+")
      local first = one:match("\n(" .. pattern .. ",0,1,[^\n]+)\n")
      assert(first and two:find(first, 1, true), "the first seed was run again: " .. name)
      assert(two:find("\n" .. name .. ",1,2,", 1, true), two)
      assert(out:find(pattern .. " +%-?%d%.%d+ body lengths, median of 2"), out)
    end
    -- with another body the way is another
    assert(one:match "\nnone,0,2,%S-,(%S+)\n" ~= one:match "\nall,0,2,%S-,(%S+)\n", one)
    assert(process.read(folder() .. "/biped_codesign.png"):find "^\137PNG")
  end)
end)
