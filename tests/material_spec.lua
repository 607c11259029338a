-- material: laws that flow, and what may stand beside a law.
local cq = require "cq"
local elastomers = require "cq.material.elastomer"
local process = require "tests.process"
local stretch = require "scenes.stretch"
local tensile = require "tests.tensile"

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
    cq.Robot { shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 1 / 64 },
      material = material }:at { 0.4, 0.15 },
  }
end

describe("cq.Material", function()
  it("takes a viscosity beside any law", function()
    local world = world_of(cq.Material.corotated { young = 10, poisson = 0.3, viscosity = 0.02 })
    assert.equal(0.02, world.robot.viscosity:data()[0])
    local loss, gradient = cq.value_and_grad(function(p)
      return world:rollout({ steps = 20, robot = world.robot:with { viscosity = p.viscosity } }).state:center(
        "block")[2]
    end)({ viscosity = cq.tensor(0.02) })
    assert.is_true(loss < 0.25 and gradient.viscosity:item() ~= 0)
    world:close()
  end)

  it("puts Maxwell branches beside a hyperelastic law", function()
    local material = cq.Material.viscoelastic { base = base, modulus = { 0.5, 0.25 }, time = { 0.1, 1 } }
    assert.truthy(tostring(material):find(
      "cq.Material.viscoelastic { branch_modulus_1 0.5, relaxation_time_1 0.1, branch_modulus_2 0.25", 1, true))
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
    local plain, damped = world_of(base),
      world_of(cq.Material.neo_hookean { young = 10, poisson = 0.4, viscosity = 0.1 })
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
        shape = cq.Shape.box { name = "water", size = { 14 / 32, 0.4 }, spacing = 1 / 64 },
        material = cq.Material.fluid { bulk = 20, viscosity = 0.05 },
      }:at { 3 / 32, 3 / 32 },
    }
    local state = world:rollout({ steps = 250 }).state
    -- under its own weight a column of height h sinks by u(z) = g rho / K (h z - z^2 / 2),
    -- its centre by h^2 g rho / (3 K)
    local y = state:center("water")[2]:item()
    assert.is_true(math.abs(y - (3 / 32 + 0.2 - 0.4 ^ 2 / 60)) < 4e-4, "the centre is at " .. tostring(y))
    assert.is_true(state:velocity("water"):abs():max():item() < 0.02)
    world:close()
  end)
end)

-- ---- curves against the literature ----------------------------------------------------------------------------------

local function near(wanted, got, tolerance, what)
  assert(math.abs(got - wanted) <= tolerance * math.abs(wanted),
    ("%s: %.12g wanted, got %.12g"):format(what, wanted, got))
end

