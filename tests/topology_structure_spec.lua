-- topology_structure: optional bounds of a design (volume, islands, thin members) and symmetric designs.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local derivative = require "tests.derivative"
local mistake = require "tests.sentence"

local design_of = block_design.make
local says = function(f, ...)
  local message = mistake.of(f)
  for _, part in ipairs { ... } do mistake.says(message, part) end
end

-- a design that is as sharp as its variables, and those of a body that is solid where inside(column, row), from 1 to 10
local function sharp(inside, changes)
  local fields = { material = { sharpness = 60 }, filter = { radius = 0.021 } }
  for key, value in pairs(changes or {}) do fields[key] = value end
  local design = design_of(fields)
  local p, x = design:start(1), design.robot.position
  for q = 1, 100 do
    local column, row = math.floor((x:get(q, 1) - 0.2) / 0.02) + 1, math.floor((x:get(q, 2) - 0.08) / 0.02) + 1
    p.density:set(inside(column, row) and 1 or -1, q)
  end
  return design, p
end

local function value(constraint, p) return constraint.of(p):item() end

-- variables all over, of which the density alone is a parameter
local function densities(design)
  local p, q = block_design.variables(design), {}
  for name, tensor in pairs(p) do q[name] = name == "density" and tensor or tensor:detach() end
  return q
end

