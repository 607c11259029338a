-- material: laws that flow, and what may stand beside a law.
local cq = require "cq"

local function refused(words, make)
  local fine, problem = pcall(make)
  assert.is_false(fine)
  assert.truthy(problem:find(words, 1, true), problem)
end

local base = cq.Material.neo_hookean { young = 10, poisson = 0.4 }

local function world_of(material)
  return cq.World {
    cells = { 32, 32 }, dx = 1 / 32, dt = 4e-3, substeps = "auto", precision = "float64", gravity = { 0, -1 },
    walls = cq.Boundary.box { kind = "slip" },
    cq.Robot { shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 1 / 64 }, material = material }:at { 0.4, 0.15 },
  }
end

describe("cq.Material", function()
  it("takes a viscosity beside any law", function()
    local world = world_of(cq.Material.corotated { young = 10, poisson = 0.3, viscosity = 0.02 })
    assert.equal(0.02, world.robot.viscosity:data()[0])
    local loss, gradient = cq.value_and_grad(function(p)
      return world:rollout({ steps = 20, robot = world.robot:with { viscosity = p.viscosity } }).state:center("block")[2]
    end)({ viscosity = cq.tensor(0.02) })
    assert.is_true(loss < 0.25 and gradient.viscosity:item() ~= 0)
    world:close()
  end)

  it("puts Maxwell branches beside a hyperelastic law", function()
    local material = cq.Material.viscoelastic { base = base, modulus = { 0.5, 0.25 }, time = { 0.1, 1 } }
    assert.truthy(tostring(material):find("cq.Material.viscoelastic { branch_modulus_1 0.5, relaxation_time_1 0.1, branch_modulus_2 0.25", 1, true))
    local world = world_of(material)
    assert.equal(1, world.robot.relaxation_time_2:data()[5])
    assert.is_true(world.courant > 0 and world:rollout({ steps = 5 }).steps == 5)
    world:close()
  end)

  it("refuses branches that do not fit", function()
    refused("modulus has 2 numbers and time 1; each branch needs both", function()
      cq.Material.viscoelastic { base = base, modulus = { 1, 2 }, time = { 1 } }
    end)
    refused("at most 3 Maxwell branches", function()
      cq.Material.viscoelastic { base = base, modulus = { 1, 1, 1, 1 }, time = { 1, 1, 1, 1 } }
    end)
    refused("base is a cq.Material.fluid; Maxwell branches stand beside neo_hookean", function()
      cq.Material.viscoelastic { base = cq.Material.fluid { bulk = 10 }, modulus = { 1 }, time = { 1 } }
    end)
    refused("modulus must be a list of at least 1, each a finite number at least 0", function()
      cq.Material.viscoelastic { base = base, modulus = { -1 }, time = { 1 } }
    end)
  end)

  it("refuses a near-incompressibility that a law does not have", function()
    refused("incompressible", function() cq.Material.snow { young = 10, poisson = 0.2, incompressible = 2 } end)
  end)

  it("counts what stiffens and damps in the Courant number", function()
    local plain, damped = world_of(base), world_of(cq.Material.neo_hookean { young = 10, poisson = 0.4, viscosity = 0.1 })
    local branched = world_of(cq.Material.viscoelastic { base = base, modulus = { 2 }, time = { 0.1 } })
    local per_step = function(world) return world.courant * world.substeps end
    assert.is_true(per_step(damped) > 1.2 * per_step(plain) and per_step(branched) > 1.2 * per_step(plain))
  end)
end)

describe("a column of fluid", function()
  it("comes to rest under its own weight", function()
    local world = cq.World {
      cells = { 20, 32 }, dx = 1 / 32, dt = 0.02, substeps = "auto", precision = "float64", gravity = { 0, -1 },
      walls = cq.Boundary.box { kind = "slip" },
      cq.Robot {
        shape = cq.Shape.box { name = "water", size = { 14 / 32, 0.4 }, spacing = 1 / 64 }, material = cq.Material.fluid { bulk = 20, viscosity = 0.05 },
      }:at { 3 / 32, 3 / 32 },
    }
    local state = world:rollout({ steps = 250 }).state
    -- under its own weight a column of height h sinks by u(z) = g rho / K (h z - z^2 / 2), its centre by h^2 g rho / (3 K)
    local y = state:center("water")[2]:item()
    assert.is_true(math.abs(y - (3 / 32 + 0.2 - 0.4 ^ 2 / 60)) < 4e-4, "the centre is at " .. tostring(y))
    assert.is_true(state:velocity("water"):abs():max():item() < 0.02)
    world:close()
  end)
end)
