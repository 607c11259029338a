-- study_change: a study whose script, modules or options are changed while it runs, or between two commands; what it
-- tells of options and results that it does not take.
local host = require "cq.host"
local json = require "cq.base.json"
local process = require "tests.process"
local has = require("tests.sentence").says

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function script(content) process.write(folder .. "/s.lua", "local cq = require \"cq\"\n" .. content) end

-- cqlua study ACTION s.lua ..., in the test's folder
local function study(action, ...)
  return process.cqlua { "study", action, folder .. "/s.lua", "--out", folder .. "/out", ... }
end

local function fine(result)
  assert(result.code == 0, result.err .. result.out)
  return result.out
end

local function refused(part, result)
  assert.equal(1, result.code, result.out)
  has(result.err, part)
end

describe("a study with replicates that fail", function()
  it("names the points that are left out where the best is told", function()
    script [[return cq.Study { name = "a", grid = { x = cq.range(1, cq.option("to", 2)) }, repeats = 3, seed = 1,
      maximize = "way", run = function(p, trial)
        if p.x > 1 and trial.seed == 3 then error "boom" end
        return { way = p.x }
      end }]]
    local said = "point 2 is left out: 1 of 3 replicates failed\n"
    has(fine(study "run"), said)
    has(fine(study "status"), "best way 1 (point 1, mean of 3, the best of them trial 1)\n  x 1\n" .. said)
    local many = fine(study("run", "--force-new", "--to", "9"))
    has(many, "point 7 is left out: 1 of 3 replicates failed\nand 2 more\n")
    assert.is_nil(many:find("point 8", 1, true), many)
  end)
end)

