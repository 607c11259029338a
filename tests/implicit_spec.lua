-- implicit: steps of backward Euler: gradients, walls, what drives bodies, long steps, the same bits, and mistakes.
local cq = require "cq"
local T = require "cq.tensor"
local message = require "cq.base.message"
local derivative = require "tests.derivative"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local DX = 1 / 16
local YOUNG = 40

before_each(function() scratch.open() end)
after_each(scratch.close)

local function merge(fields, more)
  for key, value in pairs(more or {}) do fields[key] = value end
  return fields
end

local function filled(dim, across, up)
  local out = { across, up }
  if dim == 3 then out[3] = across end
  return out
end

-- a block, 4 cells wide in 2D and 3 in 3D
local function block(dim, fields)
  local side = dim == 2 and 4 * DX or 3 * DX
  return cq.Robot(merge({
    shape = cq.Shape.box { size = filled(dim, side, side), spacing = DX / 2 },
    material = cq.Material.neo_hookean { young = YOUNG, poisson = 0.3, density = 1.5 },
  }, fields))
end

-- it stands a little above a floor
local function world_of(robot, fields)
  local dim = robot.dim
  return cq.World(merge({
    cells = filled(dim, 16, 16), dx = DX, dt = 0.04, gravity = filled(dim, 0.2, -2), precision = "float64",
    integrator = cq.Implicit { tolerance = 1e-10, adjoint_tolerance = 1e-10 },
    walls = cq.Boundary.floor { at = 3 * DX, kind = "separate" }, robot:at(filled(dim, 0.36, 0.2)),
  }, fields))
end

-- a number that feels where every particle is, how fast, and how deformed
local function felt(state)
  local x, v, f = state:positions(), state:velocities(), state:deformations()
  return (x * spread(x:shape(), -0.4, 1)):sum() + (v * v):mean() + (f * spread(f:shape(), -1, 0.6)):mean()
end

local function falling(dim) return filled(dim, 0.3, -1) end

local function determinants(state)
  local f = state:deformations()
  local function at(i, j) return f:slice(i, i, 2):slice(j, j, 3):reshape { -1 } end
  return at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)
end

