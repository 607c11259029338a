-- summary: a run's options, losses and times from its folder; of a running one, those so far.
local History = require "cq.run.history"
local host = require "cq.host"
local manifests = require "cq.run.manifest"
local read_file = require "cq.base.read_file"

local summary = {}

-- The seconds from a fixed day to a time such as "2026-11-24T23:00:00Z", without the local time zone; nil for another
-- text.
local function seconds_of(date)
  local y, mo, d, h, mi, s = (date or ""):match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z$"
  if not y then return nil end
  -- years that begin in March, so that the leap day is their last
  local years, months = y - (mo < "03" and 1 or 0), (mo + 9) % 12
  local leaps = math.floor(years / 4) - math.floor(years / 100) + math.floor(years / 400)
  return (((365 * years + leaps + math.floor((153 * months + 2) / 5) + d) * 24 + h) * 60 + mi) * 60 + s
end

-- The row of a history with the least loss; nil if no row has a loss that is a number.
local function best_of(rows)
  local best
  for _, row in ipairs(rows) do
    local loss = row.loss
    if loss and loss == loss and (not best or loss < best.loss) then best = row end
  end
  return best
end

---@class cq.run.Summary
---@field folder string
---@field manifest table
---@field rows table<string, number|string>[]   of history.csv
---@field best table?            the row of the least loss
---@field last table?            the last row
---@field status string          "at work" while it goes on
---@field seconds number?        from its start to its end
---@field script string?         its text

---Reads a run's options, losses and times from its folder, and whether it is still at work. Errors: those of
---manifest.read; a history that no run has written.
---@param folder string
---@param what string           for errors
---@return cq.run.Summary
function summary.of(folder, what)
  folder = folder:gsub("(.)/+$", "%1")
  local manifest = manifests.read(folder, what)
  local path = folder .. "/history.csv"
  local rows = host.kind(path) and History.rows(path) or {}
  local first, last = seconds_of(manifest.started), seconds_of(manifest.finished)
  return { folder = folder, manifest = manifest, rows = rows, best = best_of(rows), last = rows[#rows],
    status = manifest.status or "at work", seconds = first and last and last - first or nil,
    script = read_file(folder .. "/script.lua") }
end

return summary
