-- water: liquids at rest, in waves and around bodies, and how a liquid is set up.
local cq = require "cq"
local mistake = require "tests.sentence"
local process = require "tests.process"
local tank = require "scenes.water_tank"
local says = mistake.fails

-- ---- at rest --------------------------------------------------------------------------------------------------------

describe("robot:hydrostatic", function()
  local function water(material, shape)
    return cq.Robot { name = "water", shape = shape or cq.Shape.box { size = { 0.25, 0.5 }, spacing = 1 / 32 },
      material = material or cq.Material.fluid { bulk = 100, density = 1 } }
  end

  -- the pressure of a particle is the weight of what stands above it
  it("has the weight of the column above as pressure, for any equation of state", function()
    for _, exponent in ipairs { 1, 2, 7 } do
      local robot = water(cq.Material.fluid { bulk = 20, exponent = exponent, density = 2 })
      local still = robot:at { 0.3, 0.2 }:hydrostatic { gravity = { 0, -1 } }
      local world = cq.World {
        cells = { 32, 32 }, dx = 1 / 32, dt = 1e-2, substeps = "auto", precision = "float64", still,
      }
      local state = world:rollout({ steps = 0 }).state
      local stress, volume, x = state:gather(robot, "cauchy"), still.values.volume.tensor, state:positions()
      local above = 0                          -- the last column of particles, from its highest one
      for p = robot.particle_count, robot.particle_count - 15, -1 do
        local weight = 2 * volume:get(p) / (1 / 32)
        assert.near(above + weight / 2, -stress:get(p, 1, 1), 2e-4 * 0.5 * 2)
        assert.near(0, stress:get(p, 1, 2), 1e-12)
        above = above + weight
      end
      assert(x:get(robot.particle_count, 2) > 0.68)
      world:close()
    end
  end)

  it("keeps the volume that a particle has in space, and leaves solids and what is dry alone", function()
    local robot = cq.Robot {
      shape = cq.Shape.box { name = "low", size = { 0.25, 0.25 } }
        + cq.Shape.box { name = "high", at = { 0, 0.25 }, size = { 0.25, 0.25 } },
      spacing = 1 / 16, material = { low = cq.Material.fluid { bulk = 50 },
        high = cq.Material.neo_hookean { young = 10, poisson = 0.3 } },
    }
    local still = robot:hydrostatic { gravity = { 0, -2 }, surface = 0.125 }
    mistake.refuses(function() robot:stretched({ axis = "y", factor = 2 }):hydrostatic { gravity = { 0, -2 } } end,
      "give surface, the height of the liquid: the robot's particles are no longer those of its shape")
    local volume, f = still.values.volume.tensor, still.values.deformation.tensor
    for p = 1, robot.particle_count do
      local y, side = robot.position:get(p, 2), f:get(p, 1, 1)
      assert.near(robot.volume:get(p), volume:get(p) * side * f:get(p, 2, 2), 1e-12)
      assert(y < 0.125 and side < 1 or y > 0.125 and side == 1, y)
    end
  end)

  it("keeps that volume where it is brought to rest again, and the deformation of solids", function()
    local function body(size)
      return cq.Robot {
        shape = cq.Shape.box { name = "low", size = size } + cq.Shape.box { name = "high", at = size, size = size },
        spacing = 1 / 8, material = { low = cq.Material.fluid { bulk = 50 },
          high = cq.Material.neo_hookean { young = 10, poisson = 0.3 } },
      }
    end
    for _, robot in ipairs { body { 0.25, 0.25 }, body { 0.25, 0.25, 0.25 } } do
      local gravity, factor = { 0, -1, robot.dim == 3 and 0 or nil }, 2 * cq.eye(robot.dim)
      local stretched = robot:with { deformation = { high = factor } }
      local still = stretched:hydrostatic { gravity = gravity }
      local again = still:hydrostatic { gravity = gravity }
      local other = robot:with { bulk = 80 }:hydrostatic { gravity = gravity }
      local through = still:with { bulk = 80 }:hydrostatic { gravity = gravity }
      assert.is_true(again.volume:close(still.volume, 1e-13))
      assert.is_true(through.volume:close(other.volume, 1e-13))
      assert.is_false(still.volume:close(other.volume, 1e-4))
      local last = robot.particle_count
      assert.is_true(again.values.deformation.tensor[last]:equal(factor))
      assert.equal(robot.volume:get(last), again.volume:get(last))
    end
    local soft = water():at { 0.1, 0.1 }:hydrostatic { gravity = { 0, -1 } }
    assert.is_true(cq.check_gradient(function(p)
      return (soft:with { bulk = p }:hydrostatic({ gravity = { 0, -1 } }).volume * 8):square():sum()
    end, cq.tensor(90)).ok)
  end)

  it("has gradients to density and bulk modulus", function()
    local robot = water():at { 0.1, 0.1 }
    local result = cq.check_gradient(function(p)
      local still = robot:with { bulk = p.bulk, density = p.density }:hydrostatic { gravity = { 0, -1 } }
      return still.values.deformation.tensor:square():sum() + (still.values.volume.tensor * 8):sum()
    end, { bulk = cq.tensor(90), density = cq.tensor(1.2) })
    assert.is_true(result.ok, tostring(result))
  end)

  it("says what is wrong", function()
    local robot = water()
    says("gravity is zero", function() robot:hydrostatic { gravity = { 0, 0 } } end)
    says("gravity has 3 components, the robot is 2D", function() robot:hydrostatic { gravity = { 0, 0, -1 } } end)
    says("no liquid lies below the surface", function() robot:hydrostatic { gravity = { 0, -1 }, surface = -1 } end)
    says("compressed by 19 % of its volume, at most 5 % are allowed: give it a bulk modulus of 388 or more", function()
      robot:hydrostatic { gravity = { 0, -40 } }
    end)
    says("water has no cq.Material.fluid", function()
      water(cq.Material.neo_hookean { young = 1, poisson = 0.3 }):hydrostatic { gravity = { 0, -1 } }
    end)
  end)
end)

