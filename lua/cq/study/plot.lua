-- plot: results of a study as PNG files, for papers. `cqlua report` has the rest, as a page to look at.
--
--   slices       the first objective over each parameter, of trials that are done
--   bands        reported curves: of each point the median of its replicates and the band that holds 90 % of them; with
--                many points those of the best. Without replicates all trials are one band, and the best is a curve.
local canvases = require "cq.picture.canvas"
local host = require "cq.host"
local is = require "cq.base.schema"
local paint = require "cq.picture.paint"
local plot = require "cq.plot"
local progress = require "cq.study.progress"
local quantile = require "cq.base.quantile"

local WIDTH, HEIGHT, ACROSS = 480, 360, 3       -- [pixel] of a slice, slices in a row
local SPREAD = 0.25                             -- of a choice's width, so that its points do not lie on each other
local MOST = 8                                  -- points with a band of their own
local LOWER, UPPER = 0.05, 0.95
local WIDE = 100             -- positive values whose largest is so many times the least are shown by their logarithm

-- The data of all plots: { study, store, label: the first objective, done: a list of finished trials, the best first,
-- each { number, point, rank: the value, less is better, value: with the user's sign } }.
local function data_of(study, store)
  local first = study.objectives[1]
  local data = { study = study, store = store, label = first.name, done = {} }
  for k, row in ipairs(store:ranking()) do
    data.done[k] = { number = row.number, point = row.point, rank = row.value, value = row.value * first.sign }
  end
  return data
end

-- Are the values of a list positive and so far apart that an axis should be logarithmic?
local function spans_decades(values)
  local lo, hi = math.huge, -math.huge
  for _, value in ipairs(values) do lo, hi = math.min(lo, value), math.max(hi, value) end
  return lo > 0 and hi / lo >= WIDE
end

-- ---- slices --------------------------------------------------------------------------------------------------------

-- The values of a choice as a list of texts.
local function labels_of(parameter)
  local out = {}
  for k = 1, #parameter.values do out[k] = parameter:label(k) end
  return out
end

-- One plot, a canvas: results over one parameter. Points of a choice are scattered around its middle, by trial number.
local function slice(data, name, parameter)
  local x, y, label = {}, {}, name
  for k, entry in ipairs(data.done) do
    x[k], y[k] = entry.point[name], entry.value
    if parameter.kind == "choice" then x[k] = x[k] + SPREAD * (2 * ((entry.number * 0.6180339887) % 1) - 1) end
    if parameter.kind == "log" then x[k] = math.log10(x[k]) end
  end
  if parameter.kind == "log" then label = "log10 of " .. name end
  return plot { series = { { x = x, y = y, points = true } }, x_label = label, y_label = data.label,
    log_y = spans_decades(y), width = WIDTH, height = HEIGHT,
    x_names = parameter.kind == "choice" and labels_of(parameter) or nil }
end

-- A canvas with a plot of the results over each parameter.
local function slices(data)
  local space = data.study.space
  local across = math.min(#space, ACROSS)
  local sheet = canvases.new { width = across * WIDTH, height = math.ceil(#space / across) * HEIGHT + 40 }
  sheet:text { x = 24, y = 30, size = 13, text = ("%s: %s over each parameter"):format(data.study.name, data.label) }
  for d, entry in ipairs(space) do
    local row, column = math.floor((d - 1) / across), (d - 1) % across
    sheet:paste(slice(data, entry.name, entry.parameter), column * WIDTH, 40 + row * HEIGHT)
  end
  return sheet
end

-- ---- bands ---------------------------------------------------------------------------------------------------------

-- The name of the reported value to plot: the first objective if trials have reported it, else the first name in
-- alphabetic order; nil if no trial has reported.
local function name_of(data)
  local first
  for _, row in ipairs(data.store.base:rows "SELECT DISTINCT name FROM report ORDER BY name DESC") do
    if row.name == data.label then return row.name end
    first = row.name
  end
  return first
end

-- The median and the band of a reported value over steps: lists { x: steps, y: median, lower, upper: quantiles }.
-- numbers: the trials; each step counts those that came to it with a finite value. nil where there is none.
local function band_of(data, name, numbers)
  local at, steps = {}, {}
  for _, number in ipairs(numbers) do
    local curve = data.store:curves(number)[name] or { x = {}, y = {} }
    for k, step in ipairs(curve.x) do
      if not at[step] then at[step], steps[#steps + 1] = {}, step end
      local y = curve.y[k]
      if y - y == 0 then table.insert(at[step], y) end
    end
  end
  table.sort(steps)
  local band = { x = {}, y = {}, lower = {}, upper = {} }
  for _, step in ipairs(steps) do
    local values = at[step]
    if #values > 0 then
      table.sort(values)
      local k = #band.x + 1
      band.x[k], band.y[k], band.lower[k], band.upper[k] = step, quantile.of(values, 0.5), quantile.of(values, LOWER),
        quantile.of(values, UPPER)
    end
  end
  return #band.x > 0 and band or nil
end

-- A list of the study's points with finished trials, the best mean result first: { k, text, numbers: of their trials,
-- mean: of the first objective, less is better }.
local function points_of(data)
  local out = data.study:by_point(data.done)
  for _, point in ipairs(out) do
    point.text, point.numbers, point.mean = progress.point(data.study, point.point), {}, 0
    for k, row in ipairs(point.rows) do
      point.numbers[k], point.mean = row.number, point.mean + row.rank / #point.rows
    end
  end
  table.sort(out, function(a, b)
    if a.mean ~= b.mean then return a.mean < b.mean end
    return a.k < b.k
  end)
  return out
end

-- A list { text, numbers } of groups of trials that are plotted as one band: the replicates of each point; without
-- replicates all trials, and the best alone.
local function groups_of(data)
  if data.study.repeats > 1 then return points_of(data) end
  local all = {}
  for _, row in ipairs(data.store:trials "state IN ('done', 'pruned', 'failed', 'lost')") do
    all[#all + 1] = row.number
  end
  local best = data.done[1].number
  return { { text = "all trials", numbers = all }, { text = ("the best, trial %d"):format(best), numbers = { best } } }
end

-- The plot of reported curves, a canvas: median and band of each of the first MOST groups. nil: no trial has reported a
-- finite number.
local function bands(data)
  local name, series, all = name_of(data), {}, {}
  for k, group in ipairs(name and groups_of(data) or {}) do
    local band = k <= MOST and band_of(data, name, group.numbers)
    if band then
      band.name, band.colour = group.text, paint.lines[(k - 1) % #paint.lines + 1]
      for i = 1, #band.x do all[#all + 1], all[#all + 2] = band.lower[i], band.upper[i] end
      series[#series + 1] = band
    end
  end
  if #series == 0 then return nil end
  return plot { title = ("%s: %s, median and 90 %%"):format(data.study.name, name), series = series, x_label = "step",
    log_y = spans_decades(all), height = 500 + 20 * #series }
end

---Draws slices.png and, if trials have reported curves, bands.png in a folder. Errors: no trial is done; the folder
---cannot be made.
---@param study cq.Study
---@param store cq.Store
---@param folder string
---@return string[] paths
return function(study, store, folder)
  local data, paths = data_of(study, store), {}
  if #data.done == 0 then is.fail("there is nothing to plot yet: no trial of the study %s is done", study.name) end
  local made, problem = host.make_folder(folder)
  if not made then is.fail("the folder %s cannot be made: %s", folder, tostring(problem)) end
  paths[1] = slices(data):write(folder .. "/slices.png")
  local curves = bands(data)
  if curves then paths[2] = curves:write(folder .. "/bands.png") end
  return paths
end
