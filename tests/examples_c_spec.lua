-- examples: fingers and arms of the papers run as a user runs them, and hold to what they claim as far as a few
-- iterations tell.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

describe("examples/cable_finger.lua", function()
  it("comes nearer to what bends as the finger seen does, and goes on as if it had not stopped", function()
    local whole, out = example("cable_finger", { "--iterations", "3", "--render", "no" })
    assert(whole[1].loss > 2e-4 and whole[3].loss < 0.3 * whole[1].loss, whole[3].loss)
    assert(whole[3].young > 17 and whole[3].density < 2.7, out)
    assert.near(whole[3].young, tonumber(out:match "^E (%S+), "), 1e-3)
    process.remove(folder())
    example("cable_finger", { "--iterations", "2", "--render", "no" })
    assert.same(whole, (example("cable_finger", { "--iterations", "3", "--render", "no", "--resume" })))
  end)
end)

describe("examples/arm_length.lua", function()
  it("grows towards a goal that the arm as it is does not come near to, and is built so", function()
    local history, out = example("arm_length", { "--iterations", "25", "--render", "no" })
    assert.equal(25, #history)
    local pattern = "misses by (%S+); with (%S+) times the length by (%S+), built anew by (%S+)\n$"
    local short, factor, error, built = out:match(pattern)
    assert(tonumber(short) > 0.12 and tonumber(factor) > 1.5 and tonumber(error) < 0.06, out)
    assert.near(tonumber(error), tonumber(built), 1e-3)
  end)

  it("ends at Ctrl-C in its first run, says how it goes on, and goes on", function()
    local function arm(iterations, more, after)
      return process.cqlua({ "examples/arm_length.lua", "--out", folder(), "--threads", "1", "--render", "no",
        "--iterations", iterations, more }, { after = after })
    end
    -- as soon as the first run has a line; ten seconds at most
    local wait = ("i=0; until grep -q ^2, %s/fixed/history.csv || [ $i -gt 500 ]; do sleep 0.02; i=$((i + 1)); done")
      :format(folder())
    local stopped = arm(1e6, nil, ("& pid=$!; %s; kill -INT $pid; wait $pid"):format(wait))
    local rest = arm(5, "--resume")
    assert.same({ 130, "" }, { stopped.code, stopped.out }, stopped.err)
    assert(stopped.err:find("kept in " .. folder() .. "/fixed; the same command with --resume goes on", 1, true),
      stopped.err)
    assert.equal(0, rest.code, rest.err)
    assert(rest.out:find "^as it is, the arm misses by", rest.out)
  end)

  it("begins with --resume where it was killed before anything was saved", function()
    local result = process.cqlua { "examples/arm_length.lua", "--out", folder(), "--threads", "1", "--render", "no",
      "--iterations", "1", "--resume" }
    assert.equal(0, result.code, result.err)
    assert(result.err:find("nothing to go on from in " .. folder() .. ": this run begins", 1, true), result.err)
  end)
end)

describe("examples/walker_ppo.lua", function()
  it("leaves a policy that is loaded and written as C", function()
    local history, out = example("walker_ppo", { "--iterations", "2", "--render", "no" })
    assert.same({ 2048, 4096 }, { history[1].steps, history[2].steps })
    assert.equal(-history[2].reward, history[2].loss)
    assert(out:find "the policy without noise goes %-?%d%.%d+ body lengths\n$", out)
    local header = process.read(folder() .. "/walker.h")
    for _, name in ipairs { "static inline void walker_step", "walker_mean" } do
      assert(header:find(name, 1, true), name)
    end
  end)
end)

describe("examples/finger_targets.lua", function()
  it("comes nearer to one goal, to random ones, and to those in a larger range", function()
    local history, out = example("finger_targets", { "--iterations", "10", "--render", "no" })
    assert.equal(10, #history)
    for _, name in ipairs { "loss", "random", "wide" } do
      assert(history[10][name] < 0.7 * history[1][name], name)
    end
    assert(history[10].wide > history[10].random, "the larger range is no harder")
    assert.equal(3, select(2, out:gsub("goals: error %d", "")))
  end)
end)
