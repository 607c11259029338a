-- tables: copies, sorted names and products of tables.
local tables = {}

---A new table with the fields of several tables; later ones override earlier ones. nil counts as empty.
---@param ... table?
---@return table
function tables.merged(...)
  local out = {}
  for k = 1, select("#", ...) do
    for key, value in pairs((select(k, ...)) or {}) do out[key] = value end
  end
  return out
end

---A sorted list of the keys of a table as texts; empty for nil.
---@param t table?
---@return string[]
function tables.names(t)
  local out = {}
  for key in pairs(t or {}) do out[#out + 1] = tostring(key) end
  table.sort(out)
  return out
end

---The product of a list of numbers; 1 for an empty one.
---@param list number[]
---@return number
function tables.product(list)
  local out = 1
  for _, x in ipairs(list) do out = out * x end
  return out
end

return tables
