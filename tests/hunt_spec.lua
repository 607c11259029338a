-- make hunt, a little of it: that its judge knows what is wrong from what has a kink, and that its
-- scenes are those of their seeds.
local T = require "cq.tensor"
local judge = require "tests.hunt.judge"
local scene = require "tests.hunt.scene"
local process = require "tests.process"

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

describe("the judge", function()
  local function verdict(f, x)
    local verdicts, report = judge.check(function(p) return f(p.x) end, { x = T.param(x) }, 1)
    return verdicts.x, report
  end

  it("calls right what is right", function()
    assert.equal("right", (verdict(function(x) return (x * x):sum() end, { 1, 2, 3 })))
    assert.equal("right", (verdict(function(x) return (x * 0):sum() + 3 end, { 1, 2, 3 })))
  end)

  it("finds a factor, a term of a thousandth, and one that is missing", function()
    assert.equal("wrong", (verdict(function(x) return (x * x:detach()):sum() end, { 1, 2, 3 })))
    assert.equal("wrong", (verdict(function(x) return (x * x + 1e-3 * (x:detach() * 2):sin()):sum() end, { 1, 2, 3 })))
    local _, report = verdict(function(x) return (x:detach() * 2):sin():sum() + 1e-9 * x:sum() end, { 1, 2, 3 })
    assert.matches("WRONG", report)
  end)

  it("knows a kink and a jump from that", function()
    assert.equal("kink", (verdict(function(x) return T.maximum(x, 0):sum() end, { 0, 2, 3 })))
    assert.equal("kink", (verdict(function(x) return (x * x):sum() + (x:get(1) > 0 and 1 or 0) end, { 0, 2, 3 })))
  end)
end)

describe("a scene", function()
  it("is that of its seed, and all of them are of many kinds", function()
    local words = {}
    for seed = 1, 80 do
      local a = scene.make(seed)
      if seed % 20 == 0 then
        local b = scene.make(seed)
        assert.equal(a.words, b.words)
        assert.equal(a.loss(a.params):item(), b.loss(b.params):item())
        b.world:close()
      end
      words[seed] = a.words
      a.world:close()
    end
    local all = table.concat(words, "\n")
    for _, word in ipairs {
      "2D", "3D", "moving", "running", "separable sticky", "slip", "separate", "friction", "sphere", "hollow sphere",
      "box", "obstacle", "half_plane",
      "height_field", "floor", "slope", "clamp", "pinned", "pressure", "muscle", "isotropic", "weighted", "spring",
      "network", "sines", "open loop",
      "batch", "checkpoints", "neo_hookean", "corotated", "linear", "by moduli",
      "implicit", "pressure implicit", "cables implicit", "cable", "chamber", "fluid", ", near", "on the same nodes",
      ", averaged",
    } do assert(all:find(word, 1, true), "no scene with " .. word) end
  end)

  it("is hunted for by its seed, and told of", function()
    local hunted = process.cqlua { "tests/hunt.lua", "--seed", "3", "--count", "4", "--quiet" }
    assert.equal(0, hunted.code, hunted.out .. hunted.err)
    assert.matches("^4 scenes from seed 3, %d+ directions of gradients: %d+ right, .* 0 wrong; 0 unstable, 0 failed\n",
      hunted.out)
  end)
end)
