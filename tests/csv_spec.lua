-- csv: files of numbers as devices and spreadsheets write them, what is wrong with those that are mangled, and what a
-- rollout recorded at the times that stand in one.
local cq = require "cq"
local host = require "cq.host"
local process = require "tests.process"
local scene = require "tests.scene"
local mistake = require "tests.sentence"
local sentence = mistake.of

local function says(text, ...)
  for _, part in ipairs { ... } do mistake.says(text, part) end
end

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local function file(content) return process.write(folder .. "/a.csv", content) end

local function read(content, options) return cq.csv(file(content), options) end

local function read_all(content, options)
  local data = read(content, options)
  for _, name in ipairs(data:names()) do data:column(name) end
end

describe("cq.csv", function()
  it("reads columns by their names, and units behind them", function()
    local data = read "time [s],tip x (mm),force\n0.5,1,-2e-3\n1.0,+2.5,.5\n"
    assert.same({ 0.5, 1 }, data.time:totable())
    assert.same({ 1, 2.5 }, data["tip x"]:totable())
    assert.same({ -2e-3, 0.5 }, data:column("force"):totable())
    assert.same({ "time", "tip x", "force" }, data:names())
    assert.equal("s", data:unit "time")
    assert.equal("mm", data:unit "tip x")
    assert.is_nil(data:unit "force")
    says(tostring(data), "a.csv, 2 rows: time [s], tip x [mm], force }")
  end)

  it("reads what spreadsheets of all systems write", function()
    for _, content in ipairs {
      "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "\239\187\191a,b\n1,2\n3,4\n", "a;b\n1;2\n3;4\n",
      "a\tb\n1\t2\n3\t4\n", '"a","b"\n"1","2"\n3 , 4\n', "# of the second run\n\n a , b \n1,2\n\n# later\n3,4\n\n\n",
    } do
      local data = read(content)
      assert.same({ { 1, 3 }, { 2, 4 } }, { data.a:totable(), data.b:totable() }, content)
    end
    assert.same({ 1 }, read('"x, ""left"" [m]",y\n1,2\n')['x, "left"']:totable())
    assert.same({ 7, 8 }, read("only\n7\n8\n").only:totable())
  end)

  it("takes #N/A in the first column, and gaps between tabs, for rows", function()
    for content, rows in pairs {
      ["tip,time\n1,0\n#N/A,1\n3,2\n"] = 3, ["tip\ttime\n1\t0\n\t\n3\t2\n"] = 3, ["tip,time\n1,0\n,\n3,2\n"] = 3,
      ["tip\ttime\r\n1\t0\r\n #n/a\t1\r\n3\t2\r\n  \r\n"] = 3, ["tip\n1\n#N/A\n3\n"] = 3,
      ["#N/A is a gap\ntip,time\n1,0\n#n/a: none\n\t\n3,2\n"] = 2,
    } do
      local data = read(content, { gaps = true })
      assert.equal(rows, data.tip:size(1), content)
      if rows == 3 then assert.is_true(data.tip:get(2) ~= data.tip:get(2)) end
      assert.equal(3, data.tip:get(rows))
    end
    says(sentence(read_all, "tip,time\n1,0\n#N/A,1\n"), 'column tip in line 3', "; gaps = true reads it as nan")
    says(sentence(read_all, "tip\ttime\n1\t0\n\t\n"), "column tip in line 3", "empty; gaps = true reads it as nan")
  end)

  it("finds the separator by the rows of numbers, and decimals after commas beside semicolons and tabs", function()
    for _, content in ipairs {
      "Zeit, s;Weg, mm\n0,02;1,5\n0,04;-1,75e1\n", "Zeit, s\tWeg, mm\n0,02\t1,5\n0,04\t-17,5\n",
      "Zeit, s;Weg, mm\n0,02;1,5\n,04;-17,50\n", "\"Zeit, s\",\"Weg, mm\"\n0.02,1.5\n0.04,-17.5\n",
      "Zeit, s;Weg, mm\n0.02;1.5\n0.04;-17.5\n",
    } do
      local data = read(content)
      assert.same({ "Zeit, s", "Weg, mm" }, data:names(), content)
      assert.same({ { 0.02, 0.04 }, { 1.5, -17.5 } }, { data["Zeit, s"]:totable(), data["Weg, mm"]:totable() }, content)
    end
    assert.same({ 1, 2.5 }, read("t;x\n0;1\n1;2,5\n").x:totable())
    assert.same({ 2 }, read("time [s],tip; left,y;z\n1,2,3\n")["tip; left"]:totable())
    assert.same({ 1.5, 2 }, read("x\n1,5\n2\n", { decimal = "," }).x:totable())
    assert.same({ 2.5 }, read("t,x\n1,\"2,5\"\n", { decimal = "," }).x:totable())
    assert.same({ 1.234 }, read("t;x\n1;1,234\n", { decimal = "," }).x:totable())
    assert.same({ "t, x", "y" }, read("t, x;y\n1, 2;3\n", { separator = ";" }):names())
  end)

  it("reads columns by their numbers, heads of several lines, and files without names", function()
    local data = read "t,pressure [kPa],pressure [psi],pressure\n0,1,2,3\n"
    assert.same({ { 1 }, { 2 }, { 3 } }, { data:column(2):totable(), data[3]:totable(), data:column(4):totable() })
    assert.equal("psi", data:unit(3))
    says(tostring(data), "t, pressure [kPa], pressure [psi], pressure }")
    says(sentence(function() return data.pressure end), "columns 2 and 3 of", "are called \"pressure\"")
    says(sentence(data.column, data, 5), "has no column 5; its columns are t, pressure, pressure, pressure")
    says(sentence(data.column, data, 1.5), "has no column 1.5")
    -- as DeepLabCut writes it
    local tracked = "scorer,m,m,m,m\nbodyparts,tip,tip,mid,mid\ncoords,x,y,x,y\n0,1,2,3,4\n1,5,6,7,8\n"
    assert.same({ 4, 8 }, read(tracked, { skip = 2 }):column(5):totable())
    local named = read(tracked, { skip = 3, names = { "n", "tip x [px]", "tip y", "mid x", "mid y" } })
    assert.same({ 3, 7 }, named["mid x"]:totable())
    assert.same({ 2.5 }, read("Logger \"7\n\n1,5;2,5\n", { skip = 1, names = { "a", "b" } }).b:totable())
    assert.same({ 1, 2 }, read("1\n2\n", { names = { "n [1]" } }).n:totable())
    says(sentence(read, "a,b\n1,2\n", { skip = 2 }), "is empty after line 2; its first line must name the columns")
    says(sentence(read, "1,2\n", { names = { "a" } }), "line 1 of", "has 2 values, and there are 1 column: a")
    says(sentence(read, "1,2\n", { names = "a" }), "names must be a list")
    says(sentence(read, "1,2\n", { skip = -1 }), "skip must be a whole number at least 0, got -1")
  end)

  it("reads gaps as nan where they are asked for, and leaves out rows with gaps", function()
    local content = "t,tip,mid,note\n0,1,nan,a\n1,,2,b\n2,NaN,N/A,c\n3,4,#n/a,d\n4,5,6,e\n"
    local data = read(content, { gaps = true })
    assert.same({ "1", "nan", "nan", "4", "5" }, (function(out)
      for k, x in ipairs(data.tip:totable()) do out[k] = x == x and tostring(x) or "nan" end
      return out
    end) {})
    local tip = data:without_gaps { "tip" }
    assert.same({ { 0, 3, 4 }, { 1, 4, 5 } }, { tip.t:totable(), tip.tip:totable() })
    says(tostring(tip), "3 rows: t, tip, mid, note }")
    assert.same({ 1, 4 }, data:without_gaps({ 3 }).t:totable())
    assert.same({ 4 }, data:without_gaps().t:totable())
    assert.same({ 5 }, tip:without_gaps({ "mid" }).tip:totable())
    says(sentence(data.without_gaps, data, { "note" }), "column note in line 2 of", "is \"a\", no finite number")
    says(sentence(data.without_gaps, data, { "tpi" }), "did you mean tip?")
    says(sentence(data.without_gaps, data, "tip"), "csv:without_gaps: names must be a list", "got \"tip\"")
    data = read("a,b\n1,\n,2\n", { gaps = true })
    says(sentence(data.without_gaps, data), "csv:without_gaps: every row of", "has a gap")
    local path, x = folder .. "/gaps.csv", { 1, 0 / 0, 3 }
    says(sentence(cq.csv.save, path, { { "x", x } }), "column x must be finite; gaps = true writes nan as an empty cell")
    says(sentence(cq.csv.save, path, { { "x", { 1 / 0 } } }, { gaps = true }), "column x must be finite")
    says(sentence(cq.csv.save, path, { { "x", x } }, { gap = true }), "unknown field gap (did you mean gaps?)")
    for _, columns in ipairs { { { "x", x } }, { { "x", x }, { "y", { 0 / 0, 0 / 0, 4 } } } } do
      cq.csv.save(path, columns, { gaps = true })
      assert.equal("nan", tostring(cq.csv(path, { gaps = true }).x:get(2)):match "nan")
      assert.same({ 1, 3 }, cq.csv(path, { gaps = true }):without_gaps({ "x" }).x:totable())
    end
  end)

  it("refuses names that are not as many as the values", function()
    for _, names in ipairs { { "a", "b", "c" }, { "a" } } do
      says(sentence(read_all, "1,5;2,5\n3,5;4,5\n", { names = names }), "has 2 values between semicolons")
    end
    assert.same({ 2.5, 4.5 }, read("1,5;2,5\n3,5;4,5\n", { names = { "a", "b" } }).b:totable())
  end)

  it("refuses what may be read in two ways", function()
    -- a column at a time, when it is asked for
    local mixed = read("t;x;pixel\n1.5;2;10,20\n")
    assert.same({ 1.5, 2 }, { mixed.t:item(), mixed.x:item() })
    says(sentence(function() return mixed.pixel end), "has 10,20 in line 2 and 1.5 in line 2; give decimal")
    local cases = {
      { "t;x\n1;1,234\n2;12,345\n", nil, "has 1,234 in line 2, where the comma may stand before decimals or between thousands",
        "; give decimal = \",\" or decimal = \".\"" },
      { "t;x\n0,5;1.25\n", nil, "has 0,5 in line 2 and 1.25 in line 2; give decimal = \",\" or decimal = \".\"" },
      { "a;b\tc\n1;x\t2\n", nil, "may have semicolons or tabs between its values; give separator = \";\"" },
      { "t;x\n0,5;1.25\n", { decimal = "," }, "column x in line 2 of", "\"1.25\", no finite number; decimals stand after a comma" },
      { "t;x\n1;1,234\n", { decimal = "." }, "\"1,234\", no finite number; decimals stand after a point" },
      { "a,b\n1,2\n", { decimals = "," }, "unknown field decimals (did you mean decimal?)" },
      { "a,b\n1,2\n", { separator = "|" }, "separator must be one of \",\", \";\", \"\\t\", got \"|\"" },
      { "a,b\n1,2\n", "x", "takes one table of named fields, got \"x\"" },
    }
    for _, case in ipairs(cases) do
      local got = sentence(read_all, case[1], case[2])
      for k = 3, table.maxn(case) do says(got, case[k]) end
    end
  end)

  it("says what is wrong, and in which line", function()
    local cases = {
      { "", "a.csv is empty; its first line must name the columns" },
      { "\n# nothing\n", "is empty" },
      { "a,b\n", "has the columns a, b and no rows" },
      { "1,2\n3,4\n", "begins with numbers in line 1; its first line must name the columns, as time [s],tip [mm],",
        "unless names = { ... } does" },
      { "a,b\n1,2\n3\n", "line 3 of", "has 1 value, and there are 2 columns: a, b" },
      { "a,b\n1,2,3\n", "line 2 of", "has 3 values, and there are 2 columns" },
      { "a,b\n\n1,x\n", "column b in line 3 of", "is \"x\", no finite number" },
      { "a,b\n1,nan\n", "is \"nan\", no finite number; gaps = true reads it as nan" }, { "a,b\n1,1e999\n", "no finite number" },
      { "a,b\n1,0x10\n", "\"0x10\", no finite number" },
      { "a,b\n1,\"2,5\"\n", "\"2,5\", no finite number; decimals stand after a point, or after a comma with decimal = \",\"" },
      { "a,a\n1,2\n", "columns 1 and 2 of", "are called \"a\"; csv:column(1) reads the first" },
      { "a,,c\n1,2,3\n", "column 2 of", "has no name in line 1; skip = 1 with names = { ... } names all columns" },
      { "a,b\n1,\"2\n", "line 2 of", "has a quote without an end" }, { "\"a,b\n", "line 1 of", "quote without an end" },
      { "a\0,b\n1,2\n", "holds NUL bytes" },
    }
    for _, case in ipairs(cases) do
      local got = sentence(read_all, case[1])
      for k = 2, #case do says(got, case[k]) end
    end
    local gap = read "a [m],b [s]\n1,2\n3,\n"
    assert.same({ 1, 3 }, gap.a:totable())
    assert.equal("s", gap:unit "b")
    says(sentence(function() return gap.b end), "column b in line 3 of", "is empty; gaps = true reads it as nan")
    local data = read "time,tip\n1,2\n"
    says(sentence(function() return data.tpi end), "a.csv has no column \"tpi\" (did you mean tip?)",
      "; its columns are time, tip")
    says(sentence(function() data:unit "x" end), "has no column \"x\"")
    says(sentence(function() data.tip = 3 end), "cannot be set in it")
    says(sentence(function() data.names() end), "a method is called with a colon")
    says(sentence(cq.csv, folder .. "/none.csv"), "cq.csv: cannot read", "No such file")
    os.execute(("truncate -s 3G '%s/large.csv'"):format(folder))
    says(sentence(cq.csv, folder .. "/large.csv"), "cq.csv: cannot read", "it is larger than 1 GiB, the most that is read")
    says(sentence(cq.csv, "a\0b"), "with a NUL byte at position 2")
    says(sentence(cq.csv, 3), "path must be a string")
    says(sentence(cq.csv, folder), "cannot read")
  end)

  it("reads columns of numbers beside others of texts, which are told when they are asked for", function()
    local data = read "trial,state,loss\n1,done,0.5\n2,done,0.25\n"
    assert.same({ 0.5, 0.25 }, data.loss:totable())
    assert.same({ "trial", "state", "loss" }, data:names())
    says(sentence(function() return data.state end), "column state in line 2 of", "is \"done\", no finite number")
  end)

  it("is read beside the script, wherever it is started", function()
    file "a,b\n1,2\n"
    local script = process.write(folder .. "/script.lua", 'print(require("cq").csv("a.csv").b:item())')
    assert.equal("2\n", process.cqlua({ script }, { before = "cd / &&" }).out)
    local own = process.write(folder .. "/own.lua", [[local cq = require "cq"
      print(#cq.csv("scenes/assets/bar_swing.csv"):names() > 0)
      print(cq.Shape.mesh { path = "scenes/assets/creature.stl" }.dim)
      cq.csv "scenes/assets/none.csv"]])
    local result = process.cqlua({ own }, { before = "cd / &&" })
    assert.equal("true\n3\n", result.out)
    says(result.err, "cannot read 'scenes/assets/none.csv'")
  end)

  it("writes what it reads, to the last digit, and no half of a file", function()
    local path, x = folder .. "/out.csv", cq.random({ seed = 1 }):normal { 50 }
    assert.equal(path, cq.csv.save(path, { { "x [m]", x }, { "a, \"b\"", (x * 1e-300):totable() } }))
    local data = cq.csv(path)
    assert.same(x:totable(), data.x:totable())
    assert.same((x * 1e-300):totable(), data['a, "b"']:totable())
    says(sentence(cq.csv.save, path, {}), "columns must be a list")
    says(sentence(cq.csv.save, path, { { "x", x }, { "y", { 1, 2 } } }), "column y must be a vector of 50 numbers as x")
    says(sentence(cq.csv.save, path, { { "x", cq.ones { 2, 2 } } }), "column x must be a vector, got a tensor {2, 2}")
    says(sentence(cq.csv.save, path, { { x } }), "column 1 must be { \"name\"")
    says(sentence(cq.csv.save, path, { { "x [m]", x }, { "x [s]", x } }), "column 2 is called \"x [s]\", as another one")
    says(sentence(cq.csv.save, path, { { "x\ny", x } }), "must be one line")
    says(sentence(cq.csv.save, path, { { "#x", x } }), "does not begin with #")
    says(sentence(cq.csv.save, path, { { "a\0b", x } }), "must be one line")
    says(sentence(cq.csv.save, path, { { " [mm]", x } }), "column 1 is called \" [mm]\", which is a unit without a name")
    says(sentence(cq.csv.save, path, { { "1", x }, { "2,5 [s]", x } }), "columns are called 1, \"2,5 [s]\", which cq.csv "
      .. "would read as numbers; one name must be none")
    says(sentence(cq.csv.save, path, { { "x", {} } }), "column x has no numbers")
    says(sentence(cq.csv.save, path, { nil, { "x", x } }), "cq.csv.save: columns: entry 1 is nil, and entry 2 follows")
    says(sentence(cq.csv.save, path, { { "x", x }, [3] = { "y", x } }), "entry 2 is nil, and entry 3 follows")
    says(sentence(cq.csv.save, path, { { "x", x / 0 } }), "column x must be finite")
    says(sentence(cq.csv.save, folder .. "/no/where.csv", { { "x", x } }), "cannot be written: there is no folder")
    says(sentence(cq.csv.save, "a\0b", { { "x", x } }), "with a NUL byte at position 2")
    local full = process.cqlua({ "-e", ('cq.csv.save(%q, { { "x", cq.zeros { 9000 } } })'):format(path) },
      { before = "ulimit -f 8;" })
    assert.equal(1, full.code)
    assert.same(x:totable(), cq.csv(path).x:totable())
    assert.same({ "out.csv" }, host.entries(folder))
  end)
end)

describe("cq.csv.save", function()
  it("writes names that cq.csv reads", function()
    for _, names in ipairs { { " a ", "b" }, { "a\tb" }, { "a;b" }, { "a,b", "c;d" }, { " " }, { 'q"x' }, { "1", "b" },
      { "nan", "2" }, { "a\v" }, { "x ", "x" } } do
      local columns = {}
      for k, name in ipairs(names) do columns[k] = { name, { 1, 2 } } end
      assert.same(names, cq.csv(cq.csv.save(folder .. "/names.csv", columns)):names())
    end
  end)
end)

describe("what a rollout recorded", function()
  local robot = scene.robot()
  local world = scene.world(robot)
  local dt = world.control_dt
  local function rolled(young)
    return world:rollout { steps = 12, robot = young and robot:with { young = young }, record = function(state)
      return state:center(robot)
    end, running = function(state) return state:velocity(robot)[1] end }
  end

  it("is linear between control steps, exact at them", function()
    local roll = rolled()
    local at = roll.record:at { dt, 2.25 * dt, 12 * dt }
    assert.same({ 3, 2 }, at:shape())
    assert.same(roll.record[1]:totable(), at[1]:totable())
    assert.same(roll.record[12]:totable(), at[3]:totable())
    for d = 1, 2 do
      assert.near(0.75 * roll.record:get(2, d) + 0.25 * roll.record:get(3, d), at:get(2, d), 1e-14)
    end
    assert.near((roll.running:get(5) + roll.running:get(6)) / 2, roll.running:at(cq.tensor { 5.5 * dt }):item(), 1e-14)
  end)

  it("has gradients as what was recorded", function()
    local times = { 2.3 * dt, 7 * dt, 11.9 * dt }
    local function loss(young) return (rolled(young).record:at(times) * cq.tensor { 1, 2 }):square():sum() end
    local _, gradient = cq.value_and_grad(loss)(cq.param(10))
    local function value(young) return loss(cq.tensor(young)):item() end
    local h = 1e-3
    assert.near(1, (value(10 + h) - value(10 - h)) / (2 * h) / gradient:item(), 1e-5)
  end)

  it("has the slope as the gradient of times, at a recorded time that after it, at the last that before it", function()
    local function loss(offset)
      local record = world:rollout { steps = 12, batch = 2, damping = cq.tensor { 0, 3 }, record = function(state)
        return state:center(robot)
      end }.record
      return (record:at(cq.tensor { 2.3 * dt, 11.9 * dt } + offset) * cq.tensor { 1, 2 }):square():sum()
    end
    local _, gradient = cq.value_and_grad(loss)(cq.param(0))
    local h = 1e-2 * dt
    assert.near(1, (loss(h) - loss(-h)):item() / (2 * h) / gradient:item(), 1e-5)
    assert.is_true(math.abs(gradient:item()) > 1e-6)

    local record = rolled().record
    local function slopes(times)
      local found
      _, found = cq.value_and_grad(function(p) return record:at(p):slice(2, 2, 2):sum() end)(cq.param(times))
      return found
    end
    local found = slopes { 3 * dt, 12 * dt }
    assert.near((record:get(4, 2) - record:get(3, 2)) / dt, found:get(1), 1e-12)
    assert.near((record:get(12, 2) - record:get(11, 2)) / dt, found:get(2), 1e-12)
    assert.equal(0, slopes({ 12 * dt }):get(1) - found:get(2))
    local one = world:rollout { steps = 1, record = function(state) return state:center(robot) end }.record
    local _, still = cq.value_and_grad(function(p) return (one:at(p) + p):sum() end)(cq.param { dt })
    assert.same({ 2 }, still:totable())           -- of p alone
  end)

  it("keeps its times through arithmetic of its shape, as in other units or from another origin", function()
    local roll, times = rolled(), { 2.3 * dt, 7 * dt }
    local there = roll.record:at(times)
    for _, changed in ipairs { 1000 * roll.record, -(-1000 * roll.record), roll.record / 0.001,
      roll.record * cq.tensor { 1000, 1000 },
      roll.record * cq.param(1000), (roll.record + roll.record) * 500 - cq.zeros { 2 } } do
      assert.near(0, (changed:at(times) - 1000 * there):abs():max():item(), 1e-9)
    end
    local other = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 2 * dt, substeps = 6, robot:at { 0.4, 0.127 } }
    local slower = other:rollout { steps = 12, record = function(state) return state:center(robot) end }
    local function none(tensor) says(sentence(tensor.at, tensor, times), "this tensor has no times") end
    none(roll.record - slower.record)
    none(roll.running * cq.ones { 3, 12 })
  end)

  it("is not told outside of its times", function()
    local record = rolled().record
    says(sentence(record.at, record, { 0.5 * dt }), "lies outside of what was recorded",
      "compare it with the state at the start")
    says(sentence(record.at, record, { 12.1 * dt }), "lies outside of what was recorded")
    says(sentence(record.at, record, { 0 / 0 }), "lies outside")
    says(sentence(record.at, record, { { dt } }), "times must be a list")
    says(sentence(record.at, cq.ones { 3 }, { dt }), "this tensor has no times")
  end)
end)
