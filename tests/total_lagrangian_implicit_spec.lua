-- total_lagrangian_implicit: implicit total Lagrangian steps and world:settle: known answers, what the midpoint rule
-- keeps, walls, chambers and cables, gradients, the same bits, and mistakes. A cell and the density are 1.
local cq = require "cq"
local derivative = require "tests.derivative"
local same_bits = require "tests.same_bits"
local sentence = require("tests.sentence").of
local spread = require "tests.spread"
local tables = require "cq.base.tables"
local beam = require "tests.beam"
local balloon, finger = require "scenes.balloon", require "scenes.cable_finger"

local EXACT = { tolerance = 1e-11, adjoint_tolerance = 1e-11 }

local function exactly(fields)
  for key, value in pairs(EXACT) do fields[key] = fields[key] or value end
  return cq.Implicit(fields)
end

local function block(dim, fields)
  local size, count = { 4, 3, 3 }, { 8, 6, 6 }
  size[dim + 1], count[dim + 1] = nil, nil
  return cq.Robot {
    shape = cq.Shape.box { name = "block", size = size, count = count }, pins = fields.pins,
    groups = { root = function(x) return x < 0.6 end },
    material = cq.Material[fields.law or "neo_hookean"] { young = fields.young or 40, poisson = 0.3, density = 1,
      viscosity = fields.viscosity },
    actuators = cq.Actuator.pressure { groups = { "block" }, axis = "y", max = 4 },
  }
end

-- it falls from half a cell above a floor with friction
local function world_of(robot, fields)
  local dim = robot.dim
  local def = {
    cells = { 20, 14, 14 }, dx = 1, dt = 0.3, gravity = { 0.4, -1, 0.1 }, precision = "float64",
    formulation = "total_lagrangian", integrator = exactly {},
    walls = cq.Boundary.floor { at = 3, kind = "friction", mu = 0.3 },
  }
  for key, value in pairs(fields or {}) do def[key] = value or nil end
  def.cells[dim + 1], def.gravity[dim + 1] = nil, nil
  local at = { 6, 3.5, 5 }
  at[dim + 1] = nil
  def[1] = robot:at(at)
  return cq.World(def)
end

local function felt(state)
  local x, v, f = state:positions(), state:velocities(), state:deformations()
  return (x * spread(x:shape(), -0.4, 1)):sum() + (v * spread(v:shape(), 1, -0.3)):sum()
    + (f * spread(f:shape(), -1, 0.6)):mean()
end

