-- made: objects that were made stay as they are. What a script assigns to them later has no effect, and is an error
-- where they are used next.
local cq = require "cq"
local scene = require "tests.scene"
local mistake = require "tests.sentence"

local soft = { young = 10, poisson = 0.3 }

-- What a use of a world says after a script has assigned `value` to a field of an object in it.
local function said(name, value, find)
  local material = cq.Material.neo_hookean(soft)
  local actuator = cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 2 }
  local robot = scene.robot { material = material, actuators = actuator }
  local floor = cq.Boundary.floor { at = 0.1, mu = 0.5 }
  local world = scene.world(robot, { walls = { floor } })
  local object = find { world = world, robot = robot, wall = floor, material = material, actuator = actuator }
  object[name] = value
  return mistake.of(function() world:rollout { steps = 1 } end), world
end

describe("a field assigned after its world was made", function()
  for what, one in pairs {
    ["cq.World: gravity"] = { "gravity", { 0, 0 }, function(all) return all.world end },
    ["cq.World: damping"] = { "damping", 3, function(all) return all.world end },
    ["cq.World: control_dt"] = { "control_dt", 1, function(all) return all.world end },
    ["cq.World: robots"] = { 2, cq.Robot, function(all) return all.world.robots end },
    ["cq.World: walls"] = { 2, cq.Boundary.floor { at = 0.2 }, function(all) return all.world.walls end },
    ["cq.Robot: young"] = { "young", cq.full({ 32 }, 5), function(all) return all.robot end },
    ["cq.Robot: velocity"] = { "velocity", { 1, 0 }, function(all) return all.robot end },
    ["cq.Robot: density"] = { "density", 3, function(all) return all.world.robot end },
    ["cq.Boundary.floor: mu"] = { "mu", 0.1, function(all) return all.wall end },
    ["cq.Boundary.floor: velocity"] = { "velocity", { 1, 0 }, function(all) return all.wall end },
    ["cq.Boundary.floor: kind"] = { "kind", "x", function(all) return all.wall end },
    ["cq.Material.neo_hookean: young"] = { "young", 20, function(all) return all.material end },
    ["cq.Actuator.pressure: max"] = { "max", 20, function(all) return all.actuator end },
  } do
    it(("is an error: %s"):format(what), function()
      mistake.says(said(unpack(one)), what .. " was assigned ")
    end)
  end
end)

describe("a field assigned before its object is used", function()
  it("is an error too", function()
    local material, actuator = cq.Material.neo_hookean(soft), cq.Actuator.isotropic { count = 1, max = 1 }
    local wall, shape = cq.Boundary.floor { at = 0.1 }, cq.Shape.box { size = { 0.1, 0.1 }, count = { 4, 4 } }
    local robot = cq.Robot { shape = shape, material = material }
    local function world()
      return cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, walls = wall, robot:at { 0.4, 0.4 } }
    end
    world():rollout { steps = 1 }
    robot.young = cq.full({ 3 }, 5)
    mistake.fails("cq.Robot: young was assigned a cq.Tensor", function() world() end)
    material.viscosity = 3
    mistake.fails("cq.Material.neo_hookean: viscosity was assigned 3 after it was made, which has no effect; give it to the constructor, or give robot:with { viscosity = ... }",
      function() cq.Robot { shape = shape, material = material } end)
    actuator.max = -1
    mistake.fails("cq.Actuator.isotropic: max was assigned -1 after it was made",
      function() scene.robot { actuators = actuator } end)
    shape.lower = { -1, -1 }
    material = cq.Material.neo_hookean(soft)
    mistake.fails("cq.Shape.box: lower was assigned", function() cq.Robot { shape = shape, material = material } end)
    for _, use in ipairs { function() shape:at { 1, 0 } end, function() shape:raised(function() return 0 end) end,
      function() cq.Shape.union { cq.Shape.box { size = { 1, 1 }, count = { 4, 4 } }, shape } end,
      function() shape:mirror("x") end, function() shape:difference(cq.Shape.disc { radius = 0.1 }) end } do
      mistake.fails("cq.Shape.box: lower was assigned", use)
    end
    wall.mu, shape = "x", cq.Shape.box { size = { 0.1, 0.1 }, count = { 4, 4 } }
    robot = cq.Robot { shape = shape, material = material }
    mistake.fails("cq.Boundary.floor: mu was assigned", function() world() end)
  end)
end)

describe("what was assigned", function()
  it("is told by what is made from it, and where a rollout takes it", function()
    local robot = scene.robot()
    local world = scene.world(robot)
    local variant = world.robot:with { density = 2 }
    variant.young = 7
    mistake.fails("cq.Robot: young was assigned 7", function() world:rollout { steps = 1, robot = variant } end)
    mistake.fails("cq.Robot: young was assigned 7", function() variant:with { density = 1 } end)
    world:close()
    local stiff = cq.Material.neo_hookean(soft)
    stiff.young = 20
    mistake.fails("cq.Material.neo_hookean: young was assigned 20", function() stiff:capped(20) end)
  end)
end)

