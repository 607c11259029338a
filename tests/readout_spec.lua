-- derived readouts of a state: stress, energy and momentum, as users ask for them.
local ffi = require "ffi"
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local scratch = require "tests.scratch"
local scene = require "tests.scene"
local derivative = require "tests.derivative"
local sentence = require("tests.sentence").of

local function near(wanted, got, tolerance, what)
  assert(math.abs(got - wanted) <= (tolerance or 1e-12) * math.max(1, math.abs(wanted)),
    ("%s: %.17g wanted, got %.17g"):format(what or "", wanted, got))
end

-- what f gives of the state at the start
local function at_start(world, f, fields)
  local out
  fields = fields or {}
  fields.steps, fields.on_step = 1, function(state) if state.step == 0 then out = f(state) end end
  world:rollout(fields)
  return out
end

-- a block without walls and weight
local function block(options)
  local dim = options.dim or 2
  local size, count = dim == 2 and { 0.25, 0.25 } or { 0.25, 0.25, 0.25 }, dim == 2 and { 8, 8 } or { 6, 6, 6 }
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", at = dim == 2 and { 0, 0 } or { 0, 0, 0 }, size = size, count = count },
    material = options.material or cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1.5 },
  }
  return cq.World {
    cells = dim == 2 and { 32, 32 } or { 24, 24, 24 }, dx = 1 / 24, dt = 4e-3, substeps = options.substeps or 2,
    precision = "float64",
    gravity = options.gravity, damping = options.damping, robot:at(dim == 2 and { 0.4, 0.4 } or { 0.35, 0.35, 0.35 }),
  }
end

-- places of the particles from their middle: as velocities, they part
local function block_motion(world)
  local position = world.robot.position
  return position - position:mean(1)
end

-- velocities of a body that flies, turns and breathes
local function tumbling(world, turn)
  local velocity = {}
  local x = at_start(world, function(state) return state:positions() end)
  for p = 1, world.particle_count do
    local a, b = x:get(p, 1) - 0.5, x:get(p, 2) - 0.5
    velocity[p] = world.dim == 2 and { 0.3 - turn * b + 0.5 * a, 0.1 + turn * a }
      or { 0.3 - turn * b, 0.1 + turn * a + 0.5 * b, -0.2 + turn * a }
  end
  return T.tensor(velocity)
end

