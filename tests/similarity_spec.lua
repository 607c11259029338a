-- The default plan of topology is scaled by physics alone: a robot in other units is trained to the same design, bit
-- for bit. The factors of the units are powers of two, which round nothing.
local cq = require "cq"
local scratch = require "tests.scratch"

local function block(length, time, mass)
  return function(level)
    local dx, stress = 0.04 * level.coarsen * length, mass / time ^ 2
    local function cells(count) return math.floor(count / level.coarsen + 0.5) end
    local robot = cq.Robot {
      shape = cq.Shape.box { size = { 0.32 * length, 0.16 * length }, spacing = dx / 2 },
      material = cq.Material.neo_hookean { young = 5e4 * stress, poisson = 0.4, density = 1000 * mass / length ^ 2 },
      actuators = cq.Actuator.isotropic { count = 2, max = 5e3 * stress },
    }
    local world = cq.World {
      cells = { cells(30), cells(12) }, dx = dx, gravity = { 0, -9.8 * length / time ^ 2 }, substeps = "auto",
      dt = 0.004 * level.coarsen * time, walls = cq.Boundary.box { kind = "friction", mu = 0.8, inset = 3 * dx },
      robot:at { 0.24 * length, 3 * dx },
    }
    return {
      world = world, duration = 0.2 * time,
      design = cq.Topology { world = world, duration = 0.2 * time, connected = true },
      objective = { running = function(state) return -world.control_dt * state:velocity(robot)[1] end },
    }
  end
end

local function train(length, time, mass)
  local run, losses = cq.Experiment(block(length, time, mass)), {}
  run:optimize {
    plan = cq.Plan.topology { coarsen = 1, starts = 1 }:scaled(0.05), folder = scratch.open(),
    on_iteration = function(iteration, loss) losses[iteration] = loss / length end,
  }
  return losses, run.best.params.design
end

describe("cq.Plan.topology", function()
  after_each(scratch.close)

  it("trains the same body in millimetres and in metres, in other seconds and kilograms", function()
    local losses, design = train(1, 1, 1)
    assert.is_true(#losses > 30 and losses[#losses] < losses[1] - 0.01)
    for _, unit in ipairs { { 2 ^ -10, 2 ^ -5, 2 ^ -20 }, { 2 ^ 6, 2 ^ 3, 2 ^ 9 } } do
      local others, other = train(unpack(unit))
      assert.same(losses, others)
      for _, name in ipairs { "density", "layout", "sign", "magnitude" } do
        assert.same(design[name]:totable(), other[name]:totable())
      end
    end
  end)
end)
