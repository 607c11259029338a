-- importance: a bar for each parameter, the longest first.
local importance = require "cq.study.importance"
local panels = require "cq.study.plot.panel"
local paint = require "cq.picture.paint"

local LEFT, RIGHT, BAR = 170, 70, 34         -- [pixel]

return function(data)
  local shares = importance.of(data.study.space, data.points)
  if not shares then return nil end
  local order = {}
  for d = 1, #shares do order[d] = d end
  table.sort(order, function(a, b)
    if shares[a] == shares[b] then return a < b end
    return shares[a] > shares[b]
  end)
  local width = 720
  local canvas = panels.canvas(width, 76 + BAR * #order,
    ("%s: share of the variance of %s that each explains alone"):format(data.study.name, data.label))
  for row, d in ipairs(order) do
    local y = 58 + BAR * (row - 1)
    canvas:text { x = LEFT - 12, y = y + 16, size = 10, align = "right", text = data.study.space[d].name }
    canvas:rectangle(LEFT, y, math.max(1, shares[d] * (width - LEFT - RIGHT)), BAR - 12, paint.lines[1])
    canvas:text { x = LEFT + shares[d] * (width - LEFT - RIGHT) + 8, y = y + 16, size = 9, colour = paint.faint,
      text = ("%.2f"):format(shares[d]) }
  end
  return canvas
end