describe("the gradient of implicit steps", function()
  local wall, floor = cq.Boundary, 3 * DX
  local slope = wall.slope { point = { 0.64, floor }, angle = math.rad(70), kind = "separate" }
  local cases = {
    ["floor and slope that let go"] = { walls = { wall.floor { at = floor, kind = "separate" }, slope } },
    ["sticky"] = { walls = wall.floor { at = floor, kind = "sticky" } },
    ["slip"] = { walls = wall.floor { at = floor, kind = "slip" } },
    ["hold"] = { walls = wall.floor { at = floor, kind = "sticky", separable = true } },
    ["damped"] = { damping = 2 },
    ["a ball that rises"] = {
      walls = wall.sphere { center = { 0.5, 0.1 }, radius = 0.1, kind = "separate", velocity = { 0.05, 0.2 } },
    },
    ["a floor that moves and holds"] = {
      walls = wall.floor { at = floor, kind = "sticky", separable = true, velocity = { 0.2, 0.1 } },
    },
    ["in 3D"] = { dim = 3, steps = 4 },
    ["branches stiffer than their law"] = {
      material = cq.Material.viscoelastic {
        base = cq.Material.neo_hookean { young = YOUNG, poisson = 0.3, density = 1.5 }, modulus = { 6 }, time = { 0.1 },
      },
    },
  }
  for name, case in pairs(cases) do
    it("is right: " .. name, function()
      local dim, steps = case.dim or 2, case.steps or 8
      local p = {
        velocity = T.param(falling(dim)), young = T.param(YOUNG), density = T.param(1.5),
        gravity = T.param(filled(dim, 0.2, -2)), damping = case.damping and T.param(case.damping),
        wall = case.walls and case.walls.velocity and T.param(case.walls.velocity),
        modulus = case.material and T.param(6), time = case.material and T.param(0.1),
      }
      local robot = block(dim, { material = case.material })
      case.dim, case.steps, case.material = nil, nil, nil
      local world = world_of(robot, case)
      derivative.check(function(q)
        return felt(world:rollout({
          steps = steps, gravity = q.gravity, damping = q.damping,
          wall_velocity = q.wall and q.wall:reshape { 1, 1, dim } * T.ones { steps, 1, 1 },
          robot = world.robot:with { velocity = q.velocity, young = q.young, density = q.density,
            branch_modulus_1 = q.modulus, relaxation_time_1 = q.time },
        }).state)
      end, p, 1e-6)
    end)
  end

  local function all() return true end
  local function side(x)
    local path = {}
    for k = 1, 5 do path[k] = { x, DX * (k - 0.75) } end
    return path
  end
  local drives = {
    ["a muscle"] = {
      actuators = cq.Actuator.pressure { groups = "all", axis = "y", max = 8 }, groups = { all = all },
    },
    ["a cable"] = {
      actuators = cq.Actuator.cable { path = side(DX / 4), stiffness = 2, law = "spool" }, pins = "foot",
      groups = { foot = function(_, y) return y < DX end },
    },
    ["a stiff cable at the end of a step"] = {
      actuators = cq.Actuator.cable { path = side(DX / 4), stiffness = 200, law = "spool" }, pins = "foot",
      groups = { foot = function(_, y) return y < DX end }, cables = "implicit",
    },
    ["pressure"] = {
      actuators = cq.Actuator.follower_pressure { surface = { inside = { 2 * DX, 2 * DX } }, max = 2 },
      shape = cq.Shape.box { size = { 4 * DX, 4 * DX }, spacing = DX / 2 }
        - cq.Shape.box { at = { DX, DX }, size = { 2 * DX, 2 * DX } },
    },
  }
  for name, fields in pairs(drives) do
    it("is right by the signals of " .. name, function()
      local cables = fields.cables
      fields.cables = nil
      local world = world_of(block(2, fields), cables and {
        integrator = cq.Implicit { tolerance = 1e-10, adjoint_tolerance = 1e-10, cables = cables },
      })
      local p = { u = T.param(spread({ 6, world.actuator_count }, 0.2, 0.8)), young = T.param(YOUNG) }
      derivative.check(function(q)
        return felt(world:rollout({
          steps = 6, robot = world.robot:with { young = q.young }, controller = cq.Controller.open_loop(q.u),
        }).state)
      end, p, 1e-6)
    end)
  end
end)

-- a block below an anchor, at a cable whose spring is much quicker than the step
local function hung(cables, friction)
  local robot = block(2, {
    groups = { top = function(_, y) return y > 3 * DX end },
    actuators = cq.Actuator.cable {
      path = { "top", { anchor = { 0.5, 0.75 } } }, stiffness = 1000, friction = friction,
    },
  })
  return cq.World {
    cells = { 16, 16 }, dx = DX, dt = 0.04, gravity = { 0, -2 }, damping = 5, precision = "float64",
    integrator = cq.Implicit { tolerance = 1e-8, cables = cables }, robot:at { 0.375, 0.25 },
  }
end

