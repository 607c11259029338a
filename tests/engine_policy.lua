-- engine_policy: rollouts that the engine drives by itself, with a network that sees means, against the same driven by
-- Lua, which a rollout is whose observer is a user's own: equal to rounding, for the sums of a network are made in
-- another order. And against those that somebody watches, which stop after every control step: bit for bit.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local spread = require "tests.spread"

local by_engine = {}

local STEPS = 12

local groups = { "foot", "trunk" }
local cases = {
  { name = "2D, relu", dim = 2, observer = cq.Observer.centroid { groups = groups, velocity = true },
    controller = function() return cq.Controller.mlp { hidden = { 7, 5 }, seed = 3 } end },
  { name = "3D, a batch, softplus", dim = 3, batch = 2,
    observer = cq.Observer.centroid { groups = groups, velocity = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "softplus", seed = 4 } end },
  { name = "2D, a batch, clusters, sigmoid", dim = 2, batch = 3, observer = cq.Observer.kmeans { clusters = 3 },
    controller = function() return cq.Controller.mlp { hidden = { 5, 4, 3 }, activation = "sigmoid", seed = 5 } end },
  { name = "2D, linear, velocities alone", dim = 2, observer = cq.Observer.centroid { groups = groups, position = false,
    velocity = true },
    controller = function() return cq.Controller.linear { seed = 6 } end },
  { name = "2D, a batch, particles", dim = 2, batch = 2, observer = cq.Observer.particles { group = { 1, 5, 18, 6, 5 },
    velocity = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "tanh", seed = 8 } end },
  { name = "3D, velocities of a group's particles, elu", dim = 3,
    observer = cq.Observer.particles { group = "foot", position = false, velocity = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "elu", seed = 9 } end },
  { name = "2D, accelerations too", dim = 2, observer = cq.Observer.centroid { groups = groups, velocity = true,
    acceleration = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "tanh", seed = 10 } end },
  { name = "3D, a batch, accelerations alone", dim = 3, batch = 2,
    observer = cq.Observer.kmeans { clusters = 3, position = false, acceleration = true },
    controller = function() return cq.Controller.linear { seed = 11 } end },
  -- a GPU is told of these in two pieces
  { name = "2D, many substeps", dim = 2, substeps = 70,
    observer = cq.Observer.centroid { groups = groups, velocity = true },
    controller = function() return cq.Controller.linear { seed = 12 } end },
  { name = "2D, walls that shake", dim = 2, observer = cq.Observer.centroid { groups = groups, velocity = true },
    controller = function() return cq.Controller.linear { seed = 13 } end,
    shake = function(t) return { 0.3 * math.sin(200 * t), 0.2 * math.cos(300 * t) } end },
  { name = "3D, float32", dim = 3, precision = "float32", observer = cq.Observer.centroid { groups = groups },
    controller = function() return cq.Controller.mlp { hidden = { 70 }, activation = "tanh", seed = 7 } end },
  { name = "2D, a batch, an adjoint that decays, accelerations too", dim = 2, batch = 2, decay = 0.02,
    observer = cq.Observer.centroid { groups = groups, velocity = true, acceleration = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "tanh", seed = 14 } end },
  { name = "2D, a batch, total Lagrangian steps, an adjoint that decays", dim = 2, batch = 2, decay = 0.02,
    formulation = "total_lagrangian",
    observer = cq.Observer.centroid { groups = groups, velocity = true, acceleration = true },
    controller = function() return cq.Controller.mlp { hidden = { 6 }, activation = "tanh", seed = 15 } end },
}

-- what an observer does, as if a user had written it
local function own(observer)
  return { observe = function(_, state, hidden) return observer:observe(state, hidden) end }
end

