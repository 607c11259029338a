-- topology: the parts of a design, its gradient, what it becomes when it is made binary, and its files.
local ffi = require "ffi"
local cq = require "cq"
local T = require "cq.tensor"
local messages = require "cq.base.message"
local block_design = require "tests.block_design"
local derivative = require "tests.derivative"
local differences = require "tests.differences"
local process = require "tests.process"
local spread = require "tests.spread"
local says = require("tests.sentence").refuses

local block = block_design.robot
local world_of = block_design.world
local design_of = block_design.make
local variables = block_design.variables
local soft = block_design.material

describe("parts of a design", function()
  it("filter: the weighted mean of the particles nearer than the radius, on no lattice too", function()
    local points = (cq.random { seed = 5 }):uniform { 50, 3 }
    local filter = cq.Topology.filter { points = points, radius = 0.4, power = 3 }
    local x = spread({ 2, 50 }, -1, 1)
    local got, sum, weight = filter(x), 0, 0
    for q = 1, 50 do
      local r = (points[q] - points[7]):norm():item()
      if r < 0.4 then
        local w = (1 - r / 0.4) ^ 3
        sum, weight = sum + w * x:get(2, q), weight + w
      end
    end
    assert.near(sum / weight, got:get(2, 7), 1e-14)
    assert.is_true(filter(T.ones { 50 }):close(T.ones { 50 }, 1e-14))
  end)

  it("projection: from void to solid, at a threshold", function()
    local x = T.tensor { -1, 0, 0.3, 1 }
    local middle = cq.Topology.projection { sharpness = 4 }(x)
    assert.is_true(middle:close(T.tensor { 0, 0.5, ((T.tensor(1.2):tanh() / T.tensor(4):tanh() + 1) / 2):item(), 1 },
      1e-15))
    local thin = cq.Topology.projection { sharpness = 40, threshold = 0.3 }(x)
    assert.is_true(thin:get(2) < 1e-9 and math.abs(thin:get(3) - 0.5) < 1e-9 and thin:get(1) == 0
      and math.abs(thin:get(4) - 1) < 1e-15)
  end)

  it("interpolation: by powers, with something left of the void", function()
    local x = T.tensor { 0, 0.5, 1 }
    assert.is_true(cq.Topology.interpolation { min_density = 0.01, exponent = 3 }(x):close(T.tensor { 0.01,
      0.99 / 8 + 0.01, 1 },
      1e-15))
  end)

  it("layout: shares of all signals and of none", function()
    local shares = cq.Topology.layout { sharpness = 4 }(spread({ 5, 20 }, -1, 1))
    assert.is_true(shares:sum(1):close(T.ones { 20 }, 1e-15))
    assert.is_true(cq.Topology.layout { sharpness = 400 }(spread({ 5, 20 }, -1, 1)):max(1):mean():item() > 0.9)
  end)

  it("pulses: all of one sign saturate, signs and sizes make amplitudes", function()
    local pulses = cq.Topology.pulses { duration = 0.1, control_dt = 1e-3, interval = 2e-3, width = 0.01, gain = 0.2 }
    assert.equal(50, pulses.count)
    assert.equal(100, pulses.steps)
    local one = T.ones { 50, 2 }
    local u = pulses:signals(pulses:amplitudes(one, one))
    -- 0.2 sqrt(2 pi) 0.01 / 0.002 = 2.507 in the middle
    assert.near(0.98679, u:get(50, 1), 1e-4)
    assert.is_true(u:get(1, 1) < u:get(50, 1))
    assert.is_true(pulses:amplitudes(-one, one):equal(-one) and pulses:amplitudes(one, -one):equal(T.zeros { 50, 2 }))
    assert.same({ -1, 0, 1 }, pulses:rounded(T.tensor { -0.2, 0.4, 0.4 }, T.tensor { 0.1, -0.1, 0.9 }):totable())
  end)

  it("pulses: those of a period come again", function()
    local fields = { duration = 0.1, control_dt = 1e-3, interval = 2e-3, width = 0.01, gain = 0.2 }
    local all = cq.Topology.pulses(fields)
    fields.period = 0.024
    local again = cq.Topology.pulses(fields)
    assert.equal(12, again.count)
    local few, many = spread({ 12, 2 }, -1, 1), T.zeros { 50, 2 }
    for k = 1, 50 do
      for a = 1, 2 do many:set(few:get((k - 1) % 12 + 1, a), k, a) end
    end
    assert.is_true(again:signals(few):close(all:signals(many), 1e-12))
    fields.period = 0.5
    assert.is_true(cq.Topology.pulses(fields).kernel:equal(all.kernel))
    fields.period = 0.025
    says(function() cq.Topology.pulses(fields) end, "period must be a multiple of interval, got 0.025 and 0.002")
  end)

  it("all have gradients", function()
    local points = (cq.random { seed = 5 }):uniform { 12, 2 }
    local parts = {
      filter = { cq.Topology.filter { points = points, radius = 0.3 }, { 3, 12 } },
      projection = { cq.Topology.projection { sharpness = 3, threshold = -0.2 }, { 12 } },
      interpolation = { cq.Topology.interpolation { min_density = 0.1, exponent = 3 }, { 12 } },
      layout = { cq.Topology.layout { sharpness = 2 }, { 4, 12 } },
    }
    for name, part in pairs(parts) do
      local err = differences.error(part[1], { spread(part[2], 0.1, 0.9) })
      assert(err < 1e-8, name .. ": " .. err)
    end
  end)

  it("print themselves", function()
    assert.equal("cq.Topology.projection { sharpness 3, threshold -0.2 }",
      tostring(cq.Topology.projection { sharpness = 3, threshold = -0.2 }))
    assert.equal("cq.Topology.interpolation { min_density 1e-08, exponent 2 }",
      tostring(cq.Topology.interpolation { exponent = 2 }))
    assert.equal("cq.Topology.layout { sharpness 4 }", tostring(cq.Topology.layout { sharpness = 4 }))
  end)

  it("refuse what makes no sense", function()
    local points = block().position
    says(function() cq.Topology.filter { points = points, radius = 0.01 } end, "no particle has a neighbour",
      "above the spacing")
    -- one that is as far away weighs nothing, but for rounding
    says(function() cq.Topology.filter { points = points, radius = 0.02 } end, "no particle has a neighbour")
    says(function() cq.Topology.filter { points = points, radius = 0.3 } end, "spans the whole body of 0.18")
    for _, shape in ipairs { { 5 }, { 0, 2 } } do
      says(function() cq.Topology.filter { points = T.ones(shape), radius = 1 } end,
        "cq.Topology.filter: points must be {n, dim} as robot.position, got {" .. table.concat(shape, ", ") .. "}")
    end
    says(function() cq.Topology.interpolation { exponent = 0.5 } end,
      "exponent must be a finite number at least 1, got 0.5")
    says(function() cq.Topology.pulses { duration = 0.1, control_dt = 1e-3, interval = 3e-3, width = 0.01,
      gain = 1 } end,
      "duration must be a multiple of interval, got 0.1 and 0.003")
    says(function() cq.Topology.pulses { duration = 0.1, control_dt = 5e-3, interval = 2e-3, width = 0.01,
      gain = 1 } end,
      "interval is 0.002",
      "at least a control step, 0.005")
    says(function() cq.Topology.pulses { duration = 0.1, control_dt = 5e-3, interval = 0.01, width = 1e-3,
      gain = 1 } end,
      "width is 0.001")
  end)
end)

