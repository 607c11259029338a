-- json: writes values as JSON, and reads what it has written. Keys are sorted, so that equal values give equal text.
local text = require "cq.base.text"

local json = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

-- A string as JSON.
local function quote(word)
  return '"' .. word:gsub('[%c"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

-- A number as JSON; null for NaN and infinities, which JSON lacks.
local function number(value)
  local exact = text.exact(value)
  return exact:find "[ni]" and "null" or exact
end

---A value as JSON text, keys sorted. Errors: functions and other values that JSON lacks.
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

-- ---- reading --------------------------------------------------------------------------------------------------------

local unescaped = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", ["/"] = "/", ["\\"] = "\\", ['"'] = '"' }
local literals = { ["true"] = true, ["false"] = false }

local read                       -- line, place -> value, place after it

-- Raises the error, a table { json = sentence }, that the line is no JSON at this character.
local function broken(line, at)
  error({ json = ("it is no JSON at character %d of %s"):format(at, text.describe(line)) }, 0)
end

-- The position of the first character at or behind `at` that is no white space.
local function blank(line, at) return line:find("[^ \t\n\r]", at) or #line + 1 end

-- Reads a string whose quote is at `at`; returns it and the position behind it.
local function read_word(line, at)
  local parts, from = {}, at + 1
  while true do
    local stop = line:find('["\\]', from) or broken(line, at)
    parts[#parts + 1] = line:sub(from, stop - 1)
    if line:sub(stop, stop) == '"' then return table.concat(parts), stop + 1 end
    local code, escape = line:match("^u00(%x%x)", stop + 1), unescaped[line:sub(stop + 1, stop + 1)]
    parts[#parts + 1] = code and string.char(tonumber(code, 16)) or escape or broken(line, stop)
    from = stop + (code and 6 or 2)
  end
end

-- Reads the items between brackets: calls item(position) at each, which returns the position behind it, and returns the
-- position behind the closing bracket.
local function read_items(line, at, close, item)
  at = blank(line, at + 1)
  if line:sub(at, at) == close then return at + 1 end
  while true do
    at = blank(line, item(at))
    local c = line:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then broken(line, at) end
    at = blank(line, at + 1)
  end
end

-- Reads a list whose bracket is at `at`; returns it and the position behind it.
local function read_list(line, at)
  local out, count = {}, 0
  return out, read_items(line, at, "]", function(from)
    count = count + 1
    out[count], from = read(line, from)
    return from
  end)
end

-- Reads an object whose brace is at `at`; returns it as a table and the position behind it.
local function read_table(line, at)
  local out = {}
  return out, read_items(line, at, "}", function(from)
    if line:sub(from, from) ~= '"' then broken(line, from) end
    local key
    key, from = read_word(line, from)
    from = blank(line, from)
    if line:sub(from, from) ~= ":" then broken(line, from) end
    out[key], from = read(line, from + 1)
    return from
  end)
end

-- Reads the JSON value that begins at a position of a line; returns it and the position behind it.
function read(line, at)
  at = blank(line, at)
  local c = line:sub(at, at)
  if c == '"' then return read_word(line, at) end
  if c == "[" then return read_list(line, at) end
  if c == "{" then return read_table(line, at) end
  local word = line:match("^%l+", at)
  if word == "null" or literals[word] ~= nil then return literals[word], at + #word end
  local digits = line:match("^%-?%d[%d.eE+-]*", at)
  local value = tonumber(digits or "")
  if not value then broken(line, at) end
  return value, at + #digits
end

---The value of JSON that json.encode wrote; null is nil. Errors are tables with the sentence as json.
---@param line string
---@return any
function json.decode(line)
  local value, at = read(line, 1)
  if blank(line, at) <= #line then broken(line, at) end
  return value
end

return json
