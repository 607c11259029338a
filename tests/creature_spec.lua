-- creature: how many particles, groups and signals each has, where its chambers lie, and what is refused.
local cq = require "cq"
local image = require "cq.base.image"
local message = require "cq.base.message"
local process = require "tests.process"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local Creature = cq.Creature
local STL, RHINO = "scenes/assets/creature.stl", "scenes/assets/rhino.png"
local FEET = { ["back.rear"] = "#d9694f", ["back.front"] = "#3f7fbf", ["fore.rear"] = "#e3b04b",
  ["fore.front"] = "#5fa777" }

local function volume(robot) return robot.volume:sum():item() end

-- mean position of a group
local function middle(robot, name) return robot.position:gather(robot:group(name):particles(), 1):mean(1):totable() end

local function within(robot)
  local low, high = robot.position:min(1):totable(), robot.position:max(1):totable()
  for d = 1, robot.dim do assert(low[d] >= 0 and high[d] <= robot.size[d] + 1e-12) end
end

describe("creatures of the papers", function()
  it("have as many particles as there", function()
    assert.equal(5024, Creature.biped({ drive = "cables" }).particle_count)
    assert.equal(12800, Creature.biped({ count = 40 }).particle_count)
    assert.equal(3200, Creature.biped().particle_count)
    assert.equal(17280, Creature.arm({ count = 12 }).particle_count)
    assert.equal(1176, Creature.arm({ dim = 2, count = 14 }).particle_count)
    assert.equal(1200, Creature.finger().particle_count)
    assert.equal(256, Creature.finger({ drive = "cables" }).particle_count)
    assert.equal(36200, 12800 + require "scenes.terrain" {}.robot.particle_count)
    for legs, count in pairs { [4] = 84375, [6] = 111375, [8] = 138375 } do
      local robot = Creature.nped { legs = legs, count = 15 }
      assert.equal(count, robot.particle_count)
      assert.equal(4 * legs, robot.actuator_count)
      assert.near(0.009 + legs * 0.001, volume(robot), 1e-12)
    end
    assert.equal(25 * 5 ^ 3, Creature.nped({ count = 5 }).particle_count)
    local rhino = Creature.from_image { path = RHINO, width = 0.45, particles = 20000, chambers = FEET }
    assert.near(20000, rhino.particle_count, 100)
    within(rhino)
    local animal = Creature.from_mesh { path = STL, length = 0.4, particles = 22000 }
    assert.near(22000, animal.particle_count, 150)
    within(animal)
  end)

  it("have cells that are nearly square", function()
    local robot = Creature.biped { drive = "cables" }
    assert(robot.volume:max():item() < 1.05 * robot.volume:min():item())
    assert.near(0.048, volume(robot), 1e-12)
    for _, one in ipairs { Creature.nped { spacing = 0.025 }, Creature.arm { spacing = 0.025 },
      Creature.crawler { spacing = 0.025 } } do
      assert(one.volume:max():item() < 1.5 * one.volume:min():item())
    end
    assert.equal(500, Creature.biped({ spacing = 0.01 }).particle_count)
    assert.equal(1200, Creature.finger({ spacing = 0.01 }).particle_count)
    assert.near(1000, Creature.finger({ drive = "cables", particles = 1000 }).particle_count, 25)
  end)

  it("stand on legs where they should", function()
    local robot = Creature.nped { legs = 8, count = 2, body = { 5, 3 }, side = 0.2 }
    assert.same({ 1, 0.4, 0.6 }, { robot.size[1], robot.size[2], tonumber(("%.10g"):format(robot.size[3])) })
    local names = { "back.left", "middle.left", "fore.left", "back.right", "middle.right", "fore.right", "back.middle",
      "fore.middle" }
    local x, z = { back = 0.1, middle = 0.5, fore = 0.9 }, { left = 0.1, middle = 0.3, right = 0.5 }
    for k, name in ipairs(names) do
      local along, across = name:match "(%w+)%.(%w+)"
      local at = middle(robot, name)
      assert.near(x[along], at[1], 1e-12)
      assert.near(0.1, at[2], 1e-12)
      assert.near(z[across], at[3], 1e-12)
      assert.equal(name .. ".1", robot.signals[4 * k - 3])
    end
    local first, last = middle(robot, "back.left.1"), middle(robot, "back.left.4")
    assert(first[1] < last[1] and first[3] < last[3])
    assert.equal(15 * 8, robot:group("body").particle_count)
  end)

  it("crawl on legs to both sides, each of chambers side by side", function()
    local robot = Creature.crawler { count = 2 }
    assert.equal(16, robot.actuator_count)
    assert.near(3 * 0.2 ^ 2 * 0.16 + 16 * 0.1 * 0.07 * 0.2, volume(robot), 1e-12)
    for _, along in ipairs { { "back", 0.1 }, { "fore", 0.5 } } do
      for _, across in ipairs { { "left", 0.1 }, { "right", 0.5 } } do
        local name = along[1] .. "." .. across[1]
        local at = middle(robot, name)
        assert.near(along[2], at[1], 1e-12)
        assert.near(0.08, at[2], 1e-12)
        assert.near(across[2], at[3], 1e-12)
        local low, high, fore = middle(robot, name .. ".1"), middle(robot, name .. ".2"), middle(robot, name .. ".3")
        assert.near(0.07, high[2] - low[2], 1e-12)
        assert.near(0.1, fore[1] - low[1], 1e-12)
      end
    end
    assert.same({ 0.6, 0.16, 0.6 }, { tonumber(("%.10g"):format(robot.size[1])), robot.size[2],
      tonumber(("%.10g"):format(robot.size[3])) })
  end)

  it("hang, or stand, from a root that is held", function()
    for _, hanging in ipairs { false, true } do
      local robot = Creature.arm { links = 3, count = 4, hanging = hanging }
      assert.equal(12, robot.actuator_count)
      assert.near(0.9, robot.size[2], 1e-12)
      local hand, root = middle(robot, "hand")[2], middle(robot, "root")[2]
      assert.near(hanging and 0.05 or 0.85, hand, 1e-12)
      assert.near(hanging and 0.875 or 0.025, root, 1e-12)
      assert.same({ "root" }, robot.pins)
    end
  end)
end)