describe("a stretched body", function()
  local rubbers = {
    cq.Material.mooney_rivlin { c10 = 3, c01 = 1, bulk = 20 },
    cq.Material.yeoh { c10 = 2, c20 = -0.1, c30 = 0.05, bulk = 100 },
    cq.Material.ogden { mu = { 3, 0.2, -0.5 }, alpha = { 1.3, 5, -2 }, bulk = 50 },
    cq.Material.elastomer "Ecoflex 00-30",
  }

  it("bears what closed forms have of rubber, at any bulk modulus", function()
    for _, material in ipairs(rubbers) do
      for _, mode in ipairs { "uniaxial", "biaxial" } do
        local amounts = { 0.6, 0.9, 1.3, 2, 2.6 }
        local stress, free = stretch.measure(material, mode, amounts)
        for k, amount in ipairs(amounts) do
          local shape, volume = stretch.errors(material, mode, amount, stress[k], free[k])
          assert(shape < 1e-11 and volume < 1e-11, ("%s, %s of %g: %g, %g"):format(material.law, mode, amount, shape,
            volume))
        end
      end
    end
  end)

  it("bears the exact stress of laws that have one, and of simple shear", function()
    local fields = { young = 10, poisson = 0.3 }
    local exact = { cq.Material.linear(fields), cq.Material.saint_venant_kirchhoff(fields) }
    for _, material in ipairs(exact) do
      for _, mode in ipairs { "uniaxial", "biaxial" } do
        local amounts = { 0.8, 1.1, 1.3 }
        local stress = stretch.measure(material, mode, amounts)
        for k, amount in ipairs(amounts) do
          near(stretch.closed_form(material, mode, amount), stress[k], 1e-10, material.law .. mode)
        end
      end
    end
    local fibres = cq.Material.transversely_isotropic { shear = 3, bulk = 100, k1 = 1, k2 = 0.1, fibre = { 2, 0, 0 } }
    for _, list in ipairs { exact, rubbers, { cq.Material.neo_hookean(fields), cq.Material.corotated(fields),
      fibres } } do
      for _, material in ipairs(list) do
        local stress = stretch.measure(material, "shear", { 0.3, 1.5 })
        near(stretch.closed_form(material, "shear", 0.3), stress[1], 1e-12, material.law)
        near(stretch.closed_form(material, "shear", 1.5), stress[2], 1e-12, material.law)
      end
    end
  end)

  -- with the bulk modulus K the volume grows by tau / 3K, and the stress falls short by about that part of it
  it("bears the stress of the incompressible solid where the bulk modulus is large", function()
    local function of(bulk)
      return {
        cq.Material.neo_hookean { shear = 3, bulk = bulk },
        cq.Material.transversely_isotropic { shear = 3, bulk = bulk, k1 = 1, k2 = 0.1, fibre = { 2, 0, 0 } },
        cq.Material.mooney_rivlin { c10 = 1, c01 = 0.5, bulk = bulk },
        cq.Material.ogden { mu = { 3, 0.2, -0.5 }, alpha = { 1.3, 5, -2 }, bulk = bulk },
      }
    end
    for _, mode in ipairs { "uniaxial", "biaxial" } do
      for k, material in ipairs(of(3e3)) do
        local amounts = { 0.7, 1.4, 1.8 }
        local once, ten = stretch.measure(material, mode, amounts), stretch.measure(of(3e4)[k], mode, amounts)
        for i, amount in ipairs(amounts) do
          local wanted = stretch.closed_form(material, mode, amount)
          near(wanted, once[i], 0.02, material.law .. mode)
          -- the error is of first order in 1 / K
          local ratio = (once[i] - wanted) / (ten[i] - wanted)
          assert(ratio > 8 and ratio < 12,
            ("%s, %s: ten times the bulk modulus, an error %g times smaller"):format(material.law, mode, ratio))
        end
      end
    end
  end)
end)

describe("cq.Material.elastomer", function()
  it("follows the tensile tests as closely as it tells", function()
    for _, entry in ipairs(elastomers) do
      local test = tensile[entry.name]
      if test then
        local material = cq.Material.elastomer { name = entry.name, density = 1000, poisson = 0.499 }
        for k, wanted in ipairs(test) do
          near(1e6 * wanted, stretch.closed_form(material, "uniaxial", tensile.stretch[k]), entry.deviation, entry.name)
        end
      else
        assert.equal("Natural rubber", entry.name)
      end
    end
  end)

  it("has the bulk modulus of Poisson's ratio, or its own", function()
    local soft = cq.Material.elastomer "dragonskin 30"
    assert.equal("yeoh", soft.law)
    assert.equal(1080, soft.density)
    -- K = 2 mu (1 + nu) / (3 (1 - 2 nu)), mu = 2 c10
    assert.is_true(math.abs(soft.bulk / (2 * 2 * soft.c10 * 1.49 / (3 * 0.02)) - 1) < 1e-12)
    assert.equal(1e6, cq.Material.elastomer({ name = "Ecoflex 00-30", bulk = 1e6, density = 990 }).bulk)
    local rubber = cq.Material.elastomer { name = "Natural rubber", density = 930, poisson = 0.4, viscosity = 2 }
    assert.same({ 630000, -2, 2 }, { rubber.mu_1, rubber.alpha_3, rubber.viscosity })
  end)

  it("stands in help with all of its constants", function()
    local page = process.cqlua({ "help", "elastomer" }).out
    for _, entry in ipairs(elastomers) do
      local line = page:match("\n +" .. entry.name:gsub("%p", "%%%0") .. "  [^\n]*")
      assert.truthy(line, entry.name)
      for _, value in pairs(entry.constants) do
        for _, number in ipairs(type(value) == "table" and value or { value }) do
          assert.truthy(line:find("%f[%d-]" .. ("%g"):format(number):gsub("%p", "%%%0") .. "%f[^%d.]"), entry.name
            .. " " .. number)
        end
      end
      assert.truthy(line:find(entry.density and entry.density .. " kg/m^3" or " - ", 1, true), entry.name)
      assert.truthy(line:find("to " .. entry.stretch, 1, true), entry.name)
    end
  end)

  it("says what there is, and what it wants", function()
    refused('no elastomer "Dragon Skn 30" (did you mean Dragon Skin 30?); the table has Ecoflex 00-10, Ecoflex 00-30',
      function()
      cq.Material.elastomer "Dragon Skn 30"
    end)
    refused("the table has no density of RTV615; give it, as in density = 1070",
      function() cq.Material.elastomer "RTV615" end)
    refused("give poisson, or bulk; got both",
      function() cq.Material.elastomer { name = "Ecoflex 00-30", poisson = 0.4, bulk = 3 } end)
    refused("poisson must be a finite number above -1 and below 0.5, got 0.5", function()
      cq.Material.elastomer { name = "Ecoflex 00-30", poisson = 0.5 }
    end)
    refused("unknown field young", function() cq.Material.elastomer { name = "Ecoflex 00-30", young = 3 } end)
  end)
end)

