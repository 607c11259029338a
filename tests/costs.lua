-- costs: a running cost does not stop the engine where it asks for signals alone, and gets its states where it reads them: always, now
-- and then, or late. It is called once for each control step, in their order; a rollout that Lua drives step by step is the measure.
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local scene = require "tests.scene"
local spread = require "tests.spread"

local costs = {}

local STEPS = 12

-- of each state that is read: a number, or one for each scene
local function height(state) return state:center("trunk"):slice(2, 2, -1):squeeze(-1) end

local function effort(u, p) return p.price * u:square():sum(-1) end

-- what is read of the states by each cost; stops: does the rollout after it know before the first control step that it must stop?
local kinds = {
  { name = "signals alone", running = function(_, u, p) return effort(u, p) end },
  { name = "every state", reads = true, running = function(s, u, p) return effort(u, p) + height(s) end },
  { name = "every third state", reads = true, running = function(s, u, p)
    return s.step % 3 == 0 and effort(u, p) * height(s) or effort(u, p)
  end },
  { name = "the last state", reads = true, running = function(s, u, p) return s.time > 0.0705 and height(s) or effort(u, p) end },
  { name = "the first state", reads = true, running = function(s, u, p) return s.step == 1 and height(s) or effort(u, p) end },
  { name = "no state, nor signals", running = function(s, _, p) return p.price * s.step end },
}

-- the same as if a user had written it: Lua drives then
local function own(object, method)
  return { [method] = function(_, ...) return object[method](object, ...) end }
end

local drivers = {
  { name = "by_engine", make = function(world, lua)
    -- with accelerations, which go on from control step to step, both ways
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true, acceleration = true }
    local controller = cq.Controller.mlp { hidden = { 5 }, seed = 3 }
    return controller:prepare(world, observer), function(net)
      return { observer = lua and own(observer, "observe") or observer, controller = controller:with(net) }
    end
  end },
  { name = "blind", make = function(_, lua)
    return T.param(spread({ STEPS, 2 }, -0.8, 0.8)), function(u)
      local controller = cq.Controller.open_loop(u)
      return { controller = lua and own(controller, "act") or controller }
    end
  end },
}

