-- bars: a robustness report as bars: for each change its least and its most kept, and whether a simulation failed. The
-- longest comes first, all draws last.

---@class cq.Robustness.bar
---@field name string
---@field low number           in percent, 100 or less
---@field high number          in percent, 100 or more
---@field failed boolean       did a simulation fail?
---@field measured boolean     did one not fail? Else low and high are 100

---The bars of a report, for the page of cqlua report.
---@param report cq.Robustness
---@return cq.Robustness.bar[]
return function(report)
  local out, by_name = {}, {}
  -- Widens the bar of a change by the share of the gain that one row keeps; nil: its simulation failed.
  local function take(name, kept)
    local bar = by_name[name]
    if not bar then
      bar = { name = name, low = 100, high = 100, failed = false, measured = false }
      out[#out + 1], by_name[name] = bar, bar
    end
    if kept then
      bar.measured = true
      bar.low, bar.high = math.min(bar.low, 100 * kept), math.max(bar.high, 100 * kept)
    else
      bar.failed = true
    end
  end
  for _, row in ipairs(report.rows) do take(row.name, row.kept) end
  table.sort(out, function(a, b)
    if a.high - a.low ~= b.high - b.low then return a.high - a.low > b.high - b.low end
    return a.name < b.name
  end)
  for _, draw in ipairs(report.draws) do take("together", draw.kept) end
  return out
end
