-- schema: what constructors accept, and the sentences that errors are.
local is = require "cq.base.schema"
local text = require "cq.base.text"

local Robot = setmetatable({}, { __name = "cq.Robot", __is = { ["cq.Body"] = true } })

local spec = is.define("test.World", {
  cells = is.vector { size = { 2, 3 }, integer = true, min = 1 },
  dx = is.number { above = 0 },
  substeps = is.integer { min = 1, default = 1 },
  law = is.one_of { "linear", "corotated", default = "linear" },
  young = is.any_of { is.number { above = 0 }, is.tensor(), optional = true },
  observer = is.any_of { is.callable(), is.instance "cq.Body", optional = true },
  names = is.list(is.string(), { min = 1, optional = true }),
  moves = is.boolean { default = false },
  angle = is.number { optional = true },
}, is.instance { "cq.Robot" })

-- the error of a call at the line it is made, without its position; and that line
local function sentence(fields, checked)
  local fine, problem = pcall(function()
    local made = (checked or spec)(fields)
    return made
  end)
  assert(not fine, "no error")
  local line, message = problem:match "^tests/schema_spec.lua:(%d+): (.*)$"
  assert(message, "not at the user's line: " .. problem)
  return message, tonumber(line)
end

local function with(changes)
  local fields = { cells = { 4, 4 }, dx = 0.5 }
  for name, value in pairs(changes) do fields[name] = value end
  return fields
end

describe("a definition", function()
  it("gives a checked copy with its defaults", function()
    local given = { cells = { 8, 4 }, dx = 0.5, law = "corotated" }
    local made = spec(given)
    assert.same({ cells = { 8, 4 }, dx = 0.5, law = "corotated", substeps = 1, moves = false }, made)
    assert.are_not.equal(given, made)
    assert.is_nil(given.substeps)
  end)

  it("takes the kinds it declares", function()
    assert.equal(Robot, spec(with { Robot })[1])
    assert.equal(Robot, spec(with { observer = Robot }).observer)
    assert.equal(print, spec(with { observer = print }).observer)
    assert.same({ "a" }, spec(with { names = { "a" } }).names)
    assert.equal(3, spec(with { young = 3 }).young)
    local tensor = setmetatable({}, { __name = "cq.Tensor" })
    assert.equal(tensor, spec(with { young = tensor }).young)
  end)

  it("refuses an unknown field, suggests the near one and lists all", function()
    assert.equal("test.World: unknown field cell (did you mean cells?); allowed are angle, cells, dx, law, moves, names, observer, substeps, young",
      (sentence { cell = { 1, 1 }, dx = 1 }))
    assert.is_nil((sentence(with { zebra = 1 })):find("did you mean", 1, true))
  end)

  it("names the field, what was got and what is allowed", function()
    local cases = {
      { { dx = 0 }, "dx must be a finite number above 0, got 0" },
      { { dx = -1 }, "dx must be a finite number above 0, got -1" },
      { { dx = 0 / 0 }, "dx must be a finite number above 0, got nan" },
      { { dx = math.huge }, "dx must be a finite number above 0, got inf" },
      { { angle = 0 / 0 }, "angle must be a finite number, got nan" },
      { { angle = -math.huge }, "angle must be a finite number, got -inf" },
      { { dx = "1" }, 'dx must be a finite number above 0, got "1"' },
      { { substeps = 1.5 }, "substeps must be a whole number at least 1, got 1.5" },
      { { moves = 1 }, "moves must be true or false, got 1" },
      { { cells = 4 }, "cells must be a list of 2 or 3 whole numbers at least 1, got 4" },
      { { cells = { 4 } }, "cells must be a list of 2 or 3 whole numbers at least 1, got a list of 1" },
      { { cells = { 4, 0 } }, "cells must be a list of 2 or 3 whole numbers at least 1, got 0 at position 2" },
      { { law = "linaer" }, 'law must be one of "linear", "corotated", got "linaer" (did you mean linear?)' },
      { { observer = 3 }, "observer must be a function, or a cq.Body, got 3" },
      { { names = {} }, "names must be a list of at least 1, each a string, got a list of 0" },
      { { names = { "a", 2 } }, "names must be a list of at least 1, each a string, got 2 at position 2" },
      { { young = {} }, "young must be a finite number above 0, or a tensor, got an empty table" },
      { { "x" }, 'entry 1 must be a cq.Robot, got "x"' },
    }
    for _, case in ipairs(cases) do assert.equal("test.World: " .. case[2], (sentence(with(case[1])))) end
  end)

  it("says which field is missing and what it must be", function()
    assert.equal("test.World: dx is missing, it must be a finite number above 0", (sentence { cells = { 1, 1 } }))
  end)

  it("takes one table, and no positional entries unless declared", function()
    assert.equal("test.World: takes one table of named fields, got 3", (sentence(3)))
    assert.equal("test.World: takes one table of named fields, got a cq.Robot", (sentence(Robot)))
    local named = is.define("test.Named", { a = is.number { default = 1 } })
    assert.equal("test.Named: takes named fields, got 5 at position 1; allowed are a", (sentence({ 5 }, named)))
  end)

  it("points at the user's line, through frames of the library", function()
    local _, line = sentence(with { dx = 0 })
    assert.equal(debug.getinfo(sentence, "S").linedefined + 2, line)
  end)

  it("shows its fields, for the test of annotations", function()
    assert.equal(spec, is.registry["test.World"])
    assert.same({ "angle", "cells", "dx", "law", "moves", "names", "observer", "substeps", "young" }, spec.names)
    assert.is_true(spec.fields.moves.optional)
    assert.is_false(spec.fields.dx.optional or false)
  end)

  it("finds a mistake in a declaration at once", function()
    assert.error_matches(function() is.number { least = 1 } end, "has no option least")
  end)
end)