describe("implicit total Lagrangian steps", function()
  it("bend a cantilever as far as explicit ones that have come to rest, and as settle", function()
    local gravity = 0.5 * beam.LENGTH / beam.timoshenko(1)
    local explicit = beam.sink(4, gravity, "total Lagrangian", 3)
    for _, method in ipairs { "total Lagrangian, implicit", "total Lagrangian, settle" } do
      assert.near(1, beam.sink(4, gravity, method, 3) / explicit, 1e-5)
    end
  end)

  it("keep the angular momentum of a free body by the midpoint rule, and most of the energy of a vibration", function()
    local function left(scheme)
      local robot = block(2, { young = 10 })
      local world = cq.World { cells = { 20, 20 }, dx = 1, dt = 0.2, precision = "float64",
        formulation = "total_lagrangian", integrator = exactly { scheme = scheme }, robot:at { 8, 8 } }
      local x = world.robot.position - world.robot.position:mean(1):unsqueeze(1)
      local velocity = x:matmul(cq.tensor { { 0.01, 0.1 }, { -0.1, 0 } })
      local function of(state)
        return state:angular_momentum("block"):item(),
          (state:energy("block", "kinetic") + state:energy("block", "elastic")):item()
      end
      local turning = world.robot:with { velocity = velocity }
      local l0, e0 = of(world:rollout { steps = 0, robot = turning }.state)
      local l, e = of(world:rollout { steps = 200, robot = turning }.state)
      world:close()
      return l / l0, e / e0
    end
    local l, e = left "midpoint"
    assert(math.abs(l - 1) < 1e-3 and e > 0.98 and e < 1.01, ("%.6f of L and %.4f of energy are left"):format(l, e))
    local less = left "backward_euler"
    assert(less < 0.97, ("%.4f of L is left"):format(less))
  end)

  it("damp vibrations by a viscosity as explicit steps do, and no rotation", function()
    -- a share of kinetic and elastic energy, and of angular momentum, after a time of 12
    local function left(viscosity, velocity, fields)
      local robot = block(2, { viscosity = viscosity })
      local def = { cells = { 20, 20 }, dx = 1, precision = "float64", formulation = "total_lagrangian",
        robot:at { 8, 8 } }
      for name, value in pairs(fields) do def[name] = value end
      local world = cq.World(def)
      local x = world.robot.position - world.robot.position:mean(1):unsqueeze(1)
      local moving = world.robot:with { velocity = x:matmul(cq.tensor(velocity)) }
      local function of(steps)
        local state = world:rollout({ steps = steps, robot = moving }).state
        return (state:energy("block", "kinetic") + state:energy("block", "elastic")):item(),
          state:angular_momentum("block"):item()
      end
      local e0, l0 = of(0)
      local e, l = of(math.floor(12 / def.dt + 0.5))
      world:close()
      return e / e0, l / l0
    end
    local explicit = { dt = 0.1, substeps = 20 }
    local midpoint = { dt = 0.05, integrator = exactly { scheme = "midpoint" } }
    local euler = { dt = 0.01, integrator = exactly {} }
    local stretching, turning = { { 0.1, 0 }, { 0, -0.1 } }, { { 0, 0.5 }, { -0.5, 0 } }
    -- beside what the steps themselves lose
    local function damped(fields) return left(0.2, stretching, fields) / left(nil, stretching, fields) end
    local wanted = damped(explicit)
    assert(wanted > 0.01 and wanted < 0.5, wanted)
    for name, fields in pairs { midpoint = midpoint, euler = euler } do
      local rest = damped(fields)
      local off, most = math.log(rest) / math.log(wanted) - 1, name == "midpoint" and 0.03 or 0.15
      assert(math.abs(off) < most, ("%s: %g is left, not %g"):format(name, rest, wanted))
    end
    -- half a radian a second, in long steps: what is lost is the vibration that the turn begins with
    midpoint.dt = 0.2
    local of_turn, l = left(0.5, turning, midpoint)
    local wanted_of_turn = left(0.5, turning, explicit)
    assert.near(1, l, 2e-3)                -- of particles, which are not all of the nodes' motion
    assert.near(wanted_of_turn, of_turn, 5e-4)
  end)

  it("have right gradients where walls are round or hills, with friction and without", function()
    local hills = {}
    for k = 1, 21 do hills[k] = 3.2 + 0.5 * math.cos(0.9 * k) end
    local walls = {
      hollow = function(more)
        return cq.Boundary.sphere(tables.merged(more, { center = { 8, 8 }, radius = 5.2, hollow = true }))
      end,
      solid = function(more) return cq.Boundary.sphere(tables.merged(more, { center = { 8, 0 }, radius = 3 })) end,
      hills = function(more) return cq.Boundary.height_field(tables.merged(more, { heights = hills, spacing = 1 })) end,
    }
    for name, wall in pairs(walls) do
      for _, scheme in ipairs { "midpoint", "backward_euler" } do
        for _, mu in ipairs { 0, 0.3 } do
          local world = world_of(block(2, {}), { integrator = exactly { scheme = scheme },
            walls = { wall(mu > 0 and { kind = "friction", mu = mu } or { kind = "separate" }) } })
          local function loss(v)
            return felt(world:rollout({ steps = 8, robot = world.robot:with { velocity = v } }).state)
          end
          local v, d = cq.zeros { 48, 2 }, spread({ 48, 2 }, 1, -0.5)
          local _, gradient = cq.value_and_grad(loss)(v)
          local function along(e) return loss(v + e * d):item() end
          local wanted, got = (along(1e-5) - along(-1e-5)) / 2e-5, (gradient * d):sum():item()
          assert(math.abs(got / wanted - 1) < 1e-5, ("%s, %s, mu %g: %g, not %g"):format(name, scheme, mu, got, wanted))
          world:close()
        end
      end
    end
  end)

  it("damp a free flight by time and not by step", function()
    for _, scheme in ipairs { "midpoint", "backward_euler" } do
      for _, dt in ipairs { 0.5, 0.1 } do
        local robot = block(2, {})
        local world = world_of(robot, { dt = dt, gravity = { 0, 0 }, walls = {}, damping = 0.7,
          integrator = exactly { scheme = scheme } })
        local v = cq.tensor { 1, 0.5 }:expand { robot.particle_count, 2 }
        local state = world:rollout({ steps = 1 / dt, robot = world.robot:with { velocity = v } }).state
        assert(((state:velocities() / v - math.exp(-0.7)):abs():max()):item() < 1e-9)
        world:close()
      end
    end
  end)

  it("are solved by a few products with the factor of the matrix, on a wall and at rest", function()
    local function products(solver) return (solver.linear:sum() / solver.newton:sum()):item() end
    local function bar(fields)
      local robot = cq.Robot {
        shape = cq.Shape.box { name = "bar", size = { 40, 8 }, spacing = 0.5 }, pins = fields.pins,
        groups = { root = function(x) return x < 2 end },
        material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 0.05 },
      }
      return world_of(robot, { integrator = cq.Implicit { tolerance = 1e-8 }, cells = { 64, 30 }, walls = fields.walls,
        gravity = { 0, fields.pins and -0.05 or -1 } })
    end
    local world = bar {}
    local fell = products(world:rollout({ steps = 12 }).solver)
    assert(fell > 0.5 and fell < 4.5, ("%.2f products for an iteration"):format(fell))
    world:close()
    local pinned = bar { pins = "root", walls = {} }
    local _, settled = pinned:settle {}
    assert(products(settled.solver) < 4.5, ("%.2f products for an iteration at rest"):format(products(settled.solver)))
    pinned:close()
  end)

  it("are of second order in time by the midpoint rule, and of first by backward Euler", function()
    local robot = block(2, { young = 10, pins = "root" })
    local function tip(scheme, dt)
      local world = world_of(robot, { dt = dt, walls = {}, integrator = exactly { scheme = scheme } })
      local x = world:rollout({ steps = 2.4 / dt }).state:positions()
      world:close()
      return x
    end
    for scheme, order in pairs { midpoint = 2, backward_euler = 1 } do
      local coarse, middle, fine = tip(scheme, 0.3), tip(scheme, 0.15), tip(scheme, 0.075)
      local found = math.log(((coarse - middle):norm() / (middle - fine):norm()):item()) / math.log(2)
      assert(found > order - 0.35, ("%s is of order %.2f"):format(scheme, found))
    end
  end)

  it("stop at walls that they would pass in one step, and rest where explicit steps do", function()
    for _, kind in ipairs { "separate", "friction", "sticky", "slip" } do
      local function lowest(fields)
        local world = world_of(block(2, {}), fields)
        local state = world:rollout({ steps = 60 }).state
        assert(state:velocities():abs():max():item() < 1e-2, kind)
        local low = state:positions():slice(2, 2, 2):min():item()
        world:close()
        return low
      end
      local function under(integrator, substeps, damping)
        return lowest { dt = 1, substeps = substeps, gravity = { 0, -1 }, damping = damping, integrator = integrator,
          walls = cq.Boundary.floor { at = 3, kind = kind, mu = kind == "friction" and 0.3 or nil } }
      end
      local explicit = under(false, 40, 0.5)
      for _, scheme in ipairs { "midpoint", "backward_euler" } do
        assert.near(explicit, under(cq.Implicit { tolerance = 1e-8, scheme = scheme }, 1, 0.5), 0.01)
      end
    end
  end)

  -- a pressure bursts a block whose free flight is shortened because it would turn particles inside out: nodes that
  -- would have landed on a wall, and now do not come near it, are not drawn to it
  it("begin where shortened flight ends, away from walls", function()
    local cell = cq.Shape.box { size = { 16, 6 }, spacing = 0.5 } - cq.Shape.box { at = { 3, 2 }, size = { 10, 2 } }
    local robot = cq.Robot { shape = cell, groups = { root = function(x) return x < 2 end }, pins = "root",
      material = cq.Material.neo_hookean { young = 100, poisson = 0.45, density = 1 },
      actuators = cq.Actuator.follower_pressure { name = "air", surface = { inside = { 8, 3 } }, max = 30 } }
    local world = cq.World { cells = { 28, 22 }, dx = 1, dt = 0.64, gravity = { 0, -0.016 }, precision = "float64",
      formulation = "total_lagrangian", integrator = cq.Implicit { tolerance = 1e-6 },
      walls = cq.Boundary.box { kind = "separate" }, robot:at { 4, 8 } }
    local state = world:rollout({ steps = 3, controller = function() return cq.tensor { 1 } end }).state
    assert(state:gather(nil, "jacobian"):min():item() > 0.3)
  end)

  it("give by walls and pins what momentum changes by", function()
    for _, scheme in ipairs { "backward_euler", "midpoint" } do
      for _, kind in ipairs { "sticky", "slip", "separate", "friction" } do
        local world = world_of(block(2, {}), { integrator = exactly { scheme = scheme }, gravity = { 0.2, -1 },
          walls = cq.Boundary.floor { at = 3, kind = kind, mu = kind == "friction" and 0.3 or nil } })
        local roll = world:rollout { steps = 12, contact = true }
        local given = roll.contact.impulse:sum(1):flatten() + 12 * 0.3 * 12 * cq.tensor { 0.2, -1 }
        assert((given - roll.state:momentum()):abs():max():item() < 1e-7, kind .. ", " .. scheme)
        world:close()
      end
    end
  end)

  it("slide and bounce on a slope as explicit ones of the same body, by the midpoint rule", function()
    local function speed(dt, substeps, integrator)
      local world = world_of(block(2, { young = 40 }), { dt = dt, substeps = substeps, integrator = integrator,
        gravity = { 0.287, -0.958 }, cells = { 80, 14 },
        walls = cq.Boundary.floor { at = 3, kind = "friction", mu = 0.2 } })
      local v = world:rollout({ steps = 6 / dt }).state:velocities():mean(1)
      world:close()
      return v
    end
    local explicit = speed(0.1, 20, false)
    assert(((speed(0.05, 1, exactly { scheme = "midpoint" }) - explicit):norm() / explicit:norm()):item() < 0.02)
  end)

  it("blow a ring up as far as its wall bears, with the pressure of the chamber at the end of a step", function()
    local scene = balloon { dim = 2, cells = 48, precision = "float64" }
    scene.world.formulation = "total_lagrangian"
    scene.world.substeps = 1
    scene.world.integrator = cq.Implicit { pressure = "implicit", tolerance = 1e-8 }
    local world = cq.World(scene.world)
    local state = world:settle { signals = { 1 } }
    local grown = (state:cavity_volume(scene.pressure) / world:rollout({ steps = 0 }).state
      :cavity_volume(scene.pressure)):item()
    assert.near(1, grown / scene.balance(2), 0.03)
  end)
