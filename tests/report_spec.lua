-- report: the page of a run: what its texts hold, what a browser makes of it, and what bad input gets. A browser is
-- Debian's chromium without a window; where it is not there those tests are pending.
local cq = require "cq"
local base64 = require "cq.base.base64"
local block = require "tests.report.block"
local browser = require "tests.browser"
local host = require "cq.host"
local image = require "cq.base.image"
local json = require "cq.base.json"
local option = require "cq.option"
local process = require "tests.process"
local scratch = require "tests.scratch"
local fails = require("tests.sentence").fails

local NONE = "chromium is not installed: the page was not opened"

-- a test that needs a browser, which it is given
local function with_browser(name, run)
  it(name, function()
    if not browser.is_there then return pending(NONE) end
    local window = browser.open()
    local fine, problem = pcall(run, window)
    window:close()
    if not fine then error(problem, 0) end
  end)
end

-- what a page says of itself
local function state_of(address)
  local window = browser.open()
  local fine, state = pcall(function()
    window:visit(address)
    return window:state()
  end)
  window:close()
  if not fine then error(state, 0) end
  return state
end

-- a small world of space whose body falls
local function world_of(fields)
  local shape = cq.Shape.box { name = "body", size = { 0.2, 0.2, 0.2 }, spacing = 0.04 }
  local robot = cq.Robot {
    shape = shape, material = cq.Material.neo_hookean { young = 1e4, poisson = 0.3, density = 1000 },
    actuators = cq.Actuator.isotropic { groups = { "body" }, max = 1e3 },
  }
  return cq.World {
    cells = { 24, 12, 12 }, dx = 0.05, gravity = { 2, -9.8, 0 }, dt = 0.02, substeps = 10,
    walls = cq.Boundary.box { kind = "friction", mu = 0.5, inset = 0.15 }, robot:at(fields or { 0.2, 0.16, 0.2 }),
  }
end

local function rollout(steps, on_step)
  return world_of():rollout { steps = steps, controller = function() return cq.tensor { 0.5 } end, on_step = on_step }
end

