-- locking: the dilatation of solids averaged over cells, and the cap on the bulk modulus.
local cq = require "cq"
local example = require "tests.example"
local mistake = require "tests.sentence"
local process = require "tests.process"
local says = mistake.fails

-- a block of two materials that turns, swells and jitters, in the air
local function block(dim, options)
  local function box(x, y, z) return dim == 2 and { x, y } or { x, y, z } end
  local function material(young)
    return cq.Material.neo_hookean { young = young, poisson = 0.45, density = 1,
      f_bar = options.averaging }
  end
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "left", size = box(0.2, 0.4, 0.1) }
      + cq.Shape.box { name = "right", at = box(0.2, 0, 0), size = box(0.2, 0.4, 0.1) },
    spacing = options.spacing or 1 / 40, material = { left = material(10), right = material(20) },
    actuators = options.actuators,
  }
  local count = robot.particle_count
  local velocity, x = cq.empty { count, dim }, robot.position
  for p = 1, count do
    velocity:data()[(p - 1) * dim] = 0.4 - x:get(p, 2) + math.sin(9 * x:get(p, 1) + 31 * x:get(p, 2))
    velocity:data()[(p - 1) * dim + 1] = x:get(p, 1) + math.cos(7 * x:get(p, 2))
    if dim == 3 then velocity:data()[(p - 1) * dim + 2] = 0.3 * math.sin(20 * x:get(p, 3)) end
  end
  robot = robot:with { velocity = velocity }
  local world = cq.World {
    cells = box(32, 32, 24), dx = 1 / 20, dt = 4e-3, substeps = 4, precision = options.precision or "float64",
    threads = options.threads, integrator = options.integrator, robot:at(box(0.6, 0.6, 0.5)),
  }
  return world, robot
end

-- a beam of four cells that hangs, of rubber that keeps its volume
local function beam(share, integrator)
  local bar = cq.Robot {
    shape = cq.Shape.box { at = { 0.1, 0.3 }, size = { 0.225, 0.05 } }, spacing = 0.00625, pins = "root",
    groups = { root = function(x) return x < 0.125 end, tip = function(x) return x > 0.318 end },
    material = cq.Material.neo_hookean { young = 1, poisson = 0.499, density = 1, f_bar = share },
  }
  local world = cq.World { cells = { 32, 32 }, dx = 0.0125, dt = 0.2, substeps = not integrator and "auto" or nil,
    gravity = { 0, -2e-4 }, damping = 2.3, precision = "float64", integrator = integrator, bar }
  return bar, world
end

