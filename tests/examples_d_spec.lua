-- examples: walkers of the papers run as a user runs them, and hold to what they claim as far as a few iterations
-- tell.
local cq = require "cq"
local host = require "cq.host"
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

  it("learns its body too, with several first weights, and goes on with all of them", function()
    local words = { "examples/quadruped.lua", "--codesign", "--repeats", "2", "--count", "3", "--iterations", "1",
      "--render", "no", "--out", folder(), "--quiet", "--threads", "1" }
    assert.equal(0, process.cqlua(words).code)
    process.remove(folder() .. "/codesign-1")
    words[8], words[#words + 1] = "2", "--resume"
    local result = process.cqlua(words)
    assert(result.code == 0, result.err)
    for _, name in ipairs { "fixed-0", "fixed-1", "codesign-0", "codesign-1" } do
      assert(process.read(("%s/%s/history.csv"):format(folder(), name)):find "\n1,.*\n2,", name)
    end
    local young = cq.load(folder() .. "/codesign-0/params.bin").robot.young
    assert.equal(25 * 27, young.count)
    assert(young:min():item() > 9 and young:min():item() < 9.9 and young:max():item() > 10.1, tostring(young))
    assert(process.read(folder() .. "/curves_iteration.png"):find "^\137PNG")
    local rows, curves = 0, process.read(folder() .. "/curves.csv")
    for name, seed in curves:gmatch "\n(%a+),(%d),%d,[%d.e-]+,[%d.e-]+" do
      rows = rows + ((name == "fixed" or name == "codesign") and tonumber(seed) + 1 or 0)
    end
    assert.equal(2 * 2 * (1 + 2), rows, curves)
    local fixed, both, added = result.out:match
      "fixed +walked (%S+) .- mean of .-\ncodesign walked (%S+) .-\nco%-design adds (%S+) %%\n"
    assert.near(100 * (both / fixed - 1), tonumber(added), 10)
  end)

  it("has four, six or eight legs", function()
    local result = process.cqlua { "examples/quadruped.lua", "--legs", "5" }
    assert.equal(1, result.code)
    assert(result.err:find("legs must be one of 4, 6, 8, got 5", 1, true), result.err)
  end)
end)

describe("scenes/repeats.lua", function()
  it("tells the way of a run that also pays for its efforts", function()
    local repeats = require "scenes.repeats"
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, count = { 6, 6 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = {
        particles = "block", signals = 1, force = function(_, u, x) return 1e-3 * u * cq.ones(x:shape()) end,
      },
    }
    local world = cq.World { cells = { 32, 16 }, dx = 0.05, dt = 0.02, substeps = 4, robot:at { 0.3, 0.3 } }
    local function place(state) return state:center(robot)[1] end
    local program = require("cq.option").program
    program.out, program.quiet = folder(), true
    local all = repeats.train {
      make = function() return cq.Experiment {
        world = world, steps = 4, controller = cq.Controller.open_loop { steps = 4, init = 0.5 },
        objective = {
          terminal = function(state) return -place(state) end, effort = function(u) return 10 + u:square():sum() end,
        },
        optimizer = cq.Optimizer.adam { rate = 0.01 },
      } end,
      iterations = 2, place = place, way = function(x) return 100 * (x - 0.4) end,
    }
    program.out, program.quiet = nil, false
    local found = all.best:evaluate()
    local loss, roll = found.loss, found.rollout
    assert(loss > 9, loss)
    assert.near(100 * (place(roll.state):item() - 0.4), all.mean, 1e-9)
    assert(all.mean > 0 and all.mean < 10, all.mean)
  end)

  it("keeps the best so far of each run, and draws the median of all with the band of 90 %", function()
    local repeats, curves = require "scenes.repeats", {}
    for k, second in ipairs { 5, 2, 9 } do
      local path = ("%s/%d"):format(folder(), k)
      assert(host.make_folder(path))
      process.write(path .. "/history.csv", ("iteration,loss,gradient,seconds\n1,-1,0,%d\n2,%d,0,1\n3,-3,0,1\n%s"):format(
        k, -second, k == 2 and "" or "4,0,0,1\n"))
      curves[k] = repeats.curve(path, function(x) return x end)
    end
    assert.same({ 1, 5, 5, 5 }, curves[1].best)
    assert.same({ 1, 2, 3 }, curves[2].best)
    assert.same({ 3, 4, 5, 6 }, curves[3].seconds)
    local band = repeats.band(curves, "seconds")
    assert.same({ 2, 3, 4 }, band.x)
    assert.same({ 1, 5, 5 }, band.y)
    assert.near(2.3, band.lower[2], 1e-12)
    assert.near(8.6, band.upper[2], 1e-12)
  end)

  it("draws more than three sets beside each other, and names what one plot shows", function()
    local repeats, series, told = require "scenes.repeats", {}, {}
    local curve = { iteration = { 1, 2 }, seconds = { 1, 2 }, best = { 0, 1 } }
    local whole = cq.Plot
    cq.Plot = function(fields)
      told[#told + 1] = fields
      return whole(fields)
    end
    local fine, problem = pcall(function()
      for k = 1, 5 do
        local other = { iteration = { 1, 2 }, seconds = { 1, 2 }, best = { 0, k } }
        series[k] = { name = "set " .. k, curves = { curve, other } }
        repeats.plot { path = folder() .. "/" .. k .. ".png", by = "iteration", title = "A walker", label = "way",
          series = series }
      end
    end)
    cq.Plot = whole
    assert(fine, problem)
    local image = require "cq.base.image"
    local function size(k)
      local picture = image.read(("%s/%d.png"):format(folder(), k))
      return { picture.width, picture.height }
    end
    assert.same({ { 960, 540 }, { 960, 540 }, { 1600, 390 }, { 1600, 720 } }, { size(1), size(3), size(4), size(5) })
    assert.equal(3 + 4 + 5, #told)
    assert.equal("A walker: median and 90 % of 2 runs", told[1].title)
    assert.equal(nil, told[1].series[1].name)
    assert.equal("set 2", told[2].series[2].name)
    local last = told[#told]
    assert.same({ "set 1", "set 5" }, { last.series[1].name, last.series[2].name })
    assert.same({ 0.05 * 0, 0.95 * 4 + 1 }, { last.y_range[1], last.y_range[2] })
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