-- loss, gradients of every parameter, signals. way: "lua", "watched", or nil
local function gradients(case, device, memory, way)
  local robot = scene.robot { dim = case.dim, count = case.dim == 2 and 4 or 3, actuators = {
    cq.Actuator.pressure { groups = "foot", axis = "y", max = 2 },
    cq.Actuator.muscle { groups = "trunk", axis = "y", max = 1 },
  } }
  local world = scene.world(robot, { device = device, precision = case.precision, substeps = case.substeps,
    formulation = case.formulation })
  local n, controller, batch = world.particle_count, case.controller(), case.batch or 1
  local params = {
    young = T.param(spread({ n }, 7, 12)), density = T.param(spread({ n }, 0.8, 1.6)),
    position = T.param(world.robot.position),
    velocity = T.param(spread(batch > 1 and { batch, n, case.dim } or { n, case.dim }, -1.5, 0.3)),
    net = controller:prepare(world, case.observer),
  }
  local loss, grads, roll = T.value_and_grad(function(p)
    local r = world:rollout {
      robot = world.robot:with { young = p.young, density = p.density, position = p.position, velocity = p.velocity },
      steps = STEPS, batch = batch,
      observer = way == "lua" and own(case.observer) or case.observer, controller = controller:with(p.net),
      memory = memory, gradient = { decay = case.decay },
      wall_velocity = case.shake, contact = case.shake and true or nil,
      on_step = way == "watched" and scene.nobody or nil,
    }
    return r.state:center("trunk"):sum() + r.state:velocity("foot"):square():sum()
      + r.state:deformations():square():sum(), r
  end)(params)
  local out = { loss = loss, leaves = T.leaves.list(grads), signals = roll.signals,
    by_engine = roll.engine_policy ~= nil, stops = roll.stops,
    plan = world:memory_plan { steps = STEPS, memory = memory, batch = batch } }
  local final = T.tape.pause(function() return roll.state:positions() end)   -- makes the control steps again
  out.final = final:copy()
  world:close()
  return out
end

local function require_near(a, b, tolerance, what)
  local off = (a - b):norm():item()
  assert(off <= tolerance * b:norm():item(), ("%s is off by %.2e of %.2e"):format(what, off, b:norm():item()))
end

local function require_equal(a, b, what)
  assert(a.loss == b.loss and a.signals:equal(b.signals) and a.final:equal(b.final), what .. ": other bits forward")
  for k, leaf in ipairs(a.leaves) do
    assert(leaf.tensor:equal(b.leaves[k].tensor), what .. ": other bits of " .. leaf.path)
  end
end

---Compares all cases with the way by Lua; and what is made within little memory with that, bit for bit.
---@param device string?
---@return integer count     cases
function by_engine.compare(device)
  for _, case in ipairs(cases) do
    local tolerance = case.precision == "float32" and 2e-4 or 1e-12
    local ours, lua, watched = gradients(case, device, "1 GiB"), gradients(case, device, "1 GiB", "lua"),
      gradients(case, device, "1 GiB", "watched")
    assert(ours.by_engine and not ours.stops and not lua.by_engine, case.name .. ": the way was not chosen")
    assert(watched.by_engine and watched.stops, case.name .. ": the watched one did not stop")
    require_equal(watched, ours, case.name .. ", watched")
    assert(math.abs(ours.loss - lua.loss) <= tolerance * math.abs(lua.loss), case.name .. ": loss")
    require_near(ours.signals, lua.signals, tolerance, case.name .. ": signals")
    require_near(ours.final, lua.final, tolerance, case.name .. ": the state made again")
    for k, leaf in ipairs(ours.leaves) do
      assert(leaf.tensor:norm():item() > 0, case.name .. ": no gradient of " .. leaf.path)
      require_near(leaf.tensor, lua.leaves[k].tensor, tolerance, case.name .. ": gradient of " .. leaf.path)
    end
    local tight = gradients(case, device, math.floor(3.5 * ours.plan.slice_bytes + ours.plan.record_bytes))
    assert(tight.plan.recompute > 1 and tight.by_engine, case.name .. ": the budget was not tight")
    require_equal(tight, ours, case.name .. ", little memory")
  end
  return #cases
end

---What goes wrong is told in the same words both ways: an unstable simulation, and signals that are not finite.
---@param device string?
---@return string[] sentences
function by_engine.failures(device)
  local observer = cq.Observer.centroid { groups = groups }
  local world, out = scene.world(scene.robot(), { device = device }), {}
  for k = 1, 2 do
    local controller = cq.Controller.linear { seed = 3 }
    local params = controller:prepare(world, observer)
    if k == 2 then params.w1:data()[1] = 0 / 0 end
    local fields = { steps = STEPS, observer = observer, controller = controller, gravity = k == 1 and { 0, -2000 }
      or nil }
    out[k] = scene.failure(world, fields)
    fields.on_step = scene.nobody
    local watched = scene.failure(world, fields)
    assert(out[k] == watched, ("%s\nbut watched: %s"):format(out[k], watched))
    fields.observer = own(observer)
    local lua = scene.failure(world, fields)
    assert(out[k] == lua, ("%s\nbut by Lua: %s"):format(out[k], lua))
  end
  world:close()
  return out
end

return by_engine