-- all that the engine has, with their ranks
local quantities, rank = {}, {}
for id = 0, engine.C.CQ_QUANTITY_COUNT - 1 do
  local info = engine.C.cq_quantity_describe(id)
  local name = ffi.string(info.name)
  quantities[#quantities + 1], rank[name] = name, info.rank
end

local function shape(dim, name, first)
  local out = {}
  for _, size in ipairs(first) do out[#out + 1] = size end
  local r = rank[name] or 0
  if r == 3 then if dim == 3 then out[#out + 1] = 3 end
  else for _ = 1, r do out[#out + 1] = dim end end
  return out
end

describe("derived readouts", function()
  it("are told to editors by their names", function()
    local file = assert(io.open "lua/cq/state/readout.lua")
    local told = file:read("*a"):match "@alias cq.Quantity\n(.-)\n\n"
    file:close()
    for _, name in ipairs(quantities) do
      assert(told:find(('"%s"'):format(name), 1, true), name .. " is missing in the alias cq.Quantity")
    end
  end)

  it("have the shapes that their ranks say, in 2D and 3D, alone, as rows and in a batch", function()
    for dim = 2, 3 do
      local world = scene.world(scene.robot { dim = dim })
      local n = world.robot:group("foot").particle_count
      for _, batch in ipairs { false, 1, 2 } do
        local lead = { batch or nil }
        local state = world:rollout { steps = 1, batch = batch or nil,
          controller = cq.Controller.open_loop(T.zeros { 1, 2 }) }.state
        for _, name in ipairs(quantities) do
          local first, rows = { unpack(lead) }, { unpack(lead) }
          first[#first + 1], rows[#rows + 1] = n, 2
          assert.same(shape(dim, name, first), state:gather("foot", name):shape())
          assert.same(shape(dim, name, lead), state:mean("foot", name):shape())
          assert.same(shape(dim, name, rows), state:mean({ "foot", "trunk" }, name):shape())
        end
        local rows = { unpack(lead) }
        rows[#rows + 1] = 2
        for _, kind in ipairs { "total", "kinetic", "elastic", "potential" } do
          assert.same(lead, state:energy("foot", kind):shape())
          assert.same(rows, state:energy({ "foot", "trunk" }, kind):shape())
        end
        assert.same(shape(dim, "angular_momentum", rows), state:angular_momentum({ "foot", "trunk" }):shape())
        near(state:energy():sum():item(), state:energy({ "foot", "trunk" }):sum():item(), 1e-12,
          "energies of all groups")
      end
    end
  end)

  it("give the stress of a block that is stretched, by the closed form", function()
    local young, poisson, stretch = 10, 0.3, 1.3
    local mu, lambda = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    for dim = 2, 3 do
      local world = block { dim = dim }
      local f = T.eye(dim):copy()
      f:set(stretch, 1, 1)
      local out = at_start(world, function(state)
        return { sigma = state:stress(world.robot), p = state:stress(world.robot, { kind = "piola" }),
          mises = state:von_mises("body"):item(),
          jacobian = state:mean("body", "jacobian"):item(), energy = state:energy(nil, "elastic"):item() }
      end, { robot = world.robot:with { deformation = f:unsqueeze(1):expand { world.particle_count, dim, dim } } })
      local along, across = (mu * (stretch ^ 2 - 1) + lambda * math.log(stretch)) / stretch,
        lambda * math.log(stretch) / stretch
      near(along, out.sigma:get(1, 1), 1e-12, "along")
      near(across, out.sigma:get(2, 2), 1e-12, "across")
      near(along, out.p:get(1, 1), 1e-12, "P")            -- J is the stretch
      near(across * stretch, out.p:get(2, 2), 1e-12, "P across")
      near(along - across, out.mises, 1e-12, "von Mises") -- also of the plane, whose stress across it is the same
      near(stretch, out.jacobian, 1e-12, "J")
      local psi = 0.5 * mu * (stretch ^ 2 - 1) - mu * math.log(stretch) + 0.5 * lambda * math.log(stretch) ^ 2
      near(psi * 0.25 ^ dim, out.energy, 1e-12, "energy")
    end
  end)

  it("keep momentum and angular momentum of a body that tumbles freely, and its energy nearly", function()
    for dim = 2, 3 do
      local world = block { dim = dim, substeps = 8 }
      local seen = {}
      world:rollout { steps = 60, robot = world.robot:with { velocity = tumbling(world, 2) }, on_step = function(state)
        seen[#seen + 1] = { p = state:momentum(), l = state:angular_momentum(),
          o = state:angular_momentum(nil, { about = "origin" }),
          energy = state:energy():item(), kinetic = state:energy(nil, "kinetic"):item() }
      end }
      local first, last = seen[1], seen[#seen]
      for _, name in ipairs { "p", "l", "o" } do
        assert.is_true(first[name]:norm():item() > 1e-5)
        assert.is_true((last[name] - first[name]):norm():item() < 1e-13,
          ("%dD %s drifts by %g"):format(dim, name, (last[name] - first[name]):norm():item()))
      end
      assert.is_true(math.abs(last.energy / first.energy - 1) < 0.05,
        ("%dD energy goes from %g to %g"):format(dim, first.energy, last.energy))
      local least = math.huge
      for _, s in ipairs(seen) do least = math.min(least, s.kinetic) end
      assert.is_true(least < 0.995 * first.kinetic, "nothing is stored in the material")
    end
  end)

  it("measure a fall: momentum grows by weight, potential energy becomes kinetic", function()
    local world = block { gravity = { 0.5, -4 } }
    local mass = 0.25 ^ 2 * 1.5
    local out = {}
    world:rollout { steps = 20, on_step = function(state)
      out[state.step] = { p = state:momentum(), e = state:energy(), k = state:energy(nil, "kinetic") }
    end }
    near(mass * 0.5 * 0.08, out[20].p:get(1), 1e-12)
    near(-mass * 4 * 0.08, out[20].p:get(2), 1e-12)
    near(0.5 * mass * (0.5 ^ 2 + 4 ^ 2) * 0.08 ^ 2, out[20].k:item(), 1e-12)
    near(out[0].e:item(), out[20].e:item(), 0.02)
  end)

  it("are differentiated to state, constants, density and gravity", function()
    for dim = 2, 3 do
      local world = scene.world(scene.robot { dim = dim })
      local u = T.full({ 4, 2 }, 0.4)
      local g = dim == 2 and { 0.3, -4 } or { 0.3, -4, 0.2 }
      local p = {
        young = T.param(T.tensor { 9 }), poisson = T.param(T.tensor { 0.28 }), density = T.param(T.tensor { 1.2 }),
        gravity = T.param(T.tensor(g)),
        velocity = T.param(T.tensor(dim == 2 and { 0.3, -1 } or { 0.3, -1, 0.1 })),
      }
      local function state_of(q, running)
        local body = world.robot:with { young = q.young[1], poisson = q.poisson[1], density = q.density[1],
          velocity = q.velocity:unsqueeze(1):expand { world.particle_count, dim } }
        return world:rollout { robot = body, steps = 4, controller = cq.Controller.open_loop(u), gravity = q.gravity,
          running = running }
      end
      derivative.check(function(q)
        local s = state_of(q).state
        return 10 * s:energy() + s:energy({ "foot", "trunk" }):square():sum() + 0.1 * s:von_mises("foot")
          + 0.1 * s:stress("trunk"):square():sum()
          + 0.1 * s:stress({ "foot" }, { kind = "piola" }):sum() + s:angular_momentum():square():sum()
            + s:momentum("foot"):sum()
          + s:gather("trunk", "jacobian"):square():mean()
            + 0.1 * s:gather({ "foot", "trunk" }, "von_mises"):square():mean()
          + s:gather("foot", "speed"):mean()
      end, p, 2e-6)
      derivative.check(function(q)
        return state_of(q, function(s) return s:energy("foot") + 0.01 * s:von_mises("trunk") end).running:sum()
      end, p, 2e-6)
    end
  end)

  it("of a deviator that is rounding have no gradient by von Mises", function()
    local function gradient_of(material, velocity, name, value)
      local world = block { dim = 3, material = material }
      local list = velocity and block_motion(world) * 8 or nil
      return cq.value_and_grad(function(c)
        local body = world.robot:with { velocity = list, [name] = c }
        return world:rollout { robot = body, steps = 6 }.state:von_mises "body"
      end)(cq.param(value))
    end
    -- grains that part lie at the tip of their cone, snow is as stretched as it may be, and a free block has no stress
    local sand = cq.Material.drucker_prager { young = 14, poisson = 0.3, friction_angle = 0.5, cohesion = 0.1 }
    local snow = cq.Material.snow { young = 14, poisson = 0.2, critical_stretch = 5e-3 }
    for _, case in ipairs { { sand, true, "cohesion", 0.1 }, { snow, true, "critical_stretch", 5e-3 },
      { nil, false, "deformation", cq.eye(3):totable() } } do
      local value, grad = gradient_of(case[1], case[2], case[3], case[4])
      assert.is_true(value < 1e-13, value)
      near(0, grad:abs():max():item(), 0, case[3])
    end
  end)

  it("take gravity of each scene of a batch", function()
    local world = block {}
    local gravity = T.tensor { { 0, -1 }, { 0, -2 } }
    local state = world:rollout { steps = 1, batch = 2, gravity = gravity }.state
    local energy = state:energy(world.robot, "potential")
    near(2 * energy:get(1), energy:get(2), 1e-4)
    assert.same({ 2, 1 }, state:energy({ "body" }, "potential"):shape())
  end)

  it("say in sentences what cannot be read", function()
    local world = scene.world(scene.robot())
    local state = world:rollout { steps = 1, controller = cq.Controller.open_loop(T.zeros { 1, 2 }) }.state
    local function says(f, ...)
      local message = sentence(f)
      for _, part in ipairs { ... } do assert(message:find(part, 1, true), message) end
    end
    says(function() state:gather("foot", "von_misses") end, "state:gather", "von_mises", "von_misses")
    says(function() state:mean("foot", "stress") end, "state:mean", "field", "cauchy")
    says(function() state:stress("foot", { kind = "kirchhoff" }) end, "state:stress", "cauchy", "piola")
    says(function() state:von_mises("foot", { weight = "area" }) end, "state:von_mises", "volume", "area")
    says(function() state:energy("foot", "heat") end, "state:energy", "kinetic", "heat")
    says(function() state:energy("hand") end, "state:energy", "hand", "foot")
    says(function() state:stress({}) end, "state:stress", "takes a group name")
    says(function() state:angular_momentum("foot", { about = "hip" }) end, "state:angular_momentum", "center")
  end)

  it("refuse options that they do not know, and what is no table of them", function()
    local state = block {}:rollout { steps = 1 }.state
    for name, known in pairs { center = "weight", velocity = "weight", motion = "weight", stress = "kind, weight",
      mean_square_velocity = "weight", von_mises = "weight", moment = "about, field, weight",
      angular_momentum = "about" } do
      local what = "state:" .. name .. ": "
      local message = sentence(function() state[name](state, "body", { weights = "mass" }) end)
      assert(message:find(what .. "unknown field weights", 1, true), message)
      assert(message:find("allowed are " .. known, 1, true), message)
      message = sentence(function() state[name](state, "body", "mass") end)
      assert(message:find(what .. 'takes one table of named fields, got "mass"', 1, true), message)
    end
    local message = sentence(function() state:mean("body", "speed", { weigth = "mass" }) end)
    assert(message:find("state:mean: unknown field weigth (did you mean weight?)", 1, true), message)
  end)

  it("show how damping brings a body to rest", function()
    local world = block { damping = 5 }
    local out = {}
    world:rollout { steps = 25, robot = world.robot:with { velocity = { 0.3, 0.1 } },
      on_step = function(state) out[state.step] = state:momentum() end }
    near(out[0]:get(1) * math.exp(-5 * 25 * 4e-3), out[25]:get(1), 1e-12, "momentum")
    -- a beam that is held at one end sags, and stays; its energy falls to what the material holds and the weight lost
    local beam = cq.Robot {
      shape = cq.Shape.box { name = "beam", at = { 0, 0 }, size = { 0.5, 0.125 }, count = { 24, 6 } },
      material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1 },
    }
    local function sagging(damping)
      return cq.World {
        cells = { 32, 32 }, dx = 1 / 32, dt = 1e-2, substeps = "auto", precision = "float64", gravity = { 0, -1 },
        damping = damping,
        walls = cq.Boundary.obstacle { lower = { 0.1, 0.3 }, upper = { 0.3, 0.7 }, kind = "sticky", clamp = true },
        beam:at { 0.25, 0.4375 },
      }
    end
    local function motion(damping)
      local state = sagging(damping):rollout { steps = 400 }.state
      return state:energy(nil, "kinetic"):item(), state:energy(nil, "elastic"):item()
    end
    local rest, held = motion(8)
    local moving = motion(0)
    assert.is_true(rest < 1e-6 and held > 1e-5 and moving > 100 * rest, ("%g %g %g"):format(rest, held, moving))
  end)

  it("differentiate through damping, which an experiment can train", function()
    local world = scene.world(scene.robot())
    local u = T.full({ 6, 2 }, 0.3)
    derivative.check(function(q)
      return world:rollout { steps = 6, damping = q.damping[1], controller = cq.Controller.open_loop(u) }.state:energy()
    end, { damping = T.param(T.tensor { 2 }) }, 1e-7)
    local body = block {}
    local run = cq.Experiment {
      world = body, robot = body.robot:with { velocity = { 0.4, 0 } }, steps = 20,
      trainable = { damping = { min = 0, max = 20 } },
      objective = { terminal = function(state) return (state:velocity("body")[1] - 0.2):square() end },
      optimizer = cq.Optimizer.adam { rate = 0.5 },
    }
    run:optimize { iterations = 60, folder = scratch.open() }
    scratch.close()
    near(math.log(2) / (20 * 4e-3), run.params.world.damping:item(), 0.06, "damping")
    local message = sentence(function()
      world:rollout { steps = 1, damping = -1, controller = cq.Controller.open_loop(T.zeros { 1, 2 }) }
    end)
    assert(message:find("damping", 1, true) and message:find("at least 0", 1, true), message)
    message = sentence(function() block { damping = -1 } end)
    assert(message:find("damping", 1, true) and message:find("at least 0", 1, true), message)
  end)

  it("are pictures of density and momentum on a window that moves with the body", function()
    for dim = 2, 3 do
      local world, mass = block { dim = dim }, 0.25 ^ dim * 1.5
      local size = dim == 2 and { 20, 16 } or { 14, 12, 10 }
      local wanted = dim == 2 and { 3, 16, 20 } or { 4, 10, 12, 14 }
      local velocity = dim == 2 and { 0.5, -0.25 } or { 0.5, -0.25, 0.125 }
      local options, seen = { size = size, spacing = 1 / 24 }, {}
      world:rollout { steps = 50, robot = world.robot:with { velocity = velocity }, on_step = function(state)
        local center = seen[0] and seen[0].center or state:center "body"
        seen[state.step] = { raster = state:raster("body", options),
          still = state:raster(nil, { size = size, center = center }), center = center }
      end }
      local first, last = seen[0].raster, seen[50].raster
      assert.same(wanted, first:shape())
      local sums = last:reshape { dim + 1, -1 }:sum(-1) / 24 ^ dim
      near(mass, sums:get(1), 1e-12, "mass")
      for i = 1, dim do near(mass * velocity[i], sums:get(i + 1), 1e-12, "momentum") end
      -- the body flies, and the window with it; one that stays sees it elsewhere
      assert.is_true((last - first):abs():max():item() < 1e-9)
      assert.is_true((seen[50].still - seen[0].still):abs():max():item() > 0.5)
      assert.is_true(first:max():item() < 1.6)
      assert.same({ dim, unpack(wanted, 2) },
        world:rollout { steps = 1 }.state:raster("body", { size = size, channels = "momentum" }):shape())
    end
  end)

  it("have the uppermost row of a raster first", function()
    local world = block {}
    local x = world.robot.position:copy()
    local state = world:rollout { steps = 1, robot = world.robot:with { position = x + T.tensor { 0, 0.2 } } }.state
    local raster = state:raster("body", { size = { 16, 16 }, center = { 0.5, 0.5 }, channels = "density" })
    local rows = raster[1]:sum(2)
    assert.is_true(rows:slice(1, 8):sum():item() > 0.9 * rows:sum():item())
  end)

  it("add a point's amounts with weights of quadratic splines, and its momentum by its velocity", function()
    -- at the centre of the middle pixel: 3/4 of it there along each axis, and an eighth at each side
    local x, spline = T.tensor { { 1.25, 0.75 } }, { 0.125, 0.75, 0.125 }
    local seen = x:splat(T.tensor { { 2 } }, { size = { 5, 3 }, spacing = 0.5, density = true,
      velocity = T.tensor { { 3, -1 } } })
    for row = 1, 3 do
      for column = 1, 5 do
        local share = spline[row] * (spline[column - 1] or 0)
        near(share * 2 / 0.25, seen:get(1, row, column), 1e-15, "amount")
        near(share * 6 / 0.25, seen:get(2, row, column), 1e-15, "momentum along x")
        near(-share * 2 / 0.25, seen:get(3, row, column), 1e-15, "momentum along y")
      end
    end
    -- the same from another corner; channels beyond the fourth are as the first; beside the window nothing
    local moved = (x + 10):splat(T.tensor { { 1, 2, 3, 4, 1, 0 } }, { size = { 5, 3 }, spacing = 0.5,
      origin = T.tensor { 10, 10 } })
    assert.is_true((moved[1] - seen[1] / 8):abs():max():item() < 1e-15)
    assert.is_true((moved[5] - moved[1]):abs():max():item() == 0)
    assert.equal(0, (moved[6]):abs():max():item())
    for _, far in ipairs { { -0.51, 0.75 }, { 1.25, 2.01 }, { 0 / 0, 1 }, { math.huge, 1 } } do
      assert.equal(0, T.tensor { far }:splat(T.tensor { { 1 } }, { size = { 5, 3 }, spacing = 0.5 }):sum():item())
    end
  end)

  it("draw some particles with the mass of all", function()
    local state = block {}:rollout { steps = 1 }.state
    local function density(particles)
      return state:raster("body", { size = { 16, 16 }, spacing = 1 / 24, channels = "density", particles = particles })
    end
    local all = density()
    assert.same(all:totable(), density(1e6):totable())
    local some = density(40)
    near(all:sum():item(), some:sum():item(), 1e-12 * all:sum():item(), "mass")
    assert.is_true((some - all):abs():max():item() > 1e-3)
    assert.same(some:totable(), density(40):totable())
  end)

  it("differentiate rasters, through a convolution, in a batch and through a running cost", function()
    for dim = 2, 3 do
      local world = block { dim = dim }
      local kernel = (T.arange(1, 2 * (dim + 1) * 9) * 0.7):sin():reshape { 2, dim + 1, 3, 3 }
      local size = dim == 2 and { 9, 7 } or { 7, 6, 5 }
      local function look(state, q)
        -- a part of the body lies outside of the window
        local r = state:raster({ "body" }, { size = size, spacing = 0.031,
          center = q and q.center, particles = q and 50 })
        if dim == 3 then r = r:slice(2, 2, -3):squeeze(-3) end
        return r:conv2d(kernel, { stride = 2 }):tanh():square():mean()
      end
      local p = { velocity = T.param(T.tensor(dim == 2 and { 0.4, -0.3 } or { 0.4, -0.3, 0.2 })),
        density = T.param(T.tensor { 1.3 }),
        center = T.param(T.tensor(dim == 2 and { 0.52, 0.49 } or { 0.47, 0.45, 0.46 })) }
      local function body(q)
        return world.robot:with { velocity = q.velocity:unsqueeze(1):expand { world.particle_count, dim },
          density = q.density[1] }
      end
      derivative.check(function(q)
        local roll = world:rollout { robot = body(q), steps = 3, running = function(state) return look(state) end }
        return 10 * (roll.running:sum() + look(roll.state, q))
      end, p, 1e-6)
      p.center = nil
      derivative.check(function(q)
        local shift = T.stack({ T.zeros { world.particle_count, dim }, T.full({ world.particle_count, dim }, 0.01) }, 1)
        local moving = world.robot:with { velocity = q.velocity:reshape { 1, 1, dim }:expand { 2, world.particle_count,
          dim } + shift, density = q.density[1] }
        return world:rollout { robot = moving, batch = 2, steps = 2 }.state:raster("body",
          { size = size }):square():mean()
      end, p, 1e-6)
    end
  end)

  it("say in sentences what a raster cannot be", function()
    local state = block {}:rollout { steps = 1 }.state
    local function says(options, part)
      local message = sentence(function() state:raster("body", options) end)
      assert(message:find(part, 1, true), message)
    end
    says({}, "size")
    says({ size = { 4, 4, 4 } }, "size has 3 numbers, the world is 2D")
    says({ size = { 4, 0 } }, "size")
    says({ size = { 4, 4 }, spacing = 0 }, "spacing")
    says({ size = { 4, 4 }, channels = "mass" }, "density")
    says({ size = { 4, 4 }, center = { 1, 2, 3 } }, "center must have 2 coordinates")
    says({ size = { 4, 4 }, center = T.ones { 2, 2 } }, "center must have 2 coordinates, got a tensor {2, 2}")
    says({ size = { 4, 4 }, center = { { 1, 2 } } }, "center must have 2 coordinates, got a tensor {1, 2}")
    says({ size = { 4, 4 }, center = T.tensor(1) }, "center must have 2 coordinates, got a tensor {}")
    says({ size = { 4, 4 }, center = { 0 / 0, 1 } }, "center must be finite")
    says({ size = { 4, 4 }, center = "head" }, "no group \"head\"")
    local message = sentence(function() T.ones({ 3, 2 }):splat(T.ones { 4, 1 }, { size = { 3, 3 }, spacing = 1 }) end)
    assert(message:find("splat: points {n, 2}", 1, true), message)
    local function splat(channels, options)
      options.size, options.spacing = { 3, 3 }, 1
      return sentence(function() T.ones({ 3, 2 }):splat(T.ones { 3, channels }, options) end)
    end
    says({ size = { 4, 4 }, particles = 0 }, "particles")
    assert.equal("splat: origin must have shape {2}, got {3}", splat(1, { origin = T.zeros { 3 } }))
    assert.equal("splat: velocity must have shape {3, 2}, got {3, 3}", splat(1, { velocity = T.zeros { 3, 3 } }))
    assert.equal("splat: with velocities the amounts have one channel, got 2",
      splat(2, { velocity = T.zeros { 3, 2 } }))
  end)
end)
