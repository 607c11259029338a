-- globals: a script that reads a variable which it has nowhere assigned is told so, and is not given nil.
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
