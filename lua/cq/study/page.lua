-- page: a study's folder as a report: a table of its trials, the curve of the best so far, the histories and bodies of
-- the best trials. The script is not needed: the store tells parameters and objectives.
local host = require "cq.host"
local is = require "cq.base.schema"
local folders = require "cq.report.folder"
local message = require "cq.base.message"
local stores = require "cq.study.store"
local text = require "cq.base.text"

local HISTORIES = 200           -- trials whose reports the page holds, the best of them
local POINTS = 200              -- of a curve of one trial

-- A number rounded to six digits; any other value as it is.
local function short(x) return type(x) == "number" and tonumber(("%.6g"):format(x)) or x end

-- The value of a parameter for the page's table, from its number x in a point: of a choice the stored value; "" for
-- nil.
local function value_of(parameter, x)
  if x == nil then return "" end
  if parameter.values then return parameter.values[x] or x end
  return short(x)
end

-- The page's table of trials: { columns, rows, axes, objective, sign }, where axes and objective are columns, counted
-- from 0. rows: of Store:trials; stored: the study's definition.
local function table_of(rows, stored)
  local columns, axes = { "trial", "state" }, {}
  for _, parameter in ipairs(stored.space) do
    axes[#axes + 1] = #columns
    columns[#columns + 1] = parameter.name
  end
  local objective, names = #columns, stores.result_names(rows, stored.objectives)
  for _, name in ipairs(names) do columns[#columns + 1] = name end
  columns[#columns + 1], columns[#columns + 2] = "seconds", "problem"
  local out = {}
  for k, row in ipairs(rows) do
    local cells, result = { row.number, row.state }, row.result or {}
    for _, parameter in ipairs(stored.space) do
      cells[#cells + 1] = value_of(parameter, row.point and row.point[parameter.name])
    end
    for _, name in ipairs(names) do cells[#cells + 1] = short(result[name]) or "" end
    cells[#cells + 1] = row.ended and row.began and short(row.ended - row.began) or ""
    cells[#cells + 1] = row.problem or ""
    out[k] = cells
  end
  return { columns = columns, rows = out, axes = axes, objective = objective, sign = stored.objectives[1].sign }
end

-- A curve for the page: the objective of finished trials in the order in which they ended, and the best value so far.
local function progress_of(rows, objective)
  local ended = {}
  for _, row in ipairs(rows) do
    if row.state == "done" then ended[#ended + 1] = row end
  end
  table.sort(ended, function(a, b) return (a.serial or 0) < (b.serial or 0) end)
  local x, values, best = {}, {}, {}
  for k, row in ipairs(ended) do
    local value = row.result[objective.name]
    x[k], values[k] = k, short(value)
    best[k] = k == 1 and value or (objective.sign * value < objective.sign * best[k - 1] and value or best[k - 1])
  end
  return { title = objective.name .. " of trials that are done", x_label = "trials", x = x,
    series = { { name = "best so far", y = best },
      { name = "each trial", y = values, points = true } } }
end

-- A plot for the page: the first two objectives of finished trials against each other, for their trade-off.
local function objectives_of(rows, objectives)
  local x, y, a, b = {}, {}, objectives[1].name, objectives[2].name
  for _, row in ipairs(rows) do
    if row.state == "done" then x[#x + 1], y[#y + 1] = short(row.result[a]), short(row.result[b]) end
  end
  return { title = ("%s over %s"):format(b, a), x_label = a, x = x, series = { { name = b, y = y, points = true } } }
end

-- The values that a trial has reported over its steps, as a list of curves for the page in alphabetic order, of at most
-- POINTS points each.
local function curves_of(store, number)
  local out, names, curves = {}, {}, store:curves(number)
  for name in pairs(curves) do names[#names + 1] = name end
  table.sort(names)
  for k, name in ipairs(names) do
    local curve, x, y = curves[name], {}, {}
    for i = 1, #curve.x, math.max(1, math.ceil(#curve.x / POINTS)) do
      x[#x + 1], y[#y + 1] = curve.x[i], short(curve.y[i])
    end
    out[k] = { title = ("%s of trial %d"):format(name, number), x_label = "step", x = x,
      series = { { name = name, y = y } } }
  end
  return out
end

-- The folder with a trial's saved.bin: the trial's own (path), or a subfolder, if its run has a name; nil: there is
-- none.
local function result_folder(path)
  if host.kind(path .. "/saved.bin") then return path end
  local names = host.entries(path) or {}
  table.sort(names)
  for _, name in ipairs(names) do
    if host.kind(path .. "/" .. name .. "/saved.bin") then return path .. "/" .. name end
  end
end

-- Adds the bodies of the best trials to page.data.runs, at most `bodies`, and their positions there, from 0, to
-- page.data.study.runs; trials without a saved result are skipped. best: rows of trials, the best first; def: options
-- of their films.
local function add_bodies(page, folder, best, bodies, def)
  for _, row in ipairs(best) do
    if #page.data.runs >= bodies then break end
    local path = result_folder(("%s/trials/%06d"):format(folder, row.number))
    local run = path and folders.read(path, def, page, true)
    if run and run.film then
      run.name, page.data.runs[#page.data.runs + 1] = ("trial %d"):format(row.number), run
      page.data.study.runs[tostring(row.number)] = #page.data.runs - 1
    end
  end
end

---Adds a study to a page, in page.data: its table, histories of its best trials, curves and bodies.
---@param folder string
---@param def rollout.report.def
---@param page cq.Report.page
---@param bodies integer        of the best trials, whose results are run once more
return function(folder, def, page, bodies)
  folder = folder:gsub("(.)/+$", "%1")
  local store = stores.open(folder .. "/study.sqlite", { read_only = true })
  local stored = store.base:has_table "rung" and store:definition()
  if not stored then is.fail("the study in %s has not begun: it has no definition", folder) end
  local rows = store:trials()
  local best = store:ranking()
  page.data.study = table_of(rows, stored)
  page.data.study.runs, page.data.study.histories = {}, {}
  for k = 1, math.min(HISTORIES, #best) do
    page.data.study.histories[tostring(best[k].number)] = curves_of(store, best[k].number)
  end
  if #best > 0 then page.data.curves[1] = progress_of(rows, stored.objectives[1]) end
  if #best > 0 and stored.objectives[2] then page.data.curves[2] = objectives_of(rows, stored.objectives) end
  store:close()
  message.note("%s: %s, %d of them done", folder, text.count(#rows, "trial"), #best)
  add_bodies(page, folder, best, bodies, def)
end
