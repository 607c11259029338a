-- topology_training: designs in experiments, what changes by iteration on the way to a binary one, and the start of a
-- rollout, which their objectives see.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local derivative = require "tests.derivative"
local process = require "tests.process"
local scratch = require "tests.scratch"
local spread = require "tests.spread"
local mistake = require "tests.sentence"
local values = require "cq.robot.values"

local design_of = block_design.make
local variables = block_design.variables

local function says(f, ...)
  local message = mistake.of(f)
  for _, part in ipairs { ... } do mistake.says(message, part) end
end

describe("an experiment with a design", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment(changes)
    local design = design_of()
    local fields = {
      world = design.world, steps = 30, design = design,
      objective = function(state, start) return start:center(design.robot)[1] - state:center(design.robot)[1] end,
      constraints = design:binary { material = 0.05, layout = 0.05, pulses = 0.01 },
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 }, form = "violation",
        penalty = 1e-3 },
    }
    for key, value in pairs(changes or {}) do fields[key] = value end
    return cq.Experiment(fields), design
  end

  local function optimize(run, iterations, resume)
    return run:optimize { iterations = iterations, folder = folder, resume = resume or false }
  end

  it("becomes binary by an augmented Lagrangian, with all of it in the history", function()
    local run = experiment()
    local first = run.constraints[2].of(run.params, nil, run):item()
    optimize(run, 25)
    local history = process.read(folder .. "/history.csv")
    for _, column in ipairs { "iteration,loss", "task", "material", "layout", "sign", "size", "seconds",
      "material.multiplier", "size.penalty" } do
      assert.is_truthy(history:match("^[^\n]*"):find(column, 1, true), column)
    end
    assert.is_true(run.constraints[2].of(run.params, nil, run):item() < 0.8 * first)
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
      ["material.sharpness was 4 and is 6, solid was none"] = { material = { sharpness = 6 }, solid = "tip" },
      ["symmetry was none and is x 2 1 3"] = { symmetry = { axis = "x", signals = { 2, 1, 3 } } },
      ["one_piece was none and is yes"] = { one_piece = true },
      ["solid was none and is particles 3, 5 to 7"] = { solid = { 3, 5, 6, 7 } },
    } do
      local design = design_of(changes)
      local run = experiment { world = design.world, design = design, constraints = design:binary { material = 0.05,
        layout = 0.05, pulses = 0.01 } }
      says(function() optimize(run, 2, true) end, "made with another design: " .. told, "start without --resume")
    end
    local pulses, whole = design_of():with { binary = "pulses" }, design_of():with { binary = "all",
      material = { power = 1, mass_power = 1, actuation_power = 3 } }
    local near = whole:with { far_void = false }
    for told, design in pairs { ["binary was none and is pulses"] = pulses, ["binary was none and is all"] = whole,
      ["binary was none and is all, far_void was none and is left out"] = near } do
      local run = experiment { world = design.world, design = design, constraints = design:binary { material = 0.05,
        layout = 0.05, pulses = 0.01 } }
      says(function() optimize(run, 2, true) end, "made with another design: " .. told, "start without --resume")
    end
    optimize((experiment()), 2, true)
  end)

  it("changes gravity, limits and its design by iteration, and forgets the best of what it was", function()
    local run, design = experiment()
    local sharp, seen = design:with { material = { sharpness = 9 } }, {}
    run = experiment {
      world = design.world, design = design,
      constraints = { { name = "material", at_most = 1, of = design:binary({ material = 1 })[1].of } },
      objective = function(state, start)
        local potential = state:energy(nil, "potential")
        seen[#seen + 1] = { potential:item(), run.design }
        return start:center(design.robot)[1] - state:center(design.robot)[1] + potential      -- least without gravity
      end,
      by_iteration = {
        gravity = function(i) return { 0, i <= 2 and 0 or -9.8 } end,
        limits = function(i) return { material = 1 / i } end,
        design = function(i) return i < 3 and design or sharp end,
      },
    }
    optimize(run, 3)
    assert.is_true(seen[1][1] == 0 and seen[2][1] == 0 and seen[3][1] > 0)
    assert.is_true(seen[2][2] == design and seen[3][2] == sharp)
    assert.near(1 / 3, run.constraints[1].limit, 1e-15)
    assert.equal(3, run.best.iteration)
    says(function() experiment { by_iteration = { weight = print } } end, "by_iteration has no \"weight\"")
    says(function()
      local bad = experiment { by_iteration = { limits = function() return { mass = 1 } end } }
      bad:evaluate()
    end, "no constraint \"mass\"")
    says(function()
      local other
      local bad, own = experiment { by_iteration = { design = function() return other end } }
      other = design_of { world = own.world, pulses = { every = 6e-3 } }
      bad:evaluate()
    end, "variants of the experiment's design, from design:with", "this one has 15 variables of si", "and that one 45")
  end)

  it("can depend on the losses before, also in a run that is gone on with", function()
    local function train(name, stops)
      local seen, run = {}, nil
      for _, iterations in ipairs(stops) do
        local design = design_of()
        run = cq.Experiment {
          world = design.world, steps = 30, design = design, optimizer = cq.Optimizer.adam { rate = 0.05 },
          objective = function(state, start) return start:center(design.robot)[2] - state:center(design.robot)[2] end,
          by_iteration = { gravity = function(i, losses)
            seen[i] = i > 1 and losses[i - 1] or 0
            return { 0, -9.8 * i / (1 + math.abs(seen[i])) }
          end },
        }
        run:optimize { iterations = iterations, folder = folder .. "/" .. name, resume = iterations > stops[1] }
      end
      return seen, run
    end
    local whole, run = train("whole", { 4 })
    local parts, last = train("parts", { 2, 4 })
    assert.same(whole, parts)
    assert.is_true(whole[2] > 0 and whole[4] > whole[3])
    assert.equal(run.loss_last, last.loss_last)
    -- a run that is whole stands as in its last iteration, with the losses before that
    local given = { 9, 9, 9, 9 }
    last.by_iteration = { gravity = function(i, losses) given[i] = #losses; return { 0, -9.8 } end }
    last:optimize { iterations = 4, folder = folder .. "/parts", resume = true }
    assert.same({ 9, 9, 9, 3 }, given)
    os.remove(folder .. "/parts/history.csv")
    says(function() last:optimize { iterations = 5, folder = folder .. "/parts", resume = true } end,
      "history.csv in " .. folder .. "/parts has 0 of the 4 iterations", "start without --resume")
  end)

  it("can depend on losses beside constraints, and in figures", function()
    local design, seen = design_of(), {}
    local run = cq.Experiment {
      world = design.world, steps = 30, design = design,
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 } },
      objective = function(state, start) return start:center(design.robot)[2] - state:center(design.robot)[2] end,
      constraints = design:binary { material = 1 },
      by_iteration = { limits = function(i, losses)
        seen[i] = #losses
        return { material = i > 2 and losses[i - 1] > 100 and 0.1 or 1 }
      end },
    }
    run:optimize { iterations = 4, folder = folder .. "/bounds" }
    assert.same({ 0, 1, 2, 3 }, seen)
    run:figures(folder .. "/bounds.png")
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

  it("has the mass by a power of its own, and no powers once it is binary", function()
    local design = design_of { material = { power = 2, mass_power = 1, actuation_power = 3, void = 1e-3 } }
    local p = variables(design)
    local map = design:map(p)
    local solid = map.density * (1 - 1e-3) + 1e-3
    assert.is_true(values.start(map.robot, "density"):close(1000 * solid, 1e-9))
    local stiff = map.density:square() * (1 - 1e-3) + 1e-3
    assert.is_true(values.start(map.robot, "young"):close(1e5 * stiff, 1e-6))
    local binary = design:with { binary = "all", material = { actuation_power = 2 } }
    assert.same({ 1, 1, 2 }, { binary.stiffness.power, binary.mass.power, binary.actuation.power })
    assert.same({ 2, 1, 3 }, { design.stiffness.power, design.mass.power, design.actuation.power })
  end)

  it("starts from what was found on fewer particles and pulses", function()
    local coarse = design_of({ pulses = { every = 6e-3 } },
      block_design.robot { shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 }, spacing = 0.04 } })
    local fine, p = design_of(), coarse:start(4)
    p.density:copy_from(coarse.robot.position:slice(1, 1, 2):squeeze(2))
    p.layout:copy_from(p.density:detach():unsqueeze(1):expand { 4, 25 })
    local out = fine:resample(coarse, p)
    assert.same({ 100, 4, 100, 15, 3 }, { out.density.count, out.layout:size(1), out.layout:size(2), out.sign:size(1),
      out.sign:size(2) })
    -- each quarter of a coarse cell has its place, and three pulses are within one
    local x = fine.robot.position:slice(1, 1, 2):squeeze(2)
    assert.is_true((out.density - x):abs():close(T.full({ 100 }, 0.01), 1e-9))
    assert.is_true(out.layout:slice(3, 3):squeeze(1):equal(out.density))
    for k = 1, 15 do assert.equal(p.size:get(math.ceil(k / 3), 2), out.size:get(k, 2)) end
    assert.is_true(out.sign.trainable and fine:map(out).density.count == 100)
    says(function() fine:resample(design_of { duration = 0.06 }, p) end, "params must have density of shape {100}, as design.params has it, got {25}")
    local other = design_of({}, block_design.robot { actuators = cq.Actuator.isotropic { count = 2, max = 1 } })
    says(function() fine:resample(other, other.params) end, "as many signals", "3 signals in 2D here and 2 signals")
    other = design_of { duration = 0.06 }
    says(function() fine:resample(other, other.params) end, "same duration, unless the pulses of the other one",
      "got 0.03 here and 0.06 there")
    -- pulses that come again have no duration: four of them, then the same ones
    other = design_of { duration = 0.06, pulses = { every = 2e-3, period = 8e-3 } }
    out = fine:resample(other, other:start(5))
    assert.same({ 15, 3 }, out.sign:shape())
    for k = 5, 15 do assert.equal(out.sign:get((k - 1) % 4 + 1, 2), out.sign:get(k, 2)) end
    assert.is_true(other:start(5).sign:equal(out.sign:slice(1, 4)))
    other = design_of { pulses = { every = 2e-3, period = 8e-3 } }
    says(function() other:resample(fine, fine.params) end, "come again after 0.008", "others that do not")
    other = design_of { duration = 0.06, pulses = { every = 2e-3, period = 0.08 } }           -- they do not come again
    says(function() fine:resample(other, other:start(5)) end, "got 0.03 here and 0.06 there")
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
    local solid, count, drawn = design:binarise(p, { threshold = 1e-3 }), nil, 0
    -- numbers are those of the whole block, as are values that a picture is given
    local opacity = require("cq.experiment.shown").opacity(T.arange(1, 100) / 100)
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
    assert(state:positions():size(1) >= #design:binarise(p).particles)
  end)

  it("leaves out void of a binary body that is far from all solid, but for groups, where asked for", function()
    local design = design_of({ filter = { radius = 0.05 } })
    local p, binary = variables(design), design:with { binary = "all", far_void = false }
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
    local all, whole, other = of(design:with { binary = "all" })
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
    says(function() design:with { far_void = false } end, "far_void = false is for binary = \"all\"")
    -- a symmetric body has symmetric neighbours, also where rounding decides whether one is near
    local mirrored = design_of({ filter = { radius = 0.06 }, symmetry = { axis = "y" } },
      block_design.robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 }, groups = {} })
    local q = variables(mirrored)
    local function simulated(rows)
      for k = 1, 100 do q.density:set(math.abs((k - 1) % 10 - 4.5) < rows / 2 and 1 or -1, k) end
      local one = experiment(mirrored:with { binary = "all", far_void = false })
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
    local function limits(least) return function(i) return { material = i < 15 and 0.25 or least } end end
    local run = experiment(design, {
      constraints = design:binary { material = 1 },
      by_iteration = { limits = limits(0.25) },
      -- nothing is progress enough: it would end at once
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation",
        penalty = 1, window = 1, tolerance = 1e9 },
    })
    assert.is_true(run:optimize({ iterations = 30, folder = folder, resume = false }).iterations <= 4)
    process.remove(folder)
    run = experiment(design, {
      constraints = design:binary { material = 1 },
      by_iteration = { limits = limits(0.24) },
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.01 }, form = "violation",
        penalty = 1, window = 1, tolerance = 1e9 },
    })
    local made = run:optimize({ iterations = 30, folder = folder, resume = false }).iterations
    assert(made >= 14 and made < 30, made)
  end)

  it("runs binary with the gradient of the smooth map", function()
    local design = design_of()
    local p = variables(design)
    local binary = design:with { binary = "all" }
    local map = binary:map(p)
    assert.is_true(map.density:equal(design:map(p).density:greater(0.5)))
    assert.is_true(map.shares:sum(1):close(T.ones { 100 }, 1e-15) and map.shares:max(1):close(T.ones { 100 }, 1e-15))
    assert.is_true(map.amplitudes:close(design.pulses:binary(p.sign, p.size), 1e-15))
    local function slopes(one)
      local _, grad = T.value_and_grad(function(q)
        local m = one:map(q)
        return m.density:sum() + (m.shares * T.arange(1, 4):unsqueeze(2)):sum() + m.amplitudes:sum()
      end)(p)
      return grad
    end
    local a, b = slopes(design), slopes(binary)
    for name, grad in pairs(a) do assert.is_true(grad:close(b[name], 1e-12) and grad:norm():item() > 0, name) end
    for _, c in ipairs(design:binary { material = 1, layout = 1 }) do
      assert.near(c.of(p):item(), c.of(p, nil, { design = binary }):item(), 1e-15)
    end
    -- where shares are equal, as at the start, particles follow the signal that design:binarise gives them
    p.layout:fill(0)
    local shares = binary:map(p).shares
    assert.is_true(shares:sum(1):equal(T.ones { 100 }) and shares[1]:equal(T.ones { 100 }))
    assert.equal(1, design:binarise(p).actuator[1])
  end)

  it("has in its binary body what was trained beside it, of the robot, the world and each scene", function()
    local design = design_of { material = { void = 1e-9, sharpness = 60 }, layout = { sharpness = 1e4 },
      filter = { radius = 0.021 } }
    local p = variables(design)
    p.density:copy_from(T.where(p.density:less(-0.2), -1, 1))
    p.sign:copy_from(T.where(p.sign:less(0), -1, 1))
    p.size:fill(1)
    local solid, last = design:binarise(p), nil
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
      local _, trained = solid:train(run, { iterations = 1, folder = folder, params = p,
        optimizer = cq.Optimizer.adam { rate = 1e-9 } })
      assert.near(binary, trained, 1e-12)
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
    says(function() run:evaluate { body = design_of():binarise(p) } end, "made of a design for another world")
    says(function() solid:train(design, { iterations = 1 }) end, "solid:train: run must be a cq.Experiment")
    says(function() design_of():binarise(p):train(run, { iterations = 1, folder = folder .. "/none" }) end,
      "solid:train: this body was made of a design for another world")
    local plain = cq.Experiment { world = solid.world, steps = 30, objective = print,
      controller = cq.Controller.open_loop { steps = 30 } }
    says(function() solid:train(plain, { iterations = 1, folder = folder .. "/none" }) end,
      "solid:train: this body was made of a design, and the experiment has none")
    local short = cq.Experiment { world = design.world, steps = 20, design = design, objective = print }
    says(function() solid:train(short, { iterations = 1, folder = folder .. "/none" }) end,
      "solid:train: the pulses of this body take 30 control steps, the experiment 20")
    assert.is_nil(cq.Run.can_resume(folder .. "/none") or nil)
    says(function() solid:with_pulses() end, "solid:with_pulses: params is missing")
  end)

  it("trains the pulses of the binary body, which never go worse than before", function()
    local design = design_of()
    local p = variables(design)
    local run = experiment(design)
    for name, tensor in pairs(p) do run.params.design[name]:copy_from(tensor) end
    local solid = design:binarise(p)
    local before = run:evaluate { body = solid }.loss
    local trained, loss = solid:train(run,
      { iterations = 12, folder = folder, optimizer = cq.Optimizer.adam { rate = 0.05 } })
    assert.is_true(loss < before)
    assert.near(loss, run:evaluate { body = trained }.loss, 1e-12)
    assert.is_true(trained.pulses:abs():round():equal(trained.pulses:abs()))
    assert.is_false(trained.pulses:equal(solid.pulses))
    -- or from the design's own signs and sizes, which stay as they are
    local sign = p.sign:detach():copy()
    local again = cq.Optimizer.adam { rate = 0.05 }
    local _, first = solid:train(run, { iterations = 1, folder = folder, params = p, optimizer = again })
    assert.near(before, first, 1e-12)
    local _, later = solid:train(run,
      { iterations = 12, folder = folder, params = { design = p }, optimizer = again, resume = true })
    assert(later < before and p.sign:equal(sign), later)
    p.sign:copy_from(-sign)
    says(function() solid:trainable(p) end, "params must round to the pulses of this body")
    says(function() solid:trainable { sign = T.ones { 2, 3 } } end, "params must have sign {15, 3}")
  end)

  it("goes on with a training of the same body, and of no other", function()
    local design = design_of()
    local p, run = variables(design), experiment(design)
    local solid = design:binarise(p)
    local adam = function() return cq.Optimizer.adam { rate = 0.05 } end
    local function train(body, iterations, resume, where)
      local trained, loss = body:train(run, { iterations = iterations, folder = where or folder, optimizer = adam(),
        resume = resume })
      return trained, loss, #cq.Run.read_history(where or folder)
    end
    local whole, least = train(solid, 8, false, folder .. "/whole")
    train(solid, 4, true)
    local parts, loss, rows = train(solid, 8, true)
    assert.equal(8, rows)
    assert.near(least, loss, 0)
    assert.is_true(parts.pulses:equal(whole.pulses))
    -- with what was made before: one evaluation was not made again
    assert.equal(8, select(3, train(solid, 8, true)))
    p.sign:copy_from(-p.sign:detach())
    assert.equal(2, select(3, train(design:binarise(p), 2, true)))
    assert.equal(2, select(3, train(solid, 2, false)))
  end)

  it("has pulses as a controller of its own", function()
    local design = design_of()
    local p = variables(design)
    local map = design:map(p)
    local function final(controller)
      return design.world:rollout({ robot = map.robot, steps = 30, controller = controller }).state:positions()
    end
    assert.is_true(final(design.pulses:controller { sign = p.sign, size = p.size }):equal(final(map.controller)))
    says(function() design.pulses:controller { sign = T.ones { 2, 3 }, size = p.size } end,
      "sign must be {pulses, signals} = {15, n}, got {2, 3}")
    local train = design.pulses:controller { sign = p.sign, size = p.size }
    says(function() final(train:with { sign = T.ones { 15, 3 }, size = T.ones { 15, 4 } }) end,
      "pulses:controller: size must be {pulses, signals} = {15, 3}, got {15, 4}")
    says(function() final(train:with { sign = T.ones { 15, 3 } }) end, "the parameters lack size")
    says(function() design.pulses:signals(T.ones { 3, 15 }) end,
      "pulses:signals: amplitudes must be {pulses, signals} = {15, n}, got {3, 15}")
    says(function() design.pulses:amplitudes(p.sign, T.ones { 3, 15 }) end,
      "sign and size must have one shape, {pulses, signals}, got {15, 3} and {3, 15}")
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
