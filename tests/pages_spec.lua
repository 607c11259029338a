-- pages: the generated tables of README.md and docs/, from results.csv and the first comments of the examples.
local examples = require "tests.pages.examples"
local marks = require "tests.pages.marks"
local results = require "tests.pages.results"
local source = require "tests.source"
local write = require "tests.pages.write"

local HEAD = "experiment,quantity,unit,paper,ours,median,best,worst,runs,particles,minutes,machine,date,command,"
  .. "headline,note,artefact,conditions,kept_dt,kept_grid,kept_5pct\n"

describe("a page with generated tables", function()
  for path, page in pairs(write.pages()) do
    it(("is up to date: %s"):format(path), function()
      assert(source.read(path) == page, path .. " differs from what it is made from: make docs")
    end)
  end

  it("keeps what stands around a table", function()
    local page = "before\n<!-- walk: made by `make docs` -->\nold\n<!-- end of walk -->\nafter\n"
    local new = marks.into(page, "walk", "a | b %1")
    assert.equal("before\n<!-- walk: made by `make docs` -->\na | b %1\n<!-- end of walk -->\nafter\n", new)
    assert.equal(new, marks.into(new, "walk", "a | b %1"))
    assert.has_error(function() marks.into("nothing", "walk", "x") end)
  end)
end)

describe("the front page", function()
  it("has at most 120 lines and 1,300 words", function()
    local page = source.read "README.md"
    local lines, words = select(2, page:gsub("\n", "")), select(2, page:gsub("%S+", ""))
    assert(lines <= 120 and words <= 1300, ("%d lines, %d words"):format(lines, words))
  end)
end)

describe("a page of the guide", function()
  for _, path in ipairs { "docs/topology.md", "docs/implicit.md" } do
    it(("has at most 2,500 words: %s"):format(path), function()
      local words = select(2, source.read(path):gsub("%S+", ""))
      assert(words <= 2500, words .. " words")
    end)
  end
end)

describe("a table of results", function()
  local rows = results.rows(HEAD .. 'walk,way,m,"a ""b"", c",,2,3,1,8,100,1,m,d,cqlua a,A walk,steps | half,walker,'
    .. '"step: 0.25 ms | 0.1 ms","95, 90",80,99\n'
    .. "swim,way [m],m,,1.5,,,,1,100,1,m,d,cqlua b,,,none,,,,\n"
    .. "swim T 2,time,,,2,,,,1,100,1 each,m,d,cqlua c,,,none,,,,\n")

  it("has all rows, with units, and spread of several runs", function()
    assert.equal([[
### walk

|  | quantity | paper, theory or measurement | ours | kept [%] |
|---|---|---|---|---|
| 1 | way [m] | a "b", c | median 2, 3 to 1 in 8 runs | 95, 90; 80; 99 |

1. `cqlua a`, 100 particles, 1 min, zoo/walker. Here step: 0.25 ms. In the paper step: 0.1 ms. Steps | half.

### swim

|  | quantity | paper, theory or measurement | ours | kept [%] |
|---|---|---|---|---|
| 1 | way [m] |  | 1.5 |  |
| 2 | swim T 2: time |  | 2 |  |

1. `cqlua b`, 100 particles, 1 min.
2. `cqlua c`, 100 particles, 1 min each.]], results.all(rows))
  end)

  it("has headlines alone in the README", function()
    assert(results.headlines(rows):find("| A walk |", 1, true))
    assert(not results.headlines(rows):find("swim", 1, true))
  end)

  it("refuses conditions that do not say ours and those of the paper", function()
    local row = { experiment = "walk", conditions = "step: 0.25 ms" }
    assert.same({ false, 'walk: conditions must be "name: ours | of the paper", got "step: 0.25 ms"' },
      { pcall(results.conditions, row) })
  end)

  it("refuses a line of other cells", function()
    local fine, said = pcall(results.rows, HEAD .. "a,b\n")
    assert.same({ false, "tests/papers/results.csv, line 2: 2 cells, and not 21" }, { fine, said })
    fine, said = pcall(results.rows, HEAD .. '"a,b\n')
    assert(not fine and said:find "line 2: a quote", said)
    assert.has_error(function() results.rows "a,b\n" end)
  end)
end)

describe("the first comment of an example", function()
  it("has a description, a command and four fields", function()
    local head = examples.head("-- It walks. Far.      cqlua examples/a.lua\n-- Source: a book (J. Doe 1999), p. 3.\n"
      .. "-- Expect: 0.5 m. Or\n-- more. Size: 10 particles. Time: 2 s.\nlocal a = 1\n")
    assert.same({ what = "It walks. Far.", command = "cqlua examples/a.lua", source = "a book (J. Doe 1999), p. 3",
      expect = "0.5 m. Or more", size = "10 particles", time = "2 s" }, head)
    head = examples.head("-- It walks.      cqlua examples/a.lua\n-- Source: none. Expect: 1 m.\n-- Kept: 95 % of it.\n"
      .. "-- Size: 10 particles. Time: 2 s.\nlocal a = 1\n")
    assert.equal("95 % of it", head.kept)
    assert.equal("1 m", head.expect)
  end)
end)
