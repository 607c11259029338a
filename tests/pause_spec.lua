-- pause: Ctrl-C at a terminal, which is made by script(1): go on, stop, or a prompt.
local cq = require "cq"
local json = require "cq.base.json"
local mistake = require "tests.sentence"
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

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
local ffi = require "ffi"
ffi.cdef "int raise(int signal);"
run:optimize { iterations = 12, on_iteration = function(i) if i == 5 then ffi.C.raise(2) end end }
print("done", run.loss_last)
]]

-- runs the script at a terminal, with these lines typed
local function typed(lines, name)
  local path = process.write(folder .. "/script.lua", SCRIPT)
  process.write(folder .. "/typed", lines)
  local host = require "cq.host"
  os.execute(("script -qec '%s %s --out %s' /dev/null < %s > %s 2>&1"):format(host.executable, path,
    folder .. "/" .. name, folder .. "/typed", folder .. "/seen"))
  return process.read(folder .. "/seen")
end

local function rows(name)
  local out = cq.Run.read_history(folder .. "/" .. name)
  for _, row in ipairs(out) do row.seconds = nil end
  return out
end

local function manifest(name) return json.decode(process.read(folder .. "/" .. name .. "/manifest.json")) end

describe("Ctrl-C at a terminal", function()
  it("asks, and goes on as if nothing had been", function()
    local path = process.write(folder .. "/script.lua", (SCRIPT:gsub("ffi.C.raise%(2%)", "")))
    local whole = process.cqlua { path, "--out", folder .. "/whole" }
    assert.equal(0, whole.code, whole.err)
    local seen = typed("c\n", "a")
    mistake.says(seen, "after iteration 5: continue, stop or prompt [c/s/p]? ")
    mistake.says(seen, "done\t")
    assert.same(rows "whole", rows "a")
    assert.equal("finished", manifest("a").status)
  end)

  it("saves before it asks", function()
    local seen = typed(("p\nprint(5 + (io.open('%s/a/optimizer.bin') and 1 or 0))\nos.exit(3)\n"):format(folder), "a")
    mistake.says(seen, "> 6")
    local again = process.cqlua { folder .. "/script.lua", "--out", folder .. "/a", "--resume" }
    assert.equal(0, again.code, again.err)
    assert.equal(12, #rows "a")
  end)

  it("stops where that is the answer", function()
    local seen = typed("what\nstate = 3\nparams.controller.b2:fill(0)\ns\n", "a")
    assert.equal(3, select(2, seen:gsub("answer c, s or p; Lua is typed at the prompt, after p", "")))
    mistake.says(seen, "interrupted after iteration 5; what was computed is kept")
    assert.equal(5, #rows "a")
    assert.equal("interrupted", manifest("a").status)
  end)

  it("stops at another Ctrl-C, which is typed once the question is there", function()
    local path = process.write(folder .. "/script.lua", SCRIPT)
    -- a second later, with the terminal still open
    os.execute(([[cd %s; (until grep -q 'prompt .c/s/p' seen; do sleep .1; done; printf '\003'; sleep 1; cp seen then) \
      2>/dev/null | (cd %s; script -qfec '%s %s --out %s/a' %s/seen > /dev/null 2>&1)]]):format(folder,
      require("cq.host").root, require("cq.host").executable, path, folder, folder))
    mistake.says(process.read(folder .. "/then"), "interrupted after iteration 5; what was computed is kept")
    assert.equal("interrupted", manifest("a").status)
  end)

  it("has a prompt, of which the manifest keeps what was typed", function()
    local seen = typed("p\nparams.controller.b2:fill(0.25)\n"
      .. "= gradient[1].controller.b2:shape()[1] + world.particle_count + #run.robot.groups\n\4c\n", "a")
    mistake.says(seen, "36")
    mistake.says(seen, "done\t")
    local said = manifest("a").prompt
    assert.equal(5, said[1].iteration)
    mistake.says(said[1].text, "params.controller.b2:fill(0.25)")
    local again = process.cqlua { folder .. "/script.lua", "--out", folder .. "/a", "--resume" }
    mistake.says(again.err, "what was typed at the prompt after iteration 5 of the run in " .. folder .. "/a is not done "
      .. "again: params.controller.b2:fill(0.25)")
    local others = typed("c\n", "b")
    mistake.says(others, "done\t")
    assert.not_equal(rows("b")[12].loss, rows("a")[12].loss)
    assert.same(rows("b")[5], rows("a")[5])
  end)

  it("stops without a terminal, as ever", function()
    local result = process.cqlua { process.write(folder .. "/script.lua", SCRIPT), "--out", folder .. "/a" }
    assert.equal(130, result.code)
    assert.equal(5, #rows "a")
  end)
end)
