-- quantile: between the two nearest of sorted numbers.

---The number that a share of sorted numbers lies below, between the two nearest.
---@param sorted number[]     at least one
---@param share number        from 0 to 1; 0.5 gives the median
---@return number
return function(sorted, share)
  local at = 1 + share * (#sorted - 1)
  local k = math.floor(at)
  if k >= #sorted then return sorted[#sorted] end
  return sorted[k] + (at - k) * (sorted[k + 1] - sorted[k])
end
