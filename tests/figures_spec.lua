-- figures: the page of a run: which panels it has, and that they show what they are said to.
local cq = require "cq"
local T = require "cq.tensor"
local block_design = require "tests.block_design"
local canvases = require "cq.picture.canvas"
local colour = require "cq.base.colour"
local figures = require "cq.experiment.figures"
local image = require "cq.base.image"
local option = require "cq.option"
local paint = require "cq.picture.paint"
local plans = require "tests.plans"
local process = require "tests.process"
local raster = require "cq.picture.raster"
local scratch = require "tests.scratch"
local fails = require("tests.sentence").fails

local arrows_of = figures.arrows_of

-- is a pixel of about this colour?
local function like(wanted)
  local r, g, b = colour.parse(wanted, "test")
  return function(x, y, z) return math.abs(x - r) + math.abs(y - g) + math.abs(z - b) < 40 end
end

-- pixels of a colour within a box of a canvas, as shares of it
local function within(canvas, wanted, box)
  local test, p, n = like(wanted), canvas:pixels(), 0
  for y = math.floor(box[2] * canvas.height), math.floor(box[4] * canvas.height) - 1 do
    for x = math.floor(box[1] * canvas.width), math.floor(box[3] * canvas.width) - 1 do
      local q = p + 4 * (y * canvas.width + x)
      if test(q[0], q[1], q[2]) then n = n + 1 end
    end
  end
  return n
end

