-- verification: cases whose answer is known without this program, and the table of what was found.
--
-- A case is a file that returns a table:
--   summary, source    what is compared, and where the exact answer comes from
--   quick              true: short enough for `make test`
--   memory             "2 GiB": what it needs; a machine with less does not run it
--   run(row)           computes, and calls row { ... } for each comparison
-- The fields of a row:
--   quantity, unit     what is compared
--   method             "explicit", "implicit" or "settle"; none where there is no step
--   exact, ours        numbers, one of ours for each resolution; exact may be a list too. NaN: this resolution failed
--   refined, by        resolutions from coarse to fine, and what they count, as { 8, 16 } "cells across"
--   scale              the error is relative to it; to the exact value unless given
--   promise, order     largest error of the finest resolution, and least order of convergence; order is optional
--   falls_short        why the promise is not kept, where that is known. A row without it must keep its promise
--   at_most            the largest error of a row that falls short
--   plateau            why the finest resolution is not nearer than the one before, where it is not
local csv = require "cq.base.csv"
local engine = require "cq.base.engine"
local failure = require "cq.program.failure"
local host = require "cq.host"
local capacity = require "cq.base.capacity"
local memory = require "cq.rollout.memory"
local text = require "cq.base.text"

local verification = {}

---The columns of a table of results.
verification.columns = {
  "case", "method", "quantity", "unit", "exact", "ours", "refined", "error", "order", "promise", "kept", "note",
  "commit", "machine", "date", "command",
}

-- errors as small as this are of rounding, and have no order
local ROUNDING = 1e-11
-- and below this one nobody asks why a finer resolution is not nearer
local SMALL = 1e-6

local case_fields = { summary = "string", source = "string", quick = "boolean", memory = "string", run = "function" }

---The case of a file, with its name. Errors: the file is no case.
---@param path string
---@return table case
function verification.load(path)
  local chunk, problem = loadfile(path)
  if not chunk then error(problem, 0) end
  local case = chunk()
  if type(case) ~= "table" then error(("%s returns %s, and no case"):format(path, text.describe(case)), 0) end
  for name, value in pairs(case) do
    if type(value) ~= case_fields[name] then
      error(("%s: %s is %s; a case has the strings summary and source, quick, memory and the function run"):format(path,
        tostring(name), text.describe(value)), 0)
    end
  end
  for _, name in ipairs { "summary", "source", "run" } do
    if case[name] == nil then error(("%s has no %s"):format(path, name), 0) end
  end
  case.name = path:match "([^/]+)%.lua$"
  return case
end

