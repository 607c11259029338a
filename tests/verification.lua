-- verification: docs/verification.md, made from tests/verify/results.csv and the heads of the cases.
--
--   make verify        runs all cases, keeps their rows in results.csv and writes the page
local csv = require "cq.base.csv"
local gaits = require "tests.pages.gaits"
local host = require "cq.host"
local marks = require "tests.pages.marks"
local source = require "tests.source"
local verify = require "cq.measure.verification"

local verification = { csv = "tests/verify/results.csv", page = "docs/verification.md", folder = "tests/verify" }

local HEAD = [[
# Verification

Each case has an answer that is known without this program: a closed form, a manufactured solution, finite elements of
another program, or data of an experiment. `cqlua verify` runs them in the source tree; `cqlua verify NAME` runs one.
`make verify` runs all, and writes this page from `tests/verify/results.csv`.

- *exact* is the known answer, *ours* what was found at each resolution, from coarse to fine.
- *error* is that of the finest resolution, relative to the exact answer.
- *order* is the order of convergence between the two finest: 2 means that half the cell size leaves a quarter of the
  error.
- *promised* is the largest error, and for some rows the least order, that the tests hold the case to. A row that does
  not keep its promise stays here, with the reason below its table and the largest error that it may have (*at most*).
]]

local ROBOTS = [[
## Trained robots

Examples that were trained from the start by both formulations, seed 0: the way in body lengths or the gain of the loss,
what is left of it where the same parameters are evaluated with an eighth of the step, and the processor time of a loss
and its gradient on one thread. Updated steps have the viscosity of the same row where they were trained with it, and
otherwise the material of the example. What else was measured of them is in a
[table of their own](../tests/bench/gaits.md).

%s

Identification has no gait to keep: by updated and by total Lagrangian steps `identify` finds its constants within 0.01
%% of the truth, `cable_finger` within 0.24 and 0.06 %%, and `throw` arrives 1.7e-6 and 1.7e-4 from its target.
`custom` folds onto itself in its first iteration, with collisions too, and topology optimization finds a walker of 0.13
m and not 0.34, so that neither has a row. Not trained by total Lagrangian steps were `balls` and `gripper`, whose
bodies meet, `finger_targets`, `walker_ppo`, and the other robots of topology optimization.

Run: `cqlua tests/bench/gaits.lua --example all`, and `--times`.
]]

local SHOWN = { "method", "quantity", "exact", "ours", "refined", "error", "order", "promise", "kept" }
local HEADS = { refined = "at", promise = "promised" }

local function line(cells) return "| " .. table.concat(cells, " | ") .. " |" end

local function table_of(rows)
  local heads, rules = {}, {}
  for k, name in ipairs(SHOWN) do heads[k], rules[k] = HEADS[name] or name, "---" end
  local lines = { line(heads), "|" .. table.concat(rules, "|") .. "|" }
  for _, row in ipairs(rows) do
    local cells = {}
    for k, name in ipairs(SHOWN) do cells[k] = row[name]:gsub("|", "\\|") end
    cells[2] = cells[2] .. (row.unit ~= "" and " [" .. row.unit .. "]" or "")
    lines[#lines + 1] = line(cells)
  end
  return table.concat(lines, "\n")
end

-- of one row, and of several
local VERDICT = {
  yes = { "has an error that does not shrink on finer grids", "have errors that do not shrink on finer grids" },
  no = { "does not keep its promise", "do not keep their promises" },
}

-- the notes of rows; rows with the same one have it together
local function notes_of(rows)
  local groups, by_note, notes = {}, {}, {}
  for _, row in ipairs(rows) do
    if row.note ~= "" then
      local key = row.kept .. row.note
      if not by_note[key] then
        by_note[key] = { kept = row.kept, note = row.note }
        groups[#groups + 1] = by_note[key]
      end
      table.insert(by_note[key], (row.method ~= "" and row.method .. ", " or "") .. "*" .. row.quantity .. "*")
    end
  end
  for k, group in ipairs(groups) do
    local verdict = VERDICT[group.kept][#group > 1 and 2 or 1]
    notes[k] = marks.wrapped(("%s %s: %s."):format(table.concat(group, "; "), verdict, group.note), "- ", "  ")
  end
  return notes
end

local function section(case, rows)
  local summary = case.summary:gsub("^%l", string.upper) .. "."
  local parts = { "## " .. case.name, marks.wrapped(summary, "", ""), table_of(rows) }
  local notes = notes_of(rows)
  if #notes > 0 then parts[#parts + 1] = table.concat(notes, "\n") end
  local at = rows[1]
  local commit = at.commit:gsub("%+$", " and changes")
  parts[#parts + 1] = marks.wrapped(("Exact: %s. Run: `%s`, %s, commit %s, %s."):format(case.source, at.command,
    at.date, commit, at.machine), "", "")
  return table.concat(parts, "\n\n")
end

---The rows of results.csv, by case.
---@return table<string, table<string, string>[]>
function verification.rows()
  local by_case = {}
  for _, row in ipairs(csv.read(source.read(verification.csv), verify.columns, verification.csv)) do
    by_case[row.case] = by_case[row.case] or {}
    table.insert(by_case[row.case], row)
  end
  return by_case
end

---The page as text.
---@return string
function verification.text()
  local parts, by_case, count, kept, away = { HEAD }, verification.rows(), 0, 0, 0
  for _, case in ipairs(verify.cases(host.root .. "/" .. verification.folder)) do
    local rows = by_case[case.name] or {}
    for _, row in ipairs(rows) do
      count, kept = count + 1, kept + (row.kept == "yes" and 1 or 0)
      away = away + ((tonumber(row.order) or 0) < 0 and (tonumber(row.error) or 1) > 1e-6 and 1 or 0)
    end
    if #rows > 0 then parts[#parts + 1] = section(case, rows) .. "\n" end
  end
  table.insert(parts, 2, ("%d of %d rows keep their promise. In %d rows the finest resolution is not nearer to the exact\n"
    .. "answer than the one before it (an order below 0).\n"):format(kept, count, away))
  parts[#parts + 1] = ROBOTS:format(gaits.side_by_side())
  return table.concat(parts, "\n")
end

---Writes the page.
function verification.write()
  local file = assert(io.open(verification.page, "wb"))
  file:write(verification.text())
  file:close()
  print(("wrote %s from %s"):format(verification.page, verification.csv))
end

return verification