-- everything that comes out of a rollout there and back, and the control steps that running was called for on the way there
local function outcome(driver, kind, options)
  local world = scene.world(scene.robot(), { device = options.device })
  local net, fields_of = driver.make(world, options.lua)
  local calls, price, forward = {}, nil, 0
  local function running(s, u)
    calls[#calls + 1] = s.step
    return kind.running(s, u, { price = price })
  end
  local weight = spread({ STEPS }, 0.5, 1.5)
  local out, loss, grads, roll = { stops = {} }, nil, nil, nil
  local params = { net = net, price = T.param(0.3), velocity = T.param(spread({ world.particle_count, 2 }, -1.5, 0.3)) }
  -- the second time running is known
  for k = 1, 2 do
    calls = {}
    loss, grads, roll = T.value_and_grad(function(p)
      local fields = fields_of(p.net)
      price = p.price
      fields.robot, fields.steps, fields.batch, fields.running = world.robot:with { velocity = p.velocity }, STEPS, options.batch, running
      fields.watch, fields.memory = options.watched and scene.nobody or nil, options.memory
      local r = world:rollout(fields)
      forward = #calls
      local each = r.running.rank == 2 and r.running:sum(2) or r.running
      return (each * weight):sum() + r.state:center("foot"):sum(), r
    end)(params)
    out.stops[k] = roll.stops
  end
  for i = 1, #calls do assert(i > forward or calls[i] == i, "running was not called in the order of the control steps") end
  assert(forward == STEPS, ("running was called %d times"):format(forward))
  out.loss, out.running, out.signals, out.leaves, out.by_engine = loss, roll.running:copy(), roll.signals, T.leaves.list(grads), roll.engine_policy ~= nil
  out.final = T.tape.pause(function() return roll.state:positions() end):copy()
  out.plan = world:plan { steps = STEPS, memory = options.memory, batch = options.batch }
  world:close()
  return out
end

local function require_equal(a, b, what)
  assert(a.loss == b.loss and a.running:equal(b.running) and a.signals:equal(b.signals) and a.final:equal(b.final), what .. ": other bits forward")
  for k, leaf in ipairs(a.leaves) do assert(leaf.tensor:equal(b.leaves[k].tensor), what .. ": other bits of " .. leaf.path) end
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
  for _, driver in ipairs(drivers) do
    for batch = 1, 3, 2 do
      for _, kind in ipairs(kinds) do
        local what = ("%s, batch %d, running reads %s"):format(driver.name, batch, kind.name)
        local ours = outcome(driver, kind, { device = device, batch = batch, memory = "1 GiB" })
        local lua = outcome(driver, kind, { device = device, batch = batch, memory = "1 GiB", lua = true })
        local watched = outcome(driver, kind, { device = device, batch = batch, memory = "1 GiB", watched = true })
        assert(ours.by_engine == (driver.name == "by_engine") and not lua.by_engine, what .. ": the way was not chosen")
        assert(ours.stops[2] == (kind.reads == true) and ours.stops[1] == ours.stops[2] and watched.stops[1], what .. ": where it stops")
        require_equal(ours, watched, what .. ", watched")
        require_near(ours.running, lua.running, what .. ": running")
        require_near(ours.final, lua.final, what .. ": the state made again")
        for k, leaf in ipairs(ours.leaves) do
          assert(leaf.tensor:norm():item() > 0, what .. ": no gradient of " .. leaf.path)
          require_near(leaf.tensor, lua.leaves[k].tensor, what .. ": gradient of " .. leaf.path)
        end
        local tight = math.floor(3.5 * ours.plan.slice_bytes + ours.plan.record_bytes)
        require_equal(outcome(driver, kind, { device = device, batch = batch, memory = tight }), ours, what .. ", little memory")
        count = count + 1
      end
    end
  end
  return count
end

-- ---- what goes wrong ----------------------------------------------------------------------------------------------------

local function raise(at)
  return function(s, u)
    if s.step == at then error("no cost", 0) end
    return u:square():sum()
  end
end

-- a state that is kept and read when another one is live
local function hoarder()
  local kept
  return function(s, u)
    kept = kept or s
    return s.step == 4 and kept:center("foot"):sum() or u:square():sum()
  end
end

-- reads states from one control step on to another, also of a rollout that fails later; keeps what it read
local function late(first, last)
  return function(s, u, read)
    if s.step < first or s.step > last then return u:square():sum() end
    read[#read + 1] = s:center("foot"):sum():item()
    return read[#read]
  end
end

local function interrupting(s, u)
  if s.step == 1 then engine.C.cq_interrupt(1) end
  return u:square():sum()
end

-- fails in the middle of control step 6
local wild, broken = T.zeros { STEPS, 2 }, T.zeros { STEPS, 2 }
for i = 6, STEPS do wild:set(1000, i, 1) end
broken:data()[8 * 2 + 1] = 0 / 0

-- running, signals (nil: a network gives them), gravity, and what is said
local failing = {
  { name = "an error in running", running = function() return raise(5) end, says = "no cost (in running, control step 5 of 12)" },
  { name = "an error in running, blind", running = function() return raise(5) end, u = wild, says = "in running, control step 5 of 12" },
  { name = "no number", running = function() return function(s, u) return s.step == 3 and u:unsqueeze(1) or 0 end end, says = "must give one number" },
  { name = "unstable", running = function() return raise(100) end, gravity = { 0, -2000 }, says = "the simulation failed at control step" },
  { name = "unstable, blind", running = function() return raise(100) end, u = wild, says = "the simulation failed at control step" },
  { name = "unstable, states read late", running = function() return late(3, 12) end, u = wild, says = "the simulation failed at control step" },
  { name = "unstable, the last good state read", running = function() return late(5, 5) end, u = wild, says = "the simulation failed" },
  { name = "signals not finite", running = function() return raise(100) end, u = broken, says = "signal 2 is nan" },
  { name = "signals not finite, states read late", running = function() return late(3, 12) end, u = broken, says = "in the controller, control step 9 of 12" },
  { name = "a weight not finite", running = function() return raise(1) end, weight = 0 / 0, says = "in the controller, control step 1 of 12" },
  { name = "a state of before", running = hoarder, says = "this state is of control step 1 and the rollout is at 4" },
  { name = "interrupted", running = function() return interrupting end, says = "interrupted at control step 1" },
}

---What goes wrong is told in the same words as by Lua, and after the same calls of running.
---@param device string?
---@return integer count
function costs.failures(device)
  local observer = cq.Observer.centroid { groups = { "foot", "trunk" } }
  local world = scene.world(scene.robot(), { device = device })
  for _, case in ipairs(failing) do
    local said, calls = {}, {}
    for k = 1, 2 do
      local controller = case.u and cq.Controller.open_loop(case.u) or cq.Controller.linear { seed = 3 }
      if not case.u then
        local params = controller:prepare(world, observer)
        if case.weight then params.w1:data()[1] = case.weight end
      end
      local inner, list = case.running(), {}
      calls[k] = list
      said[k] = scene.failure(world, {
        steps = STEPS, gravity = case.gravity, observer = k == 1 and observer or own(observer, "observe"),
        controller = k == 2 and case.u and own(controller, "act") or controller, running = function(s, u)
          list[#list + 1] = s.step
          return inner(s, u, list)
        end,
      })
      engine.C.cq_interrupt(0)
    end
    assert(said[1] == said[2], ("%s: %s\nbut by Lua: %s"):format(case.name, said[1], said[2]))
    assert(said[1]:find(case.says, 1, true), case.name .. ": " .. said[1])
    assert(table.concat(calls[1], " ") == table.concat(calls[2], " "), case.name .. ": running was called for other control steps")
  end
  world:close()
  return #failing
end

---A cost that does not give the same again on the way back is refused, also where it reads a state only then. One that reads a state
---there and gives the same has its gradient.
---@return string[] sentences
function costs.changing()
  local world, calls = scene.world(scene.robot()), 0
  local function gradient(running)
    calls = 0
    local _, grad = T.value_and_grad(function(u)
      return world:rollout { steps = STEPS, controller = cq.Controller.open_loop(u), running = function(s, v)
        calls = calls + 1
        return running(s, v)
      end }.running:sum()
    end)(T.param(spread({ STEPS, 2 }, -0.8, 0.8)))
    return grad
  end
  local function refusal(running) return select(2, pcall(gradient, running)) end
  local plain = gradient(function(_, u) return u:sum() end)
  local read = gradient(function(s, u)
    if calls == STEPS + 4 then s:center("foot"):sum() end
    return u:sum()
  end)
  assert(plain:norm():item() > 0 and plain:equal(read), "a state that is read on the way back alone changes the gradient")
  local out = { refusal(function(_, u) return calls * u:sum() end), refusal(function(s, u) return calls > STEPS and s:center("foot"):sum() or u:sum() end) }
  world:close()
  return out
end

return costs
