-- blind: rollouts whose signals are all known before the first control step are one call of the engine; one that
-- somebody watches goes step by step. Both must give the same bits.
local cq = require "cq"
local T = require "cq.tensor"
local scene = require "tests.scene"
local spread = require "tests.spread"

local blind = {}

local STEPS = 12

-- parameters of the robot and of the world
local function matter(world)
  local n = world.particle_count
  return {
    young = T.param(spread({ n }, 7, 12)), density = T.param(spread({ n }, 0.8, 1.6)),
    position = T.param(world.robot.position),
    velocity = T.param(spread({ n, world.dim }, -1.5, 0.3)), gravity = T.param(spread({ world.dim }, -3, -2)),
    friction = T.param(0.3),
  }
end

-- what a case makes of a world: fields of its rollout from parameters, and the parameters of its controller
local cases = {
  { name = "2D, signals of its own", dim = 2, make = function()
    local p = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    return p, function(u) return { controller = cq.Controller.open_loop(u) } end
  end },
  { name = "3D, signals for each of a batch", dim = 3, precision = "float32", make = function()
    local p = T.param(spread({ 2, STEPS, 2 }, -0.8, 0.8))
    return p, function(u) return { batch = 2, controller = cq.Controller.open_loop(u) } end
  end },
  { name = "2D, sines for a batch", dim = 2, precision = "float32", make = function(world)
    local sines = cq.Controller.sines { count = 3, frequency = 2, seed = 2 }
    return sines:prepare(world), function(p) return { batch = 2, controller = sines:with(p) } end
  end },
  { name = "2D, total Lagrangian steps", dim = 2, formulation = "total_lagrangian", make = function()
    local p = T.param(spread({ STEPS, 2 }, -0.8, 0.8))
    return p, function(u) return { controller = cq.Controller.open_loop(u) } end
  end },
  { name = "3D, no controller", dim = 3, make = function() return {}, function() return {} end end },
}

-- loss, gradients of every parameter, signals
local function gradients(case, device, memory, watch)
  local world = scene.world(scene.robot { dim = case.dim, count = case.dim == 2 and 4 or 3 },
    { device = device, precision = case.precision, formulation = case.formulation })
  local own, fields_of = case.make(world)
  local params = matter(world)
  params.own = own
  local loss, grads, roll = T.value_and_grad(function(p)
    local fields = fields_of(p.own)
    fields.robot = world.robot:with { young = p.young, density = p.density, position = p.position,
      velocity = p.velocity }
    fields.gravity, fields.friction, fields.steps, fields.memory, fields.on_step = p.gravity, p.friction, STEPS, memory,
      watch
    local r = world:rollout(fields)
    return r.state:center("trunk"):sum() + r.state:velocity("foot"):square():sum()
      + r.state:deformations():square():sum(), r
  end)(params)
  local out = { loss = loss, leaves = T.leaves.list(grads), signals = roll.signals, stops = roll.stops,
    plan = world:memory_plan { steps = STEPS, memory = memory, batch = roll.batch } }
  out.center = roll.state:center { "foot", "trunk" }   -- makes the control steps again
  world:close()
  return out
end

local function require_equal(a, b, what)
  assert(a.loss == b.loss and a.loss == a.loss, what .. ": loss")
  assert(a.signals:equal(b.signals) and a.center:equal(b.center), what .. ": signals, or the state made again")
  for k, leaf in ipairs(a.leaves) do
    assert(leaf.tensor:equal(b.leaves[k].tensor), what .. ": gradient of " .. leaf.path)
  end
end

---Compares all cases, with everything kept and within little memory.
---@param device string?
---@return integer count     comparisons
function blind.compare(device)
  local count = 0
  for _, case in ipairs(cases) do
    local watched = gradients(case, device, nil, scene.nobody)
    local tight = math.floor(3.5 * watched.plan.slice_bytes + watched.plan.record_bytes)
    for name, memory in pairs { ["all kept"] = "1 GiB", ["little memory"] = tight } do
      local ahead, what = gradients(case, device, memory, nil), case.name .. ", " .. name
      assert(not ahead.stops and watched.stops, what .. ": the way was not chosen")
      assert((ahead.plan.recompute > 1) == (name == "little memory"), what .. ": the budget does not fit the name")
      require_equal(ahead, watched, what)
      require_equal(gradients(case, device, memory, scene.nobody), watched, what .. ", watched")
      count = count + 1
    end
  end
  return count
end

---What goes wrong is told in the same words both ways: an unstable simulation, signals that are not finite, and both.
---@param device string?
---@return string[] sentences
function blind.failures(device)
  local world = scene.world(scene.robot(), { device = device })
  local wild, broken = T.zeros { STEPS, 2 }, T.zeros { STEPS, 2 }
  for i = 6, STEPS do wild:set(4000, i, 1) end
  broken:data()[8 * 2 + 1] = 0 / 0
  local both = wild:copy()
  both:data()[(STEPS - 1) * 2] = 0 / 0
  local out = {}
  for k, u in ipairs { wild, broken, both } do
    local controller = cq.Controller.open_loop(u)
    out[k] = scene.failure(world, { steps = STEPS, controller = controller })
    local watched = scene.failure(world, { steps = STEPS, controller = controller, on_step = scene.nobody })
    assert(out[k] == watched, ("%s\nbut watched: %s"):format(out[k], watched))
  end
  world:close()
  return out
end

return blind
