-- collisions: surfaces of total Lagrangian steps that push each other apart: momentum, energy, rest, a body that meets
-- itself, gradients, bits, and mistakes. A cell, the density and Young's modulus are 1.
local cq = require "cq"
local T = require "cq.tensor"
local derivative = require "tests.derivative"
local sentence = (require "tests.sentence").of

local function block(name, size, fields)
  local count = {}
  for i, length in ipairs(size) do count[i] = 2 * length end
  fields = fields or {}
  return cq.Robot {
    name = name, shape = cq.Shape.box { name = name, size = size, count = count }, pins = fields.pins,
    material = cq.Material.neo_hookean { young = fields.young or 1, poisson = 0.3, density = 1,
      viscosity = fields.viscosity },
    actuators = fields.actuators,
  }
end

-- fields: robots with their places in front
local function world_of(fields)
  local def = { cells = { 48, 48 }, dx = 1, dt = 1.6, substeps = 8, formulation = "total_lagrangian",
    precision = "float64", collisions = true }
  for key, value in pairs(fields) do def[key] = value end
  return cq.World(def)
end

-- two blocks that fly at each other, the second at rest
local function flight(fields, velocity)
  local a, b = block("a", { 6, 6 }), block("b", { 6, 6 })
  fields[1], fields[2] = a:at { 8, 20 }, b:at { 16.3, 20.3 }
  local world = world_of(fields)
  return world, { world.robots[1]:with { velocity = velocity or { 0.2, 0 } }, world.robots[2] }
end

