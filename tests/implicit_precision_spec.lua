-- implicit_precision: gradients of implicit steps in float32 beside those in float64, of the same scene and tolerance.
local cq = require "cq"
local T = require "cq.tensor"
local message = require "cq.base.message"
local mistake = require "tests.sentence"
local spread = require "tests.spread"

local DX, STEPS = 1 / 16, 6
local FLOOR = 3 * DX
local wall = cq.Boundary

local function filled(dim, across, up)
  local out = { across, up }
  if dim == 3 then out[3] = across end
  return out
end

local function floor(kind, more)
  local fields = { at = FLOOR, kind = kind }
  for key, value in pairs(more or {}) do fields[key] = value end
  return wall.floor(fields)
end

-- what drives a block, as fields of a robot; as strong as its material
local drives = {
  muscle = function()
    return { actuators = cq.Actuator.pressure { groups = "all", axis = "y", max = 8 },
      groups = { all = function() return true end } }
  end,
  cable = function()
    local path = {}
    for k = 1, 5 do path[k] = { DX / 4, DX * (k - 0.75) } end
    return { actuators = cq.Actuator.cable { path = path, stiffness = 20, law = "spool" }, pins = "foot",
      groups = { foot = function(_, y) return y < DX end } }
  end,
  pressure = function()
    return { actuators = cq.Actuator.follower_pressure { surface = { inside = { 2 * DX, 2 * DX } }, max = 2 },
      shape = cq.Shape.box { size = { 4 * DX, 4 * DX }, spacing = DX / 2 }
        - cq.Shape.box { at = { DX, DX }, size = { 2 * DX, 2 * DX } } }
  end,
}

local scenes = {
  ["a floor and a slope that let go"] = { drive = "muscle", walls = {
    floor "separate", wall.slope { point = { 0.64, FLOOR }, angle = math.rad(70), kind = "separate" },
  } },
  ["a floor that moves and holds"] = { drive = "muscle",
    walls = { floor("sticky", { separable = true, velocity = { 0.2, 0.1 } }) } },
  ["Maxwell branches"] = { drive = "muscle", branches = true, walls = { floor "slip" } },
  ["Maxwell branches on a ball in 3D"] = { dim = 3, branches = true,
    walls = { wall.sphere { center = { 0.45, 0.05, 0.45 }, radius = 0.14, kind = "separate" } } },
  ["averaged dilatations"] = { drive = "muscle", poisson = 0.49, averaging = 1, walls = { floor "separate" } },
  ["a cable"] = { drive = "cable", integrator = { cables = "implicit" }, walls = { floor "separate" }, seed = 2 },
  ["pressure at the end of a step"] = { drive = "pressure", integrator = { pressure = "implicit" },
    walls = { floor "separate" } },
  ["friction"] = { drive = "muscle", mu = 0.4, walls = { floor("friction", { mu = 0.4 }) } },
  ["friction and pressure"] = { drive = "pressure", mu = 0.5, walls = { floor("friction", { mu = 0.5 }) } },
  ["friction in 3D"] = { dim = 3, drive = "muscle", mu = 0.4, walls = { floor("friction", { mu = 0.4 }) } },
}

local function world_of(scene, precision, tolerance)
  local dim = scene.dim or 2
  local side = dim == 2 and 4 * DX or 3 * DX
  local law = cq.Material.neo_hookean { young = 40, poisson = scene.poisson or 0.3, density = 1.5,
    f_bar = scene.averaging }
  local fields = scene.drive and drives[scene.drive]() or {}
  fields.shape = fields.shape or cq.Shape.box { size = filled(dim, side, side), spacing = DX / 2 }
  fields.material = scene.branches and cq.Material.viscoelastic { base = law, modulus = { 6 }, time = { 0.1 } } or law
  local integrator = { tolerance = tolerance, adjoint_tolerance = 1e-6 }
  for key, value in pairs(scene.integrator or {}) do integrator[key] = value end
  return cq.World {
    cells = filled(dim, 16, 16), dx = DX, dt = 0.04, gravity = filled(dim, 0.2, -2), damping = 0.5,
    precision = precision, threads = 1, integrator = cq.Implicit(integrator), walls = scene.walls,
    cq.Robot(fields):at(filled(dim, 0.36, 0.2)),
  }
end

-- parameters of every kind that a scene has; velocities, stiffnesses and signals by chance
local function params_of(scene, world, seed)
  local dim, n, random = world.dim, world.particle_count, cq.random { seed = seed }
  return {
    velocity = T.param(T.tensor(filled(dim, 0.3, -1)) + random:uniform({ n, dim }, { min = -0.3, max = 0.3 })),
    young = T.param(40 * random:uniform({ n }, { min = 0.7, max = 1.3 })), density = T.param(1.5),
    gravity = T.param(filled(dim, 0.2, -2)), damping = T.param(0.5), friction = scene.mu and T.param(scene.mu),
    signals = scene.drive and T.param(random:uniform({ STEPS, world.actuator_count }, { min = 0.1, max = 0.9 })),
    modulus = scene.branches and T.param(6), time = scene.branches and T.param(0.1),
  }
end

local function gradients(scene, precision, tolerance, seed)
  local world = world_of(scene, precision, tolerance)
  local _, grads = T.value_and_grad(function(p)
    local state = world:rollout({
      steps = STEPS, gravity = p.gravity, damping = p.damping, friction = p.friction,
      controller = p.signals and cq.Controller.open_loop(p.signals),
      robot = world.robot:with { velocity = p.velocity, young = p.young, density = p.density,
        branch_modulus_1 = p.modulus, relaxation_time_1 = p.time },
    }).state
    local x, v, f = state:positions(), state:velocities(), state:deformations()
    return (x * spread(x:shape(), -0.4, 1)):sum() + (v * v):mean() + (f * spread(f:shape(), -1, 0.6)):mean()
  end)(params_of(scene, world, seed))
  return grads
end

local function norm(x) return (x * x):sum():item() ^ 0.5 end

-- the largest difference of a group of parameters, beside that group's gradient
local function difference(scene, tolerance, seed)
  local double, single = gradients(scene, "float64", tolerance, seed), gradients(scene, "float32", tolerance, seed)
  local most, where = 0, nil
  for name, exact in pairs(double) do
    local part = norm(single[name] - exact) / norm(exact)
    if not (part <= most) then most, where = part, name end
  end
  return most, where
end

describe("gradients of implicit steps in float32", function()
  local warn = message.warn
  before_each(function() message.warn = function() end end)      -- some floors are above 1e-5
  after_each(function() message.warn = warn end)

  for name, scene in pairs(scenes) do
    it("are those in float64: " .. name, function()
      -- to 0.001 friction leaves open whether a light node slides (docs/implicit.md)
      for _, tolerance in ipairs(scene.mu and { 1e-5 } or { 1e-3, 1e-5 }) do
        local most, where = difference(scene, tolerance, scene.seed or 1)
        assert(most < (scene.mu and 1e-2 or 1e-3), ("tolerance %g: %s is off by %.2g"):format(tolerance,
          where, most))
      end
    end)
  end

  it("that do not converge may want float64", function()
    local scene = { walls = { floor "separate" }, integrator = { linear_iterations = 1, newton_iterations = 10000,
      tolerance = 1e-4 } }
    for _, precision in ipairs { "float64", "float32" } do
      local told = mistake.of(function() gradients(scene, precision, 1e-4, 1) end)
      mistake.says(told, "the linear system of the adjoint did not converge in")
      assert.equal(precision == "float32", told:find("or precision = \"float64\"", 1, true) ~= nil, told)
    end
  end)
end)
