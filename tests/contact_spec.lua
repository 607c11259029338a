-- contact: what walls and pins give in a control step, against closed forms, and with gradients;
-- walls whose velocity changes.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local scene = require "tests.scene"
local sentence = require("tests.sentence").of

local G, DT = 2, 4e-3

local function near(wanted, got, tolerance, what)
  assert(math.abs(got - wanted) <= tolerance * math.max(1e-4, math.abs(wanted)),
    ("%s: %.12g wanted, got %.12g"):format(what, wanted, got))
end

-- a block on a floor: mass 0.09375 in 2D
local function block(options)
  local dim = options.dim or 2
  local size, count, at = { 0.25, 0.25 }, { 12, 12 }, { 0.3, options.at or 0.1 }
  if dim == 3 then size[3], count, at[3] = 0.25, { 6, 6, 6 }, 0.3 end
  local robot = cq.Robot {
    shape = cq.Shape.box { name = "body", at = dim == 2 and { 0, 0 } or { 0, 0, 0 }, size = size, count = count },
    material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1.5 }, pins = options.pins,
  }
  return cq.World {
    cells = dim == 2 and { 48, 32 } or { 32, 32, 32 }, dx = 1 / 32, dt = DT, substeps = 4, precision = options.precision
      or "float64",
    gravity = options.gravity or (dim == 2 and { 0, -G } or { 0, -G, 0 }), threads = options.threads,
    device = options.device, walls = options.walls,
    robot:at(at),
  }
end

local function mass_of(world) return (world.robot.volume * world.robot.density):sum():item() end

-- the block as it is once it has come to rest
local function settled(world)
  local roll = world:rollout { steps = 1500, damping = 30 }
  return world.robot:with { position = roll.state:positions(), deformation = roll.state:deformations() }
end

