-- examples: biped, balls, identify and custom run as a user runs them, and hold to what they claim as far as a few iterations
-- tell.
local process = require "tests.process"

local folder

before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

-- runs an example; its history as a list of rows by column name, and what it printed
local function example(name, words)
  local arguments = { "examples/" .. name .. ".lua", "--out", folder, "--quiet", "--threads", "1" }    -- tests share the cores
  for _, word in ipairs(words) do arguments[#arguments + 1] = word end
  local result = process.cqlua(arguments)
  assert.equal(0, result.code, result.err)
  assert.equal("", result.err)
  local history, names = {}, nil
  for line in process.read(folder .. "/history.csv"):gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "[^,]+" do cells[#cells + 1] = cell end
    if names then
      local row = {}
      for k, column in ipairs(names) do row[column] = assert(tonumber(cells[k]), line) end
      history[#history + 1] = row
      assert.equal(#history, row.iteration)
    else
      assert.equal("iteration,loss", line:sub(1, 14))
      names = cells
    end
  end
  return history, result.out
end

-- the film, or the first of its frames where no film can be made
local function assert_film(name)
  local film = process.read(folder .. "/" .. name .. ".mp4") or process.read(folder .. "/" .. name .. "_frames/000001.png")
  assert(film and #film > 1000)
end

describe("examples/balls.lua", function()
  it("comes to the density that sends the other ball to its place", function()
    local history, out = example("balls", { "--iterations", "16" })
    assert.equal(16, #history)
    assert(history[16].loss < 1e-2 * history[1].loss, history[16].loss)
    local density, miss = out:match "^density of ball A (%S+), .* its place by (%S+)\n$"
    assert.near(2.26, tonumber(density), 0.2)
    assert(tonumber(miss) < 0.03, miss)
    assert_film "balls"
  end)
end)

describe("examples/identify.lua", function()
  it("comes nearer to all three constants, down to the noise", function()
    local history, out = example("identify", { "--iterations", "10", "--render", "no" })
    local last = history[10]
    assert.equal(10, #history)
    assert(math.abs(last.young - 20) < 1.5 and math.abs(last.density - 2.33) < 0.15 and math.abs(last.poisson - 0.25) < 0.1, out)
    assert(history[1].loss > 5e-5 and last.loss < 1e-5 and last.loss > 1.9e-6, last.loss)
    assert.near(last.young, tonumber(out:match "^E (%S+), "), 1e-3)
  end)
end)

describe("examples/custom.lua", function()
  it("calms the stalk, and less so without its memory", function()
    local with, out = example("custom", { "--iterations", "20" })
    assert_film "custom"
    local without = example("custom", { "--iterations", "20", "--memory", "no", "--render", "no" })
    local function best(history)
      local least = math.huge
      for _, row in ipairs(history) do least = math.min(least, row.loss) end
      return least
    end
    assert(best(with) < 0.6 * with[1].loss and best(with) < best(without), best(with))
    assert.near(best(with), tonumber(out:match "t = 1.5: (%S+)\n$"), 6e-5)
  end)
end)

describe("examples/biped.lua", function()
  it("takes its first steps", function()
    local history, out = example("biped", { "--particles", "11", "--iterations", "12" })
    assert.equal(12, #history)
    assert_film "biped"
    assert(process.read(folder .. "/biped.png"):find "^\137PNG")
    local least = math.huge
    for _, row in ipairs(history) do least = math.min(least, row.loss) end
    local lengths = tonumber(out:match "^ran (%S+) body lengths")
    assert.near((-least - 0.35) / 0.3, lengths, 0.06)
    assert(lengths > 0.7, lengths)
  end)
end)