describe("chambers by position", function()
  it("are the quadrants of the bottom quarter of a mesh", function()
    local robot = Creature.from_mesh { path = STL, length = 0.4, spacing = 0.02 }
    assert.same({ "back.left", "back.right", "fore.left", "fore.right" }, robot.signals)
    assert.same(robot.signals, robot.groups)
    assert(robot.surface, "films draw the mesh")
    local counts = {}
    for k, name in ipairs(robot.signals) do
      local at = middle(robot, name)
      counts[k] = robot:group(name).particle_count
      assert.equal(name:find "fore" ~= nil, at[1] > robot.size[1] / 2)
      assert.equal(name:find "right" ~= nil, at[3] > robot.size[3] / 2)
      assert(robot.position:gather(robot:group(name):particles(), 1):max(1):totable()[2] < robot.size[2] / 4 + 0.02)
    end
    assert.equal(counts[1], counts[2])
    assert.equal(counts[3], counts[4])
    -- a part is drawn by its own particles
    local part = robot:subset { "fore.left", "back.left" }
    assert.is_nil(part.surface)
    local world = cq.World { cells = { 16, 16, 16 }, dx = 0.05, dt = 1e-3, substeps = 1, part:at { 0.2, 0.2, 0.2 } }
    local path = os.tmpname() .. ".stl"
    world:rollout { steps = 0 }.state:save(path)
    assert(os.remove(path))
  end)

  it("are two in each foot of a drawing, or as the colours say", function()
    local by_place = Creature.from_image { path = RHINO, width = 0.45, spacing = 0.45 / 150 }
    local by_colour = Creature.from_image { path = RHINO, width = 0.45, spacing = 0.45 / 150, chambers = FEET }
    assert.same({ "foot.1.back", "foot.1.fore", "foot.2.back", "foot.2.fore" }, by_place.signals)
    assert.same({ "back.front", "back.rear", "fore.front", "fore.rear" }, by_colour.signals)
    for one, other in pairs { ["foot.1.back"] = "back.rear", ["foot.1.fore"] = "back.front",
      ["foot.2.fore"] = "fore.front" } do
      assert.near(middle(by_colour, other)[1], middle(by_place, one)[1], 0.005)
    end
  end)

  it("can be cut otherwise, and leave gaps", function()
    local function cut(chambers)
      return Creature.from_mesh { path = STL, length = 0.4, spacing = 0.02, chambers = chambers }
    end
    local whole, halves = cut { split = {} }, cut { split = { x = 2 }, gap = 0.06 }
    assert.same({ "bottom" }, whole.signals)
    assert.same({ "back", "fore" }, halves.signals)
    assert.equal(4, cut({ of = "foot", split = {}, bottom = 0.15 }).actuator_count)
    local own = cut { low = function(_, y) return y < 0.1 end, high = function(_, y) return y > 0.2 end }
    assert.same({ "high", "low" }, own.signals)
    says(sentence(cut, { split = { w = 2 } }),
      "chambers.split must be counts by axis, such as { x = 2, z = 2 }, got w = 2")
    says(sentence(cut, { split = { x = 40 } }), "has no particles")
    says(sentence(cut, { split = { x = 2 }, botom = 1 }), "unknown field botom (did you mean bottom?)")
    says(sentence(cut, { all = function() return 0 end }), "shape:group \"all\": the function must give true or false, got 0")
  end)
end)

