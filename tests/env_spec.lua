-- env: environments of reinforcement learning: what a step gives, beginnings, ends, failures, windows with gradients.
local cq = require "cq"
local option = require "cq.option"
local T = require "cq.tensor"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local sentence = require("tests.sentence").of

local function forward(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end
local function motion(state) return state:motion { "foot", "trunk" } end

local function make(more, world)
  local def = { world = world or scene.world(scene.robot()), observer = motion, reward = forward, steps = 6,
    scenes = 2 }
  for name, value in pairs(more or {}) do def[name] = value end
  return cq.Env(def)
end

local function actions(k, scenes) return spread({ scenes or 2, 2 }, -0.9 + 0.1 * k, 0.8 - 0.05 * k) end

local warn = T.warn
setup(function() T.warn = function() end end)
teardown(function() T.warn = warn end)

describe("an environment", function()
  it("gives five results, those of a rollout with the same signals", function()
    local env = make()
    assert.same({ 8 }, env.observation_space.shape)
    assert.same({ 2 }, env.action_space.shape)
    assert.equal(-1, env.action_space.low)
    local first = env:reset { seed = 3 }
    assert.same({ 2, 8 }, first:shape())
    local rows, u = {}, {}
    for k = 1, 5 do
      u[k] = actions(k)
      local z, reward, terminated, truncated, info = env:step(u[k])
      rows[k] = z
      assert.same({ 2 }, reward:shape())
      assert.equal(0, (terminated + truncated + info.failed):sum():item())
      assert.is_true(info.final_observation:equal(z))
      assert.equal(k, info.episode_length:get(1))
    end
    local whole = env.world:rollout { steps = 5, batch = 2, controller = cq.Controller.open_loop(T.stack(u, 2)),
      record = motion }
    for k = 1, 5 do assert.is_true(rows[k]:equal(whole.record[k])) end
  end)

  it("begins again in the step in which an episode is as long as it may be", function()
    local env = make { steps = 3 }
    local first = env:reset()
    local sum = 0
    for k = 1, 3 do
      local z, reward, terminated, truncated, info = env:step(actions(k))
      sum = sum + reward:get(2)
      assert.equal(0, terminated:sum():item())
      assert.equal(k == 3 and 2 or 0, truncated:sum():item())
      assert.equal(k == 3, z:equal(first))
      assert.is_false(info.final_observation:equal(first))
      assert.equal(sum, info.episode_return:get(2))
    end
    local _, _, _, _, info = env:step(actions(1))
    assert.equal(1, info.episode_length:get(1))
  end)

  it("terminates scenes by a list of booleans too, from the largest seed on", function()
    local env = make { terminate = function() return { false, true } end }
    env:reset { seed = 2 ^ 32 }
    assert.same({ 0, 1 }, select(3, env:step(actions(1))):totable())
    assert.matches("env:reset: seed must be a whole number at least 0 and at most 4294967296, got 8589934592",
      sentence(function() env:reset { seed = 2 ^ 33 } end))
  end)

  it("draws variants and goals of each scene, the same by the same seed", function()
    local function fresh()
      local world = scene.world(scene.robot())
      return make({ scenes = 3, steps = 4, reset = function(random)
        local speed = random:uniform({ 2 }, { min = -0.5, max = 0.5 })
        return world.robot:with { velocity = speed, young = random:uniform({}, { min = 8, max = 12 }):item() },
          random:uniform { 2 }
      end, reward = function(_, _, after, goals)
        return -(after:center "trunk" - goals):square():sum(-1)
      end, terminate = function(after)
        return after:center("trunk"):slice(1, 1, -1):flatten():greater(0.4503)
      end }, world)
    end
    local function run(env, seed)
      local all, ended = { env:reset { seed = seed } }, 0
      for k = 1, 6 do
        local z, reward, terminated = env:step(actions(k, 3))
        all[#all + 1], all[#all + 2] = z, reward:unsqueeze(2)
        ended = ended + terminated:sum():item()
      end
      return T.concat(all, 2), ended
    end
    local env = fresh()
    assert.same({ 10 }, env.observation_space.shape)
    local one, ended = run(env, 5)
    local again, other = run(fresh(), 5), run(env, 6)
    assert.is_true(one:equal(again))
    assert.is_true(one:equal((run(env, 5))))
    assert.is_false(one:equal(other))
    assert.is_true(ended > 0)
    assert.is_false(one[1]:equal(one[2]))
    -- a scene with the values of another one is that one
    local z = env:reset { seed = 5 }
    assert.is_true(z:slice(9, 10, 2):equal(one:slice(9, 10, 2)))
  end)

  it("is drawn by --seed where none is given, however large", function()
    local function drawn(seed, given)
      local world, before = scene.world(scene.robot()), option.program.seed
      local env = make({ reset = function(random) return nil, random:uniform { 2 } end }, world)
      option.program.seed = seed
      local z = env:reset { seed = given }:slice(9, 10, 2)
      option.program.seed = before
      return z
    end
    assert.is_true(drawn(nil, nil):equal(drawn(nil, 0)))
    assert.is_true(drawn(7, nil):equal(drawn(nil, 7)))
    assert.is_true(drawn(7, 3):equal(drawn(nil, 3)))
    assert.is_false(drawn(2 ^ 53 - 1, nil)[1]:equal(drawn(2 ^ 53 - 1, nil)[2]))
  end)

  it("keeps goals and observations that the script writes into afterwards", function()
    local kept, seen = T.zeros { 2 }, T.zeros { 2, 8 }
    local other = make()
    local env = make { observer = function(state) return seen:copy_from(motion(state)) end,
      reset = function(_, number) return nil, kept:copy_from(T.full({ 2 }, number)) end }
    local z = env:reset()
    assert.same({ { 1, 1 }, { 2, 2 } }, z:slice(9, 10, 2):totable())
    local function spoil(...)
      for _, tensor in ipairs { ... } do tensor:fill(7) end
    end
    other:reset()
    spoil(z, seen)
    local function zero(z_given)
      spoil(z_given)
      return T.zeros { 2, 2 }
    end
    local window, wanted = env:window { controller = zero, steps = 2 },
      other:window { controller = function() return T.zeros { 2, 2 } end, steps = 2 }
    assert.is_true(window.observation:slice(1, 8, 3):equal(wanted.observation))
    assert.is_true(window.final_observation:slice(1, 8, 3):equal(wanted.final_observation))
    spoil(window.last)
    local after, _, _, _, info = env:step(T.zeros { 2, 2 })
    spoil(after)
    assert.is_false(info.final_observation:equal(after))
    assert.is_true(env:snapshot().observation:slice(1, 8, 2):equal((other:step(T.zeros { 2, 2 }))))
    local again = env:restore(env:snapshot())
    spoil(again)
    assert.is_false(env.observation:equal(again))
  end)

  it("ends a scene whose simulation fails, and goes on with the others", function()
    local world = scene.world(scene.robot(), { walls = {} })
    local function velocity(_, k) return world.robot:with { velocity = k == 2 and { 0, 3.2 } or { 0, 0.8 } } end
    local env = make({ steps = 200, scenes = 3, reset = velocity, failure_reward = -7 }, world)
    local alone = make({ steps = 200, scenes = 3, reset = function() return velocity(nil, 1) end }, world)
    local first = env:reset()
    alone:reset()
    local failed, before = 0, first
    for _ = 1, 60 do
      local z, reward, terminated, truncated, info = env:step(T.zeros { 3, 2 })
      local calm = alone:step(T.zeros { 3, 2 })
      assert.is_true(z[1]:equal(calm[1]) and z[3]:equal(calm[3]))
      if info.failed:get(2) == 1 then
        failed = failed + 1
        assert.equal(1, terminated:get(2))
        assert.equal(-7, reward:get(2))
        assert.equal(0, truncated:sum():item() + terminated:get(1) + info.failed:get(3))
        assert.is_true(info.final_observation[2]:equal(before[2]) and z[2]:equal(first[2]))
      end
      before = z
    end
    assert.is_true(failed > 0)
    assert.equal(failed, env.failures)
  end)
end)

describe("env:window", function()
  local function network() return cq.Controller.mlp { inputs = 8, signals = 2, hidden = { 6 }, seed = 2 } end

  it("has the gradient of a rollout with the controller", function()
    local env, controller = make { steps = 20 }, network()
    local function through(start)
      return T.value_and_grad(function(p)
        start()
        return env:window({ controller = controller:with(p), steps = 8 }).reward:sum()
      end)(controller.params)
    end
    local loss, grads = through(function() env:reset() end)
    local whole, wanted = T.value_and_grad(function(p)
      return env.world:rollout { steps = 8, batch = 2, controller = controller:with(p), observer = motion,
        running = function(state) return forward(nil, nil, state) end }.running:sum()
    end)(controller.params)
    assert.is_true(math.abs(loss - whole) < 1e-12)
    for name, grad in pairs(wanted) do
      assert.is_true((grad - grads[name]):abs():max():item() < 1e-10 * grad:abs():max():item(), name)
    end
    -- it has left the environment at its end, and the next one is cut off there
    assert.equal(8, env.state.step)
    local _, second = through(function() end)
    assert.equal(16, env.state.step)
    assert.is_false(second.w1:equal(grads.w1))
    -- sizes that are not given are those of the environment
    local unsized = cq.Controller.mlp { hidden = { 6 }, seed = 2 }
    env:window { controller = unsized, steps = 1 }
    assert.is_true(unsized.params.w1:equal(controller.params.w1))
    env:window { controller = cq.Controller.sum { a = unsized, b = cq.Controller.linear { scale = 0 } }, steps = 1 }
  end)

  it("goes on over the end of an episode, without gradients through it", function()
    local env, controller = make { steps = 5 }, network()
    env:reset()
    for k = 1, 3 do env:step(actions(k)) end
    local window
    T.value_and_grad(function(p)
      window = env:window { controller = controller:with(p), steps = 5 }
      return window.reward:slice(3, 5, 1):sum()
    end)(controller.params)
    assert.equal(2, window.truncated[2]:sum():item())
    assert.equal(2, window.truncated:sum():item())
    assert.is_true(window.observation[3]:equal(make():reset()))
  end)

  it("has gradients where the reward sees the state before a control step too", function()
    local function gradient(reward, loss)
      local env = make { reward = reward }
      env:reset()
      env:step(actions(1))
      local policy = cq.Controller.mlp { inputs = 8, signals = 2, hidden = { 3 }, seed = 1 }
      policy:act(env.observation)
      local _, g = cq.value_and_grad(function(p)
        return loss(env:window({ controller = policy:with(p), steps = 3 }).reward)
      end)(policy.params)
      return g
    end
    local moved = gradient(function(before, u, after) return forward(nil, u, after) - forward(nil, u, before) end,
      function(reward) return reward:sum() end)
    local reached = gradient(forward, function(reward) return reward[3]:sum() end)
    for name, g in pairs(reached) do
      assert.is_true(g:abs():max():item() > 0)
      assert.is_true((g - moved[name]):abs():max():item() < 1e-9 * g:abs():max():item() + 1e-14)
    end
  end)

  it("goes on from a snapshot in a file with the same bits, with episodes that began at different times", function()
    local function fresh()
      local world = scene.world(scene.robot())
      return make({ scenes = 3, steps = 4, reset = function(random)
        return world.robot:with { velocity = random:uniform({ 2 }, { min = -0.5, max = 0.5 }) }, random:uniform { 1 }
      end, terminate = function(after) return after:center("trunk"):slice(1, 1, -1):flatten():greater(0.4503) end },
        world)
    end
    local path = scratch.open() .. "/env.bin"
    for steps = 0, 7 do
      local env, other = fresh(), fresh()
      assert.equal("env:snapshot: the scenes have not begun; call env:reset() first",
        sentence(function() env:snapshot() end))
      env:reset { seed = 5 }
      for k = 1, steps do env:step(actions(k, 3)) end
      cq.save(path, env:snapshot())
      assert.is_true(other:restore(cq.load(path)):equal(env.observation))
      assert.equal(env.state.step, other.state.step)
      for k = 1, 5 do
        local one, two = { env:step(actions(k, 3)) }, { other:step(actions(k, 3)) }
        for i = 1, 4 do assert.is_true(one[i]:equal(two[i])) end
        assert.is_true(one[5].episode_return:equal(two[5].episode_return))
        assert.is_true(env.state:deformations():equal(other.state:deformations()))
      end
    end
    local saved, two = cq.load(path), make()
    scratch.close()
    -- a control step that was refused has not been
    local wrong
    local env, other = make { reward = function() return T.zeros { wrong and 1 or 2 } end }, make()
    env:reset()
    wrong = true
    assert.is_truthy(sentence(function() env:step(actions(1)) end))
    wrong = false
    env:step(actions(2))
    assert.is_true(other:restore(env:snapshot()):equal(env.observation))
    -- an error of the user's reset ends all episodes
    local draws = 0
    local late = make { steps = 2, reset = function()
      draws = draws + 1
      if draws == 6 then error "no body" end
    end }
    late:reset()
    late:step(actions(1))
    assert.matches("no body", sentence(function() late:step(actions(1)) end))
    assert.equal("env:step: the scenes have not begun; call env:reset() first",
      sentence(function() late:step(actions(1)) end))
    late:reset()
    assert.same({ 1, 1 }, select(5, late:step(actions(1))).episode_length:totable())
    assert.equal("env:restore: the snapshot has 3 scenes, this environment 2",
      sentence(function() two:restore(saved) end))
    -- fields that were changed
    local function says(words, name, value)
      local changed = env:snapshot()
      changed[name] = value
      assert.equal("env:restore: needs what env:snapshot() gave: " .. words,
        sentence(function() two:restore(changed) end))
    end
    assert.equal("env:restore: needs what env:snapshot() gave: it must be a table, got a cq.Env",
      sentence(function() two:restore(env) end))
    says("failures must be a whole number at least 0, got nil", "failures", nil)
    says("step must be at least 1, the count of actions, got 0", "step", 0)
    says("returned must be a tensor, got nil", "returned", nil)
    says("length must be {2}, got {2, 1}", "length", T.zeros { 2, 1 })
    for _, length in ipairs { { 2, 1 }, { 1, -1 }, { 1, 0.5 } } do
      says("length must be of whole numbers, the greatest of them 1, the count of actions", "length", T.tensor(length))
    end
    says("length must be of whole numbers, the greatest of them 0, the count of actions", "actions", nil)
    says("actions must be {1, 2, 2}, got {1, 3, 2}", "actions", T.zeros { 1, 3, 2 })
    says("actions must lie within -1 and 1", "actions", T.zeros { 1, 2, 2 } / 0)
    says("observation must be {2, 8}, got {1}", "observation", T.zeros { 1 })
    says("random of scene 2: it must be a table, got nil", "random", { { seed = 1, position = 0 } })
  end)
end)

describe("what an environment refuses", function()
  it("is told in a sentence", function()
    local env = make()
    assert.equal("env:step: the scenes have not begun; call env:reset() first",
      sentence(function() env:step(actions(1)) end))
    env:reset()
    assert.equal("env:step: actions must be a tensor {2, 2}, a row for each scene, got {3, 2}",
      sentence(function() env:step(actions(1, 3)) end))
    assert.equal("env:step: actions must be finite, got nan in scene 2",
      sentence(function() env:step { { 0, 0 }, { 0, 0 / 0 } } end))
    assert.equal("env:window: steps is 7, an episode has 6; a window is no longer than that",
      sentence(function() env:window { controller = function() return T.zeros { 2, 2 } end, steps = 7 } end))
    local wrong = make { reward = function() return 1 end }
    wrong:reset()
    assert.equal("cq.Env: reward must give {2}, one number a scene, got one number",
      sentence(function() wrong:step(actions(1)) end):gsub("{}", "one number"))
    wrong = make { terminate = function() return true end }
    wrong:reset()
    assert.equal("cq.Env: terminate must give {2}, one number a scene, got {}",
      sentence(function() wrong:step(actions(1)) end))
    local worse = make { terminate = function() return T.zeros { 2 } / 0 * 0 end }
    worse:reset()
    assert.equal("cq.Env: terminate must be finite, got nan in scene 1",
      sentence(function() worse:step(actions(1)) end))
    local numbers = 3
    local narrower = make { observer = function() return T.ones { 2, numbers } end }
    narrower:reset()
    numbers = 1
    assert.equal("cq.Env: the observer must always give the same count of numbers; the observation of a scene has 1, "
      .. "and had 3 when the environment was made", sentence(function() narrower:step(actions(1)) end))
    for variant, got in pairs { [3] = "3", [T.zeros { 2 }] = "a cq.Tensor", [{ 0.5 }] = "a list of 1" } do
      assert.equal("cq.Env: reset must give a variant of the robot, or nil, and then a goal, got " .. got,
        sentence(function() make { reset = function() return variant end } end))
    end
    assert.equal("cq.Env: the goal of reset must be finite, it is not for scene 1",
      sentence(function() make { reset = function() return nil, 0 / 0 end } end))
    local function window(text, controller)
      assert.is_truthy(sentence(function() env:window { controller = controller, steps = 2 } end)
        :find("env:window: " .. text, 1, true))
    end
    window("the controller follows the time", cq.Controller.sines {})
    for _, part in ipairs { cq.Controller.sines {}, cq.Controller.open_loop { steps = 100 } } do
      local sum = cq.Controller.sum { rhythm = part, feedback = cq.Controller.linear {} }
      window("the part rhythm of the controller follows the time", sum)
      window("the part rhythm of the controller follows the time", cq.Controller.sum { whole = sum })
    end
    window("the controller remembers something", function(_, hidden) return T.zeros { 2, 2 }, (hidden or 0) + 1 end)
    local acceleration = cq.Observer.centroid { groups = { "trunk" }, acceleration = true }
    assert.is_truthy(sentence(function() make { observer = acceleration } end):find("the observer remembers", 1, true))
    assert.is_truthy(sentence(function() make { observer = cq.Observer.centroid { groups = "trunk", clock = 3 } } end)
      :find("cq.Env: the observer's clock shows the time", 1, true))
    local timed = cq.World { cells = { 24, 24 }, dx = 1 / 24, dt = 6e-3, substeps = 3,
      gravity = function(t) return { 0, -t } end, scene.robot():at { 0.4, 0.4 } }
    assert.is_truthy(sentence(function() make({}, timed) end):find("follow the time", 1, true))
  end)
end)
