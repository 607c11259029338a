-- method: a method that is called with a dot in the place of a colon.
local cq = require "cq"
local scene = require "tests.scene"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

describe("a dot in the place of a colon", function()
  local told = "%s: a method is called with a colon, %s(...), not with a dot"

  it("is told, before what comes first is taken for the object", function()
    local robot = scene.robot()
    local world, random = scene.world(robot), cq.random { seed = 1 }
    local matrix = cq.sparse { shape = { 1, 1 }, row = { 1 }, column = { 1 }, value = { 1 } }
    local of = {
      ["world:rollout"]  = function() world.rollout { steps = 1 } end,
      ["world:timers"]   = function() world.timers() end,
      ["robot:at"]       = function() robot.at { 0, 0 } end,
      ["robot:group"]    = function() robot.group "foot" end,
      ["group:pin"]      = function() robot:group("foot").pin() end,
      ["shape:sample"]   = function() cq.Shape.box({ size = { 1, 1 } }).sample { spacing = 0.1 } end,
      ["random:uniform"] = function() random.uniform { 2 } end,             -- was a crash of the program
      ["optimizer:update"] = function() cq.Optimizer.adam { rate = 1 }.update({}, {}) end,
      ["optimizer:state"] = function() cq.Optimizer.parts({ a = cq.Optimizer.adam { rate = 1 } }).state() end,
      ["sparse:product"] = function() matrix.product(1) end,
    }
    for name, f in pairs(of) do says(sentence(f), told:format(name, name)) end
  end)

  it("is what constructors are called with, and a colon is told", function()
    local count = 0
    for name in pairs(require("cq.base.schema").registry) do
      local family, member = name:match "^cq%.(%u%w+)%.([%w_]+)$"
      if family and type(rawget(cq[family], member)) == "function" then
        count = count + 1
        assert.equal(("%s: a constructor is called with a dot, %s { ... }, not with a colon"):format(name, name),
          sentence(cq[family][member], cq[family], {}))
      end
    end
    assert(count > 40, count)
  end)

  it("is told of all methods of an experiment, and of another object", function()
    local world = scene.world(scene.robot())
    for name, f in pairs(cq.Experiment.class) do
      if type(f) == "function" and not name:find "^__" then
        name = "run:" .. name
        says(sentence(function() f() end), told:format(name, name))
        says(sentence(function() f(world, "gait.png") end), told:format(name, name))
      end
    end
  end)
end)