describe("cq.Material.ogden", function()
  it("takes its terms as lists, or each by itself", function()
    local lists = cq.Material.ogden { mu = { 3, -0.5 }, alpha = { 1.3, -2 }, bulk = 50 }
    local each = cq.Material.ogden { mu_1 = 3, mu_2 = -0.5, alpha_1 = 1.3, alpha_2 = -2, bulk = 50 }
    assert.equal(tostring(each), tostring(lists))
  end)

  it("says what is wrong with its terms", function()
    local function says(words, fields)
      fields.bulk = 3
      refused(words, function() cq.Material.ogden(fields) end)
    end
    says("mu has 2 numbers and alpha 1; each term needs both", { mu = { 1, 2 }, alpha = { 1 } })
    says("mu has 1 number and alpha 0; each term needs both", { mu = { 1 } })
    says("mu and alpha have 4 numbers; the law has one to 3 terms", { mu = { 1, 1, 1, 1 }, alpha = { 1, 2, 3, 4 } })
    says("mu and alpha have 0 numbers; the law has one to 3 terms", { mu = {}, alpha = {} })
    says("give mu and alpha, a list of numbers each, or mu_1 and alpha_1; got mu_2", { mu_2 = 1 })
    says("got mu_2 without alpha_2; each term needs both", { mu_1 = 1, alpha_1 = 2, mu_2 = 3 })
    says("got alpha_3 without mu_3; each term needs both", { mu_1 = 1, alpha_1 = 2, alpha_3 = 3 })
    says("got mu_2 beside a list; give mu and alpha as lists, or each term by itself",
      { mu = { 1 }, alpha = { 2 }, mu_2 = 1 })
    says('mu must be a list, each entry a finite number, got "a"', { mu = "a", alpha = { 2 } })
  end)
end)

describe("constants of a law of rubber", function()
  it("must be its own, within their bounds, and good together", function()
    refused("unknown field c1 (did you mean", function() cq.Material.mooney_rivlin { c10 = 1, c1 = 3, bulk = 3 } end)
    refused("bulk must be a finite number at least 0, got -3", function() cq.Material.yeoh { c10 = 1, bulk = -3 } end)
    refused("k1 must be a finite number at least 0, got -1", function()
      cq.Material.transversely_isotropic { shear = 1, bulk = 3, k1 = -1, fibre = { 1, 0 } }
    end)
    for words, material in pairs {
      ["of particle 1 is -2; it is twice the shear modulus at rest and must be positive"] = cq.Material.ogden { mu = { -1 }, alpha = { 2 },
        bulk = 3 },
      ["c10 + c01 of particle 1 is 1 + -2; the sum is half the shear modulus at rest and must be positive"] = cq.Material.mooney_rivlin { c10 = 1,
        c01 = -2, bulk = 3 },
      ["c10 of particle 1 is -1; it is half the shear modulus at rest and must be positive"] = cq.Material.yeoh { c10 = -1, bulk = 3 },
    } do refused(words, function() world_of(material) end) end
  end)
end)
