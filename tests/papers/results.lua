-- results: the README's table of papers against ours, made from tests/papers/results.csv.
--
--   make results       puts the table into README.md, between the two comments that mark its place
--
-- The table has the rows of results.csv that hold something to compare with. Where several rows are of one experiment,
-- quantity and number of particles, it has the last of them, at the place of the first. The rows of an experiment stand
-- together. Minutes are those of the whole command, however many runs it makes; "3 each" are those of one run.
local csv = require "cq.base.csv"

local results = { csv = "tests/papers/results.csv", page = "README.md" }

local COLUMNS = { "experiment", "quantity", "paper", "ours", "runs", "particles", "minutes", "machine", "date",
  "command" }
local SHOWN = { "experiment", "quantity", "paper", "ours", "runs", "particles", "minutes", "command" }
local HEADS = { paper = "paper, theory or measurement" }
local BEGINS, ENDS = "<!-- results: made from tests/papers/results.csv by `make results` -->", "<!-- end of results -->"

---The rows of a CSV text, as tables with the names of its head.
---@param text string
---@return table<string, string>[]
function results.rows(text) return csv.read(text, COLUMNS, results.csv) end

---The rows that the table shows.
---@param rows table<string, string>[]
---@return table<string, string>[]
function results.chosen(rows)
  local experiments, of, place = {}, {}, {}
  for _, row in ipairs(rows) do
    if row.paper ~= "" then
      local name = row.experiment
      if not of[name] then
        experiments[#experiments + 1], of[name] = name, {}
      end
      local key = table.concat({ name, row.quantity, row.particles }, "\n")
      place[key] = place[key] or #of[name] + 1
      of[name][place[key]] = row
    end
  end
  local chosen = {}
  for _, name in ipairs(experiments) do
    for _, row in ipairs(of[name]) do chosen[#chosen + 1] = row end
  end
  return chosen
end

local function table_row(cells)
  for k, cell in ipairs(cells) do cells[k] = cell:gsub("|", "\\|") end
  return "| " .. table.concat(cells, " | ") .. " |"
end

---The table in Markdown, with the comments that mark its place.
---@param rows table<string, string>[]
---@return string
function results.block(rows)
  local heads, rules = {}, {}
  for k, name in ipairs(SHOWN) do heads[k], rules[k] = HEADS[name] or name, "---" end
  local lines = { BEGINS, table_row(heads), "|" .. table.concat(rules, "|") .. "|" }
  for _, row in ipairs(results.chosen(rows)) do
    local cells = {}
    for k, name in ipairs(SHOWN) do cells[k] = name == "command" and "`" .. row[name] .. "`" or row[name] end
    lines[#lines + 1] = table_row(cells)
  end
  lines[#lines + 1] = ENDS
  return table.concat(lines, "\n")
end

---A page with the table of the rows between its two marks.
---@param page string
---@param rows table<string, string>[]
---@return string
function results.into(page, rows)
  local first, after = page:find(BEGINS, 1, true)
  local last, stop = page:find(ENDS, after or 1, true)
  if not first or not last then
    error(("%s has no place for the table, from %s to %s"):format(results.page, BEGINS, ENDS), 0)
  end
  return page:sub(1, first - 1) .. results.block(rows) .. page:sub(stop + 1)
end

results.read = require("tests.source").read

---Writes the README anew.
function results.write()
  local page = results.into(results.read(results.page), results.rows(results.read(results.csv)))
  local file = assert(io.open(results.page, "wb"))
  file:write(page)
  file:close()
  print(("wrote the table of %s from %s"):format(results.page, results.csv))
end

return results
