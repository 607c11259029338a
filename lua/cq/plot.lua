-- plot: curves over a number, as PNG files: losses over iterations, distances over time.
--
--   local plot = cq.Plot { title = "walker", series = { { name = "loss", y = losses } } }
--   plot:write "loss.png"
--
-- With a band: series = { { name = "seed 1", x = steps, y = values, lower = low, upper = high }, ... }.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local canvases = require "cq.picture.canvas"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"

local MARGIN = { left = 84, right = 24, top = 64, bottom = 56 }      -- [pixel]
local BESIDE = 10                                                    -- [pixel] between an axis and the numbers of y
local POINT = 3                                                      -- [pixel] the radius of a point
local TICK = 16                                                      -- [pixel] between two numbers of y, at least
local TINY = 1e-300                                                  -- what a logarithmic axis cannot show

---@class cq.Plot.def
---@field series cq.Plot.series.def[]   the curves, one at least
---@field title? string             above the plot
---@field x_label? string           below its horizontal axis
---@field x_names? string[]         of the places 1, 2, ... along it, in place of numbers
---@field y_label? string           above its vertical axis
---@field width? integer            [pixel]
---@field height? integer           [pixel]
---@field log_y? boolean            a logarithmic axis, on which only positive numbers are seen
---@field y_range? number[]         two numbers that the vertical axis reaches at least, for plots side by side

---@class cq.Plot.series.def
---@field y number[]|cq.Tensor      {k}
---@field x? number[]|cq.Tensor     1, 2, ... unless given
---@field lower? number[]|cq.Tensor of a band, with upper
---@field upper? number[]|cq.Tensor of a band, with lower
---@field name? string              in the legend
---@field colour? string            "#rrggbb"
---@field points? boolean           a dot at each number, and no line

-- A checker of lists of numbers, tensors or tables.
local function numbers(optional) return is.any_of { is.tensor(), is.table(), optional = optional } end
local spec = is.define("cq.Plot", {
  series = is.list(is.table(), { min = 1 }),
  title = is.string { optional = true },
  x_label = is.string { optional = true },
  x_names = is.list(is.string(), { min = 1, optional = true }),
  y_label = is.string { optional = true },
  width = is.integer { min = 200, max = 8192, default = 960 },
  height = is.integer { min = 150, max = 8192, default = 540 },
  log_y = is.boolean { default = false },
  y_range = is.vector { size = 2, optional = true },
})
local series_spec = is.define("cq.Plot series", {
  name = is.string { optional = true }, colour = colour.checker { optional = true },
  points = is.boolean { default = false },
  y = numbers(), x = numbers(true), lower = numbers(true), upper = numbers(true),
})

-- A list of numbers from a user's list or vector; NaN stays, a gap in the curve. Errors: an entry that is missing or no
-- number; what: its name.
local function list_of(value, what)
  if text.is_instance(value, "cq.Tensor") then
    if value.rank ~= 1 then is.fail("cq.Plot: %s must be a vector, got a tensor of rank %d", what, value.rank) end
    return value:totable()
  end
  for i = 1, table.maxn(value) do
    local x = value[i]
    if x == nil then is.fail("cq.Plot: %s[%d] is missing; nan (0 / 0) leaves a gap", what, i) end
    if type(x) ~= "number" then
      is.fail("cq.Plot: %s must be numbers, got %s at position %d", what, text.describe(x), i)
    end
  end
  return value
end

