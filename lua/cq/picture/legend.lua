-- legend: text over a picture: labels, and legends of its colours and arrows.
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local ruler = require "cq.picture.ruler"
local text = require "cq.base.text"

local legend = {}

local HALO = "#ffffffd0"           -- under what is written, for it to be readable on walls too
local PLATE = "#ffffffa0"
local BRIGHT_PLATE = "#ffffffd8"   -- under colours, which must look the same on a wall as on the sky

---Writes a line with a bright rim, so that it can be read on anything.
---@param line table      as canvas:text takes it
function legend.write(canvas, line)
  canvas:text { x = line.x, y = line.y, size = line.size, align = line.align, text = line.text,
    weight = 2 + 0.25 * line.size, colour = HALO }
  canvas:text(line)
end

---Writes a line, or a list of lines (nil: nothing), at the top left of a scene's picture, on a plate that lets the
---bodies behind it shine through.
function legend.labels(scene, label)
  local lines = type(label) == "string" and { label } or label or {}
  local wide = 0
  for k, line in ipairs(lines) do wide = math.max(wide, scene.canvas:text_width(line, k == 1 and 12 or 10)) end
  if wide > 0 then scene.canvas:rectangle(12, 15, wide + 16, 20 * #lines + 8, PLATE) end
  for k, line in ipairs(lines) do
    legend.write(scene.canvas, { x = 20, y = 16 + 20 * k, size = k == 1 and 12 or 10, text = line, colour = k == 1
      and paint.ink or paint.faint })
  end
end

-- Draws the colour scale of actuation, with its right end at `right`. Returns the height y [pixel] at which the next
-- legend begins.
local function actuation(canvas, label, right, y)
  local wide = 90
  canvas:rectangle(right - wide, y, wide, 8, HALO)
  for i = 0, wide - 1 do
    local u = 2 * (i + 0.5) / wide - 1
    local target = u < 0 and paint.negative or paint.positive
    canvas:rectangle(right - wide + i, y, 1, 8, colour.number(target, 0.9 * math.abs(u)^0.7))
  end
  for i, mark in ipairs { "-1", "0", "1" } do
    legend.write(canvas, { x = right - wide + (i - 1) * wide / 2, y = y + 21, size = 8, align = "centre", text = mark,
      colour = paint.faint })
  end
  legend.write(canvas, { x = right - wide - 12, y = y + 8, size = 9, align = "right", text = label,
    colour = paint.faint })
  return y + 36
end

-- Draws the legend of arrows, of marks.arrows: one of a round size, as long as such an arrow is in the picture; none
-- where all have length 0. Returns the height y [pixel] at which the next legend begins.
local function arrow(scene, canvas, arrows, right, y)
  if not (arrows.longest > 0) then return y end
  local pixels = arrows.scale * scene.pixels_of_length
  local size = ruler.step(arrows.longest, 1.6)
  if size * pixels > 160 then size = ruler.step(arrows.longest, 5) end
  local wide = math.max(size * pixels, 12)
  local head = math.min(10, 0.5 * wide)
  canvas:rectangle(right - wide, y + 4, wide - head + 1, 2.6, arrows.colour)
  canvas:polygon({ { right - head, y }, { right, y + 5.3 }, { right - head, y + 10.6 } }, arrows.colour)
  local size_text = text.number(size) .. (arrows.unit and " " .. arrows.unit or "")
  legend.write(canvas, { x = right - wide - 10, y = y + 10, size = 9, align = "right",
    text = arrows.label and ("%s %s"):format(arrows.label, size_text) or size_text, colour = paint.ink })
  return y + 26
end

-- Takes what is drawn in the place of a canvas, and finds how far to the left it goes.
local Extent = {}
Extent.__index = Extent

-- The width of a line of text, as the canvas has it.
function Extent:text_width(...) return self.canvas:text_width(...) end
-- Extends the extent to the left to x [pixel]. An extent stands in for a canvas and measures where a legend would be
-- drawn.
function Extent:see(x) self.left = math.min(self.left, x) end
-- Measures a rectangle that would be drawn: extends the extent to its left side.
function Extent:rectangle(x) self:see(x) end

-- Measures a polygon that would be drawn, a list of points.
function Extent:polygon(points)
  for _, point in ipairs(points) do self:see(point[1]) end
end

-- Measures a line of text that would be drawn: { x, size, align, text }.
function Extent:text(line)
  local width = self.canvas:text_width(line.text, line.size)
  self:see(line.x - (line.align == "right" and width or line.align == "centre" and width / 2 or 0))
end

local TOP, RIGHT = 22, 20          -- [pixel] from the sides of the picture

---Draws the legends of colours and arrows, one below the other at the top right of a canvas.
---@param scene cq.PictureScene
---@param canvas cq.Canvas
---@param what { valued: boolean, actuated: boolean, arrows: table? }
---@return number y       [pixel] below them
function legend.draw(scene, canvas, what)
  local right, y = canvas.width - RIGHT, TOP
  if what.valued then y = scene.scale:legend(canvas, right, y, legend.write)
  elseif what.actuated then y = actuation(canvas, scene.actuation_label, right, y) end
  if scene.tensions_told then y = scene.tension:legend(canvas, right, y, legend.write) end
  return what.arrows and arrow(scene, canvas, what.arrows, right, y) or y
end

---Draws the legends of colours, signals and arrows onto a finished picture; in 2D on a bright plate, since walls are
---dark.
---@param scene cq.PictureScene
---@param canvas cq.Canvas
---@param what { valued: boolean, actuated: boolean, arrows: table? }
function legend.over(scene, canvas, what)
  local extent = setmetatable({ canvas = canvas, width = canvas.width, left = math.huge }, Extent)
  local bottom = legend.draw(scene, extent, what)
  if scene.dim == 2 and extent.left < math.huge then
    local left, right = extent.left - 8, canvas.width - RIGHT + 8
    canvas:rectangle(left, TOP - 7, right - left, bottom - TOP + 4, BRIGHT_PLATE)
  end
  legend.draw(scene, canvas, what)
end

return legend
