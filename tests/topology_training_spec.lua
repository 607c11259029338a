-- topology_training: designs in experiments, what changes by iteration on the way to a binary one, and the start of a
-- rollout, which their objectives see.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local derivative = require "tests.derivative"
local process = require "tests.process"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local says = require("tests.sentence").refuses
local values = require "cq.robot.values"

local design_of = block_design.make
local variables = block_design.variables

describe("an experiment with a design", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment(changes)
    local fields = {
      constraints = function(design)
        return design:discreteness { material = 0.05, layout = 0.05, pulses = 0.01 }
      end,
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 }, form = "violation",
        penalty = 1e-3 },
    }
    for key, value in pairs(changes or {}) do fields[key] = value end
    return block_design.experiment(fields)
  end

  local function optimize(run, iterations, resume)
    return run:optimize { iterations = iterations, folder = folder, resume = resume or false }
  end

  it("becomes binary by an augmented Lagrangian, with all of it in the history", function()
    local run = experiment()
    local first = run.constraints[2].of(run.params, nil, run):item()
    optimize(run, 25)
    local history = process.read(folder .. "/history.csv")
    for _, column in ipairs { "iteration,loss", "task", "material", "layout", "sign", "magnitude", "seconds",
      "material.multiplier", "magnitude.penalty" } do
      assert.is_truthy(history:match("^[^\n]*"):find(column, 1, true), column)
    end
    assert.is_true(run.constraints[2].of(run.params, nil, run):item() < 0.8 * first)
  end)

  it("trains the pulses of an extracted body by the mean over its variants, in one batch and in several", function()
    local rate = 10
    -- the gradient of the pulses' signs over a list of variants
    local function gradient(list)
      local run = block_design.experiment()
      run.params.design.density:copy_from(T.ones { 100 })
      run.params.design.layout:copy_from(variables(run.design).layout)
      run.params.design.sign:copy_from(variables(run.design).sign * 0.5)
      local before = run.params.design.sign:detach():copy()
      run:optimize { folder = folder, resume = false, plan = cq.Plan { { name = "pulses", iterations = 1,
        body = "extracted", train = { "design.sign" }, variants = list,
        optimizer = cq.Optimizer.gradient_descent { rate = rate } } } }
      return (before - run.params.design.sign:detach()) / rate
    end
    for _, list in ipairs { { {}, { change = { substeps = 2 } } },
      { {}, { change = { strength = 0.1 } }, { change = { latency = 1 } } } } do
      local mean = 0
      for _, one in ipairs(list) do mean = mean + gradient { one } / #list end
      local scale = mean:norm():item()
      assert.is_true(scale > 0)
      assert.is_true((gradient(list) - mean):norm():item() < 1e-9 * scale)
      assert.is_true((gradient { list[1] } - mean):norm():item() > 1e-3 * scale)
    end
  end)

  it("goes on as if it had not stopped", function()
    local whole = experiment()
    optimize(whole, 5)
    process.remove(folder)
    optimize((experiment()), 3)
    local other = experiment()
    optimize(other, 5, true)
    assert.is_true(other.params.design.density:equal(whole.params.design.density))
    assert.is_true(other.params.design.sign:equal(whole.params.design.sign))
  end)

  it("does not go on with another design", function()
    optimize((experiment()), 1)
    for told, changes in pairs {
      ["filter.radius was 0.05 and is 0.07"] = { filter = { radius = 0.07 } },
      ["material.sharpness was 4 and is 6, design solid_region was none"] = { material = { sharpness = 6 },
        solid_region = "tip" },
      ["symmetry was none and is x 2 1 3"] = { symmetry = { axis = "x", signals = { 2, 1, 3 } } },
      ["connected was none and is yes"] = { connected = true },
      ["solid_region was none and is particles 3, 5 to 7"] = { solid_region = { 3, 5, 6, 7 } },
    } do
      local design = design_of(changes)
      local run = experiment { world = design.world, design = design,
        constraints = design:discreteness { material = 0.05,
        layout = 0.05, pulses = 0.01 } }
      says(function() optimize(run, 2, true) end, "is of another problem: design ", told, "start anew")
    end
    local pulses, whole = design_of():with { rounding = "pulses" }, design_of():with { rounding = "all",
      material = { stiffness_exponent = 1, mass_exponent = 1, actuation_exponent = 3 } }
    local near = whole:with { remove_void = true }
    for told, design in pairs { ["rounding was none and is pulses"] = pulses, ["rounding was none and is all"] = whole,
      ["remove_void was none and is yes, design rounding was none and is all"] = near } do
      local run = experiment { world = design.world, design = design,
        constraints = design:discreteness { material = 0.05,
        layout = 0.05, pulses = 0.01 } }
      says(function() optimize(run, 2, true) end, "is of another problem: design ", told, "start anew")
    end
    optimize((experiment()), 2, true)
  end)