describe("contact", function()
  it("of a resting block carries its weight, under its middle", function()
    for dim = 2, 3 do
      local world = block { dim = dim, walls = cq.Boundary.floor { at = 0.1, mu = 0.5, name = "ground" } }
      local roll = world:rollout { robot = settled(world), steps = 5, contact = true }
      local middle, weight = roll.state:center(world.robot):get(1), mass_of(world) * G * DT
      local tolerance = dim == 2 and 1e-6 or 3e-5     -- in 3D it creeps for a long time
      for i = 1, 5 do
        near(weight, roll.contact.normal:get(i, 1), tolerance, "normal")
        near(weight, roll.contact.impulse:get(i, 1, 2), tolerance, "impulse")
        near(middle, roll.contact.center:get(i, 1, 1), tolerance, "centre of pressure")
      end
      local ground = roll.state:contact "ground"
      assert.same(roll.contact.impulse[5][1]:totable(), ground.impulse:totable())
      assert.same(roll.contact.center[5][1]:totable(), roll.state:contact(world.walls[1]).center:totable())
      assert.is_nil(roll.contact.pins)
    end
  end)

  it("of a block that slides is tangential by mu times normal, against its way", function()
    local world = block { walls = cq.Boundary.floor { at = 0.1, mu = 0.3 } }
    local robot = settled(world):with { velocity = { 1, 0 } }
    local contact = world:rollout { robot = robot, steps = 20, contact = true }.contact
    for i = 1, 20 do
      assert.is_true(contact.normal:get(i, 1) > 0)
      near(-0.3 * contact.normal:get(i, 1), contact.tangential:get(i, 1, 1), 1e-12, "friction")
      near(0, contact.tangential:get(i, 1, 2), 1e-12, "upward")
    end
  end)

  it("of all walls and pins is the change of momentum that gravity does not make", function()
    for dim = 2, 3 do
      local center = dim == 2 and { 0.6, 0.1 } or { 0.5, 0.1, 0.4 }
      local walls = { cq.Boundary.box { mu = 0.4 },
        cq.Boundary.sphere { center = center, radius = 0.1, kind = "slip" } }
      local gravity = dim == 2 and { 0.5, -G } or { 0.5, -G, 0.2 }
      local world = block { dim = dim, walls = walls, gravity = gravity, at = 0.21, pins = { 1 } }
      local before = T.zeros { dim }
      local roll = world:rollout { steps = 300, contact = true, on_step = function(state)
        local after = state:momentum()
        if state.step > 0 then
          local sum = state:contact(1).impulse + state:contact(2).impulse + state:contact("pins").impulse
          local left = after - before - sum - T.tensor(gravity) * (mass_of(world) * DT)
          assert.is_true(left:abs():max():item() < 1e-13, tostring(left))
        end
        before = after
      end }
      local contact = roll.contact
      assert.same({ 300, 2, dim }, contact.impulse:shape())
      assert.same({ 300, 2 }, contact.normal:shape())
      assert.same({ 300, dim }, contact.pins:shape())
      assert.is_true(contact.normal:abs():sum(1):min():item() > 0 and contact.pins:abs():max():item() > 0,
        "everything was touched")
    end
  end)

  it("of each pinned group is what it holds", function()
    local function beam(pins)
      return cq.Robot {
        shape = cq.Shape.box { size = { 0.5, 0.125 }, count = { 32, 8 } }, pins = pins,
        material = cq.Material.neo_hookean { young = 100, poisson = 0.3, density = 2 },
        groups = { left = function(x) return x < 0.05 end, right = function(x) return x > 0.45 end },
      }
    end
    local robot = beam { "left", "right", 1 }
    local world = cq.World { cells = { 48, 32 }, dx = 1 / 32, dt = DT, substeps = 4, precision = "float64",
      gravity = { 0, -G }, robot:at { 0.5, 0.5 } }
    local roll = world:rollout { steps = 1500, damping = 30, contact = true }
    local contact, state, share = roll.contact, roll.state, math.exp(-30 * DT / 4)
    assert.same({ 1500, 3, 2 }, contact.pin_groups:shape())
    assert.is_true((contact.pin_groups:sum(2) - contact.pins):abs():max():item() < 1e-15)
    -- a half each, and nothing is left for the particle beside them; damping takes its share before
    for k, group in ipairs { "left", "right" } do
      near(mass_of(world) * G * DT / 2 * share, contact.pin_groups:get(1500, k, 2), 1e-6, group)
      local read = state:contact(group).impulse
      assert.is_true(read:equal(contact.pin_groups[1500][k]), group)
      assert.is_true(read:equal(state:contact(robot:group(group)).impulse), group)
    end
    assert.same({ 0, 0 }, contact.pin_groups[1500][3]:totable())
    assert.is_true((state:contact("pins").impulse - contact.pins[1500]):abs():max():item() < 1e-15)
    assert.matches('only pins; ask for "pins" or a pinned group, of which there are "left" and "right"',
      sentence(function() state:contact "middle" end))

    local function weighed(p)
      local held = world:rollout { steps = 10, contact = true, gravity = p.gravity, on_step = function() end }
      return held.state:contact("right").impulse:square():sum() + held.contact.pin_groups:slice(1, 1, 2):pow(2):sum()
    end
    derivative.check(weighed, { gravity = T.param(T.tensor { 0.3, -1 }) }, 1e-6)

    local two = beam "left"
    local both = cq.World { cells = { 64, 64 }, dx = 1 / 32, dt = DT, substeps = 4, two:at { 0.5, 0.5 },
      beam("left"):at { 0.5, 1.2 } }
    local last = both:rollout { steps = 1, contact = true }.state
    assert.matches('several robots have a pinned group "left"', sentence(function() last:contact "left" end))
    assert.same({ 2 }, last:contact(two:group "left").impulse:shape())
  end)

  it("of implicit steps carries the weight whatever the damping, and has a gradient by the damping", function()
    for _, formulation in ipairs { "updated", "total_lagrangian" } do
      for _, scheme in ipairs { "backward_euler", formulation == "total_lagrangian" and "midpoint" or nil } do
        local robot = cq.Robot {
          shape = cq.Shape.box { size = { 0.375, 0.125 }, spacing = 1 / 32 }, pins = "root",
          material = cq.Material.neo_hookean { young = 1e3, poisson = 0.3, density = 2 },
          groups = { root = function(x) return x < 0.07 end },
        }
        local world = cq.World { cells = { 16, 12 }, dx = 1 / 16, dt = 0.05, damping = 8, gravity = { 0, -G },
          precision = "float64", formulation = formulation, walls = cq.Boundary.floor { at = 0.25, mu = 0.3 },
          integrator = cq.Implicit { tolerance = 1e-11, adjoint_tolerance = 1e-11, scheme = scheme },
          robot:at { 0.25, formulation == "updated" and 0.3125 or 0.26 } }
        local last = world:rollout({ steps = 60, contact = true }).contact
        near(mass_of(world) * G * 0.05, (last.impulse[60][1] + last.pins[60])[2]:item(), 1e-3, formulation)
        derivative.check(function(p)
          local c = world:rollout({ steps = 6, contact = true, damping = p.damping, robot = world.robot:with {
            velocity = cq.tensor { { 0.4, -0.5 } } * cq.ones { robot.particle_count, 1 } } }).contact
          assert(c.tangential:abs():max():item() > 1e-5)
          return c.normal:square():sum() + c.pins:square():sum() + c.tangential:sum()
        end, { damping = T.param(8) }, 1e-6)
        world:close()
      end
    end
  end)

  it("changes no bit of a rollout, and is the same for any number of threads, budget and batch", function()
    local function run(threads, more)
      local world = block { walls = cq.Boundary.floor { at = 0.1, mu = 0.3 }, at = 0.12, threads = threads,
        precision = "float32" }
      local fields = { steps = 150, contact = true }
      for key, value in pairs(more or {}) do fields[key] = value end
      return world:rollout(fields)
    end
    local one, plain = run(1), run(1, { contact = false })
    assert.is_true(one.state:positions():equal(plain.state:positions()))
    assert.is_nil(plain.contact)
    local two = run(2)
    assert.is_true(one.contact_rows:equal(two.contact_rows))
    local three = run(2, { batch = 3 })
    assert.same({ 150, 3, 1, 2 }, three.contact.impulse:shape())
    for s = 1, 3 do assert.is_true(three.contact.impulse:slice(s, s, 2):squeeze(2):equal(one.contact.impulse)) end
    assert.same({ 3, 2 }, three.state:contact(1).center:shape())
  end)

  it("has gradients, as a tensor of the rollout and where states are seen", function()
    for dim = 2, 3 do
      for _, batch in ipairs { 1, 2 } do
        local world = scene.world(scene.robot { dim = dim, count = 3 })
        local function f(p)
          local roll = world:rollout {
            steps = 20, batch = batch, contact = true, friction = p.friction, gravity = p.gravity, memory = p.memory,
            robot = world.robot:with { density = p.density, velocity = p.velocity },
            controller = cq.Controller.open_loop(p.u),
            running = function(state)
              local c = state:contact(1)
              return 1e3 * c.normal + c.center:sum(-1) + 1e6 * c.tangential:square():sum(-1)
            end,
            record = function(state) return state:contact(1).impulse end,
          }
          local c = roll.contact
          return roll.running:sum() + 1e4 * roll.record:square():sum() + 500 * c.impulse:sum() + c.center:sum()
            + 1e5 * c.tangential:square():sum()
            + 100 * roll.state:contact(1).normal:sum() + roll.state:center(world.robot):sum()
        end
        local p = {
          friction = T.param(0.4), gravity = T.param(dim == 2 and { 0.3, -4 } or { 0.3, -4, 0.2 }),
          density = T.param(1.3),
          velocity = T.param(dim == 2 and { 0.2, -0.3 } or { 0.2, -0.3, 0.1 }), u = T.param(T.ones { 20, 2 } * 0.1),
        }
        derivative.check(f, p, 1e-6)
        -- every control step kept, or made again
        local _, kept = T.value_and_grad(f)(p)
        p.memory = "400 KiB"
        local _, again = T.value_and_grad(f)(p)
        for name, grad in pairs(kept) do assert.is_true(grad:equal(again[name]), name) end
      end
    end
  end)

  it("is refused in a sentence where there is nothing to read", function()
    local free = block { at = 0.3 }
    assert.matches("contact = true, but the world has no walls and no robot has pins",
      sentence(function() free:rollout { steps = 1, contact = true } end))
    local world = block { walls = { cq.Boundary.floor { at = 0.1, mu = 0.3, name = "ground" } } }
    local state = world:rollout { steps = 2, contact = true }.state
    assert.matches('by its number from 1 to 1 or its name, of which there are "ground", or "pins", got "grund"',
      sentence(function() state:contact "grund" end))
    assert.matches("got 2", sentence(function() state:contact(2) end))
    assert.matches("got nil", sentence(function() state:contact() end))
    assert.matches("no robot of this world has pins", sentence(function() state:contact "pins" end))
    local other = world:rollout { steps = 2 }.state
    assert.matches("give world:rollout, or world:settle, contact = true", sentence(function() other:contact(1) end))
    assert.matches("no control step was made before the first state", sentence(function()
      world:rollout { steps = 1, contact = true, on_step = function(s) s:contact(1) end }
    end))
    for said, fields in pairs { ["contact = true"] = { steps = 1 }, ['got "grund"'] = { steps = 1, contact = true } } do
      fields.on_step = function(s) s:contact "grund" end
      assert.matches(said, sentence(function() world:rollout(fields) end))
    end
    assert.matches('wall 2 %(floor%) has the name "a", which is that of wall 1', sentence(function()
      block { walls = { cq.Boundary.floor { at = 0.1, name = "a" }, cq.Boundary.floor { at = 0.05, name = "a" } } }
    end))
    assert.matches('has the name "pins", which is that of the pins',
      sentence(function() block { walls = cq.Boundary.floor { at = 0.1, name = "pins" } } end))
  end)
end)