describe("the volume of a design", function()
  it("is the share of the block that is solid", function()
    local design, p = sharp(function(column) return column <= 4 end)
    local bounds = design:volume { at_most = 0.5, at_least = 0.3 }
    assert.same({ "volume", "void" }, { bounds[1].name, bounds[2].name })
    assert.near(0.4, value(bounds[1], p), 1e-9)
    assert.near(0.6, value(bounds[2], p), 1e-9)
    assert.same({ 0.5, 0.7 }, { bounds[1].at_most, bounds[2].at_most })
    assert.equal("void", design:volume { at_least = 0.3 }[1].name)
  end)

  it("has a gradient", function()
    local design = design_of()
    derivative.check(design:volume { at_most = 0.5 }[1].of, densities(design), 1e-9)
  end)

  it("refuses bounds that no body keeps", function()
    local design = design_of()
    says(function() design:volume {} end, "design:volume: needs at_most, at_least or both")
    says(function() design:volume { at_most = 0.2, at_least = 0.3 } end, "at_least 0.3 is more than at_most 0.2")
    says(function() design:volume { at_most = 1.5 } end, "at_most must be", "got 1.5")
    local topped = design_of { solid_region = "tip" }
    says(function() topped:volume { at_most = 0.1 } end, "at_most is 0.1", "solid whatever the variables say", "0.2")
    assert.equal(1, #topped:volume { at_most = 0.2 })
  end)
end)

describe("how much of a design hangs loose", function()
  it("is the share of its islands, whatever their distance", function()
    local design, p = sharp(function(column) return column <= 6 or column >= 9 end)
    assert.near(0.25, value(design:connectivity()[1], p), 1e-3)
    design, p = sharp(function(column) return column <= 6 or column == 8 or column == 10 end)
    assert.near(0.25, value(design:connectivity()[1], p), 1e-3)
    -- and none by a bridge of one particle
    design, p = sharp(function(column, row) return column <= 6 or column >= 9 or row == 3 end)
    assert.is_true(value(design:connectivity()[1], p) < 1e-3)
  end)

  it("does not count a soft skin, nor take a soft bridge for one", function()
    local design, p = sharp(function(column) return column <= 4 or column >= 8 end, { material = { sharpness = 4 } })
    local x = design.robot.position
    local function fill(column, density)
      for q = 1, 100 do
        if math.floor((x:get(q, 1) - 0.2) / 0.02) + 1 == column then p.density:set(density, q) end
      end
    end
    fill(5, -0.25)
    local loose = value(design:connectivity { at_most = 0.1 }[1], p)
    assert(math.abs(loose - 0.3 / (0.7 + 0.1 * 0.119)) < 0.01, loose)
    fill(6, -0.25)
    fill(7, -0.25)
    loose = value(design:connectivity { at_most = 0.1 }[1], p)
    assert(loose > 0.3, loose)
  end)

  it("can be told what the rest must hang together with, and who touches", function()
    local design, p = sharp(function(column, row) return column <= 2 or column >= 5 or row >= 9 and column > 4 end)
    assert.near(0.25, value(design:connectivity()[1], p), 1e-3)
    local corner = design:connectivity { root = { 1 } }[1]
    assert.near(0.75, value(corner, p), 1e-2)
    assert.is_true(value(design:connectivity { radius = 0.065 }[1], p) < 1e-3)
    says(function() design:connectivity { radius = 0.01 } end, "no particle touches another within the radius 0.01",
      "above the spacing, 0.02")
    says(function() design:connectivity { root = "leg" } end, "leg")
  end)

  it("has the gradient of differences", function()
    local design = design_of()
    local p = densities(design)
    p.density:copy_from((p.density:detach() * 1.5 - 0.6):clamp(-1, 1))
    assert.is_true(value(design:connectivity()[1], p) > 1e-2)
    -- void conducts 1e-9 of what solid does: differences are right to six digits
    derivative.check(design:connectivity()[1].of, p, 5e-6)
    derivative.check(design:connectivity { root = "tip" }[1].of, p, 5e-6)
  end)

  it("is brought down where it is bounded", function()
    local design, p = sharp(function(column) return column <= 6 or column >= 9 end, { filter = { radius = 0.05 },
      material = { sharpness = 4 } })
    p.density:copy_from(p.density:detach() * 0.6)
    local measure, adam = design:connectivity()[1], cq.Optimizer.adam { rate = 0.05 }
    local rest = { layout = p.layout:detach(), sign = p.sign:detach(), magnitude = p.magnitude:detach() }
    local step = T.value_and_grad(function(q)
      return measure.of { density = q.density, layout = rest.layout, sign = rest.sign, magnitude = rest.magnitude }
    end)
    local q, loose = { density = p.density }, nil
    for _ = 1, 40 do
      local grad
      loose, grad = step(q)
      adam:update(q, grad)
    end
    assert(loose < 0.02, loose)
  end)
end)

describe("a body of one piece", function()
  -- two columns of a block, a wide one and a narrow one; and a corner that touches the wide one
  local function two(column, row) return column <= 4 or column == 5 and row == 10 or column >= 9 end

  it("is the largest one, once it is binary, and goes on from there", function()
    local design, p = sharp(two, { connected = true })
    local weight = cq.random({ seed = 1 }):normal { 100 }
    local loose, whole = sharp(two), design:map(p).density:greater(0.5)
    local function body(one) return one:with({ rounding = "all" }):map(p).density end
    assert.is_true(body(loose):equal(whole))                               -- as asked for: both
    local largest = body(design)
    assert.equal(whole:sum():item() - 20, largest:sum():item())
    assert.equal(41, largest:sum():item())
    assert.equal(41, #design:extract(p).particles)
    assert.equal(61, #loose:extract(p).particles)
    assert.is_true(design:map(p).density:equal(loose:map(p).density))     -- soft: all that there is
    -- with particles that are solid whatever the variables say, what hangs together with them
    local held = sharp(two, { connected = true, solid_region = { 95 } })
    assert.equal(20, held:with({ rounding = "all" }):map(p).density:sum():item())
    assert.equal(20, #held:extract(p).particles)
    -- what is an island still learns, as what is void does
    local function gradient(of)
      local _, grad = T.value_and_grad(function(density)
        local map = design:with({ rounding = "all" }):map { density = density, layout = p.layout:detach(),
          sign = p.sign:detach(), magnitude = p.magnitude:detach() }
        return (of(map) * weight):sum()
      end)(T.param(p.density:detach() * 0.02))
      return grad
    end
    local runs = gradient(function(map) return map.density end)
    assert.is_true(runs:equal(gradient(function(map) return map.smooth.density end)))
    assert(runs:slice(91, 100):abs():min():item() > 0)
  end)
end)

describe("what is joined by a corner alone", function()
  it("is another piece, in the plane and in space; an edge holds nothing either", function()
    local design, p = sharp(function(column, row)
      return column <= 5 and row <= 5 or column > 5 and row > 5 and row < 10
    end, { connected = true })
    assert.equal(25, #design:extract(p).particles)
    local components = require "cq.topology.components"
    local cube = cq.Robot { material = block_design.material,
      shape = cq.Shape.box { size = { 0.04, 0.04, 0.04 }, spacing = 0.01 } }
    local graph = components.touching(cube, 0.01)
    local solid = cq.zeros { 64 }
    local position = cube.position
    for k = 1, 64 do
      local high = { position:get(k, 1) > 0.02, position:get(k, 2) > 0.02, position:get(k, 3) > 0.02 }
      if high[1] == high[2] then solid:set(1, k) end              -- two columns that share an edge
    end
    assert.equal(16, components.largest(graph, solid):sum():item())
    assert.equal(64, components.largest(graph, cq.ones { 64 }):sum():item())
  end)

  it("is joined within 1.5 spacings where particles are no lattice", function()
    local components = require "cq.topology.components"
    local row = cq.Robot { material = block_design.material,
      shape = cq.Shape.points { points = { { 0, 0 }, { 0.014, 0 }, { 0.028, 0 } }, volume = 1e-4 } }
    local graph, largest = components.touching(row, 0.01)
    assert.equal(3, largest)
    assert.equal(3, components.largest(graph, cq.ones { 3 }):sum():item())
  end)
end)

describe("one piece of a symmetric design", function()
  it("has its images, so that it is symmetric", function()
    local design, p = sharp(function(column) return column <= 3 or column >= 8 end,
      { connected = true, symmetry = { axis = "x" } })
    assert.equal(60, #design:extract(p).particles)
    assert.equal(60, design:with({ rounding = "all" }):map(p).density:sum():item())
  end)

  it("refuses a block that is in pieces", function()
    local robot = block_design.robot { shape = cq.Shape.box { name = "block", size = { 0.2, 0.2 },
      spacing = { 0.01, 0.04 } } }
    says(function() design_of({ connected = true }, robot) end, "connected: the block itself is in pieces",
      "1.5 spacings")
  end)
end)

describe("members of a design", function()
  local function thin(inside, fields)
    local design, p = sharp(inside)
    return value(design:length_scale(fields)[1], p)
  end

  it("are thin where a disc of the size does not fit", function()
    assert.is_true(thin(function(column) return column == 5 end, { size = 0.06 }) > 0.99)
    assert.is_true(thin(function(column) return column == 5 or column == 6 end, { size = 0.06 }) > 0.99)
    local corners = thin(function(column) return column >= 4 and column <= 6 end, { size = 0.06 })
    assert.near(4 / 30, corners, 0.01)
    assert.is_true(thin(function(column) return column >= 4 and column <= 6 end, { size = 0.1 }) > 0.99)
    -- a leg of one column below a body
    local leg = thin(function(column, row) return row > 5 or column == 5 end, { size = 0.06 })
    assert.near((5 + 4) / 55, leg, 0.02)
  end)

  it("are gaps where void is asked for", function()
    local slit = thin(function(column) return column < 4 or column > 5 end, { size = 0.06, void = true })
    assert.is_true(slit > 0.7)
    local open = thin(function(column) return column < 4 or column > 7 end, { size = 0.06, void = true })
    assert.is_true(open < 0.02)
    local design = design_of()
    assert.same({ "gap_size", "member_size" }, { design:length_scale { size = 0.06, void = true }[1].name,
      design:length_scale { size = 0.06 }[1].name })
  end)

  it("have the gradient of differences", function()
    local design = design_of()
    derivative.check(design:length_scale { size = 0.06 }[1].of, densities(design), 1e-6)
    derivative.check(design:length_scale { size = 0.06, void = true }[1].of, densities(design), 1e-6)
  end)

  it("refuse sizes that say nothing", function()
    local design = design_of()
    says(function() design:length_scale { size = 0.04 } end, "design:length_scale", "at least three spacings, 0.06",
      "got 0.04")
    says(function() design:length_scale { size = 0.3 } end, "size 0.3 does not fit into the block")
  end)
end)

describe("a symmetric design", function()
  local function mirrored(design, tensor)
    local x, out = design.robot.position, {}
    for q = 1, 100 do
      for r = 1, 100 do
        if math.abs(x:get(q, 1) + x:get(r, 1) - 0.6) < 1e-6 and math.abs(x:get(q, 2) - x:get(r, 2)) < 1e-6 then
          out[q] = r
        end
      end
    end
    return tensor:gather(out, -1)
  end

  -- of a sum over its map, in which each particle and share counts differently
  local function check_gradient(design, p)
    local weights = (T.arange(1, 400) * 0.7):sin():reshape { 4, 100 }
    derivative.check(function(q)
      local m = design:map(q)
      return (m.shares * weights):sum() + (m.density * weights[1]):sum()
    end, { density = p.density, layout = p.layout, sign = p.sign:detach(), magnitude = p.magnitude:detach() }, 1e-8)
  end

  it("is its own image, to the last digit", function()
    local design = design_of { symmetry = { axis = "x" } }
    local map = design:map(block_design.variables(design))
    assert.is_true(mirrored(design, map.density):equal(map.density))
    assert.is_true(mirrored(design, map.shares):equal(map.shares))
    assert.is_false(design_of():map(block_design.variables(design)).density:equal(map.density))
  end)

  it("exchanges signals", function()
    local design = design_of { symmetry = { axis = "x", at = 0.3, signals = { 2, 1, 3 } } }
    local shares = design:map(block_design.variables(design)).shares
    assert.is_true(mirrored(design, shares):gather({ 2, 1, 3, 4 }, 1):equal(shares))
    assert.is_false(mirrored(design, shares):equal(shares))
  end)

  it("exchanges signals to the last digit, in whatever order their shares are summed", function()
    local design = design_of { symmetry = { axis = "x", signals = { 3, 2, 1 } } }
    local shares = design:map(block_design.variables(design)).shares
    assert.is_true(mirrored(design, shares):gather({ 3, 2, 1, 4 }, 1):equal(shares))
  end)

  it("is so over several axes, with gradients", function()
    local design = design_of { symmetry = { { axis = "x", signals = { 2, 1, 3 } }, { axis = "y" } } }
    local p = block_design.variables(design)
    local map = design:map(p)
    assert.is_true(mirrored(design, map.density):equal(map.density))
    check_gradient(design, p)
  end)

  -- each particle's image after a quarter of a turn about the middle of the block
  local function turned(design, tensor)
    local x, out = design.robot.position, {}
    local middle = (x:min(1) + x:max(1)) * 0.5
    for q = 1, 100 do
      local dx, dy = x:get(q, 1) - middle:get(1), x:get(q, 2) - middle:get(2)
      for r = 1, 100 do
        if math.abs(x:get(r, 1) - middle:get(1) + dy) < 1e-6 and math.abs(x:get(r, 2) - middle:get(2) - dx) < 1e-6 then
          out[q] = r
        end
      end
    end
    return tensor:gather(out, -1)
  end

  it("is the same after half or a quarter of a turn, to the last digit, with gradients", function()
    local half = design_of { symmetry = { axis = "z", order = 2 } }
    local quarter = design_of { symmetry = { axis = "z", order = 4 } }
    local p = block_design.variables(half)
    local map = half:map(p)
    assert.is_true(turned(half, turned(half, map.shares)):equal(map.shares))
    assert.is_false(turned(half, map.density):equal(map.density))
    map = quarter:map(p)
    assert.is_true(turned(quarter, map.density):equal(map.density))
    assert.is_true(turned(quarter, map.shares):equal(map.shares))
    assert.is_false(mirrored(quarter, map.density):equal(map.density))
    check_gradient(quarter, p)
  end)

  it("hands signals on as it turns", function()
    local design = design_of { symmetry = { axis = "z", order = 2, signals = { 2, 1, 3 } } }
    local shares = design:map(block_design.variables(design)).shares
    assert.is_true(turned(design, turned(design, shares)):gather({ 2, 1, 3, 4 }, 1):equal(shares))
    assert.is_false(turned(design, turned(design, shares)):equal(shares))
    -- of an order of 4, two that change places are themselves again after half of a turn
    design = design_of { symmetry = { axis = "z", order = 4, signals = { 2, 1, 3 } } }
    shares = design:map(block_design.variables(design)).shares
    assert.is_true(turned(design, shares):gather({ 2, 1, 3, 4 }, 1):equal(shares))
    assert.is_true(turned(design, turned(design, shares)):equal(shares))
  end)

  it("hands signals on in the direction in which it turns", function()
    local robot = block_design.robot { actuators = cq.Actuator.isotropic { count = 4, max = 1e4 } }
    local design = design_of({ symmetry = { axis = "z", order = 4, signals = { 2, 3, 4, 1 } } }, robot)
    local p = design:start(2)
    p.layout:copy_from(cq.random { seed = 3 }:normal { 5, 100 })
    local shares = design:map(p).shares
    -- where a particle follows signal 1, its image from x to y follows signal 2
    assert.is_true(turned(design, shares):gather({ 2, 3, 4, 1, 5 }, 1):equal(shares))
    assert.is_false(turned(design, shares):gather({ 4, 1, 2, 3, 5 }, 1):equal(shares))
  end)

  it("refuses turns that do not bring a block back", function()
    local flat = { axis = "x", order = 4 }
    says(function() design_of { symmetry = flat } end, "turns about z alone", 'got symmetry.axis = "x"')
    says(function() design_of { symmetry = { axis = "z", order = 3 } } end, "order", "one of 2, 4")
    says(function() design_of { symmetry = { axis = "z", order = 2, at = 0.3 } } end, "turns about its middle")
    says(function() design_of { symmetry = { axis = "z", order = 2, signals = { 2, 3, 1 } } } end,
      "each of the 3 signals", "got { 2, 3, 1 }")
    says(function() design_of { symmetry = { { axis = "z", order = 2 }, { axis = "x" } } } end, "stands alone")
    says(function() design_of { symmetry = { axis = "z", order = 4 }, solid_region = "tip" } end,
      "image after a turn about z")
  end)

  it("refuses blocks and signals without an image", function()
    says(function() design_of { symmetry = { axis = "x", at = 0.31 } } end, "its own mirror image over x = 0.31",
      "particle")
    says(function() design_of { symmetry = { axis = "z" } } end, "symmetry over z needs a block in space")
    says(function() design_of { symmetry = { axis = "x", signals = { 2, 3, 1 } } } end, "each of the 3 signals",
      "got { 2, 3, 1 }")
    says(function() design_of { symmetry = { axis = "y" }, solid_region = "tip" } end, "particles that are solid",
      "mirror image over y")
    says(function() design_of { symmetry = { { axis = "x" }, { axis = "x" } } } end, "given twice")
    says(function()
      design_of { symmetry = { { axis = "x", signals = { 2, 1, 3 } }, { axis = "y", signals = { 1, 3, 2 } } } }
    end, "the same in either order")
  end)
end)

describe("constraints of an experiment", function()
  it("may be lists, as designs give them", function()
    local design = design_of()
    local run = cq.Experiment {
      world = design.world, steps = 3, design = design,
      objective = function(state) return state:center(design.robot)[1] end,
      constraints = { design:discreteness { material = 0.05 }, design:volume { at_most = 0.4, at_least = 0.2 },
        { name = "rest", at_most = 1, terminal = function(s) return s:mean_square_velocity(design.robot) end } },
    }
    local names = {}
    for k, c in ipairs(run.constraints) do names[k] = c.name end
    assert.same({ "material", "volume", "void", "rest" }, names)
    assert.near(0.5, run:check().values.void, 1e-9)
  end)
end)
