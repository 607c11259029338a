-- study_examples: the studies of examples/studies, a part of each with few iterations.
local process = require "tests.process"
local cqlua = process.cqlua

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function study(name, action, ...)
  local script = "examples/studies/" .. name .. ".lua"
  local result = cqlua { "study", action, script, "--out", folder .. "/out", "--threads", "1", ... }
  assert(result.code == 0, result.err .. result.out)
  return result.out
end

local function part(name, shard, iterations)
  study(name, "run", "--shard", shard, "--iterations", iterations)
  study(name, "merge", "--iterations", iterations)
  return study(name, "export", "--iterations", iterations)
end

describe("examples/studies", function()
  it("rate.lua trains walkers with every rate", function()
    local out = part("rate", "1/14", "2")
    assert(out:find("\n1,1,1,1,done,0.001,-0.", 1, true), out)
    assert(out:find("\n15,4,3,3,done,0.03,-0.", 1, true), out)
  end)

  it("starts.lua comes nearer to the finger", function()
    part("starts", "2/64", "6")
    local curves, young = study("starts", "export", "--curves", "--iterations", "6"), {}
    for value in curves:gmatch "2,young,[%d.]+,(%S+)" do young[#young + 1] = tonumber(value) end
    assert.equal(6, #young)
    local loss = {}
    for value in curves:gmatch "2,loss,[%d.]+,(%S+)" do loss[#loss + 1] = tonumber(value) end
    assert(loss[6] < 0.8 * loss[1], curves)
  end)

  it("codesign.lua learns what its point says beside the controller", function()
    local out = part("codesign", "80/80", "1")
    assert(out:find("\n80,8,10,10,done,true,true,true,-", 1, true), out)
    local said = cqlua { "check", "examples/studies/codesign.lua" }.out
    assert(said:find("nothing wrong was found", 1, true) and not said:find("robot.young", 1, true), said)
  end)

  it("topology.lua finds walkers with other signals", function()
    local words = { "--coarse", "2", "--iterations", "2", "--free", "1", "--rough", "2", "--soft", "1", "--training",
      "1", "--render", "no" }
    study("topology", "run", "--shard", "4/15", unpack(words))
    study("topology", "merge", unpack(words))
    local out = study("topology", "export", unpack(words))
    assert(out:find '\n4,2,1,1,done,"0%.5 s, 2",%-?0%.%d', out)             -- no walker yet after so few
    local head = process.read(folder .. "/out/trials/000004/walker.csv"):match "[^\n]*"
    assert.is_truthy(head:find "share_2$")
  end)
end)