describe("bad files and numbers", function()
  local folder, told, warn

  before_each(function()
    folder, told, warn = process.folder(), {}, message.warn
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
  end)
  after_each(function()
    process.remove(folder)
    message.warn = warn
  end)

  -- the creature's STL with something done to its triangles
  local function changed(name, change)
    local bytes = process.read(STL)
    local triangles = {}
    for k = 1, (#bytes - 84) / 50 do triangles[k] = change(bytes:sub(85 + 50 * (k - 1), 84 + 50 * k), k) end
    local path, ffi = folder .. "/" .. name .. ".stl", require "ffi"
    local file = assert(io.open(path, "wb"))
    file:write(bytes:sub(1, 80), ffi.string(ffi.new("uint32_t[1]", #triangles), 4), table.concat(triangles))
    file:close()
    return path
  end

  local function turned(t) return t:sub(1, 24) .. t:sub(37, 48) .. t:sub(25, 36) .. t:sub(49) end
  local function made(path, more)
    return Creature.from_mesh { path = path, length = more and more.length or 0.4, spacing = 0.02, chambers = more
      and more.chambers }
  end

  it("refuses a mesh that is open, or that does not agree with itself", function()
    local open = changed("open", function(t, k) return k > 1 and t or t:sub(1, 36) .. t:sub(25, 36) .. t:sub(49) end)
    says(sentence(made, open), "is open: 3 edges of its triangles have no neighbour there")
    says(sentence(made, changed("mixed", function(t, k) return k == 7 and turned(t) or t end)), "is open: 3 edges")
    assert.equal(0, #told)
    -- a shape alone is taken, with the same words
    cq.Shape.mesh { path = open, spacing = 0.05 }
    says(told[1], "is open: 3 edges of its triangles have no neighbour there, or one that faces the other way; what is "
      .. "inside of it is a guess near them")
  end)

  it("takes a mesh that is inside out the other way round, and says so", function()
    local count = made(STL).particle_count
    assert.equal(count, made(changed("inward", turned)).particle_count)
    assert.equal(1, #told)
    says(told[1], "is inside out, all its triangles face inward; it is taken the other way round")
  end)

  it("refuses a picture without a body, or without an outline", function()
    local path = folder .. "/a.png"
    local function drawn(pixel)
      image.write { path = path, width = 8, height = 8, pixel = pixel }
      return function() return Creature.from_image { path = path, width = 1, spacing = 0.1 } end
    end
    says(sentence(drawn(function() return 0, 0, 0, 0 end)), "has no body: every pixel is transparent or background")
    says(sentence(drawn(function(x) return x > 2 and 40 or 255, 255, 255 end)),
      "is body, it has no outline: none is transparent; its commonest colours are #28ffff, #ffffff; say which is "
        .. "outside, for instance background = \"#ffffff\"")
  end)

  it("refuses numbers that do not go together", function()
    says(sentence(Creature.nped, { legs = 5 }), "legs must be one of 4, 6, 8, got 5")
    says(sentence(Creature.nped, { legs = 6, body = { 4, 3 } }),
      "6 legs need a block in the middle of the body, so that its first number must be odd")
    says(sentence(Creature.arm, { root = 0.3 }), "root must be less than the length of a chamber")
    says(sentence(Creature.arm, { count = 2, links = 1 }),
      "no particle lies in its root, which is held and 0.05 long: the first are 0.05 deep; take more particles")
    says(sentence(Creature.arm, { count = 1, hanging = true }), "cq.Creature.arm: no particle lies in its root")
    says(sentence(Creature.finger, { count = 3 }), "cq.Creature.finger: no particle lies in its root")
    says(sentence(Creature.finger, { drive = "cables", particles = 4 }), "the first are 0.05 deep")
    says(sentence(Creature.biped, { particles = 100 }), "particles goes with drive = \"cables\"")
    for _, option in ipairs { "contraction", "friction", "inset", "stiffness" } do
      says(sentence(Creature.finger, { [option] = 0.01 }), option
        .. " goes with drive = \"cables\", and has no effect on air chambers")
    end
    for _, name in ipairs { "finger", "biped" } do
      says(sentence(Creature[name], { drive = "cables", max = 3 }),
        'max goes with drive = "pressure", and has no effect on cables')
    end
    says(sentence(Creature.finger, { drive = "cables", law = "spool", contraction = 0.4 }),
      "contraction = 0.4 has no effect under law = \"spool\"")
    assert.equal(256, Creature.finger({ drive = "cables", law = "spool" }).particle_count)
    says(sentence(Creature.nped, { count = 4, spacing = 0.1 }), "give either count or spacing, not both")
    says(sentence(Creature.biped, { drive = "cables", spacing = 0.1 }), "spacing goes with drive = \"pressure\"")
    says(sentence(Creature.biped, { drive = "cables", count = 4 }), "count goes with drive = \"pressure\"")
    says(sentence(Creature.biped, { drive = "cables", inset = 0.04 }),
      "inset must be less than half the width of a leg")
    says(sentence(Creature.from_mesh, { path = STL, length = 1 }), "give either particles or spacing")
    local function cut(make, chambers)
      return sentence(make, { path = make == Creature.from_mesh and STL or RHINO, particles = 2000, chambers = chambers,
        length = make == Creature.from_mesh and 0.4 or nil, width = make == Creature.from_image and 0.45 or nil })
    end
    says(cut(Creature.from_mesh, { fore = "#d9694f" }),
      "unknown field fore (chambers by colour are for a picture, and then all of them colours)")
    says(cut(Creature.from_image, { fore = function() return true end, bottom = 0.2 }),
      "unknown field fore (chambers by functions of a place are all of them functions)")
    says(sentence(Creature.biped, { groups = { trunk = { 1 } }, drive = "cables" }),
      "two groups with the name \"trunk\"")
    says(sentence(Creature.finger, { groups = { tip = { 1 } } }), "the creature has a group \"tip\" of its own")
    says(sentence(Creature.nped, { leg = 4 }), "unknown field leg (did you mean legs?)")
  end)
end)

describe("a terrain", function()
  it("raises columns of particles to its height, and is a wall too", function()
    local terrain = require "scenes.terrain" { slopes = { 45 }, flat = 0.2, period = 0.2, length = 0.6,
      count = { 60, 5 } }
    assert.near(0.1, terrain.height(0.3), 1e-12)
    assert.equal(300, terrain.robot.particle_count)
    assert.near(0.06, volume(terrain.robot), 1e-12)
    local top = terrain.robot.position:max(1):totable()[2]
    assert.near(0.09 + 0.095, top, 1e-9)
    assert.equal(120, terrain.robot:group("base").particle_count)
    assert.same({ 0.4 }, { tonumber(("%.12g"):format(terrain.ends[1])) })
    local world = cq.World { cells = { 40, 40 }, dx = 1 / 40, dt = 1e-3, terrain.robot:at { 0.1, 0.1 },
      Creature.biped({ count = 4 }):at { 0.1, 0.35 } }
    assert.equal(300 + 128, world.particle_count)
    local wall = terrain.wall({ 0.1, 0.1 }, { kind = "sticky" })
    assert.near(0.2, wall.flat[60], 0.006)
    says(sentence(function() return cq.Shape.box({ size = { 1, 1 } }):raised(function() return "x" end) end),
      "height must give a finite number")
  end)
end)

describe("a creature", function()
  it("runs in a world, driven by its chambers or cables", function()
    for _, robot in ipairs { Creature.finger { count = 8 }, Creature.finger { drive = "cables" } } do
      local world = cq.World { cells = { 40, 40 }, dx = 1 / 40, dt = 5e-3, substeps = 8, robot:at { 0.4, 0.1 } }
      local u = cq.tensor { { 1, -1 } }:expand { 60, 2 }
      local state = world:rollout({ steps = 60, controller = cq.Controller.open_loop(u) }).state
      local start = robot.position:gather(robot:group("tip"):particles(), 1):mean(1):totable()[1] + 0.4
      assert(math.abs(state:center("tip")[1]:item() - start) > 0.01)
    end
  end)
end)