end)

describe("gradients of implicit total Lagrangian steps", function()
  it("agree with central differences, on and off a floor, by both schemes", function()
    for _, dim in ipairs { 2, 3 } do
      for _, scheme in ipairs { "backward_euler", "midpoint" } do
        local robot = block(dim, {})
        local world = world_of(robot, { integrator = exactly { scheme = scheme } })
        local n = robot.particle_count
        derivative.check(function(p)
          local roll = world:rollout { steps = 5, controller = cq.Controller.open_loop(p.u), robot = robot:with {
            young = p.young, density = p.density, position = p.position, velocity = p.velocity } }
          return felt(roll.state)
        end, {
          u = 0.3 * cq.ones { 5, 1 }, young = 40 * cq.ones { n }, density = cq.ones { n },
          position = world.robot.position, velocity = 0.1 * cq.ones { n, dim },
        }, 1e-5)
        world:close()
      end
    end
  end)

  -- on a ball, whose normal turns with the place of a node; what walls give as well
  it("agree with central differences of contact on a curved wall, by all kinds and both schemes", function()
    for _, kind in ipairs { "sticky", "slip", "separate", "friction" } do
      for _, scheme in ipairs { "backward_euler", "midpoint" } do
        local robot = block(2, { young = 10 })
        local world = world_of(robot, { dt = 0.5, damping = 0.1, integrator = exactly { scheme = scheme },
          walls = cq.Boundary.sphere { center = { 8.7, 0 }, radius = 3.1, kind = kind,
            mu = kind == "friction" and 0.3 or nil, velocity = { 0.02, 0.05 } } })
        local n = robot.particle_count
        local values = { velocity = cq.tensor { { 0.1, -0.4 } } * cq.ones { n, 1 }, density = cq.ones { n },
          position = world.robot.position, wall = cq.tensor { { 0.02, 0.05 } } }
        derivative.check(function(p)
          local roll = world:rollout { steps = 6, contact = true, wall_velocity = p.wall,
            robot = robot:with { density = p.density, position = p.position, velocity = p.velocity } }
          local given = roll.contact
          assert(given.normal:max():item() > 0.1)
          return felt(roll.state) + (given.normal:square():sum() + (given.tangential * spread(given.tangential:shape(),
            -0.2, 1)):sum() + given.center:sum()) * 10
        end, values, 1e-5)
        world:close()
      end
    end
  end)

  it("agree with central differences of cables, lagged and at the end of a step", function()
    for _, cables in ipairs { "lagged", "implicit" } do
      local scene = finger { precision = "float64" }
      scene.world.formulation, scene.world.substeps = "total_lagrangian", 1
      scene.world.integrator = exactly { cables = cables }
      local world = cq.World(scene.world)
      local robot = world.robot
      derivative.check(function(p)
        local roll = world:rollout { steps = 4, controller = cq.Controller.open_loop(p.u),
          robot = robot:with { cable_stiffness = p.stiffness, cable_length = p.length } }
        return felt(roll.state)
      end, { u = cq.tensor { 0.8, -0.7 }:unsqueeze(1):expand { 4, 2 }, stiffness = robot.cable_stiffness,
        length = 0.97 * robot.cable_length }, 1e-5)
      world:close()
    end
  end)

  it("agree with central differences where a body settles", function()
    local robot = block(2, { pins = "root" })
    local world = world_of(robot, {})
    local n = robot.particle_count
    derivative.check(function(p)
      return felt(world:settle { robot = robot:with { young = p.young, density = p.density }, signals = p.u })
    end, { young = 40 * cq.ones { n }, density = cq.ones { n }, u = cq.tensor { 0.3 } }, 1e-5)
  end)

  it("that are no number are an error, and not 0", function()
    local world = world_of(block(2, {}), {})
    local said = sentence(function()
      cq.value_and_grad(function(velocity)
        local state = world:rollout({ steps = 2, robot = world.robot:with { velocity = velocity } }).state
        return (state:positions():sum() * 0):sqrt()
      end)(cq.param(cq.zeros { world.particle_count, 2 }))
    end)
    assert(said:find("nan", 1, true) or said:find("no number", 1, true), said)
  end)

  it("are the same bits with less memory, more threads and in a batch", function()
    local muscle = cq.Actuator.pressure { groups = { "block" }, axis = "y", max = 4 }
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "block", size = { 12, 12 }, count = { 24, 24 } },
      material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1 }, actuators = muscle,
    }
    same_bits(function(threads)
      return cq.World { cells = { 32, 32 }, dx = 1, dt = 0.2, threads = threads, precision = "float64",
        formulation = "total_lagrangian", integrator = cq.Implicit { scheme = "midpoint" }, gravity = { 0, -1 },
        walls = cq.Boundary.floor { at = 4, kind = "friction", mu = 0.3 }, robot:at { 10, 4.2 } }
    end, robot, "2 MiB")
  end)
