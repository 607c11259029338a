-- write: the generated parts of README.md and docs/ anew.     make docs
local marks = require "tests.pages.marks"
local gaits = require "tests.pages.gaits"
local examples = require "tests.pages.examples"
local horizons = require "tests.pages.horizons"
local results = require "tests.pages.results"
local source = require "tests.source"

local write = {}

---What each page with generated parts should be, by its path.
---@return table<string, string>
function write.pages()
  local rows = results.read()
  return {
    ["README.md"] = marks.fill("README.md", { results = results.headlines(rows) }),
    ["docs/results.md"] = marks.fill("docs/results.md", { results = results.all(rows) }),
    ["tests/bench/gaits.md"] = marks.fill("tests/bench/gaits.md", { gaits = gaits.table(), kept = gaits.kept() }),
    ["tests/papers/horizons.md"] = marks.fill("tests/papers/horizons.md", { horizons = horizons.table() }),
    ["docs/examples.md"] = marks.fill("docs/examples.md", { examples = examples.table() }),
  }
end

---Writes those that differ.
function write.all()
  for path, page in pairs(write.pages()) do
    if source.read(path) ~= page then
      local file = assert(io.open(path, "wb"))
      assert(file:write(page))
      assert(file:close())
      print("wrote " .. path)
    end
  end
end

return write
