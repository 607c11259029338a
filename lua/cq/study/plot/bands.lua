-- bands: what trials have reported, step by step: of each point the median of its replicates and the band that holds 90
-- % of them. With many points the best are shown; without replicates all trials are one band, and the best a curve.
local axes = require "cq.study.plot.axis"
local colour = require "cq.base.colour"
local paint = require "cq.picture.paint"
local panels = require "cq.study.plot.panel"
local progress = require "cq.study.progress"
local quantile = require "cq.base.quantile"

local MOST = 8                              -- points with a band of their own
local LOWER, UPPER = 0.05, 0.95

-- the name whose curves are shown: the first objective's, else the first that there is
local function name_of(data)
  local names = {}
  for _, row in ipairs(data.store.base:rows "SELECT DISTINCT name FROM report") do names[row.name] = true end
  if names[data.label] then return data.label end
  local first
  for name in pairs(names) do first = (not first or name < first) and name or first end
  return first
end

-- median and quantiles at each step, of trials that came so far
local function band_of(data, name, entries)
  local at, steps = {}, {}
  for _, entry in ipairs(entries) do
    local curve = data.store:curves(entry.number)[name] or { x = {}, y = {} }
    for k, step in ipairs(curve.x) do
      if not at[step] then at[step], steps[#steps + 1] = {}, step end
      if curve.y[k] == curve.y[k] then table.insert(at[step], curve.y[k]) end
    end
  end
  table.sort(steps)
  local band = { x = {}, median = {}, lower = {}, upper = {} }
  for _, step in ipairs(steps) do
    local values = at[step]
    if #values > 0 then
      table.sort(values)
      local k = #band.x + 1
      band.x[k], band.median[k], band.lower[k], band.upper[k] = step, quantile(values, 0.5), quantile(values, LOWER),
        quantile(values, UPPER)
    end
  end
  return #band.x > 0 and band or nil
end

-- the points to show with their trials, the best first
local function groups_of(data)
  if data.study.repeats == 1 then return { { entries = data.all, text = "all trials: median and 90 %" } } end
  local by_k, points = {}, table.move(data.points, 1, #data.points, 1, {})
  for _, entry in ipairs(data.done) do
    by_k[entry.k] = by_k[entry.k] or {}
    table.insert(by_k[entry.k], entry)
  end
  table.sort(points, function(a, b)
    if a.value ~= b.value then return a.value * data.sign < b.value * data.sign end
    return a.k < b.k
  end)
  local out = {}
  for rank = 1, math.min(#points, MOST) do
    out[rank] = { entries = by_k[points[rank].k], text = progress.point(data.study, points[rank].point) }
  end
  return out
end

local function best_of(data)
  local best
  for _, entry in ipairs(data.done) do
    if not best or entry.value * data.sign < best.value * data.sign then best = entry end
  end
  return best
end

return function(data)
  local name = name_of(data)
  if not name then return nil end
  local bands, xs, ys = {}, {}, {}
  -- adds a band with its text and colour
  local function add(band, text, stroke)
    if not band then return end
    band.text, band.colour, bands[#bands + 1] = text, stroke, band
    for k = 1, #band.x do xs[#xs + 1], ys[#ys + 1], ys[#ys + 2] = band.x[k], band.lower[k], band.upper[k] end
  end
  for k, group in ipairs(groups_of(data)) do add(band_of(data, name, group.entries), group.text,
    paint.lines[(k - 1) % #paint.lines + 1]) end
  if data.study.repeats == 1 then
    local best = best_of(data)
    add(band_of(data, name, { best }), ("the best, trial %d"):format(best.number), paint.lines[2])
  end
  if #bands == 0 then return nil end
  local height = 500 + 20 * #bands
  local canvas = panels.canvas(960, height, ("%s: %s, median and 90 %%"):format(data.study.name, name))
  local panel = panels.new { canvas = canvas, x = axes.of_values("step", xs, "linear"), y = axes.of_values(name, ys),
    at = { 0, 40, 960, 460 } }
  for k = #bands, 1, -1 do panel:band(bands[k].x, bands[k].lower, bands[k].upper,
    colour.number(bands[k].colour, 0.15)) end
  for k = #bands, 1, -1 do panel:curve(bands[k].x, bands[k].median, 2.2, bands[k].colour) end
  for k, band in ipairs(bands) do
    local y = 508 + 20 * (k - 1)
    canvas:line({ { 84, y - 4 }, { 108, y - 4 } }, 3, band.colour)
    canvas:text { x = 118, y = y, size = 9, text = band.text }
  end
  return canvas
end