describe("f_bar", function()
  it("keeps momentum and its moment to rounding", function()
    for dim = 2, 3 do
      for _, implicit in ipairs { false, true } do
        local world, robot = block(dim, { averaging = 1, spacing = implicit and dim == 3 and 1 / 20 or nil,
          integrator = implicit and cq.Implicit { tolerance = 1e-12 } or nil })
        local before = world:rollout({ steps = 0 }).state
        local after = world:rollout({ steps = implicit and 3 or 20 }).state
        -- an implicit step keeps what turns at its end, by the positions of its start
        for _, kind in ipairs(implicit and { "linear" } or { "linear", "angular" }) do
          local gap = (after:momentum(robot, kind) - before:momentum(robot, kind)):abs():max():item()
          assert(gap < 1e-12, ("%dD %s momentum is off by %g"):format(dim, kind, gap))
        end
        world:close()
      end
    end
  end)

  it("does nothing with a share of 0, and keeps neighbours' J alike with 1", function()
    local function rough(share)
      local world, robot = block(2, { averaging = share })
      local state = world:rollout({ steps = 20 }).state
      local jacobian, positions = state:gather(robot, "jacobian"), state:positions()
      world:close()
      return ((jacobian - jacobian:mean()):square():mean():item()) ^ 0.5, positions
    end
    local none, x = rough(nil)
    local zero, same = rough(0)
    local whole, other = rough(1)
    assert.equal(none, zero)
    assert.equal(0, (x - same):abs():max():item())
    assert(whole < none and (x - other):abs():max():item() > 1e-6, ("%g of %g"):format(whole, none))
  end)

  it("has gradients of everything, beside differences", function()
    local world, robot = block(2, { averaging = 0.8, spacing = 1 / 20 })
    local result = cq.check_gradient(function(p)
      local body = robot:with { young = p.young, poisson = p.poisson, density = p.density }
      local roll = world:rollout { robot = body, steps = 20, gravity = p.gravity, damping = p.damping }
      return roll.state:positions():square():sum() + roll.state:gather(robot, "jacobian"):square():sum()
    end, { young = cq.tensor(12), poisson = cq.tensor(0.44), density = cq.tensor(1.1), damping = cq.tensor(0.3),
      gravity = cq.tensor { 0.2, -1 } })
    assert.is_true(result.ok, tostring(result))
    world:close()
  end)

  it("has gradients in implicit steps too, and of an equilibrium", function()
    for dim = 2, 3 do
      local world, robot = block(dim, { averaging = 0.8, spacing = dim == 2 and 1 / 20 or 1 / 10,
        integrator = cq.Implicit { tolerance = 1e-9, adjoint_tolerance = 1e-9 } })
      local result = cq.check_gradient(function(p)
        local body = robot:with { young = p.young, poisson = p.poisson, density = p.density }
        local roll = world:rollout { robot = body, steps = 5, gravity = p.gravity, damping = p.damping }
        return roll.state:positions():square():sum() + roll.state:gather(robot, "jacobian"):square():sum()
      end, { young = cq.tensor(12), poisson = cq.tensor(0.44), density = cq.tensor(1.1), damping = cq.tensor(0.3),
        gravity = dim == 2 and cq.tensor { 0.2, -1 } or cq.tensor { 0.2, -1, 0.1 } })
      assert.is_true(result.ok, tostring(result))
      world:close()
    end
    local bar, world = beam(1, cq.Implicit { tolerance = 1e-9, adjoint_tolerance = 1e-9 })
    local result = cq.check_gradient(function(p)
      return world:settle({ robot = bar:with { young = p } }):center "tip"[2]
    end, cq.tensor(1.1))
    assert.is_true(result.ok, tostring(result))
    world:close()
  end)

  it("gives the same bits for any number of threads, and any memory", function()
    local kept, long = {}, cq.Implicit {}
    for _, how in ipairs { { 1 }, { 2 }, { 2, "1500 KiB" }, { 1, nil, long }, { 2, nil, long } } do
      local implicit = how[3] ~= nil
      local world, robot = block(2, { averaging = 1, threads = how[1], spacing = implicit and 1 / 100 or 1 / 150,
        precision = implicit and "float64" or "float32", integrator = how[3] })
      local value, gradient = cq.value_and_grad(function(p)
        local body = robot:with { young = p }
        local state = world:rollout({ robot = body, steps = implicit and 2 or 12, memory = how[2] }).state
        return state:positions():square():sum()
      end)(cq.param(cq.full({ robot.particle_count }, 15)))
      kept[implicit] = kept[implicit] or { value = value, gradient = gradient }
      assert.equal(kept[implicit].value, value)
      assert.equal(0, (kept[implicit].gradient - gradient):abs():max():item())
      world:close()
    end
  end)

  it("gives the same bits for any number of threads with cables that pull at the end of a step", function()
    local first
    local function cable(x, at)
      return cq.Actuator.cable { path = { { anchor = { x, 0.8 } }, { at, 0.2 } }, stiffness = 20, rest_length = 0.2 }
    end
    for _, threads in ipairs { 1, 2, 2, 2, 2, 2, 2 } do
      local world = block(2, { averaging = 1, threads = threads, spacing = 1 / 100,
        integrator = cq.Implicit { cables = "implicit" }, actuators = { cable(1.5, 0.38), cable(0.3, 0.02) } })
      local _, gradient = cq.value_and_grad(function(p)
        local rolled = world:rollout { robot = world.robot:with { position = p }, steps = 1,
          controller = cq.Controller.open_loop(cq.full({ 1, 2 }, -0.5)) }
        return rolled.state:positions():square():sum()
      end)(cq.param(world.robot.position * 1))
      first = first or gradient
      assert.equal(0, (first - gradient):abs():max():item())
      world:close()
    end
  end)

  it("lets a beam bend that locks without, and settles where that comes to rest", function()
    local sunk, rest = {}, {}
    for k, share in ipairs { 0, 1 } do
      local _, world = beam(share)
      sunk[k] = 0.325 - world:rollout({ steps = 50 }).state:center "tip"[2]:item()
      world:close()
      local _, still = beam(share, cq.Implicit { tolerance = 1e-5 })
      rest[k] = 0.325 - still:settle {}:center "tip"[2]:item()
      still:close()
    end
    assert(sunk[2] > 1.3 * sunk[1], ("%g and %g"):format(sunk[1], sunk[2]))
    assert(rest[2] > 1.3 * rest[1] and math.abs(rest[2] - sunk[2]) < 0.03 * sunk[2], ("%g and %g, by steps %g"):format(
      rest[1], rest[2], sunk[2]))
  end)

  it("says what it does not do", function()
    says("at least 0 and at most 1, got 1.5", function()
      cq.Material.yeoh { c10 = 1, bulk = 20, f_bar = 1.5 }
    end)
    says("unknown field f_bar", function()
      cq.Material.fluid { bulk = 20, f_bar = 1 }
    end)
    says("which Maxwell branches cannot stand beside", function()
      cq.Material.viscoelastic { modulus = { 1 }, time = { 1 },
        base = cq.Material.yeoh { c10 = 1, bulk = 20, f_bar = 1 } }
    end)
  end)
end)

