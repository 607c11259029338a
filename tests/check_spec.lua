-- check: what cqlua check tells of a script before it runs for long, and what it leaves behind: nothing.
local process = require "tests.process"
local host = require "cq.host"
local says = require("tests.sentence").says
local cqlua = process.cqlua

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function script(content) return process.write(folder .. "/script.lua", content) end

describe("a script that is checked", function()
  local head = [[
    local cq = require "cq"
    local robot = require("tests.scene").robot()
    local run = cq.Experiment {
      world = require("tests.scene").world(robot), steps = 5,
      objective = function(s) return s:center(robot)[1] * OF end,
      trainable = { velocity = { init = { 0.1, 0 } } }, optimizer = cq.Optimizer.adam { rate = 0.1 },
    }
    run:optimize { iterations = cq.option("iterations", 100) }
    print(("best %.3f"):format(run.best.loss))
    run:render "film.mp4"]]

  it("finds what a run leaves, and leaves nothing", function()
    local result = cqlua { "check", script((head:gsub("OF", "1"))), "--out", folder .. "/a" }
    assert.equal(0, result.code, result.err)
    assert.equal("", result.err)
    assert.matches("velocity: 2 numbers.*\nbest 0.4%d+\n.*nothing wrong was found\n$", result.out)
    assert.is_nil(host.kind(folder .. "/a"))
    local loop = [[
      local run = require("cq.run").open { iterations = 20 }
      run:record { iteration = 1, loss = 1 }
      error "boom"]]
    assert.equal(1, cqlua({ "check", script(loop), "--out", folder .. "/a" }).code)
    assert.is_nil(host.kind(folder .. "/a"))
    result = cqlua { "check", script((head:gsub("OF", "1"))), "--out", "/proc/nowhere" }
    assert.equal(1, result.code)
    says(result.err, "the folder /proc/nowhere cannot be written")
  end)

  it("gives a cost of signals those of all control steps", function()
    local content = head:gsub("OF", "1"):gsub("objective = (function.-end),\n", [[controller = cq.Controller.sines {},
      objective = { terminal = %1, effort = function(u) return (u:slice(2, 5) - u:slice(1, 4)):square():sum() end },
]])
    local result = cqlua { "check", script(content) }
    assert.equal(0, result.code, result.err)
    assert.matches("controller.w: 8 numbers, gradient 0.6", result.out)
  end)

  it("says of a failure after a training that a check leaves the training out", function()
    local result = cqlua { "check", script((head:gsub("OF", "1")) .. "\ncq.load(run.folder)") }
    assert.equal(1, result.code)
    says(result.err, "this came after a training, which a check leaves out: it may be right in a run")
    result = cqlua { "check", script("cq.load(nil)\n" .. (head:gsub("OF", "1"))) }
    assert.equal(1, result.code)
    assert.is_nil(result.err:find("after a training", 1, true))
  end)

  it("leaves nothing of its folders, neither where it would run nor among the temporary ones", function()
    local content = 'local run = require("cq.run").open { iterations = 1 }\nprint(run.folder)\nrun:record { loss = 1 }'
    assert(host.make_folder(folder .. "/temporary"))
    local shell = { before = ("cd %s && TMPDIR=%s/temporary"):format(folder, folder) }
    local result = cqlua({ "check", script(content) }, shell)
    assert.equal(0, result.code, result.err)
    assert.matches("^" .. folder .. "/temporary/cqlua%-[%w]+\n", result.out)
    local left = host.entries(folder)
    table.sort(left)
    assert.same({ "script.lua", "temporary" }, left)
    assert.same({}, host.entries(folder .. "/temporary"))
    local kept = 'local cq = require "cq"\nlocal run = require("cq.run").open { iterations = 1, keep = 1 }\nrun:record { loss = 1 }\n'
      .. 'run:checkpoint(1, { x = cq.ones { 1 } }, { n = 1 })'
    result = cqlua({ "check", script(kept) }, shell)
    assert.equal(0, result.code, result.err)
    assert.same({}, host.entries(folder .. "/temporary"))
    result = cqlua({ "check", script(content) }, { before = "TMPDIR=" .. folder .. "/none" })
    assert.equal(1, result.code)
    says(result.err, ("script.lua:1: no temporary folder %s/none/cqlua-XXXXXX can be made; set TMPDIR"):format(folder))
  end)

  it("is not warned of what two control steps cannot know", function()
    assert.equal("", cqlua({ "check", script((head:gsub("OF", "0"))), "--keep", "2" }).err)
  end)

  it("knows that a design is not trained yet where its body is made", function()
    local design = [[
      local cq = require "cq"
      local block = cq.Robot {
        shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 },
        material = cq.Material.neo_hookean { young = 1e5, poisson = 0.4, density = 1000 },
        actuators = cq.Actuator.isotropic { count = 2, max = 1e4 },
      }
      local world = cq.World { cells = { 20, 20 }, dx = 0.04, dt = 2e-3, substeps = 5, block:at { 0.2, 0.2 } }
      local pulses = { interval = 0.004, width = 0.004, gain = 0.5 }
      local run = cq.Experiment {
        world = world, duration = 0.02, optimizer = cq.Optimizer.adam { rate = 0.05 },
        design = cq.Topology { world = world, duration = 0.02, filter = { radius = 0.04 }, pulses = pulses },
        objective = function(state) return -state:center(block)[1] end,
      }
      run:optimize { iterations = cq.option("iterations", 30) }
      print(run:evaluate { body = run.design:extract(run.best.params.design) }.loss)]]
    local result = cqlua { "check", script(design) }
    assert.equal(0, result.code, result.err)
    says(result.out, "nothing wrong was found")
    -- without the check an empty body is an error still
    result = cqlua { script(design), "--iterations", "0", "--out", folder .. "/a", "--render", "no" }
    assert.equal(1, result.code)
    says(result.err, "the body is empty")
  end)

  it("is told as JSON, an object a line", function()
    local result = cqlua { "check", "--json", script((head:gsub("OF", "1"))) }
    local lines = {}
    for line in result.out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(2, #lines, result.out)
    assert.matches('^{"script": ".*script.lua", "bytes": %d+, .*"gradients": {"robot.velocity": [%d.]+}', lines[1])
    assert.matches('^{"script": ".*script.lua", "fine": true}$', lines[2])
    says(result.err, "best 0.4")
    result = cqlua { "check", script "error 'no'", "--json" }
    assert.equal(1, result.code)
    assert.matches('^{"script": ".*", "fine": false, "problem": ".*script.lua:1: no"}\n$', result.out)
  end)
end)
