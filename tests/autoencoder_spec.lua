-- autoencoder: an observer that learns what to see: its network beside PCA, its pictures, gradients through it to the
-- state and to its weights, what it collects, and a run of it as data.
local cq = require "cq"
local engine = require "cq.base.engine"
local option = require "cq.option"
local T = require "cq.tensor"
local scene = require "tests.scene"
local spread = require "tests.spread"
local symmetric = require "cq.tensor.symmetric"
local process = require "tests.process"
local mistake = require "tests.sentence"

local function adam(rate) return cq.Optimizer.adam { rate = rate or 1e-3 } end

local function small(more)
  local def = { window = { 16, 8 }, latent = 3, layers = { 4, 6 }, dense = 10 }
  for name, value in pairs(more or {}) do def[name] = value end
  return cq.Observer.autoencoder(def)
end

-- pictures of a patch that moves and turns: {n, 3, rows, columns}
local function pictures(n, size)
  local out, random = T.zeros { n, 3, unpack(size) }, cq.random { seed = 3 }
  for k = 1, n do
    local a, b, c = random:normal():item(), random:normal():item(), random:normal():item()
    for i = 1, size[1] do
      for j = 1, size[2] do
        local wave = math.sin(0.7 * i + 0.2 * a) + 0.3 * b * j / size[2]
        out:set(a + 0.2 * wave, k, 1, i, j)
        out:set(b * wave + 0.1 * c * i, k, 2, i, j)
        out:set(1 + 0.1 * c * math.cos(j), k, 3, i, j)
      end
    end
  end
  return out
end

-- mean squared error of the best linear autoencoder: the eigenvalues of the covariance that a latent vector leaves out
local function pca_error(x, latent)
  local n, flat = x:size(1), x:reshape { x:size(1), -1 }
  flat = flat - flat:mean(1)
  local values = symmetric.eigen((flat:transpose():matmul(flat) / n):totable())
  table.sort(values)
  local left = 0
  for k = 1, #values - latent do left = left + values[k] end
  return left / #values
end

