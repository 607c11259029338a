-- study: what cqlua study does with a script, as a user meets it: states, going on, pruning, tables, plots, and wrong
-- use.
local host = require "cq.host"
local image = require "cq.base.image"
local json = require "cq.base.json"
local process = require "tests.process"
local has = require("tests.sentence").says
local cqlua = process.cqlua

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function script(content) return process.write(folder .. "/s.lua", "local cq = require \"cq\"\n" .. content) end

-- cqlua study ACTION s.lua ..., in the test's folder
local function study(action, ...)
  return cqlua { "study", action, folder .. "/s.lua", "--out", folder .. "/out", ... }
end

local function fine(result)
  assert(result.code == 0, result.err .. result.out)
  return result.out
end

-- the table of a study as a list of rows by name
local function rows_of()
  local rows, names = {}, nil
  for line in fine(study "export"):gmatch "[^\n]+" do
    local cells, row = {}, {}
    -- a sentence may hold commas, and stands between quotes then
    line = line:gsub('"(.-)"$', function(sentence) return (sentence:gsub(",", ";")) end)
    for cell in (line .. ","):gmatch "([^,]*)," do cells[#cells + 1] = cell end
    if names then
      for k, name in ipairs(names) do row[name] = cells[k] end
      rows[#rows + 1] = row
    end
    names = names or cells
  end
  return rows
end

local function count(rows, state)
  local n = 0
  for _, row in ipairs(rows) do n = n + (row.state == state and 1 or 0) end
  return n
end

local plain = [[
return cq.Study {
  name = "plain", seed = 4, repeats = 2, minimize = "loss",
  sampler = cq.option("sampler", "sobol"), trials = cq.option("trials", 4),
  process = "job", space = { x = cq.Space.uniform(-1, 1), y = cq.Space.log(1e-2, 1e2) },
  run = function(p, trial)
    if trial.number == cq.option("fails", 0) then error "it fell over" end
    return { loss = p.x ^ 2 + math.log(p.y) ^ 2 + trial.seed, own = trial.seed, path = { 3, 2, 1 } }
  end,
}]]

describe("a study", function()
  it("tries every point with every seed, and keeps numbers and curves", function()
    script(plain)
    local result = study("run", "--jobs", "2")
    fine(result)
    has(result.err, "8/8  done 8")
    local rows = rows_of()
    assert.equal(8, #rows)
    for k, row in ipairs(rows) do
      assert.equal(tostring(k), row.trial)
      assert.equal("done", row.state)
      assert.equal(tostring(4 + (k - 1) % 2), row.seed)
      assert.equal(rows[k - (k - 1) % 2].x, row.x)
    end
    assert.are_not.equal(rows[1].x, rows[3].x)
    has(fine(study("export", "--curves")), "8,path,3,1\n")
    local said = fine(study "status")
    has(said, "8/8  done 8")
    has(said, "mean of 2")
    assert.equal(8, json.decode(fine(study("status", "--json"))).done)
  end)

  it("leaves a folder for each trial, with its point, its history and what it printed", function()
    script [[return cq.Study { name = "a", grid = { gait = { "trot", "hop" } }, run = function(p, trial)
      print("as a " .. p.gait)
      for i = 1, 3 do trial.report(i, { loss = 1 / i, height = i }) end
      return 0.5
    end }]]
    fine(study "run")
    local at = folder .. "/out/trials/000002/"
    assert.equal("as a hop\n", process.read(at .. "output.txt"))
    assert.equal("iteration,loss,height\n1,1,1\n2,0.5,2\n3,0.333333333333333,3\n",
      (process.read(at .. "history.csv"):gsub("33+%d*", "333333333333333")))
    local manifest = json.decode(process.read(at .. "trial.json"))
    assert.equal("hop", manifest.point.gait)
    assert.equal(0.5, manifest.result.loss)
    assert.equal("done", manifest.state)
  end)

  it("shows and draws the best, from what it has found and with a policy of the script's own", function()
    script [[
      local scene = require "tests.scene"
      return cq.Study { name = "gait", seed = 1, repeats = 2, minimize = "loss",
        grid = { rate = { 0.01, 0.1 }, net = { "tanh", "relu" } }, run = function(p, trial)
          local run = cq.Experiment { world = scene.world(scene.robot()), steps = 5,
            observer = function(state) return state:center "foot" end,
            controller = cq.Controller.mlp { hidden = { 4 }, activation = p.net },
            objective = function(state) return -state:velocity("trunk")[2] end,
            optimizer = cq.Optimizer.adam { rate = p.rate } }
          run:optimize { iterations = 3, on_iteration = trial.report }
                    return { loss = run.best.loss }
        end }]]
    fine(study "run")
    local status = fine(study "status")
    local best = status:match "mean of 2, the best of them trial (%d+)"
    assert.is_truthy(best, status)
    local shown = fine(study("show", "best"))
    has(shown, ("trial %s: done"):format(best))
    local at = ("%s/out/trials/%06d"):format(folder, best)
    local manifest, before = json.decode(process.read(at .. "/trial.json")), process.read(at .. "/history.csv")
    assert.equal("number", type(manifest.point.rate))
    assert.is_nil(manifest.numbers)
    local drawing = study("render", "best")
    local drawn = fine(drawing)
    assert.is_nil(drawing.err:find("changed", 1, true), drawing.err)
    has(drawn, at .. "/trial.mp4")
    local otherwise = (" since the study gait began: trial %s may move otherwise than it did"):format(best)
    has(study("render", best, "--more", "1").err, "the options were changed from", otherwise)
    process.write(folder .. "/s.lua", process.read(folder .. "/s.lua") .. "\n")
    has(study("render", best).err, "the script was changed" .. otherwise)
    assert.equal("file", host.kind(at .. "/trial.mp4"))
    -- nothing was trained again, and nothing moved away
    assert.equal(before, process.read(at .. "/history.csv"))
    assert.is_nil(host.kind(at .. "-earlier-1"))
    has(study("render", "99").err, "99")
    has(fine(cqlua { "help", "cq.Trial" }), "what cq.Run and run:optimize write goes here")
  end)

  it("says what failed, goes on with the others, and tries them again when asked", function()
    script(plain)
    local result = study("run", "--fails", "3")
    fine(result)
    has(result.err, "trial 3 failed: ")
    has(result.err, "it fell over")
    assert.equal(1, count(rows_of(), "failed"))
    has(fine(study "status"), "trial 3 failed")
    has(fine(study("show", "3")), "cqlua study rerun")
    local other_order = cqlua { "study", "show", "3", folder .. "/s.lua", "--out", folder .. "/out" }
    assert.equal(fine(study("show", "3")), fine(other_order))
    local alone = study("rerun", "3", "--fails", "3")
    assert.equal(1, alone.code)
    has(alone.out, "it fell over")
    has(fine(study("rerun", "4", "--fails", "3")), 'trial 4: done {"loss":')
    has(fine(study("retry", "--state", "failed,lost")),
      ("1 trial will be tried again by cqlua study run %s/s.lua --out %s/out --fails=3\n"):format(folder, folder))
    fine(study("run", "--go-on"))
    assert.equal(8, count(rows_of(), "done"))
  end)

  it("does not mix results of two texts of a module that the script loads", function()
    process.write(folder .. "/offset.lua", "return 1")
    script('local offset = require "offset"\n' .. plain:gsub("loss = p", "loss = offset + p"))
    fine(study "run")
    process.write(folder .. "/offset.lua", "return 100")
    local refused = study("run", "--trials", "6")
    assert.equal(1, refused.code)
    has(refused.err, "offset.lua, which the script loads, was changed since the study plain began. --go-on lets")
    has(study("rerun", "2").err, "offset.lua, which the script loads, was changed since the study plain began: trial 2 may")
    fine(study("run", "--go-on", "--trials", "6"))
    assert.equal(12, count(rows_of(), "done"))
  end)

  it("goes on with more trials, and says what was changed otherwise", function()
    script(plain)
    fine(study "run")
    has(study("run", "--trials", "6").err, "were changed from {} to {\"trials\": \"6\"}")
    fine(study("run", "--trials", "6", "--go-on"))
    assert.equal(12, count(rows_of(), "done"))
    local refused = study("run", "--sampler", "random", "--trials", "6")
    assert.equal(1, refused.code)
    has(refused.err, 'sampler was "sobol" and is "random"')
    has(refused.err, "--force-new begins anew and keeps what is there in earlier-1;")
    script((plain:gsub("trial.seed, own", "2 * trial.seed, own")))
    has(study("run", "--trials", "6").err, "was changed since the study plain began")
    fine(study("run", "--go-on", "--trials", "6"))
    fine(study("run", "--force-new"))
    assert.equal("folder", host.kind(folder .. "/out/earlier-1/trials"))
    assert.equal(8, count(rows_of(), "done"))
    has(study("run", "--sampler", "random").err, "keeps what is there in earlier-2;")
  end)

  it("keeps values as values in trial.json, and names the best trial beside the best point", function()
    script [[
    return cq.Study {
      name = "values", repeats = 2,
      grid = { net = { "mlp", "sines" }, width = { 8, 16 }, both = { { 1, 2 } }, flag = { false } },
      run = function(p, trial) return { loss = p.width + trial.seed / 10 + (p.net == "mlp" and 0 or 1) } end,
    }
    ]]
    fine(study("run", "--seed", "3"))
    local kept = json.decode(process.read(folder .. "/out/trials/000007/trial.json"))
    assert.same({ net = "sines", width = 16, both = { 1, 2 }, flag = false }, kept.point)
    assert.is_nil(kept.numbers)
    assert.same({ 3, 1 }, { kept.seed, kept.replicate })
    has(fine(study("status", "--seed", "3")), "best loss 8.35 (point 1, mean of 2, the best of them trial 1)")
  end)

  it("refuses names that are columns of its table", function()
    script [[return cq.Study { name = "a", grid = { x = { 1 } }, run = function(_, trial)
      trial.report(1, { seconds = 1 })
      return 1
    end }]]
    study "run"
    has(rows_of()[1].problem, "trial.report: seconds is a column that the study's table has of its own")
    -- one trial is enough to know it of results
    for returned, said in pairs {
      ["problem = 2"] = "problem is a column", ["state = { 1, 2 }"] = "state is a column",
      ["x = 2"] = "x is a parameter of the study; take another name",
    } do
      script(([[return cq.Study { name = "a", grid = { x = { 1, 2 } }, run = function()
        return { loss = 1, %s }
      end }]]):format(returned))
      local refused = study("run", "--force-new")
      assert.equal(1, refused.code)
      has(refused.err, ("cqlua: %s/s.lua: run returned: %s"):format(folder, said))
      assert.equal(2, count(rows_of(), "waiting"))
      has(study("rerun", "2").out, "trial 2 failed: ")
    end
    script "return cq.Study { name = 'a', minimize = 'x', grid = { x = { 1 } }, run = print }"
    has(study("run", "--force-new").err, "cq.Study: an objective: x is a parameter of the study")
    script "return cq.Study { name = 'a', minimize = 'trial', grid = { x = { 1 } }, run = print }"
    has(study("run", "--force-new").err, "cq.Study: an objective: trial is a column that the study's table has of its own")
    script "return cq.Study { name = 'a', grid = { attempts = { 1 } }, run = print }"
    has(study("run", "--force-new").err, "cq.Study: a parameter: attempts is a column")
    -- a parameter called seed stands in the place of the study's own
    script "return cq.Study { name = 'a', grid = { seed = cq.range(11, 12) }, run = function(p) return p.seed end }"
    fine(study("run", "--force-new"))
    assert.equal("trial,point,replicate,state,seed,loss,step,attempts,seconds,problem",
      study("export").out:match "^[^\n]*")
  end)

  it("keeps numbers that are not finite, of which the objective is none", function()
    script [[return cq.Study { name = "a", grid = { x = { 1, 2 } }, repeats = 2, run = function(p, trial)
      return { loss = p.x, no = 0 / 0, up = math.huge, down = -math.huge, some = trial.replicate == 1 and 0 / 0 or 3 }
    end }]]
    has(fine(study "run"), "some 3, 90 % from 3 to 3; up inf")
    local row = rows_of()[3]
    assert.same({ "2", "nan", "inf", "-inf", "nan" }, { row.loss, row.no, row.up, row.down, row.some })
    has(fine(study("show", "1")), "  down = -inf\n  loss = 1\n  no = nan\n")
    assert.equal("nan", json.decode(process.read(folder .. "/out/trials/000001/trial.json")).result.no)
  end)

  it("exports what cq.csv reads", function()
    script [[return cq.Study { name = "a", grid = { x = { 1, 2, 3 }, net = { "relu" } }, run = function(p)
      if p.x == 2 then error "no" end
      return p.x / 3
    end }]]
    fine(study "run")
    local data = require("cq").csv(process.write(folder .. "/t.csv", fine(study("export", "--state", "done"))))
    assert.same({ { 1, 3 }, { 1 / 3, 1 } }, { data.x:totable(), data.loss:totable() })
    assert.equal(1, count(rows_of(), "failed"))
  end)

  it("exports all digits of a grid's numbers", function()
    script [[return cq.Study { name = "a", grid = { seed = { 12345678901, 12345678902 }, t = { 1700000000.25 } },
      run = function(p, trial) return trial.seed end }]]
    fine(study "run")
    local rows = rows_of()
    assert.same({ "12345678901", "12345678902", "1700000000.25" }, { rows[1].seed, rows[2].seed, rows[1].t })
  end)

  it("takes lists of ten thousand values", function()
    script [[return cq.Study { name = "long", grid = { x = cq.range(1, 10000) }, pruner = cq.Pruner.median {},
      run = function(p) return p.x end }]]
    has(cqlua({ "check", folder .. "/s.lua" }).out, "10000 points")
    local others = {}
    for k = 1, 20000 do others[k] = k end
    assert.is_true(require("cq.study.pruner").median {}:ends(15000, others))
  end)

  it("notices that its folder was removed, and keeps what it knows", function()
    script [[
    return cq.Study {
      name = "gone", grid = { x = { 1, 2, 3, 4 } },
      run = function(p, trial)
        if p.x == 3 then os.execute(("rm -r %s/out"):format(cq.option("folder", ""))) end
        return { loss = p.x + 0.5 }
      end,
    }
    ]]
    local result = study("run", "--folder", folder)
    assert.equal(1, result.code)
    has(result.err, ("the folder %s/out was removed while its study went on; what is known of its trials is in %s/out/study.sqlite again"):format(folder,
      folder))
    local rows = rows_of()
    assert.same({ "1.5", "2.5" }, { rows[1].loss, rows[2].loss })
    script((process.read(folder .. "/s.lua"):gsub('local cq = require "cq"\n', "", 1):gsub("if p.x == 3", "if false")))
    fine(study("run", "--go-on", "--folder", folder))
    assert.equal(4, count(rows_of(), "done"))
  end)

  it("is the same whatever the number of jobs", function()
    script(plain)
    for _, sampler in ipairs { "latin_hypercube", "cma_es" } do
      local tables = {}
      for jobs = 1, 3, 2 do
        fine(study("run", "--sampler", sampler, "--jobs", tostring(jobs), "--trials", "12", "--force-new"))
        local cells = {}
        for k, row in ipairs(rows_of()) do cells[k] = row.x .. row.y .. row.loss end
        tables[#tables + 1] = table.concat(cells, "\n")
      end
      assert.equal(tables[1], tables[2])
    end
  end)

  it("ends trials that fall behind", function()
    script [[return cq.Study { name = "a", maximize = "height", process = "job",
      pruner = cq.Pruner.asha { step = 2, reduction = 2 },
      grid = { best = { 5, 1, 2, 3, 9 } }, run = function(p, trial)
        for i = 1, 8 do trial.report(i, p.best + i) end
        return { height = p.best + 8 }
      end }]]
    fine(study "run")
    local states, steps = {}, {}
    for k, row in ipairs(rows_of()) do states[k], steps[k] = row.state, row.step end
    assert.same({ "done", "pruned", "pruned", "pruned", "done" }, states)
    assert.same({ "8", "2", "2", "4", "8" }, steps)
  end)

  it("compares the loss of a training, the less the better, whatever its objective", function()
    script [[
      local scene = require "tests.scene"
      return cq.Study { name = "a", maximize = "gain", pruner = cq.Pruner.median { trials = 1 },
        grid = { x = { 2, 3, 1 } }, run = function(p, trial)
          local run = cq.Experiment { world = scene.world(scene.robot()), steps = 5,
            observer = function(state) return state:center "foot" end, controller = cq.Controller.linear {},
            objective = function(state) return p.x - 1e-3 * state:velocity("trunk")[2] end,
            optimizer = cq.Optimizer.adam { rate = 1e-3 } }
          run:optimize { iterations = 3, on_iteration = trial.report }
          return { gain = -run.best.loss }
        end }]]
    fine(study "run")
    local states = {}
    for k, row in ipairs(rows_of()) do states[k] = row.state end
    assert.same({ "done", "pruned", "done" }, states)
    assert.matches("\n2,loss,1,3[%d.]*\n3,loss,1,", fine(study("export", "--curves")))
  end)

  it("warns where a pruner had nothing to compare", function()
    for report, warned in pairs { heigth = true, height = false } do
      script(([[return cq.Study { name = "a", maximize = "height", pruner = cq.Pruner.median {},
        grid = { x = { 1, 2 } }, run = function(p, trial)
          trial.report(1, { %s = p.x })
          return { height = p.x }
        end }]]):format(report))
      local result = study("run", "--force-new")
      fine(result)
      local said = result.err:find("had nothing to compare: no trial has reported height at one of its steps", 1, true)
      assert.equal(warned, said ~= nil, result.err)
    end
  end)

  it("gives up a trial whose process is killed too often, and says so", function()
    script [[return cq.Study { name = "a", retries = 1, grid = { n = { 1, 2, 3 } }, run = function(p)
      if p.n == 2 then require("ffi").C.kill(require("ffi").C.getpid(), 9) end
      return p.n
    end }]]
    local result = study("run", "--jobs", "2")
    fine(result)
    local rows = rows_of()
    assert.equal("lost", rows[2].state)
    assert.equal("2", rows[2].attempts)
    has(rows[2].problem, "signal 9")
    assert.equal(2, count(rows, "done"))
  end)

  it("runs trials of the library in their folders, with their seeds", function()
    script [[return cq.Study { name = "a", seed = 7, grid = { rate = { 0.1, 0.2 } }, run = function(p, trial)
      local run = cq.Run.open { iterations = 3 }
      for i = 1, 3 do run:record { iteration = i, loss = p.rate / i } trial.report(i, p.rate / i) end
      run:finish({ w = cq.zeros { 2 } })
      return { loss = p.rate / 3, same = cq.option("seed", 0) == trial.seed and 1 or 0 }
    end }]]
    fine(study "run")
    local rows = rows_of()
    assert.equal("1", rows[2].same)
    has(process.read(folder .. "/out/trials/000002/history.csv"), "iteration,loss\n1,0.2\n")
    assert.equal("file", host.kind(folder .. "/out/trials/000001/params.bin"))
  end)

  it("has a process of its own for each trial, whether or not the script has started threads", function()
    local run = [[
      return cq.Study { name = "a", process = cq.option("process", "trial"), grid = { n = { 1, 2, 3 } },
        run = function(p)
        return { loss = p.n, process = require("ffi").C.getpid(), threads = threads }
      end }]]
    local block = [[
      local block = cq.Robot {
        shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.002 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      }
      cq.World { cells = { 40, 40 }, dx = 0.025, dt = 1e-4, block:at { 0.3, 0.3 } }:rollout { steps = 1 }
      local threads = require("cq.study.process").threads()]]
    for _, case in ipairs { { "local threads = 1" .. run, 3 }, { block .. run, 3 }, { block .. run, 1, "job" } } do
      script(case[1])
      fine(study("run", "--threads", "2", "--force-new", "--process", case[3] or "trial"))
      local seen, count_of, rows = {}, 0, rows_of()
      for _, row in ipairs(rows) do
        count_of = count_of + (seen[row.process] and 0 or 1)
        seen[row.process] = true
        assert(case[1]:find("threads = 1", 1, true) or tonumber(row.threads) > 1, row.threads)
      end
      assert.equal(3, count(rows, "done"))
      assert.equal(case[2], count_of)
    end
  end)

  it("warns of an option that nobody asks for", function()
    script(plain)
    has(study("run", "--trails", "3").err, "did you mean trials?")
  end)

  it("stops when it is told, and goes on", function()
    script [[return cq.Study { name = "a", trials = 6, space = { x = cq.Space.uniform(0, 1) }, run = function(p, trial)
      if trial.number == 2 and not io.open(cq.option("out") .. "/../../../told") then
        io.open(cq.option("out") .. "/../../../told", "w"):close()
        local base = require("cq.study.store").open(cq.option("out") .. "/../../study.sqlite")
        base:set_flag("stop", "now")
        base:close()
        require("cq.study.process").poll({}, 1.2)
      end
      return p.x
    end }]]
    has(study("run").err, "stopped; the same command goes on")
    local left = 6 - count(rows_of(), "done")
    assert(left >= 1 and left < 6, left)
    fine(study "run")
    assert.equal(6, count(rows_of(), "done"))
  end)

  it("gives back what was running when it is interrupted", function()
    script [[return cq.Study { name = "a", trials = 3, space = { x = cq.Space.uniform(0, 1) }, run = function(p, trial)
      if not io.open(cq.option("out") .. "/../../../told") then
        io.open(cq.option("out") .. "/../../../told", "w"):close()
        require("cq.study.process").poll({}, 20)
      end
      return p.x
    end }]]
    local words = { "study", "run", folder .. "/s.lua", "--out", folder .. "/out" }
    local result = cqlua(words, { after = ("</dev/null & p=$!; while [ ! -e %s/told ]; do sleep 0.02; done; kill "
      .. "-INT $p; wait $p"):format(folder) })
    assert.equal(130, result.code)
    has(result.err, "the same command goes on with 3 trials")
    fine(study "run")
    local rows = rows_of()
    assert.equal(3, count(rows, "done"))
    assert.equal("1", rows[1].attempts)
  end)

  it("loses nothing to kill -9, and claims nothing twice", function()
    fine(cqlua { "tests/study/kill.lua", "--kills", "5", "--trials", "40" })
    fine(cqlua { "tests/study/claims.lua", "--workers", "4", "--claims", "400" })
  end)

  it("draws what there is to see", function()
    script [[return cq.Study { name = "a", repeats = 2, minimize = { "loss", "mass" }, process = "job",
      grid = { a = { 1, 2, 4 }, b = { "x", "y" },
      c = { 1, 3 } }, run = function(p, trial)
        if p.a == 2 and p.b == "y" then error "no" end
        for i = 1, 5 do trial.report(i, p.a * p.c / i) end
        return { loss = p.a * p.c / 5, mass = 1 / p.a }
      end }]]
    fine(study "run")
    local paths = {}
    for path in fine(study "plot"):gmatch "[^\n]+" do
      paths[#paths + 1] = path:match "([%w_]+)%.png$"
      assert(image.read(path).width >= 400, path)
    end
    assert.same({ "slices", "bands" }, paths)
    has(fine(study "status"), "that no other is better than in everything")
    process.remove(folder .. "/out/trials/000001")
    has(study("render", "1").err, ("trial 1 cannot be drawn: its folder %s/out/trials/000001 is gone"):format(folder))
  end)

  it("draws empty texts and curves that are not finite", function()
    script [[return cq.Study { name = "a", grid = { x = { "", "b" } }, run = function(p, trial)
        trial.report(1, p.x == "" and 1 / 0 or 0 / 0)
        return #p.x
      end }]]
    fine(study "run")
    assert.equal(folder .. "/out/plots/slices.png\n", fine(study "plot"))
  end)

  it("tells how much of the objective each parameter explains", function()
    script [[return cq.Study { name = "a", process = "job", grid = { a = cq.range(1, 6), b = { "x", "y" } },
      run = function(p) return p.a end }]]
    fine(study "run")
    has(fine(study "status"), "share of the variance that each explains alone: a 1.00, b 0.00")
  end)
end)

describe("wrong use of a study", function()
  local function refuses(content, part, ...)
    script(content)
    local result = study("run", ...)
    assert.equal(1, result.code)
    has(result.err, part)
    has(result.err, "s.lua:")
  end

  it("is told at the user's line", function()
    local rest = ", run = function() return 1 end }"
    for given, part in pairs {
      ['name = "a", space = {}, trials = 3'] = "space is empty",
      ['name = "a", trials = 3'] = "give space (ranges that a sampler draws from) or grid",
      ['name = "a", space = { x = 3 }, trials = 3'] = "space.x must be one of cq.Space",
      ['name = "a", space = { x = cq.Space.log(-1, 10) }, trials = 3'] = "a logarithmic range lies above 0, got -1 "
        .. "to 10",
      ['name = "a", space = { x = cq.Space.uniform(2, 1) }, trials = 3'] = "min must be below max, got 2 and 1",
      ['name = "a", space = { x = cq.Space.uniform(1, 2) }'] = "trials is missing",
      ['name = "a", grid = { x = {} }'] = "grid.x must be a list of values",
      ['name = "a", grid = { x = { 1, 2 } }, trials = 3'] = "the grid has 2 points, trials says 3",
      ['name = "a", grid = { x = cq.range(1, 1001), y = cq.range(1, 1000) }'] = "the grid has 1001 x 1000 = 1001000 points, "
        .. "and a study has 1000000 trials at most",
      ['name = "a", grid = { x = cq.range(1, 1e5) }, repeats = 11'] = "100000 points x 11 replicates are 1100000 trials",
      ['name = "a", grid = { seed = { 1, 1.5 } }'] = "the parameter seed is the seed of trials, a whole number from 0 on, "
        .. "got 1.5",
      ['name = "a", grid = { seed = { -3 } }'] = "got -3",
      ['name = "a", space = { seed = cq.Space.uniform(0, 9) }, trials = 2'] = "a whole number: take cq.Space.integer",
      ['name = "a", space = { x = cq.Space.uniform(-1e308, 1e308) }, trials = 2'] = "-1e+308 and 1e+308 are too far apart",
      ['name = "a/b", grid = { x = { 1, 2 } }'] = "name is that of a folder",
      ['name = "a", grid = { x = { 1, 2 } }, sampler = "tpe"'] = "grid tries every combination",
      ['name = "a", space = { x = cq.Space.choice { 1 } }, trials = 3, sampler = "cma_es"'] = "x is a choice",
      ['name = "a", minimize = "a", maximize = { "a" }, grid = { x = { 1 } }'] = "a is named twice",
      ['name = "a", grid = { x = { 1, 2 } }, repeat_ = 3'] = "unknown field repeat_ (did you mean repeats?)",
    } do refuses("return cq.Study { " .. given .. rest, part) end
    refuses("return 3", "must return a cq.Study")
  end)

  it("of run's result is the trial's failure, as a sentence", function()
    script [[return cq.Study { name = "a", grid = { n = { 1, 2, 3, 4 } }, run = function(p)
      if p.n == 2 then return { other = 1 } elseif p.n == 3 then return 0 / 0 elseif p.n == 4 then return "fast" end
    end }]]
    assert.equal(1, study "run".code)            -- nothing came of it
    local rows = rows_of()
    has(rows[1].problem, "run must return a table with the number loss")
    has(rows[1].problem, "got nothing")
    has(rows[2].problem, "run must return a number for loss; got nothing of this name; but other")
    has(rows[3].problem, "run returned nan for loss")
    has(rows[4].problem, 'fast')
  end)

  it("of the command is told with what is allowed", function()
    script(plain)
    local function misuse(part, ...)
      local result = study(...)
      assert.equal(2, result.code)
      has(result.err, part)
    end
    misuse("did you mean status?", "statu")
    misuse("--state takes failed, lost, pruned and done", "retry", "--state", "bad")
    misuse("study show needs the number of a trial", "show", "x")
    has(study("status").err, ("the study plain has not begun: there is no %s/out/study.sqlite; begin it with cqlua study "
      .. "run %s/s.lua --out %s/out\n"):format(folder, folder, folder))
    has(study("status", "--resume", "--trials", "5").err, ("begin it with cqlua study run %s/s.lua --out %s/out --trials=5\n")
      :format(folder, folder))
    has(cqlua({ "study", "run" }).err, "study run needs the script")
  end)

  it("is told when the file is locked, damaged or no place is left", function()
    script(plain)
    fine(study("run", "--trials", "2"))
    has(fine(study "status"), "done 4")
    process.write(folder .. "/out/study.sqlite", ("no database "):rep(100))
    os.remove(folder .. "/out/study.sqlite-wal")
    has(study("status").err, "it is no SQLite file")
    -- room for the file's head, for its tables, for some trials
    for i, blocks in ipairs { 24, 90, 120 } do
      local full = cqlua({ "study", "run", folder .. "/s.lua", "--out", folder .. "/full" .. i, "--trials", "40" },
        { before = ("ulimit -f %d;"):format(blocks) })
      assert.equal(1, full.code)
      has(full.err, "the disk may be full")
      assert.is_nil(full.err:find("traceback", 1, true), full.err)
    end
  end)
end)