describe("a liquid in a wall", function()
  local function world(material, deep)
    return cq.World {
      cells = { 16, 16 }, dx = 1 / 16, dt = 1e-2, substeps = "auto", walls = cq.Boundary.box {},
      cq.Robot { shape = cq.Shape.box { size = { 0.25, 0.25 }, spacing = 1 / 32 }, material = material }:at {
        (3 - deep) / 16, (3 - deep) / 16 },
    }
  end
  it("may start half a cell within, where the grid holds it, and no deeper", function()
    world(cq.Material.fluid { bulk = 10 }, 0.5):close()
    says("overlaps wall 1 (box)", function() world(cq.Material.fluid { bulk = 10 }, 0.8) end)
    says("overlaps wall 1 (box)", function() world(cq.Material.neo_hookean { young = 10, poisson = 0.3 }, 0.5) end)
  end)
end)

-- ---- pressures and volumes ------------------------------------------------------------------------------------------

describe("a tank of water", function()
  it("may be emptied, and a world that has no liquid smooths no pressure", function()
    local scene = tank { across = 12, pressure_smoothing = 50 }
    local world = cq.World(scene.world)
    local block = cq.Robot { shape = cq.Shape.box { size = { 0.25, 0.25 }, spacing = 0.0625 },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 } }:at { 0.6, 0.4 }
    world:with_robots(block):close()
    world:close()
    scene.world[1] = block
    says("pressure_smoothing has no effect, no robot has a liquid (cq.Material.fluid); leave it out",
      function() cq.World(scene.world) end)
  end)

  it("is at rest from the first step on", function()
    local scene = tank { across = 12, precision = "float64", pressure_smoothing = 0 }
    local world = cq.World(scene.world)
    local state = world:rollout({ steps = 100 }).state
    local speed, worst = state:velocities():abs():max():item(), scene.worst_pressure(state, scene)
    -- what is left is at the surface, where stencils end: a tenth of a cell
    assert(speed < 1e-5 and worst < 0.01, speed .. " " .. worst)
    world:close()
  end)

  it("comes to the pressure of each depth after it was shaken, where volumes are averaged", function()
    local worst = {}
    for _, rate in ipairs { 0, 20 } do
      local scene = tank { across = 24, damping = 1, pressure_smoothing = rate }
      local world = cq.World(scene.world)
      local still = world.robot.values
      -- all of the column starts without pressure, and falls into it
      local slack = world.robot:with { deformation = cq.eye(2), volume = still.volume.tensor }
      worst[rate] = scene.worst_pressure(world:rollout({ robot = slack, steps = 400 }).state, scene)
      world:close()
    end
    assert(worst[20] < 0.03 and worst[0] > 0.1, worst[0] .. ", averaged " .. worst[20])
  end)

  it("sloshes as linear theory has it, stiff or not, and keeps its volume", function()
    for _, stiffness in ipairs { 50, 400 } do
      local scene = tank { across = 16, stiffness = stiffness }
      local world = cq.World(scene.world)
      local omega, velocity = scene.mode(scene, world.robot, 0.05)
      local before, passed = nil, {}
      local roll = world:rollout {
        robot = world.robot:with { velocity = velocity }, steps = math.ceil(3.3 * math.pi / omega / 0.02),
        on_step = function(state)
          local off = state:center(scene.water)[1]:item() - scene.corner[1] - scene.length / 2
          if state.time > 1 / omega and before * off <= 0 then
            passed[#passed + 1] = state.time - 0.02 * off / (off - before)
          end
          before = off
        end,
      }
      local measured = 2 * math.pi / (passed[3] - passed[1])
      assert(math.abs(measured / omega - 1) < 0.05, measured / omega)
      local volume = world.robot.values.volume.tensor
      local function total(state) return (state:gather(scene.water, "jacobian") * volume):sum():item() end
      assert(math.abs(total(roll.state) / total(world:rollout({ steps = 0 }).state) - 1) < 1e-3)
      world:close()
    end
  end)

  it("keeps the sum of volumes when they are averaged, and the same gradients for any number of threads", function()
    local scene = tank { across = 12, precision = "float64", pressure_smoothing = 50, kind = "slip" }
    local found = {}
    for _, threads in ipairs { 1, 2 } do
      scene.world.threads = threads
      local world = cq.World(scene.world)
      local _, gradient = cq.value_and_grad(function(p)
        local moving = world.robot:with { velocity = p.v:expand { world.robot.particle_count, 2 } }
        return world:rollout({ robot = moving, steps = 10 }).state:center(scene.water)[1]
      end)({ v = cq.tensor { 0.1, 0 } })
      found[threads] = gradient.v
      world:close()
    end
    assert.is_true(found[1]:equal(found[2]))
    assert(found[1]:get(1) > 0.01)
  end)
end)

