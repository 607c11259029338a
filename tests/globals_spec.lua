-- globals: a script that reads a variable which it has nowhere assigned, or a parameter that its study lacks, is told
-- so, and is not given nil.
local process = require "tests.process"
local says = require("tests.sentence").says
local cqlua = process.cqlua

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function script(content) return process.write(folder .. "/script.lua", content) end

describe("a variable that nothing has assigned", function()
  for content, sentence in pairs {
    ["local gravity = 1\nprint(gravty)"] = "script.lua:2: there is no variable gravty (did you mean gravity?)",
    ["local rate = 1\nlocal function f() return 2 * rte end\nf()"] = "there is no variable rte (did you mean rate?)",
    ["print { fixed = True }"] = "script.lua:1: there is no variable True (Lua's is true)",
    ["print(None == 1)"] = "there is no variable None (Lua's is nil)",
    ["pront(3)"] = "there is no variable pront (did you mean print?)",
    ["print(_G.elsewhere)"] = "there is no variable elsewhere; rawget(_G, \"elsewhere\") is nil where a global",
    ["print(_G[7])"] = "there is no variable 7",
  } do
    it("is an error in a script: " .. content, function()
      local result = cqlua { script(content) }
      assert.equal(1, result.code)
      assert.equal("", result.out)
      says(result.err, sentence)
    end)
  end

  it("is one in a script from standard input, and in one that a study or a check runs", function()
    says(cqlua({ "-" }, { after = "< " .. script "print(foo)" }).err, "stdin:1: there is no variable foo")
    says(cqlua({ "check", script "print(foo)" }).err, "there is no variable foo")
    local study = [[
      local cq = require "cq"
      return cq.Study { name = "s", grid = { a = { 1 } }, run = function(p) return { loss = p.a * scale } end }]]
    says(cqlua({ "study", "run", script(study), "--out", folder .. "/s" }).err, "there is no variable scale")
  end)

  it("is nil to modules, to -e, to rawget, and where nil was assigned", function()
    process.write(folder .. "/module.lua", "return bit32 or polyfill or 5")
    local content = [[
      best = nil
      print(require "module", rawget(_G, "foo"), bit32 or best)
      best = 3
      best = nil
      print(best)]]
    local result = cqlua { script(content) }
    assert.equal(0, result.code, result.err)
    assert.equal("5\tnil\tnil\nnil\n", result.out)
    assert.equal("nil\n", cqlua({ "-e", "print(foo)" }).out)
  end)
end)

describe("a parameter that the study lacks", function()
  local content = [[
    local cq, json, shared = require "cq", require "cq.base.json", require "shared"
    return cq.Study { name = "a", grid = { rate = { 2 }, net = { "relu" } }, run = function(point, trial)
      local count = 0
      for _ in pairs(point) do count = count + 1 end
      assert(json.encode(point) == '{"net": "relu", "rate": 2}' and count == 2 and shared(point) == 7)
      assert(rawget(point, "rte") == nil and point[1] == nil and tostring(trial):find "cq.Trial 1")
      return { loss = %s }
    end }]]

  -- Runs the study, whose loss is an expression, and gives the JSON of its trial.
  local function trial_of(loss)
    process.write(folder .. "/shared.lua", "return function(point) return point.other or 7 end")
    cqlua { "study", "run", script(content:format(loss)), "--out", folder .. "/out", "--force-new" }
    return process.read(folder .. "/out/trials/000001/trial.json")
  end

  it("is an error in a script, as is a field that trials lack, and nil to modules", function()
    says(trial_of "point.rate", '"result": {"loss": 2}')
    says(trial_of "point.rte", "script.lua:7: the study has no parameter rte (did you mean rate?); it has net and rate")
    says(trial_of "trial.sed", "script.lua:7: a trial of a study has no field sed (did you mean seed?); it has number")
  end)
end)
