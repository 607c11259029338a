-- papers: the table of tests/papers/results.csv in the README, and what its rows name.
local host = require "cq.host"
local results = require "tests.papers.results"

local HEAD = "experiment,quantity,paper,ours,runs,particles,minutes,machine,date,command\n"

describe("tests/papers/results.csv", function()
  local rows = results.rows(results.read(results.csv))

  it("is what the README's table was made from", function()
    local page = results.read(results.page)
    assert(page == results.into(page, rows), "README.md and tests/papers/results.csv differ: make results")
  end)

  it("names examples that exist", function()
    for _, row in ipairs(rows) do
      local script = row.command:match "^cqlua (examples/[%w_]+%.lua)"
        or row.command:match "^cqlua study run (examples/studies/[%w_]+%.lua)"
      assert(script and host.kind(script) == "file", row.experiment .. ": " .. row.command)
    end
  end)
end)

describe("the table of results", function()
  it("has rows with something to compare with, the last of several, experiment by experiment", function()
    local rows = results.rows(HEAD .. 'walk,way,2,1.5,1,100,1,m,d,cqlua a\nwalk,time,,3,1,100,1,m,d,cqlua a\n'
      .. 'swim,way,"a ""b"", c",1,1,100,1,m,d,cqlua b\nwalk,way,2,1.9,3,100,1,m,d,cqlua a --x\n'
      .. "walk,way,2,1.7,3,900,1,m,d,cqlua a\n")
    assert.equal(5, #rows)
    local lines = {}
    for line in results.block(rows):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.same({ "| walk | way | 2 | 1.9 | 3 | 100 | 1 | `cqlua a --x` |",
      "| walk | way | 2 | 1.7 | 3 | 900 | 1 | `cqlua a` |",
      '| swim | way | a "b", c | 1 | 1 | 100 | 1 | `cqlua b` |' }, { unpack(lines, 4, #lines - 1) })
  end)

  it("takes the place of an older one, and changes nothing else", function()
    local rows = results.rows(HEAD .. "walk,way,2,1|5 %1,1,100,1,m,d,cqlua a\n")
    local page = "before\n" .. results.block {} .. "\nafter\n"
    local made = results.into(page, rows)
    assert.equal("before\n" .. results.block(rows) .. "\nafter\n", made)
    assert(made:find("| 1\\|5 %1 |", 1, true))
    assert.equal(made, results.into(made, rows))
  end)

  it("refuses a page without its place, and a line of other cells", function()
    assert.has_error(function() results.into("nothing", {}) end)
    local fine, said = pcall(results.rows, HEAD .. "a,b\n")
    assert.same({ false, "tests/papers/results.csv, line 2: 2 cells, and not 10" }, { fine, said })
    fine, said = pcall(results.rows, HEAD .. '"a,b\n')
    assert(not fine and said:find "line 2: a quote", said)
  end)
end)