describe("a body in water", function()
  it("leaves room around it by its offset", function()
    local disc = cq.Shape.disc { at = { 0.5, 0.5 }, radius = 0.2, spacing = 0.01 }
    local grown = disc:grown(0.05)
    assert.near(math.pi * 0.25 ^ 2, grown:sample { spacing = 5e-3 }.volume_total, 2e-3)
    assert.is_true(grown:contains(0.5, 0.745) and not grown:contains(0.5, 0.755))
    local room = cq.Shape.box { size = { 1, 1 }, spacing = 0.01 } - grown
    assert.near(1 - math.pi * 0.25 ^ 2, room:sample().volume_total, 2e-3)
    -- a ring keeps its hole, a ball grows on all sides
    local ring = (disc - cq.Shape.disc { at = { 0.5, 0.5 }, radius = 0.1 }):grown(0.05)
    assert.is_false(ring:contains(0.5, 0.5))
    assert.is_true(ring:contains(0.5, 0.55 + 0.01))
    local ball = cq.Shape.sphere { radius = 0.2 }:grown(0.1)
    assert.is_true(ball:contains(0.17, 0.17, 0.17) and not ball:contains(0.18, 0.18, 0.18))
    says("shape:grown: distance must be a finite number above 0", function() disc:grown(0) end)
  end)

  it("floats with its draught", function()
    local dx = 1 / 16
    local side = 4 * dx
    local shape = cq.Shape.box { name = "block", at = { 0.5 - side / 2, 0.5 - side / 2 }, size = { side, side },
      spacing = dx / 2 }
    local block = cq.Robot { shape = shape,
      material = cq.Material.neo_hookean { young = 20, poisson = 0.3, density = 0.5 } }
    local scene = tank { across = 16, height = 1, without = shape, bodies = { block }, damping = 0.5 }
    local world = cq.World(scene.world)
    local state = world:rollout({ steps = 300 }).state
    assert(math.abs(state:center("block")[2]:item() - scene.corner[2] - 0.5) < 0.3 * dx)
    -- twice as heavy as water it sinks
    local heavy = world:rollout({ robot = world.robots[2]:with { density = 2 }, steps = 300 }).state
    assert(heavy:center("block")[2]:item() - scene.corner[2] < 0.5 - 2 * dx)
    world:close()
  end)
end)

-- ---- examples -------------------------------------------------------------------------------------------------------

describe("examples of water", function()
  local function printed(name, ...)
    local folder = process.folder()
    local words = { "examples/" .. name .. ".lua", "--out", folder, "--quiet", "--threads", "1", ... }
    local result = process.cqlua(words)
    process.remove(folder)
    assert(result.code == 0 and result.err == "", result.err)
    return result.out
  end

  it("print what they are about", function()
    local out = printed("sloshing", "--cells", "20", "--render", "no")
    local worst, off, volume, height = out:match "within (%S+) %%\n.*: (%S+) %%\n.* has (%S+) of .* (%S+) of its height"
    assert(tonumber(worst) < 2 and math.abs(tonumber(off)) < 5, out)
    assert.near(1, tonumber(volume), 1e-3)
    assert.near(1, tonumber(height), 0.01)
    assert(tonumber(printed("floating_block", "--cells", "16", "--render", "no"):match "(%S+) cells apart") < 1)
  end)

  it("have gradients of a paddle that differences find too", function()
    local out = printed("paddle", "--check", "--cells", "12")
    assert.equal(2, select(2, out:gsub(", right\n", "")), out)
  end)
end)