describe("a field assigned to an experiment", function()
  for name, value in pairs { duration = 2, steps = 3, trainable = { young = true }, variants = { {} }, reduce = "worst",
    scenes = { { { 0.5, 0.5 } } }, objective = function() return 1 end, world = "x", gradient = { decay = 0.5 },
    observer = cq.Observer.kmeans { clusters = 2 } } do
    it("is an error where it is used next: " .. name, function()
      local run = cq.Experiment { world = scene.world(scene.robot()), steps = 2,
        objective = { terminal = function(state) return state:velocity()[2] end } }
      run[name] = value
      for _, use in ipairs { function() run:evaluate() end, function() run:rollout(run.params) end,
        function() run:optimize { iterations = 1, optimizer = cq.Optimizer.adam { rate = 1 } } end } do
        mistake.fails(("cq.Experiment: %s was assigned "):format(name), use)
      end
    end)
  end
end)

describe("a field assigned to a design or a learner", function()
  it("is an error where it is used next", function()
    local robot = scene.robot { actuators = cq.Actuator.isotropic { count = 2, max = 1 } }
    local world = scene.world(robot)
    for name, value in pairs { symmetry = { axis = "x" }, connected = true, duration = 3, filter = {}, seed = 2 } do
      local design = cq.Topology { world = world, duration = 4 * world.control_dt }
      design[name] = value
      mistake.fails(("cq.Topology: %s was assigned "):format(name), function() design:map(design.params) end)
      mistake.fails(("cq.Topology: %s was assigned "):format(name), function()
        cq.Experiment { world = world, steps = 2, design = design, objective = function() return 1 end }:evaluate()
      end)
    end
  end)

  it("is one of a learner too", function()
    local pressure = cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 }
    local world = scene.world(scene.robot { actuators = pressure })
    local env = cq.Env { world = world, observer = cq.Observer.centroid { groups = { "foot" } }, scenes = 2, steps = 4,
      reward = function(_, u) return -u:square():sum(-1) end }
    for name, value in pairs { steps = 40, rate = 1, hidden = { 3 } } do
      local learner = cq.Learner.ppo { env = env, steps = 16, batch = 8, minibatches = 2, hidden = { 4 } }
      learner[name] = value
      mistake.fails(("cq.Learner.ppo: %s was assigned "):format(name), function() learner:train {} end)
    end
  end)
end)

describe("a list that was given to a constructor", function()
  it("of lists may be changed as well, also for another object", function()
    local points, list = { { 0.4, 0.4 }, { 0.6, 0.4 }, { 0.5, 0.6 } }, { cq.Actuator.isotropic { count = 1 } }
    local shape = cq.Shape.polygon { points = points, spacing = 0.02 }
    local robot = cq.Robot { shape = shape, material = cq.Material.neo_hookean(soft), actuators = list }
    local count = robot.particle_count
    points[1][1], points[4], list[2] = 0.5, { 0.4, 0.5 }, cq.Actuator.isotropic { count = 1 }
    assert.equal(count, cq.Robot({ shape = shape, material = cq.Material.neo_hookean(soft) }).particle_count)
    assert.equal(1, #robot:at({ 0, 0 }).actuators)
  end)

  it("may be changed later without any effect", function()
    local gravity, walls, size = { 0.3, -4 }, { cq.Boundary.floor { at = 0.1 } }, { 0.1, 0.1 }
    local shape = cq.Shape.box { size = size, count = { 4, 4 } }
    size[1] = 5
    local robot = cq.Robot { shape = shape, material = cq.Material.neo_hookean(soft) }
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, substeps = 4, gravity = gravity, walls = walls,
      robot:at { 0.4, 0.2 } }
    local before = world:rollout({ steps = 5 }).state:positions()
    gravity[2], walls[2] = 100, cq.Boundary.floor { at = 0.3 }
    assert.is_true(before:equal(world:rollout({ steps = 5 }).state:positions()))
    assert.is_true(before:equal(world:variant({ substeps = 1 }):rollout({ steps = 5 }).state:positions()))
    assert.equal(1, world:info().walls)
  end)
end)

describe("an object that was made", function()
  it("may have further fields, and copies of a robot other names", function()
    local material, wall = cq.Material.neo_hookean(soft), cq.Boundary.floor { at = 0.1 }
    local actuator = cq.Actuator.pressure { groups = { "foot" }, axis = "y", max = 2 }
    material.comment, wall.label, actuator.side = "soft", "floor", "left"
    local robot = scene.robot { material = material, actuators = actuator }
    local left, right = robot:at { 0.2, 0.3 }, robot:at { 0.6, 0.3 }
    left.name, right.name = "left", "right"
    local world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, substeps = 4, walls = wall, left, right }
    world:rollout { steps = 1 }
    assert.equal("right", world.robots[2].name)
    world:close()
  end)

  it("is freed, though what it remembers may hold it", function()
    local seen = setmetatable({}, { __mode = "k" })
    for _ = 1, 3 do
      local world
      world = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 1e-3, substeps = 4,
        gravity = function() return { 0, world and -1 or 0 } end, scene.robot():at { 0.4, 0.4 } }
      world:rollout { steps = 1 }
      seen[world] = true
    end
    for _ = 1, 3 do collectgarbage() end
    local left = 0
    for _ in pairs(seen) do left = left + 1 end
    assert.is_true(left <= 1, ("%d worlds are kept"):format(left))
  end)
end)