describe("a raster of signals", function()
  it("has a row for each and time to the right", function()
    local canvas = raster { values = T.tensor { { 1, 0 }, { -1, 0 } }, dt = 0.5, width = 400, height = 300 }
    local red, blue = paint.signed[#paint.signed], paint.signed[1]
    local upper, lower = { 0.2, 0.25, 0.45, 0.45 }, { 0.2, 0.55, 0.45, 0.78 }
    assert.is_true(within(canvas, red, upper) > 4000 and within(canvas, blue, upper) == 0)
    assert.is_true(within(canvas, paint.signed[4], lower) > 4000 and within(canvas, red, lower) == 0)
    local later = { 0.6, 0.25, 0.9, 0.45 }
    assert.is_true(within(canvas, blue, later) > 4000 and within(canvas, red, later) == 0)
    -- more steps than pixels: means of them
    local values = T.zeros { 4000, 1 }
    for i = 1, 4000 do values:set(i % 2 == 0 and 1 or -1, i, 1) end
    canvas = raster { values = values, dt = 1, width = 400, height = 300 }
    assert.is_true(within(canvas, paint.signed[4], { 0.2, 0.3, 0.9, 0.7 }) > 20000)
  end)
end)

describe("run:figures", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function experiment(changes)
    local fields = {
      constraints = function(design) return design:discreteness { material = 0.05 } end,
      optimizer = cq.Optimizer.augmented_lagrangian { inner = cq.Optimizer.adam { rate = 0.05 }, form = "violation",
        penalty = 1e-3 },
    }
    for key, value in pairs(changes or {}) do fields[key] = value end
    local run, design = block_design.experiment(fields)
    for name, tensor in pairs(block_design.variables(design)) do run.params.design[name]:copy_from(tensor) end
    return run, design
  end

  local function page(run, fields) return figures.page(run, figures.spec(fields or {})) end

  it("shows the design by its actuators and as much as it is solid, and the binary one", function()
    local run, design = experiment()
    local solid = design:extract(run.params.design)
    local made, soft = page(run, { body = solid, width = 1000 }), page(run, { width = 1000 })
    local left = { 0.01, 0.2, 0.34, 0.5 }
    local counts = {}
    for _, a in ipairs(solid.actuator) do counts[a] = (counts[a] or 0) + 1 end
    local seen = {}
    for a = 0, 3 do seen[a] = within(made, paint.categories[a + 1], left) end
    for a = 0, 3 do
      assert((seen[a] > 300) == ((counts[a] or 0) > 0), ("%d: %d pixels"):format(a, seen[a]))
    end
    -- what is half solid lets the ground shine through
    assert.is_true(within(soft, paint.categories[2], left) < within(made, paint.categories[2], left))
    assert.equal(1000, made.width)
  end)

  it("shows the body of an extracted stage, whichever parameters it is given", function()
    local run = cq.Experiment(plans.block)
    plans.optimize(run, plans.whole(), folder)
    local title = ("%d of %d particles are solid"):format(#run.body.particles, run.body.total)
    for _, params in ipairs { "best", "last", T.leaves.snapshot(run.params) } do
      local def = figures.spec { params = params, width = 800 }
      figures.page(run, def)
      assert.same(run.body.particles, def.body.particles)
      assert.is_truthy(def.title:find(title, 1, true), def.title)
    end
  end)

  it("adds a curve of the objective where something was optimised", function()
    local run = experiment()
    local before = page(run, { width = 1000 }).height
    process.write(folder .. "/history.csv", "iteration,loss,material\n1,3,0.2\n2,2,0.1\n3,1,0.05\n")
    run.folder = folder
    local made = page(run, { width = 1000 })
    assert.equal(before + 200 + 10, made.height)
    local top = before - 210 + 64
    assert(within(made, paint.lines[1], { 0.1, top / made.height, 0.9, (top + 80) / made.height }) > 20)
    run:optimize { iterations = 2, folder = folder, resume = false }
    assert.equal(before + 200 + 10, page(run, { width = 1000 }).height)
  end)

  it("has a wide design, and the curve below it, where moments are far higher than the design", function()
    local design = block_design.make(nil, block_design.robot {
      shape = cq.Shape.box { name = "block", size = { 0.5, 0.08 }, spacing = 0.02 }, groups = {} })
    local run = cq.Experiment { world = design.world, steps = 30, design = design,
      objective = function(state) return state:center(design.robot)[1] end }
    local before = page(run, { width = 1000 })
    process.write(folder .. "/history.csv", "iteration,loss\n1,3\n2,2\n3,1\n")
    run.folder = folder
    local made = page(run, { width = 1000 })
    assert.equal(before.height, made.height)
    -- the floor under the design, up to 0.48 of the width, ends above the curve
    assert(within(made, paint.ground, { 0.4, 0.05, 0.47, 0.35 }) > 200, "the design's panel is narrow")
    assert(within(made, paint.ground, { 0.01, 0.4, 0.47, 0.65 }) < 100, "it goes down as far as the moments")
    assert(within(made, paint.lines[1], { 0.05, 0.35, 0.47, 0.7 }) > 20)
  end)

  it("draws what walls give, with the momentum of the body, and reads it for a binary design", function()
    local run, design = experiment { contact = true }
    local solid = design:extract(run.params.design)
    local roll = run:evaluate { body = solid }.rollout
    local contact = roll.contact
    assert.same({ 30, 1, 2 }, contact.impulse:shape())
    local body = solid.robot
    local mass = (body.density * body.volume):sum():item()
    local gained = mass * (roll.state:velocity(body)[2]:item() + 9.8 * 0.03)
    assert.near(gained, contact.impulse:sum(1)[1][2]:item(), 1e-6 * math.abs(gained))
    -- the mean over a few control steps keeps the sum
    local found = figures.forces(roll)
    local inner = found.force:slice(5, 25, 1):sum():item() * design.world.control_dt
    assert.is_true(math.abs(inner) > 0)
    assert.same({ 30, 1, 2 }, found.force:shape())
    assert.near(contact.impulse:slice(9, 11, 1):mean(1)[1][2]:item() / design.world.control_dt,
      found.force:get(10, 1, 2), 1e-9)
    assert.near(contact.center:get(10, 1, 1), found.at:get(10, 1, 1), 0.02)
  end)

  it("shows forces in a colour that no signal and no actuator has", function()
    local run, design = experiment()
    local made = page(run, { body = design:extract(run.params.design), width = 1000 })
    local seen = within(made, paint.force, { 0.38, 0.1, 0.97, 0.4 })
    figures.arrows_of = function() return function() return { { 0, 0 } }, { { 0, 0 } } end end
    local bare = page(run, { body = design:extract(run.params.design), width = 1000 })
    figures.arrows_of = arrows_of
    assert(seen > within(bare, paint.force, { 0.38, 0.1, 0.97, 0.4 }) + 10, seen)
    local far = 1e9
    local function apart(a, b)
      local x, y, square = { colour.parse(a, "test") }, { colour.parse(b, "test") }, 0
      for c = 1, 3 do square = square + (x[c] - y[c]) ^ 2 end
      return math.sqrt(square)
    end
    for _, list in ipairs { paint.signed, paint.categories, { paint.positive, paint.negative } } do
      for _, one in ipairs(list) do far = math.min(far, apart(one, paint.force)) end
    end
    assert(far > 100, far)
  end)

  -- a body that sticks to a wall and is drawn away from it, or along it, for 20 control steps
  local function stuck(wall, gravity)
    local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.02 },
      material = block_design.material }
    local world = cq.World { cells = { 25, 25 }, dx = 0.04, dt = 2e-3, substeps = 10, precision = "float64",
      threads = 1, damping = 100, gravity = gravity, walls = wall, robot:at { 0.12, 0.12 } }
    local roll = world:rollout { steps = 20, contact = true }
    local at, vector = figures.arrows_of(figures.forces(roll), world)(roll.state)
    assert.equal(1, #at)
    return at[1], vector[1], roll
  end

  it("shows what a wall gives that only pulls, where it pulls", function()
    local at, vector, roll = stuck(cq.Boundary.floor { at = 0.12, kind = "sticky" }, { 0, 5 })
    assert.is_true(roll.contact.normal:slice(10, 20, 1):max():item() < 0)
    assert.is_true(vector[2] < 0 and math.abs(vector[1]) < 1e-3 * -vector[2])
    assert.near(0.22, at[1], 0.01)
    assert.near(0.12, at[2], 0.04)
  end)

  it("shows what a wall gives that holds a body by its side, at the body", function()
    local at, vector, roll = stuck(cq.Boundary.half_plane { point = { 0.12, 0 }, normal = { 1, 0 }, kind = "sticky" },
      { 0, -5 })
    assert.is_true(vector[2] > 0 and vector[2] > math.abs(vector[1]))
    local x = roll.state:positions()
    for d, reach in ipairs { 0.06, 0.06 } do
      assert.is_true(at[d] > x:min(1)[d]:item() - reach - 1e-9 and at[d] < x:max(1)[d]:item() + reach + 1e-9, at[d])
    end
  end)

  it("is of any experiment: of what there is", function()
    local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.05 },
      material = block_design.material }
    local function world(walls)
      return cq.World { cells = { 25, 25 }, dx = 0.04, dt = 1e-3, substeps = 5, precision = "float64", threads = 1,
        walls = walls, robot:at { 0.4, 0.4 } }
    end
    local function of(walls)
      return cq.Experiment { world = world(walls), steps = 8, objective = function(s) return s:center(robot)[1] end }
    end
    local free, walled = page(of(), { width = 800 }), page(of(cq.Boundary.floor { at = 0.1 }), { width = 800 })
    assert.equal(free.height + 200 + 10, walled.height)
    local one = page(of(), { width = 800, stills = { 0.004 }, title = "one" })
    assert.is_true(one.height < free.height)
  end)

  -- every line of text that is seen on a canvas while `make` draws: { canvas, text, left, right, top, bottom }
  local function written(make)
    local class, lines = canvases.class, {}
    local text, clear = class.text, class.clear
    function class.text(self, fields)
      local width = text(self, fields)
      local size, shift = fields.size or 11, fields.align == "right" and 1 or fields.align == "centre" and 0.5 or 0
      local left = fields.x - shift * width
      lines[#lines + 1] = { canvas = self, text = tostring(fields.text), left = left, right = left + width,
        top = fields.y - size, bottom = fields.y }
      return width
    end
    function class.clear(self, background)
      for k = #lines, 1, -1 do
        if lines[k].canvas == self then table.remove(lines, k) end
      end
      return clear(self, background)
    end
    local fine, problem = pcall(make)
    class.text, class.clear = text, clear
    assert(fine, problem)
    return lines
  end

  local function require_apart(lines)
    for k, a in ipairs(lines) do
      assert(a.left >= 0 and a.right <= a.canvas.width, ("%s is cut off"):format(a.text))
      for j = 1, k - 1 do
        local b = lines[j]
        -- a halo is the same line once more
        local same = a.text == b.text and a.left == b.left and a.top == b.top
        local over = a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom
        assert(a.canvas ~= b.canvas or same or not over, ("%s over %s"):format(a.text, b.text))
      end
    end
  end

  it("names walls that have no name by their numbers, in as many lines as that takes", function()
    local robot = cq.Robot { shape = cq.Shape.box { size = { 0.2, 0.2 }, spacing = 0.05 },
      material = block_design.material }
    local world = cq.World { cells = { 25, 25 }, dx = 0.04, dt = 1e-3, substeps = 5, precision = "float64",
      threads = 1, damping = 100, gravity = { 3, -5 }, robot:at { 0.12, 0.12 }, walls = {
        cq.Boundary.half_plane { point = { 0.12, 0 }, normal = { 1, 0 }, kind = "sticky" },
        cq.Boundary.floor { at = 0.12, kind = "sticky", name = "floor of this room" },
        cq.Boundary.half_plane { point = { 0.32, 0 }, normal = { -1, 0 }, kind = "sticky" },
      } }
    local run = cq.Experiment { world = world, steps = 8, objective = function(s) return s:center(robot)[1] end }
    local lines = written(function() page(run, { width = 800 }) end)
    local names = {}
    for _, line in ipairs(lines) do names[line.text] = true end
    for _, name in ipairs { "wall 1 x", "wall 1 y", "floor of this room y", "wall 3 x" } do
      assert(names[name], name)
    end
    require_apart(lines)
  end)

  it("prints nothing over something else, however narrow it is", function()
    local run, design = experiment()
    run.folder = folder
    process.write(folder .. "/history.csv",
      "iteration,loss,material\n1,0.002788,0.9\n2,0.0025,0.3\n3,-0.0021,0.05\n")
    for _, fields in ipairs { { width = 800 }, { width = 800, stills = { 0.005, 0.01, 0.015, 0.02, 0.025, 0.03 } },
      { width = 800, stills = { 0.01 }, title = ("a title "):rep(40) },
      { body = design:extract(run.params.design) } } do
      local lines = written(function() page(run, fields) end)
      assert(#lines > 40, #lines)
      require_apart(lines)
    end
  end)

  it("writes its file, unless nothing is to be drawn", function()
    local run = experiment()
    local path = run:figures(folder .. "/page.png", { width = 900, stills = { 0.01, 0.03 } })
    assert.equal(folder .. "/page.png", path)
    assert.equal(900, image.read(path).width)
    option.set_silently("render", "no")
    assert.is_nil(run:figures(folder .. "/none.png"))
    option.set_given {}
    fails("path must end in .png, got \"page.pdf\"", function() run:figures "page.pdf" end)
    fails("params must be", function() run:figures("page.png", { params = "worst" }) end)
    fails("a still is wanted at time 3, the run ends at 0.03", function()
      run:figures(folder .. "/page.png", { stills = { 3 } })
    end)
    local several = cq.Experiment { world = run.world, steps = 3, scenes = { count = 2, each = function(k)
      return { gravity = { 0, -k } }
    end }, objective = function() return 0 end }
    fails("run:scene(k):figures", function() several:figures "page.png" end)
  end)
end)
