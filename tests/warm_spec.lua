-- warm: run:load and --from, parameters of an earlier run in this script's experiment.
local cq = require "cq"
local T = require "cq.tensor"
local message = require "cq.base.message"
local plans = require "tests.plans"
local process = require "tests.process"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local folder, heard, note, warn
before_each(function()
  folder, heard, note, warn = scratch.open(), {}, message.note, message.warn
  message.note = function(...) heard[#heard + 1] = string.format(...) end
  message.warn = message.note
end)
after_each(function()
  message.note, message.warn = note, warn
  scratch.close()
end)

local function experiment(changes, robot, options)
  local world = scene.world(robot or scene.robot(), options)
  local fields = {
    world = world, steps = 15, controller = cq.Controller.mlp { hidden = { 8 }, activation = "tanh" },
    observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true },
    optimizer = cq.Optimizer.adam { rate = 0.05 },
    objective = function(s) return -s:velocity("trunk")[2] end,
  }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return cq.Experiment(fields)
end

local function train(changes)
  local run = experiment(changes)
  run:optimize { iterations = 3, folder = folder .. "/a" }
  heard = {}
  return run
end

local function was_told(part)
  says(table.concat(heard, "\n"), part)
end

describe("run:load", function()
  it("gives what the run had, to evaluate, to draw and to go on from", function()
    local before = train()
    local run = experiment { controller = cq.Controller.mlp { hidden = { 8 }, activation = "tanh", seed = 9 } }
    assert.is_true(run:evaluate().loss ~= before.best.loss)
    local saved = run:load(folder .. "/a")
    assert.equal(before.best.loss, saved.result.loss)
    assert.equal(before.best.loss, run:evaluate().loss)
    assert.equal(0, #heard, heard[1])
    run:render(folder .. "/a.png", { width = 100 })
    run:optimize { iterations = 1, folder = folder .. "/b" }
    assert.equal(before.best.loss, cq.Run.read_history(folder .. "/b")[1].loss)
  end)

  it("tells how worlds differ, and what is trained here or there alone", function()
    train { trainable = { young = { init = 9, min = 1, max = 30 }, friction = { min = 0, max = 1 } } }
    local run = experiment({ steps = 20, trainable = { poisson = { min = 0.1, max = 0.4, init = 0.3 },
      young = { init = 4, min = 1, max = 5 } } }, nil, { substeps = 4 })
    run:load(folder .. "/a")
    was_told "control steps was 15 and is 20, substeps was 3 and is 4"
    was_told "has no robot.poisson, which begins as the script says"
    was_told "has world.friction too, which this experiment does not train"
    was_told "1 of the 1 number in robot.young of"
    was_told "is outside of the bounds here, 1 to 5, and is moved there"
    assert.equal(5, run.params.robot.young:item())
    assert.equal(0.3, run.params.robot.poisson:item())
  end)

  it("takes values of particles from the nearest ones", function()
    local before = train { trainable = { young = { per = "particle", min = 1, max = 30 } } }
    local fine = experiment({ trainable = { young = { per = "particle", min = 1, max = 30 } } },
      scene.robot { count = 8 })
    fine:load(folder .. "/a")
    local coarse, finer = before.best.params.robot.young, fine.params.robot.young
    assert.equal(128, finer.count)
    assert.equal(coarse:get(1), finer:get(1))
    assert.equal(coarse:get(32), finer:get(128))
  end)

  it("refuses other networks, signals, groups and shapes, with both", function()
    train()
    local function load(changes, robot)
      return sentence(function() experiment(changes, robot):load(folder .. "/a") end)
    end
    says(load { controller = cq.Controller.mlp { hidden = { 8 }, activation = "relu" } },
      "has the controller mlp, activation tanh, hidden {8}, this experiment has mlp, activation relu, hidden {8}")
    local swapped = cq.Actuator.pressure { groups = { "trunk", "foot" }, axis = "y", max = 2 }
    says(load(nil, scene.robot { actuators = swapped }),
      "has the signals foot, trunk, this experiment has trunk, foot")
    says(load { observer = cq.Observer.centroid { groups = { "foot", "trunk" } } },
      "has the observer centroid, acceleration false, groups {foot, trunk}, position true, velocity true")
    says(load { controller = function() return T.zeros { 2 } end, trainable = { young = { init = 9 } } },
      "this experiment has the script's own")
    says(load { controller = false, observer = false, trainable = { young = { init = 9 } } },
      "has none of the parameters of this experiment")
    says(sentence(function() experiment():load(folder) end), "it lacks saved.bin; it has a")
  end)

  it("names the stages before an extracted body, from which another block takes its design", function()
    local run = cq.Experiment(plans.block)
    for p = 1, 100 do run.params.design.density:set(p <= 50 and 0.5 or -0.5, p) end
    plans.optimize(run, cq.Plan { optimizer = plans.adam(), { name = "soft", iterations = 1 },
      { name = "pulses", iterations = 1, body = "extracted" } }, folder)
    local other = cq.Experiment(function() return plans.block { coarsen = 2 } end)
    says(sentence(function() other:load(folder) end), "design.density of shape {100}, this experiment of shape {25}",
      "that run has stopped with an extracted body, which does not say where its void was",
      ("take a stage before that, %s/stages/NAME"):format(folder))
    other:load(folder .. "/stages/soft")
    assert.is_true(other.params.design.sign:equal(cq.load(folder .. "/stages/soft/saved.bin").parameters.design.sign))
  end)

  it("reads parameters of the user's own file", function()
    local run = experiment()
    cq.save(folder .. "/w.bin", { controller = { b1 = T.full({ 8 }, 0.5) } })
    run:load(folder .. "/w.bin")
    assert.equal(0.5, run.params.controller.b1:get(3))
    was_told "has no controller.b2, controller.w1, controller.w2, which begins"
  end)
end)

describe("--from", function()
  local script = [[
    local cq = require "cq"
    local scene = require "tests.scene"
    local run = cq.Experiment { world = scene.world(scene.robot()), steps = cq.option("steps", 15),
      controller = cq.Controller.mlp { hidden = { 8 } }, observer = cq.Observer.centroid { groups = { "foot" } },
      optimizer = cq.Optimizer.adam { rate = 0.05 }, objective = function(s) return -s:velocity("trunk")[2] end }
    run:optimize { iterations = cq.option("iterations", 3) }
    print(("%.17g"):format(run.best.loss))
  ]]

  it("begins every experiment with the parameters of a run, also in its own folder", function()
    local path, out = process.write(folder .. "/walk.lua", script), folder .. "/walk"
    local function run(...) return process.cqlua { "--quiet", "--out", out, path, ... } end
    local first = run()
    assert.equal(0, first.code, first.err)
    -- another problem says so
    local refused = run("--resume", "--steps", "20", "--iterations", "5")
    says(refused.err, "control steps was 15 and is 20")
    says(run("--resume", "--from", out, "--iterations", "0").err,
      ("--from %s is not used: the run goes on"):format(out))
    says(refused.err, ("start anew from its parameters, with --from %s in the place of --resume"):format(out))
    local again = run("--from", out, "--iterations", "0")
    assert.equal(first.out, again.out, again.err)
    local anew = run("--from", out, "--steps", "20", "--iterations", "5")
    assert.equal(0, anew.code, anew.err)
    assert.equal(5, #cq.Run.read_history(out))
    local missing = run("--from", folder .. "/none")
    assert.equal(1, missing.code)
    says(missing.err, "No such file")
  end)
end)
