-- settle: equilibria beside closed forms and rollouts that have come to rest, and their gradients beside differences.
local cq = require "cq"
local message = require "cq.base.message"
local sentence = require "tests.sentence"

local function beam(options)
  local bar = cq.Robot {
    shape = cq.Shape.box { size = { 0.45, 0.05 }, at = { 0.1, 0.2 } }, spacing = 0.00625, pins = "root",
    groups = { root = function(x) return x < 0.15 end, tip = function(x) return x > 0.54 end },
    material = cq.Material.neo_hookean { young = 1e6, poisson = 0.3, density = 1000 },
    actuators = options.actuators,
  }
  return cq.World { cells = { 64, 32 }, dx = 0.0125, dt = 0.01, gravity = { 0, -1 }, precision = "float64",
    damping = options.damping, integrator = cq.Implicit { tolerance = options.tolerance or 1e-9,
      adjoint_tolerance = 1e-9, linear_iterations = 20000 }, bar }, bar
end

-- A column of three times the weight that it buckles under: straight as it stands, Newton's method does not see it.
local function column(integrator)
  local gravity = integrator.gravity or { 0, -200 }
  integrator.gravity = nil
  local body = cq.Robot {
    shape = cq.Shape.box { size = { 0.0625, 0.5 } }, spacing = 0.015625, pins = "root",
    groups = { root = function(_, y) return y < 0.0625 end, tip = function(_, y) return y > 0.46875 end },
    material = cq.Material.neo_hookean { young = 2e3, poisson = 0.3, density = 1 },
  }
  return cq.World { cells = { 28, 28 }, dx = 0.03125, dt = 0.1, gravity = gravity, precision = "float64",
    integrator = cq.Implicit(integrator), body:at { 13 / 32, 4 / 32 } }
end

local function difference(f, at, h) return (f(at + h) - f(at - h)) / (2 * h) end

