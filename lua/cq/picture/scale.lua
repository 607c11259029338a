-- scale: colours of particles by a number that each of them has, or by what each of them is, and the
-- legend that says what they mean.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"

local Scale = {}
Scale.__index = Scale

local scale = {}

local spec = is.define("cq.Picture scale", {
  label = is.string { optional = true }, unit = is.string { optional = true },
  range = is.vector { size = 2, optional = true },
  palette = is.one_of { "rising", "signed", "tension", default = "rising" },
  categories = is.list(is.string(), { min = 1, optional = true }),
  floor = is.number { above = 0, optional = true },
})

local palettes = { rising = colour.list(paint.scale), signed = colour.list(paint.signed),
  tension = colour.list(paint.tension) }

-- The colour, three numbers from 0 to 255, at a place from 0 to 1 on a palette, a list of colours.
local function at(stops, place)
  local whole = math.min(math.max(place, 0), 1) * (#stops - 1)
  local k = math.min(math.floor(whole), #stops - 2)
  local w, a, b = whole - k, stops[k + 1], stops[k + 2]
  return a[1] + w * (b[1] - a[1]), a[2] + w * (b[2] - a[2]), a[3] + w * (b[3] - a[3])
end

---@class cq.Picture.scale.def
---@field label? string        what is shown
---@field unit? string         of its numbers
---@field range? number[]      {2} numbers of the first and the last colour; what has been seen so far unless given
---@field floor? number        how far apart they are at least where no range is given: smaller differences are rounding
---@field palette? "rising"|"signed"|"tension"   from dark to light; blue, grey and red; from white to a dark red
---@field categories? string[] names: the numbers are 1 for the first of them, 2 for the second, and so on

---Colours by a number, from the first colour to the last one. Errors: a range that does not rise; both categories and
---range.
---@param fields cq.Picture.scale.def
function scale.new(fields)
  local self = setmetatable(spec(fields), Scale)
  if self.range and not (self.range[1] < self.range[2]) then
    is.fail("cq.Picture.scale: range must rise, got { %s, %s }", text.number(self.range[1]), text.number(self.range[2]))
  end
  if self.categories and self.range then is.fail("cq.Picture.scale: give either categories or range, not both") end
  self.stops = palettes[self.palette]
  return self
end

-- The ends of a range with round ends that holds lo to hi, and 0 where that is near; 0 to 1 where both are 0.
local function round(lo, hi)
  if lo >= 0 and lo < 0.5 * hi then lo = 0 end
  if hi <= 0 and hi > 0.5 * lo then hi = 0 end
  if lo == hi then lo, hi = math.min(lo, 0), math.max(hi, 0) end
  if lo == hi then hi = 1 end
  local step = ruler.step(hi - lo, 4)
  return math.floor(lo / step + 1e-9) * step, math.ceil(hi / step - 1e-9) * step
end

-- The ends of a range at least as wide as `floor`, if it is given: from zero if the values lo to hi are close to zero,
-- else around them.
local function widened(lo, hi, floor)
  if not floor or hi - lo >= floor then return lo, hi end
  if lo >= 0 and hi < floor then return 0, floor end
  if hi <= 0 and lo > -floor then return -floor, 0 end
  local middle = (lo + hi) / 2
  return middle - floor / 2, middle + floor / 2
end

-- Sets the numbers that have the first and the last colour (lower, upper), from all that the scale has seen.
local function set_range(self)
  if self.range then
    self.lower, self.upper = self.range[1], self.range[2]
  elseif self.palette == "signed" then
    local most = math.max(math.abs(self.least or 0), math.abs(self.most or 0), (self.floor or 0) / 2)
    local _, upper = round(0, most)
    self.lower, self.upper = -upper, upper
  else
    self.lower, self.upper = round(widened(self.least or 0, self.most or 0, self.floor))
  end
end

---Widens the range, unless the user gave it, so that it holds one more number; NaN and infinities change nothing.
function Scale:see_one(value)
  if value - value == 0 then
    self.least, self.most = math.min(self.least or value, value), math.max(self.most or value, value)
  end
  set_range(self)
end

---Widens the range, unless the user gave it, so that it holds double values[n]; NaN and infinities change nothing.
function Scale:see(values, n)
  for p = 0, n - 1 do
    local value = values[p]
    if value - value == 0 then
      self.least, self.most = math.min(self.least or value, value), math.max(self.most or value, value)
    end
  end
  set_range(self)
end

---The engine's number of the colour of a number, or of a category by its number from 1; NaN has the colour of a body.
function Scale:colour_of(value)
  if value ~= value then return colour.number(paint.body) end
  if self.categories then
    return colour.number(paint.categories[(math.floor(value + 0.5) - 1) % #paint.categories + 1])
  end
  return colour.pack(at(self.stops, (value - self.lower) / (self.upper - self.lower)))
end

---Writes the engine's colours of numbers, by which the range is first widened; particles whose value is NaN have the
---colour of a body. Errors: a number that is no category.
---@param out ffi.cdata*        uint32_t[n]
---@param n integer
---@param values ffi.cdata*     double[n]
function Scale:paint(out, n, values)
  if not self.categories then
    self:see(values, n)
  else
    for p = 0, n - 1 do
      local value = values[p]
      if value == value and (value < 0.5 or value >= #self.categories + 0.5) then
        is.fail("cq.Picture.scale: particle %d has the number %s, the categories have 1 to %d", p + 1,
          text.number(value), #self.categories)
      end
    end
  end
  for p = 0, n - 1 do out[p] = self:colour_of(values[p]) end
end

-- ---- the legend -----------------------------------------------------------------------------------------------------

local WIDE, HIGH = 180, 10          -- [pixel] of the bar
local MARGIN = 6                    -- [pixel] between its numbers and the side of the picture, at least

-- Draws a colour bar with its numbers, with its right end at `right`. Returns the height y [pixel] at which the next
-- legend begins.
local function bar(self, canvas, right, y, write)
  local step = ruler.step(self.upper - self.lower, 3)
  -- a number under the right end of the bar goes on beyond it, but not beyond the picture
  local last = math.floor(self.upper / step + 1e-9) * step
  local beyond = WIDE * (last - self.upper) / (self.upper - self.lower) + canvas:text_width(text.number(last), 8) / 2
  right = math.min(right, canvas.width - MARGIN - beyond)
  local left = right - WIDE
  for i = 0, WIDE - 1 do canvas:rectangle(left + i, y, 1, HIGH, colour.pack(at(self.stops, (i + 0.5) / WIDE))) end
  for k in ruler.ticks(self.lower, self.upper, step) do
    local x = left + WIDE * (k * step - self.lower) / (self.upper - self.lower)
    canvas:rectangle(x - 0.5, y + HIGH, 1, 4, colour.number(paint.faint))
    write(canvas, { x = x, y = y + 25, size = 8, align = "centre", text = text.number(k * step), colour = paint.faint })
  end
  local title = self.label or ""
  if self.unit then title = ("%s [%s]"):format(title, self.unit) end
  write(canvas, { x = left - 12, y = y + 9, size = 9, align = "right", text = title, colour = paint.ink })
  return y + 40
end

-- Draws the legend of a scale with categories: a coloured box and a name for each. Returns the height y [pixel] at
-- which the next legend begins.
local function names(self, canvas, right, y, write)
  if self.label then
    write(canvas, { x = right, y = y + 9, size = 9, align = "right", text = self.label, colour = paint.ink })
    y = y + 20
  end
  for k, name in ipairs(self.categories) do
    canvas:rectangle(right - 12, y, 12, 10, paint.categories[(k - 1) % #paint.categories + 1])
    write(canvas, { x = right - 20, y = y + 9, size = 9, align = "right", text = name, colour = paint.ink })
    y = y + 18
  end
  return y + 6
end

---Draws the legend, a colour bar with numbers or names, at the top right. Returns the y of the next legend.
---@param canvas cq.Canvas
---@param right number         [pixel] where it ends
---@param y number             [pixel] where it begins
---@param write fun(canvas: cq.Canvas, line: table)
---@return number y
function Scale:legend(canvas, right, y, write)
  return (self.categories and names or bar)(self, canvas, right, y, write)
end

return scale