describe("a design", function()
  it("starts grey, without a signal, and with small pulses that are drawn", function()
    local design = design_of()
    local map = design:map(design.params)
    assert.is_true(map.density:close(T.full({ 100 }, 0.5), 1e-15) and map.shares:close(T.full({ 4, 100 }, 0.25), 1e-15))
    assert.is_false(design:start(1).sign:equal(design:start(2).sign))
    assert.is_true(design:start(1).sign:equal(design.params.sign))
  end)

  it("is made anew where one of its variables is another tensor", function()
    local design = design_of()
    T.value_and_grad(function(shift)
      local p = {}
      for name, tensor in pairs(design.params) do p[name] = tensor end
      p.density = design.params.density + shift
      local map = design:map(p)
      assert.equal(map, design:map(p))
      p.density = p.density + 0.5
      local other = design:map(p)
      assert.is_true(other.density:mean():item() > map.density:mean():item() + 0.1)
      return other.density:mean()
    end)(T.param(0.1))
  end)

  it("is made again in each control step that is reversed", function()
    local design = design_of()
    local params = variables(design)
    local function slope(controller)
      local _, grad = T.value_and_grad(function(p)
        return design.world:rollout { robot = design:map(p).robot, steps = 3, controller = controller(p) }.state
          :velocities():square():sum()
      end)(params)
      return grad.sign
    end
    local asked = slope(function(p) return function(_, _, _, step) return design:map(p).signals[step] end end)
    local given = slope(function(p) return design:map(p).controller end)
    assert.is_true(given:norm():item() > 0 and asked:close(given, 1e-9, 1e-12 * given:norm():item()))
  end)

  it("gives every particle its share of mass, stiffness and actuation", function()
    local design = design_of { solid_region = "tip", material = { min_density = 0.01, actuation_exponent = 2 } }
    local map = design:map(variables(design))
    local weight = map.robot.values.actuation_weight.tensor
    local p = design.robot:group("tip"):particles()[1]
    assert.equal(1, map.density:get(p))
    assert.near(1000 * (0.99 * map.density:get(2) + 0.01), map.robot.values.density.tensor:get(2), 1e-9)
    assert.near(1e5 * (0.99 * map.density:get(2) + 0.01), map.robot.values.young.tensor:get(2), 1e-7)
    assert.near(-map.shares:get(3, 2) * (0.99 * map.density:get(2) ^ 2 + 0.01), weight:get(2, 3), 1e-14)
  end)

  it("scales what is a stress of each material, and leaves the others", function()
    local shape = { cq.Shape.box { name = "foot", size = { 0.2, 0.1 }, spacing = 0.02 },
      cq.Shape.box { name = "block", at = { 0, 0.1 }, size = { 0.2, 0.1 }, spacing = 0.02 } }
    local metal = cq.Material.von_mises { young = 2e5, poisson = 0.3, density = 2000, yield_stress = 3e4 }
    local design = design_of({}, block { shape = shape, material = { foot = metal, block = soft } })
    local p = variables(design)
    local body = design:map(p).robot
    assert.equal(50, body.values.yield_stress.tensor.count)
    assert.is_nil(body.values.poisson)
    local step = T.value_and_grad(function(q)
      local map = design:map(q)
      local roll = design.world:rollout { robot = map.robot, steps = 3, controller = map.controller }
      return roll.state:center(design.robot)[1]
    end)
    local _, grad = step(p)
    assert.is_true(grad.density:finite() and grad.density:norm():item() > 0)
  end)

  it("has the gradient of differences, through the rollout and the constraints", function()
    local design = design_of()
    local p = variables(design)
    local run = cq.Experiment {
      world = design.world, steps = 30, design = design, objective = function(state, start)
        return 100 * (start:center(design.robot)[1] - state:center(design.robot)[1])
      end,
    }
    derivative.check(function(q) return run:loss(run:rollout { design = q }) end, p, 1e-6)
    for _, constraint in ipairs(design:discreteness { material = 0.05, layout = 0.05, pulses = 0.01 }) do
      local own = { material = "density", layout = "layout", sign = "sign", magnitude = "magnitude" }
      local q = {}
      for name, tensor in pairs(p) do q[name] = name == own[constraint.name] and tensor or tensor:detach() end
      derivative.check(constraint.of, q, 1e-8)
    end
  end)

  it("says which variables are out of bounds, and bears what rounding does at them", function()
    local design = design_of()
    local function with(name, value)
      local p = variables(design)
      p[name]:copy_from(T.zeros(p[name]:shape()) + value)
      return function() return design:map(p) end
    end
    for _, name in ipairs { "density", "sign", "magnitude" } do
      says(with(name, -5), ("design: %s must be in [-1, 1] everywhere, the least is -5"):format(name))
      says(with(name, 1.2), ("design: %s must be in [-1, 1] everywhere, the largest is 1.2"):format(name))
    end
    for _, name in ipairs { "density", "layout", "sign", "magnitude" } do
      says(with(name, 0 / 0), ("design: %s must be finite everywhere"):format(name))
    end
    -- near the bound, where differences go, but less than nothing of a particle
    says(with("density", -1.005), "design: density must be in [-1, 1] everywhere, the least is -1.005")
    assert.is_true(with("density", -1.0001)().robot.values.young.tensor:min():item() > 0)
    assert.is_true(with("layout", 1e6)().shares:finite())
    -- the check of a design that has come to its bounds steps as far as it can
    local p = variables(design)
    p.density:copy_from(T.where(p.density:less(0), -1, 1))
    assert.is_true(T.check_gradient(function(q) return design:map(q).robot.values.young.tensor:square():sum() end,
      { density = p.density, layout = p.layout:detach(), sign = p.sign:detach(), magnitude = p.magnitude:detach() },
      { tolerance = 1e-5 }).ok)
    -- the mean of many -1 is a little less than that, of which no broken exponent is a number
    design = design_of { material = { stiffness_exponent = 1.5, mass_exponent = 1, sharpness = 1 } }
    assert.near(1e5 * 1e-5, with("density", -1)().robot.values.young.tensor:max():item(), 1e-9)
  end)

  it("is as binary as its constraints say", function()
    local design = design_of()
    local p = design:start(1)
    local bounds = design:discreteness { material = 0.05, layout = 0.05, pulses = 0.01 }
    local names = {}
    for k, c in ipairs(bounds) do names[k] = c.name end
    assert.same({ "material", "layout", "sign", "magnitude" }, names)
    assert.near(0.25, bounds[1].of(p):item(), 1e-15)
    assert.near(0.75, bounds[2].of(p):item(), 1e-15)
    assert.near(0.05 * 0.25, bounds[1].at_most, 1e-15)
    assert.near(0.05 * 0.75, bounds[2].at_most, 1e-15)
    p.sign:fill(1)
    p.magnitude:fill(-1)
    assert.equal(0, bounds[3].of(p):item() + bounds[4].of(p):item())
    assert.equal(1, #design:discreteness { layout = 0.1 })
  end)

  it("is thinner at a higher threshold, and keeps its variables", function()
    local design = design_of()
    local p = variables(design)
    local thin = design:with { material = { threshold = 0.3 } }
    assert.is_true((design:map(p).density - thin:map(p).density):min():item() >= 0)
    assert.is_true(thin:map(p).density:sum():item() < design:map(p).density:sum():item() - 5)
    assert.is_true(design:with({ layout = { sharpness = 40 } }):map(p).shares:max(1):mean():item() > design:map(
      p).shares:max(1):mean():item())
    assert.equal(4, thin.material.sharpness)
  end)

  it("refuses other actuators, other parameters and times that do not fit", function()
    says(function() design_of({}, block { actuators = cq.Actuator.pressure { groups = "tip", axis = "y" } }) end,
      "signals that every particle can follow", "got tip")
    says(function() design_of { duration = 0.0305 } end, "duration must be a multiple of control_dt")
    local design = design_of()
    says(function() design:map { density = T.ones { 3 } } end,
      "params must have density of shape {100}, as design.params has it, got {3}")
    says(function() design:extract() end, "params must be a table as design.params, got nil")
    says(function() design:discreteness {} end, "design:discreteness: needs one of")
    says(function() design:with { pulses = { width = 0.07 } } end, "design:with: unknown field pulses",
      "allowed are filter, layout, material, remove_void, rounding")
    for old, new in pairs { binarise = "extract", binary = "discreteness", resample = "transfer",
      member_size = "length_scale" } do
      says(function() design[old](design) end, ("design:%s: its name is design:%s now"):format(old, new))
    end
    for new, fields in pairs { solid_region = { solid = "tip" }, connected = { one_piece = true },
      interval = { pulses = { every = 2e-3 } }, gain = { pulses = { height = 1 } },
      initial_deviation = { pulses = { deviation = 1 } }, min_density = { material = { void = 1e-5 } },
      stiffness_exponent = { material = { power = 2 } },
        actuation_exponent = { material = { actuation_power = 2 } } } do
      fields.world, fields.duration = design.world, 0.03
      says(function() cq.Topology(fields) end, ("(its name is %s now)"):format(new))
    end
    says(function() design:with { binary = "all" } end, "unknown field binary (its name is rounding now)")
    says(function() cq.Experiment { world = design.world, steps = 31, design = design, objective = print } end,
      "the design has pulses for 0.03, 30 control steps, and the experiment makes 31")
    says(function() cq.Experiment { world = world_of(block()), steps = 3, design = design, objective = print } end,
      "another world")
    says(function()
      cq.Experiment { world = design.world, steps = 3, design = design, robot = design.robot, objective = print }
    end, "either design")
    for _, name in ipairs { "density", "young", "actuation_weight" } do
      says(function()
        cq.Experiment { world = design.world, steps = 3, design = design, objective = print, trainable = { [name] = {
          per = "particle", init = name == "actuation_weight" and T.ones { 100, 3 } or 1 } } }
      end, ("trainable.%s: the design gives the robot its %s"):format(name, name))
    end
  end)
end)

describe("a design made binary", function()
  it("is its solid particles alone, each with its signal, and whole pulses", function()
    local design = design_of()
    local p = variables(design)
    local map, solid = design:map(p), design:extract(p)
    assert.equal(map.density:greater(0.5):sum():item(), solid.robot.particle_count)
    assert.equal(solid.robot.particle_count, solid.world.particle_count)
    local weight = solid.robot.values and solid.robot.values.actuation_weight.tensor
    for k, q in ipairs(solid.particles) do
      assert.near(design.robot.position:get(q, 2), solid.robot.position:get(k, 2), 0)
      local a = map.shares:slice(q, q, 2):argmax(1):item()
      assert.equal(a <= 3 and a or 0, solid.actuator[k])
      for s = 1, 3 do assert.equal(s == a and -1 or 0, weight:get(k, s)) end
    end
    assert.is_true(solid.pulses:equal(design.pulses:rounded(p.sign, p.magnitude)))
    assert.equal(design.world.substeps, solid.world.substeps)
  end)

  it("goes as the design does that is binary already", function()
    local design = design_of({ material = { min_density = 1e-9, sharpness = 60 }, layout = { sharpness = 1e4 },
      filter = { radius = 0.021 } })
    local p = variables(design)
    p.density:copy_from(T.where(p.density:less(-0.2), -1, 1))
    p.sign:copy_from(T.where(p.sign:less(0), -1, 1))
    p.magnitude:fill(1)
    local run = cq.Experiment {
      world = design.world, steps = 30, design = design,
      objective = function(state, start) return state:center(design.robot)[2] - start:center(design.robot)[2] end,
    }
    for name, tensor in pairs(p) do run.params.design[name]:copy_from(tensor) end
    local whole, binary = run:evaluate { params = "last" }.loss, run:evaluate { body = design:extract(p) }.loss
    assert.is_true(math.abs(whole) > 1e-4)
    -- particles of nearly no mass go with the others and hold nothing
    assert.near(whole, binary, 1e-3 * math.abs(whole))
  end)

  it("knows which signals nobody follows", function()
    local design = design_of()
    local p = variables(design)
    p.layout:fill(0)
    for q = 1, 100 do p.layout:set(1, 2, q) end
    local note, told = messages.note, nil
    messages.note = function(format, ...) told = format:format(...) end
    local fine, solid = pcall(design.extract, design, p)
    messages.note = note
    assert.is_true(fine)
    assert.same({ 1, 3 }, solid.unused)
    assert.equal("design:extract: no particle follows signal 1, 3", told)
  end)

  it("is refused when it is empty", function()
    local design = design_of()
    local p = design:start(1)
    says(function() design:extract(p) end, "above the threshold 0.5, the most is 0.5", "the body is empty")
    assert.equal(100, #design:extract(p, { threshold = 0.4 }).particles)
  end)
end)

describe("files of a design", function()
  local folder
  before_each(function() folder = process.folder() end)
  after_each(function() process.remove(folder) end)

  -- volume within triangles of an STL file, and how many of its edges have no partner that runs the other way
  local function measure(path)
    local data, volume, edges, open = assert(process.read(path)), 0, {}, 0
    local count = ffi.cast("const uint32_t *", ffi.cast("const char *", data) + 80)[0]
    assert.equal(84 + 50 * count, #data)
    for k = 0, count - 1 do
      local c = ffi.new "float[9]"
      ffi.copy(c, ffi.cast("const char *", data) + 84 + 50 * k + 12, 36)
      volume = volume + (c[0] * (c[4] * c[8] - c[5] * c[7]) - c[1] * (c[3] * c[8] - c[5] * c[6])
        + c[2] * (c[3] * c[7] - c[4] * c[6])) / 6
      local names = {}
      for i = 0, 2 do names[i] = ("%.9g %.9g %.9g"):format(c[3 * i], c[3 * i + 1], c[3 * i + 2]) end
      for i = 0, 2 do
        local there, back = names[i] .. "|" .. names[(i + 1) % 3], names[(i + 1) % 3] .. "|" .. names[i]
        if edges[back] and edges[back] > 0 then
          edges[back] = edges[back] - 1
        else
          edges[there] = (edges[there] or 0) + 1
        end
      end
    end
    for _, left in pairs(edges) do open = open + left end
    return volume, open
  end

  -- volumes of all parts together and of the whole, each of which must be closed
  local function volumes(paths)
    local sum, whole = 0, nil
    for _, path in ipairs(paths) do
      local volume, open = measure(path)
      assert(open == 0 and volume > 0, path)
      if path:find "whole" then whole = volume else sum = sum + volume end
    end
    return sum, whole
  end

  it("hold a line for each particle and pulse", function()
    local design = design_of()
    local p = variables(design)
    design:save(p, folder .. "/block.csv")
    local lines = {}
    for line in process.read(folder .. "/block.csv"):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal("x,y,density,actuator,share_1,share_2,share_3", lines[1])
    assert.equal(101, #lines)
    local map = design:map(p)
    assert.equal(("%.6g"):format(map.density:get(7)), lines[8]:match "^[^,]+,[^,]+,([^,]+),")
    local _, count = process.read(folder .. "/block_pulses.csv"):gsub("\n", "")
    assert.equal(1 + design.pulses.count, count)
    says(function() design:save(p, "block.txt") end, "must end in .csv")
  end)

  it("hold what a body is made of, and its signals, whatever its pulses", function()
    local design = design_of { pulses = { interval = 0.002, width = 0.004, period = 0.01 } }
    local p = variables(design)
    local solid = design:extract(p)
    local turned = variables(design)
    turned.sign:copy_from(-p.sign:detach())
    local other = design:extract(turned)
    for _, body in ipairs { solid, other } do
      local paths, tables = body:save(folder .. "/made.csv"), {}
      for k, path in ipairs(paths) do
        tables[k] = {}
        for line in process.read(path):gmatch "[^\n]+" do
          local row = {}
          for word in line:gmatch "[^,]+" do row[#row + 1] = tonumber(word) or word end
          table.insert(tables[k], row)
        end
      end
      local particles, pulses, signals = unpack(tables)
      assert.equal(1 + design.robot.particle_count, #particles)
      local found = 0
      for q = 2, #particles do
        if particles[q][3] == 1 then
          found = found + 1
          assert.equal(body.particles[found], q - 1)
          assert.equal(body.actuator[found], particles[q][4])
        else
          assert.same({ 0, 0 }, { particles[q][3], particles[q][4] })
        end
      end
      assert.equal(#body.particles, found)
      -- all pulses of the whole time
      assert.equal(1 + design.pulses.all, #pulses)
      assert(design.pulses.all > design.pulses.count)
      local train = design.pulses:signals(body.pulses)
      assert.equal(1 + train:size(1), #signals)
      for k = 1, design.pulses.all do
        for s = 1, design.signals do
          assert.equal(body.pulses:get((k - 1) % design.pulses.count + 1, s), pulses[k + 1][s + 1])
        end
      end
      for k = 1, train:size(1) do
        for s = 1, design.signals do
          assert(math.abs(train:get(k, s) - signals[k + 1][s + 1]) < 1e-8)
        end
      end
    end
    assert(not solid.pulses:equal(other.pulses))
    says(function() solid:save "made" end, "body:save: path must end in .csv")
    says(function() solid:save "/no/such/folder/made.csv" end, "body:save: ", "/no/such/folder/made.csv")
  end)

  it("are closed surfaces of the volume of their particles", function()
    local design = design_of()
    local p = variables(design)
    local solid = design:extract(p)
    local paths = solid:save_surface(folder .. "/block.stl", { thickness = 0.1 })
    assert.equal(5, #paths)
    local sum, whole = volumes(paths)
    local exact = #solid.particles * 0.02 ^ 2 * 0.1
    assert.near(exact, whole, 0.05 * exact)
    assert.near(whole, sum, 1e-4 * whole)
  end)

  it("are exact but for the edges for a block, in 2D and 3D", function()
    local design = design_of()
    local p = design:start()
    p.density:fill(1)
    local paths = design:extract(p):save_surface(folder .. "/square.stl", { thickness = 0.1 })
    local volume = measure(paths[#paths])
    assert.near(0.2 * 0.2 * 0.1, volume, 4 * 0.02 ^ 2 * 0.1)
    local cube = cq.Robot {
      shape = cq.Shape.box { size = { 0.2, 0.2, 0.2 }, spacing = 0.02 }, material = soft,
      actuators = cq.Actuator.isotropic { count = 2, max = 1e4 },
    }
    local world = cq.World { cells = { 16, 16, 16 }, dx = 0.04, dt = 1e-3, substeps = 5, threads = 1,
      cube:at { 0.2, 0.08, 0.2 } }
    design = cq.Topology { world = world, duration = 0.01, filter = { radius = 0.05 } }
    p = design:start()
    p.density:fill(1)
    p.layout:copy_from(design.robot.position:slice(1, 1, 2):reshape { 1, 1000 } * T.tensor { { 1 }, { 0 }, { 0.29 } })
    paths = design:extract(p):save_surface(folder .. "/cube.stl")
    assert.equal(2, #paths)
    for _, path in ipairs(paths) do
      local inside, open = measure(path)
      assert(open == 0, path)
      assert.near(0.008, inside, 0.05 * 0.008)
    end
    local mesh = cq.Shape.mesh { path = paths[#paths] }
    assert.is_true(mesh:contains(0.3, 0.18, 0.3) and not mesh:contains(0.3, 0.07, 0.3))
  end)

  it("fill the whole without gaps where many parts meet, in 2D and 3D, on a lattice or none", function()
    local random = cq.random { seed = 2 }
    local function scattered(shape)
      local points = shape:sample().position
      local shift = 0.02 * random:uniform { points:size(1), points:size(2) }
      return cq.Shape.points { points = points + shift, spacing = 0.02, name = "block" }
    end
    local square = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 }
    local cube = cq.Shape.box { size = { 0.16, 0.16, 0.16 }, spacing = 0.02 }
    for _, shape in ipairs { square, scattered(square), cube, scattered(cube) } do
      local muscles = cq.Actuator.isotropic { count = 4, max = 1e4 }
      local robot = cq.Robot { shape = shape, material = soft, actuators = muscles }
      local n, flat = robot.particle_count, robot.dim == 2
      local world = cq.World { cells = flat and { 16, 16 } or { 16, 16, 16 }, dx = 0.04, dt = 1e-3, substeps = 5,
        threads = 1, robot:at(flat and { 0.2, 0.2 } or { 0.2, 0.2, 0.2 }) }
      local design = cq.Topology { world = world, duration = 0.01, filter = { radius = 0.03 } }
      local p = design:start()
      p.density:copy_from(random:uniform { n } * 2 - 1)
      p.layout:copy_from(random:uniform { 5, n } * 2 - 1)
      local paths = design:extract(p):save_surface(folder .. "/many.stl", { thickness = 0.1 })
      assert.equal(6, #paths)
      local sum, whole = volumes(paths)
      assert.near(whole, sum, 1e-5 * whole)
    end
  end)

  it("tell of particles that have no surface", function()
    local random, points = cq.random { seed = 2 }, {}
    for k = 0, 99 do points[k + 1] = { 0.02 * (k % 10), 0.02 * math.floor(k / 10) } end
    points = T.tensor(points) + 0.006 * random:uniform { 100, 2 }
    local design = design_of({}, block { shape = cq.Shape.points { points = points, spacing = 0.02, name = "block" } })
    local solid = design:extract(design:start(), { threshold = 0.4 })
    for k = 1, 100 do solid.actuator[k] = (k == 5 or k == 50) and 2 or 1 end
    local message, told = require "cq.base.message", {}
    local own = message.note
    message.note = function(format, ...) told[#told + 1] = format:format(...) end
    local paths = solid:save_surface(folder .. "/single.stl", { thickness = 0.1 })
    message.note = own
    assert.same({ folder .. "/single_1.stl", folder .. "/single_whole.stl" }, paths)
    assert.same({ ("body:save_surface: 2 particles of actuator 2 lie single among others: no %s/single_2.stl"):format(folder) },
      told)
    solid.particles, solid.actuator = { 5, 50 }, { 1, 1 }
    says(function() solid:save_surface(folder .. "/far.stl") end,
      "body:save_surface: the body has no surface: its 2 particles lie too far apart")
  end)

  it("have no holes where particles are on no lattice", function()
    local random, points = cq.random { seed = 4 }, {}
    for p = 0, 99 do points[p + 1] = { 0.02 * (p % 10), 0.02 * math.floor(p / 10) } end
    points = T.tensor(points) + 0.02 * random:uniform { 100, 2 }
    local design = design_of({}, block { shape = cq.Shape.points { points = points, spacing = 0.02, name = "block" } })
    local p = design:start()
    p.density:fill(1)
    local paths = design:extract(p):save_surface(folder .. "/scan.stl", { thickness = 0.1 })
    local volume, open = measure(paths[#paths])
    assert.equal(0, open)
    assert.near(0.2 * 0.2 * 0.1, volume, 0.03 * 0.004)
  end)
end)
