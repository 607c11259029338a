-- results: tests/papers/results.csv as tables. All of its rows are for docs/papers.md, those that have a headline for
-- the README. Minutes are those of the whole command, however many runs it makes; "3 each" are those of one run. An
-- artefact is one of zoo/, which cqlua replay runs again, or none.
local csv = require "cq.base.csv"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local results = { csv = "tests/papers/results.csv" }

local COLUMNS = { "experiment", "quantity", "unit", "paper", "ours", "median", "best", "worst", "runs", "particles",
  "minutes", "machine", "date", "command", "headline", "note", "artefact" }

---The rows of a CSV text, as tables with the names of its head.
---@param text string
---@return table<string, string>[]
function results.rows(text) return csv.read(text, COLUMNS, results.csv) end

---The rows of the file.
---@return table<string, string>[]
function results.read() return results.rows(source.read(results.csv)) end

local function with_unit(row)
  local unit = row.unit
  return (unit == "" or row.quantity:find(unit, 1, true)) and row.quantity or ("%s [%s]"):format(row.quantity, unit)
end

-- "median -0.35, -0.41 to -0.32 in 8 runs", or what one run gave
local function ours(row)
  local parts = {}
  if row.ours ~= "" then parts[#parts + 1] = row.ours end
  if row.median ~= "" then parts[#parts + 1] = "median " .. row.median end
  if row.best ~= "" then parts[#parts + 1] = ("%s to %s in %s runs"):format(row.best, row.worst, row.runs) end
  return table.concat(parts, ", ")
end

---Every row with its command.
---@param rows table<string, string>[]
---@return string
function results.all(rows)
  local out = {}
  for k, row in ipairs(rows) do
    out[k] = { row.experiment, with_unit(row), row.paper, ours(row), row.particles, row.minutes,
      "`" .. row.command .. "`", row.artefact, row.note }
  end
  return marks.table({ "experiment", "quantity", "paper, theory or measurement", "ours", "particles", "minutes",
    "command", "artefact", "note" }, out)
end

---The rows that have a headline.
---@param rows table<string, string>[]
---@return string
function results.headlines(rows)
  local out = {}
  for _, row in ipairs(rows) do
    if row.headline ~= "" then out[#out + 1] = { row.headline, row.paper, ours(row) } end
  end
  return marks.table({ "experiment", "paper", "cqlua" }, out)
end

return results