describe("bodies that collide by total Lagrangian steps", function()
  it("keep momentum to rounding and leave each other, at any step", function()
    local apart = {}
    for k, part in ipairs { 1, 4 } do
      local world, moving = flight { substeps = 8 * part }
      local n = world.robots[1].particle_count
      local state = world:rollout { steps = 40, robot = moving }.state
      local v = state:velocities()
      local first, second = v:slice(1, n, 1):mean(1), v:slice(n + 1, 2 * n, 1):mean(1)
      local sum = (first + second) - cq.tensor { 0.2, 0 }
      assert(sum:abs():max():item() < 1e-12, "momentum changed by " .. sum:abs():max():item())
      apart[k] = (second[1] - first[1]):item()
      assert(apart[k] > 0.1, "they leave each other with " .. apart[k])
      world:close()
    end
    assert.near(apart[1], apart[2], 0.02 * apart[1])
  end)

  it("lie on each other, with the weight of one on the floor through the other", function()
    local a, b = block("a", { 8, 4 }), block("b", { 6, 4 })
    local world = world_of { gravity = { 0, -0.002 }, damping = 0.05,
      walls = cq.Boundary.floor { at = 4, kind = "sticky" }, a:at { 20, 4 }, b:at { 21.2, 8.6 } }
    local roll = world:rollout { steps = 120, contact = true }
    local state, weight = roll.state, 0.002 * (8 * 4 + 6 * 4)
    local gap = state:center("b")[2]:item() - state:center("a")[2]:item() - 4
    assert(gap > -0.3 and gap < 0.5, "the gap is " .. gap)
    assert(state:velocities():abs():max():item() < 1e-3)
    local pushed = roll.contact.normal:slice(101, 120, 1):mean():item() / 1.6
    assert.near(weight, pushed, 0.03 * weight)
  end)

  -- a U whose arms swing together
  it("hold a body off itself", function()
    local shape = cq.Shape.box { name = "u", size = { 12, 14 }, count = { 24, 28 } }
      :difference(cq.Shape.box { at = { 4, 4 }, size = { 4, 10 } })
    local robot = cq.Robot {
      shape = shape, material = cq.Material.neo_hookean { young = 1, poisson = 0.3, density = 1 },
    }
    local function fall(collisions)
      local world = world_of { collisions = collisions, robot:at { 18, 18 } }
      local v, x = cq.zeros { robot.particle_count, 2 }, world.robot.position:data()
      for p = 0, robot.particle_count - 1 do
        local high = x[2 * p + 1] - 22
        if high > 0 then v:data()[2 * p] = (x[2 * p] < 24 and 0.03 or -0.03) * high end
      end
      return world:rollout { steps = 40, robot = world.robot:with { velocity = v } }.state
    end
    local said = sentence(function() return fall(false) end)
    assert(said:find("a body meets itself", 1, true) and said:find("collisions = true", 1, true), said)
    local f = fall(true):deformations()
    assert(f:abs():max():item() < 4)
  end)

  it("in space as in the plane", function()
    local a, b = block("a", { 3, 3, 3 }), block("b", { 3, 3, 3 })
    local world = world_of { cells = { 24, 16, 16 }, a:at { 5, 6, 6 }, b:at { 9.2, 6.4, 6.2 } }
    local n = a.particle_count
    local state = world:rollout { steps = 30,
      robot = { world.robots[1]:with { velocity = { 0.2, 0, 0 } }, world.robots[2] } }.state
    local v = state:velocities()
    local first, second = v:slice(1, n, 1):mean(1), v:slice(n + 1, 2 * n, 1):mean(1)
    assert((first + second - cq.tensor { 0.2, 0, 0 }):abs():max():item() < 1e-12)
    assert((second[1] - first[1]):item() > 0.08)
  end)

  -- energy of two blocks after they flew at each other, in shares of that before; number: the Courant number
  local function energy_kept(dim, stiffness, speed, number)
    local size = { 5, 5, dim == 3 and 5 or nil }
    local a, b = block("a", size), block("b", size)
    local function made(dt)
      local low, high = { 8, 9, dim == 3 and 9 or nil }, { 14.1, 9.5, dim == 3 and 9.5 or nil }
      local cells = { 40, 24, dim == 3 and 24 or nil }
      local world = world_of { cells = cells, dt = dt, substeps = 1, collisions = { stiffness = stiffness },
        a:at(low), b:at(high) }
      return world, world.robots[1]:with { velocity = { speed, 0, dim == 3 and 0 or nil } }
    end
    local world = made(0.1)
    local dt = 0.1 * number / (world.courant + speed * 0.1)
    world:close()
    local moving
    world, moving = made(dt)
    local state = world:rollout { steps = math.ceil((20 + 2 / speed) / dt), robot = { moving, world.robots[2] } }.state
    local energy = state:energy()
    world:close()
    return energy:item() / (5 ^ dim * speed ^ 2 / 2)
  end
  it("are stable up to a Courant number of 1, which counts their stiffness", function()
    for dim = 2, 3 do
      for _, stiffness in ipairs { 0.25, 0.5, 1, 2, 4, 8 } do
        for _, speed in ipairs { 0.04, 0.2 } do
          local kept = energy_kept(dim, stiffness, speed, 0.95)
          assert(kept > 0.85 and kept < 1.03, ("%dD, stiffness %g, speed %g: %g of the energy"):format(dim, stiffness, speed,
            kept))
        end
      end
    end
    local said = sentence(function() energy_kept(2, 4, 0.04, 1.1) end)
    assert(said:find("the Courant number is", 1, true), said)
    assert(said:find("a smaller stiffness of collisions", 1, true), said)
  end)

  it("are told to be moved apart where they overlap at the start", function()
    local one, other = block("a", { 6, 6 }), block("b", { 6, 6 })
    local world = world_of { one:at { 8, 20 }, other:at { 11, 20 } }
    local said = sentence(function() world:rollout { steps = 1 } end)
    assert(said:find("particle 1 of b comes near particle 73 of a, already at the start: move them apart", 1, true), said)
  end)

  it("with friction keep momentum, lose energy, and give each other an impulse across", function()
    local share = {}
    for k, friction in ipairs { 0, 0.1 } do
      local world, moving = flight({ collisions = { friction = friction } }, { 0.2, 0.25 })
      local n = world.robots[1].particle_count
      local state = world:rollout { steps = 40, robot = moving }.state
      local v = state:velocities()
      local first, second = v:slice(1, n, 1):mean(1), v:slice(n + 1, 2 * n, 1):mean(1)
      -- friction acts across a gap: it changes angular momentum, but not by much
      local first_state = world:rollout { steps = 0, robot = moving }.state
      local turn = (state:angular_momentum() - first_state:angular_momentum()):item()
      assert.near(0, turn / (36 * math.sqrt(0.2 ^ 2 + 0.25 ^ 2) * 6), friction > 0 and 0.05 or 2e-3)
      assert((first + second - cq.tensor { 0.2, 0.25 }):abs():max():item() < 1e-12)
      assert(state:energy():item() < 36 * (0.2 ^ 2 + 0.25 ^ 2) / 2)
      share[k] = second[2]:item() / second[1]:item()
      world:close()
    end
    assert.near(0.1, share[2] - share[1], 0.02)
  end)

  -- A block on another one that a floor holds: the mean acceleration along it from time 40 to 160, by least squares, in
  -- shares of gravity, and the way it has made.
  local function slide(friction, speed, slope, part)
    local base, top = block("a", { 56, 4 }, { viscosity = 0.5 }), block("b", { 6, 4 }, { viscosity = 0.5 })
    local g, dt = 0.002, 1.6
    local world = world_of { cells = { 72, 20 }, dt = dt, substeps = 8 * (part or 1), gravity = { slope * g, -g },
      collisions = { friction = friction }, walls = cq.Boundary.floor { at = 4, kind = "sticky" }, base:at { 6, 4 },
      top:at { 8.3, 8.48 } }
    local roll = world:rollout { steps = 100,
      robot = { world.robots[1], world.robots[2]:with { velocity = { speed, 0 } } },
      record = function(state) return state:velocity("b")[1] end }
    local v, t, tv, tt, sum, way = roll.record, 0, 0, 0, 0, 0
    for k = 1, 100 do way = way + dt * v[k]:item() end
    for k = 25, 100 do t, sum = t + k * dt / 76, sum + v[k]:item() / 76 end
    for k = 25, 100 do tv, tt = tv + (k * dt - t) * (v[k]:item() - sum), tt + (k * dt - t) ^ 2 end
    world:close()
    return tv / tt / g, way
  end
  -- rows of nodes that go over each other brake too, by a tenth of the weight
  it("slide by Coulomb's law, at any step, and stick where friction holds them", function()
    local free = slide(0, 0.2, 0)
    for part = 1, 2 do assert.near(-0.3, slide(0.3, 0.2, 0, part) - free, 0.015) end
    assert(free > -0.12 and free < 0, free)
    local _, kept = slide(0, 0, 0.1)
    assert(kept < 0.5, "rows of nodes hold what rests, too: it went " .. kept)
    local _, slipped = slide(0, 0, 0.5)
    local _, held = slide(0.8, 0, 0.5)
    local _, longer = slide(0.8, 0, 0.5, 4)
    assert(slipped > 8 and held < 2 and longer < held / 2, ("%g %g %g"):format(slipped, held, longer))
  end)

  it("have gradients that agree with central differences", function()
    local muscle = cq.Actuator.pressure { groups = { "a" }, axis = "y", max = 0.2 }
    local a, b = block("a", { 4, 4 }, { actuators = muscle }), block("b", { 4, 4 })
    for _, friction in ipairs { 0, 0.4 } do
      local world = world_of { cells = { 32, 24 }, collisions = { friction = friction }, a:at { 8, 10 },
        b:at { 12.3, 10.4 } }
      derivative.check(function(p)
        local first = world.robots[1]:with { young = p.young, velocity = p.v, position = p.x }
        local state = world:rollout { steps = 6, robot = { first, world.robots[2] },
          controller = cq.Controller.open_loop(p.u) }.state
        return state:positions():square():mean() + state:velocities():square():mean() * 10
      end, { u = 0.3 * cq.ones { 6, 1 }, young = cq.ones { a.particle_count }, x = world.robots[1].position,
        v = 0.15 * cq.ones { a.particle_count, 2 } }, 1e-6)
    end
  end)

  it("are the same bits with less memory, more threads, and checkpoints", function()
    local at = {}
    for k, fields in ipairs { { threads = 1 }, { threads = 2 }, { threads = 1, memory = "600 KiB" } } do
      local memory = fields.memory
      fields.memory = nil
      local world = flight(fields)
      local value, grads = T.value_and_grad(function(p)
        local moving = { world.robots[1]:with { velocity = p.v }, world.robots[2] }
        local state = world:rollout { steps = 20, robot = moving, memory = memory or "1 GiB" }.state
        return state:positions():square():sum() + state:velocities():square():sum()
      end)({ v = T.param(0.2 * cq.ones { world.robots[1].particle_count, 2 }) })
      at[k] = { value, grads.v }
      world:close()
    end
    for k = 2, 3 do
      assert.equal(at[1][1], at[k][1])
      assert(at[1][2]:equal(at[k][2]), "other bits of the gradient")
    end
  end)

  it("refuse what they are not for", function()
    local a, b = block("a", { 4, 4 }), block("b", { 4, 4 })
    local function said(fields)
      fields[1], fields[2] = a:at { 8, 10 }, b:at { 16, 10 }
      return sentence(function() return world_of(fields) end)
    end
    assert.equal('cq.World: collisions are of formulation = "total_lagrangian"; on the grid of the world bodies press '
      .. "on each other without them", said { formulation = "updated" })
    assert.equal("cq.World: collisions: stiffness must be a finite number above 0, got -1", said { collisions = { stiffness = -1 } })
    assert.equal("cq.World: collisions: friction must be a finite number at least 0, got -1",
      said { collisions = { friction = -1 } })
    assert(said { collisions = { rubbing = 1 } }:find("rubbing", 1, true))
    assert(said { collisions = 3 }:find("collisions", 1, true))
    local world = world_of { a:at { 8, 10 }, b:at { 9, 10.2 } }
    local inside = sentence(function() return world:rollout { steps = 1 } end)
    assert(inside:find("two bodies meet", 1, true), inside)
  end)
end)