describe("a report", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  with_browser("decodes positions to half a quantum, colours to half a level, in every key frame's piece", function(window)
    local places = {}
    local roll = rollout(40, function(state) places[state.step] = state:positions():totable() end)
    local path = roll:report(folder .. "/fall.html", { frames = 41, colour = { "speed" } })
    local bytes = process.read(path)
    local quantum = tonumber(bytes:match '"quantum": %[([%d.e-]+)')
    for _, particle in ipairs { 1, 62 } do
      window:visit(("%s#pick=%d"):format(path, particle))
      local state = window:state()
      assert.same({}, state.errors)
      assert.equal(particle, state.picked.particle)
      assert.equal(41, #state.picked.path)
      for frame, place in ipairs(state.picked.path) do
        for d = 1, 3 do assert.near(places[frame - 1][particle][d], place[d], 0.5001 * quantum) end
      end
    end
  end)

  -- pixels of the window that pass test(red, green, blue)
  local function count(window, test)
    window:shoot(folder .. "/a.png")
    local picture, found = image.read(folder .. "/a.png"), 0
    for k = 0, picture.width * picture.height - 1 do
      local p = picture.pixels + 4 * k
      if test(p[0], p[1], p[2]) then found = found + 1 end
    end
    return found
  end
  -- the body's signal of 0.5 blends red over its group's colour
  local function is_body(r, g, b) return r > b + 60 and r > g + 30 end
  local function is_dark(r, g, b) return r + g + b < 120 end

  with_browser("asks nothing of the network, says no error, and shows the body in its colours", function(window)
    local path = rollout(10):report(folder .. "/fall.html")
    window:visit(path .. "#frame=5&light")
    local state = window:state()
    assert.is_true(state.ready)
    assert.equal(0, state.requests)
    assert.same({}, state.errors)
    assert.same({ "file://" .. path }, window.asked)
    assert.same({}, window.problems)
    assert.equal(125, state.particles)
    assert.equal(11, state.frames)
    assert.equal(6 * 25, state.faces)
    -- half a spacing beyond the outermost particles
    local ends = window:value [[setMoment(0), [0, 1, 2].map((d) => [Math.min, Math.max].map((most) =>
      most(...view.places.filter((_, i) => i % 3 === d))))]]
    -- signals are those of control steps: their curve begins at the end of the first one
    assert.same({ 0, true }, window:value [[(() => {
      const own = curves.find((one) => one.given.title === "signals");
      return [parseFloat(own.cursor.style.left) - own.left, own.xs[0] > 0]; })()]])
    window:value "setMoment(5)"
    for d, lower in ipairs { 0.2, 0.16, 0.2 } do
      assert.near(lower, ends[d][1], 0.005)
      assert.near(lower + 0.2, ends[d][2], 0.005)
    end
    local surface, day = count(window, is_body), count(window, is_dark)
    assert.is_true(surface > 2000, ("%d pixels of the body"):format(surface))
    window:value "document.getElementById('particles').click()"
    local balls = count(window, is_body)
    assert.is_true(balls ~= surface and math.abs(balls / surface - 1) < 0.3,
      ("%d pixels of balls, %d of the surface"):format(balls, surface))
    window:value "document.getElementById('theme').click()"
    local night = count(window, is_dark)
    assert.is_true(night > 20 * day + 10000, ("%d dark pixels by night, %d by day"):format(night, day))
  end)

  with_browser("is turned, played and asked by mouse and keys", function(window)
    window:visit(rollout(10):report(folder .. "/fall.html"))
    window:await "shown.ready"
    local yaw = window:value "view.yaw"
    local middle = window:value [[(() => {
      const box = document.querySelector("#picture canvas").getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2]; })()]]
    window:drag { middle, { middle[1] + 20, middle[2] }, { middle[1] + 60, middle[2] } }
    assert.near(yaw - 0.008 * 60, window:value "view.yaw", 1e-9)
    local at = window:value [[(() => {
      const m = view.view, p = view.project, [x, y, z] = placeOf(film, 0, 62);
      const w = -(m[2] * x + m[6] * y + m[10] * z + m[14]), box = view.canvas.getBoundingClientRect();
      return [box.x + box.width * (0.5 + 0.5 * p[0] * (m[0] * x + m[4] * y + m[8] * z + m[12]) / w),
        box.y + box.height * (0.5 - 0.5 * p[5] * (m[1] * x + m[5] * y + m[9] * z + m[13]) / w)]; })()]]
    window:drag { at }
    local picked = window:state().picked
    assert.truthy(picked and picked.particle >= 1 and picked.particle <= 125)
    window:press "End"
    assert.equal(10, window:state().frame)
    window:press "ArrowLeft"
    assert.equal(9, window:state().frame)
    window:press " "
    window:await "shown.playing && shown.moment < 5"
    window:press " "
    assert.is_false(window:value "shown.playing")
    -- one that plays on at once draws each moment once
    assert.equal(1, window:value [[new Promise((resolve) => {
      for (const on of [true, false, true, false, true]) play(on);
      const real = setMoment;
      let seen = 0;
      setMoment = (moment) => { seen++; real(moment); };
      requestAnimationFrame(() => requestAnimationFrame(() => { seen = 0; }));
      requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => {
        [setMoment, shown.playing] = [real, false];
        resolve(seen);
      })));
    })]])
  end)

  with_browser("says in its legend what red does", function(window)
    window:visit(rollout(2):report(folder .. "/fall.html"))
    window:await "shown.ready"
    local function says(words)
      return window:value(("document.getElementById('legend').textContent.includes('%s')"):format(words))
    end
    assert.is_true(says "signal +: contracts")
    window:visit(folder .. "/fall.html#colour=signal")
    window:await "shown.ready"
    assert.is_true(says "signal; red contracts  -1")
  end)

  with_browser("leaves particles without a value in their own colour, and tells no value of them", function(window)
    local values = {}
    for p = 1, 125 do values[p] = p % 5 == 2 and 0 / 0 or p / 125 end
    local path = rollout(2):report(folder .. "/gaps.html", { colour = { cq.tensor(values), "speed" } })
    assert.equal(1, select(2, process.read(path):gsub('"gaps": true', "")))
    for _, particle in ipairs { 1, 2, 62, 125 } do
      window:visit(("%s#pick=%d"):format(path, particle))
      local state = window:state()
      assert.same({}, state.errors)
      assert.equal(particle, state.picked.particle)
      local first = window:value [[valueOf(film.channels[0], 0, shown.picked) ?? "none"]]
      if particle % 5 == 2 then
        assert.equal("none", first)
        assert.is_true(window:value [[document.getElementById("picked").textContent.includes("none")]])
      else
        assert.near(values[particle], first, 0.501 / 254)
      end
    end
    -- how many particles keep their colour, of those without a value and of the others
    assert.same({ 25, 0 }, window:value [[(() => {
      const out = new Float32Array(3 * film.count), kept = [0, 0];
      coloursOf(film, data.palettes, 0, 0, out);
      for (let k = 0; k < film.count; k++) {
        const own = [0, 1, 2].every((c) => Math.abs(out[3 * k + c] - film.rgb[c * film.count + k]) < 1);
        kept[film.order[k] % 5 === 1 ? 0 : 1] += own;
      }
      return kept; })()]])
  end)

  with_browser("says what is wrong with a file that was cut short or changed", function(window)
    local function told(path)
      window:visit(path)
      return window:state()
    end
    local path = rollout(40):report(folder .. "/fall.html")
    local bytes = process.read(path)
    process.write(folder .. "/cut.html", bytes:sub(1, bytes:find('id="blob-4"', 1, true) + 30))
    window:visit(folder .. "/cut.html")
    window:await "shown.errors.length === 2"
    local state = window:state()
    assert.matches("this file ends early", state.errors[1])
    assert.matches("cut short", state.errors[2])
    -- a letter within the first piece of positions
    local at = select(2, bytes:find('id="blob-5">', 1, true)) + 40
    local other = bytes:sub(at, at) == "A" and "B" or "A"
    process.write(folder .. "/changed.html", bytes:sub(1, at - 1) .. other .. bytes:sub(at + 1))
    assert.matches("text %d+ .*changed", told(folder .. "/changed.html").errors[1])
  end)

  with_browser("opens 30,000 particles of 120 frames", function(window)
    -- figures of a real rollout: make report-check
    window:visit(block.write(folder .. "/walk.html"))
    local state = window:state()
    assert.equal(block.count, state.particles)
    assert.equal(120, state.frames)
    assert.equal(6 * block.side ^ 2, state.faces)
    assert.same({}, state.errors)
  end)
