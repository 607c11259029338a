-- runs_of_script: several runs of one script, which have folders of their own, and how --resume goes on with each.
local process = require "tests.process"
local has = require("tests.sentence").says
local rows = require "tests.rows"
local cqlua = process.cqlua

local folder

local function script(content) return process.write(folder .. "/script.lua", content) end

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function out() return folder .. "/out" end

-- three runs of an experiment, one after the other; in the second, Ctrl-C at iteration --stop
local several = [[
local cq, scene = require "cq", require "tests.scene"
local world, names, runs = scene.world(scene.robot()), { "first", "second", "last" }, {}
for k in ipairs(names) do
  runs[k] = cq.Experiment {
    world = world, steps = 2, controller = cq.Controller.sines {}, optimizer = cq.Optimizer.adam { rate = 0.01 },
    objective = function(s) return s:center("foot")[1] end,
  }
end
for k, name in ipairs(names) do
  local made = runs[k]:optimize {
    iterations = 4, name = k < 3 and name or nil,
    on_iteration = function(i) if k == 2 and i == cq.option("stop", 0) then io.popen("kill -INT $PPID"):close() end end,
  }
  print(name, made.iterations)
end
]]

-- two experiments without a name, which want the opposite, after a word of the script's own
local opposite = [[
local cq, scene = require "cq", require "tests.scene"
local world, signs = scene.world(scene.robot()), { 1, -1 }
cq.log { loss = 7 }
for k, sign in ipairs(signs) do
  signs[k] = cq.Experiment {
    world = world, steps = 2, controller = cq.Controller.sines {}, optimizer = cq.Optimizer.adam { rate = 0.01 },
    objective = function(s) return sign * s:center("foot")[1] end,
  }
end
local n = cq.option("iterations", 2)
for _, run in ipairs(signs) do run:optimize { iterations = n, name = cq.option("name", "") ~= "" and "t" or nil } end
if cq.option("more", false) then signs[2]:optimize { iterations = n + 1, resume = true } end
for _, run in ipairs(signs) do print(run.best.loss, cq.load(run.folder).result.loss, run.folder) end
]]

describe("a script of several runs", function()
  it("keeps those without a name apart, and goes on with each", function()
    -- Runs the script; both must have losses of their own, in their files too. Returns what it printed.
    local function losses(...)
      local result = cqlua { script(opposite), "--out", out(), ... }
      assert.equal(0, result.code, result.err)
      local right, kept, first, left, also, second = result.out:match(
        "(%S+)\t(%S+)\t(%S+)\n(%S+)\t(%S+)\t(%S+)\n$")
      assert.same({ right, left }, { kept, also })
      assert.is_true(tonumber(right) > 0 and tonumber(left) < 0, result.out)
      return result.out, { first, second }
    end
    -- The number of iterations in the history of a run.
    local function made(name) return #rows(process.read(out() .. name .. "/history.csv")) end
    local before, folders = losses()
    assert.same({ out(), out() .. "/run-2" }, folders)
    assert.equal(before, (losses "--resume"))
    local further = losses("--resume", "--iterations", "4")
    assert.equal(further, (losses("--overwrite", "--iterations", "4")))
    assert.same({ 4, 4 }, { made "", made "/run-2" })
    -- the experiment of the second goes on with it, where the script says so
    losses("--overwrite", "--more")
    assert.same({ 2, 3 }, { made "", made "/run-2" })
    -- a name that is given twice
    before, folders = losses("--overwrite", "--name", "t")
    assert.same({ out() .. "/t", out() .. "/t/run-2" }, folders)
    assert.equal(before, (losses("--resume", "--name", "t")))
    local measured = cqlua { "robust", out() .. "/t/run-2", "--draws", "1" }
    assert.equal(0, measured.code, measured.err)
    local last = out() .. "/t/run-2"
    local resumed = cqlua { "resume", last, "--iterations", "4" }
    assert.equal(0, resumed.code, resumed.err)
    has(resumed.err, ('%s is "t/run-2" of the runs of its script in %s, which go on one after the other'):format(last,
      out()))
    has(resumed.err, "going on after iteration 2 of the run in " .. last)
    assert.same({ 4, 4 }, { made "/t", made "/t/run-2" })
    assert.is_nil(process.read(last .. "/t/history.csv"))
    local forked = cqlua { "resume", last, "--as", out() .. "/fork" }
    assert.equal(1, forked.code)
    has(forked.err, ('%s is "t/run-2" of several runs of its script, which would look for the others'):format(last))
    has(forked.err, ("cqlua resume %s goes on with it"):format(last))
  end)

  it("goes on with one that Ctrl-C has ended, by its folder", function()
    assert.equal(130, cqlua({ script(several), "--out", out(), "--stop", "2" }).code)
    local rest = cqlua { "resume", out() .. "/second/", "--stop", "0" }
    assert.same({ 0, "first\t4\nsecond\t4\nlast\t4\n" }, { rest.code, rest.out }, rest.err)
  end)

  it("ends at Ctrl-C with the run that it comes in, and says how it goes on, and does so", function()
    local stopped = cqlua { script(several), "--out", out(), "--stop", "2" }
    assert.same({ 130, "first\t4\nsecond\t2\n" }, { stopped.code, stopped.out })
    has(stopped.err, "interrupted after iteration 2; what was computed is kept in " .. out()
      .. "/second; the same command with --resume goes on from there")
    assert.is_nil(stopped.err:find("traceback", 1, true), stopped.err)
    assert.is_nil(process.read(out() .. "/manifest.json"))
    local rest = cqlua { script(several), "--out", out(), "--resume" }
    assert.same({ 0, "first\t4\nsecond\t4\nlast\t4\n" }, { rest.code, rest.out }, rest.err)
    has(rest.err, "nothing to go on from in " .. out() .. ": this run begins")
  end)

  it("leaves an earlier run in peace that it has not come to", function()
    assert.equal(0, cqlua({ script(several), "--out", out() }).code)
    assert.equal(130, cqlua({ script(several), "--out", out(), "--stop", "1" }).code)
    assert.is_true(process.read(out() .. "/second-earlier-1/history.csv") ~= nil)
    assert.is_nil(process.read(out() .. "-earlier-1/history.csv"))
    -- also when there is something to go on from: runs that are finished are not told again
    local again = cqlua { script(several), "--out", out(), "--stop", "3", "--resume" }
    assert.same({ 130, "first\t4\nsecond\t3\n" }, { again.code, again.out })
  end)

  it("says it too where Ctrl-C comes between two runs", function()
    local content = several:gsub('  print%(', '  if k == 2 then io.popen("kill -INT $PPID"):close() runs[k]:evaluate() end\n%0')
    local result = cqlua { script(content), "--out", out() }
    assert.same({ 130, "first\t4\n" }, { result.code, result.out })
    has(result.err, "interrupted after iteration 4; what was computed is kept in " .. out()
      .. "/second; the same command with --resume goes on from there\n")
  end)
end)

