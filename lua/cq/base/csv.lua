-- csv: tables of text with a head, one row a line; a cell that holds a comma or a quote stands in quotes.
local csv = {}

---The cells of one line, without spaces and quotes around them; nil and a sentence where its quotes are wrong.
---@param line string
---@param separator? string    a comma unless given
---@return string[]? cells, string? problem
function csv.cells(line, separator)
  separator = separator or ","
  local cells, at = {}, 1
  repeat
    at = line:match("^[ ]*()", at)
    local cell, stop
    if line:sub(at, at) == '"' then
      local close = line:match('^"[^"]*"()', at)
      while close and line:sub(close, close) == '"' do close = line:match('^"[^"]*"()', close) end
      stop = close and line:find(separator, close, true)
      if not close or line:sub(close, (stop or #line + 1) - 1):find "%S" then return nil, "a quote without an end" end
      cell = line:sub(at + 1, close - 2):gsub('""', '"')
    else
      stop = line:find(separator, at, true)
      cell = line:sub(at, (stop or #line + 1) - 1):match "^(.-)%s*$"
      if cell:find('"', 1, true) then return nil, "a quote within a cell" end
    end
    cells[#cells + 1], at = cell, (stop or #line) + 1
  until not stop
  return cells
end

---Text as one cell, in quotes where it needs them.
---@param text string
---@return string
function csv.cell(text)
  local needs = text:find '[,;"%c]' or text:find "^%s" or text:find "%s$"
  return needs and '"' .. text:gsub('"', '""') .. '"' or text
end

---The rows of a text whose head is the given columns, each as a table with these names. Errors, with the file's name
---and the line: a head of other names, a row with too few or too many cells.
---@param text string
---@param columns string[]
---@param path string         for the sentence
---@return table<string, string>[]
function csv.read(text, columns, path)
  local rows, number = {}, 0
  for line in text:gmatch "[^\n]+" do
    number = number + 1
    local cells, problem = csv.cells(line)
    if cells and #cells ~= #columns then problem = ("%d cells, and not %d"):format(#cells, #columns) end
    if problem then error(("%s, line %d: %s"):format(path, number, problem), 0) end
    local row = {}
    for k, name in ipairs(columns) do row[name] = cells[k] end
    rows[number] = row
  end
  local head = table.remove(rows, 1) or {}
  for _, name in ipairs(columns) do
    if head[name] ~= name then error(("%s begins with no head of %s"):format(path, table.concat(columns, ",")), 0) end
  end
  return rows
end

---The text of a table of numbers, given by columns, below their heads. The cell of a NaN is empty.
---@param heads string[]               cells
---@param lists number[][]             the numbers of each column; all of one length
---@param format string|string[]       of a number, for string.format; or one for each column
---@return string
function csv.columns(heads, lists, format)
  local lines, cells = { table.concat(heads, ",") }, {}
  for row = 1, #lists[1] do
    for k, list in ipairs(lists) do
      local value = list[row]
      cells[k] = value == value and (type(format) == "table" and format[k] or format):format(value) or ""
    end
    local line = table.concat(cells, ",")
    lines[row + 1] = line == "" and '""' or line        -- readers pass over an empty line
  end
  return table.concat(lines, "\n") .. "\n"
end

---The text of a table, given by rows, below its head.
---@param rows table<string, string>[]
---@param columns string[]
---@return string
function csv.text(rows, columns)
  local lines = { table.concat(columns, ",") }
  for _, row in ipairs(rows) do
    local cells = {}
    for k, name in ipairs(columns) do cells[k] = csv.cell(row[name] or "") end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

return csv
