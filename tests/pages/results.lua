-- results: tests/papers/results.csv as tables. All of its rows are for docs/results.md, those that have a headline for
-- the README. conditions: of a row that compares with a paper what its conditions are here and there, as "step: 0.25 ms
-- | 0.1 ms; runs: 1 | 10"; empty where it compares with none. kept_dt, kept_grid and kept_5pct are what cqlua robust
-- measured of the artefact, or what a command of tests/papers measures itself, in percent of the gain: with 2 and 4
-- times the substeps, on a grid of some 0.8 times the cells, and the least of E, density, friction, strength and
-- gravity by 5 % and noise of 5 %. Minutes are those of the whole command, however many runs it makes; "3 each" are
-- those of one run. An artefact is one of zoo/, which cqlua replay runs again, or none.
local csv = require "cq.base.csv"
local marks = require "tests.pages.marks"
local source = require "tests.source"

local results = { csv = "tests/papers/results.csv" }

local COLUMNS = { "experiment", "quantity", "unit", "paper", "ours", "median", "best", "worst", "runs", "particles",
  "minutes", "machine", "date", "command", "headline", "note", "artefact", "conditions", "kept_dt", "kept_grid",
  "kept_5pct" }

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

---The conditions of a row, here and in the paper.
---@param row table<string, string>
---@return string ours
---@return string paper
function results.conditions(row)
  local own, paper = {}, {}
  for entry in (row.conditions .. "; "):gmatch "(.-); " do
    local name, here, there = entry:match "^(.-): (.+) | (.+)$"
    if name then
      own[#own + 1], paper[#paper + 1] = ("%s: %s"):format(name, here), ("%s: %s"):format(name, there)
    elseif entry ~= "" then
      error(('%s: conditions must be "name: ours | of the paper", got %q'):format(row.experiment, entry), 0)
    end
  end
  return table.concat(own, "; "), table.concat(paper, "; ")
end

-- "95, 90; 80; 99": with 2 and 4 times the substeps; on a finer grid; at 5 % of anything
local function kept(row)
  if row.kept_dt .. row.kept_grid .. row.kept_5pct == "" then return "" end
  local function known(cell) return cell ~= "" and cell or "-" end
  return ("%s; %s; %s"):format(known(row.kept_dt), known(row.kept_grid), known(row.kept_5pct))
end

-- "`command`, 100 particles, 1 min, zoo/walker. Here step: 0.25 ms; in the paper step: 0.1 ms. steps | half"
local function told(row)
  local here, there = results.conditions(row)
  local each = row.minutes:match " each$" or ""
  local minutes = row.minutes:sub(1, #row.minutes - #each)
  local parts = { ("`%s`, %s particles, %s min%s"):format(row.command, row.particles, minutes, each) }
  if row.artefact ~= "" and row.artefact ~= "none" then parts[1] = parts[1] .. ", zoo/" .. row.artefact end
  if here ~= "" then parts[#parts + 1] = ("Here %s. In the paper %s"):format(here, there) end
  if row.note ~= "" then parts[#parts + 1] = row.note:sub(1, 1):upper() .. row.note:sub(2) end
  return table.concat(parts, ". ") .. "."
end

---Every row, by experiments: a table of what it gave, and under it for each line the command, the conditions that
---differ, and notes.
---@param rows table<string, string>[]
---@return string
function results.all(rows)
  local groups, lines = {}, {}
  for _, row in ipairs(rows) do
    local name = row.experiment:match "^[%w_]+"
    local group = groups[name]
    if not group then
      group = { name = name }
      groups[name], groups[#groups + 1] = group, group
    end
    group[#group + 1] = row
  end
  for _, group in ipairs(groups) do
    local cells, notes = {}, {}
    for k, row in ipairs(group) do
      local quantity = with_unit(row)
      if row.experiment ~= group.name then quantity = row.experiment .. ": " .. quantity end
      cells[k] = { tostring(k), quantity, row.paper, ours(row), kept(row) }
      notes[k] = marks.wrapped(told(row), k .. ".", (" "):rep(#tostring(k) + 2))
    end
    lines[#lines + 1] = ("### %s\n\n%s\n\n%s"):format(group.name, marks.table({ "", "quantity",
      "paper, theory or measurement", "ours", "kept [%]" }, cells), table.concat(notes, "\n"))
  end
  return table.concat(lines, "\n\n")
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
