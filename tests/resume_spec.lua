-- resume: what forks and their options keep when they are stopped, killed or gone on with, and runs that are left open
-- at the end of a script.
local cq = require "cq"
local host = require "cq.host"
local json = require "cq.base.json"
local has = require("tests.sentence").says
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- two stages; a run stops after the iteration --stop
local SCRIPT = [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local robot = scene.robot()
local run = cq.Experiment {
  world = scene.world(robot), steps = 8, observer = cq.Observer.centroid { groups = robot.groups },
  controller = cq.Controller.mlp { hidden = { 4 } },
  objective = function(state) return (state:center(robot)[1] - 0.4502):square() * 1e6 end,
  optimizer = cq.Optimizer.adam { rate = 0.05 },
}
run:optimize { keep = 1, plan = cq.Plan { { name = "one", iterations = 3 },
  { name = "two", iterations = cq.option("more", 4), optimizer = cq.Optimizer.adam { rate = 0.02 } } },
  on_iteration = function(i)
    if i == cq.option("stop", 0) then error "the end" end
  end }
]]

local function script(content) return process.write(folder .. "/script.lua", content or SCRIPT) end
local function at(name) return folder .. "/" .. name end
local function manifest(name) return json.decode(process.read(at(name) .. "/manifest.json")) end
local function resume(...) return process.cqlua { "resume", ... } end

-- Fails unless a program has ended well; returns what it has said.
local function fine(result)
  assert.equal(0, result.code, result.err)
  return result.err
end

-- The losses of a run, by iteration.
local function losses(name)
  local out = {}
  for k, row in ipairs(cq.Run.read_history(at(name))) do out[k] = row.loss end
  return out
end

