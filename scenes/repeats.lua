-- repeats: a training with several first weights, of which the curves are kept and drawn: the median of the best so
-- far, and the band that holds 90 % of the runs.
--
--   local curves = { repeats.curve(run, function(loss) return -loss end), ... }     of runs that were optimised
--   repeats.plot { path = "curves.png", by = "iteration", series = { { name = "fixed", curves = curves } } }
local cq = require "cq"

local repeats = {}

---The best so far of what a run was trained for, after each iteration; read from its history, so that a run that went
---on has all of it.
---@param run cq.Experiment     that was optimised
---@param measure fun(loss: number): number    the more the better
---@return { iteration: number[], seconds: number[], best: number[] }
function repeats.curve(run, measure)
  local out = { iteration = {}, seconds = {}, best = {} }
  local columns, best, seconds = nil, -math.huge, 0
  for line in io.lines(run.run:path "history.csv") do
    local row, k = {}, 0
    for cell in line:gmatch "[^,]+" do
      k = k + 1
      row[columns and columns[k] or k] = cell
    end
    if columns then
      best, seconds = math.max(best, measure(tonumber(row.loss))), seconds + tonumber(row.seconds)
      local n = #out.best + 1
      out.iteration[n], out.seconds[n], out.best[n] = n, seconds, best
    end
    columns = columns or row
  end
  return out
end

-- between the two nearest of the sorted values
local function quantile(sorted, share)
  local at = 1 + share * (#sorted - 1)
  local k = math.floor(at)
  return sorted[k] + (at - k) * ((sorted[k + 1] or sorted[k]) - sorted[k])
end

---Median and 90 % band after each iteration that all of the curves have; x, iterations or seconds, is the median too.
---@param curves table[]      of repeats.curve
---@param by "iteration"|"seconds"
---@return { x: number[], y: number[], lower: number[], upper: number[] } series   as cq.Plot takes it
function repeats.band(curves, by)
  local count, out = math.huge, { x = {}, y = {}, lower = {}, upper = {} }
  for _, curve in ipairs(curves) do count = math.min(count, #curve.best) end
  local function sorted(key, i)
    local list = {}
    for k, curve in ipairs(curves) do list[k] = curve[key][i] end
    table.sort(list)
    return list
  end
  for i = 1, count do
    local values = sorted("best", i)
    out.x[i], out.y[i] = quantile(sorted(by, i), 0.5), quantile(values, 0.5)
    out.lower[i], out.upper[i] = quantile(values, 0.05), quantile(values, 0.95)
  end
  return out
end

---Draws the medians and bands of some sets of curves.
---@param options { path: string, by: "iteration"|"seconds", title: string?, label: string, series: { name: string, curves: table[] }[] }
function repeats.plot(options)
  local series = {}
  for k, one in ipairs(options.series) do
    series[k] = repeats.band(one.curves, options.by)
    series[k].name = one.name
  end
  cq.Plot {
    title = options.title, x_label = options.by == "seconds" and "wall time [s]" or "iteration",
    y_label = options.label, series = series,
  }:write(options.path)
end

return repeats
