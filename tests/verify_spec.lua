-- verify: `cqlua verify`: its quick cases keep their promises, the table and the page agree, mistakes are sentences.
local csv = require "cq.base.csv"
local host = require "cq.host"
local json = require "tests.json"
local page = require "tests.verification"
local process = require "tests.process"
local verification = require "cq.measure.verification"
local cqlua = process.cqlua

local function in_folder(body)
  return function()
    local folder = process.folder()
    body(folder)
    process.remove(folder)
  end
end

local CASE = [[
return { summary = "a test", source = "none", quick = true, %s run = function(row)
  row { method = "explicit", quantity = "a number", exact = 2, ours = { 2.4, 2.1 }, refined = { 4, 8 }, by = "cells",
    promise = %s, order = %s, falls_short = %s, at_most = %s }
end }
]]

local function case(folder, name, fields)
  local given = fields or {}
  process.write(folder .. "/" .. name .. ".lua", CASE:format(given.more or "", given.promise or "0.1",
    given.order or "nil", given.falls_short and ("%q"):format(given.falls_short) or "nil", given.at_most or "nil"))
end

local function verify(folder, ...) return cqlua { "verify", "--cases", folder, ... } end

local function refused(code, sentence, result)
  assert.equal(code, result.code, result.out .. result.err)
  assert(result.err:find(sentence, 1, true), result.err)
end

