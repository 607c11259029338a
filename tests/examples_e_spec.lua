-- examples: those of implicit steps run as a user runs them, and hold to what they claim as far as small bodies tell.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/cube_implicit.lua", function()
  it("falls by steps 1000 times as long as explicit ones can be, which are quicker", function()
    local history, out = example("cube_implicit", { "--cells", "8", "--steps", "4000", "--ratios", "20,200,1000",
      "--render", "no" })
    assert(out:find "Courant number 0.9: holds\n" and out:find "Courant number 2.0: control step %d+ ", out)
    local least = { 0.99, 0.99, 0.999 }
    for k, ratio in ipairs { 20, 200, 1000 } do
      local row = history[k]
      assert.equal(ratio, row.ratio)
      assert(row.loss < 1e-3 and row.least > least[k] and row.least < 1, out)
    end
    assert(history[3].speed_up > 3 and history[3].speed_up > history[1].speed_up, out)
    assert(history[3].newton > history[1].newton, out)
    assert(process.read(folder() .. "/cube_implicit.png"):find "^\137PNG")
  end)
end)

describe("examples/soft_finger.lua", function()
  it("bends alike by three laws, farther under more pressure, with chambers that grow", function()
    local history, out = example("soft_finger", { "--levels", "4,8", "--rise", "0.1", "--hold", "0.1", "--explicit",
      "no", "--render", "no" })
    assert.equal(2, #history)
    assert(history[1].loss > 1.5 and history[2].loss > 1.8 * history[1].loss, out)
    for _, law in ipairs { "mooney_rivlin", "yeoh", "ogden" } do
      for k = 1, 2 do assert(math.abs(history[k][law] / history[k].loss - 1) < 0.05, out) end
    end
    local small, large = out:match "Yeoh .-kPa: .-%(([%d.]+)%).-%(([%d.]+)%)"
    assert(tonumber(small) > 1.05 and tonumber(large) > 1.1, out)
    assert(out:find "20 shear moduli: least J 0.9")
    assert(process.read(folder() .. "/soft_finger_curve.png"):find "^\137PNG")
  end)
end)
