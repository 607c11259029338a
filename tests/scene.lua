-- scene: small worlds that many tests share: a legged block on the ground, and its rollouts.
local cq = require "cq"

local scene = {}

---A robot of a foot, a leg and a body, four particles wide, in 2D or 3D.
---@param options? { dim?: integer, material?: cq.Material|table, actuators?: table, count?: integer }
function scene.robot(options)
  options = options or {}
  local dim, n = options.dim or 2, options.count or 4
  local function block(name, y)
    local at, size, count = { 0, y }, { 0.1, 0.1 }, { n, n }
    if dim == 3 then at, size, count = { 0, y, 0 }, { 0.1, 0.1, 0.1 }, { n, n, n } end
    return cq.Shape.box { name = name, at = at, size = size, count = count }
  end
  return cq.Robot {
    shape = { block("foot", 0), block("trunk", 0.1) },
    material = options.material or {
      foot = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 },
      trunk = cq.Material.corotated { young = 8, poisson = 0.2, density = 1.5, incompressible = 2 },
    },
    actuators = options.actuators or cq.Actuator.pressure { groups = { "foot", "trunk" }, axis = "y", max = 2 },
  }
end

---Initial velocities {n, dim} of a robot's particles; velocity(x, y) gives those along x and y.
function scene.velocities(robot, velocity)
  local v = cq.zeros { robot.particle_count, robot.dim }
  local x, to = robot.position:data(), v:data()
  for p = 0, robot.particle_count - 1 do
    to[p * robot.dim], to[p * robot.dim + 1] = velocity(x[p * robot.dim], x[p * robot.dim + 1])
  end
  return v
end

---A world in which the robot stands a little above a floor with friction.
function scene.world(robot, options)
  options = options or {}
  local dim = robot.dim
  local fields = {
    cells = dim == 2 and { 24, 24 } or { 20, 20, 20 }, dx = 1 / 24, dt = 6e-3, substeps = options.substeps or 3,
    gravity = dim == 2 and { 0.3, -4 } or { 0.3, -4, 0.2 }, precision = options.precision or "float64",
    threads = options.threads, device = options.device, integrator = options.integrator,
    formulation = options.formulation, transfer = options.transfer,
    walls = options.walls or cq.Boundary.box { kind = "friction", mu = 0.4 },
  }
  fields[1] = robot:at(dim == 2 and { 0.4, 0.127 } or { 0.3, 0.127, 0.3 })
  return cq.World(fields)
end

---What a rollout says that must fail.
function scene.failure(world, fields)
  local fine, problem = pcall(function() return world:rollout(fields) end)
  assert(not fine, "the rollout did not fail")
  return (problem:gsub("^[^:]+:%d+: ", ""))
end

---Looks at every state of a rollout and does nothing: it goes step by step then.
function scene.nobody() end

return scene
