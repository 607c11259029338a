-- compare: prints the settings in which runs differ, and their results.
--   cqlua compare runs/walk runs/slow
--   cqlua compare runs/walk runs/slow --report both.html      the same as a page, with bodies and losses
local is = require "cq.base.schema"
local json = require "cq.base.json"
local scripts = require "cq.base.script"
local summary = require "cq.run.summary"
local text = require "cq.base.text"
local tables = require "cq.base.tables"

-- A number as text with six digits.
local function number(value) return ("%.6g"):format(value) end

-- The run that this one was forked from, as text; nil where there is none.
local function parent_of(run)
  local parent = run.manifest.parent
  return parent and ("%s, iteration %d"):format(parent.folder, parent.iteration)
end

-- The mean time of an iteration [s]; nil where the history has none.
local function seconds_of(run)
  local sum, count = 0, 0
  for _, row in ipairs(run.rows) do
    if type(row.seconds) == "number" then sum, count = sum + row.seconds, count + 1 end
  end
  return count > 0 and sum / count or nil
end

-- what is told of every run: name, value, and how the table shows it
local figures = {
  { "status", function(run) return run.status end },
  { "fork of", parent_of, differs = true },
  { "iterations", function(run) return run.last and run.last.iteration or 0 end },
  { "final loss", function(run) return run.last and run.last.loss end, number },
  { "best loss", function(run) return run.best and run.best.loss end, number },
  { "of iteration", function(run) return run.best and run.best.iteration end, number },
  { "time", function(run) return run.seconds end, require("cq.run.progress").duration },
  { "seconds an iteration", seconds_of, function(value) return ("%.3g"):format(value) end },
}

-- A value as text; - where there is none. show?: makes the text.
local function word(value, show)
  if value == nil then return "-" end
  if show then return show(value) end
  return type(value) == "table" and json.encode(value) or tostring(value)
end

local of_folder = { out = true, resume = true, overwrite = true, quiet = true }

-- A row of the table: { name, texts of each run, values of each run }. of(run): the value. show?: as in `word`.
local function row_of(name, runs, of, show)
  local texts, values = {}, {}
  for k, run in ipairs(runs) do
    values[k] = of(run)
    texts[k] = word(values[k], show)
  end
  return { name, texts, values }
end

