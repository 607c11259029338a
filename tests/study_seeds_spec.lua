-- study of seeds: a script that trains one thing, run with several seeds by cqlua study run walk.lua --seeds N.
local host = require "cq.host"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- a command of cqlua study on a script of the user's
local function study(command, text, ...)
  local path = process.write(folder .. "/walk.lua", text)
  return process.cqlua { "study", command, path, "--out", folder .. "/out", "--quiet", ... }
end

local squares = [[
  local cq = require "cq"
  local seed = cq.option("seed", 0)
  print("seed", seed, cq.option("out", ""))
  if seed == cq.option("broken", 0) then error "this seed is broken" end
  local run = cq.Run.open { iterations = 3 }
  for i = 1, 3 do run:record { loss = seed / i } end
  return { loss = (seed - 2.2) ^ 2 + cq.option("more", 0), twice = 2 * seed }
]]

local function trial(number, name) return process.read(("%s/out/trials/%06d/%s"):format(folder, number, name)) end

describe("a study of seeds", function()
  it("is not begun by a command that lacks the number of seeds", function()
    for _, command in ipairs { "status", "show", "run", "export" } do
      local result = study(command, squares, "--seed", "1", command == "show" and "2" or nil)
      assert.equal(1, result.code)
      assert(result.err:find("walk.lua:5: cqlua study: the script trains here and has returned no study; give --seeds N",
        1, true), result.err)
    end
    assert.is_nil(host.kind(folder .. "/out"))
  end)

  it("keeps what each seed gave, and tells mean, median and range", function()
    local result = study("run", squares, "--seeds", "3")
    assert(result.code == 0, result.err)
    assert.equal("loss: mean 0.7067, median 0.64, 90 % from 0.1 to 1.36, 3 seeds\n"
      .. "twice: mean 4, median 4, 90 % from 2.2 to 5.8, 3 seeds\n", result.out)
    -- each seed is alone, in a folder of its own
    assert.equal(("seed\t3\t%s/out/trials/000003\n"):format(folder), trial(3, "output.txt"))
    assert(trial(3, "trial.json"):find('"seed": 3', 1, true))
    local status = study("status", squares, "--seeds", "3").out
    assert(status:find("best loss 0.04 (trial 2)\n  seed 2\nloss: mean 0.7067", 1, true), status)
    assert(study("show", squares, "best", "--seeds", "3").out:find("point 2, replicate 1, seed 2\n", 1, true))
    assert.equal(0, study("plot", squares, "--seeds", "3").code)
    assert(process.read(folder .. "/out/plots/bands.png"):find "^\137PNG")       -- of the losses of their runs
  end)

  it("takes more seeds later, and begins with --seed", function()
    assert.equal(0, study("run", squares, "--seeds", "2", "--seed", "7").code)
    local first = trial(1, "trial.json")
    assert(first:find('"seed": 7', 1, true), first)
    local status = study("status", squares, "--seeds", "4", "--seed", "7").out
    assert(status:find("walk-seeds: 2 points", 1, true), status)
    assert(status:find("\nthe script has 2 points more now, which cqlua study run with these options begins\n", 1, true),
      status)
    local result = study("run", squares, "--seeds", "4", "--seed", "7")
    assert(result.out:find(", 4 seeds\n", 1, true), result.out .. result.err)
    assert.equal(first, trial(1, "trial.json"))                                   -- it was not run again
    assert(trial(4, "trial.json"):find('"seed": 10', 1, true))
    status = study("status", squares, "--seeds", "3", "--seed", "7").out
    assert(status:find("\n4/4  done 4\n", 1, true) and not status:find("more now", 1, true), status)
    local fewer = study("run", squares, "--seeds", "3", "--seed", "7")
    assert(fewer.code == 1 and fewer.err:find("was begun otherwise: ", 1, true), fewer.err)
    local other = study("run", squares, "--seeds", "4", "--seed", "8")
    assert(other.code == 1 and other.err:find("was begun otherwise: ", 1, true), other.err)
  end)

  it("leaves the trials of more seeds, which another process adds meanwhile, to that process", function()
    local grows = [[
      if require("cq").option("seed", 0) == 1 then
        local store = require("cq.study.store").open(require("cq").option("out", "") .. "/../../study.sqlite")
        store:fill(4)
        store:close()
      end
    ]]
    local result = study("run", grows .. squares, "--seeds", "2")
    assert.equal(0, result.code, result.err)
    assert(result.out:find(", 2 seeds\n", 1, true), result.out)
    assert.is_nil(trial(3, "trial.json"))
    assert.equal(0, study("run", grows .. squares, "--seeds", "4").code)
    assert(trial(4, "trial.json"):find('"seed": 4', 1, true))
  end)

  it("counts what changed: a script and its options", function()
    assert.equal(0, study("run", squares, "--seeds", "2").code)
    local options = study("run", squares, "--seeds", "2", "--more", "1")
    assert(options.code == 1 and options.err:find("the options were changed", 1, true), options.err)
    local text = study("run", squares .. "-- another\n", "--seeds", "2")
    assert(text.code == 1 and text.err:find("the script was changed since the study walk-seeds began", 1, true), text.err)
    process.remove(folder .. "/out")
    local word = "local gain = require 'gain'\n"
    process.write(folder .. "/gain.lua", "return 1\n")
    assert.equal(0, study("run", word .. squares, "--seeds", "1").code)
    process.write(folder .. "/gain.lua", "return 2\n")
    local module = study("run", word .. squares, "--seeds", "2")
    assert(module.code == 1 and module.err:find("gain.lua, which the script loads, was changed", 1, true), module.err)
  end)

  it("takes a seed that fails, or gives nan, for a failed one", function()
    local result = study("run", squares, "--seeds", "3", "--broken", "2")
    assert.equal(0, result.code)
    assert(result.err:find("1 failed and 0 lost", 1, true) or result.err == "", result.err)
    assert(result.out:find(", 2 seeds\n", 1, true), result.out)
    assert(trial(2, "output.txt"):find("this seed is broken", 1, true))
    process.remove(folder .. "/out")
    study("run", "return { loss = require('cq').option('seed', 0) == 2 and 0 / 0 or 1 }", "--seeds", "2")
    assert(trial(2, "trial.json"):find("run returned nan for loss, which must be a finite number", 1, true))
  end)

  local training = [[
    local cq = require "cq"
    local robot = cq.Robot { shape = cq.Shape.box { name = "b", size = { 0.2, 0.1 }, count = { 4, 2 } },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = cq.Actuator.isotropic { groups = { "b" }, max = 1 } }
    local world = cq.World { cells = { 16, 16 }, dx = 0.05, dt = 0.01, substeps = 2, robot:at { 0.3, 0.3 } }
    local seed = cq.option("seed", 0)
    local run = cq.Experiment { world = world, steps = 3,
      controller = cq.Controller.open_loop { steps = 3, init = 0.1 * seed },
      objective = function(state) return -state:mean_square_velocity(robot) end,
      optimizer = cq.Optimizer.adam { rate = 0.01 } }
    local told = cq.option("out", "") .. "/../../told"
    run:optimize { iterations = 60, on_iteration = function(i)
      if i == 20 and seed == 2 and not io.open(told) then
        io.open(told, "w"):close()
        os.execute("kill -TERM $PPID")
      end
    end }
  ]]

  it("goes on with a training that was stopped, and takes its loss where nothing is returned", function()
    local whole = study("run", (training:gsub("os%.execute.-\n", "\n")), "--seeds", "2")
    assert(whole.code == 0, whole.err)
    local history = trial(2, "history.csv")
    process.remove(folder .. "/out")
    local result = study("run", training, "--seeds", "2")                         -- seed 2 is stopped in iteration 20
    assert(result.code == 0, result.err)
    assert.equal(whole.out, result.out)
    assert(trial(2, "manifest.json"):find('"resumed_at": 20', 1, true), trial(2, "manifest.json"))
    local function losses(text) return (text:gsub("(\n%d+,[^,]*),[^\n]*", "%1")) end     -- times differ
    assert.equal(losses(history), losses(trial(2, "history.csv")))
    local said = trial(2, "output.txt")
    assert(not said:find("warning", 1, true), said)
  end)

  it("ends before any trial has failed where the script returns a study", function()
    local inner = "return require('cq').Study { name = 'a', grid = { x = { 1 } }, run = print }"
    local result = study("run", inner, "--seeds", "3", "--jobs", "2")
    assert.equal(1, result.code)
    assert(result.err:find("the script returns a cq.Study, which is run without --seeds", 1, true), result.err)
    local counts = study("status", inner, "--seeds", "3", "--json").out
    assert(counts:find('"failed": 0', 1, true) and counts:find('"waiting": 3', 1, true), counts)
    assert.equal(1, study("rerun", inner, "2", "--seeds", "3").code)
  end)

  it("warns of seeds that change nothing", function()
    local same = study("run", "return { loss = 0.25 }", "--seeds", "2")
    assert(same.err:find("all seeds gave the same loss, 0.25: nothing in the script is drawn by --seed, or one start of a plan",
      1, true), same.err)
  end)

  it("says what is wrong", function()
    local nothing = study("run", "local x = 1", "--seeds", "1")
    assert.equal(1, nothing.code)
    assert(trial(1, "trial.json"):find("must return its numbers, as return { loss = run.best.loss }, or train one "
      .. "experiment; it returned nothing", 1, true), nothing.err)
    local plain = study("run", "return { loss = 1 }")
    assert(plain.code == 1 and plain.err:find("is run with several seeds by --seeds N", 1, true), plain.err)
    local resumed = study("run", squares, "--seeds", "1", "--resume")
    assert.equal(2, resumed.code)
    assert(resumed.err:find("--resume is for runs; a study goes on with the command that began it", 1, true), resumed.err)
    local none = study("run", squares, "--seeds", "0")
    assert(none.code == 2 and none.err:find("--seeds must be", 1, true), none.err)
  end)
end)
