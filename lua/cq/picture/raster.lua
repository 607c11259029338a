-- raster: numbers over time as colours, a row for each of them: signals.
local is = require "cq.base.schema"
local text = require "cq.base.text"
local canvases = require "cq.picture.canvas"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"
local scales = require "cq.picture.scale"

local MARGIN = { left = 60, right = 24, top = 64, bottom = 56 }      -- [pixel]

local NUMBER = 14             -- [pixel] from one number of a row to the next, at least

local spec = is.define("cq.Picture raster", {
  values = is.tensor(), dt = is.number { above = 0 }, title = is.string { optional = true },
  width = is.integer { min = 200 }, height = is.integer { min = 150 },
})

-- Draws a line of text, as canvas:text takes it.
local function write(canvas, line) canvas:text(line) end

---@class cq.Picture.raster.def
---@field values cq.Tensor     {steps, rows}, -1 to 1
---@field dt number            of a step [time]
---@field title? string        above
---@field width integer        [pixel]
---@field height integer       [pixel]

---A picture of numbers over time, a row of colours for each column of values, with the scale of colours.
---@param fields cq.Picture.raster.def
---@return cq.Canvas
return function(fields)
  local self = spec(fields)
  local steps, rows = self.values:size(1), self.values:size(2)
  local canvas = canvases.new { width = self.width, height = self.height }
  local scale = scales.new { label = "signal", palette = "signed", range = { -1, 1 } }
  scale:see_one(0)
  local left, top = MARGIN.left, MARGIN.top
  local wide, high = self.width - left - MARGIN.right, (self.height - top - MARGIN.bottom) / rows
  -- one column for each pixel: the mean of its steps
  local data = self.values:data()
  for column = 0, wide - 1 do
    local from = math.floor(column * steps / wide) + 1
    local to = math.max(from, math.floor((column + 1) * steps / wide))
    for r = 0, rows - 1 do
      local sum = 0
      for i = from - 1, to - 1 do sum = sum + data[i * rows + r] end
      canvas:rectangle(left + column, top + r * high, 1, high - 3, scale:colour_of(sum / (to - from + 1)))
    end
  end
  for r = 1, rows, math.ceil(NUMBER / high) do
    canvas:text { x = left - 10, y = top + (r - 0.5) * high + 3, size = 9, align = "right", colour = paint.faint,
      text = tostring(r) }
  end
  local step = ruler.fitting_step(canvas, { lo = 0, hi = steps * self.dt, pixels = wide, count = 8,
    write = text.number })
  for k in ruler.ticks(0, steps * self.dt, step) do
    canvas:text { x = left + k * step / (steps * self.dt) * wide, y = self.height - MARGIN.bottom + 20, size = 9,
      align = "centre", colour = paint.faint, text = text.number(k * step) }
  end
  canvas:text { x = left + wide / 2, y = self.height - 14, size = 10, align = "centre", text = "time" }
  if self.title then canvas:text { x = left, y = 30, size = 13, text = self.title } end
  scale:legend(canvas, self.width - MARGIN.right, 14, write)
  return canvas
end
