-- refined: the same world on a finer grid, with its bodies sampled anew; and worlds with other steps.
local cq = require "cq"
local mistake = require "tests.sentence"
local scene = require "tests.scene"

local function names(robot, group)
  local out = {}
  for _, p in ipairs(robot:group(group):particles()) do out[p] = true end
  return out
end

describe("a robot that is sampled anew", function()
  it("has no more particles than a table of Lua can hold", function()
    mistake.refuses(function() scene.world(scene.robot()):refined(1e-6) end, "robot:resampled: ",
      "it takes 33554432 at most")
  end)
end)

describe("world:refined", function()
  local material = {
    foot = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
    trunk = cq.Material.corotated { young = 8, poisson = 0.2, density = 1.5 },
  }

  it("keeps mass, place, groups, materials and values of a body", function()
    local robot = scene.robot { material = material }:with { young = { trunk = 12 } }
    local world = scene.world(robot)
    local finer = world:refined(0.8)
    local before, after = world.robot, finer.robot
    assert.is_true(math.abs(after.volume:sum():item() - before.volume:sum():item()) < 1e-12)
    for _, name in ipairs { "foot", "trunk" } do
      local function middle(w) return w:rollout({ steps = 0 }).state:center(name):totable() end
      local a, b = middle(world), middle(finer)
      for d = 1, 2 do assert.is_true(math.abs(a[d] - b[d]) < 0.3 * finer.dx, name) end
    end
    local foot = names(after, "foot")
    for p, source in ipairs(after.sources) do
      assert.equal(foot[p] or false, names(before, "foot")[source] or false)
      local gap = after.position[p] - before.position[source]
      assert.is_true(gap:abs():max():item() <= 0.5 * 0.025 * (1 + 1e-9))
    end
    local young = require("cq.robot.values").spread(after, "young")
    local trunk = after:group("trunk"):particles()[1]
    assert.equal(12, young:get(trunk))
    assert.equal(before.root, after.root)
  end)

  it("has the ground at the same node, and as many more substeps as cells are smaller", function()
    for inset, cells in pairs { [3 / 24] = 0.75, [4 / 24] = 0.8, [4.4 / 24] = 0.8 } do
      local robot = scene.robot()
      local world = cq.World { cells = { 24, 25 }, dx = 1 / 24, dt = 6e-3, substeps = 4, gravity = { 0, -4 },
        walls = { cq.Boundary.box { mu = 0.4, inset = inset, name = "room" } }, robot:at { 0.4, 0.2 } }
      local finer = world:refined(0.8)
      assert.is_true(math.abs(finer.dx * 24 - cells) < 1e-12, finer.dx * 24)
      assert.equal(math.ceil(4 / cells - 1e-9), finer.substeps)
      local wall = finer.walls[1]
      assert.is_true(math.abs(wall.lower[2] - math.floor(inset * 24 + 1e-6) / 24) < 1e-12)
      assert.is_true(wall.upper[2] - wall.lower[2] >= 25 / 24 - 2 * inset - 1e-9)
      assert.equal(0.4, wall.mu)
      -- the wall of before stands for the one here
      local roll = finer:rollout { steps = 30, contact = true }
      assert.equal(roll.state:contact("room").normal:item(), roll.state:contact(world.walls[1]).normal:item())
    end
  end)

  it("is finer where the ground is on the first node too", function()
    local low = scene.world(scene.robot(), { walls = cq.Boundary.floor { at = 1 / 24 } })
    local finer = low:refined(0.8)
    assert.near(0.5 / 24, finer.dx, 1e-12)
    assert.equal(2 * low.substeps, finer.substeps)
  end)

  it("treats a plane across an axis as a floor, and one beside a body by its nearest node", function()
    local function refined(...)
      local robot = scene.robot()
      return cq.World { cells = { 24, 25 }, dx = 1 / 24, dt = 6e-3, substeps = 4, gravity = { 0, -4 }, walls = { ... },
        robot:at { 0.4, 0.2 } }:refined(0.8)
    end
    local plane, slant = cq.Boundary.half_plane, { point = { 0.2, 0.1 }, normal = { 1, 1 } }
    local floor = refined(cq.Boundary.floor { at = 3.1 / 24 })
    local finer = refined(plane { point = { 0, 3.1 / 24 }, normal = { 0, 2 } },
      plane { point = { 0.9, 0 }, normal = { -1, 0 } }, plane(slant))
    assert.equal(floor.dx, finer.dx)
    assert.is_true(math.abs(finer.walls[1].point[2] - 3 / 24) < 1e-12)
    -- node 22 of 1 / 24 is 29.3 of 0.75 / 24
    local side = finer.walls[2].point[1] / finer.dx
    assert.is_true(math.abs(side - 29) < 1e-9 and side * finer.dx >= 0.9)
    assert.same(slant.point, finer.walls[3].point)
  end)

  it("takes cables, pins, markers and forces along", function()
    local shape = cq.Shape.box { name = "beam", size = { 0.4, 0.1 }, spacing = 0.02 }
    local robot = cq.Robot { shape = shape, material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      groups = { root = function(x) return x < 0.04 end }, pins = { "root", 1 }, markers = 9,
      actuators = { cq.Actuator.cable { path = { { 0.01, 0.09 }, { 0.2, 0.09 }, { 0.39, 0.09 } }, stiffness = 3 },
        { particles = "beam", signals = 1, force = function(_, u, x) return x * 0 + u * 1e-4 end } } }
    local world = cq.World { cells = { 30, 20 }, dx = 0.04, dt = 5e-3, substeps = 5, robot:at { 0.2, 0.3 } }
    local finer = world:refined(0.8)
    local own = finer.robot
    assert.equal(3, #own.cables[1].points)
    assert.is_true(math.abs(own.cable_length:item() - world.robot.cable_length:item()) < 0.02)
    assert.equal("root", own.pins[1])
    assert.is_true(own:group("root").particle_count > world.robot:group("root").particle_count)
    assert.is_true(own:group("markers").particle_count >= 9)
    local roll = finer:rollout { steps = 20, controller = function() return cq.tensor { 0.5, 0.3 } end }
    local other = world:rollout { steps = 20, controller = function() return cq.tensor { 0.5, 0.3 } end }
    local a, b = roll.state:center("beam"), other.state:center("beam")
    assert.is_true((a - b):norm():item() < 0.1 * finer.dx)
    assert.is_true((b - world:rollout({ steps = 0 }).state:center("beam")):norm():item() > 0.01 * finer.dx)
  end)

  it("gives k-means clusters that are those of before", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local observer = cq.Observer.kmeans { clusters = 5 }
    local function seen(w) return observer:observe(w:rollout({ steps = 0 }).state) end
    local gap = seen(world) - seen(world:refined(0.8))
    assert.is_true(gap:abs():max():item() < 0.3 / 24)
  end)

  it("works in space, and refuses surfaces under pressure", function()
    local world = scene.world(scene.robot { dim = 3 })
    local finer = world:refined(0.8)
    assert.is_true(finer.particle_count > 1.6 * world.particle_count)
    local roll = finer:rollout { steps = 3 }
    assert.is_true(roll.state:center("trunk"):finite())
    local part = { position = world.robot.position }
    mistake.says(mistake.of(function() scene.robot { dim = 3 }:with(part):resampled(0.8) end),
      "has places or volumes of its own")
  end)
end)

describe("world:variant", function()
  it("is the same world with other steps, and is closed with it", function()
    local world = scene.world(scene.robot())
    local finer = world:variant { substeps = 2 }
    assert.equal(6, finer.substeps)
    assert.equal(world, finer.variant_of)
    assert.equal(finer, world:variant { substeps = 2 })
    assert.equal("float32", world:variant({ precision = "float32" }).precision)
    local by_hand = scene.world(scene.robot(), { substeps = 6 })
    local function place(w) return w:rollout({ steps = 20 }).state:center("trunk")[1]:item() end
    assert.equal(place(by_hand), place(finer))
    assert.is_true(place(world) ~= place(finer))
    world:set_substeps(4)
    assert.is_false(finer.owned.open)
    assert.equal(8, world:variant({ substeps = 2 }).substeps)
    world:close()
  end)
end)