describe("a fork", function()
  it("that was killed is no folder for another fork, nor is one at work", function()
    fine(process.cqlua { script(), "--out", at "a" })
    fine(resume(at "a", "--at", "2", "--as", at "b"))
    local made = losses "b"
    -- as a killed one leaves it
    local text = process.read(at "b/manifest.json")
    process.write(at "b/manifest.json", (text:gsub('"iterations_done": %d+,? ?', "")))
    assert.is_nil(manifest("b").iterations_done)
    local result = resume(at "a", "--at", "2", "--as", at "b")
    assert.equal(1, result.code)
    has(result.err, at "b" .. " has a run already; give --as another folder")
    assert.same(made, losses "b")
    -- one that has only begun, in a folder that another process holds
    local busy = process.write(at "busy.lua", ([[
local run = require("cq.run").open { folder = %q }
local file = io.open(run:path "manifest.json", "w")
file:write '{"parent": {"folder": "/a", "iteration": 2, "set": {}}}'
file:close()
os.execute(%q)
]]):format(at "c", ("%s resume %s --at 2 --as %s 2> %s"):format(host.executable, at "a", at "c", at "said")))
    fine(process.cqlua { busy })
    has(process.read(at "said"), at "c" .. " has a run already; give --as another folder")
  end)

  it("goes on, and is forked, after it has left the stage in which it began", function()
    fine(process.cqlua { script(), "--out", at "a" })
    local stopped = resume(at "a", "--at", "2", "--as", at "b", "--set", "optimizer.rate=x0.5", "--stop", "5")
    assert.equal(1, stopped.code)
    fine(resume(at "a", "--at", "2", "--as", at "whole", "--set", "optimizer.rate=x0.5"))
    has(fine(resume(at "b", "--stop", "0")), "going on after iteration 5")
    assert.same(losses "whole", losses "b")
    assert.not_equal(losses "a"[7], losses "b"[7])
    fine(resume(at "b", "--more", "5"))
    assert.equal(8, #losses "b")
    fine(resume(at "b", "--at", "6", "--as", at "c"))
    assert.same(losses "b", losses "c")
    -- another optimizer of a stage that is made is refused as before
    process.write(at "script.lua", (SCRIPT:gsub('"one", iterations = 3', '"one", iterations = 3, '
      .. "optimizer = cq.Optimizer.adam { rate = 0.05, clip = 1 }")))
    local result = resume(at "b", "--more", "6")
    assert.equal(1, result.code)
    has(result.err, 'stage "one" is made, and was another: optimizer.clip')
  end)

  it("has another rate of the optimizer within an augmented Lagrangian", function()
    script((SCRIPT:gsub("  optimizer = cq.Optimizer.adam { rate = 0.05 },\n",
      "  optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 } },\n"
      .. "  constraints = { { name = 'height', at_most = 1, terminal = function(s) return s:center(robot)[2] end } },\n")
      :gsub("run:optimize.*", "run:optimize { keep = 1, iterations = 4,\n"
        .. "  on_iteration = function(i) print(i, run.optimizer.inner.rate) end }\n")))
    fine(process.cqlua { at "script.lua", "--out", at "a" })
    local result = resume(at "a", "--at", "2", "--as", at "b", "--set", "optimizer.inner.rate=x0.5")
    fine(result)
    assert.same("3\t0.025\n4\t0.025\n", result.out)
  end)

  it("gives the options of the program to its script, and keeps them", function()
    fine(process.cqlua { script(), "--out", at "a", "--seed", "3" })
    fine(resume(at "a", "--precision", "float64", "--more", "5"))
    assert.same({ "float64", 3 }, { manifest("a").options.precision, manifest("a").seed })
    fine(resume(at "a", "--at", "6", "--as", at "b", "--seed", "7", "--threads=1"))
    assert.same({ "float64", 7, 1 }, { manifest("b").options.precision, manifest("b").seed,
      tonumber(manifest("b").options.threads) })
    local words = " " .. table.concat(manifest("b").arguments, " ") .. " "
    has(words, " --seed=7 ", " --threads=1 ")
    assert.is_nil(words:find("--seed 3", 1, true), words)
    fine(resume(at "b", "--more", "6"))
    assert.equal(7, manifest("b").seed)
  end)

  it("of a run that was made with --overwrite before the script finds the script", function()
    local path = script()
    fine(process.cqlua { "--overwrite", path, "--out", at "a", "--more", "1" })
    fine(resume(at "a", "--more", "2"))
    assert.equal(5, #losses "a")
    fine(resume(at "a", "--as", at "b", "--more", "3"))
    assert.equal(6, #losses "b")
  end)

  it("begins from no file that a run has not saved", function()
    fine(process.cqlua { script(), "--out", at "a" })
    process.write(at "a/optimizer.bin", process.read(at "a/params.bin"))
    local result = resume(at "a", "--as", at "b")
    assert.equal(1, result.code)
    has(result.err, "cqlua resume: " .. at "a/optimizer.bin" .. " is not what a run has saved: iteration must be a whole "
      .. "number at least 0, got nil")
    process.write(at "a/checkpoints/000002.bin", process.read(at "a/params.bin"))
    has(resume(at "a", "--at", "2", "--as", at "b").err, "000002.bin is not what a run has saved")
    assert.is_nil(host.kind(at "b"))
  end)
end)

describe("runs left open at the end of a script", function()
  local OPEN = [[
local Run, T = require "cq.run", require "cq.tensor"
for k, name in ipairs { "one", "two" } do
  local run = Run.open { iterations = 3, folder = arg[1] .. "/" .. name }
  for i = 1, 3 do
    run:record { loss = k / i }
    run:checkpoint(i, { w = T.tensor { k * i } })
  end
end
]]

  it("are all closed, with their parameters", function()
    for status, ending in pairs { finished = "", failed = "error 'the end'\n" } do
      local result = process.cqlua { script(OPEN .. ending), at(status) }
      assert.equal(status == "failed" and 1 or 0, result.code, result.err)
      for k, name in ipairs { "one", "two" } do
        local own = manifest(status .. "/" .. name)
        assert.same({ status, 3 }, { own.status, own.iterations_done })
        assert.equal(3 * k, cq.load(at(status .. "/" .. name .. "/params.bin")).w:get(1))
        assert.is_false(require("cq.run.folder").is_locked(at(status .. "/" .. name)))
      end
    end
  end)

  it("are closed although one of them cannot be", function()
    local broken = OPEN:gsub("\nend\n$", "\n  if k == 2 then run.history.close = function() error 'no room' end end%0")
    local result = process.cqlua { script(broken), at "broken" }
    assert.is_true(result.code > 0)
    has(result.err, "no room")
    assert.equal("finished", manifest("broken/one").status)
  end)

  it("have whole numbers of iterations", function()
    for text, told in pairs { ["0 / 0"] = "nan", ["1 / 0"] = "inf", ["1.5"] = "1.5", ["-1"] = "-1" } do
      local result = process.cqlua { script(("require('cq.run').open {}:record { iteration = %s }"):format(text)),
        "--out", at "n" }
      assert.equal(1, result.code)
      has(result.err, "run:record: iteration must be a whole number at least 0, got " .. told)
    end
  end)

  it("tells of a run that failed and was caught, and gives it nothing of later ones", function()
    local path = script((SCRIPT:gsub("run:optimize {.*", [[
run:optimize { iterations = 1, folder = cq.option("at", "") .. "/fine" }
print(pcall(run.optimize, run, { iterations = 2, folder = cq.option("at", "") .. "/failed",
  on_iteration = function() error "the end" end }))
run:optimize { iterations = 1, folder = cq.option("at", "") .. "/later" }
cq.Plot { series = { { x = { 1, 2 }, y = { 1, 2 } } } }:write "late.png"
]])))
    fine(process.cqlua { path, "--at", folder, "--out", at "out" })
    assert.same({ "finished", "failed", "finished" }, { manifest("fine").status, manifest("failed").status,
      manifest("later").status })
    has(manifest("failed").problem, "the end")
    assert.is_nil(host.kind(at "failed/late.png"))
  end)
end)
