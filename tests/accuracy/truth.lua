-- truth: gradients of the engine beside true ones, for the cases of ChainQueen's accuracy table (ICRA 2019, table III).
--
-- A1, A2: the step conserves momentum exactly, also the one along a wall without friction, whatever the collision
--   does. With T = steps * dt, a direction t in the wall and L the mean of x . t over particles of equal mass, dL/dv
--   of a velocity that is added to all particles is T t, and that of each of n particles T t / n. The error is |sum
--   of gradients - T t| / T, as the paper has it; of single particles: the root mean square of the deviations over
--   that of the truth. What limits it: each step back adds dt dL/dx to dL/dv in float32. Along x and y the motion
--   over the grid scatters these roundings, about 1e-6 is left after 1000 steps; along an axis without motion they
--   all point one way, 3.5e-6 here.
-- B, C: the derivative of the same scene in forward mode (tangent.lua), which is exact to rounding where the paper took
--   finite differences, whose noise is about 1e-9 at best. B by both components of the velocity; C along two directions
--   of the weights, the gradient's own and a spread one.
local cq = require "cq"
local T = require "cq.tensor"
local backward_euler = require "tests.accuracy.backward_euler"
local tangent = require "tests.accuracy.tangent"

local truth = {}

---@class cq.measure.Error
---@field error number              relative error of the gradient
---@field forward_error number      relative error of what was differentiated
---@field particle_error number?    the same of the gradients of single particles

local function squared_distance(center, goal)
  local difference = center - T.tensor(goal)
  return difference:dot(difference)
end

-- ---- A: conserved momentum ------------------------------------------------------------------------------------------

-- deviations of gradients {n, dim} from the same true one for all
local function deviations(gradient, expected)
  local dim, n = #expected, gradient:shape()[1]
  local g, sum, square, size = gradient:data(), {}, 0, 0
  for i = 1, dim do
    sum[i] = 0
    for p = 0, n - 1 do
      sum[i] = sum[i] + g[p * dim + i - 1]
      square = square + (g[p * dim + i - 1] - expected[i] / n) ^ 2
    end
    size = size + expected[i] ^ 2
  end
  local total = 0
  for i = 1, dim do total = total + (sum[i] - expected[i]) ^ 2 end
  return math.sqrt(total / size), math.sqrt(square / (size / n))
end

local function conserved(wall)
  local scene = require "tests.accuracy.spinning_block" { wall = wall, precision = "float32" }
  local world = cq.World(scene.world)
  local t = T.tensor(scene.tangent)
  local start = (world.robot.position:mean(1):dot(t)):item()
  local speed = (scene.velocity:mean(1):dot(t)):item()
  return world, function(steps)
    local time, params = steps * world.control_dt, { velocity = T.param(scene.velocity) }
    local value, grad = T.value_and_grad(function(p)
      local roll = world:rollout { robot = scene.robot:with { velocity = p.velocity }, steps = steps }
      return roll.state:center(world.robot):dot(t)
    end)(params)
    local expected = {}
    for i, x in ipairs(scene.tangent) do expected[i] = time * x end
    local all, single = deviations(grad.velocity, expected)
    return { error = all, particle_error = single,
      forward_error = math.abs(value - start - time * speed) / math.abs(time * speed) }
  end
end

-- ---- B: discs that collide ------------------------------------------------------------------------------------------

local GOAL = { 0.7, 0.3 }                    -- of both discs: far from where they are, so that no distance is near 0

-- |a - goal|^2 + |b - goal|^2 and its derivative by component i of the velocity of disc a
local function billiards_slope(world, scene, steps, i)
  local direction, speed = { 0, 0 }, T.tensor(scene.speed)
  direction[i] = 1
  local model = tangent.new(world, scene.spin + scene.moving * speed, scene.moving * T.tensor(direction))
  for _ = 1, steps do model:step() end
  local loss, slope = 0, 0
  for _, name in ipairs { "a", "b" } do
    local x, dx = model:mean(name)
    for d = 1, 2 do
      loss, slope = loss + (x[d] - GOAL[d]) ^ 2, slope + 2 * (x[d] - GOAL[d]) * dx[d]
    end
  end
  return slope, loss
end

-- a world of colliding bodies, and a function that gives loss and gradient after some steps
local function billiards()
  local scene = require "tests.accuracy.billiards" { precision = "float64" }
  local world = cq.World(scene.world)
  return world, function(steps)
    local value, grad = T.value_and_grad(function(p)
      local velocity = scene.spin + scene.moving * p.speed
      local state = world:rollout { robot = scene.robot:with { velocity = velocity }, steps = steps }.state
      return squared_distance(state:center "a", GOAL) + squared_distance(state:center "b", GOAL)
    end) { speed = T.param(scene.speed) }
    local difference, size, loss = 0, 0, nil
    for i = 1, 2 do
      local slope
      slope, loss = billiards_slope(world, scene, steps, i)
      difference, size = difference + (grad.speed:data()[i - 1] - slope) ^ 2, size + slope ^ 2
    end
    return { error = math.sqrt(difference / size), forward_error = math.abs(value - loss) / loss }
  end
