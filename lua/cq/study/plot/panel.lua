-- panel: a rectangle of a canvas with two axes, into which values are drawn.
local canvases = require "cq.picture.canvas"
local colour = require "cq.base.colour"
local names = require "cq.study.plot.names"
local paint = require "cq.picture.paint"

---@class cq.StudyPanel
---@field canvas cq.Canvas
local Panel = {}
Panel.__index = Panel

local panel = { FAILED = paint.positive, PRUNED = "#9aa4ae", DONE = paint.lines[1] }

local INSET = { left = 78, right = 18, top = 34, bottom = 46 }     -- [pixel] of a panel that its axes leave free
-- [pixel] that names may stand out beside the axis
local BEFORE, AFTER = INSET.left - 30, INSET.right - 4

---An empty picture with a title.
---@return cq.Canvas
function panel.canvas(width, height, title)
  local canvas = canvases.new { width = width, height = height, background = "#ffffff" }
  canvas:text { x = 24, y = 30, size = 13, text = title }
  return canvas
end

---@class cq.StudyPanel.def
---@field canvas cq.Canvas
---@field x cq.StudyAxis
---@field y cq.StudyAxis
---@field at number[]        {left, top, width, height} [pixel]

---@param def cq.StudyPanel.def
function panel.new(def)
  local left, top, width, height = unpack(def.at)
  local self = setmetatable({
    canvas = def.canvas, x = def.x, y = def.y, left = left + INSET.left, right = left + width - INSET.right,
    top = top + INSET.top, bottom = top + height - INSET.bottom,
  }, Panel)
  if self.x.kind == "category" then
    self.names = names.across { canvas = self.canvas, labels = self.x.labels, left = self.left,
      pitch = (self.right - self.left) / #self.x.labels, before = BEFORE, after = AFTER }
    self.bottom = self.bottom - names.LINE * (self.names.rows - 1)
  end
  self.foot = top + height - INSET.bottom
  self:draw_axes()
  return self
end

-- pixels of a value on each axis
function Panel:px(value) return self.left + self.x:place(value) * (self.right - self.left) end
function Panel:py(value) return self.bottom - self.y:place(value) * (self.bottom - self.top) end

function Panel:draw_axes()
  local canvas, grid = self.canvas, colour.number("#24303c", 0.10)
  for _, tick in ipairs(self.y:ticks(math.max(3, math.floor((self.bottom - self.top) / 60)))) do
    local y = self.bottom - tick.place * (self.bottom - self.top)
    canvas:line({ { self.left, y }, { self.right, y } }, 1, grid)
    canvas:text { x = self.left - 8, y = y + 4, size = 8.5, align = "right", colour = paint.faint, text = tick.text }
  end
  for _, tick in ipairs(self.x:ticks(math.max(2, math.floor((self.right - self.left) / 80)))) do
    local x = self.left + tick.place * (self.right - self.left)
    canvas:line({ { x, self.top }, { x, self.bottom } }, 1, grid)
    if not self.names then
      canvas:text { x = x, y = self.bottom + 17, size = 8.5, align = "centre", colour = paint.faint, text = tick.text }
    end
  end
  if self.names then names.write(canvas, self.names, self.bottom + 17) end
  canvas:line({ { self.left, self.top }, { self.left, self.bottom }, { self.right, self.bottom } }, 1.5, paint.faint)
  canvas:text { x = (self.left + self.right) / 2, y = self.foot + 36, size = 10, align = "centre",
    text = self.x.label }
  canvas:text { x = self.left - 60, y = self.top - 12, size = 10, text = self.y.label }
end

-- are all of these numbers finite?
local function shown(...)
  for k = 1, select("#", ...) do
    local value = select(k, ...)
    if value - value ~= 0 then return false end
  end
  return true
end

---A disc, or a cross for what did not end well.
---@param mark { x: number, y: number, colour: string|integer, cross: boolean?, size: number? }
function Panel:mark(mark)
  local x, y, size = self:px(mark.x), self:py(mark.y), mark.size or 3.2
  if not shown(x, y) then return end
  if not mark.cross then return self.canvas:disc(x, y, size, mark.colour) end
  self.canvas:line({ { x - size, y - size }, { x + size, y + size } }, 1.4, mark.colour)
  self.canvas:line({ { x - size, y + size }, { x + size, y - size } }, 1.4, mark.colour)
end

---A cross at the lower end, for trials that have no value.
function Panel:failure(x)
  local px = self:px(x)
  local y = self.bottom - 5
  self.canvas:line({ { px - 3, y - 3 }, { px + 3, y + 3 } }, 1.4, panel.FAILED)
  self.canvas:line({ { px - 3, y + 3 }, { px + 3, y - 3 } }, 1.4, panel.FAILED)
end

---A curve; values that cannot be shown leave gaps.
function Panel:curve(xs, ys, width, stroke)
  local piece = {}
  local function flush()
    if #piece > 1 then self.canvas:line(piece, width, stroke) end
    piece = {}
  end
  for k = 1, #xs do
    local x, y = self:px(xs[k]), self:py(ys[k])
    if shown(x, y) then piece[#piece + 1] = { x, y } else flush() end
  end
  flush()
end

---The area between two curves.
function Panel:band(xs, lower, upper, fill)
  local points = {}
  for k = 1, #xs do
    local x, y = self:px(xs[k]), self:py(upper[k])
    if shown(x, y) then points[#points + 1] = { x, y } end
  end
  for k = #xs, 1, -1 do
    local x, y = self:px(xs[k]), self:py(lower[k])
    if shown(x, y) then points[#points + 1] = { x, y } end
  end
  if #points >= 3 then self.canvas:polygon(points, fill) end
end

---Names of colours, from the right.
---@param list { text: string, colour: string, cross: boolean? }[]
function panel.legend(canvas, right, y, list)
  local x = right
  for k = #list, 1, -1 do
    local entry = list[k]
    local width = canvas:text { x = x, y = y, size = 9, align = "right", text = entry.text }
    canvas:line({ { x - width - 22, y - 4 }, { x - width - 8, y - 4 } }, 3, entry.colour)
    x = x - width - 38
  end
end

return panel
