-- history: a study's trials for adapting samplers: finished points, by the mean of their replicates, and running ones.
-- It follows the store and never reads a trial twice.
local History = {}
History.__index = History

---An empty history of a study's trials, filled from the store by later updates.
---@param study cq.Study
---@param store cq.Store
---@return table                the History
function History.new(study, store)
  return setmetatable({ study = study, store = store, serial = 0, rows = {}, finished = {}, by_number = {},
    running = {} }, History)
end

-- A stored point, numbers by parameter, as a list of coordinates in the unit cube, in the order of the space.
local function coordinates(study, point)
  local x = {}
  for d, entry in ipairs(study.space) do x[d] = entry.parameter:unit(point[entry.name]) end
  return x
end

-- One entry for all replicates of point k: { number = k, state, x: coordinates, values: means by objective, less is
-- better, step and value of a pruned one }. Its state is "done" if one of rows is, else "pruned" or "failed".
local function summary(study, k, rows)
  local entry, done = { number = k, state = "failed" }, 0
  entry.values = {}
  for m = 1, #study.objectives do entry.values[m] = 0 end
  for _, row in pairs(rows) do
    entry.x = entry.x or row.point and coordinates(study, row.point)
    if row.state == "done" then
      done = done + 1
      for m, objective in ipairs(study.objectives) do
        entry.values[m] = entry.values[m] + objective.sign * row.result[objective.name]
      end
    elseif row.state == "pruned" and entry.state == "failed" then
      entry.state, entry.step, entry.value = "pruned", row.step or 0, row.value or math.huge
    end
  end
  if done > 0 then entry.state = "done" end
  for m = 1, #entry.values do entry.values[m] = entry.values[m] / math.max(done, 1) end
  return entry
end

-- Adds the row of a trial that has ended; when all replicates of a point have ended, adds one entry for the point to
-- self.finished and self.by_number.
function History:add(row)
  local study = self.study
  local k = study:place(row.number)
  local rows = self.rows[k] or {}
  self.rows[k], rows[row.number] = rows, row
  local count = 0
  for _ in pairs(rows) do count = count + 1 end
  if count < study.repeats or self.by_number[k] then return end
  local entry = summary(study, k, rows)
  if not entry.x then return end
  self.by_number[k], self.finished[#self.finished + 1] = entry, entry
end

---Updates the history from the store: trials that have ended since the last call, and the points of running ones.
function History:refresh()
  for _, row in ipairs(self.store:ended(self.serial)) do
    self.serial = row.serial
    self:add(row)
  end
  self.running = {}
  local seen = {}
  for _, row in ipairs(self.store:trials "state = 'running' AND point IS NOT NULL") do
    local k = self.study:place(row.number)
    if not seen[k] and not self.by_number[k] then
      seen[k], self.running[#self.running + 1] = true, coordinates(self.study, row.point)
    end
  end
end

---The point of a trial as JSON: the one that its other replicates have, or a new one from the sampler.
---@param number integer
---@return string
function History:point(number)
  local json = require "cq.base.json"
  local k, replicate = self.study:place(number)
  local first = number - replicate + 1
  local known = self.study.repeats > 1 and self.store.base:value(
    "SELECT point FROM trial WHERE number BETWEEN ? AND ? AND point IS NOT NULL LIMIT 1", first,
      first + self.study.repeats - 1)
  return known or json.encode(self.study:draw(k, self))
end

return History
