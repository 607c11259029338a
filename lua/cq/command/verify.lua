-- verify: cases whose answer is known without this program.   cqlua verify [NAME...] [--quick] [--json] [--csv FILE]
--
-- The cases are the files of tests/verify/ in the source tree. Each prints the exact value, ours from coarse to fine,
-- the error of the finest, the order of convergence, and whether the error is within what is promised. A case that
-- falls short says why. --csv FILE keeps the table: rows of the cases that ran replace those that the file has of them.
-- The exit code is 1 if a case could not run or failed, if a promise was not kept without a reason beside it, if a row
-- with a reason is farther off than the case says, if a reason stands beside a promise that is kept, or if a row whose
-- finest resolution is not nearer than the one before does not say why.
local atomic_file = require "cq.base.atomic_file"
local engine = require "cq.base.engine"
local first_line = require "cq.base.first_line"
local host = require "cq.host"
local json = require "cq.base.json"
local machine = require "cq.measure.machine"
local message = require "cq.base.message"
local script = require "cq.base.script"
local schema = require "cq.base.schema"
local text = require "cq.base.text"
local verification = require "cq.measure.verification"
local read_file = require "cq.base.read_file"

local is = schema
local INTERRUPTED = 130

-- The verification cases of a folder. Ends the program, as after wrong use, where there are none.
local function load_cases(folder)
  local cases = verification.cases(folder)
  if not cases then
    script.misuse("verify finds no cases: there is no folder %s; they come with the source tree, where tests/verify/ has them",
      folder)
  end
  if #cases == 0 then script.misuse("verify finds no cases: %s has no file of Lua", folder) end
  return cases
end

-- A list of the cases that the command line names; else all, or with --quick the quick ones. Ends the program, as after
-- wrong use, for an unknown name.
local function chosen(all, words, quick)
  local names, by_name, list = {}, {}, {}
  for k, case in ipairs(all) do names[k], by_name[case.name] = case.name, case end
  for _, word in ipairs(words) do
    if not by_name[word] then
      script.misuse("verify has no case %s%s; its cases are %s", word, text.suggestion(word, names),
        table.concat(names, ", "))
    end
    list[#list + 1] = by_name[word]
  end
  if #words > 0 then return list end
  for _, case in ipairs(all) do
    if not quick or case.quick then list[#list + 1] = case end
  end
  return list
end

-- The present commit of the source tree that the program runs from, as text, with + where its sources are changed;
-- "unknown" outside of git.
local function commit()
  local at = "git -C '" .. host.root:gsub("'", "'\\''") .. "' "
  local name = first_line(at .. "rev-parse --short=10 HEAD")
  if not name then return "unknown" end
  return name .. (first_line(at .. "status --porcelain -- engine lua scenes ':!tests'") and "+" or "")
end

-- The text of the results file, nil where it is new or empty. Ends the program, as after wrong use, if it cannot be
-- written or is no such file, before any case runs.
local function open_table(path)
  local old = read_file(path)
  local problem = atomic_file.problem(path)
  if problem then script.misuse("--csv cannot write %s: %s", path, problem) end
  if old == "" then old = nil end
  local fine, why = pcall(verification.merged, old, {}, path)
  if not fine then script.misuse("--csv: %s", why) end
  return old
end

-- Writes the results file: the rows of other cases in its old text, and new rows of these.
local function write_table(path, old, rows)
  atomic_file.write(path, verification.merged(old, rows, path), { what = "--csv" })
end

local FORMAT = "  %-16s %-38s %10s  %-32s %-28s %9s %5s  %-17s %s"

-- Prints the cells of a judged row as a line of the table, and its note below.
local function print_row(cells)
  print((FORMAT:format(cells.method, cells.quantity .. (cells.unit ~= "" and " [" .. cells.unit .. "]" or ""),
    cells.exact, cells.ours, cells.refined, cells.error, cells.order, cells.promise,
    cells.kept == "yes" and "kept" or "NOT KEPT"):gsub("%s+$", "")))
  if cells.note ~= "" then print(("  %16s because %s"):format("", cells.note)) end
end

-- A sentence why a judged row is unexpected (a promise broken, or a reason that is out of date); nil if it is not.
local function surprise(case, row)
  local name = ("%s, %s%s"):format(case.name, row.method and row.method .. ", " or "", row.quantity)
  if not row.kept and not row.falls_short then
    return ("%s: an error of %.3g is beyond what is promised, %.3g"):format(name, row.error, row.promise)
  end
  if row.falls_short and not (row.error <= row.at_most) then
    return ("%s: an error of %.3g is beyond %.3g, the most that a row that falls short may have"):format(name, row.error,
      row.at_most)
  end
  if verification.stalls(row) and not row.falls_short and not row.plateau then
    return ("%s: the finest resolution is not nearer than the one before (order %.2g); such a row says why, in plateau"):format(
      name, row.found_order)
  end
  if row.kept and row.falls_short then
    return ("%s keeps its promise: its reason for falling short must go"):format(name)
  end
end

-- Prints one row of results, as a line of the table or as JSON. Sets commit, machine and date in object for that.
local function tell(options, cells, object)
  if options.json then
    object.commit, object.machine, object.date = cells.commit, cells.machine, cells.date
    print(json.encode(object, verification.columns))
  else
    print_row(cells)
  end
  io.flush()
end

return {
  summary = "cases of known answer: exact, ours, error, order of convergence",
  arguments = "[NAME...]",
  options = {
    json = is.boolean { default = false, help = "one JSON object a line" },
    quick = is.boolean { default = false, help = "the short cases alone, those of `make test`" },
    csv = is.string { optional = true, help = "file that keeps the table" },
    cases = is.string { optional = true, help = "folder of other cases than tests/verify/" },
  },
  -- The subcommand: runs the cases of `words` and prints their rows. Returns the exit code.
  run = function(options, words)
    local list = chosen(load_cases(options.cases or host.root .. "/tests/verify"), words, options.quick)
    local old = options.csv and open_table(options.csv)
    local facts, at = machine.facts(), commit()
    local on = ("%s, %s"):format(text.count(facts.cores, "core"), facts.processor)
    if not options.json then
      print(("%s, %s, %s\n"):format(on, at, facts.date))
      print(FORMAT:format("method", "quantity", "exact", "ours", "at", "error", "order", "promised", ""))
    end
    local rows, failed = {}, false
    for _, case in ipairs(list) do
      if engine.C.cq_interrupted() ~= 0 then return INTERRUPTED end
      if not options.json then print(("%s: %s"):format(case.name, case.summary)) end
      local found, problem = verification.run(case)
      for _, row in ipairs(found) do
        local cells = verification.cells(case, row)
        cells.commit, cells.machine, cells.date, cells.command = at, on, facts.date, "cqlua verify " .. case.name
        tell(options, cells, verification.object(case, row))
        local wrong = surprise(case, row)
        if wrong then message.warn("%s", wrong) end
        failed, rows[#rows + 1] = failed or wrong ~= nil, cells
      end
      if problem and engine.C.cq_interrupted() ~= 0 then return INTERRUPTED end
      if problem then message.fault("verify: %s", problem) end
      failed = failed or problem ~= nil
      if options.csv and not problem then write_table(options.csv, old, rows) end
    end
    return failed and 1 or 0
  end,
}
