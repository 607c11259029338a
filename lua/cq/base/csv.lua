-- csv: tables of text with a head, one row a line; a cell that holds a comma or a quote stands in quotes.
local csv = {}

-- the cells of one line; nil and what is wrong with it
local function cells_of(line)
  local cells, at = {}, 1
  repeat
    local cell, after = line:match('^"([^"]*)"()', at)
    while cell and line:sub(after, after) == '"' do
      local more, beyond = line:match('^([^"]*)"()', after + 1)
      if not more then return nil, "a quote is not closed" end
      cell, after = cell .. '"' .. more, beyond
    end
    if not cell then cell, after = line:match('^([^,"]*)()', at) end
    local follows = line:sub(after, after)
    if follows ~= "" and follows ~= "," then return nil, "a quote within a cell, or one that is not closed" end
    cells[#cells + 1], at = cell, after + 1
  until follows == ""
  return cells
end

---The rows of a text whose head is the given columns, each as a table with these names. Raises a sentence with the
---file's name and the line.
---@param text string
---@param columns string[]
---@param path string         for the sentence
---@return table<string, string>[]
function csv.read(text, columns, path)
  local rows, number = {}, 0
  for line in text:gmatch "[^\n]+" do
    number = number + 1
    local cells, problem = cells_of(line)
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

---Rows as text, below their head.
---@param rows table<string, string>[]
---@param columns string[]
---@return string
function csv.text(rows, columns)
  local lines = { table.concat(columns, ",") }
  for _, row in ipairs(rows) do
    local cells = {}
    for k, name in ipairs(columns) do
      local cell = row[name] or ""
      cells[k] = cell:find '[,"]' and '"' .. cell:gsub('"', '""') .. '"' or cell
    end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

return csv
