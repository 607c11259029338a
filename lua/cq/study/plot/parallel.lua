-- parallel: a line for each trial through its parameters and what came out, coloured by the latter; the best lie on
-- top.
local axes = require "cq.study.plot.axis"
local colour = require "cq.base.colour"
local names = require "cq.study.plot.names"
local paint = require "cq.picture.paint"
local panels = require "cq.study.plot.panel"

local LEFT, RIGHT, TOP, BOTTOM = 80, 130, 84, 440      -- [pixel]
local STEP = 170                                       -- [pixel] between two axes
-- the share of the scale that is used: its lightest end is too pale for lines
local WORST = 0.92

-- dark for the best, light for the worst
local function colour_at(place)
  local at = math.min(math.max(place, 0), 1) * WORST * (#paint.scale - 1)
  local k = math.min(math.floor(at), #paint.scale - 2)
  local w, a, b = at - k, { colour.parse(paint.scale[k + 1], "scale") }, { colour.parse(paint.scale[k + 2], "scale") }
  return colour.pack(a[1] + w * (b[1] - a[1]), a[2] + w * (b[2] - a[2]), a[3] + w * (b[3] - a[3]), 190)
end

local function draw_axis(canvas, axis, x)
  canvas:line({ { x, TOP }, { x, BOTTOM } }, 1.5, paint.faint)
  canvas:text { x = x, y = TOP - 16, size = 10, align = "centre", text = axis.label }
  local ticks, texts = axis:ticks(6), {}
  for k, tick in ipairs(ticks) do texts[k] = tick.text end
  texts = names.below(canvas, texts, STEP - 20)
  for k = 1, #ticks, math.ceil(#ticks * names.LINE / (BOTTOM - TOP)) do
    local y = BOTTOM - ticks[k].place * (BOTTOM - TOP)
    canvas:line({ { x - 3, y }, { x + 3, y } }, 1, paint.faint)
    canvas:rectangle(x + 5, y - 8, 6 + canvas:text_width(texts[k], names.SIZE), 15, colour.number("#ffffff", 0.75))
    canvas:text { x = x + 8, y = y + 4, size = names.SIZE, colour = paint.faint, text = texts[k] }
  end
end

return function(data)
  local list, values = {}, {}
  for d, entry in ipairs(data.study.space) do list[d] = axes.of_parameter(entry) end
  for _, entry in ipairs(data.all) do values[#values + 1] = entry.value end
  local out = axes.of_values(data.label, values)
  list[#list + 1] = out
  local canvas = panels.canvas(LEFT + RIGHT + STEP * (#list - 1), BOTTOM + 40,
    ("%s: every trial"):format(data.study.name))
  -- draws one trial as a line through all axes
  local function line(entry, stroke, width)
    local points = {}
    for d, axis in ipairs(list) do
      local parameter = data.study.space[d]
      local value = parameter and entry.point[parameter.name] or entry.value
      local place = value and axis:place(value) or 0 / 0
      if place == place then points[#points + 1] = { LEFT + STEP * (d - 1), BOTTOM - place * (BOTTOM - TOP) } end
    end
    if #points > 1 then canvas:line(points, width, stroke) end
  end
  for _, entry in ipairs(data.failed) do line(entry, colour.number(panels.FAILED, 0.35), 1) end
  for _, entry in ipairs(data.pruned) do line(entry, colour.number(panels.PRUNED, 0.3), 1) end
  -- the scale goes by rank, so that a few bad ones do not take all colours; the worst are drawn first
  local done = table.move(data.done, 1, #data.done, 1, {})
  table.sort(done, function(a, b)
    if a.value ~= b.value then return a.value * data.sign > b.value * data.sign end
    return a.number < b.number
  end)
  for rank, entry in ipairs(done) do
    line(entry, colour_at(#done > 1 and (#done - rank) / (#done - 1) or 0), rank > #done - 5 and 2.4 or 1.4)
  end
  for d, axis in ipairs(list) do draw_axis(canvas, axis, LEFT + STEP * (d - 1)) end
  panels.legend(canvas, canvas.width - 24, 30, {
    { text = "best", colour = paint.scale[1] }, { text = "worst", colour = paint.scale[9] },
    { text = "pruned", colour = panels.PRUNED }, { text = "failed", colour = panels.FAILED },
  })
  return canvas
end
