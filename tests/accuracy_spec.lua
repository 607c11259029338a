-- accuracy: what `cqlua accuracy` prints, that it is as good as claimed, and that its truth is true.
local cq = require "cq"
local T = require "cq.tensor"
local tangent = require "tests.accuracy.tangent"
local truth = require "tests.accuracy.truth"
local json = require "tests.json"
local process = require "tests.process"
local cqlua = process.cqlua

local sanitized = process.sanitized()

local function results(...)
  local result = cqlua { "accuracy", "--json", ... }
  assert.same({ 0, "" }, { result.code, result.err })
  return json.lines(result.out)
end

describe("accuracy", function()
  it("is at or below ChainQueen's error everywhere, and far below in the long run", function()
    local found, count = sanitized and results("--steps", "10") or results(), 0
    for _, entry in ipairs(found) do
      local name = ("%s at %d steps: %.3g"):format(entry.case, entry.steps, entry.error)
      assert.equal("number", type(entry.error), name)
      if entry.paper ~= json.null then assert(entry.error <= entry.paper, name) end
      if entry.case:find "A" then
        assert.equal("float32", entry.precision)
        -- what rounding of dt and of 1/n alone makes is 4e-8
        assert(entry.error > 1e-9, name .. " is too good to be true in float32")
        if entry.steps == 1000 then assert(entry.error <= entry.paper / 10, name) end
        assert(entry.particle_error < 3e-6, name)
      else
        assert.equal("float64", entry.precision)
        assert(entry.error < 1e-11 and entry.forward_error < 1e-11, name)
      end
      count = count + 1
    end
    assert.equal(sanitized and 7 or 24, count)
  end)

  it("is rounding of float64 when that is asked for", function()
    local entry = results("--case", "A2", "--steps", "100", "--precision", "float64")[1]
    assert.equal("float64", entry.precision)
    assert(entry.error < 1e-12 and entry.particle_error < 1e-12)
  end)

  it("names the paper's figures, null where it has none", function()
    local paper = {}
    for _, entry in ipairs(results("--steps", "1")) do paper[entry.case] = entry.paper end
    assert.same({ A1 = 9.8e-8, A2 = json.null, B = json.null, C = 5.63e-6, I1 = json.null,
      I2 = json.null, I3 = json.null }, paper)
    local line = cqlua({ "accuracy", "--json", "--case", "A1", "--steps", "3" }).out
    assert(line:find('^{"case": "A1", "steps": 3, "error": [%d.e-]+, "paper": null, '), line)
  end)

  it("prints a table", function()
    local result = cqlua { "accuracy", "--case", "B", "--steps", "10" }
    assert.equal(0, result.code)
    assert(result.out:find "case%s+steps%s+error%s+ChainQueen" and result.out:find "\nB%s+10%s+%d%.%d%de%-%d%d%s+%-",
      result.out)
  end)

  it("refuses a case that is not there, with a suggestion", function()
    local result = cqlua { "accuracy", "--case", "A3" }
    assert.equal(2, result.code)
    assert(result.err:find("accuracy has no case A3 (did you mean A1?); its cases are A1, A2, B, C, I1, I2, I3", 1, true),
      result.err)
  end)
end)

-- ---- the scenes do what they say ------------------------------------------------------------------------------------

describe("the scenes of the accuracy table", function()
  it("collide: the block with its wall", function()
    local scene = require "tests.accuracy.spinning_block" { wall = true, precision = "float32" }
    local world = cq.World(scene.world)
    local normal = T.tensor(world.walls[1].normal)
    local roll = world:rollout { robot = scene.robot:with { velocity = scene.velocity }, steps = sanitized and 600
      or 1000 }
    assert(scene.velocity:mean(1):dot(normal):item() < -6)
    assert(roll.state:velocity(world.robot):dot(normal):item() > 0, "it does not bounce")
    assert.near(0, normal:dot(T.tensor(scene.tangent)):item(), 1e-15)
    world:close()
  end)

  it("collide: the discs with each other within 100 steps, and with the cushions within 1000", function()
    local scene = require "tests.accuracy.billiards" { precision = "float64" }
    local world = cq.World(scene.world)
    local velocity = scene.spin + scene.moving * T.tensor(scene.speed)
    local function along(name, steps)
      return world:rollout { robot = scene.robot:with { velocity = velocity },
        steps = steps }.state:velocity(name)[1]:item()
    end
    assert.equal(0, along("b", 60))
    assert(along("b", 100) > 0.1 and along("b", 1000) < -0.1)
    world:close()
  end)

  it("bend: the finger", function()
    local scene = require "scenes.finger" { precision = "float64" }
    local world = cq.World(scene.world)
    local roll = world:rollout { steps = 100, controller = function() return T.tensor { 0.5, -0.2 } end }
    assert(roll.state:center "head"[1]:item() < 0.45)
    assert.near(0, roll.state:velocity "foot":square():sum():sqrt():item(), 0.05)
    world:close()
  end)
end)

-- ---- the truth is true ----------------------------------------------------------------------------------------------

describe("forward mode", function()
  -- value and slope of a number that feels all of a scene's motion, with the start moved by h along the direction
  local function felt(world, velocity, direction, h, steps, drive)
    local model = tangent.new(world, velocity + direction * h, direction)
    for k = 1, steps do
      if drive then drive(model, k, h) end
      model:step()
    end
    local value, slope = 0, 0
    for g, name in ipairs(world.robot.groups) do
      local mean, dmean = model:mean(name)
      for q = 1, 4 do value, slope = value + (g + 0.3 * q) * mean[q], slope + (g + 0.3 * q) * dmean[q] end
    end
    return value, slope
  end

  -- central differences; the second derivative jumps where a particle enters another cell, so that small steps are best
  local function agrees(...)
    local world, velocity, direction, steps, drive = ...
    local _, slope = felt(world, velocity, direction, 0, steps, drive)
    local h = 1e-6
    local above, below = felt(world, velocity, direction, h, steps, drive),
      felt(world, velocity, direction, -h, steps, drive)
    assert(math.abs(slope) > 0.01)
    assert.near(1, (above - below) / (2 * h) / slope, 2e-7)
  end

  it("agrees with differences through a collision", function()
    local scene = require "tests.accuracy.billiards" { precision = "float64" }
    local world = cq.World(scene.world)
    local velocity = scene.spin + scene.moving * T.tensor(scene.speed)
    agrees(world, velocity, scene.moving * T.tensor { 0.6, 0.8 }, 150)
    world:close()
  end)

  it("agrees with differences under actuation and pins", function()
    local scene = require "scenes.finger" { precision = "float64" }
    local world = cq.World(scene.world)
    local rest = T.zeros { world.particle_count, 2 }
    agrees(world, rest, rest, 60, function(model, k, h)
      model:actuate("left", 2 * math.sin(0.1 * k) + h * math.cos(k), math.cos(k))
      model:actuate("right", -h * k / 30, -k / 30)
    end)
    world:close()
  end)

  it("refuses scenes that it does not know", function()
    local scene = require "scenes.falling_block" { dim = 3, side = 4, cells = { 32, 32, 32 } }
    local world = cq.World(scene.world)
    assert.has_error(function() tangent.new(world, scene.velocity) end)
    world:close()
  end)
end)

describe("the truth's cases", function()
  it("are those of the paper", function()
    local names = {}
    for k, case in ipairs(truth.cases) do names[k] = case.name end
    assert.same({ "A1", "A2", "B", "C", "I1", "I2", "I3" }, names)
  end)
end)
