-- cells: a study's file with nonsense in its cells is told in one sentence, whatever is done with it.
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local study = [[
local cq = require "cq"
return cq.Study {
  name = "cells", trials = 4, repeats = 2, space = { x = cq.Space.uniform(0, 1), net = cq.Space.choice { "a", "b" } },
  sampler = "tpe", pruner = cq.Pruner.median { trials = 2 }, process = "job",
  run = function(p, trial)
    trial.report(1, p.x)
    if trial.number == 3 then error "as it must" end
    return { loss = p.x, more = 2 }
  end,
}]]

-- Mangles cells of a copy, one at a time, and looks at it in every way; prints each error.
local mangle = [[
local sqlite, sessions = require "cq.study.sqlite", require "cq.study.session"
local report, runners = require "cq.study.report", require "cq.study.runner"
local option, random = require "cq.option", require "cq".random { seed = 5 }
local folder = option("folder", "")
option.program.out, option.program.quiet = folder .. "/out", true
local columns = {
  trial = { "number", "state", "point", "attempts", "worker", "began", "beat", "ended", "result", "problem", "step",
    "value", "serial" },
  report = { "trial", "name", "step", "value" }, rung = { "step", "trial", "value" }, study = { "key", "value" },
}
local tables = { "trial", "trial", "trial", "report", "rung", "study" }
local nonsense = { "NULL", "''", "'running'", "'done'", "'nonsense'", "-1", "0.5", "9e999", "1e15", "x'00ff80'", "'{}'",
  "'[1]'", "'{\"x\": \"a\"}'", "'{\"x\": 7, \"net\": 9}'", "'{\"loss\": null}'", "'{'", "'[[[[1'", "'a/b/c'" }
local function pick(list) return list[random:integers({ 1 }, { min = 1, max = #list }):item()] end
local show = print
print = function() end
local told = 0
for k = 1, option("count", 300) do
  os.execute(("rm -f %s/out/study.sqlite*; cp %s/kept.sqlite %s/out/study.sqlite"):format(folder, folder, folder))
  local name = pick(tables)
  local column, value = pick(columns[name]), pick(nonsense)
  local change = ("UPDATE OR IGNORE %s SET %s = %s WHERE rowid = %d"):format(name, column, value,
    random:integers({ 1 }, { min = 1, max = 6 }):item())
  local base = sqlite.open(folder .. "/out/study.sqlite")
  pcall(base.run, base, change)
  base:close()
  local session = sessions.open(folder .. "/s.lua")
  local looks = {
    status = function() report.status(session) end, json = function() report.status(session, true) end,
    show = function() report.show(session, k % 8 + 1) end, export = function() report.export(session) end,
    curves = function() report.export(session, true) end,
    begin = function()
      local store = session:begin {}
      local one = store:claim("a/1/1", 100, 1e9)
      if one and one.point then require("cq.base.json").decode(one.point) end
      require("cq.study.history").new(session.study, store):refresh()
    end,
    plot = function()
      if k % 10 ~= 0 then return end
      local store, looked = session:look()
      require "cq.study.plot"(looked, store, folder .. "/plots")
    end,
  }
  for look, f in pairs(looks) do
    local fine, problem = xpcall(f, function(p)
      return require("cq.base.schema").is_failure(p) and "told" or debug.traceback(tostring(p))
    end)
    if session.store then pcall(session.store.close, session.store) end
    session.store = nil
    if not fine and problem ~= "told" then show(look, change, problem) end
    told = told + (problem == "told" and 1 or 0)
  end
end
show("told", told)
]]

describe("a study's file", function()
  it("holds trials that report NaN, and is moved away by --force-new however damaged it is", function()
    process.write(folder .. "/v.lua", [[
local cq = require "cq"
return cq.Study { name = "v", trials = 6, space = { a = cq.Space.uniform(0, 1) }, minimize = "m",
  pruner = cq.Pruner.median { trials = 1 }, process = "job",
  run = function(p, trial) trial.report(1, p.a > 0.5 and 0 / 0 or p.a) return { m = p.a } end }
]])
    local function command(verb, ...)
      return process.cqlua { "study", verb, folder .. "/v.lua", "--out", folder .. "/out", ... }
    end
    assert.equal(0, command "run".code)
    local seen = command "status"
    assert.equal(0, seen.code, seen.err)
    assert.is_truthy(seen.out:find("pruned", 1, true), seen.out)
    process.write(folder .. "/out/study.sqlite", process.read(folder .. "/out/study.sqlite"):sub(1, 5000))
    os.remove(folder .. "/out/study.sqlite-wal")
    assert.equal(1, command "status".code)
    local again = command("run", "--force-new")
    assert.equal(0, again.code, again.err)
    assert.is_truthy(process.read(folder .. "/out/earlier-1/study.sqlite"))
  end)
end)

describe("a study's file that lacks a part of the definition", function()
  it("is told in one sentence, by the report too", function()
    process.write(folder .. "/s.lua", study)
    local out = folder .. "/out"
    assert.equal(0, process.cqlua { "study", "run", folder .. "/s.lua", "--out", out, "--quiet" }.code)
    for _, part in ipairs { "objectives", "space" } do
      local base = require("cq.study.sqlite").open(out .. "/study.sqlite")
      base:run("DELETE FROM study WHERE key = ?", "def." .. part)
      base:close()
      for _, words in ipairs { { "report", out }, { "study", "status", folder .. "/s.lua", "--out", out } } do
        local result = process.cqlua(words)
        assert.equal(1, result.code)
        assert.is_truthy(result.err:find(('study.sqlite is damaged: the definition has %s = "nothing"'):format(part), 1,
          true), result.err)
        assert.is_nil(result.err:find("traceback", 1, true))
      end
    end
  end)
end)

describe("a study's file with nonsense in a cell", function()
  it("is told in one sentence", function()
    process.write(folder .. "/s.lua", study)
    local run = process.cqlua { "study", "run", folder .. "/s.lua", "--out", folder .. "/out", "--quiet" }
    assert(run.code == 0, run.err)
    local base = require("cq.study.sqlite").open(folder .. "/out/study.sqlite")
    base:run "UPDATE trial SET state = 'waiting', serial = NULL WHERE number = 8"
    base:copy_to(folder .. "/kept.sqlite")
    base:close()
    local script = process.write(folder .. "/mangle.lua", mangle)
    local result = process.cqlua { script, "--folder", folder, "--count", "100" }
    assert(result.code == 0, result.err)
    local told = result.out:match "^told\t(%d+)\n$"
    assert.is_truthy(told, result.out:sub(1, 3000))
    assert.is_true(tonumber(told) > 60, told)
  end)
end)
