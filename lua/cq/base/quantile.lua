-- quantile: quantiles and medians of lists of numbers, interpolated between neighbours.
local quantile = {}

---The quantile of sorted numbers: linear between the two numbers nearest to it.
---@param sorted number[]     at least one, ascending
---@param share number        from 0 to 1; 0.5 gives the median
---@return number
function quantile.of(sorted, share)
  local at = 1 + share * (#sorted - 1)
  local k = math.floor(at)
  if at == k or sorted[k] == sorted[k + 1] then return sorted[k] end          -- also infinite ones
  return sorted[k] + (at - k) * (sorted[k + 1] - sorted[k])
end

---The median of a list, which is not changed; the mean of the middle two of an even number.
---@param values number[]     at least one
---@return number
function quantile.median(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  return quantile.of(sorted, 0.5)
end

return quantile
