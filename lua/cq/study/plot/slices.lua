-- slices: what came out over each parameter, a panel each.
local axes = require "cq.study.plot.axis"
local panels = require "cq.study.plot.panel"

local WIDTH, HEIGHT, ACROSS = 400, 330, 3       -- [pixel] of a panel, panels in a row
local SPREAD = 0.25                             -- of a category's width, so that its points do not lie on each other

-- a place beside a category's middle that depends on the trial's number alone
local function beside(axis, entry, x)
  if axis.kind ~= "category" then return x end
  return x + SPREAD * (2 * ((entry.number * 0.6180339887) % 1) - 1)
end

return function(data)
  local space, values = data.study.space, {}
  for _, entry in ipairs(data.all) do values[#values + 1] = entry.value end
  local across = math.min(#space, ACROSS)
  local canvas = panels.canvas(across * WIDTH + 16, math.ceil(#space / across) * HEIGHT + 54,
    ("%s: %s over each parameter"):format(data.study.name, data.label))
  for d, parameter in ipairs(space) do
    local row, column = math.floor((d - 1) / across), (d - 1) % across
    local panel = panels.new {
      canvas = canvas, x = axes.of_parameter(parameter), y = axes.of_values(data.label, values),
      at = { column * WIDTH, 46 + row * HEIGHT, WIDTH, HEIGHT },
    }
    local function x_of(entry) return beside(panel.x, entry, entry.point[parameter.name]) end
    for _, entry in ipairs(data.pruned) do panel:mark { x = x_of(entry), y = entry.value, colour = panels.PRUNED,
      cross = true, size = 2.6 } end
    for _, entry in ipairs(data.failed) do panel:failure(x_of(entry)) end
    for _, entry in ipairs(data.done) do panel:mark { x = x_of(entry), y = entry.value, colour = panels.DONE,
      size = 2.8 } end
  end
  return canvas
end