describe("cables of implicit steps", function()
  local function rest(cables)
    local world = hung(cables)
    local top = world.robot:group("top"):particles()
    local start = world.robot.position:gather(top, 1):mean(1)[2]:item()
    local roll = world:rollout { steps = 60, controller = cq.Controller.open_loop(T.full({ 60, 1 }, -1)) }
    assert.is_true(roll.state:velocities():abs():max():item() < 1e-6)
    return start - roll.state:center("top")[2]:item()
  end

  it("hold a block at rest by its weight over their stiffness, where their pull is that of the step's end", function()
    assert.near(1.5 * (4 * DX) ^ 2 * 2 / 1000, rest("implicit"), 1e-9)
    says(sentence(function() rest("lagged") end), "a particle moves by 2.27 cells in one implicit step")
  end)

  it("pull with their energy alone", function()
    says(sentence(function() hung("implicit", 0.1) end), "a cable has a friction of 0.1, and friction in a sheath")
    local world = hung("implicit")
    says(sentence(function() world:rollout { steps = 1, robot = world.robot:with { cable_friction = 0.2 } } end),
      "a cable has a friction of 0.2")
    says(sentence(function() cq.Implicit { cables = "late" } end), "cables must be")
  end)

  it("give the same bits for any number of threads", function()
    local values = {}
    for k, threads in ipairs { 1, 2, 4 } do
      local world = cq.World { cells = { 16, 16 }, dx = DX, dt = 0.04, gravity = { 0, -2 }, precision = "float64",
        threads = threads, integrator = cq.Implicit { cables = "implicit" }, block(2, {
          shape = cq.Shape.box { size = { 4 * DX, 4 * DX }, spacing = DX / 8 },
          actuators = cq.Actuator.cable { path = { { 0.1, 0.24 }, { anchor = { 0.5, 0.75 } } }, stiffness = 1000 },
        }):at { 0.375, 0.25 } }
      values[k] = felt(world:rollout { steps = 6, controller = cq.Controller.open_loop(T.zeros { 6, 1 }) }.state):item()
    end
    assert.are.equal(values[1], values[2])
    assert.are.equal(values[1], values[3])
  end)
end)

