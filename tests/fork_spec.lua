-- fork: checkpoints that a run keeps, runs that begin from them, and what commands tell of runs.
local cq = require "cq"
local host = require "cq.host"
local json = require "cq.base.json"
local has = require("tests.sentence").says
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local SCRIPT = [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local robot, goal = scene.robot(), cq.option("goal", 0.4502)
local run = cq.Experiment {
  world = scene.world(robot), steps = 8, observer = cq.Observer.centroid { groups = robot.groups },
  controller = cq.Controller.mlp { hidden = { 4 } },
  objective = function(state) return (state:center(robot)[1] - goal):square() * 1e6 end,
  optimizer = cq.Optimizer.adam { rate = cq.option("rate", 0.05) },
}
run:optimize { iterations = cq.option("iterations", 12), keep = cq.option("each", 4), on_iteration = function(i)
  if i == cq.option("fail", 0) then error "the end" end
end }
]]

local function script() return process.write(folder .. "/script.lua", SCRIPT) end
local function at(name) return folder .. "/" .. name end

local function trained(name, ...)
  local result = process.cqlua { script(), "--out", at(name), ... }
  assert.equal(0, result.code, result.err)
  return at(name)
end

local function resume(...) return process.cqlua { "resume", ... } end

-- all but times
local function rows(name)
  local out = cq.Run.read_history(at(name))
  for _, row in ipairs(out) do row.seconds = nil end
  return out
end

local function manifest(name) return json.decode(process.read(at(name) .. "/manifest.json")) end

describe("a run with keep", function()
  it("keeps the state of every so many iterations", function()
    trained "a"
    local names = host.entries(at "a/checkpoints")
    table.sort(names)
    assert.same({ "000004.bin", "000008.bin", "000012.bin" }, names)
    assert.equal(8, cq.load(at "a/checkpoints/000008.bin").iteration)
    assert.equal(process.read(at "a/optimizer.bin"), process.read(at "a/checkpoints/000012.bin"))
    assert.is_nil(host.kind(at "b"))
  end)

  it("takes --keep in place of what the script says, and refuses one that is no number of iterations", function()
    trained("a", "--keep", "5")
    local names = host.entries(at "a/checkpoints")
    table.sort(names)
    assert.same({ "000005.bin", "000010.bin" }, names)
    has(process.cqlua({ script(), "--out", at "b", "--keep", "0" }).err, "--keep must be ")
  end)

  it("forgets those of another way on from an iteration before", function()
    trained "a"
    -- as if it had stopped after iteration 4
    process.write(at "a/optimizer.bin", process.read(at "a/checkpoints/000004.bin"))
    local result = process.cqlua { script(), "--out", at "a", "--resume", "--iterations", "6" }
    assert.equal(0, result.code, result.err)
    assert.same({ "000004.bin" }, host.entries(at "a/checkpoints"))
  end)
end)

