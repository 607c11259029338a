-- picture_view: what a picture shows of a scene by itself: slopes as slopes, nothing cut by its sides, colours with one
-- scale in all frames of a film, and those that the user drew.
local cq = require "cq"
local host = require "cq.host"
local pixels = require "tests.pixels"
local refuses = require("tests.sentence").refuses
local process = require "tests.process"
local message = require "cq.base.message"
local Picture = require "cq.picture"
local image = require "cq.base.image"
local T = cq.tensor

local folder
before_each(function() folder = process.folder() end)
after_each(function() process.remove(folder) end)

local count = pixels.count
local function red(r, g, b) return r > 1.6 * g and r > 1.6 * b and r > 60 end

describe("a slope", function()
  -- a plate that lies on a plane that rises by 0.3 towards an azimuth, red, and how steep it is in the picture
  local function tilt(azimuth)
    local nx, nz, places = -0.3 * math.cos(azimuth), -0.3 * math.sin(azimuth), {}
    for i = -10, 10 do
      for k = -10, 10 do
        local x, z = 0.02 * i, 0.02 * k
        places[#places + 1] = { 1 + x, 0.51 - nx * x - nz * z, 1 + z }
      end
    end
    local all = {}
    for p = 1, #places do all[p] = p end
    local canvas = Picture.frame {
      domain = { 2, 1, 2 }, volume = 8e-6, width = 320, height = 180, fit = true, legend = false,
      walls = cq.Boundary.half_plane { point = { 1, 0.5, 1 }, normal = { nx, 1, nz } },
      groups = { { particles = all, colour = "#c81e1e" } }, position = T(places),
    }
    -- mean rows of the leftmost and the rightmost fifth of the plate
    local _, box = count(canvas, red)
    local wide, rows, numbers = box[3] - box[1] + 1, { 0, 0 }, { 0, 0 }
    local p = canvas:pixels()
    for y = box[2], box[4] do
      for x = box[1], box[3] do
        local q, side = p + 4 * (y * canvas.width + x), (x - box[1]) / wide
        local k = side < 0.2 and 1 or side > 0.8 and 2 or nil
        if k and red(q[0], q[1], q[2]) then rows[k], numbers[k] = rows[k] + y, numbers[k] + 1 end
      end
    end
    return (rows[1] / numbers[1] - rows[2] / numbers[2]) / (0.8 * wide)
  end

  it("is seen to rise across the picture, whichever way it does", function()
    for k = 0, 7 do
      local seen = tilt(k * math.pi / 4)
      assert(math.abs(seen) > 0.12, ("towards %d degrees: %.3f"):format(45 * k, seen))
    end
    -- and by opposite ways it rises to opposite sides
    for k = 0, 3 do assert(tilt(k * math.pi / 4) * tilt((k + 4) * math.pi / 4) < 0, k) end
  end)
end)

describe("a picture that fits its bodies", function()
  -- pixels of a frame's outermost rows and columns that are not those of an empty background
  local function at_edge(canvas, test)
    local p, w, h, n = canvas:pixels(), canvas.width, canvas.height, 0
    for y = 0, h - 1 do
      for x = 0, w - 1 do
        local q = p + 4 * (y * w + x)
        if (x == 0 or y == 0 or x == w - 1 or y == h - 1) and test(q[0], q[1], q[2]) then n = n + 1 end
      end
    end
    return n
  end
  local function dark(r, g, b) return r + g + b < 400 end
  local function bodyish(r, g, b) return red(r, g, b) or dark(r, g, b) end

  it("holds the surface of a coarse body, which goes beyond its particles", function()
    for _, size in ipairs { { 5, 1 }, { 1, 5 }, { 1, 1 } } do
      local places = {}
      for i = 1, size[1] do
        for k = 1, size[2] do places[#places + 1] = { 0.1 * i, 0.1 * k } end
      end
      local all = {}
      for p = 1, #places do all[p] = p end
      local canvas = Picture.frame {
        domain = { 1, 1 }, volume = 0.01, width = 200, height = 200, fit = true, legend = false, ruler = false,
        groups = { { particles = all, colour = "#c81e1e" } }, position = T(places),
      }
      assert((count(canvas, red)) > 500)
      assert.equal(0, at_edge(canvas, bodyish))
    end
  end)

  it("holds arrows and the anchors of cables, whatever they reach to", function()
    local s = pixels.body()
    local function frame(more)
      local def = { domain = { 2, 2 }, volume = s.volume, width = 240, height = 200, fit = true, legend = false,
        ruler = false, position = s.position }
      for key, value in pairs(more) do def[key] = value end
      return Picture.frame(def)
    end
    local ffi = require "ffi"
    local cable = { count = 2, points = ffi.new("double[4]", 0.45, 0.35, 1.6, 1.9), tension = { 1 } }
    local arrows = { at = { { 0.45, 0.35 } }, vector = { { -3, -2 } }, scale = 0.5, colour = "#c81e1e" }
    local with = { frame { cables = { cable } }, frame { arrows = arrows } }
    for k, canvas in ipairs(with) do assert.equal(0, at_edge(canvas, bodyish), k) end
    assert((count(with[2], red)) > 100)
  end)

  it("does not cut off the numbers of its colours", function()
    local s = pixels.body()
    local function last_ink(range)
      local canvas = Picture.frame { domain = { 1, 1 }, volume = s.volume, width = 400, height = 200, fit = true,
        ruler = false, position = s.position, value = cq.zeros { s.count }, scale = { range = range } }
      local edge = 0
      for y = 30, 55 do
        for x = 396, 399 do
          local q = canvas:pixels() + 4 * (y * 400 + x)
          if q[0] + q[1] + q[2] < 600 then edge = edge + 1 end
        end
      end
      return edge
    end
    for _, range in ipairs { { 0, 1 }, { 0, 0.0015 }, { -123456, 123456 } } do assert.equal(0, last_ink(range)) end
  end)
end)

describe("a film", function()
  it("lasts as long as it should where frames are closer than control steps, each drawn once", function()
    local world = cq.World { cells = { 10, 10 }, dx = 0.1, dt = 0.1, substeps = "auto", cq.Robot {
      shape = cq.Shape.box { size = { 0.3, 0.2 } }, spacing = 0.05,
      material = cq.Material.neo_hookean { young = 100, poisson = 0.3 } }:at { 0.3, 0.2 } }
    local function of_film(name, fps, speed)
      local drawn = 0
      world:render(("%s/%s.mp4"):format(folder, name), { steps = 5, fps = fps, speed = speed, width = 64, height = 64,
        samples = 1, keep_frames = true, label = function() drawn = drawn + 1 return tostring(drawn) end })
      return #host.entries(("%s/%s_frames"):format(folder, name)), drawn
    end
    assert.same({ 16, 6 }, { of_film("short", 30, 1) })
    assert.same({ 26, 6 }, { of_film("slow", 5, 0.1) })
    assert.same({ 6, 6 }, { of_film("each", 10, 1) })
    assert.same({ 3, 3 }, { of_film("fast", 10, 2) })
    -- the state at the control step is in the middle of its frames
    for k = 1, 16 do
      local step = math.floor((k - 1) / 3 + 0.5)
      local last = math.floor((k - 2) / 3 + 0.5)
      local same = process.read(("%s/short_frames/%06d.png"):format(folder, k))
        == process.read(("%s/short_frames/%06d.png"):format(folder, k - 1))
      assert.equal(k > 1 and step == last, same, k)
    end
  end)
end)

describe("the colours of a film", function()
  local function experiment(shape, colour_of)
    local robot = cq.Robot { shape = shape, spacing = 0.025,
      material = cq.Material.neo_hookean { young = 100, poisson = 0.3 } }
    local world = cq.World { cells = { 20, 20 }, dx = 0.05, dt = 1e-2, substeps = "auto", gravity = { 0, -4 },
      walls = cq.Boundary.floor { at = 0.1 }, robot:at { 0.3, 0.2 } }
    return cq.Experiment { world = world, steps = 20, objective = function(s) return s:center(robot)[1] end }, colour_of
  end
  local box = cq.Shape.box { size = { 0.3, 0.2 } }

  -- the pixels of a region of each frame, as strings
  local function regions(left, top, right, bottom)
    local out = {}
    for k = 1, 100 do
      local path = ("%s/film_frames/%06d.png"):format(folder, k)
      if not process.read(path) then break end
      local picture, rows = image.read(path, "test"), {}
      for y = top, bottom do
        for x = left, right do
          local q = picture.pixels + 4 * (y * picture.width + x)
          rows[#rows + 1] = string.char(q[0], q[1], q[2])
        end
      end
      out[k] = table.concat(rows)
    end
    return out
  end
  local function film(run, options)
    options.width, options.height, options.samples, options.fps, options.keep_frames = 480, 320, 1, 50, true
    run:render(folder .. "/film.mp4", options)
  end

  it("have one scale in all of its frames", function()
    local run = experiment(box)
    film(run, { colour = "von_mises", speed = 1 })
    local legends = regions(240, 15, 475, 52)
    assert(#legends > 8, #legends)
    for k = 2, #legends do assert(legends[k] == legends[1], "frame " .. k .. " has another legend") end
  end)

  it("do not show rounding: a body at rest has the colour of zero", function()
    local run = experiment(box)
    film(run, { colour = function(state) return 1e-9 * state:gather(nil, "speed") end, speed = 1 })
    local of_user = regions(240, 15, 475, 52)
    assert(#of_user > 8)
    local scale = require("cq.picture.scale").new { floor = 1 }
    scale:see_one(1e-9)
    assert.same({ 0, 1 }, { scale.lower, scale.upper })
    scale:see_one(15)
    assert.same({ 0, 15 }, { scale.lower, scale.upper })
    local visuals = require "cq.picture.visuals"
    local floor = visuals.floor("von_mises", run.world)
    assert(floor > 1e-4 and floor < 1e-2, floor)
    assert.equal(floor, visuals.floor({ by = "von_mises" }, run.world))
    assert.is_nil(visuals.floor("young", run.world))
  end)

  it("name a unit only where the user gives one", function()
    local visuals = require "cq.picture.visuals"
    local function unit(given)
      local _, scale = visuals.colour(given)
      return scale.unit
    end
    assert.is_nil(unit "von_mises")
    assert.is_nil(unit "young")
    assert.equal("kPa", unit { by = "von_mises", unit = "kPa" })
  end)

  it("are those that the user drew", function()
    -- a green picture with a purple corner, of which only the corner is a group
    image.write { path = folder .. "/drawn.png", width = 12, height = 8, pixel = function(x)
      local alpha = x < 10 and 255 or 0
      if x < 4 then return 140, 20, 160, alpha end
      return 30, 160, 50, alpha
    end }
    local shape = cq.Shape.image { path = folder .. "/drawn.png", width = 0.4, colours = { leg = "#8c14a0" } }
    local sample = shape:rotate(0.2):sample { spacing = 0.025 }
    assert.equal(0x8c14a0, sample.colour[sample.groups.leg[1]])
    local run = experiment(shape)
    for path, why in pairs { ["/none/still.png"] = "there is no folder ", ["/drawn.png/a.png"] = "" } do
      refuses(function() run.world:render(folder .. path, { duration = 1e9 }) end,
        ("world:render: cannot write '%s%s': %s"):format(folder, path, why))
    end
    run:render(folder .. "/still.png", { width = 320 })
    local picture = image.read(folder .. "/still.png", "test")
    local green, purple = 0, 0
    for k = 0, picture.width * picture.height - 1 do
      local q = picture.pixels + 4 * k
      if q[0] == 30 and q[1] == 160 and q[2] == 50 then green = green + 1 end
      if q[0] == 140 and q[1] == 20 and q[2] == 160 then purple = purple + 1 end
    end
    assert(green > 500 and purple > 300 and green > purple, ("%d green, %d purple"):format(green, purple))
  end)
end)

describe("the colours of signals", function()
  local visuals = require "cq.picture.visuals"
  local canvas = getmetatable(require("cq.picture.canvas").new { width = 64, height = 64 })
  local text, written = canvas.text, nil
  before_each(function()
    written = {}
    canvas.text = function(self, line)
      written[line.text] = true
      return text(self, line)
    end
  end)
  after_each(function() canvas.text = text end)

  -- a strip of 0.1 that its actuators, cq.Actuator or one of weights, move
  local function strip(actuator)
    return cq.Robot { shape = cq.Shape.box { name = "all", size = { 0.1, 0.1 }, spacing = 0.025 },
      material = cq.Material.neo_hookean { young = 100, poisson = 0.3 }, actuators = actuator }
  end
  -- a rollout of robots side by side, all signals of which are 1, by weights of the first
  local function rollout(robots, weight)
    local placed, signals = {}, 0
    for k, robot in ipairs(robots) do
      placed[k], signals = robot:at { 0.3 * k, 0.3 }, signals + robot.actuator_count
    end
    placed.cells, placed.dx, placed.dt, placed.substeps = { 20, 16 }, 0.05, 1e-2, 4
    local world = cq.World(placed)
    local moved = weight and robots[1]:with { actuation_weight = cq.full({ 16, robots[1].actuator_count }, weight) }
    return world:rollout { steps = 2, controller = function() return cq.ones { signals } end, robot = moved or nil }
  end
  local pull = cq.Actuator.pressure { groups = { "all" }, axis = "y" }
  local pulses = cq.Actuator.muscle { groups = { "all" }, isotropic = true, pulses = true }
  local weighed = cq.Actuator.isotropic { count = 1 }
  local twist = cq.Actuator.pressure { groups = { "all" }, direction = { { 1, 0 }, { 0, -1 } } }

  it("have red for a positive signal, and a legend that says what it does", function()
    for what, case in pairs {
      pressure = { rollout { strip(pull) }, "contracts" }, pulses = { rollout { strip(pulses) }, "expands" },
      weights = { rollout({ strip(weighed) }, 0.5), "contracts" },
      design = { rollout({ strip(weighed) }, -0.5), "expands" },
      both = { rollout { strip(pull), strip(pulses) } }, twist = { rollout { strip(twist) } },
      design_and_pressure = { rollout({ strip(weighed), strip(pull) }, -0.5) },
    } do
      local roll, does = case[1], case[2]
      local _, said = visuals.red(roll.state)
      assert.equal(does, said, what)
      assert(visuals.actuation(roll.state, roll.signals[2]):min():item() > 0.4, what)
      for title, colour in pairs { actuation = {}, signal = { colour = "signal" } } do
        written = {}
        colour.width = 400
        roll:render(folder .. "/signal.png", colour)
        assert(written[does and title .. "; red " .. does or title], what .. " " .. title)
      end
      written = {}
      roll:render(folder .. "/signal.png", { width = 400, colour = { by = "signal", label = "pull" } })
      assert(written.pull, what)
    end
  end)

  -- a rollout of a body that a pressure at a signal of 0.8 pushes: in a cavity, on one side, or cables pull
  local function driven(actuator, hollow)
    local shape = cq.Shape.box { name = "all", size = { 0.4, 0.4 }, spacing = 0.025 }
    shape = shape:group("top", function(_, y) return y > 0.375 end)
    if hollow then shape = shape - cq.Shape.box { at = { 0.15, 0.15 }, size = { 0.1, 0.1 } } end
    local world = cq.World { cells = { 20, 16 }, dx = 0.05, dt = 1e-2, substeps = 4, cq.Robot { shape = shape,
      material = cq.Material.neo_hookean { young = 100, poisson = 0.3 }, actuators = actuator }:at { 0.3, 0.2 } }
    return world:rollout { steps = 2, controller = function() return { 0.8 } end }
  end

  it("have red for the walls of a chamber under pressure, and for an open surface", function()
    local open = { particles = "top", area = 0.025, normal = { 0, 1 } }
    local function push(surface) return cq.Actuator.follower_pressure { surface = surface, max = 1 } end
    for what, case in pairs {
      chamber = { driven(push { inside = { 0.2, 0.2 } }, true), "expands" }, open = { driven(push(open)) },
    } do
      local roll, does = case[1], case[2]
      local _, said = visuals.red(roll.state)
      assert.equal(does, said, what)
      local signal, near = visuals.actuation(roll.state, roll.signals[2]), roll.state:positions()
      local followers = 0
      for p = 1, signal.count do
        local value = signal:get(p)
        assert(value == 0 or math.abs(value - 0.8) < 1e-6, what)
        if value > 0 then
          followers = followers + 1
          local x, y = near:get(p, 1) - 0.5, near:get(p, 2) - 0.4
          assert(what == "open" and y > 0.17 or math.max(math.abs(x), math.abs(y)) < 0.12, what)
        end
      end
      assert(what == "open" and followers == 16 or followers >= 20 and followers <= 64, what .. " " .. followers)
      roll:render(folder .. "/signal.png", { width = 400, colour = "signal" })
      assert(written[does and "signal; red " .. does or "signal"], what)
    end
  end)

  it("are left out, with a note, where cables alone move a body", function()
    local cable = cq.Actuator.cable { path = { { 0.05, 0.2 }, { 0.35, 0.2 } }, stiffness = 10 }
    local note, told = message.note, {}
    message.note = function(format, ...) told[#told + 1] = format:format(...) end
    local roll = driven(cable)
    local fine, problem = pcall(roll.render, roll, folder .. "/signal.png",
      { width = 400, colour = "signal" })
    message.note = note
    assert(fine, problem)
    assert.equal("rollout:render: no particle of this world follows a signal; colours are those of groups", told[1])
    assert(not written.signal and written["tension of cables"])
  end)

  it("paint a design that expands red", function()
    local reddish, bluish = 0, 0
    rollout({ strip(weighed) }, -1):render(folder .. "/signal.png", { width = 400, colour = "signal" })
    local picture = image.read(folder .. "/signal.png", "test")
    for k = 0, picture.width * picture.height - 1 do
      local q = picture.pixels + 4 * k
      if red(q[0], q[1], q[2]) then reddish = reddish + 1 end
      if q[2] > 1.6 * q[0] and q[2] > 1.6 * q[1] then bluish = bluish + 1 end
    end
    assert(reddish > 20 * bluish + 1000, ("%d red, %d blue"):format(reddish, bluish))
  end)
end)