describe("implicit steps", function()
  -- value and gradients of a rollout that lands, and what the solver did
  local function landing(world, memory, steps)
    return T.value_and_grad(function(p)
      local roll = world:rollout {
        steps = steps, memory = memory, robot = world.robot:with { velocity = p.velocity, young = p.young },
      }
      return felt(roll.state), roll
    end) { velocity = T.param(falling(world.dim)), young = T.param(YOUNG * T.ones { world.particle_count }) }
  end

  for _, dim in ipairs { 2, 3 } do
    it(("give the same bits for any number of threads and any memory: %dD"):format(dim), function()
      local steps = dim == 2 and 8 or 4
      local side = dim == 2 and 28 * DX or 8 * DX     -- 1,568 and 2,048 particles: several ranges
      local robot = block(dim, { shape = cq.Shape.box { size = filled(dim, side, side / 2), spacing = DX / 2 } })
      local loss, grads, roll
      for _, how in ipairs { { threads = 1 }, { threads = 2 }, { threads = 2, tight = true } } do
        local world = world_of(robot, {
          threads = how.threads, precision = "float32", integrator = cq.Implicit {}, robot:at(filled(dim, 0.2, 0.2)),
          cells = dim == 2 and { 36, 24 } or nil,
        })
        local plan = world:memory_plan { steps = steps, memory = "1 GiB" }
        local memory = how.tight and math.floor(2.5 * plan.slice_bytes + plan.record_bytes) or "1 GiB"
        assert.equal(how.tight or false, world:memory_plan({ steps = steps, memory = memory }).recompute > 1)
        local loss2, grads2, roll2 = landing(world, memory, steps)
        loss, grads, roll = loss or loss2, grads or grads2, roll or roll2
        assert.equal(loss, loss2)
        assert.is_true(grads.velocity:equal(grads2.velocity) and grads.young:equal(grads2.young))
        for name in pairs(roll.solver) do assert.is_true(roll.solver[name]:equal(roll2.solver[name]), name) end
        world:close()
      end
      assert.same({ steps, 1 }, roll.solver.newton:shape())
      assert.is_true(roll.solver.newton:min():item() >= 2 and roll.solver.residual:max():item() <= 1e-3)
    end)
  end

  it("of a batch are those of its scenes alone", function()
    local world = world_of(block(2), { substeps = 2 })
    local velocity = T.tensor { { 0, -1 }, { 0.5, 0 }, { -0.3, -1.5 } }
    local function simulate(v, batch)
      return T.value_and_grad(function(p)
        local roll = world:rollout { steps = 5, batch = batch, robot = world.robot:with { velocity = p } }
        return (roll.state:center() * T.tensor { 1, 3 }):sum(), roll
      end)(T.param(v))
    end
    local function each(v) return v:reshape { 3, 1, 2 } * T.ones { 1, world.particle_count, 1 } end
    local _, all, roll = simulate(each(velocity), 3)
    assert.same({ 5, 3, 2 }, roll.solver.linear:shape())
    for k = 1, 3 do
      local _, own, alone = simulate(each(velocity)[k])
      assert.is_true(own:equal(all[k]))
      assert.is_true(alone.state:positions():equal(roll.state:positions()[k]))
      assert.is_true(alone.solver.linear:equal(roll.solver.linear:slice(k, k, 2):squeeze(2)))
    end
  end)

  it("come to what explicit ones do, of first order in the step", function()
    local function final(substeps, explicit)
      local def = {
        cells = { 16, 16 }, dx = DX, dt = 0.02, substeps = substeps, gravity = { 0.2, -2 }, precision = "float64",
        damping = 1, integrator = not explicit and cq.Implicit { tolerance = 1e-10 } or nil,
        block(2, { material = cq.Material.neo_hookean { young = 2, poisson = 0.3, density = 1.5 } }):at { 0.36, 0.2 },
      }
      local world = cq.World(def)
      local x = world.robot.position
      local v = T.stack({ (x:slice(2, 2, 2):squeeze(2) * 5):sin(), (x:slice(1, 1, 2):squeeze(2) * 4):cos() }, 2) * 0.2
      return world:rollout({ steps = 2, robot = world.robot:with { velocity = v } }).state:positions()
    end
    local coarse, middle, fine = final(80), final(160), final(320)
    local change, ratio = (fine - middle):norm():item(), (middle - coarse):norm():item()
    ratio = ratio / change
    assert.is_true(ratio > 1.85 and ratio < 2.15, ("the error falls %.3g times"):format(ratio))
    local limit, explicit = 2 * fine - middle, 2 * final(640, true) - final(320, true)
    local apart = (limit - explicit):norm():item()
    assert.is_true(apart < 0.1 * change, ("%.3g of the last change"):format(apart / change))
  end)

  it("of free fall are those of backward Euler, without an iteration", function()
    local world = world_of(block(2), { walls = {}, dt = 0.1, substeps = 2 })
    local roll = world:rollout { steps = 2 }
    local way = (roll.state:positions() - world.robot.position) / T.tensor { 0.2, -2 }
    assert.is_true((way - 0.05 ^ 2 * (1 + 2 + 3 + 4)):abs():max():item() < 1e-12)
    assert.equal(0, roll.solver.newton:sum():item())
  end)

  it("lose energy and turn nothing inside out at 200 times the explicit step", function()
    for _, precision in ipairs { "float32", "float64" } do
      for _, kind in ipairs { "separate", "slip" } do
        local explicit = world_of(block(2), { dt = 1 })
        local world = world_of(block(2), {
          dt = 200 / explicit.courant, gravity = { 0, -2 }, precision = precision,
          walls = cq.Boundary.floor { at = 3 * DX, kind = kind },
          integrator = cq.Implicit { tolerance = precision == "float32" and 1e-4 or 1e-8 },
        })
        local bent = T.tensor { { 1.3, 0.3 }, { 0, 0.8 } } * T.ones { world.particle_count, 1, 1 }
        local before, rise, least = math.huge, -math.huge, math.huge
        local roll = world:rollout {
          steps = 12, robot = world.robot:with { deformation = bent },
          on_step = function(state)
            local energy = state:energy():item()
            rise, before = math.max(rise, energy - before), energy
            least = math.min(least, determinants(state):min():item())
          end,
        }
        assert.is_true(least > 0.5 and rise < 1e-5, ("det F %g, energy rises by %g"):format(least, rise))
        assert.is_true(roll.state:velocities():abs():max():item() < 1e-3)
        assert.is_true(roll.solver.newton:mean():item() < 30)
      end
    end
  end)

  it("stick, slip, let go and hold as walls say, and at pins", function()
    local function thrown(kind, up, fields)
      local world = world_of(block(2, fields), {
        gravity = { 0, 0 }, dt = 0.02,
        walls = cq.Boundary.floor {
          at = 3 * DX, kind = kind == "hold" and "sticky" or kind, separable = kind == "hold",
        },
      })
      local state = world:rollout({
        steps = 10, robot = world.robot:with { velocity = T.tensor { 0.5, up } * T.ones { world.particle_count, 1 } },
      }).state
      return (state:center() - world.robot.position:mean(1)):totable()
    end
    -- what is free goes 0.1 along; what leaves goes 0.1 up as well
    local along = { sticky = 0.06, slip = 0.1, separate = 0.1, hold = 0.06 }
    for kind, way in pairs(along) do
      local down = thrown(kind, -0.5)
      assert.is_true(kind == "slip" or kind == "separate" or down[1] < way, kind)
      if way == 0.1 then assert.is_true(math.abs(down[1] - way) < 1e-9, kind) end
      assert.is_true(down[2] > -0.05, kind)
      local up = thrown(kind, 0.5)
      local leaves = kind == "separate" or kind == "hold"
      assert.is_true(leaves == (math.abs(up[2] - 0.1) < 1e-9), ("%s: up by %g"):format(kind, up[2]))
    end
    local pinned = thrown("separate", 0.5, { pins = "all", groups = { all = function() return true end } })
    assert.is_true(math.abs(pinned[1]) + math.abs(pinned[2]) < 1e-14)
  end)

  it("let go within a step of what has pressed at its start", function()
    -- a stiff beam on two supports, both left of its middle: it tips over the inner one and leaves the outer one
    local beam = block(2, {
      shape = cq.Shape.box { size = { 8 * DX, 2 * DX }, spacing = DX / 2 },
      material = cq.Material.neo_hookean { young = 20000, poisson = 0.3, density = 1.5 },
      groups = { left = function(x) return x < DX end },
    })
    local function support(from, to)
      return cq.Boundary.obstacle { lower = { from * DX, 2 * DX }, upper = { to * DX, 4.1 * DX }, kind = "separate" }
    end
    local world = world_of(beam, {
      dt = 0.05, gravity = { 0, -2 }, walls = { support(2.5, 4.5), support(5.6, 6.4) },
      beam:at { 4 * DX, 4.5 * DX },
    })
    local roll = world:rollout { steps = 1 }
    local up = roll.state:velocity("left")[2]:item()
    assert.is_true(up > 0.02, ("rises at %g"):format(up))
  end)

  it("go on from a saved experiment as if they had not stopped", function()
    local function run()
      local robot = block(2, {
        actuators = cq.Actuator.pressure { groups = "all", axis = "y", max = 8 },
        groups = { all = function() return true end },
      })
      return cq.Experiment {
        world = world_of(robot, { precision = "float32", integrator = cq.Implicit {} }), steps = 5,
        observer = cq.Observer.centroid { groups = { "all" }, velocity = true },
        controller = cq.Controller.linear { seed = 2 }, optimizer = cq.Optimizer.adam { rate = 0.05 },
        objective = { terminal = function(state) return -state:center "all"[2] end },
      }
    end
    local folder = require("tests.process").folder()
    local whole, rest = run(), run()
    local before = whole:evaluate().loss
    whole:optimize { iterations = 4, folder = folder .. "/whole" }
    run():optimize { iterations = 2, folder = folder .. "/parts" }
    rest:optimize { iterations = 4, folder = folder .. "/parts", resume = true }
    assert.is_true(whole.best.loss < before)
    assert.equal(whole.best.loss, rest.best.loss)
    assert.is_true(rest.params.controller.w1:equal(whole.params.controller.w1))
    require("tests.process").remove(folder)
  end)
end)