end)

describe("the way to a binary design", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment(design, changes)
    local fields = {
      world = design.world, steps = 30, design = design,
      objective = function(state, start) return start:center(design.robot)[1] - state:center(design.robot)[1] end,
    }
    for key, value in pairs(changes or {}) do fields[key] = value end
    return cq.Experiment(fields)
  end

  it("has the mass by an exponent of its own, and no exponents once it is binary", function()
    local design = design_of { material = { stiffness_exponent = 2, mass_exponent = 1, actuation_exponent = 3,
      min_density = 1e-3 } }
    local p = variables(design)
    local map = design:map(p)
    local solid = map.density * (1 - 1e-3) + 1e-3
    assert.is_true(values.start(map.robot, "density"):close(1000 * solid, 1e-9))
    local stiff = map.density:square() * (1 - 1e-3) + 1e-3
    assert.is_true(values.start(map.robot, "young"):close(1e5 * stiff, 1e-6))
    local binary = design:with { rounding = "all", material = { actuation_exponent = 2 } }
    assert.same({ 1, 1, 2 }, { binary.stiffness.exponent, binary.mass.exponent, binary.actuation.exponent })
    assert.same({ 2, 1, 3 }, { design.stiffness.exponent, design.mass.exponent, design.actuation.exponent })
  end)

  it("starts from what was found on fewer particles and pulses", function()
    local coarse = design_of({ pulses = { interval = 6e-3 } },
      block_design.robot { shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.04 } })
    local fine, p = design_of(), coarse:start(4)
    p.density:copy_from(coarse.robot.position:slice(1, 1, 2):squeeze(2))
    p.layout:copy_from(p.density:detach():unsqueeze(1):expand { 4, 25 })
    local out = fine:transfer(coarse, p)
    assert.same({ 100, 4, 100, 15, 3 }, { out.density.count, out.layout:size(1), out.layout:size(2), out.sign:size(1),
      out.sign:size(2) })
    -- each quarter of a coarse cell has its place, and three pulses are within one
    local x = fine.robot.position:slice(1, 1, 2):squeeze(2)
    assert.is_true((out.density - x):abs():close(T.full({ 100 }, 0.01), 1e-9))
    assert.is_true(out.layout:slice(3, 3):squeeze(1):equal(out.density))
    for k = 1, 15 do assert.equal(p.magnitude:get(math.ceil(k / 3), 2), out.magnitude:get(k, 2)) end
    assert.is_true(out.sign.trainable and fine:map(out).density.count == 100)
    says(function() fine:transfer(design_of { duration = 0.06 }, p) end,
      "params must have density of shape {100}, as design.params has it, got {25}")
    local other = design_of({}, block_design.robot { actuators = cq.Actuator.isotropic { count = 2, max = 1 } })
    says(function() fine:transfer(other, other.params) end, "as many signals", "3 signals in 2D here and 2 signals")
    other = design_of { duration = 0.06 }
    says(function() fine:transfer(other, other.params) end, "same duration, unless the pulses of the other one",
      "got 0.03 here and 0.06 there")
    -- pulses that come again have no duration: four of them, then the same ones
    other = design_of { duration = 0.06, pulses = { interval = 2e-3, period = 8e-3 } }
    out = fine:transfer(other, other:start(5))
    assert.same({ 15, 3 }, out.sign:shape())
    for k = 5, 15 do assert.equal(out.sign:get((k - 1) % 4 + 1, 2), out.sign:get(k, 2)) end
    assert.is_true(other:start(5).sign:equal(out.sign:slice(1, 4)))
    other = design_of { pulses = { interval = 2e-3, period = 8e-3 } }
    says(function() other:transfer(fine, fine.params) end, "come again after 0.008", "others that do not")
    other = design_of { duration = 0.06, pulses = { interval = 2e-3,
      period = 0.08 } }           -- they do not come again
    says(function() fine:transfer(other, other:start(5)) end, "got 0.03 here and 0.06 there")
  end)

  -- a block of which particle 34, or those of a list, fail in the first step
  local function failing(list)
    local deformation = T.zeros { 100, 2, 2 }
    for p = 1, 100 do
      deformation:set(1, p, 1, 1)
      deformation:set(1, p, 2, 2)
    end
    for _, p in ipairs(list or { 34 }) do deformation:set(-0.1, p, 2, 2) end
    return block_design.robot():with { deformation = deformation }
  end

  it("leaves out the images of void that failed where a design is symmetric", function()
    local design = design_of({ symmetry = { axis = "z", order = 4 } }, failing())
    local run, p = experiment(design), variables(design)
    for k = 1, 100 do p.density:set((k <= 10 or k > 90) and 1 or -1, k) end
    local state = run:rollout({ design = p }).state
    -- in the fourth column and row from the lower left, so in the fourth and the seventh from there
    for _, image in ipairs { 34, 37, 64, 67 } do
      says(function() state:center { image } end, ("particle %d is void that is left out"):format(image))
    end
    assert.same({ 2 }, state:center({ 1 }):shape())
  end)

  it("goes on without void particles that the simulation fails by, and with no other", function()
    local design = design_of({}, failing())
    local run, p = experiment(design), variables(design)
    local function loss_of(q) return run:loss(run:rollout { design = q }) end
    for k = 1, 100 do p.density:set((k <= 10 or k > 60) and 1 or -1, k) end
    p.density:set(0, 66)
    local loss, grad = T.value_and_grad(loss_of)(p)
    -- gone with it: void within the filter's radius; what is not void stays
    local solid, count, drawn = design:extract(p, { threshold = 1e-3 }), nil, 0
    -- numbers are those of the whole block, as are values that a picture is given
    local opacity = require("cq.picture.visuals").opacity(T.arange(1, 100) / 100)
    run:rollout({ design = p }, { on_step = function(state)
      count, drawn = state:positions():size(1), drawn + 1
      local shown = opacity(state)
      assert.same({ count }, shown:shape())
      assert.near(1, shown:get(count), 1e-12)
      assert.is_true((state:center({ 100 }) - state:positions()[count]):abs():max():item() < 1e-6)
      says(function() state:center { 34 } end, "particle 34 is void that is left out of the simulation")
    end })
    assert(count < 100 and count > #solid.particles, count)
    assert.equal(31, drawn)
    assert.is_true(loss ~= 0 and grad.density:norm():item() > 0)
    -- there again in the next one, of which it is no void
    p.density:copy_from(T.ones { 100 })
    says(function() loss_of(p) end, "particle 34 of robot", "was turned inside out")
  end)

  it("says of a body that fails and has no solid that it is empty", function()
    local list = {}
    for k = 1, 100 do list[k] = k end
    local design = design_of({}, failing(list))
    local run, p = experiment(design), variables(design)
    p.density:fill(-1)
    says(function() run:rollout { design = p } end, "the simulation failed at control step 1 ",
      "was turned inside out", "no particle of the design is solid: the body is empty; begin with more of it, as after a "
      .. "soft stage, or bound it by design:volume { at_least = ... }")
  end)

  it("leaves out void from farther around each time that it fails", function()
    local design = design_of({}, failing { 32, 38, 52, 58, 72, 78 })     -- none within the filter's radius of another
    local run, p, attempts = experiment(design), variables(design), 0
    for k = 1, 100 do p.density:set((k <= 10 or k > 90) and 1 or -1, k) end
    local subset = design.robot.subset
    design.robot.subset = function(self, kept)
      attempts = attempts + (self == design.robot and 1 or 0)
      return subset(self, kept)
    end
    local state = run:rollout({ design = p }).state
    assert(attempts <= 3, attempts)
    assert(state:positions():size(1) >= #design:extract(p).particles)
  end)

  it("keeps no memo of the whole block, nor of earlier bodies, where void is left out", function()
    local design = design_of({ filter = { radius = 0.05 } })
    local p = variables(design)
    for k = 1, 100 do p.density:set((k - 1) % 10 < 2 and 1 or -1, k) end               -- the lower two rows
    local function learn(one)
      local run = experiment(one)
      T.value_and_grad(function(q) return run:loss(run:rollout { design = q }) end)(p)
    end
    learn(design)
    assert(#design.world.pool.entries > 0)
    local binary = design:with { rounding = "all", remove_void = true }
    local earlier = setmetatable({}, { __mode = "v" })
    for rows = 2, 4 do
      for k = 1, 100 do p.density:set((k - 1) % 10 < rows and 1 or -1, k) end
      learn(binary)
      assert.equal(0, #design.world.pool.entries)
      assert.is_nil(earlier[1])                       -- the body of two iterations before
      earlier[1], earlier[2] = earlier[2], binary.remaining.world
    end
  end)

  it("holds no memo of the block beside that of the body which is simulated, where memory is short", function()
    local memory, pool = require "cq.rollout.memory", require "cq.world.pool"
    local design, free = design_of({}, failing { 55 }), memory.free
    local p, most, create = variables(design), 0, pool.new({}).acquire
    for k = 1, 100 do p.density:set((k <= 10 or k > 90) and 1 or -1, k) end
    local class = getmetatable(design.world.pool).__index
    function class.acquire(self, ...)
      local entry, held = create(self, ...), 0
      for _, one in ipairs { design.world.pool, (design.remaining.world or {}).pool } do
        for _, rollout in ipairs(one.entries) do held = held + (rollout.key:find "^1 30 true" and 1 or 0) end
      end
      most = math.max(most, held)
      return entry
    end
    local function learn()
      local run = experiment(design)
      for _ = 1, 2 do T.value_and_grad(function(q) return run:loss(run:rollout { design = q }) end)(p) end
    end
    local fine, problem = pcall(function()
      function memory.free() return 0 end
      learn()
      assert.equal(1, most)
      function memory.free() return math.huge end
      learn()
      assert.equal(2, most)
    end)
    memory.free, class.acquire = free, create
    assert(fine, problem)
  end)

  it("leaves out void of a binary body that is far from all solid, but for groups, where asked for", function()
    local design = design_of({ filter = { radius = 0.05 } })
    local p, binary = variables(design), design:with { rounding = "all", remove_void = true }
    for k = 1, 100 do p.density:set((k - 1) % 10 < 2 and 1 or -1, k) end               -- the lower two rows
    local solid, x = binary:map(p).density:greater(0.5), design.robot.position
    local near, total = {}, 0
    for a = 1, 100 do
      for b = 1, 100 do
        if solid:get(b) == 1 and (x[a] - x[b]):norm():item() < 0.05 - 1e-9 then near[a] = true end
      end
    end
    for _, k in ipairs(design.robot:group("tip"):particles()) do near[k] = true end
    for _ in pairs(near) do total = total + 1 end
    local function of(one)
      local run = experiment(one)
      local state = run:rollout({ design = p }).state
      local loss, grad = T.value_and_grad(function(q) return run:loss(run:rollout { design = q }) end)(p)
      return loss, state, grad.density
    end
    local loss, state, grad = of(binary)
    assert(total > solid:sum():item() + 20 and total < 80, total)
    assert.equal(total, state:positions():size(1))
    says(function() state:center { 56 } end, "particle 56 is void that is left out of the simulation; ask for a group")
    assert.same({ 2 }, state:center("tip"):shape())
    local all, whole, other = of(design:with { rounding = "all" })
    assert.equal(100, whole:positions():size(1))
    assert.equal(100, of(design) and experiment(design):rollout({ design = p }).state:positions():size(1))
    assert(math.abs(loss - all) < 0.01 * math.abs(all), loss .. ", " .. all)
    -- the body learns as before; far from it what comes by the filter is left
    local row = { grad:get(51), other:get(51), grad:get(56), other:get(56) }
    assert(math.abs(row[1] - row[2]) < 0.05 * math.abs(row[2]) and math.abs(row[3]) < 0.1 * math.abs(row[4]),
      table.concat(row, " "))
    -- a group is the same by its name and as an object, whose numbers are those of the block
    local tip = design.robot:group "tip"
    assert.is_true(state:center("tip"):equal(state:center(tip)))
    assert.is_true(whole:center("tip"):equal(whole:center(tip)))
    says(function() design:with { remove_void = true } end, "remove_void = true is for rounding = \"all\"")
    -- finer steps are simulated in another world: the rollout from before is still there
    local run = experiment(binary)
    local before = run:evaluate { params = { design = p } }
    run:evaluate { params = { design = p }, converge = true }
    assert.equal(before.loss, run:loss(before.rollout):item())
    -- a symmetric body has symmetric neighbours, also where rounding decides whether one is near
    local mirrored = design_of({ filter = { radius = 0.06 }, symmetry = { axis = "y" } },
      block_design.robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 }, groups = {} })
    local q = variables(mirrored)
    local function simulated(rows)
      for k = 1, 100 do q.density:set(math.abs((k - 1) % 10 - 4.5) < rows / 2 and 1 or -1, k) end
      local one = experiment(mirrored:with { rounding = "all", remove_void = true })
      return one:rollout({ design = q }).state:positions():size(1)
    end
    assert.equal(80, simulated(2))
    assert.equal(100, simulated(0))                     -- nothing is solid: then nothing is far from it
  end)

  it("leaves out void particles one by one where none is near another", function()
    local islands = {}                                  -- a chequerboard: as many failures as void particles
    for row = 0, 9 do
      for column = 1 + row % 2, 10, 2 do islands[#islands + 1] = 10 * row + column end
    end
    local design = design_of({ filter = { radius = 0.02002 } }, failing(islands))
    local run, p = experiment(design), variables(design)
    for k = 1, 100 do p.density:set(1, k) end
    for _, k in ipairs(islands) do p.density:set(-1, k) end
    assert.equal(50, run:rollout({ design = p }).state:positions():size(1))
  end)

  it("does not end while limits still change", function()
    local design = design_of()
    local function limits(least) return function(i) return i < 15 and 0.25 or least end end
    local function made(least)
      process.remove(folder)
      local run = experiment(design, {
        constraints = design:discreteness { material = 1 },
        -- nothing is progress enough: it would end at once
        optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation",
          penalty = 1, window = 1, tolerance = 1e9 },
      })
      return run:optimize({ iterations = 30, folder = folder, resume = false,
        options = { limits = { material = limits(least) } } }).iterations
    end
    assert.is_true(made(0.25) <= 4)
    local count = made(0.24)
    assert(count >= 14 and count < 30, count)
  end)

  it("runs binary with the gradient of the smooth map", function()
    local design = design_of()
    local p = variables(design)
    local binary = design:with { rounding = "all" }
    local map = binary:map(p)
    assert.is_true(map.density:equal(design:map(p).density:greater(0.5)))
    assert.is_true(map.shares:sum(1):close(T.ones { 100 }, 1e-15) and map.shares:max(1):close(T.ones { 100 }, 1e-15))
    assert.is_true(map.amplitudes:close(design.pulses:rounded(p.sign, p.magnitude), 1e-15))
    local function slopes(one)
      local _, grad = T.value_and_grad(function(q)
        local m = one:map(q)
        return m.density:sum() + (m.shares * T.arange(1, 4):unsqueeze(2)):sum() + m.amplitudes:sum()
      end)(p)
      return grad
    end
    local a, b = slopes(design), slopes(binary)
    for name, grad in pairs(a) do assert.is_true(grad:close(b[name], 1e-12) and grad:norm():item() > 0, name) end
    for _, c in ipairs(design:discreteness { material = 1, layout = 1 }) do
      assert.near(c.of(p):item(), c.of(p, nil, { design = binary }):item(), 1e-15)
    end
    -- where shares are equal, as at the start, particles follow the signal that design:extract gives them
    p.layout:fill(0)
    local shares = binary:map(p).shares
    assert.is_true(shares:sum(1):equal(T.ones { 100 }) and shares[1]:equal(T.ones { 100 }))
    assert.equal(1, design:extract(p).actuator[1])
  end)

  it("has in its binary body what was trained beside it, of the robot, the world and each scene", function()
    local design = design_of { material = { min_density = 1e-9, sharpness = 60 }, layout = { sharpness = 1e4 },
      filter = { radius = 0.021 } }
    local p = variables(design)
    p.density:copy_from(T.where(p.density:less(-0.2), -1, 1))
    p.sign:copy_from(T.where(p.sign:less(0), -1, 1))
    p.magnitude:fill(1)
    local solid, last = design:extract(p), nil
    for name, changes in pairs {
      nothing = {}, gravity = { trainable = { gravity = { init = T.tensor { 2, -30 } } } },
      poisson = { trainable = { poisson = { init = 0.1, per = "particle" } } },
      velocity = { trainable = { velocity = { init = T.tensor { 0, -1 } } } },
      scenes = { scenes = { count = 2, each = function(k) return { gravity = { 0, -10 * k } } end } },
      turned = { weight = "mass", trainable = { speed = { init = 0.5, apply = function(robot, s)
        return robot:with { velocity = s * T.tensor { 1, -1 } }
      end } } },
    } do
      changes.world, changes.steps, changes.design, changes.contact = design.world, 30, design, true
      changes.objective = function(state) return state:center(design.robot):square():sum() end
      local run = cq.Experiment(changes)
      for variable, tensor in pairs(p) do run.params.design[variable]:copy_from(tensor) end
      local whole, binary = run:evaluate { params = "last" }.loss, run:evaluate { body = solid }.loss
      assert.is_true(binary ~= last)
      assert(math.abs(whole - binary) < 3e-5, name .. whole .. " " .. binary)
      last = binary
      local trained = run:optimize { iterations = 1, folder = folder, resume = false, body = "extracted",
        train = { "design.pulses" }, optimizer = cq.Optimizer.adam { rate = 1e-9 } }
      assert.near(binary, trained.best, 1e-12)
      assert.near(binary, run:evaluate().loss, 1e-12)
    end
    -- also where the block is not the first body of its world
    local stone = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.02 },
      material = block_design.material }
    local pair = cq.World { cells = { 40, 25 }, dx = 0.04, dt = 1e-3, substeps = 5, precision = "float64", threads = 1,
      stone:at { 0.6, 0.08 }, block_design.robot():at { 0.2, 0.08 } }
    local second = cq.Topology { world = pair, robot = pair.robots[2], duration = 0.03, filter = { radius = 0.05 } }
    local beside = cq.Experiment { world = pair, steps = 30, design = second, objective = print,
      trainable = { poisson = { init = 0.1, per = "particle" } } }
    assert.equal(100, beside.params.robot.poisson.count)
    says(function()
      cq.Experiment { world = pair, steps = 30, design = second, robot = pair.robots[2], objective = print }
    end, "give either design, which brings its robot, or robot")
    local run = cq.Experiment { world = design.world, steps = 30, design = design, objective = print }
    says(function() run:evaluate { body = design_of():extract(p) } end, "made of a design for another world")
  end)

  it("gives the body that was trained, to be put into another world", function()
    local run = experiment(design_of())
    run.params.design.density:copy_from(variables(run.design).density:detach())
    run:optimize { iterations = 2, folder = folder, resume = false, body = "extracted",
      optimizer = cq.Optimizer.adam { rate = 0.05 } }
    local there = block_design.world(run.body.robot:at { -0.04, -0.08 })
    -- run.body is what the experiment goes on with, whether it is named or not
    local named, own = run:evaluate { body = run.body, world = there }, run:evaluate { world = there }
    assert.equal(named.loss, own.loss)
    assert.near(own.loss, run:evaluate().loss, 1e-6 * math.abs(own.loss))
    assert.equal(own.rollout.world, there)
  end)

  it("trains the pulses of the extracted body, which never go worse than before", function()
    local design = design_of()
    local p = variables(design)
    local run = experiment(design)
    for name, tensor in pairs(p) do run.params.design[name]:copy_from(tensor) end
    local body = design:extract(p)
    local before = run:evaluate { body = body }.loss
    local result = run:optimize { iterations = 12, folder = folder, resume = false, body = "extracted",
      optimizer = cq.Optimizer.adam { rate = 0.05 } }
    assert.near(before, cq.Run.read_history(folder)[1].loss, 1e-12)
    assert.is_true(result.best < before)
    assert.near(result.best, run:evaluate().loss, 1e-12)
    assert.near(result.best, run:evaluate({ body = run.body }).loss, 1e-12)
    assert.same(body.particles, run.body.particles)
    assert.is_true(run.body.pulses:abs():round():equal(run.body.pulses:abs()))
    assert.is_false(run.body.pulses:equal(body.pulses))
    assert.is_true(run.params.design.density:equal(p.density))
    says(function()
      run:optimize { iterations = 1, body = "extracted", train = { "design.density" },
        optimizer = cq.Optimizer.adam { rate = 0.05 } }
    end, "design.density cannot be trained, the body is extracted from it")
  end)

  it("has pulses as a controller of its own", function()
    local design = design_of()
    local p = variables(design)
    local map = design:map(p)
    local function final(controller)
      return design.world:rollout({ robot = map.robot, steps = 30, controller = controller }).state:positions()
    end
    assert.is_true(final(design.pulses:controller { sign = p.sign,
      magnitude = p.magnitude }):equal(final(map.controller)))
    says(function() design.pulses:controller { sign = T.ones { 2, 3 }, magnitude = p.magnitude } end,
      "sign must be {pulses, signals} = {15, n}, got {2, 3}")
    local train = design.pulses:controller { sign = p.sign, magnitude = p.magnitude }
    says(function() final(train:with { sign = T.ones { 15, 3 }, magnitude = T.ones { 15, 4 } }) end,
      "pulses:controller: magnitude must be {pulses, signals} = {15, 3}, got {15, 4}")
    says(function() final(train:with { sign = T.ones { 15, 3 } }) end, "the parameters lack magnitude")
    says(function() design.pulses:signals(T.ones { 3, 15 }) end,
      "pulses:signals: amplitudes must be {pulses, signals} = {15, n}, got {3, 15}")
    says(function() design.pulses:amplitudes(p.sign, T.ones { 3, 15 }) end,
      "sign and magnitude must have one shape, {pulses, signals}, got {15, 3} and {3, 15}")
  end)
end)

describe("the start of a rollout", function()
  it("is a state with gradients, next to the final one", function()
    local design = design_of()
    local robot, p = design.robot,
      { young = cq.param(T.full({ 100 }, 1)), density = cq.param(spread({ 100 }, 500, 1500)) }
    local function way(q)
      local roll = design.world:rollout { robot = robot:with { density = q.density, young = q.young * 1e5,
        actuation_weight = T.zeros { 100, 3 } }, steps = 20 }
      return roll.state:center(robot)[2] - roll:start():center(robot)[2]
        + 1e-3 * roll:start():moment(robot)[1][2] * roll.state:velocity(robot)[2]
    end
    derivative.check(way, p, 1e-7)
    local roll = design.world:rollout { robot = robot:with { density = p.density,
      actuation_weight = T.zeros { 100, 3 } }, steps = 2 }
    assert.is_true(roll:start():positions():equal(robot.position))
    assert.equal(0, roll:start().step)
  end)
end)
