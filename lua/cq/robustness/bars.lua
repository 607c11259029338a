-- bars: a robustness report as bars: for each change its least and its most kept, and whether a simulation failed. The
-- longest comes first, all draws last.

---@class cq.Robustness.bar
---@field name string
---@field low? number          the least that is kept, in percent; nil: all simulations failed
---@field high? number         the most
---@field median? number       of the draws
---@field failed boolean       did a simulation fail?

---The bars of a report, for the page of cqlua report.
---@param report cq.Robustness
---@return cq.Robustness.bar[]
return function(report)
  local out, by_name = {}, {}
  -- Widens the bar of a change by the share of the gain that one row keeps; nil: its simulation failed.
  local function take(name, kept)
    local bar = by_name[name]
    if not bar then
      bar = { name = name, failed = false }
      out[#out + 1], by_name[name] = bar, bar
    end
    if kept then
      bar.low, bar.high = math.min(bar.low or math.huge, 100 * kept), math.max(bar.high or -math.huge, 100 * kept)
    else
      bar.failed = true
    end
  end
  -- The length of a bar, which begins at 100.
  local function length(bar) return bar.low and math.max(bar.high, 100) - math.min(bar.low, 100) or 0 end
  for _, row in ipairs(report.rows) do take(row.name, row.kept) end
  table.sort(out, function(a, b)
    if length(a) ~= length(b) then return length(a) > length(b) end
    return a.name < b.name
  end)
  for _, draw in ipairs(report.draws) do take("together", draw.kept) end
  if by_name.together then by_name.together.median = report.median and 100 * report.median end
  return out
end
