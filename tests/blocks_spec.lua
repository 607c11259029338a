-- blocks: every Lua block of README.md and docs/*.md runs as it stands there.
local host = require "cq.host"
local blocks = require "tests.blocks"
local process = require "tests.process"

local documents = { "README.md" }
for _, name in ipairs(host.entries "docs" or {}) do
  if name:find "%.md$" then documents[#documents + 1] = "docs/" .. name end
end
table.sort(documents)

describe("the Lua blocks of", function()
  for _, path in ipairs(documents) do
    it(path .. " run", function()
      local problems = {}
      for _, block in ipairs(blocks.of(path)) do
        local problem = blocks.problem(block)
        if problem then problems[#problems + 1] = ("%s:%d: %s"):format(path, block.first, problem) end
      end
      assert(#problems == 0, table.concat(problems, "\n"))
    end)
  end
end)

it("the links of the documents lead to files", function()
  local problems = {}
  for _, path in ipairs(documents) do
    local folder = path:match "^(.*/)" or ""
    for target in process.read(path):gmatch "%]%(([^)#]+)" do
      if not target:find "^%a+:" and not host.kind(folder .. target) then
        problems[#problems + 1] = path .. ": " .. target
      end
    end
  end
  assert(#problems == 0, table.concat(problems, "\n"))
end)

describe("a block", function()
  local folder

  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  local function of(...)
    return blocks.of(process.write(folder .. "/page.md", table.concat({ "# Page", ... }, "\n")))
  end

  it("that fails is told with its line in the document", function()
    local found = of("", "```lua", "local x", "x.y = 1", "```")
    assert.equal(1, #found)
    assert.matches("page.md:5: attempt to index local 'x'", blocks.problem(found[1]))
  end)

  it("goes on after the one above where it says so", function()
    local found = of("```lua", "local x = 1", "```", "<!-- continues -->", "```lua", "assert(x == 1)", "```",
      "```lua", 'assert(rawget(_G, "x") == nil)', "```")
    for _, block in ipairs(found) do assert.is_nil(blocks.problem(block)) end
  end)

  it("may be meant to fail", function()
    local found = of("<!-- fails with: did you mean dt -->", "```lua", 'require("cq").World { dy = 1 }', "```",
      "<!-- fails with: x -->", "```lua", "```")
    assert.is_nil(blocks.problem(found[1]))
    assert.equal("it did not fail", blocks.problem(found[2]))
  end)

  it("has no mark that nobody knows", function()
    local function misspelt() of("<!-- run with: parameters -->", "```lua", "```") end
    assert.error_matches(misspelt, "no mark is called run with")
  end)
end)