describe("cqlua resume", function()
  it("makes a fork that goes on as its parent did, bit for bit", function()
    trained "a"
    local result = resume(at "a", "--at", "4", "--as", at "b")
    assert.equal(0, result.code, result.err)
    has(result.err, "going on after iteration 4")
    assert.equal(12, #rows "a")
    assert.same(rows "a", rows "b")
    local function parameters(name) return cq.load(at(name) .. "/params.bin").controller.w1:totable() end
    assert.same(parameters "a", parameters "b")
    assert.same({ folder = host.resolve(at "a"), iteration = 4, set = {} }, manifest("b").parent)
  end)

  it("changes options of the optimizer, and keeps them for those who go on", function()
    trained "a"
    local result = resume(at "a", "--at", "8", "--set", "optimizer.rate=1e-3", "--set", "optimizer.clip=0.5",
      "--as", at "b")
    assert.equal(0, result.code, result.err)
    has(result.err, "as the fork of", "optimizer.clip = 0.5, optimizer.rate = 1e-3", "optimizer.rate was 0.05 and is 0.001")
    -- as a script with these would have gone on
    local list = json.decode(process.read(at "b/plan.json"))
    assert.equal("0.001", list[1]["optimizer.rate"])
    assert.same({ unpack(rows "a", 1, 9) }, { unpack(rows "b", 1, 9) })
    assert.not_equal(rows("a")[10].loss, rows("b")[10].loss)
    -- its own command with --resume, and a fork of the fork by a factor
    result = process.cqlua { script(), "--out", at "b", "--resume", "--iterations", "14" }
    assert.equal(0, result.code, result.err)
    has(result.err, "optimizer.rate = 1e-3")
    result = resume(at "b", "--set", "optimizer.rate=x0.5", "--as", at "c", "--iterations", "16")
    assert.equal(0, result.code, result.err)
    has(result.err, "optimizer.clip = 0.5, optimizer.rate = 0.0005")
    assert.equal(16, #rows "c")
  end)

  it("goes back to the best with a smaller rate", function()
    trained("a", "--rate", "1.5")
    local best
    for _, row in ipairs(rows "a") do
      if not best or row.loss < best.loss then best = row end
    end
    assert(best.iteration < 12, "the last iteration is the best one")
    local result = resume(at "a", "--best", "0.1", "--as", at "b", "--iterations", "13")
    assert.equal(0, result.code, result.err)
    has(result.err, "optimizer.rate = x0.1")
    -- the first evaluation is that of the best parameters again
    assert.equal(best.loss, rows("b")[13].loss)
    assert.is_true(manifest("b").parent.best)
  end)

  it("goes back to what an observer had learned at the best", function()
    local path = process.write(folder .. "/eye.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local eye = cq.Observer.autoencoder { window = { 16, 8 }, latent = 3, layers = { 4 }, dense = 0, collect = 1,
  seed = cq.option("eye", 0) }
local run = cq.Experiment { world = scene.world(scene.robot()), steps = 5, observer = eye,
  controller = cq.Controller.mlp { hidden = { 4 } }, optimizer = cq.Optimizer.adam { rate = 0.2 },
  objective = function(state) return (state:center("trunk")[1] - 0.4502):square() * 1e6 end }
local slow = cq.Optimizer.adam { rate = 0.1 }
run:optimize { iterations = cq.option("iterations", 5), on_iteration = function()
  eye:fit { optimizer = slow, iterations = 5, batch = 8 }
end }
]])
    local made = process.cqlua { path, "--out", at "a" }
    assert.equal(0, made.code, made.err)
    local best = math.huge
    for _, row in ipairs(rows "a") do best = math.min(best, row.loss) end
    assert.is_true(best < rows("a")[5].loss, "the last iteration is the best one")
    local result = resume(at "a", "--best", "0.1", "--as", at "b", "--iterations", "6")
    assert.equal(0, result.code, result.err)
    assert.equal(best, rows("b")[6].loss)
    -- what it has drawn is saved with it: another seed changes nothing
    local again = process.cqlua { path, "--out", at "a", "--resume", "--eye", "7", "--iterations", "6" }
    assert.equal(0, again.code, again.err)
    assert.equal(6, #rows "a")
  end)

  it("goes back to the best of several starts", function()
    local path = process.write(folder .. "/starts.lua", [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local run = cq.Experiment(function(level)
  local robot = scene.robot()
  return { world = scene.world(robot), steps = 8, observer = cq.Observer.centroid { groups = robot.groups },
    controller = cq.Controller.mlp { hidden = { 4 }, seed = level.seed },
    objective = function(state) return (state:center(robot)[1] - 0.4502):square() * 1e6 end,
    optimizer = cq.Optimizer.adam { rate = 0.05 } }
end)
run:optimize { plan = cq.Plan { name = "two", starts = { count = 2, keep = 2, at = "two" },
  { name = "one", iterations = 3 }, { name = "two", iterations = cq.option("iterations", 3) } } }
]])
    local made = process.cqlua { path, "--out", at "a" }
    assert.equal(0, made.code, made.err)
    local saved, state = cq.load(at "a"), cq.load(at "a/optimizer.bin")
    local best = {}
    for k, start in ipairs(state.optimizer.starts) do best[k] = start.best.loss end
    assert.is_true(best[1] ~= best[2])
    resume(at "a", "--best", "0.5", "--as", at "b")              -- refused, for it has made all: its folder stays
    local params = cq.load(at "b/params.bin")
    assert.is_true(params.controller.w1:equal(saved.parameters.controller.w1))
  end)

  it("goes on with a run by its own command", function()
    local stopped = process.cqlua { script(), "--out", at "a", "--fail", "6" }
    assert.equal(1, stopped.code)
    trained("whole")
    local result = resume(at "a" .. "/", "--fail", "0")
    assert.equal(0, result.code, result.err)
    assert.same(rows "whole", rows "a")
    -- the script is gone: as the run has kept it
    os.remove(at "script.lua")
    result = resume(at "a", "--iterations", "13", "--fail", "0")
    assert.equal(0, result.code, result.err)
    assert.equal(13, #rows "a")
  end)

  it("warns of options that are others than before, in place and in a fork", function()
    trained("a", "--iterations", "2", "--seed", "1")
    -- Goes on up to an iteration with the same seed and these options; returns what is printed.
    local function goes_on(iterations, ...)
      local result = process.cqlua { at "script.lua", "--out", at "a", "--resume", "--iterations", iterations, ... }
      assert.equal(0, result.code, result.err)
      return result.err
    end
    local same = goes_on("3", "--seed", "1", "--threads", "1", "--goal", "0.45020", "--budget", "1", "--render", "no")
    assert.is_nil(same:find("other options", 1, true), same)
    has(goes_on("4", "--goal", "0.46"), "the run in " .. at "a" .. " goes on with other options: goal was 0.4502 and is "
      .. "0.46, seed was 1 and is 0; losses before and after, and the best of both, are of one objective only if")
    has(goes_on "5", "goes on with other options: goal was 0.46 and is 0.4502;")
    local result = resume(at "a", "--as", at "b", "--iterations", "6", "--goal", "0.47")
    assert.equal(0, result.code, result.err)
    has(result.err, "goes on with other options: goal was 0.4502 and is 0.47;")
  end)

  it("warns of no option whose default is not known yet, nor of the memory that trials share", function()
    local late = process.write(at "late.lua", [[
local cq = require "cq"
local run = cq.Run.open { iterations = cq.option("iterations", 1) }
local saved = run.saved
for i = run.done + 1, run.iterations do run:record { loss = cq.option("weight", 1) * cq.option("seed", 5) } end
run:finish(saved and saved.params or {}, {})
]])
    -- Makes iterations up to this one; returns what is printed.
    local function goes_on(iterations, ...)
      local result = process.cqlua { late, "--out", at "a", "--iterations", iterations, ... }
      assert.equal(0, result.code, result.err)
      return result.err
    end
    goes_on "1"
    local text = process.read(at "a/manifest.json")
    process.write(at "a/manifest.json", (text:gsub('"options": {', '"options": {"share": 2, ')))
    for k, words in ipairs { { "--weight", "1" }, { "--weight", "1.0" }, {}, { "--seed", "0" } } do
      local said = goes_on(k + 1, "--resume", unpack(words))
      assert.is_nil(said:find("other options", 1, true), said)
    end
    goes_on("6", "--resume", "--weight", "1")
    has(goes_on("7", "--resume", "--weight", "2"), "goes on with other options: weight was 1 and is 2;")
  end)

  it("says what was changed in the script or its modules since the parent was made", function()
    process.write(at "target.lua", "return 0.4502")
    process.write(at "script.lua", (SCRIPT:gsub('cq.option%("goal", 0.4502%)', 'require "target"')))
    assert.equal(0, process.cqlua({ at "script.lua", "--out", at "a" }).code)
    local function fork(name)
      local result = resume(at "a", "--at", "4", "--as", at(name))
      assert.equal(0, result.code, result.err)
      return result.err
    end
    assert.is_nil(fork("b"):find("was changed", 1, true))
    process.write(at "target.lua", "return 0.46")
    process.write(at "script.lua", (process.read(at "script.lua"):gsub("steps = 8", "steps = 4 + 4")))
    local said = fork "c"
    has(said, "the script was changed since iteration 4 of the run in " .. at "c" .. ': line 5 was "world = ',
      "target.lua was changed since iteration 4 of the run in " .. at "c"
        .. ': line 1 was "return 0.4502" and is "return 0.46"')
    -- the script and its module are gone: as the run has kept them
    os.remove(at "script.lua")
    os.remove(at "target.lua")
    assert.is_nil(fork("d"):find("was changed", 1, true))
    assert.equal("return 0.4502", process.read(at "d/sources/target.lua"))
    assert.same(rows "b", rows "d")
  end)

  it("goes on as often as wanted with the copies of a script that is gone, and of its modules", function()
    process.write(at "target.lua", "return 0.4502")
    process.write(at "script.lua", (SCRIPT:gsub('cq.option%("goal", 0.4502%)', 'require "target"')))
    assert.equal(0, process.cqlua({ at "script.lua", "--out", at "a", "--iterations", "2" }).code)
    os.remove(at "script.lua")
    os.remove(at "target.lua")
    local function goes_on(...)
      local result = process.cqlua { ... }
      assert.equal(0, result.code, result.err)
      assert.is_nil(result.err:find("was changed", 1, true), result.err)
    end
    goes_on("resume", at "a", "--iterations", "3")
    goes_on("resume", at "a", "--iterations", "4")
    goes_on("resume", at "a", "--as", at "b", "--iterations", "5")
    goes_on("resume", at "b", "--iterations", "6")
    goes_on("robust", at "b", "--draws", "2")
    goes_on(at "b/script.lua", "--out", at "c", "--iterations", "2")
    assert.equal(6, #rows "b")
    -- a fork whose script fails can be gone on with when the script is mended
    local text = process.read(at "a/script.lua")
    process.write(at "a/script.lua", 'error "slip"\n' .. text)
    assert.equal(1, resume(at "a", "--as", at "d", "--iterations", "5").code)
    process.write(at "a/script.lua", text)
    assert.equal(0, resume(at "d").code)
    assert.equal(5, #rows "d")
  end)

  it("says what is wrong, and leaves the parent as it was", function()
    trained "a"
    local before = process.read(at "a/optimizer.bin")
    local function says(result, ...)
      assert.is_true(result.code > 0)
      has(result.err, ...)
    end
    says(resume(at "a", "--at", "5", "--as", at "b"), "has kept no iteration 5; it has 4, 8 and 12, its last\n")
    says(resume(at "a", "--out", at "b"), "resume goes on in the folder of its run, or with --as DIR in that of a fork")
    says(resume(at "a", "--at", "4"), "a fork needs a folder of its own: --as DIR")
    says(resume(at "a", "--at", "4", "--as", at "a"), "has a run already; give --as another folder")
    says(resume(folder, "--as", at "b"), "is no folder of a run: it lacks manifest.json; it has a, script.lua")
    says(resume(at "nothere"), "is no folder of a run: there is nothing of this name")
    says(resume(at "script.lua"), "is no folder of a run: it is a file")
    says(resume(at "a", "--set", "rate=3", "--as", at "b"), "--set takes optimizer.NAME=VALUE, as optimizer.rate=1e-3, got rate=3")
    says(resume(at "a/checkpoints", "--as", at "b"), "it lacks manifest.json; it has 000004.bin")
    says(resume(), "resume takes the folder of one run, got none")
    assert.is_nil(host.kind(at "b"))
    says(resume(at "a", "--set", "optimizer.rat=3", "--as", at "b"), "cq.Optimizer.adam has no rat (did you mean rate?)")
    says(resume(at "a", "--set", "optimizer.rate=-3", "--as", at "b"), "--set optimizer.rate must be", "got -3")
    -- a fork of which nothing was made is no run to be kept
    assert.equal(0, resume(at "a", "--set", "optimizer.rate=0.01", "--as", at "b", "--iterations", "13").code)
    local full = process.cqlua({ "resume", at "a", "--as", at "c" }, { before = "ulimit -f 1;" })
    says(full, "File too large")
    assert.same({}, host.entries(at "c"))
    local text = process.read(at "a/manifest.json")
    process.write(at "a/manifest.json", (text:gsub('"version": "[^"]*"', '"version": "99.1.0"')))
    says(resume(at "a", "--as", at "d"), "was made by cqlua \"99.1.0\", this is " .. host.version,
      "; take a newer program")
    process.write(at "a/manifest.json", text:sub(1, 40))
    says(resume(at "a", "--as", at "d"), "manifest.json is damaged: it is no JSON object")
    for _, case in ipairs {
      { '"started": "[^"]*"', '"started": 5', "started must be a string, got 5" },
      { '"arguments": %[', '"arguments": [7, ', "argument 1 must be a string, got 7" },
      { '"arguments": %[', '"arguments": [null, ', "argument 1 must be a string, got nil" },
      { '"notes": {', '"notes": {"name": 3, ', "notes.name must be a string, got 3" },
    } do
      process.write(at "a/manifest.json", (text:gsub(case[1], case[2])))
      local readers = { { "resume", at "a", "--as", at "d" }, { "compare", at "a", at "b" }, { "plot", at "a" } }
      for _, words in ipairs(readers) do
        says(process.cqlua(words), "manifest.json is damaged: " .. case[3])
      end
    end
    assert.equal(before, process.read(at "a/optimizer.bin"))
    -- a loop of one's own has no optimizer that the program knows
    local own = process.write(at "own.lua", [[
local run = require("cq.run").open { iterations = 1 }
run:record { loss = 1 }
run:finish({}, { kind = "adam" })
]])
    assert.equal(0, process.cqlua({ own, "--out", at "e" }).code)
    says(resume(at "e", "--set", "optimizer.rate=10", "--as", at "f"), "--set is for runs of run:optimize; " .. at "e"
      .. " is another")
    assert.is_nil(host.kind(at "f"))
  end)

  it("says of a trial how its study repeats it", function()
    local study = process.write(at "s.lua", [[
local cq = require "cq"
return cq.Study { name = "s", sampler = "grid", grid = { a = { 1, 2 } }, run = function(point)
  local run = cq.Run.open { iterations = 1 }
  run:record { loss = point.a }
  run:finish({}, {})
  return { loss = point.a }
end }
]])
    local made = process.cqlua { "study", "run", study, "--out", at "s", "--seed", "5", "--more", "2 3" }
    assert.equal(0, made.code, made.err)
    local trial, more = at "s/trials/000002", " '--more=2 3' --seed=5"
    for name, words in pairs { resume = { "--as", at "b" }, robust = {} } do
      local result = process.cqlua { name, trial, unpack(words) }
      assert.equal(1, result.code)
      has(result.err, ("cqlua %s: %s is a trial of a study; cqlua study rerun %s 2 --out %s%s tries it once more")
        :format(name, trial, study, at "s", more))
    end
    -- an earlier program has written no command
    local kept = process.read(trial .. "/trial.json")
    process.write(trial .. "/trial.json", (kept:gsub('"command": "[^"]*", ', "")))
    has(process.cqlua({ "robust", trial }).err, ("; cqlua study rerun %s 2%s tries it once more"):format(study, more))
  end)

  it("goes on with one of several runs of a script, and forks none", function()
    process.write(at "script.lua", (SCRIPT:gsub("keep = ", 'name = "one", keep = ')))
    local result = process.cqlua { at "script.lua", "--out", at "a" }
    assert.equal(0, result.code, result.err)
    result = resume(at "a/one")
    assert.equal(0, result.code, result.err)
    has(result.err, "the run in " .. at "a/one" .. " has made")
    result = resume(at "a/one", "--as", at "b")
    assert.equal(1, result.code)
    has(result.err, 'is "one" of several runs of its script, which would look for the others beside the fork')
    os.rename(at "a/one", at "a/two")
    result = resume(at "a/two")
    assert.equal(1, result.code)
    has(result.err, ('the run of %s has the name "one", by which its script finds it; give the folder that'):format(
      at "a/two"))
    assert.is_nil(host.kind(at "b"))
    assert.is_nil(host.kind(at "a/one/one"))
  end)
end)

describe("cqlua compare", function()
  it("tells what differs, and what came of each", function()
    trained "a"
    process.write(folder .. "/script.lua", (SCRIPT:gsub("hidden = { 4 }", "hidden = { 5 }")))
    assert.equal(0, process.cqlua({ at "script.lua", "--out", at "b", "--rate", "0.01" }).code)
    local result = process.cqlua { "compare", at "a", at "b" }
    assert.equal(0, result.code, result.err)
    local a, b = rows "a", rows "b"
    assert.matches("\n%-%-rate +%- +0%.01\n", result.out)
    assert.matches("\nfinal loss +" .. ("%.6g"):format(a[12].loss):gsub("%-", "%%-") .. " +"
      .. ("%.6g"):format(b[12].loss):gsub("%-", "%%-") .. "\n", result.out)
    has(result.out, "- 6: controller = cq.Controller.mlp { hidden = { 4 } }",
      "+ 6: controller = cq.Controller.mlp { hidden = { 5 } }")
    assert.is_nil(result.out:find "\nversion")
    local lines = {}
    for line in process.cqlua({ "compare", at "a", at "b", "--json" }).out:gmatch "[^\n]+" do
      lines[#lines + 1] = json.decode(line)
    end
    assert.equal("0.01", lines[2]["--rate"])
    assert.equal(2, process.cqlua({ "compare", at "a" }).code)
    has(process.cqlua({ "compare", at "a", folder }).err, "is no folder of a run")
  end)

  it("has the best that the run has kept, of its last stage and within its limits", function()
    -- the first iteration of the first stage has the least loss, and violates the limit of both
    process.write(at "best.lua", [[
      package.path = "./?.lua;" .. package.path
      local cq, scene = require "cq", require "tests.scene"
      local run = cq.Experiment {
        world = scene.world(scene.robot()), steps = 2, controller = cq.Controller.open_loop { steps = 2, init = 0 },
        objective = { effort = function(u) return u:square():mean() end },
        constraints = { { name = "push", at_most = -0.2, of = function(p) return -p.controller.u:mean() end } },
        optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 }, penalty = 20 },
      }
      run:optimize { plan = cq.Plan { { name = "one", iterations = 30 }, { name = "two", iterations = 30 } } }
      print(("%.6g"):format(run.best.loss), run.best.iteration)
    ]])
    local result = process.cqlua { at "best.lua", "--out", at "b" }
    assert.equal(0, result.code, result.err)
    local loss, iteration = result.out:match "(%S+)%s+(%d+)"
    local best = rows("b")[tonumber(iteration)]
    assert.equal("two", best.stage)
    has(process.cqlua({ "plot", at "b" }).out, (", best %s of iteration %d\n"):format(loss, best.iteration))
    local told = json.decode(process.cqlua({ "compare", at "b", at "b", "--json" }).out:match "[^\n]+")
    assert.equal(loss, ("%.6g"):format(told["best loss"]))
    assert.equal(best.loss, told["best loss"])
    assert.equal(best.iteration, told["of iteration"])
    assert.is_nil(told["fork of"])
  end)

  it("has the least loss of a learner's history, whose saved.bin is that of an earlier end", function()
    local path = process.write(at "learn.lua", [[
      package.path = "./?.lua;" .. package.path
      local cq, scene = require "cq", require "tests.scene"
      local robot = scene.robot()
      local env = cq.Env { world = scene.world(robot), observer = cq.Observer.centroid { groups = robot.groups },
        steps = 4, scenes = 2, reward = function(_, _, next) return next:center(robot):slice(1, 1, -1):flatten() end }
      cq.Learner.ppo({ env = env, steps = 16 * cq.option("updates", 2), batch = 16, minibatches = 2, epochs = 1,
        hidden = { 4 } }):train()
    ]])
    assert.equal(0, process.cqlua({ path, "--out", at "a" }).code)
    local file = process.read(at "a/saved.bin")
    assert.equal(0, process.cqlua({ path, "--out", at "a", "--resume", "--updates", "5" }).code)
    process.write(at "a/saved.bin", file)                        -- as if it had been killed before its end
    local best
    for _, row in ipairs(rows "a") do
      if not best or row.loss < best.loss then best = row end
    end
    local result = process.cqlua { "plot", at "a" }
    assert.equal("", (result.err:gsub("[^\n]*loss.png\n", "")))
    has(result.out, ("iteration 5, loss %.6g, best %.6g of iteration %d\n"):format(rows("a")[5].loss, best.loss,
      best.iteration))
  end)

  it("has the least loss of the history where saved.bin is damaged, or of a newer program", function()
    trained "a"
    local file, best = process.read(at "a/saved.bin"), process.cqlua({ "plot", at "a" }).out
    local data = cq.load(at "a/saved.bin").data
    data.version = 99
    cq.save(at "newer.bin", data)
    local newer = process.read(at "newer.bin")
    for words, bytes in pairs { ["is cut short"] = file:sub(1, #file / 2), ["version 99"] = newer } do
      process.write(at "a/saved.bin", bytes)
      local result = process.cqlua { "plot", at "a" }
      assert.equal(0, result.code, result.err)
      assert.equal(best, result.out)
      has(result.err, "warning: ", words, "; the best of " .. at "a" .. " is that of the least loss in its history.csv")
      result = process.cqlua { "compare", at "a", at "a", "--report", at "both.html" }
      assert.equal(0, result.code, result.err)
    end
  end)

  it("takes times for those of UTC, also where clocks are put forward meanwhile", function()
    for _, name in ipairs { "a", "b" } do
      host.make_folder(at(name))
      process.write(at(name .. "/manifest.json"), json.encode(name == "a"
        and { started = "2026-03-29T01:30:00Z", finished = "2026-03-29T03:30:00Z" }
        or { started = "2028-02-27T23:00:00Z", finished = "2028-03-01T01:00:01Z" }))
    end
    local result = process.cqlua({ "compare", at "a", at "b" }, { before = "TZ=CET-1CEST,M3.5.0,M10.5.0/3" })
    assert.matches("\ntime +2:00:00 +50:00:01\n", result.out)
  end)
end)

describe("cqlua plot", function()
  it("draws a run that is at work, its last line torn", function()
    trained "a"
    local history, about = process.read(at "a/history.csv"), process.read(at "a/manifest.json")
    process.write(at "a/history.csv", history .. "13,-0.4")
    process.write(at "a/manifest.json", (about:gsub('"status": "finished", ', "")))
    local lock = assert(host.lock(at "a"))
    local result = process.cqlua { "plot", at "a" }
    host.unlock(lock)
    assert.equal(0, result.code, result.err)
    has(result.out, "at work, iteration 12, loss ", ", best ")
    -- nobody holds its folder
    has(process.cqlua({ "plot", at "a" }).out, "killed, iteration 12, loss ", ", best ")
    assert.equal("\137PNG", process.read(at "a/loss.png"):sub(1, 4))
    result = process.cqlua { "plot", at "a", "--column", "gradient", "--log-y", "--file", at "g.png" }
    assert.equal(0, result.code, result.err)
    assert.is_truthy(host.kind(at "g.png"))
    assert.equal(0, process.cqlua({ "plot", at "a", "--out", at "h.png" }).code)
    assert.is_truthy(host.kind(at "h.png"))
    has(process.cqlua({ "plot", at "a", "--out", at "h.png", "--file", at "g.png" }).err, "takes --file or --out")
    has(process.cqlua({ "plot", at "a", "--out", at "h" }).err, "plot --out must end in .png, got ")
    os.remove(at "a/loss.png")
    host.make_folder(at "a/loss.png")
    has(process.cqlua({ "plot", at "a" }).err,
      "cqlua plot: " .. at "a/loss.png" .. " cannot be written: it is a folder; --out plot.png writes it elsewhere")
    has(process.cqlua({ "plot", at "a", "--column", "gradent" }).err,
      "has no column gradent (did you mean gradient?); it has ", ", gradient, ")
    has(process.cqlua({ "plot", folder }).err, "is no folder of a run")
    has(process.cqlua({ "plot", at "a", "--file", folder .. "/no/a.png" }).err, "cannot be")
  end)

  it("knows losses that are no numbers, and lines without one", function()
    trained "a"
    os.remove(at "a/saved.bin")
    -- The run's history is this, and what cqlua plot says of it.
    local function says(lines, said)
      process.write(at "a/history.csv", "iteration,loss,width\n" .. lines)
      local result = process.cqlua { "plot", at "a" }
      has(result.out .. result.err, said)
    end
    says("1,nan,\n2,0.5,\n3,0.7,\n", "iteration 3, loss 0.7, best 0.5 of iteration 2\n")
    says("1,0.5,\n2,,7\n", "iteration 2, best 0.5 of iteration 1\n")
    says("1,nan,\n2,nan,\n", "cqlua plot: the history of " .. at "a" .. " has no finite number in its column loss")
  end)
end)

describe("the progress line", function()
  it("has the best so far and the norm of the gradient", function()
    local result = process.cqlua { script(), "--out", at "a" }
    local last = rows("a")[12]
    has(result.err, ("12/12  loss %.6g  best %.6g  gradient %.3g"):format(last.loss, last.loss, last.gradient))
  end)
end)