describe("the name of a contact", function()
  it("is refused where a wall and a pinned group have it", function()
    local world = block { pins = "body", walls = cq.Boundary.floor { at = 0.1, name = "body" } }
    local roll = world:rollout { steps = 2, contact = true }
    local said = sentence(function() return roll.state:contact "body" end)
    assert(said:find('"body" is a wall and a pinned group; give world.walls[1] or the group', 1, true), said)
    assert.same({ 2 }, roll.state:contact(world.robot:group "body").impulse:shape())
    assert.same({ 2 }, roll.state:contact(world.walls[1]).impulse:shape())
  end)
end)

describe("walls whose velocity changes", function()
  local function floor(fields)
    fields.at, fields.mu = 0.1, 0.6
    return cq.Boundary.floor(fields)
  end
  local function ending(world, fields)
    fields.steps = 120
    return world:rollout(fields).state:positions()
  end

  it("go where a constant velocity takes them, by tensor, function, and motion", function()
    local world = block { walls = floor { velocity = { 0.1, 0.2 } } }
    local wanted = ending(world, {})
    local moving = block { walls = floor { motion = function(t) return { 0.1 * t, 0.2 * t } end } }
    local at_time = block { walls = floor { velocity = function() return T.tensor { 0.1, 0.2 } end } }
    local list = {
      tensor = ending(world, { wall_velocity = T.tensor { 0.1, 0.2 }:reshape { 1, 1, 2 }:expand { 120, 1, 2 } }),
      ["function"] = ending(world, { wall_velocity = function() return { 0.1, 0.2 } end }),
      motion = ending(moving, {}), velocity = ending(at_time, {}),
    }
    for name, got in pairs(list) do assert.is_true((got - wanted):abs():max():item() < 1e-11, name) end
    -- and the velocity of the world's walls is that of the next rollout again
    assert.is_true(ending(world, {}):equal(wanted))
  end)

  it("have gone as far as the scene that they are in, also where it went on or begins anew", function()
    local way = require("cq.rollout.wall_motion").way
    for name, motion in pairs { constant = { velocity = { 0, 0.5 } },
      called = { velocity = function() return { 0, 0.5 } end } } do
      local wall = cq.Boundary.half_plane { point = { 0, 0.05 }, normal = { 0, 1 }, velocity = motion.velocity }
      local world = block { walls = wall, at = 0.4 }
      local first = world:rollout { steps = 6, batch = 2 }
      local roll = world:rollout { from = first.state, scenes = { 0, 1 }, steps = 4 }
      near(0.5 * 10 * DT, way(roll.state, 1)[1][2], 1e-12, name .. " that went on")
      near(0.5 * 4 * DT, way(roll.state, 0)[1][2], 1e-12, name .. " that begins anew")
    end
  end)

  it("carry what they hold exactly as they move", function()
    local function motion(t) return { 0.02 * math.sin(9 * t), 0.01 * (1 - math.cos(7 * t)) } end
    local solid = cq.Boundary.obstacle { lower = { 0, 0 }, upper = { 1.5, 0.9 }, clamp = true, motion = motion }
    local world = block { gravity = { 0, 0 }, at = 0.11, walls = solid }
    local start
    local roll = world:rollout { steps = 200, on_step = function(state) start = start or state:positions() end }
    local way = roll.state:positions() - start
    for p = 1, world.particle_count, 17 do
      for i = 1, 2 do near(motion(200 * DT)[i], way:get(p, i), 1e-10, "way") end
    end
  end)

  it("have gradients, and the same bits for any number of threads, budget and batch", function()
    local function f_of(threads, batch, memory)
      local ball = cq.Boundary.sphere { center = { 0.43, 0.42 }, radius = 0.05, kind = "separate",
        velocity = { 0, -0.1 } }
      local world = block { walls = { floor {}, ball }, threads = threads, at = 0.105 }
      return function(p)
        local roll = world:rollout { steps = 40, batch = batch, memory = memory, wall_velocity = p.w, contact = true }
        return (roll.state:center(world.robot) * T.tensor { 1, 2 }):sum() + 10 * roll.contact.impulse:sum()
      end
    end
    local w = (T.arange(1, 40 * 4):reshape { 40, 2, 2 } * 0.3):sin() * 0.2
    local p = { w = T.param(w) }
    derivative.check(f_of(1, 1), p, 1e-6)
    local value, grad = T.value_and_grad(f_of(1, 1))(p)
    for _, other in ipairs { f_of(2, 1), f_of(2, 1, "600 KiB") } do
      local again, grads = T.value_and_grad(other)(p)
      assert.equal(value, again)
      assert.is_true(grads.w:equal(grad.w))
    end
    local each = { w = T.param(w:unsqueeze(1):expand { 2, 40, 2, 2 } * T.tensor { 1, 0.5 }:reshape { 2, 1, 1, 1 }) }
    local _, grads = T.value_and_grad(f_of(2, 2))(each)
    assert.is_true(grads.w[1]:equal(grad.w))
    local half = { w = T.param(w * 0.5) }
    local _, grad_half = T.value_and_grad(f_of(1, 1))(half)
    assert.is_true(grads.w[2]:equal(grad_half.w))
  end)

  it("have gradients by what a function of time is made of", function()
    local world = block { walls = floor {} }
    derivative.check(function(p)
      local roll = world:rollout { steps = 30,
        wall_velocity = function(t) return { p.a * math.cos(30 * t), p.a * p.b } end }
      return roll.state:center(world.robot):sum()
    end, { a = T.param(0.1), b = T.param(0.7) }, 1e-6)
  end)

  it("are refused in a sentence where their shape or numbers are wrong", function()
    local world = block { walls = { floor {}, cq.Boundary.floor { at = 0.05, axis = "x" } } }
    local function said(value, more)
      return sentence(function()
        local fields = { steps = 3, wall_velocity = value }
        for k, v in pairs(more or {}) do fields[k] = v end
        world:rollout(fields)
      end)
    end
    assert.matches("shape {2}, {2, 2} or {3, 2, 2} of control steps, got {4, 2, 2}", said(T.zeros { 4, 2, 2 }), 1, true)
    assert.matches("may be of 3 control steps or of 3 scenes; give {3, 3, 2, 2}",
      said(T.zeros { 3, 2, 2 }, { batch = 3 }), 1, true)
    assert.matches("wall_velocity must be finite", said(T.zeros { 3, 2, 2 } + 0 / 0), 1, true)
    assert.matches("wall_velocity must give {2} or {2, 2}, got {3}", said(function() return { 1, 2, 3 } end), 1, true)
    assert.matches("wall_velocity must give a list or a tensor, got nil", said(function() end), 1, true)
    assert.matches("not finite at time 0.004", said(function(t) return { t > 0 and 0 / 0 or 0, 0 } end), 1, true)
    assert.matches("the world has no walls",
      sentence(function() block { at = 0.3 }:rollout { steps = 1, wall_velocity = function() return { 0, 0 } end } end))
    assert.matches("give either velocity or motion, not both",
      sentence(function() floor { velocity = { 0, 1 }, motion = function() return { 0, 0 } end } end))
    assert.matches("motion moves the wall", sentence(function()
      floor { moves = false, motion = function() return { 0, 0 } end }
    end))
    local away = block { walls = floor { motion = function() return { 0, 1 } end } }
    assert.matches("must give zeros at time 0", sentence(function() away:rollout { steps = 1 } end))
  end)
end)
