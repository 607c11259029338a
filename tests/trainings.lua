-- trainings: every example to its end, held to what its first comment says. Minutes, so not among the tests.
--   make trainings, or build/cqlua tests/spec.lua tests/trainings.lua [--filter walker2d]
local process = require "tests.process"
local run = require "tests.example"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- what an example says at its end, as numbers
local function result(name, pattern, words)
  local _, out = run(name, words or {}, folder)
  local found = { out:match(pattern) }
  assert(#found > 0, out)
  for k, text in ipairs(found) do found[k] = assert(tonumber(text), out) end
  return unpack(found)
end

local function between(least, most, value) assert(value >= least and value <= most, value) end

describe("a full training", function()
  it("walker2d.lua walks its 2.5 body lengths",
    function() between(2.2, 3, (result("walker2d", "^walked (%S+) body"))) end)

  it("biped.lua --particles 20 runs 3.5 to 5 body lengths", function()
    between(3.3, 5.5, (result("biped", "^ran (%S+) body", { "--particles", "20", "--iterations", "120" })))
  end)

  it("codesign.lua gains by the body", function()
    between(5, 200, (result("codesign", "co%-design %S+: (%S+) %%")))
  end)

  it("balls.lua finds the density", function()
    local density, wrong = result("balls", "^density of ball A (%S+), error (%S+);")
    between(2.259, 2.261, density)
    between(0, 1e-3, wrong)
  end)

  it("identify.lua finds all three constants within 0.1 %", function()
    local young, poisson, density = result("identify", "\nE (%S+), nu (%S+), density (%S+)\n")
    between(20 * 0.999, 20 * 1.001, young)
    between(0.25 * 0.999, 0.25 * 1.001, poisson)
    between(2.33 * 0.999, 2.33 * 1.001, density)
  end)

  it("identify_noisy.lua finds the bar within its error bars on the grid of the film", function()
    local damping, young = result("identify_noisy", "damping%s+(%S+).*young%s+(%S+)", { "--cells", "8" })
    between(2 - 0.07, 2 + 0.07, damping)
    between(150 - 0.3, 150 + 0.3, young)
  end)

  it("throw.lua hits its target", function() between(0, 1e-5, (result("throw", "it is (%S+) from the target"))) end)

  it("custom.lua calms the stalk, and cannot without its memory", function()
    between(0, 0.05, (result("custom", "t = 1.5: (%S+)\n")))
    between(0.1, 0.17, (result("custom", "t = 1.5: (%S+)\n", { "--memory", "no", "--render", "no" })))
  end)

  it("quadruped.lua walks its 2.6 body lengths, and by its body nearly twice as far", function()
    local all = process.cqlua { "study", "run", "examples/quadruped.lua", "--seeds", "2", "--seed", "0", "--codesign",
      "--out", folder, "--quiet", "--render", "no" }
    local both, fixed = all.out:match "codesign: mean ([^%s,]+).-\nfixed: mean ([^%s,]+)"
    between(2.2, 3.2, assert(tonumber(fixed), all.err))
    between(1.2 * fixed, 2.5 * fixed, tonumber(both))
  end)

  it("crawler.lua and runner.lua go more than a body length", function()
    between(1, 1.7, (result("crawler", "^crawled (%S+) body", { "--render", "no" })))
    process.remove(folder)
    between(1, 1.5, (result("runner", "^ran (%S+) body", { "--render", "no" })))
  end)

  it("diffmpm.lua runs a quarter of the way of its room",
    function() between(-0.53, -0.48, (result("diffmpm", "^the loss is (%S+)\n"))) end)

  it("arm2d.lua rests at its goal by co-design alone", function()
    local _, out = run("arm2d", { "--render", "no" }, folder)
    assert(out:find "E 10 +never at rest" and out:find "E 30 +never at rest", out)
    between(20, 100, tonumber(out:match "co%-design +at rest at the goal from evaluation (%d+) on"))
  end)
end)