describe("verify", function()
  it("keeps the promises of the quick cases", function()
    local result = cqlua(process.sanitized() and { "verify", "stretch", "spin", "--json" }
      or { "verify", "--quick", "--json" })
    assert.same({ 0, "" }, { result.code, result.err })
    local rows = json.lines(result.out)
    assert(#rows >= 20, #rows)
    for _, row in ipairs(rows) do
      assert(type(row.ours) == "table" and type(row.error) == "number" and row.source, row.case)
    end
  end)

  it("prints exact, ours, error, order and promise of each row", in_folder(function(folder)
    case(folder, "one")
    local result = verify(folder)
    assert.equal(0, result.code, result.err)
    assert(result.out:find("explicit +a number +2 +2.4 2.1 +4 8 cells +0.05 +2.0 +0.1 +kept"), result.out)
    local row = json.lines(verify(folder, "--json").out)[1]
    assert.same({ 2, { 2.4, 2.1 }, { 4, 8 }, true }, { row.exact, row.ours, row.refined, row.kept })
    assert.near(2, row.order, 1e-6)
  end))

  it("fails where a promise is not kept without a reason, or kept beside one", in_folder(function(folder)
    case(folder, "one", { promise = "0.01" })
    refused(1, "one, explicit, a number: an error of 0.05 is beyond what is promised, 0.01", verify(folder))
    case(folder, "one", { order = "2.5" })
    refused(1, "an error of 0.05", verify(folder))
    case(folder, "one", { promise = "0.01", falls_short = "the grid is coarse", at_most = "0.06" })
    local result = verify(folder)
    assert.equal(0, result.code, result.err)
    assert(result.out:find("NOT KEPT\n +because the grid is coarse"), result.out)
    case(folder, "one", { falls_short = "the grid is coarse", at_most = "0.2" })
    refused(1, "keeps its promise: its reason for falling short must go", verify(folder))
  end))

  it("holds a row that falls short to its largest error, and a failed one to nothing", in_folder(function(folder)
    case(folder, "one", { promise = "0.01", falls_short = "the grid is coarse", at_most = "0.04" })
    refused(1, "an error of 0.05 is beyond 0.04, the most that a row that falls short may have", verify(folder))
    case(folder, "one", { promise = "0.01", falls_short = "the grid is coarse" })
    refused(1, "a number falls short of its promise; such a row has at_most", verify(folder))
    process.write(folder .. "/one.lua", (CASE:format("", "0.1", "nil", '"it fails"', "0.2"):gsub("2%.1", "0 / 0")))
    refused(1, "an error of ", verify(folder))
  end))

  it("asks why the finest resolution is not nearer, and says it where it is so", in_folder(function(folder)
    local function stalled(more)
      process.write(folder .. "/one.lua", (CASE:format("", "0.1", "nil", "nil", "nil" .. more):gsub("2%.4", "2.05")))
    end
    stalled ""
    refused(1, "one, explicit, a number: the finest resolution is not nearer than the one before (order -1)", verify(folder))
    stalled ', plateau = "the lattice has steps"'
    local result = verify(folder)
    assert.equal(0, result.code, result.err)
    assert(result.out:find("kept\n +because the lattice has steps"), result.out)
    case(folder, "one", { at_most = 'nil, plateau = "the lattice has steps"' })
    assert(not verify(folder).out:find "because")
  end))

  it("keeps a table in which a case replaces its own rows", in_folder(function(folder)
    local path = folder .. "/kept.csv"
    case(folder, "one")
    case(folder, "two")
    assert.equal(0, verify(folder, "--csv", path).code)
    case(folder, "one", { promise = "0.2" })
    assert.equal(0, verify(folder, "one", "--csv", path).code)
    local rows = csv.read(process.read(path), verification.columns, path)
    assert.same({ "one", "0.2", "two", "0.1" }, { rows[1].case, rows[1].promise, rows[2].case, rows[2].promise })
    assert.equal("cqlua verify two", rows[2].command)
  end))

  it("refuses a name that is not there, with what is", function()
    refused(2, "verify has no case sping (did you mean spin?); its cases are ", cqlua { "verify", "sping" })
  end)

  it("refuses a folder without cases, and a file that is none", in_folder(function(folder)
    refused(2, "there is no folder " .. folder .. "/none; they come with the source tree", verify(folder .. "/none"))
    refused(2, "has no file of Lua", verify(folder))
    process.write(folder .. "/a.lua", "return 3")
    refused(1, "a.lua returns 3, and no case", verify(folder))
    process.write(folder .. "/a.lua", "return { summary = 'a', sorce = 'b' }")
    refused(1, "a case has the strings summary and source", verify(folder))
    process.write(folder .. "/a.lua", "return { summary = 'a', source = 'b' }")
    refused(1, "a.lua has no run", verify(folder))
  end))

  it("refuses a table that cannot be written, before it runs a case", in_folder(function(folder)
    case(folder, "one")
    local result = verify(folder, "--csv", folder .. "/none/a.csv")
    refused(2, "--csv cannot write " .. folder .. "/none/a.csv", result)
    assert.equal("", result.out)
    local other = process.write(folder .. "/b.csv", "a,b\n1,2\n")
    refused(2, "--csv: " .. other .. ", line 1: 2 cells, and not 16", verify(folder, "--csv", other))
  end))

  it("says which case this machine has not the memory for, and runs the others", in_folder(function(folder)
    case(folder, "huge", { more = 'memory = "4000 TiB",' })
    case(folder, "small")
    local result = verify(folder)
    refused(1, "huge needs 4000 TiB of memory, and this machine has ", result)
    assert(result.out:find "small: a test\n.*kept", result.out)
  end))

  it("says in a sentence which case failed, and keeps its old rows", in_folder(function(folder)
    local path = folder .. "/kept.csv"
    case(folder, "one")
    assert.equal(0, verify(folder, "--csv", path).code)
    process.write(folder .. "/one.lua", "return { summary = 'a', source = 'b', run = function() error 'no' end }")
    refused(1, "one failed: ", verify(folder, "--csv", path))
    assert(process.read(path):find "\none,explicit", process.read(path))
  end))
end)

describe("docs/verification.md", function()
  it("is what tests/verify/results.csv makes", function()
    assert(process.read(page.page) == page.text(), page.page .. " and " .. page.csv .. " differ: make verify")
  end)

  it("has rows of every case, and of no other", function()
    local rows, cases = page.rows(), {}
    for _, found in ipairs(verification.cases(host.root .. "/" .. page.folder)) do
      cases[found.name] = true
      assert(rows[found.name], found.name .. " has no rows in tests/verify/results.csv: make verify")
    end
    for name in pairs(rows) do assert(cases[name], "tests/verify/results.csv has rows of no case, " .. name) end
  end)
end)
