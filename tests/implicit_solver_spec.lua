-- implicit_solver: what the solver of implicit steps takes, and where it must go on.
local cq = require "cq"
local T = require "cq.tensor"

local DX = 1 / 16

describe("the solver of implicit steps", function()
  it("settles what is far in space by a coarse lattice, in half the products", function()
    local function gradient(integrator)
      local scene = require "scenes.falling_block" { dim = 3, side = 10, cells = { 24, 24, 24 }, young = 1e5,
        step = 2e-3, floor = "separate", gap = 0.5 }
      scene.world.precision, scene.world.integrator = "float64", integrator
      local world = cq.World(scene.world)
      local _, grad = T.value_and_grad(function(v)
        return world:rollout({ steps = 2, robot = world.robot:with { velocity = v } }).state:center()[2]
      end)(T.param { 0.3, -1, 0.3 })
      world:close()
      return grad
    end
    -- the adjoint takes 99 and 91; by blocks of nodes alone 177 and 149, and so it does not come to its end
    local found = gradient(cq.Implicit { tolerance = 1e-6, linear_iterations = 140 })
    local exact = gradient(cq.Implicit { tolerance = 1e-9, adjoint_tolerance = 1e-11 })
    assert.is_true((found - exact):abs():max():item() < 1e-3 * exact:abs():max():item())
  end)

  it("takes no more iterations and products in space than it did, by a factor of 2", function()
    local scene = require "scenes.falling_block" { dim = 3, side = 10, cells = { 24, 24, 24 }, young = 1e5,
      step = 2e-3, floor = "separate", gap = 0.5 }
    scene.world.precision, scene.world.integrator = "float64", cq.Implicit { tolerance = 1e-6 }
    local landing_block = cq.World(scene.world)
    local landed = landing_block:rollout { steps = 2, robot = landing_block.robot:with { velocity = { 0.3, -1, 0.3 } } }
    local bar = cq.Robot {
      shape = cq.Shape.box { size = { 10 * DX, 3 * DX, 3 * DX }, spacing = DX / 2 }, pins = "root",
      groups = { root = function(x) return x < 2 * DX end },
      material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3, density = 1 },
    }
    local hanging = cq.World { cells = { 18, 12, 12 }, dx = DX, dt = 0.1, gravity = { 0, -5, 0 }, precision = "float64",
      integrator = cq.Implicit { tolerance = 1e-6, linear_iterations = 1000 }, bar:at { 4 * DX, 5 * DX, 5 * DX } }
    local state, settled = hanging:settle()
    local function held(name, newton, linear, got)
      local n, l = got.solver.newton:sum():item(), got.solver.linear:sum():item()
      assert.is_true(n <= 2 * newton and l <= 2 * linear, ("%s: %d iterations, %d products"):format(name, n, l))
    end
    held("landing", 22, 369, landed)
    held("settling", 6, 829, settled)
    assert.near(0.40594, state:center()[2]:item(), 1e-5)
  end)

  -- A body in a narrow box with friction, where Newton's method converges slowly: from a residual a little above the
  -- tolerance the next linear system would be solved to less than its rounding.
  it("solves no linear system to less than what rounding leaves", function()
    local robot = cq.Robot {
      shape = cq.Shape.box { size = { DX, 2 * DX, 1.5 * DX }, spacing = DX / 2 },
      material = cq.Material.neo_hookean { young = 14, poisson = 0.3, density = 0.8 },
    }
    local world = cq.World { cells = { 12, 12, 12 }, dx = DX, dt = 0.01, gravity = { -2, -3, 1 }, precision = "float64",
      integrator = cq.Implicit { tolerance = 1e-13, newton_iterations = 200 },
      walls = {
        cq.Boundary.box { kind = "friction", mu = 0.6, lower = { 3 * DX, 3 * DX, 3 * DX },
          upper = { 4.5 * DX, 6 * DX, 5 * DX } },
        cq.Boundary.height_field { kind = "slip", spacing = 2 * DX, origin = 2 * DX,
          heights = { { 2 * DX, 3 * DX, 2 * DX }, { 3 * DX, 2 * DX, 3 * DX } } },
        cq.Boundary.sphere { kind = "separate", center = { 3 * DX, 5 * DX, 2 * DX }, radius = 1.5 * DX,
          velocity = { 0.02, -0.5, 0.1 } },
      },
      robot:at { 3.2 * DX, 3.2 * DX, 3.2 * DX },
    }
    local roll = world:rollout { steps = 3, robot = robot:with { velocity = { -0.3, -0.5, 0.5 } } }
    -- all of a step's iterations together; linear_iterations, 5,000 of each, is where one stands still
    assert.is_true(roll.solver.linear:max():item() < 500)
    assert.is_true(roll.solver.residual:max():item() < 1e-13)
    world:close()
  end)

  -- The table under a ball begins to go: its nodes may leave the wall, while Newton's step pushes them on. Walls then
  -- stop so much of it that the rest leads up, however short.
  it("goes on where walls leave nothing of Newton's step that leads down", function()
    local scene = require "scenes.gripper" { dim = 3, spacing = 2 }
    local rows = {}
    for k = 1, 15 do
      local part = math.min(1, math.ceil(k / 3) / 3)
      rows[k] = { part, part, part }
    end
    local roll = cq.World(scene.world):rollout {
      steps = 15, controller = cq.Controller.open_loop { steps = 15, init = rows },
    }
    assert.is_true(roll.solver.residual:max():item() <= 1e-3 and roll.solver.newton:max():item() <= 40)
  end)
end)