describe("a study command", function()
  it("refuses options and words that it has no use for", function()
    script [[return cq.Study { name = "a", grid = { x = { 1, 2 } }, run = function(p) return p.x end }]]
    local function misuse(part, ...)
      local result = study(...)
      assert.equal(2, result.code)
      has(result.err, part)
    end
    misuse("study run has no use for --state, which is for study export and retry", "run", "--state", "failed")
    misuse("study run has no use for --share, which is for the processes that run starts", "run", "--share", "2")
    misuse("study status has no use for --jobs, which is for study run", "status", "--jobs", "2")
    misuse("study export has no use for --json, which is for study status", "export", "--json")
    misuse('study run has no use for the word "node1"; hosts are for --launch ssh', "run", "node1")
    misuse('study show has no use for the word "2"', "show", "1", "2")
    misuse("--workers is for --launch slurm; --jobs is how many", "run", "--workers", "4")
    assert.is_nil(host.kind(folder .. "/out"))
  end)

  it("refuses repeats of a seed, a column of its own, and a file without a study", function()
    script [[return cq.Study { name = "a", grid = { seed = { 1, 2 } }, repeats = 3, run = function() return 0 end }]]
    refused("cq.Study: repeats gives each trial of a point another seed, and the parameter seed gives all", study "run")
    script [[return cq.Study { name = "a", grid = { x = { 1 } }, run = function(_, trial)
      trial.report(1, { iteration = 3 })
      return 0
    end }]]
    study "run"
    has(fine(study "export"), "iteration is a column that the study's table has of its own")
    process.write(folder .. "/out/study.sqlite", "")
    os.remove(folder .. "/out/study.sqlite-wal")
    refused(("has not begun: there is no study in %s/out/study.sqlite"):format(folder), study "status")
  end)

  it("that retries a trial leaves nothing of its earlier attempt", function()
    script [[return cq.Study { name = "a", grid = { x = { 1 } }, run = function(_, trial)
      local again = io.open(cq.option("mark", "") .. "/again")
      for i = 1, again and 3 or 10 do trial.report(i, { loss = again and 100 + i or i }) end
      if not again then error "broken" end
      return 1
    end }]]
    study("run", "--mark", folder)
    has(fine(study("export", "--curves", "--mark", folder)), "1,loss,10,10\n")
    fine(study("retry", "--state", "failed", "--mark", folder))
    assert.equal("trial,name,step,value\n", fine(study("export", "--curves", "--mark", folder)))
    assert.is_nil(fine(study("export", "--mark", folder)):find("broken", 1, true))
    process.write(folder .. "/again", "")
    fine(study("run", "--mark", folder))
    assert.equal("trial,name,step,value\n1,loss,1,101\n1,loss,2,102\n1,loss,3,103\n",
      fine(study("export", "--curves", "--mark", folder)))
    -- as any history of a run
    assert.equal(3, #require("cq.run").read_history(folder .. "/out/trials/000001"))
  end)
end)

describe("what run returns", function()
  it("is kept by names with dots where it is in tables, and told once where it cannot be kept", function()
    script [[return cq.Study { name = "a", grid = { x = { 1, 2 } }, run = function(p)
      return { loss = p.x, said = "text", fine = true, field = cq.ones { 2, 2 },
        deviation = { young = cq.tensor(3 * p.x), inner = { path = cq.tensor { 4, 5 }, word = "text" } } }
    end }]]
    local result = study("run", "--quiet")
    fine(result)
    local words = "run returned deviation.inner.word (a string), field (a cq.Tensor), fine (a boolean) and said (a string), "
      .. "which a study does not keep: it keeps numbers, lists of numbers, and named tables of these\n"
    assert.equal("cqlua: warning: " .. words, result.err)
    has(fine(study "export"), "loss,deviation.young,")
    has(fine(study "export"), "1,1,1,done,1,1,3,")
    has(fine(study("export", "--curves")), "2,deviation.inner.path,2,5\n")
    script [[return cq.Study { name = "a", grid = { x = { 1 } }, run = function()
      return { loss = 1, a = { b = 2 }, ["a.b"] = 3 }
    end }]]
    local twice = study("run", "--force-new", "--quiet")
    fine(twice)
    has(twice.err, "a.b, of which there are two")
    script [[local t = { loss = 1 }
      t.inner = { t }
      t.own = t
      return cq.Study { name = "a", grid = { x = { 1 } }, run = function() return t end }]]
    fine(study("run", "--force-new"))
  end)
end)

describe("an option that nobody asks for", function()
  it("is refused before anything begins where it resembles one, else told when the first trial is done", function()
    script [[return cq.Study { name = "a", grid = { x = { 1, 2 } }, run = function(p)
      return { loss = p.x * cq.option("factor", 1) }
    end }]]
    for slip, meant in pairs { job = "jobs", thread = "threads", buget = "budget", factr = "factor" } do
      local result = study("run", "--" .. slip, "2")
      assert.equal(2, result.code)
      has(result.err, ("--%s is no option of cqlua study, and the script does not ask for it (did you mean %s?)"):format(
        slip, meant))
    end
    assert.is_nil(host.kind(folder .. "/out"))
    local result = study("run", "--factor", "2", "--other", "3", "--quiet")
    fine(result)
    assert.equal("cqlua: warning: the script never asked for --other; it asked for --factor\n", result.err)
  end)

  it("is refused where a script is run with seeds", function()
    script [[local wanted = cq.option("iterations", 30)
      local function own(name) return cq.option(name, 1) end
      return { loss = wanted * own "iterates" }]]
    has(study("run", "--seeds", "2", "--iteration", "5").err, "did you mean iterations?")
    assert.is_nil(host.kind(folder .. "/out"))
    fine(study("run", "--seeds", "2", "--iterates", "5"))
    -- not where names are made
    script [[return { loss = cq.option("weight", 1) + cq.option(("weight%d"):format(1), 1) }]]
    local made = study("run", "--seeds", "1", "--weight1", "3", "--force-new")
    has(fine(made), "loss: mean 4")
    has(made.err, "the script does not name --weight1 (did you mean weight?)")
  end)
end)

describe("a script that was changed", function()
  it("changes nothing of the results that are looked at, and reruns no trial of another kind", function()
    script [[return cq.Study { name = "a", grid = { x = { 10, 20, 30 } }, repeats = 2, seed = 7, minimize = "miss",
      run = function(p, trial)
        trial.report(1, { miss = p.x })
        return { miss = p.x }
      end }]]
    fine(study "run")
    local before = {}
    for _, action in ipairs { "status", "export" } do before[action] = fine(study(action)) end
    script [[return cq.Study { name = "a", grid = { x = { "p", "q" } }, maximize = "gain",
      run = function(p) return { gain = 1 } end }]]
    for action, said in pairs(before) do assert.equal(said, fine(study(action))) end
    has(before.status, "best miss 10 (point 1, mean of 2, the best of them trial 1)")
    has(fine(study("show", "best")), "point 1, replicate 1, seed 7\n  x 10\n  miss = 10\n")
    fine(study "plot")
    for _, words in ipairs { { "retry", "--state", "done" }, { "rerun", "2" }, { "render", "2" }, { "run" } } do
      refused('the study a in ' .. folder .. '/out was begun otherwise: minimize or maximize was', study(unpack(words)))
    end
    assert.equal(before.status, fine(study "status"))
  end)

  it("may have fewer points or another seed when its trials are looked at or run once more", function()
    script [[return cq.Study { name = "a", space = { x = cq.Space.uniform(0, 1) }, trials = cq.option("trials", 2),
      run = function(p, trial) return p.x + trial.seed end }]]
    fine(study("run", "--trials", "4", "--seed", "5"))
    has(fine(study "status"), "4/4  done 4")
    local result = json.encode(json.decode(process.read(folder .. "/out/trials/000004/trial.json")).result)
    has(fine(study("rerun", "4")), "trial 4: done " .. result)
    has(fine(study("retry", "--state", "done")), "4 trials will be tried again")
  end)
end)

describe("a list of values that was shortened", function()
  it("lacks the points of some trials, which are shown, and not run once more", function()
    local grid = "return cq.Study { name = 'a', grid = { x = { 'p', 'q', 'r' } }, run = function(p) return #p.x end }"
    script(grid)
    fine(study "run")
    script((grid:gsub(", 'r'", "")))
    has(fine(study("rerun", "2")), "trial 2: done")
    for _, action in ipairs { "rerun", "render" } do
      refused("the script has no such point: trial 3 has x = r, which is none of the script's values now", study(action, "3"))
    end
    has(fine(study("show", "3")), "  x r\n")
  end)
end)

describe("a script that is changed while its study runs", function()
  local threads = [[
  local block = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.002 },
    material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }
  cq.World { cells = { 40, 40 }, dx = 0.025, dt = 1e-4, block:at { 0.3, 0.3 } }:rollout { steps = 1 }
  ]]
  local edits = [[return cq.Study { name = "a", grid = { x = { 1, 2, 3 } }, run = function(p)
    local offset = require "offset"
    if p.x == 1 then
      local file = io.open("%s/%s", "a")
      file:write(%q)
      file:close()
    end
    return { loss = p.x + offset }
  end }]]

  before_each(function() process.write(folder .. "/offset.lua", "return 100\n") end)

  it("has no more trials in new processes, and counts none as failed", function()
    for _, case in ipairs { { "s.lua", "\n-- an edit" }, { "s.lua", "\nno Lua" }, { "offset.lua", "-- an edit" } } do
      script(threads .. edits:format(folder, case[1], case[2]))
      local text, offset = process.read(folder .. "/s.lua"), process.read(folder .. "/offset.lua")
      refused("the script, or a module that it loads, was changed while its study runs, and no more trials are begun",
        study("run", "--threads", "2", "--force-new"))
      process.write(folder .. "/s.lua", text)
      process.write(folder .. "/offset.lua", offset)
      local counts = json.decode(fine(study("status", "--json")))
      assert.same({ 1, 2, 0 }, { counts.done, counts.waiting, counts.failed })
    end
    fine(study("run", "--threads", "2"))
    has(fine(study "status"), "3/3  done 3")
    assert.equal(1, json.decode(process.read(folder .. "/out/trials/000002/trial.json")).attempt)
  end)

  it("may be gone for a moment, and else ends the study after the trials that run", function()
    local moves = [[return cq.Study { name = "a", grid = { x = { 1, 2, 3, 4 } }, run = function(p, trial)
      if p.x == 1 then
        local other = trial.folder .. "/../000002/output.txt"
        os.execute(("until [ -e %%s ]; do sleep 0.05; done"):format(other))
        os.rename(%q, %q)
        os.execute %q
      end
      if p.x == 2 then os.execute "sleep 2" end
      return { loss = p.x }
    end }]]
    local path, away = folder .. "/s.lua", folder .. "/away.lua"
    script(threads .. moves:format(path, away, ("(sleep 0.3; mv %s %s) >/dev/null 2>&1 &"):format(away, path)))
    fine(study("run", "--threads", "4", "--jobs", "2"))
    script(threads .. moves:format(path, away, "true"))
    refused("was changed while its study runs, and no more trials are begun",
      study("run", "--threads", "4", "--jobs", "2", "--force-new"))
    os.rename(away, path)
    local counts = json.decode(fine(study("status", "--json")))
    assert.same({ 2, 2, 0, 0 }, { counts.done, counts.waiting, counts.running, counts.failed })
    fine(study("run", "--threads", "2"))
    assert.equal(1, json.decode(process.read(folder .. "/out/trials/000003/trial.json")).attempt)
  end)

  it("goes on as it was in copies of a process, with modules that are loaded later too", function()
    script(edits:format(folder, "offset.lua", " + 100"))
    fine(study "run")
    assert.equal(103, json.decode(process.read(folder .. "/out/trials/000003/trial.json")).result.loss)
    refused("offset.lua, which the script loads, was changed since the study a began", study "run")
  end)
