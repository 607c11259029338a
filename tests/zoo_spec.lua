-- zoo: trained artefacts: all are there, small, and do on this machine what they are claimed to do.
local host = require "cq.host"
local process = require "tests.process"
local zoo = require "cq.zoo"
local mistake = require "tests.sentence"
local says = mistake.says

local LARGEST = 3e6               -- bytes of all files together

describe("the zoo", function()
  it("has a file of each entry, no other, and is small", function()
    local known, bytes = { ["index.lua"] = true, ["README.md"] = true }, 0
    for _, entry in ipairs(zoo.entries()) do
      known[entry.name .. ".bin"] = true
      bytes = bytes + #process.read(zoo.path(entry))
      assert.equal("file", host.kind(host.root .. "/" .. entry.made:match "^%S+"))
    end
    for _, name in ipairs(host.entries(zoo.folder)) do assert(known[name], name .. " is of no entry") end
    assert(bytes < LARGEST, bytes)
  end)

  for _, entry in ipairs(zoo.entries()) do
    it(("replays: %s"):format(entry.name), function()
      local early = entry.early
      local figure = zoo.measure(entry, early.steps)
      assert.near(early.is, figure, early.within)
      assert.is_true(figure > 10 * early.within)
    end)
  end
end)

describe("the objective of a robot of the zoo", function()
  it("is its own where the figure at the end is not what it was trained for, else the figure", function()
    local function of(name)
      local entry = zoo.entry(name)
      return zoo.objective(entry, require("cq").load(zoo.path(entry)))
    end
    local swaying = of "balancer"
    assert.equal("mean", swaying.reduce)
    assert.equal("function", type(swaying.running))
    assert.equal("function", type(of "walker"))
  end)
end)

describe("cqlua replay", function()
  it("lists, prints the figure beside the claimed one, and films", function()
    local list = process.cqlua { "replay" }
    says(list.out, "biped        ran 4.23 body lengths in 4 time units; cqlua examples/biped.lua --particles 20")
    local folder = process.folder()
    local said = process.cqlua { "replay", "crawler", "--out", folder }
    assert.equal(0, said.code, said.err)
    says(said.out, "crawler: crawled 1.24 body lengths in 2 time units; claimed 1.24 (cqlua examples/crawler.lua)")
    assert.equal("file", host.kind(folder .. "/crawler.mp4"))
    local here = process.cqlua({ "replay", "walker", "--out", "a/b" }, { before = ("cd %s;"):format(folder) })
    assert.equal(0, here.code, here.err)
    says(here.out, "walker: walked 0.345 m in 0.5 s, a body found by topology optimization; claimed 0.345 (cqlua")
    assert.equal("file", host.kind(folder .. "/a/b/walker.mp4"))
    local bare = process.cqlua { "replay", "crawler", "--out", folder .. "/b", "--render", "no" }
    assert.equal(0, bare.code, bare.err)
    assert.is_nil(host.kind(folder .. "/b"))
    process.remove(folder)
  end)

  it("says what is wrong", function()
    local unknown = process.cqlua { "replay", "bipet" }
    assert.equal(1, unknown.code)
    says(unknown.err, 'the zoo has no "bipet" (did you mean biped?)')
    local many = process.cqlua { "replay", "biped", "crawler" }
    assert.equal(2, many.code)
    local other = process.cqlua { "replay", "biped", "--keep", zoo.folder .. "/crawler.bin" }
    assert.equal(1, other.code)
    says(other.err, "examples/crawler.lua, and biped of the zoo is one of cqlua examples/biped.lua --particles 20")
    local outside = process.cqlua { "replay", "../evil", "--keep", zoo.folder .. "/crawler.bin" }
    assert.equal(1, outside.code)
    says(outside.err, 'the zoo has no "../evil"')
    for _, words in ipairs { { "replay", "crawler" }, { "robust", "crawler", "--draws", "0" } } do
      words[#words + 1] = "--out=/dev/null/x"
      local nowhere = process.cqlua(words)
      assert.equal(1, nowhere.code)
      says(nowhere.err, "the folder /dev/null/x cannot be written: Not a directory; choose another with --out")
    end
    local kept = process.cqlua { "replay", "biped", "--keep", "/nowhere" }
    assert.equal(1, kept.code)
    says(kept.err, "No such file")
  end)
end)