-- A list of rows, the settings in which runs differ.
local function settings(runs)
  local rows, names = {}, {}
  -- Adds a row if the runs' values, of(run), differ.
  local function add(name, of)
    local row = row_of(name, runs, of)
    for k = 2, #runs do
      if row[2][k] ~= row[2][1] then
        rows[#rows + 1] = row
        return
      end
    end
  end
  for _, run in ipairs(runs) do
    for name in pairs(run.manifest.options or {}) do names["--" .. name] = not of_folder[name] or nil end
    for name in pairs(run.manifest.parent and run.manifest.parent.set or {}) do names[name] = true end
  end
  local sorted = tables.names(names)
  for _, name in ipairs(sorted) do
    add(name, function(run)
      if name:sub(1, 2) == "--" then return (run.manifest.options or {})[name:sub(3)] end
      return run.manifest.parent and run.manifest.parent.set[name]
    end)
  end
  for _, name in ipairs { "script", "version", "device", "lua", "system" } do
    add(name, function(run) return run.manifest[name] end)
  end
  add("world", function(run) return run.manifest.notes and run.manifest.notes.world end)
  return rows
end

-- Prints rows, { name, texts of each run }, in columns below the folders of the runs.
local function print_table(runs, rows)
  local first, widths = 0, {}
  for _, row in ipairs(rows) do first = math.max(first, #row[1]) end
  for k, run in ipairs(runs) do
    widths[k] = #run.folder
    for _, row in ipairs(rows) do widths[k] = math.max(widths[k], math.min(48, #row[2][k])) end
  end
  -- Prints a name and a value for each run, in columns.
  local function line(name, values)
    local cells = { name .. (" "):rep(first - #name) }
    for k, value in ipairs(values) do cells[k + 1] = value .. (" "):rep(widths[k] - #value) end
    print((table.concat(cells, "  "):gsub("%s+$", "")))
  end
  local heads = {}
  for k, run in ipairs(runs) do heads[k] = run.folder end
  line("", heads)
  for _, row in ipairs(rows) do line(row[1], row[2]) end
end

-- The number of times that each line of a text occurs, by the line; nil counts as empty.
local function counted(bytes)
  local out = {}
  for line in ((bytes or "") .. "\n"):gmatch "([^\n]*)\n" do out[line] = (out[line] or 0) + 1 end
  return out
end

-- A list of the lines of a text that another text lacks. As "LINE: TEXT", blank ones left out; a line that occurs twice
-- needs two.
local function lacking(bytes, other)
  local counts, out, at = counted(other), {}, 0
  for line in (bytes .. "\n"):gmatch "([^\n]*)\n" do
    at = at + 1
    if (counts[line] or 0) > 0 then
      counts[line] = counts[line] - 1
    elseif line:find "%S" then
      out[#out + 1] = ("%d: %s"):format(at, line:match "^%s*(.-)%s*$")
    end
  end
  return out
end

local MOST = 20              -- lines of a script that are shown
local BODIES = 4             -- of the first runs, on a page

-- Calls each(sign, line) for lines of one run's script that another run's script lacks: sign "-" for the first run's
-- lines, "+" for the second's. At most MOST lines of each, then a line with the number of the rest. Nothing if a run
-- has no script.
local function each_change(one, other, each)
  if not one.script or not other.script then return end
  local changes = { { "-", lacking(one.script, other.script) }, { "+", lacking(other.script, one.script) } }
  for _, change in ipairs(changes) do
    local sign, list = change[1], change[2]
    for k = 1, math.min(#list, MOST) do each(sign, list[k]) end
    if #list > MOST then each(sign, ("and %s more"):format(text.count(#list - MOST, "line"))) end
  end
end

-- Prints the lines of two runs' scripts that differ, with their signs.
local function print_scripts(one, other)
  if one.script ~= other.script then
    print(("\nlines of the script in %s (-) and in %s (+)"):format(one.folder, other.folder))
  end
  each_change(one, other, function(sign, line) print(("%s %s"):format(sign, line)) end)
end

-- Writes an HTML page with the table of settings, the differences of scripts from the first, bodies and losses.
local function write_report(path, runs, rows)
  local pages, folders = require "cq.report.page", require "cq.report.folder"
  pages.check(path, "compare --report")
  pages.require_writable(path, "compare --report")
  local page, facts, paths = pages.new(path:match "([^/]+)%.html$"), { heads = { "" }, rows = {} }, {}
  for k, run in ipairs(runs) do
    paths[k] = run.folder
    each_change(runs[1], run, function(sign, line)
      local cells = { "line of the script" }
      for i = 1, #runs do cells[i + 1] = "" end
      cells[(sign == "-" and 1 or k) + 1] = line
      facts.rows[#facts.rows + 1] = cells
    end)
  end
  for k, row in ipairs(rows) do table.insert(facts.rows, k, { row[1], unpack(row[2]) }) end
  local def = { frames = 120, colour = { "signal" }, particles = "auto", takes_newer = true }
  folders.add(page, paths, def, BODIES)
  for k, run in ipairs(page.data.runs) do facts.heads[k + 1] = run.name end
  page.data.facts = facts
  page:write(path, "compare --report")
end

return {
  summary = "what differs between runs, and what came of each",
  arguments = "RUN RUN ...",
  options = {
    json = is.boolean { default = false, help = "one JSON object for each run, without what it lacks; time in seconds" },
    report = is.string { optional = true, help = "FILE.html: the table as a page, with bodies and losses" },
  },
  -- The subcommand: compares the runs of the folders `words`.
  run = function(options, words)
    if #words < 2 then scripts.misuse("compare takes the folders of two runs at least, got %d", #words) end
    local runs, rows = {}, {}
    for k, folder in ipairs(words) do runs[k] = summary.of(folder, "cqlua compare") end
    for _, figure in ipairs(figures) do
      local row = row_of(figure[1], runs, figure[2], figure[3])
      if not figure.differs or next(row[3]) then rows[#rows + 1] = row end
    end
    for _, row in ipairs(settings(runs)) do rows[#rows + 1] = row end
    if options.report then write_report(options.report, runs, rows) end
    if not options.json then
      print_table(runs, rows)
      for k = 2, #runs do print_scripts(runs[1], runs[k]) end
      return
    end
    for k, run in ipairs(runs) do
      local out = { folder = run.folder }
      for _, row in ipairs(rows) do out[row[1]] = row[3][k] end
      print(json.encode(out, { "folder" }))
    end
  end,
}
