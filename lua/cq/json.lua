-- json: writes values as JSON. Keys are sorted, so that equal values give equal text.
local json = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

local function quote(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

-- the shortest text that reads back as the same number; JSON has no nan and no infinity
local function number(value)
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(value)
    if tonumber(text) == value then return text end
  end
end

---@param value any          nil, boolean, number, string, list or table with string keys; an empty table is {}
---@param first? string[]    keys that come before the sorted others, at the top level
---@return string            one line
function json.encode(value, first)
  local kind = type(value)
  if kind == "nil" then return "null" end
  if kind == "boolean" then return tostring(value) end
  if kind == "number" then return number(value) end
  if kind == "string" then return quote(value) end
  if kind ~= "table" then error(("json: a %s cannot be written"):format(kind), 2) end
  local parts = {}
  if #value > 0 then
    for i, entry in ipairs(value) do parts[i] = json.encode(entry) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  local keys, rank = {}, {}
  for i, key in ipairs(first or {}) do rank[key] = i end
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    local at, bt = rank[a] or math.huge, rank[b] or math.huge
    if at ~= bt then return at < bt end
    return a < b
  end)
  for i, key in ipairs(keys) do parts[i] = quote(key) .. ": " .. json.encode(value[key]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

return json