end)

describe("a script that says where its modules are", function()
  it("is given those in each trial", function()
    local text = '\nlocal conf = require "conf"\nreturn { loss = conf }'
    process.write(folder .. "/conf.lua", "return 1\n")
    assert(host.make_folder(folder .. "/lib"))
    process.write(folder .. "/lib/conf.lua", "return 2\n")
    for _, line in ipairs {
      ('package.path = "%s/lib/?.lua;" .. package.path'):format(folder),
      'package.preload.conf = function() return 2 end',
      'table.insert(package.loaders, 2, function() return function() return 2 end end)',
    } do
      script(line .. text)
      fine(study("run", "--seeds", "1", "--force-new"))
      has(process.read(folder .. "/out/trials/000001/trial.json"), '"result": {"loss": 2}')
    end
  end)
end)

describe("the options of a study", function()
  local sums = [[
  return cq.Study { name = "a", space = { x = cq.Space.uniform(0, 1) }, trials = 2, run = function(p, trial)
    local half = cq.tensor({ 1 / 3 }):item()
    return { loss = p.x + trial.seed + cq.option("more", 0), half = half, says = #cq.option("word", "") }
  end }]]

  -- the numbers of a trial as its rerun prints them
  local function numbers(said) return said:match "trial 2: done ({.-}); its folder is" end

  it("are those of the command that show prints, which reruns the trial", function()
    script(sums)
    fine(study("run", "--more", "100", "--word", "two words", "--seed", "12345678901", "--precision", "float64"))
    local kept = json.decode(process.read(folder .. "/out/trials/000002/trial.json"))
    local command = fine(study("show", "2")):match "alone: (cqlua study rerun [^\n]*)"
    has(command, "--more=100 --precision=float64 --seed=12345678901 '--word=two words'")
    local pipe = io.popen((command:gsub("^cqlua", host.executable)) .. " 2>&1")
    local said = pipe:read "*a"
    pipe:close()
    assert.same(kept.result, json.decode(numbers(said)))
    assert.is_nil(said:find("was changed", 1, true) or said:find("were changed", 1, true), said)
    -- without them it is another computation, of the trial's seed
    local bare = study("rerun", "2")
    has(bare.err, "the options were changed from {", "trial 2 may give other numbers than its row")
    assert.near(kept.result.loss - 100, json.decode(numbers(bare.out)).loss, 1e-5)
    has(fine(study "export"), "\n2,2,1,12345678901,done,")
    has(fine(study("retry", "--state", "done")), "--more=100 --precision=float64")
  end)

  it("are the same in all of its trials, precision too", function()
    script(sums)
    fine(study("run", "--precision", "float64"))
    refused('the options were changed from {"precision": "float64"} to {} since the study a began. --go-on lets',
      study "run")
    fine(study("run", "--go-on"))
    has(fine(study("show", "2")), "--precision=float64\n")           -- with which trial 2 ran
  end)

  it("may have the seed that the study has", function()
    script(sums)
    fine(study "run")
    fine(study("run", "--seed", "1"))
    refused("seed was 1 and is 2", study("run", "--seed", "2"))
    refused("the options were changed from", study("run", "--precision", "float64"))
  end)

  it("may be given or not where they are the default with which the script asks for them", function()
    script("local precision = cq.option('precision', 'float64')\n" .. sums)
    fine(study "run")
    fine(study("run", "--precision", "float64"))
    fine(study "run")
    assert.is_nil(study("rerun", "1", "--precision", "float64").err:find("changed", 1, true))
    refused("the options were changed from", study("run", "--precision", "float32"))
    -- what the worlds of a script have without an option is not known
    script(sums)
    fine(study("run", "--force-new"))
    refused("the options were changed from", study("run", "--precision", "float32"))
  end)

  it("that an earlier program has not stored are not compared", function()
    script(sums)
    fine(study("run", "--more", "2", "--precision", "float64"))
    local base = require("cq.study.sqlite").open(folder .. "/out/study.sqlite")
    base:run "DELETE FROM study WHERE key = 'def.all_options'"
    base:run("UPDATE study SET value = ? WHERE key = 'def.options'", '{"more": "2"}')
    base:close()
    refused('the options were changed from {"more": "2"} to {"more": "3"', study("run", "--more", "3"))
    fine(study("run", "--more", "2", "--precision", "float64"))
    refused("the options were changed from", study("run", "--more", "2"))        -- they are stored by now
  end)
end)
