-- json: reads JSON strictly, for tests of what the program writes. null becomes json.null.
local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local read                                    -- of any value: text, position -> value, position after it

local function fail(text, at, wanted) error(("JSON: %s expected at %d of %s"):format(wanted, at, text), 0) end

local function skip(text, at) return text:find("[^ \t\n\r]", at) or #text + 1 end

-- values between brackets, each read by `item`
local function series(text, at, close, item)
  at = skip(text, at + 1)
  if text:sub(at, at) == close then return at + 1 end
  while true do
    at = skip(text, item(at))
    local c = text:sub(at, at)
    if c == close then return at + 1 end
    if c ~= "," then fail(text, at, "',' or '" .. close .. "'") end
    at = skip(text, at + 1)
  end
end

local escapes = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", ["/"] = "/", ["\\"] = "\\", ['"'] = '"' }

local function word(text, at)
  local out = {}
  at = at + 1
  while true do
    local plain, c = text:match('^([^"\\%c]*)(.)', at)
    if not plain then fail(text, at, "the end of a string") end
    out[#out + 1] = plain
    at = at + #plain + 1
    if c == '"' then return table.concat(out), at end
    if c ~= "\\" then fail(text, at - 1, "a character that needs no escape") end
    local code = text:match("^u(%x%x%x%x)", at)
    local escape = escapes[text:sub(at, at)]
    if not code and not escape then fail(text, at, "an escape") end
    out[#out + 1] = code and string.char(tonumber(code, 16) % 256) or escape
    at = at + (code and 5 or 1)
  end
end

local function number(text, at)
  local found = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = found and not found:find "^-?0%d" and not found:find "%.$" and tonumber(found)
  if not value then fail(text, at, "a value") end
  return value, at + #found
end

local literals = { ["true"] = true, ["false"] = false, null = json.null }

function read(text, at)
  at = skip(text, at)
  local c, out = text:sub(at, at), {}
  if c == '"' then return word(text, at) end
  if c == "[" then
    return out, series(text, at, "]", function(from)
      out[#out + 1], from = read(text, from)
      return from
    end)
  elseif c == "{" then
    return out, series(text, at, "}", function(from)
      if text:sub(from, from) ~= '"' then fail(text, from, "a key") end
      local key
      key, from = word(text, from)
      from = skip(text, from)
      if text:sub(from, from) ~= ":" then fail(text, from, "':'") end
      out[key], from = read(text, from + 1)
      return from
    end)
  end
  local literal = text:match("^%a+", at)
  if literal and literals[literal] ~= nil then return literals[literal], at + #literal end
  return number(text, at)
end

---The value of a text that is JSON from end to end.
function json.decode(text)
  local value, at = read(text, 1)
  if skip(text, at) <= #text then fail(text, at, "the end") end
  return value
end

---One value for each line of a text.
function json.lines(text)
  local out = {}
  for line in text:gmatch "[^\n]+" do out[#out + 1] = json.decode(line) end
  return out
end

return json
