-- total_lagrangian: steps of bodies on grids of their own shape: what they keep, walls, what drives bodies, gradients,
-- the same bits, and mistakes. A cell and the density are 1, and Young's modulus is 1 where nothing else is said.
local cq = require "cq"
local velocities = require("tests.scene").velocities
local same_bits = require "tests.same_bits"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local mistake = require "tests.sentence"
local sentence = mistake.of
local balloon, finger = require "scenes.balloon", require "scenes.cable_finger"

local WAVE = math.sqrt(1.35)     -- speed of waves, for a Poisson's ratio of 0.3
local HELD = 8                   -- engine steps of a control step at their usual length, a Courant number of 1/4

local function block(size, fields)
  local count = {}
  for i, length in ipairs(size) do count[i] = 2 * length end
  local material = { young = fields.young or 1, poisson = 0.3, density = 1, incompressible = fields.incompressible,
    viscosity = fields.viscosity }
  return cq.Robot {
    shape = cq.Shape.box { name = "block", size = size, count = count },
    material = cq.Material[fields.law or "neo_hookean"](material), pins = fields.pins, actuators = fields.actuators,
  }
end

-- part: into how many parts the usual engine step is divided
local function world_of(robot, at, fields)
  local dt = 0.25 / WAVE / math.sqrt(fields.young or 1)
  return cq.World {
    cells = fields.cells or { 64, 64 }, dx = 1, dt = fields.dt or HELD * dt,
    substeps = fields.substeps or HELD * (fields.part or 1),
    formulation = fields.formulation or "total_lagrangian", precision = fields.precision or "float64",
    gravity = fields.gravity, walls = fields.walls, damping = fields.damping, threads = fields.threads, robot:at(at),
  }
end

local function energy(state) return (state:energy("block", "kinetic") + state:energy("block", "elastic")):item() end

local function plane(height, kind, mu)
  return cq.Boundary.half_plane { point = { 0, height }, normal = { 0, 1 }, kind = kind, mu = mu }
end

