-- costs: effort asks for signals alone and does not stop the engine; running sees every state. Rollouts whose observer
-- or controller a user wrote, and whose effort is a running cost, are the measure.
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local scene = require "tests.scene"
local spread = require "tests.spread"

local costs = {}

local STEPS = 12
local WEIGHT = spread({ STEPS }, 0.5, 1.5)

-- of each state that is read: a number, or one for each scene
local function height(state) return state:center("trunk"):slice(2, 2, -1):squeeze(-1) end

local function power(u, price) return price * u:square():sum(-1) end

local kinds = {
  { name = "effort", effort = true },
  { name = "running", running = function(s, u, price) return power(u, price) + height(s) end },
  { name = "running now and then", running = function(s, u, price)
    return s.step % 3 == 0 and power(u, price) * height(s) or power(u, price)
  end },
  { name = "both", effort = true, running = function(s) return height(s) end },
}

-- the same as if a user had written it: Lua makes the signals then
local function own(object, method)
  return { [method] = function(_, ...) return object[method](object, ...) end }
end

local sources = {
  { name = "network", make = function(world, lua)
    -- with accelerations, which go on from control step to step, both ways
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, acceleration = true }
    local controller = cq.Controller.mlp { hidden = { 5 }, seed = 3 }
    return controller:prepare(world, observer), function(net)
      return { observer = lua and own(observer, "observe") or observer, controller = controller:with(net) }
    end
  end },
  { name = "open loop", make = function(_, lua)
    return T.param(spread({ STEPS, 2 }, -0.8, 0.8)), function(u)
      local controller = cq.Controller.open_loop(u)
      return { controller = lua and own(controller, "act") or controller }
    end
  end },
}

-- everything that comes out of a rollout there and back
local function outcome(source, kind, options)
  local world = scene.world(scene.robot(), { device = options.device })
  local net, fields_of = source.make(world, options.lua)
  local asked = 0
  local function cost(r)
    local sum = r.effort and r.effort:sum() or 0
    return r.running and sum + (r.running.rank == 2 and r.running:sum(2) or r.running):dot(WEIGHT) or sum
  end
  local params = { net = net, price = T.param(0.3), velocity = T.param(spread({ world.particle_count, 2 }, -1.5, 0.3)) }
  local loss, grads, roll = T.value_and_grad(function(p)
    local fields = fields_of(p.net)
    fields.robot, fields.steps, fields.batch = world.robot:with { velocity = p.velocity }, STEPS, options.batch
    fields.on_step, fields.memory = options.watched and scene.nobody or nil, options.memory
    if kind.effort then
      fields.effort = function(u)
        asked = asked + 1
        assert(u:size(1) == STEPS and u:size(-1) == 2 and u.rank == (options.batch and 3 or 2))
        local all = power(u, p.price)
        -- with a term between control steps
        return all:sum(1) + (u:slice(2, STEPS) - u:slice(1, STEPS - 1)):square():sum(-1):sum(1)
      end
    end
    if kind.running then fields.running = function(s, u) return kind.running(s, u, p.price) end end
    local r = world:rollout(fields)
    return cost(r) + r.state:center("foot"):sum(), r
  end)(params)
  assert(asked == (kind.effort and 2 or 0), "effort is asked once there and once back")
  local out = { loss = loss, effort = roll.effort, running = roll.running, signals = roll.signals,
    leaves = T.leaves.list(grads),
    by_engine = roll.engine_policy ~= nil, stops = roll.stops,
    final = T.tape.pause(function() return roll.state:positions() end):copy(),
    plan = world:memory_plan { steps = STEPS, memory = options.memory, batch = options.batch } }
  world:close()
  return out
end

local function require_equal(a, b, what)
  assert(a.loss == b.loss and a.signals:equal(b.signals) and a.final:equal(b.final), what .. ": other bits forward")
  for _, name in ipairs { "running", "effort" } do
    assert(not a[name] == not b[name] and (not a[name] or a[name]:equal(b[name])), what .. ": other bits of " .. name)
  end
  for k, leaf in ipairs(a.leaves) do
    assert(leaf.tensor:equal(b.leaves[k].tensor), what .. ": other bits of " .. leaf.path)
  end
end

local function require_near(a, b, what)
  local off = (a - b):norm():item()
  assert(off <= 1e-12 * b:norm():item(), ("%s is off by %.2e of %.2e"):format(what, off, b:norm():item()))
end

