-- help: the reference, in the terminal and as a document. It is made from the sources: the tests hold it to all of
-- them.
local process = require "tests.process"
local host = require "cq.host"
local is = require "cq.base.schema"
local book = require("cq.reference.book").new()
local find = require "cq.reference.find"
local types = require "cq.reference.type"
local plain = require "cq.reference.plain"
local prose = require "cq.reference.prose"
local has = require("tests.sentence").says
local cqlua = process.cqlua

local function none(problems) assert(#problems == 0, table.concat(problems, "\n")) end

-- what cqlua help says of these words; it holds no line that is too wide, and no colour
local function help(...)
  local result = cqlua { "help", ... }
  assert.equal("", result.err)
  for line in result.out:gmatch "[^\n]+" do
    local _, columns = line:gsub("[^\128-\191]", "")
    assert(columns <= 100, line)
  end
  assert.is_nil(result.out:find "\27")
  return result.out, result.code
end

describe("the guide", function()
  it("is named by the reference, page by page", function()
    local pages, said = require("cq.reference.guide").pages(), help()
    local listed = { ["docs/README.md"] = true }
    for _, page in ipairs(pages) do
      listed[page.name] = true
      assert(host.kind(page.name) == "file", page.name)
      has(said, page.name)
    end
    for _, name in ipairs(host.entries "docs") do
      -- notes/ is of what was measured and tried, and no page of the guide
      assert(name == "notes" or listed["docs/" .. name], "docs/README.md does not list " .. name)
    end
  end)
end)

describe("the reference", function()
  it("has an entry for everything that cq offers", function()
    local problems = {}
    for _, name in ipairs(getmetatable(require "cq").names()) do
      if not book.section_of["cq." .. name:lower()] and not book.by_name["cq." .. name:lower()] then
        problems[#problems + 1] = "cq." .. name
      end
    end
    none(problems)
  end)

  it("has an entry for every definition that a user can meet", function()
    local problems = {}
    for name in pairs(is.registry) do
      -- of convolutions; no name of cq; of cq.Run.open; a table within a table
      local other = name:find "^conv" or name == "cq.image.write" or name == "cq.Run" or name:find " "
      if not other and not book.by_name[name:lower()] then
        problems[#problems + 1] = name .. ": nothing is annotated where it is made"
      end
    end
    none(problems)
  end)

  it("says of every entry what it does, and of every field of a constructor what it is", function()
    local problems = {}
    for _, entry in ipairs(book.entries) do
      if prose.summary(entry.text) == "" then problems[#problems + 1] = entry.name .. ": nothing is said of it" end
      for _, given in ipairs(entry.tables) do
        for _, field in ipairs(given.fields) do
          if field.text == "" and entry.name:find "^cq" then
            problems[#problems + 1] = ("%s: nothing is said of the field %s"):format(entry.name, field.name)
          end
        end
      end
    end
    none(problems)
  end)

  it("knows bounds, defaults and what is needed from the schemas", function()
    local function field(entry, name)
      for _, given in ipairs(book.by_name[entry].tables) do
        for _, candidate in ipairs(given.fields) do
          if candidate.name == name then return candidate end
        end
      end
    end
    local checker = is.registry["cq.World"].fields.substeps
    assert.equal(checker.label, field("cq.world", "substeps").allowed)
    assert.equal("1", field("cq.world", "substeps").default)
    assert.is_false(field("cq.world", "dx").optional)
    assert.equal('"best"', field("run:render", "params").default)
    -- annotated as a function: the schema knows no more
    assert.equal("fun(iteration: integer): number", field("cq.optimizer.adam", "schedule").allowed)
    assert.equal("a cq.Robot", book.by_name["cq.world"].tables[1].items)
    assert.equal("direction of fibres, of any length [-]; {n, dim}", field("robot:with", "fibre").text)
  end)

  it("follows lists of one class or another, names of types, and what functions in fields give", function()
    local titles, names = {}, {}
    for _, given in ipairs(book.by_name["cq.experiment"].tables) do
      titles[given.title] = given
      for _, one in ipairs(given.fields) do names[given.title .. "." .. one.name] = one end
    end
    for _, title in ipairs { "constraints[k]", "scenes.each(...)", "variants", "variants.each(...)" } do
      assert.is_truthy(titles[title], title)
    end
    assert.is_truthy(names["constraints[k].at_most"] and names["variants.each(...).change"])
    assert.equal("8", names["variants.count"].default)
  end)

  it("has pages of what objects hold", function()
    for _, name in ipairs { "cq.Solution.constraint", "cq.Robustness.row", "rollout.contact" } do
      local section = find.by_name(book, name)
      assert(section and #section.properties > 5, name)
    end
    assert.is_nil(find.by_name(book, "cq.Checker"))
    assert.equal("run:optimize", find.pages(book, "run.optimize")[1].name)
  end)

  it("says that a field is optional where a function needs it not, of the table of another", function()
    for name, optional in pairs { ["saved:rollout"] = true, ["world:rollout"] = false } do
      local steps = book.by_name[name].tables[1].fields[1]
      assert.equal("steps", steps.name)
      assert.equal(optional, steps.optional)
      assert.matches("^a whole number at least 0", steps.allowed)
    end
    assert.equal("cq.tape.whole(f, ...)", book.by_name["cq.tape.whole"].call)
    assert.equal("autoencoder:observe(state, hidden?)", book.by_name["autoencoder:observe"].call)
  end)

  it("leaves out what is for the library alone", function()
    for _, name in ipairs { "world:selection", "robot:placed", "cq.controller.of", "cq.option.get" } do
      assert.is_nil(book.by_name[name], name)
    end
  end)

  it("names sources that are there", function()
    for _, entry in ipairs(book.entries) do
      local path, line = (entry.source or "lua/cq/init.lua:1"):match "^(.*):(%d+)$"
      assert.equal("file", host.kind(path))
      assert(tonumber(line) >= 1)
    end
  end)
end)

describe("types", function()
  it("end where they end", function()
    for _, case in ipairs {
      { "number   of cells", "number", "of cells" },
      { "fun(a: x, b?: y): z|w  what", "fun(a: x, b?: y): z|w", "what" },
      { "{ a: number, b: string[] }? list", "{ a: number, b: string[] }?", "list" },
      { "fun(p: any, ...): number, any  more", "fun(p: any, ...): number, any", "more" },
      { '"a b"|"c"  one', '"a b"|"c"', "one" },
      { "integer", "integer", "" },
    } do
      local kind, rest = types.take(case[1])
      assert.same({ case[2], case[3] }, { kind, rest })
    end
  end)

  it("have parts and fields", function()
    local parts = types.split "string|(string|integer[])|fun(x: a|b): c|d"
    assert.same({ "string", "string", "integer[]", "fun(x: a|b): c|d" }, parts)
    local fields = types.fields "{ a: number, b?: { c: x, d: y }, e: fun(x: a, y: b): c, f: string? }"
    assert.same({ "a", "b", "e", "f" }, { fields[1].name, fields[2].name, fields[3].name, fields[4].name })
    assert.equal("{ c: x, d: y }", fields[2].type)
    assert.same({ false, true, false, true },
      { fields[1].optional, fields[2].optional, fields[3].optional, fields[4].optional })
    assert.is_nil(types.fields "number")
  end)
end)

describe("cqlua help", function()
  it("alone lists what there is", function()
    local out, code = help()
    assert.equal(0, code)
    for _, name in ipairs { "cq.World", "cq.Shape", "cq.State", "cq.zeros", "cqlua bench" } do has(out, name) end
  end)

  it("shows a noun with its constructor, fields and methods", function()
    local out = help "cq.World"
    has(out, "cq.World { ... }")
    has(out, "a finite number above 0; required")
    has(out, "world:rollout")
    assert.equal(out, help "World")
  end)

  it("shows a family, and one of it", function()
    has(help "cq.Boundary", "cq.Boundary.height_field")
    local out = help "cq.Boundary.slope"
    has(out, "by which it rises along x [radian]")
    has(out, "Coulomb's coefficient")                        -- of its parent
  end)

  it("shows a constructor with its fields, then the class of the same name", function()
    local out = help "cq.Topology.pulses"
    has(out, "cq.Topology.pulses { ... }")
    has(out, "control_dt")
    has(out, "pulses:amplitudes")
    assert(out:find("control_dt", 1, true) < out:find("pulses:amplitudes", 1, true))
    assert.equal(out, help "topology.pulses")
    has(help "cq.Topology.filter", "{n, dim} as robot.position")
    -- the class alone, as it is written
    assert.is_nil((help "cq.Topology.Pulses"):find("control_dt", 1, true))
  end)

  it("shows every constructor that shares its name with a class", function()
    local count = 0
    for _, entry in ipairs(book.entries) do
      for _, class in ipairs(book.sections) do
        local shared = class.class and class ~= entry.section and class.name:lower() == entry.name:lower()
        if shared then
          count = count + 1
          local pages = find.pages(book, entry.name)
          assert.equal(2, #pages, entry.name)
          assert(pages[1] == (entry.name == entry.section.name and entry.section or entry), entry.name)
          assert(pages[2] == class, entry.name)
          assert.same({ class }, find.pages(book, class.name))
        end
      end
    end
    assert(count >= 5, count)
  end)

  it("shows methods, functions, commands and options", function()
    has(help "run:render", "frames in a second of film")
    has(help "cq.Experiment:render", "frames in a second of film")
    has(help "cq.value_and_grad", "exactly zero everywhere")
    has(help "t:reshape", "one size may be -1")
    has(help "bench", "--case")
    has(help "cqlua check", "script.lua")
    has(help "cq.random", "cq.random { ... }")
    has(help "cq.Random", "random:normal")
  end)

  it("shows where examples use it, of an object so called where several methods have the name", function()
    has(help "cq.Observer.kmeans", "examples/biped.lua:")
    assert.matches("examples/[%w_]+%.lua:%d+: [%w_.%[%]]*:render%(", help "run:render")
    for line in (help "robot:at"):gmatch "examples/[^\n]+" do assert.matches("robot:at", line) end
    assert.matches("examples/[%w_]+%.lua:%d+: ", help "robot:at")
  end)

  it("shows every quantity that can be read of particles: its meaning, its unit, and how it is read", function()
    local all = help "cq.Quantity"
    for _, info in ipairs(require("cq.state.readout").quantities) do
      local _, entry = find.by_name(book, info.name)
      local out = plain.entry(entry, {})
      has((out:gsub("%s+", " ")), info.meaning:sub(2) .. " [" .. info.unit .. "]")
      has(out, ('state:gather(which, "%s")'):format(info.name))
      assert.equal(info.rank == 0, out:find("colour =", 1, true) ~= nil)
      has(all, "quantity " .. info.name)
    end
    local out = help "von_mises"
    has(out, 'state:gather(which, "von_mises")')
    has(out, "cq.Material.von_mises")
    has(out, "state:von_mises")
  end)

  it("names a page once, however many of the words lead to it", function()
    local _, count = help("jacobian", "gradient"):gsub("\n  cq.value_and_grad ", "")
    assert.equal(1, count)
  end)

  it("searches names and texts", function()
    local out, code = help "stress"
    assert.equal(0, code)
    has(out, "cq.Actuator.pressure")
    has(out, "young: Young's modulus")
    has(help("initial", "volume"), "robot:with")
    -- symbols are words of their own
    assert.matches("young: Young's modulus E ", (help "E"))
    assert.matches("poisson: Poisson's ratio nu ", (help "nu"))
    -- what others call so stands first
    assert.matches("^  cq.Boundary ", (help "contact"))
    local _, count = help("gradient"):gsub("\n  cq.check_gradient ", "")
    assert.equal(1, count)
    assert(#help "stresses" > 0)
  end)

  it("says what is nearest where nothing fits, and fails", function()
    local out, code = help "stvk"
    assert.equal(1, code)
    has(out, "nothing is called stvk")
    has(out, "cq.Material")
    out, code = help "frictoin"
    assert.equal(1, code)
    has(out, "friction")
    out, code = help "cq.Actuator.force"
    assert.equal(1, code)
    has(out, "nothing is called cq.Actuator.force, or speaks of it; nearest are")
    has(out, "\n  cq.Actuator.pressure")
    has(out, "\n  cq.Actuator.follower_pressure")
  end)

  it("says that there is nothing where a word is of something else, and guesses at no page", function()
    for _, word in ipairs { "zzzz", "houdini", "abaqus", "hdf5", "rocket", "banana", "quantum",
      "ros", "cq.Rocket" } do
      local out, code = help(word)
      assert.equal(1, code)
      assert.equal(("nothing is called %s, or speaks of it; cqlua help lists all that there is\n"):format(word), out)
    end
  end)

  it("has examples that run as they stand", function()
    local folder = process.folder()
    for name, line in pairs { ["tensor:splat"] = "3\t4\n", ["cq.Pruner.median"] = "",
      ["cq.csv"] = "7\tmm\n", ["cq.csv.save"] = "", ["tensor:at"] = "2\n" } do
      local section, entry = find.by_name(book, name)
      local lines = {}
      for _, text in ipairs((entry or section.entries[1]).text) do lines[#lines + 1] = text:match "^  (.*)" end
      assert(#lines > 1, name)
      local script = process.write(folder .. "/example.lua", 'local cq = require "cq"\n' .. table.concat(lines, "\n"))
      local words = name == "cq.Pruner.median" and { "study", "run", script, "--jobs", "1", "--out", folder .. "/s" }
        or { script }
      local result = cqlua(words)
      assert.equal(0, result.code, result.err)
      if line ~= "" then assert.equal(line, result.out) end
    end
    process.remove(folder)
  end)

  it("has pages for the words of others", function()
    for _, row in ipairs(require "cq.reference.words") do
      for _, name in ipairs(row.see) do
        local section, entry = find.by_name(book, name)
        assert(section or entry, name)
      end
    end
  end)

  it("refuses another form than it has", function()
    local result = cqlua { "help", "--format", "pdf" }
    assert.equal(2, result.code)
    has(result.err, '--format must be "html"')
  end)

  it("works where the program is installed", function()
    local folder = process.folder()
    os.execute(("cd %s && mkdir -p bin share/cqlua && cp %s bin/cqlua"):format(folder, host.executable))
    os.execute(("cp -R lua scenes examples %s/share/cqlua/"):format(folder))
    local pipe = io.popen(("cd / && env -u CQLUA_ROOT %s/bin/cqlua help cq.Shape.box"):format(folder))
    local out = pipe:read "*a"
    pipe:close()
    process.remove(folder)
    assert.equal(help "cq.Shape.box", out)
  end)
end)

describe("the document", function()
  it("is one page of HTML that needs nothing else, whose links lead somewhere", function()
    local out = cqlua({ "help", "--format", "html" }).out
    local places, open = {}, 0
    for place in out:gmatch ' id="([^"]+)"' do
      assert.is_nil(places[place], place)
      places[place] = true
    end
    for link in out:gmatch 'href="([^"]+)"' do
      assert.equal("#", link:sub(1, 1))
      assert(places[link:sub(2)], link)
    end
    for tag in ("table section nav main pre p ul details h2 h3 tr td code a"):gmatch "%S+" do
      local _, begun = out:gsub("<" .. tag .. "[ >]", "")
      local _, ended = out:gsub("</" .. tag .. ">", "")
      assert.equal(begun, ended, tag)
      open = open + begun
    end
    assert(open > 1000)
    assert.is_nil(out:find "<script")
    assert.is_nil(out:find "https?:")
  end)
end)
