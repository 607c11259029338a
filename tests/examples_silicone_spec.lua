-- examples: those of silicone fingers run as a user runs them, and hold to what they claim as far as a few steps tell.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

-- what it says of words that it cannot use
local function refused(name, words)
  local arguments = { "examples/" .. name .. ".lua", "--out", folder(), "--quiet", "--threads", "1" }
  for _, word in ipairs(words) do arguments[#arguments + 1] = word end
  local result = process.cqlua(arguments)
  assert(result.code ~= 0, result.out)
  return result.err
end

describe("examples/identify_silicone.lua", function()
  it("finds half the shear modulus, which constants it does not tell, and walls for a curve", function()
    local history, out = example("identify_silicone", { "--levels", "2,5", "--wanted", "1.2,3.1", "--starts", "1",
      "--noise", "0.03", "--iterations", "2", "--render", "no" })
    local off = out:match "share of C10 [%d.]+ %-> [%d.]+ %(([%-+%d.]+) %%%)"
    assert(math.abs(tonumber(off)) < 4, out)
    local weight, held, loose = out:match "holds C10 %+ ([%d.]+) C01 within ([%d.]+) kPa; .- within (%d+) kPa"
    assert.near(1, tonumber(weight), 0.02)
    assert(tonumber(loose) > 100 * tonumber(held), out)
    assert(#history > 2, out)
    local is, becomes = out:match "as it is +[%d.]+ ([%d.]+)", out:match "with these walls +[%d.]+ ([%d.]+)"
    assert(math.abs(becomes - 3.1) < 0.6 * math.abs(is - 3.1), out)
    local wall, roof = out:match "walls ([%d.]+) and roof ([%d.]+) mm"
    assert(tonumber(wall) > 4 or tonumber(roof) < 4, out)
  end)

  it("says what it cannot use", function()
    assert(refused("identify_silicone", { "--levels", "1,2" }):find "%-%-wanted has 4 numbers and %-%-levels 2")
    assert(refused("identify_silicone", { "--noise", "0" }):find "%-%-noise must be above 0")
    assert(refused("identify_silicone", { "--dim", "3", "--design" }):find "%-%-design is for %-%-dim 2")
  end)
end)

describe("examples/soft_finger_water.lua", function()
  it("goes less far in water than in air", function()
    local history, out = example("soft_finger_water", { "--levels", "5", "--rise", "0.01", "--hold", "0.02",
      "--seconds", "0.02", "--render", "no" })
    assert.equal(1, #history)
    assert(history[1].air > 1 and history[1].water > 0 and history[1].water < 0.5 * history[1].air, out)
    assert(out:find "in water the tip rests" and out:find "5 kPa at once: half of its farthest, ", out)
  end)
end)

describe("examples/gripper.lua", function()
  it("lets the ball slip with its first guess, and has a gradient that holds it better", function()
    local history, out = example("gripper", { "--iterations", "1", "--steps", "56", "--render", "no" })
    assert(history[1].loss > 1 and history[1].gradient > 1, out)
    local fall, first = out:match "goes down by (%d+) mm; the ball by ([%-+%d.]+) mm"
    assert(tonumber(first) < 0 and tonumber(first) > -tonumber(fall) / 2, out)
  end)
end)
