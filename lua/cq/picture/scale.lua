-- scale: colours of particles by a number that each of them has, and the bar that says what they mean.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"

local Scale = {}
Scale.__index = Scale

local scale = {}

local spec = is.define("cq.Picture scale", {
  label = is.string { optional = true }, unit = is.string { optional = true }, range = is.vector { size = 2, optional = true },
})

local stops = {}
for k, stop in ipairs(paint.scale) do stops[k] = { colour.parse(stop, "scale") } end

-- colour of a place 0..1 between the first and the last stop
local function at(place)
  local whole = math.min(math.max(place, 0), 1) * (#stops - 1)
  local k = math.min(math.floor(whole), #stops - 2)
  local w, a, b = whole - k, stops[k + 1], stops[k + 2]
  return a[1] + w * (b[1] - a[1]), a[2] + w * (b[2] - a[2]), a[3] + w * (b[3] - a[3])
end

---@class cq.Picture.scale.def
---@field label? string        what is shown
---@field unit? string         of its numbers
---@field range? number[]      {2} numbers of the first and the last colour; what has been seen so far unless given

---Colours by a number, from the first colour to the last one.
---@param fields cq.Picture.scale.def
function scale.new(fields)
  local self = setmetatable(spec(fields), Scale)
  if self.range and not (self.range[1] < self.range[2]) then
    is.fail("cq.Picture.scale: range must rise, got { %s, %s }", text.number(self.range[1]), text.number(self.range[2]))
  end
  return self
end

-- a range with round ends that holds what has been seen; zero where everything is
local function round(lo, hi)
  if lo >= 0 and lo < 0.5 * hi then lo = 0 end
  if hi <= 0 and hi > 0.5 * lo then hi = 0 end
  if lo == hi then lo, hi = math.min(lo, 0), math.max(hi, 0) end
  if lo == hi then hi = 1 end
  local step = ruler.step(hi - lo, 4)
  return math.floor(lo / step + 1e-9) * step, math.ceil(hi / step - 1e-9) * step
end

-- numbers of the first and the last colour after having seen these values
function Scale:see(values, n)
  if self.range then return self.range[1], self.range[2] end
  for p = 0, n - 1 do
    local value = values[p]
    if value - value == 0 then
      self.least, self.most = math.min(self.least or value, value), math.max(self.most or value, value)
    end
  end
  return round(self.least or 0, self.most or 0)
end

---The engine's colours; particles whose value is no number have that of a body.
---@param out ffi.cdata*        uint32_t[n]
---@param n integer
---@param values ffi.cdata*     double[n]
function Scale:paint(out, n, values)
  local lo, hi = self:see(values, n)
  self.lower, self.upper = lo, hi
  local none = colour.number(paint.body)
  for p = 0, n - 1 do
    local value = values[p]
    out[p] = value == value and colour.pack(at((value - lo) / (hi - lo))) or none
  end
end

---The bar with its numbers, label and unit, top right.
---@param canvas cq.Canvas
---@param right number         [pixel] where it ends
---@param write fun(canvas: cq.Canvas, line: table)
function Scale:legend(canvas, right, write)
  local wide, y, left = 180, 22, right - 180
  for i = 0, wide - 1 do canvas:rectangle(left + i, y, 1, 10, colour.pack(at((i + 0.5) / wide))) end
  local step = ruler.step(self.upper - self.lower, 3)
  for k in ruler.ticks(self.lower, self.upper, step) do
    local x = left + wide * (k * step - self.lower) / (self.upper - self.lower)
    canvas:rectangle(x - 0.5, y + 10, 1, 4, colour.number(paint.faint))
    write(canvas, { x = x, y = y + 25, size = 8, align = "centre", text = text.number(k * step), colour = paint.faint })
  end
  local title = self.label or ""
  if self.unit then title = ("%s [%s]"):format(title, self.unit) end
  write(canvas, { x = left - 12, y = y + 9, size = 9, align = "right", text = title, colour = paint.ink })
end

return scale
