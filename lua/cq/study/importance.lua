-- importance: the share of a result's variance that each parameter explains on its own: the correlation ratio, that is
-- the variance of the means within bins of the parameter over the whole variance (a first-order Sobol index by
-- binning), of ranks in place of values, so that a few outliers do not decide. The share expected by chance is
-- subtracted (Kelley's epsilon squared).
local importance = {}

local MOST = 8               -- bins of a range

-- A list of the rank of each value in a list, from 1; equal values have the mean of their ranks.
local function ranks(values)
  local order, out = {}, {}
  for k = 1, #values do order[k] = k end
  table.sort(order, function(a, b) return values[a] < values[b] end)
  local k = 1
  while k <= #order do
    local last = k
    while last < #order and values[order[last + 1]] == values[order[k]] do last = last + 1 end
    for j = k, last do out[order[j]] = (k + last) / 2 end
    k = last + 1
  end
  return out
end

-- For each of the numbers xs of one parameter its bin, from 1, a list: a bin for each value of a choice, or shares of a
-- range with equally many xs; and the number of bins.
local function bins(parameter, xs)
  local out = {}
  if parameter.kind == "choice" then return xs, #parameter.values end
  local place = ranks(xs)
  local count = math.max(2, math.min(MOST, math.floor(math.sqrt(#xs))))
  for k = 1, #xs do out[k] = math.min(count, math.floor((place[k] - 0.5) / #xs * count) + 1) end
  return out, count
end

---The share of the variance of the values that each parameter explains on its own, from 0 to 1, in the order of the
---space; nil with fewer than ten points.
---@param space { name: string, parameter: cq.Parameter }[]
---@param points { point: table<string, number>, value: number }[]
---@return number[]?
function importance.of(space, points)
  local n = #points
  if n < 10 then return nil end
  local values, out = {}, {}
  for k, entry in ipairs(points) do values[k] = entry.value end
  local rank = ranks(values)
  local mean, whole = (n + 1) / 2, 0
  for k = 1, n do whole = whole + (rank[k] - mean) ^ 2 end
  for d, entry in ipairs(space) do
    local xs, sums, counts = {}, {}, {}
    for k, point in ipairs(points) do xs[k] = point.point[entry.name] end
    local bin = bins(entry.parameter, xs)
    for k = 1, n do
      sums[bin[k]], counts[bin[k]] = (sums[bin[k]] or 0) + rank[k], (counts[bin[k]] or 0) + 1
    end
    local between, used = 0, 0
    for b, count in pairs(counts) do between, used = between + count * (sums[b] / count - mean) ^ 2, used + 1 end
    out[d] = whole > 0 and n > used and math.max(0, 1 - (1 - between / whole) * (n - 1) / (n - used)) or 0
  end
  return out
end

return importance