describe("material:capped", function()
  it("caps the bulk modulus of any law that has one, keeps the shear modulus, and says what it costs", function()
    local stiff = cq.Material.mooney_rivlin { c10 = 23028, c01 = 1190, bulk = 871e6 }
    local soft = stiff:capped(20)
    assert.near(20 * 2 * (23028 + 1190), soft.bulk, 1e-6)
    assert.equal(871e6, stiff.bulk)
    assert(tostring(soft):find("capped at 20 of 1.8e+04 shear moduli: a pull of one shear modulus changes J by 1.7 %",
      1, true), tostring(soft))
    assert.falsy(tostring(stiff):find "capped")
    local elastic = cq.Material.neo_hookean { young = 3, poisson = 0.499 }:capped(20)
    local shear = elastic.young / (2 * (1 + elastic.poisson))
    assert.near(3 / (2 * 1.499), shear, 1e-12)
    assert.near(20, 2 * (1 + elastic.poisson) / (3 * (1 - 2 * elastic.poisson)), 1e-9)
    local ogden = cq.Material.elastomer { name = "Natural rubber", density = 920, bulk_cap = 30 }
    local mu = (630000 * 1.3 + 1200 * 5 + 10000 * 2) / 2
    assert.near(30 * mu, ogden.bulk, 1e-6 * mu)
    assert.near(50 * mu, cq.Material.elastomer { name = "Natural rubber", density = 920, bulk = 50 * mu,
      bulk_cap = 60 }.bulk, 1e-6 * mu)
  end)

  it("makes a body as soft to pressure as it says", function()
    local bar = cq.Robot {
      shape = cq.Shape.box { size = { 0.2, 0.2, 0.2 } }, spacing = 0.05,
      material = cq.Material.neo_hookean { shear = 2, bulk = 1000 }:capped(20),
    }
    local f, strain = cq.zeros { bar.particle_count, 3, 3 }, 1e-6
    for k = 0, 9 * bar.particle_count - 1, 9 do
      for i = 0, 8, 4 do f:data()[k + i] = i == 0 and 1 + strain or 1 end
    end
    local world = cq.World { cells = { 8, 8, 8 }, dx = 0.1, dt = 1e-4, precision = "float64",
      bar:with { deformation = f }:at { 0.3, 0.3, 0.3 } }
    local stress = world:rollout({ steps = 0 }).state:stress(bar)
    local trace = stress:get(1, 1) + stress:get(2, 2) + stress:get(3, 3)
    assert.near(20 * 2, trace / (3 * strain), 1e-2)
    world:close()
  end)

  it("says what it cannot cap", function()
    says("must be a number above 2/3; got 0.5", function()
      cq.Material.neo_hookean { young = 3, poisson = 0.4 }:capped(0.5)
    end)
    says("got a list of 1", function() cq.Material.neo_hookean { young = 3, poisson = 0.4 }:capped { 20 } end)
    for _, soft in ipairs { cq.Material.neo_hookean { shear = 0, bulk = 10 },
      cq.Material.linear { young = 0, poisson = 0.49 } } do
      says("has a shear modulus of 0 at rest, of which no ratio can be taken", function() soft:capped(20) end)
    end
    says("has no ratio of bulk to shear modulus to cap", function() cq.Material.fluid { bulk = 50 }:capped(20) end)
  end)
end)

describe("examples/locking.lua", function()
  it("shows a beam that locks, and one that does not", function()
    local folder = process.folder()
    local history = example("locking", { "--cells", "2", "--poisson", "0.3,0.49", "--tube", "no" }, folder)
    assert(history[1].plain > 0.85 and history[1].plain < history[1].averaged)
    assert(history[2].averaged > 1.05 * history[2].plain and history[2].plain < 0.9)
    assert(math.abs(history[2].settled - history[2].averaged) < 0.05)
    assert(process.read(folder .. "/locking.png"):find "^\137PNG")
    process.remove(folder)
  end)
end)
