-- tornado: a picture of a robustness report: a bar for each change, the longest on top, and one for all draws.
local bars_of = require "cq.robustness.bars"
local is = require "cq.base.schema"
local text = require "cq.base.text"
local canvases = require "cq.picture.canvas"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"

local WIDTH, LEFT, RIGHT, TOP, BOTTOM = 960, 130, 90, 64, 56         -- [pixel]
local ROW = 34                                                       -- [pixel] from a bar to the next
local FAILED = "#b3261e"

local function limits(bars)
  local low, high = 90, 105
  for _, bar in ipairs(bars) do low, high = math.min(low, bar.low), math.max(high, bar.high) end
  local air = 0.04 * (high - low)
  return low - air, high + air
end

local function draw_axis(canvas, low, high, x, bottom)
  local step = ruler.fitting_step(canvas, { lo = low, hi = high, pixels = WIDTH - LEFT - RIGHT, count = 8,
    write = function(value) return ("%g %%"):format(value) end })
  for k in ruler.ticks(low, high, step) do
    local at = x(k * step)
    canvas:line({ { at, TOP - 8 }, { at, bottom } }, 1, colour.number("#24303c", 0.10))
    canvas:text { x = at, y = bottom + 20, size = 9, align = "centre", colour = paint.faint,
      text = ("%g %%"):format(k * step) }
  end
  canvas:line({ { x(100), TOP - 8 }, { x(100), bottom } }, 1.5, paint.faint)
  canvas:text { x = LEFT, y = 30, size = 13, text = "kept of the gain, in a simulation that is a little different" }
end

---@param report cq.Robustness
---@param path string
---@return string path
return function(report, path)
  if not path:match "%.png$" then is.fail("robustness:plot: path must end in .png, got %s", text.describe(path)) end
  local bars = bars_of(report)
  local bottom = TOP + ROW * #bars
  local canvas = canvases.new { width = WIDTH, height = bottom + BOTTOM }
  local low, high = limits(bars)
  local function x(value) return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT) end
  draw_axis(canvas, low, high, x, bottom)
  for k, bar in ipairs(bars) do
    local y = TOP + ROW * (k - 1)
    local from, to = x(bar.low), math.max(x(bar.high), x(bar.low) + 2)
    canvas:rectangle(from, y, to - from, ROW - 12, bar.name == "together" and paint.lines[2] or paint.lines[1])
    canvas:text { x = LEFT - 12, y = y + 16, size = 10, align = "right", text = bar.name }
    canvas:text { x = to + 8, y = y + 16, size = 9, colour = bar.failed and FAILED or paint.faint,
      text = ("%.0f to %.0f %%%s"):format(bar.low, bar.high, bar.failed and ", and failed" or "") }
  end
  return canvas:write(path)
end
