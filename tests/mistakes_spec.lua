-- mistakes: what users get wrong, and the sentence that they get; beside what the specs of each noun say of their own fields.
local cq = require "cq"
local process = require "tests.process"
local scene = require "tests.scene"

local cqlua = process.cqlua

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- the sentence of an error that stands at the user's line
local function sentence(f, ...)
  local fine, problem = pcall(f, ...)
  assert.is_false(fine)
  local message = tostring(problem):match "^tests/mistakes_spec.lua:%d+: (.*)$"
  assert.is_truthy(message, "not at the user's line: " .. tostring(problem))
  return message
end

local function says(message, part) assert.is_truthy(message:find(part, 1, true), message) end

local function script(content) return process.write(folder .. "/script.lua", content) end

describe("a world that is closed", function()
  it("says so, whatever is asked of it", function()
    local world = scene.world(scene.robot())
    local roll = world:rollout { steps = 1 }
    world:close()
    world:close()
    says(sentence(function() world:rollout { steps = 1 } end), "world:rollout: this world is closed")
    says(sentence(function() world:plan { steps = 1 } end), "world:plan: this world is closed")
    says(sentence(function() world:timers() end), "world:timers: this world is closed")
    says(sentence(function() roll.state:center "foot" end), "its world closed")
  end)

  it("cannot be closed by a function of a rollout that goes on", function()
    local world = scene.world(scene.robot())
    says(sentence(function() world:rollout { steps = 2, running = function() world:close() return 0 end } end),
      "world:close: cannot be called from inside a rollout's own functions (in running, control step 1 of 2)")
    assert.equal(2, world:rollout({ steps = 2 }).steps)
  end)
end)
