-- robust: the command that measures what a run, or a robot of the zoo, keeps in other simulations.
local cq = require "cq"
local host = require "cq.host"
local json = require "cq.base.json"
local mistake = require "tests.sentence"
local process = require "tests.process"

describe("cqlua robust", function()
  local folder
  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  it("measures a run by its folder, without training it again", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 3 }
]])
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/run", "--keep", "2" }).code)
    local found = process.cqlua { "robust", folder .. "/run", "--draws", "3" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, folder .. "/run:\nloss ", "kept of that gain")
    mistake.says(found.out, "together   median")
    mistake.says(found.out, "of 3 draws")
    assert.is_nil(found.err:find("warning", 1, true), found.err)
    assert.equal(3, #json.decode(process.read(folder .. "/run/robustness.json")).draws)
    assert.equal(4, select(2, process.read(folder .. "/run/history.csv"):gsub("\n", "")))
    found = process.cqlua { "robust", folder .. "/run", "--draws", "1", "--out", folder .. "/elsewhere" }
    assert.equal(0, found.code, found.err)
    assert.equal(1, #json.decode(process.read(folder .. "/elsewhere/robustness.json")).draws)
    assert.equal(3, #json.decode(process.read(folder .. "/run/robustness.json")).draws)
    found = process.cqlua { "robust", "runner", "--draws", "1" , "--out", folder .. "/zoo" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, "0 at the start; kept of that gain")
    mistake.says(found.out, "grid       cells x0.")
    assert.equal("file", host.kind(folder .. "/zoo/robustness.json"))
    found = process.cqlua { "robust", "zoo/runer" }
    mistake.says(found.err, 'the zoo has no "runer" (did you mean runner?)')
    found = process.cqlua { "robust", folder .. "/none" }
    mistake.says(found.err, 'none", and there is no such folder; the zoo has biped')
    found = process.cqlua { "robust", folder .. "/run/saved.bin" }
    mistake.says(found.err, "saved.bin is a file, which has no objective; give the folder of a run")
    found = process.cqlua { "robust", folder }
    assert.equal(1, found.code)
    mistake.says(found.err, "cqlua robust: " .. folder)
    assert.equal(2, process.cqlua({ "robust" }).code)
  end)

  it("refuses a script that was changed and has another loss, and tells of one that has the same", function()
    local text = [[
package.path = "./?.lua;" .. package.path
local cq, scene, part = require "cq", require "tests.scene", require "part"
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = 2 }, objective = part.way, optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 3 }
]]
    local part = 'return { way = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end }\n'
    local at, out = folder .. "/script.lua", folder .. "/run"
    process.write(folder .. "/part.lua", part)
    assert.equal(0, process.cqlua({ process.write(at, text), "--out", out }).code)
    local function robust() return process.cqlua { "robust", out, "--draws", "0" } end
    assert.equal(0, robust().code)
    local kept = process.read(out .. "/robustness.json")
    process.write(at, text:gsub("steps = 10", "steps = 8"))
    local found = robust()
    assert.equal(1, found.code)
    mistake.says(found.err, "cqlua robust: the script was changed since the run in " .. out .. ": line 3 was ",
      ("; the loss of its best was %.4g and is "):format(cq.load(out).result.loss), out .. "/script.lua has the text")
    process.write(at, text)
    process.write(folder .. "/part.lua", (part:gsub("return start", "return 3 * start")))
    found = robust()
    assert.equal(1, found.code)
    mistake.says(found.err, "part.lua was changed since the run in " .. out .. ": line 1 was ")
    process.write(folder .. "/part.lua", part)
    process.write(at, text .. "-- a remark\n")
    found = robust()
    assert.equal(0, found.code, found.err)
    mistake.says(found.err, 'line 6 was "" and is "-- a remark"; the loss of its best is the same')
    assert.equal(kept, process.read(out .. "/robustness.json"))
    process.write(at, text)
    found = process.cqlua { "robust", out, "--draws", "0" }
    assert.is_nil(found.err:find("changed", 1, true), found.err)
  end)

  it("tells that the best has another loss where the script was not changed", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local factor = tonumber(io.open((arg[0]:gsub("script.lua", "factor"))):read "*a")
cq.Experiment { world = scene.world(scene.robot()), steps = 10, controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return factor * (start:center("trunk")[1] - s:center("trunk")[1]) end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }:optimize { iterations = 3 }
]])
    process.write(folder .. "/factor", "1")
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/run" }).code)
    process.write(folder .. "/factor", "2")
    local found = process.cqlua { "robust", folder .. "/run", "--draws", "0" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.err, "the loss of the best of " .. folder .. "/run was ", " when its script is run again")
  end)

  it("trains no learner again, and leaves the folders of other runs where they are", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local robot = scene.robot()
local world = scene.world(robot)
local run = cq.Experiment { world = world, steps = 10, controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 2, name = "gait" }
local env = cq.Env { world = world, scenes = 2, steps = 4, observer = cq.Observer.centroid { groups = { "trunk" } },
  reward = function(s, _, n) return (n:center(robot) - s:center(robot)):slice(1, 1, -1):flatten() end }
local learner = cq.Learner.ppo { env = env, steps = 32, batch = 8, minibatches = 2, hidden = { 4 }, seed = 1 }
local history = learner:train { folder = run.folder:gsub("gait$", "learner"),
  on_update = function() print "trains" end }
print("updates", #history)
cq.Run.open({ folder = run.folder:gsub("gait$", "loop"), iterations = 1 }):record { loss = 1 }
]])
    local made = process.cqlua { folder .. "/script.lua", "--out", folder .. "/run" }
    assert.equal(0, made.code, made.err)
    local before = process.read(folder .. "/run/learner/params.bin")
    local found = process.cqlua { "robust", folder .. "/run/gait", "--draws", "1" }
    assert.equal(0, found.code, found.err)
    mistake.says(found.out, made.out:match "updates%s+%d+")
    mistake.says(made.out, "trains")
    assert.is_nil(found.out:find("trains", 1, true))
    assert.is_nil(host.kind(folder .. "/run/loop-earlier-1"))
    assert.equal(before, process.read(folder .. "/run/learner/params.bin"))
    assert.is_nil(host.kind(folder .. "/run/learner-earlier-1"))
    found = process.cqlua { "robust", folder .. "/run/learner", "--draws", "1" }
    assert.equal(1, found.code)
    assert.equal(before, process.read(folder .. "/run/learner/params.bin"))
    found = process.cqlua { "resume", folder .. "/run/learner", "--set", "optimizer.rate=x0.5", "--as", folder .. "/x" }
    mistake.says(found.err, "--set is for runs of run:optimize")
  end)

  it("takes what a solve has found from its folder, and refuses a run that is a solve before it runs the script", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local params, out = { x = cq.param(1), y = { cq.param(0.5, { max = 2 }) } }, cq.option("out", "")
local lagrangian = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.1 } }
local solution = lagrangian:solve(params, function(p)
  print "evaluates"
  return { objective = (p.x - 2):square() + (p.y[1] - 3):square(), high = p.x }
end, { iterations = 30, folder = out .. "/solve", constraints = { { name = "high", at_most = 1.5 } } })
print("found", params.x:item(), params.y[1]:item(), tostring(solution), solution.constraints.high.multiplier)
local file = io.open(arg[0]:gsub("script.lua", "own.txt"), "a")
file:write "run\n"
file:close()
cq.Experiment { world = scene.world(scene.robot()), steps = 10, controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }:optimize { iterations = 1, name = "gait" }
]])
    local made = process.cqlua { folder .. "/script.lua", "--out", folder .. "/run" }
    assert.equal(0, made.code, made.err)
    local before = process.read(folder .. "/run/solve/saved.bin")
    local found = process.cqlua { "robust", folder .. "/run/gait", "--draws", "0" }
    assert.equal(0, found.code, found.err)
    assert.is_nil(found.out:find("evaluates", 1, true))
    mistake.says(found.out, (made.out:match "found.*$"))
    assert.equal(before, process.read(folder .. "/run/solve/saved.bin"))
    assert.is_nil(host.kind(folder .. "/run/solve-earlier-1"))
    local runs = process.read(folder .. "/own.txt")
    found = process.cqlua { "robust", folder .. "/run/solve" }
    assert.equal(1, found.code)
    mistake.says(found.err, "cqlua robust: the run in " .. folder .. "/run/solve is of optimizer:solve")
    assert.equal(runs, process.read(folder .. "/own.txt"))
  end)

  it("draws by its own seed, and gives the script that of its run", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = cq.option("seed", 2) },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 2 }
