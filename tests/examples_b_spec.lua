-- examples: biped, balls, identify, custom and diffmpm run as a user runs them, and hold to what they claim as far as a
-- few iterations tell.
local process = require "tests.process"
local example, folder = require("tests.example").each(before_each, after_each)

-- the film, or the first of its frames where no film can be made
local function assert_film(name)
  local film = process.read(folder() .. "/" .. name .. ".mp4")
    or process.read(folder() .. "/" .. name .. "_frames/000001.png")
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
  it("finds all three constants, down to the noise", function()
    local history, out = example("identify", { "--iterations", "30", "--render", "no" })
    local young, poisson, density = out:match "\nE (%S+), nu (%S+), density (%S+)\n$"
    assert.near(20, tonumber(young), 0.02)
    assert.near(0.25, tonumber(poisson), 1e-3)
    assert.near(2.33, tonumber(density), 3e-3)
    -- a tenth of twice the noise squared
    local least = math.huge
    for _, row in ipairs(history) do least = math.min(least, row.loss) end
    assert(history[1].loss > 1e-4 and least < 2.1e-7 and least > 1.9e-7, least)
  end)

  it("goes on as if it had not stopped", function()
    local whole = example("identify", { "--iterations", "6", "--render", "no" })
    process.remove(folder())
    example("identify", { "--iterations", "3", "--render", "no" })
    local again = example("identify", { "--iterations", "6", "--render", "no", "--resume" })
    assert.equal(#whole, #again)
    assert.equal(whole[6].loss, again[6].loss)
  end)
end)

describe("examples/identify_noisy.lua", function()
  it("tells the bar's constants with their error bars", function()
    local _, out = example("identify_noisy", { "--guess", "145" })
    local young, deviation = out:match "young%s+(%S+) %+%- (%S+)\n"
    local chi = out:match "by 122 residuals with noise 0.3; reduced chi%-square (%S+)\n"
    assert.near(144.4, tonumber(young), 0.3)
    assert.near(0.14, tonumber(deviation), 0.02)
    assert.near(1.09, tonumber(chi), 0.02)
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

describe("examples/diffmpm.lua", function()
  it("is DiffTaichi's program: the losses of its kernels in Taichi 1.7.4, from weights of zero", function()
    local history = example("diffmpm", { "--iterations", "2", "--deviation", "0", "--render", "no" })
    assert.near(-0.2499999, history[1].loss, 1e-6)
    assert.near(0.290515, history[1].gradient, 1e-5)
    assert.near(-0.2580318, history[2].loss, 1e-6)
  end)
end)

describe("examples/biped.lua", function()
  it("takes its first steps", function()
    local history, out = example("biped", { "--particles", "11", "--iterations", "12" })
    assert.equal(12, #history)
    assert_film "biped"
    assert(process.read(folder() .. "/biped.png"):find "^\137PNG")
    local least = math.huge
    for _, row in ipairs(history) do least = math.min(least, row.loss) end
    local lengths = tonumber(out:match "^ran (%S+) body lengths")
    assert.near((-least - 0.35) / 0.3, lengths, 0.06)
    assert(lengths > 0.7, lengths)
  end)

  -- its network sees means, its effort signals alone
  it("is driven by the engine, which nothing stops between control steps", function()
    local script = process.write(folder() .. "/script.lua", [[
      local World = require("cq.world").class
      local rollout, ways = World.rollout, {}
      function World:rollout(fields)
        local roll = rollout(self, fields)
        if fields.steps > 1 then
          ways[#ways + 1] = (roll.engine_policy and "by engine" or "by Lua") .. (roll.stops and ", stops" or "")
        end
        return roll
      end
      assert(loadfile "examples/biped.lua")()
      print(table.concat(ways, "; "))
    ]])
    local result = process.cqlua { script, "--particles", "8", "--iterations", "2", "--render", "no", "--quiet",
      "--threads", "1", "--out", folder() .. "/out" }
    assert(result.out:find "\nby engine; by engine; by engine\n$", result.out .. result.err)
  end)
end)

describe("examples/curves.lua", function()
  it("draws rubbers next to their closed forms", function()
    local _, out = example("curves", { "--iterations", "6", "--elastomer", "Ecoflex 00-30" })
    assert.is_true(tonumber(out:match "at most (%S+) %%") < 7, out)
    for _, kind in ipairs { "uniaxial", "biaxial", "shear" } do
      assert(process.read(("%s/%s.png"):format(folder(), kind)):find "^\137PNG")
    end
  end)
end)
