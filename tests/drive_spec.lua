-- drive: cables and pressures that follow their surface: what they do, their gradients, and what is refused.
local cq = require "cq"
local T = require "cq.tensor"
local differences = require "tests.differences"
local scratch = require "tests.scratch"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local finger, balloon = require "scenes.cable_finger", require "scenes.balloon"
local soft = cq.Material.neo_hookean { young = 10, poisson = 0.3 }

local function strip(actuators, more)
  local fields = {
    shape = cq.Shape.box { name = "strip", size = { 0.1, 0.3 }, count = { 4, 12 } }, material = soft,
    actuators = actuators,
    groups = { root = function(_, y) return y < 0.03 end, tip = function(_, y) return y > 0.25 end }, pins = "root",
  }
  for key, value in pairs(more or {}) do fields[key] = value end
  return cq.Robot(fields)
end

local function world_of(robot, more)
  local fields = { cells = { 32, 32 }, dx = 1 / 32, dt = 0.01, substeps = 6, precision = "float64",
    robot:at { 0.4, 0.2 } }
  for key, value in pairs(more or {}) do fields[key] = value end
  return cq.World(fields)
end

local function held(u) return function() return u end end

-- a path up the strip, given by places
local function side(x)
  local out = {}
  for k = 1, 6 do out[k] = { x, 0.05 * k - 0.03 } end
  return out
end

