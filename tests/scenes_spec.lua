-- scenes: each holds to the number that it is about, of a closed form or a measurement, on a lattice that takes a
-- second.
local cq = require "cq"
local process = require "tests.process"
local refuses = require("tests.sentence").refuses

-- relative to what was expected
local function within(share, got, expected)
  local off = math.abs(got / expected - 1)
  assert(off <= share, ("%.6g, expected %.6g: %.2g off, at most %.2g"):format(got, expected, off, share))
end

describe("scenes/dam_break.lua", function()
  it("runs as fast as Martin and Moyce's column once its dam is gone", function()
    local scene = require "scenes.dam_break" { across = 24 }
    local world, front = cq.World(scene.world), {}
    world:rollout { steps = math.ceil(scene.until_time * scene.unit / world.control_dt) + 1, on_step = function(state)
      front[#front + 1] = { state.time / scene.unit, scene.front(state) }
    end }
    local raw, aligned, late = scene.compare(front)
    assert(raw < 0.2 and aligned < 0.1, raw .. ", aligned " .. aligned)
    assert(late > 0 and late < 0.3, late)
  end)

  it("keeps its volume: at rest the liquid is as dense and as high as its weight makes it", function()
    local length = 0.6
    local scene = require "scenes.dam_break" { across = 16, length = length, precision = "float64" }
    scene.world.damping, scene.world.pressure_smoothing = 1, 20
    local state = cq.World(scene.world):rollout({ steps = 1200 }).state
    local dx = scene.world.dx
    -- the water ends half a cell behind the walls, as at the start
    local level = (scene.width + dx / 2) * (scene.height + dx / 2) / (length + dx)
    local bulk = scene.robot.bulk[1]:item()
    within(1e-4, state:gather(scene.robot, "jacobian"):mean():item(), 1 - scene.gravity * level / 2 / bulk)
    -- a column that has broken stays a little loose: its level is half a cell too high
    assert.near(level / 2, state:center(scene.robot)[2]:item() - scene.wall + dx / 2, 0.3 * dx)
    assert(state:positions():min():item() > scene.wall - 0.5 * dx, "the liquid is in a wall")
  end)
end)

describe("sand", function()
  it("flows on a slope from its angle of repose on", function()
    for _, repose in ipairs { 20, 30 } do
      local scene = require "scenes.sand_bed" { repose = repose, cells = 6 }
      assert.near(repose, scene.onset(cq.World(scene.world)), 2)
    end
  end)

  it("ends as a pile at its angle of repose", function()
    local scene = require "scenes.sand_pile" { cells = 12 }
    assert.near(scene.repose, scene.slope(cq.World(scene.world):rollout({ steps = 500 }).state), 2)
  end)
end)

describe("snow", function()
  it("keeps the length that its compaction leaves it", function()
    local scene = require "scenes.snow_column" { precision = "float64" }
    local state = scene.press(cq.World(scene.world))
    assert.near(1, scene.kept(state, 1), 1e-4)
    for k = 2, 3 do within(0.04, scene.kept(state, k) - 1, scene.expected[k] - 1) end
  end)

  it("breaks on an edge: some of it stays on the block, the rest lies on the ground", function()
    local scene = require "scenes.snow_ball" { cells = 6 }
    local state = cq.World(scene.world):rollout({ steps = math.floor(scene.duration / scene.world.dt + 0.5) }).state
    local y = state:positions():slice(2, 2, 2) - scene.ground
    local count = scene.robot.particle_count
    local high, low = y:greater(scene.edge):sum():item() / count, y:less(scene.edge / 2):sum():item() / count
    assert(high > 0.05 and low > 0.3, ("%.2f of it is high, %.2f low"):format(high, low))
  end)
end)

describe("pulled bars", function()
  it("of Dragon Skin stretch as Yeoh's law has it", function()
    local scene = require "scenes.dragon_skin" { across = 6, loads = { 100, 300, 560 } }
    local state = cq.World(scene.world):rollout({ steps = 100, controller = scene.pull() }).state
    for k, expected in ipairs(scene.expected) do within(0.02, scene.stretch(state, k) - 1, expected - 1) end
    -- the data sheet's 593 kPa at a stretch of 2
    within(0.1, scene.expected[3], 2)
  end)

  it("of metal keep the stretch that is plastic", function()
    local scene = require "scenes.metal_bars" { across = 4, precision = "float64" }
    local state = cq.World(scene.world):rollout({ steps = 300, controller = scene.controller }).state
    assert.near(1, scene.stretch(state, 1), 1e-5)
    for k = 2, 3 do within(0.04, scene.stretch(state, k) - 1, scene.expected[k] - 1) end
  end)

  it("creep, and creep back", function()
    local scene, count = require "scenes.creeping_bars" {}, 0
    cq.World(scene.world):rollout { steps = 450, controller = scene.controller, on_step = function(state)
      local soon = state.time % 30 < 1.5               -- the wave of a load that has just come or gone
      if soon or state.step % 15 ~= 0 then return end
      count = count + 1
      assert.near(scene.creep(state.time), scene.stretch(state, 2) - 1, 0.03 * scene.creep(scene.release))
    end }
    assert(count > 25)
  end)
end)

describe("scenes/balloon.lua", function()
  local function growth(options, pressure)
    options.damping, options.max = 20, 1
    local scene = require "scenes.balloon" (options)
    local first
    local roll = cq.World(scene.world):rollout {
      steps = 60, controller = function() return cq.tensor { pressure } end,
      on_step = function(state) first = first or state:cavity_volume(scene.pressure):item() end,
    }
    return roll.state:cavity_volume(scene.pressure):item() / first - 1, scene.balance(pressure) - 1
  end

  it("grows to the balance of pressure and wall, the nearer the finer the grid", function()
    local coarse, balance = growth({ cells = 48 }, 0.5)
    local fine = growth({ cells = 96 }, 0.5)
    within(0.05, coarse, balance)
    within(0.02, fine, balance)
    within(0.1, growth({ dim = 3 }, 0.3))
  end)
end)

describe("scenes/cable_finger.lua", function()
  it("bends nearly as a slender beam does", function()
    local scene = require "scenes.cable_finger" { damping = 4 }
    local world = cq.World(scene.world)
    for _, u in ipairs { -0.8, 0 } do
      local state = world:rollout({ steps = 250, controller = function() return cq.tensor { u, -1 } end }).state
      local share = scene.bend(state) / scene.beam(u)
      assert(share > 0.8 and share < 1, share)
    end
  end)
end)

describe("examples of scenes", function()
  local function printed(name)
    local folder = process.folder()
    local result = process.cqlua {
      "examples/" .. name .. ".lua", "--out", folder, "--quiet", "--threads", "1", "--render", "no",
    }
    process.remove(folder)
    assert(result.code == 0 and result.err == "", result.err)
    return result.out
  end

  it("print what they are about", function()
    assert(printed("dam_break"):find "volume of the particles 0.999%d of what it was\n$")
    local onset, slope = printed("sand_pile"):match "flows from (%S+) degrees on\nthe pile is (%S+) degrees steep\n$"
    assert.near(30, tonumber(onset), 2)
    assert.near(30, tonumber(slope), 2)
    for name, line in pairs {
      tension = "a stretch of (%S+), expected (%S+)\n", metal = "a stretch of (%S+), expected (%S+)\n",
      balloon = "has (%S+) times its area, in balance (%S+)\n", snow = "it keeps (%S+) of its length, expected (%S+)\n",
    } do
      local count = 0
      for got, expected in printed(name):gmatch(line) do
        count = count + 1
        within(0.015, tonumber(got), tonumber(expected))
      end
      assert.equal(3, count)
    end
    assert.equal(6, select(2, printed("creep"):gsub("viscoelastic", "")))
    assert.equal(3, select(2, printed("cable_bend"):gsub("the tip turns by 0%.%d", "")))
  end)
end)

describe("options of a scene", function()
  it("are refused where it has none of that name", function()
    for scene, said in pairs { biped = "did you mean count", walker2d = "did you mean count",
      gripper = "allowed are dim", terrain = "allowed are slopes", soft_finger = "allowed are dim" } do
      refuses(function() return (require("scenes." .. scene) { cuont = 3 }) end, "scenes." .. scene
        .. ": unknown option cuont", said)
    end
    refuses(function() return (require "scenes.balloon"(3)) end, "scenes.balloon: options must be a table, got 3")
  end)
end)
