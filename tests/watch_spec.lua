-- watch: a script that is saved anew while it trains (--watch), which here it does itself at its fifth iteration.
local cq = require "cq"
local has = require("tests.sentence").says
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- the script, and a module of it; iterations last 20 ms, so that the file is looked at several times
local SCRIPT = [[
package.path = "./?.lua;" .. package.path
local cq, scene = require "cq", require "tests.scene"
local C = require("cq.base.engine").C
local robot = scene.robot()
local HIDDEN, RATE, TARGET = 4, 0.05, require("target")
local run = cq.Experiment {
  world = scene.world(robot), steps = 8, observer = cq.Observer.centroid { groups = robot.groups },
  controller = cq.Controller.mlp { hidden = { HIDDEN, 3 } },
  objective = function(state) return (state:center(robot)[1] - TARGET):square() * 1e6 end,
  optimizer = cq.Optimizer.adam { rate = RATE },
}
run:optimize { iterations = 30, on_iteration = function(i)
  local began = C.cq_clock()
  while C.cq_clock() - began < 0.02 do end
  local name = i == 5 and ".next" or i == 18 and ".later"
  local given = name and io.open(arg[0] .. name)
  if not given then return end
  local text, place = given:read "*a", io.open(arg[0] .. ".place"):read "*l"
  os.remove(arg[0] .. name)
  local file = io.open(place, "w")
  file:write(text)
  file:close()
end }
print("done", run.folder)
]]

-- trains with --watch; at the fifth iteration `text` is saved, as the script or as its module, and
-- `later` at the eighteenth, which leaves time for a look at the files between
local function watched(text, name, later)
  local path = process.write(folder .. "/script.lua", SCRIPT)
  process.write(folder .. "/target.lua", "return 0.4502\n")
  process.write(path .. ".next", text)
  process.write(path .. ".place", folder .. "/" .. (name or "script.lua"))
  if later then process.write(path .. ".later", later) end
  return process.cqlua { "--watch", "--out", folder .. "/run", path }
end

local function rows()
  local out = cq.Run.read_history(folder .. "/run")
  for k, row in ipairs(out) do
    row.seconds = nil
    assert.equal(k, row.iteration)
  end
  return out
end

local function plain()
  process.write(folder .. "/target.lua", "return 0.4502\n")
  local path = process.write(folder .. "/plain.lua", SCRIPT)
  local result = process.cqlua { path, "--out", folder .. "/run" }
  assert.equal(0, result.code, result.err)
  return rows()
end

-- how many rows are the same from the first on
local function common(a, b)
  local count = 0
  while a[count + 1] and b[count + 1] and a[count + 1].loss == b[count + 1].loss do count = count + 1 end
  return count
end