end)

describe("what a report is made of", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  it("is text as RFC 4648 has it", function()
    assert.same({ "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" },
      { base64.encode "", base64.encode "f", base64.encode "fo", base64.encode "foo", base64.encode "foob",
        base64.encode "fooba", base64.encode "foobar" })
  end)

  it("begins with the state that its rollout went on from", function()
    local world, controller = world_of(), function() return cq.tensor { 0.5 } end
    local before = world:rollout { steps = 20, controller = controller }
    local start = before.state:positions():min(1)[1]:item()
    assert(start > 0.24, start)
    local roll = world:rollout { steps = 2, controller = controller, from = before.state }
    local bytes = process.read(roll:report(folder .. "/on.html"))
    assert.near(start, tonumber(bytes:match '"origin": %[([%d.e-]+)'), 1e-3)
  end)

  it("is the surface alone where that is asked for", function()
    local path = rollout(4):report(folder .. "/a.html", { particles = "surface" })
    local bytes = process.read(path)
    assert.matches('"count": 98,', bytes)          -- 5^3 less 3^3
    assert.matches('"total": 125,', bytes)
  end)

  it("has the ground of a plane to the sides of the world, where its heights end before them", function()
    local wall = require "cq.report.wall"
    -- The corners along y of the ground by x, of a field of heights from `origin` on in a world of width 1.
    local function ground(origin, spacing)
      local robot = cq.Robot { shape = cq.Shape.box { size = { 0.1, 0.1 }, spacing = 0.02 },
        material = cq.Material.neo_hookean { young = 10, poisson = 0.3, density = 1 } }
      local world = cq.World { cells = { 40, 40 }, dx = 0.025, dt = 1e-3, robot:at { 0.45, 0.6 },
        walls = cq.Boundary.height_field { heights = { 0.1, 0.3, 0.2 }, origin = origin, spacing = spacing } }
      local list, out = wall.list(world), {}
      for k = 1, #list[1].corners, 3 do
        local x, y = list[1].corners[k], list[1].corners[k + 1]
        out[x] = math.max(out[x] or y, y)
      end
      return out, world.domain.size[1]
    end
    local found, width = ground(0.4, 0.1)
    assert.same({ [0] = 0.1, [0.4] = 0.1, [0.5] = 0.3, [0.6] = 0.2, [width] = 0.2 }, found)
    assert.same({ [-0.5] = 0.1, [0.5] = 0.3, [1.5] = 0.2 }, ground(-0.5, 1))
  end)

  it("shows 24 columns of a history beside the loss, and names those that it leaves out", function()
    local curves, message = require("cq.report.folder").curves, require "cq.base.message"
    local row, note, told = { iteration = 1, loss = 1 }, message.note, {}
    for k = 1, 24 do row[("column_%02d"):format(k)] = k end
    message.note = function(format, ...) told[#told + 1] = format:format(...) end
    local loss, others = curves { row }
    assert.same({ "loss", 24, "column_24", 0 }, { loss.name, #others, others[24].title, #told })
    row.more, row.other = 1, 2
    loss, others = curves { row }
    message.note = note
    assert.same({ "loss", 24 }, { loss.name, #others })
    assert.same({ "the page has 24 columns of the history beside the loss, and leaves out more, other" }, told)
  end)

  it("is written whole or not at all, and refused before anything is simulated", function()
    local asked = 0
    local roll = rollout(2, function() asked = asked + 1 end)
    local before = asked
    fails("rollout:report: path must end in .html, got \"a.png\"", function() roll:report "a.png" end)
    fails("rollout:report: /nowhere/a.html cannot be written: there is no folder /nowhere",
      function() roll:report "/nowhere/a.html" end)
    fails("rollout:report: unknown field frame (did you mean frames?)", function()
      roll:report(folder .. "/a.html", { frame = 3 })
    end)
    assert.equal(before, asked)
    assert.is_nil(host.kind(folder .. "/a.html"))
  end)

  it("is left out by --render no", function()
    option.set_given { render = "no" }
    assert.is_nil(rollout(2):report(folder .. "/a.html"))
    option.set_given {}
    assert.is_nil(host.kind(folder .. "/a.html"))
  end)
end)

describe("cqlua report", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  -- a run of three iterations in a folder
  local function train(name, rate)
    local world = world_of()
    local run = cq.Experiment {
      world = world, steps = 3, controller = cq.Controller.open_loop(cq.full({ 3, 1 }, 0.5)),
      trainable = { young = { min = 5e3, max = 2e4 } },
      objective = function(state) return state:center(world.robot)[1] end,
      optimizer = cq.Optimizer.adam { rate = rate },
    }
    run:optimize { iterations = 3, folder = folder .. "/" .. name }
  end

  it("writes the bodies, losses and differences of runs", function()
    train("one", 10)
    train("two", 20)
    local out = folder .. "/both.html"
    local told = process.cqlua { "report", folder .. "/one", folder .. "/two/", "--out", out, "--frames", "3" }
    assert.equal(0, told.code, told.err)
    assert.matches("both.html: %d+ kB, 125 particles x 3 frames, 125 particles x 3 frames", told.err)
    local data = json.decode((process.read(out):match '<script type="application/json" id="data">([^<]*)<'))
    assert.equal("one", data.runs[1].name)
    assert.equal(2, #data.curves[1].series)
    assert.same({ 1, 2, 3 }, data.curves[1].series[2].x)
    if not browser.is_there then return pending(NONE) end
    local state = state_of(out .. "#run=2")
    assert.equal("two", state.run)
    assert.same({}, state.errors)
  end)

  it("shows what a run keeps in other simulations, where that was measured", function()
    train("one", 10)
    train("two", 10)
    local report = cq.robustness(cq.load(folder .. "/one"), { draws = 2, objective = function(state, start)
      return start:center("body")[1] - state:center("body")[1]
    end })
    report:save(folder .. "/one/robustness.json")
    local out = folder .. "/kept.html"
    local told = process.cqlua { "report", folder .. "/one", folder .. "/two", "--out", out, "--frames", "2" }
    assert.equal(0, told.code, told.err)
    local runs = json.decode((process.read(out):match 'id="data">([^<]*)<')).runs
    assert.equal(tostring(report), runs[1].robustness.text)
    assert.is_nil(runs[2].robustness)
    local bars = runs[1].robustness.bars
    assert.equal("together", bars[#bars].name)
    -- the length of a bar, which begins at 100
    local function length(bar) return math.max(bar.high, 100) - math.min(bar.low, 100) end
    for k = 2, #bars - 1 do assert.is_true(length(bars[k]) <= length(bars[k - 1])) end
    train("two", 20)
    process.write(folder .. "/two/robustness.json", process.read(folder .. "/one/robustness.json"))
    local later = folder .. "/later.html"
    told = process.cqlua { "report", folder .. "/two", "--out", later, "--frames", "2" }
    assert.matches("two/robustness.json is left out: it is of earlier parameters, with loss %S+ at iteration %d, and "
      .. "the best have now %S+ at %d;", told.err)
    assert.is_nil(json.decode((process.read(later):match 'id="data">([^<]*)<')).runs[1].robustness)
    process.write(folder .. "/two/robustness.json", "{")
    assert.equal(0, process.cqlua({ "report", folder .. "/two", "--frames", "2" }).code)
    if not browser.is_there then return pending(NONE) end
    assert.equal(#bars, state_of(out .. "#run=1").kept)
    assert.equal(0, state_of(out .. "#run=2").kept)
  end)

  it("is written by cqlua compare, with the table of what differs", function()
    train("one", 10)
    train("two", 20)
    process.write(folder .. "/one/script.lua", "local rate = 10\n")
    process.write(folder .. "/two/script.lua", "local rate = 20\n")
    local out = folder .. "/both.html"
    local told = process.cqlua { "compare", folder .. "/one", folder .. "/two", "--report", out }
    assert.equal(0, told.code, told.err)
    local facts = json.decode((process.read(out):match 'id="data">([^<]*)<')).facts
    assert.same({ "", "one", "two" }, facts.heads)
    local rows = {}
    for _, row in ipairs(facts.rows) do rows[#rows + 1] = table.concat(row, "|") end
    local all = table.concat(rows, "\n")
    assert.matches("iterations|3|3", all)
    assert.matches("final loss|%-?[%d.e-]+|%-?[%d.e-]+\n", all)
    assert.matches("line of the script|1: local rate = 10|\nline of the script||1: local rate = 20", all)
    told = process.cqlua { "compare", folder .. "/one", folder .. "/two", "--report", "both.txt" }
    assert.matches("compare %-%-report: path must end in .html, got \"both.txt\"", told.err)
    assert.not_equal(0, told.code)
  end)

  it("leaves no half of a page on a full disk, and the earlier one as it was", function()
    train("one", 10)
    local out = process.write(folder .. "/a.html", "earlier")
    local told = process.cqlua({ "report", folder .. "/one", "--out", out, "--frames", "2" },
      { before = "ulimit -f 8;" })
    assert.not_equal(0, told.code)
    assert.matches("a.html.*File too large", told.err)
    assert.is_nil(told.err:find "traceback", told.err)
    assert.equal("earlier", process.read(out))
    for _, name in ipairs(host.entries(folder)) do assert.truthy(name == "one" or name == "a.html", name) end
  end)

  it("refuses what is no run, in one sentence", function()
    process.write(folder .. "/a.txt", "")
    local cases = {
      { { "report", folder }, "is no run: .*it lacks saved.bin; it has a.txt" },
      { { "report", folder .. "/none" }, "there is no run .*/none: No such file" },
      { { "report", folder .. "/a.txt" }, "a.txt is no run: cq.load: .*is not a file of tensors" },
      { { "report" }, "report needs the folder of a run or of a study" },
      { { "report", folder, "--colour", "blood" }, 'cqlua report: colour must be one of "signal"' },
      { { "report", folder, "--out", folder .. "/x.png" }, "report %-%-out must end in .html, got .*x.png" },
      { { "report", folder, "--out", "/nowhere/x.html" }, "/nowhere/x.html cannot be written: there is no folder" },
    }
    for _, case in ipairs(cases) do
      local told = process.cqlua(case[1])
      assert.not_equal(0, told.code)
      assert.matches(case[2], told.err)
      assert.is_nil(told.err:find "traceback", told.err)
    end
  end)

  it("says how a page is written elsewhere", function()
    train("one", 2)
    host.make_folder(folder .. "/one/report.html")
    local told = process.cqlua { "report", folder .. "/one" }
    assert.not_equal(0, told.code)
    assert.matches("report.html cannot be written: it is a folder; %-%-out page.html writes it elsewhere", told.err)
    told = process.cqlua { "report", folder .. "/one", "--out", folder .. "/no/x.html" }
    assert.is_nil(told.err:find("elsewhere", 1, true))
  end)

  it("reads a history that was cut within a line, and refuses a newer run", function()
    train("one", 10)
    local path = folder .. "/one/history.csv"
    local lines = process.read(path)
    process.write(path, lines:sub(1, -4))
    local told = process.cqlua { "report", folder .. "/one", "--frames", "2" }
    assert.equal(0, told.code, told.err)
    assert.matches("one/history.csv ends within a line, which is left out", told.err)
    local data = json.decode((process.read(folder .. "/one/report.html"):match 'id="data">([^<]*)<'))
    assert.same({ 1, 2 }, data.curves[1].series[1].x)
    -- its body is shown all the same
    process.write(path, (lines:gsub("\n2,", "\n2,7,")))
    told = process.cqlua { "report", folder .. "/one", "--frames", "2" }
    assert.equal(0, told.code, told.err)
    assert.matches("warning: one: its curves are not shown: .*one/history.csv is damaged: line 3 has", told.err)
    data = json.decode((process.read(folder .. "/one/report.html"):match 'id="data">([^<]*)<'))
    assert.is_table(data.runs[1].film)
    local saved = cq.load(folder .. "/one/saved.bin")
    saved.data.version = 99
    cq.save(folder .. "/one/saved.bin", saved.data)
    told = process.cqlua { "report", folder .. "/one" }
    assert.not_equal(0, told.code)
    assert.matches("has version 99, this program", told.err)
  end)
end)

describe("the report of a study", function()
  local folder
  before_each(function() folder = scratch.open() end)
  after_each(scratch.close)

  local function data_of(path) return json.decode((process.read(path):match 'id="data">([^<]*)<')) end

  it("has a table of its trials, the best so far, and the bodies of the best", function()
    local script = process.write(folder .. "/s.lua", [[
      local cq = require "cq"
      return cq.Study { name = "s", grid = { rate = { 5, 10 }, kind = { "a", "b" } }, run = function(point, trial)
        local world = cq.World { cells = { 12, 12 }, dx = 0.1, gravity = { 0, -1 }, dt = 0.01, substeps = 10,
          cq.Robot { shape = cq.Shape.box { name = "b", size = { 0.2, 0.2 }, spacing = 0.05 },
            material = cq.Material.neo_hookean { young = 100, poisson = 0.3, density = 1 } }:at { 0.5, 0.5 } }
        local run = cq.Experiment { world = world, steps = 2, trainable = { young = { min = 50, max = 200 } },
          objective = function(state) return state:center(world.robot)[2] end,
          optimizer = cq.Optimizer.adam { rate = point.rate } }
        run:optimize { iterations = 2, on_iteration = trial.report }
        return { loss = point.rate, kind_is_a = point.kind == "a" and 1 or 0 }
      end }]])
    local told = process.cqlua { "study", "run", script, "--out", folder .. "/s" }
    assert.equal(0, told.code, told.err)
    told = process.cqlua { "report", folder .. "/s", "--bodies", "1", "--frames", "2" }
    assert.equal(0, told.code, told.err)
    local study = data_of(folder .. "/s/report.html").study
    assert.same({ "trial", "state", "kind", "rate", "loss", "kind_is_a", "seconds", "problem" }, study.columns)
    assert.equal(4, #study.rows)
    assert.same({ 1, "done", "a", 5, 5, 1 }, { unpack(study.rows[1], 1, 6) })
    assert.equal(0, study.runs["1"])
    assert.equal("loss of trial 3", study.histories["3"][1].title)
    local data = data_of(folder .. "/s/report.html")
    assert.equal("trial 1", data.runs[1].name)
    assert.equal(16, data.runs[1].film.count)
    if not browser.is_there then return pending(NONE) end
    local window = browser.open()
    local fine, problem = pcall(function()
      window:visit(folder .. "/s/report.html#trial=3")
      local state = window:state()
      assert.same({}, state.errors)
      assert.equal(16, state.particles)
      assert.equal("3", window:value "document.querySelector('tr.chosen td').textContent")
      -- by rate, twice clicked: falling
      for _ = 1, 2 do window:value "document.querySelectorAll('#study th')[3].click()" end
      assert.same({ 10, 10, 5, 5 }, window:value "trials.found.map((row) => row[3])")
      window:value "trials.filter.value = 'rate<6 kind=b', trials.filter.oninput()"
      assert.same({ "b" }, window:value "trials.found.map((row) => row[2])")
      window:value "document.querySelector('#study tbody tr').click()"
      assert.matches("Trial %d", window:value "document.querySelector('#trial h2').textContent")
    end)
    window:close()
    if not fine then error(problem, 0) end
  end)

  it("takes 10,000 trials", function()
    local stores = require "cq.study.store"
    assert(host.make_folder(folder .. "/many"))
    local store = stores.open(folder .. "/many/study.sqlite", { create = true })
    store:define { name = "many", trials = 10000, repeats = 1, seed = 1, sampler = "sobol",
      space = { { name = "x", kind = "uniform", min = 0, max = 1 } },
      objectives = { { name = "loss", sign = 1 }, { name = "mass", sign = 1 } } }
    store:fill(10000)
    store.base:run [[UPDATE trial SET state = 'done', point = '{"x": ' || (number / 10000.0) || '}', value = number,
      result = '{"loss": ' || number || ', "mass": ' || -number || '}', serial = number, attempts = 1]]
    store:close()
    local told = process.cqlua { "report", folder .. "/many" }
    assert.equal(0, told.code, told.err)
    local data = data_of(folder .. "/many/report.html")
    assert.equal(10000, #data.study.rows)
    assert.same({ "mass over loss", 1, -1 }, { data.curves[2].title, data.curves[2].x[1],
      data.curves[2].series[1].y[1] })
    if not browser.is_there then return pending(NONE) end
    local state = state_of(folder .. "/many/report.html#trial=9999")
    assert.is_true(state.ready)
    assert.same({}, state.errors)
  end)

  it("refuses a file that is no study", function()
    assert(host.make_folder(folder .. "/x"))
    process.write(folder .. "/x/study.sqlite", "nonsense")
    local told = process.cqlua { "report", folder .. "/x" }
    assert.not_equal(0, told.code)
    assert.is_nil(told.err:find "traceback", told.err)
    assert.matches("study.sqlite", told.err)
  end)
end)