describe("an argument", function()
  it("is checked like a field", function()
    assert.equal(2, is.argument("robot:at", "count", is.integer(), 2))
    assert.equal(7, is.argument("robot:at", "count", is.integer { default = 7 }, nil))
    assert.error_matches(function() is.argument("robot:at", "count", is.integer(), "x") end,
      'robot:at: count must be a whole number, got "x"', 1, true)
    assert.error_matches(function() is.argument("robot:at", "count", is.integer(), nil) end,
      "robot:at: count is missing, it must be a whole number", 1, true)
  end)
end)

describe("text", function()
  it("takes the sentence of an error from its place and its traceback", function()
    assert.equal("too late", text.sentence "tests/some_spec.lua:12: too late\nstack traceback:")
    assert.equal("cq.World: dt is missing: 3", text.sentence "cq.World: dt is missing: 3")
  end)

  it("counts edits, a swap as one", function()
    assert.equal(0, text.distance("abc", "abc"))
    assert.equal(1, text.distance("abc", "acb"))
    assert.equal(3, text.distance("", "abc"))
    assert.equal(3, text.distance("kitten", "sitting"))
  end)

  it("suggests only what is near", function()
    assert.equal("friction", text.suggest("fricton", { "sticky", "friction" }))
    assert.equal("iterations", text.suggest("iter", { "out", "iterations" }))
    assert.is_nil(text.suggest("zebra", { "sticky", "friction" }))
  end)

  it("describes values as a person would", function()
    assert.equal("an empty table", text.describe {})
    assert.equal("a list of 2", text.describe { 1, 2 })
    assert.equal("a table", text.describe { a = 1 })
    assert.equal("a function", text.describe(print))
    assert.equal("nil", text.describe(nil))
    assert.equal('"a?b"', text.describe "a\nb")
    assert.equal("an empty string", text.describe "")
    assert.equal(62, #text.describe(("x"):rep(500)))
  end)
end)