describe("cqlua --watch", function()
  it("goes on with parameters and moments where a saved script has them", function()
    local whole = plain()
    -- the same again, but for a comment: nothing changes
    local result = watched(SCRIPT .. "-- a comment\n")
    assert.equal(0, result.code, result.err)
    has(result.err, "script.lua was saved: loaded afresh", "6 parameters go on\n", "going on after iteration")
    assert.same(whole, rows())
    -- another rate: the same up to there
    result = watched((SCRIPT:gsub("RATE, TARGET = 4, 0.05", "RATE, TARGET = 4, 0.01")))
    assert.equal(0, result.code, result.err)
    local now = rows()
    assert.equal(30, #now)
    local same = common(whole, now)
    assert(same >= 6 and same <= 16, same)
    assert.equal(1, select(2, result.out:gsub("done", "")))
  end)

  it("begins anew what has another shape, and names it", function()
    local result = watched((SCRIPT:gsub("RATE, TARGET = 4,", "RATE, TARGET = 5,")))
    assert.equal(0, result.code, result.err)
    has(result.err, "3 parameters go on; controller.b1 begins anew: it was {4} and is {5}",
      "controller.w1 begins anew: it was {4, 4} and is {4, 5}", "controller.w2 begins anew")
    assert.equal(30, #rows())
  end)

  it("takes a module that was saved", function()
    local whole = plain()
    local result = watched("return 0.4501\n", "target.lua")
    assert.equal(0, result.code, result.err)
    has(result.err, "loaded afresh", "6 parameters go on")
    assert(common(whole, rows()) < 20)
  end)

  it("takes a file that the script runs by dofile", function()
    local whole, own = plain(), SCRIPT
    SCRIPT = SCRIPT:gsub('require%("target"%)', 'dofile(arg[0]:match "^.*/" .. "target.lua")')
    local result = watched("return 0.4501\n", "target.lua")
    SCRIPT = own
    assert.equal(0, result.code, result.err)
    has(result.err, "loaded afresh", "6 parameters go on")
    assert(common(whole, rows()) < 20)
  end)

  it("leaves the training as it is where the saved script is wrong", function()
    local whole = plain()
    for text, said in pairs {
      ["local run = = 3\n"] = "unexpected symbol near '='; the training goes on as it was",
      [(SCRIPT:gsub("steps = 8", "stepps = 8"))] = "unknown field stepps",
      [(SCRIPT:gsub("%(state:center", "(state:centre"))] = "centre",
    } do
      local result = watched(text)
      assert.equal(0, result.code, result.err)
      has(result.err, said)
      if not text:find "= = 3" then has(result.err, "the training goes on with the script of before") end
      assert.same(whole, rows())
    end
    -- and where a file is that it loads
    local own = SCRIPT
    for _, load in ipairs { 'require("target")', 'dofile(arg[0]:match "^.*/" .. "target.lua")' } do
      SCRIPT = own:gsub('require%("target"%)', function() return load end)
      local result = watched("return 0.4501 .. {}\n", "target.lua")
      assert.equal(0, result.code, result.err)
      assert.equal(1, select(2, result.err:gsub("the training goes on with the script of before", "")))
      assert.same(whole, rows())
      -- broken once more, and mended
      result = watched("return 0.4501 .. {}\n", "target.lua", "return 0.4501 .. nil\n")
      assert.equal(2, select(2, result.err:gsub("the training goes on with the script of before", "")))
      assert.same(whole, rows())
      watched("return 0.4501 .. {}\n", "target.lua", "return 0.4501\n")
      local same = common(whole, rows())
      assert(same >= 18 and same < 30, same)
    end
    SCRIPT = own
  end)

  it("keeps with the run the script and the modules that run, after it fell back to those of before", function()
    watched((SCRIPT:gsub("steps = 8", "stepps = 8")))
    assert.equal(SCRIPT, process.read(folder .. "/run/script.lua"))
    local result = watched("return 0.4501 .. {}\n", "target.lua")
    has(result.err, "the training goes on with the script of before")
    assert.equal("return 0.4502\n", process.read(folder .. "/run/sources/target.lua"))
    assert.equal(30, #rows())
  end)

  it("takes a script that is saved before its first iteration is made", function()
    local path = process.write(folder .. "/script.lua", [[
local Run, C = require "cq.run", require("cq.base.engine").C
local given = io.open(arg[0] .. ".next")
local run = Run.open { iterations = 2 }
if given then
  local file = io.open(arg[0], "w")
  file:write(given:read "*a")
  file:close()
  os.remove(arg[0] .. ".next")
end
for i = run.done + 1, 2 do
  local began = C.cq_clock()
  while C.cq_clock() - began < 0.15 do end
  if run:interrupted() then break end
  run:record { loss = 1 / i }
end
run:finish()
]])
    local text = process.read(path)
    -- one that goes on, and one that fails, after which that of before goes on
    for ending, said in pairs { ["print 'after'\n"] = "loaded afresh", ["error 'slip'\n"] = "slip" } do
      process.write(path, text)
      process.write(path .. ".next", said == "slip" and ending .. text or text .. ending)
      local result = process.cqlua { "--watch", "--out", folder .. "/run", path }
      assert.is_nil(result.err:find("attempt to", 1, true), result.err)
      assert.equal(0, result.code, result.err)
      has(result.err, "loaded afresh", said)
      assert.equal(2, #rows())
      if said == "slip" then has(result.err, "the training goes on with the script of before") end
    end
    -- and one that fails after a script of before that fails, too: that ends it
    process.write(path, "if io.open(arg[0] .. '.ran') then error 'twice' end\nio.open(arg[0] .. '.ran', 'w'):close()\n"
      .. text)
    process.write(path .. ".next", "error 'slip'\n" .. text)
    local result = process.cqlua { "--watch", "--out", folder .. "/twice", path }
    assert.equal(1, result.code)
    has(result.err, "slip", "the training goes on with the script of before", "twice")
    assert.equal(1, select(2, result.err:gsub("the training goes on with the script of before", "")))
  end)
end)