---Compares all kinds of costs with the way by Lua, and with those of rollouts that stop after every control step.
---@param device string?
---@return integer count     comparisons
function costs.compare(device)
  local count = 0
  for _, source in ipairs(sources) do
    for _, batch in ipairs { false, 3 } do
      for _, kind in ipairs(kinds) do
        local what = ("%s, batch %s, %s"):format(source.name, batch, kind.name)
        local function run(options)
          options.device, options.batch, options.memory = device, batch or nil, options.memory or "1 GiB"
          return outcome(source, kind, options)
        end
        local ours, lua, watched = run {}, run { lua = true }, run { watched = true }
        assert(ours.by_engine == (source.name == "network") and not lua.by_engine, what .. ": the way was not chosen")
        assert(ours.stops == (kind.running ~= nil) and watched.stops, what .. ": where it stops")
        require_equal(ours, watched, what .. ", watched")
        require_near(ours.final, lua.final, what .. ": the final state")
        for k, leaf in ipairs(ours.leaves) do
          assert(leaf.tensor:norm():item() > 0, what .. ": no gradient of " .. leaf.path)
          require_near(leaf.tensor, lua.leaves[k].tensor, what .. ": gradient of " .. leaf.path)
        end
        local tight = math.floor(3.5 * ours.plan.slice_bytes + ours.plan.record_bytes)
        require_equal(run { memory = tight }, ours,
          what .. ", little memory")
        count = count + 1
      end
    end
  end
  return count
end

-- ---- what goes wrong ------------------------------------------------------------------------------------------------

local function raise(s, u)
  if s.step == 5 then error("no cost", 0) end
  return u:square():sum()
end

-- a state that is kept and read when another one is live
local kept
local function hoarder(s, u)
  if s.step == 1 then kept = s end
  return s.step == 4 and kept:center("foot"):sum() or u:square():sum()
end

local function interrupting(s, u)
  if s.step == 1 then engine.C.cq_interrupt(1) end
  return u:square():sum()
end

-- fails in the middle of control step 6
local wild = T.zeros { STEPS, 2 }
for i = 6, STEPS do wild:set(1000, i, 1) end

local failing = {
  { name = "an error in running", running = raise, says = "no cost (in running, control step 5 of 12)" },
  { name = "an error in effort", effort = function() error("no price", 0) end, says = "no price (in effort)" },
  { name = "effort of each step", effort = function(u) return u:square():sum(-1) end,
    says = "effort must give one number" },
  { name = "effort that gives nothing", effort = function() end, says = "effort must give one number, got nil" },
  { name = "unstable", effort = function(u) return u:sum() end, u = wild,
    says = "the simulation failed at control step" },
  { name = "a state of before", running = hoarder, says = "this state is of control step 1 and the rollout is at 4" },
  { name = "interrupted", running = interrupting, says = "interrupted at control step 1" },
}

---What goes wrong, in the same words whoever makes the signals.
---@param device string?
---@return integer count
function costs.failures(device)
  local observer = cq.Observer.centroid { groups = { "foot", "trunk" } }
  local world = scene.world(scene.robot(), { device = device })
  for _, case in ipairs(failing) do
    local said = {}
    for k = 1, 2 do
      local controller = case.u and cq.Controller.open_loop(case.u) or cq.Controller.linear { seed = 3 }
      if not case.u then controller:prepare(world, observer) end
      said[k] = scene.failure(world, {
        steps = STEPS, observer = k == 1 and observer or own(observer, "observe"),
        controller = k == 2 and case.u and own(controller, "act") or controller, running = case.running,
        effort = case.effort,
      })
      engine.C.cq_interrupt(0)
    end
    assert(said[1] == said[2], ("%s: %s\nbut by Lua: %s"):format(case.name, said[1], said[2]))
    assert(said[1]:find(case.says, 1, true), case.name .. ": " .. said[1])
  end
  world:close()
  return #failing
end

---A cost that does not give the same again on the way back is refused.
---@return string[] sentences
function costs.changing()
  local world, calls = scene.world(scene.robot()), 0
  local function refusal(name, cost)
    calls = 0
    return select(2, pcall(T.value_and_grad(function(u)
      return world:rollout { steps = STEPS, controller = cq.Controller.open_loop(u), [name] = function(...)
        calls = calls + 1
        return cost(...)
      end }[name]:sum()
    end), T.param(spread({ STEPS, 2 }, -0.8, 0.8))))
  end
  local out = { refusal("running", function(_, u) return calls * u:sum() end),
    refusal("effort", function(u) return calls * u:sum() end) }
  world:close()
  return out
end

return costs
