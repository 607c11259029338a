-- progress: every trial by its number, and the best so far as a line.
local axes = require "cq.study.plot.axis"
local paint = require "cq.picture.paint"
local panels = require "cq.study.plot.panel"

return function(data)
  local values, best, xs, ys = {}, nil, {}, {}
  for _, entry in ipairs(data.all) do values[#values + 1] = entry.value end
  for _, entry in ipairs(data.all) do
    if entry.state == "done" and (not best or entry.value * data.sign < best * data.sign) then best = entry.value end
    -- a step where a better one comes
    xs[#xs + 1], ys[#ys + 1] = entry.number, ys[#ys] or 0 / 0
    xs[#xs + 1], ys[#ys + 1] = entry.number, best or 0 / 0
  end
  local canvas = panels.canvas(960, 540, ("%s: %s"):format(data.study.name, data.label))
  local panel = panels.new {
    canvas = canvas, x = axes.of_values("trial", { 1, data.all[#data.all].number }, "linear"),
      y = axes.of_values(data.label, values), at = { 0, 40, 960, 500 },
  }
  for _, entry in ipairs(data.pruned) do panel:mark { x = entry.number, y = entry.value, colour = panels.PRUNED,
    cross = true } end
  for _, entry in ipairs(data.failed) do panel:failure(entry.number) end
  for _, entry in ipairs(data.done) do panel:mark { x = entry.number, y = entry.value, colour = panels.DONE } end
  panel:curve(xs, ys, 2, paint.lines[2])
  panels.legend(canvas, 930, 30, {
    { text = "done", colour = panels.DONE }, { text = "best so far", colour = paint.lines[2] },
    { text = "pruned", colour = panels.PRUNED }, { text = "failed", colour = panels.FAILED },
  })
  return canvas
end