-- A series as the user gave it, checked, with x, colour and name filled in. k: its number. Errors: lists of different
-- lengths; half a band.
local function read_series(given, k)
  local s = series_spec(given)
  s.y = list_of(s.y, ("series[%d].y"):format(k))
  if not s.x then
    s.x = {}
    for i = 1, #s.y do s.x[i] = i end
  end
  s.colour = s.colour or paint.lines[(k - 1) % #paint.lines + 1]
  for _, field in ipairs { "x", "lower", "upper" } do
    if s[field] then
      s[field] = list_of(s[field], ("series[%d].%s"):format(k, field))
      if #s[field] ~= #s.y then
        is.fail("cq.Plot: series[%d] has %s in %s and %d in y", k, text.count(#s[field], "number"), field, #s.y)
      end
    end
  end
  if (s.lower == nil) ~= (s.upper == nil) then
    is.fail("cq.Plot: series[%d] has %s without %s, a band needs both", k, s.lower and "lower" or "upper", s.lower
      and "upper" or "lower")
  end
  return s
end

-- Is x neither NaN nor infinite?
local function finite(x) return x - x == 0 end

-- The value of y on the axis: y itself, or its logarithm, NaN where y is not above 0.
local function axis_value(self, y)
  if not self.log_y then return y end
  return y > TINY and math.log10(y) or 0 / 0
end

-- Widens a range { lower, upper } so that it holds a value; NaN and infinite values are left out.
local function extend(range, value)
  if finite(value) then range[1], range[2] = math.min(range[1], value), math.max(range[2], value) end
end

local SAME = 1e-12                 -- of the largest number: a range as narrow is drawn as one of equal numbers

-- The ranges { lower, upper } of both axes, x first: the smallest and the largest numbers of all curves, with a little
-- space above and below. Errors: nothing to draw.
local function find_ranges(self)
  local xs, ys = { math.huge, -math.huge }, { math.huge, -math.huge }
  for _, s in ipairs(self.series) do
    for i = 1, #s.y do
      extend(xs, s.x[i])
      extend(ys, axis_value(self, s.y[i]))
      if s.lower then
        extend(ys, axis_value(self, s.lower[i]))
        extend(ys, axis_value(self, s.upper[i]))
      end
    end
  end
  if xs[1] > xs[2] or ys[1] > ys[2] then
    is.fail("cq.Plot: there is nothing to draw, no series has a finite%s number", self.log_y and " positive" or "")
  end
  for _, y in ipairs(self.y_range or {}) do
    if self.log_y and not finite(axis_value(self, y)) then
      is.fail("cq.Plot: y_range must be above 0 on a logarithmic axis, got %s", text.number(y))
    end
    extend(ys, axis_value(self, y))
  end
  if self.x_names then
    local names = #self.x_names
    if xs[1] < 0.5 or xs[2] > names + 0.5 then
      is.fail("cq.Plot: x_names has %s, for places 1 to %d, and a series has a number at x = %s", text.count(names, "name"),
        names, text.number(xs[1] < 0.5 and xs[1] or xs[2]))
    end
    xs = { 0.5, names + 0.5 }
  end
  for axis, range in ipairs { xs, ys } do
    if not finite(1.12 * range[2] - 1.12 * range[1]) then
      is.fail("cq.Plot: numbers along %s are from %s to %s, which is too far for an axis", axis == 1 and "x" or "y",
        text.number(range[1]), text.number(range[2]))
    end
    local largest = math.max(math.abs(range[1]), math.abs(range[2]))
    if range[2] - range[1] <= SAME * largest then
      local pad = math.max(largest * 0.1, 1e-12)
      range[1], range[2] = range[1] - pad, range[2] + pad
    end
  end
  local air = 0.06 * (ys[2] - ys[1])
  ys[1], ys[2] = ys[1] - air, ys[2] + air
  return xs, ys
end

local NAME, LINE = 42, 18          -- [pixel] that the mark of a name takes, and from a line of names to the next
local LEAST = 24                   -- [pixel] that curves are high

-- The series with names in lines, from the last series back, as many as fit in each: a list of lists; and whether all
-- fit beside the title.
local function find_names(self, canvas)
  local room = self.width - MARGIN.right
  local lines, used, all = {}, math.huge, 0
  for k = #self.series, 1, -1 do
    local s = self.series[k]
    local wide = s.name and canvas:text_width(s.name, 10) + NAME or 0
    if s.name and used + wide > room then lines[#lines + 1], used = {}, 0 end
    if s.name then table.insert(lines[#lines], s) end
    used, all = used + wide, all + wide
  end
  local title = self.title and canvas:text_width(self.title, 13) or 0
  return lines, title + all <= room - MARGIN.left
end

-- The text of a number at a tick, with as many digits as tell it from those a step beside it, and six at least.
local function number(value, step)
  if math.abs(value) < step * 1e-6 then return "0" end
  local power = math.floor(math.log10(math.abs(value)))
  local digits = power - math.floor(math.log10(step)) + 1
  if digits > 6 and power < 15 then digits = math.max(digits, power + 1) end      -- no exponent behind so many
  return ("%%.%dg"):format(math.max(6, math.min(digits, 17))):format(value)
end

-- Ticks { at: logarithm, text } of a logarithmic axis from 10^low to 10^high: decades; 1, 2, 5 of each if fewer than
-- two decades are visible; else round numbers.
local function log_ticks(low, high)
  local out, wide = {}, high - low >= 2
  local step = wide and math.max(1, ruler.step(high - low, 6)) or 1
  -- Adds a tick at a value of a logarithmic axis, if it is within the axis.
  local function add(value)
    local at = math.log10(value)
    if at >= low and at <= high then out[#out + 1] = { at = at, text = ("%.3g"):format(value) } end
  end
  for k = math.floor(low / step), math.floor(high / step) do
    for _, digit in ipairs(wide and { 1 } or { 1, 2, 5 }) do add(digit * 10 ^ (k * step)) end
  end
  if #out > 1 then return out end
  out, step = {}, ruler.step(10 ^ high - 10 ^ low, 6)
  for k in ruler.ticks(10 ^ low, 10 ^ high, step) do
    out[#out + 1] = { at = math.log10(k * step), text = number(k * step, step) }
  end
  return out
end

-- The ticks {at, text} of the vertical axis, in rising order, without those whose number would run into that of the
-- last one kept; the lowest stays. f: the frame, whose f.y gives the pixel of a value.
local function thinned(ticks, f)
  local out = {}
  for _, tick in ipairs(ticks) do
    if #out == 0 or f.y(out[#out].at) - f.y(tick.at) >= TICK then out[#out + 1] = tick end
  end
  return out
end

-- Ticks { at, text } of the vertical axis.
local function y_ticks(self, f)
  if self.log_y then return thinned(log_ticks(f.ys[1], f.ys[2]), f) end
  local count = math.max(2, math.min(6, math.floor((f.bottom - f.top) / TICK)))
  local step, out = ruler.step(f.ys[2] - f.ys[1], count), {}
  for k in ruler.ticks(f.ys[1], f.ys[2], step) do out[#out + 1] = { at = k * step, text = number(k * step, step) } end
  return out
end

-- A table of where the axes lie on the canvas (left, right, top, bottom [pixel]), of the ticks along y, of the lines of
-- names, and of the functions x and y from values to pixels.
local function frame(self, canvas)
  local xs, ys = find_ranges(self)
  local names, beside_title = find_names(self, canvas)
  -- lines of names lie closer where nothing would be left of the curves
  local below = MARGIN.bottom + (self.x_names and 14 or 0)
  local spare = math.max(0, self.height - MARGIN.top - below - LEAST)
  local line = math.min(LINE, spare / math.max(1, #names - 1))
  local top = MARGIN.top + line * math.max(0, #names - 1)
  local tall = self.height - top - below
  local f = {
    xs = xs, ys = ys, right = self.width - MARGIN.right, top = top, bottom = self.height - below,
    names = names, line = line, beside_title = beside_title,
    -- From a value on the y axis to pixels.
    y = function(value) return top + (ys[2] - value) / (ys[2] - ys[1]) * tall end,
  }
  f.y_ticks, f.left = y_ticks(self, f), MARGIN.left
  for _, tick in ipairs(f.y_ticks) do
    f.left = math.max(f.left, math.min(canvas:text_width(tick.text, 9) + 2 * BESIDE, self.width / 2))
  end
  -- From a value on the x axis to pixels.
  function f.x(value) return f.left + (value - xs[1]) / (xs[2] - xs[1]) * (f.right - f.left) end
  return f
end

-- The ticks { x [pixel], text } along x; and where they are names, the pixels from one to the next, else nil.
local function x_ticks(self, canvas, f)
  local out = {}
  for k, name in ipairs(self.x_names or {}) do out[k] = { x = f.x(k), text = name } end
  if self.x_names then return out, (f.right - f.left) / #out end
  local step = ruler.fitting_step(canvas, { lo = f.xs[1], hi = f.xs[2], pixels = f.right - f.left, count = 8,
    write = number })
  for k in ruler.ticks(f.xs[1], f.xs[2], step) do
    out[#out + 1] = { x = f.x(k * step), text = number(k * step, step) }
  end
  return out
end

-- The end of a name, as much of it as fits into `room` [pixel], with ".." before it where it was cut.
local function cut(canvas, name, room)
  local short = name
  while #name > 1 and canvas:text_width(short, 9) > room do
    name = name:gsub("^[%z\1-\127\192-\255][\128-\191]*", "")
    short = ".." .. name
  end
  return short
end

-- Must the names along x alternate between two rows, because one is wider than the distance `pitch` [pixel] between two
-- ticks?
local function is_crowded(canvas, ticks, pitch)
  for _, tick in ipairs(ticks) do
    if canvas:text_width(tick.text, 9) > pitch - 6 then return true end
  end
  return false
end

-- Draws axes, ticks and the lines of the grid.
local function draw_axes(self, canvas, f)
  local grid = colour.number("#24303c", 0.10)
  for _, tick in ipairs(f.y_ticks) do
    local y = f.y(tick.at)
    canvas:line({ { f.left, y }, { f.right, y } }, 1, grid)
    canvas:text { x = f.left - BESIDE, y = y + 4, size = 9, align = "right", colour = paint.faint, text = tick.text }
  end
  local ticks, pitch = x_ticks(self, canvas, f)
  local in_turns = pitch and is_crowded(canvas, ticks, pitch)
  for k, tick in ipairs(ticks) do
    canvas:line({ { tick.x, f.top }, { tick.x, f.bottom } }, 1, grid)
    local shown = pitch and cut(canvas, tick.text, 2 * pitch - 6) or tick.text
    local x = math.min(tick.x, self.width - canvas:text_width(shown, 9) / 2 - 2)         -- within the picture
    canvas:text { x = x, y = f.bottom + (in_turns and k % 2 == 0 and 34 or 20), size = 9, align = "centre",
      colour = paint.faint, text = shown }
  end
  canvas:line({ { f.left, f.top }, { f.left, f.bottom }, { f.right, f.bottom } }, 1.5, paint.faint)
  if self.title then canvas:text { x = f.left, y = 30, size = 13, text = self.title } end
  if self.x_label then
    canvas:text { x = (f.left + f.right) / 2, y = self.height - 14, size = 10, align = "centre", text = self.x_label }
  end
  if self.y_label then canvas:text { x = 14, y = f.top - 12, size = 10, text = self.y_label } end
end

-- Draws the band between the lower and upper curve of a series s, where it has them, in pieces as the curve.
local function draw_band(self, canvas, f, s)
  if not s.lower then return end
  local upper, lower = {}, {}
  -- Draws the points since the last gap.
  local function flush()
    for k = #lower, 1, -1 do upper[#upper + 1] = lower[k] end
    if #upper >= 3 then canvas:polygon(upper, colour.number(s.colour, 0.18)) end
    upper, lower = {}, {}
  end
  for i = 1, #s.x do
    local below, above = axis_value(self, s.lower[i]), axis_value(self, s.upper[i])
    if finite(s.x[i]) and finite(below) and finite(above) then
      local x = f.x(s.x[i])
      upper[#upper + 1], lower[#lower + 1] = { x, f.y(above) }, { x, f.y(below) }
    else
      flush()
    end
  end
  flush()
end

-- Draws the curve of a series s in pieces, cut where a number is not finite; a single point is a dot.
local function draw_curve(self, canvas, f, s)
  local piece = {}
  -- Draws the points since the last gap: as a line, or a single one as a dot.
  local function flush()
    if #piece == 1 then canvas:disc(piece[1][1], piece[1][2], s.points and POINT or 2.5, s.colour) end
    if #piece > 1 then canvas:line(piece, 2.2, s.colour) end
    piece = {}
  end
  for i = 1, #s.y do
    local y = axis_value(self, s.y[i])
    if finite(y) and finite(s.x[i]) then piece[#piece + 1] = { f.x(s.x[i]), f.y(y) } else flush() end
    if s.points then flush() end
  end
  flush()
end

-- Draws the names of the curves on the line of the title, or below it where both do not fit.
local function draw_legend(canvas, f)
  for k, line in ipairs(f.names) do
    local x, y = f.right, f.beside_title and 30 or 52 + f.line * (#f.names - k)
    for _, s in ipairs(line) do
      local width = canvas:text { x = x, y = y, size = 10, align = "right", text = s.name }
      if s.points then
        canvas:disc(x - width - 17, y - 5, POINT, s.colour)
      else
        canvas:line({ { x - width - 26, y - 5 }, { x - width - 8, y - 5 } }, 3, s.colour)
      end
      x = x - width - NAME
    end
  end
end

---A plot of curves. nan and inf leave gaps.
---@param fields cq.Plot.def
---@return cq.Canvas       write it with :write "loss.png", into the run's folder
local function plot(_, fields)
  local self = spec(fields)
  for k, s in ipairs(self.series) do self.series[k] = read_series(s, k) end
  local canvas = canvases.new { width = self.width, height = self.height, background = "#ffffff" }
  local f = frame(self, canvas)
  draw_axes(self, canvas, f)
  for _, s in ipairs(self.series) do draw_band(self, canvas, f, s) end
  for _, s in ipairs(self.series) do draw_curve(self, canvas, f, s) end
  draw_legend(canvas, f)
  return canvas
end

return setmetatable({}, { __call = plot })
