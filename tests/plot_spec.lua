-- plot: curves lie where their numbers say, gaps stay gaps, and what cannot be drawn says so.
local process = require "tests.process"
local image = require "cq.base.image"
local Plot = require "cq.plot"
local T = require "cq.tensor"

local fails = require("tests.sentence").fails

-- mean height of the curve's colour in each column of pixels
local function heights(canvas)
  local p, out = canvas:pixels(), {}
  for x = 0, canvas.width - 1 do
    local sum, n = 0, 0
    for y = 60, canvas.height - 60 do
      local q = p + 4 * (y * canvas.width + x)
      if q[0] > 180 and q[1] < 90 and q[2] < 90 then sum, n = sum + y, n + 1 end
    end
    if n > 0 then out[x] = sum / n end
  end
  return out
end

local function curve(y, more)
  local fields = { width = 480, height = 320, series = { { y = y, colour = "#dc1e1e" } } }
  for k, v in pairs(more or {}) do fields[k] = v end
  return heights(Plot(fields))
end

-- what a plot writes: a list of { text, align, left, right } as canvas:text gets them, left and right the pixels where
-- each begins and ends
local function texts(fields)
  local methods = getmetatable(Plot { series = { { y = { 1, 2 } } } }).__index
  local text, out = methods.text, {}
  methods.text = function(self, line)
    local width = text(self, line)
    local left = line.x - (line.align == "right" and width or line.align == "centre" and width / 2 or 0)
    out[#out + 1] = { text = line.text, align = line.align, left = left, right = left + width }
    return width
  end
  local fine, problem = pcall(Plot, fields)
  methods.text = text
  assert(fine, problem)
  return out
end

-- of these the texts that are aligned so
local function aligned(all, align)
  local out = {}
  for _, line in ipairs(all) do
    if line.align == align then out[#out + 1] = line.text end
  end
  return out
end

describe("a plot", function()
  it("has numbers along its axes that differ, whole within the picture, however far from 0", function()
    local t = T.arange(0, 1.05, 0.1)
    local all = texts { width = 500, height = 250, series = { { x = t + 123456.5, y = t * 1e-3 + 1000 } } }
    assert.same({ "123456.6", "123456.8", "123457", "123457.2", "123457.4" }, aligned(all, "centre"))
    assert.same({ "1000", "1000.0002", "1000.0004", "1000.0006", "1000.0008", "1000.001" }, aligned(all, "right"))
    all = texts { width = 960, series = { { x = t * 100 + 1.7e9, y = t - 1e9 } } }
    assert.same({ "1700000000", "1700000020", "1700000040", "1700000060", "1700000080", "1700000100" },
      aligned(all, "centre"))
    assert.same({ "-1000000000", "-999999999.8", "-999999999.6", "-999999999.4", "-999999999.2", "-999999999" },
      aligned(all, "right"))
    for _, line in ipairs(all) do assert(line.left >= 0 and line.right <= 960, line.text .. " is cut off") end
    all = texts { log_y = true, series = { { y = t * 1e-3 + 1000 } } }
    assert.same({ "1000", "1000.0002", "1000.0004", "1000.0006", "1000.0008", "1000.001" }, aligned(all, "right"))
    assert.same({ "0", "1e+20" }, aligned(texts { height = 150, series = { { y = { 0, 1e20 } } } }, "right"))
  end)

  it("has round numbers on a logarithmic axis, however much of it is seen", function()
    for _, case in ipairs {
      { { 1e-4, 1 }, { "0.0001", "0.001", "0.01", "0.1", "1" } }, { { 1e-9, 1 }, { "1e-08", "1e-06", "0.0001", "0.01",
        "1" } }, { { 0.03, 1 }, { "0.05", "0.1", "0.2", "0.5", "1" } }, { { 1.2, 1.6 }, { "1.2", "1.3", "1.4", "1.5",
        "1.6" } },
    } do
      assert.same(case[2], aligned(texts { log_y = true, series = { { y = case[1] } } }, "right"))
    end
  end)

  it("tells a number that is missing", function()
    for _, case in ipairs {
      { { y = { 0, 2.7, nil, 12 } }, "cq.Plot: series[1].y[3] is missing; nan (0 / 0) leaves a gap" },
      { { y = { [2] = 1 } }, "series[1].y[1] is missing" }, { { y = { 1, [3] = 2 } }, "series[1].y[2] is missing" },
      { { x = { 0, 5, nil, 15 }, y = { 0, 1, 2, 3 } }, "series[1].x[3] is missing" },
    } do
      fails(case[2], function() Plot { series = { case[1] } } end)
    end
  end)

  it("has as many lines of names as there is room beside each other for", function()
    local methods = getmetatable(Plot { series = { { y = { 1, 2 } } } }).__index
    local text, series, seen = methods.text, {}, {}
    for k = 1, 8 do series[k] = { name = "a long name " .. k, y = { k, 2 } } end
    methods.text = function(self, fields)
      local width = text(self, fields)
      local name = tostring(fields.text)
      if name:match "^a long" then seen[#seen + 1] = { name = name, left = fields.x - width, y = fields.y } end
      return width
    end
    local fine, problem = pcall(Plot, { width = 500, height = 300, series = series })
    methods.text = text
    assert(fine, problem)
    assert.equal(8, #seen)
    for k, one in ipairs(seen) do
      assert(one.left > 26, one.name .. " is cut off")       -- the last name is written first, lowest and rightmost
      assert(k == 1 or one.y < seen[k - 1].y or one.left < seen[k - 1].left, one.name)
    end
    assert(seen[8].y < seen[1].y - 15)
  end)

  it("rises where the numbers rise, in a straight line", function()
    local h = curve { 0, 1, 2, 3, 4 }
    local first, middle, last = h[100], h[270], h[440]
    assert(first > middle and middle > last)
    assert(math.abs(first + last - 2 * middle) < 2)
  end)

  it("makes a straight line of powers on a logarithmic axis", function()
    local h = curve({ 1, 10, 100, 1000, 10000 }, { log_y = true })
    assert(math.abs(h[100] + h[440] - 2 * h[270]) < 2)
    assert(h[100] > h[440] + 100)
  end)

  it("leaves a gap at what is no number", function()
    local h = curve { 1, 2, 3, 0 / 0, 0 / 0, 0 / 0, 2, 1 / 0, 1 }
    assert(h[130] and h[430] == nil and h[270] == nil)
  end)

  it("has points of their own, and names along x, of which the end is left where one is too long", function()
    local methods = getmetatable(Plot { series = { { y = { 1, 2 } } } }).__index
    local text, seen = methods.text, {}
    methods.text = function(self, fields)
      if fields.align == "centre" then seen[#seen + 1] = { text = fields.text, x = fields.x, y = fields.y } end
      return text(self, fields)
    end
    -- short names stand in one row, longer ones in two by turns
    Plot { width = 480, height = 320, x_names = { "1", "2", "3" }, series = { { y = { 1, 2, 3 } } } }
    assert.equal(seen[1].y, seen[2].y)
    seen = {}
    local fine, canvas = pcall(Plot, { width = 480, height = 320, x_names = { "a", "b", ("long "):rep(20) .. "ends" },
      series = { { x = { 1, 3 }, y = { 1, 2 }, points = true, colour = "#dc1e1e" } } })
    methods.text = text
    assert(fine, canvas)
    assert.same({ "a", "b" }, { seen[1].text, seen[2].text })
    assert.matches("^%.%..*ends$", seen[3].text)
    assert(seen[2].y > seen[1].y and seen[3].y == seen[1].y)
    local h = heights(canvas)
    assert.is_number(h[math.floor(seen[1].x)])
    assert.is_number(h[math.floor(2 * seen[2].x - seen[1].x)])
    assert.is_nil(h[math.floor(seen[2].x)])              -- no line goes from one to the other
  end)

  it("has a point in the legend beside the name of points, and a line beside that of a curve", function()
    for points, wide in pairs { [true] = 6, [false] = 21 } do
      local canvas, n = Plot { width = 480, height = 320, series = { { name = "s", y = { 1, 2, 3 }, points = points,
        colour = "#dc1e1e" } } }, 0
      for x = 0, 479 do
        local q = canvas:pixels() + 4 * (25 * 480 + x)
        n = n + (q[0] > 180 and q[1] < 90 and q[2] < 90 and 1 or 0)
      end
      assert(math.abs(n - wide) < 3, n .. " pixels")
    end
  end)

  it("takes vectors, own x values and bands", function()
    local x = T.tensor { 0, 10, 40 }
    local canvas = Plot {
      width = 480, height = 320, title = "a", x_label = "x", y_label = "y",
      series = {
        { name = "one", x = x, y = T.tensor { 1, 2, 1 }, lower = { 0, 1, 0 }, upper = { 2, 3, 2 }, colour = "#dc1e1e" },
        { name = "two", y = { 1, 1 } },
      },
    }
    local h = heights(canvas)
    local top = 480
    for column, y in pairs(h) do
      if y < (h[top] or math.huge) then top = column end
    end
    assert(math.abs(top - (84 + (480 - 84 - 24) / 4)) < 6, "the highest place is at a quarter, not at " .. top)
    local folder = process.folder()
    assert.equal(480, image.read(canvas:write(folder .. "/a.png")).width)
    process.remove(folder)
  end)

  it("has gaps in a band where its curve, or one of its sides, is no number", function()
    local nan = 0 / 0
    -- Is the middle of the band drawn at its fourth part, in its middle, and at three fourths?
    local function drawn(lower, upper, x)
      local canvas = Plot { width = 480, height = 320, y_range = { 0, 4 },
        series = { { x = x, y = { 0, 0, 0, 0, 0 }, lower = lower, upper = upper, colour = "#dc1e1e" } } }
      local out = {}
      for k = 1, 3 do
        local q = canvas:pixels() + 4 * (150 * canvas.width + math.floor(84 + (480 - 84 - 24) * (k / 4 + 0.01)))
        out[k] = q[0] - q[1] > 20
      end
      return out
    end
    assert.same({ true, true, true }, drawn({ 1, 1, 1, 1, 1 }, { 4, 4, 4, 4, 4 }))
    assert.same({ true, false, false }, drawn({ 1, 1, 1, nan, 1 }, { 4, 4, 4, 4, 4 }))
    assert.same({ false, false, true }, drawn({ 1, 1, 1, 1, 1 }, { 4, 4, 1 / 0, 4, 4 }, { 1, 2, 3, 3.9, 5 }))
  end)

  it("reaches the numbers that its vertical axis is to have", function()
    local alone, wide, narrow = curve { 0, 1 }, curve({ 0, 1 }, { y_range = { 0, 3 } }),
      curve({ 0, 1 }, { y_range = { 0.4, 0.6 } })
    local function rise(h) return h[90] - h[450] end
    assert(math.abs(rise(wide) - rise(alone) / 3) < 2, rise(wide))
    assert.equal(rise(alone), rise(narrow))
    assert(math.abs(rise(curve({ 1, 10 }, { log_y = true, y_range = { 1, 1000 } })) - rise(alone) / 3) < 2)
  end)

  it("draws constants and single numbers", function()
    assert(curve { 3, 3, 3 }[270])
    assert(next(curve { 5 }))
  end)

  it("draws numbers that differ by their last bits alone, and a part of an axis that is as narrow", function()
    local ruler = require "cq.picture.ruler"
    for _, ends in ipairs { { 0.5 - 2^-53, 0.5 }, { 1e17, 1e17 + 16 }, { 0, 1e300 } } do
      local next_tick, count = ruler.ticks(ends[1], ends[2], 1e-17), 0
      while next_tick() do
        count = count + 1
        assert(count < 10, "ticks without end")
      end
    end
    local last = 0.49918 - 2^-53
    assert(math.abs(curve({ 0.49918, last })[270] - curve({ 3, 3 })[270]) < 2)
    assert(next(curve({ 1, 2 }, { y_range = { 1, 1 + 2^-52 } })))
    assert(next(curve({ 1, 1 + 2^-52 }, { log_y = true })))
    assert(Plot { series = { { x = { 1e17, 1e17 + 16 }, y = { 1, 2 } } } })
  end)

  it("says what it cannot draw", function()
    fails("no series has a finite number", Plot, { series = { { y = { 0 / 0 } } } })
    fails("no series has a finite positive number", Plot, { log_y = true, series = { { y = { -1, 0 } } } })
    fails("has 2 numbers in x and 3 in y", Plot, { series = { { x = { 1, 2 }, y = { 1, 2, 3 } } } })
    fails("a band needs both", Plot, { series = { { y = { 1 }, lower = { 1 } } } })
    fails("must be numbers, got \"a\" at position 2", Plot, { series = { { y = { 1, "a" } } } })
    fails("must be a vector", Plot, { series = { { y = T.zeros { 2, 2 } } } })
    fails("y is missing", Plot, { series = { { name = "a" } } })
    fails("y_range must be a list of 2 finite numbers, got a list of 1", Plot, { y_range = { 1 }, series = { { y = { 1 } } } })
    fails("y_range must be above 0 on a logarithmic axis, got 0", Plot,
      { log_y = true, y_range = { 0, 10 }, series = { { y = { 1, 2 } } } })
    for _, y in ipairs { { 1e308, -1e308 }, { 1, 1.7e308 } } do
      fails("numbers along y are from ", Plot, { series = { { y = y } } })
      fails("too far for an axis", Plot, { series = { { x = y, y = { 1, 2 } } } })
    end
    assert(Plot { series = { { y = { 1e307, -1e307 } }, { y = { 1e307, 1e307 } } } })
    fails('x_names has 2 names, for places 1 to 2, and a series has a number at x = 3', Plot,
      { x_names = { "a", "b" }, series = { { y = { 1, 2, 3 } } } })
    fails("did you mean title?", Plot, { titel = "a", series = { { y = { 1 } } } })
  end)
end)
