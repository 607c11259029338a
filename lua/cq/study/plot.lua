-- plot: what came of a study as PNG files.
--
--   progress     every trial in order, and the best so far
--   slices       what came out over each parameter
--   parallel     a line for each trial through all parameters, coloured by what came out
--   importance   how much of it each parameter explains on its own
--   bands        reported curves: median and 90 % of the replicates of each point
--   map          of a grid: the mean for each pair of parameters
--   front        of several objectives: those that nothing dominates
--
-- Failed and pruned trials are shown, as crosses.
local host = require "cq.host"
local is = require "cq.base.schema"

-- trials that have begun and ended, with the value of the first objective as the user names it
local function data_of(study, store)
  local first, data = study.objectives[1], { study = study, store = store, done = {}, pruned = {}, failed = {},
    all = {} }
  for _, row in ipairs(store:trials "state IN ('done', 'pruned', 'failed', 'lost') AND point IS NOT NULL") do
    local state = row.state == "lost" and "failed" or row.state
    local entry = { number = row.number, k = study:place(row.number), state = state, point = row.point,
      result = row.result,
      value = row.value and row.value * first.sign }
    if state == "done" or state == "pruned" and entry.value or state == "failed" then
      data[state][#data[state] + 1], data.all[#data.all + 1] = entry, entry
    end
  end
  data.label, data.sign = first.name, first.sign
  return data
end

-- means over the replicates of each point that are done
local function points_of(data)
  local by_k, out = {}, {}
  for _, entry in ipairs(data.done) do
    local known = by_k[entry.k]
    if not known then
      known = { k = entry.k, point = entry.point, sum = 0, count = 0 }
      by_k[entry.k], out[#out + 1] = known, known
    end
    known.sum, known.count = known.sum + entry.value, known.count + 1
    known.value = known.sum / known.count
  end
  return out
end

local order = { "progress", "slices", "parallel", "importance", "bands", "map", "front" }

---Draws all that there is something to show of.
---@param study cq.Study
---@param store cq.Store
---@param folder string
---@return string[] paths
local function plot(study, store, folder)
  local data = data_of(study, store)
  data.points = points_of(data)
  if #data.done == 0 then is.fail("there is nothing to plot yet: no trial of the study %s is done", study.name) end
  local made, problem = host.make_folder(folder)
  if not made then is.fail("the folder %s cannot be made: %s", folder, tostring(problem)) end
  local paths = {}
  for _, name in ipairs(order) do
    local canvas = require("cq.study.plot." .. name)(data)
    if canvas then paths[#paths + 1] = canvas:write(("%s/%s.png"):format(folder, name)) end
  end
  return paths
end

return plot