describe("world:settle", function()
  it("bends a beam as its theory says, shorter by what the pins hold", function()
    local world = beam {}
    local E, nu, t = 1e6, 0.3, 0.05
    local drop = 0.225 - world:settle():center "tip"[2]:item()
    -- a mean over the tip's particles, 5 mm before the end of what theory has
    local function theory(length) return 1000 * 12 * (1 - nu ^ 2) * length ^ 4 / (8 * E * t ^ 2) end
    assert.is_true(drop < theory(0.4) and drop > theory(0.4 - 0.0125 - 0.005), ("drop %g of %g"):format(drop,
      theory(0.4)))
  end)

  it("has no momentum and no kinetic energy, in a batch and by scene", function()
    local world = beam {}
    for _, state in ipairs { world:settle(), world:settle { batch = 2 }, world:settle({ batch = 2 }):scene(2) } do
      for _, motion in ipairs { state:energy(nil, "kinetic"), state:momentum "tip", state:angular_momentum() } do
        assert.equal(0, motion:abs():max():item())
      end
      assert.is_true(state:energy():equal(state:energy(nil, "elastic") + state:energy(nil, "potential")))
    end
  end)

  it("is where a damped rollout ends", function()
    -- up to what a body gives way when its particles move on over the grid: 3 % of 12.6 mm
    local world = beam { damping = 20, tolerance = 1e-6 }
    local settled = world:settle():center "tip"[2]:item()
    local rolled = world:rollout { steps = 100 }.state
    assert.near(settled, rolled:center "tip"[2]:item(), 5e-4)
    assert.near(0, rolled:velocity "tip"[2]:item(), 2e-3)
  end)

  it("takes the weights of the grid anew as often as it is told, with the gradient", function()
    local world, bar = beam {}
    local first = world:settle()
    local rested = bar:with { position = first:positions(), deformation = first:deformations() }
    local second = world:settle { robot = rested }
    local updated = world:settle { updates = 1 }
    assert.is_true(updated:positions():close(second:positions(), 0, 1e-9))
    assert.is_true((first:positions() - second:positions()):abs():max():item() > 1e-6)
    local function tip(young)
      return world:settle({ updates = 1, robot = bar:with { young = young } }):center "tip"[2]
    end
    local gradient = cq.grad(tip)(cq.param(1e6)):item()
    local wanted = difference(function(young) return tip(young):item() end, 1e6, 1e2)
    assert.is_true(math.abs(gradient / wanted - 1) < 1e-5, ("%g, not %g"):format(gradient, wanted))
  end)

  it("takes gravity that follows the time as it is at the start", function()
    local function tip(gravity)
      local world = column { tolerance = 1e-9, gravity = gravity }
      return world:settle({ updates = 2 }):center "tip"[2]:item()
    end
    assert.equal(tip { 0, -20 }, tip(function(t) return { 0, -20 - 1e3 * t } end))
  end)

  it("knows no viscosity, whatever the step", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      local drop, slope = {}, {}
      for k, how in ipairs { { 0, 0.01 }, { 50, 0.01 }, { 50, 0.001 } } do
        local bar = cq.Robot { shape = cq.Shape.box { size = { 0.4, 0.1 }, at = { 0.1, 0.2 } }, spacing = 0.0125,
          groups = { root = function(x) return x < 0.15 end }, pins = "root",
          material = cq.Material.neo_hookean { young = 1e5, poisson = 0.3, density = 1000,
            viscosity = how[1] > 0 and how[1] or nil } }
        local world = cq.World { cells = { 32, 24 }, dx = 0.025, dt = how[2], gravity = { 0, -1 },
          precision = "float64", formulation = formulation,
          integrator = cq.Implicit { tolerance = 1e-10, adjoint_tolerance = 1e-10 }, bar }
        local by_place = cq.value_and_grad(function(x)
          return world:settle({ robot = world.robot:with { position = x } }):center(bar)[2]
        end)
        drop[k], slope[k] = by_place(world.robot.position)
      end
      for k = 2, 3 do
        assert.near(drop[1], drop[k], 1e-9)
        assert.is_true(slope[1]:close(slope[k], 1e-8), formulation)
      end
    end
  end)

  it("finds the rest of what lies on a floor, with friction and without", function()
    for _, mu in ipairs { 0, 0.5 } do
      local bar = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, at = { 0.2, 0.1 } }, spacing = 0.0125,
        material = cq.Material.neo_hookean { young = 2e4, poisson = 0.4, density = 1000 } }
      local world = cq.World { cells = { 24, 24 }, dx = 0.025, dt = 0.02, gravity = { 0, -10 }, precision = "float64",
        integrator = cq.Implicit { tolerance = 1e-6 }, walls = cq.Boundary.floor { at = 0.1, mu = mu }, bar }
      local drop = 0.2 - world:settle():center(bar)[2]:item()
      -- rho g h^2 / 2 E is 0.01, less in plane strain, with a floor that holds and acts at nodes
      assert.is_true(drop > 0.004 and drop < 0.01, drop)
      -- without friction nothing holds it along the floor, and rounding may shift it
      assert.near(0.3, world:settle():center(bar)[1]:item(), mu == 0 and 2e-5 or 1e-6)
    end
  end)

  it("gives, of many equilibria with friction, that of the start, whatever tolerance and threads", function()
    local dx, disc = 1 / 32, nil
    local function groove(options)
      local function side(angle)
        return cq.Boundary.slope { point = { 0.5, 0.5 - 4.1 * dx / math.cos(angle) }, angle = angle, kind = "friction",
          mu = options.mu }
      end
      disc = cq.Robot { shape = cq.Shape.disc { radius = 4 * dx, spacing = dx / 2 },
        material = cq.Material.neo_hookean { young = 300, poisson = 0.3, density = 1 } }
      return cq.World { cells = { 32, 32 }, dx = dx, dt = 0.02, gravity = { 0, -20 }, precision = "float64",
        threads = options.threads or 1, integrator = cq.Implicit { tolerance = options.tolerance or 1e-10 },
        walls = { side(0.6), side(-0.6) }, disc:at { 0.5 + (options.aside or 0) * dx, 0.5 } }
    end
    local function rest(options)
      local state = groove(options):settle()
      return (state:center(disc)[1]:item() - 0.5) / dx, state
    end
    local middle, aside, state = rest { mu = 0.5 }, rest { mu = 0.5, aside = 0.1 }
    assert.near(0, middle, 1e-6)
    assert.is_true(aside > 0.08 and aside < 0.1, aside)
    assert.near(aside, rest { mu = 0.5, aside = 0.1, threads = 2, tolerance = 1e-8 }, 1e-6)
    -- walls that rub less let it come nearer to the middle
    local smooth = rest { mu = 0, aside = 0.1 }
    assert.is_true(smooth < 0.6 * aside, smooth)
    -- equilibrium holds there: a rollout that begins there stays
    local world = groove { mu = 0.5, aside = 0.1 }
    local roll = world:rollout { steps = 5, robot = world.robot:with { position = state:positions(),
      deformation = state:deformations() } }
    assert.near(aside, (roll.state:center(world.robot)[1]:item() - 0.5) / dx, 5e-3)
  end)

  it("has the gradient of a stiffness", function()
    local world, bar = beam {}
    local function tip(young)
      return (world:settle { robot = bar:with { young = young } }):center "tip"[2]
    end
    local _, gradient = cq.value_and_grad(tip)(cq.param(1e6))
    local slope = difference(function(young) return tip(cq.tensor(young)):item() end, 1e6, 100)
    assert.near(1, gradient:item() / slope, 1e-6)
  end)

  it("follows a pressure, with the gradient of it", function()
    local scene = require "scenes.soft_finger" { dim = 2, precision = "float64" }
    scene.world.integrator = cq.Implicit { tolerance = 1e-11, adjoint_tolerance = 1e-11, linear_iterations = 20000 }
    local world = cq.World(scene.world)
    local function tip(u) return (world:settle { signals = u }):center "tip"[2] end
    local value, gradient = cq.value_and_grad(tip)(cq.param { 0.2 })
    local slope = difference(function(p) return tip({ p }):item() end, 0.2, 1e-4)
    assert.near(1, gradient:data()[0] / slope, 1e-6)
    local rest, more = tip({ 0 }):item(), tip({ 0.3 }):item()
    assert.is_true(rest > value and value > more)
  end)

  it("lets a body hang by a cable that is slack at first, turned to where its weight is below", function()
    local dx, stiffness, length = 1 / 32, 20, 0.25
    local block = cq.Robot {
      shape = cq.Shape.box { size = { 6 * dx, 4 * dx }, spacing = dx / 2 },
      material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1 },
      actuators = { cq.Actuator.cable { path = { { anchor = { 0.5, 0.8 } }, { 4 * dx, 3.5 * dx } },
        stiffness = stiffness, rest_length = length } },
    }
    local world = cq.World { cells = { 32, 32 }, dx = dx, dt = 0.1, gravity = { 0, -1 }, precision = "float64",
      integrator = cq.Implicit { tolerance = 1e-9, adjoint_tolerance = 1e-9, cables = "implicit" },
      block:at { 0.5 - 3 * dx, 0.5 } }
    local place, best = nil, math.huge      -- the particle that the cable holds
    for p = 1, block.particle_count do
      local far = (block.position:get(p, 1) - 4 * dx) ^ 2 + (block.position:get(p, 2) - 3.5 * dx) ^ 2
      if far < best - 1e-12 then place, best = p, far end
    end
    local state = world:settle { signals = { -1 } }
    local center, held = state:center(block), state:positions()
    local weight = 6 * dx * 4 * dx
    assert.near(0.5, center[1]:item(), 1e-6)
    assert.near(0.5, held:get(place, 1), 1e-6)
    assert.near(0.8 - length - weight / stiffness, held:get(place, 2), 1e-6)
    local arm = ((block.position[place] - cq.tensor { 3 * dx, 2 * dx }):square():sum():item()) ^ 0.5
    assert.near(held:get(place, 2) - arm, center[2]:item(), 0.02 * arm)
    local result = cq.check_gradient(function(p)
      local robot = world.robot:with { cable_length = p.length, density = p.density }
      return world:settle({ signals = { -1 }, robot = robot }):center(block)[2]
    end, { length = cq.tensor { length }, density = cq.tensor(1) })
    assert.is_true(result.ok, tostring(result))
  end)

  it("lets go of a wall that a body has passed on its way to where it hangs", function()
    local dx, x0 = 1 / 32, 0.56 - 3 / 32
    local block = cq.Robot {
      shape = cq.Shape.box { size = { 6 * dx, 4 * dx }, spacing = dx / 2 },
      material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 1 },
      actuators = { cq.Actuator.cable { path = { { anchor = { 0.5, 0.8 } }, { 4 * dx, 3.5 * dx } }, stiffness = 20,
        rest_length = 0.25 } },
    }
    for _, gap in ipairs { 0, dx / 2 } do
      local world = cq.World { cells = { 32, 32 }, dx = dx, dt = 0.1, gravity = { 0, -1 }, precision = "float64",
        walls = cq.Boundary.half_plane { point = { x0 + 6 * dx + gap, 0 }, normal = { -1, 0 }, kind = "separate" },
        integrator = cq.Implicit { tolerance = 1e-7, cables = "implicit" }, block:at { x0, 0.5 } }
      assert.near(0.5, (world:settle { signals = { -1 } }):center(block)[1]:item(), 1e-4)
    end
  end)

  it("tells what walls and pins hold, with its gradient", function()
    local dx, dt = 1 / 32, 0.05
    local bar = cq.Robot {
      shape = cq.Shape.box { size = { 8 * dx, 4 * dx }, spacing = dx / 2 }, pins = "root",
      groups = { root = function(x) return x < 2 * dx end },
      material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3, density = 3 },
    }
    local world = cq.World {
      cells = { 24, 24 }, dx = dx, dt = dt, gravity = { 0, -10 }, precision = "float64",
      integrator = cq.Implicit { tolerance = 1e-10, adjoint_tolerance = 1e-10 }, bar:at { 6 * dx, 14 * dx },
    }
    local function held(density)
      local robot = world.robot:with { density = density }
      return (world:settle { robot = robot, contact = true }):contact("root").impulse[2]
    end
    -- all of the weight, but for what lies on the pinned nodes: it is of the impulse, too
    local weight = 32 * dx * dx * 10 * dt
    assert.is_true(math.abs(held(3):item() / (3 * weight) - 1) < 1e-8, held(3):item())
    local _, grad = cq.value_and_grad(held)(cq.param(3))
    assert.is_true(math.abs(grad:item() / weight - 1) < 1e-8, grad:item())
    sentence.fails("nobody asked for it", function() (world:settle()):contact "root" end)
    -- signals of a world that has none
    assert.equal(world:settle():center()[2]:item(), (world:settle { signals = {} }):center()[2]:item())
  end)

  it("takes a batch of signals", function()
    local scene = require "scenes.soft_finger" { dim = 2, precision = "float64" }
    scene.world.integrator = cq.Implicit { tolerance = 1e-6 }
    local world = cq.World(scene.world)
    local both = (world:settle { signals = { { 0.1 }, { 0.3 } }, batch = 2 }):center "tip"
    for k, p in ipairs { 0.1, 0.3 } do
      assert.equal((world:settle { signals = { p } }):center "tip"[2]:item(), both[k][2]:item())
    end
    assert.same({ 1, 2 }, (world:settle { signals = { { 0.1 } }, batch = 1 }):center("tip"):shape())
  end)

  it("says what is wrong", function()
    local bar = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, at = { 0.2, 0.2 } }, spacing = 0.0125,
      material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3 } }
    local free = { cells = { 24, 24 }, dx = 0.025, dt = 1e-4, bar }
    sentence.fails("needs a world with integrator = cq.Implicit", function() cq.World(free):settle() end)
    free.gravity, free.integrator = { 0, -1 }, cq.Implicit {}
    sentence.fails("world:settle: the equilibrium was not found, Newton's method did not converge", function()
      cq.World(free):settle()
    end)
    sentence.fails("the equilibrium of scene 1 was not found", function() cq.World(free):settle { batch = 2 } end)
    local function made(material, walls)
      local body = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, at = { 0.2, 0.2 } }, spacing = 0.0125,
        material = material }
      return cq.World { cells = { 24, 24 }, dx = 0.025, dt = 1e-4, integrator = cq.Implicit {}, walls = walls, body }
    end
    local law = cq.Material.neo_hookean { young = 1e4, poisson = 0.3 }
    sentence.fails("world:settle: material 1 (von_mises) flows or relaxes", function()
      made(cq.Material.von_mises { young = 1e4, poisson = 0.3, yield_stress = 10 }):settle()
    end)
    sentence.fails("material 1 (neo_hookean with Maxwell branches) flows or relaxes", function()
      made(cq.Material.viscoelastic { base = law, modulus = { 1 }, time = { 0.1 } }):settle()
    end)
    sentence.fails("wall 1 moves; nothing comes to rest on it", function()
      made(law, cq.Boundary.floor { at = 0.2, kind = "sticky", velocity = { 0.1, 0 } }):settle()
    end)
    local finger = require "scenes.soft_finger" { dim = 2, precision = "float64" }
    finger.world.integrator = cq.Implicit { newton_iterations = 20 }
    sentence.fails("the pressure of \"air\" may be above the largest that the walls of its cavity in finger", function()
      cq.World(finger.world):settle { signals = { 4 } }
    end)
    sentence.fails("world:settle: the equilibrium was not found: particle 10 of robot left the world (y = ", function()
      local dx = 1 / 32
      local body = cq.Robot { shape = cq.Shape.box { size = { 6 * dx, 6 * dx }, spacing = dx / 2 },
        material = cq.Material.neo_hookean { young = 100, poisson = 0.3, density = 1 }, pins = "low",
        groups = { low = function(_, y) return y < dx end } }
      cq.World { cells = { 28, 22 }, dx = dx, dt = 0.02, gravity = { 0, -3e3 }, precision = "float64",
        integrator = cq.Implicit {}, body:at { 8 * dx, 5 * dx } }:settle()
    end)
    sentence.fails("signals must be {0}", function() cq.World(free):settle { signals = { 1 } } end)
    sentence.fails('world:settle: signals must be a list or a tensor, got "x"', function()
      cq.World(free):settle { signals = "x" }
    end)
    sentence.fails('world:settle: signals: entry 1 must be a number, got "a"', function()
      cq.World(free):settle { signals = { "a" } }
    end)
    sentence.fails("unknown field increments", function() cq.World(free):settle { increments = 3 } end)
    local world = cq.World(finger.world)
    sentence.fails("world:settle: signals must be finite, got nan", function() world:settle { signals = { 0 / 0 } } end)
    sentence.fails("world:settle: signals {2, 1} are for batch = 2, got none", function()
      world:settle { signals = { { 0.1 }, { 0.2 } } }
    end)
    sentence.fails("world:settle: signals {2, 1} are for batch = 2, got 3", function()
      world:settle { signals = { { 0.1 }, { 0.2 } }, batch = 3 }
    end)
    local held = made(law, cq.Boundary.floor { at = 0.2 })
    sentence.fails("got one of its world:settle, which has no time to go on from; give robot = robot:with", function()
      held:rollout { steps = 1, from = held:settle() }
    end)
  end)

  it("says so where rest is found, and not again with renewed weights", function()
    local dx = 1 / 32
    local body = cq.Robot { pins = "root", groups = { root = function(x) return x < 2 * dx end },
      shape = cq.Shape.box { size = { 16 * dx, 6 * dx }, spacing = dx / 2 }
        - cq.Shape.box { at = { 3 * dx, 2 * dx }, size = { 10 * dx, 2 * dx } },
      material = cq.Material.neo_hookean { young = 100, poisson = 0.45 },
      actuators = cq.Actuator.follower_pressure { name = "air", surface = { inside = { 8 * dx, 3 * dx } }, max = 1 } }
    local world = cq.World { cells = { 28, 22 }, dx = dx, dt = 0.02, precision = "float64", integrator = cq.Implicit {},
      body:at { 4 * dx, 8 * dx } }
    world:settle { signals = { 14 } }
    local said = sentence.of(function() world:settle { signals = { 14 }, updates = 5 } end)
    sentence.says(said, "world:settle: the equilibrium was not found, Newton's method did not converge",
      'the pressure of "air" may be above the largest that the walls of its cavity in robot stand')
  end)

  it("has no gradient at a saddle, and says so", function()
    local world = column { tolerance = 1e-2, linear_iterations = 30 }
    sentence.fails("did not converge in 30 products, and it may have ended at a saddle", function()
      cq.value_and_grad(function(young)
        return world:settle({ robot = world.robot:with { young = young } }):center("tip")[1]
      end)(cq.param(2e3))
    end)
  end)

  it("warns once of a gradient that is that of a saddle", function()
    local warn, told = message.warn, {}
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local ok, roll = pcall(function()
      local world = column { tolerance = 1e-2, linear_iterations = 5000 }
      local last
      for _ = 1, 2 do
        cq.value_and_grad(function(young)
          local state
          state, last = world:settle { robot = world.robot:with { young = young } }
          return state:center("tip")[1]
        end)(cq.param(2e3))
      end
      return last
    end)
    message.warn = warn
    assert.is_true(ok, roll)
    assert.equal(1, #told)
    sentence.says(told[1], "the gradient of world:settle met a second derivative that is negative")
    assert.is_true(roll.solver.saddle:item() > 0 and roll.solver.adjoint:item() > roll.solver.saddle:item())
    assert.is_truthy(tostring(roll.solver):find("^cq.SolverReport { 1 step, %d+ Newton iterations?, %d+ products,"))
  end)

  it("is where a rollout goes on at rest", function()
    local world = beam { damping = 20 }
    local state = world:settle()
    local before = state:center "tip"[2]:item()
    local function on(gravity)
      return world:rollout({ steps = 5, gravity = gravity, robot = world.robot:with {
        position = state:positions(), deformation = state:deformations(),
      } }).state:center "tip"[2]:item()
    end
    -- it fell by 12.6 mm; it gives way a little where its particles have other weights
    assert.near(before, on(), 1e-3)
    assert.is_true(on { 0, 1 } > before + 2e-3)
  end)

  it("tells what implicit steps replace, before a run", function()
    local function said(young, precision)
      local bar = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.1 }, at = { 0.2, 0.2 } }, spacing = 0.0125,
        material = cq.Material.neo_hookean { young = young, poisson = 0.3, density = 1000 } }
      return cq.Experiment { duration = 0.02, objective = function(state) return state:center(bar)[2] end,
        world = cq.World { cells = { 24, 24 }, dx = 0.025, dt = 0.01, integrator = cq.Implicit {}, bar,
          precision = precision },
      }:check().text
    end
    sentence.says(said(1e4), "explicit steps are quicker below about 100")
    -- with waves ten times as fast: ten times as many explicit steps, to the power of 0.75
    local quick = tonumber(said(1e9):match "expect it to be about ([%d.]+) times as quick as they are")
    assert.near(10 ^ 0.75, tonumber(said(1e11):match "about ([%d.]+) times as quick") / quick, 0.2)
    -- a large figure is written as people write it
    assert.matches("expect it to be about %d%d%d times as quick", said(1e14))
    assert.near(2 ^ 0.75, quick / tonumber(said(1e9, "float64"):match "about ([%d.]+) times as quick"), 0.1)
  end)
end)