describe("total Lagrangian steps keep", function()
  it("the energy of a vibration, at any step", function()
    local robot = block({ 20, 20 }, {})
    local v = velocities(robot, function(x) return 0.03 * math.sin(math.pi * (x - 10) / 20), 0 end)
    for _, part in ipairs { 1, 4 } do
      local world = world_of(robot, { 20, 20 }, { part = part, precision = "float32" })
      local variant = robot:with { velocity = v }
      local before = energy(world:rollout { robot = variant, steps = 0 }.state)
      local kept = energy(world:rollout { robot = variant, steps = 70 }.state) / before
      assert(kept > 0.99 and kept < 1.005, ("a share of %.4f is kept with %d parts"):format(kept, part))
      world:close()
    end
  end)

  it("angular momentum to rounding", function()
    local robot = block({ 10, 8 }, {})
    local v = velocities(robot, function(x, y) return -0.02 * (y - 4) + 0.03 * math.sin(x), 0.02 * (x - 5) end)
    local world = world_of(robot, { 22, 24 }, {})
    local roll = world:rollout { robot = robot:with { velocity = v }, steps = 100, record = function(state)
      return state:angular_momentum("block")
    end }
    -- readouts take the motion of a particle for affine, so that single ones differ from the nodes' own sum
    local l = roll.record:totable()
    local first, last = 0, 0
    for k = 1, 20 do first, last = first + l[k], last + l[#l - 20 + k] end
    assert.near(1, last / first, 1e-3)
  end)

  it("the height of a bounce, at any step", function()
    local risen = {}
    for k, part in ipairs { 1, 4 } do
      local robot = block({ 12, 12 }, {})
      local world = world_of(robot, { 26, 10 }, { part = part, gravity = { 0, -4e-4 }, walls = plane(4, "separate") })
      local roll = world:rollout { robot = robot, steps = 225, record = function(state)
        return state:center("block")[2]
      end }
      local low, high = math.huge, 0
      for _, y in ipairs(roll.record:totable()) do
        if y < low then low, high = y, 0 end
        high = math.max(high, y)
      end
      risen[k] = (high - low) / (16 - low)
      world:close()
    end
    assert.near(0.71, risen[1], 0.01)
    assert.near(risen[1], risen[2], 0.002)
  end)
end)

describe("total Lagrangian steps", function()
  -- the plane is tilted slowly
  local function slide(mu)
    local tilt = math.atan(0.3)
    local robot = block({ 12, 6 }, { young = 2000 })
    local world = world_of(robot, { 20, 10 }, {
      young = 2000, substeps = 20, dt = 0.04, walls = plane(10, "friction", mu),
      gravity = function(t)
        local pull, angle = math.min(1, t / 2), t < 3 and 0 or tilt * math.min(1, t - 3)
        return { math.sin(angle) * pull, -math.cos(angle) * pull }
      end,
    })
    local v = world:rollout { robot = robot, steps = 200, record = function(state)
      return state:velocity("block")[1]
    end }.record:totable()
    return (v[200] - v[125]) / 3, math.max(0, math.sin(tilt) - mu * math.cos(tilt))
  end

  it("slide down a slope as Coulomb has it, and stick to it", function()
    local found, theory = slide(0.2)
    assert.near(theory, found, 0.01 * theory)
    found = slide(0.4)
    assert.near(0, found, 0.004)
  end)

  it("lie on a sloping height field as on the plane that it is", function()
    local t, kind = math.tan(0.5), "sticky"
    for dim = 2, 3 do
      for along = 1, dim, 2 do
        local function heights(k) return along == 1 and 20 + 10 * t * k or { 20, 20 + 30 * t } end
        local size, at = { 4, 4, dim == 3 and 3 or nil }, { 12, 30, dim == 3 and 12 or nil }
        local field = along == 1 and dim == 3 and { { 20, 20 }, { 20 + 30 * t, 20 + 30 * t } }
          or along == 3 and { heights(), heights() } or { heights(0), heights(1), heights(2), heights(3) }
        local point, normal = { 0, 20, dim == 3 and 0 or nil }, { 0, 1, dim == 3 and 0 or nil }
        normal[along] = -t
        -- Where a block that is thrown down ends on a wall.
        local function ends(wall)
          local robot = block(size, {})
          local world = world_of(robot, at, { walls = wall, cells = dim == 3 and { 40, 48, 40 } or { 40, 48 } })
          local v = { 0, -0.3, dim == 3 and 0 or nil }
          local out = world:rollout({ steps = 20, robot = world.robot:with { velocity = v } }).state:positions():copy()
          world:close()
          return out
        end
        local spacing = dim == 2 and 10 or along == 1 and { 30, 40 } or { 40, 30 }
        local there = ends(cq.Boundary.height_field { heights = field, spacing = spacing, kind = kind })
        local plain = ends(cq.Boundary.half_plane { point = point, normal = normal, kind = kind })
        assert.is_true(there:close(plain, 1e-9), ("axis %d of %d"):format(along, dim))
        assert.is_true((plain - ends(nil)):abs():max():item() > 0.1)
      end
    end
  end)

  it("end on the floor wherever they fall from, in their gradient too", function()
    local robot = block({ 6, 6 }, {})
    local world = world_of(robot, { 10, 4.9 }, {
      dt = 1.72, walls = plane(4, "separate"), gravity = { 0, -4e-4 }, damping = 0.02,
    })
    local start = world:rollout { steps = 0 }.state:positions(robot):detach()
    local function height(raised)
      local way = cq.stack({ raised * 0, raised }, 1):unsqueeze(1)
      return world:rollout { robot = robot:with { position = start + way }, steps = 250 }.state:center(robot)[2]
    end
    -- 1 if nodes stopped where a step ends within the floor
    local rest, slope = cq.value_and_grad(height)(T(0))
    assert.near(6.99, rest, 0.01)
    assert.near(rest, height(T(0.2)):item(), 5e-3)
    assert.near(0, slope:item(), 0.05)
  end)

  it("stop at a wall that is given twice as at one", function()
    local robot, place = block({ 6, 6 }, {}), {}
    for count = 1, 2 do
      local walls = {}
      for k = 1, count do
        walls[k] = cq.Boundary.half_plane { point = { 20, 0 }, normal = { -1, 0 }, kind = "sticky" }
      end
      local world = world_of(robot, { 10, 10 }, { walls = walls })
      local thrown = robot:with { velocity = { 0.1, 0.01 } }
      place[count] = world:rollout { robot = thrown, steps = 120 }.state:center(robot)[1]:item()
      world:close()
    end
    assert.near(17, place[1], 0.5)
    assert.near(place[1], place[2], 1e-9)
  end)

  it("keep to a sticky floor that sinks, in float32 too", function()
    local robot = block({ 6, 6 }, { young = 10 })
    for _, precision in ipairs { "float64", "float32" } do
      local floor = cq.Boundary.half_plane {
        point = { 0, 30 }, normal = { 0, 1 }, kind = "sticky", moves = true,
        velocity = function(t) return { 0, t < 50 and 0 or -0.037 } end,
      }
      local world = world_of(robot, { 20, 30.3 }, {
        young = 10, walls = floor, precision = precision, damping = 0.05,
        gravity = function(t) return { 0, t < 50 and -0.01 or 0.002 } end,
      })
      local state = world:rollout { steps = math.floor(400 / world.control_dt) }.state
      local gap = state:positions(robot):slice(2, 2, 2):min():item() - 30 + 0.037 * (state.time - 50)
      assert(gap > 0 and gap < 0.5, ("%s: the block is %.3g off the floor"):format(precision, gap))
      world:close()
    end
  end)

  it("rest on a box of one and a half cells", function()
    local robot = block({ 6, 10 }, {})
    local world = world_of(robot, { 12, 20 }, {
      substeps = HELD / 2, damping = 0.02, gravity = function(t) return { 0, -0.04 * math.min(1, t / 50) } end,
      walls = cq.Boundary.obstacle { lower = { 4, 18.5 }, upper = { 28, 20 }, kind = "separate" },
    })
    local state = world:rollout { steps = math.floor(150 / world.control_dt) }.state
    assert.near(19.7, state:positions(robot):slice(2, 2, 2):min():item(), 0.2)
  end)

  it("bend a cantilever as finite elements do", function()
    -- 8 x 1, finite elements: 2.096
    local n, dx = 4, 1 / 4
    local shape = cq.Shape.box { name = "beam", size = { 8 + dx, 1 }, count = { 16 * n + 2, 2 * n } }
    local robot = cq.Robot {
      shape = shape:group("clamp", function(x) return x < dx end):group("tip", function(x) return x > dx + 7.75 end),
      material = cq.Material.neo_hookean { young = 1000, poisson = 0.3, density = 1 }, pins = { "clamp" },
    }
    local dt = 0.3 * dx / math.sqrt(1346)
    local world = cq.World {
      cells = { 40, 24 }, dx = dx, dt = 100 * dt, substeps = 100, formulation = "total_lagrangian",
      gravity = { 0, -0.4 }, damping = 1.2, precision = "float64", robot:at { 0.5, 4 },
    }
    local before = world:rollout { steps = 0 }.state:center("tip")[2]:item()
    local roll = world:rollout { steps = math.floor(40 / (100 * dt)), contact = true }
    assert.near(2.096, before - roll.state:center("tip")[2]:item(), 0.02 * 2.096)
    -- the pins hold the beam up, which weighs 8 and a clamp beside
    local held = roll.state:contact("pins").impulse:totable()
    assert.near(0.4 * (8 + dx), held[2] / (100 * dt), 5e-3 * 3.3)
  end)

  it("bend a finger by its cables to both sides, as steps on the spatial grid do", function()
    local function tips(formulation)
      local scene = finger { precision = "float64" }
      scene.world.formulation = formulation
      local world = cq.World(scene.world)
      local function tip(u)
        local roll = world:rollout { steps = 40, controller = function() return u end }
        return roll.state:center("tip")[1]:item()
      end
      local left, right = tip { 1, -1 }, tip { -1, 1 }
      world:close()
      return left, right
    end
    local left, right = tips "total_lagrangian"
    assert(left < 0.4, "it does not bend: " .. left)
    assert.near(1, left + right, 1e-3)   -- the grid begins at the left side and does not end at the right one
    assert.near((tips "updated"), left, 0.05 * (0.5 - left))
  end)

  it("blow up a free ring by a chamber without moving it, with gradients", function()
    local scene = balloon { dim = 2, cells = 24, precision = "float64" }
    scene.world.formulation = "total_lagrangian"
    local world = cq.World(scene.world)
    local function loss(p)
      local roll = world:rollout { steps = 10, robot = world.robot:with { young = p.young },
        controller = cq.Controller.open_loop(p.u) }
      return 10 * roll.state:cavity_volume "air":sum() + (roll.state:velocities():square()):mean(), roll.state
    end
    local at = { u = cq.ones { 10, 1 }, young = world.robot.young }
    local _, state = loss(at)
    local moved = state:velocities():mean(1):abs():max():item()
    assert(moved < 1e-12, "the ring moves by itself: " .. moved)
    local rest = world:rollout { steps = 0 }.state:cavity_volume("air"):item()
    assert(state:cavity_volume("air"):item() > 1.02 * rest, "the pressure does nothing")
    derivative.check(function(p) return (loss(p)) end, at, 1e-6)
  end)

  it("leave a gait as it is when the step is halved", function()
    local shape = cq.Shape.box { name = "arch", size = { 0.3, 0.16 }, count = { 60, 32 } }
    shape = shape:difference(cq.Shape.disc { at = { 0.15, 0 }, radius = 0.08 })
      :group("left", function(x, y) return y < 0.08 and x < 0.15 end)
      :group("right", function(x, y) return y < 0.08 and x >= 0.15 end)
    local robot = cq.Robot {
      shape = shape, material = cq.Material.neo_hookean { young = 50, poisson = 0.4, density = 1 },
      actuators = cq.Actuator.muscle { groups = { "left", "right" }, isotropic = true, max = 5, pulses = true },
    }
    local steps, dt, way = 3000, 2e-4, {}
    local u = cq.zeros { steps, 2 }
    for i = 0, steps - 1 do
      local phase = 2 * math.pi * i * dt / 0.1
      u:data()[2 * i], u:data()[2 * i + 1] = -math.sin(phase), -math.sin(phase + 1.5)
    end
    for k, substeps in ipairs { 1, 8 } do
      local world = cq.World {
        cells = { 100, 50 }, dx = 0.01, dt = dt, substeps = substeps, gravity = { 0, -9.8 },
        formulation = "total_lagrangian", walls = plane(0.1, "friction", 0.8), robot:at { 0.35, 0.1 },
      }
      local before = world:rollout { steps = 0 }.state:center("arch")[1]
      local roll = world:rollout { steps = steps, controller = cq.Controller.open_loop(u) }
      way[k] = (roll.state:center("arch")[1] - before):item()
      world:close()
    end
    assert(math.abs(way[1]) > 1e-3, "it does not walk: " .. way[1])
    assert.near(1, way[2] / way[1], 0.06)
  end)
end)

-- ---- gradients, bits ------------------------------------------------------------------------------------------------

local function actuated(dim, fields)
  local size = dim == 2 and { 6, 5 } or { 3, 4, 3 }
  local merged = { young = 40, actuators = cq.Actuator.pressure { groups = { "block" }, axis = "y", max = 4 } }
  for key, value in pairs(fields or {}) do merged[key] = value end
  return block(size, merged)
end

local function floor_world(robot, fields)
  local dim, merged = robot.dim, {}
  for key, value in pairs(fields or {}) do merged[key] = value end
  merged.young, merged.dt, merged.substeps = 40, 0.1, 5
  merged.cells = dim == 2 and { 20, 20 } or { 16, 16, 16 }
  merged.gravity = dim == 2 and { 0.1, -1 } or { 0.1, -1, 0 }
  merged.walls = merged.walls or cq.Boundary.floor { at = 4, kind = "friction", mu = 0.3 }
  return world_of(robot, dim == 2 and { 5, 4.2 } or { 5, 4.2, 5 }, merged)
end

local function felt(state, group)
  local x, v, f = state:positions(), state:velocities(), state:deformations()
  return x:mean() + 0.3 * (v * v):mean() + 0.2 * (f * f):mean() + 0.01 * state:mean(group or "block", "von_mises")
end

describe("gradients of total Lagrangian steps", function()
  for _, dim in ipairs { 2, 3 } do
    it(("agree with central differences in %dD, through contact"):format(dim), function()
      local robot = actuated(dim)
      local world = floor_world(robot)
      local n = robot.particle_count
      local function loss(p)
        local roll = world:rollout { steps = 8, controller = cq.Controller.open_loop(p.u), robot = robot:with {
          young = p.young, density = p.density, position = p.position, velocity = p.velocity,
        } }
        return felt(roll.state)
      end
      derivative.check(loss, {
        u = 0.3 * cq.ones { 8, 1 }, young = 40 * cq.ones { n }, density = cq.ones { n },
        position = world.robot.position, velocity = 0.1 * cq.ones { n, dim },
      }, 1e-6)
    end)
  end

  it("agree with central differences where positions are none of the parameters, in each law", function()
    for _, law in ipairs { "neo_hookean", "corotated", "linear", "saint_venant_kirchhoff" } do
      for _, own in ipairs { { dim = 3 }, { dim = 2, incompressible = 4 }, { dim = 2, viscosity = 0.4 },
        { dim = 3, viscosity = 0.4 } } do
        own.law = law
        local robot = actuated(own.dim, own)
        local world, n = floor_world(robot), robot.particle_count
        derivative.check(function(p)
          return felt(world:rollout { steps = 8, controller = cq.Controller.open_loop(p.u), robot = robot:with {
            young = p.young, poisson = p.poisson, volume = p.volume, velocity = p.velocity, viscosity = p.viscosity,
          } }.state)
        end, { u = 0.3 * cq.ones { 8, 1 }, young = 40 * cq.ones { n }, poisson = 0.3 * cq.ones { n },
          volume = robot.volume, velocity = 0.1 * cq.ones { n, robot.dim },
          viscosity = own.viscosity and own.viscosity * cq.ones { n } }, 1e-6)
        world:close()
      end
    end
  end)

  it("agree with central differences beside a curved wall whose surface runs, and that stands", function()
    for _, dim in ipairs { 2, 3 } do
      local robot, center, speed = actuated(dim), { 7, 0.2, 6 }, { 0.3, 0.2, 0.1 }
      center[dim + 1], speed[dim + 1] = nil, nil
      for _, kind in ipairs { "slip", "friction" } do
        local world = floor_world(robot, { walls = cq.Boundary.sphere { center = center, radius = 4, kind = kind,
          mu = kind == "friction" and 0.3 or nil, velocity = speed, moves = false } })
        derivative.check(function(p)
          return felt(world:rollout { steps = 8, wall_velocity = p.speed, robot = robot:with { velocity = p.v } }.state)
        end, { v = -0.1 * cq.ones { robot.particle_count, dim }, speed = cq.tensor { speed } }, 1e-6)
      end
    end
  end)

  it("agree with central differences of cables", function()
    local scene = finger { precision = "float64" }
    scene.world.formulation = "total_lagrangian"
    local world = cq.World(scene.world)
    local robot = world.robot
    local function loss(p)
      local variant = robot:with { cable_stiffness = p.stiffness, cable_length = p.length, cable_friction = p.friction }
      local roll = world:rollout { steps = 6, controller = cq.Controller.open_loop(p.u), robot = variant }
      return felt(roll.state, "finger")
    end
    local cables = robot.cable_length:size(1)
    derivative.check(loss, {
      u = cq.tensor { 0.8, -0.7 }:unsqueeze(1):expand { 6, 2 }, stiffness = robot.cable_stiffness,
      length = 0.97 * robot.cable_length, friction = 0.2 * cq.ones { cables },
    }, 1e-6)
  end)

  it("are the same bits with less memory, more threads and in a batch", function()
    local muscle = cq.Actuator.pressure { groups = { "block" }, axis = "y", max = 4 }
    local robot = block({ 40, 40 }, { young = 40, actuators = muscle })
    same_bits(function(threads)
      return world_of(robot, { 10, 4.2 }, { young = 40, cells = { 64, 64 }, dt = 0.1, substeps = 5,
        threads = threads, gravity = { 0, -1 }, walls = cq.Boundary.floor { at = 4, kind = "friction", mu = 0.3 } })
    end, robot, "6 MiB")
  end)

  -- the lowest particle is on the edge of two cells, by rounding in the one or the other
  it("lay out a coarse part beside a fine one", function()
    local size = { 0.2, 0.12 }
    local robot = cq.Robot {
      shape = {
        cq.Shape.box { name = "coarse", size = size, spacing = 0.04 },
        cq.Shape.box { name = "fine", at = size, size = size, spacing = 0.005 },
      },
      material = cq.Material.neo_hookean { young = 200, poisson = 0.3, density = 1 },
    }
    for k = 0, 60 do
      local world = cq.World { cells = { 60, 60 }, dx = 0.02, dt = 1e-4, formulation = "total_lagrangian",
        robot:at { 0.3 + 0.0011 * k, 0.08 + 0.0037 * k } }
      local state = world:rollout { steps = 1, robot = robot:with { velocity = { 1, 0 } } }.state
      assert.near(1, state:velocities():slice(1, 1, 2):min():item(), 1e-5)
      world:close()
    end
  end)

  it("begin with what a rollout is given, and read it back", function()
    local robot = actuated(2)
    local world = floor_world(robot, { walls = {} })
    local n = robot.particle_count
    local moved = world.robot.position + cq.tensor { 1.5, 2.25 }:unsqueeze(1)
    local given = robot:with { position = moved, velocity = cq.ones { n, 2 } }
    local state = world:rollout { steps = 0, robot = given }.state
    assert(((state:positions() - moved):abs():max():item()) < 1e-12)
    assert(((state:velocities() - 1):abs():max():item()) < 1e-12)
  end)
end)

describe("total Lagrangian steps refuse", function()
  local function mistaken(fields, robots)
    return sentence(function()
      local def = { cells = { 24, 24 }, dx = 1, dt = 0.01, formulation = "total_lagrangian" }
      for key, value in pairs(fields or {}) do def[key] = value end
      for _, robot in ipairs(robots or { actuated(2):at { 5, 5 } }) do def[#def + 1] = robot end
      return cq.World(def)
    end)
  end

  it("what flows, and name the other formulation", function()
    local water = cq.Robot { shape = cq.Shape.box { name = "water", size = { 4, 4 }, count = { 8, 8 } },
      material = cq.Material.fluid { bulk = 10, density = 1 } }
    local instead = 'take formulation = "updated"'
    assert.equal("cq.World: material 1 (fluid) flows or relaxes with time, which total Lagrangian steps do not follow: "
      .. instead .. " for its robot or the world", mistaken({}, { water:at { 5, 5 } }))
    local world = cq.World { cells = { 24, 24 }, dx = 1, dt = 0.01, formulation = "total_lagrangian",
      actuated(2):at { 5, 5 } }
    assert.equal("world:settle: needs a world with integrator = cq.Implicit {}; this one makes explicit steps",
      sentence(function() return world:settle {} end))
    assert.equal('cq.World: formulation must be one of "updated", "total_lagrangian", got "lagrangian"',
      mistaken { formulation = "lagrangian" })
  end)

  it("bodies that meet", function()
    local robot = block({ 4, 4 }, {})
    local world = cq.World { cells = { 24, 24 }, dx = 1, dt = 0.5, substeps = 4, formulation = "total_lagrangian",
      robot:at { 4, 4 }, robot:at { 12, 4 } }
    local v = cq.zeros { 2 * robot.particle_count, 2 }
    for p = 0, robot.particle_count - 1 do v:data()[2 * p] = 0.4 end
    local said = sentence(function()
      local moving = world.robots[1]:with { velocity = v:slice(1, robot.particle_count, 1) }
      return world:rollout { steps = 60, robot = { moving, world.robots[2] } }
    end)
    assert(said:find("two bodies meet: particle", 1, true), said)
    -- a design without void looks whether one of them is void
    local culprits = require("cq.rollout.unstable").culprits
    assert.same({ 2, true }, { #culprits, culprits[1].robot ~= culprits[2].robot })
    for _, culprit in ipairs(culprits) do
      assert(said:find(("particle %d of"):format(culprit.particle), 1, true), said)
    end
    assert(said:find('collisions = true, or formulation = "updated"', 1, true), said)
  end)

  it("bodies that meet within a long control step, or from the start, at the step where they do", function()
    local robot = block({ 4, 4 }, {})
    local function said(at, dt, substeps, velocity)
      local world = cq.World { cells = { 40, 24 }, dx = 1, dt = dt, substeps = substeps,
        formulation = "total_lagrangian", robot:at { 4, 8 }, robot:at { at, 8 } }
      return sentence(function()
        return world:rollout { steps = 1, robot = { world.robots[1]:with { velocity = velocity }, world.robots[2] } }
      end)
    end
    -- the first would be beyond the other at the end
    local text = said(12, 40, 320, { 0.4, 0 })
    assert(text:find("at control step 1 (time", 1, true) and text:find("two bodies meet", 1, true), text)
    text = said(4, 0.5, 4, { 0, 0 })
    assert(text:find("at control step 1 (time 0, substep 1)", 1, true) and text:find("two bodies meet", 1, true), text)
  end)

  it("a body that flies through a stretched one", function()
    local function box(name, size, young)
      local count = { 2 * size[1], 2 * size[2] }
      return cq.Robot { name = name, shape = cq.Shape.box { name = name, size = size, count = count },
        material = cq.Material.neo_hookean { young = young, poisson = 0, density = 1 } }
    end
    local membrane, ball = box("membrane", { 2, 20 }, 1e-4), box("ball", { 2, 2 }, 1)
    for _, height in ipairs { 0, 0.5, 1, 1.5, 2, 2.5 } do
      local world = cq.World { cells = { 60, 120 }, dx = 1, dt = 0.25, formulation = "total_lagrangian",
        membrane:at { 30, 50 }, ball:at { 6, 58 + height } }
      local stretching = velocities(world.robots[1], function(_, y) return 0, 0.04 * (y - 60) end)
      local said = sentence(function()
        return world:rollout { steps = 400,
          robot = { world.robots[1]:with { velocity = stretching }, world.robots[2]:with { velocity = { 0.5, 0 } } } }
      end)
      assert(said:find("two bodies meet", 1, true), said)
      world:close()
    end
  end)

  it("one particle in a cell, and pressure_smoothing", function()
    local sparse = cq.Robot { shape = cq.Shape.box { name = "sparse", size = { 4, 4 }, count = { 4, 4 } },
      material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 } }
    assert.equal("cq.World: robot has 1 particles along a cell; total Lagrangian steps need 1.5, or nodes swing "
      .. 'against each other without any stress: take more particles (spacing = dx / 2) or larger cells, or formulation = "updated"',
      mistaken({}, { sparse:at { 5, 5 } }))
    -- and a body that a rollout makes larger, with pins that it takes along and without
    for _, pins in ipairs { false, { 1 } } do
      local plate = block({ 4, 4 }, { pins = pins or nil })
      local world = world_of(plate, { 8, 8 }, {})
      local function stretched(factor)
        return world:rollout { steps = 1, robot = world.robot:stretched { axis = "x", factor = factor } }
      end
      stretched(1.7)
      mistake.says(sentence(stretched, 2.5), "world:rollout: robot has 1.26 particles along a cell")
      world:close()
    end
    assert.equal("cq.World: total Lagrangian steps have no liquids, whose pressure could be smoothed; leave out "
      .. 'pressure_smoothing, or take formulation = "updated"', mistaken { pressure_smoothing = 0.5 })
  end)

  it("solid walls of one cell or less, and no others", function()
    local Boundary, thick = cq.Boundary, cq.Boundary.obstacle { lower = { 12, 1 }, upper = { 20, 2.1 } }
    local function wall(number, cells)
      return ("cq.World: wall %d is %s cells thick, and total Lagrangian steps feel nothing of a wall of one cell or "
        .. 'less: make it thicker, take smaller cells, or formulation = "updated"'):format(number, cells)
    end
    assert.equal(wall(1, "1"), mistaken { walls = Boundary.obstacle { lower = { 12, 1 }, upper = { 20, 2 } } })
    assert.equal(wall(2, "0.8"), mistaken { walls = { thick, Boundary.sphere { center = { 15, 5 }, radius = 0.4 } } })
    cq.World { cells = { 24, 24 }, dx = 1, dt = 0.01, formulation = "total_lagrangian", actuated(2):at { 5, 5 },
      walls = { thick, Boundary.sphere { center = { 15, 8 }, radius = 0.6 },
        Boundary.sphere { center = { 7, 7 }, radius = 8, hollow = true } } }:close()
  end)

  it("a body too large for memory, after which its world goes on", function()
    local robot = block({ 4, 4, 4 }, {})
    local world = cq.World { cells = { 4000, 4000, 4000 }, dx = 1, dt = 0.01, formulation = "total_lagrangian",
      robot:at { 20, 20, 20 } }
    local before = world:rollout({ steps = 2 }).state:positions()
    local far = world.robot.position:copy()
    for d = 1, 3 do far:set(3900, robot.particle_count, d) end
    mistake.says(sentence(function()
      return world:rollout { steps = 2, robot = world.robot:with { position = far } }
    end), "the boxes around all bodies hold")
    assert.is_true(world:rollout({ steps = 2 }).state:positions():equal(before))
  end)

  it("a particle that leaves the world", function()
    local robot = block({ 4, 4 }, {})
    local world = cq.World { cells = { 24, 24 }, dx = 1, dt = 0.5, substeps = 4, formulation = "total_lagrangian",
      robot:at { 4, 4 } }
    local said = sentence(function()
      return world:rollout { steps = 100, robot = robot:with { velocity = T.ones { robot.particle_count, 2 } * -0.5 } }
    end)
    assert(said:find("left the world", 1, true), said)
  end)
end)
