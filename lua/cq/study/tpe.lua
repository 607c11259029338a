-- tpe: the tree-structured Parzen estimator (Bergstra, Bardenet, Bengio, Kegl, Algorithms for hyper-parameter
-- optimization, NIPS 2011). Points that were tried are split into the better ones and the others; a density is put
-- around each set, and of some candidates drawn from that of the better ones the point is taken at which the ratio of
-- the two is largest. Densities are of all parameters together, so that what belongs together is drawn together.
--
-- A density is a mixture: around each point a product of normal densities within [0, 1), one for each range, and of
-- categorical ones for choices; and one that is wide, so that every point stays possible.
local tpe = {}

tpe.STARTUP = 10             -- points that are drawn at random, before there is anything to learn from
local CANDIDATES = 24
local SHARE, MOST = 0.1, 25  -- of the points, those that count as the better ones, and how many at most
local NARROWEST = 0.01       -- least deviation of a normal density where there are many points

-- The standard normal distribution function at x, by Abramowitz and Stegun's 7.1.26 for erf, to 1.5e-7.
local function below(x)
  local z = math.abs(x) / math.sqrt(2)
  local t = 1 / (1 + 0.3275911 * z)
  local sum = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
  local tail = t * (0.254829592 + t * (-0.284496736 + t * sum)) * math.exp(-z * z)
  return x > 0 and 1 - tail / 2 or tail / 2
end

-- The standard deviations of the kernels around points along coordinate d, a list: the distance to the farther of the
-- two neighbours, or to an end of [0, 1), but not less than a share that falls with the number of points.
local function widths(points, d)
  local order, out, n = {}, {}, #points
  for k = 1, n do order[k] = k end
  table.sort(order, function(a, b)
    if points[a][d] == points[b][d] then return a < b end
    return points[a][d] < points[b][d]
  end)
  local least = math.max(NARROWEST, 1 / (1 + n))
  for place, k in ipairs(order) do
    local left = points[k][d] - (place > 1 and points[order[place - 1]][d] or 0)
    local right = (place < n and points[order[place + 1]][d] or 1) - points[k][d]
    out[k] = math.min(1, math.max(left, right, least))
  end
  return out
end

local Density = {}
Density.__index = Density

-- For truncated normal densities a list of log(deviation * mass within [0, 1)), their normalization.
local function areas(means, deviations)
  local out = {}
  for k, mean in ipairs(means) do
    local width = deviations[k]
    out[k] = math.log(width * (below((1 - mean) / width) - below(-mean / width)))
  end
  return out
end