end

-- ---- C: a finger and its controller ---------------------------------------------------------------------------------

-- weights {features, signals} and b {signals} of u = tanh(z W + b)
local function finger_weights(features, signals)
  return {
    w = T.param((T.arange(1, features * signals):reshape { features, signals } * 1.7):sin() * 0.5),
    b = T.param((T.arange(1, signals) * 3 - 3):cos() * 0.25),
  }
end

-- u = tanh(z W + b) of the means of all groups, all positions before all velocities; and its derivative along dw, db
local function finger_signals(model, scene, p, along)
  local z, dz = {}, {}
  for quantity = 0, 1 do
    for _, name in ipairs(scene.groups) do
      local mean, dmean = model:mean(name)
      for d = 1, 2 do z[#z + 1], dz[#dz + 1] = mean[2 * quantity + d], dmean[2 * quantity + d] end
    end
  end
  local signals = p.b.count
  for a = 1, signals do
    local s, ds = p.b:data()[a - 1], along.b:data()[a - 1]
    for k = 1, #z do
      local w, dw = p.w:data()[(k - 1) * signals + a - 1], along.w:data()[(k - 1) * signals + a - 1]
      s, ds = s + z[k] * w, ds + dz[k] * w + z[k] * dw
    end
    local u = math.tanh(s)
    model:actuate(scene.muscles[a], scene.max * u, scene.max * (1 - u * u) * ds)
  end
end

local function finger_slope(world, scene, steps, p, along)
  local model = tangent.new(world, T.zeros { world.particle_count, 2 })
  for _ = 1, steps do
    finger_signals(model, scene, p, along)
    model:step()
  end
  local x, dx = model:mean "head"
  local loss, slope = 0, 0
  for d = 1, 2 do
    loss, slope = loss + (x[d] - scene.goal[d]) ^ 2, slope + 2 * (x[d] - scene.goal[d]) * dx[d]
  end
  return slope, loss
end

-- a world with a finger driven by a network, and a function that gives loss and gradient after some steps
local function finger()
  local scene = require "scenes.finger" { precision = "float64" }
  local world = cq.World(scene.world)
  local observer = cq.Observer.centroid { groups = scene.groups, velocity = true }
  local params = finger_weights(4 * #scene.groups, #scene.muscles)
  return world, function(steps)
    local value, grad = T.value_and_grad(function(p)
      local roll = world:rollout {
        steps = steps, observer = observer, controller = function(z) return (z:matmul(p.w) + p.b):tanh() end,
      }
      return squared_distance(roll.state:center "head", scene.goal)
    end)(params)
    local spread = { w = (T.arange(1, grad.w.count):reshape(grad.w:shape()) * 2.9):cos(),
      b = (T.arange(1, grad.b.count) * 1.1):sin() }
    local result = { error = 0 }
    for _, along in ipairs { grad, spread } do
      local slope, loss = finger_slope(world, scene, steps, params, along)
      local found = ((grad.w * along.w):sum() + (grad.b * along.b):sum()):item()
      result.error = math.max(result.error, math.abs(found - slope) / math.abs(slope))
      result.forward_error = math.abs(value - loss) / loss
    end
    return result
  end
end

-- ---- I: implicit steps ----------------------------------------------------------------------------------------------
-- A block that lands on a floor, and a finger that a pressure bends, by steps of 20 and more times the explicit length.
-- The truth is a second writing of the step over dual numbers, with dense matrices; both are converged to rounding.

local YOUNG, POISSON, DX = 1e4, 0.3, 1 / 32

local function implicit_world(dim, robot, gravity)
  local cells = {}
  for i = 1, dim do cells[i] = 16 end
  return cq.World { cells = cells, dx = DX, dt = 5e-3, gravity = gravity, precision = "float64", robot,
    walls = cq.Boundary.box { kind = "separate" },
    integrator = cq.Implicit { tolerance = 2e-13, adjoint_tolerance = 1e-13, linear_iterations = 100000 } }
end

local function squared(center, dim)
  local goal = {}
  for i = 1, dim do goal[i] = 0.1 * i end
  return squared_distance(center, goal)
end

-- |center - goal|^2 and its derivative, of a model that has made its steps
local function squared_slope(model, dim)
  local loss, slope = 0, 0
  for i = 1, dim do
    local x, dx = model:mean(i)
    loss, slope = loss + (x - 0.1 * i) ^ 2, slope + 2 * (x - 0.1 * i) * dx
  end
  return loss, slope
end

local function errors_of(value, found, model, dim)
  local loss, slope = squared_slope(model, dim)
  return { error = math.abs(found - slope) / math.abs(slope), forward_error = math.abs(value - loss) / loss }
end

local function implicit_block(dim)
  local side, size, at, gravity, start, along = dim == 2 and 8 or 4, {}, {}, {}, {}, {}
  for i = 1, dim do
    size[i], at[i], gravity[i] = side * DX / 2, i == 2 and 4.3 * DX or 6.2 * DX, i == 2 and -10 or 0
    start[i], along[i] = i == 2 and -2 or 0.3 / i, 1 / i
  end
  local robot = cq.Robot { shape = cq.Shape.box { size = size, at = at }, spacing = DX / 2,
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 1000 } }
  local world = implicit_world(dim, robot, gravity)
  return world, function(steps)
    local value, grad = T.value_and_grad(function(p)
      local velocity = p.speed:expand { robot.particle_count, dim }
      local roll = world:rollout { robot = robot:with { velocity = velocity }, steps = steps }
      return squared(roll.state:center(robot), dim)
    end) { speed = T.param(start) }
    local model = backward_euler.new { world = world, young = YOUNG, poisson = POISSON, velocity = start,
      direction = along, floor = 3 }
    for _ = 1, steps do model:step() end
    return errors_of(value, (grad.speed * T.tensor(along)):sum():item(), model, dim)
  end
end

local function implicit_finger()
  local shape = cq.Shape.box { size = { 10 * DX / 2, 6 * DX / 2 }, at = { 5 * DX, 6 * DX }, spacing = DX / 2 }
    - cq.Shape.box { size = { 4 * DX / 2, 2 * DX / 2 }, at = { 6.5 * DX, 7 * DX } }
  local robot = cq.Robot { shape = shape:chamber("chamber", { 7.5 * DX, 7.5 * DX }),
    material = cq.Material.neo_hookean { young = YOUNG, poisson = POISSON, density = 1000 },
    groups = { root = function(x) return x < 5.5 * DX end }, pins = "root",
    actuators = cq.Actuator.follower_pressure { name = "air", surface = "chamber", max = 1 } }
  local world = implicit_world(2, robot, { 0, 0 })
  local PRESSURE = 1500
  return world, function(steps)
    local value, grad = T.value_and_grad(function(p)
      local signals = p.pressure:expand { steps, 1 }
      local roll = world:rollout { controller = cq.Controller.open_loop(signals), steps = steps }
      return squared(roll.state:center(robot), 2)
    end) { pressure = T.param { PRESSURE } }
    local model = backward_euler.new { world = world, young = YOUNG, poisson = POISSON, velocity = { 0, 0 },
      direction = { 0, 0 }, pressure = PRESSURE, slope = 1 }
    for _ = 1, steps do model:step() end
    return errors_of(value, grad.pressure:sum():item(), model, 2)
  end
end

---The cases by name. make() gives a world, to be closed, and a function of the number of steps that gives the errors.
---paper: the relative errors of the paper by number of steps; steps: in the place of 1, 10, 100 and 1000.
---@type { name: string, what: string, truth: string, paper: table<integer, number>, make: fun(): cq.World, fun(steps: integer): cq.measure.Error }[]
truth.cases = {
  { name = "A1", what = "final position by initial velocity", truth = "conserved momentum",
    paper = { [1] = 9.80e-8, [10] = 4.74e-8, [100] = 1.15e-7, [1000] = 1.43e-5 },
    make = function() return conserved(false) end },
  { name = "A2", what = "the same with a collision with a frictionless wall",
    truth = "conserved momentum along the wall",
    paper = { [1000] = 2.69e-5 }, make = function() return conserved(true) end },
  { name = "B", what = "colliding billiards", truth = "forward mode",
    paper = { [100] = 2.39e-8, [1000] = 2.83e-8 }, make = billiards },
  { name = "C", what = "weights of a finger's controller", truth = "forward mode",
    paper = { [1] = 5.63e-6, [10] = 2.24e-7, [100] = 6.97e-7, [1000] = 1.76e-6 }, make = finger },
  { name = "I1", what = "implicit steps: a block lands on a floor, by its velocity", truth = "dual numbers",
    paper = {}, steps = { 1, 4, 10 }, make = function() return implicit_block(2) end },
  { name = "I2", what = "implicit steps: a finger under pressure, by the pressure", truth = "dual numbers",
    paper = {}, steps = { 1, 4, 10 }, make = implicit_finger },
  { name = "I3", what = "implicit steps: the block in space", truth = "dual numbers",
    paper = {}, steps = { 1, 4 }, make = function() return implicit_block(3) end },
}

return truth
