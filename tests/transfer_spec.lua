-- transfer: transfers in which motion that the grid does not resolve decays by time: what they keep, the same bits,
-- gradients through contact, and mistakes. A cell, the density and Young's modulus are 1 where nothing else is said.
local cq = require "cq"
local velocities = require("tests.scene").velocities
local same_bits = require "tests.same_bits"
local derivative = require "tests.derivative"
local sentence = require("tests.sentence").of

local WAVE = math.sqrt(0.7 / (1.3 * 0.4))     -- speed of waves, for a Poisson's ratio of 0.3
local HELD = 8                   -- engine steps of a control step at their usual length, a Courant number of 1/4

local function block(size, fields)
  local count = {}
  for i, length in ipairs(size) do count[i] = 2 * length end
  return cq.Robot {
    shape = cq.Shape.box { name = "block", size = size, count = count },
    material = cq.Material.neo_hookean { young = fields and fields.young or 1, poisson = 0.3, density = 1 },
    actuators = fields and fields.actuators,
  }
end

-- part: into how many parts the usual engine step is divided
local function world_of(robot, at, fields)
  local dt = 0.25 / WAVE / math.sqrt(fields.young or 1)
  return cq.World {
    cells = fields.cells or { 64, 64 }, dx = 1, dt = fields.dt or HELD * dt,
    substeps = fields.substeps or HELD * (fields.part or 1), transfer = fields.transfer or { decay = "auto" },
    precision = fields.precision or "float64", gravity = fields.gravity, walls = fields.walls,
    threads = fields.threads, robot:at(at),
  }
end

local function energy(state) return state:energy("block", "kinetic") + state:energy("block", "elastic") end

-- share of a mean over the first control steps that one over the last has, of each column
local function left(record)
  local steps, count = record:size(1), 5
  return (record:slice(steps - count + 1, steps, 1):mean(1) / record:slice(1, count, 1):mean(1)):totable()
end

-- of a free block: what is left of its energy and of its angular momentum
local function free(fields, velocity)
  local robot = block { 12, 8 }
  local world = world_of(robot, { 10, 12 }, { cells = { 32, 32 }, part = fields.part, transfer = fields.transfer,
    precision = fields.precision })
  local roll = world:rollout { steps = 60, robot = robot:with { velocity = velocities(robot, velocity) },
    record = function(state)
      return cq.concat { energy(state):reshape { 1 }, state:angular_momentum("block"):reshape { 1 } }
    end }
  world:close()
  return unpack(left(roll.record))
end

local function swings(x) return 0.03 * math.sin(math.pi * (x - 6) / 12), 0 end
local function turns(x, y) return 0.03 * math.sin(math.pi * (x - 6) / 12) - 0.02 * (y - 4), 0.02 * (x - 6) end

describe("a transfer that decays by time keeps", function()
  it("the energy of a vibration at any step, where APIC loses it by the step", function()
    local usual, fine = free({ part = 1, precision = "float32" }, swings), free({ part = 8 }, swings)
    assert(usual > 0.85 and usual < 1, usual)
    assert.near(usual, fine, 0.02)
    local apic, apic_fine = free({ part = 1, transfer = "apic" }, swings), free({ part = 8, transfer = "apic" }, swings)
    assert(apic - apic_fine > 0.1, ("%.3f and %.3f"):format(apic, apic_fine))
  end)

  it("the angular momentum of a body that turns and swings", function()
    for _, part in ipairs { 1, 8 } do
      local kept, turn = free({ part = part }, turns)
      assert(kept > 0.95 and kept < 1.01, kept)
      assert.near(1, turn, 1e-3)
    end
  end)

  it("more of it by a smaller rate, and by a large one does as APIC", function()
    local slow, fast = free({ transfer = { decay = 0.03 } }, swings), free({ transfer = { decay = 0.6 } }, swings)
    assert(slow > fast + 0.005, ("%.4f and %.4f"):format(slow, fast))
    assert.near(free({ transfer = "apic" }, swings), free({ transfer = { decay = 200 } }, swings), 1e-9)
  end)

  it("the height of a bounce", function()
    local risen = {}
    for k, part in ipairs { 1, 8 } do
      local robot = block { 12, 12 }
      local world = world_of(robot, { 26, 10 }, { part = part, gravity = { 0, -4e-4 },
        walls = cq.Boundary.floor { at = 4, kind = "separate" } })
      local heights = world:rollout { steps = 225, robot = robot, record = function(state)
        return state:center("block")[2]
      end }
      local low, high = math.huge, 0
      for _, y in ipairs(heights.record:totable()) do
        if y < low then low, high = y, 0 end
        high = math.max(high, y)
      end
      risen[k] = (high - low) / (16 - low)
      world:close()
    end
    assert(risen[1] > 0.83 and risen[1] < 0.9, risen[1])
    assert.near(risen[1], risen[2], 0.02)
  end)
end)