-- A Density around points, lists of coordinates: a mixture of one kernel around each point and a uniform one.
-- counts[d]: the number of values of parameter d if it is a choice, nil for a range.
local function density(points, counts, dimensions)
  local self = setmetatable({ points = points, counts = counts, n = dimensions, means = {}, widths = {}, areas = {} },
    Density)
  for d = 1, dimensions do
    if not counts[d] then
      local means, deviations = {}, widths(points, d)
      for k, point in ipairs(points) do means[k] = point[d] end
      means[#points + 1], deviations[#points + 1] = 0.5, 1
      self.means[d], self.widths[d], self.areas[d] = means, deviations, areas(means, deviations)
    end
  end
  return self
end

-- The index, from 0, of the value of a choice with `count` values at a coordinate u in [0, 1).
local function place_of(u, count) return math.min(math.floor(u * count), count - 1) end

-- Adds to logs, the log density of each kernel, the factor of parameter d, a choice, at coordinate `at`.
local function add_choice(self, logs, d, at)
  local count, total = self.counts[d], #logs
  for k = 1, total do
    local point = self.points[k]
    local same = point and place_of(point[d], count) == place_of(at, count)
    logs[k] = logs[k] + math.log(point and ((same and 1 or 0) + 1 / total) / (1 + count / total) or 1 / count)
  end
end

-- Adds to logs, the log density of each kernel, the factor of parameter d, a range: a truncated normal at coordinate
-- `at`.
local function add_range(self, logs, d, at)
  local means, deviations, inside = self.means[d], self.widths[d], self.areas[d]
  for k = 1, #logs do
    local z = (at - means[k]) / deviations[k]
    logs[k] = logs[k] - 0.5 * (z * z) - inside[k]
  end
end

-- The logarithm of the density at x, a list of coordinates, up to a constant that is the same for all x: for the ratio
-- of two densities.
function Density:log(x)
  local logs, most, total = {}, -math.huge, #self.points + 1
  for k = 1, total do logs[k] = 0 end
  for d = 1, self.n do (self.counts[d] and add_choice or add_range)(self, logs, d, x[d]) end
  for k = 1, total do most = math.max(most, logs[k]) end
  local all = 0
  for k = 1, total do all = all + math.exp(logs[k] - most) end
  return most + math.log(all / total)
end

-- Draws a point, a list of coordinates in [0, 1), from the density: from the kernel around one of its points, or
-- uniformly.
function Density:draw(random)
  local total = #self.points + 1
  local k = place_of(random:uniform(), total) + 1
  local point, x = self.points[k], {}
  for d = 1, self.n do
    local count = self.counts[d]
    if count and (not point or random:uniform() < (count / total) / (1 + count / total)) then
      x[d] = random:uniform()
    elseif count then
      x[d] = point[d]
    else
      local mean, width = self.means[d][k], self.widths[d][k]
      repeat x[d] = mean + width * random:normal() until x[d] >= 0 and x[d] < 1
    end
  end
  return x
end

-- Does a list of objective values dominate b: nowhere larger, and somewhere smaller?
function tpe.dominates(a, b)
  local better = false
  for m = 1, #a do
    if a[m] > b[m] then return false end
    better = better or a[m] < b[m]
  end
  return better
end

---Pareto ranks: 1 for points that no point dominates, 2 for those dominated only by rank 1, ...
---@param list { values: number[] }[]
---@return table<table, integer>
function tpe.fronts(list)
  local rank, left, front = {}, {}, 0
  for k, entry in ipairs(list) do left[k] = entry end
  while #left > 0 do
    front = front + 1
    local rest = {}
    for _, entry in ipairs(left) do
      local dominated = false
      for _, other in ipairs(left) do dominated = dominated or tpe.dominates(other.values, entry.values) end
      if dominated then rest[#rest + 1] = entry else rank[entry] = front end
    end
    left = rest
  end
  return rank
end

-- The crowding distance of each entry { number, values } of a list, by the entry: the sum over the objectives of the
-- distance between its two neighbours; infinite at the ends.
local function crowding(list)
  local out = {}
  for _, entry in ipairs(list) do out[entry] = 0 end
  for m = 1, #list[1].values do
    local order = table.move(list, 1, #list, 1, {})
    table.sort(order, function(a, b)
      if a.values[m] == b.values[m] then return a.number < b.number end
      return a.values[m] < b.values[m]
    end)
    local span = math.max(order[#order].values[m] - order[1].values[m], 1e-300)
    out[order[1]], out[order[#order]] = math.huge, math.huge
    for k = 2, #order - 1 do
      out[order[k]] = out[order[k]] + (order[k + 1].values[m] - order[k - 1].values[m]) / span
    end
  end
  return out
end

-- done ones by their value, or by front and crowding; then pruned ones, the farthest first; then failed ones
local classes = { done = 1, pruned = 2, failed = 3 }
-- A new list of the ended points from best to worst: finished ones by value, or with several objectives by Pareto front
-- and then by crowding; then pruned ones, those with the most steps first; failed ones last.
local function sorted(points)
  local done, rank, crowd = {}, nil, nil
  for _, entry in ipairs(points) do
    if entry.state == "done" then done[#done + 1] = entry end
  end
  if #done > 0 and #done[1].values > 1 then rank, crowd = tpe.fronts(done), crowding(done) end
  local order = table.move(points, 1, #points, 1, {})
  table.sort(order, function(a, b)
    if a.state ~= b.state then return classes[a.state] < classes[b.state] end
    if a.state == "done" and rank then
      if rank[a] ~= rank[b] then return rank[a] < rank[b] end
      if crowd[a] ~= crowd[b] then return crowd[a] > crowd[b] end
    elseif a.state == "done" and a.values[1] ~= b.values[1] then
      return a.values[1] < b.values[1]
    elseif a.state == "pruned" and a.step ~= b.step then
      return a.step > b.step
    elseif a.state == "pruned" and a.value ~= b.value then
      return a.value < b.value
    end
    return a.number < b.number
  end)
  return order
end

---The coordinates in [0, 1) of the next point to try, from the ended and the running points; random before STARTUP
---points have ended.
---@param space cq.Parameter[]
---@param finished table[]      { number, state = "done"|"pruned"|"failed", x = coordinates, values, step, value }
---@param running number[][]    coordinates of running points: they count as worse ones, so that draws differ
---@param random table          the point's own stream
---@return number[]
function tpe.next(space, finished, running, random)
  local counts, dimensions = {}, #space
  for d, parameter in ipairs(space) do counts[d] = parameter.kind == "choice" and #parameter.values or nil end
  if #finished < tpe.STARTUP then
    local x = {}
    for d = 1, dimensions do x[d] = random:uniform() end
    return x
  end
  local order = sorted(finished)
  local split = math.min(MOST, math.ceil(SHARE * #order))
  local better, worse = {}, {}
  for k, entry in ipairs(order) do
    local set = k <= split and better or worse
    set[#set + 1] = entry.x
  end
  for _, x in ipairs(running) do worse[#worse + 1] = x end
  local l, g = density(better, counts, dimensions), density(worse, counts, dimensions)
  local best, most
  for _ = 1, CANDIDATES do
    local x = l:draw(random)
    local ratio = l:log(x) - g:log(x)
    if not most or ratio > most then best, most = x, ratio end
  end
  return best
end

return tpe
