-- summary: the numbers that replicates returned, as text: median and the range of 90 % of each; and points without a
-- result.
local message = require "cq.base.message"
local progress = require "cq.study.progress"
local quantile = require "cq.base.quantile"
local text = require "cq.base.text"

local MOST = 24                             -- points with a line of their own
local LEFT_OUT = 6                          -- points without a result that are named

-- Does the study only try several seeds of one point (--seeds)?
local function is_of_seeds(study) return #study.space == 1 and study.space[1].name == "seed" and study.repeats == 1 end

-- The numbers that trials returned, without NaN: sorted lists of values by name, and a list of the names in alphabetic
-- order.
local function values_of(rows)
  local values, names = {}, {}
  for _, row in ipairs(rows) do
    for name, value in pairs(row.result) do
      if value == value then
        if not values[name] then values[name], names[#names + 1] = {}, name end
        table.insert(values[name], value)
      end
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do table.sort(values[name]) end
  return values, names
end

-- Median and range of 90 % of a sorted list, as text.
local function range_of(list)
  return ("%.4g, 90 %% from %.4g to %.4g"):format(quantile.of(list, 0.5), quantile.of(list, 0.05),
    quantile.of(list, 0.95))
end

-- A list of lines, one for each number that trials returned, over all seeds; warns if all seeds gave the same loss.
local function of_seeds(study, rows)
  local lines, values, names = {}, values_of(rows)
  for k, name in ipairs(names) do
    local list, sum = values[name], 0
    for _, value in ipairs(list) do sum = sum + value end
    lines[k] = ("%s: mean %.4g, median %s, %s"):format(name, sum / #list, range_of(list), text.count(#list, "seed"))
  end
  local loss = values[study.objectives[1].name]
  if loss[2] and loss[1] == loss[#loss] then
    message.warn("all seeds gave the same %s, %s: nothing in the script is drawn by --seed, or one start of a plan (of seeds --seed, --seed + 1, ...) was the best of all",
      study.objectives[1].name, text.exact(loss[1]))
  end
  return lines
end

-- A list of lines, one for each point, on the numbers that its replicates returned.
local function of_points(study, rows)
  local lines = {}
  for k, group in ipairs(study:by_point(rows)) do
    local words, values, names = {}, values_of(group.rows)
    for j, name in ipairs(names) do words[j] = ("%s %s"):format(name, range_of(values[name])) end
    lines[k] = ("%s (%d): %s"):format(progress.point(study, group.point), #group.rows, table.concat(words, "; "))
  end
  return lines
end

-- A list of lines on points that are not compared with the best one, which has more finished replicates.
local function of_left_out(study, store)
  local best = study.repeats > 1 and #study.objectives == 1 and store:best(study.repeats)
  local lines, points = {}, best and store:left_out(study.repeats, best.count) or {}
  for k = 1, math.min(#points, LEFT_OUT) do
    lines[k] = ("point %d is left out: %d of %d replicates failed"):format(points[k].k, points[k].count, study.repeats)
  end
  if #points > LEFT_OUT then lines[#lines + 1] = ("and %d more"):format(#points - LEFT_OUT) end
  return lines
end

-- A list of lines on the numbers that the replicates of each point returned; of a study of seeds, over all seeds. Empty
-- where there are no replicates, or too many points.
local function of_replicates(study, store)
  if not is_of_seeds(study) and (study.repeats == 1 or study.points > MOST) then return {} end
  local rows = store:trials "state = 'done'"
  if #rows == 0 then return {} end
  return is_of_seeds(study) and of_seeds(study, rows) or of_points(study, rows)
end

---A list of lines: which points are left out where the best is told, and the numbers that replicates returned.
---@param study cq.Study
---@param store cq.Store
---@return string[]
return function(study, store)
  local lines = of_left_out(study, store)
  for _, line in ipairs(of_replicates(study, store)) do lines[#lines + 1] = line end
  return lines
end