end)

describe("implicit total Lagrangian steps refuse", function()
  local function mistaken(fields, robot)
    return sentence(function() return world_of(robot or block(2, {}), fields) end)
  end

  it("the midpoint rule on the grid of the world", function()
    assert.equal('cq.World: the midpoint rule is of total Lagrangian steps: add formulation = "total_lagrangian", or '
      .. 'take scheme = "backward_euler"',
      mistaken { formulation = "updated", integrator = cq.Implicit { scheme = "midpoint" } })
  end)

  it("collisions", function()
    assert.equal("cq.World: collisions are of explicit total Lagrangian steps; leave out the integrator",
      mistaken { collisions = true })
  end)

  it("bodies that meet, with a way out that there is", function()
    local a, b = block(2, {}), block(2, {})
    local world = cq.World { cells = { 24, 14 }, dx = 1, dt = 0.3, formulation = "total_lagrangian",
      integrator = cq.Implicit {}, a:at { 5, 5 }, b:at { 9.5, 5 } }
    local moving = world.robots[1]:with { velocity = { 3, 0 } }
    local said = sentence(function() return world:rollout { steps = 5, robot = { moving, world.robots[2] } } end)
    assert(said:find('give the world collisions = true and explicit steps, or formulation = "updated"', 1, true), said)
  end)

  it("are named where a world prints itself", function()
    local world = world_of(block(2, {}), { integrator = cq.Implicit { scheme = "midpoint" } })
    assert(tostring(world):find("float64, total Lagrangian, midpoint }", 1, true), tostring(world))
    assert.equal("cq.Implicit { midpoint, tolerance 0.001, adjoint_tolerance 1e-06 }", tostring(world.def.integrator))
  end)

  it("a step in which a body turns inside out, with a sentence", function()
    local robot = block(2, { law = "corotated" })
    local world = world_of(robot, { dt = 5, gravity = { 0, -400 } })
    local said = sentence(function() return world:rollout { steps = 10 } end)
    assert(said:find("did not converge", 1, true) or said:find("inverted", 1, true), said)
  end)

  it("a step that the midpoint rule ends with a particle inside out", function()
    local robot = cq.Robot { shape = cq.Shape.box { name = "body", size = { 16, 6 }, spacing = 0.5 }, pins = "root",
      groups = { root = function(x) return x < 2 end },
      material = cq.Material.neo_hookean { young = 100, poisson = 0.45, density = 1 },
      actuators = cq.Actuator.pressure { groups = "body", axis = "x", max = 120 } }
    local world = cq.World { cells = { 28, 22 }, dx = 1, dt = 0.64, formulation = "total_lagrangian",
      precision = "float64", integrator = cq.Implicit { tolerance = 1e-6, scheme = "midpoint" }, robot:at { 4, 8 } }
    local said = sentence(function()
      return world:rollout { steps = 20, controller = function() return cq.tensor { 1 } end }
    end)
    assert(said:find('particle %d+ of robot, group "body", was turned inside out %(det F = %-%d.*use more substeps'),
      said)
  end)

  it("a step whose damping leaves nothing of a velocity", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local said = sentence(function()
        return world_of(block(2, {}), { damping = 1e9, formulation = formulation }):rollout { steps = 1 }
      end)
      assert(said:find("the potential of the implicit step is no finite number, even where nothing moves: damping, signals", 1, true), said)
    end
  end)

  it("a wall that moves through a body", function()
    local world = world_of(block(2, { pins = "root" }), { walls = cq.Boundary.half_plane { point = { 10.6, 0 },
      normal = { -1, 0 }, kind = "sticky", velocity = { -60, 0 } } })
    local said = sentence(function() return world:rollout { steps = 2 } end)
    assert(said:find("walls that move turn a particle inside out in one implicit step", 1, true), said)
  end)
end)
