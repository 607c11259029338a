-- rows: the rows of a text with a head, as tables by the names of its columns.
local csv = require "cq.base.csv"

---@param text string
---@return table<string, string>[]
return function(text)
  local rows, names = {}, nil
  for line in text:gmatch "[^\n]+" do
    local cells, row = assert(csv.cells(line)), {}
    for k, name in ipairs(names or {}) do row[name] = cells[k] end
    if names then rows[#rows + 1] = row end
    names = names or cells
  end
  return rows
end
