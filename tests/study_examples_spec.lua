-- study_examples: the studies of examples/studies, a trial of each with few iterations.
local json = require "cq.base.json"
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

-- what one trial of a study gives, which has not begun
local function trial(name, number, ...)
  local said = study(name, "rerun", tostring(number), ...)
  local state, result = said:match("^.*trial " .. number .. ": (%a+) ({.-}); its folder is ")
  assert(state == "done", said)
  return json.decode(result), ("%s/out/rerun/%06d/"):format(folder, number)
end

describe("examples/studies", function()
  it("rate.lua trains walkers with every rate", function()
    for _, number in ipairs { 1, 15 } do assert.is_true(trial("rate", number, "--iterations", "2").loss < 0) end
    assert.equal(0.03, json.decode(process.read(folder .. "/out/rerun/000015/trial.json")).point.rate)
  end)

  it("starts.lua comes nearer to the finger", function()
    local _, place = trial("starts", 2, "--iterations", "6")
    local rows = require("cq.run").read_history(place)
    assert.equal(6, #rows)
    assert.is_true(rows[6].loss < 0.8 * rows[1].loss and rows[6].young ~= rows[1].young)
  end)

  it("codesign.lua learns what its point says beside the controller", function()
    local result, place = trial("codesign", 80, "--iterations", "1")
    assert.is_true(result.loss < 0)
    local kept = json.decode(process.read(place .. "trial.json"))
    local free = 0
    for _, value in pairs(kept.point) do free = free + (value == true and 1 or 0) end
    assert.equal(3, free)
    local said = cqlua { "check", "examples/studies/codesign.lua" }.out
    assert(said:find("nothing wrong was found", 1, true) and not said:find("robot.young", 1, true), said)
  end)

  it("topology.lua finds walkers with other signals", function()
    local result, place = trial("topology", 4, "--budget", "0.02", "--render", "no")
    assert.is_true(math.abs(result.loss) < 1)                              -- no walker yet after so few
    assert.is_truthy(process.read(place .. "history.csv"):find(",pulses,", 1, true))
  end)
end)