describe("an autoencoder", function()
  it("without convolutions, activations and noise finds what PCA finds", function()
    local seen = pictures(60, { 4, 5 })
    local eye = cq.Observer.autoencoder { window = { 5, 4 }, latent = 2, layers = {}, dense = 0, beta = 0 }
    -- all channels by the same scale from the first fit on: PCA of the scaled numbers
    local optimizer = adam(1e-2)
    for _, rate in ipairs { 1e-2, 3e-3, 1e-3, 3e-4 } do
      optimizer.rate = rate
      eye:fit { pictures = seen, optimizer = optimizer, iterations = 500, batch = 60 }
    end
    local error = eye:error_of(seen)
    local best = pca_error(seen / eye.weights.scale:reshape { 3, 1, 1 }, 2)
    assert(error > best * (1 - 1e-9) and error < 1.01 * best, ("%.6g, PCA %.6g"):format(error, best))
  end)

  it("learns pictures by convolutions, the same bits by the same seed", function()
    local seen = pictures(40, { 8, 16 })
    local eye, again = small(), small()
    local history = eye:fit { pictures = seen, optimizer = adam(3e-3), iterations = 250, batch = 16 }
    assert(eye:error_of(seen) < 0.4 * history.reconstruction[1], eye:error_of(seen) / history.reconstruction[1])
    assert.equal(250, #history.loss)
    assert(history.divergence[250] > 0)
    assert.near(history.loss[250], history.reconstruction[250] + 1e-3 * history.divergence[250], 1e-12)
    local other = again:fit { pictures = seen, optimizer = adam(3e-3), iterations = 250, batch = 16 }
    assert.same(history.loss, other.loss)
    for name, value in pairs(eye.weights) do assert.is_true(value:equal(again.weights[name]), name) end
    local fifth, before = small { seed = 5 }, option.program.seed
    assert.is_false(fifth.weights.w_conv1:equal(again.weights.w_conv1))
    option.program.seed = 5
    local by_program, own = small(), small { seed = 0 }
    option.program.seed = 2 ^ 53
    small()
    option.program.seed = before
    assert.is_true(by_program.weights.w_conv1:equal(fifth.weights.w_conv1))
    assert.same(fifth.random:state(), by_program.random:state())
    assert.is_true(own.weights.w_conv1:equal(small().weights.w_conv1))
    -- a latent vector and the picture of it
    local mean, log_variance = eye:encode(seen)
    assert.same({ 40, 3 }, mean:shape())
    assert.same({ 40, 3 }, log_variance:shape())
    assert.same(seen:shape(), eye:decode(mean):shape())
  end)

  it("has the gradient of its loss", function()
    for _, case in ipairs { { window = { 8, 8 }, layers = { 3 }, dense = 5, beta = 0.1 },
      { window = { 4, 4, 8 }, layers = { 2, 2 }, dense = 0, channels = { "density" }, beta = 0.1 } } do
      local eye = cq.Observer.autoencoder { latent = 2, trainable = true, window = case.window, layers = case.layers,
        dense = case.dense, channels = case.channels, beta = case.beta }
      local shape = { 2, case.channels and 1 or 3 }
      for d = #case.window, 1, -1 do shape[#shape + 1] = case.window[d] end
      local seen = spread(shape, 0.2, 1)
      local check = cq.check_gradient(function(p)
        local seer = eye:with(p)
        local mean, log_variance = seer:encode(seen)
        return (seer:decode(mean + (0.5 * log_variance):exp()) - seen):square():sum() + log_variance:square():sum()
      end, eye.weights, { steps = { 1e-4, 1e-5, 1e-6 } })
      assert(check.ok, tostring(check))
    end
  end)
end)

describe("an autoencoder that observes", function()
  local function world() return scene.world(scene.robot(), { walls = {} }) end

  it("sees velocity and density of the body", function()
    local w = world()
    local eye = small()
    local body = w.robot:with { velocity = { 0.4, -0.1 } }
    local picture = eye:picture(w:rollout({ steps = 0, robot = body }).state)
    assert.same({ 3, 8, 16 }, picture:shape())
    local middle = { picture:get(1, 4, 8), picture:get(2, 4, 8), picture:get(3, 4, 8) }
    assert.near(0.4, middle[1], 5e-3)
    assert.near(-0.1, middle[2], 2e-3)
    assert(middle[3] > 0.5 and middle[3] < 1.5, middle[3])
    assert.equal(0, picture:get(1, 1, 1))
    local seen = small({ channels = { "density" } }):picture(w:rollout({ steps = 0, robot = body }).state)
    assert.is_true(seen:equal(picture:slice(3, 3, 1)))
  end)

  it("gives the latent vector to a controller, with gradients through contact of rollout and network", function()
    local w = scene.world(scene.robot())
    local eye = small()
    local controller = cq.Controller.mlp { inputs = 3, signals = 2, hidden = { 4 }, seed = 1 }
    local function loss(p)
      local roll = w:rollout { steps = 6, observer = eye, controller = controller:with(p.net),
        robot = w.robot:with { young = p.young * T.ones { w.particle_count } } }
      return roll.state:center("trunk"):sum() + roll.state:velocity("foot"):square():sum()
    end
    local check = cq.check_gradient(loss, { net = controller.params, young = T.param(10) },
      { steps = { 1e-3, 1e-4, 1e-5 }, tolerance = 1e-5 })
    assert(check.ok, tostring(check))
    -- a row for each scene
    local one = eye:observe(w:rollout({ steps = 3 }).state)
    local both = eye:observe(w:rollout({ steps = 3, batch = 2 }).state)
    assert.same({ 3 }, one:shape())
    assert.is_true(both[2]:close(one, 1e-12, 1e-14))
  end)

  it("looks every few control steps and holds what it saw, with its gradient", function()
    local w, seen = scene.world(scene.robot()), {}
    local eye, open = small { every = 3 }, small()
    local net = cq.Controller.mlp { inputs = 3, signals = 2, hidden = { 4 }, seed = 1 }
    w:rollout { steps = 7, observer = eye, controller = function(z)
      seen[#seen + 1] = z
      return net:act(z)
    end }
    for k = 1, 7 do assert.equal(k % 3 ~= 1, k > 1 and seen[k]:equal(seen[k - 1])) end
    assert.is_true(seen[1]:equal(open:observe(w:rollout({ steps = 0 }).state)))
    local check = cq.check_gradient(function(p)
      return w:rollout({ steps = 7, observer = eye, controller = net:with(p.net),
        robot = w.robot:with { young = p.young * T.ones { w.particle_count } } }).state:center("trunk"):sum()
    end, { net = net.params, young = T.param(10) }, { steps = { 1e-3, 1e-4, 1e-5 }, tolerance = 1e-5 })
    assert(check.ok, tostring(check))
  end)

  it("collects pictures of gaits that do not ask for it too, which stay as they are", function()
    local w, gait, eye = world(), cq.Controller.sines { deviation = 1, seed = 1 }, small { collect = 2 }
    local alone = w:rollout { steps = 7, controller = gait }
    local seen = w:rollout { steps = 7, controller = gait, observer = eye }
    assert.equal(4, eye.collected)
    assert.is_true(seen.state:positions():equal(alone.state:positions()))
  end)

  it("collects no pictures of rollouts that are repeated for a file, nor of the making of an environment", function()
    local w, eye, folder = world(), small { collect = 1, every = 2 }, process.folder()
    local net = cq.Controller.mlp { inputs = 3, signals = 2, hidden = { 4 }, seed = 1 }
    local first = w:rollout { steps = 3, observer = eye, controller = net }
    local roll = w:rollout { steps = 4, observer = eye, controller = net, from = first.state }
    assert.equal(7, eye.made)
    local before = eye.pictures:copy()
    roll:export { path = folder .. "/states.csv" }
    local env_eye = small { collect = 1 }
    local env = cq.Env { world = w, observer = env_eye, steps = 2, reward = function() return { 0 } end }
    assert.equal(0, env_eye.made)
    env:reset()
    assert.equal(1, env_eye.made)
    assert.equal(7, eye.made)
    assert.is_true(eye.pictures:equal(before))
    -- what is repeated goes on with what the observer held
    local again = w:rollout(require("cq.rollout.continued").again(roll))
    assert.is_true(again.state:positions():equal(roll.state:positions()))
    process.remove(folder)
  end)

  it("collects between looks, too", function()
    local w, eye = world(), small { collect = 2, every = 3 }
    w:rollout { steps = 9, controller = function() return { 0, 0 } end, observer = eye }
    local every = small { collect = 2 }
    w:rollout { steps = 9, controller = function() return { 0, 0 } end, observer = every }
    assert.equal(5, eye.made)
    assert.is_true(eye.pictures:equal(every.pictures))
  end)

  it("collects pictures once, the newest in the place of the oldest", function()
    local w = world()
    local eye = small { collect = 2, replay = 5 }
    local net = cq.Controller.mlp { inputs = 3, signals = 2, hidden = { 4 }, seed = 1 }
    local function run(p)
      local roll = w:rollout { steps = 6, observer = eye, controller = net:with(p) }
      return roll.state:center("trunk"):sum()
    end
    cq.value_and_grad(run)(net.params)
    assert.equal(3, eye.collected)                        -- of control steps 0, 2 and 4, not again on the way back
    local third = eye.pictures[3]:copy()
    cq.value_and_grad(run)(net.params)
    assert.equal(5, eye.collected)
    assert.is_true(eye.pictures[1]:equal(third))          -- the sixth is the third again
    local history = eye:fit { optimizer = adam(3e-3), iterations = 60, batch = 8 }
    assert(eye:error_of(eye.pictures) < 0.7 * history.reconstruction[1])
  end)

  it("is trained between the iterations of an experiment, and kept with its run", function()
    local folder = process.folder()
    local w, eye, optimizer = world(), small { collect = 1 }, adam()
    local run = cq.Experiment { world = w, steps = 5, observer = eye, controller = cq.Controller.mlp { hidden = { 4 } },
      objective = function(state) return state:center("trunk")[1] end, optimizer = adam() }
    local before, after = {}, {}
    run:optimize { iterations = 3, folder = folder, on_iteration = function()
      local seen = eye.pictures:slice(1, eye.collected)
      before[#before + 1] = eye:error_of(seen)
      eye:fit { optimizer = optimizer, iterations = 40, batch = 8 }
      after[#after + 1] = eye:error_of(seen)
    end }
    -- those of three iterations, and the look by which the controller learns what it is told
    assert.equal(3 * 5 + 1, eye.collected)
    for k = 2, 3 do assert(after[k] < before[k], after[k] / before[k]) end
    local saved = cq.load(run.folder)
    assert.equal("cq.Observer", getmetatable(saved.observer).__name)
    local picture = spread({ 2, 3, 8, 16 }, 0, 1)
    assert.same({ 2, 3 }, (saved.observer:encode(picture)):shape())
    process.remove(folder)
  end)

  it("is that of the best iteration where the best is evaluated, saved or loaded", function()
    local folder, earlier = process.folder(), 0
    for sign = -1, 1, 2 do
      local function make()
        return cq.Experiment { world = world(), steps = 5, observer = small { collect = 1 },
          controller = cq.Controller.mlp { hidden = { 4 }, seed = 1 }, optimizer = adam(),
          objective = function(state) return sign * state:center("trunk")[1] end }
      end
      local run, optimizer = make(), adam()
      run:optimize { iterations = 3, folder = folder .. "/" .. sign, on_iteration = function()
        run.observer:fit { optimizer = optimizer, iterations = 20, batch = 8 }
      end }
      assert.equal(run.best.loss, run:evaluate().loss)
      assert.are_not.equal(run.best.loss, run:evaluate({ params = "last" }).loss)
      earlier = earlier + (run.best.iteration < 3 and 1 or 0)
      local saved = cq.load(run.folder)
      local roll = run.world:rollout { steps = 5, observer = saved.observer, controller = saved.controller }
      assert.equal(run.best.loss, sign * roll.state:center("trunk")[1]:item())
      local other = make()
      other:load(run.folder)
      assert.equal(run.best.loss, other:evaluate().loss)
    end
    assert(earlier > 0)
    process.remove(folder)
  end)

  it("of a coarse level of a plan goes on with what it had learned", function()
    local folder = process.folder()
    local function train(name, at, resume)
      local optimizers = {}
      local run = cq.Experiment(function(level)
        local k, robot = level.coarsen, scene.robot()
        local w = cq.World { cells = { 24 / k, 24 / k }, dx = k / 24, dt = 6e-3, substeps = 3, gravity = { 0.3, -4 },
          precision = "float64", walls = cq.Boundary.box { kind = "friction", mu = 0.4 }, robot:at { 0.4, 0.26 } }
        return { world = w, steps = 4, observer = small { collect = 1 }, optimizer = adam(0.02),
          controller = cq.Controller.mlp { hidden = { 4 }, seed = 2 },
          objective = function(state) return 1e6 * (state:center("trunk")[1] - 0.45) end }
      end)
      run:optimize { folder = folder .. "/" .. name, resume = resume or false, plan = cq.Plan {
        { name = "coarse", iterations = 3, level = { coarsen = 2 } }, { name = "fine", iterations = 3 } },
        on_iteration = function(i, _, own)
          local eye = own.observer
          optimizers[eye] = optimizers[eye] or adam(1e-2)
          eye:fit { optimizer = optimizers[eye], iterations = 2, batch = 4 }
          if i == at then engine.C.cq_interrupt(1) end
        end }
      engine.C.cq_interrupt(0)
      local losses = {}
      for k, row in ipairs(cq.Run.read_history(folder .. "/" .. name)) do losses[k] = row.loss end
      return losses
    end
    local whole = train "whole"
    for _, at in ipairs { 2, 3, 5 } do
      train("parts" .. at, at)
      assert.same(whole, train("parts" .. at, nil, true))
    end
    process.remove(folder)
  end)

  it("goes on from a state with the same bits", function()
    local w, eye, path = world(), small { collect = 1, replay = 8 }, os.tmpname()
    local function look(observer)
      w:rollout { steps = 5, observer = observer, controller = function() return { 0, 0 } end }
    end
    local function go_on(observer, optimizer)
      look(observer)
      return observer:fit({ optimizer = optimizer, iterations = 5, batch = 4 }).loss
    end
    local one, other = adam(), adam()
    go_on(eye, one)
    T.save(path, { eye = eye:state(), optimizer = one:state() })
    local wanted = go_on(eye, one)
    local again, saved = small { collect = 1, replay = 8 }, T.load(path)
    os.remove(path)
    again:restore(saved.eye)
    other:restore(saved.optimizer)
    assert.same(wanted, go_on(again, other))
    assert.equal(8, again.collected)
    assert.is_true(again.pictures:equal(eye.pictures))
    for name, value in pairs(eye.weights) do assert.is_true(value:equal(again.weights[name]), name) end
    mistake.fails("a state from autoencoder:state is wanted, got 3", function() again:restore(3) end)
    -- one that is refused leaves the observer as it was
    local function refused(change, sentence)
      local state = small { collect = 1, replay = 8, seed = 5 }:state()
      for name, value in pairs(change) do state[name] = value end
      mistake.fails(sentence, function() again:restore(state) end)
    end
    refused({ made = "x" }, "made must be a whole number at least 0, got \"x\"")
    refused({ made = 3 }, "of 3 pictures made, 3 must be there, and 0 are")
    refused({ made = 3, pictures = T.ones { 2, 3, 8, 16 } }, "of 3 pictures made, 3 must be there, and 2 are")
    refused({ weights = { w_conv1 = again.weights.w_conv1 } }, "weights must have")
    refused({ random = { seed = 1, position = "x" } }, "random:restore: position must be a whole number")
    for name, value in pairs(eye.weights) do assert.is_true(value:equal(again.weights[name]), name) end
    assert.equal(8, again.collected)
  end)

  -- the last: broken off within the rollout of that iteration, whose pictures are forgotten
  it("is kept by a run that goes on, with its pictures and its optimizer, to the last bit", function()
    local function train(iterations, folder, resume, last)
      local made = 0
      local eye, optimizer = small { collect = 1, replay = 12 }, adam()
      local run = cq.Experiment { world = world(), steps = 5, observer = eye,
        controller = cq.Controller.mlp { hidden = { 4 }, seed = 2 },
        optimizer = adam(), objective = function(state)
          made = made + 1
          if made == last then engine.C.cq_interrupt(1) end
          return state:center("trunk")[1]
        end }
      run:optimize { iterations = iterations, folder = folder, resume = resume, on_iteration = function()
        eye:fit { optimizer = optimizer, iterations = 5, batch = 4 }
      end }
      engine.C.cq_interrupt(0)
      return eye, run
    end
    local one = process.folder()
    local whole, wanted = train(4, one)
    for _, last in ipairs { false, 3 } do
      local two = process.folder()
      train(last and 4 or 2, two, false, last)
      local eye, run = train(4, two, true)
      assert.equal(whole.made, eye.made)
      assert.is_nil(eye.taken)                                     -- rollouts after it are not recorded
      assert.is_true(eye.pictures:equal(whole.pictures))
      for name, value in pairs(whole.weights) do assert.is_true(value:equal(eye.weights[name]), name) end
      for name, value in pairs(wanted.params.controller) do
        assert.is_true(value:equal(run.params.controller[name]), name)
      end
      process.remove(two)
    end
    process.remove(one)
  end)

  it("is kept by a learner that goes on, within episodes too", function()
    local function train(folder, stop, resume)
      local eye, optimizer = small { collect = 2, replay = 12 }, adam(1e-2)
      local env = cq.Env { world = world(), scenes = 2, steps = 6, observer = eye, reward = function(_, _, after)
        return after:center("trunk"):slice(1, 1, -1):flatten()
      end }
      local learner = cq.Learner.ppo { env = env, steps = 42, batch = 14, minibatches = 2, epochs = 2, hidden = { 4 },
        rate = 1e-2, seed = 3 }
      learner:train { folder = folder, resume = resume or false, on_update = function(row)
        eye:fit { optimizer = optimizer, iterations = 3, batch = 4 }
        return row.steps == stop
      end }
      return eye, learner
    end
    local one, two = process.folder(), process.folder()
    local whole, wanted = train(one)
    train(two, 28)
    local message, said = require "cq.base.message", {}
    local warn = message.warn
    function message.warn(...) said[#said + 1] = string.format(...) end
    local eye, learner = train(two, nil, true)
    message.warn = warn
    assert.same({}, said)                        -- other observations are not those of another program
    assert.equal(whole.made, eye.made)
    assert.is_true(eye.pictures:equal(whole.pictures))
    for name, value in pairs(whole.weights) do assert.is_true(value:equal(eye.weights[name]), name) end
    for name, value in pairs(wanted.params) do assert.is_true(value:equal(learner.params[name]), name) end
    process.remove(one)
    process.remove(two)
  end)

  it("goes on with what it had learned at the best, in the next stage of a plan", function()
    local eye, optimizer, learned, first = small { collect = 1 }, adam(0.1), nil, nil
    local run = cq.Experiment { world = world(), steps = 5, observer = eye,
      controller = cq.Controller.mlp { hidden = { 4 } }, optimizer = adam(0.05),
      objective = function(state) return state:center("trunk")[1] end }
    local folder = process.folder()
    run:optimize { folder = folder, plan = cq.Plan { name = "two", { name = "one", iterations = 4 },
      { name = "two", iterations = 1 } }, on_iteration = function(i, loss)
      if i == 4 then learned = run.best end
      if i == 5 then first = loss end
      eye:fit { optimizer = optimizer, iterations = 5, batch = 8 }
    end }
    assert.equal(learned.loss, first)
    process.remove(folder)
  end)

  it("has the same pixels in a world with another grid", function()
    local eye, robot = small(), scene.robot()
    local coarse = scene.world(robot):rollout { steps = 0 }.state
    local seen = eye:picture(coarse)
    assert.equal(coarse.world.dx, eye.spacing)
    local fine = cq.World { cells = { 48, 48 }, dx = 1 / 48, dt = 1e-3, substeps = 4, precision = "float64",
      robot:at { 0.4, 0.127 } }
    assert.is_true(eye:picture(fine:rollout { steps = 0 }.state):equal(seen))
  end)

  it("may be trained with the controller", function()
    local w, eye = world(), small { trainable = true, collect = 1 }
    local run = cq.Experiment { world = w, steps = 4, observer = eye, controller = cq.Controller.mlp { hidden = { 4 } },
      objective = function(state) return state:center("trunk")[1] end, optimizer = adam() }
    local before = eye.weights.w_conv1:copy()
    local folder = process.folder()
    run:optimize { iterations = 2, folder = folder }
    assert.is_false(run.params.observer.w_conv1:equal(before))
    assert.is_nil(run.params.observer.w_back1)
    local saved = cq.load(run.folder).observer
    assert.is_true(saved.weights.w_conv1:equal(run.best.params.observer.w_conv1))
    assert.is_true(saved.weights.w_back1:equal(eye.weights.w_back1))
    assert.equal(2 * 4 + 1, eye.collected)
    -- what the file gives is an observer like any other: it collects, fits, says what it is and is trained again
    local again = cq.Experiment { world = w, steps = 4, observer = saved, optimizer = adam(),
      controller = cq.Controller.mlp { hidden = { 4 } },
      objective = function(state) return state:center("trunk")[1] end }
    assert.is_true(again.params.observer.w_conv1:equal(saved.weights.w_conv1))
    again:optimize { iterations = 1, folder = folder }
    assert(saved.collected > 0 and tostring(saved):find "pictures collected")
    assert(saved:fit { optimizer = adam(), iterations = 2, batch = 2 }.loss[2])
    -- a script that only looks needs not collect or train as the run did
    local function watching(more)
      return cq.Experiment { world = w, steps = 4, observer = small(more),
        controller = cq.Controller.mlp { hidden = { 4 } },
        objective = function(state) return state:center("trunk")[1] end }
    end
    local loaded = watching { replay = 7, trainable = true }
    loaded:load(folder)
    assert.equal(again.best.loss, loaded:evaluate().loss)
    mistake.fails("every 2", function() watching({ every = 2 }):load(folder) end)
    process.remove(folder)
    assert.is_nil(small():parameters())
  end)
end)

describe("what an autoencoder refuses", function()
  it("is told in a sentence", function()
    mistake.fails("window must be a multiple of 4, for 2 convolutions of stride 2, got 10",
      function() small { window = { 10, 8 } } end)
    mistake.fails("channels", function() small { channels = { "colour" } } end)
    mistake.fails("no pictures were collected; let it observe with collect = 10, or give pictures",
      function() small():fit { optimizer = adam() } end)
    mistake.fails("optimizer", function() small():fit {} end)
    local unfit = small()
    mistake.fails("cq.Optimizer.nlopt makes no single steps", function()
      unfit:fit { optimizer = cq.Optimizer.nlopt { algorithm = "lbfgs" }, pictures = T.ones { 4, 3, 8, 16 } }
    end)
    assert.is_falsy(unfit.fitted)
    mistake.fails("autoencoder:fit: the loss of update ", function()
      small():fit { optimizer = cq.Optimizer.gradient_descent { rate = 1e9 }, pictures = T.ones { 4, 3, 8, 16 } }
    end)
    mistake.fails("pictures must be {n, 3, 8, 16}, got {2, 3, 16, 8}",
      function() small():fit { optimizer = adam(), pictures = T.ones { 2, 3, 16, 8 } } end)
    mistake.fails("pictures must be {n, 3, 8, 16}, got {3, 8, 16}", function() small():encode(T.ones { 3, 8, 16 }) end)
    mistake.fails("latent vectors must be {n, ", function() small():decode(T.ones { 3 }) end)
    mistake.fails("pictures must be finite",
      function() small():fit { optimizer = adam(), pictures = T.zeros { 1, 3, 8, 16 } / 0 } end)
    mistake.fails("weights must have b_back1 {3}, got nil",
      function() small { weights = { w_conv1 = T.ones { 2 } } } end)
    mistake.fails("weights must be a table of tensors by name, got 3", function() small { weights = 3 } end)
    mistake.fails("particles must be", function() small { particles = 0 } end)
    mistake.fails('channels has "density" twice', function() small { channels = { "density", "density" } } end)
    mistake.fails("weights must be a table of tensors by name, got 3", function() small():with(3) end)
    mistake.fails("it has no weights \"w_conv9\"", function() small():with { w_conv9 = T.ones { 1 } } end)
    mistake.fails("weights must have b_back1 {3}, got {2}", function() small():with { b_back1 = T.ones { 2 } } end)
    mistake.fails("autoencoder:picture: state is missing", function() small():picture() end)
    mistake.fails("autoencoder:picture: state must be a cq.State, got 3", function() small():picture(3) end)
    local w = scene.world(scene.robot())
    mistake.fails("window has 3 numbers, the world is 2D",
      function() cq.Observer.autoencoder({ window = { 8, 8, 8 } }):observe(w:rollout({ steps = 0 }).state) end)
  end)
end)