describe("a cable", function()
  it("bends a finger to its side, by as much on the other", function()
    local scene = finger { precision = "float64" }
    local world = cq.World(scene.world)
    local function tip(u) return world:rollout({ steps = 40, controller = held(u) }).state:center "tip" end
    local rest, left, right = tip { -1, -1 }, tip { 1, -1 }, tip { -1, 1 }
    assert.is_true(rest:close(scene.world[1].position:gather(scene.robot:group("tip"):particles(), 1):mean(1), 1e-12))
    assert.is_true(left[1]:item() < 0.4 and math.abs(left[1]:item() + right[1]:item() - 1) < 1e-9)
    assert.is_true(math.abs(left[2]:item() - right[2]:item()) < 1e-9)
  end)

  it("is as long as at first without a controller, as a muscle is slack then", function()
    local scene = finger { precision = "float64" }
    local world = cq.World(scene.world)
    local idle = world:rollout { steps = 10, batch = 2 }
    assert.is_true(idle.state:scene(2):center("tip"):close(
      world:rollout { steps = 10, controller = held { -1, -1 } }.state:center "tip", 1e-12))
    -- costs see that nobody gave a signal
    assert.same({ 0, 0 }, idle.signals[10][2]:totable())
    assert.equal(0, world:rollout({ steps = 2, effort = function(u) return u:square():sum() end }).effort:item())
    assert.equal(0, world:rollout({ steps = 2, running = function(_, u) return u:square():sum() end }).running:sum()
      :item())
    local both = world_of(strip { cq.Actuator.muscle { groups = "tip", axis = "y", max = 4 },
      cq.Actuator.muscle { groups = "tip", axis = "y", max = 4, pulses = true },
      cq.Actuator.pressure { groups = "tip", axis = "x", max = 4 } }, { gravity = { 0, -1 } })
    local slack, half = both:rollout { steps = 10 }, both:rollout { steps = 10, controller = held { 0, 0, 0 } }
    assert.is_true(slack.state:center "tip"[2]:item() > half.state:center "tip"[2]:item() + 1e-3)
  end)

  it("has a stiffness from robot:with that counts for automatic substeps", function()
    local function substeps(stiffness, with)
      local robot = strip(cq.Actuator.cable { path = side(0.0125), stiffness = stiffness }):at { 0.4, 0.2 }
      return world_of(robot, { substeps = "auto", with and robot:with { cable_stiffness = with } or robot }).substeps
    end
    assert.equal(substeps(1e5), substeps(1, 1e5))
    assert.is_true(substeps(1e5) > 3 * substeps(1))
  end)

  it("has the length of its path at the start, through groups, particles, places and anchors", function()
    local path = { { anchor = { 0.45, 0.9 } }, "tip", 7, { 0.0125, 0.0125 } }
    local r = strip(cq.Actuator.cable { path = path, stiffness = 1, gap = 1, name = "string" })
    assert.same({ "string" }, r.signals)
    local x = r.position
    local tip = x:gather(r:group("tip"):particles(), 1):mean(1)
    local function span(offset)
      local anchor = T.tensor { 0.45, 0.9 } - T.tensor(offset)
      return ((anchor - tip):square():sum():sqrt() + (tip - x[7]):square():sum():sqrt()
        + (x[7] - x[1]):square():sum():sqrt()):item()
    end
    assert.is_true(math.abs(r.cable_length:item() - span { 0, 0 }) < 1e-14)
    -- the anchor stays where it is when the robot is placed
    assert.is_true(math.abs(r:at({ 0.4, 0.2 }).cable_length:item() - span { 0.4, 0.2 }) < 1e-14)
    local fixed = strip(cq.Actuator.cable { path = path, stiffness = 1, gap = 1, rest_length = 0.5 })
    assert.equal(0.5, fixed:at({ 0.4, 0.2 }).cable_length:item())
  end)

  it("follows the paper's law: 1 is the rest, 0 has wound all of it in", function()
    local cable = cq.Actuator.cable { path = side(0.0125), stiffness = 0.5, law = "spool" }
    local world = world_of(strip(cable))
    local function tip(u)
      return world:rollout({ steps = 10, controller = held { u } }).state:center("tip")[2]:item()
    end
    assert.is_true(math.abs(tip(1) - tip(2)) < 1e-12)
    assert.is_true(tip(0.8) < tip(1) - 1e-3 and tip(0) < tip(0.8) and tip(-1) == tip(0))
  end)

  -- stiffness, length, friction, signals and what the body is made of, through contact
  local function gradient_scene(law)
    local function cable(x, more)
      local fields = { path = side(x), stiffness = 0.4, law = law }
      for key, value in pairs(more or {}) do fields[key] = value end
      return cq.Actuator.cable(fields)
    end
    local robot = strip({ cable(0.0125, { friction = 0.2 }), cable(0.0875) }, { pins = {} })
    local world = world_of(robot, {
      gravity = { 0, -3 }, walls = cq.Boundary.half_plane { point = { 0, 0.19 }, normal = { 0, 1 }, kind = "friction",
        mu = 0.4 },
    })
    return function(stiffness, length, friction, u, young)
      local body = robot:with { cable_stiffness = stiffness, cable_length = length, cable_friction = friction,
        young = young }
      local roll = world:rollout { robot = body, steps = 25, controller = cq.Controller.open_loop(u) }
      return roll.state:center("tip"):dot(T.tensor { 1, 2 }) + 0.3 * roll.state:velocity("tip")[1]
    end, robot
  end

  for _, law in ipairs { "contract", "spool" } do
    it("has gradients of all its numbers, law " .. law, function()
      local loss, robot = gradient_scene(law)
      local u = (T.arange(1, 50):reshape { 25, 2 } * 0.9):sin() * 0.2 + 0.6
      local inputs = { T.tensor { 0.4, 0.5 }, robot.cable_length * 0.98, T.tensor { 0.2, 0.1 }, u, T.full({ 48 }, 10) }
      for k, gradient in ipairs(differences.gradients(loss, inputs)) do
        local got = gradient.along
        -- large steps meet kinks, nodes that come to the floor, and small ones rounding
        local error = math.huge
        for _, h in ipairs { 1e-3, 1e-4, 1e-5, 1e-6 } do
          error = math.min(error, math.abs(differences.along(loss, inputs, gradient.directions, h) / got - 1))
        end
        assert.is_true(math.abs(got) > 1e-7 and error < 1e-7, ("input %d: %g is off by %g of it"):format(k, got, error))
      end
    end)
  end

  it("is trained per cable, and by one number for all", function()
    local loss = gradient_scene "contract"
    local u = T.full({ 25, 2 }, 0.5)
    assert.is_true(loss(0.4, 0.27, 0.1, u, 10):item() == loss(T.tensor { 0.4, 0.4 }, T.full({ 2 }, 0.27), T.tensor(0.1),
      u, 10):item())
    local scene = finger { precision = "float64" }
    local function train(entry)
      local run = cq.Experiment {
        world = cq.World(scene.world), duration = 0.2,
        controller = cq.Controller.open_loop(T.ones { 20, 2 } * T.tensor { 1, 0 }),
        trainable = { cable_stiffness = entry },
        objective = { terminal = function(state) return state:center("tip")[1] end },
        optimizer = cq.Optimizer.adam { rate = 0.05 },
      }
      run:optimize { iterations = 2, folder = scratch.open() }
      scratch.close()
      return run.params.robot.cable_stiffness
    end
    local each = train { min = 0.5, max = 5, per = "cable" }
    assert.same({ 2 }, each:shape())
    assert.is_true(each:get(1) > 2.01 and each:get(1) ~= each:get(2))
    assert.equal(0, train({ min = 0.5, max = 5 }).rank)
    says(sentence(train, { per = "particle" }), "is a value of each cable; say per = \"cable\", got \"particle\"")
  end)

  it("gives a batch a stiffness each", function()
    local scene = finger { precision = "float64" }
    local world = cq.World(scene.world)
    local body = scene.robot:with { cable_stiffness = T.tensor { { 1, 1 }, { 3, 1 } } }
    local both = world:rollout { robot = body, batch = 2, steps = 10, controller = held { 0.5, -1 } }
    for k, stiffness in ipairs { 1, 3 } do
      local one = world:rollout { robot = scene.robot:with { cable_stiffness = T.tensor { stiffness, 1 } }, steps = 10,
        controller = held { 0.5, -1 } }
      assert.is_true(one.state:center("tip"):equal(both.state:center("tip")[k]))
    end
  end)

  it("is seen in pictures", function()
    local Picture = require "cq.picture"
    local scene = finger {}
    local world = cq.World(scene.world)
    local paths = require("cq.actuator.cable").paths(world, world.layout.base.position:data())
    assert.equal(2, #paths)
    local function pixels(cables)
      return Picture.frame({
        domain = { 1, 1 }, volume = world.layout.base.volume, position = world.layout.base.position, cables = cables,
        width = 200, height = 200,
      }):pixels()
    end
    assert.are_not.equal(pixels(paths), pixels {})
  end)

  local function cable(changes)
    local fields = { path = side(0.0125), stiffness = 1 }
    for key, value in pairs(changes) do fields[key] = value end
    return function() return world_of(strip(cq.Actuator.cable(fields))) end
  end

  it("says what is wrong with it", function()
    says(sentence(cable { path = { "tip" } }), "path has 1 point; a cable needs 2 or more, in order")
    says(sentence(cable { stiffness = -1 }), "stiffness must be a finite number at least 0, got -1")
    says(sentence(cable { contraction = 1.5 }), "contraction must be")
    says(sentence(cable { contraction = 0.4, law = "spool" }), "contraction = 0.4 has no effect under law = \"spool\"")
    says(sentence(cable { path = { "tip", "tpi" } }), "no group \"tpi\" (did you mean tip?)")
    says(sentence(cable { path = { 3, 49 } }), "particles are whole numbers from 1 to 48 or group names, got 49")
    says(sentence(cable { path = { 3, { 0.4, 0.1 } } }), "point 2 of \"cable 1\" is { 0.4, 0.1 }, 0.312",
      "away from the nearest particle of robot")
    says(sentence(cable { path = { 3, true } }),
      "point 2 of \"cable 1\" must be a group name, a particle number, a place { x, y }", "got true")
    says(sentence(cable { path = { 3, { anchor = { 1 } } } }), "anchor must be 2 finite numbers")
    says(sentence(cable { path = { 3, { 0.0125, 0.0625 } } }), "points 1 and 2 of \"cable 1\" are at the same place")
    says(sentence(cable { path = { { anchor = { 0.1, 0.1 } }, { anchor = { 0.1, 0.2 } } } }),
      "goes through no particle, all of its points are anchors")
    says(sentence(cable { path = { 1, 48 } }), "points 1 and 2 of the cable \"cable 1\" are 0.285",
      "more than 0.25 (8 cells)", "give it gap = 0.285")
    says(sentence(cable { path = { 1, 48 }, gap = 0.1 }), "more than 0.1; a cable is straight between its points")
    says(sentence(cable { stiffness = 1e5 }), "the Courant number is", "or softer cables")
    local robot = strip(cq.Actuator.cable { path = side(0.0125), stiffness = 1 })
    local world = world_of(robot)
    says(sentence(function() world:rollout { robot = robot:with { cable_stiffness = 1e5 }, steps = 1 } end),
      "Courant number", "bounds for cable_stiffness")
    says(sentence(function() robot:with { cable_length = -1 } end),
      "cable_length must be at least 0 everywhere, the least is -1")
    says(sentence(function() robot:with { cable_stiffness = { tip = 2 } } end),
      "must be one number, or one for each of 1 cable, not by group")
    says(sentence(function() strip():with { cable_stiffness = 1 } end), "cable_stiffness: the robot has no cables")
  end)
end)

describe("a pressure that follows its surface", function()
  it("blows up a balloon until its walls hold it", function()
    local scene = balloon { precision = "float64" }
    local world = cq.World(scene.world)
    local roll = world:rollout {
      steps = 340, controller = function(_, _, time) return { math.min(1, time / 3) } end,
      record = function(state) return state:cavity_volume(scene.pressure) end,
    }
    assert.is_true(math.abs(roll.record:get(1) / (math.pi * scene.inner ^ 2) - 1) < 0.02)
    local area = roll.record:slice(301, 340):mean():item()
    local grown, exact = area / roll.record:get(1), scene.balance(2)
    assert.is_true(math.abs(grown / exact - 1) < 0.06, ("%g times as large, not %g"):format(grown, exact))
    -- nothing pushes the balloon as a whole
    assert.is_true(roll.state:center(scene.robot):close(T.tensor { 0.5, 0.5 }, 1e-9))
  end)

  it("knows the volume of its cavity, in the plane and in space", function()
    for dim = 2, 3 do
      local scene = balloon { precision = "float64", dim = dim, spacing = 0.02 }
      local world, one = cq.World(scene.world), scene.robot.surfaces[1]
      assert(one.chamber and not one.area)
      local function volume(stretch, turn)
        local c, s = math.cos(turn), math.sin(turn)
        local f = dim == 2 and { { c * stretch, -s }, { s * stretch, c } }
          or { { c * stretch, -s, 0 }, { s * stretch, c, 0 }, { 0, 0, 1 } }
        local F = T.tensor(f)
        local middle = T.full({ dim }, 0.5)
        local x = (world.layout.base.position - middle):matmul(F:transpose()) + middle
        local still = world:rollout { robot = scene.robot:with { position = x, deformation = F }, steps = 0 }
        return still.state:cavity_volume("air"):item()
      end
      local rest = volume(1, 0)
      local exact = dim == 2 and math.pi * 0.01 or 4 / 3 * math.pi * 1e-3
      assert.is_true(math.abs(rest / exact - 1) < 0.08, ("%g, not %g"):format(rest, exact))
      assert.is_true(math.abs(volume(1, 0.7) / rest - 1) < 1e-9)
      -- corners go where an affine motion takes them
      assert.is_true(math.abs(volume(1.2, 0.7) / rest - 1.2) < 1e-9)
    end
  end)

  it("pushes nothing as a whole, and turns nothing, however F has drifted from the shape", function()
    for dim = 2, 3 do
      local scene = balloon { precision = "float64", dim = dim, spacing = 0.02 }
      local world, n = cq.World(scene.world), scene.robot.particle_count
      local noise = (T.arange(1, dim * dim * n):reshape { n, dim, dim } * 1.7):sin() * 0.1
      local robot = scene.robot:with { deformation = cq.eye(dim):reshape({ 1, dim, dim }) + noise }
      local state = world:rollout({ robot = robot, steps = 1, controller = held { 1 } }).state
      local push = (state:velocities():norm() * scene.robot.volume:sum()):item()
      assert.is_true(push > 1e-4, push)
      assert.near(0, state:momentum():abs():max():item(), 1e-13 * push)
      assert.near(0, state:angular_momentum():abs():max():item(), 1e-13 * push)
      world:close()
    end
  end)

  it("has gradients of its signal, the body and the volume", function()
    local scene = balloon { precision = "float64" }
    local world = cq.World(scene.world)
    local function loss(u, young, velocity)
      local roll = world:rollout {
        robot = scene.robot:with { young = young, velocity = velocity }, steps = 12,
        controller = cq.Controller.open_loop(u),
        running = function(state) return 10 * state:cavity_volume(scene.pressure) end,
      }
      return roll.running:sum() + 100 * roll.state:cavity_volume "air" + roll.state:center(scene.robot):sum()
    end
    local n = world.particle_count
    local inputs = { (T.arange(1, 12):reshape { 12, 1 } * 0.7):sin() * 0.3 + 0.5, T.full({ n }, 20),
      (T.arange(1, 2 * n):reshape { n, 2 }):sin() * 0.02 }
    for k, gradient in ipairs(differences.gradients(loss, inputs)) do
      local got, want = gradient.along, differences.along(loss, inputs, gradient.directions, k == 2 and 1e-2 or 1e-3)
      assert.is_true(math.abs(got) > 1e-6 and math.abs(got - want) < 1e-6 * math.abs(want),
        ("input %d: %g, not %g"):format(k, got, want))
    end
  end)

  it("pushes on particles with areas and normals", function()
    local press = cq.Actuator.follower_pressure { surface = { particles = "top", area = 0.025, normal = { 0, 2 } },
      max = 3 }
    local robot = strip(press, { groups = { top = function(_, y) return y > 0.28 end }, pins = {} })
    local world = world_of(robot)
    local roll = world:rollout { steps = 2, controller = held { 0.5 } }
    -- four particles of 0.025 under a pressure of 1.5, for 0.02, on a mass of 0.03
    assert.is_true(roll.state:velocity(robot):close(T.tensor { 0, -1.5 * 0.1 * 0.02 / 0.03 }, 0.01, 1e-5))
    says(sentence(function() roll.state:cavity_volume(press) end), "the surface \"follower_pressure 1\" is open",
      "it encloses no volume")
    says(sentence(function() roll.state:cavity_volume "air" end), "got \"air\"; there is \"follower_pressure 1\"")
  end)

  it("says what is wrong with it", function()
    local ring = cq.Shape.box { size = { 0.3, 0.3 } } - cq.Shape.box { at = { 0.1, 0.1 }, size = { 0.1, 0.1 } }
    local function body(surface, shape)
      return function()
        cq.Robot { shape = shape or ring, spacing = 0.025, material = soft,
          actuators = cq.Actuator.follower_pressure { surface = surface } }
      end
    end
    local cup = ring - cq.Shape.box { at = { 0.1, 0.2 }, size = { 0.1, 0.1 } }
    says(sentence(body({ inside = { 0.15, 0.15 } }, cup)), "the cavity at { 0.15, 0.15 } is open")
    says(sentence(body { inside = { 0.15, 0.15 }, gruop = "wall" }),
      "surface with inside has no field gruop (did you mean group?); it takes inside and group")
    says(sentence(body { particles = { 1 }, area = 1, normal = { 0, 1 }, group = "wall" }),
      "surface with particles has no field group; it takes particles, area and normal")
    says(sentence(body { inside = { 0.05, 0.05 } }), "at the place { 0.05, 0.05 } there is a particle of robot")
    says(sentence(body { inside = { 0.5, 0.15 } }), "the place { 0.5, 0.15 } is not inside of robot")
    says(sentence(body { inside = { 1 } }), "inside must be a place { x, y } in the cavity")
    says(sentence(body {}), "must have either inside = a place in a cavity, or particles, area and normal")
    says(sentence(body { particles = { 1, 2 }, area = 1, normal = { 0, 0 } }), "a normal must not be the zero vector")
    says(sentence(body { particles = { 1, 2 }, area = { 1 }, normal = { 0, 1 } }), "one for each of 2 particles")
    says(sentence(body { particles = { 1, 1, 2 }, area = { 1, 2, 3 }, normal = { 0, 1 } }),
      "the list particles has 3, for 2 particles: some are named twice")
    says(sentence(body { particles = { 1, 2 }, area = { 1, 2, 3 }, normal = { 0, 1 } }),
      "the list area has 3, for 2 particles")
    says(sentence(body { particles = { 1, 2 }, area = math.huge, normal = { 0, 1 } }),
      "area must be a number, or one for")
    says(sentence(body { particles = { 1, 2 }, area = 1, normal = { 0, math.huge } }),
      "normal must be a vector of 2 numbers")
    body { particles = { 1, 2 }, area = 1, normal = { 0, -1e-200 } }()
    says(sentence(body { particles = { 1, 2 }, area = 1 }), "normal must be a vector of 2 numbers")
    local other = ring + cq.Shape.box { at = { 0.31, 0 }, size = { 0.1, 0.1 }, spacing = 0.017 }
    says(sentence(body({ inside = { 0.15, 0.15 } }, other)), "do not lie on one lattice")
  end)
end)

describe("a muscle", function()
  it("acts along a fibre, or alike in all directions, by signals or pulses", function()
    local function shape(fields, u)
      fields.groups, fields.max = "strip", 3
      local world = world_of(strip(cq.Actuator.muscle(fields), { pins = {} }))
      local F = world:rollout({ steps = 4, controller = held { u } }).state:mean(world.robot, "deformation")
      return F:get(1, 1), F:get(2, 2)
    end
    local x, y = shape({ axis = "y" }, 1)
    assert.is_true(y < 0.99 and x > 1, ("%g %g"):format(x, y))
    x, y = shape({ isotropic = true }, 1)
    assert.is_true(x < 0.99 and y < 0.99, ("%g %g"):format(x, y))
    local one, other = shape({ isotropic = true, pulses = true }, -1)
    assert.is_true(one == x and other == y)
    x, y = shape({ isotropic = true, pulses = true }, 1)
    assert.is_true(x > 1.01 and y > 1.01, ("%g %g"):format(x, y))
    x, y = shape({ isotropic = true, pulses = true }, 0)
    assert.is_true(math.abs(x - 1) < 1e-12 and math.abs(y - 1) < 1e-12)
    says(sentence(function() cq.Actuator.muscle { groups = "a", isotropic = true, axis = "x" } end),
      "either isotropic, or axis or direction, not both")
  end)
end)
