-- examples: walker2d, throw and codesign run as a user runs them, and hold to what they claim as
-- far as a few iterations tell.
local process = require "tests.process"
local cq = require "cq"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/walker2d.lua", function()
  it("gets further with each of its first iterations", function()
    local history, out = example("walker2d", { "--iterations", "4", "--render", "no" })
    assert.equal(4, #history)
    for i = 2, 4 do assert(history[i].loss < history[i - 1].loss - 1e-4, history[i].loss) end
    assert.near(-0.5, history[1].loss, 0.02)                         -- an untrained walker stays where it is
    local lengths = tonumber(out:match "^walked (%d+%.%d+) body lengths\n$")
    assert.near((-history[4].loss - 0.5) / 0.6, lengths, 0.006)
    process.remove(folder())
    local other = example("walker2d", { "--iterations", "1", "--render", "no", "--seed", "1" })
    assert(math.abs(other[1].loss - history[1].loss) > 1e-4, "--seed does not reach the first weights")
  end)
end)

describe("examples/throw.lua", function()
  it("hits its target after one bounce, and films it", function()
    local history, out = example("throw", { "--iterations", "30" })
    assert.equal(30, #history)
    local first, last = history[1], history[30]
    assert(first.error > 0.5 and last.error < 1e-4, last.error)
    assert.near(last.loss, last.error ^ 2, 1e-12)
    assert(tonumber(out:match "it is (%S+) from the target\n$") < 1e-4, out)
    -- without a bounce the block would have to start faster upward: 0.5083 + v t - t^2 / 2 = 0.3 at t = 1.5
    assert(last["velocity.2"] > 0 and last["velocity.2"] < 0.55, last["velocity.2"])
    local film = process.read(folder() .. "/throw.mp4") or process.read(folder() .. "/throw_frames/000076.png")
    assert(film and #film > 1000)
  end)
end)

describe("examples/codesign.lua", function()
  it("learns stiffness within its bounds, from the same start as the controller alone", function()
    local history, out = example("codesign", { "--iterations", "4", "--render", "no" })
    assert.equal(4, #history)
    local fixed = {}
    for line in process.read(folder() .. "/fixed/history.csv"):gmatch "\n%d+,([^,]+)" do
      fixed[#fixed + 1] = tonumber(line)
    end
    assert.equal(fixed[1], history[1].loss)
    assert(history[4].loss < history[1].loss - 1e-3 and fixed[4] < fixed[1] - 1e-3)
    assert(history[4].loss < fixed[4], "co-design adds nothing")
    local added = 100 * ((-history[4].loss - 0.5) / (-fixed[4] - 0.5) - 1)
    assert.near(added, tonumber(out:match "([+-]%d+) %%\n$"), 0.51)
    local young = cq.load(folder()).parameters.robot.young
    assert.equal(2800, young.count)
    local least, most = young:min():item(), young:max():item()
    assert(least >= 7 and most <= 20)
    assert(least < 9.8 and most > 10.2, "the stiffness did not move")
    assert.is_nil(cq.load(folder() .. "/fixed").parameters.robot)
  end)
end)

describe("scenes/walker2d.lua", function()
  it("is seven groups in three blocks and four legs", function()
    local robot = cq.Robot(require "scenes.walker2d" {})
    assert.equal(2800, robot.particle_count)
    assert.equal(7, #robot.groups)
    assert.same({ "left.back", "left.front", "right.back", "right.front" }, robot.signals)
    assert.near(5 * 0.2 ^ 2, robot.volume:sum():item(), 1e-12)
    assert.equal(7 * 36, cq.Robot(require "scenes.walker2d" { count = 6 }).particle_count)
  end)
end)
