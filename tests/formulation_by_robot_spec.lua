-- formulation_by_robot: bodies with total Lagrangian steps beside others on the grid of the world: what both keep,
-- where they meet, gradients, the same bits, and mistakes. A cell and the density of the body are 1.
local cq = require "cq"
local T = require "cq.tensor"
local mistake = require "tests.sentence"

local TL = "total_lagrangian"

local function block(fields)
  return cq.Robot { name = fields.name or "block", formulation = fields.formulation,
    shape = cq.Shape.box { name = fields.name or "block", size = fields.size or { 6, 6 }, spacing = 0.5 },
    material = fields.material or cq.Material.neo_hookean { young = 40, poisson = 0.3, density = fields.density or 1 },
    actuators = fields.actuators, pins = fields.pins }
end

local function world_of(fields)
  return cq.World { cells = fields.cells or { 40, 30 }, dx = 1, dt = fields.dt or 0.2, substeps = fields.substeps or 8,
    gravity = fields.gravity, walls = fields.walls, damping = fields.damping, precision = fields.precision or "float64",
    threads = fields.threads, formulation = fields.formulation, collisions = fields.collisions,
    integrator = fields.integrator, transfer = fields.transfer, pressure_smoothing = fields.pressure_smoothing,
    device = fields.device, unpack(fields) }
end

local liquid = cq.Material.fluid { bulk = 60, density = 1 }

-- a paddle that is pinned at its foot, with a muscle, in a tank
local function tank(fields)
  local paddle = cq.Robot { name = "paddle", formulation = fields.formulation or TL, pins = "foot",
    shape = cq.Shape.box { name = "left", size = { 1, 8 }, spacing = 0.5 }
      + cq.Shape.box { name = "right", at = { 1, 0 }, size = { 1, 8 }, spacing = 0.5 },
    groups = { foot = function(_, y) return y < 1.5 end },
    material = cq.Material.neo_hookean { young = 200, poisson = 0.3, density = 1 },
    actuators = cq.Actuator.pressure { groups = { "left", "right" }, axis = "y", max = 20 } }
  local water = cq.Robot { name = "water", material = liquid,
    shape = cq.Shape.box { name = "water", size = { 16, 9 }, spacing = 0.5 }
      - cq.Shape.box { at = { 7, 0 }, size = { 2, 8 } } }
  local world = world_of { cells = { 24, 20 }, dt = 0.1, substeps = fields.substeps, gravity = { 0, -0.2 },
    walls = cq.Boundary.box { kind = "slip" }, precision = fields.precision, threads = fields.threads,
    paddle:at { 11, 3.5 }, water:at { 4, 3.5 }:hydrostatic { gravity = { 0, -0.2 }, surface = 12.5 } }
  return world, paddle, water
end