describe("a run", function()
  it("leaves the one before it in the same script where it is", function()
    local thrice = "local Run = require 'cq.run'\nfor i = 1, 3 do Run.open { iterations = i }:record { loss = i } end"
    local result = cqlua { script(thrice), "--out", out() .. "/" }
    assert.equal(0, result.code, result.err)
    has(result.err, ("the script has a run in %s/ already; this one is in %s/run-3"):format(out(), out()))
    for name, loss in pairs { [""] = 1, ["/run-2"] = 2, ["/run-3"] = 3 } do
      assert.equal(("iteration,loss\n1,%d\n"):format(loss), process.read(out() .. name .. "/history.csv"))
    end
    has(process.read(out() .. "/run-3/manifest.json"), '"name": "run-3"')
  end)

  it("moves the one before it away where the script names the folder of both, and resumes neither", function()
    local twice = [[
      local Run = require "cq.run"
      for i = 1, 2 do
        local run = Run.open { folder = require "cq.option"("out", "") .. "/a", iterations = 1 }
        if not run.saved then run:record { loss = i } end
        run:finish { w = require "cq.tensor" { i } }
      end
    ]]
    for k = 1, 2 do
      local result = cqlua { script(twice), "--out", out(), "--overwrite" }
      assert.equal(0, result.code, result.err)
      assert.equal("iteration,loss\n1,2\n", process.read(out() .. "/a/history.csv"))
      assert.equal("iteration,loss\n1,1\n", process.read(("%s/a-earlier-%d/history.csv"):format(out(), k)))
    end
    has(cqlua({ script(twice), "--out", out(), "--resume" }).err, "the script has two runs in " .. out()
      .. "/a, which --resume cannot tell apart; give each a folder or a name of its own")
  end)

  it("finishes a run when another is opened in its folder", function()
    local path = script [[
      local open = require("cq.run").open
      local first = open {}
      first:record { loss = 1 }
      local second = open { folder = first.folder }
      print(first.closed, first.manifest.status)
      second:record { loss = 2 }
      error "the end"
    ]]
    local result = cqlua { path, "--out", out() }
    assert.equal("true\tfinished\n", result.out, result.err)
    has(process.read(out() .. "/manifest.json"), '"status": "failed"')
    assert.equal("iteration,loss\n1,2\n", process.read(out() .. "/history.csv"))
    assert.equal("iteration,loss\n1,1\n", process.read(out() .. "-earlier-1/history.csv"))
  end)
end)
