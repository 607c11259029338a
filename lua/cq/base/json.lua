-- json: writes values as JSON. Keys are sorted, so that equal values give equal text.
local text = require "cq.base.text"

local json = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

local function quote(word)
  return '"' .. word:gsub('[%c"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

-- JSON has no nan and no infinity
local function number(value)
  local exact = text.exact(value)
  return exact:find "[ni]" and "null" or exact
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