describe("implicit steps warn", function()
  local warn = message.warn
  after_each(function() message.warn = warn end)

  it("once, of a tolerance below what rounding leaves", function()
    local told = {}
    message.warn = function(format, ...) told[#told + 1] = format:format(...) end
    local function run(tolerance)
      local world = world_of(block(2), { integrator = cq.Implicit { tolerance = tolerance } })
      for _ = 1, 2 do world:rollout { steps = 2 } end
    end
    run(1e-12)
    assert.equal(0, #told)
    run(1e-15)
    assert.equal(1, #told)
    assert(told[1]:find("of the residual of implicit steps, more than their tolerance of 1e-15; take a larger tol", 1,
      true), told[1])
    -- no tolerance would do: one is below 1
    local stiff = world_of(block(2, { material = cq.Material.neo_hookean { young = 4e6, poisson = 0.3 } }),
      { precision = "float32", integrator = cq.Implicit {} })
    stiff:rollout { steps = 2 }
    says(told[2], "take precision = \"float64\", or a softer material, for its forces are lost in it")
  end)
end)

-- a block on a floor that is tilted by `angle`, for 0.4
local function on_slope(mu, angle, fields)
  local g = 10
  local body = block(2, { material = cq.Material.neo_hookean { young = 1e5, poisson = 0.3, density = 1000 } })
  local world = cq.World(merge({
    cells = { 24, 16 }, dx = DX, dt = 0.02, gravity = { g * math.sin(angle), -g * math.cos(angle) },
    precision = "float64", integrator = cq.Implicit { tolerance = 1e-9, adjoint_tolerance = 1e-10 },
    walls = cq.Boundary.floor { at = 3 * DX, mu = mu }, body:at { 4 * DX, 3 * DX },
  }, fields))
  return world, function(friction)
    local state = world:rollout({ steps = 20, friction = friction }).state
    return state:velocity(world.robot)[1], state:center(world.robot)[1]
  end
end

describe("friction of implicit steps", function()
  it("is Coulomb's on a slope", function()
    local angle = 0.4
    for _, mu in ipairs { 0, 0.1, 0.3 } do
      local _, slid = on_slope(mu, angle)
      local wanted = 10 * (math.sin(angle) - mu * math.cos(angle)) * 0.4
      assert.near(wanted, slid():item(), 0.04 * wanted, mu)
    end
  end)

  it("holds what is steep enough to stay, but for a creep below the speed that is given", function()
    local speed = {}
    for k, slide in ipairs { 0.01, 0.001 } do
      local _, slid = on_slope(0.6, 0.4, { damping = 20,
        integrator = cq.Implicit { tolerance = 1e-9, stick_velocity = slide } })
      speed[k] = slid():item()
      assert.is_true(speed[k] > 0 and speed[k] < slide, speed[k])
    end
    assert.near(0.1, speed[2] / speed[1], 0.02)
  end)

  it("has gradients by its coefficient, where it slides and where it sticks", function()
    for _, mu in ipairs { 0.2, 0.6 } do
      local world, slid = on_slope(mu, 0.4, {
        integrator = cq.Implicit { tolerance = 1e-12, adjoint_tolerance = 1e-11, stick_velocity = 0.02 } })
      local function way(friction) return (select(2, slid(friction))) end
      local _, gradient = cq.value_and_grad(way)(cq.param { mu })
      for _, h in ipairs { 1e-3, 1e-4 } do
        local slope = (way(T.tensor { mu + h }) - way(T.tensor { mu - h })):item() / (2 * h)
        assert.near(slope, gradient:item(), 2e-4 * math.abs(slope), mu)
      end
      world:close()
    end
  end)

  it("is what the wall gives, with its normal part, and has a gradient", function()
    local exact = cq.Implicit { tolerance = 1e-12, adjoint_tolerance = 1e-11 }
    local world = on_slope(0.2, 0.4, { damping = 4, integrator = exact })
    local weight = 1000 * (4 * DX) ^ 2 * 10 * 0.02                     -- times a control step
    local function floor(friction)
      return world:rollout({ steps = 20, friction = friction, contact = true }).contact
    end
    local at = floor()
    local normal, along = at.normal:get(20, 1), at.tangential:get(20, 1, 1)
    assert.near(math.cos(0.4) * weight, normal, 1e-3 * weight)
    assert.near(-0.2 * normal, along, 1e-9 * weight)
    local function mean(friction)
      local got = floor(friction)
      return (got.normal * spread(got.normal:shape(), -1, 1)):sum() + got.tangential:sum()
    end
    local _, gradient = cq.value_and_grad(mean)(cq.param { 0.2 })
    local h = 1e-4
    local slope = (mean(T.tensor { 0.2 + h }) - mean(T.tensor { 0.2 - h })):item() / (2 * h)
    assert.near(slope, gradient:item(), 1e-4 * math.abs(slope))
  end)

  it("sums up to the change of momentum where a wall pushes across a floor that rubs", function()
    local world, slid = on_slope(0.5, 0, { gravity = { 0, 0 }, integrator = cq.Implicit { tolerance = 1e-11 }, walls = {
      cq.Boundary.floor { at = 3 * DX, mu = 0.5 },
      cq.Boundary.half_plane { point = { 4 * DX, 0 }, normal = { 1, 0.2 }, kind = "separate", velocity = { 0.5, 0 },
        moves = true },
    } })
    assert.is_function(slid)
    local body = world.robot:with { velocity = { 0, -1 } }
    local roll, before = world:rollout { steps = 3, robot = body, contact = true }, { 0, -1 }
    local mass = 1000 * (4 * DX) ^ 2
    for i = 1, 2 do
      local sum = roll.contact.impulse:slice(i, i, -1):sum():item()
      assert.near(mass * (roll.state:velocity(world.robot)[i]:item() - before[i]), sum, 1e-6 * mass, i)
    end
    assert.is_true(math.abs(roll.contact.impulse:get(1, 1, 1)) > 1e-3 * mass)
  end)

  it("stops what slides, in float32 too", function()
    local way = {}
    for _, precision in ipairs { "float64", "float32" } do
      local world = on_slope(2, 0, { precision = precision, integrator = cq.Implicit {} })
      local state = world:rollout({ steps = 8, robot = world.robot:with { velocity = { 1, 0 } } }).state
      way[precision] = state:center(world.robot)[1]:item()
    end
    assert.near(way.float64, way.float32, 1e-3)
  end)

  it("has the same bits on any number of threads", function()
    local function got(threads)
      local _, slid = on_slope(0.3, 0.4, { threads = threads })
      return slid():item()
    end
    assert.equal(got(1), got(2))
  end)
end)

describe("a start of implicit steps", function()
  -- fibres whose energy would be beyond all bounds where free flight leads, 3.2 cells on
  it("is no farther than a cell", function()
    local dx = 1 / 32
    local beam = cq.Robot {
      shape = cq.Shape.box { size = { 16 * dx, 4 * dx }, spacing = dx / 2 }, pins = "root",
      material = cq.Material.transversely_isotropic {
        shear = 1e3, bulk = 1e4, density = 1, k1 = 100, k2 = 1, fibre = { 1, 0 },
      },
      groups = { root = function(x) return x < 2 * dx end },
    }
    for _, precision in ipairs { "float32", "float64" } do
      local world = cq.World {
        cells = { 28, 24 }, dx = dx, dt = 0.1, gravity = { 0, -10 }, precision = precision,
        integrator = cq.Implicit { tolerance = 1e-2 }, beam:at { 4 * dx, 14 * dx },
      }
      local roll = world:rollout { steps = 2 }
      assert.is_true(roll.solver.newton:max():item() < 30)
    end
  end)
end)

describe("implicit steps refuse", function()
  local function refused(words, fields, roll)
    says(sentence(function()
      local world = world_of(block(2), fields)
      world:rollout(roll or { steps = 4 })
    end), words)
  end

  it("what they do not know", function()
    refused("implicit steps are made on the CPU only", { device = "cuda" })
    refused("tolerance is 1e-09; it must be below 1, and at least 1e-07", {
      precision = "float32", integrator = cq.Implicit { tolerance = 1e-9 },
    })
    says(sentence(function() cq.Implicit { tolerence = 1 } end), "unknown field tolerence (did you mean tolerance?)")
    says(sentence(function() cq.Implicit { preconditioner = "multigrid" } end), "no multigrid, see docs/implicit.md")
    says(sentence(function() cq.Implicit { stick_velocity = 0 } end), "stick_velocity must be a finite number above 0")
    says(sentence(function() world_of(block(2), { integrator = "implicit" }) end), "integrator must be")
  end)

  it("steps that are too long, or do not converge, with what helps", function()
    refused("control step 2 (time 0.15, substep 1): a particle moves by 1.44 cells in one implicit step",
      { dt = 0.15, walls = {} })
    refused("use substeps = 2 or more", { dt = 0.15, walls = {} })
    refused("the implicit step did not converge, its relative residual stays at",
      { integrator = cq.Implicit { tolerance = 1e-8, newton_iterations = 1 } })
    says(sentence(function()
      local few = cq.Implicit { tolerance = 1e-4, linear_iterations = 1, newton_iterations = 10000 }
      local world = world_of(block(2), { integrator = few })
      T.value_and_grad(function(p)
        return felt(world:rollout({ steps = 4, robot = world.robot:with { velocity = p } }).state)
      end)(T.param(falling(2)))
    end), "no gradient at control step 4 (time 0.12, substep 1): the linear system of the adjoint did not converge")
  end)

  it("a pressure that balloons, with its cavity and what that holds", function()
    local scene = require "scenes.balloon" { max = 4, precision = "float64" }
    scene.world.integrator, scene.world.dt, scene.world.substeps = cq.Implicit {}, 0.02, 1
    local world = cq.World(scene.world)
    local open = cq.Controller.open_loop { steps = 4, init = 1 }
    says(sentence(function() world:rollout { steps = 4, controller = open } end), "at control step 2",
      "the pressure of \"air\" may be above the largest that the walls of its cavity in robot stand, which holds 0.044",
      "before this step, 1.4")
    says(sentence(function() world:rollout { steps = 4, batch = 2, controller = function()
      return cq.tensor { { 0.1 }, { 1 } }
    end } end), "in scene 2", "before this step, 1.4")
    says(sentence(function() world:settle { signals = { 1 } } end), "did not converge", "its cavity in robot")
    local stronger = require "scenes.balloon" { max = 400, precision = "float64" }
    stronger.world.integrator, stronger.world.dt, stronger.world.substeps = cq.Implicit {}, 0.02, 1
    says(sentence(function() cq.World(stronger.world):rollout { steps = 4, controller = open } end),
      "at control step 1 ", "its cavity in robot stand, which was drawn with 0.03")
  end)

  it("a gradient that is no number, as explicit ones do", function()
    local world = world_of(block(2), {})
    says(sentence(function()
      T.value_and_grad(function(p)
        local state = world:rollout({ steps = 2, robot = world.robot:with { velocity = p } }).state
        return (state:center(world.robot)[2] * 0):sqrt()
      end)(T.param(falling(2)))
    end), "the gradient of parameter is nan")
  end)
end)
