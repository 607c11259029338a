-- front: of several objectives the first two against each other, and the trials that nothing dominates.
local axes = require "cq.study.plot.axis"
local paint = require "cq.picture.paint"
local panels = require "cq.study.plot.panel"
local report = require "cq.study.report"

return function(data)
  local objectives = data.study.objectives
  if #objectives < 2 then return nil end
  local a, b, xs, ys = objectives[1].name, objectives[2].name, {}, {}
  for k, entry in ipairs(data.done) do xs[k], ys[k] = entry.result[a], entry.result[b] end
  local canvas = panels.canvas(720, 560, ("%s: %s and %s"):format(data.study.name, a, b))
  local panel = panels.new { canvas = canvas, x = axes.of_values(a, xs), y = axes.of_values(b, ys),
    at = { 0, 44, 720, 516 } }
  for k = 1, #xs do panel:mark { x = xs[k], y = ys[k], colour = panels.PRUNED } end
  local best = report.front(data.study, data.store)
  table.sort(best, function(p, q) return p.result[a] < q.result[a] end)
  local fx, fy = {}, {}
  for k, row in ipairs(best) do fx[k], fy[k] = row.result[a], row.result[b] end
  if #objectives == 2 then panel:curve(fx, fy, 1.6, paint.lines[2]) end
  for k = 1, #fx do panel:mark { x = fx[k], y = fy[k], colour = paint.lines[2], size = 4 } end
  panels.legend(canvas, 696, 30, { { text = "trials", colour = panels.PRUNED },
    { text = "nothing is better in all", colour = paint.lines[2] } })
  return canvas
end