---The cases of a folder, loaded, by the alphabet; nil where there is no such folder.
---@param folder string
---@return table[]?
function verification.cases(folder)
  if host.kind(folder) ~= "folder" then return nil end
  local names, cases = {}, {}
  for _, entry in ipairs(host.entries(folder) or {}) do names[#names + 1] = entry:match "^[%w_]+%.lua$" end
  table.sort(names)
  for k, name in ipairs(names) do cases[k] = verification.load(folder .. "/" .. name) end
  return cases
end

-- The order of convergence of the last two errors: log of their ratio by log of that of the resolutions (refined). nil
-- with fewer errors, or where one is rounding alone.
local function order_of(errors, refined)
  local n = #errors
  local before, last = errors[n - 1], errors[n]
  if not before or not (math.min(before, last) > ROUNDING) or type(refined[n]) ~= "number" then return nil end
  return math.log(before / last) / math.log(refined[n] / refined[n - 1])
end

---Judges a row of a case: sets error and found_order of the finest resolution, and kept: is the promise kept? Returns
---the row. Errors: one that falls short without at_most.
---@param row table
---@return table
function verification.judge(row)
  local errors = {}
  for k, ours in ipairs(row.ours) do
    local exact = type(row.exact) == "table" and row.exact[k] or row.exact
    errors[k] = math.abs(ours - exact) / (row.scale or math.abs(exact))
  end
  row.error, row.found_order = errors[#errors], order_of(errors, row.refined)
  row.kept = row.error <= row.promise
    and (not row.order or row.found_order ~= nil and row.found_order >= row.order or row.error <= ROUNDING)
  if row.falls_short and not row.at_most then
    error(("%s falls short of its promise; such a row has at_most, the largest error that it may have"):format(
      row.quantity), 0)
  end
  return row
end

---Runs a case and judges its rows. If it fails, or the machine lacks memory, also returns a sentence on that.
---@param case table
---@return table[] rows, string? problem
function verification.run(case)
  local needed = case.memory and memory.bytes(case.memory, case.name .. ": memory") or 0
  local free = tonumber(engine.C.cq_memory_available())
  if needed > free then
    return {}, ("%s needs %s of memory, and this machine has %s free: it was not run"):format(case.name, case.memory,
      capacity.text(free))
  end
  local rows = {}
  local fine, problem = xpcall(case.run, failure.handle,
    function(row) rows[#rows + 1] = verification.judge(row) end)
  if not fine then return rows, ("%s failed: %s"):format(case.name, tostring(problem):match "^[^\n]*") end
  return rows
end

-- ---- as text --------------------------------------------------------------------------------------------------------

-- A number with four digits; "failed" for NaN.
local function short(x) return x == x and ("%.4g"):format(x) or "failed" end

-- A list of numbers as the text of one cell of the table, each by format(value).
local function joined(list, format)
  local out = {}
  for k, value in ipairs(list) do out[k] = type(value) == "number" and format(value) or tostring(value) end
  return table.concat(out, " ")
end

---Whether the finest resolution of a judged row is farther from the exact answer than the one before; errors up to
---SMALL do not count.
---@param row table
---@return boolean
function verification.stalls(row) return (row.found_order or 0) < 0 and row.error > SMALL end

-- The reason that a row gives: row.falls_short, else row.plateau where it stalls; nil without one.
local function note_of(row) return row.falls_short or verification.stalls(row) and row.plateau or nil end

-- The promise of a row as text: the largest error, the least order of convergence if there is one, and the largest
-- error of a row that falls short.
local function promise_of(row)
  return ("%.2g"):format(row.promise) .. (row.order and (", order %g"):format(row.order) or "")
    .. (row.falls_short and (", at most %.2g"):format(row.at_most) or "")
end

---The cells of a judged row, texts by the name of the column, without those that name the run.
---@param case table
---@param row table
---@return table<string, string>
function verification.cells(case, row)
  return {
    case = case.name, method = row.method or "", quantity = row.quantity, unit = row.unit or "",
    exact = type(row.exact) == "table" and joined(row.exact, short) or short(row.exact),
    ours = joined(row.ours, short),
    refined = joined(row.refined, text.number) .. (row.by and " " .. row.by or ""),
    error = row.error == row.error and ("%.2g"):format(row.error) or "failed",
    order = row.found_order and ("%.1f"):format(row.found_order) or "", promise = promise_of(row),
    kept = row.kept and "yes" or "no", note = note_of(row) or "",
  }
end

---A judged row for other programs: numbers as numbers.
---@param case table
---@param row table
---@return table
function verification.object(case, row)
  return {
    case = case.name, method = row.method, quantity = row.quantity, unit = row.unit, exact = row.exact, ours = row.ours,
    refined = row.refined, by = row.by, error = row.error, order = row.found_order, promise = row.promise,
    least_order = row.order, at_most = row.at_most, kept = row.kept, note = note_of(row), source = case.source,
  }
end

---The text of a file of results in which the rows of some cases were replaced by these, and the others stay.
---@param old string?                 text of the file that is there
---@param new table<string, string>[]
---@param path string                 for sentences
---@return string
function verification.merged(old, new, path)
  local by_case, names, ran = {}, {}, {}
  -- Adds a row to those of its case.
  local function add(row)
    if not by_case[row.case] then by_case[row.case], names[#names + 1] = {}, row.case end
    table.insert(by_case[row.case], row)
  end
  for _, row in ipairs(new) do ran[row.case] = true end
  for _, row in ipairs(old and csv.read(old, verification.columns, path) or {}) do
    if not ran[row.case] then add(row) end
  end
  for _, row in ipairs(new) do add(row) end
  table.sort(names)
  local rows = {}
  for _, name in ipairs(names) do
    for _, row in ipairs(by_case[name]) do rows[#rows + 1] = row end
  end
  return csv.text(rows, verification.columns)
end

return verification