if cq.option("own", false) then cq.robustness(run, { draws = 2 }):save "own.json" end
print("seed", cq.option("seed", 2))
]])
    local large = "3000000000"           -- more than 2^31
    local made = process.cqlua { folder .. "/script.lua", "--seed", large, "--out", folder .. "/run", "--own" }
    assert.equal(0, made.code, made.err)
    local draws = {}
    for k, words in ipairs { {}, { "--seed", "5" }, { "--seed", large } } do
      local found = process.cqlua { "robust", folder .. "/run", "--draws", "2", unpack(words) }
      assert.equal(0, found.code, found.err)
      mistake.says(found.out, "seed\t" .. large)
      draws[k] = json.decode(process.read(folder .. "/run/robustness.json")).draws
    end
    assert.same(json.decode(process.read(folder .. "/run/own.json")).draws, draws[1])
    for k = 1, 2 do assert.is_true(draws[k][1].change.stiffness ~= draws[k + 1][1].change.stiffness) end
  end)

  it("compares the loss over listed variants, and cannot with those that are drawn for each iteration", function()
    local text = [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local listed = { { change = { density = 0.3 } }, { change = { gravity = 0.5 } } }
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
  controller = cq.Controller.sines { seed = 2 },
  objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
  variants = cq.option("drawn", false) and function(random)
    return { change = { density = 0.1 * random:uniform():item() } }
  end or listed, reduce = "worst", optimizer = cq.Optimizer.adam { rate = 0.05 } }
run:optimize { iterations = 2 }
]]
    local at = folder .. "/script.lua"
    for _, words in ipairs { {}, { "--drawn" } } do
      process.write(at, text)
      local made = process.cqlua { at, "--out", folder .. "/run", "--overwrite", unpack(words) }
      assert.equal(0, made.code, made.err)
      local found = process.cqlua { "robust", folder .. "/run", "--draws", "0" }
      assert.equal(0, found.code, found.err)
      assert.is_nil(found.err:find("warning", 1, true), found.err)
      process.write(at, (text:gsub("steps = 10", "steps = 8")))
      found = process.cqlua { "robust", folder .. "/run", "--draws", "0" }
      if words[1] then
        assert.equal(0, found.code, found.err)
        mistake.says(found.err, "line 4 was ", "what is measured is the changed one")
      else
        assert.equal(1, found.code)
        local loss = cq.load(folder .. "/run").result.loss
        mistake.says(found.err, ("; the loss of its best was %.4g and is "):format(loss))
      end
    end
  end)

  it("measures one of several runs of a script", function()
    process.write(folder .. "/script.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
for _, name in ipairs { "slow", "quick" } do
  local run = cq.Experiment { world = scene.world(scene.robot()), steps = 10,
    controller = cq.Controller.sines { seed = 2 },
    objective = function(s, start) return start:center("trunk")[1] - s:center("trunk")[1] end,
    optimizer = cq.Optimizer.adam { rate = name == "slow" and 0.01 or 0.05 } }
  run:optimize { iterations = 3, name = name }
end
]])
    assert.equal(0, process.cqlua({ folder .. "/script.lua", "--out", folder .. "/runs" }).code)
    local loss = {}
    for k, name in ipairs { "slow", "quick" } do
      local found = process.cqlua { "robust", folder .. "/runs/" .. name, "--draws", "0" }
      assert.equal(0, found.code, found.err)
      loss[k] = json.decode(process.read(folder .. "/runs/" .. name .. "/robustness.json")).loss
      assert.near(cq.load(folder .. "/runs/" .. name).result.loss, loss[k], 1e-12)
    end
    assert(loss[1] ~= loss[2])
    os.rename(folder .. "/runs/slow", folder .. "/runs/other")
    local found = process.cqlua { "robust", folder .. "/runs/other" }
    assert.equal(1, found.code)
    mistake.says(found.err, 'has the name "slow", by which its script finds it')
  end)
end)