describe("Bodies of both formulations", function()
  it("keep momentum to rounding where they hit each other", function()
    local one, other = block { formulation = TL }, block { name = "other", density = 0.5 }
    local world = world_of { one:at { 8, 10 }, other:at { 15.2, 11 } }
    local thrown = { world.robots[1]:with { velocity = { 1.5, 0.2 } }, world.robots[2]:with { velocity = { -1, 0 } } }
    local function momentum(steps)
      local state = world:rollout { robot = thrown, steps = steps }.state
      return state:velocity("block") * 36 + state:velocity("other") * 18
    end
    local before, after = momentum(0), momentum(30)
    assert.is_true((after - before):abs():max():item() < 1e-12 * before:abs():max():item())
    local state = world:rollout { robot = thrown, steps = 30 }.state
    local relative = (state:velocity("block") - state:velocity("other"))[1]:item()
    assert(math.abs(relative) < 0.8, ("they pass through each other with %.3f of 2.5"):format(relative))
  end)

  it("are as alone where nothing is near", function()
    local one, other = block { formulation = TL }, block { name = "other" }
    local function places(...)
      local floor = cq.Boundary.floor { at = 6, kind = "friction", mu = 0.4 }
      local world = world_of { gravity = { 0.02, -0.1 }, walls = floor, ... }
      local spun = {}
      for k, robot in ipairs(world.robots) do spun[k] = robot:with { velocity = { 0.3, -0.4 } } end
      local state = world:rollout { robot = spun, steps = 40 }.state
      return function(name) return state:gather(name, "position") end
    end
    local both = places(one:at { 6, 8 }, other:at { 26, 8 })
    assert.is_true((both "block" - places(one:at { 6, 8 }) "block"):abs():max():item() < 1e-11)
    assert.is_true((both "other" - places(other:at { 26, 8 }) "other"):abs():max():item() < 1e-11)
  end)

  it("have gradients where damping takes all of a velocity in a step", function()
    for _, precision in ipairs { "float32", "float64" } do
      local world = world_of { gravity = { 0.02, -0.1 }, precision = precision,
        block({ formulation = TL }):at { 6, 8 }, block({ name = "other" }):at { 9, 8 } }
      local _, slopes = cq.value_and_grad(function(p)
        local robots = {}
        for k, robot in ipairs(world.robots) do
          robots[k] = robot:with { density = p.density, velocity = { 0.3, -0.4 } }
        end
        local state = world:rollout { robot = robots, steps = 2, damping = p.damping }.state
        return state:center("other"):square():sum() + state:center("block"):square():sum()
      end)({ density = cq.param(1), damping = cq.param(40 * 8 / 0.2) })
      local found = slopes.density:item()
      assert.is_true(found == found and slopes.damping:item() == slopes.damping:item(), precision)
    end
  end)

  it("let a block float at its draught, and no liquid into it", function()
    local function off(density, duration)
      local floating = block { formulation = TL, size = { 6, 6 }, density = density }
      local draught = 6 * density
      local place = cq.Shape.box { at = { 7, 10 - draught }, size = { 6, 6 } }
      local water = cq.Robot { name = "water", material = cq.Material.fluid { bulk = 100, density = 1 },
        shape = cq.Shape.box { at = { -0.5, -0.5 }, size = { 21, 10.5 }, spacing = 0.5 } - place }
      local world = world_of { cells = { 26, 24 }, dt = 0.2, substeps = "auto", gravity = { 0, -0.05 }, damping = 0.1,
        walls = cq.Boundary.box { kind = "separate" }, pressure_smoothing = 4,
        floating:at { 10, 13 - draught },
        water:at { 3, 3 }:hydrostatic { gravity = { 0, -0.05 }, surface = 13 } }
      local y = world:rollout { steps = duration / 0.2 }.state:center("block")[2]:item()
      return y - (13 - draught + 3)
    end
    for _, density in ipairs { 0.3, 0.5, 0.8 } do
      local cells = off(density, 60)
      assert(math.abs(cells) < 0.15, ("a block of %.1f is %.3f cells off"):format(density, cells))
    end
  end)

  it("move a liquid as far as on one grid, at every step", function()
    local function way(formulation, substeps)
      local world = tank { formulation = formulation, substeps = substeps }
      local u = {}
      for t = 1, 60 do u[t] = { math.sin(t / 10), -math.sin(t / 10) } end
      local roll = world:rollout { steps = 60, controller = cq.Controller.open_loop(T.tensor(u)),
        record = function(state) return state:center("water")[1] end }
      return (roll.record:max() - roll.record:min()):item()
    end
    for _, substeps in ipairs { 8, 24 } do
      local one, own = way("updated", substeps), way(TL, substeps)
      assert(math.abs(own / one - 1) < 0.2, ("%d substeps: %.4f and %.4f"):format(substeps, one, own))
    end
  end)

  it("do not stir a liquid where pins hold them bent", function()
    local paddle = cq.Robot { name = "paddle", formulation = TL, pins = "foot",
      shape = cq.Shape.box { name = "left", size = { 1.5, 10 }, spacing = 0.5 }
        + cq.Shape.box { name = "right", at = { 1.5, 0 }, size = { 1.5, 10 }, spacing = 0.5 },
      groups = { foot = function(_, y) return y < 5 end },
      material = cq.Material.neo_hookean { young = 200, poisson = 0.3, density = 1 },
      actuators = cq.Actuator.pressure { groups = { "left", "right" }, axis = "y", max = 20 } }
    local water = cq.Robot { name = "water", material = liquid,
      shape = cq.Shape.box { name = "water", at = { -0.5, -0.5 }, size = { 21, 21 }, spacing = 0.5 }
        - cq.Shape.box { at = { 8, 4 }, size = { 3, 10 } } }
    local world = world_of { cells = { 26, 26 }, dt = 0.1, damping = 0.05, walls = cq.Boundary.box { kind = "slip" },
      pressure_smoothing = 4, paddle:at { 11, 7 }, water:at { 3, 3 } }
    local state = world:rollout { steps = 600, controller = function() return T.tensor { 1, 0 } end }.state
    local speed = state:gather("water", "velocity"):square():mean():sqrt():item()
    assert(speed < 2e-3, ("the water goes on at %.4f"):format(speed))
  end)

  it("have finite gradients in float32 where cells have little mass", function()
    local dx, density = 1e-3, 1e-9
    local body = cq.Robot { name = "b", formulation = TL,
      shape = cq.Shape.box { name = "b", size = { 5 * dx, 4 * dx }, spacing = dx / 2 },
      material = cq.Material.neo_hookean { young = 40 * density * dx ^ 2, poisson = 0.3, density = density } }
    local drop = cq.Robot { name = "drop", shape = cq.Shape.box { name = "drop", size = { 5 * dx, 2 * dx },
      spacing = dx / 2 }, material = cq.Material.fluid { bulk = 60 * density * dx ^ 2, density = density } }
    local world = cq.World { cells = { 22, 18 }, dx = dx, dt = 0.1, substeps = 8, precision = "float32",
      walls = cq.Boundary.box { kind = "slip" }, body:at { 7 * dx, 5 * dx }, drop:at { 7 * dx, 9 * dx } }
    local _, gradient = cq.value_and_grad(function(p)
      local robots = { world.robots[1]:with { density = p.density }, world.robots[2]:with { velocity = p.v } }
      return world:rollout({ steps = 10, robot = robots }).state:center("b")[2] / dx
    end) { density = T.full({ body.particle_count }, density), v = T.tensor { 0, -dx } }
    for _, g in pairs(gradient) do
      local size = g:square():sum():item()
      assert(size > 0 and size < math.huge, tostring(size))
    end
  end)

  it("have gradients of everything, where they meet, at walls and through sorting", function()
    local world, paddle, water = tank {}
    local n, m = paddle.particle_count, water.particle_count
    local check = cq.check_gradient(function(p)
      local state = world:rollout { steps = 25, controller = cq.Controller.open_loop(p.u), gravity = p.gravity,
        damping = p.damping, robot = {
          world.robots[1]:with { young = p.young, density = p.density, position = p.paddle, velocity = p.speed },
          world.robots[2]:with { bulk = p.bulk, density = p.wet, position = p.water, volume = p.volume } } }.state
      return (state:center "water" * T.tensor { 1, 0.3 }):sum() + 0.1 * (state:gather("left", "position")
        * T.tensor { 0.2, -0.1 }):sum() + 0.05 * state:velocities("water"):square():sum()
    end, { u = 0.4 * T.ones { 25, 2 }, gravity = T.tensor { 0.01, -0.2 }, damping = T.tensor(0.05),
      young = T.full({ n }, 200), density = T.full({ n }, 1), paddle = world.robots[1].position:copy(),
      speed = T.full({ n, 2 }, 0.05), bulk = T.full({ m }, 60), wet = T.full({ m }, 1),
      water = world.robots[2].position:copy(), volume = T.full({ m }, 0.25) },
      { steps = { 1e-4, 1e-5, 1e-6, 1e-7 }, directions = 1, each = true, tolerance = 1e-6 })
    assert.equal(12, #check.directions)
    for _, one in ipairs(check.directions) do assert.equal("right", one.verdict, one.name) end
  end)

  it("have the same bits with more threads, less memory and in a batch", function()
    local function run(threads, memory, batch)
      local world = tank { threads = threads, precision = "float32" }
      local value, gradient = cq.value_and_grad(function(p)
        local roll = world:rollout { steps = 16, controller = cq.Controller.open_loop(p.u), memory = memory,
          batch = batch, robot = { world.robots[1]:with { young = p.young }, world.robots[2] } }
        local x = roll.state:center "water"
        return batch and x:slice(1, 1, 1):sum() or x:sum()
      end) { u = 0.4 * T.ones { 16, 2 }, young = T.full({ world.robots[1].particle_count }, 200) }
      world:close()
      return value, gradient
    end
    local value, gradient = run(1)
    for _, other in ipairs { { 2 }, { 2, "3MB" }, { 2, nil, 2 } } do
      local again, same = run(other[1], other[2], other[3])
      assert.equal(value, again)
      assert.same(gradient.u:totable(), same.u:totable())
      assert.same(gradient.young:totable(), same.young:totable())
    end
  end)

  it("have the same bits with more threads where there are ranges for each", function()
    local function stack(name, formulation)
      local shape, groups = nil, {}
      for k = 0, 11 do
        local part = cq.Shape.box { name = name .. k, at = { 2 * k, 0 }, size = { 2, 10 }, spacing = 0.5 }
        shape, groups[k + 1] = shape and shape + part or part, name .. k
      end
      return cq.Robot { name = name, formulation = formulation, shape = shape,
        material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1 },
        actuators = cq.Actuator.pressure { groups = groups, axis = "y", max = 2 } }
    end
    local function places(threads)
      local world = world_of { cells = { 40, 50 }, threads = threads, precision = "float32",
        stack("a", TL):at { 6, 6 }, stack("b"):at { 6, 17 } }
      local u = {}
      for t = 1, 60 do u[t] = (T.arange(1, 24) * t):cos():totable() end
      local act = cq.Controller.open_loop(T.tensor(u))
      return function() return world:rollout { steps = 60, controller = act }.state:positions() end
    end
    local one, two = places(1)(), places(2)
    for _ = 1, 8 do assert.equal(0, (two() - one):abs():max():item()) end
  end)

  it("feel walls together as much as the other one is there, and what walls give is what they lose", function()
    local function fall(density, precision)
      local robots = { precision = precision, block { formulation = TL, size = { 4, 4 } }:at { 8, 9 } }
      if density then
        robots[2] = block { name = "column", size = { 2, 8 }, density = density,
          material = cq.Material.neo_hookean { young = 40 * density, poisson = 0.3, density = density } }
        robots[2] = robots[2]:at { 12.1, 5.6 }
      end
      robots.cells, robots.substeps, robots.walls = { 24, 24 }, 16, cq.Boundary.floor { at = 5, kind = "sticky" }
      local world = world_of(robots)
      local roll = world:rollout { steps = 60, contact = true,
        robot = { world.robots[1]:with { velocity = { 0, -0.3 } }, world.robots[2] } }
      local speed = roll.state:velocity("block")[2]:item()
      return speed, roll.contact.normal:sum():item(), 16 * (speed + 0.3)
    end
    assert.is_true(math.abs(fall() + 0.3) < 1e-9)
    for _, density in ipairs { 1e-4, 1e-6, 1e-12 } do
      for precision, rounding in pairs { float64 = 1e-9, float32 = 1e-5 } do
        local speed, impulse, gained = fall(density, precision)
        assert(math.abs(speed + 0.3) < 100 * density + rounding, ("beside %g it has %.4f"):format(density, speed))
        assert.is_true(math.abs(impulse - gained) < 20 * density + 20 * rounding)
      end
    end
  end)

  it("hold liquids by their lightest parts", function()
    local function lowest(light)
      local half = cq.Shape.box { name = "heavy", size = { 20, 3 }, spacing = 0.5 }
      local bed = cq.Robot { name = "bed", formulation = TL, pins = "heavy",
        shape = half + cq.Shape.box { name = "light", at = { 0, 3 }, size = { 20, 3 }, spacing = 0.5 },
        material = { heavy = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1 },
          light = cq.Material.neo_hookean { young = 40 * light, poisson = 0.3, density = light } } }
      local drop = block { name = "drop", size = { 4, 4 }, density = 0.01 * light,
        material = cq.Material.neo_hookean { young = 0.4 * light, poisson = 0.3, density = 0.01 * light } }
      local world = world_of { cells = { 30, 24 }, bed:at { 5, 3 }, drop:at { 13, 9.5 } }
      local roll = world:rollout { steps = 60, record = function(state) return state:center("drop")[2] end,
        robot = { world.robots[1], world.robots[2]:with { velocity = { 0, -0.5 } } } }
      return roll.record:min():item()
    end
    for _, light in ipairs { 1, 0.01 } do
      assert(lowest(light) > 10, ("a drop falls through parts of density %g"):format(light))
    end
  end)

  it("go on from a state as if they had not stopped, with the same gradient", function()
    local world = tank {}
    local function loss(parts)
      return cq.value_and_grad(function(p)
        local state
        for _, steps in ipairs(parts) do
          state = world:rollout { steps = steps, from = state,
            robot = not state and { world.robots[1]:with { velocity = p.v }, world.robots[2] } or nil,
            controller = function() return T.tensor { 0.3, -0.2 } end }.state
        end
        return state:center "water"[1] + state:center "left"[1]
      end) { v = T.tensor { 0.4, 0.1 } }
    end
    local value, gradient = loss { 24 }
    local again, same = loss { 10, 14 }
    assert.equal(value, again)
    assert.is_true((gradient.v - same.v):abs():max():item() < 1e-12)
  end)

  it("are saved with a run and come back", function()
    local folder = os.tmpname()
    os.remove(folder)
    local world = tank { precision = "float32" }
    local run = cq.Experiment { world = world, steps = 10, controller = cq.Controller.open_loop { steps = 10 },
      objective = function(state) return -state:center "water"[1] end, optimizer = cq.Optimizer.adam { rate = 0.1 } }
    run:optimize { iterations = 2, folder = folder }
    local saved = cq.load(folder)
    assert.equal(run.best.loss, -saved:rollout().state:center("water")[1]:item())
    assert.equal(TL, saved.robots[1].formulation)
    os.execute(("rm -r '%s'"):format(folder))
  end)

  it("carry cables, and say what is where a simulation fails", function()
    local fields = { name = "block", formulation = TL, size = { 6, 6 } }
    local bare = block(fields)
    local near = {}
    for k, x in ipairs(bare.position:totable()) do
      if math.abs(x[1] - 1.25) < 0.1 and math.abs(math.abs(x[2] - 3) - 1.75) < 0.1 then near[#near + 1] = k end
    end
    fields.actuators = cq.Actuator.cable { path = near, stiffness = 30 }
    local world = world_of { block(fields):at { 8, 10 }, block { name = "water", material = liquid }:at { 15, 10 } }
    local function length(u)
      local state = world:rollout { steps = 30, controller = function() return T.tensor { u } end }.state
      local x = state:gather("block", "position"):totable()
      return x[near[2]][2] - x[near[1]][2]
    end
    assert.is_true(length(1) < length(0) - 0.02)
    local falling = world_of { gravity = { 0, -2 }, block { formulation = TL }:at { 8, 8 },
      block { name = "water", material = liquid }:at { 15, 20 } }
    mistake.fails('of block, group "block", left the world', function() falling:rollout { steps = 50 } end)
  end)

  it("are refused in a sentence where one does not fit", function()
    local function refused(words, fields)
      mistake.says(select(2, pcall(world_of, fields)), words)
    end
    local one, wet = block { formulation = TL }:at { 8, 10 }, block { name = "water", material = liquid }:at { 15, 10 }
    refused("bodies of both formulations in one world need explicit steps", { integrator = cq.Implicit {}, one, wet })
    refused("material 2 has f_bar, which bodies of both formulations in one world do not have", { one, block {
      name = "soft", material = cq.Material.neo_hookean { young = 40, poisson = 0.3, f_bar = 1 } }:at { 15, 10 } })
    refused("flows or relaxes with time, which total Lagrangian steps do not follow", { formulation = TL, one, wet })
    refused("are there on the CPU only; take device = \"cpu\"", { device = "cuda", one, wet })
    refused("cable 1 is fastened to particle 145, whose robot has updated steps; where", { one, block { name = "pulled",
      actuators = cq.Actuator.cable { path = { 1, 20 }, stiffness = 1 } }:at { 15, 10 } })
    mistake.says(select(2, pcall(block, { formulation = "lagrangian" })), "formulation")
    assert.equal("updated", world_of { formulation = TL, block { formulation = "updated" }:at { 8, 10 } }
      .layout.formulation)
    assert.equal("by robot", world_of { one, wet }.layout.formulation)
    mistake.fails("robots of both formulations in one world make explicit steps only; settle those of one in a world",
      function() world_of({ one, wet }):settle() end)
    mistake.says(tostring(world_of { one, wet }), "formulation by robot")
  end)
end)