-- ---- gradients, bits ------------------------------------------------------------------------------------------------

local function floor_world(robot, fields)
  local dim = robot.dim
  return world_of(robot, dim == 2 and { 5, 4.2 } or { 5, 4.2, 5 }, {
    young = 40, dt = 0.1, substeps = 5, cells = dim == 2 and { 20, 20 } or { 16, 16, 16 }, threads = fields.threads,
    gravity = dim == 2 and { 0.1, -1 } or { 0.1, -1, 0 }, precision = fields.precision,
    walls = cq.Boundary.floor { at = 4, kind = "friction", mu = 0.3 },
  })
end

local function actuated(size)
  return block(size, { young = 40, actuators = cq.Actuator.pressure { groups = { "block" }, axis = "y", max = 4 } })
end

describe("gradients of a transfer that decays by time", function()
  for _, size in ipairs { { 6, 5 }, { 3, 4, 3 } } do
    it(("agree with central differences in %dD, through contact"):format(#size), function()
      local robot = actuated(size)
      local world = floor_world(robot, {})
      local n, dim = robot.particle_count, robot.dim
      derivative.check(function(p)
        local state = world:rollout { steps = 8, controller = cq.Controller.open_loop(p.u), robot = robot:with {
          young = p.young, density = p.density, position = p.position, velocity = p.velocity,
        } }.state
        local x, v, f = state:positions(), state:velocities(), state:deformations()
        return x:mean() + 0.3 * (v * v):mean() + 0.2 * (f * f):mean()
      end, {
        u = 0.3 * cq.ones { 8, 1 }, young = 40 * cq.ones { n }, density = cq.ones { n },
        position = world.robot.position, velocity = 0.1 * cq.ones { n, dim },
      }, 1e-6)
    end)
  end

  it("are the same bits with less memory, more threads and in a batch", function()
    local robot = actuated { 40, 40 }
    same_bits(function(threads)
      return world_of(robot, { 10, 4.2 }, { young = 40, cells = { 64, 64 }, dt = 0.1, substeps = 5,
        threads = threads, gravity = { 0, -1 }, walls = cq.Boundary.floor { at = 4, kind = "friction", mu = 0.3 } })
    end, robot, "12 MiB")
  end)
end)

describe("a transfer", function()
  local function mistaken(fields)
    return sentence(function()
      local def = { cells = { 24, 24 }, dx = 1, dt = 0.01, transfer = { decay = 1 } }
      for key, value in pairs(fields) do def[key] = value end
      def[1] = block({ 4, 4 }):at { 5, 5 }
      return cq.World(def)
    end)
  end

  it("tells the rate that it takes", function()
    local robot = block({ 4, 4 }, { young = 4 })
    for given, wanted in pairs { [0.25] = 0.25, auto = 0.1 * 2 * WAVE } do
      local world = world_of(robot, { 10, 10 }, { transfer = { decay = given } })
      assert.near(wanted, world.residual_decay, 1e-12)
      world:close()
    end
    assert.equal(0, world_of(robot, { 10, 10 }, { transfer = "apic" }).residual_decay)
    local drop = cq.Robot { shape = cq.Shape.box { name = "drop", size = { 4, 4 }, spacing = 0.5 },
      material = cq.Material.fluid { bulk = 9, density = 1 } }
    assert.near(2 * 3, world_of(drop, { 10, 10 }, {}).residual_decay, 1e-12)
    assert.near(0.1 * 2 * WAVE, world_of(robot, { 10, 10 }, { transfer = {} }).residual_decay, 1e-12)
  end)

  it("that decays by time is refused where it is not there", function()
    assert.equal("cq.World: transfer = { decay } is of explicit steps; leave out the integrator, or transfer",
      mistaken { integrator = cq.Implicit {} })
    assert.equal("cq.World: transfer = { decay } is of steps on the grid of the world, and total Lagrangian steps have "
      .. 'no transfers; leave it out, or take formulation = "updated"', mistaken { formulation = "total_lagrangian" })
    assert.equal('cq.World: transfer = { decay } is there on the CPU only; take device = "cpu", or leave transfer out',
      mistaken { device = "cuda" })
  end)

  it("is apic or a table with a rate", function()
    assert.equal('cq.World: transfer: decay must be a finite number above 0, or "auto", got 0',
      mistaken { transfer = { decay = 0 } })
    assert.equal("cq.World: transfer: unknown field rate; allowed are decay", mistaken { transfer = { rate = 1 } })
    assert.equal('cq.World: transfer must be "apic", or a table, got "flip"', mistaken { transfer = "flip" })
  end)
end)
