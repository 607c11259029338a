-- options of implicit steps: their names, and those that have no effect or come to no end.
local cq = require "cq"
local mistake = require "tests.sentence"
local sentence, says = mistake.of, mistake.says

local function world_of(integrator, walls)
  local block = cq.Robot {
    shape = cq.Shape.box { size = { 0.25, 0.25 }, spacing = 1 / 32 },
    material = cq.Material.neo_hookean { young = 40, poisson = 0.3, density = 1.5 },
  }
  return cq.World { cells = { 16, 16 }, dx = 1 / 16, dt = 0.04, precision = "float64", integrator = integrator,
    walls = walls, block:at { 0.36, 0.36 } }
end

describe("options of cq.Implicit", function()
  it("say how they are called now", function()
    for old, new in pairs { newton = "newton_iterations", linear = "linear_iterations", gradient = "adjoint_tolerance",
      slide = "stick_velocity" } do
      says(sentence(function() cq.Implicit { [old] = 1 } end), ("unknown field %s (it is %s now)"):format(old, new))
    end
  end)

  it("are within bounds", function()
    says(sentence(function() cq.Implicit { tolerance = 1 } end), "tolerance must be")
    says(sentence(function() cq.Implicit { newton_iterations = 0 } end), "newton_iterations must be")
  end)

  it("that have no effect are refused", function()
    for field, what in pairs { cables = "a cable", pressure = "a surface under pressure" } do
      says(sentence(function() world_of(cq.Implicit { [field] = "implicit" }) end),
        ("integrator: %s = \"implicit\" has no effect, no robot has %s"):format(field, what))
    end
    assert.equal(1, world_of(cq.Implicit { cables = "lagged", pressure = "lagged" }).substeps)
    local slow = cq.Implicit { stick_velocity = 0.01 }
    says(sentence(function() world_of(slow) end), "integrator: stick_velocity has no effect, no wall has friction")
    says(sentence(function() world_of(slow, cq.Boundary.box { kind = "slip" }) end), "stick_velocity has no effect")
    assert.equal(1, world_of(slow, cq.Boundary.box { mu = 0.5 }).substeps)
  end)

  it("name the pressure where its rounds do not settle, and not the residual of Newton's method", function()
    local bar = cq.Robot {                              -- an open surface: a cavity has a potential and needs no rounds
      shape = cq.Shape.box { name = "bar", size = { 0.3, 0.06 }, spacing = 0.01 }, pins = "root",
      groups = { root = function(x) return x < 0.03 end, top = function(x, y) return y > 0.05 and x > 0.05 end },
      material = cq.Material.neo_hookean { young = 10, poisson = 0.3 },
      actuators = cq.Actuator.follower_pressure {
        surface = { particles = "top", area = 0.01, normal = { 0, 1 } }, max = 1,
      },
    }
    local world = cq.World { cells = { 40, 40 }, dx = 0.02, dt = 0.1, substeps = 1, precision = "float64",
      integrator = cq.Implicit { pressure = "implicit", tolerance = 1e-9 }, bar:at { 0.2, 0.4 } }
    says(sentence(function()
      world:rollout { steps = 1, controller = cq.Controller.open_loop { steps = 1, init = 1 } }
    end), "the simulation failed at control step 1 (time 0, substep 1): the pressure at the end of the implicit step",
      "did not settle, in 200 rounds")
  end)
end)
