-- learner: PPO's loss against a restatement number by number, its bits, and a regulator whose best cost is known.
local cq = require "cq"
local T = require "cq.tensor"
local engine = require "cq.base.engine"
local host = require "cq.host"
local ppo = require "cq.learn.ppo"
local regulator = require "tests.regulator"
local scene = require "tests.scene"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local process = require "tests.process"
local sentence_of = require "tests.sentence"
local tables = require "cq.base.tables"

local sentence = sentence_of.of

-- scenes of a simulation that end at different times
local function small_env()
  local world = scene.world(scene.robot())
  return cq.Env { world = world, steps = 3, scenes = 2,
    observer = function(state) return state:motion { "foot", "trunk" } end,
    reset = function(random)
      return world.robot:with { velocity = random:uniform({ 2 }, { min = -0.5, max = 0.5 }) }
    end,
    reward = function(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end,
    terminate = function(after) return after:center("trunk"):slice(1, 1, -1):flatten():greater(0.4503) end }
end

local options = { clip = 0.2, entropy_weight = 0.01 }

-- small parameters and a minibatch in which ratios and values are clipped on both sides
local function problem()
  local learner = cq.Learner.ppo { env = regulator.env(4), steps = 64, batch = 64, minibatches = 2, hidden = { 3 } }
  local params = learner.params
  for _, tensor in pairs(params) do tensor:copy_from(tensor:detach() + spread(tensor:shape(), -0.3, 0.4)) end
  return params, { observation = spread({ 8, 2 }, -1, 1), action = spread({ 8, 1 }, -1.2, 1.1),
    log_density = spread({ 8 }, -1.9, -0.8), advantage = spread({ 8 }, -2, 1.5), target = spread({ 8 }, -1, 2),
    value = spread({ 8 }, 1, -0.6) }
end

-- the loss in plain numbers
local function restated(p, b)
  local function net(name, row)
    local h, out = {}, p[name .. "_b2"]:get(1)
    for j = 1, 3 do
      local sum = p[name .. "_b1"]:get(j)
      for i = 1, 2 do sum = sum + b.observation:get(row, i) * p[name .. "_w1"]:get(i, j) end
      h[j] = math.tanh(sum)
      out = out + h[j] * p[name .. "_w2"]:get(j, 1)
    end
    return out
  end
  local n, mean, square = 8, 0, 0
  for k = 1, n do mean = mean + b.advantage:get(k) / n end
  for k = 1, n do square = square + (b.advantage:get(k) - mean) ^ 2 / (n - 1) end
  local s, policy, value = p.log_deviation:get(1), 0, 0
  for k = 1, n do
    local density = -0.5 * ((b.action:get(k, 1) - net("mean", k)) / math.exp(s)) ^ 2 - s - 0.5 * math.log(2 * math.pi)
    local ratio, a = math.exp(density - b.log_density:get(k)), (b.advantage:get(k) - mean) / (math.sqrt(square) + 1e-8)
    policy = policy + math.max(-a * ratio, -a * math.min(math.max(ratio, 0.8), 1.2)) / n
    local v, old, target = net("value", k), b.value:get(k), b.target:get(k)
    local near = old + math.min(math.max(v - old, -0.2), 0.2)
    value = value + 0.5 * math.max((v - target) ^ 2, (near - target) ^ 2) / n
  end
  return policy + 0.5 * value - 0.01 * (s + 0.5 + 0.5 * math.log(2 * math.pi))
end

describe("PPO", function()
  it("has the loss and the gradient of a plain restatement", function()
    local params, batch = problem()
    local loss, gradient = T.value_and_grad(function(p) return (ppo.loss(p, batch, options)) end)(params)
    assert.is_true(math.abs(loss - restated(params, batch)) < 1e-12)
    local h, count = 1e-6, 0
    for name, tensor in pairs(params) do
      local data = tensor:data()
      for k = 0, tensor.count - 1 do
        local was = data[k]
        data[k] = was + h
        local more = restated(params, batch)
        data[k] = was - h
        local less = restated(params, batch)
        data[k] = was
        local wanted, got = (more - less) / (2 * h), gradient[name]:data()[k]
        assert.is_true(math.abs(wanted - got) < 1e-6 * math.max(1, math.abs(wanted)), name)
        count = count + (got ~= 0 and 1 or 0)
      end
    end
    assert.is_true(count > 20)
  end)

  it("comes within 2 % of the best cost of a linear-quadratic regulator", function()
    local gains = regulator.best()
    local best = regulator.cost(function(z) return z:matmul(gains) end)
    for seed = 1, 2 do
      local learner = cq.Learner.ppo { env = regulator.env(16), steps = 2048 * 30, minibatches = 16,
        hidden = { 32, 32 }, rate = 1e-3, gamma = regulator.gamma, seed = seed }
      learner:train()
      assert.equal(30, #learner.history)
      local row = learner.history[30]
      assert.equal(61440, row.steps)
      assert.equal(regulator.steps, row.episode_length)
      assert.is_true(row.kl >= 0 and row.clip_fraction <= 1 and row.explained_variance <= 1)
      local controller = learner:controller()
      local cost = regulator.cost(function(z) return controller:act(z) end)
      assert.is_true(cost < 1.02 * best, ("seed %d: cost %g, the best is %g"):format(seed, cost, best))
    end
  end)

  it("goes on from its folder with the same bits, after Ctrl-C too", function()
    local function make()
      return cq.Learner.ppo { env = small_env(), steps = 24, batch = 8, minibatches = 2, epochs = 2, hidden = { 4 },
        rate = 1e-2, seed = 3 }
    end
    local whole = make()
    whole:train()
    local folder = scratch.open() .. "/"
    for _, how in ipairs { "stop", "interrupt" } do
      local part = make()
      part:train { folder = folder .. how, on_update = function(row)
        if how == "interrupt" and row.steps == 16 then engine.C.cq_interrupt(1) end
        return how == "stop" and row.steps == 16
      end }
      engine.C.cq_interrupt(0)
      assert.equal(2, part.updates_made)
      local rest = make()
      rest:train { folder = folder .. how, resume = true }
      assert.equal(3, #rest.history)
      assert.equal(24, rest.steps_made)
      for name, tensor in pairs(whole.params) do assert.is_true(tensor:equal(rest.params[name]), name) end
      for _, name in ipairs { "kl", "policy_loss", "episode_return", "reward", "loss" } do
        assert.equal(whole.history[3][name], rest.history[3][name])
      end
    end
    scratch.close()
  end)

  it("goes on with the same groups alone, where they are saved", function()
    local function seeing(groups)
      local env = small_env()
      env = cq.Env { world = env.world, steps = 3, scenes = 2, reward = env.reward,
        observer = cq.Observer.centroid { groups = groups } }
      return cq.Learner.ppo { env = env, steps = 16, batch = 16, minibatches = 2, epochs = 1, hidden = { 3 } }
    end
    local state = seeing({ "foot", "trunk" }):state()
    seeing({ "foot", "trunk" }):restore(state)
    local other = seeing { "trunk", "foot" }
    assert.matches("of another problem: env.observer.groups was {foot, trunk} and is {trunk, foot}",
      sentence(function() other:restore(state) end))
    for name in pairs(state.signature.problem) do
      if name:find "^env%.observer" then state.signature.problem[name] = nil end
    end
    other:restore(state)
  end)

  it("goes on with more steps, and refuses a folder of another training before it touches it", function()
    local folder = scratch.open() .. "/"
    local function small(more)
      local def = { env = small_env(), steps = 32, batch = 16, minibatches = 2, epochs = 1, hidden = { 3 }, seed = 4 }
      for name, value in pairs(more or {}) do def[name] = value end
      return cq.Learner.ppo(def)
    end
    small():train { folder = folder .. "a" }
    local function read(name)
      local file = assert(io.open(folder .. "a/" .. name))
      local bytes = file:read "*a"
      file:close()
      return bytes
    end
    local manifest, history = read "manifest.json", read "history.csv"
    local function refused(words, learner)
      local said = sentence(function() learner:train { folder = folder .. "a", resume = true } end)
      assert(said:find(words, 1, true), said)
      assert.equal(manifest, read "manifest.json")
      assert.equal(history, read "history.csv")
    end
    refused("learner:train: what was saved is of another problem: batch was 16 and is 32", small { batch = 32, steps = 64 })
    refused("hidden was {3} and is {4}", small { hidden = { 4 } })
    refused("learner:train: the state is of cq.Learner.ppo, this is cq.Learner.shac",
      cq.Learner.shac { env = small_env(), steps = 32, horizon = 3, hidden = { 3 } })
    local more = small { steps = 64 }
    more:train { folder = folder .. "a", resume = true }
    assert.same({ 4, 4, 64 }, { more.updates_made, #more.history, more.steps_made })

    -- fields of a state that were changed
    local function damaged(words, change)
      local state = more:state()
      change(state)
      assert.equal("learner:restore: the state is damaged: " .. words,
        sentence(function() small({ steps = 64 }):restore(state) end))
    end
    damaged("updates_made must be a whole number at least 0, got nil", function(s) s.updates_made = nil end)
    damaged("steps_made must be a whole number at least 0, got -1", function(s) s.steps_made = -1 end)
    damaged("kept.seen must be a tensor {2, 8}, got nil", function(s) s.kept.seen = nil end)
    damaged("kept.discounted must be a tensor {2}, got {3}", function(s) s.kept.discounted = T.zeros { 3 } end)
    damaged("parts.observations must be a table, got nil", function(s) s.parts.observations = nil end)
    damaged("running means: mean must be {8}, got {3}", function(s) s.parts.observations.mean = T.zeros { 3 } end)

    -- what cannot be restored as a whole leaves the learner as it was
    local other = small { steps = 32 }
    other:train()
    local before = other:state()
    for _, spoil in ipairs {
      function(s) s.parts.observations.mean = T.zeros { 3 } end,
      function(s) s.parts.optimizer.moments = {} end,
      function(s) s.env.length = T.zeros { 5 } end,
    } do
      local state = more:state()
      spoil(state)
      sentence(function() other:restore(state) end)
      local after = other:state()
      assert.same({ before.updates_made, before.steps_made }, { after.updates_made, after.steps_made })
      local found = T.leaves.by_path(after)
      for _, leaf in ipairs(T.leaves.list(before)) do
        assert.is_true(leaf.tensor:equal(found[leaf.path]), leaf.path)
      end
    end

    T.save(folder .. "a/optimizer.bin", { iteration = 2, params = {}, optimizer = { kind = "adam" } })
    manifest, history = read "manifest.json", read "history.csv"
    refused("a/optimizer.bin has no state of a learner, and needs one from learner:state()", small())
    -- learners read no --from
    process.write(folder .. "a/optimizer.bin", (read "optimizer.bin":sub(1, 40)))
    local said = sentence(function() small():train { folder = folder .. "a", resume = true } end)
    assert.matches("is cut short: it ends after 40 bytes; start without %-%-resume$", said)
    scratch.close()
  end)

  it("writes to --out where no other run of the script is", function()
    local folder = process.folder()
    local path = process.write(folder .. "/own.lua", [[
local cq, regulator = require "cq", require "tests.regulator"
if cq.option("other", false) then
  local other = require("cq.run").open { iterations = 1 }
  other:record { loss = 1 }
  other:finish({}, {})
end
local env = regulator.env(4)
if cq.option("saves", true) then
  function env.snapshot() return {} end
  function env.restore() end
end
local learner = cq.Learner.ppo { env = env, steps = cq.option("steps", 64), batch = 32, minibatches = 2,
  hidden = { 3 }, rate = cq.option("rate", 1e-3) }
learner:train { folder = cq.option("folder", "none") ~= "none" and cq.option("folder", "") or nil,
  on_update = function() if cq.option("stop", false) then io.popen("kill -INT $PPID"):close() end end }
]])
    local function run(...) return process.cqlua { path, "--out", folder .. "/out", ... } end
    local function exists(name) return host.kind(folder .. "/" .. name) ~= nil end
    local alone = run()
    assert.same({ 0, true }, { alone.code, exists "out/history.csv" })
    -- it goes on with more steps, as learners may, and warns of other options that are changed
    local longer = run("--resume", "--steps", "128", "--rate", "1e-4")
    assert(longer.err:find("goes on with other options: rate was 0.001 and is 0.0001;", 1, true), longer.err)
    local other = run("--other", "--overwrite")
    assert.equal(0, other.code, other.err)
    assert(other.err:find("--out has another run of the script; nothing of it is written", 1, true), other.err)
    assert.is_false(exists "out-earlier-1")
    assert.equal("", run("--other", "--overwrite", "--quiet").err)
    -- and Ctrl-C does not say that it is kept where the other one is
    local stopped = run("--other", "--overwrite", "--stop")
    assert.equal(130, stopped.code, stopped.err)
    assert(stopped.err:find("interrupted after update 1 of cq.Learner.ppo, which writes to no folder; it is lost unless "
      .. "the script keeps it\n", 1, true), stopped.err)
    assert.is_nil(stopped.err:find("is kept in", 1, true), stopped.err)
    -- an environment of one's own that cannot be saved
    local unsaved = run("--saves", "no", "--overwrite")
    assert.equal(0, unsaved.code, unsaved.err)
    assert(unsaved.err:find("is not used, as the environment has no snapshot() and restore()", 1, true), unsaved.err)
    local refused = run("--saves", "no", "--folder", folder .. "/named")
    assert(refused.err:find("own.lua:14: learner:train: folder: the environment has no snapshot() and restore(), which "
      .. "cq.Env has; give it both, or train without a folder", 1, true), refused.err)
    assert.is_false(exists "named")
    process.remove(folder)
  end)

  it("keeps a controller as it was", function()
    local learner = cq.Learner.ppo { env = regulator.env(4), steps = 128, batch = 64, minibatches = 2, hidden = { 3 } }
    local z, first = spread({ 3, 2 }, -1, 1), nil
    learner:train { on_update = function()
      first = first or { controller = learner:controller(), u = learner:controller():act(z) }
    end }
    learner.updates = learner.updates + 1
    assert.equal("learner:train: on_update must give true or false, got 0; in Lua every number is true, also 0: compare "
      .. "it, as in value < 0", sentence(function() learner:train { on_update = function() return 0 end } end))
    assert.is_true(first.controller:act(z):equal(first.u))
    assert.is_false(learner:controller():act(z):equal(first.u))
    assert.equal("cq.Controller.mlp: mean and deviation have 2 observations, and there are 3",
      sentence(function() learner:controller():act(spread({ 2, 3 }, -1, 1)) end))
  end)

  it("leaves a policy that can be used without its script", function()
    local scratched = scratch.open()
    local observer = cq.Observer.centroid { groups = { "foot", "trunk" }, velocity = true }
    for kind, more in pairs { ppo = { batch = 8, minibatches = 2 }, shac = { horizon = 2 } } do
      local env, folder = small_env(), scratched .. "/" .. kind
      env = cq.Env { world = env.world, steps = 3, scenes = 2, observer = observer, reward = env.reward }
      local learner = cq.Learner[kind](tables.merged(more, { env = env, steps = 24, hidden = { 4, 3 }, seed = 3 }))
      local row = learner:train { folder = folder }
      row = row[#row]
      local saved = cq.load(folder)
      assert.same({ row.loss, #learner.history }, { saved.result.loss, saved.result.iteration })
      assert.equal(-row.reward, row.loss)
      local own, theirs = env.world:rollout { steps = 3, observer = observer, controller = learner:controller() },
        saved:rollout()
      assert.is_true(own.state:positions():equal(theirs.state:positions()))
      local z = observer:observe(own.state)
      local _, module = assert(loadfile(saved.controller:export(folder .. "/policy.lua")))()
      assert.is_nil(module)
      local policy, x = dofile(folder .. "/policy.lua"), z:totable()
      local positions, velocities = {}, {}
      for k = 1, 4 do positions[k], velocities[k] = x[k], x[4 + k] end
      local u = policy.step({ position = positions, velocity = velocities }, policy.start())
      for k, value in ipairs(learner:controller():act(z):totable()) do assert.near(value, u[k], 1e-12) end
      -- one that was in no rollout knows world and observer of its environment
      learner:controller():export(folder .. "/own.lua")
      assert.equal(process.read(folder .. "/policy.lua"):gsub("policy", "own"), (process.read(folder .. "/own.lua")))
    end
    -- a goal stands behind the observation, and a learner that is trained already leaves its policy too
    local world = scene.world(scene.robot())
    local env = cq.Env { world = world, steps = 3, scenes = 2, observer = observer,
      reset = function(random) return world.robot, random:uniform { 1 } end,
      reward = function(_, _, after) return after:center("trunk"):slice(1, 1, -1):flatten() end }
    local function make() return cq.Learner.ppo { env = env, steps = 8, batch = 8, minibatches = 2, hidden = { 3 } } end
    local trained, again = make(), make()
    trained:train()
    again:restore(trained:state())
    again:train { folder = scratched .. "/goals" }
    local of_goals = cq.load(scratched .. "/goals")
    assert.is_nil(of_goals.result)
    assert.matches("the controller takes 9 observations, and its observer gives 8; where goals stand behind them, give",
      sentence(function() of_goals.controller:export(scratched .. "/goals.h") end))
    sentence_of.refuses(function() of_goals:rollout() end, "saved:rollout: the policy of " .. scratched
      .. "/goals/saved.bin takes the goal of its scene, 1 number, behind the observation; give observer = a function of")
    local function own(state) return cq.concat({ observer:observe(state), cq.zeros { 1 } }, -1) end
    assert.equal(3, of_goals:rollout({ observer = own }).state.step)
    of_goals.controller:export(scratched .. "/goals.h", { observer = own })
    assert.matches("float observation%[9%]", process.read(scratched .. "/goals.h"))
    -- an observer of the script's own is given again
    local blind = cq.Learner.ppo { env = small_env(), steps = 8, batch = 8, minibatches = 2, hidden = { 3 } }
    blind:train { folder = scratched .. "/blind" }
    local kept = cq.load(scratched .. "/blind")
    assert.matches("its observer is the script's own %(.*learner_spec.lua:%d+%); give saved:rollout { observer = f }",
      sentence(function() kept:rollout() end))
    local given = kept:rollout { observer = blind.env.observer }
    assert.is_true(given.state:positions():equal(blind.env.world:rollout({ steps = 3, observer = blind.env.observer,
      controller = blind:controller() }).state:positions()))
    -- an environment of the script's own: the policy alone
    env = regulator.env(4)
    function env.snapshot() return {} end
    function env.restore() end
    local learner = cq.Learner.ppo { env = env, steps = 64, batch = 32, minibatches = 2, hidden = { 3 } }
    learner:train { folder = scratched .. "/own" }
    local saved, z = cq.load(scratched .. "/own"), spread({ 3, 2 }, -1, 1)
    assert.is_true(saved.controller:act(z):equal(learner:controller():act(z)))
    assert.matches("has parameters alone; it was made by", sentence(function() return saved.robot end))
    scratch.close()
  end)

  it("scales rewards by the returns within episodes", function()
    -- the return so far is 0 for four steps and -100 in the fifth: its deviation is 40
    local step, env = 0, { scenes = 1, observation_space = { shape = { 1 } }, action_space = { shape = { 1 } } }
    function env.reset() return T.zeros { 1, 1 } end
    function env.step()
      step = step + 1
      local last = step % 5 == 0 and 1 or 0
      return T.full({ 1, 1 }, step % 5), T { -100 * last }, T { last }, T.zeros { 1 },
        { episode_return = T { -100 }, episode_length = T { 5 } }
    end
    local learner = cq.Learner.ppo { env = env, steps = 2000, batch = 100, minibatches = 2, epochs = 1, hidden = { 4 } }
    learner:train()
    assert.near(-20, learner.rewards.mean:item(), 1e-3)
    assert.near(40, learner.rewards:deviation():item(), 1e-3)
  end)

  it("keeps the running means that go with its weights where an update is broken off", function()
    local steps, stops, env = 0, nil, small_env()
    local own = setmetatable({}, { __index = env })
    function own.reset(_, how) return env:reset(how) end
    function own.step(_, u)
      steps = steps + 1
      if steps == stops then
        engine.C.cq_interrupt(1)
        error "interrupted"
      end
      return env:step(u)
    end
    local function make(env_of)
      return cq.Learner.ppo { env = env_of, steps = 24, batch = 8, minibatches = 2, epochs = 1, hidden = { 4 },
        seed = 3 }
    end
    local whole, part = make(small_env()), make(own)
    whole:train { on_update = function(_, learner) return learner.updates_made == 1 end }
    stops = 6
    part:train()
    engine.C.cq_interrupt(0)
    assert.equal(1, part.updates_made)
    assert.is_true(whole.observations.mean:equal(part.observations.mean))
    assert.is_true(whole.observations.variance:equal(part.observations.variance))
  end)

  it("says which update diverges, and what to do", function()
    local said = sentence(function()
      cq.Learner.ppo { env = regulator.env(4), steps = 640, batch = 64, minibatches = 2, rate = 1e30 }:train()
    end)
    assert(said:find "which is no finite number; update %d+ of cq.Learner.ppo diverges: take a smaller rate %(1e%+30%)",
      said)
  end)

  it("refuses what it cannot divide, and a policy that no controller can be", function()
    local env = regulator.env(16)
    for _, kind in ipairs { "ppo", "shac" } do
      assert.equal(("cq.Learner.%s: hidden must be a list of whole numbers at least 1, got an empty table"):format(kind),
        sentence(function() cq.Learner[kind] { env = env, steps = 1e4, hidden = {} } end))
    end
    assert.equal("cq.Learner.ppo: batch is 100, no multiple of the 16 scenes of the environment",
      sentence(function() cq.Learner.ppo { env = env, steps = 1000, batch = 100 } end))
    assert.equal("cq.Learner.ppo: batch is 176, which 32 minibatches do not divide",
      sentence(function() cq.Learner.ppo { env = env, steps = 1000, batch = 176 } end))
    assert.equal("cq.Learner.ppo: minibatches is 32, for a batch of 32: a minibatch needs two rows, since advantages are "
      .. "taken from their mean in it", sentence(function() cq.Learner.ppo { env = env, steps = 1000, batch = 32 } end))
    assert.equal("cq.Learner.ppo: steps is 100, fewer than the 2048 of one batch",
      sentence(function() cq.Learner.ppo { env = env, steps = 100 } end))
  end)
end)

describe("an environment of one's own", function()
  local scenes = 4
  local function zeros() return T.zeros { scenes } end

  -- one whose actions are rewarded where they are the observation; changed: its methods and fields that are others
  local function own(changed)
    local env = { scenes = scenes, observation_space = { shape = { 1 } }, action_space = { shape = { 1 } } }
    local draws, target, step = cq.random { seed = 5 }, nil, 0
    local function observe()
      target = draws:uniform({ scenes, 1 }, { min = -1, max = 1 })
      return env.given(target)
    end
    function env.given(z) return z end
    function env.taken(u) return u:clamp(-0.3, 0.3) end
    function env.reset() return observe() end
    function env.window() end
    function env.step(_, u)
      step = step + 1
      local reward = -(env.taken(u) - target):square():sum(-1)
      return observe(), reward, zeros(), T.full({ scenes }, step % 10 == 0 and 1 or 0),
        { final_observation = T.zeros { scenes, 1 }, episode_return = zeros(), episode_length = zeros() }
    end
    return tables.merged(env, changed), env
  end

  local function learner_of(env)
    return cq.Learner.ppo { env = env, steps = 160, batch = 80, minibatches = 2, epochs = 2, hidden = { 4 },
      rate = 1e-2, seed = 1, normalize_observations = false }
  end

  it("may give the same tensor again, and change the actions that it gets", function()
    local same, changed = own()
    local kept = T.zeros { scenes, 1 }
    function changed.given(z)
      kept:copy_from(z)
      return kept
    end
    function changed.taken(u)
      for k = 1, scenes do u:set(math.max(-0.3, math.min(0.3, u:get(k, 1))), k, 1) end
      return u
    end
    local plain, reuses = learner_of((own())), learner_of(same)
    plain:train()
    reuses:train()
    for name, tensor in pairs(plain.params) do assert.is_true(tensor:equal(reuses.params[name]), name) end
  end)

  it("is not gone on with after an end that is both terminated and truncated", function()
    local function trained(truncated)
      local learner = learner_of((own { step = function(_, u)
        return T.zeros { scenes, 1 }, u:sum(-1), T.ones { scenes }, truncated,
          { final_observation = T.ones { scenes, 1 }, episode_return = zeros(), episode_length = zeros() }
      end }))
      learner:train()
      return learner.params.value_w1
    end
    assert.is_true(trained(T.ones { scenes }):equal(trained(zeros())))
  end)

  it("may give any numbers where no episode ends", function()
    -- Trains with an environment in which one scene ends at a time, and what is read at an end is 0 / divisor
    -- elsewhere, or no tensor in steps without an end; returns the learner. kind: "ppo" or "shac".
    local function trained(divisor, kind)
      local x, step = T.zeros { scenes, 1 }, 0
      local function masked(mask, value) return T.where(mask, value, T.zeros(mask:shape()) / divisor) end
      local env = own { reset = function() return x end }
      function env.step(_, u)
        x, step = (0.5 * x + u):clamp(-2, 2), step + 1
        local ends = T.zeros { scenes }
        if step % 2 == 0 then ends:set(1, step / 2 % scenes + 1) end
        local info = { episode_return = masked(ends, T.full({ scenes }, step)),
          episode_length = masked(ends, T.full({ scenes }, 8)), final_observation = masked(ends:unsqueeze(2), x) }
        return x, -x:square():sum(-1), zeros(), ends, step % 2 == 0 and info or { episode_return = divisor }
      end
      function env.window(_, def)
        local rows = {}
        for k = 1, def.steps do
          local before = x:detach()
          local last, reward, terminated, truncated = env:step(def.controller(before))
          rows[k] = { observation = before, final_observation = last, reward = reward, terminated = terminated,
            truncated = truncated, failed = zeros(), episode_return = masked(truncated, T.full({ scenes }, step)),
            episode_length = masked(truncated, T.full({ scenes }, 8)) }
        end
        local out = {}
        for name in pairs(rows[1]) do
          local list = {}
          for k, row in ipairs(rows) do list[k] = row[name] end
          out[name] = T.stack(list, 1)
        end
        return out
      end
      local learner = kind == "ppo" and learner_of(env)
        or cq.Learner.shac { env = env, steps = 64, horizon = 4, hidden = { 3 }, seed = 1 }
      local history = learner:train()
      assert.is_true(history[1].episodes > 0 and history[1].episode_length == 8)
      return learner
    end
    for _, kind in ipairs { "ppo", "shac" } do
      local plain, odd = trained(1, kind), trained(0, kind)
      for name, tensor in pairs(plain.params) do assert.is_true(tensor:equal(odd.params[name]), name) end
      assert.equal(plain.history[1].episode_return, odd.history[1].episode_return)
    end
  end)

  it("is told in a sentence which of its results is wrong", function()
    local function says(words, changed, kind)
      local said = sentence(function()
        local env = own(changed)
        if kind == "shac" then
          cq.Learner.shac({ env = env, steps = 64, horizon = 2, hidden = { 3 } }):train()
        else
          learner_of(env):train()
        end
      end)
      assert.equal(("cq.Learner.%s: %s"):format(kind or "ppo", words), said)
    end
    local is_one = "env must be a cq.Env, or have its scenes, observation_space, action_space, reset and step: "
    says(is_one .. "step must be a function, got 3", { step = 3 })
    says(is_one .. "scenes must be a whole number at least 1, got 1.5", { scenes = 1.5 })
    says(is_one .. "observation_space.shape must be { count }, the count of numbers a scene, got a list of 2",
      { observation_space = { shape = { 3, 2 } } })
    says(is_one .. "action_space.shape must be { count }, the count of numbers a scene, got nil", { action_space = {} })
    for _, wrong in ipairs { { nil, "nil" }, { 3, "3" }, { "x", '"x"' }, { { 1 }, "a list of 1" },
        { T.zeros { scenes }, "{4}" }, { T.zeros { scenes, 3 }, "{4, 3}" } } do
      local function reset() return wrong[1] end
      says("env:reset must give observations as a tensor {4, 1}, got " .. wrong[2], { reset = reset })
      says("env:reset must give observations as a tensor {4, 1}, got " .. wrong[2], { reset = reset }, "shac")
    end
    -- which: of the five results, another value in its place
    local function steps(words, which, value)
      says("env:step must give " .. words, { step = function()
        local results = { T.zeros { scenes, 1 }, zeros(), zeros(), zeros(), {} }
        results[which] = value
        return unpack(results, 1, 5)
      end })
    end
    local z, reward = "observations, its first result, as ", "reward, its second result, as "
    steps(z .. "a tensor {4, 1}, got nil", 1, nil)
    steps(z .. "a tensor {4, 1}, got {1, 1}", 1, T.zeros { 1, 1 })
    steps(z .. "finite numbers, got nan", 1, T.zeros { scenes, 1 } / 0)
    steps(reward .. "a tensor {4}, got 0.5", 2, 0.5)
    steps(reward .. "a tensor {4}, got {1}", 2, T.zeros { 1 })
    steps(reward .. "a tensor {4}, got {4, 1}", 2, T.zeros { scenes, 1 })
    steps(reward .. "finite numbers, got inf", 2, T.full({ scenes }, math.huge))
    steps("terminated, its third result, as a tensor {4}, got {1}", 3, T.zeros { 1 })
    steps("terminated, its third result, as ones and zeros, it has other numbers", 3, T.full({ scenes }, 5))
    steps("truncated, its fourth result, as a tensor {4}, got false", 4, false)
    steps("info, its fifth result, as a table, got nil", 5, nil)
    steps("info.episode_return as a tensor {4}, got nil", 4, T.ones { scenes })
    says("env:step must give info.episode_length as finite numbers, got nan", { step = function()
      return T.zeros { scenes, 1 }, zeros(), T.tensor { 1, 0, 0, 0 }, zeros(),
        { episode_return = zeros(), episode_length = zeros() / 0 }
    end })
    says("env:window must give a table of tensors, got nil", { window = function() end }, "shac")
    says("env:window must give observation as a tensor {2, 4, 1}, got {4, 1}",
      { window = function() return { observation = T.zeros { scenes, 1 } } end }, "shac")
  end)
end)
